/* SPDX-License-Identifier: Apache-2.0
 *
 * checkpoint.c - see checkpoint.h.
 */
#include "models/checkpoint/checkpoint.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files/outputs.h"
#include "core/hash.h"
#include "models/checkpoint/checkpoint_folder.h"

#define PATH_BYTES SKEP_CHECKPOINT_PATH_BYTES

enum { AT_FORMAT = 8, AT_STAGE = 12, AT_VERSION = 16, AT_BYTES = 24, AT_JOB = 32, AT_RUN = 40, AT_CHECKSUM = 48 };

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

/* Over 64-bit words, the last one filled with zeros. */
static uint64_t checksum(const unsigned char *state, uint64_t bytes)
{
	uint64_t hash = SKEP_HASH_EMPTY;
	for (uint64_t at = 0; at < bytes; at += 8) {
		uint64_t word = 0;
		for (unsigned i = 0; i < 8 && at + i < bytes; i++)
			word |= (uint64_t)state[at + i] << (8 * i);
		hash = skep_hash_word(hash, word);
		hash ^= hash >> 29;
	}
	return hash;
}

/* All but the checksum. */
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

struct skep_checkpoint_header skep_checkpoint_header_read(const char *path)
{
	struct skep_checkpoint_header ret = {0};
	unsigned char raw[SKEP_CHECKPOINT_HEADER_BYTES];
	FILE *file = fopen(path, "rb");
	if (file != NULL && fread(raw, 1, sizeof raw, file) == sizeof raw && memcmp(raw, magic, sizeof magic) == 0)
		ret = (struct skep_checkpoint_header){.format = (uint32_t)get(raw + AT_FORMAT, 4),
			.stage = (uint32_t)get(raw + AT_STAGE, 4),
			.version = (uint32_t)get(raw + AT_VERSION, 4),
			.job = get(raw + AT_JOB, 8),
			.run = get(raw + AT_RUN, 8)};
	if (file != NULL)
		fclose(file);
	return ret;
}

static bool little_endian(void)
{
	const uint16_t one = 1;
	unsigned char first;
	memcpy(&first, &one, 1);
	return first == 1;
}

static void name(const struct skep_checkpoint_folder *folder, uint32_t stage, uint32_t version, char ret[PATH_BYTES])
{
	snprintf(ret, PATH_BYTES, "%.600s/stage-%u-version-%u.kept", folder->path, stage, version);
}

static bool wrong(struct skep_diag *reterr, const char *path, const char *what)
{
	return skep_fail(reterr, "checkpoint %s: %s", path, what);
}

static bool write_file(
	void *context, uint32_t stage, uint32_t version, const void *state, uint64_t bytes, struct skep_diag *reterr)
{
	const struct skep_checkpoint_folder *folder = context;
	char path[PATH_BYTES];
	struct skep_diag diag = {0};
	struct skep_outputs outputs = {.diag = &diag};
	unsigned char header[SKEP_CHECKPOINT_HEADER_BYTES];
	name(folder, stage, version, path);
	if (!little_endian())
		return wrong(reterr, path, "this machine is not little endian, as the file has to be");
	make_header(folder, stage, version, bytes, header);
	put(header + AT_CHECKSUM, checksum(state, bytes), 8);
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
	if (memcmp(found, magic, sizeof magic) != 0)
		return "no checkpoint";
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
	if (fread(found, 1, sizeof found, file) != sizeof found)
		return "no checkpoint";
	const char *why = not_ours(found, expected);
	if (why != NULL)
		return why;
	if (memcmp(found, expected, AT_CHECKSUM) != 0)
		return "of another stage, version, model or optimizer";
	if (fread(state, 1, bytes, file) != bytes || fgetc(file) != EOF)
		return "its length is not what it says";
	if (get(found + AT_CHECKSUM, 8) != checksum(state, bytes))
		return "damaged: its checksum is not that of its contents; remove it and use an older one, or begin "
		       "anew";
	return NULL;
}

static bool read_file(
	void *context, uint32_t stage, uint32_t version, void *ret_state, uint64_t bytes, struct skep_diag *reterr)
{
	const struct skep_checkpoint_folder *folder = context;
	unsigned char expected[SKEP_CHECKPOINT_HEADER_BYTES];
	char path[PATH_BYTES];
	name(folder, stage, version, path);
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
