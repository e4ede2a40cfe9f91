/* SPDX-License-Identifier: Apache-2.0
 *
 * topology.h - the cluster of a run: machines with a GPU and access links, and the links between them.
 *
 * A machine stands at a place. Capacity and latency are per ordered pair of places (sites form: a place is a site;
 * matrix form: every machine is its own place), so a topology of thousands of machines at few sites stays small. The
 * directory is one more endpoint, with index `machines`, at the place that the file marks as reliable.
 */
#pragma once

#include "topologies/gpu/gpu.h"
#include "topologies/read/price.h"

struct skep_machine {
	uint32_t place;
	uint32_t gpu;            /* index into gpu[] */
	double up_Bps, down_Bps; /* bytes per second; INFINITY: not limited */
	double price_usd_per_h;  /* 0 unknown, unless is_free; of a price with a history that at the start of the run */
	uint32_t prices;         /* 1 + index into price[]; 0: it has no history */
	/* Of the instance that the history prices, of which this is a part; 0: it is all of it. Of a worker of a machine that
	 * leaves GPUs out fewer, and no whole number, since the others pay for those. */
	double instance_gpus;
	bool is_free; /* `price: 0 USD/h`: its price is known, and nothing */
	/* 1 + the place that is its site, where a machine of several workers is a place of its own (parts.h); 0: `place` is. */
	uint32_t of_site;
	uint32_t unsure; /* 1 + index into unsure_group[]; 0: its figures are taken at their word */
	uint32_t host;   /* 1 + number of the host whose cores it shares with others; 0: its file does not say */
};

static inline uint32_t skep_machine_site(const struct skep_machine *machine)
{
	return machine->of_site > 0 ? machine->of_site - 1 : machine->place;
}

static inline bool skep_machine_has_price(const struct skep_machine *machine)
{
	return machine->prices > 0 || machine->price_usd_per_h > 0 || machine->is_free;
}

/* Do two machines cost the same at any time, or are both prices unknown? */
static inline bool skep_machine_same_price(const struct skep_machine *a, const struct skep_machine *b)
{
	return a->prices == b->prices && a->price_usd_per_h == b->price_usd_per_h && a->is_free == b->is_free;
}

struct skep_pair {           /* ordered pair of places */
	double capacity_Bps; /* what one ordered pair of machines can get; INFINITY: not limited */
	double latency_s;    /* one way */
	double shared_Bps;   /* all traffic of the ordered pair of places together; INFINITY: not shared */
};

enum skep_jitter_kind { SKEP_JITTER_NONE, SKEP_JITTER_NORMAL, SKEP_JITTER_LOGNORMAL, SKEP_JITTER_EMPIRICAL };

struct skep_jitter { /* of latency, drawn for each message */
	enum skep_jitter_kind kind;
	bool relative;    /* the deviation is a part of the latency */
	double deviation; /* seconds, or that part */
	uint32_t first,
		count; /* empirical: the numbers in delay_s[] that are added to the latency, all equally likely */
	double mean_s, most_s; /* of these numbers */
};

struct skep_delay_file { /* a file from which jitter was read, and where its numbers are in delay_s[] */
	char path[512];
	double scale_s; /* seconds of the file's unit */
	uint32_t first, count;
};

#define SKEP_STREAMS_EACH UINT32_MAX /* each message has a connection of its own */

/* Further properties of a link. A link without any has all zero but window_bytes INFINITY. */
struct skep_link_profile {
	double window_bytes; /* of a connection: never faster than this in one round trip; INFINITY: not limited */
	double loss;         /* the part of the packets that is lost, [0, 1): limits one connection */
	double mss_bytes;    /* of a packet */
	double overhead_s;   /* of each message, time of its sender */
	struct skep_jitter jitter;
	uint32_t streams; /* connections of an ordered pair of machines, 0 as 1; or SKEP_STREAMS_EACH */
	bool overtake; /* messages of one ordered pair of machines may; else none gets there before one that was sent earlier */
};

/* How far a figure may be off (topologies/read/uncertain.h). */
struct skep_unsure {
	double deviation; /* of ln(real / stated); 0: it is taken at its word */
	uint64_t key;     /* of what states it: figures of one key are off alike */
};

struct skep_unsure_pair { /* of an ordered pair of places */
	struct skep_unsure bandwidth, latency;
};

struct skep_unsure_group { /* of machines that the file states together: deviations */
	double up, down, price;
};

struct skep_site_link { /* what all traffic between a place and the others shares; INFINITY: not limited */
	double up_Bps, down_Bps;
};

/* How flows that share a link divide it: all alike, or in proportion to 1 / their round trip or 1 / their latency. */
enum skep_fairness { SKEP_FAIRNESS_EQUAL, SKEP_FAIRNESS_RTT, SKEP_FAIRNESS_LATENCY };

struct skep_topology {
	char name[64];
	char source[256];                    /* measured, published or assumed, and by whom */
	char path[512], matrix_path[3][512]; /* where it was read; "": nowhere */
	uint32_t machines, places, gpus;
	uint32_t hosts;                   /* that say how many cores they have */
	struct skep_machine *machine;     /* [machines + 1]; the last is the directory's: no limits, gpu UINT32_MAX */
	struct skep_pair *pair;           /* [places * places], row = source */
	char (*place_name)[32];           /* [places] */
	struct skep_site_link *site_link; /* [places]; NULL: no place has any */
	bool *dials_out; /* [places] its machines can connect to other places, which cannot connect to them; NULL: none */
	double *egress_usd_per_B; /* [places * places] that a sender pays; NAN: not known; NULL: no price is given */
	struct skep_link_profile *link_profile; /* [link_profiles]; with 0 no link has any */
	uint16_t *link_profile_of;              /* [places * places] index into link_profile[]; NULL: 0 for all */
	double *delay_s;                        /* [delays] of empirical jitter */
	struct skep_delay_file *delay_file;     /* [delay_files] */
	struct skep_unsure_pair *unsure;        /* [places * places]; NULL: none says anything */
	struct skep_unsure_group *unsure_group; /* [unsure_groups] */
	struct skep_gpu *gpu;                   /* [gpus] */
	struct skep_price_series *price;        /* [prices] histories that machines name */
	uint32_t prices, link_profiles, delays, delay_files, unsure_groups;
	enum skep_fairness fairness;
	uint64_t seed;            /* seed of jitter; the caller that runs the topology sets it */
	skep_time price_start_ns; /* when the run starts, as a time in the price histories */
};

bool skep_topology_read(const char *path, struct skep_topology *ret, struct skep_diag *reterr);
void skep_topology_finish(struct skep_topology *topology);

/* Sets when the run starts in the price histories. Returns a history that begins later, for the error; NULL if there
 * is none. */
const struct skep_price_series *skep_topology_start_prices(struct skep_topology *topology, skep_time start_ns);
/* The price of a machine from begin_ns to end_ns of the run's time; NAN if it is not known. */
double skep_topology_cost_usd(
	const struct skep_topology *topology, uint32_t machine, skep_time begin_ns, skep_time end_ns);

/* The price of traffic between two places, in USD a byte, 0 or more. False: no memory. */
bool skep_topology_set_egress(struct skep_topology *topology, uint32_t source, uint32_t destination, double usd_per_B);
/* What a byte costs from one place to another, in USD; NAN: not known. */
double skep_topology_price_between(const struct skep_topology *topology, uint32_t source, uint32_t destination);
/* What a byte costs from one machine (directory included) to another: 0 inside of one machine; NAN: the price is not known. */
double skep_topology_egress_usd_per_B(const struct skep_topology *topology, uint32_t source, uint32_t destination);
/* What so many bytes cost; without bytes 0, whether the price is known or not. */
double skep_topology_egress_usd(
	const struct skep_topology *topology, uint32_t source, uint32_t destination, double bytes);

/* Whether messages from one place to the other go through the directory, since neither can connect to the other one. */
static inline bool skep_topology_relays(const struct skep_topology *topology, uint32_t from, uint32_t to)
{
	return topology->dials_out != NULL && from != to && topology->dials_out[from] && topology->dials_out[to];
}

/* Is there a link, or is it the inside of one machine, which is not limited and to which no latency is added? */
bool skep_topology_is_link(const struct skep_pair *pair);
/* Adds `latency_s`, one way, to every link between machines, the directory's included. */
void skep_topology_add_latency(struct skep_topology *topology, double latency_s);

/* Multiplies what every line between machines carries: links, shared ones, those of sites, and each machine's own. */
void skep_topology_scale_bandwidth(struct skep_topology *topology, double factor);

/* The link between two machines (directory included). From a machine to itself it has no limit and no latency. */
struct skep_pair skep_topology_pair(const struct skep_topology *topology, uint32_t source, uint32_t destination);
