/* SPDX-License-Identifier: Apache-2.0
 *
 * checkpoint_folder.c - see checkpoint_folder.h. A file's name says which stage and version it is of, and its header
 * which job and run wrote it. States of another run are never removed.
 */
#include "models/checkpoint/checkpoint_folder.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files/outputs.h"
#include "base/grow.h"
#include "base/sum.h"

#define PATH_BYTES SKEP_CHECKPOINT_PATH_BYTES

static void join(const char *path, const char *name, char ret[PATH_BYTES])
{
	snprintf(ret, PATH_BYTES, "%.560s/%.200s", path, name);
}

struct kept { /* a file by the name of a checkpoint */
	uint32_t stage, version;
	char name[64];
};

static bool next_kept(DIR *entries, struct kept *ret)
{
	for (const struct dirent *entry; (entry = readdir(entries)) != NULL;) {
		int end = 0;
		if (sscanf(entry->d_name, "stage-%" SCNu32 "-version-%" SCNu32 ".kept%n", &ret->stage, &ret->version,
			    &end) != 2 ||
			end == 0 || entry->d_name[end] != 0 || (size_t)end >= sizeof ret->name)
			continue;
		memcpy(ret->name, entry->d_name, (size_t)end + 1);
		return true;
	}
	return false;
}

/* ---- one run writes ----------------------------------------------------------------------------------------------- */

/* Kept by this run, or by those that it goes on with, up to where it does. */
static bool is_own(const struct skep_checkpoint_folder *folder, const struct kept *kept,
	const struct skep_checkpoint_header *header)
{
	if (header->format != SKEP_CHECKPOINT_FORMAT || header->job != folder->job)
		return false;
	return header->run == folder->run || kept->version <= folder->from_version;
}

void skep_checkpoint_remove_old(const struct skep_checkpoint_folder *folder, uint32_t stage)
{
	struct kept kept, oldest = {0};
	char path[PATH_BYTES];
	uint32_t count;
	do {
		DIR *entries = opendir(folder->path);
		count = 0;
		while (entries != NULL && next_kept(entries, &kept)) {
			join(folder->path, kept.name, path);
			const struct skep_checkpoint_header header = skep_checkpoint_header_read(path);
			if (kept.stage != stage || !is_own(folder, &kept, &header))
				continue;
			if (count++ == 0 || kept.version < oldest.version)
				oldest = kept;
		}
		if (entries != NULL)
			closedir(entries);
		if (count > folder->keep)
			join(folder->path, oldest.name, path);
	} while (count > folder->keep && unlink(path) == 0);
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
		int end = 0;
		struct stat about;
		char whole[PATH_BYTES];
		if (sscanf(entry->d_name, "stage-%u-version-%u.kept%n", &stage, &version, &end) != 2 || end == 0)
			continue;
		int64_t process = skep_temporary_process(entry->d_name, (size_t)end);
		if (process == 0)
			continue;
		join(path, entry->d_name, whole);
		bool old = stat(whole, &about) == 0 && (int64_t)(skep_date_now() / 1000000000) - about.st_mtime > 60;
		if (old && kill((pid_t)process, 0) != 0)
			unlink(whole);
	}
	closedir(entries);
}

/* The folder of the run by when it began: "run-20261231-235959-000000001"; of files that do not say so, "run-unknown". */
static void name_run(const char *path, const struct skep_checkpoint_header *header, char ret[PATH_BYTES])
{
	char name[64] = "run-unknown", when[32];
	skep_date_text(header->run, "%Y%m%d-%H%M%S", when, sizeof when);
	if (header->format == SKEP_CHECKPOINT_FORMAT && when[0] != '\0')
		snprintf(name, sizeof name, "run-%s-%09" PRIu64, when, header->run % UINT64_C(1000000000));
	join(path, name, ret);
}

/* Another process may have moved it first. */
static bool move(
	const char *path, const struct kept *kept, const struct skep_checkpoint_header *header, bool *ret_moved)
{
	char from[PATH_BYTES], folder[PATH_BYTES], to[PATH_BYTES];
	join(path, kept->name, from);
	name_run(path, header, folder);
	join(folder, kept->name, to);
	if (mkdir(folder, 0777) != 0 && errno != EEXIST)
		return false;
	*ret_moved = rename(from, to) == 0;
	return *ret_moved || errno == ENOENT;
}

static bool move_others(const struct skep_checkpoint_folder *folder, uint32_t *ret_moved)
{
	struct kept kept;
	char path[PATH_BYTES];
	bool good = true, moved;
	DIR *entries = opendir(folder->path);
	if (entries == NULL)
		return false;
	while (good && next_kept(entries, &kept)) {
		join(folder->path, kept.name, path);
		struct skep_checkpoint_header header = skep_checkpoint_header_read(path);
		moved = false;
		if (header.format == 0 && access(path, F_OK) != 0 && errno == ENOENT)
			continue; /* moved by another process, before this one has read whose it is */
		if (!is_own(folder, &kept, &header))
			good = move(folder->path, &kept, &header, &moved);
		*ret_moved += moved;
	}
	int why = errno;
	closedir(entries);
	errno = why;
	return good;
}

bool skep_checkpoint_folder_usable(
	const struct skep_checkpoint_folder *folder, uint32_t *ret_moved, struct skep_diag *reterr)
{
	const char *what = "make the folder";
	*ret_moved = 0;
	bool good = mkdir(folder->path, 0777) == 0 || errno == EEXIST;
	if (good) {
		what = "write into";
		good = access(folder->path, W_OK | X_OK) == 0;
	}
	if (good) {
		what = "move what other runs have kept in";
		remove_remains(folder->path);
		good = move_others(folder, ret_moved);
	}
	if (!good)
		skep_fail(reterr, "checkpoint.to: cannot %s %s: %s", what, folder->path, strerror(errno));
	return good;
}

void skep_checkpoint_say_moved(const struct skep_checkpoint_folder *folder, uint32_t moved, FILE *out)
{
	if (moved > 0)
		fprintf(out,
			"skep: %s had %" PRIu32
			" state%s that another run has kept, now in %s/run-*: remove what is not needed\n",
			folder->path, moved, moved == 1 ? "" : "s", folder->path);
}

/* ---- what is there ------------------------------------------------------------------------------------------------ */

struct mine {
	uint64_t run;
	uint32_t version;
};

/* The run that began last before the others, of each the oldest version first. */
static int in_order(const void *a, const void *b)
{
	const struct mine *x = a, *y = b;
	if (x->run != y->run)
		return x->run < y->run ? 1 : -1;
	return (x->version > y->version) - (x->version < y->version);
}

/* The files of this job, one for each stage, of runs that began before `before`; NULL: no memory. */
static struct mine *collect(const char *path, uint64_t job, uint32_t stages, uint64_t before,
	struct skep_checkpoints *list, size_t *ret_count)
{
	struct mine *mine = malloc(sizeof *mine);
	size_t count = 0;
	struct kept kept;
	DIR *entries = opendir(path);
	while (mine != NULL && entries != NULL && next_kept(entries, &kept)) {
		char whole[PATH_BYTES];
		join(path, kept.name, whole);
		struct skep_checkpoint_header header = skep_checkpoint_header_read(whole);
		list->files++;
		bool misnamed = header.format == SKEP_CHECKPOINT_FORMAT &&
		                (header.stage != kept.stage || header.version != kept.version);
		if ((header.format == 0 || misnamed) && kept.version >= list->damaged_version) {
			strcpy(list->damaged, whole);
			list->damaged_version = kept.version;
		}
		list->older += header.format != 0 && header.format != SKEP_CHECKPOINT_FORMAT;
		list->foreign += header.format == SKEP_CHECKPOINT_FORMAT && header.job != job;
		bool own = header.format == SKEP_CHECKPOINT_FORMAT && !misnamed && header.job == job;
		list->beyond += own && kept.stage >= stages;
		if (!own || kept.stage >= stages || header.run >= before)
			continue;
		if (!skep_grow(&mine, count, sizeof *mine)) {
			free(mine);
			mine = NULL;
			break;
		}
		mine[count++] = (struct mine){header.run, kept.version};
	}
	if (entries != NULL)
		closedir(entries);
	*ret_count = count;
	return mine;
}

static bool find_before(const char *path, uint64_t job, uint32_t stages, uint64_t before, struct skep_checkpoints *ret)
{
	size_t count;
	*ret = (struct skep_checkpoints){0};
	struct mine *mine = collect(path, job, stages, before, ret, &count);
	ret->version = calloc(count + 1, sizeof *ret->version);
	if (mine == NULL || ret->version == NULL) {
		free(mine);
		free(ret->version);
		ret->version = NULL;
		return false;
	}
	qsort(mine, count, sizeof *mine, in_order);
	for (size_t i = 0, same = 0; i < count; i++) {
		bool first = i == 0 || in_order(&mine[i - 1], &mine[i]) != 0;
		same = first ? 1 : same + 1;
		if (same != stages || (ret->versions > 0 && mine[i].run != ret->run))
			continue;
		ret->run = mine[i].run;
		ret->version[ret->versions++] = mine[i].version;
	}
	free(mine);
	return true;
}

static bool is_whole(const char *path, uint32_t stages, uint32_t version, struct skep_checkpoints *list)
{
	const struct skep_checkpoint_folder folder = {.path = path};
	char whole[PATH_BYTES];
	for (uint32_t stage = 0; stage < stages; stage++) {
		skep_checkpoint_path(&folder, stage, version, whole);
		if (skep_checkpoint_is_whole(whole))
			continue;
		memcpy(list->damaged, whole, sizeof whole);
		list->damaged_version = version;
		return false;
	}
	return true;
}

bool skep_checkpoints_find(const char *path, uint64_t job, uint32_t stages, struct skep_checkpoints *ret)
{
	return find_before(path, job, stages, UINT64_MAX, ret);
}

bool skep_checkpoints_pass_over(const char *path, uint64_t job, uint32_t stages, struct skep_checkpoints *list)
{
	bool fine = true;
	while (fine && list->versions > 0 && !is_whole(path, stages, list->version[list->versions - 1], list)) {
		struct skep_checkpoints older;
		if (--list->versions > 0)
			continue;
		fine = find_before(path, job, stages, list->run, &older);
		memcpy(older.damaged, list->damaged, sizeof older.damaged);
		older.damaged_version = list->damaged_version;
		skep_checkpoints_finish(list);
		*list = older;
	}
	return fine;
}

void skep_checkpoints_finish(struct skep_checkpoints *list)
{
	free(list->version);
	list->version = NULL;
}

void skep_checkpoints_say_none(const struct skep_checkpoints *list, uint32_t stages, char *ret, size_t size)
{
	if (list->files == 0)
		snprintf(ret, size,
			"has no checkpoint of all %" PRIu32
			" stages: `skep run` of this scenario keeps them (`skep sim` with --write-checkpoints alone; "
			"what a run that began anew has found is in the folders run-*)",
			stages);
	else if (list->foreign > 0 && list->foreign + list->older == list->files)
		snprintf(ret, size,
			"has %" PRIu32
			" states of stages, all of runs with another seed or scenario: take the --seed and --set of that "
			"run (what other runs had kept is in the folders run-*)",
			list->foreign);
	else if (list->older == list->files)
		snprintf(ret, size,
			"has %" PRIu32
			" states of stages, all in another format than this skep's: which run they are of cannot be told; "
			"run again",
			list->older);
	else
		snprintf(ret, size,
			"has no checkpoint of all %" PRIu32 " stages: %" PRIu32 " states of some, %" PRIu32
			" of them of another seed or scenario",
			stages, list->files, list->foreign);
}

/* ---- what they are learnt from ---------------------------------------------------------------------------------------- */

bool skep_checkpoints_note_files(
	const char *folder, const struct skep_learnt_from *from, uint32_t count, struct skep_diag *reterr)
{
	struct skep_outputs outputs = {.diag = reterr};
	char path[PATH_BYTES];
	uint64_t sum;
	join(folder, "files", path);
	FILE *file = skep_outputs_begin(&outputs, path);
	for (uint32_t i = 0; file != NULL && i < count; i++)
		if (from[i].path[0] != '\0' && skep_sum_file(from[i].path, &sum))
			fprintf(file, "%016" PRIx64 " %s\n", sum, from[i].what);
	return skep_outputs_commit(&outputs);
}

const struct skep_learnt_from *skep_checkpoints_other_file(
	const char *folder, const struct skep_learnt_from *from, uint32_t count)
{
	const struct skep_learnt_from *other = NULL;
	char path[PATH_BYTES], what[16];
	uint64_t kept, sum;
	join(folder, "files", path);
	FILE *file = fopen(path, "re");
	while (file != NULL && other == NULL && fscanf(file, "%16" SCNx64 " %15s", &kept, what) == 2)
		for (uint32_t i = 0; i < count && other == NULL; i++)
			if (strcmp(what, from[i].what) == 0 && skep_sum_file(from[i].path, &sum) && sum != kept)
				other = &from[i];
	if (file != NULL)
		fclose(file);
	return other;
}
