/* SPDX-License-Identifier: Apache-2.0
 *
 * complexity.c - bytes of a step by class of link (complexity.h).
 */
#include "planning/search/complexity.h"

#include <assert.h>
#include <string.h>

#include "core/schedule/pipelines.h"

uint32_t skep_complexity_sent(uint32_t stages, uint32_t chunks, bool by_owner)
{
	assert(stages > 0 && chunks > 0);
	if (stages == 1)
		return 0;
	return by_owner ? 5 * stages - 8 : 2 * (chunks * stages - 1);
}

struct skep_complexity_bytes skep_complexity_of(const struct skep_complexity *c)
{
	double members = c->stages > 0 ? c->workers / c->stages : 0;
	struct skep_complexity_bytes bytes = {0, 0};
	bytes.pipeline = c->microbatches * c->sent * c->samples * c->tokens * c->width * c->number_bytes;
	if (members > 1)
		bytes.reduction = 2 * (members - 1) * c->parameters * c->number_bytes / c->period;
	return bytes;
}

static double share_of(
	const struct skep_step_traffic *t, const uint32_t *count, const uint32_t *stage_of, uint32_t worker)
{
	return t->share ? t->share[worker] : 1.0 / count[stage_of[worker]];
}

/* Which worker of its stage this one is. */
static uint32_t place_of(const struct skep_step_traffic *t, const uint32_t *stage_of, uint32_t worker)
{
	uint32_t place = 0;
	(void)t;
	for (uint32_t i = 0; i < worker; i++)
		place += stage_of[i] == stage_of[worker];
	return place;
}

/* Of one worker's microbatches, the part that goes to another one of the next stage in fixed pipelines. */
static double joined_part(uint32_t place, uint32_t of, uint32_t next_place, uint32_t next_of)
{
	bool joined = skep_pipeline_joins(place, of, next_place, next_of);
	return joined ? (double)of / skep_common_multiple(of, next_of) : 0;
}

/* What goes one way between the two, and the other way. */
static void carry_both(uint32_t worker, uint32_t other, double microbatches, double there, double back,
	skep_carry *carry, void *context)
{
	carry(context, worker, other, (struct skep_complexity_bytes){.pipeline = microbatches * there});
	carry(context, other, worker, (struct skep_complexity_bytes){.pipeline = microbatches * back});
}

/* From this worker to those of the next stage, and back. */
static void add_cut(const struct skep_step_traffic *t, const uint32_t *stage_of, const uint32_t *count, uint32_t worker,
	skep_carry *carry, void *context)
{
	uint32_t stage = stage_of[worker], place = t->fixed ? place_of(t, stage_of, worker) : 0, nth = 0;
	double own = share_of(t, count, stage_of, worker);
	for (uint32_t i = 0; i < t->workers; i++) {
		if (stage_of[i] != stage + 1)
			continue;
		double part = t->part    ? t->part(t->of_part, worker, i)
		              : t->fixed ? own * joined_part(place, count[stage], nth, count[stage + 1])
		                         : own * share_of(t, count, stage_of, i);
		nth++;
		if (part <= 0)
			continue;
		carry_both(worker, i, t->microbatches * part, t->forward_bytes[stage], t->backward_bytes[stage], carry,
			context);
	}
}

/* From this worker of the first stage to all of later ones, and back. */
static void add_owned(const struct skep_step_traffic *t, const uint32_t *stage_of, const uint32_t *count,
	uint32_t owner, skep_carry *carry, void *context)
{
	double own = t->microbatches * share_of(t, count, stage_of, owner);
	for (uint32_t i = 0; i < t->workers; i++) {
		uint32_t stage = stage_of[i];
		if (stage == 0 || stage >= t->stages)
			continue;
		double there = t->forward_bytes[stage - 1], back = t->backward_bytes[stage - 1];
		if (stage + 1 < t->stages) {
			back += t->forward_bytes[stage];
			there += t->forward_bytes[stage - 1] + t->backward_bytes[stage];
		}
		carry_both(owner, i, own * share_of(t, count, stage_of, i), there, back, carry, context);
	}
}

/* From the last worker of this one's pipeline to it, and back. */
static void add_wrap(const struct skep_step_traffic *t, const uint32_t *stage_of, const uint32_t *count, uint32_t first,
	skep_carry *carry, void *context)
{
	uint32_t place = place_of(t, stage_of, first), last = 0;
	while (stage_of[last] != t->stages - 1 || place_of(t, stage_of, last) != place)
		last++;
	double microbatches = t->microbatches * share_of(t, count, stage_of, first);
	carry_both(last, first, microbatches, t->wrap_forward_bytes, t->wrap_backward_bytes, carry, context);
}

/* ---- once in a round -------------------------------------------------------------------------------------------------- */

struct round {
	double period;
	skep_carry *carry;
	void *context;
};

static void add_of_round(void *context, uint32_t source, uint32_t destination, double bytes)
{
	const struct round *round = context;
	round->carry(round->context, source, destination,
		(struct skep_complexity_bytes){.reduction = bytes / round->period});
}

/* ---- all of it ---------------------------------------------------------------------------------------------------------- */

void skep_traffic_each(const struct skep_step_traffic *traffic, const uint32_t *stage_of, uint32_t *scratch,
	skep_carry *carry, void *context)
{
	uint32_t *count = scratch;
	struct round round = {traffic->period, carry, context};
	traffic->round(traffic->of_round, stage_of, scratch + traffic->stages, add_of_round, &round);
	memset(count, 0, traffic->stages * sizeof *count);
	for (uint32_t i = 0; i < traffic->workers; i++)
		if (stage_of[i] < traffic->stages)
			count[stage_of[i]]++;
	for (uint32_t i = 0; i < traffic->workers; i++) {
		if (stage_of[i] >= traffic->stages)
			continue;
		if (traffic->by_owner && stage_of[i] == 0)
			add_owned(traffic, stage_of, count, i, carry, context);
		if (!traffic->by_owner && stage_of[i] + 1 < traffic->stages)
			add_cut(traffic, stage_of, count, i, carry, context);
		if (traffic->wrap_forward_bytes > 0 && traffic->stages > 1 && stage_of[i] == 0)
			add_wrap(traffic, stage_of, count, i, carry, context);
	}
}

struct classes {
	const struct skep_step_traffic *traffic;
	struct skep_complexity_bytes *sum;
};

static void add_to_class(void *context, uint32_t source, uint32_t destination, struct skep_complexity_bytes bytes)
{
	const struct classes *c = context;
	struct skep_complexity_bytes *sum = &c->sum[c->traffic->class_of(c->traffic->context, source, destination)];
	sum->pipeline += bytes.pipeline;
	sum->reduction += bytes.reduction;
}

void skep_traffic_by_class(const struct skep_step_traffic *traffic, const uint32_t *stage_of, uint32_t *scratch,
	struct skep_complexity_bytes *ret)
{
	struct classes classes = {traffic, ret};
	memset(ret, 0, traffic->classes * sizeof *ret);
	skep_traffic_each(traffic, stage_of, scratch, add_to_class, &classes);
}
