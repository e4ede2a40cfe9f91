/* SPDX-License-Identifier: Apache-2.0
 *
 * cuts.h - where to cut the model into stages, and who serves them, together: for `skep plan`, where the scenario leaves
 * both open.
 *
 * Machines differ in speed and memory, layers in what they cost: the even cut is the best one for machines that are alike
 * alone. The two questions are asked in turn. Given who serves which stage, planning/search/layers_cut.h finds the cut
 * (interleaved, where stages have several virtual stages, layers move across one boundary after the other); given the cut, the
 * searches of planning/search find the allocation; until neither gets better. That ends where both would have to change
 * at once, so in small pools cuts that differ from the one found in one layer are looked at as well, and in very small
 * ones, of which there are few, all cuts, each with a search of its own. It begins at what the caller has, or at what
 * HetPipe's recurrence over layers and kinds of machines (planning/search/chain.h) says of groups of machines that are
 * alike.
 *
 * What is kept true: every cut is judged by the cost that all searches use (planning/search/throughput.h), from the
 * tables that a scenario with this model.cut would have (scenarios/plan/recut.h, tables.h), and memory by memory_limits.h; so
 * what is found reads, fits and is expected to take what is said here. Every virtual stage has a layer. Nothing depends on a
 * clock. Ties go to what was there before.
 *
 * In this order: possible; make; any of begin, improve, expect, as often as wanted; finish.
 */
#pragma once

#include "planning/problem/problem.h"
#include "planning/search/methods.h"

#define SKEP_CUT_LAYERS_MOST 512u

struct skep_cutting {
	const struct skep_planning *from; /* of the scenario as it is */
	struct skep_scenario recut;
	struct skep_planning planning; /* of that one; links and machines are those of `from` */
	uint32_t vstages;
	uint32_t *trial, *size; /* [vstages] a cut that is looked at, [stages] */
	enum skep_contention view;
	bool lean, paid, all; /* workers may be left out; what counts is what a step costs; all cuts were looked at */
	void *cost_memory[2]; /* by time, and by money */
	const struct skep_objective *cost[2];
	bool lacking; /* memory, so that not all was looked at */
};

/* There is more than one cut, and not too many layers to look for the best. */
bool skep_cuts_possible(const struct skep_scenario *scenario);

/* `from` must stay where it is; of it memory may not suffice. False: no memory, and *ret is empty. */
bool skep_cutting_make(const struct skep_planning *from, struct skep_cutting *ret);
void skep_cutting_finish(struct skep_cutting *cutting);

/* What counts from now on. `paid` is ignored where prices are unknown. */
void skep_cutting_aim(struct skep_cutting *cutting, enum skep_contention view, bool lean, bool paid);

/* By kinds of machines: a cut and an allocation, ret_layers [vstages], ret_stage_of [workers]. False: none that could be
 * was found that way; the rest of a search does not need it. */
bool skep_cutting_begin(struct skep_cutting *cutting, uint32_t *ret_layers, uint32_t *ret_stage_of);

/* Makes both better. Returns what the result costs, SKEP_NEVER: it cannot be; *evaluations grows by what was asked. */
double skep_cutting_improve(
	struct skep_cutting *cutting, uint64_t seed, uint32_t *layers, uint32_t *stage_of, uint64_t *evaluations);

/* The same for the cut alone: who serves which stage stays. */
double skep_cutting_recut(struct skep_cutting *cutting, uint32_t *layers, const uint32_t *stage_of);

/* What the allocation costs with this cut in a view (search/throughput.h), without rent. */
double skep_cutting_expect(
	struct skep_cutting *cutting, enum skep_contention view, const uint32_t *layers, const uint32_t *stage_of);

/* From nothing: some cut and allocation that can be, where the scenario's own cut has none, begun at so many places at
 * most. False: none was found. */
#define SKEP_CUT_TRIES 8u
bool skep_cutting_any(
	struct skep_cutting *cutting, uint64_t seed, uint32_t tries, uint32_t *ret_layers, uint32_t *ret_stage_of);
