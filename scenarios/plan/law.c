/* SPDX-License-Identifier: Apache-2.0
 *
 * law.c - see law.h.
 */
#include "scenarios/plan/law.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const NAME[SKEP_LAW_PARAMETERS] = {"E", "A", "alpha", "D0", "gamma", "mu", "delta"};
static const char *const AXIS[SKEP_LAW_AXES] = {"tokens", "every", "replicas", "staleness", "batch"};
static const char *const SIZE = "parameters";

#define LOSS_MOST 1e9 /* either way */

const char *skep_law_name(enum skep_law_parameter parameter)
{
	return NAME[parameter];
}

/* Training begins with D = 0, where a power that falls with D is infinite: then the first loss is the least. */
static double sum_of_powers(const struct skep_law *law, const double *at)
{
	double sum = law->value[SKEP_LAW_FLOOR];
	for (uint32_t i = 0; i < law->terms; i++) {
		const struct skep_law_term *t = &law->term[i];
		double product = t->factor * pow(law->size, t->size_power);
		for (int axis = 0; axis < SKEP_LAW_AXES; axis++)
			if (t->power[axis] != 0) /* staleness begins at 0 */
				product *= pow(at[axis] + (axis == SKEP_LAW_STALE), t->power[axis]);
		sum += product;
	}
	return fmax(fmin(sum, law->first), -LOSS_MOST);
}

double skep_law_loss(const struct skep_law *law, const double *at)
{
	const double *p = law->value;
	if (law->terms > 0)
		return sum_of_powers(law, at);
	double period = log(at[SKEP_LAW_EVERY]);
	double waste = p[SKEP_LAW_PERIOD] * period + p[SKEP_LAW_REPLICAS] * period * log(at[SKEP_LAW_MEMBERS]) +
	               p[SKEP_LAW_STALENESS] * log1p(at[SKEP_LAW_STALE]);
	double tokens = at[SKEP_LAW_TOKENS] * exp(-waste);
	double part = (tokens + p[SKEP_LAW_ONSET]) / (law->reference + p[SKEP_LAW_ONSET]);
	return fmin(law->first, p[SKEP_LAW_FLOOR] + p[SKEP_LAW_AMPLITUDE] * pow(part, -p[SKEP_LAW_EXPONENT]));
}

bool skep_law_leaves_axis(const struct skep_law *law, enum skep_law_axis axis, double value)
{
	double margin = 1e-6 * fabs(value);
	if (axis == SKEP_LAW_TOKENS) /* every run begins with none */
		return value > law->most[axis] + margin;
	return value < law->least[axis] - margin || value > law->most[axis] + margin;
}

bool skep_law_leaves_model(const struct skep_law *law, const char *model)
{
	bool small = law->size<law->size_least *(1 - 1e-6), large = law->size> law->size_most * (1 + 1e-6);
	return law->terms > 0 ? small || large : strcmp(model, law->model) != 0;
}

bool skep_law_leaves(const struct skep_law *law, const char *model, const double *at, char *ret, size_t size)
{
	static const char *const text[SKEP_LAW_AXES] = {"%s%.4g tokens (fitted: %.4g", "%sH = %g (fitted: %g",
		"%s%g replicas (fitted: %g", "%sstaleness %g (fitted: %g", "%sa batch of %g tokens (fitted: %g"};
	size_t used = 0;
	ret[0] = '\0';
	bool other = skep_law_leaves_model(law, model);
	if (other && law->terms > 0)
		used = (size_t)snprintf(ret, size, "%.4g parameters (fitted: %.4g to %.4g)", law->size, law->size_least,
			law->size_most);
	if (other && law->terms == 0)
		used = (size_t)snprintf(ret, size, "model %.60s (fitted: %.60s)", model, law->model);
	for (int axis = 0; axis < SKEP_LAW_AXES; axis++) {
		if (!skep_law_leaves_axis(law, (enum skep_law_axis)axis, at[axis]) || used >= size)
			continue;
		used += (size_t)snprintf(
			ret + used, size - used, text[axis], used ? "; " : "", at[axis], law->least[axis]);
		if (used < size && law->most[axis] > law->least[axis])
			used += (size_t)snprintf(ret + used, size - used, " to %.4g", law->most[axis]);
		if (used < size)
			used += (size_t)snprintf(ret + used, size - used, ")");
	}
	return used > 0;
}

/* ---- the file --------------------------------------------------------------------------------------------------- */

static void read_parameter(struct skep_reader *r, const struct skep_yaml_node *map, int i, struct skep_law *law)
{
	static const double low[SKEP_LAW_PARAMETERS] = {0, 1e-300, 1e-6, 0, -10, -10, -10};
	static const double high[SKEP_LAW_PARAMETERS] = {1e9, 1e9, 100, 1e18, 10, 10, 10};
	const struct skep_yaml_node *entry = skep_read_map(r, map, NAME[i], true);
	law->value[i] = skep_read_number(r, entry, "value", low[i], high[i], NAN);
	law->error[i] = NAN;
	if (skep_read_has(r, entry, "fixed"))
		snprintf(law->fixed[i], sizeof law->fixed[i], "%s", skep_read_string(r, entry, "fixed", NULL));
	else
		law->error[i] = skep_read_number(r, entry, "error", 0, 1e18, NAN);
	skep_reader_close_map(r, entry);
}

static void read_range(struct skep_reader *r, const struct skep_yaml_node *map, const char *key, double low,
	double *ret_least, double *ret_most)
{
	const struct skep_yaml_node *pair = skep_read_list(r, map, key, true);
	if (r->diag->set)
		return;
	if (skep_yaml_length(pair) != 2) {
		skep_reader_fail(r, pair, NULL, "fitted.%s: expected the least and the most, as [1, 64]", key);
		return;
	}
	*ret_least = skep_read_number(r, skep_yaml_item(pair, 0), NULL, low, 1e18, NAN);
	*ret_most = skep_read_number(r, skep_yaml_item(pair, 1), NULL, low, 1e18, NAN);
	if (!r->diag->set && *ret_most < *ret_least)
		skep_reader_fail(r, skep_yaml_item(pair, 1), NULL,
			"fitted.%s: the most, %g, is less than the least, %g", key, *ret_most, *ret_least);
}

static void read_term(struct skep_reader *r, const struct skep_yaml_node *map, struct skep_law_term *t)
{
	t->factor = skep_read_number(r, map, "factor", -1e300, 1e300, NAN);
	for (int axis = 0; axis < SKEP_LAW_AXES; axis++)
		t->power[axis] = skep_read_number(r, map, AXIS[axis], -10, 10, 0);
	t->size_power = skep_read_number(r, map, SIZE, -10, 10, 0);
	skep_reader_close_map(r, map);
	if (!r->diag->set && t->factor * t->power[SKEP_LAW_TOKENS] > 0)
		skep_reader_fail(r, map, "tokens",
			"terms: the loss would rise with tokens: expected an exponent of the other sign than the factor's");
}

static void read_terms(struct skep_reader *r, const struct skep_yaml_node *root, struct skep_law *law)
{
	const struct skep_yaml_node *list = skep_read_list(r, root, "terms", true);
	uint32_t count = r->diag->set ? 0 : skep_yaml_length(list);
	bool falls = false;
	if (!r->diag->set && (count == 0 || count > SKEP_LAW_TERMS_MAX))
		skep_reader_fail(r, root, "terms", "terms: expected 1 to %u", SKEP_LAW_TERMS_MAX);
	for (uint32_t i = 0; i < count && !r->diag->set; i++) {
		read_term(r, skep_yaml_item(list, i), &law->term[i]);
		falls = falls || law->term[i].factor * law->term[i].power[SKEP_LAW_TOKENS] < 0;
	}
	law->terms = count;
	if (!r->diag->set && !falls)
		skep_reader_fail(r, root, "terms",
			"terms: none has `tokens`, so that losses would not fall: of a law for so many tokens a parameter add "
			"how they fall until then, as scenarios/laws/diloco-2025.yaml does");
}

/* A law of others, with the range that it is published for. */
static void read_powers(struct skep_reader *r, const struct skep_yaml_node *root, struct skep_law *law)
{
	snprintf(law->source, sizeof law->source, "%s", skep_read_string(r, root, "source", NULL));
	for (int i = 0; i < SKEP_LAW_PARAMETERS; i++)
		law->error[i] = NAN;
	law->reference = NAN;
	law->first = skep_read_number(r, root, "first_loss", 1e-300, 1e9, NAN);
	law->value[SKEP_LAW_FLOOR] = skep_read_number(r, root, "floor", -LOSS_MOST, LOSS_MOST, 0);
	read_terms(r, root, law);
	const struct skep_yaml_node *map = skep_read_map(r, root, "fitted", true);
	for (int axis = 0; axis < SKEP_LAW_AXES; axis++)
		read_range(r, map, AXIS[axis], axis == SKEP_LAW_EVERY || axis == SKEP_LAW_MEMBERS, &law->least[axis],
			&law->most[axis]);
	read_range(r, map, SIZE, true, &law->size_least, &law->size_most);
	law->misfit = skep_read_number(r, map, "misfit", 0, 1e9, NAN);
	skep_reader_close_map(r, map);
	skep_reader_close_map(r, root);
}

static void read_law(struct skep_reader *r, const struct skep_yaml_node *root, struct skep_law *law)
{
	static const char *const forms[] = {"chinchilla-diloco", "powers", NULL};
	if (skep_read_choice(r, root, "law", forms, -1) == 1) {
		read_powers(r, root, law);
		return;
	}
	snprintf(law->model, sizeof law->model, "%s", skep_read_string(r, root, "model", NULL));
	law->reference = skep_read_number(r, root, "reference_tokens", 1e-9, 1e18, NAN);
	law->first = skep_read_number(r, root, "first_loss", 1e-300, 1e9, NAN);
	const struct skep_yaml_node *map = skep_read_map(r, root, "parameters", true);
	for (int i = 0; i < SKEP_LAW_PARAMETERS; i++)
		read_parameter(r, map, i, law);
	skep_reader_close_map(r, map);
	map = skep_read_map(r, root, "fitted", true);
	for (int axis = 0; axis < SKEP_LAW_AXES; axis++)
		read_range(r, map, AXIS[axis], axis == SKEP_LAW_EVERY || axis == SKEP_LAW_MEMBERS, &law->least[axis],
			&law->most[axis]);
	law->misfit = skep_read_number(r, map, "misfit", 0, 1e9, NAN);
	skep_reader_close_map(r, map);
	skep_reader_close_map(r, root);
}

bool skep_law_read(const char *path, struct skep_law *ret, struct skep_diag *reterr)
{
	char *text;
	size_t size;
	*ret = (struct skep_law){0};
	if (!skep_file_read(path, SKEP_FILE_BYTES_MAX, &text, &size, reterr))
		return false;
	struct skep_reader r = {skep_yaml_parse(path, text, size, reterr), reterr};
	if (r.yaml)
		read_law(&r, skep_yaml_root(r.yaml), ret);
	snprintf(ret->path, sizeof ret->path, "%s", path);
	skep_yaml_destroy(r.yaml);
	free(text);
	return !reterr->set;
}

/* What is in quotes is what a person named, or a reason. */
static void write_quoted(const char *text, FILE *out)
{
	fputc('"', out);
	for (; *text; text++)
		fprintf(out, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
	fputc('"', out);
}

static void write_range(const struct skep_law *law, FILE *out)
{
	fprintf(out, "fitted:\n");
	for (int axis = 0; axis < SKEP_LAW_AXES; axis++)
		fprintf(out, "  %s: [%.9g, %.9g]\n", AXIS[axis], law->least[axis], law->most[axis]);
	fprintf(out, "  misfit: %.4g # of the loss, root mean square\n", law->misfit);
}

void skep_law_write(const struct skep_law *law, FILE *out)
{
	assert(law->terms == 0);
	fprintf(out, "law: chinchilla-diloco\nmodel: ");
	write_quoted(law->model, out);
	fprintf(out, "\nreference_tokens: %.9g # D1\nfirst_loss: %.6g # L0\nparameters:\n", law->reference, law->first);
	for (int i = 0; i < SKEP_LAW_PARAMETERS; i++) {
		fprintf(out, "  %s: {value: %.6g, ", NAME[i], law->value[i]);
		if (law->fixed[i][0] == '\0') {
			fprintf(out, "error: %.2g}\n", law->error[i]);
			continue;
		}
		fprintf(out, "fixed: ");
		write_quoted(law->fixed[i], out);
		fprintf(out, "}\n");
	}
	write_range(law, out);
}
