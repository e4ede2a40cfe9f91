/* SPDX-License-Identifier: Apache-2.0
 *
 * resume.h - a run that continues from the checkpoints of an earlier one: which round it takes, and how that changes
 * the plan.
 */
#pragma once

#include "scenarios/read/scenario.h"

struct skep_resume {
	uint64_t run;     /* its number in the folder of checkpoints */
	uint32_t version; /* of all stages: as of the start of this round, > 0 */
	bool nothing;     /* there are no states of this job, and what is there is whole */
	char damaged
		[SKEP_CHECKPOINT_PATH_BYTES]; /* one of that version or a newer one, which was passed over; "": none */
};

/* In the folder of checkpoint.to: of the last run of this job that has kept a version of all stages the newest one that is
 * whole. False, with the reason and what to do: the scenario keeps nothing, there is none, or what there is is damaged. */
bool skep_resume_find(const struct skep_scenario *scenario, struct skep_resume *ret, struct skep_diag *reterr);

/* Writes beside the states which files they are learnt from, model and samples, by their sums, and the scenario's text.
 * skep_resume_find() refuses other files, and of another scenario says where it differs. */
bool skep_resume_note_files(const struct skep_scenario *scenario, struct skep_diag *reterr);

#define SKEP_RESUME_DIFFERS_BYTES 320u
/* The first key in which the scenario is another job than that whose text is beside the states in its folder of checkpoints, with
 * both values: "; train.optimizer.lr is 0.1, and was 0.01". "": there is none, or that is not known.
 * `diag`: of the caller, which stays as it is. */
void skep_resume_differs(
	const struct skep_scenario *scenario, const struct skep_diag *diag, char ret[SKEP_RESUME_DIFFERS_BYTES]);

/* Have all rounds closed that the scenario asks for? */
bool skep_resume_is_over(const struct skep_scenario *scenario, const struct skep_resume *from);

/* The plan begins with that round, for good; a trial of candidates is behind it. kept_as, if it is set, becomes more than
 * the number of the run that is continued: by these numbers runs are told apart and put in order, whatever a clock says. */
void skep_resume_from(struct skep_scenario *scenario, const struct skep_resume *from);
