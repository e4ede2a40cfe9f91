/* SPDX-License-Identifier: Apache-2.0
 *
 * checkpoints.c - which worker of a stage keeps its state, and what is kept at the end of a run.
 *
 * Every `checkpoint_every` rounds, and after the last one, one member of each stage that holds all of the state is told
 * with its COMMIT to keep it after the step. A run that has checkpoints is over when each stage's last state is kept:
 * the worker that was told may be gone, and a target loss may be reached in between, so then another one is asked
 * (CHECKPOINT). A stage whose state could not be kept (CHECKPOINT_FAILED: a full disk) is not asked again; what was
 * kept before is still there. Without a flush rounds that are open when a target loss is reached may have been stepped,
 * so then nothing is kept in the end. While candidates are tried nothing is.
 *
 * In shards (struct skep_losses) each member has a part of the state, and all are told to keep theirs: a version is kept when
 * each has said so. Such a run is not done either before each member holds all that the last step has made, which the others have
 * to give it: so in the end all are asked, and where nothing is kept they answer as soon as they do.
 *
 * With `async` no worker gets a COMMIT for a round, and stages have made different numbers of outer updates. So when a
 * stage commits a round one of its workers is asked (CHECKPOINT), and keeps the state when it has made all outer
 * updates that were final by then: a checkpoint under the number of a round has all updates of it and before, and maybe
 * some of the next one. Such states of all stages belong together as well as any do, for no other order between stages
 * is kept.
 */
#include "core/directory/directory.h"

#include <assert.h>

static bool due(const struct skep_plan *plan, uint32_t round)
{
	return plan->checkpoint_every > 0 && ((round + 1) % plan->checkpoint_every == 0 || round + 1 == plan->rounds);
}

/* The rounds before the first one are closed, and what the stages begin with is kept. */
void skep_checkpoints_begin(struct directory *d, const struct skep_plan *plan)
{
	assert(d->phase == PHASE_OPEN);
	d->round = d->closed = plan->first_round;
	for (uint32_t i = 0; i < plan->stages; i++) {
		directory_stage(d, i)->checkpoint = directory_stage(d, i)->kept[0] = plan->first_round;
		directory_stage(d, i)->behind = skep_plan_first_version(plan);
	}
}

static bool has_kept(const struct stage_state *stage, uint32_t version)
{
	bool found = false;
	for (uint32_t k = 0; k < SKEP_CHECKPOINTS_KEPT; k++)
		found |= stage->kept[k] == version;
	return found;
}

/* A stage may lack a version that all others have: it could not be kept, or the worker that was to keep it is gone. */
uint32_t skep_directory_kept(const struct skep_node *node, const struct skep_plan *plan)
{
	struct directory *d = (struct directory *)node;
	const struct stage_state *first = directory_stage(d, 0);
	for (uint32_t k = 0; k < SKEP_CHECKPOINTS_KEPT; k++) {
		uint32_t having = 0;
		for (uint32_t i = 0; i < plan->stages; i++)
			having += has_kept(directory_stage(d, i), first->kept[k]);
		if (having == plan->stages && first->kept[k] > plan->first_round)
			return first->kept[k];
	}
	return plan->first_round;
}

/* The first of the members that hold all of the state. */
uint32_t skep_checkpoints_keeper(struct directory *d, struct step *step, uint32_t stage)
{
	assert(!directory_stage(d, stage)->committed);
	assert(directory_stage(d, stage)->attempt > 0);
	bool wanted = due(step->plan, d->reduced.round) && step->how.scope->keeps;
	for (uint32_t i = 0; i < step->plan->workers && wanted; i++) {
		const struct row *row = directory_row(d, i);
		if (!row->member || row->stage != stage || row->standing < STANDING_READY)
			continue;
		directory_stage(d, stage)->keeper = directory_worker(d, i);
		directory_stage(d, stage)->keeps = d->reduced.round + 1;
		return i;
	}
	return SKEP_NO_INDEX;
}

/* Without a flush the members of a sum are chosen when its round opens. */
bool skep_checkpoints_no_flush(struct directory *d, const struct skep_plan *plan, uint32_t round, uint32_t worker)
{
	assert(directory_row(d, worker)->standing == STANDING_SERVING);
	assert(d->phase == PHASE_OPEN);
	const struct row *row = directory_row(d, worker);
	if (!due(plan, round) || row->standing < STANDING_READY)
		return false;
	directory_stage(d, row->stage)->keeper = directory_worker(d, worker);
	directory_stage(d, row->stage)->keeps = round + 1;
	return true;
}

/* Has each member of the stage said of that version what it had to? */
static bool all_answered(struct directory *d, const struct skep_plan *plan, uint32_t stage, uint32_t version)
{
	for (uint32_t i = 0; i < plan->workers; i++) {
		const struct row *row = directory_row(d, i);
		if (directory_has_stage(row) && row->stage == stage && row->answered < version)
			return false;
	}
	return true;
}

/* True if a worker of the stage has been asked and has not answered yet. */
static bool asked(struct directory *d, const struct stage_state *stage)
{
	const struct row *row = directory_row(d, stage->keeper.index);
	return stage->keeps == d->closed && row->epoch == stage->keeper.epoch && row->standing >= STANDING_READY;
}

static void ask(struct directory *d, struct step *step, uint32_t stage, uint32_t version)
{
	assert(stage < step->plan->stages);
	assert(d->phase != PHASE_STOPPED);
	uint32_t told = 0, most = step->how.losses->in_shards ? step->plan->workers : 1;
	/* With none the restorer of the stage comes first. */
	for (uint32_t worker = 0; worker < step->plan->workers && told < most; worker++) {
		const struct row *row = directory_row(d, worker);
		if (row->stage != stage || row->standing < STANDING_READY)
			continue;
		told++;
		directory_stage(d, stage)->keeper = directory_worker(d, worker);
		directory_stage(d, stage)->keeps = version;
		struct skep_message message =
			skep_message_to(&d->node, SKEP_MESSAGE_CHECKPOINT, directory_worker(d, worker));
		message.stage = (uint16_t)stage;
		message.round = version;
		step->how.directory->keep(d, stage, &message);
		skep_emit_send(step, &d->node, &message);
	}
}

/* Is nothing of the stage's last state to be waited for? */
static bool is_kept(struct directory *d, const struct step *step, uint32_t stage)
{
	const struct stage_state *state = directory_stage(d, stage);
	if (step->how.losses->in_shards)
		return all_answered(d, step->plan, stage, d->closed);
	return step->plan->checkpoint_every == 0 || state->checkpoint == d->closed ||
	       state->checkpoint_failed == d->closed;
}

void skep_checkpoints_async(struct directory *d, struct step *step, uint32_t stage)
{
	assert(!directory_stage(d, stage)->committed);
	if (due(step->plan, d->reduced.round))
		ask(d, step, stage, d->reduced.round + 1);
}

bool skep_checkpoints_last(struct directory *d, struct step *step)
{
	assert(d->phase != PHASE_STOPPED);
	const struct skep_plan *plan = step->plan;
	bool all = true, open = step->how.directory->steps_ahead && d->closed < plan->rounds;
	for (uint32_t i = 0; i < plan->stages && !open; i++) {
		struct stage_state *stage = directory_stage(d, i);
		if (is_kept(d, step, i))
			continue;
		all = false;
		if (!stage->waiting && !asked(d, stage))
			ask(d, step, i, d->closed);
	}
	return all;
}

/* Is the version of the stage kept, or can it not be, as of this answer? In shards the first part that cannot be decides. */
static bool is_decided(struct directory *d, const struct step *step, const struct skep_message *message, uint32_t stage)
{
	const struct stage_state *state = directory_stage(d, stage);
	bool kept = message->kind == SKEP_MESSAGE_CHECKPOINTED;
	if (message->round <= (kept ? state->checkpoint : state->checkpoint_failed) || state->waiting)
		return false; /* a duplicate, or a restorer may be on its way with the one before */
	if (step->plan->checkpoint_every == 0)
		return false; /* it was asked for word that it holds all of its parameters */
	if (!kept || !step->how.losses->in_shards)
		return true;
	return state->checkpoint_failed != message->round && all_answered(d, step->plan, stage, message->round);
}

void skep_checkpoints_heard(struct directory *d, struct step *step, const struct skep_message *message)
{
	assert(message->from.index < step->plan->workers);
	struct row *row = directory_row(d, message->from.index);
	struct stage_state *state = directory_stage(d, row->stage);
	bool kept = message->kind == SKEP_MESSAGE_CHECKPOINTED;
	if (message->round > row->answered)
		row->answered = message->round;
	if (is_decided(d, step, message, row->stage)) {
		*(kept ? &state->checkpoint : &state->checkpoint_failed) = message->round;
		for (uint32_t k = SKEP_CHECKPOINTS_KEPT; kept && --k > 0;)
			state->kept[k] = state->kept[k - 1];
		state->kept[0] = state->checkpoint;
		skep_emit_note(step, &d->node,
			(struct skep_note){.kind = kept ? SKEP_NOTE_CHECKPOINTED : SKEP_NOTE_CHECKPOINT_FAILED,
				.stage = (uint16_t)row->stage,
				.round = message->round,
				.peer = message->from});
	} else if (!step->how.losses->in_shards) {
		return;
	}
	if (d->ending)
		skep_rounds_end(d, step);
}
