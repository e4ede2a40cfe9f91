/* SPDX-License-Identifier: Apache-2.0
 *
 * dtfm.c - the cost by pairwise delays and bandwidths (dtfm.h). A cost depends on who is together, bit by bit, and not on the
 * way there: sums run over members in ascending order, and what a change alters is computed anew.
 */
#include "planning/search/published/dtfm.h"

#include <assert.h>
#include <string.h>

#include "core/bits.h"
#include "planning/search/published/dtfm_state.h"

/* ---- parts ---------------------------------------------------------------------------------------------------------- */

void skep_dtfm_members(const struct state *d, uint32_t stage, uint32_t *ret)
{
	const uint64_t *set = d->member + (size_t)stage * d->words;
	uint32_t count = 0;
	for (uint32_t w = 0; w < d->words; w++)
		for (uint64_t rest = set[w]; rest != 0; rest &= rest - 1)
			ret[count++] = w * 64 + skep_bits_lowest(rest);
	assert(count == d->size);
}

static double group_cost(struct state *d, uint32_t stage)
{
	double largest = 0;
	skep_dtfm_members(d, stage, d->list);
	for (uint32_t i = 0; i < d->size; i++) {
		const double *row = d->together + (size_t)d->list[i] * d->workers;
		double sum = 0;
		for (uint32_t j = 0; j < d->size; j++)
			sum += j == i ? 0 : row[d->list[j]];
		largest = sum > largest ? sum : largest;
	}
	return largest;
}

double skep_dtfm_bottleneck(struct state *d, uint32_t a, uint32_t b)
{
	uint32_t *row = d->list, *column = d->list + d->size;
	skep_dtfm_members(d, a, row);
	skep_dtfm_members(d, b, column);
	for (uint32_t i = 0; i < d->size; i++)
		for (uint32_t j = 0; j < d->size; j++)
			d->matching.edge[(size_t)i * d->size + j] = d->along[(size_t)row[i] * d->workers + column[j]];
	return skep_matching_solve(&d->matching, d->size);
}

static void set_edge(struct state *d, double *edge, uint32_t a, uint32_t b)
{
	edge[(size_t)a * d->stages + b] = edge[(size_t)b * d->stages + a] = skep_dtfm_bottleneck(d, a, b);
}

static double total(const struct state *d, double path_s, uint32_t a, uint32_t b, const double group_s[2])
{
	double largest = 0;
	for (uint32_t s = 0; s < d->stages; s++) {
		double group = s == a ? group_s[0] : s == b ? group_s[1] : d->group_s[s];
		largest = group > largest ? group : largest;
	}
	return largest + 2 * path_s;
}

/* ---- the cost ------------------------------------------------------------------------------------------------------- */

double skep_dtfm_whole(void *self, const uint32_t *stage_of)
{
	struct state *d = self;
	memcpy(d->stage_of, stage_of, d->workers * sizeof *stage_of);
	skep_bits_clear(d->member, d->stages * d->words);
	for (uint32_t i = 0; i < d->workers; i++) {
		assert(stage_of[i] < d->stages);
		skep_bits_add(d->member + (size_t)stage_of[i] * d->words, i);
	}
	for (uint32_t s = 0; s < d->stages; s++) {
		d->group_s[s] = group_cost(d, s);
		for (uint32_t t = 0; t < s; t++)
			set_edge(d, d->edge, s, t);
	}
	d->path_s = skep_path_solve(&d->path, d->edge);
	d->total_s = total(d, d->path_s, SKEP_SPARE, SKEP_SPARE, NULL);
	d->asked = (struct skep_change){0, 0, 0};
	return d->total_s;
}

static void toggle(struct state *d, uint32_t stage, uint32_t worker)
{
	d->member[(size_t)stage * d->words + worker / 64] ^= (uint64_t)1 << worker % 64;
}

static void exchange(struct state *d, const struct skep_change *change)
{
	uint32_t a = d->stage_of[change->worker], b = d->stage_of[change->other];
	toggle(d, a, change->worker);
	toggle(d, a, change->other);
	toggle(d, b, change->worker);
	toggle(d, b, change->other);
	d->stage_of[change->worker] = b;
	d->stage_of[change->other] = a;
}

static double change(void *self, const struct skep_change *change)
{
	struct state *d = self;
	assert(change->other != SKEP_NO_WORKER); /* groups keep their size */
	uint32_t a = d->stage_of[change->worker], b = d->stage_of[change->other];
	size_t edges = (size_t)d->stages * d->stages * sizeof *d->edge;
	d->asked = *change;
	memcpy(d->next_edge, d->edge, edges);
	d->next_path_s = d->path_s;
	d->next_total_s = d->total_s;
	if (a == b)
		return d->total_s;
	exchange(d, change);
	d->next_group[0] = group_cost(d, a);
	d->next_group[1] = group_cost(d, b);
	set_edge(d, d->next_edge, a, b);
	for (uint32_t s = 0; s < d->stages; s++)
		if (s != a && s != b) {
			set_edge(d, d->next_edge, a, s);
			set_edge(d, d->next_edge, b, s);
		}
	exchange(d, change);
	if (memcmp(d->edge, d->next_edge, edges) != 0)
		d->next_path_s = skep_path_solve(&d->path, d->next_edge);
	d->next_total_s = total(d, d->next_path_s, a, b, d->next_group);
	return d->next_total_s;
}

static void keep(void *self)
{
	struct state *d = self;
	uint32_t a = d->stage_of[d->asked.worker], b = d->stage_of[d->asked.other];
	double *swapped = d->edge;
	if (a == b)
		return;
	exchange(d, &d->asked);
	d->group_s[a] = d->next_group[0];
	d->group_s[b] = d->next_group[1];
	d->edge = d->next_edge;
	d->next_edge = swapped;
	d->path_s = d->next_path_s;
	d->total_s = d->next_total_s;
}

/* Who is decided and together has sums that only grow; and each edge of the path is at least the shortest there is. */
static double bound(void *self, const uint32_t *stage_of)
{
	struct state *d = self;
	double largest = 0;
	for (uint32_t i = 0; i < d->workers; i++) {
		const double *row = d->together + (size_t)i * d->workers;
		double sum = 0;
		for (uint32_t j = 0; stage_of[i] != SKEP_UNDECIDED && j < d->workers; j++)
			sum += j != i && stage_of[j] == stage_of[i] ? row[j] : 0;
		largest = sum > largest ? sum : largest;
	}
	return largest + 2 * (d->stages - 1) * d->least_along;
}

static void arrange(void *self, uint32_t *stage_of)
{
	struct state *d = self;
	(void)skep_path_solve(&d->path, d->edge);
	for (uint32_t s = 0; s < d->stages; s++)
		d->path.trial[d->path.order[s]] = s;
	for (uint32_t i = 0; i < d->workers; i++)
		stage_of[i] = d->path.trial[stage_of[i]];
}

/* ---- beginning ------------------------------------------------------------------------------------------------------ */

static void carve_all(struct state *d, struct skep_search_carve *c, const struct skep_dtfm *dtfm)
{
	d->workers = dtfm->links->workers;
	d->stages = dtfm->stages;
	assert(d->stages > 0 && d->workers % d->stages == 0 && d->workers > 0);
	d->size = d->workers / d->stages;
	d->words = skep_bits_words(d->workers);
	size_t pairs = (size_t)d->workers * d->workers, edges = (size_t)d->stages * d->stages;
	d->together = skep_search_carve(c, pairs, sizeof *d->together);
	d->along = skep_search_carve(c, pairs, sizeof *d->along);
	d->member = skep_search_carve(c, (size_t)d->stages * d->words, sizeof *d->member);
	d->stage_of = skep_search_carve(c, d->workers, sizeof *d->stage_of);
	d->group_s = skep_search_carve(c, d->stages, sizeof *d->group_s);
	d->edge = skep_search_carve(c, edges, sizeof *d->edge);
	d->next_edge = skep_search_carve(c, edges, sizeof *d->next_edge);
	d->list = skep_search_carve(c, 2 * d->size, sizeof *d->list);
	skep_matching_init(&d->matching, c, d->size);
	skep_path_init(&d->path, c, d->stages);
	skep_dtfm_grid_init(d, c);
}

size_t skep_dtfm_size(const struct skep_dtfm *dtfm)
{
	struct state d;
	struct skep_search_carve c = {NULL, 0};
	skep_search_carve(&c, 1, sizeof d);
	carve_all(&d, &c, dtfm);
	return c.used;
}

/* a + bytes / b, also where one of them is 0 or without limit. */
static double transfer_s(const struct skep_links *l, uint32_t from, uint32_t to, double bytes)
{
	double delay = l->delay_s[(size_t)from * l->workers + to], rate = l->rate_Bps[(size_t)from * l->workers + to];
	if (!(rate > 0))
		return SKEP_NEVER;
	return rate < SKEP_NEVER ? delay + bytes / rate : delay;
}

const struct skep_objective *skep_dtfm_init(void *mem, const struct skep_dtfm *dtfm)
{
	struct skep_search_carve c = {mem, 0};
	struct state *d = skep_search_carve(&c, 1, sizeof *d);
	const struct skep_links *l = dtfm->links;
	memset(d, 0, sizeof *d);
	carve_all(d, &c, dtfm);
	d->least_along = SKEP_NEVER;
	for (uint32_t i = 0; i < d->workers; i++)
		for (uint32_t j = 0; j < d->workers; j++) {
			size_t at = (size_t)i * d->workers + j;
			double there = transfer_s(l, i, j, dtfm->activation_bytes);
			double back = transfer_s(l, j, i, dtfm->activation_bytes);
			d->together[at] = i == j ? 0 : 2 * transfer_s(l, i, j, dtfm->gradient_bytes / d->size);
			d->along[at] = i == j ? 0 : there > back ? there : back;
			d->least_along = i != j && d->along[at] < d->least_along ? d->along[at] : d->least_along;
		}
	d->least_along = d->stages > 1 ? d->least_along : 0;
	memset(d->edge, 0,
		(size_t)d->stages * d->stages * sizeof *d->edge); /* also what no two stages have, for it is compared */
	d->objective = (struct skep_objective){.self = d,
		.whole = skep_dtfm_whole,
		.change = change,
		.keep = keep,
		.bound = bound,
		.alike = true,
		.arrange = arrange,
		.sketch = &d->grid.objective};
	return &d->objective;
}

const double *skep_dtfm_together(const struct skep_objective *cost)
{
	return ((const struct state *)cost->self)->together;
}

const double *skep_dtfm_along(const struct skep_objective *cost)
{
	return ((const struct state *)cost->self)->along;
}
