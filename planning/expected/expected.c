/* SPDX-License-Identifier: Apache-2.0
 *
 * expected.c - see expected.h.
 */
#include "planning/expected/expected.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/layout.h"
#include "core/sums.h"
#include "planning/expected/loads.h"
#include "planning/problem/traffic.h"

/* ---- the flow ------------------------------------------------------------------------------------------------------- */

/* The longest that a worker of the first stage takes for those of its steps that no pass hides: the last one of a round; in fixed
 * pipelines each. */
static double local_steps_s(const struct skep_loads *l, double round)
{
	double steps = skep_plan_fixed(&l->p->scenario->plan) ? round / l->p->throughput[0].microbatches : 1,
	       most_s = 0;
	for (uint32_t i = 0; i < l->p->workers; i++)
		most_s = l->stage_of[i] == 0 ? fmax(most_s, steps * skep_loads_inner_s(l, i)) : most_s;
	return most_s;
}

static void find_flow(struct skep_loads *l, struct skep_expected *e)
{
	const struct skep_throughput *t = &l->p->throughput[0];
	double flushes = skep_plan_flushes(&l->p->scenario->plan), round = t->microbatches * t->period / flushes;
	if (l->p->stages == 1 && !l->p->scenario->plan.barrier)
		skep_swarm_alone(l, e, round);
	else if (skep_plan_fixed(&l->p->scenario->plan))
		skep_pipelines_flow(l, e, round);
	else
		skep_swarm_flow(l, e, round);
	e->busy = fmin(1, round * e->pace_s / e->flow_s);
	if (l->p->stages > 1)
		e->flow_s += local_steps_s(l, round);
	memcpy(l->forward_hop_s, l->hop_s, l->p->stages * sizeof *l->hop_s);
	e->flow_s *= flushes / t->period;
}

/* ---- the whole ------------------------------------------------------------------------------------------------------ */

/* The longest that a device takes for its part of a step's microbatches, and for the update where that is on the same lane. */
static double devices_s(const struct skep_loads *l)
{
	const struct skep_throughput *t = &l->p->throughput[0];
	double longest_s = 0, part = skep_plan_steps_beside(&l->p->scenario->plan) ? 0 : 1 / t->period;
	for (uint32_t i = 0; i < l->p->workers; i++)
		if (skep_loads_takes_part(l, i))
			longest_s = fmax(
				longest_s, t->microbatches * l->share[i] * skep_loads_compute_s(l, i) +
						   part * l->p->update_s[(size_t)i * l->p->stages + l->stage_of[i]]);
	return longest_s;
}

struct stage_ways {          /* of its workers the longest */
	double up_s, down_s; /* to the directory, and from it */
	double forward_s, update_s, pseudo_s;
};

static struct stage_ways ways_of(const struct skep_loads *l, uint32_t stage)
{
	struct stage_ways w = {0};
	for (uint32_t i = 0; i < l->p->workers; i++) {
		if (l->stage_of[i] != stage)
			continue;
		w.up_s = fmax(w.up_s, skep_loads_up_s(l, i));
		w.down_s = fmax(w.down_s, skep_loads_down_s(l, i));
		w.forward_s = fmax(w.forward_s, skep_loads_pass_s(l, i, SKEP_WAY_FORWARD));
		w.pseudo_s = fmax(w.pseudo_s, skep_loads_pseudo_s(l, i));
		w.update_s = fmax(w.update_s, l->p->update_s[(size_t)i * l->p->stages + stage]);
	}
	w.update_s = skep_loads_sums(l, stage) ? w.update_s : 0;
	w.pseudo_s = skep_loads_sums(l, stage) ? w.pseudo_s : 0;
	return w;
}

/* From the directory's word to worker i, with the update that the word is about if `updates`. */
static double begins_s(const struct skep_loads *l, uint32_t i, bool updates)
{
	return skep_loads_down_s(l, i) + (updates ? l->p->update_s[(size_t)i * l->p->stages + l->stage_of[i]] : 0);
}

/* The delays of half a ring that ends with `last`, behind the beginning of the slowest of those that it goes past. */
static double half_ring_to_s(const struct skep_loads *l, uint32_t last, bool updates)
{
	uint32_t i = l->next[last];
	double at_s = begins_s(l, i, updates);
	for (; i != last; i = l->next[i])
		at_s = fmax(at_s + skep_loads_ring_hop_s(l, i), begins_s(l, l->next[i], updates));
	return at_s;
}

/* From the directory's word to a stage's workers until the last of them has what half a ring brings it, which takes `half_s`
 * where all begin at once, and has said so if `says`. */
static double halved_s(const struct skep_loads *l, uint32_t stage, double half_s, bool updates, bool says)
{
	const struct skep_ring_hops hops = skep_loads_ring_hops(l, stage);
	const double rest_s =
		half_s - (hops.sum_s - hops.shortest_s); /* half_s has those of all hops but the shortest */
	double most_s = 0;
	for (uint32_t i = 0; i < l->p->workers; i++)
		if (l->stage_of[i] == stage)
			most_s = fmax(
				most_s, half_ring_to_s(l, i, updates) + rest_s + (says ? skep_loads_up_s(l, i) : 0));
	return most_s;
}

/* Half a ring, or nothing. */
static bool is_halved(const struct skep_loads *l, uint32_t stage)
{
	const struct skep_plan *plan = &l->p->scenario->plan;
	return plan->sharded && plan->reduction.collective == SKEP_COLLECTIVE_RING && l->count[stage] > 1;
}

/* From the directory's word to a stage's workers until their last TALLY is back, with the update that the word is about if
 * `updates`. What a member of a ring begins with goes all but twice round, and ends two ranks before it. */
static double told_s(const struct skep_loads *l, uint32_t stage, bool updates)
{
	const bool ring =
		l->p->scenario->plan.reduction.collective == SKEP_COLLECTIVE_RING && !l->p->scenario->plan.sharded;
	double told_s = 0, ready_s = 0, up_s = 0, sum_s = l->reduce_s[stage];
	if (is_halved(l, stage))
		return halved_s(l, stage, sum_s, updates, true);
	for (uint32_t i = 0; i < l->p->workers; i++) {
		if (l->stage_of[i] != stage)
			continue;
		const double from_s = begins_s(l, ring ? l->next[l->next[i]] : i, updates);
		ready_s = fmax(ready_s, from_s);
		up_s = fmax(up_s, skep_loads_up_s(l, i));
		told_s = fmax(told_s, from_s + sum_s + skep_loads_up_s(l, i));
	}
	return ring ? told_s : ready_s + sum_s + up_s;
}

/* From the directory's COMMIT until all of the stage have stepped and, in shards, have what the others did. */
static double stepped_s(const struct skep_loads *l, uint32_t stage, const struct stage_ways *w)
{
	if (is_halved(l, stage))
		return halved_s(l, stage, l->gather_s[stage], true, false);
	return w->down_s + w->update_s + l->gather_s[stage];
}

/* From a round's last backward pass: FINISHED to the directory, REDUCE from it, the sum, TALLY; when those of all stages have
 * come the next round is granted. COMMIT comes to each stage by itself, and the next round's first microbatch waits for what
 * still updates when it comes there; in shards for the parameters that the others have stepped, too. */
static void find_turn(struct skep_loads *l, struct skep_expected *e)
{
	struct stage_ways first = ways_of(l, 0);
	const struct skep_plan *plan = &l->p->scenario->plan;
	bool flushes = !skep_plan_no_flush(plan);
	double summed_s = 0, travel_s = 0, late_s = 0, gathered_s = 0, pseudo_s = 0;
	bool known = skep_plan_fixed(plan) && (l->p->stages > 1 || plan->barrier);
	bool at_once = known || l->p->stages == 1; /* all members begin at the directory's word */
	e->reduction_s = skep_reductions_s(l);
	l->cycle_s = 0;
	for (uint32_t s = 0; s < l->p->stages; s++) {
		struct stage_ways w = ways_of(l, s);
		double tallied_s = at_once ? told_s(l, s, false) : w.down_s + l->reduce_s[s] + w.up_s;
		summed_s = fmax(summed_s, tallied_s);
		if (l->reduce_s[s] > 0 || flushes) /* else it steps on its own word */
			l->cycle_s = fmax(l->cycle_s, told_s(l, s, true) + l->gather_s[s]);
		if (l->reduce_s[s] > 0 &&
			skep_plan_waves(plan)) /* the last one of a wave waits for the sum D + 1 waves before */
			l->cycle_s = fmax(l->cycle_s,
				(told_s(l, s, true) + skep_pipelines_back_s(l, s)) / (plan->no_flush.distance + 1));
		pseudo_s = fmax(pseudo_s, w.pseudo_s);
		late_s = fmax(late_s, tallied_s + w.down_s + w.update_s - travel_s);
		gathered_s = fmax(gathered_s, tallied_s + stepped_s(l, s, &w) - travel_s);
		travel_s += w.forward_s + l->forward_hop_s[s];
	}
	double updated_s = fmax(0, late_s - summed_s - first.down_s);
	e->turn_s = (known ? l->ways_s : first.up_s) + summed_s - e->reduction_s + (known ? 0 : first.down_s);
	e->reduction_s = fmax(0, e->reduction_s + fmax(0, gathered_s - summed_s - first.down_s) - updated_s);
	e->update_s = updated_s + pseudo_s; /* what is summed is written before */
}

/* Of a stage's periods the next one that is longer; 0: none is. */
static uint32_t longer(const struct skep_plan *plan, uint32_t every)
{
	uint32_t next = 0;
	for (uint32_t s = 0; s < plan->stages; s++) {
		uint32_t of = skep_plan_sum_every(plan, s);
		next = of > every && (next == 0 || of < next) ? of : next;
	}
	return next;
}

/* The mean of the rounds of a cycle. Each period is a multiple of the shorter ones, so those stages that sum in a round are all
 * whose periods are at most some period; and a round in which `every` is the longest period that sums comes in
 * 1 / every - 1 / next of all rounds. */
static void find_turns(struct skep_loads *l, struct skep_expected *e)
{
	const struct skep_plan *plan = &l->p->scenario->plan;
	double reduction_s = 0, update_s = 0, turn_s = 0;
	for (uint32_t every = 1, next; every > 0; every = next) {
		next = longer(plan, every);
		double part = 1.0 / every - (next > 0 ? 1.0 / next : 0);
		l->every = every;
		find_turn(l, e);
		reduction_s += part * e->reduction_s;
		update_s += part * e->update_s;
		turn_s += part * e->turn_s;
	}
	e->reduction_s = reduction_s;
	e->update_s = update_s;
	e->turn_s = turn_s;
}

double skep_loads_head_s(const struct skep_loads *l, uint32_t worker)
{
	struct stage_ways first = ways_of(l, 0), own = {0};
	double summed_s = 0, travel_s = 0, tallied_s = 0;
	for (uint32_t s = 0; s < l->p->stages; s++) {
		struct stage_ways w = ways_of(l, s);
		double of_stage_s = w.down_s + l->reduce_s[s] + w.up_s;
		summed_s = fmax(summed_s, of_stage_s);
		if (s < l->stage_of[worker])
			travel_s += w.forward_s + l->forward_hop_s[s];
		if (s == l->stage_of[worker])
			own = w, tallied_s = of_stage_s;
	}
	double heard_s = l->stage_of[worker] == 0 ? first.up_s - skep_loads_up_s(l, worker) : 0;
	double stepped_s = tallied_s + skep_loads_down_s(l, worker) + own.update_s;
	return heard_s + summed_s + first.down_s + travel_s - stepped_s;
}

void skep_loads_step(struct skep_loads *l, struct skep_expected *e)
{
	const struct skep_throughput *t = &l->p->throughput[0];
	find_flow(l, e);
	(l->p->scenario->plan.inner.sum_every ? find_turns : find_turn)(l, e);
	double all_s = e->reduction_s + e->update_s + e->turn_s;
	e->step_s = e->flow_s + all_s / t->period;
	if (skep_plan_no_flush(&l->p->scenario->plan)) {
		e->turn_s = fmax(0, l->cycle_s - e->reduction_s - e->update_s);
		e->step_s = fmax(e->flow_s, l->cycle_s);
		e->fill_s = fmax(0, e->trip_s - e->step_s);
	} else if (l->p->scenario->plan.async.on) { /* merges go on beside the passes, and none waits for one */
		e->step_s = fmax(e->flow_s, e->reduction_s / t->period) + (e->update_s + e->turn_s) / t->period;
	} else if (t->delayed) { /* the next round's passes go on beside a round's sum and update */
		struct stage_ways first = ways_of(l, 0);
		double news_s = first.up_s + first.down_s;
		double sum_s = (e->turn_s + e->reduction_s - news_s) / t->period;
		/* with a deadline they wait for both, and the rest of the round's steps follow */
		double waits_s = skep_throughput_beside_s(t, e->flow_s, sum_s) + (news_s + e->update_s) / t->period;
		double beside_s =
			t->overlap > 0 ? waits_s : fmax(e->flow_s + news_s / t->period, l->cycle_s / t->period);
		e->step_s = fmax(beside_s, devices_s(l));
		e->beside_s = fmax(0, t->period * (e->flow_s - e->step_s) + all_s);
	}
	e->reduction_s /= t->period;
	e->update_s /= t->period;
	e->turn_s /= t->period;
	e->egress_usd = skep_planning_egress_usd(l->p, l->stage_of);
}

/* In 4 * workers + places * places + 2 * places numbers. */
static struct skep_ways ways_in(double *room, size_t workers, size_t places)
{
	struct skep_ways ways = {.up = room, .down = room + workers, .there = room + 2 * workers};
	ways.back = ways.there + workers;
	ways.shared = ways.back + workers;
	ways.uplink = ways.shared + places * places;
	ways.downlink = ways.uplink + places;
	return ways;
}

bool skep_loads_ask(const struct skep_planning *p, const uint32_t *stage_of, bool quick, skep_loads_question *question,
	struct skep_expected *e)
{
	size_t places = p->scenario->topology.places, workers = p->workers;
	size_t stations = 5 * workers + places * places + 2 * places + 1;
	size_t ways = 4 * workers + places * places + 2 * places;
	double *room = calloc(9 * workers + 2 * places + 2 * ways + stations + 5 * p->stages, sizeof *room);
	uint32_t *numbers = calloc(4 * workers + 2 * p->stages, sizeof *numbers);
	struct skep_station *station = calloc(stations, sizeof *station);
	struct skep_loads l = {.p = p, .stage_of = stage_of, .station = station, .quick = quick};
	bool ok = room && numbers && station;
	*e = (struct skep_expected){.step_s = INFINITY};
	if (ok) {
		l.share = room;
		l.load = ways_in(l.share + workers, workers, places);
		l.crowd = ways_in(l.load.up + ways, workers, places);
		l.way = l.crowd.up + ways;
		l.way_scratch = l.way + places;
		l.offered = l.way_scratch + places;
		l.own_s = l.offered + workers;
		l.in_flight = l.own_s + workers;
		l.credit = l.in_flight + workers;
		l.outstanding = l.credit + workers;
		l.wait_s = l.outstanding + workers;
		l.rate = l.wait_s + workers;
		l.until_s = l.rate + workers;
		l.queue = l.until_s + workers;
		l.forward_hop_s = l.queue + stations;
		l.reduce_s = l.forward_hop_s + p->stages;
		l.hop_s = l.reduce_s + p->stages;
		l.gather_s = l.hop_s + p->stages;
		l.count = numbers;
		l.first = l.count + p->stages;
		l.nth = l.first + p->stages;
		l.member = l.nth + workers;
		l.next = l.member + workers;
		l.ring = l.next + workers;
		if (skep_loads_share_out(&l, l.gather_s + p->stages)) {
			question(&l, e);
		}
	}
	free(room);
	free(numbers);
	free(station);
	return ok;
}

bool skep_expected_make(const struct skep_planning *p, const uint32_t *stage_of, struct skep_expected *e)
{
	return skep_loads_ask(p, stage_of, false, skep_loads_step, e);
}

bool skep_expected_make_quick(const struct skep_planning *p, const uint32_t *stage_of, struct skep_expected *e)
{
	return skep_loads_ask(p, stage_of, true, skep_loads_step, e);
}

bool skep_expected_known(const struct skep_scenario *s)
{
	bool known = !s->plan.inner.sum_every || s->plan.reduction.collective == SKEP_COLLECTIVE_RING;
	return known && s->plan.workers <= SKEP_EXPECTED_WORKERS_MAX && !s->plan.async.on && !s->plan.gossip &&
	       !s->plan.eager && !skep_plan_has_candidates(&s->plan);
}

void skep_expected_bound_text(const struct skep_planning *p, const struct skep_expected *e, char *ret, size_t size)
{
	static const char *const of_worker[] = {[SKEP_EXPECTED_COMPUTE] = "the device of",
		[SKEP_EXPECTED_UP] = "the way out of",
		[SKEP_EXPECTED_DOWN] = "the way into",
		[SKEP_EXPECTED_TO_DIRECTORY] = "the connection to the directory of",
		[SKEP_EXPECTED_FROM_DIRECTORY] = "the connection from the directory to",
		[SKEP_EXPECTED_CONNECTION] = "the connection from"};
	const struct skep_topology *t = &p->scenario->topology;
	if (e->bound == SKEP_EXPECTED_SHARED) {
		snprintf(ret, size, "the line from %s to %s", t->place_name[e->from], t->place_name[e->to]);
	} else if (e->bound == SKEP_EXPECTED_UPLINK || e->bound == SKEP_EXPECTED_DOWNLINK) {
		snprintf(ret, size, "the %s of %s", e->bound == SKEP_EXPECTED_UPLINK ? "uplink" : "downlink",
			t->place_name[e->from]);
	} else if (e->shared_out) {
		snprintf(ret, size,
			"the devices of all workers, each of which takes microbatches as fast as it computes");
	} else {
		uint32_t from = p->machine[e->from], to = p->machine[e->to];
		int used = snprintf(ret, size, "%s worker %" PRIu32 ", %s %s", of_worker[e->bound], from,
			skep_article(t->gpu[t->machine[from].gpu].name), t->gpu[t->machine[from].gpu].name);
		if (from != to && used > 0 && (size_t)used < size)
			snprintf(ret + used, size - (size_t)used, ", to worker %" PRIu32, to);
	}
}

bool skep_expected_at_start(const struct skep_scenario *s, struct skep_expected *ret, char *ret_bound, size_t size)
{
	struct skep_planning planning;
	struct skep_diag unused = {0};
	*ret = (struct skep_expected){.step_s = INFINITY};
	if (!skep_expected_known(s))
		return false;
	if (!skep_planning_pose(s, &planning, &unused)) {
		ret->lacking = skep_diag_is_memory(&unused);
		return false;
	}
	uint32_t *stage_of = calloc(planning.workers, sizeof *stage_of);
	if (stage_of)
		skep_planning_start(&planning, stage_of);
	bool made = stage_of && skep_expected_make(&planning, stage_of, ret), known = made && ret->step_s < INFINITY;
	if (known)
		made = known = skep_expected_extras(&planning, stage_of, ret);
	ret->lacking = !made;
	if (known)
		skep_expected_bound_text(&planning, ret, ret_bound, size);
	free(stage_of);
	skep_planning_finish(&planning);
	return known;
}
