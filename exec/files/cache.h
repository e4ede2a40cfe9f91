/* SPDX-License-Identifier: Apache-2.0
 *
 * cache.h - the files that a machine has received of scenarios that are served elsewhere, and the trees that are made of them.
 *
 *     blobs/DIGEST        a whole file, checked when it came and again when it is used
 *     blobs/DIGEST.part   one that is on its way: what has come of it, from its beginning
 *     runs/RUN-DIGEST/    the files of a manifest at the paths that they have on their own machine
 *     runs/.new-*         such a folder before it has its name
 *
 * Several processes share a cache: a file that is on its way is locked by the one that receives it (flock, which ends with the
 * process), a folder by the one that makes it, and whatever becomes visible does so whole, by being renamed.
 */
#pragma once

#include "base/diag.h"
#include "exec/files/manifest.h"

#define SKEP_CACHE_PATH 512u /* bytes of a path in a tree with its 0: what readers of scenarios have room for */

struct skep_cache {
	char *folder; /* absolute, without symbolic links */
};

/* Creates the folder where it is not there; NULL: $XDG_CACHE_HOME/skep, or ~/.cache/skep. */
bool skep_cache_open(const char *folder, struct skep_cache *ret, struct skep_diag *reterr);
void skep_cache_close(struct skep_cache *cache);

/* Is the file there? Reads it whole; one that is not what its name says is removed, and is not there. */
bool skep_cache_has(const struct skep_cache *cache, const uint8_t digest[SKEP_DIGEST_BYTES], uint64_t bytes);

enum skep_cache_begun {
	SKEP_CACHE_FAILED,
	SKEP_CACHE_BEGUN, /* to be received from ret->offset on */
	SKEP_CACHE_WHOLE, /* it is there already */
	SKEP_CACHE_BUSY   /* another process receives it: ask again later, it may also end before the file is whole */
};

struct skep_cache_part { /* a file that is being received */
	const struct skep_cache *cache;
	int fd;
	uint8_t digest[SKEP_DIGEST_BYTES];
	uint64_t bytes, offset; /* the whole file's, and how many of them are there */
	struct skep_digester *digester;
};

/* Takes up what an earlier process has received of it. After BEGUN the part ends with skep_cache_commit() or skep_cache_leave();
 * after the others it is nothing. FAILED: there is no room for the rest of the file, or the cache cannot be written to. */
enum skep_cache_begun skep_cache_begin(const struct skep_cache *cache, const uint8_t digest[SKEP_DIGEST_BYTES],
	uint64_t bytes, struct skep_cache_part *ret, struct skep_diag *reterr);
/* The next `count` bytes of the file; `offset` is part->offset, or the sender is wrong. After an error what was there before
 * stays. */
bool skep_cache_append(
	struct skep_cache_part *part, uint64_t offset, const void *bytes, size_t count, struct skep_diag *reterr);
/* The file is whole: checks it and puts it on the disk under its name. A wrong one is removed. */
bool skep_cache_commit(struct skep_cache_part *part, struct skep_diag *reterr);
/* Ends here; what has come stays for the next time. */
void skep_cache_leave(struct skep_cache_part *part);

/* The tree of a manifest, all of whose files skep_cache_has(): ret_root is skep_scenario_options.root, the manifest's folder is
 * .folder, and ret_scenario the path to read. `run` is a name of at most 64 letters, digits, `-`, `_` and `.`. A tree that
 * another process has made is taken. */
bool skep_cache_tree(const struct skep_cache *cache, const char *run, const struct skep_manifest *manifest,
	char ret_root[SKEP_CACHE_PATH], char ret_scenario[SKEP_CACHE_PATH], struct skep_diag *reterr);
