/* SPDX-License-Identifier: Apache-2.0
 *
 * payloads.c - see payloads.h.
 */
#include "tests/cuda/payloads.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/collective/collective.h"
#include "core/random.h"
#include "models/update/byzantine.h"
#include "models/update/codec.h"
#include "models/update/robust.h"

/* ---- codecs ----------------------------------------------------------------------------------------------------------- */

struct payload { /* of the host's side */
	size_t bytes;
	unsigned char *ours, *theirs; /* by a kernel, by the CPU */
};

static void same(struct arrays *all, const void *ours, const void *theirs, size_t bytes, const char *what)
{
	const unsigned char *a = ours, *b = theirs;
	for (size_t i = 0; i < bytes; i++) {
		if (a[i] == b[i])
			continue;
		fprintf(stderr, "%s: byte %zu of %zu is %u, expected %u\n", what, i, bytes, a[i], b[i]);
		all->failures++;
		return;
	}
}

/* As numbers: which of several NaNs a sum is, is the processor's affair. */
static void same_numbers(struct arrays *all, const float *ours, const float *theirs, size_t n, const char *what)
{
	for (size_t i = 0; i < n; i++) {
		if (memcmp(&ours[i], &theirs[i], sizeof *ours) == 0 || (isnan(ours[i]) && isnan(theirs[i])))
			continue;
		fprintf(stderr, "%s: element %zu of %zu is %a, expected %a\n", what, i, n, (double)ours[i],
			(double)theirs[i]);
		all->failures++;
		return;
	}
}

/* Numbers of every size, and what is none. */
static void fill(struct arrays *all, size_t n, float *x)
{
	for (size_t i = 0; i < n; i++) {
		uint32_t bits = (uint32_t)(skep_mix(all->seed += 0x9e3779b97f4a7c15u) >> 32);
		size_t block = i / SKEP_CODEC_BLOCK;
		if (block % 4 != 3 && (bits & 0x7f800000) == 0x7f800000)
			bits &= ~0x40000000u;
		if (block % 4 == 1)
			bits = (bits & 0x80ffffff) | 0x3f000000;
		if (block % 4 == 2)
			bits &= 0x807fffff;
		memcpy(&x[i], &bits, sizeof bits);
	}
}

static void check_codec_of(struct arrays *all, enum skep_codec codec, uint32_t block, size_t n)
{
	const size_t bytes = skep_codec_bytes(codec, block, n), floats = n * sizeof(float);
	char why[256];
	struct skep_cuda_queue *queue = all->queue;
	unsigned char *payload = skep_cuda_take(queue, SKEP_MEMORY_HOST, bytes), *theirs = malloc(bytes);
	float *x = skep_cuda_take(queue, SKEP_MEMORY_HOST, floats),
	      *y = skep_cuda_take(queue, SKEP_MEMORY_HOST, floats);
	float *on_x = skep_cuda_take(queue, SKEP_MEMORY_DEVICE, floats);
	float *on_y = skep_cuda_take(queue, SKEP_MEMORY_DEVICE, floats), *want = malloc(floats);
	fill(all, n, x);
	skep_cuda_copy(queue, on_x, x, floats);
	skep_cuda_encode(queue, codec, block, n, on_x, payload);
	skep_cuda_decode(queue, codec, block, n, payload, on_y);
	skep_cuda_copy(queue, y, on_y, floats);
	all->failures += !skep_cuda_wait(queue, why, sizeof why);
	skep_codec_encode(codec, block, n, x, theirs);
	skep_codec_decode(codec, block, n, theirs, want);
	same(all, payload, theirs, bytes, "encoded");
	same(all, y, want, floats, "decoded");
	fill(all, n, x);
	skep_cuda_copy(queue, on_x, x, floats);
	skep_cuda_fold(queue, codec, block, n, payload, on_x);
	skep_cuda_copy(queue, y, on_x, floats);
	all->failures += !skep_cuda_wait(queue, why, sizeof why);
	memcpy(want, x, floats);
	skep_codec_fold(codec, block, n, theirs, want);
	same_numbers(all, y, want, n, "folded");
	skep_cuda_copy(queue, on_x, x, floats);
	skep_cuda_add(queue, codec, block, n, on_x, payload, on_y);
	skep_cuda_copy(queue, y, on_y, floats);
	all->failures += !skep_cuda_wait(queue, why, sizeof why);
	skep_codec_add(codec, block, n, x, theirs, want);
	same_numbers(all, y, want, n, "added and decoded");
	skep_codec_decode(codec, block, n, payload, y);
	same_numbers(all, y, want, n, "added");
	for (int side = 0; side < 2; side++) {
		skep_cuda_give(queue, SKEP_MEMORY_DEVICE, side ? on_x : on_y);
		skep_cuda_give(queue, SKEP_MEMORY_HOST, side ? x : y);
	}
	skep_cuda_give(queue, SKEP_MEMORY_HOST, payload);
	free(theirs);
	free(want);
}

void check_codecs(struct arrays *all)
{
	for (int codec = SKEP_CODEC_NONE; codec < SKEP_CODECS; codec++) {
		for (size_t n = 60; n < 72; n++)
			check_codec_of(all, (enum skep_codec)codec, 0, n);
		check_codec_of(all, (enum skep_codec)codec, SKEP_CODEC_BLOCK, 5 * 512 + 77);
		check_codec_of(all, (enum skep_codec)codec, 0, 1);
	}
}

/* Blocks of other lengths: shorter than a warp, longer than a payload, and the payload itself. */
void check_codec_blocks(struct arrays *all)
{
	static const uint32_t blocks[] = {8, 24, 128, 2048, SKEP_CODEC_BLOCK_MAX, SKEP_CODEC_TENSOR};
	static const size_t lengths[] = {1, 2, 23, 127, 128, 129, 2049, 5 * 512 + 77};
	for (int codec = SKEP_CODEC_INT8; codec < SKEP_CODECS; codec++)
		for (size_t b = 0; b < sizeof blocks / sizeof blocks[0]; b++)
			for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++)
				check_codec_of(all, (enum skep_codec)codec, blocks[b], lengths[l]);
}

/* ---- gathered parts --------------------------------------------------------------------------------------------------- */

/* Some have no vote, some columns ties and some what is no number; the result of the CPU, to the bit. */
static void check_robust_of(struct arrays *all, const struct skep_robust *robust, uint32_t members, size_t n)
{
	const size_t parts = (members * n + 1) / 2 * 2, floats = parts + skep_robust_scratch(members, n);
	char why[256];
	struct skep_cuda_queue *queue = all->queue;
	float *part = skep_cuda_take(queue, SKEP_MEMORY_HOST, parts * sizeof *part), *want = malloc(n * sizeof *want);
	float *got = skep_cuda_take(queue, SKEP_MEMORY_HOST, n * sizeof *got);
	float *on = skep_cuda_take(queue, SKEP_MEMORY_DEVICE, floats * sizeof *on),
	      *ret = skep_cuda_take(queue, SKEP_MEMORY_DEVICE, n * sizeof *ret);
	uint32_t weight[SKEP_ROSTER_MAX];
	for (uint32_t m = 0; m < members; m++)
		weight[m] = m % 5 == 3 ? 0 : 1 + m % 3;
	for (size_t i = 0; i < members * n; i++) {
		const uint64_t random = skep_mix(all->seed += 0x9e3779b97f4a7c15u);
		part[i] = (float)((double)(random >> 40) * 0x1p-23 - 1);
		if (i % n % 3 == 1)
			part[i] = (float)(random % 3) - 1;
		if (random % 7 == 0 && i % n % 16 == 5 && n < 1000)
			part[i] = random % 2 ? NAN : random % 3 ? INFINITY : -INFINITY;
	}
	skep_cuda_copy(queue, on, part, members * n * sizeof *on);
	skep_cuda_aggregate(queue, robust, members, n, on, weight, on + parts, ret);
	skep_cuda_copy(queue, got, ret, n * sizeof *got);
	all->failures += !skep_cuda_wait(queue, why, sizeof why);
	skep_robust_aggregate(robust, members, n, part, weight, want);
	same_numbers(all, got, want, n, robust->method == SKEP_ROBUST_ZENO ? "zeno" : "trimmed mean");
	skep_cuda_give(queue, SKEP_MEMORY_DEVICE, on);
	skep_cuda_give(queue, SKEP_MEMORY_DEVICE, ret);
	skep_cuda_give(queue, SKEP_MEMORY_HOST, part);
	skep_cuda_give(queue, SKEP_MEMORY_HOST, got);
	free(want);
}

void check_robust(struct arrays *all)
{
	static const uint32_t members[] = {1, 2, 5, 9, 70};
	for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
		for (int method = SKEP_ROBUST_MEAN; method <= SKEP_ROBUST_ZENO; method++)
			for (uint32_t trim = 1; trim < 3; trim++)
				check_robust_of(all,
					&(struct skep_robust){
						.method = (enum skep_robust_method)method, .trim = trim, .rho = 0.5},
					members[i], 133);
	check_robust_of(all, &(struct skep_robust){.method = SKEP_ROBUST_ZENO, .share = 0.4, .rho = 0.01}, 7,
		2 * SKEP_ROBUST_SPAN + 21);
}

void check_lies(struct arrays *all)
{
	const size_t n = 701;
	struct array own = array_random(all, n, false, 1), told = array_of(all, n, false, 7);
	float *x = malloc(n * sizeof *x), *want = malloc(n * sizeof *want), *got = malloc(n * sizeof *got);
	assert(x && want && got);
	for (int attack = SKEP_ATTACK_NONE; attack <= SKEP_ATTACK_NAN; attack++) {
		const struct skep_byzantine byzantine = {.attack = (enum skep_attack)attack, .scale = 1.7f, .seed = 11};
		for (size_t i = 0; i < n; i++)
			x[i] = (float)own.host[i];
		skep_byzantine_tell(&byzantine, 5, UINT64_C(1) << 33, n, x, want);
		skep_cuda_tell(all->queue, &byzantine, 5, UINT64_C(1) << 33, n, floats_of(&own), floats_of(&told));
		double *read = array_read(all, &told);
		for (size_t i = 0; i < n; i++)
			got[i] = (float)read[i];
		same_numbers(all, got, want, n, "lies");
		free(read);
	}
	free(x);
	free(want);
	free(got);
}
