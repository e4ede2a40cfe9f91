/* SPDX-License-Identifier: Apache-2.0
 *
 * inflight.h - the microbatches that a worker holds: a table of fixed size, found by (round, item), with the queues of
 * those that are ready for the device.
 *
 * Room is bounded so that a swarm's memory is linear in its workers. When the table is full the caller gives the
 * microbatch up, which is always safe (skep.h, rule 1).
 */
#pragma once

#include "core/skep.h"

#define SKEP_NO_WORK UINT16_MAX

enum skep_work_state {
	SKEP_WORK_FREE,
	SKEP_WORK_READY_FORWARD, /* queued */
	SKEP_WORK_RUNNING_FORWARD,
	SKEP_WORK_WAIT_PEER,      /* no worker serves the stage that comes next */
	SKEP_WORK_WAIT_OUTPUT,    /* trainer routing: `down` does its FORWARD, and sends back what it made */
	SKEP_WORK_WAIT_GRADIENT,  /* `down` has it, and sends back the gradient */
	SKEP_WORK_WAIT_PARTS,     /* trainer routing: of input and gradient one is here */
	SKEP_WORK_READY_BACKWARD, /* queued */
	SKEP_WORK_RUNNING_BACKWARD,
};

struct skep_work {
	uint8_t state;
	bool doomed; /* given up while it was running: goes when the operation ends */
	bool kept;   /* `down` has been asked to give it back, and does not */
	bool owned;
	uint16_t next, hash_next;
	uint16_t leg;        /* that `down` is in, a stage */
	uint16_t lacked_own; /* of waves: how many before it in its own pipeline the parameters of FORWARD lacked */
	uint32_t round, microbatch;
	uint32_t item; /* its number in the table: the microbatch's, or one for each of its model chunks */
	uint32_t model_chunk;
	uint32_t pipeline;         /* fixed pipelines: the one that it takes */
	uint32_t version;          /* rounds without a flush: of the parameters that FORWARD began with */
	struct skep_peer up;       /* who sent it; index SKEP_NO_INDEX: this worker owns it, or the sender is gone */
	struct skep_peer down;     /* who has it next */
	struct skep_peer returned; /* who gave it back in this stage, and may not have it again */
	uint32_t attempt;          /* 0, or after which count it is run again */
	struct skep_span span;     /* the stages that are to count it */
	skep_time came_ns;         /* when what `up` sends of it was here; trainer routing: of this visit */
	skep_time sent_ns, due_ns; /* due_ns: when it is asked back from `down` */
	skep_time needed_ns;       /* by this worker's device, forward and backward */
	int64_t loss_nano;
	struct skep_buf in, stash, gradient; /* WAIT_PEER: gradient holds the activations that wait to be sent */
};

struct skep_leg {              /* trainer routing: what an owner keeps of a later stage's visits */
	struct skep_buf in;    /* what that stage gets; none: handed over for good */
	struct skep_peer peer; /* the worker of its forward pass; index SKEP_NO_INDEX: it is gone */
	skep_time needed_ns;   /* by that one's device, forward */
	skep_time line_ns;     /* to that one and back, in the forward pass */
};

struct skep_work_queue {
	uint16_t head, tail; /* tail: means nothing while there is no head */
};

struct skep_inflight {
	uint32_t capacity, used, buckets; /* buckets: a power of two */
	uint32_t ready;                   /* in the queues */
	uint16_t free;
	struct skep_work_queue forward[2]; /* by round parity */
	struct skep_work_queue backward[2];
	struct skep_work work[]; /* [capacity], then uint16_t bucket[buckets] */
};

uint32_t skep_inflight_capacity(const struct skep_plan *plan);
size_t skep_inflight_size(uint32_t capacity);
void skep_inflight_init(struct skep_inflight *table, uint32_t capacity);

/* NULL if there is none, or only a doomed one. */
struct skep_work *skep_inflight_find(struct skep_inflight *table, uint32_t round, uint32_t item);
/* NULL when full. The rest of the entry is zero, `up` and `down` name no worker, and the microbatch has the same
 * number. */
struct skep_work *skep_inflight_add(struct skep_inflight *table, uint32_t round, uint32_t item);
/* Out of the queue it is in, if any; what becomes of it is for the caller. */
void skep_work_unqueue(struct skep_inflight *table, struct skep_work *work);
/* Takes it out of the queue it is in, if any. */
void skep_inflight_remove(struct skep_inflight *table, struct skep_work *work);

/* Oldest first. */
void skep_work_push(struct skep_inflight *table, struct skep_work_queue *queue, struct skep_work *work);
struct skep_work *skep_work_pop(struct skep_inflight *table, struct skep_work_queue *queue); /* or NULL */
