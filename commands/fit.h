/* SPDX-License-Identifier: Apache-2.0
 *
 * fit.h - `skep fit`.
 */
#ifndef SKEP_COMMANDS_FIT_H
#define SKEP_COMMANDS_FIT_H

#include "commands/arguments.h"

/* Says itself what is wrong. */
enum status skep_fit_command(const struct arguments *arguments);

#endif
