/* SPDX-License-Identifier: Apache-2.0
 *
 * planned.c - see planned.h. Whether a value is one that its key can have is not known here: it may be so only together with
 * others (planning/problem/tried.c). `skep plan` reads the scenario with each choice and leaves out what is refused.
 */
#include "scenarios/read/planned.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

#define SEEDS_MAX 1000

static const char *const AIM[] = {"throughput", "time-to-loss", "cost-to-loss", "dt-fm", NULL};

static const char *const METHOD[] = {"search", "pipedream", "pipedream-tool", "alpa", NULL};

const char *skep_planned_method_name(enum skep_planned_method method)
{
	return METHOD[method];
}

const char *skep_aim_name(enum skep_aim aim)
{
	return AIM[aim];
}

void skep_planned_destroy(struct skep_planned *planned)
{
	if (!planned)
		return;
	skep_vary_finish(&planned->free);
	free(planned);
}

/* ---- one key ---------------------------------------------------------------------------------------------------- */

/* Takes the text over. False: no memory. */
static bool add_value(struct skep_vary_key *key, char *text)
{
	if (!text || !skep_grow(&key->value, key->values, sizeof *key->value)) {
		free(text);
		return false;
	}
	key->value[key->values++] = text;
	return true;
}

/* NULL: no memory, or no room, of which there is enough for `auto`. */
static struct skep_vary_key *add_key(struct skep_vary *free_keys, const char *name)
{
	if (free_keys->keys == SKEP_VARY_KEYS_MAX)
		return NULL;
	struct skep_vary_key *key = &free_keys->key[free_keys->keys];
	key->key = strdup(name);
	free_keys->keys += key->key != NULL;
	return key->key ? key : NULL;
}

/* What is not a setting: these say which experiment it is, what is wanted of it, and what is looked for anyway. */
static bool is_no_setting(const char *key)
{
	static const char *const not [] = {
		"name", "seed", "plan", "train.until", "train.target_loss", "train.law", "cluster.allocation", NULL};
	for (size_t i = 0; not [i]; i++) {
		size_t length = strlen(not [i]);
		if (strncmp(key, not [i], length) == 0 && (key[length] == '\0' || key[length] == '.'))
			return true;
	}
	return false;
}

static bool has_value(const struct skep_vary_key *key, const char *text)
{
	for (uint32_t i = 0; i < key->values; i++)
		if (strcmp(key->value[i], text) == 0)
			return true;
	return false;
}

static void read_key(
	struct skep_reader *r, const struct skep_yaml_node *list, const char *name, struct skep_vary *free_keys)
{
	if (skep_yaml_kind(list) != SKEP_YAML_LIST || skep_yaml_length(list) == 0) {
		skep_reader_fail(
			r, list, NULL, "plan.search: expected the values that %.100s may have, as in [1, 2, 4]", name);
		return;
	}
	if (is_no_setting(name)) {
		skep_reader_fail(
			r, list, NULL, "plan.search: %.100s is no setting that could be chosen; leave it out", name);
		return;
	}
	if (free_keys->keys == SKEP_VARY_KEYS_MAX) {
		skep_reader_fail(r, list, NULL, "plan.search: at most %u keys can be free", SKEP_VARY_KEYS_MAX);
		return;
	}
	struct skep_vary_key *key = add_key(free_keys, name);
	bool ok = key != NULL;
	for (uint32_t i = 0; ok && !r->diag->set && i < skep_yaml_length(list); i++) {
		char *text = skep_yaml_flow(skep_yaml_item(list, i));
		if (text && has_value(key, text))
			skep_reader_fail(r, skep_yaml_item(list, i), NULL,
				"plan.search: %.100s has the value %.60s twice", name, text);
		ok = add_value(key, text);
	}
	if (!ok)
		skep_reader_fail(r, list, NULL, "not enough memory for so many values");
}

/* Does the value of a group write what stands at this path in it? */
static bool writes(struct skep_reader *r, const struct skep_yaml_node *value, const char *path)
{
	const char *name;
	const struct skep_yaml_node *entry;
	for (uint32_t i = 0; (entry = skep_read_entry(r, value, i, &name)) != NULL; i++) {
		size_t length = strlen(name);
		if (strncmp(path, name, length) == 0 &&
			(path[length] == '\0' || (path[length] == '.' && writes(r, entry, path + length + 1))))
			return true;
	}
	return false;
}

/* A key that a group's values write, and that is free by itself, would have two values: the group's is never seen. */
static void refuse_twice_free(
	struct skep_reader *r, const struct skep_yaml_node *list, const char *group, const struct skep_vary *free_keys)
{
	size_t length = strlen(group);
	for (uint32_t i = 0; i < free_keys->keys; i++) {
		const char *key = free_keys->key[i].key;
		if (strncmp(key, group, length) != 0 || key[length] != '.')
			continue;
		for (uint32_t v = 0; v < skep_yaml_length(list); v++)
			if (writes(r, skep_yaml_item(list, v), key + length + 1))
				skep_reader_fail(r, skep_yaml_item(list, v), NULL,
					"plan.search: this value of %.60s has %.100s, which is free by itself: leave out either",
					group, key);
	}
}

/* ---- auto ------------------------------------------------------------------------------------------------------- */

struct automatic {
	struct skep_reader *r;
	const struct skep_yaml_node *root;
	struct skep_planned *planned;
	bool ok; /* memory has lasted */
};

/* Neither the scenario nor the search says what it is to be. */
static bool is_open(struct automatic *a, const char *group, const char *key)
{
	const struct skep_yaml_node *map = skep_read_map(a->r, a->root, group, false);
	char name[128];
	snprintf(name, sizeof name, "%s.%s", group, key);
	for (uint32_t i = 0; i < a->planned->free.keys; i++)
		if (strcmp(a->planned->free.key[i].key, name) == 0 || strcmp(a->planned->free.key[i].key, group) == 0)
			return false;
	return !skep_read_has(a->r, map, key);
}

static void free_key(struct automatic *a, const char *name, const char *const values[])
{
	struct skep_vary_key *key = add_key(&a->planned->free, name);
	if (!key) /* the user has freed so many that there is no room: these come first */
		return;
	for (size_t i = 0; a->ok && values[i]; i++)
		a->ok = add_value(key, strdup(values[i]));
}

/* The group as it is, with the method beside what it says; every choice of it is whole, since `every` comes with some alone. */
static void free_method(struct automatic *a)
{
	static const char *const method[] = {"method: step", "method: step, delayed: true", "method: diloco, every: 8",
		"method: diloco, every: 32", "method: diloco, every: 128"};
	const struct skep_yaml_node *sync = skep_read_map(a->r, a->root, "sync", false);
	char *own = sync ? skep_yaml_flow(sync) : strdup("{}");
	struct skep_vary_key *key = own ? add_key(&a->planned->free, "sync") : NULL;
	a->ok = own != NULL;
	for (size_t i = 0; a->ok && key && i < sizeof method / sizeof method[0]; i++) {
		char *text = NULL;
		size_t length = strlen(own);
		if (asprintf(&text, "%.*s%s%s}", (int)(length - 1), own, length > 2 ? ", " : "", method[i]) < 0)
			text = NULL;
		a->ok = add_value(key, text);
	}
	free(own);
}

static void free_automatically(struct automatic *a, const struct skep_scenario *s)
{
	static const char *const wirings[] = {"uniform", "throughput", "latency", NULL};
	static const char *const collectives[] = {"ring", "halving-doubling", "hierarchical", "butterfly", NULL};
	bool learns = a->planned->aim != SKEP_AIM_THROUGHPUT, swarm = !skep_plan_fixed(&s->plan);
	bool sums = is_open(a, "sync", "collective") && !s->collectives_as_flows;
	char usual[16], twice[16];
	snprintf(usual, sizeof usual, "%u", s->plan.in_flight);
	snprintf(twice, sizeof twice, "%u", 2 * s->plan.in_flight);
	const char *const in_flight[] = {usual, twice, NULL};
	if (learns && swarm && is_open(a, "sync", "method") && is_open(a, "sync", "delayed") &&
		is_open(a, "sync", "every"))
		free_method(a);
	if (swarm && is_open(a, "schedule", "wiring"))
		free_key(a, "schedule.wiring", wirings);
	if (swarm && is_open(a, "schedule", "in_flight"))
		free_key(a, "schedule.in_flight", in_flight);
	if (sums)
		free_key(a, "sync.collective", collectives);
	if (!a->ok)
		skep_reader_fail(a->r, a->root, "plan", "not enough memory for so many values");
}

/* ---- the cut ---------------------------------------------------------------------------------------------------- */

bool skep_planned_cuts(const struct skep_scenario *s)
{
	return s->planned ? s->planned->cuts : !s->model.cut;
}

static bool is_free(const struct skep_planned *planned, const char *key)
{
	for (uint32_t i = 0; i < planned->free.keys; i++)
		if (strcmp(planned->free.key[i].key, key) == 0)
			return true;
	return false;
}

static void read_cut(struct skep_reader *r, const struct skep_yaml_node *map, struct skep_scenario *s)
{
	static const char *const words[] = {"auto", "fixed", NULL};
	struct skep_planned *planned = s->planned;
	bool said = skep_read_has(r, map, "cut"), listed = is_free(planned, "model.cut") || is_free(planned, "model");
	bool finds = skep_read_choice(r, map, "cut", words, 0) == 0;
	planned->says_cut = said && finds;
	planned->cuts = finds && !s->model.cut && !listed;
	if (r->diag->set || !planned->says_cut)
		return;
	if (s->model.cut)
		skep_reader_fail(r, map, "cut",
			"plan.cut: `auto` looks for the layers of each stage, and model.cut says them: leave out either, or "
			"take `fixed`");
	else if (listed)
		skep_reader_fail(r, map, "cut",
			"plan.cut: `auto` looks for the layers of each stage, and plan.search has values of model.cut to "
			"choose from: leave out either");
}

/* ---- the group -------------------------------------------------------------------------------------------------- */

static void read_search(struct skep_reader *r, const struct skep_yaml_node *root, const struct skep_yaml_node *map,
	struct skep_scenario *s)
{
	struct skep_planned *planned = s->planned;
	const struct skep_yaml_node *search = NULL;
	const char *name = NULL;
	if (skep_yaml_kind(skep_read_any(r, map, "search")) == SKEP_YAML_SCALAR) {
		static const char *const words[] = {"auto", NULL};
		planned->automatic = skep_read_choice(r, map, "search", words, 0) == 0;
	} else {
		search = skep_read_map(r, map, "search", false);
		planned->automatic = skep_read_bool(r, search, "auto", false);
	}
	for (uint32_t i = 0; search && !r->diag->set; i++) {
		const struct skep_yaml_node *entry = skep_read_entry(r, search, i, &name);
		if (!entry)
			break;
		if (strcmp(name, "auto") != 0)
			read_key(r, entry, name, &planned->free);
	}
	for (uint32_t i = 0; search && !r->diag->set; i++) {
		const struct skep_yaml_node *entry = skep_read_entry(r, search, i, &name);
		if (!entry)
			break;
		refuse_twice_free(r, entry, name, &planned->free);
	}
	struct automatic a = {.r = r, .root = root, .planned = planned, .ok = true};
	if (!r->diag->set && planned->automatic)
		free_automatically(&a, s);
	double points = 1;
	for (uint32_t i = 0; i < planned->free.keys; i++)
		points *= planned->free.key[i].values;
	if (!r->diag->set && points > SKEP_VARY_COMBINATIONS_MAX)
		skep_reader_fail(r, map, "search",
			"plan.search: %.3g combinations, at most %u: free fewer keys or values", points,
			SKEP_VARY_COMBINATIONS_MAX);
}

static void check_aim(struct skep_reader *r, const struct skep_yaml_node *map, const struct skep_scenario *s)
{
	double usd_per_h;
	const char *name = AIM[s->planned->aim];
	if (r->diag->set || s->planned->aim == SKEP_AIM_THROUGHPUT)
		return;
	if (isnan(s->target_loss))
		skep_reader_fail(r, map, "objective", "plan.objective: %s to which loss? Add `train.until.loss`", name);
	else if (!s->law)
		skep_reader_fail(r, map, "objective",
			"plan.objective: %s needs a law of the losses: `skep fit -o FILE` makes one of runs, and "
			"`arithmetic: law` takes it",
			name);
	else if (s->planned->aim == SKEP_AIM_COST && !skep_scenario_price(s, &usd_per_h))
		skep_reader_fail(r, map, "objective",
			"plan.objective: %s needs the `price` or `prices` of all machines of the topology", name);
}

/* A publication's planner says all that `search` would look for. */
static void read_method(struct skep_reader *r, const struct skep_yaml_node *map, struct skep_scenario *s)
{
	struct skep_planned *planned = s->planned;
	planned->method = (enum skep_planned_method)skep_read_choice(r, map, "method", METHOD, SKEP_PLANNED_SEARCH);
	if (planned->dtfm && planned->free.keys > 0)
		skep_reader_fail(r, map, "objective",
			"plan.objective: dt-fm knows links alone and chooses no settings: leave out plan.search");
	else if (planned->dtfm && planned->method != SKEP_PLANNED_SEARCH)
		skep_reader_fail(r, map, "objective",
			"plan.objective: dt-fm is for the searches, and plan.method has an objective of its own: leave "
			"out either");
	if (r->diag->set || planned->method == SKEP_PLANNED_SEARCH)
		return;
	const char *name = METHOD[planned->method];
	if (planned->free.keys > 0)
		skep_reader_fail(r, map, "method",
			"plan.method: %s chooses no settings: leave out plan.search, or take `search`", name);
	else if (s->model.cut)
		skep_reader_fail(r, map, "method",
			"plan.method: %s says the layers of each stage, and so does model.cut: leave out either", name);
	else if (!planned->cuts)
		skep_reader_fail(r, map, "method",
			"plan.method: %s says the layers of each stage: leave out plan.cut, or take `search`", name);
}

void skep_planned_read(struct skep_reader *r, const struct skep_yaml_node *root, struct skep_scenario *s)
{
	const struct skep_yaml_node *map = skep_read_map(r, root, "plan", false);
	if (r->diag->set || !map)
		return;
	s->planned = calloc(1, sizeof *s->planned);
	if (!s->planned) {
		skep_reader_fail(r, root, "plan", "not enough memory for this scenario");
		return;
	}
	uint32_t objective = (uint32_t)skep_read_choice(r, map, "objective", AIM, SKEP_AIM_THROUGHPUT);
	s->planned->dtfm = objective == SKEP_AIMS;
	s->planned->aim = s->planned->dtfm ? SKEP_AIM_THROUGHPUT : (enum skep_aim)objective;
	s->planned->seeds = (uint32_t)skep_read_integer(r, map, "seeds", 1, SEEDS_MAX, 1);
	if (!r->diag->set && s->seed > (uint64_t)INT64_MAX - (s->planned->seeds - 1))
		skep_reader_fail(r, map, "seeds",
			"plan.seeds: %u of them, from seed %llu on: there is none above 9223372036854775807; take a smaller "
			"seed, or fewer",
			s->planned->seeds, (unsigned long long)s->seed);
	s->planned->extrapolate = skep_read_bool(r, map, "extrapolate", true);
	check_aim(r, map, s);
	read_search(r, root, map, s);
	read_cut(r, map, s);
	read_method(r, map, s);
	skep_reader_close_map(r, map);
}
