/* SPDX-License-Identifier: Apache-2.0
 *
 * shard.c - the part of a model that one rank of a tensor parallel group has (Shoeybi et al. 2019; with the tokens between the
 * split products shared out too, Korthikanti et al. 2022).
 */
#include "models/read/model.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

const char *skep_model_refuses_shard(const struct skep_model *model, uint32_t size)
{
	if (size <= 1)
		return NULL;
	if (model->kind == SKEP_MODEL_RESNET)
		return "is a ResNet, whose convolutions are not split: take more stages, or more workers";
	if (model->kind != SKEP_MODEL_TRANSFORMER || model->architecture == SKEP_ARCHITECTURE_NONE)
		return "is no transformer that can be trained: give it an `architecture`";
	if (model->architecture == SKEP_ARCHITECTURE_BERT)
		return "is a BERT, whose norms and head are not split: take a gpt2 or a llama, or more stages";
	if (model->experts.count > 0)
		return "has experts, which are not split";
	if (model->frozen > 0)
		return "has frozen layers, which are not split";
	if (model->heads % size != 0)
		return "has a number of heads that is no multiple of that";
	if (model->kv_heads % size != 0)
		return "has a number of heads of keys and values (kv_heads) that is no multiple of that";
	if (model->feed_forward % size != 0)
		return "has a feed-forward part (feed_forward) whose width is no multiple of that";
	if (model->sequence % size != 0)
		return "has a sequence that is no multiple of that";
	const uint32_t rows = (model->vocabulary + size - 1) / size;
	return rows * (size - 1) >= model->vocabulary ? "has a vocabulary of too few tokens for that" : NULL;
}

bool skep_model_shard(const struct skep_model *whole, uint32_t rank, uint32_t size, struct skep_model *ret)
{
	const size_t widths = (size_t)whole->layers + 1, cuts = whole->cuts;
	assert(skep_model_ranks(whole) == 1 && rank < size && skep_model_refuses_shard(whole, size) == NULL);
	*ret = *whole;
	ret->given = NULL;
	ret->width = malloc(widths * sizeof *ret->width);
	ret->cut = cuts > 0 ? malloc(cuts * sizeof *ret->cut) : NULL;
	const bool room = ret->width && (cuts == 0 || ret->cut);
	if (room)
		memcpy(ret->width, whole->width, widths * sizeof *ret->width);
	if (room && cuts > 0)
		memcpy(ret->cut, whole->cut, cuts * sizeof *ret->cut);
	for (uint32_t l = 1; room && l < ret->layers; l++)
		ret->width[l] /= size;
	ret->shard = (struct skep_tensor_shard){rank, size};
	if (!room)
		skep_model_finish(ret);
	return room;
}
