/* SPDX-License-Identifier: Apache-2.0
 *
 * survey.c - see survey.h.
 *
 * What is kept true of a survey that was settled: every ordered pair of two places has both values, and each was measured or was
 * filled by a rule that the user gave, which is counted. Places that no measurement joins are refused, unless the user gave a
 * constant: rules would then invent whole links.
 */
#include "topologies/import/survey.h"

#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

const char *const skep_survey_kind_names[] = {"bandwidth", "latency"};
const char *const skep_fill_names[] = {"reverse", "worst", "median", NULL};

/* ---- what was measured ------------------------------------------------------------------------------------------- */

static const char *check_name(const char *name, size_t length)
{
	if (length == 0 || length >= sizeof((struct skep_survey_place *)0)->name)
		return "expected a name of 1 to 31 bytes";
	for (size_t i = 0; i < length; i++)
		if (name[i] < 0x20 || name[i] > 0x7e || name[i] == '"' || name[i] == '\\')
			return "expected a name in printable ASCII, without quotes and backslashes";
	return NULL;
}

static bool same_name(const struct skep_survey_place *place, const char *name, size_t length)
{
	return strncmp(place->name, name, length) == 0 && place->name[length] == 0;
}

uint32_t skep_survey_place(struct skep_survey *s, const char *name, size_t length, const char **reterr)
{
	*reterr = check_name(name, length);
	if (*reterr)
		return SKEP_NO_PLACE;
	uint32_t at =
		s->last_found < s->places && same_name(&s->place[s->last_found], name, length) ? s->last_found : 0;
	while (at < s->places && !same_name(&s->place[at], name, length))
		at++;
	if (at < s->places) {
		s->place[at].seen = s->place[at].seen || s->closed;
		return s->last_found = at;
	}
	if (s->closed)
		return SKEP_NO_PLACE;
	if (s->places == SKEP_SURVEY_PLACES_MAX)
		*reterr = "more than 2048 places: choose some with --between";
	else if (!skep_grow(&s->place, s->places, sizeof *s->place))
		*reterr = "not enough memory";
	if (*reterr)
		return SKEP_NO_PLACE;
	struct skep_survey_place *place = &s->place[s->places];
	*place = (struct skep_survey_place){.machines = 1, .up_Bps = INFINITY, .down_Bps = INFINITY};
	memcpy(place->name, name, length);
	return s->last_found = s->places++;
}

bool skep_survey_add(struct skep_survey *s, enum skep_survey_kind kind, uint32_t from, uint32_t to, double value)
{
	if (s->samples >= SKEP_SURVEY_SAMPLES_MAX || !skep_grow(&s->sample, s->samples, sizeof *s->sample))
		return false;
	s->sample[s->samples++] = (struct skep_survey_sample){kind, from, to, value};
	return true;
}

void skep_survey_finish(struct skep_survey *s)
{
	free(s->place);
	free(s->sample);
	for (int kind = 0; kind < SKEP_SURVEY_KINDS; kind++)
		free(s->cell[kind]);
	*s = (struct skep_survey){0};
}

/* ---- one value of each pair -------------------------------------------------------------------------------------- */

static int by_pair(const void *left, const void *right)
{
	const struct skep_survey_sample *a = left, *b = right;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->from != b->from)
		return a->from < b->from ? -1 : 1;
	if (a->to != b->to)
		return a->to < b->to ? -1 : 1;
	return (a->value > b->value) - (a->value < b->value);
}

static bool same_pair(const struct skep_survey_sample *a, const struct skep_survey_sample *b)
{
	return a->kind == b->kind && a->from == b->from && a->to == b->to;
}

/* The middle one, or the mean of the two in the middle. */
static void take_medians(struct skep_survey *s)
{
	qsort(s->sample, s->samples, sizeof *s->sample, by_pair);
	for (size_t first = 0, end; first < s->samples; first = end) {
		const struct skep_survey_sample *at = &s->sample[first];
		for (end = first + 1; end < s->samples && same_pair(at, &s->sample[end]); end++)
			;
		size_t n = end - first;
		double value = n % 2 ? at[n / 2].value : 0.5 * (at[n / 2 - 1].value + at[n / 2].value);
		s->cell[at->kind][(size_t)at->from * s->places + at->to] = value;
		s->measured[at->kind] += at->from != at->to;
		s->several[at->kind] += at->from != at->to && n > 1;
	}
}

/* ---- holes ------------------------------------------------------------------------------------------------------- */

static double worse(enum skep_survey_kind kind, double a, double b)
{
	return kind == SKEP_BANDWIDTH_SAMPLE ? fmin(a, b) : fmax(a, b); /* NAN gives way */
}

/* What a rule looks at: the measured values as they were before any hole was filled. */
struct measured {
	enum skep_survey_kind kind;
	uint32_t n;
	double *cell;         /* [n * n] */
	double *row, *column; /* [n] the worst that leaves a place, and that reaches it; NAN: nothing does */
	double median;        /* NAN: nothing was measured */
};

static bool measured_init(struct measured *m, const struct skep_survey *s, enum skep_survey_kind kind)
{
	uint32_t n = s->places;
	size_t count = 0, pairs = (size_t)n * n;
	double *sorted = malloc(pairs * sizeof *sorted);
	*m = (struct measured){.kind = kind, .n = n, .median = NAN};
	m->cell = malloc(pairs * sizeof *m->cell);
	m->row = malloc(2 * n * sizeof *m->row);
	if (!sorted || !m->cell || !m->row) {
		free(sorted);
		return false;
	}
	m->column = m->row + n;
	memcpy(m->cell, s->cell[kind], pairs * sizeof *m->cell);
	for (uint32_t i = 0; i < 2 * n; i++)
		m->row[i] = NAN;
	for (size_t i = 0; i < pairs; i++) {
		uint32_t from = (uint32_t)(i / n), to = (uint32_t)(i % n);
		if (from == to || isnan(m->cell[i]))
			continue;
		sorted[count++] = m->cell[i];
		m->row[from] = worse(kind, m->row[from], m->cell[i]);
		m->column[to] = worse(kind, m->column[to], m->cell[i]);
	}
	gsl_sort(sorted, 1, count);
	if (count > 0)
		m->median = count % 2 ? sorted[count / 2] : 0.5 * (sorted[count / 2 - 1] + sorted[count / 2]);
	free(sorted);
	return true;
}

static void measured_finish(struct measured *m)
{
	free(m->cell);
	free(m->row);
}

static double by_rule(const struct measured *m, enum skep_fill rule, uint32_t from, uint32_t to)
{
	switch (rule) {
	case SKEP_FILL_REVERSE:
		return m->cell[(size_t)to * m->n + from];
	case SKEP_FILL_WORST:
		return worse(m->kind, m->row[from], m->column[to]);
	default:
		return m->median;
	}
}

static bool fill_kind(struct skep_survey *s, const struct skep_survey_rules *rules, enum skep_survey_kind kind)
{
	struct measured m;
	uint32_t n = s->places;
	bool ok = measured_init(&m, s, kind);
	for (size_t i = 0; ok && i < (size_t)n * n; i++) {
		uint32_t from = (uint32_t)(i / n), to = (uint32_t)(i % n);
		double *cell = &s->cell[kind][i];
		if (from == to)
			continue;
		for (uint32_t rule = 0; rule < rules->fills && isnan(*cell); rule++) {
			*cell = by_rule(&m, rules->fill[rule], from, to);
			s->filled[kind][rules->fill[rule]] += !isnan(*cell);
		}
		if (isnan(*cell) && !isnan(rules->constant[kind])) {
			*cell = rules->constant[kind];
			s->filled[kind][SKEP_FILL_CONSTANT]++;
		}
	}
	measured_finish(&m);
	return ok;
}

static void refuse_holes(
	const struct skep_survey *s, enum skep_survey_kind kind, const char *path, struct skep_diag *reterr)
{
	char list[256] = "";
	size_t holes = 0, pairs = (size_t)s->places * (s->places - 1);
	for (size_t i = 0; i < (size_t)s->places * s->places; i++) {
		const struct skep_survey_place *from = &s->place[i / s->places], *to = &s->place[i % s->places];
		if (from == to || !isnan(s->cell[kind][i]))
			continue;
		if (holes++ < 3)
			snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s to %s", list[0] ? ", " : "",
				from->name, to->name);
	}
	const char *word = skep_survey_kind_names[kind], *unit = kind == SKEP_BANDWIDTH_SAMPLE ? "Mbit/s" : "ms";
	if (holes > 0 && holes == pairs)
		skep_diag_set(reterr, path, 0, 0, NULL,
			"these files have no %s: give one for all pairs, such as --%s '100 %s'", word, word, unit);
	else if (holes > 0)
		skep_diag_set(reterr, path, 0, 0, NULL,
			"no %s of %zu of %zu ordered pairs: %s%s. Fill them by rules, --fill reverse,worst,median, or "
			"by --%s '100 %s', or leave places out with --between",
			word, holes, pairs, list, holes > 3 ? " ..." : "", word, unit);
}

/* ---- places that nothing joins ----------------------------------------------------------------------------------- */

static uint32_t find_root(uint32_t *parent, uint32_t i)
{
	while (parent[i] != i)
		i = parent[i] = parent[parent[i]];
	return i;
}

/* Either quantity, in either direction, joins two places. */
static bool check_joined(const struct skep_survey *s, const char *path, struct skep_diag *reterr)
{
	uint32_t *parent = malloc(s->places * sizeof *parent), groups = s->places, apart = 0;
	if (!parent)
		return false;
	for (uint32_t i = 0; i < s->places; i++)
		parent[i] = i;
	for (size_t i = 0; i < s->samples; i++) {
		uint32_t a = find_root(parent, s->sample[i].from), b = find_root(parent, s->sample[i].to);
		groups -= a != b;
		parent[a] = b;
	}
	while (apart < s->places && find_root(parent, apart) == find_root(parent, 0))
		apart++;
	if (groups > 1)
		skep_diag_set(reterr, path, 0, 0, NULL,
			"the places fall into %u groups with nothing measured between them: %s is in one, %s in "
			"another. Leave places out with --between, or give --bandwidth and --latency for such pairs",
			groups, s->place[0].name, s->place[apart].name);
	free(parent);
	return true;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static bool make_cells(struct skep_survey *s)
{
	size_t pairs = (size_t)s->places * s->places;
	for (int kind = 0; kind < SKEP_SURVEY_KINDS; kind++) {
		s->cell[kind] = malloc(pairs * sizeof **s->cell);
		for (size_t i = 0; s->cell[kind] && i < pairs; i++)
			s->cell[kind][i] = NAN;
	}
	return s->cell[SKEP_BANDWIDTH_SAMPLE] && s->cell[SKEP_LATENCY_SAMPLE];
}

bool skep_survey_settle(
	struct skep_survey *s, const struct skep_survey_rules *rules, const char *path, struct skep_diag *reterr)
{
	bool constants = !isnan(rules->constant[SKEP_BANDWIDTH_SAMPLE]) && !isnan(rules->constant[SKEP_LATENCY_SAMPLE]);
	if (reterr->set)
		return false;
	if (s->places == 0 || s->samples == 0) {
		skep_diag_set(reterr, path, 0, 0, NULL, "nothing was measured between the places that are wanted");
		return false;
	}
	bool ok = make_cells(s);
	if (ok)
		take_medians(s);
	if (ok && !constants)
		ok = check_joined(s, path, reterr);
	for (int kind = 0; ok && kind < SKEP_SURVEY_KINDS && !reterr->set; kind++) {
		ok = fill_kind(s, rules, (enum skep_survey_kind)kind);
		if (ok)
			refuse_holes(s, (enum skep_survey_kind)kind, path, reterr);
	}
	if (!ok)
		skep_diag_set(reterr, path, 0, 0, NULL, "not enough memory for %u places", s->places);
	return !reterr->set;
}
