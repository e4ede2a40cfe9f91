/* SPDX-License-Identifier: Apache-2.0
 *
 * keeping.c - the referee on states that are kept (I13): what a checkpoint holds, which one a stage is restored from, and what
 * the directory says of it.
 */
#include "tests/cluster/ledger_internal.h"

#include <string.h>

/* What is kept is what all hold of that version. */
void keeping_kept(struct ledger *ledger, struct skep_peer who, const struct skep_op *op, const struct effect *effect)
{
	struct kept *kept = &ledger->checkpoint[op->stage][op->round];
	books_check_parameters(ledger, who, op->round, op->stage, effect);
	kept->is = true;
	kept->by |= UINT64_C(1) << who.index;
	memcpy(kept->parameter, effect->parameter, sizeof(kept->parameter));
}

/* Only of a stage that is empty, from the newest version that is kept, or as at the start. */
void keeping_restored(
	struct ledger *ledger, struct skep_peer who, const struct skep_op *op, const struct effect *effect)
{
	const struct kept *kept = &ledger->checkpoint[op->stage][op->checkpoint];
	struct membership *membership = &ledger->membership[who.index];
	bool right = op->checkpoint == ledger->kept[op->stage];
	for (uint32_t e = 0; right && e < ledger->plan->stage[op->stage].parameters; e++)
		right = effect->parameter[e] ==
		        (op->checkpoint > 0 ? kept->parameter[e] : books_drawn(ledger, op->stage, e));
	if (membership->peer.epoch != who.epoch || !membership->admitted)
		return; /* fenced meanwhile */
	if (!ledger->empty[op->stage] || !right)
		verdict_break(ledger->verdict, "I13", op->round, op->stage, ANY,
			"worker %u restores version %u of stage %u, which is %sempty; %u was kept%s", who.index,
			op->checkpoint, op->stage, ledger->empty[op->stage] ? "" : "not ", ledger->kept[op->stage],
			right ? "" : ", or it is not what was kept");
	membership->known = effect->known;
	ledger->restored[op->stage] = op->checkpoint + 1;
}

/* Of shards each member keeps its own, and a version is kept when all have. */
static bool all_have(const struct ledger *ledger, uint32_t stage, uint32_t version)
{
	uint64_t by = ledger->checkpoint[stage][version].by;
	for (uint32_t w = 0; ledger->plan->sharded && w < ledger->plan->workers; w++)
		if (ledger->plan->first_stage_of[w] == stage && !(by >> w & 1))
			return false;
	return ledger->checkpoint[stage][version].is;
}

void keeping_noted(struct ledger *ledger, const struct skep_note *note)
{
	if (note->round <= ledger->kept[note->stage] || note->round > ledger->plan->rounds ||
		!all_have(ledger, note->stage, note->round) || ledger->plan->checkpoint_every == 0 ||
		(note->round % ledger->plan->checkpoint_every != 0 && note->round != ledger->plan->rounds &&
			!((ledger_target_reached(ledger) || ledger_is_late(ledger)) &&
				note->round == ledger->rounds_closed)) ||
		!ledger->round[note->round - 1].cell[note->stage].committed) /* what is in it may be lost yet */
		verdict_break(ledger->verdict, "I13", note->round, note->stage, ANY,
			"version %u of stage %u is said to be kept, and is not, or is not due", note->round,
			note->stage);
	else {
		uint32_t *whole = ledger->whole[note->stage];
		whole[2] = whole[1];
		whole[1] = whole[0];
		whole[0] = ledger->kept[note->stage] = note->round;
	}
}
