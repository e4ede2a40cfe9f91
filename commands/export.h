/* SPDX-License-Identifier: Apache-2.0
 *
 * export.h - `skep export`.
 */
#ifndef SKEP_COMMANDS_EXPORT_H
#define SKEP_COMMANDS_EXPORT_H

#include "commands/arguments.h"

/* Says itself what is wrong. */
enum status skep_export_command(const struct arguments *arguments);

#endif
