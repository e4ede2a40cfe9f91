/* SPDX-License-Identifier: Apache-2.0
 *
 * program.c - which command is meant, and what is said when none is.
 */
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "base/text.h"

#define COMMANDS_MAX 64u

const char *skep_command_word(const struct skep_command *command)
{
	const char *space = strrchr(command->name, ' ');
	return space != NULL ? space + 1 : command->name;
}

static const struct skep_command *find(const struct skep_command *const *command, const char *name)
{
	while (*command != NULL && strcmp(skep_command_word(*command), name) != 0)
		command++;
	return *command;
}

static const char *nearest(const struct skep_command *const *command, const char *typed)
{
	const char *name[COMMANDS_MAX];
	uint32_t names = 0;
	for (; *command != NULL && names < COMMANDS_MAX; command++)
		name[names++] = skep_command_word(*command);
	const char *near = skep_text_nearest(typed, name, names);
	for (uint32_t i = 0; near == NULL && i < names; i++) { /* "simulate" for sim, "pub" for published */
		size_t length = strlen(name[i]), typed_length = strlen(typed);
		size_t shorter = length < typed_length ? length : typed_length;
		near = shorter >= 3 && strncmp(name[i], typed, shorter) == 0 ? name[i] : NULL;
	}
	return near;
}

static bool asks_for_help(const char *word)
{
	return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

/* One of the sub-commands is missing, or it is none of them. What is wrong comes last, where a terminal shows it. */
static enum status refuse_sub_command(
	const struct skep_program *program, const struct skep_command *command, const char *word)
{
	if (word == NULL)
		skep_help_command(program, command, stderr);
	fprintf(stderr, "%sskep: expected skep %s", word == NULL ? "\n" : "", command->name);
	for (const struct skep_command *const *sub = command->sub; *sub != NULL; sub++)
		fprintf(stderr, "%s %s",
			sub == command->sub ? ""
			: sub[1] == NULL    ? " or"
					    : ",",
			skep_command_word(*sub));
	fprintf(stderr, "%s%.40s", word != NULL ? ", not " : "", word != NULL ? word : "");
	for (const struct skep_command *const *other = program->command; word != NULL && *other != NULL; other++)
		if (strcmp(skep_command_word(*other), word) == 0)
			fprintf(stderr, "; %s %s is a command of its own", program->name, word);
	fprintf(stderr, "\n");
	return STATUS_BAD_INPUT;
}

static enum status refuse_command(const struct skep_program *program, const char *word)
{
	const char *near = nearest(program->command, word);
	fprintf(stderr, "%s: there is no command '%.80s'%s%s%s; see %s --help\n", program->name, word,
		near ? ", did you mean " : "", near ? near : "", near ? "?" : "", program->name);
	return STATUS_BAD_INPUT;
}

static enum status run(struct skep_command_line *line)
{
	const struct skep_command *command = line->command;
	if (command->sub == NULL)
		return command->run(line);
	const char *word = *line->word;
	if (word != NULL && asks_for_help(word)) {
		skep_help_command(line->program, command, stdout);
		return STATUS_DONE;
	}
	line->command = word != NULL ? find(command->sub, word) : NULL;
	if (line->command == NULL)
		return refuse_sub_command(line->program, command, word);
	line->word++;
	return run(line);
}

static enum status begin(const struct skep_program *program, char **whole, char **word)
{
	struct skep_command_line line = {.program = program, .whole = whole};
	if (*word == NULL) {
		skep_help_program(program, stderr);
		return STATUS_BAD_INPUT;
	}
	if (asks_for_help(*word)) {
		skep_help_program(program, stdout);
		return STATUS_DONE;
	}
	if (strcmp(*word, "--version") == 0 || strcmp(*word, "-V") == 0) {
		printf("%s %s\n", program->name, program->version);
		return STATUS_DONE;
	}
	line.command = find(program->command, *word);
	line.word = word + 1;
	return line.command != NULL ? run(&line) : refuse_command(program, *word);
}

enum status skep_program_run(const struct skep_program *program, int argc, char **argv)
{
	char **word = calloc((size_t)argc + 2, sizeof *word); /* operands are gathered in it */
	if (word == NULL)
		return skep_report_error(STATUS_FAILED, "not enough memory");
	memcpy(word, argv, (size_t)argc * sizeof *word);
	enum status status = begin(program, argv, argc > 0 ? word + 1 : word);
	free(word);
	return status;
}
