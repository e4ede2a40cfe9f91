/* SPDX-License-Identifier: Apache-2.0
 *
 * merges.c - the directory's part in asynchronous periodic sync: which merge of a stage is next, when it is final, and when a
 * round is settled. merge.c is a worker's.
 *
 * Rounds are how microbatches are numbered, granted and accounted for; nobody waits for their ends. When all of a round have come
 * back (rounds.c) the next one opens, and the one before is settled: every worker is told that it is over (SETTLE), and tells
 * with its next merge, or at once if it has nothing of it, that nothing of that round is left there. A stage commits
 * the round when all that serve it have said so and what they have told is merged; what nobody has merged is lost. In the
 * middle of the next round those who have not told yet are asked to do so now, so a merge is at most of two rounds, and that is
 * all there is to keep.
 *
 * Merges of a stage are done one at a time, in the order in which their last word came: version v of a stage is that behind its
 * merge v. A merge is a reduction with one part, that of rank 0, which SKEP_COLLECTIVE_CHAIN brings to all that hold
 * the stage's state. When all have said that they have it (TALLY) it is final (COMMIT), and MERGED notes say what was in it.
 *
 * Where parts are gathered (plan->gather) a merge is made of several: when `merge_parts` workers of a stage have told, or all
 * that serve it, what all who have told bring is made one, by the plan's collective, and is one step (buffered asynchronous
 * aggregation: Nguyen et al. 2022, FedBuff). Members that have told nothing bring a part with nothing in it. When a round that is
 * being settled is wanted now, all are asked, also those that have nothing of it left: whoever has counted anything tells it.
 * When each has answered, or waits for its merge before it can, the parts that are there are merged. If that was not all of the
 * round, since somebody had told before and counted on, all are asked once more. So a part waits at most until the middle of the
 * next round, and as many as there are come together. What becomes of a merge of too few the world knows (models/merge.c).
 *
 * What is kept true
 *   - A microbatch is in at most one merge, of the one worker of the stage that counted it. What a worker has counted is
 *     lost if it is fenced before its merge is final, told or not; what was merged before that stays.
 *   - If the worker whose merge it is is fenced (of several: the last of them), the merge is void and its number goes to the
 *     next one, with a higher attempt; if it is another member, the merge begins anew without it. Parts are untouched until
 *     their STEP.
 *   - While somebody downloads the stage's state no merge begins there, so all chunks are of one version. Newcomers are let in
 *     between two merges. Work goes on meanwhile; only that of others is merged later.
 *   - Where somebody is to leave or move (edge_due()) the next round opens when this one is settled, and all are asked to
 *     tell now: so whoever goes has nothing left.
 */
#include <assert.h>

#include "core/bits.h"
#include "core/collective.h"
#include "core/directory.h"

#define TOLD 0x80000000u /* beside a worker's number: it has told, and it is not merged yet */

static struct merger *merger_at(struct directory *d, uint32_t worker)
{
	return (struct merger *)skep_at(d, d->merger_at) + worker;
}

static struct merging *merging_at(struct directory *d, uint32_t stage)
{
	return (struct merging *)skep_at(d, d->merging_at) + stage;
}

size_t merges_lay_out(struct directory *d, const struct skep_plan *plan, size_t at)
{
	d->merger_at = at;
	at += skep_align(plan->workers * sizeof(struct merger));
	d->merging_at = at;
	return at + skep_align(plan->stages * sizeof(struct merging));
}

/* Rounds that somebody may tell of: from the first to the open one. */
static uint32_t first_round(const struct directory *d)
{
	return d->reduced.on ? d->reduced.round : d->round;
}

static uint32_t issued(const struct directory *d, uint32_t round)
{
	return d->reduced.on && round == d->reduced.round ? d->reduced.issued : d->issued;
}

void merges_opened(struct directory *d, const struct skep_plan *plan)
{
	for (uint32_t stage = 0; stage < plan->stages; stage++) {
		for (uint32_t i = 0; i < d->capacity; i++)
			rounds_counters_of(d, plan, d->round, stage)[i] = SKEP_NO_INDEX;
		merging_at(d, stage)->loss_nano[d->round & 1] = 0;
	}
}

int64_t merges_loss(struct directory *d, uint32_t round, uint32_t stage)
{
	return merging_at(d, stage)->loss_nano[round & 1];
}

static void merges_forget(struct directory *d, uint32_t worker)
{
	*merger_at(d, worker) = (struct merger){0};
}

uint32_t merges_let_in(struct directory *d, uint32_t worker)
{
	merges_forget(d, worker);
	return directory_stage(d, directory_row(d, worker)->stage)->behind;
}

void merges_serve(struct directory *d, uint32_t worker)
{
	merger_at(d, worker)->asked = false;
}

/* ---- settling a round --------------------------------------------------------------------------------------------- */

static void send_settle(struct directory *d, struct step *step, uint32_t worker)
{
	struct skep_message message = skep_message_to(&d->node, SKEP_MESSAGE_SETTLE, directory_worker(d, worker));
	message.round = d->reduced.round;
	message.stage = (uint16_t)directory_row(d, worker)->stage;
	message.u.settle.now = d->pressed;
	merger_at(d, worker)->asked = true;
	skep_emit_send(step, &d->node, &message);
}

static bool settled(struct directory *d, uint32_t worker)
{
	const struct merger *m = merger_at(d, worker);
	return m->settled > d->reduced.round && m->merged >= m->settled_by;
}

static bool all_settled(struct directory *d, const struct skep_plan *plan, uint32_t stage)
{
	bool all = true;
	for (uint32_t i = 0; i < plan->workers; i++) {
		const struct row *row = directory_row(d, i);
		if (row->standing == STANDING_SERVING && row->stage == stage)
			all = all && settled(d, i);
	}
	return all;
}

static void commit_if_settled(struct directory *d, struct step *step, uint32_t stage)
{
	bool open = d->reduced.on && !directory_stage(d, stage)->committed && d->phase != PHASE_STOPPED;
	if (open && all_settled(d, step->plan, stage))
		rounds_commit(d, step, stage);
}

static void settle_stage(struct directory *d, struct step *step, uint32_t stage)
{
	for (uint32_t i = 0; i < step->plan->workers; i++) {
		const struct row *row = directory_row(d, i);
		if (row->standing == STANDING_SERVING && row->stage == stage)
			send_settle(d, step, i);
	}
	commit_if_settled(d, step, stage);
}

void merges_settle(struct directory *d, struct step *step)
{
	d->pressed = false;
	for (uint32_t i = 0; i < step->plan->workers; i++)
		merges_serve(d, i);
	for (uint32_t stage = 0; stage < step->plan->stages && d->reduced.on; stage++)
		settle_stage(d, step, stage);
}

/* In one stage, or all. Where parts are gathered everybody is to tell, and to say so, even who has said before that nothing of
 * the round is left there. */
static void press(struct directory *d, struct step *step, uint32_t stage)
{
	for (uint32_t i = 0; i < step->plan->workers; i++) {
		const struct row *row = directory_row(d, i);
		if (row->standing != STANDING_SERVING || directory_stage(d, row->stage)->committed ||
			(stage != SKEP_NO_STAGE && row->stage != stage))
			continue;
		if (step->plan->gather)
			merger_at(d, i)->settled = 0;
		if (!settled(d, i))
			send_settle(d, step, i);
	}
}

void merges_press(struct directory *d, struct step *step)
{
	if (!d->reduced.on || d->pressed)
		return;
	d->pressed = true;
	press(d, step, SKEP_NO_STAGE);
}

/* Those that have begun to serve while a round is being settled may be sent some of it, and are asked too. */
void merges_ask_new(struct directory *d, struct step *step)
{
	for (uint32_t i = 0; i < step->plan->workers && d->reduced.on && d->phase != PHASE_STOPPED; i++) {
		if (directory_row(d, i)->standing == STANDING_SERVING && !merger_at(d, i)->asked)
			send_settle(d, step, i);
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
	struct merging *merging = merging_at(d, stage);
	uint32_t *order = skep_at(d, d->order_at), size = 0, first = step->plan->gather ? 0 : merging->by;
	for (uint32_t nth = 0; nth < step->plan->workers; nth++) { /* in a chain from its worker on, round the row */
		uint32_t worker = (first + nth) % step->plan->workers;
		if (holds(d, worker, stage))
			order[size++] = worker;
	}
	merging->attempt++;
	merging->pending = size;
	for (uint32_t i = 0; i < step->plan->workers; i++)
		if (directory_row(d, i)->stage == stage)
			merger_at(d, i)->member = false;
	for (uint32_t rank = 0; rank < size; rank++) {
		struct skep_message message =
			skep_message_to(&d->node, SKEP_MESSAGE_REDUCE, directory_worker(d, order[rank]));
		message.stage = (uint16_t)stage;
		message.round = directory_stage(d, stage)->behind;
		message.attempt = merging->attempt;
		message.u.reduce.rank = rank;
		message.u.reduce.size = size;
		message.u.reduce.next = directory_worker(d, order[(rank + 1) % size]);
		struct merger *m = merger_at(d, order[rank]);
		message.u.reduce.share = step->plan->gather && m->in ? m->count : 0;
		m->member = m->awaited = true;
		skep_emit_send(step, &d->node, &message);
		if (size > 1 && skep_collective_has_roster(step->plan->collective))
			attempt_roster(d, step, &message, order, size);
	}
}

/* Of those that have told: are they enough, or all that can be waited for? */
static bool enough(struct directory *d, const struct skep_plan *plan, uint32_t stage)
{
	uint32_t ready = 0, serving = 0;
	bool wanted = d->reduced.on && d->pressed && !directory_stage(d, stage)->committed;
	for (uint32_t i = 0; i < plan->workers; i++) {
		const struct merger *m = merger_at(d, i);
		if (!holds(d, i, stage))
			continue;
		ready += m->ready;
		serving++;
		wanted = wanted && (m->ready || m->settled > d->reduced.round);
	}
	return wanted || ready >= (plan->merge_parts < serving ? plan->merge_parts : serving);
}

/* Who is in it: the one that has waited longest, or all. */
static void choose(struct directory *d, const struct skep_plan *plan, uint32_t stage, uint32_t longest)
{
	merging_at(d, stage)->on = true;
	merging_at(d, stage)->by = longest;
	for (uint32_t i = 0; i < plan->workers; i++)
		if (holds(d, i, stage))
			merger_at(d, i)->in = plan->gather ? merger_at(d, i)->ready : i == longest;
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
			directory_let_in_from_any(d, step, i);
		download |= row->standing == STANDING_JOINING;
		const struct merger *m = merger_at(d, i);
		if (m->ready && (best == SKEP_NO_INDEX || m->came < merger_at(d, best)->came))
			best = i;
	}
	if (download || best == SKEP_NO_INDEX || (step->plan->gather && !enough(d, step->plan, stage)))
		return;
	choose(d, step->plan, stage, best);
	begin_attempt(d, step, stage);
}

void merges_go_on(struct directory *d, struct step *step, uint32_t stage)
{
	begin_next(d, step, stage);
}

/* It holds what all others hold, and works at once. */
void merges_ready(struct directory *d, struct step *step, uint32_t worker)
{
	if (directory_row(d, worker)->standing == STANDING_READY && d->phase != PHASE_STOPPED) {
		directory_serve(d, worker);
		rounds_refill(d, step);
	}
	begin_next(d, step, directory_row(d, worker)->stage);
}

/* What the merge had of one round; returns how many. */
static uint32_t note_merged(struct directory *d, struct step *step, uint32_t round, uint32_t stage, uint32_t by)
{
	uint32_t *counter = rounds_counters_of(d, step->plan, round, stage), end = issued(d, round), total = 0;
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
				(struct skep_note){.kind = SKEP_NOTE_MERGED,
					.stage = (uint16_t)stage,
					.round = round,
					.microbatch = first,
					.peer = directory_worker(d, by),
					.value = (int64_t)bits});
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
	struct merger *m = merger_at(d, by);
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
	struct merging *merging = merging_at(d, stage);
	uint32_t total = 0;
	for (uint32_t i = 0; i < step->plan->workers; i++)
		if (holds(d, i, stage) && merger_at(d, i)->in)
			total += close_part(d, step, stage, i);
	for (uint32_t i = 0; i < step->plan->workers; i++) {
		if (directory_row(d, i)->stage != stage || !merger_at(d, i)->member)
			continue;
		struct skep_message message = skep_message_to(&d->node, SKEP_MESSAGE_COMMIT, directory_worker(d, i));
		message.stage = (uint16_t)stage;
		message.round = directory_stage(d, stage)->behind;
		message.attempt = merging->attempt;
		message.u.commit.microbatches = total;
		skep_emit_send(step, &d->node, &message);
		merger_at(d, i)->member = false;
	}
	directory_stage(d, stage)->behind++;
	merging->on = false;
	merging->attempt = 0;
}

/* ---- what is heard ---------------------------------------------------------------------------------------------------- */

/* Some of what is to be merged. */
static void hear(struct directory *d, const struct skep_plan *plan, const struct skep_message *message)
{
	uint32_t worker = message->from.index, round = message->round;
	struct merger *m = merger_at(d, worker);
	if (message->u.tally.count == 0 || message->attempt != m->merged + 1 || m->ready ||
		message->u.tally.used > SKEP_TALLY_PART)
		return;                                       /* there is none, or it is merged already */
	assert(round >= first_round(d) && round <= d->round); /* else it was settled without this */
	uint32_t *counter = rounds_counters_of(d, plan, round, directory_row(d, worker)->stage);
	for (uint32_t i = 0; i < message->u.tally.used; i++) {
		uint32_t microbatch = message->u.tally.base + message->u.tally.offset[i];
		if (microbatch >= issued(d, round) || counter[microbatch] == (worker | TOLD))
			continue;                             /* a duplicate */
		assert(counter[microbatch] == SKEP_NO_INDEX); /* else it is in two merges */
		counter[microbatch] = worker | TOLD;
		m->heard++;
	}
	m->count = message->u.tally.count;
	m->loss_nano[round & 1] = message->u.tally.loss_nano;
	m->ready = m->heard == m->count;
	if (m->ready)
		m->came = ++d->merges;
}

void merges_on_merge(struct directory *d, struct step *step, const struct skep_message *message)
{
	uint32_t worker = message->from.index, stage = directory_row(d, worker)->stage;
	struct merger *m = merger_at(d, worker);
	if (!d->async || directory_row(d, worker)->standing < STANDING_READY)
		return;
	hear(d, step->plan, message);
	if (message->microbatch > m->settled) {
		m->settled = message->microbatch;
		m->settled_by = message->attempt;
	}
	begin_next(d, step, stage);
	commit_if_settled(d, step, stage);
}

void merges_on_tally(struct directory *d, struct step *step, const struct skep_message *message)
{
	uint32_t worker = message->from.index, stage = directory_row(d, worker)->stage;
	struct merging *merging = merging_at(d, stage);
	struct merger *m = merger_at(d, worker);
	if (!merging->on || !m->member || !m->awaited || message->round != directory_stage(d, stage)->behind ||
		message->attempt != merging->attempt)
		return;
	m->awaited = false;
	if (--merging->pending > 0)
		return;
	commit(d, step, stage);
	if (step->plan->gather && d->reduced.on && d->pressed && !all_settled(d, step->plan, stage))
		press(d, step, stage);
	begin_next(d, step, stage);
	commit_if_settled(d, step, stage);
}

/* What it had told and what is not merged is lost. */
static void untell(struct directory *d, const struct skep_plan *plan, uint32_t worker, uint32_t stage)
{
	for (uint32_t round = first_round(d); round <= d->round; round++) {
		uint32_t *counter = rounds_counters_of(d, plan, round, stage);
		for (uint32_t i = 0; i < issued(d, round); i++)
			if (counter[i] == (worker | TOLD))
				counter[i] = SKEP_NO_INDEX;
	}
}

void merges_worker_gone(struct directory *d, struct step *step, uint32_t worker)
{
	uint32_t stage = directory_row(d, worker)->stage;
	if (stage >= step->plan->stages)
		return;
	struct merging *merging = merging_at(d, stage);
	bool member = merging->on && merger_at(d, worker)->member, others = false;
	untell(d, step->plan, worker, stage);
	merges_forget(d, worker);
	for (uint32_t i = 0; i < step->plan->workers; i++)
		others = others || (holds(d, i, stage) && merger_at(d, i)->in);
	if (member && others)
		begin_attempt(d, step, stage);
	else if (member)
		merging->on = false;
	begin_next(d, step, stage);
	commit_if_settled(d, step, stage);
}
