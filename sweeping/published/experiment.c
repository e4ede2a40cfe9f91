/* SPDX-License-Identifier: Apache-2.0
 *
 * experiment.c - reads a table of published figures. See experiment.h.
 *
 * Keeps true: a run stands in run[] once, however many rows are about it; every row has a published figure or a note that says
 * why there is none.
 */
#include "sweeping/published/experiment.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

#define ROWS_MAX 256u
#define SETS_MAX 32u

const char *const skep_published_metrics[] = {"throughput", "step_time", "passes", "reduction", "utilisation", "spread",
	"traffic", "completion", "least", NULL};

struct draft {
	struct skep_reader r;
	struct skep_published_experiment *e;
	const struct skep_yaml_node *runs; /* the map of named runs; NULL: there is none */
};

struct sets { /* of one run, while it is put together */
	const char *set[SETS_MAX];
	uint32_t sets;
};

/* ---- runs -------------------------------------------------------------------------------------------------------- */

static void add_sets(struct draft *d, const struct skep_yaml_node *list, struct sets *to)
{
	for (uint32_t i = 0; i < skep_yaml_length(list); i++) {
		const struct skep_yaml_node *item = skep_yaml_item(list, i);
		if (to->sets == SETS_MAX)
			skep_reader_fail(&d->r, item, NULL, "more than %u changes of one run", SETS_MAX);
		const char *set = skep_read_string(&d->r, item, NULL, NULL);
		if (d->r.diag->set)
			return;
		if (strchr(set, '=') == NULL)
			skep_reader_fail_value(
				&d->r, item, NULL, "expected KEY=VALUE, as --set takes it, not `%.80s`", set);
		to->set[to->sets++] = set;
	}
}

static void add_named(struct draft *d, const struct skep_yaml_node *at, const char *name, struct sets *to)
{
	const char *key = NULL;
	for (uint32_t i = 0; d->runs != NULL && i < skep_yaml_length(d->runs); i++) {
		const struct skep_yaml_node *list = skep_read_entry(&d->r, d->runs, i, &key);
		if (strcmp(key, name) != 0)
			continue;
		add_sets(d, list, to);
		return;
	}
	skep_reader_fail_value(&d->r, at, NULL, "there is no run `%.60s` in `runs`", name);
}

static bool same(const struct skep_published_run *run, const struct sets *sets, double at)
{
	bool same = run->sets == sets->sets && run->at == at;
	for (uint32_t i = 0; same && i < sets->sets; i++)
		same = strcmp(run->set[i], sets->set[i]) == 0;
	return same;
}

/* Its number; finds it if an earlier row has it. */
static uint32_t run_of(struct draft *d, const struct sets *sets, double at)
{
	struct skep_published_experiment *e = d->e;
	for (uint32_t i = 0; i < e->runs; i++)
		if (same(&e->run[i], sets, at))
			return i;
	const char **set = calloc(sets->sets + 1, sizeof *set);
	if (set == NULL || !skep_grow(&e->run, e->runs, sizeof *e->run)) {
		free(set);
		skep_fail(d->r.diag, "not enough memory for the table %.400s", e->path);
		return 0;
	}
	memcpy(set, sets->set, sets->sets * sizeof *set);
	e->run[e->runs] = (struct skep_published_run){.set = set, .sets = sets->sets, .at = at, .value = NAN};
	return e->runs++;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static struct skep_published_row *add_row(struct draft *d)
{
	struct skep_published_experiment *e = d->e;
	if (!skep_grow(&e->row, e->rows, sizeof *e->row)) {
		skep_fail(d->r.diag, "not enough memory for the table %.400s", e->path);
		return NULL;
	}
	e->row[e->rows] = (struct skep_published_row){.low = NAN, .high = NAN, .ours = NAN};
	return &e->row[e->rows++];
}

static double figure(struct draft *d, const struct skep_yaml_node *map, const char *key)
{
	return skep_read_number(&d->r, map, key, 0, 1e12, NAN);
}

/* One figure, or the two ends of a range. */
static void read_figure(struct draft *d, const struct skep_yaml_node *map, struct skep_published_row *row)
{
	const struct skep_yaml_node *value = skep_read_any(&d->r, map, "published");
	if (value == NULL)
		return;
	if (skep_yaml_kind(value) != SKEP_YAML_LIST) {
		row->low = row->high = figure(d, value, NULL);
		return;
	}
	if (skep_yaml_length(value) != 2) {
		skep_reader_fail_value(&d->r, map, "published", "expected one number, or the two ends of a range");
		return;
	}
	row->low = figure(d, skep_yaml_item(value, 0), NULL);
	row->high = figure(d, skep_yaml_item(value, 1), NULL);
	if (!d->r.diag->set && row->low >= row->high)
		skep_reader_fail_value(&d->r, map, "published", "the range ends before it begins");
}

static void read_over(
	struct draft *d, const struct skep_yaml_node *map, const struct sets *all, struct skep_published_row *row)
{
	const struct skep_yaml_node *list = skep_read_list(&d->r, map, "over", false);
	if (skep_yaml_length(list) > SKEP_PUBLISHED_OVER_MAX) {
		skep_reader_fail(&d->r, map, "over", "the sum of at most %u runs", SKEP_PUBLISHED_OVER_MAX);
		return;
	}
	for (uint32_t i = 0; i < skep_yaml_length(list); i++) {
		const struct skep_yaml_node *item = skep_yaml_item(list, i);
		struct sets sets = *all;
		const char *name = skep_read_string(&d->r, item, NULL, NULL);
		if (!d->r.diag->set)
			add_named(d, item, name, &sets);
		if (!d->r.diag->set)
			row->over[row->overs++] = run_of(d, &sets, 0);
	}
}

/* A row of LEAST for each utilisation, with the figures in the same order. */
static void read_levels(struct draft *d, const struct skep_yaml_node *map, const struct skep_published_row *shared,
	const struct sets *sets)
{
	const struct skep_yaml_node *at = skep_read_list(&d->r, map, "at", true);
	const struct skep_yaml_node *published = skep_read_list(&d->r, map, "published", true);
	if (!d->r.diag->set && skep_yaml_length(at) != skep_yaml_length(published))
		skep_reader_fail(&d->r, map, "published", "expected a figure for each of the %u values of `at`",
			skep_yaml_length(at));
	for (uint32_t i = 0; !d->r.diag->set && i < skep_yaml_length(at); i++) {
		double part = skep_read_quantity(&d->r, skep_yaml_item(at, i), NULL, SKEP_PART, 0.01, 0.999, NAN);
		double value = figure(d, skep_yaml_item(published, i), NULL);
		uint32_t run = d->r.diag->set ? 0 : run_of(d, sets, part);
		struct skep_published_row *row = d->r.diag->set ? NULL : add_row(d);
		if (row == NULL)
			return;
		*row = *shared;
		row->low = row->high = value;
		row->run = run;
		snprintf(row->name, sizeof row->name, "%.100s, %g %%", shared->name, 100 * part);
	}
}

static void read_row(struct draft *d, const struct skep_yaml_node *map, const struct sets *all)
{
	struct skep_published_experiment *e = d->e;
	struct skep_published_row row = {.low = NAN, .high = NAN, .ours = NAN};
	struct sets sets = *all;
	snprintf(row.name, sizeof row.name, "%.100s", skep_read_string(&d->r, map, "name", NULL));
	row.place = skep_read_string(&d->r, map, "place", "");
	row.note = skep_read_string(&d->r, map, "note", "");
	row.fitted = skep_read_bool(&d->r, map, "fitted", false);
	const char *named = skep_read_string(&d->r, map, "run", "");
	if (named[0] != '\0' && !d->r.diag->set)
		add_named(d, skep_read_any(&d->r, map, "run"), named, &sets);
	add_sets(d, skep_read_list(&d->r, map, "set", false), &sets);
	if (e->metric == SKEP_PUBLISHED_LEAST) {
		read_levels(d, map, &row, &sets);
		skep_reader_close_map(&d->r, map);
		return;
	}
	read_figure(d, map, &row);
	read_over(d, map, all, &row);
	skep_reader_close_map(&d->r, map);
	if (!d->r.diag->set && isnan(row.low) && row.note[0] == '\0')
		skep_reader_fail(&d->r, map, NULL, "a row without `published` needs a `note` that says why");
	row.run = d->r.diag->set ? 0 : run_of(d, &sets, 0);
	struct skep_published_row *place = d->r.diag->set ? NULL : add_row(d);
	if (place != NULL)
		*place = row;
}

static void read_rows(struct draft *d, const struct skep_yaml_node *root)
{
	struct sets all = {0};
	add_sets(d, skep_read_list(&d->r, root, "set", false), &all);
	const struct skep_yaml_node *list = skep_read_list(&d->r, root, "rows", true);
	if (!d->r.diag->set && (skep_yaml_length(list) == 0 || skep_yaml_length(list) > ROWS_MAX))
		skep_reader_fail(&d->r, root, "rows", "expected 1 to %u rows", ROWS_MAX);
	for (uint32_t i = 0; !d->r.diag->set && i < skep_yaml_length(list); i++)
		read_row(d, skep_yaml_item(list, i), &all);
}

/* ---- the file ------------------------------------------------------------------------------------------------------ */

static void read_vary(struct draft *d, const struct skep_yaml_node *root)
{
	bool least = d->e->metric == SKEP_PUBLISHED_LEAST;
	const struct skep_yaml_node *map = skep_read_map(&d->r, root, "vary", least);
	if (!least && map != NULL)
		skep_reader_fail(&d->r, root, "vary", "is of `metric: least` alone");
	if (!least || d->r.diag->set)
		return;
	d->e->vary = skep_read_string(&d->r, map, "key", NULL);
	d->e->from = skep_read_number(&d->r, map, "from", 1e-9, 1e12, NAN);
	d->e->to = skep_read_number(&d->r, map, "to", 1e-9, 1e12, NAN);
	skep_reader_close_map(&d->r, map);
	if (!d->r.diag->set && d->e->from >= d->e->to)
		skep_reader_fail_value(&d->r, map, "to", "the range ends before it begins");
}

static void find_scenario(struct draft *d, const struct skep_yaml_node *root)
{
	struct skep_published_experiment *e = d->e;
	e->written = skep_read_string(&d->r, root, "scenario", NULL);
	if (!d->r.diag->set && !skep_file_find(NULL, e->path, e->written, e->scenario, sizeof e->scenario))
		skep_reader_fail_value(&d->r, root, "scenario",
			"there is no file `%.200s` here, beside this table, or in a folder above it", e->written);
}

static void read_table(struct draft *d)
{
	struct skep_published_experiment *e = d->e;
	const struct skep_yaml_node *root = skep_yaml_root(d->r.yaml);
	e->name = skep_read_string(&d->r, root, "name", NULL);
	e->title = skep_read_string(&d->r, root, "title", NULL);
	e->paper = skep_read_string(&d->r, root, "paper", NULL);
	e->place = skep_read_string(&d->r, root, "place", "");
	e->unit = skep_read_string(&d->r, root, "unit", "");
	e->note = skep_read_string(&d->r, root, "note", "");
	e->metric = (enum skep_published_metric)skep_read_choice(&d->r, root, "metric", skep_published_metrics, -1);
	e->bar = skep_read_quantity(&d->r, root, "bar", SKEP_PART, 0, 10, NAN);
	e->slow = skep_read_bool(&d->r, root, "slow", false);
	e->seeds = (uint32_t)skep_read_integer(&d->r, root, "seeds", 1, 1000, 1);
	find_scenario(d, root);
	read_vary(d, root);
	d->runs = skep_read_map(&d->r, root, "runs", false);
	if (!d->r.diag->set)
		read_rows(d, root);
	skep_reader_close_map(&d->r, root);
}

bool skep_published_read(const char *path, struct skep_published_experiment *ret, struct skep_diag *reterr)
{
	size_t size;
	*ret = (struct skep_published_experiment){0};
	snprintf(ret->path, sizeof ret->path, "%s", path);
	if (!skep_file_read(path, SKEP_FILE_BYTES_MAX, &ret->text, &size, reterr))
		return false;
	ret->yaml = skep_yaml_parse(path, ret->text, size, reterr);
	struct draft draft = {.r = {ret->yaml, reterr}, .e = ret};
	if (ret->yaml != NULL)
		read_table(&draft);
	if (reterr->set)
		skep_published_finish(ret);
	return !reterr->set;
}

void skep_published_finish(struct skep_published_experiment *e)
{
	for (uint32_t i = 0; i < e->runs; i++)
		free(e->run[i].set);
	free(e->run);
	free(e->row);
	skep_yaml_destroy(e->yaml);
	free(e->text);
	*e = (struct skep_published_experiment){0};
}

/* ---- what comes of it ---------------------------------------------------------------------------------------------- */

void skep_published_settle(struct skep_published_experiment *e)
{
	for (uint32_t i = 0; i < e->rows; i++) {
		struct skep_published_row *row = &e->row[i];
		double sum = row->overs == 0 ? 1 : 0;
		for (uint32_t k = 0; k < row->overs; k++)
			sum += e->run[row->over[k]].value;
		row->ours = e->run[row->run].value / sum;
	}
}

bool skep_published_judged(const struct skep_published_row *row)
{
	return !row->fitted && !isnan(row->low) && !isnan(row->ours);
}

bool skep_published_within(const struct skep_published_experiment *e, const struct skep_published_row *row)
{
	return row->ours >= row->low * (1 - e->bar) && row->ours <= row->high * (1 + e->bar);
}

double skep_published_ratio(const struct skep_published_row *row)
{
	double nearest = row->ours < row->low ? row->low : row->ours > row->high ? row->high : row->ours;
	return row->low > 0 ? row->ours / nearest : NAN;
}
