/* SPDX-License-Identifier: Apache-2.0
 *
 * describe_step.c - see describe_step.h.
 */
#include "scenarios/describe/describe_step.h"

#include "base/json.h"
#include "base/layout.h"

void skep_describe_step(const struct skep_described_step *step, bool delayed, FILE *out)
{
	char whole[SKEP_TEXT_BYTES], passes[SKEP_TEXT_BYTES], sum[SKEP_TEXT_BYTES], rest[SKEP_TEXT_BYTES];
	fprintf(out, "\nexpected: %s a step: passes %s, reductions %s%s, updates and the directory %s\n",
		skep_time_text(step->step_s, whole), skep_time_text(step->passes_s, passes),
		skep_time_text(step->reduction_s, sum), delayed ? " beside them" : "",
		skep_time_text(step->update_s + step->turn_s, rest));
	fprintf(out, "          busiest in the passes, %.0f %% of the time: %s%s\n", 100 * step->busy, step->bound,
		step->starved ? "; more microbatches in flight would help" : "");
	fprintf(out, "          (means without losses or joins; `skep sim` plays it through)\n");
}

void skep_describe_step_json(const struct skep_described_step *step, cJSON *root)
{
	cJSON *row = step ? cJSON_AddObjectToObject(root, "expected") : cJSON_AddNullToObject(root, "expected");
	if (!step)
		return;
	skep_json_add_number(row, "step_s", step->step_s);
	skep_json_add_number(row, "passes_s", step->passes_s);
	skep_json_add_number(row, "reduction_s", step->reduction_s);
	skep_json_add_number(row, "update_s", step->update_s);
	skep_json_add_number(row, "directory_s", step->turn_s);
	skep_json_add_number(row, "busy", step->busy);
	cJSON_AddStringToObject(row, "busiest", step->bound);
	cJSON_AddBoolToObject(row, "starved", step->starved);
}
