/* SPDX-License-Identifier: Apache-2.0
 *
 * sums.h - which messages a stage's sum is, asked of its scheme (core/collective/collective.h): who sends how much to whom.
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
 * flow stands for its messages; so are merges without a barrier, which are passed on from each worker in turn. */
void skep_sum_bytes(const struct skep_planning *planning, uint32_t stage, const uint32_t *member, uint32_t members,
	skep_carry_sum *carry, void *context);
