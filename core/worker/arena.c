/* SPDX-License-Identifier: Apache-2.0
 *
 * arena.c - how much memory a worker has for what grows with what it meets: marks of microbatches, the tally, hops that come
 * early. At first there is room for what a worker meets in a round in which each of a stage does its part, or for all of a
 * small one. When one more step might not fit, the machine wants to move to where there is twice the room.
 *
 * This part lies last in the machine, so that all else stays where it is.
 *
 * Kept true: between two steps there is room for what any one step may add, `headroom` marks, one number of the tally and one
 * early hop. What is kept early is bounded by skep_scheme_early_max(), and with SKEP_COLLECTIVE_FUSED nothing comes early but
 * what is told of a tied table.
 */
#include <assert.h>
#include <string.h>

#include "core/worker/worker.h"

static uint32_t smaller(uint64_t a, uint64_t b)
{
	return (uint32_t)(a < b ? a : b);
}

static size_t tallies_bytes(const struct worker *w)
{
	return w->tallies * skep_align(skep_tally_size(w->tally_capacity));
}

/* Returns the size of the machine. */
static size_t place_areas(struct worker *w)
{
	w->marks_at = w->met_at;
	w->tally_at = w->marks_at + skep_align(skep_marks_size(w->mark_slots));
	w->early_at = w->tally_at + tallies_bytes(w);
	return w->early_at + skep_align(w->early_capacity * sizeof(struct early_chunk));
}

size_t skep_arena_lay_out(struct worker *w, const struct skep_plan *plan, const struct skep_methods *how, size_t at)
{
	w->gathers = plan->reduction.gather;
	w->sharded = plan->sharded;
	w->beside = skep_plan_steps_beside(plan);
	w->trained = skep_round_capacity(plan);
	w->numbers = skep_plan_numbers(plan) * skep_plan_model_chunks(plan);
	w->headroom = skep_plan_credit(plan, skep_plan_in_flight_most(plan));
	w->early_max = skep_scheme_early_max(plan, w->members_max);
	for (uint32_t i = 0; i < how->features; i++)
		w->early_max += how->feature[i]->early;
	uint64_t mean = (uint64_t)w->numbers * plan->stages / plan->workers + 1;
	uint32_t first = smaller(mean > SKEP_MET_FIRST ? mean : SKEP_MET_FIRST, w->numbers);
	w->mark_slots = skep_marks_slots(first + w->headroom);
	w->tally_capacity = first;
	w->early_capacity = smaller(EARLY_FIRST, w->early_max);
	w->met_at = at;
	return place_areas(w);
}

static void begin_areas(struct worker *w)
{
	skep_marks_init(skep_at(w, w->marks_at), w->mark_slots, 2 * MARKED_ROUNDS);
	for (uint32_t round = 0; round < w->accumulators; round++)
		*worker_tally(w, round) = (struct skep_tally){.capacity = w->tally_capacity};
}

void skep_arena_init(struct worker *w)
{
	begin_areas(w);
}

static const void *at_in(const struct worker *w, size_t offset)
{
	return (const char *)w + offset;
}

static const struct skep_marks *marks_of(const struct worker *w)
{
	return at_in(w, w->marks_at);
}

struct shortage {
	bool marks, tally, early;
};

static struct shortage shortage_of(const struct worker *w)
{
	assert(w->early <= w->early_capacity);
	assert(w->state != WORKER_STOPPED);
	uint32_t counted = 0;
	for (uint32_t round = 0; round < w->accumulators; round++)
		counted = w->counted[round] > counted ? w->counted[round] : counted;
	return (struct shortage){.marks = !skep_marks_room(marks_of(w), w->headroom),
		.tally = counted == w->tally_capacity && counted < w->numbers,
		.early = w->early == w->early_capacity && w->early_capacity < w->early_max};
}

/* Twice as much of what is short; returns the size of the machine. */
static size_t enlarge(struct worker *w, struct shortage shortage)
{
	assert(w->early <= w->early_capacity);
	if (shortage.marks)
		w->mark_slots *= 2;
	if (shortage.tally)
		w->tally_capacity = smaller(2 * (uint64_t)w->tally_capacity, w->numbers);
	if (shortage.early)
		w->early_capacity = smaller(2 * (uint64_t)w->early_capacity, w->early_max);
	return place_areas(w);
}

size_t skep_arena_wanted(const struct worker *w)
{
	assert(w->early <= w->early_capacity);
	assert(w->state != WORKER_STOPPED);
	struct shortage shortage = shortage_of(w);
	if (!shortage.marks && !shortage.tally && !shortage.early)
		return 0;
	struct worker larger = *w;
	return enlarge(&larger, shortage);
}

void skep_worker_relocate(void *mem, const struct skep_node *node)
{
	const struct worker *old = (const struct worker *)node;
	struct worker *w = mem;
	memcpy(w, old, old->met_at);
	enlarge(w, shortage_of(old));
	begin_areas(w);
	skep_marks_copy(skep_at(w, w->marks_at), marks_of(old));
	for (uint32_t round = 0; round < w->accumulators; round++)
		skep_tally_copy(worker_tally(w, round), at_in(old, worker_tally_at(old, round)));
	memcpy(worker_early(w), at_in(old, old->early_at), old->early * sizeof(struct early_chunk));
	w->node.wanted = 0;
}
