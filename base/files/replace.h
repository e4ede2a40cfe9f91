/* SPDX-License-Identifier: Apache-2.0
 *
 * replace.h - whether a file that is about to be written may take the place of what has its name. Every command that writes a
 * file asks, so that a mistyped -o destroys nothing that cannot be made again.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/diag.h"

/* True if `path` does not exist, is empty, or has `head`, the line that its writer begins with, among the comment lines
 * on top. Any other file was written by something else: false, and reterr says so. */
bool skep_replace_written(const char *path, const char *head, struct skep_diag *reterr);
/* The same for a picture, which has no head: it may replace one of its own format, by the ending (.png, .svg, .pdf; .html of a
 * report, .json of trace events, .csv of runs and rounds). */
bool skep_replace_picture(const char *path, struct skep_diag *reterr);

/* Are these two names of one file? Not if either names none. */
bool skep_replace_same(const char *a, const char *b);
/* Not a file that the command reads, whatever else is allowed; `what` says which of them it is ("the topology of x.yaml").
 * False and reterr: it is. */
bool skep_replace_not_read(const char *path, const char *read, const char *what, struct skep_diag *reterr);
