/* SPDX-License-Identifier: Apache-2.0
 *
 * matching.c - see matching.h.
 */
#include "planning/search/published/matching.h"

#include <string.h>

#include "core/bits.h"
#include "planning/search/published/dtfm.h"

#define FIRST_TRIES 8u

/* ---- the shortest open path through all groups ------------------------------------------------------------------- */

void skep_path_init(struct path *p, struct skep_search_carve *c, uint32_t stages)
{
	p->stages = stages;
	size_t states = stages <= SKEP_DTFM_EXACT_STAGES ? ((size_t)1 << stages) * stages : 0;
	p->reach = skep_search_carve(c, states, sizeof *p->reach);
	p->from = skep_search_carve(c, states, sizeof *p->from);
	p->order = skep_search_carve(c, stages, sizeof *p->order);
	p->trial = skep_search_carve(c, stages, sizeof *p->trial);
}

/* reach[set * S + last]: the shortest path through the set that ends in `last`. */
static void extend(struct path *p, const double *edge, uint32_t set, uint32_t last)
{
	uint32_t stages = p->stages, rest = set & ~(1u << last), best = last;
	double least = SKEP_NEVER;
	for (uint32_t i = 0; i < stages; i++) {
		if (!(rest >> i & 1))
			continue;
		double length = p->reach[(size_t)rest * stages + i] + edge[i * stages + last];
		if (length < least || best == last) {
			least = length;
			best = i;
		}
	}
	p->reach[(size_t)set * stages + last] = rest == 0 ? 0 : least;
	p->from[(size_t)set * stages + last] = (uint8_t)best;
}

static double exact(struct path *p, const double *edge)
{
	uint32_t stages = p->stages, all = (1u << stages) - 1, last = 0;
	for (uint32_t set = 1; set <= all; set++)
		for (uint32_t i = 0; i < stages; i++)
			if (set >> i & 1)
				extend(p, edge, set, i);
	for (uint32_t i = 1; i < stages; i++)
		if (p->reach[(size_t)all * stages + i] < p->reach[(size_t)all * stages + last])
			last = i;
	double length = p->reach[(size_t)all * stages + last];
	for (uint32_t set = all, i = stages; i-- > 0;) {
		uint32_t before = p->from[(size_t)set * stages + last];
		p->order[i] = last;
		set &= ~(1u << last);
		last = before;
	}
	return length;
}

/* ---- more groups than that ------------------------------------------------------------------------------------------ */

static double length_of(const uint32_t *order, uint32_t stages, const double *edge)
{
	double length = 0;
	for (uint32_t i = 0; i + 1 < stages; i++)
		length += edge[(size_t)order[i] * stages + order[i + 1]];
	return length;
}

static void nearest_next(uint32_t *order, uint32_t stages, uint32_t first, const double *edge)
{
	for (uint32_t i = 0; i < stages; i++)
		order[i] = i;
	order[0] = first;
	order[first] = 0;
	for (uint32_t i = 1; i < stages; i++) {
		uint32_t best = i;
		for (uint32_t j = i + 1; j < stages; j++) {
			double a = edge[(size_t)order[i - 1] * stages + order[j]];
			double b = edge[(size_t)order[i - 1] * stages + order[best]];
			if (a < b || (!(b < a) && order[j] < order[best]))
				best = j;
		}
		uint32_t swapped = order[i];
		order[i] = order[best];
		order[best] = swapped;
	}
}

static void reverse(uint32_t *order, uint32_t first, uint32_t last)
{
	for (; first < last; first++, last--) {
		uint32_t swapped = order[first];
		order[first] = order[last];
		order[last] = swapped;
	}
}

/* The edge between places i and j of the path; none beyond its ends. */
static double between(const uint32_t *order, uint32_t stages, const double *edge, uint32_t i, uint32_t j)
{
	return i >= stages || j >= stages ? 0 : edge[(size_t)order[i] * stages + order[j]];
}

static bool reverse_some(uint32_t *order, uint32_t stages, const double *edge)
{
	bool shorter = false;
	for (uint32_t i = 0; i + 1 < stages; i++)
		for (uint32_t j = i + 1; j < stages; j++) {
			double old = between(order, stages, edge, i - 1, i) + between(order, stages, edge, j, j + 1);
			double new = between(order, stages, edge, i - 1, j) + between(order, stages, edge, i, j + 1);
			if (!(new < old *(1 - 1e-12))) /* or rounding could go on for ever */
				continue;
			reverse(order, i, j);
			shorter = true;
		}
	return shorter;
}

static bool move_some(uint32_t *order, uint32_t stages, const double *edge)
{
	bool shorter = false;
	double length = length_of(order, stages, edge);
	for (uint32_t i = 0; i < stages; i++)
		for (uint32_t j = 0; j < stages; j++) {
			uint32_t low = i < j ? i : j, high = i < j ? j : i;
			if (i == j)
				continue;
			/* Moved by a turn: the stretch reversed, then all of it but the one that moves reversed again. */
			reverse(order, low, high);
			reverse(order, i < j ? low : low + 1, i < j ? high - 1 : high);
			double moved = length_of(order, stages, edge);
			if (moved < length * (1 - 1e-12)) {
				length = moved;
				shorter = true;
				continue;
			}
			reverse(order, i < j ? low : low + 1, i < j ? high - 1 : high);
			reverse(order, low, high);
		}
	return shorter;
}

static double approximate(struct path *p, const double *edge)
{
	double best = SKEP_NEVER;
	uint32_t tries = p->stages < FIRST_TRIES ? p->stages : FIRST_TRIES;
	for (uint32_t t = 0; t < tries; t++) {
		nearest_next(p->trial, p->stages, t * p->stages / tries, edge);
		while (reverse_some(p->trial, p->stages, edge) ||
			(p->stages <= 64 && move_some(p->trial, p->stages, edge)))
			;
		double length = length_of(p->trial, p->stages, edge);
		if (!(length < best) && t > 0)
			continue;
		best = length;
		memcpy(p->order, p->trial, p->stages * sizeof *p->order);
	}
	return best;
}

double skep_path_solve(struct path *p, const double *edge)
{
	return p->stages <= SKEP_DTFM_EXACT_STAGES ? exact(p, edge) : approximate(p, edge);
}

/* ---- bottleneck matchings --------------------------------------------------------------------------------------- */

void skep_matching_init(struct matching *m, struct skep_search_carve *c, uint32_t size)
{
	m->size = size;
	m->words = skep_bits_words(size);
	m->edge = skep_search_carve(c, (size_t)size * size, sizeof *m->edge);
	m->near = skep_search_carve(c, (size_t)size * m->words, sizeof *m->near);
	m->left = skep_search_carve(c, m->words, sizeof *m->left);
	m->queue = skep_search_carve(c, size, sizeof *m->queue);
	m->parent = skep_search_carve(c, size, sizeof *m->parent);
	m->row_of = skep_search_carve(c, size, sizeof *m->row_of);
	m->column_of = skep_search_carve(c, size, sizeof *m->column_of);
}

/* The least threshold with which every row and every column has an edge. */
static double least_threshold(const struct matching *m, uint32_t size)
{
	double threshold = 0;
	for (uint32_t i = 0; i < size; i++) {
		double row = SKEP_NEVER, column = SKEP_NEVER;
		for (uint32_t j = 0; j < size; j++) {
			double across = m->edge[(size_t)i * size + j], down = m->edge[(size_t)j * size + i];
			row = across < row ? across : row;
			column = down < column ? down : column;
		}
		threshold = row > threshold ? row : threshold;
		threshold = column > threshold ? column : threshold;
	}
	return threshold;
}

static void find_near(struct matching *m, uint32_t size, double threshold)
{
	for (uint32_t i = 0; i < size; i++) {
		uint64_t *near = m->near + (size_t)i * m->words;
		skep_bits_clear(near, m->words);
		for (uint32_t j = 0; j < size; j++)
			near[j / 64] |= (uint64_t)(m->edge[(size_t)i * size + j] <= threshold) << j % 64;
	}
}

static void flip(struct matching *m, uint32_t column)
{
	for (;;) {
		uint32_t row = m->parent[column], next = m->column_of[row];
		m->row_of[column] = row;
		m->column_of[row] = column;
		if (next == SKEP_NO_WORKER)
			return;
		column = next;
	}
}

/* Matches one more row. Returns 0, or how many rows were reached in vain; they are in the queue. */
static uint32_t augment(struct matching *m, uint32_t size, uint32_t root)
{
	uint32_t tail = 1;
	m->queue[0] = root;
	for (uint32_t w = 0; w < m->words; w++)
		m->left[w] = ~(uint64_t)0;
	for (uint32_t head = 0; head < tail; head++) {
		const uint64_t *near = m->near + (size_t)m->queue[head] * m->words;
		for (uint32_t w = 0; w < m->words; w++)
			for (uint64_t fresh = near[w] & m->left[w]; fresh != 0; fresh &= fresh - 1) {
				uint32_t column = w * 64 + skep_bits_lowest(fresh);
				m->left[w] &= ~((uint64_t)1 << column % 64);
				m->parent[column] = m->queue[head];
				if (m->row_of[column] == SKEP_NO_WORKER) {
					flip(m, column);
					return 0;
				}
				m->queue[tail++] = m->row_of[column];
			}
	}
	(void)size;
	return tail;
}

/* The least edge from a row that was reached to a column that was not. */
static double next_threshold(const struct matching *m, uint32_t size, uint32_t reached)
{
	double threshold = SKEP_NEVER;
	for (uint32_t i = 0; i < reached; i++)
		for (uint32_t j = 0; j < size; j++) {
			double edge = m->edge[(size_t)m->queue[i] * size + j];
			if (edge < threshold && skep_bits_has(m->left, j))
				threshold = edge;
		}
	return threshold;
}

double skep_matching_solve(struct matching *m, uint32_t size)
{
	double threshold = least_threshold(m, size);
	m->words = skep_bits_words(size);
	find_near(m, size, threshold);
	for (uint32_t i = 0; i < size; i++)
		m->row_of[i] = m->column_of[i] = SKEP_NO_WORKER;
	for (uint32_t i = 0; i < size; i++) {
		uint32_t reached = augment(m, size, i);
		while (reached > 0) {
			threshold = next_threshold(m, size, reached);
			find_near(m, size, threshold);
			reached = augment(m, size, i);
		}
	}
	return threshold;
}
