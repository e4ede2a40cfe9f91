/* SPDX-License-Identifier: Apache-2.0
 *
 * hf_weights.h - the tensors of a model as Hugging Face's files name and shape them.
 *
 * skep keeps every product as W[in][out], queries, keys and values side by side in one, and in a Llama gates and values side by
 * side. A GPT-2's files have just that. A Llama's and a BERT's have W[out][in], each product by itself: so one tensor here is up
 * to three there, and a stack of experts that for each. Blocks that share their parameters are written once each.
 */
#pragma once

#include "models/layers/layer.h"
#include "models/weights/weights.h"

/* Writes to ret the weights of layer `layer` of the model, whose parameters begin at `parameter` (NULL: names and
 * shapes alone). Returns their number; with ret NULL it only counts. Of a shard, one for each piece of a weight that it has. */
uint32_t skep_hf_layer_weights(
	const struct skep_model *model, uint32_t layer, float *parameter, struct skep_weight *ret);

/* Lists the weights of the whole model, of a shard too, names and shapes alone; the caller frees *ret. Returns their number; 0:
 * no memory. */
uint32_t skep_hf_model_weights(const struct skep_model *model, struct skep_weight **ret);

/* How files may differ in their names. */
struct skep_weight_names skep_hf_names(const struct skep_model *model);
