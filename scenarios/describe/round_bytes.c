/* SPDX-License-Identifier: Apache-2.0
 *
 * round_bytes.c - see describe_groups.h. Every count is exact, headers included.
 */
#include "scenarios/describe/describe_groups.h"

#include "core/collective/collective.h"
#include "core/record.h"
#include "core/sums.h"

/* So many bytes of each microbatch of a round; where rounds differ the mean of a cycle of them. */
static uint64_t of_all_microbatches(const struct skep_plan *plan, uint64_t bytes)
{
	uint32_t rounds = skep_plan_fragments(plan);
	uint64_t microbatches = 0;
	for (uint32_t round = 0; round < rounds; round++)
		microbatches += skep_plan_quota(plan, round);
	return microbatches * bytes / rounds;
}

/* Its input and the gradient of that. With trainer routing a stage in the middle also sends its output back, and is sent the
 * gradient of it together with the input once more. */
struct skep_round_visit skep_round_visit_bytes(const struct skep_scenario *s, uint32_t vstage)
{
	uint64_t input = skep_plan_vstage_bytes(&s->plan, vstage - 1) + SKEP_HEADER_BYTES;
	uint64_t output = skep_plan_vstage_bytes(&s->plan, vstage) + SKEP_HEADER_BYTES;
	uint64_t gradient = skep_plan_gradient_bytes(&s->plan, vstage - 1) + SKEP_HEADER_BYTES;
	bool twice = skep_plan_visits_twice(&s->plan, vstage);
	return (struct skep_round_visit){of_all_microbatches(&s->plan, twice ? 2 * input + output : input),
		of_all_microbatches(&s->plan, twice ? input + output : gradient)};
}

/* What one member sends, headers included. */
static uint64_t member_bytes(
	const struct skep_scenario *s, uint32_t stage, const struct skep_scheme *scheme, const uint64_t *fact)
{
	uint64_t bytes = 0;
	for (uint32_t m = 0; m < skep_scheme_transfers(scheme); m++) {
		struct skep_scheme_transfer move = skep_scheme_transfer_at(scheme, fact, m);
		uint64_t each = SKEP_HEADER_BYTES + skep_scheme_payload_bytes(&s->plan, stage, &move);
		for (uint32_t nth = 0; nth < move.hops; nth++) {
			struct skep_hop hop = skep_scheme_hop(scheme, fact, m, nth);
			bytes += hop.taken || hop.to == scheme->rank ? 0 : each;
		}
	}
	return bytes;
}

/* Each chunk makes 2(n-1) hops, in segments. In closed form, for a ring may have a million members, with two million moves
 * each. */
static uint64_t ring_bytes(const struct skep_scenario *s, uint32_t stage, uint64_t elements, uint64_t n)
{
	if (n < 2)
		return 0;
	uint32_t segments = skep_ring_segments(&s->plan, stage, elements, (uint32_t)n);
	uint64_t bytes = 2 * (n - 1) * n * segments * SKEP_HEADER_BYTES;
	for (uint32_t chunk = 0; chunk < n; chunk++) {
		uint64_t first, count;
		skep_chunk_range(elements, chunk, (uint32_t)n, &first, &count);
		bytes += 2 * (n - 1) * skep_ring_chunk_bytes(&s->plan, stage, count, segments);
	}
	return bytes;
}

/* A chain passes all of the vector on 2(n-1) times, a broadcast n-1 times, in chunks. */
static uint64_t passed_on_bytes(const struct skep_scenario *s, uint32_t stage, uint64_t elements, uint64_t n)
{
	uint64_t each = 0, hops = (s->plan.reduction.collective == SKEP_COLLECTIVE_CHAIN ? 2 : 1) * (n - 1);
	for (uint32_t chunk = 0; n > 1 && chunk < s->plan.reduction.chunks; chunk++) {
		uint64_t first, count;
		skep_chunk_range(elements, chunk, s->plan.reduction.chunks, &first, &count);
		each += SKEP_HEADER_BYTES + skep_plan_encoded_bytes(&s->plan, stage, count);
	}
	return hops * each;
}

/* Of all members of the first reduction of a stage, of so many elements. */
static uint64_t fragment_bytes(const struct skep_scenario *s, uint32_t stage, uint64_t elements, uint32_t workers)
{
	struct skep_peer roster[SKEP_ROSTER_MAX];
	uint64_t fact[SKEP_ROSTER_MAX + 1], bytes = 0;
	if (elements == 0)
		return 0;
	if (s->plan.reduction.collective == SKEP_COLLECTIVE_RING)
		return ring_bytes(s, stage, elements, workers);
	if (!skep_collective_has_roster(s->plan.reduction.collective)) /* and no member needs more than its rank */
		return passed_on_bytes(s, stage, elements, workers);
	for (uint32_t i = 0, rank = 0; i < s->plan.workers; i++)
		if (s->first_stage_of[i] == stage)
			roster[rank++] = (struct skep_peer){i, 1};
	for (uint32_t rank = 0; rank < workers; rank++) {
		struct skep_scheme scheme;
		skep_scheme_init(&scheme, &s->plan, stage, elements, rank, workers, roster, fact);
		bytes += member_bytes(s, stage, &scheme, fact);
	}
	return bytes;
}

/* What the members of a stage are told of a tied table, by those of the other one or their own. */
uint64_t skep_round_tied_bytes(const struct skep_scenario *s, uint32_t stage, uint32_t workers)
{
	if (!skep_plan_is_tied(&s->plan, stage))
		return 0;
	return workers * (SKEP_HEADER_BYTES + skep_plan_encoded_bytes(&s->plan, stage, s->plan.tied));
}

/* With gossip of all pairs. */
static uint64_t groups_bytes(const struct skep_scenario *s, uint32_t stage, uint64_t elements, uint32_t workers)
{
	if (s->plan.gossip)
		return workers / 2 * fragment_bytes(s, stage, elements, 2);
	return fragment_bytes(s, stage, elements, workers);
}

/* Of a round; with fragments, and with periods by stage, the mean of the rounds of a cycle. */
uint64_t skep_round_reduction_bytes(const struct skep_scenario *s, uint32_t stage, uint32_t workers)
{
	uint64_t bytes = 0, first, elements;
	uint32_t rounds =
		s->plan.inner.sum_every ? skep_plan_sum_every(&s->plan, stage) : skep_plan_fragments(&s->plan);
	for (uint32_t round = 0; round < rounds; round++)
		for (uint32_t b = 0; b < skep_plan_buckets(&s->plan, stage); b++) {
			skep_plan_range(&s->plan, stage, round, b, &first, &elements);
			bytes += groups_bytes(s, stage, elements, workers);
		}
	/* as many merges as it takes until each member has had one, as each has in a round */
	uint32_t parts = s->plan.async.group_size > 1 ? s->plan.async.group_size : 1;
	return s->plan.async.on ? bytes * ((workers + parts - 1) / parts) : bytes / rounds;
}
