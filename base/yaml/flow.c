/* SPDX-License-Identifier: Apache-2.0
 *
 * flow.c - a value of a file as text of one line, as `--set` takes it. What is written reads back as the same tree, wherever in a
 * list or a map it is put.
 */
#include "base/yaml/tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

/* A key that ends nothing and begins nothing, whatever is around it. */
static bool is_plain(const char *text)
{
	return text[0] != '\0' && !strpbrk(text, ",[]{}:#\"'\\\n\t") && !strchr("-?&*!|>%@` ", text[0]) &&
	       text[strlen(text) - 1] != ' ';
}

static void write_quoted(const char *text, FILE *out)
{
	fputc('"', out);
	for (; *text; text++) {
		if (*text == '\n' || *text == '\t')
			fputs(*text == '\n' ? "\\n" : "\\t", out);
		else
			fprintf(out, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
	}
	fputc('"', out);
}

/* What the file has without quotes stays so ("-1" is a number) unless something in it would end it inside of a list. */
static void write_scalar(const struct skep_yaml_node *node, FILE *out)
{
	if (node->style == (int)YAML_PLAIN_SCALAR_STYLE && node->text[0] != '\0' && !strpbrk(node->text, ",[]{}\n"))
		fputs(node->text, out);
	else
		write_quoted(node->text, out);
}

static void write_node(const struct skep_yaml_node *node, FILE *out)
{
	if (node->kind == SKEP_YAML_SCALAR) {
		write_scalar(node, out);
		return;
	}
	bool map = node->kind == SKEP_YAML_MAP;
	fputc(map ? '{' : '[', out);
	for (uint32_t i = 0; i < node->children; i++) {
		if (i > 0)
			fputs(", ", out);
		if (map && is_plain(node->child[i]->key))
			fprintf(out, "%s: ", node->child[i]->key);
		else if (map) {
			write_quoted(node->child[i]->key, out);
			fputs(": ", out);
		}
		write_node(node->child[i], out);
	}
	fputc(map ? '}' : ']', out);
}

char *skep_yaml_flow(const struct skep_yaml_node *node)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);
	if (!out)
		return NULL;
	write_node(node, out);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}
