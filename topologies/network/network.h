/* SPDX-License-Identifier: Apache-2.0
 *
 * network.h - the network model: when each transfer arrives while several share links, by flows with max-min fair
 * rates.
 *
 * Both worlds use it: the simulator for its virtual time, and the executor's `shape` option to deliver messages at the
 * times that the model gives. The executor does not close the connections of a process that has died: what waits on them
 * is dropped only at its time, and holds up what follows to the next process of the machine.
 *
 * A message first takes its overhead of the sender, one message after the other; then it waits the latency of its ordered
 * pair of machines, using no bandwidth; then its turn on a connection of the pair; then it moves its bytes at the max-min fair
 * share that this connection has of: the sender's up capacity, the receiver's down capacity, the pair's capacity, the shared
 * capacity of the ordered pair of places, the sender's place's up and the receiver's place's down capacity; and never faster
 * than its cap (window, loss), which leaves the rest to others. Shares are equal, or weighted by 1 / round trip or 1 /
 * latency, as the topology says (`fairness`, path.h). Time is integer ns; rates are doubles; a finish time is rounded up once
 * to ns.
 *
 * Connections: an ordered pair of machines has as many as its link has `streams`, one by default; the two directions are
 * independent. A connection serves one message at a time, in the order in which they were sent. With several streams a
 * message takes the one that is free first: that is what a pool of connections does, and none stands idle while messages
 * wait. A window and what loss allows are a connection's. There is no slow start in this model, so a connection that was
 * idle goes on at once. With SKEP_STREAMS_EACH every message has a connection of its own and waits for none.
 *
 * Control messages take turns as tensors do, since they do in the executor: Open MPI keeps one TCP connection for each pair of
 * processes, on which what has been sent later waits behind what has been handed to it before, frames of control behind
 * tensors (exec/mpi/transport_mpi.c has two communicators, but these share the connection). Where the link lets messages
 * overtake (`order: free`), small ones do not wait, and large ones take their turns as their latencies end.
 *
 * Jitter: the latency is drawn from the topology's seed, the sender, and how many messages it has sent, so that one seed
 * gives one run, and a sender's messages get the same draws in both worlds. Unless the link lets messages overtake, none of an
 * ordered pair of machines ends its latency before one that was started earlier.
 *
 * Use: ask skep_network_next(); when that time has come (never later) call skep_network_advance(), which moves the
 * model's clock and yields the flows that have arrived, often none; start new flows at the model's clock or later, no
 * later than skep_network_next().
 */
#pragma once

#include "core/skep.h"
#include "topologies/read/topology.h"

/* A transfer of at most so many bytes (grants, tallies, heartbeats) neither shares nor takes bandwidth: when its turn has
 * come it arrives after its bytes at the least capacity on its way, and holds up none behind it. It would change the
 * rates of the large flows beside it by next to nothing, and the directory's links would join all of them into one
 * problem. */
#define SKEP_NETWORK_SMALL_BYTES 2048u

struct skep_network;

struct skep_network *skep_network_create(const struct skep_topology *topology); /* keeps the pointer; NULL: no memory */
void skep_network_destroy(struct skep_network *network);

/* `tag` comes back on arrival. now >= every earlier time. source != destination. bytes may be 0. False: no memory,
 * nothing was started. */
bool skep_network_start(struct skep_network *network, skep_time now, uint32_t source, uint32_t destination,
	uint64_t bytes, uint64_t tag);

/* One that stands for several messages in a row, on a connection of its own. What those would do one by one (overhead, jitter,
 * order) is up to the caller: this one waits the mean latency and for no turn. */
bool skep_network_start_steady(struct skep_network *network, skep_time now, uint32_t source, uint32_t destination,
	uint64_t bytes, uint64_t tag);

/* Earliest time at which something changes in the network (a flow arrives, or its latency is over and it begins to
 * share or to wait for its turn) if nothing else starts; SKEP_TIME_NEVER when there is no flow. */
skep_time skep_network_next(struct skep_network *network);

/* Moves the clock to `now` <= skep_network_next(); writes up to `capacity` tags of flows that have arrived, in order of
 * (arrival, start order); returns how many. Call again with the same `now` while it returns `capacity`. */
#define SKEP_NETWORK_ARRIVALS 64u /* a `capacity` that seldom needs a second call */
uint32_t skep_network_advance(struct skep_network *network, skep_time now, uint64_t *ret_tag, uint32_t capacity);

/* The transfers of this tag that have not arrived end here and will not arrive, those that wait for their turn included;
 * returns how many there were. *ret_left: the bytes of them that have not been moved (0 of small ones). `now` as for
 * starting one. Looks at all transfers. */
uint32_t skep_network_stop(struct skep_network *network, skep_time now, uint64_t tag, uint64_t *ret_left);

/* The process of a machine has ended, and its connections with it: the large messages that take turns on them, from it and
 * to it, end and will not arrive; `ended` hears of each. Those of its next process are empty. Small ones still arrive, as
 * does what is on a connection of its own. `now` as for starting one. Looks at all transfers. */
void skep_network_close(struct skep_network *network, skep_time now, uint32_t machine,
	void (*ended)(void *context, uint64_t tag), void *context);

/* What will arrive soon, as far as that is seen: the tag that has come to the `level`-th row before arrival, from
 * SKEP_NETWORK_ROWS to 1, since the last skep_network_advance() began; SKEP_NETWORK_NO_FLOW if none has. Some
 * 4^level others come first. The caller can prefetch what it will touch then. It has to call
 * skep_network_look_ahead() first, since looking ahead costs some time. */
#define SKEP_NETWORK_ROWS 4u
#define SKEP_NETWORK_NO_FLOW UINT64_MAX
void skep_network_look_ahead(struct skep_network *network);
uint64_t skep_network_soon(const struct skep_network *network, uint32_t level);
