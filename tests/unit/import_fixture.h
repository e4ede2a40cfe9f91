/* SPDX-License-Identifier: Apache-2.0
 *
 * import_fixture.h - what the tests of the importers share: a folder of their own, imports that must do and imports that must be
 * refused at a place.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "topologies/import/import.h"
#include "topologies/read/topology.h"

#define DATA "tests/data/"

static char folder[64], output[128], scratch[128];

static inline int enter(void **state)
{
	(void)state;
	snprintf(folder, sizeof folder, "/tmp/skep-import-XXXXXX");
	if (mkdtemp(folder) == NULL)
		return 1;
	snprintf(output, sizeof output, "%s/out.yaml", folder);
	snprintf(scratch, sizeof scratch, "%s/in.txt", folder);
	return 0;
}

static inline int leave(void **state)
{
	(void)state;
	char command[128];
	snprintf(command, sizeof command, "rm -rf '%s'", folder);
	return system(command);
}

static inline struct skep_import_options defaults(enum skep_import_format format)
{
	struct skep_import_options o = skep_import_defaults();
	o.format = format;
	o.output = output;
	return o;
}

/* Files stand in a list that ends in NULL. */
static inline bool run(
	struct skep_import_options *o, char **file, struct skep_import_report *report, struct skep_diag *diag)
{
	o->file = file;
	for (o->files = 0; file[o->files]; o->files++)
		;
	*diag = (struct skep_diag){0};
	bool ok = skep_import(o, report, diag);
	assert_true(ok == !diag->set);
	return ok;
}

static inline struct skep_topology import_good(
	struct skep_import_options *o, char **file, struct skep_import_report *report)
{
	struct skep_topology t = {0};
	struct skep_diag diag;
	struct skep_import_report own;
	if (!run(o, file, report ? report : &own, &diag) || !skep_topology_read(output, &t, &diag))
		fail_msg("%s:%u:%u: %s", diag.file, diag.line, diag.column, diag.message);
	return t;
}

static inline uint32_t files_left(void)
{
	char pattern[160];
	glob_t found;
	snprintf(pattern, sizeof pattern, "%s/out*", folder);
	uint32_t count = glob(pattern, 0, NULL, &found) == 0 ? (uint32_t)found.gl_pathc : 0;
	globfree(&found);
	return count;
}

static inline void clear(void)
{
	char command[160];
	snprintf(command, sizeof command, "rm -f '%s'/out*", folder);
	assert_int_equal(system(command), 0);
}

/* Refused, at that place (line 0: the file as a whole), and nothing is left behind. */
static inline void refuse(
	struct skep_import_options *o, char **file, uint32_t line, uint32_t column, const char *phrase)
{
	struct skep_diag diag;
	struct skep_import_report report;
	clear();
	assert_false(run(o, file, &report, &diag));
	if (strstr(diag.message, phrase) == NULL || diag.line != line || diag.column != column)
		fail_msg("%u:%u: %s\nexpected %u:%u: %s", diag.line, diag.column, diag.message, line, column, phrase);
	assert_int_equal(files_left(), 0);
}

static inline void write_text(const char *text, size_t size)
{
	FILE *file = fopen(scratch, "w");
	assert_non_null(file);
	fwrite(text, 1, size, file);
	fclose(file);
}

static inline void refuse_text(
	struct skep_import_options *o, const char *text, uint32_t line, uint32_t column, const char *phrase)
{
	char *file[] = {scratch, NULL};
	write_text(text, strlen(text));
	refuse(o, file, line, column, phrase);
}

/* Read back: a number of four digits, in bits per second or in seconds, and the nearest one to what was measured. */
static inline void near(double value, double expected)
{
	double unit = expected > 1 ? 8 : 1, digit = pow(10, floor(log10(unit * expected)) - 3),
	       four = unit * value / digit;
	if (!(fabs(unit * (value - expected)) <= 0.500001 * digit) || !(fabs(four - round(four)) < 1e-6))
		fail_msg("%.15g, not %.15g in four digits", value, expected);
}

static inline void check_pair(const struct skep_topology *t, uint32_t from, uint32_t to, double bps, double latency_ms)
{
	struct skep_pair pair = skep_topology_pair(t, from, to);
	near(pair.capacity_Bps, bps / 8);
	near(pair.latency_s, latency_ms * 1e-3);
}
