/* SPDX-License-Identifier: Apache-2.0
 *
 * sweep_command.h - `skep sweep`.
 */
#ifndef SKEP_SWEEP_COMMAND_H
#define SKEP_SWEEP_COMMAND_H

#include "arguments.h"

/* Says itself what is wrong. */
enum status skep_sweep_command(const struct arguments *arguments);

#endif
