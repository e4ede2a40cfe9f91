/* SPDX-License-Identifier: Apache-2.0
 *
 * settings.h - in which settings two scenarios differ, by their texts; numbers and quantities by what they are worth.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define SKEP_DIFFERENCES_SHOWN 5u
#define SKEP_SETTING_BYTES 64u

struct skep_difference { /* what is too long is cut; "": not set there */
	char key[96];    /* as --set writes it: schedule.microbatch */
	char first[SKEP_SETTING_BYTES], second[SKEP_SETTING_BYTES];
};

struct skep_differences {
	bool same;    /* comments and layout apart */
	size_t count; /* all of them; 0 though not the same: a text could not be read */
	struct skep_difference item[SKEP_DIFFERENCES_SHOWN]; /* the first ones */
};

/* Is a difference in this key one? */
typedef bool skep_settings_counts(const char *key);

/* What the text has at each of these keys, as it stands in a difference. */
void skep_settings_values(const char *text, const char *const key[], size_t count, char ret[][SKEP_SETTING_BYTES]);

/* `counts`: NULL: every key counts. */
void skep_settings_compare(
	const char *first, const char *second, skep_settings_counts *counts, struct skep_differences *ret);
/* The same, of what is hashed as it is written (skep_job_digest()): quantities by their texts, and numbers by their worth. */
void skep_settings_compare_written(
	const char *first, const char *second, skep_settings_counts *counts, struct skep_differences *ret);
