/* SPDX-License-Identifier: Apache-2.0
 *
 * memory.h - what a stage takes of the memory of each GPU and host that serves it, and what to change when that is too much.
 */
#pragma once

#include "scenarios/read/scenario.h"

/* Fills memory and memory_bytes, allocated here. False: no memory. */
bool skep_memory_make(struct skep_scenario *s);

/* What the memory of a stage depends on and a user can change. */
struct skep_memory_terms {
	uint32_t stages, samples, in_flight;
	uint32_t flushes; /* of a round, in fixed pipelines */
	enum skep_checkpointing checkpoint_activations;
	enum skep_offload offload;
	const uint32_t *serving; /* [stages] workers of each; NULL: as many as the scenario has */
};
struct skep_memory_terms skep_memory_terms_of(const struct skep_scenario *s);

/* Microbatches that a worker of the stage holds at most. More of them never take less memory. */
uint32_t skep_memory_held(const struct skep_scenario *s, const struct skep_memory_terms *terms, uint32_t stage);

/* Of each GPU of such a machine. With other stages than the scenario's it is as if they were shared out evenly. */
struct skep_memory skep_memory_of(
	const struct skep_scenario *s, const struct skep_memory_terms *terms, uint32_t stage, uint32_t gpu);

/* It fits such a machine: the GPU and, of what is offloaded, the host. */
bool skep_memory_fits(const struct skep_scenario *s, const struct skep_memory *memory, uint32_t gpu);

/* Each worker can hold its stage (a spare: any stage) on these terms. */
bool skep_memory_all_fit(const struct skep_scenario *s, const struct skep_memory_terms *terms);

/* How a scenario with a change is read, and given back: scenarios/read/scenario.h. */
struct skep_memory_reading {
	bool (*read)(const char *path, const char *text, size_t size, const struct skep_scenario_options *options,
		struct skep_scenario *ret, struct skep_diag *reterr);
	void (*finish)(struct skep_scenario *scenario);
};

/* Refuses a scenario that does not fit: who, by how much, and which single changes would do. */
void skep_memory_check(struct skep_reader *r, const struct skep_yaml_node *model, const struct skep_scenario *s,
	const struct skep_memory_reading *reading);

/* Which single changes would make every worker fit, as in "any of these would do: model.stages: 8, schedule.microbatch: 16"; or
 * that none of those would that were tried. */
enum { SKEP_MEMORY_ADVICE_BYTES = 384 };
void skep_memory_advise(const struct skep_scenario *s, const struct skep_memory_reading *reading,
	const struct skep_diag *diag, char *ret, size_t size);
