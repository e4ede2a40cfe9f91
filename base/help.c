/* SPDX-License-Identifier: Apache-2.0
 *
 * help.c - the help that is read in a terminal: of the program, and of a command.
 *
 * Keeps true: no line is longer than 80 columns, unless a single word is; an option's text stands in one column.
 */
#include <inttypes.h>
#include <string.h>

#include "base/layout.h"
#include "base/options.h"

enum { COLUMNS = 80, INDENT = 2, OPTION_TEXT = 26, EXAMPLE_TEXT = 6, LABEL_BYTES = 128 };

/* A word and, in the column of texts, what it means; in the next line where the word is too long. */
static void print_entry(const char *label, const char *text, int column, FILE *out)
{
	int width = fprintf(out, "%*s%s", INDENT, "", label);
	if (text[0] == '\0') {
		fputc('\n', out);
		return;
	}
	if (width + 2 > column) {
		fputc('\n', out);
		width = 0;
	}
	fprintf(out, "%*s", column - width, "");
	skep_wrap(text, column, column, COLUMNS, out);
}

static int widest(const struct skep_word *word)
{
	size_t most = 0;
	for (; word->word != NULL; word++)
		most = strlen(word->word) > most ? strlen(word->word) : most;
	return (int)most;
}

static void print_words(const struct skep_command *command, FILE *out)
{
	if (command->word == NULL)
		return;
	fprintf(out, "\n%s:\n", command->words);
	for (const struct skep_word *word = command->word; word->word != NULL; word++)
		print_entry(word->word, word->help, INDENT + widest(command->word) + 2, out);
}

static void print_option(const struct skep_option *row, FILE *out)
{
	char label[LABEL_BYTES], text[1024], letter[8] = "    ";
	if (row->letter != 0)
		snprintf(letter, sizeof letter, "-%c, ", row->letter);
	if (row->type == SKEP_OPTION_FLAG && row->choice != NULL)
		snprintf(label, sizeof label, "%s--%s[=%s]", letter, row->name, row->choice[0]);
	else
		snprintf(label, sizeof label, "%s--%s%s%s", letter, row->name, row->value != NULL ? " " : "",
			row->value != NULL ? row->value : "");
	int length = snprintf(text, sizeof text, "%s", row->help);
	if (row->usual != NULL)
		length += snprintf(text + length, sizeof text - (size_t)length, " (default: %s)", row->usual);
	if (row->environment != NULL)
		snprintf(text + length, sizeof text - (size_t)length, " [$%s]", row->environment);
	print_entry(label, text, OPTION_TEXT, out);
}

static void print_options(const struct skep_command *command, FILE *out)
{
	static const struct skep_option help = {.name = "help", .letter = 'h', .help = "print this and exit"};
	for (const struct skep_option_group *g = command->group; g != NULL && g->title != NULL; g++) {
		if (g == command->group || strcmp(g->title, g[-1].title) != 0)
			fprintf(out, "\n%s:\n", g->title);
		for (uint32_t i = 0; i < g->rows; i++)
			print_option(&g->row[i], out);
		if (g[1].title == NULL)
			print_option(&help, out);
	}
}

/* A command for a shell: where it is too long for the page, a line ends before an option, with a backslash. */
static void print_shell(const char *words, FILE *out)
{
	size_t column = (size_t)fprintf(out, "  ");
	while (*words != '\0') {
		const char *next = strstr(words + 1, " -");
		size_t length = next != NULL ? (size_t)(next - words) : strlen(words);
		if (column > EXAMPLE_TEXT && column + length + strlen(" \\") > COLUMNS) {
			fprintf(out, " \\\n%*s", EXAMPLE_TEXT, "");
			column = EXAMPLE_TEXT;
			words++;
			length--;
		}
		column += (size_t)fprintf(out, "%.*s", (int)length, words);
		words += length;
	}
	fputc('\n', out);
}

static void print_examples(const struct skep_example *example, FILE *out)
{
	if (example == NULL)
		return;
	fputs("\nExamples:\n", out);
	for (; example->words != NULL; example++) {
		print_shell(example->words, out);
		fprintf(out, "%*s", EXAMPLE_TEXT, "");
		skep_wrap(example->help, EXAMPLE_TEXT, EXAMPLE_TEXT, COLUMNS, out);
	}
}

static void print_commands(const struct skep_command *const *command, FILE *out)
{
	size_t column = 0;
	for (const struct skep_command *const *c = command; *c != NULL; c++)
		if (strlen(skep_command_word(*c)) > column)
			column = strlen(skep_command_word(*c));
	for (; *command != NULL; command++)
		print_entry(skep_command_word(*command), (*command)->summary, INDENT + (int)column + 2, out);
}

static void print_text(const char *text, FILE *out)
{
	char line[1024];
	for (; *text != '\0'; text += text[0] == '\n') {
		int length = (int)strcspn(text, "\n");
		snprintf(line, sizeof line, "%.*s", length, text);
		skep_wrap(line, 0, 0, COLUMNS, out);
		text += length;
	}
}

void skep_help_program(const struct skep_program *program, FILE *out)
{
	fprintf(out, "usage: %s COMMAND [OPTIONS]\n\n", program->name);
	print_text(program->text, out);
	fputs("\nCommands:\n", out);
	print_commands(program->command, out);
	print_examples(program->example, out);
	fprintf(out, "\n`%s COMMAND --help` explains a command and its options.\n", program->name);
}

void skep_help_command(const struct skep_program *program, const struct skep_command *command, FILE *out)
{
	char usage[512];
	bool sub = command->sub != NULL;
	snprintf(usage, sizeof usage, "%s %s%s%s %s", program->name, command->name,
		command->operands[0] != '\0' ? " " : "", command->operands, sub ? "COMMAND [OPTIONS]" : "[OPTIONS]");
	fputs("usage: ", out);
	skep_wrap(usage, 12, 7, COLUMNS, out);
	fputc('\n', out);
	print_text(command->text, out);
	if (sub) {
		fputs("\nCommands:\n", out);
		print_commands(command->sub, out);
		fprintf(out, "\n`%s %s COMMAND --help` explains one of them.\n", program->name, command->name);
		return;
	}
	print_words(command, out);
	print_options(command, out);
	print_examples(command->example, out);
}

/* A value that the option takes: its example, or one in its range. */
static void find_example(const struct skep_option *row, char *ret, size_t size)
{
	switch (row->type) {
	case SKEP_OPTION_U32:
	case SKEP_OPTION_U64:
		snprintf(ret, size, "%" PRIu64, row->least > 0 ? row->least : row->most > 0 ? 1 : 0);
		break;
	case SKEP_OPTION_NUMBER:
		snprintf(ret, size, "%.10g", row->low);
		break;
	default:
		snprintf(ret, size, "%s", row->choice != NULL ? row->choice[0] : "text");
		break;
	}
	if (row->example != NULL)
		snprintf(ret, size, "%s", row->example);
}

static void print_rows(const struct skep_command *command, FILE *out)
{
	char example[128];
	for (const struct skep_option_group *g = command->group; g != NULL && g->title != NULL; g++)
		for (uint32_t i = 0; i < g->rows; i++) {
			const struct skep_option *row = &g->row[i];
			find_example(row, example, sizeof example);
			fprintf(out, "%s\t--%s\t%s\t%s\n", command->name, row->name, row->value ? row->value : "-",
				row->value ? example : "-");
		}
}

void skep_options_print(const struct skep_program *program, FILE *out)
{
	for (const struct skep_command *const *command = program->command; *command != NULL; command++) {
		print_rows(*command, out);
		for (const struct skep_command *const *sub = (*command)->sub; sub != NULL && *sub != NULL; sub++)
			print_rows(*sub, out);
	}
}
