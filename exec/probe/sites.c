/* SPDX-License-Identifier: Apache-2.0
 *
 * sites.c - see sites.h.
 */
#include "exec/probe/sites.h"

#include <assert.h>
#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdlib.h>

#define GAP_LEAST 1.3          /* between the bandwidths within sites and those between them */
#define LATENCY_GAP_LEAST 3.0  /* the same of latencies, ... */
#define LATENCY_LEAST_S 0.5e-3 /* ... of which those between sites are as long: below it waking up is what differs */
#define ALIKE 1.25             /* a bandwidth over the middle of those that may be one, or the middle over it */

/* ---- where the sites are ------------------------------------------------------------------------------------------- */

struct nearness { /* of two hosts, the same both ways: the larger the nearer */
	const struct skep_site_pairs *pairs;
	uint32_t hosts;
	bool by_latency;
};

static double near(const struct nearness *n, uint32_t a, uint32_t b)
{
	const uint32_t there = a * n->hosts + b, back = b * n->hosts + a;
	return n->by_latency ? 1 / fmax(n->pairs->latency_s[there], n->pairs->latency_s[back])
	                     : fmin(n->pairs->Bps[there], n->pairs->Bps[back]);
}

/* Components of the hosts whose nearness is at least `least`, numbered by their first hosts. Returns how many. */
static uint32_t components(const struct nearness *n, double least, uint32_t *ret)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < n->hosts; i++)
		ret[i] = SKEP_SITE_ANY;
	for (uint32_t first = 0; first < n->hosts; first++) {
		bool grew = ret[first] == SKEP_SITE_ANY;
		if (!grew)
			continue;
		ret[first] = count;
		while (grew) {
			grew = false;
			for (uint32_t a = 0; a < n->hosts; a++)
				for (uint32_t b = 0; b < n->hosts && ret[a] == count; b++)
					if (a != b && ret[b] == SKEP_SITE_ANY && near(n, a, b) >= least)
						ret[b] = count, grew = true;
		}
		count++;
	}
	return count;
}

/* Are all pairs of a component near? */
static bool cliques(const struct nearness *n, double least, const uint32_t *site_of)
{
	for (uint32_t a = 0; a < n->hosts; a++)
		for (uint32_t b = 0; b < a; b++)
			if (site_of[a] == site_of[b] && near(n, a, b) < least)
				return false;
	return true;
}

/* May every pair of sites, and every site, have one bandwidth? */
static bool alike(const struct nearness *n, const uint32_t *site_of, uint32_t sites)
{
	for (uint32_t cell = 0; cell < sites * sites; cell++) {
		double lowest = INFINITY, highest = 0;
		for (uint32_t a = 0; a < n->hosts; a++)
			for (uint32_t b = 0; b < n->hosts; b++) {
				if (a == b || site_of[a] != cell / sites || site_of[b] != cell % sites)
					continue;
				const double Bps = n->pairs->Bps[a * n->hosts + b];
				const double up = 1 + n->pairs->spread[a * n->hosts + b];
				lowest = fmin(lowest, Bps * up);
				highest = fmax(highest, Bps / up);
			}
		if (highest > ALIKE * ALIKE * lowest)
			return false;
	}
	return true;
}

/* Tries each gap between the nearnesses of all pairs, from the lowest on, so that the fewest sites come first. */
static uint32_t part(const struct nearness *n, double *room, uint32_t *ret_site_of)
{
	uint32_t pairs = 0;
	for (uint32_t a = 0; a < n->hosts; a++)
		for (uint32_t b = 0; b < a; b++)
			room[pairs++] = near(n, a, b);
	gsl_sort(room, 1, pairs);
	for (uint32_t i = 1; i < pairs; i++) {
		if (room[i] < room[i - 1] * (n->by_latency ? LATENCY_GAP_LEAST : GAP_LEAST) ||
			(n->by_latency && room[i - 1] > 1 / LATENCY_LEAST_S))
			continue;
		const uint32_t sites = components(n, room[i], ret_site_of);
		if (sites > 1 && cliques(n, room[i], ret_site_of) && alike(n, ret_site_of, sites))
			return sites;
	}
	return 0;
}

uint32_t skep_sites_find(const struct skep_site_pairs *pairs, uint32_t *ret_site_of)
{
	const uint32_t hosts = pairs->hosts;
	double *room = hosts > 2 && hosts <= SKEP_SITES_HOSTS_MAX ? calloc((size_t)hosts * hosts, sizeof *room) : NULL;
	if (room == NULL)
		return 0;
	struct nearness n = {.pairs = pairs, .hosts = hosts};
	uint32_t sites = part(&n, room, ret_site_of);
	n.by_latency = sites == 0;
	if (n.by_latency)
		sites = part(&n, room, ret_site_of);
	free(room);
	return sites;
}

/* ---- what is measured together ------------------------------------------------------------------------------------- */

static bool in_site(uint32_t site, uint32_t asked, uint32_t other)
{
	return asked == SKEP_SITE_ANY ? site != other : site == asked;
}

/* Halves of one site. */
static uint32_t flows_within(uint32_t hosts, const uint32_t *site_of, uint32_t site, struct skep_site_flow *ret)
{
	uint32_t count = 0, members = 0;
	for (uint32_t i = 0; i < hosts; i++)
		if (site_of[i] == site)
			ret[members++].to = i;
	for (; count < members / 2; count++)
		ret[count] = (struct skep_site_flow){ret[count].to, ret[count + members / 2 + members % 2].to};
	return count;
}

/* Of the hosts at one end the next one, from those sites in turn that have the fewest flows so far. */
static uint32_t take(
	uint32_t hosts, const uint32_t *site_of, uint32_t asked, uint32_t other, bool *taken, uint32_t *used)
{
	uint32_t best = hosts;
	for (uint32_t i = 0; i < hosts; i++)
		if (!taken[i] && in_site(site_of[i], asked, other) &&
			(best == hosts || used[site_of[i]] < used[site_of[best]]))
			best = i;
	if (best < hosts) {
		taken[best] = true;
		used[site_of[best]]++;
	}
	return best;
}

uint32_t skep_sites_flows(uint32_t hosts, const uint32_t *site_of, uint32_t from, uint32_t to,
	struct skep_site_flow ret[SKEP_SITES_HOSTS_MAX])
{
	bool taken[SKEP_SITES_HOSTS_MAX] = {false};
	uint32_t used[SKEP_SITES_HOSTS_MAX] = {0}, count = 0;
	assert(hosts <= SKEP_SITES_HOSTS_MAX && (from != SKEP_SITE_ANY || to != SKEP_SITE_ANY));
	if (from == to)
		return flows_within(hosts, site_of, from, ret);
	for (;; count++) {
		const uint32_t a = take(hosts, site_of, from, to, taken, used);
		const uint32_t b = take(hosts, site_of, to, from, taken, used);
		if (a == hosts || b == hosts)
			return count;
		ret[count] = (struct skep_site_flow){a, b};
	}
}

/* ---- what they share ----------------------------------------------------------------------------------------------- */

/* The capacity of the line that a set shares; INFINITY: none, or it cannot tell. False: not certain. */
static bool shared(const struct skep_site_set *set, double alone_Bps, double *ret)
{
	*ret = INFINITY;
	if (set->flows < 2)
		return true;
	if (!(set->spread <= SKEP_SITES_SPREAD_MOST) || !(set->Bps > 0))
		return false;
	if (set->Bps < SKEP_SITES_SHARED_MOST * alone_Bps)
		*ret = set->Bps;
	return true;
}

/* What a set of several sites would have if each pair of sites had a line of its own: at most its capacity. */
static double apart(
	uint32_t sites, uint32_t site, bool leaving, const struct skep_site_set *set, const double *line_Bps)
{
	double lines_Bps = 0;
	for (uint32_t other = 0; other < sites; other++)
		if (other != site)
			lines_Bps += line_Bps[leaving ? site * sites + other : other * sites + site];
	return fmin(set->alone_Bps, lines_Bps);
}

/* With two sites it is the same line, whatever it is called. */
static void name_two(struct skep_site_lines *ret)
{
	for (uint32_t s = 0; s < 2; s++) {
		double *line = &ret->line_Bps[s * 2 + 1 - s];
		ret->up_Bps[s] = ret->down_Bps[1 - s] = *line;
		*line = INFINITY;
	}
}

bool skep_sites_decide(uint32_t sites, const struct skep_site_set *pair, const struct skep_site_set *out,
	const struct skep_site_set *in, struct skep_site_lines *ret)
{
	assert(sites >= 1);
	for (uint32_t i = 0; i < sites * sites; i++)
		if (!shared(&pair[i], pair[i].alone_Bps, &ret->line_Bps[i]))
			return false;
	for (uint32_t s = 0; s < sites; s++) {
		ret->up_Bps[s] = ret->down_Bps[s] = INFINITY;
		if (sites > 2 &&
			(!shared(&out[s], apart(sites, s, true, &out[s], ret->line_Bps), &ret->up_Bps[s]) ||
				!shared(&in[s], apart(sites, s, false, &in[s], ret->line_Bps), &ret->down_Bps[s])))
			return false;
	}
	if (sites == 2)
		name_two(ret);
	for (uint32_t i = 0; i < sites * sites; i++) {
		const double ends_Bps = fmin(ret->up_Bps[i / sites], ret->down_Bps[i % sites]);
		if (i / sites != i % sites && ret->line_Bps[i] >= SKEP_SITES_SHARED_MOST * ends_Bps)
			ret->line_Bps[i] = INFINITY;
	}
	return true;
}
