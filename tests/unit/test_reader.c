/* SPDX-License-Identifier: Apache-2.0
 *
 * test_reader.c - what the reader accepts, and what it says of everything else: place, caret, text, expectation.
 */
#include "base/reader.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- helpers -------------------------------------------------------------------------------------------------- */

struct fixture {
	struct skep_diag diag;
	struct skep_reader r;
	const struct skep_yaml_node *root;
};

static void open_text(struct fixture *f, const char *text)
{
	memset(f, 0, sizeof *f);
	f->r.diag = &f->diag;
	f->r.yaml = skep_yaml_parse("f.yaml", text, strlen(text), &f->diag);
	assert_true((f->r.yaml != NULL) != f->diag.set);
	f->root = f->r.yaml ? skep_yaml_root(f->r.yaml) : NULL;
}

static void close_text(struct fixture *f)
{
	skep_yaml_destroy(f->r.yaml);
}

static void check_diag(const struct skep_diag *diag, uint32_t line, uint32_t column, const char *part)
{
	if (!diag->set)
		fail_msg("accepted, expected: %s", part);
	if (!strstr(diag->message, part) || diag->line != line || diag->column != column)
		fail_msg("%u:%u: %s; expected %u:%u: %s", diag->line, diag->column, diag->message, line, column, part);
}

/* The text does not parse, for this reason at this place. */
static void check_refused(const char *text, uint32_t line, uint32_t column, const char *part)
{
	struct fixture f;
	open_text(&f, text);
	check_diag(&f.diag, line, column, part);
	close_text(&f);
}

/* ---- the diagnosis -------------------------------------------------------------------------------------------- */

static void diag_shows_line_and_caret(void **state)
{
	(void)state;
	struct skep_diag diag = {0};
	skep_diag_set(&diag, "a.yaml", 3, 4, "\tk: v\nnext", "expected %d", 5);
	skep_diag_set(&diag, "b.yaml", 1, 1, "x", "second");
	char text[1024];
	skep_diag_print(&diag, text, sizeof text);
	assert_string_equal(text, "a.yaml:3:4: error: expected 5\n   k: v\n     ^\n");
	skep_diag_print(&diag, text, 8);
	assert_string_equal(text, "a.yaml:");
	diag = (struct skep_diag){0};
	skep_diag_set(&diag, "a.yaml", 0, 0, NULL, "cannot be opened");
	skep_diag_print(&diag, text, sizeof text);
	assert_string_equal(text, "a.yaml: error: cannot be opened\n");
}

static void diag_cuts_long_lines_around_the_caret(void **state)
{
	(void)state;
	char line[2001];
	for (int at = 0; at < 2000; at += 37) {
		memset(line, 'a', 2000);
		line[2000] = 0;
		line[at] = 'X';
		struct skep_diag diag = {0};
		skep_diag_set(&diag, "f", 1, (uint32_t)at + 1, line, "m");
		assert_true(strlen(diag.text) < 100);
		assert_int_equal(diag.text[diag.caret], 'X');
	}
	struct skep_diag diag = {0};
	skep_diag_set(&diag, "f", 1, 4000000000u, "abc", "m");
	assert_int_equal(diag.caret, 3);
}

static void diag_counts_characters_not_bytes(void **state)
{
	(void)state;
	char line[3001] = "";
	for (int i = 0; i < 1500; i++)
		strcat(line, "\xc3\xa9");
	struct skep_diag diag = {0};
	skep_diag_set(&diag, "f", 1, 700, line, "m");
	assert_int_equal(diag.caret, 43);
	assert_memory_equal(diag.text, "...\xc3\xa9", 5);
	assert_int_equal((unsigned char)diag.text[3 + 2 * 40], 0xc3);
	assert_memory_equal(diag.text + 3 + 2 * 80, "...", 4);
}

static void diag_never_passes_control_characters(void **state)
{
	(void)state;
	struct skep_diag diag = {0};
	skep_diag_set(&diag, "f\033[2J", 1, 2, "a\x1b[31m\xff\xc2\x9b", "not `%s`", "\x1b]0;x\a\n\xe2\x80\xae");
	assert_string_equal(diag.file, "f?[2J");
	assert_string_equal(diag.text, "a?[31m??");
	assert_string_equal(diag.message, "not `?]0;x???`");
}

/* ---- files ---------------------------------------------------------------------------------------------------- */

static char folder[64];

static int make_folder(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/skep-test-reader-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	char command[128];
	snprintf(command, sizeof command, "rm -r %s", folder);
	return system(command);
}

static const char *write_file(const char *name, const char *bytes, size_t size)
{
	static char path[256];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	FILE *f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, size, f), size);
	fclose(f);
	return path;
}

static void check_unreadable(const char *path, size_t limit, const char *part)
{
	struct skep_diag diag = {0};
	char *text;
	size_t size;
	assert_false(skep_file_read(path, limit, &text, &size, &diag));
	assert_null(text);
	check_diag(&diag, 0, 0, part);
	assert_string_equal(diag.file, path);
}

static void file_read_gives_the_bytes(void **state)
{
	(void)state;
	struct skep_diag diag = {0};
	char *text, large[100000];
	size_t size;
	assert_true(skep_file_read(write_file("a", "one\r\ntwo", 8), 8, &text, &size, &diag));
	assert_int_equal(size, 8);
	assert_string_equal(text, "one\r\ntwo");
	free(text);
	assert_true(skep_file_read(write_file("a", "", 0), 8, &text, &size, &diag));
	assert_int_equal(size, 0);
	free(text);
	assert_true(skep_file_read(write_file("a", "\xef\xbb\xbfx: 1", 7), 8, &text, &size, &diag));
	assert_string_equal(text, "x: 1");
	assert_int_equal(size, 4);
	free(text);
	memset(large, 'a', sizeof large);
	assert_true(skep_file_read(write_file("a", large, sizeof large), sizeof large, &text, &size, &diag));
	assert_int_equal(size, sizeof large);
	assert_memory_equal(text, large, size);
	free(text);
}

static void file_read_refuses(void **state)
{
	(void)state;
	char fifo[128];
	check_unreadable("/nonexistent/a.yaml", 10, "No such file");
	check_unreadable(folder, 10, "is a directory");
	check_unreadable("/dev/zero", 10, "not a regular file");
	check_unreadable(write_file("a", "12345678901", 11), 10, "too large");
	check_unreadable(write_file("a", "a\0b", 3), 10, "zero bytes");
	check_unreadable(write_file("a", "a\0b45678901", 11), 10, "zero bytes");
	check_unreadable("/proc/self/maps", 10, "too large");
	snprintf(fifo, sizeof fifo, "%s/fifo", folder);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	check_unreadable(fifo, 10, "not a regular file");
}

static void file_find_looks_in_the_folders_above(void **state)
{
	(void)state;
	char path[256], from[128], found[256], expected[256];
	snprintf(path, sizeof path, "%s/x", folder);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof path, "%s/x/y", folder);
	assert_int_equal(mkdir(path, 0700), 0);
	write_file("x/y/near.yaml", "", 0);
	write_file("x/mid.yaml", "", 0);
	write_file("top.yaml", "", 0);
	snprintf(from, sizeof from, "%s/x/y/from.yaml", folder);
	assert_true(skep_file_find(NULL, from, "near.yaml", found, sizeof found));
	snprintf(expected, sizeof expected, "%s/x/y/near.yaml", folder);
	assert_string_equal(found, expected);
	assert_true(skep_file_find(NULL, from, "mid.yaml", found, sizeof found));
	assert_true(skep_file_find(NULL, from, "top.yaml", found, sizeof found));
	snprintf(expected, sizeof expected, "%s/top.yaml", folder);
	assert_string_equal(found, expected);
	assert_true(skep_file_find(NULL, from, expected, found, sizeof found));
	assert_true(skep_file_find(NULL, from, "etc/passwd", found, sizeof found));
	assert_true(skep_file_find(NULL, NULL, expected, found, sizeof found));
	assert_false(skep_file_find(NULL, from, "none.yaml", found, sizeof found));
	assert_false(skep_file_find(NULL, "from.yaml", "none.yaml", found, sizeof found));
	assert_false(skep_file_find(NULL, from, "", found, sizeof found));
	assert_false(skep_file_find(NULL, from, expected, found, 5));
}

/* ---- YAML ----------------------------------------------------------------------------------------------------- */

static void yaml_reads_maps_lists_scalars(void **state)
{
	(void)state;
	struct fixture f;
	open_text(&f, "a: {b: [1, two, 'th ree']}\r\nc:\r\n  - d: 4\r\n  - \"5\"\r\n");
	const struct skep_yaml_node *a = skep_read_map(&f.r, f.root, "a", true);
	const struct skep_yaml_node *b = skep_read_list(&f.r, a, "b", true),
				    *c = skep_read_list(&f.r, f.root, "c", true);
	assert_int_equal(skep_yaml_length(b), 3);
	assert_int_equal(skep_read_integer(&f.r, skep_yaml_item(b, 0), NULL, 0, 9, INT64_MIN), 1);
	assert_string_equal(skep_read_string(&f.r, skep_yaml_item(b, 1), NULL, NULL), "two");
	assert_string_equal(skep_read_string(&f.r, skep_yaml_item(b, 2), NULL, NULL), "th ree");
	assert_null(skep_yaml_item(b, 3));
	assert_int_equal(skep_read_integer(&f.r, skep_yaml_item(c, 0), "d", 0, 9, INT64_MIN), 4);
	assert_int_equal(skep_read_integer(&f.r, skep_yaml_item(c, 1), NULL, 0, 9, INT64_MIN), 5);
	assert_int_equal(skep_yaml_kind(a), SKEP_YAML_MAP);
	assert_int_equal(skep_yaml_kind(NULL), SKEP_YAML_NONE);
	skep_reader_close_map(&f.r, f.root);
	assert_false(f.diag.set);
	close_text(&f);
}

static void yaml_accepts_a_byte_order_mark(void **state)
{
	(void)state;
	struct fixture f;
	open_text(&f, "\xef\xbb\xbf"
		      "a: 1\n");
	assert_int_equal(skep_read_integer(&f.r, f.root, "a", 0, 9, INT64_MIN), 1);
	close_text(&f);
}

static void yaml_refuses(void **state)
{
	(void)state;
	check_refused("", 1, 1, "the file is empty");
	check_refused("# only this\n", 1, 1, "the file is empty");
	check_refused("- a\n", 1, 1, "expected keys with values");
	check_refused("\n  text\n", 2, 3, "expected keys with values");
	check_refused("a: 1\nb: 2\na: 3\n", 3, 1, "key `a` stands twice: it is already in line 1");
	check_refused("x: {k: 1, m: 2, k: 3}\n", 1, 17, "key `k` stands twice");
	check_refused("a: &x 1\nb: *x\n", 1, 4, "anchor `&x`");
	check_refused("b: *x\n", 1, 4, "alias `*x`");
	check_refused("b: !!str x\n", 1, 4, "tags are not allowed");
	check_refused("%TAG ! tag:x,2000:\n---\na: 1\n", 1, 1, "tags are not allowed");
	check_refused("&k a: 1\n", 1, 1, "anchor `&k`");
	check_refused("a: 1\n---\nb: 2\n", 2, 1, "a second document");
	check_refused("[a]: 1\n", 1, 1, "key must be plain text");
	check_refused("a:\n\tb: 1\n", 2, 1, "a tab");
	check_refused("a: [1, 2\n", 2, 1, "not YAML");
	check_refused("a: 'x\n", 2, 1, "not YAML");
	check_refused("a: 1\n b: 2\n", 2, 3, "not YAML");
	check_refused("a: \"x\\0y\"\n", 1, 4, "control character U+0000");
	check_refused("a: \"x\\e[2Jy\"\n", 1, 4, "control character U+001B");
	check_refused("b: 1\n\"k\\x07\": 1\n", 2, 1, "control character U+0007");
	check_refused("a: \"x\\ny\"\n", 1, 4, "a line break");
	check_refused("a: \"x\\Ly\"\n", 1, 4, "a line break");
	check_refused("a: |\n  x\n  y\n", 1, 4, "a line break");
	check_refused("a: \"\\u202ex\"\n", 1, 4, "control character U+202E");
	check_refused("ok: 1\nb: caf\xe9\n", 2, 7, "byte 0xe9 is not UTF-8");
	check_refused("ok: 1\n\xc3\xa9: \x01\n", 2, 4, "control character U+0001");
	check_refused("a: \xc2\x85\n", 1, 4, "control character U+0085");
	check_refused("a: \xed\xa0\x80\n", 1, 4, "not UTF-8");
	check_refused("a: \xc0\xaf\n", 1, 4, "not UTF-8");
}

static void yaml_bounds_depth_and_size(void **state)
{
	(void)state;
	char deep[200] = "a: ";
	memset(deep + 3, '[', 100);
	deep[103] = 0;
	check_refused(deep, 1, 19, "nested deeper than 16");
	size_t size = 3 + 2 * (1 << 18);
	char *many = malloc(size + 1);
	memcpy(many, "a: [", 4);
	for (size_t i = 4; i < size; i += 2)
		memcpy(many + i, "1,", 2);
	many[size] = 0;
	check_refused(many, 1, 524289, "more than 262144 values");
	free(many);
}

static void yaml_survives_an_anchor_bomb(void **state)
{
	(void)state;
	char text[4096] = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
	for (int i = 1; i < 40; i++)
		sprintf(text + strlen(text), "a%d: &a%d [*a%d, *a%d, *a%d, *a%d]\n", i, i, i - 1, i - 1, i - 1, i - 1);
	check_refused(text, 1, 5, "anchor");
}

static void override_replaces_adds_and_prints(void **state)
{
	(void)state;
	static const char *const text = "a: {b: 1, c: [x]} # why\nd: 'q: 1'\n";
	struct fixture f;
	open_text(&f, text);
	char *printed = skep_yaml_print(f.r.yaml);
	assert_string_equal(printed, text);
	free(printed);
	assert_true(skep_yaml_override(f.r.yaml, "a.b=2", &f.diag));
	assert_true(skep_yaml_override(f.r.yaml, "a.c=[1, 2]", &f.diag));
	assert_true(skep_yaml_override(f.r.yaml, "e.f.g={h: 100 ms}", &f.diag));
	assert_true(skep_yaml_override(f.r.yaml, "e.f.g.h=200 ms", &f.diag));
	assert_true(skep_yaml_override(f.r.yaml, "i=", &f.diag));
	printed = skep_yaml_print(f.r.yaml);
	assert_string_equal(printed, "a: {b: 2, c: [1, 2]}\nd: \"q: 1\"\ne:\n  f:\n    g: {h: 200 ms}\ni: \"\"\n");
	free(printed);
	close_text(&f);
}

static void override_errors_name_the_option(void **state)
{
	(void)state;
	static const struct {
		const char *option, *part;
		uint32_t column;
	} cases[] = {
		{"a.b.c=1", "`a.b.c` does not lead to a key", 11},
		{"=1", "does not lead to a key", 7},
		{"a..b=1", "does not lead to a key", 9},
		{"a", "expected --set key.path=value", 8},
		{"", "expected --set key.path=value", 7},
		{"a=[1", "not YAML", 11},
		{"a=&x 1", "anchor", 9},
		{"a=\xff", "not UTF-8", 9},
		{"a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a=1", "nested deeper", 41},
		{"a={b: 1, b: 2}", "stands twice", 16},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct fixture f;
		open_text(&f, "a: {b: 1}\n");
		assert_false(skep_yaml_override(f.r.yaml, cases[i].option, &f.diag));
		check_diag(&f.diag, 0, cases[i].column, cases[i].part);
		assert_memory_equal(f.diag.file, "--set ", 6);
		if (!strchr(cases[i].option, '\xff')) /* shown as '?' */
			assert_string_equal(f.diag.file + 6, cases[i].option);
		close_text(&f);
	}
}

/* ---- values --------------------------------------------------------------------------------------------------- */

static void integers(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		bool ok;
		int64_t value;
	} cases[] = {{"0", 1, 0}, {"7", 1, 7}, {"+7", 1, 7}, {"-5", 1, -5}, {"'7'", 1, 7}, {"100", 1, 100},
		{"101", 0, 0}, {"-6", 0, 0}, {"07", 0, 0}, {"0x7", 0, 0}, {"0o7", 0, 0}, {"7.0", 0, 0}, {"7e0", 0, 0},
		{"7 s", 0, 0}, {"1_0", 0, 0}, {"seven", 0, 0}, {"", 0, 0}, {"9223372036854775808", 0, 0},
		{"99999999999999999999999999", 0, 0}, {"[7]", 0, 0}, {"{a: 7}", 0, 0}, {"--7", 0, 0}, {"'-'", 0, 0},
		{"~", 0, 0}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char text[64];
		struct fixture f;
		snprintf(text, sizeof text, "m:\n  k: %s\n", cases[i].text);
		open_text(&f, text);
		const struct skep_yaml_node *m = skep_read_map(&f.r, f.root, "m", true);
		int64_t value = skep_read_integer(&f.r, m, "k", -5, 100, INT64_MIN);
		assert_int_equal(value, cases[i].ok ? cases[i].value : -5);
		if (!cases[i].ok)
			check_diag(&f.diag, 2, cases[i].text[0] ? 6 : 5,
				"m.k: expected a whole decimal number from -5 to 100, ");
		assert_int_equal(f.diag.set, !cases[i].ok);
		close_text(&f);
	}
}

static void numbers(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		double value; /* NAN: refused */
	} cases[] = {{"0", 0}, {"1.5", 1.5}, {"-1.25e-2", -0.0125}, {".5", 0.5}, {"4.0e-4", 4e-4}, {"1E2", 100},
		{"+3", 3}, {"1e999", NAN}, {"-1e999", NAN}, {"nan", NAN}, {".nan", NAN}, {".inf", NAN}, {"inf", NAN},
		{"0x10", NAN}, {"1.5x", NAN}, {"010", NAN}, {"1 000", NAN}, {"1e", NAN}, {"1,5", NAN}, {"100.1", NAN},
		{"5.", NAN}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char text[64];
		struct fixture f;
		snprintf(text, sizeof text, "k: %s\n", cases[i].text);
		open_text(&f, text);
		double value = skep_read_number(&f.r, f.root, "k", -100, 100, NAN);
		assert_true(value == (isnan(cases[i].value) ? -100 : cases[i].value));
		assert_int_equal(f.diag.set, isnan(cases[i].value));
		if (f.diag.set)
			check_diag(&f.diag, 1, 4, "k: expected a decimal number from -100 to 100, not `");
		close_text(&f);
	}
}

static void quantities(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		enum skep_dimension dimension;
		double value; /* NAN: refused */
	} cases[] = {{"100 ms", SKEP_TIME, 0.1}, {"2 h", SKEP_TIME, 7200}, {"1.5min", SKEP_TIME, 90},
		{"200 Mbit/s", SKEP_BANDWIDTH, 25e6}, {"1 GiB/s", SKEP_BANDWIDTH, 1073741824},
		{"8 bit/s", SKEP_BANDWIDTH, 1}, {"16 GiB", SKEP_BYTES, 17179869184}, {"16 GB", SKEP_BYTES, 16e9},
		{"65 TFLOP/s", SKEP_SPEED, 65e12}, {"0.35 USD/h", SKEP_PRICE, 0.35}, {"100", SKEP_TIME, NAN},
		{"ms", SKEP_TIME, NAN}, {"100 MB", SKEP_TIME, NAN}, {"100 MS", SKEP_TIME, NAN},
		{"1 GB", SKEP_BANDWIDTH, NAN}, {"1 Gb/s", SKEP_BANDWIDTH, NAN}, {"1 ms s", SKEP_TIME, NAN},
		{"0x1 s", SKEP_TIME, NAN}, {"1e999 s", SKEP_TIME, NAN}, {"1e300 TB", SKEP_BYTES, NAN},
		{"1e308 TB", SKEP_BYTES, NAN}, {"nan s", SKEP_TIME, NAN}, {"-1 s", SKEP_TIME, NAN},
		{"1e s", SKEP_TIME, NAN}, {"", SKEP_TIME, NAN}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char text[64];
		struct fixture f;
		snprintf(text, sizeof text, "k: %s\n", cases[i].text);
		open_text(&f, text);
		double value = skep_read_quantity(&f.r, f.root, "k", cases[i].dimension, 0, 1e18, NAN);
		double expected = isnan(cases[i].value) ? 0 : cases[i].value;
		assert_true(fabs(value - expected) <= 1e-12 * expected);
		assert_int_equal(f.diag.set, isnan(cases[i].value));
		close_text(&f);
	}
}

static void quantity_errors_list_the_units(void **state)
{
	(void)state;
	struct fixture f;
	open_text(&f, "k: 200\n");
	skep_read_quantity(&f.r, f.root, "k", SKEP_BANDWIDTH, 0, 1e18, NAN);
	check_diag(&f.diag, 1, 4, "k: expected a bandwidth with its unit, such as `200 Mbit/s` (bit/s kbit/s Mbit/s");
	close_text(&f);
	open_text(&f, "k: 2 h\n");
	skep_read_quantity(&f.r, f.root, "k", SKEP_TIME, 0.5, 3600, NAN);
	check_diag(&f.diag, 1, 4, "k: expected a value from 0.5 s to 3600 s, not `2 h`");
	close_text(&f);
}

static void words_and_texts(void **state)
{
	(void)state;
	static const char *const words[] = {"none", "real", NULL};
	struct fixture f;
	open_text(&f, "a: real\nb: true\nc: some text\n");
	assert_int_equal(skep_read_choice(&f.r, f.root, "a", words, -1), 1);
	assert_int_equal(skep_read_choice(&f.r, f.root, "z", words, 0), 0);
	assert_true(skep_read_bool(&f.r, f.root, "b", false));
	assert_true(skep_read_bool(&f.r, f.root, "y", true));
	assert_string_equal(skep_read_string(&f.r, f.root, "c", NULL), "some text");
	assert_string_equal(skep_read_string(&f.r, f.root, "x", "else"), "else");
	assert_false(f.diag.set);
	skep_read_choice(&f.r, f.root, "c", words, -1);
	check_diag(&f.diag, 3, 4, "c: expected one of: none, real, not `some text`");
	close_text(&f);
}

static void missing_keys_and_wrong_kinds(void **state)
{
	(void)state;
	struct fixture f;
	open_text(&f, "a: 1\nm:\n  b: 2\n");
	const struct skep_yaml_node *m = skep_read_map(&f.r, f.root, "m", true);
	assert_null(skep_read_map(&f.r, m, "none", false));
	assert_int_equal(skep_read_integer(&f.r, NULL, "k", 1, 9, 4), 4);
	assert_int_equal(skep_read_integer(&f.r, m, "c", 1, 9, INT64_MIN), 1);
	check_diag(&f.diag, 3, 3, "key `m.c` is missing");
	assert_int_equal(skep_read_integer(&f.r, f.root, "a", 0, 9, 5), 5); /* nothing is read after an error */
	close_text(&f);
	open_text(&f, "a: 1\n");
	assert_null(skep_read_map(&f.r, f.root, "a", true));
	check_diag(&f.diag, 1, 4, "a: expected keys with values (name: value), not `1`");
	close_text(&f);
	open_text(&f, "a: [1]\n");
	assert_string_equal(skep_read_string(&f.r, f.root, "a", NULL), "");
	check_diag(&f.diag, 1, 4, "a: expected a text, not a list");
	close_text(&f);
	open_text(&f, "a: [[7]]\n");
	skep_read_string(
		&f.r, skep_yaml_item(skep_yaml_item(skep_read_list(&f.r, f.root, "a", true), 0), 0), "k", NULL);
	check_diag(&f.diag, 1, 6, "a[0][0]: expected keys with values");
	close_text(&f);
	open_text(&f, "a: 1\n");
	skep_read_integer(&f.r, NULL, "k", 1, 9, INT64_MIN);
	check_diag(&f.diag, 0, 0, "key `k` is missing");
	close_text(&f);
}

static void unknown_keys_are_refused(void **state)
{
	(void)state;
	struct fixture f;
	open_text(&f, "seed: 1\nmicrobacth: 3\n");
	skep_read_has(&f.r, f.root, "seed");
	skep_read_has(&f.r, f.root, "microbatch");
	skep_reader_close_map(&f.r, f.root);
	check_diag(
		&f.diag, 2, 1, "unknown key `microbacth`, did you mean `microbatch`?; accepted here: seed, microbatch");
	close_text(&f);
	open_text(&f, "m: {zzzzzz: 3}\n");
	const struct skep_yaml_node *m = skep_read_map(&f.r, f.root, "m", true);
	skep_read_has(&f.r, m, "seed");
	skep_reader_close_map(&f.r, m);
	check_diag(&f.diag, 1, 5, "unknown key `m.zzzzzz`; accepted here: seed");
	close_text(&f);
}

static void free_keys_are_read_in_order(void **state)
{
	(void)state;
	struct fixture f;
	const char *key;
	open_text(&f, "west: 1\neast: 2\n");
	assert_int_equal(skep_read_integer(&f.r, skep_read_entry(&f.r, f.root, 0, &key), NULL, 0, 9, INT64_MIN), 1);
	assert_string_equal(key, "west");
	assert_int_equal(skep_read_integer(&f.r, skep_read_entry(&f.r, f.root, 1, &key), NULL, 0, 9, INT64_MIN), 2);
	assert_string_equal(key, "east");
	assert_null(skep_read_entry(&f.r, f.root, 2, &key));
	skep_reader_close_map(&f.r, f.root);
	assert_false(f.diag.set);
	close_text(&f);
}

static void callers_errors_stand_at_the_value(void **state)
{
	(void)state;
	struct fixture f;
	open_text(&f, "a: 1\nm: {b: 2}\n");
	skep_reader_fail(&f.r, skep_read_map(&f.r, f.root, "m", true), "b", "too %s", "odd");
	check_diag(&f.diag, 2, 8, "too odd");
	assert_string_equal(f.diag.text, "m: {b: 2}");
	close_text(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(diag_shows_line_and_caret),
		cmocka_unit_test(diag_cuts_long_lines_around_the_caret),
		cmocka_unit_test(diag_counts_characters_not_bytes),
		cmocka_unit_test(diag_never_passes_control_characters),
		cmocka_unit_test(file_read_gives_the_bytes),
		cmocka_unit_test(file_read_refuses),
		cmocka_unit_test(file_find_looks_in_the_folders_above),
		cmocka_unit_test(yaml_reads_maps_lists_scalars),
		cmocka_unit_test(yaml_accepts_a_byte_order_mark),
		cmocka_unit_test(yaml_refuses),
		cmocka_unit_test(yaml_bounds_depth_and_size),
		cmocka_unit_test(yaml_survives_an_anchor_bomb),
		cmocka_unit_test(override_replaces_adds_and_prints),
		cmocka_unit_test(override_errors_name_the_option),
		cmocka_unit_test(integers),
		cmocka_unit_test(numbers),
		cmocka_unit_test(quantities),
		cmocka_unit_test(quantity_errors_list_the_units),
		cmocka_unit_test(words_and_texts),
		cmocka_unit_test(missing_keys_and_wrong_kinds),
		cmocka_unit_test(unknown_keys_are_refused),
		cmocka_unit_test(free_keys_are_read_in_order),
		cmocka_unit_test(callers_errors_stand_at_the_value),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
