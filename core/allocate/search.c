/* SPDX-License-Identifier: Apache-2.0
 *
 * search.c - the methods by name, and the one call that runs any of them (search.h).
 */
#include "core/allocate/search.h"

#include <assert.h>
#include <string.h>

#include "core/allocate/hunt.h"

static const char *const names[SKEP_METHODS] = {
	[SKEP_METHOD_RANDOM] = "random",
	[SKEP_METHOD_CONTIGUOUS] = "contiguous",
	[SKEP_METHOD_STRIDED] = "strided",
	[SKEP_METHOD_GREEDY] = "greedy",
	[SKEP_METHOD_EXACT] = "exact",
	[SKEP_METHOD_GENETIC] = "genetic",
	[SKEP_METHOD_ANNEAL] = "anneal",
	[SKEP_METHOD_RELAXED] = "relaxed",
	[SKEP_METHOD_PORTFOLIO] = "portfolio",
};

static bool same(const char *a, const char *b)
{
	while (*a == *b && *a != '\0') {
		a++;
		b++;
	}
	return *a == *b;
}

const char *skep_method_name(enum skep_method method)
{
	assert(method < SKEP_METHODS);
	return names[method];
}

enum skep_method skep_method_named(const char *name)
{
	for (uint32_t i = 0; i < SKEP_METHODS; i++)
		if (same(names[i], name))
			return (enum skep_method)i;
	return SKEP_METHODS;
}

struct skep_objective skep_objective_function(double (*whole)(void *self, const uint32_t *stage_of), void *self)
{
	return (struct skep_objective){.self = self, .whole = whole};
}

static void run(struct hunt *h, struct carve *c, struct skep_found *ret)
{
	switch (h->search->method) {
	case SKEP_METHOD_RANDOM:
		search_random(h, c);
		break;
	case SKEP_METHOD_CONTIGUOUS:
		search_contiguous(h, c);
		break;
	case SKEP_METHOD_STRIDED:
		search_strided(h, c);
		break;
	case SKEP_METHOD_GREEDY:
		search_greedy(h, c);
		break;
	case SKEP_METHOD_EXACT:
		search_exact(h, c, ret);
		break;
	case SKEP_METHOD_GENETIC:
		search_genetic(h, c);
		break;
	case SKEP_METHOD_ANNEAL:
		search_anneal(h, c);
		break;
	case SKEP_METHOD_RELAXED:
		search_relaxed(h, c);
		break;
	default:
		search_portfolio(h, c, ret);
	}
}

size_t skep_search_size(const struct skep_search *search)
{
	struct carve c = {NULL, 0};
	struct hunt h;
	struct skep_found found;
	hunt_init(&h, &c, search);
	run(&h, &c, &found);
	return c.used;
}

struct skep_found skep_search_run(const struct skep_search *search, void *mem, uint32_t *ret_stage_of)
{
	struct carve c = {mem, 0};
	struct hunt h;
	struct skep_found found = {.mean = __builtin_nan(""), .worst = __builtin_nan("")};
	assert(mem);
	hunt_init(&h, &c, search);
	run(&h, &c, &found);
	found.cost = h.best;
	found.evaluations = h.evaluations;
	found.steps = h.sketched;
	found.exhausted = hunt_over(&h);
	found.by = h.by;
	memcpy(ret_stage_of, h.best_of, h.workers * sizeof *ret_stage_of);
	if (h.alike && h.cost->arrange && h.best < SKEP_NEVER) {
		h.cost->whole(h.cost->self, ret_stage_of);
		h.cost->arrange(h.cost->self, ret_stage_of);
	}
	return found;
}
