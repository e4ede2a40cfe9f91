/* SPDX-License-Identifier: Apache-2.0
 *
 * write_topology.c - a topology in the form of sites, whatever form it was read from, with the links as a run shows them.
 *
 * A place is a site. Links are written for each ordered pair of sites; what a link has beside bandwidth and latency (window,
 * loss, jitter, streams, egress) is written as it was.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/calibrate/calibration.h"
#include "topologies/import/writer.h"
#include "topologies/read/path.h"

static void put_rate(FILE *file, const char *key, double Bps)
{
	if (!isfinite(Bps))
		return;
	fprintf(file, ", %s: ", key);
	skep_put_quantity(file, SKEP_BANDWIDTH, Bps, true);
}

/* ---- machines ---------------------------------------------------------------------------------------------------- */

static void put_board(const struct skep_board *b, FILE *file)
{
	if (b->gpus > 1) {
		fprintf(file, ", gpus: %" PRIu32 ", inner: {bandwidth: ", b->gpus);
		skep_put_quantity(file, SKEP_BANDWIDTH, b->inner_Bps, true);
		fputs(", latency: ", file);
		skep_put_quantity(file, SKEP_TIME, b->inner_latency_s, true);
		putc('}', file);
	}
	if (!b->pcie_assumed)
		put_rate(file, "pcie", b->pcie_Bps);
	if (b->host_bytes > 0) {
		fprintf(file, ", host: {memory: %.0f B, bandwidth: ", b->host_bytes);
		skep_put_quantity(file, SKEP_BANDWIDTH, b->host_Bps, true);
		putc('}', file);
	}
}

static void put_price(const struct skep_topology *t, const struct skep_machine *m, FILE *file)
{
	if (m->prices == 0) {
		if (skep_machine_has_price(m))
			fprintf(file, ", price: %.10g USD/h", m->price_usd_per_h);
		return;
	}
	const struct skep_price_series *of = &t->price[m->prices - 1];
	char *path = realpath(of->path, NULL);
	fputs(", prices: {file: ", file);
	skep_put_string(file, path ? path : of->path);
	if (of->type[0])
		fputs(", type: ", file), skep_put_string(file, of->type);
	if (of->zone[0])
		fputs(", zone: ", file), skep_put_string(file, of->zone);
	putc('}', file);
	if (m->instance_gpus > 0)
		fprintf(file, ", instance_gpus: %.0f", m->instance_gpus);
	free(path);
}

static bool alike(const struct skep_machine *a, const struct skep_machine *b)
{
	return a->place == b->place && a->gpu == b->gpu && a->up_Bps == b->up_Bps && a->down_Bps == b->down_Bps &&
	       a->price_usd_per_h == b->price_usd_per_h && a->prices == b->prices &&
	       a->instance_gpus == b->instance_gpus;
}

/* The most that one link between single machines was seen to carry from there, or to there: an access link that is said to be
 * narrower is at least as wide. */
static double carried_Bps(const struct skep_calibration *c, uint32_t place, bool from)
{
	uint32_t places = c->topology.places;
	double most_Bps = 0;
	for (uint32_t i = 0; i < places * places; i++) {
		const struct skep_link_figures *link = &c->link[i];
		bool here = (from ? link->from : link->to) == place;
		if (here && !link->shared && link->bandwidth.after.samples > 0)
			most_Bps = fmax(most_Bps, link->bandwidth.after.value);
	}
	return most_Bps;
}

static void put_machines(const struct skep_calibration *c, uint32_t place, FILE *file)
{
	const struct skep_topology *t = &c->topology;
	char name[SKEP_CALIBRATION_NAME_BYTES];
	bool any = false;
	for (uint32_t i = 0, end; i < t->machines; i = end) {
		const struct skep_machine *m = &t->machine[i];
		for (end = i + 1; end < t->machines && alike(m, &t->machine[end]); end++)
			;
		if (m->place != place)
			continue;
		fputs(any ? "" : "    machines:\n", file);
		any = true;
		skep_calibration_gpu_name(c, m->gpu, name);
		fprintf(file, "      - {count: %" PRIu32 ", gpu: \"%s\"", end - i, name);
		put_rate(file, "up", fmax(m->up_Bps, carried_Bps(c, place, true)));
		put_rate(file, "down", fmax(m->down_Bps, carried_Bps(c, place, false)));
		put_board(&t->gpu[m->gpu].board, file);
		put_price(t, m, file);
		fputs("}\n", file);
	}
}

/* ---- links ------------------------------------------------------------------------------------------------------- */

static void put_deviation(const struct skep_jitter *j, FILE *file)
{
	fputs(", deviation: ", file);
	if (j->relative)
		fprintf(file, "%.10g %%", 100 * j->deviation);
	else
		skep_put_quantity(file, SKEP_TIME, j->deviation, true);
}

static void put_jitter(const struct skep_topology *t, const struct skep_jitter *j, FILE *file)
{
	static const char *const words[] = {"none", "normal", "lognormal", "empirical"};
	if (j->kind == SKEP_JITTER_NONE)
		return;
	fprintf(file, ", jitter: {distribution: %s", words[j->kind]);
	if (j->kind != SKEP_JITTER_EMPIRICAL)
		put_deviation(j, file);
	for (uint32_t i = 0; j->kind == SKEP_JITTER_EMPIRICAL && i < j->count; i++)
		fprintf(file, "%s%.10g s", i > 0 ? ", " : ", values: [", t->delay_s[j->first + i]);
	fputs(j->kind == SKEP_JITTER_EMPIRICAL ? "]}" : "}", file);
}

static void put_profile(const struct skep_topology *t, uint32_t from, uint32_t to, FILE *file)
{
	const struct skep_link_profile *p = skep_path_link_profile(t, from, to);
	if (p == NULL)
		return;
	if (isfinite(p->window_bytes))
		fprintf(file, ", window: %.10g B", p->window_bytes);
	if (p->loss > 0)
		fprintf(file, ", loss: %.10g %%, mss: %.10g B", 100 * p->loss, p->mss_bytes);
	if (p->overhead_s > 0)
		fputs(", overhead: ", file), skep_put_quantity(file, SKEP_TIME, p->overhead_s, true);
	if (p->streams == SKEP_STREAMS_EACH)
		fputs(", streams: each", file);
	else if (p->streams > 0)
		fprintf(file, ", streams: %" PRIu32, p->streams);
	if (p->overtake)
		fputs(", order: free", file);
	put_jitter(t, &p->jitter, file);
}

static void put_origin(const char *what, const struct skep_figure *f, enum skep_dimension dimension, FILE *file)
{
	if (f->after.samples == 0) {
		fprintf(file, "%s as before: %s", what, f->kept);
		return;
	}
	fprintf(file, "%s ", what);
	skep_put_quantity(file, dimension, f->after.low, false);
	fputs(" to ", file);
	skep_put_quantity(file, dimension, f->after.high, false);
	fprintf(file, " of %" PRIu32, f->after.samples);
}

static void put_link_comment(const struct skep_link_figures *link, const char *indent, FILE *file)
{
	fprintf(file, "%s# %zu messages; ", indent, link->messages);
	put_origin("latency", &link->latency, SKEP_TIME, file);
	fputs("; ", file);
	put_origin("bandwidth", &link->bandwidth, SKEP_BANDWIDTH, file);
	putc('\n', file);
}

/* An unlimited pair is written as the widest link that can be. */
static double written_Bps(double Bps)
{
	return isfinite(Bps) ? Bps : 1e15;
}

double skep_calibration_latency_s(const struct skep_calibration *c, const struct skep_link_figures *link)
{
	const struct skep_pair *pair = &c->topology.pair[link->from * c->topology.places + link->to];
	return skep_figure_value(&link->latency) + (skep_topology_is_link(pair) ? c->scenario->extra_latency_s : 0);
}

/* The inside of a site is free unless its file says otherwise. */
static void put_egress(const struct skep_topology *t, uint32_t from, uint32_t to, FILE *file)
{
	double usd_per_B = skep_topology_price_between(t, from, to);
	if (from == to ? usd_per_B > 0 : usd_per_B >= 0)
		fprintf(file, ", egress: %.10g USD/GB", 1e9 * usd_per_B);
}

/* Of a figure that the run has shown; one that is kept is off by what its file says, which is not known here. */
static double deviation_of(const struct skep_figure *f)
{
	return f->after.samples > 0 ? skep_deviation_of_interval(f->after.low, f->after.high, SKEP_NORMAL_95) : 0;
}

static void put_link(const struct skep_calibration *c, const struct skep_link_figures *link, FILE *file)
{
	fputs("bandwidth: ", file);
	skep_put_quantity(file, SKEP_BANDWIDTH, written_Bps(skep_figure_value(&link->bandwidth)), true);
	fputs(", latency: ", file);
	skep_put_quantity(file, SKEP_TIME, skep_calibration_latency_s(c, link), true);
	fputs(link->shared ? ", shared: true" : "", file);
	put_egress(&c->topology, link->from, link->to, file);
	put_profile(&c->topology, link->from, link->to, file);
	skep_put_uncertainty(file, ", ", deviation_of(&link->bandwidth), deviation_of(&link->latency));
	fputs("}\n", file);
}

static void put_sites(const struct skep_calibration *c, FILE *file)
{
	const struct skep_topology *t = &c->topology;
	fputs("sites:\n", file);
	for (uint32_t place = 0; place < t->places; place++) {
		const struct skep_link_figures *inside = &c->link[place * t->places + place];
		fputs("  ", file);
		skep_put_string(file, t->place_name[place]);
		fputs(":\n", file);
		put_machines(c, place, file);
		if (t->dials_out && t->dials_out[place])
			fputs("    reach: out\n", file);
		if (t->site_link && isfinite(t->site_link[place].up_Bps)) {
			fputs("    uplink: ", file);
			skep_put_quantity(file, SKEP_BANDWIDTH, t->site_link[place].up_Bps, true);
			putc('\n', file);
		}
		if (t->site_link && isfinite(t->site_link[place].down_Bps)) {
			fputs("    downlink: ", file);
			skep_put_quantity(file, SKEP_BANDWIDTH, t->site_link[place].down_Bps, true);
			putc('\n', file);
		}
		put_link_comment(inside, "    ", file);
		fputs("    inside: {", file);
		put_link(c, inside, file);
	}
}

void skep_calibration_put_topology(const struct skep_calibration *c, FILE *file)
{
	static const char *const fairness[] = {"equal", "rtt", "latency"};
	const struct skep_topology *t = &c->topology;
	char source[256];
	skep_calibration_put_head(c, file);
	if (c->clocks_apart_s > 0)
		fprintf(file,
			"# Clocks of machines differed from the directory's by up to %.3g ms, which was taken out.\n",
			1e3 * c->clocks_apart_s);
	if (c->scenario->extra_latency_s > 0)
		fprintf(file, "# Latencies have the %.6g ms of cluster.extra_latency in them, and comments have not.\n",
			1e3 * c->scenario->extra_latency_s);
	skep_put_quoted(file, "name", t->name);
	snprintf(source, sizeof source,
		c->shaped ? "Assumed: run %" PRId64 " was shaped, by skep calibrate; the rest: "
			  : "Measured in run %" PRId64 " by skep calibrate; the rest: ",
		c->run);
	size_t used = strlen(source);
	snprintf(source + used, sizeof source - 8 - used, "%s", t->source);
	skep_put_quoted(file, "source", source);
	if (t->fairness != SKEP_FAIRNESS_EQUAL)
		fprintf(file, "fairness: %s\n", fairness[t->fairness]);
	fputs("directory: ", file);
	skep_put_string(file, t->place_name[t->machine[t->machines].place]);
	putc('\n', file);
	put_sites(c, file);
	fputs(t->places > 1 ? "links:\n" : "", file);
	for (uint32_t i = 0; i < t->places * t->places; i++) {
		const struct skep_link_figures *link = &c->link[i];
		if (link->from == link->to || skep_topology_relays(t, link->from, link->to))
			continue;
		put_link_comment(link, "  ", file);
		fputs("  - {from: ", file);
		skep_put_string(file, t->place_name[link->from]);
		fputs(", to: ", file);
		skep_put_string(file, t->place_name[link->to]);
		fputs(", ", file);
		put_link(c, link, file);
	}
}
