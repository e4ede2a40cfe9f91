/* SPDX-License-Identifier: Apache-2.0
 *
 * roster.c - who takes part in a reduction, told by the directory in parts that may come in any order, twice, and before the
 * REDUCE that they belong to. A reduction that needs them begins when all have come.
 *
 * Only the newest is kept: one of a later attempt voids the older ones, and the directory begins no reduction of a later round
 * before this worker has ended its part in the one before.
 */
#include <assert.h>

#include "core/worker/worker.h"

static bool is_newer(const struct roster *roster, const struct skep_message *message)
{
	assert(message->kind == SKEP_MESSAGE_ROSTER);
	return message->round > roster->round ||
	       (message->round == roster->round && message->attempt > roster->attempt);
}

static void clear(struct worker *w, const struct skep_message *message)
{
	assert(message->kind == SKEP_MESSAGE_ROSTER);
	w->roster =
		(struct roster){.round = message->round, .attempt = message->attempt, .size = message->u.roster.size};
	for (uint32_t rank = 0; rank < w->roster.size; rank++)
		worker_roster(w)[rank].index = SKEP_NO_INDEX;
}

void skep_roster_on_roster(struct worker *w, struct step *step, const struct skep_message *message)
{
	assert(message->kind == SKEP_MESSAGE_ROSTER);
	assert(message->from.index == step->plan->workers);
	if (!worker_member(w) || w->transfers_capacity == 0)
		return;
	assert(message->u.roster.size <= w->members_max);
	if (is_newer(&w->roster, message))
		clear(w, message);
	if (message->round != w->roster.round || message->attempt != w->roster.attempt)
		return;
	for (uint32_t i = 0; i < SKEP_ROSTER_PART && message->u.roster.first + i < w->roster.size; i++) {
		struct skep_peer *peer = &worker_roster(w)[message->u.roster.first + i];
		w->roster.heard += peer->index == SKEP_NO_INDEX;
		*peer = message->u.roster.peer[i];
	}
	skep_reduce_begin(w, step);
}

bool skep_roster_complete(const struct worker *w, const struct skep_plan *plan)
{
	assert(w->state != WORKER_STOPPED);
	const struct roster *roster = &w->roster;
	if (!skep_collective_has_roster(plan->reduction.collective) || w->reduction.size <= 1)
		return true;
	return roster->round == w->version && roster->attempt == w->reduction.attempt &&
	       roster->heard == roster->size && roster->size == w->reduction.size;
}
