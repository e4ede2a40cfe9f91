/* SPDX-License-Identifier: Apache-2.0
 *
 * shards.c - see shards.h. Integers alone: the shares are equal on all members, compilers and machines.
 */
#include "core/collective/shards.h"

#include <assert.h>

#define WEIGHT_BITS 14u /* of a link: SKEP_ROSTER_MAX of them squared, times this, fits into 32 bits */

static uint64_t link_Bps(const struct skep_plan *plan, struct skep_peer peer)
{
	return plan->reduction.link_Bps ? plan->reduction.link_Bps[peer.index] : 1;
}

/* From 1 to 2^WEIGHT_BITS, in proportion to the links. */
static uint64_t weight(const struct skep_plan *plan, struct skep_peer peer, uint64_t largest_Bps)
{
	uint32_t shift = 0;
	while (largest_Bps >> shift >= UINT64_C(1) << (64 - WEIGHT_BITS))
		shift++;
	uint64_t weight = ((link_Bps(plan, peer) >> shift) << WEIGHT_BITS) / (largest_Bps >> shift);
	return weight > 0 ? weight : 1;
}

/* elements * weight / sum, rounded down; weight <= sum < 2^32. */
static uint64_t proportion(uint64_t elements, uint64_t weight, uint64_t sum)
{
	return elements / sum * weight + elements % sum * weight / sum;
}

/* Shares w = (T B - 1) / (n - 2) of those with T B > 1, a in number and B in sum S, where T = (n - 2 + a) / S: with
 * fewer of them T is smaller, so a member that drops out stays out. First ret_fact holds weights (0 for members that
 * are out), then where shares begin. */
void skep_shard_out(const struct skep_plan *plan, uint32_t size, const struct skep_peer *roster, uint64_t elements,
	uint64_t *ret_fact)
{
	uint64_t largest = 1, sum = 0, before = 0, n = size, active = size;
	for (uint32_t i = 0; i < size; i++)
		largest = link_Bps(plan, roster[i]) > largest ? link_Bps(plan, roster[i]) : largest;
	for (uint32_t i = 0; i < size; i++)
		sum += ret_fact[i] = weight(plan, roster[i], largest);
	for (uint64_t then = 0; then != active && size > 2;) {
		uint64_t time = n - 2 + active, of = sum;
		then = active;
		for (uint32_t i = 0; i < size; i++) {
			if (ret_fact[i] == 0 || time * ret_fact[i] > of)
				continue;
			sum -= ret_fact[i];
			active--;
			ret_fact[i] = 0;
		}
	}
	for (uint32_t i = 0; i < size; i++) {
		uint64_t mine = ret_fact[i] > 0 ? (n - 2 + active) * ret_fact[i] - sum : 0;
		ret_fact[i] = size > 2 ? proportion(elements, before, (n - 2) * sum) : proportion(elements, i, size);
		before += mine;
	}
	ret_fact[size] = elements;
}

/* The first of a site leads it. */
void skep_shard_sites(
	struct skep_scheme *s, const struct skep_plan *plan, const struct skep_peer *roster, uint64_t *ret_fact)
{
	assert(s->rank < s->size);
	s->sites = s->members = s->position = 0;
	for (uint32_t rank = 0; rank < s->size; rank++) {
		uint32_t leader = 0, site = plan->reduction.site_of ? plan->reduction.site_of[roster[rank].index] : 0;
		while (plan->reduction.site_of && plan->reduction.site_of[roster[leader].index] != site)
			leader++;
		ret_fact[rank] = leader;
	}
	for (uint32_t rank = 0; rank < s->size; rank++) {
		bool mine = ret_fact[rank] == ret_fact[s->rank];
		if (rank == ret_fact[s->rank])
			s->site = s->sites;
		s->sites += ret_fact[rank] == rank;
		s->members += mine;
		s->position += mine && rank < s->rank;
	}
}
