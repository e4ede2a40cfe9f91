/* SPDX-License-Identifier: Apache-2.0
 *
 * plot_utilisation.c - how much of its time alive each worker spent computing: compute time over time alive, bin by bin of
 * time.
 *
 * Of each run a map: a row for each worker, sorted by the stage that it had at first, a colour for the share of the bin; grey
 * where it was not alive. Below them lines: of one run the mean of each stage, of the workers that serve it at that time, and
 * of all; of several runs the mean of each.
 *
 * Compute time is what `activity` has of the compute lane. Its rows do not say in which lane steps were done, and of a run they
 * may be in both (inner steps and delayed outer ones): so much of them counts as makes the sum that `workers` has of the lane,
 * and the mean of all bins is the utilisation of the run.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/plot/plot_timeline.h"
#include "analysis/store/database.h"

#define RUNS_MAX 4u
#define BINS_MAX 240.0
#define STAGES_MAX 12u /* with a line each: more cannot be told apart */
#define WIDTH 1400u
#define TOP_PIXELS 66.0
#define HEAD_PIXELS 44.0 /* the name of a run, and the word above the numbers of its workers */
#define ROW_PIXELS 34.0
#define MAP_LEAST 110.0
#define MAPS_MOST 840.0 /* all of them */
#define LINES_PIXELS 230.0
#define LINES_GAP 30.0
#define BOTTOM_PIXELS 84.0
#define KEY_PIXELS 26.0
#define KEYS_A_ROW 6u

static const char *const TEMPLATE[] = {
#include "utilisation.gp.inc"
};

struct load { /* of one run */
	struct skep_timeline timeline;
	uint32_t bins;
	double bin_s, utilisation;
	double *busy_s, *alive_s;             /* [workers][bins] */
	double *stage_busy_s, *stage_alive_s; /* [stages][bins] */
	double map_pixels;
};

struct figure {
	struct load load[RUNS_MAX];
	uint32_t runs;
	double end_s, unit;
};

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static double *at(double *cell, const struct load *load, uint32_t row, uint32_t bin)
{
	return &cell[(size_t)row * load->bins + bin];
}

/* The last bin has the rest, which is from half of a bin to one and a half. */
static double end_of(const struct load *load, uint32_t bin)
{
	return bin + 1 < load->bins ? (bin + 1) * load->bin_s : load->timeline.end_s;
}

static uint32_t bin_of(const struct load *load, double time_s)
{
	return (uint32_t)fmin(time_s / load->bin_s, load->bins - 1);
}

static bool no_memory(struct load *load)
{
	skep_fail(load->timeline.reterr, "no memory for the plot");
	return false;
}

/* The run's end and utilisation; its bins, which are as many stored ones each as leave no more than BINS_MAX. */
static bool read_facts(struct load *load, double *ret_stored_s)
{
	static const char sql[] =
		"SELECT max(coalesce(time_s, 0), coalesce((SELECT max(closed_s) FROM rounds WHERE run = ?1), 0)),"
		" activity_bin_s, utilisation FROM runs WHERE id = ?1";
	struct skep_timeline *t = &load->timeline;
	sqlite3_stmt *row = skep_store_query(t->store, sql, t->run.id, 0, t->reterr);
	bool there = row != NULL && skep_store_row(t->store, row) && sqlite3_column_double(row, 0) > 0 &&
	             sqlite3_column_double(row, 1) > 0;
	if (there) {
		t->end_s = sqlite3_column_double(row, 0);
		*ret_stored_s = sqlite3_column_double(row, 1);
		load->utilisation = sqlite3_column_double(row, 2);
	} else if (row != NULL) {
		skep_fail(t->reterr, "run %lld was not recorded to its end, so nothing shows how busy its workers were",
			(long long)t->run.id);
	}
	sqlite3_finalize(row);
	if (!there)
		return false;
	double stored = ceil(t->end_s / *ret_stored_s - 1e-9);
	load->bin_s = *ret_stored_s * fmax(1, ceil(stored / BINS_MAX));
	load->bins = (uint32_t)fmax(1, round(t->end_s / load->bin_s));
	return true;
}

static bool allocate(struct load *load)
{
	uint32_t workers = load->timeline.run.workers, stages = load->timeline.run.stages;
	load->busy_s = calloc((size_t)workers * load->bins, 2 * sizeof *load->busy_s);
	load->stage_busy_s = calloc((size_t)stages * load->bins, 2 * sizeof *load->stage_busy_s);
	load->timeline.position = calloc(workers, sizeof *load->timeline.position);
	if (load->busy_s == NULL || load->stage_busy_s == NULL || load->timeline.position == NULL)
		return no_memory(load);
	load->alive_s = load->busy_s + (size_t)workers * load->bins;
	load->stage_alive_s = load->stage_busy_s + (size_t)stages * load->bins;
	return true;
}

/* The part of the time of steps that the compute lane has: what is missing to its sum without them. */
static bool read_steps(struct load *load, double *ret_part)
{
	static const char sql[] = "SELECT sum(forward_s + backward_s + state_s), sum(step_s), (SELECT sum(compute_s)"
				  " FROM workers WHERE run = ?1 AND role = 'worker') FROM activity WHERE run = ?1";
	struct skep_timeline *t = &load->timeline;
	sqlite3_stmt *row = skep_store_query(t->store, sql, t->run.id, 0, t->reterr);
	if (row != NULL && skep_store_row(t->store, row)) {
		double step_s = sqlite3_column_double(row, 1);
		double missing_s = sqlite3_column_double(row, 2) - sqlite3_column_double(row, 0);
		*ret_part = step_s > 0 ? fmin(fmax(missing_s / step_s, 0), 1) : 0;
	}
	sqlite3_finalize(row);
	return row != NULL;
}

static bool read_busy(struct load *load, double stored_s, double step_part)
{
	static const char sql[] =
		"SELECT worker, bin, forward_s + backward_s + state_s, step_s FROM activity WHERE run = ?1";
	struct skep_timeline *t = &load->timeline;
	sqlite3_stmt *row = skep_store_query(t->store, sql, t->run.id, 0, t->reterr);
	while (row != NULL && skep_store_row(t->store, row)) {
		uint32_t worker = (uint32_t)sqlite3_column_int64(row, 0);
		double middle_s = ((double)sqlite3_column_int64(row, 1) + 0.5) * stored_s;
		uint32_t bin = bin_of(load, middle_s);
		if (worker < t->run.workers)
			*at(load->busy_s, load, worker, bin) +=
				sqlite3_column_double(row, 2) + step_part * sqlite3_column_double(row, 3);
	}
	sqlite3_finalize(row);
	return row != NULL;
}

/* Adds to each bin what it has of the time from begin_s to end_s. */
static void add_time(struct load *load, double *cell, uint32_t index, double begin_s, double end_s)
{
	for (uint32_t bin = bin_of(load, begin_s); bin < load->bins; bin++) {
		double part_s = fmin(end_s, end_of(load, bin)) - fmax(begin_s, bin * load->bin_s);
		if (part_s <= 0)
			break;
		*at(cell, load, index, bin) += part_s;
	}
}

static bool read_alive(struct load *load)
{
	static const char sql[] = "SELECT worker, started_s, ended_s FROM incarnations WHERE run = ?1";
	struct skep_timeline *t = &load->timeline;
	sqlite3_stmt *row = skep_store_query(t->store, sql, t->run.id, 0, t->reterr);
	while (row != NULL && skep_store_row(t->store, row)) {
		uint32_t worker = (uint32_t)sqlite3_column_int64(row, 0);
		if (worker < t->run.workers)
			add_time(load, load->alive_s, worker, sqlite3_column_double(row, 1),
				fmin(sqlite3_column_double(row, 2), t->end_s));
	}
	sqlite3_finalize(row);
	return row != NULL;
}

/* To the stage that a worker serves goes its time alive, and of what it computes in a bin as much as of that time. */
static void spread_over_stages(struct load *load)
{
	const struct skep_presence *presence = &load->timeline.presence;
	for (size_t i = 0; i < presence->spans; i++) {
		const struct skep_presence_span *span = &presence->span[i];
		if (span->state == SKEP_PRESENCE_AWAY || span->stage < 0 || span->stage >= load->timeline.run.stages)
			continue;
		uint32_t stage = (uint32_t)span->stage;
		for (uint32_t bin = bin_of(load, span->begin_s); bin < load->bins; bin++) {
			double part_s = fmin(span->end_s, end_of(load, bin)) - fmax(span->begin_s, bin * load->bin_s);
			if (part_s <= 0)
				break;
			double alive_s = *at(load->alive_s, load, span->worker, bin);
			double part = alive_s > 0 ? fmin(part_s / alive_s, 1) : 0;
			*at(load->stage_alive_s, load, stage, bin) += part * alive_s;
			*at(load->stage_busy_s, load, stage, bin) += part * *at(load->busy_s, load, span->worker, bin);
		}
	}
}

static bool read_load(struct load *load)
{
	struct skep_timeline *t = &load->timeline;
	double stored_s = 0, step_part = 0;
	if (!read_facts(load, &stored_s) || !allocate(load) || !read_steps(load, &step_part) ||
		!read_busy(load, stored_s, step_part) || !read_alive(load) ||
		!skep_presence_read(t->store, &t->run, t->end_s, &t->presence, t->reterr))
		return false;
	spread_over_stages(load);
	return true;
}

static void finish(struct load *load)
{
	skep_presence_finish(&load->timeline.presence);
	free(load->timeline.position);
	free(load->busy_s);
	free(load->stage_busy_s);
}

/* ---- data -------------------------------------------------------------------------------------------------------- */

static double percent(double busy_s, double alive_s)
{
	return alive_s > 0 ? fmin(100 * busy_s / alive_s, 100) : NAN;
}

/* A map's pixels: a bin in which a worker was there for less than half has no colour. */
static void write_map(const struct figure *f, struct load *load, uint32_t number)
{
	FILE *script = load->timeline.script;
	uint32_t workers = load->timeline.run.workers;
	fprintf(script, "$map%u << END\n", number);
	for (uint32_t row = 0; row < workers; row++) {
		uint32_t who = 0;
		while (who + 1 < workers && load->timeline.position[who] != row)
			who++;
		for (uint32_t bin = 0; bin < load->bins; bin++) {
			double length_s = end_of(load, bin) - bin * load->bin_s;
			double alive_s = *at(load->alive_s, load, who, bin);
			double value = percent(*at(load->busy_s, load, who, bin), alive_s);
			fprintf(script, "%.7g %u ", (bin + 0.5) * load->bin_s * f->unit, row);
			fprintf(script, alive_s < length_s / 2 ? "NaN\n" : "%.1f\n", value);
		}
	}
	fprintf(script, "END\n");
}

/* A round begins and ends with idle workers: lines are means over two rounds, but over no more than a tenth of the run. */
static uint32_t window_of(const struct load *load)
{
	double rounds = load->timeline.run.rounds, most = load->bins / 10.0;
	return (uint32_t)fmax(1, fmin(most, round(2 * load->bins / fmax(rounds, 1))));
}

/* One line: the sum over rows first .. end - 1, bin by bin over a window around it. */
static void write_line(
	const struct figure *f, struct load *load, double *busy_s, double *alive_s, uint32_t first, uint32_t end)
{
	uint32_t window = window_of(load);
	for (uint32_t bin = 0; bin < load->bins; bin++) {
		uint32_t from = bin > window / 2 ? bin - window / 2 : 0, until = bin + (window + 1) / 2;
		double busy = 0, alive = 0, middle_s = (bin * load->bin_s + end_of(load, bin)) / 2;
		for (uint32_t row = first; row < end; row++)
			for (uint32_t i = from; i < until && i < load->bins; i++) {
				busy += *at(busy_s, load, row, i);
				alive += *at(alive_s, load, row, i);
			}
		fprintf(load->timeline.script, "%.7g %.4g\n", middle_s * f->unit, percent(busy, alive));
	}
	fprintf(load->timeline.script, "\n\n");
}

static uint32_t stage_lines(const struct figure *f)
{
	uint32_t stages = f->load[0].timeline.run.stages;
	return f->runs == 1 && stages > 1 && stages <= STAGES_MAX ? stages : 0;
}

static void write_lines(struct figure *f, FILE *script)
{
	fprintf(script, "$lines << END\n");
	for (uint32_t i = 0; i < f->runs; i++)
		write_line(f, &f->load[i], f->load[i].busy_s, f->load[i].alive_s, 0, f->load[i].timeline.run.workers);
	for (uint32_t stage = 0; stage < stage_lines(f); stage++)
		write_line(f, &f->load[0], f->load[0].stage_busy_s, f->load[0].stage_alive_s, stage, stage + 1);
	fprintf(script, "END\n");
}

/* ---- panels ------------------------------------------------------------------------------------------------------ */

static uint32_t key_rows(const struct figure *f)
{
	return f->runs > 1 ? f->runs : (1 + stage_lines(f) + KEYS_A_ROW - 1) / KEYS_A_ROW;
}

static double lay_out(struct figure *f)
{
	double height = TOP_PIXELS + LINES_GAP + LINES_PIXELS + BOTTOM_PIXELS + KEY_PIXELS * key_rows(f);
	for (uint32_t i = 0; i < f->runs; i++) {
		double wanted = fmax(MAP_LEAST, ROW_PIXELS * f->load[i].timeline.run.workers);
		f->load[i].map_pixels = fmin(wanted, MAPS_MOST / f->runs);
		height += f->load[i].map_pixels + HEAD_PIXELS;
	}
	return height;
}

static void name_run(const struct figure *f, uint32_t which, char *ret, size_t size)
{
	struct skep_plot_run run[RUNS_MAX];
	for (uint32_t i = 0; i < f->runs; i++)
		run[i] = f->load[i].timeline.run;
	skep_plot_name(run, f->runs, which, "", ret, size);
}

static void write_run_name(const struct figure *f, uint32_t which)
{
	const struct load *load = &f->load[which];
	char name[192], text[256];
	name_run(f, which, name, sizeof name);
	snprintf(text, sizeof text, "%s: %.1f %% of the time that its %u workers were alive", name,
		100 * load->utilisation, load->timeline.run.workers);
	fprintf(load->timeline.script, "set label ");
	skep_script_string(load->timeline.script, text);
	fprintf(load->timeline.script, " at graph 0, graph 1 offset 0.3, 0.8 left\n");
}

/* From `top` pixels downwards. */
static bool write_map_panel(struct figure *f, uint32_t i, double top, double height)
{
	struct load *load = &f->load[i];
	FILE *script = load->timeline.script;
	uint32_t workers = load->timeline.run.workers;
	double low = 1 - (top + load->map_pixels) / height;
	fprintf(script, "set tmargin at screen %.5f\nset bmargin at screen %.5f\nset yrange [%.1f:-0.5]\n",
		1 - top / height, low, workers - 0.5);
	if (!skep_timeline_rows(&load->timeline, load->map_pixels / workers))
		return false;
	write_run_name(f, i);
	write_map(f, load, i + 1);
	fprintf(script,
		"set colorbox user origin screen 0.925, screen %.5f size screen 0.012, screen %.5f\nset format x ''\n"
		"unset xlabel\nset object 1 rectangle from graph 0, graph 0 to graph 1, graph 1 behind fs solid noborder"
		" fc rgb '#c8c8c8'\nplot $map%u using 1:2:3 with image notitle\nunset label\nunset arrow\nunset object 1\n"
		"unset title\n",
		low, load->map_pixels / height, i + 1);
	return true;
}

static void write_titles(const struct figure *f, FILE *script)
{
	uint32_t lines = f->runs + stage_lines(f);
	char text[192];
	fprintf(script, "array Title[%u]\narray Colour[%u]\n", lines, lines);
	for (uint32_t i = 0; i < f->runs; i++) {
		name_run(f, i, text, sizeof text);
		fprintf(script, "Title[%u] = ", i + 1);
		skep_script_string(script, f->runs > 1 ? text : "all workers");
		fprintf(script, "\nColour[%u] = '%s'\n", i + 1, f->runs > 1 ? skep_plot_colour(i) : "#000000");
	}
	for (uint32_t stage = 0; stage < stage_lines(f); stage++)
		fprintf(script, "Title[%u] = 'stage %u'\nColour[%u] = '%s'\n", stage + 2, stage, stage + 2,
			skep_plot_colour(stage < 6 ? stage : stage + 1));
}

static void write_line_panel(const struct figure *f, FILE *script, double height)
{
	uint32_t lines = f->runs + stage_lines(f);
	double low = BOTTOM_PIXELS + KEY_PIXELS * key_rows(f);
	write_titles(f, script);
	fprintf(script,
		"set tmargin at screen %.5f\nset bmargin at screen %.5f\nset yrange [0:105]\n"
		"set ytics nomirror out scale 1 25\n"
		"set format y '%%g %%%%'\nset format x '%%g'\nset xlabel timelabel\n"
		"set ylabel 'mean of the workers' offset 0.5, 0\n"
		"set grid ytics lt 1 lw 0.6 lc rgb '#d9d9d9'\n"
		"set key at screen 0.5, screen 0.008 bottom center horizontal maxrows %u samplen 2 Left reverse\n"
		"unset colorbox\n",
		(low + LINES_PIXELS) / height, low / height, key_rows(f));
	fprintf(script,
		"plot for [i = 1:%u] $lines index i - 1 using 1:2 with lines lw (i <= %u ? 2.5 : 1.6)"
		" lc rgb Colour[i] notitle, "
		"for [i = 1:%u] NaN with lines lw (i <= %u ? 2.5 : 1.6) lc rgb Colour[i] title Title[i]\nunset multiplot\n",
		lines, f->runs, lines, f->runs);
}

static void write_heading(const struct figure *f, FILE *script)
{
	struct skep_plot_run run[RUNS_MAX];
	for (uint32_t i = 0; i < f->runs; i++)
		run[i] = f->load[i].timeline.run;
	skep_plot_title(script, run, f->runs, "utilisation, compute time over time alive");
	skep_plot_time_axis(script, f->end_s, 1);
	fprintf(script, "timelabel = 'time since the start of the run (%s); grey: not alive'\n",
		skep_plot_unit(f->end_s).name);
}

static bool write_figure(struct figure *f, struct skep_picture *picture)
{
	double height = lay_out(f), top = TOP_PIXELS + HEAD_PIXELS - 22;
	FILE *script = picture->script;
	picture->width = WIDTH;
	picture->height = (uint32_t)height;
	f->unit = skep_plot_unit(f->end_s).per_s;
	write_heading(f, script);
	skep_script_lines(script, TEMPLATE, sizeof TEMPLATE / sizeof TEMPLATE[0]);
	write_lines(f, script);
	for (uint32_t i = 0; i < f->runs; i++) {
		if (!write_map_panel(f, i, top, height))
			return false;
		top += f->load[i].map_pixels + HEAD_PIXELS;
	}
	write_line_panel(f, script, height);
	return true;
}

static bool read_all(struct skep_store *store, const struct skep_plot_run *run, struct figure *f, FILE *script,
	struct skep_diag *reterr)
{
	for (uint32_t i = 0; i < f->runs; i++) {
		f->load[i].timeline =
			(struct skep_timeline){.store = store, .run = run[i], .script = script, .reterr = reterr};
		if (!read_load(&f->load[i]))
			return false;
		f->end_s = fmax(f->end_s, f->load[i].timeline.end_s);
	}
	return true;
}

bool skep_plot_utilisation(struct skep_store *store, const int64_t *run, uint32_t runs, struct skep_picture *picture,
	struct skep_diag *reterr)
{
	struct skep_plot_run chosen[SKEP_PLOT_RUNS_MAX];
	struct figure f = {0};
	if (runs > RUNS_MAX)
		return skep_fail(reterr, "at most %u runs fit into one picture of utilisation, not %u", RUNS_MAX, runs);
	if (!skep_plot_chosen_runs(store, run, runs,
		    "activity_bin_s > 0 AND EXISTS (SELECT 1 FROM rounds WHERE run = id)",
		    "the database holds no run that was recorded to its end: `skep sim` and `skep run` make one",
		    chosen, &f.runs, reterr))
		return false;
	bool good = read_all(store, chosen, &f, picture->script, reterr) && write_figure(&f, picture);
	for (uint32_t i = 0; i < f.runs; i++) {
		skep_picture_drew(picture, chosen[i].id);
		finish(&f.load[i]);
	}
	return good;
}
