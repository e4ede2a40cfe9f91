/* SPDX-License-Identifier: Apache-2.0
 *
 * help.c - `skep help`: of the program or a command, as text, as a manual page, or for a shell.
 */
#include "commands/commands.h"

struct help_arguments {
	bool man, options;
	const char *completion, *keys; /* NULL: not given */
};

/* As if the command had been given with --help. */
static enum status help_of(const struct skep_command_line *line)
{
	char flag[] = "--help", *word[] = {line->whole[0], NULL, NULL, NULL, NULL};
	uint32_t words = 1;
	for (uint32_t i = 0; i < line->operands; i++)
		word[words++] = line->operand[i];
	word[words++] = flag;
	return skep_program_run(line->program, (int)words, word);
}

static enum status run(struct skep_command_line *line)
{
	struct help_arguments a = {0};
	enum status status;
	struct skep_diag diag = {0};
	if (!skep_options_read(line, &a, &status))
		return status;
	if (a.man)
		skep_manual_print(line->program, stdout);
	else if (a.completion != NULL)
		skep_completion_print(line->program, a.completion, stdout);
	else if (a.options)
		skep_options_print(line->program, stdout);
	else if (a.keys != NULL)
		return skep_completion_print_keys(a.keys, stdout, &diag) ? STATUS_DONE
		                                                         : skep_report_diag(STATUS_BAD_INPUT, &diag);
	else
		return help_of(line);
	return STATUS_DONE;
}

static const char *const shells[] = {"bash", "zsh", "fish", NULL};
static const struct skep_option rows[] = {
	{"man", 0, SKEP_OPTION_FLAG, offsetof(struct help_arguments, man), .help = "print the manual page, skep.1"},
	{"completion", 0, SKEP_OPTION_TEXT, offsetof(struct help_arguments, completion), "SHELL", .choice = shells,
		.help = "print a script that completes command lines in bash, zsh or fish"},
	{"options", 0, SKEP_OPTION_FLAG, offsetof(struct help_arguments, options),
		.help = "print all options as a table: command, option, how the value is called, a value"},
	{"keys", 0, SKEP_OPTION_PATH, offsetof(struct help_arguments, keys), "FILE",
		.help = "print the keys in a scenario, as --set takes them"},
};

static const struct skep_option_group groups[] = {SKEP_OPTION_GROUP("In another form", rows, 0), {0}};
static const struct skep_example examples[] = {
	{"skep help sim", "the same as skep sim --help"},
	{"source <(skep help --completion bash)", "complete command lines in this bash"},
	{0},
};

const struct skep_command skep_command_help = {
	.name = "help",
	.operands = "[COMMAND]",
	.summary = "explain a command; print the manual page or completions",
	.text = "Explains a command and its options. Without operands it lists the commands.",
	.most = 2,
	.group = groups,
	.example = examples,
	.run = run,
};
