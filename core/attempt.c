/* SPDX-License-Identifier: Apache-2.0
 *
 * attempt.c - one attempt of a stage to sum its gradients: who is a member, and what each is told.
 *
 * Members are numbered by rank in the order of their indices, so that all agree. What earlier attempts have told is forgotten:
 * tallies are of the newest one alone.
 */
#include <assert.h>
#include <string.h>

#include "core/collective.h"
#include "core/directory.h"

/* Members are all that make the step of this round, newcomers included, in the order of their indices. */
static bool is_member(const struct directory *d, const struct row *row)
{
	return row->standing >= STANDING_JOINING && row->since <= d->reduced.round;
}

static uint32_t choose_members(struct directory *d, const struct skep_plan *plan, uint32_t stage, uint32_t *ret_order)
{
	uint32_t size = 0;
	for (uint32_t i = 0; i < plan->workers; i++) {
		struct row *row = directory_row(d, i);
		if (row->stage != stage)
			continue;
		row->member = is_member(d, row);
		row->tallied = false;
		row->tally_count = row->tally_heard = 0;
		row->loss_nano_sum = 0;
		if (row->member)
			ret_order[size++] = i;
	}
	return size;
}

/* Those of the stage that holds the other copy of a tied table, behind our own. */
static uint32_t list_twins(struct directory *d, const struct skep_plan *plan, uint32_t stage, uint32_t *ret_order)
{
	uint32_t size = 0, twin = ties_twin(plan, stage);
	for (uint32_t i = 0; i < plan->workers && twin != SKEP_NO_STAGE; i++)
		if (directory_row(d, i)->stage == twin && is_member(d, directory_row(d, i)))
			ret_order[size++] = i;
	return size;
}

void attempt_roster(
	struct directory *d, struct step *step, const struct skep_message *reduce, const uint32_t *order, uint32_t size)
{
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

void attempt_begin(struct directory *d, struct step *step, uint32_t stage, bool sum)
{
	struct stage_state *state = directory_stage(d, stage);
	uint32_t *order = skep_at(d, d->order_at);
	uint32_t size = choose_members(d, step->plan, stage, order);
	uint32_t twins = list_twins(d, step->plan, stage, order + size);
	assert(size > 0 || state->waiting);
	for (uint32_t slice = stage; slice < skep_plan_slices(step->plan); slice += step->plan->stages)
		for (uint32_t i = 0; i < d->reduced.issued; i++)
			rounds_counters(d, slice)[i] = SKEP_NO_INDEX;
	state->attempt++;
	state->pending = size + (sum && size > 0 ? norms_begin(d, step->plan, stage) : 0);
	if (size == 0 && !rounds_together(step->plan)) /* all of it is lost here, and the round goes on */
		rounds_commit(d, step, stage);
	for (uint32_t rank = 0; rank < size; rank++) {
		struct skep_message message =
			skep_message_to(&d->node, SKEP_MESSAGE_REDUCE, directory_worker(d, order[rank]));
		message.stage = (uint16_t)stage;
		message.round = d->reduced.round;
		message.attempt = state->attempt;
		message.u.reduce.rank = rank;
		message.u.reduce.size = sum ? size : 0;
		message.u.reduce.next = directory_worker(d, order[(rank + 1) % size]);
		message.u.reduce.promised = d->promised;
		if (skep_plan_ties(step->plan, stage))
			ties_name(d, order, size, twins, &message);
		skep_emit_send(step, &d->node, &message);
		if (sum && size > 1 && skep_collective_has_roster(step->plan->collective))
			attempt_roster(d, step, &message, order, size);
	}
}
