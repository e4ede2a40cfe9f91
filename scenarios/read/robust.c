/* SPDX-License-Identifier: Apache-2.0
 *
 * robust.c - reads how gradients are aggregated, and which workers are Byzantine: see groups.h. It refuses settings
 * that could have no effect: a trim where no stage has three workers, a collective that sums on the way, attacks
 * without arithmetic.
 */
#include "scenarios/read/groups.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/collective/collective.h"
#include "core/names.h"
#include "core/random.h"
#include "scenarios/plan/plan.h"

static const char *const METHODS[] = {"mean", "trimmed-mean", "zeno", NULL};
static const char *const LIES[] = {"none", "sign-flip", "noise", "nan", NULL};
static const char *const TENSORS[] = {"gradients", "activations", NULL};

const char *skep_robust_method_name(enum skep_robust_method method)
{
	return METHODS[method];
}

const char *skep_attack_name(enum skep_attack attack)
{
	return LIES[attack];
}

const char *skep_attack_tensors_name(bool activations)
{
	return TENSORS[activations];
}

/* ---- what is made of them ----------------------------------------------------------------------------------------- */

/* A count of workers, or a part of those who vote. */
static void read_trim(struct skep_reader *r, const struct skep_yaml_node *sync, struct skep_robust *robust)
{
	const char *text = skep_read_string(r, sync, "trim", "1");
	if (strchr(text, '%'))
		robust->share = skep_read_quantity(r, sync, "trim", SKEP_PART, 1e-4, 0.5, NAN);
	else
		robust->trim = (uint32_t)skep_read_integer(r, sync, "trim", 1, SKEP_ROSTER_MAX / 2, 1);
}

void skep_robust_read_sync(struct skep_reader *r, const struct skep_yaml_node *sync, struct skep_scenario *s)
{
	struct skep_robust *robust = &s->robust;
	robust->method = (enum skep_robust_method)skep_read_choice(r, sync, "aggregate", METHODS, SKEP_ROBUST_MEAN);
	bool gathers = robust->method != SKEP_ROBUST_MEAN;
	if (gathers)
		read_trim(r, sync, robust);
	else if (skep_read_has(r, sync, "trim"))
		skep_reader_fail(r, sync, "trim",
			"sync.trim: a mean leaves no part out: take `aggregate: trimmed-mean` or `zeno`, or leave this out");
	if (robust->method == SKEP_ROBUST_ZENO)
		robust->rho = skep_read_number(r, sync, "rho", 0, 1e6, 0.5);
	else if (skep_read_has(r, sync, "rho"))
		skep_reader_fail(r, sync, "rho", "sync.rho: belongs to the score of `aggregate: zeno`; leave it out");
	if (r->diag->set || !gathers)
		return;
	if (!skep_collective_gathers(s->plan.reduction.collective))
		skep_reader_fail(r, sync, "aggregate",
			"sync.aggregate: `%s` has to see what each worker brings, and `collective: %s` adds it up on the "
			"way; take `butterfly`, `all-to-all` or `parameter-server`",
			METHODS[robust->method], skep_collective_name((uint8_t)s->plan.reduction.collective));
	else if (skep_plan_model_chunks(&s->plan) > 1)
		skep_reader_fail(r, sync, "aggregate",
			"sync.aggregate: with `pipeline: interleaved` a worker may have counted a microbatch in one virtual "
			"stage and not in another, so its gradients are not of one number of them; take `mean`, or another "
			"pipeline");
	s->plan.reduction.gather = true;
}

/* ---- who brings wrong ones ---------------------------------------------------------------------------------------- */

void skep_robust_read_byzantine(struct skep_reader *r, const struct skep_yaml_node *cluster, struct skep_scenario *s)
{
	const struct skep_yaml_node *map = skep_read_map(r, cluster, "byzantine", false);
	if (!map)
		return;
	const struct skep_yaml_node *list = skep_read_list(r, map, "workers", true);
	uint32_t count = r->diag->set ? 0 : skep_yaml_length(list);
	if (!r->diag->set && count == 0)
		skep_reader_fail(r, map, "workers", "cluster.byzantine.workers: expected at least one worker");
	s->attack = (enum skep_attack)(skep_read_choice(r, map, "attack", LIES + 1, -1) + 1);
	if (s->attack != SKEP_ATTACK_NAN)
		s->attack_scale = skep_read_number(r, map, "scale", 1e-6, 1e12, 1);
	else if (skep_read_has(r, map, "scale"))
		skep_reader_fail(r, map, "scale", "cluster.byzantine.scale: a NaN has no size; leave this out");
	s->attacks_activations = skep_read_choice(r, map, "tensors", TENSORS, 0) == 1;
	if (!r->diag->set && s->attacks_activations && s->plan.stages == 1)
		skep_reader_fail(r, map, "tensors", "cluster.byzantine.tensors: in one stage no activations are sent");
	skep_reader_close_map(r, map);
	s->liar = calloc(s->plan.workers, sizeof *s->liar);
	if (!s->liar)
		skep_reader_fail(r, map, "workers", "not enough memory for %u workers", s->plan.workers);
	for (uint32_t i = 0; i < count && !r->diag->set; i++) {
		const struct skep_yaml_node *item = skep_yaml_item(list, i);
		int64_t worker = skep_read_integer(r, item, NULL, 0, (int64_t)s->plan.workers - 1, INT64_MIN);
		if (!r->diag->set && s->liar[worker])
			skep_reader_fail(r, item, NULL, "cluster.byzantine.workers: worker %lld is named twice",
				(long long)worker);
		s->liar[worker] = true;
	}
}

struct skep_byzantine skep_scenario_byzantine(const struct skep_scenario *s, uint32_t worker)
{
	struct skep_byzantine byzantine = {.attack = SKEP_ATTACK_NONE};
	if (s->liar && worker < s->plan.workers && s->liar[worker])
		byzantine = (struct skep_byzantine){.attack = s->attack,
			.scale = (float)s->attack_scale,
			.seed = skep_mix(skep_mix(s->seed) ^ (0x6c69657200000000u | worker)),
			.activations = s->attacks_activations};
	return byzantine;
}

/* ---- together ----------------------------------------------------------------------------------------------------- */

void skep_robust_check(struct skep_reader *r, const struct skep_yaml_node *sync, const struct skep_yaml_node *cluster,
	const struct skep_scenario *s)
{
	uint32_t most = skep_plan_serving_most(s);
	if (r->diag->set)
		return;
	if (s->liar && s->arithmetic == SKEP_ARITHMETIC_NONE)
		skep_reader_fail(r, cluster, "byzantine",
			"cluster.byzantine: without `arithmetic: real` there are no gradients to lie about");
	else if (s->plan.reduction.gather && skep_robust_left_out(&s->robust, most) == 0)
		skep_reader_fail(r, sync, skep_read_has(r, sync, "trim") ? "trim" : "aggregate",
			"sync.trim: no stage has enough workers to leave one out: the largest has %u, and at most (n - 1) / 2 "
			"of n can be, of a part of them as many as are whole",
			most);
}
