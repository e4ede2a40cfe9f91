/* SPDX-License-Identifier: Apache-2.0
 *
 * methods.c - the methods by name, and the one call that runs any of them (methods.h).
 */
#include "planning/search/methods.h"

#include <assert.h>
#include <string.h>

#include "planning/search/hunt.h"

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

static void run(struct hunt *h, struct skep_search_carve *c, struct skep_found *ret)
{
	switch (h->search->method) {
	case SKEP_METHOD_RANDOM:
		skep_search_random(h, c);
		break;
	case SKEP_METHOD_CONTIGUOUS:
		skep_search_contiguous(h, c);
		break;
	case SKEP_METHOD_STRIDED:
		skep_search_strided(h, c);
		break;
	case SKEP_METHOD_GREEDY:
		skep_search_greedy(h, c);
		break;
	case SKEP_METHOD_EXACT:
		skep_search_exact(h, c, ret);
		break;
	case SKEP_METHOD_GENETIC:
		skep_search_genetic(h, c);
		break;
	case SKEP_METHOD_ANNEAL:
		skep_search_anneal(h, c);
		break;
	case SKEP_METHOD_RELAXED:
		skep_search_relaxed(h, c);
		break;
	default:
		skep_search_portfolio(h, c, ret);
	}
}

size_t skep_search_size(const struct skep_search *search)
{
	struct skep_search_carve c = {NULL, 0};
	struct hunt h;
	struct skep_found found;
	skep_search_state_init(&h, &c, search);
	run(&h, &c, &found);
	return c.used;
}

struct skep_found skep_search_run(const struct skep_search *search, void *mem, uint32_t *ret_stage_of)
{
	struct skep_search_carve c = {mem, 0};
	struct hunt h;
	struct skep_found found = {.mean = __builtin_nan(""), .worst = __builtin_nan("")};
	assert(mem);
	skep_search_state_init(&h, &c, search);
	run(&h, &c, &found);
	found.cost = h.best;
	found.evaluations = h.evaluations;
	found.steps = h.sketched;
	found.by = h.by;
	memcpy(ret_stage_of, h.best_of, h.workers * sizeof *ret_stage_of);
	if (h.alike && h.cost->arrange && h.best < SKEP_NEVER) {
		h.cost->whole(h.cost->self, ret_stage_of);
		h.cost->arrange(h.cost->self, ret_stage_of);
	}
	return found;
}
