/* SPDX-License-Identifier: Apache-2.0
 *
 * attempt.c - one attempt of a stage to sum its gradients: who is a member, and what each is told.
 *
 * Members are numbered by rank in the order of their indices, so that all agree. What earlier attempts have told is forgotten:
 * tallies are of the newest one alone.
 */
#include <assert.h>
#include <string.h>

#include "core/collective/collective.h"
#include "core/directory/directory.h"

/* Members are all that make the step of this round, newcomers included, in the order of their indices. */
bool skep_attempt_takes(const struct directory *d, const struct row *row)
{
	return row->standing >= STANDING_JOINING && row->since <= d->reduced.round;
}

static uint32_t choose_members(struct directory *d, const struct skep_plan *plan, uint32_t stage, uint32_t *ret_order)
{
	assert(!directory_stage(d, stage)->committed);
	assert(stage < plan->stages);
	uint32_t size = 0;
	for (uint32_t i = 0; i < plan->workers; i++) {
		struct row *row = directory_row(d, i);
		if (row->stage != stage)
			continue;
		row->member = skep_attempt_takes(d, row);
		row->tallied = false;
		row->tally_count = row->tally_heard = 0;
		row->loss_nano_sum = 0;
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

void skep_attempt_begin(struct directory *d, struct step *step, uint32_t stage, bool sum)
{
	assert(!directory_stage(d, stage)->committed);
	assert(stage < step->plan->stages);
	struct stage_state *state = directory_stage(d, stage);
	uint32_t *order = skep_at(d, d->order_at);
	uint32_t size = choose_members(d, step->plan, stage, order);
	struct attempt attempt = {.stage = stage, .order = order, .size = size, .sum = sum, .expected = size};
	for (uint32_t i = 0; i < step->how.features; i++)
		step->how.feature[i]->attempt(d, step->plan, &attempt);
	assert(size > 0 || state->waiting);
	for (uint32_t vstage = stage; vstage < skep_plan_vstages(step->plan); vstage += step->plan->stages)
		for (uint32_t i = 0; i < d->reduced.issued; i++)
			skep_rounds_counters(d, vstage)[i] = SKEP_NO_INDEX;
	state->attempt++;
	state->pending = attempt.expected;
	if (size == 0)
		step->how.agreement->deserted(d, step, stage);
	for (uint32_t rank = 0; rank < size; rank++) {
		struct skep_message message =
			skep_message_to(&d->node, SKEP_MESSAGE_REDUCE, directory_worker(d, order[rank]));
		message.stage = (uint16_t)stage;
		message.round = d->reduced.round;
		message.attempt = state->attempt;
		message.u.reduce.rank = rank;
		message.u.reduce.size = sum ? size : 0;
		message.u.reduce.next = directory_worker(d, order[(rank + 1) % size]);
		message.u.reduce.eager = d->eager;
		for (uint32_t i = 0; i < step->how.features; i++)
			step->how.feature[i]->name(d, &attempt, &message);
		skep_emit_send(step, &d->node, &message);
		if (sum && size > 1 && skep_collective_has_roster(step->plan->collective))
			skep_attempt_roster(d, step, &message, order, size);
	}
}
