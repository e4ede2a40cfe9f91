/* SPDX-License-Identifier: Apache-2.0
 *
 * test_override.c - what is wrong with a value that `--set` gave is shown in the option, with a caret under what is wrong.
 */
#include "base/reader.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char FILE_TEXT[] = "model: {file: a.yaml, stages: 4}\nsteps: 3\nlink: {latency: 10 ms}\n";

/* As a caller would read such a file. */
static void read_all(struct skep_yaml *yaml, struct skep_diag *diag)
{
	struct skep_reader r = {yaml, diag};
	const struct skep_yaml_node *root = skep_yaml_root(yaml);
	const struct skep_yaml_node *model = skep_read_map(&r, root, "model", true);
	skep_read_string(&r, model, "file", NULL);
	skep_read_integer(&r, model, "stages", 1, 8, INT64_MIN);
	skep_reader_close_map(&r, model);
	skep_read_integer(&r, root, "steps", 1, 100, INT64_MIN);
	const struct skep_yaml_node *link = skep_read_map(&r, root, "link", false);
	skep_read_quantity(&r, link, "latency", SKEP_TIME, 0, 10, 0);
	const struct skep_yaml_node *deep = skep_read_map(&r, link, "deep", false);
	skep_read_integer(&r, deep, "number", 0, 9, 0);
	skep_reader_close_map(&r, deep);
	skep_reader_close_map(&r, link);
	skep_reader_close_map(&r, root);
}

static void show(const char *assignment, char *ret, size_t size)
{
	struct skep_diag diag = {0};
	struct skep_yaml *yaml = skep_yaml_parse("a.yaml", FILE_TEXT, sizeof FILE_TEXT - 1, &diag);
	assert_non_null(yaml);
	if (skep_yaml_override(yaml, assignment, &diag))
		read_all(yaml, &diag);
	assert_true(diag.set);
	skep_diag_print(&diag, ret, size);
	skep_yaml_destroy(yaml);
}

/* What stands above the caret, to the line's end. */
static const char *pointed(char *text)
{
	char *message = strchr(text, '\n'), *line = message ? message + 1 : NULL;
	char *below = line ? strchr(line, '\n') : NULL;
	char *caret = below ? strchr(below, '^') : NULL;
	if (!caret)
		return "(no caret)";
	*below = 0;
	size_t column = (size_t)(caret - below) - 1, at = 0; /* one column for each character */
	for (size_t i = 0; i < column && line[at]; i++)
		do
			at++;
		while (((unsigned char)line[at] & 0xc0) == 0x80);
	return line + at;
}

static void test_places(void **state)
{
	(void)state;
	static const struct {
		const char *assignment, *above;
	} at[] = {
		{"model.stages=9", "9"},
		{"model.stages=", ""},
		{"model.stages", ""},
		{"model.stages=[1, 2]", "[1, 2]"},
		{"model={file: b.yaml, stages: -3}", "-3}"},
		{"model={file: b.yaml, stags: 3}", "stags: 3}"},
		{"model={file: b.yaml, file: c.yaml}", "file: c.yaml}"},
		{"model={file: [b.yaml}", "}"},
		{"model={file: *b}", "*b}"},
		{"model.stags=3", "stags=3"},
		{"modl.stages=3", "modl.stages=3"},
		{"link.deep.number=10", "10"},
		{"link.deep.numbr=1", "numbr=1"},
		{"steps.more=1", "more=1"},
		{"link..latency=1 ms", ".latency=1 ms"},
		{"link.latency=10 parsec", "10 parsec"},
		{"linkü.latency=10 ms", "linkü.latency=10 ms"},
		{"link={Größe: 3}", "Größe: 3}"},
		{"model=\n{file: b.yaml,\nstages: 9}", "9}"},
	};
	for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
		char text[2048], seen[2048];
		show(at[i].assignment, text, sizeof text);
		assert_memory_equal(text, "--set ", 6);
		snprintf(seen, sizeof seen, "%s", text);
		if (strcmp(pointed(text), at[i].above) != 0)
			fail_msg("'%s': the caret is not above '%s':\n%s", at[i].assignment, at[i].above, seen);
	}
}

static void test_words(void **state)
{
	(void)state;
	char text[2048];
	show("model.stags=1", text, sizeof text);
	assert_string_equal(text, "--set model.stags=1: error: unknown key `model.stags`, did you mean `stages`?; "
				  "accepted here: file, stages\n  --set model.stags=1\n              ^\n");
}

/* A long one is cut around the place. */
static void test_long(void **state)
{
	(void)state;
	char assignment[1000], text[2048];
	snprintf(assignment, sizeof assignment, "model={file: %0600d, stages: 9, more: %0200d}", 1, 2);
	show(assignment, text, sizeof text);
	const char *above = pointed(text);
	assert_memory_equal(above, "9, more: 000", 12);
}

/* What the file wrote is shown in the file, whatever else an option has set. */
static void test_file(void **state)
{
	(void)state;
	struct skep_diag diag = {0};
	char text[2048];
	static const char wrong[] = "model: {file: a.yaml, stages: 40}\nsteps: 3\n";
	struct skep_yaml *yaml = skep_yaml_parse("a.yaml", wrong, sizeof wrong - 1, &diag);
	assert_true(skep_yaml_override(yaml, "model.file=c.yaml", &diag));
	read_all(yaml, &diag);
	skep_diag_print(&diag, text, sizeof text);
	assert_memory_equal(text, "a.yaml:1:31: error", 18);
	assert_string_equal(pointed(text), "40}");
	skep_yaml_destroy(yaml);
}

/* Null in a map is no value: the key is not there, and a wrong one is noticed. */
static void test_null_in_a_map(void **state)
{
	(void)state;
	struct skep_diag diag = {0};
	static const char text[] = "until: {steps: 3}\n";
	struct skep_yaml *yaml = skep_yaml_parse("a.yaml", text, sizeof text - 1, &diag);
	assert_true(skep_yaml_override(yaml, "until={steps: null, in: {no: null}, samples: 8}", &diag));
	struct skep_reader reader = {.yaml = yaml, .diag = &diag};
	const struct skep_yaml_node *until = skep_read_map(&reader, skep_yaml_root(yaml), "until", true);
	assert_false(skep_read_has(&reader, until, "steps"));
	assert_true(skep_read_has(&reader, until, "samples"));
	assert_false(skep_read_has(&reader, skep_read_map(&reader, until, "in", true), "no"));
	assert_false(diag.set);
	skep_yaml_destroy(yaml);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_long),
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_null_in_a_map),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
