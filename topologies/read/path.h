/* SPDX-License-Identifier: Apache-2.0
 *
 * path.h - the latency and speed that a message from one place to another gets: all facts of a topology about a path,
 * put together.
 *
 * Every caller that needs a latency or a speed gets it here, so that the network model, the ring's closed model
 * (sim/ring_time.c) and wiring by latency (scenarios/plan/plan.c) use the same numbers.
 */
#pragma once

#include "topologies/read/topology.h"

/* Makes the pair of two places that are relayed what its two ways come to, capacity, latency and price; once, and again when what
 * these have has changed. */
void skep_path_join_relayed(struct skep_topology *topology);

/* NULL: nothing but capacity and latency. */
const struct skep_link_profile *skep_path_link_profile(
	const struct skep_topology *topology, uint32_t from, uint32_t to);

/* The most that one flow gets however empty its links are, by its window and by loss; INFINITY: not limited. */
double skep_path_cap_Bps(const struct skep_topology *topology, uint32_t from, uint32_t to);
/* The least capacity that does not depend on the machines: of the pair, what is shared, the places' own. Without the cap. */
double skep_path_least_Bps(const struct skep_topology *topology, uint32_t from, uint32_t to);

/* Between two machines: what a flow gets when nothing else moves. */
double skep_path_lone_Bps(const struct skep_topology *topology, uint32_t source, uint32_t destination);

/* The weight of a flow on a link, 1/s, if flows do not share alike; machines less than SKEP_PATH_NEAR_S apart count
 * as if they were that far apart. */
#define SKEP_PATH_NEAR_S 1e-6
double skep_path_weight(const struct skep_topology *topology, uint32_t from, uint32_t to);

/* Connections of an ordered pair of machines that stand there, at least 1; SKEP_STREAMS_EACH: each message has its own. */
uint32_t skep_path_streams(const struct skep_topology *topology, uint32_t from, uint32_t to);
/* Messages of an ordered pair of machines may overtake each other. */
bool skep_path_overtakes(const struct skep_topology *topology, uint32_t from, uint32_t to);

/* In so many pieces the directory passes a message on (topologies/network/relays.h). */
#define SKEP_RELAY_RECORD_BYTES 65536u
#define SKEP_RELAY_PIECES_MAX 64u
static inline uint32_t skep_path_relay_pieces(uint64_t bytes)
{
	uint64_t records = (bytes + SKEP_RELAY_RECORD_BYTES - 1) / SKEP_RELAY_RECORD_BYTES;
	return records < 1 ? 1 : records < SKEP_RELAY_PIECES_MAX ? (uint32_t)records : SKEP_RELAY_PIECES_MAX;
}
/* Between two machines, on empty links: how much longer it takes than latency and speed say, since a piece is passed on when it
 * is there; 0 where nothing is passed on. */
double skep_path_relay_s(const struct skep_topology *topology, uint32_t source, uint32_t destination, double bytes);

double skep_path_overhead_s(const struct skep_topology *topology, uint32_t from, uint32_t to);
/* The mean latency, without the truncation at 0, which makes the true mean longer. */
double skep_path_mean_s(const struct skep_topology *topology, uint32_t from, uint32_t to);
/* A latency that is seldom exceeded: 4 deviations over the mean, or the longest of a table. */
double skep_path_late_s(const struct skep_topology *topology, uint32_t from, uint32_t to);

/* Draws a latency with this jitter whose mean is latency_s; *state as of skep_random_next(). */
double skep_jitter_draw_s(
	const struct skep_topology *topology, const struct skep_jitter *jitter, double latency_s, uint64_t *state);
