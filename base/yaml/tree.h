/* SPDX-License-Identifier: Apache-2.0
 *
 * tree.h - the tree behind struct skep_yaml. Not for other folders.
 */
#pragma once

#include "base/reader.h"

#define SKEP_YAML_DEPTH 16u

/* From 1. What an option wrote: in its value; with line 0 in the option itself, where no column is the option as a whole. */
struct skep_mark {
	uint32_t line, column;
};

struct skep_yaml_node {
	enum skep_yaml_kind kind;
	int style;                     /* as libyaml names it, so that printing keeps the looks */
	struct skep_yaml_node *parent; /* NULL for the root */
	char *key;                     /* in a map, else NULL */
	char *text;                    /* of a scalar, else NULL */
	struct skep_mark key_at, at;
	const char *option;            /* the --set that wrote it, NULL when the file did */
	struct skep_yaml_node **child; /* [children] of a map or list, in the file's order */
	uint32_t children;
	struct skep_yaml_node *
		*gone; /* [gones] keys of a map that a --set has taken away, so that a wrong one is noticed */
	uint32_t gones;
	bool known;         /* the reader has asked for this key */
	const char **asked; /* [asks] keys that the reader has asked this map for, present or not */
	uint32_t asks;
};

struct skep_yaml {
	char *path;
	char *text; /* of the file, for printing lines */
	struct skep_yaml_node *root;
	char **option; /* [options] */
	uint32_t options;
};

/* Parses one YAML value. `option` is NULL for the file's own text, else the --set that the text comes from, whose value
 * stands `depth` levels down. An empty text is *ret == NULL without an error. */
bool skep_tree_parse(struct skep_yaml *yaml, const char *text, size_t size, const char *option, uint32_t depth,
	struct skep_yaml_node **ret, struct skep_diag *reterr);
/* What is wrong with what `--set` was told, at this place of it. */
void skep_tree_fail_option(struct skep_diag *diag, const char *option, struct skep_mark at, const char *message);
struct skep_yaml_node *skep_tree_create(enum skep_yaml_kind kind);                  /* NULL: no memory */
void skep_tree_destroy(struct skep_yaml_node *node);                                /* NULL is fine */
bool skep_tree_append(struct skep_yaml_node *parent, struct skep_yaml_node *child); /* false: no memory */
struct skep_yaml_node *skep_tree_find(const struct skep_yaml_node *map, const char *key);
/* "train.until.steps", or "model.widths[2]" in a list; "the file" for the root. */
void skep_tree_path(const struct skep_yaml_node *node, char *ret, size_t size);
