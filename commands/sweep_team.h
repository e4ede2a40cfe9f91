/* SPDX-License-Identifier: Apache-2.0
 *
 * sweep_team.h - everybody who does jobs of a sweep: the processes of this host and, when mpirun or srun has started the
 * program, those of all ranks. Rank 0 hands out.
 */
#ifndef SKEP_COMMANDS_SWEEP_TEAM_H
#define SKEP_COMMANDS_SWEEP_TEAM_H

#include "commands/sweep_pool.h"

struct skep_sweep_team;

/* `workers` processes here, and as many as each other rank says there. */
struct skep_sweep_team *skep_sweep_team_create(
	uint32_t workers, skep_sweep_work *work, void *context, char *reterr, size_t size);
uint32_t skep_sweep_team_rank(const struct skep_sweep_team *team);
uint32_t skep_sweep_team_ranks(const struct skep_sweep_team *team);

/* Ranks but 0: does jobs until rank 0 says that there are no more. False: ended by a signal. */
bool skep_sweep_team_serve(struct skep_sweep_team *team);

/* Rank 0. */
uint32_t skep_sweep_team_busy(const struct skep_sweep_team *team);
/* No more than so many at a time in the processes of this rank. */
void skep_sweep_team_limit(struct skep_sweep_team *team, uint32_t workers);
bool skep_sweep_team_idle(const struct skep_sweep_team *team); /* is there somebody for another job? */
bool skep_sweep_team_give(struct skep_sweep_team *team, const struct skep_sweep_job *job);
/* As skep_sweep_pool_wait(); without a time: returns NOTHING now and then. */
enum skep_sweep_event skep_sweep_team_wait(struct skep_sweep_team *team, struct skep_sweep_answer *ret);
int skep_sweep_team_signal(struct skep_sweep_team *team);

/* clean: every job was answered, and all ranks end together. Otherwise this process ends the others, and does not return
 * where there are any: `status` is the exit status. */
void skep_sweep_team_destroy(struct skep_sweep_team *team, bool clean, int status);

#endif
