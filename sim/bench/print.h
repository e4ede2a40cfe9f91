/* SPDX-License-Identifier: Apache-2.0
 *
 * print.h - the benchmark's rows as a table, or as JSON, under the machine that they were measured on.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdio.h>

#include "sim/bench/rows.h"

struct skep_bench_machine {
	char processor[128];
	long cores;
	double load; /* processes that ran or waited to run, mean of the last minute */
};

struct skep_bench_machine skep_bench_this_machine(void);

void skep_bench_print_head(const char *version, const struct skep_bench_machine *machine, FILE *out);
void skep_bench_print_row(const struct skep_bench_row *row, const struct skep_bench_figures *figures, FILE *out);

cJSON *skep_bench_row_json(const struct skep_bench_row *row, const struct skep_bench_figures *figures);
/* All rows, which become the object's. False: no memory. */
bool skep_bench_print_json(
	const char *version, const struct skep_bench_machine *machine, cJSON *rows, bool right, FILE *out);
