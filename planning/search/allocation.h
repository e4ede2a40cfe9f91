/* SPDX-License-Identifier: Apache-2.0
 *
 * allocation.h - which worker serves which stage: the problem, what an allocation costs, and how long a search may take.
 *
 * An allocation is an array, stage_of[workers]: a stage, or SKEP_SPARE for who is left out. A search (methods.h) looks for one
 * that a cost makes small, among those that the problem allows. The cost is throughput.h; anything else (the
 * simulator, planning/search/published/dtfm.h) comes in as functions.
 *
 * Why costs are doubles here, though the rest of core counts in integers. A cost is a sum of quotients that span ten powers of
 * ten, and no machine of a running job ever sees it: it ends in a file. Equal results on every compiler come from what is used:
 * sums, differences, products, quotients and comparisons in a written order, which IEEE 754 rounds in one way, without
 * contraction (-ffp-contract=off), and no function of a library (the exponential is in exponential.h).
 *
 * What holds: nothing here allocates, reads a clock or prints. Memory is the caller's, its size asked beforehand. A search
 * depends on problem, cost, seed and evaluations alone, unless its caller raises a flag that ends it. Ties go to what was
 * found first. A cost is a number or INFINITY (impossible), never NaN: the checks below refuse what could make one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SKEP_SPARE UINT32_MAX /* in stage_of: serves no stage */
#define SKEP_UNDECIDED (UINT32_MAX - 1)
#define SKEP_ANY_STAGE UINT32_MAX /* in fixed: not fixed */
#define SKEP_ALLOCATE_WORKERS_MAX 4096u
#define SKEP_ALLOCATE_STAGES_MAX 256u
#define SKEP_NEVER (__builtin_inf()) /* what an allocation costs that cannot be */

/* ---- the pool ------------------------------------------------------------------------------------------------------- */

struct skep_links { /* between the workers, as one flow finds them */
	uint32_t workers;
	const double
		*delay_s; /* [workers * workers] row = source, one way; the diagonal is ignored; INFINITY: no way */
	const double *rate_Bps; /* the same, bytes per second; 0: no way; INFINITY: not limited */
};

enum skep_links_fault {
	SKEP_LINKS_FINE,
	SKEP_LINKS_NAN,      /* at [row, column] */
	SKEP_LINKS_NEGATIVE, /* at [row, column] */
	SKEP_LINKS_APART,    /* no way from row to column, not even by way of others: the pool falls into pieces */
};

struct skep_links_check {
	enum skep_links_fault fault;
	uint32_t row, column;
};

/* `mark` is scratch, [workers]. A single missing link is no fault: a search goes round it if it can. */
struct skep_links_check skep_links_check(const struct skep_links *links, uint8_t *mark);

/* ---- the problem ---------------------------------------------------------------------------------------------------- */

struct skep_problem { /* what allocations are allowed */
	uint32_t workers, stages;
	const uint32_t *least, *most; /* [stages] workers of a stage, least >= 1; both NULL: as even as it can be */
	uint32_t spares;              /* most workers that may be left out; more are if `most` leaves no room */
	const uint64_t *need_bytes;   /* [stages] memory that a worker of the stage needs; NULL: none */
	const uint64_t *have_bytes;   /* [workers] memory; NULL: enough */
	const uint32_t *fixed;        /* [workers] a stage, or SKEP_ANY_STAGE; NULL: nothing is fixed */
	const uint32_t *kind; /* [workers] those of one kind are interchangeable (skep_kinds()); NULL: all differ */
};

enum skep_problem_fault {
	SKEP_PROBLEM_FINE,
	SKEP_PROBLEM_SIZE,   /* no workers or stages, or more than the limits above */
	SKEP_PROBLEM_FEW,    /* the stages want more workers, `wanted`, than there are, `found` */
	SKEP_PROBLEM_MANY,   /* more workers, `found`, than stages and spares take, `wanted` */
	SKEP_PROBLEM_BOUNDS, /* of `stage`: least is 0 or above most */
	SKEP_PROBLEM_FIXED,  /* `worker` is fixed to what is no stage, or where it does not fit, or one too many */
	SKEP_PROBLEM_MEMORY, /* `stage` needs need_bytes in `wanted` workers, its own and those of stages that need no less;
	                         `found` workers have as much. With need_bytes of at most fit_bytes there would be enough */
};

struct skep_problem_check {
	enum skep_problem_fault fault;
	uint32_t stage, worker, wanted, found;
	uint64_t need_bytes;
	uint64_t fit_bytes;  /* the nearest change: the largest need of this stage that would do, if less */
	uint64_t more_bytes; /* the other one: what the nearest worker that is too small has too little */
};

/* `scratch`: skep_problem_scratch_size() bytes. What is FINE has an allocation. */
size_t skep_problem_scratch_size(const struct skep_problem *problem);
struct skep_problem_check skep_problem_check(const struct skep_problem *problem, void *scratch);

/* Is this one of the allowed? `count` is scratch, [stages]. */
bool skep_problem_allows(const struct skep_problem *problem, const uint32_t *stage_of, uint32_t *count);

/* Numbers the kinds of workers from 0 in order of appearance: two are of one kind if no cost that knows workers by these
 * links, by `link_profile` [workers * traits] (speeds at each stage, memory; NULL with traits 0) and by `fixed` (NULL:
 * nothing) can tell when they change places. Returns how many there are. */
uint32_t skep_kinds(const struct skep_links *links, const double *link_profile, uint32_t link_profiles,
	const uint32_t *fixed, uint32_t *ret_kind);

/* ---- the cost ------------------------------------------------------------------------------------------------------- */

#define SKEP_NO_WORKER UINT32_MAX

struct skep_change { /* two workers change places, or one goes elsewhere */
	uint32_t worker;
	uint32_t other; /* SKEP_NO_WORKER: `worker` moves to `to`; else these two change places, and `to` is ignored */
	uint32_t to;    /* a stage, or SKEP_SPARE */
};

/* A cost keeps one current allocation. whole() makes the one it is given current; change() tells what the current one would
 * cost if it were changed; keep() then makes that the current one. Costs are seconds, or whatever the one who made it
 * minimises. */
struct skep_objective {
	void *self;
	double (*whole)(void *self, const uint32_t *stage_of);
	double (*change)(void *self, const struct skep_change *change); /* NULL: whole() only, keep too */
	void (*keep)(void *self);
	/* No allocation that agrees with stage_of, where that is not SKEP_UNDECIDED, costs less. NULL: 0 is all that is
	 * known. */
	double (*bound)(void *self, const uint32_t *stage_of);
	bool alike; /* it cannot tell the stages apart, so their numbers mean nothing until the search is over */
	/* Renumbers stages into the order of the chain, where `alike`; NULL: they are. */
	void (*arrange)(void *self, uint32_t *stage_of);
	/* A cheaper cost of the same allocations, never less than this one at its best: searches of the portfolio walk on it,
	 * and ask this one about what they found. Its steps are counted apart. NULL: there is none. */
	const struct skep_objective *sketch;
};

/* ---- the budget ----------------------------------------------------------------------------------------------------- */

struct skep_budget {
	uint64_t
		evaluations; /* calls of whole() and change(); at least one is made, or there would be nothing to tell */
	const bool *over;    /* raised by the cost that is asked: the search ends; NULL: evaluations alone end it */
};
