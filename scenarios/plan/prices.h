/* SPDX-License-Identifier: Apache-2.0
 *
 * prices.h - what the machines of a scenario cost.
 */
#ifndef SKEP_SCENARIOS_PRICES_H
#define SKEP_SCENARIOS_PRICES_H

#include <stdbool.h>
#include <stdint.h>

struct skep_scenario;

/* The first worker whose machine has no price; the number of workers: all have one. */
uint32_t skep_prices_missing(const struct skep_scenario *s);

/* Fills the prices of a plan that has a budget, where all machines have a price, or asks for machines, where all have one; from
 * the topology. False: no memory. */
bool skep_prices_make(struct skep_scenario *s);

#endif
