/* SPDX-License-Identifier: Apache-2.0
 *
 * rounds.c - the directory's rounds: grants, reductions, commit.
 *
 * Microbatches are numbered from 0 in each round and granted to first-stage workers, a few ahead of what they have in
 * flight, one more for each that comes back: a faster worker issues more. One that was abandoned is replaced by a
 * fresh one. When enough have come back every stage reduces; a stage commits when all members of one attempt have told
 * which microbatches their sum holds. What was issued and is in no member's sum is lost, and a note says so.
 */
#include <assert.h>

#include "core/bits.h"
#include "core/directory.h"

static uint32_t *owners(struct directory *d)
{
	return skep_at(d, d->owner_at);
}

/* Who counted each microbatch of the round at this stage, by the tallies of the current attempt; SKEP_NO_INDEX: nobody. */
static uint32_t *counters(struct directory *d, uint32_t stage)
{
	return (uint32_t *)skep_at(d, d->counter_at) + (size_t)stage * d->capacity;
}

/* ---- grants --------------------------------------------------------------------------------------------------- */

/* Granted to one owner at once: what it keeps in flight, and some to start while word travels to us and back. */
static uint32_t credit(const struct skep_plan *plan)
{
	return plan->in_flight + (plan->in_flight < 4 ? 2 : plan->in_flight / 2);
}

/* Half of what the smallest stage can hold: random wiring is uneven, and what overflows is work thrown away. */
static uint64_t outstanding_limit(struct directory *d, const struct skep_plan *plan)
{
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
	const struct stage_state *first = directory_stage(d, 0);
	return first->leaving < first->serving ? first->serving - first->leaving : first->serving;
}

static bool is_owner(struct directory *d, const struct row *row)
{
	const struct stage_state *first = directory_stage(d, 0);
	return row->standing == STANDING_SERVING && row->stage == 0 &&
	       (!row->leaving || first->leaving == first->serving);
}

static void grant(struct directory *d, struct step *step, uint32_t worker, uint32_t count)
{
	struct row *row = directory_row(d, worker);
	struct skep_peer peer = directory_worker(d, worker);
	for (uint32_t i = 0; i < count; i++)
		owners(d)[d->issued + i] = worker;
	skep_emit_note(step, &d->node,
		(struct skep_note){.kind = SKEP_NOTE_ISSUED,
			.round = d->round,
			.microbatch = d->issued,
			.peer = peer,
			.value = count});
	struct skep_message message = skep_message_to(&d->node, SKEP_MESSAGE_GRANT, peer);
	message.round = d->round;
	message.microbatch = d->issued;
	message.u.grant.count = count;
	skep_emit_send(step, &d->node, &message);
	d->issued += count;
	d->outstanding += count;
	row->outstanding += count;
}

/* How many more may be granted now. */
static uint32_t wanted(struct directory *d, const struct skep_plan *plan)
{
	if (d->finished + d->outstanding >= plan->microbatches)
		return 0;
	uint32_t want = plan->microbatches - d->finished - d->outstanding;
	uint32_t numbers = skep_round_capacity(plan) - d->issued;
	return want < numbers ? want : numbers;
}

static uint32_t least_loaded_owner(struct directory *d, const struct skep_plan *plan)
{
	uint32_t best = SKEP_NO_INDEX;
	for (uint32_t i = 0; i < plan->workers; i++) {
		const struct row *row = directory_row(d, i);
		if (is_owner(d, row) && row->outstanding < credit(plan) &&
			(best == SKEP_NO_INDEX || row->outstanding < directory_row(d, best)->outstanding))
			best = i;
	}
	return best;
}

static void begin_attempt(struct directory *d, struct step *step, uint32_t stage);
static void commit(struct directory *d, struct step *step, uint32_t stage);

static void start_reducing(struct directory *d, struct step *step)
{
	d->phase = PHASE_REDUCING;
	for (uint32_t stage = 0; stage < step->plan->stages; stage++) {
		directory_stage(d, stage)->attempt = 0;
		directory_stage(d, stage)->committed = false;
	}
	for (uint32_t stage = 0; stage < step->plan->stages && d->phase == PHASE_REDUCING; stage++)
		begin_attempt(d, step, stage);
}

/* Replaces what has come back or was lost, first by `preferred`; ends the round when nothing is left to wait for. */
static void refill(struct directory *d, struct step *step, uint32_t preferred)
{
	uint64_t limit = outstanding_limit(d, step->plan);
	for (uint32_t i = 0; i < GRANTS_PER_REFILL && wanted(d, step->plan) > 0 && d->outstanding < limit; i++) {
		const struct row *row = preferred == SKEP_NO_INDEX ? NULL : directory_row(d, preferred);
		bool fits = row && is_owner(d, row) && row->outstanding < credit(step->plan);
		uint32_t worker = fits ? preferred : least_loaded_owner(d, step->plan);
		if (worker == SKEP_NO_INDEX)
			break;
		grant(d, step, worker, 1);
	}
	if (d->outstanding == 0 && wanted(d, step->plan) == 0)
		start_reducing(d, step);
}

void rounds_open(struct directory *d, struct step *step)
{
	const struct skep_plan *plan = step->plan;
	d->phase = PHASE_OPEN;
	d->issued = d->finished = d->outstanding = 0;
	skep_emit_note(step, &d->node, (struct skep_note){.kind = SKEP_NOTE_ROUND_OPENED, .round = d->round});
	uint32_t owners_now = owner_count(d), nth = 0;
	uint64_t limit = outstanding_limit(d, plan);
	for (uint32_t i = 0; i < plan->workers; i++) {
		struct row *row = directory_row(d, i);
		row->outstanding = 0;
		if (!is_owner(d, row))
			continue;
		uint64_t share = plan->microbatches / owners_now + (nth++ < plan->microbatches % owners_now);
		share = share < credit(plan) ? share : credit(plan);
		uint64_t room = limit - d->outstanding;
		share = share < room ? share : room;
		if (share > 0)
			grant(d, step, i, (uint32_t)share);
	}
}

void rounds_on_finished(struct directory *d, struct step *step, const struct skep_message *message)
{
	uint32_t worker = message->from.index, microbatch = message->microbatch;
	if (d->phase != PHASE_OPEN || message->round != d->round || microbatch >= d->issued ||
		owners(d)[microbatch] != worker)
		return; /* a duplicate, or too late */
	owners(d)[microbatch] = SKEP_NO_INDEX;
	d->outstanding--;
	directory_row(d, worker)->outstanding--;
	d->finished += message->u.finished.ok;
	refill(d, step, worker);
}

/* ---- reduction ------------------------------------------------------------------------------------------------ */

/* Members are all that make the step of this round, newcomers included, in the order of their indices. */
static uint32_t choose_members(struct directory *d, const struct skep_plan *plan, uint32_t stage, uint32_t *ret_order)
{
	uint32_t size = 0;
	for (uint32_t i = 0; i < plan->workers; i++) {
		struct row *row = directory_row(d, i);
		if (row->stage != stage)
			continue;
		row->member = row->standing >= STANDING_JOINING && row->since <= d->round;
		row->tallied = false;
		row->tally_count = row->tally_heard = 0;
		row->loss_nano_sum = 0;
		if (row->member)
			ret_order[size++] = i;
	}
	return size;
}

static void begin_attempt(struct directory *d, struct step *step, uint32_t stage)
{
	struct stage_state *state = directory_stage(d, stage);
	uint32_t *order = skep_at(d, d->order_at);
	uint32_t size = choose_members(d, step->plan, stage, order);
	assert(size > 0 || state->waiting);
	for (uint32_t i = 0; i < d->issued; i++)
		counters(d, stage)[i] = SKEP_NO_INDEX;
	state->attempt++;
	state->pending = size;
	if (size == 0) { /* all of the round is lost here, and the round goes on */
		commit(d, step, stage);
		return;
	}
	for (uint32_t rank = 0; rank < size; rank++) {
		struct skep_message message =
			skep_message_to(&d->node, SKEP_MESSAGE_REDUCE, directory_worker(d, order[rank]));
		message.stage = (uint16_t)stage;
		message.round = d->round;
		message.attempt = state->attempt;
		message.u.reduce.rank = rank;
		message.u.reduce.size = size;
		message.u.reduce.next = directory_worker(d, order[(rank + 1) % size]);
		skep_emit_send(step, &d->node, &message);
	}
}

/* Notes for what was issued and is in no member's sum; returns how many. */
static uint32_t report_lost(struct directory *d, struct step *step, uint32_t stage)
{
	uint32_t lost = 0;
	for (uint32_t first = 0; first < d->issued; first += 64) {
		uint64_t missing = 0;
		for (uint32_t i = first; i < first + 64 && i < d->issued; i++) {
			if (counters(d, stage)[i] == SKEP_NO_INDEX)
				missing |= (uint64_t)1 << (i - first);
		}
		if (missing == 0)
			continue;
		lost += skep_bits_count(missing);
		skep_emit_note(step, &d->node,
			(struct skep_note){.kind = SKEP_NOTE_LOST,
				.stage = (uint16_t)stage,
				.round = d->round,
				.microbatch = first,
				.value = (int64_t)missing});
	}
	return lost;
}

static void report_loss(struct directory *d, struct step *step, int64_t sum, uint32_t counted)
{
	if (counted == 0)
		return;
	d->loss_nano = sum == INT64_MAX ? INT64_MAX : sum / counted;
	skep_emit_note(
		step, &d->node, (struct skep_note){.kind = SKEP_NOTE_LOSS, .round = d->round, .value = d->loss_nano});
}

static void close_round(struct directory *d, struct step *step)
{
	skep_emit_note(step, &d->node,
		(struct skep_note){.kind = SKEP_NOTE_ROUND_CLOSED, .round = d->round, .microbatch = d->issued});
	d->round++;
	if (d->round == step->plan->rounds || d->loss_nano <= step->plan->target_loss_nano) {
		d->ending = refound_waiting(d, step->plan) != SKEP_NO_STAGE;
		if (!d->ending)
			directory_stop(d, step, true);
		return;
	}
	for (uint32_t i = 0; i < step->plan->workers; i++) { /* whoever was late for the commit */
		if (directory_row(d, i)->standing == STANDING_READY)
			directory_serve(d, i);
	}
	edge_pass(d, step);
	rounds_open(d, step);
}

/* The first of the members that hold all of the state keeps it, if it is time for that. */
static uint32_t keeper(struct directory *d, const struct skep_plan *plan, uint32_t stage)
{
	if (plan->checkpoint_every == 0 || (d->round + 1) % plan->checkpoint_every != 0)
		return SKEP_NO_INDEX;
	for (uint32_t i = 0; i < plan->workers; i++) {
		const struct row *row = directory_row(d, i);
		if (row->member && row->stage == stage && row->standing >= STANDING_READY)
			return i;
	}
	return SKEP_NO_INDEX;
}

static void send_commit(
	struct directory *d, struct step *step, uint32_t stage, uint32_t worker, uint32_t counted, bool checkpoint)
{
	struct skep_message message = skep_message_to(&d->node, SKEP_MESSAGE_COMMIT, directory_worker(d, worker));
	message.stage = (uint16_t)stage;
	message.round = d->round;
	message.attempt = directory_stage(d, stage)->attempt;
	message.u.commit.microbatches = counted;
	message.u.commit.checkpoint = checkpoint;
	skep_emit_send(step, &d->node, &message);
}

static void commit(struct directory *d, struct step *step, uint32_t stage)
{
	uint32_t total = 0;
	int64_t loss_sum = 0;
	for (uint32_t i = 0; i < step->plan->workers; i++) {
		struct row *row = directory_row(d, i);
		if (!row->member || row->stage != stage)
			continue;
		total += row->tally_count;
		bool overflow = row->loss_nano_sum > 0 && loss_sum > INT64_MAX - row->loss_nano_sum;
		loss_sum = overflow ? INT64_MAX : loss_sum + row->loss_nano_sum;
		skep_emit_note(step, &d->node,
			(struct skep_note){.kind = SKEP_NOTE_MEMBER,
				.stage = (uint16_t)stage,
				.round = d->round,
				.peer = directory_worker(d, i),
				.value = row->tally_count});
	}
	uint32_t lost = report_lost(d, step, stage);
	skep_emit_note(step, &d->node,
		(struct skep_note){.kind = SKEP_NOTE_STAGE_COMMITTED,
			.stage = (uint16_t)stage,
			.round = d->round,
			.microbatch = total,
			.value = lost});
	if (stage + 1 == step->plan->stages)
		report_loss(d, step, loss_sum, total);
	uint32_t keeps = keeper(d, step->plan, stage);
	for (uint32_t i = 0; i < step->plan->workers; i++) {
		struct row *row = directory_row(d, i);
		if (!row->member || row->stage != stage)
			continue;
		row->member = false;
		send_commit(d, step, stage, i, total, i == keeps);
		if (row->standing == STANDING_READY)
			directory_serve(d, i);
	}
	directory_stage(d, stage)->committed = true;
	for (uint32_t other = 0; other < step->plan->stages; other++) {
		if (!directory_stage(d, other)->committed)
			return;
	}
	close_round(d, step);
}

void rounds_on_tally(struct directory *d, struct step *step, const struct skep_message *message)
{
	struct row *row = directory_row(d, message->from.index);
	struct stage_state *stage = directory_stage(d, row->stage);
	if (d->phase != PHASE_REDUCING || message->round != d->round || stage->committed || !row->member ||
		row->tallied || message->attempt != stage->attempt || message->u.tally.used > SKEP_TALLY_PART)
		return;
	for (uint32_t i = 0; i < message->u.tally.used; i++) {
		uint32_t microbatch = message->u.tally.base + message->u.tally.offset[i];
		if (microbatch >= d->issued || counters(d, row->stage)[microbatch] == message->from.index)
			continue;                                             /* a duplicate */
		assert(counters(d, row->stage)[microbatch] == SKEP_NO_INDEX); /* else it is in the sum twice */
		counters(d, row->stage)[microbatch] = message->from.index;
		row->tally_heard++;
	}
	row->tally_count = message->u.tally.count;
	row->loss_nano_sum = message->u.tally.loss_nano;
	if (row->tally_heard != row->tally_count)
		return; /* more parts to come */
	row->tallied = true;
	if (--stage->pending == 0)
		commit(d, step, row->stage);
}

void rounds_refill(struct directory *d, struct step *step)
{
	refill(d, step, SKEP_NO_INDEX);
}

void rounds_worker_gone(struct directory *d, struct step *step, uint32_t worker)
{
	struct row *row = directory_row(d, worker);
	if (d->phase == PHASE_REDUCING) {
		if (row->member && !directory_stage(d, row->stage)->committed)
			begin_attempt(d, step, row->stage);
		return;
	}
	for (uint32_t i = 0; i < d->issued && row->outstanding > 0; i++) {
		if (owners(d)[i] != worker)
			continue;
		owners(d)[i] = SKEP_NO_INDEX;
		d->outstanding--;
		row->outstanding--;
	}
	refill(d, step, SKEP_NO_INDEX);
}
