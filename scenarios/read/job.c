/* SPDX-License-Identifier: Apache-2.0
 *
 * job.c - see job.h. The hash is that of the values' text, overrides included, so that a key that is added to the format later
 * counts without being listed here. A number is hashed as one text, whichever way it is written: that of the shipped scenarios,
 * whose states of earlier versions so stay theirs.
 */
#include "scenarios/read/job.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash.h"

static const char *const of_root[] = {"name", "seed", "checkpoint", "simulate", "directory", "cluster", "plan", NULL};
static const char *const of_train[] = {"until", "validate", NULL};
static const char *const none[] = {NULL};

static bool is_one_of(const char *key, const char *const words[])
{
	for (uint32_t i = 0; words[i] != NULL; i++)
		if (strcmp(key, words[i]) == 0)
			return true;
	return false;
}

/* 0.004, 4e-3 and 4.0E-3 are 4.0e-3; 0.10 and 1e-1 are 0.1. Whole numbers, which may have more digits than a double keeps, and
 * what is no number stay as they are. */
static const char *text_of_value(const char *text, char ret[64])
{
	char *end;
	size_t length = strlen(text);
	if (length >= 64 || strspn(text, "0123456789+-.eE") != length || strspn(text, "0123456789") == length)
		return text;
	double value = strtod(text, &end);
	if (end == text || *end != '\0' || !isfinite(value))
		return text;
	bool small = value != 0 && fabs(value) < 0.01;
	bool whole = value == round(value) && fabs(value) < 1e15;
	snprintf(ret, 64, "%.0f", value);
	for (int digits = small ? 2 : 1; !whole && digits <= 17; digits++) {
		snprintf(ret, 64, small ? "%.*e" : "%.*g", digits - small, value);
		if (strtod(ret, NULL) == value)
			break;
	}
	char *exponent = strstr(ret, "e-0");
	if (small && exponent != NULL)
		memmove(exponent + 2, exponent + 3, strlen(exponent + 3) + 1);
	return ret;
}

static uint64_t hash_node(
	struct skep_reader *r, const struct skep_yaml_node *node, uint64_t hash, const char *const passed_over[]);

/* A sum, so that the order of keys does not matter. */
static uint64_t hash_map(struct skep_reader *r, const struct skep_yaml_node *map, const char *const passed_over[])
{
	const struct skep_yaml_node *node;
	const char *key;
	uint64_t sum = 0;
	for (uint32_t i = 0; (node = skep_read_entry(r, map, i, &key)) != NULL; i++) {
		bool train = passed_over == of_root && strcmp(key, "train") == 0;
		if (!is_one_of(key, passed_over))
			sum += hash_node(r, node, skep_hash_bytes(SKEP_HASH_EMPTY, key, strlen(key) + 1),
				train ? of_train : none);
	}
	return sum;
}

static uint64_t hash_node(
	struct skep_reader *r, const struct skep_yaml_node *node, uint64_t hash, const char *const passed_over[])
{
	enum skep_yaml_kind kind = skep_yaml_kind(node);
	char number[64];
	const char *text = kind == SKEP_YAML_SCALAR ? text_of_value(skep_read_string(r, node, NULL, ""), number) : "";
	hash = skep_hash_bytes(skep_hash_word(hash, kind), text, strlen(text) + 1);
	if (kind == SKEP_YAML_MAP)
		hash = skep_hash_word(hash, hash_map(r, node, passed_over));
	for (uint32_t i = 0; kind == SKEP_YAML_LIST && i < skep_yaml_length(node); i++)
		hash = hash_node(r, skep_yaml_item(node, i), hash, none);
	return hash;
}

/* Is the key up to its first dot, or its bracket, one of these? */
static bool begins_with_one_of(const char *key, const char *const words[])
{
	size_t length = strcspn(key, ".[");
	for (uint32_t i = 0; words[i] != NULL; i++)
		if (strlen(words[i]) == length && strncmp(key, words[i], length) == 0)
			return true;
	return false;
}

bool skep_job_counts(const char *key)
{
	if (strcmp(key, "seed") == 0)
		return true;
	if (strncmp(key, "train.", 6) == 0)
		return !begins_with_one_of(key + 6, of_train);
	return !begins_with_one_of(key, of_root);
}

uint64_t skep_job_digest(struct skep_reader *r, const struct skep_yaml_node *root, uint64_t seed)
{
	return hash_node(r, root, skep_hash_word(SKEP_HASH_EMPTY, seed), of_root);
}
