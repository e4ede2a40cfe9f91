/* SPDX-License-Identifier: Apache-2.0
 *
 * saver.h - ends arrivals (arrivals.h) in threads of its own: to read a large state back and to wait for the disk takes seconds,
 * in which `serve` has to hear all workers. They are begun in the order in which they were given, and the states of several
 * stages wait for the disk side by side.
 */
#pragma once

#include "exec/keeping/arrivals.h"

#define SKEP_SAVER_NO_ONE UINT32_MAX

struct skep_saver;

/* `wake` is called by the thread whenever skep_saver_take() has something. NULL: no memory, or no thread. */
struct skep_saver *skep_saver_create(void (*wake)(void *context), void *context);
/* After all that were given have ended. NULL is fine. */
void skep_saver_destroy(struct skep_saver *saver);

/* The arrival is the saver's from now on. False: no memory, and it is abandoned. */
bool skep_saver_give(struct skep_saver *saver, struct skep_arrival *arrival, uint32_t who);
/* Its states are saved nevertheless, and taken as no one's. */
void skep_saver_forget(struct skep_saver *saver, uint32_t who);
/* One that has ended: what was announced of it, and why it could not be kept, if that is set. False: there is none. */
bool skep_saver_take(
	struct skep_saver *saver, uint32_t *ret_who, struct skep_state_word *ret_word, struct skep_diag *ret_why);
