/* SPDX-License-Identifier: Apache-2.0
 *
 * checkpoint.h - states of stages in files: what the executor's CHECKPOINT writes and RESTORE reads.
 *
 * One file for each stage and version, in a folder that every worker which may found the stage anew can read. A file is
 * written under a temporary name, synchronised and renamed, so what has its name is whole; of each stage the newest three
 * are left. All numbers are little endian: a header of 48 bytes (magic, format, stage, version, 0, bytes, checksum), then the
 * state as SAVE writes it in one chunk. A file of another format, stage, version or size, or whose checksum differs, is refused.
 */
#ifndef SKEP_MODELS_CHECKPOINT_H
#define SKEP_MODELS_CHECKPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SKEP_CHECKPOINT_HEADER_BYTES 48u

/* Where a device keeps states. Both return false with a reason that says what to do. */
struct skep_keeper {
	void *context;
	bool (*write)(void *context, uint32_t stage, uint32_t version, const void *state, uint64_t bytes, char *reterr,
		size_t size);
	bool (*read)(void *context, uint32_t stage, uint32_t version, void *ret_state, uint64_t bytes, char *reterr,
		size_t size);
};

struct skep_checkpoint_folder {
	const char *path;
	uint32_t every; /* versions from one checkpoint to the next, to remove old ones; 0: keep all */
};

/* In files; `folder` must outlive the keeper. The folder is made if its parent is there. */
struct skep_keeper skep_checkpoint_keeper(struct skep_checkpoint_folder *folder);

/* The newest version of which the folder has a file for each stage. */
bool skep_checkpoint_newest(const char *path, uint32_t stages, uint32_t *ret);

/* Can files be written there? If not, what to do. Makes the folder, and removes what writers that were killed have left. */
bool skep_checkpoint_folder_usable(const char *path, char *reterr, size_t size);

#endif
