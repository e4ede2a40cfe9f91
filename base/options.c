/* SPDX-License-Identifier: Apache-2.0
 *
 * options.c - reads the words of a command by the rows of its table.
 *
 * Keeps true: a command gets only options that it takes, with values in their range; every error names the word that is wrong;
 * nothing is read by a library that keeps a state of its own, so that a test can read many command lines.
 */
#include "base/options.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

#define NAMES_MAX 256u

void skep_say(const char *format, ...)
{
	va_list list;
	fflush(stdout); /* what cannot be written is noticed, and said, when the program ends */
	va_start(list, format);
	vfprintf(stderr, format, list);
	va_end(list);
}

bool skep_say_draws(void)
{
	const char *kind = getenv("TERM");
	return isatty(STDERR_FILENO) && kind != NULL && kind[0] != 0 && strcmp(kind, "dumb") != 0;
}

enum status skep_report_error(enum status status, const char *message)
{
	size_t length = strlen(message);
	bool placed = strstr(message, "error:") != NULL, ended = length > 0 && message[length - 1] == '\n';
	skep_say("%s%s%s", placed ? "" : "skep: ", message, ended ? "" : "\n");
	return status;
}

enum status skep_report_diag(enum status status, const struct skep_diag *diag)
{
	char text[2560];
	if (diag->file[0] == '\0' && diag->line == 0 && diag->column == 0)
		return skep_report_error(status, diag->message);
	skep_diag_print(diag, text, sizeof text);
	return skep_report_error(status, text);
}

/* ---- rows ---------------------------------------------------------------------------------------------------------- */

struct found {
	const struct skep_option *row;
	size_t at; /* of its group */
};

static bool named(const struct skep_option *row, const char *name, size_t length)
{
	return strncmp(row->name, name, length) == 0 && row->name[length] == '\0';
}

/* By its name or, with length 0, by its letter. Else the only one whose name begins so. */
static struct found find(const struct skep_command *command, const char *name, size_t length, char letter)
{
	struct found begins = {NULL, 0};
	uint32_t like = 0;
	for (const struct skep_option_group *g = command->group; g != NULL && g->title != NULL; g++)
		for (uint32_t i = 0; i < g->rows; i++) {
			const struct skep_option *row = &g->row[i];
			if (length == 0 ? row->letter == letter : named(row, name, length))
				return (struct found){row, g->at};
			if (length > 0 && strncmp(row->name, name, length) == 0) {
				begins = (struct found){row, g->at};
				like++;
			}
		}
	return like == 1 ? begins : (struct found){NULL, 0};
}

static const char *nearest(const struct skep_command *command, const char *typed)
{
	const char *name[NAMES_MAX] = {"help"};
	uint32_t names = 1;
	for (const struct skep_option_group *g = command->group; g != NULL && g->title != NULL; g++)
		for (uint32_t i = 0; i < g->rows && names < NAMES_MAX; i++)
			name[names++] = g->row[i].name;
	return skep_text_nearest(typed, name, names);
}

static const char *name_now(const struct skep_command *command, const char *typed)
{
	for (const struct skep_option_group *g = command->group; g != NULL && g->title != NULL; g++)
		for (uint32_t i = 0; i < g->rows; i++)
			if (g->row[i].once != NULL && strcmp(g->row[i].once, typed) == 0)
				return g->row[i].name;
	return NULL;
}

static bool of_another(const struct skep_command *const *command, const char *name, size_t length, char letter)
{
	for (; *command != NULL; command++) {
		const struct skep_option *row = find(*command, name, length, letter).row;
		if (row != NULL && (length == 0 || named(row, name, length)))
			return true;
		if ((*command)->sub != NULL && of_another((*command)->sub, name, length, letter))
			return true;
	}
	return false;
}

/* ---- errors -------------------------------------------------------------------------------------------------------- */

static bool refuse(const struct skep_command_line *line, const char *what)
{
	fprintf(stderr, "skep: %s; see skep %s --help\n", what, line->command->name);
	return false;
}

static bool refuse_long(const struct skep_command_line *line, const char *word, size_t length)
{
	char text[256], typed[64];
	snprintf(typed, sizeof typed, "%.*s", (int)length, word + 2);
	const char *near = nearest(line->command, typed), *now = name_now(line->command, typed);
	if (now != NULL)
		snprintf(text, sizeof text, "--%s was renamed to --%s", typed, now);
	else if (length > 0 && of_another(line->program->command, word + 2, length, 0))
		snprintf(text, sizeof text, "%s does not take the option --%s", line->command->name, typed);
	else
		snprintf(text, sizeof text, "unrecognized option '%.80s'%s%s%s", word, near ? ", did you mean --" : "",
			near ? near : "", near ? "?" : "");
	return refuse(line, text);
}

static bool refuse_letter(const struct skep_command_line *line, char letter)
{
	char text[64];
	if (of_another(line->program->command, "", 0, letter))
		snprintf(text, sizeof text, "%s does not take the option -%c", line->command->name, letter);
	else
		snprintf(text, sizeof text, "invalid option -- '%c'", letter);
	return refuse(line, text);
}

/* `as` is the option as it was typed. */
static bool refuse_value(const struct skep_option *row, const char *as, const char *value)
{
	char range[64];
	fprintf(stderr, "skep: %s %.80s: expected ", as, value);
	snprintf(range, sizeof range, "from %.10g to %.10g", row->low, row->high);
	if (row->expected != NULL)
		fputs(row->expected, stderr);
	else if (row->type == SKEP_OPTION_U32 || row->type == SKEP_OPTION_U64)
		fprintf(stderr, "a whole number from %" PRIu64 " to %" PRIu64, row->least, row->most);
	else if (row->type == SKEP_OPTION_NUMBER)
		fprintf(stderr, "a number %s", range);
	else if (row->type == SKEP_OPTION_TEXTS)
		fprintf(stderr, "at most %" PRIu64 " of them", row->most);
	else if (row->choice == NULL)
		fprintf(stderr, "a text of %" PRIu64 " to %" PRIu64 " bytes", row->least, row->most);
	else
		fputs("one of", stderr);
	for (const char *const *word = row->choice; row->expected == NULL && word != NULL && *word != NULL; word++)
		fprintf(stderr, "%s %s", word == row->choice ? "" : ",", *word);
	fputc('\n', stderr);
	return false;
}

/* ---- values -------------------------------------------------------------------------------------------------------- */

static bool read_whole(const struct skep_option *row, const char *value, void *to)
{
	char *end;
	errno = 0;
	uint64_t number = strtoull(value, &end, 10);
	if (value[0] < '0' || value[0] > '9' || *end != '\0' || errno != 0 || number < row->least || number > row->most)
		return false;
	if (row->type == SKEP_OPTION_U64) {
		*(uint64_t *)to = number;
		return true;
	}
	assert(row->most <= UINT32_MAX);
	*(uint32_t *)to = (uint32_t)number;
	return true;
}

static bool read_number(const struct skep_option *row, const char *value, double *ret)
{
	const char *expected;
	char *end;
	double number;
	if (row->type == SKEP_OPTION_QUANTITY) {
		if (!skep_quantity_parse(value, row->dimension, &number, &expected))
			return false;
	} else {
		number = strtod(value, &end);
		if (end == value || *end != '\0')
			return false;
	}
	if (!(number >= row->low && number <= row->high))
		return false;
	*ret = number;
	return true;
}

/* The number of the word; -1: it is none of them. */
static int word_of(const struct skep_option *row, const char *value)
{
	for (int i = 0; row->choice[i] != NULL; i++)
		if (strcmp(row->choice[i], value) == 0)
			return i;
	return -1;
}

static bool read_choice(const struct skep_option *row, const char *value, void *to)
{
	int word = word_of(row, value);
	if (word >= 0)
		memcpy(to, &word, sizeof word);
	return word >= 0;
}

/* --NAME is 1, --NAME=WORD more. */
static bool read_flag(const struct skep_option *row, const char *value, void *to)
{
	int word = value != NULL ? word_of(row, value) : -1;
	int which = word + 2;
	memcpy(to, &which, sizeof which);
	return value == NULL || word >= 0;
}

static bool read_text(const struct skep_option *row, const char *value, const char **ret)
{
	*ret = value;
	if (row->choice != NULL)
		return word_of(row, value) >= 0;
	return row->most == 0 || (strlen(value) >= row->least && strlen(value) <= row->most);
}

static bool add_text(const struct skep_option *row, const char *value, const char **text, uint32_t *count)
{
	if (*count >= row->most)
		return false;
	text[(*count)++] = value;
	return true;
}

/* `base` is the struct of the row's group. */
static bool read_value(const struct skep_option *row, const char *value, char *base)
{
	void *to = base + row->at, *given = base + row->given_at;
	switch (row->type) {
	case SKEP_OPTION_FLAG:
		return row->choice != NULL ? read_flag(row, value, to) : (*(bool *)to = true);
	case SKEP_OPTION_U32:
	case SKEP_OPTION_U64:
		return read_whole(row, value, to);
	case SKEP_OPTION_NUMBER:
	case SKEP_OPTION_QUANTITY:
		return read_number(row, value, to);
	case SKEP_OPTION_CHOICE:
		return read_choice(row, value, to);
	case SKEP_OPTION_TEXTS:
		return add_text(row, value, to, given);
	case SKEP_OPTION_PARSED:
		return row->parse(value, to);
	case SKEP_OPTION_TEXT:
	case SKEP_OPTION_PATH:
		return read_text(row, value, to);
	}
	return false;
}

static bool take(
	struct skep_command_line *line, const struct found *found, const char *as, const char *value, char *ret)
{
	const struct skep_option *row = found->row;
	char *base = ret + found->at;
	if (!read_value(row, value, base))
		return refuse_value(row, as, value);
	if (row->given_at != 0 && row->type != SKEP_OPTION_TEXTS)
		*(bool *)(base + row->given_at) = true;
	if (line->givens < SKEP_OPTIONS_GIVEN_MAX)
		line->given[line->givens++] = row;
	return true;
}

/* Defaults; an option that is given replaces them. */
static bool read_environment(const struct skep_command *command, char *ret)
{
	for (const struct skep_option_group *g = command->group; g != NULL && g->title != NULL; g++)
		for (uint32_t i = 0; i < g->rows; i++) {
			const struct skep_option *row = &g->row[i];
			const char *value = row->environment != NULL ? getenv(row->environment) : NULL;
			if (value != NULL && value[0] != '\0' && !read_value(row, value, ret + g->at))
				return refuse_value(row, row->environment, value);
		}
	return true;
}

/* ---- words --------------------------------------------------------------------------------------------------------- */

/* --name, --name=value or --name value; *word is the last that was read. */
static bool read_long(struct skep_command_line *line, char ***word, char *ret, bool *ret_help)
{
	char text[256], as[64];
	const char *name = **word + 2, *equals = strchr(name, '='), *value = equals != NULL ? equals + 1 : NULL;
	size_t length = equals != NULL ? (size_t)(equals - name) : strlen(name);
	const struct found found = find(line->command, name, length, 0);
	if (found.row == NULL && equals == NULL && strcmp(name, "help") == 0)
		return *ret_help = true;
	if (found.row == NULL || length == 0)
		return refuse_long(line, **word, length);
	snprintf(as, sizeof as, "--%s", found.row->name);
	if (found.row->type == SKEP_OPTION_FLAG && found.row->choice == NULL && value != NULL) {
		snprintf(text, sizeof text, "option '%.80s' takes no value", **word);
		return refuse(line, text);
	}
	if (found.row->type == SKEP_OPTION_FLAG || value != NULL)
		return take(line, &found, as, value, ret);
	if ((*word)[1] == NULL) {
		snprintf(text, sizeof text, "option '%.80s' requires an argument", **word);
		return refuse(line, text);
	}
	return take(line, &found, as, *++*word, ret);
}

/* -q, -n4, -n 4, or several letters. */
static bool read_short(struct skep_command_line *line, char ***word, char *ret, bool *ret_help)
{
	char text[64];
	for (const char *letter = **word + 1; *letter != '\0'; letter++) {
		const struct found found = find(line->command, "", 0, *letter);
		const char as[] = {'-', *letter, '\0'};
		if (found.row == NULL && *letter == 'h')
			return *ret_help = true;
		if (found.row == NULL)
			return refuse_letter(line, *letter);
		if (found.row->type == SKEP_OPTION_FLAG) {
			if (!take(line, &found, as, NULL, ret))
				return false;
			continue;
		}
		if (letter[1] != '\0')
			return take(line, &found, as, letter + 1, ret);
		if ((*word)[1] != NULL)
			return take(line, &found, as, *++*word, ret);
		snprintf(text, sizeof text, "option '%s' requires an argument", as);
		return refuse(line, text);
	}
	return true;
}

static bool count_operands(const struct skep_command_line *line)
{
	char text[512];
	const struct skep_command *command = line->command;
	if (line->operands >= command->least && line->operands <= command->most)
		return true;
	int length = snprintf(text, sizeof text, "%s takes %s", command->name,
		command->operands[0] != '\0' ? command->operands : "no operands");
	if (line->operands > command->most)
		snprintf(text + length, sizeof text - (size_t)length, "; '%.80s' is one word too many",
			line->operand[command->most]);
	return refuse(line, text);
}

static bool read_words(struct skep_command_line *line, char *ret, bool *ret_help)
{
	bool options = true;
	line->operand = line->word; /* an operand is written no later than where it was read */
	for (char **word = line->word; *word != NULL && !*ret_help; word++) {
		bool dashed = options && (*word)[0] == '-' && (*word)[1] != '\0';
		if (dashed && strcmp(*word, "--") == 0)
			options = false;
		else if (!dashed)
			line->operand[line->operands++] = *word;
		else if (!((*word)[1] == '-' ? read_long : read_short)(line, &word, ret, ret_help))
			return false;
	}
	return *ret_help || count_operands(line);
}

bool skep_options_read(struct skep_command_line *line, void *ret, enum status *ret_status)
{
	bool help = false;
	*ret_status = STATUS_BAD_INPUT;
	if (!read_environment(line->command, ret) || !read_words(line, ret, &help))
		return false;
	*ret_status = STATUS_DONE;
	if (help)
		skep_help_command(line->program, line->command, stdout);
	return !help;
}
