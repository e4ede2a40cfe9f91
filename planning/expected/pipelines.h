/* SPDX-License-Identifier: Apache-2.0
 *
 * pipelines.h - how long the microbatches of a flush take in fixed pipelines, each of which has its own.
 */
#pragma once

#include "planning/expected/loads.h"

/* Of `flush` microbatches of all pipelines, into trip_s, pace_s, bound, from, to, flow_s and busy: of the pipeline that takes
 * longest. */
void skep_pipelines_flow(struct skep_loads *loads, struct skep_expected *expected, double flush);
