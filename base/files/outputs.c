/* SPDX-License-Identifier: Apache-2.0
 *
 * outputs.c - see outputs.h.
 */
#include "base/files/outputs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/grow.h"

enum { TRIES = 100 };

/* ---- names ------------------------------------------------------------------------------------------------------- */

const char *skep_path_base(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

void skep_path_folder(const char *path, char *ret, size_t size)
{
	size_t length = (size_t)(skep_path_base(path) - path);
	snprintf(ret, size, "%.*s", (int)(length > 1 ? length - 1 : 1), length > 0 ? path : ".");
}

static int create_temporary(const char *path, mode_t mode, char *ret)
{
	const char *base = skep_path_base(path);
	const uint32_t mark = skep_remains_mark();
	skep_remains_remove(path);
	for (uint32_t i = 0; i < TRIES; i++) {
		uint32_t random;
		if (getrandom(&random, sizeof random, 0) != sizeof random)
			return -1;
		int length = snprintf(ret, SKEP_PATH_BYTES, "%.*s%.*s.%ld-%08" PRIx32 "%08" PRIx32 ".new",
			(int)(base - path), path, (int)SKEP_TEMPORARY_NAME_BYTES, base, (long)getpid(), mark, random);
		if (length >= (int)SKEP_PATH_BYTES) {
			errno = ENAMETOOLONG;
			return -1;
		}
		int fd = open(ret, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
		if (fd >= 0 || errno != EEXIST)
			return fd;
	}
	return -1;
}

int skep_temporary_create(const char *path, char *ret)
{
	return create_temporary(path, 0666, ret);
}

int64_t skep_temporary_process(const char *name, size_t length)
{
	long process;
	int end = 0;
	if (strnlen(name, length) < length || sscanf(name + length, ".%ld-%*16[0-9a-f].new%n", &process, &end) != 1 ||
		end == 0 || name[length + end])
		return 0;
	return process;
}

/* ---- one file ---------------------------------------------------------------------------------------------------- */

static bool refuse(struct skep_outputs *o, const char *path, const char *why)
{
	struct stat old;
	const char *rest = lstat(path, &old) == 0 ? "; what was there before is unchanged" : "";
	skep_diag_set(o->diag, path, 0, 0, NULL, "cannot be written: %s%s", why, rest);
	return false;
}

static void release(struct skep_output *out)
{
	if (out->file)
		fclose(out->file);
	free(out->path);
	free(out->temporary);
}

/* A device would be replaced by a file, and a file without the right to write is meant to stay. */
static bool may_replace(struct skep_outputs *o, const char *path)
{
	struct stat old;
	if (stat(path, &old) != 0)
		return true;
	if (!S_ISREG(old.st_mode))
		return refuse(o, path, S_ISDIR(old.st_mode) ? strerror(EISDIR) : "it is no regular file");
	return euidaccess(path, W_OK) == 0 || refuse(o, path, strerror(errno));
}

/* The new file gets the permissions of the old one, else those that umask leaves; one of secrets is for its owner alone. */
static bool open_output(struct skep_outputs *o, const char *path, struct skep_output *ret)
{
	char temporary[SKEP_PATH_BYTES];
	struct stat old;
	int fd = create_temporary(path, o->owner_only ? 0600 : 0666, temporary);
	if (fd < 0)
		return refuse(o, path,
			errno == ENOENT ? "the folder that it is to be in is not there: make it first"
					: strerror(errno));
	bool kept =
		o->owner_only || lstat(path, &old) != 0 || !S_ISREG(old.st_mode) || fchmod(fd, old.st_mode & 0777) == 0;
	*ret = (struct skep_output){kept ? fdopen(fd, "w") : NULL, strdup(path), strdup(temporary)};
	if (ret->file && ret->path && ret->temporary)
		return true;
	refuse(o, path, strerror(errno));
	if (!ret->file)
		close(fd);
	unlink(temporary);
	release(ret);
	return false;
}

/* The stream does not keep why an earlier write failed: one byte more fails for the same reason. */
static int failure_of(FILE *file)
{
	return write(fileno(file), "", 1) < 0 ? errno : EIO;
}

/* Returns 0 when the file's bytes are on the disk, or the error. */
static int sync_output(struct skep_output *out)
{
	int error = fflush(out->file) != 0 ? errno : ferror(out->file) ? failure_of(out->file) : 0;
	if (error == 0 && fsync(fileno(out->file)) != 0 && errno != EINVAL && errno != ENOTSUP)
		error = errno; /* the others: a file system that cannot */
	if (fclose(out->file) != 0 && error == 0)
		error = errno;
	out->file = NULL;
	return error;
}

static void sync_folder(const char *path)
{
	char folder[SKEP_PATH_BYTES];
	skep_path_folder(path, folder, sizeof folder);
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	fsync(fd);
	close(fd);
}

/* ---- several ----------------------------------------------------------------------------------------------------- */

FILE *skep_outputs_begin(struct skep_outputs *o, const char *path)
{
	bool room = skep_grow(&o->output, o->count, sizeof *o->output);
	if (!room)
		refuse(o, path, strerror(errno));
	if (!room || !may_replace(o, path) || !open_output(o, path, &o->output[o->count]))
		return NULL;
	return o->output[o->count++].file;
}

void skep_outputs_put_last(struct skep_outputs *o, uint32_t which)
{
	if (which >= o->count)
		return;
	struct skep_output last = o->output[which];
	memmove(o->output + which, o->output + which + 1, (o->count - 1 - which) * sizeof last);
	o->output[o->count - 1] = last;
}

void skep_outputs_abandon(struct skep_outputs *o)
{
	for (uint32_t i = 0; i < o->count; i++) {
		unlink(o->output[i].temporary);
		release(&o->output[i]);
	}
	free(o->output);
	*o = (struct skep_outputs){.diag = o->diag};
}

static bool sync_all(struct skep_outputs *o)
{
	for (uint32_t i = 0; i < o->count && !o->diag->set; i++) {
		int error = sync_output(&o->output[i]);
		if (error != 0)
			return refuse(o, o->output[i].path, strerror(error));
	}
	return !o->diag->set;
}

static void hide_last(struct skep_outputs *o)
{
	bool replaces = false;
	for (uint32_t i = 0; i + 1 < o->count; i++)
		replaces = replaces || access(o->output[i].path, F_OK) == 0;
	const char *last = o->output[o->count - 1].path;
	if (replaces && unlink(last) == 0)
		sync_folder(last);
}

static bool rename_all(struct skep_outputs *o)
{
	if (o->count > 1)
		hide_last(o);
	for (uint32_t i = 0; i < o->count; i++) {
		struct skep_output *out = &o->output[i];
		if (rename(out->temporary, out->path) != 0) {
			skep_diag_set(o->diag, out->path, 0, 0, NULL, "cannot be written: %s", strerror(errno));
			return false;
		}
	}
	for (uint32_t i = 0; i < o->count; i++)
		sync_folder(o->output[i].path);
	return true;
}

bool skep_outputs_commit(struct skep_outputs *o)
{
	bool done = sync_all(o) && (o->count == 0 || rename_all(o));
	skep_outputs_abandon(o);
	return done;
}

bool skep_file_write(const char *path, const void *bytes, size_t size, struct skep_diag *reterr)
{
	struct skep_outputs outputs = {.diag = reterr};
	FILE *file = skep_outputs_begin(&outputs, path);
	if (file)
		fwrite(bytes, 1, size, file);
	return skep_outputs_commit(&outputs);
}
