/* SPDX-License-Identifier: Apache-2.0
 *
 * probe_together.c - finds the lines that several hosts share: rank 0 has sets of ways measured at the same time (sites.h says
 * which, and what follows from them), and a rank that is asked sends one payload after the other for so long.
 *
 * A set begins with a message to each of its senders, so they begin within a latency of each other, and what is counted begins a
 * quarter of the time later. TCP shares a line unevenly for seconds, but wastes none of it: so only sums are used.
 */
#include <assert.h>
#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exec/probe/probe_rank_internal.h"
#include "exec/probe/sites.h"

#define REPEATS                                                                                                        \
	5u /* of a set: the median counts, and how far the middle three are apart, for any one may be disturbed */
#define SETS_S 12.0      /* all sets together, about */
#define SET_LEAST_S 0.15 /* one of them, once */
#define SET_MOST_S 5.0
#define SET_BYTES_S 2.0 /* at most for enough small transfers */
#define TRANSFERS 30.0  /* of each sender, about, if all share a line that one of them fills alone */
#define TRIPS 40.0      /* round trips of the longest way in a set, for each of its senders */
#define UNDER_WAY 2u
#define BYTES_LEAST ((double)(UINT64_C(32) << 10))
#define BYTES_MOST ((double)(UINT64_C(24) << 20))

/* ---- a sender ------------------------------------------------------------------------------------------------------ */

/* Two payloads are under way, so that the line does not rest while an answer comes back, and none when it returns. */
double skep_probe_rank_flood(struct probe_rank *p, uint32_t to, uint64_t bytes, uint64_t time_ns)
{
	const skep_time begin_ns = skep_clock_now(p->setup->clock), end_ns = begin_ns + time_ns;
	uint64_t counted = 0, sent = 0, seen = 0;
	assert(bytes > 0 && time_ns > 0);
	if (!skep_probe_rank_grow(&p->out, &p->out_room, bytes))
		skep_probe_rank_fail(p, "no memory for a message to measure with");
	p->answers = 0;
	while (!p->over && (seen < sent || skep_clock_now(p->setup->clock) < end_ns)) {
		if (sent < p->answers + UNDER_WAY && skep_clock_now(p->setup->clock) < end_ns) {
			p->sequence++;
			sent++;
			skep_probe_rank_send(p, to, bytes);
		}
		skep_probe_rank_poll(p);
		const uint64_t more = p->answers - seen;
		const skep_time at_ns = skep_clock_now(p->setup->clock);
		seen += more;
		counted += at_ns >= begin_ns + time_ns / 4 && at_ns <= end_ns ? more : 0;
	}
	while (!p->over && p->unsent > 0)
		skep_probe_rank_poll(p);
	return counted > 0 ? 1e9 * (double)(counted * bytes) / (0.75 * (double)time_ns) : NAN;
}

/* ---- rank 0: one set ----------------------------------------------------------------------------------------------- */

struct sets {
	struct probe_rank *rank;
	struct skep_probed *probed;
	uint32_t *rank_of; /* [places] the first one there */
	double set_s;      /* for one set, once */
};

static void ask(struct probe_rank *p, uint32_t from, uint32_t to, uint64_t bytes, uint64_t time_ns)
{
	struct probe_message message = {.words = 4, .word = {PROBE_MESSAGE_FLOOD, to, bytes, time_ns}};
	p->batch.asked++;
	if (from > 0)
		skep_probe_rank_write(p, from, &message);
}

/* All flows once: bytes per second in all; NAN: some flow had no time for a transfer. */
static double flood(struct sets *s, const struct skep_site_flow *flow, uint32_t flows, double time_s)
{
	struct probe_rank *p = s->rank;
	uint32_t own_to = UINT32_MAX;
	uint64_t own_bytes = 0;
	const uint64_t time_ns = (uint64_t)(1e9 * time_s);
	assert(flows >= 2 && time_s > 0);
	p->batch = (struct batch){0};
	for (uint32_t i = 0; i < flows; i++) {
		const double Bps = skep_probed_link(s->probed, flow[i].from, flow[i].to)->Bps;
		const uint64_t bytes =
			(uint64_t)fmin(BYTES_MOST, fmax(BYTES_LEAST, Bps * time_s / (TRANSFERS * flows)));
		const uint32_t from = s->rank_of[flow[i].from], to = s->rank_of[flow[i].to];
		ask(p, from, to, bytes, time_ns);
		own_to = from == 0 ? to : own_to;
		own_bytes = from == 0 ? bytes : own_bytes;
	}
	if (own_to != UINT32_MAX && !p->over)
		skep_probe_coordinator_add(p, skep_probe_rank_flood(p, own_to, own_bytes, time_ns));
	while (!p->over && p->batch.heard < p->batch.asked)
		skep_probe_rank_poll(p);
	const double Bps = p->batch.Bps;
	p->batch = (struct batch){0};
	return Bps;
}

static struct skep_site_set measure_set(struct sets *s, const uint32_t *site_of, uint32_t from, uint32_t to)
{
	struct skep_site_flow flow[SKEP_SITES_HOSTS_MAX];
	struct skep_site_set set = {.flows = skep_sites_flows(s->probed->places, site_of, from, to, flow)};
	assert(set.flows <= SKEP_SITES_HOSTS_MAX);
	double Bps[REPEATS], longest_s = 0, slowest_Bps = INFINITY;
	bool known = true;
	if (set.flows < 2)
		return set;
	for (uint32_t i = 0; i < set.flows; i++) {
		const struct skep_probed_link *way = skep_probed_link(s->probed, flow[i].from, flow[i].to);
		set.alone_Bps += way->Bps;
		longest_s = fmax(longest_s, 2 * way->latency_s);
		slowest_Bps = fmin(slowest_Bps, way->Bps);
	}
	const double enough_s = fmax(
		set.flows * TRIPS * longest_s, fmin(SET_BYTES_S, set.flows * TRANSFERS * BYTES_LEAST / slowest_Bps));
	const double time_s = fmin(SET_MOST_S, fmax(s->set_s, enough_s));
	for (uint32_t i = 0; i < REPEATS && !s->rank->over; i++) {
		Bps[i] = flood(s, flow, set.flows, time_s);
		known = known && Bps[i] > 0;
	}
	if (s->rank->over || !known) {
		set.Bps = set.spread = NAN;
		return set;
	}
	gsl_sort(Bps, 1, REPEATS);
	set.Bps = Bps[REPEATS / 2];
	set.spread = fmax(set.Bps / Bps[REPEATS / 2 - 1], Bps[REPEATS / 2 + 1] / set.Bps) - 1;
	return set;
}

/* ---- rank 0: all of them ------------------------------------------------------------------------------------------- */

static void matrices_of(const struct skep_probed *probed, double *Bps, double *spread, double *latency_s)
{
	for (size_t i = 0; i < (size_t)probed->places * probed->places; i++) {
		Bps[i] = probed->way[i].Bps;
		spread[i] = probed->way[i].Bps_spread;
		latency_s[i] = probed->way[i].latency_s;
	}
}

/* A worker is on the machine of its number, and a topology lists machines by site: so ranks of a site follow each other. */
static bool in_order(const struct skep_probed_sites *sites, uint32_t places)
{
	for (uint32_t i = 1; i < places; i++)
		if (sites->of[i] < sites->of[i - 1])
			return false;
	return true;
}

static void measure_sets(struct sets *s, uint32_t sites, struct skep_site_set *set)
{
	struct skep_probed_sites *found = &s->probed->sites;
	struct skep_site_set *pair = set, *out = set + sites * sites, *in = out + sites;
	struct skep_site_lines lines = {found->up_Bps, found->down_Bps, found->line_Bps};
	assert(sites > 0 && sites <= s->probed->places);
	const uint32_t all = sites * sites + (sites > 2 ? 2 * sites : 0);
	s->set_s = fmax(SET_LEAST_S, fmin(2e-9 * (double)s->rank->setup->pair_ns, SETS_S / (REPEATS * all)));
	for (uint32_t i = 0; i < sites * sites; i++)
		pair[i] = measure_set(s, found->of, i / sites, i % sites);
	for (uint32_t i = 0; i < sites && sites > 2; i++) {
		out[i] = measure_set(s, found->of, i, SKEP_SITE_ANY);
		in[i] = measure_set(s, found->of, SKEP_SITE_ANY, i);
	}
	if (s->rank->over)
		return;
	if (!skep_sites_decide(sites, pair, out, in, &lines))
		found->outcome = SKEP_PROBED_SITES_UNCERTAIN;
	else if (sites == 1)
		found->outcome = isinf(lines.line_Bps[0]) ? SKEP_PROBED_SITES_NONE : SKEP_PROBED_SITES_HIDDEN;
	else
		found->outcome = in_order(found, s->probed->places) ? SKEP_PROBED_SITES_FOUND : SKEP_PROBED_SITES_MIXED;
	found->count = found->outcome == SKEP_PROBED_SITES_FOUND ? sites : 0;
	found->together = sites == 1 && pair[0].flows > 1 ? pair[0].Bps / pair[0].alone_Bps : NAN;
}

void skep_probe_coordinator_find_lines(struct probe_rank *p)
{
	struct skep_probed *probed = p->setup->probed;
	const uint32_t n = probed->places;
	struct sets s = {.rank = p, .probed = probed};
	if (n < 4 || n > SKEP_SITES_HOSTS_MAX || n != probed->ranks)
		return;
	double *matrix = calloc(3 * (size_t)n * n, sizeof *matrix);
	struct skep_site_set *set = calloc((size_t)n * n + 2 * n, sizeof *set);
	s.rank_of = calloc(n, sizeof *s.rank_of);
	if (matrix == NULL || set == NULL || s.rank_of == NULL) {
		skep_probe_rank_fail(p, "no memory for the lines that hosts share");
	} else {
		for (uint32_t i = 0; i < n; i++)
			s.rank_of[probed->place_of[i]] = i;
		double *spread = matrix + (size_t)n * n, *latency_s = spread + (size_t)n * n;
		const struct skep_site_pairs pairs = {n, matrix, spread, latency_s};
		matrices_of(probed, matrix, spread, latency_s);
		uint32_t sites = skep_sites_find(&pairs, probed->sites.of);
		if (sites == 0) { /* one of all: is there anything that they share? */
			memset(probed->sites.of, 0, n * sizeof *probed->sites.of);
			sites = 1;
		}
		measure_sets(&s, sites, set);
	}
	free(matrix);
	free(set);
	free(s.rank_of);
}
