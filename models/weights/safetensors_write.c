/* SPDX-License-Identifier: Apache-2.0
 *
 * safetensors_write.c - writes weights: all files or none, and the index last. Tensors come in the order given, each header is
 * filled with blanks to a multiple of 8 bytes.
 */
#include <assert.h>
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/outputs.h"
#include "models/layers/vector.h"
#include "models/weights/safetensors_file.h"

enum { PATH_BYTES = 4096, BLOCK = 4096, SHARDS_MAX = 99999 };

static const char suffix[] = ".safetensors";

struct shard {
	uint32_t first, weights;
	char path[PATH_BYTES];
};

struct writing {
	const struct skep_safetensors_target *target;
	const struct skep_weight *weight;
	uint32_t weights, shards;
	struct shard *shard; /* [shards] */
	char index[PATH_BYTES];
	struct skep_outputs outputs;
	struct skep_diag *diag;
};

static bool fail(struct writing *w, const char *path, const char *what)
{
	skep_diag_set(w->diag, path, 0, 0, NULL, "cannot be written: %s; what was there before is unchanged", what);
	return false;
}

static uint64_t elements(const struct skep_weight *weight)
{
	return weight->shape[0] * (weight->dimensions > 1 ? weight->shape[1] : 1);
}

static uint64_t bytes(const struct writing *w, const struct skep_weight *weight)
{
	return elements(weight) * (w->target->dtype == SKEP_DTYPE_BF16 ? 2 : 4);
}

/* ---- shards ------------------------------------------------------------------------------------------------- */

/* As many weights in a row as fit, one at least. */
static uint32_t fill(const struct writing *w, uint32_t first)
{
	uint64_t sum = 0;
	uint32_t at = first;
	for (; at < w->weights; at++) {
		sum += bytes(w, &w->weight[at]);
		if (w->target->shard_bytes > 0 && sum > w->target->shard_bytes && at > first)
			break;
	}
	return at - first;
}

static bool name_files(struct writing *w)
{
	const char *path = w->target->path;
	size_t stem = strlen(path);
	if (stem < sizeof suffix || stem + 64 > PATH_BYTES || strcmp(path + stem - (sizeof suffix - 1), suffix) != 0)
		return fail(w, path, "expected a name that ends in .safetensors");
	stem -= sizeof suffix - 1;
	for (uint32_t s = 0; s < w->shards; s++) {
		struct shard *shard = &w->shard[s];
		snprintf(shard->path, sizeof shard->path, "%s", path);
		if (w->shards > 1)
			snprintf(shard->path, sizeof shard->path, "%.*s-%05u-of-%05u%s", (int)stem, path, s + 1,
				w->shards, suffix);
	}
	snprintf(w->index, sizeof w->index, "%s.index.json", path);
	return true;
}

static bool cut(struct writing *w)
{
	for (uint32_t at = 0; at < w->weights; at += fill(w, at))
		w->shards++;
	if (w->shards > SHARDS_MAX)
		return fail(w, w->target->path, "too many files: allow larger ones");
	w->shard = calloc(w->shards, sizeof *w->shard);
	if (w->shard == NULL)
		return fail(w, w->target->path, "not enough memory");
	uint32_t at = 0;
	for (uint32_t s = 0; s < w->shards; s++) {
		w->shard[s].first = at;
		w->shard[s].weights = fill(w, at);
		at += w->shard[s].weights;
	}
	return name_files(w);
}

/* ---- texts -------------------------------------------------------------------------------------------------- */

static void add_texts(const struct writing *w, cJSON *root)
{
	cJSON *map = cJSON_AddObjectToObject(root, "__metadata__");
	cJSON_AddStringToObject(map, "format", "pt");
	for (uint32_t i = 0; i < w->target->texts; i++)
		cJSON_AddStringToObject(map, w->target->text[2 * i], w->target->text[2 * i + 1]);
}

static void add_numbers(cJSON *object, const char *key, uint32_t count, const uint64_t *number)
{
	cJSON *list = cJSON_AddArrayToObject(object, key);
	for (uint32_t i = 0; i < count; i++)
		cJSON_AddItemToArray(list, cJSON_CreateNumber((double)number[i]));
}

/* NULL when memory lacks. */
static char *make_header(const struct writing *w, const struct shard *shard)
{
	uint64_t place[2] = {0, 0};
	cJSON *root = cJSON_CreateObject();
	add_texts(w, root);
	for (uint32_t i = shard->first; i < shard->first + shard->weights; i++) {
		const struct skep_weight *weight = &w->weight[i];
		cJSON *object = cJSON_AddObjectToObject(root, weight->name);
		place[0] = place[1];
		place[1] += bytes(w, weight);
		cJSON_AddStringToObject(object, "dtype", w->target->dtype == SKEP_DTYPE_BF16 ? "BF16" : "F32");
		add_numbers(object, "shape", weight->dimensions, weight->shape);
		add_numbers(object, "data_offsets", 2, place);
	}
	char *text = cJSON_PrintUnformatted(root);
	cJSON_Delete(root);
	return text;
}

static char *make_index(const struct writing *w)
{
	uint64_t sum = 0;
	cJSON *root = cJSON_CreateObject(), *about = cJSON_AddObjectToObject(root, "metadata"),
	      *map = cJSON_AddObjectToObject(root, "weight_map");
	for (uint32_t s = 0; s < w->shards; s++) {
		const char *slash = strrchr(w->shard[s].path, '/');
		for (uint32_t i = 0; i < w->shard[s].weights; i++) {
			const struct skep_weight *weight = &w->weight[w->shard[s].first + i];
			cJSON_AddStringToObject(map, weight->name, slash ? slash + 1 : w->shard[s].path);
			sum += bytes(w, weight);
		}
	}
	cJSON_AddNumberToObject(about, "total_size", (double)sum);
	char *text = cJSON_Print(root);
	cJSON_Delete(root);
	return text;
}

/* ---- numbers ------------------------------------------------------------------------------------------------ */

/* Rounded to nearest, ties to even; a NaN stays one. */
static uint32_t bf16_of(float x)
{
	uint32_t bits = (uint32_t)skep_float_bits(x);
	if ((bits & 0x7fffffff) > 0x7f800000)
		return bits >> 16 | 0x40;
	return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

static void write_weight(const struct writing *w, const struct skep_weight *weight, FILE *to)
{
	unsigned char block[BLOCK * 4], *end = block;
	bool half = w->target->dtype == SKEP_DTYPE_BF16;
	uint64_t rows = weight->shape[0], columns = weight->dimensions > 1 ? weight->shape[1] : 1;
	for (uint64_t i = 0; i < rows; i++)
		for (uint64_t j = 0; j < columns; j++) {
			float x = weight->at[i * weight->step[0] + j * weight->step[1]];
			uint32_t bits = half ? bf16_of(x) : (uint32_t)skep_float_bits(x);
			for (uint32_t b = 0; b < (half ? 2 : 4); b++)
				*end++ = (unsigned char)(bits >> 8 * b);
			if (end - block > (ptrdiff_t)sizeof block - 4) {
				fwrite(block, 1, (size_t)(end - block), to);
				end = block;
			}
		}
	fwrite(block, 1, (size_t)(end - block), to);
}

/* ---- files -------------------------------------------------------------------------------------------------- */

/* Opens as any file does, with all of its tensors: so a header that memory was too short for is noticed here. */
static bool is_sound(struct writing *w, const struct shard *shard, FILE *written)
{
	struct skep_safetensors_file file;
	const char *temporary = w->outputs.output[w->outputs.count - 1].temporary;
	if (fflush(written) != 0 || ferror(written))
		return true; /* committing says why */
	if (!skep_safetensors_file_open(temporary, &file, w->diag))
		return false;
	bool good = file.tensors == shard->weights;
	skep_safetensors_file_close(&file);
	return good || fail(w, shard->path, "not enough memory");
}

static bool write_shard(struct writing *w, struct shard *shard)
{
	char *header = make_header(w, shard);
	if (header == NULL)
		return fail(w, shard->path, "not enough memory");
	FILE *file = skep_outputs_begin(&w->outputs, shard->path);
	if (file == NULL) {
		free(header);
		return false;
	}
	size_t length = strlen(header), blanks = (8 - length % 8) % 8;
	for (uint32_t b = 0; b < 8; b++)
		fputc((int)((uint64_t)(length + blanks) >> 8 * b & 0xff), file);
	fprintf(file, "%s%*s", header, (int)blanks, "");
	free(header);
	for (uint32_t i = 0; i < shard->weights && !ferror(file); i++)
		write_weight(w, &w->weight[shard->first + i], file);
	return is_sound(w, shard, file);
}

static bool write_index(struct writing *w)
{
	char *text = make_index(w);
	FILE *file = text != NULL ? skep_outputs_begin(&w->outputs, w->index) : NULL;
	if (file != NULL)
		fprintf(file, "%s\n", text);
	else
		fail(w, w->index, "not enough memory");
	free(text);
	return file != NULL;
}

/* From here on the new weights are the ones that are found: one file hides an index, and is hidden by none. */
static bool publish(struct writing *w)
{
	bool done = skep_outputs_commit(&w->outputs);
	if (done)
		unlink(w->shards == 1 ? w->index : w->target->path);
	return done;
}

bool skep_safetensors_write(const struct skep_safetensors_target *target, const struct skep_weight *weight,
	uint32_t weights, struct skep_diag *reterr)
{
	assert(weights > 0 && (target->dtype == SKEP_DTYPE_F32 || target->dtype == SKEP_DTYPE_BF16));
	struct writing w = {
		.target = target, .weight = weight, .weights = weights, .outputs.diag = reterr, .diag = reterr};
	bool ok = !reterr->set && cut(&w);
	for (uint32_t s = 0; ok && s < w.shards; s++)
		ok = write_shard(&w, &w.shard[s]);
	ok = ok && (w.shards == 1 || write_index(&w)) && publish(&w);
	skep_outputs_abandon(&w.outputs);
	free(w.shard);
	return ok;
}
