/* SPDX-License-Identifier: Apache-2.0
 *
 * async.c - asynchronous periodic sync, for devices, the weather and the books: what a pseudo-gradient is made of, which merge is
 * whose, and what every member holds after each.
 *
 * Gradients are hashes that do not depend on parameters here, so a merge is right exactly if the sum that all apply is that of
 * the microbatches which OUTER_UPDATED notes name for it. The notes of a merge come in the same step as its COMMIT.
 */
#include "tests/cluster/fault_mix.h"
#include "tests/cluster/ledger_internal.h"

#include <string.h>

/* ---- devices ----------------------------------------------------------------------------------------------------- */

static const char *backward(struct drift *d, const struct skep_op *op)
{
	for (uint32_t e = 0; e < CLUSTER_ELEMENTS && !op->uncounted; e++)
		d->added[e] += symbol_gradient(op->round, 0, op->stage, op->microbatch, e);
	d->added_count += !op->uncounted;
	return NULL;
}

static const char *inner(struct drift *d, const struct skep_op *op)
{
	if (op->microbatches == 0 || op->microbatches != d->added_count)
		return "an inner step is of another number of microbatches than the accumulator holds";
	for (uint32_t e = 0; e < CLUSTER_ELEMENTS; e++)
		d->drift[e] += d->added[e];
	d->drift_count += d->added_count;
	memset(d->added, 0, sizeof(d->added));
	d->added_count = 0;
	return NULL;
}

static const char *pseudo(struct drift *d, const struct skep_op *op)
{
	if (d->written || d->added_count > 0 || d->drift_count == 0 || op->microbatches != d->drift_count)
		return "its last pseudo-gradient is not merged, or it has not stepped on the rest, or the weight is wrong";
	memcpy(d->part, d->drift, sizeof(d->part));
	memset(d->drift, 0, sizeof(d->drift));
	d->drift_count = 0;
	d->written = true;
	return NULL;
}

static const char *step(struct drift *d, const struct skep_op *op)
{
	bool idle = d->added_count + d->drift_count == 0 && !d->written;
	if (op->update == SKEP_OUTER_UPDATE_OWN ? !d->written : (op->update == SKEP_OUTER_UPDATE_FRESH) != idle)
		return "it takes the outer update of another worker for its own, or the other way round, or drops what it did";
	if (op->update != SKEP_OUTER_UPDATE_OTHER)
		d->base = op->round + 1;
	d->written = d->written && op->update != SKEP_OUTER_UPDATE_OWN;
	return NULL;
}

const char *device_drift(struct drift *d, const struct skep_op *op)
{
	switch (op->kind) {
	case SKEP_OP_BACKWARD:
		return backward(d, op);
	case SKEP_OP_INNER_STEP:
		return inner(d, op);
	case SKEP_OP_PSEUDO_GRAD:
		return pseudo(d, op);
	case SKEP_OP_STEP:
		return step(d, op);
	case SKEP_OP_PACK_PART:
	case SKEP_OP_UNPACK_PART:
		return d->written || op->microbatches == 0 ? NULL : "it brings a pseudo-gradient that is not there";
	case SKEP_OP_COPY_GRAD:
		return d->written ? NULL : "it takes a pseudo-gradient that is not there";
	default:
		return NULL;
	}
}

/* ---- the weather ------------------------------------------------------------------------------------------------- */

/* A third wait for their own merges, in a third parts are gathered. What does not go with it scenarios refuse. */
void weather_merges(struct skep_plan *plan, uint64_t random)
{
	static const uint8_t gathers[] = {SKEP_COLLECTIVE_BUTTERFLY, SKEP_COLLECTIVE_ALL_TO_ALL,
		SKEP_COLLECTIVE_PARAMETER_SERVER, SKEP_COLLECTIVE_BUTTERFLY};
	plan->async.on = plan->delayed = true;
	plan->inner.fixed = false;
	plan->async.waits = random % 3 == 0;
	plan->reduction.gather = random % 3 == 1;
	plan->async.group_size = plan->reduction.gather ? 2 + (uint32_t)(random >> 8) % 5 : 0;
	plan->reduction.collective = plan->reduction.gather ? gathers[random >> 40 & 3] : SKEP_COLLECTIVE_BROADCAST;
	plan->on_loss = SKEP_ON_LOSS_REPORT;
	plan->inner.fragments = plan->inner.cycle = plan->inner.overlap = plan->inner.deadline = 0;
	plan->clip = false;
}

/* ---- the books --------------------------------------------------------------------------------------------------- */

void merge_read(struct ledger *ledger, struct skep_peer who, const struct skep_op *op, const struct effect *effect)
{
	struct holder *holder = books_holder(ledger, &ledger->round[op->round].cell[op->stage], who);
	uint32_t lacked = op->version - effect->version;
	if (op->kind == SKEP_OP_BACKWARD)
		holder->version[op->microbatch] = op->round - lacked; /* as books_staleness() takes it */
	if (effect->version > op->version)
		verdict_break(ledger->verdict, "I11", op->round, op->stage, op->microbatch,
			"worker %u works on what version %u has become, and its newest is %u", who.index,
			effect->version, op->version);
}

static struct merged *merged_at(struct ledger *ledger, uint32_t stage, uint32_t version)
{
	return &ledger->merged[stage][version % MERGES_KEPT];
}

/* The directory says what is in the merge that it makes final in this step. */
void merge_noted(struct ledger *ledger, const struct skep_note *note)
{
	if (!books_valid(ledger, "a note", note->round, note->stage, 0) || ledger->round[note->round].closed) {
		verdict_break(ledger->verdict, "I1", note->round, note->stage, ANY, "what is closed is merged");
		return;
	}
	struct cell *cell = &ledger->round[note->round].cell[note->stage];
	struct holder *holder = books_holder(ledger, cell, note->peer);
	struct merged *next = merged_at(ledger, note->stage, ledger->merges[note->stage]);
	if (ledger->merging[note->stage] == 0)
		*next = (struct merged){.parts = 0};
	next->parts += next->by[note->peer.index] == 0;
	next->by[note->peer.index] = (uint16_t)note->peer.epoch;
	if (!books_seated(ledger, note->peer, note->stage, note->round) ||
		(next->parts > 1 && !ledger->plan->reduction.gather))
		verdict_break(ledger->verdict, "I1", note->round, note->stage, ANY,
			"worker %u (epoch %u) merges, and is fenced, or not of this stage, or another one does",
			note->peer.index, note->peer.epoch);
	for (uint32_t i = 0; i < 64; i++) {
		uint32_t m = note->microbatch + i;
		if (!(note->bits >> i & 1))
			continue;
		if (m >= ledger->capacity || !bit(holder->added, m) || bit(cell->merged, m) || bit(cell->lost, m)) {
			verdict_break(ledger->verdict, "I1", note->round, note->stage, m,
				"microbatch %u is merged by worker %u, which did not add it, or a second time, or lost",
				m, note->peer.index);
			return;
		}
		set_bit(cell->merged, m);
		set_bit(holder->merged, m);
		for (uint32_t e = 0; e < CLUSTER_ELEMENTS; e++)
			next->sum[e] += symbol_gradient(note->round, 0, note->stage, m, e);
		next->count++;
	}
	ledger->merging[note->stage] = next->count;
	cell->merged_before = ledger->merges[note->stage] + 1;
}

/* The first COMMIT of a merge closes its books; the others are to other members. */
void merge_committed(struct ledger *ledger, const struct skep_message *m)
{
	uint32_t stage = m->stage;
	if (m->round == ledger->merges[stage] && ledger->merging[stage] > 0) {
		ledger->merges[stage]++;
		ledger->merging[stage] = 0;
	}
	const struct merged *merged = merged_at(ledger, stage, m->round);
	if (m->round >= ledger->merges[stage] || m->u.commit.microbatches != merged->count)
		verdict_break(ledger->verdict, "I1", m->round, stage, ANY,
			"merge %u of stage %u is said to have %u microbatches, and has %u, of %u merges", m->round,
			stage, m->u.commit.microbatches, merged->count, ledger->merges[stage]);
}

/* All that hold a version hold the same; version v is that behind merge v - 1. */
static void check_parameters(
	struct ledger *ledger, struct skep_peer who, uint32_t version, uint32_t stage, const struct effect *effect)
{
	struct merged *merged = version > 0 ? merged_at(ledger, stage, version - 1) : NULL;
	if (version + MERGES_KEPT / 2 < ledger->merges[stage] || version > ledger->merges[stage])
		return; /* one that is fenced and has not heard */
	if (ledger->restarted[stage] && !books_member(ledger, who, stage, ledger->rounds_closed + 2))
		return; /* it may hold what was lost */
	for (uint32_t e = 0; e < ledger->plan->stage[stage].parameters; e++) {
		if (!(effect->known >> e & 1))
			continue;
		if (merged && !(merged->known >> e & 1))
			merged->parameter[e] = effect->parameter[e];
		if (merged)
			merged->known |= 1u << e;
		if (effect->parameter[e] != (merged ? merged->parameter[e] : books_drawn(ledger, stage, e)))
			verdict_break(ledger->verdict, "I3", version, stage, ANY,
				"worker %u holds another element %u of stage %u, version %u, than its peers", who.index,
				e, stage, version);
	}
	struct membership *membership = &ledger->membership[who.index];
	if (membership->peer.epoch != who.epoch)
		return;
	membership->known = effect->known;
	membership->version = version;
}

static void stepped(struct ledger *ledger, struct skep_peer who, const struct skep_op *op, const struct effect *effect)
{
	const struct merged *merged = merged_at(ledger, op->stage, op->round);
	bool own = merged->by[who.index] == who.epoch, same = books_same_sum(ledger, op, effect->applied, merged->sum);
	if (op->round >= ledger->merges[op->stage])
		verdict_break(ledger->verdict, "I1b", op->round, op->stage, ANY,
			"worker %u makes the step of merge %u, which is not final", who.index, op->round);
	else if (op->microbatches != merged->count || !same || own != (op->update == SKEP_OUTER_UPDATE_OWN))
		verdict_break(ledger->verdict, "I1b", op->round, op->stage, ANY,
			"worker %u applies another sum than that of merge %u, of %u microbatches by %u workers",
			who.index, op->round, merged->count, merged->parts);
	check_parameters(ledger, who, op->round + 1, op->stage, effect);
}

/* What is kept under the number of a round has all that was merged of rounds before it. */
static void kept(struct ledger *ledger, struct skep_peer who, const struct skep_op *op, const struct effect *effect)
{
	struct kept *kept = &ledger->checkpoint[op->stage][op->round];
	for (uint32_t r = 0; r < op->round && books_seated(ledger, who, op->stage, op->round); r++)
		if (ledger->round[r].cell[op->stage].merged_before > op->version)
			verdict_break(ledger->verdict, "I13", op->round, op->stage, ANY,
				"worker %u keeps version %u for round %u, and merge %u has something of round %u",
				who.index, op->version, op->round, ledger->round[r].cell[op->stage].merged_before - 1,
				r);
	check_parameters(ledger, who, op->version, op->stage, effect);
	kept->is = true;
	memcpy(kept->parameter, effect->parameter, sizeof(kept->parameter));
}

bool merge_did(struct ledger *ledger, struct skep_peer who, const struct skep_op *op, const struct effect *effect)
{
	switch (op->kind) {
	case SKEP_OP_STEP:
		stepped(ledger, who, op, effect);
		return true;
	case SKEP_OP_LOAD:
		check_parameters(ledger, who, effect->version, op->stage, effect);
		return true;
	case SKEP_OP_CHECKPOINT:
		kept(ledger, who, op, effect);
		return true;
	case SKEP_OP_RESTORE: /* ledger.c looks at what it restores */
		ledger->membership[who.index].version = op->version;
		return false;
	default:
		return op->kind == SKEP_OP_INNER_STEP || op->kind == SKEP_OP_PSEUDO_GRAD || skep_op_reduces(op->kind);
	}
}

void merge_restarted(struct ledger *ledger, uint32_t stage)
{
	if (ledger->merges[stage] > 0)
		merged_at(ledger, stage, ledger->merges[stage] - 1)->known = 0;
	ledger->merging[stage] = 0;
}

/* What is merged was said to be counted by its worker, and by whom else it was counted does not matter. */
void merge_closes(struct ledger *ledger, uint32_t round, uint32_t stage)
{
	const struct cell *cell = &ledger->round[round].cell[stage];
	for (uint32_t h = cell->first_holder; h != 0; h = ledger->holder[h].next) {
		const struct holder *holder = &ledger->holder[h];
		for (uint32_t w = 0; w < ledger->words; w++)
			if (holder->merged[w] & ~holder->noted[w])
				verdict_break(ledger->verdict, "I1", round, stage, ANY,
					"the COUNTED notes of worker %u are not what it merged", holder->peer.index);
	}
	if (cell->counted != books_bits(ledger, cell->merged))
		verdict_break(ledger->verdict, "I1", round, stage, ANY, "%u are said to be counted, and %u are merged",
			cell->counted, books_bits(ledger, cell->merged));
}

/* A worker that is still trusted at the end has made the step of every outer update. */
void merge_ends(struct ledger *ledger, const uint32_t *epoch)
{
	for (uint32_t w = 0; w < ledger->plan->workers; w++) {
		const struct membership *membership = &ledger->membership[w];
		if (membership->in && epoch[w] == membership->peer.epoch &&
			membership->version != ledger->merges[membership->stage])
			verdict_break(ledger->verdict, "I3", ANY, membership->stage, ANY,
				"worker %u ends the run with version %u of its stage, and there were %u merges", w,
				membership->version, ledger->merges[membership->stage]);
	}
}
