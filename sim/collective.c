/* SPDX-License-Identifier: Apache-2.0
 *
 * collective.c - simulates a ring all-reduce as flows, a fused collective: one flow for each link, in place of the
 * 2(n - 1) k messages that cross it, with k segments of a chunk.
 *
 * The flow from rank r to rank r + 1 begins when rank r asks. It has the bytes of the messages that it stands for,
 * headers included, and shares the network as every other flow does. When all have arrived it is known how long each
 * link is busy with a segment, and so when the segments would have come round, latencies and operations included
 * (ring_time.c). What the flows do not show is that a link which waits for segments leaves its share to others
 * meanwhile.
 *
 * A flow here has no jitter and no overhead of messages: ring_time.c has both, for each segment. A strand stands for a
 * connection of its link and has the cap of one, so there is one unless the link has several streams.
 *
 * No member's ALLREDUCE ends before all flows have. Where segments hide the latency, a member whose last chunk comes early is
 * held up so by the thinnest link, for some of its hops at most.
 *
 * Kept true: no worker is answered twice. A worker that leaves (it died, or cancelled as its attempt is void) stops
 * the flows, and the others wait until they cancel as well.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/grow.h"
#include "core/collective/collective.h"
#include "core/collective/ring.h"
#include "core/random.h"
#include "sim/ring_time.h"
#include "sim/world.h"

#define NONE UINT32_MAX
/* Where each chunk has a connection of its own, those that gather before a link get a share of it each: so does a flow in
 * that many parts. */
#define STRANDS 16u

/* By the number of the whole, not its slot: an arrival that is being handled may be of one that has just been left. */
static uint64_t tag_of(const struct skep_fused *whole, uint32_t rank)
{
	assert(rank < whole->size);
	return SKEP_FUSED_TAG | (uint64_t)whole->number << 32 | rank;
}

static uint32_t next_rank(const struct skep_fused *whole, uint32_t rank)
{
	assert(rank < whole->size);
	return (rank + 1) % whole->size;
}

static bool is_of(const struct skep_fused *whole, const struct skep_op *op)
{
	assert(op->kind == SKEP_OP_ALLREDUCE);
	return whole->size == op->members && whole->stage == op->stage && whole->round == op->round &&
	       whole->attempt == op->attempt && whole->first == op->first;
}

static uint32_t find(const struct skep_world *world, const struct skep_op *op)
{
	for (uint32_t slot = 0; slot < world->fused_slots; slot++)
		if (is_of(&world->fused[slot], op))
			return slot;
	return NONE;
}

static bool grow(struct skep_world *world)
{
	if (!skep_grow(&world->fused, world->fused_slots, sizeof *world->fused))
		return false;
	world->fused_slots++;
	return true;
}

static uint64_t chunk_bytes(const struct skep_world *world, const struct skep_fused *whole, uint32_t chunk)
{
	assert(whole->size > 0);
	uint64_t first, count;
	skep_chunk_range(whole->elements, chunk % whole->size, whole->size, &first, &count);
	return skep_ring_chunk_bytes(world->plan, whole->stage, count, whole->segments) +
	       whole->segments * SKEP_HEADER_BYTES;
}

static uint32_t make(struct skep_world *world, const struct skep_op *op)
{
	assert(op->members > 1);
	assert(op->receiver < world->plan->workers);
	uint32_t slot = 0;
	struct skep_fused_rank *rank = calloc(op->members, sizeof *rank);
	while (slot < world->fused_slots && world->fused[slot].size > 0)
		slot++;
	if (!rank || (slot == world->fused_slots && !grow(world))) {
		free(rank);
		world->no_memory = true;
		return NONE;
	}
	struct skep_fused whole = {.stage = op->stage, .round = op->round, .attempt = op->attempt, .size = op->members};
	whole.rank = rank;
	whole.first = op->first;
	whole.elements = op->count;
	whole.segments = skep_ring_segments(world->plan, op->stage, op->count, op->members);
	whole.number = world->fused_made++ & INT32_MAX;
	for (uint32_t chunk = 0; chunk < whole.size; chunk++)
		whole.chunks_bytes += chunk_bytes(world, &whole, chunk);
	world->fused[slot] = whole;
	return slot;
}

static void drop(struct skep_fused *whole)
{
	free(whole->rank);
	*whole = (struct skep_fused){0};
}

/* ---- what it amounts to --------------------------------------------------------------------------------------- */

/* In 2(n - 1) hops a rank sends every chunk twice, but for the two that end their way with it: those of ranks + 1 and + 2. */
static uint64_t link_bytes(const struct skep_world *world, const struct skep_fused *whole, uint32_t rank)
{
	return 2 * whole->chunks_bytes - chunk_bytes(world, whole, rank + 1) - chunk_bytes(world, whole, rank + 2);
}

static uint32_t place_of(const struct skep_world *world, uint32_t worker)
{
	assert(worker < world->plan->workers);
	return world->scenario->topology.machine[worker].place;
}

static uint32_t streams_of(const struct skep_world *world, const struct skep_fused *whole, uint32_t rank)
{
	return skep_path_streams(&world->scenario->topology, place_of(world, whole->rank[rank].worker),
		place_of(world, whole->rank[rank].next));
}

static double latency_ns(const struct skep_world *world, const struct skep_fused *whole, uint32_t rank)
{
	assert(rank < whole->size);
	uint32_t source = whole->rank[rank].worker, destination = whole->rank[rank].next;
	return round(1e9 * skep_path_mean_s(
				   &world->scenario->topology, place_of(world, source), place_of(world, destination)));
}

static double operation_ns(
	const struct skep_world *world, const struct skep_fused *whole, uint32_t rank, enum skep_op_kind kind)
{
	assert(rank < whole->size);
	struct skep_op op = {.kind = (uint8_t)kind, .stage = (uint16_t)whole->stage, .size = whole->size};
	skep_chunk_range(whole->elements, 0, whole->size, &op.first, &op.count);
	skep_chunk_range(op.count, 0, whole->segments, &op.first, &op.count);
	return (double)skep_scenario_op_ns(world->scenario, whole->rank[rank].worker, &op);
}

/* Messages from a rank to the next. */
static uint32_t link_messages(const struct skep_fused *whole)
{
	return skep_ring_hops(whole->size) * whole->segments;
}

static void add_link_profile(
	const struct skep_world *world, const struct skep_fused *whole, uint32_t rank, struct skep_ring_link *link)
{
	const struct skep_topology *t = &world->scenario->topology;
	uint32_t from = place_of(world, whole->rank[rank].worker), to = place_of(world, whole->rank[rank].next);
	double bytes = (double)link_bytes(world, whole, rank) / link_messages(whole);
	link->topology = t;
	link->link_profile = skep_path_link_profile(t, from, to);
	link->overhead_ns = round(1e9 * skep_path_overhead_s(t, from, to));
	link->random = skep_mix(skep_mix(t->seed ^ whole->number) ^ rank);
	link->cap_ns = 1e9 * bytes / skep_path_cap_Bps(t, from, to);
}

static struct skep_ring_link ring_link(
	const struct skep_world *world, const struct skep_fused *whole, uint32_t rank, skep_time first_ns)
{
	uint32_t next = next_rank(whole, rank);
	struct skep_ring_link link = {.ready_ns = (double)(whole->rank[rank].asked_ns - first_ns),
		.segment_ns = fmax(1, (double)whole->rank[rank].busy_ns / link_messages(whole)),
		.streams = streams_of(world, whole, rank),
		.latency_ns = latency_ns(world, whole, rank),
		.take_ns = operation_ns(world, whole, rank, SKEP_OP_COPY_GRAD),
		.add_ns = operation_ns(world, whole, next, SKEP_OP_ADD),
		.add_store_ns = operation_ns(world, whole, next, SKEP_OP_ADD_STORE),
		.store_ns = operation_ns(world, whole, next, SKEP_OP_STORE)};
	if (world->scenario->topology.link_profiles > 0)
		add_link_profile(world, whole, rank, &link);
	return link;
}

/* All flows are over: each member's ALLREDUCE ends when it would have stored its last chunk. */
static void end(struct skep_world *world, const struct skep_fused *whole)
{
	assert(whole->arrived == whole->size);
	assert(!whole->left);
	skep_time first_ns = world->now;
	struct skep_ring_link *link = malloc(whole->size * sizeof *link);
	double *ns = malloc(whole->size * sizeof *ns);
	for (uint32_t rank = 0; rank < whole->size; rank++)
		first_ns = whole->rank[rank].asked_ns < first_ns ? whole->rank[rank].asked_ns : first_ns;
	for (uint32_t rank = 0; link && rank < whole->size; rank++)
		link[rank] = ring_link(world, whole, rank, first_ns);
	if (link && ns && skep_ring_time(link, whole->size, whole->segments, ns)) {
		for (uint32_t rank = 0; rank < whole->size; rank++) {
			skep_time time = first_ns + (skep_time)llround(ns[rank]);
			skep_world_end_fused(world, whole->rank[rank].worker, time > world->now ? time : world->now);
		}
	} else {
		world->no_memory = true;
	}
	free(link);
	free(ns);
}

/* ---- its course ----------------------------------------------------------------------------------------------- */

static void count(struct skep_world *world, const struct skep_fused *whole, uint32_t rank, uint64_t bytes)
{
	assert(rank < whole->size);
	skep_world_count(world, whole->rank[rank].worker, whole->rank[rank].next, SKEP_TRAFFIC_SYNC,
		link_messages(whole), bytes);
}

static void start(struct skep_world *world, uint32_t slot, uint32_t rank)
{
	assert(rank < world->fused[slot].size);
	assert(world->fused[slot].rank[rank].flowing == 0);
	struct skep_fused *whole = &world->fused[slot];
	struct skep_fused_rank *from = &whole->rank[rank];
	uint64_t bytes = link_bytes(world, whole, rank);
	uint32_t streams = streams_of(world, whole, rank), strands = streams < STRANDS ? streams : STRANDS;
	for (uint64_t strand = 0; strand < strands; strand++) {
		uint64_t part = bytes * (strand + 1) / strands - bytes * strand / strands;
		if (!skep_network_start_steady(
			    world->network, world->now, from->worker, from->next, part, tag_of(whole, rank)))
			world->no_memory = true;
	}
	from->flowing = strands;
}

void skep_fused_join(struct skep_world *world, uint32_t worker, const struct skep_op *op)
{
	assert(op->kind == SKEP_OP_ALLREDUCE);
	uint32_t slot = find(world, op);
	if (slot == NONE)
		slot = make(world, op);
	if (slot == NONE)
		return;
	struct skep_fused *whole = &world->fused[slot];
	assert(op->rank < whole->size && !whole->rank[op->rank].here);
	struct skep_fused_rank *rank = &whole->rank[op->rank];
	*rank = (struct skep_fused_rank){.worker = worker, .next = op->receiver, .here = true, .asked_ns = world->now};
	whole->asked++;
	if (whole->left)
		return;
	start(world, slot, op->rank);
}

void skep_fused_leave(struct skep_world *world, uint32_t worker, const struct skep_op *op)
{
	assert(op->kind == SKEP_OP_ALLREDUCE);
	uint32_t slot = find(world, op);
	assert(slot != NONE);
	struct skep_fused *whole = &world->fused[slot];
	for (uint32_t rank = 0; !whole->left && rank < whole->size; rank++) {
		uint64_t left;
		if (whole->rank[rank].flowing == 0)
			continue;
		skep_network_stop(world->network, world->now, tag_of(whole, rank), &left);
		count(world, whole, rank, link_bytes(world, whole, rank) - left);
		whole->rank[rank].flowing = 0;
	}
	assert(whole->rank[op->rank].here && whole->rank[op->rank].worker == worker);
	whole->left = true;
	whole->rank[op->rank].here = false;
	if (--whole->asked == 0)
		drop(whole);
}

void skep_fused_arrive(struct skep_world *world, uint64_t tag)
{
	assert(tag & SKEP_FUSED_TAG);
	uint32_t number = (uint32_t)((tag & ~SKEP_FUSED_TAG) >> 32), rank = (uint32_t)tag, slot = 0;
	while (slot < world->fused_slots && (world->fused[slot].size == 0 || world->fused[slot].number != number))
		slot++;
	struct skep_fused *whole = &world->fused[slot];
	if (slot == world->fused_slots || whole->rank[rank].flowing == 0 || --whole->rank[rank].flowing > 0)
		return;
	whole->rank[rank].busy_ns = world->now - whole->rank[rank].asked_ns - (skep_time)latency_ns(world, whole, rank);
	count(world, whole, rank, link_bytes(world, whole, rank));
	if (++whole->arrived < whole->size)
		return;
	end(world, whole);
	drop(whole);
}

void skep_fused_finish(struct skep_world *world)
{
	for (uint32_t slot = 0; slot < world->fused_slots; slot++)
		drop(&world->fused[slot]);
	free(world->fused);
}
