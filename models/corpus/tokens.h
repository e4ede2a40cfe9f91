/* SPDX-License-Identifier: Apache-2.0
 *
 * tokens.h - a corpus of tokens: opened once, read where it lies, drawn from by number.
 *
 * What a file may be:
 *     bytes    any file; each byte is a token, so a vocabulary is 256 or more
 *     nanogpt  16-bit tokens and nothing else (what nanoGPT's prepare.py writes)
 *     llmc     256 32-bit numbers, of which the first three are magic, version and count, then the tokens: 16 bits each
 *              (magic 20240520, version 1; GPT-2) or 32 bits each (magic 20240801, version 7; Llama 3)
 * all little endian. A corpus is one file or several shards of one format.
 *
 * Windows. A sample of length T is T + 1 tokens in a row: T inputs, and the T targets that follow them. Window w of a file has
 * the tokens w T .. w T + T, so that every token but a file's first is a target once. No window spans two files; at the
 * end of each file up to T - 1 tokens are left over and never drawn (skep_tokens_facts.unused counts them).
 *
 * Validation is the last part of the windows, 10 % by default, rounded to whole windows and at least one; or files of its own. No
 * token is a target in both.
 *
 * Order. Sample i of a split with n windows belongs to epoch i / n; an epoch is a permutation of the n windows, drawn from (seed,
 * split, epoch) and computed without memory. So each window comes once in every epoch, and workers that draw disjoint
 * numbers of one epoch draw disjoint windows. Epochs follow each other without a gap: a batch may hold the end of one and the
 * beginning of the next.
 *
 * Ids. When a corpus of n files is opened, the first SKEP_TOKENS_CHECKED / n tokens of each are compared with the
 * vocabulary: most corpora as a whole, and of the rest enough to notice another tokenizer. Every token is compared when drawn.
 */
#pragma once

#include "base/reader.h"

#define SKEP_TOKENS_CHECKED (UINT64_C(1) << 26) /* some 10 ms once they are in memory */
#define SKEP_TOKENS_VALIDATION 0.1

enum skep_tokens_format {
	SKEP_TOKENS_DETECT, /* the magic of llmc; else nanogpt for names that end in .bin; else bytes */
	SKEP_TOKENS_BYTES,
	SKEP_TOKENS_NANOGPT,
	SKEP_TOKENS_LLMC
};
enum skep_tokens_split { SKEP_TOKENS_TRAINING, SKEP_TOKENS_HELD_OUT };

struct skep_tokens_options {
	const char *from; /* the file that names the others, as skep_file_find() takes it; or NULL */
	const char *const
		*training; /* [trainings] files, or patterns (*, ?, [a-z]) of files, which come sorted by bytes */
	const char *const *validation; /* [validations] the same; none: the last part of the training files */
	uint32_t trainings, validations;
	bool training_given, validation_given; /* on the command line, as skep_file_find_given() takes names */
	double part; /* of the windows, in [0, 1), that are for validation; 0: none. Of no effect with files of their own */
	enum skep_tokens_format format;
	uint32_t vocabulary; /* of the model: all ids are below */
	uint32_t length;     /* T */
	/* Samples are records of T bytes instead, one behind the other, which begin with a class below the vocabulary. */
	bool records;
};

struct skep_tokens_facts {
	uint32_t files;
	uint64_t tokens, unused;
	uint64_t windows[2]; /* by split; SKEP_TOKENS_HELD_OUT may have 0 */
};

struct skep_tokens; /* constant once open: any thread may draw from it */

/* NULL with the diagnosis filled: no such file, empty, shorter than a window, cut short, of a wrong magic or version, an id
 * beyond the vocabulary, one file twice. */
struct skep_tokens *skep_tokens_open(const struct skep_tokens_options *options, struct skep_diag *reterr);
void skep_tokens_close(struct skep_tokens *tokens); /* NULL is fine */
void skep_tokens_describe(const struct skep_tokens *tokens, struct skep_tokens_facts *ret);

/* length + 1 ids of sample `index`; the split has windows. False, with the diagnosis filled, for an id beyond the vocabulary. */
bool skep_tokens_sample(const struct skep_tokens *tokens, enum skep_tokens_split split, uint64_t seed, uint64_t index,
	int32_t *ret, struct skep_diag *reterr);

/* Of a corpus of records: the bytes of sample `index`. */
const unsigned char *skep_tokens_record(
	const struct skep_tokens *tokens, enum skep_tokens_split split, uint64_t seed, uint64_t index);

/* Which window that is: [0, windows) in training, from there on in validation. */
uint64_t skep_tokens_window(
	const struct skep_tokens *tokens, enum skep_tokens_split split, uint64_t seed, uint64_t index);

/* A permutation of [0, n), n >= 1, drawn from the key: where i goes. */
uint64_t skep_permute(uint64_t key, uint64_t n, uint64_t i);
