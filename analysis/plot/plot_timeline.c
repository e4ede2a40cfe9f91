/* SPDX-License-Identifier: Apache-2.0
 *
 * plot_timeline.c - what each worker did: time to the right, workers downwards, by the stage that they had at first.
 *
 * Decides which part is shown, and the title says it. Asked for rounds (--rounds), it shows each operation of these, to
 * their last one, which is often a step after the round has closed. Else the whole run in bins of time (plot_overview.c)
 * if workers came, went or moved, or are too many for single operations; of the others the first rounds, as many as stay
 * readable, at most ROUNDS_MAX, at least one.
 */
#include "analysis/plot/plot_timeline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/store/database.h"
#include "base/grow.h"

#define ROUNDS_MAX 3u
#define OPS_PER_WORKER 120.0 /* in the compute lane, on average: more cannot be told apart */
#define PIXEL 0.0008         /* of the width: the least length of a bar */
#define NUMBERED_MAX 40u     /* workers with their number on the axis */
#define ROW_PIXELS 34.0
#define MARGIN_PIXELS 190.0
#define ROUND_WIDTH 0.06   /* of the width: the name of a round */
#define LABEL_PIXELS 24.0  /* of height that the name of a stage needs ... */
#define NUMBER_PIXELS 15.0 /* ... and the number of a worker */

/* ---- when each worker took part in a reduction: what is shaded --------------------------------------------------- */

/* A worker's arithmetic in a reduction is short, on slow links the reduction is long: nearly all of it lies between operations.
 * Both worlds record the same ones, so it is found from these alone: from the first in the reduce lane (a worker takes its own
 * sum) until the step, which waits for the last of the others. */

static bool add_part(struct skep_parts *parts, sqlite3_stmt *row, struct skep_diag *reterr)
{
	if (!skep_grow(&parts->part, parts->parts, sizeof *parts->part))
		return skep_fail(reterr, "no memory for more than %zu reductions", parts->parts);
	double begin_s = sqlite3_column_double(row, 1);
	parts->part[parts->parts++] = (struct skep_part){.worker = (uint32_t)sqlite3_column_int64(row, 0),
		.begin_s = begin_s,
		.passed_s = begin_s,
		.end_s = sqlite3_column_double(row, 2)};
	return true;
}

/* Delayed updates step in the reduce lane, others in the compute lane. */
static bool read_parts(
	struct skep_store *store, const struct skep_plot_run *run, struct skep_parts *ret, struct skep_diag *reterr)
{
	static const char sql[] =
		"SELECT worker, min(CASE WHEN kind <> 'step' THEN begin_s END) AS begun,"
		" max(CASE WHEN kind = 'step' THEN begin_s ELSE end_s END)"
		" FROM ops WHERE run = ?1 AND worker < ?2 AND (lane = 'reduce' OR kind = 'step')"
		" GROUP BY worker, epoch, round, stage HAVING begun IS NOT NULL ORDER BY worker, begun";
	sqlite3_stmt *row = skep_store_query(store, sql, run->id, run->workers, reterr);
	bool ok = row != NULL;
	while (ok && skep_store_row(store, row))
		ok = add_part(ret, row, reterr);
	sqlite3_finalize(row);
	return ok;
}

/* Both are sorted alike: a part that ended before an operation began has nothing beside it any more. */
static bool read_passes(
	struct skep_store *store, const struct skep_plot_run *run, struct skep_parts *parts, struct skep_diag *reterr)
{
	static const char sql[] = "SELECT worker, begin_s, end_s FROM ops"
				  " WHERE run = ?1 AND lane = 'compute' AND kind <> 'step' ORDER BY worker, begin_s";
	size_t first = 0;
	sqlite3_stmt *row = skep_store_query(store, sql, run->id, 0, reterr);
	while (row != NULL && skep_store_row(store, row)) {
		uint32_t worker = (uint32_t)sqlite3_column_int64(row, 0);
		double begin_s = sqlite3_column_double(row, 1), end_s = sqlite3_column_double(row, 2);
		const struct skep_part *part = parts->part;
		while (first < parts->parts &&
			(part[first].worker < worker || (part[first].worker == worker && part[first].end_s <= begin_s)))
			first++;
		for (size_t i = first; i < parts->parts && part[i].worker == worker && part[i].begin_s < end_s; i++)
			if (part[i].end_s > begin_s)
				parts->part[i].passed_s = fmin(fmax(part[i].passed_s, end_s), part[i].end_s);
	}
	sqlite3_finalize(row);
	return row != NULL;
}

static bool read_known(
	struct skep_store *store, const struct skep_plot_run *run, struct skep_parts *ret, struct skep_diag *reterr)
{
	static const char sql[] = "SELECT (SELECT max(end_s) FROM ops WHERE run = ?1) FROM runs WHERE id = ?1"
				  " AND ops_dropped > 0";
	sqlite3_stmt *row = skep_store_query(store, sql, run->id, 0, reterr);
	ret->known_s = row != NULL && skep_store_row(store, row) ? sqlite3_column_double(row, 0) : INFINITY;
	sqlite3_finalize(row);
	return row != NULL;
}

static void parts_finish(struct skep_parts *parts)
{
	free(parts->part);
	*parts = (struct skep_parts){0};
}

static bool parts_read(
	struct skep_store *store, const struct skep_plot_run *run, struct skep_parts *ret, struct skep_diag *reterr)
{
	*ret = (struct skep_parts){0};
	bool ok = read_parts(store, run, ret, reterr) && read_passes(store, run, ret, reterr) &&
	          read_known(store, run, ret, reterr);
	if (!ok)
		parts_finish(ret);
	return ok;
}

static const char *const TEMPLATE[] = {
#include "timeline.gp.inc"
};

/* Colours of Okabe and Ito, and greys: they differ for every kind of colour vision. */
const struct skep_timeline_key skep_timeline_key[SKEP_TIMELINE_COLOURS] = {
	[SKEP_TIMELINE_FORWARD] = {"forward", 0x0072b2},
	[SKEP_TIMELINE_BACKWARD] = {"backward", 0xe69f00},
	[SKEP_TIMELINE_STEP] = {"step", 0x000000},
	[SKEP_TIMELINE_REDUCE] = {"sums of a reduction", 0x009e73},
	[SKEP_TIMELINE_STATE] = {"download, state", 0xcc79a7},
	[SKEP_TIMELINE_WAIT] = {"reduction under way", 0xa9dcc8},
	[SKEP_TIMELINE_IDLE] = {"alive, idle", 0xeeeeee},
	[SKEP_TIMELINE_AWAY] = {"dead or not there", 0x8a8a8a},
};

struct window {
	uint32_t first, rounds; /* shown */
	uint64_t ops;
};

static enum skep_timeline_colour group_of(const char *kind, const char *lane)
{
	if (strcmp(kind, "forward") == 0 || strcmp(kind, "recompute") == 0)
		return SKEP_TIMELINE_FORWARD;
	if (strcmp(kind, "backward") == 0)
		return SKEP_TIMELINE_BACKWARD;
	if (strcmp(kind, "step") == 0 || strcmp(kind, "inner_step") == 0 || strcmp(kind, "pseudo_grad") == 0)
		return SKEP_TIMELINE_STEP;
	return strcmp(lane, "reduce") == 0 ? SKEP_TIMELINE_REDUCE : SKEP_TIMELINE_STATE;
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

static bool read_window(struct skep_timeline *timeline, const struct skep_plot_rounds *asked, struct window *ret)
{
	static const char sql[] =
		"SELECT round, opened_s, closed_s, (SELECT count(*) FROM ops WHERE run = ?1 AND lane = 'compute'"
		"   AND begin_s < closed_s AND end_s > opened_s), (SELECT max(end_s) FROM ops WHERE run = ?1"
		"   AND kind = 'step' AND ops.round = rounds.round) FROM rounds WHERE run = ?1 AND round >= ?2"
		" ORDER BY round";
	uint32_t first = asked ? asked->first : 0, last = asked ? asked->last : ROUNDS_MAX - 1;
	*ret = (struct window){.first = first};
	sqlite3_stmt *row = skep_store_query(timeline->store, sql, timeline->run.id, first, timeline->reterr);
	while (row != NULL && skep_store_row(timeline->store, row) && sqlite3_column_int64(row, 0) <= last) {
		uint64_t ops = ret->ops + (uint64_t)sqlite3_column_int64(row, 3);
		if (!asked && ret->rounds > 0 && (double)ops > OPS_PER_WORKER * timeline->run.workers)
			break;
		if (ret->rounds++ == 0)
			timeline->begin_s = first == 0 ? 0 : sqlite3_column_double(row, 1);
		timeline->end_s = fmax(sqlite3_column_double(row, 2), sqlite3_column_double(row, 4));
		ret->ops = ops;
	}
	sqlite3_finalize(row);
	return row != NULL;
}

/* Of a run whose end is known that, else the end of its last round. */
static bool read_end(struct skep_timeline *timeline)
{
	static const char sql[] = "SELECT coalesce(max(time_s, (SELECT max(closed_s) FROM rounds WHERE run = ?1)),"
				  " (SELECT max(closed_s) FROM rounds WHERE run = ?1)) FROM runs WHERE id = ?1";
	sqlite3_stmt *row = skep_store_query(timeline->store, sql, timeline->run.id, 0, timeline->reterr);
	if (row != NULL && skep_store_row(timeline->store, row))
		timeline->end_s = sqlite3_column_double(row, 0);
	sqlite3_finalize(row);
	return row != NULL;
}

/* ---- the script ------------------------------------------------------------------------------------------------- */

static uint32_t height_of(uint32_t workers, double margin_pixels)
{
	return (uint32_t)fmin(fmax(margin_pixels + ROW_PIXELS * workers, 500), 1600);
}

/* From end_s. */
static void set_unit(struct skep_timeline *timeline)
{
	struct skep_plot_unit unit = skep_plot_unit(timeline->end_s);
	timeline->unit = unit.per_s;
	timeline->unit_name = unit.name;
}

void skep_timeline_title(struct skep_timeline *timeline, const char *part)
{
	char title[256], name[128];
	const struct skep_plot_run *run = &timeline->run;
	skep_plot_name(run, 1, 0, "", name, sizeof name);
	snprintf(title, sizeof title, "%s: %s: %s", run->scenario, name, part);
	fprintf(timeline->script, "set title ");
	skep_script_string(timeline->script, title);
	fprintf(timeline->script, "\ntimelabel = 'time since the start of the run (%s)'\n", timeline->unit_name);
	fprintf(timeline->script, "set xrange [%.9g:%.9g]\nworkers = %u\n", timeline->begin_s * timeline->unit,
		timeline->end_s * timeline->unit, run->workers);
}

/* The name of a stage beside its rows, and the line under them. */
static void write_stage(struct skep_timeline *timeline, int64_t stage, uint32_t first, uint32_t end, double *labelled,
	double row_pixels)
{
	double middle = (first + end) / 2.0 - 0.5;
	if ((middle - *labelled) * row_pixels >= LABEL_PIXELS) {
		*labelled = middle;
		fprintf(timeline->script, stage < 0 ? "set label 'spare" : "set label 'stage %lld", (long long)stage);
		fprintf(timeline->script, "' at screen 0.012, first %.2f left\n", middle);
	}
	if (end < timeline->run.workers)
		fprintf(timeline->script,
			"set arrow from graph 0, first %.1f to graph 1, first %.1f nohead front lw 1.5 lc rgb "
			"'gray20'\n",
			end - 0.5, end - 0.5);
}

bool skep_timeline_rows(struct skep_timeline *timeline, double row_pixels)
{
	static const char sql[] =
		"SELECT worker, coalesce(first_stage, -1) FROM workers WHERE run = ?1 AND role = 'worker'"
		" ORDER BY coalesce(first_stage, 4294967295), worker";
	uint32_t workers = timeline->run.workers, first = 0, i = 0;
	sqlite3_stmt *row = skep_store_query(timeline->store, sql, timeline->run.id, 0, timeline->reterr);
	double labelled = -INFINITY;
	bool numbered = workers <= NUMBERED_MAX && row_pixels >= NUMBER_PIXELS;
	int64_t last = -1;
	fprintf(timeline->script,
		numbered ? "set label 'worker' at graph -0.008, graph 1 offset 0, 0.7 right\nset ytics scale 0 ()\n"
			 : "unset ytics\n");
	for (; row != NULL && i < workers && skep_store_row(timeline->store, row); i++) {
		uint32_t worker = (uint32_t)sqlite3_column_int64(row, 0);
		int64_t stage = sqlite3_column_int64(row, 1);
		if (worker < workers)
			timeline->position[worker] = i;
		if (numbered)
			fprintf(timeline->script, "set ytics add ('%u' %u)\n", worker, i);
		if (i > 0 && stage != last) {
			write_stage(timeline, last, first, i, &labelled, row_pixels);
			first = i;
		}
		last = stage;
	}
	write_stage(timeline, last, first, workers, &labelled, row_pixels);
	sqlite3_finalize(row);
	return row != NULL;
}

/* With the height of the picture. */
bool skep_timeline_workers(struct skep_timeline *timeline, double margin_pixels)
{
	uint32_t workers = timeline->run.workers;
	timeline->picture->width = 1400;
	timeline->picture->height = height_of(workers, margin_pixels);
	return skep_timeline_rows(timeline, (timeline->picture->height - margin_pixels) / workers);
}

/* `pale`: colours are blended with that of idleness. */
void skep_timeline_legend(struct skep_timeline *timeline, bool pale)
{
	uint32_t groups = 0;
	FILE *script = timeline->script;
	for (int i = 0; i < SKEP_TIMELINE_COLOURS; i++)
		groups += timeline->present[i];
	fprintf(script, "groups = %u\narray Group[%u]\narray Title[%u]\narray Colour[%u]\n", groups, groups, groups,
		groups);
	if (pale)
		fprintf(script,
			"set label 'pale colours: for part of the time' at screen 0.012, screen 0.028 font ',11'\n");
	groups = 0;
	for (int i = 0; i < SKEP_TIMELINE_COLOURS; i++)
		if (timeline->present[i]) {
			groups++;
			fprintf(script, "Group[%u] = %d\nTitle[%u] = '%s'\nColour[%u] = '#%06x'\n", groups, i, groups,
				skep_timeline_key[i].title, groups, skep_timeline_key[i].rgb);
		}
}

/* ---- some rounds, each operation -------------------------------------------------------------------------------- */

/* Where a round opened, as on the axis of the overview: that is when its work begins. With delayed updates it closes a round
 * later, so the lines of later rounds that opened within the window are drawn too. */
static bool write_rounds(struct skep_timeline *timeline, const struct window *window)
{
	static const char sql[] = "SELECT round, opened_s FROM rounds WHERE run = ?1 AND round >= ?2 ORDER BY round";
	sqlite3_stmt *row = skep_store_query(timeline->store, sql, timeline->run.id, window->first, timeline->reterr);
	double end = timeline->end_s * timeline->unit, width = ROUND_WIDTH * (end - timeline->begin_s * timeline->unit);
	double room_from = -INFINITY;
	while (row != NULL && skep_store_row(timeline->store, row)) {
		double opened = sqlite3_column_double(row, 1) * timeline->unit;
		if (opened >= end)
			break;
		fprintf(timeline->script,
			"set arrow from first %.9g, graph 0 to first %.9g, graph 1 nohead front dt 2 lw 1.5"
			" lc rgb 'gray30'\n",
			opened, opened);
		if (opened < room_from || opened + width > end)
			continue;
		room_from = opened + width;
		fprintf(timeline->script,
			"set label 'round %lld' at first %.9g, graph 1 offset 0, 0.7 left textcolor rgb 'gray30'\n",
			(long long)sqlite3_column_int64(row, 0), opened);
	}
	sqlite3_finalize(row);
	return row != NULL;
}

static void write_bar(
	struct skep_timeline *timeline, double begin_s, double end_s, double upper, double lower, int group)
{
	double least_s = PIXEL * (timeline->end_s - timeline->begin_s);
	begin_s = fmax(begin_s, timeline->begin_s);
	end_s = fmin(fmax(end_s, begin_s + least_s), timeline->end_s);
	timeline->present[group] = true;
	fprintf(timeline->script, "%.9g %.9g %.2f %.2f %d\n", begin_s * timeline->unit, end_s * timeline->unit, upper,
		lower, group);
}

/* As high as a row where the worker does nothing else, beside its passes as the narrow bar of the reduce lane. */
static void write_part(struct skep_timeline *timeline, const struct skep_part *part)
{
	double y = timeline->position[part->worker];
	double from_s[] = {part->begin_s, part->passed_s}, until_s[] = {part->passed_s, part->end_s};
	for (int whole = 0; whole < 2; whole++)
		if (until_s[whole] > from_s[whole] && from_s[whole] < timeline->end_s &&
			until_s[whole] > timeline->begin_s)
			write_bar(timeline, from_s[whole], until_s[whole], y + (whole ? -0.42 : 0.20), y + 0.42,
				SKEP_TIMELINE_WAIT);
}

/* begin, end, upper and lower edge of the bar, group: first who was away or downloads, as high as a row, and reductions; then
 * the operations, the compute lane as the broad bar and the reduce lane as the narrow one below it. */
static bool write_ops(struct skep_timeline *timeline)
{
	static const char sql[] = "SELECT worker, begin_s, end_s, kind, lane FROM ops WHERE run = ?1";
	sqlite3_stmt *row = skep_store_query(timeline->store, sql, timeline->run.id, 0, timeline->reterr);
	fprintf(timeline->script, "$ops << END\n");
	for (size_t i = 0; i < timeline->presence.spans; i++) {
		const struct skep_presence_span *span = &timeline->presence.span[i];
		double y = timeline->position[span->worker];
		bool away = span->state == SKEP_PRESENCE_AWAY;
		if (span->state != SKEP_PRESENCE_SERVING && span->state != SKEP_PRESENCE_IDLE &&
			span->begin_s < timeline->end_s && span->end_s > timeline->begin_s)
			write_bar(timeline, span->begin_s, span->end_s, y - 0.42, y + 0.42,
				away ? SKEP_TIMELINE_AWAY : SKEP_TIMELINE_STATE);
	}
	for (size_t i = 0; i < timeline->parts.parts; i++)
		write_part(timeline, &timeline->parts.part[i]);
	while (row != NULL && skep_store_row(timeline->store, row)) {
		uint32_t worker = (uint32_t)sqlite3_column_int64(row, 0);
		double begin_s = sqlite3_column_double(row, 1), end_s = sqlite3_column_double(row, 2);
		const char *lane = skep_column_text(row, 4);
		bool narrow = strcmp(lane, "reduce") == 0;
		if (worker >= timeline->run.workers || begin_s >= timeline->end_s || end_s <= timeline->begin_s)
			continue;
		double y = timeline->position[worker];
		write_bar(timeline, begin_s, end_s, y + (narrow ? 0.20 : -0.42), y + (narrow ? 0.42 : 0.16),
			group_of(skep_column_text(row, 3), lane));
	}
	fprintf(timeline->script, "END\n");
	sqlite3_finalize(row);
	return row != NULL;
}

static void write_heading(struct skep_timeline *timeline, const struct window *window, bool asked)
{
	char part[96];
	uint32_t last = window->first + window->rounds - 1;
	if (window->rounds == 1 && (asked || timeline->run.rounds == 1))
		snprintf(part, sizeof part, "round %u of %u", window->first, timeline->run.rounds);
	else if (asked)
		snprintf(part, sizeof part, "rounds %u to %u of %u", window->first, last, timeline->run.rounds);
	else if (window->rounds == 1)
		snprintf(part, sizeof part, "the first round of %u", timeline->run.rounds);
	else
		snprintf(part, sizeof part, "the first %u rounds of %u", window->rounds, timeline->run.rounds);
	skep_timeline_title(timeline, part);
}

static bool write_detail(struct skep_timeline *timeline, const struct window *window, bool asked)
{
	set_unit(timeline);
	write_heading(timeline, window, asked);
	if (!skep_timeline_workers(timeline, MARGIN_PIXELS) || !write_rounds(timeline, window) || !write_ops(timeline))
		return false;
	timeline->present[SKEP_TIMELINE_IDLE] = true;
	skep_timeline_legend(timeline, false);
	skep_script_lines(timeline->script, TEMPLATE, sizeof TEMPLATE / sizeof TEMPLATE[0]);
	return true;
}

static void refuse_window(struct skep_timeline *timeline, const struct window *window)
{
	const struct skep_plot_run *run = &timeline->run;
	if (run->rounds > 0 && window->rounds == 0)
		skep_fail(timeline->reterr, "run %lld closed %u rounds: there is no round %u", (long long)run->id,
			run->rounds, window->first);
	else if (run->rounds > 0 && window->first > 0)
		skep_fail(timeline->reterr,
			"run %lld kept no operations of these rounds, only of earlier ones: `--rounds all` shows them "
			"in bins of time",
			(long long)run->id);
	else
		skep_fail(timeline->reterr, "run %lld has no operations to show: %s", (long long)run->id,
			run->rounds == 0 ? "it closed no round" : "none were recorded");
}

/* ---- which form ------------------------------------------------------------------------------------------------- */

static bool has_activity(struct skep_timeline *timeline)
{
	static const char sql[] = "SELECT 1 FROM runs WHERE id = ?1 AND activity_bin_s > 0";
	sqlite3_stmt *row = skep_store_query(timeline->store, sql, timeline->run.id, 0, timeline->reterr);
	bool there = row != NULL && skep_store_row(timeline->store, row);
	sqlite3_finalize(row);
	return there;
}

static bool write_timeline(struct skep_timeline *timeline, const struct skep_plot_rounds *asked)
{
	struct window window;
	const struct skep_plot_run *run = &timeline->run;
	if (!read_end(timeline) ||
		!skep_presence_read(timeline->store, run, timeline->end_s, &timeline->presence, timeline->reterr) ||
		!parts_read(timeline->store, run, &timeline->parts, timeline->reterr))
		return false;
	bool whole = asked ? asked->all
	                   : run->rounds > 0 && (timeline->presence.churned || run->workers > NUMBERED_MAX) &&
	                             has_activity(timeline);
	if (whole) {
		set_unit(timeline);
		return skep_timeline_overview(timeline);
	}
	if (!read_window(timeline, asked, &window))
		return false;
	if (window.ops == 0) {
		refuse_window(timeline, &window);
		return false;
	}
	return write_detail(timeline, &window, asked != NULL);
}

bool skep_plot_timeline(struct skep_store *store, const int64_t *run, uint32_t runs, struct skep_picture *picture,
	struct skep_diag *reterr)
{
	struct skep_timeline timeline = {
		.store = store, .picture = picture, .script = picture->script, .reterr = reterr};
	if (!skep_plot_single_run(store, run, runs, &timeline.run, reterr))
		return false;
	skep_picture_drew(picture, timeline.run.id);
	timeline.position = calloc(timeline.run.workers ? timeline.run.workers : 1, sizeof *timeline.position);
	if (timeline.position == NULL)
		return skep_fail(reterr, "no memory for %u workers", timeline.run.workers);
	bool ok = write_timeline(&timeline, picture->rounds);
	skep_presence_finish(&timeline.presence);
	parts_finish(&timeline.parts);
	free(timeline.position);
	return ok;
}
