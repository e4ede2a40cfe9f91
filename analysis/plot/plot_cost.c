/* SPDX-License-Identifier: Apache-2.0
 *
 * plot_cost.c - what runs have cost: US dollars against time, a line for each run, which begins with nothing. A steeper part is
 * one with more workers or higher prices.
 */
#include <math.h>
#include <string.h>

#include "analysis/plot/plot_script.h"
#include "analysis/store/database.h"

#define POINTS_MAX 3000u /* of one run: more cannot be told apart */
#define KEY_PIXELS 24u   /* of height, per run */

static const char *const TEMPLATE[] = {
#include "cost.gp.inc"
};

static bool read_end(struct skep_store *store, const struct skep_plot_run *run, double *end_s, struct skep_diag *reterr)
{
	static const char sql[] = "SELECT max(closed_s) FROM rounds WHERE run = ?1 AND cost_usd IS NOT NULL";
	sqlite3_stmt *row = skep_store_query(store, sql, run->id, 0, reterr);
	bool found = row != NULL && skep_store_row(store, row) && sqlite3_column_type(row, 0) != SQLITE_NULL;
	if (found)
		*end_s = fmax(*end_s, sqlite3_column_double(row, 0));
	else if (row != NULL)
		skep_fail(reterr, "run %lld has no cost to show: %s", (long long)run->id,
			run->rounds == 0 ? "it closed no round" : "the price of a machine is not known");
	sqlite3_finalize(row);
	return found;
}

static bool write_costs(
	struct skep_store *store, const struct skep_plot_run *run, double unit, FILE *script, struct skep_diag *reterr)
{
	static const char sql[] =
		"SELECT closed_s, cost_usd FROM rounds WHERE run = ?1 AND cost_usd IS NOT NULL"
		" AND (round % ?2 = 0 OR round = (SELECT max(round) FROM rounds WHERE run = ?1)) ORDER BY round";
	sqlite3_stmt *row = skep_store_query(store, sql, run->id, run->rounds / POINTS_MAX + 1, reterr);
	fprintf(script, "0 0\n");
	while (row != NULL && skep_store_row(store, row))
		fprintf(script, "%.9g %.9g\n", sqlite3_column_double(row, 0) * unit, sqlite3_column_double(row, 1));
	fprintf(script, "\n\n");
	sqlite3_finalize(row);
	return row != NULL;
}

/* Simulated runs as lines, real ones dashed. */
static void write_styles(FILE *script, const struct skep_plot_run *run, uint32_t runs)
{
	fprintf(script, "array Colour[%u]\narray Dash[%u]\n", runs, runs);
	for (uint32_t i = 0; i < runs; i++)
		fprintf(script, "Colour[%u] = '%s'\nDash[%u] = %d\n", i + 1, skep_plot_colour(i), i + 1,
			strcmp(run[i].world, "real") == 0 ? 2 : 1);
}

bool skep_plot_cost(struct skep_store *store, const int64_t *run, uint32_t runs, struct skep_picture *picture,
	struct skep_diag *reterr)
{
	struct skep_plot_run shown[SKEP_PLOT_RUNS_MAX];
	double end_s = 0;
	if (!skep_plot_chosen_runs(store, run, runs,
		    "EXISTS (SELECT 1 FROM rounds WHERE run = id AND cost_usd IS NOT NULL)",
		    "no run in the database has a cost: give `price` or `prices` to all machines of the topology",
		    shown, &runs, reterr))
		return false;
	for (uint32_t i = 0; i < runs; i++) {
		skep_picture_drew(picture, shown[i].id);
		if (!read_end(store, &shown[i], &end_s, reterr))
			return false;
	}
	picture->height += KEY_PIXELS * runs;
	if (!skep_plot_heading(store, shown, runs, "cost against time", picture->script, reterr))
		return false;
	write_styles(picture->script, shown, runs);
	double unit = skep_plot_time_axis(picture->script, end_s, 1.02);
	fprintf(picture->script, "$cost << END\n");
	for (uint32_t i = 0; i < runs; i++)
		if (!write_costs(store, &shown[i], unit, picture->script, reterr))
			return false;
	fprintf(picture->script, "END\n");
	skep_script_lines(picture->script, TEMPLATE, sizeof TEMPLATE / sizeof TEMPLATE[0]);
	return true;
}
