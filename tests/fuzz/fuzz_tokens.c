/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_tokens.c - any bytes as a file of tokens, in every format, and as two files that a pattern names: refused with a sound
 * diagnosis, or a corpus whose samples hold ids of the vocabulary and whose epochs have each window once.
 *
 *   clang -DSKEP_LIBFUZZER -fsanitize=fuzzer,address,undefined ...    then: fuzz_tokens FOLDER
 *   without SKEP_LIBFUZZER it is a plain program: the files of its arguments, each also in damaged versions
 */
#include <sys/stat.h>

#include "models/corpus/tokens.h"
#include "tests/fuzz/damage.h"

enum { DAMAGES = 300 };

static struct {
	unsigned taken, refused;
} tried; /* for the last line */

static void draw(const struct skep_tokens *tokens, const struct skep_tokens_options *o, uint64_t windows, int split)
{
	int32_t id[64];
	struct skep_diag diag = {0};
	uint64_t sum = 0;
	for (uint64_t i = 0; i < windows; i++) {
		must(skep_tokens_sample(tokens, (enum skep_tokens_split)split, 1, i, id, &diag));
		for (uint32_t t = 0; t <= o->length; t++)
			must(id[t] >= 0 && (uint32_t)id[t] < o->vocabulary);
		sum += skep_tokens_window(tokens, (enum skep_tokens_split)split, 1, i);
	}
	must(split != SKEP_TOKENS_TRAINING || sum == windows * (windows - 1) / 2);
}

static void try_format(const char *path, enum skep_tokens_format format, uint32_t vocabulary, uint32_t length)
{
	struct skep_tokens_options o = {.training = &path,
		.trainings = 1,
		.part = SKEP_TOKENS_VALIDATION,
		.format = format,
		.vocabulary = vocabulary,
		.length = length};
	struct skep_diag diag = {0};
	struct skep_tokens_facts facts;
	struct skep_tokens *tokens = skep_tokens_open(&o, &diag);
	must((tokens != NULL) == !diag.set);
	tried.taken += tokens != NULL;
	tried.refused += tokens == NULL;
	if (tokens == NULL) {
		check_diag(&diag);
		return;
	}
	skep_tokens_describe(tokens, &facts);
	must(facts.windows[0] > 0 && facts.windows[1] > 0);
	must((facts.windows[0] + facts.windows[1]) * length + facts.unused + 1 == facts.tokens);
	draw(tokens, &o, facts.windows[0], SKEP_TOKENS_TRAINING);
	draw(tokens, &o, facts.windows[1], SKEP_TOKENS_HELD_OUT);
	skep_tokens_close(tokens);
}

/* The bytes cut in two, each a file by itself: taken together, or with one of them twice, or with a folder among them. */
static void try_folder(const uint8_t *data, size_t size, enum skep_tokens_format format)
{
	static const char *const names[] = {"a.bin", "b.bin", "c"};
	char folder[] = "/dev/shm/skep-fuzz-XXXXXX", path[3][64], pattern[64], from[64];
	if (!mkdtemp(folder)) { /* in memory, else on a disk */
		strcpy(folder, "/tmp/skep-fuzz-XXXXXX");
		must(mkdtemp(folder));
	}
	size_t cut = size > 0 ? data[0] * size / 256 : 0;
	for (int i = 0; i < 2; i++) {
		snprintf(path[i], sizeof path[i], "%s/%s", folder, names[i]);
		FILE *file = fopen(path[i], "wb");
		size_t bytes = i == 0 ? cut : size - cut;
		must(file && fwrite(data + (i == 0 ? 0 : cut), 1, bytes, file) == bytes && fclose(file) == 0);
	}
	snprintf(path[2], sizeof path[2], "%s/%s", folder, names[2]);
	must(mkdir(path[2], 0777) == 0);
	snprintf(from, sizeof from, "%s/x", folder);
	for (int way = 0; way < 9; way++) {
		snprintf(pattern, sizeof pattern, "%s%s%s", way < 2 ? folder : "", way < 2 ? "/" : "",
			way == 5   ? "none*"
			: way == 0 ? "*"
				   : "?.bin");
		const char *const training[] = {way < 3 || way == 5 ? pattern
						: way == 6          ? "/dev/null"
								    : path[0],
			way == 7 ? "tests/fuzz/tokens/llmc-32.bin" : path[way == 4 || way == 8 ? 1 : 0]};
		struct skep_tokens_options o = {.training = training,
			.trainings = way == 3 || way == 4 || way >= 7 ? 2 : 1,
			.from = way == 2 ? from : NULL,
			.part = SKEP_TOKENS_VALIDATION,
			.format = format,
			.vocabulary = 256,
			.length = 3};
		struct skep_diag diag = {0};
		struct skep_tokens *tokens = skep_tokens_open(&o, &diag);
		must((tokens != NULL) == !diag.set && (tokens == NULL || (way != 3 && way != 0 && way != 6)));
		if (tokens != NULL) {
			struct skep_tokens_facts facts;
			skep_tokens_describe(tokens, &facts);
			draw(tokens, &o, facts.windows[0], SKEP_TOKENS_TRAINING);
			skep_tokens_close(tokens);
		} else
			check_diag(&diag);
	}
	must(unlink(path[0]) == 0 && unlink(path[1]) == 0 && rmdir(path[2]) == 0 && rmdir(folder) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[64];
	int fd;
	make_file(data, size, &fd, path, sizeof path);
	for (int format = SKEP_TOKENS_DETECT; format <= SKEP_TOKENS_LLMC; format++) {
		try_format(path, (enum skep_tokens_format)format, 256, 8);
		try_format(path, (enum skep_tokens_format)format, 50257, 1);
		try_format(path, (enum skep_tokens_format)format, INT32_MAX, 5);
	}
	close(fd);
	try_folder(data, size, SKEP_TOKENS_DETECT);
	try_folder(data, size, SKEP_TOKENS_BYTES);
	return 0;
}

#ifndef SKEP_LIBFUZZER
int main(int argc, char **argv)
{
	bool ok = damage_files(argv + 1, argc - 1, DAMAGES);
	printf("%u taken, %u refused\n", tried.taken, tried.refused);
	return ok && tried.taken > 0 && tried.refused > 0 ? 0 : 1;
}
#endif
