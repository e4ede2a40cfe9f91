/* SPDX-License-Identifier: Apache-2.0
 *
 * init.c - see groups.h. Weights are opened here, so that a file that does not fit the model is refused before anything starts.
 */
#include "scenarios/read/groups.h"

#include <assert.h>
#include <stdlib.h>

#include "models/stage/stage_weights.h"
#include "models/weights/safetensors.h"

enum { CANDIDATES_MOST = 64, STEPS_MOST = 10000 };
static_assert(CANDIDATES_MOST <= UINT8_MAX, "a note names its candidate in 8 bits");

/* By enum skep_init. */
static const char *const methods[] = {
	"default", "normal", "xavier_uniform", "xavier_normal", "kaiming_uniform", "kaiming_normal", NULL};

const char *skep_init_name(enum skep_init init)
{
	return methods[init];
}

/* train.init.method: of torch.nn.init. */
static void read_method(struct skep_reader *r, const struct skep_yaml_node *map, struct skep_model *model)
{
	model->init = (enum skep_init)skep_read_choice(r, map, "method", methods, SKEP_INIT_DEFAULT);
	if (model->init == SKEP_INIT_NORMAL)
		model->init_deviation = (float)skep_read_number(r, map, "deviation", 1e-6, 100, 0.02);
	else if (skep_read_has(r, map, "deviation"))
		skep_reader_fail(r, map, "deviation",
			"train.init.deviation: is of `method: normal`; the others have theirs by the shape of each matrix");
}

/* The keys that ask for several candidates; returns whether they do. */
static bool read_candidates(struct skep_reader *r, const struct skep_yaml_node *map, struct skep_scenario *s)
{
	if (!skep_read_has(r, map, "candidates")) {
		if (skep_read_has(r, map, "steps") || skep_read_has(r, map, "select"))
			skep_reader_fail(r, map, skep_read_has(r, map, "steps") ? "steps" : "select",
				"train.init: `steps` and `select` are about `candidates`, which is missing");
		return false;
	}
	s->plan.candidates.count = (uint32_t)skep_read_integer(r, map, "candidates", 2, CANDIDATES_MOST, INT64_MIN);
	uint32_t steps = (uint32_t)skep_read_integer(r, map, "steps", 2, STEPS_MOST, INT64_MIN);
	s->plan.candidates.rounds = skep_plan_rounds_of(&s->plan, steps);
	int64_t keep = skep_read_integer(r, map, "select", 1, CANDIDATES_MOST, 1);
	if (!r->diag->set && keep != 1)
		skep_reader_fail(r, map, "select",
			"train.init.select: a run goes on with one set of parameters, so one candidate is kept: expected 1");
	return true;
}

static void open_weights(struct skep_reader *r, const struct skep_yaml_node *map, const char *path,
	struct skep_scenario *s, FILE *details)
{
	struct skep_diag why = skep_diag_beside(r->diag);
	char *list = NULL;
	s->weights = skep_model_weights_open(&s->model, path, &list, &why);
	if (s->weights == NULL)
		skep_reader_fail(r, map, "weights", "train.init.weights: %.200s: %.250s", why.file, why.message);
	else
		snprintf(s->weights_path, sizeof s->weights_path, "%s", skep_safetensors_path(s->weights));
	if (list != NULL && s->weights == NULL && details != NULL)
		fputs(list, details);
	free(list);
}

void skep_init_read(struct skep_reader *r, const struct skep_yaml_node *train, struct skep_scenario *s, FILE *details)
{
	char path[sizeof s->weights_path];
	const struct skep_yaml_node *map = skep_read_map(r, train, "init", false);
	if (!map)
		return;
	bool tries = read_candidates(r, map, s), draws = skep_read_has(r, map, "method");
	bool from_file = skep_read_has(r, map, "weights");
	read_method(r, map, &s->model);
	const char *name = skep_read_string(r, map, "weights", from_file ? NULL : "");
	skep_reader_close_map(r, map);
	if (r->diag->set || !from_file)
		return;
	if (draws)
		skep_reader_fail(r, map, "method",
			"train.init.method: with `weights` first parameters come from a file; leave out either");
	else if (tries)
		skep_reader_fail(r, map, "weights",
			"train.init.weights: candidates draw their first parameters, so there is nothing to try with those "
			"of a file; leave out either");
	else if (s->model.architecture == SKEP_ARCHITECTURE_NONE)
		skep_reader_fail(r, map, "weights",
			"train.init.weights: only models with an architecture have weights in files, and %.60s has "
			"none",
			s->model.name);
	else if (s->model.shared > 1)
		skep_reader_fail(r, map, "weights",
			"train.init.weights: blocks of %.60s share their parameters, those of a file do not",
			s->model.name);
	else if (!skep_read_find(r, map, "weights", s->path, name, path, sizeof path))
		skep_reader_fail_value(r, map, "weights", "train.init.weights: no file or folder `%.200s`", name);
	else if (s->arithmetic == SKEP_ARITHMETIC_REAL)
		open_weights(r, map, path, s, details);
}

/* ---- candidates, when all is read ------------------------------------------------------------------------------------ */

static uint32_t smallest_stage(const struct skep_plan *plan, uint32_t *ret_workers)
{
	uint32_t smallest = 0;
	*ret_workers = UINT32_MAX;
	for (uint32_t stage = 0; stage < plan->stages; stage++) {
		uint32_t workers = 0;
		for (uint32_t i = 0; i < plan->workers; i++)
			workers += plan->first_stage_of[i] == stage;
		smallest = workers < *ret_workers ? stage : smallest;
		*ret_workers = workers < *ret_workers ? workers : *ret_workers;
	}
	return smallest;
}

/* Why not, or NULL. */
static const char *hindrance(const struct skep_scenario *s)
{
	const struct skep_plan *plan = &s->plan;
	if (skep_plan_fixed(plan))
		return "in fixed pipelines every worker has its place for ever; take `schedule.pipeline: swarm`";
	if (plan->async.on)
		return "with `sync.method: async` workers do not wait for each other, and candidates have to be compared when "
		       "all have gone as far; take another one";
	if (plan->on_loss == SKEP_ON_LOSS_VOID)
		return "with `schedule.on_loss: void` a lost worker voids the round for all, and in a trial it ends its "
		       "candidate alone; take `on_loss: report`";
	if (plan->gossip)
		return "with `sync.method: gossip` the workers of a candidate hold different parameters, and one of them "
		       "would be kept; take another one";
	if (plan->delayed)
		return "with `sync.delayed` rounds overlap, as they do with `sync.overlap_steps`, and candidates have to be "
		       "compared between two rounds; leave out either";
	if (s->zero > 0)
		return "with `sync.zero` a worker holds a part of its stage, and the parts would be of several candidates; "
		       "leave out either";
	if (s->arithmetic != SKEP_ARITHMETIC_REAL)
		return "they are compared by their losses, so there have to be some: take `arithmetic: real`";
	return NULL;
}

void skep_candidates_check(struct skep_reader *r, const struct skep_yaml_node *train, const struct skep_scenario *s)
{
	const struct skep_plan *plan = &s->plan;
	if (r->diag->set || !skep_plan_has_candidates(plan))
		return;
	const struct skep_yaml_node *map = skep_read_map(r, train, "init", false);
	const char *why = hindrance(s);
	uint32_t workers, stage = smallest_stage(plan, &workers);
	if (why)
		skep_reader_fail(r, map, "candidates", "train.init.candidates: %s", why);
	else if (plan->candidates.count > workers)
		skep_reader_fail(r, map, "candidates",
			"train.init.candidates: each needs a worker in every stage, and stage %u has %u: expected at most %u",
			stage, workers, workers);
	else if (plan->candidates.rounds < 2)
		skep_reader_fail(r, map, "steps",
			"train.init.steps: a slope takes two rounds, and a round has %u steps (sync.every): expected at least %u",
			skep_plan_steps(plan, 0), skep_plan_steps(plan, 0) + 1);
	else if (plan->candidates.rounds >= plan->rounds)
		skep_reader_fail(r, map, "steps",
			"train.init.steps: the run has %u steps, and none would be left for the one that is kept: expected "
			"fewer",
			(uint32_t)skep_plan_steps_before(plan, plan->rounds));
}
