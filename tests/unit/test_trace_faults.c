/* SPDX-License-Identifier: Apache-2.0
 *
 * test_trace_faults.c - each fault of a trace by the text that its caret points at, and what is repaired.
 */
#include "tests/unit/trace_fixture.h"

static const struct skep_trace_options repair = {.repair = true};

/* `at`: the text that the caret points at; line 0 and NULL: about the file as a whole. */
static void expect_error(const char *text, size_t size, const struct skep_trace_options *options, uint32_t line,
	const char *at, const char *message)
{
	struct record record = {.types = false};
	struct skep_diag diag = {0};
	put_bytes("trace", text, size);
	if (skep_trace_read(in_folder("trace"), options, note, &record, NULL, &diag))
		fail_msg("'%.80s' was read", text);
	if (!strstr(diag.message, message))
		fail_msg("'%s' does not say '%s'", diag.message, message);
	assert_int_equal(diag.line, line);
	if (at && strncmp(diag.text + diag.caret, at, strlen(at)) != 0)
		fail_msg("the caret of '%s' points at '%s', not at '%s'", message, diag.text + diag.caret, at);
}

static const struct {
	const char *text;
	uint32_t line;
	const char *at, *message;
} fault[] = {
	{"", 0, NULL, "holds no events"},
	{"# nothing\n\n", 0, NULL, "holds no events"},
	{"seconds,event,name\n", 0, NULL, "holds no events"},
	{"5,end\n", 0, NULL, "holds no events"},
	{"hello\n", 1, "hello", "no known trace format"},
	{"5,join,a\n4,leave,a\n", 2, "4,", "time goes backwards: 4 s, after 5 s"},
	{"5,join,a\n6,join,a\n", 2, "a", "'a' joins, but is alive since 5 s"},
	{"5,join,a\n6,leave,b\n", 2, "b", "'b' leaves, but is not alive"},
	{"5,join,a\n6,die,a\n", 2, "die", "end, found 'die'"},
	{"5,join,a\n6,join\n", 2, "", "expected a name behind join"},
	{"5,join,a\n6,join,\n", 2, "", "expected a name"},
	{"5,join,a\n6,join,b,c,d,e\n", 2, "6", "6 cells in a row"},
	{"5,join,a\n6\n", 2, "6", "expected seconds,join"},
	{"5,join,a\n9,end\n9,leave,a\n", 3, "9", "after the end"},
	{"5,join,a\nnan,leave,a\n", 2, "nan", "expected seconds, a plain number"},
	{"5,join,a\ninf,leave,a\n", 2, "inf", "expected seconds"},
	{"5,join,a\n-6,leave,a\n", 2, "-6", "of 0 or more"},
	{"5,join,a\n6e3,leave,a\n", 2, "e3", "expected seconds"},
	{"5,join,a\n0x6,leave,a\n", 2, "x6", "expected seconds"},
	{"5,join,a\n6.5.1,leave,a\n", 2, ".1", "expected seconds"},
	{"5,join,a\n,leave,a\n", 2, ",", "expected seconds"},
	{"5,join,a\n99999999999999999999,leave,a\n", 2, "9999", "of less than 10000000000"},
	{"5,join,a\n6,join,b\tb\n", 2, " b", "a control character"},
	{"5,add,a\n6,del,a\n", 2, "del", "expected add or remove, found 'del'"},
	{"5,add,a,b\n", 1, "b", "4 cells in a row"},
	{"5,add,a\n6,remove,\xc3\xa9\n", 2, "\xc3\xa9", "is not alive"},
	{"0,3\n1,x\n", 2, "x", "expected a whole number from 0 to 1000000"},
	{"0,3\n1,-1\n", 2, "-1", "expected a whole number"},
	{"0,3\n1,2.5\n", 2, "2.5", "expected a whole number"},
	{"0,3\n1,nan\n", 2, "nan", "expected a whole number"},
	{"0,3\n1,1000001\n", 2, "1000001", "expected a whole number"},
	{"7,3\n1,3\n", 2, "1,3", "time goes backwards"},
	{"7,3\n1,4\n", 2, "1,4", "time goes backwards"},
	{"7,3\n8,4,5\n", 2, "8", "expected seconds,count"},
	{"0110\n0111\n", 0, NULL, "the length of a gap is not known"},
	{"# gap: 600\n0110\n", 1, "600", "expected a time with its unit"},
	{"# gap: nan s\n0110\n", 1, "nan", "expected a time with its unit"},
	{"# gap: 600 s\n0120\n", 2, "20", "expected 0 or 1"},
	{"# gap: 600 s\n0110\n011\n", 3, "", "3 gaps in this line, 4 in the one before"},
	{"# gap: 600 s\na,01\na,11\n", 0, NULL, "'a' joins, but is alive"},
	{"# gap: 600 s\n0000\n", 0, NULL, "holds no events"},
	{"{\"gap_seconds\": 600}", 0, NULL, "expected \"data\""},
	{"{\"gap_seconds\": 600, \"data\": [0, 1", 0, NULL, "has no ]"},
	{"{\"gap_seconds\": 600, \"data\": [0, -7]}", 1, "-7", "expected for each gap how many machines were there"},
	{"{\"gap_seconds\": 600, \"data\": [0, 1.5]}", 1, "1.5", "expected for each gap how many machines were there"},
	{"{\"gap_seconds\": 600, \"data\": [0, 1000001]}", 1, "1000001", "how many machines were there, 0 to 1000000"},
	{"{\"gap_seconds\": 600, \"data\": [0, 99999999999999999999]}", 1, "9999", "how many machines were there"},
	{"{\"gap_seconds\": 600, \"data\": [[0, 1]]}", 1, "[0", "how many machines were there"},
	{"{\"gap_seconds\": x, \"data\": [0]}", 1, "x", "expected seconds"},
	{"[2020-03-15T10:07:33.000Z] Something else\n", 1, "Something", "expected Created instance"},
	{"[2020-13-15T10:07:33.000Z] Instance a creation failed\n", 1, "[2020", "expected a time such as"},
	{"[2020-03-15T10:07:33.000] Instance a creation failed\n", 1, "[2020", "expected a time such as"},
	{"[2020-03-15T10:07:33Z] Instance a creation failed\n[2020-03-15T10:07:32Z] Instance a creation failed\n", 2,
		"[2020", "time goes backwards"},
	{"[2020-03-15T10:07:33Z] Created instance a with 0 GPU(s) of type t in zone z\n", 1, "Created",
		"expected Created instance"},
	{"[2020-03-15T10:07:33Z] Created instance a with 1 GPU(s) of type t in zone z\n"
	 "[2020-03-15T10:07:33Z] Created instance a with 1 GPU(s) of type t in zone z\n",
		2, "a", "'a' joins, but is alive"},
	{"[2020-03-15T10:07:33Z] Created instance a,b with 1 GPU(s) of type t in zone z\n", 1, ",b", "a comma"},
	{"sn,gpu,model\nn0,two,T4\n", 2, "two", "expected a whole number"},
	{"sn,gpu,model\nn0,2\n", 2, "", "too few"},
	{"sn,cpu,model\nn0,2,T4\n", 1, "sn", "no column 'gpu'"},
	{"sn,gpu,model\nn0,2,T4\nn0,2,T4\n", 3, "n0", "'n0' joins, but is alive"},
};

static void faults_show_their_place(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(fault); i++)
		expect_error(
			fault[i].text, strlen(fault[i].text), &plain, fault[i].line, fault[i].at, fault[i].message);
}

static const char task_columns[] = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
				   "deletion_time,scheduled_time\n";

static void task_faults(void **state)
{
	(void)state;
	static const struct {
		const char *row, *at, *message;
	} row_fault[] = {
		{"a,1,1,1,1,,LS,Running,9,20,5\n", "5", "scheduled before it was created"},
		{"a,1,1,1,1,,LS,Running,4,4,5\n", "4,5", "deleted before it was scheduled"},
		{"a,1,1,1,1,,LS,Running,4,x,5\n", "x", "expected seconds"},
		{"a,1,1,9999,1,,LS,Running,4,6,5\n", "9999", "expected a whole number"},
		{"a,1,1,1\n", "", "too few"},
		{",1,1,1,1,,LS,Running,4,6,5\n", "", "expected a name"},
	};
	char text[1024];
	for (size_t i = 0; i < COUNT(row_fault); i++) {
		snprintf(text, sizeof text, "%s%s", task_columns, row_fault[i].row);
		expect_error(text, strlen(text), &plain, 2, row_fault[i].at, row_fault[i].message);
	}
	snprintf(text, sizeof text, "%s%s", task_columns,
		"a,1,1,1,1,,LS,Running,9,20,9\nb,1,1,1,1,,LS,Running,8,20,9\n");
	expect_error(text, strlen(text), &plain, 3, "8", "in the order of creation_time");
	struct skep_trace_options o = {.nodes_path = "/nowhere/at-all"};
	expect_error(text, strlen(text), &o, 0, NULL, "cannot be opened");
}

static void files_that_are_no_text(void **state)
{
	(void)state;
	expect_error("0,join,a\n1,leave,a\0\n", 20, &plain, 2, "", "a zero byte");
	expect_error("\0\1\2\3", 4, &plain, 1, "", "a zero byte");
	size_t size = 300000;
	char *text = malloc(size);
	assert_non_null(text);
	memset(text, 'a', size);
	memcpy(text, "0,join,x\n1,leave,", 17);
	expect_error(text, size, &plain, 2, NULL, "the line is longer than 65536 bytes");
	text[400] = '\n';
	expect_error(text, 401, &plain, 2, "aaa", "a name of 383 bytes: at most 127");
	free(text);
	static const struct {
		const char *path, *message;
	} file_fault[] = {{"/tmp", "directory"}, {"/dev/null", "not a regular file"}, {"/no/such", "cannot be opened"}};
	for (size_t i = 0; i < COUNT(file_fault); i++) {
		struct skep_diag diag = {0};
		struct record record = {.types = false};
		assert_false(skep_trace_read(file_fault[i].path, &plain, note, &record, NULL, &diag));
		assert_non_null(strstr(diag.message, file_fault[i].message));
	}
}

static void repairs_are_counted_and_said_once(void **state)
{
	(void)state;
	struct record record;
	struct skep_trace_report report =
		read_events("5,join,a\n4,join,b\n6,join,a\n7,leave,x\n7,leave,y\n7,die,a\n6.5,leave,a\n8,leave,b\n",
			&repair, false, &record);
	assert_string_equal(record.text, "5+a 5+b 7-a 8-b 8.");
	char text[1024];
	skep_trace_repairs_print(&report, "f", text, sizeof text);
	assert_string_equal(text,
		"f: warning: 2 events earlier than the one before, taken as if they happened then (first at line 2)\n"
		"f: warning: 1 joins of names that were alive, left out (first at line 3)\n"
		"f: warning: 2 leaves of names that were not alive, left out (first at line 4)\n"
		"f: warning: 1 rows of an unknown type, left out (first at line 6)\n");
	read_events("[2020-03-15T10:07:33Z] Instance a running in zone z\n[2020-03-15T10:07:32Z] who knows\n"
		    "[2020-03-15T10:07:31Z] Instance a not running in zone z\n",
		&repair, false, &record);
	assert_string_equal(record.text, "0+a 0-a 0.");
	report = read_events("5,2\n4,2\n6,3\n", &repair, false, &record);
	assert_string_equal(record.text, "5+c0 5+c1 6+c2 6.");
	assert_int_equal(report.repairs[SKEP_REPAIR_BACKWARDS], 1);
	assert_int_equal(report.repair_line[SKEP_REPAIR_BACKWARDS], 2);
	expect_error("7,leave,a\n8,join,b,c,d,e\n", 26, &repair, 2, "8", "6 cells"); /* no repair for that */
	expect_error("7,leave,a\n", 10, &repair, 0, NULL, "holds no events");        /* nothing is left */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(faults_show_their_place),
		cmocka_unit_test(task_faults),
		cmocka_unit_test(files_that_are_no_text),
		cmocka_unit_test(repairs_are_counted_and_said_once),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
