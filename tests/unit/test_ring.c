/* SPDX-License-Identifier: Apache-2.0
 *
 * test_ring.c - the ring of core/collective/ring.h with numbers: every rank ends with every sum, whatever
 * the order of arrival, and
 * sends 2(n-1) chunks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/collective/collective.h"
#include "core/collective/ring.h"
#include "core/random.h"
#include "core/skep.h"

#define RANKS_MAX 9
#define ELEMENTS 23

struct hop {
	uint32_t to, chunk, number;
	uint64_t value[ELEMENTS];
};

struct ring {
	uint32_t size, pending, sent[RANKS_MAX], stored[RANKS_MAX];
	uint64_t own[RANKS_MAX][ELEMENTS], sum[RANKS_MAX][ELEMENTS];
	struct hop queue[RANKS_MAX * RANKS_MAX];
};

static void put(struct ring *ring, uint32_t from, uint32_t chunk, uint32_t number, const uint64_t *value)
{
	if (number > skep_ring_hops(ring->size))
		return;
	struct hop *hop = &ring->queue[ring->pending++];
	*hop = (struct hop){.to = (from + 1) % ring->size, .chunk = chunk, .number = number};
	memcpy(hop->value, value, sizeof hop->value);
	ring->sent[from]++;
}

static void arrive(struct ring *ring, struct hop hop)
{
	uint64_t first, count;
	skep_chunk_range(ELEMENTS, hop.chunk, ring->size, &first, &count);
	assert_int_equal(hop.chunk, skep_ring_chunk(hop.to, ring->size, hop.number));
	for (uint64_t i = 0; i < count && skep_ring_adds(ring->size, hop.number); i++)
		hop.value[i] += ring->own[hop.to][first + i];
	if (skep_ring_stores(ring->size, hop.number)) {
		memcpy(ring->sum[hop.to] + first, hop.value, count * sizeof *hop.value);
		ring->stored[hop.to]++;
	}
	put(ring, hop.to, hop.chunk, hop.number + 1, hop.value);
}

static void run_ring(uint32_t size, uint64_t seed)
{
	static struct ring ring;
	memset(&ring, 0, sizeof ring);
	ring.size = size;
	for (uint32_t rank = 0; rank < size; rank++) {
		for (uint32_t i = 0; i < ELEMENTS; i++)
			ring.own[rank][i] = skep_random_next(&seed);
	}
	for (uint32_t rank = 0; rank < size; rank++) {
		uint64_t first, count;
		skep_chunk_range(ELEMENTS, rank, size, &first, &count);
		put(&ring, rank, rank, 1, ring.own[rank] + first);
	}
	while (ring.pending > 0) {
		uint32_t i = skep_random_below(&seed, ring.pending);
		struct hop hop = ring.queue[i];
		ring.queue[i] = ring.queue[--ring.pending];
		arrive(&ring, hop);
	}
	for (uint32_t i = 0; i < ELEMENTS; i++) {
		uint64_t expected = 0;
		for (uint32_t rank = 0; rank < size; rank++)
			expected += ring.own[rank][i];
		for (uint32_t rank = 0; rank < size; rank++)
			assert_true(ring.sum[rank][i] == expected);
	}
	for (uint32_t rank = 0; rank < size; rank++) {
		assert_int_equal(ring.stored[rank], size);
		assert_int_equal(ring.sent[rank], 2 * (size - 1));
	}
}

static void test_every_rank_has_every_sum(void **state)
{
	(void)state;
	for (uint32_t size = 2; size <= RANKS_MAX; size++) {
		for (uint64_t seed = 1; seed <= 50; seed++)
			run_ring(size, seed);
	}
}

static void test_chunks_tile_the_vector(void **state)
{
	(void)state;
	for (uint64_t parameters = 0; parameters < 40; parameters++) {
		for (uint32_t size = 1; size < 12; size++) {
			uint64_t end = 0, first, count;
			for (uint32_t chunk = 0; chunk < size; chunk++) {
				skep_chunk_range(parameters, chunk, size, &first, &count);
				assert_int_equal(first, end);
				assert_true(count == parameters / size || count == parameters / size + 1);
				end = first + count;
			}
			assert_int_equal(end, parameters);
		}
	}
}

/* With one scale for a tensor each segment that travels is such a tensor; with blocks, whole ones, there are no more of them. */
static void test_segments_have_scales_of_their_own(void **state)
{
	(void)state;
	struct skep_plan plan = {.stages = 1, .reduction.codec = SKEP_CODEC_INT8, .reduction.block = SKEP_CODEC_TENSOR};
	assert_int_equal(skep_ring_chunk_bytes(&plan, 0, 1000, 1), 1000 + 4);
	assert_int_equal(skep_ring_chunk_bytes(&plan, 0, 1000, 3), 1000 + 3 * 4);
	plan.reduction.codec = SKEP_CODEC_E3M0; /* 334, 333 and 333 elements, two in a byte */
	assert_int_equal(skep_ring_chunk_bytes(&plan, 0, 1000, 3), 3 * 167 + 3 * 4);
	plan.reduction.block = 100;
	assert_int_equal(skep_ring_chunk_bytes(&plan, 0, 1000, 3), 500 + 10 * 4);
	plan = (struct skep_plan){
		.stages = 1, .reduction.codec = SKEP_CODEC_FP16, .reduction.block = SKEP_CODEC_TENSOR};
	assert_int_equal(skep_ring_chunk_bytes(&plan, 0, 1000, 3), 2000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_rank_has_every_sum),
		cmocka_unit_test(test_chunks_tile_the_vector),
		cmocka_unit_test(test_segments_have_scales_of_their_own),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
