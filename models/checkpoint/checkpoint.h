/* SPDX-License-Identifier: Apache-2.0
 *
 * checkpoint.h - states of stages in files: what the executor's CHECKPOINT writes and RESTORE reads.
 *
 * One file for each stage and version, in a folder that every worker that may restore the stage can read. A file is
 * written under a temporary name, synchronised and renamed, so what has its name is whole; when one is written, all but the
 * newest SKEP_CHECKPOINTS_KEPT that this run has kept of the stage are removed. All numbers are little endian: 64 bytes (magic,
 * format, stage, version, 0, bytes, job, run, sum of the state, sum of the header so far), then what skep_stage_keep() writes
 * (stage.h). A file of another format, stage, version, size, job or run is refused. In place of one that is damaged the newest
 * one before it is read, with a warning. The folder is one run's: its workers move what others
 * have kept there into folders of their own before they begin (checkpoint_folder.h).
 *
 * With plan->sharded what is called a stage here is a part of a stage's state (skep_plan_part()), which one worker has alone.
 *
 * A run that goes on with what another one has kept is a run of its own, with its own number: so two that do so at once do not
 * take each other's states for theirs, and a version that some stages have of the one and some of the other is no version. It
 * reads the one version that it begins with, and nothing is moved or written again for that: should it die before all stages have
 * kept a newer version, that one is still there for the next to begin with. What the folder has up to that version counts as
 * its own older ones, which go when there are enough newer ones.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "core/skep.h"

#define SKEP_CHECKPOINT_HEADER_BYTES 64u
#define SKEP_CHECKPOINT_FORMAT                                                                                         \
	4u /* 1 did not say whose a state is; 2 was of the state alone; 3 had no sum of the header */
#define SKEP_CHECKPOINT_PATH_BYTES 768u

/* Where a device keeps states. Both return false with a reason that says what to do. `presumed`: the run may not have come to
 * that version, as CHECKPOINT says (op.h). */
struct skep_keeper {
	void *context;
	bool (*write)(void *context, uint32_t stage, uint32_t version, bool presumed, const void *state, uint64_t bytes,
		struct skep_diag *reterr);
	bool (*read)(void *context, uint32_t stage, uint32_t version, void *ret_state, uint64_t bytes,
		struct skep_diag *reterr);
};

struct skep_checkpoint_folder {
	const char *path;
	uint64_t job;  /* digest of what is trained: scenarios with another one have other parameters */
	uint64_t run;  /* ns since 1970 when it began, the same for all of its processes, and more than `from` */
	uint32_t keep; /* of each stage the newest so many; 0: all */
	uint64_t from; /* the run that this one goes on with, ... */
	uint32_t from_version; /* ... from that version of its states on; 0: it begins by itself */
};

/* In files; `folder` must outlive the keeper. The folder is made if its parent is there. */
struct skep_keeper skep_checkpoint_keeper(struct skep_checkpoint_folder *folder);

/* The file of that state. */
void skep_checkpoint_path(const struct skep_checkpoint_folder *folder, uint32_t stage, uint32_t version,
	char ret[SKEP_CHECKPOINT_PATH_BYTES]);

struct skep_checkpoint_header {
	uint32_t format, stage, version; /* format 0: no checkpoint at all, or its header is damaged */
	uint64_t job, run;               /* not in format 1 */
};
struct skep_checkpoint_header skep_checkpoint_header_read(const char *path);

/* Reads all of it: are its sums those of its contents? */
bool skep_checkpoint_is_whole(const char *path);
