/* SPDX-License-Identifier: Apache-2.0
 *
 * tied_job.h - a job in two stages (job.h) that each hold a copy of one table: rounds in which they tell each other what they
 * have summed, and comparisons of the copies.
 */
#pragma once

#include "tests/unit/job.h"

/* In two stages, with an untied model in job->model whose head is tied from now on; the caller starts the devices. */
void tied_init(struct job *job, enum skep_codec reduction);

size_t tied_parameters(const struct job *job, uint32_t stage);
struct skep_op tied_op(const struct job *job, enum skep_op_kind kind, uint32_t stage, uint32_t round);

/* Are the copies equal, after so many steps, and have they changed since? The caller frees *last, NULL at first. */
void tied_check_copies(struct job *job, float **last, bool changed, uint64_t steps);

/* `first` microbatches are counted in the first stage, `second` in the last one; then both step. Returns the square of the norm
 * as they were told. With periodic sync each makes an inner step before. */
double tied_round(struct job *job, uint32_t round, uint32_t first, uint32_t second);
/* What of it follows the passes. */
double tied_finish(struct job *job, uint32_t round, uint32_t first, uint32_t second);
