/* SPDX-License-Identifier: Apache-2.0
 *
 * expected.c - see expected.h.
 */
#include "planning/problem/expected.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/codec.h"
#include "planning/problem/forecast.h"
#include "topologies/read/path.h"

#define ITERATIONS 100u
#define STARVED 0.5
/* Ways to or from the directory between a round's last microbatch and the next round: FINISHED, REDUCE, TALLY, COMMIT; fewer
 * where the sum goes on beside that round. */
#define NEWS 4.0
#define NEWS_DELAYED 2.0

enum way { FORWARD, BACKWARD, BOTH };

struct station { /* what serves one message, or one pass, after the other, or shares itself among them */
	double load_s;
	enum skep_expected_bound bound;
	uint32_t from, to;
	double rest; /* of a service, that who comes finds still to be done; 1: it is shared among all that are there */
};

struct loads { /* seconds for a microbatch of the swarm, or of a reduction */
	const struct skep_planning *p;
	const uint32_t *stage_of;
	uint32_t *count;           /* [stages] workers */
	double *share;             /* [workers] of its stage's microbatches */
	uint32_t *nth;             /* [workers] of its stage */
	double *up, *down;         /* [workers] */
	double *shared;            /* [places * places] */
	double *uplink, *downlink; /* [places] */
	double connection_s;       /* the most of any ordered pair of workers ... */
	uint32_t from, to;         /* ... which is this one */
	double travel_s;           /* of one microbatch, there and back */
	struct station *station;   /* [3 * workers + places * places + 2 * places + 1] */
	double *queue;             /* the same: those that wait or are served */
	uint32_t stations;
};

/* ---- shares --------------------------------------------------------------------------------------------------------- */

static double compute_of(const struct loads *l, uint32_t worker)
{
	return l->p->compute_s[(size_t)worker * l->p->stages + l->stage_of[worker]];
}

static bool takes_part(const struct loads *l, uint32_t worker)
{
	return l->stage_of[worker] < l->p->stages;
}

/* Of a microbatch's passes that go this way. */
static double pass_of(const struct loads *l, uint32_t worker, enum way way)
{
	const struct skep_scenario *s = l->p->scenario;
	uint32_t gpu = s->topology.machine[l->p->machine[worker]].gpu, vstages = skep_plan_vstages(&s->plan);
	double ns = 0;
	if (way == BOTH)
		return compute_of(l, worker);
	for (uint32_t vstage = l->stage_of[worker]; vstage < vstages; vstage += l->p->stages) {
		const struct skep_op_time *time = &s->op_time[(size_t)gpu * vstages + vstage];
		ns += (double)(way == FORWARD ? time->forward_ns : time->backward_ns);
	}
	return 1e-9 * ns;
}

/* Are the parts of a stage's workers by their speed? Those of the first one are dealt to (core/directory/dealing.c), the wiring
 * decides about the others. */
static bool by_speed(const struct loads *l, uint32_t stage)
{
	const struct skep_plan *plan = &l->p->scenario->plan;
	if (stage == 0)
		return !skep_plan_fixed(plan) && !plan->inner_fixed;
	return l->p->throughput[0].shares == SKEP_SHARES_BY_SPEED;
}

static double weight_of(const struct loads *l, uint32_t worker)
{
	return by_speed(l, l->stage_of[worker]) ? 1 / fmax(compute_of(l, worker), 1e-12) : 1;
}

/* `weight` is scratch, [stages], all 0. False: a stage has no worker, or one that cannot serve it. */
static bool share_out(struct loads *l, double *weight)
{
	bool able = true;
	for (uint32_t i = 0; i < l->p->workers; i++) {
		if (!takes_part(l, i))
			continue;
		able = able && compute_of(l, i) < INFINITY;
		l->nth[i] = l->count[l->stage_of[i]]++;
		weight[l->stage_of[i]] += weight_of(l, i);
	}
	for (uint32_t i = 0; i < l->p->workers; i++)
		if (takes_part(l, i))
			l->share[i] = weight_of(l, i) / weight[l->stage_of[i]];
	for (uint32_t s = 0; s < l->p->stages; s++)
		able = able && l->count[s] > 0 &&
		       (l->p->throughput[0].shares != SKEP_SHARES_FIXED || l->count[s] == l->count[0]);
	return able;
}

/* ---- bytes on their way --------------------------------------------------------------------------------------------- */

static uint32_t place_of(const struct loads *l, uint32_t worker)
{
	return l->p->scenario->topology.machine[l->p->machine[worker]].place;
}

/* What one ordered pair of machines gets, all its connections together. */
static double pair_Bps(const struct skep_topology *t, uint32_t from, uint32_t to)
{
	uint32_t streams = skep_path_streams(t, from, to);
	double capacity = t->pair[(size_t)from * t->places + to].capacity_Bps;
	return streams == SKEP_STREAMS_EACH ? capacity : fmin(capacity, streams * skep_path_cap_Bps(t, from, to));
}

/* What machines share. */
static void carry_shared(struct loads *l, uint32_t from, uint32_t to, double bytes)
{
	const struct skep_topology *t = &l->p->scenario->topology;
	size_t at = (size_t)from * t->places + to;
	l->shared[at] += bytes / t->pair[at].shared_Bps;
	if (t->site_link && from != to) {
		l->uplink[from] += bytes / t->site_link[from].up_Bps;
		l->downlink[to] += bytes / t->site_link[to].down_Bps;
	}
}

/* A message of so many bytes, for so large a part of the microbatches. */
static void carry(struct loads *l, uint32_t i, uint32_t j, double bytes, double part)
{
	const struct skep_topology *t = &l->p->scenario->topology;
	uint32_t from = place_of(l, i), to = place_of(l, j);
	size_t at = (size_t)i * l->p->workers + j;
	double connection_s = part * bytes / pair_Bps(t, from, to);
	l->up[i] += part * bytes / t->machine[l->p->machine[i]].up_Bps;
	l->down[j] += part * bytes / t->machine[l->p->machine[j]].down_Bps;
	carry_shared(l, from, to, part * bytes);
	l->travel_s += part * (l->p->delay_s[at] + bytes / l->p->rate_Bps[SKEP_UNCONTENDED][at]);
	if (connection_s > l->connection_s) {
		l->connection_s = connection_s;
		l->from = i;
		l->to = j;
	}
}

/* How large a part of all microbatches is worker i's and also worker j's, in another stage. */
static double part_of(const struct loads *l, uint32_t i, uint32_t j)
{
	if (l->p->throughput[0].shares == SKEP_SHARES_FIXED)
		return l->nth[i] == l->nth[j] ? l->share[i] : 0;
	return l->share[i] * l->share[j];
}

static void clear(struct loads *l)
{
	size_t places = l->p->scenario->topology.places;
	memset(l->up, 0, l->p->workers * sizeof *l->up);
	memset(l->down, 0, l->p->workers * sizeof *l->down);
	memset(l->shared, 0, places * places * sizeof *l->shared);
	memset(l->uplink, 0, places * sizeof *l->uplink);
	memset(l->downlink, 0, places * sizeof *l->downlink);
	l->connection_s = l->travel_s = 0;
}

/* From worker to worker: activations of the stage to the next one, or gradients back. */
static void carry_stage(struct loads *l, uint32_t stage, enum way way)
{
	for (uint32_t i = 0; i < l->p->workers; i++)
		for (uint32_t j = 0; l->stage_of[i] == stage && j < l->p->workers; j++) {
			double part = l->stage_of[j] == stage + 1 ? part_of(l, i, j) : 0;
			if (part > 0 && way == FORWARD)
				carry(l, i, j, l->p->forward_bytes[stage], part);
			else if (part > 0)
				carry(l, j, i, l->p->backward_bytes[stage], part);
		}
}

/* Through the owner, which hands a stage's input over once more with its gradient. */
static void carry_by_owner(struct loads *l, uint32_t owner, uint32_t j)
{
	uint32_t stage = l->stage_of[j];
	double part = part_of(l, owner, j), in = l->p->forward_bytes[stage - 1], back = l->p->backward_bytes[stage - 1];
	carry(l, owner, j, in, part);
	carry(l, j, owner, back, part);
	if (stage + 1 == l->p->stages)
		return;
	carry(l, j, owner, l->p->forward_bytes[stage], part);
	carry(l, owner, j, in + l->p->backward_bytes[stage], part);
}

static void carry_all(struct loads *l)
{
	bool by_owner = l->p->scenario->plan.routing == SKEP_ROUTING_TRAINER;
	for (uint32_t stage = 0; !by_owner && stage + 1 < l->p->stages; stage++) {
		carry_stage(l, stage, FORWARD);
		carry_stage(l, stage, BACKWARD);
	}
	for (uint32_t i = 0; by_owner && i < l->p->workers; i++)
		for (uint32_t j = 0; l->stage_of[i] == 0 && j < l->p->workers; j++)
			if (takes_part(l, j) && l->stage_of[j] > 0)
				carry_by_owner(l, i, j);
}

/* ---- stations ------------------------------------------------------------------------------------------------------- */

/* Of two equally frequent services of these lengths half of the mean and of the square of the deviation over it is left (the mean
 * residual life of renewal theory), as a part of the mean. */
static double rest_of(const struct loads *l, uint32_t worker)
{
	double forward_s = pass_of(l, worker, FORWARD), backward_s = pass_of(l, worker, BACKWARD);
	double sum = forward_s + backward_s, deviation = sum > 0 ? (backward_s - forward_s) / sum : 0;
	return 0.5 * (1 + deviation * deviation);
}

static void add(struct loads *l, enum skep_expected_bound bound, uint32_t from, uint32_t to, double load_s, double rest)
{
	if (load_s > 0)
		l->station[l->stations++] = (struct station){load_s, bound, from, to, rest};
}

/* All that have a load; with what devices do for passes that go this way, if they make any. */
static void list_stations(struct loads *l, bool passes, enum way way)
{
	uint32_t places = l->p->scenario->topology.places;
	l->stations = 0;
	for (uint32_t i = 0; i < l->p->workers; i++) {
		if (!takes_part(l, i))
			continue;
		if (passes)
			add(l, SKEP_EXPECTED_COMPUTE, i, i, l->share[i] * pass_of(l, i, way), rest_of(l, i));
		add(l, SKEP_EXPECTED_UP, i, i, l->up[i], 1);
		add(l, SKEP_EXPECTED_DOWN, i, i, l->down[i], 1);
	}
	for (uint32_t a = 0; a < places; a++) {
		add(l, SKEP_EXPECTED_UPLINK, a, a, l->uplink[a], 1);
		add(l, SKEP_EXPECTED_DOWNLINK, a, a, l->downlink[a], 1);
		for (uint32_t b = 0; b < places; b++)
			add(l, SKEP_EXPECTED_SHARED, a, b, l->shared[(size_t)a * places + b], 1);
	}
	add(l, SKEP_EXPECTED_CONNECTION, l->from, l->to, l->connection_s, 1);
}

static const struct station *busiest(const struct loads *l)
{
	const struct station *most = NULL;
	for (uint32_t i = 0; i < l->stations; i++)
		if (!most || l->station[i].load_s > most->load_s)
			most = &l->station[i];
	return most;
}

/* ---- the flow ------------------------------------------------------------------------------------------------------- */

/* Microbatches a second, when n are under way and a trip on empty links takes trip_s: mean value analysis (Reiser and Lavenberg
 * 1980), by Schweitzer's approximation: who comes to a station finds (n - 1) / n of its mean queue, and of the one that is
 * served what is left of it. */
static double rate_of(struct loads *l, double n, double trip_s, double pace_s)
{
	double x = 1 / pace_s;
	memset(l->queue, 0, l->stations * sizeof *l->queue);
	for (uint32_t k = 0; k < ITERATIONS; k++) {
		double all_s = trip_s;
		for (uint32_t i = 0; i < l->stations; i++) {
			const struct station *at = &l->station[i];
			double busy = fmin(1, x * at->load_s), found = l->queue[i] * (n - 1) / n;
			double wait_s = at->load_s * fmax(0, found - busy * (1 - at->rest));
			l->queue[i] = x * (at->load_s + wait_s);
			all_s += wait_s;
		}
		x = 0.5 * (x + fmin(n / all_s, 1 / pace_s));
	}
	return x;
}

/* How unevenly a worker's part of so many microbatches falls, as a variance over its mean: senders choose each by itself,
 * so it is Poisson's law where each sends few to many; by throughput a sender takes turns, so only what is left of whole
 * turns is by chance. */
static double unevenness(const struct loads *l, uint32_t stage, double microbatches)
{
	double senders = l->count[stage > 0 ? stage - 1 : 0], receivers = l->count[stage];
	double each = microbatches / senders / receivers, left = each - floor(each);
	if (l->p->throughput[0].shares == SKEP_SHARES_EQUAL)
		return 1;
	return each > 0 ? left * (1 - left) / each : 0;
}

static double busiest_line_s(const struct loads *l)
{
	uint32_t places = l->p->scenario->topology.places;
	double most = 0;
	for (uint32_t a = 0; a < places; a++) {
		most = fmax(most, fmax(l->uplink[a], l->downlink[a]));
		for (uint32_t b = 0; b < places; b++)
			most = fmax(most, l->shared[(size_t)a * places + b]);
	}
	return most;
}

/* Messages that share a line all arrive when the line is done, so those that go on are together at the next one: where all
 * that is in flight moves like this, the lines of a microbatch's way add up. */
static double lines_in_a_row_s(struct loads *l)
{
	double sum = 0;
	bool peers = l->p->scenario->plan.routing != SKEP_ROUTING_TRAINER;
	for (uint32_t way = 0; peers && l->p->scenario->topology.places > 1 && way < 2 * (l->p->stages - 1); way++) {
		clear(l);
		carry_stage(l, way / 2, way % 2 == 0 ? FORWARD : BACKWARD);
		sum += busiest_line_s(l);
	}
	return sum;
}

/* From when the last of n microbatches are issued until all have come back: as long as the worker that was given most
 * needs, of which the largest of many normal deviates tells, or as long as the lines on their way beyond what one alone
 * takes for it. */
static double drain_s(struct loads *l, double n, double travel_s)
{
	double longest_s = n * lines_in_a_row_s(l) - travel_s;
	for (uint32_t i = 0; i < l->p->workers; i++) {
		if (!takes_part(l, i))
			continue;
		double mean = n * l->share[i], workers = l->count[l->stage_of[i]];
		double spread =
			l->stage_of[i] > 0 ? sqrt(2 * mean * unevenness(l, l->stage_of[i], n) * log(workers)) : 0;
		longest_s = fmax(longest_s, compute_of(l, i) * (mean + spread));
	}
	return longest_s;
}

/* GPipe makes all forward passes before the first backward pass, so neither hides behind the other. Stations are listed anew. */
static double gpipe_pace_s(struct loads *l)
{
	double pace_s = 0;
	for (enum way way = FORWARD; way <= BACKWARD; way++) {
		clear(l);
		for (uint32_t stage = 0; stage + 1 < l->p->stages; stage++)
			carry_stage(l, stage, way);
		list_stations(l, true, way);
		pace_s += busiest(l)->load_s;
	}
	return pace_s;
}

/* A single stage: each worker has at hand what it is dealt, so none waits for a link. Dealt to who is done first, all are
 * done when the workers could have done as many; in turn, when the slowest has done its part. `pace_s`: if a microbatch could be
 * shared out in parts. */
static double alone_s(const struct loads *l, double microbatches, double pace_s)
{
	double least_s = microbatches * pace_s, most_s = (microbatches + l->count[0]) * pace_s;
	if (!by_speed(l, 0))
		return least_s;
	for (uint32_t halving = 0; halving < 40; halving++) {
		double until_s = (least_s + most_s) / 2, done = 0;
		for (uint32_t i = 0; i < l->p->workers; i++)
			done += takes_part(l, i) ? floor(until_s / compute_of(l, i) * (1 + 1e-9)) : 0;
		if (done < microbatches)
			least_s = until_s;
		else
			most_s = until_s;
	}
	return most_s;
}

/* Of a trip, what an interleaved pipeline does not wait for when it fills and drains: a worker begins when the first model
 * chunk of those before it is done, so of their passes only a part counts, one over the number of chunks. */
static double hidden_s(const struct loads *l, double passes_s)
{
	double chunks = skep_plan_model_chunks(&l->p->scenario->plan), most_s = 0;
	for (uint32_t i = 0; chunks > 1 && i < l->p->workers; i++)
		if (takes_part(l, i))
			most_s = fmax(most_s, compute_of(l, i));
	return (1 - 1 / chunks) * fmax(0, passes_s - most_s);
}

static void find_flow(struct loads *l, struct skep_expected *e)
{
	const struct skep_throughput *t = &l->p->throughput[0];
	bool fixed = t->shares == SKEP_SHARES_FIXED;
	double flushes = skep_plan_flushes(&l->p->scenario->plan), round = t->microbatches * t->period / flushes;
	double n = fmin(t->in_flight * l->count[0], round); /* of a round, or of one flush in it */
	const struct station *found = busiest(l);
	const struct station most = found ? *found : (struct station){.bound = SKEP_EXPECTED_COMPUTE};
	double travel_s = l->travel_s;
	e->trip_s = travel_s;
	for (uint32_t i = 0; i < l->p->workers; i++) {
		if (!takes_part(l, i))
			continue;
		e->trip_s += l->share[i] * compute_of(l, i);
		e->update_s = fmax(e->update_s, l->p->update_s[(size_t)i * l->p->stages + l->stage_of[i]]);
	}
	e->pace_s = most.load_s;
	double rate =
		fixed ? fmin(1 / e->pace_s, n < round ? n / e->trip_s : INFINITY) : rate_of(l, n, e->trip_s, e->pace_s);
	double first = fixed ? l->count[0] : 1; /* that begin at once */
	if (l->p->scenario->plan.pipeline == SKEP_PIPELINE_GPIPE)
		rate = fmin(rate, 1 / gpipe_pace_s(l));
	double last = fmin(n, round); /* that are in flight at its end */
	e->flow_s = e->trip_s - hidden_s(l, e->trip_s - travel_s) + fmax(0, round - first) / rate;
	if (!fixed)
		e->flow_s = fmax(e->flow_s, e->trip_s + (round - last) / rate + drain_s(l, last, travel_s));
	if (l->p->stages == 1) {
		rate = 1 / e->pace_s;
		e->flow_s = alone_s(l, round, e->pace_s);
	}
	e->flow_s *= flushes / t->period;
	e->busy = rate * e->pace_s;
	e->starved = !fixed && e->busy < STARVED && n < round;
	e->bound = most.bound;
	e->from = most.from;
	e->to = most.to;
}

/* ---- reductions ----------------------------------------------------------------------------------------------------- */

static uint32_t next_member(const struct loads *l, uint32_t worker)
{
	uint32_t next = worker;
	do
		next = next + 1 < l->p->workers ? next + 1 : 0;
	while (l->stage_of[next] != l->stage_of[worker]);
	return next;
}

/* Each edge of the stage's ring carries so many bytes. The sum of the delays of all edges. */
static double carry_ring(struct loads *l, uint32_t stage, double bytes)
{
	double delay_s = 0;
	for (uint32_t i = 0; i < l->p->workers; i++) {
		if (l->stage_of[i] != stage)
			continue;
		uint32_t next = next_member(l, i);
		carry(l, i, next, bytes, 1);
		delay_s += l->p->delay_s[(size_t)i * l->p->workers + next];
	}
	return delay_s;
}

static double busiest_s(struct loads *l)
{
	list_stations(l, false, BOTH);
	const struct station *most = busiest(l);
	return most ? most->load_s : 0;
}

static double rings_s(struct loads *l)
{
	double longest_s = 0;
	for (uint32_t s = 0; s < l->p->stages; s++) {
		double n = l->count[s];
		clear(l);
		double bytes = l->p->reduced_bytes[s] / n, delay_s = n > 1 ? carry_ring(l, s, bytes) : 0;
		longest_s = fmax(
			longest_s, skep_throughput_ring_s(&l->p->throughput[0], n, bytes, busiest_s(l), delay_s / n));
	}
	clear(l);
	for (uint32_t s = 0; s < l->p->stages; s++)
		if (l->count[s] > 1)
			carry_ring(l, s, 2 * (l->count[s] - 1.0) / l->count[s] * l->p->reduced_bytes[s]);
	return fmax(longest_s, busiest_s(l));
}

/* The nth worker of a stage. */
static uint32_t member(const struct loads *l, uint32_t stage, uint32_t nth)
{
	uint32_t i = 0;
	while (l->stage_of[i] != stage || l->nth[i] != nth)
		i++;
	return i;
}

/* Tables of tied embeddings: each rank of the first stage and that of the last one exchange theirs, and ranks that only one
 * of the stages has get both from an earlier one of their own. */
static double tied_s(struct loads *l)
{
	const struct skep_plan *plan = &l->p->scenario->plan;
	uint32_t last = l->p->stages - 1, wide = l->count[0] > l->count[last] ? 0 : last;
	uint32_t most = l->count[wide], least = l->count[last - wide];
	double bytes = (double)skep_plan_encoded_bytes(plan, plan->tied), across_s, delay_s = 0;
	clear(l);
	for (uint32_t i = 0; i < least; i++) {
		uint32_t a = member(l, 0, i), b = member(l, last, i);
		carry(l, a, b, bytes, 1);
		carry(l, b, a, bytes, 1);
		delay_s = fmax(delay_s, l->p->delay_s[(size_t)a * l->p->workers + b]);
	}
	across_s = busiest_s(l) + delay_s;
	clear(l);
	for (uint32_t i = least; i < most; i++)
		carry(l, member(l, wide, i - least), member(l, wide, i), bytes, 1);
	return across_s + busiest_s(l);
}

static double reductions_s(struct loads *l)
{
	double longest_s = 0;
	if (l->p->scenario->plan.collective == SKEP_COLLECTIVE_RING)
		longest_s = rings_s(l);
	else
		for (uint32_t s = 0; s < l->p->stages; s++)
			longest_s = fmax(longest_s, skep_forecast_reduction_s(l->p, SKEP_CONTENDED, l->stage_of, s));
	return longest_s + (l->p->scenario->plan.tied > 0 ? tied_s(l) : 0);
}

/* ---- the whole ------------------------------------------------------------------------------------------------------ */

/* The longest way to the directory and the longest way from it, together. */
static double to_directory_s(const struct loads *l)
{
	const struct skep_topology *t = &l->p->scenario->topology;
	uint32_t directory = t->machine[t->machines].place;
	double there_s = 0, back_s = 0;
	for (uint32_t i = 0; i < l->p->workers; i++) {
		if (!takes_part(l, i))
			continue;
		there_s = fmax(there_s, skep_path_mean_s(t, place_of(l, i), directory));
		back_s = fmax(back_s, skep_path_mean_s(t, directory, place_of(l, i)));
	}
	return there_s + back_s;
}

static void make(struct loads *l, struct skep_expected *e)
{
	const struct skep_throughput *t = &l->p->throughput[0];
	carry_all(l);
	list_stations(l, true, BOTH);
	find_flow(l, e);
	e->reduction_s = reductions_s(l) / t->period;
	e->turn_s = 0.5 * (t->delayed ? NEWS_DELAYED : NEWS) * to_directory_s(l) / t->period;
	e->step_s = t->delayed ? fmax(e->flow_s, e->reduction_s) : e->flow_s + e->reduction_s;
	e->step_s += e->update_s + e->turn_s;
}

bool skep_expected_make(const struct skep_planning *p, const uint32_t *stage_of, struct skep_expected *e)
{
	size_t places = p->scenario->topology.places, workers = p->workers;
	size_t stations = 3 * workers + places * places + 2 * places + 1;
	double *room = calloc(3 * workers + places * places + 2 * places + stations + p->stages, sizeof *room);
	uint32_t *numbers = calloc(workers + p->stages, sizeof *numbers);
	struct station *station = calloc(stations, sizeof *station);
	struct loads l = {.p = p, .stage_of = stage_of, .station = station};
	bool ok = room && numbers && station;
	*e = (struct skep_expected){.step_s = INFINITY};
	if (ok) {
		l.share = room;
		l.up = l.share + workers;
		l.down = l.up + workers;
		l.shared = l.down + workers;
		l.uplink = l.shared + places * places;
		l.downlink = l.uplink + places;
		l.queue = l.downlink + places;
		l.count = numbers;
		l.nth = numbers + p->stages;
		if (share_out(&l, l.queue + stations))
			make(&l, e);
	}
	free(room);
	free(numbers);
	free(station);
	return ok;
}

bool skep_expected_known(const struct skep_scenario *s)
{
	return s->plan.workers <= SKEP_EXPECTED_WORKERS_MAX && !s->plan.async && !s->plan.gossip && !s->plan.eager &&
	       s->zero == 0 && !skep_plan_has_candidates(&s->plan);
}

void skep_expected_bound_text(const struct skep_planning *p, const struct skep_expected *e, char *ret, size_t size)
{
	static const char *const of_worker[] = {[SKEP_EXPECTED_COMPUTE] = "the device of",
		[SKEP_EXPECTED_UP] = "the way out of",
		[SKEP_EXPECTED_DOWN] = "the way into",
		[SKEP_EXPECTED_CONNECTION] = "the connection from"};
	const struct skep_topology *t = &p->scenario->topology;
	if (e->bound == SKEP_EXPECTED_SHARED) {
		snprintf(ret, size, "the line from %s to %s", t->place_name[e->from], t->place_name[e->to]);
	} else if (e->bound == SKEP_EXPECTED_UPLINK || e->bound == SKEP_EXPECTED_DOWNLINK) {
		snprintf(ret, size, "the %s of %s", e->bound == SKEP_EXPECTED_UPLINK ? "uplink" : "downlink",
			t->place_name[e->from]);
	} else {
		uint32_t from = p->machine[e->from], to = p->machine[e->to];
		int used = snprintf(ret, size, "%s worker %" PRIu32 ", a %s", of_worker[e->bound], from,
			t->gpu[t->machine[from].gpu].name);
		if (from != to && used > 0 && (size_t)used < size)
			snprintf(ret + used, size - (size_t)used, ", to worker %" PRIu32, to);
	}
}
