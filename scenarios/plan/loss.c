/* SPDX-License-Identifier: Apache-2.0
 *
 * loss.c - see loss.h.
 */
#include "scenarios/plan/loss.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/layout.h"
#include "scenarios/plan/plan.h"

void skep_loss_read(struct skep_reader *r, const struct skep_yaml_node *train, struct skep_scenario *s)
{
	struct skep_diag why = skep_diag_beside(r->diag);
	char path[sizeof s->law->path];
	const struct skep_yaml_node *map = skep_read_map(r, train, "law", false);
	if (!r->diag->set && !map && s->arithmetic == SKEP_ARITHMETIC_SCALING_LAW)
		skep_reader_fail(r, train, "arithmetic",
			"train.law: `arithmetic: law` needs one: `law: {file: FILE}`; `skep fit -o FILE` makes one of runs, and "
			"scenarios/laws/tiny-gpt2.yaml is one, of models/tiny-gpt2.yaml");
	if (r->diag->set || !map)
		return;
	const char *name = skep_read_string(r, map, "file", NULL);
	skep_reader_close_map(r, map);
	if (r->diag->set)
		return;
	if (s->arithmetic != SKEP_ARITHMETIC_SCALING_LAW)
		skep_reader_fail(r, map, "file", "train.law: is for `arithmetic: law`; take that, or leave this out");
	else if (!skep_read_find(r, map, "file", s->path, name, path, sizeof path))
		skep_reader_fail_value(
			r, map, "file", "train.law.file: no file `%.200s`; `skep fit -o FILE` makes one", name);
	if (r->diag->set)
		return;
	s->law = malloc(sizeof *s->law);
	if (!s->law)
		skep_reader_fail(r, map, "file", "not enough memory for this scenario");
	else if (!skep_law_read(path, s->law, &why))
		skep_reader_fail(r, map, "file", "train.law.file: %.200s:%u: %.250s", why.file, why.line, why.message);
	if (r->diag->set)
		return;
	struct skep_cost whole;
	skep_model_cost(&s->model, 1, 0, &whole);
	s->law->size = (double)(whole.parameters - skep_model_copied(&s->model));
}

/* ---- conditions ------------------------------------------------------------------------------------------------- */

static double tokens_of_a_microbatch(const struct skep_scenario *s)
{
	return (double)s->samples * (s->model.sequence > 0 ? s->model.sequence : 1);
}

/* Laws were fitted to whole models. Where stages have different numbers of workers the stage with the most counts: what fewer in
 * another stage would save in tokens nothing has measured. */
static double replicas(const struct skep_scenario *s)
{
	return fmax(1, skep_plan_serving_most(s));
}

/* No update is older than the run: in round r the staleness is at most r. */
static double staleness(const struct skep_scenario *s, uint32_t round)
{
	uint32_t most = skep_plan_staleness(&s->plan, 0);
	return skep_plan_no_flush(&s->plan) ? round - skep_plan_oldest(&s->plan, round, most)
	       : round < most               ? round
	                                    : most;
}

void skep_loss_at(const struct skep_scenario *s, uint32_t round, uint32_t microbatch, double *ret)
{
	double batch = (double)skep_plan_quota(&s->plan, round) / skep_plan_steps(&s->plan, round);
	double step_tokens = tokens_of_a_microbatch(s) * batch;
	ret[SKEP_LAW_TOKENS] = (double)skep_plan_steps_before(&s->plan, round) * step_tokens;
	if (skep_plan_steps(&s->plan, round) > 1)
		ret[SKEP_LAW_TOKENS] += step_tokens * skep_plan_inner_step(&s->plan, round, microbatch);
	ret[SKEP_LAW_EVERY] = skep_plan_mean_steps(&s->plan) * skep_plan_fragments(&s->plan); /* of each parameter */
	ret[SKEP_LAW_MEMBERS] = replicas(s);
	ret[SKEP_LAW_STALE] = staleness(s, round);
	ret[SKEP_LAW_BATCH] = step_tokens;
}

int64_t skep_loss_nano(const struct skep_scenario *s, uint32_t round, uint32_t microbatch)
{
	double at[SKEP_LAW_AXES];
	skep_loss_at(s, round, microbatch, at);
	double nano = 1e9 * skep_law_loss(s->law, at);
	return nano < 9e18 ? llround(nano) : INT64_MAX;
}

static bool ends_early(const struct skep_scenario *s, double tokens)
{
	return tokens < s->law->least[SKEP_LAW_TOKENS] * (1 - 1e-6);
}

/* In the middle of a round, whose loss is the mean over it. */
static double loss_of(const struct skep_scenario *s, uint32_t round)
{
	double at[SKEP_LAW_AXES];
	skep_loss_at(s, round, s->plan.microbatches / 2, at);
	return skep_law_loss(s->law, at);
}

uint32_t skep_loss_rounds_to(const struct skep_scenario *s, double target)
{
	uint32_t low = 1, high = s->plan.rounds;
	if (high == 0 || !(loss_of(s, high - 1) <= target))
		return 0;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (loss_of(s, middle - 1) <= target)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* Staleness begins at 0 in every run: a law of stale runs is not left by the first round. All runs begin with fewer tokens than
 * its data do, but one that ends there has a loss that the law was never held against. */
bool skep_loss_extrapolates(const struct skep_scenario *s, uint32_t rounds, char *ret, size_t size)
{
	double at[SKEP_LAW_AXES];
	ret[0] = '\0';
	if (!s->law || rounds == 0)
		return false;
	skep_loss_at(s, rounds - 1, 0, at);
	bool leaves = skep_law_leaves(s->law, s->model.name, at, ret, size);
	if (!ends_early(s, at[SKEP_LAW_TOKENS] + at[SKEP_LAW_BATCH] * skep_plan_steps(&s->plan, rounds - 1)))
		return leaves;
	size_t used = strlen(ret);
	char least[SKEP_TEXT_BYTES];
	snprintf(ret + used, size - used, "%sfewer tokens than %s, where its data begin", leaves ? "; " : "",
		skep_count_text(s->law->least[SKEP_LAW_TOKENS], least));
	return true;
}

uint32_t skep_loss_leaves(const struct skep_scenario *s, double *ret_at)
{
	uint32_t left = 0, rounds = s->plan.rounds;
	if (!s->law || rounds == 0)
		return 0;
	skep_loss_at(s, rounds - 1, 0, ret_at);
	for (uint32_t axis = 0; axis < SKEP_LAW_AXES; axis++)
		left |= (uint32_t)skep_law_leaves_axis(s->law, (enum skep_law_axis)axis, ret_at[axis]) << axis;
	ret_at[SKEP_LAW_TOKENS] += ret_at[SKEP_LAW_BATCH] * skep_plan_steps(&s->plan, rounds - 1);
	left |= (uint32_t)ends_early(s, ret_at[SKEP_LAW_TOKENS]) << SKEP_LAW_TOKENS;
	return left | (uint32_t)skep_law_leaves_model(s->law, s->model.name) << SKEP_LAW_AXES;
}
