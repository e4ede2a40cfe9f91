/* SPDX-License-Identifier: Apache-2.0
 *
 * transfers.c - a member's sum, transfer by transfer as collective.h says: what arrives is taken in when its turn has come, what
 * is done is sent on. Which numbers a worker hears first changes nothing but when it does what.
 *
 * Transfers are counted from 0 here, in each fragment; in messages and operations those of the fragments before come first.
 *
 * Kept true: each transfer is begun once, and a tensor is an operation's, on its way, or held for one transfer.
 */
#include <assert.h>
#include <string.h>

#include "core/bits.h"
#include "core/worker/worker.h"

static struct skep_scheme_transfer transfer_of(struct worker *w, uint32_t number)
{
	assert(w->reduction.attempt > 0);
	struct skep_scheme_transfer transfer = skep_scheme_transfer_at(&w->reduction.scheme, worker_fact(w), number);
	transfer.first += w->reduction.first;
	return transfer;
}

void skep_transfers_prepare(struct worker *w, const struct skep_plan *plan)
{
	assert(w->reduction.attempt > 0);
	assert(w->reduction.begun);
	struct reduction *r = &w->reduction;
	uint64_t elements;
	skep_plan_range(plan, w->node.stage, w->version, r->gathering ? 0 : r->fragment, &r->first, &elements);
	skep_scheme_init(&r->scheme, plan, w->node.stage, elements, r->rank, r->size, worker_roster(w), worker_fact(w));
	if (w->sharded)
		skep_scheme_halve(&r->scheme, skep_shards_half(w));
	uint32_t transfers = skep_scheme_transfers(&r->scheme);
	skep_bits_clear(worker_hops(w), skep_bits_words(transfers));
	if (w->transfers_capacity == 0)
		return;
	assert(transfers <= w->transfers_capacity);
	skep_bits_clear(worker_transferred(w), skep_bits_words(transfers));
	memset(worker_held(w), 0, transfers * sizeof(struct skep_buf));
}

void skep_transfers_forget(struct worker *w, struct step *step)
{
	assert(w->state != WORKER_STOPPED);
	uint32_t transfers =
		w->reduction.begun && w->transfers_capacity > 0 ? skep_scheme_transfers(&w->reduction.scheme) : 0;
	for (uint32_t number = 0; number < transfers; number++)
		skep_emit_release(step, worker_held(w)[number]);
}

static void run(struct worker *w, struct step *step, uint32_t number, const struct skep_scheme_transfer *transfer,
	struct skep_buf in)
{
	assert(w->reduction.attempt > 0);
	assert(w->reduction.rank < w->reduction.size);
	struct skep_op op = skep_reduce_op(w, (enum skep_op_kind)transfer->op);
	op.chunk = transfer->chunk;
	op.first = transfer->first;
	op.count = transfer->count;
	op.hop = w->reduction.fragment * w->reduction.transfers + number;
	op.in = in;
	op.member = transfer->member;
	if (transfer->op == SKEP_OP_PACK_PART || (transfer->op == SKEP_OP_UNPACK_PART && skep_buf_none(in)))
		op.microbatches = step->how.worker->brought(w);
	skep_reduce_run(w, step, &op);
}

static struct skep_buf let_go(struct worker *w, uint32_t number)
{
	assert(w->reduction.attempt > 0);
	struct skep_buf held = worker_held(w)[number];
	worker_held(w)[number] = (struct skep_buf){0, 0};
	return held;
}

static struct skep_message message_for(struct worker *w, const struct skep_plan *plan, const struct skep_hop *hop,
	const struct skep_scheme_transfer *transfer, struct skep_buf payload)
{
	assert(w->reduction.attempt > 0);
	assert(w->reduction.rank < w->reduction.size);
	struct skep_peer to = w->transfers_capacity > 0 ? worker_roster(w)[hop->to] : w->reduction.next;
	struct skep_message message =
		skep_message_to(&w->node, hop->taken ? SKEP_MESSAGE_CHUNK_ACK : SKEP_MESSAGE_CHUNK, to);
	message.round = w->version;
	message.attempt = w->reduction.attempt;
	message.u.chunk.chunk = transfer->chunk;
	message.u.chunk.hop = w->reduction.fragment * w->reduction.transfers + hop->number;
	if (hop->taken)
		return message;
	message.payload = payload;
	message.payload_bytes = skep_scheme_payload_bytes(plan, w->node.stage, transfer);
	return message;
}

/* The tensor goes with the last hop that takes it, unless the next transfer carries it; the others get copies. Nothing is sent
 * for an attempt that a roster has overtaken: it is void, and the members that it names are known no more. */
static void send_on(struct worker *w, struct step *step, uint32_t number, bool carried, struct skep_buf out)
{
	assert(w->reduction.attempt > 0);
	assert(w->reduction.size > 1);
	const struct skep_scheme_transfer transfer = transfer_of(w, number);
	struct skep_hop hop;
	uint32_t copies = carried; /* that are wanted beside the one to be sent */
	for (uint32_t nth = 0; nth < transfer.hops; nth++)
		copies += !skep_scheme_hop(&w->reduction.scheme, worker_fact(w), number, nth).taken;
	if (copies == 0)
		skep_emit_release(step, out);
	if (!skep_roster_complete(w, step->plan)) {
		if (copies > 0 && !carried)
			skep_emit_release(step, out);
		return;
	}
	for (uint32_t nth = 0; nth < transfer.hops; nth++) {
		hop = skep_scheme_hop(&w->reduction.scheme, worker_fact(w), number, nth);
		copies -= !hop.taken;
		if (hop.to == w->reduction.rank) {
			assert(copies == 0);
			skep_transfers_arrive(w, step, transfer.chunk, hop.number, out);
			continue;
		}
		struct skep_message message = message_for(w, step->plan, &hop, &transfer, out);
		if (copies > 0 && !hop.taken)
			skep_emit_send_copy(step, &w->node, &message);
		else
			skep_worker_send(w, step, &message);
	}
}

void skep_transfers_done(struct worker *w, struct step *step, uint32_t number, struct skep_buf out)
{
	assert(w->reduction.attempt > 0);
	assert(w->reduction.rank < w->reduction.size);
	struct reduction *r = &w->reduction;
	uint32_t transfers = skep_scheme_transfers(&r->scheme);
	for (;;) {
		struct skep_scheme_transfer next = {0};
		if (w->transfers_capacity > 0 && number + 1 < transfers) /* in a ring nothing follows */
			next = transfer_of(w, number + 1);
		send_on(w, step, number, next.carries, out);
		r->done++;
		if (!next.follows)
			break;
		skep_bits_add(worker_transferred(w), number++);
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
	if (r->done == transfers)
		skep_reduce_complete(w, step);
}

void skep_transfers_begin(struct worker *w, struct step *step)
{
	assert(w->reduction.attempt > 0);
	assert(w->reduction.rank < w->reduction.size);
	const struct skep_scheme *scheme = &w->reduction.scheme;
	uint32_t transfers = skep_scheme_transfers(scheme);
	const uint64_t *fact = worker_fact(w);
	for (uint32_t n = skep_scheme_start(scheme, fact, 0); n < transfers;
		n = skep_scheme_start(scheme, fact, n + 1)) {
		struct skep_scheme_transfer transfer = transfer_of(w, n);
		if (transfer.op != 0)
			run(w, step, n, &transfer, (struct skep_buf){0, 0});
		else
			skep_transfers_done(w, step, n, (struct skep_buf){0, 0});
	}
}

/* CHUNK_ACK comes without a tensor, and to a transfer without an operation; whatever it was that was taken. */
static bool fits(struct worker *w, uint32_t chunk, uint32_t number, bool tensor)
{
	assert(w->reduction.attempt > 0);
	assert(w->reduction.rank < w->reduction.size);
	if (number >= skep_scheme_transfers(&w->reduction.scheme) || skep_bits_has(worker_hops(w), number))
		return false;
	struct skep_scheme_transfer transfer = transfer_of(w, number);
	return transfer.arrives && tensor == (transfer.op != 0) && (!tensor || transfer.chunk == chunk);
}

void skep_transfers_arrive(
	struct worker *w, struct step *step, uint32_t chunk, uint32_t number, struct skep_buf payload)
{
	assert(w->reduction.attempt > 0);
	assert(w->reduction.rank < w->reduction.size);
	if (!fits(w, chunk, number, !skep_buf_none(payload))) {
		skep_emit_release(step, payload);
		return;
	}
	struct skep_scheme_transfer transfer = transfer_of(w, number);
	skep_bits_add(worker_hops(w), number);
	bool ready = !transfer.follows || skep_bits_has(worker_transferred(w), number - 1);
	if (ready && transfer.op != 0)
		run(w, step, number, &transfer, payload);
	else if (ready)
		skep_transfers_done(w, step, number, let_go(w, number));
	else if (transfer.op != 0)
		worker_held(w)[number] = payload;
}
