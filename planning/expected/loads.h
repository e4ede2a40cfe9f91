/* SPDX-License-Identifier: Apache-2.0
 *
 * loads.h - what a microbatch of the whole swarm asks of each device, way in and out, connection, line and site, in seconds,
 * under one allocation; and of these the stations at which microbatches queue. expected.c makes a step of them.
 *
 * Whose part of the microbatches is how large: in the first stage as they are dealt (core/directory/dealing.c), by speed or in
 * turn. Behind it a sender's wiring chooses (core/route/wiring.h). Uniform: equal parts. By throughput a sender gives worker j a
 * part by 1 / (what j computes + what a microbatch waits on the lines to j and back), by latency by 1 / (both and the way
 * itself), so parts differ from sender to sender and a worker's share is the sum of what all senders give it. Routed by the
 * trainer it is by what j computes alone. Fixed pipelines: pipeline p is worker p mod r of each stage of r.
 *
 * Called in this order: skep_loads_share_out(); then, for each question, skep_loads_clear(), skep_loads_carry..(),
 * skep_loads_list_stations().
 */
#pragma once

#include "planning/expected/expected.h"

enum skep_way { SKEP_WAY_FORWARD, SKEP_WAY_BACKWARD, SKEP_WAY_BOTH };

struct skep_station { /* what serves one message, or one pass, after the other, or shares itself among them */
	double load_s;
	enum skep_expected_bound bound;
	uint32_t from, to;
	double rest; /* of a service, that who comes finds still to be done; 1: it is shared among all that are there */
};

struct skep_ways {                 /* something of each that is no device */
	double *up, *down;         /* [workers] */
	double *there, *back;      /* [workers] the connection to the directory, and from it, with what it passes on */
	double *shared;            /* [places * places] */
	double *uplink, *downlink; /* [places] */
};

struct skep_loads { /* seconds for a microbatch of the swarm, or of a reduction */
	const struct skep_planning *p;
	const uint32_t *stage_of;
	uint32_t *count;    /* [stages] workers */
	double *share;      /* [workers] of its stage's microbatches; all 0 before skep_loads_share_out() */
	uint32_t *nth;      /* [workers] of its stage */
	uint32_t pipelines; /* fixed ones; 0: others, or none can be made of these workers */
	uint32_t *member;   /* [workers] of fixed pipelines: those of stage 0 by nth, then those of stage 1, .. */
	uint32_t *first;    /* [stages] where in `member` those of the stage begin */
	uint32_t *next;     /* [workers] in the ring of its stage */
	uint32_t *ring;     /* [workers] scratch */
	double *offered; /* [workers] of senders that choose by themselves: the sum of their weights for the next stage */
	struct skep_ways load;  /* seconds */
	struct skep_ways crowd; /* messages that one finds there; all 0 until swarm.c has counted them */
	double connection_s;    /* the most of any ordered pair of workers ... */
	uint32_t from, to;      /* ... which is this one */
	double *hop_s;          /* [stages] forwards from the stage to the next one, on the mean */
	double *forward_hop_s;  /* [stages] the same, of the passes */
	double *reduce_s;       /* [stages] its sum: reductions.c */
	double *gather_s;       /* [stages] of a step in shards what follows it, which is as long as its sum; else 0 */
	/* Fixed pipelines: what is left of the ways of the first stage's workers to the directory and back behind the passes, and
	 * with a barrier of the last stage's. */
	double ways_s;
	double cycle_s;  /* of all stages the longest from one sum to the next one, if that waits for nothing else */
	double travel_s; /* of one microbatch, there and back */
	double *until_s; /* [workers] wired by latency: until it has sent a microbatch back */
	double *own_s;   /* [workers] of the first stage: of that what is on its own ways */
	/* [workers] of the first stage, filled by swarm.c: microbatches that it may have in flight, that it may be given at a
	 * time, and that it is given; how long one waits for its device; how many a second are its own. */
	double *in_flight, *credit, *outstanding, *wait_s, *rate;
	double *way, *way_scratch;    /* [places] of swarm.c */
	struct skep_station *station; /* [5 * workers + places * places + 2 * places + 1] */
	double *queue;                /* the same: those that wait or are served */
	uint32_t stations;
	bool quick; /* sums by closed forms */
	/* The round looked at: stages with a period of at most so many rounds sum in it; 0: all do. */
	uint32_t every;
};

/* Asks something of an allocation's loads, shared out. False: no memory. What it cannot run so is not asked about. */
typedef void skep_loads_question(struct skep_loads *loads, struct skep_expected *ret);
bool skep_loads_ask(const struct skep_planning *planning, const uint32_t *stage_of, bool quick,
	skep_loads_question *question, struct skep_expected *ret);

/* The question of how long a step takes. After it, from when a worker has stepped until it has a pass of the next round to make:
 * a stage has its COMMIT when its own sum is done, and its first pass when all are and a microbatch has come. Who is near the
 * directory also hears of the round before others do, and in the first stage is heard before them. */
void skep_loads_step(struct skep_loads *loads, struct skep_expected *ret);
double skep_loads_head_s(const struct skep_loads *loads, uint32_t worker);

/* False: a stage has no worker, or one that cannot serve it. `weight` is scratch, [stages], all 0. */
bool skep_loads_share_out(struct skep_loads *loads, double *weight);
/* Where each sender chooses by itself, what the shares of the first stage make of those behind it. */
void skep_loads_hand_on(struct skep_loads *loads);

bool skep_loads_sums(const struct skep_loads *loads, uint32_t stage); /* in that round */

/* Fixed pipelines: the worker of a stage in one of them. */
uint32_t skep_loads_member(const struct skep_loads *loads, uint32_t pipeline, uint32_t stage);

uint32_t skep_loads_place(const struct skep_loads *loads, uint32_t worker);   /* of its machine, in the topology */
double skep_loads_compute_s(const struct skep_loads *loads, uint32_t worker); /* both passes of a microbatch */
double skep_loads_pass_s(const struct skep_loads *loads, uint32_t worker, enum skep_way way);
/* With periodic sync: a step of its own, and once in a round what it sums. 0: without. */
double skep_loads_inner_s(const struct skep_loads *loads, uint32_t worker);
double skep_loads_pseudo_s(const struct skep_loads *loads, uint32_t worker);
bool skep_loads_takes_part(const struct skep_loads *loads, uint32_t worker);
bool skep_loads_is_one_path(const struct skep_loads *loads);               /* each stage has one worker */
double skep_loads_up_s(const struct skep_loads *loads, uint32_t worker);   /* a message to the directory */
double skep_loads_down_s(const struct skep_loads *loads, uint32_t worker); /* one from it */
/* A message from worker i to j on empty links, without its delay. */
double skep_loads_message_s(const struct skep_loads *loads, uint32_t i, uint32_t j, double bytes);
/* Wired by latency, how long a microbatch takes depends on where it begins: fills until_s. False: wired otherwise. */
bool skep_loads_find_circles(struct skep_loads *loads);

void skep_loads_clear(struct skep_loads *loads);
/* A message of so many bytes from worker i to j, for so large a part of the microbatches. */
void skep_loads_carry(struct skep_loads *loads, uint32_t i, uint32_t j, double bytes, double part);
/* From worker to worker: activations of the stage to the next one, or gradients back. */
void skep_loads_carry_stage(struct skep_loads *loads, uint32_t stage, enum skep_way way);
void skep_loads_carry_all(struct skep_loads *loads); /* of a microbatch, by the plan's routing */

/* How long the lines from one place to another are busy with what is carried. */
double skep_loads_line_s(const struct skep_loads *loads, uint32_t from, uint32_t to);

/* All that have a load; with what devices do for passes that go this way, if `passes`. */
void skep_loads_list_stations(struct skep_loads *loads, bool passes, enum skep_way way);
const struct skep_station *skep_loads_busiest(const struct skep_loads *loads); /* NULL: there is none */

/* reductions.c: how long the sums of all stages take, at once, under one allocation. */

/* Of a round, with the tables of tied embeddings behind them: each stage's into loads->reduce_s, and the longest. Of a step in
 * shards that is the first half of a ring, and the other one, behind the step, is loads->gather_s. Clears the loads. */
double skep_reductions_s(struct skep_loads *loads);
/* From a worker to the next of its stage's ring: the delay of the hop, with what the directory takes longer for a segment of a
 * chunk that it passes on. After skep_reductions_s() of a ring. */
double skep_loads_ring_hop_s(const struct skep_loads *loads, uint32_t worker);
/* Of all hops of a stage's ring. */
struct skep_ring_hops {
	double sum_s, shortest_s;
};
struct skep_ring_hops skep_loads_ring_hops(const struct skep_loads *loads, uint32_t stage);

/* rehearsal.c: how long the sums of all stages take, transfer by transfer as core/collective/collective.h has them, on the
 * network of the topology. Who sends to whom decides what shares which line, which no closed form of a star knows: a
 * parameter server has all on its own lines, and of a tree in three homes two edges cross a router or all do.
 *
 * All stages begin at once. What devices do takes no time here. */

/* Can the pool's sums be played, and are they of few enough messages? The same for all allocations of a pool, so that what is
 * compared is expected in one way: with even stages. */
bool skep_rehearsal_short(const struct skep_planning *planning);

/* Fills reduce_s. False: no memory. */
bool skep_rehearsal_reduce(struct skep_loads *loads);

/* pipelines.c: how long the microbatches of a flush take in fixed pipelines, each of which has its own. */

/* Of `flush` microbatches of all pipelines, into trip_s, pace_s, bound, from, to, flow_s: of the pipeline that takes
 * longest. */
void skep_pipelines_flow(struct skep_loads *loads, struct skep_expected *expected, double flush);
/* From a FORWARD of the stage to the end of its BACKWARD there, in the pipeline in which that takes longest. */
double skep_pipelines_back_s(const struct skep_loads *loads, uint32_t stage);

/* swarm.c: how long the microbatches of a round take in a swarm, whose workers choose for each one where it goes next. */

/* Of `round` microbatches, into trip_s, pace_s, bound, from, to, flow_s and starved. Makes the shares of the first stage's
 * workers what they come to, and leaves the loads carried and listed with them. */
void skep_swarm_flow(struct skep_loads *loads, struct skep_expected *expected, double round);

/* The same of a model in a single stage. */
void skep_swarm_alone(struct skep_loads *loads, struct skep_expected *expected, double round);
