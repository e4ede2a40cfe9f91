/* SPDX-License-Identifier: Apache-2.0
 *
 * writer.c - see writer.h.
 */
#include "topologies/import/writer.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* ---- files ------------------------------------------------------------------------------------------------------- */

void skep_path_beside(const char *path, const char *ending, char *ret, size_t size)
{
	snprintf(ret, size, "%.*s%s", (int)(strlen(path) - 5), path, ending);
}

/* ---- texts and numbers ------------------------------------------------------------------------------------------- */

void skep_put_string(FILE *file, const char *text)
{
	putc('"', file);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putc('\\', file);
		putc((uint8_t)*text < 0x20 ? ' ' : *text, file);
	}
	putc('"', file);
}

void skep_put_quoted(FILE *file, const char *key, const char *text)
{
	fprintf(file, "%s: ", key);
	skep_put_string(file, text);
	putc('\n', file);
}

#define UNITS 5u
static const struct skep_unit units[2][UNITS] = {
	[0] = {{"Tbit/s", 8e-12}, {"Gbit/s", 8e-9}, {"Mbit/s", 8e-6}, {"kbit/s", 8e-3}, {"bit/s", 8}},
	[1] = {{"s", 1}, {"ms", 1e3}, {"us", 1e6}, {"us", 1e6}, {"us", 1e6}},
};

void skep_put_number(FILE *file, double value, bool exact)
{
	char text[64];
	int digits = exact ? 10 : 4, before = value > 0 ? (int)floor(log10(value)) + 1 : 1, decimals = digits - before;
	double step = pow(10, decimals < 0 ? -decimals : 0);
	snprintf(text, sizeof text, "%.*f",
		decimals < 0    ? 0
		: decimals > 30 ? 30
				: decimals,
		decimals < 0 ? round(value / step) * step : value);
	size_t length = strlen(text);
	while (strchr(text, '.') && (text[length - 1] == '0' || text[length - 1] == '.')) {
		bool point = text[--length] == '.';
		text[length] = '\0';
		if (point)
			break;
	}
	fputs(text, file);
}

static const struct skep_unit *units_of(enum skep_dimension dimension)
{
	assert(dimension == SKEP_BANDWIDTH || dimension == SKEP_TIME);
	return units[dimension == SKEP_TIME];
}

/* The largest unit of SKEP_BANDWIDTH or SKEP_TIME in which the value is at least 1. */
static const struct skep_unit *unit_of(enum skep_dimension dimension, double value)
{
	const struct skep_unit *unit = units_of(dimension);
	uint32_t i = 0;
	while (i + 1 < UNITS && value * unit[i].per_base < 0.99995)
		i++;
	return &unit[i];
}

void skep_put_quantity(FILE *file, enum skep_dimension dimension, double value, bool exact)
{
	const struct skep_unit *unit = unit_of(dimension, value);
	skep_put_number(file, value * unit->per_base, exact);
	fprintf(file, " %s", unit->name);
}

const struct skep_unit *skep_unit_of_matrix(enum skep_dimension dimension, const double *cell, uint32_t n)
{
	const struct skep_unit *unit = units_of(dimension);
	for (uint32_t u = 0; u < UNITS; u++) {
		size_t large = 0, all = 0;
		for (size_t i = 0; i < (size_t)n * n; i++) {
			bool pair = i / n != i % n;
			all += pair;
			large += pair && cell[i] * unit[u].per_base >= 0.99995;
		}
		if (2 * large >= all)
			return &unit[u];
	}
	return &unit[UNITS - 1];
}

double skep_deviation_of_interval(double low, double high, double z)
{
	if (!(low > 0) || !(high >= low) || !isfinite(high))
		return 0;
	return fmin(1, log(high / low) / (2 * z));
}

void skep_put_uncertainty(FILE *file, const char *before, double bandwidth, double latency)
{
	const bool rate = bandwidth >= 1e-6, time = latency >= 1e-6;
	if (!rate && !time)
		return;
	fprintf(file, "%suncertainty: {", before);
	if (rate)
		fprintf(file, "bandwidth: %.4g", bandwidth);
	if (time)
		fprintf(file, "%slatency: %.4g", rate ? ", " : "", latency);
	putc('}', file);
}
