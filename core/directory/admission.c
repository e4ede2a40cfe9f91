/* SPDX-License-Identifier: Apache-2.0
 *
 * admission.c - how a worker comes to a stage: it is assigned to it, let in to its reductions with another worker to download the
 * state from, and serves when it holds all of it. When each of these may happen is the method's to say (methods/method.h).
 */
#include <assert.h>

#include "core/directory/directory.h"
#include "core/random.h"

void skep_directory_serve(struct directory *d, uint32_t worker)
{
	assert(d->phase != PHASE_STOPPED);
	struct row *row = directory_row(d, worker);
	skep_directory_stand(row, STANDING_SERVING);
	row->announced = false;
	d->full = false;
	d->unannounced++;
	skep_directory_count_in(d, row);
}

static bool holds_state(const struct row *row, uint32_t stage)
{
	return row->standing >= STANDING_READY && row->stage == stage;
}

/* Picks one of the workers that stay, or of all if none stays. */
static struct skep_peer pick_source(struct directory *d, const struct skep_plan *plan, uint32_t stage)
{
	assert(stage < plan->stages);
	assert(d->phase != PHASE_STOPPED);
	uint32_t all = 0, stay = 0;
	for (uint32_t i = 0; i < plan->workers; i++) {
		all += holds_state(directory_row(d, i), stage);
		stay += holds_state(directory_row(d, i), stage) && !directory_row(d, i)->leaving;
	}
	uint32_t nth = skep_random_below(&d->node.random, stay > 0 ? stay : all);
	for (uint32_t i = 0; i < plan->workers; i++) {
		const struct row *row = directory_row(d, i);
		if (holds_state(row, stage) && !(stay > 0 && row->leaving) && nth-- == 0)
			return directory_worker(d, i);
	}
	assert(false);
	return (struct skep_peer){SKEP_NO_INDEX, 0};
}

void skep_directory_assign(struct directory *d, struct step *step, uint32_t worker, uint32_t stage)
{
	assert(worker < step->plan->workers);
	assert(stage < step->plan->stages);
	struct row *row = directory_row(d, worker);
	row->stage = stage;
	skep_directory_stand(row, STANDING_ASSIGNED);
	struct skep_message message = skep_message_to(&d->node, SKEP_MESSAGE_ASSIGN, directory_worker(d, worker));
	message.stage = (uint16_t)stage;
	message.candidate = d->candidacy.candidate;
	skep_emit_send(step, &d->node, &message);
}

static void admit(struct directory *d, struct step *step, uint32_t worker, struct skep_peer source)
{
	assert(directory_row(d, worker)->standing != STANDING_ABSENT);
	assert(worker < step->plan->workers);
	struct row *row = directory_row(d, worker);
	row->source = source;
	struct skep_message message = skep_message_to(&d->node, SKEP_MESSAGE_ADMIT, directory_worker(d, worker));
	message.stage = (uint16_t)row->stage;
	message.round = row->since;
	message.admission = ++row->assigned;
	message.u.admit.source = row->source;
	message.u.admit.checkpoint = directory_stage(d, row->stage)->checkpoint;
	step->how.directory->admit(d, row, &message);
	skep_emit_send(step, &d->node, &message);
}

/* A member of the open round's reduction, or if that has begun of the next one's. */
void skep_directory_admit(struct directory *d, struct step *step, uint32_t worker, struct skep_peer source)
{
	assert(directory_row(d, worker)->standing != STANDING_ABSENT);
	assert(worker < step->plan->workers);
	struct row *row = directory_row(d, worker);
	skep_directory_stand(row, STANDING_JOINING);
	row->since = step->how.directory->since(d, worker);
	skep_emit_note(step, &d->node,
		(struct skep_note){.kind = SKEP_NOTE_ADMITTED,
			.stage = (uint16_t)row->stage,
			.round = step->how.directory->next_reduction(d, row),
			.peer = directory_worker(d, worker)});
	admit(d, step, worker, source);
}

void skep_directory_admit_from_any(struct directory *d, struct step *step, uint32_t worker)
{
	skep_directory_admit(d, step, worker, pick_source(d, step->plan, directory_row(d, worker)->stage));
}

void skep_directory_new_sources(struct directory *d, struct step *step)
{
	assert(d->phase != PHASE_STOPPED);
	for (uint32_t i = 0; i < step->plan->workers; i++) {
		const struct row *row = directory_row(d, i);
		if (row->standing != STANDING_JOINING || row->source.index == SKEP_NO_INDEX)
			continue;
		const struct row *source = directory_row(d, row->source.index);
		if (source->standing < STANDING_READY || source->epoch != row->source.epoch)
			admit(d, step, i, pick_source(d, step->plan, row->stage));
	}
}
