/* SPDX-License-Identifier: Apache-2.0
 *
 * plan.h - the plan: what a scenario amounts to for the core, constant and shared by all machines; and the numbers that core and
 * worlds derive from it and must agree on.
 */
#pragma once

#include <assert.h>
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
	SKEP_BAN_AT_ONCE,   /* when the answer is late, as in Algorithm 1 of SWARM; with reissue_timeout_ns > 0 */
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
	uint32_t
		in_flight; /* microbatches that one first-stage worker keeps in the pipeline, on the mean of them, >= 1 */
	/* [workers] expected speed in the first stage, from 1 to SKEP_SPEED_MAX, of which only ratios count: what a swarm deals
	 * by before it has heard how long passes take. NULL: all alike. */
	const uint32_t *speed;
	/* Wired by throughput or latency, a swarm deals by speed in the first stage too: a fast worker has more in flight than
	 * a slow one. [workers] the most that each may have, >= in_flight; NULL: in_flight, whatever its speed. */
	const uint32_t *in_flight_limit;
	uint32_t in_flight_most; /* the largest of these; 0: in_flight */
	uint32_t rounds;         /* the run ends after this number of rounds, those before first_round included */
	/* The round that the run begins with. Workers load the state of their stages as of the start of this round from
	 * the checkpoints of an earlier run. 0: parameters are drawn from the seed. */
	uint32_t first_round;
	uint64_t seed;
	enum skep_wiring wiring;
	enum skep_routing routing;
	enum skep_pipeline pipeline;
	enum skep_weights weights;
	uint32_t distance; /* SKEP_WEIGHTS_WAVES: waves beyond one that not all have done, at most SKEP_DISTANCE_MAX */
	uint32_t synchronous; /* without a flush: in so many rounds at the start of training passes lack no step */
	enum skep_collective collective;
	enum skep_codec reduction_codec; /* of the chunks of a reduction */
	/* [stages] enum skep_codec: that of what the stage reduces. NULL: `reduction_codec`, in all of them. The two that hold a
	 * tied table have the same one: each decodes what the other has summed. With `gossip` none of them encodes. */
	const uint8_t *reduction_codecs;
	uint32_t reduction_block; /* of any codec: elements with a scale in common (core/codec.h) */
	enum skep_on_loss on_loss;
	enum skep_joins joins;
	enum skep_rebalance_by rebalance_by;
	enum skep_ban ban;
	bool recompute; /* activation checkpointing: FORWARD keeps no stash and is repeated before BACKWARD; gpipe alone */
	bool delayed; /* a round uses the parameters of one step earlier: it is open while the one before is reduced */
	skep_time rebalance_ns;         /* the period in which one worker may migrate; 0: none does */
	skep_time rebalance_horizon_ns; /* a migration must pay for itself within this time; 0: no such condition */
	/* Period of a worker's test whether it has sent the directory anything within the last half of it. */
	skep_time heartbeat_ns;
	skep_time fence_after_ns; /* a worker that is silent for this time is fenced; at least 2 heartbeats */
	skep_time
		reissue_timeout_ns; /* a microbatch that has been with another worker for so long is asked back; 0: never */
	/* The time that a stage without workers waits for one before the run fails; 0: it fails at once. */
	skep_time wait_for_join_ns;
	uint32_t checkpoint_every; /* rounds between the checkpoints of a stage; 0: there are none */
	int64_t target_loss_nano; /* stop when the mean loss of a round, or where there are validations of one of these, is
	                             at most this (1e-9 units); INT64_MIN: never */
	skep_time end_ns;         /* stop with the first round that closes then or later; 0: never */
	/* Stop with the first round that closes when the machines have cost so much, 1e-6 USD; 0: never. And for `scale`:
	 * worker w pays the steps [price_first[s], price_first[s + 1]) of price_step, s = price_of[w]. NULL: not known. */
	uint64_t budget_microusd;
	const uint32_t *price_of, *price_first;
	const struct skep_price_at *price_step;
	const struct skep_stage_plan *stage; /* [stages] */
	const uint32_t *first_stage_of;      /* [workers] stage at the start, SKEP_NO_STAGE for a spare */
	uint32_t places;                     /* endpoints of transfer_ns, for wiring by latency, else 0 */
	const uint32_t *place_of;            /* [workers] index of its place */
	const skep_time *transfer_ns;        /* [places * places] time of a microbatch's activations; row = source */
	/* Chunks of the vector of a tree, a chain or a broadcast, or of a butterfly's shard; segments of a chunk of a ring.
	 * 0: the default number, with a ring by the rule in ring.h, with the most bytes that any link carries during its
	 * latency. */
	uint32_t sync_chunks;
	uint64_t ring_latency_bytes;
	/* [stages * workers] for each stage all workers, each once: its members follow each other in that order when they sum.
	 * A worker that joins has a place in it, and one that leaves changes it for no other. NULL: by their indices. */
	const uint32_t *ring_order;
	const uint32_t *site_of;  /* [workers] SKEP_COLLECTIVE_HIERARCHICAL; NULL: all at one site */
	const uint64_t *link_Bps; /* [workers] bytes per second, SKEP_COLLECTIVE_BUTTERFLY; NULL: all equal */
	bool barrier; /* gpipe: no backward pass begins before all pipelines have done their forward passes */
	bool clip;    /* clip by the norm of all gradients, which every stage's step waits for; not without a flush */
	bool together; /* no stage steps before all have their sums (agreement.c); not without a flush, nor with `async` */
	bool eager; /* with gpipe and 1f1b: REDUCE is sent when a round opens, and a worker begins when its share is counted */
	/* SKEP_PIPELINE_INTERLEAVED: the model is cut into model_chunks * stages virtual stages, and stage s holds the
	 * virtual stages s, s + stages, ... A microbatch passes the pipeline once for each model chunk. 0 is 1. */
	uint32_t model_chunks;
	/* gpipe, 1f1b, interleaved: flushes in a round (`schedule.accumulate`). A pipeline does its share in so many equal
	 * parts, and the first stage issues nothing of the next one before all of the last one has come back, so that
	 * activations of one part alone are kept. Gradients add up; the sum and the step follow the last part. 0 is 1. Not
	 * with `barrier`. */
	uint32_t accumulate;
	const uint64_t *vstage_bytes; /* [model_chunks * stages] activation_bytes of each; NULL: those of its stage */
	/* Periodic sync (periodic.c): inner steps in a round. A worker makes them by itself, and the members reduce their
	 * pseudo-gradients. 0: a round is one step of all. With fixed pipelines, gpipe and 1f1b, `accumulate` is a multiple,
	 * and so are the microbatches of a share; neither delayed, inner_by_share nor gossip, and no inner_cycle. */
	uint32_t inner_steps;
	uint32_t fragments; /* the same: parts of the vector, one of which is reduced each round; 0 is 1: all of it */
	/* With fragments P: inner steps H from one turn of a fragment to its next. Round r sums behind step
	 * floor((r % P + 1) H / P) of its cycle, so `inner_steps` is ceil(H / P), and some rounds have one less, with fewer
	 * microbatches. Not below P; 0 is P * inner_steps. */
	uint32_t inner_cycle;
	bool strided;              /* the same: fragment f has the layers f, f + fragments, .. of its stage */
	const uint32_t *sum_every; /* [stages] in one of how many rounds a stage sums (sums.h); NULL: in each */
	/* The same, delayed: inner steps of the next round before STEP. At least, or with `inner_deadline` just so many: a worker
	 * that has made them waits for STEP. */
	uint32_t inner_overlap;
	bool inner_deadline;
	bool inner_by_share; /* a worker steps when it has counted its part of a step, so a fast one more often than a slow one;
	                        else with the round's progress, all about equally often */
	/* By the round's progress, and owners are dealt microbatches in turn, whatever their speed: each makes just
	 * `inner_steps`. An inner step has a microbatch for each owner at least. */
	bool inner_fixed;
	/* The same: members sum in pairs that are drawn anew in each round, and hold different parameters (gossip.c).
	 * Neither delayed nor in fragments, not with inner_by_share, gather, SKEP_ON_LOSS_RERUN, a tied table or
	 * candidates; sums are not encoded. */
	bool gossip;
	uint32_t
		validate_every; /* rounds between validations (skep.h), one more follows the last round; 0: there are none.
	                            Not without a flush */
	uint32_t validate_microbatches; /* in each validation; >= 1 if there are any */
	/* The parts of a reduction are not summed as they come, but gathered where a sum would have been made, and made one by
	 * an AGGREGATE when all are there: with collectives that bring them there (skep_collective_gathers()), one chunk. */
	bool gather;
	/* Periodic sync, with `delayed` and SKEP_COLLECTIVE_BROADCAST, or `gather`: no worker waits for others. Each one's
	 * pseudo-gradient is an outer step of its own, in every member of the stage (async.c): after `inner_steps` steps of its
	 * own, or with `inner_by_share` once in the time of a round, however many steps it has made by then. */
	bool async;
	/* Parallel random initialisation (candidates.c), in a swarm whose rounds do not overlap: so many sets of first parameters
	 * are each trained by a part of the workers for `candidate_rounds` rounds, >= 2 and fewer than `rounds`, and one is kept.
	 * 0 is 1: none. */
	uint32_t candidates;
	uint32_t candidate_rounds;
	/* [workers] a standby: it is given a stage only while fewer workers have one than at the start (boundary.c).
	 * NULL: none is, so a spare joins as soon as it can. Not with fixed pipelines. */
	const bool *stands_by;
	bool async_waits; /* async: a worker makes no pass between PSEUDO_GRAD and the STEP of that update */
	/* async with `gather`, and a collective that does so: an outer update is made of the parts of so many workers,
	 * as soon as they are announced, or of fewer at the end of a round (async.c). Not with async_waits. */
	uint32_t group_size;
	/* A table of so many elements of which the first stage and the last one each hold a copy, at the beginning of the one's
	 * vector and at the end of the other's; both make the same step on it (tied_embeddings.c). 0: none. With two stages or
	 * more; not without a flush, nor in fragments, nor with `async`. */
	uint64_t tied;
	/* Virtual stages, from the first one on, of which nothing is trained: they keep nothing for BACKWARD, which has nothing
	 * to do there, and are sent no gradient but word of it. Not with SKEP_ROUTING_TRAINER. */
	uint32_t frozen_vstages;
	/* ZeRO stage 1 (worker/shards.c): each member of a stage steps a shard of its vector, and has the state of that alone.
	 * With SKEP_COLLECTIVE_RING and a flush or `delayed`. Members stay the same: with the first one lost the run fails. */
	bool sharded;
	const struct skep_scale *scale; /* machines that it asks for (scale/policy.h); NULL: none */
};

/* ---- what is derived from it ---------------------------------------------------------------------------------- */

/* First chunk element and length of chunk `chunk` of `size` over `parameters` elements; worlds and core must agree. */
void skep_chunk_range(uint64_t parameters, uint32_t chunk, uint32_t size, uint64_t *ret_first, uint64_t *ret_count);

/* Elements of a stage's vector that are trained, and so have gradients and are summed. */
static inline uint64_t skep_plan_trained(const struct skep_plan *plan, uint32_t stage)
{
	const struct skep_stage_plan *s = &plan->stage[stage];
	assert(stage < plan->stages && s->frozen + s->frozen_end <= s->parameters);
	return s->parameters - s->frozen - s->frozen_end;
}

/* Is nothing trained in this virtual stage, nor in any before it? */
static inline bool skep_plan_is_frozen(const struct skep_plan *plan, uint32_t vstage)
{
	return vstage < plan->frozen_vstages;
}

/* Chunks that the state of a stage is downloaded in, and bytes of one of them. */
#define SKEP_STATE_HEADER_BYTES 32u /* of each chunk */
uint32_t skep_state_chunks(const struct skep_plan *plan, uint32_t stage);
uint64_t skep_state_chunk_bytes(const struct skep_plan *plan, uint32_t stage, uint32_t chunk);
/* With `sharded`: the elements of a stage's vector that rank `rank` of `size` members steps, which are those of the chunk that it
 * has when a ring's reduce-scatter is done (collective/ring.h). Without, or of one member: all that is trained. */
void skep_plan_shard(const struct skep_plan *plan, uint32_t stage, uint32_t rank, uint32_t size, uint64_t *ret_first,
	uint64_t *ret_count);
/* So many (without `sharded` 1); the number of a shard's state among those of all stages, and how many; a worker's first rank. */
uint32_t skep_plan_shards(const struct skep_plan *plan, uint32_t stage);
uint32_t skep_plan_part(const struct skep_plan *plan, uint32_t stage, uint32_t rank);
uint32_t skep_plan_parts(const struct skep_plan *plan);
uint32_t skep_plan_first_rank(const struct skep_plan *plan, uint32_t worker);

/* The worker in place `nth`, below plan->workers, of the order in which the members of a stage follow each other. */
static inline uint32_t skep_plan_in_ring(const struct skep_plan *plan, uint32_t stage, uint32_t nth)
{
	assert(stage < plan->stages && nth < plan->workers);
	return plan->ring_order ? plan->ring_order[(size_t)stage * plan->workers + nth] : nth;
}

/* Most workers that a stage may have at a time, so members of a reduction, whichever workers come and go. Where
 * newcomers go to those that have the fewest, only the first allocation can make a stage larger than the average: the
 * directory sees to that. */
uint32_t skep_stage_size_max(const struct skep_plan *plan);

/* Workers of another stage that one worker knows at most, to choose among (wiring.h). */
uint32_t skep_view_capacity(const struct skep_plan *plan);

/* How long the activations of a microbatch are expected to take from one worker to another; 0 where the plan does not say. */
skep_time skep_plan_transfer_ns(const struct skep_plan *plan, uint32_t from, uint32_t to);

/* Parts in which a stage's gradients are made and summed, and the elements of one of them. */
uint32_t skep_plan_buckets(const struct skep_plan *plan, uint32_t stage);
void skep_plan_bucket(
	const struct skep_plan *plan, uint32_t stage, uint32_t bucket, uint64_t *ret_first, uint64_t *ret_count);

/* The version of the parameters that a round works on: its own, or with delayed updates that of one step earlier. Not with
 * rounds without a flush: there FORWARD takes the newest at hand. */
uint32_t skep_plan_version(const struct skep_plan *plan, uint32_t round);
/* The version of the parameters that a run begins with. With `async` versions count the outer updates of this run. */
static inline uint32_t skep_plan_first_version(const struct skep_plan *plan)
{
	return plan->async ? 0 : plan->first_round;
}

/* The epoch of a machine's first process: 0 for a spare, which holds nothing. */
static inline uint32_t skep_plan_first_epoch(const struct skep_plan *plan, uint32_t index)
{
	assert(index <= plan->workers); /* the directory has the last one */
	return index == plan->workers || plan->first_stage_of[index] != SKEP_NO_STAGE;
}

/* The codec of the chunks of the reductions of a stage, or of the one that a virtual stage is part of; is that of any stage other
 * than `none`; has that of any stage scales, each for several elements? */
enum skep_codec skep_plan_codec(const struct skep_plan *plan, uint32_t stage);
bool skep_plan_compresses(const struct skep_plan *plan);
bool skep_plan_has_scales(const struct skep_plan *plan);
/* Bytes of so many elements of a stage that a reduction sends in one message. */
uint64_t skep_plan_encoded_bytes(const struct skep_plan *plan, uint32_t stage, uint64_t elements);

/* Is stage `stage` visited twice, forwards and backwards, and told its input both times? */
static inline bool skep_plan_visits_twice(const struct skep_plan *plan, uint32_t stage)
{
	return plan->routing == SKEP_ROUTING_TRAINER && stage > 0 && stage + 1 < plan->stages;
}

/* ---- rounds without a flush (SKEP_PIPELINE_PIPEDREAM) ------------------------------------------------------------- */

static inline bool skep_plan_no_flush(const struct skep_plan *plan)
{
	return plan->pipeline == SKEP_PIPELINE_PIPEDREAM;
}

/* Versions of the parameters that a worker of the stage keeps, version v where v - skep_plan_versions() was: 1, with delayed
 * updates 2 (with periodic sync 1, since passes read the inner ones), and one more than the staleness without a flush if
 * versions wait there for BACKWARD, else 1. */
uint32_t skep_plan_versions(const struct skep_plan *plan, uint32_t stage);

/* Rounds that may be open at once, without a flush; and of how many a listener keeps what it hears, since word of one may be
 * late. */
uint32_t skep_plan_window(const struct skep_plan *plan);
static inline uint32_t skep_plan_heard(const struct skep_plan *plan)
{
	return skep_plan_no_flush(plan) ? 2 * skep_plan_window(plan) : 2;
}

/* ---- periodic sync ------------------------------------------------------------------------------------------------ */

static inline bool skep_plan_periodic(const struct skep_plan *plan)
{
	return plan->inner_steps > 0;
}

/* Is a STEP made beside the next round's passes? Else on their lane: with periodic sync it changes what they read. */
static inline bool skep_plan_steps_beside(const struct skep_plan *plan)
{
	return plan->delayed && !skep_plan_periodic(plan);
}

/* What a round sums and steps, of a stage's vector: the elements of bucket `bucket`, or of the round's fragment. */
void skep_plan_range(const struct skep_plan *plan, uint32_t stage, uint32_t round, uint32_t bucket, uint64_t *ret_first,
	uint64_t *ret_count);

static inline uint32_t skep_plan_fragments(const struct skep_plan *plan)
{
	return plan->fragments > 1 ? plan->fragments : 1;
}

/* Microbatches of one inner step, by all workers of a stage together. */
static inline uint32_t skep_plan_inner_batch(const struct skep_plan *plan)
{
	assert(plan->inner_steps > 0);
	uint32_t batch = plan->microbatches / plan->inner_steps;
	return batch > 0 ? batch : 1;
}

/* Optimizer steps of a round, at most, of all rounds before one, and on the mean; 1 for each round without periodic sync. */
uint32_t skep_plan_steps(const struct skep_plan *plan, uint32_t round);
static inline uint32_t skep_plan_most_steps(const struct skep_plan *plan)
{
	return skep_plan_periodic(plan) ? plan->inner_steps : 1;
}
uint64_t skep_plan_steps_before(const struct skep_plan *plan, uint32_t round);
double skep_plan_mean_steps(const struct skep_plan *plan);
/* Rounds, from the first one on, that have so many steps at least. */
uint32_t skep_plan_rounds_of(const struct skep_plan *plan, uint32_t steps);

/* Microbatches after which the directory closes the round. */
uint32_t skep_plan_quota(const struct skep_plan *plan, uint32_t round);

/* The inner step of its round that a microbatch belongs to, by its number; what replaces others belongs to the last one. */
static inline uint32_t skep_plan_inner_step(const struct skep_plan *plan, uint32_t round, uint32_t microbatch)
{
	uint32_t nth = microbatch / skep_plan_inner_batch(plan), steps = skep_plan_steps(plan, round);
	assert(steps > 0);
	return nth < steps ? nth : steps - 1;
}

/* ---- fixed pipelines: no spares; no rebalancing, no trainer routing, no delay ------------------------------------- */

static inline bool skep_plan_fixed(const struct skep_plan *plan)
{
	return plan->pipeline != SKEP_PIPELINE_SWARM;
}

/* Flushes in a round. */
static inline uint32_t skep_plan_flushes(const struct skep_plan *plan)
{
	return plan->accumulate > 1 ? plan->accumulate : 1;
}

/* Who works with whom in them, and how much each holds: schedule/pipelines.h. */

/* ---- a trial of several candidates ------------------------------------------------------------------------------- */

static inline bool skep_plan_has_candidates(const struct skep_plan *plan)
{
	return plan->candidates > 1;
}

/* Of so many rounds, >= 2, those whose losses count; the last ones. */
static inline uint32_t skep_candidate_window(uint32_t rounds)
{
	assert(rounds > 1); /* a slope takes two */
	return rounds > 4 ? (rounds + 1) / 2 : 2;
}

/* For which a worker works at the start: by its place among the workers of its stage. A spare: 0. */
uint32_t skep_plan_candidate_of(const struct skep_plan *plan, uint32_t worker);

/* ---- a tied table ------------------------------------------------------------------------------------------------ */

static inline bool skep_plan_is_tied(const struct skep_plan *plan, uint32_t stage)
{
	assert(stage < plan->stages);
	return plan->tied > 0 && (stage == 0 || stage + 1 == plan->stages);
}

/* The other one that holds a copy. */
static inline uint32_t skep_plan_tied_peer(const struct skep_plan *plan, uint32_t stage)
{
	assert(skep_plan_is_tied(plan, stage) && plan->stages > 1);
	return plan->stages - 1 - stage;
}

/* Where the stage's copy begins in its vector. */
static inline uint64_t skep_plan_tied_first(const struct skep_plan *plan, uint32_t stage)
{
	assert(skep_plan_is_tied(plan, stage) && plan->tied <= plan->stage[stage].parameters);
	return stage == 0 ? 0 : plan->stage[stage].parameters - plan->tied;
}

/* ---- virtual stages: as many as stages, unless interleaved; q is chunk q / stages of stage q % stages -------------- */

static inline uint32_t skep_plan_model_chunks(const struct skep_plan *plan)
{
	return plan->model_chunks > 1 ? plan->model_chunks : 1;
}

static inline uint32_t skep_plan_vstages(const struct skep_plan *plan)
{
	return plan->stages * skep_plan_model_chunks(plan);
}

/* Does BACKWARD of a microbatch follow its FORWARD at once? In the last virtual stage, but for GPipe's, where all forward
 * passes come first. */
static inline bool skep_plan_turns_at_once(const struct skep_plan *plan, uint32_t vstage)
{
	assert(vstage < skep_plan_vstages(plan));
	return vstage + 1 == skep_plan_vstages(plan) && plan->pipeline != SKEP_PIPELINE_GPIPE;
}

/* True if BACKWARD recomputes the activations of this virtual stage, because FORWARD kept none. A model in one stage is no
 * pipeline: it recomputes to save what its layers keep. */
static inline bool skep_plan_recomputes(
	const struct skep_plan *plan, enum skep_checkpointing checkpointing, uint32_t vstage)
{
	bool keeps = checkpointing == SKEP_CHECKPOINTING_WAITING && skep_plan_vstages(plan) > 1 &&
	             skep_plan_turns_at_once(plan, vstage);
	return !skep_plan_is_frozen(plan, vstage) &&
	       ((checkpointing != SKEP_CHECKPOINTING_NONE && !keeps) || skep_plan_visits_twice(plan, vstage));
}

/* The virtual stage that holds a copy of the tied embeddings. */
static inline bool skep_plan_is_tied_vstage(const struct skep_plan *plan, uint32_t vstage)
{
	return plan->tied > 0 && (vstage == 0 || vstage + 1 == skep_plan_vstages(plan));
}

/* Bytes of the activations that leave the virtual stage, and of the gradient that comes back. */
uint64_t skep_plan_vstage_bytes(const struct skep_plan *plan, uint32_t vstage);
static inline uint64_t skep_plan_gradient_bytes(const struct skep_plan *plan, uint32_t vstage)
{
	return skep_plan_is_frozen(plan, vstage) ? 0 : skep_plan_vstage_bytes(plan, vstage);
}

/* Most microbatches of a swarm that the directory has one owner have outstanding: what it may keep in flight, and some to
 * start while word travels to the directory and back. With fixed pipelines all of a pipeline's share: no other worker
 * is to have it. */
uint32_t skep_plan_credit(const struct skep_plan *plan, uint32_t in_flight);

/* Of a swarm with so many owners among so many workers: how many a worker's table of microbatches in flight has room for; and
 * how many the directory has outstanding in all, so that tables stay half empty though senders choose each by itself.
 * `fewest`: workers of the stage that has the fewest. */
uint32_t skep_swarm_capacity(const struct skep_plan *plan, uint32_t owners, uint32_t workers);
static inline uint64_t skep_swarm_outstanding(uint32_t fewest, uint32_t capacity)
{
	uint64_t limit = (uint64_t)fewest * ((capacity + 1) / 2);
	return limit > 0 ? limit : 1;
}

/* Most that any worker may have in flight. */
static inline uint32_t skep_plan_in_flight_most(const struct skep_plan *plan)
{
	return plan->in_flight_limit ? plan->in_flight_most : plan->in_flight;
}

#ifndef SKEP_VOIDS_WITH_OTHERS    /* a test makes it small */
#define SKEP_VOIDS_WITH_OTHERS 3u /* times that a round which is void is begun again with microbatches that are new */
#endif

/* Most microbatch numbers that one round may use, refills included. Sample j of (round, microbatch) is sample number
 * ((round * skep_round_capacity) + microbatch) * samples_per_microbatch + j of the stream: disjoint by construction. */
static inline uint32_t skep_round_capacity(const struct skep_plan *plan)
{
	if (skep_plan_no_flush(plan)) /* nothing is refilled: the next rounds are open already */
		return plan->microbatches;
	/* Room to refill every second microbatch; a round that loses more closes with what it has. And to begin a void round
	 * again with other ones: after so many times with the newest of these. */
	uint32_t begun = plan->on_loss == SKEP_ON_LOSS_VOID ? 1 + SKEP_VOIDS_WITH_OTHERS : 1;
	return begun * plan->microbatches + plan->microbatches / 2 + 64;
}

/* ---- validation: its microbatches have the numbers from skep_round_capacity() on ---------------------------------- */

#define SKEP_VALIDATION_TRIES 4u /* grants of one of them, each under a number of its own */

static inline bool skep_plan_validates(const struct skep_plan *plan, uint32_t microbatch)
{
	return microbatch >= skep_round_capacity(plan);
}

/* All numbers of a round, those of the validation before it included. */
static inline uint32_t skep_plan_numbers(const struct skep_plan *plan)
{
	uint32_t validated = plan->validate_every > 0 ? SKEP_VALIDATION_TRIES * plan->validate_microbatches : 0;
	return skep_round_capacity(plan) + validated;
}

/* Which one it is, from 0: equal in every validation, and in every try. Samples of it are sample number that * samples + j
 * of those that nothing is trained on. */
uint32_t skep_plan_validation(const struct skep_plan *plan, uint32_t microbatch);
/* Is there a validation when so many rounds have closed? Not while candidates are tried. */
bool skep_plan_validation_due(const struct skep_plan *plan, uint32_t closed);

#ifdef __cplusplus
}
#endif
