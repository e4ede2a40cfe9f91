/* SPDX-License-Identifier: Apache-2.0
 *
 * test_kept.c - what replicas agree on: entries as bytes, the table that they make, and the table as bytes. Random bytes are
 * refused or make a table that reads back as it was written.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "exec/replicas/kept.h"

#define STAGES 3u

static void tell(struct skep_kept *kept, const struct skep_kept_entry *entry)
{
	uint8_t bytes[SKEP_KEPT_ENTRY_BYTES];
	skep_kept_encode(entry, bytes);
	assert_true(skep_kept_apply(kept, bytes, sizeof bytes));
}

static void state(struct skep_kept *kept, uint32_t stage, uint32_t version)
{
	tell(kept, &(struct skep_kept_entry){
			   .kind = SKEP_KEPT_STATE, .stage = stage, .version = version, .bytes = 100 + version});
}

static void test_newest_of_all_stages(void **unused)
{
	struct skep_kept kept;
	(void)unused;
	assert_true(skep_kept_create(STAGES, &kept));
	assert_int_equal(skep_kept_newest(&kept), 0);
	for (uint32_t version = 1; version <= 5; version++) {
		for (uint32_t stage = 0; stage < STAGES; stage++)
			state(&kept, stage, version);
		assert_int_equal(skep_kept_newest(&kept), version);
	}
	state(&kept, 0, 6); /* which the other stages do not have */
	state(&kept, 2, 6);
	assert_int_equal(skep_kept_newest(&kept), 5);
	assert_int_equal(skep_kept_find(&kept, 1, 5)->bytes, 105);
	assert_null(skep_kept_find(&kept, 1, 2)); /* too old */
	assert_null(skep_kept_find(&kept, 1, 6));
	assert_null(skep_kept_find(&kept, 1, 0));
	state(&kept, 1, 2); /* an old one does not come back */
	assert_null(skep_kept_find(&kept, 1, 2));
	skep_kept_finish(&kept);
}

/* A run that goes on from an earlier version has nothing of what its predecessor has made beyond it. */
static void test_begin_strikes_what_is_beyond(void **unused)
{
	struct skep_kept kept;
	(void)unused;
	assert_true(skep_kept_create(1, &kept));
	tell(&kept, &(struct skep_kept_entry){.kind = SKEP_KEPT_BEGIN, .job = 7, .run = 10});
	state(&kept, 0, 4);
	state(&kept, 0, 5);
	state(&kept, 0, 6);
	tell(&kept,
		&(struct skep_kept_entry){.kind = SKEP_KEPT_BEGIN, .job = 7, .run = 11, .from = 10, .from_version = 5});
	assert_int_equal(skep_kept_newest(&kept), 5);
	assert_true(kept.job == 7 && kept.run == 11 && kept.from == 10 && kept.from_version == 5 && !kept.over);
	tell(&kept, &(struct skep_kept_entry){.kind = SKEP_KEPT_BEGIN, .job = 7, .run = 12}); /* from the first step */
	assert_int_equal(skep_kept_newest(&kept), 0);
	tell(&kept, &(struct skep_kept_entry){.kind = SKEP_KEPT_OVER});
	assert_true(kept.over);
	skep_kept_finish(&kept);
}

static bool same(const struct skep_kept *a, const struct skep_kept *b)
{
	bool alike = a->job == b->job && a->run == b->run && a->from == b->from && a->from_version == b->from_version &&
	             a->over == b->over;
	for (uint32_t i = 0; i < a->stages * SKEP_KEPT_VERSIONS; i++)
		alike = alike && a->state[i].version == b->state[i].version && a->state[i].bytes == b->state[i].bytes;
	return alike;
}

static void test_bytes(void **unused)
{
	struct skep_kept kept, copy;
	uint8_t entry[SKEP_KEPT_ENTRY_BYTES + 1] = {0};
	(void)unused;
	assert_true(skep_kept_create(STAGES, &kept) && skep_kept_create(STAGES, &copy));
	size_t size = skep_kept_snapshot_bytes(&kept);
	assert_int_equal(size % 8, 0);
	uint8_t *before = malloc(size), *bytes = malloc(size);
	skep_kept_snapshot(&kept, bytes);
	srand(3);
	for (uint32_t i = 0; i < 100000; i++) {
		for (size_t at = 0; at < SKEP_KEPT_ENTRY_BYTES; at++)
			entry[at] = (uint8_t)(rand() % 4 == 0 ? rand() % 4 : 0);
		memcpy(before, bytes, size);
		bool applied = skep_kept_apply(&kept, entry, SKEP_KEPT_ENTRY_BYTES);
		skep_kept_snapshot(&kept, bytes);
		if (!applied)
			assert_memory_equal(before, bytes, size);
		memcpy(before, bytes, size);
		assert_false(skep_kept_apply(&kept, entry, (size_t)rand() % SKEP_KEPT_ENTRY_BYTES));
		assert_false(skep_kept_apply(&kept, entry, SKEP_KEPT_ENTRY_BYTES + 1));
		skep_kept_snapshot(&kept, bytes);
		assert_memory_equal(before, bytes, size);
		assert_true(skep_kept_restore(&copy, bytes, size));
		assert_true(same(&kept, &copy));
	}
	assert_true(kept.run != 0 && kept.over);
	assert_false(skep_kept_restore(&copy, bytes, size - 1));
	bytes[0]++; /* of another number of stages */
	assert_false(skep_kept_restore(&copy, bytes, size));
	free(bytes);
	free(before);
	skep_kept_finish(&kept);
	skep_kept_finish(&copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_newest_of_all_stages),
		cmocka_unit_test(test_begin_strikes_what_is_beyond),
		cmocka_unit_test(test_bytes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
