/* SPDX-License-Identifier: Apache-2.0
 *
 * memory_limits.c - see memory_limits.h. Keeps true: no kinder and no stricter than the reader of a scenario with these
 * sizes, since it is the same function that is asked, with the microbatches in flight that the reader would take where the
 * file does not say how many.
 */
#include "planning/problem/memory_limits.h"

#include <stdlib.h>
#include <string.h>

#include "core/random.h"
#include "scenarios/plan/memory.h"
#include "scenarios/plan/plan.h"
#include "scenarios/plan/recut.h"

/* False: no memory. */
static bool spell(struct skep_memory_limits *room)
{
	uint32_t vstages = skep_plan_vstages(&room->scenario->plan), *cut = calloc(vstages, sizeof *cut);
	room->spelt = malloc(sizeof *room->spelt);
	if (!cut || !room->spelt) {
		free(cut);
		free(room->spelt);
		room->spelt = NULL;
		return false;
	}
	skep_recut_of(room->scenario, cut);
	*room->spelt = *room->scenario;
	room->spelt->model.cut = cut;
	room->spelt->model.cuts = vstages;
	room->scenario = room->spelt;
	return true;
}

bool skep_memory_limits_make(const struct skep_scenario *s, struct skep_memory_limits *ret)
{
	*ret = (struct skep_memory_limits){.scenario = s,
		.waits = calloc(s->topology.gpus, sizeof *ret->waits),
		.entry = calloc(SKEP_MEMORY_LIMITS_ENTRIES, sizeof *ret->entry)};
	return ret->waits && ret->entry && (s->model.cut || spell(ret));
}

void skep_memory_limits_finish(struct skep_memory_limits *room)
{
	if (room->spelt)
		free(room->spelt->model.cut);
	free(room->spelt);
	free(room->waits);
	free(room->entry);
	*room = (struct skep_memory_limits){0};
}

void skep_memory_limits_forget(struct skep_memory_limits *room)
{
	memset(room->entry, 0, SKEP_MEMORY_LIMITS_ENTRIES * sizeof *room->entry);
}

static struct skep_memory_terms terms_with(const struct skep_scenario *s, const uint32_t *workers)
{
	struct skep_memory_terms terms = skep_memory_terms_of(s);
	uint32_t active = 0;
	for (uint32_t stage = 0; stage < s->plan.stages; stage++)
		active += workers[stage];
	terms.serving = workers;
	if (s->usual_in_flight && !skep_plan_fixed(&s->plan))
		terms.in_flight = skep_plan_usual_in_flight(active, workers[0]);
	return terms;
}

static bool fits(
	const struct skep_memory_limits *room, const struct skep_memory_terms *terms, uint32_t stage, uint32_t gpu)
{
	struct skep_memory memory = skep_memory_of(room->scenario, terms, stage, gpu);
	return skep_memory_fits(room->scenario, &memory, gpu);
}

static bool all_fit(
	const struct skep_memory_limits *room, const struct skep_memory_terms *terms, uint32_t stage, uint32_t type)
{
	for (uint32_t gpu = 0; gpu < room->scenario->topology.gpus; gpu++)
		if ((gpu == type || room->waits[gpu]) && !fits(room, terms, stage, gpu))
			return false;
	return true;
}

bool skep_memory_limits_queries(
	const struct skep_memory_limits *room, uint32_t stage, uint32_t type, const uint32_t *workers)
{
	struct skep_memory_terms terms = terms_with(room->scenario, workers);
	return all_fit(room, &terms, stage, type);
}

/* Of what sizes change, memory knows the workers of the stage and the microbatches that each holds, and more of these never take
 * less: so few questions have to be worked out. */
bool skep_memory_limits_fits(void *self, uint32_t stage, uint32_t type, const uint32_t *workers)
{
	struct skep_memory_limits *room = self;
	struct skep_memory_terms terms = terms_with(room->scenario, workers);
	uint32_t held = skep_memory_held(room->scenario, &terms, stage);
	uint64_t asked = (uint64_t)type << 48 | (uint64_t)stage << 32 | workers[stage];
	struct skep_memory_limits_entry *e = &room->entry[skep_mix(asked) % SKEP_MEMORY_LIMITS_ENTRIES];
	if (e->asked != asked)
		*e = (struct skep_memory_limits_entry){.asked = asked, .exceeds = UINT32_MAX};
	if (held > e->fits && held < e->exceeds) {
		if (all_fit(room, &terms, stage, type))
			e->fits = held;
		else
			e->exceeds = held;
	}
	return held <= e->fits;
}

/* With more in a stage less is in flight for each, and a chunk of its reduction is smaller; with one there is no reduction; where
 * parts are gathered they are fewest with one. The fewer there are elsewhere the less comes in. */
struct skep_memory skep_memory_limits_least(
	const struct skep_scenario *s, uint32_t stage, uint32_t gpu, uint32_t workers)
{
	uint32_t stages = s->plan.stages, most = workers > stages ? workers - stages + 1 : 1;
	uint32_t *size = calloc(stages, sizeof *size);
	struct skep_memory_terms terms = skep_memory_terms_of(s);
	struct skep_memory best = skep_memory_of(s, &terms, stage, gpu);
	for (uint32_t i = 0; size && i < stages; i++)
		size[i] = 1;
	for (uint32_t n = 1; size && !skep_plan_fixed(&s->plan) && n <= most;
		n += s->plan.reduction.gather || n == most ? 1 : most - 1) {
		size[stage] = n;
		terms = terms_with(s, size);
		struct skep_memory memory = skep_memory_of(s, &terms, stage, gpu);
		best = memory.total < best.total ? memory : best;
	}
	free(size);
	return best;
}
