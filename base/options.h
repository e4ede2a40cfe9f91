/* SPDX-License-Identifier: Apache-2.0
 *
 * options.h - the command line as tables: which commands the program has, and which options and operands each of them takes.
 *
 * A command declares a struct for its arguments and a table of rows, one for each option. skep_options_read() reads the command
 * line into that struct. The help, the manual page and the completion of a shell are printed from the same rows.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/reader.h"
#include "base/status.h"

enum skep_option_type {       /* and what the argument is in the command's struct */
	SKEP_OPTION_FLAG,     /* bool; it takes no value. With `choice` enum: 1, and of =WORD from 2 on */
	SKEP_OPTION_U32,      /* uint32_t from least to most */
	SKEP_OPTION_U64,      /* uint64_t from least to most */
	SKEP_OPTION_NUMBER,   /* double from low to high */
	SKEP_OPTION_QUANTITY, /* double from low to high, in the base unit of the dimension */
	SKEP_OPTION_CHOICE,   /* int or enum: index of the word in `choice` */
	SKEP_OPTION_TEXT, /* const char *; one of `choice`, if there is one; with most > 0 of `least` to `most` bytes */
	SKEP_OPTION_PATH, /* const char *: a file or a folder */
	SKEP_OPTION_TEXTS, /* const char *[most]; may be repeated; at `given_at` is their number, a uint32_t */
	SKEP_OPTION_PARSED /* what `parse` makes of the value */
};

/* False: the value is not what the row expects. `ret` is where the row's argument stands. */
typedef bool skep_option_parse(const char *value, void *ret);

struct skep_option {
	const char *name; /* without the dashes */
	char letter;      /* of the short form; 0: there is none */
	enum skep_option_type type;
	size_t at;               /* of the argument in the command's struct */
	const char *value;       /* what the help calls the value: FILE, N */
	const char *help;        /* half a sentence */
	const char *usual;       /* what holds without the option; NULL: the help does not say */
	const char *example;     /* of a value; NULL: made from the type and the range */
	const char *expected;    /* what an error says that was expected; NULL: the same */
	const char *environment; /* a variable that replaces the default */
	size_t given_at;         /* of a bool that becomes true when the option is given; 0: there is none */
	uint64_t least, most;
	double low, high;
	enum skep_dimension dimension;
	const char *const *choice; /* ends with NULL */
	skep_option_parse *parse;
	const char *once; /* the name that it had in an earlier version; NULL: none */
};

/* Rows with a heading. Commands share groups: `at` is where the struct that the rows speak of stands in the command's own. */
struct skep_option_group {
	const char *title;
	const struct skep_option *row;
	uint32_t rows;
	size_t at;
};
#define SKEP_OPTION_GROUP(title, table, at)                                                                            \
	{                                                                                                              \
		title, table, sizeof(table) / sizeof *(table), at                                                      \
	}

struct skep_word { /* that may stand as the first operand, and what it means; a table ends with {NULL} */
	const char *word, *help;
};

struct skep_example { /* a table ends with {NULL} */
	const char *words, *help;
};

struct skep_command_line;
struct skep_command {
	const char *name;                      /* with that of the command above: "trace import" */
	const char *operands;                  /* as usage prints them */
	const char *summary;                   /* a line in the list of commands */
	const char *text;                      /* the help's paragraphs, each in one line */
	uint32_t least, most;                  /* operands */
	const struct skep_option_group *group; /* ends with one that has no title */
	const char *words;                     /* heading of `word` */
	const struct skep_word *word;
	const struct skep_example *example;
	const struct skep_command *const *sub; /* its sub-commands in place of all of the above; ends with NULL */
	enum status (*run)(struct skep_command_line *line);
};

/* The last word of its name, by which a user calls it. */
const char *skep_command_word(const struct skep_command *command);

struct skep_program {
	const char *name, *version;
	const char *date;    /* of the manual page, ISO 8601 */
	const char *summary; /* a line for the manual page */
	const char *text;
	const struct skep_command *const *command; /* ends with NULL */
	const struct skep_example *example;
};

#define SKEP_OPTIONS_GIVEN_MAX 64u
struct skep_command_line { /* what a command is started with */
	const struct skep_program *program;
	const struct skep_command *command;
	char **whole; /* all words, as the program got them */
	char **word;  /* those behind the command; ends with NULL */
	char **operand;
	uint32_t operands;
	const struct skep_option
		*given[SKEP_OPTIONS_GIVEN_MAX]; /* [givens] the rows that were read, the first of them */
	uint32_t givens;
};

/* Reads the words of a command into *ret, which has the defaults, and line->operand. False: the command is not to run, and
 * ends with *ret_status: what is wrong was said, or the help was asked for and printed. */
bool skep_options_read(struct skep_command_line *line, void *ret, enum status *ret_status);

/* Finds the command and runs it; what main() does. */
enum status skep_program_run(const struct skep_program *program, int argc, char **argv);
/* Prints "skep: MESSAGE", or a message with a place in a file as it is. Returns `status`. */
enum status skep_report_error(enum status status, const char *message);
enum status skep_report_diag(enum status status, const struct skep_diag *diag);

/* A line, or part of one, on stderr behind all that was printed on stdout before: both may go to one place. */
void skep_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Can stderr draw a line anew: is it a terminal that knows how? */
bool skep_say_draws(void);

/* All in columns of at most 80. */
void skep_help_program(const struct skep_program *program, FILE *out);
void skep_help_command(const struct skep_program *program, const struct skep_command *command, FILE *out);

/* A line for each option: command, option, value, a value that it takes, with tabs between them. */
void skep_options_print(const struct skep_program *program, FILE *out);

void skep_manual_print(const struct skep_program *program, FILE *out); /* in the language of man(7) */
bool skep_completion_print(const struct skep_program *program, const char *shell, FILE *out); /* false: no such shell */
/* The keys of a YAML file by their paths. */
bool skep_completion_print_keys(const char *path, FILE *out, struct skep_diag *reterr);
