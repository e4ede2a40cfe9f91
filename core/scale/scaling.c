/* SPDX-License-Identifier: Apache-2.0
 *
 * scaling.c - the directory asks for machines and gives them back, as scale.h decides: it says what is known when a round closes,
 * asks the world for what is wanted, and tells workers of machines that are too many to leave. One that is told does as after the
 * notice of a cloud: it is granted no more, goes at the next round boundary, and does not come back by itself; so nothing is lost
 * with it. With delayed updates the next round is open by then: what an owner was granted of it and has not begun it hands back,
 * which is told as lost and made up for.
 *
 * Who is told: a worker that serves, of the stage that most will stay in, and of these the one with the highest number. A stage
 * keeps one that stays, so where stages are small fewer may go than should.
 */
#include "core/scale/scale.h"

#include "core/directory/directory.h"
#include "core/directory/ends.h"

#define RETURNS_PER_ROUND 8u /* bounds the actions of a step; the others are told a round later */

static struct skep_scale_state *state_of(struct directory *d)
{
	return skep_at(d, d->scaling_at);
}

static uint32_t kind_of(const struct skep_plan *plan, uint32_t worker)
{
	assert(worker < plan->workers);
	return plan->scale->kind_of[worker];
}

static bool will_stay(const struct row *row)
{
	return row->standing != STANDING_ABSENT && !row->leaving && !row->returned;
}

/* Of all workers that serve and will. One that leaves with this round was granted little of it. */
static uint32_t speed_of_all(struct directory *d, const struct skep_plan *plan)
{
	uint64_t speed = 0;
	for (uint32_t i = 0; i < plan->workers; i++) {
		const struct row *row = directory_row(d, i);
		if (row->standing == STANDING_SERVING && will_stay(row))
			speed += plan->scale->kind[kind_of(plan, i)].speed;
	}
	return speed < UINT32_MAX ? (uint32_t)speed : UINT32_MAX;
}

static uint64_t microbatches_between(const struct skep_plan *plan, uint32_t from, uint32_t to)
{
	assert(from <= to);
	if (!skep_plan_periodic(plan))
		return (uint64_t)(to - from) * plan->microbatches;
	return (skep_plan_steps_before(plan, to) - skep_plan_steps_before(plan, from)) * skep_plan_inner_batch(plan);
}

static struct skep_scale_now look(struct directory *d, const struct skep_plan *plan)
{
	const struct skep_scale *scale = plan->scale;
	struct skep_scale_now now = {
		.now_ns = d->node.now, .left = microbatches_between(plan, d->closed, plan->rounds)};
	for (uint32_t k = 0; k < scale->kinds; k++)
		now.price[k] = skep_ends_price(plan, scale->kind[k].example, d->node.now);
	for (uint32_t i = 0; i < plan->workers; i++)
		now.there[kind_of(plan, i)] += will_stay(directory_row(d, i));
	return now;
}

static void ask(struct directory *d, struct step *step, const struct skep_scale_now *now, const uint32_t *before)
{
	const uint32_t *wanted = state_of(d)->wanted;
	for (uint32_t k = 0; k < step->plan->scale->kinds; k++) {
		if (wanted[k] == before[k])
			continue;
		skep_emit_note(step, &d->node,
			(struct skep_note){.kind = SKEP_NOTE_SCALED,
				.stage = (uint16_t)k,
				.round = d->closed,
				.wanted = wanted[k],
				.there = now->there[k]});
		skep_emit_scale(step, k, wanted[k]);
	}
}

/* SKEP_NO_INDEX: none of this kind may go. */
static uint32_t choose_return(struct directory *d, const struct skep_plan *plan, uint32_t kind)
{
	uint32_t best = SKEP_NO_INDEX, most = 1;
	for (uint32_t i = 0; i < plan->workers; i++) {
		const struct row *row = directory_row(d, i);
		if (kind_of(plan, i) != kind || row->standing != STANDING_SERVING || !will_stay(row))
			continue;
		uint32_t stay = directory_stage(d, row->stage)->staying;
		if (stay < most || stay < 2)
			continue;
		most = stay;
		best = i;
	}
	return best;
}

static void count_staying(struct directory *d, const struct skep_plan *plan)
{
	for (uint32_t i = 0; i < plan->stages; i++)
		directory_stage(d, i)->staying = 0;
	for (uint32_t i = 0; i < plan->workers; i++) {
		const struct row *row = directory_row(d, i);
		if (row->standing == STANDING_SERVING && will_stay(row))
			directory_stage(d, row->stage)->staying++;
	}
}

static void tell(struct directory *d, struct step *step, uint32_t worker)
{
	struct row *row = directory_row(d, worker);
	assert(row->standing == STANDING_SERVING && !row->leaving);
	struct skep_message message = skep_message_to(&d->node, SKEP_MESSAGE_PEER, directory_worker(d, worker));
	assert(directory_stage(d, row->stage)->staying > 1);
	row->returned = true;
	directory_stage(d, row->stage)->staying--;
	skep_emit_note(step, &d->node,
		(struct skep_note){.kind = SKEP_NOTE_RETURNED,
			.stage = (uint16_t)row->stage,
			.round = d->closed,
			.peer = directory_worker(d, worker)});
	message.stage = (uint16_t)row->stage;
	message.u.peer.who = directory_worker(d, worker);
	message.u.peer.alive = message.u.peer.leaving = true;
	skep_emit_send(step, &d->node, &message);
}

static void give_back(struct directory *d, struct step *step, const struct skep_scale_now *now)
{
	const uint32_t *wanted = state_of(d)->wanted;
	assert(step->plan->scale->kinds <= SKEP_SCALE_KINDS_MAX);
	uint32_t left = RETURNS_PER_ROUND;
	bool counted = false;
	for (uint32_t k = 0; k < step->plan->scale->kinds; k++) {
		for (uint32_t there = now->there[k]; there > wanted[k] && left > 0; there--, left--) {
			if (!counted)
				count_staying(d, step->plan);
			counted = true;
			uint32_t worker = choose_return(d, step->plan, k);
			if (worker == SKEP_NO_INDEX)
				break;
			tell(d, step, worker);
		}
	}
}

static void policy_round_closed(struct directory *d, struct step *step)
{
	const struct skep_plan *plan = step->plan;
	struct skep_scale_state *state = state_of(d);
	assert(d->closed > 0 && d->closed <= plan->rounds);
	struct skep_scale_now now = look(d, plan);
	uint32_t before[SKEP_SCALE_KINDS_MAX];
	for (uint32_t k = 0; k < SKEP_SCALE_KINDS_MAX; k++)
		before[k] = state->wanted[k];
	skep_scale_measure(
		state, now.now_ns, speed_of_all(d, plan), microbatches_between(plan, d->closed - 1, d->closed));
	if (now.left == 0)
		return;
	if (skep_scale_decide(state, plan->scale, &now))
		ask(d, step, &now, before);
	give_back(d, step, &now);
}

static size_t policy_lay_out(struct directory *d, const struct skep_plan *plan, size_t at)
{
	(void)plan;
	d->scaling_at = at;
	return at + skep_align(sizeof(struct skep_scale_state));
}

static void policy_begin(struct directory *d, const struct skep_plan *plan)
{
	skep_scale_init(state_of(d), plan->scale, d->node.now, speed_of_all(d, plan));
}

const struct skep_scaling skep_scaling_policy = {
	.actions = 2 * SKEP_SCALE_KINDS_MAX + 2 * RETURNS_PER_ROUND,
	.lay_out = policy_lay_out,
	.begin = policy_begin,
	.round_closed = policy_round_closed,
};

static size_t none_lay_out(struct directory *d, const struct skep_plan *plan, size_t at)
{
	(void)d, (void)plan;
	return at;
}

static void none_begin(struct directory *d, const struct skep_plan *plan)
{
	(void)d, (void)plan;
}

static void none_round_closed(struct directory *d, struct step *step)
{
	(void)d, (void)step;
}

const struct skep_scaling skep_scaling_none = {
	.lay_out = none_lay_out, .begin = none_begin, .round_closed = none_round_closed};
