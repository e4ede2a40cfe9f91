/* SPDX-License-Identifier: Apache-2.0
 *
 * overlap.h - gradients that are summed while the backward pass still runs: which layers make a bucket, how much of a pass each
 * bucket takes.
 */
#pragma once

#include "scenarios/read/scenario.h"

/* The keys overlap and bucket of `sync`, when the pipeline is known. */
void skep_overlap_read(struct skep_reader *r, const struct skep_yaml_node *sync, struct skep_scenario *s);

/* Cuts the stages into buckets, when their times are known; false: no memory. */
bool skep_overlap_make(struct skep_scenario *s);

/* Of a BACKWARD in parts that takes `ns` as a whole: what its part takes. All parts together take ns. */
uint64_t skep_overlap_part_ns(const struct skep_scenario *s, uint32_t gpu, const struct skep_op *op, uint64_t ns);
