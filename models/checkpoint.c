/* SPDX-License-Identifier: Apache-2.0
 *
 * checkpoint.c - see checkpoint.h.
 */
#include "models/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/hash.h"

#define PATH_BYTES 768
#define VERSIONS_KEPT 3u

static const char magic[8] = "skepkept";
static const uint32_t format = 1;

static void put(unsigned char *to, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		to[i] = (unsigned char)(value >> (8 * i));
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

static void make_header(uint32_t stage, uint32_t version, const void *state, uint64_t bytes,
	unsigned char ret[SKEP_CHECKPOINT_HEADER_BYTES])
{
	memset(ret, 0, SKEP_CHECKPOINT_HEADER_BYTES);
	memcpy(ret, magic, sizeof magic);
	put(ret + 8, format, 4);
	put(ret + 12, stage, 4);
	put(ret + 16, version, 4);
	put(ret + 24, bytes, 8);
	put(ret + 32, checksum(state, bytes), 8);
}

static bool little_endian(void)
{
	const uint16_t one = 1;
	unsigned char first;
	memcpy(&first, &one, 1);
	return first == 1;
}

static void name(const struct skep_checkpoint_folder *folder, uint32_t stage, uint32_t version, const char *suffix,
	char ret[PATH_BYTES])
{
	snprintf(ret, PATH_BYTES, "%.600s/stage-%u-version-%u.kept%s", folder->path, stage, version, suffix);
}

static bool wrong(char *reterr, size_t size, const char *path, const char *what)
{
	snprintf(reterr, size, "checkpoint %s: %s", path, what);
	return false;
}

static bool write_all(int file, const void *from, uint64_t bytes)
{
	const char *at = from;
	while (bytes > 0) {
		ssize_t wrote = write(file, at, bytes);
		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote <= 0)
			return false;
		at += wrote;
		bytes -= (uint64_t)wrote;
	}
	return true;
}

/* The rename is for good once the folder is synchronised too. */
static void sync_folder(const char *path)
{
	int folder = open(path, O_RDONLY | O_DIRECTORY);
	if (folder < 0)
		return;
	fsync(folder);
	close(folder);
}

static bool write_file(
	void *context, uint32_t stage, uint32_t version, const void *state, uint64_t bytes, char *reterr, size_t size)
{
	const struct skep_checkpoint_folder *folder = context;
	char path[PATH_BYTES], temporary[PATH_BYTES], suffix[32];
	unsigned char header[SKEP_CHECKPOINT_HEADER_BYTES];
	snprintf(suffix, sizeof suffix, ".%ld.new", (long)getpid());
	name(folder, stage, version, "", path);
	name(folder, stage, version, suffix, temporary);
	if (!little_endian())
		return wrong(reterr, size, path, "this machine is not little endian, as the file has to be");
	make_header(stage, version, state, bytes, header);
	mkdir(folder->path, 0777);
	int file = open(temporary, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	if (file < 0)
		return wrong(reterr, size, temporary, strerror(errno));
	bool good = write_all(file, header, sizeof header) && write_all(file, state, bytes) && fsync(file) == 0;
	good = close(file) == 0 && good && rename(temporary, path) == 0;
	if (!good) {
		int why = errno;
		unlink(temporary);
		return wrong(reterr, size, path, strerror(why));
	}
	sync_folder(folder->path);
	if (folder->every > 0 && version > VERSIONS_KEPT * folder->every) {
		name(folder, stage, version - VERSIONS_KEPT * folder->every, "", path);
		unlink(path);
	}
	return true;
}

static const char *read_whole(FILE *file, uint32_t stage, uint32_t version, void *state, uint64_t bytes)
{
	unsigned char found[SKEP_CHECKPOINT_HEADER_BYTES], expected[SKEP_CHECKPOINT_HEADER_BYTES];
	if (fread(found, 1, sizeof found, file) != sizeof found || memcmp(found, magic, sizeof magic) != 0)
		return "no checkpoint";
	make_header(stage, version, state, 0, expected);
	put(expected + 24, bytes, 8);
	if (memcmp(found, expected, 32) != 0)
		return "of another format, stage, version, model or optimizer";
	if (fread(state, 1, bytes, file) != bytes || fgetc(file) != EOF)
		return "its length is not what it says";
	put(expected + 32, checksum(state, bytes), 8);
	if (memcmp(found, expected, sizeof found) != 0)
		return "damaged: its checksum is not that of its contents; remove it and use an older one, or begin "
		       "anew";
	return NULL;
}

static bool read_file(
	void *context, uint32_t stage, uint32_t version, void *ret_state, uint64_t bytes, char *reterr, size_t size)
{
	const struct skep_checkpoint_folder *folder = context;
	char path[PATH_BYTES];
	name(folder, stage, version, "", path);
	FILE *file = fopen(path, "rb");
	if (file == NULL)
		return wrong(reterr, size, path,
			"cannot be read; checkpoint.to must be shared by all workers that may join");
	const char *why = read_whole(file, stage, version, ret_state, bytes);
	fclose(file);
	return why == NULL || wrong(reterr, size, path, why);
}

struct skep_keeper skep_checkpoint_keeper(struct skep_checkpoint_folder *folder)
{
	return (struct skep_keeper){folder, write_file, read_file};
}

static bool has_all(const struct skep_checkpoint_folder *folder, uint32_t stages, uint32_t version)
{
	char path[PATH_BYTES];
	bool all = true;
	for (uint32_t stage = 0; all && stage < stages; stage++) {
		name(folder, stage, version, "", path);
		all = access(path, R_OK) == 0;
	}
	return all;
}

bool skep_checkpoint_newest(const char *path, uint32_t stages, uint32_t *ret)
{
	const struct skep_checkpoint_folder folder = {.path = path};
	bool found = false;
	DIR *entries = opendir(path);
	if (entries == NULL)
		return false;
	for (const struct dirent *entry; (entry = readdir(entries)) != NULL;) {
		unsigned version;
		int end = 0;
		if (sscanf(entry->d_name, "stage-0-version-%u.kept%n", &version, &end) != 1 || end == 0 ||
			entry->d_name[end] != 0 || (found && version <= *ret) || !has_all(&folder, stages, version))
			continue;
		*ret = version;
		found = true;
	}
	closedir(entries);
	return found;
}

/* What a process that was killed in the middle has left: no checkpoint, but room on the disk. One of another machine may still be
 * at it, so only what has not been touched for a minute, and not what a process here is writing. */
static void remove_remains(const char *path)
{
	DIR *entries = opendir(path);
	if (entries == NULL)
		return;
	for (const struct dirent *entry; (entry = readdir(entries)) != NULL;) {
		unsigned stage, version;
		long pid;
		int end = 0;
		struct stat about;
		char whole[PATH_BYTES];
		if (sscanf(entry->d_name, "stage-%u-version-%u.kept.%ld.new%n", &stage, &version, &pid, &end) != 3 ||
			end == 0 || entry->d_name[end] != 0)
			continue;
		snprintf(whole, sizeof whole, "%.400s/%.300s", path, entry->d_name);
		bool old = stat(whole, &about) == 0 && time(NULL) - about.st_mtime > 60;
		if (old && kill((pid_t)pid, 0) != 0)
			unlink(whole);
	}
	closedir(entries);
}

bool skep_checkpoint_folder_usable(const char *path, char *reterr, size_t size)
{
	if (mkdir(path, 0777) != 0 && errno != EEXIST) {
		snprintf(reterr, size, "checkpoint.to: cannot make the folder %s: %s", path, strerror(errno));
		return false;
	}
	if (access(path, W_OK | X_OK) == 0) {
		remove_remains(path);
		return true;
	}
	snprintf(reterr, size, "checkpoint.to: cannot write into %s: %s", path, strerror(errno));
	return false;
}
