/* SPDX-License-Identifier: Apache-2.0
 *
 * marks.h - which microbatches have been at a worker: sets of numbers, as big as what was met.
 *
 * A round of a large swarm has many numbers and a worker meets few of them, so what it remembers grows with those that
 * it has met and not with the round. Nothing is ever dropped for want of room: the caller that adds says beforehand how
 * many numbers one step may bring, and asks for more memory after a step that has left less (skep_node_wanted()). All
 * workers of a stage together meet each number once, so all marks together are as many as microbatches times stages,
 * however few workers are left to meet them.
 *
 * skep_marks   several sets in one table: open addressing with linear probing, at most half full. A key is number * sets + set
 *              + 1, and 0 is a free slot. Kept true: between a key's home and its place no slot is free. To clear a set
 *              moves up what comes after it, so no slot is lost to what was taken out.
 * skep_tally   numbers in the order in which they came, to be sorted when they are told. It is never searched.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct skep_marks {
	uint32_t slots; /* a power of two */
	uint32_t used, sets;
	uint32_t key[]; /* [slots] */
};

struct skep_mark_set { /* one of the sets of a table */
	struct skep_marks *marks;
	uint32_t set;
};

uint32_t skep_marks_slots(uint32_t numbers); /* for so many, in all sets together */
size_t skep_marks_size(uint32_t slots);
void skep_marks_init(struct skep_marks *marks, uint32_t slots, uint32_t sets);
bool skep_marks_room(const struct skep_marks *marks, uint32_t more);        /* for so many more */
void skep_marks_copy(struct skep_marks *to, const struct skep_marks *from); /* `to`: initialised, empty, with room */

bool skep_marks_has(struct skep_mark_set set, uint32_t number);
void skep_marks_add(struct skep_mark_set set, uint32_t number); /* again: nothing changes */
void skep_marks_clear(struct skep_mark_set set);                /* the other sets of the table stay */

struct skep_tally {
	uint32_t capacity, count;
	uint32_t number[]; /* [count] */
};

size_t skep_tally_size(uint32_t capacity);
void skep_tally_add(struct skep_tally *tally, uint32_t number); /* for whom there must be room */
void skep_tally_sort(struct skep_tally *tally);                 /* ascending */
/* The next part to tell, from the nth number on (ascending): as offsets from it, at most `most`. Returns how many they are. */
uint32_t skep_tally_part(const struct skep_tally *tally, uint32_t nth, uint32_t most, uint16_t offset[]);
void skep_tally_copy(struct skep_tally *to, const struct skep_tally *from);
