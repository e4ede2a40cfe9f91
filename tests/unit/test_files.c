/* SPDX-License-Identifier: Apache-2.0
 *
 * test_files.c - paths that are made normal, names that are looked for under a root, and the list of what was asked for.
 */
#include "tests/unit/folder_fixture.h"

#include <string.h>

#include "base/files/files.h"
#include "base/reader.h"

static char root[] = "/tmp/skep-files-XXXXXX";

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(root) || chdir(root) != 0 || mkdir("a", 0700) != 0 || mkdir("a/b", 0700) != 0)
		return -1;
	folder_write("top", "top");
	folder_write("a/near", "near");
	folder_write("a/b/from", "from");
	folder_write("a/both", "in the working folder");
	folder_write("a/b/both", "beside what names it");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	bool gone = unlink("a/b/from") == 0 && unlink("a/both") == 0 && unlink("a/b/both") == 0 &&
	            unlink("a/near") == 0 && unlink("top") == 0;
	return gone && rmdir("a/b") == 0 && rmdir("a") == 0 && chdir("/") == 0 && rmdir(root) == 0 ? 0 : -1;
}

static void test_normal_paths(void **state)
{
	(void)state;
	static const char *const is[][2] = {{"x", "/f/g/x"}, {"/x", "/x"}, {"", "/f/g"}, {".", "/f/g"}, {"..", "/f"},
		{"../..", "/"}, {"../../../..", "/"}, {"../../../x", "/x"}, {"/", "/"}, {"//", "/"}, {"/x//y/", "/x/y"},
		{"./x/./y/.", "/f/g/x/y"}, {"/x/../y", "/y"}, {"/x/y/../../z", "/z"}, {"...", "/f/g/..."},
		{"/.x/..y", "/.x/..y"}};
	char got[64];
	for (size_t i = 0; i < sizeof is / sizeof is[0]; i++) {
		assert_true(skep_path_normal("/f/g", is[i][0], got, sizeof got));
		assert_string_equal(got, is[i][1]);
	}
	assert_true(skep_path_normal("/", "x", got, 3)); /* just fits */
	assert_string_equal(got, "/x");
	for (size_t size = 0; size < 3; size++)
		assert_false(skep_path_normal("/", "x", got, size));
	assert_false(skep_path_normal("/f", "long/../long", got, 7));
}

/* Under a root, with /a as the working folder, the same names lead to the same files as they would if it were "/". */
static void test_names_are_looked_for_under_the_root_alone(void **state)
{
	(void)state;
	static const struct {
		const char *name, *found;
	} is[] = {{"near", "/a/near"}, {"from", "/a/b/from"}, {"top", "/top"}, {"/top", "/top"}, {"../top", "/top"},
		{"../../../top", "/top"}, {"/../top", "/top"}, {"x/../near", "/a/near"}, {"b/from", "/a/b/from"},
		{"etc/passwd", NULL}, {"/etc/passwd", NULL}, {"../../../../etc/passwd", NULL}, {"", NULL},
		{"none", NULL}, {"both", "/a/b/both"}, {"../both", "/a/both"}};
	struct skep_files files = {.root = root, .folder = "/a"};
	char from[64], want[64], got[64];
	snprintf(from, sizeof from, "%s/a/b/from", root);
	for (size_t i = 0; i < sizeof is / sizeof is[0]; i++) {
		assert_int_equal(skep_file_find(&files, from, is[i].name, got, sizeof got), is[i].found != NULL);
		if (is[i].found == NULL)
			continue;
		snprintf(want, sizeof want, "%s%s", root, is[i].found);
		assert_string_equal(got, want);
	}
	assert_int_equal(files.count, 5);
	snprintf(want, sizeof want, "%s/a/both", root);
	assert_true(skep_file_find_given(&files, from, "both", got, sizeof got));
	assert_string_equal(got, want);
	assert_true(skep_file_find_given(&files, from, "from", got, sizeof got));
	assert_false(skep_file_find(&files, "/elsewhere/b/from", "from", got, sizeof got));
	assert_false(skep_file_find(&files, NULL, "from", got, sizeof got));
	assert_true(skep_file_find(&files, NULL, "near", got, sizeof got));
	assert_false(skep_file_find(&files, from, "near", got, strlen(root)));
	assert_true(skep_files_here(&files, got, sizeof got));
	snprintf(want, sizeof want, "%s/a/", root);
	assert_string_equal(got, want);
	skep_files_finish(&files);
	assert_true(files.count == 0 && files.root == root);
}

/* What is beside the file that names it comes first; what is given on the command line is meant where the command is given. */
static void test_a_name_that_two_folders_have(void **state)
{
	(void)state;
	char got[64];
	assert_int_equal(chdir("a"), 0);
	assert_true(skep_file_find(NULL, "b/from", "both", got, sizeof got));
	assert_string_equal(got, "b/both");
	assert_true(skep_file_find_given(NULL, "b/from", "both", got, sizeof got));
	assert_string_equal(got, "both");
	assert_true(skep_file_find(NULL, "from", "both", got, sizeof got));
	assert_string_equal(got, "both");
	assert_true(skep_file_find(NULL, "b/from", "near", got, sizeof got));
	assert_string_equal(got, "near");
	assert_true(skep_file_find_given(NULL, "b/from", "from", got, sizeof got));
	assert_string_equal(got, "b/from");
	assert_int_equal(chdir(".."), 0);
}

static void test_what_was_asked_for(void **state)
{
	(void)state;
	struct skep_files files = {0};
	struct skep_diag diag = {.files = &files};
	char *text, found[64];
	size_t size;
	assert_true(skep_file_find(&files, "a/b/from", "near", found, sizeof found));
	assert_true(skep_file_find(&files, "a/b/from", "top", found, sizeof found));
	assert_true(skep_file_read("a/near", 100, &text, &size, &diag));
	free(text);
	assert_false(skep_file_read("none", 100, &text, &size, &diag)); /* is not there: nothing to note */
	assert_true(diag.set && diag.files == &files);
	struct skep_diag beside = skep_diag_beside(&diag);
	assert_true(!beside.set && beside.files == &files);
	assert_false(skep_fail(&beside, "no"));
	assert_true(beside.set && beside.files == &files);
	assert_int_equal(files.count, 2);
	assert_string_equal(files.asked[0].path, "a/near");
	assert_true(files.asked[0].read && !files.asked[1].read);
	skep_files_note(NULL, "nothing", true);
	skep_files_finish(&files);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_normal_paths),
		cmocka_unit_test(test_names_are_looked_for_under_the_root_alone),
		cmocka_unit_test(test_a_name_that_two_folders_have),
		cmocka_unit_test(test_what_was_asked_for),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
