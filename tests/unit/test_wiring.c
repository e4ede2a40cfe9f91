/* SPDX-License-Identifier: Apache-2.0
 *
 * test_wiring.c - views and the choice among them: uniform, also when the view is a sample; epochs only go up.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/route/wiring.h"
#include "core/worker/worker.h"

static struct skep_view *view_of(uint32_t capacity)
{
	struct skep_view *view = calloc(1, sizeof *view + capacity * sizeof view->choice[0]);
	assert_non_null(view);
	return view;
}

static const struct skep_peer me = {0, 1};
static const struct skep_plan plan = {.wiring = SKEP_WIRING_UNIFORM, .samples = 4};
static const struct skep_plan by_rate = {.wiring = SKEP_WIRING_THROUGHPUT, .samples = 4};

static struct skep_peer choose(
	struct skep_view *view, const struct skep_plan *by, struct skep_peer self, uint64_t *random)
{
	return skep_view_choose_other(view, by, self, (struct skep_peer){SKEP_NO_INDEX, 0}, random);
}

static void test_uniform(void **state)
{
	(void)state;
	struct skep_view *view = view_of(8);
	uint64_t random = 7;
	uint32_t hits[8] = {0};
	for (uint32_t i = 0; i < 8; i++)
		skep_view_add(view, &plan, 8, (struct skep_peer){i, 1}, &random);
	for (uint32_t i = 0; i < 80000; i++)
		hits[choose(view, &plan, me, &random).index]++;
	for (uint32_t i = 0; i < 8; i++) /* 10000 expected, standard deviation 94 */
		assert_in_range(hits[i], 10000 - 5 * 94, 10000 + 5 * 94);
	free(view);
}

/* Many senders, each with a sample of 4 out of 16: all 16 are chosen alike. */
static void test_sampled_views_are_uniform_together(void **state)
{
	(void)state;
	struct skep_view *view = view_of(4);
	uint32_t hits[16] = {0};
	for (uint64_t sender = 0; sender < 32000; sender++) {
		uint64_t random = sender * 977 + 3;
		skep_view_clear(view);
		for (uint32_t i = 0; i < 16; i++)
			skep_view_add(view, &plan, 4, (struct skep_peer){i, 1}, &random);
		assert_int_equal(view->count, 4);
		hits[choose(view, &plan, me, &random).index]++;
	}
	for (uint32_t i = 0; i < 16; i++) /* 2000 expected, standard deviation 43 */
		assert_in_range(hits[i], 2000 - 5 * 43, 2000 + 5 * 43);
	free(view);
}

static void test_epochs_only_go_up(void **state)
{
	(void)state;
	struct skep_view *view = view_of(4);
	uint64_t random = 1;
	skep_view_add(view, &plan, 4, (struct skep_peer){3, 2}, &random);
	skep_view_add(view, &plan, 4, (struct skep_peer){3, 1}, &random);
	assert_int_equal(view->count, 1);
	assert_int_equal(view->choice[0].peer.epoch, 2);
	skep_view_remove(view, (struct skep_peer){3, 1}); /* news of an earlier life */
	assert_int_equal(view->count, 1);
	skep_view_add(view, &plan, 4, (struct skep_peer){3, 5}, &random);
	assert_int_equal(view->choice[0].peer.epoch, 5);
	skep_view_remove(view, (struct skep_peer){3, 5});
	assert_int_equal(view->count, 0);
	assert_int_equal(choose(view, &plan, me, &random).index, SKEP_NO_INDEX);
	free(view);
}

/* `count` workers that need `sample_ns[i]` per sample and say so at each choice; how often each was chosen. */
static void choose_many(
	const struct skep_plan *by, const uint64_t *sample_ns, uint32_t count, uint32_t times, uint32_t *ret_hits)
{
	struct skep_view *view = view_of(count);
	uint64_t random = 3;
	for (uint32_t i = 0; i < count; i++) {
		skep_view_add(view, &plan, count, (struct skep_peer){i, 1}, &random);
		skep_view_update(view, by, (struct skep_peer){i, 1}, sample_ns[i] * by->samples, 0);
		ret_hits[i] = 0;
	}
	for (uint32_t n = 0; n < times; n++) {
		struct skep_peer peer = choose(view, by, me, &random);
		ret_hits[peer.index]++;
		skep_view_update(view, by, peer, sample_ns[peer.index] * by->samples, 0);
	}
	free(view);
}

static void test_shares_are_the_rates(void **state)
{
	(void)state;
	for (uint32_t ratio = 1; ratio <= 100; ratio += ratio < 10 ? 1 : 15) {
		uint64_t sample_ns[4] = {1000 * ratio, 1000, 700, 100000};
		uint32_t hits[4];
		double rates = 0;
		choose_many(&by_rate, sample_ns, 4, 1000000, hits);
		for (uint32_t i = 0; i < 4; i++)
			rates += 1.0 / (double)sample_ns[i];
		for (uint32_t i = 0; i < 4; i++) {
			double share = 1.0 / (double)sample_ns[i] / rates, got = hits[i] * 1e-6;
			assert_true(got > 0.99 * share && got < 1.01 * share);
		}
	}
}

static void test_choices_are_interleaved(void **state)
{
	(void)state;
	struct skep_view *view = view_of(2);
	uint64_t random = 3;
	uint32_t run = 0, longest = 0;
	for (uint32_t i = 0; i < 2; i++) {
		skep_view_add(view, &plan, 2, (struct skep_peer){i, 1}, &random);
		skep_view_update(view, &plan, (struct skep_peer){i, 1}, (i == 0 ? 1000 : 3000) * 4, 0);
	}
	for (uint32_t n = 0; n < 400; n++) { /* three for the fast one, then one for the slow one */
		run = choose(view, &by_rate, me, &random).index == 0 ? run + 1 : 0;
		longest = run > longest ? run : longest;
	}
	assert_in_range(longest, 3, 4);
	free(view);
}

/* 500 senders with ten microbatches each, for 20 workers of which four are five times as fast: those get their share of 20 in 36,
 * whatever the time is that a sample takes, and from the first microbatch on. */
/* Who is equal is chosen by lot, and not by its place in the view. */
static void test_who_is_equal_is_drawn(void **state)
{
	(void)state;
	const struct skep_plan fast = {.wiring = SKEP_WIRING_THROUGHPUT, .samples = 1};
	uint64_t random = 5;
	uint32_t hits[3] = {0};
	for (uint32_t n = 0; n < 300; n++) {
		struct skep_view *view = view_of(3);
		view->full_speed_ns = 1; /* so short are turns that all begin at once */
		for (uint32_t i = 0; i < 3; i++)
			skep_view_add(view, &fast, 3, (struct skep_peer){i, 1}, &random);
		hits[choose(view, &fast, me, &random).index]++;
		free(view);
	}
	for (uint32_t i = 0; i < 3; i++) /* 100 expected, standard deviation 8 */
		assert_in_range(hits[i], 100 - 5 * 8, 100 + 5 * 8);
}

static void test_the_first_ones_go_by_expected_speed(void **state)
{
	(void)state;
	uint32_t speed[20];
	struct skep_plan mixed = by_rate;
	struct skep_view *view = view_of(20);
	mixed.speed = speed;
	for (uint32_t i = 0; i < 20; i++)
		speed[i] = i < 4 ? SKEP_SPEED_MAX : SKEP_SPEED_MAX / 5;
	for (uint64_t full_ns = 0; full_ns <= 100000000000; full_ns = full_ns * 1000 + 100000) { /* 0: none answers */
		uint32_t fast = 0;
		for (uint64_t sender = 0; sender < 500; sender++) {
			uint64_t random = sender * 977 + 3;
			skep_view_clear(view);
			for (uint32_t i = 0; i < 20; i++)
				skep_view_meet(view, &mixed, 20, (struct skep_peer){i, 1}, &random);
			skep_view_met(view);
			for (uint32_t n = 0; n < 10; n++) {
				struct skep_peer peer = choose(view, &mixed, me, &random);
				fast += peer.index < 4;
				if (full_ns > 0)
					skep_view_update(view, &mixed, peer,
						full_ns * mixed.samples * SKEP_SPEED_MAX / speed[peer.index], 0);
			}
		}
		assert_in_range(fast, 5000 * 20 / 36 * 97 / 100, 5000 * 20 / 36 * 103 / 100);
	}
	free(view);
}

/* The average is right from the first update on: 1 - 0.9^n cancels the start from zero. */
static void test_average_is_corrected_for_its_start(void **state)
{
	(void)state;
	uint64_t sample_ns[2] = {500000, 1000000};
	uint32_t hits[2];
	choose_many(&by_rate, sample_ns, 2, 30, hits);
	assert_in_range(hits[0], 19, 21);
}

/* All senders hear of a newcomer at once. Each tries it within one of its turns, and from then on as often as the others;
 * together they send it no more than its part at any time, though none has an answer of it. */
static void test_a_newcomer_gets_its_part(void **state)
{
	(void)state;
	enum { SENDERS = 100, PEERS = 50, PARTS = 20 };
	struct skep_view *view[SENDERS];
	uint64_t random = 9;
	uint32_t hits[PARTS] = {0};
	for (uint32_t s = 0; s < SENDERS; s++) {
		view[s] = view_of(PEERS + 1);
		for (uint32_t i = 0; i < PEERS; i++)
			skep_view_add(view[s], &plan, PEERS + 1, (struct skep_peer){i, 1}, &random);
		for (uint32_t n = 0; n < 20 * PEERS - 5;
			n++) { /* five have still to be chosen before all begin another turn */
			struct skep_peer peer = choose(view[s], &by_rate, me, &random);
			skep_view_update(view[s], &plan, peer, 4000, 0);
		}
		skep_view_add(view[s], &plan, PEERS + 1, (struct skep_peer){PEERS, 1}, &random);
		for (uint32_t n = 0; n < PARTS * (PEERS + 1) / 2; n++)
			hits[n * 2 / (PEERS + 1)] += choose(view[s], &by_rate, me, &random).index == PEERS;
		free(view[s]);
	}
	for (uint32_t part = 0; part < PARTS; part++)
		assert_in_range(hits[part], SENDERS / 2 * 6 / 10, SENDERS / 2 * 14 / 10);
}

/* Guesses before the first answer are charged again by what the worker needed. */
static void test_the_first_answer_corrects_guesses(void **state)
{
	(void)state;
	struct skep_view *view = view_of(2);
	uint64_t random = 9;
	uint32_t hits[2] = {0};
	for (uint32_t i = 0; i < 2; i++)
		skep_view_add(view, &plan, 2, (struct skep_peer){i, 1}, &random);
	skep_view_update(view, &plan, (struct skep_peer){0, 1}, 4000, 0);
	for (uint32_t n = 0; n < 200; n++)
		hits[choose(view, &by_rate, me, &random).index]++;
	assert_in_range(hits[0], 98, 102); /* worker 1 is taken to be as fast */
	skep_view_update(view, &plan, (struct skep_peer){1, 1}, 12000, 0);
	for (uint32_t n = 0; n < 200; n++)
		hits[choose(view, &by_rate, me, &random).index]++;
	assert_in_range(hits[0], 295, 305); /* three times as fast from the first microbatch on */
	free(view);
}

static void test_the_silent_lose_their_share(void **state)
{
	(void)state;
	struct skep_view *view = view_of(3);
	uint64_t random = 9;
	for (uint32_t i = 0; i < 3; i++) {
		skep_view_add(view, &plan, 3, (struct skep_peer){i, 1}, &random);
		skep_view_update(view, &plan, (struct skep_peer){i, 1}, 4000, 0);
	}
	skep_view_silent(view, (struct skep_peer){1, 1}, 10000000);
	for (uint32_t n = 0; n < 4000; n++) /* 10 ms of work for the other two at 4 us each */
		assert_int_not_equal(choose(view, &by_rate, me, &random).index, 1);
	free(view);
}

/* An answer gives back what silence has cost, but puts the worker before none that was served meanwhile. */
static void test_an_answer_ends_silence(void **state)
{
	(void)state;
	struct skep_view *view = view_of(3);
	uint64_t random = 9;
	uint32_t hits[3] = {0};
	for (uint32_t i = 0; i < 3; i++) {
		skep_view_add(view, &plan, 3, (struct skep_peer){i, 1}, &random);
		skep_view_update(view, &plan, (struct skep_peer){i, 1}, 4000, 0);
	}
	skep_view_silent(view, (struct skep_peer){1, 1}, 10000000);
	for (uint32_t n = 0; n < 1000; n++)
		choose(view, &by_rate, me, &random);
	skep_view_update(view, &plan, (struct skep_peer){1, 1}, 4000, 0);
	for (uint32_t n = 0; n < 300; n++)
		hits[choose(view, &by_rate, me, &random).index]++;
	assert_in_range(hits[1], 99, 101);
	free(view);
}

/* Three workers that need so long: how many of 600 microbatches the last one gets, if the lines to it and back take so long. */
static uint32_t part_of(skep_time needed_ns, skep_time first_ns, skep_time others_ns)
{
	struct skep_view *view = view_of(3);
	uint64_t random = 9;
	uint32_t hits = 0;
	for (uint32_t i = 0; i < 3; i++) {
		skep_view_add(view, &plan, 3, (struct skep_peer){i, 1}, &random);
		skep_view_update(view, &plan, (struct skep_peer){i, 1}, needed_ns, i == 2 ? first_ns : 1000000);
	}
	for (uint32_t n = 0; n < 1200; n++) {
		struct skep_peer peer = choose(view, &by_rate, me, &random);
		skep_view_update(view, &plan, peer, needed_ns, peer.index == 2 ? others_ns : 1000000);
		hits += n >= 600 && peer.index == 2;
	}
	free(view);
	return hits;
}

static void test_who_is_behind_a_full_line_gets_less(void **state)
{
	(void)state;
	assert_in_range(part_of(4000000, 1000000, 1000000), 199, 201);
	assert_in_range(part_of(4000000, 900000000, 900000000), 199, 201); /* it is long, and nothing waits in it */
	assert_in_range(part_of(4000000, 1000000, 9000000), 97, 103);      /* 6 of 8 ms beside 4: 1 in 6 */
	assert_in_range(part_of(4000000, 50000000, 58000000), 97, 103);    /* the same, of a long one */
	assert_in_range(part_of(4000000, 9000000, 1000000), 195, 201);     /* no longer full */
	assert_in_range(part_of(400, 1000000, 1020000), 8, 12); /* the average has 11 of 20 us, beside 0.4: 1 in 57 */
}

/* A process that was stopped for a second does not lose its share for the time that the average would remember it. */
static void test_one_late_answer_says_little(void **state)
{
	(void)state;
	struct skep_view *view = view_of(2);
	uint64_t random = 9;
	uint32_t hits = 0;
	for (uint32_t n = 0; n < 40; n++) {
		for (uint32_t i = 0; i < 2; i++) {
			skep_view_add(view, &plan, 2, (struct skep_peer){i, 1}, &random);
			bool stopped = n == 39 && i == 1;
			skep_view_update(
				view, &plan, (struct skep_peer){i, 1}, 4000000, stopped ? 1000000000 : 1000000);
		}
	}
	for (uint32_t n = 0; n < 100; n++)
		hits += choose(view, &by_rate, me, &random).index == 1;
	assert_in_range(hits, 48, 52); /* once four times 5 ms, of which the average takes a tenth: 1.9 ms */
	free(view);
}

#define SENT_NS 7000000u
#define AWAY_NS 5000000u /* from there until the answer came */
#define NEEDED_NS 4000000u

/* What a sender makes of an answer whose worker says that it had the microbatch for so long. */
static skep_time line_of(skep_time held_ns)
{
	static const struct worker sender = {.node.now = SENT_NS + AWAY_NS};
	static const struct skep_work work = {.sent_ns = SENT_NS};
	return worker_line_ns(&sender, &work, held_ns);
}

static void test_no_clock_makes_a_line_shorter_than_nothing(void **state)
{
	(void)state;
	assert_int_equal(line_of(NEEDED_NS), AWAY_NS - NEEDED_NS);
	assert_int_equal(line_of(0), AWAY_NS);
	assert_int_equal(line_of(AWAY_NS - 1), 1);
	assert_int_equal(line_of(AWAY_NS), 0);
	assert_int_equal(line_of(AWAY_NS + 1), 0);
	assert_int_equal(line_of(UINT64_MAX), 0);
}

/* Of 600 microbatches for three workers, those of the last one, which says in turn that it had one for so long. */
static uint32_t part_of_a_liar(skep_time held_ns, skep_time next_held_ns)
{
	struct skep_view *view = view_of(3);
	uint64_t random = 9;
	uint32_t hits = 0, answers = 0;
	for (uint32_t i = 0; i < 3; i++)
		skep_view_add(view, &plan, 3, (struct skep_peer){i, 1}, &random);
	for (uint32_t n = 0; n < 1200; n++) {
		struct skep_peer peer = choose(view, &by_rate, me, &random);
		skep_time said_ns = answers++ % 2 > 0 ? next_held_ns : held_ns;
		uint64_t before_ns = view->choice[2].key_ns;
		skep_view_update(view, &plan, peer, NEEDED_NS, line_of(peer.index == 2 ? said_ns : NEEDED_NS));
		if (n >= 600) {
			assert_true(view->choice[2].key_ns ==
				    before_ns); /* an answer is no charge, and gives nothing back */
			hits += peer.index == 2;
		}
	}
	free(view);
	return hits;
}

/* Whatever it says of its own time, its microbatches are not charged less than its device needs for them. */
static void test_a_clock_that_lies_wins_nothing(void **state)
{
	(void)state;
	assert_in_range(part_of_a_liar(NEEDED_NS, NEEDED_NS), 199, 201);
	assert_in_range(part_of_a_liar(0, 0), 199, 201); /* as if all of it were a long line, in which nothing waits */
	assert_in_range(part_of_a_liar(UINT64_MAX, UINT64_MAX), 199, 201);
	assert_in_range(part_of_a_liar(AWAY_NS + 1, UINT64_MAX), 199, 201);
	assert_in_range(part_of_a_liar(0, UINT64_MAX), 180, 190); /* its mean of 2.5 ms but for 2: 4.5 ms beside 4 */
}

/* A first answer beyond all measure: what it was charged by guess becomes that, and its key goes round to no small one. */
static void test_a_need_beyond_measure_comes_last(void **state)
{
	(void)state;
	const skep_time beyond_ns[] = {UINT64_MAX, UINT64_MAX / 2 + 1, UINT64_MAX / 3, UINT64_MAX / 4 + 1, UINT64_MAX};
	for (uint32_t k = 0; k < sizeof beyond_ns / sizeof *beyond_ns; k++) {
		const uint32_t guesses = k < 4 ? 4 : 1;
		struct skep_view *view = view_of(2);
		uint64_t random = 9;
		for (uint32_t i = 0; i < 2; i++)
			skep_view_add(view, &plan, 2, (struct skep_peer){i, 1}, &random);
		skep_view_update(view, &plan, (struct skep_peer){0, 1}, NEEDED_NS, 0);
		while (view->choice[1].guessed < guesses)
			choose(view, &by_rate, me, &random);
		skep_view_update(view, &plan, (struct skep_peer){1, 1}, beyond_ns[k], 0);
		for (uint32_t n = 0; n < 1000; n++)
			assert_int_equal(choose(view, &by_rate, me, &random).index, 0);
		free(view);
	}
}

static void test_latency_counts_the_link(void **state)
{
	(void)state;
	const uint32_t place_of[3] = {0, 0, 1};
	const skep_time transfer_ns[4] = {0, 3000, 9000, 0}; /* to worker 2 and back: 12 us, beside 4 us of work */
	struct skep_plan by_link = {.wiring = SKEP_WIRING_LATENCY,
		.samples = 4,
		.places.count = 2,
		.places.of = place_of,
		.places.transfer_ns = transfer_ns};
	struct skep_view *view = view_of(2);
	uint64_t random = 2;
	uint32_t hits[3] = {0};
	for (uint32_t i = 1; i < 3; i++) {
		skep_view_add(view, &plan, 2, (struct skep_peer){i, 1}, &random);
		skep_view_update(view, &plan, (struct skep_peer){i, 1}, 4000, 0);
	}
	for (uint32_t n = 0; n < 10000; n++)
		hits[choose(view, &by_link, me, &random).index]++;
	assert_in_range(hits[1], 7990, 8010);
	free(view);
}

/* Of 16 the view holds 4: when it is down to two it asks, and is told of those who are left. */
static void test_a_thin_sample_asks_for_the_rest(void **state)
{
	(void)state;
	struct skep_view *view = view_of(4);
	uint64_t random = 3;
	for (uint32_t i = 0; i < 16; i++)
		skep_view_add(view, &plan, 4, (struct skep_peer){i, 1}, &random);
	while (!skep_view_thin(view, 4)) {
		assert_in_range(view->count, 3, 4);
		skep_view_remove(view, view->choice[0].peer);
	}
	assert_int_equal(view->count, 2);
	for (uint32_t i = 0; i < 16; i++)
		skep_view_add(view, &plan, 4, (struct skep_peer){i, 1}, &random);
	assert_int_equal(view->count, 4);
	assert_in_range(view->heard, 16, 18); /* about */
	free(view);
}

static void test_a_whole_view_never_asks(void **state)
{
	(void)state;
	struct skep_view *view = view_of(4);
	uint64_t random = 3;
	for (uint32_t i = 0; i < 4; i++)
		skep_view_add(view, &plan, 4, (struct skep_peer){i, 1}, &random);
	for (uint32_t i = 0; i < 4; i++) {
		skep_view_remove(view, (struct skep_peer){i, 1});
		assert_false(skep_view_thin(view, 4));
	}
	assert_int_equal(view->heard, 0);
	free(view);
}

/* Of 40 a view holds 4, and 36 of the others go: a newcomer is then one of 5, so it is in the view four times of five. */
static void test_who_goes_unseen_counts_no_more(void **state)
{
	(void)state;
	uint32_t met = 0;
	for (uint64_t seed = 1; seed <= 1000; seed++) {
		struct skep_view *view = view_of(4);
		uint64_t random = seed;
		for (uint32_t i = 0; i < 40; i++)
			skep_view_add(view, &plan, 4, (struct skep_peer){i, 1}, &random);
		for (uint32_t i = 0; i < 40; i++) {
			if (!skep_view_has(view, i))
				skep_view_remove(view, (struct skep_peer){i, 1});
		}
		assert_int_equal(view->heard, 4);
		skep_view_remove(view, (struct skep_peer){40, 1}); /* one of which nothing was heard */
		assert_int_equal(view->heard, 4);
		skep_view_add(view, &plan, 4, (struct skep_peer){40, 1}, &random);
		met += skep_view_has(view, 40);
		free(view);
	}
	assert_in_range(met, 750, 850);
}

/* Choices too: they follow the tournament. */
/* One that leaves is chosen last, and forgotten with its incarnation. */
static void test_who_leaves_is_replaced(void **state)
{
	(void)state;
	struct skep_view *view = view_of(2);
	uint64_t random = 5;
	skep_view_add(view, &plan, 2, (struct skep_peer){0, 1}, &random);
	skep_view_add(view, &plan, 2, (struct skep_peer){1, 1}, &random);
	skep_view_leaving(view, (struct skep_peer){1, 1});
	assert_int_equal(view->leavers, 1);
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(choose(view, &plan, me, &random).index, 0);
	skep_view_add(view, &plan, 2, (struct skep_peer){1, 2}, &random); /* it is back */
	assert_int_equal(view->leavers, 0);
	skep_view_leaving(view, (struct skep_peer){0, 1});
	skep_view_add(view, &plan, 2, (struct skep_peer){7, 1}, &random); /* takes the place of who leaves */
	assert_int_equal(view->leavers, 0);
	assert_false(skep_view_has(view, 0));
	assert_true(skep_view_has(view, 7));
	free(view);
}

static void test_meeting_all_is_adding_each(void **state)
{
	(void)state;
	const uint32_t many[] = {0, 1, 2, 7, 8, 9, 200};
	for (size_t n = 0; n < sizeof many / sizeof *many; n++) {
		struct skep_view *added = view_of(8), *met = view_of(8);
		uint64_t random = 11, other = 11;
		for (uint32_t i = 0; i < many[n]; i++) {
			skep_view_add(added, &plan, 8, (struct skep_peer){i, 1}, &random);
			skep_view_meet(met, &plan, 8, (struct skep_peer){i, 1}, &other);
		}
		skep_view_met(met);
		assert_true(random == other);
		assert_int_equal(added->heard, met->heard);
		assert_int_equal(added->sample, met->sample);
		for (uint32_t i = 0; i < 40; i++)
			assert_int_equal(
				choose(added, &by_rate, me, &random).index, choose(met, &by_rate, me, &other).index);
		free(added);
		free(met);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_uniform),
		cmocka_unit_test(test_sampled_views_are_uniform_together),
		cmocka_unit_test(test_epochs_only_go_up),
		cmocka_unit_test(test_shares_are_the_rates),
		cmocka_unit_test(test_choices_are_interleaved),
		cmocka_unit_test(test_who_is_equal_is_drawn),
		cmocka_unit_test(test_the_first_ones_go_by_expected_speed),
		cmocka_unit_test(test_average_is_corrected_for_its_start),
		cmocka_unit_test(test_a_newcomer_gets_its_part),
		cmocka_unit_test(test_the_first_answer_corrects_guesses),
		cmocka_unit_test(test_the_silent_lose_their_share),
		cmocka_unit_test(test_an_answer_ends_silence),
		cmocka_unit_test(test_who_is_behind_a_full_line_gets_less),
		cmocka_unit_test(test_one_late_answer_says_little),
		cmocka_unit_test(test_no_clock_makes_a_line_shorter_than_nothing),
		cmocka_unit_test(test_a_clock_that_lies_wins_nothing),
		cmocka_unit_test(test_a_need_beyond_measure_comes_last),
		cmocka_unit_test(test_latency_counts_the_link),
		cmocka_unit_test(test_a_thin_sample_asks_for_the_rest),
		cmocka_unit_test(test_a_whole_view_never_asks),
		cmocka_unit_test(test_who_goes_unseen_counts_no_more),
		cmocka_unit_test(test_who_leaves_is_replaced),
		cmocka_unit_test(test_meeting_all_is_adding_each),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
