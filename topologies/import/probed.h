/* SPDX-License-Identifier: Apache-2.0
 *
 * probed.h - a cluster as `skep probe` has measured it, and how it becomes a topology that everything else reads: sites where
 * some place has several machines, else matrices; and a profile for each kind of device, with a table of its products,
 * of the layers of a model, or of both.
 */
#pragma once

#include <stdio.h>

#include "base/reader.h"

#define SKEP_PROBED_PRODUCTS_MAX 27u

struct skep_probed_product { /* C (m x n) = A (m x k) B (k x n) */
	uint32_t m, k, n;
	double seconds;
};

/* Layers of one transformer, embedding, block and head, and what an edge of a stage costs, as a table of layers has them
 * (topologies/gpu/gpu_table.h), for microbatches of 1, 2, 4, ... samples. */
#define SKEP_PROBED_LAYERS 4u
#define SKEP_PROBED_MICROBATCHES_MAX 8u
#define SKEP_PROBED_COLUMNS 3u
struct skep_probed_layer {
	double s[SKEP_PROBED_COLUMNS]; /* forward, backward, update; above 0, and no pass shorter than that of fewer samples */
};

struct skep_probed_model {
	char name[64];                                                 /* "": no layers were measured */
	double flop[SKEP_PROBED_LAYERS][SKEP_PROBED_MICROBATCHES_MAX]; /* of a forward pass; an edge has none */
	double bytes[SKEP_PROBED_LAYERS]
		    [SKEP_PROBED_MICROBATCHES_MAX]; /* that it moves through memory; an edge's payload */
};

/* What a pass costs a worker besides its arithmetic: that another thread makes it, and each payload that it receives or sends, so
 * much and so much for each byte. NAN: not known. */
struct skep_probed_costs {
	double handover_s, payload_s, byte_s;
};

/* Of one rank. Devices of equal name get one profile, of medians, if they are the processors of one host, or if their rates
 * differ by no more than SKEP_PROBED_ALIKE. */
#define SKEP_PROBED_ALIKE 0.1
struct skep_probed_device {
	char name[64];
	bool cuda;
	uint32_t cores;      /* that the process may use */
	uint32_t gpu_ranks;  /* that share its GPU, itself one of them; 0: a CPU */
	double memory_bytes; /* its part of it */
	double flops, memory_Bps, overhead_s;
	double alone_flops; /* while no other rank of its host computed; NAN: not measured */
	struct skep_probed_product product[SKEP_PROBED_PRODUCTS_MAX]; /* in the order of a table */
	struct skep_probed_costs costs;                               /* in overhead_s and the layers already */
	uint32_t products, microbatches;                              /* that were measured */
	struct skep_probed_layer layer[SKEP_PROBED_LAYERS][SKEP_PROBED_MICROBATCHES_MAX];
};

/* A figure whose spread is above this is written as uncertain. It lies between value / (1 + spread) and value * (1 + spread),
 * as far as its samples tell. */
#define SKEP_PROBED_SPREAD_MOST 0.05
struct skep_probed_link { /* one way, from a place to a place; a place to itself: between two of its ranks */
	double latency_s, least_s, deviation_s; /* median, least and spread of one; latency_s NAN: not measured */
	double Bps;                             /* NAN: its samples do not bear any */
	double latency_spread, Bps_spread;
	uint32_t pings, transfers;
	uint64_t bytes; /* of the largest message that bandwidth was measured with */
	bool falling;   /* the rate fell within that size */
};

bool skep_probed_uncertain(const struct skep_probed_link *way);
/* The deviations that the spreads are of: medians and slopes lie within them with 99 %. */
double skep_probed_deviation(double spread);
void skep_probed_put_uncertain(
	FILE *file, const struct skep_probed_link *way); /* of an uncertain one: what, and by how much */

enum skep_probed_outcome {
	SKEP_PROBED_SITES_UNTRIED, /* fewer than four hosts, or hosts with several ranks */
	SKEP_PROBED_SITES_NONE,    /* no sites, and all hosts at once have what pairs have alone */
	SKEP_PROBED_SITES_HIDDEN,  /* no sites, but all hosts at once have less */
	SKEP_PROBED_SITES_UNCERTAIN,
	SKEP_PROBED_SITES_MIXED, /* found, but the ranks of a site do not follow each other */
	SKEP_PROBED_SITES_FOUND,
};

struct skep_probed_sites { /* hosts that share lines, measured together */
	enum skep_probed_outcome outcome;
	uint32_t count;            /* 0: pairs stand for themselves */
	uint32_t *of;              /* [places] the site, numbered by their first places */
	double *up_Bps, *down_Bps; /* [count] what leaves and enters a site; INFINITY: not less than its hosts have */
	double *line_Bps; /* [count * count] from a site to a site, the diagonal within it; INFINITY: the same */
	double together;  /* HIDDEN: what all hosts had at once, as a part of what they have alone */
};

struct skep_probed { /* made by skep_probed_create() but for what was measured */
	uint32_t ranks, places, hosts;
	uint32_t *place_of, *host_of;      /* [ranks] */
	char (*place_name)[32];            /* [places] */
	struct skep_probed_device *device; /* [ranks] */
	struct skep_probed_link *way;      /* [places * places], row = source */
	struct skep_probed_sites sites;
	double way_s; /* for one way, about */
	bool at_once; /* pairs that have no rank in common were measured at the same time */
	struct skep_probed_model model;
	char gpu[64];     /* the profile of all devices, which were not measured; "": they were */
	char date[32];    /* UTC */
	char shaped[256]; /* the topology that was imposed on the messages; "": none */
};

/* Adds what passes cost besides to the overhead of an operation and to the layers of the model: half of a hand-over to each end
 * of a stage, which an edge, the embedding and the head are, and to an edge what a payload of its bytes costs. What is not known
 * adds nothing. */
void skep_probed_add_costs(struct skep_probed_device *device, const struct skep_probed_model *model,
	const struct skep_probed_costs *costs);

bool skep_probed_create(struct skep_probed *ret, uint32_t ranks, uint32_t places); /* false: no memory */
void skep_probed_finish(struct skep_probed *probed);
/* What became of looking for shared lines, each line after `begin`. */
void skep_probed_put_verdict(FILE *file, const struct skep_probed *p, const char *begin);
struct skep_probed_link *skep_probed_link(const struct skep_probed *probed, uint32_t from, uint32_t to);

/* Can such a topology be written there? Its name ends in .yaml, nothing is there yet, and its folder takes files. */
bool skep_probed_writable(const char *path, struct skep_diag *reterr);
/* The topology, its matrices beside it, and profiles in gpus/ beside it: all of them, or none. */
bool skep_probed_write(const struct skep_probed *probed, const char *path, struct skep_diag *reterr);
