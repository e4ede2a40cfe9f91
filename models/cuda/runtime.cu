/* SPDX-License-Identifier: Apache-2.0
 *
 * runtime.cu - see runtime.h. Any thread may call these functions: each call sets its GPU first, since CUDA keeps the
 * current GPU per thread.
 */
#include <stdio.h>
#include <stdlib.h>

#include "models/cuda/portable.cuh"

uint32_t skep_cuda_count(struct skep_diag *reterr)
{
	int count = 0;
	cudaError_t failed = cudaGetDeviceCount(&count);
	if (failed == cudaErrorInsufficientDriver)
		skep_fail(reterr, "this machine has no driver for CUDA 13, or an older one: install NVIDIA's driver, or use "
			"--device cpu");
	else if (failed != cudaSuccess || count <= 0)
		skep_fail(reterr, "CUDA finds no GPU on this machine (%s): use --device cpu",
			cudaGetErrorString(failed));
	return failed == cudaSuccess && count > 0 ? (uint32_t)count : 0;
}

void skep_cuda_describe(uint32_t ordinal, char *ret_name, size_t name_size, double *ret_memory_bytes)
{
	struct cudaDeviceProp facts;
	bool told = cudaGetDeviceProperties(&facts, (int)ordinal) == cudaSuccess;
	snprintf(ret_name, name_size, "%s", told ? facts.name : "");
	*ret_memory_bytes = told ? (double)facts.totalGlobalMem : 0;
}

static struct skep_cuda_queue *fail(struct skep_cuda_queue *queue)
{
	skep_cuda_queue_destroy(queue);
	return NULL;
}

struct skep_cuda_queue *skep_cuda_queue_create(uint32_t ordinal, bool products, struct skep_diag *reterr)
{
	struct cudaDeviceProp facts;
	struct skep_cuda_queue *queue = (struct skep_cuda_queue *)calloc(1, sizeof *queue);
	cudaError_t failed = queue ? cudaSetDevice((int)ordinal) : cudaErrorMemoryAllocation;
	if (failed == cudaSuccess)
		failed = cudaGetDeviceProperties(&facts, (int)ordinal);
	if (failed == cudaSuccess && facts.major < 8) {
		skep_fail(reterr, "GPU %u, a %s, is of compute capability %d.%d; bf16 needs 8.0: use --device cpu", ordinal,
			facts.name, facts.major, facts.minor);
		return fail(queue);
	}
	if (failed == cudaSuccess)
		failed = cudaStreamCreateWithFlags(&queue->stream, cudaStreamNonBlocking);
	if (failed == cudaSuccess)
		failed = cudaEventCreateWithFlags(&queue->event, cudaEventDisableTiming);
	if (failed != cudaSuccess) {
		skep_fail(reterr, "GPU %u cannot be used: %s", ordinal, cudaGetErrorString(failed));
		return fail(queue);
	}
	queue->ordinal = (int)ordinal;
	if (products) {
		queue->lt = skep_lt_create(reterr);
		if (!queue->lt)
			return fail(queue);
	}
	return queue;
}

void skep_cuda_queue_destroy(struct skep_cuda_queue *queue)
{
	if (!queue)
		return;
	cudaSetDevice(queue->ordinal);
	if (queue->event)
		cudaEventDestroy(queue->event);
	if (queue->stream)
		cudaStreamDestroy(queue->stream);
	skep_lt_destroy(queue->lt);
	free(queue);
}

void skep_cuda_queue_set_partial(struct skep_cuda_queue *queue, float *partial, size_t floats)
{
	queue->partial = partial;
	queue->partial_floats = floats;
}

void *skep_cuda_take(struct skep_cuda_queue *queue, enum skep_memory_side side, size_t bytes)
{
	void *memory = NULL;
	cudaSetDevice(queue->ordinal);
	if (side == SKEP_MEMORY_DEVICE)
		return cudaMalloc(&memory, bytes) == cudaSuccess ? memory : NULL;
	return cudaHostAlloc(&memory, bytes, cudaHostAllocDefault) == cudaSuccess ? memory : NULL;
}

void skep_cuda_give(struct skep_cuda_queue *queue, enum skep_memory_side side, void *memory)
{
	cudaSetDevice(queue->ordinal);
	if (side == SKEP_MEMORY_DEVICE) {
		cudaDeviceSynchronize();
		cudaFree(memory);
	} else {
		cudaFreeHost(memory);
	}
}

void skep_cuda_copy(struct skep_cuda_queue *queue, void *to, const void *from, size_t bytes)
{
	cudaSetDevice(queue->ordinal);
	note_error(queue, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, queue->stream), "a copy");
}

void skep_cuda_clear(struct skep_cuda_queue *queue, void *memory, size_t bytes)
{
	cudaSetDevice(queue->ordinal);
	note_error(queue, cudaMemsetAsync(memory, 0, bytes, queue->stream), "clearing");
}

void skep_cuda_follow(struct skep_cuda_queue *queue, struct skep_cuda_queue *first)
{
	cudaSetDevice(queue->ordinal);
	note_error(queue, cudaEventRecord(first->event, first->stream), "an event");
	note_error(queue, cudaStreamWaitEvent(queue->stream, first->event, 0), "following");
}

bool skep_cuda_wait(struct skep_cuda_queue *queue, char *why, size_t why_size)
{
	cudaSetDevice(queue->ordinal);
	note_error(queue, cudaStreamSynchronize(queue->stream), "what was asked for");
	cudaError_t error = queue->error;
	queue->error = cudaSuccess;
	if (error != cudaSuccess)
		snprintf(why, why_size, "GPU %d: %s: %s", queue->ordinal, queue->what, cudaGetErrorString(error));
	return error == cudaSuccess;
}

void skep_cuda_settle(struct skep_cuda_queue *queue)
{
	cudaSetDevice(queue->ordinal);
	cudaStreamSynchronize(queue->stream);
}
