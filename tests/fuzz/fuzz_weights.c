/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_weights.c - any bytes as a config.json: refused with a sound diagnosis, or a model whose heads divide it, which is
 * printed and read back the same. Then the bytes as a file of weights: refused with a sound diagnosis, or tensors that lie
 * in the file, have different names, can be read to the last number, and are written and read back the same.
 *
 *   clang -DSKEP_LIBFUZZER -fsanitize=fuzzer,address,undefined ...    then: fuzz_weights FOLDER
 *   without SKEP_LIBFUZZER it is a plain program: the files of its arguments, each also in damaged versions
 */
#include "models/read/hf_config.h"
#include "models/weights/safetensors.h"
#include "tests/fuzz/damage.h"

enum { DAMAGES = 1500, NUMBERS = 1 << 14 };

static struct {
	unsigned taken, refused, configs;
} tried; /* for the last line */

static void check_tensor(const struct skep_safetensors *set, uint32_t i, size_t size)
{
	static float number[NUMBERS];
	const struct skep_safetensor *t = skep_safetensors_item(set, i);
	must(i == 0 || strcmp(skep_safetensors_item(set, i - 1)->name, t->name) < 0);
	must(skep_safetensors_find(set, t->name) == t && t->bytes <= size && t->dimensions <= 8);
	uint64_t elements = 1;
	for (uint32_t d = 0; d < t->dimensions; d++)
		elements *= t->shape[d];
	must(elements == t->elements);
	if (t->dtype != SKEP_DTYPE_OTHER)
		for (uint64_t at = 0; at < elements; at += NUMBERS)
			skep_safetensor_read(t, at, elements - at < NUMBERS ? elements - at : NUMBERS, number);
}

/* Vectors of fp32, of which a file has a few at most here. */
static void write_and_read(const struct skep_safetensors *set)
{
	static float number[16][64], again[64];
	struct skep_weight weight[16];
	char folder[] = "/dev/shm/skep-fuzz-XXXXXX", path[64]; /* in memory, else on a disk */
	struct skep_diag diag = {0};
	uint32_t weights = 0;
	for (uint32_t i = 0; i < skep_safetensors_count(set) && weights < 16; i++) {
		const struct skep_safetensor *t = skep_safetensors_item(set, i);
		if (t->dtype != SKEP_DTYPE_F32 || t->elements > 64 || strlen(t->name) >= SKEP_WEIGHT_NAME ||
			strcmp(t->name, "__metadata__") == 0)
			continue;
		weight[weights] = (struct skep_weight){
			.dimensions = 1, .shape = {t->elements, 1}, .at = number[weights], .step = {1, 0}};
		strcpy(weight[weights].name, t->name);
		skep_safetensor_read(t, 0, t->elements, number[weights++]);
	}
	if (weights == 0)
		return;
	if (!mkdtemp(folder)) {
		strcpy(folder, "/tmp/skep-fuzz-XXXXXX");
		must(mkdtemp(folder));
	}
	snprintf(path, sizeof path, "%s/w.safetensors", folder);
	must(skep_safetensors_write(&(struct skep_safetensors_target){.path = path}, weight, weights, &diag));
	struct skep_safetensors *second = skep_safetensors_open(path, &diag);
	must(second && skep_safetensors_count(second) == weights);
	for (uint32_t w = 0; w < weights; w++) {
		const struct skep_safetensor *t = skep_safetensors_find(second, weight[w].name);
		must(t && t->elements == weight[w].shape[0]);
		skep_safetensor_read(t, 0, t->elements, again);
		must(memcmp(again, number[w], t->bytes) == 0);
	}
	skep_safetensors_close(second);
	must(unlink(path) == 0 && rmdir(folder) == 0);
}

static void try_config(const char *path)
{
	struct skep_hf_config first, second;
	struct skep_diag diag = {0};
	char again[64];
	int fd;
	if (!skep_hf_config_read(path, &first, &diag)) {
		check_diag(&diag);
		return;
	}
	tried.configs++;
	must(first.blocks > 0 && first.vocabulary > 0 && first.positions > 0 && first.feed_forward > 0);
	must(first.hidden % first.heads == 0 && first.heads % first.kv_heads == 0);
	char *text = skep_hf_config_print(&first);
	make_file(text, strlen(text), &fd, again, sizeof again);
	must(skep_hf_config_read(again, &second, &diag));
	must(first.hidden == second.hidden && first.kv_heads == second.kv_heads && first.tied == second.tied);
	must(first.norm_epsilon == second.norm_epsilon && first.rotary_base == second.rotary_base);
	close(fd);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[64];
	int fd;
	struct skep_diag diag = {0};
	make_file(data, size, &fd, path, sizeof path);
	try_config(path);
	struct skep_safetensors *set = skep_safetensors_open(path, &diag);
	must((set != NULL) == !diag.set);
	tried.taken += set != NULL;
	tried.refused += set == NULL;
	if (set == NULL)
		check_diag(&diag);
	for (uint32_t i = 0; set != NULL && i < skep_safetensors_count(set); i++)
		check_tensor(set, i, size);
	if (set != NULL && size < 4096)
		write_and_read(set);
	skep_safetensors_close(set);
	close(fd);
	return 0;
}

#ifndef SKEP_LIBFUZZER
int main(int argc, char **argv)
{
	bool ok = damage_files(argv + 1, argc - 1, DAMAGES);
	printf("%u taken, %u refused, %u configs\n", tried.taken, tried.refused, tried.configs);
	return ok && tried.taken > 0 && tried.refused > 0 && tried.configs > 0 ? 0 : 1;
}
#endif
