/* SPDX-License-Identifier: Apache-2.0
 *
 * expected.h - how long a step of one allocation is expected to take, with all that its messages share. The costs of the searches
 * (search/throughput.h) are asked a million times, so they see a shared line in two extreme views; this is asked of what they
 * found, and of what `skep check` prints.
 *
 *   load      of whatever can be a bottleneck, in seconds for a microbatch of the whole swarm: of a worker's device, its way out
 *             and its way in; of the connections of an ordered pair of machines, with their window; of a line that two places
 *             share; of a site's uplink and downlink. What the directory passes on is on both its ways: on the connection of the
 *             sender to it, on that from it to the receiver, and on all that these use. Bytes are those of every pair of workers
 *             that may exchange a microbatch, times the part of all microbatches that both have (loads.h)
 *   pace      the largest load; of GPipe the largest of forward passes and the largest of backward passes together
 *   trip      of one microbatch, there and back, on empty links
 *   rate      of microbatches when K are in flight: all of that is a closed network of queues (mean value analysis: Reiser and
 *             Lavenberg 1980, with Schweitzer's approximation), no more than 1 / pace. Fixed pipelines have no queues by chance:
 *             min(1 / pace, K / trip), and 1 / pace where K are all of a flush, so that none waits for another to come back
 *   flow      trip + (M - 1) / rate for the M microbatches of a round; of a fixed pipeline its first microbatch begins at once;
 *             in A flushes A times that of M / A. Interleaved, with v model chunks, the other workers wait for the first of them
 *             only: of the passes of a trip but one worker's, a v-th part counts
 *             In a swarm the last K take what the worker needs that was given most of them, by the law of the largest of n
 *             normal deviates, or the lines on their way one after the other. Of a single stage the shortest in which the workers
 *             can do M, each one microbatch in max(c, (c + way to the directory and back) / those it may be dealt ahead)
 *   local     steps of periodic sync are a device's work, a step's part for each of its microbatches; of fixed pipelines what
 *             follows each flush. What a round sums is written behind its last one
 *   reduction of each ring as throughput.h has it, with the mean delay and the least that an edge gets of what the ring's own
 *             edges share; and no less than what all rings together take of any shared line. Of other collectives message by
 *             message on the topology's network (loads.h); where these are too many the closed form
 *   tied      the tables of tied embeddings, from the first stage's ranks to the last one's and back, then along the wider stage
 *   turn      from a round's last microbatch to the next one's first: four messages to or from the directory, two where updates
 *             are delayed. Of fixed pipelines the first and the last are those of whichever pipeline is then latest, and a
 *             ring ends two ranks before the member that it began with last. Without a flush no round waits for another: a
 *             stage's sums follow each other with two messages and an update between them
 *   step      a round's flow, sum, update and turn, over its steps. Where updates are delayed the sum, its update and the ways
 *             of both go on beside the flow, so the longer one counts; with a deadline beside the first `overlap_steps` of
 *             it, and the other steps follow
 *
 * In a swarm senders learn what waits on their lines, and turn away from it; expected is a step in the middle of the run, so one
 * of few rounds, or of many workers with few microbatches each, knows little.
 *
 * Not in it: churn, joins, jitter beyond its mean, and the weights of unfair links.
 */
#pragma once

#include "planning/problem/problem.h"
#include "scenarios/plan/pace.h"

#define SKEP_EXPECTED_WORKERS_MAX 2048u /* the tables grow with the square of the pool */

enum skep_expected_bound { /* what sets the pace */
	SKEP_EXPECTED_COMPUTE,
	SKEP_EXPECTED_UP, /* of a machine */
	SKEP_EXPECTED_DOWN,
	SKEP_EXPECTED_TO_DIRECTORY, /* the connection of a machine whose messages it passes on */
	SKEP_EXPECTED_FROM_DIRECTORY,
	SKEP_EXPECTED_CONNECTION,
	SKEP_EXPECTED_SHARED, /* a line between two places, or inside one */
	SKEP_EXPECTED_UPLINK, /* of a site */
	SKEP_EXPECTED_DOWNLINK
};

struct skep_expected { /* seconds, but for the money */
	double step_s;
	double fill_s; /* once in a run: rounds without a flush, until pipelines are full, and until they are empty again */
	double flow_s, pace_s, trip_s, reduction_s, update_s, turn_s;
	double beside_s; /* of a round whose updates are delayed, what goes on beside the next one's passes */
	double validation_s, checkpoint_s; /* each, on top of its round: of skep_expected_extras() */
	double last_checkpoint_s;          /* behind the last round, where all wait for it */
	double validation_usd;             /* as egress_usd */
	enum skep_expected_bound bound;
	double busy; /* what sets the pace, the part of the passes in which it has work, their first and last trip included */
	bool starved;      /* for want of microbatches in flight it has so little */
	bool shared_out;   /* devices of several speeds, all as busy: each takes microbatches as fast as it computes */
	bool lacking;      /* there was no memory to expect anything of a start: only of skep_expected_at_start() */
	double egress_usd; /* of a step, as skep_planning_egress_usd() has it */
	uint32_t from, to; /* of the bound: workers, or places; both the same where it is of one alone */
};

/* What `bound` is, and where, as in "the uplink of site west". */
void skep_expected_bound_text(
	const struct skep_planning *planning, const struct skep_expected *expected, char *ret, size_t size);

/* May it be asked of the scenario? Not known are steps without a round, sums of pairs, sums that begin beside the passes, trials
 * of several candidates, and more than SKEP_EXPECTED_WORKERS_MAX workers. With sync.zero a step and, from stage 2 of it on, a
 * pass take as long as with the numbers of workers of the scenario's own allocation. */
bool skep_expected_known(const struct skep_scenario *scenario);

/* Of the allocation that the scenario begins with, and what bounds it as text. False: it is not known. */
bool skep_expected_at_start(
	const struct skep_scenario *scenario, struct skep_expected *ret, char *ret_bound, size_t size);

/* `stage_of` as a search has it, [workers]. False: no memory. step_s INFINITY: it cannot run so. */
bool skep_expected_make(const struct skep_planning *planning, const uint32_t *stage_of, struct skep_expected *ret);

struct skep_pace skep_expected_pace(const struct skep_expected *expected);

/* Fills what is of them in what skep_expected_make() says of the allocation. False: no memory. */
bool skep_expected_extras(
	const struct skep_planning *planning, const uint32_t *stage_of, struct skep_expected *expected);

/* Of a run from its start, a step's part of all validations and checkpoints; 0: there are none, or it is not known. */
double skep_expected_extra_s(const struct skep_scenario *scenario);

/* The same as make() with all sums by closed forms, for searches. Only for comparisons with others of it: both ways to expect a
 * sum may differ by more than two allocations do. */
bool skep_expected_make_quick(
	const struct skep_planning *planning, const uint32_t *stage_of, struct skep_expected *ret);
