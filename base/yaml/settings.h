/* SPDX-License-Identifier: Apache-2.0
 *
 * settings.h - in which settings two scenarios differ, by their texts.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define SKEP_DIFFERENCES_SHOWN 5u

struct skep_difference { /* what is too long is cut; "": not set there */
	char key[96];    /* as --set writes it: schedule.microbatch */
	char first[64], second[64];
};

struct skep_differences {
	bool same;    /* comments and layout apart */
	size_t count; /* all of them; 0 though not the same: a text could not be read */
	struct skep_difference item[SKEP_DIFFERENCES_SHOWN]; /* the first ones */
};

/* Is a difference in this key one? */
typedef bool skep_settings_counts(const char *key);

/* `counts`: NULL: every key counts. */
void skep_settings_compare(
	const char *first, const char *second, skep_settings_counts *counts, struct skep_differences *ret);
