/* SPDX-License-Identifier: Apache-2.0
 *
 * complexity.c - bytes of a step by class of link (complexity.h).
 */
#include "planning/search/complexity.h"

#include <string.h>

#include "core/schedule/pipelines.h"

struct skep_complexity_bytes skep_complexity_of(const struct skep_complexity *c)
{
	double cuts = c->stages > 0 ? c->stages - 1 : 0, members = c->stages > 0 ? c->workers / c->stages : 0;
	struct skep_complexity_bytes bytes = {0, 0};
	bytes.pipeline = 2 * c->microbatches * cuts * c->samples * c->tokens * c->width * c->number_bytes;
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
	double microbatches = t->microbatches * share_of(t, count, stage_of, worker);
	for (uint32_t i = 0; i < t->workers; i++) {
		if (stage_of[i] != stage + 1)
			continue;
		double part = t->fixed ? joined_part(place, count[stage], nth, count[stage + 1])
		                       : share_of(t, count, stage_of, i);
		nth++;
		if (part <= 0)
			continue;
		carry_both(worker, i, microbatches * part, t->forward_bytes[stage], t->backward_bytes[stage], carry,
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

/* ---- reductions: ranks are the workers of a stage in the order of their numbers --------------------------------------- */

struct reduction { /* of a stage, as one of its workers sees it */
	const struct skep_step_traffic *traffic;
	const uint32_t *stage_of;
	uint32_t members, worker;
	bool by_site; /* positions are those among the members of the worker's site */
	double bytes;
	skep_carry *carry;
	void *context;
};

static bool beside(const struct reduction *r, uint32_t other)
{
	const uint32_t *site = r->traffic->site;
	return r->stage_of[other] == r->stage_of[r->worker] && (!r->by_site || !site || site[other] == site[r->worker]);
}

static uint32_t position_of(const struct reduction *r)
{
	uint32_t position = 0;
	for (uint32_t i = 0; i < r->worker; i++)
		position += beside(r, i);
	return position;
}

static uint32_t worker_at(const struct reduction *r, uint32_t position)
{
	uint32_t i = 0;
	while (!beside(r, i) || position-- > 0)
		i++;
	return i;
}

static void give(const struct reduction *r, uint32_t to, double bytes)
{
	r->carry(r->context, r->worker, to, (struct skep_complexity_bytes){.reduction = bytes});
}

/* What it has goes up to that one, and the sum comes back. */
static void join(const struct reduction *r, uint32_t position)
{
	uint32_t other = worker_at(r, position);
	give(r, other, r->bytes);
	r->carry(r->context, other, r->worker, (struct skep_complexity_bytes){.reduction = r->bytes});
}

/* A binomial tree: the parent's position lacks the lowest bit. */
static void join_binomial(const struct reduction *r)
{
	uint32_t position = position_of(r);
	if (position > 0)
		join(r, position & (position - 1));
}

static void give_all(const struct reduction *r, double bytes)
{
	for (uint32_t i = 0; i < r->traffic->workers; i++)
		if (i != r->worker && beside(r, i))
			give(r, i, bytes);
}

static void give_next(const struct reduction *r, double bytes)
{
	uint32_t next = r->worker;
	do
		next = (next + 1) % r->traffic->workers;
	while (!beside(r, next));
	give(r, next, bytes);
}

/* Step by step to a partner half as far away, half as much; those beyond the last power of two give all to one of the others. */
static void give_halves(const struct reduction *r)
{
	uint32_t p = 1, position = position_of(r);
	while (2 * p <= r->members)
		p *= 2;
	if (position >= p) {
		join(r, position - p);
		return;
	}
	double part = r->bytes;
	for (uint32_t distance = p / 2; distance > 0; distance /= 2) {
		part /= 2;
		give(r, worker_at(r, position ^ distance), 2 * part); /* there, and when the sums come back */
	}
}

/* Is it the first of its site? */
static bool leads(const struct reduction *r, uint32_t worker)
{
	struct reduction of = *r;
	of.worker = worker;
	return position_of(&of) == 0;
}

/* Inside of the site a binomial tree; its root in a ring with those of the other sites. */
static void give_sites(const struct reduction *r)
{
	uint32_t sites = 0, next = UINT32_MAX, first = UINT32_MAX;
	join_binomial(r);
	if (!leads(r, r->worker))
		return;
	for (uint32_t i = 0; i < r->traffic->workers; i++) {
		if (r->stage_of[i] != r->stage_of[r->worker] || !leads(r, i))
			continue;
		sites++;
		first = first == UINT32_MAX ? i : first;
		next = next == UINT32_MAX && i > r->worker ? i : next;
	}
	if (sites > 1)
		give(r, next == UINT32_MAX ? first : next, 2.0 * (sites - 1) / sites * r->bytes);
}

/* What this worker is the first to answer for, so that all of the stage together name each transfer once. */
static void add_reduction(const struct skep_step_traffic *traffic, const uint32_t *stage_of, uint32_t members,
	uint32_t worker, double bytes, skep_carry *carry, void *context)
{
	struct reduction r = {traffic, stage_of, members, worker, false, bytes, carry, context};
	if (members < 2)
		return;
	r.by_site = traffic->collective == SKEP_COLLECTIVE_HIERARCHICAL;
	uint32_t position = position_of(&r);
	switch (traffic->collective) {
	case SKEP_COLLECTIVE_PARAMETER_SERVER:
		if (position > 0)
			join(&r, 0);
		return;
	case SKEP_COLLECTIVE_REDUCE_BROADCAST:
		join_binomial(&r);
		return;
	case SKEP_COLLECTIVE_TREE:
		if (position > 0)
			join(&r, (position - 1) / 2);
		return;
	case SKEP_COLLECTIVE_CHAIN: /* the last one, which has the sum, sends it round from the first to the one before it */
		give_next(&r, position + 2 < members ? 2 * bytes : bytes);
		return;
	case SKEP_COLLECTIVE_ALL_TO_ALL:
		give_all(&r, bytes);
		return;
	case SKEP_COLLECTIVE_BUTTERFLY:
		give_all(&r, 2 * bytes / members);
		return;
	case SKEP_COLLECTIVE_HALVING_DOUBLING:
		give_halves(&r);
		return;
	case SKEP_COLLECTIVE_HIERARCHICAL:
		give_sites(&r);
		return;
	default:
		give_next(&r, 2.0 * (members - 1) / members * bytes);
	}
}

/* ---- all of it ---------------------------------------------------------------------------------------------------------- */

void skep_traffic_each(const struct skep_step_traffic *traffic, const uint32_t *stage_of, uint32_t *count,
	skep_carry *carry, void *context)
{
	memset(count, 0, traffic->stages * sizeof *count);
	for (uint32_t i = 0; i < traffic->workers; i++)
		if (stage_of[i] < traffic->stages)
			count[stage_of[i]]++;
	for (uint32_t i = 0; i < traffic->workers; i++) {
		if (stage_of[i] >= traffic->stages)
			continue;
		add_reduction(traffic, stage_of, count[stage_of[i]], i,
			traffic->reduced_bytes[stage_of[i]] / traffic->period, carry, context);
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

void skep_traffic_by_class(const struct skep_step_traffic *traffic, const uint32_t *stage_of, uint32_t *count,
	struct skep_complexity_bytes *ret)
{
	struct classes classes = {traffic, ret};
	memset(ret, 0, traffic->classes * sizeof *ret);
	skep_traffic_each(traffic, stage_of, count, add_to_class, &classes);
}
