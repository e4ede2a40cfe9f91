/* SPDX-License-Identifier: Apache-2.0
 *
 * prices.h - what the machines of a scenario cost.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct skep_event;
struct skep_scenario;

/* The first worker whose machine has no price; the number of workers: all have one. */
uint32_t skep_prices_missing(const struct skep_scenario *s);

/* Fills the prices of a plan that has a budget, where all machines have a price, or asks for machines, where all have one; from
 * the topology. False: no memory. */
bool skep_prices_make(struct skep_scenario *s);

/* Two places with workers, or with the directory, between which traffic has no price although the topology has prices. False:
 * there are none. */
bool skep_prices_egress_missing(const struct skep_scenario *s, uint32_t *ret_from, uint32_t *ret_to);

/* What all traffic of a run has cost, for the directory of a run that ends by money. It is told in steps of a ten-thousandth of
 * that money: a world that told each message would have twice as many events. */
struct skep_egress_bill { /* all zero: nothing was sent */
	double usd;
	uint64_t told_microusd;
};

/* Traffic that its senders pay so much for. */
void skep_egress_bill_add(struct skep_egress_bill *bill, double usd);

/* Is the directory to be told? Then the event, of what has not been told before. */
bool skep_egress_bill_due(struct skep_egress_bill *bill, const struct skep_scenario *s, struct skep_event *ret_event);
