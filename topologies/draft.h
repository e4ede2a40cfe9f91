/* SPDX-License-Identifier: Apache-2.0
 *
 * draft.h - a topology while its file is read; private to topology.c, sites.c, matrix.c and peers.c.
 *
 * topology.c reads what all forms have in common; sites.c, matrix.c and peers.c each read one form: they number the places,
 * add the machines, say where the directory stands and fill every ordered pair that traffic can use. After an error (r.diag is
 * set) whatever a function returns is a placeholder.
 */
#ifndef SKEP_TOPOLOGIES_DRAFT_H
#define SKEP_TOPOLOGIES_DRAFT_H

#include "topologies/topology.h"

#define SKEP_MACHINES_MAX (1u << 20)
#define SKEP_SITES_MAX 1024u /* pairs of places: 24 MiB */
#define SKEP_GPU_TYPES_MAX 64u
#define SKEP_PRICES_MAX 64u
#define SKEP_OWN_PLACE UINT32_MAX

/* Ranges in base units: wide enough for any link, narrow enough that no time computed from them overflows. */
#define SKEP_LINK_BPS_MIN 1.0
#define SKEP_LINK_BPS_MAX 1e15
#define SKEP_LATENCY_S_MAX 3600.0

struct skep_draft {
	struct skep_reader r;
	const char *path;
	struct skep_topology *topology;
	uint32_t capacity; /* machines that fit in topology->machine, the directory not counted */
	uint32_t directory_place;
	bool has_fallback;
	struct skep_pair fallback;               /* for pairs that the file does not give */
	const char *profile[SKEP_GPU_TYPES_MAX]; /* the name by which gpu[i] was asked for */
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

/* The keys bandwidth, latency and shared of a map; leaves it open for more. */
struct skep_pair skep_draft_read_link(struct skep_draft *draft, const struct skep_yaml_node *map);

/* Traffic inside one machine, and between a machine and a directory that runs on it. */
struct skep_pair skep_pair_unlimited(void);

void skep_draft_read_sites(struct skep_draft *draft, const struct skep_yaml_node *root);
void skep_draft_read_matrix(struct skep_draft *draft, const struct skep_yaml_node *root);
void skep_draft_read_peers(struct skep_draft *draft, const struct skep_yaml_node *root);

#endif
