/* SPDX-License-Identifier: Apache-2.0
 *
 * report.c - what a process reports: rank 0 calls the recorder, a worker fills batches of rows and of
 * its log, and sends each when it is full.
 */
#include <assert.h>

#include "exec/rank.h"

static void send_batch(struct rank *rank, enum skep_frame_type type, const uint8_t *bytes, uint32_t count)
{
	struct skep_frame frame = {.type = (uint8_t)type};
	frame.u.text.bytes = bytes;
	frame.u.text.count = count;
	rank_send(rank, 0, &frame, NULL);
}

void report_log(struct rank *rank, uint32_t machine, const uint8_t *bytes, uint32_t count)
{
	const struct skep_recorder *recorder = rank->setup->recorder;
	if (recorder->log != NULL)
		recorder->log(recorder->context, machine, bytes, count);
}

static void flush_log(struct rank *rank)
{
	struct skep_log *log = &rank->log;
	if (log->count > 0 && rank_is_chief(rank))
		report_log(rank, rank->self, log->bytes, log->count);
	else if (log->count > 0)
		send_batch(rank, SKEP_FRAME_LOG, log->bytes, log->count);
	log->count = 0;
}

void report_flush(struct rank *rank)
{
	flush_log(rank);
	if (rank->rows.count > 0)
		send_batch(rank, SKEP_FRAME_ROWS, rank->rows.bytes, rank->rows.count);
	rank->rows.count = 0;
}

void report_event(struct rank *rank, const struct skep_event *event)
{
	uint64_t digest = skep_node_digest(rank->node);
	if (!skep_log_add(&rank->log, event, digest)) {
		flush_log(rank);
		bool added = skep_log_add(&rank->log, event, digest);
		assert(added);
	}
}

void report_note(struct rank *rank, const struct skep_note *note)
{
	const struct skep_recorder *recorder = rank->setup->recorder;
	skep_time at = rank_now(rank);
	struct skep_peer who = {rank->self, skep_node_epoch(rank->node)};
	if (!rank_is_chief(rank)) {
		if (!skep_rows_note(&rank->rows, at, who, note)) {
			report_flush(rank);
			bool added = skep_rows_note(&rank->rows, at, who, note);
			assert(added);
		}
		return;
	}
	if (note->kind == SKEP_NOTE_ROUND_CLOSED)
		flush_log(rank); /* the log of a round is there before the round is closed */
	if (recorder->note != NULL)
		recorder->note(recorder->context, at, who, note);
	if (note->kind != SKEP_NOTE_ROUND_CLOSED)
		return;
	rank->rounds_done++;
	if (recorder->progress != NULL)
		recorder->progress(recorder->context, at, rank->rounds_done, rank->plan->rounds);
}

void report_op(struct rank *rank, const struct skep_lanes_done *done)
{
	const struct skep_op *op = &done->op;
	struct skep_op_span span = {.worker = rank->self,
		.epoch = skep_node_epoch(rank->node),
		.round = op->round,
		.microbatch = op->microbatch,
		.stage = op->stage,
		.kind = op->kind,
		.lane = op->lane,
		.begin_ns = done->begin_ns,
		.end_ns = done->end_ns,
		.busy_ns = done->busy_ns};
	if (op->lane == SKEP_LANE_COMPUTE) {
		rank->total.compute_ns += span.end_ns - span.begin_ns;
		rank->total.arithmetic_ns += span.busy_ns;
	}
	if (!skep_rows_op(&rank->rows, span.end_ns, &span)) {
		report_flush(rank);
		bool added = skep_rows_op(&rank->rows, span.end_ns, &span);
		assert(added);
	}
}

static void link_use(struct rank *rank, const struct skep_link_use *use)
{
	const struct skep_recorder *recorder = rank->setup->recorder;
	if (rank_is_chief(rank)) {
		if (recorder->link != NULL)
			recorder->link(recorder->context, use);
		return;
	}
	if (!skep_rows_link(&rank->rows, rank_now(rank), use)) {
		report_flush(rank);
		bool added = skep_rows_link(&rank->rows, rank_now(rank), use);
		assert(added);
	}
}

static void worker_use(struct rank *rank, const struct skep_worker_use *use)
{
	const struct skep_recorder *recorder = rank->setup->recorder;
	if (rank_is_chief(rank)) {
		rank->events += use->events;
		if (recorder->worker != NULL)
			recorder->worker(recorder->context, use);
		return;
	}
	if (!skep_rows_worker(&rank->rows, rank_now(rank), use)) {
		report_flush(rank);
		bool added = skep_rows_worker(&rank->rows, rank_now(rank), use);
		assert(added);
	}
}

void report_use(struct rank *rank)
{
	flush_log(rank);
	for (uint32_t i = 0; i < (rank->plan->workers + 1) * SKEP_TRAFFICS; i++) {
		if (rank->use[i].messages > 0)
			link_use(rank, &rank->use[i]);
	}
	rank->total.index = rank->self;
	rank->total.epoch = skep_node_epoch(rank->node);
	rank->total.stage = skep_node_stage(rank->node);
	rank->total.alive_ns = rank->ended_ns;
	rank->total.digest = skep_node_digest(rank->node);
	worker_use(rank, &rank->total);
}
