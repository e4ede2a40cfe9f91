/* SPDX-License-Identifier: Apache-2.0
 *
 * tree.c - the nodes of a parsed file: making, finding, naming, freeing them.
 *
 * Keeps true: a child's parent is the node that holds it; keys of a map differ; no deeper than SKEP_YAML_DEPTH, so that
 * walking by recursion is safe.
 */
#include "base/yaml/tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

struct skep_yaml_node *skep_tree_create(enum skep_yaml_kind kind)
{
	struct skep_yaml_node *node = calloc(1, sizeof *node);
	if (node)
		node->kind = kind;
	return node;
}

void skep_tree_destroy(struct skep_yaml_node *node)
{
	if (!node)
		return;
	for (uint32_t i = 0; i < node->children; i++)
		skep_tree_destroy(node->child[i]);
	for (uint32_t i = 0; i < node->gones; i++)
		skep_tree_destroy(node->gone[i]);
	free(node->gone);
	free(node->child);
	free(node->asked);
	free(node->key);
	free(node->text);
	free(node);
}

bool skep_tree_append(struct skep_yaml_node *parent, struct skep_yaml_node *child)
{
	if (!skep_grow(&parent->child, parent->children, sizeof *parent->child))
		return false;
	child->parent = parent;
	parent->child[parent->children++] = child;
	return true;
}

struct skep_yaml_node *skep_tree_find(const struct skep_yaml_node *map, const char *key)
{
	for (uint32_t i = 0; i < map->children; i++)
		if (strcmp(map->child[i]->key, key) == 0)
			return map->child[i];
	return NULL;
}

static uint32_t position(const struct skep_yaml_node *node)
{
	uint32_t i = 0;
	while (node->parent->child[i] != node)
		i++;
	return i;
}

void skep_tree_path(const struct skep_yaml_node *node, char *ret, size_t size)
{
	if (!node->parent) {
		snprintf(ret, size, "the file");
		return;
	}
	ret[0] = 0;
	if (node->parent->parent)
		skep_tree_path(node->parent, ret, size);
	size_t used = strlen(ret);
	if (node->key)
		snprintf(ret + used, size - used, "%s%.40s", used > 0 ? "." : "", node->key);
	else
		snprintf(ret + used, size - used, "[%u]", position(node));
}

void skep_yaml_destroy(struct skep_yaml *yaml)
{
	if (!yaml)
		return;
	skep_tree_destroy(yaml->root);
	for (uint32_t i = 0; i < yaml->options; i++)
		free(yaml->option[i]);
	free(yaml->option);
	free(yaml->text);
	free(yaml->path);
	free(yaml);
}

const struct skep_yaml_node *skep_yaml_root(const struct skep_yaml *yaml)
{
	return yaml->root;
}

enum skep_yaml_kind skep_yaml_kind(const struct skep_yaml_node *node)
{
	return node ? node->kind : SKEP_YAML_NONE;
}

uint32_t skep_yaml_length(const struct skep_yaml_node *list)
{
	return list ? list->children : 0;
}

const struct skep_yaml_node *skep_yaml_item(const struct skep_yaml_node *list, uint32_t i)
{
	return list && i < list->children ? list->child[i] : NULL;
}
