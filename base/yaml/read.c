/* SPDX-License-Identifier: Apache-2.0
 *
 * read.c - typed access to a parsed file: a value with its type and range at a key, or an error that says what was expected.
 *
 * Keeps true: after the first error nothing is read any more; a map remembers every key it was asked for, so that what is
 * left over is unknown and has a list of accepted keys to be compared with.
 */
#include "base/files/data.h"
#include "base/files/files.h"
#include "base/grow.h"
#include "base/text.h"
#include "base/yaml/quantity.h"
#include "base/yaml/tree.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_MAX_BYTES 200

/* ---- errors --------------------------------------------------------------------------------------------------- */

__attribute__((format(printf, 4, 0))) static void fail_at(
	struct skep_reader *r, const struct skep_yaml_node *node, struct skep_mark at, const char *format, va_list args)
{
	char message[sizeof r->diag->message];
	vsnprintf(message, sizeof message, format, args);
	if (!node)
		skep_diag_set(r->diag, r->yaml->path, 0, 0, NULL, "%s", message);
	else if (node->option)
		skep_tree_fail_option(r->diag, node->option, at, message);
	else
		skep_diag_set(r->diag, r->yaml->path, at.line, at.column, skep_text_line(r->yaml->text, at.line), "%s",
			message);
}

/* At the value of the key, if there is one. */
static const struct skep_yaml_node *value_of(const struct skep_yaml_node *node, const char *key)
{
	const struct skep_yaml_node *value =
		node && key && node->kind == SKEP_YAML_MAP ? skep_tree_find(node, key) : NULL;
	return value ? value : node;
}

void skep_reader_fail(
	struct skep_reader *r, const struct skep_yaml_node *node, const char *key, const char *format, ...)
{
	va_list args;
	node = value_of(node, key);
	va_start(args, format);
	fail_at(r, node, node ? node->at : (struct skep_mark){0}, format, args);
	va_end(args);
}

void skep_reader_fail_value(
	struct skep_reader *r, const struct skep_yaml_node *node, const char *key, const char *format, ...)
{
	va_list args;
	bool first = !r->diag->set;
	node = value_of(node, key);
	va_start(args, format);
	fail_at(r, node, node ? node->at : (struct skep_mark){0}, format, args);
	va_end(args);
	r->diag->of_value = first || r->diag->of_value;
}

__attribute__((format(printf, 3, 4))) static void fail_key(
	struct skep_reader *r, const struct skep_yaml_node *node, const char *format, ...)
{
	va_list args;
	bool first = !r->diag->set;
	va_start(args, format);
	fail_at(r, node, node->key_at, format, args);
	va_end(args);
	r->diag->of_value = first || r->diag->of_value;
}

/* "path: expected X, not `text`" */
static void fail_expected(struct skep_reader *r, const struct skep_yaml_node *node, const char *expected)
{
	char path[PATH_MAX_BYTES];
	skep_tree_path(node, path, sizeof path);
	if (node->kind != SKEP_YAML_SCALAR)
		skep_reader_fail_value(r, node, NULL, "%s: expected %s, not a %s", path, expected,
			node->kind == SKEP_YAML_MAP ? "group of keys" : "list");
	else if (node->text[0] == 0)
		skep_reader_fail_value(r, node, NULL, "%s: expected %s, but there is nothing", path, expected);
	else
		skep_reader_fail_value(r, node, NULL, "%s: expected %s, not `%.60s`", path, expected, node->text);
}

/* A child whose key is near the one that is missing, or NULL. */
static const struct skep_yaml_node *misspelt(const struct skep_yaml_node *map, const char *key)
{
	for (uint32_t i = 0; map && i < map->children; i++)
		if (skep_text_nearest(map->child[i]->key, &key, 1))
			return map->child[i];
	return NULL;
}

/* The method that a --set wrote into the map, which then needs keys that the file has not; NULL: none did. */
static const struct skep_yaml_node *method_of_option(const struct skep_yaml_node *map)
{
	const struct skep_yaml_node *method = map && map->kind == SKEP_YAML_MAP ? skep_tree_find(map, "method") : NULL;
	return method && method->option ? method : NULL;
}

static void fail_missing(struct skep_reader *r, const struct skep_yaml_node *map, const char *key)
{
	char path[PATH_MAX_BYTES] = "";
	if (map && map->parent)
		skep_tree_path(map, path, sizeof path);
	const char *dot = path[0] ? "." : "";
	const struct skep_yaml_node *near = misspelt(map, key), *method = method_of_option(map);
	if (near)
		fail_key(r, near, "key `%s%s%s` is missing; is `%.60s` misspelt?", path, dot, key, near->key);
	else
		skep_reader_fail_value(r, method ? method : map, NULL, "key `%s%s%s` is missing", path, dot, key);
}

/* ---- keys ----------------------------------------------------------------------------------------------------- */

/* The tree belongs to r->yaml, which may change; callers see it as constant so that only the reader marks its keys. */
static struct skep_yaml_node *own(const struct skep_yaml_node *node)
{
	return (struct skep_yaml_node *)node;
}

static void remember(struct skep_reader *r, struct skep_yaml_node *map, const char *key)
{
	for (uint32_t i = 0; i < map->asks; i++)
		if (strcmp(map->asked[i], key) == 0)
			return;
	if (!skep_grow(&map->asked, map->asks, sizeof *map->asked)) {
		skep_reader_fail(r, map, NULL, "not enough memory to read this");
		return;
	}
	map->asked[map->asks++] = key;
}

/* The value at `key`, known from now on; NULL when it is not there or after an error. */
static const struct skep_yaml_node *find(
	struct skep_reader *r, const struct skep_yaml_node *map, const char *key, bool required)
{
	if (r->diag->set)
		return NULL;
	if (map && !key)
		return map;
	if (map && map->kind != SKEP_YAML_MAP) {
		fail_expected(r, map, "keys with values (name: value)");
		return NULL;
	}
	struct skep_yaml_node *node = NULL;
	if (map) {
		remember(r, own(map), key);
		node = skep_tree_find(map, key);
	}
	if (node)
		node->known = true;
	else if (required)
		fail_missing(r, map, key ? key : "?");
	return node;
}

bool skep_read_has(struct skep_reader *r, const struct skep_yaml_node *map, const char *key)
{
	return find(r, map, key, false) != NULL;
}

const struct skep_yaml_node *skep_read_any(struct skep_reader *r, const struct skep_yaml_node *map, const char *key)
{
	return find(r, map, key, false);
}

static const struct skep_yaml_node *find_kind(struct skep_reader *r, const struct skep_yaml_node *map, const char *key,
	bool required, enum skep_yaml_kind kind, const char *expected)
{
	const struct skep_yaml_node *node = find(r, map, key, required);
	if (!node || node->kind == kind)
		return node;
	fail_expected(r, node, expected);
	return NULL;
}

const struct skep_yaml_node *skep_read_map(
	struct skep_reader *r, const struct skep_yaml_node *map, const char *key, bool required)
{
	return find_kind(r, map, key, required, SKEP_YAML_MAP, "keys with values (name: value)");
}

const struct skep_yaml_node *skep_read_list(
	struct skep_reader *r, const struct skep_yaml_node *map, const char *key, bool required)
{
	return find_kind(r, map, key, required, SKEP_YAML_LIST, "a list such as [a, b]");
}

const struct skep_yaml_node *skep_read_entry(
	struct skep_reader *r, const struct skep_yaml_node *map, uint32_t i, const char **ret_key)
{
	if (r->diag->set || !map || map->kind != SKEP_YAML_MAP || i >= map->children)
		return NULL;
	map->child[i]->known = true;
	*ret_key = map->child[i]->key;
	return map->child[i];
}

/* "a, b, c" of the words, in their order. */
static void join(const char *const words[], uint32_t count, char *ret, size_t size)
{
	size_t used = 0;
	ret[0] = 0;
	for (uint32_t i = 0; i < count && used < size; i++)
		used += (size_t)snprintf(ret + used, size - used, "%s%s", i > 0 ? ", " : "", words[i]);
}

static bool was_asked(const struct skep_yaml_node *map, const char *key)
{
	uint32_t i = 0;
	while (i < map->asks && strcmp(map->asked[i], key) != 0)
		i++;
	return i < map->asks;
}

void skep_reader_close_map(struct skep_reader *r, const struct skep_yaml_node *map)
{
	uint32_t there = map ? map->children : 0, all = map ? there + map->gones : 0;
	for (uint32_t i = 0; !r->diag->set && i < all; i++) {
		const struct skep_yaml_node *child = i < there ? map->child[i] : map->gone[i - there];
		if (i < there ? child->known : was_asked(map, child->key))
			continue;
		char path[PATH_MAX_BYTES], accepted[480];
		skep_tree_path(child, path, sizeof path);
		join(map->asked, map->asks, accepted, sizeof accepted);
		const char *near = skep_text_nearest(child->key, map->asked, map->asks);
		fail_key(r, child, "unknown key `%s`%s%s%s; accepted here: %s", path, near ? ", did you mean `" : "",
			near ? near : "", near ? "`?" : "", accepted);
	}
}

/* ---- keys of the past ------------------------------------------------------------------------------------------- */

/* The node at a path such as "sync.parts"; NULL if there is none. */
static const struct skep_yaml_node *at_path(const struct skep_yaml_node *node, const char *path)
{
	char key[64];
	while (node && path[0]) {
		size_t length = strcspn(path, ".");
		snprintf(key, sizeof key, "%.*s", (int)length, path);
		node = node->kind == SKEP_YAML_MAP ? skep_tree_find(node, key) : NULL;
		path += length + (path[length] == '.');
	}
	return node;
}

static void refuse_word(struct skep_reader *r, const struct skep_yaml_node *node, const struct skep_renamed *renamed)
{
	if (node->kind == SKEP_YAML_SCALAR && strcmp(node->text, renamed->word) == 0)
		skep_reader_fail_value(
			r, node, NULL, "%s: `%s` was renamed to `%s`", renamed->path, renamed->word, renamed->now);
	for (uint32_t i = 0; node->kind == SKEP_YAML_LIST && i < node->children && !r->diag->set; i++)
		refuse_word(r, node->child[i], renamed);
}

void skep_reader_refuse_renamed(
	struct skep_reader *r, const struct skep_yaml_node *root, const struct skep_renamed *renamed, size_t count)
{
	for (size_t i = 0; i < count && !r->diag->set; i++) {
		const struct skep_yaml_node *node = at_path(root, renamed[i].path);
		if (node && renamed[i].word)
			refuse_word(r, node, &renamed[i]);
		else if (node)
			fail_key(r, node, "`%s` was renamed to `%s`", renamed[i].path, renamed[i].now);
	}
}

void skep_reader_refuse_mistaken(struct skep_reader *r, const struct skep_yaml_node *root, const char *expected,
	const struct skep_mistaken *mistaken, size_t count)
{
	for (size_t i = 0; i < count && !r->diag->set; i++) {
		const struct skep_yaml_node *node = at_path(root, mistaken[i].key);
		if (node)
			fail_key(r, node, "this is no %s but %s", expected, mistaken[i].is);
	}
}

/* ---- values --------------------------------------------------------------------------------------------------- */

/* The text at the key; NULL when it is not there or after an error. */
static const char *find_text(struct skep_reader *r, const struct skep_yaml_node *map, const char *key, bool required,
	const char *expected, const struct skep_yaml_node **ret)
{
	*ret = find_kind(r, map, key, required, SKEP_YAML_SCALAR, expected);
	if (*ret && (*ret)->text[0] == 0) {
		fail_expected(r, *ret, expected);
		return NULL;
	}
	return *ret ? (*ret)->text : NULL;
}

const char *skep_read_string(
	struct skep_reader *r, const struct skep_yaml_node *map, const char *key, const char *fallback)
{
	const struct skep_yaml_node *node;
	const char *text = find_text(r, map, key, !fallback, "a text", &node);
	return text ? text : fallback ? fallback : "";
}

bool skep_read_given(const struct skep_yaml_node *map, const char *key)
{
	const struct skep_yaml_node *value = value_of(map, key);
	return value != NULL && value->option != NULL;
}

bool skep_read_find(struct skep_reader *r, const struct skep_yaml_node *map, const char *key, const char *from,
	const char *name, char *ret, size_t size)
{
	return skep_read_given(map, key) ? skep_file_find_given(r->diag->files, from, name, ret, size)
	                                 : skep_file_find(r->diag->files, from, name, ret, size);
}

const char *skep_read_path(struct skep_reader *r, const struct skep_yaml_node *map, const char *key, const char *in,
	const char *what, const char *from, char *ret, size_t size)
{
	const char *name = skep_read_string(r, map, key, NULL);
	char near[512];
	struct skep_data_folders own;
	if (r->diag->set || skep_read_find(r, map, key, from, name, ret, size))
		return name;
	bool here = r->diag->files == NULL || r->diag->files->root == NULL; /* else the folders are another machine's */
	if (here && skep_file_near_from(from, name, near, sizeof near)) {
		skep_reader_fail_value(r, map, key, "%s: no %s `%.200s`, did you mean `%.200s`?", in, what, name, near);
		return name;
	}
	skep_data_folders(&own);
	skep_reader_fail_value(r, map, key,
		"%s: no %s `%.200s` (looked beside %.100s, in the working directory, in the folders above it%s%.100s)",
		in, what, name, from, own.count > 0 ? ", and in skep's data, " : "", own.count > 0 ? own.path[0] : "");
	return name;
}

int skep_read_choice(struct skep_reader *r, const struct skep_yaml_node *map, const char *key,
	const char *const words[], int fallback)
{
	uint32_t count = 0;
	while (words[count])
		count++;
	char list[200], expected[240];
	join(words, count, list, sizeof list);
	snprintf(expected, sizeof expected, count > 1 ? "one of: %s" : "`%s`, the only one in this version", list);
	const struct skep_yaml_node *node;
	const char *text = find_text(r, map, key, fallback < 0, expected, &node);
	for (uint32_t i = 0; text && i < count; i++)
		if (strcmp(text, words[i]) == 0)
			return (int)i;
	if (text)
		fail_expected(r, node, expected);
	return fallback < 0 ? 0 : fallback;
}

bool skep_read_bool(struct skep_reader *r, const struct skep_yaml_node *map, const char *key, bool fallback)
{
	static const char *const words[] = {"false", "true", NULL};
	return skep_read_choice(r, map, key, words, fallback) == 1;
}

int64_t skep_read_integer(struct skep_reader *r, const struct skep_yaml_node *map, const char *key, int64_t low,
	int64_t high, int64_t fallback)
{
	char expected[120];
	snprintf(expected, sizeof expected, "a whole decimal number from %" PRId64 " to %" PRId64, low, high);
	const struct skep_yaml_node *node;
	const char *text = find_text(r, map, key, fallback == INT64_MIN, expected, &node);
	if (!text)
		return fallback == INT64_MIN ? low : fallback;
	const char *digits = text + (*text == '-' || *text == '+');
	size_t length = strspn(digits, "0123456789");
	errno = 0;
	int64_t value = strtoll(text, NULL, 10);
	bool whole = length > 0 && digits[length] == 0 && !(length > 1 && digits[0] == '0');
	if (whole && errno == 0 && value >= low && value <= high)
		return value;
	fail_expected(r, node, expected);
	return fallback == INT64_MIN ? low : fallback;
}

/* "a number from 0 to 1 s"; a bound that is infinite is none. */
static void print_range(
	const char *what, double low, double high, const char *low_text, const char *high_text, char *ret, size_t size)
{
	if (isinf(low) && isinf(high))
		snprintf(ret, size, "%s", what);
	else if (isinf(high))
		snprintf(ret, size, "%s of at least %s", what, low_text);
	else if (isinf(low))
		snprintf(ret, size, "%s of at most %s", what, high_text);
	else
		snprintf(ret, size, "%s from %s to %s", what, low_text, high_text);
}

/* In units of those of `text`, which is outside. */
static void print_quantities(const char *what, double low, double high, const char *text, enum skep_dimension dimension,
	char *ret, size_t size)
{
	char low_text[48], high_text[48];
	skep_quantity_bound(text, dimension, low, low_text, sizeof low_text);
	skep_quantity_bound(text, dimension, high, high_text, sizeof high_text);
	print_range(what, low, high, low_text, high_text, ret, size);
}

double skep_read_number(struct skep_reader *r, const struct skep_yaml_node *map, const char *key, double low,
	double high, double fallback)
{
	char expected[120], low_text[32], high_text[32];
	snprintf(low_text, sizeof low_text, "%.9g", low);
	snprintf(high_text, sizeof high_text, "%.9g", high);
	print_range("a decimal number", low, high, low_text, high_text, expected, sizeof expected);
	const struct skep_yaml_node *node;
	const char *end, *text = find_text(r, map, key, isnan(fallback), expected, &node);
	double value;
	if (text && skep_number_parse(text, &end, &value) && *end == 0 && isfinite(value) && value >= low &&
		value <= high)
		return value;
	if (text)
		fail_expected(r, node, expected);
	return isnan(fallback) ? low : fallback;
}

double skep_read_count(
	struct skep_reader *r, const struct skep_yaml_node *map, const char *key, double low, double high)
{
	char expected[120];
	snprintf(expected, sizeof expected, "a number from %.9g to %.9g, such as 5e8, 300M or 1B", low, high);
	const struct skep_yaml_node *node;
	const char *text = find_text(r, map, key, true, expected, &node);
	double value;
	if (text && skep_count_parse(text, &value) && value >= low && value <= high)
		return value;
	if (text)
		fail_expected(r, node, expected);
	return low;
}

double skep_read_quantity(struct skep_reader *r, const struct skep_yaml_node *map, const char *key,
	enum skep_dimension dimension, double low, double high, double fallback)
{
	double value = 0;
	const char *expected;
	char range[200];
	skep_quantity_parse("", dimension, &value, &expected);
	const struct skep_yaml_node *node;
	const char *text = find_text(r, map, key, isnan(fallback), expected, &node);
	if (text && !skep_quantity_parse(text, dimension, &value, &expected)) {
		fail_expected(r, node, expected);
	} else if (text && (value < low || value > high)) {
		print_quantities("a value", low, high, text, dimension, range, sizeof range);
		fail_expected(r, node, range);
	} else if (text) {
		return value;
	}
	return isnan(fallback) ? low : fallback;
}

/* The two sides of a text such as "100 ± 50 ms" (both signs have two bytes); false: it has no such sign. A first side without
 * a unit takes that of the second. */
static bool split(const char *text, char ret[2][64])
{
	const char *sign = strstr(text, "\xc2\xb1"), *end;
	double number;
	if (!sign)
		sign = strstr(text, "+-");
	if (!sign || (size_t)(sign - text) >= sizeof ret[0] / 2 || strlen(sign) >= sizeof ret[0] / 2)
		return false;
	snprintf(ret[0], sizeof ret[0], "%.*s", (int)(sign - text), text);
	snprintf(ret[1], sizeof ret[1], "%s", sign + strlen("+-") + strspn(sign + strlen("+-"), " "));
	for (size_t at = strlen(ret[0]); at > 0 && ret[0][at - 1] == ' '; at--)
		ret[0][at - 1] = 0;
	if (skep_number_parse(ret[0], &end, &number) && *end == 0 && skep_number_parse(ret[1], &end, &number))
		snprintf(ret[0] + strlen(ret[0]), sizeof ret[0] - strlen(ret[0]), "%.30s", end);
	return true;
}

double skep_read_spread(struct skep_reader *r, const struct skep_yaml_node *map, const char *key,
	enum skep_dimension dimension, double low, double high, double fallback, double *ret_spread)
{
	char side[2][64], range[200];
	const char *expected;
	double value;
	const struct skep_yaml_node *node = r->diag->set || !map || !key ? NULL : skep_tree_find(map, key);
	*ret_spread = 0;
	if (!node || node->kind != SKEP_YAML_SCALAR || !split(node->text, side))
		return skep_read_quantity(r, map, key, dimension, low, high, fallback);
	find(r, map, key, false);
	if (!skep_quantity_parse(side[0], dimension, &value, &expected) ||
		!skep_quantity_parse(side[1], dimension, ret_spread, &expected)) {
		snprintf(range, sizeof range, "two values, as in `100 ± 50 ms`: %.120s", expected);
		fail_expected(r, node, range);
	} else if (value < low || value > high || *ret_spread < 0 || *ret_spread > high) {
		print_quantities("a value and a deviation", low, high, node->text, dimension, range, sizeof range);
		fail_expected(r, node, range);
	} else {
		return value;
	}
	return isnan(fallback) ? low : fallback;
}
