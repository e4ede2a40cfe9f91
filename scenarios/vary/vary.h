/* SPDX-License-Identifier: Apache-2.0
 *
 * vary.h - what a sweep varies: keys with their values, and seeds. Every choice of one value for each key is a point; a point
 * with a seed is a combination.
 *
 * Combinations are numbered: the last key's value changes first among the points, and the seed before any of them, so that
 * combination `number` is point `number / seeds` with seed `number % seeds`. Values stay text: what one means, and whether it
 * can be, only the scenario's reader knows.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"

#define SKEP_VARY_KEYS_MAX 16u
#define SKEP_VARY_COMBINATIONS_MAX 100000u

struct skep_vary_key {
	char *key;    /* "schedule.in_flight" */
	char **value; /* [values] as given, without blanks around it */
	uint32_t values;
};

struct skep_vary { /* all zero: nothing varies, and the seed is the scenario's own */
	struct skep_vary_key key[SKEP_VARY_KEYS_MAX];
	uint32_t keys;
	uint64_t *seed; /* [seeds] */
	uint32_t seeds;
};

/* "KEY=A,B,C"; a comma inside of braces, brackets or quotes is part of a value. False: reterr says what is wrong with it. */
bool skep_vary_add(struct skep_vary *vary, const char *text, struct skep_diag *reterr);
/* "1..10", "3", or several of these with commas between them. */
bool skep_vary_add_seeds(struct skep_vary *vary, const char *text, struct skep_diag *reterr);
/* Afterwards there are not too many. */
bool skep_vary_check(const struct skep_vary *vary, struct skep_diag *reterr);
void skep_vary_finish(struct skep_vary *vary);

uint32_t skep_vary_points(const struct skep_vary *vary);
uint32_t skep_vary_combinations(const struct skep_vary *vary);
/* The value that a key has at a point. */
const char *skep_vary_value(const struct skep_vary *vary, uint32_t point, uint32_t key);
/* False: no seeds were asked for, and the scenario has its own. */
bool skep_vary_seed(const struct skep_vary *vary, uint32_t number, uint64_t *ret);
/* "schedule.in_flight=4, seed 3" */
void skep_vary_name(const struct skep_vary *vary, uint32_t number, char *ret, size_t size);
