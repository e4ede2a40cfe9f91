/* SPDX-License-Identifier: Apache-2.0
 *
 * files.c - see files.h.
 */
#include "base/files/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

void skep_files_note(struct skep_files *files, const char *path, bool read)
{
	if (files == NULL)
		return;
	for (uint32_t i = 0; i < files->count; i++)
		if (strcmp(files->asked[i].path, path) == 0) {
			files->asked[i].read = files->asked[i].read || read;
			return;
		}
	char *copy = strdup(path);
	if (copy == NULL || !skep_grow(&files->asked, files->count, sizeof *files->asked)) {
		files->incomplete = true;
		free(copy);
		return;
	}
	files->asked[files->count++] = (struct skep_file_asked){copy, read};
}

void skep_files_finish(struct skep_files *files)
{
	for (uint32_t i = 0; i < files->count; i++)
		free(files->asked[i].path);
	free(files->asked);
	*files = (struct skep_files){.root = files->root, .folder = files->folder};
}

bool skep_files_here(const struct skep_files *files, char *ret, size_t size)
{
	if (files == NULL || files->root == NULL) {
		ret[0] = 0;
		return true;
	}
	int length = snprintf(ret, size, "%s%s/", files->root, strcmp(files->folder, "/") == 0 ? "" : files->folder);
	return length > 0 && (size_t)length < size;
}

/* Adds the parts of `path` to the `used` bytes of ret; returns how many there are then, `size` if they do not fit. */
static size_t add_parts(const char *path, char *ret, size_t used, size_t size)
{
	while (used < size && *path != 0) {
		size_t length = strcspn(path, "/");
		bool up = length == 2 && path[0] == '.' && path[1] == '.';
		bool stay = length == 0 || (length == 1 && path[0] == '.');
		if (up)
			while (used > 0 && ret[--used] != '/')
				;
		else if (!stay && used + 1 + length >= size)
			return size;
		else if (!stay) {
			ret[used] = '/';
			memcpy(ret + used + 1, path, length);
			used += 1 + length;
		}
		path += length + (path[length] == '/');
	}
	return used;
}

bool skep_path_normal(const char *folder, const char *path, char *ret, size_t size)
{
	size_t used = 0;
	if (size < 2)
		return false;
	if (path[0] != '/')
		used = add_parts(folder, ret, used, size);
	used = add_parts(path, ret, used, size);
	if (used >= size)
		return false;
	if (used == 0)
		ret[used++] = '/';
	ret[used] = 0;
	return true;
}
