/* SPDX-License-Identifier: Apache-2.0
 *
 * exact.c - every allocation there is, or those that branch and bound cannot rule out (Land, Doig 1960).
 *
 * Each worker in turn, kind by kind, is given a stage. Two symmetries are broken, so that of many allocations that must cost
 * the same one is asked: workers of one kind have stages in ascending order (spares last), and where the cost cannot tell
 * stages apart a stage is not begun before the one with the number below. Every allocation is equivalent to at least one that
 * keeps both rules. For mean and worst each is counted as often as it stands for others: with n[k][s] workers of kind k in
 * stage s, the product over k of n[k]! / prod over s of n[k][s]!, and where stages are alike S! / prod over k of f[k]!, f[k]
 * the stages that kind k is the first in; of these f[k]! the rules leave all.
 *
 * Without pruning (there are at most as many allocations as the budget has evaluations) the mean and the worst are known too.
 * Otherwise what bound() says cannot beat the best so far is left out, and only the best is known; if the budget ends before
 * the tree does, not even that.
 */
#include <string.h>

#include "planning/search/hunt.h"

struct tree {
	struct hunt *h;
	uint32_t *order;          /* [workers] kind by kind */
	uint32_t *stage_of;       /* [workers] */
	uint32_t *begun;          /* [workers + 1] stages that are not empty before this depth */
	uint32_t *same;           /* [stages + 1] scratch of weights */
	uint32_t *count;          /* [stages] */
	uint32_t spares, missing; /* missing: workers that stages still lack for their least */
	bool prune;
	double weight, sum, worst;
};

double skep_search_exact_count(const struct hunt *h)
{
	double count = 1;
	uint32_t placed = 0;
	if (!h->bounds.rigid || h->bounds.spares_most > 0) {
		uint32_t places = h->stages + (h->bounds.spares_most > 0);
		for (uint32_t i = 0; i < h->workers && count < 1e300; i++)
			count *= places;
		return count;
	}
	for (uint32_t s = 0; s < h->stages; s++)
		for (uint32_t i = 1; i <= h->bounds.most[s] && count < 1e300; i++)
			count = count * ++placed / i;
	for (uint32_t s = 2; h->alike && s <= h->stages; s++)
		count /= s;
	return count;
}

double skep_exact_count(const struct skep_problem *p)
{
	double count = 1, places = p->stages + (p->spares > 0);
	for (uint32_t i = 0; i < p->workers && count < 1e300; i++) {
		double before = 0; /* of its kind */
		for (uint32_t j = 0; p->kind && j < i; j++)
			before += p->kind[j] == p->kind[i];
		count *= (before + places) / (before + 1);
	}
	return count;
}

static double factorial(uint32_t n)
{
	double product = 1;
	for (uint32_t i = 2; i <= n; i++)
		product *= i;
	return product;
}

static uint32_t slot(const struct tree *t, uint32_t stage)
{
	return stage == SKEP_SPARE ? t->h->stages : stage;
}

/* How many allocations this one stands for. */
static double weight(const struct tree *t)
{
	const struct hunt *h = t->h;
	double product = h->alike ? factorial(h->stages) : 1;
	for (uint32_t i = 0; i < h->workers;) {
		uint32_t kind = h->kind[t->order[i]], of_kind = 0, first = t->begun[i];
		memset(t->same, 0, (h->stages + 1) * sizeof *t->same);
		for (; i < h->workers && h->kind[t->order[i]] == kind; i++, of_kind++)
			product = product * (of_kind + 1) / ++t->same[slot(t, t->stage_of[t->order[i]])];
		if (h->alike)
			product /= factorial(t->begun[i] - first);
	}
	return product;
}

static void leaf(struct tree *t)
{
	double cost = skep_search_state_begin(t->h, t->stage_of);
	if (t->prune || !(cost < SKEP_NEVER))
		return;
	double times = weight(t);
	t->weight += times;
	t->sum += times * cost;
	t->worst = cost > t->worst ? cost : t->worst;
}

static bool fits(const struct tree *t, uint32_t depth, uint32_t worker, uint32_t stage)
{
	const struct hunt *h = t->h;
	if (depth > 0 && h->kind[t->order[depth - 1]] == h->kind[worker]) {
		uint32_t before = t->stage_of[t->order[depth - 1]];
		if (slot(t, stage) < slot(t, before))
			return false;
	}
	if (stage == SKEP_SPARE)
		return t->spares < h->bounds.spares_most && skep_bounds_may(&h->bounds, worker, stage);
	if (h->alike && stage > t->begun[depth])
		return false;
	return t->count[stage] < h->bounds.most[stage] && skep_bounds_may(&h->bounds, worker, stage);
}

static void put(struct tree *t, uint32_t depth, uint32_t stage)
{
	t->stage_of[t->order[depth]] = stage;
	t->begun[depth + 1] = t->begun[depth];
	if (stage == SKEP_SPARE) {
		t->spares++;
		return;
	}
	t->missing -= t->count[stage] < t->h->bounds.least[stage];
	t->begun[depth + 1] += t->count[stage]++ == 0;
}

static void take_back(struct tree *t, uint32_t depth)
{
	uint32_t stage = t->stage_of[t->order[depth]];
	t->stage_of[t->order[depth]] = SKEP_UNDECIDED;
	if (stage == SKEP_SPARE) {
		t->spares--;
		return;
	}
	t->count[stage]--;
	t->missing += t->count[stage] < t->h->bounds.least[stage];
}

static bool hopeless(struct tree *t, uint32_t depth)
{
	const struct hunt *h = t->h;
	if (t->missing > h->workers - depth - 1)
		return true;
	return t->prune && h->evaluations > 0 && depth + 1 < h->workers &&
	       h->cost->bound(h->cost->self, t->stage_of) >= h->best;
}

/* The next stage after this one in the order in which they are tried: 0 .. stages - 1, then SKEP_SPARE. */
static uint32_t next_stage(const struct tree *t, uint32_t stage)
{
	return stage + 1 == t->h->stages ? SKEP_SPARE : stage + 1;
}

/* The tree without recursion: `depth` workers have a stage; stage is what the next one is to try. */
static void grow(struct tree *t)
{
	uint32_t depth = 0, stage = 0;
	bool tried_all = false;
	while (!skep_search_state_over(t->h) || t->h->evaluations == 0) {
		uint32_t worker = t->order[depth];
		if (tried_all) {
			if (depth == 0)
				return;
			depth--;
			stage = t->stage_of[t->order[depth]];
			take_back(t, depth);
			tried_all = stage == SKEP_SPARE;
			stage = next_stage(t, stage);
			continue;
		}
		if (fits(t, depth, worker, stage)) {
			put(t, depth, stage);
			if (!hopeless(t, depth) && depth + 1 < t->h->workers) {
				depth++;
				stage = 0;
				continue;
			}
			if (depth + 1 == t->h->workers && t->missing == 0)
				leaf(t);
			take_back(t, depth);
		}
		tried_all = stage == SKEP_SPARE;
		stage = next_stage(t, stage);
	}
}

static void order_by_kind(struct tree *t)
{
	uint32_t at = 0;
	for (uint32_t k = 0; k < t->h->kinds; k++)
		for (uint32_t i = 0; i < t->h->workers; i++)
			if (t->h->kind[i] == k)
				t->order[at++] = i;
}

void skep_search_exact(struct hunt *h, struct skep_search_carve *c, struct skep_found *ret)
{
	struct tree t = {.h = h, .worst = -SKEP_NEVER};
	t.order = skep_search_carve(c, h->workers, sizeof *t.order);
	t.stage_of = skep_search_carve(c, h->workers, sizeof *t.stage_of);
	t.begun = skep_search_carve(c, h->workers + 1, sizeof *t.begun);
	t.same = skep_search_carve(c, h->stages + 1, sizeof *t.same);
	t.count = skep_search_carve(c, h->stages, sizeof *t.count);
	if (!c->mem)
		return;
	order_by_kind(&t);
	memset(t.count, 0, h->stages * sizeof *t.count);
	t.begun[0] = 0;
	for (uint32_t s = 0; s < h->stages; s++)
		t.missing += h->bounds.least[s];
	for (uint32_t i = 0; i < h->workers; i++)
		t.stage_of[i] = SKEP_UNDECIDED;
	t.prune = h->cost->bound && skep_search_exact_count(h) > (double)h->search->budget.evaluations;
	grow(&t);
	ret->optimal = t.stage_of[t.order[0]] == SKEP_UNDECIDED; /* the tree was taken down to its root */
	if (ret->optimal && !t.prune && t.weight > 0) {
		ret->mean = t.sum / t.weight;
		ret->worst = t.worst;
	}
}
