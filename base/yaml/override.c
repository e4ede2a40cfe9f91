/* SPDX-License-Identifier: Apache-2.0
 *
 * override.c - `--set key.path=value` on a parsed file, and the file as text again. What is printed reads back as the
 * same tree.
 */
#include "base/grow.h"
#include "base/text.h"
#include "base/yaml/tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

/* ---- one assignment ------------------------------------------------------------------------------------------- */

/* Kept by the yaml, because nodes point to it. */
static const char *keep_option(struct skep_yaml *yaml, const char *assignment)
{
	char *option = malloc(strlen(assignment) + sizeof "--set ");
	if (!option || !skep_grow(&yaml->option, yaml->options, sizeof *yaml->option)) {
		free(option);
		return NULL;
	}
	sprintf(option, "--set %s", assignment);
	yaml->option[yaml->options++] = option;
	return option;
}

static uint32_t characters(const char *from, const char *to)
{
	uint32_t count = 0, code;
	while (from < to) {
		uint32_t bytes = skep_utf8_next(from, (size_t)(to - from), &code);
		from += bytes > 0 ? bytes : 1;
		count++;
	}
	return count;
}

/* The column after the last character: of an unfinished value libyaml reports the line after the last one. */
static uint32_t end_column(const char *line)
{
	return characters(line, line + strcspn(line, "\r\n")) + 1;
}

void skep_tree_fail_option(struct skep_diag *diag, const char *option, struct skep_mark at, const char *message)
{
	const char *equals = strchr(option, '='), *line = skep_text_line(option, at.line > 0 ? at.line : 1);
	uint32_t before = at.line == 1 && equals != NULL ? characters(option, equals + 1) : 0;
	uint32_t column = at.column > 0 ? before + at.column : 0;
	if (*line == 0) {
		while (*line == 0 && at.line > 1)
			line = skep_text_line(option, --at.line);
		column = end_column(line);
	}
	skep_diag_set(diag, option, 0, column, line, "%s", message);
}

/* The place of a key in the option's path. */
static struct skep_mark path_mark(const char *path, const char *key)
{
	return (struct skep_mark){0, (uint32_t)(sizeof "--set " - 1) + characters(path, key) + 1};
}

static struct skep_yaml_node *add(struct skep_yaml_node *map, const char *key, struct skep_yaml_node *value,
	struct skep_mark at, const char *option)
{
	if (value)
		value->key = strdup(key);
	if (!value || !value->key || !skep_tree_append(map, value)) {
		skep_tree_destroy(value);
		return NULL;
	}
	value->option = option;
	value->key_at = at;
	if (value->at.line == 0) /* a group that is on the way */
		value->at = at;
	return value;
}

static void replace(struct skep_yaml_node *old, struct skep_yaml_node *value, struct skep_mark at)
{
	struct skep_yaml_node *map = old->parent;
	for (uint32_t i = 0; i < map->children; i++)
		if (map->child[i] == old)
			map->child[i] = value;
	value->parent = map;
	value->key = old->key;
	value->key_at = at;
	old->key = NULL;
	skep_tree_destroy(old);
}

/* YAML's word for nothing, without quotes around it. Its other one, `~`, many shells make a folder of. */
static bool is_nothing(const struct skep_yaml_node *value)
{
	return value->kind == SKEP_YAML_SCALAR && value->style == (int)YAML_PLAIN_SCALAR_STYLE &&
	       strcmp(value->text, "null") == 0;
}

/* Takes `mark` over, which stands for what is gone. `old`: a child of the map, or NULL. */
static bool take_away(
	struct skep_yaml_node *map, const char *key, struct skep_yaml_node *old, struct skep_yaml_node *mark)
{
	mark->key = strdup(key);
	if (!mark->key || !skep_grow(&map->gone, map->gones, sizeof *map->gone)) {
		skep_tree_destroy(mark);
		return false;
	}
	mark->parent = map;
	map->gone[map->gones++] = mark;
	uint32_t at = 0;
	while (at < map->children && map->child[at] != old)
		at++;
	if (at < map->children)
		memmove(&map->child[at], &map->child[at + 1], (--map->children - at) * sizeof *map->child);
	skep_tree_destroy(old);
	return true;
}

/* Keys of maps within the value that it gives nothing to are not there. False: no memory. */
static bool take_nothings_away(struct skep_yaml_node *value)
{
	for (uint32_t i = 0; i < value->children;) {
		struct skep_yaml_node *child = value->child[i];
		if (value->kind != SKEP_YAML_MAP || !is_nothing(child)) {
			if (!take_nothings_away(child))
				return false;
			i++;
			continue;
		}
		if (!skep_grow(&value->gone, value->gones, sizeof *value->gone))
			return false;
		value->gone[value->gones++] = child;
		memmove(&value->child[i], &value->child[i + 1], (--value->children - i) * sizeof *value->child);
	}
	return true;
}

/* Takes the value over and puts it at the path, which ends in '='; makes the maps on the way. False without a diagnosis: no
 * memory. */
static bool assign(struct skep_yaml *yaml, const char *path, struct skep_yaml_node *value, struct skep_diag *reterr)
{
	struct skep_yaml_node *map = yaml->root;
	const char *key = path;
	for (;;) {
		size_t length = strcspn(key, ".=");
		char name[128];
		if (length == 0 || length >= sizeof name || map->kind != SKEP_YAML_MAP) {
			char message[sizeof reterr->message];
			snprintf(message, sizeof message, "`%.*s` does not lead to a key: %s", (int)strcspn(path, "="),
				path,
				map->kind != SKEP_YAML_MAP
					? "what is before the last dot has a value and no keys in it"
					: "expected names with dots between, as in train.until.steps=100");
			skep_tree_fail_option(reterr, value->option, path_mark(path, key), message);
			break;
		}
		snprintf(name, sizeof name, "%.*s", (int)length, key);
		struct skep_yaml_node *old = skep_tree_find(map, name);
		if (is_nothing(value) && (key[length] == '=' || !old)) /* without its group a key is not there */
			return take_away(map, name, old, value);
		if (key[length] == '=') {
			if (!old)
				return add(map, name, value, path_mark(path, key), value->option) != NULL;
			replace(old, value, path_mark(path, key));
			return true;
		}
		map = old ? old : add(map, name, skep_tree_create(SKEP_YAML_MAP), path_mark(path, key), value->option);
		if (!map)
			break;
		key += length + 1;
	}
	skep_tree_destroy(value);
	return false;
}

static uint32_t path_depth(const char *assignment)
{
	uint32_t depth = 1;
	for (; *assignment && *assignment != '='; assignment++)
		depth += *assignment == '.';
	return depth;
}

/* What stands behind a '=' with nothing behind it: an empty text, which most keys refuse. */
static struct skep_yaml_node *empty_value(const char *option)
{
	struct skep_yaml_node *value = skep_tree_create(SKEP_YAML_SCALAR);
	if (!value)
		return NULL;
	value->option = option;
	value->at = (struct skep_mark){1, 1};
	value->text = strdup("");
	if (value->text)
		return value;
	skep_tree_destroy(value);
	return NULL;
}

bool skep_yaml_override(struct skep_yaml *yaml, const char *assignment, struct skep_diag *reterr)
{
	if (reterr->set)
		return false;
	const char *option = keep_option(yaml, assignment), *equals = strchr(assignment, '=');
	if (option && !equals)
		skep_tree_fail_option(
			reterr, option, (struct skep_mark){0, end_column(option)}, "expected --set key.path=value");
	struct skep_yaml_node *value = NULL;
	if (!reterr->set && option &&
		skep_tree_parse(yaml, equals + 1, strlen(equals + 1), option, path_depth(assignment), &value, reterr)) {
		if (!value)
			value = empty_value(option);
		if (value && !take_nothings_away(value))
			skep_tree_destroy(value);
		else if (value && assign(yaml, assignment, value, reterr))
			return true;
	}
	skep_diag_set(reterr, option ? option : "--set", 0, 0, NULL, "not enough memory to read this");
	return false;
}

/* ---- printing ------------------------------------------------------------------------------------------------- */

struct text {
	char *text;
	size_t size;
};

static int append(void *context, unsigned char *bytes, size_t size)
{
	struct text *t = context;
	char *more = realloc(t->text, t->size + size + 1);
	if (!more)
		return 0;
	memcpy(more + t->size, bytes, size);
	t->text = more;
	t->size += size;
	t->text[t->size] = 0;
	return 1;
}

/* The emitter takes the event over, also when it fails. */
#define emit(emitter, e, made) ((made) && yaml_emitter_emit(emitter, e))

static bool print_scalar(yaml_emitter_t *emitter, const char *text, int style)
{
	yaml_event_t e;
	return emit(emitter, &e,
		yaml_scalar_event_initialize(&e, NULL, NULL, (const yaml_char_t *)text, (int)strlen(text), 1, 1,
			(yaml_scalar_style_t)style));
}

static bool print_node(yaml_emitter_t *emitter, const struct skep_yaml_node *node)
{
	yaml_event_t e;
	bool map = node->kind == SKEP_YAML_MAP;
	if (node->kind == SKEP_YAML_SCALAR)
		return print_scalar(emitter, node->text,
			node->style == (int)YAML_PLAIN_SCALAR_STYLE ? node->style
								    : (int)YAML_DOUBLE_QUOTED_SCALAR_STYLE);
	if (!emit(emitter, &e,
		    map ? yaml_mapping_start_event_initialize(&e, NULL, NULL, 1, (yaml_mapping_style_t)node->style)
			: yaml_sequence_start_event_initialize(&e, NULL, NULL, 1, (yaml_sequence_style_t)node->style)))
		return false;
	for (uint32_t i = 0; i < node->children; i++)
		if ((map && !print_scalar(emitter, node->child[i]->key, (int)YAML_ANY_SCALAR_STYLE)) ||
			!print_node(emitter, node->child[i]))
			return false;
	return emit(emitter, &e, map ? yaml_mapping_end_event_initialize(&e) : yaml_sequence_end_event_initialize(&e));
}

static bool print_tree(yaml_emitter_t *emitter, const struct skep_yaml_node *root)
{
	yaml_event_t e;
	return emit(emitter, &e, yaml_stream_start_event_initialize(&e, YAML_UTF8_ENCODING)) &&
	       emit(emitter, &e, yaml_document_start_event_initialize(&e, NULL, NULL, NULL, 1)) &&
	       print_node(emitter, root) && emit(emitter, &e, yaml_document_end_event_initialize(&e, 1)) &&
	       emit(emitter, &e, yaml_stream_end_event_initialize(&e));
}

char *skep_yaml_print(const struct skep_yaml *yaml)
{
	if (yaml->options == 0) /* with its comments */
		return strdup(yaml->text);
	struct text t = {0};
	yaml_emitter_t emitter;
	if (!yaml_emitter_initialize(&emitter))
		return NULL;
	yaml_emitter_set_output(&emitter, append, &t);
	yaml_emitter_set_unicode(&emitter, 1);
	yaml_emitter_set_width(&emitter, 120);
	bool ok = print_tree(&emitter, yaml->root);
	yaml_emitter_delete(&emitter);
	if (!ok) {
		free(t.text);
		return NULL;
	}
	return t.text;
}
