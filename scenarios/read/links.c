/* SPDX-License-Identifier: Apache-2.0
 *
 * links.c - see groups.h. A link is named by its two sites with a dash between them, which names of sites may have as well: the
 * one way to cut such a name into two sites counts.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "scenarios/read/groups.h"

#define BPS_MIN 1.0 /* as in topologies */
#define BPS_MAX 1e15
#define LATENCY_S_MAX 3600.0
#define EGRESS_USD_PER_B_MAX 1e-6

/* The place of that name; t->places: there is none. */
static uint32_t place_named(const struct skep_topology *t, const char *name, size_t length)
{
	uint32_t i = 0;
	while (i < t->places && (strlen(t->place_name[i]) != length || memcmp(t->place_name[i], name, length) != 0))
		i++;
	return i;
}

/* How many ways there are to see two places in the name, and one of these. */
static uint32_t find(const struct skep_topology *t, const char *name, uint32_t ret[2])
{
	uint32_t ways = 0;
	for (const char *dash = strchr(name, '-'); dash != NULL; dash = strchr(dash + 1, '-')) {
		uint32_t from = place_named(t, name, (size_t)(dash - name)),
			 to = place_named(t, dash + 1, strlen(dash + 1));
		if (from == t->places || to == t->places || from == to)
			continue;
		ret[0] = from;
		ret[1] = to;
		ways++;
	}
	return ways;
}

static void read_link(
	struct skep_reader *r, const struct skep_yaml_node *map, const char *name, struct skep_topology *t)
{
	uint32_t end[2] = {0, 0}, ways = find(t, name, end);
	struct skep_pair *pair[2] = {
		&t->pair[(size_t)end[0] * t->places + end[1]], &t->pair[(size_t)end[1] * t->places + end[0]]};
	bool bandwidth = skep_read_has(r, map, "bandwidth"), latency = skep_read_has(r, map, "latency");
	double Bps = bandwidth ? skep_read_quantity(r, map, "bandwidth", SKEP_BANDWIDTH, BPS_MIN, BPS_MAX, 0) : 0;
	bool egress = skep_read_has(r, map, "egress");
	double usd_per_B = egress ? skep_read_quantity(r, map, "egress", SKEP_EGRESS, 0, EGRESS_USD_PER_B_MAX, 0) : 0;
	double latency_s = latency ? skep_read_quantity(r, map, "latency", SKEP_TIME, 0, LATENCY_S_MAX, 0) : 0;
	skep_reader_close_map(r, map);
	if (r->diag->set)
		return;
	if (ways != 1 || !skep_topology_is_link(pair[0]) || !skep_topology_is_link(pair[1])) {
		skep_reader_fail(r, map, NULL,
			"cluster.links: `%.80s` is %s of topology %.60s: expected the names of two sites with a dash "
			"between them, such as %.40s-%.40s",
			name, ways > 1 ? "more than one link" : "no link", t->name, t->place_name[0],
			t->place_name[t->places - 1]);
		return;
	}
	if (skep_topology_relays(t, end[0], end[1])) {
		skep_reader_fail(r, map, NULL,
			"cluster.links: %s and %s have `reach: out`, so there is no link between them; expected %s-%s or "
			"%s-%s",
			t->place_name[end[0]], t->place_name[end[1]], t->place_name[end[0]],
			t->place_name[t->machine[t->machines].place], t->place_name[end[1]],
			t->place_name[t->machine[t->machines].place]);
		return;
	}
	if (egress && !(skep_topology_set_egress(t, end[0], end[1], usd_per_B) &&
			      skep_topology_set_egress(t, end[1], end[0], usd_per_B)))
		skep_reader_fail(r, map, "egress", "not enough memory for the prices of links");
	for (int way = 0; way < 2; way++) {
		pair[way]->latency_s = latency ? latency_s : pair[way]->latency_s;
		if (!bandwidth)
			continue;
		pair[way]->capacity_Bps = Bps;
		pair[way]->shared_Bps = isinf(pair[way]->shared_Bps) ? INFINITY : Bps;
	}
}

void skep_links_read(struct skep_reader *r, const struct skep_yaml_node *cluster, struct skep_topology *t)
{
	const struct skep_yaml_node *map = skep_read_map(r, cluster, "links", false), *link;
	const char *name;
	for (uint32_t i = 0; !r->diag->set && (link = skep_read_entry(r, map, i, &name)) != NULL; i++)
		read_link(r, skep_read_map(r, link, NULL, true), name, t);
	skep_reader_close_map(r, map);
}
