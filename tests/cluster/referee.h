/* SPDX-License-Identifier: Apache-2.0
 *
 * referee.h - one ledger, or as many as there are candidates for the first parameters.
 *
 * Each candidate of a trial is a swarm of its own, so each has its own ledger, which sees the workers of that candidate and no
 * others, and has to balance by itself. This file decides whose books a line belongs into, works out anew which candidate
 * should be kept, and sees to it that all others come over to that one. Without a trial it hands everything to the one ledger.
 */
#pragma once

#include "tests/cluster/ledger.h"

#define CLUSTER_CANDIDATES 4u

struct referee;

struct referee *referee_create(void); /* NULL: no memory */
void referee_destroy(struct referee *referee);
/* As the functions of ledger.h. */
void referee_begin(struct referee *referee, const struct skep_plan *plan, uint32_t capacity, uint32_t view,
	struct verdict *verdict);
/* The directory is, and workers keep what they hold. */
void referee_lost(struct referee *referee);
/* All begin again with what is kept (outage.c), or held by workers that have been there all the time (`stayed`, bit by bit); not
 * in a run with candidates. */
void referee_resumes(struct referee *referee, const struct skep_plan *plan, uint64_t stayed);
void referee_action(struct referee *referee, skep_time now, struct skep_peer who, const struct skep_action *action);
void referee_arrived(struct referee *referee, struct skep_peer who, const struct skep_message *message);
void referee_came_back(struct referee *referee, const struct skep_message *message);
void referee_op_done(
	struct referee *referee, struct skep_peer who, const struct skep_op *op, const struct effect *effect);
void referee_ailed(struct referee *referee, struct skep_peer who, const struct skep_op *op, uint8_t fault);
void referee_end(struct referee *referee, enum skep_outcome outcome, const uint32_t *epoch);
struct ledger_totals referee_totals(const struct referee *referee);

/* The candidate for which a worker begins: its place in its stage, modulo their number. */
uint32_t referee_candidate(const struct skep_plan *plan, uint32_t worker);
