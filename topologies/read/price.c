/* SPDX-License-Identifier: Apache-2.0
 *
 * price.c - reads price histories and adds up what a machine has cost.
 *
 * What is kept true of a series that was read: at least one step, times that never go backwards, prices from 0 that are
 * finite. Where several rows share an instant the last one holds.
 */
#include "topologies/read/price.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/files/csv.h"
#include "base/grow.h"
#include "base/units.h"

#define LINE_MAX_BYTES 4096u
#define NAME_BYTES sizeof((struct skep_price_series *)0)->type
#define PRICE_MAX 1e6
#define HOUR_NS 3600e9

enum column { AWS_TIME, AWS_ZONE, AWS_TYPE, AWS_PRICE, AWS_COLUMNS };

/* ---- cells ------------------------------------------------------------------------------------------------------- */

static bool read_price(struct skep_lines *lines, struct skep_cell cell, double *ret)
{
	return skep_cell_number(lines, cell, "a price in USD per hour", 0, PRICE_MAX, ret);
}

static bool add_step(
	struct skep_price_series *series, struct skep_lines *lines, const char *time_at, struct skep_price_step step)
{
	if (series->steps > 0 && step.at_ns < series->step[series->steps - 1].at_ns) {
		skep_lines_fail(lines, time_at, "time goes backwards: the price before this one is later");
		return false;
	}
	if (!skep_grow(&series->step, series->steps, sizeof *series->step)) {
		skep_lines_fail(lines, time_at, "not enough memory for these prices");
		return false;
	}
	series->step[series->steps++] = step;
	return true;
}

/* ---- the two forms ----------------------------------------------------------------------------------------------- */

static void read_plain(struct skep_lines *lines, struct skep_price_series *series)
{
	struct skep_cell cell[3];
	if (series->type[0] != '\0' || series->zone[0] != '\0') {
		skep_lines_fail(lines, lines->text, "this file has one price for all: leave `type` and `zone` out");
		return;
	}
	while (skep_lines_next_row(lines)) {
		struct skep_price_step step;
		if (skep_lines_cells(lines, cell, 3) != 2) {
			skep_lines_fail(lines, lines->text, "expected two columns: seconds and USD per hour");
			return;
		}
		if (!skep_cell_time(lines, cell[0], SKEP_SECOND_NS, &step.at_ns) ||
			!read_price(lines, cell[1], &step.usd_per_h) || !add_step(series, lines, cell[0].at, step))
			return;
	}
}

static bool cell_time(struct skep_lines *lines, struct skep_cell cell, skep_time *ret)
{
	if (skep_date_parse(cell.at, ret) == cell.length)
		return true;
	skep_lines_fail(lines, cell.at, "expected a time such as 2020-03-15T10:07:33.000Z");
	return false;
}

struct choice {
	const char *key;
	enum column column;
	char *wanted; /* "": the first one that is found, and there must be no other */
	bool given;
};

/* Is it a row of the chosen type and zone? Also false after an error. */
static bool takes(struct skep_lines *lines, const struct choice choice[2], const struct skep_cell *cell)
{
	for (int i = 0; i < 2; i++) {
		struct skep_cell found = cell[choice[i].column];
		char *wanted = choice[i].wanted;
		if (wanted[0] == '\0' && !skep_cell_copy(lines, found, choice[i].key, wanted, NAME_BYTES))
			return false;
		if (skep_cell_is(found, wanted))
			continue;
		if (!choice[i].given)
			skep_lines_fail(lines, found.at, "a second %s in this file: choose one with `%s: %s`",
				choice[i].key, choice[i].key, wanted);
		return false;
	}
	return true;
}

static void read_aws(struct skep_lines *lines, struct skep_price_series *series)
{
	struct skep_cell cell[AWS_COLUMNS + 1];
	skep_time origin_ns = SKEP_TIME_NEVER;
	const struct choice choice[2] = {{"type", AWS_TYPE, series->type, series->type[0] != '\0'},
		{"zone", AWS_ZONE, series->zone, series->zone[0] != '\0'}};
	while (skep_lines_next_row(lines)) {
		struct skep_price_step step;
		if (skep_lines_cells(lines, cell, AWS_COLUMNS + 1) != AWS_COLUMNS) {
			skep_lines_fail(
				lines, lines->text, "expected four columns: timestamp,zone,instance,usd_per_hour");
			return;
		}
		if (!cell_time(lines, cell[AWS_TIME], &step.at_ns) ||
			!read_price(lines, cell[AWS_PRICE], &step.usd_per_h))
			return;
		origin_ns = origin_ns == SKEP_TIME_NEVER ? step.at_ns : origin_ns;
		if (step.at_ns < origin_ns) {
			skep_lines_fail(lines, cell[AWS_TIME].at, "time goes backwards: the first row is later");
			return;
		}
		step.at_ns -= origin_ns;
		if (takes(lines, choice, cell) && !add_step(series, lines, cell[AWS_TIME].at, step))
			return;
		if (lines->diag->set)
			return;
	}
}

static void read_rows(struct skep_lines *lines, struct skep_price_series *series)
{
	bool chosen = series->type[0] != '\0' || series->zone[0] != '\0';
	if (!skep_lines_next_row(lines)) {
		skep_diag_set(lines->diag, lines->path, 0, 0, NULL, "no prices: the file is empty");
		return;
	}
	if (strcmp(lines->text, "time,price") == 0)
		read_plain(lines, series);
	else if (strcmp(lines->text, "timestamp,zone,instance,usd_per_hour") == 0)
		read_aws(lines, series);
	else
		skep_lines_fail(lines, lines->text,
			"expected `time,price` (seconds, USD per hour) or `timestamp,zone,instance,usd_per_hour` as the "
			"first row");
	if (series->steps == 0 && chosen)
		skep_diag_set(lines->diag, lines->path, 0, 0, NULL, "no row of type `%s`%s%s%s", series->type,
			series->zone[0] ? " in zone `" : "", series->zone, series->zone[0] ? "`" : "");
	else if (series->steps == 0)
		skep_diag_set(lines->diag, lines->path, 0, 0, NULL, "no prices: there is no row behind the first");
}

bool skep_price_read(
	const char *path, const char *type, const char *zone, struct skep_price_series *ret, struct skep_diag *reterr)
{
	struct skep_lines lines;
	*ret = (struct skep_price_series){0};
	snprintf(ret->path, sizeof ret->path, "%s", path);
	snprintf(ret->type, sizeof ret->type, "%s", type);
	snprintf(ret->zone, sizeof ret->zone, "%s", zone);
	if (!skep_lines_open(&lines, path, LINE_MAX_BYTES, reterr))
		return false;
	read_rows(&lines, ret);
	skep_lines_close(&lines);
	if (reterr->set)
		skep_price_finish(ret);
	return !reterr->set;
}

void skep_price_finish(struct skep_price_series *series)
{
	free(series->step);
	*series = (struct skep_price_series){0};
}

/* ---- instances --------------------------------------------------------------------------------------------------- */

/* Published by AWS: "Amazon EC2 instance types, accelerated computing". A K80 counts as two GPUs, as it does for AWS and CUDA. */
static const struct {
	const char *type;
	uint32_t gpus;
} INSTANCE[] = {
	{"p2.xlarge", 1},
	{"p2.8xlarge", 8},
	{"p2.16xlarge", 16},
	{"p3.2xlarge", 1},
	{"p3.8xlarge", 4},
	{"p3.16xlarge", 8},
	{"p3dn.24xlarge", 8},
	{"p4d.24xlarge", 8},
	{"p4de.24xlarge", 8},
	{"p5.4xlarge", 1},
	{"p5.48xlarge", 8},
	{"p5e.48xlarge", 8},
	{"p5en.48xlarge", 8},
	{"g4dn.xlarge", 1},
	{"g4dn.2xlarge", 1},
	{"g4dn.4xlarge", 1},
	{"g4dn.8xlarge", 1},
	{"g4dn.16xlarge", 1},
	{"g4dn.12xlarge", 4},
	{"g4dn.metal", 8},
	{"g5.xlarge", 1},
	{"g5.2xlarge", 1},
	{"g5.4xlarge", 1},
	{"g5.8xlarge", 1},
	{"g5.16xlarge", 1},
	{"g5.12xlarge", 4},
	{"g5.24xlarge", 4},
	{"g5.48xlarge", 8},
	{"g6.xlarge", 1},
	{"g6.2xlarge", 1},
	{"g6.4xlarge", 1},
	{"g6.8xlarge", 1},
	{"g6.16xlarge", 1},
	{"g6.12xlarge", 4},
	{"g6.24xlarge", 4},
	{"g6.48xlarge", 8},
};

uint32_t skep_price_instance_gpus(const char *type)
{
	for (size_t i = 0; i < sizeof INSTANCE / sizeof INSTANCE[0]; i++)
		if (strcmp(INSTANCE[i].type, type) == 0)
			return INSTANCE[i].gpus;
	return 0;
}

/* ---- what it costs ----------------------------------------------------------------------------------------------- */

/* Steps at or before an instant. */
static size_t steps_until(const struct skep_price_series *series, skep_time at_ns)
{
	size_t low = 0, high = series->steps;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (series->step[middle].at_ns <= at_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

double skep_price_at(const struct skep_price_series *series, skep_time at_ns)
{
	size_t steps = steps_until(series, at_ns);
	return steps > 0 ? series->step[steps - 1].usd_per_h : NAN;
}

double skep_price_cost_usd(const struct skep_price_series *series, skep_time begin_ns, skep_time end_ns)
{
	double cost = 0;
	size_t i = steps_until(series, begin_ns);
	assert(i > 0 || begin_ns >= end_ns);
	for (skep_time at = begin_ns; at < end_ns; i++) {
		skep_time next = i < series->steps && series->step[i].at_ns < end_ns ? series->step[i].at_ns : end_ns;
		cost += series->step[i - 1].usd_per_h * (double)(next - at) / HOUR_NS;
		at = next;
	}
	return cost;
}
