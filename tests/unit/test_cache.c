/* SPDX-License-Identifier: Apache-2.0
 *
 * test_cache.c - files that are received: whole, in parts over several attempts, wrong, by several processes at once, onto a
 * full disk; and the trees that are made of them.
 */
#include "tests/unit/travel_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/unit/fresh.h"

#define BYTES 300000u

static char folder[] = "/tmp/skep-cache-XXXXXX";
static uint8_t content[BYTES], digest[SKEP_DIGEST_BYTES];
static struct skep_cache cache;

static void clear(void)
{
	char command[100];
	snprintf(command, sizeof command, "rm -rf %s/cache", folder);
	assert_int_equal(system(command), 0);
}

static int set_up(void **state)
{
	(void)state;
	for (size_t i = 0; i < BYTES; i++)
		content[i] = (uint8_t)(i * i >> 7);
	return mkdtemp(folder) && skep_digest_of(content, BYTES, digest) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	char command[100];
	snprintf(command, sizeof command, "rm -rf %s", folder);
	return system(command);
}

/* Each test has an empty one, in folders that are not there yet. */
static int enter(void **state)
{
	(void)state;
	struct skep_diag diag = {0};
	char name[100];
	clear();
	snprintf(name, sizeof name, "%s/cache/of/skep", folder);
	return skep_cache_open(name, &cache, &diag) ? 0 : -1;
}

static int leave(void **state)
{
	(void)state;
	skep_cache_close(&cache);
	return 0;
}

static void path_of(const char *ending, char *ret, size_t size)
{
	char name[SKEP_DIGEST_TEXT];
	skep_digest_text(digest, name);
	snprintf(ret, size, "%s/blobs/%s%s", cache.folder, name, ending);
}

/* -1: it is not there. */
static int64_t size_of(const char *ending)
{
	char path[4096];
	struct stat st;
	path_of(ending, path, sizeof path);
	return stat(path, &st) == 0 ? (int64_t)st.st_size : -1;
}

static void spoil(const char *ending, size_t at)
{
	char path[4096];
	path_of(ending, path, sizeof path);
	assert_int_equal(chmod(path, 0600), 0);
	int fd = open(path, O_WRONLY);
	assert_true(fd >= 0 && pwrite(fd, "?", 1, (off_t)at) == 1 && close(fd) == 0);
}

/* Bytes up to `to`. */
static void part_to(struct skep_cache_part *part, uint64_t to)
{
	struct skep_diag diag = {0};
	while (part->offset < to) {
		uint64_t left = to - part->offset, count = left < 7000 ? left : 7000;
		good(skep_cache_append(part, part->offset, content + part->offset, count, &diag), &diag);
	}
}

static struct skep_cache_part begin(uint64_t offset)
{
	struct skep_cache_part part;
	struct skep_diag diag = {0};
	good(skep_cache_begin(&cache, digest, BYTES, &part, &diag) == SKEP_CACHE_BEGUN, &diag);
	assert_true(part.offset == offset);
	return part;
}

static void test_digest(void **state)
{
	(void)state;
	char text[SKEP_DIGEST_TEXT];
	uint8_t found[SKEP_DIGEST_BYTES];
	assert_true(skep_digest_of("abc", 3, found)); /* FIPS 180-4, the first example of its appendix */
	skep_digest_text(found, text);
	assert_string_equal(text, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

static void test_whole_at_once(void **state)
{
	(void)state;
	struct skep_diag diag = {0};
	assert_false(skep_cache_has(&cache, digest, BYTES));
	struct skep_cache_part part = begin(0);
	part_to(&part, BYTES);
	assert_true(size_of("") == -1); /* not visible before it is whole */
	good(skep_cache_commit(&part, &diag), &diag);
	assert_true(size_of("") == BYTES && size_of(".part") == -1);
	assert_true(skep_cache_has(&cache, digest, BYTES));
	assert_int_equal(skep_cache_begin(&cache, digest, BYTES, &part, &diag), SKEP_CACHE_WHOLE);
	assert_true(part.fd < 0 && !diag.set);
}

static void test_empty_file(void **state)
{
	(void)state;
	struct skep_diag diag = {0};
	struct skep_cache_part part;
	uint8_t none[SKEP_DIGEST_BYTES];
	assert_true(skep_digest_of("", 0, none));
	assert_int_equal(skep_cache_begin(&cache, none, 0, &part, &diag), SKEP_CACHE_BEGUN);
	good(skep_cache_commit(&part, &diag), &diag);
	assert_true(skep_cache_has(&cache, none, 0));
}

static void test_goes_on_where_it_ended(void **state)
{
	(void)state;
	struct skep_diag diag = {0};
	const uint64_t ends[] = {0, 1, 4096, 123456, BYTES - 1, BYTES};
	for (int i = 0; i < 5; i++) {
		struct skep_cache_part part = begin(ends[i]);
		part_to(&part, ends[i + 1]);
		if (i < 3)
			skep_cache_leave(&part);
		else if (i == 3)
			assert_false(skep_cache_commit(&part, &diag)); /* not whole: it stays */
		else
			good(skep_cache_commit(&part, fresh(&diag)), &diag);
	}
	assert_true(skep_cache_has(&cache, digest, BYTES));
}

/* What a process wrote that was killed counts as far as it is on the disk. */
static void test_goes_on_after_a_kill(void **state)
{
	(void)state;
	struct skep_diag diag = {0};
	pid_t child = fork();
	if (child == 0) {
		struct skep_cache_part part = begin(0);
		part_to(&part, 100000);
		raise(SIGKILL);
	}
	assert_true(child > 0 && waitpid(child, NULL, 0) == child);
	struct skep_cache_part part = begin(100000);
	part_to(&part, BYTES);
	good(skep_cache_commit(&part, &diag), &diag);
}

static void test_wrong_bytes_are_removed(void **state)
{
	(void)state;
	struct skep_diag diag = {0};
	struct skep_cache_part part = begin(0);
	part_to(&part, BYTES - 1);
	good(skep_cache_append(&part, BYTES - 1, "?", 1, &diag), &diag);
	assert_false(skep_cache_commit(&part, &diag));
	assert_non_null(strstr(diag.message, "has come with other bytes than were announced"));
	assert_true(size_of("") == -1 && size_of(".part") == -1);
	part = begin(0); /* what is spoilt on the disk between two attempts is noticed too */
	part_to(&part, BYTES / 2);
	skep_cache_leave(&part);
	spoil(".part", 5);
	part = begin(BYTES / 2);
	part_to(&part, BYTES);
	assert_false(skep_cache_commit(&part, fresh(&diag)));
	assert_true(size_of("") == -1 && size_of(".part") == -1);
}

static void test_senders_that_send_something_else(void **state)
{
	(void)state;
	struct skep_diag diag = {0};
	struct skep_cache_part part = begin(0);
	part_to(&part, 1000);
	const uint64_t offset[] = {0, 999, 1001, BYTES, UINT64_MAX};
	for (int i = 0; i < 5; i++)
		assert_false(skep_cache_append(&part, offset[i], content, 1, fresh(&diag)));
	assert_false(skep_cache_append(&part, 1000, content, BYTES - 999, fresh(&diag)));
	assert_false(skep_cache_append(&part, 1000, content, SIZE_MAX, fresh(&diag)));
	assert_true(part.offset == 1000);
	part_to(&part, BYTES);
	assert_false(skep_cache_append(&part, BYTES, content, 1, fresh(&diag)));
	good(skep_cache_commit(&part, fresh(&diag)), &diag);
}

static void test_damaged_files_are_not_there(void **state)
{
	(void)state;
	struct skep_diag diag = {0};
	char path[4096];
	for (int i = 0; i < 3; i++) {
		struct skep_cache_part part = begin(0);
		part_to(&part, BYTES);
		good(skep_cache_commit(&part, &diag), &diag);
		path_of("", path, sizeof path);
		if (i == 0)
			spoil("", BYTES / 3);
		else if (i == 1)
			assert_int_equal(truncate(path, 10), 0);
		else
			assert_true(unlink(path) == 0 && symlink("/etc/passwd", path) == 0);
		assert_false(skep_cache_has(&cache, digest, BYTES));
		assert_true(size_of("") == -1);
	}
	path_of(".part", path, sizeof path); /* longer than the whole: of something else */
	int fd = open(path, O_WRONLY | O_CREAT, 0600);
	assert_true(fd >= 0 && ftruncate(fd, BYTES + 1) == 0 && close(fd) == 0);
	struct skep_cache_part part = begin(0);
	skep_cache_leave(&part);
	assert_true(unlink(path) == 0 && symlink("/tmp/skep-not-here", path) == 0); /* nothing is written through it */
	assert_int_equal(skep_cache_begin(&cache, digest, BYTES, &part, &diag), SKEP_CACHE_FAILED);
	assert_true(access("/tmp/skep-not-here", F_OK) != 0);
}

/* ---- several processes -------------------------------------------------------------------------------------------- */

static void test_one_receives_and_the_others_wait(void **state)
{
	(void)state;
	struct skep_diag diag = {0};
	struct skep_cache_part part = begin(0), second;
	part_to(&part, 10);
	assert_int_equal(skep_cache_begin(&cache, digest, BYTES, &second, &diag), SKEP_CACHE_BUSY);
	assert_false(diag.set);
	skep_cache_leave(&part);
	second = begin(10);
	part_to(&second, BYTES);
	good(skep_cache_commit(&second, &diag), &diag);
	assert_int_equal(skep_cache_begin(&cache, digest, BYTES, &part, &diag), SKEP_CACHE_WHOLE);
}

/* Receives a few bytes at a time, leaves, is killed, and asks again while others are at it. */
static int storm(uint32_t seed)
{
	struct skep_diag diag = {0};
	struct skep_cache_part part;
	for (uint32_t i = 0; i < 100000; i++) {
		enum skep_cache_begun begun = skep_cache_begin(&cache, digest, BYTES, &part, &diag);
		if (begun == SKEP_CACHE_WHOLE)
			return 0;
		if (begun == SKEP_CACHE_FAILED)
			return 1;
		if (begun == SKEP_CACHE_BUSY) {
			sched_yield();
			continue;
		}
		seed = seed * 1664525u + 1013904223u;
		uint64_t left = BYTES - part.offset, count = left < 1 + (seed >> 16) ? left : 1 + (seed >> 16);
		if (!skep_cache_append(&part, part.offset, content + part.offset, count, &diag))
			return 2;
		if (part.offset < BYTES)
			skep_cache_leave(&part);
		else if (!skep_cache_commit(&part, &diag))
			return 3;
	}
	return 4;
}

static void test_many_processes_at_once(void **state)
{
	(void)state;
	for (int round = 0; round < 20; round++) {
		pid_t child[6];
		int status;
		clear();
		skep_cache_close(&cache);
		assert_int_equal(enter(NULL), 0);
		for (int i = 0; i < 6; i++)
			if ((child[i] = fork()) == 0)
				_exit(storm((uint32_t)(100 * round + i)));
		for (int i = 0; i < 6; i++)
			assert_true(waitpid(child[i], &status, 0) == child[i] && WIFEXITED(status) &&
				    WEXITSTATUS(status) == 0);
		assert_true(skep_cache_has(&cache, digest, BYTES) && size_of(".part") == -1);
	}
}

/* ---- no room ------------------------------------------------------------------------------------------------------ */

static void test_no_room_for_the_rest(void **state)
{
	(void)state;
	struct skep_cache_part part;
	struct skep_diag diag = {0};
	assert_int_equal(skep_cache_begin(&cache, digest, UINT64_C(1) << 60, &part, &diag), SKEP_CACHE_FAILED);
	assert_non_null(strstr(diag.message, "name a folder on another disk with --cache"));
	assert_non_null(strstr(diag.message, "1152921504606.8 MB to come"));
	assert_string_equal(diag.file, cache.folder);
}

/* On a disk of 128 KiB, which is full before the file is whole; what has come stays, and the rest comes when there is room
 * again. */
static int fill_disk(void)
{
	struct skep_diag diag = {0};
	struct skep_cache_part part, other;
	char name[100];
	uint64_t came;
	snprintf(name, sizeof name, "%s/disk", folder);
	if (mkdir(name, 0700) != 0 || unshare(CLONE_NEWNS) != 0 ||
		mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
		mount("tmpfs", name, "tmpfs", 0, "size=500k") != 0)
		return 77;
	skep_cache_close(&cache);
	uint8_t wrong[SKEP_DIGEST_BYTES];
	memset(wrong, 1, sizeof wrong);
	if (!skep_cache_open(name, &cache, &diag) ||
		skep_cache_begin(&cache, wrong, BYTES, &other, &diag) != SKEP_CACHE_BEGUN)
		return 1;
	if (skep_cache_begin(&cache, digest, BYTES, &part, &diag) != SKEP_CACHE_BEGUN) /* room for either */
		return 2;
	if (!skep_cache_append(&other, 0, content, BYTES, &diag) || skep_cache_append(&part, 0, content, BYTES, &diag))
		return 3;
	if (strstr(diag.message, "is full: remove files there, or name a folder on another disk with --cache") ==
			NULL ||
		strcmp(diag.file, cache.folder) != 0)
		return 4;
	came = part.offset;
	skep_cache_leave(&part);
	if (came == 0 || came == BYTES || size_of("") != -1 || size_of(".part") != (int64_t)came)
		return 5;
	diag = (struct skep_diag){0};
	skep_cache_commit(&other, &diag); /* its bytes are wrong, so that it is removed */
	diag = (struct skep_diag){0};
	part = begin(came);
	part_to(&part, BYTES);
	return skep_cache_commit(&part, &diag) ? 0 : 6;
}

static void test_full_disk(void **state)
{
	(void)state;
	int status;
	pid_t child = fork();
	if (child == 0)
		_exit(fill_disk());
	assert_true(waitpid(child, &status, 0) == child && WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip(); /* mounting a disk of its own is not allowed here */
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_folders_that_cannot_be_used(void **state)
{
	(void)state;
	struct skep_diag diag = {0};
	struct skep_cache other;
	char name[5000], was[4096] = "";
	snprintf(name, sizeof name, "%s/file", folder);
	int fd = open(name, O_WRONLY | O_CREAT, 0600);
	assert_true(fd >= 0 && close(fd) == 0);
	assert_false(skep_cache_open(name, &other, &diag));
	assert_string_equal(diag.message, "cannot be created: Not a directory; another folder with --cache would do");
	memset(name, 'x', sizeof name - 1);
	name[sizeof name - 1] = 0;
	assert_false(skep_cache_open(name, &other, fresh(&diag)));
	assert_non_null(strstr(diag.message, "too long"));
	snprintf(was, sizeof was, "%s", getenv("HOME") ? getenv("HOME") : "/");
	unsetenv("HOME");
	unsetenv("XDG_CACHE_HOME");
	assert_false(skep_cache_open(NULL, &other, fresh(&diag)));
	assert_non_null(strstr(diag.message, "--cache"));
	setenv("HOME", folder, 1);
	good(skep_cache_open(NULL, &other, fresh(&diag)), &diag);
	assert_non_null(strstr(other.folder, "/.cache/skep"));
	skep_cache_close(&other);
	snprintf(name, sizeof name, "%s/cache/xdg", folder);
	setenv("XDG_CACHE_HOME", name, 1);
	good(skep_cache_open(NULL, &other, fresh(&diag)), &diag);
	assert_non_null(strstr(other.folder, "/cache/xdg/skep"));
	skep_cache_close(&other);
	unsetenv("XDG_CACHE_HOME");
	setenv("HOME", was, 1);
}

/* ---- trees -------------------------------------------------------------------------------------------------------- */

static struct skep_manifest_entry entries[4];

/* Two files of one content, a folder, and a name. */
static struct skep_manifest sample(void)
{
	static char paths[4][16] = {"/a/b/s.yaml", "/a/b/tie", "/a/d", "/a/e"}, home[] = "/a";
	for (int i = 0; i < 4; i++)
		entries[i] = (struct skep_manifest_entry){.path = paths[i], .bytes = i < 2 ? BYTES : 0};
	memcpy(entries[0].digest, digest, sizeof digest);
	memcpy(entries[1].digest, digest, sizeof digest);
	entries[2].kind = SKEP_MANIFEST_FOLDER;
	entries[3].kind = SKEP_MANIFEST_NAMED;
	return (struct skep_manifest){.folder = home, .entry = entries, .entries = 4};
}

static void receive_all(void)
{
	struct skep_diag diag = {0};
	struct skep_cache_part part = begin(0);
	part_to(&part, BYTES);
	good(skep_cache_commit(&part, &diag), &diag);
}

static ino_t inode(const char *tree, const char *path)
{
	char whole[4096];
	struct stat st;
	snprintf(whole, sizeof whole, "%s%s", tree, path);
	assert_int_equal(stat(whole, &st), 0);
	return st.st_ino;
}

static void test_a_tree(void **state)
{
	(void)state;
	struct skep_diag diag = {0};
	struct skep_manifest m = sample();
	char tree[SKEP_CACHE_PATH], path[SKEP_CACHE_PATH], again[SKEP_CACHE_PATH], want[600], blob[4096], command[2800];
	receive_all();
	good(skep_cache_tree(&cache, "run-7", &m, tree, path, &diag), &diag);
	snprintf(want, sizeof want, "%s/a/b/s.yaml", tree);
	assert_string_equal(path, want);
	path_of("", blob, sizeof blob);
	assert_true(inode(tree, "/a/b/s.yaml") == inode(blob, "")); /* no bytes twice ... */
	assert_true(inode(tree, "/a/b/tie") != inode(blob, ""));    /* ... but for what is two files there */
	snprintf(command, sizeof command, "cmp -s %s %s/a/b/tie && test -d %s/a/d -a -f %s/a/e -a ! -s %s/a/e", path,
		tree, tree, tree, tree);
	assert_int_equal(system(command), 0);
	ino_t first = inode(tree, "");
	good(skep_cache_tree(&cache, "run-7", &m, again, path, &diag), &diag);
	assert_string_equal(again, tree);
	assert_true(inode(tree, "") == first); /* as it is, and ... */
	snprintf(command, sizeof command, "rm %s/a/e", tree);
	assert_int_equal(system(command), 0);
	good(skep_cache_tree(&cache, "run-7", &m, again, path, &diag), &diag);
	inode(tree, "/a/e"); /* ... if something is missing, anew */
	good(skep_cache_tree(&cache, "run-8", &m, again, path, &diag), &diag);
	assert_string_not_equal(again, tree);
	snprintf(command, sizeof command, "test $(ls -A %s/runs | wc -l) = 2", cache.folder); /* nothing half made */
	assert_int_equal(system(command), 0);
}

/* A file in blobs/ that was damaged and came again is what the tree has afterwards. */
static void test_a_tree_of_a_damaged_file(void **state)
{
	(void)state;
	struct skep_diag diag = {0};
	struct skep_manifest m = sample();
	char tree[SKEP_CACHE_PATH], path[SKEP_CACHE_PATH], command[1200];
	receive_all();
	good(skep_cache_tree(&cache, "run", &m, tree, path, &diag), &diag);
	spoil("", 9);
	assert_false(skep_cache_has(&cache, digest, BYTES));
	assert_false(skep_cache_tree(&cache, "run", &m, tree, path, &diag));
	assert_non_null(strstr(diag.message, "No such file"));
	receive_all();
	good(skep_cache_tree(&cache, "run", &m, tree, path, fresh(&diag)), &diag);
	snprintf(command, sizeof command, "test $(sha256sum <%s | cut -c 1-8) = %02x%02x%02x%02x", path, digest[0],
		digest[1], digest[2], digest[3]);
	assert_int_equal(system(command), 0);
}

static void test_trees_that_lead_elsewhere(void **state)
{
	(void)state;
	static const char *const run[] = {"", ".", "..", "../x", "a/b", ".x", "a b", "\xc3\xa4",
		"0123456789012345678901234567890123456789012345678901234567890123x"};
	struct skep_diag diag = {0};
	struct skep_manifest m = sample();
	char tree[SKEP_CACHE_PATH], path[SKEP_CACHE_PATH], deep[SKEP_CACHE_PATH], command[600];
	receive_all();
	for (size_t i = 0; i < sizeof run / sizeof run[0]; i++)
		assert_false(skep_cache_tree(&cache, run[i], &m, tree, path, fresh(&diag)));
	static char *const wrong[] = {"/a/../../x", "a", "/a//b", "/", "/a/b", "/a/b/tie"};
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		m = sample();
		m.entry[0].path = wrong[i];
		assert_false(skep_cache_tree(&cache, "run", &m, tree, path, fresh(&diag)));
	}
	m = sample();
	memset(deep, 'x', sizeof deep);
	for (size_t i = 0; i < sizeof deep; i += 100)
		deep[i] = '/';
	deep[sizeof deep - 1] = 0;
	m.entry[3].path = deep;
	assert_false(skep_cache_tree(&cache, "run", &m, tree, path, fresh(&diag)));
	assert_non_null(strstr(diag.message, "name a cache with a shorter path with --cache"));
	snprintf(command, sizeof command, "test $(ls -A %s/runs | wc -l) = 0", cache.folder);
	assert_int_equal(system(command), 0);
}

/* One whose maker was killed is taken away by the next process, also where nothing is to be made; not one that is being
 * made. */
static void test_a_half_made_tree(void **state)
{
	(void)state;
	struct skep_diag diag = {0};
	struct skep_manifest m = sample();
	char tree[SKEP_CACHE_PATH], path[SKEP_CACHE_PATH], command[1200], held[600];
	receive_all();
	for (int i = 0; i < 2; i++) {
		snprintf(command, sizeof command,
			"cd %s/runs && mkdir -p .new-abcdef/a/b .new-ghijkl && touch .new-abcdef/a/b/s.yaml",
			cache.folder);
		assert_int_equal(system(command), 0);
		snprintf(held, sizeof held, "%s/runs/.new-ghijkl", cache.folder);
		int fd = open(held, O_RDONLY | O_DIRECTORY);
		assert_int_equal(flock(fd, LOCK_EX), 0);
		good(skep_cache_tree(&cache, "run", &m, tree, path, &diag), &diag);
		snprintf(command, sizeof command, "test \"$(ls -A %s/runs)\" = \"$(printf '.new-ghijkl\\n%s')\"",
			cache.folder, strrchr(tree, '/') + 1);
		assert_int_equal(system(command), 0);
		close(fd);
	}
}

static void test_many_processes_make_one_tree(void **state)
{
	(void)state;
	struct skep_manifest m = sample();
	char tree[SKEP_CACHE_PATH], path[SKEP_CACHE_PATH], command[600];
	receive_all();
	pid_t child[6];
	int status;
	for (int i = 0; i < 6; i++)
		if ((child[i] = fork()) == 0) {
			struct skep_diag diag = {0};
			bool ok = true;
			for (int k = 0; k < 30 && ok; k++) {
				snprintf(command, sizeof command, "run-%d", k);
				ok = skep_cache_tree(&cache, command, &m, tree, path, &diag) && access(path, R_OK) == 0;
			}
			_exit(!ok);
		}
	for (int i = 0; i < 6; i++)
		assert_true(waitpid(child[i], &status, 0) == child[i] && WIFEXITED(status) && WEXITSTATUS(status) == 0);
	snprintf(command, sizeof command, "test $(ls -A %s/runs | wc -l) = 30", cache.folder);
	assert_int_equal(system(command), 0);
}

#define in_cache(test) cmocka_unit_test_setup_teardown(test, enter, leave)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_digest),
		in_cache(test_whole_at_once),
		in_cache(test_empty_file),
		in_cache(test_goes_on_where_it_ended),
		in_cache(test_goes_on_after_a_kill),
		in_cache(test_wrong_bytes_are_removed),
		in_cache(test_senders_that_send_something_else),
		in_cache(test_damaged_files_are_not_there),
		in_cache(test_one_receives_and_the_others_wait),
		in_cache(test_many_processes_at_once),
		in_cache(test_no_room_for_the_rest),
		in_cache(test_full_disk),
		in_cache(test_folders_that_cannot_be_used),
		in_cache(test_a_tree),
		in_cache(test_a_tree_of_a_damaged_file),
		in_cache(test_trees_that_lead_elsewhere),
		in_cache(test_a_half_made_tree),
		in_cache(test_many_processes_make_one_tree),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
