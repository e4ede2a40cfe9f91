/* SPDX-License-Identifier: Apache-2.0
 *
 * interleaved.c - a worker that holds several model chunks (why: core/schedule/interleaved.c): which of them a message
 * is about, and a step for each of them.
 */
#include "core/worker/worker.h"

#include <assert.h>

void skep_interleaved_init(struct worker *w, const struct skep_plan *plan)
{
	assert(w->state == WORKER_OUT);
	w->model_chunks = (struct model_chunks){
		.count = skep_plan_model_chunks(plan), .stages = plan->stages, .first = SKEP_NO_INDEX};
}

/* A new round, or a new incarnation. */
void skep_interleaved_begin(struct worker *w)
{
	w->model_chunks.first = SKEP_NO_INDEX;
	w->model_chunks.forwards = w->model_chunks.backwards = 0;
}

/* ---- messages ------------------------------------------------------------------------------------------------- */

uint32_t skep_interleaved_of_message(const struct worker *w, const struct skep_message *message)
{
	if (w->model_chunks.count == 1)
		return 0;
	if (message->kind == SKEP_MESSAGE_FORWARD)
		return (message->stage + 1u) / w->model_chunks.stages;
	if (message->kind == SKEP_MESSAGE_BACKWARD || message->kind == SKEP_MESSAGE_ABANDON ||
		message->kind == SKEP_MESSAGE_VALIDATED)
		return (message->stage - 1u) / w->model_chunks.stages;
	return 0;
}

/* ---- the end of a round ----------------------------------------------------------------------------------------- */

/* True if the divisors of all its virtual stages are known. */
bool skep_interleaved_commit(struct worker *w, const struct skep_message *message)
{
	assert(message->kind == SKEP_MESSAGE_COMMIT);
	uint32_t model_chunk = message->stage / w->model_chunks.stages;
	bool all = true;
	if (model_chunk < w->model_chunks.count)
		worker_divisor(w)[model_chunk] = message->u.commit.microbatches;
	for (uint32_t i = 0; i < w->model_chunks.count; i++)
		all = all && worker_divisor(w)[i] != SKEP_NO_INDEX;
	return all;
}

/* One virtual stage has made its step; true if another one is to follow. */
bool skep_interleaved_step_on(struct worker *w)
{
	assert(w->reduction.attempt > 0);
	assert(w->reduction.committed);
	if (++w->model_chunks.stepped < w->model_chunks.count)
		return true;
	skep_interleaved_uncommit(w);
	return false;
}

void skep_interleaved_uncommit(struct worker *w)
{
	w->model_chunks.stepped = 0;
	for (uint32_t model_chunk = 0; model_chunk < w->model_chunks.count; model_chunk++)
		worker_divisor(w)[model_chunk] = SKEP_NO_INDEX;
}
