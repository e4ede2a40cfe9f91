/* SPDX-License-Identifier: Apache-2.0
 *
 * lengths.c - see lengths.h.
 */
#include "sweeping/lengths.h"

#include <assert.h>

#define MULTIPLE_MOST 1000000u

static uint32_t common(uint32_t a, uint32_t b)
{
	return b == 0 ? a : common(b, a % b);
}

void skep_sweep_lengths_hear(struct skep_sweep_lengths *l, const struct skep_sweep_reply *reply)
{
	assert(reply->cycle > 0);
	if (l->least.cycle == 0) {
		l->least = l->most = *reply;
		l->multiple = reply->cycle;
	}
	l->least = reply->samples < l->least.samples ? *reply : l->least;
	l->most = reply->samples > l->most.samples ? *reply : l->most;
	uint64_t multiple = (uint64_t)l->multiple / common(reply->cycle, l->multiple) * reply->cycle;
	l->multiple = l->multiple > 0 && multiple <= MULTIPLE_MOST ? (uint32_t)multiple : 0;
}

void skep_sweep_lengths_warn(const struct skep_sweep_lengths *l, FILE *out)
{
	const struct skep_sweep_reply *a = &l->least, *b = &l->most;
	bool rounded = a->steps != a->asked_steps || b->steps != b->asked_steps;
	if (a->samples == b->samples || a->asked_steps != b->asked_steps || !rounded)
		return;
	fprintf(out,
		"skep: these runs do different amounts of work, since rounds are whole: of %u steps that were asked for "
		"some do %u and some %u",
		a->asked_steps, a->steps, b->steps);
	if (l->multiple > 0)
		fprintf(out, "; all do as many with a multiple of %u, as --set train.until.steps=%u", l->multiple,
			(a->asked_steps + l->multiple - 1) / l->multiple * l->multiple);
	fputc('\n', out);
}
