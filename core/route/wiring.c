/* SPDX-License-Identifier: Apache-2.0
 *
 * wiring.c - see wiring.h. A worker is searched for from end to end: the view is small. Who has the smallest key is known from
 * a tournament, since it is asked at each choice.
 *
 * What is kept true: with n choices, those of nodes 2k and 2k + 1 that comes first is choice[k].winner, for 1 <= k < n; node
 * k >= n is choice k - n itself. So winner 1 comes first of all.
 */
#include "core/route/wiring.h"

#include <assert.h>

#include "core/random.h"
#include "core/schedule/pipelines.h"

static_assert(SKEP_VIEW_MAX <= UINT16_MAX, "a winner is a uint16_t");
static_assert(sizeof(struct skep_choice) == 48, "a view is most of what a worker remembers");

#define ONE (1u << 20)                    /* 1 in the fixed point of the weight */
#define UNKNOWN_NS_PER_SAMPLE 1000000000u /* what one that has never answered is charged */
#define SAMPLE_NS_MAX (1ull << 43)        /* 2.4 h per sample: keeps the fixed point within 64 bits */
#define CHARGE_NS_MAX (1ull << 60)        /* 36 years: a key that is charged it stays within 64 bits (resolve()) */
#define LATE 4                            /* times the usual: more does not count */
#define NS_PER_US 1000u
#define GUESSED_MAX ((1u << 15) - 1) /* of its bits */
#define FRACTION_BITS 10             /* of the average */
#define THOUSANDTHS_MAX (1u << 20)   /* of 1 s in a key that is scaled; times SAMPLE_NS_MAX within 64 bits */

uint32_t skep_view_capacity(const struct skep_plan *plan)
{
	if (skep_plan_uneven(plan)) /* none of them stands for another */
		return skep_stage_size_max(plan);
	return plan->workers < SKEP_VIEW_MAX ? plan->workers : SKEP_VIEW_MAX;
}

void skep_view_clear(struct skep_view *view)
{
	assert(view->leavers <= view->count);
	view->count = 0;
	view->leavers = 0;
	view->heard = 0;
	view->sample = false;
	view->full_speed_ns = 0;
}

static uint32_t find(const struct skep_view *view, uint32_t index)
{
	uint32_t i = 0;
	while (i < view->count && view->choice[i].peer.index != index)
		i++;
	return i;
}

static bool before(const struct skep_choice *a, const struct skep_choice *b)
{
	return a->key_ns < b->key_ns || (a->key_ns == b->key_ns && a->tie < b->tie);
}

static const struct skep_peer no_worker = {SKEP_NO_INDEX, 0};

static bool is(const struct skep_choice *choice, struct skep_peer peer)
{
	return choice->peer.index == peer.index && choice->peer.epoch == peer.epoch;
}

static uint32_t staying(const struct skep_view *view, struct skep_peer avoid)
{
	uint32_t stay = view->count - view->leavers;
	for (uint32_t i = 0; i < view->count && avoid.index != SKEP_NO_INDEX; i++)
		stay -= !view->choice[i].leaving && is(&view->choice[i], avoid);
	return stay;
}

static uint32_t node(const struct skep_view *view, uint32_t k)
{
	return k < view->count ? view->choice[k].winner : k - view->count;
}

/* Those that stay come first. */
static uint32_t winner(const struct skep_view *view, uint32_t i, uint32_t j)
{
	const struct skep_choice *a = &view->choice[i], *b = &view->choice[j];
	if (a->leaving != b->leaving)
		return a->leaving ? j : i;
	return before(b, a) || (i > j && !before(a, b)) ? j : i;
}

static void play(struct skep_view *view, uint32_t k)
{
	view->choice[k].winner = (uint16_t)winner(view, node(view, 2 * k), node(view, 2 * k + 1));
}

/* After a change of choice i. */
static void replay(struct skep_view *view, uint32_t i)
{
	assert(i < view->count);
	for (uint32_t k = (view->count + i) / 2; k > 0; k /= 2)
		play(view, k);
}

/* After others came or went. */
static void play_all(struct skep_view *view)
{
	for (uint32_t k = view->count; k-- > 1;)
		play(view, k);
}

/* Chooses among the workers that stay, or among all if none stays; but not `avoid`. */
static uint32_t smallest(const struct skep_view *view, struct skep_peer avoid)
{
	uint32_t best = view->count;
	if (view->count == 0)
		return 0;
	if (!is(&view->choice[node(view, 1)], avoid))
		return node(view, 1);
	for (uint32_t i = 0; i < view->count; i++) {
		if (!is(&view->choice[i], avoid))
			best = best < view->count ? winner(view, best, i) : i;
	}
	return best;
}

/* Mostly all stay and none is to be avoided: then the view need not be looked through. */
static uint32_t random_one(const struct skep_view *view, struct skep_peer avoid, uint64_t *random)
{
	if (view->leavers == 0 && avoid.index == SKEP_NO_INDEX)
		return skep_random_below(random, view->count);
	uint32_t stay = staying(view, avoid), open = 0, i = 0;
	for (uint32_t j = 0; j < view->count; j++)
		open += !is(&view->choice[j], avoid);
	uint32_t nth = skep_random_below(random, stay > 0 ? stay : open);
	assert(open > 0 && stay <= open);
	while ((stay > 0 && view->choice[i].leaving) || is(&view->choice[i], avoid) || nth-- > 0)
		i++;
	assert(i < view->count);
	return i;
}

/* ---- what is not known yet ------------------------------------------------------------------------------------------ */

/* Of SKEP_SPEED_MAX. Where the plan expects no differences, all are at full speed. */
static uint32_t speed(const struct skep_plan *plan, struct skep_peer peer)
{
	return plan->speed ? plan->speed[peer.index] : SKEP_SPEED_MAX;
}

/* Per sample, of one that has never answered. */
static uint64_t guess_ns(const struct skep_view *view, const struct skep_plan *plan, struct skep_peer peer)
{
	uint64_t full_ns = view->full_speed_ns > 0 ? view->full_speed_ns : UNKNOWN_NS_PER_SAMPLE;
	assert(speed(plan, peer) > 0 && speed(plan, peer) <= SKEP_SPEED_MAX && full_ns <= SAMPLE_NS_MAX);
	uint64_t ns = full_ns * SKEP_SPEED_MAX / speed(plan, peer);
	return ns < SAMPLE_NS_MAX ? ns : SAMPLE_NS_MAX;
}

static uint32_t tie_of(uint64_t draw)
{
	return (uint32_t)(draw >> 32);
}

/* One that has never answered begins somewhere within the first of its turns. */
static struct skep_choice begin(
	const struct skep_view *view, const struct skep_plan *plan, struct skep_peer peer, uint64_t *random)
{
	uint64_t draw = skep_random_next(random), turn_ns = guess_ns(view, plan, peer) * plan->samples;
	assert(turn_ns > 0 && peer.index != SKEP_NO_INDEX);
	return (struct skep_choice){.peer = peer, .tie = tie_of(draw), .key_ns = draw % turn_ns};
}

/* Before the first answer all keys were made of guesses at a full speed of a sample in 1 s. */
static void scale(struct skep_view *view)
{
	assert(view->full_speed_ns > 0 && view->full_speed_ns <= SAMPLE_NS_MAX);
	for (uint32_t i = 0; i < view->count; i++) {
		uint64_t thousandths = view->choice[i].key_ns / (UNKNOWN_NS_PER_SAMPLE / 1000);
		thousandths = thousandths < THOUSANDTHS_MAX ? thousandths : THOUSANDTHS_MAX;
		view->choice[i].key_ns = thousandths * view->full_speed_ns / 1000;
	}
	play_all(view);
}

/* A worker has needed so long: what would one at full speed need? */
static void hear_full_speed(
	struct skep_view *view, const struct skep_plan *plan, struct skep_peer peer, uint64_t sample_ns)
{
	uint64_t newest = sample_ns * speed(plan, peer) / SKEP_SPEED_MAX, before = view->full_speed_ns;
	newest += newest == 0;
	view->full_speed_ns = before > 0 ? (before * (SKEP_VIEW_SMOOTHING - 1) + newest) / SKEP_VIEW_SMOOTHING : newest;
	if (before == 0)
		scale(view);
}

static struct skep_choice newcomer(
	const struct skep_view *view, const struct skep_plan *plan, struct skep_peer peer, uint64_t *random)
{
	struct skep_choice choice = begin(view, plan, peer, random);
	if (view->full_speed_ns > 0 && view->count > 0)
		choice.key_ns += view->choice[smallest(view, no_worker)].key_ns;
	return choice;
}

static uint32_t first_leaving(const struct skep_view *view)
{
	uint32_t i = 0;
	while (i < view->count && !view->choice[i].leaving)
		i++;
	return i;
}

/* In the place of another: the tournament keeps its shape, and the node that lies there its winner. */
static void replace(struct skep_view *view, uint32_t i, struct skep_choice choice)
{
	view->leavers -= view->choice[i].leaving;
	assert(!choice.leaving && choice.weight == 0);
	choice.winner = view->choice[i].winner;
	view->choice[i] = choice;
	replay(view, i);
}

void skep_view_add(struct skep_view *view, const struct skep_plan *plan, uint32_t capacity, struct skep_peer peer,
	uint64_t *random)
{
	assert(view->leavers <= view->count);
	uint32_t i = find(view, peer.index);
	if (i < view->count) {
		if (view->choice[i].peer.epoch < peer.epoch)
			replace(view, i, newcomer(view, plan, peer, random));
		return;
	}
	view->heard++;
	struct skep_choice choice = newcomer(view, plan, peer, random);
	if (view->count < capacity) {
		view->choice[view->count++] = choice;
		play_all(view);
		return;
	}
	view->sample = true;
	uint32_t place = first_leaving(view);
	if (place == view->count)
		place = skep_random_below(random, view->heard); /* reservoir sampling */
	if (place < capacity)
		replace(view, place, choice);
}

void skep_view_meet(struct skep_view *view, const struct skep_plan *plan, uint32_t capacity, struct skep_peer peer,
	uint64_t *random)
{
	assert(view->leavers <= view->count);
	struct skep_choice choice = begin(view, plan, peer, random);
	uint32_t place = view->count;
	view->heard++;
	assert(place <= capacity && view->heard > place);
	if (view->count == capacity) {
		view->sample = true;
		place = skep_random_below(random, view->heard);
	} else {
		view->count++;
	}
	if (place < capacity)
		view->choice[place] = choice;
}

void skep_view_met(struct skep_view *view)
{
	play_all(view);
}

bool skep_view_has(const struct skep_view *view, uint32_t index)
{
	return find(view, index) < view->count;
}

struct skep_peer skep_view_find(const struct skep_view *view, uint32_t index)
{
	uint32_t i = find(view, index);
	return i < view->count ? view->choice[i].peer : no_worker;
}

void skep_view_remove(struct skep_view *view, struct skep_peer peer)
{
	assert(view->leavers <= view->count);
	uint32_t i = find(view, peer.index);
	if (i < view->count && view->choice[i].peer.epoch > peer.epoch)
		return;
	if (view->heard > view->count || i < view->count)
		view->heard--;
	if (i == view->count)
		return;
	view->leavers -= view->choice[i].leaving;
	view->count--;
	for (; i < view->count; i++) /* keeps the order, so that the choice depends on nothing but what was heard */
		view->choice[i] = view->choice[i + 1];
	play_all(view);
}

bool skep_view_thin(struct skep_view *view, uint32_t capacity)
{
	assert(view->leavers <= view->count);
	if (!view->sample || staying(view, no_worker) > capacity / 2)
		return false;
	view->heard = view->count;
	view->sample = false;
	return true;
}

void skep_view_leaving(struct skep_view *view, struct skep_peer peer)
{
	assert(view->leavers <= view->count);
	uint32_t i = find(view, peer.index);
	if (i == view->count || view->choice[i].peer.epoch != peer.epoch || view->choice[i].leaving)
		return;
	view->choice[i].leaving = true;
	view->leavers++;
	replay(view, i);
}

static uint64_t expected_ns(
	const struct skep_view *view, const struct skep_plan *plan, const struct skep_choice *choice)
{
	if (choice->weight == 0)
		return guess_ns(view, plan, choice->peer);
	return (choice->average << FRACTION_BITS) / choice->weight;
}

/* Of a microbatch, in lines that others share. Less than half of what its device needs is how messages happen to meet. */
static uint64_t waits_ns(const struct skep_choice *choice, uint64_t needed_ns)
{
	uint64_t wait_us = choice->line_us > choice->least_us ? choice->line_us - choice->least_us : 0;
	uint64_t wait_ns = wait_us * NS_PER_US, slack_ns = needed_ns / SKEP_VIEW_SLACK;
	return wait_ns > slack_ns ? wait_ns - slack_ns : 0;
}

/* Moves all keys down by the smallest: only differences count, and the sum of charges must not overflow. Those that are
 * leaving may lie below. */
static void resolve(struct skep_view *view, uint64_t least_ns)
{
	if (least_ns >> 62 == 0)
		return;
	for (uint32_t i = 0; i < view->count; i++)
		view->choice[i].key_ns -= least_ns < view->choice[i].key_ns ? least_ns : view->choice[i].key_ns;
	play_all(view);
}

bool skep_view_has_other(const struct skep_view *view, struct skep_peer peer)
{
	return view->count > 1 || (view->count == 1 && !is(&view->choice[0], peer));
}

struct skep_peer skep_view_choose_other(struct skep_view *view, const struct skep_plan *plan, struct skep_peer self,
	struct skep_peer avoid, uint64_t *random)
{
	assert(view->leavers <= view->count);
	if (!skep_view_has_other(view, avoid))
		return no_worker;
	if (plan->wiring == SKEP_WIRING_UNIFORM)
		return view->choice[random_one(view, avoid, random)].peer;
	struct skep_choice *choice = &view->choice[smallest(view, avoid)];
	struct skep_peer peer = choice->peer;
	uint64_t needed_ns = expected_ns(view, plan, choice) * plan->samples;
	uint64_t charge_ns = needed_ns + waits_ns(choice, needed_ns);
	if (plan->wiring == SKEP_WIRING_LATENCY)
		charge_ns += skep_plan_transfer_ns(plan, self.index, peer.index) +
		             skep_plan_transfer_ns(plan, peer.index, self.index);
	resolve(view, choice->key_ns);
	choice->key_ns += charge_ns;
	if (choice->weight == 0 && choice->guessed < GUESSED_MAX)
		choice->guessed++;
	choice->tie = tie_of(skep_random_next(random));
	replay(view, (uint32_t)(choice - view->choice));
	return peer;
}

/* At its first answer: what it was charged by guess, it is charged by what it needed. */
static void charge_again(
	const struct skep_view *view, const struct skep_plan *plan, struct skep_choice *choice, skep_time needed_ns)
{
	assert(choice->guessed == 0 || choice->weight == 0);
	uint64_t guessed_ns = choice->guessed * guess_ns(view, plan, choice->peer) * plan->samples;
	bool beyond = choice->guessed > 0 && needed_ns > CHARGE_NS_MAX / choice->guessed;
	choice->key_ns += beyond ? CHARGE_NS_MAX : choice->guessed * needed_ns;
	choice->key_ns -= guessed_ns < choice->key_ns ? guessed_ns : choice->key_ns;
	choice->guessed = 0;
}

/* It has answered: no longer silent, but who comes first now still does, lest it get all at once what others got meanwhile. */
static void give_back_silence(struct skep_choice *choice, uint64_t first_ns)
{
	uint64_t most_ns = choice->key_ns > first_ns ? choice->key_ns - first_ns : 0;
	uint64_t silent_ns = (uint64_t)choice->silent_us * NS_PER_US;
	choice->key_ns -= silent_ns < most_ns ? silent_ns : most_ns;
	assert(most_ns == 0 || choice->key_ns >= first_ns);
	choice->silent_us = 0;
}

static uint32_t as_us(uint64_t ns)
{
	return ns / NS_PER_US < UINT32_MAX ? (uint32_t)(ns / NS_PER_US) : UINT32_MAX;
}

/* The first time is the average, which then is smoothed as what workers need is. A single answer that comes late, of a process
 * that was stopped or a line that was cut, says little of the line, and who is charged for it is long not asked again. */
static void measure_line(struct skep_choice *choice, skep_time needed_ns, skep_time line_ns)
{
	uint64_t usual_ns = (uint64_t)choice->line_us * NS_PER_US + needed_ns;
	uint32_t newest = as_us(choice->weight > 0 && line_ns / LATE > usual_ns ? usual_ns * LATE : line_ns);
	if (choice->weight == 0) {
		choice->line_us = choice->least_us = newest;
		return;
	}
	int64_t distance = (int64_t)newest - (int64_t)choice->line_us;
	choice->line_us = (uint32_t)((int64_t)choice->line_us + distance / (int64_t)SKEP_VIEW_SMOOTHING);
	choice->least_us = newest < choice->least_us ? newest : choice->least_us;
	assert(choice->least_us <= choice->line_us);
}

static void measure_device(struct skep_choice *choice, uint64_t sample_ns)
{
	int64_t distance = (int64_t)((sample_ns > 0 ? sample_ns : 1) << FRACTION_BITS) - (int64_t)choice->average;
	choice->average = (uint64_t)((int64_t)choice->average + distance / (int64_t)SKEP_VIEW_SMOOTHING);
	choice->weight += (ONE - choice->weight) / SKEP_VIEW_SMOOTHING;
	assert(choice->weight > 0 && choice->weight <= ONE);
}

void skep_view_update(struct skep_view *view, const struct skep_plan *plan, struct skep_peer peer, skep_time needed_ns,
	skep_time line_ns)
{
	assert(view->leavers <= view->count);
	uint32_t i = find(view, peer.index);
	if (i == view->count || view->choice[i].peer.epoch != peer.epoch)
		return;
	struct skep_choice *choice = &view->choice[i];
	uint64_t sample_ns = needed_ns / plan->samples;
	sample_ns = sample_ns < SAMPLE_NS_MAX ? sample_ns : SAMPLE_NS_MAX;
	hear_full_speed(view, plan, peer, sample_ns);
	give_back_silence(choice, view->choice[smallest(view, no_worker)].key_ns);
	charge_again(view, plan, choice, needed_ns);
	measure_line(choice, needed_ns, line_ns);
	measure_device(choice, sample_ns);
	replay(view, i);
}

void skep_view_silent(struct skep_view *view, struct skep_peer peer, skep_time waited_ns)
{
	assert(view->leavers <= view->count);
	uint32_t i = find(view, peer.index);
	if (i == view->count || view->choice[i].peer.epoch != peer.epoch)
		return;
	uint64_t until_ns = view->choice[smallest(view, no_worker)].key_ns + waited_ns;
	struct skep_choice *choice = &view->choice[i];
	if (choice->key_ns >= until_ns)
		return;
	choice->silent_us = as_us((uint64_t)choice->silent_us * NS_PER_US + until_ns - choice->key_ns);
	choice->key_ns = until_ns;
	replay(view, i);
}
