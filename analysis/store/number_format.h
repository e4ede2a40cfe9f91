/* SPDX-License-Identifier: Apache-2.0
 *
 * number_format.h - in which format a run's numbers are, in words: it makes times and messages up to several times smaller or
 * larger, so every result carries it.
 */
#pragma once

#include "scenarios/read/scenario.h"

#define SKEP_NUMBER_FORMAT_BYTES 256u

/* Of a simulated run: what its passes are timed in and its tensors have, such as "fp32", "fp16, mixed precision". Of a real one:
 * what the device ("cpu", "cuda") computes in and, if it was paced, as what. */
void skep_number_format_text(const struct skep_scenario *scenario, const char *world, const char *device, bool pace,
	char ret[SKEP_NUMBER_FORMAT_BYTES]);

/* Why it is another one than the arithmetic's, and how to change it: behind the text, for a person. "": it is not. */
const char *skep_number_format_hint(const struct skep_scenario *scenario);
