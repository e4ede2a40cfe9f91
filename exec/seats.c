/* SPDX-License-Identifier: Apache-2.0
 *
 * seats.c - see seats.h. Keeps true: rank_of[] and machine_of[] agree, but that a rank whose seat another one has now keeps
 * the name of its machine.
 */
#include "exec/seats.h"

#include <assert.h>
#include <stdlib.h>

bool skep_seats_init(struct skep_seats *seats, uint32_t ranks, uint32_t workers)
{
	assert(ranks > workers);
	*seats = (struct skep_seats){.ranks = ranks, .workers = workers};
	seats->rank_of = calloc(workers + 1u, sizeof *seats->rank_of);
	seats->life = calloc(workers + 1u, sizeof *seats->life);
	seats->machine_of = calloc(ranks, sizeof *seats->machine_of);
	seats->epoch = calloc(ranks, sizeof *seats->epoch);
	seats->gone = calloc(ranks, sizeof *seats->gone);
	seats->last = calloc(ranks, sizeof *seats->last);
	if (seats->rank_of == NULL || seats->life == NULL || seats->machine_of == NULL || seats->epoch == NULL ||
		seats->gone == NULL || seats->last == NULL)
		return false;
	for (uint32_t rank = 0; rank < ranks; rank++)
		seats->machine_of[rank] = rank == 0 ? workers : rank <= workers ? rank - 1 : SKEP_NO_INDEX;
	for (uint32_t machine = 0; machine <= workers; machine++)
		seats->rank_of[machine] = machine == workers ? 0 : machine + 1;
	return true;
}

void skep_seats_finish(struct skep_seats *seats)
{
	free(seats->rank_of);
	free(seats->life);
	free(seats->machine_of);
	free(seats->epoch);
	free(seats->gone);
	free(seats->last);
	*seats = (struct skep_seats){0};
}

bool skep_seats_take(struct skep_seats *seats, uint32_t machine, uint32_t rank, uint32_t life)
{
	if (machine >= seats->workers || rank >= seats->ranks)
		return false;
	uint32_t here = seats->machine_of[rank];
	if (here != SKEP_NO_INDEX)
		return here == machine && life <= seats->life[machine];
	if (life <= seats->life[machine])
		return false;
	seats->machine_of[rank] = machine;
	seats->rank_of[machine] = rank;
	seats->life[machine] = life;
	return true;
}

uint32_t skep_seats_spare(const struct skep_seats *seats)
{
	for (uint32_t rank = 0; rank < seats->ranks; rank++) {
		if (seats->machine_of[rank] == SKEP_NO_INDEX && !seats->gone[rank] && !seats->last[rank])
			return rank;
	}
	return SKEP_NO_INDEX;
}

uint32_t skep_seats_awaited(const struct skep_seats *seats, uint32_t self)
{
	uint32_t count = 0;
	for (uint32_t rank = 0; rank < seats->ranks; rank++)
		count += rank != self && !seats->gone[rank] && !seats->last[rank];
	return count;
}

bool skep_seats_any_gone(const struct skep_seats *seats)
{
	for (uint32_t rank = 0; rank < seats->ranks; rank++) {
		if (seats->gone[rank])
			return true;
	}
	return false;
}

void skep_seats_hear(struct skep_seats *seats, uint32_t rank, uint32_t epoch)
{
	if (epoch > seats->epoch[rank])
		seats->epoch[rank] = epoch;
}
