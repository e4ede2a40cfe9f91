/* SPDX-License-Identifier: Apache-2.0
 *
 * blobs.h - what the files of the cache have in common: names, folders, and what is said when the disk is full.
 */
#pragma once

#include "exec/files/cache.h"

#define SKEP_BLOB_PATH 4096u

/* "FOLDER/blobs/DIGEST" with the ending; false: too long, and reterr says so. */
bool skep_blob_path(const struct skep_cache *cache, const uint8_t digest[SKEP_DIGEST_BYTES], const char *ending,
	char ret[SKEP_BLOB_PATH], struct skep_diag *reterr);

/* Is that what the regular file `path`, not a link, has in it? */
bool skep_blob_is(const char *path, uint64_t bytes, const uint8_t digest[SKEP_DIGEST_BYTES]);

/* `what` ("cannot be written") failed for errno: that the disk of the cache, `folder`, is full has a line of its own, which says
 * what to do. Returns false. */
bool skep_blob_fail(const char *folder, const char *path, const char *what, struct skep_diag *reterr);

/* Creates the folder of the file `path`, and those above it; the first `from` bytes of the path are there. */
bool skep_blob_folders(const char *folder, char *path, size_t from, struct skep_diag *reterr);
