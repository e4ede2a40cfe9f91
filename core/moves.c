/* SPDX-License-Identifier: Apache-2.0
 *
 * moves.c - a member's sum, move by move as collective.h says: what arrives is taken in when its turn has come, what is done is
 * sent on. Which numbers a worker hears first changes nothing but when it does what.
 *
 * Moves are counted from 0 here, in each fragment; in messages and operations those of the fragments before come first.
 *
 * Kept true: each move is begun once, and a tensor is an operation's, on its way, or held for one move.
 */
#include <assert.h>
#include <string.h>

#include "core/bits.h"
#include "core/worker.h"

static struct skep_scheme_move move_of(struct worker *w, uint32_t number)
{
	struct skep_scheme_move move = skep_scheme_move_at(&w->reduction.scheme, worker_fact(w), number);
	move.first += w->reduction.first;
	return move;
}

void moves_prepare(struct worker *w, const struct skep_plan *plan)
{
	struct reduction *r = &w->reduction;
	uint64_t elements;
	skep_plan_range(plan, w->node.stage, w->version, r->fragment, &r->first, &elements);
	skep_scheme_init(&r->scheme, plan, elements, r->rank, r->size, worker_roster(w), worker_fact(w));
	uint32_t moves = skep_scheme_moves(&r->scheme);
	skep_bits_clear(worker_hops(w), skep_bits_words(moves));
	if (w->moves_capacity == 0)
		return;
	assert(moves <= w->moves_capacity);
	skep_bits_clear(worker_moved(w), skep_bits_words(moves));
	memset(worker_held(w), 0, moves * sizeof(struct skep_buf));
}

void moves_forget(struct worker *w, struct step *step)
{
	uint32_t moves = w->reduction.begun && w->moves_capacity > 0 ? skep_scheme_moves(&w->reduction.scheme) : 0;
	for (uint32_t number = 0; number < moves; number++)
		skep_emit_release(step, worker_held(w)[number]);
}

/* Of the round's microbatches, how many this worker's part holds: with a promise it begins before the last one is counted. */
static uint32_t brought(const struct worker *w)
{
	if (w->async)
		return w->reduction.share;
	return w->reduction.promised ? w->share : w->counted[w->version & 1];
}

static void run(
	struct worker *w, struct step *step, uint32_t number, const struct skep_scheme_move *move, struct skep_buf in)
{
	struct skep_op op = reduce_op(w, (enum skep_op_kind)move->op);
	op.chunk = move->chunk;
	op.first = move->first;
	op.count = move->count;
	op.hop = w->reduction.fragment * w->reduction.moves + number;
	op.in = in;
	op.microbatch = move->member;
	if (move->op == SKEP_OP_OFFER || (move->op == SKEP_OP_COLLECT && skep_buf_none(in)))
		op.microbatches = brought(w);
	reduce_run(w, step, &op);
}

static struct skep_buf let_go(struct worker *w, uint32_t number)
{
	struct skep_buf held = worker_held(w)[number];
	worker_held(w)[number] = (struct skep_buf){0, 0};
	return held;
}

static struct skep_message message_for(struct worker *w, const struct skep_plan *plan, const struct skep_hop *hop,
	const struct skep_scheme_move *move, struct skep_buf payload)
{
	struct skep_peer to = w->moves_capacity > 0 ? worker_roster(w)[hop->to] : w->reduction.next;
	struct skep_message message =
		skep_message_to(&w->node, hop->taken ? SKEP_MESSAGE_TAKEN : SKEP_MESSAGE_CHUNK, to);
	message.round = w->version;
	message.attempt = w->reduction.attempt;
	message.u.chunk.chunk = move->chunk;
	message.u.chunk.hop = w->reduction.fragment * w->reduction.moves + hop->number;
	if (hop->taken)
		return message;
	message.payload = payload;
	message.payload_bytes = skep_scheme_payload_bytes(plan, move);
	return message;
}

/* The tensor goes with the last hop that takes it, unless the next move carries it; the others get copies. Nothing is sent for
 * an attempt that a roster has overtaken: it is void, and the members that it names are known no more. */
static void send_on(struct worker *w, struct step *step, uint32_t number, bool carried, struct skep_buf out)
{
	const struct skep_scheme_move move = move_of(w, number);
	struct skep_hop hop;
	uint32_t copies = carried; /* that are wanted beside the one to be sent */
	for (uint32_t nth = 0; nth < move.hops; nth++)
		copies += !skep_scheme_hop(&w->reduction.scheme, worker_fact(w), number, nth).taken;
	if (copies == 0)
		skep_emit_release(step, out);
	if (!roster_complete(w, step->plan)) {
		if (copies > 0 && !carried)
			skep_emit_release(step, out);
		return;
	}
	for (uint32_t nth = 0; nth < move.hops; nth++) {
		hop = skep_scheme_hop(&w->reduction.scheme, worker_fact(w), number, nth);
		copies -= !hop.taken;
		if (hop.to == w->reduction.rank) {
			assert(copies == 0);
			moves_arrive(w, step, move.chunk, hop.number, out);
			continue;
		}
		struct skep_message message = message_for(w, step->plan, &hop, &move, out);
		if (copies > 0 && !hop.taken)
			skep_emit_send_copy(step, &w->node, &message);
		else
			worker_send(w, step, &message);
	}
}

void moves_done(struct worker *w, struct step *step, uint32_t number, struct skep_buf out)
{
	struct reduction *r = &w->reduction;
	uint32_t moves = skep_scheme_moves(&r->scheme);
	for (;;) {
		struct skep_scheme_move next = {0};
		if (w->moves_capacity > 0 && number + 1 < moves) /* in a ring nothing follows */
			next = move_of(w, number + 1);
		send_on(w, step, number, next.carries, out);
		r->done++;
		if (!next.follows)
			break;
		skep_bits_add(worker_moved(w), number++);
		if (next.carries)
			worker_held(w)[number] = out;
		if (next.arrives && !skep_bits_has(worker_hops(w), number))
			break;
		out = let_go(w, number);
		if (next.op != 0) {
			run(w, step, number, &next, out);
			break;
		}
	}
	if (r->done == moves)
		reduce_complete(w, step);
}

void moves_begin(struct worker *w, struct step *step)
{
	const struct skep_scheme *scheme = &w->reduction.scheme;
	uint32_t moves = skep_scheme_moves(scheme);
	const uint64_t *fact = worker_fact(w);
	for (uint32_t n = skep_scheme_start(scheme, fact, 0); n < moves; n = skep_scheme_start(scheme, fact, n + 1)) {
		struct skep_scheme_move move = move_of(w, n);
		if (move.op != 0)
			run(w, step, n, &move, (struct skep_buf){0, 0});
		else
			moves_done(w, step, n, (struct skep_buf){0, 0});
	}
}

/* TAKEN comes without a tensor, and to a move without an operation; whatever it was that was taken. */
static bool fits(struct worker *w, uint32_t chunk, uint32_t number, bool tensor)
{
	if (number >= skep_scheme_moves(&w->reduction.scheme) || skep_bits_has(worker_hops(w), number))
		return false;
	struct skep_scheme_move move = move_of(w, number);
	return move.arrives && tensor == (move.op != 0) && (!tensor || move.chunk == chunk);
}

void moves_arrive(struct worker *w, struct step *step, uint32_t chunk, uint32_t number, struct skep_buf payload)
{
	if (!fits(w, chunk, number, !skep_buf_none(payload))) {
		skep_emit_release(step, payload);
		return;
	}
	struct skep_scheme_move move = move_of(w, number);
	skep_bits_add(worker_hops(w), number);
	bool ready = !move.follows || skep_bits_has(worker_moved(w), number - 1);
	if (ready && move.op != 0)
		run(w, step, number, &move, payload);
	else if (ready)
		moves_done(w, step, number, let_go(w, number));
	else if (move.op != 0)
		worker_held(w)[number] = payload;
}
