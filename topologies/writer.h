/* SPDX-License-Identifier: Apache-2.0
 *
 * writer.h - how topology files are written by the program: under its name a file is complete, numbers carry their unit.
 *
 * All files of a topology are begun under names that nobody else has and renamed when every one of them is whole, in the order in
 * which they were begun; so the one that names the others should be begun last, or be put last.
 */
#ifndef SKEP_TOPOLOGIES_WRITER_H
#define SKEP_TOPOLOGIES_WRITER_H

#include <stdio.h>

#include "scenarios/reader/reader.h"

#define SKEP_OUTPUTS_MAX 136 /* a topology, two matrices, and a profile and its table for each kind of device */

struct skep_output {
	FILE *file;
	char path[600], part[608];
};

struct skep_outputs { /* all 0 but diag */
	struct skep_diag *diag;
	struct skep_output output[SKEP_OUTPUTS_MAX];
	uint32_t count;
};

/* NULL: it cannot be written, and diag says why. */
FILE *skep_outputs_begin(struct skep_outputs *outputs, const char *path);
/* All of them into place, or, with diag set, none that is new is left. */
bool skep_outputs_commit(struct skep_outputs *outputs);

/* The one that was begun as number `which` becomes the last to be renamed. */
void skep_outputs_put_last(struct skep_outputs *outputs, uint32_t which);

/* Path of a file beside a topology NAME.yaml: NAME and `ending`. */
void skep_path_beside(const char *path, const char *ending, char *ret, size_t size);
const char *skep_path_base(const char *path);

/* A file that a topology names is looked for in the working folder first. False, with the diagnosis: there is another one of that
 * name, which would be read in place of `path`. */
bool skep_outputs_unshadowed(struct skep_diag *diag, const char *path);

/* `key: "text"` and the end of the line. */
void skep_put_quoted(FILE *file, const char *key, const char *text);

struct skep_unit {
	const char *name;
	double per_base; /* of it in a byte per second, or in a second */
};

/* Of SKEP_BANDWIDTH or SKEP_TIME: the largest in which the value is at least 1. */
const struct skep_unit *skep_unit_of(enum skep_dimension dimension, double value);
/* Of cells [n * n], the diagonal left out: the largest in which half of them are at least 1. */
const struct skep_unit *skep_unit_of_matrix(enum skep_dimension dimension, const double *cell, uint32_t n);

/* Without an exponent, and without zeros at its end; four digits, which is more than a second measurement repeats, or all. */
void skep_put_number(FILE *file, double value, bool exact);
void skep_put_quantity(FILE *file, enum skep_dimension dimension, double value, bool exact); /* with its unit */

#endif
