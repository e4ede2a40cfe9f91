/* SPDX-License-Identifier: Apache-2.0
 *
 * yaml.c - parses a small, plain part of YAML into a tree: maps, lists and scalars, by libyaml's events.
 *
 * Refuses what would make a file mean something other than it shows: anchors and aliases (also the way to blow up memory),
 * tags, several documents, duplicate keys, keys that are not plain text; and bounds depth and the number of values.
 */
#include "base/text.h"
#include "base/yaml/tree.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#define VALUES_MAX (1u << 18)

struct builder {
	yaml_parser_t parser;
	const char *path, *text, *option;
	uint32_t values;
	struct skep_diag *diag;
};

/* At line and column from 1, of the file or of the option's value. */
__attribute__((format(printf, 4, 5))) static void fail(
	struct builder *b, size_t line, size_t column, const char *format, ...)
{
	char message[sizeof b->diag->message];
	va_list args;
	va_start(args, format);
	vsnprintf(message, sizeof message, format, args);
	va_end(args);
	if (b->option)
		skep_tree_fail_option(
			b->diag, b->option, (struct skep_mark){(uint32_t)line, (uint32_t)column}, message);
	else
		skep_diag_set(b->diag, b->path, (uint32_t)line, (uint32_t)column,
			skep_text_line(b->text, (uint32_t)line), "%s", message);
}

#define fail_at(b, mark, ...) fail(b, (mark).line + 1, (mark).column + 1, __VA_ARGS__)

static void *fail_memory(struct builder *b)
{
	fail(b, 1, 1, "not enough memory to read this");
	return NULL;
}

/* libyaml counts more line breaks than editors do, so those are refused with the rest of the control characters. */
static bool is_text(struct builder *b, size_t size)
{
	size_t line = 1, column = 1;
	for (size_t i = 0; i < size;) {
		uint32_t code = 0, length = skep_utf8_next(b->text + i, size - i, &code);
		bool newline = code == '\n' || code == '\r';
		if (length == 0) {
			fail(b, line, column, "byte 0x%02x is not UTF-8: save the file as UTF-8", (uint8_t)b->text[i]);
			return false;
		}
		if (!newline && !skep_utf8_printable(code)) {
			fail(b, line, column, "control character U+%04X: only printable text may stand here", code);
			return false;
		}
		if (code == '\n' || (code == '\r' && !(i + 1 < size && b->text[i + 1] == '\n')))
			line++;
		column = newline ? 1 : column + 1;
		i += length;
	}
	return true;
}

static void fail_syntax(struct builder *b)
{
	const yaml_parser_t *p = &b->parser;
	yaml_mark_t at = p->problem_mark;
	const char *line = skep_text_line(b->text, (uint32_t)at.line + 1);
	if (p->error == YAML_MEMORY_ERROR)
		fail_memory(b);
	else if (line[strspn(line, " ")] == '\t')
		fail(b, at.line + 1, strspn(line, " ") + 1, "a tab: YAML is indented with blanks");
	else if (p->context)
		fail_at(b, at, "not YAML: %s %s", p->context, p->problem);
	else
		fail_at(b, at, "not YAML: %s", p->problem);
}

static bool next(struct builder *b, yaml_event_t *ret)
{
	if (yaml_parser_parse(&b->parser, ret))
		return true;
	fail_syntax(b);
	return false;
}

/* ---- values --------------------------------------------------------------------------------------------------- */

static bool is_decorated(struct builder *b, const yaml_event_t *e)
{
	bool scalar = e->type == YAML_SCALAR_EVENT, list = e->type == YAML_SEQUENCE_START_EVENT;
	const yaml_char_t *anchor = scalar ? e->data.scalar.anchor
	                            : list ? e->data.sequence_start.anchor
	                                   : e->data.mapping_start.anchor;
	const yaml_char_t *tag = scalar ? e->data.scalar.tag
	                         : list ? e->data.sequence_start.tag
	                                : e->data.mapping_start.tag;
	if (anchor)
		fail_at(b, e->start_mark, "anchor `&%.40s`: anchors and aliases are not allowed here",
			(const char *)anchor);
	else if (tag)
		fail_at(b, e->start_mark, "tag `%.40s`: tags are not allowed here", (const char *)tag);
	return anchor || tag;
}

/* Escapes of quoted text ("\\e[2J") and block text make characters that is_text() has not seen. Names are printed as
 * they are: one with a line break or a control character would write lines of its own, or drive the terminal. */
static bool is_plain_text(struct builder *b, const yaml_event_t *e)
{
	const char *text = (const char *)e->data.scalar.value;
	for (size_t i = 0, left = e->data.scalar.length; left > 0;) {
		uint32_t code = 0, length = skep_utf8_next(text + i, left, &code);
		bool line = code == '\n' || code == '\r' || code == 0x85 || code == 0x2028 || code == 0x2029;
		if (length > 0 && line)
			fail_at(b, e->start_mark,
				"a line break cannot be part of a value: write it as one line, or after `>-`");
		else if (length == 0 || !skep_utf8_printable(code))
			fail_at(b, e->start_mark, "control character U+%04X cannot be part of a value", code);
		if (b->diag->set)
			return false;
		i += length;
		left -= length;
	}
	return true;
}

/* A node for an event that opens a value; children are not read yet. */
static struct skep_yaml_node *open_value(struct builder *b, const yaml_event_t *e, uint32_t depth)
{
	if (e->type == YAML_ALIAS_EVENT)
		fail_at(b, e->start_mark, "alias `*%.40s`: anchors and aliases are not allowed here",
			(const char *)e->data.alias.anchor);
	else if (depth >= SKEP_YAML_DEPTH)
		fail_at(b, e->start_mark, "nested deeper than %u levels", SKEP_YAML_DEPTH);
	else if (++b->values > VALUES_MAX)
		fail_at(b, e->start_mark, "more than %u values in one file", VALUES_MAX);
	if (b->diag->set || is_decorated(b, e) || (e->type == YAML_SCALAR_EVENT && !is_plain_text(b, e)))
		return NULL;
	enum skep_yaml_kind kind = e->type == YAML_SCALAR_EVENT           ? SKEP_YAML_SCALAR
	                           : e->type == YAML_SEQUENCE_START_EVENT ? SKEP_YAML_LIST
	                                                                  : SKEP_YAML_MAP;
	struct skep_yaml_node *node = skep_tree_create(kind);
	if (!node)
		return fail_memory(b);
	node->at = (struct skep_mark){(uint32_t)e->start_mark.line + 1, (uint32_t)e->start_mark.column + 1};
	node->option = b->option;
	if (kind == SKEP_YAML_SCALAR) {
		node->style = (int)e->data.scalar.style;
		node->text = strdup((const char *)e->data.scalar.value);
	} else {
		node->style =
			kind == SKEP_YAML_LIST ? (int)e->data.sequence_start.style : (int)e->data.mapping_start.style;
	}
	if (kind == SKEP_YAML_SCALAR && !node->text) {
		skep_tree_destroy(node);
		return fail_memory(b);
	}
	return node;
}

static bool read_children(struct builder *b, struct skep_yaml_node *node, uint32_t depth);

static bool add_value(struct builder *b, struct skep_yaml_node *parent, const yaml_event_t *e,
	struct skep_yaml_node **ret, uint32_t depth)
{
	struct skep_yaml_node *node = open_value(b, e, depth);
	if (!node)
		return false;
	if (!skep_tree_append(parent, node)) {
		skep_tree_destroy(node);
		return fail_memory(b);
	}
	*ret = node;
	return node->kind == SKEP_YAML_SCALAR || read_children(b, node, depth);
}

static bool add_pair(struct builder *b, struct skep_yaml_node *map, const yaml_event_t *key, uint32_t depth)
{
	if (key->type != YAML_SCALAR_EVENT) {
		fail_at(b, key->start_mark, "a key must be plain text");
		return false;
	}
	if (is_decorated(b, key) || !is_plain_text(b, key))
		return false;
	yaml_event_t value;
	if (!next(b, &value))
		return false;
	struct skep_yaml_node *node = NULL;
	bool ok = add_value(b, map, &value, &node, depth);
	yaml_event_delete(&value);
	if (!node)
		return false;
	node->key_at = (struct skep_mark){(uint32_t)key->start_mark.line + 1, (uint32_t)key->start_mark.column + 1};
	node->key = strdup((const char *)key->data.scalar.value);
	return node->key ? ok : fail_memory(b) != NULL;
}

static int by_key(const void *a, const void *b)
{
	const struct skep_yaml_node *x = *(struct skep_yaml_node *const *)a, *y = *(struct skep_yaml_node *const *)b;
	int order = strcmp(x->key, y->key);
	if (order == 0)
		order = (x->key_at.line > y->key_at.line) - (x->key_at.line < y->key_at.line);
	return order ? order : (x->key_at.column > y->key_at.column) - (x->key_at.column < y->key_at.column);
}

static bool keys_differ(struct builder *b, const struct skep_yaml_node *map)
{
	if (map->children < 2)
		return true;
	struct skep_yaml_node **sorted = malloc(map->children * sizeof *sorted);
	if (!sorted)
		return fail_memory(b);
	memcpy(sorted, map->child, map->children * sizeof *sorted);
	qsort(sorted, map->children, sizeof *sorted, by_key);
	for (uint32_t i = 1; i < map->children && !b->diag->set; i++)
		if (strcmp(sorted[i - 1]->key, sorted[i]->key) == 0)
			fail(b, sorted[i]->key_at.line, sorted[i]->key_at.column,
				"key `%.60s` stands twice: it is already in line %u", sorted[i]->key,
				sorted[i - 1]->key_at.line);
	free(sorted);
	return !b->diag->set;
}

static bool read_children(struct builder *b, struct skep_yaml_node *node, uint32_t depth)
{
	for (bool ok = true, done = false; !done;) {
		yaml_event_t e;
		if (!next(b, &e))
			return false;
		struct skep_yaml_node *item;
		done = e.type == YAML_SEQUENCE_END_EVENT || e.type == YAML_MAPPING_END_EVENT;
		if (!done && node->kind == SKEP_YAML_MAP)
			ok = add_pair(b, node, &e, depth + 1);
		else if (!done)
			ok = add_value(b, node, &e, &item, depth + 1);
		yaml_event_delete(&e);
		if (!ok)
			return false;
	}
	return node->kind != SKEP_YAML_MAP || keys_differ(b, node);
}

/* ---- documents ------------------------------------------------------------------------------------------------ */

/* The next event must be of this type: our own grammar leaves no other choice than the message says. */
static bool expect(struct builder *b, yaml_event_type_t type, yaml_event_type_t or_type, yaml_event_type_t *ret)
{
	yaml_event_t e;
	if (!next(b, &e))
		return false;
	*ret = e.type;
	bool tagged = e.type == YAML_DOCUMENT_START_EVENT &&
	              e.data.document_start.tag_directives.start != e.data.document_start.tag_directives.end;
	if (tagged)
		fail_at(b, e.start_mark, "%%TAG: tags are not allowed here");
	else if (e.type != type && e.type != or_type)
		fail_at(b, e.start_mark, "a second document begins here: expected one document in a file");
	yaml_event_delete(&e);
	return !b->diag->set;
}

static bool read_document(struct builder *b, uint32_t depth, struct skep_yaml_node **ret)
{
	yaml_event_type_t type;
	if (!expect(b, YAML_STREAM_START_EVENT, YAML_STREAM_START_EVENT, &type) ||
		!expect(b, YAML_DOCUMENT_START_EVENT, YAML_STREAM_END_EVENT, &type))
		return false;
	if (type == YAML_STREAM_END_EVENT)
		return true;
	yaml_event_t e;
	if (!next(b, &e))
		return false;
	*ret = open_value(b, &e, depth);
	yaml_event_delete(&e);
	if (!*ret || ((*ret)->kind != SKEP_YAML_SCALAR && !read_children(b, *ret, depth)))
		return false;
	return expect(b, YAML_DOCUMENT_END_EVENT, YAML_DOCUMENT_END_EVENT, &type) &&
	       expect(b, YAML_STREAM_END_EVENT, YAML_STREAM_END_EVENT, &type);
}

bool skep_tree_parse(struct skep_yaml *yaml, const char *text, size_t size, const char *option, uint32_t depth,
	struct skep_yaml_node **ret, struct skep_diag *reterr)
{
	struct builder b = {.path = yaml->path, .text = text, .option = option, .diag = reterr};
	*ret = NULL;
	if (reterr->set || !is_text(&b, size))
		return false;
	if (!yaml_parser_initialize(&b.parser))
		return fail_memory(&b);
	yaml_parser_set_encoding(&b.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&b.parser, (const unsigned char *)text, size);
	bool ok = read_document(&b, depth, ret);
	yaml_parser_delete(&b.parser);
	if (!ok) {
		skep_tree_destroy(*ret);
		*ret = NULL;
	}
	return ok;
}

struct skep_yaml *skep_yaml_parse(const char *path, const char *text, size_t size, struct skep_diag *reterr)
{
	struct skep_yaml *yaml = calloc(1, sizeof *yaml);
	if (yaml) {
		yaml->path = strdup(path);
		yaml->text = strndup(text, size);
	}
	if (!yaml || !yaml->path || !yaml->text) {
		skep_diag_set(reterr, path, 0, 0, NULL, "not enough memory to read this");
	} else if (skep_tree_parse(yaml, yaml->text, size, NULL, 0, &yaml->root, reterr)) {
		const struct skep_yaml_node *root = yaml->root;
		if (!root)
			skep_diag_set(
				reterr, path, 1, 1, text, "the file is empty: expected keys with values (name: value)");
		else if (root->kind != SKEP_YAML_MAP)
			skep_diag_set(reterr, path, root->at.line, root->at.column,
				skep_text_line(yaml->text, root->at.line), "expected keys with values (name: value)");
	}
	if (!reterr->set)
		return yaml;
	skep_yaml_destroy(yaml);
	return NULL;
}
