/* SPDX-License-Identifier: Apache-2.0
 *
 * transcript.h - what happened in a cluster, as text: one line for each thing, the same for stories and failures.
 */
#pragma once

#include "tests/cluster/cluster.h"

#define TRANSCRIPT_LINE 160

/* Writes one line, without a line end. Workers are w0, w1, ..; #2 behind one is its epoch, unless that is 1. */
void transcript_line(const struct skep_plan *plan, const struct trace *trace, char ret[TRANSCRIPT_LINE]);

uint8_t transcript_message_kind(const char *name); /* 0: no such message */
