/* SPDX-License-Identifier: Apache-2.0
 *
 * sender.c - see sender.h. The jitter of a message follows from (seed, source, its number) alone, whatever other
 * machines send.
 */
#include "topologies/network/sender.h"

#include <math.h>

#include "core/random.h"
#include "topologies/read/path.h"

#define JITTER_STREAM UINT64_C(0x6a6974746572) /* so that other draws of the same seed are others */

bool skep_sender_latency_end(struct skep_sender *sender, const struct skep_topology *topology, struct skep_order *order,
	skep_time now, uint32_t source, uint32_t destination, double latency_s, skep_time *ret)
{
	const struct skep_link_profile *link_profile =
		skep_path_link_profile(topology, topology->machine[source].place, topology->machine[destination].place);
	uint64_t key = (uint64_t)source << 32 | destination;
	skep_time begin = now;
	sender->sent++;
	if (link_profile && link_profile->overhead_s > 0) {
		begin = (sender->free_ns > begin ? sender->free_ns : begin) +
		        (skep_time)llrint(link_profile->overhead_s * 1e9);
		sender->free_ns = begin;
	}
	if (!link_profile || link_profile->jitter.kind == SKEP_JITTER_NONE) {
		*ret = begin + (skep_time)llrint(latency_s * 1e9);
		return true;
	}
	uint64_t state = skep_mix(skep_mix(skep_mix(topology->seed ^ JITTER_STREAM) ^ source) ^ sender->sent);
	*ret = begin + (skep_time)llrint(skep_jitter_draw_s(topology, &link_profile->jitter, latency_s, &state) * 1e9);
	return link_profile->overtake || skep_order_keep(order, now, key + 1, ret);
}
