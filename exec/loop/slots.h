/* SPDX-License-Identifier: Apache-2.0
 *
 * slots.h - which rank runs which worker, and which ranks are still alive.
 *
 * At the start rank 0 runs the directory, rank r worker r - 1, and ranks beyond the workers are spares. When the
 * process of a worker has died, rank 0 gives its slot to a spare (SKEP_FRAME_SLOT). A rank never runs two workers
 * one after the other, so a frame that comes late from a dead rank still belongs to one known worker. The newest
 * life of a slot counts, in whatever order the frames that announce lives arrive.
 */
#pragma once

#include "core/skep.h"

struct skep_slots {
	uint32_t ranks, workers;
	uint32_t *rank_of;    /* [workers + 1] the rank that runs this machine */
	uint32_t *life;       /* [workers + 1] how many processes have run this machine before the present one */
	uint32_t *machine_of; /* [ranks] the machine that this rank runs; SKEP_NO_INDEX: a spare */
	uint32_t *epoch;      /* [ranks] the newest epoch in messages from or to the rank's machine */
	bool *gone;           /* [ranks] the process is dead, or has not come yet */
	bool *last;           /* [ranks] the rank has sent LAST */
};

bool skep_slots_init(struct skep_slots *slots, uint32_t ranks, uint32_t workers); /* false: no memory; finish it */
void skep_slots_finish(struct skep_slots *slots);

/* Assigns the machine to this rank. False: that is impossible, and nothing has changed. Also true for news of an
 * older life, which changes nothing. */
bool skep_slots_assign(struct skep_slots *slots, uint32_t machine, uint32_t rank, uint32_t life);

/* The next rank above `after` that is there and has no machine, or SKEP_NO_INDEX. */
uint32_t skep_slots_spare(const struct skep_slots *slots, uint32_t after);

/* The number of live ranks other than this one that have not sent LAST. */
uint32_t skep_slots_awaited(const struct skep_slots *slots, uint32_t self);

bool skep_slots_any_gone(const struct skep_slots *slots);

/* The machine at this rank is known to have this epoch. */
void skep_slots_update(struct skep_slots *slots, uint32_t rank, uint32_t epoch);
