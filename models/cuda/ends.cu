/* SPDX-License-Identifier: Apache-2.0
 *
 * ends.cu - where a model begins and ends: rows of the embedding's table, and the cross-entropy of the next token, whose gradient
 * takes the place of the scores. Rows that meet in the table are added by one block in the order of tokens, not by atomics.
 */
#include "models/cuda/portable.cuh"

#define THREADS 256

__global__ void embed(
	uint32_t sequence, size_t width, const int32_t *id, const float *table, const float *positions, float *out)
{
	const size_t token = blockIdx.x, sample = token / sequence, place = token % sequence;
	const float *row = table + (size_t)id[sample * (sequence + 1) + place] * width;
	for (size_t j = threadIdx.x; j < width; j += blockDim.x)
		out[token * width + j] = row[j] + (positions ? positions[place * width + j] : 0);
}

__global__ void add_groups(size_t width, const int32_t *count, const int32_t *id, const int32_t *start,
	const int32_t *order, const float *gradient, float *table)
{
	if ((int32_t)blockIdx.x >= *count)
		return;
	const int32_t first = start[blockIdx.x], end = start[blockIdx.x + 1];
	float *row = table + (size_t)id[blockIdx.x] * width;
	for (size_t j = threadIdx.x; j < width; j += blockDim.x) {
		float sum = 0;
		for (int32_t i = first; i < end; i++)
			sum += gradient[(size_t)order[i] * width + j];
		row[j] += sum;
	}
}

__global__ void add_positions(uint32_t samples, size_t numbers, const float *gradient, float *positions)
{
	const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
	float sum = 0;
	if (i >= numbers)
		return;
	for (uint32_t s = 0; s < samples; s++)
		sum += gradient[s * numbers + i];
	positions[i] += sum;
}

__global__ void gather(size_t width, const int32_t *place, const float *x, bf16 *out)
{
	const size_t row = blockIdx.x;
	for (size_t j = threadIdx.x; j < width; j += blockDim.x)
		out[row * width + j] = narrow(x[(size_t)place[row] * width + j]);
}

__global__ void scatter(size_t width, const int32_t *place, const float *x, float *out)
{
	const size_t row = blockIdx.x;
	for (size_t j = threadIdx.x; j < width; j += blockDim.x)
		out[(size_t)place[row] * width + j] = x[row * width + j];
}

#define SCORES 8 /* scores that a thread reads at once */

__device__ static inline void read_scores(const bf16 *from, float x[SCORES])
{
	const uint4 words = *reinterpret_cast<const uint4 *>(from);
	const unsigned word[SCORES / 2] = {words.x, words.y, words.z, words.w};
#pragma unroll
	for (unsigned e = 0; e < SCORES; e++)
		x[e] = __uint_as_float(e % 2 ? word[e / 2] & 0xffff0000u : word[e / 2] << 16);
}

__device__ static inline void write_scores(const float x[SCORES], bf16 *to)
{
	*reinterpret_cast<uint4 *>(to) = {join(x[0], x[1]), join(x[2], x[3]), join(x[4], x[5]), join(x[6], x[7])};
}

/* A block has a token. */
__global__ void surprise(uint32_t sequence, uint32_t vocabulary, size_t stride, float tokens, const int32_t *id,
	bf16 *score, float *loss)
{
	float *room = (float *)shared_memory();
	const size_t token = blockIdx.x, sample = token / sequence;
	const uint32_t target = (uint32_t)id[sample * (sequence + 1) + token % sequence + 1];
	bf16 *row = score + token * stride;
	float most = -INFINITY, sum = 0;
	for (size_t j = threadIdx.x * SCORES; j < stride; j += blockDim.x * SCORES) {
		float x[SCORES], higher = most;
		read_scores(row + j, x);
#pragma unroll
		for (unsigned e = 0; e < SCORES; e++) {
			x[e] = j + e < vocabulary ? x[e] : -INFINITY;
			higher = fmaxf(higher, x[e]);
		}
		if (higher > most)
			sum *= expf(most - higher);
		most = higher;
#pragma unroll
		for (unsigned e = 0; e < SCORES; e++)
			sum += expf(x[e] - most);
	}
	const float top = block_most(most, room);
	sum = block_sum(most > -INFINITY ? sum * expf(most - top) : 0.0f, room);
	const float wanted = wide(row[target]);
	__syncthreads();
	const float scale = 1 / sum, each = 1 / tokens;
	for (size_t j = threadIdx.x * SCORES; j < stride; j += blockDim.x * SCORES) {
		float x[SCORES];
		read_scores(row + j, x);
#pragma unroll
		for (unsigned e = 0; e < SCORES; e++) {
			const float part = j + e < vocabulary ? expf(x[e] - top) * scale : 0;
			x[e] = (part - (j + e == target ? 1 : 0)) * each;
		}
		write_scores(x, row + j);
	}
	if (threadIdx.x == 0)
		loss[token] = logf(sum) + (top - wanted);
}

/* ---- asked for ------------------------------------------------------------------------------------------------------ */

void skep_cuda_embed(struct skep_cuda_queue *queue, uint32_t samples, uint32_t sequence, size_t width,
	const int32_t *id, const float *table, const float *positions, float *ret)
{
	launch(queue, "embedding", embed, dim3(samples * sequence), dim3(THREADS), 0, sequence, width, id, table,
		positions, ret);
}

void skep_cuda_embed_backward(struct skep_cuda_queue *queue, uint32_t samples, uint32_t sequence, size_t width,
	const struct skep_cuda_groups *groups, const float *gradient, float *table, float *positions)
{
	const size_t numbers = sequence * width;
	launch(queue, "embedding backwards", add_groups, dim3(groups->most), dim3(THREADS), 0, width, groups->count,
		groups->id, groups->start, groups->order, gradient, table);
	if (positions)
		launch(queue, "positions backwards", add_positions, dim3(blocks_for(numbers, THREADS)), dim3(THREADS),
			0, samples, numbers, gradient, positions);
}

void skep_cuda_gather(
	struct skep_cuda_queue *queue, size_t rows, size_t width, const int32_t *place, const float *x, skep_bf16 *ret)
{
	launch(queue, "gathering", gather, dim3((unsigned)rows), dim3(THREADS), 0, width, place, x, halves(ret));
}

void skep_cuda_scatter(
	struct skep_cuda_queue *queue, size_t rows, size_t width, const int32_t *place, const float *x, float *ret)
{
	launch(queue, "scattering", scatter, dim3((unsigned)rows), dim3(THREADS), 0, width, place, x, ret);
}

void skep_cuda_surprise(struct skep_cuda_queue *queue, uint32_t samples, uint32_t sequence, uint32_t vocabulary,
	size_t stride, const int32_t *id, skep_bf16 *score, float *ret_loss)
{
	launch(queue, "cross-entropy", surprise, dim3(samples * sequence), dim3(THREADS), WARP * sizeof(float),
		sequence, vocabulary, stride, (float)samples * (float)sequence, id, halves(score), ret_loss);
}
