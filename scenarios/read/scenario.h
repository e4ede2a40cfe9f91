/* SPDX-License-Identifier: Apache-2.0
 *
 * scenario.h - one experiment: reads the scenario file and the files it names, checks them against each other, and makes
 * the constant plan that the core runs on. After skep_scenario_read() nothing about the input can fail.
 */
#pragma once

#include <stdio.h>

#include "base/diag.h"
#include "base/files/files.h"
#include "core/scale/policy.h"
#include "core/skep.h"
#include "models/device/device.h"
#include "models/read/model.h"
#include "scenarios/plan/compute.h"
#include "topologies/churn/churn.h"
#include "topologies/read/topology.h"

enum skep_arithmetic { SKEP_ARITHMETIC_NONE, SKEP_ARITHMETIC_REAL, SKEP_ARITHMETIC_SCALING_LAW };
enum skep_allocation {
	SKEP_ALLOCATION_CONTIGUOUS,
	SKEP_ALLOCATION_STRIDED,
	SKEP_ALLOCATION_RANDOM,
	SKEP_ALLOCATION_EXPLICIT,
	SKEP_ALLOCATION_GREEDY, /* this and those behind it are searched for: planning/problem/resolve.h */
	SKEP_ALLOCATION_RELAXED,
	SKEP_ALLOCATION_GENETIC,
	SKEP_ALLOCATION_ANNEAL,
	SKEP_ALLOCATION_PORTFOLIO,
	SKEP_ALLOCATION_EXACT
};

static inline bool skep_allocation_searched(enum skep_allocation allocation)
{
	return allocation >= SKEP_ALLOCATION_GREEDY;
}
const char *skep_allocation_name(enum skep_allocation allocation); /* as in the file */

struct skep_law;
struct skep_planned;

struct skep_op_time { /* ns on one GPU type for one vstage and one microbatch; state_ns: for all vstages of its stage */
	uint64_t forward_ns, backward_ns, step_ns, state_ns;
	uint64_t inner_ns, pseudo_ns;         /* INNER_STEP, PSEUDO_GRAD */
	uint64_t recompute_ns, recomputed_ns; /* RECOMPUTE, and BACKWARD after it: together about backward_ns */
};

struct skep_memory { /* bytes on each GPU of such a machine that holds such a stage */
	double weights, gradients, optimizer;
	double activations; /* of the microbatches held */
	double buffers;     /* of reductions, of sending and receiving, of a download, and scratch */
	double total;       /* of these */
	double host;        /* in the memory of the machine, for all of its GPUs */
	uint32_t held;      /* microbatches, each once for every vstage that holds it */
	uint32_t workers;   /* such a machine is there for so many workers of the stage, spares included */
};

#define SKEP_OUTAGES_MAX 256u

struct skep_outages { /* of the directory (scenarios/outage/outage.h) */
	uint32_t count;
	skep_time lost_ns[SKEP_OUTAGES_MAX]; /* since the run began, one after the other */
	skep_time back_ns;                   /* so long after it was lost it is there again */
	double every_s;                      /* drawn by the seed: the mean time between two; 0: as the file says */
	bool with_workers;                   /* it goes on with what workers hold, too; else with what was kept */
};

struct skep_scenario {
	char name[64];
	char path[512];
	char *text;              /* as read, with overrides; goes into the database */
	char *source;            /* as read, without overrides */
	struct skep_files files; /* that it was read from, its own the first */
	uint64_t seed;
	uint64_t job; /* a digest of what determines the parameters: who keeps states writes it into them (job.h) */

	struct skep_model model;
	struct skep_topology topology;
	double extra_latency_s; /* that each of its links has beyond what its file says */
	bool draws_links; /* a simulated run has figures of links and machines that the seed draws (skep_scenario_draw) */
	double bandwidth_scale; /* of what its file says, that its links and machines carry */
	bool has_trace;
	char trace_path[512];         /* where it was read; "": there is none */
	struct skep_churn churn;      /* has_trace: who is there when; else empty, all are there */
	skep_time detection_delay_ns; /* so long after a loss the directory hears of it; 0: by silence only */
	skep_time boot_ns;            /* from a join in the trace until its process asks to be let in ... */
	bool admitted;                /* ... and is, by `serve`: connections and files take their time */
	skep_time admission_ns;       /* the longest of these; boot_ns is in it */
	struct skep_scale scale;      /* of the plan, see scaled.h: with plan.scale, and ... */
	struct skep_scale_kind scale_kind[SKEP_SCALE_KINDS_MAX];
	char scale_name[SKEP_SCALE_KINDS_MAX][96];
	uint32_t *scale_kind_of;                    /* ... [workers] of the plan, ... */
	bool *scale_there;                          /* ... [workers] machines that may be had at the start, and ... */
	skep_time *scale_first_ns, *scale_again_ns; /* ... [workers] from being asked for to joining; NULL: no time */
	skep_time notice_ns; /* so long before the trace takes a worker away it is told; 0: it is not */
	struct skep_outages outages;
	enum skep_allocation allocation;
	bool unresolved; /* it is searched for, and not yet found: until then workers are dealt out to the stages in turn */

	char checkpoint_to[512];     /* a folder; "": no checkpoints */
	uint64_t kept_as;            /* the run's number in there; 0: it has none, and writes nothing there */
	uint64_t kept_from;          /* plan.first_round > 0: that of the run that has kept its states (resume.h) */
	double checkpoint_Bps;       /* how fast a state is kept and read again */
	double state_chunk_bytes;    /* most that a chunk of a newcomer's download has */
	uint32_t threads;            /* of each worker's device, where that is a CPU; the executor's alone */
	double compute_scale;        /* every operation computes, and moves through memory, so many times as much */
	struct skep_compute compute; /* how times are found ... */
	struct skep_predictor *predictor;  /* ... [gpus], and ... */
	struct skep_compute_stage *timing; /* ... [gpus * vstages], where they come from; both NULL with the roofline */
	struct skep_compute_draw *draw;    /* [gpus], how far they are off, with compute.uncertain; else NULL */
	uint32_t samples;                  /* per microbatch */
	bool usual_in_flight;              /* the file does not say schedule.in_flight: it follows from the sizes */
	uint32_t batch;                    /* samples per round: microbatches * samples */
	enum skep_codec activation_codec;
	uint32_t activation_block; /* elements with a scale in common (core/codec.h) */
	/* [2 * stages] codecs of what stages reduce: in the plan, and behind these as the file says; NULL: all have one */
	uint8_t *codecs;
	uint32_t *sum_every; /* [stages] as the plan has it; NULL: all sum in each round */
	enum skep_checkpointing checkpoint_activations;
	bool native_activations,
		native_gradients; /* these travel in the 2 bytes that they are computed in: no codec does
	                                              anything, and that of their size stands for it */
	enum skep_arithmetic arithmetic;
	struct skep_law *law;         /* with arithmetic: law, else NULL; see loss.h */
	struct skep_planned *planned; /* what `skep plan` is asked for; NULL: the file does not say; see planned.h */
	bool collectives_as_flows;    /* skep_plan_simulated() */
	bool ring_by_links;           /* members of a ring follow each other in the order that links make the fastest */
	enum skep_corpus corpus;
	uint64_t points;                  /* of the quadratic corpus: it has so many samples; 0: no end of them */
	struct skep_safetensors *weights; /* that training begins with; NULL: they are drawn */
	char weights_path[512];           /* "": there are none */
	struct skep_tokens *tokens;       /* of a corpus of tokens, with arithmetic: real; else NULL */
	char data_path[512];              /* its file; "": there is none, or several */
	char validation_path[512];        /* of its own for validation; the same */
	struct skep_optimizer optimizer;
	struct skep_optimizer outer; /* with periodic sync, and ... */
	float mixing;                /* ... with delayed updates too: skep_training.mixing */
	struct skep_robust robust;   /* what is made of gradients in place of the mean, with plan.gather */
	enum skep_attack attack;     /* what Byzantine workers send in place of their gradients, ... */
	double attack_scale;         /* ... times this */
	bool attacks_activations;    /* of forward passes, and no gradients */
	bool *liar;                  /* [workers] the Byzantine workers; NULL: there is none */
	double target_loss;          /* NAN: none */
	uint32_t until_steps;        /* as asked for; a run makes skep_plan_all_steps() */
	double until_s, until_usd;   /* 0: not */

	uint32_t tensor_parallel; /* GPUs of its machine that a worker splits its stage over; 0: all that it has */
	bool sequence_parallel;   /* ... and the sequence between the split products */
	bool split;    /* for real: a worker is as many ranks, which share its stage (scenarios/shard/shard.h) */
	uint32_t zero; /* stage of ZeRO; 0: none */
	enum skep_offload offload;

	struct skep_plan plan;         /* points into stage[] and first_stage_of[] */
	struct skep_stage_plan *stage; /* [stages] */
	uint32_t *first_stage_of;      /* [workers] */
	struct skep_cost *cost;        /* [vstages], which are stages unless pipelines are interleaved; per sample */
	struct skep_op_time *op_time;  /* [gpus * vstages] */
	uint64_t *vstage_bytes;        /* [vstages] of the plan */
	uint32_t *place_of;            /* [workers] and ... */
	skep_time *transfer_ns;        /* ... [places * places], for wiring by latency alone */
	uint32_t *site_of;             /* [workers] for a hierarchical reduction ... */
	uint64_t *link_Bps;            /* ... and for a butterfly, else NULL */
	uint32_t *ring_order;          /* [stages * workers] of the plan, with ring_by_links, else NULL, and ... */
	bool *ring_exact;              /* ... [stages]: no order has a faster slowest hop */
	double bucket_bytes;           /* of gradients, with plan.eager ... */
	uint64_t *bucket_first;        /* ... [model.layers] for all stages together, else NULL, and ... */
	uint64_t *part_end;            /* ... [gpus * model.layers], see overlap.c */
	uint64_t *fragment_first;      /* [stages * fragments], where they are strided, else NULL; see fragments.c */
	double *memory_bytes;          /* [stages] on one GPU, the most of those that serve it */
	struct skep_memory *memory;    /* [gpus * stages] the same in its parts, see docs/costs.md */
	uint32_t *speed;               /* [workers] of the plan, and ... */
	uint32_t *in_flight_limit;     /* ... [workers], see plan.h;  else NULL */
	uint32_t machines_out;         /* of the topology's file that cluster.allocation leaves out ... */
	uint32_t *machine_of;          /* ... [workers] numbers in that file; NULL: the workers' own. See pool.h */
	bool *stands_by;               /* [workers] the standbys of the plan; NULL: there is none */
	uint32_t *price_of;            /* with until_usd, see prices.c, ... */
	struct skep_price_at *price;   /* ... else NULL */
	struct skep_training training; /* points to model and plan, so the struct must stay where it was read */
};

struct skep_scenario_options {
	const char *const *set; /* "key.path=value" */
	uint32_t sets;
	bool has_seed;
	uint64_t seed;   /* replaces the file's */
	FILE *details;   /* for lists that a diagnosis has no room for; NULL: nowhere */
	bool real, pace; /* it is to run for real, with --pace: what cannot is an error */
	bool split;      /* what its ranks read: skep_scenario.split */
	bool any_memory; /* what does not fit is no error: for who looks for what does */
	const char *root,
		*folder; /* where its files are looked for: skep_files; they outlive the scenario. NULL: everywhere */
};

/* On failure *ret is empty, and finishing it does nothing. */
bool skep_scenario_read(const char *path, const struct skep_scenario_options *options, struct skep_scenario *ret,
	struct skep_diag *reterr);
/* The same from the text of a file, such as the database keeps; `path` says where the files it names are looked for. */
bool skep_scenario_read_text(const char *path, const char *text, size_t size,
	const struct skep_scenario_options *options, struct skep_scenario *ret, struct skep_diag *reterr);
void skep_scenario_finish(struct skep_scenario *scenario);

/* Where its run keeps states and finds those that it goes on with; it points into the scenario. */
struct skep_checkpoint_folder skep_scenario_folder(const struct skep_scenario *scenario);

/* Time that an operation takes on a worker's GPU, for the simulator's clock and the executor's pace. */
uint64_t skep_scenario_op_ns(const struct skep_scenario *scenario, uint32_t worker, const struct skep_op *op);
/* Bytes that the worker sends within it, beside all messages: gathers of ZeRO, whose time op_ns has. If there are any, to whom:
 * the next worker of its stage. */
uint64_t skep_scenario_op_bytes(
	const struct skep_scenario *scenario, uint32_t worker, const struct skep_op *op, uint32_t *ret_to);

/* The price of all machines of the topology together when the run starts; false if the price of one is not known. */
bool skep_scenario_price(const struct skep_scenario *scenario, double *ret_usd_per_h);

/* Are only those there at the start that are in churn.present? */
static inline bool skep_scenario_has_absent(const struct skep_scenario *scenario)
{
	return scenario->has_trace || scenario->scale_there != NULL;
}
/* Is the worker's machine paid for from the start? Those that are asked for later are not. */
static inline bool skep_scenario_pays_at_start(const struct skep_scenario *scenario, uint32_t worker)
{
	return scenario->scale_there == NULL || scenario->first_stage_of[worker] != SKEP_NO_STAGE;
}

/* The machine of a worker, or of the directory, which is number plan.workers. */
static inline uint32_t skep_scenario_machine(const struct skep_scenario *scenario, uint32_t worker)
{
	return worker == scenario->plan.workers ? scenario->topology.machines : worker;
}
/* ... and the place of that machine. */
static inline uint32_t skep_scenario_place(const struct skep_scenario *scenario, uint32_t worker)
{
	return scenario->topology.machine[skep_scenario_machine(scenario, worker)].place;
}
/* What a worker pays, or the directory, to send so many bytes to another; 0 if the topology has no prices of traffic, NAN if it
 * has some and not this one. */
double skep_scenario_egress_usd(
	const struct skep_scenario *scenario, uint32_t source, uint32_t destination, uint64_t bytes);

/* How many times as long as alone operations of such a machine take while all workers of its host compute; 1: it has cores
 * enough, or does not say. */
double skep_scenario_crowding(const struct skep_scenario *scenario, uint32_t worker);

/* What the worker's device is to tell of its gradients. */
struct skep_byzantine skep_scenario_byzantine(const struct skep_scenario *scenario, uint32_t worker);

/* Can it run for real? If not, the error says why and what to do, and ret_key where that stands: a group and a key of it. */
bool skep_scenario_runs(
	const struct skep_scenario *scenario, bool pace, const char *ret_key[2], struct skep_diag *reterr);
