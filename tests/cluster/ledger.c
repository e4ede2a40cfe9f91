/* SPDX-License-Identifier: Apache-2.0
 *
 * ledger.c - writes the books: who added what, who was a member, what was lost.
 */
#include "tests/cluster/ledger_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct ledger *ledger_create(void)
{
	return calloc(1, sizeof(struct ledger));
}

void ledger_destroy(struct ledger *ledger)
{
	free(ledger);
}

static uint64_t *take(struct ledger *ledger, size_t words)
{
	assert(ledger->arena_used + words <= ARENA_WORDS);
	uint64_t *block = &ledger->arena[ledger->arena_used];
	ledger->arena_used += words;
	memset(block, 0, words * sizeof(*block));
	return block;
}

uint32_t books_bits(const struct ledger *ledger, const uint64_t *map)
{
	uint32_t sum = 0;
	for (uint32_t w = 0; w < ledger->words; w++)
		sum += (uint32_t)__builtin_popcountll(map[w]);
	return sum;
}

void ledger_begin(
	struct ledger *ledger, const struct skep_plan *plan, uint32_t capacity, uint32_t view, struct verdict *verdict)
{
	assert(plan->workers <= CLUSTER_WORKERS && plan->stages <= CLUSTER_STAGES && plan->rounds < CLUSTER_ROUNDS);
	assert(skep_plan_vstages(plan) <= CLUSTER_VSTAGES && plan->validation.microbatches <= VALIDATION_MOST);
	memset(ledger, 0, offsetof(struct ledger, holder));
	ledger->plan = plan;
	ledger->verdict = verdict;
	ledger->capacity = capacity;
	ledger->view = view;
	ledger->words = (capacity + 63) / 64;
	ledger->rounds_before = plan->first_round;
	ledger->holders = 1;
	ledger->arena_used = 0;
	membership_begin(ledger);
}

/* Bitmaps of a round are made when it opens: a run rarely uses all the rounds it may. */
static void prepare(struct ledger *ledger, struct round *round)
{
	if (round->issued)
		return;
	round->issued = take(ledger, ledger->words);
	round->finished = take(ledger, ledger->words);
	round->owner = (struct skep_peer *)take(ledger, ledger->capacity);
	round->loss = (int64_t *)take(ledger, ledger->capacity);
	round->rerun = take(ledger, ledger->capacity);
	round->voided = take(ledger, ledger->words);
	for (uint32_t s = 0; s < skep_plan_vstages(ledger->plan); s++) {
		round->cell[s].forwarded = take(ledger, ledger->words);
		round->cell[s].backwarded = take(ledger, ledger->words);
		round->cell[s].lost = take(ledger, ledger->words);
		round->cell[s].sent_on = take(ledger, ledger->words);
		round->cell[s].forwarder = (struct skep_peer *)take(ledger, ledger->capacity);
		round->cell[s].dropper = (struct skep_peer *)take(ledger, ledger->capacity);
		round->cell[s].dropped = take(ledger, ledger->words);
		round->cell[s].again = take(ledger, ledger->words);
		round->cell[s].merged = take(ledger, ledger->words);
	}
}

bool books_valid(struct ledger *ledger, const char *what, uint32_t round, uint32_t stage, uint32_t microbatch)
{
	bool good = round < ledger->plan->rounds && stage < skep_plan_vstages(ledger->plan) &&
	            microbatch < ledger->capacity;
	if (!good)
		verdict_break(ledger->verdict, "I5", round, stage, microbatch,
			"%s names round %u, stage %u, microbatch %u: outside of the plan (capacity %u)", what, round,
			stage, microbatch, ledger->capacity);
	else
		prepare(ledger, &ledger->round[round]);
	return good;
}

struct holder *books_holder(struct ledger *ledger, struct cell *cell, struct skep_peer peer)
{
	for (uint32_t h = cell->first_holder; h != 0; h = ledger->holder[h].next)
		if (ledger->holder[h].peer.index == peer.index && ledger->holder[h].peer.epoch == peer.epoch)
			return &ledger->holder[h];
	assert(ledger->holders < HOLDERS);
	struct holder *holder = &ledger->holder[ledger->holders];
	*holder = (struct holder){.peer = peer, .next = cell->first_holder};
	holder->added = take(ledger, ledger->words);
	holder->noted = take(ledger, ledger->words);
	holder->merged = take(ledger, ledger->words);
	if (pipes_stream(ledger) || ledger->plan->inner.steps > 0)
		holder->version = take(ledger, ledger->capacity);
	cell->first_holder = ledger->holders++;
	return holder;
}

/* How many steps a round's parameters lack. */
static uint32_t staleness(const struct ledger *ledger, uint32_t round)
{
	return ledger->plan->delayed && round > 0;
}

uint32_t books_staleness(const struct ledger *ledger, const struct holder *holder, uint32_t round, uint32_t microbatch)
{
	return holder->version ? round - (uint32_t)holder->version[microbatch] : staleness(ledger, round);
}

/* ---- what devices did ------------------------------------------------------------------------------------------ */

/* Both passes of a microbatch read the parameters that the round is to work on. */
static void check_version(
	struct ledger *ledger, struct skep_peer who, const struct skep_op *op, const struct effect *effect)
{
	uint32_t version = op->round - staleness(ledger, op->round);
	if (pipes_stream(ledger)) {
		stream_read(ledger, who, op, effect);
		return;
	}
	if (ledger->plan->inner.steps > 0) {
		(ledger->plan->async.on ? merge_read : inner_read)(ledger, who, op, effect);
		return;
	}
	if (effect->version != version)
		verdict_break(ledger->verdict, "I11", op->round, op->stage, op->microbatch,
			"worker %u, %s of round %u reads version %u of the parameters, not %u", who.index,
			skep_op_name(op->kind), op->round, effect->version, version);
}

void books_add_own(
	const struct ledger *ledger, const struct holder *holder, uint32_t round, uint32_t stage, uint64_t *sum)
{
	for (uint32_t m = 0; m < ledger->capacity; m++)
		for (uint32_t e = 0; bit(holder->added, m) && e < CLUSTER_ELEMENTS; e++)
			sum[e] +=
				symbol_gradient(round, round - books_staleness(ledger, holder, round, m), stage, m, e);
}

/* The sum over the bitmaps of all members, worked out anew from hashes. */
void books_expected_sum(struct ledger *ledger, uint32_t round, uint32_t stage, uint64_t *ret)
{
	struct cell *cell = &ledger->round[round].cell[stage];
	memset(ret, 0, CLUSTER_ELEMENTS * sizeof(*ret));
	for (uint32_t h = cell->first_holder; h != 0; h = ledger->holder[h].next)
		if (ledger->holder[h].member)
			books_add_own(ledger, &ledger->holder[h], round, stage, ret);
}

uint32_t books_counted(const struct ledger *ledger, const struct cell *cell)
{
	uint32_t counted = 0;
	for (uint32_t h = cell->first_holder; h != 0; h = ledger->holder[h].next)
		if (ledger->holder[h].member)
			counted += books_bits(ledger, ledger->holder[h].added);
	return counted;
}

bool books_same_sum(const struct ledger *ledger, const struct skep_op *op, const uint64_t *a, const uint64_t *b)
{
	const struct skep_plan *plan = ledger->plan;
	uint32_t vstage = op->stage,
		 mask = device_vstage_mask(plan, vstage) & device_fragment_mask(plan, op) &
	                device_shard_mask(plan, op, op->rank),
		 parameters = (uint32_t)plan->stage[vstage % plan->stages].parameters;
	for (uint32_t e = 0; e < parameters; e++)
		if (mask >> e & 1 && a[e] != b[e])
			return false;
	return true;
}

void books_check_parameters(
	struct ledger *ledger, struct skep_peer who, uint32_t version, uint32_t stage, const struct effect *effect)
{
	struct cell *cell = version > 0 ? &ledger->round[version - 1].cell[stage] : NULL;
	if (ledger->restarted[stage] && !books_member(ledger, who, stage, version)) /* it may hold what was lost */
		return;
	for (uint32_t e = 0; e < ledger->plan->stage[stage].parameters; e++) {
		if (!(effect->known >> e & 1))
			continue;
		if (cell && !(cell->known >> e & 1)) /* the first to step says what it is */
			cell->parameter[e] = effect->parameter[e];
		if (cell)
			cell->known |= 1u << e;
		if (effect->parameter[e] != (cell ? cell->parameter[e] : books_drawn(ledger, stage, e)))
			verdict_break(ledger->verdict, "I3", version, stage, ANY,
				"worker %u holds another element %u of stage %u, version %u, than its peers", who.index,
				e, stage, version);
	}
	tied_compare(ledger, who, version, stage, effect);
	struct membership *membership = &ledger->membership[who.index];
	if (membership->peer.epoch == who.epoch)
		membership->known = effect->known;
}

static void did_step(struct ledger *ledger, struct skep_peer who, const struct skep_op *op, const struct effect *effect)
{
	struct cell *cell = &ledger->round[op->round].cell[op->stage];
	struct holder *holder = books_holder(ledger, cell, who);
	uint64_t expected[CLUSTER_ELEMENTS];
	if (!holder->member && pipes_stream(ledger) && op->members == 1) {
		stream_stepped_alone(ledger, who, op, effect);
		return;
	}
	if (!holder->member && held_presumes(ledger, who, op, effect))
		return;
	if (!holder->member) {
		verdict_break(ledger->verdict, "I1b", op->round, op->stage, ANY,
			"worker %u (epoch %u) steps, but is no member of a committed reduction", who.index, who.epoch);
		return;
	}
	if (holder->stepped)
		verdict_break(ledger->verdict, "I1b", op->round, op->stage, ANY, "worker %u steps twice", who.index);
	holder->stepped = true;
	inner_summed(ledger, holder, op);
	if (op->members != cell->members || op->microbatches != books_counted(ledger, cell))
		verdict_break(ledger->verdict, "I1b", op->round, op->stage, ANY,
			"worker %u steps with %u members and divisor %u; %u members counted %u", who.index, op->members,
			op->microbatches, cell->members, books_counted(ledger, cell));
	books_expected_sum(ledger, op->round, op->stage, expected);
	/* with no microbatch counted nothing is applied, so the sum does not matter */
	if (op->microbatches > 0 && !books_same_sum(ledger, op, expected, effect->applied))
		verdict_break(ledger->verdict, "I1b", op->round, op->stage, ANY,
			"worker %u applies another sum than that of the microbatches counted", who.index);
	sound_step(ledger, who, op);
	tied_step(ledger, who, op, effect);
	if (op->stage + ledger->plan->stages >= skep_plan_vstages(ledger->plan)) /* the last one of its stage */
		books_check_parameters(ledger, who, op->round + 1, op->stage % ledger->plan->stages, effect);
}

void ledger_op_done(struct ledger *ledger, struct skep_peer who, const struct skep_op *op, const struct effect *effect)
{
	bool pipeline = op->kind == SKEP_OP_FORWARD || op->kind == SKEP_OP_BACKWARD;
	frozen_did(ledger, who, op, effect);
	if (op->kind == SKEP_OP_STEP || op->kind == SKEP_OP_LOAD || op->kind == SKEP_OP_RESTORE ||
		op->kind == SKEP_OP_STORE_SHARD)
		held_changed(ledger, who, op, effect);
	if (ledger->plan->async.on ? merge_did(ledger, who, op, effect)
				   : ledger->plan->gossip && gossip_did(ledger, who, op, effect))
		return;
	if (op->kind == SKEP_OP_LOAD) {
		books_check_parameters(ledger, who, effect->version, op->stage, effect);
		return;
	}
	if (op->kind == SKEP_OP_CHECKPOINT) {
		keeping_kept(ledger, who, op, effect);
		held_kept(ledger, who, op, true);
	} else if (op->kind == SKEP_OP_RESTORE)
		keeping_restored(ledger, who, op, effect);
	bool fused = op->kind == SKEP_OP_BACKWARD && op->inner > 0 && op->part + 1 == op->parts;
	bool inner = op->kind == SKEP_OP_INNER_STEP || op->kind == SKEP_OP_PSEUDO_GRAD || fused;
	if (inner && books_valid(ledger, "an operation", op->round, op->stage, 0))
		inner_did(ledger, who, op);
	if ((pipeline || op->kind == SKEP_OP_RECOMPUTE) && validation_names(ledger, op->microbatch)) {
		validation_op(ledger, who, op, effect);
		return;
	}
	if (op->kind == SKEP_OP_DISCARD && books_valid(ledger, "an operation", op->round, op->stage, 0))
		losses_discarded(ledger, who, op);
	bool gathers = op->kind == SKEP_OP_COPY_SHARD || op->kind == SKEP_OP_STORE_SHARD;
	if (op->kind == SKEP_OP_SAVE ||
		(op->kind >= SKEP_OP_ENTER && !gathers)) /* also as of the end of the last round */
		return;
	if (!books_valid(ledger, "an operation", op->round, op->stage, pipeline ? op->microbatch : 0))
		return;
	if (pipeline) {
		check_version(ledger, who, op, effect);
		pipes_passed(ledger, who, op);
	}
	if (op->kind == SKEP_OP_FORWARD) {
		sound_forward(ledger, who, op);
		travel_forward(ledger, who, op, effect->loss_nano);
	} else if (op->kind == SKEP_OP_BACKWARD && op->part + 1 >= op->parts) { /* in parts, the last one ends it */
		sound_passed_on(ledger, who, op->round, op->stage, op->microbatch);
		travel_backward(ledger, who, op);
	} else if (op->kind == SKEP_OP_STEP)
		did_step(ledger, who, op, effect);
	sharded_did(ledger, who, op, effect);
}

/* ---- what machines said ---------------------------------------------------------------------------------------- */

static bool time_up(const struct ledger *ledger)
{
	return ledger->plan->until.end_ns > 0 && ledger->rounds_closed > 0 &&
	       ledger->closed_ns >= ledger->plan->until.end_ns;
}

bool ledger_target_reached(const struct ledger *ledger)
{
	if (ledger->rounds_closed == 0)
		return false;
	if (ledger->plan->validation.every > 0)
		return validation_target_reached(ledger);
	const struct round *last = &ledger->round[ledger->rounds_closed - 1];
	return last->has_loss && last->loss_nano <= ledger->plan->until.target_loss_nano;
}

/* May the round open although the one before is not closed? It is the only one, it is being reduced, and no worker
 * needs the boundary between the two. */
static bool overlaps(const struct ledger *ledger, uint32_t round)
{
	if (pipes_stream(ledger))
		return stream_may_open(ledger, round);
	return ledger->plan->delayed && round == ledger->rounds_closed + 1 && round < ledger->plan->rounds &&
	       ledger->round[round - 1].reducing;
}

static void noted_opened(struct ledger *ledger, const struct skep_note *note)
{
	struct round *round = &ledger->round[note->round];
	if (round->open || round->closed || (note->round != ledger->rounds_closed && !overlaps(ledger, note->round)))
		verdict_break(ledger->verdict, "I1", note->round, ANY, ANY, "round %u opens after %u closed rounds",
			note->round, ledger->rounds_closed);
	if (ledger_target_reached(ledger))
		verdict_break(ledger->verdict, "I7", note->round, ANY, ANY,
			"round %u opens though the target loss is reached", note->round);
	if (time_up(ledger))
		verdict_break(ledger->verdict, "I7", note->round, ANY, ANY, "round %u opens though the time is up",
			note->round);
	if (validation_blocks(ledger, note->round))
		verdict_break(ledger->verdict, "I16", note->round, ANY, ANY,
			"round %u opens, and the validation before it has not been", note->round);
	membership_round_opens(ledger, note->round);
	pipes_round_opens(ledger, note->round);
	round->open = true;
}

static void noted_issued(struct ledger *ledger, const struct skep_note *note)
{
	struct round *round = &ledger->round[note->round];
	if (!round->open || !books_seated(ledger, note->peer, 0, note->round))
		verdict_break(ledger->verdict, "I4", note->round, 0, note->microbatch,
			"granted to worker %u (epoch %u), which does not serve the first stage in round %u",
			note->peer.index, note->peer.epoch, note->round);
	membership_granted(ledger, note);
	pipes_granted(ledger, note);
	if (note->granted <= 0 || note->microbatch + (uint64_t)note->granted > ledger->capacity) {
		verdict_break(ledger->verdict, "I5", note->round, 0, note->microbatch,
			"a grant of %lld from microbatch %u on passes the capacity %u", (long long)note->granted,
			note->microbatch, ledger->capacity);
		return;
	}
	for (uint32_t m = note->microbatch; m < note->microbatch + (uint32_t)note->granted; m++) {
		if (bit(round->issued, m))
			verdict_break(ledger->verdict, "I1", note->round, 0, m, "microbatch %u is granted twice", m);
		set_bit(round->issued, m);
		round->owner[m] = note->peer;
		round->issued_count++;
	}
}

static void noted_member(struct ledger *ledger, const struct skep_note *note)
{
	struct cell *cell = &ledger->round[note->round].cell[note->stage];
	struct holder *holder = books_holder(ledger, cell, note->peer);
	if (!books_member(ledger, note->peer, note->stage % ledger->plan->stages, note->round))
		verdict_break(ledger->verdict, "I1", note->round, note->stage, ANY,
			"member %u (epoch %u) is fenced, or not of this stage, or joined later", note->peer.index,
			note->peer.epoch);
	if (holder->member)
		verdict_break(ledger->verdict, "I1", note->round, note->stage, ANY, "worker %u is named member twice",
			note->peer.index);
	if (note->microbatches != (int64_t)books_bits(ledger, holder->added))
		verdict_break(ledger->verdict, "I1", note->round, note->stage, ANY,
			"member %u is said to have counted %lld, but added %u", note->peer.index,
			(long long)note->microbatches, books_bits(ledger, holder->added));
	losses_member(ledger, holder, note->round, note->stage);
	holder->member = true;
	cell->members++;
}

static void noted_lost(struct ledger *ledger, const struct skep_note *note)
{
	struct round *round = &ledger->round[note->round];
	for (uint32_t i = 0; i < 64; i++) {
		uint32_t m = note->microbatch + i;
		if (!(note->bits >> i & 1))
			continue;
		if (m >= ledger->capacity || !bit(round->issued, m) || bit(round->cell[note->stage].lost, m)) {
			verdict_break(ledger->verdict, "I1", note->round, note->stage, m,
				"microbatch %u is reported lost, but was never granted or is lost already", m);
			return;
		}
		set_bit(round->cell[note->stage].lost, m);
	}
}

static void noted_committed(struct ledger *ledger, const struct skep_note *note)
{
	struct cell *cell = &ledger->round[note->round].cell[note->stage];
	/* A stage that had to wait for others may have lost its members, and been restored, before its commit. */
	uint32_t stage = note->stage % ledger->plan->stages;
	bool waits = ledger->plan->clip || ledger->plan->together;
	bool empty = ledger->empty[stage] || (waits && ledger->restarted[stage]);
	if (cell->committed || (cell->members == 0 && !empty && !ledger->plan->async.on))
		verdict_break(ledger->verdict, "I1", note->round, note->stage, ANY,
			"stage %u is committed twice or without a member", note->stage);
	const struct round *round = &ledger->round[note->round];
	bool eager = round->eager && !round->reducing && cell->members > 0; /* no worker can be asked */
	if (eager && books_bits(ledger, round->finished) < inner_quota(ledger->plan, note->round))
		verdict_break(ledger->verdict, "I9", note->round, note->stage, ANY,
			"stage %u is committed as was promised, after %u of %u microbatches", note->stage,
			books_bits(ledger, round->finished), inner_quota(ledger->plan, note->round));
	if (pipes_stream(ledger))
		stream_committed(ledger, note, cell);
	outage_committed(ledger, note);
	cell->committed = true;
	cell->counted = note->counted;
	cell->lost_count = (uint32_t)note->lost;
}

static void noted_counted(struct ledger *ledger, struct skep_peer who, const struct skep_note *note)
{
	struct holder *holder = books_holder(ledger, &ledger->round[note->round].cell[note->stage], who);
	if (!bit(holder->added, note->microbatch) || bit(holder->noted, note->microbatch))
		verdict_break(ledger->verdict, "I1", note->round, note->stage, note->microbatch,
			"worker %u (epoch %u) says it counted microbatch %u: twice, or it did not", who.index,
			who.epoch, note->microbatch);
	set_bit(holder->noted, note->microbatch);
	uint32_t lacked = books_staleness(ledger, holder, note->round, note->microbatch);
	if (skep_plan_waves(ledger->plan)) {
		uint32_t others = stream_lacked(ledger->plan, note->round, note->microbatch, note->round - lacked);
		if (skep_note_lacked(note->staleness) != others ||
			skep_note_lacked_own(note->staleness) >= pipes_held(ledger->plan, note->stage))
			verdict_break(ledger->verdict, "I11", note->round, note->stage, note->microbatch,
				"worker %u says that microbatch %u lacked %u of others and %u of its own, not %u and fewer "
				"than %u",
				who.index, note->microbatch, skep_note_lacked(note->staleness),
				skep_note_lacked_own(note->staleness), others, pipes_held(ledger->plan, note->stage));
		return;
	}
	if (note->staleness != lacked)
		verdict_break(ledger->verdict, "I11", note->round, note->stage, note->microbatch,
			"worker %u says that microbatch %u has staleness %lld, not %u", who.index, note->microbatch,
			(long long)note->staleness, lacked);
}

static void noted_loss(struct ledger *ledger, const struct skep_note *note)
{
	struct round *round = &ledger->round[note->round];
	round->has_loss = true;
	round->loss_nano = note->loss_nano;
}

static void noted_closed(struct ledger *ledger, const struct skep_note *note)
{
	struct round *round = &ledger->round[note->round];
	if (!round->open || round->closed || note->issued != round->issued_count)
		verdict_break(ledger->verdict, "I1", note->round, ANY, ANY,
			"round %u closes, but it is not open, or not %u were issued but %u", note->round, note->issued,
			round->issued_count);
	audit_round(ledger, note->round);
	pipes_round_closes(ledger, note->round);
	round->open = false;
	round->closed = true;
	ledger->rounds_closed++;
	ledger->closed_ns = ledger->now;
}

/* The run may fail when a stage has waited for as long as the plan says. */
static bool waited(const struct ledger *ledger, uint32_t stage)
{
	bool long_enough = ledger->now - ledger->empty_ns[stage] >= ledger->plan->liveness.wait_for_join_ns;
	return ledger->empty[stage] && (long_enough || skep_plan_is_tied(ledger->plan, stage)); /* those do not wait */
}

static void noted_stopped(struct ledger *ledger, const struct skep_note *note)
{
	bool target = ledger_target_reached(ledger);
	bool good = !note->ok ? ledger->diverged || ledger->shard_lost || waited(ledger, note->stage) ||
	                                pipes_waited(ledger) || losses_waited(ledger, note->stage)
	                      : target || ledger_is_late(ledger) || ledger->rounds_closed == ledger->plan->rounds;
	bool behind = ledger->resumed && ledger->plan->first_round == ledger->plan->rounds;
	if (note->ok && !behind && validation_missing(ledger))
		verdict_break(ledger->verdict, "I16", note->round, ANY, ANY,
			"the run stops, and its last validation has not been");
	if (ledger->stopped || !good || note->round != ledger->rounds_closed)
		verdict_break(ledger->verdict, "I7", note->round, ANY, ANY,
			"the run stops (ok = %lld, %u rounds) after %u of %u rounds, target %sreached, stage %sempty",
			(long long)note->ok, note->round, ledger->rounds_closed, ledger->plan->rounds,
			target ? "" : "not ", books_any_empty(ledger) ? "" : "not ");
	if (note->ok)
		scale_round_opens(ledger, note->round);
	ledger->stopped = true;
}

static void directory_said(struct ledger *ledger, const struct skep_note *note)
{
	bool about_round = (note->kind <= SKEP_NOTE_ROUND_CLOSED);
	if (ledger->resumed_due || note->kind == SKEP_NOTE_RESUMED)
		outage_noted(ledger, note);
	if (about_round && !books_valid(ledger, "a note", note->round, note->stage, 0))
		return;
	bool about_peer = note->kind == SKEP_NOTE_ISSUED || note->kind == SKEP_NOTE_RERUN ||
	                  note->kind == SKEP_NOTE_MEMBER || note->kind == SKEP_NOTE_ADMITTED ||
	                  note->kind == SKEP_NOTE_OUTER_UPDATED || note->kind == SKEP_NOTE_SHARD_LOST ||
	                  (note->kind >= SKEP_NOTE_FENCED && note->kind <= SKEP_NOTE_MIGRATED);
	bool sliced = note->kind == SKEP_NOTE_MEMBER || note->kind == SKEP_NOTE_LOST ||
	              note->kind == SKEP_NOTE_STAGE_COMMITTED || note->kind == SKEP_NOTE_DIVERGED;
	uint32_t stages = sliced ? skep_plan_vstages(ledger->plan) : ledger->plan->stages;
	bool homeless = note->stage == (uint16_t)SKEP_NO_STAGE && /* had none yet; or it is not about one */
	                (note->kind == SKEP_NOTE_FENCED ||
				(note->kind == SKEP_NOTE_STOPPED && (ledger->diverged || ledger->shard_lost)));
	if ((about_peer && note->peer.index >= ledger->plan->workers) || (note->stage >= stages && !homeless)) {
		verdict_break(ledger->verdict, "I6", note->round, note->stage, ANY, "a note names worker %u, stage %u",
			note->peer.index, note->stage);
		return;
	}
	if (about_round && ledger->round[note->round].closed)
		verdict_break(ledger->verdict, "I1", note->round, note->stage, note->microbatch,
			"a note of kind %u speaks of round %u, which is closed", note->kind, note->round);
	static void (*const act[SKEP_NOTE_KINDS])(struct ledger *, const struct skep_note *) = {
		[SKEP_NOTE_ROUND_OPENED] = noted_opened,
		[SKEP_NOTE_ISSUED] = noted_issued,
		[SKEP_NOTE_RERUN] = travel_rerun,
		[SKEP_NOTE_MEMBER] = noted_member,
		[SKEP_NOTE_LOST] = noted_lost,
		[SKEP_NOTE_STAGE_COMMITTED] = noted_committed,
		[SKEP_NOTE_LOSS] = noted_loss,
		[SKEP_NOTE_ROUND_CLOSED] = noted_closed,
		[SKEP_NOTE_FENCED] = membership_fenced,
		[SKEP_NOTE_ADMITTED] = membership_admitted,
		[SKEP_NOTE_JOINED] = membership_joined,
		[SKEP_NOTE_LEFT] = membership_left,
		[SKEP_NOTE_MIGRATED] = membership_moved,
		[SKEP_NOTE_STAGE_EMPTY] = losses_emptied,
		[SKEP_NOTE_STAGE_RESTARTED] = losses_restarted,
		[SKEP_NOTE_CHECKPOINTED] = keeping_noted,
		[SKEP_NOTE_VALIDATING] = validation_noted,
		[SKEP_NOTE_VALIDATED] = validation_noted,
		[SKEP_NOTE_DIVERGED] = sound_diverged,
		[SKEP_NOTE_CHECKPOINT_FAILED] = sound_unkept,
		[SKEP_NOTE_OUTER_UPDATED] = merge_noted,
		[SKEP_NOTE_ROUND_VOIDED] = losses_voided,
		[SKEP_NOTE_SHARD_LOST] = sharded_lost,
		[SKEP_NOTE_STOPPED] = noted_stopped};
	if (note->kind == SKEP_NOTE_FENCED)
		losses_fenced(ledger, note);
	else if (about_round)
		losses_goes_on(ledger, note);
	if (act[note->kind] != NULL) /* UNEQUAL is the cluster's */
		act[note->kind](ledger, note);
	losses_changed(ledger);
	if (note->kind >= SKEP_NOTE_FENCED && note->kind <= SKEP_NOTE_MIGRATED)
		pipes_changed(ledger, note);
}

static void said(struct ledger *ledger, struct skep_peer who, const struct skep_note *note)
{
	bool worker_kind = note->kind == SKEP_NOTE_COUNTED || note->kind == SKEP_NOTE_OVERFLOW;
	if (note->kind == 0 || note->kind >= SKEP_NOTE_KINDS || worker_kind != (who.index < ledger->plan->workers))
		verdict_break(ledger->verdict, "I6", note->round, note->stage, note->microbatch,
			"machine %u may not write a note of kind %u", who.index, note->kind);
	else if (note->kind == SKEP_NOTE_OVERFLOW)
		pipes_overflowed(ledger, who, note);
	else if (note->kind == SKEP_NOTE_SCALED || note->kind == SKEP_NOTE_RETURNED)
		scale_noted(ledger, note);
	else if (!worker_kind)
		directory_said(ledger, note);
	else if (note->kind == SKEP_NOTE_COUNTED &&
		 books_valid(ledger, "a note", note->round, note->stage, note->microbatch))
		noted_counted(ledger, who, note);
}

void ledger_action(struct ledger *ledger, skep_time now, struct skep_peer who, const struct skep_action *action)
{
	ledger->now = now;
	if (action->kind == SKEP_ACTION_NOTE)
		said(ledger, who, &action->u.note);
	else if (action->kind == SKEP_ACTION_SEND)
		books_sent(ledger, who, &action->u.send);
	else if (action->kind == 0 || action->kind > SKEP_ACTION_CANCEL)
		verdict_break(ledger->verdict, "I6", ANY, ANY, ANY, "machine %u returns an action of kind %u",
			who.index, action->kind);
}
