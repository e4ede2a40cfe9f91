/* SPDX-License-Identifier: Apache-2.0
 *
 * checkpoint.c - see checkpoint.h.
 */
#include "models/checkpoint/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files/outputs.h"
#include "base/sum.h"
#include "models/checkpoint/checkpoint_folder.h"

#define PATH_BYTES SKEP_CHECKPOINT_PATH_BYTES

#define BLOCK_BYTES (1u << 20) /* of a state, at whose ends its sum is taken further */

enum {
	AT_FORMAT = 8,
	AT_STAGE = 12,
	AT_VERSION = 16,
	AT_BYTES = 24,
	AT_JOB = 32,
	AT_RUN = 40,
	AT_SUM = 48,
	AT_HEAD_SUM = 56
};

static const char magic[8] = "skepkept";

static void put(unsigned char *to, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		to[i] = (unsigned char)(value >> (8 * i));
}

static uint64_t get(const unsigned char *from, unsigned bytes)
{
	uint64_t value = 0;
	for (unsigned i = 0; i < bytes; i++)
		value |= (uint64_t)from[i] << (8 * i);
	return value;
}

static uint64_t sum_of(const unsigned char *state, uint64_t bytes)
{
	uint64_t sum = 0;
	for (uint64_t at = 0; at < bytes; at += BLOCK_BYTES)
		sum = skep_sum(sum, state + at, bytes - at < BLOCK_BYTES ? (size_t)(bytes - at) : BLOCK_BYTES);
	return sum;
}

/* All but the sums. */
static void make_header(const struct skep_checkpoint_folder *folder, uint32_t stage, uint32_t version, uint64_t bytes,
	unsigned char ret[SKEP_CHECKPOINT_HEADER_BYTES])
{
	memset(ret, 0, SKEP_CHECKPOINT_HEADER_BYTES);
	memcpy(ret, magic, sizeof magic);
	put(ret + AT_FORMAT, SKEP_CHECKPOINT_FORMAT, 4);
	put(ret + AT_STAGE, stage, 4);
	put(ret + AT_VERSION, version, 4);
	put(ret + AT_BYTES, bytes, 8);
	put(ret + AT_JOB, folder->job, 8);
	put(ret + AT_RUN, version <= folder->from_version ? folder->from : folder->run, 8);
}

/* By its own sum, also if what has changed is the number of the format. */
static bool is_whole_header(const unsigned char *raw)
{
	unsigned char ours[SKEP_CHECKPOINT_HEADER_BYTES];
	memcpy(ours, raw, sizeof ours);
	put(ours + AT_FORMAT, SKEP_CHECKPOINT_FORMAT, 4);
	return get(raw + AT_HEAD_SUM, 8) == skep_sum(0, ours, AT_HEAD_SUM);
}

/* Of another format, which this skep cannot check, or of this one and not damaged. */
static bool is_header(const unsigned char *raw)
{
	bool ours = get(raw + AT_FORMAT, 4) == SKEP_CHECKPOINT_FORMAT;
	return memcmp(raw, magic, sizeof magic) == 0 && ours == is_whole_header(raw);
}

static struct skep_checkpoint_header read_header(FILE *file, uint64_t *ret_bytes, uint64_t *ret_sum)
{
	struct skep_checkpoint_header ret = {0};
	unsigned char raw[SKEP_CHECKPOINT_HEADER_BYTES];
	if (file == NULL || fread(raw, 1, sizeof raw, file) != sizeof raw || !is_header(raw))
		return ret;
	ret = (struct skep_checkpoint_header){.format = (uint32_t)get(raw + AT_FORMAT, 4),
		.stage = (uint32_t)get(raw + AT_STAGE, 4),
		.version = (uint32_t)get(raw + AT_VERSION, 4),
		.job = get(raw + AT_JOB, 8),
		.run = get(raw + AT_RUN, 8)};
	*ret_bytes = get(raw + AT_BYTES, 8);
	*ret_sum = get(raw + AT_SUM, 8);
	return ret;
}

struct skep_checkpoint_header skep_checkpoint_header_read(const char *path)
{
	uint64_t bytes, sum;
	FILE *file = fopen(path, "rb");
	struct skep_checkpoint_header ret = read_header(file, &bytes, &sum);
	if (file != NULL)
		fclose(file);
	return ret;
}

bool skep_checkpoint_is_whole(const char *path)
{
	uint64_t bytes = 0, sum = 0, had = 0, found = 0;
	size_t count = 0;
	unsigned char *block = malloc(BLOCK_BYTES);
	FILE *file = block != NULL ? fopen(path, "rb") : NULL;
	bool whole = read_header(file, &bytes, &sum).format == SKEP_CHECKPOINT_FORMAT;
	while (whole && (count = fread(block, 1, BLOCK_BYTES, file)) > 0) {
		found = skep_sum(found, block, count);
		had += count;
	}
	if (file != NULL)
		fclose(file);
	free(block);
	return whole && had == bytes && found == sum;
}

static bool little_endian(void)
{
	const uint16_t one = 1;
	unsigned char first;
	memcpy(&first, &one, 1);
	return first == 1;
}

void skep_checkpoint_path(
	const struct skep_checkpoint_folder *folder, uint32_t stage, uint32_t version, char ret[PATH_BYTES])
{
	snprintf(ret, PATH_BYTES, "%.600s/stage-%u-version-%u.kept", folder->path, stage, version);
}

static bool wrong(struct skep_diag *reterr, const char *path, const char *what)
{
	return skep_fail(reterr, "checkpoint %s: %s", path, what);
}

static bool write_file(void *context, uint32_t stage, uint32_t version, bool presumed, const void *state,
	uint64_t bytes, struct skep_diag *reterr)
{
	(void)presumed; /* it is a state as any other */
	const struct skep_checkpoint_folder *folder = context;
	char path[PATH_BYTES];
	struct skep_diag diag = {0};
	struct skep_outputs outputs = {.diag = &diag};
	unsigned char header[SKEP_CHECKPOINT_HEADER_BYTES];
	skep_checkpoint_path(folder, stage, version, path);
	if (!little_endian())
		return wrong(reterr, path, "this machine is not little endian, as the file has to be");
	make_header(folder, stage, version, bytes, header);
	put(header + AT_SUM, sum_of(state, bytes), 8);
	put(header + AT_HEAD_SUM, skep_sum(0, header, AT_HEAD_SUM), 8);
	mkdir(folder->path, 0777);
	FILE *file = skep_outputs_begin(&outputs, path);
	if (file != NULL && fwrite(header, 1, sizeof header, file) == sizeof header)
		fwrite(state, 1, bytes, file);
	if (!skep_outputs_commit(&outputs))
		return wrong(reterr, path, diag.message);
	if (folder->keep > 0)
		skep_checkpoint_remove_old(folder, stage);
	return true;
}

/* Before anything else is compared: whose it is. */
static const char *not_ours(const unsigned char *found, const unsigned char *expected)
{
	if (get(found + AT_FORMAT, 4) != SKEP_CHECKPOINT_FORMAT)
		return "of another format than this skep's, kept by an older or newer one: which run it belongs to "
		       "cannot be told";
	if (memcmp(found + AT_JOB, expected + AT_JOB, 8) != 0)
		return "kept by a run of another scenario or seed";
	if (memcmp(found + AT_RUN, expected + AT_RUN, 8) != 0)
		return "kept by another run of this scenario: give each run that is under way a checkpoint.to of its "
		       "own";
	return NULL;
}

static const char *read_whole(FILE *file, const unsigned char *expected, void *state, uint64_t bytes)
{
	unsigned char found[SKEP_CHECKPOINT_HEADER_BYTES];
	if (fread(found, 1, sizeof found, file) != sizeof found || !is_header(found))
		return "no checkpoint, or damaged: its header's sum is not that of its contents";
	const char *why = not_ours(found, expected);
	if (why != NULL)
		return why;
	if (memcmp(found, expected, AT_SUM) != 0)
		return "of another stage, version, model or optimizer";
	if (fread(state, 1, bytes, file) != bytes || fgetc(file) != EOF)
		return "damaged: its length is not what it says";
	if (get(found + AT_SUM, 8) != sum_of(state, bytes))
		return "damaged: its sum is not that of its contents; --resume goes on from the version before it";
	return NULL;
}

/* An older version in the place of a damaged one would undo rounds whose gradients the core has told to be counted: the run ends
 * instead, and the one that is resumed begins with a version of which all stages are whole. */
static bool read_file(
	void *context, uint32_t stage, uint32_t version, void *ret_state, uint64_t bytes, struct skep_diag *reterr)
{
	const struct skep_checkpoint_folder *folder = context;
	unsigned char expected[SKEP_CHECKPOINT_HEADER_BYTES];
	char path[PATH_BYTES];
	skep_checkpoint_path(folder, stage, version, path);
	FILE *file = fopen(path, "rb");
	if (file == NULL)
		return wrong(reterr, path, "cannot be read; checkpoint.to must be shared by all workers that may join");
	make_header(folder, stage, version, bytes, expected);
	const char *why = read_whole(file, expected, ret_state, bytes);
	fclose(file);
	return why == NULL || wrong(reterr, path, why);
}

struct skep_keeper skep_checkpoint_keeper(struct skep_checkpoint_folder *folder)
{
	return (struct skep_keeper){folder, write_file, read_file};
}
