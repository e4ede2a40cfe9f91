/* SPDX-License-Identifier: Apache-2.0
 *
 * no_flush.c - the directory's rounds where nothing is flushed between them (SKEP_PIPELINE_PIPEDREAM).
 *
 * A round is one microbatch of each pipeline that is whole (of waves several: wsp.c), and several rounds are open at once:
 * skep_plan_window(). Opening one grants its microbatches and tells every member of every stage who takes part in its sum
 * (REDUCE) and whether a microbatch of it is coming to that one (the share). So no worker waits for word from here: a worker
 * sums when it has counted its share, and steps when the sum is final. That is the COMMIT, or with a single member its own
 * TALLY (reduce.c). Where stages are uneven (pipelines.h) a round of 15-1, say, is one microbatch of each worker of the first
 * stage, and the only one of the second makes its step with all of them; the code released with PipeDream has it make one after
 * each.
 *
 * What is kept true
 *   - A stage commits its rounds in order, rounds close in order, and a round opens only inside the window.
 *   - Nothing is refilled or run again. A microbatch that is given up anywhere takes with it all that its pipeline holds of
 *     that round and the older ones: DRAIN says so to its workers, who drop what they have not counted and then owe nothing.
 *     So is it when one of them is fenced, up to the newest open round. Which of them were counted, and in which
 *     stages, the tallies say; the rest is reported lost, stage by stage.
 *   - If a member of a sum is fenced, each open round that its stage has not committed is summed anew without it.
 *   - Members of open rounds hold all of their state. A worker leaves, or is admitted to download it, only when no round is
 *     open, and none opens while a worker waits for that or downloads. (A round may be shorter than the download of one
 *     chunk, and a newcomer that steps along would never get one. And a worker that is alone may have stepped on what is
 *     not committed here yet: no other worker is to get that.) For the same reason a step whose state is to be kept waits
 *     for its COMMIT, whichever workers take part.
 */
#include <assert.h>
#include <string.h>

#include "core/directory/directory.h"
#include "core/directory/ends.h"
#include "core/methods/flush.h"

struct open_round {
	uint32_t issued;
	bool has_loss;
	int64_t loss_nano;
};

struct sum { /* of one round in one stage */
	uint32_t attempt, size, pending;
	bool keeps; /* one of the members is to keep the state after its step */
};

struct share { /* of one worker in the sum of one round */
	bool member, tallied;
	uint32_t count, heard;
	int64_t loss_nano_sum;
};

static uint32_t slot_of(const struct directory *d, uint32_t round)
{
	return round % d->open_rounds.window;
}

static struct open_round *round_at(struct directory *d, uint32_t round)
{
	return (struct open_round *)skep_at(d, d->open_rounds.round_at) + slot_of(d, round);
}

static struct sum *sum_at(struct directory *d, uint32_t round, uint32_t stage)
{
	return (struct sum *)skep_at(d, d->open_rounds.sum_at) + (size_t)slot_of(d, round) * d->stages + stage;
}

static struct share *part_at(struct directory *d, const struct skep_plan *plan, uint32_t round, uint32_t worker)
{
	return (struct share *)skep_at(d, d->open_rounds.part_at) + (size_t)slot_of(d, round) * plan->workers + worker;
}

/* By microbatch: the worker that counted it in the stage, by the tallies of the current attempt; SKEP_NO_INDEX:
 * none. */
static uint32_t *counters(struct directory *d, uint32_t round, uint32_t stage)
{
	assert(d->phase == PHASE_OPEN);
	size_t cell = (size_t)slot_of(d, round) * d->stages + stage;
	return (uint32_t *)skep_at(d, d->open_rounds.counter_at) + cell * d->capacity;
}

/* By pipeline: microbatches of the round that it was granted. */
static uint32_t *shares(struct directory *d, uint32_t round)
{
	return (uint32_t *)skep_at(d, d->open_rounds.share_at) + (size_t)slot_of(d, round) * d->pipelines;
}

static size_t directory_lay_out(struct directory *d, const struct skep_plan *plan, size_t at)
{
	size_t window = skep_plan_window(plan), sums = window * plan->stages;
	d->open_rounds.window = (uint32_t)window;
	d->open_rounds.round_at = at;
	at += skep_align(window * sizeof(struct open_round));
	d->open_rounds.sum_at = at;
	at += skep_align(sums * sizeof(struct sum));
	d->open_rounds.part_at = at;
	at += skep_align(window * plan->workers * sizeof(struct share));
	d->open_rounds.counter_at = at;
	at += skep_align(sums * d->capacity * sizeof(uint32_t));
	d->open_rounds.share_at = at;
	return at + skep_align(window * skep_plan_pipelines(plan) * sizeof(uint32_t));
}

/* ---- who sums --------------------------------------------------------------------------------------------------- */

static uint32_t choose_members(
	struct directory *d, const struct skep_plan *plan, uint32_t round, uint32_t stage, uint32_t *ret_order)
{
	assert(!directory_stage(d, stage)->committed);
	uint32_t size = 0;
	for (uint32_t nth = 0; nth < plan->workers; nth++) {
		uint32_t i = skep_plan_in_ring(plan, stage, nth);
		const struct row *row = directory_row(d, i);
		if (row->stage != stage)
			continue;
		struct share *part = part_at(d, plan, round, i);
		*part = (struct share){.member = row->standing >= STANDING_JOINING && row->since <= round};
		if (part->member)
			ret_order[size++] = i;
	}
	return size;
}

/* Of all the pipelines of a worker. */
static uint32_t share_of(struct directory *d, uint32_t round, const struct row *row)
{
	uint32_t share = 0;
	for (uint32_t i = row->pipeline; i < d->pipelines; i += row->replicas)
		share += shares(d, round)[i];
	return share;
}

/* The first of the members that hold all of the state keeps it, if it is time for that. */
static uint32_t keeper(
	struct directory *d, const struct skep_plan *plan, uint32_t round, const uint32_t *order, uint32_t size)
{
	assert(d->phase == PHASE_OPEN);
	for (uint32_t rank = 0; rank < size; rank++)
		if (skep_checkpoints_no_flush(d, plan, round, order[rank]))
			return rank;
	return SKEP_NO_INDEX;
}

static void begin_attempt(struct directory *d, struct step *step, uint32_t round, uint32_t stage)
{
	assert(!directory_stage(d, stage)->committed);
	struct sum *sum = sum_at(d, round, stage);
	uint32_t *order = skep_at(d, d->order_at);
	uint32_t size = choose_members(d, step->plan, round, stage, order);
	assert(size > 0 || directory_stage(d, stage)->waiting);
	uint32_t keeps = keeper(d, step->plan, round, order, size);
	for (uint32_t i = 0; i < d->capacity; i++)
		counters(d, round, stage)[i] = SKEP_NO_INDEX;
	sum->attempt++;
	sum->size = sum->pending = size;
	sum->keeps = keeps != SKEP_NO_INDEX;
	for (uint32_t rank = 0; rank < size; rank++) {
		struct skep_message message =
			skep_message_to(&d->node, SKEP_MESSAGE_REDUCE, directory_worker(d, order[rank]));
		message.stage = (uint16_t)stage;
		message.round = round;
		message.attempt = sum->attempt;
		message.u.reduce.rank = rank;
		message.u.reduce.size = size;
		message.u.reduce.next = directory_worker(d, order[(rank + 1) % size]);
		message.u.reduce.share = share_of(d, round, directory_row(d, order[rank]));
		message.u.reduce.checkpoint = rank == keeps;
		skep_emit_send(step, &d->node, &message);
	}
}

/* ---- the end of a round ------------------------------------------------------------------------------------------ */

static void report_loss(struct directory *d, struct step *step, uint32_t round, int64_t sum, uint32_t counted)
{
	assert(d->phase == PHASE_OPEN);
	struct open_round *open = round_at(d, round);
	open->has_loss = counted > 0;
	if (counted == 0)
		return;
	open->loss_nano = sum == INT64_MAX ? INT64_MAX : sum / counted;
	skep_emit_note(step, &d->node,
		(struct skep_note){.kind = SKEP_NOTE_LOSS, .round = round, .loss_nano = open->loss_nano});
}

/* A single member has stepped on its own word, unless it is to keep the state. */
static void send_commits(struct directory *d, struct step *step, uint32_t round, uint32_t stage, uint32_t counted)
{
	assert(!directory_stage(d, stage)->committed);
	const struct sum *sum = sum_at(d, round, stage);
	for (uint32_t i = 0; i < step->plan->workers && (sum->size > 1 || sum->keeps); i++) {
		if (directory_row(d, i)->stage != stage || !part_at(d, step->plan, round, i)->member)
			continue;
		struct skep_message message = skep_message_to(&d->node, SKEP_MESSAGE_COMMIT, directory_worker(d, i));
		message.stage = (uint16_t)stage;
		message.round = round;
		message.attempt = sum->attempt;
		message.u.commit.microbatches = counted;
		skep_emit_send(step, &d->node, &message);
	}
}

static void commit(struct directory *d, struct step *step, uint32_t round, uint32_t stage)
{
	assert(!directory_stage(d, stage)->committed);
	uint32_t total = 0;
	int64_t loss_sum = 0;
	for (uint32_t i = 0; i < step->plan->workers; i++) {
		const struct share *part = part_at(d, step->plan, round, i);
		if (directory_row(d, i)->stage != stage || !part->member)
			continue;
		total += part->count;
		bool overflow = part->loss_nano_sum > 0 && loss_sum > INT64_MAX - part->loss_nano_sum;
		loss_sum = overflow ? INT64_MAX : loss_sum + part->loss_nano_sum;
		skep_emit_note(step, &d->node,
			(struct skep_note){.kind = SKEP_NOTE_MEMBER,
				.stage = (uint16_t)stage,
				.round = round,
				.peer = directory_worker(d, i),
				.microbatches = part->count});
	}
	uint32_t lost =
		skep_rounds_note_lost(d, step, round, stage, counters(d, round, stage), round_at(d, round)->issued);
	skep_emit_note(step, &d->node,
		(struct skep_note){.kind = SKEP_NOTE_STAGE_COMMITTED,
			.stage = (uint16_t)stage,
			.round = round,
			.counted = total,
			.lost = lost});
	if (stage + 1 == step->plan->stages)
		report_loss(d, step, round, loss_sum, total);
	send_commits(d, step, round, stage, total);
	directory_stage(d, stage)->behind = round + 1;
}

static bool committed_everywhere(struct directory *d, uint32_t round)
{
	assert(d->phase == PHASE_OPEN);
	for (uint32_t stage = 0; stage < d->stages; stage++) {
		if (directory_stage(d, stage)->behind <= round)
			return false;
	}
	return true;
}

static void close_round(struct directory *d, struct step *step)
{
	assert(d->phase == PHASE_OPEN);
	const struct open_round *open = round_at(d, d->closed);
	skep_emit_note(step, &d->node,
		(struct skep_note){.kind = SKEP_NOTE_ROUND_CLOSED, .round = d->closed, .issued = open->issued});
	d->closed++;
	d->loss_nano = open->has_loss ? open->loss_nano : d->loss_nano;
	if (skep_ends_reached(d, step->plan))
		skep_rounds_end(d, step);
}

static void fill(struct directory *d, struct step *step);

/* Commits what all members have told, and closes what all stages have committed. */
static void resolve(struct directory *d, struct step *step)
{
	assert(d->pipelines > 0);
	for (uint32_t stage = 0; stage < d->stages; stage++) {
		uint32_t round = directory_stage(d, stage)->behind;
		for (; round < d->round && sum_at(d, round, stage)->pending == 0; round++)
			commit(d, step, round, stage);
	}
	while (d->closed < d->round && d->phase != PHASE_STOPPED && !d->ending && committed_everywhere(d, d->closed))
		close_round(d, step);
	fill(d, step);
}

/* ---- a round opens ----------------------------------------------------------------------------------------------- */

static void grant(struct directory *d, struct step *step, uint32_t round, uint32_t pipeline, uint32_t count)
{
	uint32_t owner = directory_pipeline(d, pipeline)->first;
	assert(d->phase == PHASE_OPEN);
	struct open_round *open = round_at(d, round);
	struct skep_message message = skep_message_to(&d->node, SKEP_MESSAGE_GRANT, directory_worker(d, owner));
	skep_emit_note(step, &d->node,
		(struct skep_note){.kind = SKEP_NOTE_ISSUED,
			.round = round,
			.microbatch = open->issued,
			.peer = directory_worker(d, owner),
			.granted = count});
	message.round = round;
	message.microbatch = open->issued;
	message.span = (struct skep_span){0, (uint16_t)(step->plan->stages - 1)};
	message.u.grant.count = count;
	message.u.grant.in_flight = step->plan->in_flight;
	message.u.grant.pipeline = pipeline;
	skep_emit_send(step, &d->node, &message);
	open->issued += count;
}

static void open_round(struct directory *d, struct step *step)
{
	assert(d->round - d->closed < d->open_rounds.window);
	assert(d->phase == PHASE_OPEN);
	uint32_t round = d->round, each = step->plan->microbatches / d->pipelines;
	*round_at(d, round) = (struct open_round){0};
	skep_emit_note(step, &d->node, (struct skep_note){.kind = SKEP_NOTE_ROUND_OPENED, .round = round});
	memset(shares(d, round), 0, d->pipelines * sizeof(uint32_t));
	for (uint32_t i = 0; i < d->pipelines; i++) {
		if (!skep_fixed_works(d, i))
			continue;
		shares(d, round)[i] = each;
		grant(d, step, round, i, each);
	}
	for (uint32_t stage = 0; stage < d->stages; stage++) {
		sum_at(d, round, stage)->attempt = 0;
		begin_attempt(d, step, round, stage);
	}
	d->round++;
}

/* A worker of this standing, of a stage that is not waiting for its restorer; NULL or false if there is none. */
static uint32_t next_of(struct directory *d, const struct skep_plan *plan, enum standing standing, uint32_t from)
{
	assert(d->phase == PHASE_OPEN);
	for (uint32_t i = from; i < plan->workers; i++) {
		const struct row *row = directory_row(d, i);
		if (row->standing == standing &&
			(standing != STANDING_ENTERED || !directory_stage(d, row->stage)->waiting))
			return i;
	}
	return SKEP_NO_INDEX;
}

static void let_in_all(struct directory *d, struct step *step)
{
	assert(d->pipelines > 0);
	const struct skep_plan *plan = step->plan;
	for (uint32_t i = next_of(d, plan, STANDING_ENTERED, 0); i != SKEP_NO_INDEX;
		i = next_of(d, plan, STANDING_ENTERED, i + 1))
		skep_directory_admit_from_any(d, step, i);
}

static bool has_room(const struct directory *d, const struct skep_plan *plan)
{
	return !d->ending && d->round < plan->rounds && d->whole > 0 && d->round - d->closed < d->open_rounds.window;
}

static void fill(struct directory *d, struct step *step)
{
	assert(d->pipelines > 0);
	while (d->phase != PHASE_STOPPED) {
		bool drained = d->round == d->closed;
		if (drained)
			let_in_all(d, step);
		bool waits = next_of(d, step->plan, STANDING_ENTERED, 0) != SKEP_NO_INDEX ||
		             next_of(d, step->plan, STANDING_JOINING, 0) != SKEP_NO_INDEX;
		if (waits || !has_room(d, step->plan))
			return;
		if (!skep_boundary_due(d, step))
			open_round(d, step);
		else if (drained)
			skep_boundary_pass(d, step);
		else
			return;
	}
}

/* ---- what is heard ----------------------------------------------------------------------------------------------- */

/* The pipeline gives up what it holds of the open rounds up to this one. */
static void give_up(struct directory *d, struct step *step, uint32_t pipeline, uint32_t round)
{
	struct pipeline *p = directory_told_with(d, pipeline);
	if (p->given_up > round)
		return;
	p->given_up = round + 1;
	for (uint32_t i = 0; i < step->plan->workers; i++) {
		const struct row *row = directory_row(d, i);
		if (!directory_is_told(d, row, pipeline))
			continue;
		struct skep_message message = skep_message_to(&d->node, SKEP_MESSAGE_DRAIN, directory_worker(d, i));
		message.round = round;
		skep_emit_send(step, &d->node, &message);
	}
}

static void on_finished(struct directory *d, struct step *step, const struct skep_message *message)
{
	assert(message->kind == SKEP_MESSAGE_FINISHED);
	bool open = message->round >= d->closed && message->round < d->round;
	if (open && !message->u.finished.ok)
		give_up(d, step, directory_row(d, message->from.index)->pipeline, message->round);
}

static void on_tally(struct directory *d, struct step *step, const struct skep_message *message)
{
	assert(message->kind == SKEP_MESSAGE_TALLY);
	uint32_t worker = message->from.index, round = message->round, stage = directory_row(d, worker)->stage;
	if (round < directory_stage(d, stage)->behind || round >= d->round || d->ending)
		return;
	struct share *part = part_at(d, step->plan, round, worker);
	struct sum *sum = sum_at(d, round, stage);
	if (!part->member || part->tallied || message->attempt != sum->attempt ||
		message->u.tally.used > SKEP_TALLY_PART)
		return;
	for (uint32_t i = 0; i < message->u.tally.used; i++) {
		uint32_t microbatch = message->u.tally.base + message->u.tally.offset[i];
		if (microbatch >= round_at(d, round)->issued || counters(d, round, stage)[microbatch] == worker)
			continue;                                               /* a duplicate */
		assert(counters(d, round, stage)[microbatch] == SKEP_NO_INDEX); /* else it is in the sum twice */
		counters(d, round, stage)[microbatch] = worker;
		part->heard++;
	}
	part->count = message->u.tally.count;
	part->loss_nano_sum = message->u.tally.loss_nano;
	if (part->heard != part->count)
		return; /* more parts to come */
	part->tallied = true;
	if (--sum->pending == 0)
		resolve(d, step);
}

static void fenced(struct directory *d, struct step *step, uint32_t worker, bool served)
{
	assert(worker < step->plan->workers);
	const struct row *row = directory_row(d, worker);
	(void)served;
	d->full = false;
	for (uint32_t round = directory_stage(d, row->stage)->behind; round < d->round; round++) {
		if (part_at(d, step->plan, round, worker)->member)
			begin_attempt(d, step, round, row->stage);
	}
	if (d->round > d->closed)
		give_up(d, step, row->pipeline, d->round - 1);
	resolve(d, step);
}

static void begin_round(struct directory *d, struct step *step)
{
	assert(d->pipelines > 0);
	skep_directory_enter(d, PHASE_OPEN);
	fill(d, step);
}

/* Some worker may be let in, when no round is open. */
static void entered(struct directory *d, struct step *step, uint32_t worker)
{
	(void)worker;
	fill(d, step);
}

static void refill(struct directory *d, struct step *step, uint32_t preferred)
{
	(void)preferred;
	fill(d, step);
}

/* Rounds that are open still may be committed, also when the run ends. */
static uint32_t since(struct directory *d, uint32_t worker)
{
	(void)worker;
	return d->round;
}

static uint32_t stop_version(struct directory *d, const struct row *row)
{
	return directory_stage(d, row->stage)->behind;
}

/* All that may be open opens; is summed anew for each that is fenced; ends. Uneven pipelines may be more than workers. */
static uint32_t actions(const struct skep_plan *plan, uint32_t fences)
{
	return (fences + 6 + skep_plan_pipelines(plan) / plan->workers) * skep_plan_window(plan);
}

static void never(struct directory *d, struct step *step)
{
	(void)d, (void)step;
	assert(false); /* no round is reduced as a whole */
}

static void never_validates(struct directory *d, struct step *step, bool over)
{
	(void)d, (void)step, (void)over;
	assert(false);
}

const struct skep_directory_method skep_no_flush_directory = {
	SKEP_FLUSH_SERVICE,
	.lay_out = directory_lay_out,
	.counted_rounds = 1,
	.actions = actions,
	.refills = 2,
	.steps_ahead = true,
	.begin = begin_round,
	.on_finished = on_finished,
	.given_up = skep_flush_given_up,
	.refill = refill,
	.resume = fill,
	.complete = never,
	.reduce = never,
	.on_tally = on_tally,
	.on_outer_update = skep_flush_on_outer_update,
	.keeper = skep_checkpoints_keeper,
	.counted = skep_flush_counted,
	.committed = skep_flush_committed,
	.validate = never_validates,
	.stop_version = stop_version,
	.stepped = skep_flush_stepped,
	.entered = entered,
	.since = since,
	.ready = skep_flush_ready,
	.admit = skep_flush_admit,
	.keep = skep_flush_keep,
	.worker_gone = fenced,
};
