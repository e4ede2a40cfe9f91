/* SPDX-License-Identifier: Apache-2.0
 *
 * slot_fit.c - see slot_fit.h.
 */
#include "exec/serve/slot_fit.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

enum { FIT_NONE, FIT_OTHER_GPU, FIT_UNKNOWN_GPU, FIT_SAME_GPU, FIT_ASKED_FOR };

static const struct skep_gpu *gpu_of(const struct skep_scenario *scenario, uint32_t worker)
{
	assert(worker < scenario->plan.workers);
	return &scenario->topology.gpu[scenario->topology.machine[worker].gpu];
}

/* Bytes that the place's stage takes; a spare may be given any stage, so the least of them. */
static double needed(const struct skep_scenario *scenario, uint32_t worker)
{
	uint32_t stages = scenario->plan.stages, gpu = scenario->topology.machine[worker].gpu;
	uint32_t first = scenario->first_stage_of[worker];
	assert(first == SKEP_NO_STAGE || first < stages);
	if (first != SKEP_NO_STAGE)
		return scenario->memory[gpu * stages + first].total;
	double least = scenario->memory[gpu * stages].total;
	for (uint32_t stage = 1; stage < stages; stage++) {
		double total = scenario->memory[gpu * stages + stage].total;
		least = total < least ? total : least;
	}
	return least;
}

uint32_t skep_slot_fit(const struct skep_scenario *scenario, uint32_t worker, const struct skep_hello *hello)
{
	assert(worker < scenario->plan.workers);
	if (hello->memory_bytes > 0 && (double)hello->memory_bytes < needed(scenario, worker))
		return FIT_NONE;
	if (hello->worker != SKEP_NO_INDEX)
		return hello->worker == worker ? FIT_ASKED_FOR : FIT_NONE;
	if (hello->gpu[0] == '\0')
		return FIT_UNKNOWN_GPU;
	return strcmp(hello->gpu, gpu_of(scenario, worker)->name) == 0 ? FIT_SAME_GPU : FIT_OTHER_GPU;
}

/* Of the places in the same stage those that are taken. */
static uint32_t beside_it(const struct skep_scenario *scenario, const bool *taken, uint32_t worker)
{
	uint32_t count = 0;
	for (uint32_t other = 0; other < scenario->plan.workers; other++)
		count += taken[other] && scenario->first_stage_of[other] == scenario->first_stage_of[worker];
	return count;
}

uint32_t skep_slot_best(const struct skep_scenario *scenario, const bool *taken, const struct skep_hello *hello)
{
	uint32_t best = SKEP_NO_INDEX, most = FIT_NONE, fewest = 0;
	for (uint32_t worker = 0; worker < scenario->plan.workers; worker++) {
		uint32_t fit = taken[worker] ? FIT_NONE : skep_slot_fit(scenario, worker, hello);
		uint32_t beside = fit > FIT_NONE ? beside_it(scenario, taken, worker) : 0;
		if (fit > most || (fit == most && fit > FIT_NONE && beside < fewest)) {
			most = fit;
			fewest = beside;
			best = worker;
		}
	}
	return best;
}

bool skep_slot_any(const struct skep_scenario *scenario, const struct skep_hello *hello, struct skep_diag *reterr)
{
	double least = 0;
	uint32_t of = 0;
	for (uint32_t worker = 0; worker < scenario->plan.workers; worker++) {
		if (skep_slot_fit(scenario, worker, hello) != FIT_NONE)
			return true;
		double bytes = needed(scenario, worker);
		if (worker == 0 || bytes < least) {
			least = bytes;
			of = worker;
		}
	}
	if (hello->worker != SKEP_NO_INDEX && hello->worker >= scenario->plan.workers)
		return skep_fail(reterr, "there is no worker %" PRIu32 ": the scenario has workers 0 to %" PRIu32,
			hello->worker, scenario->plan.workers - 1);
	return skep_fail(reterr,
		"its memory of %.4g MiB holds no stage: the smallest, of worker %" PRIu32
		", takes %.4g MiB; cut the model into more stages, or leave --memory out: it may then stand by for any place",
		(double)hello->memory_bytes / 0x1p20, of, least / 0x1p20);
}
