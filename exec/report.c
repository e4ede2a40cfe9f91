/* SPDX-License-Identifier: Apache-2.0
 *
 * report.c - what a process reports: rank 0 calls the recorder, a worker fills a batch of rows and sends it when full.
 */
#include <assert.h>

#include "exec/rank.h"

void report_flush(struct rank *rank)
{
	struct skep_rows *rows = &rank->rows;
	if (rows->count == 0)
		return;
	struct skep_frame frame = {.type = SKEP_FRAME_ROWS};
	frame.u.text.bytes = rows->bytes;
	frame.u.text.count = rows->count;
	rank_send(rank, 0, &frame, NULL);
	rows->count = 0;
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
