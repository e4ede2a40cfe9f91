/* SPDX-License-Identifier: Apache-2.0
 *
 * replicas.c - the workers of a stage are compared. Where a method keeps them equal (struct skep_directory_method, replicas) each
 * tells with its tally a sum of the parameters that it has. When the last member of a stage tells, the one that differs from
 * what most of them have is fenced before anything is committed: what it had counted on wrong parameters is in no sum, and it
 * comes again as any worker that was fenced, with the state of another one.
 *
 * With two members that differ nothing says which one is right; the one with the lower index stays, so that they are equal
 * again, and the note tells. Workers of another arithmetic (a GPU among CPUs) may round otherwise, and are compared among
 * themselves. A worker that differs again and again is noted but fenced no more: its arithmetic is another one,
 * and to send it away each round would cost more than it helps.
 */
#include <assert.h>

#include "core/directory/directory.h"

#define FENCES_MOST 2u /* of a worker */

/* Has it told of its parameters in the round that is summed, and holds all of the state? */
static bool has_told(struct directory *d, uint32_t worker, uint32_t stage)
{
	const struct row *row = directory_row(d, worker);
	return row->member && row->stage == stage && row->standing >= STANDING_READY && row->parameters != 0 &&
	       row->parameters_of == d->reduced.round;
}

static uint32_t votes(struct directory *d, const struct skep_plan *plan, uint32_t stage, uint32_t parameters)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < plan->workers; i++)
		count += has_told(d, i, stage) && directory_row(d, i)->parameters == parameters;
	return count;
}

static uint32_t arithmetic_of(uint32_t parameters)
{
	return parameters & 1;
}

/* What most have of those with this arithmetic, of equally many what the lowest one has; 0: all have the same. */
static uint32_t choose(struct directory *d, const struct skep_plan *plan, uint32_t stage, uint32_t arithmetic)
{
	uint32_t first = 0, best = 0, most = 0;
	bool differ = false;
	for (uint32_t i = 0; i < plan->workers; i++) {
		uint32_t own = directory_row(d, i)->parameters;
		if (!has_told(d, i, stage) || arithmetic_of(own) != arithmetic)
			continue;
		first = first == 0 ? own : first;
		differ = differ || own != first;
	}
	for (uint32_t i = 0; i < plan->workers && differ; i++) {
		uint32_t own = directory_row(d, i)->parameters;
		if (!has_told(d, i, stage) || arithmetic_of(own) != arithmetic || votes(d, plan, stage, own) <= most)
			continue;
		most = votes(d, plan, stage, own);
		best = own;
	}
	return best;
}

static uint32_t odd_one(struct directory *d, const struct skep_plan *plan, uint32_t stage)
{
	const uint32_t right[] = {choose(d, plan, stage, 0), choose(d, plan, stage, 1)};
	for (uint32_t i = 0; i < plan->workers && (right[0] != 0 || right[1] != 0); i++) {
		uint32_t own = directory_row(d, i)->parameters, most = right[arithmetic_of(own)];
		if (has_told(d, i, stage) && most != 0 && own != most)
			return i;
	}
	return SKEP_NO_INDEX;
}

uint32_t skep_replicas_odd_one(struct directory *d, struct step *step, const struct skep_message *message)
{
	assert(message->kind == SKEP_MESSAGE_TALLY);
	assert(message->from.index < step->plan->workers);
	uint32_t worker = message->from.index;
	struct row *row = directory_row(d, worker);
	const struct stage_state *stage = directory_stage(d, row->stage);
	if (!step->how.directory->replicas || !step->how.grouping->replicas || !d->reduced.on ||
		message->round != d->reduced.round || stage->committed || !row->member || row->tallied ||
		message->attempt != row->attempt)
		return SKEP_NO_INDEX;
	row->parameters = message->parameters;
	row->parameters_of = message->round;
	uint32_t odd = stage->pending == 1 ? odd_one(d, step->plan, row->stage) : SKEP_NO_INDEX;
	if (odd == SKEP_NO_INDEX)
		return SKEP_NO_INDEX;
	skep_emit_note(step, &d->node,
		(struct skep_note){.kind = SKEP_NOTE_UNEQUAL,
			.stage = (uint16_t)row->stage,
			.round = message->round,
			.peer = directory_worker(d, odd)});
	if (directory_row(d, odd)->unequal >= FENCES_MOST)
		return SKEP_NO_INDEX;
	directory_row(d, odd)->unequal++;
	return odd;
}
