/* SPDX-License-Identifier: Apache-2.0
 *
 * probe_way.c - measures one way: sends what is answered, takes the time, and goes on until the samples bear a figure
 * (estimate.h) or the time for the way is used. Nothing is decided from one sample, for any one may be late.
 */
#include "exec/probe/probe_rank_internal.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "exec/probe/estimate.h"

#define PATIENCE_NS UINT64_C(60000000000)
#define EXTRA_NS UINT64_C(10000000000) /* beyond the time for a way, before a bandwidth is given up as not known */
#define WARM_UP 4u
#define PAUSE_NS UINT64_C(1500000) /* before a ping: its receiver sleeps by then, as between two messages of a run */
#define PINGS_MAX 400u
#define PINGS_MIN 16u
#define BYTES_FIRST (UINT64_C(24) << 10)
#define BYTES_GROWN (UINT64_C(24) << 20)
#define GROWTH_MOST 16.0
#define ALL_LONG 3u /* transfers of a size, all of which have to take long enough */
#define TRIPS 4.0   /* that the largest payload takes: then it is the line that is measured, and not how it begins */
#define TRIP_SPREADS 20. /* the same, of the distance of the trips' quartiles */
#define SPREADS_MIN 4.0  /* of these however little time there is, or late samples look like long ones */
#define LONG_S 2e-3      /* that it takes at least, whatever --time says: at 1 Gbit/s 250 KB, more than small bursts */
#define REGROWTH 3u      /* a size that was not enough, to the next */
#define ROUNDS_FAIR 16u  /* before a figure is left uncertain: two late samples of a size do no harm to so many */
#define ROUNDS_GROWN 32u /* before a larger size is tried: it is what less noise needs, and more of it makes worse */

/* From sending to the answer, s; NAN: it has failed. */
static double exchange(struct probe_rank *p, uint32_t to, uint64_t bytes)
{
	char text[128];
	assert(to < p->transport->ranks && to != p->transport->rank);
	if (!skep_probe_rank_grow(&p->out, &p->out_room, bytes))
		skep_probe_rank_fail(p, "no memory for a message to measure with");
	p->answered = false;
	p->sequence++;
	skep_time begin_ns = probe_rank_now(p);
	if (!p->over)
		skep_probe_rank_send(p, to, bytes);
	while (!p->over && (!p->answered || p->unsent > 0)) {
		skep_probe_rank_poll(p);
		if (probe_rank_now(p) < begin_ns + PATIENCE_NS)
			continue;
		snprintf(text, sizeof text, "rank %" PRIu32 " did not answer rank %" PRIu32 " within a minute", to,
			p->transport->rank);
		skep_probe_rank_fail(p, text);
	}
	return p->over ? NAN : 1e-9 * (double)(p->answered_ns - begin_ns);
}

/* ---- latency ----------------------------------------------------------------------------------------------------- */

struct trips { /* there and back, without a payload */
	double median_s, quartiles_s;
};

static void pause_before(struct probe_rank *p)
{
	p->alarm_ns = probe_rank_now(p) + PAUSE_NS;
	while (!p->over && probe_rank_now(p) < p->alarm_ns)
		skep_probe_rank_poll(p);
	p->alarm_ns = 0;
}

/* Of round trips, which are two ways: by halves, and if both vary alike by the root of two. */
static struct trips measure_latency(struct probe_rank *p, uint32_t to, struct skep_probed_link *ret)
{
	double trip_s[PINGS_MAX];
	uint32_t count = 0;
	for (uint32_t i = 0; i < WARM_UP && !p->over; i++)
		exchange(p, to, 0);
	skep_time end_ns = probe_rank_now(p) + p->setup->pair_ns * 2 / 5;
	while (!p->over && count < PINGS_MAX && (count < PINGS_MIN || probe_rank_now(p) < end_ns)) {
		pause_before(p);
		trip_s[count++] = exchange(p, to, 0);
	}
	if (p->over)
		return (struct trips){NAN, NAN};
	const struct skep_median median = skep_median_of(trip_s, count);
	const double quartiles_s = trip_s[count * 3 / 4] - trip_s[count / 4];
	ret->pings = count;
	ret->latency_s = median.value / 2;
	ret->least_s = trip_s[0] / 2;
	/* a normal law has 1.349 deviations between its quartiles */
	ret->deviation_s = quartiles_s / 1.349 / sqrt(2);
	ret->latency_spread = fmax(median.value / median.low, median.high / median.value) - 1;
	return (struct trips){median.value, quartiles_s};
}

/* ---- bandwidth --------------------------------------------------------------------------------------------------- */

/* The least time beyond a trip of several transfers, or the first that is too short: a line is never faster than it is, so that
 * one transfer is too short is no accident. */
static double least_beyond_trip(struct probe_rank *p, uint32_t to, uint64_t bytes, double trip_s, double wanted_s)
{
	double least_s = INFINITY;
	for (uint32_t i = 0; i < ALL_LONG && !p->over && least_s >= wanted_s; i++)
		least_s = fmin(least_s, exchange(p, to, bytes) - trip_s);
	return least_s;
}

/* The payload grows until it takes long enough, by more than trips vary. */
static uint64_t find_size(struct probe_rank *p, uint32_t to, const struct trips *trips)
{
	const double pair_s = 1e-9 * (double)p->setup->pair_ns;
	const double enough_s = fmax(fmax(TRIPS * trips->median_s, TRIP_SPREADS * trips->quartiles_s), pair_s / 200);
	const double wanted_s = fmax(fmax(LONG_S, SPREADS_MIN * trips->quartiles_s), fmin(pair_s / 8, enough_s));
	uint64_t bytes = BYTES_FIRST;
	while (!p->over && bytes < BYTES_GROWN) {
		double least_s = least_beyond_trip(p, to, bytes, trips->median_s, wanted_s);
		if (p->over || least_s >= wanted_s)
			break;
		double growth = 1.2 * wanted_s / fmax(least_s, wanted_s / GROWTH_MOST);
		bytes = (uint64_t)fmin((double)BYTES_GROWN, fmin(GROWTH_MOST, fmax(2, growth)) * (double)bytes);
	}
	return bytes;
}

/* A size that the user gives is set against none at all, so that the figure is of such messages as a whole. */
static void begin_transfers(struct skep_transfers *t, uint64_t bytes, bool given)
{
	assert(bytes >= SKEP_TRANSFERS_SIZES || given);
	t->rounds = 0;
	for (uint32_t i = 0; i < SKEP_TRANSFERS_SIZES; i++)
		t->bytes[i] = given ? bytes / 2 * i : bytes / 3 * (i + 1);
	t->bytes[SKEP_TRANSFERS_SIZES - 1] = bytes;
}

static void add_round(struct probe_rank *p, uint32_t to, struct skep_transfers *t)
{
	assert(t->rounds < SKEP_TRANSFERS_ROUNDS_MAX);
	for (uint32_t i = 0; i < SKEP_TRANSFERS_SIZES && !p->over; i++)
		t->taken_s[i][t->rounds] = exchange(p, to, t->bytes[i]);
	t->rounds++;
}

/* Is a larger size to be tried? Where the rate is another one within this size, at once; where it is not known or not certain,
 * not before there are many samples, for a longer transfer is also more often interrupted. */
static bool may_be_too_small(const struct skep_bandwidth *b, uint32_t rounds)
{
	if (b->course != SKEP_RATE_STEADY)
		return rounds == SKEP_MEDIAN_SAMPLES_MIN;
	return rounds == (b->kind == SKEP_ESTIMATE_UNKNOWN ? ROUNDS_FAIR : ROUNDS_GROWN) &&
	       b->kind != SKEP_ESTIMATE_KNOWN;
}

/* What the least number of rounds of the next size takes, ns. */
static skep_time time_of_larger(const struct skep_transfers *t, skep_time taken_ns)
{
	return taken_ns / (t->rounds + 1) * (SKEP_MEDIAN_SAMPLES_MIN + 1) * REGROWTH;
}

/* Rounds of one size, the first of which does not count, as it is not as fast. They end when they bear a figure, or at end_ns if
 * they bear any, or some time after it. False: a larger size is to be tried, for which there is time. */
static bool transfer(struct probe_rank *p, uint32_t to, struct skep_transfers *t, skep_time end_ns, bool may_grow,
	struct skep_bandwidth *ret)
{
	const skep_time begin_ns = probe_rank_now(p), last_ns = end_ns + EXTRA_NS;
	add_round(p, to, t);
	t->rounds = 0;
	while (!p->over) {
		add_round(p, to, t);
		if (p->over || t->rounds < SKEP_MEDIAN_SAMPLES_MIN)
			continue;
		*ret = skep_bandwidth_estimate(t);
		const skep_time at = probe_rank_now(p), until = ret->kind == SKEP_ESTIMATE_UNKNOWN ? last_ns : end_ns;
		if (may_grow && at < until && may_be_too_small(ret, t->rounds) &&
			time_of_larger(t, at - begin_ns) < until - at)
			return false;
		if (ret->kind == SKEP_ESTIMATE_KNOWN || t->rounds == SKEP_TRANSFERS_ROUNDS_MAX)
			return true;
		if (at >= until && t->rounds >= ROUNDS_FAIR)
			return true;
	}
	return true;
}

static void measure_bandwidth(
	struct probe_rank *p, uint32_t to, const struct trips *trips, struct skep_probed_link *ret)
{
	const uint32_t *host_of = p->setup->shaped ? NULL : p->setup->host_of;
	struct skep_transfers transfers = {.in_memory = host_of && host_of[p->transport->rank] == host_of[to]};
	struct skep_bandwidth estimate = {.Bps = NAN, .spread = INFINITY};
	const skep_time end_ns = probe_rank_now(p) + p->setup->pair_ns * 2 / 5;
	const bool given = p->setup->bytes > 0;
	uint64_t bytes = given ? p->setup->bytes : find_size(p, to, trips);
	begin_transfers(&transfers, bytes, given);
	while (!p->over && !transfer(p, to, &transfers, end_ns, !given && bytes < BYTES_GROWN, &estimate)) {
		bytes = bytes * REGROWTH < BYTES_GROWN ? bytes * REGROWTH : BYTES_GROWN;
		begin_transfers(&transfers, bytes, given);
	}
	ret->bytes = bytes;
	ret->Bps = estimate.Bps;
	ret->Bps_spread = estimate.spread;
	ret->transfers = estimate.samples;
	ret->falling = estimate.course == SKEP_RATE_FALLS;
}

void skep_probe_rank_measure(struct probe_rank *p, uint32_t to, struct skep_probed_link *ret)
{
	*ret = (struct skep_probed_link){.latency_s = NAN};
	const struct trips trips = measure_latency(p, to, ret);
	if (!p->over)
		measure_bandwidth(p, to, &trips, ret);
}
