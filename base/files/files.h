/* SPDX-License-Identifier: Apache-2.0
 *
 * files.h - the files that one reading of a description asks for: where names are looked for, and what was found and read.
 *
 * The list travels in the diagnosis that every reader hands on (skep_diag.files), and those who find and open files fill it. So
 * a reader that is added later cannot be left out: what it opens through base/ is in the list.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct skep_file_asked {
	char *path; /* as it was opened */
	bool read;  /* false: found alone, so that it matters only that it exists */
};

struct skep_files {
	/* With a root names are looked for under it alone, as if it were "/": it holds a copy of folders of another machine. An
	 * absolute path without a slash at its end, borrowed; NULL: in the file system as it is. */
	const char *root;
	const char *folder;            /* the working folder under the root: an absolute path, borrowed */
	struct skep_file_asked *asked; /* each path once, in the order in which they were asked for */
	uint32_t count;
	bool incomplete; /* there was no memory for all of them */
};

/* Nothing with files of NULL. */
void skep_files_note(struct skep_files *files, const char *path, bool read);
void skep_files_finish(struct skep_files *files); /* root and folder stay */

/* The working folder as a prefix of names, ended by a slash; "" where names are taken as they are. False: it does not fit. */
bool skep_files_here(const struct skep_files *files, char *ret, size_t size);

/* An absolute path without `.`, `..`, and slashes in a row or at the end; what stands before a `..` goes, whatever it is on the
 * disk, and nothing leads above the root. A path that is not absolute is one of `folder`. False: it does not fit. */
bool skep_path_normal(const char *folder, const char *path, char *ret, size_t size);

/* near.c. A file that was perhaps meant by a path that names none: of nearly that name in the same folder, or, of a bare name,
 * among the scenarios of the folder here or above. False: there is none, or it does not fit. */
bool skep_file_near(const char *path, char *ret, size_t size);

/* The names in a folder that end so, hidden ones left out: sorted, and without that ending. NULL, and none: it has none, or there
 * is no memory. */
char **skep_folder_names(const char *folder, const char *ending, uint32_t *ret_count);
void skep_folder_names_free(char **names, uint32_t count);

/* The same of a `name` in the file `from` (skep_file_find()): of nearly that name in the first folder that it may be in. */
bool skep_file_near_from(const char *from, const char *name, char *ret, size_t size);
