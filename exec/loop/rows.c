/* SPDX-License-Identifier: Apache-2.0
 *
 * rows.c - see rows.h. A row is a byte that names its type, then its fields as wire.h writes them.
 */
#include "exec/loop/rows.h"

#include <assert.h>

enum row_type { ROW_NOTE = 1, ROW_OP, ROW_LINK, ROW_WORKER };

struct stamped_note {
	skep_time now;
	struct skep_peer who;
	struct skep_note note;
};

static void note_row(struct skep_wire *wire, struct stamped_note *row)
{
	uint32_t number = skep_note_number(&row->note);
	int64_t value = skep_note_value(&row->note);
	skep_wire_u64(wire, &row->now);
	skep_wire_peer(wire, &row->who);
	skep_wire_u8(wire, &row->note.kind);
	skep_wire_u8(wire, &row->note.candidate);
	skep_wire_u16(wire, &row->note.stage);
	skep_wire_u32(wire, &row->note.round);
	skep_wire_u32(wire, &number);
	skep_wire_peer(wire, &row->note.peer);
	skep_wire_i64(wire, &value);
	if (row->note.kind == 0 || row->note.kind >= SKEP_NOTE_KINDS)
		wire->ok = false;
	if (wire->reading && wire->ok)
		skep_note_set(&row->note, number, value);
}

static void op_row(struct skep_wire *wire, struct skep_op_span *span)
{
	skep_wire_u32(wire, &span->worker);
	skep_wire_u32(wire, &span->epoch);
	skep_wire_u32(wire, &span->round);
	skep_wire_u32(wire, &span->number);
	skep_wire_u16(wire, &span->stage);
	skep_wire_u8(wire, &span->kind);
	skep_wire_u8(wire, &span->lane);
	skep_wire_u64(wire, &span->begin_ns);
	skep_wire_u64(wire, &span->end_ns);
	skep_wire_u64(wire, &span->busy_ns);
	skep_wire_u64(wire, &span->paced_ns);
	if (span->kind == 0 || span->kind >= SKEP_OP_KINDS || span->lane >= SKEP_LANES)
		wire->ok = false;
}

static void link_row(struct skep_wire *wire, struct skep_link_use *use)
{
	skep_wire_u32(wire, &use->source);
	skep_wire_u32(wire, &use->destination);
	skep_wire_u8(wire, &use->traffic);
	skep_wire_u64(wire, &use->messages);
	skep_wire_u64(wire, &use->bytes);
	if (use->traffic >= SKEP_TRAFFICS)
		wire->ok = false;
}

static void worker_row(struct skep_wire *wire, struct skep_worker_use *use)
{
	skep_wire_u32(wire, &use->index);
	skep_wire_u32(wire, &use->epoch);
	skep_wire_u32(wire, &use->stage);
	skep_wire_u64(wire, &use->started_ns);
	skep_wire_u64(wire, &use->alive_ns);
	skep_wire_u64(wire, &use->compute_ns);
	skep_wire_u64(wire, &use->arithmetic_ns);
	skep_wire_u64(wire, &use->events);
	skep_wire_u64(wire, &use->digest);
	skep_wire_u64(wire, &use->damaged);
	skep_wire_u64(wire, &use->experts.passes);
	skep_wire_u64(wire, &use->experts.choices);
	skep_wire_u64(wire, &use->experts.dropped);
	skep_wire_u64(wire, &use->experts.fullest);
	skep_wire_u64(wire, &use->experts.balance_nano);
}

/* ---- into a batch ------------------------------------------------------------------------------------------------ */

static struct skep_wire row_begin(struct skep_rows *rows, enum row_type type)
{
	assert(rows->count <= sizeof rows->bytes);
	struct skep_wire wire = skep_wire_writer(rows->bytes + rows->count, sizeof rows->bytes - rows->count);
	uint8_t byte = (uint8_t)type;
	skep_wire_u8(&wire, &byte);
	return wire;
}

/* A row that did not fit leaves the batch as it was. */
static bool row_end(struct skep_rows *rows, const struct skep_wire *wire, skep_time now)
{
	assert(rows->count <= sizeof rows->bytes);
	if (!wire->ok)
		return false;
	if (rows->count == 0)
		rows->oldest = now;
	rows->count = (uint32_t)(wire->at - rows->bytes);
	return true;
}

bool skep_rows_note(struct skep_rows *rows, skep_time now, struct skep_peer who, const struct skep_note *note)
{
	struct stamped_note row = {.now = now, .who = who, .note = *note};
	struct skep_wire wire = row_begin(rows, ROW_NOTE);
	note_row(&wire, &row);
	return row_end(rows, &wire, now);
}

bool skep_rows_op(struct skep_rows *rows, skep_time now, const struct skep_op_span *span)
{
	struct skep_op_span row = *span;
	struct skep_wire wire = row_begin(rows, ROW_OP);
	op_row(&wire, &row);
	return row_end(rows, &wire, now);
}

bool skep_rows_link(struct skep_rows *rows, skep_time now, const struct skep_link_use *use)
{
	struct skep_link_use row = *use;
	struct skep_wire wire = row_begin(rows, ROW_LINK);
	link_row(&wire, &row);
	return row_end(rows, &wire, now);
}

bool skep_rows_worker(struct skep_rows *rows, skep_time now, const struct skep_worker_use *use)
{
	struct skep_worker_use row = *use;
	struct skep_wire wire = row_begin(rows, ROW_WORKER);
	worker_row(&wire, &row);
	return row_end(rows, &wire, now);
}

/* ---- out of a batch ---------------------------------------------------------------------------------------------- */

static void replay_note(struct skep_wire *wire, const struct skep_recorder *recorder)
{
	struct stamped_note row = {0};
	note_row(wire, &row);
	if (wire->ok && recorder->note != NULL)
		recorder->note(recorder->context, row.now, row.who, &row.note);
}

static void replay_op(struct skep_wire *wire, const struct skep_recorder *recorder)
{
	struct skep_op_span row = {0};
	op_row(wire, &row);
	if (wire->ok && recorder->op != NULL)
		recorder->op(recorder->context, &row);
}

static void replay_link(struct skep_wire *wire, const struct skep_recorder *recorder)
{
	struct skep_link_use row = {0};
	link_row(wire, &row);
	if (wire->ok && recorder->link != NULL)
		recorder->link(recorder->context, &row);
}

static void replay_worker(struct skep_wire *wire, const struct skep_recorder *recorder, uint64_t *ret_events)
{
	struct skep_worker_use row = {0};
	worker_row(wire, &row);
	if (!wire->ok)
		return;
	*ret_events += row.events;
	if (recorder->worker != NULL)
		recorder->worker(recorder->context, &row);
}

bool skep_rows_replay(const uint8_t *bytes, uint32_t count, const struct skep_recorder *recorder, uint64_t *ret_events)
{
	struct skep_wire wire = skep_wire_reader(bytes, count);
	while (wire.ok && wire.at < wire.end) {
		uint8_t type = 0;
		skep_wire_u8(&wire, &type);
		switch (type) {
		case ROW_NOTE:
			replay_note(&wire, recorder);
			break;
		case ROW_OP:
			replay_op(&wire, recorder);
			break;
		case ROW_LINK:
			replay_link(&wire, recorder);
			break;
		case ROW_WORKER:
			replay_worker(&wire, recorder, ret_events);
			break;
		default:
			wire.ok = false;
		}
	}
	return wire.ok;
}
