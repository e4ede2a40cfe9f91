/* SPDX-License-Identifier: Apache-2.0
 *
 * farm.h - messages between the processes of a farm, an MPI job whose ranks share the jobs of a sweep. A message
 * arrives whole, those between two ranks arrive in order, and it has at most SKEP_FARM_BYTES_MAX bytes. The caller
 * decides what the jobs are and which rank gets which.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"

#define SKEP_FARM_BYTES_MAX (UINT64_C(1) << 30)

/* MPI up. A process that forks does so before. */
bool skep_farm_init(uint32_t *ret_rank, uint32_t *ret_ranks, struct skep_diag *reterr);
/* Returns when the other side takes it, or may before; false: it cannot be sent. */
bool skep_farm_send(uint32_t rank, const void *bytes, uint64_t count);
/* The next message, if there is one: *ret is to be freed. Does not wait. */
bool skep_farm_receive(uint32_t *ret_rank, void **ret, uint64_t *ret_count);
/* Has this process died? Always false where MPI does not survive that. */
bool skep_farm_gone(uint32_t rank);
/* MPI down, together: every process calls it. */
void skep_farm_finish(void);
/* Ends all processes of the job at once. */
void skep_farm_abort(int status);
