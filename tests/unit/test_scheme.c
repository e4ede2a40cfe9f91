/* SPDX-License-Identifier: Apache-2.0
 *
 * test_scheme.c - the schemes of core/collective/collective.h by themselves: what one member sends another one waits
 * for, and no member waits in vain; bytes are those of the closed forms; a butterfly's shares let the slowest member be
 * done as early as can be.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/collective/collective.h"
#include "core/collective/ring.h"
#include "core/names.h"
#include "core/random.h"

enum { MEMBERS_MAX = 40, TRANSFERS_MAX = 8 * SKEP_SYNC_CHUNKS_MAX };

struct swarm { /* worker i is member i */
	struct skep_stage_plan stage;
	uint32_t site_of[SKEP_ROSTER_MAX];
	uint64_t link_Bps[SKEP_ROSTER_MAX];
	struct skep_plan plan;
	enum skep_collective half; /* of a ring; 0: all of it */
	struct skep_peer roster[SKEP_ROSTER_MAX];
	uint64_t fact[SKEP_ROSTER_MAX + 1];
};

static void init(struct swarm *swarm, enum skep_collective kind, uint32_t sites, uint64_t parameters)
{
	uint64_t random = sites;
	*swarm = (struct swarm){.stage.parameters = parameters,
		.plan = {.stages = 1, .reduction.collective = kind, .reduction.chunks = 3}};
	swarm->plan.stage = &swarm->stage;
	swarm->plan.reduction.site_of = swarm->site_of;
	swarm->plan.reduction.link_Bps = swarm->link_Bps;
	for (uint32_t i = 0; i < SKEP_ROSTER_MAX; i++) {
		swarm->site_of[i] = skep_random_below(&random, sites);
		swarm->link_Bps[i] = 1000 + skep_random_below(&random, 100000);
		swarm->roster[i] = (struct skep_peer){i, 1};
	}
}

static struct skep_scheme scheme_of(struct swarm *swarm, uint32_t rank, uint32_t size)
{
	struct skep_scheme scheme;
	memset(swarm->fact, 0xff, (size + 1) * sizeof *swarm->fact); /* all that is read of it is written */
	skep_scheme_init(
		&scheme, &swarm->plan, 0, swarm->plan.stage[0].parameters, rank, size, swarm->roster, swarm->fact);
	if (swarm->half > 0)
		skep_scheme_halve(&scheme, swarm->half);
	return scheme;
}

/* A tensor comes to an operation on the same elements, CHUNK_ACK to a move that waits for one. */
static void check_hop(
	struct swarm *swarm, uint32_t size, const struct skep_scheme_transfer *from, const struct skep_hop *hop)
{
	assert_true(hop->to < size);
	struct skep_scheme to = scheme_of(swarm, hop->to, size);
	assert_true(hop->number < skep_scheme_transfers(&to));
	struct skep_scheme_transfer transfer = skep_scheme_transfer_at(&to, swarm->fact, hop->number);
	assert_true(transfer.arrives);
	assert_int_equal(hop->taken, transfer.op == 0);
	if (hop->taken)
		return;
	assert_true(transfer.first == from->first && transfer.count == from->count && transfer.chunk == from->chunk);
}

static uint32_t sites_of(struct swarm *swarm, uint32_t size)
{
	struct skep_scheme scheme = scheme_of(swarm, 0, size);
	return scheme.sites;
}

/* In units of messages and of elements. */
static void check_bytes(struct swarm *swarm, uint32_t size, uint64_t messages, uint64_t elements)
{
	uint64_t n = size, v = swarm->stage.parameters, k = 0, chunks = swarm->plan.reduction.chunks,
		 s = sites_of(swarm, size);
	while (UINT64_C(2) << k <= n)
		k++;
	uint64_t p = UINT64_C(1) << k;
	const uint64_t expected[SKEP_COLLECTIVE_BROADCAST + 1] = {[SKEP_COLLECTIVE_RING] = 2 * n * (n - 1) * chunks,
		[SKEP_COLLECTIVE_PARAMETER_SERVER] = 2 * (n - 1),
		[SKEP_COLLECTIVE_REDUCE_BROADCAST] = 2 * (n - 1),
		[SKEP_COLLECTIVE_ALL_TO_ALL] = n * (n - 1),
		[SKEP_COLLECTIVE_HALVING_DOUBLING] = 2 * (n - p) + 2 * p * k,
		[SKEP_COLLECTIVE_TREE] = 2 * (n - 1) * chunks,
		[SKEP_COLLECTIVE_HIERARCHICAL] = 2 * (n - s) + 2 * s * (s - 1),
		[SKEP_COLLECTIVE_BUTTERFLY] = 2 * n * (n - 1) * chunks,
		[SKEP_COLLECTIVE_CHAIN] = 2 * (n - 1) * chunks,
		[SKEP_COLLECTIVE_BROADCAST] = (n - 1) * chunks};
	uint64_t times = swarm->plan.reduction.collective == SKEP_COLLECTIVE_ALL_TO_ALL  ? n
	                 : swarm->plan.reduction.collective == SKEP_COLLECTIVE_BROADCAST ? 1
	                                                                                 : 2;
	uint64_t halves = swarm->half > 0 ? 1 : 2; /* of what a ring sends */
	assert_int_equal(2 * messages, halves * expected[swarm->plan.reduction.collective]);
	assert_int_equal(2 * elements, halves * times * (n - 1) * v);
}

static void check_scheme(struct swarm *swarm, uint32_t size)
{
	static uint8_t comes[MEMBERS_MAX][TRANSFERS_MAX];
	uint64_t messages = 0, elements = 0;
	memset(comes, 0, sizeof comes);
	for (uint32_t rank = 0; rank < size; rank++) {
		struct skep_scheme scheme = scheme_of(swarm, rank, size);
		assert_true(skep_scheme_transfers(&scheme) <= skep_scheme_transfers_max(&swarm->plan, size));
		if (swarm->plan.reduction.collective == SKEP_COLLECTIVE_BUTTERFLY &&
			size > 1) /* which has no room to spare */
			assert_int_equal(skep_scheme_transfers(&scheme), skep_scheme_transfers_max(&swarm->plan, size));
		for (uint32_t m = 0; m < skep_scheme_transfers(&scheme); m++) {
			struct skep_scheme_transfer transfer = skep_scheme_transfer_at(&scheme, swarm->fact, m);
			for (uint32_t nth = 0; nth < transfer.hops; nth++) {
				struct skep_hop hop = skep_scheme_hop(&scheme, swarm->fact, m, nth);
				check_hop(swarm, size, &transfer, &hop);
				scheme = scheme_of(swarm, rank, size);
				assert_int_equal(comes[hop.to][hop.number]++, 0);
				assert_true(hop.to != rank || nth + 1 == transfer.hops);
				messages += hop.to != rank && !hop.taken;
				elements += hop.to != rank && !hop.taken ? transfer.count : 0;
			}
		}
	}
	for (uint32_t rank = 0; rank < size; rank++) {
		struct skep_scheme scheme = scheme_of(swarm, rank, size);
		for (uint32_t m = 0; m < skep_scheme_transfers(&scheme); m++)
			assert_int_equal(skep_scheme_transfer_at(&scheme, swarm->fact, m).arrives, comes[rank][m]);
	}
	check_bytes(swarm, size, messages, elements);
}

static void test_what_is_sent_is_waited_for(void **state)
{
	(void)state;
	static struct swarm swarm;
	for (uint32_t kind = 0; kind <= SKEP_COLLECTIVE_BROADCAST; kind++) {
		if (kind == SKEP_COLLECTIVE_FUSED)
			continue;
		for (uint32_t sites = 1; sites <= 7; sites += 2) {
			init(&swarm, (enum skep_collective)kind, sites, kind % 2 ? 5 : 100001);
			for (uint32_t size = 2; size <= MEMBERS_MAX; size++)
				check_scheme(&swarm, size);
		}
	}
}

static void test_halves_of_a_ring(void **state)
{
	(void)state;
	static struct swarm swarm;
	for (enum skep_collective half = SKEP_COLLECTIVE_REDUCE_SCATTER; half <= SKEP_COLLECTIVE_ALL_GATHER; half++)
		for (uint64_t elements = 1; elements < 200000; elements = 7 * elements + 3) {
			init(&swarm, SKEP_COLLECTIVE_RING, 1, elements);
			swarm.half = half;
			for (uint32_t size = 2; size <= MEMBERS_MAX; size++)
				check_scheme(&swarm, size);
		}
}

/* Played by hand: the chunk that is whole after the one half is what the other one begins with, and all chunks come to all. */
static void test_a_gather_brings_what_a_scatter_left(void **state)
{
	(void)state;
	static struct swarm swarm;
	init(&swarm, SKEP_COLLECTIVE_RING, 1, 1000);
	swarm.plan.sharded = true;
	for (uint32_t size = 2; size <= MEMBERS_MAX; size++)
		for (uint32_t rank = 0; rank < size; rank++) {
			uint64_t stored = 0, copied = 0, summed = 0, first, count;
			skep_plan_shard(&swarm.plan, 0, rank, size, &first, &count);
			for (swarm.half = SKEP_COLLECTIVE_REDUCE_SCATTER; swarm.half <= SKEP_COLLECTIVE_ALL_GATHER;
				swarm.half++) {
				struct skep_scheme scheme = scheme_of(&swarm, rank, size);
				for (uint32_t m = 0; m < skep_scheme_transfers(&scheme); m++) {
					struct skep_scheme_transfer t = skep_scheme_transfer_at(&scheme, swarm.fact, m);
					bool own = t.op == SKEP_OP_ADD_STORE || t.op == SKEP_OP_COPY_SHARD;
					bool within = t.first >= first && t.first + t.count <= first + count;
					assert_int_equal(own && t.count > 0, t.op != SKEP_OP_COPY_GRAD &&
										     t.op != SKEP_OP_ADD &&
										     t.count > 0 && within);
					summed += t.op == SKEP_OP_ADD_STORE ? t.count : 0;
					copied += t.op == SKEP_OP_COPY_SHARD ? t.count : 0;
					stored += t.op == SKEP_OP_STORE_SHARD ? t.count : 0;
				}
			}
			assert_int_equal(summed, count);
			assert_int_equal(copied, count);
			assert_int_equal(stored + copied, 1000);
		}
}

/* As many in a stage as begin there, at least one; their parts have numbers stage by stage. */
static void test_shards_are_of_who_begins(void **state)
{
	(void)state;
	const uint32_t first_stage_of[] = {0, 2, 0, SKEP_NO_STAGE, 2, 2};
	struct skep_plan plan = {.stages = 3, .workers = 6, .first_stage_of = first_stage_of, .sharded = true};
	const uint32_t shards[] = {2, 1, 3}, first[] = {0, 2, 3};
	for (uint32_t stage = 0; stage < 3; stage++) {
		assert_int_equal(skep_plan_shards(&plan, stage), shards[stage]);
		assert_int_equal(skep_plan_part(&plan, stage, shards[stage] - 1), first[stage] + shards[stage] - 1);
	}
	assert_int_equal(skep_plan_parts(&plan), 6);
	plan.sharded = false;
	assert_int_equal(skep_plan_shards(&plan, 0), 1);
	assert_int_equal(skep_plan_part(&plan, 2, 1), 2);
	assert_int_equal(skep_plan_parts(&plan), 3);
}

/* Ten elements, of which five have two moments: 3, 3, 2 and 2 of all, 0, 3, 2 and 0 of these. */
static void test_chunks_of_a_state_that_is_frozen(void **state)
{
	(void)state;
	const struct skep_stage_plan stage = {.parameters = 10,
		.frozen = 3,
		.frozen_end = 2,
		.state_chunks = 4,
		.state_bytes = 4 * SKEP_STATE_HEADER_BYTES + 10 * 4 + 5 * 8};
	const struct skep_plan plan = {.stages = 1, .stage = &stage};
	const uint64_t bytes[] = {3 * 4, 3 * 4 + 3 * 8, 2 * 4 + 2 * 8, 2 * 4};
	for (uint32_t chunk = 0; chunk < 4; chunk++)
		assert_int_equal(skep_state_chunk_bytes(&plan, 0, chunk), SKEP_STATE_HEADER_BYTES + bytes[chunk]);
}

/* Segments of a chunk that has fewer blocks than there are segments, the last of them not whole. */
static void test_segments_end_with_their_chunk(void **state)
{
	static struct swarm swarm;
	(void)state;
	init(&swarm, SKEP_COLLECTIVE_RING, 1, 22);
	struct skep_scheme scheme = scheme_of(&swarm, 0, 2);
	scheme.block = 4;
	scheme.parts = 5;
	uint64_t at = UINT64_MAX, sum = 0;
	for (uint32_t m = 0; m < scheme.parts; m++) {
		struct skep_scheme_transfer transfer = skep_scheme_transfer_at(&scheme, swarm.fact, m);
		assert_true(transfer.count <= scheme.block && transfer.first + transfer.count <= 22);
		assert_true(at == UINT64_MAX || transfer.first == at);
		at = transfer.first + transfer.count;
		sum += transfer.count;
	}
	assert_int_equal(sum, 11);
}

/* One scale for each message: it is cut where one without scales is. */
static void test_a_scale_for_a_message_moves_no_cut(void **state)
{
	(void)state;
	static struct swarm plain, scaled;
	for (uint32_t size = 2; size < 8; size++) {
		init(&plain, SKEP_COLLECTIVE_RING, 1, 37);
		init(&scaled, SKEP_COLLECTIVE_RING, 1, 37);
		scaled.plan.reduction.codec = SKEP_CODEC_INT8;
		scaled.plan.reduction.block = SKEP_CODEC_TENSOR;
		struct skep_scheme a = scheme_of(&plain, 0, size), b = scheme_of(&scaled, 0, size);
		assert_int_equal(skep_scheme_transfers(&a), skep_scheme_transfers(&b));
		for (uint32_t m = 0; m < skep_scheme_transfers(&a); m++) {
			const struct skep_scheme_transfer one = skep_scheme_transfer_at(&a, plain.fact, m);
			const struct skep_scheme_transfer other = skep_scheme_transfer_at(&b, scaled.fact, m);
			assert_true(one.first == other.first && one.count == other.count);
		}
	}
}

static void test_one_member_has_nothing_to_do(void **state)
{
	(void)state;
	static struct swarm swarm;
	for (uint32_t kind = 0; kind < SKEP_COLLECTIVES; kind++) {
		init(&swarm, (enum skep_collective)kind, 1, 10);
		struct skep_scheme scheme = scheme_of(&swarm, 0, 1);
		assert_int_equal(skep_scheme_transfers(&scheme), 0);
	}
}

/* The least segments that hide a latency, and one more; no more than eight, no smaller than 64 KiB, unless the plan says so. */
static void test_a_ring_has_segments_enough_to_hide_a_latency(void **state)
{
	(void)state;
	const uint64_t MB = 1000000;
	const struct {
		uint64_t chunk_bytes, latency_bytes;
		uint32_t segments;
	} cases[] = {{8 * MB, 0, 2}, {8 * MB, 1, 3}, {8 * MB, 4 * MB, 3}, {8 * MB, 6 * MB, 5}, {9 * MB, 8 * MB, 8},
		{8 * MB, 8 * MB, 8}, {MB, 100 * MB, 8}, {131071, 0, 1}, {131072, 0, 2}, {200000, 150000, 3}, {0, 0, 1}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_int_equal(
			skep_ring_segments_for(cases[i].chunk_bytes, cases[i].latency_bytes), cases[i].segments);
	static struct swarm swarm;
	init(&swarm, SKEP_COLLECTIVE_RING, 1, 8000000);
	assert_int_equal(skep_ring_segments(&swarm.plan, 0, 8000000, 4), 3);
	swarm.plan.reduction.chunks = 0;
	swarm.plan.reduction.latency_bytes = 6 * MB;
	assert_int_equal(skep_ring_segments(&swarm.plan, 0, 8000000, 4), 5);
	for (uint32_t size = 2; size < MEMBERS_MAX; size++) {
		struct skep_scheme scheme = scheme_of(&swarm, 0, size);
		assert_true(skep_scheme_transfers(&scheme) <= skep_scheme_transfers_max(&swarm.plan, size));
		assert_true(size * skep_ring_segments(&swarm.plan, 0, 8000000, size) <=
			    skep_scheme_early_max(&swarm.plan, MEMBERS_MAX));
	}
}

/* ---- shares ------------------------------------------------------------------------------------------------------- */

/* When the slowest is done, for one element and a link of 1. */
static double slowest(const struct swarm *swarm, uint32_t n, const double *share)
{
	double most = 0;
	for (uint32_t i = 0; i < n; i++)
		most = fmax(most, (1 + (n - 2) * share[i]) / (double)swarm->link_Bps[i]);
	return most;
}

/* By bisection: by this time all members together could have summed everything, each with what its link has left. */
static double least_time(const struct swarm *swarm, uint32_t n)
{
	double low = 0, high = n;
	for (int i = 0; i < 200; i++) {
		double time = (low + high) / 2, sum = 0;
		for (uint32_t m = 0; m < n; m++)
			sum += fmax(0, (time * (double)swarm->link_Bps[m] - 1) / (n - 2));
		*(sum < 1 ? &low : &high) = time;
	}
	/* one without a share still sends what it has */
	double share[SKEP_ROSTER_MAX] = {0};
	return fmax(high, slowest(swarm, n, share));
}

static void check_shares(struct swarm *swarm, uint32_t n)
{
	double share[SKEP_ROSTER_MAX];
	scheme_of(swarm, 0, n);
	assert_int_equal(swarm->fact[0], 0);
	assert_int_equal(swarm->fact[n], swarm->stage.parameters);
	for (uint32_t i = 0; i < n; i++) {
		assert_true(swarm->fact[i] <= swarm->fact[i + 1]);
		share[i] = (double)(swarm->fact[i + 1] - swarm->fact[i]) / (double)swarm->stage.parameters;
	}
	if (n > 2)
		assert_true(slowest(swarm, n, share) < 1.002 * least_time(swarm, n));
	else
		assert_true(fabs(share[0] - share[1]) <= 1.0 / (double)swarm->stage.parameters);
}

static void test_shares_keep_the_slowest_short(void **state)
{
	(void)state;
	static struct swarm swarm;
	uint64_t random = 1;
	for (int i = 0; i < 300; i++) {
		init(&swarm, SKEP_COLLECTIVE_BUTTERFLY, 1, 1000000);
		uint32_t n = 2 + skep_random_below(&random, i < 280 ? 30 : SKEP_ROSTER_MAX - 1);
		for (uint32_t m = 0; m < n; m++) /* from all alike to a thousand times as fast */
			swarm.link_Bps[m] = 1000 + skep_random_below(&random, 1u << i % 20);
		check_shares(&swarm, n);
	}
}

/* Links as large and as different as they come, and more members than elements. */
static void test_shares_of_extreme_links(void **state)
{
	(void)state;
	static struct swarm swarm;
	const uint64_t links[] = {0, 1, UINT64_MAX, UINT64_C(1) << 50};
	for (uint64_t parameters = 0; parameters < 3; parameters++) {
		init(&swarm, SKEP_COLLECTIVE_BUTTERFLY, 1, parameters == 2 ? UINT64_MAX : parameters);
		for (uint32_t n = 2; n <= SKEP_ROSTER_MAX; n += n < 20 ? 1 : 123) {
			for (uint32_t m = 0; m < n; m++)
				swarm.link_Bps[m] = links[(m * m + n) % 4];
			scheme_of(&swarm, 0, n);
			for (uint32_t m = 0; m < n; m++)
				assert_true(swarm.fact[m] <= swarm.fact[m + 1]);
			assert_true(swarm.fact[n] == swarm.stage.parameters);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_sent_is_waited_for),
		cmocka_unit_test(test_halves_of_a_ring),
		cmocka_unit_test(test_a_gather_brings_what_a_scatter_left),
		cmocka_unit_test(test_shards_are_of_who_begins),
		cmocka_unit_test(test_chunks_of_a_state_that_is_frozen),
		cmocka_unit_test(test_segments_end_with_their_chunk),
		cmocka_unit_test(test_a_scale_for_a_message_moves_no_cut),
		cmocka_unit_test(test_one_member_has_nothing_to_do),
		cmocka_unit_test(test_a_ring_has_segments_enough_to_hide_a_latency),
		cmocka_unit_test(test_shares_keep_the_slowest_short),
		cmocka_unit_test(test_shares_of_extreme_links),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
