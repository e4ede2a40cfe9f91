/* SPDX-License-Identifier: Apache-2.0
 *
 * sharing.c - decides the rate of every flow.
 *
 * Max-min fairness by progressive filling: all rates grow together; the link that is full first holds its flows at that
 * level; the others grow on. A flow that has come to its cap stays there. In the end each flow is at its cap, or has one
 * link that holds it, and none is faster on that link.
 * Only what a change can reach is filled again: below the lowest change all levels are as before, and a link whose
 * flows keep their rates is not looked at. Solving walks up through the levels of the dirty links, lowest first:
 *   - a link that is full later than before lets its flows go at its old level: their other links are now dirty;
 *   - a link that is full sooner, or has flows that no link holds, holds them at its new level: where they were faster
 *     before, their other links are now dirty;
 *   - a link that is full at the same level as before makes no link dirty.
 * A link becomes dirty at the level that solving has reached or above it, so that lower levels are final.
 * With weights a flow's rate is its weight times the level, and a link is full where these add up to its capacity: all of the
 * above holds for levels, which are then rates per weight. Without them not a bit differs from weights of 1, and nothing is
 * multiplied.
 * A cap is like a link of the flow's own whose level is known beforehand, so it is never dirty and needs no link: a
 * flow that no link holds counts as one at its cap, which is INFINITY, still growing, for those without.
 *
 * What is kept true
 *   - Between solutions: a flow's rate is the level of the link that holds it (times its weight), else its cap; the flows of a
 *     link sum up to no more than its capacity, and to all of it if it holds any; a link that holds none has level INFINITY;
 *     all within TOLERANCE.
 *   - Each link that flows use has a list of them; one that comes and goes and has none is in the free list.
 */
#include "topologies/network/sharing.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "topologies/network/large_pages.h"

#define NONE SKEP_NO_LINK
#define FREE SKEP_CROSSINGS /* as holder: no link */
#define STRIDE 8u           /* of the crossings in a link's list */

/* Levels that differ by less, relatively, are one: rounding must not look like news that has to be passed on. */
#define TOLERANCE 1e-12

/* ---- the hash of links that come and go ----------------------------------------------------------------------- */

static uint32_t home_of(const struct skep_sharing *sharing, uint64_t key)
{
	return (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (sharing->table_size - 1);
}

static uint32_t table_find(const struct skep_sharing *sharing, uint64_t key)
{
	uint32_t slot = home_of(sharing, key);
	while (sharing->table[slot] != NONE && sharing->link[sharing->table[slot]].key != key)
		slot = (slot + 1) & (sharing->table_size - 1);
	return slot;
}

/* Linear probing without tombstones: entries behind the hole move up unless that puts them before their home. */
static void table_remove(struct skep_sharing *sharing, uint64_t key)
{
	uint32_t mask = sharing->table_size - 1;
	uint32_t hole = table_find(sharing, key);
	for (uint32_t slot = (hole + 1) & mask; sharing->table[slot] != NONE; slot = (slot + 1) & mask) {
		uint32_t home = home_of(sharing, sharing->link[sharing->table[slot]].key);
		if (((slot - home) & mask) >= ((slot - hole) & mask)) {
			sharing->table[hole] = sharing->table[slot];
			hole = slot;
		}
	}
	sharing->table[hole] = NONE;
}

static bool table_grow(struct skep_sharing *sharing, uint32_t size)
{
	uint32_t *old = sharing->table, old_size = sharing->table_size;
	uint32_t *table = malloc(size * sizeof *table);
	if (!table)
		return false;
	memset(table, 0xff, size * sizeof *table); /* NONE */
	sharing->table = table;
	sharing->table_size = size;
	for (uint32_t i = 0; i < old_size; i++)
		if (old[i] != NONE)
			table[table_find(sharing, sharing->link[old[i]].key)] = old[i];
	free(old);
	return true;
}

/* ---- room ----------------------------------------------------------------------------------------------------- */

static bool resize(void *pointer, uint32_t count, size_t size)
{
	void *old, *grown;
	memcpy(&old, pointer, sizeof old);
	grown = realloc(old, count * size);
	if (grown) {
		skep_large_pages(grown, count * size);
		memcpy(pointer, &grown, sizeof grown);
	}
	return grown;
}

static bool grow_links(struct skep_sharing *sharing, uint32_t capacity)
{
	if (!resize(&sharing->link, capacity, sizeof *sharing->link) ||
		!resize(&sharing->dirty, capacity, sizeof *sharing->dirty) ||
		!resize(&sharing->touched, capacity, sizeof *sharing->touched))
		return false;
	for (uint32_t l = capacity; l-- > sharing->link_capacity;) {
		sharing->link[l] = (struct skep_link){.level = INFINITY, .head = sharing->free_link, .position = NONE};
		sharing->free_link = l;
	}
	sharing->link_capacity = capacity;
	return true;
}

bool skep_sharing_init(struct skep_sharing *sharing, uint32_t fixed)
{
	*sharing = (struct skep_sharing){.fixed = fixed, .free_link = NONE};
	if (!grow_links(sharing, fixed))
		return false;
	for (uint32_t l = 0; l < fixed; l++)
		sharing->link[l].head = NONE;
	sharing->free_link = NONE;
	return true;
}

void skep_sharing_finish(struct skep_sharing *sharing)
{
	free(sharing->share);
	free(sharing->changed);
	free(sharing->weight);
	free(sharing->link);
	free(sharing->dirty);
	free(sharing->touched);
	free(sharing->table);
}

bool skep_sharing_reserve(struct skep_sharing *sharing, uint32_t flows)
{
	uint32_t size = 16;
	while (size < 4 * flows && size < UINT32_C(1) << 30)
		size *= 2;
	if (flows <= sharing->flow_capacity)
		return true;
	if (flows > SKEP_FLOWS_MAX || !resize(&sharing->share, flows, sizeof *sharing->share) ||
		!resize(&sharing->changed, flows, sizeof *sharing->changed) ||
		(sharing->weighted && !resize(&sharing->weight, flows, sizeof *sharing->weight)) ||
		!table_grow(sharing, size) || !grow_links(sharing, sharing->fixed + 2 * flows))
		return false;
	sharing->flow_capacity = flows;
	return true;
}

/* ---- who crosses what ----------------------------------------------------------------------------------------- */

uint32_t skep_sharing_link(struct skep_sharing *sharing, uint64_t key, double capacity)
{
	uint32_t slot = table_find(sharing, key);
	if (sharing->table[slot] != NONE)
		return sharing->table[slot];
	uint32_t l = sharing->free_link;
	assert(l != NONE);
	struct skep_link *link = &sharing->link[l];
	sharing->free_link = link->head;
	link->capacity = capacity; /* `touched` stays: under its former key it may still be in the list */
	link->key = key;
	link->head = NONE;
	sharing->table[slot] = l;
	return l;
}

static void touch(struct skep_sharing *sharing, uint32_t l)
{
	if (!sharing->link[l].touched)
		sharing->touched[sharing->touches++] = l;
	sharing->link[l].touched = true;
}

static struct skep_crossing *crossing_at(struct skep_sharing *sharing, uint32_t at)
{
	return &sharing->share[at / STRIDE].crossing[at % STRIDE];
}

static void change(struct skep_sharing *sharing, uint32_t flow, double rate, uint32_t bottleneck)
{
	struct skep_flow_rate *share = &sharing->share[flow];
	if (!share->changed)
		sharing->changed[sharing->changes++] = flow;
	share->changed = true;
	share->rate = rate;
	share->bottleneck = (uint8_t)bottleneck;
}

void skep_sharing_begin(struct skep_sharing *sharing, uint32_t flow, double cap)
{
	assert(cap > 0);
	struct skep_flow_rate *share = &sharing->share[flow];
	share->cap = cap;
	share->crossings = 0;
	share->changed = false;
	change(sharing, flow, cap, FREE);
}

void skep_sharing_weigh(struct skep_sharing *sharing, uint32_t flow, double weight)
{
	assert(sharing->weighted && weight > 0 && weight < INFINITY);
	sharing->weight[flow] = weight;
}

void skep_sharing_join(struct skep_sharing *sharing, uint32_t flow, uint32_t l)
{
	struct skep_link *link = &sharing->link[l];
	struct skep_flow_rate *share = &sharing->share[flow];
	assert(share->crossings < SKEP_CROSSINGS);
	uint32_t at = flow * STRIDE + share->crossings;
	share->crossing[share->crossings++] = (struct skep_crossing){.link = l, .next = link->head, .prev = NONE};
	if (link->head != NONE)
		crossing_at(sharing, link->head)->prev = at;
	link->head = at;
	link->flows++;
	touch(sharing, l);
}

static void leave_link(struct skep_sharing *sharing, const struct skep_crossing *crossing)
{
	uint32_t l = crossing->link, next = crossing->next, prev = crossing->prev;
	struct skep_link *link = &sharing->link[l];
	if (next != NONE)
		crossing_at(sharing, next)->prev = prev;
	if (prev != NONE)
		crossing_at(sharing, prev)->next = next;
	else
		link->head = next;
	if (--link->flows > 0) {
		if (link->level < INFINITY) /* else it had room for all, and has more now */
			touch(sharing, l);
		return;
	}
	link->level = INFINITY;
	if (l >= sharing->fixed) {
		table_remove(sharing, link->key);
		link->head = sharing->free_link;
		sharing->free_link = l;
	}
}

void skep_sharing_leave(struct skep_sharing *sharing, uint32_t flow)
{
	const struct skep_flow_rate *share = &sharing->share[flow];
	assert(!share->changed);
	for (uint32_t i = 0; i < share->crossings; i++)
		leave_link(sharing, &share->crossing[i]);
}

/* ---- the heap of dirty links ---------------------------------------------------------------------------------- */

static void dirty_put(struct skep_sharing *sharing, uint32_t at, struct skep_dirty_link entry)
{
	sharing->dirty[at] = entry;
	sharing->link[entry.link].position = at;
}

static void dirty_up(struct skep_sharing *sharing, uint32_t at, struct skep_dirty_link entry)
{
	while (at > 0 && entry.level < sharing->dirty[(at - 1) / 2].level) {
		dirty_put(sharing, at, sharing->dirty[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
	dirty_put(sharing, at, entry);
}

static void dirty_down(struct skep_sharing *sharing, uint32_t at, struct skep_dirty_link entry)
{
	for (;;) {
		uint32_t child = 2 * at + 1;
		if (child >= sharing->doubts)
			break;
		if (child + 1 < sharing->doubts && sharing->dirty[child + 1].level < sharing->dirty[child].level)
			child++;
		if (sharing->dirty[child].level >= entry.level)
			break;
		dirty_put(sharing, at, sharing->dirty[child]);
		at = child;
	}
	dirty_put(sharing, at, entry);
}

/* Link `l` has to be looked at, no later than at `level`. */
static void dirty_add(struct skep_sharing *sharing, uint32_t l, double level)
{
	struct skep_link *link = &sharing->link[l];
	link->stale = true;
	if (link->position == NONE)
		dirty_up(sharing, sharing->doubts++, (struct skep_dirty_link){level, l});
	else if (level < sharing->dirty[link->position].level)
		dirty_up(sharing, link->position, (struct skep_dirty_link){level, l});
}

static void dirty_pop(struct skep_sharing *sharing)
{
	sharing->link[sharing->dirty[0].link].position = NONE;
	struct skep_dirty_link last = sharing->dirty[--sharing->doubts];
	if (sharing->doubts > 0)
		dirty_down(sharing, 0, last);
}

/* ---- solving -------------------------------------------------------------------------------------------------- */

/* The only flow on each of its links gets the least capacity, or its cap. */
static bool solve_alone(struct skep_sharing *sharing, uint32_t flow)
{
	const struct skep_flow_rate *share = &sharing->share[flow];
	struct skep_link *least = NULL;
	uint32_t bottleneck = FREE;
	double rate = share->cap;
	for (uint32_t i = 0; i < share->crossings; i++) {
		struct skep_link *link = &sharing->link[share->crossing[i].link];
		if (link->flows > 1)
			return false;
		if (link->capacity < rate) {
			least = link;
			bottleneck = i;
			rate = link->capacity;
		}
	}
	for (uint32_t i = 0; i < share->crossings; i++)
		sharing->link[share->crossing[i].link].level = INFINITY;
	if (least)
		least->level = sharing->weight ? rate / sharing->weight[flow] : rate;
	change(sharing, flow, rate, bottleneck);
	return true;
}

/* What a flow without limit on the link of this crossing would get at most, as things stand. */
static double rate_elsewhere(const struct skep_flow_rate *share, uint32_t crossing)
{
	return share->bottleneck == crossing || share->bottleneck == FREE ? share->cap : share->rate;
}

static double weights_on(const struct skep_sharing *sharing, const struct skep_link *link, const double *weight)
{
	double sum = 0;
	if (!weight)
		return link->flows;
	for (uint32_t at = link->head; at != NONE; at = sharing->share[at / STRIDE].crossing[at % STRIDE].next)
		sum += weight[at / STRIDE];
	return sum;
}

/* The level at which the link is full, as things stand; INFINITY: it has room for all. Each pass takes the flows that
 * are held elsewhere at the level found so far out of the division; more of them can only raise it. */
static inline double level_by(
	const struct skep_sharing *sharing, const struct skep_link *link, const double *const weight)
{
	double open = weights_on(sharing, link, weight), before;
	double level = link->capacity / open;
	do {
		double rest = link->capacity, bound = level * (1 + TOLERANCE);
		before = open;
		open = 0;
		for (uint32_t at = link->head; at != NONE;) {
			const struct skep_flow_rate *share = &sharing->share[at / STRIDE];
			double rate = rate_elsewhere(share, at % STRIDE), own = weight ? weight[at / STRIDE] : 1;
			if (rate <= bound * own)
				rest -= rate;
			else
				open += own;
			at = share->crossing[at % STRIDE].next;
		}
		if (!(open > 0))
			return INFINITY;
		level = rest / open;
	} while (open < before);
	return level;
}

static double level_of(const struct skep_sharing *sharing, const struct skep_link *link)
{
	return sharing->weight ? level_by(sharing, link, sharing->weight) : level_by(sharing, link, NULL);
}

/* From its old level on the link's flows may grow, so that their other links may be full sooner. */
static void let_go(struct skep_sharing *sharing, struct skep_link *link)
{
	for (uint32_t at = link->head; at != NONE;) {
		const struct skep_flow_rate *share = &sharing->share[at / STRIDE];
		uint32_t here = at % STRIDE, flow = at / STRIDE;
		at = share->crossing[here].next;
		if (share->bottleneck != here)
			continue;
		change(sharing, flow, share->cap, FREE);
		for (uint32_t i = 0; i < share->crossings; i++)
			if (i != here)
				dirty_add(sharing, share->crossing[i].link, link->level);
	}
	link->level = INFINITY;
}

/* A flow gets less than before, or is held again: its other links may be full later. */
static void hold_flow(struct skep_sharing *sharing, uint32_t flow, uint32_t here, double rate)
{
	const struct skep_flow_rate *share = &sharing->share[flow];
	change(sharing, flow, rate, here);
	for (uint32_t i = 0; i < share->crossings; i++) {
		struct skep_link *link = &sharing->link[share->crossing[i].link];
		if (i == here)
			continue;
		if (link->position != NONE)
			link->stale = true;
		else if (link->level < INFINITY)
			dirty_add(sharing, share->crossing[i].link, link->level);
	}
}

/* The link is full at `level`: it holds all flows that would be faster. */
static inline void hold_by(
	struct skep_sharing *sharing, struct skep_link *link, double level, const double *const weight)
{
	bool moved = level != link->level;
	link->level = level;
	for (uint32_t at = link->head; at != NONE;) {
		const struct skep_flow_rate *share = &sharing->share[at / STRIDE];
		uint32_t here = at % STRIDE;
		double rate = weight ? level * weight[at / STRIDE] : level;
		if (share->bottleneck == here ? moved : rate_elsewhere(share, here) > rate * (1 + TOLERANCE))
			hold_flow(sharing, at / STRIDE, here, rate);
		at = share->crossing[here].next;
	}
}

static void hold(struct skep_sharing *sharing, struct skep_link *link, double level)
{
	if (sharing->weight)
		hold_by(sharing, link, level, sharing->weight);
	else
		hold_by(sharing, link, level, NULL);
}

/* Looks at the link whose doubt is lowest. */
static void settle_next(struct skep_sharing *sharing)
{
	uint32_t l = sharing->dirty[0].link;
	struct skep_link *link = &sharing->link[l];
	if (link->stale)
		link->next_level = level_of(sharing, link);
	link->stale = false;
	double level = link->level < link->next_level ? link->level : link->next_level;
	if (level > sharing->dirty[0].level && level < INFINITY) { /* nothing happens to it before that */
		dirty_down(sharing, 0, (struct skep_dirty_link){level, l});
	} else if (link->level < INFINITY && link->next_level > link->level * (1 + TOLERANCE)) {
		let_go(sharing, link);
		dirty_down(sharing, link->position, (struct skep_dirty_link){link->next_level, l});
	} else {
		dirty_pop(sharing);
		if (link->next_level >= link->level * (1 - TOLERANCE))
			level = link->level;
		if (level < INFINITY)
			hold(sharing, link, level);
	}
}

void skep_sharing_solve(struct skep_sharing *sharing)
{
	for (uint32_t i = 0; i < sharing->touches; i++) {
		struct skep_link *link = &sharing->link[sharing->touched[i]];
		link->touched = false;
		if (link->flows > 1 || (link->flows == 1 && !solve_alone(sharing, link->head / STRIDE)))
			dirty_add(sharing, sharing->touched[i], 0);
	}
	sharing->touches = 0;
	while (sharing->doubts > 0)
		settle_next(sharing);
}

void skep_sharing_noted(struct skep_sharing *sharing)
{
	while (sharing->changes > 0)
		sharing->share[sharing->changed[--sharing->changes]].changed = false;
}
