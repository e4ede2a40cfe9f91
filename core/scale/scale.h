/* SPDX-License-Identifier: Apache-2.0
 *
 * scale.h - how many machines a run asks for: an autoscaler, as values and functions of values.
 *
 * What it decides: from what is known when a round closes (how long a microbatch took, with which machines; which machines of
 * each kind are there; their prices; what is left to do; the time) the number of machines of each kind that are wanted from now
 * on. It is a level, as the desired capacity of a cloud's group: who provides machines makes it so as far as there are any, and
 * replaces what is lost. Which machine is given back is the directory's to say (scaling.c), and how one is had the world's.
 *
 * Who calls it, in this order: skep_scale_init() once; then at each close of a round skep_scale_measure(), and after it
 * skep_scale_decide(), which looks no more often than each period.
 *
 * How the rate grows with machines is measured, not assumed to be linear. With machines of speed s together, the time of a
 * microbatch is taken to be
 *
 *     t(s) = a / s + b        so the rate is s / (a + b s), and never more than 1 / b
 *
 * a / s is what machines share (passes), b what they do not get rid of (sums, latency, the slowest stage): Amdahl's law, and two
 * of the four terms of Ernest (Venkataraman et al., NSDI 2016), because a run tries few sizes. a and b, not below 0, are those
 * of least squares of the relative error over the SKEP_SCALE_POINTS sizes that were measured last, each by the mean of its
 * last SKEP_SCALE_ROUNDS rounds, and weighted by how many these are. While one size has been measured, b is 0: that is a
 * straight line, so no decision goes beyond twice the largest size that was measured, nor below half of the smallest. A
 * round in which machines came or went measures nothing, unless three in a row did; nor does the first one, which has no
 * step behind it.
 *
 * Which kinds: machines are taken one by one, the lowest price for its speed first, until the policy (struct skep_scale_rule)
 * has enough, `max` are there, or the budget is used up. The first `min` are taken whatever the policy says; of a kind that
 * costs more than the limit for one machine, none is taken beyond these. A kind of which machines were asked for and not
 * there for a cool-down is short: it counts with those that are there, others are asked for in their place, and one more of
 * it stays asked for.
 *
 * What is kept true: between too few and too many lies a band in which nothing changes (`margin`); nothing is given back within a
 * cool-down after a change, unless the budget is exceeded; the budget is kept by what is wanted, beyond `min`. Only + - * / and
 * comparisons of doubles are used, which IEEE 754 rounds alike everywhere, so that two worlds decide the same.
 */
#pragma once

#include "core/scale/policy.h"

#define SKEP_SCALE_POINTS 16u
#define SKEP_SCALE_ROUNDS 8u
#define SKEP_SCALE_MILLION 1e6 /* parts of one, in what a plan gives in ppm */

struct skep_scale_point {
	uint32_t speed;  /* of all machines that served, as in skep_scale_kind.speed */
	uint32_t rounds; /* in the mean, at most SKEP_SCALE_ROUNDS */
	double ns;       /* of a microbatch */
};

struct skep_scale_state {
	struct skep_scale_point point[SKEP_SCALE_POINTS];
	uint32_t points, oldest; /* oldest: the one that the next size replaces */
	uint32_t least, most;    /* speeds that were measured; 0: none was */
	bool begun;              /* a round has closed */
	uint32_t speed;          /* when the last round closed, and ... */
	skep_time closed_ns;     /* ... when that was */
	uint32_t unmeasured;     /* rounds in a row in which machines came or went */
	bool decided;
	skep_time decided_ns, changed_ns;
	uint32_t wanted[SKEP_SCALE_KINDS_MAX];
	uint32_t last_there[SKEP_SCALE_KINDS_MAX];
	skep_time missing_since_ns[SKEP_SCALE_KINDS_MAX]; /* SKEP_TIME_NEVER: as many are there as are wanted */
};

struct skep_scale_now { /* what is known at the close of a round */
	skep_time now_ns;
	uint64_t left;                        /* microbatches until the end of the run */
	uint32_t there[SKEP_SCALE_KINDS_MAX]; /* machines that will stay */
	uint64_t price[SKEP_SCALE_KINDS_MAX]; /* of one, 1e-6 USD per hour; without prices all alike */
};

/* Of what is chosen so far, and with one machine more. */
struct skep_scale_offer {
	double rate, next_rate; /* microbatches per ns */
	double price, next_price;
};

struct skep_scale_rule { /* a policy */
	/* Is one machine more wanted? keep: it may be there already, so the other edge of the band counts. */
	bool (*wants)(const struct skep_scale *scale, const struct skep_scale_now *now,
		const struct skep_scale_offer *offer, bool keep);
};

extern const struct skep_scale_rule skep_scale_deadline, skep_scale_price;

void skep_scale_init(struct skep_scale_state *state, const struct skep_scale *scale, skep_time now_ns, uint32_t speed);

/* A round of so many microbatches has closed, with machines of this speed together. */
void skep_scale_measure(struct skep_scale_state *state, skep_time now_ns, uint32_t speed, uint64_t microbatches);

/* True: state->wanted has changed. */
bool skep_scale_decide(
	struct skep_scale_state *state, const struct skep_scale *scale, const struct skep_scale_now *now);

struct skep_scale_curve { /* t(s) = shared_ns / s + fixed_ns */
	double shared_ns, fixed_ns;
};
/* By what was measured; there is one point at least. */
struct skep_scale_curve skep_scale_fit(const struct skep_scale_state *state);
double skep_scale_rate(
	const struct skep_scale_curve *curve, double speed); /* microbatches per ns; 0 without machines */
