/* SPDX-License-Identifier: Apache-2.0
 *
 * dealing.h - what the directory goes by when it deals microbatches to machines of several kinds (core/directory/dealing.c):
 * their expected speeds, and how many microbatches a fast one may have in flight.
 */
#pragma once

#include "scenarios/read/scenario.h"

/* Fills plan.speed, and for wiring by speed plan.in_flight_limit: as many as the memory of the machine bears in the first stage,
 * up to eight times the mean. Nothing where machines are of one kind. Needs op_time and memory. False: no memory. */
bool skep_dealing_make(struct skep_scenario *s);
