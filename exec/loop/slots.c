/* SPDX-License-Identifier: Apache-2.0
 *
 * slots.c - see slots.h. Keeps true: rank_of[] and machine_of[] agree, but that a rank whose seat another one has now keeps
 * the name of its machine.
 */
#include "exec/loop/slots.h"

#include <assert.h>
#include <stdlib.h>

bool skep_slots_init(struct skep_slots *slots, uint32_t ranks, uint32_t workers)
{
	assert(ranks > workers);
	*slots = (struct skep_slots){.ranks = ranks, .workers = workers};
	slots->rank_of = calloc(workers + 1u, sizeof *slots->rank_of);
	slots->life = calloc(workers + 1u, sizeof *slots->life);
	slots->machine_of = calloc(ranks, sizeof *slots->machine_of);
	slots->epoch = calloc(ranks, sizeof *slots->epoch);
	slots->gone = calloc(ranks, sizeof *slots->gone);
	slots->last = calloc(ranks, sizeof *slots->last);
	if (slots->rank_of == NULL || slots->life == NULL || slots->machine_of == NULL || slots->epoch == NULL ||
		slots->gone == NULL || slots->last == NULL)
		return false;
	for (uint32_t rank = 0; rank < ranks; rank++)
		slots->machine_of[rank] = rank == 0 ? workers : rank <= workers ? rank - 1 : SKEP_NO_INDEX;
	for (uint32_t machine = 0; machine <= workers; machine++)
		slots->rank_of[machine] = machine == workers ? 0 : machine + 1;
	return true;
}

void skep_slots_finish(struct skep_slots *slots)
{
	free(slots->rank_of);
	free(slots->life);
	free(slots->machine_of);
	free(slots->epoch);
	free(slots->gone);
	free(slots->last);
	*slots = (struct skep_slots){0};
}

bool skep_slots_assign(struct skep_slots *slots, uint32_t machine, uint32_t rank, uint32_t life)
{
	if (machine >= slots->workers || rank >= slots->ranks)
		return false;
	uint32_t here = slots->machine_of[rank];
	if (here != SKEP_NO_INDEX)
		return here == machine && life <= slots->life[machine];
	if (life <= slots->life[machine])
		return false;
	slots->machine_of[rank] = machine;
	slots->rank_of[machine] = rank;
	slots->life[machine] = life;
	return true;
}

uint32_t skep_slots_spare(const struct skep_slots *slots, uint32_t after)
{
	for (uint32_t rank = after + 1; rank < slots->ranks; rank++) {
		if (slots->machine_of[rank] == SKEP_NO_INDEX && !slots->gone[rank] && !slots->last[rank])
			return rank;
	}
	return SKEP_NO_INDEX;
}

uint32_t skep_slots_awaited(const struct skep_slots *slots, uint32_t self)
{
	uint32_t count = 0;
	for (uint32_t rank = 0; rank < slots->ranks; rank++)
		count += rank != self && !slots->gone[rank] && !slots->last[rank];
	return count;
}

bool skep_slots_any_gone(const struct skep_slots *slots)
{
	for (uint32_t rank = 0; rank < slots->ranks; rank++) {
		if (slots->gone[rank])
			return true;
	}
	return false;
}

void skep_slots_update(struct skep_slots *slots, uint32_t rank, uint32_t epoch)
{
	if (epoch > slots->epoch[rank])
		slots->epoch[rank] = epoch;
}
