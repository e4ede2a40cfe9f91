/* SPDX-License-Identifier: Apache-2.0
 *
 * text.h - the text that tests and benchmarks learn: Shakespeare by bytes, in windows of so many.
 */
#pragma once

#include "models/corpus/tokens.h"

/* Looked for from `from`, a file or folder of the tree, upwards. NULL, with a diagnosis, if it is not there. */
static inline struct skep_tokens *text_open(const char *from, uint32_t length, struct skep_diag *reterr)
{
	static const char *const files[] = {"models/text/tinyshakespeare.txt"};
	struct skep_tokens_options options = {.from = from,
		.training = files,
		.trainings = 1,
		.part = SKEP_TOKENS_VALIDATION,
		.format = SKEP_TOKENS_BYTES,
		.vocabulary = 256,
		.length = length};
	return skep_tokens_open(&options, reterr);
}
