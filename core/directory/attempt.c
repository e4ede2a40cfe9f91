/* SPDX-License-Identifier: Apache-2.0
 *
 * attempt.c - one attempt of a stage to sum its gradients: who is a member, in which group, and what each is told.
 *
 * Members sum in groups, of which the method says who is in which (struct skep_grouping), mostly one for all. The members of a
 * group are numbered by rank in the order that the plan has for the stage, so that all agree. What earlier attempts have told is
 * forgotten: tallies are of the newest one alone. Where groups are apart, a sum that has lost no member is none of these: it goes
 * on, with what was told of it.
 */
#include <assert.h>
#include <string.h>

#include "core/collective/collective.h"
#include "core/directory/directory.h"

/* Members are all that make the step of this round, newcomers included, in the order of the plan. */
bool skep_attempt_takes(const struct directory *d, const struct row *row)
{
	return row->standing >= STANDING_JOINING && row->since <= d->reduced.round;
}

static uint32_t choose_members(struct directory *d, const struct skep_plan *plan, uint32_t stage, uint32_t *ret_order)
{
	assert(!directory_stage(d, stage)->committed);
	assert(stage < plan->stages);
	uint32_t size = 0;
	for (uint32_t nth = 0; nth < plan->workers; nth++) {
		uint32_t i = skep_plan_in_ring(plan, stage, nth);
		struct row *row = directory_row(d, i);
		if (row->stage != stage)
			continue;
		bool takes = skep_attempt_takes(d, row);
		row->summing = row->summing && takes;
		row->member = takes;
		if (row->member)
			ret_order[size++] = i;
	}
	return size;
}

void skep_attempt_roster(
	struct directory *d, struct step *step, const struct skep_message *reduce, const uint32_t *order, uint32_t size)
{
	assert(reduce->kind == SKEP_MESSAGE_REDUCE);
	assert(reduce->from.index == step->plan->workers);
	struct skep_message message = *reduce;
	message.kind = SKEP_MESSAGE_ROSTER;
	for (uint32_t first = 0; first < size; first += SKEP_ROSTER_PART) {
		memset(&message.u, 0, sizeof message.u);
		message.u.roster.first = first;
		message.u.roster.size = size;
		for (uint32_t i = 0; i < SKEP_ROSTER_PART && first + i < size; i++)
			message.u.roster.peer[i] = directory_worker(d, order[first + i]);
		skep_emit_send(step, &d->node, &message);
	}
}

static bool is_member(struct directory *d, uint32_t stage, uint32_t worker)
{
	return directory_row(d, worker)->member && directory_row(d, worker)->stage == stage;
}

/* The members of the worker's group, from it on. */
static uint32_t gather(struct directory *d, uint32_t stage, uint32_t worker, uint32_t *ret_order)
{
	assert(is_member(d, stage, worker));
	uint32_t size = 0, i = worker;
	do {
		if (is_member(d, stage, i))
			ret_order[size++] = i;
		i = directory_row(d, i)->next_of_group;
	} while (i != worker);
	return size;
}

/* Is the sum of the worker's group under way, and has it all of its members still? */
static bool goes_on(struct directory *d, const struct skep_grouping *grouping, uint32_t stage, uint32_t worker)
{
	bool whole = grouping->apart;
	uint32_t i = worker;
	do {
		whole = whole && is_member(d, stage, i) && directory_row(d, i)->summing;
		i = directory_row(d, i)->next_of_group;
	} while (whole && i != worker);
	return whole;
}

/* A microbatch is counted as long as the sum that it is told to be in goes on. */
static void forget_counters(struct directory *d, const struct skep_plan *plan, uint32_t stage)
{
	assert(stage < plan->stages);
	for (uint32_t vstage = stage; vstage < skep_plan_vstages(plan); vstage += plan->stages) {
		uint32_t *counter = skep_rounds_counters(d, vstage);
		for (uint32_t i = 0; i < d->reduced.issued; i++) {
			bool stands = counter[i] != SKEP_NO_INDEX && is_member(d, stage, counter[i]) &&
			              directory_row(d, counter[i])->summing;
			counter[i] = stands ? counter[i] : SKEP_NO_INDEX;
		}
	}
}

/* What each member may presume to be the divisor, if COMMIT is lost with this directory (worker/orphan.c). */
static uint32_t expected(const struct directory *d, const struct step *step)
{
	bool certain = step->plan->together && !step->plan->clip && step->how.grouping->replicas;
	return certain ? d->reduced.expected : 0;
}

/* Tells the members, attempt->order, of their sum. */
static void begin_group(struct directory *d, struct step *step, const struct attempt *attempt)
{
	assert(attempt->size > 0);
	assert(attempt->stage < step->plan->stages);
	uint32_t stage = attempt->stage, size = attempt->size;
	const uint32_t *order = attempt->order;
	for (uint32_t rank = 0; rank < size; rank++) {
		struct row *row = directory_row(d, order[rank]);
		row->attempt = directory_stage(d, stage)->attempt;
		row->summing = true;
		row->tallied = false;
		row->tally_count = row->tally_heard = 0;
		row->loss_nano_sum = 0;
		struct skep_message message =
			skep_message_to(&d->node, SKEP_MESSAGE_REDUCE, directory_worker(d, order[rank]));
		message.stage = (uint16_t)stage;
		message.round = d->reduced.round;
		message.attempt = row->attempt;
		message.u.reduce.rank = rank;
		message.u.reduce.size = attempt->sum ? size : 0;
		message.u.reduce.next = directory_worker(d, order[(rank + 1) % size]);
		message.u.reduce.expected = attempt->sum ? expected(d, step) : 0;
		message.u.reduce.eager = d->eager;
		message.u.reduce.discard = d->discards;
		for (uint32_t i = 0; i < step->how.features; i++)
			step->how.feature[i]->name(d, attempt, &message);
		skep_emit_send(step, &d->node, &message);
		if (attempt->sum && size > 1 && skep_collective_has_roster(step->plan->reduction.collective))
			skep_attempt_roster(d, step, &message, order, size);
	}
}

/* Returns how many messages are expected of those whose sum goes on. */
static uint32_t keep_groups(struct directory *d, struct step *step, uint32_t stage)
{
	assert(stage < step->plan->stages);
	uint32_t pending = 0;
	for (uint32_t i = 0; i < step->plan->workers; i++) {
		struct row *row = directory_row(d, i);
		if (!is_member(d, stage, i))
			continue;
		row->summing = goes_on(d, step->how.grouping, stage, i);
		pending += row->summing && !row->tallied;
	}
	return pending;
}

void skep_attempt_begin(struct directory *d, struct step *step, uint32_t stage, bool sum)
{
	assert(!directory_stage(d, stage)->committed);
	assert(stage < step->plan->stages);
	struct stage_state *state = directory_stage(d, stage);
	uint32_t *order = skep_at(d, d->order_at);
	uint32_t size = choose_members(d, step->plan, stage, order);
	assert(size > 0 || state->waiting);
	step->how.grouping->draw(d, step->plan, stage, order, size);
	state->pending = keep_groups(d, step, stage);
	forget_counters(d, step->plan, stage);
	struct attempt attempt = {.stage = stage, .order = order, .sum = sum};
	for (uint32_t nth = 0; nth < step->plan->workers; nth++) {
		uint32_t i = skep_plan_in_ring(step->plan, stage, nth);
		if (!is_member(d, stage, i) || directory_row(d, i)->summing)
			continue;
		attempt.size = attempt.expected = gather(d, stage, i, order);
		for (uint32_t k = 0; k < step->how.features; k++)
			step->how.feature[k]->attempt(d, step->plan, &attempt);
		state->attempt++;
		state->pending += attempt.expected;
		begin_group(d, step, &attempt);
	}
	state->attempt += size == 0;
	if (state->pending == 0)
		(size == 0 ? step->how.agreement->deserted : step->how.agreement->told)(d, step, stage);
}

/* Its number is higher than those of all attempts of the round before. */
void skep_attempt_ask_all(struct directory *d, struct step *step)
{
	assert(d->issued <= d->capacity);
	assert(d->phase != PHASE_STOPPED);
	uint32_t attempt = d->pass > 0 ? d->pass : d->void_attempt;
	for (uint32_t stage = 0; stage < step->plan->stages && d->reduced.on; stage++) {
		uint32_t used = directory_stage(d, stage)->attempt;
		attempt = used > attempt ? used : attempt;
	}
	skep_directory_enter(d, PHASE_COUNTING);
	d->pass = attempt + 1;
	d->reduced = (struct reduced){.on = true, .round = d->round, .issued = d->issued};
	for (uint32_t stage = 0; stage < step->plan->stages; stage++) {
		directory_stage(d, stage)->attempt = attempt;
		directory_stage(d, stage)->committed = false;
		skep_attempt_begin(d, step, stage, false);
	}
	skep_rounds_all_told(d, step); /* if there is no member to ask */
}
