/* SPDX-License-Identifier: Apache-2.0
 *
 * worker.h - the state of a worker's machine, shared by the files that make it up:
 *
 *   worker.c    dispatch of events, the pipeline: microbatches in, out, back, given up
 *   schedule.c  which operation the device runs next
 *   reduce.c    the end of a round: seal the accumulator, ring all-reduce, tally, step
 *   member.c    joining, being fenced, hearing of others, heartbeats, stopping
 *
 * A worker is OUT (holds nothing, has asked to join), JOINING (has a stage, downloads its state), SERVING, or STOPPED.
 * While it serves, `version` counts the optimizer steps behind its parameters, and it works on round `version`. Work of the
 * next round may come early (its sender has stepped already) and waits; work of earlier rounds is too late and is ignored.
 */
#ifndef SKEP_CORE_WORKER_H
#define SKEP_CORE_WORKER_H

#include "core/inflight.h"
#include "core/machine.h"
#include "core/wiring.h"

enum worker_state { WORKER_OUT, WORKER_JOINING, WORKER_SERVING, WORKER_STOPPED };

#define FETCHERS_MAX 8u

struct grant { /* microbatches this owner may still issue */
	uint32_t round, first, end;
};

struct early_chunk { /* a hop that came before this worker's REDUCE */
	uint32_t round, attempt, chunk, hop;
	struct skep_buf payload;
};

struct reduction { /* of round `version`; attempt 0: not begun, the round is open */
	uint32_t attempt, rank, size, stored;
	struct skep_peer next;
	uint64_t whole; /* the ALLREDUCE that runs; 0: none */
	bool waiting;   /* for a BACKWARD that was running when the round was sealed */
	bool complete;  /* all chunks are stored, the tally is sent */
	bool committed; /* `microbatches` is the divisor */
	bool stepping;
	uint32_t microbatches;
};

struct worker {
	struct skep_node node;
	uint8_t state; /* enum worker_state */
	bool stop_when_stepped;
	bool leaving; /* notice was given: it does not join again */
	bool fetched; /* JOINING: the state has come */
	uint32_t version;
	uint32_t assigned;   /* number of the newest ASSIGN in this epoch */
	uint32_t join_round; /* JOINING: state of the start of that round is wanted */
	struct skep_peer source;
	skep_time born_ns, sent_to_directory_ns, heartbeat_due_ns, load_due_ns;
	/* Load since the last report, while the round was open: nothing queues in a reduction, and that says nothing. */
	skep_time queue_since_ns, open_ns;
	uint64_t queue_area; /* microbatches that were ready, times ns */

	uint64_t op_floor;                      /* operations below were asked for in an earlier life */
	uint64_t compute_op;                    /* id of the one on the compute lane, 0: idle */
	uint32_t reduce_ops;                    /* on the reduce lane */
	uint32_t compute_slot;                  /* its microbatch */
	struct skep_buf load;                   /* STATE that waits for the device */
	struct skep_peer fetcher[FETCHERS_MAX]; /* who waits for our state ... */
	uint32_t fetch_round[FETCHERS_MAX];     /* ... as of that round */
	uint32_t fetchers;

	uint32_t issued_in_flight;
	uint32_t grants, grant_capacity;
	struct reduction reduction;
	struct skep_message pending_reduce; /* kind 0: none. Of the next round: it overtook this round's COMMIT */
	uint32_t early, early_capacity;

	uint32_t words;        /* of a round's bitmaps */
	uint32_t counted;      /* microbatches in the accumulator of round `version` */
	int64_t loss_nano_sum; /* over these */

	size_t view_at, inflight_at, grant_at, early_at, seen_at, tally_at, hops_at;
};

static inline struct skep_view *worker_view(struct worker *w)
{
	return skep_at(w, w->view_at);
}

static inline struct skep_inflight *worker_inflight(struct worker *w)
{
	return skep_at(w, w->inflight_at);
}

static inline struct grant *worker_grants(struct worker *w)
{
	return skep_at(w, w->grant_at);
}

static inline struct early_chunk *worker_early(struct worker *w)
{
	return skep_at(w, w->early_at);
}

/* Microbatches of the round that have been here, whatever became of them. */
static inline uint64_t *worker_seen(struct worker *w, uint32_t round)
{
	return (uint64_t *)skep_at(w, w->seen_at) + (size_t)(round & 1) * w->words;
}

static inline uint64_t *worker_tally(struct worker *w)
{
	return skep_at(w, w->tally_at);
}

/* Hops of the current attempt that have arrived. */
static inline uint64_t *worker_hops(struct worker *w)
{
	return skep_at(w, w->hops_at);
}

static inline bool worker_sealed(const struct worker *w)
{
	return w->reduction.attempt > 0;
}

/* worker.c */
void worker_send(struct worker *w, struct step *step, struct skep_message *message);
void worker_forget(struct worker *w, struct step *step); /* releases all that the device is not using right now */

void pipeline_run(struct worker *w, struct step *step, struct skep_work *work, enum skep_op_kind kind);
void pipeline_issue(struct worker *w, struct step *step); /* start one of the granted microbatches */
void pipeline_seal(struct worker *w, struct step *step);  /* the round takes no more work */
void pipeline_peer_gone(struct worker *w, struct step *step, struct skep_peer gone);
void pipeline_hand_back(struct worker *w, struct step *step); /* what was granted and not begun */
void pipeline_peer_new(struct worker *w, struct step *step);

/* schedule.c */
void schedule_next(struct worker *w, struct step *step); /* gives an idle device its next operation */

/* reduce.c */
void reduce_on_reduce(struct worker *w, struct step *step, const struct skep_message *message);
void reduce_on_chunk(struct worker *w, struct step *step, const struct skep_message *message);
void reduce_on_commit(struct worker *w, const struct skep_message *message);
void reduce_on_op_done(struct worker *w, struct step *step, const struct skep_op *op, struct skep_buf out);
void reduce_backward_ended(struct worker *w, struct step *step);
void reduce_stepped(struct worker *w, struct step *step);
void reduce_forget(struct worker *w, struct step *step);
bool reduce_wants(const struct worker *w, const struct skep_message *chunk); /* is this hop of use still */

/* member.c */
void member_start(struct worker *w, struct step *step);
void member_timer(struct worker *w, struct step *step);
void member_on_assign(struct worker *w, struct step *step, const struct skep_message *message);
void member_on_fetch(struct worker *w, const struct skep_message *message);
void member_on_state(struct worker *w, struct step *step, const struct skep_message *message);
void member_on_peer(struct worker *w, struct step *step, const struct skep_message *message);
void member_on_stop(struct worker *w, struct step *step, const struct skep_message *message);
void member_notice(struct worker *w, struct step *step);
void member_suspect(struct worker *w, struct step *step, struct skep_peer who, bool asking);
void member_loaded(struct worker *w, struct step *step, const struct skep_op *op);
void member_saved(struct worker *w, struct step *step, const struct skep_op *op, struct skep_buf state);
void member_stop(struct worker *w, struct step *step, bool ok);

#endif
