/* SPDX-License-Identifier: Apache-2.0
 *
 * ledger.h - the referee. It watches a cluster from outside and decides whether the rules of core/skep.h were kept.
 *
 * It sees what an outsider could see: what machines ask for, which news reach them, what devices finish, and who is
 * left at the end. It shares no code with the machines. What it demands is listed, with the names I1 to I10, in
 * README.md.
 *
 * Kept true: the ledger never asks a machine anything, and the first broken promise stays in the verdict.
 */
#pragma once

#include "tests/cluster/device.h"

struct ledger;

struct ledger_totals { /* of the rounds that closed */
	uint64_t rounds, issued, counted, lost;
	uint64_t undone;     /* rounds that closed before the directory was lost, and had to be made again */
	uint64_t given_back; /* microbatches by workers that had not begun them, in all rounds */
};

struct ledger *ledger_create(void); /* NULL: no memory */
void ledger_destroy(struct ledger *ledger);

/* A new run; `capacity` is what skep_round_capacity said, `view` as in struct setup, `verdict` belongs to the caller and
 * outlives the run. */
void ledger_begin(
	struct ledger *ledger, const struct skep_plan *plan, uint32_t capacity, uint32_t view, struct verdict *verdict);

/* `who`: index and epoch of the machine whose step returned the action. */
void ledger_action(struct ledger *ledger, skep_time now, struct skep_peer who, const struct skep_action *action);
/* `who`: index and epoch of the machine that is about to learn of the message. */
void ledger_arrived(struct ledger *ledger, struct skep_peer who, const struct skep_message *message);
/* The message that its sender is about to learn has come back. */
void ledger_came_back(struct ledger *ledger, const struct skep_message *message);
/* `who`: index and epoch at the time of the RUN. */
void ledger_op_done(struct ledger *ledger, struct skep_peer who, const struct skep_op *op, const struct effect *effect);

/* The operation that ends has found, or failed to do, this: enum skep_fault. What is not kept has no other effect. */
void ledger_ailed(struct ledger *ledger, struct skep_peer who, const struct skep_op *op, uint8_t fault);

/* The run is over; `epoch[worker]` is the epoch that the process living there believes in, 0 if none lives. */
void ledger_end(struct ledger *ledger, enum skep_outcome outcome, const uint32_t *epoch);
/* What a round asks for: optimizer steps of its own, and microbatches. */
uint32_t inner_round_steps(const struct skep_plan *plan, uint32_t round);
/* inner.c: does the stage sum in the round? */
bool inner_sums(const struct skep_plan *plan, uint32_t stage, uint32_t round);
uint32_t inner_quota(const struct skep_plan *plan, uint32_t round);

struct ledger_totals ledger_totals(const struct ledger *ledger);

/* Fixed pipelines (pipelines.c): microbatches of a round that a worker of the stage has, and how many it may hold of them, with
 * 1F1B and PipeDream; where stages are uneven PipeDream's may hold one more for each of its pipelines, of the oldest round. */
uint32_t pipes_own_share(const struct skep_plan *plan, uint32_t stage);
uint32_t pipes_held(const struct skep_plan *plan, uint32_t stage);
