/* SPDX-License-Identifier: Apache-2.0
 *
 * split.h - a stage spread over more than one GPU's memory: over the GPUs of a machine (tensor parallel), over the machines that
 * serve it (ZeRO), and into the host's memory (offload). What each part has to do and how long it takes.
 *
 * ZeRO in several stages. What is decided: the workers of a stage, which train it data parallel, share its optimizer's state
 * among themselves and with no other stage, as in Megatron-LM's distributed optimizer. Stages may have different numbers of
 * workers; a shard of stage s is 1/n_s of it, and one worker alone has all. What is kept true:
 *   - The bytes of a stage's reduction are those of its reduce-scatter and its all-gather, 2 (n_s - 1) V_s and headers, which are
 *     its ring's; they are messages of the core, and the same in both worlds (core/worker/shards.c).
 *   - Memory, STEP, and what stage 2 of ZeRO reduces besides are by n_s, stage by stage; with one stage they are what they
 *     are with all workers.
 *   - A head that is tied to its embedding is not sharded: the first stage and the last one add up their sums of the whole table,
 *     of which a worker has one shard, and the shards of stages of different numbers of workers are not the same. Nor are
 *     interleaved stages, since a worker steps one range. Both are refused.
 */
#pragma once

#include <stdio.h>

#include "scenarios/read/scenario.h"

/* ---- reading: the keys cluster.worker_gpus, .tensor_parallel, .sequence_parallel; sync.zero; train.optimizer.offload ------ */

/* cluster.worker_gpus: of machines with several workers, which are machines of the topology from then on. False: an error. */
bool skep_split_read_parts(struct skep_reader *r, const struct skep_yaml_node *cluster, struct skep_topology *topology);
void skep_split_read_cluster(struct skep_reader *r, const struct skep_yaml_node *cluster, struct skep_scenario *s);
void skep_split_read_sync(struct skep_reader *r, const struct skep_yaml_node *sync, struct skep_scenario *s);
/* When all is read: sync.zero goes with nothing that needs a whole optimizer state in one worker, or other workers. */
void skep_split_check_zero(struct skep_reader *r, const struct skep_yaml_node *sync, const struct skep_scenario *s);
void skep_split_read_optimizer(struct skep_reader *r, const struct skep_yaml_node *optimizer, struct skep_scenario *s);

/* ---- what it amounts to ------------------------------------------------------------------------------------------- */

/* The GPUs that a worker on such a machine uses. */
struct skep_split skep_split_of(const struct skep_scenario *s, uint32_t gpu);

/* Workers that share the optimizer state of a stage, with ZeRO; else 1. */
uint32_t skep_split_owners(const struct skep_scenario *s, uint32_t stage);

/* What each GPU of such a machine does of the virtual stage (or stage, where that is one), with recomputation counted in. */
void skep_split_share(const struct skep_scenario *s, uint32_t gpu, uint32_t vstage, struct skep_cost *ret);

/* Adds to `time`, which has the arithmetic of each GPU, what moves between GPUs, hosts and machines. */
void skep_split_time(const struct skep_scenario *s, uint32_t gpu, uint32_t vstage, struct skep_op_time *time);

/* Of both passes of a microbatch: what goes over the link between the GPUs of such a machine. 0: a worker has one. */
double skep_split_inner_s(const struct skep_scenario *s, uint32_t gpu, uint32_t vstage);

/* What each GPU of such a machine sends over that link in a forward and a backward pass of a microbatch. */
void skep_split_inner_bytes(
	const struct skep_scenario *s, uint32_t gpu, uint32_t vstage, double *ret_forward, double *ret_backward);

/* Bytes of a round of one stage beside all messages, with so many workers: those that it has are sent skep_scenario_op_bytes() by
 * all of its passes there together, each by the worker that makes it, to the next one of the stage. */
uint64_t skep_split_round_bytes(const struct skep_scenario *s, uint32_t stage, uint32_t workers);

/* So many bytes of the whole worker moved through the memory that they lie in. */
enum skep_split_part { SKEP_PART_GRADIENT, SKEP_PART_STATE };
uint64_t skep_split_migrate_ns(const struct skep_scenario *s, uint32_t gpu, enum skep_split_part part, double bytes);
