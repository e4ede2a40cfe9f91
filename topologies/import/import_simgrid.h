/* SPDX-License-Identifier: Apache-2.0
 *
 * import_simgrid.h - a platform file of SimGrid while it is read; private to import_simgrid.c and import_simgrid_clusters.c.
 */
#pragma once

#include <expat.h>

#include "topologies/import/importer.h"

#define ROUTE_LINKS_MAX 64u
#define HOSTS_MAX SKEP_SURVEY_PLACES_MAX
#define CLUSTER_HOSTS_MAX 65536u

enum policy { SHARED, FATPIPE, SPLITDUPLEX };
enum direction { UP, DOWN };

/* Who uses one direction of a link (both, of a SHARED one). */
struct channel {
	uint32_t routes;
	uint32_t from, to, end[2]; /* what all its routes have in common; SKEP_NO_PLACE: nothing */
};

struct link {
	char *id; /* at the front: by_id() compares these */
	double Bps, latency_s;
	enum policy policy;
	struct channel channel[2];
	uint32_t zone_routes; /* between clusters, of which it is a part */
	struct link *next;
};

struct step {
	struct link *link;
	enum direction direction;
};

struct simgrid {
	struct skep_importer *importer;
	const char *path, *text;
	XML_Parser parser;
	uint32_t depth, zones;
	void *tree; /* links by their id */
	struct link *first, **last;
	bool in_route, symmetrical, of_zones;
	uint32_t route[2], steps, itself; /* itself: routes from a host to itself */
	struct step step[ROUTE_LINKS_MAX];
	uint8_t *routed; /* [HOSTS_MAX * HOSTS_MAX / 8] bits */
	uint32_t out[HOSTS_MAX], in[HOSTS_MAX];
	double *cluster_s;                      /* [HOSTS_MAX] from a machine of a cluster to its edge */
	double *cluster_Bps;                    /* [HOSTS_MAX] the most that a cluster's backbone lets out */
	uint32_t configured, lopsided, crowded; /* for notes ... */
	const char *first_lopsided, *first_crowded;
};

/* An error at the place that the parser is at; what is parsed after it is ignored. */
void skep_simgrid_fail(struct simgrid *g, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Of an element's attributes, NULL-terminated pairs: one value (NULL: it is not there; with need that is an error), and whether
 * there is none but the named ones, which is an error else. */
const char *skep_simgrid_attribute(const char **attributes, const char *name);
const char *skep_simgrid_need(struct simgrid *g, const char *element, const char **attributes, const char *name);
bool skep_simgrid_known(struct simgrid *g, const char *element, const char **attributes, const char *const *names);

/* In B/s and s; errors are the file's. */
double skep_simgrid_bandwidth(struct simgrid *g, const char *text);
double skep_simgrid_latency(struct simgrid *g, const char *text);
/* False: there is no such policy. NULL is SHARED. */
bool skep_simgrid_policy(const char *text, enum policy *ret);
/* False: there is one from here to there, which is an error. */
bool skep_simgrid_first_route(struct simgrid *g, uint32_t from, uint32_t to);
/* One more of what a note will tell, and the first of them. */
void skep_simgrid_count(uint32_t *count, const char **first, const char *id);

/* Clusters: the element, a zoneRoute's beginning, and, behind its links, its end. */
void skep_simgrid_cluster(struct simgrid *g, const char **attributes);
void skep_simgrid_begin_zone_route(struct simgrid *g, const char *element, const char **attributes);
void skep_simgrid_end_zone_route(struct simgrid *g);
