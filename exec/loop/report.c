/* SPDX-License-Identifier: Apache-2.0
 *
 * report.c - what a process reports: rank 0 calls the recorder, a worker fills batches of rows and of
 * its log, and sends each when it is full.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/random.h"
#include "exec/loop/rank.h"

static void send_batch(
	struct rank *rank, enum skep_frame_type type, uint64_t number, const uint8_t *bytes, uint32_t count)
{
	struct skep_frame frame = {.type = (uint8_t)type, .number = number};
	frame.u.text.bytes = bytes;
	frame.u.text.count = count;
	skep_rank_send(rank, 0, &frame, NULL);
}

/* ---- the log ----------------------------------------------------------------------------------------------------- */

static void hear_log(struct rank *rank, uint32_t machine, const uint8_t *bytes, uint32_t count)
{
	const struct skep_recorder *recorder = rank->setup->recorder;
	if (recorder->log != NULL && count > 0)
		recorder->log(recorder->context, machine, bytes, count);
}

/* What comes from a dead process after its remains were looked at is known already, or out of order. */
void skep_report_log(struct rank *rank, uint32_t peer, uint64_t number, const uint8_t *bytes, uint32_t count)
{
	uint32_t machine = rank_to_machine(rank, peer);
	if (machine == SKEP_NO_INDEX || rank->slots.gone[peer])
		return;
	rank->batches_had[peer] = number;
	hear_log(rank, machine, bytes, count);
}

static void flush_log(struct rank *rank)
{
	struct skep_log *log = &rank->log;
	if (log->count > 0 && skep_rank_is_root(rank)) {
		hear_log(rank, rank->self, log->bytes, log->count);
	} else if (log->count > 0) {
		send_batch(rank, SKEP_FRAME_LOG, ++rank->batches, log->bytes, log->count);
		skep_post_mortem_sent(rank->post_mortem);
	}
	log->count = 0;
}

static void leave_post_mortem(struct rank *rank, uint64_t events, uint64_t digest)
{
	const struct skep_log *log = &rank->log;
	if (log->entry > 0)
		skep_post_mortem_add(
			rank->post_mortem, log->bytes + log->count - log->entry, log->entry, events, digest);
}

void skep_report_event(struct rank *rank, const struct skep_event *event)
{
	assert(rank->alive);
	assert(event->now <= rank_now(rank));
	uint64_t digest = skep_node_digest(rank->node);
	if (!skep_log_add(&rank->log, event, digest)) {
		flush_log(rank);
		bool added = skep_log_add(&rank->log, event, digest);
		assert(added);
	}
	leave_post_mortem(rank, rank->total.events, digest);
}

static void log_end(struct rank *rank)
{
	const struct skep_worker_use *life = &rank->total;
	skep_time at = rank_now(rank);
	if (!skep_log_end(&rank->log, at, life->events, life->digest)) {
		flush_log(rank);
		bool added = skep_log_end(&rank->log, at, life->events, life->digest);
		assert(added);
	}
	leave_post_mortem(rank, 0, 0);
}

static void flush_rows(struct rank *rank)
{
	if (rank->rows.count > 0)
		send_batch(rank, SKEP_FRAME_ROWS, 0, rank->rows.bytes, rank->rows.count);
	rank->rows.count = 0;
}

static void flush_batches(struct rank *rank)
{
	flush_log(rank);
	flush_rows(rank);
}

/* ---- what was sent ----------------------------------------------------------------------------------------------- */

/* What a process has sent on one link from its begin on, by its own count. What comes late, from one that is dead and whose
 * counts are known from its remains, is no news. */
static void hear_link(struct rank *rank, uint32_t peer, const struct skep_link_use *use)
{
	assert(use->destination <= rank->plan->workers && use->traffic < SKEP_TRAFFICS);
	assert(peer < rank->transport->ranks);
	const struct skep_recorder *recorder = rank->setup->recorder;
	if (rank->heard[peer] == NULL)
		rank->heard[peer] = calloc(rank_links(rank->plan), sizeof **rank->heard);
	if (rank->heard[peer] == NULL) {
		skep_rank_fail(rank, "no memory for what the processes report");
		return;
	}
	struct skep_link_use *heard = &rank->heard[peer][use->destination * SKEP_TRAFFICS + use->traffic];
	if (use->messages <= heard->messages)
		return;
	uint64_t bytes = use->bytes - heard->bytes;
	struct skep_sent more = {
		.egress_usd = skep_scenario_egress_usd(rank->setup->scenario, use->source, use->destination, bytes)};
	more.bytes[use->traffic] = bytes;
	if (more.egress_usd > 0)
		skep_egress_bill_add(&rank->bill, more.egress_usd);
	*heard = *use;
	if (recorder->sent != NULL)
		recorder->sent(recorder->context, &more);
}

static void tell_link(struct rank *rank, const struct skep_link_use *use)
{
	if (skep_rank_is_root(rank)) {
		hear_link(rank, 0, use);
	} else if (!skep_rows_link(&rank->rows, rank_now(rank), use)) {
		flush_batches(rank);
		bool added = skep_rows_link(&rank->rows, rank_now(rank), use);
		assert(added);
	}
}

static void tell_links(struct rank *rank)
{
	for (size_t i = 0; i < rank_links(rank->plan); i++) {
		if (rank->told[i] == rank->use[i].messages)
			continue;
		tell_link(rank, &rank->use[i]);
		rank->told[i] = rank->use[i].messages;
	}
}

void skep_report_flush(struct rank *rank)
{
	flush_log(rank);
	tell_links(rank);
	flush_rows(rank);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

void skep_report_note(struct rank *rank, const struct skep_note *note)
{
	assert(skep_note_legal(rank->plan, note));
	const struct skep_recorder *recorder = rank->setup->recorder;
	skep_time at = rank_now(rank);
	struct skep_peer who = {rank->self, skep_node_epoch(rank->node)};
	if (!skep_rank_is_root(rank)) {
		if (!skep_rows_note(&rank->rows, at, who, note)) {
			flush_batches(rank);
			bool added = skep_rows_note(&rank->rows, at, who, note);
			assert(added);
		}
		return;
	}
	if (note->kind == SKEP_NOTE_ROUND_CLOSED)
		flush_log(rank); /* the log of a round is there before the round is closed */
	if (skep_note_ends(note->kind))
		tell_links(rank);
	if (recorder->note != NULL)
		recorder->note(recorder->context, at, who, note);
	if (note->kind != SKEP_NOTE_ROUND_CLOSED)
		return;
	rank->rounds_done++;
	if (recorder->progress != NULL)
		recorder->progress(recorder->context, at, rank->rounds_done, rank->plan->rounds);
}

void skep_report_op(struct rank *rank, const struct skep_lanes_done *done)
{
	assert(done->begin_ns <= done->end_ns);
	assert(done->op.lane < SKEP_LANES);
	const struct skep_op *op = &done->op;
	struct skep_op_span span = {.worker = rank->self,
		.epoch = skep_node_epoch(rank->node),
		.round = op->round,
		.number = op->number,
		.stage = (uint16_t)(op->stage % rank->plan->stages),
		.kind = op->kind,
		.lane = op->lane,
		.begin_ns = done->begin_ns,
		.end_ns = done->end_ns,
		.busy_ns = done->busy_ns,
		.paced_ns = done->paced_ns};
	if (op->lane == SKEP_LANE_COMPUTE) {
		rank->total.compute_ns += span.end_ns - span.begin_ns;
		rank->total.arithmetic_ns += span.busy_ns;
	}
	if (!skep_rows_op(&rank->rows, span.end_ns, &span)) {
		flush_batches(rank);
		bool added = skep_rows_op(&rank->rows, span.end_ns, &span);
		assert(added);
	}
}

/* ---- lives ------------------------------------------------------------------------------------------------------- */

/* A life of this machine has ended. */
static void close_life(struct rank *rank, const struct skep_worker_use *life)
{
	assert(skep_rank_is_root(rank));
	assert(life->index <= rank->plan->workers);
	struct books *books = &rank->books[life->index];
	struct skep_worker_use *sum = &books->sum;
	const struct skep_recorder *recorder = rank->setup->recorder;
	if (recorder->life != NULL && life->index < rank->plan->workers)
		recorder->life(recorder->context, life->index, life->started_ns, life->started_ns + life->alive_ns);
	books->lives++;
	books->digest = skep_mix(books->digest ^ life->digest);
	sum->digest = books->lives == 1 ? life->digest : books->digest;
	sum->epoch = life->epoch;
	sum->stage = life->stage;
	sum->alive_ns += life->alive_ns;
	sum->compute_ns += life->compute_ns;
	sum->arithmetic_ns += life->arithmetic_ns;
	sum->events += life->events;
	sum->damaged += life->damaged;
	skep_expert_use_add(&sum->experts, &life->experts);
	sum->torn = sum->torn || life->torn;
	rank->events += life->events;
	books->open = false;
	books->compute_ns = books->arithmetic_ns = 0;
}

void skep_report_incarnation(struct rank *rank)
{
	log_end(rank);
	if (skep_rank_is_root(rank)) {
		close_life(rank, &rank->total);
		return;
	}
	if (!skep_rows_worker(&rank->rows, rank_now(rank), &rank->total)) {
		flush_batches(rank);
		bool added = skep_rows_worker(&rank->rows, rank_now(rank), &rank->total);
		assert(added);
	}
}

/* ---- the books of rank 0 ----------------------------------------------------------------------------------------- */

void skep_report_started(struct rank *rank, uint32_t machine)
{
	assert(skep_rank_is_root(rank));
	assert(machine <= rank->plan->workers);
	rank->books[machine].open = true;
	rank->books[machine].since_ns = rank_now(rank);
}

/* What a dead process has logged and not sent; *ret_end: how its life ended, no events if none was going on. False: that is not
 * known, part of it is lost. */
static bool gather_post_mortem(struct rank *rank, uint32_t peer, uint32_t machine, struct skep_worker_use *ret_end)
{
	assert(peer < rank->transport->ranks);
	assert(machine < rank->plan->workers);
	const struct skep_post_mortem *post_mortem = rank->setup->post_mortem;
	const uint8_t *bytes;
	uint32_t count;
	if (post_mortem == NULL)
		return false;
	post_mortem += peer;
	while (skep_post_mortem_batch(post_mortem, rank->batches_had[peer], &bytes, &count)) {
		hear_log(rank, machine, bytes, count);
		rank->batches_had[peer]++;
	}
	skep_post_mortem_end(post_mortem, &ret_end->events, &ret_end->digest);
	return rank->batches_had[peer] == atomic_load(&post_mortem->open) + 1;
}

/* What a dead process has sent and not told of. */
static void gather_links(struct rank *rank, uint32_t peer)
{
	assert(peer < rank->transport->ranks);
	size_t links = rank_links(rank->plan);
	const struct skep_link_use *use = rank->setup->used;
	for (size_t i = 0; use != NULL && i < links; i++) {
		if (use[peer * links + i].messages > 0)
			hear_link(rank, peer, &use[peer * links + i]);
	}
}

static void log_unseen_end(struct rank *rank, uint32_t machine, uint64_t events, uint64_t digest)
{
	assert(machine <= rank->plan->workers);
	struct skep_log last = {.left = SKEP_LOG_ENTRY_MAX};
	skep_log_end(&last, 0, events, digest);
	hear_log(rank, machine, last.bytes, last.count);
}

void skep_report_missing(struct rank *rank, uint32_t machine)
{
	assert(skep_rank_is_root(rank));
	log_unseen_end(rank, machine, 0, 0);
}

void skep_report_ended(struct rank *rank, uint32_t peer, uint32_t machine)
{
	assert(skep_rank_is_root(rank));
	assert(peer < rank->transport->ranks);
	assert(machine < rank->plan->workers);
	const struct skep_recorder *recorder = rank->setup->recorder;
	struct books *books = &rank->books[machine];
	struct skep_worker_use end = {.index = machine, .epoch = rank->slots.epoch[peer], .stage = SKEP_NO_STAGE};
	bool known = gather_post_mortem(rank, peer, machine, &end);
	gather_links(rank, peer);
	if (recorder->died != NULL)
		recorder->died(recorder->context, machine);
	bool begun = !known || end.events > 0; /* the process may have died before it began */
	if (!begun)
		log_unseen_end(rank, machine, 0, 0);
	if (!books->open || !begun) {
		books->open = false;
		return;
	}
	end.started_ns = books->since_ns;
	end.alive_ns = rank_now(rank) - books->since_ns;
	end.compute_ns = books->compute_ns;
	end.arithmetic_ns = books->arithmetic_ns;
	end.torn = !known;
	if (known)
		log_unseen_end(rank, machine, end.events, end.digest);
	close_life(rank, &end);
}

/* Of a machine that has not reported its end nothing is said but what it has sent. */
void skep_report_machines(struct rank *rank)
{
	assert(skep_rank_is_root(rank));
	const struct skep_recorder *recorder = rank->setup->recorder;
	size_t links = rank_links(rank->plan);
	for (uint32_t peer = 0; recorder->link != NULL && peer < rank->transport->ranks; peer++) {
		for (size_t i = 0; rank->heard[peer] != NULL && i < links; i++) {
			if (rank->heard[peer][i].messages > 0)
				recorder->link(recorder->context, &rank->heard[peer][i]);
		}
	}
	for (uint32_t i = 0; recorder->worker != NULL && i <= rank->plan->workers; i++) {
		if (!rank->books[i].open)
			recorder->worker(recorder->context, &rank->books[i].sum);
	}
}

struct batch { /* of rows, on rank 0 */
	struct rank *rank;
	uint32_t peer; /* that it came from */
	bool fine;
};

/* A process reports for the machine that it runs, of which there is none before it has a slot. */
static bool is_own(const struct batch *batch, uint32_t machine)
{
	return machine != SKEP_NO_INDEX && machine == rank_to_machine(batch->rank, batch->peer);
}

static void pass_note(void *context, skep_time now, struct skep_peer who, const struct skep_note *note)
{
	struct batch *batch = context;
	const struct rank *rank = batch->rank;
	const struct skep_recorder *recorder = rank->setup->recorder;
	if (!is_own(batch, who.index) || who.index > rank->plan->workers || !skep_note_legal(rank->plan, note))
		batch->fine = false;
	else if (recorder->note != NULL)
		recorder->note(recorder->context, now, who, note);
}

static void pass_op(void *context, const struct skep_op_span *span)
{
	struct batch *batch = context;
	struct rank *rank = batch->rank;
	const struct skep_recorder *recorder = rank->setup->recorder;
	if (!is_own(batch, span->worker)) {
		batch->fine = false;
		return;
	}
	if (span->lane == SKEP_LANE_COMPUTE && span->worker < rank->plan->workers) {
		rank->books[span->worker].compute_ns += span->end_ns - span->begin_ns;
		rank->books[span->worker].arithmetic_ns += span->busy_ns;
	}
	if (recorder->op != NULL)
		recorder->op(recorder->context, span);
}

static void pass_link(void *context, const struct skep_link_use *use)
{
	struct batch *batch = context;
	const struct rank *rank = batch->rank;
	if (!is_own(batch, use->source) || use->destination > rank->plan->workers)
		batch->fine = false;
	else
		hear_link(batch->rank, batch->peer, use);
}

static void pass_worker(void *context, const struct skep_worker_use *use)
{
	struct batch *batch = context;
	if (!is_own(batch, use->index) || use->index >= batch->rank->plan->workers)
		batch->fine = false;
	else
		close_life(batch->rank, use);
}

bool skep_report_rows(struct rank *rank, uint32_t peer, const uint8_t *bytes, uint32_t count)
{
	assert(skep_rank_is_root(rank));
	struct batch batch = {.rank = rank, .peer = peer, .fine = true};
	const struct skep_recorder pass = {
		.context = &batch, .note = pass_note, .op = pass_op, .link = pass_link, .worker = pass_worker};
	uint64_t events = 0;
	return skep_rows_replay(bytes, count, &pass, &events) && batch.fine;
}
