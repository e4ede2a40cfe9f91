/* SPDX-License-Identifier: Apache-2.0
 *
 * sweep.h - all combinations of some values, each a simulated run, into one database.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

struct skep_sweep_request {
	const char *path;        /* of the scenario */
	const char *const *set;  /* [sets] what --set says */
	const char *const *vary; /* [varies] KEY=A,B,C */
	uint32_t sets, varies;
	bool has_seed;
	uint64_t seed;
	const char *seeds; /* A..B; NULL: not given */
	const char *db;
	uint32_t jobs; /* 0: not given */
	bool details;  /* keep all operations and notes of each run */
	bool json, quiet;
};

/* Says itself what is wrong, and prints the table. */
enum status skep_sweep(const struct skep_sweep_request *request);
