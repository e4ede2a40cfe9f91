/* SPDX-License-Identifier: Apache-2.0
 *
 * describe_groups.h - what `skep check` says of groups of keys, as lines of text and as members of its object, whose words
 * are those of the keys and whose times are seconds. Of what a scenario lacks there is no line.
 */
#pragma once

#include <stdio.h>

#include "base/json.h"
#include "scenarios/describe/describe.h"
#include "scenarios/read/scenario.h"
#include "topologies/read/topology.h"

/* describe_machines.c */
void skep_pool_print(const struct skep_scenario *s, FILE *out);
void skep_pool_add_json(const struct skep_scenario *s, cJSON *root);
void skep_traced_print(const struct skep_scenario *s, FILE *out);
void skep_traced_add_json(const struct skep_scenario *s, cJSON *root);
void skep_scaled_print(const struct skep_scenario *s, FILE *out);
void skep_scaled_add_json(const struct skep_scenario *s, cJSON *root);
void skep_split_print(const struct skep_scenario *s, FILE *out);

/* describe_machines.c: a row for each stage and kind of machine that serves it */
void skep_memory_print(const struct skep_scenario *s, FILE *out);
void skep_memory_add_json(const struct skep_scenario *s, cJSON *root);

/* describe_training.c */
void skep_train_print(const struct skep_scenario *s, FILE *out);
void skep_train_add_json(const struct skep_scenario *s, cJSON *root);
void skep_freeze_print(const struct skep_scenario *s, FILE *out);
void skep_freeze_add_json(const struct skep_scenario *s, cJSON *root);
void skep_loss_print(const struct skep_scenario *s, FILE *out);
void skep_loss_add_json(const struct skep_scenario *s, cJSON *root);

/* describe_rounds.c */
void skep_periodic_print(const struct skep_scenario *s, FILE *out);
void skep_periodic_add_json(const struct skep_scenario *s, cJSON *root);
void skep_robust_print(const struct skep_scenario *s, FILE *out);
void skep_robust_add_json(const struct skep_scenario *s, cJSON *root);
void skep_overlap_print(const struct skep_scenario *s, FILE *out);
void skep_overlap_add_json(const struct skep_scenario *s, cJSON *root);

/* describe_planned.c */
void skep_planned_print(const struct skep_scenario *s, FILE *out);
void skep_planned_add_json(const struct skep_scenario *s, cJSON *root);

/* describe_compute.c: the part of `skep check` that says where times come from. Nothing with the roofline of the profiles. */

/* In one line: the type that passes are timed in, why, and the key that changes it. */
void skep_compute_print_type(const struct skep_scenario *scenario, FILE *out);
/* The same in a few words: "fp32", "fp16, mixed precision", "tf32, fp32 tensors", "bf16 on A100-SXM4-40, fp16 on T4, mixed
 * precision". */
void skep_compute_format_text(const struct skep_scenario *scenario, char *ret, size_t size);
/* Whether nothing but the kind of GPU has decided it, and it is not fp32, in which arithmetic: real computes. */
bool skep_compute_format_is_chosen(const struct skep_scenario *scenario);
void skep_compute_print(const struct skep_scenario *scenario, FILE *out);
void skep_compute_add_json(const struct skep_scenario *scenario, cJSON *root);

/* describe_training.c: the part of `skep check` that says what experts a model has, and how many of its parameters a token
 * meets, as text or under the key `experts`. */

/* Of a model without experts: nothing, and null. */
void skep_experts_print(const struct skep_scenario *scenario, FILE *out);
void skep_experts_add_json(const struct skep_scenario *scenario, cJSON *root);
/* Which tokens a masked language model predicts. */
void skep_masking_print(const struct skep_scenario *scenario, FILE *out);
void skep_masking_add_json(const struct skep_scenario *scenario, cJSON *root);
/* Of a residual network. */
void skep_images_print(const struct skep_scenario *scenario, FILE *out);
void skep_images_add_json(const struct skep_scenario *scenario, cJSON *root);

/* describe_json.c: the part of `skep check --json` that says what was chosen: each fact that the text of `skep check` tells
 * above its tables, under a key of its own, whether it is as usual or not. tests/cli/check.sh holds the two together. */
void skep_describe_choices_json(const struct skep_scenario *scenario, cJSON *root);

/* describe_network.c: what `skep check` says of links that have more than bandwidth and latency, of sites' own uplinks, and
 * of the prices of traffic. Nothing where there is nothing to say. */
void skep_network_describe(const struct skep_topology *topology, FILE *out);
void skep_network_describe_json(const struct skep_topology *topology, cJSON *root); /* adds "network" */

/* describe_uncertain.c: which figures of the topology may be off, and whether a run draws them; nothing where there is none. */
void skep_uncertain_describe(const struct skep_scenario *scenario, FILE *out);
void skep_uncertain_describe_json(const struct skep_scenario *scenario, cJSON *root); /* adds "uncertain_figures" */

/* What traffic between places costs; nothing if no price is given. */
void skep_egress_describe(const struct skep_topology *topology, FILE *out);
void skep_egress_describe_json(const struct skep_topology *topology, cJSON *root); /* adds "egress" */

/* describe_ring.c: what `skep check` says of the order of the rings that sum gradients, and of their slowest hops. */

/* A line for each stage, where the order is by links. */
void skep_ring_print(const struct skep_scenario *s, FILE *out);
/* Adds `ring` to what is said of a stage; null where its members form no ring. */
void skep_ring_add_json(const struct skep_scenario *s, uint32_t stage, cJSON *object);

/* describe_step.c: the part of `skep check` that says what an optimizer step and the whole run are expected to take, as text
 * or under the key `expected`. */
void skep_describe_step(const struct skep_scenario *scenario, const struct skep_described_step *step, FILE *out);
/* NULL: null. */
void skep_describe_step_json(const struct skep_scenario *scenario, const struct skep_described_step *step, cJSON *root);

/* round_bytes.c: bytes that move in a round without losses, headers included: what describe.c prints. */
struct skep_round_visit { /* what a virtual stage (or stage) behind the first is sent, and sends back, for all microbatches */
	uint64_t in_bytes, out_bytes;
};

struct skep_round_visit skep_round_visit_bytes(const struct skep_scenario *scenario, uint32_t vstage);

/* Of the sums of a stage with so many workers; with fragments the mean of as many rounds as there are. */
uint64_t skep_round_reduction_bytes(const struct skep_scenario *scenario, uint32_t stage, uint32_t workers);

/* What the members of a stage are told of a tied table, by those of the other one or their own. */
uint64_t skep_round_tied_bytes(const struct skep_scenario *scenario, uint32_t stage, uint32_t workers);
