/* SPDX-License-Identifier: Apache-2.0
 *
 * write_profile.c - a GPU profile as a run shows it, and its table of stages.
 *
 * Keeps true: a stage that the run did not execute on this kind of GPU has a row with the times from before, so that the files
 * together say of everything in the scenario what it was, or what it is now.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/calibrate/calibration.h"
#include "scenarios/plan/split.h"
#include "topologies/import/writer.h"

#define SOURCE_BYTES 240

/* Without what would end a comment or a line. */
static void put_plain(FILE *file, const char *text)
{
	for (; *text; text++)
		putc((unsigned char)*text < ' ' ? ' ' : *text, file);
}

void skep_calibration_put_head(const struct skep_calibration *c, FILE *file)
{
	fprintf(file, SKEP_CALIBRATION_HEAD " from run %" PRId64 " of ", c->run);
	put_plain(file, c->scenario->name);
	fprintf(file, ", %" PRIu32 " rounds. Intervals hold with 95 %%, of six samples or more.\n", c->rounds);
}

static void base_name(const struct skep_gpu *gpu, char *ret, size_t size)
{
	const char *name = skep_path_base(gpu->path);
	snprintf(ret, size, "%.*s", (int)(strlen(name) - strlen(".yaml")), name);
}

void skep_calibration_gpu_name(const struct skep_calibration *c, uint32_t gpu, char ret[SKEP_CALIBRATION_NAME_BYTES])
{
	char base[64], other[64];
	uint32_t before = 0;
	base_name(&c->topology.gpu[gpu], base, sizeof base);
	for (uint32_t i = 0; i < gpu; i++) {
		base_name(&c->topology.gpu[i], other, sizeof other);
		before += strcmp(base, other) == 0;
	}
	if (before > 0)
		snprintf(ret, SKEP_CALIBRATION_NAME_BYTES, "%s-%" PRIu32, base, before + 1);
	else
		snprintf(ret, SKEP_CALIBRATION_NAME_BYTES, "%s", base);
}

/* ---- the profile ------------------------------------------------------------------------------------------------- */

/* A bandwidth here is one of memory, which data sheets give in bytes. */
static void put_value(FILE *file, enum skep_dimension dimension, double value, bool exact)
{
	if (dimension != SKEP_BANDWIDTH) {
		skep_put_quantity(file, dimension, value, exact);
		return;
	}
	skep_put_number(file, 1e-9 * value, exact);
	fputs(" GB/s", file);
}

static void put_figure(FILE *file, const char *key, const struct skep_figure *f, enum skep_dimension dimension)
{
	fprintf(file, "%s: ", key);
	put_value(file, dimension, skep_figure_value(f), true);
	if (f->after.samples > 0) {
		fprintf(file, " # %" PRIu32 " operations of reductions; ", f->after.samples);
		put_value(file, dimension, f->after.low, false);
		fputs(" to ", file);
		put_value(file, dimension, f->after.high, false);
		putc('\n', file);
	} else {
		fprintf(file, " # as before: %s\n", f->kept);
	}
}

/* How far times by these rates were off: the root of the mean square of ln(real / predicted) over the figures of passes and
 * steps. Where the run was paced, times came from somewhere else, or they are few, it stays as it was. */
static void put_uncertainty(const struct skep_calibration *c, uint32_t gpu, FILE *file)
{
	const struct skep_gpu *of = &c->topology.gpu[gpu];
	double squares = 0;
	uint32_t count = 0;
	for (uint32_t v = 0; v < skep_plan_vstages(&c->scenario->plan); v++)
		for (int column = 0; column < SKEP_STAGE_COLUMNS; column++) {
			const struct skep_figure *f = &skep_calibration_pass(c, gpu, v)->column[column];
			if (f->after.samples == 0 || !(f->before > 0) || !(f->after.value > 0))
				continue;
			squares += pow(log(f->after.value / f->before), 2);
			count++;
		}
	const bool known = count >= SKEP_CALIBRATE_FIGURES_LEAST && !c->paced && c->scenario->predictor == NULL &&
	                   c->scenario->draw == NULL;
	if (known)
		fprintf(file,
			"uncertainty: %.4g # %" PRIu32
			" figures of passes and steps against times by the rates from before\n",
			fmin(1, sqrt(squares / count)), count);
	else
		fprintf(file, "uncertainty: %.10g # as before\n", of->uncertainty);
}

static void put_peaks(const struct skep_gpu *gpu, FILE *file)
{
	bool any = false;
	for (int type = SKEP_TYPE_TF32; type < SKEP_TYPES; type++) {
		if (gpu->peak[type] <= 0)
			continue;
		fprintf(file, "%s%s: %.0f FLOP/s", any ? ", " : "peaks: {", skep_type_names[type], gpu->peak[type]);
		any = true;
	}
	if (any)
		fputs("}\n", file);
}

static void put_table(const struct skep_gpu_table *t, FILE *file)
{
	char *path = realpath(t->path, NULL);
	fputs("  - ", file);
	skep_put_quoted(file, "file", path ? path : t->path);
	fprintf(file, "    of: %s\n    type: %s\n", skep_table_names[t->kind], skep_type_names[t->type]);
	if (t->model[0])
		fputs("    ", file), skep_put_quoted(file, "model", t->model);
	fputs("    ", file);
	skep_put_quoted(file, "source", t->source);
	free(path);
}

void skep_calibration_put_profile(const struct skep_calibration *c, uint32_t gpu, const char *name, FILE *file)
{
	const struct skep_gpu *of = &c->topology.gpu[gpu];
	const struct skep_gpu_figures *figures = &c->gpu[gpu];
	char text[512];
	skep_calibration_put_head(c, file);
	fprintf(file, "# What is not marked is as in ");
	put_plain(file, of->path);
	putc('\n', file);
	skep_put_quoted(file, "name", of->name);
	snprintf(text, sizeof text,
		c->paced ? "Stages assumed: run %" PRId64 " was paced, by skep calibrate; the rest: "
			 : "Stages measured in run %" PRId64 " by skep calibrate; the rest: ",
		c->run);
	size_t used = strlen(text);
	snprintf(text + used, SOURCE_BYTES - used, "%s", of->source);
	skep_put_quoted(file, "source", text);
	fprintf(file, "flops: %.0f FLOP/s\nefficiency: %.10g\n", of->flops, of->efficiency);
	put_figure(file, "memory_bandwidth", &figures->memory_Bps, SKEP_BANDWIDTH);
	fprintf(file, "memory: %.0f B\n", of->memory_bytes);
	put_figure(file, "overhead", &figures->overhead, SKEP_TIME);
	put_uncertainty(c, gpu, file);
	put_peaks(of, file);
	fputs("tables:\n  - ", file);
	snprintf(text, sizeof text, "%s-stages.csv", name);
	skep_put_quoted(file, "file", text);
	fputs("    of: stages\n    ", file);
	skep_put_quoted(file, "model", c->scenario->model.name);
	snprintf(text, sizeof text,
		c->paced ? "derived from run %" PRId64 ", which was paced, by skep calibrate"
			 : "measured in run %" PRId64 " by skep calibrate",
		c->run);
	fputs("    ", file);
	skep_put_quoted(file, "source", text);
	if (c->scenario->offload != SKEP_OFFLOAD_NONE)
		fprintf(file, "    offload: %s\n", skep_offload_names[c->scenario->offload]);
	for (uint32_t i = 0; i < of->tables; i++)
		put_table(&of->table[i], file);
}

/* ---- the table of stages ----------------------------------------------------------------------------------------- */

/* Microseconds with compute_scale 1 in a second of the run. Where a worker has a part of a step to do, of the whole step. */
static double us_of(const struct skep_calibration *c, uint32_t vstage, int column)
{
	const struct skep_scenario *s = c->scenario;
	const bool part = column == SKEP_STAGE_STEP && !skep_plan_periodic(&s->plan);
	return 1e6 / s->compute_scale * (part ? skep_split_owners(s, vstage % s->plan.stages) : 1);
}

static void put_comment(
	const struct skep_calibration *c, const struct skep_pass_figures *pass, uint32_t vstage, FILE *file)
{
	bool any = false;
	fprintf(file, "# stage %" PRIu32 ":", vstage);
	for (int i = 0; i < SKEP_STAGE_COLUMNS; i++) {
		const struct skep_ranked *r = &pass->column[i].after;
		if (r->samples == 0)
			continue;
		fprintf(file, "%s %s %.6g to %.6g us of %" PRIu32, any ? ";" : "", skep_stage_column_names[i],
			us_of(c, vstage, i) * r->low, us_of(c, vstage, i) * r->high, r->samples);
		any = true;
	}
	fprintf(file, "%s\n", any ? "; the rest as before" : " not seen on this GPU, as before");
}

/* Local steps that the run does not make have no time in it. */
static void put_cell(
	const struct skep_calibration *c, const struct skep_pass_figures *pass, uint32_t vstage, int column, FILE *file)
{
	const bool local = column == SKEP_STAGE_INNER || column == SKEP_STAGE_PSEUDO;
	putc(',', file);
	if (!local || skep_plan_periodic(&c->scenario->plan))
		fprintf(file, "%.9g", us_of(c, vstage, column) * skep_figure_value(&pass->column[column]));
}

struct order {
	uint32_t first, layers, vstage;
};

static int by_layers(const void *a, const void *b)
{
	const struct order *left = a, *right = b;
	return (left->first > right->first) - (left->first < right->first);
}

void skep_calibration_put_stages(const struct skep_calibration *c, uint32_t gpu, FILE *file)
{
	const struct skep_scenario *s = c->scenario;
	uint32_t vstages = skep_plan_vstages(&s->plan);
	struct order *order = calloc(vstages, sizeof *order);
	skep_calibration_put_head(c, file);
	fprintf(file, "# Time of a stage of %s on %s for a microbatch, hand-over included; us with `compute_scale: 1`",
		s->model.name, c->topology.gpu[gpu].name);
	fprintf(file, " (the run had %.10g).\n" SKEP_STAGE_TABLE_HEADER "\n", s->compute_scale);
	for (uint32_t v = 0; order != NULL && v < vstages; v++) {
		order[v].vstage = v;
		skep_model_cut(&s->model, vstages, v, &order[v].first, &order[v].layers);
	}
	if (order != NULL)
		qsort(order, vstages, sizeof *order, by_layers);
	for (uint32_t i = 0; order != NULL && i < vstages; i++) {
		const struct skep_pass_figures *pass = skep_calibration_pass(c, gpu, order[i].vstage);
		const struct skep_cost *cost = &s->cost[order[i].vstage];
		if (cost->trained < cost->parameters) { /* a table is of stages that are trained as a whole */
			fprintf(file, "# stage %" PRIu32 ": left out, since layers of it were frozen\n",
				order[i].vstage);
			continue;
		}
		put_comment(c, pass, order[i].vstage, file);
		fprintf(file, "%" PRIu32 ",%" PRIu32 ",%" PRIu32, order[i].first, order[i].layers, s->samples);
		for (int k = 0; k < SKEP_STAGE_COLUMNS; k++)
			put_cell(c, pass, order[i].vstage, k, file);
		putc('\n', file);
	}
	free(order);
}
