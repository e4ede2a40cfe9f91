/* SPDX-License-Identifier: Apache-2.0
 *
 * traffic.h - counts messages and bytes per ordered pair of machines and class; only pairs that were used take
 * memory. It also sums up what all machines together have sent, and pay for that, since the recorder was told last.
 */
#pragma once

#include "core/record.h"

#define SKEP_TRAFFIC_WAITING 64u

struct skep_traffic_table {        /* all zero: empty */
	struct skep_link_use *use; /* hash, open addressing; messages == 0: free */
	size_t count, size;        /* size is a power of two, at least twice count */
	struct skep_link_use waiting[SKEP_TRAFFIC_WAITING];
	uint32_t waits;          /* entries of `waiting`, which are not in the hash yet */
	struct skep_sent untold; /* that the recorder has not been told of */
};

void skep_traffic_finish(struct skep_traffic_table *table);

/* Adds messages that have `bytes` together and for which their sender pays so much. False: no memory; some of the messages added
 * last are not counted. */
bool skep_traffic_add(struct skep_traffic_table *table, uint32_t source, uint32_t destination, uint8_t traffic,
	uint64_t messages, uint64_t bytes, double egress_usd);

/* Tells the recorder what was sent since the last call. */
void skep_traffic_tell(struct skep_traffic_table *table, const struct skep_recorder *recorder);

/* Reports all uses by rising (source, destination, class). Empties the table. False: as above. */
bool skep_traffic_report(struct skep_traffic_table *table, const struct skep_recorder *recorder);
