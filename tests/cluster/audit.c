/* SPDX-License-Identifier: Apache-2.0
 *
 * audit.c - balances the books: at the end of a round, and of the run.
 */
#include "tests/cluster/ledger_internal.h"

#include <string.h>

/* ---- the end of a round ---------------------------------------------------------------------------------------- */

static void close_microbatch(struct ledger *ledger, uint32_t r, uint32_t s, uint32_t m)
{
	struct cell *cell = &ledger->round[r].cell[s];
	uint32_t times = 0;
	for (uint32_t h = cell->first_holder; h != 0; h = ledger->holder[h].next)
		times += ledger->plan->async.on ? bit(ledger->holder[h].merged, m)
		                                : ledger->holder[h].member && bit(ledger->holder[h].added, m);
	bool lost = bit(cell->lost, m);
	if (times + lost == 1)
		return;
	const char *how = times > 1 ? "counted by several members"
	                  : lost    ? "both counted and lost"
	                            : "neither counted nor lost";
	verdict_break(ledger->verdict, "I1", r, s, m, "microbatch %u in stage %u of round %u is %s", m, s, r, how);
}

static void close_stage(struct ledger *ledger, uint32_t r, uint32_t s)
{
	struct round *round = &ledger->round[r];
	struct cell *cell = &round->cell[s];
	uint32_t quota = inner_quota(ledger->plan, r);
	if (!cell->committed)
		verdict_break(ledger->verdict, "I1", r, s, ANY, "the round closes before stage %u is committed", s);
	for (uint32_t m = 0; m < ledger->capacity; m++)
		if (bit(round->issued, m))
			close_microbatch(ledger, r, s, m);
	if (ledger->plan->async.on) {
		merge_closes(ledger, r, s);
		return;
	}
	if (cell->counted != books_counted(ledger, cell) || cell->lost_count != books_bits(ledger, cell->lost) ||
		cell->counted + cell->lost_count != round->issued_count)
		verdict_break(ledger->verdict, "I1", r, s, ANY,
			"stage %u: %u counted + %u lost are noted, %u issued, %u counted, %u lost are seen", s,
			cell->counted, cell->lost_count, round->issued_count, books_counted(ledger, cell),
			books_bits(ledger, cell->lost));
	if (ledger->plan->on_loss == SKEP_ON_LOSS_RERUN && (cell->lost_count > 0 || round->issued_count != quota))
		verdict_break(ledger->verdict, "I12", r, s, ANY, "%u of %u microbatches were lost, %u were asked for",
			cell->lost_count, round->issued_count, quota);
	for (uint32_t h = cell->first_holder; h != 0; h = ledger->holder[h].next) {
		const struct holder *holder = &ledger->holder[h];
		if (holder->member && memcmp(holder->added, holder->noted, ledger->words * sizeof(uint64_t)) != 0)
			verdict_break(ledger->verdict, "I1", r, s, ANY,
				"the COUNTED notes of member %u are not what it added", holder->peer.index);
	}
	for (uint32_t w = 0; w < ledger->plan->workers; w++)
		if (books_member(ledger, ledger->membership[w].peer, s % ledger->plan->stages, r) &&
			!books_holder(ledger, cell, ledger->membership[w].peer)->member)
			verdict_break(ledger->verdict, "I3", r, s, ANY,
				"worker %u serves or enters stage %u but is left out of the committed reduction", w, s);
}

/* The mean is rounded somehow, so one unit of difference is no lie. */
static void close_loss(struct ledger *ledger, uint32_t r)
{
	struct round *round = &ledger->round[r];
	uint32_t last = skep_plan_vstages(ledger->plan) - 1, counted = 0;
	int64_t sum = 0;
	for (uint32_t m = 0; m < ledger->capacity; m++) {
		if (bit(round->issued, m) && !bit(round->cell[last].lost, m)) {
			sum += round->loss[m];
			counted++;
		}
	}
	if (counted == 0)
		return;
	int64_t difference = round->loss_nano - sum / counted;
	if (!round->has_loss || difference < -1 || difference > 1)
		verdict_break(ledger->verdict, "I1b", r, last, ANY, "the mean loss is noted as %lld, but is %lld",
			(long long)round->loss_nano, (long long)(sum / counted));
}

void audit_round(struct ledger *ledger, uint32_t round)
{
	for (uint32_t s = 0; s < skep_plan_vstages(ledger->plan) && !ledger->verdict->broken; s++)
		close_stage(ledger, round, s);
	close_loss(ledger, round);
}

/* ---- the end of a run ------------------------------------------------------------------------------------------ */

/* A worker that is still trusted at the end has made every step that it was a member of. */
static void end_steps(struct ledger *ledger, const uint32_t *epoch)
{
	for (uint32_t r = 0; r < ledger->rounds_closed; r++) {
		for (uint32_t s = 0; s < skep_plan_vstages(ledger->plan); s++) {
			const struct cell *cell = &ledger->round[r].cell[s];
			for (uint32_t h = cell->first_holder; h != 0; h = ledger->holder[h].next) {
				const struct holder *holder = &ledger->holder[h];
				bool here = epoch[holder->peer.index] == holder->peer.epoch;
				if (holder->member && !holder->stepped && here &&
					books_seated(ledger, holder->peer, s % ledger->plan->stages, r))
					verdict_break(ledger->verdict, "I3", r, s, ANY,
						"worker %u ends the run without the step of round %u",
						holder->peer.index, r);
			}
		}
	}
}

void ledger_end(struct ledger *ledger, enum skep_outcome outcome, const uint32_t *epoch)
{
	bool emptied = false, empty = books_any_empty(ledger);
	bool failed = outcome == SKEP_FAILED,
	     hopeless = empty || pipes_all_broken(ledger) || losses_any_short(ledger) || ledger->shard_lost;
	for (uint32_t s = 0; s < ledger->plan->stages; s++)
		emptied |= !books_stage_has_worker(ledger, s) && !ledger->empty[s];
	if (!ledger->stopped || (failed ? !hopeless && !ledger->diverged : empty))
		verdict_break(ledger->verdict, "I7", ANY, ANY, ANY,
			"the run ended %s, a stage is %sempty, %s STOPPED note", failed ? "failed" : "well",
			empty ? "" : "not ", ledger->stopped ? "with a" : "without a");
	if (emptied && outcome == SKEP_DONE)
		verdict_break(ledger->verdict, "I7", ANY, ANY, ANY, "a stage lost its last worker without a note");
	if (outcome == SKEP_DONE) {
		end_steps(ledger, epoch);
		sound_end(ledger);
		sharded_end(ledger, epoch);
		if (ledger->plan->async.on)
			merge_ends(ledger, epoch);
	}
}

struct ledger_totals ledger_totals(const struct ledger *ledger)
{
	struct ledger_totals totals = {.rounds = ledger->rounds_closed - ledger->rounds_before,
		.undone = ledger->undone,
		.given_back = ledger->given_back};
	for (uint32_t r = 0; r < ledger->rounds_closed; r++) {
		totals.issued += ledger->round[r].issued_count;
		for (uint32_t s = 0; s < skep_plan_vstages(ledger->plan); s++) {
			totals.counted += ledger->round[r].cell[s].counted;
			totals.lost += ledger->round[r].cell[s].lost_count;
		}
	}
	return totals;
}
