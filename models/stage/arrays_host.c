/* SPDX-License-Identifier: Apache-2.0
 *
 * arrays_host.c - the arrays of a stage in the host's memory. Their queue is a thread pool, or NULL. All functions but
 * the sums work element by element, so how they are shared out changes no bit. Sums over a whole array (the squares
 * that clip a gradient, LAMB's norms) are done by the calling thread alone: one pass through memory, once a step.
 */
#include <stdatomic.h>

#include "models/layers/spread.h"
#include "models/stage/stage.h"
#include "models/update/squares.h"

static void share(void *queue, size_t n, skep_thread_pool_fn *fn, const void *context)
{
	skep_thread_pool_for(queue, n, SKEP_SPREAD_NUMBERS, fn, context);
}

struct bytes {
	char *to;
	const char *from; /* NULL: 0 */
};

static void copy_bytes(const void *context, size_t first, size_t end, uint32_t member)
{
	const struct bytes *b = context;
	(void)member;
	if (b->from)
		memcpy(b->to + first, b->from + first, end - first);
	else
		memset(b->to + first, 0, end - first);
}

static void copy(void *queue, void *to, const void *from, size_t bytes)
{
	skep_thread_pool_for(
		queue, bytes, SKEP_SPREAD_NUMBERS * sizeof(skep_real), copy_bytes, &(struct bytes){to, from});
}

static void clear(void *queue, void *memory, size_t bytes)
{
	copy(queue, memory, NULL, bytes);
}

static void step_part(const void *context, size_t first, size_t end, uint32_t member)
{
	struct skep_tensor_step part = *(const struct skep_tensor_step *)context;
	(void)member;
	part.n = end - first;
	part.sum += first;
	part.w += first;
	for (uint32_t m = 0; m < SKEP_MOMENTS_MAX; m++)
		if (part.moment[m] != NULL) /* an optimizer may have none, or one */
			part.moment[m] += first;
	skep_step_tensor(&part);
}

static void step(void *queue, const struct skep_tensor_step *one)
{
	if (one->o->kind == SKEP_OPTIMIZER_LAMB && one->scales)
		skep_step_tensor(one);
	else
		share(queue, one->n, step_part, one);
}

struct pair {
	const skep_real *w, *v;
	skep_real factor, *ret;
};

static void weigh_part(const void *context, size_t first, size_t end, uint32_t member)
{
	const struct pair *p = context;
	(void)member;
	for (size_t i = first; i < end; i++)
		p->ret[i] = (p->w[i] - p->v[i]) * p->factor;
}

static void weigh(void *queue, size_t n, const skep_real *w, const skep_real *v, skep_real weight, skep_real *ret)
{
	share(queue, n, weigh_part, &(struct pair){w, v, weight, ret});
}

static void mix_part(const void *context, size_t first, size_t end, uint32_t member)
{
	const struct pair *p = context;
	const skep_real rest = 1 - p->factor;
	(void)member;
	for (size_t i = first; i < end; i++)
		p->ret[i] = p->factor * p->ret[i] + rest * p->w[i];
}

static void mix(void *queue, size_t n, skep_real mixing, const skep_real *w, skep_real *v)
{
	share(queue, n, mix_part, &(struct pair){.w = w, .factor = mixing, .ret = v});
}

struct move {
	const skep_real *from, *to;
	skep_real *v;
};

static void shift_part(const void *context, size_t first, size_t end, uint32_t member)
{
	const struct move *m = context;
	(void)member;
	for (size_t i = first; i < end; i++)
		m->v[i] += m->to[i] - m->from[i];
}

static void shift(void *queue, size_t n, const skep_real *from, const skep_real *to, skep_real *v)
{
	share(queue, n, shift_part, &(struct move){from, to, v});
}

struct search {
	const skep_real *a;
	atomic_bool *found; /* one that is not finite */
};

static void search_part(const void *context, size_t first, size_t end, uint32_t member)
{
	const struct search *s = context;
	(void)member;
	if (!skep_squares_finite(end - first, s->a + first))
		*s->found = true;
}

static bool finite_all(void *queue, size_t n, const skep_real *a)
{
	atomic_bool found = false;
	share(queue, n, search_part, &(struct search){a, &found});
	return !found;
}

static double squares(void *queue, size_t n, const skep_real *a)
{
	(void)queue;
	return skep_squares_sum(n, a);
}

struct blend {
	const skep_real *a, *b; /* NULL: nothing of it */
	skep_real p, q, *ret;
};

static void blend_part(const void *context, size_t first, size_t end, uint32_t member)
{
	const struct blend *s = context;
	(void)member;
	for (size_t i = first; i < end; i++) {
		skep_real a = s->a ? s->a[i] / s->p : 0, b = s->b ? s->b[i] / s->q : 0;
		s->ret[i] = a + b;
	}
}

static void blend(void *queue, size_t n, const skep_real *a, uint32_t p, const skep_real *b, uint32_t q, skep_real *ret)
{
	share(queue, n, blend_part,
		&(struct blend){p > 0 ? a : NULL, q > 0 ? b : NULL, (skep_real)p, (skep_real)q, ret});
}

static double products(void *queue, size_t n, const skep_real *a, const skep_real *b, bool above)
{
	(void)queue;
	return skep_squares_products(n, a, b, above);
}

const struct skep_arrays skep_arrays_host = {.copy = copy,
	.clear = clear,
	.step = step,
	.weigh = weigh,
	.mix = mix,
	.shift = shift,
	.finite = finite_all,
	.squares = squares,
	.blend = blend,
	.products = products};
