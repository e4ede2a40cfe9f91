/* SPDX-License-Identifier: Apache-2.0
 *
 * masking.h - which tokens of a sequence a masked language model predicts, and what it reads in their place (Devlin et al.
 * 2018, arXiv 1810.04805, section 3.1): the mask token in 8 of 10 cases, any token of the vocabulary in 1, and in 1 the token
 * itself.
 *
 * All of it is a pure function of (key of the sample, place), so that the first stage and the last one come to the same, and a
 * replay too. Each sequence has the same number of tokens to predict, each set of so many places is equally likely, and any
 * token may be among them. So the mean over a microbatch has the same divisor as that of any other one, and the mean over all
 * microbatches of a round, whichever worker had them, is the mean over all its predicted tokens.
 */
#pragma once

#include <stdint.h>

struct skep_masking {
	uint32_t sequence, predicted; /* tokens, and how many of them are predicted: 1 or more */
	uint32_t vocabulary, token;   /* the token that masks is one of the vocabulary */
};

/* The key of sample `index` of a split (enum skep_tokens_split), drawn from `seed`. */
uint64_t skep_masking_key(uint64_t seed, uint32_t split, uint64_t index);

/* The places that are predicted, rising: ret[predicted]. */
void skep_masking_places(const struct skep_masking *masking, uint64_t key, uint32_t *ret);

/* Puts into id[sequence] what the model reads in these places. */
void skep_masking_hide(const struct skep_masking *masking, uint64_t key, int32_t *id);
