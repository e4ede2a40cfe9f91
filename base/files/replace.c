/* SPDX-License-Identifier: Apache-2.0
 *
 * replace.c - see replace.h. Decides by what is in a file, not by its name or age. A file that cannot be read is not
 * replaced either, since its content is not known. The writers themselves refuse what is not a regular file.
 */
#include "base/files/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEAD_BYTES 4096

/* The beginning of the file, 0-terminated. -1: it is not there; -2: it cannot be read, and errno says why. */
static ssize_t read_head(const char *path, char ret[HEAD_BYTES])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR ? -1 : -2;
	size_t length = 0;
	ssize_t got;
	while (length < HEAD_BYTES - 1 && (got = read(fd, ret + length, HEAD_BYTES - 1 - length)) != 0) {
		if (got < 0 && errno != EINTR)
			break;
		length += got > 0 ? (size_t)got : 0;
	}
	int why = errno;
	bool whole = length == HEAD_BYTES - 1 || got == 0;
	close(fd);
	errno = why;
	ret[length] = '\0';
	return whole ? (ssize_t)length : -2;
}

/* Comments end where the first line without a '#' stands. */
static bool has_line(const char *text, const char *head)
{
	for (; *text == '#'; text += *text == '\n') {
		if (strncmp(text, head, strlen(head)) == 0)
			return true;
		text += strcspn(text, "\n");
	}
	return false;
}

static bool has_magic(const char *path, const char *text)
{
	static const struct {
		const char *ending, *magic;
	} formats[] = {{".png", "\x89PNG\r\n\x1a\n"}, {".pdf", "%PDF-"}, {".svg", NULL},
		{".html", "<!doctype html>\n<!-- written by skep report -->"},
		{".json", "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"generator\":\"skep\","},
		{".json", "{\"skep_graph\":"}, {".dot", "# skep graph\n"}, {".gv", "# skep graph\n"},
		{".csv", "id,scenario,path,world,"}, {".csv", "run,round,opened_s,"}};
	const char *ending = strrchr(path, '.');
	for (size_t i = 0; ending && i < sizeof formats / sizeof *formats; i++)
		if (strcmp(ending, formats[i].ending) == 0 &&
			(formats[i].magic ? strncmp(text, formats[i].magic, strlen(formats[i].magic)) == 0
					  : strstr(text, "<svg") != NULL))
			return true;
	return false;
}

static bool decide(const char *path, const char *head, struct skep_diag *reterr)
{
	char text[HEAD_BYTES];
	ssize_t length = read_head(path, text);
	if (length == -1 || length == 0)
		return true;
	if (length == -2)
		return skep_fail(reterr, "%s: is there already, and cannot be read: %s: take another name, or --force",
			path, strerror(errno));
	if (head ? has_line(text, head) : has_magic(path, text))
		return true;
	return skep_fail(reterr,
		"%s: is there already, and is not what this command writes: take another name, or --force", path);
}

bool skep_replace_written(const char *path, const char *head, struct skep_diag *reterr)
{
	return decide(path, head, reterr);
}

bool skep_replace_picture(const char *path, struct skep_diag *reterr)
{
	return decide(path, NULL, reterr);
}

bool skep_replace_same(const char *a, const char *b)
{
	struct stat x, y;
	return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

bool skep_replace_not_read(const char *path, const char *read, const char *what, struct skep_diag *reterr)
{
	if (!skep_replace_same(path, read))
		return true;
	return skep_fail(reterr, "%s: is %s, which this command reads: take another name", path, what);
}
