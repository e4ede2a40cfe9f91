/* SPDX-License-Identifier: Apache-2.0
 *
 * scale.c - see scale.h.
 */
#include "core/scale/scale.h"

#include <assert.h>
#include <string.h>

#define TRUST                                                                                                          \
	2u /* a size is trusted up to so many times the largest one that was measured, and down to that part of the
                          smallest */
#define UNMEASURED 3u /* rounds in a row in which machines came or went, before one of them counts all the same */

static const struct skep_scale_rule *const rule_of[SKEP_SCALE_POLICIES] = {
	[SKEP_SCALE_DEADLINE] = &skep_scale_deadline,
	[SKEP_SCALE_PRICE] = &skep_scale_price,
};

void skep_scale_init(struct skep_scale_state *state, const struct skep_scale *scale, skep_time now_ns, uint32_t speed)
{
	assert(scale->kinds > 0 && scale->kinds <= SKEP_SCALE_KINDS_MAX);
	memset(state, 0, sizeof *state);
	state->closed_ns = state->changed_ns = now_ns;
	state->speed = speed;
	for (uint32_t k = 0; k < scale->kinds; k++) {
		state->wanted[k] = state->last_there[k] = scale->kind[k].start;
		state->missing_since_ns[k] = SKEP_TIME_NEVER;
	}
}

/* ---- the rate ------------------------------------------------------------------------------------------------------ */

static struct skep_scale_point *point_of(struct skep_scale_state *state, uint32_t speed)
{
	for (uint32_t i = 0; i < state->points; i++)
		if (state->point[i].speed == speed)
			return &state->point[i];
	assert(state->points <= SKEP_SCALE_POINTS && state->oldest < SKEP_SCALE_POINTS);
	uint32_t at = state->points < SKEP_SCALE_POINTS ? state->points++ : state->oldest;
	if (state->points == SKEP_SCALE_POINTS)
		state->oldest = (at + 1) % SKEP_SCALE_POINTS;
	state->point[at] = (struct skep_scale_point){.speed = speed};
	return &state->point[at];
}

void skep_scale_measure(struct skep_scale_state *state, skep_time now_ns, uint32_t speed, uint64_t microbatches)
{
	assert(now_ns >= state->closed_ns);
	skep_time took_ns = now_ns - state->closed_ns;
	uint32_t mean = (uint32_t)(((uint64_t)speed + state->speed) / 2);
	bool steady = speed == state->speed, first = !state->begun;
	state->begun = true;
	state->closed_ns = now_ns;
	state->speed = speed;
	state->unmeasured = steady ? 0 : state->unmeasured + 1;
	if (first || mean == 0 || took_ns == 0 || microbatches == 0 || (!steady && state->unmeasured < UNMEASURED))
		return;
	struct skep_scale_point *point = point_of(state, mean);
	point->rounds += point->rounds < SKEP_SCALE_ROUNDS;
	point->ns += ((double)took_ns / (double)microbatches - point->ns) / (double)point->rounds;
	state->most = mean > state->most ? mean : state->most;
	state->least = state->least == 0 || mean < state->least ? mean : state->least;
}

/* Least squares of (a / s + b) / t - 1; where either would be below 0 it is 0, and the other by itself. */
struct skep_scale_curve skep_scale_fit(const struct skep_scale_state *state)
{
	double uu = 0, uv = 0, vv = 0, u1 = 0, v1 = 0;
	assert(state->points > 0);
	for (uint32_t i = 0; i < state->points; i++) {
		double v = 1 / state->point[i].ns, u = v / (double)state->point[i].speed;
		double weight = (double)state->point[i].rounds;
		uu += weight * u * u;
		uv += weight * u * v;
		vv += weight * v * v;
		u1 += weight * u;
		v1 += weight * v;
	}
	double determinant = uu * vv - uv * uv;
	if (state->points < 2 || determinant <= 1e-9 * uu * vv)
		return (struct skep_scale_curve){.shared_ns = u1 / uu};
	double a = (u1 * vv - v1 * uv) / determinant, b = (v1 * uu - u1 * uv) / determinant;
	if (b < 0)
		return (struct skep_scale_curve){.shared_ns = u1 / uu};
	if (a < 0)
		return (struct skep_scale_curve){.fixed_ns = v1 / vv};
	return (struct skep_scale_curve){a, b};
}

double skep_scale_rate(const struct skep_scale_curve *curve, double speed)
{
	assert(curve->shared_ns >= 0 && curve->fixed_ns >= 0);
	double ns = curve->shared_ns + curve->fixed_ns * speed;
	return speed > 0 && ns > 0 ? speed / ns : 0;
}

/* ---- who is short --------------------------------------------------------------------------------------------------- */

static void look_for_missing(
	struct skep_scale_state *state, const struct skep_scale *scale, const struct skep_scale_now *now)
{
	for (uint32_t k = 0; k < scale->kinds; k++) {
		bool came = now->there[k] > state->last_there[k];
		if (now->there[k] >= state->wanted[k])
			state->missing_since_ns[k] = SKEP_TIME_NEVER;
		else if (came || state->missing_since_ns[k] == SKEP_TIME_NEVER)
			state->missing_since_ns[k] = now->now_ns;
		state->last_there[k] = now->there[k];
	}
}

static bool is_short(const struct skep_scale_state *state, const struct skep_scale *scale,
	const struct skep_scale_now *now, uint32_t k)
{
	skep_time since_ns = state->missing_since_ns[k];
	return since_ns != SKEP_TIME_NEVER && now->now_ns >= since_ns + scale->cool_down_ns;
}

/* ---- choosing ------------------------------------------------------------------------------------------------------- */

struct choice {
	uint32_t wanted[SKEP_SCALE_KINDS_MAX], machines;
	uint64_t speed, price;
	bool enough;    /* the policy wanted no more, or no more may be there */
	uint32_t tried; /* kinds that were looked at, in their order */
};

/* Kinds by price for their speed, the lowest first; a tie goes to the lower number. */
static void sort_kinds(const struct skep_scale *scale, const struct skep_scale_now *now, uint32_t *ret_order)
{
	for (uint32_t k = 0; k < scale->kinds; k++) {
		uint32_t at = k;
		for (; at > 0; at--) {
			uint32_t other = ret_order[at - 1];
			if (now->price[other] * scale->kind[k].speed <= now->price[k] * scale->kind[other].speed)
				break;
			ret_order[at] = other;
		}
		ret_order[at] = k;
	}
}

/* Beyond `min`: may it cost so much? */
static bool affordable(const struct skep_scale *scale, const struct choice *choice, uint64_t price)
{
	return (scale->budget_microusd_per_h == 0 || choice->price + price <= scale->budget_microusd_per_h) &&
	       (scale->machine_microusd_per_h == 0 || price <= scale->machine_microusd_per_h);
}

static void take(const struct skep_scale *scale, const struct skep_scale_now *now, uint32_t k, struct choice *choice)
{
	assert(k < scale->kinds && choice->wanted[k] < scale->kind[k].workers);
	choice->wanted[k]++;
	choice->machines++;
	choice->speed += scale->kind[k].speed;
	choice->price += now->price[k];
}

/* Takes machines of one kind while they are wanted. */
static void choose_of(const struct skep_scale_state *state, const struct skep_scale *scale,
	const struct skep_scale_now *now, bool keep, uint32_t k, uint32_t limit, struct choice *choice)
{
	assert(limit <= scale->kind[k].workers && choice->wanted[k] == 0);
	struct skep_scale_curve curve = skep_scale_fit(state);
	while (choice->wanted[k] < limit && !choice->enough) {
		bool needed = choice->machines < scale->min, small = TRUST * choice->speed < state->least;
		if (!needed && !affordable(scale, choice, now->price[k]))
			return;
		struct skep_scale_offer offer = {.rate = skep_scale_rate(&curve, (double)choice->speed),
			.next_rate = skep_scale_rate(&curve, (double)(choice->speed + scale->kind[k].speed)),
			.price = (double)choice->price,
			.next_price = (double)now->price[k]};
		choice->enough = choice->machines >= scale->max ||
		                 (!needed && !small &&
					 (choice->speed >= (uint64_t)TRUST * state->most ||
						 !rule_of[scale->policy]->wants(scale, now, &offer, keep)));
		if (!choice->enough)
			take(scale, now, k, choice);
	}
}

/* One more of each kind that is short, and would have been taken: should there be one again, it is had. */
static void keep_asking(const struct skep_scale_state *state, const struct skep_scale *scale,
	const struct skep_scale_now *now, const uint32_t *order, struct choice *choice)
{
	for (uint32_t i = 0; i < choice->tried; i++) {
		uint32_t k = order[i];
		if (is_short(state, scale, now, k) && choice->wanted[k] == now->there[k] &&
			choice->wanted[k] < scale->kind[k].workers && choice->machines < scale->max &&
			affordable(scale, choice, now->price[k]))
			take(scale, now, k, choice);
	}
}

/* ret->speed and ret->price are without what is only asked for because its kind is short. */
static struct choice choose(const struct skep_scale_state *state, const struct skep_scale *scale,
	const struct skep_scale_now *now, bool keep)
{
	struct choice choice = {.machines = 0};
	uint32_t order[SKEP_SCALE_KINDS_MAX] = {0};
	sort_kinds(scale, now, order);
	for (; choice.tried < scale->kinds && !choice.enough; choice.tried++) {
		uint32_t k = order[choice.tried], limit = scale->kind[k].workers;
		if (is_short(state, scale, now, k) && now->there[k] < limit)
			limit = now->there[k];
		choose_of(state, scale, now, keep, k, limit, &choice);
	}
	uint64_t speed = choice.speed, price = choice.price;
	keep_asking(state, scale, now, order, &choice);
	choice.speed = speed;
	choice.price = price;
	return choice;
}

/* What is wanted so far, without machines that do not come. */
static struct choice present(
	const struct skep_scale_state *state, const struct skep_scale *scale, const struct skep_scale_now *now)
{
	struct choice choice = {.machines = 0};
	for (uint32_t k = 0; k < scale->kinds; k++) {
		uint32_t count = state->wanted[k];
		if (is_short(state, scale, now, k))
			count = now->there[k];
		choice.speed += (uint64_t)count * scale->kind[k].speed;
		choice.price += count * now->price[k];
	}
	return choice;
}

bool skep_scale_decide(struct skep_scale_state *state, const struct skep_scale *scale, const struct skep_scale_now *now)
{
	assert(scale->policy < SKEP_SCALE_POLICIES && scale->min <= scale->max);
	if (state->points == 0 || (state->decided && now->now_ns < state->decided_ns + scale->period_ns))
		return false;
	state->decided = true;
	state->decided_ns = now->now_ns;
	look_for_missing(state, scale, now);
	struct choice is = present(state, scale, now), few = choose(state, scale, now, false),
		      many = choose(state, scale, now, true);
	bool cool = now->now_ns >= state->changed_ns + scale->cool_down_ns;
	bool dear = scale->budget_microusd_per_h > 0 && is.price > scale->budget_microusd_per_h;
	const struct choice *target = NULL;
	if (is.speed < few.speed)
		target = &few;
	else if (is.speed > many.speed && (cool || dear))
		target = &many;
	if (target == NULL || memcmp(target->wanted, state->wanted, sizeof state->wanted) == 0)
		return false;
	memcpy(state->wanted, target->wanted, sizeof state->wanted);
	state->changed_ns = now->now_ns;
	return true;
}
