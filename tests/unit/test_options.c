/* SPDX-License-Identifier: Apache-2.0
 *
 * test_options.c - a command line is read by a table of rows: types, ranges, forms of an option, defaults from the environment,
 * and the words in which it is refused; the help keeps to 80 columns; large counts are written as they are given.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/layout.h"
#include "base/options.h"
#include "base/text.h"

enum colour { RED, GREEN };

struct shared {
	bool json;
};

struct given {
	bool flag;
	uint32_t number;
	uint64_t seed;
	double part, time_s;
	enum colour colour;
	const char *name, *file;
	const char *set[2];
	uint32_t sets;
	bool has_number;
	char letter;
	struct shared shared;
};

static bool parse_letter(const char *value, void *ret)
{
	*(char *)ret = value[0];
	return strlen(value) == 1;
}

static const char *const colours[] = {"red", "green", NULL};
static const struct skep_option rows[] = {
	{"flag", 'f', SKEP_OPTION_FLAG, offsetof(struct given, flag), .help = "a flag"},
	{"number", 'n', SKEP_OPTION_U32, offsetof(struct given, number), "N", .least = 2, .most = 9, .help = "a number",
		.given_at = offsetof(struct given, has_number)},
	{"seed", 0, SKEP_OPTION_U64, offsetof(struct given, seed), "N", .most = INT64_MAX, .help = "a seed",
		.environment = "SKEP_TEST_SEED"},
	{"part", 0, SKEP_OPTION_NUMBER, offsetof(struct given, part), "P", .high = 1, .help = "a part"},
	{"time", 0, SKEP_OPTION_QUANTITY, offsetof(struct given, time_s), "TIME", .dimension = SKEP_TIME, .low = 1,
		.high = 60, .help = "a time", .expected = "a time of 1 s to 1 min"},
	{"colour", 0, SKEP_OPTION_CHOICE, offsetof(struct given, colour), "C", .choice = colours, .help = "a colour"},
	{"name", 0, SKEP_OPTION_TEXT, offsetof(struct given, name), "TEXT", .least = 1, .most = 3, .help = "a name"},
	{"file", 'o', SKEP_OPTION_PATH, offsetof(struct given, file), "FILE",
		.help = "a file, of which so much is to be said be said more than the one line that is left beside it"},
	{"set", 0, SKEP_OPTION_TEXTS, offsetof(struct given, set), "KEY=VALUE", .most = 2,
		.given_at = offsetof(struct given, sets), .help = "a setting"},
	{"letter", 0, SKEP_OPTION_PARSED, offsetof(struct given, letter), "L", .parse = parse_letter,
		.help = "a letter", .expected = "one letter"},
};
static const struct skep_option shared_rows[] = {
	{"json", 0, SKEP_OPTION_FLAG, offsetof(struct shared, json), .help = "JSON"}};
static const struct skep_option_group groups[] = {SKEP_OPTION_GROUP("Rows", rows, 0),
	SKEP_OPTION_GROUP("Shared", shared_rows, offsetof(struct given, shared)), {0}};
static const struct skep_option other_rows[] = {{"pace", 'p', SKEP_OPTION_FLAG, 0, .help = "of another command"}};
static const struct skep_option_group other_groups[] = {SKEP_OPTION_GROUP("Rows", other_rows, 0), {0}};

static struct given given;
static char *operand[8];

static enum status run(struct skep_command_line *line)
{
	enum status status;
	memset(operand, 0, sizeof operand);
	if (!skep_options_read(line, &given, &status))
		return status;
	for (uint32_t i = 0; i < line->operands; i++)
		operand[i] = line->operand[i];
	return STATUS_DONE;
}

static const struct skep_command one = {.name = "one",
	.operands = "FILE ...",
	.summary = "the first",
	.text = "Text.",
	.least = 1,
	.most = 3,
	.group = groups,
	.run = run};
static const struct skep_command two = {
	.name = "two", .operands = "", .summary = "the second", .text = "Text.", .group = other_groups, .run = run};
static const struct skep_command below = {.name = "group below",
	.operands = "FILE",
	.summary = "one of a group",
	.text = "Text.",
	.least = 1,
	.most = 1,
	.group = groups,
	.run = run};
static const struct skep_command *const subs[] = {&below, NULL};
static const struct skep_command group = {
	.name = "group", .operands = "", .summary = "a group", .text = "Text.", .sub = subs};
static const struct skep_command *const commands[] = {&one, &two, &group, NULL};
static const struct skep_program program = {
	.name = "skep", .version = "1", .summary = "a test", .text = "Text.", .command = commands};

/* Words with blanks between them; '_' is a blank in a word. What was printed is in text, both streams. */
static enum status reads(const char *line, char text[8192])
{
	static char copy[512];
	char *argv[32] = {"skep"};
	int argc = 1;
	FILE *out = stdout, *err = stderr;
	given = (struct given){0};
	snprintf(copy, sizeof copy, "%s", line);
	for (char *word = strtok(copy, " "); word != NULL; word = strtok(NULL, " ")) {
		for (char *c = word; *c != '\0'; c++)
			*c = *c == '_' ? ' ' : *c;
		argv[argc++] = word;
	}
	memset(text, 0, 8192);
	stdout = stderr = fmemopen(text, 8192, "w");
	assert_non_null(stdout);
	enum status status = skep_program_run(&program, argc, argv);
	fclose(stdout);
	stdout = out;
	stderr = err;
	return status;
}

static void every_type_and_form_is_read(void **state)
{
	char text[8192];
	(void)state;
	assert_int_equal(reads("one a --number 4 --seed=7 --part 0.5 --time 2_s --colour green -fo x b --set k=v --set "
			       "l=w --name abc --letter q --json -- -c",
				 text),
		STATUS_DONE);
	assert_true(given.flag && given.number == 4 && given.has_number && given.seed == 7 && given.part == 0.5);
	assert_true(given.time_s == 2 && given.colour == GREEN && given.sets == 2 && given.letter == 'q');
	assert_true(given.shared.json);
	assert_string_equal(given.file, "x");
	assert_string_equal(given.name, "abc");
	assert_string_equal(given.set[1], "l=w");
	assert_string_equal(operand[0], "a");
	assert_string_equal(operand[1], "b");
	assert_string_equal(operand[2], "-c");
	assert_string_equal(text, "");
}

static void a_name_may_be_shortened_and_a_value_stand_behind_its_letter(void **state)
{
	char text[8192];
	(void)state;
	assert_int_equal(reads("one a --col green --numb=5 -oname", text), STATUS_DONE);
	assert_true(given.colour == GREEN && given.number == 5);
	assert_string_equal(given.file, "name");
	assert_int_equal(reads("group below a -n3", text), STATUS_DONE);
	assert_int_equal(given.number, 3);
}

static void the_environment_gives_defaults(void **state)
{
	char text[8192];
	(void)state;
	setenv("SKEP_TEST_SEED", "11", 1);
	assert_int_equal(reads("one a", text), STATUS_DONE);
	assert_int_equal(given.seed, 11);
	assert_int_equal(reads("one a --seed 12", text), STATUS_DONE);
	assert_int_equal(given.seed, 12);
	setenv("SKEP_TEST_SEED", "much", 1);
	assert_int_equal(reads("one a", text), STATUS_BAD_INPUT);
	assert_string_equal(text, "skep: SKEP_TEST_SEED much: expected a whole number from 0 to 9223372036854775807\n");
	unsetenv("SKEP_TEST_SEED");
}

static const struct {
	const char *line, *said;
} refused[] = {
	{"one", "skep: one takes FILE ...; see skep one --help\n"},
	{"one a b c d", "skep: one takes FILE ...; 'd' is one word too many; see skep one --help\n"},
	{"two a", "skep: two takes no operands; 'a' is one word too many; see skep two --help\n"},
	{"one a --numbre 3", "skep: unrecognized option '--numbre', did you mean --number?; see skep one --help\n"},
	{"one a --s", "skep: unrecognized option '--s'; see skep one --help\n"},
	{"one a --=3", "skep: unrecognized option '--=3'; see skep one --help\n"},
	{"one a -z", "skep: invalid option -- 'z'; see skep one --help\n"},
	{"one a --pace", "skep: one does not take the option --pace; see skep one --help\n"},
	{"one a -p", "skep: one does not take the option -p; see skep one --help\n"},
	{"one a --flag=1", "skep: option '--flag=1' takes no value; see skep one --help\n"},
	{"one a --number", "skep: option '--number' requires an argument; see skep one --help\n"},
	{"one a -fn", "skep: option '-n' requires an argument; see skep one --help\n"},
	{"one a --number 1", "skep: --number 1: expected a whole number from 2 to 9\n"},
	{"one a -n x", "skep: -n x: expected a whole number from 2 to 9\n"},
	{"one a --seed -1", "skep: --seed -1: expected a whole number from 0 to 9223372036854775807\n"},
	{"one a --seed 18446744073709551616",
		"skep: --seed 18446744073709551616: expected a whole number from 0 to 9223372036854775807\n"},
	{"one a --part nan", "skep: --part nan: expected a number from 0 to 1\n"},
	{"one a --time 61_s", "skep: --time 61 s: expected a time of 1 s to 1 min\n"},
	{"one a --time 2", "skep: --time 2: expected a time of 1 s to 1 min\n"},
	{"one a --colour blue", "skep: --colour blue: expected one of red, green\n"},
	{"one a --name abcd", "skep: --name abcd: expected a text of 1 to 3 bytes\n"},
	{"one a --set a --set b --set c", "skep: --set c: expected at most 2 of them\n"},
	{"one a --letter qq", "skep: --letter qq: expected one letter\n"},
	{"on", "skep: there is no command 'on', did you mean one?; see skep --help\n"},
	{"group above", "skep: expected skep group below, not above\n"},
};

static void what_is_wrong_is_named(void **state)
{
	char text[8192];
	(void)state;
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
		enum status status = reads(refused[i].line, text);
		if (status != STATUS_BAD_INPUT || strcmp(text, refused[i].said) != 0)
			fail_msg("'%s' ended with %d and said:\n%s", refused[i].line, (int)status, text);
	}
}

static void the_help_keeps_to_80_columns(void **state)
{
	static const char *const lines[] = {"--help", "one --help", "one a -fh", "group --help", "group below -h"};
	char text[8192];
	(void)state;
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		assert_int_equal(reads(lines[i], text), STATUS_DONE);
		assert_memory_equal(text, "usage: skep ", 12);
		for (const char *at = text; *at != '\0'; at += strcspn(at, "\n") + 1)
			assert_true(strcspn(at, "\n") <= 80);
	}
	assert_non_null(strstr(text, "\n  -o, --file FILE         a file, of which so much "));
	assert_non_null(strstr(text, "\n                          "));
}

static void counts_have_the_letters_they_are_given_in(void **state)
{
	static const struct {
		double count;
		const char *text;
	} cases[] = {{7, "7"}, {524288, "524k"}, {355e6, "355M"}, {1e9, "1B"}, {1.431e9, "1.43B"}, {999.7e6, "1B"},
		{13e12, "13T"}};
	char text[SKEP_TEXT_BYTES];
	double back;
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		assert_string_equal(skep_count_text(cases[i].count, text), cases[i].text);
		assert_true(skep_count_parse(text, &back) && fabs(back / cases[i].count - 1) < 0.005);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_type_and_form_is_read),
		cmocka_unit_test(a_name_may_be_shortened_and_a_value_stand_behind_its_letter),
		cmocka_unit_test(the_environment_gives_defaults),
		cmocka_unit_test(what_is_wrong_is_named),
		cmocka_unit_test(the_help_keeps_to_80_columns),
		cmocka_unit_test(counts_have_the_letters_they_are_given_in),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
