/* SPDX-License-Identifier: Apache-2.0
 *
 * token_file.h - one file of tokens, of any of the formats of tokens.h: recognised, checked, and its ids as 32-bit numbers. Not
 * for other folders.
 */
#pragma once

#include "base/files/mapped.h"
#include "models/corpus/tokens.h"

struct skep_token_file {
	char *path;
	struct skep_mapped mapped;
	enum skep_tokens_format format; /* never DETECT */
	const unsigned char *first;     /* token */
	uint32_t width;                 /* bytes of a token: 1, 2 or 4 */
	uint64_t tokens;
};

bool skep_token_file_open(
	const char *path, enum skep_tokens_format format, struct skep_token_file *ret, struct skep_diag *reterr);
void skep_token_file_close(struct skep_token_file *file);

/* Ids of tokens [at, at + count) as they stand in the file; the largest of them. What does not fit into 31 bits comes out
 * negative, and the largest tells. */
uint32_t skep_token_file_read(const struct skep_token_file *file, uint64_t at, uint64_t count, int32_t *ret);
/* Only the largest. */
uint32_t skep_token_file_largest(const struct skep_token_file *file, uint64_t at, uint64_t count);

/* Fills the diagnosis if one of these tokens is beyond the vocabulary; `largest` is what reading them returned. */
bool skep_token_file_fits(const struct skep_token_file *file, uint64_t at, uint64_t count, uint32_t largest,
	uint32_t vocabulary, struct skep_diag *reterr);
