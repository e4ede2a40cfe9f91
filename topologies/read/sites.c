/* SPDX-License-Identifier: Apache-2.0
 *
 * sites.c - the sites form of a topology: machines at named sites, and links between the sites. A place is a site.
 *
 * A site's uplink and downlink are what all its traffic with other sites shares, whatever links there are.
 *
 * What is kept true: an ordered pair of sites gets its link from at most one entry of `links`, and a pair without one
 * gets the file's fallback or is an error that names it. Two sites that only dial out (`reach: out`) have no link: what they say
 * to each other takes both their links with the directory's site, and their pair is what these two come to.
 */
#include "topologies/read/draft.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct skep_pair *pair_at(struct skep_draft *d, uint32_t source, uint32_t destination)
{
	return &d->topology->pair[(size_t)source * d->topology->places + destination];
}

/* ---- sites ------------------------------------------------------------------------------------------------------- */

static uint32_t count_sites(struct skep_draft *d, const struct skep_yaml_node *sites)
{
	const char *name;
	uint32_t count = 0;
	while (skep_read_entry(&d->r, sites, count, &name))
		count++;
	if (!d->r.diag->set && (count == 0 || count > SKEP_SITES_MAX))
		skep_reader_fail(&d->r, sites, NULL, "expected 1 to %u sites, found %u", SKEP_SITES_MAX, count);
	return count;
}

static bool make_site_links(struct skep_draft *d)
{
	struct skep_topology *t = d->topology;
	t->site_link = calloc(t->places, sizeof *t->site_link);
	if (!t->site_link)
		skep_draft_no_memory(d);
	for (uint32_t i = 0; t->site_link && i < t->places; i++)
		t->site_link[i] = (struct skep_site_link){INFINITY, INFINITY};
	return t->site_link;
}

/* What all its traffic with other sites shares, each way. */
static void read_site_link(struct skep_draft *d, const struct skep_yaml_node *site, uint32_t index)
{
	struct skep_topology *t = d->topology;
	struct skep_site_link site_link = {INFINITY, INFINITY};
	site_link.up_Bps = skep_read_quantity(
		&d->r, site, "uplink", SKEP_BANDWIDTH, SKEP_LINK_BPS_MIN, SKEP_LINK_BPS_MAX, INFINITY);
	site_link.down_Bps = skep_read_quantity(
		&d->r, site, "downlink", SKEP_BANDWIDTH, SKEP_LINK_BPS_MIN, SKEP_LINK_BPS_MAX, INFINITY);
	if (d->r.diag->set || (!t->site_link && isinf(site_link.up_Bps) && isinf(site_link.down_Bps)))
		return;
	if (!t->site_link && !make_site_links(d))
		return;
	t->site_link[index] = site_link;
}

static void read_reach(struct skep_draft *d, const struct skep_yaml_node *site, uint32_t index)
{
	static const char *const reach[] = {"any", "out", NULL};
	struct skep_topology *t = d->topology;
	if (skep_read_choice(&d->r, site, "reach", reach, 0) == 0 || d->r.diag->set)
		return;
	if (t->dials_out == NULL)
		t->dials_out = calloc(t->places, sizeof *t->dials_out);
	if (t->dials_out == NULL)
		skep_draft_no_memory(d);
	else
		t->dials_out[index] = true;
}

static void read_site(struct skep_draft *d, const struct skep_yaml_node *sites, uint32_t index)
{
	const char *name;
	skep_read_entry(&d->r, sites, index, &name);
	const struct skep_yaml_node *site = skep_read_map(&d->r, sites, name, true);
	if (d->r.diag->set)
		return;
	skep_draft_name_place(d, sites, name, index, name);
	skep_draft_add_machines(d, site, false, index);
	read_site_link(d, site, index);
	read_reach(d, site, index);
	skep_draft_set_site_egress(d, index, skep_draft_read_egress(d, site));
	const struct skep_yaml_node *inside = skep_read_map(&d->r, site, "inside", false);
	if (!d->r.diag->set && inside) {
		struct skep_draft_link link = skep_draft_read_link(d, inside);
		link.unsure.bandwidth.key = link.unsure.latency.key = skep_unsure_key(name, name);
		skep_draft_set_pair(d, index, index, &link);
		skep_reader_close_map(&d->r, inside);
	}
	skep_reader_close_map(&d->r, site);
}

/* The site of that name, or an error at `key` of `map` (at `map` itself without a key). */
static uint32_t find_site(struct skep_draft *d, const struct skep_yaml_node *map, const char *key, const char *name)
{
	struct skep_topology *t = d->topology;
	for (uint32_t i = 0; i < t->places; i++)
		if (strcmp(t->place_name[i], name) == 0)
			return i;
	char known[200] = "";
	for (uint32_t i = 0; i < t->places; i++) {
		size_t used = strlen(known);
		if (used + strlen(t->place_name[i]) + 3 < sizeof known)
			snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", t->place_name[i]);
	}
	skep_reader_fail(&d->r, map, key, "no site '%.40s'; there are: %s", name, known);
	return 0;
}

/* ---- links ------------------------------------------------------------------------------------------------------- */

static void set_link(struct skep_draft *d, const struct skep_yaml_node *item, uint32_t source, uint32_t destination,
	const struct skep_draft_link *link)
{
	const struct skep_topology *t = d->topology;
	if (skep_topology_relays(t, source, destination))
		skep_reader_fail(&d->r, item, NULL,
			"%s and %s have `reach: out`: neither can connect to the other, and what they say goes through the "
			"directory; expected no link between them",
			t->place_name[source], t->place_name[destination]);
	else if (!isnan(pair_at(d, source, destination)->capacity_Bps))
		skep_reader_fail(&d->r, item, NULL, "a second link from %s to %s", t->place_name[source],
			t->place_name[destination]);
	else
		skep_draft_set_pair(d, source, destination, link);
}

/* One end of a link; `key` NULL: `at` is itself the name of the site. */
static uint32_t read_end(struct skep_draft *d, const struct skep_yaml_node *at, const char *key)
{
	const char *name = skep_read_string(&d->r, at, key, NULL);
	return d->r.diag->set ? 0 : find_site(d, at, key, name);
}

/* The two sites of a link: `between: [a, b]` for both directions (true), or `from: a` and `to: b` for one. */
static bool read_ends(struct skep_draft *d, const struct skep_yaml_node *item, uint32_t end[2])
{
	const struct skep_yaml_node *between = skep_read_list(&d->r, item, "between", false);
	if (!between && !skep_read_has(&d->r, item, "from"))
		skep_reader_fail(
			&d->r, item, NULL, "expected the ends of the link: between: [a, b], or from: a and to: b");
	if (between && skep_yaml_length(between) != 2)
		skep_reader_fail(&d->r, between, NULL, "expected two sites: [a, b]");
	if (d->r.diag->set)
		return false;
	end[0] = between ? read_end(d, skep_yaml_item(between, 0), NULL) : read_end(d, item, "from");
	end[1] = between ? read_end(d, skep_yaml_item(between, 1), NULL) : read_end(d, item, "to");
	return between != NULL;
}

static void read_link(struct skep_draft *d, const struct skep_yaml_node *item)
{
	uint32_t end[2] = {0, 0};
	bool both = read_ends(d, item, end);
	struct skep_draft_link link = skep_draft_read_link(d, item);
	skep_reader_close_map(&d->r, item);
	if (d->r.diag->set)
		return;
	if (end[0] == end[1]) {
		skep_reader_fail(&d->r, item, NULL, "a link from %s to itself: the network of a site is its 'inside'",
			d->topology->place_name[end[0]]);
		return;
	}
	link.unsure.bandwidth.key = link.unsure.latency.key =
		skep_unsure_key(d->topology->place_name[end[0]], d->topology->place_name[end[1]]);
	set_link(d, item, end[0], end[1], &link);
	if (both)
		set_link(d, item, end[1], end[0], &link);
}

static void read_links(struct skep_draft *d, const struct skep_yaml_node *root)
{
	const struct skep_yaml_node *list = skep_read_list(&d->r, root, "links", false);
	for (uint32_t i = 0; !d->r.diag->set && list && i < skep_yaml_length(list); i++)
		read_link(d, skep_read_map(&d->r, skep_yaml_item(list, i), NULL, true));
}

/* ---- pairs that the file does not give --------------------------------------------------------------------------- */

/* Machines at a site, the directory included: traffic inside it needs two. */
static uint32_t endpoints_at(const struct skep_draft *d, uint32_t place)
{
	uint32_t count = d->directory_place == place;
	for (uint32_t i = 0; i < d->topology->machines; i++)
		count += d->topology->machine[i].place == place;
	return count;
}

static void fill_inside(struct skep_draft *d, const struct skep_yaml_node *sites, uint32_t place)
{
	const char *name = d->topology->place_name[place];
	struct skep_pair *pair = pair_at(d, place, place);
	if (!isnan(pair->capacity_Bps))
		return;
	if (endpoints_at(d, place) < 2)
		*pair = skep_pair_unlimited();
	else
		skep_reader_fail(&d->r, sites, name,
			"site %s has several endpoints (its machines and the directory): expected inside: {bandwidth, "
			"latency}; the fallback is of links between sites",
			name);
}

/* A key that is none, such as a misspelt `links`, is what is wrong if there is one: all that may be there has been asked for. */
static void fail_no_link(struct skep_draft *d, const struct skep_yaml_node *root, uint32_t from, uint32_t to)
{
	const struct skep_topology *t = d->topology;
	skep_reader_close_map(&d->r, root);
	skep_reader_fail(&d->r, root, skep_read_has(&d->r, root, "links") ? "links" : NULL,
		"no link from %s to %s: add one, or fallback: {bandwidth, latency} to the file", t->place_name[from],
		t->place_name[to]);
}

static void fill(struct skep_draft *d, const struct skep_yaml_node *root, const struct skep_yaml_node *sites)
{
	struct skep_topology *t = d->topology;
	for (uint32_t i = 0; i < t->places && !d->r.diag->set; i++)
		fill_inside(d, sites, i);
	for (uint32_t i = 0; i < t->places && !d->r.diag->set; i++)
		for (uint32_t j = 0; j < t->places && !d->r.diag->set; j++) {
			if (!isnan(pair_at(d, i, j)->capacity_Bps) || skep_topology_relays(t, i, j))
				continue;
			struct skep_draft_link link = d->fallback;
			if (skep_draft_has_egress(d, i, j)) /* that of the site */
				link.egress_usd_per_B = NAN;
			if (d->has_fallback)
				skep_draft_set_pair(d, i, j, &link);
			else
				fail_no_link(d, root, i, j);
		}
}

static void check_reach(struct skep_draft *d, const struct skep_yaml_node *sites)
{
	const struct skep_topology *t = d->topology;
	if (d->r.diag->set || t->dials_out == NULL || !t->dials_out[d->directory_place])
		return;
	const char *name = t->place_name[d->directory_place];
	skep_reader_fail(&d->r, sites, name,
		"site %s has the directory, to which all others connect: expected `reach: any` there", name);
}

void skep_draft_read_sites(struct skep_draft *d, const struct skep_yaml_node *root)
{
	const struct skep_yaml_node *sites = skep_read_map(&d->r, root, "sites", true);
	uint32_t count = d->r.diag->set ? 0 : count_sites(d, sites);
	if (!d->r.diag->set)
		skep_draft_add_places(d, count);
	for (uint32_t i = 0; i < count && !d->r.diag->set; i++)
		read_site(d, sites, i);
	const char *directory = skep_read_string(&d->r, root, "directory", NULL);
	if (!d->r.diag->set)
		d->directory_place = find_site(d, root, "directory", directory);
	if (!d->r.diag->set && d->topology->machines == 0)
		skep_reader_fail(&d->r, root, "sites", "expected at least one machine");
	check_reach(d, sites);
	read_links(d, root);
	fill(d, root, sites);
}
