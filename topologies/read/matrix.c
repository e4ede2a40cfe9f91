/* SPDX-License-Identifier: Apache-2.0
 *
 * matrix.c - the matrix form of a topology: one place per machine, bandwidth and latency of each ordered pair from CSV.
 *
 * Instead of a matrix there may be one value for all pairs. What is kept true: both matrices have one row per machine; an
 * entry off the diagonal is in range, or it is a hole that the file's fallback fills, or it is an error that points at the
 * cell. The diagonal is ignored.
 */
#include "topologies/read/draft.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/lines.h"
#include "core/random.h"

#define CSV_BYTES_MAX (64u << 20) /* as the reader's */

struct grid { /* one of the matrices */
	const char *key, *unit_key;
	enum skep_dimension dimension;
	double low, high; /* base unit */
	char path[512];
	double *cell; /* [machines * machines], row = source, in base units; NAN is a hole. NULL: all pairs have `same` */
	double same;
};

/* ---- one matrix -------------------------------------------------------------------------------------------------- */

static double read_unit(struct skep_draft *d, const struct skep_yaml_node *map, const struct grid *g)
{
	const char *unit = skep_read_string(&d->r, map, g->unit_key, NULL), *expected;
	char one[64];
	double scale = NAN;
	if (d->r.diag->set)
		return NAN;
	snprintf(one, sizeof one, "1 %s", unit);
	if (!skep_quantity_parse(one, g->dimension, &scale, &expected))
		skep_reader_fail(&d->r, map, g->unit_key, "expected the unit alone, as in %s", expected);
	return scale;
}

static void read_grid(struct skep_draft *d, const struct skep_yaml_node *map, struct grid *g)
{
	const char *name = skep_read_string(&d->r, map, g->key, NULL), *expected;
	if (d->r.diag->set)
		return;
	if (skep_quantity_parse(name, g->dimension, &g->same, &expected)) { /* one value for all pairs */
		g->same = skep_read_quantity(&d->r, map, g->key, g->dimension, g->low, g->high, NAN);
		return;
	}
	double scale = read_unit(d, map, g);
	uint32_t n, machines = d->topology->machines;
	if (d->r.diag->set)
		return;
	if (!skep_read_find(&d->r, map, g->key, d->path, name, g->path, sizeof g->path)) {
		skep_reader_fail(&d->r, map, g->key,
			"no file '%.200s' in the folder of this topology, here, or in a folder above that", name);
		return;
	}
	if (!skep_matrix_read(g->path, true, &n, &g->cell, d->r.diag))
		return;
	if (n != machines) {
		skep_reader_fail(
			&d->r, map, g->key, "the matrix has %u rows, but the file has %u machines", n, machines);
		return;
	}
	for (size_t i = 0; i < (size_t)n * n; i++)
		g->cell[i] *= scale;
}

/* The matrix is read a second time, for the place of the cell: its reader hands out numbers alone. */
static void fail_cell(struct skep_draft *d, const struct grid *g, uint32_t row, uint32_t column, const char *what)
{
	struct skep_lines lines;
	struct skep_cell *cell = calloc(column + 1, sizeof *cell);
	if (!cell) {
		skep_diag_set(d->r.diag, g->path, 0, 0, NULL, "not enough memory for this matrix");
		return;
	}
	bool found = skep_lines_open(&lines, g->path, CSV_BYTES_MAX, d->r.diag);
	for (uint32_t i = 0; found && i <= row; i++)
		found = skep_lines_next_row(&lines);
	if (found && skep_lines_cells(&lines, cell, column + 1) > column)
		skep_lines_fail(&lines, cell[column].at, "%s from %s to %s: %s", g->key, d->topology->place_name[row],
			d->topology->place_name[column], what);
	else
		skep_diag_set(d->r.diag, g->path, 0, 0, NULL, "changed while it was read");
	skep_lines_close(&lines);
	free(cell);
}

/* The entry for an ordered pair of machines, or the fallback's for a hole. */
static double entry(struct skep_draft *d, const struct grid *g, uint32_t row, uint32_t column, double fallback)
{
	if (!g->cell)
		return g->same;
	double value = g->cell[(size_t)row * d->topology->machines + column];
	if (isnan(value)) {
		if (!d->has_fallback && g->dimension != SKEP_EGRESS)
			fail_cell(d, g, row, column,
				"is missing: fill the hole, or give the topology a fallback: {bandwidth, latency}");
		return fallback;
	}
	char what[160];
	if (g->dimension == SKEP_BANDWIDTH && !(value > 0)) {
		fail_cell(d, g, row, column,
			"0 is no link: leave the cell empty, and give the topology a fallback: {bandwidth, latency}");
	} else if (value < g->low || value > g->high) {
		static const struct {
			double factor;
			const char *unit;
		} shown[] = {[SKEP_TIME] = {1, "s"}, [SKEP_BANDWIDTH] = {8, "bit/s"}, [SKEP_EGRESS] = {1e9, "USD/GB"}};
		double factor = shown[g->dimension].factor;
		snprintf(what, sizeof what, "expected %g to %g %s; leave the cell empty if it is not known",
			factor * g->low, factor * g->high, shown[g->dimension].unit);
		fail_cell(d, g, row, column, what);
	}
	return value;
}

/* ---- the form ---------------------------------------------------------------------------------------------------- */

static void name_places(struct skep_draft *d, const struct skep_yaml_node *matrix)
{
	struct skep_topology *t = d->topology;
	const struct skep_yaml_node *list = skep_read_list(&d->r, matrix, "names", false);
	if (d->r.diag->set)
		return;
	if (list && skep_yaml_length(list) != t->machines) {
		skep_reader_fail(&d->r, matrix, "names", "%u names, but the file has %u machines",
			skep_yaml_length(list), t->machines);
		return;
	}
	for (uint32_t i = 0; i < t->machines && !d->r.diag->set; i++) {
		char number[16];
		snprintf(number, sizeof number, "%u", i);
		const struct skep_yaml_node *item = list ? skep_yaml_item(list, i) : NULL;
		const char *name = item ? skep_read_string(&d->r, item, NULL, NULL) : number;
		if (!d->r.diag->set)
			skep_draft_name_place(d, item, NULL, i, name);
	}
}

/* Each cell of a matrix may be off by itself, one value for all pairs is off for all of them, and a hole has the fallback's. */
static struct skep_unsure unsure_of(const struct skep_draft *d, const struct grid *g, uint32_t row, uint32_t column,
	struct skep_unsure unsure, const struct skep_unsure *fallback)
{
	if (!g->cell)
		return unsure;
	if (isnan(g->cell[(size_t)row * d->topology->machines + column]))
		return *fallback;
	unsure.key = skep_mix(skep_mix(0x63656c6cu ^ row) ^ column);
	return unsure;
}

static void fill(struct skep_draft *d, const struct grid *bandwidth, const struct grid *latency,
	const struct grid *egress, const struct skep_unsure_pair *unsure)
{
	struct skep_topology *t = d->topology;
	for (uint32_t i = 0; i < t->machines; i++)
		for (uint32_t j = 0; j < t->machines && !d->r.diag->set; j++) {
			struct skep_draft_link link = {.pair = skep_pair_unlimited(), .egress_usd_per_B = NAN};
			struct skep_pair *pair = &link.pair;
			if (i == j) {
				skep_draft_set_pair(d, i, j, &link);
				continue;
			}
			pair->capacity_Bps = entry(d, bandwidth, i, j, d->fallback.pair.capacity_Bps);
			if (bandwidth->cell && isnan(bandwidth->cell[(size_t)i * t->machines + j])) {
				pair->shared_Bps = d->fallback.pair.shared_Bps;
				link.link_profile = d->fallback.link_profile;
				link.egress_usd_per_B = d->fallback.egress_usd_per_B;
			}
			pair->latency_s = entry(d, latency, i, j, d->fallback.pair.latency_s);
			link.unsure.bandwidth =
				unsure_of(d, bandwidth, i, j, unsure->bandwidth, &d->fallback.unsure.bandwidth);
			link.unsure.latency = unsure_of(d, latency, i, j, unsure->latency, &d->fallback.unsure.latency);
			if (egress->key)
				link.egress_usd_per_B = entry(d, egress, i, j, link.egress_usd_per_B);
			skep_draft_set_pair(d, i, j, &link);
		}
}

void skep_draft_read_matrix(struct skep_draft *d, const struct skep_yaml_node *root)
{
	struct grid bandwidth = {.key = "bandwidth",
		.unit_key = "bandwidth_unit",
		.dimension = SKEP_BANDWIDTH,
		.low = SKEP_LINK_BPS_MIN,
		.high = SKEP_LINK_BPS_MAX};
	struct grid latency = {.key = "latency",
		.unit_key = "latency_unit",
		.dimension = SKEP_TIME,
		.low = 0,
		.high = SKEP_LATENCY_S_MAX};
	struct grid egress = {
		.unit_key = "egress_unit", .dimension = SKEP_EGRESS, .low = 0, .high = SKEP_EGRESS_USD_PER_B_MAX};
	skep_draft_add_machines(d, root, true, SKEP_OWN_PLACE);
	uint32_t machines = d->topology->machines;
	const struct skep_yaml_node *matrix = skep_read_map(&d->r, root, "matrix", true);
	if (!d->r.diag->set && machines == 0)
		skep_reader_fail(&d->r, root, "machines", "expected at least one machine");
	read_grid(d, matrix, &bandwidth);
	read_grid(d, matrix, &latency);
	if (skep_read_has(&d->r, matrix, "egress")) {
		egress.key = "egress";
		read_grid(d, matrix, &egress);
	}
	snprintf(d->topology->matrix_path[0], sizeof d->topology->matrix_path[0], "%s", bandwidth.path);
	snprintf(d->topology->matrix_path[1], sizeof d->topology->matrix_path[1], "%s", latency.path);
	snprintf(d->topology->matrix_path[2], sizeof d->topology->matrix_path[2], "%s", egress.path);
	int64_t directory = skep_read_integer(&d->r, root, "directory", 0, (int64_t)machines - 1, INT64_MIN);
	if (!d->r.diag->set)
		skep_draft_add_places(d, machines);
	name_places(d, matrix);
	struct skep_unsure_pair unsure = skep_draft_read_unsure(d, matrix);
	skep_reader_close_map(&d->r, matrix);
	if (!d->r.diag->set) {
		d->directory_place = (uint32_t)directory;
		fill(d, &bandwidth, &latency, &egress, &unsure);
	}
	free(bandwidth.cell);
	free(latency.cell);
	free(egress.cell);
}
