/* SPDX-License-Identifier: Apache-2.0
 *
 * json.c - see json.h. cJSON's numbers are doubles, so counts go in as their digits.
 */
#include "base/json.h"

#include <inttypes.h>
#include <math.h>

cJSON *skep_json_number(double value)
{
	return isfinite(value) ? cJSON_CreateNumber(value) : cJSON_CreateNull();
}

void skep_json_add_number(cJSON *to, const char *key, double value)
{
	cJSON_AddItemToObject(to, key, skep_json_number(value));
}

void skep_json_add_count(cJSON *to, const char *key, uint64_t value)
{
	char digits[24];
	snprintf(digits, sizeof digits, "%" PRIu64, value);
	cJSON_AddRawToObject(to, key, digits);
}

void skep_json_add_text(cJSON *to, const char *key, const char *text)
{
	cJSON_AddItemToObject(to, key, text[0] != '\0' ? cJSON_CreateString(text) : cJSON_CreateNull());
}

cJSON *skep_json_add_object(cJSON *to, const char *key, bool there)
{
	if (there)
		return cJSON_AddObjectToObject(to, key);
	cJSON_AddNullToObject(to, key);
	return NULL;
}

cJSON *skep_json_add_row(cJSON *to)
{
	cJSON *row = cJSON_CreateObject();
	cJSON_AddItemToArray(to, row);
	return row;
}

bool skep_json_print(cJSON *root, FILE *out)
{
	char *text = cJSON_PrintUnformatted(root);
	bool printed = text != NULL && fprintf(out, "%s\n", text) > 0;
	cJSON_free(text);
	cJSON_Delete(root);
	return printed;
}
