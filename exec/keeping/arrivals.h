/* SPDX-License-Identifier: Apache-2.0
 *
 * arrivals.h - states that processes hand over to `serve`, which keeps them in the scenario's folder of checkpoints as a worker
 * does (checkpoint.h). None of it waits for the other side.
 */
#pragma once

#include "exec/tcp/words.h"
#include "models/checkpoint/checkpoint.h"

struct skep_arrival; /* one that is on its way */

/* Is it there already, as this run's? */
bool skep_arrival_needless(const struct skep_checkpoint_folder *folder, const struct skep_state_word *word);

/* NULL: it cannot be kept, and reterr says why. `folder` must outlive it. */
struct skep_arrival *skep_arrival_begin(
	const struct skep_checkpoint_folder *folder, const struct skep_state_word *word, struct skep_diag *reterr);
/* Its next bytes; *ret_whole: these were the last. False: they are not what comes next. */
bool skep_arrival_add(
	struct skep_arrival *arrival, const struct skep_piece *piece, bool *ret_whole, struct skep_diag *reterr);
/* What was announced of it. */
struct skep_state_word skep_arrival_word(const struct skep_arrival *arrival);
/* It is whole: puts it on the disk under its name, and removes what is too old. Frees it, after an error too. It
 * reads all of it and waits for the disk (saver.h). */
bool skep_arrival_end(struct skep_arrival *arrival, struct skep_diag *reterr);
/* Ends here, nothing of it stays. NULL is fine. */
void skep_arrival_abandon(struct skep_arrival *arrival);

/* A descriptor of the state that was asked for, and its bytes; -1 and reterr. */
int skep_departure_open(const struct skep_checkpoint_folder *folder, const struct skep_state_word *word,
	uint64_t *ret_bytes, struct skep_diag *reterr);
