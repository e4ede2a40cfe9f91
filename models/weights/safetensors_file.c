/* SPDX-License-Identifier: Apache-2.0
 *
 * safetensors_file.c - see safetensors_file.h. cJSON parses the header; what it would let pass is refused before, by a look
 * at each character: the header of a real file has neither fractions, nor signs, nor the words true, false and null, nor
 * anything deeper than a shape.
 */
#include "models/weights/safetensors_file.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH_BYTES = 8, DEPTH_MAX = 3 };
#define WHOLE_MAX 9007199254740992.0 /* 2^53: up to here doubles hold every whole number */

#define fail(...) (skep_diag_set(reterr, file->path, 0, 0, NULL, __VA_ARGS__), false)

static const struct {
	const char *name;
	uint32_t bits;
	enum skep_dtype dtype;
} dtypes[] = {
	{"F32", 32, SKEP_DTYPE_F32},
	{"F16", 16, SKEP_DTYPE_F16},
	{"BF16", 16, SKEP_DTYPE_BF16},
	{"F64", 64, SKEP_DTYPE_F64},
	{"BOOL", 8, SKEP_DTYPE_OTHER},
	{"U8", 8, SKEP_DTYPE_OTHER},
	{"I8", 8, SKEP_DTYPE_OTHER},
	{"F8_E4M3", 8, SKEP_DTYPE_OTHER},
	{"F8_E5M2", 8, SKEP_DTYPE_OTHER},
	{"F8_E8M0", 8, SKEP_DTYPE_OTHER},
	{"I16", 16, SKEP_DTYPE_OTHER},
	{"U16", 16, SKEP_DTYPE_OTHER},
	{"I32", 32, SKEP_DTYPE_OTHER},
	{"U32", 32, SKEP_DTYPE_OTHER},
	{"I64", 64, SKEP_DTYPE_OTHER},
	{"U64", 64, SKEP_DTYPE_OTHER},
	{"C64", 64, SKEP_DTYPE_OTHER},
};

/* ---- characters --------------------------------------------------------------------------------------------- */

/* What is wrong with a string that begins behind its quote; *at goes to its closing one. */
static const char *scan_string(const char *text, size_t *at)
{
	for (; text[*at] != '"'; ++*at) {
		if ((unsigned char)text[*at] < 0x20)
			return text[*at] == 0 ? "the header ends inside of a text"
			                      : "a text may hold no control character";
		if (text[*at] == '\\' && text[++*at] == 0)
			return "the header ends inside of a text";
		if (strncmp(text + *at, "u0000", 5) == 0 && text[*at - 1] == '\\')
			return "a text may hold no zero byte";
	}
	return NULL;
}

static const char *scan_number(const char *text, size_t *at)
{
	size_t digits = strspn(text + *at, "0123456789");
	if (digits > 1 && text[*at] == '0')
		return "a number may not begin with 0";
	*at += digits - 1;
	return NULL;
}

/* What is wrong with the 0-terminated header, and where; NULL when it holds nothing but what headers are made of. */
static const char *scan(const char *text, size_t *ret_at)
{
	uint32_t depth = 0;
	const char *why = NULL;
	size_t at;
	for (at = 0; text[at] != 0 && why == NULL; at++) {
		const char c = text[at];
		if (c == '"') {
			at++;
			why = scan_string(text, &at);
		} else if (c >= '0' && c <= '9') {
			why = scan_number(text, &at);
		} else if (c == '{' || c == '[') {
			why = ++depth > DEPTH_MAX ? "nothing in a header is nested so deep" : NULL;
		} else if (c == '}' || c == ']') {
			why = depth-- == 0 ? "this closes nothing" : NULL;
		} else if (strchr(":, \t\r\n", c) == NULL) {
			why = "this character has no place in a header";
		}
		*ret_at = at;
		if (why != NULL)
			return why;
	}
	return NULL;
}

/* ---- values ------------------------------------------------------------------------------------------------- */

static bool whole(const cJSON *item, uint64_t *ret)
{
	if (!cJSON_IsNumber(item) || item->valuedouble > WHOLE_MAX)
		return false;
	*ret = (uint64_t)item->valuedouble;
	return true;
}

/* Elements of the shape; false if there are more than 64 bits count. */
static bool multiply(struct skep_safetensor *t)
{
	uint64_t elements = 1;
	for (uint32_t d = 0; d < t->dimensions; d++)
		if (__builtin_mul_overflow(elements, t->shape[d], &elements))
			return false;
	t->elements = elements;
	return true;
}

static bool take_dtype(const struct skep_safetensors_file *file, const cJSON *item, struct skep_safetensor *t,
	struct skep_diag *reterr)
{
	const char *name = cJSON_IsString(item) ? item->valuestring : "(no text)";
	for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
		if (strcmp(dtypes[i].name, name) != 0)
			continue;
		t->dtype = dtypes[i].dtype;
		t->dtype_name = dtypes[i].name;
		if (__builtin_mul_overflow(t->elements, dtypes[i].bits / 8, &t->bytes))
			return fail("tensor '%.100s': its shape is beyond any memory", t->name);
		return true;
	}
	return fail("tensor '%.100s': dtype '%.40s' is not known; weights are F32, F16, BF16 or F64", t->name, name);
}

static bool take_shape(const struct skep_safetensors_file *file, const cJSON *list, struct skep_safetensor *t,
	struct skep_diag *reterr)
{
	const cJSON *item;
	if (!cJSON_IsArray(list))
		return fail("tensor '%.100s': expected a list for its shape", t->name);
	cJSON_ArrayForEach(item, list)
	{
		if (t->dimensions >= SKEP_SAFETENSORS_DIMENSIONS)
			return fail("tensor '%.100s': more than %d dimensions", t->name, SKEP_SAFETENSORS_DIMENSIONS);
		if (!whole(item, &t->shape[t->dimensions++]))
			return fail("tensor '%.100s': expected whole numbers up to 2^53 in its shape", t->name);
	}
	return multiply(t) || fail("tensor '%.100s': its shape is beyond any memory", t->name);
}

static bool take_place(const struct skep_safetensors_file *file, uint64_t header, const cJSON *list,
	struct skep_safetensor *t, struct skep_diag *reterr)
{
	uint64_t begin, end, room = file->mapped.size - LENGTH_BYTES - header;
	if (cJSON_GetArraySize(list) != 2 || !whole(cJSON_GetArrayItem(list, 0), &begin) ||
		!whole(cJSON_GetArrayItem(list, 1), &end) || begin > end)
		return fail("tensor '%.100s': expected data_offsets [begin, end]", t->name);
	if (end > room)
		return fail("tensor '%.100s': its numbers end at byte %" PRIu64 ", but the file has %" PRIu64
			    " behind its header: it is cut short; fetch it again",
			t->name, end, room);
	if (end - begin != t->bytes)
		return fail("tensor '%.100s': its shape needs %" PRIu64 " bytes as %s, its data_offsets give %" PRIu64,
			t->name, t->bytes, t->dtype_name, end - begin);
	t->data = file->mapped.byte + LENGTH_BYTES + header + begin;
	return true;
}

static bool take_tensor(const struct skep_safetensors_file *file, uint64_t header, const cJSON *item,
	struct skep_safetensor *t, struct skep_diag *reterr)
{
	const cJSON *dtype = cJSON_GetObjectItemCaseSensitive(item, "dtype"),
		    *shape = cJSON_GetObjectItemCaseSensitive(item, "shape"),
		    *place = cJSON_GetObjectItemCaseSensitive(item, "data_offsets");
	*t = (struct skep_safetensor){.path = file->path, .name = strdup(item->string)};
	if (t->name == NULL)
		return fail("not enough memory");
	if (!cJSON_IsObject(item) || dtype == NULL || shape == NULL || !cJSON_IsArray(place) ||
		cJSON_GetArraySize(item) != 3)
		return fail(
			"tensor '%.100s': expected dtype, shape and data_offsets, each once and nothing else", t->name);
	return take_shape(file, shape, t, reterr) && take_dtype(file, dtype, t, reterr) &&
	       take_place(file, header, place, t, reterr);
}

static bool check_texts(const struct skep_safetensors_file *file, const cJSON *map, struct skep_diag *reterr)
{
	const cJSON *item;
	bool good = cJSON_IsObject(map);
	cJSON_ArrayForEach(item, map) good = good && cJSON_IsString(item);
	return good || fail("__metadata__: expected texts");
}

static bool take_all(struct skep_safetensors_file *file, uint64_t header, const cJSON *root, struct skep_diag *reterr)
{
	const cJSON *item;
	bool texts = false;
	file->tensor = calloc((size_t)cJSON_GetArraySize(root) + 1, sizeof *file->tensor);
	if (file->tensor == NULL)
		return fail("not enough memory for its %d tensors", cJSON_GetArraySize(root));
	cJSON_ArrayForEach(item, root)
	{
		if (strcmp(item->string, "__metadata__") == 0) {
			if (texts)
				return fail("has __metadata__ twice");
			texts = true;
			if (!check_texts(file, item, reterr))
				return false;
		} else if (!take_tensor(file, header, item, &file->tensor[file->tensors++], reterr)) {
			return false;
		}
	}
	return true;
}

/* ---- all together ------------------------------------------------------------------------------------------- */

static int by_place(const void *a, const void *b)
{
	const struct skep_safetensor *x = a, *y = b;
	if (x->data != y->data)
		return x->data < y->data ? -1 : 1;
	return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

static int by_name(const void *a, const void *b)
{
	const struct skep_safetensor *x = a, *y = b;
	return strcmp(x->name, y->name);
}

/* No hole, no overlap, and nothing behind the last one. */
static bool check_cover(const struct skep_safetensors_file *file, uint64_t header, struct skep_diag *reterr)
{
	const unsigned char *first = file->mapped.byte + LENGTH_BYTES + header, *at = first;
	for (uint32_t i = 0; i < file->tensors; i++) {
		const struct skep_safetensor *t = &file->tensor[i];
		if (t->data < at)
			return fail("the numbers of '%.100s' overlap those of '%.100s'", t->name, t[-1].name);
		if (t->data > at)
			return fail("%td bytes before those of '%.100s' belong to no tensor", t->data - at, t->name);
		at += t->bytes;
	}
	uint64_t left = (uint64_t)(file->mapped.byte + file->mapped.size - at);
	return left == 0 || fail("%" PRIu64 " bytes at its end belong to no tensor", left);
}

static bool check(struct skep_safetensors_file *file, uint64_t header, struct skep_diag *reterr)
{
	if (file->tensors == 0)
		return check_cover(file, header, reterr);
	qsort(file->tensor, file->tensors, sizeof *file->tensor, by_place);
	if (!check_cover(file, header, reterr))
		return false;
	qsort(file->tensor, file->tensors, sizeof *file->tensor, by_name);
	for (uint32_t i = 1; i < file->tensors; i++)
		if (strcmp(file->tensor[i - 1].name, file->tensor[i].name) == 0)
			return fail("has two tensors of the name '%.100s'", file->tensor[i].name);
	return true;
}

/* The line is the header's first, as files have no other. */
static bool fail_at(const struct skep_safetensors_file *file, const char *text, size_t at, const char *why,
	struct skep_diag *reterr)
{
	uint32_t column = 1;
	for (size_t i = 0; i < at; i++)
		column += ((unsigned char)text[i] & 0xc0) != 0x80;
	skep_diag_set(reterr, file->path, 1, column, text, "in the header: %s", why);
	return false;
}

static bool parse(struct skep_safetensors_file *file, uint64_t header, const char *text, struct skep_diag *reterr)
{
	size_t at = 0;
	const char *stopped = text, *why = scan(text, &at);
	if (why != NULL)
		return fail_at(file, text, at, why, reterr);
	cJSON *root = cJSON_ParseWithLengthOpts(text, (size_t)header + 1, &stopped, 1);
	bool ok = cJSON_IsObject(root);
	if (root == NULL)
		fail_at(file, text, (size_t)(stopped - text), "expected {\"name\": {\"dtype\": ...}, ...}", reterr);
	else if (!ok)
		fail_at(file, text, 0, "expected {", reterr);
	ok = ok && take_all(file, header, root, reterr) && check(file, header, reterr);
	cJSON_Delete(root);
	return ok;
}

/* What other files that carry weights begin with. */
static const char *stranger(const struct skep_mapped *mapped)
{
	if (mapped->size >= 8 && memcmp(mapped->byte, "version ", 8) == 0)
		return "is a pointer of Git LFS, not the weights themselves: fetch them with `git lfs pull`";
	if (mapped->size >= 4 && memcmp(mapped->byte, "PK\3\4", 4) == 0)
		return "is a file of PyTorch, which holds programs as well as weights: save it as safetensors "
		       "(save_pretrained does)";
	return NULL;
}

static bool read_file(struct skep_safetensors_file *file, struct skep_diag *reterr)
{
	uint64_t header = 0, size = file->mapped.size;
	const unsigned char *byte = file->mapped.byte;
	if (stranger(&file->mapped) != NULL)
		return fail("%s", stranger(&file->mapped));
	if (size < LENGTH_BYTES + 2)
		return fail("is no safetensors file: it has %" PRIu64 " bytes, too few for a header", size);
	for (uint32_t i = 0; i < LENGTH_BYTES; i++)
		header |= (uint64_t)byte[i] << 8 * i;
	if (header > SKEP_SAFETENSORS_HEADER_MAX)
		return fail("is no safetensors file: its header would have %" PRIu64 " bytes, at most %" PRIu64
			    " are allowed",
			header, SKEP_SAFETENSORS_HEADER_MAX);
	if (header > size - LENGTH_BYTES)
		return fail("is cut short: a header of %" PRIu64 " bytes in a file of %" PRIu64 "; fetch it again",
			header, size);
	byte += LENGTH_BYTES;
	if (header < 2 || byte[0] != '{')
		return fail("is no safetensors file: its header does not begin with {");
	if (memchr(byte, 0, header) != NULL || !skep_text_is_utf8((const char *)byte, header))
		return fail("its header is not UTF-8: it is damaged, or no safetensors file");
	char *text = strndup((const char *)byte, header);
	bool ok = text != NULL ? parse(file, header, text, reterr) : fail("not enough memory for its header");
	free(text);
	return ok;
}

bool skep_safetensors_file_open(const char *path, struct skep_safetensors_file *ret, struct skep_diag *reterr)
{
	*ret = (struct skep_safetensors_file){.path = strdup(path)};
	if (ret->path == NULL)
		skep_diag_set(reterr, path, 0, 0, NULL, "not enough memory");
	else if (skep_mapped_open(path, &ret->mapped, reterr) && read_file(ret, reterr))
		return true;
	skep_safetensors_file_close(ret);
	return false;
}

void skep_safetensors_file_close(struct skep_safetensors_file *file)
{
	for (uint32_t i = 0; i < file->tensors; i++)
		free(file->tensor[i].name);
	free(file->tensor);
	skep_mapped_close(&file->mapped);
	free(file->path);
	*file = (struct skep_safetensors_file){0};
}
