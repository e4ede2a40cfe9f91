/* SPDX-License-Identifier: Apache-2.0
 *
 * hf_config.h - models as Hugging Face's `transformers` knows them: config.json, and how the weights of a model are named and
 * shaped in its files. GPT-2, Llama, Mixtral and BERT, as a masked language model.
 *
 * A config.json is refused where the arithmetic would be another one than skep's (another bend, scaled positions, biases
 * that skep does not have, quantised weights). Keys that change no logits are passed over, and so is dropout: skep trains
 * without.
 */
#pragma once

#include "models/read/model.h"

enum skep_hf_family { SKEP_HF_GPT2, SKEP_HF_LLAMA, SKEP_HF_MIXTRAL, SKEP_HF_BERT };

struct skep_hf_config {
	enum skep_hf_family family;
	uint32_t vocabulary, positions, hidden, blocks, heads;
	uint32_t kv_heads, feed_forward;  /* heads of keys and values; the width inside of the feed-forward part */
	double norm_epsilon, rotary_base; /* gpt2 and bert rotate nothing: 0 */
	bool tied;                        /* the head takes the embedding's table */
	struct skep_experts experts;      /* of mixtral */
	double masked;                    /* of bert, as in a model of skep's: config.json knows of neither ... */
	uint32_t mask_token;              /* ... but may have the token as `mask_token_id` */
};

/* Is that a file of this kind? By its name, which ends in .json. */
bool skep_hf_config_is(const char *path);

bool skep_hf_config_read(const char *path, struct skep_hf_config *ret, struct skep_diag *reterr);

/* As config.json, so that `transformers` builds the same model; the caller frees it. NULL when memory lacks. */
char *skep_hf_config_print(const struct skep_hf_config *config);

/* As a model of skep's, whose sequence is as long as its context, and back. A model that shares parameters among blocks
 * becomes one that repeats them. */
bool skep_hf_model_read(const char *path, struct skep_model *ret, struct skep_diag *reterr);
struct skep_hf_config skep_hf_config_of(const struct skep_model *model); /* which has an architecture */
/* Why `transformers` has no such model, in words that fit behind "model NAME ", or NULL. */
const char *skep_hf_config_lacks(const struct skep_model *model);
