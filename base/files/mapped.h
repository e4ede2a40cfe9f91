/* SPDX-License-Identifier: Apache-2.0
 *
 * mapped.h - a large file, read without copying it: regular files only, so that a folder, a device or a pipe named by mistake
 * is an error and never a wait. The pages are shared with every other process that reads the file. Who shortens a file
 * that is in use ends its readers (SIGBUS): files of weights and tokens are replaced by renaming, never cut.
 */
#pragma once

#include "base/reader.h"

struct skep_mapped {
	const unsigned char *byte; /* [size]; NULL when size is 0 */
	uint64_t size;
	uint64_t device, inode; /* equal numbers: the same file under two names */
};

bool skep_mapped_open(const char *path, struct skep_mapped *ret, struct skep_diag *reterr);
void skep_mapped_close(struct skep_mapped *mapped); /* a cleared one is fine */
