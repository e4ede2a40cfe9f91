/* SPDX-License-Identifier: Apache-2.0
 *
 * test_marks.c - sets of numbers against plain bitmaps, in tables as small as they come and as they grow; tallies against
 * qsort().
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/random.h"
#include "core/worker/marks.h"

#define SETS 3u
#define NUMBERS 400u

struct model { /* the table, and what is in it */
	struct skep_marks *marks;
	bool in[SETS][NUMBERS];
	uint32_t used;
};

static struct skep_marks *table_of(uint32_t slots, uint32_t sets)
{
	struct skep_marks *marks = malloc(skep_marks_size(slots));
	assert_non_null(marks);
	skep_marks_init(marks, slots, sets);
	return marks;
}

static void compare(const struct model *model, uint32_t numbers)
{
	assert_int_equal(model->marks->used, model->used);
	for (uint32_t set = 0; set < SETS; set++) {
		for (uint32_t number = 0; number < numbers; number++)
			assert_int_equal(skep_marks_has((struct skep_mark_set){model->marks, set}, number),
				model->in[set][number]);
	}
}

static void add(struct model *model, uint32_t set, uint32_t number)
{
	skep_marks_add((struct skep_mark_set){model->marks, set}, number);
	model->used += !model->in[set][number];
	model->in[set][number] = true;
}

static void clear(struct model *model, uint32_t set)
{
	skep_marks_clear((struct skep_mark_set){model->marks, set});
	for (uint32_t number = 0; number < NUMBERS; number++) {
		model->used -= model->in[set][number];
		model->in[set][number] = false;
	}
}

static void grow(struct model *model)
{
	struct skep_marks *larger = table_of(2 * model->marks->slots, SETS);
	skep_marks_copy(larger, model->marks);
	free(model->marks);
	model->marks = larger;
}

static void test_sets_are_sets(void **state)
{
	(void)state;
	struct model model = {.marks = table_of(skep_marks_slots(1), SETS)};
	uint64_t random = 7;
	for (uint32_t i = 0; i < 20000; i++) {
		if (skep_random_below(&random, 300) == 0)
			clear(&model, skep_random_below(&random, SETS));
		if (!skep_marks_room(model.marks, 1))
			grow(&model);
		add(&model, skep_random_below(&random, SETS), skep_random_below(&random, NUMBERS));
		if (i % 16 == 0)
			compare(&model, NUMBERS);
	}
	free(model.marks);
}

/* As full as it may be, and over the end of the table: what is taken out leaves all others where they are found. */
static void test_a_small_table_is_cleared_set_by_set(void **state)
{
	(void)state;
	uint64_t random = 3;
	for (uint32_t run = 0; run < 20000; run++) {
		struct model model = {.marks = table_of(skep_marks_slots(1), SETS)};
		while (skep_marks_room(model.marks, 1))
			add(&model, skep_random_below(&random, SETS), skep_random_below(&random, 40));
		assert_int_equal(2 * model.used, model.marks->slots);
		for (uint32_t i = 0; i < SETS; i++) {
			clear(&model, (run + i) % SETS);
			compare(&model, 40);
		}
		assert_int_equal(model.used, 0);
		free(model.marks);
	}
}

static void test_room(void **state)
{
	(void)state;
	for (uint32_t numbers = 1; numbers < 3000; numbers += 7) {
		struct skep_marks *marks = table_of(skep_marks_slots(numbers), 1);
		assert_true(skep_marks_room(marks, numbers));
		assert_true(marks->slots <= 16 || marks->slots < 4 * numbers);
		for (uint32_t i = 0; i < numbers; i++)
			skep_marks_add((struct skep_mark_set){marks, 0}, i);
		assert_int_equal(skep_marks_room(marks, 1), 2 * (numbers + 1) <= marks->slots);
		free(marks);
	}
}

static int ascending(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;
	return *x < *y ? -1 : *x > *y;
}

static void test_tallies_are_sorted(void **state)
{
	(void)state;
	uint64_t random = 11;
	for (uint32_t count = 0; count < 260; count++) {
		struct skep_tally *tally = malloc(skep_tally_size(count)), *copy = malloc(skep_tally_size(count));
		uint32_t expected[260];
		*tally = *copy = (struct skep_tally){.capacity = count};
		for (uint32_t i = 0; i < count; i++) {
			expected[i] = skep_random_below(&random, count % 2 ? 10 : UINT32_MAX);
			skep_tally_add(tally, expected[i]);
		}
		skep_tally_copy(copy, tally);
		skep_tally_sort(copy);
		qsort(expected, count, sizeof *expected, ascending);
		assert_int_equal(copy->count, count);
		assert_memory_equal(copy->number, expected, count * sizeof *expected);
		free(tally);
		free(copy);
	}
}

static void test_tallies_are_told_in_parts(void **state)
{
	(void)state;
	struct skep_tally *tally = malloc(skep_tally_size(6));
	*tally = (struct skep_tally){.capacity = 6, .count = 6};
	const uint32_t number[] = {
		40000, 40001, 40000 + UINT16_MAX, 40001 + UINT16_MAX, 40002 + UINT16_MAX, UINT32_MAX};
	uint16_t offset[6] = {0};
	memcpy(tally->number, number, sizeof number);
	assert_int_equal(skep_tally_part(tally, 0, 6, offset), 3); /* the fourth is too far from the first */
	assert_int_equal(offset[0], 0);
	assert_int_equal(offset[1], 1);
	assert_int_equal(offset[2], UINT16_MAX);
	assert_int_equal(skep_tally_part(tally, 3, 6, offset), 2);
	assert_int_equal(offset[1], 1);
	assert_int_equal(skep_tally_part(tally, 5, 6, offset), 1);
	assert_int_equal(offset[0], 0);
	assert_int_equal(skep_tally_part(tally, 6, 6, offset), 0);
	assert_int_equal(skep_tally_part(tally, 0, 2, offset), 2);
	assert_int_equal(skep_tally_part(tally, 0, 3, offset), 3);
	free(tally);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sets_are_sets),
		cmocka_unit_test(test_a_small_table_is_cleared_set_by_set),
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_tallies_are_sorted),
		cmocka_unit_test(test_tallies_are_told_in_parts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
