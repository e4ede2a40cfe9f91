/* SPDX-License-Identifier: Apache-2.0
 *
 * async.c - the directory's part in asynchronous periodic sync: which outer update of a stage is next, when it is
 * final, and when a round is closed. async_worker.c is a worker's.
 *
 * Rounds are how microbatches are numbered, granted and accounted for; no worker waits for their ends. When all
 * microbatches of a round have come back (rounds.c) the next one opens, and the one before is closed: every worker is
 * told that it is over (CLOSE_ROUND), and says with its next outer update, or at once if it has nothing of it, that
 * nothing of that round is left there. A stage commits the round when all that serve it have said so and the updates
 * that they announced are final; a microbatch that is in no outer update is lost. In the middle of the next round the
 * workers that have not answered yet are asked to do so now; so an outer update is of two rounds at most, and no older
 * one has to be kept.
 *
 * Outer updates of a stage are made one at a time, in the order in which their OUTER_UPDATE messages came; version v of
 * a stage is its state after update v. An outer update is a reduction with one part, that of rank 0, which
 * SKEP_COLLECTIVE_BROADCAST brings to all that hold the stage's state. When all have said that they have it (TALLY) it is
 * final (COMMIT), and OUTER_UPDATED notes say what was in it.
 *
 * Where parts are gathered (reduction.gather) an outer update is made of several: when async.group_size workers of a stage
 * have announced one, or all that serve it, the plan's collective makes one of what they bring, for one step (buffered
 * asynchronous aggregation: Nguyen et al. 2022, FedBuff). Members that have told nothing bring a part with nothing in
 * it. When a round has to be closed now, all workers are asked, also those that have nothing of it left: a worker that
 * has counted anything announces it. When each has answered, or waits for its own update before it can, the parts that
 * are there become one update. If that was not all of the round, since a worker had announced before and counted on,
 * all are asked once more. So a part waits at most until the middle of the next round, and as many as there are come
 * together. What an update of too few parts does is decided in models/update/outer_step.c.
 *
 * What is kept true
 *   - A microbatch is in at most one outer update, that of the one worker of the stage that counted it. What a worker
 * has counted is lost if it is fenced before its update is final, announced or not; earlier updates stay.
 *   - If the worker of an update (of several: the last of them) is fenced, the update is void and its number goes to
 * the next one, with a higher attempt; if another member is fenced, the update begins anew without it. Parts are
 * untouched until
 *     their STEP.
 *   - While a worker downloads the stage's state no outer update begins there, so all chunks are of one version.
 * Newcomers are admitted between two updates. Work goes on meanwhile; only the updates of others come later.
 *   - Where a worker is to leave or migrate (skep_boundary_due()) the next round opens when this one is closed, and
 * all are asked to announce now: so a worker that goes has nothing left.
 */
#include <assert.h>

#include "core/bits.h"
#include "core/collective/collective.h"
#include "core/directory/directory.h"
#include "core/methods/flush.h"
#include "core/methods/method.h"

#define TOLD 0x80000000u /* beside a worker's number: it has told, and it is not merged yet */

static struct async_member *async_member(struct directory *d, uint32_t worker)
{
	return (struct async_member *)skep_at(d, d->async_member_at) + worker;
}

static struct merging *merging_at(struct directory *d, uint32_t stage)
{
	return (struct merging *)skep_at(d, d->merging_at) + stage;
}

static size_t lay_out(struct directory *d, const struct skep_plan *plan, size_t at)
{
	d->async_member_at = at;
	at += skep_align(plan->workers * sizeof(struct async_member));
	d->merging_at = at;
	return at + skep_align(plan->stages * sizeof(struct merging));
}

/* Rounds that a worker may announce updates of: from the first to the open one. */
static uint32_t first_round(const struct directory *d)
{
	return d->reduced.on ? d->reduced.round : d->round;
}

static uint32_t issued(const struct directory *d, uint32_t round)
{
	return d->reduced.on && round == d->reduced.round ? d->reduced.issued : d->issued;
}

static void forget(struct directory *d, uint32_t worker)
{
	*async_member(d, worker) = (struct async_member){0};
}

/* ---- settling a round --------------------------------------------------------------------------------------------- */

static void send_close_round(struct directory *d, struct step *step, uint32_t worker)
{
	assert(directory_row(d, worker)->standing == STANDING_SERVING);
	struct skep_message message = skep_message_to(&d->node, SKEP_MESSAGE_CLOSE_ROUND, directory_worker(d, worker));
	message.round = d->reduced.round;
	message.stage = (uint16_t)directory_row(d, worker)->stage;
	message.u.close_round.now = d->forced;
	async_member(d, worker)->asked = true;
	skep_emit_send(step, &d->node, &message);
}

static bool resolved(struct directory *d, uint32_t worker)
{
	const struct async_member *m = async_member(d, worker);
	return m->resolved > d->reduced.round && m->merged >= m->resolved_by;
}

static bool all_resolved(struct directory *d, const struct skep_plan *plan, uint32_t stage)
{
	bool all = true;
	for (uint32_t i = 0; i < plan->workers; i++) {
		const struct row *row = directory_row(d, i);
		if (row->standing == STANDING_SERVING && row->stage == stage)
			all = all && resolved(d, i);
	}
	return all;
}

static void commit_if_resolved(struct directory *d, struct step *step, uint32_t stage)
{
	bool open = d->reduced.on && !directory_stage(d, stage)->committed && d->phase != PHASE_STOPPED;
	if (open && all_resolved(d, step->plan, stage))
		skep_rounds_commit(d, step, stage);
}

static void resolve_stage(struct directory *d, struct step *step, uint32_t stage)
{
	assert(!directory_stage(d, stage)->committed);
	for (uint32_t i = 0; i < step->plan->workers; i++) {
		const struct row *row = directory_row(d, i);
		if (row->standing == STANDING_SERVING && row->stage == stage)
			send_close_round(d, step, i);
	}
	commit_if_resolved(d, step, stage);
}

static void resolve(struct directory *d, struct step *step)
{
	assert(d->phase == PHASE_REDUCING);
	d->forced = false;
	for (uint32_t stage = 0; stage < step->plan->stages && d->reduced.on; stage++)
		resolve_stage(d, step, stage);
}

/* In one stage, or all. Where parts are gathered everybody is to tell, and to say so, even who has said before that nothing of
 * the round is left there. */
static void force(struct directory *d, struct step *step, uint32_t stage)
{
	for (uint32_t i = 0; i < step->plan->workers; i++) {
		const struct row *row = directory_row(d, i);
		if (row->standing != STANDING_SERVING || directory_stage(d, row->stage)->committed ||
			(stage != SKEP_NO_STAGE && row->stage != stage))
			continue;
		if (step->plan->reduction.gather)
			async_member(d, i)->resolved = 0;
		if (!resolved(d, i))
			send_close_round(d, step, i);
	}
}

static void force_all(struct directory *d, struct step *step)
{
	if (!d->reduced.on || d->forced)
		return;
	d->forced = true;
	force(d, step, SKEP_NO_STAGE);
}

/* Workers that have begun to serve while a round is being closed may be sent some of it, and are asked too. */
static void ask_new(struct directory *d, struct step *step)
{
	for (uint32_t i = 0; i < step->plan->workers && d->reduced.on && d->phase != PHASE_STOPPED; i++) {
		if (directory_row(d, i)->standing == STANDING_SERVING && !async_member(d, i)->asked)
			send_close_round(d, step, i);
	}
}

/* ---- one merge ------------------------------------------------------------------------------------------------------ */

static bool holds(struct directory *d, uint32_t worker, uint32_t stage)
{
	const struct row *row = directory_row(d, worker);
	return row->standing >= STANDING_READY && row->stage == stage;
}

static void begin_attempt(struct directory *d, struct step *step, uint32_t stage)
{
	assert(directory_stage(d, stage)->serving > 0);
	struct merging *merging = merging_at(d, stage);
	uint32_t *order = skep_at(d, d->order_at), size = 0, first = step->plan->reduction.gather ? 0 : merging->by;
	for (uint32_t nth = 0; nth < step->plan->workers; nth++) { /* in a chain from its worker on, round the row */
		uint32_t worker = (first + nth) % step->plan->workers;
		if (holds(d, worker, stage))
			order[size++] = worker;
	}
	merging->attempt++;
	merging->pending = size;
	for (uint32_t i = 0; i < step->plan->workers; i++)
		if (directory_row(d, i)->stage == stage)
			async_member(d, i)->member = false;
	for (uint32_t rank = 0; rank < size; rank++) {
		struct skep_message message =
			skep_message_to(&d->node, SKEP_MESSAGE_REDUCE, directory_worker(d, order[rank]));
		message.stage = (uint16_t)stage;
		message.round = directory_stage(d, stage)->behind;
		message.attempt = merging->attempt;
		message.u.reduce.rank = rank;
		message.u.reduce.size = size;
		message.u.reduce.next = directory_worker(d, order[(rank + 1) % size]);
		struct async_member *m = async_member(d, order[rank]);
		message.u.reduce.merged = step->plan->reduction.gather && m->in ? m->count : 0;
		m->member = m->awaited = true;
		skep_emit_send(step, &d->node, &message);
		if (size > 1 && skep_collective_has_roster(step->plan->reduction.collective))
			skep_attempt_roster(d, step, &message, order, size);
	}
}

/* Of those that have told: are they enough, or all that can be waited for? */
static bool enough(struct directory *d, const struct skep_plan *plan, uint32_t stage)
{
	assert(directory_stage(d, stage)->serving > 0);
	uint32_t ready = 0, serving = 0;
	bool wanted = d->reduced.on && d->forced && !directory_stage(d, stage)->committed;
	for (uint32_t i = 0; i < plan->workers; i++) {
		const struct async_member *m = async_member(d, i);
		if (!holds(d, i, stage))
			continue;
		ready += m->ready;
		serving++;
		wanted = wanted && (m->ready || m->resolved > d->reduced.round);
	}
	return wanted || ready >= (plan->async.group_size < serving ? plan->async.group_size : serving);
}

/* Who is in it: the one that has waited longest, or all. */
static void choose(struct directory *d, const struct skep_plan *plan, uint32_t stage, uint32_t longest)
{
	assert(directory_stage(d, stage)->serving > 0);
	merging_at(d, stage)->on = true;
	merging_at(d, stage)->by = longest;
	for (uint32_t i = 0; i < plan->workers; i++)
		if (holds(d, i, stage))
			async_member(d, i)->in = plan->reduction.gather ? async_member(d, i)->ready : i == longest;
}

/* The one that has waited longest; first come those who wait to be let in. */
static void begin_next(struct directory *d, struct step *step, uint32_t stage)
{
	uint32_t best = SKEP_NO_INDEX;
	bool download = directory_stage(d, stage)->waiting;
	if (merging_at(d, stage)->on || d->phase == PHASE_STOPPED)
		return;
	for (uint32_t i = 0; i < step->plan->workers; i++) {
		const struct row *row = directory_row(d, i);
		if (!directory_has_stage(row) || row->stage != stage)
			continue;
		if (row->standing == STANDING_ENTERED && !directory_stage(d, stage)->waiting)
			skep_directory_admit_from_any(d, step, i);
		download |= row->standing == STANDING_JOINING;
		const struct async_member *m = async_member(d, i);
		if (m->ready && (best == SKEP_NO_INDEX || m->came < async_member(d, best)->came))
			best = i;
	}
	if (download || best == SKEP_NO_INDEX || (step->plan->reduction.gather && !enough(d, step->plan, stage)))
		return;
	choose(d, step->plan, stage, best);
	begin_attempt(d, step, stage);
}

/* It holds what all others hold, and works at once. */
static void ready(struct directory *d, struct step *step, uint32_t worker)
{
	assert(directory_row(d, worker)->standing != STANDING_ABSENT);
	if (directory_row(d, worker)->standing == STANDING_READY && d->phase != PHASE_STOPPED) {
		skep_directory_serve(d, worker);
		skep_rounds_resume(d, step);
	}
	begin_next(d, step, directory_row(d, worker)->stage);
}

/* What the merge had of one round; returns how many. */
static uint32_t note_merged(struct directory *d, struct step *step, uint32_t round, uint32_t stage, uint32_t by)
{
	assert(directory_stage(d, stage)->serving > 0);
	uint32_t *counter = skep_rounds_counters_of(d, step->plan, round, stage), end = issued(d, round), total = 0;
	for (uint32_t first = 0; first < end; first += 64) {
		uint64_t bits = 0;
		for (uint32_t i = first; i < first + 64 && i < end; i++) {
			if (counter[i] != (by | TOLD))
				continue;
			counter[i] = by;
			bits |= (uint64_t)1 << (i - first);
		}
		total += skep_bits_count(bits);
		if (bits != 0)
			skep_emit_note(step, &d->node,
				(struct skep_note){.kind = SKEP_NOTE_OUTER_UPDATED,
					.stage = (uint16_t)stage,
					.round = round,
					.microbatch = first,
					.peer = directory_worker(d, by),
					.bits = bits});
	}
	return total;
}

static int64_t add_saturating(int64_t a, int64_t b)
{
	return b > 0 && a > INT64_MAX - b ? INT64_MAX : a + b;
}

/* The part of one worker; returns how many microbatches are in it. */
static uint32_t close_part(struct directory *d, struct step *step, uint32_t stage, uint32_t by)
{
	assert(async_member(d, by)->ready && async_member(d, by)->in);
	assert(directory_stage(d, stage)->serving > 0);
	struct async_member *m = async_member(d, by);
	uint32_t total = 0;
	for (uint32_t round = first_round(d); round <= d->round; round++) {
		total += note_merged(d, step, round, stage, by);
		int64_t *sum = &merging_at(d, stage)->loss_nano[round & 1];
		*sum = add_saturating(*sum, m->loss_nano[round & 1]);
	}
	assert(total == m->count);
	m->merged++;
	m->ready = m->in = false;
	m->heard = m->count = 0;
	m->loss_nano[0] = m->loss_nano[1] = 0;
	return total;
}

static void commit(struct directory *d, struct step *step, uint32_t stage)
{
	assert(directory_stage(d, stage)->serving > 0);
	struct merging *merging = merging_at(d, stage);
	uint32_t total = 0;
	for (uint32_t i = 0; i < step->plan->workers; i++)
		if (holds(d, i, stage) && async_member(d, i)->in)
			total += close_part(d, step, stage, i);
	for (uint32_t i = 0; i < step->plan->workers; i++) {
		if (directory_row(d, i)->stage != stage || !async_member(d, i)->member)
			continue;
		struct skep_message message = skep_message_to(&d->node, SKEP_MESSAGE_COMMIT, directory_worker(d, i));
		message.stage = (uint16_t)stage;
		message.round = directory_stage(d, stage)->behind;
		message.attempt = merging->attempt;
		message.u.commit.microbatches = total;
		skep_emit_send(step, &d->node, &message);
		async_member(d, i)->member = false;
	}
	directory_stage(d, stage)->behind++;
	merging->on = false;
	merging->attempt = 0;
}

/* ---- what is heard ---------------------------------------------------------------------------------------------------- */

/* Some of what is to be merged. */
static void hear(struct directory *d, const struct skep_plan *plan, const struct skep_message *message)
{
	assert(message->kind == SKEP_MESSAGE_OUTER_UPDATE);
	uint32_t worker = message->from.index, round = message->round;
	struct async_member *m = async_member(d, worker);
	if (message->u.tally.count == 0 || message->update != m->merged + 1 || m->ready ||
		message->u.tally.used > SKEP_TALLY_PART)
		return;                                       /* there is none, or it is merged already */
	assert(round >= first_round(d) && round <= d->round); /* else it was closed without this */
	uint32_t *counter = skep_rounds_counters_of(d, plan, round, directory_row(d, worker)->stage);
	for (uint32_t i = 0; i < message->u.tally.used; i++) {
		uint32_t microbatch = message->u.tally.base + message->u.tally.offset[i];
		if (microbatch >= issued(d, round) || counter[microbatch] == (worker | TOLD))
			continue;                             /* a duplicate */
		assert(counter[microbatch] == SKEP_NO_INDEX); /* else it is in two outer updates */
		counter[microbatch] = worker | TOLD;
		m->heard++;
	}
	m->count = message->u.tally.count;
	m->loss_nano[round & 1] = message->u.tally.loss_nano;
	m->ready = m->heard == m->count;
	if (m->ready)
		m->came = ++d->merges;
}

static void on_outer_update(struct directory *d, struct step *step, const struct skep_message *message)
{
	assert(message->kind == SKEP_MESSAGE_OUTER_UPDATE);
	uint32_t worker = message->from.index, stage = directory_row(d, worker)->stage;
	struct async_member *m = async_member(d, worker);
	if (directory_row(d, worker)->standing < STANDING_READY)
		return;
	hear(d, step->plan, message);
	if (message->open_round > m->resolved) {
		m->resolved = message->open_round;
		m->resolved_by = message->update;
	}
	begin_next(d, step, stage);
	commit_if_resolved(d, step, stage);
}

static void on_tally(struct directory *d, struct step *step, const struct skep_message *message)
{
	assert(message->kind == SKEP_MESSAGE_TALLY);
	uint32_t worker = message->from.index, stage = directory_row(d, worker)->stage;
	struct merging *merging = merging_at(d, stage);
	struct async_member *m = async_member(d, worker);
	if (!merging->on || !m->member || !m->awaited || message->round != directory_stage(d, stage)->behind ||
		message->attempt != merging->attempt)
		return;
	m->awaited = false;
	if (--merging->pending > 0)
		return;
	commit(d, step, stage);
	if (step->plan->reduction.gather && d->reduced.on && d->forced && !all_resolved(d, step->plan, stage))
		force(d, step, stage);
	begin_next(d, step, stage);
	commit_if_resolved(d, step, stage);
}

/* What it had told and what is not merged is lost. */
static void untell(struct directory *d, const struct skep_plan *plan, uint32_t worker, uint32_t stage)
{
	for (uint32_t round = first_round(d); round <= d->round; round++) {
		uint32_t *counter = skep_rounds_counters_of(d, plan, round, stage);
		for (uint32_t i = 0; i < issued(d, round); i++)
			if (counter[i] == (worker | TOLD))
				counter[i] = SKEP_NO_INDEX;
	}
}

static void part_gone(struct directory *d, struct step *step, uint32_t worker)
{
	uint32_t stage = directory_row(d, worker)->stage;
	if (stage >= step->plan->stages)
		return;
	struct merging *merging = merging_at(d, stage);
	bool member = merging->on && async_member(d, worker)->member, others = false;
	untell(d, step->plan, worker, stage);
	forget(d, worker);
	for (uint32_t i = 0; i < step->plan->workers; i++)
		others = others || (holds(d, i, stage) && async_member(d, i)->in);
	if (member && others)
		begin_attempt(d, step, stage);
	else if (member)
		merging->on = false;
	begin_next(d, step, stage);
	commit_if_resolved(d, step, stage);
}

/* ---- rounds: how microbatches are numbered and granted ----------------------------------------------------------------- */

static void begin_round(struct directory *d, struct step *step)
{
	for (uint32_t stage = 0; stage < step->plan->stages; stage++) {
		for (uint32_t i = 0; i < d->capacity; i++)
			skep_rounds_counters_of(d, step->plan, d->round, stage)[i] = SKEP_NO_INDEX;
		merging_at(d, stage)->loss_nano[d->round & 1] = 0;
	}
	skep_rounds_begin(d, step);
}

/* A validation may be under way beside the round, and is granted first. */
static void refill(struct directory *d, struct step *step, uint32_t preferred)
{
	assert(d->phase == PHASE_OPEN);
	skep_validate_grant(d, step, preferred);
	skep_rounds_grant(d, step, preferred);
	if (d->finished >= step->plan->microbatches / 2 || d->outstanding + skep_rounds_wanted(d, step->plan) == 0)
		force_all(d, step);
	if (skep_rounds_all_back(d, step) && !d->validation.beside)
		step->how.directory->complete(d, step);
}

static void on_finished(struct directory *d, struct step *step, const struct skep_message *message)
{
	assert(message->kind == SKEP_MESSAGE_FINISHED);
	skep_rounds_on_finished(d, step, message);
	if (message->microbatch >= d->capacity && d->phase == PHASE_OPEN)
		refill(d, step, message->from.index);
}

static void reduce(struct directory *d, struct step *step)
{
	assert(d->phase == PHASE_OPEN);
	skep_rounds_close(d, step->plan);
	resolve(d, step);
	bool overlaps = d->reduced.on && d->round + 1 < step->plan->rounds;
	if (overlaps && !skep_boundary_due(d, step)) {
		d->round++;
		begin_round(d, step);
	} else {
		force_all(d, step);
	}
}

/* No COMMIT of a round comes to any worker, so one is asked. */
static uint32_t keeper(struct directory *d, struct step *step, uint32_t stage)
{
	assert(!directory_stage(d, stage)->committed);
	skep_checkpoints_async(d, step, stage);
	return SKEP_NO_INDEX;
}

/* OUTER_UPDATED notes have said by whom. */
static void counted(struct directory *d, uint32_t vstage, uint32_t lost, uint32_t *total, int64_t *loss_nano_sum)
{
	*total = d->reduced.issued - lost;
	*loss_nano_sum = merging_at(d, vstage)->loss_nano[d->reduced.round & 1];
}

/* Beside the round that is open, but for the last one. Where a limit has been reached while a round is open, the run ends behind
 * the validation (skep_ends_reached()). */
static void validate(struct directory *d, struct step *step, bool over)
{
	if (over && d->phase == PHASE_REDUCING) {
		skep_validate_begin(d, step, true);
		return;
	}
	skep_rounds_continue(d, step, false);
	skep_validate_beside(d, step);
}

static void fenced(struct directory *d, struct step *step, uint32_t worker, bool served)
{
	part_gone(d, step, worker);
	skep_rounds_worker_gone(d, step, worker, served);
}

/* ---- newcomers, whose versions are outer updates ---------------------------------------------------------------- */

static void entered(struct directory *d, struct step *step, uint32_t worker)
{
	begin_next(d, step, directory_row(d, worker)->stage); /* if no merge is under way */
}

static uint32_t since(struct directory *d, uint32_t worker)
{
	forget(d, worker);
	return directory_stage(d, directory_row(d, worker)->stage)->behind;
}

/* Its versions are not rounds, and it works at once; when all are closed, on none. */
static uint32_t next_reduction(struct directory *d, const struct row *row)
{
	assert(row->standing != STANDING_ABSENT);
	(void)row;
	return d->ending ? d->closed : d->round;
}

static uint32_t stop_version(struct directory *d, const struct row *row)
{
	return directory_stage(d, row->stage)->behind;
}

static void admit(struct directory *d, const struct row *row, struct skep_message *message)
{
	message->serving = directory_stage(d, row->stage)->serving + 1;
}

static void keep(struct directory *d, uint32_t stage, struct skep_message *message)
{
	message->update = directory_stage(d, stage)->behind;
}

/* As many as with delayed updates; CLOSE_ROUND, COMMIT, REDUCE; anew for each that is fenced; CHECKPOINT. */
static uint32_t actions(const struct skep_plan *plan, uint32_t fences)
{
	return 4 + 4 * fences + 12 + 4 * skep_bits_words(skep_round_capacity(plan));
}

const struct skep_directory_method skep_async_directory = {
	.lay_out = lay_out,
	.counted_rounds = 2,
	.actions = actions,
	.refills = 3,
	.begin = begin_round,
	.on_finished = on_finished,
	.given_up = skep_flush_given_up,
	.refill = refill,
	.resume = skep_rounds_resume,
	.complete = skep_flush_complete,
	.reduce = reduce,
	.on_tally = on_tally,
	.on_outer_update = on_outer_update,
	.keeper = keeper,
	.counted = counted,
	.committed = skep_delayed_committed,
	.validate = validate,
	.stop_version = stop_version,
	.stepped = ask_new,
	.entered = entered,
	.since = since,
	.next_reduction = next_reduction,
	.ready = ready,
	.serves_late = skep_delayed_serves_late,
	.admit = admit,
	.keep = keep,
	.worker_gone = fenced,
	.carry_on = skep_delayed_carry_on,
	.none_can = skep_delayed_none_can,
};
