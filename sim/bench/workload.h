/* SPDX-License-Identifier: Apache-2.0
 *
 * workload.h - the workloads and their parameters. Hosts, flows and tasks are drawn from draw.h, seed 1. A flow is a
 * connection of its own (`streams: each`), as in the simulators that these makespans come from; in the workload swarm messages
 * of a pair take turns.
 *
 * P, a pipeline step: `stages` of `workers` each, 8 microbatches a worker; forward 2e13 flop, backward 4e13, `bytes` between
 * neighbouring stages; hosts of 1e14 flop/s behind 1.25e8 byte/s and 5 ms up and down, each times 0.5 to 1.5 if heterogeneous.
 * F, random flows over a heterogeneous star (1 ms a link, or 0.1 to 1.9 ms if uneven): `slots` chains of `each` flows of 1 to
 * 100 MB.
 * X, the same over a full matrix: 0.1 to 1.9 times 1.25e8 byte/s and 1 to 100 ms for every ordered pair.
 * R, a ring all-reduce of `bytes` among each of `rings` times `members` hosts in 2 (members - 1) steps.
 * PHOLD: `pending` events; each one that happens sets the next one of its place at random 1 to 2000 ticks later.
 * swarm: a step of the whole simulator, scheduler included, arithmetic off.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum skep_wire { SKEP_WIRE_PERM, SKEP_WIRE_RAND, SKEP_WIRE_IWRR }; /* who has microbatch m in stage s: pipeline.c */

struct skep_pipeline_work {
	bool heterogeneous, fifo; /* fifo: whatever is ready; else all forwards by number, then all backwards */
	enum skep_wire wire;
	uint32_t slow, preempt; /* intervals a host: at 0.05 of its speed; away, and what runs is lost */
	double trace_period_s;  /* from one interval to the next */
	uint32_t stages, workers;
	uint64_t bytes;
};

struct skep_flow_work {
	bool matrix;
	uint32_t hosts, slots, each;
	bool uneven; /* latencies, of a star; shares are then in proportion to 1 / latency */
};

struct skep_ring_work {
	uint32_t members, rings;
	uint64_t bytes;
	double bandwidth_Bps, latency_s; /* of a link */
	double tick_s;
};

struct skep_phold_work {
	uint32_t pending;
	uint64_t events;
};

struct skep_swarm_work {
	uint32_t workers, stages;
	uint32_t microbatches; /* of a round, for each worker of the first stage */
	uint32_t rounds;
	bool flows; /* reductions as one flow a link */
};

struct skep_bench_result {
	double makespan_s;
	uint64_t done; /* events, or tasks and transfers */
};

/* Each builds its world, runs it and frees it. False: no memory (swarm: or no scratch folder; says so on stderr). */
bool skep_bench_pipeline(const struct skep_pipeline_work *work, struct skep_bench_result *ret);
bool skep_bench_flow(const struct skep_flow_work *work, struct skep_bench_result *ret);
bool skep_bench_ring(const struct skep_ring_work *work, struct skep_bench_result *ret);
bool skep_bench_phold(const struct skep_phold_work *work, struct skep_bench_result *ret);
bool skep_bench_swarm(const struct skep_swarm_work *work, struct skep_bench_result *ret);
