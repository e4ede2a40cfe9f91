/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_shards.c - a folder of a stranger's model: config.json, an index and the files that it names, or one file alone. Refused
 * with a sound diagnosis that names a file of the folder, or tensors of which each lies in the file that the index gives; these
 * are then held against the model that config.json describes, and copied if they fit, in whole and as each rank of one, two and
 * three that share the model takes its part: what they have, put together, is the whole.
 *
 * The input is files, one after the other: a line with name and length, `model.safetensors.index.json 214`, then so many bytes
 * (fewer at the end of the input). Names are of letters, digits, `.` and `-`; a name that comes twice is that of its last bytes.
 * Beside the folder lies a sound file, ../outside.safetensors, which is not part of the model.
 *
 *   clang -DSKEP_LIBFUZZER -fsanitize=fuzzer,address,undefined ...    then: fuzz_shards tests/fuzz/shards
 *   without SKEP_LIBFUZZER it is a plain program: the files of its arguments, each also in damaged versions
 */
#include <cjson/cJSON.h>
#include <sys/stat.h>

#include "models/read/hf_config.h"
#include "models/stage/stage_weights.h"
#include "models/tensor/runs.h"
#include "models/weights/hf_weights.h"
#include "tests/fuzz/damage.h"

enum { DAMAGES = 400, FILES_MAX = 8, NAME = 48, WEIGHTS_MAX = 64, PARAMETERS_MAX = 1 << 16 /* of a layer */ };

static struct {
	unsigned taken, refused, fit, ranks;
} tried; /* for the last line */

struct folder {
	char above[32], path[48], file[FILES_MAX][NAME];
	unsigned files;
};

static bool is_name(const char *name, size_t length)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789.-";
	for (size_t i = 0; i < length; i++)
		if (strchr(letters, name[i]) == NULL || name[i] == 0)
			return false;
	return length > 0 && length < NAME && name[0] != '.';
}

/* One file of the input; what is left behind it, NULL at the end. */
static const uint8_t *put_file(struct folder *f, const uint8_t *at, const uint8_t *end)
{
	char line[NAME + 16], path[NAME + sizeof f->path + 1];
	const uint8_t *newline = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
	if (newline == NULL || newline - at >= (ptrdiff_t)sizeof line || f->files == FILES_MAX)
		return NULL;
	memcpy(line, at, (size_t)(newline - at));
	line[newline - at] = 0;
	size_t length = strcspn(line, " ");
	if (!is_name(line, length) || line[length] == 0)
		return NULL;
	unsigned long asked = strtoul(line + length + 1, NULL, 10), left = (unsigned long)(end - newline - 1);
	unsigned long bytes = asked < left ? asked : left;
	memcpy(f->file[f->files], line, length);
	f->file[f->files][length] = 0;
	snprintf(path, sizeof path, "%s/%s", f->path, f->file[f->files++]);
	FILE *file = fopen(path, "wb");
	must(file && fwrite(newline + 1, 1, bytes, file) == bytes && fclose(file) == 0);
	return newline + 1 + bytes;
}

/* Each tensor is in the file that the index gives, by another reader of JSON; without one there is one file. */
static void check_index(const struct folder *f, const struct skep_safetensors *set)
{
	static char text[1 << 19];
	const char *index = skep_safetensors_path(set);
	FILE *file = strstr(index, ".json") != NULL ? fopen(index, "rb") : NULL;
	size_t size = file != NULL ? fread(text, 1, sizeof text - 1, file) : 0;
	must(file == NULL || fclose(file) == 0);
	text[size] = 0;
	cJSON *root = file != NULL ? cJSON_Parse(text) : NULL;
	const cJSON *map = cJSON_GetObjectItemCaseSensitive(root, "weight_map");
	for (uint32_t i = 0; map != NULL && i < skep_safetensors_count(set); i++) {
		const struct skep_safetensor *t = skep_safetensors_item(set, i);
		const char *named = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(map, t->name));
		must(named == NULL || strcmp(named, t->path + strlen(f->path) + 1) == 0);
	}
	cJSON_Delete(root);
}

/* Each tensor is in a file of the folder, to its last number. */
static void check_set(const struct folder *f, const struct skep_safetensors *set)
{
	uint32_t tensors = skep_safetensors_count(set);
	for (uint32_t i = 0; i < tensors; i++) {
		const struct skep_safetensor *t = skep_safetensors_item(set, i);
		float last;
		must(i == 0 || strcmp(skep_safetensors_item(set, i - 1)->name, t->name) < 0);
		must(skep_safetensors_find(set, t->name) == t);
		must(strncmp(t->path, f->path, strlen(f->path)) == 0 &&
			strchr(t->path + strlen(f->path) + 1, '/') == NULL);
		if (t->dtype != SKEP_DTYPE_OTHER && t->elements > 0)
			skep_safetensor_read(t, t->elements - 1, 1, &last);
	}
	check_index(f, set);
}

/* The layer's parameters as the files have them, of a model in whole or of a shard; NULL: more than is tried here. */
static float *read_layer(const struct skep_model *model, uint32_t layer, const struct skep_safetensors *set)
{
	static struct skep_weight weight[WEIGHTS_MAX];
	struct skep_weight_names names = skep_hf_names(model);
	uint64_t parameters = skep_layer_of(model, layer).parameters;
	uint32_t weights = skep_hf_layer_weights(model, layer, NULL, NULL);
	if (weights > WEIGHTS_MAX || parameters > PARAMETERS_MAX)
		return NULL;
	float *parameter = calloc(parameters, sizeof *parameter);
	must(parameter && skep_hf_layer_weights(model, layer, parameter, weight) == weights);
	skep_weights_read(set, weight, weights, &names);
	return parameter;
}

static void take_run(void *context, const struct skep_run *run)
{
	const float *const *const to = context; /* the whole and the shard */
	must(memcmp(to[1] + run->own, to[0] + run->tensor->offset + run->at, run->count * sizeof **to) == 0);
}

/* Each rank has its part of the whole, and all ranks have all of it. */
static void try_ranks(const struct skep_model *model, uint32_t ranks, uint32_t layer,
	const struct skep_safetensors *set, float *whole)
{
	uint64_t parameters = skep_layer_of(model, layer).parameters;
	float *all = calloc(parameters, sizeof *all);
	must(all);
	for (uint32_t r = 0; r < ranks; r++) {
		struct skep_model shard;
		must(skep_model_shard(model, r, ranks, &shard));
		const struct skep_layer own = skep_layer_of(&shard, layer);
		float *part = read_layer(&shard, layer, set);
		must(part);
		skep_layer_runs(&own, take_run, (const float *[]){whole, part});
		skep_layer_put_shard(&own, part, all);
		free(part);
		skep_model_finish(&shard);
	}
	must(memcmp(all, whole, parameters * sizeof *all) == 0);
	free(all);
	tried.ranks += ranks;
}

static void try_layers(const struct skep_model *model, const struct skep_safetensors *set)
{
	for (uint32_t l = 0; l < model->layers; l++) {
		float *whole = read_layer(model, l, set);
		for (uint32_t ranks = 1; whole != NULL && ranks <= 3; ranks++) {
			const char *why = skep_model_refuses_shard(model, ranks);
			must(why == NULL || (ranks > 1 && why[0] != 0));
			if (why == NULL)
				try_ranks(model, ranks, l, set, whole);
		}
		free(whole);
	}
}

/* As `train.init.weights` takes it. */
static void try_model(const struct folder *f)
{
	struct skep_diag diag = {0};
	struct skep_model model;
	char path[64], *list = NULL;
	snprintf(path, sizeof path, "%s/config.json", f->path);
	if (!skep_hf_model_read(path, &model, &diag)) {
		check_diag(&diag);
		return;
	}
	struct skep_safetensors *set = skep_model_weights_open(&model, f->path, &list, &diag);
	must((set != NULL) == !diag.set && (set == NULL || list == NULL || list[0] == 0));
	if (set == NULL)
		check_diag(&diag);
	if (set != NULL)
		try_layers(&model, set);
	if (set != NULL && model.tied) { /* in two stages the head has a copy of its own of the table */
		skep_model_part(&model, 2);
		try_layers(&model, set);
	}
	tried.fit += set != NULL;
	free(list);
	skep_safetensors_close(set);
	skep_model_finish(&model);
}

static void make_folder(struct folder *f)
{
	static const char header[] = "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}";
	uint8_t sound[8 + sizeof header - 1 + 4] = {sizeof header - 1};
	char path[64];
	*f = (struct folder){.above = "/dev/shm/skep-fuzz-XXXXXX"}; /* in memory, else on a disk */
	if (!mkdtemp(f->above)) {
		strcpy(f->above, "/tmp/skep-fuzz-XXXXXX");
		must(mkdtemp(f->above));
	}
	snprintf(f->path, sizeof f->path, "%s/model", f->above);
	must(mkdir(f->path, 0777) == 0);
	memcpy(sound + 8, header, sizeof header - 1);
	snprintf(path, sizeof path, "%s/outside.safetensors", f->above);
	FILE *file = fopen(path, "wb");
	must(file && fwrite(sound, 1, sizeof sound, file) == sizeof sound && fclose(file) == 0);
}

static void remove_folder(const struct folder *f)
{
	char path[sizeof f->path + NAME];
	for (unsigned i = 0; i < f->files; i++) {
		snprintf(path, sizeof path, "%s/%s", f->path, f->file[i]);
		(void)!unlink(path); /* a name that came twice is gone */
	}
	snprintf(path, sizeof path, "%s/outside.safetensors", f->above);
	must(rmdir(f->path) == 0 && unlink(path) == 0 && rmdir(f->above) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct folder f;
	struct skep_diag diag = {0};
	make_folder(&f);
	for (const uint8_t *at = data; at != NULL;)
		at = put_file(&f, at, data + size);
	struct skep_safetensors *set = skep_safetensors_open(f.path, &diag);
	must((set != NULL) == !diag.set);
	tried.taken += set != NULL;
	tried.refused += set == NULL;
	if (set != NULL)
		check_set(&f, set);
	else {
		check_diag(&diag);
		must(strncmp(diag.file, f.path, strlen(f.path)) == 0);
	}
	skep_safetensors_close(set);
	try_model(&f);
	remove_folder(&f);
	return 0;
}

#ifndef SKEP_LIBFUZZER
int main(int argc, char **argv)
{
	bool ok = damage_files(argv + 1, argc - 1, DAMAGES);
	printf("%u taken, %u refused, %u fit the model, %u layers of a rank\n", tried.taken, tried.refused, tried.fit,
		tried.ranks);
	return ok && tried.taken > 0 && tried.refused > 0 && tried.fit > 0 && tried.ranks > 0 ? 0 : 1;
}
#endif
