/* SPDX-License-Identifier: Apache-2.0
 *
 * probed.c - see probed.h. Every value is written with how it was measured, and what was not measured is not written,
 * but for two values that the forms require and that the file marks: that the machines of a place share its links to
 * other places, and what is inside a place of one machine beside which the directory runs.
 */
#include "topologies/import/probed.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "topologies/import/probed_internal.h"

#define PAIRS_SHOWN 64u   /* in the comments on top; beyond these the uncertain ones */
#define JITTER_LEAST 0.01 /* of the latency: less is not worth a key */

/* ---- the measurements -------------------------------------------------------------------------------------------- */

bool skep_probed_create(struct skep_probed *ret, uint32_t ranks, uint32_t places)
{
	*ret = (struct skep_probed){.ranks = ranks, .places = places};
	ret->place_of = calloc(ranks, sizeof *ret->place_of);
	ret->host_of = calloc(ranks, sizeof *ret->host_of);
	ret->place_name = calloc(places, sizeof *ret->place_name);
	ret->device = calloc(ranks, sizeof *ret->device);
	ret->way = calloc((size_t)places * places, sizeof *ret->way);
	bool room = skep_probed_sites_create(&ret->sites, places);
	if (!room || !ret->place_of || !ret->host_of || !ret->place_name || !ret->device || !ret->way) {
		skep_probed_finish(ret);
		return false;
	}
	for (size_t i = 0; i < (size_t)places * places; i++)
		ret->way[i].latency_s = NAN;
	return true;
}

void skep_probed_finish(struct skep_probed *probed)
{
	free(probed->place_of);
	free(probed->host_of);
	free(probed->place_name);
	free(probed->device);
	free(probed->way);
	skep_probed_sites_finish(&probed->sites);
	*probed = (struct skep_probed){0};
}

struct skep_probed_link *skep_probed_link(const struct skep_probed *probed, uint32_t from, uint32_t to)
{
	return &probed->way[(size_t)from * probed->places + to];
}

static uint32_t ranks_at(const struct skep_probed *probed, uint32_t place)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < probed->ranks; i++)
		count += probed->place_of[i] == place;
	return count;
}

static bool has_sites(const struct skep_probed *probed)
{
	return probed->places < probed->ranks || probed->ranks == 1;
}

double skep_probed_median(double *value, uint32_t count)
{
	for (uint32_t i = 1; i < count; i++)
		for (uint32_t j = i; j > 0 && value[j] < value[j - 1]; j--) {
			double swap = value[j];
			value[j] = value[j - 1];
			value[j - 1] = swap;
		}
	return count % 2 ? value[count / 2] : (value[count / 2 - 1] + value[count / 2]) / 2;
}

/* ---- where it goes ----------------------------------------------------------------------------------------------- */

void skep_probed_folder(const char *path, const char *inside, char *ret, size_t size)
{
	const char *base = skep_path_base(path);
	snprintf(ret, size, "%.*s%s", (int)(base - path), path, inside);
}

/* Files that go beside the topology, whatever its form and its devices. */
static void check_others(const char *path, struct skep_diag *reterr)
{
	static const char *const ending[] = {"-bandwidth.csv", "-latency.csv"}, *const device[] = {"cpu", "cuda"};
	struct stat st;
	char other[700], inside[600];
	for (int i = 0; i < 2 && !reterr->set; i++) {
		skep_path_beside(path, ending[i], other, sizeof other);
		if (lstat(other, &st) != 0) {
			const char *base = skep_path_base(path);
			snprintf(inside, sizeof inside, "gpus/%.*s-%s.yaml", (int)(strlen(base) - 5), base, device[i]);
			skep_probed_folder(path, inside, other, sizeof other);
		}
		if (lstat(other, &st) == 0)
			skep_diag_set(reterr, other, 0, 0, NULL,
				"is there already, and would be written beside %.200s: name another file", path);
	}
}

bool skep_probed_writable(const char *path, struct skep_diag *reterr)
{
	struct stat st;
	char folder[600];
	size_t length = strlen(path);
	skep_probed_folder(path, ".", folder, sizeof folder);
	if (length < 6 || strcmp(path + length - 5, ".yaml") != 0 || skep_path_base(path)[0] == '.')
		skep_diag_set(reterr, path, 0, 0, NULL, "expected the name of a topology, such as cluster.yaml");
	else if (length > 500)
		skep_diag_set(reterr, path, 0, 0, NULL, "the name has %zu bytes; at most 500 are taken", length);
	else if (lstat(path, &st) == 0)
		skep_diag_set(reterr, path, 0, 0, NULL,
			"is there already: name another file, or move what has been measured before out of the way");
	else if (stat(folder, &st) != 0 || !S_ISDIR(st.st_mode))
		skep_diag_set(reterr, path, 0, 0, NULL, "its folder is not there: make it first");
	else if (euidaccess(folder, W_OK | X_OK) != 0)
		skep_diag_set(reterr, path, 0, 0, NULL, "its folder cannot be written to: %s", strerror(errno));
	else
		check_others(path, reterr);
	return !reterr->set;
}

/* ---- the head ---------------------------------------------------------------------------------------------------- */

static void put_spread(FILE *file, double spread)
{
	skep_put_number(file, ceil(1e3 * spread) / 10, false);
	fputs(" %", file);
}

bool skep_probed_uncertain(const struct skep_probed_link *way)
{
	return way->latency_spread > SKEP_PROBED_SPREAD_MOST || way->Bps_spread > SKEP_PROBED_SPREAD_MOST;
}

double skep_probed_deviation(double spread)
{
	return skep_deviation_of_interval(1 / (1 + spread), 1 + spread, SKEP_NORMAL_99);
}

void skep_probed_put_uncertain(FILE *file, const struct skep_probed_link *way)
{
	bool latency = way->latency_spread > SKEP_PROBED_SPREAD_MOST;
	if (latency) {
		fputs("the latency is known within ", file);
		put_spread(file, way->latency_spread);
	}
	if (way->Bps_spread <= SKEP_PROBED_SPREAD_MOST)
		return;
	fprintf(file, "%sthe bandwidth %s within ", latency ? ", " : "", way->falling ? "fell with size," : "is known");
	put_spread(file, way->Bps_spread);
}

static void put_pair(const struct skep_probed *p, FILE *file, uint32_t from, uint32_t to)
{
	const struct skep_probed_link *way = skep_probed_link(p, from, to);
	fprintf(file, "#   %s -> %s: ", p->place_name[from], from == to ? "itself" : p->place_name[to]);
	skep_put_quantity(file, SKEP_TIME, way->latency_s, false);
	fputs(" (", file);
	skep_put_quantity(file, SKEP_TIME, way->least_s, false);
	fputs("; ", file);
	skep_put_quantity(file, SKEP_TIME, way->deviation_s, false);
	fprintf(file, ") of %u round trips, ", way->pings);
	skep_put_quantity(file, SKEP_BANDWIDTH, way->Bps, false);
	fprintf(file, " with %llu KiB (within ", (unsigned long long)(way->bytes >> 10));
	put_spread(file, way->Bps_spread);
	fprintf(file, ", %u transfers)", way->transfers);
	if (skep_probed_uncertain(way)) {
		fputs(", uncertain: ", file);
		skep_probed_put_uncertain(file, way);
	}
	putc('\n', file);
}

static void put_pairs(const struct skep_probed *p, FILE *file)
{
	uint32_t shown = 0;
	fputs("# Latency is half of a round trip of a message without a payload: the median (least; spread one way, by "
	      "quartiles).\n"
	      "# Bandwidth is that of one message at a time, one flow: its payload over the time that it takes\n"
	      "# beyond a smaller one. \"Within\": it is at most so much higher or lower, as far as the transfers tell;\n"
	      "# uncertain is what is not known within 5 %.\n",
		file);
	for (size_t i = 0; i < (size_t)p->places * p->places; i++)
		if (!isnan(p->way[i].latency_s) && (shown < PAIRS_SHOWN || skep_probed_uncertain(&p->way[i]))) {
			put_pair(p, file, (uint32_t)(i / p->places), (uint32_t)(i % p->places));
			shown++;
		}
	if (shown >= PAIRS_SHOWN)
		fputs("#   and so on: all are in the matrices or links below.\n", file);
}

static void put_head(const struct work *w, FILE *file)
{
	const struct skep_probed *p = w->probed;
	char source[256], name[64];
	size_t used;
	const bool links = p->ranks > 1;
	fprintf(file, "# Written by `skep probe` on %s: %u rank%s on %u host%s, %s.\n", p->date, p->ranks,
		links ? "s" : "", p->hosts, p->hosts == 1 ? "" : "s",
		!links       ? "its device alone"
		: p->at_once ? "pairs without a rank in common measured at the same time"
			     : "one pair after the other");
	if (p->shaped[0])
		fprintf(file, "# Messages were held back as on %s: this is a test of the measurement.\n", p->shaped);
	if (links)
		put_pairs(p, file);
	skep_probed_put_verdict(file, p, "# ");
	snprintf(name, sizeof name, "%.*s", (int)(strlen(skep_path_base(w->path)) - 5), skep_path_base(w->path));
	skep_put_quoted(file, "name", name);
	snprintf(source, sizeof source, "Measured by skep probe over MPI on %s, %u rank%s at", p->date, p->ranks,
		links ? "s" : "");
	for (uint32_t i = 0; i < p->places && (used = strlen(source)) < 200; i++)
		snprintf(source + used, sizeof source - used, "%s %s", i ? "," : "", p->place_name[i]);
	if (strlen(source) >= 200)
		snprintf(source + 200, sizeof source - 200, " and others");
	if (p->gpu[0])
		snprintf(source + strlen(source), sizeof source - strlen(source), ". Assumed: GPUs");
	skep_put_quoted(file, "source", source);
}

/* ---- the forms --------------------------------------------------------------------------------------------------- */

static bool jitters(const struct skep_probed_link *way)
{
	return way->deviation_s >= JITTER_LEAST * way->latency_s && way->deviation_s > 0;
}

void skep_probed_put_link(FILE *file, const struct skep_probed_link *way)
{
	fputs("bandwidth: ", file);
	skep_put_quantity(file, SKEP_BANDWIDTH, way->Bps, false);
	fputs(", latency: ", file);
	skep_put_quantity(file, SKEP_TIME, way->latency_s, false);
	if (jitters(way)) {
		fputs(", jitter: {distribution: normal, deviation: ", file);
		skep_put_quantity(file, SKEP_TIME, way->deviation_s, false);
		fputs("}", file);
	}
	skep_put_uncertainty(
		file, ", ", skep_probed_deviation(way->Bps_spread), skep_probed_deviation(way->latency_spread));
}

/* A site for each place, with its ranks by kind of device. */
static void put_site(struct work *w, FILE *file, uint32_t place, uint32_t other)
{
	const struct skep_probed *p = w->probed;
	uint32_t ranks = 0;
	for (uint32_t i = 0; i < p->ranks; i++)
		ranks += p->place_of[i] == place && !p->device[i].cuda;
	fprintf(file, "  \"%s\":\n", p->place_name[place]);
	if (ranks > 1 && p->hosts < p->ranks)
		fputs("    # Without `host: {cores: ...}`: ranks of a host computed at once, so that these speeds are already\n"
		      "    # those of processes that share its cores, and it would count that twice.\n",
			file);
	fputs("    machines:\n", file);
	for (uint32_t k = 0; k < w->kinds; k++) {
		uint32_t count = 0;
		for (uint32_t i = 0; i < p->ranks; i++)
			count += p->place_of[i] == place && w->kind_of[i] == k;
		if (count > 0)
			fprintf(file, "      - {count: %u, gpu: \"%s\"}\n", count, w->kind[k].name);
	}
	const struct skep_probed_link *inside = skep_probed_link(p, place, place);
	if (isnan(inside->latency_s) && other != place) {
		fprintf(file, "    # One rank: not measured, taken from %s.\n", p->place_name[other]);
		inside = skep_probed_link(p, other, other);
	}
	if (isnan(inside->latency_s) && p->ranks == 1)
		fputs("    # Assumed: one process has no link to measure. This is between the machine and the directory on it.\n"
		      "    inside: {bandwidth: 100 Gbit/s, latency: 10 us}\n",
			file);
	if (isnan(inside->latency_s))
		return;
	fputs("    inside: {", file);
	skep_probed_put_link(file, inside);
	fputs("}\n", file);
}

static void put_sites_form(struct work *w, FILE *file)
{
	const struct skep_probed *p = w->probed;
	uint32_t several = 0;
	while (several + 1 < p->places && isnan(skep_probed_link(p, several, several)->latency_s))
		several++;
	fprintf(file, "directory: \"%s\"\nsites:\n", p->place_name[p->place_of[0]]);
	for (uint32_t i = 0; i < p->places; i++)
		put_site(w, file, i, i == p->place_of[0] ? several : i);
	if (p->places < 2)
		return;
	fputs("# Assumed: all ranks of a host share its links to other hosts (shared).\nlinks:\n", file);
	for (uint32_t from = 0; from < p->places; from++)
		for (uint32_t to = 0; to < p->places; to++) {
			if (from == to)
				continue;
			fprintf(file, "  - {from: \"%s\", to: \"%s\", ", p->place_name[from], p->place_name[to]);
			skep_probed_put_link(file, skep_probed_link(p, from, to));
			bool several_ranks = ranks_at(p, from) > 1 || ranks_at(p, to) > 1;
			fprintf(file, "%s}\n", several_ranks ? ", shared: true" : "");
		}
}

/* In bytes per second or seconds. */
static double cell_of(const struct skep_probed_link *way, enum skep_dimension dimension)
{
	return dimension == SKEP_BANDWIDTH ? way->Bps : way->latency_s;
}

static void put_matrix(struct work *w, FILE *file, enum skep_dimension dimension, double *cell)
{
	const uint32_t n = w->probed->places;
	const char *word = dimension == SKEP_BANDWIDTH ? "bandwidth" : "latency";
	char path[600], ending[32];
	snprintf(ending, sizeof ending, "-%s.csv", word);
	skep_path_beside(w->path, ending, path, sizeof path);
	FILE *csv = skep_outputs_begin(&w->outputs, path);
	if (!csv)
		return;
	for (size_t i = 0; i < (size_t)n * n; i++)
		cell[i] = i / n == i % n ? 0 : cell_of(&w->probed->way[i], dimension);
	const struct skep_unit *unit = skep_unit_of_matrix(dimension, cell, n);
	fprintf(csv, "# %s in %s; row = source, column = destination. Measured by `skep probe` on %s.\n",
		dimension == SKEP_BANDWIDTH ? "Bandwidth" : "One-way latency", unit->name, w->probed->date);
	for (size_t i = 0; i < (size_t)n * n; i++) {
		skep_put_number(csv, cell[i] * unit->per_base, false);
		putc(i % n + 1 == n ? '\n' : ',', csv);
	}
	fprintf(file, "  %s: \"%s\"\n  %s_unit: %s\n", word, skep_path_base(path), word, unit->name);
}

/* One for all pairs is what this form has room for: the median of them. */
static void put_matrix_uncertainty(const struct skep_probed *p, FILE *file, double *cell)
{
	double deviation[2];
	for (int figure = 0; figure < 2; figure++) {
		uint32_t count = 0;
		for (size_t i = 0; i < (size_t)p->places * p->places; i++)
			if (i / p->places != i % p->places)
				cell[count++] = skep_probed_deviation(
					figure == 0 ? p->way[i].Bps_spread : p->way[i].latency_spread);
		deviation[figure] = count ? skep_probed_median(cell, count) : 0;
	}
	skep_put_uncertainty(file, "  # The medians of what the pairs have.\n  ", deviation[0], deviation[1]);
	fputs(deviation[0] >= 1e-6 || deviation[1] >= 1e-6 ? "\n" : "", file);
}

/* The same: the median of their parts of the latency. */
static void put_jitter(const struct skep_probed *p, FILE *file, double *cell)
{
	uint32_t count = 0;
	for (size_t i = 0; i < (size_t)p->places * p->places; i++)
		if (i / p->places != i % p->places && p->way[i].latency_s > 0)
			cell[count++] = p->way[i].deviation_s / p->way[i].latency_s;
	double part = count ? skep_probed_median(cell, count) : 0;
	if (part < JITTER_LEAST)
		return;
	fputs("# The median of what the pairs have.\njitter: {distribution: normal, deviation: ", file);
	skep_put_number(file, 100 * part, false);
	fputs(" %}\n", file);
}

static void put_matrix_form(struct work *w, FILE *file)
{
	const struct skep_probed *p = w->probed;
	double *cell = calloc((size_t)p->places * p->places, sizeof *cell);
	if (!cell) {
		skep_diag_set(w->outputs.diag, w->path, 0, 0, NULL, "not enough memory");
		return;
	}
	fputs("matrix:\n", file);
	put_matrix(w, file, SKEP_BANDWIDTH, cell);
	if (!w->outputs.diag->set)
		put_matrix(w, file, SKEP_TIME, cell);
	fputs("  names:\n", file);
	for (uint32_t i = 0; i < p->places; i++)
		fprintf(file, "    - \"%s\"\n", p->place_name[i]);
	put_matrix_uncertainty(p, file, cell);
	fputs("machines:\n", file);
	for (uint32_t i = 0, end; i < p->ranks; i = end) {
		for (end = i + 1; end < p->ranks && w->kind_of[end] == w->kind_of[i]; end++)
			;
		fprintf(file, "  - {count: %u, gpu: \"%s\"}\n", end - i, w->kind[w->kind_of[i]].name);
	}
	fputs("directory: 0\n", file);
	put_jitter(p, file, cell);
	free(cell);
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static void put_topology(struct work *w, FILE *file)
{
	put_head(w, file);
	if (w->probed->sites.count > 1)
		skep_probed_put_shared_form(w, file);
	else if (has_sites(w->probed))
		put_sites_form(w, file);
	else
		put_matrix_form(w, file);
}

/* The topology is begun first, for it names the others, and goes to its place last. */
static bool write_all(struct work *w)
{
	FILE *file = skep_outputs_begin(&w->outputs, w->path);
	for (uint32_t k = 0; file && !w->probed->gpu[0] && k < w->kinds && !w->outputs.diag->set; k++)
		skep_probed_put_profile(w, &w->kind[k]);
	if (file && !w->outputs.diag->set)
		put_topology(w, file);
	skep_outputs_put_last(&w->outputs, 0);
	return skep_outputs_commit(&w->outputs);
}

bool skep_probed_write(const struct skep_probed *probed, const char *path, struct skep_diag *reterr)
{
	char folder[600];
	struct work *w = calloc(1, sizeof *w);
	if (w)
		*w = (struct work){.probed = probed, .path = path, .outputs.diag = reterr};
	if (w) {
		w->kind_of = calloc(probed->ranks, sizeof *w->kind_of);
		w->value = calloc(probed->ranks, sizeof *w->value);
	}
	skep_probed_folder(path, "gpus", folder, sizeof folder);
	if (!w || !w->kind_of || !w->value)
		skep_diag_set(reterr, path, 0, 0, NULL, "not enough memory");
	bool made = false, done = false, wanted = !reterr->set && skep_probed_find_kinds(w) && !probed->gpu[0];
	if (wanted)
		made = mkdir(folder, 0777) == 0;
	if (wanted && !made && errno != EEXIST)
		skep_diag_set(reterr, folder, 0, 0, NULL, "cannot be made: %s", strerror(errno));
	if (!reterr->set)
		done = write_all(w);
	if (made && !done)
		rmdir(folder);
	for (uint32_t k = 0; w && k < w->kinds; k++)
		free(w->kind[k].member);
	if (w) {
		free(w->kind_of);
		free(w->value);
	}
	free(w);
	return done;
}
