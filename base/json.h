/* SPDX-License-Identifier: Apache-2.0
 *
 * json.h - how JSON is written for users: one object on one line, null for what has no value, numbers with as many digits as
 * give back the same double.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* null: not finite. */
cJSON *skep_json_number(double value);
void skep_json_add_number(cJSON *to, const char *key, double value);
/* Whole, with all of its 64 bits. */
void skep_json_add_count(cJSON *to, const char *key, uint64_t value);
/* null: "". */
void skep_json_add_text(cJSON *to, const char *key, const char *text);

/* An empty object; null, and NULL is returned, of what there is not. */
cJSON *skep_json_add_object(cJSON *to, const char *key, bool there);
/* An empty object at the end of an array. */
cJSON *skep_json_add_row(cJSON *to);

/* Prints it with the end of its line, and deletes it. False: not enough memory. */
bool skep_json_print(cJSON *root, FILE *out);
