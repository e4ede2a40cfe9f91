/* SPDX-License-Identifier: Apache-2.0
 *
 * sums.h - what workers send each other once in a round, beside passes: the messages of a stage's sum, asked of its scheme
 * (core/collective/collective.h), what ZeRO gathers on top of them, and the tables of tied embeddings. Who asks for all of it, to
 * pay for it or to say on which links it is, calls skep_round_bytes(); who asks how long one of them takes, that one.
 */
#pragma once

#include "planning/problem/problem.h"
#include "planning/search/complexity.h"

/* Hears of a message from rank to rank, of so many bytes without its header; 0: it only says that another one has come. */
typedef void skep_sum_hear(void *context, uint32_t from, uint32_t to, uint64_t bytes);

/* All messages of one sum of the stage, `member` [members] by rank: no more than a roster has, where the collective sends one. */
void skep_sum_messages(const struct skep_planning *planning, uint32_t stage, const uint32_t *member, uint32_t members,
	skep_sum_hear *hear, void *context);

/* Elements of one sum: of a fragment, where there are several. */
uint64_t skep_sum_elements(const struct skep_planning *planning, uint32_t stage);

/* The same in bytes; a pair may come more than once. A ring is told by its edges, each of which carries the same: also where one
 * flow stands for its messages; so are merges without a barrier, which are passed on from each worker in turn. With gossip what
 * is sent on the mean: of n members, 2 floor(n / 2) of whom meet one other each, all pairs meet equally often. */
void skep_sum_bytes(const struct skep_planning *planning, uint32_t stage, const uint32_t *member, uint32_t members,
	skep_carry_sum *carry, void *context);

/* The workers of a stage by their numbers, into ret_member, which has room for all. Returns how many. */
uint32_t skep_sum_members(
	const struct skep_planning *planning, const uint32_t *stage_of, uint32_t stage, uint32_t *ret_member);

/* Brings the members of a stage, by their numbers, into the order of its ring: `sync.ring_order: links` alone changes it.
 * False: no memory. */
bool skep_sum_order(const struct skep_planning *planning, uint32_t stage, uint32_t *member, uint32_t members);

/* Tied embeddings: what the members of the first stage or the last one, by rank, give those of the same rank in the other one;
 * and what they give each other of that where they are more than the `others` there. */
void skep_tied_across(const struct skep_planning *planning, const uint32_t *from, uint32_t froms, const uint32_t *to,
	uint32_t tos, skep_carry_sum *carry, void *context);
void skep_tied_along(const struct skep_planning *planning, const uint32_t *member, uint32_t members, uint32_t others,
	skep_carry_sum *carry, void *context);

/* All that workers send each other in a round beside passes. `stage_of` [workers], `share` [workers] of the microbatches of their
 * stage; `scratch` [workers]. */
void skep_round_bytes(const struct skep_planning *planning, const uint32_t *stage_of, const double *share,
	uint32_t *scratch, skep_carry_sum *carry, void *context);
