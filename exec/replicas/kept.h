/* SPDX-License-Identifier: Apache-2.0
 *
 * kept.h - what the replicas of a server agree on: which run goes on from where, and which states a majority of them has.
 *
 * Each replica applies the same entries in the same order, so all hold the same table. Entries are written field by field, little
 * endian. What is kept true: a version that stands in the table is on the disks of a majority; a run that goes on from a version
 * of an earlier one strikes what that one had kept beyond it.
 */
#pragma once

#include "core/skep.h"
#include "models/checkpoint/checkpoint.h"

#define SKEP_KEPT_VERSIONS SKEP_CHECKPOINTS_KEPT

enum skep_kept_kind {
	SKEP_KEPT_BEGIN = 1, /* a replica that leads serves a run from now on */
	SKEP_KEPT_STATE,     /* a majority has this state */
	SKEP_KEPT_OVER,      /* all rounds of the scenario are done */
	SKEP_KEPT_KINDS
};

struct skep_kept_entry {
	uint8_t kind;
	/* BEGIN: as struct skep_checkpoint_folder has them */
	uint64_t job, run, from;
	uint32_t from_version;
	/* STATE */
	uint32_t stage, version;
	uint64_t bytes; /* of its file */
};

struct skep_kept_state {
	uint32_t version; /* 0: none */
	uint64_t bytes;
};

struct skep_kept {
	uint32_t stages;
	uint64_t job, run, from; /* of the last BEGIN; run 0: there was none */
	uint32_t from_version;
	bool over;
	struct skep_kept_state *state; /* [stages][SKEP_KEPT_VERSIONS], of each stage the newest, in any order */
};

/* False: no memory. */
bool skep_kept_create(uint32_t stages, struct skep_kept *ret);
void skep_kept_finish(struct skep_kept *kept);

#define SKEP_KEPT_ENTRY_BYTES 48u
void skep_kept_encode(const struct skep_kept_entry *entry, uint8_t ret[SKEP_KEPT_ENTRY_BYTES]);
/* False: no writer has written this, or it is of a stage that the scenario has not. The table is then as it was. */
bool skep_kept_apply(struct skep_kept *kept, const uint8_t *bytes, size_t count);

/* The whole table; `ret` has skep_kept_snapshot_bytes(). */
size_t skep_kept_snapshot_bytes(const struct skep_kept *kept);
void skep_kept_snapshot(const struct skep_kept *kept, uint8_t *ret);
bool skep_kept_restore(struct skep_kept *kept, const uint8_t *bytes, size_t count);

/* The newest version that stands in the table for all stages; 0: none does. */
uint32_t skep_kept_newest(const struct skep_kept *kept);
/* That of a stage; NULL: it does not stand there. */
const struct skep_kept_state *skep_kept_find(const struct skep_kept *kept, uint32_t stage, uint32_t version);
