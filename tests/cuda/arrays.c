/* SPDX-License-Identifier: Apache-2.0
 *
 * arrays.c - see arrays.h.
 */
#include "tests/cuda/arrays.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash.h"
#include "core/random.h"

void arrays_begin(struct arrays *all, struct skep_cuda_queue *queue, uint64_t seed)
{
	*all = (struct arrays){.queue = queue, .seed = seed, .hash = SKEP_HASH_EMPTY};
}

static void wait_for(struct arrays *all)
{
	char why[256];
	if (!skep_cuda_wait(all->queue, why, sizeof why)) {
		fprintf(stderr, "%s\n", why);
		all->failures++;
	}
}

void arrays_end(struct arrays *all)
{
	wait_for(all);
	for (unsigned i = 0; i < all->count; i++) {
		skep_cuda_give(all->queue, SKEP_MEMORY_DEVICE, all->list[i].device);
		free(all->list[i].host);
	}
}

static void *keep(struct arrays *all, size_t bytes, double *host)
{
	assert(all->count < ARRAYS_MAX);
	void *device = skep_cuda_take(all->queue, SKEP_MEMORY_DEVICE, bytes);
	assert(device);
	all->list[all->count].device = device;
	all->list[all->count++].host = host;
	return device;
}

/* Through page-locked memory. */
static void move(struct arrays *all, void *to, const void *from, void *host, bool up, size_t bytes)
{
	void *locked = skep_cuda_take(all->queue, SKEP_MEMORY_HOST, bytes);
	assert(locked);
	if (up)
		memcpy(locked, host, bytes);
	skep_cuda_copy(all->queue, up ? to : locked, up ? locked : from, bytes);
	wait_for(all);
	if (!up)
		memcpy(host, locked, bytes);
	skep_cuda_give(all->queue, SKEP_MEMORY_HOST, locked);
}

static uint16_t half_bits(float x)
{
	uint32_t bits;
	memcpy(&bits, &x, sizeof bits);
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float of_half(uint16_t half)
{
	uint32_t bits = (uint32_t)half << 16;
	float x;
	memcpy(&x, &bits, sizeof x);
	return x;
}

/* Rounds host[n] to the type, and puts it on the device. */
static struct array make(struct arrays *all, size_t n, bool half, double *host)
{
	struct array a = {.n = n, .half = half, .host = host};
	size_t bytes = n * (half ? sizeof(uint16_t) : sizeof(float));
	void *raw = malloc(bytes);
	assert(host && raw);
	for (size_t i = 0; i < n; i++) {
		float x = (float)host[i];
		uint16_t bits = half_bits(x);
		if (half)
			memcpy((uint16_t *)raw + i, &bits, sizeof bits);
		else
			memcpy((float *)raw + i, &x, sizeof x);
		host[i] = (double)(half ? of_half(bits) : x);
	}
	a.device = keep(all, bytes, host);
	move(all, a.device, NULL, raw, true, bytes);
	free(raw);
	return a;
}

struct array array_random(struct arrays *all, size_t n, bool half, double size)
{
	double *host = malloc(n * sizeof *host);
	for (size_t i = 0; host && i < n; i++)
		host[i] = size * ((double)(skep_mix(all->seed += 0x9e3779b97f4a7c15u) >> 11) * 0x1p-52 - 1);
	return make(all, n, half, host);
}

struct array array_of(struct arrays *all, size_t n, bool half, double value)
{
	double *host = malloc(n * sizeof *host);
	for (size_t i = 0; host && i < n; i++)
		host[i] = value;
	return make(all, n, half, host);
}

struct array array_copy(struct arrays *all, const struct array *other)
{
	double *host = malloc(other->n * sizeof *host);
	assert(host);
	memcpy(host, other->host, other->n * sizeof *host);
	return make(all, other->n, other->half, host);
}

void *array_integers(struct arrays *all, size_t n, const int32_t *value)
{
	void *device = keep(all, n * sizeof *value, NULL);
	move(all, device, NULL, (void *)value, true, n * sizeof *value);
	return device;
}

double *array_read(struct arrays *all, const struct array *a)
{
	size_t bytes = a->n * (a->half ? sizeof(uint16_t) : sizeof(float));
	void *raw = malloc(bytes);
	double *ret = malloc(a->n * sizeof *ret);
	assert(raw && ret);
	move(all, NULL, a->device, raw, false, bytes);
	all->hash = skep_hash_bytes(all->hash, raw, bytes);
	for (size_t i = 0; i < a->n; i++)
		ret[i] = (double)(a->half ? of_half(((uint16_t *)raw)[i]) : ((float *)raw)[i]);
	free(raw);
	return ret;
}

void array_near(struct arrays *all, const struct array *a, const double *expected, double part, const char *what)
{
	double *got = array_read(all, a), largest = 0, unit = a->half ? 0x1p-8 : 0x1p-23;
	for (size_t i = 0; i < a->n; i++)
		largest = fmax(largest, fabs(expected[i]));
	for (size_t i = 0; i < a->n; i++) {
		if (fabs(got[i] - expected[i]) <= part * largest + unit * fabs(expected[i]))
			continue;
		fprintf(stderr, "%s: element %zu of %zu is %g, expected %g\n", what, i, a->n, got[i], expected[i]);
		all->failures++;
		break;
	}
	free(got);
}

void array_close(struct arrays *all, const struct array *a, const double *expected, double part, const char *what)
{
	double *got = array_read(all, a), apart = 0, length = 0;
	for (size_t i = 0; i < a->n; i++) {
		apart += (got[i] - expected[i]) * (got[i] - expected[i]);
		length += expected[i] * expected[i];
	}
	if (!(sqrt(apart) <= part * sqrt(length))) {
		fprintf(stderr, "%s: %g of the length is amiss, more than %g\n", what, sqrt(apart / length), part);
		all->failures++;
	}
	free(got);
}
