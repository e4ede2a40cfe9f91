/* SPDX-License-Identifier: Apache-2.0
 *
 * runs.h - the runs of a database as things: found by number, name or tag, listed, shown, removed, and made small.
 *
 * What is kept of a run: its row, its rounds, links, activity and sources always; its operations, its notes on single
 * microbatches and its event log ("detail") up to the caps of store.c, until skep_runs_collect() or skep_runs_remove() takes
 * them. A run has at most one name, which no other has, and any number of tags.
 *
 * Whatever writes looks first whether the database is whole (PRAGMA integrity_check), and leaves a damaged one as it is.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/diag.h"

#define SKEP_LABEL_BYTES 64u

/* Letters, digits, '.', '_' and '-', with a letter in front: no number and no range of numbers is one. */
bool skep_label_ok(const char *text);

/* The runs that a word of a command line means: 7, 3..14, a name or the beginning of one that no other name has, or @TAG for
 * all runs with it. At most `room`, rising; with room for one the refusal says that one is wanted. */
bool skep_runs_find(
	const char *db, const char *word, uint32_t room, int64_t *ret, uint32_t *ret_count, struct skep_diag *reterr);

/* Newest first; `tag` NULL: all. `most` 0: all. *ret_listed: how many there were. */
bool skep_runs_list(const char *db, const char *tag, uint32_t most, bool json, FILE *out, uint32_t *ret_listed,
	struct skep_diag *reterr);
/* Its row, its labels, and how many rows of each table it has. */
bool skep_runs_show(const char *db, int64_t run, bool json, FILE *out, struct skep_diag *reterr);

/* `name` NULL: takes it away. */
bool skep_runs_name(const char *db, int64_t run, const char *name, struct skep_diag *reterr);
bool skep_runs_tag(const char *db, int64_t run, const char *tag, bool remove, struct skep_diag *reterr);

/* Everything of them. A run that is still running is refused. */
bool skep_runs_remove(const char *db, const int64_t *run, uint32_t runs, struct skep_diag *reterr);

struct skep_collected {
	uint32_t runs; /* of which something was, or would be, dropped */
	uint64_t ops, notes, logs;
	uint64_t bytes_before, bytes_after; /* of the file */
};

/* Drops the detail of all runs that have ended but the newest `keep` and those with a name or a tag, then gives the room back
 * (VACUUM). `pretend`: only counts. */
bool skep_runs_collect(
	const char *db, uint32_t keep, bool pretend, struct skep_collected *ret, struct skep_diag *reterr);
