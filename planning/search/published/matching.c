/* SPDX-License-Identifier: Apache-2.0
 *
 * matching.c - bottleneck matchings (matching.h).
 */
#include "planning/search/published/matching.h"

#include <string.h>

#include "core/bits.h"

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
