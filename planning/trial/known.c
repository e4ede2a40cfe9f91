/* SPDX-License-Identifier: Apache-2.0
 *
 * known.c - see known.h.
 */
#include "planning/trial/known.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/sum.h"
#include "planning/trial/planner.h"

uint64_t skep_known_key(const struct skep_planner *w, const struct skep_candidate *c, uint64_t how)
{
	const uint64_t numbers[] = {w->rounds, skep_planner_seeds(w), w->scenario.seed, how, c->layers != NULL};
	uint64_t key = skep_sum(0, numbers, sizeof numbers);
	for (uint32_t i = 0; i < w->with.sets; i++)
		key = skep_sum(key, w->with.set[i], strlen(w->with.set[i]) + 1);
	key = skep_sum(key, c->stage_of, w->planning.workers * sizeof *c->stage_of);
	return c->layers ? skep_sum(key, c->layers, skep_plan_vstages(&w->scenario.plan) * sizeof *c->layers) : key;
}

const struct skep_known_trial *skep_known_find(const struct skep_known_trials *known, uint64_t key)
{
	for (uint32_t i = 0; i < known->count; i++)
		if (known->trial[i].key == key)
			return &known->trial[i];
	return NULL;
}

void skep_known_add(struct skep_known_trials *known, const struct skep_known_trial *trial)
{
	if (!skep_known_find(known, trial->key) && skep_grow(&known->trial, known->count, sizeof *trial))
		known->trial[known->count++] = *trial;
}

void skep_known_finish(struct skep_known_trials *known)
{
	free(known->trial);
	*known = (struct skep_known_trials){0};
}
