/* SPDX-License-Identifier: Apache-2.0
 *
 * law.c - see law.h.
 */
#include "scenarios/plan/law.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const NAME[SKEP_LAW_PARAMETERS] = {"E", "A", "alpha", "D0", "gamma", "mu", "delta"};
static const char *const AXIS[SKEP_LAW_AXES] = {"tokens", "every", "replicas", "staleness", "batch"};

const char *skep_law_name(enum skep_law_parameter parameter)
{
	return NAME[parameter];
}

double skep_law_loss(const struct skep_law *law, const double *at)
{
	const double *p = law->value;
	double period = log(at[SKEP_LAW_EVERY]);
	double waste = p[SKEP_LAW_PERIOD] * period + p[SKEP_LAW_REPLICAS] * period * log(at[SKEP_LAW_MEMBERS]) +
	               p[SKEP_LAW_STALENESS] * log1p(at[SKEP_LAW_STALE]);
	double tokens = at[SKEP_LAW_TOKENS] * exp(-waste);
	double part = (tokens + p[SKEP_LAW_ONSET]) / (law->reference + p[SKEP_LAW_ONSET]);
	return fmin(law->first, p[SKEP_LAW_FLOOR] + p[SKEP_LAW_AMPLITUDE] * pow(part, -p[SKEP_LAW_EXPONENT]));
}

static bool outside(const struct skep_law *law, enum skep_law_axis axis, double value)
{
	double margin = 1e-6 * fabs(value);
	if (axis == SKEP_LAW_TOKENS) /* every run begins with none */
		return value > law->most[axis] + margin;
	return value < law->least[axis] - margin || value > law->most[axis] + margin;
}

bool skep_law_leaves(const struct skep_law *law, const char *model, const double *at, char *ret, size_t size)
{
	static const char *const text[SKEP_LAW_AXES] = {"%s%.4g tokens (fitted: %.4g", "%sH = %g (fitted: %g",
		"%s%g replicas (fitted: %g", "%sstaleness %g (fitted: %g", "%sa batch of %g tokens (fitted: %g"};
	size_t used = 0;
	ret[0] = '\0';
	if (strcmp(model, law->model) != 0)
		used = (size_t)snprintf(ret, size, "model %.60s (fitted: %.60s)", model, law->model);
	for (int axis = 0; axis < SKEP_LAW_AXES; axis++) {
		if (!outside(law, (enum skep_law_axis)axis, at[axis]) || used >= size)
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

static void read_axis(struct skep_reader *r, const struct skep_yaml_node *map, int axis, struct skep_law *law)
{
	const double low = axis == SKEP_LAW_EVERY || axis == SKEP_LAW_MEMBERS ? 1 : 0;
	const struct skep_yaml_node *pair = skep_read_list(r, map, AXIS[axis], true);
	if (r->diag->set)
		return;
	if (skep_yaml_length(pair) != 2) {
		skep_reader_fail(r, pair, NULL, "fitted.%s: expected the least and the most, as [1, 64]", AXIS[axis]);
		return;
	}
	law->least[axis] = skep_read_number(r, skep_yaml_item(pair, 0), NULL, low, 1e18, NAN);
	law->most[axis] = skep_read_number(r, skep_yaml_item(pair, 1), NULL, low, 1e18, NAN);
	if (!r->diag->set && law->most[axis] < law->least[axis])
		skep_reader_fail(r, skep_yaml_item(pair, 1), NULL,
			"fitted.%s: the most, %g, is less than the least, %g", AXIS[axis], law->most[axis],
			law->least[axis]);
}

static void read_law(struct skep_reader *r, const struct skep_yaml_node *root, struct skep_law *law)
{
	static const char *const forms[] = {"chinchilla-diloco", NULL};
	skep_read_choice(r, root, "law", forms, -1);
	snprintf(law->model, sizeof law->model, "%s", skep_read_string(r, root, "model", NULL));
	law->reference = skep_read_number(r, root, "reference_tokens", 1e-9, 1e18, NAN);
	law->first = skep_read_number(r, root, "first_loss", 1e-300, 1e9, NAN);
	const struct skep_yaml_node *map = skep_read_map(r, root, "parameters", true);
	for (int i = 0; i < SKEP_LAW_PARAMETERS; i++)
		read_parameter(r, map, i, law);
	skep_reader_close_map(r, map);
	map = skep_read_map(r, root, "fitted", true);
	for (int axis = 0; axis < SKEP_LAW_AXES; axis++)
		read_axis(r, map, axis, law);
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

void skep_law_write(const struct skep_law *law, FILE *out)
{
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
	fprintf(out, "fitted:\n");
	for (int axis = 0; axis < SKEP_LAW_AXES; axis++)
		fprintf(out, "  %s: [%.9g, %.9g]\n", AXIS[axis], law->least[axis], law->most[axis]);
	fprintf(out, "  misfit: %.4g # of the loss, root mean square\n", law->misfit);
}
