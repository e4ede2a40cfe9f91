/* SPDX-License-Identifier: Apache-2.0
 *
 * near.c - see files.h: what was perhaps meant by a path that names no file.
 */
#include "base/files/files.h"
#include "base/reader.h"
#include "base/text.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int is_shown(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

char **skep_folder_names(const char *folder, const char *ending, uint32_t *ret_count)
{
	struct dirent **entry = NULL;
	int entries = scandir(folder[0] ? folder : ".", &entry, is_shown, alphasort);
	char **names = entries > 0 ? calloc((size_t)entries, sizeof *names) : NULL;
	*ret_count = 0;
	for (int i = 0; i < entries; i++) {
		char *name = entry[i]->d_name;
		if (names && skep_text_ends(name, ending) &&
			(names[*ret_count] = strndup(name, strlen(name) - strlen(ending))) != NULL)
			++*ret_count;
		free(entry[i]);
	}
	free(entry);
	return names;
}

void skep_folder_names_free(char **names, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		free(names[i]);
	free(names);
}

/* The first of those that begin with the same word, of three letters or more, and end in the same way: gpt2-124m.yaml for
 * gpt2-small.yaml. */
static const char *of_one_kind(const char *name, const char *const names[], uint32_t count)
{
	const char *end = strrchr(name, '.'), *first = NULL;
	size_t word = strcspn(name, "-."), ending = end ? strlen(end) : 0;
	for (uint32_t i = 0; end && word >= 3 && i < count; i++) {
		size_t length = strlen(names[i]);
		bool kind = strncmp(names[i], name, word) == 0 && names[i][word] == '-' && length > word + ending &&
		            strcmp(names[i] + length - ending, end) == 0;
		if (kind && (first == NULL || strcmp(names[i], first) < 0))
			first = names[i];
	}
	return first;
}

/* The nearest of the names in a folder, with `kind` also one that begins with the same word; false: none is near. */
static bool near_in(const char *folder, const char *name, bool kind, char *ret, size_t size)
{
	uint32_t count;
	char **names = skep_folder_names(folder, "", &count);
	const char *const *known = (const char *const *)names, *near = skep_text_nearest(name, known, count);
	if (!near && kind)
		near = of_one_kind(name, known, count);
	int n = near ? snprintf(ret, size, "%s%s", folder, near) : -1;
	skep_folder_names_free(names, count);
	return n >= 0 && (size_t)n < size;
}

bool skep_file_near_from(const char *from, const char *name, char *ret, size_t size)
{
	const char *slash = strrchr(name, '/');
	char folder[512], found[1024], near[1024];
	int n = snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - name) : 1, slash ? name : ".");
	if (n < 0 || (size_t)n >= sizeof folder - 1 || !skep_file_find(NULL, from, folder, found, sizeof found - 1))
		return false;
	const char *bare = slash ? slash + 1 : name;
	size_t length = strlen(found);
	found[length] = '/';
	found[length + 1] = '\0';
	if (bare[0] == '\0' || !near_in(found, bare, true, near, sizeof near))
		return false;
	n = snprintf(ret, size, "%.*s%s", (int)(bare - name), name, near + length + 1);
	return n >= 0 && (size_t)n < size;
}

bool skep_file_near(const char *path, char *ret, size_t size)
{
	static const char *const shipped[] = {"scenarios/", "../scenarios/"};
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	char folder[512];
	int n = snprintf(folder, sizeof folder, "%.*s", (int)(name - path), path);
	if (name[0] == 0 || n < 0 || (size_t)n >= sizeof folder)
		return false;
	if (near_in(folder, name, false, ret, size))
		return true;
	for (size_t i = 0; !slash && i < sizeof shipped / sizeof *shipped; i++)
		if (near_in(shipped[i], name, false, ret, size))
			return true;
	return false;
}
