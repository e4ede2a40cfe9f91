/* SPDX-License-Identifier: Apache-2.0
 *
 * export_database.h - the kinds of `skep export` that write what the database holds.
 */
#pragma once

#include "commands/arguments.h"

/* Is the first operand one of them: timeline, runs, rounds? */
bool skep_export_is_database(const struct arguments *arguments);
enum status skep_export_database(const struct arguments *arguments);
