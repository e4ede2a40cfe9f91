/* SPDX-License-Identifier: Apache-2.0
 *
 * throughput.c - the expected time of a step (throughput.h).
 *
 * A worker's weight is 1 / compute_s where shares go by speed, else 1; its share is that over the sum of its stage's weights.
 * Each worker keeps sums over the stages behind and before its own, weighted by whom it may send to or hear from: seconds per
 * byte out and in, and delays there and back. Who changes its stage adds to and takes from the sums of four stages, and only
 * those stages, and those that share a link with them, are measured anew: about the workers of six stages for a change, not
 * their pairs.
 *
 * A change that is only asked about is made and taken back from copies, so nothing of it stays. Those that are kept leave
 * roundings behind; every KEEPS_EXACT of them all sums are made anew.
 */
#include "planning/search/throughput.h"

#include <assert.h>
#include <string.h>

#include "core/bits.h"
#include "planning/search/throughput_state.h"

#define KEEPS_EXACT 64u

/* ---- members -------------------------------------------------------------------------------------------------------- */

static uint64_t *members(const struct flow *f, uint32_t stage)
{
	return f->member + (size_t)stage * f->words;
}

static bool is_stage(const struct flow *f, uint32_t stage)
{
	return stage < f->stages; /* neither spare nor before the first one */
}

static double weight_of(const struct flow *f, uint32_t worker, uint32_t stage)
{
	double compute = f->t.compute_s[(size_t)worker * f->stages + stage];
	if (f->t.shares != SKEP_SHARES_BY_SPEED)
		return 1;
	return compute < SKEP_NEVER ? 1 / (compute > 1e-12 ? compute : 1e-12) : 0;
}

/* ---- sums ----------------------------------------------------------------------------------------------------------- */

/* What `other`, in the stage behind (ahead) or before, is to the worker: `sign` 1 adds, -1 takes away. */
static void meet(struct flow *f, uint32_t worker, uint32_t other, uint32_t other_stage, bool ahead, double sign)
{
	size_t there = (size_t)worker * f->workers + other, back = (size_t)other * f->workers + worker;
	struct sums *s = &f->sums[worker];
	double weight = sign * weight_of(f, other, other_stage);
	const double *delay = f->t.links->delay_s;
	bool lacks = f->per_byte[there] < 0 || f->per_byte[back] < 0;
	if (lacks) {
		f->missing += sign > 0 ? 1 : -1;
		return;
	}
	s->out[ahead] += weight * f->per_byte[there];
	s->in[ahead] += weight * f->per_byte[back];
	s->delay += ahead ? weight * (delay[there] + delay[back]) : 0;
	if (ahead)
		skep_throughput_pay(f, worker, other, weight, s);
}

static void remember(struct flow *f, uint32_t worker)
{
	assert(f->log_size < 4 * f->workers + 4);
	f->log[f->log_size++] = (struct log){worker, f->sums[worker]};
}

/* All that stand in `stage` meet `worker`, or part from it. */
static void meet_all(struct flow *f, uint32_t stage, uint32_t worker, uint32_t its_stage, bool ahead, double sign)
{
	if (!is_stage(f, stage) || f->t.shares == SKEP_SHARES_FIXED)
		return;
	for (uint32_t i = skep_bits_next(members(f, stage), 0, f->workers); i < f->workers;
		i = skep_bits_next(members(f, stage), i + 1, f->workers)) {
		remember(f, i);
		meet(f, i, worker, its_stage, ahead, sign);
	}
}

/* Computes the worker's own sums from nothing. A link that is missing is counted once for each side. */
static void make_sums(struct flow *f, uint32_t worker)
{
	uint32_t stage = f->stage_of[worker];
	int64_t missing = f->missing;
	f->sums[worker] = (struct sums){.delay = 0};
	for (uint32_t ahead = 0; ahead < 2 && is_stage(f, stage); ahead++) {
		uint32_t other = ahead ? stage + 1 : stage - 1;
		if (!is_stage(f, other))
			continue;
		for (uint32_t i = skep_bits_next(members(f, other), 0, f->workers); i < f->workers;
			i = skep_bits_next(members(f, other), i + 1, f->workers))
			meet(f, worker, i, other, ahead, 1);
	}
	f->missing = missing;
}

static void touch(struct flow *f, uint32_t stage)
{
	for (uint32_t s = stage > 0 ? stage - 1 : 0; s < f->stages && s <= stage + 1; s++)
		f->dirty[s] = true;
}

static bool is_unable(const struct flow *f, uint32_t worker, uint32_t stage)
{
	return !(f->t.compute_s[(size_t)worker * f->stages + stage] < SKEP_NEVER);
}

/* The sets of a stage's workers, by `worker` that comes (1) or goes (UINT32_MAX). */
static void recount(struct flow *f, uint32_t worker, uint32_t stage, uint32_t by)
{
	if (by == 1)
		skep_bits_add(members(f, stage), worker);
	else
		members(f, stage)[worker / 64] &= ~((uint64_t)1 << worker % 64);
	f->count[stage] += by;
	if (f->t.fits)
		f->present[(size_t)stage * f->t.types + f->t.type[worker]] += by;
}

static void leave(struct flow *f, uint32_t worker)
{
	uint32_t stage = f->stage_of[worker];
	if (!is_stage(f, stage))
		return;
	meet_all(f, stage - 1, worker, stage, true, -1);
	meet_all(f, stage + 1, worker, stage, false, -1);
	recount(f, worker, stage, UINT32_MAX);
	f->unable -= is_unable(f, worker, stage);
	f->stage_of[worker] = SKEP_SPARE;
	touch(f, stage);
}

static void enter(struct flow *f, uint32_t worker, uint32_t stage)
{
	f->stage_of[worker] = stage;
	if (!is_stage(f, stage))
		return;
	recount(f, worker, stage, 1);
	f->unable += is_unable(f, worker, stage);
	meet_all(f, stage - 1, worker, stage, true, 1);
	meet_all(f, stage + 1, worker, stage, false, 1);
	remember(f, worker);
	if (f->t.shares != SKEP_SHARES_FIXED)
		make_sums(f, worker);
	touch(f, stage);
}

/* ---- measuring ------------------------------------------------------------------------------------------------------ */

static double weight_in(const struct flow *f, uint32_t stage)
{
	double sum = 0;
	for (uint32_t i = skep_bits_next(members(f, stage), 0, f->workers); i < f->workers;
		i = skep_bits_next(members(f, stage), i + 1, f->workers))
		sum += weight_of(f, i, stage);
	return sum;
}

/* The sums of a worker as means over whom it may meet, in seconds per byte. */
static struct sums means(const struct flow *f, uint32_t worker, uint32_t stage)
{
	struct sums s = f->sums[worker];
	for (uint32_t ahead = 0; ahead < 2; ahead++) {
		uint32_t other = ahead ? stage + 1 : stage - 1;
		double weight = is_stage(f, other) ? f->weight[other] : 0;
		s.out[ahead] = weight > 0 && s.out[ahead] > 0 ? s.out[ahead] / weight : 0;
		s.in[ahead] = weight > 0 && s.in[ahead] > 0 ? s.in[ahead] / weight : 0;
	}
	double behind = stage + 1 < f->stages ? f->weight[stage + 1] : 0;
	s.delay = behind > 0 ? s.delay / behind : 0;
	double chosen = f->t.way_ns ? s.chosen : behind;
	s.forth_usd = behind > 0 && s.forth_usd > 0 ? s.forth_usd / chosen : 0;
	s.back_usd = behind > 0 && s.back_usd > 0 ? s.back_usd / chosen : 0;
	return s;
}

/* With one partner ahead and one before. */
static struct sums partners(struct flow *f, uint32_t worker, uint32_t stage, uint32_t nth)
{
	struct sums s = {.delay = 0};
	for (uint32_t ahead = 0; ahead < 2; ahead++) {
		uint32_t other = ahead ? stage + 1 : stage - 1;
		if (!is_stage(f, other))
			continue;
		uint32_t partner = f->place[(size_t)other * f->workers + nth];
		size_t there = (size_t)worker * f->workers + partner, back = (size_t)partner * f->workers + worker;
		f->lacks |= f->per_byte[there] < 0 || f->per_byte[back] < 0;
		s.out[ahead] = f->per_byte[there];
		s.in[ahead] = f->per_byte[back];
		s.delay += ahead ? f->t.links->delay_s[there] + f->t.links->delay_s[back] : 0;
		if (ahead)
			skep_throughput_pay(f, worker, partner, 1, &s);
	}
	return s;
}

static void weigh(struct flow *f, struct skep_throughput_stage *part, uint32_t worker, uint32_t stage, double share,
	const struct sums *s)
{
	double forward = stage + 1 < f->stages ? f->t.forward_bytes[stage] : 0;
	double backward = stage + 1 < f->stages ? f->t.backward_bytes[stage] : 0;
	double forward_in = stage > 0 ? f->t.forward_bytes[stage - 1] : 0;
	double backward_out = stage > 0 ? f->t.backward_bytes[stage - 1] : 0;
	double busy[3];
	busy[SKEP_BOTTLENECK_COMPUTE] =
		is_unable(f, worker, stage) ? 0 : f->t.compute_s[(size_t)worker * f->stages + stage];
	busy[SKEP_BOTTLENECK_SEND] = s->out[1] * forward + s->out[0] * backward_out;
	busy[SKEP_BOTTLENECK_RECEIVE] = s->in[1] * backward + s->in[0] * forward_in;
	for (uint32_t i = 0; i < 3; i++) {
		if (!(share * busy[i] > part->pace_s) && part->slowest != SKEP_NO_WORKER)
			continue;
		part->pace_s = share * busy[i];
		part->bottleneck = (enum skep_bottleneck)i;
		part->slowest = worker;
	}
	part->compute_s += share * busy[SKEP_BOTTLENECK_COMPUTE];
	part->egress_usd += f->t.microbatches * share * (s->forth_usd * forward + s->back_usd * backward);
	part->travel_s += share * (s->delay + s->out[1] * forward + s->in[1] * backward);
	double update = f->t.update_s ? f->t.update_s[(size_t)worker * f->stages + stage] : 0;
	part->update_s = update > part->update_s ? update : part->update_s;
	double directory = f->t.directory_s ? f->t.directory_s[worker] : 0;
	part->directory_s = directory > part->directory_s ? directory : part->directory_s;
}

static void measure_stage(struct flow *f, uint32_t stage)
{
	struct skep_throughput_stage part = {.workers = f->count[stage], .slowest = SKEP_NO_WORKER};
	uint32_t nth = 0;
	f->lacks = false;
	for (uint32_t i = skep_bits_next(members(f, stage), 0, f->workers); i < f->workers;
		i = skep_bits_next(members(f, stage), i + 1, f->workers), nth++) {
		struct sums s = f->t.shares == SKEP_SHARES_FIXED ? partners(f, i, stage, nth) : means(f, i, stage);
		double share = f->weight[stage] > 0 ? weight_of(f, i, stage) / f->weight[stage] : 0;
		weigh(f, &part, i, stage, share, &s);
		part.rent += f->t.rent ? f->t.rent[i] : 0;
	}
	part.reduction_s = skep_throughput_reduction_s(f, stage);
	part.egress_usd += skep_throughput_ring_usd(f, stage);
	part.workers = f->lacks ? 0 : part.workers;
	f->part[stage] = part;
}

static bool all_fit(const struct flow *f)
{
	for (uint32_t s = 0; f->t.fits && s < f->stages; s++)
		for (uint32_t type = 0; type < f->t.types; type++)
			if (f->present[(size_t)s * f->t.types + type] > 0 && !f->t.fits(f->t.room, s, type, f->count))
				return false;
	return true;
}

static double possible(const struct flow *f)
{
	bool can = f->missing == 0 && f->unable == 0;
	for (uint32_t s = 0; s < f->stages; s++)
		can = can && f->count[s] > 0 &&
		      f->part[s].workers > 0 && /* 0 also where the ring or a partner lacks a link */
		      (f->t.shares != SKEP_SHARES_FIXED || f->count[s] == f->count[0]);
	return can && all_fit(f) ? 0 : SKEP_NEVER;
}

double skep_throughput_outstanding(const struct skep_throughput *t, const uint32_t *workers)
{
	return t->outstanding ? t->outstanding(t->room, workers) : 0;
}

/* Where updates are delayed, the next round waits for the word of the first stage alone. */
double skep_throughput_turn_s(const struct skep_throughput *t, double first_stage_s, double longest_s)
{
	return first_stage_s + (t->delayed ? 0 : longest_s);
}

double skep_throughput_beside_s(const struct skep_throughput *t, double flow_s, double sum_s)
{
	double part = t->overlap > 0 && t->overlap < t->period ? t->overlap / t->period : 1;
	part = t->delayed ? part : 0;
	return (part * flow_s > sum_s ? part * flow_s : sum_s) + (1 - part) * flow_s;
}

void skep_throughput_sum(const struct skep_throughput *t, uint32_t first_workers, struct skep_throughput_parts *p)
{
	double in_flight = t->in_flight * first_workers, reduction = p->reduction_s / t->period;
	in_flight = p->outstanding > 0 && p->outstanding < in_flight ? p->outstanding : in_flight;
	double flushes = t->flushes > 1 ? t->flushes : 1, microbatches = t->microbatches * t->period / flushes;
	double starved_s = in_flight < SKEP_NEVER && in_flight > 0 ? microbatches * p->trip_s / in_flight : 0;
	p->flow_s = p->trip_s + (microbatches - 1) * p->pace_s;
	p->starved = starved_s > p->flow_s;
	p->flow_s = flushes / t->period * (p->starved ? starved_s : p->flow_s);
	p->step_s = skep_throughput_beside_s(t, p->flow_s, reduction);
	p->step_s += (p->update_s + p->turn_s) / t->period;
}

static double add_up(struct flow *f)
{
	struct skep_throughput_parts p = {0};
	double rent = f->t.rent ? f->t.standing_rent : 0, egress_usd = 0, directory_s = 0;
	for (uint32_t s = 0; s < f->stages; s++) {
		const struct skep_throughput_stage *part = &f->part[s];
		if (part->pace_s > p.pace_s || s == 0) {
			p.pace_s = part->pace_s;
			p.slowest_stage = s;
		}
		p.trip_s += part->compute_s + part->travel_s;
		p.reduction_s = part->reduction_s > p.reduction_s ? part->reduction_s : p.reduction_s;
		p.update_s = part->update_s > p.update_s ? part->update_s : p.update_s;
		directory_s = part->directory_s > directory_s ? part->directory_s : directory_s;
		rent += part->rent;
		egress_usd += part->egress_usd;
	}
	p.outstanding = skep_throughput_outstanding(&f->t, f->count);
	p.turn_s = skep_throughput_turn_s(&f->t, f->part[0].directory_s, directory_s);
	skep_throughput_sum(&f->t, f->count[0], &p);
	p.step_s += possible(f);
	f->parts = p;
	uint32_t most = 0;
	for (uint32_t stage = 0; f->t.rounds && stage < f->stages; stage++)
		most = f->count[stage] > most ? f->count[stage] : most;
	double rounds = f->t.rounds ? f->t.rounds[most] : 1;
	if (!(p.step_s < SKEP_NEVER && rounds < SKEP_NEVER))
		return SKEP_NEVER;
	return rounds * (f->t.rent ? p.step_s * rent + egress_usd : p.step_s);
}

static void list_places(struct flow *f)
{
	for (uint32_t s = 0; s < f->stages; s++) {
		uint32_t nth = 0;
		for (uint32_t i = skep_bits_next(members(f, s), 0, f->workers); i < f->workers;
			i = skep_bits_next(members(f, s), i + 1, f->workers))
			f->place[(size_t)s * f->workers + nth++] = i;
	}
}

static bool uneven(const struct flow *f)
{
	for (uint32_t s = 1; s < f->stages; s++)
		if (f->count[s] != f->count[0])
			return true;
	return false;
}

static double measure(struct flow *f)
{
	bool fixed = f->t.shares == SKEP_SHARES_FIXED;
	for (uint32_t s = 0; s < f->stages; s++)
		if (f->dirty[s] || fixed)
			f->weight[s] = weight_in(f, s);
	if (fixed && uneven(f))
		return SKEP_NEVER;
	if (fixed)
		list_places(f);
	for (uint32_t s = 0; s < f->stages; s++)
		if (f->dirty[s] || fixed)
			measure_stage(f, s);
	return add_up(f);
}

/* ---- the cost ------------------------------------------------------------------------------------------------------- */

static double whole(void *self, const uint32_t *stage_of)
{
	struct flow *f = self;
	f->missing = 0;
	f->unable = 0;
	skep_bits_clear(f->member, f->stages * f->words);
	memset(f->count, 0, f->stages * sizeof *f->count);
	if (f->t.fits)
		memset(f->present, 0, (size_t)f->stages * f->t.types * sizeof *f->present);
	memcpy(f->stage_of, stage_of, f->workers * sizeof *stage_of);
	for (uint32_t i = 0; i < f->workers; i++) {
		if (!is_stage(f, stage_of[i]))
			continue;
		recount(f, i, stage_of[i], 1);
		f->unable += is_unable(f, i, stage_of[i]);
	}
	for (uint32_t i = 0; i < f->workers; i++)
		if (f->t.shares != SKEP_SHARES_FIXED)
			make_sums(f, i);
	for (uint32_t s = 0; s + 1 < f->stages && f->any_missing; s++)
		for (uint32_t i = 0; i < f->workers; i++)
			for (uint32_t j = 0; stage_of[i] == s && j < f->workers; j++)
				f->missing +=
					stage_of[j] == s + 1 && (f->per_byte[(size_t)i * f->workers + j] < 0 ||
									f->per_byte[(size_t)j * f->workers + i] < 0);
	f->missing *= f->t.shares != SKEP_SHARES_FIXED;
	memset(f->dirty, 1, f->stages * sizeof *f->dirty);
	return measure(f);
}

static void do_change(struct flow *f, const struct skep_change *change)
{
	uint32_t a = f->stage_of[change->worker];
	leave(f, change->worker);
	if (change->other == SKEP_NO_WORKER) {
		enter(f, change->worker, change->to);
		return;
	}
	uint32_t b = f->stage_of[change->other];
	leave(f, change->other);
	enter(f, change->worker, b);
	enter(f, change->other, a);
}

/* Back to before, whatever has been done to it. */
static void undo(struct flow *f, const struct skep_change *change, uint32_t a, uint32_t b)
{
	uint32_t who[2] = {change->worker, change->other}, back[2] = {a, b};
	for (uint32_t i = 0; i < 2 && who[i] != SKEP_NO_WORKER; i++) {
		uint32_t at = f->stage_of[who[i]];
		if (is_stage(f, at))
			recount(f, who[i], at, UINT32_MAX);
		f->stage_of[who[i]] = SKEP_SPARE;
	}
	for (uint32_t i = 0; i < 2 && who[i] != SKEP_NO_WORKER; i++) {
		f->stage_of[who[i]] = back[i];
		if (is_stage(f, back[i]))
			recount(f, who[i], back[i], 1);
	}
	while (f->log_size > 0) {
		f->log_size--;
		f->sums[f->log[f->log_size].worker] = f->log[f->log_size].sums;
	}
}

static double change(void *self, const struct skep_change *change)
{
	struct flow *f = self;
	uint32_t a = f->stage_of[change->worker];
	uint32_t b = change->other == SKEP_NO_WORKER ? SKEP_SPARE : f->stage_of[change->other];
	int64_t missing = f->missing, unable = f->unable;
	f->asked = *change;
	f->log_size = 0;
	memset(f->dirty, 0, f->stages * sizeof *f->dirty);
	memcpy(f->old_part, f->part, f->stages * sizeof *f->part);
	memcpy(f->old_weight, f->weight, f->stages * sizeof *f->weight);
	do_change(f, change);
	double cost = measure(f);
	undo(f, change, a, b);
	memcpy(f->part, f->old_part, f->stages * sizeof *f->part);
	memcpy(f->weight, f->old_weight, f->stages * sizeof *f->weight);
	f->missing = missing;
	f->unable = unable;
	return cost;
}

static void keep(void *self)
{
	struct flow *f = self;
	f->log_size = 0;
	memset(f->dirty, 0, f->stages * sizeof *f->dirty);
	do_change(f, &f->asked);
	if (++f->kept % KEEPS_EXACT == 0 && f->t.shares != SKEP_SHARES_FIXED)
		for (uint32_t i = 0; i < f->workers; i++)
			make_sums(f, i);
	f->log_size = 0;
	measure(f);
}

/* ---- beginning ------------------------------------------------------------------------------------------------------ */

static void carve_all(struct flow *f, struct skep_search_carve *c, const struct skep_throughput *t)
{
	f->t = *t;
	f->workers = t->links->workers;
	f->stages = t->stages;
	f->words = skep_bits_words(f->workers);
	size_t pairs = (size_t)f->workers * f->workers;
	f->per_byte = skep_search_carve(c, pairs, sizeof *f->per_byte);
	f->together = skep_search_carve(c, pairs, sizeof *f->together);
	f->along = skep_search_carve(c, pairs, sizeof *f->along);
	f->alone = skep_search_carve(c, (size_t)f->workers * f->stages, sizeof *f->alone);
	f->member = skep_search_carve(c, (size_t)f->stages * f->words, sizeof *f->member);
	f->stage_of = skep_search_carve(c, f->workers, sizeof *f->stage_of);
	f->count = skep_search_carve(c, f->stages, sizeof *f->count);
	f->present = skep_search_carve(c, t->fits ? (size_t)f->stages * t->types : 0, sizeof *f->present);
	f->place = skep_search_carve(c, (size_t)f->stages * f->workers, sizeof *f->place);
	f->weight = skep_search_carve(c, f->stages, sizeof *f->weight);
	f->old_weight = skep_search_carve(c, f->stages, sizeof *f->old_weight);
	f->part = skep_search_carve(c, f->stages, sizeof *f->part);
	f->old_part = skep_search_carve(c, f->stages, sizeof *f->old_part);
	f->dirty = skep_search_carve(c, f->stages, sizeof *f->dirty);
	f->sums = skep_search_carve(c, f->workers, sizeof *f->sums);
	f->log = skep_search_carve(c, 4 * (size_t)f->workers + 4, sizeof *f->log);
}

size_t skep_throughput_size(const struct skep_throughput *throughput)
{
	struct flow f;
	struct skep_search_carve c = {NULL, 0};
	skep_search_carve(&c, 1, sizeof f);
	carve_all(&f, &c, throughput);
	return c.used;
}

static double mean(const double *value, uint32_t count)
{
	double sum = 0;
	for (uint32_t i = 0; i < count; i++)
		sum += value[i];
	return count > 0 ? sum / count : 0;
}

/* Seconds of a step, roughly: of a hop of the ring's 2 (n - 1); of a worker's share of microbatches there and back; of
 * computing it. */
static void stand_in(struct flow *f)
{
	double size = (double)f->workers / f->stages, part = f->t.microbatches / size;
	double reduced = mean(f->t.reduced_bytes, f->stages) / size;
	double bytes = (mean(f->t.forward_bytes, f->stages - 1) + mean(f->t.backward_bytes, f->stages - 1)) / 2;
	for (size_t i = 0; i < (size_t)f->workers * f->workers; i++) {
		double per_byte = f->per_byte[i], delay = f->t.links->delay_s[i];
		bool apart = per_byte < 0;
		f->together[i] = apart ? SKEP_NEVER : 2 * (delay + reduced * per_byte) / f->t.period;
		f->along[i] = apart ? SKEP_NEVER : delay + part * bytes * per_byte;
	}
	for (size_t i = 0; i < (size_t)f->workers * f->stages; i++)
		f->alone[i] = part * f->t.compute_s[i];
}

const struct skep_objective *skep_throughput_init(void *mem, const struct skep_throughput *throughput)
{
	struct skep_search_carve c = {mem, 0};
	struct flow *f = skep_search_carve(&c, 1, sizeof *f);
	memset(f, 0, sizeof *f);
	carve_all(f, &c, throughput);
	for (uint32_t i = 0; i < f->workers; i++)
		for (uint32_t j = 0; j < f->workers; j++) {
			size_t at = (size_t)i * f->workers + j;
			double rate = f->t.links->rate_Bps[at];
			bool apart = i != j && (!(rate > 0) || !(f->t.links->delay_s[at] < SKEP_NEVER));
			f->per_byte[at] = i == j || !(rate < SKEP_NEVER) ? 0 : 1 / rate;
			f->per_byte[at] = apart ? -1 : f->per_byte[at];
			f->any_missing = f->any_missing || apart;
		}
	stand_in(f);
	f->objective = (struct skep_objective){.self = f, .whole = whole, .change = change, .keep = keep};
	return &f->objective;
}

struct skep_throughput_parts skep_throughput_explain(
	const struct skep_objective *cost, const uint32_t *stage_of, struct skep_throughput_stage *ret_stage)
{
	struct flow *f = cost->self;
	bool can = whole(f, stage_of) < SKEP_NEVER;
	for (uint32_t s = 0; s < f->stages; s++) {
		ret_stage[s] = f->part[s];
		ret_stage[s].workers = f->count[s];
	}
	f->parts.step_s = can ? f->parts.step_s : SKEP_NEVER;
	return f->parts;
}

struct skep_throughput_stage skep_throughput_measure(const struct skep_objective *cost, uint32_t stage)
{
	struct flow *f = cost->self;
	struct skep_throughput_stage before = f->part[stage], now;
	double weight = f->weight[stage];
	bool able = f->missing == 0, lacks = f->lacks;
	f->weight[stage] = weight_in(f, stage);
	measure_stage(f, stage);
	now = f->part[stage];
	for (uint32_t i = skep_bits_next(members(f, stage), 0, f->workers); i < f->workers;
		i = skep_bits_next(members(f, stage), i + 1, f->workers))
		able = able && !is_unable(f, i, stage);
	if (!able || now.workers == 0)
		now.pace_s = SKEP_NEVER;
	f->part[stage] = before;
	f->weight[stage] = weight;
	f->lacks = lacks;
	return now;
}

const double *skep_throughput_together(const struct skep_objective *cost)
{
	return ((const struct flow *)cost->self)->together;
}

const double *skep_throughput_along(const struct skep_objective *cost)
{
	return ((const struct flow *)cost->self)->along;
}

const double *skep_throughput_alone(const struct skep_objective *cost)
{
	return ((const struct flow *)cost->self)->alone;
}
