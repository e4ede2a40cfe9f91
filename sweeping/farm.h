/* SPDX-License-Identifier: Apache-2.0
 *
 * farm.h - all that does jobs of a sweep: the processes of this host and, when mpirun or srun has started the
 * program, those of all ranks. Rank 0 hands out.
 */
#pragma once

#include "base/diag.h"
#include "base/process/process_pool.h"

struct skep_sweep_farm;

/* `workers` processes here, and as many as each other rank says there. */
struct skep_sweep_farm *skep_sweep_farm_create(
	uint32_t workers, skep_process_pool_work *work, void *context, struct skep_diag *reterr);
uint32_t skep_sweep_farm_rank(const struct skep_sweep_farm *farm);

/* Ranks but 0: does jobs until rank 0 says that there are no more. False: ended by a signal. */
bool skep_sweep_farm_serve(struct skep_sweep_farm *farm);

/* Rank 0. */
uint32_t skep_sweep_farm_busy(const struct skep_sweep_farm *farm);
/* No more than so many at a time in the processes of this rank. */
void skep_sweep_farm_limit(struct skep_sweep_farm *farm, uint32_t workers);
bool skep_sweep_farm_idle(const struct skep_sweep_farm *farm); /* is a process free for another job? */
bool skep_sweep_farm_give(struct skep_sweep_farm *farm, const struct skep_process_pool_job *job);
/* As skep_process_pool_wait(); without a time: returns NOTHING now and then. */
enum skep_process_pool_event skep_sweep_farm_wait(struct skep_sweep_farm *farm, struct skep_process_pool_answer *ret);
int skep_sweep_farm_signal(struct skep_sweep_farm *farm);

/* clean: every job was answered, and all ranks end together. Otherwise this process ends the others, and does not return
 * where there are any: `status` is the exit status. */
void skep_sweep_farm_destroy(struct skep_sweep_farm *farm, bool clean, int status);
