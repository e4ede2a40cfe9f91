/* SPDX-License-Identifier: Apache-2.0
 *
 * links.h - latency and bandwidth of the links that a run has used, from when its messages were sent and received.
 *
 * A line is what messages share: an ordered pair of machines, or an ordered pair of places where the topology says that
 * the link is shared. What its messages bear of both figures together turns.h finds. A message does not count if it met
 * others on a link of its machines or places that may have been narrower (less than SKEP_LINKS_ROOM times the line, as the
 * topology has it or as it turns out).
 *
 * Where latency and bandwidth cannot be told apart, the one that takes less of a message's time stays as the topology has
 * it, and the other is fitted beside it; its interval then has in it that what stays may be wrong by SKEP_TURNS_KNOWN.
 *
 * A figure that the samples do not bear is kept as the topology has it, and `kept` says why.
 */
#pragma once

#include "analysis/calibrate/ranked.h"
#include "analysis/calibrate/samples.h"

#define SKEP_LINKS_ROOM 4.0
#define SKEP_CALIBRATE_SAMPLES_LEAST 5u /* of a figure */
/* The ends of a figure's interval lie no further apart than by this factor, or it is kept: the most that a probe writes, too. */
#define SKEP_CALIBRATE_SPAN_MAX 2.0

struct skep_figure {              /* in base units: s, B/s */
	double before;            /* NAN: the topology or profile says nothing; INFINITY: not limited */
	struct skep_ranked after; /* 0 samples: it is kept */
	const char *kept;         /* why; NULL: it is not */
};

/* What is written of it: the value that was fitted, or that from before. */
static inline double skep_figure_value(const struct skep_figure *figure)
{
	return figure->after.samples > 0 ? figure->after.value : figure->before;
}

struct skep_link_figures { /* of an ordered pair of places */
	uint32_t from, to;
	bool shared;
	size_t messages; /* between its machines; 0: the pair was not used */
	struct skep_figure latency, bandwidth;
};

/* ret [places * places], row = source. `extra_latency_s` is in each latency that was measured, and in none of the topology's.
 * False: no memory. */
bool skep_links_fit(const struct skep_samples *samples, const struct skep_topology *topology, double extra_latency_s,
	struct skep_link_figures *ret);
