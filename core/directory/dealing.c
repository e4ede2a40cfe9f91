/* SPDX-License-Identifier: Apache-2.0
 *
 * dealing.c - which owner the next microbatch of a round goes to, and how many each may have outstanding.
 *
 * An owner's rate is 1 / (what a microbatch takes its device, forward and backward), the mean of what it says with FINISHED.
 * Where that is not known yet, as of a newcomer, it is that of the others, times what the plan expects of it over what it
 * expects of them. A microbatch that is dealt to an owner with n outstanding is expected to be done after n + 1 of its times,
 * less the time since it was last done with one. It is dealt to the owner that would be done with it first, the one with the
 * lower number if two would (earliest finish time first, a list schedule for related machines). So owners of equal speed get
 * equal numbers, others get as many as they are fast.
 *
 * Only an owner with room, fewer outstanding than its credit, is dealt to. Where the fastest ones have none, another one gets a
 * microbatch only if that will be done before they could have done all that is left to deal; else it is held back until one of
 * them has room. So a slow owner does not begin at the end of a round what the others would have to wait for. That is safe: what
 * is held back waits for an owner that has all of its credit outstanding, thus for a FINISHED, or for the end of that owner.
 *
 * The test is cheap for the owner that has just finished, which is nearly always the one to deal to. With L microbatches left
 * to deal and O outstanding all would be done at the same time after (L + O) / (sum of all rates), if they could be shared out
 * in parts, with each of the owners half done with one; an owner that is done by then has its part of them. Else all owners
 * are looked at.
 *
 * Wired by throughput or latency a swarm splits what is in flight by rates as well, when a round opens: as many in all as if each
 * owner had what the plan says, at least two for each, and for none more than plan->in_flight_limit.
 *
 * With a fixed number of inner steps (plan->inner.fixed) owners take turns, by their numbers, and all wait for the one whose turn
 * it is to have room. As many numbers in a row as there are owners go to all of them, so an inner step with as many microbatches
 * has one of each owner, and each makes the same number of steps. None waits in vain: the one whose turn it is has its credit
 * outstanding, and the slowest owner, which is at work all the time, says when a round is over.
 *
 * Fixed pipelines are no swarm: each has its share of a round, whatever its speed.
 */
#include <assert.h>

#include "core/directory/directory.h"

/* Rates are microbatches in 10^14 ns, of times of at least 10 us: a sum of them times all that may be outstanding fits. */
#define RATE_UNIT 100000000000000u
#define PASS_NS_MIN 10000u
#define SMOOTHING_DIVISOR 8 /* the newest report counts for so much of the mean */

/* skep_plan_credit(), which looks at all workers to count pipelines. */
static uint32_t credit(const struct directory *d, const struct skep_plan *plan, const struct row *row)
{
	return d->pipelines > 0 ? d->owner_share : skep_plan_credit(plan, skep_dealing_in_flight(d, plan, row));
}

/* Those of the first stage that stay issue microbatches, or all if none stays. */
static bool is_owner(struct directory *d, const struct row *row)
{
	assert(d->phase != PHASE_STOPPED);
	if (d->pipelines > 0)
		return skep_fixed_is_owner(d, row);
	const struct stage_state *first = directory_stage(d, 0);
	return row->standing == STANDING_SERVING && row->stage == 0 &&
	       (!row->leaving || first->leaving == first->serving);
}

static bool has_room(struct directory *d, const struct skep_plan *plan, const struct row *row)
{
	return is_owner(d, row) && row->outstanding < credit(d, plan, row);
}

/* ---- speed -------------------------------------------------------------------------------------------------------- */

void skep_dealing_heard(struct directory *d, struct row *row, skep_time needed_ns)
{
	assert(row->standing != STANDING_ABSENT);
	row->turn_ns = d->node.now;
	if (needed_ns == 0 || d->pipelines > 0)
		return;
	d->full = d->full && row->pass_ns > 0;
	uint64_t newest = needed_ns < PASS_NS_MIN ? PASS_NS_MIN : needed_ns < RATE_UNIT ? needed_ns : RATE_UNIT;
	uint64_t before = row->pass_ns > 0 ? row->pass_ns : newest;
	row->pass_ns = (before * (SMOOTHING_DIVISOR - 1) + newest) / SMOOTHING_DIVISOR;
	row->rate = RATE_UNIT / row->pass_ns;
}

static skep_time takes_ns(const struct row *row)
{
	return row->pass_ns > 0 ? row->pass_ns : RATE_UNIT / row->rate;
}

/* How long it has been at the next one that it will be done with, as far as that is known. */
static skep_time begun_ns(const struct directory *d, const struct row *row)
{
	skep_time since_ns = d->node.now - row->turn_ns;
	if (row->outstanding == 0 || row->pass_ns == 0)
		return 0;
	return since_ns < row->pass_ns ? since_ns : row->pass_ns;
}

/* After this time it would be done with one more. */
static skep_time finish_ns(const struct directory *d, const struct row *row)
{
	return (row->outstanding + (skep_time)1) * takes_ns(row) - begun_ns(d, row);
}

static uint64_t expected_speed(const struct directory *d, const struct skep_plan *plan, uint32_t worker)
{
	return plan->speed && d->pipelines == 0 ? plan->speed[worker] : 1;
}

/* The rates of owners that are not known, and the sum of all. */
static void weigh(struct directory *d, const struct skep_plan *plan)
{
	assert(d->phase != PHASE_STOPPED);
	uint64_t known = 0, speed = 0;
	d->owners = 0;
	for (uint32_t i = 0; i < plan->workers; i++) {
		const struct row *row = directory_row(d, i);
		if (!is_owner(d, row) || row->pass_ns == 0)
			continue;
		d->owners++;
		known += row->rate;
		speed += expected_speed(d, plan, i);
	}
	d->rate = known;
	for (uint32_t i = 0; i < plan->workers; i++) {
		struct row *row = directory_row(d, i);
		if (!is_owner(d, row) || row->pass_ns > 0)
			continue;
		row->rate = expected_speed(d, plan, i);
		row->rate = speed > 0 ? known * row->rate / speed : row->rate;
		row->rate += row->rate == 0;
		d->owners++;
		d->rate += row->rate;
	}
}

/* ---- how many are in flight ------------------------------------------------------------------------------------------ */

uint32_t skep_dealing_in_flight(const struct directory *d, const struct skep_plan *plan, const struct row *row)
{
	return row->in_flight > 0 && d->pipelines == 0 ? row->in_flight : plan->in_flight;
}

static bool by_speed(const struct directory *d, const struct skep_plan *plan)
{
	return plan->in_flight_limit && plan->wiring != SKEP_WIRING_UNIFORM && d->pipelines == 0;
}

/* Owners whose part by speed is more than they may have get what they may. Returns what is left for the others, and in `rate`
 * the sum of their rates. */
static uint64_t split_at_limits(struct directory *d, const struct skep_plan *plan, uint64_t *rate)
{
	assert(plan->in_flight_limit);
	uint64_t owners = 0, left = 0, before;
	for (uint32_t i = 0; i < plan->workers; i++) {
		directory_row(d, i)->in_flight = 0;
		owners += is_owner(d, directory_row(d, i));
	}
	left = owners * plan->in_flight;
	do {
		before = left;
		for (uint32_t i = 0; i < plan->workers; i++) {
			struct row *row = directory_row(d, i);
			uint32_t most = plan->in_flight_limit[i];
			uint64_t limit = most < d->inflight_capacity ? most : d->inflight_capacity;
			if (row->in_flight > 0 || !is_owner(d, row) || left * row->rate <= limit * *rate)
				continue;
			row->in_flight = (uint32_t)limit;
			*rate -= row->rate;
			left -= limit < left ? limit : left;
		}
	} while (left < before);
	return left;
}

/* What all owners have in flight together is split by speed, in whole microbatches and at least two for each. */
static void split_in_flight(struct directory *d, const struct skep_plan *plan)
{
	assert(d->phase == PHASE_OPEN);
	uint64_t rate = d->rate, least = plan->in_flight < 2 ? plan->in_flight : 2;
	if (!by_speed(d, plan))
		return;
	uint64_t left = split_at_limits(d, plan, &rate);
	for (uint32_t i = 0; i < plan->workers; i++) {
		struct row *row = directory_row(d, i);
		if (row->in_flight > 0 || !is_owner(d, row))
			continue;
		uint64_t part = (left * row->rate + rate / 2) / rate;
		row->in_flight = (uint32_t)(part > least ? part : least);
	}
}

/* ---- one microbatch ------------------------------------------------------------------------------------------------- */

/* It has just finished one; of the others each is half done with one, on the mean. */
static bool in_time(const struct directory *d, const struct row *row, uint32_t left)
{
	uint64_t halves = 2 * ((uint64_t)left + d->outstanding);
	return halves > d->owners && 2 * (row->outstanding + (uint64_t)1) * d->rate <= (halves - d->owners) * row->rate;
}

static uint32_t soonest(struct directory *d, const struct skep_plan *plan)
{
	assert(d->phase != PHASE_STOPPED);
	uint32_t best = SKEP_NO_INDEX;
	skep_time best_ns = SKEP_TIME_NEVER;
	for (uint32_t i = 0; i < plan->workers; i++) {
		const struct row *row = directory_row(d, i);
		if (!has_room(d, plan, row) || finish_ns(d, row) >= best_ns)
			continue;
		best = i;
		best_ns = finish_ns(d, row);
	}
	return best;
}

/* Could the others do all that is left before this one has done one of it? Of those, only owners without room would be done
 * with any before it. */
static bool overtaken(struct directory *d, const struct skep_plan *plan, uint32_t worker, uint32_t left)
{
	assert(worker < plan->workers && left > 0);
	skep_time until_ns = finish_ns(d, directory_row(d, worker));
	uint64_t sooner = 0;
	for (uint32_t i = 0; i < plan->workers && sooner < left; i++) {
		const struct row *other = directory_row(d, i);
		if (i == worker || !is_owner(d, other))
			continue;
		uint64_t done = (until_ns + begun_ns(d, other) - 1) / takes_ns(other);
		sooner += done > other->outstanding ? done - other->outstanding : 0;
	}
	return sooner >= left;
}

uint32_t skep_dealing_choose(struct directory *d, const struct skep_plan *plan, uint32_t preferred, uint32_t left)
{
	assert(d->phase != PHASE_STOPPED && left > 0);
	const struct row *row = preferred == SKEP_NO_INDEX ? NULL : directory_row(d, preferred);
	bool fits = row && has_room(d, plan, row), fixed = d->pipelines > 0;
	if (fits && (fixed || in_time(d, row, left)))
		return preferred;
	if (d->full && !fits)
		return SKEP_NO_INDEX;
	weigh(d, plan);
	uint32_t best = soonest(d, plan);
	d->full = best == SKEP_NO_INDEX || (!fixed && overtaken(d, plan, best, left));
	return d->full ? SKEP_NO_INDEX : best;
}

/* The first owner from d->turn on, after which it is the turn of the next one; none, if it has no room. */
static uint32_t in_turn(struct directory *d, const struct skep_plan *plan)
{
	assert(d->phase == PHASE_OPEN && d->turn < plan->workers);
	for (uint32_t i = 0; i < plan->workers; i++) {
		uint32_t worker = (d->turn + i) % plan->workers;
		const struct row *row = directory_row(d, worker);
		if (!is_owner(d, row))
			continue;
		bool room = has_room(d, plan, row);
		d->turn = (worker + room) % plan->workers;
		return room ? worker : SKEP_NO_INDEX;
	}
	return SKEP_NO_INDEX;
}

uint32_t skep_dealing_next(struct directory *d, const struct skep_plan *plan, uint32_t preferred, uint32_t left)
{
	return plan->inner.fixed ? in_turn(d, plan) : skep_dealing_choose(d, plan, preferred, left);
}

/* ---- a round opens --------------------------------------------------------------------------------------------------- */

/* To each its part of so many, rounded down. */
static void share_out(struct directory *d, const struct skep_plan *plan, uint64_t microbatches)
{
	assert(d->phase != PHASE_STOPPED);
	d->outstanding = 0;
	for (uint32_t i = 0; i < plan->workers; i++) {
		struct row *row = directory_row(d, i);
		uint64_t share = is_owner(d, row) ? microbatches * row->rate / d->rate : 0;
		uint64_t most = credit(d, plan, row);
		row->turn_ns = d->node.now;
		row->outstanding = (uint32_t)(share < most ? share : most);
		d->outstanding += row->outstanding;
	}
}

void skep_dealing_begin(struct directory *d, const struct skep_plan *plan, uint64_t limit)
{
	assert(d->phase == PHASE_OPEN && d->issued == 0);
	weigh(d, plan);
	split_in_flight(d, plan);
	bool one_by_one = plan->inner.fixed || skep_fixed_one_by_one(d);
	if (one_by_one && limit > plan->workers + GRANTS_PER_REFILL) /* each is a message */
		limit = plan->workers + GRANTS_PER_REFILL;
	uint32_t quota = skep_plan_quota(plan, d->round);
	d->turn = 0;
	share_out(d, plan, plan->inner.fixed ? 0 : quota);
	if (d->outstanding > limit)
		share_out(d, plan, limit);
	while (d->outstanding < limit && d->outstanding < quota) {
		uint32_t worker = skep_dealing_next(d, plan, SKEP_NO_INDEX, quota - d->outstanding);
		if (worker == SKEP_NO_INDEX)
			break;
		directory_row(d, worker)->outstanding++;
		d->outstanding++;
	}
}
