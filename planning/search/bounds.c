/* SPDX-License-Identifier: Apache-2.0
 *
 * bounds.c - which allocations a problem allows, and how one is completed or repaired.
 *
 * Memory makes stages nested: who can hold a stage can hold every one that needs less. So stages are filled to their least from
 * the largest need down, each with the smallest workers that will do, and who is left, the smallest first, goes where there is
 * most room; if that fails, there is no allowed allocation that agrees with what was decided before.
 */
#include <string.h>

#include "planning/search/hunt.h"

/* The fewest and the most workers that a stage may have. */
static uint32_t least_of(const struct skep_problem *problem, uint32_t stage)
{
	uint32_t spares = problem->spares < problem->workers ? problem->spares : problem->workers;
	uint32_t even = (problem->workers - spares) / problem->stages;
	return problem->least ? problem->least[stage] : even > 0 ? even : 1;
}

static uint32_t most_of(const struct skep_problem *problem, uint32_t stage)
{
	return problem->most ? problem->most[stage] : (problem->workers + problem->stages - 1) / problem->stages;
}

static uint64_t need(const struct skep_problem *p, uint32_t stage)
{
	return p->need_bytes ? p->need_bytes[stage] : 0;
}

static uint64_t have(const struct skep_problem *p, uint32_t worker)
{
	return p->have_bytes ? p->have_bytes[worker] : UINT64_MAX;
}

/* Heap sort by a key, then by number: no recursion, no memory. */
static bool after(const uint64_t *key, bool falling, uint32_t a, uint32_t b)
{
	uint64_t ka = key ? key[a] : 0, kb = key ? key[b] : 0;
	if (ka != kb)
		return falling ? ka < kb : ka > kb;
	return a > b;
}

static void sift(uint32_t *item, uint32_t root, uint32_t end, const uint64_t *key, bool falling)
{
	for (uint32_t child = 2 * root + 1; child < end; child = 2 * root + 1) {
		child += child + 1 < end && after(key, falling, item[child + 1], item[child]);
		if (!after(key, falling, item[child], item[root]))
			return;
		uint32_t swapped = item[root];
		item[root] = item[child];
		item[child] = swapped;
		root = child;
	}
}

static void sort(uint32_t *item, uint32_t count, const uint64_t *key, bool falling)
{
	for (uint32_t i = 0; i < count; i++)
		item[i] = i;
	for (uint32_t i = count / 2; i-- > 0;)
		sift(item, i, count, key, falling);
	for (uint32_t end = count; end-- > 1;) {
		uint32_t largest = item[0];
		item[0] = item[end];
		item[end] = largest;
		sift(item, 0, end, key, falling);
	}
}

void skep_bounds_init(struct bounds *b, struct skep_search_carve *c, const struct skep_problem *p)
{
	uint64_t room = 0;
	*b = (struct bounds){.problem = p, .workers = p->workers, .stages = p->stages, .rigid = true};
	b->least = skep_search_carve(c, b->stages, sizeof *b->least);
	b->most = skep_search_carve(c, b->stages, sizeof *b->most);
	b->order = skep_search_carve(c, b->workers, sizeof *b->order);
	b->steep = skep_search_carve(c, b->stages, sizeof *b->steep);
	if (!c->mem)
		return;
	for (uint32_t s = 0; s < b->stages; s++) {
		b->least[s] = least_of(p, s);
		b->most[s] = most_of(p, s);
		b->rigid = b->rigid && b->least[s] == b->most[s];
		room += b->most[s];
	}
	b->spares_most = room < b->workers ? b->workers - (uint32_t)room : 0;
	b->spares_most = p->spares > b->spares_most ? p->spares : b->spares_most;
	sort(b->order, b->workers, p->have_bytes, false);
	sort(b->steep, b->stages, p->need_bytes, true);
}

bool skep_bounds_may(const struct bounds *b, uint32_t worker, uint32_t stage)
{
	const struct skep_problem *p = b->problem;
	if (p->fixed && p->fixed[worker] != SKEP_ANY_STAGE && p->fixed[worker] != stage)
		return false;
	return stage == SKEP_SPARE || have(p, worker) >= need(p, stage);
}

static bool free_for(const struct bounds *b, const uint32_t *stage_of, uint32_t worker, uint32_t stage)
{
	return stage_of[worker] == SKEP_UNDECIDED && skep_bounds_may(b, worker, stage);
}

static bool fill_to_least(const struct bounds *b, uint32_t *stage_of, uint32_t *count, uint32_t stage)
{
	for (uint32_t i = 0; i < b->workers && count[stage] < b->least[stage]; i++)
		if (free_for(b, stage_of, b->order[i], stage)) {
			stage_of[b->order[i]] = stage;
			count[stage]++;
		}
	return count[stage] >= b->least[stage];
}

/* The stage with most room that the worker may serve; SKEP_SPARE: none. */
static uint32_t roomiest(const struct bounds *b, const uint32_t *count, uint32_t worker)
{
	uint32_t best = SKEP_SPARE, most = 0;
	for (uint32_t s = 0; s < b->stages; s++) {
		uint32_t room = b->most[s] > count[s] ? b->most[s] - count[s] : 0;
		if (room > most && skep_bounds_may(b, worker, s)) {
			most = room;
			best = s;
		}
	}
	return best;
}

/* Completes stage_of, in which who has no stage yet is SKEP_UNDECIDED, so that the smallest workers that will do come first.
 * `count` [stages] as in stage_of, kept up. False: that way there is no allowed one. */
static bool complete(const struct bounds *b, uint32_t *stage_of, uint32_t *count)
{
	uint32_t spares = 0;
	for (uint32_t i = 0; i < b->stages; i++)
		if (!fill_to_least(b, stage_of, count, b->steep[i]))
			return false;
	for (uint32_t i = 0; i < b->workers; i++) {
		uint32_t worker = b->order[i];
		if (stage_of[worker] == SKEP_UNDECIDED) {
			stage_of[worker] = roomiest(b, count, worker);
			if (stage_of[worker] != SKEP_SPARE)
				count[stage_of[worker]]++;
		}
		spares += stage_of[worker] == SKEP_SPARE;
	}
	return spares <= b->spares_most;
}

static void place_fixed(const struct bounds *b, uint32_t *stage_of, uint32_t *count)
{
	const uint32_t *fixed = b->problem->fixed;
	memset(count, 0, b->stages * sizeof *count);
	for (uint32_t i = 0; i < b->workers; i++) {
		stage_of[i] = SKEP_UNDECIDED;
		if (!fixed || fixed[i] == SKEP_ANY_STAGE)
			continue;
		stage_of[i] = fixed[i];
		count[fixed[i]]++;
	}
}

void skep_bounds_repair(const struct bounds *b, uint32_t *stage_of, uint32_t *count)
{
	uint32_t spares = 0;
	memset(count, 0, b->stages * sizeof *count);
	for (uint32_t pass = 0; pass < 2; pass++) /* those that are fixed first, so that others make room */
		for (uint32_t i = 0; i < b->workers; i++) {
			const uint32_t *fixed = b->problem->fixed;
			bool is_fixed = fixed && fixed[i] != SKEP_ANY_STAGE;
			uint32_t stage = is_fixed ? fixed[i] : stage_of[i];
			if (is_fixed != (pass == 0))
				continue;
			stage_of[i] = SKEP_UNDECIDED;
			if (stage == SKEP_UNDECIDED || !skep_bounds_may(b, i, stage))
				continue;
			if (stage == SKEP_SPARE ? spares >= b->spares_most : count[stage] >= b->most[stage])
				continue;
			stage_of[i] = stage;
			if (stage == SKEP_SPARE)
				spares++;
			else
				count[stage]++;
		}
	if (complete(b, stage_of, count))
		return;
	place_fixed(b, stage_of, count);
	(void)complete(b, stage_of, count); /* the problem was checked: it can be done */
}

/* ---- checks --------------------------------------------------------------------------------------------------------- */

static size_t scratch_bytes(
	const struct skep_problem *p, void *mem, struct bounds *b, uint32_t **stage_of, uint32_t **count)
{
	struct skep_search_carve c = {mem, 0};
	skep_bounds_init(b, &c, p);
	*stage_of = skep_search_carve(&c, p->workers, sizeof **stage_of);
	*count = skep_search_carve(&c, p->stages, sizeof **count);
	return c.used;
}

size_t skep_problem_scratch_size(const struct skep_problem *problem)
{
	struct bounds b;
	uint32_t *stage_of, *count;
	return scratch_bytes(problem, NULL, &b, &stage_of, &count);
}

/* The workers that can hold the stage, without those that are already counted for a stage that needs less. */
static uint32_t holders(const struct skep_problem *p, uint64_t bytes)
{
	uint32_t found = 0;
	for (uint32_t i = 0; i < p->workers; i++) {
		bool elsewhere = p->fixed && p->fixed[i] != SKEP_ANY_STAGE && need(p, p->fixed[i]) < bytes;
		found += have(p, i) >= bytes && !elsewhere;
	}
	return found;
}

/* What is wrong with memory: the first stage, from the largest need down, that those above it leave too few workers for. */
static struct skep_problem_check check_memory(const struct skep_problem *p, const struct bounds *b)
{
	struct skep_problem_check check = {.fault = SKEP_PROBLEM_FINE};
	uint64_t wanted = 0;
	for (uint32_t i = 0; i < b->stages; i++) {
		check.stage = b->steep[i];
		check.need_bytes = need(p, check.stage);
		wanted += b->least[check.stage];
		check.wanted = (uint32_t)wanted;
		check.found = holders(p, check.need_bytes);
		if (check.found >= wanted)
			continue;
		check.fault = SKEP_PROBLEM_MEMORY;
		for (uint32_t j = b->workers; j-- > 0;) {
			uint64_t bytes = have(p, b->order[j]);
			if (bytes >= check.need_bytes)
				continue;
			if (check.more_bytes == 0) {
				check.more_bytes = check.need_bytes - bytes;
				check.worker = b->order[j];
			}
			if (holders(p, bytes) >= wanted) {
				check.fit_bytes = bytes;
				break;
			}
		}
		return check;
	}
	return check;
}

static struct skep_problem_check check_bounds(const struct skep_problem *p)
{
	uint64_t least = 0;
	for (uint32_t s = 0; s < p->stages; s++) {
		uint32_t low = least_of(p, s), high = most_of(p, s);
		if (low == 0 || low > high)
			return (struct skep_problem_check){
				.fault = SKEP_PROBLEM_BOUNDS, .stage = s, .wanted = low, .found = high};
		least += low;
	}
	uint32_t wanted = least < UINT32_MAX ? (uint32_t)least : UINT32_MAX;
	if (least > p->workers)
		return (struct skep_problem_check){.fault = SKEP_PROBLEM_FEW, .wanted = wanted, .found = p->workers};
	return (struct skep_problem_check){.fault = SKEP_PROBLEM_FINE};
}

static struct skep_problem_check check_fixed(const struct skep_problem *p, uint32_t *count)
{
	struct skep_problem_check check = {.fault = SKEP_PROBLEM_FIXED};
	memset(count, 0, p->stages * sizeof *count);
	for (uint32_t i = 0; p->fixed && i < p->workers; i++) {
		uint32_t stage = p->fixed[i];
		if (stage == SKEP_ANY_STAGE)
			continue;
		check.worker = i;
		check.stage = stage;
		if (stage >= p->stages)
			return check;
		check.need_bytes = need(p, stage);
		check.wanted = most_of(p, stage);
		check.found = ++count[stage];
		if (have(p, i) < check.need_bytes || check.found > check.wanted)
			return check;
	}
	return (struct skep_problem_check){.fault = SKEP_PROBLEM_FINE};
}

struct skep_problem_check skep_problem_check(const struct skep_problem *p, void *scratch)
{
	struct bounds b;
	uint32_t *stage_of, *count;
	if (p->workers == 0 || p->stages == 0 || p->workers > SKEP_ALLOCATE_WORKERS_MAX ||
		p->stages > SKEP_ALLOCATE_STAGES_MAX)
		return (struct skep_problem_check){
			.fault = SKEP_PROBLEM_SIZE, .wanted = p->stages, .found = p->workers};
	struct skep_problem_check check = check_bounds(p);
	if (check.fault != SKEP_PROBLEM_FINE)
		return check;
	(void)scratch_bytes(p, scratch, &b, &stage_of, &count);
	check = check_fixed(p, count);
	if (check.fault == SKEP_PROBLEM_FINE)
		check = check_memory(p, &b);
	if (check.fault != SKEP_PROBLEM_FINE)
		return check;
	place_fixed(&b, stage_of, count);
	if (complete(&b, stage_of, count))
		return (struct skep_problem_check){.fault = SKEP_PROBLEM_FINE};
	check = (struct skep_problem_check){.fault = SKEP_PROBLEM_MANY, .wanted = b.spares_most};
	for (uint32_t i = p->workers; i-- > 0;)
		if (stage_of[i] == SKEP_SPARE) {
			check.worker = i;
			check.found++;
		}
	return check;
}

bool skep_problem_allows(const struct skep_problem *problem, const uint32_t *stage_of, uint32_t *count)
{
	uint64_t room = 0;
	uint32_t spares = 0;
	struct bounds b = {.problem = problem, .workers = problem->workers, .stages = problem->stages};
	memset(count, 0, b.stages * sizeof *count);
	for (uint32_t i = 0; i < b.workers; i++) {
		if ((stage_of[i] != SKEP_SPARE && stage_of[i] >= b.stages) || !skep_bounds_may(&b, i, stage_of[i]))
			return false;
		if (stage_of[i] == SKEP_SPARE)
			spares++;
		else
			count[stage_of[i]]++;
	}
	for (uint32_t s = 0; s < b.stages; s++) {
		if (count[s] < least_of(problem, s) || count[s] > most_of(problem, s))
			return false;
		room += most_of(problem, s);
	}
	uint32_t forced = room < b.workers ? b.workers - (uint32_t)room : 0;
	return spares <= (problem->spares > forced ? problem->spares : forced);
}
