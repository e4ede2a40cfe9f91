/* SPDX-License-Identifier: Apache-2.0
 *
 * wiring.h - stochastic wiring: which worker of a stage gets a microbatch.
 *
 * A view is what one worker has heard about its next stage, or, if it is an owner with trainer routing, about one of the
 * later stages. It keeps at most SKEP_VIEW_MAX of them, so that memory stays linear in the number of workers; of a larger
 * stage it keeps a random sample, which leaves the choice uniform overall. When half of a sample is gone its owner asks
 * the directory for the rest. In fixed pipelines it keeps all partners: there is one for each of a worker's pipelines.
 *
 * Policies
 *   uniform     each worker is as likely as any other.
 *   throughput  interleaved weighted round-robin (SWARM, Ryabinin et al. 2023, section 3.2): every worker has a key in virtual
 *               time; the smallest is taken and charged the time that it is expected to need for the microbatch. So a
 *               worker that is twice as fast gets twice as much, spread evenly. The expectation is an exponential moving
 *               average of what it said it needed, with smoothing 0.1 and corrected for its start: after n updates the
 *               average is divided by 1 - 0.9^n. What it needed is forward and backward together, as measured: a fixed
 *               weight of backward work (2.5 in SWARM) is not called for. One that has never answered is charged what the
 *               others have needed, by the speed that the plan expects of each (plan->speed; without it all are alike),
 *               which its first answer corrects; before any has answered, 1 s per sample at full speed. It starts anywhere
 *               within the first of its turns: all senders hear of a newcomer at the same time, and if each chose it next,
 *               it would get as many microbatches at once as there are senders. So a sender's first microbatches are
 *               spread by speed too: if all began alike, each worker would have one, however slow, before any had a
 *               second, and a sender of a large pool may have no more of them in a round. Ties go to a seeded random
 *               number drawn at each charge.
 *               What a worker needed leaves out the lines to it. An answer says how long the worker had the microbatch; the
 *               rest of the time that the sender waited was on the lines there and back. Its average above the least that
 *               was ever seen of this worker is what a microbatch waits in the lines (the queueing delay of LEDBAT, RFC 6817),
 *               and is charged beside the arithmetic, but for half as much as that, since messages always meet. So senders
 *               turn away from lines that are full, until those are just full, while a line that is merely long costs
 *               nothing. Who owes an answer for longer than the fencing time, or than schedule.reissue_timeout (reissue.h),
 *               may be gone, and is charged for the wait; an answer gives that back, but no place before the others.
 *   latency     the same, and the charge includes the time that the microbatch and its gradient are expected to take on the link.
 *
 * All arithmetic is in integers, so that every compiler chooses alike.
 */
#pragma once

#include "core/skep.h"

struct skep_choice { /* one worker of the next stage, as its sender sees it */
	struct skep_peer peer;
	uint64_t average;      /* ns per sample, 10 bits fixed point, not yet divided by the weight */
	uint64_t key_ns;       /* virtual time until which it is charged */
	uint32_t tie;          /* of two with one key the smaller one goes first */
	uint32_t weight;       /* 1 - 0.9^n, 20 bits fixed point; 0: it has never answered */
	uint32_t line_us;      /* a microbatch on the lines there and back, on the mean */
	uint32_t least_us;     /* and at least */
	uint32_t silent_us;    /* of key_ns, charged since its last answer because it owes one */
	uint16_t winner;       /* not of this worker: a node of the view's tournament, wiring.c */
	unsigned guessed : 15; /* microbatches that it was charged for before it first answered */
	unsigned leaving : 1;  /* it serves, but wants to go: chosen only while no other one stays */
};

struct skep_view {
	uint32_t count;
	uint32_t leavers;            /* of these */
	uint32_t heard;              /* members heard of since the view was emptied, about: news may come twice */
	bool sample;                 /* there was no room for some of them */
	uint64_t full_speed_ns;      /* a sample at SKEP_SPEED_MAX, as heard; 0: no answer yet */
	struct skep_choice choice[]; /* [count] */
};

void skep_view_clear(struct skep_view *view);
/* Adds a worker, or takes note of its new epoch, with which it starts as a newcomer. An older epoch is ignored. */
void skep_view_add(struct skep_view *view, const struct skep_plan *plan, uint32_t capacity, struct skep_peer peer,
	uint64_t *random);
/* At the start adds workers as skep_view_add() would, each once and before any is chosen; then skep_view_met(). A swarm
 * of thousands begins with thousands for each of them. */
void skep_view_meet(struct skep_view *view, const struct skep_plan *plan, uint32_t capacity, struct skep_peer peer,
	uint64_t *random);
void skep_view_met(struct skep_view *view);
/* Removes the worker if it is there with this or an older epoch: it is banned until it announces itself anew. */
void skep_view_remove(struct skep_view *view, struct skep_peer peer);
bool skep_view_has(const struct skep_view *view, uint32_t index);
struct skep_peer skep_view_find(
	const struct skep_view *view, uint32_t index); /* index SKEP_NO_INDEX: it is not there */
/* The worker, if it is there with this epoch, wants to go: others are chosen as long as there are any. */
void skep_view_leaving(struct skep_view *view, struct skep_peer peer);
/* Of a sample half is gone, or about to go: its owner should hear of all again. True once for each time that it was full. */
bool skep_view_thin(struct skep_view *view, uint32_t capacity);
/* Who but `avoid` gets the next microbatch, from worker `self`; charges it. index SKEP_NO_INDEX when there is none. */
struct skep_peer skep_view_choose_other(struct skep_view *view, const struct skep_plan *plan, struct skep_peer self,
	struct skep_peer avoid, uint64_t *random);
bool skep_view_has_other(const struct skep_view *view, struct skep_peer peer); /* than this one */
/* The worker has answered: a microbatch took its device needed_ns, forward and backward together, and was on the lines there and
 * back for line_ns. */
void skep_view_update(struct skep_view *view, const struct skep_plan *plan, struct skep_peer peer, skep_time needed_ns,
	skep_time line_ns);

/* The worker has owed an answer for so long: it is charged for the wait until it answers, so that others are chosen meanwhile. */
void skep_view_silent(struct skep_view *view, struct skep_peer peer, skep_time waited_ns);
