/* SPDX-License-Identifier: Apache-2.0
 *
 * team.h - threads that share out the loops of one CPU device.
 *
 * A loop over n things is cut into ranges whose size does not depend on how many threads there are, and each range is done by
 * whoever is free. So a loop may go to a team if no range reads what another one writes, and then it gives the same bits on any
 * number of threads. What has to be summed over ranges is laid down by the ranges and summed by the caller in its order.
 *
 * The threads are made with the team and end with it; nothing is allocated between. Who asks takes part. A team that is busy
 * for another thread, or that is NULL, leaves the whole loop to who asks.
 */
#ifndef SKEP_MODELS_TEAM_H
#define SKEP_MODELS_TEAM_H

#include <stddef.h>
#include <stdint.h>

struct skep_team;

/* That this process may use, at least 1: by its mask, which batch systems and containers set. */
uint32_t skep_team_cores(void);

/* Of `members` >= 1 with the caller. NULL: no memory, or no more threads are to be had. */
struct skep_team *skep_team_create(uint32_t members);
void skep_team_destroy(struct skep_team *team);           /* NULL is fine */
uint32_t skep_team_members(const struct skep_team *team); /* of NULL: 1 */

/* Things first .. end - 1, by member `member` of the team, who has its own scratch; 0 is who asks. */
typedef void skep_team_fn(const void *context, size_t first, size_t end, uint32_t member);
/* All n of them, in ranges of `grain` >= 1; they are done when it returns. */
void skep_team_share(struct skep_team *team, size_t n, size_t grain, skep_team_fn *fn, const void *context);

#endif
