/* SPDX-License-Identifier: Apache-2.0
 *
 * cache.c - see cache.h: whole files and those on their way. Keeps true: under a name of 64 digits stands a whole file with
 * that digest, however its receivers ended; only who holds the lock of a .part writes to it, renames or removes it.
 */
#include "exec/files/cache.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "exec/files/blobs.h"

#define TRIES 100 /* of locking a .part that others rename meanwhile */

/* ---- the folder --------------------------------------------------------------------------------------------------- */

bool skep_blob_fail(const char *folder, const char *path, const char *what, struct skep_diag *reterr)
{
	int error = errno;
	if (error == ENOSPC || error == EDQUOT)
		skep_diag_set(reterr, folder, 0, 0, NULL,
			"is full: remove files there, or name a folder on another disk with --cache; what has come is kept");
	else
		skep_diag_set(reterr, path, 0, 0, NULL, "%s: %s; another folder with --cache would do", what,
			strerror(error));
	return false;
}

bool skep_blob_folders(const char *folder, char *path, size_t from, struct skep_diag *reterr)
{
	assert(from <= strlen(path));
	for (char *slash = strchr(path + from, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		bool made = path[0] == 0 || mkdir(path, 0700) == 0 || errno == EEXIST;
		if (!made)
			skep_blob_fail(folder, path, "cannot be created", reterr);
		*slash = '/';
		if (!made)
			return false;
	}
	return true;
}

static bool usual_folder(char *ret, size_t size)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	int length = -1;
	if (cache != NULL && cache[0] == '/') /* by its specification a relative one counts as none */
		length = snprintf(ret, size, "%s/skep", cache);
	else if (home != NULL && home[0] == '/')
		length = snprintf(ret, size, "%s/.cache/skep", home);
	return length > 0 && (size_t)length < size;
}

bool skep_cache_open(const char *folder, struct skep_cache *ret, struct skep_diag *reterr)
{
	static const char *const inside[] = {"blobs", "runs"};
	char usual[SKEP_BLOB_PATH], path[SKEP_BLOB_PATH];
	*ret = (struct skep_cache){0};
	if (folder == NULL && !usual_folder(usual, sizeof usual))
		return skep_fail(reterr,
			"neither XDG_CACHE_HOME nor HOME says where files may be kept: name a folder with --cache");
	if (folder == NULL)
		folder = usual;
	for (int i = 0; i < 2; i++) {
		int length = snprintf(path, sizeof path, "%s/%s/", folder, inside[i]);
		if (length < 0 || (size_t)length >= sizeof path)
			return skep_fail(reterr, "the path of the cache is too long: %.200s", folder);
		if (!skep_blob_folders(folder, path, 0, reterr))
			return false;
	}
	ret->folder = realpath(folder, NULL);
	return ret->folder != NULL || skep_blob_fail(folder, folder, "cannot be used as a cache", reterr);
}

void skep_cache_close(struct skep_cache *cache)
{
	free(cache->folder);
	*cache = (struct skep_cache){0};
}

bool skep_blob_path(const struct skep_cache *cache, const uint8_t digest[SKEP_DIGEST_BYTES], const char *ending,
	char ret[SKEP_BLOB_PATH], struct skep_diag *reterr)
{
	char name[SKEP_DIGEST_TEXT];
	skep_digest_text(digest, name);
	int length = snprintf(ret, SKEP_BLOB_PATH, "%s/blobs/%s%s", cache->folder, name, ending);
	return (length > 0 && length < (int)SKEP_BLOB_PATH) ||
	       skep_fail(reterr, "the path of the cache is too long: %.200s", cache->folder);
}

/* ---- whole files -------------------------------------------------------------------------------------------------- */

static bool has_digest(int fd, uint64_t bytes, const uint8_t digest[SKEP_DIGEST_BYTES])
{
	uint8_t found[SKEP_DIGEST_BYTES];
	struct skep_digester *digester = skep_digester_create();
	bool same = digester != NULL && skep_digester_add_file(digester, fd, 0, bytes) &&
	            skep_digester_end(digester, found) && memcmp(found, digest, sizeof found) == 0;
	skep_digester_destroy(digester);
	return same;
}

bool skep_blob_is(const char *path, uint64_t bytes, const uint8_t digest[SKEP_DIGEST_BYTES])
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	bool is = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size == bytes &&
	          has_digest(fd, bytes, digest);
	if (fd >= 0)
		close(fd);
	return is;
}

bool skep_cache_has(const struct skep_cache *cache, const uint8_t digest[SKEP_DIGEST_BYTES], uint64_t bytes)
{
	char path[SKEP_BLOB_PATH];
	struct stat st;
	struct skep_diag unused = {0};
	if (!skep_blob_path(cache, digest, "", path, &unused) || lstat(path, &st) != 0)
		return false;
	bool good = skep_blob_is(path, bytes, digest);
	if (!good)
		unlink(path);
	return good;
}

/* ---- files on their way ------------------------------------------------------------------------------------------- */

/* The locked file of that name. -1: another process has the lock (errno is EWOULDBLOCK), or it cannot be had. Who had it before
 * may have renamed or removed the file between the opening and the locking. */
static int lock(const char *path)
{
	for (int i = 0; i < TRIES; i++) {
		struct stat mine, there;
		int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
		if (fd < 0)
			return -1;
		if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
			int error = errno;
			close(fd);
			errno = error;
			return -1;
		}
		if (fstat(fd, &mine) == 0 && lstat(path, &there) == 0 && mine.st_dev == there.st_dev &&
			mine.st_ino == there.st_ino)
			return fd;
		close(fd);
	}
	errno = EWOULDBLOCK;
	return -1;
}

/* What is there already: from a file that is longer than the whole nothing is taken. */
static bool take_up(struct skep_cache_part *part, const char *path, struct skep_diag *reterr)
{
	struct stat st;
	assert(part->fd >= 0 && part->digester == NULL);
	part->digester = skep_digester_create();
	if (part->digester == NULL)
		return skep_fail(reterr, "OpenSSL has no SHA-256 here, by which files that travel are checked");
	if (fstat(part->fd, &st) != 0 || ((uint64_t)st.st_size > part->bytes && ftruncate(part->fd, 0) != 0))
		return skep_blob_fail(part->cache->folder, path, "cannot be used", reterr);
	part->offset = (uint64_t)st.st_size > part->bytes ? 0 : (uint64_t)st.st_size;
	return skep_digester_add_file(part->digester, part->fd, 0, part->offset) ||
	       skep_blob_fail(part->cache->folder, path, "cannot be read", reterr);
}

static bool has_room(const struct skep_cache_part *part, struct skep_diag *reterr)
{
	struct statvfs fs;
	const double MB = 1e6;
	uint64_t left = part->bytes - part->offset;
	assert(part->offset <= part->bytes);
	if (fstatvfs(part->fd, &fs) != 0 || fs.f_blocks == 0 || fs.f_bavail >= left / fs.f_frsize + 1)
		return true; /* or that is not known */
	skep_diag_set(reterr, part->cache->folder, 0, 0, NULL,
		"has room for %.1f MB, but a file of the run has %.1f MB to come: remove files there, or name a folder "
		"on another disk with --cache",
		(double)fs.f_bavail * (double)fs.f_frsize / MB, (double)left / MB);
	return false;
}

enum skep_cache_begun skep_cache_begin(const struct skep_cache *cache, const uint8_t digest[SKEP_DIGEST_BYTES],
	uint64_t bytes, struct skep_cache_part *ret, struct skep_diag *reterr)
{
	char path[SKEP_BLOB_PATH];
	*ret = (struct skep_cache_part){.cache = cache, .fd = -1, .bytes = bytes};
	memcpy(ret->digest, digest, sizeof ret->digest);
	if (!skep_blob_path(cache, digest, ".part", path, reterr))
		return SKEP_CACHE_FAILED;
	if (skep_cache_has(cache, digest, bytes))
		return SKEP_CACHE_WHOLE;
	ret->fd = lock(path);
	if (ret->fd < 0 && errno == EWOULDBLOCK)
		return SKEP_CACHE_BUSY;
	if (ret->fd < 0) {
		skep_blob_fail(cache->folder, path, "cannot be written", reterr);
		return SKEP_CACHE_FAILED;
	}
	bool whole = skep_cache_has(cache, digest, bytes); /* since then */
	if (whole)
		unlink(path);
	if (!whole && take_up(ret, path, reterr) && has_room(ret, reterr))
		return SKEP_CACHE_BEGUN;
	skep_cache_leave(ret);
	return whole ? SKEP_CACHE_WHOLE : SKEP_CACHE_FAILED;
}

bool skep_cache_append(
	struct skep_cache_part *part, uint64_t offset, const void *bytes, size_t count, struct skep_diag *reterr)
{
	const uint8_t *at = bytes;
	assert(part->fd >= 0 && part->offset <= part->bytes);
	if (offset != part->offset || count > part->bytes - part->offset)
		return skep_fail(reterr,
			"the sender sends bytes %" PRIu64 " to %" PRIu64 " of a file of %" PRIu64
			" bytes of which %" PRIu64 " are here: it is not the skep that was asked",
			offset, offset + count, part->bytes, part->offset);
	while (count > 0) {
		ssize_t wrote = pwrite(part->fd, at, count, (off_t)part->offset);
		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote < 0)
			return skep_blob_fail(part->cache->folder, part->cache->folder, "cannot be written to", reterr);
		if (!skep_digester_add(part->digester, at, (size_t)wrote))
			return skep_fail(reterr, "OpenSSL cannot go on with a SHA-256");
		at += wrote;
		count -= (size_t)wrote;
		part->offset += (uint64_t)wrote;
	}
	return true;
}

/* A rename is on the disk when its folder is. */
static void sync_folder(const struct skep_cache *cache)
{
	char path[SKEP_BLOB_PATH];
	int length = snprintf(path, sizeof path, "%s/blobs", cache->folder);
	int fd = length > 0 && length < (int)sizeof path ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (fd < 0)
		return;
	fsync(fd);
	close(fd);
}

/* Under the lock. */
static bool put(struct skep_cache_part *part, const char *path, const char *whole, struct skep_diag *reterr)
{
	char name[SKEP_DIGEST_TEXT];
	uint8_t found[SKEP_DIGEST_BYTES];
	assert(part->fd >= 0 && part->digester != NULL && part->offset == part->bytes);
	skep_digest_text(part->digest, name);
	if (!skep_digester_end(part->digester, found))
		return skep_fail(reterr, "OpenSSL cannot end a SHA-256");
	if (memcmp(found, part->digest, sizeof found) != 0) {
		unlink(path);
		return skep_fail(reterr,
			"has come with other bytes than were announced (%.16s...), and was removed: it has been changed since "
			"`serve` began, which has to begin anew then, or a disk is faulty",
			name);
	}
	if (fsync(part->fd) != 0 || fchmod(part->fd, 0400) != 0)
		return skep_blob_fail(part->cache->folder, path, "cannot be written", reterr);
	if (rename(path, whole) != 0)
		return skep_blob_fail(part->cache->folder, whole, "cannot be created", reterr);
	sync_folder(part->cache);
	return true;
}

bool skep_cache_commit(struct skep_cache_part *part, struct skep_diag *reterr)
{
	char path[SKEP_BLOB_PATH], whole[SKEP_BLOB_PATH];
	bool ok = part->offset == part->bytes ||
	          skep_fail(reterr,
			  "a file ended after %" PRIu64 " of %" PRIu64 " bytes: join again, and it goes on from there",
			  part->offset, part->bytes);
	assert(part->fd >= 0 && part->digester != NULL);
	ok = ok && skep_blob_path(part->cache, part->digest, ".part", path, reterr) &&
	     skep_blob_path(part->cache, part->digest, "", whole, reterr) && put(part, path, whole, reterr);
	skep_cache_leave(part);
	return ok;
}

void skep_cache_leave(struct skep_cache_part *part)
{
	if (part->fd >= 0)
		close(part->fd);
	skep_digester_destroy(part->digester);
	*part = (struct skep_cache_part){.fd = -1};
}
