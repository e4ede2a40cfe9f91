/* SPDX-License-Identifier: Apache-2.0
 *
 * backend_cpu.c - the host as a device: the calling thread does every operation before the function returns, in memory
 * of the C library. With several threads all queues of the device are one thread pool (thread_pool.h). Passes and steps
 * share their loops out to it; the arithmetic of reductions does not, since it waits for the network and runs beside
 * passes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/process/thread_pool.h"
#include "models/device/backend.h"
#include "models/device/device_cpu.h"
#include "models/stage/stage_weights.h"

enum { ALIGNMENT = 64 };

static uint32_t count(struct skep_diag *reterr)
{
	(void)reterr;
	return UINT32_MAX; /* of those that share the host */
}

/* As Linux tells it: the line "model name" of the first processor. */
static void describe(uint32_t ordinal, char *ret_name, size_t name_size, double *ret_memory_bytes)
{
	char line[256];
	FILE *file = fopen("/proc/cpuinfo", "r");
	(void)ordinal;
	ret_name[0] = '\0';
	*ret_memory_bytes = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
	while (file && fgets(line, sizeof line, file)) {
		const char *colon = strncmp(line, "model name", 10) == 0 ? strchr(line, ':') : NULL;
		if (!colon)
			continue;
		colon += 1 + strspn(colon + 1, " \t");
		snprintf(ret_name, name_size, "%.*s", (int)strcspn(colon, "\n"), colon);
		break;
	}
	if (file)
		fclose(file);
}

static void *take(void *context, enum skep_memory_side side, size_t bytes)
{
	(void)context;
	(void)side;
	return aligned_alloc(ALIGNMENT, bytes);
}

static void give(void *context, enum skep_memory_side side, void *memory)
{
	(void)context;
	(void)side;
	free(memory);
}

static bool create(const struct skep_device_place *place, const struct skep_training *training,
	void *ret_queue[SKEP_LANES], struct skep_memory_source *ret_source, struct skep_diag *reterr)
{
	struct skep_thread_pool *thread_pool = NULL;
	(void)training;
	skep_cpu_init();
	if (place->threads > 0 && !skep_cpu_reserve(place->threads, reterr))
		return false;
	if (place->threads > 1) {
		thread_pool = skep_thread_pool_create(place->threads);
		if (!thread_pool)
			return skep_fail(reterr, "%u threads are not to be had: lower cluster.threads", place->threads);
	}
	for (int lane = 0; lane < SKEP_LANES; lane++)
		ret_queue[lane] = thread_pool;
	*ret_source = (struct skep_memory_source){.take = take, .give = give};
	return true;
}

static void destroy(void *queue[SKEP_LANES])
{
	skep_thread_pool_destroy(queue[0]);
}

static bool begin(void *queue, const struct skep_training *training, uint32_t index, struct skep_stage *ret)
{
	return skep_stage_begin(training, queue, index, ret);
}

static void finish(void *queue, struct skep_stage *stage)
{
	(void)queue;
	skep_stage_finish(stage);
}

static bool forward(void *queue, const struct skep_stage *stage, const struct skep_training *training,
	const struct skep_op *op, const skep_real *in, skep_real *ret_out, skep_real *ret_stash, double *ret_loss,
	struct skep_diag *reterr)
{
	(void)queue;
	return skep_cpu_forward(stage, training, op, in, ret_out, ret_stash, ret_loss, reterr);
}

static bool recompute(void *queue, const struct skep_stage *stage, const struct skep_training *training,
	const struct skep_op *op, const skep_real *in, skep_real *ret_stash, struct skep_diag *reterr)
{
	(void)queue;
	return skep_cpu_recompute(stage, training, op, in, ret_stash, reterr);
}

static const skep_real *backward(void *queue, struct skep_stage *stage, const struct skep_training *training,
	const struct skep_op *op, const struct skep_layers *layers, const skep_real *in, const skep_real *stash,
	skep_real *ret_out)
{
	(void)queue;
	return skep_cpu_backward(stage, training, op, layers, in, stash, ret_out);
}

static void step(void *queue, struct skep_stage *stage, const struct skep_optimizer *optimizer,
	const struct skep_vstage_step *turn, const skep_real *sum)
{
	(void)queue;
	skep_stage_step(stage, optimizer, turn, sum);
}

static void put(
	void *queue, struct skep_stage *stage, uint32_t version, uint64_t first, size_t n, const skep_real *payload)
{
	(void)queue;
	memcpy(skep_stage_parameters(stage, version) + first, payload, n * sizeof *payload);
}

static void discard(void *queue, struct skep_stage *stage, uint32_t round)
{
	(void)queue;
	skep_stage_discard(stage, round);
}

static bool periodic(void *queue, struct skep_stage *stage, const struct skep_training *training,
	const struct skep_op *op, const skep_real *sum)
{
	(void)queue;
	return skep_stage_periodic(stage, training, op, sum);
}

static void encode(void *queue, enum skep_codec codec, uint32_t block, size_t n, const float *value, void *ret_encoded)
{
	(void)queue;
	skep_codec_encode(codec, block, n, value, ret_encoded);
}

static void decode(void *queue, enum skep_codec codec, uint32_t block, size_t n, const void *encoded, float *ret_value)
{
	(void)queue;
	skep_codec_decode(codec, block, n, encoded, ret_value);
}

static void add(
	void *queue, enum skep_codec codec, uint32_t block, size_t n, const float *value, void *encoded, float *ret_sum)
{
	(void)queue;
	skep_codec_add(codec, block, n, value, encoded, ret_sum);
}

static void fold(void *queue, enum skep_codec codec, uint32_t block, size_t n, const void *encoded, float *sum)
{
	(void)queue;
	skep_codec_fold(codec, block, n, encoded, sum);
}

static void tell(void *queue, const struct skep_byzantine *byzantine, uint32_t round, uint64_t first, size_t n,
	const float *own, float *ret)
{
	(void)queue;
	skep_byzantine_tell(byzantine, round, first, n, own, ret);
}

static void aggregate(void *queue, const struct skep_robust *robust, uint32_t members, size_t n, const float *part,
	const uint32_t *weight, float *room, float *ret)
{
	(void)queue;
	(void)room;
	skep_robust_aggregate(robust, members, n, part, weight, ret);
}

static void copy(void *queue, void *to, const void *from, size_t bytes)
{
	(void)queue;
	memcpy(to, from, bytes);
}

static bool load(void *queue, struct skep_stage *stage, uint32_t version, uint32_t chunk, uint32_t chunks,
	const void *state, uint64_t bytes)
{
	(void)queue;
	return skep_stage_load(stage, version, chunk, chunks, state, bytes);
}

static bool take_up(void *queue, struct skep_stage *stage, uint32_t version, const void *state, uint64_t bytes)
{
	(void)queue;
	return skep_stage_take_up(stage, version, state, bytes);
}

static uint64_t digest(void *queue, const struct skep_stage *stage)
{
	(void)queue;
	return skep_stage_digest(stage);
}

static bool wait(void *queue, char *why, size_t why_size)
{
	(void)queue;
	(void)why;
	(void)why_size;
	return true;
}

const struct skep_backend skep_backend_cpu = {.name = "CPU",
	.count = count,
	.describe = describe,
	.create = create,
	.destroy = destroy,
	.begin = begin,
	.finish = finish,
	.forward = forward,
	.recompute = recompute,
	.backward = backward,
	.step = step,
	.put = put,
	.discard = discard,
	.periodic = periodic,
	.encode = encode,
	.decode = decode,
	.add = add,
	.fold = fold,
	.tell = tell,
	.aggregate = aggregate,
	.copy = copy,
	.load = load,
	.take_up = take_up,
	.digest = digest,
	.arithmetic = 0,
	.sum = digest, /* it costs little beside a step */
	.wait = wait};
