/* SPDX-License-Identifier: Apache-2.0
 *
 * remains.c - see outputs.h. A number that a living process has taken over keeps the file. Names are the target's with a
 * number, 16 hexadecimal digits and an ending of outputs.c or SQLite; all others are left alone.
 */

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/files/outputs.h"
#include "base/sum.h"

enum { DAY_S = 24 * 60 * 60 };

uint32_t skep_remains_mark(void)
{
	char boot[64];
	struct stat space;
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
	size_t got = file != NULL ? fread(boot, 1, sizeof boot, file) : 0;
	if (file != NULL)
		fclose(file);
	uint64_t sum = skep_sum(0, boot, got);
	if (stat("/proc/self/ns/pid", &space) == 0)
		sum = skep_sum(sum, &space.st_ino, sizeof space.st_ino);
	return got > 0 ? (uint32_t)sum : 0; /* 0: not known, and so the mark of no process */
}

/* Is it the name of a temporary file of the target of so many bytes? Then also of which process and mark. */
static bool is_of(const char *name, const char *target, size_t length, long *ret_process, unsigned *ret_mark)
{
	static const char *const ending[] = {"", "-journal", "-wal", "-shm"};
	int end = 0;
	if (strncmp(name, target, length) != 0 ||
		sscanf(name + length, ".%ld-%8x%*8[0-9a-f].new%n", ret_process, ret_mark, &end) != 2 || end == 0)
		return false;
	bool is = false;
	for (size_t i = 0; i < sizeof ending / sizeof ending[0]; i++)
		is = is || strcmp(name + length + (size_t)end, ending[i]) == 0;
	return is && *ret_process > 0;
}

static bool is_left(const char *path, long process, uint32_t mark, uint32_t here)
{
	struct stat about;
	if (lstat(path, &about) != 0 || !S_ISREG(about.st_mode))
		return false;
	if (mark == here && here != 0)
		return kill((pid_t)process, 0) != 0 && errno == ESRCH;
	return time(NULL) - about.st_mtime > DAY_S;
}

void skep_remains_remove(const char *path)
{
	char folder[SKEP_PATH_BYTES], whole[2 * SKEP_PATH_BYTES];
	const char *target = skep_path_base(path);
	size_t length = strnlen(target, SKEP_TEMPORARY_NAME_BYTES);
	uint32_t here = skep_remains_mark();
	skep_path_folder(path, folder, sizeof folder);
	DIR *entries = opendir(folder);
	if (entries == NULL)
		return;
	for (const struct dirent *entry; (entry = readdir(entries)) != NULL;) {
		long process;
		unsigned mark;
		if (!is_of(entry->d_name, target, length, &process, &mark))
			continue;
		snprintf(whole, sizeof whole, "%s/%s", folder, entry->d_name);
		if (is_left(whole, process, mark, here))
			unlink(whole);
	}
	closedir(entries);
}
