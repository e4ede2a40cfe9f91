/* SPDX-License-Identifier: Apache-2.0
 *
 * writer.h - how skep writes topology files: numbers carry their unit, and a topology names the files beside it.
 */
#pragma once

#include <stdio.h>

#include "base/files/outputs.h"
#include "base/reader.h"

/* Path of a file beside a topology NAME.yaml: NAME and `ending`. */
void skep_path_beside(const char *path, const char *ending, char *ret, size_t size);

/* "text" */
void skep_put_string(FILE *file, const char *text);
/* `key: "text"` and the end of the line. */
void skep_put_quoted(FILE *file, const char *key, const char *text);

struct skep_unit {
	const char *name;
	double per_base; /* of it in a byte per second, or in a second */
};

/* The largest unit in which half of the cells [n * n], the diagonal left out, are at least 1. */
const struct skep_unit *skep_unit_of_matrix(enum skep_dimension dimension, const double *cell, uint32_t n);

/* Without an exponent, and without zeros at its end; four digits, which is more than a second measurement repeats, or all. */
void skep_put_number(FILE *file, double value, bool exact);
void skep_put_quantity(FILE *file, enum skep_dimension dimension, double value, bool exact); /* with its unit */

/* Of a figure that lies from `low` to `high` but for z deviations of the normal law: that of its logarithm, from 0 to 1; 0: not
 * known. */
#define SKEP_NORMAL_95 1.959963984540054
#define SKEP_NORMAL_99 2.5758293035489004
double skep_deviation_of_interval(double low, double high, double z);
/* "uncertainty: {bandwidth: 0.012, latency: 0.03}" behind `before`, in four digits; a deviation of 0 is left out, and so
 * is all of it where both are. */
void skep_put_uncertainty(FILE *file, const char *before, double bandwidth, double latency);
