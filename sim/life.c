/* SPDX-License-Identifier: Apache-2.0
 *
 * life.c - processes that end and begin as the scenario's trace says, the notice that one is given before its end, and the
 * word of it that the directory gets afterwards.
 *
 * Kept true: notice is given once in a life, after its START and no earlier than cluster.trace.preempt_notice before its end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/random.h"
#include "sim/world.h"

#define NONE UINT32_MAX

/* The process ends at this instant: what it held, ran and had under way is gone. */
static void die(struct skep_world *world, uint32_t index)
{
	struct skep_actor *actor = &world->actor[index];
	if (skep_world_whole(world, index))
		skep_whole_leave(world, index, skep_world_whole(world, index));
	for (uint32_t l = 0; l < SKEP_LANES; l++) {
		struct skep_lane_queue *lane = &actor->lane[l];
		for (uint32_t j = lane->first; j != NONE;) {
			uint32_t next = world->job[j].next;
			world->job[j].next = world->free_job;
			world->free_job = j;
			j = next;
		}
		lane->first = lane->last = NONE;
		lane->end_sequence = UINT64_MAX;
	}
	skep_arithmetic_forget(world, index);
	actor->armed = SKEP_TIME_NEVER;
	actor->dead = true;
	actor->lost_epoch = skep_node_epoch(actor->node);
	if (world->scenario->heard_ns > 0)
		skep_world_happen(
			world, world->now + world->scenario->heard_ns, world->sequence++, SKEP_HAPPENING_HEARD, index);
	skep_time ended_ns = actor->stopped_ns < world->now ? actor->stopped_ns : world->now;
	actor->alive_ns += ended_ns - actor->born_ns;
	if (world->recorder->life)
		world->recorder->life(world->recorder->context, index, actor->born_ns, ended_ns);
	actor->digest = skep_mix(actor->digest ^ skep_node_digest(actor->node));
	world->running -= actor->stopped_ns == SKEP_TIME_NEVER;
}

/* A fresh process on the same machine, which holds nothing. */
static void be_born(struct skep_world *world, uint32_t index)
{
	struct skep_actor *actor = &world->actor[index];
	skep_node_init(actor->node, world->plan, index, 0);
	actor->dead = false;
	actor->life++;
	actor->born_ns = world->now;
	actor->stopped_ns = SKEP_TIME_NEVER;
	world->running++;
	if (!skep_arithmetic_device(world, index, SKEP_NO_STAGE))
		world->no_memory = true;
	skep_world_step(world, index, &(struct skep_event){.kind = SKEP_EVENT_START});
}

void skep_life_churn(struct skep_world *world, uint32_t number)
{
	const struct skep_churn_event *event = &world->scenario->churn.event[number];
	struct skep_actor *actor = &world->actor[event->worker];
	if (event->join && actor->dead)
		be_born(world, event->worker);
	else if (!event->join && !actor->dead)
		die(world, event->worker);
	if (number + 1 < world->scenario->churn.events)
		skep_world_happen(world, event[1].at_ns, world->sequence++, SKEP_HAPPENING_CHURN, number + 1);
}

void skep_life_heard(struct skep_world *world, uint32_t index)
{
	const uint32_t directory = world->plan->workers;
	struct skep_event event = {.kind = SKEP_EVENT_SUSPECT, .u.peer = {index, world->actor[index].lost_epoch}};
	if (world->actor[directory].stopped_ns == SKEP_TIME_NEVER)
		skep_world_step(world, directory, &event);
}

/* ---- notice ----------------------------------------------------------------------------------------------------- */

static int by_time(const void *a, const void *b)
{
	const struct skep_notice *x = a, *y = b;
	if (x->at_ns != y->at_ns)
		return x->at_ns < y->at_ns ? -1 : 1;
	return x->worker < y->worker ? -1 : x->worker > y->worker;
}

static bool list_notices(struct skep_world *world)
{
	const struct skep_churn *churn = &world->scenario->churn;
	skep_time notice_ns = world->scenario->notice_ns;
	skep_time *born_ns = calloc(world->plan->workers, sizeof *born_ns);
	world->notice = calloc(churn->events + 1, sizeof *world->notice);
	for (size_t i = 0; born_ns && world->notice && i < churn->events; i++) {
		const struct skep_churn_event *event = &churn->event[i];
		skep_time earliest_ns = born_ns[event->worker] + 1; /* after START */
		skep_time at_ns = event->at_ns > notice_ns ? event->at_ns - notice_ns : 0;
		if (event->join)
			born_ns[event->worker] = event->at_ns;
		else if (event->at_ns > earliest_ns)
			world->notice[world->notices++] = (struct skep_notice){
				at_ns > earliest_ns ? at_ns : earliest_ns, event->at_ns, event->worker};
	}
	bool good = born_ns && world->notice;
	free(born_ns);
	if (good)
		qsort(world->notice, world->notices, sizeof *world->notice, by_time);
	return good;
}

static void expect_notice(struct skep_world *world, uint32_t number)
{
	if (number < world->notices)
		skep_world_happen(world, world->notice[number].at_ns, world->sequence++, SKEP_HAPPENING_NOTICE, number);
}

void skep_life_notice(struct skep_world *world, uint32_t number)
{
	const struct skep_notice *notice = &world->notice[number];
	struct skep_event event = {.kind = SKEP_EVENT_PREEMPT_NOTICE, .u.leave_at = notice->leave_at_ns};
	if (!world->actor[notice->worker].dead)
		skep_world_step(world, notice->worker, &event);
	expect_notice(world, number + 1);
}

bool skep_life_begin(struct skep_world *world)
{
	const struct skep_scenario *scenario = world->scenario;
	if (scenario->churn.events > 0)
		skep_world_happen(world, scenario->churn.event[0].at_ns, world->sequence++, SKEP_HAPPENING_CHURN, 0);
	if (scenario->notice_ns == 0)
		return true;
	bool good = list_notices(world);
	if (good)
		expect_notice(world, 0);
	return good;
}
