/* SPDX-License-Identifier: Apache-2.0
 *
 * marks.c - see marks.h.
 */
#include "core/worker/marks.h"

#include <assert.h>
#include <string.h>

#define SLOTS_MIN 16u /* a cache line */

uint32_t skep_marks_slots(uint32_t numbers)
{
	uint32_t slots = SLOTS_MIN;
	assert(numbers < UINT32_C(1) << 30);
	while (slots < 2 * numbers)
		slots *= 2;
	return slots;
}

size_t skep_marks_size(uint32_t slots)
{
	return sizeof(struct skep_marks) + slots * sizeof(uint32_t);
}

void skep_marks_init(struct skep_marks *marks, uint32_t slots, uint32_t sets)
{
	*marks = (struct skep_marks){.slots = slots, .sets = sets};
	memset(marks->key, 0, slots * sizeof *marks->key);
}

bool skep_marks_room(const struct skep_marks *marks, uint32_t more)
{
	return marks->used + more <= marks->slots / 2;
}

/* Numbers that are near each other are met at about the same time, so they live near each other, in the same line of memory; each
 * run of as many numbers as there are slots begins elsewhere, by a multiplication by 2^32 / phi, so that no stride of numbers
 * comes to one place. The sets share homes. */
static uint32_t home(const struct skep_marks *marks, uint32_t key)
{
	uint32_t number = (key - 1) / marks->sets;
	uint32_t run = number >> __builtin_ctz(marks->slots);
	return (number + run * UINT32_C(0x9e3779b1)) & (marks->slots - 1);
}

/* Where the key is, or the free slot where it would be. */
static uint32_t place(const struct skep_marks *marks, uint32_t key)
{
	uint32_t at = home(marks, key);
	while (marks->key[at] != 0 && marks->key[at] != key)
		at = (at + 1) & (marks->slots - 1);
	return at;
}

static void insert(struct skep_marks *marks, uint32_t key)
{
	uint32_t at = place(marks, key);
	if (marks->key[at] == key)
		return;
	assert(skep_marks_room(marks, 1)); /* else a world did not give what was asked for (skep_node_wanted()) */
	marks->key[at] = key;
	marks->used++;
}

static uint32_t key_of(struct skep_mark_set set, uint32_t number)
{
	assert(set.set < set.marks->sets && number < UINT32_MAX / set.marks->sets);
	return number * set.marks->sets + set.set + 1;
}

void skep_marks_copy(struct skep_marks *to, const struct skep_marks *from)
{
	for (uint32_t i = 0; i < from->slots; i++) {
		if (from->key[i] != 0)
			insert(to, from->key[i]);
	}
}

bool skep_marks_has(struct skep_mark_set set, uint32_t number)
{
	return set.marks->key[place(set.marks, key_of(set, number))] != 0;
}

void skep_marks_add(struct skep_mark_set set, uint32_t number)
{
	insert(set.marks, key_of(set, number));
}

/* One walk around the table, from behind a free slot on. In a run of keys without a free slot, each behind the first that goes
 * is put in anew: all before it have their places already, so it comes to where it was or nearer to its home. To take out one key
 * after the other would move up the rest of the run each time, and numbers that are near each other make long runs. */
void skep_marks_clear(struct skep_mark_set set)
{
	struct skep_marks *marks = set.marks;
	uint32_t mask = marks->slots - 1, begin = 0, left = marks->used;
	while (marks->key[begin] != 0)
		begin++;
	bool moves = false;
	for (uint32_t at = (begin + 1) & mask; left > 0; at = (at + 1) & mask) {
		uint32_t key = marks->key[at];
		if (key == 0) {
			moves = false;
			continue;
		}
		left--;
		bool goes = (key - 1) % marks->sets == set.set;
		moves = moves || goes;
		if (!moves)
			continue;
		marks->key[at] = 0;
		if (goes)
			marks->used--;
		else
			marks->key[place(marks, key)] = key;
	}
}

/* ---- tally ------------------------------------------------------------------------------------------------------ */

size_t skep_tally_size(uint32_t capacity)
{
	return sizeof(struct skep_tally) + capacity * sizeof(uint32_t);
}

void skep_tally_add(struct skep_tally *tally, uint32_t number)
{
	assert(tally->count < tally->capacity);
	tally->number[tally->count++] = number;
}

/* Into the heap of the first `count`, from its root down. */
static void sift(uint32_t *heap, uint32_t count, uint32_t root)
{
	assert(root < count);
	uint32_t number = heap[root], child;
	while ((child = 2 * root + 1) < count) {
		child += child + 1 < count && heap[child + 1] > heap[child];
		if (heap[child] <= number)
			break;
		heap[root] = heap[child];
		root = child;
	}
	heap[root] = number;
}

/* A heap sort: no memory beside the numbers, and n log n whatever their order is. */
void skep_tally_sort(struct skep_tally *tally)
{
	for (uint32_t root = tally->count / 2; root-- > 0;)
		sift(tally->number, tally->count, root);
	for (uint32_t left = tally->count; left-- > 1;) {
		uint32_t largest = tally->number[0];
		tally->number[0] = tally->number[left];
		tally->number[left] = largest;
		sift(tally->number, left, 0);
	}
}

uint32_t skep_tally_part(const struct skep_tally *tally, uint32_t nth, uint32_t most, uint16_t offset[])
{
	assert(nth <= tally->count);
	uint32_t used = 0;
	for (; used < most && nth + used < tally->count; used++) {
		uint32_t beyond = tally->number[nth + used] - tally->number[nth];
		if (beyond > UINT16_MAX)
			break;
		assert(used == 0 || beyond > offset[used - 1]); /* else it was counted twice */
		offset[used] = (uint16_t)beyond;
	}
	return used;
}

void skep_tally_copy(struct skep_tally *to, const struct skep_tally *from)
{
	assert(to->capacity >= from->count);
	to->count = from->count;
	memcpy(to->number, from->number, from->count * sizeof *from->number);
}
