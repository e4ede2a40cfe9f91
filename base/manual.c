/* SPDX-License-Identifier: Apache-2.0
 *
 * manual.c - the manual page, of the same tables as the help.
 */
#include <string.h>

#include "base/options.h"

/* Text as roff takes it: no dash becomes a hyphen, no line begins with a request, backslashes and quotes are themselves. */
static void print_plain(const char *text, FILE *out)
{
	bool begins = true;
	for (; *text != '\0'; text++) {
		if (begins && (*text == '.' || *text == '\''))
			fputs("\\&", out);
		begins = *text == '\n';
		if (*text == '-')
			fputs("\\-", out);
		else if (*text == '\\')
			fputs("\\e", out);
		else if (*text == '`' || *text == '\'' || *text == '"' || *text == '^' || *text == '~')
			fputs(*text == '`'      ? "\\(ga"
				: *text == '\'' ? "\\(aq"
				: *text == '"'  ? "\\(dq"
				: *text == '^'  ? "\\(ha"
						: "\\(ti",
				out);
		else
			fputc(*text, out);
	}
}

static void print_line(const char *before, const char *text, const char *after, FILE *out)
{
	fputs(before, out);
	print_plain(text, out);
	fputs(after, out);
}

static void print_paragraphs(const char *text, FILE *out)
{
	for (; *text != '\0'; text += *text == '\n') {
		char line[1024];
		size_t length = strcspn(text, "\n");
		snprintf(line, sizeof line, "%.*s", (int)length, text);
		print_line("", line, "\n", out);
		text += length;
		if (*text == '\n' && text[1] != '\0')
			fputs(".PP\n", out);
	}
}

static void print_option(const struct skep_option *row, FILE *out)
{
	fputs(".TP\n", out);
	if (row->letter != 0)
		fprintf(out, "\\fB\\-%c\\fR, ", row->letter);
	print_line("\\fB\\-\\-", row->name, "\\fR", out);
	if (row->value != NULL)
		print_line(" \\fI", row->value, "\\fR", out);
	print_line("\n", row->help, "", out);
	if (row->usual != NULL)
		print_line(" (default: ", row->usual, ")", out);
	if (row->environment != NULL)
		print_line("; the environment variable \\fB", row->environment, "\\fR replaces the default", out);
	fputc('\n', out);
}

static void print_examples(const struct skep_example *example, FILE *out)
{
	for (; example != NULL && example->words != NULL; example++) {
		print_line(".TP\n\\fB", example->words, "\\fR\n", out);
		print_line("", example->help, "\n", out);
	}
}

static void print_command(const struct skep_program *program, const struct skep_command *command, FILE *out)
{
	for (const struct skep_command *const *sub = command->sub; sub != NULL && *sub != NULL; sub++)
		print_command(program, *sub, out);
	if (command->sub != NULL)
		return;
	print_line(".SS ", program->name, " ", out);
	print_line("", command->name, " ", out);
	print_line("", command->operands, "\n", out);
	print_paragraphs(command->text, out);
	for (const struct skep_word *word = command->word; word != NULL && word->word != NULL; word++) {
		print_line(".TP\n\\fB", word->word, "\\fR\n", out);
		print_line("", word->help[0] != '\0' ? word->help : "\\&", "\n", out);
	}
	for (const struct skep_option_group *g = command->group; g != NULL && g->title != NULL; g++) {
		if (g == command->group || strcmp(g->title, g[-1].title) != 0)
			print_line(".PP\n\\fI", g->title, ":\\fR\n", out);
		for (uint32_t i = 0; i < g->rows; i++)
			print_option(&g->row[i], out);
	}
	if (command->example != NULL)
		fputs(".PP\n\\fIExamples:\\fR\n", out);
	print_examples(command->example, out);
}

void skep_manual_print(const struct skep_program *program, FILE *out)
{
	fprintf(out, ".TH SKEP 1 \"%s\" \"%s %s\" \"User Commands\"\n.nh\n.ad l\n", program->date, program->name,
		program->version);
	print_line(".SH NAME\n", program->name, " \\- ", out);
	print_line("", program->summary, "\n", out);
	print_line(
		".SH SYNOPSIS\n\\fB", program->name, "\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n.SH DESCRIPTION\n", out);
	print_paragraphs(program->text, out);
	fputs(".SH COMMANDS\n", out);
	for (const struct skep_command *const *command = program->command; *command != NULL; command++)
		print_command(program, *command, out);
	fputs(".SH EXIT STATUS\n"
	      "0: done. 1: the run failed. 2: the command line, or a file that it names, is wrong. 128 + N: ended by\n"
	      "signal N after writing what was finished.\n"
	      ".SH EXAMPLES\n",
		out);
	print_examples(program->example, out);
}
