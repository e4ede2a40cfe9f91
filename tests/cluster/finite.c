/* SPDX-License-Identifier: Apache-2.0
 *
 * finite.c - the referee on numbers as such: is the norm that a STEP is told that of all gradients together, was what is not
 * finite told and kept from others, and is the last state of each stage kept when the run is over.
 *
 * The squares of a virtual stage's sum are a hash of it here (symbol_squares()), so they are right exactly when the sum is.
 */
#include "tests/cluster/ledger_internal.h"

double symbol_squares(const struct skep_plan *plan, uint32_t vstage, uint32_t elements, const uint64_t *sum)
{
	uint64_t hash = 0;
	uint32_t mask = device_vstage_mask(plan, vstage) & elements;
	for (uint32_t e = 0; e < plan->stage[vstage % plan->stages].parameters; e++)
		if (mask >> e & 1)
			hash = mix64(hash + sum[e]);
	if (!(mask & device_chunk_mask(plan, vstage % plan->stages, 0, 1)))
		return 0;
	return 1 + (double)(hash % (1u << 20)) * (double)(UINT64_C(1) << (hash >> 59));
}

/* As core/square.h describes them. */
static double decoded(uint64_t square)
{
	int exponent = (int)(square >> 48) - 32768 - 48;
	double value = (double)(square & 0xffffffffffffu);
	for (; exponent > 0; exponent--)
		value *= 2;
	for (; exponent < 0 && value > 0; exponent++)
		value /= 2;
	return value;
}

uint64_t symbol_square(double squares)
{
	uint64_t exponent = 32768 + 48;
	if (squares <= 0)
		return 0;
	for (; squares < (double)(UINT64_C(1) << 47); exponent--)
		squares *= 2;
	for (; squares >= (double)(UINT64_C(1) << 48); exponent++)
		squares /= 2;
	return exponent << 48 | (uint64_t)squares;
}

/* All that was summed, by all virtual stages of the round. Is something of it not committed yet? */
static bool norm_of(struct ledger *ledger, uint32_t round, double *ret)
{
	*ret = 0;
	for (uint32_t vstage = 0; vstage < skep_plan_vstages(ledger->plan); vstage++) {
		const struct cell *cell = &ledger->round[round].cell[vstage];
		uint64_t sum[CLUSTER_ELEMENTS];
		double counted = books_counted(ledger, cell);
		if (!cell->committed)
			return false;
		books_expected_sum(ledger, round, vstage, sum);
		*ret += counted > 0 ? sharded_squares(ledger->plan, vstage, cell->members, sum) / (counted * counted)
		                    : 0;
	}
	*ret += tied_products(ledger, round);
	return true;
}

void sound_step(struct ledger *ledger, struct skep_peer who, const struct skep_op *op)
{
	double norm, told = decoded(op->square);
	if (!ledger->plan->clip || ledger->verdict->broken)
		return;
	if (!norm_of(ledger, op->round, &norm))
		verdict_break(ledger->verdict, "I17", op->round, op->stage, ANY,
			"worker %u steps before all stages are committed", who.index);
	else if (told > norm * (1 + 1e-8) || told < norm * (1 - 1e-8))
		verdict_break(ledger->verdict, "I17", op->round, op->stage, ANY,
			"worker %u is told %.12g as the square of the norm, not %.12g", who.index, told, norm);
}

void ledger_ailed(struct ledger *ledger, struct skep_peer who, const struct skep_op *op, uint8_t kind)
{
	if (ledger->ailments == sizeof ledger->ailment / sizeof ledger->ailment[0])
		return;
	ledger->ailment[ledger->ailments++] =
		(struct ailment){who, op->round, op->microbatch, op->stage, kind, op->kind != SKEP_OP_FORWARD, false};
}

static struct ailment *find(
	struct ledger *ledger, struct skep_peer who, uint32_t round, uint32_t stage, uint32_t microbatch, uint8_t kind)
{
	for (uint32_t i = 0; i < ledger->ailments; i++) {
		struct ailment *a = &ledger->ailment[i];
		if (a->who.index == who.index && a->who.epoch == who.epoch && a->round == round && a->stage == stage &&
			a->microbatch == microbatch && a->fault == kind)
			return a;
	}
	return NULL;
}

static struct ailment *forward(
	struct ledger *ledger, struct skep_peer who, uint32_t round, uint32_t vstage, uint32_t microbatch)
{
	struct ailment *ailment = find(ledger, who, round, vstage, microbatch, SKEP_FAULT_ACTIVATIONS);
	return ailment ? ailment : find(ledger, who, round, vstage, microbatch, SKEP_FAULT_LOSS);
}

void sound_forward(struct ledger *ledger, struct skep_peer who, const struct skep_op *op)
{
	struct ailment *ailment = forward(ledger, who, op->round, op->stage, op->microbatch);
	if (ailment && ailment->ended)
		ailment->redone = true;
	else if (ailment)
		ailment->ended = true;
}

/* What FORWARD made is not finite: it goes nowhere, and nothing is added for it. */
void sound_passed_on(struct ledger *ledger, struct skep_peer who, uint32_t round, uint32_t vstage, uint32_t microbatch)
{
	const struct ailment *ailment = forward(ledger, who, round, vstage, microbatch);
	if (ailment && !ailment->redone)
		verdict_break(ledger->verdict, "I18", round, vstage, microbatch,
			"worker %u goes on with a microbatch that it found to be not finite", who.index);
}

void sound_diverged(struct ledger *ledger, const struct skep_note *note)
{
	ledger->diverged =
		find(ledger, note->peer, note->round, note->stage, note->microbatch, note->fault.kind) != NULL;
	if (!ledger->diverged)
		verdict_break(ledger->verdict, "I18", note->round, note->stage, note->microbatch,
			"worker %u is said to have seen what is not finite, and has not", note->peer.index);
}

void sound_unkept(struct ledger *ledger, const struct skep_note *note)
{
	if (!find(ledger, note->peer, note->round, note->stage, 0, SKEP_FAULT_CHECKPOINT_FAILED))
		verdict_break(ledger->verdict, "I13", note->round, note->stage, ANY,
			"worker %u is said to have kept nothing, and has not tried", note->peer.index);
	ledger->unkept[note->stage] = note->round;
}

/* A run that keeps states keeps the last ones, or has tried. */
void sound_end(struct ledger *ledger)
{
	const struct skep_plan *plan = ledger->plan;
	bool open = pipes_stream(ledger) && ledger->rounds_closed < plan->rounds;
	for (uint32_t s = 0; s < plan->stages && plan->checkpoint_every > 0 && !open; s++)
		if (ledger->kept[s] != ledger->rounds_closed && ledger->unkept[s] != ledger->rounds_closed)
			verdict_break(ledger->verdict, "I13", ledger->rounds_closed, s, ANY,
				"the run ends after round %u, the newest state of stage %u that is kept is of %u",
				ledger->rounds_closed, s, ledger->kept[s]);
}
