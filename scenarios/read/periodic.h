/* SPDX-License-Identifier: Apache-2.0
 *
 * periodic.h - reads the keys of `sync` that say how many inner steps workers make between two outer steps, and what
 * an outer step is: method, every, mean, outer, mixing.
 */
#pragma once

#include "scenarios/read/scenario.h"

/* Reads the keys. Called when schedule and sync.delayed are known, since a round then has the microbatches of all its inner
 * steps. */
void skep_periodic_read(struct skep_reader *r, const struct skep_yaml_node *sync, struct skep_scenario *s);
/* Refuses a key that is read later and does not go together with periodic sync; `map` has the key, and `why` says what is
 * wrong with it. */
void skep_periodic_refuse(struct skep_reader *r, const struct skep_yaml_node *map, const char *group, const char *key,
	const char *why, const struct skep_scenario *s);

/* The same with `async` alone. */
void skep_periodic_refuse_async(struct skep_reader *r, const struct skep_yaml_node *map, const char *group,
	const char *key, const char *why, const struct skep_scenario *s);

/* The same with `gossip` alone. */
void skep_periodic_refuse_gossip(struct skep_reader *r, const struct skep_yaml_node *map, const char *group,
	const char *key, const char *why, const struct skep_scenario *s);

/* Checks what only the whole plan can tell. Called when that is made. */
void skep_periodic_check(struct skep_reader *r, const struct skep_yaml_node *sync, const struct skep_scenario *s);

/* The optimizer whose state a newcomer downloads, which is that of STEP. */
static inline const struct skep_optimizer *skep_periodic_stepper(const struct skep_scenario *s)
{
	return skep_plan_periodic(&s->plan) ? &s->outer : &s->optimizer;
}

/* Which method of periodic sync it is, as sync.method has it. */
const char *skep_periodic_method(const struct skep_plan *plan);
