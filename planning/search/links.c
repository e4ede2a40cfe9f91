/* SPDX-License-Identifier: Apache-2.0
 *
 * links.c - whether delays and rates make sense, and which workers nothing but their number tells apart. And of the cost of
 * throughput.h, what is of single links: the ring of a reduction, and what senders pay for traffic; a price that is not known
 * counts as none, since the search looks for what is cheap, and the forecast says what is not known.
 */
#include <string.h>

#include "core/bits.h"
#include "core/collective/ring.h"
#include "planning/search/throughput_state.h"

static struct skep_links_check check_numbers(const struct skep_links *l)
{
	for (uint32_t i = 0; i < l->workers; i++)
		for (uint32_t j = 0; j < l->workers; j++) {
			double delay = l->delay_s[(size_t)i * l->workers + j],
			       rate = l->rate_Bps[(size_t)i * l->workers + j];
			if (i == j)
				continue;
			if (delay != delay || rate != rate)
				return (struct skep_links_check){SKEP_LINKS_NAN, i, j};
			if (delay < 0 || rate < 0)
				return (struct skep_links_check){SKEP_LINKS_NEGATIVE, i, j};
		}
	return (struct skep_links_check){SKEP_LINKS_FINE, 0, 0};
}

static bool is_link(const struct skep_links *l, uint32_t from, uint32_t to)
{
	size_t at = (size_t)from * l->workers + to;
	return l->rate_Bps[at] > 0 && l->delay_s[at] < SKEP_NEVER;
}

/* Marks whom worker 0 reaches, or who reaches it: 1 is reached, 2 has been looked from. */
static uint32_t not_reached(const struct skep_links *l, uint8_t *mark, bool backwards)
{
	memset(mark, 0, l->workers);
	mark[0] = 1;
	for (uint32_t i = 0; i < l->workers;) {
		if (mark[i] != 1) {
			i++;
			continue;
		}
		uint32_t lowest = i + 1;
		mark[i] = 2;
		for (uint32_t j = l->workers; j-- > 0;)
			if (mark[j] == 0 && (backwards ? is_link(l, j, i) : is_link(l, i, j))) {
				mark[j] = 1;
				lowest = j < lowest ? j : lowest;
			}
		i = lowest;
	}
	for (uint32_t i = 0; i < l->workers; i++)
		if (mark[i] == 0)
			return i;
	return SKEP_NO_WORKER;
}

struct skep_links_check skep_links_check(const struct skep_links *links, uint8_t *mark)
{
	struct skep_links_check check = check_numbers(links);
	if (check.fault != SKEP_LINKS_FINE)
		return check;
	uint32_t lost = not_reached(links, mark, false);
	if (lost != SKEP_NO_WORKER)
		return (struct skep_links_check){SKEP_LINKS_APART, 0, lost};
	lost = not_reached(links, mark, true);
	if (lost != SKEP_NO_WORKER)
		return (struct skep_links_check){SKEP_LINKS_APART, lost, 0};
	return check;
}

/* ---- kinds ---------------------------------------------------------------------------------------------------------- */

static bool same_link(const struct skep_links *l, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
	size_t i = (size_t)a * l->workers + b, j = (size_t)c * l->workers + d;
	return l->delay_s[i] == l->delay_s[j] && l->rate_Bps[i] == l->rate_Bps[j];
}

/* Nothing changes when the two change places. That is an equivalence: their links to all others are the same, both ways, and
 * so are those between the two. */
static bool alike(const struct skep_links *l, uint32_t a, uint32_t b)
{
	if (!same_link(l, a, b, b, a))
		return false;
	for (uint32_t i = 0; i < l->workers; i++)
		if (i != a && i != b && !(same_link(l, a, i, b, i) && same_link(l, i, a, i, b)))
			return false;
	return true;
}

static bool same_link_profiles(const double *link_profile, uint32_t link_profiles, uint32_t a, uint32_t b)
{
	return link_profiles == 0 ||
	       memcmp(link_profile + (size_t)a * link_profiles, link_profile + (size_t)b * link_profiles,
		       link_profiles * sizeof *link_profile) == 0;
}

uint32_t skep_kinds(const struct skep_links *links, const double *link_profile, uint32_t link_profiles,
	const uint32_t *fixed, uint32_t *ret_kind)
{
	uint32_t kinds = 0;
	for (uint32_t i = 0; i < links->workers; i++) {
		uint32_t seen = 0;
		ret_kind[i] = kinds;
		for (uint32_t j = 0; j < i && seen < kinds; j++) {
			if (ret_kind[j] != seen) /* the first of a kind stands for it, and kinds begin in their order */
				continue;
			if ((!fixed || fixed[i] == fixed[j]) && same_link_profiles(link_profile, link_profiles, i, j) &&
				alike(links, i, j)) {
				ret_kind[i] = seen;
				break;
			}
			seen++;
		}
		kinds += ret_kind[i] == kinds;
	}
	return kinds;
}

/* ---- of the cost of throughput.h --------------------------------------------------------------------------------- */

static const uint64_t *members_of(const struct flow *f, uint32_t stage)
{
	return f->member + (size_t)stage * f->words;
}

uint32_t skep_throughput_ring_segments(const struct skep_throughput *t, double chunk_bytes)
{
	return t->ring_segments > 0 ? t->ring_segments
	                            : skep_ring_segments_for((uint64_t)chunk_bytes, t->ring_latency_bytes);
}

/* So many hops one after the other, and the last one. */
static double hops_s(const struct skep_throughput *t, double hops, double chunk_bytes, double busy_s, double delay_s)
{
	double hop_s = busy_s / skep_throughput_ring_segments(t, chunk_bytes) + delay_s;
	return hops * (hop_s > busy_s ? hop_s : busy_s) + busy_s + delay_s;
}

double skep_throughput_ring_s(
	const struct skep_throughput *t, double members, double chunk_bytes, double busy_s, double delay_s)
{
	return members > 1 ? hops_s(t, 2 * members - 3, chunk_bytes, busy_s, delay_s) : 0;
}

double skep_throughput_half_ring_s(
	const struct skep_throughput *t, double members, double chunk_bytes, double busy_s, double delay_s)
{
	return members > 1 ? hops_s(t, members - 2, chunk_bytes, busy_s, delay_s) : 0;
}

/* The ring in the order of the workers' numbers. */
double skep_throughput_reduction_s(struct flow *f, uint32_t stage)
{
	uint32_t n = f->count[stage], first = skep_bits_next(members_of(f, stage), 0, f->workers), here = first;
	double slowest = 0, delay = 0;
	if (n < 2)
		return 0;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t next = skep_bits_next(members_of(f, stage), here + 1, f->workers);
		next = next < f->workers ? next : first;
		size_t at = (size_t)here * f->workers + next;
		f->lacks |= f->per_byte[at] < 0;
		slowest = f->per_byte[at] > slowest ? f->per_byte[at] : slowest;
		delay += f->per_byte[at] < 0 ? 0 : f->t.links->delay_s[at];
		here = next;
	}
	double bytes = f->t.reduced_bytes[stage] / n;
	return skep_throughput_ring_s(&f->t, n, bytes, bytes * slowest, delay / n);
}

/* In USD per byte. */
static double price_of(const struct flow *f, uint32_t from, uint32_t to)
{
	double usd = f->t.egress_usd_per_B[(size_t)f->t.place[from] * f->t.places + f->t.place[to]];
	return usd > 0 ? usd : 0;
}

/* Of a weight by speed that is added, or taken away. */
static double weight_by_way(const struct flow *f, uint32_t worker, uint32_t other, double weight)
{
	if (!f->t.way_ns)
		return weight;
	uint32_t here = f->t.place[worker], there = f->t.place[other];
	uint64_t ns = f->t.way_ns[(size_t)here * f->t.places + there] + f->t.way_ns[(size_t)there * f->t.places + here];
	return weight / (1 + (weight < 0 ? -weight : weight) * 1e-9 * (double)ns);
}

void skep_throughput_pay(const struct flow *f, uint32_t worker, uint32_t other, double weight, struct sums *s)
{
	if (!f->t.rent || !f->t.egress_usd_per_B)
		return;
	double chosen = weight_by_way(f, worker, other, weight);
	s->forth_usd += chosen * price_of(f, worker, other);
	s->back_usd += chosen * price_of(f, other, worker);
	s->chosen += chosen;
}

/* Each hop carries 2 (n - 1) / n of the vector, once in a period. */
double skep_throughput_ring_usd(const struct flow *f, uint32_t stage)
{
	uint32_t n = f->count[stage], first = skep_bits_next(members_of(f, stage), 0, f->workers), here = first;
	double usd = 0;
	if (n < 2 || !f->t.rent || !f->t.egress_usd_per_B)
		return 0;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t next = skep_bits_next(members_of(f, stage), here + 1, f->workers);
		next = next < f->workers ? next : first;
		usd += price_of(f, here, next);
		here = next;
	}
	return usd * 2 * (n - 1) / n * f->t.reduced_bytes[stage] / f->t.period;
}
