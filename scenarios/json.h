/* SPDX-License-Identifier: Apache-2.0
 *
 * json.h - how the commands write their JSON: one object on one line, with null for numbers that there are not.
 */
#ifndef SKEP_SCENARIOS_JSON_H
#define SKEP_SCENARIOS_JSON_H

#include <cjson/cJSON.h>
#include <stdio.h>

/* null: not finite, which JSON has no word for. */
void skep_json_add_number(cJSON *to, const char *key, double value);

/* Prints it with the end of its line, and deletes it. */
void skep_json_print(cJSON *root, FILE *out);

#endif
