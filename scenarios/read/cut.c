/* SPDX-License-Identifier: Apache-2.0
 *
 * cut.c - reads which layers form which stage: see groups.h. Keeps true: every virtual stage has at least one layer,
 * and every layer is in exactly one of them.
 */
#include "scenarios/read/groups.h"

#include <inttypes.h>
#include <stdlib.h>

void skep_cut_read(struct skep_reader *r, const struct skep_yaml_node *list, struct skep_model *model)
{
	uint32_t count = skep_yaml_length(list);
	uint64_t sum = 0;
	if (r->diag->set || !list)
		return;
	model->cut = calloc(count + 1, sizeof *model->cut);
	if (!model->cut)
		skep_reader_fail(r, list, NULL, "not enough memory for this scenario");
	for (uint32_t i = 0; i < count && !r->diag->set; i++) {
		model->cut[i] =
			(uint32_t)skep_read_integer(r, skep_yaml_item(list, i), NULL, 1, model->layers, INT64_MIN);
		sum += model->cut[i];
	}
	if (!r->diag->set && sum != model->layers)
		skep_reader_fail(r, list, NULL, "model.cut: %" PRIu64 " layers in all, and %.60s has %" PRIu32, sum,
			model->name, model->layers);
	model->cuts = count;
}

void skep_cut_check(struct skep_reader *r, const struct skep_yaml_node *map, const struct skep_scenario *s)
{
	uint32_t cuts = s->model.cuts, vstages = r->diag->set ? cuts : skep_plan_vstages(&s->plan);
	if (s->model.cut && cuts != vstages)
		skep_reader_fail(r, map, "cut", "model.cut: layers of %" PRIu32 " %s are given, there are %" PRIu32,
			cuts, vstages > s->plan.stages ? "virtual stages" : "stages", vstages);
}
