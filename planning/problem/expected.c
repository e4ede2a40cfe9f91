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
#include "planning/problem/loads.h"
#include "topologies/read/path.h"

#define ITERATIONS 100u
#define STARVED 0.5
#define STARVED_ALONE 0.9 /* where no worker waits for another one */
/* Ways to or from the directory between a round's last microbatch and the next round: FINISHED, REDUCE, TALLY, COMMIT; fewer
 * where the sum goes on beside that round. */
#define NEWS 4.0
#define NEWS_DELAYED 2.0

/* ---- the flow ------------------------------------------------------------------------------------------------------- */

/* Microbatches a second, when n are under way and a trip on empty links takes trip_s: mean value analysis (Reiser and Lavenberg
 * 1980), by Schweitzer's approximation: who comes to a station finds (n - 1) / n of its mean queue, and of the one that is
 * served what is left of it. */
static double rate_of(struct skep_loads *l, double n, double trip_s, double pace_s)
{
	double x = 1 / pace_s;
	memset(l->queue, 0, l->stations * sizeof *l->queue);
	for (uint32_t k = 0; k < ITERATIONS; k++) {
		double all_s = trip_s;
		for (uint32_t i = 0; i < l->stations; i++) {
			const struct skep_station *at = &l->station[i];
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
static double unevenness(const struct skep_loads *l, uint32_t stage, double microbatches)
{
	double senders = l->count[stage > 0 ? stage - 1 : 0], receivers = l->count[stage];
	double each = microbatches / senders / receivers, left = each - floor(each);
	if (l->p->throughput[0].shares == SKEP_SHARES_EQUAL)
		return 1;
	return each > 0 ? left * (1 - left) / each : 0;
}

static double busiest_line_s(const struct skep_loads *l)
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
static double lines_in_a_row_s(struct skep_loads *l)
{
	double sum = 0;
	bool peers = l->p->scenario->plan.routing != SKEP_ROUTING_TRAINER;
	for (uint32_t way = 0; peers && l->p->scenario->topology.places > 1 && way < 2 * (l->p->stages - 1); way++) {
		skep_loads_clear(l);
		skep_loads_carry_stage(l, way / 2, way % 2 == 0 ? SKEP_WAY_FORWARD : SKEP_WAY_BACKWARD);
		sum += busiest_line_s(l);
	}
	return sum;
}

/* From when the last of n microbatches are issued until all have come back: as long as the worker that was given most
 * needs, of which the largest of many normal deviates tells, or as long as the lines on their way beyond what one alone
 * takes for it. */
static double drain_s(struct skep_loads *l, double n, double travel_s)
{
	double longest_s = n * lines_in_a_row_s(l) - travel_s;
	for (uint32_t i = 0; i < l->p->workers; i++) {
		if (!skep_loads_takes_part(l, i))
			continue;
		double mean = n * l->share[i], workers = l->count[l->stage_of[i]];
		double spread =
			l->stage_of[i] > 0 ? sqrt(2 * mean * unevenness(l, l->stage_of[i], n) * log(workers)) : 0;
		longest_s = fmax(longest_s, skep_loads_compute_s(l, i) * (mean + spread));
	}
	return longest_s;
}

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

/* To the directory, and back. */
static double from_directory_s(const struct skep_loads *l, uint32_t worker)
{
	const struct skep_topology *t = &l->p->scenario->topology;
	uint32_t directory = t->machine[t->machines].place, place = skep_loads_place(l, worker);
	return skep_path_mean_s(t, place, directory) + skep_path_mean_s(t, directory, place);
}

/* From one microbatch of a worker to its next one: what it computes, or, while all that it may be dealt ahead is on the way, a
 * part of the way to the directory, by which it is dealt anew. In a fixed pipeline it has its share from the start. */
static double between_s(const struct skep_loads *l, uint32_t worker)
{
	const struct skep_plan *plan = &l->p->scenario->plan;
	double compute_s = skep_loads_compute_s(l, worker), in_flight = plan->in_flight;
	if (skep_plan_fixed(plan))
		return compute_s;
	if (plan->wiring != SKEP_WIRING_UNIFORM && plan->in_flight_limit) /* split by speed */
		in_flight = fmin(fmax(in_flight * l->count[0] * l->share[worker], fmin(in_flight, 2)), UINT16_MAX);
	double dealt = skep_plan_credit(plan, (uint32_t)in_flight);
	return fmax(compute_s, (compute_s + from_directory_s(l, worker)) / dealt);
}

/* A single stage: no worker waits for a link. Dealt to who is done first, all are done when the workers could have done as many;
 * in turn, when the slowest has done its part. */
static double alone_s(const struct skep_loads *l, double microbatches)
{
	double rate = 0, slowest_s = 0;
	for (uint32_t i = 0; i < l->p->workers; i++) {
		double each_s = skep_loads_takes_part(l, i) ? between_s(l, i) : INFINITY;
		rate += 1 / each_s;
		slowest_s = each_s < INFINITY ? fmax(slowest_s, each_s) : slowest_s;
	}
	if (!skep_loads_by_speed(l, 0))
		return microbatches / l->count[0] * slowest_s;
	double least_s = microbatches / rate, most_s = (microbatches + l->count[0]) / rate;
	for (uint32_t halving = 0; halving < 40; halving++) {
		double until_s = (least_s + most_s) / 2, done = 0;
		for (uint32_t i = 0; i < l->p->workers; i++)
			done += skep_loads_takes_part(l, i) ? floor(until_s / between_s(l, i) * (1 + 1e-9)) : 0;
		if (done < microbatches)
			least_s = until_s;
		else
			most_s = until_s;
	}
	return most_s;
}

/* Of a trip, what an interleaved pipeline does not wait for when it fills and drains: a worker begins when the first model
 * chunk of those before it is done, so of their passes only a part counts, one over the number of chunks. */
static double hidden_s(const struct skep_loads *l, double passes_s)
{
	double chunks = skep_plan_model_chunks(&l->p->scenario->plan), most_s = 0;
	for (uint32_t i = 0; chunks > 1 && i < l->p->workers; i++)
		if (skep_loads_takes_part(l, i))
			most_s = fmax(most_s, skep_loads_compute_s(l, i));
	return (1 - 1 / chunks) * fmax(0, passes_s - most_s);
}

static void find_flow(struct skep_loads *l, struct skep_expected *e)
{
	const struct skep_throughput *t = &l->p->throughput[0];
	bool fixed = t->shares == SKEP_SHARES_FIXED;
	double flushes = skep_plan_flushes(&l->p->scenario->plan), round = t->microbatches * t->period / flushes;
	double n = fmin(t->in_flight * l->count[0], round); /* of a round, or of one flush in it */
	const struct skep_station *found = skep_loads_busiest(l);
	const struct skep_station most = found ? *found : (struct skep_station){.bound = SKEP_EXPECTED_COMPUTE};
	double travel_s = l->travel_s;
	e->trip_s = travel_s;
	for (uint32_t i = 0; i < l->p->workers; i++) {
		if (!skep_loads_takes_part(l, i))
			continue;
		e->trip_s += l->share[i] * skep_loads_compute_s(l, i);
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
		e->flow_s = alone_s(l, round);
		rate = fmin(round / e->flow_s, 1 / e->pace_s);
	}
	e->flow_s *= flushes / t->period;
	e->busy = rate * e->pace_s;
	e->starved = !fixed && e->busy < (l->p->stages == 1 ? STARVED_ALONE : STARVED) && n < round;
	e->bound = most.bound;
	e->from = most.from;
	e->to = most.to;
}

/* ---- reductions ----------------------------------------------------------------------------------------------------- */

static uint32_t next_member(const struct skep_loads *l, uint32_t worker)
{
	uint32_t next = worker;
	do
		next = next + 1 < l->p->workers ? next + 1 : 0;
	while (l->stage_of[next] != l->stage_of[worker]);
	return next;
}

/* Each edge of the stage's ring carries so many bytes. The sum of the delays of all edges. */
static double carry_ring(struct skep_loads *l, uint32_t stage, double bytes)
{
	double delay_s = 0;
	for (uint32_t i = 0; i < l->p->workers; i++) {
		if (l->stage_of[i] != stage)
			continue;
		uint32_t next = next_member(l, i);
		skep_loads_carry(l, i, next, bytes, 1);
		delay_s += l->p->delay_s[(size_t)i * l->p->workers + next];
	}
	return delay_s;
}

static double busiest_s(struct skep_loads *l)
{
	skep_loads_list_stations(l, false, SKEP_WAY_BOTH);
	const struct skep_station *most = skep_loads_busiest(l);
	return most ? most->load_s : 0;
}

static double rings_s(struct skep_loads *l)
{
	double longest_s = 0;
	for (uint32_t s = 0; s < l->p->stages; s++) {
		double n = l->count[s];
		skep_loads_clear(l);
		double bytes = l->p->reduced_bytes[s] / n, delay_s = n > 1 ? carry_ring(l, s, bytes) : 0;
		longest_s = fmax(
			longest_s, skep_throughput_ring_s(&l->p->throughput[0], n, bytes, busiest_s(l), delay_s / n));
	}
	skep_loads_clear(l);
	for (uint32_t s = 0; s < l->p->stages; s++)
		if (l->count[s] > 1)
			carry_ring(l, s, 2 * (l->count[s] - 1.0) / l->count[s] * l->p->reduced_bytes[s]);
	return fmax(longest_s, busiest_s(l));
}

/* The nth worker of a stage. */
static uint32_t member(const struct skep_loads *l, uint32_t stage, uint32_t nth)
{
	uint32_t i = 0;
	while (l->stage_of[i] != stage || l->nth[i] != nth)
		i++;
	return i;
}

/* Tables of tied embeddings: each rank of the first stage and that of the last one exchange theirs, and ranks that only one
 * of the stages has get both from an earlier one of their own. */
static double tied_s(struct skep_loads *l)
{
	const struct skep_plan *plan = &l->p->scenario->plan;
	uint32_t last = l->p->stages - 1, wide = l->count[0] > l->count[last] ? 0 : last;
	uint32_t most = l->count[wide], least = l->count[last - wide];
	double bytes = (double)skep_plan_encoded_bytes(plan, plan->tied), across_s, delay_s = 0;
	skep_loads_clear(l);
	for (uint32_t i = 0; i < least; i++) {
		uint32_t a = member(l, 0, i), b = member(l, last, i);
		skep_loads_carry(l, a, b, bytes, 1);
		skep_loads_carry(l, b, a, bytes, 1);
		delay_s = fmax(delay_s, l->p->delay_s[(size_t)a * l->p->workers + b]);
	}
	across_s = busiest_s(l) + delay_s;
	skep_loads_clear(l);
	for (uint32_t i = least; i < most; i++)
		skep_loads_carry(l, member(l, wide, i - least), member(l, wide, i), bytes, 1);
	return across_s + busiest_s(l);
}

static double reductions_s(struct skep_loads *l)
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
static double to_directory_s(const struct skep_loads *l)
{
	double most_s = 0;
	for (uint32_t i = 0; i < l->p->workers; i++)
		most_s = skep_loads_takes_part(l, i) ? fmax(most_s, from_directory_s(l, i)) : most_s;
	return most_s;
}

static void make(struct skep_loads *l, struct skep_expected *e)
{
	const struct skep_throughput *t = &l->p->throughput[0];
	skep_loads_carry_all(l);
	skep_loads_list_stations(l, true, SKEP_WAY_BOTH);
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
	double *room = calloc(4 * workers + places * places + 2 * places + stations + p->stages, sizeof *room);
	uint32_t *numbers = calloc(workers + p->stages, sizeof *numbers);
	struct skep_station *station = calloc(stations, sizeof *station);
	struct skep_loads l = {.p = p, .stage_of = stage_of, .station = station};
	bool ok = room && numbers && station;
	*e = (struct skep_expected){.step_s = INFINITY};
	if (ok) {
		l.share = room;
		l.up = l.share + workers;
		l.down = l.up + workers;
		l.shared = l.down + workers;
		l.uplink = l.shared + places * places;
		l.downlink = l.uplink + places;
		l.offered = l.downlink + places;
		l.queue = l.offered + workers;
		l.count = numbers;
		l.nth = numbers + p->stages;
		if (skep_loads_share_out(&l, l.queue + stations))
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
