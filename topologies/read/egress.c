/* SPDX-License-Identifier: Apache-2.0
 *
 * egress.c - what a sender pays for the bytes that leave it.
 *
 * A price is of an ordered pair of places. It comes from the link between them, else from the site where the bytes begin, else
 * from the fallback of the file, else it is not known: a price of 0 is written by who knows that there is none. Inside of a place
 * bytes are free, unless its `inside` has a price. The table exists as soon as any price is given.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "topologies/read/draft.h"

static bool make_table(struct skep_topology *t)
{
	size_t places = t->places;
	t->egress_usd_per_B = malloc(places * places * sizeof *t->egress_usd_per_B);
	for (size_t i = 0; t->egress_usd_per_B != NULL && i < places * places; i++)
		t->egress_usd_per_B[i] = i / places == i % places ? 0 : (double)NAN;
	return t->egress_usd_per_B != NULL;
}

bool skep_topology_set_egress(struct skep_topology *t, uint32_t source, uint32_t destination, double usd_per_B)
{
	assert(source < t->places && destination < t->places);
	assert(usd_per_B >= 0);
	if (t->egress_usd_per_B == NULL && !make_table(t))
		return false;
	t->egress_usd_per_B[(size_t)source * t->places + destination] = usd_per_B;
	return true;
}

double skep_topology_price_between(const struct skep_topology *t, uint32_t source, uint32_t destination)
{
	assert(source < t->places && destination < t->places);
	return t->egress_usd_per_B ? t->egress_usd_per_B[(size_t)source * t->places + destination] : (double)NAN;
}

double skep_topology_egress_usd_per_B(const struct skep_topology *t, uint32_t source, uint32_t destination)
{
	assert(source <= t->machines && destination <= t->machines);
	bool inside = t->egress_usd_per_B != NULL && source == destination;
	return inside ? 0 : skep_topology_price_between(t, t->machine[source].place, t->machine[destination].place);
}

double skep_topology_egress_usd(const struct skep_topology *t, uint32_t source, uint32_t destination, double bytes)
{
	return bytes > 0 ? bytes * skep_topology_egress_usd_per_B(t, source, destination) : 0;
}

double skep_draft_read_egress(struct skep_draft *d, const struct skep_yaml_node *map)
{
	if (!skep_read_has(&d->r, map, "egress"))
		return NAN;
	return skep_read_quantity(&d->r, map, "egress", SKEP_EGRESS, 0, SKEP_EGRESS_USD_PER_B_MAX, NAN);
}

void skep_draft_set_egress(struct skep_draft *d, uint32_t source, uint32_t destination, double usd_per_B)
{
	if (!isnan(usd_per_B) && !skep_topology_set_egress(d->topology, source, destination, usd_per_B))
		skep_draft_no_memory(d);
}

void skep_draft_set_site_egress(struct skep_draft *d, uint32_t source, double usd_per_B)
{
	for (uint32_t i = 0; i < d->topology->places; i++)
		if (i != source)
			skep_draft_set_egress(d, source, i, usd_per_B);
}

bool skep_draft_has_egress(const struct skep_draft *d, uint32_t source, uint32_t destination)
{
	return !isnan(skep_topology_price_between(d->topology, source, destination));
}
