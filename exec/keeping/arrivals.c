/* SPDX-License-Identifier: Apache-2.0
 *
 * arrivals.c - see arrivals.h.
 */
#include "exec/keeping/arrivals.h"

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/files/outputs.h"
#include "models/checkpoint/checkpoint_folder.h"

#define WRITE_OUT_BYTES (8u << 20) /* what the disk is told to begin with, so that the end has little to wait for */

struct skep_arrival {
	const struct skep_checkpoint_folder *folder;
	struct skep_state_word word;
	struct skep_diag diag; /* of: */
	struct skep_outputs outputs;
	FILE *file;
	uint64_t have;
};

static bool is_ours(const struct skep_checkpoint_folder *folder, const struct skep_state_word *word, const char *path)
{
	const struct skep_checkpoint_header header = skep_checkpoint_header_read(path);
	uint64_t run = word->version <= folder->from_version ? folder->from : folder->run;
	return header.format == SKEP_CHECKPOINT_FORMAT && header.stage == word->stage &&
	       header.version == word->version && header.job == folder->job && header.run == run;
}

bool skep_arrival_needless(const struct skep_checkpoint_folder *folder, const struct skep_state_word *word)
{
	char path[SKEP_CHECKPOINT_PATH_BYTES];
	struct stat about;
	skep_checkpoint_path(folder, word->stage, word->version, path);
	return is_ours(folder, word, path) && stat(path, &about) == 0 && (uint64_t)about.st_size == word->bytes;
}

struct skep_arrival *skep_arrival_begin(
	const struct skep_checkpoint_folder *folder, const struct skep_state_word *word, struct skep_diag *reterr)
{
	char path[SKEP_CHECKPOINT_PATH_BYTES];
	struct statvfs disk;
	struct skep_arrival *arrival = calloc(1, sizeof *arrival);
	if (arrival == NULL) {
		skep_fail(reterr, "no memory for a state");
		return NULL;
	}
	*arrival = (struct skep_arrival){.folder = folder, .word = *word, .outputs = {.diag = &arrival->diag}};
	skep_checkpoint_path(folder, word->stage, word->version, path);
	if (word->bytes < SKEP_CHECKPOINT_HEADER_BYTES)
		skep_fail(reterr, "it is no state");
	else if (statvfs(folder->path, &disk) == 0 && word->bytes / disk.f_frsize >= disk.f_bavail)
		skep_fail(reterr, "%s has no room for its %" PRIu64 " bytes", folder->path, word->bytes);
	else
		arrival->file = skep_outputs_begin(&arrival->outputs, path);
	if (arrival->file != NULL)
		return arrival;
	skep_fail(reterr, "%s", arrival->diag.message); /* unless it has been said */
	skep_arrival_abandon(arrival);
	return NULL;
}

bool skep_arrival_add(
	struct skep_arrival *arrival, const struct skep_piece *piece, bool *ret_whole, struct skep_diag *reterr)
{
	uint64_t before = arrival->have;
	assert(arrival->file != NULL && before <= arrival->word.bytes);
	if (piece->offset != before || piece->count > arrival->word.bytes - before)
		return skep_fail(reterr, "it sends other bytes than it has announced");
	if (fwrite(piece->bytes, 1, piece->count, arrival->file) != piece->count)
		return skep_fail(reterr, "%s cannot be written", arrival->folder->path);
	arrival->have += piece->count;
	if (before / WRITE_OUT_BYTES != arrival->have / WRITE_OUT_BYTES)
		sync_file_range(fileno(arrival->file), 0, 0, SYNC_FILE_RANGE_WRITE);
	*ret_whole = arrival->have == arrival->word.bytes;
	return true;
}

struct skep_state_word skep_arrival_word(const struct skep_arrival *arrival)
{
	return arrival->word;
}

bool skep_arrival_end(struct skep_arrival *arrival, struct skep_diag *reterr)
{
	assert(arrival->have == arrival->word.bytes);
	const struct skep_checkpoint_folder *folder = arrival->folder;
	fflush(arrival->file);
	const char *file = arrival->outputs.output[0].temporary;
	if (!is_ours(folder, &arrival->word, file))
		skep_fail(&arrival->diag, "it is not the state of this run that it says it is");
	else if (!skep_checkpoint_is_whole(file))
		skep_fail(&arrival->diag, "its sum is not that of its contents: it was damaged on its way, or before");
	bool fine = skep_outputs_commit(&arrival->outputs);
	if (fine && folder->keep > 0)
		skep_checkpoint_remove_old(folder, arrival->word.stage);
	if (!fine)
		skep_fail(reterr, "%s", arrival->diag.message);
	free(arrival);
	return fine;
}

void skep_arrival_abandon(struct skep_arrival *arrival)
{
	if (arrival == NULL)
		return;
	skep_outputs_abandon(&arrival->outputs);
	free(arrival);
}

int skep_departure_open(const struct skep_checkpoint_folder *folder, const struct skep_state_word *word,
	uint64_t *ret_bytes, struct skep_diag *reterr)
{
	char path[SKEP_CHECKPOINT_PATH_BYTES];
	struct stat about;
	skep_checkpoint_path(folder, word->stage, word->version, path);
	int fd = is_ours(folder, word, path) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd >= 0 && fstat(fd, &about) == 0 && about.st_size > 0) {
		*ret_bytes = (uint64_t)about.st_size;
		return fd;
	}
	if (fd >= 0)
		close(fd);
	skep_fail(reterr, "version %" PRIu32 " of stage %" PRIu32 " is not kept here", word->version, word->stage);
	return -1;
}
