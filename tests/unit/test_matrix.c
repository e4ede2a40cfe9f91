/* SPDX-License-Identifier: Apache-2.0
 *
 * test_matrix.c - matrices from comma-separated text: what is read, and where it says that it cannot be.
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
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/said.h"

static bool read_text(const char *text, bool allow_holes, uint32_t *ret_n, double **ret, struct skep_diag *reterr)
{
	FILE *f = fopen(path, "wb");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	memset(reterr, 0, sizeof *reterr);
	return skep_matrix_read(path, allow_holes, ret_n, ret, reterr);
}

static void check_values(const char *text, uint32_t n, const double *values)
{
	struct skep_diag diag;
	double *value;
	uint32_t got;
	assert_true(read_text(text, true, &got, &value, &diag));
	assert_int_equal(got, n);
	for (uint32_t i = 0; i < n * n; i++)
		assert_true(isnan(values[i]) ? isnan(value[i]) : value[i] == values[i]);
	free(value);
}

static void matrix_reads_numbers_and_holes(void **state)
{
	(void)state;
	check_values("5", 1, (const double[]){5});
	check_values("0,1\n2.5,3e2\n", 2, (const double[]){0, 1, 2.5, 300});
	check_values("# head\n\n 0 ,\t1 # why\r\n  \n\n2,0", 2, (const double[]){0, 1, 2, 0});
	check_values(",nan\rNaN, 4\r", 2, (const double[]){NAN, NAN, NAN, 4});
	check_values("\xef\xbb\xbf"
		     "1,2\n3,4\n",
		2, (const double[]){1, 2, 3, 4});
	check_values("1,\n,4\n", 2, (const double[]){1, NAN, NAN, 4});
}

static void matrix_of_many_rows(void **state)
{
	(void)state;
	enum { N = 300 };
	char *text = malloc(N * N * 8), *to = text;
	for (int i = 0; i < N * N; i++)
		to += sprintf(to, "%d%c", i, i % N == N - 1 ? '\n' : ',');
	struct skep_diag diag;
	double *value;
	uint32_t n;
	assert_true(read_text(text, false, &n, &value, &diag));
	assert_int_equal(n, N);
	for (int i = 0; i < N * N; i++)
		assert_true(value[i] == i);
	free(value);
	free(text);
}

static void matrix_refuses(void **state)
{
	(void)state;
	static const struct refused cases[] = {
		{"", 1, 1, "the matrix is empty"},
		{"\n\n# nothing\n", 1, 1, "the matrix is empty"},
		{"1,2\n3\n", 2, 2, "row 2 has 1 cells, the first row has 2"},
		{"1,2\n3,4,5\n", 2, 5, "row 2 has more than the 2 cells"},
		{"1,2\n3,4,\n", 2, 5, "row 2 has more than the 2 cells"},
		{"1,2,3\n4,5,6\n", 2, 1, "ends after 2 rows of 3 columns"},
		{"1\n2\n", 2, 1, "row 2 in a matrix of 1 columns"},
		{"a,b\n1,2\n", 1, 1, "expected a number, not `a`"},
		{"1, 2x\n3,4\n", 1, 4, "expected a number, not `2x`"},
		{"1 2\n3 4\n", 1, 1, "expected a number, not `1 2`"},
		{"1;2\n3;4\n", 1, 1, "expected a number, not `1;2`"},
		{"1,\n3,4\n", 1, 3, "a hole in the matrix"},
		{"1,2\nnan,4\n", 2, 1, "a hole in the matrix"},
		{"1,-2\n3,4\n", 1, 3, "expected a finite number of at least 0, not `-2`"},
		{"1,-0\n3,4\n", 1, 3, "at least 0, not `-0`"},
		{"1,inf\n3,4\n", 1, 3, "expected a number, not `inf`"},
		{"1,1e999\n3,4\n", 1, 3, "finite number"},
		{"1,0x2\n3,4\n", 1, 3, "expected a number, not `0x2`"},
		{"1,2\r\n3,q\r\n", 2, 3, "expected a number, not `q`"},
		{"1,\xff\n3,4\n", 1, 3, "expected a number, not `?`"},
		{"PK\x03\x04", 1, 1, "expected a number, not `PK??`"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct skep_diag diag;
		double *value;
		uint32_t n;
		assert_false(read_text(cases[i].text, false, &n, &value, &diag));
		assert_null(value);
		assert_int_equal(n, 0);
		assert_said(&diag, &cases[i]);
	}
}

static void matrix_refuses_what_is_no_file(void **state)
{
	(void)state;
	struct skep_diag diag = {0};
	double *value;
	uint32_t n;
	assert_false(skep_matrix_read("/nonexistent.csv", true, &n, &value, &diag));
	assert_string_equal(diag.file, "/nonexistent.csv");
	memset(&diag, 0, sizeof diag);
	assert_false(skep_matrix_read("/", true, &n, &value, &diag));
	assert_non_null(strstr(diag.message, "is a directory"));
}

static void matrix_survives_garbage(void **state)
{
	(void)state;
	enum { SIZE = 10000000 };
	char *text = malloc(SIZE + 1);
	uint32_t x = 12345;
	for (int i = 0; i < SIZE; i++) {
		x = x * 1664525u + 1013904223u;
		text[i] = (char)(1 + (x >> 24) % 255);
	}
	text[SIZE] = 0;
	struct skep_diag diag;
	double *value;
	uint32_t n;
	assert_false(read_text(text, true, &n, &value, &diag));
	assert_true(diag.set && diag.line > 0);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(matrix_reads_numbers_and_holes),
		cmocka_unit_test(matrix_of_many_rows),
		cmocka_unit_test(matrix_refuses),
		cmocka_unit_test(matrix_refuses_what_is_no_file),
		cmocka_unit_test(matrix_survives_garbage),
	};
	return cmocka_run_group_tests(tests, make_file, remove_file);
}
