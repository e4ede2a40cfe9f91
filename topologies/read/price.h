/* SPDX-License-Identifier: Apache-2.0
 *
 * price.h - what a machine costs per hour, as it changes with time: a step function, read from a file.
 */
#pragma once

#include "base/reader.h"
#include "core/skep.h"

struct skep_price_step { /* from then on, until the next one; the last one for ever */
	skep_time at_ns; /* since the origin: 0 of a file with seconds, the first row of one with dates */
	double usd_per_h;
};

struct skep_price_series {
	char path[512];
	char type[64], zone[64]; /* as chosen; "": the file has one */
	struct skep_price_step *step;
	size_t steps;
};

/* Two forms, told apart by the first row: `time,price` (seconds that never go backwards, USD per hour), and the log of AWS
 * spot prices `timestamp,zone,instance,usd_per_hour`, of which the rows of one type and zone are taken. Streamed. On failure
 * *ret is empty. */
bool skep_price_read(
	const char *path, const char *type, const char *zone, struct skep_price_series *ret, struct skep_diag *reterr);
void skep_price_finish(struct skep_price_series *series);

/* GPUs of an instance type of AWS, as published; 0: not a type that is known here. */
uint32_t skep_price_instance_gpus(const char *type);

/* At an instant; NAN: before the first step. */
double skep_price_at(const struct skep_price_series *series, skep_time at_ns);
/* The cost of a machine from begin_ns to end_ns. */
double skep_price_cost_usd(const struct skep_price_series *series, skep_time begin_ns, skep_time end_ns);
