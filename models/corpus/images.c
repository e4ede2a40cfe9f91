/* SPDX-License-Identifier: Apache-2.0
 *
 * images.c - see images.h.
 */
#include "models/corpus/images.h"

#include <assert.h>

#include "models/layers/random.h"

enum { COLOURS = SKEP_RESNET_COLOURS, GRID = 8, CLASS = 0, DOWN, RIGHT, CONTRAST, NOISE };

uint64_t skep_image_key(uint64_t seed, uint32_t split, uint64_t index)
{
	return skep_mix(skep_random_key(seed, SKEP_STREAM_DATA) ^ skep_mix(2 * index + split) ^ UINT64_C(0x696d616765));
}

/* Uniform on [0, n). */
static uint32_t draw(uint64_t key, uint64_t which, uint32_t n)
{
	return (uint32_t)((skep_mix(key + which * UINT64_C(0x9e3779b97f4a7c15)) >> 32) * n >> 32);
}

/* Between two numbers of the grid: the place of the first one, and how far behind it. */
static uint32_t grid_at(uint32_t pixel, uint32_t side, skep_real *ret_part)
{
	const skep_real at = (skep_real)(pixel % side) * (skep_real)GRID / (skep_real)side;
	const uint32_t place = (uint32_t)at;
	*ret_part = at - (skep_real)place;
	return place;
}

static skep_real pattern(skep_real grid[GRID][GRID], uint32_t row, uint32_t column, uint32_t side)
{
	skep_real down, right;
	const uint32_t i = grid_at(row, side, &down), j = grid_at(column, side, &right);
	const uint32_t below = (i + 1) % GRID, beside = (j + 1) % GRID;
	const skep_real above = grid[i][j] + right * (grid[i][beside] - grid[i][j]);
	const skep_real under = grid[below][j] + right * (grid[below][beside] - grid[below][j]);
	return above + down * (under - above);
}

static void make_plane(uint64_t key, uint32_t colour, uint32_t class, uint32_t side, skep_real *ret)
{
	skep_real grid[GRID][GRID];
	const uint64_t of_class = skep_random_key(UINT64_C(0x7061747465726e), class);
	const uint32_t down = draw(key, DOWN, side), right = draw(key, RIGHT, side), pixels = side * side;
	const skep_real contrast = 1 + (skep_real)skep_random_signed(key, CONTRAST) / 2;
	for (uint32_t i = 0; i < GRID * GRID; i++)
		grid[i / GRID][i % GRID] = skep_random_signed(of_class, colour * GRID * GRID + i);
	for (uint32_t i = 0; i < pixels; i++)
		ret[i] = contrast * pattern(grid, i / side + down, i % side + right, side) +
		         (skep_real)skep_random_signed(key, NOISE + colour * pixels + i);
}

int32_t skep_image_make(uint64_t key, uint32_t side, uint32_t classes, skep_real *ret_x)
{
	const uint32_t class = draw(key, CLASS, classes);
	assert(side > 0 && classes > 0);
	for (uint32_t colour = 0; ret_x && colour < COLOURS; colour++)
		make_plane(key, colour, class, side, ret_x + (size_t)colour * side * side);
	return (int32_t) class;
}

int32_t skep_image_read(const unsigned char *record, uint32_t side, skep_real *ret_x)
{
	static const skep_real mean[COLOURS] = {0.4914f, 0.4822f, 0.4465f},
			       deviation[COLOURS] = {0.2470f, 0.2435f, 0.2616f};
	const size_t pixels = (size_t)side * side;
	for (size_t i = 0; ret_x && i < COLOURS * pixels; i++)
		ret_x[i] = ((skep_real)record[1 + i] / 255 - mean[i / pixels]) / deviation[i / pixels];
	return record[0];
}
