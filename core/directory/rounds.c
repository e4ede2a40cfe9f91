/* SPDX-License-Identifier: Apache-2.0
 *
 * rounds.c - the directory's rounds: grants, reductions, commit.
 *
 * Microbatches are numbered from 0 in each round and granted to first-stage workers, a few ahead of what they have in
 * flight, one more for each that comes back: a faster worker issues more. One that was abandoned is replaced by a
 * fresh one. When enough have come back every stage reduces; a stage commits when all members of one attempt have told
 * which microbatches their sum holds. What was issued and is in no member's sum is lost, and a note says so.
 *
 * These are the parts that methods are put together from (methods/method.h); what is judged between two rounds: validation.c.
 */
#include <assert.h>
#include <string.h>

#include "core/bits.h"
#include "core/directory/directory.h"
#include "core/directory/ends.h"

static uint32_t *owners(struct directory *d)
{
	return skep_at(d, d->owner_at);
}

/* The worker that counted each microbatch of the round in this virtual stage, by the tallies of the current attempt;
 * SKEP_NO_INDEX: none. */
uint32_t *skep_rounds_counters(struct directory *d, uint32_t vstage)
{
	return (uint32_t *)skep_at(d, d->counter_at) + (size_t)vstage * d->capacity;
}

/* The same of the open round, or of the one that is being closed beside it: the worker whose update has it, or that has
 * announced it. */
uint32_t *skep_rounds_counters_of(struct directory *d, const struct skep_plan *plan, uint32_t round, uint32_t stage)
{
	return skep_rounds_counters(d, (round & (d->counted_rounds - 1)) * plan->stages + stage);
}

/* ---- grants --------------------------------------------------------------------------------------------------- */

/* Half of what the smallest stage can hold: random wiring is uneven, and what overflows is work thrown away. */
uint64_t skep_rounds_limit(struct directory *d, const struct skep_plan *plan)
{
	if (d->pipelines > 0)
		return plan->microbatches;
	uint32_t fewest = UINT32_MAX;
	for (uint32_t stage = 0; stage < plan->stages; stage++) {
		uint32_t serving = directory_stage(d, stage)->serving;
		fewest = serving < fewest ? serving : fewest;
	}
	return skep_swarm_outstanding(fewest, d->inflight_capacity);
}

void skep_rounds_send_grant(
	struct directory *d, struct step *step, uint32_t worker, uint32_t first, uint32_t count, struct skep_span span)
{
	assert(directory_row(d, worker)->standing == STANDING_SERVING);
	assert(worker < step->plan->workers);
	struct skep_message message = skep_message_to(&d->node, SKEP_MESSAGE_GRANT, directory_worker(d, worker));
	message.round = d->round;
	message.microbatch = first;
	message.attempt = d->pass;
	message.span = span;
	message.u.grant.count = count;
	message.u.grant.in_flight = skep_dealing_in_flight(d, step->plan, directory_row(d, worker));
	if (d->pipelines > 0)
		message.u.grant.pipeline = skep_fixed_deal(d, directory_row(d, worker), count);
	skep_emit_send(step, &d->node, &message);
	d->outstanding += count;
	if (directory_row(d, worker)->outstanding == 0)
		directory_row(d, worker)->turn_ns = d->node.now;
	directory_row(d, worker)->outstanding += count;
}

static void grant(struct directory *d, struct step *step, uint32_t worker, uint32_t count)
{
	assert(count > 0 && count <= d->capacity - d->issued);
	assert(directory_row(d, worker)->standing == STANDING_SERVING);
	assert(d->phase == PHASE_OPEN);
	for (uint32_t i = 0; i < count; i++)
		owners(d)[d->issued + i] = worker;
	skep_emit_note(step, &d->node,
		(struct skep_note){.kind = SKEP_NOTE_ISSUED,
			.round = d->round,
			.microbatch = d->issued,
			.peer = directory_worker(d, worker),
			.granted = count});
	skep_rounds_send_grant(d, step, worker, d->issued, count,
		(struct skep_span){0, (uint16_t)(skep_plan_vstages(step->plan) - 1)});
	d->issued += count;
}

static void grant_again(
	struct directory *d, struct step *step, uint32_t worker, uint32_t microbatch, struct skep_span span)
{
	assert(microbatch < d->issued && span.first <= span.last);
	assert(directory_row(d, worker)->standing == STANDING_SERVING);
	assert(d->phase == PHASE_OPEN);
	owners(d)[microbatch] = worker;
	skep_emit_note(step, &d->node,
		(struct skep_note){.kind = SKEP_NOTE_RERUN,
			.round = d->round,
			.microbatch = microbatch,
			.peer = directory_worker(d, worker),
			.rerun = {d->pass, span}});
	skep_rounds_send_grant(d, step, worker, microbatch, 1, span);
}

uint32_t skep_rounds_wanted(struct directory *d, const struct skep_plan *plan)
{
	assert(d->phase == PHASE_OPEN);
	assert(d->issued <= d->capacity);
	uint32_t outstanding = d->outstanding - d->validation.outstanding;
	if (d->cut || d->finished + outstanding >= skep_plan_quota(plan, d->round))
		return 0;
	uint32_t want = skep_plan_quota(plan, d->round) - d->finished - outstanding;
	uint32_t numbers = skep_round_capacity(plan) - d->issued;
	return want < numbers ? want : numbers;
}

/* By workers that are here, as they have said: whatever happened to the round. */
void skep_rounds_all_counted(struct directory *d)
{
	assert(d->phase == PHASE_COUNTING);
	d->intact = true;
	d->finished = d->issued;
}

void skep_rounds_close(struct directory *d, const struct skep_plan *plan)
{
	assert(d->issued <= d->capacity);
	assert(d->phase == PHASE_OPEN || d->phase == PHASE_COUNTING);
	skep_directory_enter(d, PHASE_REDUCING);
	d->reduced = (struct reduced){.on = true,
		.round = d->round,
		.issued = d->issued,
		.expected = d->intact && d->finished == d->issued ? d->issued : 0};
	for (uint32_t stage = 0; stage < plan->stages; stage++) {
		directory_stage(d, stage)->attempt = d->pass > 0 ? d->pass : d->void_attempt;
		directory_stage(d, stage)->committed = false;
	}
	for (uint32_t i = 0; i < plan->workers; i++) {
		directory_row(d, i)->next_of_group = SKEP_NO_INDEX;
		directory_row(d, i)->summing = false;
	}
}

void skep_rounds_sum(struct directory *d, struct step *step)
{
	assert(d->phase == PHASE_REDUCING);
	for (uint32_t stage = 0; stage < step->plan->stages && d->reduced.on; stage++)
		skep_attempt_begin(d, step, stage, true);
	if (d->reduced.on)
		step->how.agreement->begun(d, step);
}

/* Replaces what has come back or was lost, first by `preferred`. */
void skep_rounds_grant(struct directory *d, struct step *step, uint32_t preferred)
{
	assert(d->phase == PHASE_OPEN);
	const struct skep_losses *losses = step->how.losses;
	uint64_t limit = losses->holds(d, step->plan) ? 0 : skep_rounds_limit(d, step->plan);
	struct skep_span span;
	uint32_t again = 0;
	bool lost = losses->again(d, step->plan, &again, &span);
	for (uint32_t i = 0; i < GRANTS_PER_REFILL && d->outstanding < limit; i++) {
		uint32_t left = losses->wanted(d, step->plan) + lost;
		uint32_t worker = left > 0 ? skep_dealing_next(d, step->plan, preferred, left) : SKEP_NO_INDEX;
		if (worker == SKEP_NO_INDEX)
			break;
		if (lost)
			grant_again(d, step, worker, again, span);
		else
			grant(d, step, worker, 1);
		if (lost) {
			d->rerun_microbatch = again + 1;
			lost = losses->again(d, step->plan, &again, &span);
		}
	}
}

bool skep_rounds_all_back(struct directory *d, struct step *step)
{
	assert(d->phase == PHASE_OPEN);
	struct skep_span span;
	uint32_t again;
	return d->outstanding == 0 && step->how.losses->wanted(d, step->plan) == 0 && !d->reduced.on && !d->ending &&
	       !step->how.losses->again(d, step->plan, &again, &span);
}

/* What each owner begins with, in one message. With a deadline an inner step's microbatches have to be with all owners, not with
 * the first one, so that no owner begins with what comes after STEP: they take turns, and few messages are more. With a fixed
 * number of inner steps they take turns as they go on to. */
static void grant_shares(struct directory *d, struct step *step)
{
	assert(d->phase == PHASE_OPEN);
	skep_dealing_begin(d, step->plan, skep_rounds_limit(d, step->plan));
	uint32_t left = d->outstanding, most = step->plan->inner.deadline ? 1 + left / TURNS_MOST : left;
	most = step->plan->inner.fixed || skep_fixed_one_by_one(d) ? 1 : most;
	for (uint32_t i = 0; i < step->plan->workers; i++) {
		directory_row(d, i)->to_grant = directory_row(d, i)->outstanding;
		directory_row(d, i)->outstanding = 0;
	}
	for (d->outstanding = 0; left > 0;)
		for (uint32_t i = 0; i < step->plan->workers; i++) {
			struct row *row = directory_row(d, i);
			uint32_t now = row->to_grant < most ? row->to_grant : most;
			if (now > 0)
				grant(d, step, i, now);
			row->to_grant -= now;
			left -= now;
		}
}

void skep_rounds_begin(struct directory *d, struct step *step)
{
	assert(d->issued <= d->capacity);
	assert(d->phase != PHASE_STOPPED);
	const struct skep_plan *plan = step->plan;
	skep_directory_enter(d, PHASE_OPEN);
	d->full = false;
	d->intact = true;
	d->cut = step->how.directory->none_can(d, plan);
	d->issued = d->finished = d->outstanding = d->pass = 0;
	d->void_attempt = step->how.scope->first_attempt(d);
	skep_emit_note(step, &d->node, (struct skep_note){.kind = SKEP_NOTE_ROUND_OPENED, .round = d->round});
	for (uint32_t i = 0; i < plan->workers; i++)
		directory_row(d, i)->outstanding = 0;
	if (d->pipelines > 0)
		skep_fixed_opens(d);
	if (!d->cut)
		grant_shares(d, step);
	if (d->pipelines > 0)
		skep_fixed_opened(d, step);
}

void skep_rounds_on_finished(struct directory *d, struct step *step, const struct skep_message *message)
{
	assert(message->kind == SKEP_MESSAGE_FINISHED);
	assert(message->from.index < step->plan->workers);
	uint32_t worker = message->from.index, microbatch = message->microbatch;
	if (microbatch >= d->capacity) {
		skep_validate_on_finished(d, step, message);
		return;
	}
	if (d->phase != PHASE_OPEN || message->round != d->round || message->attempt != d->pass ||
		microbatch >= d->issued || owners(d)[microbatch] != worker)
		return; /* a duplicate, or too late */
	assert(d->outstanding > 0 && directory_row(d, worker)->outstanding > 0);
	owners(d)[microbatch] = SKEP_NO_INDEX;
	d->outstanding--;
	directory_row(d, worker)->outstanding--;
	d->finished += message->u.finished.ok;
	d->full = d->full && message->u.finished.ok; /* else there is one more to deal */
	skep_dealing_heard(d, directory_row(d, worker), message->u.finished.needed_ns);
	if (!message->u.finished.ok) {
		step->how.directory->given_up(d);
		skep_fixed_lift_barrier(d, step);
	}
	if (d->pipelines > 0 && !message->u.finished.ok)
		skep_fixed_drain(d, step, directory_row(d, worker)->pipeline);
	step->how.directory->refill(d, step, worker);
}

/* ---- reduction ------------------------------------------------------------------------------------------------ */

uint32_t skep_rounds_note_lost(struct directory *d, struct step *step, uint32_t round, uint32_t vstage,
	const uint32_t *counter, uint32_t issued)
{
	assert(issued <= d->capacity);
	uint32_t lost = 0;
	for (uint32_t first = 0; first < issued; first += 64) {
		uint64_t missing = 0;
		for (uint32_t i = 0; i < 64 && first + i < issued; i++)
			missing |= (uint64_t)(counter[first + i] == SKEP_NO_INDEX) << i;
		if (missing == 0)
			continue;
		lost += skep_bits_count(missing);
		skep_emit_note(step, &d->node,
			(struct skep_note){.kind = SKEP_NOTE_LOST,
				.stage = (uint16_t)vstage,
				.round = round,
				.microbatch = first,
				.bits = missing});
	}
	return lost;
}

static void report_loss(struct directory *d, struct step *step, int64_t sum, uint32_t counted)
{
	if (counted == 0)
		return;
	int64_t mean = sum == INT64_MAX ? INT64_MAX : sum / counted;
	step->how.scope->loss(d, step->plan, mean);
	skep_emit_note(step, &d->node,
		(struct skep_note){.kind = SKEP_NOTE_LOSS, .round = d->reduced.round, .loss_nano = mean});
}

void skep_rounds_next(struct directory *d, struct step *step)
{
	assert(d->phase == PHASE_REDUCING);
	skep_boundary_serve_late(d, step);
	skep_boundary_pass(d, step);
	if (step->how.losses->holds(d, step->plan))
		return;
	d->round++;
	step->how.directory->begin(d, step);
}

static void close_round(struct directory *d, struct step *step)
{
	assert(d->reduced.on);
	d->reduced.on = false;
	d->closed++;
	step->how.scope->round_closed(d, step);
}

/* Goes on with the round that is open already, or opens the next one. When the run ends here, an open round is dropped: it
 * never closes, so nothing of it counts. */
void skep_rounds_continue(struct directory *d, struct step *step, bool over)
{
	if (over)
		skep_rounds_end(d, step);
	else if (d->phase == PHASE_REDUCING)
		skep_rounds_next(d, step);
}

void skep_rounds_closed(struct directory *d, struct step *step)
{
	assert(d->issued <= d->capacity);
	assert(d->phase != PHASE_STOPPED);
	skep_emit_note(step, &d->node,
		(struct skep_note){.kind = SKEP_NOTE_ROUND_CLOSED,
			.round = d->reduced.round,
			.issued = d->reduced.issued + d->candidacy.beside});
	d->candidacy.beside = 0;
	step->how.scaling->round_closed(d, step);
	skep_rounds_after_close(d, step);
}

void skep_rounds_after_close(struct directory *d, struct step *step)
{
	assert(d->phase != PHASE_STOPPED);
	bool over = skep_ends_reached(d, step->plan);
	if (skep_plan_validation_due(step->plan, d->closed))
		step->how.directory->validate(d, step, over);
	else
		skep_rounds_continue(d, step, over);
}

static void send_commit(
	struct directory *d, struct step *step, uint32_t vstage, uint32_t worker, uint32_t counted, bool checkpoint)
{
	assert(directory_row(d, worker)->standing != STANDING_ABSENT);
	assert(directory_row(d, worker)->member);
	struct skep_message message = skep_message_to(&d->node, SKEP_MESSAGE_COMMIT, directory_worker(d, worker));
	message.stage = (uint16_t)vstage;
	message.round = d->reduced.round;
	message.attempt = directory_row(d, worker)->attempt;
	message.u.commit.microbatches = counted;
	message.u.commit.checkpoint = checkpoint;
	for (uint32_t i = 0; i < step->how.features; i++)
		step->how.feature[i]->commit(d, step->plan, &message);
	skep_emit_send(step, &d->node, &message);
}

uint32_t skep_rounds_counted_by(struct directory *d, const struct skep_plan *plan, uint32_t vstage, uint32_t worker)
{
	assert(directory_row(d, worker)->standing != STANDING_ABSENT);
	assert(directory_row(d, worker)->member);
	uint32_t counted = 0;
	if (skep_plan_model_chunks(plan) == 1)
		return directory_row(d, worker)->tally_count;
	for (uint32_t i = 0; i < d->reduced.issued; i++)
		counted += skep_rounds_counters(d, vstage)[i] == worker;
	return counted;
}

uint32_t skep_rounds_counted_in(struct directory *d, const struct skep_plan *plan, uint32_t vstage)
{
	assert(d->reduced.on);
	assert(d->phase != PHASE_STOPPED);
	uint32_t total = 0;
	for (uint32_t i = 0; i < plan->workers; i++)
		if (directory_row(d, i)->member && directory_row(d, i)->stage == vstage % plan->stages)
			total += skep_rounds_counted_by(d, plan, vstage, i);
	return total;
}

uint32_t skep_rounds_note_vstage(struct directory *d, struct step *step, uint32_t vstage)
{
	uint32_t total = 0;
	int64_t loss_sum = 0;
	for (uint32_t i = 0; i < step->plan->workers; i++) {
		struct row *row = directory_row(d, i);
		if (!row->member || row->stage != vstage % step->plan->stages)
			continue;
		uint32_t counted = skep_rounds_counted_by(d, step->plan, vstage, i);
		total += counted;
		bool overflow = row->loss_nano_sum > 0 && loss_sum > INT64_MAX - row->loss_nano_sum;
		loss_sum = overflow ? INT64_MAX : loss_sum + row->loss_nano_sum;
		skep_emit_note(step, &d->node,
			(struct skep_note){.kind = SKEP_NOTE_MEMBER,
				.stage = (uint16_t)vstage,
				.round = d->reduced.round,
				.peer = directory_worker(d, i),
				.microbatches = counted});
	}
	const uint32_t *counter = skep_rounds_counters_of(d, step->plan, d->reduced.round, vstage);
	uint32_t lost = skep_rounds_note_lost(d, step, d->reduced.round, vstage, counter, d->reduced.issued);
	step->how.directory->counted(d, vstage, lost, &total, &loss_sum);
	skep_emit_note(step, &d->node,
		(struct skep_note){.kind = SKEP_NOTE_STAGE_COMMITTED,
			.stage = (uint16_t)vstage,
			.round = d->reduced.round,
			.counted = total,
			.lost = lost});
	if (vstage + 1 == skep_plan_vstages(step->plan))
		report_loss(d, step, loss_sum, total);
	return total;
}

/* Sends all members the divisors of a virtual stage. */
static void send_commits(struct directory *d, struct step *step, uint32_t vstage, uint32_t total, uint32_t keeps)
{
	assert(d->reduced.on);
	assert(d->phase != PHASE_STOPPED);
	bool all_keep = keeps != SKEP_NO_INDEX && step->how.losses->in_shards;
	for (uint32_t i = 0; i < step->plan->workers; i++) {
		const struct row *row = directory_row(d, i);
		if (row->member && row->stage == vstage % step->plan->stages)
			send_commit(d, step, vstage, i, step->how.grouping->divisor(d, step->plan, vstage, i, total),
				all_keep || i == keeps);
	}
}

void skep_rounds_commit(struct directory *d, struct step *step, uint32_t stage)
{
	assert(stage < step->plan->stages);
	assert(d->phase != PHASE_STOPPED);
	uint32_t keeps = step->how.directory->keeper(d, step, stage);
	assert(d->reduced.on && !directory_stage(d, stage)->committed);
	for (uint32_t vstage = stage; vstage < skep_plan_vstages(step->plan); vstage += step->plan->stages)
		send_commits(d, step, vstage, skep_rounds_note_vstage(d, step, vstage), keeps);
	for (uint32_t i = 0; i < step->plan->workers; i++) {
		struct row *row = directory_row(d, i);
		if (!row->member || row->stage != stage)
			continue;
		row->member = false;
		if (row->standing == STANDING_READY)
			skep_directory_serve(d, i);
	}
	directory_stage(d, stage)->committed = true;
	bool all = true;
	for (uint32_t other = 0; other < step->plan->stages; other++)
		all = all && directory_stage(d, other)->committed;
	if (all)
		close_round(d, step);
	step->how.directory->committed(d, step);
}

static bool all_told(struct directory *d, const struct skep_plan *plan)
{
	assert(d->reduced.on);
	assert(d->phase != PHASE_STOPPED);
	for (uint32_t stage = 0; stage < plan->stages; stage++) {
		if (directory_stage(d, stage)->pending > 0)
			return false;
	}
	return true;
}

void skep_rounds_all_told(struct directory *d, struct step *step)
{
	assert(d->reduced.on);
	if (!all_told(d, step->plan))
		return;
	if (d->phase == PHASE_COUNTING) {
		step->how.losses->counted(d, step);
		return;
	}
	for (uint32_t i = 0; i < step->how.features; i++)
		step->how.feature[i]->resolve(d, step->plan);
	for (uint32_t stage = 0; stage < step->plan->stages; stage++)
		skep_rounds_commit(d, step, stage);
}

bool skep_rounds_take_tally(struct directory *d, const struct skep_plan *plan, const struct skep_message *message)
{
	assert(message->kind == SKEP_MESSAGE_TALLY);
	assert(message->from.index < plan->workers);
	struct row *row = directory_row(d, message->from.index);
	struct stage_state *stage = directory_stage(d, row->stage);
	if (message->round != d->reduced.round || stage->committed || !row->member || row->tallied ||
		message->attempt != row->attempt || message->u.tally.used > SKEP_TALLY_PART)
		return false;
	uint32_t model_chunks = skep_plan_model_chunks(plan);
	for (uint32_t i = 0; i < message->u.tally.used; i++) {
		uint32_t item = message->u.tally.base + message->u.tally.offset[i], microbatch = item / model_chunks;
		uint32_t *counters = skep_rounds_counters(d, item % model_chunks * plan->stages + row->stage);
		if (microbatch >= d->reduced.issued || counters[microbatch] == message->from.index)
			continue;                              /* a duplicate */
		assert(counters[microbatch] == SKEP_NO_INDEX); /* else it is in the sum twice */
		counters[microbatch] = message->from.index;
		row->tally_heard++;
	}
	row->tally_count = message->u.tally.count;
	row->loss_nano_sum = message->u.tally.loss_nano;
	if (row->tally_heard != row->tally_count)
		return false; /* more parts to come */
	row->tallied = true;
	assert(stage->pending > 0);
	return --stage->pending == 0;
}

static void forget_grants(struct directory *d, const struct skep_plan *plan)
{
	d->full = false;
	d->outstanding = 0;
	for (uint32_t i = 0; i < d->issued; i++)
		owners(d)[i] = SKEP_NO_INDEX;
	for (uint32_t i = 0; i < plan->workers; i++)
		directory_row(d, i)->outstanding = 0;
}

void skep_rounds_cut(struct directory *d, const struct skep_plan *plan)
{
	d->cut = true;
	forget_grants(d, plan);
}

void skep_rounds_reopen(struct directory *d, struct step *step)
{
	assert(d->phase == PHASE_COUNTING);
	skep_directory_enter(d, PHASE_OPEN);
	d->reduced.on = false;
	forget_grants(d, step->plan);
}

void skep_rounds_resume(struct directory *d, struct step *step)
{
	skep_validate_refill(d, step, SKEP_NO_INDEX);
	if (d->phase != PHASE_OPEN)
		return;
	/* A restorer can do what those that waited for a step could not. */
	d->cut = d->cut && step->how.directory->none_can(d, step->plan);
	step->how.directory->refill(d, step, SKEP_NO_INDEX);
}

void skep_rounds_sum_anew(struct directory *d, struct step *step, uint32_t stage)
{
	assert(stage < step->plan->stages);
	skep_attempt_begin(d, step, stage, true);
	for (uint32_t i = 0; i < step->how.features; i++)
		step->how.feature[i]->anew(d, step, stage);
	if (d->reduced.on)
		step->how.agreement->begun(d, step);
}

void skep_rounds_worker_gone(struct directory *d, struct step *step, uint32_t worker, bool served)
{
	assert(worker < step->plan->workers);
	assert(directory_row(d, worker)->stage < step->plan->stages);
	struct row *row = directory_row(d, worker);
	d->full = d->intact = false;
	d->reduced.expected = 0;
	skep_fixed_lift_barrier(d, step);
	bool summed = d->reduced.on && row->member && !directory_stage(d, row->stage)->committed;
	if (summed)
		step->how.losses->member_gone(d, step, row->stage);
	skep_validate_worker_gone(d, step, worker);
	if (d->phase != PHASE_OPEN)
		return;
	skep_fixed_worker_gone(d, step, worker);
	for (uint32_t i = 0; i < d->issued && row->outstanding > 0; i++) {
		if (owners(d)[i] != worker)
			continue;
		owners(d)[i] = SKEP_NO_INDEX;
		d->outstanding--;
		row->outstanding--;
	}
	step->how.losses->gone(d, step, served && !summed);
}
