/* SPDX-License-Identifier: Apache-2.0
 *
 * arrivals.c - when jobs arrive: in a list of them, from a trace, or drawn.
 *
 * A trace is CSV whose first row names its columns: `arrival` and `duration` in seconds, `machines`, and if they are there `name`
 * and `type`. A job without a type has one drawn by the shares of the types. Drawn jobs arrive as a Poisson process.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/lines.h"
#include "base/grow.h"
#include "base/units.h"
#include "core/random.h"
#include "scenarios/jobs/parts.h"

#define COLUMNS_MAX 32u
#define LINE_MAX_BYTES 65536u

/* One more job behind the others; false: no memory, or too many. */
static bool add(struct skep_jobs_draft *d, const struct skep_job_entry *entry)
{
	struct skep_jobs_file *f = d->file;
	if (f->jobs >= SKEP_JOBS_MAX || !skep_grow(&f->job, f->jobs, sizeof *f->job))
		return skep_fail(
			d->r.diag, "%s: more jobs than there is memory for, or than %u", f->path, SKEP_JOBS_MAX);
	f->job[f->jobs++] = *entry;
	return true;
}

/* ---- draws -------------------------------------------------------------------------------------------------------- */

static double draw_exponential(uint64_t *state, double mean)
{
	return -mean * log(1 - skep_random_unit(state));
}

static uint32_t draw_type(const struct skep_jobs_file *f, uint64_t *state)
{
	double sum = 0;
	for (uint32_t i = 0; i < f->types; i++)
		sum += f->type[i].share;
	double at = skep_random_unit(state) * sum;
	uint32_t i = 0;
	while (i + 1 < f->types && (at >= f->type[i].share || f->type[i].share <= 0)) {
		at -= f->type[i].share;
		i++;
	}
	return i;
}

/* ---- a trace ------------------------------------------------------------------------------------------------------- */

enum { ARRIVAL, DURATION, MACHINES, NAME, TYPE, COLUMNS };
static const char *const COLUMN[COLUMNS] = {"arrival", "duration", "machines", "name", "type"};

struct trace {
	struct skep_lines lines;
	uint32_t at[COLUMNS]; /* COLUMNS_MAX: it is not there */
	double start_s, end_s;
	uint32_t machines_max; /* 0: none */
	uint64_t random;
	skep_time before_ns;
};

static bool read_columns(struct trace *t)
{
	struct skep_cell cell[COLUMNS_MAX];
	if (!skep_lines_next_row(&t->lines))
		return t->lines.diag->set ? false : skep_fail(t->lines.diag, "%s: holds no jobs", t->lines.path);
	uint32_t cells = skep_lines_cells(&t->lines, cell, COLUMNS_MAX);
	for (uint32_t i = 0; i < COLUMNS; i++) {
		t->at[i] = COLUMNS_MAX;
		for (uint32_t k = 0; k < cells && k < COLUMNS_MAX; k++)
			t->at[i] = skep_cell_is(cell[k], COLUMN[i]) ? k : t->at[i];
		if (i <= MACHINES && t->at[i] == COLUMNS_MAX) {
			skep_lines_fail(&t->lines, t->lines.text,
				"no column '%s' in the first line: expected arrival,duration,machines; `skep trace "
				"jobs` makes such a trace of other tables",
				COLUMN[i]);
			return false;
		}
	}
	return true;
}

static bool read_type(struct skep_jobs_draft *d, struct trace *t, const struct skep_cell *cell, uint32_t *ret)
{
	bool named = t->at[TYPE] < COLUMNS_MAX && cell[TYPE].length > 0;
	uint32_t drawn = draw_type(d->file, &t->random);
	*ret = named ? skep_jobs_find_type(d->file, cell[TYPE].at, cell[TYPE].length) : drawn;
	if (*ret == d->file->types)
		skep_lines_fail(
			&t->lines, cell[TYPE].at, "no type of this name in jobs.types of %.200s", d->file->path);
	return !d->r.diag->set;
}

static bool fits(struct skep_jobs_draft *d, struct trace *t, struct skep_cell cell, uint64_t machines)
{
	uint32_t all = d->file->topology.machines;
	if (machines == 0)
		skep_lines_fail(&t->lines, cell.at, "expected a machine at least");
	else if (machines > all)
		skep_lines_fail(&t->lines, cell.at,
			"this job asks for more than the %u machines of the cluster: take a larger cluster.topology, or "
			"`machines_max: %u` beside the trace",
			all, all);
	return !d->r.diag->set;
}

static bool read_job(struct skep_jobs_draft *d, struct trace *t)
{
	struct skep_cell all[COLUMNS_MAX], cell[COLUMNS] = {{0}};
	struct skep_job_entry job = {.line = t->lines.line};
	skep_time duration_ns;
	uint64_t machines;
	uint32_t cells = skep_lines_cells(&t->lines, all, COLUMNS_MAX);
	for (uint32_t i = 0; i < COLUMNS; i++) {
		if (t->at[i] < cells)
			cell[i] = all[t->at[i]];
		else if (i <= MACHINES) {
			skep_lines_fail(
				&t->lines, t->lines.text + t->lines.length, "%u cells in the row: too few", cells);
			return false;
		}
	}
	if (!skep_cell_time(&t->lines, cell[ARRIVAL], SKEP_SECOND_NS, &job.arrival_ns) ||
		!skep_cell_time(&t->lines, cell[DURATION], SKEP_SECOND_NS, &duration_ns) ||
		!skep_cell_count(&t->lines, cell[MACHINES], UINT32_MAX, &machines))
		return false;
	if (job.arrival_ns < t->before_ns) {
		skep_lines_fail(&t->lines, cell[ARRIVAL].at,
			"arrivals go backwards: expected the rows in order of arrival (sort -t, -k %u -n)",
			t->at[ARRIVAL] + 1);
		return false;
	}
	t->before_ns = job.arrival_ns;
	if (t->machines_max > 0 && machines > t->machines_max)
		machines = t->machines_max;
	double arrival_s = (double)job.arrival_ns / SKEP_NS_PER_S;
	if (!read_type(d, t, cell, &job.type) || !fits(d, t, cell[MACHINES], machines))
		return false;
	if (arrival_s < t->start_s || arrival_s >= t->end_s || duration_ns == 0)
		return true;
	job.arrival_ns -= (skep_time)(t->start_s * SKEP_NS_PER_S);
	job.duration_s = (double)duration_ns / SKEP_NS_PER_S;
	job.machines = (uint32_t)machines;
	snprintf(job.name, sizeof job.name, "%s", d->file->type[job.type].name);
	if (cell[NAME].length > 0 && !skep_cell_copy(&t->lines, cell[NAME], "the name", job.name, sizeof job.name))
		return false;
	return add(d, &job);
}

static void read_trace(struct skep_jobs_draft *d, const struct skep_yaml_node *jobs)
{
	struct trace t = {.random = d->file->seed};
	t.start_s = skep_read_quantity(&d->r, jobs, "start", SKEP_TIME, 0, SKEP_JOBS_TIME_S_MAX, 0);
	t.end_s = skep_read_quantity(&d->r, jobs, "end", SKEP_TIME, 0, SKEP_JOBS_TIME_S_MAX, SKEP_JOBS_TIME_S_MAX);
	t.machines_max = (uint32_t)skep_read_integer(&d->r, jobs, "machines_max", 1, UINT32_MAX, 0);
	char *path = d->file->trace_path;
	skep_read_path(&d->r, jobs, "trace", "jobs.trace", "file", d->file->path, path, sizeof d->file->trace_path);
	if (d->r.diag->set || !skep_lines_open(&t.lines, path, LINE_MAX_BYTES, d->r.diag))
		return;
	bool ok = read_columns(&t);
	while (ok && skep_lines_next_row(&t.lines))
		ok = read_job(d, &t);
	skep_lines_close(&t.lines);
	if (!d->r.diag->set && d->file->jobs == 0)
		skep_reader_fail(
			&d->r, jobs, "trace", "jobs.trace: no job of %.200s arrives between `start` and `end`", path);
}

/* ---- drawn --------------------------------------------------------------------------------------------------------- */

enum { EXPONENTIAL, FIXED, GAVEL };

/* Gavel's trace generator (Narayanan et al., OSDI 2020): 10^x minutes, x even in [1.5, 3] for 80 % of the jobs, else in
 * [3, 4]. */
static double draw_gavel(uint64_t *state)
{
	bool longer = skep_random_unit(state) >= 0.8;
	double x = skep_random_unit(state);
	return 60 * pow(10, longer ? 3 + x : 1.5 + 1.5 * x);
}

static void read_drawn(struct skep_jobs_draft *d, const struct skep_yaml_node *jobs)
{
	static const char *const laws[] = {"exponential", "fixed", "gavel", NULL};
	const struct skep_yaml_node *map = skep_read_map(&d->r, jobs, "draw", true);
	uint32_t count = (uint32_t)skep_read_integer(&d->r, map, "count", 1, SKEP_JOBS_MAX, INT64_MIN);
	double interval_s = skep_read_quantity(&d->r, map, "interval", SKEP_TIME, 1e-6, SKEP_JOBS_TIME_S_MAX, NAN);
	int law = skep_read_choice(&d->r, map, "law", laws, EXPONENTIAL);
	double mean_s = skep_read_quantity(
		&d->r, map, "duration", SKEP_TIME, 1e-6, SKEP_JOBS_TIME_S_MAX, law == GAVEL ? 0 : NAN);
	if (!d->r.diag->set && law == GAVEL && skep_read_has(&d->r, map, "duration"))
		skep_reader_fail(
			&d->r, map, "duration", "jobs.draw.duration: the law `gavel` has durations of its own");
	skep_reader_close_map(&d->r, map);
	double at_s = 0;
	uint64_t random = d->file->seed;
	for (uint32_t i = 0; i < count && !d->r.diag->set; i++) {
		struct skep_job_entry job = {.arrival_ns = (skep_time)(at_s * SKEP_NS_PER_S)};
		job.type = draw_type(d->file, &random);
		job.duration_s = law == FIXED   ? mean_s
		                 : law == GAVEL ? draw_gavel(&random)
		                                : draw_exponential(&random, mean_s);
		snprintf(job.name, sizeof job.name, "%.48s-%u", d->file->type[job.type].name, i);
		at_s += draw_exponential(&random, interval_s);
		if (at_s > SKEP_JOBS_TIME_S_MAX)
			skep_reader_fail(&d->r, map, "interval",
				"jobs.draw.interval: the last of these jobs arrives after 10^9 s");
		else if (!add(d, &job))
			return;
	}
}

/* ---- a list --------------------------------------------------------------------------------------------------------- */

static void read_listed(struct skep_jobs_draft *d, const struct skep_yaml_node *list)
{
	double before_s = 0;
	for (uint32_t i = 0; i < skep_yaml_length(list) && !d->r.diag->set; i++) {
		const struct skep_yaml_node *item = skep_yaml_item(list, i);
		struct skep_job_entry job = {.type = d->file->types};
		if (!skep_jobs_read_type(d, item, "jobs", true))
			return;
		bool map = skep_yaml_kind(item) == SKEP_YAML_MAP;
		double at_s = before_s;
		if (map) {
			at_s = skep_read_quantity(&d->r, item, "arrival", SKEP_TIME, 0, SKEP_JOBS_TIME_S_MAX, before_s);
			job.duration_s =
				skep_read_quantity(&d->r, item, "duration", SKEP_TIME, 1e-9, SKEP_JOBS_TIME_S_MAX, 0);
			skep_reader_close_map(&d->r, item);
		}
		if (!d->r.diag->set && at_s < before_s)
			skep_reader_fail(&d->r, item, "arrival",
				"jobs: this one arrives at %g s, before the one above it, at %g s: put jobs in "
				"order of arrival",
				at_s, before_s);
		before_s = at_s;
		job.arrival_ns = (skep_time)(at_s * SKEP_NS_PER_S);
		snprintf(job.name, sizeof job.name, "%s", d->file->type[job.type].name);
		if (!d->r.diag->set && !add(d, &job))
			return;
	}
}

void skep_jobs_read_arrivals(struct skep_jobs_draft *d, const struct skep_yaml_node *root)
{
	const struct skep_yaml_node *jobs = skep_read_any(&d->r, root, "jobs");
	if (d->r.diag->set)
		return;
	if (!jobs)
		skep_reader_fail(&d->r, root, NULL,
			"no `jobs`: expected a list of scenarios, `{trace: FILE, types: [...]}` or `{draw: {...}, "
			"types: [...]}`; a scenario by itself is for `skep sim`");
	else if (skep_yaml_kind(jobs) == SKEP_YAML_LIST && skep_yaml_length(jobs) > 0)
		read_listed(d, jobs);
	else if (skep_yaml_kind(jobs) != SKEP_YAML_MAP)
		skep_reader_fail(&d->r, root, "jobs",
			"jobs: expected a list of scenarios, `{trace: FILE, types: [...]}` or `{draw: {...}, types: "
			"[...]}`");
	else if (skep_jobs_read_types(d, jobs)) {
		bool drawn = skep_read_has(&d->r, jobs, "draw");
		if (drawn && skep_read_has(&d->r, jobs, "trace"))
			skep_reader_fail(&d->r, jobs, "draw", "jobs: either a trace, or jobs that are drawn");
		else if (drawn)
			read_drawn(d, jobs);
		else
			read_trace(d, jobs);
		skep_reader_close_map(&d->r, jobs);
	}
}
