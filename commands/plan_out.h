/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_out.h - machines that the chosen allocation of `skep plan` leaves out, and why. For the files of `skep plan` alone.
 */
#ifndef SKEP_COMMANDS_PLAN_OUT_H
#define SKEP_COMMANDS_PLAN_OUT_H

#include <cjson/cJSON.h>

#include "commands/plan_work.h"

/* How many workers an allocation leaves out. */
uint32_t plan_out_count(const struct plan_work *work, const uint32_t *stage_of);

/* A line for each kind of machine; nothing if all serve. */
void plan_out_print(const struct plan_work *work, FILE *out);
void plan_out_add_json(const struct plan_work *work, cJSON *root);
/* One line for the head of a file; nothing if all serve. */
void plan_out_write(const struct plan_work *work, FILE *out);

#endif
