/* SPDX-License-Identifier: Apache-2.0
 *
 * jobs.h - jobs (job.h) of the tests of the CUDA device: a transformer of models/, two samples of text.
 */
#pragma once

#include "tests/unit/job.h"

enum { SEQUENCE = 21 }; /* odd, and fewer than a tile: check_kernels.c has more */

void jobs_init(struct job *job, const char *name, uint32_t stages, enum skep_device_kind kind);
void jobs_finish(struct job *job); /* no buffer may be left */

/* Frozen parameters are what they were, and others are not. `before`: job_parameters(), which is freed. */
void jobs_check_frozen(struct job *job, float *before);
