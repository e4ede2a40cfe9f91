/* SPDX-License-Identifier: Apache-2.0
 *
 * cluster.c - the test world: event heap, processes, the life of messages and operations.
 *
 * Decides nothing about when and what fails; keeps the duties of a world as core/skep.h lists them, and checks at the
 * border what a machine may ask for: handles, sizes, memory, epochs, deadlines.
 */
#include "tests/cluster/internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define SPINS_LIMIT 1000u /* TIMER events without actions and without time passing */

void *grown(void *block, uint32_t *capacity, uint32_t needed, size_t item)
{
	if (needed <= *capacity)
		return block;
	*capacity = needed * 2;
	block = realloc(block, *capacity * item);
	assert(block);
	return block;
}

struct cluster *cluster_create(void)
{
	struct cluster *c = calloc(1, sizeof(*c));
	assert(c);
	c->referee = referee_create();
	assert(c->referee);
	return c;
}

void cluster_destroy(struct cluster *c)
{
	for (uint32_t m = 0; m < MACHINES; m++) {
		free(c->process[m].block[0]);
		free(c->process[m].block[1]);
		for (uint32_t l = 0; l < SKEP_LANES; l++)
			free(c->process[m].lane[l].item);
	}
	referee_destroy(c->referee);
	free(c->tensors.slot);
	free(c->event);
	free(c->heap);
	free(c->action);
	free(c);
}

uint64_t draw(uint64_t *state)
{
	return mix64(*state += 0x9e3779b97f4a7c15u);
}

bool sabotaged(struct cluster *c, enum sabotage kind)
{
	return c->setup.sabotage == kind && ++c->opportunities == c->setup.sabotage_at;
}

void trace(struct cluster *c, struct trace trace)
{
	trace.now = c->now;
	if (c->setup.trace)
		c->setup.trace(c->setup.trace_context, &trace);
}

static void fault(struct cluster *c, uint32_t machine, const char *what)
{
	trace(c, (struct trace){.what = TRACE_FAULT, .who = {machine, c->process[machine].epoch}, .fault = what});
}

/* ---- a step ------------------------------------------------------------------------------------------------------ */

static void perform_release(struct cluster *c, uint32_t index, struct skep_buf buf)
{
	if (sabotaged(c, SABOTAGE_RELEASE_EATEN))
		return;
	struct slot *slot = tensors_use(&c->tensors, buf, index, c->verdict);
	if (!slot)
		return;
	if (slot->pins > 0)
		verdict_break(c->verdict, "I5", slot->tensor.round, slot->tensor.stage, slot->tensor.microbatch,
			"machine %u releases a tensor that a queued operation needs", index);
	else
		tensors_free(&c->tensors, buf);
	if (sabotaged(c, SABOTAGE_RELEASE_TWICE))
		perform_release(c, index, buf);
}

static bool hidden(struct cluster *c, const struct skep_note *note)
{
	return (note->kind == SKEP_NOTE_LOST && sabotaged(c, SABOTAGE_LOST_HIDDEN)) ||
	       (note->kind == SKEP_NOTE_ROUND_VOIDED && sabotaged(c, SABOTAGE_VOID_HIDDEN)) ||
	       (note->kind == SKEP_NOTE_MEMBER && sabotaged(c, SABOTAGE_MEMBER_HIDDEN)) ||
	       (note->kind == SKEP_NOTE_COUNTED && sabotaged(c, SABOTAGE_COUNTED_HIDDEN)) ||
	       (note->kind == SKEP_NOTE_OUTER_UPDATED && sabotaged(c, SABOTAGE_MERGED_HIDDEN)) ||
	       (note->kind == SKEP_NOTE_MIGRATED && sabotaged(c, SABOTAGE_MOVED_HIDDEN)) ||
	       (note->kind == SKEP_NOTE_MIGRATED && c->kept_now && sabotaged(c, SABOTAGE_CANDIDATE_STAYS)) ||
	       (note->kind == SKEP_NOTE_ADMITTED && sabotaged(c, SABOTAGE_ADMITTED_HIDDEN)) ||
	       (note->kind == SKEP_NOTE_STAGE_RESTARTED && sabotaged(c, SABOTAGE_RESTARTED_HIDDEN)) ||
	       (note->kind == SKEP_NOTE_STAGE_EMPTY && sabotaged(c, SABOTAGE_EMPTY_HIDDEN)) ||
	       (note->kind == SKEP_NOTE_CHECKPOINTED && sabotaged(c, SABOTAGE_KEPT_HIDDEN)) ||
	       (note->kind == SKEP_NOTE_VALIDATED && sabotaged(c, SABOTAGE_VALIDATED_HIDDEN)) ||
	       (note->kind == SKEP_NOTE_RESUMED && sabotaged(c, SABOTAGE_RESUMED_HIDDEN)) ||
	       (note->kind == SKEP_NOTE_SHARD_LOST && sabotaged(c, SABOTAGE_SHARD_HIDDEN)) ||
	       (note->kind == SKEP_NOTE_LEFT && sabotaged(c, SABOTAGE_LEFT_HIDDEN));
}

static void falsify(struct cluster *c, struct skep_note *note)
{
	if (note->kind == SKEP_NOTE_CANDIDATE_DROPPED)
		c->kept_now = true;
	if (note->kind == SKEP_NOTE_CANDIDATE_CHOSEN) {
		c->kept_now = true;
		if (sabotaged(c, SABOTAGE_CANDIDATE_WRONG))
			note->candidate = (uint8_t)((note->candidate + 1u) % c->setup.plan->candidates.count);
	}
	c->kept_now = c->kept_now && note->kind != SKEP_NOTE_ROUND_OPENED;
	if (note->kind == SKEP_NOTE_COUNTED && sabotaged(c, SABOTAGE_STALENESS_WRONG))
		note->staleness ^= 1;
	if (note->kind == SKEP_NOTE_SCALED && sabotaged(c, SABOTAGE_SCALED_FALSE))
		note->wanted++;
	if (note->kind == SKEP_NOTE_RETURNED && sabotaged(c, SABOTAGE_RETURNED_FALSE))
		note->peer.index = (note->peer.index + 1) % c->setup.plan->workers;
	if (note->kind != SKEP_NOTE_MIGRATED)
		return;
	if (sabotaged(c, SABOTAGE_MOVED_ELSEWHERE)) {
		note->stage = (uint16_t)((note->stage + 1u) % c->setup.plan->stages);
		note->candidate = 0;
	}
	if (sabotaged(c, SABOTAGE_LEFT_UNASKED))
		note->kind = SKEP_NOTE_LEFT;
}

/* A standby worker waits for as long as no worker is missing. One that moves is not missing: it has its stage, and is
 * only on its way there. Where a worker migrates at every round boundary there is always one on its way when a round
 * opens, and the swarm is as strong as it began all the same. It is missing from when it is fenced; and should it never
 * arrive, then it is the one that has been left out. */
static bool waits(const struct cluster *c, uint32_t worker)
{
	const struct skep_plan *plan = c->setup.plan;
	uint32_t began = 0, now = 0;
	for (uint32_t w = 0; w < plan->workers; w++) {
		began += plan->first_stage_of[w] != SKEP_NO_STAGE;
		now += c->process[w].seated || (c->process[w].moving && w != worker);
	}
	bool full = now >= began || plan->candidates.count > 1; /* each candidate has a part of them */
	return plan->sharded || (plan->stands_by && plan->stands_by[worker] && full);
}

/* In calm weather a worker that lives comes (back) in: not at once, but three rounds and a long time are enough. */
static void check_left_out(struct cluster *c)
{
	for (uint32_t w = 0; w < c->setup.plan->workers; w++) {
		struct process *p = &c->process[w];
		if (!p->alive || p->left || p->seated || c->now < c->setup.calm_ns)
			continue;
		if (waits(c, w)) {
			p->out_since = c->now;
			p->out_rounds = 0;
			continue;
		}
		skep_time since = p->out_since > c->setup.calm_ns ? p->out_since : c->setup.calm_ns;
		if (++p->out_rounds > 3 && c->now - since > 30 * c->setup.plan->liveness.fence_after_ns)
			verdict_break(c->verdict, "I7", ANY, ANY, ANY,
				"worker %u lives, but has been out for %llu ms and %u rounds", w,
				(unsigned long long)(c->now - since) / 1000000, p->out_rounds);
	}
}

static void follow_membership(struct cluster *c, const struct skep_note *note)
{
	struct process *p = &c->process[note->peer.index];
	if (note->kind == SKEP_NOTE_ROUND_OPENED)
		check_left_out(c);
	c->result.kept += note->kind == SKEP_NOTE_CHECKPOINTED;
	c->result.restored += note->kind == SKEP_NOTE_STAGE_RESTARTED;
	c->result.voids += note->kind == SKEP_NOTE_ROUND_VOIDED;
	if (note->kind == SKEP_NOTE_UNEQUAL)
		process_unequal(c, note);
	bool ends = note->kind == SKEP_NOTE_FENCED || note->kind == SKEP_NOTE_LEFT || note->kind == SKEP_NOTE_MIGRATED;
	if (!ends && note->kind != SKEP_NOTE_JOINED)
		return;
	p->seated = note->kind == SKEP_NOTE_JOINED;
	p->moving = note->kind == SKEP_NOTE_MIGRATED;
	p->out_since = c->now;
	p->out_rounds = 0;
	c->result.fences += note->kind == SKEP_NOTE_FENCED;
	c->result.leaves += note->kind == SKEP_NOTE_LEFT;
	c->result.moves += note->kind == SKEP_NOTE_MIGRATED;
	c->result.joins += p->seated;
}

/* Fixed pipelines: what belongs into one of them comes to another, or at the wrong time. */
static void misdirect(struct cluster *c, struct skep_message *m)
{
	const struct skep_plan *plan = c->setup.plan;
	uint32_t pipe = skep_plan_pipelines(plan) - 1;
	if (m->kind == SKEP_MESSAGE_FORWARD && skep_plan_pipeline_of(plan, m->to.index) < pipe &&
		sabotaged(c, SABOTAGE_PARTNER_WRONG))
		m->to.index = skep_plan_place(plan, pipe, (m->stage + 1u) % plan->stages);
	if (m->kind == SKEP_MESSAGE_REDUCE && !m->u.reduce.eager && plan->eager &&
		sabotaged(c, SABOTAGE_EAGER_INVENTED))
		m->u.reduce.eager = true;
	if (m->kind == SKEP_MESSAGE_GRANT && plan->pipeline != SKEP_PIPELINE_1F1B &&
		sabotaged(c, SABOTAGE_TURN_INVENTED)) {
		m->to.index = skep_plan_place(plan, skep_plan_pipeline_of(plan, m->to.index), plan->stages - 1);
		m->to.epoch = c->process[m->to.index].epoch;
		m->kind = SKEP_MESSAGE_DRAIN;
	}
}

/* To one of the same stage that began with another candidate. */
static void mix(struct cluster *c, struct skep_message *m)
{
	const struct skep_plan *plan = c->setup.plan;
	uint32_t other = 0;
	while (other < plan->workers && (plan->first_stage_of[other] != m->stage + 1u || c->process[other].epoch != 1 ||
						referee_candidate(plan, other) == referee_candidate(plan, m->to.index)))
		other++;
	if (m->to.epoch == 1 && other < plan->workers && m->round < plan->candidates.rounds &&
		sabotaged(c, SABOTAGE_CANDIDATES_MIXED))
		m->to = (struct skep_peer){other, 1};
}

static void perform(struct cluster *c, uint32_t index, struct skep_action *action)
{
	struct skep_peer who = {index, c->process[index].epoch};
	if (action->kind == SKEP_ACTION_NOTE) {
		if (hidden(c, &action->u.note))
			return;
		falsify(c, &action->u.note);
	}
	if (action->kind == SKEP_ACTION_SEND && sabotaged(c, SABOTAGE_STRAY_SEND))
		action->u.send.to.index = c->setup.plan->workers + 1;
	if (action->kind == SKEP_ACTION_SEND && skep_plan_fixed(c->setup.plan))
		misdirect(c, &action->u.send);
	if (action->kind == SKEP_ACTION_SEND && c->setup.plan->candidates.count > 1 &&
		action->u.send.kind == SKEP_MESSAGE_FORWARD)
		mix(c, &action->u.send);
	referee_action(c->referee, c->now, who, action);
	if (c->verdict->broken)
		return;
	if (action->kind == SKEP_ACTION_SEND)
		(action->keep ? post_send_copy : post_send)(c, index, &action->u.send);
	else if (action->kind == SKEP_ACTION_RUN)
		process_run(c, index, &action->u.run);
	else if (action->kind == SKEP_ACTION_RELEASE)
		perform_release(c, index, action->u.release);
	else if (action->kind == SKEP_ACTION_CANCEL)
		whole_cancel(c, index, action->u.cancel);
	else if (action->kind == SKEP_ACTION_SCALE)
		scaled_asked(c, action);
	else if (action->kind == SKEP_ACTION_NOTE) {
		follow_membership(c, &action->u.note);
		trace(c, (struct trace){.what = TRACE_NOTE, .who = who, .note = &action->u.note});
	}
}

static void arm(struct cluster *c, uint32_t index)
{
	struct process *p = &c->process[index];
	skep_time at = c->setup.machine->deadline(p->node);
	if (at == SKEP_TIME_NEVER)
		return;
	if (at < c->now)
		at = c->now;
	if (c->setup.lateness)
		at += c->setup.lateness(c->setup.context, c->now, index);
	if (at >= p->timer_at)
		return;
	p->timer_at = at;
	agenda_add(c, at, EVENT_TIMER, index)->until = at;
}

static void check_after_step(struct cluster *c, uint32_t index, const struct skep_event *event, uint32_t count)
{
	struct process *p = &c->process[index];
	uint32_t epoch = c->setup.machine->epoch(p->node);
	if (count > c->action_limit)
		verdict_break(c->verdict, "I6", ANY, ANY, ANY, "machine %u returns %u actions, %u are the limit", index,
			count, c->action_limit);
	if (sabotaged(c, SABOTAGE_MEMORY_OVERRUN))
		p->block[p->half][GUARD + p->size] = 0;
	if (!process_guards_whole(p))
		verdict_break(c->verdict, "I6", ANY, ANY, ANY, "machine %u writes beyond its memory", index);
	if (epoch < p->epoch)
		verdict_break(c->verdict, "I6", ANY, ANY, ANY, "the epoch of machine %u goes from %u back to %u", index,
			p->epoch, epoch);
	p->epoch = epoch;
	if (event->kind != SKEP_EVENT_TIMER || count > 0 || p->spin_at != c->now)
		p->spins = 0;
	p->spin_at = c->now;
	if (++p->spins > SPINS_LIMIT)
		verdict_break(c->verdict, "I6", ANY, ANY, ANY, "machine %u asks for a timer in a tight loop", index);
}

static void step(struct cluster *c, struct process *p, const struct skep_event *event, struct skep_actions *actions)
{
	struct skep_plan plan = *c->setup.plan;
	if (c->setup.sabotage == SABOTAGE_MOVED_OFTEN && p == &c->process[plan.workers])
		plan.rebalance.period_ns = plan.rebalance.period_ns / 64 + 1; /* the next also waits for the first */
	if (c->setup.sabotage == SABOTAGE_IMPATIENT && p == &c->process[plan.workers])
		plan.liveness.wait_for_join_ns /= 4;
	if (c->setup.sabotage == SABOTAGE_ORDER_SWAPPED && skep_plan_fixed(&plan) && !skep_plan_no_flush(&plan) &&
		p != &c->process[plan.workers])
		plan.pipeline = plan.pipeline == SKEP_PIPELINE_GPIPE ? SKEP_PIPELINE_SWARM : SKEP_PIPELINE_GPIPE;
	if (c->setup.sabotage == SABOTAGE_SPARE_HASTY)
		plan.stands_by = NULL;
	c->setup.machine->step(p->node, &plan, event, actions);
}

void deliver(struct cluster *c, uint32_t index, struct skep_event *event)
{
	struct process *p = &c->process[index];
	struct skep_actions actions = {c->action, 0, c->action_limit};
	uint32_t epoch = p->epoch;
	enum skep_outcome outcome = c->setup.machine->outcome(p->node);
	event->now = c->now;
	make_undefined(c->action, c->action_limit * sizeof(*c->action));
	if (c->setup.move_nodes && draw(&c->move_random) % 64 == 0)
		process_move(p);
	step(c, p, event, &actions);
	check_after_step(c, index, event, actions.count);
	process_give_room(c, p);
	for (uint32_t a = 0; a < actions.count && !c->verdict->broken; a++)
		perform(c, index, &c->action[a]);
	bool stopped = c->setup.machine->outcome(p->node) != outcome;
	if (stopped || (p->epoch != epoch && epoch > 0))
		process_check_empty_hands(c, index);
	if (stopped && (p->noticed || scaled_returned(c, index)))
		p->left = c->setup.machine->outcome(p->node) == SKEP_DONE;
	c->digest =
		mix64(c->digest ^ c->now) + mix64((uint64_t)index << 32 | (uint64_t)event->kind << 16 | actions.count);
	arm(c, index);
}

/* ---- faults ------------------------------------------------------------------------------------------------------ */

static bool holds_last(const struct cluster *c, uint32_t worker)
{
	uint32_t stage = c->process[worker].device.stage, others = 0;
	for (uint32_t w = 0; w < c->setup.plan->workers; w++)
		others += w != worker && c->process[w].alive && !c->process[w].left &&
		          c->process[w].device.stage == stage;
	return stage != SKEP_NO_STAGE && others == 0;
}

static void die(struct cluster *c, const struct event *event)
{
	struct process *p = &c->process[event->machine];
	if (!p->alive || (event->gentle && !p->left && holds_last(c, event->machine)))
		return;
	fault(c, event->machine, "dies");
	p->alive = false;
	p->epoch_at_death = p->epoch;
	c->digest += c->setup.machine->digest(p->node);
	tensors_free_owned(&c->tensors, event->machine);
	c->result.kills++;
}

static void restart(struct cluster *c, const struct event *event)
{
	struct process *p = &c->process[event->machine];
	const struct process *directory = &c->process[c->setup.plan->workers];
	if (p->alive && p->left && c->setup.plan->scale != NULL) /* it was given back, and is had again */
		die(c, event);
	if (p->alive || c->setup.machine->outcome(directory->node) != SKEP_RUNNING)
		return;
	fault(c, event->machine, "is started anew");
	process_init(c, event->machine, 0);
	c->result.restarts++;
	agenda_add(c, c->now, EVENT_START, event->machine);
}

static void start(struct cluster *c, const struct event *event)
{
	struct skep_event out = {.kind = SKEP_EVENT_START};
	out.u.resumes = c->result.outages > 0 && event->machine == c->setup.plan->workers;
	c->process[event->machine].started = true;
	deliver(c, event->machine, &out);
}

static void suspect(struct cluster *c, const struct event *event)
{
	const struct process *about = &c->process[event->about];
	if (event->gentle && about->alive && holds_last(c, event->about))
		return;
	uint32_t epoch = about->alive && about->epoch > 0 ? about->epoch : about->epoch_at_death;
	fault(c, event->about, "is suspected");
	struct skep_event out = {.kind = SKEP_EVENT_SUSPECT, .u.peer = {event->about, epoch}};
	deliver(c, event->machine, &out);
}

static void notice(struct cluster *c, const struct event *event)
{
	fault(c, event->machine, "gets a preemption notice");
	c->process[event->machine].noticed = true;
	struct event *kill = agenda_add(c, event->until, EVENT_KILL, event->machine);
	kill->gentle = event->gentle;
	struct skep_event out = {.kind = SKEP_EVENT_PREEMPT_NOTICE, .u.leave_at = event->until};
	deliver(c, event->machine, &out);
}

static void timer(struct cluster *c, const struct event *event)
{
	struct process *p = &c->process[event->machine];
	skep_time deadline = c->setup.machine->deadline(p->node);
	if (event->until != p->timer_at)
		return; /* an earlier one was armed since */
	p->timer_at = SKEP_TIME_NEVER;
	if (deadline <= c->now) {
		struct skep_event out = {.kind = SKEP_EVENT_TIMER};
		deliver(c, event->machine, &out);
	} else {
		arm(c, event->machine);
	}
}

static void pause(struct cluster *c, const struct event *event)
{
	fault(c, event->machine, "pauses");
	struct process *p = &c->process[event->machine];
	if (event->until > p->paused_until)
		p->paused_until = event->until;
}

/* ---- a run ------------------------------------------------------------------------------------------------------- */

void cluster_begin(struct cluster *c, const struct setup *setup, struct verdict *verdict)
{
	const struct skep_plan *plan = setup->plan;
	c->setup = *setup;
	c->verdict = verdict;
	*verdict = (struct verdict){.round = ANY, .stage = ANY, .microbatch = ANY};
	c->result = (struct result){.capacity = setup->machine->round_capacity(plan)};
	c->events = c->heap_count = c->work = c->opportunities = 0;
	c->event_free = ANY;
	c->kept_now = c->is_lost = false;
	c->number = c->digest = c->now = 0;
	c->random = mix64(setup->seed);
	c->move_random = mix64(~setup->seed);
	c->action_limit = setup->machine->actions_limit(plan);
	c->action = grown(c->action, &c->action_capacity, c->action_limit, sizeof(*c->action));
	tensors_clear(&c->tensors);
	resumed_kept(&c->tensors, plan);
	referee_begin(c->referee, plan, c->result.capacity, setup->view, verdict);
	for (uint32_t m = 0; m <= plan->workers; m++) {
		c->process[m].life = c->process[m].epoch_at_death = 0;
		process_init(c, m, skep_plan_first_epoch(plan, m));
	}
}

void cluster_start_at(struct cluster *c, uint32_t machine, skep_time at)
{
	c->process[machine].paused_until = at;
}

void cluster_kill(struct cluster *c, uint32_t worker, skep_time at, bool gentle)
{
	agenda_add(c, at, EVENT_KILL, worker)->gentle = gentle;
}

void cluster_restart(struct cluster *c, uint32_t worker, skep_time at)
{
	agenda_add(c, at, EVENT_RESTART, worker);
}

void cluster_suspect(struct cluster *c, uint32_t to, uint32_t about, skep_time at, bool gentle)
{
	struct event *event = agenda_add(c, at, EVENT_SUSPECT, to);
	event->about = about;
	event->gentle = gentle;
}

void cluster_pause(struct cluster *c, uint32_t machine, skep_time at, skep_time until)
{
	agenda_add(c, at, EVENT_PAUSE, machine)->until = until;
}

void cluster_notice(struct cluster *c, uint32_t worker, skep_time at, skep_time leave_at, bool gentle)
{
	struct event *event = agenda_add(c, at, EVENT_NOTICE, worker);
	event->until = leave_at;
	event->gentle = gentle;
}

/* Faults other than a message's own reach whatever lives at that index; the rest is for one life only. */
static bool for_the_dead(const struct cluster *c, const struct event *event)
{
	const struct process *p = &c->process[event->machine];
	bool one_life = event->kind == EVENT_START || event->kind == EVENT_TIMER || event->kind == EVENT_OP;
	bool needs_life = one_life || event->kind == EVENT_SUSPECT || event->kind == EVENT_NOTICE;
	return (needs_life && !p->alive) || (one_life && p->life != event->life);
}

static bool must_wait(const struct cluster *c, const struct event *event, skep_time *ret_until)
{
	const struct process *p = &c->process[event->machine];
	if (event->kind == EVENT_KILL || event->kind == EVENT_RESTART || event->kind == EVENT_PAUSE || !p->alive)
		return false;
	*ret_until = p->paused_until;
	if (!p->started && event->kind != EVENT_START && *ret_until <= c->now)
		*ret_until = c->now + 1;
	return *ret_until > c->now;
}

static void happen(struct cluster *c, const struct event *event)
{
	static void (*const act[])(struct cluster *, const struct event *) = {[EVENT_START] = start,
		[EVENT_TIMER] = timer,
		[EVENT_MESSAGE] = post_arrives,
		[EVENT_FAILED] = post_returns,
		[EVENT_OP] = process_op_ends,
		[EVENT_SUSPECT] = suspect,
		[EVENT_NOTICE] = notice,
		[EVENT_PAUSE] = pause,
		[EVENT_KILL] = die,
		[EVENT_RESTART] = restart,
		[EVENT_FLIP] = process_flips};
	skep_time until;
	if (outage_takes(c, event) || for_the_dead(c, event))
		return;
	if (must_wait(c, event, &until))
		agenda_postpone(c, event, until);
	else
		act[event->kind](c, event);
}

static bool all_over(const struct cluster *c)
{
	if (c->work > 0)
		return false;
	for (uint32_t m = 0; m <= c->setup.plan->workers; m++)
		if (c->process[m].alive && c->setup.machine->outcome(c->process[m].node) == SKEP_RUNNING)
			return false;
	return true;
}

static void check_end(struct cluster *c)
{
	const struct skep_plan *plan = c->setup.plan;
	uint32_t epoch[MACHINES] = {0};
	enum skep_outcome outcome = c->setup.machine->outcome(c->process[plan->workers].node);
	for (uint32_t m = 0; m <= plan->workers; m++) {
		if (!c->process[m].alive)
			continue;
		epoch[m] = c->process[m].epoch;
		c->digest = mix64(c->digest ^ c->setup.machine->digest(c->process[m].node));
		if (c->setup.machine->outcome(c->process[m].node) != outcome && !c->process[m].left)
			verdict_break(
				c->verdict, "I7", ANY, ANY, ANY, "machine %u ends otherwise than the directory", m);
		if (tensors_owned(&c->tensors, m) > 0)
			verdict_break(c->verdict, "I5", ANY, ANY, ANY, "machine %u still holds %u tensors at the end",
				m, tensors_owned(&c->tensors, m));
	}
	referee_end(c->referee, outcome, epoch);
	c->result.outcome = outcome;
}

struct result cluster_run(struct cluster *c)
{
	for (uint32_t m = 0; m <= c->setup.plan->workers; m++)
		agenda_add(c, c->process[m].paused_until, EVENT_START, m);
	while (!c->verdict->broken && !all_over(c)) {
		if (c->heap_count == 0 || c->heap[0].at > c->setup.end_ns ||
			c->result.events >= c->setup.events_limit) {
			verdict_break(c->verdict, "I7", ANY, ANY, ANY,
				"no progress: after %llu ms and %llu events the run is not over",
				(unsigned long long)c->now / 1000000, (unsigned long long)c->result.events);
			break;
		}
		struct event event = agenda_take(c);
		c->result.events++;
		happen(c, &event);
	}
	if (!c->verdict->broken)
		check_end(c);
	c->result.digest = c->digest;
	c->result.ended_ns = c->now;
	c->result.totals = referee_totals(c->referee);
	c->result.tensors = c->tensors.count;
	return c->result;
}

const struct machine machine_skep = {.name = "skep",
	.size = skep_node_size,
	.actions_limit = skep_actions_limit,
	.round_capacity = skep_round_capacity,
	.init = skep_node_init,
	.step = skep_node_step,
	.wanted = skep_node_wanted,
	.move = skep_node_relocate,
	.deadline = skep_node_deadline,
	.epoch = skep_node_epoch,
	.digest = skep_node_digest,
	.outcome = skep_node_outcome,
	.kept = skep_node_kept,
	.keeps = skep_node_keeps};
