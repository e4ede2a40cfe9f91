/* SPDX-License-Identifier: Apache-2.0
 *
 * turns.h - what the messages of a link bear of its latency and its bandwidth together. Pure: times in, an estimate out.
 *
 * A line serves the messages of one connection in order, those of several beside each other. A turn is what it serves between two
 * instants at which it has moved nothing of what is still to come; on a line with one connection each message is one. A turn
 * of V bytes whose first message was sent at s, whose last one was received at f, and before which another one ended at e, takes
 *
 *     f = max(s + latency, e) + V / bandwidth
 *
 * Of a latency it so follows how long the line was busy with it: min(f - e, f - s - latency). A turn that has waited for the
 * one before it bears the bandwidth alone, one that found the line idle bears the sum; which of the two it was no log says,
 * and messages that follow each other since their sender was late look like a queue. So each latency is tried that the
 * messages allow: with the right one all turns were served at one rate. Those that do as well (SKEP_TURNS_LIKELY) are the
 * interval. Where turns have one size and none has waited all do, and the two cannot be told apart.
 */
#pragma once

#include "analysis/calibrate/ranked.h"

/* A latency is as likely as the best one if the sum of what residuals are above those of the best one is no more than so
 * many times the root of the sum of their squares, as are 95 % of sums of as many differences of either sign. So it takes
 * several messages to exclude one, and not one that was late. */
#define SKEP_TURNS_LIKELY 2.0

/* What is known besides is right within this factor. */
#define SKEP_TURNS_KNOWN 4.0

struct skep_turns_message {
	double bytes, sent_s, received_s;
	uint64_t line, connection; /* one connection: served in order */
	bool counts;               /* nothing else was in its way */
};

struct skep_turns {
	struct skep_turns_message *large; /* [larges] any order; skep_turns_fit() puts them in order */
	struct skep_ranked_point *small;  /* [smalls] bytes and seconds of those that wait for none */
	uint32_t larges, smalls;
};

struct skep_turns_fit {
	struct skep_ranked latency, s_per_B; /* both unknown */
	struct skep_ranked latency_alone;    /* where the bandwidth is known; 0 samples: the messages contradict it */
	struct skep_ranked s_per_B_alone;    /* where the latency is; the same */
	uint32_t turns;                      /* that count */
	double bytes;                        /* of one, in the mean */
	bool one_size;
};

/* `latency_s` and `s_per_B`: what is known if it is. False: no memory. */
bool skep_turns_fit(const struct skep_turns *turns, double latency_s, double s_per_B, struct skep_turns_fit *ret);
