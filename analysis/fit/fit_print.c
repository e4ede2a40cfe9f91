/* SPDX-License-Identifier: Apache-2.0
 *
 * fit_print.c - a fitted law for a person, and as one JSON object.
 */
#include <math.h>

#include "analysis/fit/fit.h"
#include "base/json.h"

static const char *const UNIT[SKEP_LAW_PARAMETERS] = {"", "", "", " tokens", "", "", ""};
static const char *const SAYS[SKEP_LAW_PARAMETERS] = {"what no training takes away",
	"how far above that after the most tokens", "exponent of the tokens", "before the fall is a power law",
	"exponent of H", "exponent of replicas, times ln H", "exponent of 1 + staleness"};
static const char *const AXIS[SKEP_LAW_AXES] = {"tokens", "H", "replicas", "staleness", "tokens a step"};
static const char *const KEY[SKEP_LAW_AXES] = {"tokens", "every", "replicas", "staleness", "batch"};

void skep_fit_percent(double share, char *ret, size_t size)
{
	snprintf(ret, size, fabs(share) < 0.1 ? "%.2g %%" : "%.0f %%", 100 * share);
}

static void print_parameter(const struct skep_law *law, int i, FILE *out)
{
	fprintf(out, "  %-6s ", skep_law_name((enum skep_law_parameter)i));
	if (law->fixed[i][0] != '\0')
		fprintf(out, "%.4g%s, not fitted: %s\n", law->value[i], UNIT[i], law->fixed[i]);
	else
		fprintf(out, "%.4g ± %.2g%s (%s)\n", law->value[i], law->error[i], UNIT[i], SAYS[i]);
}

void skep_fit_print(const struct skep_law *law, const struct skep_loss_points *points, FILE *out)
{
	struct skep_fit_run run[SKEP_FIT_RUNS_MAX];
	char misfit[32], worst[32];
	skep_law_judge(law, points, run);
	skep_fit_percent(law->misfit, misfit, sizeof misfit);
	fprintf(out, "law of %s: %u run%s, %u points, misfit %s\n", law->model, points->runs,
		points->runs == 1 ? "" : "s", points->count, misfit);
	fprintf(out,
		"  L = E + A ((D' + D0) / (D1 + D0))^-alpha, D' = D / (H^gamma M^(mu ln H) (1 + s)^delta), "
		"D1 = %.4g; at most %.4g\n",
		law->reference, law->first);
	for (int i = 0; i < SKEP_LAW_PARAMETERS; i++)
		print_parameter(law, i, out);
	fprintf(out, "  fitted in");
	for (int axis = 0; axis < SKEP_LAW_AXES; axis++) {
		fprintf(out, "%s %s %.4g", axis ? "," : "", AXIS[axis], law->least[axis]);
		if (law->most[axis] > law->least[axis])
			fprintf(out, " to %.4g", law->most[axis]);
	}
	fprintf(out, "\n");
	for (uint32_t i = 0; i < points->runs; i++) {
		skep_fit_percent(run[i].misfit, misfit, sizeof misfit);
		skep_fit_percent(run[i].worst, worst, sizeof worst);
		fprintf(out, "  run %lld: misfit %s, at most %s%s (after %.3g tokens)\n", (long long)points->run[i],
			misfit, run[i].worst >= 0 ? "+" : "", worst, run[i].worst_tokens);
	}
}

static void add_parameter(const struct skep_law *law, int i, cJSON *object)
{
	cJSON *parameter = cJSON_AddObjectToObject(object, skep_law_name((enum skep_law_parameter)i));
	cJSON_AddNumberToObject(parameter, "value", law->value[i]);
	if (law->fixed[i][0] != '\0') {
		cJSON_AddNullToObject(parameter, "error");
		cJSON_AddStringToObject(parameter, "fixed", law->fixed[i]);
	} else {
		cJSON_AddNumberToObject(parameter, "error", law->error[i]);
		cJSON_AddNullToObject(parameter, "fixed");
	}
}

void skep_fit_print_json(const struct skep_law *law, const struct skep_loss_points *points, FILE *out)
{
	struct skep_fit_run run[SKEP_FIT_RUNS_MAX];
	cJSON *object = cJSON_CreateObject(), *part = NULL;
	skep_law_judge(law, points, run);
	cJSON_AddStringToObject(object, "model", law->model);
	cJSON_AddNumberToObject(object, "reference_tokens", law->reference);
	cJSON_AddNumberToObject(object, "points", points->count);
	cJSON_AddNumberToObject(object, "misfit", law->misfit);
	part = cJSON_AddObjectToObject(object, "parameters");
	for (int i = 0; i < SKEP_LAW_PARAMETERS; i++)
		add_parameter(law, i, part);
	part = cJSON_AddObjectToObject(object, "fitted");
	for (int axis = 0; axis < SKEP_LAW_AXES; axis++)
		cJSON_AddItemToObject(
			part, KEY[axis], cJSON_CreateDoubleArray((double[]){law->least[axis], law->most[axis]}, 2));
	part = cJSON_AddArrayToObject(object, "runs");
	for (uint32_t i = 0; i < points->runs; i++) {
		cJSON *row = cJSON_CreateObject();
		cJSON_AddNumberToObject(row, "run", (double)points->run[i]);
		cJSON_AddNumberToObject(row, "points", run[i].points);
		cJSON_AddNumberToObject(row, "misfit", run[i].misfit);
		cJSON_AddNumberToObject(row, "worst", run[i].worst);
		cJSON_AddItemToArray(part, row);
	}
	skep_json_print(object, out);
}
