/* SPDX-License-Identifier: Apache-2.0
 *
 * masking.c - see masking.h. Places are drawn one after the other (Knuth, The Art of Computer Programming, volume 2, algorithm
 * S of 3.4.2): with r of n places left, and p still to be predicted, the next one is with probability p / r.
 */
#include "models/corpus/masking.h"

#include <assert.h>
#include <stdbool.h>

#include "models/layers/random.h"

uint64_t skep_masking_key(uint64_t seed, uint32_t split, uint64_t index)
{
	const uint64_t sample = skep_mix(2 * index + split) ^ UINT64_C(0x6d61736b);
	return skep_mix(skep_random_key(seed, SKEP_STREAM_DATA) ^ skep_mix(sample));
}

/* Uniform on [0, n), of the upper or the lower half of `bits`. */
static uint32_t upper(uint64_t bits, uint32_t n)
{
	return (uint32_t)((bits >> 32) * n >> 32);
}

static uint32_t lower(uint64_t bits, uint32_t n)
{
	return (uint32_t)((bits & UINT32_MAX) * n >> 32);
}

static uint64_t bits_of(uint64_t key, uint32_t place, uint32_t which)
{
	return skep_mix(key + 2 * (uint64_t)place + which);
}

/* Is it predicted, with `left` still to be found from it on? */
static bool takes(const struct skep_masking *m, uint64_t key, uint32_t place, uint32_t left)
{
	assert(left <= m->sequence - place);
	return upper(bits_of(key, place, 0), m->sequence - place) < left;
}

static int32_t stand_in(const struct skep_masking *m, uint64_t key, uint32_t place, int32_t id)
{
	const uint64_t bits = bits_of(key, place, 1);
	const uint32_t tenth = upper(bits, 10);
	return tenth < 8 ? (int32_t)m->token : tenth == 8 ? (int32_t)lower(bits, m->vocabulary) : id;
}

void skep_masking_places(const struct skep_masking *masking, uint64_t key, uint32_t *ret)
{
	uint32_t found = 0;
	assert(masking->predicted > 0 && masking->predicted <= masking->sequence);
	for (uint32_t place = 0; place < masking->sequence; place++)
		if (takes(masking, key, place, masking->predicted - found))
			ret[found++] = place;
	assert(found == masking->predicted);
}

void skep_masking_hide(const struct skep_masking *masking, uint64_t key, int32_t *id)
{
	uint32_t left = masking->predicted;
	assert(masking->predicted > 0 && masking->token < masking->vocabulary);
	for (uint32_t place = 0; place < masking->sequence; place++)
		if (takes(masking, key, place, left)) {
			id[place] = stand_in(masking, key, place, id[place]);
			left--;
		}
}
