/* SPDX-License-Identifier: Apache-2.0
 *
 * fit_print.c - a fitted law for a person, and as one JSON object.
 */
#include <math.h>
#include <string.h>

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

#define MISFIT_MOST 0.1
#define EXPONENT_MOST 0.2 /* of H, of replicas and of staleness: twice the number changes the tokens by 15 % */

static bool is_open(const struct skep_law *law, int i)
{
	if (law->fixed[i][0] != '\0' || i == SKEP_LAW_FLOOR || i == SKEP_LAW_ONSET)
		return false;
	if (i == SKEP_LAW_AMPLITUDE || i == SKEP_LAW_EXPONENT)
		return !(law->error[i] <= fabs(law->value[i]) / 2);
	return !(law->error[i] <= EXPONENT_MOST);
}

/* Names of the parameters that the points leave open. False: there are none. */
static bool name_open(const struct skep_law *law, char *ret, size_t size)
{
	ret[0] = '\0';
	for (int i = 0; i < SKEP_LAW_PARAMETERS; i++) {
		size_t used = strlen(ret);
		if (is_open(law, i) && used < size)
			snprintf(ret + used, size - used, "%s%s", used ? ", " : "",
				skep_law_name((enum skep_law_parameter)i));
	}
	return ret[0] != '\0';
}

static void print_verdict(const struct skep_law *law, FILE *out)
{
	char open[128];
	bool weak = name_open(law, open, sizeof open), far = law->misfit > MISFIT_MOST;
	if (!weak && !far)
		fputs("  verdict: usable within what it was fitted in\n", out);
	if (weak)
		fprintf(out, "  verdict: weak: these points leave %s open: fit longer runs, or more of them\n", open);
	if (far)
		fprintf(out, "  verdict: weak: the law misses the points by more than %.0f %%: they do not follow it\n",
			100 * MISFIT_MOST);
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
	print_verdict(law, out);
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
	char open[128];
	skep_law_judge(law, points, run);
	cJSON_AddStringToObject(object, "model", law->model);
	cJSON_AddNumberToObject(object, "reference_tokens", law->reference);
	cJSON_AddNumberToObject(object, "points", points->count);
	cJSON_AddNumberToObject(object, "misfit", law->misfit);
	cJSON_AddStringToObject(
		object, "verdict", name_open(law, open, sizeof open) || law->misfit > MISFIT_MOST ? "weak" : "usable");
	cJSON_AddStringToObject(object, "open", open);
	part = cJSON_AddObjectToObject(object, "parameters");
	for (int i = 0; i < SKEP_LAW_PARAMETERS; i++)
		add_parameter(law, i, part);
	part = cJSON_AddObjectToObject(object, "fitted");
	for (int axis = 0; axis < SKEP_LAW_AXES; axis++)
		cJSON_AddItemToObject(
			part, KEY[axis], cJSON_CreateDoubleArray((double[]){law->least[axis], law->most[axis]}, 2));
	part = cJSON_AddArrayToObject(object, "runs");
	for (uint32_t i = 0; i < points->runs; i++) {
		cJSON *row = skep_json_add_row(part);
		cJSON_AddNumberToObject(row, "run", (double)points->run[i]);
		cJSON_AddNumberToObject(row, "points", run[i].points);
		cJSON_AddNumberToObject(row, "misfit", run[i].misfit);
		cJSON_AddNumberToObject(row, "worst", run[i].worst);
	}
	skep_json_print(object, out);
}
