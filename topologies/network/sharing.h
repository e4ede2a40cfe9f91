/* SPDX-License-Identifier: Apache-2.0
 *
 * sharing.h - max-min fair rates of flows that cross links; knows no time. Used by network.c alone.
 *
 * A flow is a number below the reserved count, has a cap of its own and crosses at most SKEP_CROSSINGS links, in any order.
 * Rates are in proportion to the flows' weights, where they have any. Joining and leaving only mark what they touch;
 * skep_sharing_solve() brings the rates up to date and lists the flows whose rate may have changed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SKEP_NO_LINK UINT32_MAX
/* The sender's up, the receiver's down, the pair's, that of the pair of places, and of each place's own two one. */
#define SKEP_CROSSINGS 6u
#define SKEP_FLOWS_MAX (UINT32_C(1) << 28)

struct skep_crossing { /* of a link by a flow */
	uint32_t link;
	uint32_t next, prev; /* in the link's list: flow * 8 + number of the crossing */
};

struct skep_flow_rate { /* one flow */
	double rate;    /* bytes per ns */
	double cap;     /* never faster than this, whatever its links have left; INFINITY: it has none */
	uint8_t crossings;
	uint8_t bottleneck; /* the crossing whose link holds it; SKEP_CROSSINGS: none, its cap does */
	bool changed;       /* it is in the list of changed flows */
	struct skep_crossing crossing[SKEP_CROSSINGS];
};

struct skep_link {
	double capacity;   /* bytes per ns */
	double level;      /* rate of the flows that it holds, per weight; INFINITY: holds none */
	double next_level; /* solving: where it will be full as things stand; wrong if stale */
	uint64_t key;      /* of a link that comes and goes */
	uint32_t flows;
	uint32_t head;     /* of the list of its flows; in the free list: the next free link */
	uint32_t position; /* solving: in the heap of doubts; SKEP_NO_LINK: not there */
	bool touched, stale;
};

struct skep_dirty_link { /* solving: a link that may differ from before, but not below this level */
	double level;
	uint32_t link;
};

struct skep_sharing {
	struct skep_flow_rate *share; /* [flow_capacity] */
	uint32_t *changed;            /* [flow_capacity] */
	double *weight;               /* [flow_capacity]; NULL, as long as not `weighted`: all have the same */
	bool weighted;                /* set before room is reserved */
	uint32_t flow_capacity, changes;

	struct skep_link *link;        /* [link_capacity]: the fixed ones, then those that come and go */
	struct skep_dirty_link *dirty; /* [link_capacity] heap by level */
	uint32_t *touched;             /* [link_capacity] */
	uint32_t fixed, link_capacity, free_link, doubts, touches;

	uint32_t *table; /* hash of the links that come and go: open addressing, power of two, at most half full */
	uint32_t table_size;
};

/* `fixed` links that are always there; the caller sets their capacity before use. False: no memory; finish it all the
 * same. */
bool skep_sharing_init(struct skep_sharing *sharing, uint32_t fixed);
void skep_sharing_finish(struct skep_sharing *sharing);

/* Room for so many flows, up to SKEP_FLOWS_MAX, and two links that come and go for each; nothing else can lack memory. */
bool skep_sharing_reserve(struct skep_sharing *sharing, uint32_t flows);

/* The link of `key` (not 0); made if no flow uses it. It goes when its last flow leaves. */
uint32_t skep_sharing_link(struct skep_sharing *sharing, uint64_t key, double capacity);

/* Crosses nothing yet. A flow with a finite cap may go on so. */
void skep_sharing_begin(struct skep_sharing *sharing, uint32_t flow, double cap);
/* Sets the weight of a flow. If flows have weights, each one needs it after it has begun and before rates are
 * solved. */
void skep_sharing_weigh(struct skep_sharing *sharing, uint32_t flow, double weight);
void skep_sharing_join(struct skep_sharing *sharing, uint32_t flow, uint32_t link);
void skep_sharing_leave(struct skep_sharing *sharing, uint32_t flow); /* all its links; not before it was solved */

/* Afterwards changed[0 .. changes - 1] holds, each once, all flows whose rate may have changed since they were taken note of. */
void skep_sharing_solve(struct skep_sharing *sharing);
void skep_sharing_noted(struct skep_sharing *sharing); /* the list begins anew */

/* Asks the caches for what is kept of a flow. */
static inline void skep_sharing_fetch(const struct skep_sharing *sharing, uint32_t flow)
{
	const char *share = (const char *)&sharing->share[flow];
	__builtin_prefetch(share);
	__builtin_prefetch(share + 64);
}
