/* SPDX-License-Identifier: Apache-2.0
 *
 * plot_complexity.c - see plot_complexity.h. Two rows of panels: what passes move, and what reductions do; each against the
 * stages (every point is an allocation), the parameters of the model and the steps of the run.
 *
 * How bytes grow with parameters: reductions as they do; passes with the width of the model, so not at all when it gets
 * deeper, and with the root when it gets wider.
 */
#include "analysis/plot/plot_complexity.h"

#include <math.h>
#include <stdio.h>

#include "analysis/plot/plot_script.h"

#define STAIRS_MOST 200u /* reductions of a run that are shown one by one */
#define SPAN 10.0        /* that models are smaller, and larger, than the scenario's */

static const char *const TEMPLATE[] = {
#include "complexity.gp.inc"
};

static const char *const COLOUR[] = {
	"#009E73", "#56B4E9", "#0072B2", "#E69F00", "#D55E00", "#CC79A7", "#808080", "#000000"};

struct scale {
	double per;
	const char *name;
};

static struct scale bytes_scale(double most)
{
	static const struct scale scale[] = {
		{1e-15, "PB"}, {1e-12, "TB"}, {1e-9, "GB"}, {1e-6, "MB"}, {1e-3, "kB"}, {1, "B"}};
	size_t i = 0;
	while (i + 1 < sizeof scale / sizeof scale[0] && most * scale[i].per < 1)
		i++;
	return scale[i];
}

/* Of the classes that carry anything at all, by number from 0; returns how many. */
static uint32_t used_classes(const struct skep_complexity_figure *f, uint32_t *ret)
{
	uint32_t count = 0;
	for (uint32_t c = 0; c < f->classes; c++) {
		double sum = 0;
		for (uint32_t i = 0; i < f->cuts; i++)
			sum += f->cut[i].on[c][0] + f->cut[i].on[c][1];
		if (sum > 0)
			ret[count++] = c;
	}
	return count;
}

struct drawing {
	const struct skep_complexity_figure *figure;
	uint32_t class[SKEP_COMPLEXITY_CLASSES_MAX], classes;
	FILE *script;
};

/* Bytes of a step, of a class or (beyond the last) in the closed form. */
static double bytes_of(const struct drawing *d, const struct skep_complexity_cut *cut, uint32_t column, uint32_t kind)
{
	return column < d->classes ? cut->on[d->class[column]][kind] : cut->closed[kind];
}

static struct scale scale_of(
	const struct drawing *d, const struct skep_complexity_cut *cut, uint32_t cuts, uint32_t kind, double times)
{
	double most = 0;
	for (uint32_t i = 0; i < cuts; i++)
		for (uint32_t c = 0; c <= d->classes; c++)
			most = fmax(most, times * bytes_of(d, &cut[i], c, kind));
	return bytes_scale(most);
}

static void write_stages(const struct drawing *d, uint32_t kind)
{
	const struct skep_complexity_figure *f = d->figure;
	struct scale scale = scale_of(d, f->cut, f->cuts, kind, 1);
	fprintf(d->script, "$stages_%u << END\n", kind);
	for (uint32_t i = 0; i < f->cuts; i++) {
		fprintf(d->script, "%u", f->cut[i].stages);
		for (uint32_t c = 0; c <= d->classes; c++)
			fprintf(d->script, " %.9g", scale.per * bytes_of(d, &f->cut[i], c, kind));
		fprintf(d->script, "\n");
	}
	fprintf(d->script, "END\nStages_unit[%u] = '%s'\n", kind + 1, scale.name);
}

/* What the scenario's own cut moves with models of other sizes. */
static void write_parameters(const struct drawing *d, uint32_t kind)
{
	const struct skep_complexity_figure *f = d->figure;
	const struct skep_complexity_cut *own = &f->cut[f->own];
	struct scale scale = scale_of(d, own, 1, kind, kind == 0 ? sqrt(SPAN) : SPAN);
	fprintf(d->script, "$parameters_%u << END\n", kind);
	for (int i = -1; i <= 1; i++) { /* straight on axes that are logarithmic */
		double times = pow(SPAN, i), grown = kind == 0 ? sqrt(times) : times;
		fprintf(d->script, "%.9g", f->parameters * times);
		for (uint32_t c = 0; c <= d->classes; c++)
			fprintf(d->script, " %.9g %.9g", scale.per * grown * bytes_of(d, own, c, kind),
				scale.per * bytes_of(d, own, c, kind));
		fprintf(d->script, "\n");
	}
	double moved = scale.per * bytes_of(d, own, d->classes, kind);
	for (uint32_t c = 0; c < d->classes; c++)
		moved += scale.per * bytes_of(d, own, c, kind);
	fprintf(d->script, "END\nParameters_unit[%u] = '%s'\nMoves[%u] = %d\n", kind + 1, scale.name, kind + 1,
		moved > 0);
}

static void write_step(const struct drawing *d, uint32_t kind, double step, double times, double per)
{
	fprintf(d->script, "%.9g", step);
	for (uint32_t c = 0; c <= d->classes; c++)
		fprintf(d->script, " %.9g", per * times * bytes_of(d, &d->figure->cut[d->figure->own], c, kind));
	fprintf(d->script, "\n");
}

/* Reductions of periodic sync are stairs. */
static void write_steps(const struct drawing *d, uint32_t kind)
{
	const struct skep_complexity_figure *f = d->figure;
	struct scale scale = scale_of(d, &f->cut[f->own], 1, kind, f->steps);
	uint32_t reductions = (uint32_t)(f->steps / f->period);
	bool stairs = kind == 1 && f->period > 1 && reductions <= STAIRS_MOST;
	fprintf(d->script, "$steps_%u << END\n", kind);
	write_step(d, kind, 0, 0, scale.per);
	for (uint32_t i = 1; stairs && i <= reductions; i++) {
		write_step(d, kind, i * f->period, (i - 1) * f->period, scale.per);
		write_step(d, kind, i * f->period, i * f->period, scale.per);
	}
	write_step(d, kind, f->steps, stairs ? reductions * f->period : f->steps, scale.per);
	fprintf(d->script, "END\nSteps_unit[%u] = '%s'\n", kind + 1, scale.name);
}

static bool write_figure(const void *what, struct skep_picture *picture, struct skep_diag *reterr)
{
	struct drawing d = {.figure = what, .script = picture->script};
	d.classes = used_classes(d.figure, d.class);
	if (d.classes == 0)
		return skep_fail(reterr, "with one worker, in one stage, nothing moves: there is nothing to draw");
	picture->width = 1500;
	picture->height = 960;
	fprintf(d.script, "heading = ");
	skep_script_string(d.script, d.figure->title);
	fprintf(d.script,
		"\nclasses = %u\nown = %u\nparameters = %.9g\nsteps = %u\nperiod = %.9g\nmost_stages = %u\narray Class[%u]\n"
		"array Colour[%u]\narray Stages_unit[2]\narray Parameters_unit[2]\narray Steps_unit[2]\narray Moves[2]\n",
		d.classes, d.figure->cut[d.figure->own].stages, d.figure->parameters, d.figure->steps, d.figure->period,
		d.figure->cut[d.figure->cuts - 1].stages, d.classes, d.classes);
	for (uint32_t c = 0; c < d.classes; c++) {
		fprintf(d.script, "Class[%u] = ", c + 1);
		skep_script_string(d.script, d.figure->name[d.class[c]]);
		fprintf(d.script, "\nColour[%u] = '%s'\n", c + 1,
			COLOUR[d.class[c] % (sizeof COLOUR / sizeof COLOUR[0])]);
	}
	for (uint32_t kind = 0; kind < 2; kind++) {
		write_stages(&d, kind);
		write_parameters(&d, kind);
		write_steps(&d, kind);
	}
	skep_script_lines(d.script, TEMPLATE, sizeof TEMPLATE / sizeof TEMPLATE[0]);
	return true;
}

bool skep_plot_complexity(const struct skep_complexity_figure *figure, const char *target, struct skep_diag *reterr)
{
	return skep_plot_picture(target, write_figure, figure, reterr);
}
