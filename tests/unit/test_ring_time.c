/* SPDX-License-Identifier: Apache-2.0
 *
 * test_ring_time.c - the segments of a ring all-reduce, link by link (sim/ring_time.c), against all events of all links one after
 * the other in the order of time, on drawn rings. Each link is played here from the list of what has been sent to it, without
 * anything that the other one keeps.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/random.h"
#include "sim/ring_time.h"

enum { RANKS_MOST = 12, SEGMENTS_MOST = 4, SENT_MOST = 2 * RANKS_MOST * SEGMENTS_MOST, DRAWN = 600 };

struct sent { /* one segment on one link */
	uint32_t hop;
	double come_ns, left; /* of its one segment's worth; 0: it has left the link */
	bool gone;
};

struct line {
	struct sent sent[SENT_MOST]; /* in the order in which they were sent, which is that in which they come */
	uint32_t count;
	double sender_ns, receiver_ns;
};

struct world {
	const struct skep_ring_link *of;
	uint32_t size;
	struct line line[RANKS_MOST];
	double now_ns, end_ns[RANKS_MOST];
};

static void send(struct world *w, uint32_t l, uint32_t hop, double ready_ns)
{
	struct line *line = &w->line[l];
	line->sender_ns = fmax(line->sender_ns, ready_ns) + w->of[l].overhead_ns;
	assert_true(line->count < SENT_MOST);
	line->sent[line->count++] =
		(struct sent){.hop = hop, .come_ns = line->sender_ns + w->of[l].latency_ns, .left = 1};
}

/* Those that move: the first ones that have come and not gone, as many as there are streams. Returns how many. */
static uint32_t moving(struct world *w, uint32_t l, struct sent *ret[SENT_MOST])
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < w->line[l].count && count < w->of[l].streams; i++) {
		struct sent *sent = &w->line[l].sent[i];
		if (!sent->gone && sent->come_ns <= w->now_ns)
			ret[count++] = sent;
	}
	return count;
}

static double pace_ns(const struct world *w, uint32_t l, uint32_t count)
{
	return fmax(w->of[l].segment_ns * count, w->of[l].cap_ns);
}

/* The next time at which a segment comes to some link, or has moved over it. */
static double next_ns(struct world *w)
{
	double next = INFINITY;
	struct sent *who[SENT_MOST];
	for (uint32_t l = 0; l < w->size; l++) {
		uint32_t count = moving(w, l, who);
		for (uint32_t i = 0; i < count; i++)
			next = fmin(next, w->now_ns + who[i]->left * pace_ns(w, l, count));
		for (uint32_t i = 0; i < w->line[l].count; i++)
			if (w->line[l].sent[i].come_ns > w->now_ns)
				next = fmin(next, w->line[l].sent[i].come_ns);
	}
	return next;
}

static void arrive(struct world *w, uint32_t l, uint32_t hop)
{
	const struct skep_ring_link *of = &w->of[l];
	struct line *line = &w->line[l];
	double take_ns = hop < w->size - 1 ? of->add_ns : hop == w->size - 1 ? of->add_store_ns : of->store_ns;
	line->receiver_ns = fmax(line->receiver_ns, w->now_ns) + take_ns;
	if (hop >= w->size - 1)
		w->end_ns[(l + 1) % w->size] = line->receiver_ns;
	if (hop < 2 * (w->size - 1))
		send(w, (l + 1) % w->size, hop + 1, line->receiver_ns);
}

static void advance(struct world *w, double to_ns)
{
	uint32_t hop[RANKS_MOST][SENT_MOST], gone[RANKS_MOST] = {0};
	for (uint32_t l = 0; l < w->size; l++) {
		struct sent *who[SENT_MOST];
		uint32_t count = moving(w, l, who);
		for (uint32_t i = 0; i < count; i++) {
			who[i]->left -= (to_ns - w->now_ns) / pace_ns(w, l, count);
			if (who[i]->left > 1e-9)
				continue;
			who[i]->gone = true;
			hop[l][gone[l]++] = who[i]->hop;
		}
	}
	w->now_ns = to_ns;
	for (uint32_t l = 0; l < w->size; l++)
		for (uint32_t i = 0; i < gone[l]; i++)
			arrive(w, l, hop[l][i]);
}

static void play(struct world *w, uint32_t segments)
{
	for (uint32_t l = 0; l < w->size; l++) {
		w->line[l].receiver_ns = w->of[(l + 1) % w->size].ready_ns;
		for (uint32_t j = 0; j < segments; j++)
			send(w, l, 1, w->of[l].ready_ns + (j + 1) * w->of[l].take_ns);
	}
	for (double next; (next = next_ns(w)) < INFINITY;)
		advance(w, next);
}

static double uniform(uint64_t *random)
{
	return (double)skep_random_below(random, 1u << 30) / (1u << 30);
}

/* Links of one kind or of several, with or without latency, overheads, a late member, several streams. */
static void draw(uint64_t *random, struct skep_ring_link link[RANKS_MOST], uint32_t size)
{
	static const uint32_t streams[] = {1, 2, 3, SKEP_STREAMS_EACH};
	uint32_t stream = streams[skep_random_below(random, 4)];
	double busy_ns = exp(12 * uniform(random)),
	       latency_ns = skep_random_below(random, 2) ? 1e4 * uniform(random) : 0;
	double late_ns = skep_random_below(random, 2) ? 1e7 * uniform(random) : 0;
	for (uint32_t l = 0; l < size; l++)
		link[l] = (struct skep_ring_link){
			.ready_ns = skep_random_below(random, 3) ? 0 : late_ns * uniform(random),
			.segment_ns = busy_ns * (skep_random_below(random, 2) ? 1 : 1 + 4 * uniform(random)),
			.streams = stream,
			.latency_ns = latency_ns * uniform(random),
			.add_ns = 100 * uniform(random),
			.add_store_ns = 100 + 100 * uniform(random),
			.store_ns = 50,
			.take_ns = 100 * uniform(random),
			.cap_ns = skep_random_below(random, 2) ? 0 : 2 * busy_ns * uniform(random),
			.overhead_ns = 1 + 500 * uniform(random)};
}

static void drawn_rings_end_as_event_by_event(void **state)
{
	(void)state;
	uint64_t random = 1;
	for (uint32_t i = 0; i < DRAWN; i++) {
		struct skep_ring_link link[RANKS_MOST];
		double ns[RANKS_MOST];
		uint32_t size = 2 + skep_random_below(&random, RANKS_MOST - 1);
		uint32_t segments = 1 + skep_random_below(&random, SEGMENTS_MOST);
		draw(&random, link, size);
		link[0].latency_ns += 20 * (link[0].segment_ns + link[0].cap_ns + link[0].latency_ns +
						   1000); /* too far off for the formula */
		struct world *world = calloc(1, sizeof *world);
		assert_non_null(world);
		world->of = link;
		world->size = size;
		play(world, segments);
		assert_true(skep_ring_time(link, size, segments, ns));
		for (uint32_t rank = 0; rank < size; rank++)
			assert_true(fabs(ns[rank] - world->end_ns[rank]) <= 1e-7 * ns[rank]);
		free(world);
	}
}

/* What has been sent first goes first, also where both come at the same time: the second member's own segment before the one
 * that the first member's link had brought it at the very moment at which its own was ready. */
static void who_was_sent_first_goes_first(void **state)
{
	(void)state;
	struct skep_ring_link link[3] = {{.segment_ns = 100},
		{.segment_ns = 300, .ready_ns = 100, .add_ns = 50, .add_store_ns = 500}, {.segment_ns = 100}};
	double ns[3];
	assert_true(skep_ring_time(link, 3, 1, ns));
	struct world *world = calloc(1, sizeof *world);
	assert_non_null(world);
	for (int l = 0; l < 3; l++)
		link[l].streams = 1;
	world->of = link;
	world->size = 3;
	play(world, 1);
	for (int rank = 0; rank < 3; rank++)
		assert_true(fabs(ns[rank] - world->end_ns[rank]) < 1e-6);
	free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(drawn_rings_end_as_event_by_event),
		cmocka_unit_test(who_was_sent_first_goes_first),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
