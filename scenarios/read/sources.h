/* SPDX-License-Identifier: Apache-2.0
 *
 * sources.h - the files that a scenario was read from, besides its own: model, topology, matrices, GPU profiles, trace. What
 * the database keeps of them, so that a run can be repeated and a changed file is noticed.
 */
#pragma once

#include "scenarios/read/scenario.h"

#define SKEP_SOURCE_TEXT_MAX (64u << 10)

struct skep_source {
	uint64_t bytes, checksum; /* FNV-1a of all of it */
	char *text;               /* 0-terminated; NULL: longer than SKEP_SOURCE_TEXT_MAX */
};

/* The path of file i as it was opened, in an order that the scenario alone decides; NULL from the last on. */
const char *skep_scenario_source(const struct skep_scenario *scenario, uint32_t i);

/* What is in the file now. False: it cannot be read. */
bool skep_source_read(const char *path, struct skep_source *ret);
void skep_source_finish(struct skep_source *source);
