/* SPDX-License-Identifier: Apache-2.0
 *
 * share.h - messages between the processes of an MPI job of which each does a part of a list of work: whole, in order between
 * two of them, of any length up to SKEP_SHARE_BYTES_MAX. What the work is, and who gets which part, the caller decides.
 */
#ifndef SKEP_EXEC_SHARE_H
#define SKEP_EXEC_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SKEP_SHARE_BYTES_MAX (UINT64_C(1) << 30)

/* MPI up. A process that forks does so before. */
bool skep_share_init(uint32_t *ret_rank, uint32_t *ret_ranks, char *reterr, size_t size);
/* Returns when the other side takes it, or may before; false: it cannot be sent. */
bool skep_share_send(uint32_t rank, const void *bytes, uint64_t count);
/* The next message, if there is one: *ret is to be freed. Does not wait. */
bool skep_share_receive(uint32_t *ret_rank, void **ret, uint64_t *ret_count);
/* Has this process died? Always false where MPI does not survive that. */
bool skep_share_gone(uint32_t rank);
/* MPI down, together: every process calls it. */
void skep_share_finish(void);
/* Ends all processes of the job at once. */
void skep_share_abort(int status);

#endif
