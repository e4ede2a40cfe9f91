/* SPDX-License-Identifier: Apache-2.0
 *
 * startup.h - what all ranks agree on before the run begins. Every function is collective: all ranks call it at the same place,
 * between MPI_Init and MPI_Finalize. All go by way of rank 0, which so knows who is missing, and have a limit of time.
 */
#pragma once

#include "base/diag.h"
#include "exec/loop/clock.h"

#define SKEP_START_SAYS_S 5u /* of waiting, until rank 0 says for whom */
#define SKEP_START_AT_WORK                                                                                             \
	10u /* times as long as the limit is what a rank may take that has files to read or to search */

/* The start of a run, in one process. Begins as {.limit_s = ...}. */
struct skep_start {
	uint32_t limit_s; /* longest wait for a rank that has nothing to do but to answer */
	bool lost; /* some rank is dead, or has not answered: the start has failed, and nothing waits for it any more */
	bool orphaned;    /* that one is rank 0 */
	char (*host)[64]; /* rank 0: [ranks] of those who have answered before; NULL: none has */
};

void skep_start_finish(struct skep_start *start);

/* True if the diagnosis of no rank is set; else all ranks get that of the lowest one that has failed. `what` they do
 * beforehand goes into what is said of one that does not come, and `times` the limit it may take. */
bool skep_together_agree(struct skep_start *start, const char *what, uint32_t times, struct skep_diag *reterr);

/* The same, and *ret is on rank 0 the sum of what all bring. */
bool skep_together_sum(struct skep_start *start, const char *what, uint32_t times, uint64_t mine, uint64_t *ret,
	struct skep_diag *reterr);

/* Rank 0's bytes become those of all, which know their number. False: a rank does not answer. */
bool skep_together_tell(struct skep_start *start, const char *what, uint32_t times, void *bytes, uint64_t count,
	struct skep_diag *reterr);

bool skep_together_one_host(const struct skep_start *start);

/* The lowest rank on this one's host: the same for all that share its memory. */
uint32_t skep_together_host(const struct skep_start *start);

/* One instant for all processes of a host; over several hosts each takes its own when rank 0 has heard from all. */
bool skep_together_clock(struct skep_start *start, bool one_host, struct skep_clock *ret, struct skep_diag *reterr);

/* Of rank 0: what names the run, so that a frame of another one is known as such. */
bool skep_together_name(struct skep_start *start, uint64_t *ret, struct skep_diag *reterr);
