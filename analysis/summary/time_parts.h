/* SPDX-License-Identifier: Apache-2.0
 *
 * time_parts.h - where the time of a run goes, in parts that add up to it; of two runs, which part makes the difference, and what
 * to measure next to know more.
 *
 * The parts are those of a mean worker:
 *
 *   passes      forward and backward passes
 *   steps       optimizer steps, inner steps and pseudo-gradients
 *   reductions  from the last of a round's backward passes, inner steps and pseudo-gradients to the end of its reduction, as far
 *               as no pass goes on meanwhile
 *   joins       not there while rounds went on (before it came, after it was lost), and state that is saved, loaded and copied
 *   ends        before the first round opens and after the last one has closed
 *   waiting     the rest: for microbatches, gradients and other workers
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdio.h>

#include "analysis/store/store.h"

enum skep_time_part {
	SKEP_TIME_PART_PASSES,
	SKEP_TIME_PART_STEPS,
	SKEP_TIME_PART_REDUCTIONS,
	SKEP_TIME_PART_JOINS,
	SKEP_TIME_PART_ENDS,
	SKEP_TIME_PART_WAITING,
	SKEP_TIME_PARTS
};

struct skep_time_parts {
	bool known;     /* false: the run has not ended, or has no activity */
	bool own_links; /* messages took the links of the machines that it ran on, which need not be the topology's */
	double time_s;
	double part_s[SKEP_TIME_PARTS]; /* they add up to time_s */
};

bool skep_time_parts_read(struct skep_store *store, int64_t run, struct skep_time_parts *ret, struct skep_diag *reterr);

/* Both print nothing where one of the two is not known. `real`: one of them was measured, so that what to measure next is a
 * question. */
void skep_time_parts_print(
	const struct skep_time_parts *first, const struct skep_time_parts *second, bool real, FILE *out);
void skep_time_parts_add_json(
	const struct skep_time_parts *first, const struct skep_time_parts *second, bool real, cJSON *object);
