/* SPDX-License-Identifier: Apache-2.0
 *
 * round_bytes.h - bytes that move in a round without losses, headers included: what describe.c prints.
 */
#pragma once

#include "scenarios/read/scenario.h"

struct skep_round_visit { /* what a virtual stage (or stage) behind the first is sent, and sends back, for all microbatches */
	uint64_t in_bytes, out_bytes;
};

struct skep_round_visit skep_round_visit_bytes(const struct skep_scenario *scenario, uint32_t vstage);

/* Of the sums of a stage with so many workers; with fragments the mean of as many rounds as there are. */
uint64_t skep_round_reduction_bytes(const struct skep_scenario *scenario, uint32_t stage, uint32_t workers);

/* What the members of a stage are told of a tied table, by those of the other one or their own. */
uint64_t skep_round_tied_bytes(const struct skep_scenario *scenario, uint32_t stage, uint32_t workers);
