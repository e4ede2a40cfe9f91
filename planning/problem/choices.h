/* SPDX-License-Identifier: Apache-2.0
 *
 * choices.h - which settings `skep plan` may choose, as numbers: every choice of one value for each free key is a point
 * (scenarios/vary/vary.h numbers them), and becomes assignments as --set takes them. Also what is worth a
 * thought of many: the front.
 *
 * A key that --set gives on the command line is fixed, and so are those above and below it: `--set sync.every=8` keeps the plan
 * from choosing `sync`, and the other way round. Assignments are made from the top down, so that `sync` does not undo
 * `sync.collective`.
 */
#pragma once

#include "scenarios/read/planned.h"

#define SKEP_AS_GIVEN UINT32_MAX /* the point that leaves the scenario as it is */

struct skep_choices {
	const struct skep_vary *free;
	uint32_t key[SKEP_VARY_KEYS_MAX]; /* of these, from the top down */
	uint32_t keys;
	uint32_t points; /* 0: nothing is free */
};

void skep_choices_make(
	const struct skep_planned *planned, const char *const *set, uint32_t sets, struct skep_choices *ret);

/* The number of the value that the nth key has at a point. */
uint32_t skep_choices_digit(const struct skep_choices *choices, uint32_t point, uint32_t nth);
/* The point that differs from this one in the nth key alone. */
uint32_t skep_choices_with(const struct skep_choices *choices, uint32_t point, uint32_t nth, uint32_t digit);

/* "schedule.in_flight=4"; the caller frees it. NULL: no memory. */
char *skep_choices_assignment(const struct skep_choices *choices, uint32_t point, uint32_t nth);
/* "schedule.in_flight=4, schedule.wiring=latency", or "as written". */
void skep_choices_name(const struct skep_choices *choices, uint32_t point, char *ret, size_t size);

/* Draws `count` different points, or all if there are no more, in ascending order. [count] */
uint32_t skep_choices_draw(const struct skep_choices *choices, uint64_t seed, uint32_t count, uint32_t *ret);

/* Marks those that no other one is at least as good as in both and better in one: of equal ones the first. NAN and INFINITY are
 * never on the front. */
void skep_choices_front(const double *time_s, const double *usd, uint32_t count, bool *ret);
