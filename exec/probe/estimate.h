/* SPDX-License-Identifier: Apache-2.0
 *
 * estimate.h - what the samples of a measurement bear: a median with the interval in which it lies, and a bandwidth with its
 * spread, or that it is not known. Pure: times and bytes in, an estimate out.
 *
 * Other work on a host delays samples, one in five or more, by any amount. So everything here is made of order statistics,
 * which a few wild samples do not move, and nothing assumes a law of the delays.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "topologies/import/probed.h"

#define SKEP_MEDIAN_SAMPLES_MIN 8u /* fewer have no interval */
#define SKEP_TRANSFERS_SIZES 3u
#define SKEP_TRANSFERS_ROUNDS_MAX 256u

/* The median of what was sampled lies in [low, high] with a probability of 99 %, whatever its law, if samples are independent:
 * the sign test's interval (Conover, Practical Nonparametric Statistics, 1999, section 3.2). Fewer than
 * SKEP_MEDIAN_SAMPLES_MIN: from -INFINITY to INFINITY. */
struct skep_median {
	double value, low, high;
};

struct skep_median skep_median_of(double *sample, uint32_t count); /* 1 or more, finite; they are sorted */

/* Rounds of transfers, one of each size in each round. Sizes ascend in equal steps; the first may be 0 bytes. */
struct skep_transfers {
	bool in_memory; /* between processes of one host */
	uint64_t bytes[SKEP_TRANSFERS_SIZES];
	uint32_t rounds;
	double taken_s[SKEP_TRANSFERS_SIZES][SKEP_TRANSFERS_ROUNDS_MAX]; /* from the begin to the answer */
};

enum skep_estimate_kind {
	SKEP_ESTIMATE_UNKNOWN,   /* not by a factor of 2 */
	SKEP_ESTIMATE_UNCERTAIN, /* spread above SKEP_PROBED_SPREAD_MOST, or the rate falls within the sizes */
	SKEP_ESTIMATE_KNOWN,
};

enum skep_rate_course {
	SKEP_RATE_STEADY,
	SKEP_RATE_FALLS,
	SKEP_RATE_RISES
}; /* from the first half of sizes to the last */

struct skep_bandwidth {
	enum skep_estimate_kind kind;
	enum skep_rate_course course;
	double Bps;       /* > 0; UNKNOWN: NAN */
	double spread;    /* the rate is at most 1 + spread times as high or as low; UNKNOWN: INFINITY */
	uint32_t samples; /* transfers */
};

/*
 * The slope of time over bytes, from the median time of the smallest size to that of the largest: what a transfer costs
 * besides its bytes cancels out. The slope lies between the ends of both intervals.
 *
 * Where the slope of the last half of the sizes is beyond that of the first by more than both intervals allow, and by a
 * tenth at least, the rate falls: the first part went through a token bucket's burst. Then it is the rate of the last
 * half, and its spread reaches to that of the first, for nothing says that it falls no further: one that falls to less
 * than a half is not known, unless it falls in memory, where transfers outgrow a cache once and no bucket is. Where it
 * rises, transfers have a cost to begin with, and the slope over all sizes, which is the slower one, stands.
 */
struct skep_bandwidth skep_bandwidth_estimate(const struct skep_transfers *transfers);

#define SKEP_REHEARSED_ROUNDS 5u

/* What a round of a rehearsal has seen (probe_rehearsal.c). NAN: not known. */
struct skep_rehearsed {
	double bare_s, handover_s; /* of a pass: in one thread, and what it takes longer when it is handed over */
	double small_s, large_s;   /* of one payload of either size */
};

/* The median of the rounds, 0 at least, each figure NAN where the second and the fourth of them differ by more than 20 us and the
 * median. A hand-over of more than 0.1 ms and a quarter of a pass, and a payload that costs more than a pass, are the time of
 * others that want the same cores, and not known either. `small` < `large`: bytes of the payloads. */
struct skep_probed_costs skep_costs_estimate(
	const struct skep_rehearsed round[SKEP_REHEARSED_ROUNDS], uint64_t small, uint64_t large);
