/* SPDX-License-Identifier: Apache-2.0
 *
 * test_safetensors.c - files of weights: what others wrote is read, of every dtype and in several files; what is wrong with
 * a file is said; what is written reads the same, and a disk that is full leaves what was there.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "models/weights/safetensors.h"

struct bench {
	char folder[64], path[128];
	struct skep_diag diag;
};

static void begin(struct bench *b)
{
	memset(b, 0, sizeof *b);
	strcpy(b->folder, "/tmp/skep-weights-XXXXXX");
	assert_non_null(mkdtemp(b->folder));
	strcpy(stpcpy(b->path, b->folder), "/model.safetensors");
}

static void finish(struct bench *b)
{
	char command[128];
	snprintf(command, sizeof command, "rm -r %s", b->folder);
	assert_int_equal(system(command), 0);
}

static void write_bytes(struct bench *b, const void *bytes, size_t size)
{
	FILE *file = fopen(b->path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

/* The header, its length before it, and `size` bytes of numbers behind it. */
static void write_file(struct bench *b, const char *header, const void *numbers, size_t size)
{
	char bytes[4096];
	uint64_t length = strlen(header);
	assert_true(8 + length + size <= sizeof bytes);
	for (int i = 0; i < 8; i++)
		bytes[i] = (char)(length >> 8 * i);
	memcpy(bytes + 8, header, length);
	memcpy(bytes + 8 + length, numbers, size);
	write_bytes(b, bytes, 8 + length + size);
}

static void refused(struct bench *b, const char *path, const char *why)
{
	assert_null(skep_safetensors_open(path, &b->diag));
	assert_true(b->diag.set);
	if (strstr(b->diag.message, why) == NULL)
		print_message("%s: %s\n", b->diag.file, b->diag.message);
	assert_non_null(strstr(b->diag.message, why));
	b->diag.set = false;
}

static struct skep_safetensors *opened(struct bench *b, const char *path)
{
	struct skep_safetensors *set = skep_safetensors_open(path, &b->diag);
	if (set == NULL)
		print_message("%s: %s\n", b->diag.file, b->diag.message);
	assert_non_null(set);
	return set;
}

/* ---- reading ------------------------------------------------------------------------------------------------ */

static void test_dtypes(void **state)
{
	(void)state;
	static const char header[] = "{\"__metadata__\":{\"format\":\"pt\"},\"whole\":{\"dtype\":\"F32\",\"shape\":[2,"
				     "2],\"data_offsets\":[0,16]},"
				     "\"half\":{\"dtype\":\"F16\",\"shape\":[5],\"data_offsets\":[16,26]},"
				     "\"brain\":{\"shape\":[2],\"data_offsets\":[26,30],\"dtype\":\"BF16\"},"
				     "\"mask\":{\"dtype\":\"BOOL\",\"shape\":[1,1,3],\"data_offsets\":[30,33]},"
				     "\"double\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[33,41]},"
				     "\"none\":{\"dtype\":\"F32\",\"shape\":[0,7],\"data_offsets\":[41,41]}}   ";
	static const unsigned char numbers[41] = {0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0, 0, 0, 0, 0, 1, 0, 0, 0, /* F32 */
		0x00, 0x3c, 0xff, 0x7b, 0x01, 0x00, 0x00, 0x80, 0x00, 0x7c,                                /* F16 */
		0x49, 0x40, 0x80, 0xbf, 1, 0, 1, /* BF16, BOOL */
		0x18, 0x2d, 0x44, 0x54, 0xfb, 0x21, 0x09, 0x40};
	struct bench b;
	float x[5];
	begin(&b);
	write_file(&b, header, numbers, sizeof numbers);
	struct skep_safetensors *set = opened(&b, b.path);
	assert_int_equal(skep_safetensors_count(set), 6);
	const struct skep_safetensor *t = skep_safetensors_find(set, "whole");
	assert_int_equal(t->dimensions, 2);
	assert_int_equal(t->elements, 4);
	skep_safetensor_read(t, 0, 4, x);
	assert_true(x[0] == 1 && x[1] == -2 && x[2] == 0 && x[3] == 0x1p-149f);
	skep_safetensor_read(t, 1, 2, x);
	assert_true(x[0] == -2 && x[1] == 0);
	skep_safetensor_read(skep_safetensors_find(set, "half"), 0, 5, x);
	assert_true(x[0] == 1 && x[1] == 65504 && x[2] == 0x1p-24f && x[3] == 0 && x[4] > 3e38f);
	skep_safetensor_read(skep_safetensors_find(set, "brain"), 0, 2, x);
	assert_true(x[0] == 3.140625f && x[1] == -1);
	t = skep_safetensors_find(set, "double");
	assert_int_equal(t->dimensions, 0);
	skep_safetensor_read(t, 0, 1, x);
	assert_true(x[0] == 3.14159265f);
	assert_int_equal(skep_safetensors_find(set, "mask")->dtype, SKEP_DTYPE_OTHER);
	assert_string_equal(skep_safetensors_find(set, "mask")->dtype_name, "BOOL");
	skep_safetensor_read(skep_safetensors_find(set, "none"), 0, 0, x);
	assert_null(skep_safetensors_find(set, "hal"));
	for (uint32_t i = 1; i < 6; i++)
		assert_true(strcmp(skep_safetensors_item(set, i - 1)->name, skep_safetensors_item(set, i)->name) < 0);
	skep_safetensors_close(set);
	finish(&b);
}

/* As `transformers` wrote them: tests/data/hf/README.md. */
static void test_files_of_others(void **state)
{
	(void)state;
	struct bench b = {0};
	struct skep_safetensors *set = opened(&b, "tests/data/hf/gpt2");
	assert_int_equal(skep_safetensors_count(set), 2 + 2 * 12 + 2);
	assert_null(skep_safetensors_find(set, "lm_head.weight")); /* it is wte.weight */
	assert_int_equal(skep_safetensors_find(set, "transformer.h.1.attn.c_attn.weight")->shape[1], 48);
	struct skep_safetensors *old = opened(&b, "tests/data/hf/gpt2-old/model.safetensors");
	const struct skep_safetensor *t = skep_safetensors_find(old, "wte.weight"),
				     *u = skep_safetensors_find(set, "transformer.wte.weight");
	assert_int_equal(t->dtype, SKEP_DTYPE_F16);
	for (uint64_t i = 0; i < t->elements; i++) {
		float x, y;
		skep_safetensor_read(t, i, 1, &x);
		skep_safetensor_read(u, i, 1, &y);
		assert_true(x - y < 0x1p-10f && y - x < 0x1p-10f && (i > 0 || x != 0));
	}
	skep_safetensors_close(old);
	skep_safetensors_close(set);
	set = opened(&b, "tests/data/hf/llama");
	assert_int_equal(skep_safetensors_count(set), 1 + 2 * 9 + 2);
	assert_string_equal(skep_safetensors_find(set, "lm_head.weight")->path,
		"tests/data/hf/llama/model-00003-of-00003.safetensors");
	skep_safetensors_close(set);
	set = opened(&b, "tests/data/hf/llama/model.safetensors.index.json");
	assert_int_equal(skep_safetensors_count(set), 1 + 2 * 9 + 2);
	skep_safetensors_close(set);
}

/* ---- what is wrong ------------------------------------------------------------------------------------------ */

#define ONE "{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}"

static void test_bad_headers(void **state)
{
	(void)state;
	static const struct {
		const char *header, *why;
		size_t numbers;
	} c[] = {
		{"{\"a\":" ONE "}", "is cut short", 7},
		{"{\"a\":" ONE "}", "1 bytes at its end belong to no tensor", 9},
		{"{}", "8 bytes at its end belong to no tensor", 8},
		{"{\"a\":" ONE ",\"a\":" ONE "}", "overlap", 8},
		{"{\"a\":" ONE ",\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,16]}}",
			"two tensors of the name 'a'", 16},
		{"{\"a\":" ONE ",\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}", "overlap", 12},
		{"{\"a\":" ONE ",\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[12,20]}}",
			"4 bytes before those of 'b' belong to no tensor", 20},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}", "4 bytes before those of 'a'",
			12},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}", "needs 12 bytes as F32", 8},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,8]}}", "needs 4 bytes as F32", 8},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}",
			"expected data_offsets [begin, end]", 8},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0]}}", "expected data_offsets [begin, end]",
			8},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":8}}", "expected dtype, shape and", 8},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":2,\"data_offsets\":[0,8]}}", "expected a list for its shape", 8},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[\"2\"],\"data_offsets\":[0,8]}}", "expected whole numbers", 8},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[2.0],\"data_offsets\":[0,8]}}", "no place in a header", 8},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[2e0],\"data_offsets\":[0,8]}}", "no place in a header", 8},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}}", "no place in a header", 8},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[02],\"data_offsets\":[0,8]}}", "may not begin with 0", 8},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[null],\"data_offsets\":[0,8]}}", "no place in a header", 8},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[[2]],\"data_offsets\":[0,8]}}", "nested so deep", 8},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,8]}}",
			"beyond any memory", 8},
		{"{\"a\":{\"dtype\":\"F64\",\"shape\":[4294967296,1073741824],\"data_offsets\":[0,8]}}",
			"beyond any memory", 8},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[9007199254740993000],\"data_offsets\":[0,8]}}", "up to 2^53", 8},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,2],\"data_offsets\":[0,8]}}",
			"more than 8 dimensions", 8},
		{"{\"a\":{\"dtype\":\"Q4\",\"shape\":[2],\"data_offsets\":[0,8]}}", "dtype 'Q4' is not known", 8},
		{"{\"a\":{\"dtype\":4,\"shape\":[2],\"data_offsets\":[0,8]}}", "dtype '(no text)' is not known", 8},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", "expected dtype, shape and data_offsets", 8},
		{"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"x\":1}}", "nothing else", 8},
		{"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", "each once", 8},
		{"{\"a\":[0,8]}", "expected dtype, shape and data_offsets", 8},
		{"{\"__metadata__\":{\"a\":1},\"a\":" ONE "}", "expected texts", 8},
		{"{\"__metadata__\":{},\"__metadata__\":{},\"a\":" ONE "}", "__metadata__ twice", 8},
		{"{\"a\":" ONE ",}", "in the header: expected", 8},
		{"{\"a\":" ONE "}x", "no place in a header", 8},
		{"{\"a\":" ONE "}{}", "in the header: expected", 8},
		{"{\"a\":" ONE "}}", "this closes nothing", 8},
		{"{\"a\":" ONE, "in the header: expected", 8},
		{"{\"a\":" ONE ",\"b", "ends inside of a text", 8},
		{"{\"a\\u0000b\":" ONE "}", "no zero byte", 8},
		{"{\"a\x01\":" ONE "}", "no control character", 8},
		{"{\"a\xff\":" ONE "}", "not UTF-8", 8},
		{"[\"a\"]", "does not begin with {", 8},
		{"{", "is no safetensors file", 0},
	};
	for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
		struct bench b;
		static const char zeros[64];
		begin(&b);
		write_file(&b, c[i].header, zeros, c[i].numbers);
		refused(&b, b.path, c[i].why);
		assert_string_equal(b.diag.file, b.path);
		finish(&b);
	}
}

/* The place in the header is shown. */
static void test_the_caret(void **state)
{
	(void)state;
	struct bench b;
	begin(&b);
	write_file(&b, "{\"\xc3\xa4\":{\"dtype\":true}}", "", 0);
	refused(&b, b.path, "no place");
	assert_int_equal(b.diag.line, 1);
	assert_int_equal(b.diag.column, 15);
	assert_int_equal(b.diag.text[b.diag.caret + 1], 't'); /* one letter has two bytes */
	finish(&b);
}

static void test_what_is_no_file_of_weights(void **state)
{
	(void)state;
	struct bench b;
	begin(&b);
	write_bytes(&b, "", 0);
	refused(&b, b.path, "too few for a header");
	write_bytes(&b, "version https://git-lfs.github.com/spec/v1\noid sha256:0\n", 56);
	refused(&b, b.path, "git lfs pull");
	write_bytes(&b, "PK\3\4 and so on", 14);
	refused(&b, b.path, "PyTorch");
	write_bytes(&b, "\x01\xe1\xf5\x05\0\0\0\0{}", 10);
	refused(&b, b.path, "its header would have 100000001 bytes");
	write_bytes(&b, "\xff\xff\xff\xff\xff\xff\xff\xff{}", 10);
	refused(&b, b.path, "at most 100000000 are allowed");
	write_bytes(&b, "\x03\0\0\0\0\0\0\0{}", 10);
	refused(&b, b.path, "is cut short: a header of 3 bytes in a file of 10");
	refused(&b, "/tmp/no-such-weights.safetensors", "cannot be opened");
	assert_int_equal(unlink(b.path), 0);
	refused(&b, b.folder, "neither model.safetensors nor");
	refused(&b, "/dev/null", "not a regular file");
	finish(&b);
}

/* Whatever end is missing. */
static void test_every_cut_is_noticed(void **state)
{
	(void)state;
	struct bench b;
	char bytes[1024];
	begin(&b);
	static const char numbers[16];
	write_file(&b, "{\"a\":" ONE ",\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,16]}}", numbers, 16);
	FILE *file = fopen(b.path, "rb");
	size_t size = fread(bytes, 1, sizeof bytes, file);
	fclose(file);
	skep_safetensors_close(opened(&b, b.path));
	for (size_t left = 0; left < size; left++) {
		write_bytes(&b, bytes, left);
		assert_null(skep_safetensors_open(b.path, &b.diag));
		assert_true(b.diag.set && b.diag.message[0] != 0);
		b.diag.set = false;
	}
	finish(&b);
}

static void test_bad_indices(void **state)
{
	(void)state;
	static const struct {
		const char *index, *why;
	} c[] = {
		{"{\"weight_map\":{\"a\":\"one.safetensors\",\"b\":\"two.safetensors\"}}", NULL},
		{"{\"metadata\":{\"total_size\":16.0},\n\t\"weight_map\":{\n\t\t\"a\":\"one.safetensors\",\n\t\t\"b\":"
		 "\"two.safetensors\"}}\n",
			NULL},
		{"{\"weight_map\":{\"a\":\"one.safetensors\"}}", NULL}, /* b is in no file that is named */
		{"{\"weight_map\":{\"a\":\"two.safetensors\",\"b\":\"one.safetensors\"}}",
			"has no tensor of the name 'a'"},
		{"{\"weight_map\":{\"a\":\"one.safetensors\",\"c\":\"two.safetensors\"}}",
			"has no tensor of the name 'c'"},
		{"{\"weight_map\":{\"a\":\"three.safetensors\"}}", "cannot be opened"},
		{"{\"weight_map\":{\"a\":\"../one.safetensors\"}}", "beside the index"},
		{"{\"weight_map\":{\"a\":\"\"}}", "there is nothing"},
		{"{\"weight_map\":{\"a\":\"one.safetensors\",\"b\":\"two.safetensors\",\"a\":\"one.safetensors\"}}",
			"stands twice"},
		{"{\"weight_map\":{\"a\":\"one.safetensors\",\"b\":\"same.safetensors\"}}", "has tensor 'a', as"},
		{"{\"weight_map\":{\"b\":\"both.safetensors\"}}", "names 1 tensors, but its files hold 2"},
		{"{\"weight\":{}}", "`weight_map` is missing"},
		{"{\"weight_map\":[]}", "weight_map"},
		{"{\"weight_map\":", "not YAML"},
	};
	struct bench b;
	static const char numbers[16];
	char index[128];
	begin(&b);
	strcpy(stpcpy(b.path, b.folder), "/one.safetensors");
	write_file(&b, "{\"a\":" ONE "}", numbers, 8);
	strcpy(stpcpy(b.path, b.folder), "/two.safetensors");
	write_file(&b, "{\"b\":" ONE "}", numbers, 8);
	strcpy(stpcpy(b.path, b.folder), "/same.safetensors");
	write_file(&b, "{\"a\":" ONE "}", numbers, 8);
	strcpy(stpcpy(b.path, b.folder), "/both.safetensors");
	write_file(&b, "{\"b\":" ONE ",\"c\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,16]}}", numbers, 16);
	strcpy(stpcpy(b.path, b.folder), "/model.safetensors.index.json");
	strcpy(index, b.path);
	for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
		write_bytes(&b, c[i].index, strlen(c[i].index));
		if (c[i].why == NULL)
			skep_safetensors_close(opened(&b, i == 0 ? b.folder : index));
		else
			refused(&b, index, c[i].why);
	}
	finish(&b);
}

/* ---- writing ------------------------------------------------------------------------------------------------ */

static float numbers_of[6] = {0, 1, 2, 3, 4, 5};
static float other[40];

/* A matrix kept transposed, and a vector. */
static void make_weights(struct skep_weight weight[2])
{
	weight[0] =
		(struct skep_weight){.name = "w", .dimensions = 2, .shape = {2, 3}, .at = numbers_of, .step = {1, 2}};
	weight[1] = (struct skep_weight){.name = "v", .dimensions = 1, .shape = {40, 1}, .at = other, .step = {1, 0}};
	for (uint32_t i = 0; i < 40; i++)
		other[i] = (float)i / 7;
}

static void expect_weights(struct bench *b, float tolerance)
{
	float x[40];
	struct skep_safetensors *set = opened(b, b->folder);
	assert_int_equal(skep_safetensors_count(set), 2);
	const struct skep_safetensor *t = skep_safetensors_find(set, "w");
	assert_true(t->dimensions == 2 && t->shape[0] == 2 && t->shape[1] == 3);
	skep_safetensor_read(t, 0, 6, x);
	for (uint32_t i = 0; i < 6; i++)
		assert_true(x[i] == numbers_of[i % 3 * 2 + i / 3]);
	skep_safetensor_read(skep_safetensors_find(set, "v"), 0, 40, x);
	for (uint32_t i = 0; i < 40; i++)
		assert_float_equal(x[i], other[i], tolerance * (float)i / 7);
	skep_safetensors_close(set);
}

static void expect_files(const struct bench *b, const char *names)
{
	char command[256], got[256] = "";
	snprintf(command, sizeof command, "ls %s | tr '\\n' ' '", b->folder);
	FILE *pipe = popen(command, "r");
	assert_non_null(pipe);
	got[fread(got, 1, sizeof got - 1, pipe)] = 0;
	pclose(pipe);
	assert_string_equal(got, names);
}

static void test_what_is_written_is_read(void **state)
{
	(void)state;
	struct bench b;
	struct skep_weight weight[2];
	begin(&b);
	make_weights(weight);
	static const char *const text[] = {"steps", "17 \"and\" more"};
	struct skep_safetensors_target target = {.path = b.path, .text = text, .texts = 1};
	assert_true(skep_safetensors_write(&target, weight, 2, &b.diag));
	expect_weights(&b, 0);
	expect_files(&b, "model.safetensors ");
	target.dtype = SKEP_DTYPE_BF16;
	assert_true(skep_safetensors_write(&target, weight, 2, &b.diag));
	expect_weights(&b, 0x1p-8f);
	target = (struct skep_safetensors_target){.path = b.path, .shard_bytes = 100};
	assert_true(skep_safetensors_write(&target, weight, 2, &b.diag));
	expect_weights(&b, 0);
	expect_files(
		&b, "model-00001-of-00002.safetensors model-00002-of-00002.safetensors model.safetensors.index.json ");
	target.shard_bytes = 184; /* all of them */
	assert_true(skep_safetensors_write(&target, weight, 2, &b.diag));
	expect_weights(&b, 0);
	expect_files(&b, "model-00001-of-00002.safetensors model-00002-of-00002.safetensors model.safetensors ");
	finish(&b);
}

/* bfloat16 is rounded to the nearest, ties to even; what is not finite stays so. */
static void test_rounding(void **state)
{
	(void)state;
	static const uint32_t bits[] = {0x3f800000, 0x3f807fff, 0x3f808000, 0x3f808001, 0x3f818000, 0x7f7fffff,
		0x7f800000, 0x7f800001, 0xffc00000, 0x80000001};
	static const uint32_t expected[] = {0x3f800000, 0x3f800000, 0x3f800000, 0x3f810000, 0x3f820000, 0x7f800000,
		0x7f800000, 0x7fc00000, 0xffc00000, 0x80000000};
	struct bench b;
	float x[10];
	begin(&b);
	memcpy(x, bits, sizeof x);
	struct skep_weight weight = {.name = "x", .dimensions = 1, .shape = {10, 1}, .at = x, .step = {1, 0}};
	struct skep_safetensors_target target = {.path = b.path, .dtype = SKEP_DTYPE_BF16};
	assert_true(skep_safetensors_write(&target, &weight, 1, &b.diag));
	struct skep_safetensors *set = opened(&b, b.path);
	skep_safetensor_read(skep_safetensors_item(set, 0), 0, 10, x);
	assert_memory_equal(x, expected, sizeof x);
	skep_safetensors_close(set);
	finish(&b);
}

/* A limit on the size of files stands in for a full disk; shards that fit do not replace the old ones either. */
static void test_a_full_disk_keeps_the_old_weights(void **state)
{
	(void)state;
	for (uint64_t shard_bytes = 0; shard_bytes <= 100; shard_bytes += 100) {
		struct bench b;
		struct skep_weight weight[2];
		struct rlimit old, small;
		begin(&b);
		make_weights(weight);
		struct skep_safetensors_target target = {.path = b.path, .shard_bytes = shard_bytes};
		assert_true(skep_safetensors_write(&target, weight, 2, &b.diag));
		numbers_of[0] = 77;
		assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
		small = (struct rlimit){240, old.rlim_max};
		signal(SIGXFSZ, SIG_IGN);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
		bool ok = skep_safetensors_write(&target, weight, 2, &b.diag);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
		signal(SIGXFSZ, SIG_DFL);
		numbers_of[0] = 0;
		assert_false(ok);
		assert_non_null(strstr(b.diag.message, "File too large; what was there before is unchanged"));
		b.diag.set = false;
		expect_weights(&b, 0);
		expect_files(&b, shard_bytes ? "model-00001-of-00002.safetensors model-00002-of-00002.safetensors "
					       "model.safetensors.index.json "
					     : "model.safetensors ");
		finish(&b);
	}
}

static void test_where_nothing_can_be_written(void **state)
{
	(void)state;
	struct bench b;
	struct skep_weight weight[2];
	begin(&b);
	make_weights(weight);
	struct skep_safetensors_target target = {.path = "/tmp/no-such-folder-of-skep/model.safetensors"};
	assert_false(skep_safetensors_write(&target, weight, 2, &b.diag));
	assert_non_null(strstr(b.diag.message, "the folder that it is to be in is not there: make it first"));
	b.diag.set = false;
	target.path = "/tmp/model.bin";
	assert_false(skep_safetensors_write(&target, weight, 2, &b.diag));
	assert_non_null(strstr(b.diag.message, "ends in .safetensors"));
	b.diag.set = false;
	target.path = b.path;
	strcpy(weight[1].name, "w");
	assert_false(skep_safetensors_write(&target, weight, 2, &b.diag));
	assert_non_null(strstr(b.diag.message, "two tensors of the name 'w'"));
	expect_files(&b, "");
	finish(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dtypes),
		cmocka_unit_test(test_files_of_others),
		cmocka_unit_test(test_bad_headers),
		cmocka_unit_test(test_the_caret),
		cmocka_unit_test(test_what_is_no_file_of_weights),
		cmocka_unit_test(test_every_cut_is_noticed),
		cmocka_unit_test(test_bad_indices),
		cmocka_unit_test(test_what_is_written_is_read),
		cmocka_unit_test(test_rounding),
		cmocka_unit_test(test_a_full_disk_keeps_the_old_weights),
		cmocka_unit_test(test_where_nothing_can_be_written),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
