/* SPDX-License-Identifier: Apache-2.0
 *
 * test_tokens.c - corpora of tokens: each format gives the ids that stand in it; an epoch has every window once; validation
 * and training share no target; workers draw disjoint windows; what is wrong with a file is said.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/hash.h"
#include "models/corpus/tokens.h"

struct bench {
	char folder[64], path[4][128];
	const char *name[4];
	struct skep_tokens_options o;
	struct skep_diag diag;
	struct skep_tokens *tokens;
	struct skep_tokens_facts facts;
};

static void begin(struct bench *b)
{
	memset(b, 0, sizeof *b);
	strcpy(b->folder, "/tmp/skep-tokens-XXXXXX");
	assert_non_null(mkdtemp(b->folder));
	b->o = (struct skep_tokens_options){
		.training = b->name, .trainings = 1, .part = SKEP_TOKENS_VALIDATION, .vocabulary = 256, .length = 8};
}

static void finish(struct bench *b)
{
	char command[128];
	skep_tokens_close(b->tokens);
	snprintf(command, sizeof command, "rm -r %s", b->folder);
	assert_int_equal(system(command), 0);
}

static void write_file(struct bench *b, uint32_t i, const char *name, const void *bytes, size_t size)
{
	char path[sizeof b->path[i]];
	snprintf(path, sizeof path, "%s/%s", b->folder, name);
	strcpy(b->path[i], path);
	b->name[i] = b->path[i];
	FILE *file = fopen(b->path[i], "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

/* Tokens first, first + 1 ..., of `width` bytes, behind a header of so many 32-bit numbers. */
static void write_tokens(struct bench *b, uint32_t i, const char *name, const uint32_t *header, uint32_t headers,
	uint32_t first, uint32_t count, uint32_t width)
{
	unsigned char *bytes = calloc(headers * 4 + (size_t)count * width + 1, 1), *to = bytes + (size_t)headers * 4;
	assert_non_null(bytes);
	for (uint32_t h = 0; h < headers * 4; h++)
		bytes[h] = (unsigned char)(header[h / 4] >> 8 * (h % 4));
	for (uint32_t t = 0; t < count * width; t++)
		to[t] = (unsigned char)((first + t / width) >> 8 * (t % width));
	write_file(b, i, name, bytes, headers * 4 + (size_t)count * width);
	free(bytes);
}

static void write_llmc(struct bench *b, uint32_t i, const char *name, uint32_t magic, uint32_t version, uint32_t says,
	uint32_t first, uint32_t count)
{
	uint32_t header[256] = {magic, version, says};
	write_tokens(b, i, name, header, 256, first, count, magic == 20240801 ? 4 : 2);
}

static void opened(struct bench *b)
{
	b->tokens = skep_tokens_open(&b->o, &b->diag);
	if (b->tokens == NULL)
		print_message("%s: %s\n", b->diag.file, b->diag.message);
	assert_non_null(b->tokens);
	skep_tokens_describe(b->tokens, &b->facts);
}

static void refused(struct bench *b, uint32_t file, const char *why)
{
	b->tokens = skep_tokens_open(&b->o, &b->diag);
	assert_null(b->tokens);
	assert_true(b->diag.set);
	assert_string_equal(b->diag.file, b->name[file]);
	if (strstr(b->diag.message, why) == NULL)
		print_message("%s\n", b->diag.message);
	assert_non_null(strstr(b->diag.message, why));
	b->diag.set = false;
}

/* ---- permutation -------------------------------------------------------------------------------------------- */

static void test_every_number_comes_once(void **state)
{
	(void)state;
	static const uint64_t n[] = {1, 2, 3, 4, 5, 15, 16, 17, 63, 64, 65, 1000, 4097};
	for (size_t c = 0; c < sizeof n / sizeof *n; c++)
		for (uint64_t key = 0; key < 20; key++) {
			bool seen[4097] = {false};
			for (uint64_t i = 0; i < n[c]; i++) {
				uint64_t to = skep_permute(key, n[c], i);
				assert_true(to < n[c] && !seen[to]);
				seen[to] = true;
			}
		}
	uint64_t huge = (UINT64_C(1) << 62) - 5; /* too many to see them all */
	assert_true(skep_permute(1, huge, 0) < huge && skep_permute(1, huge, 0) != skep_permute(1, huge, huge - 1));
}

/* Where number 3 of 10 goes, over 20,000 keys: 2,000 each but for chance (a spread of 42), and what follows it as well. */
static void test_keys_draw_evenly(void **state)
{
	(void)state;
	uint32_t where[10] = {0}, next[10] = {0};
	for (uint64_t key = 0; key < 20000; key++) {
		uint64_t to = skep_permute(key * 7919, 10, 3);
		where[to]++;
		next[(skep_permute(key * 7919, 10, 4) + 10 - to) % 10]++;
	}
	for (uint32_t i = 0; i < 10; i++)
		assert_in_range(where[i], 1800, 2200);
	assert_int_equal(next[0], 0);
	for (uint32_t i = 1; i < 10; i++)
		assert_in_range(next[i], 2222 - 220, 2222 + 220);
}

/* ---- what is drawn ------------------------------------------------------------------------------------------ */

static void expect_run(struct bench *b, uint64_t index, uint32_t first_of_corpus, uint32_t modulus)
{
	int32_t id[9];
	uint64_t window = skep_tokens_window(b->tokens, SKEP_TOKENS_TRAINING, 7, index);
	assert_true(skep_tokens_sample(b->tokens, SKEP_TOKENS_TRAINING, 7, index, id, &b->diag));
	for (uint32_t k = 0; k < 9; k++)
		assert_int_equal(id[k], (first_of_corpus + window * 8 + k) % modulus);
}

static void test_formats(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		uint32_t magic, version, width, first, vocabulary;
		enum skep_tokens_format format;
	} c[] = {
		{"a.txt", 0, 0, 1, 0, 256, SKEP_TOKENS_DETECT},
		{"a.bin", 0, 0, 1, 0, 256, SKEP_TOKENS_BYTES},
		{"a.bin", 0, 0, 2, 50000, 50257, SKEP_TOKENS_DETECT},
		{"a.bin", 20240520, 1, 2, 50000, 50257, SKEP_TOKENS_DETECT},
		{"a.bin", 20240520, 1, 2, 50000, 50257, SKEP_TOKENS_LLMC},
		{"a", 20240801, 7, 4, 128000, 128256, SKEP_TOKENS_DETECT},
	};
	for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
		struct bench b;
		begin(&b);
		b.o.format = c[i].format;
		b.o.vocabulary = c[i].vocabulary;
		if (c[i].magic)
			write_llmc(&b, 0, c[i].name, c[i].magic, c[i].version, 255, c[i].first, 255);
		else
			write_tokens(&b, 0, c[i].name, NULL, 0, c[i].first, 255, c[i].width);
		opened(&b);
		assert_int_equal(b.facts.tokens, 255);
		assert_int_equal(b.facts.unused, 6); /* 254 targets make 31 windows of 8 */
		assert_int_equal(b.facts.windows[SKEP_TOKENS_TRAINING], 28);
		assert_int_equal(b.facts.windows[SKEP_TOKENS_HELD_OUT], 3);
		for (uint64_t s = 0; s < 60; s++)
			expect_run(&b, s, c[i].first, UINT32_MAX);
		finish(&b);
	}
}

static void test_an_epoch_has_every_window_once(void **state)
{
	(void)state;
	struct bench b;
	begin(&b);
	write_tokens(&b, 0, "a.txt", NULL, 0, 0, 255, 1);
	opened(&b);
	uint32_t moved = 0, held = 0;
	for (uint64_t epoch = 0; epoch < 5; epoch++) {
		bool seen[31] = {false};
		for (uint64_t i = 0; i < 28; i++) {
			uint64_t w = skep_tokens_window(b.tokens, SKEP_TOKENS_TRAINING, 1, epoch * 28 + i);
			assert_true(w < 28 && !seen[w]);
			seen[w] = true;
			moved += w != skep_tokens_window(b.tokens, SKEP_TOKENS_TRAINING, 1, i);
		}
		for (uint64_t i = 0; i < 3; i++) {
			uint64_t w = skep_tokens_window(b.tokens, SKEP_TOKENS_HELD_OUT, 1, epoch * 3 + i);
			assert_true(w >= 28 && w < 31 && !seen[w]);
			seen[w] = true;
			held++;
		}
	}
	assert_true(moved > 90); /* of 112: later epochs have other orders */
	assert_int_equal(held, 15);
	finish(&b);
}

/* Of the whole order: so that a run of last year can be done again. */
static void test_the_order_is_pinned(void **state)
{
	(void)state;
	struct bench b;
	begin(&b);
	write_tokens(&b, 0, "a.txt", NULL, 0, 0, 255, 1);
	opened(&b);
	uint64_t hash = SKEP_HASH_EMPTY, other = SKEP_HASH_EMPTY;
	for (uint64_t i = 0; i < 200; i++) {
		hash = skep_hash_word(hash, skep_tokens_window(b.tokens, SKEP_TOKENS_TRAINING, 1, i));
		other = skep_hash_word(other, skep_tokens_window(b.tokens, SKEP_TOKENS_TRAINING, 2, i));
	}
	assert_int_equal(hash, UINT64_C(0x88fbcbe2949bb4fa));
	assert_true(hash != other);
	finish(&b);
}

/* Every token of the corpus but each file's first and the left-over ones is a target once; of validation, in no other split. */
static void test_each_token_is_a_target_once(void **state)
{
	(void)state;
	struct bench b;
	begin(&b);
	b.o.trainings = 2;
	b.o.vocabulary = 65536;
	write_tokens(&b, 0, "a.bin", NULL, 0, 0, 100, 2);
	write_tokens(&b, 1, "b.bin", NULL, 0, 1000, 203, 2);
	opened(&b);
	assert_int_equal(b.facts.files, 2);
	assert_int_equal(b.facts.unused, 99 % 8 + 202 % 8);
	uint32_t times[2000] = {0}, targets = 0;
	for (int split = 0; split < 2; split++)
		for (uint64_t i = 0; i < b.facts.windows[split]; i++) {
			int32_t id[9];
			assert_true(skep_tokens_sample(b.tokens, (enum skep_tokens_split)split, 3, i, id, &b.diag));
			for (uint32_t k = 1; k < 9; k++)
				times[id[k]]++;
		}
	for (uint32_t t = 0; t < 2000; t++) {
		bool target = (t > 0 && t <= 96) || (t > 1000 && t <= 1200);
		assert_int_equal(times[t], target);
		targets += times[t];
	}
	assert_int_equal(targets, b.facts.tokens - 2 - b.facts.unused);
	finish(&b);
}

/* The last target of a window must be there. */
static void test_left_over_tokens(void **state)
{
	(void)state;
	for (uint32_t count = 9; count <= 40; count++) {
		struct bench b;
		begin(&b);
		b.o.part = 0;
		write_tokens(&b, 0, "a.txt", NULL, 0, 0, count, 1);
		opened(&b);
		assert_int_equal(b.facts.windows[SKEP_TOKENS_TRAINING], (count - 9) / 8 + 1);
		assert_int_equal(b.facts.unused, (count - 1) % 8);
		finish(&b);
	}
}

static void test_files_of_validation(void **state)
{
	(void)state;
	struct bench b;
	begin(&b);
	b.o.vocabulary = 65536;
	write_tokens(&b, 0, "train.bin", NULL, 0, 0, 81, 2);
	write_tokens(&b, 1, "val.bin", NULL, 0, 1000, 41, 2);
	b.o.validation = &b.name[1];
	b.o.validations = 1;
	opened(&b);
	assert_int_equal(b.facts.windows[SKEP_TOKENS_TRAINING], 10);
	assert_int_equal(b.facts.windows[SKEP_TOKENS_HELD_OUT], 5);
	for (uint64_t i = 0; i < 30; i++) {
		int32_t id[9];
		assert_true(skep_tokens_sample(b.tokens, SKEP_TOKENS_TRAINING, 3, i, id, &b.diag));
		assert_true(id[8] <= 80);
		assert_true(skep_tokens_sample(b.tokens, SKEP_TOKENS_HELD_OUT, 3, i, id, &b.diag));
		assert_true(id[0] >= 1000);
	}
	skep_tokens_close(b.tokens);
	b.o.validations = 0;
	b.o.part = 0;
	opened(&b);
	assert_int_equal(b.facts.windows[SKEP_TOKENS_TRAINING], 10);
	assert_int_equal(b.facts.windows[SKEP_TOKENS_HELD_OUT], 0);
	finish(&b);
}

static void test_shards_by_pattern(void **state)
{
	(void)state;
	struct bench b;
	char pattern[128], from[128];
	begin(&b);
	write_llmc(&b, 2, "text_10.bin", 20240520, 1, 17, 200, 17);
	write_llmc(&b, 1, "text_02.bin", 20240520, 1, 17, 100, 17);
	write_llmc(&b, 0, "text_01.bin", 20240520, 1, 17, 0, 17);
	snprintf(pattern, sizeof pattern, "%s/text_??.bin", b.folder);
	b.name[0] = pattern;
	b.o.part = 0;
	opened(&b);
	assert_int_equal(b.facts.windows[SKEP_TOKENS_TRAINING], 6);
	for (uint64_t i = 0; i < 6; i++) {
		int32_t id[9];
		uint64_t window = skep_tokens_window(b.tokens, SKEP_TOKENS_TRAINING, 1, i);
		assert_true(skep_tokens_sample(b.tokens, SKEP_TOKENS_TRAINING, 1, i, id, &b.diag));
		assert_int_equal(id[0], window / 2 * 100 + window % 2 * 8);
	}
	skep_tokens_close(b.tokens);
	snprintf(from, sizeof from, "%s/deep", b.folder);
	assert_int_equal(mkdir(from, 0777), 0);
	snprintf(from, sizeof from, "%s/deep/scenario.yaml", b.folder);
	b.o.from = from;
	b.name[0] = strrchr(b.folder, '/') + 1; /* found above the folder of `from` */
	snprintf(pattern, sizeof pattern, "%s/text_*.bin", b.name[0]);
	b.name[0] = pattern;
	opened(&b);
	assert_int_equal(b.facts.files, 3);
	skep_tokens_close(b.tokens);
	snprintf(from, sizeof from, "%s/scenario.yaml", b.folder);
	b.name[0] = "text_[01]*.bin"; /* beside it */
	opened(&b);
	assert_int_equal(b.facts.files, 3);
	skep_tokens_close(b.tokens);
	b.name[0] = "test_*.bin";
	refused(&b, 0, "no such file");
	finish(&b);
}

/* The corpus that ships with the tree: models/text/README.md says how many tokens it has. */
static void test_tinyshakespeare(void **state)
{
	(void)state;
	struct bench b;
	int32_t id[129];
	char text[130] = "";
	memset(&b, 0, sizeof b);
	const char *path = "models/text/tinyshakespeare.txt";
	b.o = (struct skep_tokens_options){
		.training = &path, .trainings = 1, .part = 0.1, .vocabulary = 256, .length = 128};
	opened(&b);
	assert_int_equal(b.facts.tokens, 1115394);
	assert_int_equal(b.facts.windows[SKEP_TOKENS_TRAINING], 8714 - 871);
	assert_int_equal(b.facts.windows[SKEP_TOKENS_HELD_OUT], 871);
	uint64_t i = 0;
	while (skep_tokens_window(b.tokens, SKEP_TOKENS_TRAINING, 1, i) != 0)
		i++;
	assert_true(skep_tokens_sample(b.tokens, SKEP_TOKENS_TRAINING, 1, i, id, &b.diag));
	for (uint32_t t = 0; t < 129; t++)
		text[t] = (char)id[t];
	assert_memory_equal(text, "First Citizen:\nBefore we proceed any further, hear me speak.", 60);
	skep_tokens_close(b.tokens);
}

/* ---- what is wrong ------------------------------------------------------------------------------------------ */

static void test_bad_files(void **state)
{
	(void)state;
	struct bench b;
	begin(&b);
	write_file(&b, 0, "a.txt", "", 0);
	refused(&b, 0, "is empty");
	write_tokens(&b, 0, "a.txt", NULL, 0, 0, 8, 1);
	refused(&b, 0, "has 8 tokens, but one sample takes 9");
	write_tokens(&b, 0, "a.txt", NULL, 0, 0, 9, 1);
	refused(&b, 0, "leave none to train on");
	write_tokens(&b, 0, "a.bin", NULL, 0, 0, 101, 1);
	refused(&b, 0, "odd number of bytes, 101");
	write_tokens(&b, 0, "a.bin", NULL, 0, 200, 100, 2);
	refused(&b, 0, "token 56 (from 0) is 256, but the model knows 256 (0 to 255)");
	b.o.vocabulary = 300;
	write_tokens(&b, 0, "a.bin", NULL, 0, 201, 100, 2);
	refused(&b, 0, "token 99 (from 0) is 300, but the model knows 300 (0 to 299)");
	b.name[0] = b.folder;
	refused(&b, 0, "is a folder");
	b.name[0] = "/dev/zero";
	refused(&b, 0, "is not a regular file");
	b.name[0] = "/tmp/no-such-file-of-tokens";
	refused(&b, 0, "no such file");
	finish(&b);
}

static void test_bad_headers(void **state)
{
	(void)state;
	struct bench b;
	begin(&b);
	b.o.vocabulary = 65536;
	b.o.format = SKEP_TOKENS_LLMC;
	write_llmc(&b, 0, "a.bin", 20240521, 1, 100, 0, 100);
	refused(&b, 0, "begins with 20240521");
	write_llmc(&b, 0, "a.bin", 20240522, 1, 100, 0, 100);
	refused(&b, 0, "questions with choices");
	write_llmc(&b, 0, "a.bin", 20240520, 2, 100, 0, 100);
	refused(&b, 0, "is of version 2, expected 1");
	write_llmc(&b, 0, "a.bin", 20240801, 1, 100, 0, 100);
	refused(&b, 0, "is of version 1, expected 7");
	write_llmc(&b, 0, "a.bin", 20240520, 1, 101, 0, 100);
	refused(&b, 0, "is cut short: 1224 bytes, but by its header 101 tokens of 2 bytes make 1226");
	write_llmc(&b, 0, "a.bin", 20240520, 1, 99, 0, 100);
	refused(&b, 0, "is too long");
	write_llmc(&b, 0, "a.bin", 20240520, 1, UINT32_MAX, 0, 100);
	refused(&b, 0, "is cut short");
	write_llmc(&b, 0, "a.bin", 20240520, 1, 0, 0, 0);
	refused(&b, 0, "has 0 tokens");
	write_tokens(&b, 0, "a.bin", NULL, 0, 0, 100, 2);
	refused(&b, 0, "is cut short: 200 bytes");
	b.o.format = SKEP_TOKENS_NANOGPT;
	write_llmc(&b, 0, "a.bin", 20240520, 1, 100, 0, 100);
	refused(&b, 0, "has the header of llm.c");
	finish(&b);
}

static void test_files_that_do_not_fit_together(void **state)
{
	(void)state;
	struct bench b;
	begin(&b);
	b.o.vocabulary = 1 << 20;
	b.o.trainings = 2;
	write_llmc(&b, 0, "a.bin", 20240520, 1, 100, 0, 100);
	write_llmc(&b, 1, "b.bin", 20240801, 7, 100, 0, 100);
	refused(&b, 1, "is of another format");
	write_tokens(&b, 1, "b.bin", NULL, 0, 0, 100, 2);
	refused(&b, 1, "is of another format");
	b.name[1] = b.name[0];
	refused(&b, 1, "is named twice");
	strcpy(stpcpy(b.path[1], b.folder), "/c.bin");
	assert_int_equal(symlink(b.path[0], b.path[1]), 0);
	b.name[1] = b.path[1];
	refused(&b, 1, "is named twice");
	finish(&b);
}

/* Ids that do not fit into 31 bits, and an id that is beyond what is looked at when a large file is opened. */
static void test_ids_are_compared_when_drawn(void **state)
{
	(void)state;
	struct bench b;
	int32_t id[9];
	begin(&b);
	b.o.vocabulary = INT32_MAX;
	write_llmc(&b, 0, "a.bin", 20240801, 7, 100, UINT32_MAX - 50, 100);
	refused(&b, 0, "token 0 (from 0) is 4294967245");
	const uint64_t count = SKEP_TOKENS_CHECKED + 17;
	b.o.vocabulary = 50257;
	b.o.part = 0;
	write_file(&b, 0, "b.bin", "", 0);
	assert_int_equal(truncate(b.path[0], (off_t)(2 * count)), 0); /* zeros that take no room on the disk */
	FILE *file = fopen(b.path[0], "r+b");
	assert_non_null(file);
	assert_int_equal(fseek(file, (long)(2 * (count - 3)), SEEK_SET), 0);
	assert_int_equal(fwrite("\xff\xff", 1, 2, file), 2);
	fclose(file);
	opened(&b);
	uint64_t wrong = 0, last = b.facts.windows[SKEP_TOKENS_TRAINING] - 1, i = 0;
	while (skep_tokens_window(b.tokens, SKEP_TOKENS_TRAINING, 1, i) != last)
		i++;
	for (uint64_t j = i > 100 ? i - 100 : 0; j < i + 100 && j <= last; j++) {
		bool ok = skep_tokens_sample(b.tokens, SKEP_TOKENS_TRAINING, 1, j, id, &b.diag);
		assert_int_equal(ok, j != i);
		wrong += !ok;
	}
	assert_int_equal(wrong, 1);
	assert_non_null(strstr(b.diag.message, "token 67108878 (from 0) is 65535, but the model knows 50257"));
	finish(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_number_comes_once),
		cmocka_unit_test(test_keys_draw_evenly),
		cmocka_unit_test(test_formats),
		cmocka_unit_test(test_an_epoch_has_every_window_once),
		cmocka_unit_test(test_the_order_is_pinned),
		cmocka_unit_test(test_each_token_is_a_target_once),
		cmocka_unit_test(test_left_over_tokens),
		cmocka_unit_test(test_files_of_validation),
		cmocka_unit_test(test_shards_by_pattern),
		cmocka_unit_test(test_tinyshakespeare),
		cmocka_unit_test(test_bad_files),
		cmocka_unit_test(test_bad_headers),
		cmocka_unit_test(test_files_that_do_not_fit_together),
		cmocka_unit_test(test_ids_are_compared_when_drawn),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
