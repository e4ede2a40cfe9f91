/* SPDX-License-Identifier: Apache-2.0
 *
 * ring_time.c - simulates the segments of n chunks on their ways through the n links of a ring, apart from the rest of the
 * run: see ring_time.h.
 *
 * A link moves as many segments at a time as it has streams, and the others wait in the order in which they came, as messages do
 * in the network model. Those that move share it evenly. All segments are equal here, so they leave a link in the order in which
 * they came, and `work`, the part of a segment that each moving one has been given so far, says when. At the far end of a link a
 * rank takes them one by one.
 *
 * The rate of a stream has a limit of its own as well (cap_ns), so several together may be faster than one segment after the
 * other. Latency is drawn for each segment on each link, as for each message.
 *
 * A link hears from the link before it alone, and of that it is known before which time nothing can come from there. So there is
 * no common queue of events: one link after the other does what it can until then (Chandy and Misra 1979, on a ring), and a hop
 * costs the same however long the ring is.
 *
 * Why not a formula: where links differ, segments bunch up before the thin ones and reach the next of these together,
 * and the sum lies anywhere between the largest of the terms (a pipeline that is always full) and their sum (one
 * bunch). Where all links are nearly equal segments meet none but those of their own chunk, and there is a formula.
 */
#include "sim/ring_time.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "core/collective/ring.h"

#define NEARLY 0.01
#define NONE UINT32_MAX

struct segment { /* is in at most one list */
	double come_ns;
	double end; /* of one that moves: it leaves when the link's work has come to this */
	uint32_t hop, next;
};

struct list { /* of segments, by their numbers */
	uint32_t first, last;
};

struct link {
	double work, since_ns; /* segments' worth given to each one that moves, as of then */
	double leave_ns;       /* the first one leaves then, unless one more comes before; INFINITY: the link is idle */
	double safe_ns;        /* what will come and has not been sent yet comes no sooner */
	double free_ns;        /* the receiver is busy until then */
	double sender_ns;      /* and the sender, with what has gone */
	double latest_ns;      /* the latest segment comes then */
	uint64_t random;
	struct list coming;  /* sent; by the time at which they come */
	struct list present; /* these have come: the first `moving` move */
	uint32_t moving;
	uint32_t waiting; /* segment: the first one that is present and does not move; NONE: all do */
	bool overtakes;   /* a segment may come before one that was sent sooner */
	bool steady;      /* its latency is always the same */
};

struct ring {
	const struct skep_ring_link *of;
	uint32_t size, segments; /* segments: of each chunk */
	uint32_t under_way;      /* segments that have hops left */
	struct link *link;       /* [size] */
	struct segment *segment; /* [size * segments] segment j of chunk c is c * segments + j */
	double *end_ns;          /* [size] */
};

/* ---- lists ---------------------------------------------------------------------------------------------------- */

static void append(struct ring *ring, struct list *list, uint32_t c)
{
	ring->segment[c].next = NONE;
	if (list->first == NONE)
		list->first = c;
	else
		ring->segment[list->last].next = c;
	list->last = c;
}

static uint32_t take_first(const struct ring *ring, struct list *list)
{
	assert(list->first != NONE);
	uint32_t c = list->first;
	list->first = ring->segment[c].next;
	return c;
}

/* Behind all that come no later. */
static void insert(struct ring *ring, struct list *list, uint32_t c)
{
	double come_ns = ring->segment[c].come_ns;
	if (list->first == NONE || ring->segment[list->last].come_ns <= come_ns) {
		append(ring, list, c);
		return;
	}
	uint32_t *at = &list->first;
	while (ring->segment[*at].come_ns <= come_ns)
		at = &ring->segment[*at].next;
	ring->segment[c].next = *at;
	*at = c;
}

/* ---- a link --------------------------------------------------------------------------------------------------- */

static uint32_t streams_of(const struct skep_ring_link *of)
{
	return of->streams > 0 ? of->streams : 1;
}

/* From a segment's worth to the next, for each of so many that move. */
static double pace_ns(const struct skep_ring_link *of, uint32_t moving)
{
	assert(moving > 0);
	return fmax(of->segment_ns * moving, of->cap_ns);
}

static void bring_up_to(struct ring *ring, uint32_t l, double now_ns)
{
	struct link *link = &ring->link[l];
	if (link->moving > 0)
		link->work += (now_ns - link->since_ns) / pace_ns(&ring->of[l], link->moving);
	link->since_ns = now_ns;
}

static void expect(struct ring *ring, uint32_t l)
{
	assert(l < ring->size);
	struct link *link = &ring->link[l];
	link->leave_ns = INFINITY;
	if (link->moving == 0)
		return;
	double left = fmax(ring->segment[link->present.first].end - link->work, 0);
	link->leave_ns = link->since_ns + left * pace_ns(&ring->of[l], link->moving);
}

static void come(struct ring *ring, uint32_t l)
{
	struct link *link = &ring->link[l];
	uint32_t c = take_first(ring, &link->coming);
	append(ring, &link->present, c);
	if (link->moving == streams_of(&ring->of[l])) {
		link->waiting = link->waiting == NONE ? c : link->waiting;
		return;
	}
	assert(link->waiting == NONE);
	bring_up_to(ring, l, ring->segment[c].come_ns);
	ring->segment[c].end = link->work + 1;
	link->moving++;
	expect(ring, l);
}

static double draw_latency_ns(const struct skep_ring_link *of, struct link *link)
{
	if (link->steady)
		return of->latency_ns;
	double mean_s = 1e-9 * of->latency_ns - of->link_profile->jitter.mean_s; /* what the draw is around */
	return round(1e9 * skep_jitter_draw_s(of->topology, &of->link_profile->jitter, mean_s, &link->random));
}

/* Its sender has the segment ready for link l. */
static void depart(struct ring *ring, uint32_t l, uint32_t c, double ready_ns)
{
	assert(ring->segment[c].hop <= skep_ring_hops(ring->size));
	struct link *link = &ring->link[l];
	link->sender_ns = fmax(ready_ns, link->sender_ns) + ring->of[l].overhead_ns;
	double come_ns = link->sender_ns + draw_latency_ns(&ring->of[l], link);
	if (!link->overtakes)
		come_ns = fmax(come_ns, link->latest_ns);
	link->latest_ns = come_ns;
	ring->segment[c].come_ns = come_ns;
	insert(ring, &link->coming, c);
}

static double receive_ns(const struct ring *ring, uint32_t l, uint32_t hop)
{
	assert(hop >= 1 && hop <= skep_ring_hops(ring->size));
	if (!skep_ring_adds(ring->size, hop))
		return ring->of[l].store_ns;
	return skep_ring_stores(ring->size, hop) ? ring->of[l].add_store_ns : ring->of[l].add_ns;
}

static uint32_t next_of(const struct ring *ring, uint32_t l)
{
	return l + 1 < ring->size ? l + 1 : 0;
}

static void leave(struct ring *ring, uint32_t l)
{
	struct link *link = &ring->link[l];
	uint32_t c = take_first(ring, &link->present);
	double now_ns = link->leave_ns;
	link->since_ns = now_ns;
	link->work = ring->segment[c].end;
	if (link->waiting != NONE) {
		ring->segment[link->waiting].end = link->work + 1;
		link->waiting = ring->segment[link->waiting].next;
	} else {
		link->moving--;
	}
	expect(ring, l);
	link->free_ns = fmax(link->free_ns, now_ns) + receive_ns(ring, l, ring->segment[c].hop);
	uint32_t rank = next_of(ring, l);
	if (skep_ring_stores(ring->size, ring->segment[c].hop))
		ring->end_ns[rank] = link->free_ns;
	if (++ring->segment[c].hop <= skep_ring_hops(ring->size))
		depart(ring, rank, c, link->free_ns);
	else
		ring->under_way--;
}

/* ---- one link after the other --------------------------------------------------------------------------------- */

static double next_come_ns(const struct ring *ring, const struct link *link)
{
	return link->coming.first != NONE ? ring->segment[link->coming.first].come_ns : INFINITY;
}

/* Everything on link l that happens no later than what may still be sent to it. False: nothing does. */
static bool go_on(struct ring *ring, uint32_t l)
{
	struct link *link = &ring->link[l];
	bool any = false;
	for (;; any = true) {
		double come_ns = next_come_ns(ring, link);
		if (fmin(link->leave_ns, come_ns) > link->safe_ns || ring->under_way == 0)
			return any;
		if (link->leave_ns <= come_ns)
			leave(ring, l);
		else
			come(ring, l);
	}
}

/* What has not left link l yet comes to the next one no sooner than this. */
static void bound_next(struct ring *ring, uint32_t l)
{
	const struct skep_ring_link *of = &ring->of[l];
	const struct link *link = &ring->link[l];
	uint32_t next = next_of(ring, l);
	struct link *to = &ring->link[next];
	double leave_ns = link->leave_ns;
	if (link->moving == 0)
		leave_ns = fmin(next_come_ns(ring, link), link->safe_ns) + pace_ns(of, 1);
	double ready_ns = fmax(link->free_ns, leave_ns) + fmin(fmin(of->add_ns, of->store_ns), of->add_store_ns);
	double come_ns = fmax(ready_ns, to->sender_ns) + ring->of[next].overhead_ns;
	come_ns += to->steady ? ring->of[next].latency_ns : 0;
	to->safe_ns = fmax(to->safe_ns, to->overtakes ? come_ns : fmax(come_ns, to->latest_ns));
}

/* Whatever happens first has nothing before it. */
static void let_first_happen(struct ring *ring)
{
	double first_ns = INFINITY;
	for (uint32_t l = 0; l < ring->size; l++)
		first_ns = fmin(first_ns, fmin(ring->link[l].leave_ns, next_come_ns(ring, &ring->link[l])));
	assert(first_ns < INFINITY);
	for (uint32_t l = 0; l < ring->size; l++)
		ring->link[l].safe_ns = fmax(ring->link[l].safe_ns, first_ns);
}

static void begin(struct ring *ring)
{
	for (uint32_t l = 0; l < ring->size; l++) {
		const struct skep_link_profile *profile = ring->of[l].link_profile;
		ring->link[l] = (struct link){.leave_ns = INFINITY,
			.free_ns = ring->of[next_of(ring, l)].ready_ns,
			.random = ring->of[l].random,
			.coming = {NONE, NONE},
			.present = {NONE, NONE},
			.waiting = NONE,
			.overtakes = profile && profile->overtake,
			.steady = !profile || profile->jitter.kind == SKEP_JITTER_NONE};
		for (uint32_t j = 0; j < ring->segments; j++) {
			uint32_t c = l * ring->segments + j;
			ring->segment[c].hop = 1;
			depart(ring, l, c, ring->of[l].ready_ns + (j + 1) * ring->of[l].take_ns);
		}
	}
	ring->under_way = ring->size * ring->segments;
}

static void turn(struct ring *ring)
{
	begin(ring);
	while (ring->under_way > 0) {
		bool any = false;
		for (uint32_t l = 0; l < ring->size; l++) {
			any = go_on(ring, l) || any;
			bound_next(ring, l);
		}
		if (!any && ring->under_way > 0)
			let_first_happen(ring);
	}
}

/* ---- the public face ------------------------------------------------------------------------------------------ */

/* Of one hop of one segment; ADD_STORE happens once in a chunk's way. */
static double hop_ns(const struct skep_ring_link *link)
{
	return fmax(link->segment_ns, link->cap_ns) + link->overhead_ns + link->latency_ns +
	       (link->add_ns + link->store_ns) / 2;
}

/* How long k segments of a chunk keep what is busiest with them on this link, before those of the next hop can. */
static double chunk_ns(const struct skep_ring_link *link, uint32_t segments)
{
	double move_ns = fmax(link->segment_ns, link->cap_ns / (link->streams > 0 ? link->streams : 1));
	return segments * fmax(fmax(move_ns, link->overhead_ns), fmax(link->add_ns, link->store_ns));
}

/* If no link differs much from the others, no rank is late and no latency is drawn, no segment meets one of another chunk: the
 * first segment of a chunk goes on when it has come and the last one of the chunk before has gone. The rest follow. */
static bool formula(const struct skep_ring_link *link, uint32_t size, uint32_t segments, double *ret_ns)
{
	double least = INFINITY, most = 0, way = 0, late = 0;
	bool steady = true;
	for (uint32_t l = 0; l < size; l++) {
		double ns = hop_ns(&link[l]), busy = chunk_ns(&link[l], segments);
		least = fmin(least, ns);
		most = fmax(most, ns);
		late = fmax(late, link[l].ready_ns);
		steady = steady && (!link[l].link_profile || link[l].link_profile->jitter.kind == SKEP_JITTER_NONE);
		steady = steady && (segments == 1 || link[l].streams <= 1);
		double migrate_ns = fmax(link[l].segment_ns, link[l].cap_ns) + link[l].latency_ns + link[l].overhead_ns;
		way += link[l].take_ns + (size - 2.0) * fmax(busy, migrate_ns + link[l].add_ns) +
		       fmax(busy, migrate_ns + link[l].add_store_ns) +
		       (size - 2.0) * fmax(busy, migrate_ns + link[l].store_ns) + migrate_ns + link[l].store_ns +
		       (segments - 1) * busy / segments;
	}
	for (uint32_t rank = 0; rank < size; rank++)
		ret_ns[rank] = late + way / size;
	return steady && most - least <= NEARLY * least && late <= NEARLY * way / size;
}

bool skep_ring_time(const struct skep_ring_link *link, uint32_t size, uint32_t segments, double *ret_ns)
{
	assert(size > 1 && segments > 0);
	if (formula(link, size, segments, ret_ns))
		return true;
	struct ring ring = {.of = link, .size = size, .segments = segments, .end_ns = ret_ns};
	ring.link = calloc(size, sizeof *ring.link);
	ring.segment = calloc((size_t)size * segments, sizeof *ring.segment);
	bool good = ring.link && ring.segment;
	if (good)
		turn(&ring);
	free(ring.link);
	free(ring.segment);
	return good;
}
