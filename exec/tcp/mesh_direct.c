/* SPDX-License-Identifier: Apache-2.0
 *
 * mesh_direct.c - two processes whose records rank 0 passes on try to connect again, since what kept them apart may end: a rule
 * of a firewall, a line that was down, an address that NAT did not forward.
 *
 * The one with the higher rank connects, in the background, after pauses that double; where it cannot, it asks the other one to
 * connect to it (DIAL), once. What comes of it is a connection beside the way through rank 0, which both use as before:
 *
 *     who has taken it in   knows that both have it. It says DIRECT through rank 0, behind all that it has said there, and says
 *                           all that follows over the connection
 *     who has made it       reads it once it hears DIRECT, which is behind all that came through rank 0; it says DIRECT itself,
 *                           and all that follows over the connection
 *     who has taken it in   reads it once it hears that
 *
 * So each direction has one way at a time, and nothing overtakes what was said before. A tensor of which a part went through
 * rank 0 goes on over the connection. A connection that ends before DIRECT was said was of no use, and the next attempt follows;
 * behind it it is as any other: its end is a break of the pair.
 *
 * DIRECT waits at rank 0 behind all that goes to the same process, over a thin line for minutes, and only who has said it knows
 * that it is under way. So who has made the connection gives it up for no time that has passed, but once it has ended and
 * nothing was said over it; who has said DIRECT says over the connection that it lives, though it is not heard there yet.
 */
#include <assert.h>

#include "base/clock.h"
#include "exec/tcp/mesh_internal.h"

#define FIRST_PAUSE_NS 5000000000u
#define LONGEST_PAUSE_NS 300000000000u
#define MAKE_NS 3000000000u /* for a connection to be made */

void skep_mesh_direct_later(struct peer *peer)
{
	peer->pause_ns = FIRST_PAUSE_NS;
	peer->again_ns = skep_monotonic_ns() + peer->pause_ns;
}

static void drop(struct skep_mesh *mesh, struct peer *peer)
{
	skep_mesh_bury_link(mesh, peer->spare);
	peer->spare = NULL;
	peer->direct = DIRECT_NOT;
}

void skep_mesh_direct_failed(struct skep_mesh *mesh, uint32_t rank)
{
	struct peer *peer = &mesh->peer[rank];
	bool made = peer->direct == DIRECT_DIALS, asks = rank < mesh->setup.rank && mesh->setup.listener >= 0;
	assert(peer->spare != NULL && peer->relayed);
	drop(mesh, peer);
	if (made && asks)
		skep_mesh_ask_to_dial(mesh, rank);
}

void skep_mesh_direct_dial(struct skep_mesh *mesh, uint32_t rank)
{
	struct peer *peer = &mesh->peer[rank];
	assert(peer->there && peer->relayed && rank > 0 && rank != mesh->setup.rank);
	if (peer->spare != NULL || peer->link != NULL || peer->broken)
		return;
	peer->direct = DIRECT_DIALS;
	peer->spare = skep_mesh_begin_dial(mesh, rank);
	if (peer->spare == NULL) {
		peer->direct = DIRECT_NOT;
		if (rank < mesh->setup.rank && mesh->setup.listener >= 0)
			skep_mesh_ask_to_dial(mesh, rank);
	}
}

/* Nothing is read of it yet, so epoll does not say that the other side has closed it in order. */
static bool has_ended(struct link *link)
{
	assert(link->kind == LINK_PEER && link->waits);
	skep_channel_look_for_end(&link->channel);
	return link->channel.state == SKEP_CHANNEL_CLOSED;
}

void skep_mesh_direct_tick(struct skep_mesh *mesh, uint32_t rank, uint64_t now_ns)
{
	struct peer *peer = &mesh->peer[rank];
	assert(rank > 0 && (peer->relayed || peer->from_root));
	bool late = peer->direct == DIRECT_DIALS && now_ns > peer->spare->since_ns + MAKE_NS;
	if (late || (peer->direct == DIRECT_MADE && has_ended(peer->spare)))
		skep_mesh_direct_failed(mesh, rank);
	bool tries = rank < mesh->setup.rank && peer->relayed && !peer->broken && mesh->peer[0].there;
	if (!tries || peer->spare != NULL || now_ns < peer->again_ns)
		return;
	peer->again_ns = now_ns + 2 * MAKE_NS + peer->pause_ns; /* both attempts are over by then */
	peer->pause_ns = 2 * peer->pause_ns < LONGEST_PAUSE_NS ? 2 * peer->pause_ns : LONGEST_PAUSE_NS;
	skep_mesh_direct_dial(mesh, rank);
}

void skep_mesh_direct_made(struct skep_mesh *mesh, struct link *link)
{
	struct peer *peer = &mesh->peer[link->id];
	assert(peer->spare == link && link->kind == LINK_PEER);
	if (peer->direct != DIRECT_DIALS)
		return;
	if (!skep_mesh_prove(mesh, link)) {
		skep_mesh_direct_failed(mesh, link->id);
		return;
	}
	peer->direct = DIRECT_MADE;
	link->waits = true;
	skep_channel_keep_alive(&link->channel, mesh->setup.silence_ns);
	skep_channel_advance(&link->channel);
	skep_mesh_rewatch(mesh, link);
}

bool skep_mesh_direct_taken(struct skep_mesh *mesh, uint32_t rank, struct link *link)
{
	struct peer *peer = &mesh->peer[rank];
	assert(link->kind == LINK_GUEST && peer->there && peer->relayed);
	if (link->channel.state != SKEP_CHANNEL_OPEN || peer->link != NULL || peer->spare != NULL || mesh->peer[0].last)
		return false;
	link->kind = LINK_PEER;
	link->id = rank;
	link->waits = true;
	peer->spare = link;
	peer->direct = DIRECT_SAYS;
	skep_mesh_rewatch(mesh, link);
	skep_mesh_pump(mesh, 0);
	return true;
}

static void use(struct peer *peer)
{
	if (peer->link == NULL)
		peer->link = peer->spare;
	peer->spare = NULL;
	assert(peer->link != NULL);
}

void skep_mesh_direct_said(struct skep_mesh *mesh, uint32_t rank)
{
	struct peer *peer = &mesh->peer[rank];
	assert(peer->relayed && peer->direct == DIRECT_SAYS);
	use(peer);
	skep_mesh_relay_no_more(mesh, rank);
	peer->direct = peer->from_root ? DIRECT_SAID : DIRECT_NOT;
	peer->link->channel.wants_write = true; /* rank 0 is the one that is pumped */
	skep_mesh_rewatch(mesh, peer->link);
}

bool skep_mesh_direct_heard(struct skep_mesh *mesh, uint32_t rank)
{
	struct peer *peer = &mesh->peer[rank];
	assert(rank > 0 && rank != mesh->setup.rank);
	if (!peer->from_root || (peer->direct != DIRECT_MADE && peer->direct != DIRECT_SAID))
		return false;
	use(peer);
	peer->from_root = false;
	peer->switched = true;
	peer->direct = peer->direct == DIRECT_MADE ? DIRECT_SAYS : DIRECT_NOT;
	peer->link->waits = false;
	peer->link->channel.heard_ns = skep_monotonic_ns();
	if (peer->incoming.left > 0) {
		struct incoming *in = &peer->incoming;
		peer->link->channel.sink = in->memory != NULL ? in->memory + in->at : NULL;
		peer->link->channel.sink_left = in->left;
	}
	skep_mesh_rewatch(mesh, peer->link);
	skep_mesh_is_ready(mesh, peer->link);
	skep_mesh_pump(mesh, 0);
	return true;
}
