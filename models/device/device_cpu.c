/* SPDX-License-Identifier: Apache-2.0
 *
 * device_cpu.c - the passes of a stage as loops over its layers. Each layer's products have the same shapes and operands however
 * the model is cut, and everything else sums in an order that is written, so a cut does not change a bit of the gradients.
 */
#include "models/device/device_cpu.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include "models/corpus/data.h"

enum { PRODUCT_BYTES = 129 << 20 }; /* what OpenBLAS maps for a thread on x86-64, and its alignment */

void skep_cpu_init(void)
{
#ifdef OPENBLAS_VERSION
	openblas_set_num_threads(1);
#endif
}

#ifdef OPENBLAS_VERSION
/* In no header of OpenBLAS, but in its library: what each product begins and ends with. A build that lacks them has none. */
void *blas_memory_alloc(int position) __attribute__((weak));
void blas_memory_free(void *memory) __attribute__((weak));
#endif

/* What it maps then it keeps. */
static void take_product_memory(uint32_t threads)
{
#ifdef OPENBLAS_VERSION
	enum { THREADS_MOST = 64 }; /* of which OpenBLAS keeps account in any build */
	void *memory[THREADS_MOST];
	uint32_t count = threads < THREADS_MOST ? threads : THREADS_MOST;
	if (blas_memory_alloc == NULL || blas_memory_free == NULL)
		return;
	for (uint32_t i = 0; i < count; i++)
		memory[i] = blas_memory_alloc(0);
	for (uint32_t i = 0; i < count; i++)
		blas_memory_free(memory[i]);
#else
	(void)threads;
#endif
}

bool skep_cpu_reserve(uint32_t threads, struct skep_diag *reterr)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
		return true;
	size_t bytes = (size_t)threads * PRODUCT_BYTES;
	void *memory = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return skep_fail(reterr,
			"matrix products take up to %zu MiB on %u thread%s, and the limit of this process's memory, %ju MiB, "
			"leaves less: raise it (ulimit -v), or take fewer threads",
			bytes >> 20, threads, threads > 1 ? "s" : "", (uintmax_t)limit.rlim_cur >> 20);
	munmap(memory, bytes);
	take_product_memory(threads);
	return true;
}

static struct skep_pass pass_of(const struct skep_stage *stage, const struct skep_training *training,
	const struct skep_op *op, const struct skep_layer *layer)
{
	const skep_real *parameter = skep_stage_read(stage, training, op);
	bool ties = stage->shared != SIZE_MAX && layer->number + 1 == layer->model->layers;
	return (struct skep_pass){.training = training,
		.op = op,
		.parameter = parameter + layer->parameter,
		.shared = ties ? parameter + stage->shared : NULL,
		.differs = stage->differs,
		.rotation = stage->rotation,
		.work = stage->work ? stage->work : stage->scratch[0],
		.strips = stage->strips,
		.experts = stage->experts,
		.thread_pool = stage->queue};
}

bool skep_cpu_forward(const struct skep_stage *stage, const struct skep_training *training, const struct skep_op *op,
	const skep_real *in, skep_real *ret_out, skep_real *ret_stash, double *ret_loss, struct skep_diag *reterr)
{
	const void *x = in;
	*ret_loss = 0;
	skep_stage_move(stage, &training->optimizer, op);
	if (!in && !skep_corpus_inputs(training, op->round, op->microbatch, ret_stash, reterr))
		return false;
	x = in ? in : ret_stash;
	for (uint32_t l = 0; l < stage->layers; l++) {
		const struct skep_layer *layer = &stage->layer[l];
		struct skep_pass pass = pass_of(stage, training, op, layer);
		skep_real *value = l + 1 < stage->layers ? ret_stash + layer->value : ret_out;
		*ret_loss = layer->type->forward(layer, &pass, x, value, ret_stash + layer->kept);
		x = value;
	}
	return true;
}

bool skep_cpu_recompute(const struct skep_stage *stage, const struct skep_training *training, const struct skep_op *op,
	const skep_real *in, skep_real *ret_stash, struct skep_diag *reterr)
{
	double loss;
	bool last = stage->index + 1 == skep_plan_vstages(training->plan);
	return skep_cpu_forward(stage, training, op, in, last ? NULL : stage->scratch[1], ret_stash, &loss, reterr);
}

const skep_real *skep_cpu_backward(struct skep_stage *stage, const struct skep_training *training,
	const struct skep_op *op, const struct skep_layers *layers, const skep_real *in, const skep_real *stash,
	skep_real *ret_out)
{
	skep_real *accumulator = skep_stage_sum(stage, op->round);
	skep_real *gradient = stage->scratch[0], *other = stage->scratch[1];
	skep_stage_move(stage, &training->optimizer, op);
	for (uint32_t l = layers->end; l-- > layers->first;) {
		const struct skep_layer *layer = &stage->layer[l];
		const skep_real *x = l > 0 ? stash + layer[-1].value : in ? in : stash;
		struct skep_pass pass = pass_of(stage, training, op, layer);
		bool ends = layer->number <= layer->model->frozen; /* nothing is trained before */
		skep_real *ret = ends ? NULL : l == layers->first && ret_out ? ret_out : other;
		if (!op->uncounted) {
			pass.gradient = accumulator + layer->parameter;
			pass.shared_gradient = pass.shared ? accumulator + stage->shared : NULL;
		}
		layer->type->backward(layer, &pass, x, stash + layer->kept, gradient, ret);
		other = gradient;
		gradient = ret;
	}
	return gradient;
}
