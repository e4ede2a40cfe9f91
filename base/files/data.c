/* SPDX-License-Identifier: Apache-2.0
 *
 * data.c - see data.h. The program is found by /proc/self/exe, so that a folder with program and data can be moved as a whole.
 */
#include "base/files/data.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MARK "topologies/gpus" /* what every folder of data holds */
#define ABOVE_MAX 3u           /* a program of a clone stands in build/, or in a folder of that */

static bool is_folder(const char *folder, const char *name)
{
	char path[SKEP_DATA_PATH_BYTES + 64];
	struct stat st;
	int n = snprintf(path, sizeof path, "%s/%s", folder, name);
	return n > 0 && (size_t)n < sizeof path && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* FOLDER/BEHIND, if it is a folder of data and not listed yet. A relative path means nothing here [XDG Base Directory]. */
static void add(struct skep_data_folders *f, const char *folder, size_t length, const char *behind)
{
	if (f->count == SKEP_DATA_FOLDERS_MAX || length == 0 || folder[0] != '/')
		return;
	char *path = f->path[f->count];
	int n = snprintf(path, SKEP_DATA_PATH_BYTES, "%.*s%s", (int)length, folder, behind);
	if (n <= 0 || (size_t)n >= SKEP_DATA_PATH_BYTES || !is_folder(path, MARK))
		return;
	for (uint32_t i = 0; i < f->count; i++)
		if (strcmp(f->path[i], path) == 0)
			return;
	f->count++;
}

static void add_beside_program(struct skep_data_folders *f)
{
	char program[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
	program[length > 0 ? length : 0] = 0;
	char *slash = strrchr(program, '/');
	if (slash == NULL)
		return;
	*slash = 0;
	char bin[PATH_MAX];
	memcpy(bin, program, sizeof bin);
	for (uint32_t i = 0; i < ABOVE_MAX && (slash = strrchr(program, '/')) != NULL; i++) {
		*slash = 0;
		add(f, program, strlen(program), "");
	}
	if ((slash = strrchr(bin, '/')) != NULL)
		add(f, bin, (size_t)(slash - bin), "/share/skep");
}

static void add_xdg(struct skep_data_folders *f)
{
	const char *home = getenv("XDG_DATA_HOME"), *user = getenv("HOME"), *folders = getenv("XDG_DATA_DIRS");
	if (home != NULL && home[0] != 0)
		add(f, home, strlen(home), "/skep");
	else if (user != NULL)
		add(f, user, strlen(user), "/.local/share/skep");
	if (folders == NULL || folders[0] == 0)
		folders = "/usr/local/share:/usr/share";
	while (*folders != 0) {
		size_t length = strcspn(folders, ":"), used = length;
		while (used > 1 && folders[used - 1] == '/')
			used--;
		add(f, folders, used, "/skep");
		folders += length + (folders[length] == ':');
	}
}

void skep_data_folders(struct skep_data_folders *ret)
{
	ret->count = 0;
	add_beside_program(ret);
	add_xdg(ret);
}

bool skep_data_find(const char *name, char *ret, size_t size)
{
	struct skep_data_folders f;
	if (name[0] == 0 || name[0] == '/')
		return false;
	skep_data_folders(&f);
	for (uint32_t i = 0; i < f.count; i++) {
		int n = snprintf(ret, size, "%s/%s", f.path[i], name);
		if (n > 0 && (size_t)n < size && access(ret, F_OK) == 0)
			return true;
	}
	return false;
}

const char *skep_data_or(const char *path, char *room, size_t size)
{
	return access(path, F_OK) != 0 && skep_data_find(path, room, size) ? room : path;
}
