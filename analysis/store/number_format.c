/* SPDX-License-Identifier: Apache-2.0
 *
 * number_format.c - see number_format.h.
 */
#include "analysis/store/number_format.h"

#include <stdio.h>
#include <string.h>

#include "scenarios/describe/describe_groups.h"

void skep_number_format_text(const struct skep_scenario *scenario, const char *world, const char *device, bool pace,
	char ret[SKEP_NUMBER_FORMAT_BYTES])
{
	char timed[SKEP_NUMBER_FORMAT_BYTES - 64];
	const char *computed = strcmp(device, "cuda") == 0 ? "bf16 products, fp32 sums" : "fp32";
	skep_compute_format_text(scenario, timed, sizeof timed);
	if (strcmp(world, "sim") == 0)
		snprintf(ret, SKEP_NUMBER_FORMAT_BYTES, "%s", timed);
	else if (pace && strcmp(computed, timed) != 0)
		snprintf(ret, SKEP_NUMBER_FORMAT_BYTES, "%s, paced as %s", computed, timed);
	else
		snprintf(ret, SKEP_NUMBER_FORMAT_BYTES, "%s", computed);
}

const char *skep_number_format_hint(const struct skep_scenario *scenario)
{
	return skep_compute_format_is_chosen(scenario) ? " (arithmetic: real is in fp32; cluster.compute.type sets it)"
	                                               : "";
}
