/* SPDX-License-Identifier: Apache-2.0
 *
 * norm.cu - LayerNorm and RMSNorm; the formulas are those of models/layers/norm.c. A warp has a row. Sums over rows, for the
 * gradients of weight and bias, are made in two steps: of slabs of rows, and of the slabs.
 */
#include "models/cuda/portable.cuh"

#define ROWS 4 /* warps of a block */

/* FP32: also in fp32, or in that alone, y being NULL. */
template <bool FP32>
__global__ void norm_forward(size_t rows, size_t width, const float *x, const float *weight, const float *bias,
	float epsilon, float *kept, bf16 *y, float *wide_y, bool measures)
{
	const size_t row = (size_t)blockIdx.x * ROWS + threadIdx.x / WARP;
	const unsigned lane = threadIdx.x % WARP;
	if (row >= rows)
		return;
	x += row * width;
	if (FP32)
		wide_y += row * width;
	if (!FP32 || y)
		y += row * width;
	if (measures) {
		float sum = 0, squares = 0;
		for (size_t j = lane; j < width && bias; j += WARP)
			sum += x[j];
		const float mean = warp_sum(sum) / (float)width;
		for (size_t j = lane; j < width; j += WARP)
			squares += (x[j] - mean) * (x[j] - mean);
		const float scale = rsqrtf(warp_sum(squares) / (float)width + epsilon);
		if (lane == 0) {
			kept[2 * row] = scale;
			kept[2 * row + 1] = mean * scale;
		}
		__syncwarp();
	}
	const float scale = kept[2 * row], offset = kept[2 * row + 1];
	for (size_t j = lane; j < width; j += WARP) {
		const float value = (x[j] * scale - offset) * weight[j] + (bias ? bias[j] : 0);
		if (FP32)
			wide_y[j] = value;
		if (!FP32 || y)
			y[j] = narrow(value);
	}
}

/* `sum` may be dy where that is fp32: a thread reads and writes the same numbers. */
template <typename Number>
__global__ void norm_backward(size_t rows, size_t width, const float *x, const float *weight, bool centred,
	const float *kept, const Number *dy, bool fresh, float *sum, bf16 *narrowed)
{
	const size_t row = (size_t)blockIdx.x * ROWS + threadIdx.x / WARP, at = row * width;
	const unsigned lane = threadIdx.x % WARP;
	if (row >= rows)
		return;
	const float scale = kept[2 * row], offset = kept[2 * row + 1];
	float mean = 0, along = 0;
	for (size_t j = lane; j < width; j += WARP) {
		const float g = wide(dy[at + j]) * weight[j];
		mean += g;
		along += g * (x[at + j] * scale - offset);
	}
	along = warp_sum(along) / (float)width;
	mean = centred ? warp_sum(mean) / (float)width : 0;
	for (size_t j = lane; j < width; j += WARP) {
		const float g = wide(dy[at + j]) * weight[j], z = x[at + j] * scale - offset;
		const float total = (fresh ? 0 : sum[at + j]) + scale * (g - mean - z * along);
		sum[at + j] = total;
		narrowed[at + j] = narrow(total);
	}
}

/* ---- sums over rows ------------------------------------------------------------------------------------------------- */

#define COLUMNS 32 /* of a block, whose threads are [SLAB_ROWS][COLUMNS] */
#define SLAB_ROWS 8

/* partial[slab][2][width]: of the slab's rows, the sums of dy, and of dy z where x is given. Of dy a row is followed by the next
 * one `stride` numbers on. */
template <typename Number>
__global__ void sum_slab(size_t rows, size_t width, size_t stride, size_t slab, const Number *dy, const float *x,
	const float *kept, float *partial)
{
	float *room = (float *)shared_memory();
	const unsigned column = threadIdx.x % COLUMNS, part = threadIdx.x / COLUMNS;
	const size_t j = (size_t)blockIdx.x * COLUMNS + column, first = blockIdx.y * slab;
	const size_t end = first + slab < rows ? first + slab : rows;
	float plain = 0, scaled = 0;
	for (size_t i = first + part; i < end && j < width; i += SLAB_ROWS) {
		const float g = wide(dy[i * stride + j]);
		plain += g;
		if (x)
			scaled += g * (x[i * width + j] * kept[2 * i] - kept[2 * i + 1]);
	}
	room[threadIdx.x] = plain;
	room[SLAB_ROWS * COLUMNS + threadIdx.x] = scaled;
	__syncthreads();
	if (part > 0 || j >= width)
		return;
	for (unsigned other = 1; other < SLAB_ROWS; other++) {
		plain += room[other * COLUMNS + column];
		scaled += room[(SLAB_ROWS + other) * COLUMNS + column];
	}
	partial[blockIdx.y * 2 * width + j] = plain;
	partial[(blockIdx.y * 2 + 1) * width + j] = scaled;
}

__global__ void sum_slabs(unsigned slabs, size_t width, const float *partial, float *plain, float *scaled)
{
	const size_t j = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
	float p = 0, s = 0;
	if (j >= width)
		return;
	for (unsigned i = 0; i < slabs; i++) {
		p += partial[i * 2 * width + j];
		s += partial[(i * 2 + 1) * width + j];
	}
	if (plain)
		plain[j] += p;
	if (scaled)
		scaled[j] += s;
}

template <typename Number>
static void sum_rows(struct skep_cuda_queue *queue, size_t rows, size_t width, size_t stride, const Number *dy,
	const float *x, const float *kept, float *plain, float *scaled)
{
	size_t slab = (rows + SKEP_CUDA_SLABS - 1) / SKEP_CUDA_SLABS;
	slab = slab < SLAB_ROWS ? SLAB_ROWS : slab;
	const unsigned slabs = blocks_for(rows, (unsigned)slab);
	if (2 * width * slabs > queue->partial_floats)
		note_error(queue, cudaErrorInvalidValue, "sums over more columns than there is room for");
	else
		launch(queue, "sums of slabs", sum_slab<Number>, dim3(blocks_for(width, COLUMNS), slabs),
			dim3(COLUMNS * SLAB_ROWS), 2 * COLUMNS * SLAB_ROWS * sizeof(float), rows, width, stride, slab,
			dy, x, kept, queue->partial);
	launch(queue, "sums of rows", sum_slabs, dim3(blocks_for(width, 128)), dim3(128), 0, slabs, width,
		queue->partial, plain, scaled);
}

/* ---- asked for ------------------------------------------------------------------------------------------------------ */

static void apply(struct skep_cuda_queue *queue, const struct skep_cuda_norm *norm, const float *x, float *kept,
	skep_bf16 *ret_y, bool measures)
{
	launch(queue, "norm", norm_forward<false>, dim3(blocks_for(norm->rows, ROWS)), dim3(ROWS * WARP), 0, norm->rows,
		norm->width, x, norm->weight, norm->bias, norm->epsilon, kept, halves(ret_y), (float *)NULL, measures);
}

void skep_cuda_norm_forward_wide(struct skep_cuda_queue *queue, const struct skep_cuda_norm *norm, const float *x,
	float *ret_kept, skep_bf16 *ret_y, float *ret_wide)
{
	launch(queue, "norm", norm_forward<true>, dim3(blocks_for(norm->rows, ROWS)), dim3(ROWS * WARP), 0, norm->rows,
		norm->width, x, norm->weight, norm->bias, norm->epsilon, ret_kept, halves(ret_y), ret_wide, true);
}

void skep_cuda_norm_forward(struct skep_cuda_queue *queue, const struct skep_cuda_norm *norm, const float *x,
	float *ret_kept, skep_bf16 *ret_y)
{
	apply(queue, norm, x, ret_kept, ret_y, true);
}

void skep_cuda_norm_apply(struct skep_cuda_queue *queue, const struct skep_cuda_norm *norm, const float *x,
	const float *kept, skep_bf16 *ret_y)
{
	apply(queue, norm, x, const_cast<float *>(kept), ret_y, false);
}

void skep_cuda_norm_backward(struct skep_cuda_queue *queue, const struct skep_cuda_norm *norm, const float *x,
	const float *kept, const skep_bf16 *y_gradient, float *weight_gradient, float *bias_gradient, bool fresh,
	float *sum, skep_bf16 *ret_sum)
{
	if (weight_gradient)
		sum_rows(queue, norm->rows, norm->width, norm->width, halves(y_gradient), x, kept, bias_gradient,
			weight_gradient);
	launch(queue, "norm backwards", norm_backward<bf16>, dim3(blocks_for(norm->rows, ROWS)), dim3(ROWS * WARP), 0,
		norm->rows, norm->width, x, norm->weight, norm->bias != NULL, kept, halves(y_gradient), fresh, sum,
		halves(ret_sum));
}

void skep_cuda_norm_backward_wide(struct skep_cuda_queue *queue, const struct skep_cuda_norm *norm, const float *x,
	const float *kept, float *gradient, float *weight_gradient, float *bias_gradient, skep_bf16 *ret_sum)
{
	const float *dy = gradient;
	if (weight_gradient)
		sum_rows(queue, norm->rows, norm->width, norm->width, dy, x, kept, bias_gradient, weight_gradient);
	launch(queue, "norm backwards", norm_backward<float>, dim3(blocks_for(norm->rows, ROWS)), dim3(ROWS * WARP), 0,
		norm->rows, norm->width, x, norm->weight, norm->bias != NULL, kept, dy, true, gradient,
		halves(ret_sum));
}

void skep_cuda_add_rows(struct skep_cuda_queue *queue, size_t rows, size_t width, const skep_bf16 *x, float *sum)
{
	skep_cuda_add_strided_rows(queue, rows, width, width, x, sum);
}

void skep_cuda_add_strided_rows(
	struct skep_cuda_queue *queue, size_t rows, size_t width, size_t stride, const skep_bf16 *x, float *sum)
{
	sum_rows(queue, rows, width, stride, halves(x), (const float *)NULL, (const float *)NULL, sum, (float *)NULL);
}

void skep_cuda_add_wide_rows(struct skep_cuda_queue *queue, size_t rows, size_t width, const float *x, float *sum)
{
	sum_rows(queue, rows, width, width, x, (const float *)NULL, (const float *)NULL, sum, (float *)NULL);
}
