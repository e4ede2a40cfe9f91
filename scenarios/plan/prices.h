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

/* Fills the prices of a plan that has a budget, from the topology; false: no memory. All machines have a price. */
bool skep_prices_make(struct skep_scenario *s);

#endif
