/* SPDX-License-Identifier: Apache-2.0
 *
 * file.c - finds and reads whole files that people write. Reads regular files only, so that a directory, a device or a
 * pipe named by mistake is an error and never a wait.
 */
#include "base/files/data.h"
#include "base/files/files.h"
#include "base/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define fail(...) skep_diag_set(reterr, path[0] ? path : "''", 0, 0, NULL, __VA_ARGS__)

#define NOT_TEXT "is not text: it holds zero bytes (a binary file, or text that is not UTF-8)"

/* A program or weights in place of a text are seldom small. */
static bool begins_binary(int fd)
{
	char first[4096];
	ssize_t got = pread(fd, first, sizeof first, 0);
	return got > 0 && memchr(first, 0, (size_t)got) != NULL;
}

static bool is_file(int fd, size_t limit, const char *path, struct skep_diag *reterr)
{
	struct stat st;
	if (fstat(fd, &st) != 0)
		fail("cannot be read: %s", strerror(errno));
	else if (S_ISDIR(st.st_mode))
		fail("is a directory: expected a file");
	else if (!S_ISREG(st.st_mode))
		fail("is not a regular file");
	else if ((uint64_t)st.st_size > limit && begins_binary(fd))
		fail(NOT_TEXT);
	else if ((uint64_t)st.st_size > limit)
		fail("is too large: %lld bytes, the limit for such a file is %zu", (long long)st.st_size, limit);
	return !reterr->set;
}

/* Up to `limit` bytes into a 0-terminated buffer; NULL with the diagnosis filled. */
static char *read_all(int fd, size_t limit, size_t *ret_size, const char *path, struct skep_diag *reterr)
{
	char *text = NULL;
	size_t size = 0, room = 0;
	for (;;) {
		if (size + 1 >= room) {
			room = room ? 2 * room : 1 << 14;
			char *more = realloc(text, room);
			if (!more) {
				fail("cannot be read: not enough memory");
				break;
			}
			text = more;
		}
		ssize_t got = read(fd, text + size, room - size - 1);
		if (got < 0 && errno == EINTR)
			continue;
		size += got > 0 ? (size_t)got : 0;
		if (got < 0)
			fail("cannot be read: %s", strerror(errno));
		else if (size > limit)
			fail("is too large: the limit for such a file is %zu bytes", limit);
		if (got <= 0 || reterr->set)
			break;
	}
	if (reterr->set) {
		free(text);
		return NULL;
	}
	text[size] = 0;
	*ret_size = size;
	return text;
}

bool skep_file_read(const char *path, size_t limit, char **ret, size_t *ret_size, struct skep_diag *reterr)
{
	*ret = NULL;
	*ret_size = 0;
	if (reterr->set)
		return false;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0) {
		int cause = errno;
		char near[512];
		if (cause == ENOENT && skep_file_near(path, near, sizeof near))
			fail("cannot be opened: %s; did you mean %s?", strerror(cause), near);
		else
			fail("cannot be opened: %s", strerror(cause));
		return false;
	}
	skep_files_note(reterr->files, path, true);
	char *text = NULL;
	size_t size = 0;
	if (is_file(fd, limit, path, reterr))
		text = read_all(fd, limit, &size, path, reterr);
	close(fd);
	if (text && memchr(text, 0, size)) {
		fail(NOT_TEXT);
		free(text);
		return false;
	}
	if (text && size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) { /* a byte order mark says nothing in UTF-8 */
		memmove(text, text + 3, size - 2);
		size -= 3;
	}
	*ret = text;
	*ret_size = size;
	return text != NULL;
}

static bool try(char *ret, size_t size, const char *folder, size_t length, const char *name)
{
	int n = snprintf(ret, size, "%.*s%s%s", (int)length, folder, length > 0 ? "/" : "", name);
	return n >= 0 && (size_t)n < size && access(ret, F_OK) == 0;
}

/* `name` in a folder under the root. */
static bool try_under(const char *root, const char *folder, const char *name, char *ret, size_t size)
{
	char there[4096];
	int n = skep_path_normal(folder, name, there, sizeof there) ? snprintf(ret, size, "%s%s", root, there) : -1;
	return n >= 0 && (size_t)n < size && access(ret, F_OK) == 0;
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* `name` in any folder under the root: there the other machine's folder of data is one of those that were copied. */
static bool find_copied(const char *root, const char *name, char *ret, size_t size)
{
	char start[4096];
	bool found = false;
	int n = snprintf(start, sizeof start, "%s", root);
	char *const roots[] = {start, NULL};
	FTS *tree = n > 0 && (size_t)n < sizeof start ? fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, by_name) : NULL;
	FTSENT *entry;
	while (tree != NULL && !found && (entry = fts_read(tree)) != NULL)
		found = entry->fts_info == FTS_D && try(ret, size, entry->fts_path, entry->fts_pathlen, name);
	if (tree != NULL)
		fts_close(tree);
	return found;
}

/* The same places, in the same order, as in the file system that is copied under the root. */
static bool find_under(
	const struct skep_files *files, const char *from, bool given, const char *name, char *ret, size_t size)
{
	char folder[4096];
	size_t length = strlen(files->root);
	bool under = from != NULL && strncmp(from, files->root, length) == 0 && from[length] == '/';
	under = under && name[0] != '/' && skep_path_normal("/", from + length, folder, sizeof folder);
	if (under && !given) {
		char beside[4096];
		snprintf(beside, sizeof beside, "%.*s", (int)(strrchr(folder, '/') - folder), folder);
		if (try_under(files->root, beside[0] != 0 ? beside : "/", name, ret, size))
			return true;
	}
	if (try_under(files->root, files->folder, name, ret, size))
		return true;
	if (!under)
		return false;
	while (folder[1] != 0) {
		char *slash = strrchr(folder, '/');
		slash[slash == folder] = 0;
		if (try_under(files->root, folder, name, ret, size))
			return true;
	}
	return strstr(name, "..") == NULL && find_copied(files->root, name, ret, size);
}

/* `name` in the folders above the working folder, nearest first: what is there is written with "../" in front. */
static bool find_above_here(const char *name, char *ret, size_t size)
{
	char here[PATH_MAX], up[PATH_MAX] = "";
	if (getcwd(here, sizeof here) == NULL)
		return false;
	size_t used = 0;
	for (char *slash = here; (slash = strchr(slash, '/')) != NULL && slash[1] != 0 && used + 4 < sizeof up;
		slash++) {
		used += (size_t)snprintf(up + used, sizeof up - used, "%s..", used > 0 ? "/" : "");
		if (try(ret, size, up, used, name))
			return true;
	}
	return false;
}

static bool find_above(const char *from, const char *name, char *ret, size_t size)
{
	/* Each folder above `from`, nearest first; the root itself is the folder of length 0 of an absolute path. */
	for (size_t length = strnlen(from, 4096); length > 0;) {
		while (length > 0 && from[length - 1] != '/')
			length--;
		while (length > 0 && from[length - 1] == '/')
			length--;
		if (length == 0 && from[0] != '/')
			return find_above_here(name, ret, size);
		if (length > 0 ? try(ret, size, from, length, name) : try(ret, size, "/", 1, name))
			return true;
	}
	return false;
}

/* `name` in the folder of `from`, where that is written with a folder. */
static bool find_beside(const char *from, const char *name, char *ret, size_t size)
{
	const char *slash = from != NULL && name[0] != '/' ? strrchr(from, '/') : NULL;
	if (slash == NULL)
		return false;
	return slash == from ? try(ret, size, "/", 1, name) : try(ret, size, from, (size_t)(slash - from), name);
}

static bool find(const char *from, bool given, const char *name, char *ret, size_t size)
{
	if ((!given && find_beside(from, name, ret, size)) || try(ret, size, "", 0, name))
		return true;
	if (name[0] == '/' || !from)
		return false;
	return find_above(from, name, ret, size) || skep_data_find(name, ret, size);
}

static bool find_first(struct skep_files *files, const char *from, bool given, const char *name, char *ret, size_t size)
{
	bool under = files != NULL && files->root != NULL;
	bool found = name[0] != 0 &&
	             (under ? find_under(files, from, given, name, ret, size) : find(from, given, name, ret, size));
	if (found)
		skep_files_note(files, ret, false);
	return found;
}

bool skep_file_find(struct skep_files *files, const char *from, const char *name, char *ret, size_t size)
{
	return find_first(files, from, false, name, ret, size);
}

bool skep_file_find_given(struct skep_files *files, const char *from, const char *name, char *ret, size_t size)
{
	return find_first(files, from, true, name, ret, size);
}

bool skep_program_find(const char *name)
{
	const char *folder = getenv("PATH");
	while (folder != NULL && *folder != 0) {
		char path[4096];
		struct stat st;
		size_t length = strcspn(folder, ":");
		if (try(path, sizeof path, length > 0 ? folder : ".", length > 0 ? length : 1, name) &&
			stat(path, &st) == 0 && S_ISREG(st.st_mode) && euidaccess(path, X_OK) == 0)
			return true;
		folder += length + (folder[length] == ':');
	}
	return false;
}
