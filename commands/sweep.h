/* SPDX-License-Identifier: Apache-2.0
 *
 * sweep.h - `skep sweep`.
 */
#ifndef SKEP_COMMANDS_SWEEP_H
#define SKEP_COMMANDS_SWEEP_H

#include "commands/arguments.h"

/* Says itself what is wrong. */
enum status skep_sweep_command(const struct arguments *arguments);

#endif
