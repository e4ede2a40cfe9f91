/* SPDX-License-Identifier: Apache-2.0
 *
 * tables.h - the part of a planning (problem.h) that depends on where the model is cut: times, bytes and memory of stages,
 * and what follows from them. Private to planning/.
 *
 * In this order: make, fill as often as the scenario is cut anew, finish. Who takes part, links and prices are there before.
 */
#pragma once

#include "planning/problem/problem.h"

bool skep_tables_make(struct skep_planning *planning); /* false: no memory; finish it all the same */
void skep_tables_fill(struct skep_planning *planning);
/* Of that times and bytes alone, as if there were memory for everything; and the same of one stage that is one virtual stage,
 * with what comes into it. */
void skep_tables_times(struct skep_planning *planning);
void skep_tables_stage(struct skep_planning *planning, uint32_t stage);
void skep_tables_finish(struct skep_planning *planning);

/* Who can hold no stage, whatever the sizes are. */
bool skep_tables_idle(const struct skep_planning *planning, uint32_t worker);
