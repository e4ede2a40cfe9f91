/* SPDX-License-Identifier: Apache-2.0
 *
 * test_saver.c - states that are put on the disk by threads: who gives one goes on while the disk is slow; what is damaged is
 * refused, and what no guest waits for is kept.
 */
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "exec/keeping/saver.h"

#define BYTES 300000u
#define PIECE 65536u

/* The disk: each file waits for disk.free, after it has said so in disk.asked. Linked in place of the C library's. */
static struct {
	sem_t asked, free;
	atomic_bool slow;
} disk;

int fsync(int fd)
{
	(void)fd;
	if (disk.slow) {
		sem_post(&disk.asked);
		sem_wait(&disk.free);
	}
	return 0;
}

struct bench {
	char from[64], to[64], file[SKEP_CHECKPOINT_PATH_BYTES];
	struct skep_checkpoint_folder source, folder;
	struct skep_saver *saver;
	sem_t woken;
	unsigned char state[BYTES];
};

static void wake(void *context)
{
	struct bench *b = context;
	sem_post(&b->woken);
}

static void begin(struct bench *b)
{
	struct skep_diag why = {0};
	memset(b, 0, sizeof *b);
	disk.slow = false;
	sem_init(&disk.asked, 0, 0);
	sem_init(&disk.free, 0, 0);
	sem_init(&b->woken, 0, 0);
	strcpy(b->from, "/tmp/skep-from-XXXXXX");
	strcpy(b->to, "/tmp/skep-to-XXXXXX");
	assert_non_null(mkdtemp(b->from));
	assert_non_null(mkdtemp(b->to));
	b->source = (struct skep_checkpoint_folder){.path = b->from, .job = 7, .run = 9};
	b->folder = (struct skep_checkpoint_folder){.path = b->to, .job = 7, .run = 9};
	for (unsigned i = 0; i < BYTES; i++)
		b->state[i] = (unsigned char)(i * 7 + i / 256);
	const struct skep_keeper keeper = skep_checkpoint_keeper(&b->source);
	assert_true(keeper.write(keeper.context, 2, 15, false, b->state, BYTES, &why));
	skep_checkpoint_path(&b->folder, 2, 15, b->file);
	b->saver = skep_saver_create(wake, b);
	assert_non_null(b->saver);
}

static void finish(struct bench *b)
{
	char command[160];
	skep_saver_destroy(b->saver);
	snprintf(command, sizeof command, "rm -r %s %s", b->from, b->to);
	assert_int_equal(system(command), 0);
}

static struct skep_arrival *arrive(struct bench *b, uint64_t flipped)
{
	static unsigned char bytes[SKEP_CHECKPOINT_HEADER_BYTES + BYTES];
	char path[SKEP_CHECKPOINT_PATH_BYTES];
	const struct skep_state_word word = {.keep = true, .stage = 2, .version = 15, .bytes = sizeof bytes};
	struct skep_diag why = {0};
	bool whole = false;
	skep_checkpoint_path(&b->source, 2, 15, path);
	FILE *file = fopen(path, "rb");
	assert_non_null(file);
	assert_int_equal(fread(bytes, 1, sizeof bytes, file), sizeof bytes);
	fclose(file);
	bytes[flipped] ^= flipped > 0;
	struct skep_arrival *arrival = skep_arrival_begin(&b->folder, &word, &why);
	assert_non_null(arrival);
	for (uint64_t at = 0; at < sizeof bytes; at += PIECE) {
		const uint32_t count = sizeof bytes - at < PIECE ? (uint32_t)(sizeof bytes - at) : PIECE;
		const struct skep_piece piece = {.offset = at, .bytes = bytes + at, .count = count};
		assert_true(skep_arrival_add(arrival, &piece, &whole, &why));
	}
	assert_true(whole);
	return arrival;
}

static bool take(struct bench *b, uint32_t *ret_who, struct skep_diag *ret_why)
{
	struct skep_state_word word = {0};
	bool is_one = skep_saver_take(b->saver, ret_who, &word, ret_why);
	assert_true(!is_one || (word.stage == 2 && word.version == 15));
	return is_one;
}

static void test_who_gives_does_not_wait_for_the_disk(void **state)
{
	(void)state;
	struct bench b;
	struct skep_diag why = {0};
	uint32_t who = 0;
	begin(&b);
	disk.slow = true;
	assert_true(skep_saver_give(b.saver, arrive(&b, 0), 31));
	sem_wait(&disk.asked);
	assert_false(take(&b, &who, &why)); /* the thread waits for the disk, and this one is here */
	assert_int_not_equal(access(b.file, F_OK), 0);
	disk.slow = false;
	sem_post(&disk.free);
	sem_wait(&b.woken);
	assert_true(take(&b, &who, &why));
	assert_int_equal(who, 31);
	assert_false(why.set);
	assert_int_equal(access(b.file, F_OK), 0);
	assert_true(skep_checkpoint_is_whole(b.file));
	assert_false(take(&b, &who, &why));
	finish(&b);
}

static void test_what_is_damaged_is_refused(void **state)
{
	(void)state;
	struct bench b;
	struct skep_diag why = {0};
	uint32_t who = 0;
	begin(&b);
	assert_true(skep_saver_give(b.saver, arrive(&b, 200000), 4));
	sem_wait(&b.woken);
	assert_true(take(&b, &who, &why));
	assert_int_equal(who, 4);
	assert_non_null(strstr(why.message, "its sum is not that of its contents"));
	assert_int_not_equal(access(b.file, F_OK), 0);
	finish(&b);
}

static void test_what_no_guest_waits_for_is_kept(void **state)
{
	(void)state;
	struct bench b;
	struct skep_diag why = {0};
	uint32_t who = 0;
	begin(&b);
	disk.slow = true;
	assert_true(skep_saver_give(b.saver, arrive(&b, 0), 4));
	sem_wait(&disk.asked);
	disk.slow = false;
	assert_true(skep_saver_give(b.saver, arrive(&b, 0), 5)); /* which does not wait for the first one */
	sem_wait(&b.woken);
	assert_true(take(&b, &who, &why));
	assert_int_equal(who, 5);
	skep_saver_forget(b.saver, 4);
	sem_post(&disk.free);
	sem_wait(&b.woken);
	assert_true(take(&b, &who, &why));
	assert_int_equal(who, SKEP_SAVER_NO_ONE);
	finish(&b);
}

static void test_all_are_kept_at_the_end(void **state)
{
	(void)state;
	struct bench b;
	begin(&b);
	disk.slow = true;
	assert_true(skep_saver_give(b.saver, arrive(&b, 0), 4));
	sem_wait(&disk.asked);
	disk.slow = false;
	sem_post(&disk.free);
	skep_saver_destroy(b.saver);
	b.saver = NULL;
	assert_true(skep_checkpoint_is_whole(b.file));
	finish(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_gives_does_not_wait_for_the_disk),
		cmocka_unit_test(test_what_is_damaged_is_refused),
		cmocka_unit_test(test_what_no_guest_waits_for_is_kept),
		cmocka_unit_test(test_all_are_kept_at_the_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
