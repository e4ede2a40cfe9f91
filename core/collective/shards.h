/* SPDX-License-Identifier: Apache-2.0
 *
 * shards.h - what a reduction's scheme makes of who takes part: the shares of a butterfly by the members' links, the leaders of
 * sites. Private to collective.c; its head says what shares are good for.
 */
#pragma once

#include "core/collective/collective.h"

/* ret_fact[i]: where the share of rank i begins, [size]: where the last one ends. size >= 2. */
void skep_shard_out(const struct skep_plan *plan, uint32_t size, const struct skep_peer *roster, uint64_t elements,
	uint64_t *ret_fact);

/* ret_fact[i]: the leader of rank i's site, the first rank there. Fills the scheme's own place among sites and members. */
void skep_shard_sites(
	struct skep_scheme *scheme, const struct skep_plan *plan, const struct skep_peer *roster, uint64_t *ret_fact);
