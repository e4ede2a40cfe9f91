/* SPDX-License-Identifier: Apache-2.0
 *
 * orphan.c - what a worker does that has lost the directory: it keeps what it holds, for the run that goes on from there, and
 * begins nothing else (schedule.c).
 *
 * What it holds is a version, as it is between two steps. Where stages step together (methods/agreement.c) all COMMITs of a
 * round leave the directory at once, but they are lost one by one: then one stage has made its step, and another one has its sum
 * and waits for the word. No worker has the version before the step any more, so the other stage has to make it. What it lacks
 * is the divisor, and in a round of which nothing was lost that is known beforehand: REDUCE says what the sum will have, if that
 * is certain (u.reduce.expected). So a worker whose sum is there
 *
 *     keeps what it holds                        CHECKPOINT of version v: it is wanted where no stage has stepped
 *     presumes that COMMIT was on its way        as that would have been
 *     makes the step, and keeps what that makes  STEP, CHECKPOINT of v + 1: it is wanted where one has
 *
 * The run goes on from the newest version that all stages have. One that is presumed is that of the step which the directory
 * would have told, on the same sum, by the same divisor, so it is that of members that have heard the word, to the bit.
 *
 * Why a version that all stages can have is there. If one stage has stepped, the members of all have told that they have their
 * sums: so each of them, if it is not lost as well, has stepped, or has its sum and presumes. What is left are rounds whose
 * divisor is not known beforehand: something of them was lost, sums began before all passes were over (plan->eager), the step
 * needs the norm of all gradients (plan->clip), or pairs sum (gossip).
 *
 * In shards (plan->sharded) a worker that has stepped its own holds no version before all others have given it theirs, which they
 * do not any more: it keeps nothing then, and one that was told to step and has not begun does not. Nothing is presumed.
 */
#include <assert.h>

#include "core/worker/worker.h"

/* While candidates are tried nothing is kept, and behind that nothing of the version that all of them have come to. Nor is a
 * stage that was restored before the directory has written so: a run that went on from there would lack what the stage had
 * learnt, and no row would say it. */
void skep_orphan_begin(struct worker *w, const struct step *step)
{
	bool tried = w->version >= step->plan->candidates.rounds + skep_plan_has_candidates(step->plan);
	bool trains = w->state == WORKER_SERVING && !w->restored && tried;
	assert(w->orphan == ORPHAN_NO || w->orphan == ORPHAN_DONE);
	if (trains && w->orphan == ORPHAN_NO && skep_methods_leave_states(&step->how, step->plan))
		w->orphan = ORPHAN_KEEPS;
}

/* It could not be kept, or its state lacks a step that failed. */
void skep_orphan_failed(struct worker *w, const struct skep_op *op)
{
	bool keeping = w->orphan == ORPHAN_KEPT || w->orphan == ORPHAN_LAST;
	if (w->orphan != ORPHAN_NO && (op->kind == SKEP_OP_STEP || (op->kind == SKEP_OP_CHECKPOINT && keeping)))
		w->orphan = ORPHAN_DONE;
}

bool skep_orphan_presumes(const struct worker *w, const struct skep_plan *plan)
{
	const struct reduction *r = &w->reduction;
	assert(w->orphan != ORPHAN_NO);
	bool knows = plan->together && !plan->sharded && r->expected > 0;
	return w->orphan == ORPHAN_KEPT && knows && r->complete && !r->committed;
}

/* What a virtual stage would have been told. */
struct skep_message skep_orphan_commit(const struct worker *w, const struct skep_plan *plan, uint32_t vstage)
{
	struct skep_message commit = skep_message_to(&w->node, SKEP_MESSAGE_COMMIT, w->node.self);
	assert(!plan->clip && vstage % plan->stages == w->node.stage);
	commit.from = skep_directory_peer(plan);
	commit.stage = (uint16_t)vstage;
	commit.round = w->version;
	commit.attempt = w->reduction.attempt;
	commit.u.commit.microbatches = w->reduction.expected;
	commit.u.commit.tied = skep_plan_is_tied_vstage(plan, vstage) ? w->reduction.expected : 0;
	return commit;
}

bool skep_worker_keeps(const struct skep_node *node)
{
	const struct worker *w = (const struct worker *)node;
	return w->state == WORKER_SERVING && w->orphan != ORPHAN_NO && w->orphan != ORPHAN_DONE;
}
