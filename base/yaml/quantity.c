/* SPDX-License-Identifier: Apache-2.0
 *
 * quantity.c - numbers with units. A unit is always written, in the spelling of the table: Mbit/s and MB/s differ by 8,
 * and a guess would be wrong silently.
 */
#include "base/yaml/quantity.h"
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define UNITS_MAX 16

struct unit {
	const char *name;
	double factor; /* to the base unit */
};

static const struct dimension {
	const char *base, *expected;
	struct unit unit[UNITS_MAX];
} dimensions[] = {
	[SKEP_TIME] = {"s", "a time with its unit, such as `100 ms` (ns us ms s min h d)",
		{{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"min", 60}, {"h", 3600}, {"d", 86400},
			{"\xc2\xb5s", 1e-6}, {"\xce\xbcs", 1e-6}}}, /* the micro sign, and the Greek letter */
	[SKEP_BYTES] = {"B", "a size with its unit, such as `16 GiB` (B kB MB GB TB KiB MiB GiB TiB)",
		{{"B", 1}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"KiB", 0x1p10}, {"MiB", 0x1p20},
			{"GiB", 0x1p30}, {"TiB", 0x1p40}}},
	[SKEP_BANDWIDTH] = {"B/s",
		"a bandwidth with its unit, such as `200 Mbit/s` (bit/s kbit/s Mbit/s Gbit/s Tbit/s B/s kB/s MB/s GB/s "
		"TB/s KiB/s MiB/s GiB/s)",
		{{"bit/s", 0.125}, {"kbit/s", 0.125e3}, {"Mbit/s", 0.125e6}, {"Gbit/s", 0.125e9}, {"Tbit/s", 0.125e12},
			{"B/s", 1}, {"kB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}, {"TB/s", 1e12}, {"KiB/s", 0x1p10},
			{"MiB/s", 0x1p20}, {"GiB/s", 0x1p30}}},
	[SKEP_SPEED] = {"FLOP/s",
		"a speed with its unit, such as `65 TFLOP/s` (FLOP/s MFLOP/s GFLOP/s TFLOP/s PFLOP/s)",
		{{"FLOP/s", 1}, {"MFLOP/s", 1e6}, {"GFLOP/s", 1e9}, {"TFLOP/s", 1e12}, {"PFLOP/s", 1e15}}},
	[SKEP_PRICE] = {"USD/h", "a price with its unit, such as `0.35 USD/h` (USD/h)", {{"USD/h", 1}}},
	[SKEP_EGRESS] = {"USD/B",
		"a price of traffic with its unit, such as `0.08 USD/GB` (USD/MB USD/GB USD/TB USD/MiB USD/GiB USD/TiB)",
		{{"USD/GB", 1e-9}, {"USD/MB", 1e-6}, {"USD/TB", 1e-12}, {"USD/MiB", 0x1p-20}, {"USD/GiB", 0x1p-30},
			{"USD/TiB", 0x1p-40}}},
	[SKEP_PART] = {"", "a part with its unit, such as `0.1 %` (%)", {{"%", 0.01}}},
};

/* Spellings of other programs, and what is said of them in place of the list. */
static const struct {
	const char *word, *expected;
} elsewhere[] = {{"bps", "a bandwidth in `bit/s`, as bps is written here"},
	{"kbps", "a bandwidth in `kbit/s`, as kbps is written here"},
	{"Kbps", "a bandwidth in `kbit/s`, as Kbps is written here"},
	{"Mbps", "a bandwidth in `Mbit/s`, as Mbps is written here"},
	{"mbps", "a bandwidth in `Mbit/s`, as mbps is written here"},
	{"Gbps", "a bandwidth in `Gbit/s`, as Gbps is written here"},
	{"gbps", "a bandwidth in `Gbit/s`, as gbps is written here"},
	{"Tbps", "a bandwidth in `Tbit/s`, as Tbps is written here"},
	{"MBps", "a bandwidth in `MB/s`, as MBps is written here"},
	{"GBps", "a bandwidth in `GB/s`, as GBps is written here"},
	{"Mbit", "a bandwidth in `Mbit/s`, as Mbit is written here"},
	{"Gbit", "a bandwidth in `Gbit/s`, as Gbit is written here"}};

void skep_quantity_bound(const char *text, enum skep_dimension dimension, double bound, char *ret, size_t size)
{
	const struct dimension *d = &dimensions[dimension];
	const struct unit *best = dimension == SKEP_EGRESS ? &d->unit[0] : NULL; /* none writes prices by the byte */
	bool bits = dimension == SKEP_BANDWIDTH && strstr(text, "bit") != NULL;
	for (uint32_t i = 0; bits && i < UNITS_MAX && d->unit[i].name; i++)
		if (strstr(d->unit[i].name, "bit") && (!best || bound >= d->unit[i].factor))
			best = &d->unit[i];
	if (best)
		snprintf(ret, size, "%.9g %s", bound / best->factor, best->name);
	else
		snprintf(ret, size, "%.9g%s%s", bound, d->base[0] ? " " : "", d->base);
}

bool skep_quantity_parse(const char *text, enum skep_dimension dimension, double *ret, const char **reterr_expected)
{
	const struct dimension *d = &dimensions[dimension];
	const char *unit;
	double number;
	*reterr_expected = d->expected;
	if (!skep_number_parse(text, &unit, &number))
		return false;
	unit += strspn(unit, " ");
	for (uint32_t i = 0; i < UNITS_MAX && d->unit[i].name; i++) {
		if (strcmp(unit, d->unit[i].name) != 0)
			continue;
		*ret = number * d->unit[i].factor;
		return isfinite(*ret);
	}
	for (size_t i = 0; dimension == SKEP_BANDWIDTH && i < sizeof elsewhere / sizeof elsewhere[0]; i++)
		if (strcmp(unit, elsewhere[i].word) == 0)
			*reterr_expected = elsewhere[i].expected;
	return false;
}
