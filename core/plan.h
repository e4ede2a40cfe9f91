/* SPDX-License-Identifier: Apache-2.0
 *
 * plan.h - the plan: what a scenario amounts to for the core, constant and shared by all machines. derived.h has the numbers that
 * core and worlds derive from it and must agree on.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/codec.h"
#include "core/weights.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- small values ------------------------------------------------------------------------------------------- */

typedef uint64_t skep_time; /* ns since the run began */
#define SKEP_TIME_NEVER UINT64_MAX
#define SKEP_NO_STAGE UINT32_MAX
#define SKEP_NO_INDEX UINT32_MAX

struct skep_peer {
	uint32_t index; /* worker 0 .. plan->workers-1; the directory is plan->workers */
	uint32_t epoch; /* grows each time the directory fences the worker or lets it join; a worker of the first
	                   allocation starts at 1, a spare at 0; the directory's is always 1 */
};

struct skep_buf { /* a tensor, owned by the world; {0, 0} is none */
	uint32_t slot, generation;
};

/* ---- the plan ------------------------------------------------------------------------------------------------- */

/* fixed: with the pipelines below that are fixed, and only with them; each worker has one partner in the next stage */
enum skep_wiring { SKEP_WIRING_UNIFORM, SKEP_WIRING_THROUGHPUT, SKEP_WIRING_LATENCY, SKEP_WIRING_FIXED };
/* How activations travel. peer: from worker to worker, gradients back along the forward path. trainer: through the
 * first-stage owner of the microbatch, who keeps each stage's input and sends it once more with the gradient, so that
 * the others keep nothing between the two visits (as in the code that SWARM was released with). */
enum skep_routing { SKEP_ROUTING_PEER, SKEP_ROUTING_TRAINER };
/* The order in which a worker does what it could do (schedule/order.h), and with what is not a swarm also who works with whom:
 * pipeline p is the p-th worker of every stage, and each pipeline is granted the same share of a round (fixed.c). Of 1F1B and
 * PipeDream stages may have unequal numbers of workers; skep_plan_pipelines() says who works with whom then. */
enum skep_pipeline {
	SKEP_PIPELINE_SWARM,
	SKEP_PIPELINE_GPIPE, /* all forwards of the share, then all backwards (GPipe, Huang et al. 2019) */
	SKEP_PIPELINE_1F1B, /* PipeDream-flush (Narayanan et al. 2021): stage s of K holds at most K - s microbatches */
	SKEP_PIPELINE_INTERLEAVED, /* 1F1B with `model_chunks` model chunks on each worker (the same, section 2.2) */
	SKEP_PIPELINE_PIPEDREAM, /* no flush (Narayanan et al. 2019): a round is one microbatch of each pipeline, several rounds
	                            are open, and a stage steps as soon as its sum of a round is there (no_flush.c) */
	SKEP_PIPELINES
};
enum skep_collective {        /* collective.h has what each does */
	SKEP_COLLECTIVE_RING, /* hop by hop, as messages and operations of the members, as all but the next */
	/* In the simulator alone: one ALLREDUCE of each member; the world does the hops of a ring between them. */
	SKEP_COLLECTIVE_FUSED,
	SKEP_COLLECTIVE_PARAMETER_SERVER,
	SKEP_COLLECTIVE_REDUCE_BROADCAST,
	SKEP_COLLECTIVE_ALL_TO_ALL,
	SKEP_COLLECTIVE_HALVING_DOUBLING,
	SKEP_COLLECTIVE_TREE,
	SKEP_COLLECTIVE_HIERARCHICAL,
	SKEP_COLLECTIVE_BUTTERFLY,
	SKEP_COLLECTIVE_CHAIN,
	SKEP_COLLECTIVES,
	/* No all-reduce: what rank 0 has comes to all, chunk by chunk from each to the next one. With `async` alone. */
	SKEP_COLLECTIVE_BROADCAST = SKEP_COLLECTIVES,
	/* The two halves of a ring, each by itself. With `sharded` alone. */
	SKEP_COLLECTIVE_REDUCE_SCATTER,
	SKEP_COLLECTIVE_ALL_GATHER,
	SKEP_COLLECTIVE_KINDS
};
enum skep_on_loss {
	SKEP_ON_LOSS_REPORT, /* a gradient that is lost is reported, a microbatch that did not come back is replaced by another */
	SKEP_ON_LOSS_RERUN, /* it is computed again, until every stage has counted every microbatch; not with `delayed` */
	/* The round is void: all throw away what they have counted, and begin it again with other microbatches; a flush alone,
	 * and no steps of a worker's own */
	SKEP_ON_LOSS_VOID,
	/* It is reported, and nothing is granted while a stage has fewer workers than at the start; a flush alone, not with
	 * candidates or moves */
	SKEP_ON_LOSS_WAIT,
	SKEP_ON_LOSSES
};

/* Activation checkpointing (`schedule.checkpoint_activations`): which stages keep their input alone and recompute. */
enum skep_checkpointing {
	SKEP_CHECKPOINTING_NONE,
	SKEP_CHECKPOINTING_WAITING, /* those in which a microbatch waits for its gradient: all but the last of a pipeline */
	SKEP_CHECKPOINTING_ALL,     /* the last one too, layer by layer, as Megatron-LM and the code of SWARM do */
};

enum skep_joins {
	SKEP_JOINS_NEEDED, /* a newcomer goes where it is needed most */
	SKEP_JOINS_RANDOM, /* to any stage, drawn at random; only a stage that waits for a worker comes first */
};

/* What the load of a stage is, that workers move to and newcomers go to where it is most (directory/rebalance.h). */
enum skep_rebalance_by {
	SKEP_REBALANCE_BY_RATE,  /* the time that all workers of the stage together need for a microbatch */
	SKEP_REBALANCE_BY_QUEUE, /* what waits at all of them, as in Algorithm 2 of SWARM */
};

/* When the sender of a microbatch chooses a worker no more that owes it an answer (worker/reissue.h). */
enum skep_ban {
	SKEP_BAN_DIRECTORY, /* when the directory says that it is gone */
	SKEP_BAN_AT_ONCE,   /* when the answer is late, as in Algorithm 1 of SWARM; with reissue_after_ns > 0 */
};

struct skep_stage_plan {
	uint64_t parameters; /* elements */
	/* Of these, so many at the beginning of the vector and at its end are not trained: they have no gradient, are in no sum,
	 * and no step changes them. */
	uint64_t frozen, frozen_end;
	/* As encoded, of one microbatch that leaves this stage forwards, and of the gradient that comes back; 0 for the
	 * last stage. */
	uint64_t activation_bytes;
	uint64_t state_bytes;  /* parameters and optimizer state, all chunks together: what a newcomer downloads */
	skep_time migrate_ns;  /* how long that is expected to take */
	uint32_t state_chunks; /* that it is downloaded in, at most `parameters`; 0 is 1. Chunk c holds the elements of
	                          skep_chunk_range(parameters, c, chunks) of the parameters and of every optimizer array */
	uint32_t buckets;      /* with `eager`, parts of the last BACKWARD of a round and of the sum; 0 is 1 */
	/* [buckets] the first element of each. Bucket 0 ends with what is trained, each other one where the one before begins,
	 * and the last begins with what is trained: as BACKWARD makes them. */
	const uint64_t *bucket_first;
	/* With `strided`, [fragments] the first element of each; the first one begins at 0, each other one where the one before
	 * ends. NULL: parts of equal length. */
	const uint64_t *fragment_first;
};

#define SKEP_SPEED_MAX 65536u

struct skep_price_at { /* from that time of the run on, until the next one; the first one of a machine is at 0 */
	uint64_t from_ms, microusd_per_h;
};

struct skep_plan {
	uint32_t workers;      /* number of workers, >= stages */
	uint32_t stages;       /* number of stages, >= 1 */
	uint32_t samples;      /* per microbatch, >= 1 */
	uint32_t microbatches; /* per round, at most: it closes when skep_plan_quota() of them have finished */
	uint32_t rounds;       /* the run ends after this number of rounds, those before first_round included */
	/* The round that the run begins with. Workers load the state of their stages as of the start of this round from
	 * the checkpoints of an earlier run. 0: parameters are drawn from the seed. */
	uint32_t first_round;
	uint64_t seed;
	const struct skep_stage_plan *stage; /* [stages] */
	const uint32_t *first_stage_of;      /* [workers] stage at the start, SKEP_NO_STAGE for a spare */
	enum skep_on_loss on_loss;
	enum skep_joins joins;
	uint32_t checkpoint_every; /* rounds between the checkpoints of a stage; 0: there are none */
	/* [workers] a standby: it is given a stage only while fewer workers have one than at the start (boundary.c).
	 * NULL: none is, so a spare joins as soon as it can. Not with fixed pipelines. */
	const bool *stands_by;
	const struct skep_scale *scale; /* machines that it asks for (scale/policy.h); NULL: none */

	/* How microbatches travel. */
	enum skep_wiring wiring;
	enum skep_routing routing;
	enum skep_pipeline pipeline;
	/* Microbatches that one first-stage worker keeps in the pipeline, on the mean of them, >= 1. */
	uint32_t in_flight;
	/* [workers] expected speed in the first stage, from 1 to SKEP_SPEED_MAX, of which only ratios count: what a swarm deals
	 * by before it has heard how long passes take. NULL: all alike. */
	const uint32_t *speed;
	/* Wired by throughput or latency, a swarm deals by speed in the first stage too: a fast worker has more in flight than
	 * a slow one. [workers] the most that each may have, >= in_flight; NULL: in_flight, whatever its speed. */
	const uint32_t *in_flight_limit;
	uint32_t in_flight_most;              /* the largest of these; 0: in_flight */
	struct skep_plan_places {             /* where workers are, for wiring by latency */
		uint32_t count;               /* endpoints of transfer_ns; 0: not wired by latency */
		const uint32_t *of;           /* [workers] index of a worker's place */
		const skep_time *transfer_ns; /* [count * count] time of a microbatch's activations; row = source */
	} places;
	/* SKEP_PIPELINE_INTERLEAVED: the model is cut into model_chunks * stages virtual stages, and stage s holds the
	 * virtual stages s, s + stages, ... A microbatch passes the pipeline once for each model chunk. 0 is 1. */
	uint32_t model_chunks;
	const uint64_t *vstage_bytes; /* [model_chunks * stages] activation_bytes of each; NULL: those of its stage */
	/* gpipe, 1f1b, interleaved: flushes in a round (`schedule.accumulate`). A pipeline does its share in so many equal
	 * parts, and the first stage issues nothing of the next one before all of the last one has come back, so that
	 * activations of one part alone are kept. Gradients add up; the sum and the step follow the last part. 0 is 1. Not
	 * with `barrier`. */
	uint32_t accumulate;
	bool recompute; /* activation checkpointing: FORWARD keeps no stash and is repeated before BACKWARD; gpipe alone */
	bool barrier; /* gpipe: no backward pass begins before all pipelines have done their forward passes */
	/* Virtual stages, from the first one on, of which nothing is trained: they keep nothing for BACKWARD, which has nothing
	 * to do there, and are sent no gradient but word of it. Not with SKEP_ROUTING_TRAINER. */
	uint32_t frozen_vstages;
	struct skep_plan_rebalance { /* workers that move to another stage */
		enum skep_rebalance_by by;
		skep_time period_ns;  /* in which one worker may migrate; 0: none does */
		skep_time horizon_ns; /* a migration must pay for itself within this time; 0: no such condition */
	} rebalance;

	struct skep_plan_liveness { /* when a worker or an answer counts as lost */
		/* Period of a worker's test whether it has sent the directory anything within the last half of it. */
		skep_time heartbeat_ns;
		skep_time fence_after_ns; /* a worker that is silent for this time is fenced; at least 2 heartbeats */
		/* A microbatch that has been with another worker for so long is asked back; 0: never. */
		skep_time reissue_after_ns;
		enum skep_ban ban;
		/* That a stage without workers waits for one before the run fails; 0: it fails at once. */
		skep_time wait_for_join_ns;
	} liveness;

	struct skep_plan_until {          /* with which round the run ends, if not with the last one */
		int64_t target_loss_nano; /* the mean loss of a round, or where there are validations of one of these, is at most
		                             this (1e-9 units); INT64_MIN: never */
		skep_time end_ns;         /* it closes then or later; 0: never */
		uint64_t budget_microusd; /* the machines have cost so much when it closes, 1e-6 USD; 0: never */
	} until;
	/* For until.budget_microusd and `scale`: worker w pays the steps [first[s], first[s + 1]) of step, s = of[w] */
	struct skep_plan_price {
		const uint32_t *of, *first; /* NULL: not known */
		const struct skep_price_at *step;
	} price;
	struct skep_plan_validation { /* microbatches of which only the loss is taken (skep.h) */
		/* Rounds between validations, one more follows the last; 0: there are none. Not without a flush. */
		uint32_t every;
		uint32_t microbatches; /* in each validation; >= 1 if there are any */
	} validation;

	/* How gradients become a step. */
	bool delayed; /* a round uses the parameters of one step earlier: it is open while the one before is reduced */
	bool eager; /* with gpipe and 1f1b: REDUCE is sent when a round opens, and a worker begins when its share is counted */
	bool clip;     /* clip by the norm of all gradients, which every stage's step waits for; not without a flush */
	bool together; /* no stage steps before all have their sums (agreement.c); not without a flush, nor with `async` */
	/* A table of so many elements of which the first stage and the last one each hold a copy, at the beginning of the one's
	 * vector and at the end of the other's; both make the same step on it (tied_embeddings.c). 0: none. With two stages or
	 * more; not without a flush, nor in fragments, nor with `async`. */
	uint64_t tied;
	/* ZeRO stage 1 (worker/shards.c): each member of a stage steps a shard of its vector, and has the state of that alone.
	 * With SKEP_COLLECTIVE_RING and a flush or `delayed`. Members stay the same: with the first one lost the run fails. */
	bool sharded;
	struct skep_plan_reduction { /* the sum of a stage's members */
		enum skep_collective collective;
		enum skep_codec codec; /* of its chunks */
		/* [stages] enum skep_codec: that of what the stage reduces. NULL: `codec`, in all of them. The two that hold a
		 * tied table have the same one: each decodes what the other has summed. With `gossip` none of them encodes. */
		const uint8_t *codecs;
		uint32_t block; /* of any codec: elements with a scale in common (core/codec.h) */
		/* Chunks of the vector of a tree, a chain or a broadcast, or of a butterfly's shard; segments of a ring's chunk.
		 * 0: the default number, with a ring by the rule in ring.h, with the most bytes that any link carries during
		 * its latency. */
		uint32_t chunks;
		uint64_t latency_bytes;
		/* [stages * workers] for each stage all workers, each once: its members follow each other in that order. A worker
		 * that joins has a place in it, and one that leaves changes it for no other. NULL: by their indices. */
		const uint32_t *order;
		const uint32_t *site_of;  /* [workers] SKEP_COLLECTIVE_HIERARCHICAL; NULL: all at one site */
		const uint64_t *link_Bps; /* [workers] bytes per second, SKEP_COLLECTIVE_BUTTERFLY; NULL: all equal */
		/* Parts are not summed as they come, but gathered where a sum would have been made, and made one by an AGGREGATE
		 * when all are there: with collectives that bring them there (skep_collective_gathers()), one chunk. */
		bool gather;
	} reduction;

	struct skep_plan_no_flush { /* SKEP_PIPELINE_PIPEDREAM */
		enum skep_weights weights;
		/* SKEP_WEIGHTS_WAVES: waves beyond one that not all have done, at most SKEP_DISTANCE_MAX. */
		uint32_t distance;
		uint32_t synchronous; /* in so many rounds at the start of training passes lack no step */
	} no_flush;

	/* Periodic sync (periodic.c): inner steps that a worker makes by itself, before the members reduce pseudo-gradients */
	struct skep_plan_inner {
		/* In a round; 0: a round is one step of all, and nothing else here counts. With fixed pipelines, gpipe and 1f1b,
		 * `accumulate` is a multiple, and so are a share's microbatches; not delayed, by_share or gossip, no cycle. */
		uint32_t steps;
		uint32_t fragments; /* parts of the vector, one of which is reduced each round; 0 is 1: all of it */
		/* With fragments P: inner steps H from one turn of a fragment to its next. Round r sums behind step
		 * floor((r % P + 1) H / P) of its cycle, so `steps` is ceil(H / P), and some rounds have one less, with fewer
		 * microbatches. Not below P; 0 is P * steps. */
		uint32_t cycle;
		bool strided;              /* fragment f has the layers f, f + fragments, .. of its stage */
		const uint32_t *sum_every; /* [stages] in one of how many rounds a stage sums (sums.h); NULL: in each */
		/* Delayed: inner steps of the next round before STEP. At least, or with `deadline` just so many: a worker that
		 * has made them waits for STEP. */
		uint32_t overlap;
		bool deadline;
		bool by_share; /* a worker steps when it has counted its part of a step, so a fast one more often than a slow one;
		                  else with the round's progress, all about equally often */
		/* By the round's progress, and owners are dealt microbatches in turn, whatever their speed: each makes just
		 * `steps`. An inner step has a microbatch for each owner at least. */
		bool fixed;
	} inner;
	/* Periodic sync: members sum in pairs that are drawn anew in each round, and hold different parameters (gossip.c).
	 * Neither delayed nor in fragments, not with inner.by_share, gather, SKEP_ON_LOSS_RERUN, a tied table or
	 * candidates; sums are not encoded. */
	bool gossip;
	struct skep_plan_async { /* no worker waits for others */
		/* Periodic sync, with `delayed` and SKEP_COLLECTIVE_BROADCAST, or `gather`: each one's pseudo-gradient is an
		 * outer step of its own, in every member of the stage (async.c): after inner.steps steps of its own, or with
		 * inner.by_share once in the time of a round, however many steps it has made by then. */
		bool on;
		bool waits; /* a worker makes no pass between PSEUDO_GRAD and the STEP of that update */
		/* With `gather`, and a collective that does so: an outer update is made of the parts of so many workers, as soon
		 * as they are announced, or of fewer at the end of a round (async.c). Not with `waits`. */
		uint32_t group_size;
	} async;
	struct skep_plan_candidates { /* parallel random initialisation (candidates.c), in a swarm whose rounds do not overlap */
		/* Sets of first parameters, each trained by a part of the workers, of which one is kept; 0 is 1: none. */
		uint32_t count;
		uint32_t rounds; /* that they are trained for, >= 2 and fewer than those of the run */
	} candidates;
};

#ifdef __cplusplus
}
#endif
