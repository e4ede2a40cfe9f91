/* SPDX-License-Identifier: Apache-2.0
 *
 * test_checkpoint.c - states in files: what was written is read; what is damaged, cut or of something else is refused with a
 * reason; old ones go.
 */
#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "models/checkpoint/checkpoint_folder.h"
#include "tests/unit/fresh.h"

#define BYTES 1003u
#define JOB UINT64_C(0x8877665544332211)
#define RUN UINT64_C(1700000000000000005) /* 2023-11-14 22:13:20 UTC, and 5 ns */

struct bench {
	char path[64], file[128];
	struct skep_diag error;
	struct skep_checkpoint_folder folder;
	struct skep_keeper keeper;
	unsigned char state[BYTES], got[BYTES];
};

static void begin(struct bench *b)
{
	memset(b, 0, sizeof *b);
	strcpy(b->path, "/tmp/skep-kept-XXXXXX");
	assert_non_null(mkdtemp(b->path));
	b->folder =
		(struct skep_checkpoint_folder){.path = b->path, .job = JOB, .run = RUN, .keep = SKEP_CHECKPOINTS_KEPT};
	b->keeper = skep_checkpoint_keeper(&b->folder);
	for (unsigned i = 0; i < BYTES; i++)
		b->state[i] = (unsigned char)(i * 7 + i / 256);
	assert_true(b->keeper.write(b->keeper.context, 2, 15, false, b->state, BYTES, fresh(&b->error)));
	snprintf(b->file, sizeof b->file, "%s/stage-2-version-15.kept", b->path);
}

static void finish(struct bench *b)
{
	char command[128];
	snprintf(command, sizeof command, "rm -r %s", b->path);
	assert_int_equal(system(command), 0);
}

static bool read_back(struct bench *b, uint32_t stage, uint32_t version, uint64_t bytes)
{
	return b->keeper.read(b->keeper.context, stage, version, b->got, bytes, fresh(&b->error));
}

static void refused(struct bench *b, const char *why)
{
	assert_false(read_back(b, 2, 15, BYTES));
	assert_non_null(strstr(b->error.message, b->file));
	assert_non_null(strstr(b->error.message, why));
}

static void test_what_is_written_is_read(void **state)
{
	(void)state;
	struct bench b;
	begin(&b);
	assert_true(read_back(&b, 2, 15, BYTES));
	assert_memory_equal(b.got, b.state, BYTES);
	unsigned char head[SKEP_CHECKPOINT_HEADER_BYTES];
	FILE *file = fopen(b.file, "rb");
	assert_int_equal(fread(head, 1, sizeof head, file), sizeof head);
	fclose(file);
	assert_memory_equal(head,
		"skepkept\4\0\0\0\2\0\0\0\17\0\0\0\0\0\0\0\353\3\0\0\0\0\0\0\x11\x22\x33\x44\x55\x66\x77\x88", 40);
	b.state[0] ^= 1; /* a newer one takes its place */
	assert_true(b.keeper.write(b.keeper.context, 2, 15, false, b.state, BYTES, fresh(&b.error)));
	assert_true(read_back(&b, 2, 15, BYTES));
	assert_memory_equal(b.got, b.state, BYTES);
	finish(&b);
}

/* Any byte that has changed, and any end that is missing. */
static void test_damage_is_noticed(void **state)
{
	(void)state;
	struct bench b;
	begin(&b);
	for (long at = 0; at < (long)(SKEP_CHECKPOINT_HEADER_BYTES + BYTES); at += at < 68 ? 1 : 97) {
		for (int twice = 0; twice < 2; twice++) {
			FILE *file = fopen(b.file, "rb+");
			fseek(file, at, SEEK_SET);
			int byte = fgetc(file);
			fseek(file, at, SEEK_SET);
			fputc(byte ^ 16, file);
			fclose(file);
			assert_int_equal(read_back(&b, 2, 15, BYTES), twice == 1);
		}
	}
	assert_true(truncate(b.file, SKEP_CHECKPOINT_HEADER_BYTES + BYTES - 1) == 0);
	refused(&b, "its length is not what it says");
	assert_true(truncate(b.file, SKEP_CHECKPOINT_HEADER_BYTES + BYTES) == 0); /* the last byte is 0 now */
	refused(&b, "damaged: its sum");
	assert_true(truncate(b.file, 0) == 0);
	refused(&b, "no checkpoint");
	unlink(b.file);
	refused(&b, "must be shared by all workers");
	finish(&b);
}

static void test_another_state_is_refused(void **state)
{
	(void)state;
	struct bench b;
	char other[128];
	begin(&b);
	assert_false(read_back(&b, 2, 15, BYTES - 1));
	assert_non_null(strstr(b.error.message, "of another stage, version, model or optimizer"));
	snprintf(other, sizeof other, "%s/stage-1-version-15.kept", b.path);
	assert_int_equal(rename(b.file, other), 0);
	assert_false(read_back(&b, 1, 15, BYTES));
	finish(&b);
}

static void test_the_newest_three_are_left(void **state)
{
	(void)state;
	struct bench b;
	begin(&b);
	for (uint32_t version = 20; version <= 40; version += 5)
		assert_true(b.keeper.write(b.keeper.context, 2, version, false, b.state, BYTES, fresh(&b.error)));
	for (uint32_t version = 15; version <= 40; version += 5)
		assert_int_equal(read_back(&b, 2, version, BYTES), version >= 30);
	/* The last round of a run is kept too, and need not be the next. */
	assert_true(b.keeper.write(b.keeper.context, 2, 42, false, b.state, BYTES, fresh(&b.error)));
	for (uint32_t version = 15; version <= 42; version++)
		assert_int_equal(read_back(&b, 2, version, BYTES), version == 35 || version == 40 || version == 42);
	assert_true(b.keeper.write(b.keeper.context, 1, 5, false, b.state, BYTES, fresh(&b.error)));
	assert_true(read_back(&b, 2, 35, BYTES)); /* each stage has its own */
	b.folder.keep = 0;
	assert_true(b.keeper.write(b.keeper.context, 2, 45, false, b.state, BYTES, fresh(&b.error)));
	assert_true(read_back(&b, 2, 35, BYTES));
	finish(&b);
}

/* A folder that an older run has used, of more rounds: nothing of it is read, removed or in the way. */
static void test_another_run_is_moved_aside(void **state)
{
	(void)state;
	struct bench b;
	struct skep_checkpoint_folder first, other;
	uint32_t moved;
	char aside[128];
	begin(&b);
	first = other = b.folder;
	other.run += 1;
	b.folder = other;
	refused(&b, "kept by another run of this scenario");
	b.folder.job ^= 1;
	refused(&b, "kept by a run of another scenario or seed");
	b.folder.job ^= 1;
	for (uint32_t version = 3; version <= 6; version++) /* while the first one goes on: it loses none of its own */
		assert_true(b.keeper.write(b.keeper.context, 2, version, false, b.state, BYTES, fresh(&b.error)));
	b.folder = first;
	assert_true(read_back(&b, 2, 15, BYTES));
	b.folder = other;
	assert_true(skep_checkpoint_folder_usable(&b.folder, &moved, fresh(&b.error)) && moved == 1);
	assert_true(skep_checkpoint_folder_usable(&b.folder, &moved, fresh(&b.error)) && moved == 0);
	refused(&b, "must be shared by all workers");
	assert_true(read_back(&b, 2, 6, BYTES));
	snprintf(aside, sizeof aside, "%s/run-20231114-221320-000000005", b.path);
	b.folder = first;
	b.folder.path = aside;
	assert_true(read_back(&b, 2, 15, BYTES));
	finish(&b);
}

static bool keep(struct bench *b, uint32_t stage, uint32_t version)
{
	return b->keeper.write(b->keeper.context, stage, version, false, b->state, BYTES, fresh(&b->error));
}

static void expect_newest(struct bench *b, uint64_t run, uint32_t version)
{
	struct skep_checkpoints list;
	assert_true(skep_checkpoints_find(b->path, JOB, 2, &list) && list.versions > 0);
	assert_true(list.run == run && list.version[list.versions - 1] == version);
	skep_checkpoints_finish(&list);
}

static void damage(struct bench *b, uint32_t stage, uint32_t version)
{
	char path[SKEP_CHECKPOINT_PATH_BYTES];
	skep_checkpoint_path(&b->folder, stage, version, path);
	FILE *file = fopen(path, "rb+");
	assert_non_null(file);
	fseek(file, -1, SEEK_END);
	int last = fgetc(file);
	fseek(file, -1, SEEK_END);
	fputc(last ^ 1, file);
	fclose(file);
}

/* Where all that a run has kept is damaged, what it began with is gone on with; and nothing where that is damaged as well. */
static void test_damaged_versions_are_passed_over(void **state)
{
	(void)state;
	struct bench b;
	struct skep_checkpoints list;
	begin(&b);
	assert_int_equal(unlink(b.file), 0);
	assert_true(keep(&b, 0, 20) && keep(&b, 1, 20) && keep(&b, 0, 30) && keep(&b, 1, 30));
	b.folder.run = RUN + 7;
	b.folder.from = RUN;
	b.folder.from_version = 30;
	assert_true(keep(&b, 0, 40) && keep(&b, 1, 40));
	static const struct {
		uint32_t damaged, left; /* versions; left 0: none */
		uint64_t run;
	} rows[] = {{0, 40, RUN + 7}, {40, 30, RUN}, {30, 20, RUN}, {20, 0, 0}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		if (rows[i].damaged > 0)
			damage(&b, 1, rows[i].damaged);
		assert_true(skep_checkpoints_find(b.path, JOB, 2, &list));
		assert_true(skep_checkpoints_pass_over(b.path, JOB, 2, &list));
		assert_int_equal(list.run, rows[i].run);
		assert_int_equal(list.versions > 0 ? list.version[list.versions - 1] : 0, rows[i].left);
		assert_int_equal(list.damaged_version, rows[i].damaged);
		skep_checkpoints_finish(&list);
	}
	finish(&b);
}

/* A run goes on with what another has kept: from the last version that all stages have, which stays where it is until the new run
 * has a whole one, whenever it dies. What some stages had beyond that is no part of the new run's versions. */
static void test_a_run_goes_on_with_another(void **state)
{
	(void)state;
	struct bench b;
	uint32_t moved;
	begin(&b);
	assert_int_equal(unlink(b.file), 0);
	for (uint32_t version = 10; version <= 40; version += 10)
		assert_true(keep(&b, 0, version) && (version == 40 || keep(&b, 1, version)));
	expect_newest(&b, RUN, 30);
	b.folder.run = RUN + 7;
	b.folder.from = RUN;
	b.folder.from_version = 30;
	assert_true(read_back(&b, 0, 30, BYTES));
	b.folder.from = RUN + 1;
	assert_false(read_back(&b, 0, 30, BYTES));
	b.folder.from = RUN;
	assert_false(read_back(&b, 0, 40, BYTES)); /* it is the other's */
	for (int twice = 0; twice < 2; twice++) {
		assert_true(skep_checkpoint_folder_usable(&b.folder, &moved, fresh(&b.error)));
		assert_int_equal(moved, twice == 0); /* stage 0 at 40 */
		expect_newest(&b, RUN, 30);
	}
	assert_true(keep(&b, 1, 40)); /* and dies: stage 0 has none of this run's */
	expect_newest(&b, RUN, 30);
	assert_true(keep(&b, 0, 40));
	expect_newest(&b, RUN + 7, 40);
	for (uint32_t version = 50; version <= 60; version += 10)
		assert_true(keep(&b, 0, version) && keep(&b, 1, version));
	expect_newest(&b, RUN + 7, 60);
	b.folder.from_version = 0;
	assert_true(skep_checkpoint_folder_usable(&b.folder, &moved, fresh(&b.error)) && moved == 0);
	finish(&b);
}

/* Two at once: neither takes what the other keeps for its own. */
static void test_two_go_on_at_once(void **state)
{
	(void)state;
	struct bench b;
	begin(&b);
	b.folder.from = RUN;
	b.folder.from_version = 15;
	b.folder.run = RUN + 1;
	assert_true(read_back(&b, 2, 15, BYTES) && keep(&b, 2, 20));
	b.folder.run = RUN + 2;
	assert_true(read_back(&b, 2, 15, BYTES));
	assert_false(read_back(&b, 2, 20, BYTES));
	assert_non_null(strstr(b.error.message, "kept by another run of this scenario"));
	finish(&b);
}

/* All processes of a run begin at once, and each looks for what others have kept: each file is moved by one of them, and none
 * takes one that is gone by then for one that says nothing of its run. */
static void test_many_move_at_once(void **state)
{
	(void)state;
	enum { ROUNDS = 30, FILES = 60, PROCESSES = 4 };
	for (uint32_t round = 0; round < ROUNDS; round++) {
		struct bench b;
		char name[128], unknown[128];
		int start[2], sum = 0;
		pid_t pid[PROCESSES];
		begin(&b);
		for (uint32_t i = 1; i < FILES; i++) {
			snprintf(name, sizeof name, "%s/stage-%u-version-7.kept", b.path, i + 10);
			assert_int_equal(link(b.file, name), 0);
		}
		b.folder.run++;
		assert_int_equal(pipe(start), 0);
		for (uint32_t i = 0; i < PROCESSES; i++)
			if ((pid[i] = fork()) == 0) {
				uint32_t moved;
				char go;
				close(start[1]);
				if (read(start[0], &go, 1) != 0) /* until the other end is closed */
					_exit(255);
				bool good = skep_checkpoint_folder_usable(&b.folder, &moved, fresh(&b.error));
				_exit(good ? (int)moved : 255);
			}
		close(start[0]);
		close(start[1]);
		for (uint32_t i = 0; i < PROCESSES; i++) {
			int status;
			waitpid(pid[i], &status, 0);
			assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 255);
			sum += WEXITSTATUS(status);
		}
		assert_int_equal(sum, FILES);
		snprintf(unknown, sizeof unknown, "%s/run-unknown", b.path);
		assert_int_not_equal(access(unknown, F_OK), 0);
		finish(&b);
	}
}

/* A file of an older skep is no checkpoint, nor is one that only has the name. */
static void test_what_is_nobodys(void **state)
{
	(void)state;
	struct bench b;
	struct skep_checkpoints list;
	uint32_t moved;
	char other[128];
	begin(&b);
	FILE *file = fopen(b.file, "rb+");
	fseek(file, 8, SEEK_SET);
	fputc(1, file);
	fseek(file, 56, SEEK_SET);
	fwrite("12345678", 1, 8, file); /* else it would be one of this format, damaged */
	fclose(file);
	refused(&b, "of another format than this skep's");
	assert_true(skep_checkpoints_find(b.path, JOB, 3, &list));
	assert_true(list.versions == 0 && list.files == 1 && list.older == 1 && list.foreign == 0);
	skep_checkpoints_finish(&list);
	snprintf(other, sizeof other, "%s/stage-0-version-7.kept", b.path);
	file = fopen(other, "wb");
	fputs("nothing", file);
	fclose(file);
	assert_true(skep_checkpoints_find(b.path, JOB, 3, &list));
	assert_string_equal(list.damaged, other);
	skep_checkpoints_finish(&list);
	assert_true(skep_checkpoint_folder_usable(&b.folder, &moved, fresh(&b.error)) && moved == 2);
	snprintf(other, sizeof other, "%s/run-unknown/stage-0-version-7.kept", b.path);
	assert_int_equal(access(other, R_OK), 0);
	finish(&b);
}

static void test_a_folder_that_cannot_be_used(void **state)
{
	(void)state;
	struct bench b;
	uint32_t moved;
	begin(&b);
	assert_true(skep_checkpoint_folder_usable(&b.folder, &moved, fresh(&b.error)));
	b.folder.path = "/nowhere/at/all";
	assert_false(skep_checkpoint_folder_usable(&b.folder, &moved, fresh(&b.error)));
	assert_non_null(strstr(b.error.message, "/nowhere/at/all"));
	assert_false(b.keeper.write(b.keeper.context, 2, 15, false, b.state, BYTES, fresh(&b.error)));
	assert_non_null(strstr(b.error.message, "/nowhere/at/all"));
	finish(&b);
}

static uint32_t files(const struct bench *b)
{
	uint32_t count = 0;
	DIR *entries = opendir(b->path);
	for (const struct dirent *entry; (entry = readdir(entries)) != NULL;)
		count += entry->d_name[0] != '.';
	closedir(entries);
	return count;
}

/* Killed in the middle, by a limit for its files; what was kept is still there, and what was begun is none and goes. */
static void test_a_writer_is_killed(void **state)
{
	(void)state;
	enum { LARGE = 1 << 24 };
	struct bench b;
	begin(&b);
	uint32_t moved;
	struct skep_checkpoints list;
	const pid_t writer = fork();
	if (writer == 0) {
		void *large = calloc(1, LARGE);
		signal(SIGXFSZ, SIG_DFL);
		setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
		setrlimit(RLIMIT_FSIZE, &(struct rlimit){LARGE / 2, LARGE / 2});
		b.keeper.write(b.keeper.context, 2, 20, false, large, LARGE, fresh(&b.error));
		_exit(0);
	}
	int ended = 0;
	waitpid(writer, &ended, 0);
	assert_true(WIFSIGNALED(ended) && WTERMSIG(ended) == SIGXFSZ);
	assert_int_equal(files(&b), 2);
	assert_true(read_back(&b, 2, 15, BYTES));
	assert_memory_equal(b.got, b.state, BYTES);
	assert_false(read_back(&b, 2, 20, LARGE));
	assert_true(skep_checkpoints_find(b.path, JOB, 1, &list) && list.versions == 0);
	skep_checkpoints_finish(&list);
	assert_true(skep_checkpoint_folder_usable(&b.folder, &moved, fresh(&b.error)));
	assert_int_equal(files(&b), 2); /* it might be another machine's */
	char post_mortem[160];
	glob_t found;
	snprintf(post_mortem, sizeof post_mortem, "%s/stage-2-version-20.kept.%ld-*.new", b.path, (long)writer);
	assert_int_equal(glob(post_mortem, 0, NULL, &found), 0);
	const struct timespec old[2] = {{1000000000, 0}, {1000000000, 0}};
	assert_int_equal(utimensat(AT_FDCWD, found.gl_pathv[0], old, 0), 0);
	globfree(&found);
	assert_true(skep_checkpoint_folder_usable(&b.folder, &moved, fresh(&b.error)));
	assert_int_equal(files(&b), 1);
	assert_true(read_back(&b, 2, 15, BYTES));
	finish(&b);
}

/* A file may not grow: as on a full disk, the old one stays and nothing half-written is left. */
static void test_a_full_disk(void **state)
{
	(void)state;
	struct bench b;
	struct rlimit was, little;
	begin(&b);
	getrlimit(RLIMIT_FSIZE, &was);
	little = (struct rlimit){500, was.rlim_max};
	void (*before)(int) = signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &little);
	bool written = b.keeper.write(b.keeper.context, 2, 20, false, b.state, BYTES, fresh(&b.error));
	setrlimit(RLIMIT_FSIZE, &was);
	signal(SIGXFSZ, before);
	assert_false(written);
	assert_non_null(strstr(b.error.message, "stage-2-version-20.kept: cannot be written: File too large"));
	assert_int_equal(files(&b), 1);
	assert_true(read_back(&b, 2, 15, BYTES));
	finish(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_written_is_read),
		cmocka_unit_test(test_damage_is_noticed),
		cmocka_unit_test(test_another_state_is_refused),
		cmocka_unit_test(test_the_newest_three_are_left),
		cmocka_unit_test(test_another_run_is_moved_aside),
		cmocka_unit_test(test_damaged_versions_are_passed_over),
		cmocka_unit_test(test_a_run_goes_on_with_another),
		cmocka_unit_test(test_two_go_on_at_once),
		cmocka_unit_test(test_what_is_nobodys),
		cmocka_unit_test(test_many_move_at_once),
		cmocka_unit_test(test_a_folder_that_cannot_be_used),
		cmocka_unit_test(test_a_writer_is_killed),
		cmocka_unit_test(test_a_full_disk),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
