/* SPDX-License-Identifier: Apache-2.0
 *
 * vary.c - takes `--vary` and `--seeds` apart, and counts through the combinations.
 *
 * Keeps true: every key has at least one value and none twice; no key and no seed is there twice; the product is at most
 * SKEP_VARY_COMBINATIONS_MAX once skep_vary_check() has said so.
 */
#include "scenarios/vary/vary.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

#define SHOWN 60 /* bytes of a value in an error */

static bool no_memory(struct skep_diag *reterr)
{
	return skep_fail(reterr, "not enough memory for so many values");
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* Does a value or an item begin here? A quote elsewhere is a letter, as in YAML. */
static bool begins(const char *start, const char *at)
{
	while (at > start && (at[-1] == ' ' || at[-1] == '\t'))
		at--;
	return at == start || strchr("{[,:", at[-1]);
}

/* The end of the value that begins at `at`: a comma or the final 0 outside of all braces and quotes; NULL: one of them is open
 * there, or one is closed that was not opened. */
static const char *value_end(const char *at)
{
	const char *start = at;
	char open[64];
	size_t depth = 0;
	for (; *at != '\0'; at++) {
		bool quoted = depth > 0 && (open[depth - 1] == '"' || open[depth - 1] == '\'');
		bool escaped =
			quoted && (open[depth - 1] == '"' ? *at == '\\' && at[1] != '\0' : strncmp(at, "''", 2) == 0);
		if (escaped) {
			at++;
		} else if (depth > 0 && *at == open[depth - 1]) {
			depth--;
		} else if (!quoted && (strchr("{[", *at) || (strchr("\"'", *at) && begins(start, at)))) {
			if (depth == sizeof open)
				return NULL;
			open[depth++] = *at == '{' ? '}' : *at == '[' ? ']' : *at;
		} else if (!quoted && strchr("}]", *at)) {
			return NULL;
		} else if (depth == 0 && *at == ',') {
			break;
		}
	}
	return depth == 0 ? at : NULL;
}

static char *trimmed(const char *from, const char *to)
{
	while (from < to && (*from == ' ' || *from == '\t'))
		from++;
	while (to > from && (to[-1] == ' ' || to[-1] == '\t'))
		to--;
	return strndup(from, (size_t)(to - from));
}

static bool add_value(struct skep_vary_key *key, char *value, struct skep_diag *reterr)
{
	if (!value || !skep_grow(&key->value, key->values, sizeof *key->value)) {
		free(value);
		return no_memory(reterr);
	}
	key->value[key->values++] = value;
	if (value[0] == '\0')
		return skep_fail(reterr, "--vary %.*s: value %u is empty; an empty text is written ''", SHOWN, key->key,
			key->values);
	if (key->values <= SKEP_VARY_COMBINATIONS_MAX)
		return true;
	return skep_fail(reterr, "--vary %.*s: more than %u values", SHOWN, key->key, SKEP_VARY_COMBINATIONS_MAX);
}

/* The caller's to free; NULL: no memory. */
static void *sorted_copy(const void *items, size_t count, size_t bytes, int (*compare)(const void *a, const void *b))
{
	void *ret = malloc(count * bytes);
	if (ret) {
		memcpy(ret, items, count * bytes);
		qsort(ret, count, bytes, compare);
	}
	return ret;
}

static int compare_values(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool no_value_twice(const struct skep_vary_key *key, struct skep_diag *reterr)
{
	char **sorted = sorted_copy(key->value, key->values, sizeof *sorted, compare_values);
	if (!sorted)
		return no_memory(reterr);
	bool once = true;
	for (uint32_t i = 0; once && i + 1 < key->values; i++)
		if (strcmp(sorted[i], sorted[i + 1]) == 0) {
			skep_fail(reterr, "--vary %.*s: the value %.*s is there twice", SHOWN, key->key, SHOWN,
				sorted[i]);
			once = false;
		}
	free(sorted);
	return once;
}

static bool add_values(struct skep_vary_key *key, const char *at, struct skep_diag *reterr)
{
	for (;;) {
		const char *end = value_end(at);
		if (!end)
			return skep_fail(reterr, "--vary %.*s: a brace, bracket or quote has no partner in %.*s", SHOWN,
				key->key, SHOWN, at);
		if (!add_value(key, trimmed(at, end), reterr))
			return false;
		if (*end == '\0')
			return no_value_twice(key, reterr);
		at = end + 1;
	}
}

bool skep_vary_add(struct skep_vary *vary, const char *text, struct skep_diag *reterr)
{
	size_t length = strcspn(text, "=");
	if (length == 0 || text[length] == '\0' || text[length + 1] == '\0')
		return skep_fail(
			reterr, "--vary %.*s: expected KEY=A,B,C, as in --vary schedule.in_flight=2,4,8", SHOWN, text);
	if (vary->keys == SKEP_VARY_KEYS_MAX)
		return skep_fail(reterr, "--vary %.*s: at most %u keys can vary", SHOWN, text, SKEP_VARY_KEYS_MAX);
	struct skep_vary_key *key = &vary->key[vary->keys];
	key->key = strndup(text, length);
	if (!key->key)
		return no_memory(reterr);
	vary->keys++;
	for (uint32_t i = 0; i + 1 < vary->keys; i++)
		if (strcmp(vary->key[i].key, key->key) == 0)
			return skep_fail(
				reterr, "--vary %.*s is there twice: give all its values at once", SHOWN, key->key);
	if (strcmp(key->key, "seed") == 0)
		return skep_fail(reterr, "--vary seed: take --seeds, for example --seeds 1..10");
	return add_values(key, text + length + 1, reterr);
}

/* ---- seeds ------------------------------------------------------------------------------------------------------- */

static bool parse_seed(const char *text, const char **ret_end, uint64_t *ret)
{
	char *end;
	errno = 0;
	*ret = strtoull(text, &end, 10);
	*ret_end = end;
	return text[0] >= '0' && text[0] <= '9' && errno == 0 && *ret <= INT64_MAX;
}

static bool add_seed(struct skep_vary *vary, uint64_t seed, struct skep_diag *reterr)
{
	if (vary->seeds == SKEP_VARY_COMBINATIONS_MAX)
		return skep_fail(reterr, "--seeds: more than %u seeds", SKEP_VARY_COMBINATIONS_MAX);
	if (!skep_grow(&vary->seed, vary->seeds, sizeof *vary->seed))
		return no_memory(reterr);
	vary->seed[vary->seeds++] = seed;
	return true;
}

static int compare_seeds(const void *a, const void *b)
{
	uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;
	return (first > second) - (first < second);
}

static bool no_seed_twice(const struct skep_vary *vary, struct skep_diag *reterr)
{
	uint64_t *sorted = sorted_copy(vary->seed, vary->seeds, sizeof *sorted, compare_seeds);
	if (!sorted)
		return no_memory(reterr);
	bool once = true;
	for (uint32_t i = 0; once && i + 1 < vary->seeds; i++)
		if (sorted[i] == sorted[i + 1]) {
			skep_fail(reterr, "--seeds: %" PRIu64 " is there twice", sorted[i]);
			once = false;
		}
	free(sorted);
	return once;
}

bool skep_vary_add_seeds(struct skep_vary *vary, const char *text, struct skep_diag *reterr)
{
	for (const char *at = text;; at++) {
		uint64_t first, last;
		bool good = parse_seed(at, &at, &first);
		last = first;
		if (good && strncmp(at, "..", 2) == 0)
			good = parse_seed(at + 2, &at, &last);
		if (good && first > last)
			return skep_fail(reterr,
				"--seeds %.*s: %" PRIu64 " comes after %" PRIu64
				"; a range begins with the smaller, as in 1..10",
				SHOWN, text, first, last);
		if (!good || (*at != '\0' && *at != ','))
			return skep_fail(reterr,
				"--seeds %.*s: expected whole numbers up to 9223372036854775807, as in 1..10 or 1,2,5",
				SHOWN, text);
		for (uint64_t seed = first;; seed++) {
			if (!add_seed(vary, seed, reterr))
				return false;
			if (seed == last)
				break;
		}
		if (*at == '\0')
			return no_seed_twice(vary, reterr);
	}
}

/* ---- combinations ------------------------------------------------------------------------------------------------ */

bool skep_vary_check(const struct skep_vary *vary, struct skep_diag *reterr)
{
	uint64_t count = vary->seeds > 0 ? vary->seeds : 1;
	for (uint32_t i = 0; i < vary->keys && count <= SKEP_VARY_COMBINATIONS_MAX; i++)
		count *= vary->key[i].values;
	if (count <= SKEP_VARY_COMBINATIONS_MAX)
		return true;
	return skep_fail(reterr, "more than %u combinations of values and seeds: take fewer, or several sweeps",
		SKEP_VARY_COMBINATIONS_MAX);
}

void skep_vary_finish(struct skep_vary *vary)
{
	for (uint32_t i = 0; i < vary->keys; i++) {
		for (uint32_t v = 0; v < vary->key[i].values; v++)
			free(vary->key[i].value[v]);
		free(vary->key[i].value);
		free(vary->key[i].key);
	}
	free(vary->seed);
	*vary = (struct skep_vary){0};
}

uint32_t skep_vary_points(const struct skep_vary *vary)
{
	uint32_t points = 1;
	for (uint32_t i = 0; i < vary->keys; i++)
		points *= vary->key[i].values;
	return points;
}

uint32_t skep_vary_combinations(const struct skep_vary *vary)
{
	return skep_vary_points(vary) * (vary->seeds > 0 ? vary->seeds : 1);
}

const char *skep_vary_value(const struct skep_vary *vary, uint32_t point, uint32_t key)
{
	for (uint32_t i = vary->keys; i-- > key + 1;)
		point /= vary->key[i].values;
	return vary->key[key].value[point % vary->key[key].values];
}

bool skep_vary_seed(const struct skep_vary *vary, uint32_t number, uint64_t *ret)
{
	if (vary->seeds > 0)
		*ret = vary->seed[number % vary->seeds];
	return vary->seeds > 0;
}

void skep_vary_name(const struct skep_vary *vary, uint32_t number, char *ret, size_t size)
{
	uint32_t point = vary->seeds > 0 ? number / vary->seeds : number;
	uint64_t seed;
	size_t used = 0;
	ret[0] = '\0';
	for (uint32_t i = 0; i < vary->keys && used < size; i++)
		used += (size_t)snprintf(ret + used, size - used, "%s%s=%s", used ? ", " : "", vary->key[i].key,
			skep_vary_value(vary, point, i));
	if (used < size && skep_vary_seed(vary, number, &seed))
		snprintf(ret + used, size - used, "%sseed %" PRIu64, used ? ", " : "", seed);
}
