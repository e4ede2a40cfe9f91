/* SPDX-License-Identifier: Apache-2.0
 *
 * fault_mix_print.c - what a seed means, for a person.
 */
#include "tests/cluster/fault_mix.h"

static const char *steps_by(const struct skep_plan *plan)
{
	return plan->inner.by_share ? "share" : plan->inner.fixed ? "fixed parts" : "progress";
}

const char *weather_fault_name(enum weather_fault fault)
{
	static const char *const name[WEATHER_FAULTS] = {[WEATHER_DELAY] = "delay",
		[WEATHER_REORDER] = "reorder",
		[WEATHER_DUPLICATE] = "duplicate",
		[WEATHER_RETURN] = "return",
		[WEATHER_SLOW] = "slow",
		[WEATHER_LATE] = "late",
		[WEATHER_STAGGER] = "stagger",
		[WEATHER_KILL] = "kill",
		[WEATHER_RESTART] = "restart",
		[WEATHER_NOTICE] = "notice",
		[WEATHER_SUSPECT] = "suspect",
		[WEATHER_PAUSE] = "pause"};
	return name[fault];
}

static void print_policies(const struct skep_plan *plan, FILE *to)
{
	if (plan->rebalance.period_ns > 0)
		fprintf(to, "; rebalancing every %u us, horizon %u us%s", (unsigned)(plan->rebalance.period_ns / 1000),
			(unsigned)(plan->rebalance.horizon_ns / 1000),
			plan->rebalance.by == SKEP_REBALANCE_BY_QUEUE ? ", by queue" : "");
	if (plan->liveness.ban == SKEP_BAN_AT_ONCE)
		fprintf(to, "; bans at once");
	if (plan->no_flush.weights != SKEP_WEIGHTS_STASHED || plan->no_flush.synchronous > 0)
		fprintf(to, "; %s weights, %u synchronous rounds", skep_weights_name((uint8_t)plan->no_flush.weights),
			plan->no_flush.synchronous);
}

static void print_faults(const struct weather *w, FILE *to)
{
	fprintf(to, "  faults:");
	for (uint32_t f = 0; f < WEATHER_FAULTS; f++)
		if (w->rate[f])
			fprintf(to, " %s %u", weather_fault_name(f), w->rate[f]);
	if (w->infinite + w->unkept > 0)
		fprintf(to, " infinite %u unkept %u", w->infinite, w->unkept);
	for (uint32_t i = 0; i < w->outages; i++)
		fprintf(to, " directory lost at %u us, back at %u us", (unsigned)(w->lost_ns[i] / 1000),
			(unsigned)(w->back_ns[i] / 1000));
	if (w->held)
		fprintf(to, ", with what workers hold");
	fprintf(to, "\n");
}

void weather_print(const struct weather *w, FILE *to)
{
	static const char *const wiring[] = {"uniform", "throughput", "latency", "fixed"}, *const pipeline[] = {"",
												   "gpipe; ", "1f1b; ",
												   "interleaved; ",
												   "pipedream; "};
	const struct skep_plan *plan = &w->plan;
	fprintf(to, "  swarm: %u stages, workers serve", plan->stages);
	for (uint32_t i = 0; i < plan->workers; i++) {
		if (plan->first_stage_of[i] == SKEP_NO_STAGE)
			fprintf(to, plan->stands_by && plan->stands_by[i] ? " +" : " -");
		else
			fprintf(to, " %u", plan->first_stage_of[i]);
	}
	fprintf(to, "; parameters");
	for (uint32_t s = 0; s < plan->stages; s++)
		fprintf(to, " %u", (unsigned)plan->stage[s].parameters);
	fprintf(to, "\n  work: %u rounds of %u microbatches in %u flushes, %u in flight, at most %u\n", plan->rounds,
		plan->microbatches, skep_plan_flushes(plan), plan->in_flight, skep_plan_in_flight_most(plan));
	if (plan->reduction.collective != SKEP_COLLECTIVE_RING)
		fprintf(to, "  collective: %s%s\n", skep_collective_name((uint8_t)plan->reduction.collective),
			plan->reduction.gather ? ", gathered" : "");
	fprintf(to, "  %swiring: %s, routing: %s, %u samples, %u places%s", pipeline[plan->pipeline],
		wiring[plan->wiring], plan->routing == SKEP_ROUTING_TRAINER ? "trainer" : "peer", plan->samples,
		plan->places.count,
		plan->delayed                         ? "; delayed updates"
		: plan->on_loss == SKEP_ON_LOSS_RERUN ? "; lost work is run again"
						      : "");
	print_policies(plan, to);
	if (plan->inner.cycle > 0)
		fprintf(to, "; %u inner steps in a cycle", plan->inner.cycle);
	if (plan->inner.steps > 0)
		fprintf(to, "; %u inner steps, by %s, %u fragments, overlap %u%s", plan->inner.steps, steps_by(plan),
			plan->inner.fragments, plan->inner.overlap, plan->inner.deadline ? " at most" : "");
	for (uint32_t s = 0; plan->inner.sum_every && s < plan->stages; s++)
		fprintf(to, "%s%u",
			s > 0 ? ", " : "; by stage, a sum in one of so many rounds: ", plan->inner.sum_every[s]);
	fprintf(to, "%s%s", plan->gossip ? "; in pairs" : "",
		plan->reduction.order ? "; members in an order of their own" : "");
	if (plan->async.waits)
		fprintf(to, "; a worker waits for its merge");
	if (plan->tied > 0)
		fprintf(to, "; the ends share a table of %u", (unsigned)plan->tied);
	for (uint32_t s = 0; s < plan->stages; s++)
		if (plan->stage[s].frozen + plan->stage[s].frozen_end > 0)
			fprintf(to, "; of stage %u not trained: %u + %u", s, (unsigned)plan->stage[s].frozen,
				(unsigned)plan->stage[s].frozen_end);
	if (plan->barrier)
		fprintf(to, "; a barrier before the backward passes");
	if (plan->eager)
		fprintf(to, "; eager all-reduce%s", plan->stage[0].buckets ? ", in buckets" : "");
	if (plan->joins == SKEP_JOINS_RANDOM)
		fprintf(to, "; newcomers go anywhere");
	if (plan->candidates.count > 1)
		fprintf(to, "; %u candidates for %u rounds", plan->candidates.count, plan->candidates.rounds);
	if (plan->validation.every > 0)
		fprintf(to, "; validation of %u after every %u rounds", plan->validation.microbatches,
			plan->validation.every);
	fprintf(to, "%s%s%s", plan->clip ? "; gradients are clipped" : "", plan->sharded ? "; steps in shards" : "",
		plan->together ? "; stages step together" : "");
	if (plan->liveness.reissue_after_ns > 0)
		fprintf(to, "; patience of %u us", (unsigned)(plan->liveness.reissue_after_ns / 1000));
	fprintf(to,
		"\n  times in us: latency %u, operation %u, heartbeat %u, fence after %u, abuse until %u, ticks of %u "
		"ns\n",
		(unsigned)(w->latency_ns / 1000), (unsigned)(w->op_ns / 1000),
		(unsigned)(plan->liveness.heartbeat_ns / 1000), (unsigned)(plan->liveness.fence_after_ns / 1000),
		(unsigned)(w->abuse_ns / 1000), (unsigned)w->quantum_ns);
	print_faults(w, to);
}
