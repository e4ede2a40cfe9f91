/* SPDX-License-Identifier: Apache-2.0
 *
 * loss.c - see loss.h.
 */
#include "asking/loss.h"

#include <math.h>

#include "asking/model.h"
#include "asking/tables.h"

#define ALPHA 0.28 /* Hoffmann et al. 2022, eq. 10: beta and B */
#define B 410.7
#define TOKENS_PER_PARAMETER 20.0 /* of the table of Charles et al. 2025 */
#define EVERY 30.0
#define TOKENS_LEAST 5e9 /* of the runs of Hoffmann et al. 2022 */
#define TOKENS_MOST 500e9

/* Of a size between two rows; outside of all the nearest. */
static struct skep_diloco_row between(const struct skep_diloco_row *row, uint32_t count, double parameters)
{
	uint32_t i = 1;
	while (i + 1 < count && row[i].parameters < parameters)
		i++;
	const struct skep_diloco_row *a = &row[i - 1], *b = &row[i];
	double part = log(parameters / a->parameters) / log(b->parameters / a->parameters);
	part = fmin(fmax(part, 0), 1);
	struct skep_diloco_row ret = {.parameters = parameters,
		.data_parallel = a->data_parallel + part * (b->data_parallel - a->data_parallel)};
	for (uint32_t m = 0; m < SKEP_DILOCO_REPLICAS; m++)
		ret.with[m] = a->with[m] + part * (b->with[m] - a->with[m]);
	return ret;
}

/* Least squares of the waste over ln M: waste / ln H = gamma + mu ln M. */
static void fit(const struct skep_diloco_row *row, struct skep_law *law)
{
	double sum_x = 0, sum_y = 0, sum_xx = 0, sum_xy = 0, n = SKEP_DILOCO_REPLICAS, misfit = 0;
	for (uint32_t i = 0; i < SKEP_DILOCO_REPLICAS; i++) {
		double x = i * log(2), rise = (row->with[i] - row->data_parallel) / law->value[SKEP_LAW_AMPLITUDE];
		double y = log1p(rise) / ALPHA / log(EVERY);
		sum_x += x;
		sum_y += y;
		sum_xx += x * x;
		sum_xy += x * y;
	}
	double mu = (n * sum_xy - sum_x * sum_y) / (n * sum_xx - sum_x * sum_x);
	law->value[SKEP_LAW_REPLICAS] = mu;
	law->value[SKEP_LAW_PERIOD] = (sum_y - mu * sum_x) / n;
	for (uint32_t i = 0; i < SKEP_DILOCO_REPLICAS; i++) {
		const double at[SKEP_LAW_AXES] = {law->reference, EVERY, exp2(i), 0, 0};
		double off = skep_law_loss(law, at) / row->with[i] - 1;
		misfit += off * off / n;
	}
	law->misfit = sqrt(misfit);
}

bool skep_ask_loss_make(const struct skep_ask_model *model, double batch_tokens, struct skep_law *ret,
	bool *ret_outside, struct skep_diag *reterr)
{
	struct skep_diloco_row row[SKEP_DILOCO_ROWS_MAX];
	uint32_t count;
	if (!skep_diloco_read(row, &count, reterr))
		return false;
	if (count < 2)
		return skep_fail(reterr, "scenarios/laws/diloco-2025.csv: expected two rows or more");
	*ret_outside =
		model->parameters < 0.9 * row[0].parameters || model->parameters > 1.1 * row[count - 1].parameters;
	const struct skep_diloco_row own = between(row, count, model->parameters);
	*ret = (struct skep_law){
		.reference = TOKENS_PER_PARAMETER * model->parameters, .first = log(model->vocabulary)};
	snprintf(ret->model, sizeof ret->model, "%s", model->name);
	ret->value[SKEP_LAW_EXPONENT] = ALPHA;
	ret->value[SKEP_LAW_AMPLITUDE] = B * pow(ret->reference, -ALPHA);
	ret->value[SKEP_LAW_FLOOR] = own.data_parallel - ret->value[SKEP_LAW_AMPLITUDE];
	if (ret->value[SKEP_LAW_FLOOR] < 0)
		return skep_fail(reterr,
			"--model %.200s: the published law of losses says nothing of %.3g million parameters: take one "
			"of 10 million or more, or write a scenario, whose `train.until` can be steps",
			model->name, model->parameters / 1e6);
	for (int i = 0; i < SKEP_LAW_PARAMETERS; i++) {
		ret->error[i] = NAN;
		snprintf(ret->fixed[i], sizeof ret->fixed[i], "%s",
			i == SKEP_LAW_ONSET || i == SKEP_LAW_STALENESS ? "not published"
			: i == SKEP_LAW_AMPLITUDE || i == SKEP_LAW_EXPONENT
				? "published: Hoffmann et al. 2022"
				: "published: Charles et al. 2025, table 4");
	}
	fit(&own, ret);
	ret->least[SKEP_LAW_EVERY] = ret->least[SKEP_LAW_MEMBERS] = 1;
	ret->least[SKEP_LAW_TOKENS] = TOKENS_LEAST;
	ret->most[SKEP_LAW_TOKENS] = TOKENS_MOST;
	ret->most[SKEP_LAW_EVERY] = 300;
	ret->most[SKEP_LAW_MEMBERS] = 8;
	ret->least[SKEP_LAW_BATCH] = ret->most[SKEP_LAW_BATCH] = batch_tokens;
	return true;
}

double skep_ask_loss_target(const struct skep_law *law, double tokens)
{
	const double at[SKEP_LAW_AXES] = {tokens, 1, 1, 0, 0};
	return skep_law_loss(law, at);
}
