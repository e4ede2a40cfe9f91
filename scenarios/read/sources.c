/* SPDX-License-Identifier: Apache-2.0
 *
 * sources.c - see sources.h. Long files are streamed: a trace may have a gigabyte.
 */
#include "scenarios/read/sources.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash.h"
#include "scenarios/plan/law.h"

/* Counts down over the files that are there; the path when it is this one's turn. */
static const char *turn(const char *path, uint32_t *left)
{
	if (path[0] == '\0')
		return NULL;
	return (*left)-- == 0 ? path : NULL;
}

#define TABLES 3u /* of a GPU */

/* Tables that times were looked up in: products, layers and stages; "": there is none. */
static const char *table_path(const struct skep_scenario *scenario, uint32_t n)
{
	const struct skep_predictor *p = &scenario->predictor[n / TABLES];
	const struct skep_gpu_table *t = n % TABLES == 0 ? p->products : p->layers;
	if (n % TABLES == 2)
		return p->stages != NULL ? p->stages->path : "";
	return t != NULL ? t->path : "";
}

/* GPUs of one chip share their tables. */
static bool named_before(const struct skep_scenario *scenario, uint32_t n)
{
	bool before = false;
	for (uint32_t i = 0; i < n; i++)
		before = before || strcmp(table_path(scenario, i), table_path(scenario, n)) == 0;
	return before;
}

const char *skep_scenario_source(const struct skep_scenario *scenario, uint32_t i)
{
	const struct skep_topology *t = &scenario->topology;
	const char *const fixed[] = {scenario->model.path, t->path, t->matrix_path[0], t->matrix_path[1],
		t->matrix_path[2], scenario->trace_path, scenario->data_path, scenario->weights_path,
		scenario->validation_path, scenario->law ? scenario->law->path : ""};
	const char *found = NULL;
	for (size_t f = 0; found == NULL && f < sizeof fixed / sizeof fixed[0]; f++)
		found = turn(fixed[f], &i);
	for (uint32_t g = 0; found == NULL && g < t->gpus; g++)
		found = turn(t->gpu[g].path, &i);
	for (uint32_t n = 0; found == NULL && scenario->predictor && n < TABLES * t->gpus; n++)
		if (!named_before(scenario, n))
			found = turn(table_path(scenario, n), &i);
	for (uint32_t p = 0; found == NULL && p < t->prices; p++)
		found = turn(t->price[p].path, &i);
	for (uint32_t f = 0; found == NULL && f < t->delay_files; f++)
		found = turn(t->delay_file[f].path, &i);
	return found;
}

bool skep_source_read(const char *path, struct skep_source *ret)
{
	const size_t room = SKEP_SOURCE_TEXT_MAX + 1; /* the last is for the 0 */
	FILE *file = fopen(path, "re");
	char *text = malloc(room);
	size_t got;
	*ret = (struct skep_source){.checksum = SKEP_HASH_EMPTY};
	while (file && text && (got = fread(text, 1, room, file)) > 0) {
		ret->checksum = skep_hash_bytes(ret->checksum, text, got);
		ret->bytes += got;
	}
	bool ok = file && text && !ferror(file);
	if (file)
		fclose(file);
	if (ok && ret->bytes < room) {
		text[ret->bytes] = 0;
		ret->text = text;
	} else {
		free(text);
	}
	return ok;
}

void skep_source_finish(struct skep_source *source)
{
	free(source->text);
	*source = (struct skep_source){0};
}
