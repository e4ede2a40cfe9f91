/* SPDX-License-Identifier: Apache-2.0
 *
 * draft.h - a topology while its file is read; private to topology.c, sites.c, matrix.c, peers.c,
 * egress.c, link_profiles.c and uncertain.c.
 *
 * topology.c reads what all forms have in common. sites.c, matrix.c and peers.c each read one form: they number the
 * places, add the machines, place the directory and fill every ordered pair that traffic can use. After an error
 * (r.diag is set) whatever a function returns is a placeholder.
 */
#pragma once

#include "topologies/read/topology.h"

#define SKEP_MACHINES_MAX (1u << 20)
#define SKEP_SITES_MAX 1024u /* pairs of places: 24 MiB */
#define SKEP_GPU_TYPES_MAX 64u
#define SKEP_PRICES_MAX 64u
#define SKEP_LINK_PROFILES_MAX 4096u
#define SKEP_DELAYS_MAX (1u << 20)
#define SKEP_OWN_PLACE UINT32_MAX

/* Ranges in base units: wide enough for any link, narrow enough that no time computed from them overflows. */
#define SKEP_LINK_BPS_MIN 1.0
#define SKEP_LINK_BPS_MAX 1e15
#define SKEP_LATENCY_S_MAX 3600.0
#define SKEP_EGRESS_USD_PER_B_MAX 1e-6 /* 1000 USD/GB */

struct skep_draft_link { /* what a file says of a link */
	struct skep_pair pair;
	double egress_usd_per_B; /* NAN: it says nothing */
	uint16_t link_profile;   /* index */
	struct skep_unsure_pair unsure;
};

struct skep_draft {
	struct skep_reader r;
	const char *path;
	struct skep_topology *topology;
	uint32_t capacity; /* machines that fit in topology->machine, the directory not counted */
	uint32_t directory_place;
	const struct skep_yaml_node *root;
	bool has_fallback;
	struct skep_draft_link fallback;         /* for pairs that the file does not give */
	const char *profile[SKEP_GPU_TYPES_MAX]; /* the name by which gpu[i] was asked for, ... */
	double speed[SKEP_GPU_TYPES_MAX];        /* ... and so many times as fast */
	const char *price_type[SKEP_PRICES_MAX], *price_zone[SKEP_PRICES_MAX]; /* by which price[i] was */
};

/* Adds the groups of machines in the list `machines` of `map`, at `place` (SKEP_OWN_PLACE: each at a place of its own,
 * numbered as the machines are). */
void skep_draft_add_machines(struct skep_draft *draft, const struct skep_yaml_node *map, bool required, uint32_t place);

/* What add_machines uses, for forms that add machines by themselves: the index of the profile that `gpu` of the map names, and
 * room in topology->machine for so many more (false: no memory, and it was said). */
uint32_t skep_draft_gpu(struct skep_draft *draft, const struct skep_yaml_node *map);
bool skep_draft_reserve(struct skep_draft *draft, uint32_t more);

/* Makes the pairs and names of `places` places; every pair is a hole (capacity and latency NAN, not shared). */
void skep_draft_add_places(struct skep_draft *draft, uint32_t places);
void skep_draft_name_place(
	struct skep_draft *draft, const struct skep_yaml_node *at, const char *key, uint32_t place, const char *name);

/* The keys of a link: bandwidth, latency, shared, egress, and its profile; leaves the map open for more. */
struct skep_draft_link skep_draft_read_link(struct skep_draft *draft, const struct skep_yaml_node *map);
void skep_draft_set_pair(
	struct skep_draft *draft, uint32_t source, uint32_t destination, const struct skep_draft_link *link);

/* egress.c. The key `egress` of a link or a site; NAN: there is none. What is set as NAN is left as it is. */
double skep_draft_read_egress(struct skep_draft *draft, const struct skep_yaml_node *map);
void skep_draft_set_egress(struct skep_draft *draft, uint32_t source, uint32_t destination, double usd_per_B);
void skep_draft_set_site_egress(struct skep_draft *draft, uint32_t source, double usd_per_B); /* to all other places */
bool skep_draft_has_egress(const struct skep_draft *draft, uint32_t source, uint32_t destination);

/* uncertain.c. The key `uncertainty` of a link or a matrix, without keys of its figures, and of a group of machines (as
 * skep_machine.unsure). */
struct skep_unsure_pair skep_draft_read_unsure(struct skep_draft *draft, const struct skep_yaml_node *map);
uint32_t skep_draft_read_unsure_group(struct skep_draft *draft, const struct skep_yaml_node *group);
/* Of what is stated for two places, by their names. */
uint64_t skep_unsure_key(const char *from, const char *to);
void skep_draft_set_unsure(struct skep_draft *draft, size_t pair, const struct skep_unsure_pair *unsure);

/* link_profiles.c. Reads the profile that holds for the whole file, from the keys of its root; to be called first. */
void skep_draft_read_link_profiles(struct skep_draft *draft, const struct skep_yaml_node *root);
/* The profile of one link; keys that it lacks are as for the whole file. spread_s: the deviation given with its
 * latency. */
uint16_t skep_draft_read_link_profile(struct skep_draft *draft, const struct skep_yaml_node *map, double spread_s);
void skep_draft_finish_link_profiles(
	struct skep_draft *draft); /* to be called last; drops the table if no link has any property */

/* Traffic inside one machine, and between a machine and a directory that runs on it. */
struct skep_pair skep_pair_unlimited(void);
void skep_draft_no_memory(struct skep_draft *draft); /* sets the diagnosis */

void skep_draft_read_sites(struct skep_draft *draft, const struct skep_yaml_node *root);
void skep_draft_read_matrix(struct skep_draft *draft, const struct skep_yaml_node *root);
void skep_draft_read_peers(struct skep_draft *draft, const struct skep_yaml_node *root);
