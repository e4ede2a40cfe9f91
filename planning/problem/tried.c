/* SPDX-License-Identifier: Apache-2.0
 *
 * tried.c - see tried.h. A value that is refused by itself may be right beside another: `sync.every` is unknown until
 * sync.method is diloco. So it is tried in combinations too, all of them if there are few, and one in which it can be acquits
 * it. None does where its type or range is wrong.
 */
#include "planning/problem/tried.h"

#include <stdlib.h>
#include <string.h>

#include "core/random.h"
#include "planning/problem/choices.h"

#define COMBINATIONS_MOST 64u

struct trying {
	const struct skep_scenario *scenario;
	const struct skep_scenario_options *options;
	struct skep_choices choices; /* of all keys, whatever is fixed */
	struct skep_reader r;
};

/* With so many more assignments. What is wrong is in *ret; not set: nothing. */
static void read_with(const struct trying *t, char *const *more, uint32_t mores, struct skep_diag *ret)
{
	struct skep_scenario *s = malloc(sizeof *s);
	struct skep_scenario_options o = {.any_memory = true};
	uint32_t sets = t->options ? t->options->sets : 0;
	const char **set = malloc((sets + mores) * sizeof *set);
	*ret = (struct skep_diag){0};
	o.has_seed = t->options && t->options->has_seed;
	o.seed = o.has_seed ? t->options->seed : 0;
	if (s && set) {
		for (uint32_t i = 0; i < sets + mores; i++)
			set[i] = i < sets ? t->options->set[i] : more[i - sets];
		o.set = set;
		o.sets = sets + mores;
		if (skep_scenario_read_text(
			    t->scenario->path, t->scenario->source, strlen(t->scenario->source), &o, s, ret))
			skep_scenario_finish(s);
	} else {
		skep_diag_set(ret, t->scenario->path, 0, 0, NULL, "not enough memory to try the values of plan.search");
	}
	free(set);
	free(s);
}

/* Is it what this assignment sets that is wrong, by itself? */
static bool is_of(const struct skep_diag *diag, const char *assignment)
{
	struct skep_diag named = {0};
	char option[sizeof diag->file];
	snprintf(option, sizeof option, "--set %s", assignment);
	skep_diag_set(&named, option, 0, 0, NULL, "%s", "");
	return diag->of_value && strcmp(diag->file, named.file) == 0;
}

/* Is it a file that is named? Asked where but one value is changed. */
static bool is_elsewhere(const struct trying *t, const struct skep_diag *diag)
{
	return strcmp(diag->file, t->scenario->path) != 0 && strncmp(diag->file, "--set ", 6) != 0;
}

/* Reads one combination. True: it can be. */
static bool read_point(const struct trying *t, uint32_t point, struct skep_diag *ret)
{
	char *set[SKEP_VARY_KEYS_MAX] = {NULL};
	bool whole = true;
	for (uint32_t k = 0; k < t->choices.keys; k++)
		whole = (set[k] = skep_choices_assignment(&t->choices, point, k)) != NULL && whole;
	*ret = (struct skep_diag){0};
	if (whole)
		read_with(t, set, t->choices.keys, ret);
	for (uint32_t k = 0; k < t->choices.keys; k++)
		free(set[k]);
	return whole && !ret->set;
}

/* Is there a combination with this value that can be read? Looks at those whose nth key has this digit; what is wrong with
 * the value itself in one of them is left in *wrong, unless something is there. */
static bool can_be(
	const struct trying *t, uint32_t nth, uint32_t digit, const char *assignment, struct skep_diag *wrong)
{
	const struct skep_choices *c = &t->choices;
	bool all = c->points <= COMBINATIONS_MOST, can = false;
	uint32_t tries = all ? c->points : COMBINATIONS_MOST;
	uint64_t state = skep_mix(nth);
	for (uint32_t i = 0; i < tries && !can; i++) {
		struct skep_diag diag;
		uint32_t point = all ? i : skep_random_below(&state, c->points);
		if (all && skep_choices_digit(c, point, nth) != digit)
			continue;
		can = read_point(t, skep_choices_with(c, point, nth, digit), &diag);
		if (diag.set && !wrong->set && is_of(&diag, assignment))
			*wrong = diag;
	}
	return can;
}

static void show(struct trying *t, const struct skep_yaml_node *value, const struct skep_diag *diag)
{
	if (!is_elsewhere(t, diag))
		skep_reader_fail(&t->r, value, NULL, "plan.search: %s", diag->message);
	else if (diag->line > 0)
		skep_reader_fail(&t->r, value, NULL, "plan.search: %.150s:%u:%u: %s", diag->file, diag->line,
			diag->column, diag->message);
	else
		skep_reader_fail(&t->r, value, NULL, "plan.search: %.150s: %s", diag->file, diag->message);
}

static void try_value(
	struct trying *t, const char *key, const struct skep_yaml_node *value, uint32_t nth, uint32_t digit)
{
	char *text = skep_yaml_flow(value), *set = NULL;
	struct skep_diag alone, wrong = {0};
	if (!text || asprintf(&set, "%s=%s", key, text) < 0) {
		skep_reader_fail(&t->r, value, NULL, "not enough memory to try this");
		free(text);
		return;
	}
	read_with(t, &set, 1, &alone);
	if (alone.set && (is_of(&alone, set) || is_elsewhere(t, &alone)))
		wrong = alone;
	if (alone.set && !can_be(t, nth, digit, set, &wrong) && wrong.set)
		show(t, value, &wrong);
	free(set);
	free(text);
}

/* Which of the choices has this name. */
static uint32_t find(const struct skep_choices *c, const char *name)
{
	uint32_t nth = 0;
	while (nth < c->keys && strcmp(c->free->key[c->key[nth]].key, name) != 0)
		nth++;
	return nth;
}

static void try_all(struct trying *t)
{
	const struct skep_yaml_node *plan = skep_read_map(&t->r, skep_yaml_root(t->r.yaml), "plan", false);
	const struct skep_yaml_node *search = skep_read_any(&t->r, plan, "search");
	const struct skep_yaml_node *list;
	const char *name;
	for (uint32_t i = 0; skep_yaml_kind(search) == SKEP_YAML_MAP; i++) {
		list = skep_read_entry(&t->r, search, i, &name);
		uint32_t nth = list ? find(&t->choices, name) : 0;
		if (!list)
			break;
		for (uint32_t v = 0; nth < t->choices.keys && v < skep_yaml_length(list) && !t->r.diag->set; v++)
			try_value(t, name, skep_yaml_item(list, v), nth, v);
	}
}

/* The file with what --set makes of it, so that what is wrong is shown where it was written. NULL: reterr says why. */
static struct skep_yaml *open_source(
	const struct skep_scenario *s, const struct skep_scenario_options *options, struct skep_diag *reterr)
{
	struct skep_yaml *yaml = skep_yaml_parse(s->path, s->source, strlen(s->source), reterr);
	for (uint32_t i = 0; yaml && options && i < options->sets; i++)
		skep_yaml_override(yaml, options->set[i], reterr);
	return yaml;
}

void skep_planning_refuse_search(const struct skep_scenario *s, const struct skep_scenario_options *options,
	const char *message, struct skep_diag *reterr)
{
	struct skep_reader r = {open_source(s, options, reterr), reterr};
	if (r.yaml)
		skep_reader_fail(&r, skep_read_map(&r, skep_yaml_root(r.yaml), "plan", false), "search", "%s", message);
	skep_yaml_destroy(r.yaml);
}

bool skep_planning_try_values(
	struct skep_scenario *s, const struct skep_scenario_options *options, struct skep_diag *reterr)
{
	struct trying t = {.scenario = s, .options = options, .r = {NULL, reterr}};
	skep_choices_make(s->planned, NULL, 0, &t.choices);
	if (t.choices.points == 0)
		return true;
	t.r.yaml = open_source(s, options, reterr);
	if (t.r.yaml)
		try_all(&t);
	skep_yaml_destroy(t.r.yaml);
	if (reterr->set)
		skep_scenario_finish(s);
	return !reterr->set;
}
