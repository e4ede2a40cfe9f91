/* SPDX-License-Identifier: Apache-2.0
 *
 * plot_fit.c - a law of losses drawn over the losses that it is fitted to, as `skep fit` does with the same runs: circles are
 * runs (of many rounds their mean, as they are fitted), lines the law, a colour for each choice of H, replicas and staleness.
 * Lines begin where the points begin and end where they end: the law says nothing beyond.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/fit/fit.h"
#include "analysis/plot/plot_script.h"

#define GROUPS_MAX 24u
#define STROKES 100u    /* of a line */
#define LINE_PIXELS 24u /* of the legend */

static const char *const TEMPLATE[] = {
#include "fit.gp.inc"
};

struct group {
	double every, replicas, stale, least, most;
	uint32_t points;
};

struct figure {
	struct skep_loss_points points;
	struct skep_law law;
	struct group group[GROUPS_MAX];
	uint32_t groups;
	double low, high, least_tokens, per_token;
};

/* Staleness begins at 0 in every run: of the first rounds nothing else is shown. */
static struct group *group_of(struct figure *f, const double *at)
{
	for (uint32_t g = 0; g < f->groups; g++)
		if (f->group[g].every == at[SKEP_LAW_EVERY] && f->group[g].replicas == at[SKEP_LAW_MEMBERS] &&
			f->group[g].stale == at[SKEP_LAW_STALE])
			return &f->group[g];
	if (f->groups == GROUPS_MAX)
		return NULL;
	f->group[f->groups] =
		(struct group){at[SKEP_LAW_EVERY], at[SKEP_LAW_MEMBERS], at[SKEP_LAW_STALE], INFINITY, 0, 0};
	return &f->group[f->groups++];
}

static int compare(const void *a, const void *b)
{
	const struct group *x = a, *y = b;
	if (x->every != y->every)
		return x->every > y->every ? 1 : -1;
	if (x->replicas != y->replicas)
		return x->replicas > y->replicas ? 1 : -1;
	return (x->stale > y->stale) - (x->stale < y->stale);
}

static bool find_groups(struct figure *f, struct skep_diag *reterr)
{
	f->low = f->least_tokens = INFINITY;
	for (uint32_t i = 0; i < f->points.count; i++) {
		const struct skep_loss_point *point = &f->points.point[i];
		struct group *group = group_of(f, point->at);
		if (!group)
			return skep_fail(reterr,
				"the runs have more than %u choices of H, replicas and staleness: name fewer",
				GROUPS_MAX);
		group->points++;
		f->low = fmin(f->low, point->loss);
		f->high = fmax(f->high, point->loss);
		if (point->at[SKEP_LAW_TOKENS] > 0)
			group->least = fmin(group->least, point->at[SKEP_LAW_TOKENS]);
		f->least_tokens = fmin(f->least_tokens, group->least);
		group->most = fmax(group->most, point->at[SKEP_LAW_TOKENS]);
	}
	qsort(f->group, f->groups, sizeof f->group[0], compare);
	return true;
}

/* ---- the script --------------------------------------------------------------------------------------------------- */

static void write_points(struct figure *f, uint32_t g, FILE *script)
{
	for (uint32_t i = 0; i < f->points.count; i++) {
		const struct skep_loss_point *point = &f->points.point[i];
		if (group_of(f, point->at) == &f->group[g] && point->at[SKEP_LAW_TOKENS] > 0)
			fprintf(script, "%.9g %.6g\n", point->at[SKEP_LAW_TOKENS] * f->per_token, point->loss);
	}
	fprintf(script, "\n\n");
}

static void write_law(const struct figure *f, const struct group *group, FILE *script)
{
	double at[SKEP_LAW_AXES] = {0};
	at[SKEP_LAW_EVERY] = group->every;
	at[SKEP_LAW_MEMBERS] = group->replicas;
	at[SKEP_LAW_STALE] = group->stale;
	for (uint32_t i = 0; i <= STROKES && group->most > group->least; i++) {
		at[SKEP_LAW_TOKENS] = group->least * pow(group->most / group->least, (double)i / STROKES);
		fprintf(script, "%.9g %.6g\n", at[SKEP_LAW_TOKENS] * f->per_token, skep_law_loss(&f->law, at));
	}
	fprintf(script, "\n\n");
}

static void write_titles(const struct figure *f, FILE *script)
{
	for (uint32_t g = 0; g < f->groups; g++) {
		const struct group *group = &f->group[g];
		fprintf(script, "Title[%u] = 'H = %g, %g replica%s, staleness %.2g'\nColour[%u] = '%s'\n", g + 1,
			group->every, group->replicas, group->replicas == 1 ? "" : "s", group->stale, g + 1,
			skep_plot_colour(g));
	}
}

static void write_remark(const struct figure *f, FILE *script)
{
	const struct skep_law *law = &f->law;
	char text[384], floor[192], misfit[32];
	skep_fit_percent(law->misfit, misfit, sizeof misfit);
	if (law->fixed[SKEP_LAW_FLOOR][0] == '\0')
		snprintf(floor, sizeof floor, "± %.2g", law->error[SKEP_LAW_FLOOR]);
	else
		snprintf(floor, sizeof floor, "(not fitted: %.160s)", law->fixed[SKEP_LAW_FLOOR]);
	snprintf(text, sizeof text,
		"E = %.4g %s, alpha = %.3g ± %.2g; circles: losses of %u run%s; lines: the law, misfit %s",
		law->value[SKEP_LAW_FLOOR], floor, law->value[SKEP_LAW_EXPONENT], law->error[SKEP_LAW_EXPONENT],
		f->points.runs, f->points.runs == 1 ? "" : "s", misfit);
	fprintf(script, "remark = ");
	skep_script_string(script, text);
	fprintf(script, "\n");
}

static void write_figure(struct figure *f, struct skep_picture *picture)
{
	FILE *script = picture->script;
	uint32_t columns = f->groups <= 3 ? 1 : 3, lines = (f->groups + columns - 1) / columns;
	char title[128];
	snprintf(title, sizeof title, "%s: a law of the loss", f->points.model);
	fprintf(script, "set title ");
	skep_script_string(script, title);
	fprintf(script, "\ngroups = %u\ncolumns = %u\nkey_lines = %u\narray Title[%u]\narray Colour[%u]\n", f->groups,
		columns, lines, f->groups, f->groups);
	write_titles(f, script);
	write_remark(f, script);
	f->per_token = skep_plot_token_axis(script, f->law.most[SKEP_LAW_TOKENS]);
	double left = f->least_tokens * f->per_token / 1.05, right = f->law.most[SKEP_LAW_TOKENS] * f->per_token * 1.05;
	fprintf(script, "set xrange [%.9g:%.9g]\n", left, right);
	skep_plot_tics(script, 'x', left, right);
	fprintf(script, "set yrange [%.9g:%.9g]\n", f->low / 1.05, f->high * 1.05);
	skep_plot_tics(script, 'y', f->low / 1.05, f->high * 1.05);
	fprintf(script, "$point << END\n");
	for (uint32_t g = 0; g < f->groups; g++)
		write_points(f, g, script);
	fprintf(script, "END\n$law << END\n");
	for (uint32_t g = 0; g < f->groups; g++)
		write_law(f, &f->group[g], script);
	fprintf(script, "END\n");
	picture->height += LINE_PIXELS * lines;
	skep_script_lines(script, TEMPLATE, sizeof TEMPLATE / sizeof TEMPLATE[0]);
}

bool skep_plot_fit(struct skep_store *store, const int64_t *run, uint32_t runs, struct skep_picture *picture,
	struct skep_diag *reterr)
{
	struct figure *f = calloc(1, sizeof *f);
	if (!f)
		return skep_fail(reterr, "no memory for the plot");
	bool good = skep_loss_points_read(store, run, runs, SKEP_FIT_FROM_USUAL, &f->points, reterr) &&
	            skep_law_fit(&f->points, &f->law, reterr) && find_groups(f, reterr);
	if (good)
		write_figure(f, picture);
	for (uint32_t i = 0; good && i < f->points.runs; i++)
		skep_picture_drew(picture, f->points.run[i]);
	skep_loss_points_finish(&f->points);
	free(f);
	return good;
}
