/* SPDX-License-Identifier: Apache-2.0
 *
 * symbols.c - what stands for gradients, parameters and losses, and the first thing that was found wrong.
 */
#include <stdarg.h>
#include <stdio.h>

#include "tests/cluster/device.h"

void verdict_break(struct verdict *verdict, const char *invariant, uint32_t round, uint32_t stage, uint32_t microbatch,
	const char *format, ...)
{
	if (verdict->broken)
		return;
	verdict->broken = true;
	snprintf(verdict->invariant, sizeof(verdict->invariant), "%s", invariant);
	verdict->round = round;
	verdict->stage = stage;
	verdict->microbatch = microbatch;
	va_list list;
	va_start(list, format);
	vsnprintf(verdict->text, sizeof(verdict->text), format, list);
	va_end(list);
}

uint64_t mix64(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

uint64_t symbol_gradient(uint32_t round, uint32_t version, uint32_t stage, uint32_t microbatch, uint32_t element)
{
	uint64_t work = mix64(((uint64_t)round << 32 | microbatch) + 1);
	return mix64(work ^ ((uint64_t)version << 48 | (uint64_t)stage << 32 | element));
}

uint64_t symbol_parameter(const struct skep_plan *plan, uint32_t candidate, uint32_t stage, uint32_t element)
{
	if (skep_plan_is_tied(plan, stage) && stage > 0 && element >= skep_plan_tied_first(plan, stage)) {
		element -= (uint32_t)skep_plan_tied_first(plan, stage); /* a copy of the first stage's */
		stage = 0;
	}
	return mix64(0x5eed000000000000u + ((uint64_t)candidate << 32) + ((uint64_t)stage << 16) + element);
}

int64_t symbol_loss(uint32_t candidate, uint32_t round, uint32_t microbatch)
{
	uint64_t salt = 0x10550000000u ^ (uint64_t)candidate << 56;
	return (int64_t)(mix64(((uint64_t)round << 32 | microbatch) ^ salt) % 2000000000u);
}
