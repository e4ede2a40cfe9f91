/* SPDX-License-Identifier: Apache-2.0
 *
 * convolution.c - see convolution.h.
 */
#include "models/vision/convolution.h"

#include <string.h>

#include "base/process/thread_pool.h"

enum {
	COLUMNS = 1 << 16, /* numbers of the columns that are made at once, but for one row of pixels */
	TOGETHER = 8,      /* channels of a weight's gradient, or a quarter of them */
	QUARTER = 4
};

/* Rows of pixels whose columns are made at once: pieces as equal as can be. */
static size_t rows_at_once(const struct skep_conv *s)
{
	const size_t all = skep_conv_inner(s) * skep_conv_to(s), pieces = (all + COLUMNS - 1) / COLUMNS;
	return pieces < s->to ? (s->to + pieces - 1) / pieces : 1;
}

/* What it reads is its columns. */
static bool is_product(const struct skep_conv *s)
{
	return s->kernel == 1 && s->stride == 1;
}

static size_t planes(const struct skep_conv *s)
{
	return s->in * skep_conv_from(s);
}

size_t skep_convolution_strip(const struct skep_conv *shape)
{
	return planes(shape) + (is_product(shape) ? 0 : skep_conv_inner(shape) * rows_at_once(shape) * shape->to);
}

struct piece { /* of the columns: rows first .. end - 1 of pixels */
	size_t first, end, pixels;
};

static struct piece piece_at(const struct skep_conv *s, size_t first)
{
	const size_t end = first + rows_at_once(s) < s->to ? first + rows_at_once(s) : s->to;
	return (struct piece){first, end, (end - first) * s->to};
}

/* Of a row of pixels that `kx` shifts: the first one that is within the image, and the one behind the last. */
static void within(const struct skep_conv *s, size_t kx, size_t *ret_first, size_t *ret_end)
{
	const size_t pad = s->kernel / 2, stride = s->stride;
	const size_t first = kx < pad ? (pad - kx + stride - 1) / stride : 0;
	const size_t end = s->from + pad > kx ? (s->from + pad - kx - 1) / stride + 1 : 0;
	*ret_end = end < s->to ? end : s->to;
	*ret_first = first < *ret_end ? first : *ret_end;
}

/* One row of pixels of one column. */
SKEP_ANY_WIDTH static void take_pixel_row(const struct skep_conv *s, size_t kx, const skep_real *row, skep_real *ret)
{
	size_t first, end;
	within(s, kx, &first, &end);
	for (size_t x = 0; x < first; x++)
		ret[x] = 0;
	for (size_t x = end; x < s->to; x++)
		ret[x] = 0;
	if (first == end)
		return;
	row += first * s->stride + kx - s->kernel / 2;
	if (s->stride == 1)
		memcpy(ret + first, row, (end - first) * sizeof *ret);
	else
		for (size_t x = first; x < end; x++)
			ret[x] = row[(x - first) * s->stride];
}

SKEP_ANY_WIDTH static void add_pixel_row(const struct skep_conv *s, size_t kx, const skep_real *from, skep_real *row)
{
	size_t first, end;
	within(s, kx, &first, &end);
	if (first == end)
		return;
	row += first * s->stride + kx - s->kernel / 2;
	if (s->stride == 1)
		for (size_t x = first; x < end; x++)
			row[x - first] += from[x];
	else
		for (size_t x = first; x < end; x++)
			row[(x - first) * s->stride] += from[x];
}

/* The row of the image that pixels of row y see through row ky of the kernel; false: it is outside. */
static bool row_of(const struct skep_conv *s, size_t y, size_t ky, size_t *ret)
{
	const size_t at = y * s->stride + ky, pad = s->kernel / 2;
	*ret = at - pad;
	return at >= pad && at < s->from + pad;
}

/* Of a kernel that keeps the side, a column is the plane, shifted: in one piece but for what lies beside the image. */
static bool shifts(const struct skep_conv *s)
{
	return s->stride == 1 && s->from == s->to;
}

/* Pixels first .. end - 1 of the plane are in the column, the first one at `at`; what lies above and below the image is not. */
struct shift {
	size_t first, end, at;
};

static struct shift shift_of(const struct skep_conv *s, struct piece p, size_t k)
{
	const size_t pad = s->kernel / 2, side = s->from, all = side * side;
	const size_t forwards = k / s->kernel * side + k % s->kernel,
		     back = pad * side + pad; /* numbers that it is shifted by */
	const size_t first = p.first * side + forwards, end = p.end * side + forwards;
	struct shift ret = {
		first > back ? first - back : 0, end > back ? end - back : 0, first > back ? 0 : back - first};
	ret.end = ret.end < all ? ret.end : all;
	ret.first = ret.first < ret.end ? ret.first : ret.end;
	return ret;
}

/* What is beside the image, and came from the row above or below, is 0. */
SKEP_ANY_WIDTH static void clear_column_sides(const struct skep_conv *s, size_t rows, size_t k, skep_real *column)
{
	size_t first, end;
	within(s, k % s->kernel, &first, &end);
	for (size_t y = 0; y < rows && end - first < s->to; y++, column += s->to) {
		for (size_t x = 0; x < first; x++)
			column[x] = 0;
		for (size_t x = end; x < s->to; x++)
			column[x] = 0;
	}
}

static void take_shifted(const struct skep_conv *s, struct piece p, size_t k, const skep_real *x, skep_real *ret)
{
	const struct shift shift = shift_of(s, p, k);
	const size_t count = shift.end - shift.first, behind = count > 0 ? shift.at + count : 0;
	if (count > 0) {
		memset(ret, 0, shift.at * sizeof *ret);
		memcpy(ret + shift.at, x + shift.first, count * sizeof *ret);
	}
	memset(ret + behind, 0, (p.pixels - behind) * sizeof *ret);
	clear_column_sides(s, p.end - p.first, k, ret);
}

SKEP_ANY_WIDTH static void add_shifted_plane(
	const struct skep_conv *s, struct piece p, size_t k, skep_real *restrict column, skep_real *restrict x)
{
	const struct shift shift = shift_of(s, p, k);
	const size_t count = shift.end - shift.first;
	clear_column_sides(s, p.end - p.first, k, column);
	for (size_t i = 0; i < count; i++)
		x[shift.first + i] += column[shift.at + i];
}

/* Of so many planes at x, columns[channels k k][pixels]. */
static void make_columns(const struct skep_conv *s, struct piece p, size_t channels, const skep_real *x, skep_real *ret)
{
	const size_t window = (size_t)s->kernel * s->kernel;
	for (size_t i = 0; i < channels * window; i++, ret += p.pixels) {
		const skep_real *plane = x + i / window * skep_conv_from(s);
		const size_t k = i % window;
		for (size_t y = p.first; y < p.end && !shifts(s); y++) {
			skep_real *to = ret + (y - p.first) * s->to;
			size_t row;
			if (row_of(s, y, k / s->kernel, &row))
				take_pixel_row(s, k % s->kernel, plane + row * s->from, to);
			else
				memset(to, 0, s->to * sizeof *to);
		}
		if (shifts(s))
			take_shifted(s, p, k, plane, ret);
	}
}

/* Uses them up. */
static void add_columns(const struct skep_conv *s, struct piece p, skep_real *column, skep_real *x)
{
	const size_t window = (size_t)s->kernel * s->kernel;
	for (size_t i = 0; i < s->in * window; i++, column += p.pixels) {
		skep_real *plane = x + i / window * skep_conv_from(s);
		const size_t k = i % window;
		size_t row;
		for (size_t y = p.first; y < p.end && !shifts(s); y++)
			if (row_of(s, y, k / s->kernel, &row))
				add_pixel_row(s, k % s->kernel, column + (y - p.first) * s->to, plane + row * s->from);
		if (shifts(s))
			add_shifted_plane(s, p, k, column, plane);
	}
}

struct job {
	const struct skep_convolution *c;
	const skep_real *at_out;
	bool adds;
	skep_real *ret;
};

/* What is read of a sample, from channel `first` on; a norm makes it in `room`. */
static const skep_real *read_of(
	const struct skep_convolution *c, size_t sample, size_t first, size_t channels, skep_real *room)
{
	const skep_real *x = c->x + sample * planes(&c->shape) + first * skep_conv_from(&c->shape);
	if (!c->norm)
		return x;
	skep_batch_norm_bend(c->norm, first, channels, x, room);
	return room;
}

static void forward_samples(const void *context, size_t first, size_t end, uint32_t member)
{
	const struct job *job = context;
	const struct skep_convolution *c = job->c;
	const struct skep_conv *s = &c->shape;
	const size_t inner = skep_conv_inner(s), pixels = skep_conv_to(s);
	skep_real *room = c->strips + member * c->strip, *columns = room + planes(s);
	for (size_t i = first; i < end; i++) {
		const skep_real *x = read_of(c, i, 0, s->in, room);
		for (size_t y = 0; y < s->to; y += rows_at_once(s)) {
			const struct piece p = piece_at(s, y);
			if (!is_product(s))
				make_columns(s, p, s->in, x, columns);
			skep_real_product_of(CblasTrans, CblasNoTrans, s->out, p.pixels, inner, 1, c->weight, s->out,
				is_product(s) ? x + y * s->to : columns, is_product(s) ? pixels : p.pixels, 0,
				job->ret + i * s->out * pixels + y * s->to, pixels);
		}
	}
}

void skep_convolution_forward(const struct skep_convolution *c, skep_real *ret)
{
	skep_thread_pool_for(c->thread_pool, c->samples, 1, forward_samples, &(struct job){.c = c, .ret = ret});
}

static void weight_channels(const void *context, size_t first, size_t end, uint32_t member)
{
	const struct job *job = context;
	const struct skep_convolution *c = job->c;
	const struct skep_conv *s = &c->shape;
	const size_t window = (size_t)s->kernel * s->kernel, pixels = skep_conv_to(s), channels = end - first;
	skep_real *room = c->strips + member * c->strip, *columns = room + planes(s);
	for (size_t i = 0; i < c->samples; i++) {
		const skep_real *x = read_of(c, i, first, channels, room);
		for (size_t y = 0; y < s->to; y += rows_at_once(s)) {
			const struct piece p = piece_at(s, y);
			if (!is_product(s))
				make_columns(s, p, channels, x, columns);
			skep_real_product_of(CblasNoTrans, CblasTrans, channels * window, s->out, p.pixels, 1,
				is_product(s) ? x + y * s->to : columns, is_product(s) ? pixels : p.pixels,
				job->at_out + i * s->out * pixels + y * s->to, pixels, 1,
				job->ret + first * window * s->out, s->out);
		}
	}
}

void skep_convolution_weight(const struct skep_convolution *c, const skep_real *at_out, skep_real *sum)
{
	const size_t quarter = (c->shape.in + QUARTER - 1) / QUARTER;
	skep_thread_pool_for(c->thread_pool, c->shape.in, quarter > TOGETHER ? quarter : TOGETHER, weight_channels,
		&(struct job){.c = c, .at_out = at_out, .ret = sum});
}

static void input_samples(const void *context, size_t first, size_t end, uint32_t member)
{
	const struct job *job = context;
	const struct skep_convolution *c = job->c;
	const struct skep_conv *s = &c->shape;
	const size_t inner = skep_conv_inner(s), pixels = skep_conv_to(s);
	skep_real *columns = c->strips + member * c->strip + planes(s);
	for (size_t i = first; i < end; i++) {
		skep_real *ret = job->ret + i * planes(s);
		if (!job->adds && !is_product(s))
			memset(ret, 0, planes(s) * sizeof *ret);
		for (size_t y = 0; y < s->to; y += rows_at_once(s)) {
			const struct piece p = piece_at(s, y);
			skep_real_product_of(CblasNoTrans, CblasNoTrans, inner, p.pixels, s->out, 1, c->weight, s->out,
				job->at_out + i * s->out * pixels + y * s->to, pixels,
				is_product(s) && job->adds ? 1 : 0, is_product(s) ? ret + y * s->to : columns,
				is_product(s) ? pixels : p.pixels);
			if (!is_product(s))
				add_columns(s, p, columns, ret);
		}
	}
}

void skep_convolution_input(const struct skep_convolution *c, const skep_real *at_out, bool adds, skep_real *ret)
{
	skep_thread_pool_for(c->thread_pool, c->samples, 1, input_samples,
		&(struct job){.c = c, .at_out = at_out, .adds = adds, .ret = ret});
}
