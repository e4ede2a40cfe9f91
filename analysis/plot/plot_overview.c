/* SPDX-License-Identifier: Apache-2.0
 *
 * plot_overview.c - the timeline of a whole run, however long: each worker's row is cut into bins of time.
 *
 * Where rows are high enough a bin is a small stacked bar: from below the share of the bin that each kind of operation had,
 * then that in which the worker only waited for a reduction, from above the share in which it downloaded or was away. The
 * narrow bar under it is the reduce lane, with the reductions that were under way. A step is drawn in the lane that did it,
 * with delayed updates the reduce lane. Where rows are lower a bin has one colour: the state that took most of it, the
 * paler the less of the bin was busy. Under it, when workers came and went, how many served each stage.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/plot/plot_timeline.h"
#include "analysis/store/database.h"

#define BINS_MAX 1100.0 /* more than there are pixels */
#define CELLS_MAX 700000.0
#define STACK_MAX 40u /* workers whose bins are stacked bars */
/* The rows of pixels of such a bar: a gap, the compute lane, the reduce lane, a gap. */
#define STACK_GAP 1u
#define STACK_COMPUTE 15u
#define STACK_REDUCE 6u
#define STACK (2 * STACK_GAP + STACK_COMPUTE + STACK_REDUCE)
#define UNDER_WAY SKEP_TIMELINE_COLOURS /* share: reductions, passes beside them or not; WAIT: without passes */
#define SHARES (SKEP_TIMELINE_COLOURS + 1)
#define TICS_MAX 14u
#define TIC_WIDTH 0.03 /* of the width: the name of a round */
#define LABELS_MAX 250u
#define TOP_PIXELS 92.0
#define BOTTOM_PIXELS 128.0
#define PANEL_PIXELS 170.0
#define PANEL_GAP 24.0
#define NAMED_PIXELS 15.0 /* of height that the name of a stage needs */
#define PALE 0.3          /* least part of a colour in a bin that was hardly busy */
#define BUSY_LEAST 0.01   /* of a bin: below that it counts as idle */

static const char *const TEMPLATE[] = {
#include "overview.gp.inc"
};

struct grid {
	uint32_t workers, bins, stages;
	bool delayed;        /* updates: the reduce lane does the steps */
	double bin_s, end_s; /* the last bin ends with the run */
	double *share;       /* [workers][bins][SHARES]: of the bin; IDLE is not used */
	double *crowd;       /* [bins][stages + 1]: workers that serve each stage, then those that download */
	uint32_t *colour;    /* [bins][STACK]: room for a row */
	uint32_t *worker;    /* [workers]: by row of the picture */
};

/* ---- reading ---------------------------------------------------------------------------------------------------- */

static double *share_of(const struct grid *grid, uint32_t worker, uint32_t bin)
{
	return grid->share + ((size_t)worker * grid->bins + bin) * SHARES;
}

static void finish(struct grid *grid)
{
	free(grid->share);
	free(grid->crowd);
	free(grid->colour);
	free(grid->worker);
}

static bool allocate(struct grid *grid, const struct skep_timeline *timeline, double stored_s)
{
	uint32_t factor = 1, workers = timeline->run.workers, rows = workers <= STACK_MAX ? STACK * workers : workers;
	double wanted = fmin(BINS_MAX, fmax(64, CELLS_MAX / rows));
	while (timeline->end_s / (stored_s * factor) > wanted)
		factor++;
	*grid = (struct grid){.workers = workers,
		.stages = timeline->run.stages,
		.bin_s = stored_s * factor,
		.end_s = timeline->end_s};
	grid->bins = (uint32_t)fmax(1, ceil(timeline->end_s / grid->bin_s - 1e-9));
	grid->share = calloc((size_t)workers * grid->bins * SHARES, sizeof *grid->share);
	grid->crowd = calloc((size_t)grid->bins * (grid->stages + 1), sizeof *grid->crowd);
	grid->colour = calloc((size_t)grid->bins * STACK, sizeof *grid->colour);
	grid->worker = calloc(workers, sizeof *grid->worker);
	for (uint32_t i = 0; grid->worker != NULL && i < workers; i++)
		grid->worker[timeline->position[i]] = i;
	return grid->share != NULL && grid->crowd != NULL && grid->colour != NULL && grid->worker != NULL;
}

static double length_s(const struct grid *grid, uint32_t bin)
{
	return fmin((bin + 1) * grid->bin_s, grid->end_s) - bin * grid->bin_s;
}

static bool read_activity(struct skep_timeline *timeline, struct grid *grid, double stored_s)
{
	static const char sql[] = "SELECT worker, bin, forward_s, backward_s, step_s, reduce_s, state_s FROM activity"
				  " WHERE run = ?1";
	sqlite3_stmt *row = skep_store_query(timeline->store, sql, timeline->run.id, 0, timeline->reterr);
	while (row != NULL && skep_store_row(timeline->store, row)) {
		uint32_t worker = (uint32_t)sqlite3_column_int64(row, 0);
		double at_s = ((double)sqlite3_column_int64(row, 1) + 0.5) * stored_s;
		uint32_t bin = (uint32_t)fmin(at_s / grid->bin_s, grid->bins - 1);
		if (worker >= grid->workers)
			continue;
		for (int i = 0; i < 5; i++)
			share_of(grid, worker, bin)[SKEP_TIMELINE_FORWARD + i] +=
				sqlite3_column_double(row, 2 + i) / length_s(grid, bin);
	}
	sqlite3_finalize(row);
	return row != NULL;
}

/* The rows of `activity` have no lanes. All steps of a run are done in the same one; of a run without rows of operations delayed
 * updates tell that it is not that of passes. */
static bool read_lane(struct skep_timeline *timeline, struct grid *grid)
{
	static const char sql[] =
		"SELECT 1 WHERE CASE WHEN EXISTS (SELECT 1 FROM ops WHERE run = ?1 AND kind = 'step')"
		" THEN EXISTS (SELECT 1 FROM ops WHERE run = ?1 AND kind = 'step' AND lane = 'reduce')"
		" ELSE EXISTS (SELECT 1 FROM rounds WHERE run = ?1 AND staleness > 0 AND local_staleness IS NULL) END";
	sqlite3_stmt *row = skep_store_query(timeline->store, sql, timeline->run.id, 0, timeline->reterr);
	grid->delayed = row != NULL && skep_store_row(timeline->store, row);
	sqlite3_finalize(row);
	return row != NULL;
}

static void add_span(struct grid *grid, const struct skep_presence_span *span)
{
	bool away = span->state == SKEP_PRESENCE_AWAY, serves = span->state == SKEP_PRESENCE_SERVING;
	int64_t column = serves ? span->stage : (int64_t)grid->stages;
	for (uint32_t bin = (uint32_t)(span->begin_s / grid->bin_s); bin < grid->bins; bin++) {
		double begin_s = fmax(span->begin_s, bin * grid->bin_s);
		double part = (fmin(span->end_s, (bin + 1) * grid->bin_s) - begin_s) / length_s(grid, bin);
		if (part <= 0)
			break;
		if (!serves && span->state != SKEP_PRESENCE_IDLE)
			share_of(grid, span->worker, bin)[away ? SKEP_TIMELINE_AWAY : SKEP_TIMELINE_STATE] += part;
		if (!away && span->state != SKEP_PRESENCE_IDLE && column >= 0 && column <= grid->stages)
			grid->crowd[(size_t)bin * (grid->stages + 1) + (size_t)column] += part;
	}
}

static void add_share(struct grid *grid, uint32_t worker, int kind, double begin_s, double end_s)
{
	for (uint32_t bin = (uint32_t)(begin_s / grid->bin_s); bin < grid->bins; bin++) {
		double part = fmin(end_s, (bin + 1) * grid->bin_s) - fmax(begin_s, bin * grid->bin_s);
		if (part <= 0)
			break;
		share_of(grid, worker, bin)[kind] += part / length_s(grid, bin);
	}
}

/* ---- the picture of the workers --------------------------------------------------------------------------------- */

/* Of the idle colour and another one. */
static uint32_t blend(uint32_t rgb, double part)
{
	uint32_t idle = skep_timeline_key[SKEP_TIMELINE_IDLE].rgb, mixed = 0;
	for (int shift = 16; shift >= 0; shift -= 8) {
		double a = idle >> shift & 255, b = rgb >> shift & 255;
		mixed |= (uint32_t)lround(a + (b - a) * part) << shift;
	}
	return mixed;
}

static void write_cell(struct skep_timeline *timeline, const struct grid *grid, uint32_t bin, double row, uint32_t rgb)
{
	fprintf(timeline->script, "%.7g %.7g %u %u %u\n", (bin + 0.5) * grid->bin_s * timeline->unit, row,
		rgb >> 16 & 255, rgb >> 8 & 255, rgb & 255);
}

/* The state that took most of the bin. */
static uint32_t main_colour(struct skep_timeline *timeline, const double *share)
{
	int most = SKEP_TIMELINE_IDLE;
	double busy = 0;
	for (int i = 0; i < SKEP_TIMELINE_COLOURS; i++) {
		busy += i == SKEP_TIMELINE_IDLE ? 0 : share[i];
		most = share[i] > share[most] ? i : most;
	}
	bool idle = busy < BUSY_LEAST || most == SKEP_TIMELINE_IDLE;
	most = idle ? SKEP_TIMELINE_IDLE : most;
	timeline->present[most] = true;
	return idle ? skep_timeline_key[most].rgb
	            : blend(skep_timeline_key[most].rgb, PALE + (1 - PALE) * fmin(busy, 1));
}

/* One lane of a stacked bar: `height` colours from above. The kinds[] stand on each other from below; what is away and what
 * downloads hangs from the top. */
static void stack(struct skep_timeline *timeline, const double *share, const enum skep_timeline_colour *kind,
	uint32_t kinds, uint32_t height, uint32_t *ret)
{
	double sum = 0;
	uint32_t top = 0, bottom = 0;
	for (uint32_t i = 0; i < height; i++)
		ret[i] = skep_timeline_key[SKEP_TIMELINE_IDLE].rgb;
	timeline->present[SKEP_TIMELINE_IDLE] = true;
	for (uint32_t i = 0; i < kinds; i++) {
		sum += share[kind[i]];
		for (; bottom < height && bottom < lround(sum * height); bottom++) {
			ret[height - 1 - bottom] = skep_timeline_key[kind[i]].rgb;
			timeline->present[kind[i]] = true;
		}
	}
	sum = 0;
	for (int i = SKEP_TIMELINE_AWAY; i >= SKEP_TIMELINE_STATE; i--) {
		bool hangs = i == SKEP_TIMELINE_AWAY || i == SKEP_TIMELINE_STATE;
		sum += hangs ? share[i] : 0;
		for (; hangs && top + bottom < height && top < lround(sum * height); top++) {
			ret[top] = skep_timeline_key[i].rgb;
			timeline->present[i] = true;
		}
	}
}

/* The colours of all bins of a worker, one row of pixels after the other. */
static void write_stacks(struct skep_timeline *timeline, const struct grid *grid, uint32_t row, uint32_t *colour)
{
	static const enum skep_timeline_colour kind[] = {SKEP_TIMELINE_BACKWARD, SKEP_TIMELINE_FORWARD,
		SKEP_TIMELINE_STEP, SKEP_TIMELINE_WAIT},
					       delayed[] = {SKEP_TIMELINE_BACKWARD, SKEP_TIMELINE_FORWARD,
						       SKEP_TIMELINE_WAIT},
					       reduce[] = {
						       SKEP_TIMELINE_REDUCE, SKEP_TIMELINE_WAIT, SKEP_TIMELINE_STEP};
	for (uint32_t bin = 0; bin < grid->bins; bin++) {
		const double *share = share_of(grid, grid->worker[row], bin);
		uint32_t *bar = colour + (size_t)bin * STACK;
		double narrow[SHARES];
		memcpy(narrow, share, sizeof narrow);
		narrow[SKEP_TIMELINE_WAIT] = fmax(0, share[UNDER_WAY] - share[SKEP_TIMELINE_REDUCE]);
		stack(timeline, share, grid->delayed ? delayed : kind, grid->delayed ? 3 : 4, STACK_COMPUTE,
			bar + STACK_GAP);
		stack(timeline, narrow, reduce, grid->delayed ? 3 : 2, STACK_REDUCE, bar + STACK_GAP + STACK_COMPUTE);
		for (uint32_t i = 0; i < STACK_GAP; i++)
			bar[i] = bar[STACK - 1 - i] = 0xffffff;
	}
	for (uint32_t i = 0; i < STACK; i++)
		for (uint32_t bin = 0; bin < grid->bins; bin++)
			write_cell(timeline, grid, bin, row - 0.5 + (i + 0.5) / STACK, colour[(size_t)bin * STACK + i]);
}

/* Long runs keep their first operations alone: how far those reach is said. */
static void add_parts(struct skep_timeline *timeline, struct grid *grid)
{
	const struct skep_parts *parts = &timeline->parts;
	for (size_t i = 0; i < parts->parts; i++) {
		const struct skep_part *part = &parts->part[i];
		add_share(grid, part->worker, UNDER_WAY, part->begin_s, part->end_s);
		add_share(grid, part->worker, SKEP_TIMELINE_WAIT, part->passed_s, part->end_s);
	}
	if (parts->parts > 0 && parts->known_s < timeline->end_s)
		fprintf(timeline->script,
			"set label 'reductions under way: known until %.4g %s' at screen 0.012, screen 0.065 font ',11'\n",
			parts->known_s * timeline->unit, timeline->unit_name);
}

/* An image: gnuplot wants it row by row. */
static void write_cells(struct skep_timeline *timeline, const struct grid *grid)
{
	fprintf(timeline->script, "$cells << END\n");
	for (uint32_t row = 0; row < grid->workers; row++) {
		if (grid->workers <= STACK_MAX) {
			write_stacks(timeline, grid, row, grid->colour);
			continue;
		}
		for (uint32_t bin = 0; bin < grid->bins; bin++)
			write_cell(timeline, grid, bin, row,
				main_colour(timeline, share_of(grid, grid->worker[row], bin)));
	}
	fprintf(timeline->script, "END\n");
}

/* Labels at the moments in which a worker migrates; with more than STACK_MAX workers they would be unreadable, and
 * are left out. */
static void write_moves(struct skep_timeline *timeline)
{
	uint32_t labels = 0;
	for (size_t i = 0; i < timeline->presence.spans && timeline->run.workers <= STACK_MAX; i++) {
		const struct skep_presence_span *span = &timeline->presence.span[i];
		if (span->changed && labels++ < LABELS_MAX)
			fprintf(timeline->script,
				"set label '→ %lld' at first %.7g, first %u offset 0.4, 0.35 left front boxed font "
				"',10'\n",
				(long long)span->stage, span->begin_s * timeline->unit,
				timeline->position[span->worker]);
	}
}

/* ---- the picture of the stages ---------------------------------------------------------------------------------- */

static void write_crowd(struct skep_timeline *timeline, const struct grid *grid)
{
	fprintf(timeline->script, "$crowd << END\n");
	for (uint32_t bin = 0; bin < grid->bins; bin++) {
		double sum = 0;
		fprintf(timeline->script, "%.7g 0", (bin + 0.5) * grid->bin_s * timeline->unit);
		for (uint32_t i = 0; i <= grid->stages; i++)
			fprintf(timeline->script, " %.5g", sum += grid->crowd[(size_t)bin * (grid->stages + 1) + i]);
		fprintf(timeline->script, "\n");
	}
	fprintf(timeline->script, "END\narray Crowd[%u]\narray NameAt[%u]\n", grid->stages + 1, grid->stages);
	double sum = 0;
	for (uint32_t i = 0; i < grid->stages; i++) {
		double count = grid->crowd[i];
		bool named = count / grid->workers * PANEL_PIXELS >= NAMED_PIXELS;
		fprintf(timeline->script, "Crowd[%u] = '%s'\nNameAt[%u] = %.5g\n", i + 1, i % 2 ? "#cbb98f" : "#ece3cb",
			i + 1, named ? sum + count / 2 : -1);
		sum += count;
	}
	fprintf(timeline->script, "Crowd[%u] = '#%06x'\n", grid->stages + 1,
		skep_timeline_key[SKEP_TIMELINE_STATE].rgb);
}

/* ---- together --------------------------------------------------------------------------------------------------- */

/* 1, 2, 5, 10, 20 ...: so many rounds between two names on the axis. */
static uint32_t rounds_between(uint32_t rounds)
{
	static const uint32_t digit[] = {1, 2, 5};
	uint32_t ten = 1;
	for (uint32_t i = 0;; i++) {
		if (i > 0 && i % 3 == 0)
			ten *= 10;
		if (rounds / (digit[i % 3] * ten) <= TICS_MAX)
			return digit[i % 3] * ten;
	}
}

static bool write_rounds(struct skep_timeline *timeline)
{
	static const char sql[] = "SELECT round, opened_s FROM rounds WHERE run = ?1 AND round % ?2 = 0 ORDER BY round";
	uint32_t every = rounds_between(timeline->run.rounds), tics = 0;
	sqlite3_stmt *row = skep_store_query(timeline->store, sql, timeline->run.id, every, timeline->reterr);
	double last = -INFINITY, width = timeline->end_s * TIC_WIDTH;
	fprintf(timeline->script, "set x2tics nomirror out (");
	while (row != NULL && skep_store_row(timeline->store, row)) {
		double opened_s = sqlite3_column_double(row, 1);
		if (opened_s - last < width)
			continue;
		fprintf(timeline->script, "%s'%lld' %.9g", tics++ ? ", " : "", (long long)sqlite3_column_int64(row, 0),
			opened_s * timeline->unit);
		last = opened_s;
	}
	fprintf(timeline->script, ")\nset label 'round' at graph -0.008, graph 1 offset 0, 1.75 right\n");
	sqlite3_finalize(row);
	return row != NULL;
}

static void write_layout(struct skep_timeline *timeline, const struct grid *grid)
{
	double height = timeline->picture->height, panel = timeline->presence.churned ? PANEL_PIXELS : 0;
	double gap = panel > 0 ? PANEL_GAP : 0;
	fprintf(timeline->script,
		"main_top = %.5f\nmain_bottom = %.5f\npanel_top = %.5f\npanel_bottom = %.5f\npanel = %d\nstages = %u\n",
		1 - TOP_PIXELS / height, (BOTTOM_PIXELS + panel + gap) / height, (BOTTOM_PIXELS + panel) / height,
		BOTTOM_PIXELS / height, panel > 0, grid->stages);
}

static void write_title(struct skep_timeline *timeline)
{
	char part[96];
	double time = (timeline->end_s - timeline->begin_s) * timeline->unit;
	snprintf(part, sizeof part, "the whole run, %u round%s in %.4g %s", timeline->run.rounds,
		timeline->run.rounds == 1 ? "" : "s", time, timeline->unit_name);
	skep_timeline_title(timeline, part);
}

static bool read_length(struct skep_timeline *timeline, double *ret_s)
{
	static const char sql[] = "SELECT activity_bin_s FROM runs WHERE id = ?1 AND activity_bin_s > 0";
	sqlite3_stmt *row = skep_store_query(timeline->store, sql, timeline->run.id, 0, timeline->reterr);
	bool there = row != NULL && skep_store_row(timeline->store, row);
	*ret_s = there ? sqlite3_column_double(row, 0) : 0;
	if (row != NULL && !there)
		skep_fail(timeline->reterr,
			"run %lld was not recorded to its end, so nothing shows the whole of it: try --rounds 0",
			(long long)timeline->run.id);
	sqlite3_finalize(row);
	return there;
}

static bool write_overview(struct skep_timeline *timeline, struct grid *grid, double stored_s)
{
	if (!allocate(grid, timeline, stored_s)) {
		skep_fail(timeline->reterr, "no memory for the plot");
		return false;
	}
	if (!read_activity(timeline, grid, stored_s) || !read_lane(timeline, grid) || !write_rounds(timeline))
		return false;
	for (size_t i = 0; i < timeline->presence.spans; i++)
		add_span(grid, &timeline->presence.span[i]);
	add_parts(timeline, grid);
	write_title(timeline);
	write_layout(timeline, grid);
	write_moves(timeline);
	write_cells(timeline, grid);
	if (timeline->presence.churned)
		write_crowd(timeline, grid);
	skep_timeline_legend(timeline, grid->workers > STACK_MAX);
	skep_script_lines(timeline->script, TEMPLATE, sizeof TEMPLATE / sizeof TEMPLATE[0]);
	return true;
}

bool skep_timeline_overview(struct skep_timeline *timeline)
{
	struct grid grid = {0};
	double stored_s, panel = timeline->presence.churned ? PANEL_PIXELS + PANEL_GAP : 0;
	bool ok = read_length(timeline, &stored_s) &&
	          skep_timeline_workers(timeline, TOP_PIXELS + BOTTOM_PIXELS + panel) &&
	          write_overview(timeline, &grid, stored_s);
	finish(&grid);
	return ok;
}
