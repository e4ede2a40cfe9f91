/* SPDX-License-Identifier: Apache-2.0
 *
 * groups.h - the groups of keys that scenario.c leaves to files of their own; what `skep check` says of each is in
 * describe/describe_groups.h. A function reports what is wrong to the reader; `map`, `schedule`, `sync`, `train` are the
 * groups' nodes, NULL where the file lacks them.
 */
#pragma once

#include <stdio.h>

#include "scenarios/read/scenario.h"

/* ---- mistaken.c ------------------------------------------------------------------------------------------------- */

/* A topology, a model or another file that is given as a scenario: the error says what it is. When its name is
 * read. */
void skep_mistaken_refuse(struct skep_reader *r, const struct skep_yaml_node *root);
/* A folder with a scenario.yaml, as `skep ask` writes one: the error names that. False: it is none. */
bool skep_mistaken_folder(const char *path, struct skep_diag *reterr);

/* ---- cut.c ------------------------------------------------------------------------------------------------------ */

/* model.cut: where the model is cut into stages, if not as evenly as it can be. */

/* When the model is read; `list` NULL: the file does not say. */
void skep_cut_read(struct skep_reader *r, const struct skep_yaml_node *list, struct skep_model *model);
/* When the schedule is read, which says how many virtual stages each stage has; `map`: model. */
void skep_cut_check(struct skep_reader *r, const struct skep_yaml_node *map, const struct skep_scenario *s);

/* ---- freeze.c --------------------------------------------------------------------------------------------------- */

/* model.freeze: the layers that are not trained. `map`: model. When the model is read, and before it is cut; and before the plan
 * is made. */
void skep_freeze_set(struct skep_reader *r, const struct skep_yaml_node *map, uint32_t frozen, struct skep_scenario *s);
void skep_freeze_check(struct skep_reader *r, const struct skep_yaml_node *map, const struct skep_scenario *s);

/* ---- links.c ---------------------------------------------------------------------------------------------------- */

/* cluster.links: what links of the topology have in place of what its file says, by the names of their sites. When the
 * topology is read. */
void skep_links_read(struct skep_reader *r, const struct skep_yaml_node *cluster, struct skep_topology *topology);

/* ---- gpus.c ----------------------------------------------------------------------------------------------------- */

/* cluster.gpus: how many times as fast as the topology says kinds of GPUs are, by their profiles. When the topology is read.
 * Refused where the model gives the times of its passes itself. */
void skep_gpus_read(struct skep_reader *r, const struct skep_yaml_node *cluster, const struct skep_model *model,
	struct skep_topology *topology);

/* ---- sync.c ----------------------------------------------------------------------------------------------------- */

/* The keys of a scenario that say how gradients are summed: which collective, and what goes together with it. */

/* `map`: sync, NULL if there is none. */
void skep_sync_read_collective(struct skep_reader *reader, const struct skep_yaml_node *map, struct skep_plan *plan);
/* sync.ring_order. When the other keys of `sync` are read, and who serves which stage is known. */
void skep_sync_read_ring_order(
	struct skep_reader *reader, const struct skep_yaml_node *map, struct skep_scenario *scenario);
/* How tensors travel: compression and compression_block of `map`, the group `name` (schedule or sync); `reduced`: of what is
 * summed, which may have fewer bits. */
void skep_sync_read_codec(struct skep_reader *reader, const struct skep_yaml_node *map, const char *name, bool reduced,
	enum skep_codec *ret_codec, uint32_t *ret_block);
/* The same of `sync`, where `compression` may be a list with a codec for each stage. */
void skep_sync_read_codecs(
	struct skep_reader *reader, const struct skep_yaml_node *map, struct skep_scenario *scenario);
/* When the plan is made: `map` as above. */
void skep_sync_check_members(
	struct skep_reader *reader, const struct skep_yaml_node *map, const struct skep_plan *plan);
/* `map`: simulate, which asks for flows. */
void skep_sync_check_flows(struct skep_reader *reader, const struct skep_yaml_node *map, const struct skep_plan *plan);

/* ---- pipelines.c ------------------------------------------------------------------------------------------------ */

/* What a scenario must say, and must not, to train in fixed pipelines. */

/* `schedule.model_chunks`, which comes with `pipeline: interleaved` and only with it. Needs pipeline, stages, model. */
void skep_pipelines_read_keys(
	struct skep_reader *reader, const struct skep_yaml_node *schedule, struct skep_scenario *scenario);

/* `schedule`, `sync`: these groups, sync may be NULL. Needs pipeline, batch, allocation; sets wiring and in_flight. Does nothing
 * for a swarm but refuse `wiring: fixed`. */
void skep_pipelines_read(struct skep_reader *reader, const struct skep_yaml_node *schedule,
	const struct skep_yaml_node *sync, struct skep_scenario *scenario);

/* ---- robust.c --------------------------------------------------------------------------------------------------- */

/* Keys for gradients that may be wrong: what is made of them in place of the mean, and, to try it, which workers
 * bring wrong ones. */

void skep_robust_read_sync(struct skep_reader *r, const struct skep_yaml_node *sync, struct skep_scenario *s);
void skep_robust_read_byzantine(struct skep_reader *r, const struct skep_yaml_node *cluster, struct skep_scenario *s);
/* When the rest is known. */
void skep_robust_check(struct skep_reader *r, const struct skep_yaml_node *sync, const struct skep_yaml_node *cluster,
	const struct skep_scenario *s);

/* As keys have them: sync.aggregate, cluster.byzantine.attack and .tensors. */
const char *skep_robust_method_name(enum skep_robust_method method);
const char *skep_attack_name(enum skep_attack attack);
const char *skep_attack_tensors_name(bool activations);

/* ---- train.c ---------------------------------------------------------------------------------------------------- */

/* The keys of `train` that say what is learnt from and how: data, optimizer, schedule. */

enum { SKEP_STEPS_MAX = 1000000000 };

/* train.until and train.target_loss: when a run ends, and what it is to reach. Needs arithmetic and inner steps. */
void skep_train_read_until(struct skep_reader *r, const struct skep_yaml_node *train, struct skep_scenario *s);
/* A model of which only the cost is known cannot be computed with. Needs model and arithmetic. */
void skep_train_check_computes(
	struct skep_reader *r, const struct skep_yaml_node *train, const struct skep_scenario *s);
/* train.data; opens a corpus of tokens if there is arithmetic to feed. Needs model and arithmetic. */
void skep_train_read_data(struct skep_reader *r, const struct skep_yaml_node *train, struct skep_scenario *s);
/* model.sequence: samples shorter than the model's own. */
void skep_train_set_sequence(
	struct skep_reader *r, const struct skep_yaml_node *model, uint32_t sequence, struct skep_scenario *s);
/* train.validate. Needs plan.microbatches, samples and data. */
void skep_train_read_validation(struct skep_reader *r, const struct skep_yaml_node *train, struct skep_scenario *s);
/* train.optimizer */
void skep_train_read_optimizer(struct skep_reader *r, const struct skep_yaml_node *train, struct skep_scenario *s);
/* train.schedule. Needs plan.rounds. */
void skep_train_read_schedule(struct skep_reader *r, const struct skep_yaml_node *train, struct skep_scenario *s);

/* What does not go with how the model is cut and its state is handed on. Needs the plan's stages. */
void skep_train_check(struct skep_reader *r, const struct skep_yaml_node *model, const struct skep_yaml_node *train,
	const struct skep_scenario *s);

/* The tensor of the weights that the head begins with for want of one of its own; NULL: there is one, or there are none. */
const char *skep_train_head_from(const struct skep_scenario *s);

/* As keys have them: train.optimizer.name, train.schedule.decay. */
const char *skep_optimizer_name(enum skep_optimizer_kind kind);
const char *skep_rate_decay_name(enum skep_rate_decay decay);

/* ---- init.c ---------------------------------------------------------------------------------------------------------- */

/* train.init: from where first parameters come, or how they are drawn; opens weights if there is arithmetic that begins with
 * them. Needs the model and the arithmetic. `details`: for all in which weights differ from the model, or NULL. */
void skep_init_read(struct skep_reader *r, const struct skep_yaml_node *train, struct skep_scenario *s, FILE *details);

const char *skep_init_name(enum skep_init init); /* as train.init.method has it */

/* When all is read: candidates for the first parameters (train.init.candidates, select and steps; core/methods/candidates.c has
 * what is done with them) where they cannot be are refused. */
void skep_candidates_check(struct skep_reader *r, const struct skep_yaml_node *train, const struct skep_scenario *s);

/* ---- traced.c --------------------------------------------------------------------------------------------------- */

/* The group `cluster.trace` of a scenario: which workers are there, and from when to when, as a recording says it or
 * as it is drawn by the seed from the law of one (topologies/churn/churn.h). */

/* When the topology and the number of stages are read. Without the group all are there. */
void skep_traced_read(struct skep_reader *r, const struct skep_yaml_node *cluster, struct skep_scenario *s);

/* Once all files are known: the joins of the trace take their time. */
void skep_traced_admit(struct skep_reader *r, struct skep_scenario *s);
/* Which joins of the trace found no machine, and why, as text; false: none. */
bool skep_traced_left_out(const struct skep_scenario *s, char *ret, size_t size);

/* When all is read: what `schedule.on_loss` does not go together with is refused. */
void skep_losses_check(struct skep_reader *r, const struct skep_yaml_node *schedule, const struct skep_plan *plan);
