/* SPDX-License-Identifier: Apache-2.0
 *
 * settings.c - takes a scenario's text apart into keys and values, and compares two of them.
 *
 * By keys and not by lines: an override makes the program print the whole file anew, without its comments. A list of numbers
 * or words, such as the stages of all machines, is one value.
 */
#include "base/yaml/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/reader.h"

struct setting {
	char key[128];
	const char *value; /* lives as long as the yaml, or is `list` */
	char *list;        /* ours, of several values; or NULL */
};

struct settings {
	struct skep_yaml *yaml;
	struct setting *item;
	size_t count;
};

/* Owns `list`, which may be NULL. */
static bool add(struct settings *s, const char *key, const char *value, char *list)
{
	if (!skep_grow(&s->item, s->count, sizeof *s->item)) {
		free(list);
		return false;
	}
	struct setting *item = &s->item[s->count++];
	snprintf(item->key, sizeof item->key, "%s", key);
	item->value = value;
	item->list = list;
	return true;
}

static bool is_list_of_scalars(const struct skep_yaml_node *node)
{
	if (skep_yaml_kind(node) != SKEP_YAML_LIST)
		return false;
	for (uint32_t i = 0; i < skep_yaml_length(node); i++)
		if (skep_yaml_kind(skep_yaml_item(node, i)) != SKEP_YAML_SCALAR)
			return false;
	return true;
}

static bool add_list(struct settings *s, struct skep_reader *r, const struct skep_yaml_node *node, const char *key)
{
	size_t size = 3, used = 0;
	for (uint32_t i = 0; i < skep_yaml_length(node); i++)
		size += strlen(skep_read_string(r, skep_yaml_item(node, i), NULL, "")) + 2;
	char *list = malloc(size);
	if (list == NULL)
		return false;
	for (uint32_t i = 0; i < skep_yaml_length(node); i++)
		used += (size_t)snprintf(list + used, size - used, "%s%s", i > 0 ? "," : "[",
			skep_read_string(r, skep_yaml_item(node, i), NULL, ""));
	snprintf(list + used, size - used, "%s]", used > 0 ? "" : "[");
	return add(s, key, list, list);
}

/* Adds every scalar at and below the node whose key is `key`. */
static bool collect(struct settings *s, const struct skep_yaml_node *node, const char *key)
{
	struct skep_diag diag = {0};
	struct skep_reader reader = {s->yaml, &diag};
	enum skep_yaml_kind kind = skep_yaml_kind(node);
	if (kind == SKEP_YAML_SCALAR)
		return add(s, key, skep_read_string(&reader, node, NULL, ""), NULL);
	if (is_list_of_scalars(node))
		return add_list(s, &reader, node, key);
	bool ok = true;
	for (uint32_t i = 0; ok; i++) {
		const char *name = "";
		char path[128];
		const struct skep_yaml_node *child = kind == SKEP_YAML_MAP ? skep_read_entry(&reader, node, i, &name)
		                                     : i < skep_yaml_length(node) ? skep_yaml_item(node, i)
		                                                                  : NULL;
		if (child == NULL)
			break;
		int length = kind == SKEP_YAML_MAP ? snprintf(path, sizeof path, "%s%s%s", key, key[0] ? "." : "", name)
		                                   : snprintf(path, sizeof path, "%s[%u]", key, i);
		ok = length >= 0 && collect(s, child, path);
	}
	return ok;
}

static bool read_settings(const char *text, struct settings *ret)
{
	struct skep_diag diag = {0};
	*ret = (struct settings){.yaml = skep_yaml_parse("scenario", text, strlen(text), &diag)};
	return ret->yaml != NULL && collect(ret, skep_yaml_root(ret->yaml), "");
}

static void finish_settings(struct settings *s)
{
	for (size_t i = 0; i < s->count; i++)
		free(s->item[i].list);
	free(s->item);
	skep_yaml_destroy(s->yaml);
}

/* "" if it is not there. Looked for from `near` on and round: the two lists are mostly alike. */
static const char *find(const struct settings *s, const char *key, size_t near)
{
	for (size_t i = 0; i < s->count; i++) {
		const struct setting *item = &s->item[(near + i) % s->count];
		if (strcmp(item->key, key) == 0)
			return item->value;
	}
	return "";
}

/* What does not fit ends in dots. */
static void shorten(char *ret, size_t size, const char *text)
{
	if ((size_t)snprintf(ret, size, "%s", text) >= size)
		memcpy(ret + size - 4, "...", 3);
}

static void differ(struct skep_differences *d, const char *key, const char *first, const char *second)
{
	if (d->count < SKEP_DIFFERENCES_SHOWN) {
		struct skep_difference *item = &d->item[d->count];
		snprintf(item->key, sizeof item->key, "%.95s", key);
		shorten(item->first, sizeof item->first, first);
		shorten(item->second, sizeof item->second, second);
	}
	d->count++;
}

/* Are both one number? 4.0e-3 is 0.004. Whole numbers may have more digits than a double keeps, and are what they are written. */
static bool same_number(const char *a, const char *b)
{
	static const char digits[] = "0123456789";
	char *a_end, *b_end;
	if (strcmp(a, b) == 0)
		return true;
	if (strspn(a, digits) == strlen(a) && strspn(b, digits) == strlen(b))
		return false;
	double x = strtod(a, &a_end), y = strtod(b, &b_end);
	return a_end != a && *a_end == '\0' && b_end != b && *b_end == '\0' && x == y;
}

/* Or one quantity, as 0.2 Gbit/s and 200 Mbit/s? */
static bool same_value(const char *a, const char *b)
{
	const char *expected;
	double x, y;
	bool same = same_number(a, b);
	for (int d = 0; !same && d <= SKEP_PRICE; d++)
		same = skep_quantity_parse(a, (enum skep_dimension)d, &x, &expected) &&
		       skep_quantity_parse(b, (enum skep_dimension)d, &y, &expected) && x == y;
	return same;
}

static void compare(const struct settings *a, const struct settings *b, skep_settings_counts *counts,
	bool same(const char *a, const char *b), struct skep_differences *ret)
{
	for (size_t i = 0; i < a->count; i++) {
		const char *value = find(b, a->item[i].key, i);
		if (!same(a->item[i].value, value) && (counts == NULL || counts(a->item[i].key)))
			differ(ret, a->item[i].key, a->item[i].value, value);
	}
	for (size_t i = 0; i < b->count; i++)
		if (b->item[i].value[0] != '\0' && find(a, b->item[i].key, i)[0] == '\0' &&
			(counts == NULL || counts(b->item[i].key)))
			differ(ret, b->item[i].key, "", b->item[i].value);
	ret->same = ret->count == 0;
}

static void compare_texts(const char *first, const char *second, skep_settings_counts *counts,
	bool same(const char *a, const char *b), struct skep_differences *ret)
{
	struct settings a, b = {0};
	*ret = (struct skep_differences){.same = strcmp(first, second) == 0};
	if (ret->same)
		return;
	if (read_settings(first, &a) && read_settings(second, &b))
		compare(&a, &b, counts, same, ret);
	finish_settings(&a);
	finish_settings(&b);
}

void skep_settings_compare(
	const char *first, const char *second, skep_settings_counts *counts, struct skep_differences *ret)
{
	compare_texts(first, second, counts, same_value, ret);
}

void skep_settings_compare_written(
	const char *first, const char *second, skep_settings_counts *counts, struct skep_differences *ret)
{
	compare_texts(first, second, counts, same_number, ret);
}

/* Keys are cut as in a difference. */
static const char *find_cut(const struct settings *s, const char *key)
{
	for (size_t i = 0; i < s->count; i++)
		if (strncmp(s->item[i].key, key, sizeof((struct skep_difference *)0)->key - 1) == 0)
			return s->item[i].value;
	return "";
}

void skep_settings_values(const char *text, const char *const key[], size_t count, char ret[][SKEP_SETTING_BYTES])
{
	struct settings s;
	bool read = read_settings(text, &s);
	for (size_t i = 0; i < count; i++)
		shorten(ret[i], SKEP_SETTING_BYTES, read ? find_cut(&s, key[i]) : "");
	finish_settings(&s);
}
