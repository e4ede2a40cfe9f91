/* SPDX-License-Identifier: Apache-2.0
 *
 * describe_memory.c - see describe_groups.h: what fills the memory of each GPU that serves a stage.
 */
#include "scenarios/describe/describe_groups.h"

#include "base/layout.h"
#include "scenarios/plan/split.h"

static void lay_row(const struct skep_scenario *s, uint32_t stage, uint32_t gpu, struct skep_layout *layout)
{
	const struct skep_gpu *type = &s->topology.gpu[gpu];
	const struct skep_memory *m = &s->memory[(size_t)gpu * s->plan.stages + stage];
	double column[] = {
		m->weights, m->gradients, m->optimizer, m->activations, m->buffers, m->total, type->memory_bytes};
	char text[SKEP_TEXT_BYTES];
	uint32_t gpus = skep_split_of(s, gpu).gpus;
	skep_layout_cell(layout, "%u", stage);
	if (gpus > 1)
		skep_layout_cell(layout, "%u x %s", gpus, type->name);
	else
		skep_layout_cell(layout, "%s", type->name);
	for (uint32_t i = 0; i < sizeof column / sizeof column[0]; i++)
		skep_layout_cell(layout, "%s", skep_bytes_text(column[i], text));
	skep_layout_cell(layout, "%.1f %%", 100 * m->total / type->memory_bytes);
	skep_layout_cell(layout, "%u", m->held);
	if (s->offload != SKEP_OFFLOAD_NONE)
		skep_layout_cell(layout, "%s", skep_bytes_text(m->host, text));
}

void skep_memory_print(const struct skep_scenario *s, FILE *out)
{
	static const char *const head[] = {"stage", "GPU", "weights", "gradients", "optimizer", "in flight", "buffers",
		"total", "capacity", "share", "held", "host"};
	struct skep_layout layout;
	fprintf(out, "\nmemory of each GPU, and what fills it\n");
	skep_layout_begin(&layout, s->offload == SKEP_OFFLOAD_NONE ? "rlrrrrrrrrr" : "rlrrrrrrrrrr", head);
	for (uint32_t stage = 0; stage < s->plan.stages; stage++)
		for (uint32_t gpu = 0; gpu < s->topology.gpus; gpu++)
			if (s->memory[(size_t)gpu * s->plan.stages + stage].workers > 0)
				lay_row(s, stage, gpu, &layout);
	skep_layout_end(&layout, out);
}

void skep_memory_add_json(const struct skep_scenario *s, cJSON *root)
{
	cJSON *rows = cJSON_AddArrayToObject(root, "memory");
	for (uint32_t i = 0; i < s->plan.stages * s->topology.gpus; i++) {
		uint32_t stage = i / s->topology.gpus, gpu = i % s->topology.gpus;
		const struct skep_memory *m = &s->memory[(size_t)gpu * s->plan.stages + stage];
		if (m->workers == 0)
			continue;
		cJSON *row = skep_json_add_row(rows);
		cJSON_AddNumberToObject(row, "stage", stage);
		cJSON_AddStringToObject(row, "gpu", s->topology.gpu[gpu].name);
		cJSON_AddNumberToObject(row, "gpus_per_worker", skep_split_of(s, gpu).gpus);
		cJSON_AddNumberToObject(row, "weights_bytes", m->weights);
		cJSON_AddNumberToObject(row, "gradients_bytes", m->gradients);
		cJSON_AddNumberToObject(row, "optimizer_bytes", m->optimizer);
		cJSON_AddNumberToObject(row, "activations_bytes", m->activations);
		cJSON_AddNumberToObject(row, "buffers_bytes", m->buffers);
		cJSON_AddNumberToObject(row, "total_bytes", m->total);
		cJSON_AddNumberToObject(row, "capacity_bytes", s->topology.gpu[gpu].memory_bytes);
		cJSON_AddNumberToObject(row, "host_bytes", m->host);
		cJSON_AddNumberToObject(row, "held", m->held);
	}
}
