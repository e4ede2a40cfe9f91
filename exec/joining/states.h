/* SPDX-License-Identifier: Apache-2.0
 *
 * states.h - where a process that has joined keeps the states of stages: in a folder of its machine, and with `serve`, which has
 * them still when all machines of a stage are gone.
 *
 * A state is kept once it is in both places. Where the folder is the same, nothing travels. Each state has a connection of its
 * own (words.h), so that training's messages do not wait for it.
 */
#pragma once

#include <stdatomic.h>

#include "exec/joining/join.h"
#include "models/checkpoint/checkpoint.h"

struct skep_states {
	struct skep_checkpoint_folder folder;
	const struct skep_join_options *options; /* the way to `serve` */
	struct skep_left *left;                  /* NULL: this process does not come back */
	atomic_bool orphaned; /* `serve` is lost: what is kept is kept here alone, and noted in `left` */
	bool lost;            /* a state could not be fetched since that way was lost: it may be there again later */
};

/* From now on states are kept on this machine alone. From the loop's thread. */
void skep_states_orphaned(void *states);

/* Hands what is left over to a server that gathers the states of its run; why it does not take it is printed. */
void skep_left_bring(const struct skep_join_options *options, uint64_t run);

/* `states` must outlive it. Reading takes the machine's own file, and one of `serve` if it has none that is right. */
struct skep_keeper skep_states_keeper(struct skep_states *states);
