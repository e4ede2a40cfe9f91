/* SPDX-License-Identifier: Apache-2.0
 *
 * cache_tree.c - the files of a manifest at the paths that they have on their own machine, under a folder of this one. Keeps
 * true: nothing is created outside that folder, whatever the manifest says, since it is checked first and the folder is new;
 * the folder has its name only when all is in it.
 *
 * A file is a hard link to the one in blobs/, or a symbolic link where there are none. A content that stands at several paths
 * is copied for all but the first, so that files which are two on their own machine are two here: readers tell that by the
 * inode.
 *
 * A folder that has no name yet is locked (flock, which ends with the process) by the one that makes it. One that is not is
 * left by a process that was killed, and the next process takes it away.
 */
#include "exec/files/cache.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exec/files/blobs.h"

#define RUN_MAX 64u
#define TREE_DIGITS 16 /* of the manifest's digest: equal names mean equal trees */
#define COPY_BYTES (1u << 20)
#define TRIES 8
#define UNNAMED ".new-"

static bool run_is_name(const char *run)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	size_t length = strnlen(run, RUN_MAX + 1);
	return length > 0 && length <= RUN_MAX && run[0] != '.' && strspn(run, allowed) == length;
}

static bool name_tree(const struct skep_cache *cache, const char *run, const struct skep_manifest *manifest,
	char ret_root[SKEP_CACHE_PATH], struct skep_diag *reterr)
{
	uint8_t *bytes, digest[SKEP_DIGEST_BYTES];
	size_t size;
	char text[SKEP_DIGEST_TEXT];
	bool ok = skep_manifest_encode(manifest, &bytes, &size) && skep_digest_of(bytes, size, digest);
	assert(run_is_name(run));
	free(bytes);
	if (!ok)
		return skep_fail(reterr, "not enough memory for the list of a scenario's files");
	skep_digest_text(digest, text);
	int length = snprintf(ret_root, SKEP_CACHE_PATH, "%s/runs/%s-%.*s", cache->folder, run, TREE_DIGITS, text);
	return (length > 0 && length < (int)SKEP_CACHE_PATH) ||
	       skep_fail(reterr, "the path of the cache is too long: %.200s", cache->folder);
}

/* Where the entry is in the tree; readers of scenarios have no room for longer paths. */
static bool place(
	const char *root, const struct skep_manifest_entry *e, char ret[SKEP_BLOB_PATH], struct skep_diag *reterr)
{
	int length = snprintf(ret, SKEP_BLOB_PATH, "%s%s", root, e->path);
	assert(e->path[0] == '/');
	if (length > 0 && length < (int)SKEP_CACHE_PATH)
		return true;
	skep_diag_set(reterr, e->path, 0, 0, NULL,
		"its path is too long below %.200s: name a cache with a shorter path with --cache", root);
	return false;
}

/* ---- one file ----------------------------------------------------------------------------------------------------- */

static bool copy_all(int from, int to)
{
	char *buffer = malloc(COPY_BYTES);
	ssize_t got = buffer != NULL ? 1 : -1;
	while (got > 0 && (got = read(from, buffer, COPY_BYTES)) > 0)
		for (ssize_t at = 0, wrote = 0; at < got; at += wrote) {
			wrote = write(to, buffer + at, (size_t)(got - at));
			if (wrote < 0 && errno != EINTR) {
				free(buffer);
				return false;
			}
			wrote = wrote < 0 ? 0 : wrote;
		}
	free(buffer);
	return got == 0;
}

static bool copy(const char *blob, const char *path)
{
	int from = open(blob, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	int to = from >= 0 ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0400) : -1;
	bool ok = to >= 0 && copy_all(from, to);
	int error = errno;
	if (from >= 0)
		close(from);
	if (to >= 0 && close(to) != 0 && ok) {
		error = errno;
		ok = false;
	}
	errno = error;
	return ok;
}

static bool create_empty(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0400);
	return fd >= 0 && close(fd) == 0;
}

static bool stood_before(const struct skep_manifest *m, uint32_t i)
{
	bool before = false;
	assert(i < m->entries && m->entry[i].kind == SKEP_MANIFEST_FILE);
	for (uint32_t k = 0; k < i && !before; k++)
		before = m->entry[k].kind == SKEP_MANIFEST_FILE && m->entry[k].bytes == m->entry[i].bytes &&
		         memcmp(m->entry[k].digest, m->entry[i].digest, SKEP_DIGEST_BYTES) == 0;
	return before;
}

static bool create(const struct skep_cache *cache, const struct skep_manifest *m, uint32_t i, const char *path,
	struct skep_diag *reterr)
{
	char blob[SKEP_BLOB_PATH];
	bool ok;
	assert(i < m->entries && m->entry[i].kind < SKEP_MANIFEST_KINDS);
	if (!skep_blob_path(cache, m->entry[i].digest, "", blob, reterr))
		return false;
	if (m->entry[i].kind == SKEP_MANIFEST_FOLDER)
		ok = mkdir(path, 0700) == 0 || errno == EEXIST;
	else if (m->entry[i].kind == SKEP_MANIFEST_NAMED)
		ok = create_empty(path);
	else if (stood_before(m, i))
		ok = copy(blob, path);
	else /* not ENOENT: a file that is not there is an error, and a link to it would hide that */
		ok = link(blob, path) == 0 || (errno != ENOENT && errno != ENOSPC && symlink(blob, path) == 0);
	return ok || skep_blob_fail(cache->folder, path, "cannot be created", reterr);
}

/* ---- the whole tree ----------------------------------------------------------------------------------------------- */

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	remove(path); /* what cannot be removed stays, and is in no one's way */
	return 0;
}

static void remove_tree(const char *root)
{
	nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* What another process has opened may have been taken away meanwhile. */
static bool is_there(int fd, const char *path)
{
	struct stat mine, there;
	return fstat(fd, &mine) == 0 && lstat(path, &there) == 0 && mine.st_dev == there.st_dev &&
	       mine.st_ino == there.st_ino;
}

/* A folder without a name, locked where the file system has locks: to be closed. -1: none can be made. */
static int make_folder(const struct skep_cache *cache, char made[SKEP_BLOB_PATH])
{
	for (int i = 0; i < TRIES; i++) {
		int length = snprintf(made, SKEP_BLOB_PATH, "%s/runs/" UNNAMED "XXXXXX", cache->folder);
		if (length < 0 || length >= (int)SKEP_BLOB_PATH || mkdtemp(made) == NULL)
			return -1;
		int fd = open(made, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		if (fd >= 0 && (flock(fd, LOCK_EX) != 0 || is_there(fd, made)))
			return fd;
		if (fd >= 0) /* who looked for what was left has found it before it was locked */
			close(fd);
	}
	return -1;
}

static void take_away_left(const struct skep_cache *cache)
{
	char path[SKEP_BLOB_PATH];
	int length = snprintf(path, sizeof path, "%s/runs", cache->folder);
	DIR *runs = length > 0 && length < (int)sizeof path ? opendir(path) : NULL;
	struct dirent *entry;
	while (runs != NULL && (entry = readdir(runs)) != NULL) {
		length = snprintf(path, sizeof path, "%s/runs/%s", cache->folder, entry->d_name);
		if (strncmp(entry->d_name, UNNAMED, strlen(UNNAMED)) != 0 || length >= (int)sizeof path)
			continue;
		int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && is_there(fd, path))
			remove_tree(path);
		if (fd >= 0)
			close(fd);
	}
	if (runs != NULL)
		closedir(runs);
}

/* Is it the file in blobs/, or a copy? A tree may be older than that file, which was damaged once and fetched again. */
static bool is_blob(const struct skep_cache *cache, const struct skep_manifest *m, uint32_t i, const char *path,
	const struct stat *st)
{
	char blob[SKEP_BLOB_PATH];
	struct stat there;
	struct skep_diag unused = {0};
	if (stood_before(m, i))
		return skep_blob_is(path, m->entry[i].bytes, m->entry[i].digest);
	return skep_blob_path(cache, m->entry[i].digest, "", blob, &unused) && stat(blob, &there) == 0 &&
	       there.st_dev == st->st_dev && there.st_ino == st->st_ino;
}

/* Is all of it there, as it was made? */
static bool is_complete(const struct skep_cache *cache, const char *root, const struct skep_manifest *m)
{
	char path[SKEP_BLOB_PATH];
	struct stat st;
	struct skep_diag unused = {0};
	bool complete = true;
	assert(m->entries > 0);
	for (uint32_t i = 0; complete && i < m->entries; i++) {
		const struct skep_manifest_entry *e = &m->entry[i];
		complete = place(root, e, path, &unused) && stat(path, &st) == 0;
		if (complete && e->kind == SKEP_MANIFEST_FILE)
			complete = is_blob(cache, m, i, path, &st);
		else if (complete)
			complete = e->kind == SKEP_MANIFEST_FOLDER ? S_ISDIR(st.st_mode) : S_ISREG(st.st_mode);
	}
	return complete;
}

static bool fill(
	const struct skep_cache *cache, const char *root, const struct skep_manifest *m, struct skep_diag *reterr)
{
	char path[SKEP_BLOB_PATH];
	for (uint32_t i = 0; i < m->entries; i++) {
		int length = snprintf(path, sizeof path, "%s%s", root, m->entry[i].path);
		if (length < 0 || (size_t)length >= sizeof path)
			return skep_fail(reterr, "the path of the cache is too long: %.200s", cache->folder);
		if (!skep_blob_folders(cache->folder, path, strlen(root) + 1, reterr) ||
			!create(cache, m, i, path, reterr))
			return false;
	}
	return true;
}

/* The new tree takes its name. Another process may have been faster; what has the name and is not whole is taken away, at once
 * where the file system can exchange two names. */
static bool publish(const struct skep_cache *cache, const char *made, const char *root, const struct skep_manifest *m)
{
	if (rename(made, root) == 0 || is_complete(cache, root, m))
		return true;
	if (renameat2(AT_FDCWD, made, AT_FDCWD, root, RENAME_EXCHANGE) == 0)
		return true;
	remove_tree(root);
	return rename(made, root) == 0 || is_complete(cache, root, m);
}

static bool make_tree(
	const struct skep_cache *cache, const char *root, const struct skep_manifest *m, struct skep_diag *reterr)
{
	char made[SKEP_BLOB_PATH];
	int fd = make_folder(cache, made);
	if (fd < 0)
		return skep_blob_fail(cache->folder, cache->folder, "cannot be written to", reterr);
	bool ok = fill(cache, made, m, reterr);
	if (ok && !publish(cache, made, root, m))
		ok = skep_blob_fail(cache->folder, root, "cannot be created", reterr);
	remove_tree(made); /* if it is still there, or what it was exchanged for */
	close(fd);
	return ok;
}

bool skep_cache_tree(const struct skep_cache *cache, const char *run, const struct skep_manifest *manifest,
	char ret_root[SKEP_CACHE_PATH], char ret_scenario[SKEP_CACHE_PATH], struct skep_diag *reterr)
{
	char path[SKEP_BLOB_PATH];
	if (!run_is_name(run))
		return skep_fail(reterr,
			"a run was announced under a name that cannot be a folder's: it is not the skep that was asked");
	if (!skep_manifest_check(manifest, reterr) || !name_tree(cache, run, manifest, ret_root, reterr))
		return false;
	for (uint32_t i = 0; i < manifest->entries; i++)
		if (!place(ret_root, &manifest->entry[i], path, reterr))
			return false;
	take_away_left(cache);
	if (!is_complete(cache, ret_root, manifest) && !make_tree(cache, ret_root, manifest, reterr))
		return false;
	snprintf(ret_scenario, SKEP_CACHE_PATH, "%s%s", ret_root, manifest->entry[manifest->scenario].path);
	return true;
}
