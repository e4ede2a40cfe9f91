/* SPDX-License-Identifier: Apache-2.0
 *
 * outputs.h - how files are written: whole or not at all. All output files but the database are replaced here alone.
 *
 * Each file is written under a temporary name in its own folder, put on the disk, and renamed when all files of the set are
 * whole. A symbolic link under the target's name is replaced by the file; what the link points to stays as it is.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "base/diag.h"

#define SKEP_PATH_BYTES 4096u
/* Of the target's name, in that of its temporary file: a name may have 255 bytes. */
#define SKEP_TEMPORARY_NAME_BYTES 200u

struct skep_output {
	FILE *file;
	char *path, *temporary;
};

/* Several files of which either all are written or none. Begin with all fields 0 but diag. */
struct skep_outputs {
	struct skep_diag *diag;
	struct skep_output *output;
	uint32_t count;
	/* Secrets: the owner alone may read and write the files, from the moment that they exist and whatever the files that they
	 * replace allowed. */
	bool owner_only;
};

/* The file to write to; it belongs to the set. NULL: it cannot be written, and diag says why. */
FILE *skep_outputs_begin(struct skep_outputs *outputs, const char *path);

/* The output with that number becomes the last to be renamed: the one that names the others. If any of the others replaces a
 * file, the old last one is removed first, so that what it names is never of two versions. */
void skep_outputs_put_last(struct skep_outputs *outputs, uint32_t which);

/* Renames all files, or, if diag is set or a file could not be written, removes what was begun. Returns whether all are in
 * place. The set is empty afterwards. */
bool skep_outputs_commit(struct skep_outputs *outputs);
/* Removes what was begun; targets stay as they were. */
void skep_outputs_abandon(struct skep_outputs *outputs);

/* One file of these bytes. */
bool skep_file_write(const char *path, const void *bytes, size_t size, struct skep_diag *reterr);

/* Creates an empty file "NAME.PID-MARK RANDOM.new" beside `path`, which nothing else has had, and returns its descriptor, or
 * -1 with errno. Writes the name to ret [SKEP_PATH_BYTES]. What killed writers of `path` have left there is removed first
 * (skep_remains_remove()). MARK and RANDOM are 8 hexadecimal digits each, without the blank. */
int skep_temporary_create(const char *path, char *ret);
/* The process that created the temporary file of that name for a target whose name is the first `length` bytes; 0: it is not
 * such a name. */
int64_t skep_temporary_process(const char *name, size_t length);

/* "." for a path without a folder. Cut if it does not fit. */
void skep_path_folder(const char *path, char *ret, size_t size);
const char *skep_path_base(const char *path); /* what follows the last slash */

/* remains.c: the temporary files of writers that were killed (outputs.h): whose such a file is, and whether its writer is
 * surely gone. */

/* Where process numbers mean what they mean here: of this boot of this kernel, and of the namespace of this process's number. A
 * part of the names of temporary files. */
uint32_t skep_remains_mark(void);

/* Removes what killed writers of the file `path`, which need not be there, have left beside it: temporary files whose process was
 * one of here and is no more, or, of other machines or before a reboot, that nothing has touched for a day. Says nothing of
 * failure: the next writer tries again. */
void skep_remains_remove(const char *path);
