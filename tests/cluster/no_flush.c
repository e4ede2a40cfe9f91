/* SPDX-License-Identifier: Apache-2.0
 *
 * no_flush.c - the part of the books about rounds without a flush: which parameters a microbatch is done on, who steps before the
 * directory has said anything, in which order a stage commits. (Which rounds may be open, and who may give one up: pipelines.c.)
 */
#include "tests/cluster/ledger_internal.h"

static bool is(const struct skep_plan *plan, enum skep_weights weights)
{
	return plan->pipeline == SKEP_PIPELINE_PIPEDREAM && plan->no_flush.weights == weights;
}

uint32_t stream_staleness(const struct skep_plan *plan, uint32_t stage)
{
	bool several = plan->workers > plan->stages;
	if (is(plan, SKEP_WEIGHTS_WAVES))
		return plan->no_flush.distance + 1;
	return plan->stages - 1 - (is(plan, SKEP_WEIGHTS_VERTICAL_SYNC) ? 0 : stage) + several;
}

bool stream_moves_on(const struct skep_plan *plan)
{
	return plan->pipeline == SKEP_PIPELINE_PIPEDREAM && !is(plan, SKEP_WEIGHTS_STASHED) &&
	       !is(plan, SKEP_WEIGHTS_VERTICAL_SYNC);
}

uint32_t stream_versions(const struct skep_plan *plan, uint32_t stage)
{
	return stream_moves_on(plan) ? 1 : stream_staleness(plan, stage) + 1;
}

/* Steps that FORWARD may lack in this round. */
static uint32_t allowed(const struct skep_plan *plan, uint32_t round, uint32_t stage)
{
	uint32_t stale = stream_staleness(plan, stage);
	if (round < plan->no_flush.synchronous)
		return 0;
	if (plan->no_flush.synchronous == 0)
		return stale < round ? stale : round;
	uint32_t since = round - plan->no_flush.synchronous + 1;
	return stale < since ? stale : since;
}

uint32_t stream_forward(const struct skep_plan *plan, const struct device *device, const struct skep_op *op)
{
	uint32_t version = op->round - allowed(plan, op->round, op->stage);
	if (!is(plan, SKEP_WEIGHTS_VERTICAL_SYNC))
		return device->newest;
	return version > device->oldest ? version : device->oldest;
}

/* By how many steps a pass moves what it reads. */
static uint32_t moved(const struct skep_plan *plan, const struct skep_op *op, uint32_t version)
{
	bool back = is(plan, SKEP_WEIGHTS_CORRECTED) && op->kind == SKEP_OP_BACKWARD;
	return back ? op->version - version : is(plan, SKEP_WEIGHTS_PREDICTED) ? op->round - op->version : 0;
}

/* Microbatches of a wave: each of its pipelines has as many of a round. */
uint32_t stream_wave(const struct skep_plan *plan)
{
	uint32_t pipelines = plan->workers / plan->stages;
	return is(plan, SKEP_WEIGHTS_WAVES) ? plan->microbatches / pipelines : 1;
}

/* How many microbatches before it a FORWARD of this round lacks of each other pipeline, on so many steps. */
uint32_t stream_lacked(const struct skep_plan *plan, uint32_t round, uint32_t microbatch, uint32_t version)
{
	return (round - version) * stream_wave(plan) + microbatch % stream_wave(plan);
}

/* Waves: as in the paper, FORWARD lacks at most s_global of others' microbatches; what it reads beside the steps of all is what
 * this worker has counted by itself of that wave and the ones before; and BACKWARD reads the same. */
static void wave_read(
	struct ledger *ledger, struct skep_peer who, const struct skep_op *op, const struct effect *effect)
{
	const struct skep_plan *plan = ledger->plan;
	struct holder *holder = books_holder(ledger, &ledger->round[op->round].cell[op->stage], who);
	uint64_t *version = &holder->version[op->microbatch];
	uint32_t own = stream_wave(plan) - 1, most = (plan->no_flush.distance + 1) * (own + 1) + own - 1, counted = 0;
	bool forward = op->kind == SKEP_OP_FORWARD, newer = effect->version > op->round;
	for (uint32_t round = effect->version; forward && round <= op->round; round++)
		counted += books_bits(ledger, books_holder(ledger, &ledger->round[round].cell[op->stage], who)->added);
	if (forward)
		*version = effect->version;
	uint32_t lacked = newer ? 0 : stream_lacked(plan, op->round, op->microbatch, effect->version);
	if (newer || lacked > most || effect->version != *version || op->moved != counted)
		verdict_break(ledger->verdict, "I11", op->round, op->stage, op->microbatch,
			"worker %u, %s of round %u reads version %u of the parameters, with %u of its own; forward read %u, "
			"%u are its own, and %u of others may be lacking, not %u",
			who.index, skep_op_name(op->kind), op->round, effect->version, (uint32_t)op->moved,
			(uint32_t)*version, counted, most, lacked);
}

/* Without a flush: FORWARD's version is not too old, and BACKWARD's the same, or the newest, which lacks a step at most. */
void stream_read(struct ledger *ledger, struct skep_peer who, const struct skep_op *op, const struct effect *effect)
{
	struct holder *holder = books_holder(ledger, &ledger->round[op->round].cell[op->stage], who);
	uint64_t *version = &holder->version[op->microbatch];
	bool forward = op->kind == SKEP_OP_FORWARD, newer = effect->version > op->round;
	if (is(ledger->plan, SKEP_WEIGHTS_WAVES)) {
		wave_read(ledger, who, op, effect);
		return;
	}
	uint32_t lacks = allowed(ledger->plan, op->round, op->stage);
	if (forward)
		*version = effect->version;
	else if (stream_moves_on(ledger->plan))
		lacks = lacks > 1 ? 1 : lacks;
	bool other = effect->version != *version && !stream_moves_on(ledger->plan);
	if (newer || op->round - effect->version > lacks || other ||
		moved(ledger->plan, op, (uint32_t)*version) != op->moved)
		verdict_break(ledger->verdict, "I11", op->round, op->stage, op->microbatch,
			"worker %u, %s of round %u reads version %u of the parameters, moved by %u; forward read %u, %u may be "
			"lacking",
			who.index, skep_op_name(op->kind), op->round, effect->version, (uint32_t)op->moved,
			(uint32_t)*version, lacks);
}

/* A worker that is alone in its stage steps as soon as it has told. What the directory then says has to be that, or that
 * worker is out by then (stream_committed). */
void stream_stepped_alone(
	struct ledger *ledger, struct skep_peer who, const struct skep_op *op, const struct effect *effect)
{
	struct cell *cell = &ledger->round[op->round].cell[op->stage];
	struct holder *holder = books_holder(ledger, cell, who);
	uint64_t expected[CLUSTER_ELEMENTS] = {0};
	books_add_own(ledger, holder, op->round, op->stage, expected);
	bool same = books_same_sum(ledger, op, expected, effect->applied);
	if (holder->stepped || op->microbatches != books_bits(ledger, holder->added) || (op->microbatches > 0 && !same))
		verdict_break(ledger->verdict, "I1b", op->round, op->stage, ANY,
			"worker %u is alone and steps twice, or on another sum than that of the %u it counted",
			who.index, books_bits(ledger, holder->added));
	holder->stepped = true;
	if (!books_seated(ledger, who, op->stage, op->round)) /* it is out, and what it holds is void */
		return;
	cell->alone = who;
	cell->alone_counted = op->microbatches;
	books_check_parameters(ledger, who, op->round + 1, op->stage, effect);
}

/* In order; and who stepped on its own word is the only member and has counted what it then said, or it is out. */
void stream_committed(struct ledger *ledger, const struct skep_note *note, struct cell *cell)
{
	if (note->round > 0 && !ledger->round[note->round - 1].cell[note->stage].committed)
		verdict_break(ledger->verdict, "I1", note->round, note->stage, ANY,
			"stage %u commits round %u before the one before", note->stage, note->round);
	if (cell->alone.epoch == 0 || !books_seated(ledger, cell->alone, note->stage, note->round))
		return;
	if (cell->members != 1 || !books_holder(ledger, cell, cell->alone)->member ||
		note->counted != cell->alone_counted)
		verdict_break(ledger->verdict, "I1b", note->round, note->stage, ANY,
			"worker %u stepped on its own %u, but stage %u commits %u members with %u", cell->alone.index,
			cell->alone_counted, note->stage, cell->members, note->counted);
}

/* Several, in order. */
bool stream_may_open(const struct ledger *ledger, uint32_t round)
{
	return round < ledger->rounds_closed + pipes_window(ledger) && round < ledger->plan->rounds &&
	       (round == 0 || ledger->round[round - 1].open || ledger->round[round - 1].closed);
}

/* Members are told of the sum when the round opens, and anew while it is open, or if it has come back. */
void stream_told(struct ledger *ledger, const struct skep_message *m)
{
	const struct round *round = &ledger->round[m->round];
	if (m->kind == SKEP_MESSAGE_REDUCE && !round->open && !round->reducing)
		verdict_break(ledger->verdict, "I9", m->round, m->stage, ANY,
			"members of round %u are told of its sum, and it is not open", m->round);
}
