/* SPDX-License-Identifier: Apache-2.0
 *
 * ends.h - what ends a run between two rounds, before the last of its rounds: a loss that is low enough, a time that is up, a sum
 * of money that is spent.
 *
 * Money is spent by each machine from the time that its process was started until the directory knows that it is gone, at the
 * price that the plan says for that time: machines that are lost cost a little longer than they live, and those that never get a
 * place cost nothing here. Amounts are kept in millionths of a dollar per hour times milliseconds, so that nothing is rounded.
 * Traffic that is paid for by the byte comes on top: the world counts it, and tells what all of it has cost (SKEP_EVENT_EGRESS).
 */
#pragma once

#include "core/directory/directory.h"

/* Is the run over with the round that closed last? */
bool skep_ends_reached(struct directory *d, const struct skep_plan *plan);

/* It takes the place of one that was lost: what was spent before the world tells (SKEP_EVENT_EGRESS). */
void skep_ends_resume(struct directory *d, const struct skep_plan *plan);

/* The worker's process was started then. */
void skep_ends_joined(struct directory *d, const struct skep_plan *plan, uint32_t worker, skep_time started_ns);

/* Adds what the worker's machine has cost since this was done last. Before the directory takes it for gone, and at each end of a
 * round. */
void skep_ends_pay(struct directory *d, const struct skep_plan *plan, uint32_t worker);

/* What the worker's machine costs an hour at that time, in 1e-6 USD; 1 where the plan has no prices. */
uint64_t skep_ends_price(const struct skep_plan *plan, uint32_t worker, skep_time at_ns);
