/* SPDX-License-Identifier: Apache-2.0
 *
 * fault_mix.h - everything that one seed decides: the shape of the swarm, how long things take, and which faults happen.
 */
#pragma once

#include "core/scale/policy.h"
#include "tests/cluster/cluster.h"

#include <stdio.h>

enum weather_fault {
	WEATHER_DELAY,     /* a message takes much longer */
	WEATHER_REORDER,   /* messages of a link overtake each other */
	WEATHER_DUPLICATE, /* a message arrives two or three times */
	WEATHER_RETURN,    /* a message comes back to its sender */
	WEATHER_SLOW,      /* an operation takes much longer */
	WEATHER_LATE,      /* a timer fires late */
	WEATHER_STAGGER,   /* machines start at different times */
	WEATHER_KILL,      /* a process dies */
	WEATHER_RESTART,   /* a dead process is replaced by a newcomer */
	WEATHER_NOTICE,    /* a process is told that it will die, and dies */
	WEATHER_SUSPECT,   /* a live worker is suspected */
	WEATHER_PAUSE,     /* a machine gets no events for a while, then all of them */
	WEATHER_FAULTS
};

#define WEATHER_PLACES 3u
#define WEATHER_KINDS 3u /* of machines that a run asks for */
#define WEATHER_OUTAGES 2u
#define WEATHER_VALIDATED 40u

struct weather {
	uint64_t seed, random;
	struct skep_stage_plan stage[CLUSTER_STAGES];
	uint64_t bucket_first[CLUSTER_STAGES][CLUSTER_ELEMENTS];
	uint64_t vstage_bytes[CLUSTER_VSTAGES];
	uint32_t first_stage_of[CLUSTER_WORKERS];
	bool stands_by[CLUSTER_WORKERS];
	uint32_t in_flight_limit[CLUSTER_WORKERS], speed[CLUSTER_WORKERS];
	uint32_t place_of[CLUSTER_WORKERS];
	skep_time transfer_ns[WEATHER_PLACES * WEATHER_PLACES];
	uint32_t site_of[CLUSTER_WORKERS];
	uint64_t link_Bps[CLUSTER_WORKERS];
	uint32_t ring_order[CLUSTER_STAGES * CLUSTER_WORKERS], sum_every[CLUSTER_STAGES];
	struct skep_scale scale;
	struct skep_scale_kind kind[WEATHER_KINDS];
	uint32_t kind_of[CLUSTER_WORKERS], price_first[WEATHER_KINDS + 1];
	struct skep_price_at price_step[2 * WEATHER_KINDS];
	struct skep_plan plan;
	skep_time latency_ns, op_ns, quantum_ns, round_ns; /* round_ns: about what a quiet round takes */
	skep_time download_ns;                             /* a chunk of a stage's state takes up to so much longer */
	uint32_t slowness[CLUSTER_WORKERS];                /* times op_ns */
	skep_time abuse_ns, bound_ns;                      /* faults stop then; the run must be over then */
	uint32_t rate[WEATHER_FAULTS]; /* 0: off; per 1000 messages, operations or timers; or how often in all */
	uint64_t hits[WEATHER_FAULTS];
	uint32_t outages; /* of the directory */
	bool held;        /* and workers keep what they hold */
	skep_time lost_ns[WEATHER_OUTAGES], back_ns[WEATHER_OUTAGES];
	uint32_t infinite, unkept; /* per 1000 operations, and checkpoints: whose results are not finite, or not kept */
	skep_time link_last[CLUSTER_WORKERS + 1][CLUSTER_WORKERS + 1]; /* without reorder: the last arrival */
};

enum weather_kind {
	WEATHER_ANY,
	WEATHER_FIXED,
	WEATHER_PERIODIC,
	WEATHER_ASYNC,
	WEATHER_GOSSIP,
	WEATHER_TRIAL,
	WEATHER_VOID,
	WEATHER_WAIT
}; /* what every seed has, whatever it says */

const char *weather_fault_name(enum weather_fault fault);
void weather_flushes(
	struct weather *w); /* fault_mix_flushes.c: perhaps uneven stages, several in a round; what is in flight */
/* fault_mix_flushes.c: inner steps of fixed pipelines, of one to three flushes each. */
void weather_inner_flushes(struct weather *w, uint64_t random);
void weather_tie(struct weather *w);     /* fault_mix_tied.c: perhaps a tied table */
void weather_freeze(struct weather *w);  /* fault_mix_frozen.c: perhaps what is not trained */
void weather_thaw(struct weather *w);    /* all is */
void weather_shard(struct weather *w);   /* fault_mix_sharded.c: steps in shards, if the rest goes with that */
void weather_periods(struct weather *w); /* fault_mix_periods.c: each stage sums in one of so many rounds, if it can */
void weather_waves(struct weather *w);   /* fault_mix_waves.c: waves, if it has even pipelines without a flush */
void weather_scale(struct weather *w);   /* fault_mix_scale.c: asks for machines, if it is a swarm that can */
/* fault_mix_outage.c: the directory is lost, if the rest goes with that; and when, after cluster_begin. */
void weather_outage(struct weather *w);
void weather_lose(const struct weather *w, struct cluster *cluster);
/* Fixed pipelines even where the seed says swarm; periodic sync, asynchronous, in pairs or neither, or a trial, and a
 * swarm even where it says fixed. */
void weather_draw(struct weather *weather, uint64_t seed, bool calm, enum weather_kind kind);
void weather_standby(struct weather *weather); /* a part of that: which spares stand by */
void weather_limits(
	struct weather *weather); /* the same: how fast owners are expected to be, how many may be in flight */
void weather_policies(struct weather *weather); /* fault_mix_policies.c: moves, bans */
bool weather_faultless(const struct weather *weather);
void weather_validation(struct weather *weather); /* fault_mix_validation.c */
void weather_losses(
	struct weather *weather, enum weather_kind kind); /* fault_mix_losses.c: rounds that are void, or wait */
/* The run's setup: answers of the weather from its beginning. The machine is the caller's choice. */
struct setup weather_setup(struct weather *weather);
void weather_schedule(struct weather *weather, struct cluster *cluster); /* after cluster_begin */
void weather_print(const struct weather *weather, FILE *to);

/* async.c: rounds of inner steps, in which no worker waits for others. */
void weather_merges(struct skep_plan *plan, uint64_t random);
/* gossip.c: rounds of inner steps, at whose ends workers meet in pairs. */
void weather_pairs(struct skep_plan *plan);
