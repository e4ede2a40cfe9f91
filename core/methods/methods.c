/* SPDX-License-Identifier: Apache-2.0
 *
 * methods.c - which entry of each family of tables a plan calls for. Which of them go together is checked by the readers of
 * scenarios; what the tables rely on is asserted here.
 */
#include <assert.h>

#include "core/methods/method.h"
#include "core/route/route.h"
#include "core/schedule/order.h"
#include "core/schedule/pipelines.h"

enum method { FLUSH, DELAYED, EAGER, NO_FLUSH, ASYNC };

static const struct skep_directory_method *const directory_of[] = {
	[FLUSH] = &skep_flush_directory,
	[DELAYED] = &skep_delayed_directory,
	[EAGER] = &skep_eager_directory,
	[NO_FLUSH] = &skep_no_flush_directory,
	[ASYNC] = &skep_async_directory,
};

static const struct skep_worker_method *const worker_of[] = {
	[FLUSH] = &skep_flush_worker,
	[DELAYED] = &skep_delayed_worker,
	[EAGER] = &skep_eager_worker,
	[NO_FLUSH] = &skep_no_flush_worker,
	[ASYNC] = &skep_async_worker,
};

/* [method][skep_plan_periodic()]; NULL: they do not go together. */
static const struct skep_local_steps *const local_of[][2] = {
	[FLUSH] = {&skep_local_none, &skep_local_periodic},
	[DELAYED] = {&skep_local_none, &skep_local_periodic},
	[EAGER] = {&skep_local_none, &skep_local_periodic},
	[NO_FLUSH] = {&skep_local_none, NULL},
	[ASYNC] = {NULL, &skep_local_async},
};

uint8_t skep_method_of(const struct skep_plan *plan)
{
	if (plan->async.on)
		return ASYNC;
	if (plan->delayed)
		return DELAYED;
	if (skep_plan_no_flush(plan))
		return NO_FLUSH;
	return plan->eager ? EAGER : FLUSH;
}

static const struct skep_losses *const losses_of[] = {
	[SKEP_ON_LOSS_REPORT] = &skep_losses_report,
	[SKEP_ON_LOSS_RERUN] = &skep_losses_rerun,
	[SKEP_ON_LOSS_VOID] = &skep_losses_void,
	[SKEP_ON_LOSS_WAIT] = &skep_losses_wait,
};

static const struct skep_losses *losses_for(const struct skep_plan *plan)
{
	return plan->sharded ? &skep_losses_shard : losses_of[plan->on_loss];
}

static const struct skep_grouping *grouping_of(const struct skep_plan *plan)
{
	return plan->gossip ? &skep_grouping_pairs : &skep_grouping_stage;
}

static const struct skep_agreement *agreement_of(const struct skep_plan *plan)
{
	if (plan->clip || plan->together || losses_of[plan->on_loss]->voids)
		return &skep_agreement_all;
	return plan->tied > 0 ? &skep_agreement_pair : &skep_agreement_alone;
}

/* How many features there are, and the first one: what is done with a tied table comes before the norm. */
static uint32_t features_of(const struct skep_plan *plan)
{
	return (plan->tied > 0) + plan->clip;
}

static const struct skep_feature *first_feature(const struct skep_plan *plan)
{
	return plan->tied > 0 ? &skep_feature_tied : &skep_feature_clip;
}

struct skep_methods skep_methods_of_worker(const struct skep_plan *plan, uint8_t method)
{
	return (struct skep_methods){
		.worker = worker_of[method],
		.local = local_of[method][skep_plan_periodic(plan)],
		.route = plan->routing == SKEP_ROUTING_TRAINER ? &skep_route_trainer : &skep_route_peer,
		.order = skep_order_of[plan->pipeline],
		.features = features_of(plan),
		.feature = {first_feature(plan), &skep_feature_clip},
	};
}

struct skep_methods skep_methods_of_directory(const struct skep_plan *plan, uint8_t method)
{
	return (struct skep_methods){
		.directory = directory_of[method],
		.grouping = grouping_of(plan),
		.losses = losses_for(plan),
		.agreement = agreement_of(plan),
		.scope = &skep_scope_run,
		.scaling = plan->scale != NULL ? &skep_scaling_policy : &skep_scaling_none,
		.order = skep_order_of[plan->pipeline],
		.features = features_of(plan),
		.feature = {first_feature(plan), &skep_feature_clip},
	};
}

void skep_methods_check(const struct skep_plan *plan)
{
	uint8_t method = skep_method_of(plan);
	bool rerun = plan->on_loss == SKEP_ON_LOSS_RERUN, fixed = skep_plan_fixed(plan);
	bool voids = plan->on_loss == SKEP_ON_LOSS_VOID, waits = plan->on_loss == SKEP_ON_LOSS_WAIT;
	assert(plan->pipeline < SKEP_PIPELINES);
	assert(local_of[method][skep_plan_periodic(plan)]);
	assert(!plan->async.on || (plan->delayed && skep_plan_periodic(plan) && plan->tied == 0 && !plan->clip));
	assert(!plan->gossip || (method == FLUSH && skep_plan_periodic(plan) && !plan->inner.by_share && !rerun));
	assert(!plan->gossip ||
		(plan->tied == 0 && !plan->clip && !plan->reduction.gather && skep_plan_fragments(plan) == 1));
	assert(!plan->gossip || (!skep_plan_has_candidates(plan) && !skep_plan_compresses(plan)));
	assert(!plan->inner.sum_every || (skep_plan_periodic(plan) && !plan->gossip && skep_plan_fragments(plan) == 1));
	assert(!plan->inner.sum_every || (method == FLUSH && plan->tied == 0 && !skep_plan_has_candidates(plan)));
	assert(!plan->inner.fixed || (skep_plan_periodic(plan) && !plan->async.on && !plan->inner.by_share && !fixed));
	assert(!rerun || (method != DELAYED && method != ASYNC));
	assert((!voids && !waits) || ((method == FLUSH || method == EAGER) && !plan->gossip));
	assert(!voids || !skep_plan_periodic(plan));
	assert(!waits || (plan->rebalance.period_ns == 0 && !skep_plan_has_candidates(plan)));
	assert(method != NO_FLUSH || (!plan->clip && plan->tied == 0 && !rerun && plan->validation.every == 0));
	assert(!plan->together || (method != NO_FLUSH && method != ASYNC));
	assert(method != EAGER || fixed);
	assert(!fixed || (method != DELAYED && method != ASYNC && !plan->gossip && !plan->inner.by_share));
	assert(!fixed || !skep_plan_periodic(plan) || (method != NO_FLUSH && plan->inner.cycle == 0));
	assert(!fixed || !skep_plan_periodic(plan) || skep_plan_share(plan, 0) % plan->inner.steps == 0);
	assert(!skep_plan_uneven(plan) || (!skep_plan_periodic(plan) && !plan->barrier));
	assert(!skep_plan_uneven(plan) || skep_pipeline_may_be_uneven(plan->pipeline));
	assert(!skep_plan_has_candidates(plan) || (method == FLUSH && !fixed));
	assert(!plan->sharded || method == FLUSH || method == DELAYED);
	/* Of 16 bits: where passes compute in them, gradients and the parameters that passes read have no others. */
	assert(!plan->sharded || plan->reduction.collective == SKEP_COLLECTIVE_RING);
	assert(!plan->sharded || !skep_plan_has_scales(plan));
	assert(plan->tied == 0 || skep_plan_codec(plan, 0) == skep_plan_codec(plan, plan->stages - 1));
	assert(!plan->sharded ||
		(!skep_plan_periodic(plan) && !plan->gossip && !plan->reduction.gather && plan->tied == 0));
	assert(!plan->sharded || (skep_plan_model_chunks(plan) == 1 && plan->frozen_vstages == 0 && !plan->scale));
	assert(!plan->sharded || (plan->on_loss == SKEP_ON_LOSS_REPORT && !skep_plan_has_candidates(plan)));
	assert(!plan->sharded || plan->rebalance.period_ns == 0);
	assert(!plan->scale || (!fixed && !waits && !skep_plan_has_candidates(plan) && !plan->stands_by));
	assert(!skep_plan_waves(plan) ||
		(method == NO_FLUSH && !skep_plan_uneven(plan) && plan->no_flush.synchronous == 0));
	assert(!skep_plan_waves(plan) || (skep_plan_wave(plan) > 1 && plan->no_flush.distance <= SKEP_DISTANCE_MAX));
	assert(skep_plan_waves(plan) || plan->no_flush.distance == 0);
	(void)rerun, (void)voids, (void)waits, (void)fixed, (void)method;
}
