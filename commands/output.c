/* SPDX-License-Identifier: Apache-2.0
 *
 * output.c - see output.h. Files are told apart by what they are, not by how they are spelt (base/files/replace.h).
 */
#include "commands/output.h"

#include <glob.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files/outputs.h"
#include "base/files/replace.h"
#include "scenarios/read/planned.h"
#include "scenarios/read/sources.h"

enum { PATH_BYTES = 4096 };

/* How a file of weights begins that skep has written, behind the eight bytes of its length
 * (models/weights/safetensors_write.c). */
static const char weights_head[] = "{\"__metadata__\":{\"format\":\"pt\",\"scenario\":";

static bool complain(const char *what)
{
	fprintf(stderr, "skep: %s\n", what);
	return false;
}

/* Operands are scenarios, tables or numbers of runs, and these name no file. */
bool skep_output_ready(const struct arguments *a, const char *head)
{
	struct skep_diag error = {0};
	for (uint32_t i = 0; i < a->positionals; i++)
		if (!skep_replace_not_read(a->output, a->positional[i], "an operand", &error))
			return complain(error.message);
	if (!skep_replace_not_read(a->output, a->db, "the database", &error))
		return complain(error.message);
	if (a->force ||
		(head ? skep_replace_written(a->output, head, &error) : skep_replace_picture(a->output, &error)))
		return true;
	return complain(error.message);
}

/* ---- weights ------------------------------------------------------------------------------------------------------ */

static bool is_exported(const char *path)
{
	char text[8 + sizeof weights_head] = "";
	FILE *file = fopen(path, "re");
	size_t got = file ? fread(text, 1, sizeof text - 1, file) : 0;
	if (file)
		fclose(file);
	return got == sizeof text - 1 && memcmp(text + 8, weights_head, sizeof weights_head - 1) == 0;
}

bool skep_output_folder_ready(const struct arguments *a)
{
	char pattern[PATH_BYTES], error[PATH_BYTES + 256];
	glob_t found = {0};
	struct stat st;
	bool ready = true;
	if (a->force || strlen(a->output) + 64 > sizeof pattern)
		return true; /* what is too long the writer refuses */
	snprintf(pattern, sizeof pattern, "%s/config.json", a->output);
	bool config = stat(pattern, &st) == 0;
	snprintf(pattern, sizeof pattern, "%s/model*.safetensors", a->output);
	int answer = glob(pattern, 0, NULL, &found);
	for (size_t i = 0; answer == 0 && i < found.gl_pathc; i++)
		ready = ready && is_exported(found.gl_pathv[i]);
	ready = ready && (!config || found.gl_pathc > 0);
	globfree(&found);
	snprintf(error, sizeof error,
		"%s: has a model already that skep has not exported: take another folder, or --force", a->output);
	return ready || complain(error);
}

/* ---- what a scenario names ------------------------------------------------------------------------------------------ */

static bool is_in(const char *path, const char *folder)
{
	char of[PATH_BYTES];
	skep_path_folder(path, of, sizeof of);
	return skep_replace_same(of, folder);
}

/* Of a folder only what an export has in it. */
static bool is_written(const char *output, const char *path)
{
	const char *name = skep_path_base(path);
	if (skep_replace_same(output, path))
		return true;
	bool exported = strcmp(name, "config.json") == 0 ||
	                (strncmp(name, "model", 5) == 0 && strstr(name, ".safetensors") != NULL);
	return exported && is_in(path, output);
}

bool skep_output_no_source(const struct arguments *a, const struct skep_scenario *s)
{
	char error[2 * PATH_BYTES];
	const char *path = a->output ? skep_scenario_source(s, 0) : NULL;
	for (uint32_t i = 0; path; path = skep_scenario_source(s, ++i))
		if (is_written(a->output, path)) {
			snprintf(error, sizeof error, "%s: %s is read by %s: take another name", a->output, path,
				s->path);
			return complain(error);
		}
	for (uint32_t k = 0; a->output && s->planned && k < s->planned->free.keys; k++)
		for (uint32_t v = 0; v < s->planned->free.key[k].values; v++) {
			char found[PATH_BYTES];
			const char *value = s->planned->free.key[k].value[v];
			if (skep_file_find(NULL, s->path, value, found, sizeof found) && is_written(a->output, found)) {
				snprintf(error, sizeof error,
					"%s: is one of the files in plan.search of %s: take another name", a->output,
					s->path);
				return complain(error);
			}
		}
	return true;
}
