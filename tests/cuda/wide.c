/* SPDX-License-Identifier: Apache-2.0
 *
 * wide.c - see wide.h.
 */
#include "tests/cuda/wide.h"

#include <assert.h>
#include <stdlib.h>

#include "models/layers/feed.h"
#include "models/layers/norm.h"

static double *zeros(size_t n)
{
	double *ret = calloc(n, sizeof *ret);
	assert(ret);
	return ret;
}

/* Forwards in both widths and in fp32 alone, backwards in place. */
void check_norm_wide(struct arrays *all)
{
	enum { ROWS = 37, WIDTH = 100, N = ROWS * WIDTH };
	struct array x = array_random(all, N, false, 2), weight = array_random(all, WIDTH, false, 1),
		     bias = array_random(all, WIDTH, false, 1), kept = array_of(all, 2 * ROWS, false, 7),
		     half = array_of(all, N, true, 7), fp32 = array_of(all, N, false, 7),
		     alone = array_of(all, N, false, 7), gradient = array_random(all, N, false, 1),
		     dw = array_random(all, WIDTH, false, 1), db = array_random(all, WIDTH, false, 1);
	const struct skep_norm norm = {ROWS, WIDTH, weight.host, bias.host, 1e-5, NULL};
	const struct skep_cuda_norm of = {ROWS, WIDTH, floats_of(&weight), floats_of(&bias), 1e-5f};
	double *want_kept = zeros(2 * ROWS), *want = zeros(N), *sum = zeros(N);
	skep_norm_measure(&norm, x.host, want_kept);
	skep_norm_apply(&norm, x.host, want_kept, want);
	skep_cuda_norm_forward_wide(
		all->queue, &of, floats_of(&x), floats_of(&kept), halves_of(&half), floats_of(&fp32));
	skep_cuda_norm_forward_wide(all->queue, &of, floats_of(&x), floats_of(&kept), NULL, floats_of(&alone));
	array_near(all, &kept, want_kept, 1e-5, "norm in both widths: kept");
	array_near(all, &half, want, 1e-5, "norm in both widths: bf16");
	array_near(all, &fp32, want, 1e-6, "norm in both widths: fp32");
	array_near(all, &alone, want, 1e-6, "norm in fp32 alone");
	skep_norm_backward(&norm, x.host, want_kept, gradient.host, dw.host, db.host, sum);
	skep_cuda_norm_backward_wide(all->queue, &of, floats_of(&x), floats_of(&kept), floats_of(&gradient),
		floats_of(&dw), floats_of(&db), halves_of(&half));
	array_near(all, &gradient, sum, 1e-5, "norm backwards in place");
	array_near(all, &half, sum, 1e-5, "norm backwards in place, rounded");
	array_near(all, &dw, dw.host, 1e-5, "norm backwards in place: weight");
	array_near(all, &db, db.host, 1e-5, "norm backwards in place: bias");
	free(want_kept);
	free(want);
	free(sum);
}

/* In fp32: gelu by erf, backwards where the gradient is; sums of rows, with room behind each of them or none; rows that are
 * gathered and go back. */
void check_wide(struct arrays *all)
{
	enum { ROWS = 19, WIDTH = 71, STRIDE = 80, N = ROWS * WIDTH, PLACES = 5 };
	const int32_t place[PLACES] = {3, 18, 0, 7, 11};
	const int32_t *at = array_integers(all, PLACES, place);
	struct array in = array_random(all, N, false, 4), out = array_of(all, N, false, 7),
		     gradient = array_random(all, N, false, 1), sum = array_random(all, WIDTH, false, 1),
		     strided = array_random(all, ROWS * STRIDE, true, 1), few = array_of(all, PLACES * WIDTH, true, 7),
		     some = array_random(all, PLACES * WIDTH, false, 1);
	double *value = zeros(N), *back = zeros(N);
	skep_gelu_erf_forward(ROWS, WIDTH, in.host, value);
	skep_cuda_wide_gelu_erf_forward(all->queue, N, floats_of(&in), floats_of(&out));
	array_near(all, &out, value, 1e-6, "gelu by erf in fp32");
	skep_cuda_add_wide_rows(all->queue, ROWS, WIDTH, floats_of(&gradient), floats_of(&sum));
	skep_real_add_rows(ROWS, WIDTH, gradient.host, sum.host);
	for (size_t i = 0; i < ROWS; i++)
		skep_real_add_rows(1, WIDTH, strided.host + i * STRIDE, sum.host);
	skep_cuda_add_strided_rows(all->queue, ROWS, WIDTH, STRIDE, halves_of(&strided), floats_of(&sum));
	array_near(all, &sum, sum.host, 1e-5, "sums of rows in fp32, and with a stride");
	skep_gelu_erf_backward(ROWS, WIDTH, in.host, gradient.host, value, back);
	skep_cuda_wide_gelu_erf_backward(all->queue, N, floats_of(&in), floats_of(&gradient), floats_of(&gradient));
	array_near(all, &gradient, back, 1e-6, "gelu by erf backwards in fp32");
	skep_cuda_gather(all->queue, PLACES, WIDTH, at, floats_of(&in), halves_of(&few));
	skep_cuda_scatter(all->queue, PLACES, WIDTH, at, floats_of(&some), floats_of(&in));
	for (size_t i = 0; i < PLACES * WIDTH; i++) {
		value[i] = in.host[(size_t)place[i / WIDTH] * WIDTH + i % WIDTH];
		in.host[(size_t)place[i / WIDTH] * WIDTH + i % WIDTH] = some.host[i];
	}
	array_near(all, &few, value, 0, "rows that are gathered");
	array_near(all, &in, in.host, 0, "rows that go back");
	struct array x = array_random(all, N, true, 4), dy = array_random(all, N, true, 1),
		     y = array_of(all, N, true, 7);
	skep_gelu_erf_forward(ROWS, WIDTH, x.host, value);
	skep_cuda_gelu_erf_forward(all->queue, N, halves_of(&x), halves_of(&y));
	array_near(all, &y, value, 1e-6, "gelu by erf");
	skep_gelu_erf_backward(ROWS, WIDTH, x.host, dy.host, value, back);
	skep_cuda_gelu_erf_backward(all->queue, N, halves_of(&x), halves_of(&dy), halves_of(&y));
	array_near(all, &y, back, 1e-6, "gelu by erf backwards");
	free(value);
	free(back);
}
