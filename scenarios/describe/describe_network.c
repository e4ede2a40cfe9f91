/* SPDX-License-Identifier: Apache-2.0
 *
 * describe_network.c - see describe_groups.h. Links that have the same traits are one row, with the range of what it comes
 * to on them.
 */
#include "scenarios/describe/describe_groups.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/layout.h"
#include "topologies/read/path.h"

#define ROWS_MAX 8u /* in the text; JSON has all */

struct range {
	double least, most;
};

struct row {            /* of one trait */
	uint32_t links; /* ordered pairs of places */
	struct range cap_Bps, latency_s;
	double cut_mean_s,
		cut_latency_s; /* of the link whose mean grows most by being cut off at 0; 0: of none by 1 % */
};

static void widen(struct range *range, double value)
{
	range->least = fmin(range->least, value);
	range->most = fmax(range->most, value);
}

/* Of a normal law that is cut off at 0: m Phi(m / s) + s phi(m / s). */
static double cut_mean(double mean, double deviation)
{
	double z = mean / deviation;
	return mean * 0.5 * erfc(-z * sqrt(0.5)) + deviation * exp(-z * z / 2) * 0.3989422804014327;
}

static void add_link(
	struct row *row, const struct skep_topology *t, const struct skep_jitter *jitter, uint32_t from, uint32_t to)
{
	double latency_s = t->pair[(size_t)from * t->places + to].latency_s;
	double deviation = jitter->relative ? jitter->deviation * latency_s : jitter->deviation;
	row->links++;
	widen(&row->cap_Bps, skep_path_cap_Bps(t, from, to));
	widen(&row->latency_s, skep_path_mean_s(t, from, to));
	if (jitter->kind != SKEP_JITTER_NORMAL || deviation <= 0)
		return;
	double grown = cut_mean(latency_s, deviation);
	if (grown > 1.01 * latency_s && grown > row->cut_mean_s) {
		row->cut_mean_s = grown;
		row->cut_latency_s = latency_s;
	}
}

static struct row sum_up(const struct skep_topology *t, uint32_t link_profile)
{
	struct row row = {.cap_Bps = {INFINITY, 0}, .latency_s = {INFINITY, 0}};
	for (uint32_t i = 0; i < t->places; i++)
		for (uint32_t j = 0; j < t->places; j++)
			if (skep_path_link_profile(t, i, j) == &t->link_profile[link_profile])
				add_link(&row, t, &t->link_profile[link_profile].jitter, i, j);
	return row;
}

/* ---- text ---------------------------------------------------------------------------------------------------------- */

/* *lead: what stands before the next part of the row. */
static void print_caps(
	const struct skep_link_profile *link_profile, const struct row *row, const char **lead, FILE *out)
{
	char a[SKEP_TEXT_BYTES], b[SKEP_TEXT_BYTES];
	bool windowed = !isinf(link_profile->window_bytes);
	if (!windowed && link_profile->loss <= 0)
		return;
	fprintf(out, "%sa connection gets at most %s", *lead, skep_rate_text(row->cap_Bps.least, a));
	*lead = ",\n            ";
	if (row->cap_Bps.most > row->cap_Bps.least)
		fprintf(out, " to %s", skep_rate_text(row->cap_Bps.most, b));
	fprintf(out, " (");
	if (windowed)
		fprintf(out, "window %s%s", skep_binary_text(link_profile->window_bytes, a),
			link_profile->loss > 0 ? ", " : "");
	if (link_profile->loss > 0)
		fprintf(out, "loss %g %% of packets of %g B", 100 * link_profile->loss, link_profile->mss_bytes);
	fprintf(out, ")");
}

static void print_streams(const struct skep_link_profile *link_profile, const char **lead, FILE *out)
{
	if (link_profile->streams <= 1)
		return;
	if (link_profile->streams == SKEP_STREAMS_EACH)
		fprintf(out, "%seach message has a connection of its own", *lead);
	else
		fprintf(out, "%s%" PRIu32 " connections for each ordered pair of machines", *lead,
			link_profile->streams);
	*lead = ",\n            ";
}

static void print_jitter(
	const struct skep_link_profile *link_profile, const struct row *row, const char *lead, FILE *out)
{
	static const char *const law[] = {"", "normal", "log-normal", "empirical"};
	char a[SKEP_TEXT_BYTES], b[SKEP_TEXT_BYTES];
	if (link_profile->jitter.kind == SKEP_JITTER_NONE)
		return;
	fprintf(out, "%slatency of %s", lead, skep_time_text(row->latency_s.least, a));
	if (row->latency_s.most > row->latency_s.least)
		fprintf(out, " to %s", skep_time_text(row->latency_s.most, b));
	fprintf(out, " on average, %s", law[link_profile->jitter.kind]);
	if (link_profile->jitter.kind == SKEP_JITTER_EMPIRICAL)
		fprintf(out, " with %" PRIu32 " values", link_profile->jitter.count);
	else if (link_profile->jitter.relative)
		fprintf(out, " ± %g %%", 100 * link_profile->jitter.deviation);
	else
		fprintf(out, " ± %s", skep_time_text(link_profile->jitter.deviation, a));
	fprintf(out, "; messages of a pair %s", link_profile->overtake ? "may overtake" : "keep their order");
	if (row->cut_mean_s > 0)
		fprintf(out, "\n            cut off at 0, which makes %s on average %s",
			skep_time_text(row->cut_latency_s, a), skep_time_text(row->cut_mean_s, b));
}

static bool is_plain(const struct skep_link_profile *link_profile)
{
	return isinf(link_profile->window_bytes) && link_profile->loss <= 0 && link_profile->overhead_s <= 0 &&
	       link_profile->jitter.kind == SKEP_JITTER_NONE && link_profile->streams <= 1;
}

static const char *fairness_name(const struct skep_topology *t)
{
	static const char *const name[] = {"equal", "rtt", "latency"};
	return name[t->fairness];
}

/* The places from `at` on that only dial out; t->places: there is none. */
static uint32_t next_out(const struct skep_topology *t, uint32_t at)
{
	while (at < t->places && (t->dials_out == NULL || !t->dials_out[at]))
		at++;
	return at;
}

/* Two of them at least, or none is relayed. */
static void print_relayed(const struct skep_topology *t, FILE *out)
{
	uint32_t first = next_out(t, 0), at = first < t->places ? next_out(t, first + 1) : t->places;
	if (at == t->places)
		return;
	fprintf(out, "  %-9s what %s", "relayed", t->place_name[first]);
	for (uint32_t named = 1; at < t->places; named++) {
		uint32_t next = next_out(t, at + 1);
		if (named < ROWS_MAX || next == t->places)
			fprintf(out, "%s%s", next < t->places ? ", " : " and ", t->place_name[at]);
		at = next;
	}
	fprintf(out, " say to each other goes through the directory (reach: out)\n");
}

void skep_network_describe(const struct skep_topology *t, FILE *out)
{
	char a[SKEP_TEXT_BYTES], b[SKEP_TEXT_BYTES];
	uint32_t rows = 0, left_out = 0;
	if (t->fairness != SKEP_FAIRNESS_EQUAL) {
		fprintf(out, "  %-9s flows that share a link divide it by 1 / %s\n", "network",
			t->fairness == SKEP_FAIRNESS_RTT ? "their round trip" : "their latency");
		rows++;
	}
	for (uint32_t i = 0; i < t->link_profiles; i++) {
		struct row row = sum_up(t, i);
		const char *lead = ": ";
		if (row.links == 0 || is_plain(&t->link_profile[i]))
			continue;
		if (rows++ >= ROWS_MAX) {
			left_out++;
			continue;
		}
		fprintf(out, "  %-9s %" PRIu32 " link%s", rows == 1 ? "network" : "", row.links,
			skep_plural(row.links));
		print_streams(&t->link_profile[i], &lead, out);
		print_caps(&t->link_profile[i], &row, &lead, out);
		if (t->link_profile[i].overhead_s > 0) {
			fprintf(out, "%s%s of its sender for each message", lead,
				skep_time_text(t->link_profile[i].overhead_s, a));
			lead = ",\n            ";
		}
		print_jitter(&t->link_profile[i], &row, lead, out);
		fprintf(out, "\n");
	}
	if (left_out > 0)
		fprintf(out, "            and %" PRIu32 " more kinds of links\n", left_out);
	for (uint32_t i = 0, site_links = 0; t->site_link && i < t->places && site_links <= ROWS_MAX; i++) {
		if (isinf(t->site_link[i].up_Bps) && isinf(t->site_link[i].down_Bps))
			continue;
		if (site_links++ == ROWS_MAX)
			fprintf(out, "            and more sites\n");
		else
			fprintf(out, "  %-9s %s to and from other sites: %s up, %s down\n",
				rows + site_links == 1 ? "network" : "", t->place_name[i],
				skep_rate_text(t->site_link[i].up_Bps, a), skep_rate_text(t->site_link[i].down_Bps, b));
	}
	print_relayed(t, out);
}

/* ---- prices -------------------------------------------------------------------------------------------------------- */

struct egress_range { /* over the ordered pairs of places that are known; without any INFINITY and 0 */
	double least_usd_per_B, most_usd_per_B;
	uint32_t unknown; /* pairs */
};

static struct egress_range egress_range(const struct skep_topology *t)
{
	struct egress_range range = {.least_usd_per_B = INFINITY};
	for (size_t i = 0; t->egress_usd_per_B && i < (size_t)t->places * t->places; i++) {
		double usd_per_B = t->egress_usd_per_B[i];
		if (i / t->places == i % t->places)
			continue;
		range.unknown += isnan(usd_per_B);
		range.least_usd_per_B = fmin(range.least_usd_per_B, usd_per_B);
		range.most_usd_per_B = fmax(range.most_usd_per_B, usd_per_B);
	}
	return range;
}

void skep_egress_describe(const struct skep_topology *t, FILE *out)
{
	const struct egress_range range = egress_range(t);
	if (!isfinite(range.least_usd_per_B))
		return;
	fprintf(out, "  egress    %.4g", 1e9 * range.least_usd_per_B);
	if (range.most_usd_per_B > range.least_usd_per_B)
		fprintf(out, " to %.4g", 1e9 * range.most_usd_per_B);
	fprintf(out, " USD/GB between sites");
	if (range.unknown > 0)
		fprintf(out, "; of %" PRIu32 " link%s not known, with whose traffic costs are not either",
			range.unknown, skep_plural(range.unknown));
	fputc('\n', out);
}

/* ---- JSON ---------------------------------------------------------------------------------------------------------- */

/* What is not limited is left out. */
static void add_number(cJSON *object, const char *name, double value)
{
	if (isfinite(value))
		cJSON_AddNumberToObject(object, name, value);
}

static cJSON *link_profile_json(const struct skep_link_profile *link_profile, const struct row *row)
{
	static const char *const law[] = {"none", "normal", "lognormal", "empirical"};
	cJSON *object = cJSON_CreateObject();
	cJSON_AddNumberToObject(object, "links", row->links);
	add_number(object, "window_bytes", link_profile->window_bytes);
	cJSON_AddNumberToObject(object, "loss", link_profile->loss);
	add_number(object, "flow_Bps_least", row->cap_Bps.least);
	add_number(object, "flow_Bps_most", row->cap_Bps.most);
	cJSON_AddNumberToObject(object, "overhead_s", link_profile->overhead_s);
	cJSON_AddNumberToObject(object, "latency_s_least", row->latency_s.least);
	cJSON_AddNumberToObject(object, "latency_s_most", row->latency_s.most);
	cJSON_AddStringToObject(object, "jitter", law[link_profile->jitter.kind]);
	if (link_profile->jitter.kind == SKEP_JITTER_NORMAL || link_profile->jitter.kind == SKEP_JITTER_LOGNORMAL)
		cJSON_AddNumberToObject(object, link_profile->jitter.relative ? "deviation_part" : "deviation_s",
			link_profile->jitter.deviation);
	if (link_profile->streams == SKEP_STREAMS_EACH)
		cJSON_AddStringToObject(object, "streams", "each");
	else
		cJSON_AddNumberToObject(object, "streams", link_profile->streams);
	cJSON_AddBoolToObject(object, "overtake", link_profile->overtake);
	return object;
}

void skep_egress_describe_json(const struct skep_topology *t, cJSON *root)
{
	const struct egress_range range = egress_range(t);
	if (!isfinite(range.least_usd_per_B))
		return;
	cJSON *egress = cJSON_AddObjectToObject(root, "egress");
	cJSON_AddNumberToObject(egress, "least_usd_per_GB", 1e9 * range.least_usd_per_B);
	cJSON_AddNumberToObject(egress, "most_usd_per_GB", 1e9 * range.most_usd_per_B);
	cJSON_AddNumberToObject(egress, "links_unknown", range.unknown);
}

void skep_network_describe_json(const struct skep_topology *t, cJSON *root)
{
	if (t->link_profiles == 0 && !t->site_link && t->fairness == SKEP_FAIRNESS_EQUAL && t->dials_out == NULL)
		return;
	cJSON *network = cJSON_AddObjectToObject(root, "network");
	cJSON_AddStringToObject(network, "fairness", fairness_name(t));
	cJSON *links = cJSON_AddArrayToObject(network, "links"), *sites = cJSON_AddArrayToObject(network, "sites");
	for (uint32_t i = 0; i < t->link_profiles; i++) {
		struct row row = sum_up(t, i);
		if (row.links > 0)
			cJSON_AddItemToArray(links, link_profile_json(&t->link_profile[i], &row));
	}
	for (uint32_t i = 0; t->site_link && i < t->places; i++) {
		if (isinf(t->site_link[i].up_Bps) && isinf(t->site_link[i].down_Bps))
			continue;
		cJSON *site = skep_json_add_row(sites);
		cJSON_AddStringToObject(site, "name", t->place_name[i]);
		add_number(site, "uplink_Bps", t->site_link[i].up_Bps);
		add_number(site, "downlink_Bps", t->site_link[i].down_Bps);
	}
	if (t->dials_out == NULL)
		return;
	cJSON *reach_out = cJSON_AddArrayToObject(network, "reach_out");
	for (uint32_t i = next_out(t, 0); i < t->places; i = next_out(t, i + 1))
		cJSON_AddItemToArray(reach_out, cJSON_CreateString(t->place_name[i]));
}
