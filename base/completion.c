/* SPDX-License-Identifier: Apache-2.0
 *
 * completion.c - scripts with which a shell completes command lines, of the same tables as the help.
 *
 * The script for bash looks up what the tables say in two `case`s: which words a command takes, and which values an option
 * does. zsh runs the same script. That for fish is a line for each command and each option.
 */
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "base/yaml/tree.h"

static const char bash_head[] =
	"# Completes the command lines of skep in bash; printed by `skep help --completion bash`.\n"
	"_skep_complete()\n"
	"{\n"
	"\tlocal current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]}\n"
	"\tlocal first=2 options= words= word\n"
	"\tif [[ $before == = ]]; then before=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
	"\tif [[ $current == = ]]; then before=${COMP_WORDS[COMP_CWORD-1]} current=; fi\n"
	"\tCOMPREPLY=()\n";

static const char bash_tail[] = "\tif [[ $current == -* ]]; then\n"
				"\t\tCOMPREPLY=($(compgen -W \"$options --help\" -- \"$current\"))\n"
				"\telif [[ $words && $COMP_CWORD -eq $first ]]; then\n"
				"\t\tCOMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
				"\telse\n"
				"\t\tCOMPREPLY=($(compgen -f -- \"$current\"))\n"
				"\tfi\n"
				"}\n";

/* The keys that stand in the scenario of the command line. */
static const char bash_keys[] =
	"\t'--set' | '--vary')\n"
	"\t\tfor word in \"${COMP_WORDS[@]:2}\"; do\n"
	"\t\t\tif [[ $word == *.yaml && -r $word ]]; then\n"
	"\t\t\t\tcompopt -o nospace\n"
	"\t\t\t\tCOMPREPLY=($(compgen -S = -W \"$(\"${COMP_WORDS[0]}\" help --keys \"$word\" 2>/dev/null)\" -- \"$current\"))\n"
	"\t\t\tfi\n"
	"\t\tdone\n"
	"\t\treturn ;;\n";

/* ---- bash ------------------------------------------------------------------------------------------------------------ */

static void print_words(const char *const *word, FILE *out)
{
	for (const char *const *w = word; *w != NULL; w++)
		fprintf(out, "%s%s", w == word ? "" : " ", *w);
}

static void print_names(const struct skep_command *const *command, FILE *out)
{
	const char *between = "";
	for (; *command != NULL; command++) {
		fprintf(out, "%s%s", between, skep_command_word(*command));
		between = " ";
	}
}

static void print_command(const struct skep_command *command, FILE *out)
{
	fprintf(out, "\t'%s') options='", command->name);
	for (const struct skep_option_group *g = command->group; g != NULL && g->title != NULL; g++)
		for (uint32_t i = 0; i < g->rows; i++)
			fprintf(out, " --%s", g->row[i].name);
	fputs("' words='", out);
	for (const struct skep_word *word = command->word; word != NULL && word->word != NULL; word++)
		fprintf(out, " %s", word->word);
	fputs("' ;;\n", out);
}

static void print_commands(const struct skep_command *const *command, FILE *out)
{
	for (; *command != NULL; command++)
		if ((*command)->sub != NULL)
			print_commands((*command)->sub, out);
		else
			print_command(*command, out);
}

/* What may stand behind the options of a command; behind a flag, what may stand anywhere. */
static void print_values(const struct skep_command *const *command, FILE *out)
{
	for (; *command != NULL; command++) {
		if ((*command)->sub != NULL)
			print_values((*command)->sub, out);
		for (const struct skep_option_group *g = (*command)->group; g != NULL && g->title != NULL; g++)
			for (uint32_t i = 0; i < g->rows; i++) {
				const struct skep_option *row = &g->row[i];
				if (row->type == SKEP_OPTION_FLAG || row->type == SKEP_OPTION_TEXTS)
					continue;
				fprintf(out, "\t'%s --%s'", (*command)->name, row->name);
				if (row->letter != 0)
					fprintf(out, " | '%s -%c'", (*command)->name, row->letter);
				fputs(row->type == SKEP_OPTION_PATH ? ") COMPREPLY=($(compgen -f"
								    : ") COMPREPLY=($(compgen -W '",
					out);
				if (row->choice != NULL)
					print_words(row->choice, out);
				fputs(row->type == SKEP_OPTION_PATH ? "" : "'", out);
				fputs(" -- \"$current\")); return ;;\n", out);
			}
	}
}

static void print_bash(const struct skep_program *program, FILE *out)
{
	fputs(bash_head, out);
	fputs("\tif ((COMP_CWORD == 1)); then\n\t\tCOMPREPLY=($(compgen -W '", out);
	print_names(program->command, out);
	fputs(" --help --version' -- \"$current\"))\n\t\treturn\n\tfi\n\tcase $command in\n", out);
	for (const struct skep_command *const *command = program->command; *command != NULL; command++) {
		if ((*command)->sub == NULL)
			continue;
		fprintf(out, "\t%s)\n\t\tif ((COMP_CWORD == 2)); then\n\t\t\tCOMPREPLY=($(compgen -W '",
			(*command)->name);
		print_names((*command)->sub, out);
		fputs(" --help' -- \"$current\"))\n\t\t\treturn\n\t\tfi\n"
		      "\t\tcommand+=\" ${COMP_WORDS[2]}\" first=3 ;;\n",
			out);
	}
	fputs("\tesac\n\tcase $before in\n", out);
	fputs(bash_keys, out);
	fputs("\tesac\n\tcase \"$command $before\" in\n", out);
	print_values(program->command, out);
	fputs("\tesac\n\tcase $command in\n", out);
	print_commands(program->command, out);
	fputs("\tesac\n", out);
	fputs(bash_tail, out);
}

/* ---- fish ------------------------------------------------------------------------------------------------------------ */

/* 'text', as fish reads it. */
static void print_quoted(const char *text, FILE *out)
{
	fputc('\'', out);
	for (; *text != 0; text++)
		fprintf(out, *text == '\'' || *text == '\\' ? "\\%c" : "%c", *text);
	fputc('\'', out);
}

/* The condition under which words of `command` are offered: its own words have been seen, and of it no sub-command. */
static void print_condition(const struct skep_command *command, FILE *out)
{
	const char *space = strchr(command->name, ' ');
	int first = space != NULL ? (int)(space - command->name) : (int)strlen(command->name);
	fprintf(out, " -n '__fish_seen_subcommand_from %.*s", first, command->name);
	if (space != NULL)
		fprintf(out, "; and __fish_seen_subcommand_from %s", space + 1);
	fputc('\'', out);
}

static void print_fish_option(
	const char *program, const struct skep_command *command, const struct skep_option *row, FILE *out)
{
	fprintf(out, "complete -c %s", program);
	print_condition(command, out);
	fprintf(out, " -l %s", row->name);
	if (row->letter != 0)
		fprintf(out, " -s %c", row->letter);
	if (row->type != SKEP_OPTION_FLAG)
		fputs(row->type == SKEP_OPTION_PATH ? " -r" : " -x", out);
	if (row->type != SKEP_OPTION_FLAG && row->choice != NULL) {
		fputs(" -a '", out);
		print_words(row->choice, out);
		fputc('\'', out);
	}
	fputs(" -d ", out);
	print_quoted(row->help, out);
	fputc('\n', out);
}

static void print_fish_command(const char *program, const struct skep_command *command, FILE *out)
{
	for (const struct skep_command *const *sub = command->sub; sub != NULL && *sub != NULL; sub++) {
		fprintf(out, "complete -c %s -f", program);
		print_condition(command, out);
		fprintf(out, " -a %s -d ", skep_command_word(*sub));
		print_quoted((*sub)->summary, out);
		fputc('\n', out);
		print_fish_command(program, *sub, out);
	}
	for (const struct skep_option_group *g = command->group; g != NULL && g->title != NULL; g++)
		for (uint32_t i = 0; i < g->rows; i++)
			print_fish_option(program, command, &g->row[i], out);
	for (const struct skep_word *word = command->word; word != NULL && word->word != NULL; word++) {
		fprintf(out, "complete -c %s", program);
		print_condition(command, out);
		fprintf(out, " -a %s -d ", word->word);
		print_quoted(word->help, out);
		fputc('\n', out);
	}
}

static void print_fish(const struct skep_program *program, FILE *out)
{
	fprintf(out, "# Completes the command lines of %s in fish; printed by `%s help --completion fish`.\n",
		program->name, program->name);
	for (const struct skep_command *const *command = program->command; *command != NULL; command++) {
		fprintf(out, "complete -c %s -n __fish_use_subcommand -f -a %s -d ", program->name,
			skep_command_word(*command));
		print_quoted((*command)->summary, out);
		fputc('\n', out);
		print_fish_command(program->name, *command, out);
	}
}

bool skep_completion_print(const struct skep_program *program, const char *shell, FILE *out)
{
	bool zsh = strcmp(shell, "zsh") == 0;
	if (strcmp(shell, "fish") == 0) {
		print_fish(program, out);
		return true;
	}
	if (!zsh && strcmp(shell, "bash") != 0)
		return false;
	if (zsh)
		fprintf(out, "#compdef %s\nautoload -U +X bashcompinit && bashcompinit\n", program->name);
	print_bash(program, out);
	fprintf(out,
		zsh ? "_bash_complete -o filenames -F _skep_complete\n"
		    : "complete -o filenames -F _skep_complete %s\n",
		program->name);
	return true;
}

/* ---- keys ------------------------------------------------------------------------------------------------------------ */

static void print_keys(const struct skep_yaml_node *node, FILE *out)
{
	char path[256];
	for (uint32_t i = 0; node != NULL && node->kind == SKEP_YAML_MAP && i < node->children; i++) {
		skep_tree_path(node->child[i], path, sizeof path);
		fprintf(out, "%s\n", path);
		print_keys(node->child[i], out);
	}
}

bool skep_completion_print_keys(const char *path, FILE *out, struct skep_diag *reterr)
{
	char *text;
	size_t size;
	if (!skep_file_read(path, SKEP_FILE_BYTES_MAX, &text, &size, reterr))
		return false;
	struct skep_yaml *yaml = skep_yaml_parse(path, text, size, reterr);
	if (yaml != NULL)
		print_keys(yaml->root, out);
	skep_yaml_destroy(yaml);
	free(text);
	return yaml != NULL;
}
