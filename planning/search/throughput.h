/* SPDX-License-Identifier: Apache-2.0
 *
 * throughput.h - how long a step of training is expected to take with an allocation, by arithmetic on means: no queue, no
 * event. For searches, which ask a million times; the simulator has the last word.
 *
 * A round is M microbatches through S stages and back, then a reduction in each stage: of one step, or of `period` steps, over
 * which all is spread that happens once in a round.
 *
 *   share     x of a worker: its part of its stage's microbatches. A swarm that wires by throughput gives in proportion to
 *             speed; with uniform wiring, or in fixed pipelines, all of a stage get the same
 *   busy      seconds per microbatch that a worker must spend: the most of computing it, sending it (activations to the next
 *             stage, gradients to the one before: sums over whom they may go to, weighted by their shares, of bytes / rate) and
 *             receiving it, for a device computes, sends and receives side by side
 *   pace      of the pipeline: max over workers of x busy, seconds per microbatch of the whole swarm
 *   trip      of one microbatch, there and back: means over the stages of compute, plus delay + bytes / rate on the way
 *   flow      seconds from the first microbatch of a round to its last: trip + (M - 1) pace; and if no more than K are in
 *             flight, all first stages together or by what the directory has outstanding, at least M trip / K. In A flushes A
 *             times that of M / A
 *   reduction max over stages with n > 1 members of (2 n - 3) max(T, a + T / k) + a + T, T = V / (n b), a and b the mean delay
 *             and the slowest link of the ring in the order of the workers' numbers, k segments (Patarasuk, Yuan 2009; ring.h)
 *   step      of the round's steps each: flow + reduction, or their maximum where updates are delayed; with an overlap of n of
 *             the round's steps the maximum of n of them and the reduction, and the other steps; plus update, the longest
 *             of all; plus the ways to the directory and back between rounds: the longest of the first stage's, and the longest
 *             of all; over period
 *
 * Fixed pipelines: pipeline p is the p-th worker of every stage (core/schedule/fixed.c); sums over whom it may go to have one
 * member, and all stages must have equally many, or the cost is SKEP_NEVER.
 *
 * Memory may depend on how many serve each stage, since where there are few more is in flight for each: then `fits` is
 * asked, and what it refuses costs SKEP_NEVER. With `rent` the cost is what a step costs: its time, times what those
 * who take part cost a second, and what their traffic costs; so leaving a worker out may pay though a step takes longer.
 *
 * Where a loss is aimed at and replicas average what they learn, fewer of them may need fewer rounds: `rounds` has that.
 *
 * Not in it: contention of sites' uplinks, churn, in-flight limits of single workers, queues.
 *
 * Incremental: a worker keeps its sums over the stage before and after its own; a change touches those of four stages.
 */
#pragma once

#include "planning/search/allocation.h"

enum skep_shares { SKEP_SHARES_BY_SPEED, SKEP_SHARES_EQUAL, SKEP_SHARES_FIXED };

struct skep_throughput {
	const struct skep_links *links;
	uint32_t stages;
	enum skep_shares shares;
	const double *compute_s; /* [workers * stages] a microbatch forwards and backwards; INFINITY: cannot serve it */
	const double *update_s;  /* [workers * stages] the optimizer's step; NULL: 0 */
	/* [stages] of a microbatch that leaves the stage for the next one, and of its gradient that comes back; the last are
	 * ignored */
	const double *forward_bytes, *backward_bytes;
	const double *reduced_bytes; /* [stages] V of its reduction, as it travels */
	uint32_t ring_segments;      /* k; 0: by the rule of core/collective/ring.h with these bytes */
	uint64_t ring_latency_bytes;
	double microbatches; /* M / period: of a step, >= 1 */
	double flushes;      /* of a round, in which its microbatches are done, one after the other; 0 is 1 */
	double in_flight;    /* K in all of the swarm for each worker of the first stage; INFINITY: not limited */
	/* The most in all of the swarm, where stages have so many workers ([stages]); NULL: K is all that counts. */
	double (*outstanding)(const void *room, const uint32_t *workers);
	const double *directory_s; /* [workers] to the directory and back; NULL: 0 */
	double period;             /* steps from reduction to reduction, >= 1 */
	/* [workers + 1] with so many in the largest stage, how many times as many rounds it takes to what is aimed at: the cost
	 * is that of a step so many times; NULL: as many with any. */
	const double *rounds;
	bool delayed;
	double overlap; /* delayed: steps of a round beside which the sum of the one before goes on; the others wait. 0: all */
	const double *rent;   /* [workers] per second; NULL: time is what counts */
	double standing_rent; /* with rent, of machines that are paid for beside the workers, whatever these do */
	/* With rent, what a byte costs from place to place: [places * places], not a number: not known; NULL: nothing. */
	const double *egress_usd_per_B;
	/* With it, [places * places] from place to place: what a sender counts beside the speed of whom it sends to, and
	 * back; NULL: speed alone, or nothing. */
	const uint64_t *way_ns;
	const uint32_t *place; /* [workers], with it */
	uint32_t places;
	/* Can a worker of the type hold the stage if stages have so many workers ([stages])? NULL: as compute_s says. */
	bool (*fits)(void *room, uint32_t stage, uint32_t type, const uint32_t *workers);
	void *room;
	const uint32_t *type; /* [workers] below `types`, for `fits` */
	uint32_t types;
};

enum skep_bottleneck { SKEP_BOTTLENECK_COMPUTE, SKEP_BOTTLENECK_SEND, SKEP_BOTTLENECK_RECEIVE };

struct skep_throughput_stage {
	uint32_t workers;
	double pace_s;                   /* per microbatch of the swarm */
	enum skep_bottleneck bottleneck; /* of the worker that sets it ... */
	uint32_t slowest;                /* ... which is this one */
	double compute_s;                /* mean of a microbatch, weighted by shares */
	double travel_s;                 /* mean there and back to the next stage */
	double reduction_s;
	double update_s;    /* the longest */
	double directory_s; /* the longest way there and back */
	double rent;        /* of all its workers */
	double egress_usd; /* with prices of traffic and rent: of a step, to and from the next stage and of the reduction */
};

struct skep_throughput_parts {
	double step_s, flow_s;        /* of a step */
	double pace_s, trip_s;        /* of a microbatch */
	double reduction_s, update_s; /* once in a round */
	double outstanding;           /* in all of the swarm at most; 0: not limited */
	double turn_s;                /* ways to the directory and back between a round and the next one */
	uint32_t slowest_stage;       /* that sets the pace */
	bool starved;                 /* too few in flight: trip / K is above the pace */
};

size_t skep_throughput_size(const struct skep_throughput *throughput);
const struct skep_objective *skep_throughput_init(void *mem, const struct skep_throughput *throughput);

/* ret_stage [stages] */
struct skep_throughput_parts skep_throughput_explain(
	const struct skep_objective *cost, const uint32_t *stage_of, struct skep_throughput_stage *ret_stage);

/* The bound of `outstanding`, and the ways between rounds, of an allocation. `workers` [stages] of each stage. */
double skep_throughput_outstanding(const struct skep_throughput *throughput, const uint32_t *workers);
double skep_throughput_turn_s(const struct skep_throughput *throughput, double first_stage_s, double longest_s);

/* Of a round's steps on the mean, each of which takes so long by itself and its part of a sum so long. */
double skep_throughput_beside_s(const struct skep_throughput *throughput, double flow_s, double sum_s);

/* Fills flow_s, starved and step_s from the other times, with so many workers in the first stage. */
void skep_throughput_sum(
	const struct skep_throughput *throughput, uint32_t first_workers, struct skep_throughput_parts *parts);

/* The pace of one stage of the current allocation, by the tables as they are now: a search for cuts writes another
 * stage into them and asks. Neighbours share out their microbatches as they did when the allocation was made current.
 * pace_s SKEP_NEVER: a worker in it cannot serve it, or a link is missing. Memory is not asked about. Changes
 * nothing. */
struct skep_throughput_stage skep_throughput_measure(const struct skep_objective *cost, uint32_t stage);

/* A ring of n members, whose links are busy with a chunk for busy_s and have this mean delay: a hop takes as long as its chunk
 * or, where that is longer, as a segment and the delay (core/collective/ring.h). */
uint32_t skep_throughput_ring_segments(const struct skep_throughput *throughput, double chunk_bytes); /* of a chunk */
double skep_throughput_ring_s(
	const struct skep_throughput *throughput, double members, double chunk_bytes, double busy_s, double delay_s);
/* A reduce-scatter or an all-gather, which are its halves. */
double skep_throughput_half_ring_s(
	const struct skep_throughput *throughput, double members, double chunk_bytes, double busy_s, double delay_s);

/* Smooth stand-ins for struct skep_search, in `mem`. */
const double *skep_throughput_together(const struct skep_objective *cost);
const double *skep_throughput_along(const struct skep_objective *cost);
const double *skep_throughput_alone(const struct skep_objective *cost);
