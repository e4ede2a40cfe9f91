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
#define ENTRIES 8u /* for each segment */

struct link {
	double work, since_ns; /* segments' worth given to each one that moves, as of then */
	double free_ns;        /* the receiver is busy until then */
	double sender_ns;      /* and the sender, with what has gone */
	double latest_ns;      /* the latest segment comes then */
	uint64_t random;
	uint32_t present;
	uint32_t moving;      /* of these, the first ones */
	uint32_t first, last; /* segment: the list of those present */
	uint32_t waiting;     /* segment: the first one that does not move, if present > moving */
	uint32_t version;     /* of the entry in the heap that says when the first one leaves */
};

struct segment {
	double end; /* of one that moves: it leaves when the link's work has come to this */
	uint32_t hop, next;
};

struct entry { /* a segment comes to a link, or the first one leaves it */
	double time_ns;
	uint32_t index, version; /* version 0: a segment comes; else of the link */
};

struct ring {
	const struct skep_ring_link *of;
	uint32_t size, segments, entries; /* segments: of each chunk */
	struct link *link;                /* [size] */
	struct segment *segment;          /* [size * segments] segment j of chunk c is c * segments + j */
	/* Heap; a link has one entry that counts and at most one more for each segment that came since. */
	struct entry *entry;
	double *end_ns; /* [size] */
};

/* ---- the heap ------------------------------------------------------------------------------------------------- */

static bool sooner(const struct entry *a, const struct entry *b)
{
	if (a->time_ns < b->time_ns || a->time_ns > b->time_ns)
		return a->time_ns < b->time_ns;
	return a->index != b->index ? a->index < b->index : a->version < b->version;
}

static void push(struct ring *ring, struct entry entry)
{
	assert(ring->entries < ENTRIES * ring->size * ring->segments);
	uint32_t at = ring->entries++;
	for (; at > 0 && sooner(&entry, &ring->entry[(at - 1) / 4]); at = (at - 1) / 4)
		ring->entry[at] = ring->entry[(at - 1) / 4];
	ring->entry[at] = entry;
}

static struct entry pop(struct ring *ring)
{
	assert(ring->entries > 0);
	struct entry first = ring->entry[0], last = ring->entry[--ring->entries];
	uint32_t at = 0;
	for (;;) {
		uint32_t child = 4 * at + 1, end = child + 4 < ring->entries ? child + 4 : ring->entries;
		if (child >= end)
			break;
		for (uint32_t other = child + 1; other < end; other++)
			if (sooner(&ring->entry[other], &ring->entry[child]))
				child = other;
		if (!sooner(&ring->entry[child], &last))
			break;
		ring->entry[at] = ring->entry[child];
		at = child;
	}
	ring->entry[at] = last;
	return first;
}

/* ---- the ring ------------------------------------------------------------------------------------------------- */

static uint32_t link_of(const struct ring *ring, uint32_t segment)
{
	assert(segment < ring->size * ring->segments && ring->segment[segment].hop > 0);
	return (segment / ring->segments + ring->segment[segment].hop - 1) % ring->size;
}

static uint32_t streams_of(const struct ring *ring, uint32_t l)
{
	return ring->of[l].streams > 0 ? ring->of[l].streams : 1;
}

/* From a segment's worth to the next, for each one that moves. */
static double pace_ns(const struct ring *ring, uint32_t l)
{
	assert(l < ring->size);
	return fmax(ring->of[l].segment_ns * ring->link[l].moving, ring->of[l].cap_ns);
}

static void bring_up_to(struct ring *ring, uint32_t l, double now_ns)
{
	struct link *link = &ring->link[l];
	if (link->moving > 0)
		link->work += (now_ns - link->since_ns) / pace_ns(ring, l);
	link->since_ns = now_ns;
}

static void expect(struct ring *ring, uint32_t l)
{
	assert(l < ring->size);
	struct link *link = &ring->link[l];
	link->version++;
	if (link->present == 0)
		return;
	double left = fmax(ring->segment[link->first].end - link->work, 0) * pace_ns(ring, l);
	push(ring, (struct entry){link->since_ns + left, l, link->version});
}

static void come(struct ring *ring, uint32_t c, double now_ns)
{
	assert(c < ring->size * ring->segments);
	uint32_t l = link_of(ring, c);
	struct link *link = &ring->link[l];
	bring_up_to(ring, l, now_ns);
	if (link->present++ > 0)
		ring->segment[link->last].next = c;
	else
		link->first = c;
	link->last = c;
	if (link->moving == streams_of(ring, l)) {
		if (link->present == link->moving + 1)
			link->waiting = c;
		return;
	}
	ring->segment[c].end = link->work + 1;
	link->moving++;
	expect(ring, l);
}

static double draw_latency_ns(const struct skep_ring_link *of, struct link *link)
{
	if (!of->link_profile || of->link_profile->jitter.kind == SKEP_JITTER_NONE)
		return of->latency_ns;
	double mean_s = 1e-9 * of->latency_ns - of->link_profile->jitter.mean_s; /* what the draw is around */
	return round(1e9 * skep_jitter_draw_s(of->topology, &of->link_profile->jitter, mean_s, &link->random));
}

/* Its sender has the segment ready. */
static void depart(struct ring *ring, uint32_t c, double ready_ns)
{
	assert(ring->segment[c].hop <= skep_ring_hops(ring->size));
	uint32_t l = link_of(ring, c);
	struct link *link = &ring->link[l];
	link->sender_ns = fmax(ready_ns, link->sender_ns) + ring->of[l].overhead_ns;
	double come_ns = link->sender_ns + draw_latency_ns(&ring->of[l], link);
	if (!ring->of[l].link_profile || !ring->of[l].link_profile->overtake)
		come_ns = fmax(come_ns, link->latest_ns);
	link->latest_ns = come_ns;
	push(ring, (struct entry){come_ns, c, 0});
}

static double receive_ns(const struct ring *ring, uint32_t l, uint32_t hop)
{
	assert(hop >= 1 && hop <= skep_ring_hops(ring->size));
	if (!skep_ring_adds(ring->size, hop))
		return ring->of[l].store_ns;
	return skep_ring_stores(ring->size, hop) ? ring->of[l].add_store_ns : ring->of[l].add_ns;
}

static void leave(struct ring *ring, uint32_t l, double now_ns)
{
	assert(ring->link[l].present > 0);
	struct link *link = &ring->link[l];
	uint32_t c = link->first;
	bring_up_to(ring, l, now_ns);
	link->work = ring->segment[c].end;
	link->first = ring->segment[c].next;
	if (link->present-- > link->moving) {
		ring->segment[link->waiting].end = link->work + 1;
		link->waiting = ring->segment[link->waiting].next;
	} else {
		link->moving--;
	}
	expect(ring, l);
	link->free_ns = fmax(link->free_ns, now_ns) + receive_ns(ring, l, ring->segment[c].hop);
	uint32_t rank = (l + 1) % ring->size;
	if (skep_ring_stores(ring->size, ring->segment[c].hop))
		ring->end_ns[rank] = link->free_ns;
	if (++ring->segment[c].hop <= skep_ring_hops(ring->size))
		depart(ring, c, link->free_ns);
}

static void turn(struct ring *ring)
{
	for (uint32_t c = 0; c < ring->size; c++) {
		ring->link[c].free_ns = ring->of[(c + 1) % ring->size].ready_ns;
		ring->link[c].random = ring->of[c].random;
		for (uint32_t j = 0; j < ring->segments; j++) {
			ring->segment[c * ring->segments + j].hop = 1;
			depart(ring, c * ring->segments + j, ring->of[c].ready_ns + (j + 1) * ring->of[c].take_ns);
		}
	}
	while (ring->entries > 0) {
		struct entry entry = pop(ring);
		if (entry.version == 0)
			come(ring, entry.index, entry.time_ns);
		else if (entry.version == ring->link[entry.index].version)
			leave(ring, entry.index, entry.time_ns);
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
	/* Entries: for a link one that counts, and older ones, sooner by nature, for those that came since its first segment
	 * did. */
	struct ring ring = {.of = link, .size = size, .segments = segments, .end_ns = ret_ns};
	ring.link = calloc(size, sizeof *ring.link);
	ring.segment = calloc((size_t)size * segments, sizeof *ring.segment);
	ring.entry = malloc((size_t)size * segments * ENTRIES * sizeof *ring.entry);
	bool good = ring.link && ring.segment && ring.entry;
	if (good)
		turn(&ring);
	free(ring.link);
	free(ring.segment);
	free(ring.entry);
	return good;
}
