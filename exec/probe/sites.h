/* SPDX-License-Identifier: Apache-2.0
 *
 * sites.h - which hosts are one site, and which lines all hosts of a site share. Pure: what was measured in, sites out.
 *
 * Pairs that are measured one after the other show no shared line: each of them has all of it. They show where the sites are,
 * though, since a line between sites is thinner or longer than what lies within a site. Then sets of pairs that have no host in
 * common are measured together: where a set gets less than its pairs have alone, all of it shares a line of that capacity.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SKEP_SITES_HOSTS_MAX 256u
#define SKEP_SITE_ANY UINT32_MAX

struct skep_site_pairs { /* [hosts * hosts], row = source; all > 0 but for the diagonal, which is not read */
	uint32_t hosts;
	const double *Bps, *spread; /* a bandwidth is at most 1 + spread times as high or as low */
	const double *latency_s;
};

/* Hosts whose pairs, each way, all have a higher bandwidth than any pair that leaves them are a site, or else those whose
 * latencies are all lower; of several ways to part them so the one with the fewest sites in which all pairs within a site, and
 * all pairs from a site to a site, may have one bandwidth: as far as their spreads tell they are within a quarter of some middle.
 * Fills ret_site_of [hosts], numbered by their first hosts, and returns how many there are, 2 or more; 0: no such sites. */
uint32_t skep_sites_find(const struct skep_site_pairs *pairs, uint32_t *ret_site_of);

struct skep_site_flow {
	uint32_t from, to; /* hosts */
};

/* Flows from a site to another one, one of them SKEP_SITE_ANY for all others, or within one: no host sends two or receives two.
 * As many as there can be; within a site no host does both. Returns how many. */
uint32_t skep_sites_flows(uint32_t hosts, const uint32_t *site_of, uint32_t from, uint32_t to,
	struct skep_site_flow ret[SKEP_SITES_HOSTS_MAX]);

struct skep_site_set {      /* flows that were measured together */
	uint32_t flows;     /* fewer than 2: they tell nothing, and were not measured */
	double alone_Bps;   /* the sum of what each has alone */
	double Bps, spread; /* all of them together; it is at most 1 + spread times as high or as low. NAN: not known */
};

#define SKEP_SITES_SHARED_MOST 0.9  /* of what its flows have alone: what a set has that shares a line */
#define SKEP_SITES_SPREAD_MOST 0.15 /* of a set that something is decided by */

struct skep_site_lines {           /* bytes per second; INFINITY: nothing shared was seen */
	double *up_Bps, *down_Bps; /* [sites] what leaves and enters a site */
	double *line_Bps;          /* [sites * sites] from a site to a site; the diagonal: within it */
};

/* `pair` is [sites * sites], `out` and `in` are [sites], and not read with two sites, whose one line to each other is what leaves
 * one and enters the other. With more, a line of a pair of sites that is no thinner than what leaves or enters one of them is
 * that one. False: a set that tells is not certain. */
bool skep_sites_decide(uint32_t sites, const struct skep_site_set *pair, const struct skep_site_set *out,
	const struct skep_site_set *in, struct skep_site_lines *ret);
