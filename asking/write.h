/* SPDX-License-Identifier: Apache-2.0
 *
 * write.h - a question as files: topology, model, law and scenario in one folder, as a user would write them. All else that `skep
 * ask` does starts from these files, through the readers that every command has.
 */
#pragma once

#include <stdio.h>

#include "asking/model.h"
#include "asking/question.h"
#include "scenarios/plan/law.h"

#define SKEP_ASK_HEAD "# Written by: skep ask"
#define SKEP_ASK_PATH_BYTES 1200u

struct skep_ask_files { /* in the folder */
	char folder[1024];
	bool made; /* it was not there before */
	char topology[SKEP_ASK_PATH_BYTES], model[SKEP_ASK_PATH_BYTES], law[SKEP_ASK_PATH_BYTES],
		scenario[SKEP_ASK_PATH_BYTES];
};

struct skep_ask_job { /* what is asked, once the model is known */
	const struct skep_ask_question *question;
	const struct skep_ask_model *model;
	const struct skep_law *law;
	double tokens, target_loss;
	uint32_t samples;      /* of a step */
	uint32_t steps_most;   /* of the scenario */
	uint32_t stages_least; /* that the memory of the largest cards asks for */
};

/* Names them, makes the folder, and refuses one whose files were written by something else, or that has files and none of an
 * answer, and a name that ends as that of a file. */
bool skep_ask_files_begin(const char *folder, bool force, struct skep_ask_files *ret, struct skep_diag *reterr);

/* When nothing comes of it: the folder goes again, if it was made. */
void skep_ask_files_abandon(const struct skep_ask_files *files);

/* Of the question, or of one that differs from it. */
bool skep_ask_write_topology(const struct skep_ask_question *question, const char *path, struct skep_diag *reterr);
bool skep_ask_write_model(const struct skep_ask_model *model, const char *path, struct skep_diag *reterr);
bool skep_ask_write_law(const struct skep_law *law, const char *path, struct skep_diag *reterr);
/* With free settings, for the planner. */
bool skep_ask_write_scenario(
	const struct skep_ask_job *job, const struct skep_ask_files *files, struct skep_diag *reterr);

/* The head of each file: the question as one can ask it again. */
void skep_ask_write_head(const struct skep_ask_question *question, FILE *out);
