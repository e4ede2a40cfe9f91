/* SPDX-License-Identifier: Apache-2.0
 *
 * candidates.c - parallel random initialisation: K candidates for the first parameters, each trained for some rounds by a
 * part of the workers; the best is kept, and all go on with that one.
 *
 * Worker i of a stage, in the order of indices, begins in candidate i mod K (skep_plan_candidate_of()). So each candidate is
 * a swarm of its own, with its own directory: the machines below this one are directories as there are without a trial, each
 * of which knows the workers of its candidate and no others. Grants, wiring, reductions, fences, joins and moves are what
 * they are everywhere, and nothing of one candidate can reach another. This file decides three things:
 *
 *   who belongs where   What a worker says goes to the directory of its candidate. One that joins and has no place goes to
 *                       the candidate whose smallest stage is the smallest; that one chooses the stage.
 *   the round           All candidates are in the same one: a candidate that has closed it (`held`) waits for the
 *                       others. ROUND_OPENED and ROUND_CLOSED are this file's notes, one for all. Microbatches have the
 *                       same numbers in all candidates, so each trains on the same samples, and they differ by their
 *                       seeds alone.
 *   who is kept         After plan->candidates.rounds rounds, by the losses (candidates.h), a tie going to the lower
 *                       number. A candidate that loses the last worker of a stage, or whose numbers are not finite, is
 *                       out at once: its workers move to the others, each to the stage that it had. When one is left
 *                       the trial is over, whatever it does. A worker that has died undetected is moved like them; in
 *                       its new
 * place it is silent, and fenced for that.
 *
 * Then that directory is the directory, and is asked about everything. Workers of the others move to it (MIGRATED): to the
 * stage that they had, as newcomers, who download its state. Notes of a trial name stage `candidate * stages + stage`; later
 * ones name stages. What a candidate has learnt that is not kept is gone, and was counted as any other: its rounds are
 * balanced like all rounds.
 *
 * In a trial there is no target loss, no validation and no checkpoint, and no stage waits to be restored.
 */
#include "core/methods/candidates.h"

#include <assert.h>

#include "core/directory/directory.h"
#include "core/random.h"

/* ---- the rule ----------------------------------------------------------------------------------------------------- */

void skep_candidates_begin(struct skep_candidate_points *points)
{
	*points = (struct skep_candidate_points){.last_nano = INT64_MAX};
}

static int64_t within(int64_t value, int64_t limit)
{
	return value > limit ? limit : value < -limit ? -limit : value;
}

void skep_candidate_point(struct skep_candidate_points *points, uint32_t round, uint32_t rounds)
{
	assert(round < rounds);
	int64_t window = skep_candidate_window(rounds), i = (int64_t)round - (rounds - window);
	if (i < 0)
		return;
	points->lacking |= points->last_nano == INT64_MAX;
	int64_t loss_nano = within(points->last_nano, INT64_MAX / 2 / (window * window));
	points->sum += loss_nano;
	points->moment += (2 * i - (window - 1)) * loss_nano;
}

int64_t skep_candidate_expected(const struct skep_candidate_points *points, uint32_t rounds)
{
	int64_t window = skep_candidate_window(rounds), ahead = 3 * window - 1;
	int64_t spread = window * (window * window - 1) / 3;
	int64_t slope = points->moment / spread, rest = points->moment % spread;
	int64_t expected = points->sum / window + slope * ahead + rest * ahead / spread;
	return points->lacking ? INT64_MAX : expected;
}

/* ---- set-up --------------------------------------------------------------------------------------------------------- */

struct candidates {
	struct skep_node node;
	bool over;
	uint32_t kept;     /* when it is over */
	uint32_t round;    /* that is open, or closed last */
	uint32_t given_up; /* microbatches of it by candidates that are out */
	size_t home_at, candidate_at, candidate_bytes;
};

static struct directory *candidate(struct candidates *t, uint32_t k)
{
	assert(t->candidate_bytes > 0);
	return skep_at(t, t->candidate_at + k * t->candidate_bytes);
}

static uint32_t *homes(struct candidates *t) /* [workers] */
{
	return skep_at(t, t->home_at);
}

static size_t lay_out(struct candidates *t, const struct skep_plan *plan)
{
	t->home_at = skep_align(sizeof *t);
	t->candidate_at = t->home_at + skep_align(plan->workers * sizeof(uint32_t));
	struct skep_methods how = skep_methods_of_directory(plan, skep_method_of(plan));
	t->candidate_bytes = skep_align(skep_directory_size(plan, &how));
	return t->candidate_at + plan->candidates.count * t->candidate_bytes;
}

size_t skep_candidates_size(const struct skep_plan *plan)
{
	struct candidates t;
	return lay_out(&t, plan);
}

uint32_t skep_candidates_actions_limit(const struct skep_plan *plan)
{
	struct skep_methods how = skep_methods_of_directory(plan, skep_method_of(plan));
	return plan->candidates.count * skep_directory_actions_limit(plan, &how) + 8 + 4 * plan->workers;
}

static void unseat(struct directory *d, const struct skep_plan *plan)
{
	for (uint32_t i = 0; i < plan->workers; i++) {
		struct row *row = directory_row(d, i);
		if (row->standing == STANDING_ABSENT || skep_plan_candidate_of(plan, i) == d->candidacy.candidate)
			continue;
		skep_directory_count_out(d, row);
		skep_directory_stand(row, STANDING_ABSENT);
	}
}

uint32_t skep_candidates_kept(const struct skep_node *node, const struct skep_plan *plan)
{
	struct candidates *t = (struct candidates *)node;
	return t->over ? skep_directory_kept(&candidate(t, t->kept)->node, plan) : plan->first_round;
}

void skep_candidates_init_node(void *mem, const struct skep_plan *plan)
{
	struct candidates *t = mem;
	struct skep_methods how = skep_methods_of_directory(plan, skep_method_of(plan));
	lay_out(t, plan);
	for (uint32_t i = 0; i < plan->workers; i++)
		homes(t)[i] = skep_plan_candidate_of(plan, i);
	for (uint32_t k = 0; k < plan->candidates.count; k++) {
		struct directory *d = candidate(t, k);
		d->node = t->node;
		d->node.random ^= skep_mix(k);
		skep_directory_init(d, plan, &how);
		d->candidacy.on = true;
		d->candidacy.candidate = k;
		skep_candidates_begin(&d->candidacy.points);
		unseat(d, plan);
	}
}

/* The step of a directory, as one of the candidates or as what is left of them. */
static struct step scoped(const struct step *step, const struct directory *d)
{
	assert(step->plan->candidates.count > 1);
	struct step own = *step;
	own.how.scope = d->candidacy.on ? &skep_scope_candidate : &skep_scope_run;
	return own;
}

/* ---- notes ---------------------------------------------------------------------------------------------------------- */

/* Those that this candidate has made from action `from` on speak of its stages; its losses are those of one of several, and the
 * round is not for it to open. */
static void lift(struct step *step, const struct directory *d, uint32_t from)
{
	struct skep_actions *actions = step->actions;
	uint32_t to = from;
	assert(from <= actions->count && d->candidacy.on);
	for (uint32_t i = from; i < actions->count; i++) {
		struct skep_action *action = &actions->item[to];
		*action = actions->item[i];
		bool note = action->kind == SKEP_ACTION_NOTE;
		if (note)
			action->u.note.candidate = (uint8_t)d->candidacy.candidate;
		if (note && action->u.note.kind == SKEP_NOTE_LOSS)
			action->u.note.kind = SKEP_NOTE_CANDIDATE_LOSS;
		to += !note || action->u.note.kind != SKEP_NOTE_ROUND_OPENED;
	}
	actions->count = to;
}

static void note(struct candidates *t, struct step *step, struct skep_note note)
{
	note.round = t->round;
	skep_emit_note(step, &t->node, note);
}

/* ---- the end of a candidate ----------------------------------------------------------------------------------------- */

static bool is_in(struct candidates *t, uint32_t k)
{
	return !candidate(t, k)->candidacy.fell;
}

static uint32_t left(struct candidates *t, const struct skep_plan *plan)
{
	uint32_t count = 0;
	for (uint32_t k = 0; k < plan->candidates.count; k++)
		count += is_in(t, k);
	return count;
}

static void fence(struct directory *d, struct step *step, uint32_t worker)
{
	struct row *row = directory_row(d, worker);
	struct skep_peer gone = directory_worker(d, worker);
	assert(row->standing != STANDING_ABSENT);
	skep_directory_stand(row, STANDING_ABSENT);
	skep_emit_note(step, &d->node,
		(struct skep_note){.kind = SKEP_NOTE_FENCED, .stage = (uint16_t)row->stage, .peer = gone});
	skep_directory_send_fenced(d, step, gone);
}

/* No worker is left for what is under way: it is lost in every stage that has not committed it. Returns how many
 * microbatches the round had. */
static uint32_t abandon(struct directory *d, struct step *step)
{
	assert(d->issued <= d->capacity);
	struct step own = scoped(step, d);
	if (!d->reduced.on && !d->candidacy.held)
		d->reduced = (struct reduced){.round = d->round, .issued = d->issued};
	for (uint32_t i = 0; i < step->plan->workers; i++)
		directory_row(d, i)->member = false;
	for (uint32_t stage = 0; stage < step->plan->stages && !d->candidacy.held; stage++) {
		if (d->reduced.on && directory_stage(d, stage)->committed)
			continue;
		for (uint32_t i = 0; i < d->reduced.issued; i++)
			skep_rounds_counters(d, stage)[i] = SKEP_NO_INDEX;
		skep_rounds_note_vstage(d, &own, stage);
	}
	return d->reduced.issued;
}

/* Workers of the smallest stage, those on their way included. */
static uint32_t thinnest(struct directory *d, const struct skep_plan *plan)
{
	assert(d->phase != PHASE_STOPPED);
	uint32_t fewest = SKEP_NO_INDEX;
	for (uint32_t stage = 0; stage < plan->stages; stage++) {
		uint32_t count = 0;
		for (uint32_t i = 0; i < plan->workers; i++) {
			const struct row *row = directory_row(d, i);
			count += directory_has_stage(row) && row->stage == stage && !row->leaving;
		}
		fewest = count < fewest ? count : fewest;
	}
	return fewest;
}

/* The candidate that a worker helps most. */
static uint32_t neediest(struct candidates *t, const struct skep_plan *plan)
{
	uint32_t chosen = SKEP_NO_INDEX, fewest = 0;
	for (uint32_t k = 0; k < plan->candidates.count; k++) {
		uint32_t count = is_in(t, k) ? thinnest(candidate(t, k), plan) : 0;
		if (!is_in(t, k) || (chosen != SKEP_NO_INDEX && count >= fewest))
			continue;
		chosen = k;
		fewest = count;
	}
	return chosen;
}

/* The worker is a stranger to the directory that it goes to; its epochs count on. */
static void carry(struct candidates *t, uint32_t worker, uint32_t to)
{
	const struct row *was = directory_row(candidate(t, homes(t)[worker]), worker);
	struct row *row = directory_row(candidate(t, to), worker);
	if (homes(t)[worker] == to)
		return;
	homes(t)[worker] = to;
	*row = (struct row){.epoch = was->epoch,
		.stage = SKEP_NO_STAGE,
		.has_joined = was->has_joined,
		.join_epoch = was->join_epoch,
		.started_ns = was->started_ns,
		.heard_ns = was->heard_ns};
}

/* It goes on with this candidate. */
static void move(struct candidates *t, struct step *step, uint32_t worker, uint32_t to, uint32_t stage)
{
	assert(worker < step->plan->workers);
	struct directory *d = candidate(t, to);
	uint32_t from = step->actions->count;
	carry(t, worker, to);
	stage = skep_boundary_place(d, step->plan, stage);
	skep_emit_note(step, &d->node,
		(struct skep_note){.kind = SKEP_NOTE_MIGRATED,
			.stage = (uint16_t)stage,
			.round = d->closed,
			.peer = directory_worker(d, worker)});
	directory_row(d, worker)->epoch++;
	skep_directory_assign(d, step, worker, stage);
	if (!t->over)
		lift(step, d, from);
}

/* It has just fallen: what it was working on is lost, and its workers are free. */
static void drop(struct candidates *t, struct step *step, uint32_t k)
{
	struct directory *d = candidate(t, k);
	uint32_t from = step->actions->count;
	assert(d->candidacy.fell);
	skep_emit_note(step, &d->node,
		(struct skep_note){.kind = SKEP_NOTE_CANDIDATE_DROPPED,
			.stage = (uint16_t)d->candidacy.stage,
			.round = t->round,
			.candidate = (uint8_t)k,
			.fault = d->candidacy.fault});
	for (uint32_t i = 0; i < step->plan->workers; i++) {
		if (directory_row(d, i)->standing != STANDING_ABSENT && directory_row(d, i)->leaving)
			fence(d, step, i);
	}
	lift(step, d, from);
	for (uint32_t i = 0; i < step->plan->workers; i++) {
		struct row *row = directory_row(d, i);
		if (row->standing == STANDING_ABSENT)
			continue;
		move(t, step, i, neediest(t, step->plan), row->stage);
		skep_directory_stand(row, STANDING_ABSENT);
	}
	from = step->actions->count;
	t->given_up += abandon(d, step);
	lift(step, d, from);
}

/* ---- the end of the trial ------------------------------------------------------------------------------------------- */

static void release(struct candidates *t, struct step *step, uint32_t worker)
{
	assert(worker < step->plan->workers);
	struct directory *d = candidate(t, homes(t)[worker]);
	struct row *row = directory_row(d, worker);
	struct skep_peer peer = directory_worker(d, worker);
	uint32_t from = step->actions->count;
	bool here = row->standing != STANDING_ABSENT;
	if (here && row->leaving) {
		skep_emit_note(step, &d->node,
			(struct skep_note){.kind = SKEP_NOTE_LEFT, .stage = (uint16_t)row->stage, .peer = peer});
		skep_directory_send_fenced(d, step, peer);
	}
	lift(step, d, from);
	if (here && !row->leaving)
		move(t, step, worker, t->kept, row->stage);
	else
		carry(t, worker, t->kept);
	skep_directory_stand(row, STANDING_ABSENT);
}

/* From now on this one is all there is. It may be in the middle of a round, if the others fell. */
static void keep(struct candidates *t, struct step *step, uint32_t k)
{
	assert(!t->over && is_in(t, k));
	struct directory *d = candidate(t, k);
	bool held = d->candidacy.held;
	t->over = true;
	t->kept = k;
	bool whole = d->closed == step->plan->candidates.rounds;
	note(t, step,
		(struct skep_note){.kind = SKEP_NOTE_CANDIDATE_CHOSEN,
			.candidate = (uint8_t)k,
			.loss_nano = whole ? skep_candidate_expected(&d->candidacy.points, d->closed)
	                                   : d->candidacy.points.last_nano});
	d->candidacy.on = d->candidacy.held = false;
	d->candidacy.beside = held ? 0 : t->given_up;
	bool known = d->candidacy.heard == (held ? d->closed : d->round + 1); /* of the round that ends, or is open */
	if (step->plan->validation.every == 0 && known)
		d->loss_nano = d->candidacy.points.last_nano;
	d->rebalance_due_ns = d->node.now + step->plan->rebalance.period_ns;
	for (uint32_t i = 0; i < step->plan->workers; i++) {
		if (homes(t)[i] != k)
			release(t, step, i);
	}
	struct step own = scoped(step, d);
	if (held)
		skep_rounds_after_close(d, &own);
}

static uint32_t best(struct candidates *t, const struct skep_plan *plan)
{
	uint32_t chosen = SKEP_NO_INDEX;
	int64_t least = 0;
	for (uint32_t k = 0; k < plan->candidates.count; k++) {
		int64_t value = skep_candidate_expected(&candidate(t, k)->candidacy.points, plan->candidates.rounds);
		if (!is_in(t, k) || (chosen != SKEP_NO_INDEX && value >= least))
			continue;
		chosen = k;
		least = value;
	}
	return chosen;
}

static bool all_held(struct candidates *t, const struct skep_plan *plan)
{
	bool all = true;
	for (uint32_t k = 0; k < plan->candidates.count; k++)
		all = all && (!is_in(t, k) || candidate(t, k)->candidacy.held);
	return all;
}

static void close_round(struct candidates *t, struct step *step)
{
	uint32_t issued = t->given_up;
	for (uint32_t k = 0; k < step->plan->candidates.count; k++) {
		struct directory *d = candidate(t, k);
		if (!is_in(t, k))
			continue;
		issued += d->reduced.issued;
		skep_candidate_point(&d->candidacy.points, t->round, step->plan->candidates.rounds);
	}
	t->given_up = 0;
	note(t, step, (struct skep_note){.kind = SKEP_NOTE_ROUND_CLOSED, .issued = issued});
}

/* First what changes between two rounds, everywhere: then it is open for all. */
static void open_round(struct candidates *t, struct step *step)
{
	for (uint32_t k = 0; k < step->plan->candidates.count; k++) {
		struct directory *d = candidate(t, k);
		uint32_t from = step->actions->count;
		if (!is_in(t, k))
			continue;
		struct step own = scoped(step, d);
		d->candidacy.held = false;
		skep_boundary_serve_late(d, &own);
		skep_boundary_pass(d, &own);
		d->round++;
		lift(step, d, from);
	}
	t->round++;
	note(t, step, (struct skep_note){.kind = SKEP_NOTE_ROUND_OPENED});
	for (uint32_t k = 0; k < step->plan->candidates.count; k++) {
		uint32_t from = step->actions->count;
		if (!is_in(t, k))
			continue;
		struct step own = scoped(step, candidate(t, k));
		own.how.directory->begin(candidate(t, k), &own);
		lift(step, candidate(t, k), from);
	}
}

/* What follows from what the candidates have just done. */
static void resolve(struct candidates *t, struct step *step)
{
	const struct skep_plan *plan = step->plan;
	if (all_held(t, plan)) {
		close_round(t, step);
		if (t->round + 1 == plan->candidates.rounds || left(t, plan) == 1)
			keep(t, step, best(t, plan));
		else
			open_round(t, step);
	} else if (left(t, plan) == 1) {
		keep(t, step, best(t, plan));
	}
}

/* ---- events --------------------------------------------------------------------------------------------------------- */

static void hand(struct candidates *t, struct step *step, uint32_t k, const struct skep_event *event)
{
	struct directory *d = candidate(t, k);
	uint32_t from = step->actions->count;
	bool was_in = !d->candidacy.fell;
	struct step own = scoped(step, d);
	skep_directory_step(&d->node, &own, event);
	if (d->candidacy.on)
		lift(step, d, from);
	if (was_in && d->candidacy.fell)
		drop(t, step, k);
	if (!t->over)
		resolve(t, step);
	t->node.digest = skep_mix(t->node.digest ^ d->node.digest);
}

/* A worker asks for a place. One that has a place keeps it; its directory knows what to do. */
static void choose_home(struct candidates *t, const struct skep_plan *plan, uint32_t worker)
{
	assert(worker < plan->workers);
	uint32_t home = homes(t)[worker];
	if (is_in(t, home) && directory_row(candidate(t, home), worker)->standing != STANDING_ABSENT)
		return;
	carry(t, worker, neediest(t, plan));
}

static struct skep_message as_heartbeat(const struct skep_message *message)
{
	struct skep_message heartbeat = *message;
	heartbeat.kind = SKEP_MESSAGE_HEARTBEAT;
	return heartbeat;
}

static void on_message(struct candidates *t, struct step *step, const struct skep_event *event)
{
	assert(event->kind == SKEP_EVENT_MESSAGE);
	const struct skep_message *message = &event->u.message;
	uint32_t from = message->from.index;
	if (from < step->plan->workers && message->kind == SKEP_MESSAGE_JOIN)
		choose_home(t, step->plan, from);
	uint32_t home = from < step->plan->workers ? homes(t)[from] : 0;
	bool rumour = message->kind == SKEP_MESSAGE_SUSPECT && message->u.peer.who.index < step->plan->workers &&
	              homes(t)[message->u.peer.who.index] != home; /* its directory does not know this worker */
	if (is_in(t, home) && rumour)
		hand(t, step, home,
			&(struct skep_event){
				.kind = SKEP_EVENT_MESSAGE, .now = event->now, .u.message = as_heartbeat(message)});
	else if (is_in(t, home))
		hand(t, step, home, event);
	if (is_in(t, home))
		return;
	skep_emit_release(step, message->payload); /* it is to come again, as a newcomer */
	skep_directory_send_fenced(candidate(t, home), step, message->from);
}

static void to_all(struct candidates *t, struct step *step, const struct skep_event *event)
{
	for (uint32_t k = 0; k < step->plan->candidates.count && !t->over; k++) {
		bool due = event->kind == SKEP_EVENT_START || candidate(t, k)->node.deadline <= event->now;
		if (is_in(t, k) && due)
			hand(t, step, k, event);
	}
}

static void on_event(struct candidates *t, struct step *step, const struct skep_event *event)
{
	uint32_t about = SKEP_NO_INDEX;
	switch ((enum skep_event_kind)event->kind) {
	case SKEP_EVENT_START:
		note(t, step, (struct skep_note){.kind = SKEP_NOTE_ROUND_OPENED});
		to_all(t, step, event);
		break;
	case SKEP_EVENT_TIMER:
		to_all(t, step, event);
		break;
	case SKEP_EVENT_MESSAGE:
		on_message(t, step, event);
		break;
	case SKEP_EVENT_SEND_FAILED:
		about = event->u.message.to.index;
		break;
	case SKEP_EVENT_SUSPECT:
		about = event->u.peer.index;
		break;
	case SKEP_EVENT_OP_DONE:
	case SKEP_EVENT_PREEMPT_NOTICE:
	case SKEP_EVENT_EGRESS:
	case SKEP_EVENT_KINDS:
		break;
	}
	if (about < step->plan->workers && is_in(t, homes(t)[about]))
		hand(t, step, homes(t)[about], event);
}

void skep_candidates_step(struct skep_node *node, struct step *step, const struct skep_event *event)
{
	struct candidates *t = (struct candidates *)node;
	for (uint32_t k = 0; k < step->plan->candidates.count; k++) /* what one hears may be a round boundary for all */
		candidate(t, k)->node.now = event->now;
	if (t->over)
		hand(t, step, t->kept, event);
	else
		on_event(t, step, event);
	t->node.deadline = SKEP_TIME_NEVER;
	for (uint32_t k = 0; k < step->plan->candidates.count; k++) {
		const struct directory *d = candidate(t, k);
		bool asked = t->over ? k == t->kept : is_in(t, k);
		if (asked && d->node.deadline < t->node.deadline)
			t->node.deadline = d->node.deadline;
	}
	t->node.outcome = t->over ? candidate(t, t->kept)->node.outcome : SKEP_RUNNING;
}
