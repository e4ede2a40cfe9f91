/* SPDX-License-Identifier: Apache-2.0
 *
 * evaluate.h - what one variation of a scenario comes to: time and money until the target loss, from a stretch of simulation.
 *
 * A variation is the scenario with a few assignments more. It is read as a user would read it, with the better of two allocations
 * by the expected step: the one that it comes with, where that still is one, and what a search finds for it. Then stretches of it
 * are simulated, each with a seed of its own and, where machines come and go, in another part of the run. The mean step, times
 * the steps that the law asks for, is the time; machines are paid while they are there; what leaves a site is paid by the byte.
 */
#pragma once

#include "asking/question.h"
#include "planning/expected/expected.h"
#include "planning/trial/assignments.h"
#include "planning/trial/interval.h"

#define SKEP_ASK_ALLOCATION_BYTES (64 + 8 * SKEP_ASK_MACHINES_MAX) /* of each machine "unused, " at most */

#define SKEP_ASK_SETS_MAX 8u
#define SKEP_ASK_SEEDS_MAX 32u

struct skep_ask_variation {
	char label[160];
	char set[SKEP_ASK_SETS_MAX][400]; /* behind those of the base */
	uint32_t sets;
	const struct skep_ask_question *question; /* its sites and prices; that of the base or a changed one */
	bool replan;                              /* look for an allocation as well */
	bool keeps;                               /* the base's allocation may be one of it */
	bool fit;   /* where memory is too small, smaller microbatches and activations that are computed twice */
	bool stays; /* nothing is taken away */
	bool more;  /* machines that could be left unused */
	uint32_t first,
		seeds; /* stretches `first` to `first + seeds - 1`; each has its seed, and its place in the trace */
	uint32_t least_seeds; /* where two rounds have many more events than a stretch shall have */
	double events;        /* of each stretch, about */
	double events_most;   /* of two rounds: with more it is not simulated; 0: as many as there are */
	double start_s;       /* of the stretches in the trace: they are spread from there over ... */
	double spread_s;
	bool from_start; /* ... but a whole run begins where the scenario does */
};

struct skep_ask_stretch { /* one seed; NAN: it was not simulated, or came to no end */
	double time_s, usd,
		egress_usd; /* of the whole run, were all of it like this; usd with egress; NAN: prices unknown */
};

struct skep_ask_figures {
	bool ok;
	char why[480];
	struct skep_ask_stretch
		stretch[SKEP_ASK_SEEDS_MAX]; /* by their numbers, so that two figures have them in pairs */
	uint32_t stretches, lost;            /* those that came to an end, and those that did not */
	double step_s, time_s;               /* means; of an optimizer step, of the whole run */
	double usd_machines, usd_egress;     /* NAN: prices unknown */
	double steps, tokens;
	double bytes[SKEP_ASK_SITES_MAX][SKEP_ASK_SITES_MAX]; /* of the whole run, between the question's sites */
	double state_bytes;                                   /* of these, what newcomers downloaded */
	double utilisation, preemptions_per_h;
	double passes_part, reduction_part; /* of a round */
	bool whole;                         /* stretches were whole runs */
	double events;                      /* that were simulated */
	uint32_t rounds, warm_up, stages, replicas, every, samples;
	uint32_t machines; /* that serve a stage */
	bool extrapolated;
	char how[160];
	char bound[160]; /* what sets the pace of the passes, and at which machine of the topology */
	uint32_t bound_machine;
	struct skep_expected expected;
	double memory_bytes; /* the most on one GPU */
	bool searched;       /* the allocation is not the base's */
	char fit[2][64];     /* what it took to fit memory, as assignments */
	uint32_t fits;
	char allocation[SKEP_ASK_ALLOCATION_BYTES]; /* as an assignment; "": none was searched for */
};

/* NAN: prices unknown. */
static inline double skep_ask_usd(const struct skep_ask_figures *f)
{
	return f->usd_machines + f->usd_egress;
}

/* The means over the stretches of both, which are others of the same variation. */
void skep_ask_figures_join(struct skep_ask_figures *to, const struct skep_ask_figures *more);
/* How many times as long, or as dear, `f` is as `own`: the ratio of the means over the stretches that both have, in pairs,
 * with the interval that has the true one with 95 %. Of fewer than two pairs there is no interval: NAN. */
struct skep_interval skep_ask_times(const struct skep_ask_figures *f, const struct skep_ask_figures *own, bool money);

/* All of them side by side. False: a signal (*ret_signal), or a process was not to be had. `base` has the allocation last. */
bool skep_ask_evaluate(const struct skep_assignments *base, const struct skep_ask_variation *variation, uint32_t count,
	uint32_t processes, struct skep_ask_figures *ret, int *ret_signal);
