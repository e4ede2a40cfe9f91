/* SPDX-License-Identifier: Apache-2.0
 *
 * test_csv.c - lines of any ending, across the borders of what is read at once; tables and their errors.
 */
#include "base/files/csv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/said.h"

static void put(const void *bytes, size_t size)
{
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

static void lines_end_in_any_way(void **state)
{
	(void)state;
	static const char *const expected[] = {"a", "b", "", "c", "", "d e", "f"};
	static const char text[] = "\xef\xbb\xbf"
				   "a\nb\r\n\rc\n\nd e\rf";
	struct skep_lines lines;
	struct skep_diag diag = {0};
	put(text, sizeof text - 1);
	assert_true(skep_lines_open(&lines, path, 100, &diag));
	for (uint32_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
		assert_true(skep_lines_next(&lines));
		assert_string_equal(lines.text, expected[i]);
		assert_int_equal(lines.line, i + 1);
	}
	assert_false(skep_lines_next(&lines));
	assert_false(diag.set);
	skep_lines_close(&lines);
}

/* Lines of growing length, so that some break stands at each place of a border. */
static void lines_cross_borders(void **state)
{
	(void)state;
	enum { LINES = 2000, ENDINGS = 3 };
	static const char *const ending[ENDINGS] = {"\n", "\r\n", "\r"};
	for (int e = 0; e < ENDINGS; e++) {
		char *text = malloc(LINES * (LINES + 4)), *end = text;
		struct skep_lines lines;
		struct skep_diag diag = {0};
		assert_non_null(text);
		for (uint32_t i = 0; i < LINES; i++) {
			memset(end, 'a' + (int)(i % 26), i);
			end = stpcpy(end + i, ending[e]);
		}
		put(text, (size_t)(end - text));
		assert_true(skep_lines_open(&lines, path, LINES, &diag));
		for (uint32_t i = 0; i < LINES; i++) {
			assert_true(skep_lines_next(&lines));
			assert_int_equal(lines.length, i);
			assert_true(i == 0 || lines.text[i - 1] == (char)('a' + i % 26));
		}
		assert_false(skep_lines_next(&lines));
		skep_lines_close(&lines);
		free(text);
	}
}

static void tables_have_named_columns(void **state)
{
	(void)state;
	static const char text[] = "# head\n name , value\n a,1\n\nb , 2.5e1 \n";
	static const char *const names[] = {"value", "name", NULL};
	static struct skep_table table;
	struct skep_diag diag = {0};
	uint32_t at[2];
	double value, sum = 0;
	put(text, sizeof text - 1);
	assert_true(skep_table_open(&table, path, &diag) && skep_table_need(&table, names, at));
	assert_int_equal(at[0], 1);
	assert_int_equal(skep_table_column(&table, "nothing"), UINT32_MAX);
	while (skep_table_next(&table)) {
		assert_true(skep_cell_number(&table.lines, table.cell[at[0]], "a value", 0, 100, &value));
		sum += value;
	}
	assert_true(sum == 26);
	skep_table_close(&table);
}

static void tables_say_what_is_wrong_and_where(void **state)
{
	(void)state;
	static const struct refused cases[] = {
		{"", 0, 0, "is empty"},
		{"name\n", 1, 1, "lacks these columns: value"},
		{"name,value\na\n", 2, 2, "this row has 1 cells, the header 2"},
		{"name,value\na,1,2\n", 2, 4, "this row has 3 cells"},
		{"name,value\na,\n", 2, 3, "the cell is empty"},
		{"name,value\n\xc3\xa4, nan\n", 2, 4, "a plain decimal number, not 'nan'"},
		{"name,value\na,101\n", 2, 3, "from 0 to 100, not 101"},
	};
	static const char *const names[] = {"value", NULL};
	static struct skep_table table;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct skep_diag diag = {0};
		uint32_t at;
		double value;
		put(cases[i].text, strlen(cases[i].text));
		if (skep_table_open(&table, path, &diag) && skep_table_need(&table, names, &at))
			while (skep_table_next(&table))
				skep_cell_number(&table.lines, table.cell[at], "a value", 0, 100, &value);
		skep_table_close(&table);
		assert_said(&diag, &cases[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_end_in_any_way),
		cmocka_unit_test(lines_cross_borders),
		cmocka_unit_test(tables_have_named_columns),
		cmocka_unit_test(tables_say_what_is_wrong_and_where),
	};
	return cmocka_run_group_tests(tests, make_file, remove_file);
}
