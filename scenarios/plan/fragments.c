/* SPDX-License-Identifier: Apache-2.0
 *
 * fragments.c - which layers of a stage are in which fragment, where the scenario strides them (Streaming DiLoCo, Douillard
 * et al. 2025): fragment f of P has the layers f, f + P, f + 2 P, .. of the stage.
 *
 * A fragment is a range of consecutive elements to the core all the same: the stage's vector has the layers of fragment 0
 * first, then those of fragment 1, and so on (models/stage/stage.c).
 *
 * Keeps true: fragments are whole layers, and together the stage; a stage of which that cannot be said has none, and
 * skep_periodic_check() refuses it.
 */
#include "scenarios/plan/plan.h"

#include <stdlib.h>

#include "scenarios/read/scenario.h"

/* Returns where the last fragment ends, 0 if one of them has no parameters. */
static uint64_t cut_stage(const struct skep_scenario *s, uint32_t stage, uint64_t *ret_first)
{
	uint32_t first, layers, fragments = skep_plan_fragments(&s->plan);
	uint64_t at = 0;
	skep_model_cut(&s->model, s->plan.stages, stage, &first, &layers);
	for (uint32_t f = 0; f < fragments; f++) {
		ret_first[f] = at;
		for (uint32_t l = f; l < layers; l += fragments) {
			struct skep_layer_products products;
			skep_model_products(&s->model, first + l, 1, &products);
			at += (uint64_t)products.parameters;
		}
		if (at == ret_first[f])
			return 0;
	}
	return at;
}

bool skep_fragments_make(struct skep_scenario *s)
{
	if (!s->plan.inner.strided)
		return true;
	uint32_t fragments = skep_plan_fragments(&s->plan);
	s->fragment_first = calloc((size_t)s->plan.stages * fragments, sizeof *s->fragment_first);
	for (uint32_t stage = 0; s->fragment_first && stage < s->plan.stages; stage++) {
		uint64_t *first = s->fragment_first + (size_t)stage * fragments;
		bool whole = cut_stage(s, stage, first) == s->stage[stage].parameters;
		s->stage[stage].fragment_first = whole ? first : NULL;
	}
	return s->fragment_first != NULL;
}
