/* SPDX-License-Identifier: Apache-2.0
 *
 * pipelines.c - see loads.h.
 */
#include "planning/expected/loads.h"

#include <math.h>

#include "core/record.h"
#include "core/schedule/pipelines.h"

/* GPipe makes all forward passes before the first backward pass, so neither hides behind the other. Stations are listed anew. */
static double gpipe_pace_s(struct skep_loads *l)
{
	double pace_s = 0;
	for (enum skep_way way = SKEP_WAY_FORWARD; way <= SKEP_WAY_BACKWARD; way++) {
		skep_loads_clear(l);
		for (uint32_t stage = 0; stage + 1 < l->p->stages; stage++)
			skep_loads_carry_stage(l, stage, way);
		skep_loads_list_stations(l, true, way);
		pace_s += skep_loads_busiest(l)->load_s;
	}
	return pace_s;
}

/* The worker of a virtual stage in a pipeline. */
static uint32_t at(const struct skep_loads *l, uint32_t pipeline, uint32_t vstage)
{
	return skep_loads_member(l, pipeline, vstage % l->p->stages);
}

static double message_s(const struct skep_loads *l, uint32_t from, uint32_t to, double bytes)
{
	size_t pair = (size_t)from * l->p->workers + to;
	return l->p->delay_s[pair] + skep_loads_message_s(l, from, to, bytes);
}

/* Of both messages between a virtual stage and the next one. */
static double hop_s(const struct skep_loads *l, uint32_t pipeline, uint32_t vstage)
{
	uint32_t here = at(l, pipeline, vstage), next = at(l, pipeline, vstage + 1);
	const struct skep_scenario *s = l->p->scenario;
	double bytes = (double)(s->vstage_bytes[vstage] + SKEP_HEADER_BYTES);
	double gradient = (double)(skep_plan_gradient_bytes(&s->plan, vstage) + SKEP_HEADER_BYTES);
	return here == next ? 0 : message_s(l, here, next, bytes) + message_s(l, next, here, gradient);
}

/* Both passes of a virtual stage. */
static double vstage_s(const struct skep_loads *l, uint32_t pipeline, uint32_t vstage)
{
	const struct skep_scenario *s = l->p->scenario;
	uint32_t worker = at(l, pipeline, vstage), vstages = skep_plan_vstages(&s->plan);
	uint32_t gpu = s->topology.machine[l->p->machine[worker]].gpu;
	const struct skep_op_time *time = &s->op_time[(size_t)gpu * vstages + vstage];
	return 1e-9 * (double)(time->forward_ns + time->backward_ns);
}

/* From a virtual stage's forward pass to the end of its backward pass, on empty links, computing and on the way. */
static double until_back_s(const struct skep_loads *l, uint32_t pipeline, uint32_t vstage)
{
	uint32_t vstages = skep_plan_vstages(&l->p->scenario->plan);
	double sum = 0;
	for (uint32_t q = vstage; q < vstages; q++)
		sum += vstage_s(l, pipeline, q) + (q + 1 < vstages ? hop_s(l, pipeline, q) : 0);
	return sum;
}

double skep_pipelines_back_s(const struct skep_loads *l, uint32_t stage)
{
	double most_s = 0;
	for (uint32_t p = 0; p < l->pipelines; p++)
		most_s = fmax(most_s, until_back_s(l, p, stage));
	return most_s;
}

/* What a worker of the stage may hold of a flush, in which it has so many microbatches. */
static double held(const struct skep_loads *l, uint32_t stage, double share)
{
	const struct skep_plan *plan = &l->p->scenario->plan;
	uint32_t from_here = 0, here = l->count[stage];
	if (skep_plan_waves(plan))
		return skep_wave_held((uint32_t)share, stage);
	for (uint32_t later = stage; later < l->p->stages; later++)
		from_here += l->count[later];
	return skep_pipeline_held(plan->pipeline, l->p->stages, skep_plan_model_chunks(plan),
		(from_here + here - 1) / here, (uint32_t)share, stage);
}

/* What is in the way of a pipeline's microbatches, one after the other. */
struct pace {
	double share;  /* of a flush that is the pipeline's */
	double pace_s; /* from one of them to the next */
	double more_s; /* after the first one of the flush */
};

/* Something takes so long for a microbatch, and for one of each of the pipelines that share it. */
static void slow_down(struct pace *pace, double each_s, double pipelines)
{
	pace->pace_s = fmax(pace->pace_s, each_s * pipelines);
	pace->more_s = fmax(pace->more_s, (pace->share * pipelines - 1) * each_s);
}

static double sharing(const struct skep_loads *l, uint32_t stage)
{
	return (double)l->pipelines / l->count[stage];
}

/* A worker of a stage holds no more than so many between their passes. */
static void slow_down_by_held(const struct skep_loads *l, uint32_t pipeline, struct pace *pace)
{
	const struct skep_plan *plan = &l->p->scenario->plan;
	uint32_t chunks = skep_plan_model_chunks(plan);
	for (uint32_t stage = 0; stage < l->p->stages; stage++) {
		double share = pace->share * sharing(l, stage), most = held(l, stage, share), sum = 0;
		for (uint32_t c = 0; c < chunks; c++)
			sum += until_back_s(l, pipeline, stage + c * l->p->stages);
		if (most < share * chunks || skep_plan_no_flush(plan))
			slow_down(pace, sum / most, sharing(l, stage));
	}
}

/* With 1F1B forward and backward passes take turns in a fixed order: behind the forward pass of a microbatch a worker of stage
 * t, which holds h(t), makes the backward pass of the one h(t) - 1 earlier, and behind that gradient a worker of stage s makes
 * the forward pass of the one h(s) later. So h(s) - h(t) + 1 go from s to t and back in the time that one takes, which are
 * t - s + 1 where stages have equally many workers; else those of t count as many times as it has workers for one of s. For the
 * last stage slow_down_by_held() says the same. */
static void slow_down_by_turns(const struct skep_loads *l, uint32_t pipeline, struct pace *pace)
{
	const struct skep_plan *plan = &l->p->scenario->plan;
	if (plan->pipeline != SKEP_PIPELINE_1F1B)
		return;
	for (uint32_t s = 0; s < l->p->stages; s++) {
		double share = pace->share * sharing(l, s), most = held(l, s, share), sum = vstage_s(l, pipeline, s);
		for (uint32_t t = s + 1; t < l->p->stages; t++) {
			double later = held(l, t, pace->share * sharing(l, t));
			double together = most - (later - 1) * l->count[t] / l->count[s];
			sum += hop_s(l, pipeline, t - 1) + vstage_s(l, pipeline, t);
			if (together >= 1 && together < most && most < share)
				slow_down(pace, sum / together, sharing(l, s));
		}
	}
}

/* Of a trip, what an interleaved pipeline does not wait for when it fills and drains: a worker begins when the first model
 * chunk of those before it is done, so of their passes only a part counts, one over the number of chunks. */
static double hidden_s(const struct skep_loads *l, uint32_t pipeline)
{
	double chunks = skep_plan_model_chunks(&l->p->scenario->plan), most_s = 0, sum = 0;
	for (uint32_t stage = 0; stage < l->p->stages; stage++) {
		double passes_s = skep_loads_compute_s(l, at(l, pipeline, stage));
		sum += passes_s;
		most_s = fmax(most_s, passes_s);
	}
	return (1 - 1 / chunks) * (sum - most_s);
}

/* Where rounds overlap, each `share` microbatches followed by an update: the longest that a device of the pipeline takes for one,
 * and its part of that. */
static double update_pace_s(const struct skep_loads *l, uint32_t pipeline, double share)
{
	double pace_s = 0;
	for (uint32_t s = 0; s < l->p->stages; s++) {
		uint32_t worker = at(l, pipeline, s);
		pace_s = fmax(pace_s, sharing(l, s) * skep_loads_compute_s(l, worker) +
					      l->p->update_s[(size_t)worker * l->p->stages + s] / share);
	}
	return pace_s;
}

/* All that the pipeline uses is busy with its microbatches. */
static void slow_down_by_stations(const struct skep_loads *l, uint32_t pipeline, struct pace *pace)
{
	for (uint32_t i = 0; i < l->stations; i++) {
		const struct skep_station *station = &l->station[i];
		bool of_worker = station->bound <= SKEP_EXPECTED_CONNECTION;
		uint32_t stage = of_worker ? l->stage_of[station->from] : 0;
		double all_s = station->load_s * l->pipelines;
		double by = of_worker ? sharing(l, stage) : 1;
		if (!of_worker || pipeline % l->count[stage] == l->nth[station->from])
			slow_down(pace, all_s / by, by);
	}
}

/* Of the rounds of the run, those that wait for the step before. */
static double synchronous_part(const struct skep_plan *plan)
{
	uint32_t first = plan->first_round, end = plan->rounds;
	uint32_t waits = plan->no_flush.synchronous < end ? plan->no_flush.synchronous : end;
	return waits > first ? (double)(waits - first) / (end - first) : 0;
}

struct slowest { /* of all pipelines, in a round */
	double flow_s,
		ways_s; /* the longest passes, and of those that take so long the longest ways to the directory and back */
	double both_s; /* the longest of both together: a far pipeline of fast machines may be done first */
};

static void follow(struct slowest *s, double flow_s, double ways_s)
{
	const double alike = 1 - 1e-9;
	if (alike * flow_s > s->flow_s)
		s->ways_s = 0;
	if (flow_s >= alike * s->flow_s)
		s->ways_s = fmax(s->ways_s, ways_s);
	s->flow_s = fmax(s->flow_s, flow_s);
	s->both_s = fmax(s->both_s, flow_s + ways_s);
}

/* One way of a microbatch through the pipeline, on empty links. */
static double one_way_s(const struct skep_loads *l, uint32_t pipeline, enum skep_way way)
{
	double sum = 0;
	for (uint32_t s = 0; s < l->p->stages; s++) {
		uint32_t here = at(l, pipeline, s), next = s + 1 < l->p->stages ? at(l, pipeline, s + 1) : here;
		sum += skep_loads_pass_s(l, here, way);
		if (here != next && way == SKEP_WAY_FORWARD)
			sum += message_s(l, here, next, l->p->forward_bytes[s]);
		else if (here != next)
			sum += message_s(l, next, here, l->p->backward_bytes[s]);
	}
	return sum;
}

/* GPipe with a barrier: the last worker of each pipeline tells the directory that all has gone forwards, and waits until it hears
 * that so it has in all of them. */
static void flow_with_barrier(struct skep_loads *l, struct skep_expected *e, double share)
{
	double passes_s = 0, both_s = 0;
	for (enum skep_way way = SKEP_WAY_FORWARD; way <= SKEP_WAY_BACKWARD; way++) {
		double longest_s = 0, told_s = 0;
		skep_loads_clear(l);
		for (uint32_t stage = 0; stage + 1 < l->p->stages; stage++)
			skep_loads_carry_stage(l, stage, way);
		skep_loads_list_stations(l, true, way);
		for (uint32_t p = 0; p < l->pipelines; p++) {
			struct pace pace = {.share = share};
			uint32_t first = at(l, p, 0), last = at(l, p, l->p->stages - 1);
			uint32_t from = way == SKEP_WAY_FORWARD ? first : last;
			slow_down_by_stations(l, p, &pace);
			double flow_s = one_way_s(l, p, way) + pace.more_s;
			double ways_s = skep_loads_down_s(l, from) + skep_loads_up_s(l, from == first ? last : first);
			longest_s = fmax(longest_s, flow_s);
			told_s = fmax(told_s, flow_s + ways_s);
		}
		passes_s += longest_s;
		both_s += told_s;
	}
	e->flow_s = passes_s;
	l->ways_s = both_s - passes_s;
}

void skep_pipelines_flow(struct skep_loads *l, struct skep_expected *e, double flush)
{
	const struct skep_plan *plan = &l->p->scenario->plan;
	double share = flush / l->pipelines, flushes = skep_plan_flushes(plan);
	struct slowest slowest = {.flow_s = 0};
	skep_loads_carry_all(l);
	skep_loads_list_stations(l, true, SKEP_WAY_BOTH);
	const struct skep_station most = *skep_loads_busiest(l);
	e->pace_s = most.load_s;
	e->bound = most.bound;
	e->from = most.from;
	e->to = most.to;
	for (uint32_t p = 0; p < l->pipelines; p++) {
		double trip_s = until_back_s(l, p, 0);
		struct pace pace = {.share = share};
		slow_down_by_stations(l, p, &pace);
		slow_down_by_held(l, p, &pace);
		slow_down_by_turns(l, p, &pace);
		double pace_s = pace.pace_s, flow_s = trip_s - hidden_s(l, p) + pace.more_s;
		if (skep_plan_no_flush(plan)) {
			pace_s = fmax(pace_s, update_pace_s(l, p, share));
			flow_s = share * pace_s; /* the pipeline never runs empty, */
			flow_s += synchronous_part(plan) * fmax(0, trip_s - pace_s); /* once it is filled */
		}
		e->trip_s = fmax(e->trip_s, trip_s);
		follow(&slowest, flushes * flow_s, skep_loads_up_s(l, at(l, p, 0)) + skep_loads_down_s(l, at(l, p, 0)));
	}
	if (plan->pipeline == SKEP_PIPELINE_GPIPE) {
		double flow_s = e->trip_s + fmax(0, flush - l->pipelines) * gpipe_pace_s(l);
		follow(&slowest, fmax(slowest.flow_s, flushes * flow_s), slowest.ways_s);
	}
	e->flow_s = slowest.flow_s / flushes;
	l->ways_s = slowest.both_s - slowest.flow_s;
	if (plan->barrier)
		flow_with_barrier(l, e, share);
}
