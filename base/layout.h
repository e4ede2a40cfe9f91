/* SPDX-License-Identifier: Apache-2.0
 *
 * layout.h - how `skep check` writes quantities and tables, so that all of its parts do it alike: three significant digits with
 * the unit that suits beside each, numbers to the right, names to the left.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define SKEP_TEXT_BYTES 48u
#define SKEP_LAYOUT_COLUMNS_MAX 16u

/* Each returns `ret`. Times from us to h; a range of one value is that value, and one of a single unit names it once. */
const char *skep_time_text(double seconds, char ret[SKEP_TEXT_BYTES]);
const char *skep_time_range_text(double least_s, double most_s, char ret[SKEP_TEXT_BYTES]);
/* As 1.23 MB, in powers of 1000, and for what people write in powers of 1024 as 4 MiB; nothing is "-". */
const char *skep_bytes_text(double bytes, char ret[SKEP_TEXT_BYTES]);
const char *skep_binary_text(double bytes, char ret[SKEP_TEXT_BYTES]);
/* As 355M, 1.43B: in the letters in which it may be given (skep_count_parse()), with three digits. */
const char *skep_count_text(double count, char ret[SKEP_TEXT_BYTES]);
/* Bits per second; "unlimited" if infinite. */
const char *skep_rate_text(double Bps, char ret[SKEP_TEXT_BYTES]);
/* "12.3 ± 0.4": at most four digits of the mean and two of the spread; a spread that is not seen then, or 0 or NAN, goes
 * without saying. */
const char *skep_mean_text(double mean, double spread, char ret[SKEP_TEXT_BYTES]);

/* "s" behind the name of what there are `count` of, but for one. */
const char *skep_plural(uint64_t count);

/* "a" or "an", as the name of a device is spoken: an L4, an A100, an RTX 4090, a T4, a Titan RTX. */
const char *skep_article(const char *name);

/* Words of `text`, from `column` on and in further lines from `indent` on; no line is longer than `columns`, unless a single word
 * is. */
void skep_wrap(const char *text, int indent, int column, int columns, FILE *out);

/* A table: each column is as wide as its widest cell. */
struct skep_layout {
	const char *const *head; /* [columns]; borrowed */
	const char *align;       /* a letter for each column: l or r */
	uint32_t columns;
	size_t cells;
	char **cell; /* row by row */
	bool lacking;
};

/* Characters, of which each is a column. */
int skep_layout_width(const char *text);

void skep_layout_begin(struct skep_layout *layout, const char *align, const char *const head[]);
void skep_layout_cell(struct skep_layout *layout, const char *format, ...) __attribute__((format(printf, 2, 3)));
void skep_layout_end(struct skep_layout *layout, FILE *out); /* prints and frees it */
