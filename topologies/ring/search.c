/* SPDX-License-Identifier: Apache-2.0
 *
 * search.c - a good ring of any number of members, by local search.
 *
 * From the order that was given, and from one in which each member is followed by the nearest that is left, two kinds of moves
 * are made as long as one helps: up to three members in a row go elsewhere (or-opt), or a part of the ring is turned round
 * (2-opt), whose hops then go the other way. A move helps if no hop becomes slower than the slowest one and fewer are as slow,
 * or as many and the sum of all is smaller; so it comes to an end. Small rings are then cut in four and put together in another
 * order (double bridge), and moved again. Draws begin from the number of members, so the order depends on nothing but links.
 *
 * Where hops share lines, moves of a small ring are judged by what all of its hops then take. In a large one they are judged by
 * what hops take alone, of which a small sum keeps the members of a site together, so that few hops cross its lines; which of the
 * orders is best is told with the crossings.
 */
#include "topologies/ring/hops.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/random.h"

#define SEGMENT_MAX 3u
#define LOOKED_MAX                                                                                                     \
	30000000u /* hops that are looked at from each beginning, half a second; then what is found so far counts */
#define JUDGED_MAX 24u  /* members of a ring whose moves are judged by all of its hops */
#define KICKED_MAX 256u /* members of a small ring */
#define KICKS_MAX 200u
#define KICKS_LOOKED_MAX 4000000u

struct search {
	const struct hops *h;
	uint32_t n;
	bool judges; /* each move by all hops */
	uint32_t *order, *other, *best;
	/* The order's hops as they are and the other way round: sums of those before rank k, [2n + 1], of two rounds. */
	uint64_t *there_ns, *back_ns;
	struct value now;
	uint64_t looked, most; /* hops */
};

static uint32_t at(const struct search *s, uint32_t rank)
{
	return s->order[rank < s->n ? rank : rank - s->n];
}

/* What takes the place of what. */
struct change {
	uint64_t removed_ns, added_ns, most_ns;
	uint32_t removed_worsts, added_worsts;
};

static void remove_hop(const struct search *s, struct change *c, uint32_t from, uint32_t to)
{
	uint64_t ns = hop_ns(s->h, from, to);
	c->removed_ns += ns;
	c->removed_worsts += ns == s->now.worst_ns;
}

static void add_hop(const struct search *s, struct change *c, uint32_t from, uint32_t to)
{
	uint64_t ns = hop_ns(s->h, from, to);
	c->added_ns += ns;
	c->most_ns = ns > c->most_ns ? ns : c->most_ns;
	c->added_worsts += ns == s->now.worst_ns;
}

/* What a hop takes alone is the least that it may take, so of a move that is judged only this is told here. */
static bool helps(const struct search *s, const struct change *c)
{
	if (c->most_ns > s->now.worst_ns)
		return false;
	if (s->judges)
		return true;
	if (c->added_worsts > c->removed_worsts)
		return false;
	return c->added_worsts < c->removed_worsts || c->added_ns < c->removed_ns;
}

static bool improves(const struct value *a, const struct value *b)
{
	if (a->worst_ns != b->worst_ns)
		return a->worst_ns < b->worst_ns;
	return a->worsts != b->worsts ? a->worsts < b->worsts : a->sum_ns < b->sum_ns;
}

/* After a move: what is known of the order. */
static void look(struct search *s)
{
	s->there_ns[0] = s->back_ns[0] = 0;
	s->now = (struct value){0};
	for (uint32_t rank = 0; rank < 2 * s->n; rank++) {
		uint32_t from = at(s, rank), to = rank + 1 < 2 * s->n ? at(s, rank + 1) : s->order[0];
		uint64_t ns = hop_ns(s->h, from, to);
		s->there_ns[rank + 1] = s->there_ns[rank] + ns;
		s->back_ns[rank + 1] = s->back_ns[rank] + hop_ns(s->h, to, from);
		if (rank >= s->n)
			continue;
		s->now.worsts = ns > s->now.worst_ns ? 1 : s->now.worsts + (ns == s->now.worst_ns);
		s->now.worst_ns = ns > s->now.worst_ns ? ns : s->now.worst_ns;
		s->now.sum_ns += ns;
	}
	if (s->judges)
		s->now = skep_hops_value(s->h, s->order, s->n, true);
}

/* Takes the order in `other` if it is better, or in any case where moves are not judged. */
static bool take(struct search *s)
{
	if (s->judges) {
		struct value value = skep_hops_value(s->h, s->other, s->n, true);
		if (!improves(&value, &s->now))
			return false;
	}
	uint32_t *other = s->other;
	s->other = s->order;
	s->order = other;
	look(s);
	return true;
}

/* ---- moves ------------------------------------------------------------------------------------------------------------ */

/* The members of ranks first .. first + length - 1 go behind that of rank first + far, length <= far <= n - 2. */
static struct change moved(const struct search *s, uint32_t first, uint32_t length, uint32_t far)
{
	uint32_t before = at(s, first + s->n - 1), head = at(s, first), tail = at(s, first + length - 1);
	uint32_t next = at(s, first + length), left = at(s, first + far), right = at(s, first + far + 1);
	struct change c = {0};
	remove_hop(s, &c, before, head);
	remove_hop(s, &c, tail, next);
	remove_hop(s, &c, left, right);
	add_hop(s, &c, before, next);
	add_hop(s, &c, left, head);
	add_hop(s, &c, tail, right);
	return c;
}

static bool move_segment(struct search *s, uint32_t first, uint32_t length, uint32_t far)
{
	assert(length <= far && far + 2 <= s->n);
	struct change c = moved(s, first, length, far);
	if (!helps(s, &c))
		return false;
	for (uint32_t k = 0; k < s->n; k++) {
		uint32_t from = k <= far - length ? k + length : k <= far ? k - (far - length) - 1 : k;
		s->other[k] = at(s, first + from);
	}
	return take(s);
}

/* The members of `count` ranks behind rank `before` follow each other the other way round. The hops between them are looked at
 * one by one only if the sum falls or one of the slowest hops goes. */
static struct change turned(struct search *s, uint32_t before, uint32_t count)
{
	uint32_t first = at(s, before + 1), last = at(s, before + count);
	struct change c = {0};
	remove_hop(s, &c, at(s, before), first);
	remove_hop(s, &c, last, at(s, before + count + 1));
	add_hop(s, &c, at(s, before), last);
	add_hop(s, &c, first, at(s, before + count + 1));
	c.removed_ns += s->there_ns[before + count] - s->there_ns[before + 1];
	c.added_ns += s->back_ns[before + count] - s->back_ns[before + 1];
	bool may = s->judges || c.removed_worsts > 0 || c.added_ns < c.removed_ns;
	c.most_ns = may ? c.most_ns : UINT64_MAX;
	for (uint32_t k = 1; k < count && c.most_ns <= s->now.worst_ns; k++, s->looked++) {
		uint64_t there = s->there_ns[before + k + 1] - s->there_ns[before + k];
		uint64_t back = s->back_ns[before + k + 1] - s->back_ns[before + k];
		c.removed_worsts += there == s->now.worst_ns;
		c.added_worsts += back == s->now.worst_ns;
		c.most_ns = back > c.most_ns ? back : c.most_ns;
	}
	return c;
}

static bool turn(struct search *s, uint32_t before, uint32_t count)
{
	assert(count < s->n);
	struct change c = turned(s, before, count);
	if (!helps(s, &c))
		return false;
	for (uint32_t k = 0; k < s->n; k++)
		s->other[k] = at(s, before + (k >= 1 && k <= count ? count + 1 - k : k));
	return take(s);
}

static bool pass(struct search *s)
{
	bool any = false;
	for (uint32_t first = 0; first < s->n && s->looked < s->most; first++, s->looked += SEGMENT_MAX * s->n)
		for (uint32_t length = 1; length <= SEGMENT_MAX; length++)
			for (uint32_t far = length; far + 2 <= s->n; far++)
				any |= move_segment(s, first, length, far);
	for (uint32_t before = 0; before < s->n && s->looked < s->most; before++, s->looked += s->n)
		for (uint32_t count = 2; count < s->n; count++)
			any |= turn(s, before, count);
	return any;
}

static void descend(struct search *s)
{
	look(s);
	while (s->looked < s->most && pass(s))
		continue;
}

/* ---- where it begins ------------------------------------------------------------------------------------------------- */

/* From member 0 on, each is followed by the nearest one left, of equal ones that with the lowest number. */
static void nearest(struct search *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		s->order[i] = i;
	for (uint32_t rank = 1; rank < s->n; rank++) {
		uint32_t best = rank, from = s->order[rank - 1];
		for (uint32_t i = rank + 1; i < s->n; i++) {
			uint64_t ns = hop_ns(s->h, from, s->order[i]), least = hop_ns(s->h, from, s->order[best]);
			if (ns < least || (ns == least && s->order[i] < s->order[best]))
				best = i;
		}
		uint32_t member = s->order[best];
		s->order[best] = s->order[rank];
		s->order[rank] = member;
	}
}

/* A double bridge: parts A B C D become A C B D. */
static void kick(struct search *s, uint64_t *random)
{
	uint32_t a = 1 + skep_random_below(random, s->n - 3);
	uint32_t b = a + 1 + skep_random_below(random, s->n - a - 2);
	uint32_t c = b + 1 + skep_random_below(random, s->n - b - 1), k = 0;
	for (uint32_t i = 0; i < a; i++)
		s->order[k++] = s->best[i];
	for (uint32_t i = b; i < c; i++)
		s->order[k++] = s->best[i];
	for (uint32_t i = a; i < b; i++)
		s->order[k++] = s->best[i];
	for (uint32_t i = c; i < s->n; i++)
		s->order[k++] = s->best[i];
}

static void keep_if_better(struct search *s, struct value *best)
{
	struct value value = skep_hops_value(s->h, s->order, s->n, true);
	if (!better(&value, best))
		return;
	*best = value;
	memcpy(s->best, s->order, s->n * sizeof *s->best);
}

static void search(struct search *s)
{
	uint64_t random = skep_mix(s->n);
	struct value best = skep_hops_value(s->h, s->best, s->n, true);
	s->most = LOOKED_MAX;
	memcpy(s->order, s->best, s->n * sizeof *s->order);
	descend(s);
	keep_if_better(s, &best);
	s->looked = 0;
	nearest(s);
	descend(s);
	keep_if_better(s, &best);
	s->looked = 0;
	s->most = KICKS_LOOKED_MAX;
	for (uint32_t i = 0; i < KICKS_MAX && s->looked < s->most && s->n >= 4 && s->n <= KICKED_MAX; i++) {
		kick(s, &random);
		descend(s);
		keep_if_better(s, &best);
	}
}

bool skep_hops_search(const struct hops *h, uint32_t *order)
{
	assert(h->size > 2);
	uint32_t n = h->size;
	struct search s = {.h = h, .n = n, .judges = h->shares && n <= JUDGED_MAX, .best = order};
	s.order = malloc(n * sizeof *s.order);
	s.other = malloc(n * sizeof *s.other);
	s.there_ns = malloc((2 * (size_t)n + 1) * sizeof *s.there_ns);
	s.back_ns = malloc((2 * (size_t)n + 1) * sizeof *s.back_ns);
	bool made = s.order && s.other && s.there_ns && s.back_ns;
	if (made)
		search(&s);
	free(s.order);
	free(s.other);
	free(s.there_ns);
	free(s.back_ns);
	return made;
}
