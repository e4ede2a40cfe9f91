/* SPDX-License-Identifier: Apache-2.0
 *
 * checkpoint_folder.h - finds out which runs' states a folder of checkpoints holds, and of which versions: for a run
 * that begins there, and for one that takes its first weights from there.
 */
#pragma once

#include <stdio.h>

#include "base/diag.h"
#include "models/checkpoint/checkpoint.h"

/* Of each stage the newest folder->keep that the run has kept are left, those that it goes on with included. */
void skep_checkpoint_remove_old(const struct skep_checkpoint_folder *folder, uint32_t stage);

/* Can files be written there? If not, what to do. Makes the folder, removes what writers that were killed have left, and moves
 * what other runs have kept into one folder for each of them, within this one: *ret_moved says how many files. Of the run that
 * this one goes on with that is what it has kept beyond the version to go on from, which not all of its stages have. Several
 * processes may do so at once. */
bool skep_checkpoint_folder_usable(
	const struct skep_checkpoint_folder *folder, uint32_t *ret_moved, struct skep_diag *reterr);

/* How many were moved, for who begins a run; 0: nothing. */
void skep_checkpoint_say_moved(const struct skep_checkpoint_folder *folder, uint32_t moved, FILE *out);

/* What one run has kept. */
struct skep_checkpoints {
	uint64_t run;      /* the last one that has trained this job and has a version of all stages; 0: none has */
	uint32_t versions; /* of which all stages are there, in rising order: */
	uint32_t *version;
	uint32_t files;   /* all there are, of whomever; of these: */
	uint32_t older;   /* of another format, */
	uint32_t foreign; /* and of another job */
	uint32_t beyond;  /* of this job, and of a stage or part that it has not */
	char damaged
		[SKEP_CHECKPOINT_PATH_BYTES]; /* one that has the name of a checkpoint and is none; "": there is none */
	uint32_t damaged_version;             /* by that name */
};

/* No such folder is an empty one. Returns false when memory lacks. Reads headers alone. */
bool skep_checkpoints_find(const char *path, uint64_t job, uint32_t stages, struct skep_checkpoints *ret);
/* Strikes the newest versions off the list of which a state is damaged, until one is whole, and goes on with those of the run
 * before where none of this one is; it reads them. Returns false when memory lacks. */
bool skep_checkpoints_pass_over(const char *path, uint64_t job, uint32_t stages, struct skep_checkpoints *list);

struct skep_learnt_from { /* a file, and what it is to the run; an empty path: there is none */
	const char *what, *path;
};

/* Writes beside the states what they are learnt from, as the files' sums. */
bool skep_checkpoints_note_files(
	const char *folder, const struct skep_learnt_from *from, uint32_t count, struct skep_diag *reterr);
/* The first one that is another file now, NULL: none is, or the folder of an older skep has no list. */
const struct skep_learnt_from *skep_checkpoints_other_file(
	const char *folder, const struct skep_learnt_from *from, uint32_t count);

void skep_checkpoints_finish(struct skep_checkpoints *list);
/* Why there is no version of all stages, and what to do; what goes behind the name of the folder. */
void skep_checkpoints_say_none(const struct skep_checkpoints *list, uint32_t stages, char *ret, size_t size);
