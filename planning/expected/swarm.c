/* SPDX-License-Identifier: Apache-2.0
 *
 * swarm.c - see loads.h.
 *
 * Each worker of the first stage goes round in a circle of its own: it issues a microbatch as soon as one comes back, has no more
 * than so many in flight, and with the directory no more than so many outstanding, among which are those whose FINISHED, and the
 * grant that answers it, are on their way. So its part of all microbatches is what it may have under way over what one takes,
 * unless its device is what it waits for. The queues in between are those of a closed network.
 */
#include "planning/expected/loads.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <string.h>

#include "core/skep.h"

#define ITERATIONS 100u
#define EXACT 1e-6           /* of the rate, when iterations end */
#define SETTLINGS 16u        /* of the shares, and of what waits on the lines */
#define SETTLED 0.05         /* of what waits, when they end */
#define ROUNDS_OF_MANY 1000. /* of a run that has another end */
#define AS_BUSY 0.8
#define CHANCE_OF_ONE_PATH 0.6
#define FEW                                                                                                            \
	8.0 /* workers: up to so many queues are as short as on one path; from twice as many on they count in full */
#define STARVED 0.5
#define STARVED_ALONE 0.9 /* where no worker waits for another one */

/* To the directory, and back. */
static double directory_s(const struct skep_loads *l, uint32_t worker)
{
	return skep_loads_up_s(l, worker) + skep_loads_down_s(l, worker);
}

/* ---- what is in flight ---------------------------------------------------------------------------------------------- */

static bool is_owner(const struct skep_loads *l, uint32_t worker)
{
	return l->stage_of[worker] == 0;
}

static uint32_t taking_part(const struct skep_loads *l)
{
	uint32_t sum = 0;
	for (uint32_t s = 0; s < l->p->stages; s++)
		sum += l->count[s];
	return sum;
}

static uint32_t fewest(const struct skep_loads *l)
{
	uint32_t least = l->count[0];
	for (uint32_t s = 1; s < l->p->stages; s++)
		least = l->count[s] < least ? l->count[s] : least;
	return least;
}

/* As dealing.c splits it: by speed where senders know of speeds, at least two for each. */
static double in_flight_of(const struct skep_loads *l, uint32_t worker, double capacity)
{
	const struct skep_plan *plan = &l->p->scenario->plan;
	double part = plan->in_flight, least = fmin(part, 2);
	if (plan->wiring == SKEP_WIRING_UNIFORM || !plan->in_flight_limit)
		return part;
	part = fmin(part * l->count[0] * l->share[worker], plan->in_flight_limit[l->p->machine[worker]]);
	return fmax(floor(fmin(part, capacity) + 0.5), least);
}

/* Who would be done with one more first is dealt one more; no worker more than its credit. */
static void deal(struct skep_loads *l, double limit)
{
	double dealt = 0;
	for (uint32_t i = 0; i < l->p->workers; i++) {
		if (!is_owner(l, i))
			continue;
		l->outstanding[i] = fmin(floor(limit * l->share[i]), l->outstanding[i]);
		dealt += l->outstanding[i];
	}
	for (bool any = true; any && dealt + 1 <= limit; dealt++) {
		uint32_t best = UINT32_MAX;
		double least_s = INFINITY;
		for (uint32_t i = 0; i < l->p->workers; i++) {
			if (!is_owner(l, i) || l->outstanding[i] + 1 > l->credit[i])
				continue;
			double until_s = (l->outstanding[i] + 1) * skep_loads_compute_s(l, i);
			best = until_s < least_s ? i : best;
			least_s = fmin(least_s, until_s);
		}
		any = best != UINT32_MAX;
		if (any)
			l->outstanding[best]++;
	}
}

/* Fills in_flight, credit and outstanding, and says how many are in flight in all. No more are than a round has. */
static double fill_in_flight(struct skep_loads *l, double round)
{
	const struct skep_plan *plan = &l->p->scenario->plan;
	uint32_t capacity = skep_swarm_capacity(plan, l->count[0], taking_part(l));
	double limit = fmin(round, (double)skep_swarm_outstanding(fewest(l), capacity)), all = 0, sum = 0;
	for (uint32_t i = 0; i < l->p->workers; i++) {
		if (!is_owner(l, i))
			continue;
		l->in_flight[i] = in_flight_of(l, i, capacity);
		l->outstanding[i] = l->credit[i] = skep_plan_credit(plan, (uint32_t)l->in_flight[i]);
		all += l->credit[i];
	}
	if (all > limit)
		deal(l, limit);
	for (uint32_t i = 0; i < l->p->workers; i++)
		if (is_owner(l, i)) {
			l->in_flight[i] = fmin(l->in_flight[i], l->outstanding[i]);
			sum += l->in_flight[i];
		}
	return sum;
}

/* ---- the flow ------------------------------------------------------------------------------------------------------- */

/* How much of what a closed network of queues waits for is waited for: less where few workers take turns. Not for searches, which
 * leave machines out and compare what few take with what many do. */
static double chance_of(const struct skep_loads *l)
{
	double more = l->quick ? 1 : fmin(1, fmax(0, taking_part(l) - FEW) / FEW);
	return skep_loads_is_one_path(l) ? CHANCE_OF_ONE_PATH : CHANCE_OF_ONE_PATH + (1 - CHANCE_OF_ONE_PATH) * more;
}

/* What a microbatch waits for at stations, on the mean, at this rate; of the workers of the first stage what it waits for their
 * own devices is in l->wait_s, for a microbatch of theirs. Mean value analysis (Reiser and Lavenberg 1980), by Schweitzer's
 * approximation: who comes to a station finds (n - 1) / n of its mean queue, and of the one that is served what is left of it. */
static double waits_s(struct skep_loads *l, double n, double rate)
{
	double all_s = 0, chance = chance_of(l);
	for (uint32_t k = 0; k < l->stations; k++) {
		const struct skep_station *at = &l->station[k];
		double busy = fmin(1, rate * at->load_s), found = l->queue[k] * (n - 1) / n;
		double wait_s = chance * at->load_s * fmax(0, found - busy * (1 - at->rest));
		l->queue[k] = rate * (at->load_s + wait_s);
		if (at->bound == SKEP_EXPECTED_COMPUTE && is_owner(l, at->from) && l->share[at->from] > 0)
			l->wait_s[at->from] = wait_s / l->share[at->from];
		else
			all_s += wait_s;
	}
	return all_s;
}

/* From when each worker of the first stage issues a microbatch until that is back, on empty links. */
static void find_circles(struct skep_loads *l, const struct skep_expected *e)
{
	double own_s = 0;
	if (skep_loads_find_circles(l))
		return;
	for (uint32_t i = 0; i < l->p->workers; i++)
		own_s += is_owner(l, i) ? l->share[i] * (skep_loads_compute_s(l, i) + l->own_s[i]) : 0;
	for (uint32_t i = 0; i < l->p->workers; i++)
		if (is_owner(l, i))
			l->until_s[i] = e->trip_s - own_s + skep_loads_compute_s(l, i) + l->own_s[i];
}

/* Microbatches a second, of all; each owner's part into l->rate. */
static double rates(struct skep_loads *l, double wait_s)
{
	double sum = 0, least = INFINITY;
	for (uint32_t i = 0; i < l->p->workers; i++) {
		if (!is_owner(l, i))
			continue;
		double circle = l->until_s[i] + wait_s + l->wait_s[i];
		double rate = fmin(l->in_flight[i] / circle, l->outstanding[i] / (circle + directory_s(l, i)));
		l->rate[i] = fmin(rate, 1 / skep_loads_compute_s(l, i));
		sum += l->rate[i];
		least = fmin(least, l->rate[i]);
	}
	return skep_planning_by_speed(l->p, 0) ? sum : least * l->count[0];
}

/* Microbatches a second, when n are under way. */
static double rate_of(struct skep_loads *l, double n, double pace_s)
{
	double x = 1 / pace_s, waited_s = 0;
	memset(l->queue, 0, l->stations * sizeof *l->queue);
	for (uint32_t k = 0; k < ITERATIONS; k++) {
		double wait_s = waits_s(l, n, x), next = 0.5 * (x + fmin(rates(l, wait_s), 1 / pace_s));
		bool settled = k > 2 && fabs(next - x) < EXACT * x && fabs(wait_s - waited_s) < EXACT * wait_s;
		x = next;
		waited_s = wait_s;
		if (settled)
			break;
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

static void carry_hop(struct skep_loads *l, uint32_t stage, enum skep_way way)
{
	skep_loads_clear(l);
	skep_loads_carry_stage(l, stage, way);
}

/* All of the stage's activations. */
static double busiest_line_s(struct skep_loads *l, uint32_t stage)
{
	uint32_t places = l->p->scenario->topology.places;
	double most = 0;
	carry_hop(l, stage, SKEP_WAY_FORWARD);
	for (uint32_t a = 0; a < places; a++)
		for (uint32_t b = 0; b < places; b++)
			most = fmax(most, skep_loads_line_s(l, a, b));
	return most;
}

/* From each place the longest way of gradients to a worker of the stage there, of what l->way says of the stage before. Of places
 * without one -INFINITY. */
static void go_back(struct skep_loads *l, uint32_t stage)
{
	uint32_t places = l->p->scenario->topology.places;
	double *after = l->way;
	l->way = l->way_scratch;
	l->way_scratch = after;
	carry_hop(l, stage, SKEP_WAY_BACKWARD);
	for (uint32_t a = 0; a < places; a++)
		l->way[a] = -INFINITY;
	for (uint32_t i = 0; i < l->p->workers; i++) {
		uint32_t a = skep_loads_place(l, i);
		for (uint32_t b = 0; l->stage_of[i] == stage && b < places; b++)
			l->way[a] = fmax(l->way[a], skep_loads_line_s(l, b, a) + after[b]);
	}
}

/* Messages that share a line all arrive when the line is done, so those that go on are together at the next one: where all
 * that is in flight begins at once, the lines add up. Forwards the busiest of each hop do, since what takes none of them is early
 * at the next one, and in the way there. Backwards the lines of one way do, which is the longest: what is early has gone. */
static double lines_in_a_row_s(struct skep_loads *l)
{
	const struct skep_plan *plan = &l->p->scenario->plan;
	uint32_t places = l->p->scenario->topology.places;
	double forward_s = 0, back_s = 0;
	if (plan->routing == SKEP_ROUTING_TRAINER || places < 2)
		return 0;
	for (uint32_t a = 0; a < places; a++)
		l->way[a] = -INFINITY;
	for (uint32_t i = 0; i < l->p->workers; i++)
		if (l->stage_of[i] == l->p->stages - 1)
			l->way[skep_loads_place(l, i)] = 0;
	for (uint32_t stage = l->p->stages - 1; stage-- > 0;) {
		forward_s += busiest_line_s(l, stage);
		go_back(l, stage);
	}
	for (uint32_t a = 0; a < places; a++)
		back_s = fmax(back_s, l->way[a]);
	return forward_s + back_s;
}

/* Of the worker's stage, those that have about as much to do, itself among them. */
static double as_busy(const struct skep_loads *l, uint32_t worker)
{
	double count = 0, own_s = l->share[worker] * skep_loads_compute_s(l, worker);
	for (uint32_t i = 0; i < l->p->workers; i++)
		if (l->stage_of[i] == l->stage_of[worker])
			count += l->share[i] * skep_loads_compute_s(l, i) >= AS_BUSY * own_s;
	return count;
}

/* The mean of the largest of n standard normal deviates (Blom 1958). */
static double largest_of(double n)
{
	return n > 1 ? gsl_cdf_ugaussian_Pinv((n - 0.375) / (n + 0.25)) : 0;
}

/* So many messages at most are on their way at once from any stage to the next one: those of an ordered pair of machines follow
 * each other. */
static double at_once(const struct skep_loads *l)
{
	double most = 1;
	for (uint32_t s = 0; s + 1 < l->p->stages; s++)
		most = fmax(most, (double)l->count[s] * l->count[s + 1]);
	return most;
}

/* From when the last of n microbatches are issued until all have come back: as long as the worker that was given most
 * needs, of which the largest of many normal deviates tells, or as long as the lines on their way beyond what one alone
 * takes for it. */
static double drain_s(struct skep_loads *l, double n, double travel_s, double pace_s)
{
	double together = fmin(n, at_once(l));
	double longest_s = together * lines_in_a_row_s(l) + (n - together) * pace_s - travel_s;
	for (uint32_t i = 0; i < l->p->workers; i++) {
		if (!skep_loads_takes_part(l, i))
			continue;
		double mean = n * l->share[i], chance = unevenness(l, l->stage_of[i], n) * (1 - l->share[i]);
		double spread = l->stage_of[i] > 0 ? sqrt(mean * chance) * largest_of(as_busy(l, i)) : 0;
		longest_s = fmax(longest_s, skep_loads_compute_s(l, i) * (mean + spread));
	}
	return longest_s;
}

static void find_trip(struct skep_loads *l, struct skep_expected *e)
{
	const struct skep_station *most = skep_loads_busiest(l);
	e->trip_s = l->travel_s;
	for (uint32_t i = 0; i < l->p->workers; i++)
		e->trip_s += skep_loads_takes_part(l, i) ? l->share[i] * skep_loads_compute_s(l, i) : 0;
	e->pace_s = most ? most->load_s : 0;
	if (!most)
		return;
	e->bound = most->bound;
	e->from = most->from;
	e->to = most->to;
}

/* Of an equal share, the most that one has moved by. */
static double share_by_rates(struct skep_loads *l)
{
	double sum = 0, moved = 0;
	for (uint32_t i = 0; i < l->p->workers; i++)
		sum += is_owner(l, i) ? l->rate[i] : 0;
	for (uint32_t i = 0; i < l->p->workers && sum > 0; i++) {
		if (!is_owner(l, i))
			continue;
		double share = 0.5 * (l->share[i] + l->rate[i] / sum);
		moved = fmax(moved, fabs(share - l->share[i]) * l->count[0]);
		l->share[i] = share;
	}
	return moved;
}

/* Of the messages that one finds at a station; NULL: no sender can turn away from it. */
static double *crowd_at(const struct skep_loads *l, const struct skep_station *at)
{
	switch (at->bound) {
	case SKEP_EXPECTED_UP:
		return &l->crowd.up[at->from];
	case SKEP_EXPECTED_DOWN:
		return &l->crowd.down[at->from];
	case SKEP_EXPECTED_TO_DIRECTORY:
		return &l->crowd.there[at->from];
	case SKEP_EXPECTED_FROM_DIRECTORY:
		return &l->crowd.back[at->from];
	case SKEP_EXPECTED_SHARED:
		return &l->crowd.shared[(size_t)at->from * l->p->scenario->topology.places + at->to];
	case SKEP_EXPECTED_UPLINK:
		return &l->crowd.uplink[at->from];
	case SKEP_EXPECTED_DOWNLINK:
		return &l->crowd.downlink[at->from];
	default:
		return NULL;
	}
}

/* How much of what waits senders know, in the middle of the run. By then each has had so many answers of each worker: the first
 * tells how long the line is, and of each other one their averages take in a tenth (core/route/wiring.h). */
static double known_part(const struct skep_loads *l, double round)
{
	const struct skep_plan *plan = &l->p->scenario->plan;
	double pairs = 1, rounds = plan->rounds > 0 ? 0.5 * plan->rounds : ROUNDS_OF_MANY;
	for (uint32_t s = 0; s + 1 < l->p->stages; s++)
		pairs = fmax(pairs, (double)l->count[s] * fmin(l->count[s + 1], SKEP_VIEW_MAX));
	return 1 - pow(1 - 1.0 / SKEP_VIEW_SMOOTHING, fmax(0, rounds * round / pairs - 1));
}

/* Senders turn away from where messages wait, as far as they know of it, and so fewer do: an equilibrium, found by the method of
 * successive averages (Sheffi 1985, chapter 12), of which this is the step after `before` others. Returns how far it still is,
 * as a part. */
static double see_crowds(struct skep_loads *l, double n, double known, uint32_t before)
{
	double off = 0;
	for (uint32_t k = 0; k < l->stations; k++) {
		double *crowd = crowd_at(l, &l->station[k]), found = known * l->queue[k] * (n - 1) / n;
		if (!crowd)
			continue;
		off = fmax(off, fabs(found - *crowd) / (1 + *crowd));
		*crowd += (found - *crowd) / (1 + before);
	}
	return off;
}

void skep_swarm_flow(struct skep_loads *l, struct skep_expected *e, double round)
{
	double n = fmax(1, fmin(fill_in_flight(l, round), round)), known = known_part(l, round), rate = 0;
	for (uint32_t k = 0; k < SETTLINGS; k++) {
		skep_loads_hand_on(l);
		skep_loads_clear(l);
		skep_loads_carry_all(l);
		skep_loads_list_stations(l, true, SKEP_WAY_BOTH);
		find_trip(l, e);
		find_circles(l, e);
		rate = rate_of(l, n, e->pace_s);
		bool crowds_settled = see_crowds(l, n, known, k) < SETTLED;
		bool shares_settled = !skep_planning_by_speed(l->p, 0) || share_by_rates(l) < 0.01;
		if (crowds_settled && shares_settled)
			break;
	}
	double travel_s = l->travel_s;
	double busy = rate * e->pace_s, first_s = e->pace_s + busy * (1 / rate - e->pace_s);
	if (skep_loads_is_one_path(l) && n >= round) /* in a row from the start: each comes behind the one before it */
		first_s = e->pace_s;
	e->flow_s = e->trip_s + (n - 1) * first_s + fmax(0, round - n) / rate;
	e->flow_s = fmax(e->flow_s, e->trip_s + (round - n) / rate + drain_s(l, n, travel_s, e->pace_s));
	e->starved = busy < STARVED && n < round;
}

/* ---- a single stage ------------------------------------------------------------------------------------------------- */

/* From one microbatch of a worker to its next one: what it computes, or, while all that it may be dealt ahead is on the way, a
 * part of the way to the directory, by which it is dealt anew. */
static double between_s(const struct skep_loads *l, uint32_t worker)
{
	double compute_s = skep_loads_compute_s(l, worker);
	if (skep_plan_fixed(&l->p->scenario->plan)) /* it has its share from the start */
		return compute_s;
	return fmax(compute_s, (compute_s + directory_s(l, worker)) / l->credit[worker]);
}

static double made(const struct skep_loads *l, uint32_t worker, double time_s)
{
	return fmax(0, floor(time_s / between_s(l, worker) * (1 + 1e-9)));
}

/* No worker waits for a link. Dealt to who is done first, all are done when the workers could have done as many; in turn, when
 * the slowest has done its part. */
static double alone_s(const struct skep_loads *l, double microbatches, double steps)
{
	double rate = 0, slowest_s = 0, steps_s = 0;
	for (uint32_t i = 0; i < l->p->workers; i++) {
		double each_s = skep_loads_takes_part(l, i) ? between_s(l, i) : INFINITY;
		double all_s = microbatches / l->count[0] * each_s + steps * skep_loads_inner_s(l, i);
		rate += 1 / each_s;
		steps_s = fmax(steps_s, steps * skep_loads_inner_s(l, i));
		slowest_s = each_s < INFINITY ? fmax(slowest_s, all_s) : slowest_s;
	}
	if (!skep_planning_by_speed(l->p, 0))
		return slowest_s;
	double least_s = microbatches / rate, most_s = (microbatches + l->count[0]) / rate + steps_s;
	for (uint32_t halving = 0; halving < 40; halving++) {
		double until_s = (least_s + most_s) / 2, done = 0;
		for (uint32_t i = 0; i < l->p->workers; i++)
			done += skep_loads_takes_part(l, i) ? made(l, i, until_s - steps * skep_loads_inner_s(l, i))
			                                    : 0;
		if (done < microbatches)
			least_s = until_s;
		else
			most_s = until_s;
	}
	return most_s;
}

static bool are_of_many_speeds(const struct skep_loads *l)
{
	double least_s = INFINITY, most_s = 0;
	for (uint32_t i = 0; i < l->p->workers; i++) {
		double compute_s = skep_loads_takes_part(l, i) ? skep_loads_compute_s(l, i) : NAN;
		least_s = fmin(least_s, compute_s);
		most_s = fmax(most_s, compute_s);
	}
	return most_s > 1.01 * least_s;
}

void skep_swarm_alone(struct skep_loads *l, struct skep_expected *e, double round)
{
	double n = skep_plan_fixed(&l->p->scenario->plan) ? round : fill_in_flight(l, round);
	skep_loads_list_stations(l, true, SKEP_WAY_BOTH);
	find_trip(l, e);
	e->flow_s = alone_s(l, round, round / l->p->throughput[0].microbatches);
	e->starved = round * e->pace_s < STARVED_ALONE * e->flow_s && n < round;
	e->shared_out = e->bound == SKEP_EXPECTED_COMPUTE && skep_planning_by_speed(l->p, 0) && are_of_many_speeds(l);
}
