/* SPDX-License-Identifier: Apache-2.0
 *
 * download.c - a stage's state travels in chunks: a newcomer asks for them and loads them, a source saves and sends them.
 *
 * What is kept true
 *   - A chunk is loaded only at the version that it is of. One that is ahead waits here, for the newcomer is about to step
 *     there; one that is behind is dropped and asked for again. What is loaded stays right, because the newcomer steps along.
 *   - Two chunks are under way at a time, so that the link is busy while one is saved or loaded. After one has come too late
 *     it is one at a time, and one that would not come before the next step, by what the last chunk and the last round took, is
 *     asked for after it: then a join gets on by one chunk in every round into which one fits.
 *   - A source that has not answered for the timeout is asked again, each time after twice as long: the chunk may be on
 *     a slow link, and a second copy would make it slower. Whose source is gone hears of another from the directory.
 *   - A source saves one chunk between two operations of the pipeline, so that it is not held up.
 */
#include <assert.h>

#include "core/bits.h"
#include "core/worker/worker.h"

/* ---- the newcomer ----------------------------------------------------------------------------------------------- */

static bool under_way(const struct download *d, uint32_t chunk)
{
	for (uint32_t i = 0; i < DOWNLOADS; i++) {
		if (d->part[i].state != PART_FREE && d->part[i].chunk == chunk)
			return true;
	}
	return false;
}

static void ask(struct worker *w, struct step *step, struct part *part)
{
	assert(w->state == WORKER_JOINING);
	struct skep_message message = skep_message_to(&w->node, SKEP_MESSAGE_FETCH, w->source);
	part->state = PART_ASKED;
	part->asked_ns = w->node.now;
	message.round = w->version;
	message.u.state.chunk = part->chunk;
	skep_worker_send(w, step, &message);
}

/* Would a chunk that is asked for now come before the next step? */
static bool in_time(const struct worker *w)
{
	assert(w->state == WORKER_JOINING);
	const struct download *d = &w->download;
	return d->round_ns == 0 || w->node.now - d->stepped_ns + d->took_ns <= d->round_ns;
}

/* Fills the window with the first chunks that are missing. */
static void ask_more(struct worker *w, struct step *step)
{
	assert(w->state == WORKER_JOINING);
	struct download *d = &w->download;
	uint32_t used = 0;
	for (uint32_t i = 0; i < DOWNLOADS; i++)
		used += d->part[i].state != PART_FREE;
	while (d->next < d->chunks && skep_bits_has(worker_loaded(w), d->next))
		d->next++;
	for (uint32_t chunk = d->next; chunk < d->chunks && used < d->window; chunk++) {
		if (skep_bits_has(worker_loaded(w), chunk) || under_way(d, chunk))
			continue;
		struct part *part = d->part;
		while (part->state != PART_FREE)
			part++;
		part->chunk = chunk;
		ask(w, step, part);
		used++;
	}
}

void skep_download_begin(struct worker *w, const struct skep_plan *plan)
{
	assert(w->state == WORKER_JOINING);
	w->download = (struct download){.chunks = skep_state_chunks(plan, w->node.stage), .window = DOWNLOADS};
	skep_bits_clear(worker_loaded(w), skep_bits_words(w->download.chunks));
}

void skep_download_from(struct worker *w, struct step *step, struct skep_peer source)
{
	assert(w->state == WORKER_JOINING);
	assert(source.index < step->plan->workers);
	w->source = source;
	w->download.retry_ns = step->plan->liveness.fence_after_ns;
	for (uint32_t i = 0; i < DOWNLOADS; i++) {
		if (w->download.part[i].state == PART_ASKED)
			ask(w, step, &w->download.part[i]);
	}
	ask_more(w, step);
}

static void too_late(struct worker *w, struct step *step, struct part *part)
{
	w->download.window = 1;
	part->state = PART_FREE;
	if (in_time(w))
		ask_more(w, step);
}

void skep_download_on_state(struct worker *w, struct step *step, const struct skep_message *message)
{
	assert(message->kind == SKEP_MESSAGE_STATE);
	assert(message->from.index < step->plan->workers);
	struct download *d = &w->download;
	for (uint32_t i = 0; i < DOWNLOADS; i++) {
		struct part *part = &d->part[i];
		bool wanted = w->state == WORKER_JOINING && part->state == PART_ASKED &&
		              part->chunk == message->u.state.chunk && skep_peer_same(message->from, w->source);
		if (!wanted)
			continue;
		d->took_ns = w->node.now - part->asked_ns;
		if (message->round < w->version) {
			skep_emit_release(step, message->payload);
			too_late(w, step, part);
			return;
		}
		part->state = PART_HERE;
		part->version = message->round;
		part->payload = message->payload;
		d->retry_ns = step->plan->liveness.fence_after_ns;
		return;
	}
	skep_emit_release(step, message->payload);
}

bool skep_download_load(struct worker *w, struct step *step)
{
	assert(w->state == WORKER_JOINING);
	for (uint32_t i = 0; i < DOWNLOADS; i++) {
		struct part *part = &w->download.part[i];
		if (part->state != PART_HERE || part->version != w->version)
			continue;
		struct skep_op op = {.kind = SKEP_OP_LOAD, .stage = (uint16_t)w->node.stage, .round = w->version};
		op.in = part->payload;
		op.chunk = part->chunk;
		op.chunks = w->download.chunks;
		part->state = PART_LOADING;
		part->payload = (struct skep_buf){0, 0};
		op.version = w->version;
		skep_worker_compute(w, step, &op);
		return true;
	}
	return false;
}

void skep_download_loaded(struct worker *w, struct step *step, const struct skep_op *op)
{
	assert(op->kind == SKEP_OP_LOAD);
	assert(w->state == WORKER_JOINING);
	struct download *d = &w->download;
	struct part *part = d->part;
	while (part->state != PART_LOADING)
		part++;
	assert(part < d->part + DOWNLOADS && part->chunk == op->chunk && op->round == w->version);
	skep_emit_release(step, op->in);
	part->state = PART_FREE;
	skep_bits_add(worker_loaded(w), op->chunk);
	if (++d->loaded == d->chunks)
		skep_member_ready(w, step);
	else if (in_time(w))
		ask_more(w, step);
}

void skep_download_stepped(struct worker *w, struct step *step)
{
	struct download *d = &w->download;
	d->round_ns = d->stepped_ns > 0 ? w->node.now - d->stepped_ns : 0;
	d->stepped_ns = w->node.now;
	for (uint32_t i = 0; i < DOWNLOADS; i++) {
		struct part *part = &w->download.part[i];
		if (part->state != PART_HERE || part->version >= w->version)
			continue;
		skep_emit_release(step, part->payload);
		part->payload = (struct skep_buf){0, 0};
		too_late(w, step, part);
	}
	if (w->source.index != SKEP_NO_INDEX)
		ask_more(w, step);
}

void skep_download_heartbeat(struct worker *w, struct step *step)
{
	assert(w->state == WORKER_JOINING);
	struct download *d = &w->download;
	bool again = false;
	for (uint32_t i = 0; i < DOWNLOADS; i++) {
		if (d->part[i].state != PART_ASKED || w->node.now - d->part[i].asked_ns < d->retry_ns)
			continue;
		ask(w, step, &d->part[i]);
		again = true;
	}
	if (w->node.now - d->stepped_ns > 2 * d->round_ns && w->source.index != SKEP_NO_INDEX)
		ask_more(w, step); /* this round takes longer than the last one */
	if (again && d->retry_ns < SKEP_TIME_NEVER / 4)
		d->retry_ns *= 2;
}

bool skep_download_wants(const struct worker *w, const struct skep_message *fetch)
{
	for (uint32_t i = 0; w->state == WORKER_JOINING && i < DOWNLOADS; i++) {
		const struct part *part = &w->download.part[i];
		if (part->state == PART_ASKED && part->chunk == fetch->u.state.chunk &&
			skep_peer_same(fetch->to, w->source))
			return true;
	}
	return false;
}

void skep_download_forget(struct worker *w, struct step *step)
{
	assert(w->fetchers <= FETCHERS_MAX);
	assert(w->state != WORKER_STOPPED);
	for (uint32_t i = 0; i < DOWNLOADS; i++)
		skep_emit_release(step, w->download.part[i].payload);
	w->download = (struct download){0};
	w->source.index = SKEP_NO_INDEX;
	w->fetchers = 0;
}

/* ---- the source ------------------------------------------------------------------------------------------------- */

static void keep_fetch(struct worker *w, struct fetch wanted)
{
	assert(w->state == WORKER_SERVING);
	assert(w->fetchers <= FETCHERS_MAX);
	for (uint32_t i = 0; i < w->fetchers; i++) {
		struct fetch *f = &w->fetch[i];
		if (!skep_peer_same(f->to, wanted.to) || f->chunk != wanted.chunk)
			continue;
		f->version = f->version > wanted.version ? f->version : wanted.version;
		return;
	}
	if (w->fetchers < FETCHERS_MAX) /* else it asks again */
		w->fetch[w->fetchers++] = wanted;
}

void skep_download_on_fetch(struct worker *w, const struct skep_plan *plan, const struct skep_message *message)
{
	assert(message->kind == SKEP_MESSAGE_FETCH);
	if (w->state == WORKER_SERVING && message->u.state.chunk < skep_state_chunks(plan, w->node.stage))
		keep_fetch(w, (struct fetch){message->from, message->u.state.chunk, message->round});
}

bool skep_download_save(struct worker *w, struct step *step)
{
	assert(w->state == WORKER_SERVING);
	assert(w->fetchers <= FETCHERS_MAX);
	for (uint32_t i = 0; i < w->fetchers; i++) {
		struct fetch f = w->fetch[i];
		if (f.version > w->version)
			continue;
		struct skep_op op = {.kind = SKEP_OP_SAVE, .stage = (uint16_t)w->node.stage, .round = w->version};
		op.chunk = f.chunk;
		op.chunks = skep_state_chunks(step->plan, w->node.stage);
		op.receiver = f.to.index;
		op.receiver_epoch = f.to.epoch;
		w->fetchers--;
		for (; i < w->fetchers; i++)
			w->fetch[i] = w->fetch[i + 1];
		op.version = w->version;
		skep_worker_compute(w, step, &op);
		return true;
	}
	return false;
}

void skep_download_saved(struct worker *w, struct step *step, const struct skep_op *op, struct skep_buf state)
{
	assert(op->kind == SKEP_OP_SAVE);
	assert(w->state == WORKER_SERVING);
	struct skep_message message =
		skep_message_to(&w->node, SKEP_MESSAGE_STATE, (struct skep_peer){op->receiver, op->receiver_epoch});
	message.round = op->round;
	message.u.state.chunk = op->chunk;
	message.payload = state;
	message.payload_bytes = skep_state_chunk_bytes(step->plan, w->node.stage, op->chunk);
	skep_worker_send(w, step, &message);
}

bool skep_download_state_failed(struct worker *w, const struct skep_message *message)
{
	if (w->state != WORKER_SERVING)
		return false;
	if (message->round == w->version)
		return true;
	keep_fetch(w, (struct fetch){message->to, message->u.state.chunk, message->round});
	return false;
}
