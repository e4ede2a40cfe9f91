/* SPDX-License-Identifier: Apache-2.0
 *
 * test_database.c - every file that is refused as a database, with its reason, and that nothing is created or changed then.
 */
#include "tests/unit/fresh.h"
#include "tests/unit/store_fixture.h"

#define UNPRIVILEGED_UID 65534

static void write_file(const char *path, const void *bytes, size_t size)
{
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	fclose(file);
}

static void refuse(const char *path, bool create, const char *phrase)
{
	int before = files(".");
	error.message[0] = '\0';
	struct skep_store *store = skep_store_open(path, create, fresh(&error));
	assert_null(store);
	if (strstr(error.message, phrase) == NULL)
		fail_msg("expected '%s' in: %s", phrase, error.message);
	assert_int_equal(files("."), before);
}

static void test_paths(void **state)
{
	(void)state;
	char name[5000];
	mkdir("folder", 0777);
	mkfifo("pipe", 0666);
	memset(name, 'x', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	for (int create = 0; create < 2; create++) {
		refuse("", create, "--db");
		refuse("folder", create, "a folder");
		refuse("pipe", create, "not a regular file");
		refuse("/dev/null", create, "not a regular file");
		refuse(name, create, "longer");
	}
	refuse("nowhere/a.db", true, "folder");
	refuse("a.db", false, "no such database");
	refuse("nowhere/a.db", false, "no such database");
	refuse("/dev/null/a.db", true, "Not a directory");
}

static void test_not_a_database(void **state)
{
	(void)state;
	char *noise = malloc(10000000);
	assert_non_null(noise);
	for (size_t i = 0; i < 10000000; i++)
		noise[i] = (char)(i * 2654435761u >> 13);
	write_file("noise.db", noise, 10000000);
	write_file("text.db", "name: two data centres\n", 23);
	write_file("byte.db", "x", 1);
	for (int create = 0; create < 2; create++) {
		refuse("noise.db", create, "not a database");
		refuse("text.db", create, "not a database");
		refuse("byte.db", create, "not a database");
	}
	struct stat st;
	assert_int_equal(stat("noise.db", &st), 0);
	assert_int_equal(st.st_size, 10000000);
	write_file("empty.db", "", 0);
	refuse("empty.db", false, "empty database");
	skep_store_close(must_open("empty.db", true)); /* as made by mktemp */
	free(noise);
}

static void test_damaged(void **state)
{
	(void)state;
	struct synthetic s;
	synthetic_init(&s, "torn", 4, 2);
	record("a.db", &s);
	FILE *file = fopen("a.db", "r+b");
	assert_non_null(file);
	fseek(file, 100, SEEK_SET); /* the page that holds the schema */
	for (int i = 0; i < 3000; i++)
		fputc(i * 37, file);
	fclose(file);
	refuse("a.db", true, "a.db");
	refuse("a.db", false, "a.db");
	assert_int_equal(truncate("a.db", 5000), 0);
	refuse("a.db", true, "a.db");
	synthetic_finish(&s);
}

static void test_not_ours(void **state)
{
	(void)state;
	change("other.db", "CREATE TABLE bees (name TEXT); INSERT INTO bees VALUES ('drone')");
	change("tagged.db", "PRAGMA application_id = 77");
	for (int create = 0; create < 2; create++) {
		refuse("other.db", create, "another program");
		refuse("tagged.db", create, "another program");
	}
	assert_int_equal(query("other.db", "SELECT count(*) FROM sqlite_master"), 1);
	sqlite3_stmt *row = NULL;
	sqlite3 *db = NULL;
	sqlite3_open("other.db", &db); /* still in the journal mode that it had */
	sqlite3_prepare_v2(db, "PRAGMA journal_mode", -1, &row, NULL);
	assert_int_equal(sqlite3_step(row), SQLITE_ROW);
	assert_string_equal((const char *)sqlite3_column_text(row, 0), "delete");
	sqlite3_finalize(row);
	sqlite3_close(db);
	skep_store_close(must_open("a.db", true));
	change("a.db", "PRAGMA user_version = 999");
	refuse("a.db", true, "newer skep");
	refuse("a.db", false, "newer skep");
	change("a.db", "PRAGMA user_version = 1");
	refuse("a.db", true, "older skep");
}

static void test_locked(void **state)
{
	(void)state;
	sqlite3 *other = NULL;
	skep_store_close(must_open("a.db", true));
	assert_int_equal(sqlite3_open("a.db", &other), SQLITE_OK);
	assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	refuse("a.db", true, "locked");
	skep_store_close(must_open("a.db", false)); /* reading goes on */
	sqlite3_close(other);
	assert_int_equal(sqlite3_open("a.db", &other), SQLITE_OK);
	sqlite3_exec(other, "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE", NULL, NULL, NULL);
	refuse("a.db", false, "locked");
	sqlite3_close(other);
}

/* Permissions do not bind the user root: these tests run under another user then. */
static void test_read_only(void **state)
{
	(void)state;
	struct synthetic s;
	synthetic_init(&s, "frozen", 4, 2);
	assert_int_equal(mkdir("folder", 0777), 0);
	record("folder/a.db", &s);
	chmod("folder/a.db", 0444);
	chmod("folder", 0777);
	bool root = geteuid() == 0;
	if (root)
		assert_int_equal(seteuid(UNPRIVILEGED_UID), 0);
	struct skep_store *store[2];
	struct skep_diag said[4] = {0};
	store[0] = skep_store_open("folder/a.db", true, &said[0]);
	store[1] = skep_store_open("folder/a.db", false, &said[1]);
	if (root)
		assert_int_equal(seteuid(0), 0);
	chmod("folder/a.db", 0666);
	chmod("folder", 0555);
	if (root)
		assert_int_equal(seteuid(UNPRIVILEGED_UID), 0);
	struct skep_store *shut = skep_store_open("folder/a.db", true, &said[2]);
	struct skep_store *made = skep_store_open("folder/b.db", true, &said[3]);
	struct skep_store *frozen = skep_store_open("folder/a.db", false, fresh(&error));
	if (root)
		assert_int_equal(seteuid(0), 0);
	assert_null(store[0]);
	assert_non_null(strstr(said[0].message, "read-only"));
	assert_non_null(store[1]);
	assert_null(shut);
	assert_non_null(strstr(said[2].message, "folder"));
	assert_null(made);
	assert_non_null(strstr(said[3].message, "Permission denied"));
	assert_non_null(frozen);
	assert_int_equal(files("folder"), 1);
	skep_store_close(store[1]);
	skep_store_close(frozen);
	synthetic_finish(&s);
}

static void test_reading_writes_nothing(void **state)
{
	(void)state;
	struct synthetic s;
	int64_t run;
	synthetic_init(&s, "still", 4, 2);
	record("a.db", &s);
	struct skep_store *reader = must_open("a.db", false);
	assert_false(skep_store_begin(reader, &s.scenario, "sim", "cpu", 0, 0, &run, fresh(&error)));
	assert_non_null(strstr(error.message, "read-only"));
	skep_store_close(reader);
	assert_int_equal(files("."), 1);
	synthetic_finish(&s);
}

static void test_strange_names(void **state)
{
	(void)state;
	static const char *const name[] = {
		":memory:", "a?mode=ro.db", "b%20#c.db", "file:d.db", "-", "name with 'quote'"};
	struct synthetic s;
	synthetic_init(&s, "named", 2, 1);
	for (size_t i = 0; i < sizeof name / sizeof name[0]; i++) {
		record(name[i], &s);
		struct stat st;
		assert_int_equal(stat(name[i], &st), 0);
		assert_true(st.st_size > 4096);
		skep_store_close(must_open(name[i], false));
	}
	assert_int_equal(files("."), (int)(sizeof name / sizeof name[0]));
	synthetic_finish(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_paths),
		TEST(test_not_a_database),
		TEST(test_damaged),
		TEST(test_not_ours),
		TEST(test_locked),
		TEST(test_read_only),
		TEST(test_reading_writes_nothing),
		TEST(test_strange_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
