/* SPDX-License-Identifier: Apache-2.0
 *
 * method.h - the tables of functions in which methods of training differ. The state machines of worker and directory ask them
 * and never ask which method is on.
 *
 * skep_methods_of_worker() and skep_methods_of_directory() choose one entry of each family that a step of a machine needs:
 *
 *   directory, worker   how rounds begin, overlap and end. flush.c: a round is open or reduced. delayed.c: the next round is open
 *                       while one is reduced (DPU). eager.c: REDUCE is sent when a round opens. no_flush.c: several rounds are
 *                       open (PipeDream; with waves, wsp.c, HetPipe). async.c, async_worker.c: each worker's update is merged
 *                       by itself.
 *   local               what a worker does by itself within a round: nothing, or steps of its own (periodic.c), also without
 *                       waiting for others (async_worker.c).
 *   grouping            who sums with whom in a round: all members of a stage (flush.c), or pairs (gossip.c).
 *   losses              what becomes of a gradient that is lost, and of its round: flush.c reports it, rerun.c computes it
 *                       again, void.c begins the whole round again, wait.c reports it and waits for a worker. With plan->sharded
 *                       a worker that is lost ends the run (flush.c).
 *   agreement           which stages make their reductions final together (agreement.c): each by itself, the two that hold tied
 *                       embeddings, or all.
 *   feature             what is done with a sum before it is told, one after the other: tied_embeddings.c, clip.c.
 *   scope               what the directory directs: the run, or one of several candidates (candidates.c).
 *   route, order        how microbatches travel (core/route), and in which order a device does passes (core/schedule).
 *
 * Who calls what
 *   A round, in the directory:  begin -> on_finished .. -> refill -> complete -> reduce -> on_tally .. -> agreement.told ->
 *   keeper, counted (per virtual stage), committed (per stage) -> validate if that is due -> begin.
 *   A round, in a worker:  local.counted .. -> take (REDUCE has come: seal) -> taken -> may_begin, local.unwritten -> [the
 *   collective] -> feature.begin, one after the other -> tell -> committed -> may_step, local.puts_off -> [STEP] -> stepped.
 *
 * What is kept true
 *   - Methods stand above the state machines: a method calls functions of worker/ and directory/, and these call methods
 *     through a table alone. So worker/ and directory/ need no symbol of each other, and no file of theirs needs a method.
 *   - Tables are constant. What a method remembers stands in the machine's own memory, laid out by lay_out.
 *   - Each function is set in each table of its family, with one that does nothing if there is nothing to do.
 *   - A worker never looks at the plan to know of which round it does work: derive() says so (struct worker_work), after each
 *     change of its version, its reduction, or what it was told about rounds.
 *
 * To add a method: a file here with its tables, a line in methods.c, and a reader of its keys. docs/write-a-sync-method.md leads
 * through one that has a table of its own and takes the others as they are.
 */
#pragma once

#include "core/skep.h"

struct step;
struct directory;
struct row;
struct worker;
struct skep_work;
struct attempt;
struct route;
struct skep_order;

struct skep_directory_method {
	/* Set-up: the method's own memory behind the directory's from `at` on, returns where it ends. */
	size_t (*lay_out)(struct directory *d, const struct skep_plan *plan, size_t at);
	uint32_t counted_rounds; /* of which it is known at a time who counted what: 1 or 2 */
	/* Most actions of a step that fences so many: per worker, more than a flush has; and refills, per fence. */
	uint32_t (*actions)(const struct skep_plan *plan, uint32_t fences);
	uint32_t refills;
	bool replicas; /* all workers of a stage that hold its state have the same parameters, to the bit, after each STEP */
	bool steps_ahead; /* a worker may have stepped on what the directory has not committed */

	void (*begin)(struct directory *d, struct step *step); /* open the next round, or what may be open */
	void (*on_finished)(struct directory *d, struct step *step, const struct skep_message *message);
	void (*given_up)(struct directory *d); /* a microbatch of the open round did not come back */
	/* Grants what may be granted, first to `preferred`, and ends the round when nothing is left to wait for. */
	void (*refill)(struct directory *d, struct step *step, uint32_t preferred);
	void (*resume)(struct directory *d, struct step *step);   /* a worker is there that was not: go on */
	void (*complete)(struct directory *d, struct step *step); /* all that was granted has come back */
	void (*reduce)(struct directory *d, struct step *step);   /* begin to sum the open round */
	void (*on_tally)(struct directory *d, struct step *step, const struct skep_message *message);
	void (*on_outer_update)(struct directory *d, struct step *step, const struct skep_message *message);
	/* The worker that is to keep the stage's state after its step, SKEP_NO_INDEX: none. */
	uint32_t (*keeper)(struct directory *d, struct step *step, uint32_t stage);
	/* What all members have counted of a virtual stage, if their tallies do not say so. */
	void (*counted)(struct directory *d, uint32_t vstage, uint32_t lost, uint32_t *total, int64_t *loss_nano_sum);
	void (*committed)(struct directory *d, struct step *step);           /* a stage has committed the round */
	void (*validate)(struct directory *d, struct step *step, bool over); /* a round has closed, and it is time to */
	uint32_t (*stop_version)(struct directory *d, const struct row *row);
	void (*stepped)(struct directory *d, struct step *step); /* after each event */

	/* A newcomer: its device has room; its first reduction; it holds all; may it serve, though late for the commit? */
	void (*entered)(struct directory *d, struct step *step, uint32_t worker);
	uint32_t (*since)(struct directory *d, uint32_t worker);
	uint32_t (*next_reduction)(struct directory *d, const struct row *row);
	void (*ready)(struct directory *d, struct step *step, uint32_t worker);
	bool (*serves_late)(struct directory *d, uint32_t worker);
	void (*admit)(struct directory *d, const struct row *row, struct skep_message *admit);
	void (*keep)(struct directory *d, uint32_t stage, struct skep_message *keep);

	/* A worker is fenced, that served or not. A stage has lost its last serving one: a newcomer that holds all goes on,
	 * or no worker can. */
	void (*worker_gone)(struct directory *d, struct step *step, uint32_t worker, bool served);
	void (*carry_on)(struct directory *d, struct step *step, uint32_t worker);
	bool (*none_can)(struct directory *d, const struct skep_plan *plan);
};

struct skep_worker_method {
	size_t (*lay_out)(struct worker *w, const struct skep_plan *plan, size_t at);
	uint32_t fragments; /* of a sum that may be under way in one step: one ends, and the next one begins */
	void (*derive)(struct worker *w); /* of which rounds it does work now */
	void (*forget)(struct worker *w); /* an epoch has ended */

	/* Names in the FORWARD or BACKWARD which parameters it reads, and notes a FORWARD's in work->version, which BACKWARD and
	 * staleness() look at; how many steps they lack when it is counted. */
	void (*reads)(const struct worker *w, const struct skep_plan *plan, struct skep_work *work, struct skep_op *op);
	uint64_t (*staleness)(const struct worker *w, const struct skep_plan *plan, const struct skep_work *work);
	bool (*first_visit)(struct worker *w, uint32_t round, uint32_t item);
	bool (*wants_gradient)(
		struct worker *w, const struct skep_message *gradient);    /* does its receiver want it still? */
	void (*make_way)(struct worker *w, struct step *step);             /* a BACKWARD is about to begin */
	uint32_t (*parts)(struct worker *w, const struct skep_plan *plan); /* of a BACKWARD that counts; 0: a whole */
	void (*part_ended)(struct worker *w, struct step *step);
	void (*backward_ended)(struct worker *w, struct step *step, bool open); /* open: its round takes work still */

	/* REDUCE: before it is taken in, and after. Not before may_begin() does the sum begin. */
	void (*take)(struct worker *w, struct step *step, const struct skep_message *reduce);
	void (*taken)(struct worker *w, const struct skep_message *reduce);
	bool (*may_begin)(const struct worker *w);
	uint32_t (*brought)(const struct worker *w);       /* microbatches in this worker's part of the sum */
	void (*tell)(struct worker *w, struct step *step); /* the sum is here */
	void (*committed)(struct worker *w, struct step *step);
	bool (*may_step)(struct worker *w);
	void (*stepped)(struct worker *w); /* the version is still that before the step */

	void (*notice)(struct worker *w, struct step *step); /* it will be taken away */
	void (*gate)(struct worker *w, struct step *step);   /* DRAIN or BARRIER_LIFTED has come */
	uint32_t (*kept_as)(const struct worker *w);         /* the number under which a checkpoint is kept */
	/* That of what it holds between two steps. NULL: the directory alone can say. */
	uint32_t (*held_as)(const struct worker *w);
	void (*on_checkpoint)(struct worker *w, const struct skep_message *keep);
};

/* Steps of a worker's own, between two of its stage. */
struct skep_local_steps {
	void (*init)(struct worker *w, const struct skep_plan *plan);
	void (*serves)(struct worker *w); /* a newcomer holds all of the state */
	void (*first_work)(struct worker *w, uint32_t round);
	void (*counted)(struct worker *w, const struct skep_plan *plan, uint32_t round, uint32_t microbatch);
	/* What follows on the elements of a part of BACKWARD. */
	void (*part)(const struct worker *w, struct skep_op *op);
	bool (*run)(struct worker *w, struct step *step); /* gives an idle device what is due, if anything is */
	void (*idle)(struct worker *w, struct step *step);
	bool (*waits)(struct worker *w, const struct skep_plan *plan); /* it makes no pass now */
	void (*done)(struct worker *w, struct step *step, const struct skep_op *op);
	/* The sum has to wait for what is to be summed. */
	bool (*unwritten)(const struct worker *w, const struct skep_plan *plan);
	bool (*puts_off)(struct worker *w, const struct skep_plan *plan); /* STEP has to wait */
	void (*step)(const struct worker *w, struct skep_op *op);         /* what STEP is told */
	void (*stepped)(struct worker *w);
	/* CLOSE_ROUND has come. */
	void (*on_close_round)(struct worker *w, struct step *step, const struct skep_message *message);
};

/* In the directory: the groups in which the members of a stage sum a round, each for itself. */
struct skep_grouping {
	bool replicas; /* the same of the sums: all groups of a stage have the same one */
	/* An attempt of the stage begins: links the members of each group in a ring (row->next_of_group). `order` [size] has
	 * all members of the stage in the order of their indices, and may be left in any other. */
	void (*draw)(struct directory *d, const struct skep_plan *plan, uint32_t stage, uint32_t *order, uint32_t size);
	bool apart; /* a sum of one group goes on when another group of the stage has lost a member */
	/* What the worker's group divides its sum of the virtual stage by; `total` is what all members have counted. */
	uint32_t (*divisor)(
		struct directory *d, const struct skep_plan *plan, uint32_t vstage, uint32_t worker, uint32_t total);
};

/* In the directory. */
struct skep_losses {
	bool voids; /* with a member, what all stages have summed is void */
	/* Each member of a stage has a part of the state that no other worker has: so none leaves, none joins, none moves; each
	 * keeps its own part (checkpoints.c); and a run ends when all of them say that they have what the last step has made. */
	bool in_shards;
	uint32_t (*wanted)(struct directory *d, const struct skep_plan *plan); /* to be granted for the first time */
	bool (*again)(struct directory *d, const struct skep_plan *plan, uint32_t *ret_microbatch,
		struct skep_span *ret_span);
	void (*complete)(struct directory *d, struct step *step); /* all that was granted has come back */
	void (*counted)(struct directory *d, struct step *step);  /* all members have told what they counted */
	void (*member_gone)(struct directory *d, struct step *step, uint32_t stage); /* of the reduction under way */
	/* A worker is fenced, and what it had of the open round is struck: go on. served: it did, so work may be lost with it, of
	 * which member_gone() was not told. */
	void (*gone)(struct directory *d, struct step *step, bool served);
	/* Before that, of any worker that had a stage: it is known to be gone. */
	void (*fenced)(struct directory *d, struct step *step, uint32_t worker);
	/* A newcomer holds all of the state. */
	void (*joined)(struct directory *d, struct step *step, uint32_t worker);
	bool (*holds)(struct directory *d, const struct skep_plan *plan); /* nothing is granted, and no round opens */
	void (*timer)(struct directory *d, struct step *step);
};

/* In the directory. */
struct skep_agreement {
	void (*told)(struct directory *d, struct step *step, uint32_t stage);     /* all members of the stage have */
	void (*deserted)(struct directory *d, struct step *step, uint32_t stage); /* it has no members */
	void (*begun)(struct directory *d, struct step *step); /* attempts are; there may be no member to hear from */
};

struct skep_feature {
	/* In the directory: an attempt begins, a member is told of it; a sum is void; what is added up before a commit, and
	 * what a COMMIT says. */
	uint32_t (*actions)(const struct skep_plan *plan, uint32_t fences);
	size_t (*lay_out)(struct directory *d, const struct skep_plan *plan, size_t at);
	void (*attempt)(struct directory *d, const struct skep_plan *plan, struct attempt *attempt);
	void (*name)(struct directory *d, const struct attempt *attempt, struct skep_message *reduce);
	void (*anew)(struct directory *d, struct step *step, uint32_t stage);
	void (*resolve)(struct directory *d, const struct skep_plan *plan);
	void (*commit)(struct directory *d, const struct skep_plan *plan, struct skep_message *commit);
	void (*on_norm)(struct directory *d, struct step *step, const struct skep_message *message);

	/* In a worker. begin: the sum is here; true: the feature calls skep_reduce_go_on() when it is done. */
	uint32_t early; /* hops that may come early */
	void (*reduce)(struct worker *w, const struct skep_plan *plan, const struct skep_message *reduce);
	bool (*begin)(struct worker *w, struct step *step);
	bool (*arrived)(struct worker *w, struct step *step, struct skep_buf payload);
	bool (*done)(struct worker *w, struct step *step, const struct skep_event *event);
	void (*committed)(struct worker *w, const struct skep_plan *plan, const struct skep_message *commit);
	void (*step)(const struct worker *w, const struct skep_plan *plan, struct skep_op *op);
};

#define SKEP_FEATURES_MAX 2u

/* Of a directory. */
struct skep_scope {
	bool keeps; /* states */
	bool (*began_here)(const struct directory *d, const struct skep_plan *plan, uint32_t worker);
	uint32_t (*first_attempt)(const struct directory *d); /* no two sums of a stage have the same name */
	void (*loss)(struct directory *d, const struct skep_plan *plan, int64_t mean_nano);
	void (*round_closed)(struct directory *d, struct step *step);
	bool (*stage_empty)(struct directory *d, struct step *step, uint32_t stage); /* true: that is the end here */
	bool (*fault)(struct directory *d, struct step *step, struct skep_fault_at what); /* the same, of bad numbers */
	bool (*falls)(struct directory *d); /* it stops; true: and others go on */
};

/* In the directory: machines that the run asks for, and gives back (core/scale/). */
struct skep_scaling {
	uint32_t actions; /* of a step, at most */
	size_t (*lay_out)(struct directory *d, const struct skep_plan *plan, size_t at);
	void (*begin)(struct directory *d, const struct skep_plan *plan);
	void (*round_closed)(struct directory *d, struct step *step); /* before the boundary that may follow */
};

struct skep_methods {
	const struct skep_directory_method *directory;
	const struct skep_worker_method *worker;
	const struct skep_local_steps *local;
	const struct skep_grouping *grouping;
	const struct skep_losses *losses;
	const struct skep_agreement *agreement;
	const struct skep_scope *scope;
	const struct skep_scaling *scaling;
	const struct route *route;
	const struct skep_order *order;
	uint32_t features;
	const struct skep_feature *feature[SKEP_FEATURES_MAX];
};

/* The number of the method that the plan calls for: a machine keeps it, lest each of its steps look for it. */
uint8_t skep_method_of(const struct skep_plan *plan);
/* `method`: skep_method_of() the plan. */
struct skep_methods skep_methods_of_worker(const struct skep_plan *plan, uint8_t method);
struct skep_methods skep_methods_of_directory(const struct skep_plan *plan, uint8_t method);
/* skep_plan_leaves_states(), of the methods of a worker. */
static inline bool skep_methods_leave_states(const struct skep_methods *how, const struct skep_plan *plan)
{
	return plan->checkpoint_every > 0 && how->worker->held_as != NULL;
}
/* Asserts that what the plan asks for goes together. */
void skep_methods_check(const struct skep_plan *plan);

/* weights.c: `reads` of a worker where nothing is flushed. */
void skep_weights_reads(
	const struct worker *w, const struct skep_plan *plan, struct skep_work *work, struct skep_op *op);

/* wsp.c: of these what waves read; how much a FORWARD lacks, when it begins, and what is said of it when it is counted. */
void skep_wsp_forward(
	const struct worker *w, const struct skep_plan *plan, const struct skep_work *work, struct skep_op *op);
void skep_wsp_backward(
	const struct worker *w, const struct skep_plan *plan, const struct skep_work *work, struct skep_op *op);
void skep_wsp_began(const struct worker *w, struct skep_work *work);
uint64_t skep_wsp_staleness(const struct worker *w, const struct skep_work *work);

/* methods.c has the table of these. */
extern const struct skep_directory_method skep_flush_directory, skep_delayed_directory, skep_eager_directory,
	skep_no_flush_directory, skep_async_directory;
extern const struct skep_worker_method skep_flush_worker, skep_delayed_worker, skep_eager_worker, skep_no_flush_worker,
	skep_async_worker;
extern const struct skep_local_steps skep_local_none, skep_local_periodic, skep_local_async;
extern const struct skep_grouping skep_grouping_stage, skep_grouping_pairs;
extern const struct skep_losses skep_losses_report, skep_losses_rerun, skep_losses_void, skep_losses_wait,
	skep_losses_shard;
extern const struct skep_agreement skep_agreement_alone, skep_agreement_pair, skep_agreement_all;
extern const struct skep_feature skep_feature_tied, skep_feature_clip;
extern const struct skep_scope skep_scope_run, skep_scope_candidate;
extern const struct skep_scaling skep_scaling_none, skep_scaling_policy;

/* delayed.c: what all methods have in common in which a round is open while the one before is reduced. */
void skep_delayed_committed(struct directory *d, struct step *step);
bool skep_delayed_serves_late(struct directory *d, uint32_t worker);
void skep_delayed_carry_on(struct directory *d, struct step *step, uint32_t worker);
bool skep_delayed_none_can(struct directory *d, const struct skep_plan *plan);
size_t skep_delayed_worker_lay_out(struct worker *w, const struct skep_plan *plan, size_t at); /* two tallies */

/* periodic.c: the parts of periodic sync, for methods that differ from it in some of them alone. */
void skep_periodic_init(struct worker *w, const struct skep_plan *plan);
void skep_periodic_counted(struct worker *w, const struct skep_plan *plan, uint32_t round, uint32_t microbatch);
uint32_t skep_periodic_share(const struct worker *w, const struct skep_plan *plan); /* microbatches of a step, here */
void skep_periodic_do(
	struct worker *w, struct step *step, enum skep_op_kind kind, uint32_t round, uint32_t microbatches);

/* Nothing: no inner step follows on the elements of a part. */
void skep_local_part(const struct worker *w, struct skep_op *op);
