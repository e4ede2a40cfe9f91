/* SPDX-License-Identifier: Apache-2.0
 *
 * seats.h - which rank runs which machine, and which ranks are still there.
 *
 * At the start rank 0 runs the directory, rank r worker r - 1, and ranks beyond the workers are spares. When the process of
 * a worker has died, rank 0 gives its seat to a spare (SKEP_FRAME_SEAT). A rank never runs two machines one after the
 * other, so what comes late from a dead one is still known as its machine's. Of a seat the newest life counts, whoever
 * the news comes from first.
 */
#ifndef SKEP_EXEC_SEATS_H
#define SKEP_EXEC_SEATS_H

#include "core/skep.h"

struct skep_seats {
	uint32_t ranks, workers;
	uint32_t *rank_of;    /* [workers + 1] by machine */
	uint32_t *life;       /* [workers + 1] processes that have had the seat before this one */
	uint32_t *machine_of; /* [ranks] SKEP_NO_INDEX: a spare */
	uint32_t *epoch;      /* [ranks] the newest under which its machine has spoken or was spoken to */
	bool *gone;           /* [ranks] dead, or not there yet */
	bool *last;           /* [ranks] has said good-bye */
};

bool skep_seats_init(struct skep_seats *seats, uint32_t ranks, uint32_t workers); /* false: no memory; finish it */
void skep_seats_finish(struct skep_seats *seats);

/* The machine's seat goes to this rank. False: that cannot be, and nothing has changed. Old news is true, and changes
 * nothing. */
bool skep_seats_take(struct skep_seats *seats, uint32_t machine, uint32_t rank, uint32_t life);

uint32_t skep_seats_spare(const struct skep_seats *seats); /* the lowest rank that has no seat, or SKEP_NO_INDEX */

/* Ranks other than this one that are there and have not said good-bye. */
uint32_t skep_seats_awaited(const struct skep_seats *seats, uint32_t self);

bool skep_seats_any_gone(const struct skep_seats *seats);

/* The machine at this rank is known to have this epoch. */
void skep_seats_hear(struct skep_seats *seats, uint32_t rank, uint32_t epoch);

#endif
