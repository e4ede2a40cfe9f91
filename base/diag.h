/* SPDX-License-Identifier: Apache-2.0
 *
 * diag.h - the one way in which errors travel up to the user: what failed and, in a file that people write, where.
 *
 * A function that can fail takes `struct skep_diag *reterr`, sets it, and returns false or NULL; callers hand it on, and main
 * prints it once (skep_report_diag). A diagnosis begins as {0}. The first error counts: later ones are its consequences.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct skep_files;

/* line 0, column 0: the file as a whole. */
struct skep_diag {
	bool set;
	char file[512];        /* "": not about a place in a file */
	uint32_t line, column; /* from 1; line 0 with a column: in an option, not in a file */
	char text[256];        /* the offending line, tabs made blanks, cut around the column */
	uint32_t caret;        /* position of the caret in text, from 0 */
	char message[1024];    /* what was expected, and what to do */
	struct skep_files *
		files; /* where those who are handed this look for files, and note them (files/files.h); NULL: nowhere */
	bool of_value; /* the value is wrong by itself: its type, range, an unknown key, a file that is not there */
};

/* A clear one that a reader may fill beside another, of which something else is to be made. */
struct skep_diag skep_diag_beside(const struct skep_diag *diag);

/* Only the first call on a clear diagnosis has an effect. `text` is the line that is shown: NULL, or up to its first
 * line break or 0. The diagnosis holds no control characters, whatever the file holds. */
void skep_diag_set(struct skep_diag *diag, const char *file, uint32_t line, uint32_t column, const char *text,
	const char *format, ...) __attribute__((format(printf, 6, 7)));

/* The same without a place. Returns false, for `return skep_fail(...)`. */
bool skep_fail(struct skep_diag *reterr, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* It is about memory of this process, not about what was read: all sentences of that kind have the same words. */
bool skep_diag_is_memory(const struct skep_diag *diag);

/* "file:line:column: error: message", the line, the caret, each ended by a newline. Without a file "error: message". Writes at
 * most size bytes with the final 0. */
void skep_diag_print(const struct skep_diag *diag, char *ret, size_t size);

#ifdef __cplusplus
}
#endif
