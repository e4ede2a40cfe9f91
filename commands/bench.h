/* SPDX-License-Identifier: Apache-2.0
 *
 * bench.h - `skep bench`: how fast the simulator is on this machine, and whether its makespans are right.
 */
#ifndef SKEP_COMMANDS_BENCH_H
#define SKEP_COMMANDS_BENCH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct skep_bench_request {
	char *const *word; /* [words] all, small, or what rows.h takes for names; none: all but the long rows */
	uint32_t words, repeat;
	bool json;
	const char *version;
};

/* False: some word names nothing, and it was said. */
bool skep_bench_understood(const struct skep_bench_request *request, FILE *err);

/* False: a makespan is wrong, or a row did not end. */
bool skep_bench_command(const struct skep_bench_request *request, FILE *out, FILE *err);

#endif
