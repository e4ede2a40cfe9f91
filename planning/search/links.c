/* SPDX-License-Identifier: Apache-2.0
 *
 * links.c - whether delays and rates make sense, and which workers nothing but their number tells apart.
 */
#include <string.h>

#include "planning/search/allocation.h"

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
