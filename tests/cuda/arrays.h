/* SPDX-License-Identifier: Apache-2.0
 *
 * arrays.h - for checks of kernels: arrays of a device with what is in them as doubles, and comparisons. Everything that
 * comes back from the device goes into a hash, so that two runs can be held to the same bits.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "models/cuda/kernels.h"
#include "models/cuda/runtime.h"

enum { ARRAYS_MAX = 64 };

struct arrays { /* of one check; all are given back at its end */
	struct skep_cuda_queue *queue;
	uint64_t seed, hash;
	struct {
		void *device;
		double *host;
	} list[ARRAYS_MAX];
	unsigned count;
	unsigned failures;
};

struct array {
	size_t n;
	bool half;    /* bf16, else float */
	void *device; /* as either */
	double *host; /* what it was made of, rounded to its type */
};

void arrays_begin(struct arrays *all, struct skep_cuda_queue *queue, uint64_t seed);
void arrays_end(struct arrays *all);

/* Uniform on [-size, size), the same for the same seed. */
struct array array_random(struct arrays *all, size_t n, bool half, double size);
struct array array_of(struct arrays *all, size_t n, bool half, double value);
struct array array_copy(struct arrays *all, const struct array *other);
/* Integers of 32 bits. */
void *array_integers(struct arrays *all, size_t n, const int32_t *value);

static inline skep_bf16 *halves_of(const struct array *a)
{
	return a->device;
}
static inline float *floats_of(const struct array *a)
{
	return a->device;
}

/* As it is on the device now; `skip` of it do not matter. */
double *array_read(struct arrays *all, const struct array *a);

/* Of the device's numbers each is within `part` of the largest expected one plus a rounding of its type: prints and counts
 * the first that is not. */
void array_near(struct arrays *all, const struct array *a, const double *expected, double part, const char *what);
/* The length of the difference is within `part` of that of what is expected. */
void array_close(struct arrays *all, const struct array *a, const double *expected, double part, const char *what);
