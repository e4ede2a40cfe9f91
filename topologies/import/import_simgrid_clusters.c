/* SPDX-License-Identifier: Apache-2.0
 *
 * import_simgrid_clusters.c - flat clusters of SimGrid's platform files, and routes between them.
 *
 * A cluster is a place with as many machines. A zoneRoute is a link between two of them, which their machines share: it has the
 * least bandwidth of its links and of the clusters' backbones, and the sum of its latencies and of the ways from a machine to
 * either cluster's edge. Gateways are the clusters' routers, so their names say nothing new.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "topologies/import/import_simgrid.h"

#define CLUSTER_HOSTS_MAX 65536u

/* "0-15", "0-3,8,10-12": how many numbers; 0: it is no such list. */
static uint32_t count_radical(const char *text)
{
	uint64_t count = 0;
	for (const char *at = text; count <= CLUSTER_HOSTS_MAX;) {
		char *end;
		if (*at < '0' || *at > '9')
			return 0;
		unsigned long first = strtoul(at, &end, 10), last = first;
		if (*end == '-' && end[1] >= '0' && end[1] <= '9')
			last = strtoul(end + 1, &end, 10);
		if (last < first || last - first >= CLUSTER_HOSTS_MAX || (*end != ',' && *end != 0))
			return 0;
		count += last - first + 1;
		at = end + 1;
		if (*end == 0)
			break;
	}
	return count <= CLUSTER_HOSTS_MAX ? (uint32_t)count : 0;
}

struct cluster {
	const char *id;
	uint32_t hosts;
	double Bps, latency_s;                   /* of each host's own link */
	double backbone_Bps, backbone_latency_s; /* INFINITY and 0: there is none */
	enum policy policy, backbone_policy;
};

static bool read_cluster(struct simgrid *g, const char **attributes, struct cluster *ret)
{
	static const char *const names[] = {"id", "prefix", "suffix", "radical", "speed", "core", "bw", "lat", "bb_bw",
		"bb_lat", "sharing_policy", "bb_sharing_policy", "topology", "loopback_bw", "loopback_lat", NULL};
	const char *radical = skep_simgrid_need(g, "cluster", attributes, "radical"),
		   *topology = skep_simgrid_attribute(attributes, "topology");
	const char *Bps = radical ? skep_simgrid_need(g, "cluster", attributes, "bw") : NULL,
		   *latency = skep_simgrid_attribute(attributes, "lat");
	const char *bb_Bps = skep_simgrid_attribute(attributes, "bb_bw"),
		   *bb_latency = skep_simgrid_attribute(attributes, "bb_lat");
	const char *policy = skep_simgrid_attribute(attributes, "sharing_policy"),
		   *bb_policy = skep_simgrid_attribute(attributes, "bb_sharing_policy");
	*ret = (struct cluster){.id = Bps ? skep_simgrid_need(g, "cluster", attributes, "id") : NULL};
	if (!ret->id || !skep_simgrid_known(g, "cluster", attributes, names))
		return false;
	ret->hosts = count_radical(radical);
	if (topology && strcasecmp(topology, "FLAT") != 0)
		skep_simgrid_fail(g, "topology '%.40s' of a cluster is not taken; FLAT is", topology);
	else if (ret->hosts == 0)
		skep_simgrid_fail(g, "radical '%.60s': expected at most %u numbers, such as 0-15 or 0-3,8", radical,
			CLUSTER_HOSTS_MAX);
	else if (!skep_simgrid_policy(policy ? policy : "SPLITDUPLEX", &ret->policy) ||
		 !skep_simgrid_policy(bb_policy, &ret->backbone_policy))
		skep_simgrid_fail(g, "the sharing policies of a cluster: SHARED, FATPIPE and SPLITDUPLEX are taken");
	if (g->importer->diag->set)
		return false;
	ret->Bps = skep_simgrid_bandwidth(g, Bps);
	ret->latency_s = skep_simgrid_latency(g, latency ? latency : "0");
	ret->backbone_Bps = bb_Bps ? skep_simgrid_bandwidth(g, bb_Bps) : (double)INFINITY;
	ret->backbone_latency_s = bb_Bps && bb_latency ? skep_simgrid_latency(g, bb_latency) : 0;
	return !g->importer->diag->set;
}

/* A place with so many machines, whose links are their up and down; a backbone is what they share inside. */
void skep_simgrid_cluster(struct simgrid *g, const char **attributes)
{
	struct cluster c;
	const char *wrong = NULL;
	struct skep_survey *survey = &g->importer->survey;
	if (!read_cluster(g, attributes, &c))
		return;
	uint32_t before = survey->places, place = skep_survey_place(survey, c.id, strlen(c.id), &wrong);
	if (wrong)
		skep_simgrid_fail(g, "cluster '%.60s': %s", c.id, wrong);
	else if (place < before && !survey->closed)
		skep_simgrid_fail(g, "a second host or cluster '%s'", c.id);
	if (g->importer->diag->set || place == SKEP_NO_PLACE)
		return;
	bool own = c.policy != FATPIPE;
	survey->place[place].cluster = true;
	survey->place[place].machines = c.hosts;
	survey->place[place].shared = c.backbone_Bps < INFINITY && c.backbone_policy != FATPIPE;
	survey->place[place].up_Bps = survey->place[place].down_Bps = own ? c.Bps : (double)INFINITY;
	double Bps = survey->place[place].shared ? c.backbone_Bps : fmin(c.Bps, c.backbone_Bps);
	skep_import_add(g->importer, SKEP_BANDWIDTH_SAMPLE, place, place, Bps);
	skep_import_add(g->importer, SKEP_LATENCY_SAMPLE, place, place,
		fmin(2 * c.latency_s + c.backbone_latency_s, SKEP_IMPORT_S_MAX));
	g->cluster_s[place] = c.latency_s + c.backbone_latency_s;
	g->cluster_Bps[place] = c.backbone_Bps;
	if (c.policy == SHARED)
		skep_simgrid_count(&g->lopsided, &g->first_lopsided, survey->place[place].name);
}

/* ---- routes between clusters ------------------------------------------------------------------------------------- */

static uint32_t zone_end(struct simgrid *g, const char *element, const char **attributes, const char *name)
{
	struct skep_survey *survey = &g->importer->survey;
	const char *id = skep_simgrid_need(g, element, attributes, name), *wrong = NULL;
	uint32_t places = survey->places;
	uint32_t place = id ? skep_survey_place(survey, id, strlen(id), &wrong) : SKEP_NO_PLACE;
	bool unknown = !survey->closed && place >= places;
	if (id && (wrong || unknown || (place < survey->places && !survey->place[place].cluster)))
		skep_simgrid_fail(g, "a <%.40s> of '%.60s', which is no cluster of this zone", element, id);
	return place;
}

void skep_simgrid_begin_zone_route(struct simgrid *g, const char *element, const char **attributes)
{
	static const char *const names[] = {"src", "dst", "gw_src", "gw_dst", "symmetrical", NULL};
	if (!skep_simgrid_known(g, element, attributes, names))
		return;
	const char *symmetrical = skep_simgrid_attribute(attributes, "symmetrical");
	g->symmetrical = !symmetrical || strcasecmp(symmetrical, "yes") == 0 || strcasecmp(symmetrical, "true") == 0;
	g->in_route = g->of_zones = true;
	g->steps = 0;
	g->route[0] = zone_end(g, element, attributes, "src");
	g->route[1] = g->importer->diag->set ? SKEP_NO_PLACE : zone_end(g, element, attributes, "dst");
	if (!g->importer->diag->set && g->route[0] == g->route[1] && g->route[0] != SKEP_NO_PLACE)
		skep_simgrid_fail(g, "a <%.40s> from a cluster to itself", element);
}

static void add_zone_route(struct simgrid *g, uint32_t from, uint32_t to)
{
	double Bps = fmin(g->cluster_Bps[from], g->cluster_Bps[to]), latency_s = g->cluster_s[from] + g->cluster_s[to];
	if (!skep_simgrid_first_route(g, from, to))
		return;
	for (uint32_t i = 0; i < g->steps; i++) {
		Bps = fmin(Bps, g->step[i].link->Bps);
		latency_s += g->step[i].link->latency_s;
	}
	skep_import_add(g->importer, SKEP_BANDWIDTH_SAMPLE, from, to, Bps);
	skep_import_add(g->importer, SKEP_LATENCY_SAMPLE, from, to, fmin(latency_s, SKEP_IMPORT_S_MAX));
}

/* A link of several routes between clusters is each one's here; one that is not duplex is each direction's. */
static void count_links(struct simgrid *g)
{
	for (uint32_t i = 0; i < g->steps; i++) {
		struct link *link = g->step[i].link;
		if (link->policy == FATPIPE)
			continue;
		if (++link->zone_routes == 2)
			skep_simgrid_count(&g->crowded, &g->first_crowded, link->id);
		else if (link->zone_routes == 1 && g->symmetrical && link->policy == SHARED)
			skep_simgrid_count(&g->lopsided, &g->first_lopsided, link->id);
	}
}

void skep_simgrid_end_zone_route(struct simgrid *g)
{
	uint32_t from = g->route[0], to = g->route[1];
	g->in_route = g->of_zones = false;
	if (g->steps == 0)
		skep_simgrid_fail(g, "a route without links");
	else if (from != SKEP_NO_PLACE && to != SKEP_NO_PLACE) {
		count_links(g);
		add_zone_route(g, from, to);
		if (g->symmetrical && !g->importer->diag->set)
			add_zone_route(g, to, from);
	}
}
