/* SPDX-License-Identifier: Apache-2.0
 *
 * json.c - see json.h.
 */
#include "scenarios/json.h"

#include <math.h>

void skep_json_add_number(cJSON *to, const char *key, double value)
{
	if (isfinite(value))
		cJSON_AddNumberToObject(to, key, value);
	else
		cJSON_AddNullToObject(to, key);
}

void skep_json_print(cJSON *root, FILE *out)
{
	char *text = cJSON_PrintUnformatted(root);
	if (text)
		fprintf(out, "%s\n", text);
	cJSON_free(text);
	cJSON_Delete(root);
}
