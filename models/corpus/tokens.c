/* SPDX-License-Identifier: Apache-2.0
 *
 * tokens.c - see tokens.h. Windows are numbered over the files in their order, training before validation; which window
 * a sample is comes from a keyed permutation, and which file a window is in from a binary search.
 */
#include "models/corpus/tokens.h"

#include <assert.h>
#include <glob.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/files.h"
#include "base/grow.h"
#include "models/corpus/token_file.h"
#include "models/layers/random.h"

enum { FILES_MAX = 16384, ROUNDS = 6 };

struct skep_tokens {
	struct skep_token_file *file; /* [files] */
	uint64_t *first;              /* [files + 1]: window of each file; the last, of all */
	uint32_t files;
	uint32_t own; /* files of training; the rest are validation's */
	uint32_t length, vocabulary;
	bool records;
	uint64_t windows[2]; /* by split */
};

/* ---- permutation -------------------------------------------------------------------------------------------- */

/* A Feistel network permutes the numbers below 4^bits, and what it sends beyond n goes through it again until it comes back
 * (Black and Rogaway 2002, "Ciphers with arbitrary finite domains"): 4^bits is below 4 n, so four times on average at most. */
uint64_t skep_permute(uint64_t key, uint64_t n, uint64_t i)
{
	assert(i < n && n <= UINT64_C(1) << 62);
	unsigned bits = 1;
	while (UINT64_C(1) << 2 * bits < n)
		bits++;
	const uint64_t mask = (UINT64_C(1) << bits) - 1;
	do {
		uint64_t left = i >> bits, right = i & mask;
		for (uint64_t r = 0; r < ROUNDS; r++) {
			uint64_t next = left ^ (skep_mix(skep_mix(key + r) ^ right) >> 32 & mask);
			left = right;
			right = next;
		}
		i = left << bits | right;
	} while (i >= n);
	return i;
}

/* ---- files -------------------------------------------------------------------------------------------------- */

static bool same(const struct skep_mapped *a, const struct skep_mapped *b)
{
	return a->device == b->device && a->inode == b->inode;
}

static bool add_file(struct skep_tokens *t, const char *path, enum skep_tokens_format format, struct skep_diag *reterr)
{
	if (t->files >= FILES_MAX || !skep_grow(&t->file, t->files, sizeof *t->file)) {
		skep_diag_set(reterr, path, 0, 0, NULL, "not enough memory for so many files (at most %d)", FILES_MAX);
		return false;
	}
	struct skep_token_file *file = &t->file[t->files];
	if (!skep_token_file_open(path, format, file, reterr))
		return false;
	t->files++;
	for (uint32_t f = 0; f + 1 < t->files; f++)
		if (same(&t->file[f].mapped, &file->mapped))
			skep_diag_set(reterr, path, 0, 0, NULL, "is named twice: its tokens would count twice");
	if (t->file[0].format != file->format || t->file[0].width != file->width)
		skep_diag_set(reterr, path, 0, 0, NULL, "is of another format than %s: use one format for all files",
			t->file[0].path);
	if (t->records && file->tokens % t->length != 0)
		skep_diag_set(reterr, path, 0, 0, NULL,
			"has %" PRIu64
			" bytes, which are no whole number of records of %u, a byte for the class and one for "
			"each of 3 colours of a pixel: it is cut short, or its images have another size than the model's",
			file->tokens, t->length);
	else if (!t->records && file->tokens <= t->length)
		skep_diag_set(reterr, path, 0, 0, NULL,
			"has %" PRIu64 " tokens, but one sample takes %" PRIu64 " (sequence + 1): leave it out, or use "
			"a shorter sequence",
			file->tokens, (uint64_t)t->length + 1);
	return !reterr->set;
}

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool find(struct skep_files *files, const char *from, bool given, const char *name, char *ret, size_t size)
{
	return given ? skep_file_find_given(files, from, name, ret, size)
	             : skep_file_find(files, from, name, ret, size);
}

/* The folder of the pattern is looked for as any file is; what follows it is matched there. */
static bool expand(
	struct skep_files *files, const struct skep_tokens_options *o, bool given, const char *pattern, glob_t *ret)
{
	char folder[4096], whole[8192];
	size_t cut = strcspn(pattern, "*?[");
	while (cut > 0 && pattern[cut - 1] != '/')
		cut--;
	if (cut >= sizeof folder || strlen(pattern) >= sizeof folder)
		return false;
	snprintf(whole, sizeof whole, "%.*s", (int)(cut > 1 ? cut - 1 : cut), pattern);
	if (cut > 0 ? !find(files, o->from, given, whole, folder, sizeof folder)
		    : !skep_files_here(files, folder, sizeof folder))
		return false;
	snprintf(whole, sizeof whole, "%s%s%s", folder, cut > 1 ? "/" : "", pattern + cut);
	if (glob(whole, GLOB_NOSORT, NULL, ret) == 0)
		return true;
	if (cut > 0 || o->from == NULL || strrchr(o->from, '/') == NULL)
		return false;
	snprintf(whole, sizeof whole, "%.*s/%s", (int)(strrchr(o->from, '/') - o->from), o->from, pattern);
	return glob(whole, GLOB_NOSORT, NULL, ret) == 0;
}

static bool add_path(struct skep_tokens *t, const struct skep_tokens_options *o, bool given, const char *name,
	struct skep_diag *reterr)
{
	char path[4096];
	if (find(reterr->files, o->from, given, name, path, sizeof path))
		return add_file(t, path, o->format, reterr);
	glob_t found = {0};
	bool ok = strpbrk(name, "*?[") != NULL && expand(reterr->files, o, given, name, &found);
	if (!ok)
		skep_diag_set(reterr, name, 0, 0, NULL, "no such file; looked in the working folder%s%s",
			o->from ? ", and beside and above " : "", o->from ? o->from : "");
	if (ok)
		qsort(found.gl_pathv, found.gl_pathc, sizeof *found.gl_pathv, by_bytes);
	for (size_t i = 0; ok && i < found.gl_pathc; i++)
		ok = add_file(t, found.gl_pathv[i], o->format, reterr);
	globfree(&found);
	return ok;
}

/* All of them: they are few beside the pixels. */
static bool check_classes(const struct skep_tokens *t, struct skep_diag *reterr)
{
	for (uint32_t f = 0; f < t->files; f++)
		for (uint64_t i = 0; i < t->file[f].tokens / t->length; i++) {
			const uint32_t class = t->file[f].first[i * t->length];
			if (class >= t->vocabulary) {
				skep_diag_set(reterr, t->file[f].path, 0, 0, NULL,
					"image %" PRIu64 " (from 0) is of class %u, but the model knows %u (0 to %u)",
					i, class, t->vocabulary, t->vocabulary - 1);
				return false;
			}
		}
	return true;
}

static bool check_ids(const struct skep_tokens *t, struct skep_diag *reterr)
{
	if (t->records)
		return check_classes(t, reterr);
	for (uint32_t f = 0; f < t->files; f++) {
		const struct skep_token_file *file = &t->file[f];
		uint64_t count = SKEP_TOKENS_CHECKED / t->files;
		count = count < file->tokens ? count : file->tokens;
		if (file->width == 1 && t->vocabulary >= 256)
			continue;
		if (!skep_token_file_fits(
			    file, 0, count, skep_token_file_largest(file, 0, count), t->vocabulary, reterr))
			return false;
	}
	return true;
}

/* ---- windows ------------------------------------------------------------------------------------------------ */

static bool count_windows(struct skep_tokens *t, double part, struct skep_diag *reterr)
{
	t->first = calloc((size_t)t->files + 1, sizeof *t->first);
	if (t->first == NULL) {
		skep_diag_set(reterr, t->file[0].path, 0, 0, NULL, "not enough memory");
		return false;
	}
	for (uint32_t f = 0; f < t->files; f++)
		t->first[f + 1] = t->first[f] + (t->file[f].tokens - !t->records) / t->length;
	uint64_t all = t->first[t->files], held_out = all - t->first[t->own];
	if (t->own == t->files && part > 0) {
		held_out = (uint64_t)llround(part * (double)all);
		held_out = held_out > 0 ? held_out : 1;
	}
	t->windows[SKEP_TOKENS_TRAINING] = all - held_out;
	t->windows[SKEP_TOKENS_HELD_OUT] = held_out;
	if (held_out >= all)
		skep_diag_set(reterr, t->file[0].path, 0, 0, NULL,
			"is too short: %" PRIu64 " samples of %u tokens, of which %" PRIu64
			" are for validation, leave none to train on",
			all, t->length, held_out);
	return !reterr->set;
}

static bool open_all(struct skep_tokens *t, const struct skep_tokens_options *o, struct skep_diag *reterr)
{
	for (uint32_t i = 0; i < o->trainings; i++)
		if (!add_path(t, o, o->training_given, o->training[i], reterr))
			return false;
	t->own = t->files;
	for (uint32_t i = 0; i < o->validations; i++)
		if (!add_path(t, o, o->validation_given, o->validation[i], reterr))
			return false;
	return count_windows(t, o->part, reterr) && check_ids(t, reterr);
}

struct skep_tokens *skep_tokens_open(const struct skep_tokens_options *options, struct skep_diag *reterr)
{
	assert(options->trainings > 0 && options->length > 0 && options->part >= 0 && options->part < 1);
	assert(options->vocabulary > 0 && options->vocabulary <= INT32_MAX);
	if (reterr->set)
		return NULL;
	struct skep_tokens *t = calloc(1, sizeof *t);
	if (t == NULL) {
		skep_diag_set(reterr, options->training[0], 0, 0, NULL, "not enough memory");
		return NULL;
	}
	t->length = options->length;
	t->vocabulary = options->vocabulary;
	t->records = options->records;
	if (open_all(t, options, reterr))
		return t;
	skep_tokens_close(t);
	return NULL;
}

void skep_tokens_close(struct skep_tokens *tokens)
{
	if (tokens == NULL)
		return;
	for (uint32_t f = 0; f < tokens->files; f++)
		skep_token_file_close(&tokens->file[f]);
	free(tokens->file);
	free(tokens->first);
	free(tokens);
}

void skep_tokens_describe(const struct skep_tokens *tokens, struct skep_tokens_facts *ret)
{
	*ret = (struct skep_tokens_facts){.files = tokens->files};
	memcpy(ret->windows, tokens->windows, sizeof ret->windows);
	for (uint32_t f = 0; f < tokens->files; f++) {
		ret->tokens += tokens->file[f].tokens;
		ret->unused += (tokens->file[f].tokens - !tokens->records) % tokens->length;
	}
}

/* ---- samples ------------------------------------------------------------------------------------------------ */

uint64_t skep_tokens_window(
	const struct skep_tokens *tokens, enum skep_tokens_split split, uint64_t seed, uint64_t index)
{
	uint64_t n = tokens->windows[split], epoch = index / n;
	uint64_t key = skep_mix(skep_random_key(seed, SKEP_STREAM_DATA) ^ skep_mix(2 * epoch + (uint64_t)split));
	uint64_t first = split == SKEP_TOKENS_TRAINING ? 0 : tokens->windows[SKEP_TOKENS_TRAINING];
	return first + skep_permute(key, n, index % n);
}

/* The file that a window is in, and where it begins there. */
static const struct skep_token_file *file_of(const struct skep_tokens *tokens, uint64_t window, uint64_t *ret_at)
{
	uint32_t low = 0, high = tokens->files; /* first[low] <= window < first[high] */
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		if (tokens->first[middle] <= window)
			low = middle;
		else
			high = middle;
	}
	*ret_at = (window - tokens->first[low]) * tokens->length;
	return &tokens->file[low];
}

const unsigned char *skep_tokens_record(
	const struct skep_tokens *tokens, enum skep_tokens_split split, uint64_t seed, uint64_t index)
{
	uint64_t at;
	assert(tokens->records && tokens->windows[split] > 0);
	const struct skep_token_file *file = file_of(tokens, skep_tokens_window(tokens, split, seed, index), &at);
	return file->first + at;
}

bool skep_tokens_sample(const struct skep_tokens *tokens, enum skep_tokens_split split, uint64_t seed, uint64_t index,
	int32_t *ret, struct skep_diag *reterr)
{
	assert(tokens->windows[split] > 0);
	uint64_t at, count = (uint64_t)tokens->length + 1;
	const struct skep_token_file *file = file_of(tokens, skep_tokens_window(tokens, split, seed, index), &at);
	uint32_t largest = skep_token_file_read(file, at, count, ret);
	return skep_token_file_fits(file, at, count, largest, tokens->vocabulary, reterr);
}
