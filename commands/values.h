/* SPDX-License-Identifier: Apache-2.0
 *
 * values.h - options of the commands that read their own, and their values: each reader says what it expected, in one line.
 */
#ifndef SKEP_COMMANDS_VALUES_H
#define SKEP_COMMANDS_VALUES_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "scenarios/reader/reader.h"

struct skep_complaint { /* the caller's */
	char *text;
	size_t size;
};

/* All of these return false when they complain. */
bool skep_value_refuse(struct skep_complaint *complaint, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool skep_value_refuse_diag(struct skep_complaint *complaint, const struct skep_diag *diag);
/* `what` is the option with its dashes; `word` ends with NULL. */
bool skep_value_refuse_word(
	struct skep_complaint *complaint, const char *what, const char *text, const char *const *word);

/* Hands every option of the words behind argv[0] to `take`: `option` is the `val` of its row, `name` its long form. What is no
 * option is left: *ret_operand. `-n`, `-o`, `-q` and `-h` are short for the rows that have these letters. */
typedef bool skep_option_take(void *context, int option, const char *name, const char *value);
bool skep_options_read(int argc, char **argv, const struct option *row, skep_option_take *take, void *context,
	struct skep_complaint *complaint, char ***ret_operand, int *ret_operands);

/* `name` is the option without its dashes. */
bool skep_value_integer(struct skep_complaint *complaint, const char *name, const char *text, uint64_t least,
	uint64_t most, uint64_t *ret);

#endif
