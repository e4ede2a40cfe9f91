/* SPDX-License-Identifier: Apache-2.0
 *
 * test_probe_sites.c - sites and the lines that their hosts share, from measurements of clusters that are known: capacities of
 * what leaves and enters a site and of lines between two, with noise. What a set of flows gets is made here, flow by flow.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/random.h"
#include "exec/probe/sites.h"

#define HOSTS_MAX 16u
#define SITES_MAX 4u

struct cluster {
	uint32_t hosts, sites, site_of[HOSTS_MAX];
	double host_Bps, inner_s, outer_s; /* of each host; one-way latencies within and between sites */
	double up_Bps[SITES_MAX], down_Bps[SITES_MAX], line_Bps[SITES_MAX * SITES_MAX];
	double noise; /* a figure is off by at most so much, evenly */
	uint64_t seed;
};

static struct cluster cluster_of(uint32_t sites, uint32_t hosts_each, double noise, uint64_t seed)
{
	struct cluster c = {.hosts = sites * hosts_each, .sites = sites, .host_Bps = 1e9, .noise = noise, .seed = seed};
	c.inner_s = c.outer_s = 20e-6;
	for (uint32_t i = 0; i < c.hosts; i++)
		c.site_of[i] = i / hosts_each;
	for (uint32_t i = 0; i < SITES_MAX; i++)
		c.up_Bps[i] = c.down_Bps[i] = INFINITY;
	for (uint32_t i = 0; i < SITES_MAX * SITES_MAX; i++)
		c.line_Bps[i] = INFINITY;
	return c;
}

static double noisy(struct cluster *c, double value)
{
	const double u = (double)(skep_random_next(&c->seed) >> 12) / 4503599627370496.0;
	return value * (1 + c->noise * (2 * u - 1));
}

/* One after the other each takes what is left: the sum is that of any fair sharing where one line binds. */
static double together(struct cluster *c, const struct skep_site_flow *flow, uint32_t flows)
{
	double up[SITES_MAX], down[SITES_MAX], line[SITES_MAX * SITES_MAX], sum = 0;
	memcpy(up, c->up_Bps, sizeof up);
	memcpy(down, c->down_Bps, sizeof down);
	memcpy(line, c->line_Bps, sizeof line);
	for (uint32_t i = 0; i < flows; i++) {
		const uint32_t a = c->site_of[flow[i].from], b = c->site_of[flow[i].to];
		double *pair = &line[a * c->sites + b];
		double Bps = fmin(c->host_Bps, *pair);
		Bps = a == b ? Bps : fmin(Bps, fmin(up[a], down[b]));
		*pair -= Bps;
		up[a] -= a == b ? 0 : Bps;
		down[b] -= a == b ? 0 : Bps;
		sum += Bps;
	}
	return noisy(c, sum);
}

struct found {
	uint32_t sites, site_of[HOSTS_MAX];
	bool decided;
	double up_Bps[HOSTS_MAX], down_Bps[HOSTS_MAX], line_Bps[HOSTS_MAX * HOSTS_MAX];
};

static uint32_t parted(uint32_t hosts, const double *Bps, const double *latency_s, uint32_t *ret_site_of)
{
	const double spread[HOSTS_MAX * HOSTS_MAX] = {0};
	const struct skep_site_pairs pairs = {hosts, Bps, spread, latency_s};
	return skep_sites_find(&pairs, ret_site_of);
}

static struct skep_site_set set_of(
	struct cluster *c, const struct found *f, const double *Bps, uint32_t from, uint32_t to)
{
	struct skep_site_flow flow[SKEP_SITES_HOSTS_MAX];
	struct skep_site_set set = {.flows = skep_sites_flows(c->hosts, f->site_of, from, to, flow)};
	for (uint32_t i = 0; i < set.flows; i++)
		set.alone_Bps += Bps[flow[i].from * c->hosts + flow[i].to];
	set.Bps = together(c, flow, set.flows);
	set.spread = c->noise;
	return set;
}

static struct found find(struct cluster *c)
{
	struct found f = {0};
	struct skep_site_set pair[SITES_MAX * SITES_MAX] = {0}, out[SITES_MAX] = {0}, in[SITES_MAX] = {0};
	struct skep_site_lines lines = {f.up_Bps, f.down_Bps, f.line_Bps};
	double Bps[HOSTS_MAX * HOSTS_MAX], latency_s[HOSTS_MAX * HOSTS_MAX];
	for (uint32_t i = 0; i < c->hosts * c->hosts; i++) {
		const struct skep_site_flow flow = {i / c->hosts, i % c->hosts};
		const bool within = c->site_of[flow.from] == c->site_of[flow.to];
		Bps[i] = flow.from == flow.to ? NAN : together(c, &flow, 1);
		latency_s[i] = noisy(c, within ? c->inner_s : c->outer_s);
	}
	f.sites = parted(c->hosts, Bps, latency_s, f.site_of);
	const uint32_t n = f.sites;
	for (uint32_t i = 0; i < n * n; i++)
		pair[i] = set_of(c, &f, Bps, i / n, i % n);
	for (uint32_t i = 0; i < n; i++) {
		out[i] = set_of(c, &f, Bps, i, SKEP_SITE_ANY);
		in[i] = set_of(c, &f, Bps, SKEP_SITE_ANY, i);
	}
	f.decided = n > 0 && skep_sites_decide(n, pair, out, in, &lines);
	return f;
}

static void assert_near(double value, double wanted)
{
	if (isinf(wanted))
		assert_true(isinf(value));
	else
		assert_true(value > 0.95 * wanted && value < 1.05 * wanted);
}

static void assert_sites(const struct found *f, const struct cluster *c)
{
	assert_int_equal(f->sites, c->sites);
	assert_memory_equal(f->site_of, c->site_of, c->hosts * sizeof *c->site_of);
	assert_true(f->decided);
}

/* Three hosts here and three there behind one line, each way its own capacity. */
static void two_sites(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 1000; seed++) {
		struct cluster c = cluster_of(2, 3, seed == 1 ? 0 : 0.05, seed);
		c.line_Bps[1] = 95e6;
		c.line_Bps[2] = 40e6;
		const struct found f = find(&c);
		assert_sites(&f, &c);
		assert_near(f.up_Bps[0], 95e6);
		assert_near(f.down_Bps[1], 95e6);
		assert_near(f.up_Bps[1], 40e6);
		assert_near(f.down_Bps[0], 40e6);
	}
}

/* Each pair is as slow, but none of them shares anything: a wide line of thin connections. */
static void pairs_apart(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 1000; seed++) {
		struct cluster c = cluster_of(2, 3, 0.05, seed);
		struct found f;
		double Bps[36], latency_s[36];
		struct skep_site_set pair[4] = {0}, none[2] = {0};
		struct skep_site_lines lines = {f.up_Bps, f.down_Bps, f.line_Bps};
		for (uint32_t i = 0; i < 36; i++) {
			Bps[i] = noisy(&c, c.site_of[i / 6] == c.site_of[i % 6] ? 1e9 : 95e6);
			latency_s[i] = 20e-6;
		}
		assert_int_equal(parted(6, Bps, latency_s, f.site_of), 2);
		for (uint32_t i = 1; i < 3; i++)
			pair[i] = (struct skep_site_set){3, noisy(&c, 285e6), noisy(&c, 285e6), 0.05};
		assert_true(skep_sites_decide(2, pair, none, none, &lines));
		for (uint32_t s = 0; s < 2; s++)
			assert_true(isinf(f.up_Bps[s]) && isinf(f.down_Bps[s]));
	}
}

/* One uplink a site, or a line for each pair of sites: pairs of sites alone look the same. */
static void three_sites(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 1000; seed++) {
		struct cluster c = cluster_of(3, 4, 0.04, seed);
		for (uint32_t s = 0; s < 3; s++)
			c.up_Bps[s] = 100e6;
		struct found f = find(&c);
		assert_sites(&f, &c);
		for (uint32_t s = 0; s < 3; s++)
			assert_near(f.up_Bps[s], 100e6);
		for (uint32_t i = 0; i < 9; i++)
			assert_true(isinf(f.line_Bps[i]));

		struct cluster d = cluster_of(3, 4, 0.04, seed);
		for (uint32_t i = 0; i < 9; i++)
			d.line_Bps[i] = i / 3 == i % 3 ? INFINITY : 100e6;
		f = find(&d);
		assert_sites(&f, &d);
		for (uint32_t i = 0; i < 9; i++)
			assert_near(f.line_Bps[i], d.line_Bps[i]);
		for (uint32_t s = 0; s < 3; s++)
			assert_true(isinf(f.up_Bps[s]) && isinf(f.down_Bps[s]));
	}
}

/* As fast as within a site, for one pair, but far away: latency tells the sites. */
static void far_sites(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 100; seed++) {
		struct cluster c = cluster_of(2, 8, 0.05, seed);
		c.outer_s = 10e-3;
		c.line_Bps[1] = c.line_Bps[2] = 1e9;
		const struct found f = find(&c);
		assert_sites(&f, &c);
		assert_near(f.up_Bps[0], 1e9);
		assert_near(f.up_Bps[1], 1e9);
	}
}

static void one_site(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 1000; seed++) {
		struct cluster c = cluster_of(1, 16, 0.05, seed);
		assert_int_equal(find(&c).sites, 0);
	}
}

/* No parting by bandwidth: one host that is slow to some of a site. */
static void no_sites(void **state)
{
	double Bps[25], latency_s[25];
	uint32_t site_of[5];
	(void)state;
	for (uint32_t i = 0; i < 25; i++) {
		Bps[i] = 1e9;
		latency_s[i] = 20e-6;
	}
	Bps[1] = Bps[5] = 1e8;
	assert_int_equal(parted(5, Bps, latency_s, site_of), 0);
}

/* One pair is off by half: it breaks up its site, unless it is known no better. */
static void uncertain_pair(void **state)
{
	double Bps[36], spread[36] = {0}, latency_s[36];
	uint32_t site_of[6];
	const struct skep_site_pairs pairs = {6, Bps, spread, latency_s};
	(void)state;
	for (uint32_t i = 0; i < 36; i++) {
		Bps[i] = i / 18 == i % 6 / 3 ? 900e6 : 95e6;
		latency_s[i] = 20e-6;
	}
	Bps[1] = 450e6;
	assert_int_equal(skep_sites_find(&pairs, site_of), 0);
	spread[1] = 0.75;
	assert_int_equal(skep_sites_find(&pairs, site_of), 2);
}

static void not_certain(void **state)
{
	double up[2], down[2], line[4];
	struct skep_site_lines lines = {up, down, line};
	struct skep_site_set pair[4] = {0}, none[2] = {0};
	(void)state;
	pair[1] = pair[2] = (struct skep_site_set){3, 285e6, 120e6, 0.05};
	assert_true(skep_sites_decide(2, pair, none, none, &lines));
	pair[2].spread = 0.2;
	assert_false(skep_sites_decide(2, pair, none, none, &lines));
	pair[2].spread = pair[2].Bps = NAN;
	assert_false(skep_sites_decide(2, pair, none, none, &lines));
}

/* No host sends two flows or receives two, and as many as can be. */
static void flows_of_sets(void **state)
{
	const uint32_t site_of[] = {0, 1, 0, 2, 1, 0, 2};
	struct skep_site_flow flow[SKEP_SITES_HOSTS_MAX];
	(void)state;
	assert_int_equal(skep_sites_flows(7, site_of, 0, 1, flow), 2);
	assert_int_equal(skep_sites_flows(7, site_of, 0, 0, flow), 1);
	assert_int_equal(skep_sites_flows(7, site_of, 0, SKEP_SITE_ANY, flow), 3);
	assert_true(site_of[flow[0].to] != site_of[flow[1].to]);
	assert_int_equal(skep_sites_flows(7, site_of, SKEP_SITE_ANY, 0, flow), 3);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(site_of[flow[i].to], 0);
		assert_int_not_equal(site_of[flow[i].from], 0);
		for (uint32_t j = 0; j < i; j++)
			assert_true(flow[i].from != flow[j].from && flow[i].to != flow[j].to);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_sites),
		cmocka_unit_test(pairs_apart),
		cmocka_unit_test(three_sites),
		cmocka_unit_test(far_sites),
		cmocka_unit_test(one_site),
		cmocka_unit_test(no_sites),
		cmocka_unit_test(uncertain_pair),
		cmocka_unit_test(not_certain),
		cmocka_unit_test(flows_of_sets),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
