/* SPDX-License-Identifier: Apache-2.0
 *
 * recuts.h - candidates of a plan that cut the model elsewhere.
 */
#pragma once

#include "planning/trial/planner.h"

/* Behind the searches and their trials: looks for other cuts, where the scenario leaves that open, and simulates the best few of
 * them. False: no memory. */
bool skep_recuts_run(struct skep_planner *planner);
