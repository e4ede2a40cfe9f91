/* SPDX-License-Identifier: Apache-2.0
 *
 * fault_mix.c - decides from one seed what a chaos run looks like.
 *
 * Each fault kind is off in half the seeds (so that the kinds are also met alone), otherwise it has a rate. All faults
 * stop at abuse_ns; from then on the world is calm and the run has to come to its end. One seed in sixteen has no
 * faults at all: there nothing may be fenced or lost.
 */
#include "tests/cluster/fault_mix.h"

#include <string.h>

#include "core/collective/collective.h"

#define MS UINT64_C(1000000)
#define DELAYED_SALT UINT64_C(0x64656c61796564)
#define RERUN_SALT UINT64_C(0x726572756e)
#define WHOLE_SALT UINT64_C(0x77686f6c65)
#define COLLECTIVE_SALT UINT64_C(0x636f6c6c)
#define JOINS_SALT UINT64_C(0x6a6f696e73)
#define FIXED_SALT UINT64_C(0x6669786564)
#define BARRIER_SALT UINT64_C(0x62617272696572)
#define BUCKET_SALT UINT64_C(0x6275636b6574)
#define EAGER_SALT UINT64_C(0x70726f6d697365)
#define MODEL_CHUNKS_SALT UINT64_C(0x6c617073)
#define GATHER_SALT UINT64_C(0x676174686572)
#define CLIP_SALT UINT64_C(0x636c6970)
#define INFINITE_SALT UINT64_C(0x696e66)
#define UNKEPT_SALT UINT64_C(0x66756c6c)
#define STREAM_SALT UINT64_C(0x73747265616d)
#define INNER_SALT UINT64_C(0x696e6e6572)
#define TRIAL_SALT UINT64_C(0x747269616c)
#define TRIED 3u /* of 8, what none of the pinned seeds draws */
#define ASYNC_SALT UINT64_C(0x6173796e63)

static uint64_t draw(struct weather *w)
{
	return mix64(w->random += 0x9e3779b97f4a7c15u);
}

static uint64_t below(struct weather *w, uint64_t limit)
{
	return draw(w) % limit;
}

static uint64_t between(struct weather *w, uint64_t low, uint64_t high)
{
	return low + below(w, high - low + 1);
}

static bool chance(struct weather *w, uint32_t permille)
{
	return permille > 0 && below(w, 1000) < permille;
}

/* As often small as large: 1..high, even in the logarithm. */
static uint64_t any_size(struct weather *w, uint64_t high)
{
	unsigned bits = 1;
	while (high >> bits)
		bits++;
	uint64_t size = below(w, UINT64_C(1) << between(w, 1, bits)) + 1;
	return size < high ? size : high;
}

static void draw_shape(struct weather *w)
{
	struct skep_plan *plan = &w->plan;
	bool large = below(w, 32) == 0; /* more stages, and more microbatches than fit into one TALLY */
	bool wide = below(w, 8) == 0;   /* more workers, so that stages can give some away */
	plan->stages = (uint32_t)between(w, 1, large || wide ? 7 : 4);
	uint32_t most = (uint32_t)between(w, 1, wide ? 6 : 4), spares = below(w, 2) ? (uint32_t)below(w, 4) : 0;
	for (uint32_t s = 0; s < plan->stages; s++) {
		uint32_t workers = (uint32_t)between(w, 1, most);
		bool last = s + 1 == plan->stages;
		for (uint32_t i = 0; i < workers; i++)
			w->first_stage_of[plan->workers++] = s;
		w->stage[s] = (struct skep_stage_plan){
			.parameters = between(w, 1, 7), .activation_bytes = last ? 0 : between(w, 1, 1000)};
		struct skep_stage_plan *stage = &w->stage[s];
		stage->state_chunks = below(w, 2) ? (uint32_t)between(w, 1, stage->parameters) : 0;
		stage->state_bytes = stage->state_chunks * SKEP_STATE_HEADER_BYTES + 12 * stage->parameters;
	}
	while (spares-- > 0)
		w->first_stage_of[plan->workers++] = SKEP_NO_STAGE;
	/* so that a worker's number says nothing about its stage */
	for (uint32_t i = plan->workers; below(w, 2) == 0 && i > 1; i--) {
		uint32_t j = (uint32_t)below(w, i), stage = w->first_stage_of[j];
		w->first_stage_of[j] = w->first_stage_of[i - 1];
		w->first_stage_of[i - 1] = stage;
	}
	plan->stage = w->stage;
	plan->first_stage_of = w->first_stage_of;
	uint32_t many = large ? 300 : 40;
	plan->microbatches = (uint32_t)(below(w, 2) ? any_size(w, many) : between(w, 1, many));
	plan->in_flight = (uint32_t)between(w, 1, 4);
	plan->rounds = (uint32_t)between(w, 1, below(w, 8) ? 5 : 12);
	plan->samples = (uint32_t)any_size(w, 8);
	plan->seed = draw(w);
	plan->checkpoint_every = below(w, 2) ? (uint32_t)between(w, 1, 4) : 0;
	plan->until.target_loss_nano = below(w, 8) ? INT64_MIN : (int64_t)between(w, 800 * MS, 1200 * MS);
}

static void draw_times(struct weather *w, bool moving)
{
	static const skep_time quantum[] = {1, 100000, 1000000};
	struct skep_plan *plan = &w->plan;
	struct skep_plan_liveness *live = &plan->liveness;
	w->quantum_ns = quantum[below(w, 3)];
	live->heartbeat_ns = below(w, 8) ? between(w, 20, 100) * MS : between(w, 500, 5000) * MS / 1000;
	live->fence_after_ns = live->heartbeat_ns * between(w, 4, 10) / 2;
	if (w->quantum_ns > live->heartbeat_ns / 16)
		w->quantum_ns = 1;
	w->latency_ns = any_size(w, below(w, 8) ? live->heartbeat_ns / 8 : live->heartbeat_ns / 2);
	w->op_ns = any_size(w, below(w, 16) ? 4 * MS : 2 * live->heartbeat_ns);
	if (moving && below(w, 4)) /* so that there is something to wait for, and time to report it */
		w->op_ns = live->heartbeat_ns / between(w, 8, 256);
	for (uint32_t i = 0; i < plan->workers; i++)
		w->slowness[i] = (uint32_t)between(w, 1, 4);
	w->download_ns = below(w, 2) ? any_size(w, 4 * live->fence_after_ns) : 1;
	w->round_ns = plan->microbatches * w->op_ns * 2 + 20 * w->latency_ns + live->heartbeat_ns;
	w->abuse_ns = 10 * MS + below(w, 2 * plan->rounds * w->round_ns);
	live->wait_for_join_ns = below(w, 2) ? any_size(w, 40 * live->fence_after_ns) : 0;
	/* one microbatch after the other, each stage slow, refills included, and time to notice deaths */
	skep_time hop_ns = w->latency_ns + 8 * w->op_ns + 2 * w->quantum_ns;
	skep_time round_ns = plan->microbatches * plan->stages * 4 * hop_ns + 100 * live->fence_after_ns;
	w->bound_ns = w->abuse_ns + live->wait_for_join_ns + plan->rounds * round_ns;
}

static void draw_wiring(struct weather *w)
{
	struct skep_plan *plan = &w->plan;
	plan->wiring = (enum skep_wiring)below(w, 3);
	if (plan->wiring != SKEP_WIRING_LATENCY)
		return;
	plan->places.count = (uint32_t)between(w, 1, WEATHER_PLACES);
	plan->places.of = w->place_of;
	plan->places.transfer_ns = w->transfer_ns;
	for (uint32_t i = 0; i < plan->workers; i++)
		w->place_of[i] = (uint32_t)below(w, plan->places.count);
	for (uint32_t i = 0; i < plan->places.count * plan->places.count; i++)
		w->transfer_ns[i] = below(w, 2) ? any_size(w, 4 * w->latency_ns) : 0;
}

/* Periods from a fraction of a round to all of the run; so long that reports do not make most of the events. */
static void draw_rebalancing(struct weather *w)
{
	struct skep_plan *plan = &w->plan;
	skep_time work_ns = plan->microbatches * w->op_ns * 2 + 20 * w->latency_ns;
	skep_time most_ns = below(w, 4) ? work_ns / 4 + 1 : plan->rounds * w->round_ns;
	plan->rebalance.period_ns = plan->liveness.heartbeat_ns / 64 + w->op_ns / 2 + any_size(w, most_ns);
	plan->rebalance.horizon_ns = below(w, 4) ? 0 : any_size(w, 16 * w->round_ns);
	for (uint32_t s = 0; s < plan->stages; s++)
		w->stage[s].migrate_ns = any_size(w, 4 * w->round_ns);
}

static void draw_rates(struct weather *w)
{
	static const uint32_t most[WEATHER_FAULTS] = {[WEATHER_DELAY] = 200,
		[WEATHER_REORDER] = 1,
		[WEATHER_DUPLICATE] = 300,
		[WEATHER_RETURN] = 200,
		[WEATHER_SLOW] = 150,
		[WEATHER_LATE] = 500,
		[WEATHER_STAGGER] = 1,
		[WEATHER_KILL] = 8,
		[WEATHER_RESTART] = 1000,
		[WEATHER_NOTICE] = 8,
		[WEATHER_SUSPECT] = 12,
		[WEATHER_PAUSE] = 10};
	for (uint32_t f = 0; f < WEATHER_FAULTS; f++) {
		uint32_t rate = f == WEATHER_RESTART ? (uint32_t)between(w, 200, 1000) : (uint32_t)any_size(w, most[f]);
		w->rate[f] = below(w, 2) ? rate : 0;
	}
}

/* In one piece in a quarter, a ring in a third, and the others share what is left. */
static void draw_collective(struct weather *w, uint64_t seed)
{
	static const enum skep_collective others[] = {SKEP_COLLECTIVE_PARAMETER_SERVER,
		SKEP_COLLECTIVE_REDUCE_BROADCAST, SKEP_COLLECTIVE_ALL_TO_ALL, SKEP_COLLECTIVE_HALVING_DOUBLING,
		SKEP_COLLECTIVE_TREE, SKEP_COLLECTIVE_HIERARCHICAL, SKEP_COLLECTIVE_BUTTERFLY, SKEP_COLLECTIVE_CHAIN};
	uint64_t random = mix64(seed ^ COLLECTIVE_SALT), kind = random % 13;
	if (mix64(seed ^ WHOLE_SALT) % 4 == 0)
		w->plan.reduction.collective = SKEP_COLLECTIVE_FUSED;
	else if (kind < sizeof others / sizeof others[0])
		w->plan.reduction.collective = others[kind];
	w->plan.reduction.chunks = random >> 32 & 3; /* 0: the usual number */
	for (uint32_t i = 0; i < w->plan.workers; i++) {
		uint64_t each = mix64(random + i);
		w->site_of[i] = (uint32_t)(each % (1 + (random >> 34 & 3)));
		w->link_Bps[i] = random >> 36 & 1 ? each >> (each & 63) : each % 4;
	}
	w->plan.reduction.site_of = random >> 37 & 7 ? w->site_of : NULL;
	w->plan.reduction.link_Bps = random >> 40 & 7 ? w->link_Bps : NULL;
	bool gathers = skep_collective_gathers(w->plan.reduction.collective);
	w->plan.reduction.gather = gathers && mix64(seed ^ GATHER_SALT) % 2;
}

/* In half of the plans with promises: of any sizes, from the end. */
static void draw_buckets(struct weather *w)
{
	uint64_t random = mix64(w->seed ^ BUCKET_SALT);
	for (uint32_t s = 0; s < w->plan.stages && w->plan.eager && random & 1; s++) {
		struct skep_stage_plan *stage = &w->stage[s];
		uint64_t *first = w->bucket_first[s];
		for (uint64_t at = stage->parameters - 1; at > 0; at--)
			if (mix64(++random) % 2)
				first[stage->buckets++] = at;
		first[stage->buckets++] = 0;
		stage->bucket_first = first;
	}
}

/* What goes with neither of the two below. */
static void eager_nothing(struct weather *w)
{
	w->plan.recompute = w->plan.eager = w->plan.barrier = false;
	for (uint32_t s = 0; s < w->plan.stages; s++) {
		w->stage[s].buckets = 0;
		w->stage[s].bucket_first = NULL;
	}
}

/* A third, without a flush: rounds of one microbatch each, and most of the rounds there may be. */
static bool stream_pipelines(struct weather *w)
{
	struct skep_plan *plan = &w->plan;
	if (mix64(w->seed ^ STREAM_SALT) % 3 > 0)
		return false;
	eager_nothing(w);
	plan->pipeline = SKEP_PIPELINE_PIPEDREAM;
	plan->microbatches = plan->workers / plan->stages;
	plan->on_loss = SKEP_ON_LOSS_REPORT;
	plan->rounds = CLUSTER_ROUNDS - 1 - plan->rounds % 4;
	bool fused = plan->reduction.collective == SKEP_COLLECTIVE_FUSED;
	plan->reduction.collective = fused ? SKEP_COLLECTIVE_FUSED : SKEP_COLLECTIVE_RING;
	plan->reduction.gather = false;
	return true;
}

/* As many pipelines as the workers that were drawn make, spares included; in any order, but the stages are full. */
static void fix_pipelines(struct weather *w, uint64_t *random)
{
	struct skep_plan *plan = &w->plan;
	uint32_t pipelines = plan->workers / plan->stages;
	plan->pipeline = mix64(++*random) % 2 ? SKEP_PIPELINE_GPIPE : SKEP_PIPELINE_1F1B;
	plan->wiring = SKEP_WIRING_FIXED;
	plan->places.count = 0;
	plan->workers = pipelines * plan->stages;
	for (uint32_t i = 0; i < plan->workers; i++)
		w->first_stage_of[i] = i % plan->stages;
	for (uint32_t i = plan->workers; i > 1; i--) {
		uint32_t j = (uint32_t)(mix64(++*random) % i), stage = w->first_stage_of[j];
		w->first_stage_of[j] = w->first_stage_of[i - 1];
		w->first_stage_of[i - 1] = stage;
	}
	plan->microbatches += (pipelines - plan->microbatches % pipelines) % pipelines;
	plan->recompute = plan->pipeline == SKEP_PIPELINE_GPIPE && mix64(++*random) % 2;
	plan->routing = SKEP_ROUTING_PEER;
	plan->joins = SKEP_JOINS_NEEDED;
	plan->rebalance.period_ns = plan->liveness.reissue_after_ns = 0;
	plan->delayed = false;
	plan->barrier = plan->pipeline == SKEP_PIPELINE_GPIPE && mix64(w->seed ^ BARRIER_SALT) % 2;
	plan->eager = mix64(w->seed ^ EAGER_SALT) % 2;
	draw_buckets(w);
}

/* A third of those of two stages and more: two or three virtual stages in each, a share that is a multiple of the stages. */
static void interleave(struct weather *w)
{
	struct skep_plan *plan = &w->plan;
	uint64_t random = mix64(w->seed ^ MODEL_CHUNKS_SALT);
	if (plan->stages < 2 || random % 3 > 0)
		return;
	plan->pipeline = SKEP_PIPELINE_INTERLEAVED;
	eager_nothing(w);
	plan->reduction.gather = false;
	plan->model_chunks = (uint32_t)(2 + (random >> 32 & 1));
	plan->vstage_bytes = w->vstage_bytes;
	for (uint32_t q = 0; q + 1 < skep_plan_vstages(plan); q++)
		w->vstage_bytes[q] = 1 + mix64(random + q) % 1000;
	for (uint32_t s = 0; s < plan->stages; s++) {
		struct skep_stage_plan *stage = &w->stage[s];
		stage->parameters = stage->parameters < plan->model_chunks ? plan->model_chunks : stage->parameters;
		stage->state_bytes = stage->state_chunks * SKEP_STATE_HEADER_BYTES + 12 * stage->parameters;
	}
	uint32_t all = plan->workers, before = plan->microbatches; /* pipelines * stages */
	plan->microbatches += (all - before % all) % all;
	w->bound_ns += (w->bound_ns - w->abuse_ns) * plan->model_chunks * (plan->microbatches / before + 1);
}

/* Steps that are no multiple of the fragments, so that some rounds have one less. */
static void draw_cycle(struct weather *w, uint64_t random)
{
	struct skep_plan *plan = &w->plan;
	bool whole = plan->inner.fragments < 2 || plan->inner.steps < 2 || plan->inner.overlap == plan->inner.steps;
	if (!whole && random & 1)
		plan->inner.cycle = plan->inner.fragments * plan->inner.steps - 1 -
		                    (uint32_t)(random >> 1 & 0xff) % (plan->inner.fragments - 1);
}

/* Rounds of a few steps, in which a worker counts from nothing to all of a step and more. */
static void draw_inner(struct weather *w, uint64_t random)
{
	uint32_t most = w->plan.microbatches < 9 ? w->plan.microbatches : 9, least = CLUSTER_ELEMENTS;
	w->plan.inner.steps = 1 + (uint32_t)(random >> 8 & 0xff) % most;
	w->plan.inner.by_share = random >> 16 & 1;
	w->plan.inner.fixed = !w->plan.inner.by_share && random >> 41 & 1;
	for (uint32_t s = 0; s < w->plan.stages; s++)
		least = w->stage[s].parameters < least ? (uint32_t)w->stage[s].parameters : least;
	if (random >> 17 & 1) /* in parts of a vector, in turn */
		w->plan.inner.fragments = 1 + (uint32_t)(random >> 24 & 0xff) % least;
	if (w->plan.delayed && random >> 18 & 1)
		w->plan.inner.overlap = 1 + (uint32_t)(random >> 32 & 0xff) % w->plan.inner.steps;
	w->plan.inner.deadline = w->plan.inner.overlap > 0 && random >> 40 & 1;
	draw_cycle(w, random >> 42);
}

/* In a third of those with periodic sync. */
static void draw_async(struct weather *w, enum weather_kind kind)
{
	if (w->plan.inner.steps > 0 && (kind == WEATHER_ASYNC || mix64(w->seed ^ ASYNC_SALT) % 3 == 0))
		weather_merges(&w->plan, mix64(w->seed + ASYNC_SALT));
}

/* Gradients are clipped in a quarter; in a sixteenth something is infinite, in an eighth states are not kept; neither in calm. */
static void draw_numbers(struct weather *w)
{
	bool quiet = true;
	for (uint32_t f = 0; f < WEATHER_FAULTS; f++)
		quiet = quiet && w->rate[f] == 0;
	w->plan.clip = mix64(w->seed ^ CLIP_SALT) % 4 == 2 && !skep_plan_no_flush(&w->plan) && w->plan.inner.steps == 0;
	if (quiet)
		return;
	w->infinite = mix64(w->seed ^ INFINITE_SALT) % 16 == 3 ? 1 + mix64(w->seed + INFINITE_SALT) % 8 : 0;
	w->unkept = mix64(w->seed ^ UNKEPT_SALT) % 8 == 3 ? 300 : 0;
}

/* Two to four candidates, if every stage has so many workers; where it must be, a stage that lacks some gets them. */
static void draw_trial(struct weather *w, bool must)
{
	struct skep_plan *plan = &w->plan;
	uint64_t random = mix64(w->seed ^ TRIAL_SALT);
	uint32_t size[CLUSTER_STAGES] = {0}, fewest = CLUSTER_CANDIDATES;
	for (uint32_t i = 0; i < plan->workers; i++)
		if (plan->first_stage_of[i] != SKEP_NO_STAGE)
			size[plan->first_stage_of[i]]++;
	for (uint32_t s = 0; s < plan->stages; s++) {
		for (; must && size[s] < 2; size[s]++) {
			w->slowness[plan->workers] = 1 + s % 4;
			w->first_stage_of[plan->workers++] = s;
		}
		fewest = size[s] < fewest ? size[s] : fewest;
	}
	if (must && plan->rounds < 3)
		plan->rounds = 3;
	if (fewest < 2 || plan->rounds < 3)
		return;
	plan->inner.overlap = plan->delayed = plan->inner.deadline = false;
	plan->candidates.count = 2 + (uint32_t)(random >> 8 & 0xff) % (fewest - 1);
	plan->candidates.rounds = 2 + (uint32_t)(random >> 16 & 0xff) % (plan->rounds - 2);
	w->bound_ns += (w->bound_ns - w->abuse_ns) * plan->candidates.count;
}

void weather_draw(struct weather *w, uint64_t seed, bool calm, enum weather_kind kind)
{
	memset(w, 0, sizeof(*w));
	w->seed = seed;
	w->random = mix64(seed + 1);
	draw_shape(w);
	bool moving = below(w, 3) > 0;
	draw_times(w, moving);
	draw_wiring(w);
	if (moving)
		draw_rebalancing(w);
	draw_rates(w);
	bool flushed = kind == WEATHER_VOID || kind == WEATHER_WAIT, any = kind == WEATHER_ANY || flushed;
	w->plan.delayed = mix64(seed ^ DELAYED_SALT) % 3 == 0 && !flushed; /* a draw of its own: the others stay */
	bool rerun = !w->plan.delayed && mix64(seed ^ RERUN_SALT) % 3 == 0;
	w->plan.on_loss = rerun ? SKEP_ON_LOSS_RERUN : SKEP_ON_LOSS_REPORT;
	draw_collective(w, seed);
	if (mix64(seed ^ JOINS_SALT) % 4 == 0)
		w->plan.joins = SKEP_JOINS_RANDOM;
	if (calm || below(w, 16) == 0)
		memset(w->rate, 0, sizeof(w->rate));
	w->plan.routing = below(w, 3) ? SKEP_ROUTING_PEER : SKEP_ROUTING_TRAINER; /* older seeds keep their draws */
	const struct skep_plan_liveness *live = &w->plan.liveness;
	skep_time reissue_ns =
		live->heartbeat_ns / 64 + w->op_ns / 2; /* from about an operation, to when the silent are fenced */
	w->plan.liveness.reissue_after_ns = below(w, 2) ? reissue_ns + any_size(w, live->fence_after_ns) : 0;
	uint64_t random = mix64(seed ^ FIXED_SALT), inner = mix64(seed ^ INNER_SALT);
	if (kind == WEATHER_FIXED || (any && random % 8 == 5)) { /* of 8, the one that is none of the pinned seeds */
		fix_pipelines(w, &random);
		if (!stream_pipelines(w))
			interleave(w);
		weather_flushes(w);
	} else if (kind == WEATHER_PERIODIC && mix64(random) % 4 == 0) {
		fix_pipelines(w, &random);
		weather_inner_flushes(w, inner);
	} else if (kind == WEATHER_PERIODIC || kind == WEATHER_ASYNC || kind == WEATHER_GOSSIP ||
		   inner % 8 == 7) { /* none of the pinned seeds */
		draw_inner(w, inner);
	}
	weather_validation(w);
	bool tried = !skep_plan_fixed(&w->plan) && mix64(seed ^ TRIAL_SALT) % 8 == TRIED;
	if (kind == WEATHER_TRIAL || (kind == WEATHER_ANY && tried))
		draw_trial(w, kind == WEATHER_TRIAL);
	draw_numbers(w);
	if (kind == WEATHER_GOSSIP)
		weather_pairs(&w->plan);
	else if (w->plan.candidates.count == 0 && !skep_plan_fixed(&w->plan))
		draw_async(w, kind);
	weather_standby(w);
	weather_limits(w);
	weather_policies(w);
	weather_losses(w, kind);
	weather_tie(w);
	weather_freeze(w);
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

static bool hit(struct weather *w, skep_time now, enum weather_fault fault)
{
	bool yes = now < w->abuse_ns && chance(w, w->rate[fault]);
	w->hits[fault] += yes;
	return yes;
}

static skep_time whole(const struct weather *w, skep_time time)
{
	return (time + w->quantum_ns - 1) / w->quantum_ns * w->quantum_ns;
}

static struct fate fate_of(void *context, skep_time now, const struct skep_message *m)
{
	struct weather *w = context;
	struct fate fate = {.delay_ns = between(w, w->latency_ns / 2, w->latency_ns)};
	skep_time long_ns = 5 * w->plan.liveness.fence_after_ns;
	fate.dies_with_sender = below(w, 2);
	fate.dead = (uint32_t)below(w, 3);
	if (w->rate[WEATHER_REORDER] && now < w->abuse_ns) {
		fate.delay_ns += any_size(w, 16 * w->latency_ns);
		w->hits[WEATHER_REORDER]++;
	}
	if (m->kind == SKEP_MESSAGE_STATE && now < w->abuse_ns) /* of downloads that take longer than a round */
		fate.delay_ns += any_size(w, w->download_ns);
	if (hit(w, now, WEATHER_DELAY))
		fate.delay_ns += any_size(w, long_ns);
	if (hit(w, now, WEATHER_RETURN)) {
		fate.failed = true;
		fate.delay_ns += any_size(w, w->plan.liveness.fence_after_ns);
	} else if (hit(w, now, WEATHER_DUPLICATE)) {
		fate.copies = (uint32_t)between(w, 1, 2);
		for (uint32_t i = 0; i < fate.copies; i++)
			fate.copy_delay_ns[i] = whole(w, any_size(w, below(w, 8) ? w->latency_ns * 4 : 4 * long_ns));
	}
	fate.delay_ns = whole(w, fate.delay_ns);
	skep_time *last = &w->link_last[m->from.index][m->to.index];
	if (!w->rate[WEATHER_REORDER] && !fate.failed && now + fate.delay_ns <= *last)
		fate.delay_ns = *last + 1 - now;
	if (!fate.failed)
		*last = now + fate.delay_ns;
	return fate;
}

static skep_time op_time(void *context, skep_time now, uint32_t worker, const struct skep_op *op)
{
	struct weather *w = context;
	skep_time base = w->op_ns * w->slowness[worker];
	if (op->kind == SKEP_OP_FORWARD || op->kind == SKEP_OP_RECOMPUTE)
		base /= 2;
	else if (op->kind != SKEP_OP_BACKWARD)
		base /= 8;
	skep_time time = between(w, base / 2, base);
	if (hit(w, now, WEATHER_SLOW))
		time += any_size(w, 2 * w->plan.liveness.fence_after_ns);
	return whole(w, time);
}

static uint8_t ails(void *context, skep_time now, const struct skep_op *op)
{
	struct weather *w = context;
	bool last = op->stage + 1u == skep_plan_vstages(&w->plan);
	if (op->kind == SKEP_OP_CHECKPOINT && chance(w, w->unkept))
		return SKEP_FAULT_CHECKPOINT_FAILED;
	if (now >= w->abuse_ns || !chance(w, w->infinite) ||
		(op->kind == SKEP_OP_BACKWARD && skep_plan_is_frozen(&w->plan, op->stage)))
		return SKEP_FAULT_NONE;
	switch (op->kind) {
	case SKEP_OP_FORWARD:
		return last ? SKEP_FAULT_LOSS : SKEP_FAULT_ACTIVATIONS;
	case SKEP_OP_BACKWARD:
	case SKEP_OP_NORM:
		return SKEP_FAULT_GRADIENT;
	case SKEP_OP_CHECKPOINT:
		return SKEP_FAULT_STATE;
	default:
		return SKEP_FAULT_NONE;
	}
}

static skep_time lateness(void *context, skep_time now, uint32_t machine)
{
	struct weather *w = context;
	(void)machine;
	return hit(w, now, WEATHER_LATE) ? any_size(w, w->plan.liveness.heartbeat_ns) : 0;
}

struct setup weather_setup(struct weather *w)
{
	w->random = mix64(w->seed + 2);
	memset(w->hits, 0, sizeof(w->hits));
	memset(w->link_last, 0, sizeof(w->link_last));
	return (struct setup){.plan = &w->plan,
		.context = w,
		.fate = fate_of,
		.op_time = op_time,
		.lateness = lateness,
		.ails = ails,
		.seed = mix64(w->seed + 3),
		.shuffle_ties = w->rate[WEATHER_REORDER] > 0,
		.calm_ns = w->abuse_ns,
		.end_ns = w->bound_ns,
		.events_limit = 5000000};
}

/* ---- faults that happen by themselves ------------------------------------------------------------------------------ */

static void schedule_news(struct weather *w, struct cluster *cluster, uint32_t about, skep_time died)
{
	for (uint32_t m = 0; m <= w->plan.workers; m++) {
		bool told = m == w->plan.workers ? below(w, 2) : below(w, 4) == 0;
		if (told && m != about)
			cluster_suspect(cluster, m, about, died + any_size(w, w->plan.liveness.fence_after_ns), false);
	}
}

static void schedule_deaths(struct weather *w, struct cluster *cluster)
{
	const struct skep_plan_liveness *live = &w->plan.liveness;
	for (uint32_t i = 0; i < w->rate[WEATHER_KILL]; i++) {
		uint32_t victim = (uint32_t)below(w, w->plan.workers);
		skep_time at = whole(w, below(w, w->abuse_ns));
		/* A stage may wait for a restart. */
		bool gentle = below(w, live->wait_for_join_ns > 0 ? 4 : 32) > 0;
		cluster_kill(cluster, victim, at, gentle);
		schedule_news(w, cluster, victim, at);
		if (chance(w, w->rate[WEATHER_RESTART]))
			cluster_restart(cluster, victim, at + any_size(w, 4 * live->fence_after_ns));
	}
	for (uint32_t i = 0; i < w->rate[WEATHER_NOTICE]; i++) {
		uint32_t victim = (uint32_t)below(w, w->plan.workers);
		skep_time at = whole(w, below(w, w->abuse_ns));
		skep_time leave_at = at + any_size(w, below(w, 2) ? 2 * live->fence_after_ns : 16 * w->round_ns);
		cluster_notice(cluster, victim, at, leave_at, true);
		if (chance(w, w->rate[WEATHER_RESTART]))
			cluster_restart(cluster, victim, leave_at + any_size(w, 4 * live->fence_after_ns));
	}
}

static void schedule_rumours(struct weather *w, struct cluster *cluster)
{
	for (uint32_t i = 0; i < w->rate[WEATHER_SUSPECT]; i++) {
		uint32_t about = (uint32_t)below(w, w->plan.workers);
		uint32_t to = below(w, 2) ? w->plan.workers : (uint32_t)below(w, w->plan.workers);
		skep_time at = whole(w, below(w, w->abuse_ns));
		bool gentle = below(w, 32) > 0;
		if (to != about)
			cluster_suspect(cluster, to, about, at, gentle);
		w->hits[WEATHER_SUSPECT]++;
	}
}

void weather_schedule(struct weather *w, struct cluster *cluster)
{
	for (uint32_t m = 0; w->rate[WEATHER_STAGGER] && m <= w->plan.workers; m++) {
		cluster_start_at(cluster, m, whole(w, below(w, w->plan.liveness.heartbeat_ns)));
		w->hits[WEATHER_STAGGER]++;
	}
	schedule_deaths(w, cluster);
	schedule_rumours(w, cluster);
	for (uint32_t i = 0; i < w->rate[WEATHER_PAUSE]; i++) {
		skep_time at = whole(w, below(w, w->abuse_ns));
		skep_time until = at + any_size(w, 2 * w->plan.liveness.fence_after_ns);
		cluster_pause(cluster, (uint32_t)below(w, w->plan.workers + 1), at, until);
		w->hits[WEATHER_PAUSE]++;
	}
}
