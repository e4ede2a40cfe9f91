/* SPDX-License-Identifier: Apache-2.0
 *
 * plan.h - `skep plan`: who should serve which stage, how much better that is, and a scenario that says so.
 */
#ifndef SKEP_COMMANDS_PLAN_H
#define SKEP_COMMANDS_PLAN_H

#include "commands/arguments.h"

enum status skep_plan_command(const struct arguments *arguments);

#endif
