/* SPDX-License-Identifier: Apache-2.0
 *
 * published.h - plans by the planner of a publication (`plan.method`) in place of the searches: it says the number of stages, the
 * layers of each, and who serves it, and the simulator says what that comes to.
 */
#pragma once

#include "planning/trial/planner.h"

/* The scenario was read; where its plan.method names a publication it is read again with that one's answer as its own cut and
 * allocation, and planner->published is set. Anything but STATUS_DONE: `error` says why. */
enum status skep_published_take(struct skep_planner *planner);
