/* SPDX-License-Identifier: Apache-2.0
 *
 * plot_accuracy.c - loss against wall-clock time: simulated runs as lines, real ones as points on a thin line. What asks for more
 * than that (many runs, seeds, other axes) is plot_curves.c's.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/database.h"
#include "analysis/plot_script.h"

#define POINTS_MAX 3000u /* of one run: more cannot be told apart */
#define SYMBOLS 80u      /* of one real run */
#define KEY_PIXELS 24u   /* of height, per run */

static const char *const TEMPLATE[] = {
#include "accuracy.gp.inc"
};

struct range {
	double time_s, low, high; /* largest time, least and largest loss */
};

static bool read_range(
	struct skep_store *store, const struct skep_plot_run *run, struct range *range, char *reterr, size_t size)
{
	static const char sql[] = "SELECT count(*), max(time_s), min(loss), max(loss) FROM losses"
				  " WHERE run = ?1 AND loss < 9e300";
	sqlite3_stmt *row = skep_store_query(store, sql, run->id, 0, reterr, size);
	bool found = row != NULL && skep_store_row(store, row) && sqlite3_column_int64(row, 0) > 0;
	if (found) {
		range->time_s = fmax(range->time_s, sqlite3_column_double(row, 1));
		range->low = fmin(range->low, sqlite3_column_double(row, 2));
		if (run->target_loss > 0)
			range->low = fmin(range->low, run->target_loss);
		range->high = fmax(range->high, sqlite3_column_double(row, 3));
	} else if (row != NULL) {
		const char *why = strcmp(run->maths, "none") == 0
		                          ? "its scenario says `maths: none`; take `maths: real`"
		                          : "it closed no round, or diverged at once";
		snprintf(reterr, size, "run %lld has no loss to show: %s", (long long)run->id, why);
	}
	sqlite3_finalize(row);
	return found;
}

/* ---- the script ------------------------------------------------------------------------------------------------- */

/* One block of the data, closed by two blank lines. */
static bool write_losses(struct skep_store *store, const struct skep_plot_run *run, double second, FILE *script,
	char *reterr, size_t size)
{
	static const char sql[] =
		"SELECT time_s, loss FROM losses WHERE run = ?1 AND loss < 9e300"
		" AND (round % ?2 = 0 OR round = (SELECT max(round) FROM losses WHERE run = ?1)) ORDER BY round";
	sqlite3_stmt *row = skep_store_query(store, sql, run->id, run->rounds / POINTS_MAX + 1, reterr, size);
	while (row != NULL && skep_store_row(store, row))
		fprintf(script, "%.9g %.9g\n", sqlite3_column_double(row, 0) * second, sqlite3_column_double(row, 1));
	fprintf(script, "\n\n");
	sqlite3_finalize(row);
	return row != NULL;
}

static void write_style(FILE *script, const struct skep_plot_run *run, uint32_t i)
{
	uint32_t points = run->rounds / (run->rounds / POINTS_MAX + 1);
	if (strcmp(run->world, "real") == 0)
		fprintf(script, "set style line %u lc rgb '%s' lw 1 pt 6 ps 1.1 pi %u\n", i + 1, skep_plot_colour(i),
			points / SYMBOLS + 1);
	else
		fprintf(script, "set style line %u lc rgb '%s' lw 2.5 pt -1\n", i + 1, skep_plot_colour(i));
}

static double write_axes(FILE *script, const struct skep_plot_run *run, const struct range *range)
{
	double second = skep_plot_time_axis(script, range->time_s, 1.02);
	if (range->low > 0 && range->high / range->low >= 5)
		fprintf(script, "set logscale y\nset yrange [%.9g:%.9g]\n", range->low / 1.3, range->high * 1.5);
	if (isfinite(run->target_loss))
		fprintf(script,
			"set arrow from graph 0, first %.9g to graph 1, first %.9g nohead dt 2 lc rgb 'gray40'\n"
			"set label 'target' at graph 0.01, first %.9g offset 0, 0.6 textcolor rgb 'gray40'\n",
			run->target_loss, run->target_loss, run->target_loss);
	return second;
}

bool skep_plot_accuracy(struct skep_store *store, const int64_t *run, uint32_t runs, struct skep_picture *picture,
	char *reterr, size_t size)
{
	struct skep_plot_run shown[SKEP_PLOT_RUNS_MAX];
	struct range range = {.low = INFINITY, .high = -INFINITY};
	if (picture->axes || runs > SKEP_PLOT_RUNS_MAX || skep_plot_has_seeds(store, run, runs))
		return skep_plot_curves(store, run, runs, picture, reterr, size);
	if (!skep_plot_chosen_runs(store, run, runs, "EXISTS (SELECT 1 FROM losses WHERE run = id)",
		    "no run in the database has a loss: run a scenario with `maths: real`", shown, &runs, reterr, size))
		return false;
	for (uint32_t i = 0; i < runs; i++)
		if (!read_range(store, &shown[i], &range, reterr, size))
			return false;
	picture->height += KEY_PIXELS * runs;
	if (!skep_plot_heading(store, shown, runs, "loss against wall-clock time", picture->script, reterr, size))
		return false;
	for (uint32_t i = 0; i < runs; i++)
		write_style(picture->script, &shown[i], i);
	double second = write_axes(picture->script, &shown[0], &range);
	fprintf(picture->script, "$loss << END\n");
	for (uint32_t i = 0; i < runs; i++)
		if (!write_losses(store, &shown[i], second, picture->script, reterr, size))
			return false;
	fprintf(picture->script, "END\n");
	skep_script_lines(picture->script, TEMPLATE, sizeof TEMPLATE / sizeof TEMPLATE[0]);
	return true;
}
