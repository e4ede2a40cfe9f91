/* SPDX-License-Identifier: Apache-2.0
 *
 * dtfm_fixture.h - pools for the tests of planning/search/, and the cost of dtfm.h once more, as slow and plain as it can be: all
 * pairings of two groups, all orders of the groups. Shares no code with core/.
 */
#pragma once

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "planning/search/published/dtfm.h"

struct pool {
	struct skep_links links;
	struct skep_dtfm dtfm;
	void *mem;
	const struct skep_objective *cost;
};

static inline uint32_t pool_draw(uint64_t *state, uint32_t n)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33) % n;
}

/* Links drawn: delays to 100 ms, rates from 0.1 to 10 Gbit/s, some alike so that ties occur; symmetric or not. */
static inline struct pool pool_make(uint32_t workers, uint32_t stages, uint64_t seed, bool symmetric)
{
	size_t pairs = (size_t)workers * workers;
	double *delay = calloc(pairs, sizeof *delay), *rate = calloc(pairs, sizeof *rate);
	for (uint32_t i = 0; i < workers; i++)
		for (uint32_t j = 0; j < workers; j++) {
			bool mirror = symmetric && j < i;
			delay[i * workers + j] = mirror ? delay[j * workers + i] : pool_draw(&seed, 20) * 0.005;
			rate[i * workers + j] = mirror ? rate[j * workers + i] : 1e8 / 8 * (1 + pool_draw(&seed, 100));
		}
	struct pool pool = {.links = {workers, delay, rate}};
	pool.dtfm = (struct skep_dtfm){NULL, stages, 0.25e9, 0.1e9};
	return pool;
}

static inline void pool_cost(struct pool *pool)
{
	pool->dtfm.links = &pool->links;
	pool->mem = malloc(skep_dtfm_size(&pool->dtfm));
	pool->cost = skep_dtfm_init(pool->mem, &pool->dtfm);
}

static inline void pool_finish(struct pool *pool)
{
	free((void *)pool->links.delay_s);
	free((void *)pool->links.rate_Bps);
	free(pool->mem);
}

/* ---- the cost, plainly ---------------------------------------------------------------------------------------------- */

static inline double plain_transfer(const struct pool *p, uint32_t i, uint32_t j, double bytes)
{
	return p->links.delay_s[i * p->links.workers + j] + bytes / p->links.rate_Bps[i * p->links.workers + j];
}

static inline double plain_edge(const struct pool *p, uint32_t i, uint32_t j)
{
	return fmax(
		plain_transfer(p, i, j, p->dtfm.activation_bytes), plain_transfer(p, j, i, p->dtfm.activation_bytes));
}

static inline double plain_pairings(
	const struct pool *p, const uint32_t *a, const uint32_t *b, uint32_t size, uint32_t at, uint32_t used)
{
	double best = INFINITY;
	if (at == size)
		return 0;
	for (uint32_t j = 0; j < size; j++)
		if (!(used >> j & 1)) {
			double rest = plain_pairings(p, a, b, size, at + 1, used | 1u << j);
			best = fmin(best, fmax(plain_edge(p, a[at], b[j]), rest));
		}
	return best;
}

static inline double plain_paths(const double edge[16][16], uint32_t stages, uint32_t last, uint32_t used)
{
	double best = INFINITY;
	if (used == (1u << stages) - 1)
		return 0;
	for (uint32_t s = 0; s < stages; s++)
		if (!(used >> s & 1)) {
			double step = used == 0 ? 0 : edge[last][s];
			best = fmin(best, step + plain_paths(edge, stages, s, used | 1u << s));
		}
	return best;
}

static inline double plain_cost(const struct pool *p, const uint32_t *stage_of)
{
	uint32_t stages = p->dtfm.stages, size = p->links.workers / stages, group[16][16], count[16] = {0};
	double edge[16][16] = {{0}}, data = 0;
	for (uint32_t i = 0; i < p->links.workers; i++)
		group[stage_of[i]][count[stage_of[i]]++] = i;
	for (uint32_t s = 0; s < stages; s++) {
		assert(count[s] == size);
		for (uint32_t i = 0; i < size; i++) {
			double sum = 0;
			for (uint32_t j = 0; j < size; j++)
				if (j != i)
					sum += 2 * plain_transfer(
							   p, group[s][i], group[s][j], p->dtfm.gradient_bytes / size);
			data = fmax(data, sum);
		}
		for (uint32_t t = 0; t < s; t++)
			edge[s][t] = edge[t][s] = plain_pairings(p, group[s], group[t], size, 0, 0);
	}
	return data + 2 * plain_paths((const double(*)[16])edge, stages, 0, 0);
}
