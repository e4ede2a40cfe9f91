/* SPDX-License-Identifier: Apache-2.0
 *
 * plot_timeline.c - what each worker's device did in the first rounds of a run: time to the right, workers downwards.
 *
 * Decides how many rounds: as many as stay readable, at most ROUNDS_MAX, at least one; the picture ends with their last
 * operation, which is often a step after the round has closed.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/database.h"
#include "analysis/plot_script.h"

#define ROUNDS_MAX 3u
#define OPS_PER_WORKER 120.0 /* in the compute lane, on average: more cannot be told apart */
#define PIXEL 0.0008         /* of the width: the least length of a bar */
#define NUMBERED_MAX 40u     /* workers with their number on the axis */
#define ROW_PIXELS 34.0
#define MARGIN_PIXELS 190.0
#define LABEL_PIXELS 24.0 /* of height that the name of a stage needs */

static const char *const TEMPLATE[] = {
#include "timeline.gp.inc"
};

enum group { GROUP_FORWARD, GROUP_BACKWARD, GROUP_STEP, GROUP_REDUCE, GROUP_STATE, GROUPS };

static const struct {
	const char *title, *colour;
} GROUP[GROUPS] = {
	[GROUP_FORWARD] = {"forward", "#0072B2"},
	[GROUP_BACKWARD] = {"backward", "#E69F00"},
	[GROUP_STEP] = {"step", "#000000"},
	[GROUP_REDUCE] = {"reduction (narrow bars)", "#009E73"},
	[GROUP_STATE] = {"state", "#CC79A7"},
};

struct window {
	uint32_t rounds; /* shown, from 0 */
	double end_s;
	uint64_t ops;
};

static enum group group_of(const char *kind, const char *lane)
{
	if (strcmp(kind, "forward") == 0)
		return GROUP_FORWARD;
	if (strcmp(kind, "backward") == 0)
		return GROUP_BACKWARD;
	if (strcmp(kind, "step") == 0)
		return GROUP_STEP;
	return strcmp(lane, "reduce") == 0 ? GROUP_REDUCE : GROUP_STATE;
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

static bool read_window(
	struct skep_store *store, const struct skep_plot_run *run, struct window *ret, char *reterr, size_t size)
{
	static const char sql[] =
		"SELECT round, closed_s, (SELECT count(*) FROM ops WHERE run = ?1 AND lane = 'compute'"
		"   AND begin_s < closed_s), (SELECT max(end_s) FROM ops WHERE run = ?1 AND ops.round <= rounds.round)"
		" FROM rounds WHERE run = ?1 ORDER BY round LIMIT ?2";
	*ret = (struct window){0};
	sqlite3_stmt *row = skep_store_query(store, sql, run->id, ROUNDS_MAX, reterr, size);
	while (row != NULL && sqlite3_step(row) == SQLITE_ROW) {
		uint64_t ops = (uint64_t)sqlite3_column_int64(row, 2);
		if (ret->rounds > 0 && (double)ops > OPS_PER_WORKER * run->workers)
			break;
		double end_s = fmax(sqlite3_column_double(row, 1), sqlite3_column_double(row, 3));
		*ret = (struct window){.rounds = ret->rounds + 1, .end_s = end_s, .ops = ops};
	}
	sqlite3_finalize(row);
	if (row != NULL && ret->ops == 0)
		snprintf(reterr, size, "run %lld has no operations to show: %s", (long long)run->id,
			run->rounds == 0 ? "it closed no round" : "none were recorded");
	return row != NULL && ret->ops > 0;
}

/* ---- the script ------------------------------------------------------------------------------------------------- */

static uint32_t height_of(uint32_t workers)
{
	return (uint32_t)fmin(fmax(MARGIN_PIXELS + ROW_PIXELS * workers, 500), 1600);
}

/* position[worker]: row of the picture, by stage and number; with the numbers and the stages on the axis. */
static bool write_workers(struct skep_store *store, const struct skep_plot_run *run, FILE *script, uint32_t *position,
	char *reterr, size_t size)
{
	static const char sql[] =
		"SELECT worker, coalesce(first_stage, -1) FROM workers WHERE run = ?1 AND role = 'worker'"
		" ORDER BY coalesce(first_stage, 4294967295), worker";
	sqlite3_stmt *row = skep_store_query(store, sql, run->id, 0, reterr, size);
	int64_t last = INT64_MAX;
	uint32_t first = 0, i = 0;
	double row_pixels = (height_of(run->workers) - MARGIN_PIXELS) / run->workers, labelled = -INFINITY;
	bool numbered = run->workers <= NUMBERED_MAX;
	fprintf(script, numbered
				? "set label 'worker' at graph -0.008, graph 1 offset 0, 0.7 right\nset ytics scale 0 ("
				: "unset ytics\n");
	for (; row != NULL && i < run->workers && sqlite3_step(row) == SQLITE_ROW; i++) {
		uint32_t worker = (uint32_t)sqlite3_column_int64(row, 0);
		if (worker < run->workers)
			position[worker] = i;
		if (numbered)
			fprintf(script, "%s'%u' %u", i ? ", " : "", worker, i);
	}
	fprintf(script, numbered ? ")\n" : "");
	if (row != NULL)
		sqlite3_reset(row);
	for (i = 0; row != NULL && i <= run->workers; i++) {
		int64_t stage =
			i < run->workers && sqlite3_step(row) == SQLITE_ROW ? sqlite3_column_int64(row, 1) : INT64_MIN;
		if (stage == last)
			continue;
		double middle = (first + i) / 2.0 - 0.5;
		if (i > 0 && (middle - labelled) * row_pixels >= LABEL_PIXELS) {
			labelled = middle;
			fprintf(script, last < 0 ? "set label 'spare" : "set label 'stage %lld", (long long)last);
			fprintf(script, "' at screen 0.012, first %.2f left\n", middle);
		}
		if (i > 0 && i < run->workers)
			fprintf(script,
				"set arrow from graph 0, first %.1f to graph 1, first %.1f nohead lw 1.5 lc rgb "
				"'gray50'\n",
				i - 0.5, i - 0.5);
		first = i;
		last = stage;
	}
	sqlite3_finalize(row);
	return row != NULL;
}

static bool write_rounds(struct skep_store *store, const struct skep_plot_run *run, const struct window *window,
	double unit, FILE *script, char *reterr, size_t size)
{
	static const char sql[] = "SELECT round, opened_s, closed_s FROM rounds WHERE run = ?1 ORDER BY round LIMIT ?2";
	sqlite3_stmt *row = skep_store_query(store, sql, run->id, window->rounds, reterr, size);
	while (row != NULL && sqlite3_step(row) == SQLITE_ROW) {
		double opened = sqlite3_column_double(row, 1) * unit, closed = sqlite3_column_double(row, 2) * unit;
		fprintf(script,
			"set arrow from first %.9g, graph 0 to first %.9g, graph 1 nohead front dt 2 lw 1.5"
			" lc rgb 'gray30'\n",
			closed, closed);
		fprintf(script,
			"set label 'round %lld' at first %.9g, graph 1 offset 0, 0.7 center textcolor rgb 'gray30'\n",
			(long long)sqlite3_column_int64(row, 0), (opened + closed) / 2);
	}
	sqlite3_finalize(row);
	return row != NULL;
}

/* begin, end, upper and lower edge of the bar, group: the compute lane is the broad bar, the reduce lane the narrow one
 * below it. */
static bool write_ops(struct skep_store *store, const struct skep_plot_run *run, const struct window *window,
	double unit, const uint32_t *position, bool present[GROUPS], FILE *script, char *reterr, size_t size)
{
	static const char sql[] = "SELECT worker, begin_s, end_s, kind, lane FROM ops WHERE run = ?1";
	sqlite3_stmt *row = skep_store_query(store, sql, run->id, 0, reterr, size);
	fprintf(script, "$ops << END\n");
	while (row != NULL && sqlite3_step(row) == SQLITE_ROW) {
		uint32_t worker = (uint32_t)sqlite3_column_int64(row, 0);
		const char *lane = skep_column_text(row, 4);
		enum group group = group_of(skep_column_text(row, 3), lane);
		bool narrow = strcmp(lane, "reduce") == 0;
		double begin_s = sqlite3_column_double(row, 1);
		if (worker >= run->workers || begin_s >= window->end_s)
			continue;
		present[group] = true;
		double end_s = fmax(sqlite3_column_double(row, 2), begin_s + PIXEL * window->end_s);
		fprintf(script, "%.9g %.9g %.2f %.2f %d\n", begin_s * unit, fmin(end_s, window->end_s) * unit,
			position[worker] + (narrow ? 0.20 : -0.42), position[worker] + (narrow ? 0.42 : 0.16), group);
	}
	fprintf(script, "END\n");
	sqlite3_finalize(row);
	return row != NULL;
}

static void write_groups(FILE *script, const bool present[GROUPS])
{
	uint32_t groups = 0;
	for (int i = 0; i < GROUPS; i++)
		groups += present[i];
	fprintf(script, "groups = %u\narray Group[%u]\narray Title[%u]\n", groups, groups, groups);
	groups = 0;
	for (int i = 0; i < GROUPS; i++)
		if (present[i]) {
			groups++;
			fprintf(script, "Group[%u] = %d\nTitle[%u] = '%s'\nset style line %u lc rgb '%s'\n", groups, i,
				groups, GROUP[i].title, groups, GROUP[i].colour);
		}
}

static void write_heading(
	FILE *script, const struct skep_plot_run *run, const struct window *window, double unit, const char *unit_name)
{
	char title[256], first[32] = "the first round";
	if (window->rounds > 1)
		snprintf(first, sizeof first, "the first %u rounds", window->rounds);
	snprintf(title, sizeof title, "run %lld: %s, %s world: %s of %u", (long long)run->id, run->scenario,
		strcmp(run->world, "sim") == 0 ? "simulated" : run->world, first, run->rounds);
	fprintf(script, "set title ");
	skep_script_string(script, title);
	fprintf(script, "\nset xlabel 'time since the start of the run (%s)'\n", unit_name);
	fprintf(script, "set xrange [0:%.9g]\nworkers = %u\n", window->end_s * unit, run->workers);
}

static bool write_timeline(struct skep_store *store, const struct skep_plot_run *run, uint32_t *position, FILE *script,
	char *reterr, size_t size)
{
	struct window window;
	bool present[GROUPS] = {false};
	if (!read_window(store, run, &window, reterr, size))
		return false;
	double unit = window.end_s < 1 ? 1e3 : window.end_s >= 600 ? 1 / 60.0 : 1;
	write_heading(script, run, &window, unit, window.end_s < 1 ? "ms" : window.end_s >= 600 ? "min" : "s");
	if (!write_workers(store, run, script, position, reterr, size) ||
		!write_rounds(store, run, &window, unit, script, reterr, size) ||
		!write_ops(store, run, &window, unit, position, present, script, reterr, size))
		return false;
	write_groups(script, present);
	skep_script_lines(script, TEMPLATE, sizeof TEMPLATE / sizeof TEMPLATE[0]);
	return true;
}

bool skep_plot_timeline(struct skep_store *store, const int64_t *run, uint32_t runs, struct skep_picture *picture,
	char *reterr, size_t size)
{
	struct skep_plot_run shown;
	if (!skep_plot_single_run(store, run, runs, &shown, reterr, size))
		return false;
	uint32_t *position = calloc(shown.workers ? shown.workers : 1, sizeof *position);
	if (position == NULL) {
		snprintf(reterr, size, "no memory for %u workers", shown.workers);
		return false;
	}
	picture->width = 1400;
	picture->height = height_of(shown.workers);
	bool ok = write_timeline(store, &shown, position, picture->script, reterr, size);
	free(position);
	return ok;
}
