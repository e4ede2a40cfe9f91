/* SPDX-License-Identifier: Apache-2.0
 *
 * rounds.c - the directory's rounds: grants, reductions, commit.
 *
 * Microbatches are numbered from 0 in each round and granted to first-stage workers, a few ahead of what they have in
 * flight, one more for each that comes back: a faster worker issues more. One that was abandoned is replaced by a
 * fresh one. When enough have come back every stage reduces; a stage commits when all members of one attempt have told
 * which microbatches their sum holds. What was issued and is in no member's sum is lost, and a note says so.
 *
 * Grants, owners and what is outstanding are of the open round; attempts, members, tallies and counters of the round that is
 * being reduced. With delayed updates these are two rounds most of the time; else they are the same. Rounds without a flush
 * are another matter: stream.c. What is judged between two rounds: validate.c.
 */
#include <assert.h>
#include <string.h>

#include "core/bits.h"
#include "core/collective.h"
#include "core/directory.h"

static uint32_t *owners(struct directory *d)
{
	return skep_at(d, d->owner_at);
}

/* Who counted each microbatch of the round in this slice of the model (a stage, unless pipelines are interleaved), by the tallies
 * of the current attempt; SKEP_NO_INDEX: nobody. */
uint32_t *rounds_counters(struct directory *d, uint32_t slice)
{
	return (uint32_t *)skep_at(d, d->counter_at) + (size_t)slice * d->capacity;
}

/* The same of the open round, or of the one that is being settled beside it: who merged it, or has told of it. */
uint32_t *rounds_counters_of(struct directory *d, const struct skep_plan *plan, uint32_t round, uint32_t stage)
{
	return rounds_counters(d, (plan->async && round & 1 ? plan->stages : 0) + stage);
}

/* ---- grants --------------------------------------------------------------------------------------------------- */

/* skep_plan_credit(), which looks at all workers to count pipelines. */
static uint32_t credit(const struct directory *d, const struct skep_plan *plan)
{
	return d->pipelines > 0 ? plan->microbatches / d->pipelines : skep_plan_credit(plan);
}

/* Half of what the smallest stage can hold: random wiring is uneven, and what overflows is work thrown away. */
uint64_t rounds_limit(struct directory *d, const struct skep_plan *plan)
{
	if (d->pipelines > 0)
		return plan->microbatches;
	uint32_t fewest = UINT32_MAX;
	for (uint32_t stage = 0; stage < plan->stages; stage++) {
		uint32_t serving = directory_stage(d, stage)->serving;
		fewest = serving < fewest ? serving : fewest;
	}
	uint64_t limit = (uint64_t)fewest * ((d->inflight_capacity + 1) / 2);
	return limit > 0 ? limit : 1;
}

/* Who issues microbatches: those of the first stage that stay, or all if nobody does. */
static uint32_t owner_count(struct directory *d)
{
	if (d->pipelines > 0)
		return fixed_owner_count(d);
	const struct stage_state *first = directory_stage(d, 0);
	return first->leaving < first->serving ? first->serving - first->leaving : first->serving;
}

static bool is_owner(struct directory *d, const struct row *row)
{
	if (d->pipelines > 0)
		return fixed_is_owner(d, row);
	const struct stage_state *first = directory_stage(d, 0);
	return row->standing == STANDING_SERVING && row->stage == 0 &&
	       (!row->leaving || first->leaving == first->serving);
}

void rounds_send_grant(
	struct directory *d, struct step *step, uint32_t worker, uint32_t first, uint32_t count, struct skep_span span)
{
	struct skep_message message = skep_message_to(&d->node, SKEP_MESSAGE_GRANT, directory_worker(d, worker));
	message.round = d->round;
	message.microbatch = first;
	message.attempt = d->pass;
	message.span = span;
	message.u.grant.count = count;
	skep_emit_send(step, &d->node, &message);
	d->outstanding += count;
	directory_row(d, worker)->outstanding += count;
}

static void grant(struct directory *d, struct step *step, uint32_t worker, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		owners(d)[d->issued + i] = worker;
	skep_emit_note(step, &d->node,
		(struct skep_note){.kind = SKEP_NOTE_ISSUED,
			.round = d->round,
			.microbatch = d->issued,
			.peer = directory_worker(d, worker),
			.value = count});
	rounds_send_grant(
		d, step, worker, d->issued, count, (struct skep_span){0, (uint16_t)(skep_plan_slices(step->plan) - 1)});
	d->issued += count;
}

static void grant_again(
	struct directory *d, struct step *step, uint32_t worker, uint32_t microbatch, struct skep_span span)
{
	owners(d)[microbatch] = worker;
	skep_emit_note(step, &d->node,
		(struct skep_note){.kind = SKEP_NOTE_RERUN,
			.round = d->round,
			.microbatch = microbatch,
			.peer = directory_worker(d, worker),
			.value = (int64_t)d->pass << 32 | (int64_t)span.first << 16 | span.last});
	rounds_send_grant(d, step, worker, microbatch, 1, span);
}

/* How many more may be granted now for the first time. */
static uint32_t wanted(struct directory *d, const struct skep_plan *plan)
{
	if (plan->on_loss == SKEP_ON_LOSS_RERUN)
		return plan->microbatches - d->issued;
	uint32_t outstanding = d->outstanding - d->validation.outstanding;
	if (d->cut || d->finished + outstanding >= plan->microbatches)
		return 0;
	uint32_t want = plan->microbatches - d->finished - outstanding;
	uint32_t numbers = skep_round_capacity(plan) - d->issued;
	return want < numbers ? want : numbers;
}

static uint32_t least_loaded_owner(struct directory *d, const struct skep_plan *plan)
{
	uint32_t best = SKEP_NO_INDEX;
	for (uint32_t i = 0; i < plan->workers; i++) {
		const struct row *row = directory_row(d, i);
		if (is_owner(d, row) && row->outstanding < credit(d, plan) &&
			(best == SKEP_NO_INDEX || row->outstanding < directory_row(d, best)->outstanding))
			best = i;
	}
	return best;
}

uint32_t rounds_choose_owner(struct directory *d, const struct skep_plan *plan, uint32_t preferred)
{
	const struct row *row = preferred == SKEP_NO_INDEX ? NULL : directory_row(d, preferred);
	bool fits = row && is_owner(d, row) && row->outstanding < credit(d, plan);
	uint32_t worker = fits ? preferred : d->full ? SKEP_NO_INDEX : least_loaded_owner(d, plan);
	d->full = worker == SKEP_NO_INDEX || (d->full && fits);
	return worker;
}

void rounds_reduce(struct directory *d, struct step *step)
{
	d->phase = PHASE_REDUCING;
	d->reduced = (struct reduced){.on = true, .round = d->round, .issued = d->issued};
	for (uint32_t stage = 0; stage < step->plan->stages; stage++) {
		directory_stage(d, stage)->attempt = d->pass > 0 ? d->pass : d->void_attempt;
		directory_stage(d, stage)->committed = false;
	}
	if (d->async)
		merges_settle(d, step);
	for (uint32_t stage = 0; stage < step->plan->stages && d->reduced.on && !d->async; stage++)
		attempt_begin(d, step, stage, true);
	if (step->plan->clip && d->reduced.on) /* if there is nobody to tell */
		rounds_all_told(d, step);
	bool overlaps = step->plan->delayed && d->reduced.on && d->round + 1 < step->plan->rounds;
	if (overlaps && !edge_due(d, step->plan)) {
		d->round++;
		rounds_open(d, step);
	} else if (d->async) {
		merges_press(d, step);
	}
}

/* Replaces what has come back or was lost, first by `preferred`; ends the round when nothing is left to wait for. */
static void refill(struct directory *d, struct step *step, uint32_t preferred)
{
	uint64_t limit = rounds_limit(d, step->plan);
	struct skep_span span;
	uint32_t again = 0;
	if (d->async)
		validate_grant(d, step, preferred);
	bool rerun = d->pass > 0 && rerun_next(d, step->plan, &again, &span);
	for (uint32_t i = 0; i < GRANTS_PER_REFILL && (rerun || wanted(d, step->plan) > 0) && d->outstanding < limit;
		i++) {
		uint32_t worker = rounds_choose_owner(d, step->plan, preferred);
		if (worker == SKEP_NO_INDEX)
			break;
		if (rerun)
			grant_again(d, step, worker, again, span);
		else
			grant(d, step, worker, 1);
		if (rerun) {
			d->rerun_microbatch = again + 1;
			rerun = rerun_next(d, step->plan, &again, &span);
		}
	}
	if (d->async && (d->finished >= step->plan->microbatches / 2 || d->outstanding + wanted(d, step->plan) == 0))
		merges_press(d, step);
	if (d->outstanding > 0 || wanted(d, step->plan) > 0 || rerun || d->reduced.on || d->ending ||
		d->validation.beside)
		return;
	if (d->promised)
		promise_complete(d, step);
	else if (step->plan->on_loss == SKEP_ON_LOSS_RERUN)
		rerun_count(d, step);
	else
		rounds_reduce(d, step);
}

void rounds_open(struct directory *d, struct step *step)
{
	const struct skep_plan *plan = step->plan;
	d->phase = PHASE_OPEN;
	if (skep_plan_streams(plan)) {
		stream_fill(d, step);
		return;
	}
	d->full = false;
	d->cut = rounds_nobody_can(d, step->plan);
	d->issued = d->finished = d->outstanding = d->pass = 0;
	if (d->async)
		merges_opened(d, plan);
	skep_emit_note(step, &d->node, (struct skep_note){.kind = SKEP_NOTE_ROUND_OPENED, .round = d->round});
	uint32_t owners_now = owner_count(d), nth = 0;
	uint64_t limit = rounds_limit(d, plan);
	for (uint32_t i = 0; i < plan->workers; i++) {
		struct row *row = directory_row(d, i);
		row->outstanding = 0;
		if (!is_owner(d, row) || d->cut)
			continue;
		uint64_t share = plan->microbatches / owners_now + (nth++ < plan->microbatches % owners_now);
		share = share < credit(d, plan) ? share : credit(d, plan);
		uint64_t room = limit - d->outstanding;
		share = share < room ? share : room;
		if (share > 0)
			grant(d, step, i, (uint32_t)share);
	}
	if (d->pipelines > 0)
		fixed_opened(d, step);
	promise_opened(d, step);
}

void rounds_on_finished(struct directory *d, struct step *step, const struct skep_message *message)
{
	uint32_t worker = message->from.index, microbatch = message->microbatch;
	if (skep_plan_streams(step->plan)) {
		stream_on_finished(d, step, message);
		return;
	}
	if (microbatch >= d->capacity) {
		validate_on_finished(d, step, message);
		if (d->async && d->phase == PHASE_OPEN)
			refill(d, step, worker);
		return;
	}
	if (d->phase != PHASE_OPEN || message->round != d->round || message->attempt != d->pass ||
		microbatch >= d->issued || owners(d)[microbatch] != worker)
		return; /* a duplicate, or too late */
	owners(d)[microbatch] = SKEP_NO_INDEX;
	d->outstanding--;
	directory_row(d, worker)->outstanding--;
	d->finished += message->u.finished.ok;
	if (!message->u.finished.ok) {
		promise_off(d);
		fixed_lift_barrier(d, step);
	}
	if (d->pipelines > 0 && !message->u.finished.ok)
		fixed_turn(d, step, directory_row(d, worker)->pipeline);
	refill(d, step, worker);
	d->full = d->full && directory_row(d, worker)->outstanding == credit(d, step->plan);
}

/* ---- reduction ------------------------------------------------------------------------------------------------ */

/* Notes for what was issued and is in no member's sum; returns how many. */
static uint32_t report_lost(struct directory *d, struct step *step, uint32_t slice)
{
	uint32_t lost = 0;
	for (uint32_t first = 0; first < d->reduced.issued; first += 64) {
		uint64_t missing = 0;
		for (uint32_t i = first; i < first + 64 && i < d->reduced.issued; i++) {
			if (rounds_counters_of(d, step->plan, d->reduced.round, slice)[i] == SKEP_NO_INDEX)
				missing |= (uint64_t)1 << (i - first);
		}
		if (missing == 0)
			continue;
		lost += skep_bits_count(missing);
		skep_emit_note(step, &d->node,
			(struct skep_note){.kind = SKEP_NOTE_LOST,
				.stage = (uint16_t)slice,
				.round = d->reduced.round,
				.microbatch = first,
				.value = (int64_t)missing});
	}
	return lost;
}

static void report_loss(struct directory *d, struct step *step, int64_t sum, uint32_t counted)
{
	if (counted == 0)
		return;
	int64_t mean = sum == INT64_MAX ? INT64_MAX : sum / counted;
	d->tried.points.last_nano = mean;
	d->tried.heard = d->reduced.round + 1;
	if (step->plan->validate_every == 0 &&
		!d->tried.on) /* else it is the newest validation's, or of one that may go */
		d->loss_nano = mean;
	skep_emit_note(
		step, &d->node, (struct skep_note){.kind = SKEP_NOTE_LOSS, .round = d->reduced.round, .value = mean});
}

void rounds_next(struct directory *d, struct step *step)
{
	edge_serve_late(d, step->plan);
	edge_pass(d, step);
	d->round++;
	rounds_open(d, step);
}

/* Goes on with the round that is open already, or opens the next one. When the run ends here, an open round is dropped: it
 * never closes, so nothing of it counts. */
static void close_round(struct directory *d, struct step *step)
{
	d->reduced.on = false;
	d->closed++;
	d->tried.held = d->tried.on; /* trial.c goes on when all candidates have come to this */
	if (d->tried.held)
		return;
	skep_emit_note(step, &d->node,
		(struct skep_note){.kind = SKEP_NOTE_ROUND_CLOSED,
			.round = d->reduced.round,
			.microbatch = d->reduced.issued + d->tried.beside});
	d->tried.beside = 0;
	rounds_go_on(d, step);
}

void rounds_go_on(struct directory *d, struct step *step)
{
	bool over = d->closed == step->plan->rounds || d->loss_nano <= step->plan->target_loss_nano;
	bool judged = skep_plan_validation_due(step->plan, d->closed), beside = judged && d->async && !over;
	if (judged && !beside)
		validate_begin(d, step, over);
	else if (over)
		rounds_end(d, step);
	else if (d->phase == PHASE_REDUCING)
		rounds_next(d, step);
	if (beside)
		validate_beside(d, step);
}

static void send_commit(
	struct directory *d, struct step *step, uint32_t slice, uint32_t worker, uint32_t counted, bool checkpoint)
{
	uint32_t stage = slice % step->plan->stages;
	struct skep_message message = skep_message_to(&d->node, SKEP_MESSAGE_COMMIT, directory_worker(d, worker));
	message.stage = (uint16_t)slice;
	message.round = d->reduced.round;
	message.attempt = directory_stage(d, stage)->attempt;
	message.u.commit.microbatches = counted;
	message.u.commit.checkpoint = checkpoint;
	message.u.commit.square = d->square;
	message.u.commit.tied = ties_counted(d, step->plan, slice);
	skep_emit_send(step, &d->node, &message);
}

uint32_t rounds_counted_by(struct directory *d, const struct skep_plan *plan, uint32_t slice, uint32_t worker)
{
	uint32_t counted = 0;
	if (skep_plan_laps(plan) == 1)
		return directory_row(d, worker)->tally_count;
	for (uint32_t i = 0; i < d->reduced.issued; i++)
		counted += rounds_counters(d, slice)[i] == worker;
	return counted;
}

uint32_t rounds_note_slice(struct directory *d, struct step *step, uint32_t slice)
{
	uint32_t total = 0;
	int64_t loss_sum = 0;
	for (uint32_t i = 0; i < step->plan->workers; i++) {
		struct row *row = directory_row(d, i);
		if (!row->member || row->stage != slice % step->plan->stages)
			continue;
		uint32_t counted = rounds_counted_by(d, step->plan, slice, i);
		total += counted;
		bool overflow = row->loss_nano_sum > 0 && loss_sum > INT64_MAX - row->loss_nano_sum;
		loss_sum = overflow ? INT64_MAX : loss_sum + row->loss_nano_sum;
		skep_emit_note(step, &d->node,
			(struct skep_note){.kind = SKEP_NOTE_MEMBER,
				.stage = (uint16_t)slice,
				.round = d->reduced.round,
				.peer = directory_worker(d, i),
				.value = counted});
	}
	uint32_t lost = report_lost(d, step, slice);
	total = d->async ? d->reduced.issued - lost : total; /* MERGED notes have said by whom */
	loss_sum = d->async ? merges_loss(d, d->reduced.round, slice) : loss_sum;
	skep_emit_note(step, &d->node,
		(struct skep_note){.kind = SKEP_NOTE_STAGE_COMMITTED,
			.stage = (uint16_t)slice,
			.round = d->reduced.round,
			.microbatch = total,
			.value = lost});
	if (slice + 1 == skep_plan_slices(step->plan))
		report_loss(d, step, loss_sum, total);
	return total;
}

/* To all members: the divisor of a slice. */
static void send_commits(struct directory *d, struct step *step, uint32_t slice, uint32_t total, uint32_t keeps)
{
	for (uint32_t i = 0; i < step->plan->workers; i++) {
		const struct row *row = directory_row(d, i);
		if (row->member && row->stage == slice % step->plan->stages)
			send_commit(d, step, slice, i, total, i == keeps);
	}
}

void rounds_commit(struct directory *d, struct step *step, uint32_t stage)
{
	uint32_t keeps = d->async ? SKEP_NO_INDEX : keep_by(d, step->plan, stage);
	if (d->async)
		keep_merged(d, step, stage);
	for (uint32_t slice = stage; slice < skep_plan_slices(step->plan); slice += step->plan->stages)
		send_commits(d, step, slice, rounds_note_slice(d, step, slice), keeps);
	for (uint32_t i = 0; i < step->plan->workers; i++) {
		struct row *row = directory_row(d, i);
		if (!row->member || row->stage != stage)
			continue;
		row->member = false;
		if (row->standing == STANDING_READY)
			directory_serve(d, i);
	}
	directory_stage(d, stage)->committed = true;
	bool all = true;
	for (uint32_t other = 0; other < step->plan->stages; other++)
		all = all && directory_stage(d, other)->committed;
	if (all)
		close_round(d, step);
	if (step->plan->delayed && d->phase == PHASE_OPEN) /* there may be new owners, and it may be complete */
		refill(d, step, SKEP_NO_INDEX);
}

static bool all_told(struct directory *d, const struct skep_plan *plan)
{
	for (uint32_t stage = 0; stage < plan->stages; stage++) {
		if (directory_stage(d, stage)->pending > 0)
			return false;
	}
	return true;
}

void rounds_all_told(struct directory *d, struct step *step)
{
	if (!all_told(d, step->plan))
		return;
	if (d->phase == PHASE_COUNTING) {
		rerun_counted(d, step);
		return;
	}
	d->square = step->plan->clip ? norms_total(d, step->plan) : 0;
	ties_count(d, step->plan);
	for (uint32_t stage = 0; stage < step->plan->stages; stage++)
		rounds_commit(d, step, stage);
}

void rounds_on_tally(struct directory *d, struct step *step, const struct skep_message *message)
{
	struct row *row = directory_row(d, message->from.index);
	struct stage_state *stage = directory_stage(d, row->stage);
	if (skep_plan_streams(step->plan) || d->async) {
		(d->async ? merges_on_tally : stream_on_tally)(d, step, message);
		return;
	}
	if ((!d->reduced.on && !d->promised) || message->round != d->reduced.round || stage->committed ||
		!row->member || row->tallied || message->attempt != stage->attempt ||
		message->u.tally.used > SKEP_TALLY_PART)
		return;
	uint32_t laps = skep_plan_laps(step->plan);
	for (uint32_t i = 0; i < message->u.tally.used; i++) {
		uint32_t item = message->u.tally.base + message->u.tally.offset[i], microbatch = item / laps;
		uint32_t *counters = rounds_counters(d, item % laps * step->plan->stages + row->stage);
		if (microbatch >= d->reduced.issued || counters[microbatch] == message->from.index)
			continue;                              /* a duplicate */
		assert(counters[microbatch] == SKEP_NO_INDEX); /* else it is in the sum twice */
		counters[microbatch] = message->from.index;
		row->tally_heard++;
	}
	row->tally_count = message->u.tally.count;
	row->loss_nano_sum = message->u.tally.loss_nano;
	if (row->tally_heard != row->tally_count)
		return; /* more parts to come */
	row->tallied = true;
	if (--stage->pending > 0 || d->promised)
		return;
	rounds_stage_told(d, step, row->stage);
}

void rounds_stage_told(struct directory *d, struct step *step, uint32_t stage)
{
	if (rounds_together(step->plan))
		rounds_all_told(d, step);
	else if (skep_plan_ties(step->plan, stage))
		ties_commit(d, step, stage);
	else
		rounds_commit(d, step, stage);
}

void rounds_cut(struct directory *d, const struct skep_plan *plan)
{
	d->cut = true;
	d->full = false;
	d->outstanding = 0;
	for (uint32_t i = 0; i < d->issued; i++)
		owners(d)[i] = SKEP_NO_INDEX;
	for (uint32_t i = 0; i < plan->workers; i++)
		directory_row(d, i)->outstanding = 0;
}

void rounds_refill(struct directory *d, struct step *step)
{
	if (skep_plan_streams(step->plan)) {
		stream_fill(d, step);
		return;
	}
	validate_refill(d, step, SKEP_NO_INDEX);
	if (d->phase != PHASE_OPEN)
		return;
	d->cut = d->cut &&
	         rounds_nobody_can(d, step->plan); /* a founder can do what those who waited for a step could not */
	refill(d, step, SKEP_NO_INDEX);
}

static void sum_anew(struct directory *d, struct step *step, uint32_t stage)
{
	uint32_t twin = ties_twin(step->plan, stage);
	attempt_begin(d, step, stage, true);
	if (twin != SKEP_NO_STAGE)
		attempt_begin(d, step, twin, true);
	if (step->plan->clip && d->reduced.on) /* nobody may be left to tell */
		rounds_all_told(d, step);
}

void rounds_worker_gone(struct directory *d, struct step *step, uint32_t worker)
{
	struct row *row = directory_row(d, worker);
	d->full = false;
	promise_off(d);
	if (skep_plan_streams(step->plan)) {
		stream_worker_gone(d, step, worker);
		return;
	}
	fixed_lift_barrier(d, step);
	if (d->async)
		merges_worker_gone(d, step, worker);
	bool summed = d->reduced.on && row->member && !directory_stage(d, row->stage)->committed;
	if (summed && step->plan->on_loss == SKEP_ON_LOSS_RERUN)
		rerun_count(d, step); /* what it had told is missing, and so would it be in the sums */
	else if (summed)
		sum_anew(d, step, row->stage);
	validate_worker_gone(d, step, worker);
	if (d->phase != PHASE_OPEN)
		return;
	for (uint32_t i = 0; i < d->issued && row->outstanding > 0; i++) {
		if (owners(d)[i] != worker)
			continue;
		owners(d)[i] = SKEP_NO_INDEX;
		d->outstanding--;
		row->outstanding--;
	}
	refill(d, step, SKEP_NO_INDEX);
}
