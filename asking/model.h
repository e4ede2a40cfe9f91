/* SPDX-License-Identifier: Apache-2.0
 *
 * model.h - the model that is asked about: by its name, by its number of parameters, or by its file.
 *
 * A number of parameters picks a shape of GPT-2's kind: as many blocks as the model of GPT-3's table next to it in size (Brown et
 * al. 2020, arXiv 2005.14165, table 2.1), heads of 64, and the hidden size that comes nearest.
 */
#pragma once

#include "base/diag.h"

struct skep_ask_model {
	char name[64];     /* as its file says */
	char file[1024];   /* an absolute path of the user's own; "": it is to be written */
	char text[1024];   /* what is to be written */
	double parameters; /* with those below filled in by skep_ask_model_measure() */
	uint32_t sequence, layers, vocabulary;
};

/* `--model` as it was given. */
bool skep_ask_model_find(const char *given, struct skep_ask_model *ret, struct skep_diag *reterr);

/* Reads the model from `path`, where it lies or was written. */
bool skep_ask_model_measure(struct skep_ask_model *model, const char *path, struct skep_diag *reterr);
