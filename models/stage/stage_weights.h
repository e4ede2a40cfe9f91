/* SPDX-License-Identifier: Apache-2.0
 *
 * stage_weights.h - copies weights from files into a stage, and from stages into files, for `train.init.weights` and
 * `skep export`.
 */
#pragma once

#include "models/stage/stage.h"
#include "models/weights/safetensors.h"

/* Opens the weights and compares them with those of the whole model, which has an architecture. NULL if they do not fit: then
 * *ret_list has a line for each difference, or is NULL. The caller frees it, also where they fit. */
struct skep_safetensors *skep_model_weights_open(
	const struct skep_model *model, const char *path, char **ret_list, struct skep_diag *reterr);

/* skep_stage_init_for(), and then the weights of the training, if it has any, in place of what was drawn. */
bool skep_stage_begin(const struct skep_training *training, struct skep_thread_pool *thread_pool, uint32_t index,
	struct skep_stage *ret);
/* The last part of it, for a stage with parameters in the memory of the host. */
bool skep_stage_load_weights(const struct skep_training *training, struct skep_stage *stage);

struct skep_export {
	const char *from; /* a folder of checkpoints */
	uint64_t job;     /* whose they have to be: of its last run that has kept some */
	uint64_t step;    /* of the checkpoint; 0: the newest that all stages have */
	const char *to;   /* a folder, made if its parent is there: config.json and model.safetensors */
	enum skep_dtype dtype;
	uint64_t shard_bytes;
	const char *name; /* of the run */
	/* [shards] what the training is to each of the ranks that share a stage, where the states are those of shards; else 0. */
	const struct skep_training *const *shard;
	uint32_t shards;
	const char *differs; /* how this job is another one than that of the states, for an error; "": not known */
};
struct skep_export_facts {
	uint64_t step, parameters;
	uint32_t weights;
};

bool skep_export_weights(const struct skep_training *training, const struct skep_export *options,
	struct skep_export_facts *ret, struct skep_diag *reterr);
