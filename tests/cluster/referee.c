/* SPDX-License-Identifier: Apache-2.0
 *
 * referee.c - see referee.h. What it demands of a trial is I19 in README.md.
 */
#include "tests/cluster/referee.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cluster/ledger_internal.h"

#define UNKNOWN 0xffu
#define EPOCHS 64u /* of a worker; two that are so far apart are never both in use */

struct referee {
	const struct skep_plan *plan;
	struct verdict *verdict;
	struct ledger *ledger[CLUSTER_CANDIDATES];
	/* What the ledgers are told: each its own workers, and no target before one is kept. */
	struct skep_plan own[CLUSTER_CANDIDATES];
	uint32_t first_stage_of[CLUSTER_CANDIDATES][CLUSTER_WORKERS];
	uint8_t home[CLUSTER_WORKERS][EPOCHS];
	uint32_t candidates;
	bool on, out[CLUSTER_CANDIDATES];
	uint32_t kept;
	bool coming; /* the others have not all come over yet */
	uint32_t losses[CLUSTER_CANDIDATES];
	int64_t loss_nano[CLUSTER_CANDIDATES][CLUSTER_ROUNDS]; /* of the round, or the one before */
};

struct referee *referee_create(void)
{
	struct referee *referee = calloc(1, sizeof *referee);
	if (referee)
		referee->ledger[0] = ledger_create();
	return referee;
}

void referee_destroy(struct referee *referee)
{
	for (uint32_t k = 0; referee && k < CLUSTER_CANDIDATES; k++)
		if (referee->ledger[k])
			ledger_destroy(referee->ledger[k]);
	free(referee);
}

uint32_t referee_candidate(const struct skep_plan *plan, uint32_t worker)
{
	uint32_t place = 0;
	for (uint32_t w = 0; w < worker; w++)
		place += plan->first_stage_of[w] == plan->first_stage_of[worker];
	return plan->candidates.count > 1 && plan->first_stage_of[worker] != SKEP_NO_STAGE
	               ? place % plan->candidates.count
	               : 0;
}

void referee_begin(
	struct referee *r, const struct skep_plan *plan, uint32_t capacity, uint32_t view, struct verdict *verdict)
{
	r->plan = plan;
	r->verdict = verdict;
	r->on = plan->candidates.count > 1;
	r->candidates = r->on ? plan->candidates.count : 1;
	r->kept = 0;
	r->coming = false;
	memset(r->home, UNKNOWN, sizeof r->home);
	for (uint32_t k = 0; k < r->candidates; k++) {
		r->out[k] = false;
		r->losses[k] = 0;
		r->own[k] = *plan;
		r->own[k].first_stage_of = r->on ? r->first_stage_of[k] : plan->first_stage_of;
		r->own[k].until.target_loss_nano = r->on ? INT64_MIN : plan->until.target_loss_nano;
		for (uint32_t w = 0; r->on && w < plan->workers; w++) {
			bool here = referee_candidate(plan, w) == k;
			r->first_stage_of[k][w] = here ? plan->first_stage_of[w] : SKEP_NO_STAGE;
			r->home[w][1] = (uint8_t)referee_candidate(plan, w);
		}
		if (!r->ledger[k])
			r->ledger[k] = ledger_create();
		ledger_begin(r->ledger[k], &r->own[k], capacity, view, verdict);
		r->ledger[k]->candidate = k;
		resumed_books(r->ledger[k]);
	}
}

void referee_lost(struct referee *r)
{
	assert(r->candidates == 1);
	r->ledger[0]->lost = true;
}

void referee_resumes(struct referee *r, const struct skep_plan *plan, uint64_t stayed)
{
	assert(r->candidates == 1);
	r->plan = plan;
	uint32_t began = r->own[0].first_round;
	r->own[0].first_round = plan->first_round;
	outage_begins(r->ledger[0], began, stayed);
}

static uint32_t home_of(const struct referee *r, struct skep_peer who)
{
	uint8_t home = who.index < r->plan->workers ? r->home[who.index][who.epoch % EPOCHS] : UNKNOWN;
	return home == UNKNOWN ? r->kept : home;
}

/* ---- notes ---------------------------------------------------------------------------------------------------------- */

static void hand(struct referee *r, skep_time now, uint32_t k, struct skep_note note)
{
	struct skep_action action = {.kind = SKEP_ACTION_NOTE, .u.note = note};
	ledger_action(r->ledger[k], now, (struct skep_peer){r->plan->workers, 1}, &action);
}

/* By least squares over the last half of the rounds, the line's value as many rounds ahead as there are points. */
static double expected(const struct referee *r, uint32_t k)
{
	uint32_t rounds = r->plan->candidates.rounds, m = rounds > 4 ? (rounds + 1) / 2 : 2;
	double t = 0, y = 0, tt = 0, ty = 0;
	for (uint32_t i = rounds - m; i < rounds; i++) {
		double loss = (double)r->loss_nano[k][i];
		if (r->loss_nano[k][i] == INT64_MAX)
			return (double)INT64_MAX;
		t += i;
		y += loss;
		tt += (double)i * i;
		ty += i * loss;
	}
	double slope = (m * ty - t * y) / (m * tt - t * t);
	return (y - slope * t) / m + slope * (rounds - 1 + m);
}

static uint32_t in_count(const struct referee *r)
{
	uint32_t in = 0;
	for (uint32_t k = 0; k < r->candidates; k++)
		in += !r->out[k];
	return in;
}

static void noted_out(struct referee *r, const struct skep_note *note)
{
	uint32_t k = note->candidate;
	bool fault = note->fault.kind != SKEP_FAULT_NONE;
	bool reason = false, in = r->on && k < r->candidates && !r->out[k] && in_count(r) > 1;
	if (in && !fault)
		reason = !books_stage_has_worker(r->ledger[k], note->stage);
	for (uint32_t i = 0; in && i < r->ledger[k]->ailments; i++)
		reason |= fault && r->ledger[k]->ailment[i].fault == note->fault.kind;
	if (!in || !reason) {
		verdict_break(r->verdict, "I19", note->round, ANY, ANY,
			"candidate %u is out, and was before, or is the last one, or has no reason", k);
		return;
	}
	r->out[k] = true;
	r->own[k].on_loss = SKEP_ON_LOSS_REPORT;
}

/* No worker is left in a stage of a candidate that is out, before anything of it is given up. */
static void all_gone(struct referee *r, skep_time now, uint32_t k, const struct skep_note *note)
{
	bool gives_up = note->kind == SKEP_NOTE_LOST || note->kind == SKEP_NOTE_STAGE_COMMITTED;
	if (k < r->candidates && r->out[k] && gives_up && !r->ledger[k]->empty[note->stage])
		hand(r, now, k,
			(struct skep_note){.kind = SKEP_NOTE_STAGE_EMPTY, .stage = note->stage, .round = note->round});
}

static void noted_kept(struct referee *r, const struct skep_note *note)
{
	uint32_t k = note->candidate;
	bool last = r->on && in_count(r) == 1, good = r->on && k < r->candidates && !r->out[k];
	for (uint32_t other = 0; good && !last && other < r->candidates; other++) {
		bool whole = r->out[other] || (r->losses[other] == r->plan->candidates.rounds &&
						      !r->ledger[other]->round[r->plan->candidates.rounds - 1].open);
		good = whole && (r->out[other] || expected(r, k) <= expected(r, other) + 4);
	}
	double difference = good && !last ? (double)note->loss_nano - expected(r, k) : 0;
	if (!good || difference > 4 || difference < -4)
		verdict_break(r->verdict, "I19", note->round, ANY, ANY,
			"candidate %u is kept, with %lld expected: it is out, or not the best, or it is too early", k,
			(long long)note->loss_nano);
	else
		r->kept = k;
	r->on = false;
	r->coming = true;
	r->own[r->kept].until.target_loss_nano = r->plan->until.target_loss_nano;
	struct ledger *ledger = r->ledger[r->kept];
	if (ledger->round[ledger->rounds_closed].open &&
		ledger->rounds_closed > 0) /* no round before this one ends the run */
		ledger->round[ledger->rounds_closed - 1].has_loss = false;
}

/* Who worked for another candidate comes over before a round opens. */
static void noted_moved(struct referee *r, const struct skep_note *note, uint32_t from)
{
	struct membership *membership = &r->ledger[from]->membership[note->peer.index];
	const struct ledger *to = r->ledger[r->kept];
	bool between =
		to->rounds_closed > 0 && !to->round[to->rounds_closed].open && !to->round[to->rounds_closed - 1].open;
	bool known = membership->peer.epoch == note->peer.epoch || (!membership->in && !membership->admitted);
	if (!r->coming || !between || !known || note->candidate > 0 || note->stage >= r->plan->stages)
		verdict_break(r->verdict, "I19", note->round, note->stage, ANY,
			"worker %u (epoch %u) comes from candidate %u, but was not there, or not between two rounds",
			note->peer.index, note->peer.epoch, from);
	membership->in = membership->admitted = false;
}

/* Where the ledger of its candidate has it; NULL: it was on its way there, and no ledger has seen it. */
static const struct membership *membership_of(const struct referee *r, struct skep_peer who)
{
	const struct membership *membership = &r->ledger[home_of(r, who)]->membership[who.index];
	return (membership->in || membership->admitted) && membership->peer.epoch == who.epoch ? membership : NULL;
}

/* Its candidate is out, and it goes to another one. */
static bool is_released(const struct referee *r, const struct skep_note *note)
{
	if (note->kind != SKEP_NOTE_MIGRATED || !r->on || note->peer.index >= r->plan->workers)
		return false;
	return r->out[home_of(r, note->peer)] || (in_count(r) < r->candidates && !membership_of(r, note->peer));
}

static void noted_released(struct referee *r, skep_time now, const struct skep_note *note)
{
	uint32_t to = note->candidate;
	const struct membership *membership = membership_of(r, note->peer);
	if (to >= r->candidates || r->out[to]) {
		verdict_break(r->verdict, "I19", note->round, note->stage, ANY,
			"worker %u goes to candidate %u, which is out", note->peer.index, to);
		return;
	}
	if (membership) {
		struct skep_note end = {
			.kind = SKEP_NOTE_FENCED, .stage = (uint16_t)membership->stage, .peer = note->peer};
		hand(r, now, home_of(r, note->peer), end);
	}
	r->home[note->peer.index][(note->peer.epoch + 1) % EPOCHS] = (uint8_t)to;
}

/* The candidates' losses go on where one was not told of: nothing was counted. */
static void fill(struct referee *r, uint32_t k, uint32_t rounds)
{
	for (; r->losses[k] < rounds; r->losses[k]++) {
		uint32_t i = r->losses[k];
		r->loss_nano[k][i] = i > 0 ? r->loss_nano[k][i - 1] : INT64_MAX;
	}
}

static void noted_loss(struct referee *r, skep_time now, struct skep_note note)
{
	uint32_t k = note.candidate;
	if (!r->on || k >= r->candidates || note.round >= r->plan->candidates.rounds) {
		verdict_break(r->verdict, "I19", note.round, ANY, ANY, "a loss of candidate %u: there is none", k);
		return;
	}
	fill(r, k, note.round);
	r->loss_nano[k][note.round] = note.loss_nano;
	r->losses[k] = note.round + 1;
	note.kind = SKEP_NOTE_LOSS;
	note.stage = 0;
	hand(r, now, k, note);
}

static void noted_opened(struct referee *r, skep_time now, const struct skep_note *note)
{
	for (uint32_t k = 0; k < r->candidates; k++) {
		bool over = r->on ? r->out[k] : r->coming && k != r->kept;
		for (uint32_t w = 0; over && w < r->plan->workers; w++)
			if (r->ledger[k]->membership[w].in)
				verdict_break(r->verdict, "I19", note->round, ANY, ANY,
					"worker %u still works for candidate %u, which is out, or was not kept", w, k);
		if (r->on ? !r->out[k] : k == r->kept)
			hand(r, now, k, *note);
	}
	r->coming = false;
}

/* All that had it open. */
static void noted_closed(struct referee *r, skep_time now, const struct skep_note *note)
{
	uint32_t issued = 0;
	for (uint32_t k = 0; k < r->candidates && note->round < r->plan->rounds; k++) {
		struct round *round = &r->ledger[k]->round[note->round];
		struct skep_note own = *note;
		if (!round->open)
			continue;
		if (r->on)
			fill(r, k, note->round + 1);
		issued += round->issued_count;
		own.issued = round->issued_count;
		hand(r, now, k, own);
	}
	if (issued != note->issued)
		verdict_break(r->verdict, "I19", note->round, ANY, ANY, "round %u closes with %u issued, not %u",
			note->round, note->issued, issued);
}

/* It worked for another candidate, or was on its way to one. */
static bool comes_over(const struct referee *r, const struct skep_note *note)
{
	if (note->kind != SKEP_NOTE_MIGRATED || !r->coming || note->peer.index >= r->plan->workers)
		return false;
	const struct membership *membership = &r->ledger[r->kept]->membership[note->peer.index];
	return !membership->in || membership->peer.epoch != note->peer.epoch;
}

static void directory_said(struct referee *r, skep_time now, struct skep_note note)
{
	uint32_t stages = r->plan->stages, k = r->kept;
	bool homeless = note.stage == (uint16_t)SKEP_NO_STAGE;
	bool leaves = note.kind == SKEP_NOTE_FENCED || note.kind == SKEP_NOTE_LEFT || note.kind == SKEP_NOTE_MIGRATED;
	uint32_t from = leaves && note.peer.index < r->plan->workers ? home_of(r, note.peer) : k;
	if (note.kind == SKEP_NOTE_CANDIDATE_LOSS)
		noted_loss(r, now, note);
	else if (note.kind == SKEP_NOTE_CANDIDATE_DROPPED)
		noted_out(r, &note);
	else if (note.kind == SKEP_NOTE_CANDIDATE_CHOSEN)
		noted_kept(r, &note);
	else if (note.kind == SKEP_NOTE_ROUND_OPENED)
		noted_opened(r, now, &note);
	else if (note.kind == SKEP_NOTE_ROUND_CLOSED)
		noted_closed(r, now, &note);
	else if (is_released(r, &note))
		noted_released(r, now, &note);
	else if (comes_over(r, &note))
		noted_moved(r, &note, from == k ? (k + 1) % r->candidates : from);
	else if (r->on && homeless) {
		hand(r, now, from, note);
	} else if (note.candidate >= r->candidates || (note.stage >= stages && !homeless)) {
		verdict_break(r->verdict, "I6", note.round, note.stage, ANY, "a note names stage %u", note.stage);
	} else {
		bool other = r->on || (r->coming && leaves && note.candidate > 0) || (leaves && from != k && !homeless);
		k = !other ? k : !r->on && note.candidate == 0 ? from : note.candidate;
		if (note.kind == SKEP_NOTE_ADMITTED && note.peer.index < r->plan->workers)
			r->home[note.peer.index][note.peer.epoch % EPOCHS] = (uint8_t)k;
		if (note.kind == SKEP_NOTE_MIGRATED && note.peer.index < r->plan->workers)
			r->home[note.peer.index][(note.peer.epoch + 1) % EPOCHS] = (uint8_t)k;
		if (note.kind == SKEP_NOTE_LEFT && !r->on && k != r->kept)
			noted_moved(r, &(struct skep_note){.peer = note.peer}, k);
		else {
			all_gone(r, now, k, &note);
			hand(r, now, k, note);
		}
	}
}

/* ---- all the rest, by whose it is ------------------------------------------------------------------------------------- */

void referee_action(struct referee *r, skep_time now, struct skep_peer who, const struct skep_action *action)
{
	bool directory = who.index == r->plan->workers;
	uint32_t k = home_of(r, who);
	if (r->candidates > 1 && directory && action->kind == SKEP_ACTION_NOTE) {
		directory_said(r, now, action->u.note);
		return;
	}
	if (directory && action->kind == SKEP_ACTION_SEND)
		k = home_of(r, action->u.send.to);
	if (directory && action->kind == SKEP_ACTION_SCALE && r->plan->scale != NULL)
		scale_asked(r->ledger[k], action);
	else
		ledger_action(r->ledger[k], now, who, action);
}

void referee_arrived(struct referee *r, struct skep_peer who, const struct skep_message *message)
{
	bool directory = who.index == r->plan->workers;
	ledger_arrived(r->ledger[home_of(r, directory ? message->from : who)], who, message);
}

void referee_came_back(struct referee *r, const struct skep_message *message)
{
	bool directory = message->from.index == r->plan->workers;
	ledger_came_back(r->ledger[home_of(r, directory ? message->to : message->from)], message);
}

void referee_op_done(struct referee *r, struct skep_peer who, const struct skep_op *op, const struct effect *effect)
{
	ledger_op_done(r->ledger[home_of(r, who)], who, op, effect);
}

void referee_ailed(struct referee *r, struct skep_peer who, const struct skep_op *op, uint8_t fault)
{
	ledger_ailed(r->ledger[home_of(r, who)], who, op, fault);
	if (op->kind == SKEP_OP_CHECKPOINT)
		held_kept(r->ledger[home_of(r, who)], who, op, false);
}

void referee_end(struct referee *r, enum skep_outcome outcome, const uint32_t *epoch)
{
	if (r->on)
		verdict_break(r->verdict, "I19", ANY, ANY, ANY, "the run ended, and no candidate is kept");
	ledger_end(r->ledger[r->kept], outcome, epoch);
}

struct ledger_totals referee_totals(const struct referee *r)
{
	struct ledger_totals sum = ledger_totals(r->ledger[r->kept]);
	for (uint32_t k = 0; k < r->candidates; k++) {
		struct ledger_totals totals = ledger_totals(r->ledger[k]);
		if (k == r->kept)
			continue;
		sum.issued += totals.issued;
		sum.counted += totals.counted;
		sum.lost += totals.lost;
		sum.given_back += totals.given_back;
	}
	return sum;
}
