/* SPDX-License-Identifier: Apache-2.0
 *
 * layer_times.h - how long the layers of one transformer take on a device, for microbatches of 1, 2, 4, ... samples: what a table
 * of layers (topologies/gpu/gpu_table.h) is made of.
 *
 * Timed are stages as a pipeline has them (stage_bench.h): the embedding alone, one block, several blocks, and the head alone.
 * What the several take longer than one, over one less than their number, is a block, unless that is more than the stage of one
 * takes: then it is what the several take, over their number. They are as many as the model has, but
 * three at least and five at most: the more there are, the less of each is left in the caches. What one block's stage takes
 * beyond its block is what the operation itself costs, and the way of a payload in and of one out, which on a GPU goes through
 * the host's memory: half of that is an edge. The embedding's stage has one edge, and so has the head's. So a stage takes the
 * sum of its layers and of its edges, and a stage that has both ends of the model has no edge and still the cost of an
 * operation.
 */
#pragma once

#include "models/device/stage_bench.h"

enum skep_layer_part { SKEP_PART_EMBEDDING, SKEP_PART_BLOCK, SKEP_PART_HEAD, SKEP_PART_EDGE, SKEP_LAYER_PARTS };

enum skep_layer_column { SKEP_LAYER_FORWARD, SKEP_LAYER_BACKWARD, SKEP_LAYER_UPDATE, SKEP_LAYER_COLUMNS };

enum { SKEP_LAYER_TIMES_MAX = 8 };

/* In seconds; the update is a step of AdamW. */
struct skep_layer_time {
	double s[SKEP_LAYER_COLUMNS];
};

struct skep_layer_times {
	uint32_t microbatches; /* 1, 2, 4, ...: so many of them, 1 or more once measured */
	struct skep_layer_time part[SKEP_LAYER_PARTS][SKEP_LAYER_TIMES_MAX];
};

/* Stages of one microbatch, as they were timed. */
struct skep_layer_stages {
	uint32_t blocks; /* of `several`, 2 or more */
	struct skep_layer_time embedding, one_block, several, head;
};

/* The parts of such stages. A part that came out shorter than a hundredth of the stage that it was told from was lost in that
 * stage's noise, and is that hundredth. */
void skep_layer_times_part(const struct skep_layer_stages *stages, struct skep_layer_time ret[SKEP_LAYER_PARTS]);

/* More samples take no less time: passes that rise with the microbatch and are nearest to what was seen, in the mean of absolute
 * differences, which a few disturbed ones do not move. An update takes the median of what was seen, whatever the microbatch. */
void skep_layer_times_smooth(struct skep_layer_times *times);

/* `model`: a transformer that can be trained. Microbatches grow until memory lacks or one pass takes half a second. Takes some
 * twenty seconds. False: not even one sample could be measured; reterr says why. */
bool skep_layer_times_measure(enum skep_device_kind kind, const struct skep_device_place *place,
	const struct skep_model *model, struct skep_layer_times *ret, struct skep_diag *reterr);
