/* SPDX-License-Identifier: Apache-2.0
 *
 * safetensors.c - one file or many as one set of tensors, sorted by name, and their numbers as fp32.
 */
#include "models/weights/safetensors.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/grow.h"
#include "base/text.h"
#include "models/layers/vector.h"
#include "models/update/codec.h"
#include "models/weights/safetensors_file.h"

enum { FILES_MAX = 4096, BLOCK = 1024 };
#define INDEX_BYTES_MAX (16u << 20) /* 100,000 tensors */

struct skep_safetensors {
	char *path;
	struct skep_safetensors_file *file; /* [files] */
	uint32_t files, tensors;
	const struct skep_safetensor **tensor; /* [tensors], by name */
};

/* ---- one set ------------------------------------------------------------------------------------------------ */

static bool no_memory(const char *path, struct skep_diag *reterr)
{
	skep_diag_set(reterr, path, 0, 0, NULL, "not enough memory");
	return false;
}

/* The number of the file; UINT32_MAX when it could not be opened. */
static uint32_t add_file(struct skep_safetensors *set, const char *path, struct skep_diag *reterr)
{
	for (uint32_t f = 0; f < set->files; f++)
		if (strcmp(set->file[f].path, path) == 0)
			return f;
	if (set->files >= FILES_MAX) {
		skep_diag_set(reterr, path, 0, 0, NULL, "more than %d files of weights", FILES_MAX);
		return UINT32_MAX;
	}
	if (!skep_grow(&set->file, set->files, sizeof *set->file)) {
		no_memory(path, reterr);
		return UINT32_MAX;
	}
	if (!skep_safetensors_file_open(path, &set->file[set->files], reterr))
		return UINT32_MAX;
	return set->files++;
}

static int by_name(const void *a, const void *b)
{
	const struct skep_safetensor *x = *(const struct skep_safetensor *const *)a,
				     *y = *(const struct skep_safetensor *const *)b;
	return strcmp(x->name, y->name);
}

static bool gather(struct skep_safetensors *set, struct skep_diag *reterr)
{
	uint64_t tensors = 0, at = 0;
	for (uint32_t f = 0; f < set->files; f++)
		tensors += set->file[f].tensors;
	set->tensor = calloc(tensors + 1, sizeof *set->tensor);
	if (set->tensor == NULL || tensors > UINT32_MAX)
		return no_memory(set->file[0].path, reterr);
	for (uint32_t f = 0; f < set->files; f++)
		for (uint32_t t = 0; t < set->file[f].tensors; t++)
			set->tensor[at++] = &set->file[f].tensor[t];
	set->tensors = (uint32_t)tensors;
	qsort(set->tensor, set->tensors, sizeof *set->tensor, by_name);
	for (uint32_t t = 1; t < set->tensors; t++)
		if (strcmp(set->tensor[t - 1]->name, set->tensor[t]->name) == 0)
			skep_diag_set(reterr, set->tensor[t]->path, 0, 0, NULL, "has tensor '%.100s', as %.200s has",
				set->tensor[t]->name, set->tensor[t - 1]->path);
	return !reterr->set;
}

/* ---- the index ---------------------------------------------------------------------------------------------- */

/* The file that the node names, beside the index; UINT32_MAX after an error. */
static uint32_t named_file(
	struct skep_safetensors *set, struct skep_reader *r, const struct skep_yaml_node *node, const char *index)
{
	char path[4096];
	const char *name = skep_read_string(r, node, NULL, NULL), *slash = strrchr(index, '/');
	if (r->diag->set)
		return UINT32_MAX;
	int folder = slash != NULL ? (int)(slash - index) + 1 : 0;
	int length = snprintf(path, sizeof path, "%.*s%s", folder, index, name);
	if (strchr(name, '/') != NULL || name[0] == 0 || length < 0 || (size_t)length >= sizeof path) {
		skep_reader_fail(r, node, NULL, "expected the name of a file beside the index, not `%.60s`", name);
		return UINT32_MAX;
	}
	return add_file(set, path, r->diag);
}

/* Each name once (the reader of the index sees to that), in the file that the index says, and no other names in the files. */
static bool read_map(struct skep_safetensors *set, struct skep_reader *r, const char *path)
{
	const struct skep_yaml_node *root = skep_yaml_root(r->yaml), *map = skep_read_map(r, root, "weight_map", true),
				    *node;
	const char *name;
	uint32_t names = 0;
	while ((node = skep_read_entry(r, map, names, &name)) != NULL && named_file(set, r, node, path) != UINT32_MAX)
		names++;
	if (r->diag->set || !gather(set, r->diag))
		return false;
	for (uint32_t i = 0; i < names && !r->diag->set; i++) {
		node = skep_read_entry(r, map, i, &name);
		const struct skep_safetensor *tensor = skep_safetensors_find(set, name);
		const char *file = set->file[named_file(set, r, node, path)].path;
		if (tensor == NULL || strcmp(tensor->path, file) != 0)
			skep_reader_fail(r, node, NULL, "%s has no tensor of the name '%.100s'", file, name);
	}
	if (names < set->tensors)
		skep_reader_fail(r, map, NULL, "names %u tensors, but its files hold %u", names, set->tensors);
	return !r->diag->set;
}

static bool read_index(struct skep_safetensors *set, const char *path, struct skep_diag *reterr)
{
	char *text;
	size_t size;
	if (!skep_file_read(path, INDEX_BYTES_MAX, &text, &size, reterr))
		return false;
	struct skep_yaml *yaml = skep_yaml_parse(path, text, size, reterr);
	free(text);
	struct skep_reader r = {yaml, reterr};
	bool ok = yaml != NULL && read_map(set, &r, path);
	skep_yaml_destroy(yaml);
	return ok;
}

/* ---- all together ------------------------------------------------------------------------------------------- */

static bool read_named(struct skep_safetensors *set, const char *path, struct skep_diag *reterr)
{
	set->path = strdup(path);
	if (set->path == NULL)
		return no_memory(path, reterr);
	if (skep_text_ends(path, ".json"))
		return read_index(set, path, reterr);
	return add_file(set, path, reterr) != UINT32_MAX && gather(set, reterr);
}

static bool read_folder(struct skep_safetensors *set, const char *folder, struct skep_diag *reterr)
{
	static const char *const names[] = {"model.safetensors", "model.safetensors.index.json"};
	char path[4096];
	struct stat st;
	for (uint32_t i = 0; i < 2; i++) {
		int length = snprintf(path, sizeof path, "%s/%s", folder, names[i]);
		if (length > 0 && (size_t)length < sizeof path && stat(path, &st) == 0)
			return read_named(set, path, reterr);
	}
	skep_diag_set(reterr, folder, 0, 0, NULL,
		"has neither model.safetensors nor model.safetensors.index.json in it: name the file of the weights");
	return false;
}

struct skep_safetensors *skep_safetensors_open(const char *path, struct skep_diag *reterr)
{
	struct stat st;
	struct skep_safetensors *set = reterr->set ? NULL : calloc(1, sizeof *set);
	if (set == NULL) {
		no_memory(path, reterr);
		return NULL;
	}
	bool folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
	bool ok = folder ? read_folder(set, path, reterr) : read_named(set, path, reterr);
	if (ok)
		return set;
	skep_safetensors_close(set);
	return NULL;
}

void skep_safetensors_close(struct skep_safetensors *set)
{
	if (set == NULL)
		return;
	for (uint32_t f = 0; f < set->files; f++)
		skep_safetensors_file_close(&set->file[f]);
	free(set->file);
	free(set->path);
	free(set->tensor);
	free(set);
}

const char *skep_safetensors_path(const struct skep_safetensors *set)
{
	return set->path;
}

uint32_t skep_safetensors_count(const struct skep_safetensors *set)
{
	return set->tensors;
}

const struct skep_safetensor *skep_safetensors_item(const struct skep_safetensors *set, uint32_t i)
{
	assert(i < set->tensors);
	return set->tensor[i];
}

const struct skep_safetensor *skep_safetensors_find(const struct skep_safetensors *set, const char *name)
{
	const struct skep_safetensor key = {.name = (char *)name}, *at = &key;
	const struct skep_safetensor *const *found =
		set->tensors > 0 ? bsearch(&at, set->tensor, set->tensors, sizeof *set->tensor, by_name) : NULL;
	return found != NULL ? *found : NULL;
}

/* ---- numbers ------------------------------------------------------------------------------------------------ */

static uint16_t number16(const unsigned char *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t number32(const unsigned char *p)
{
	return number16(p) | (uint32_t)number16(p + 2) << 16;
}

static float number64(const unsigned char *p)
{
	uint64_t bits = number32(p) | (uint64_t)number32(p + 4) << 32;
	double x;
	memcpy(&x, &bits, sizeof x);
	return (float)x;
}

static void read_f16(const unsigned char *from, uint64_t count, float *ret)
{
	uint16_t half[BLOCK];
	for (; count > 0; from += 2 * BLOCK, ret += BLOCK) {
		uint64_t some = count < BLOCK ? count : BLOCK;
		for (uint64_t i = 0; i < some; i++)
			half[i] = number16(from + 2 * i);
		skep_codec_decode(SKEP_CODEC_FP16, SKEP_CODEC_BLOCK, some, half, ret);
		count -= some;
	}
}

void skep_safetensor_read(const struct skep_safetensor *tensor, uint64_t first, uint64_t count, float *ret)
{
	assert(tensor->dtype != SKEP_DTYPE_OTHER && first <= tensor->elements && count <= tensor->elements - first);
	uint64_t width = count > 0 ? tensor->bytes / tensor->elements : 0;
	const unsigned char *from = tensor->data + first * width;
	if (tensor->dtype == SKEP_DTYPE_F32)
		for (uint64_t i = 0; i < count; i++)
			ret[i] = skep_float_of((int32_t)number32(from + 4 * i));
	else if (tensor->dtype == SKEP_DTYPE_BF16)
		for (uint64_t i = 0; i < count; i++)
			ret[i] = skep_float_of((int32_t)((uint32_t)number16(from + 2 * i) << 16));
	else if (tensor->dtype == SKEP_DTYPE_F64)
		for (uint64_t i = 0; i < count; i++)
			ret[i] = number64(from + 8 * i);
	else
		read_f16(from, count, ret);
}
