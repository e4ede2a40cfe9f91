/* SPDX-License-Identifier: Apache-2.0
 *
 * test_outputs.c - files that are written whole or not at all: under links, limits, permissions and other writers.
 */
#include <fcntl.h>
#include <glob.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/files/outputs.h"

#define NONE 65534 /* a user without rights */

static char folder[64];

static int begin(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/skep-outputs-XXXXXX");
	return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int finish(void **state)
{
	(void)state;
	char command[192];
	snprintf(command, sizeof command, "chmod -R u+w %s && rm -rf %s", folder, folder);
	return chdir("/") == 0 ? system(command) : -1;
}

static void put(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static void expect(const char *path, const char *text)
{
	char got[256] = "";
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	got[fread(got, 1, sizeof got - 1, file)] = '\0';
	fclose(file);
	assert_string_equal(got, text);
}

/* Temporary files included. */
static void expect_files(const char *names)
{
	char got[512] = "";
	glob_t found;
	if (glob("*", GLOB_PERIOD, NULL, &found) == 0)
		for (size_t i = 0; i < found.gl_pathc; i++)
			if (strcmp(found.gl_pathv[i], ".") != 0 && strcmp(found.gl_pathv[i], "..") != 0) {
				strcat(got, found.gl_pathv[i]);
				strcat(got, " ");
			}
	globfree(&found);
	assert_string_equal(got, names);
}

static bool write_text(const char *path, const char *text, struct skep_diag *diag)
{
	*diag = (struct skep_diag){0};
	return skep_file_write(path, text, strlen(text), diag);
}

static void test_a_new_file_has_the_mode_that_umask_leaves(void **state)
{
	(void)state;
	struct skep_diag diag;
	struct stat st;
	mode_t before = umask(027);
	assert_true(write_text("a", "whole\n", &diag));
	umask(before);
	assert_int_equal(stat("a", &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
	expect("a", "whole\n");
	expect_files("a ");
}

static void test_an_old_file_keeps_its_mode(void **state)
{
	(void)state;
	struct skep_diag diag;
	struct stat st;
	put("a", "old");
	assert_int_equal(chmod("a", 0600), 0);
	assert_int_equal(link("a", "other"), 0);
	assert_true(write_text("a", "new", &diag));
	assert_int_equal(stat("a", &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	expect("a", "new");
	expect("other", "old");
}

/* While it is written, too, and in place of a file that all may read. */
static void test_secrets_are_for_the_owner_alone(void **state)
{
	(void)state;
	struct skep_diag diag = {0};
	struct stat st;
	put("a", "old");
	assert_int_equal(chmod("a", 0666), 0);
	for (int i = 0; i < 2; i++) {
		struct skep_outputs outputs = {.diag = &diag, .owner_only = true};
		mode_t before = umask(0);
		FILE *file = skep_outputs_begin(&outputs, i == 0 ? "a" : "b");
		umask(before);
		assert_true(file != NULL && fstat(fileno(file), &st) == 0);
		assert_int_equal(st.st_mode & 0777, 0600);
		fputs("secret", file);
		assert_true(skep_outputs_commit(&outputs));
		assert_int_equal(stat(i == 0 ? "a" : "b", &st), 0);
		assert_int_equal(st.st_mode & 0777, 0600);
	}
	expect("a", "secret");
	expect_files("a b ");
}

/* The link becomes the file, whether it pointed to something or not; what it pointed to stays. */
static void test_links_are_not_followed(void **state)
{
	(void)state;
	struct skep_diag diag;
	struct stat st;
	put("mine", "mine");
	assert_int_equal(symlink("mine", "a"), 0);
	assert_int_equal(symlink("nowhere", "b"), 0);
	assert_true(write_text("a", "new a", &diag));
	assert_true(write_text("b", "new b", &diag));
	assert_true(lstat("a", &st) == 0 && S_ISREG(st.st_mode));
	expect("mine", "mine");
	expect("a", "new a");
	expect("b", "new b");
	expect_files("a b mine ");
}

static void test_only_regular_files_are_replaced(void **state)
{
	(void)state;
	struct skep_diag diag;
	assert_int_equal(mkdir("folder", 0777), 0);
	assert_int_equal(symlink("/dev/null", "null"), 0);
	assert_int_equal(mkfifo("pipe", 0666), 0);
	assert_false(write_text("folder", "x", &diag));
	assert_non_null(strstr(diag.message, "Is a directory"));
	assert_false(write_text("null", "x", &diag));
	assert_non_null(strstr(diag.message, "no regular file"));
	assert_false(write_text("pipe", "x", &diag));
	assert_false(write_text("none/a", "x", &diag));
	assert_non_null(
		strstr(diag.message, "cannot be written: the folder that it is to be in is not there: make it first"));
	expect_files("folder null pipe ");
}

static void test_without_the_right_to_write(void **state)
{
	(void)state;
	struct skep_diag diag;
	uid_t user = geteuid();
	put("a", "old");
	assert_int_equal(chmod("a", 0444), 0);
	if (user == 0) /* who may do all */
		assert_true(chown(".", NONE, -1) == 0 && chown("a", NONE, -1) == 0 && seteuid(NONE) == 0);
	assert_false(write_text("a", "new", &diag));
	assert_non_null(strstr(diag.message, "Permission denied"));
	assert_int_equal(chmod(".", 0555), 0);
	assert_false(write_text("b", "new", &diag));
	assert_int_equal(chmod(".", 0755), 0);
	assert_int_equal(seteuid(user), 0);
	expect("a", "old");
	expect_files("a ");
}

/* A limit on the size of files stands in for a full disk. */
static void test_a_full_disk(void **state)
{
	(void)state;
	struct rlimit before, small;
	struct skep_diag diag = {0};
	struct skep_outputs outputs = {.diag = &diag};
	static const char large[300000] = {1};
	put("a", "old a");
	put("b", "old b");
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = (struct rlimit){100000, before.rlim_max};
	void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	FILE *a = skep_outputs_begin(&outputs, "a"), *b = skep_outputs_begin(&outputs, "b");
	assert_true(a && b);
	fputs("new a", a);
	fwrite(large, 1, sizeof large, b);
	bool done = skep_outputs_commit(&outputs);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	signal(SIGXFSZ, handler);
	assert_false(done);
	assert_string_equal(diag.file, "b");
	assert_string_equal(diag.message, "cannot be written: File too large; what was there before is unchanged");
	expect("a", "old a");
	expect("b", "old b");
	expect_files("a b ");
}

static void test_several_or_none(void **state)
{
	(void)state;
	struct skep_diag diag = {0};
	struct skep_outputs outputs = {.diag = &diag};
	put("a", "old");
	fputs("new", skep_outputs_begin(&outputs, "a"));
	assert_null(skep_outputs_begin(&outputs, "none/b"));
	assert_false(skep_outputs_commit(&outputs));
	expect("a", "old");
	diag.set = false;
	fputs("list", skep_outputs_begin(&outputs, "index"));
	fputs("new", skep_outputs_begin(&outputs, "a"));
	skep_outputs_put_last(&outputs, 0);
	assert_string_equal(outputs.output[1].path, "index");
	assert_true(skep_outputs_commit(&outputs));
	expect("a", "new");
	expect("index", "list");
	fputs("given up", skep_outputs_begin(&outputs, "a"));
	skep_outputs_abandon(&outputs);
	expect("a", "new");
	expect_files("a index ");
}

/* The old list goes before what it names is replaced: here the last rename is made to fail. */
static void test_a_list_never_names_files_of_two_versions(void **state)
{
	(void)state;
	struct skep_diag diag = {0};
	struct skep_outputs outputs = {.diag = &diag};
	put("a", "old");
	put("index", "old list");
	fputs("new", skep_outputs_begin(&outputs, "a"));
	fputs("new", skep_outputs_begin(&outputs, "b"));
	fputs("new list", skep_outputs_begin(&outputs, "index"));
	assert_int_equal(mkdir("b", 0777), 0); /* by another program, meanwhile */
	assert_false(skep_outputs_commit(&outputs));
	assert_string_equal(diag.file, "b");
	expect_files("a b ");
}

/* The last writer wins, and each reader finds one file or the other, whole. */
static void test_many_writers(void **state)
{
	(void)state;
	enum { WRITERS = 8, TIMES = 40, BYTES = 20000 };
	char text[BYTES];
	struct skep_diag diag = {0};
	memset(text, 'a', sizeof text);
	assert_true(skep_file_write("a", text, sizeof text, &diag));
	for (int w = 0; w < WRITERS; w++)
		if (fork() == 0) {
			memset(text, 'b' + w, sizeof text);
			for (int i = 0; i < TIMES; i++)
				if (!skep_file_write("a", text, sizeof text, &diag))
					_exit(1);
			_exit(0);
		}
	for (int i = 0; i < TIMES * WRITERS; i++) {
		FILE *file = fopen("a", "r");
		assert_non_null(file);
		assert_int_equal(fread(text, 1, sizeof text, file), BYTES);
		assert_int_equal(fgetc(file), EOF);
		fclose(file);
		for (int c = 1; c < BYTES; c++)
			assert_true(text[c] == text[0]);
	}
	int status;
	while (wait(&status) > 0)
		assert_int_equal(status, 0);
	expect_files("a ");
}

static void touch(const char *name, time_t before_s)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	assert_true(fd >= 0);
	close(fd);
	const struct timespec then = {.tv_sec = time(NULL) - before_s};
	assert_int_equal(utimensat(AT_FDCWD, name, (struct timespec[]){then, then}, 0), 0);
}

/* A process of here that is no more, its temporary files, and what looks like them. */
static void test_what_killed_writers_have_left(void **state)
{
	(void)state;
	char dead[3][SKEP_PATH_BYTES], living[64], other[64], old[64], reused[64];
	pid_t child = fork();
	if (child == 0)
		_exit(0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	const uint32_t mark = skep_remains_mark();
	snprintf(dead[0], sizeof dead[0], "a.%ld-%08xcafebabe.new", (long)child, mark);
	snprintf(dead[1], sizeof dead[1], "a.%ld-%08x00000000.new-journal", (long)child, mark);
	snprintf(dead[2], sizeof dead[2], "b.%ld-%08xcafebabe.new", (long)child, mark); /* another target's */
	snprintf(living, sizeof living, "a.%ld-%08xcafebabe.new", (long)getppid(), mark);
	snprintf(other, sizeof other, "a.%ld-%08xcafebabe.new", (long)child, mark + 1); /* of another machine */
	snprintf(old, sizeof old, "a.%ld-%08xcafebabf.new", (long)child, mark + 1);
	snprintf(reused, sizeof reused, "a.%ld-%08xcafebabe.new.txt", (long)child, mark); /* a user's */
	for (uint32_t i = 0; i < 3; i++)
		touch(dead[i], 0);
	touch(living, 200000);
	touch(other, 3600);
	touch(old, 200000);
	touch(reused, 200000);
	struct skep_diag diag = {0};
	assert_true(skep_file_write("a", "1", 1, &diag));
	assert_true(access(dead[0], F_OK) != 0 && access(dead[1], F_OK) != 0 && access(old, F_OK) != 0);
	const char *const stays[] = {dead[2], living, other, reused};
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(unlink(stays[i]), 0);
	expect_files("a ");
}

static void test_names(void **state)
{
	(void)state;
	char name[SKEP_PATH_BYTES], of[16], longest[256];
	memset(longest, 'n', sizeof longest);
	longest[255] = '\0';
	int fd = skep_temporary_create(longest, name);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(unlink(name), 0);
	fd = skep_temporary_create("a.yaml", name);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(skep_temporary_process(name, strlen("a.yaml")), getpid());
	assert_int_equal(skep_temporary_process("a.yaml.12-0123456789abcdef.new", strlen("a.yaml")), 12);
	assert_int_equal(skep_temporary_process("a.yaml.12-0123456789abcdef.new.csv", strlen("a.yaml")), 0);
	assert_int_equal(skep_temporary_process("a.yaml.12.new", strlen("a.yaml")), 0);
	assert_int_equal(skep_temporary_process("a.yaml", strlen("a.yaml")), 0);
	static const char *const path[][2] = {{"a", "."}, {"/a", "/"}, {"b/a", "b"}, {"/c/b/a", "/c/b"}, {"b/", "b"}};
	for (size_t i = 0; i < sizeof path / sizeof path[0]; i++) {
		skep_path_folder(path[i][0], of, sizeof of);
		assert_string_equal(of, path[i][1]);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, finish)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_new_file_has_the_mode_that_umask_leaves),
		TEST(test_an_old_file_keeps_its_mode),
		TEST(test_secrets_are_for_the_owner_alone),
		TEST(test_links_are_not_followed),
		TEST(test_only_regular_files_are_replaced),
		TEST(test_without_the_right_to_write),
		TEST(test_a_full_disk),
		TEST(test_several_or_none),
		TEST(test_a_list_never_names_files_of_two_versions),
		TEST(test_many_writers),
		TEST(test_what_killed_writers_have_left),
		TEST(test_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
