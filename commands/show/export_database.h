/* SPDX-License-Identifier: Apache-2.0
 *
 * export_database.h - the kinds of `skep export` that write what the database holds.
 */
#ifndef SKEP_COMMANDS_SHOW_EXPORT_DATABASE_H
#define SKEP_COMMANDS_SHOW_EXPORT_DATABASE_H

#include "commands/arguments.h"

/* Is the first operand one of them: timeline, runs, rounds? */
bool skep_export_is_database(const struct arguments *arguments);
enum status skep_export_database(const struct arguments *arguments);

#endif
