/* SPDX-License-Identifier: Apache-2.0
 *
 * passes.c - times of passes and steps on each kind of GPU, and what an operation of a reduction costs beside its bytes, from
 * how long operations took in a run.
 *
 * A sample is how long an operation took over how long it was expected to take, times the expected time of the whole pass: so
 * a part of a backward pass or of a step counts too. Noise that the scenario asks for is left out of what is expected.
 */
#include <math.h>
#include <stdlib.h>

#include "analysis/calibrate/calibration.h"

#define COLUMNS SKEP_STAGE_COLUMNS
#define NO_COLUMN COLUMNS

static uint32_t column_of(const struct skep_op *op)
{
	switch (op->kind) {
	case SKEP_OP_FORWARD:
		return SKEP_STAGE_FORWARD;
	case SKEP_OP_BACKWARD:
		return op->recomputed ? SKEP_STAGE_RECOMPUTED : SKEP_STAGE_BACKWARD;
	case SKEP_OP_RECOMPUTE:
		return SKEP_STAGE_RECOMPUTE;
	case SKEP_OP_STEP:
		return SKEP_STAGE_STEP;
	case SKEP_OP_INNER_STEP:
		return SKEP_STAGE_INNER;
	case SKEP_OP_PSEUDO_GRAD:
		return SKEP_STAGE_PSEUDO;
	default:
		return NO_COLUMN;
	}
}

static double expected_s(const struct skep_op_time *time, uint32_t column)
{
	const uint64_t ns[COLUMNS] = {time->forward_ns, time->backward_ns, time->recompute_ns, time->recomputed_ns,
		time->step_ns, time->inner_ns, time->pseudo_ns};
	return 1e-9 * (double)ns[column];
}

struct work {
	const struct skep_samples *samples;
	struct skep_calibration *c;
	struct skep_scenario quiet; /* the scenario, without noise; it borrows all */
	uint32_t vstages;
	size_t *begin;  /* [figures + 1] of each figure in sample[] */
	double *sample; /* [executions] by figure */
};

static uint32_t gpu_of(const struct work *w, const struct skep_executed *e)
{
	return w->quiet.topology.machine[e->worker].gpu;
}

/* The number of the figure that the operation is a sample of; SIZE_MAX: of none. */
static size_t figure_of(const struct work *w, const struct skep_executed *e)
{
	uint32_t column = column_of(&e->op);
	if (column == NO_COLUMN || e->seconds <= 0)
		return SIZE_MAX;
	return ((size_t)gpu_of(w, e) * w->vstages + e->op.stage) * COLUMNS + column;
}

static double whole_s(const struct work *w, const struct skep_executed *e, size_t figure)
{
	double expected = 1e-9 * (double)skep_scenario_op_ns(&w->quiet, e->worker, &e->op);
	return e->seconds / expected * expected_s(&w->quiet.op_time[figure / COLUMNS], (uint32_t)(figure % COLUMNS));
}

/* Samples by figure: counted, then dealt out. */
static bool deal(struct work *w, size_t figures)
{
	const struct skep_samples *s = w->samples;
	w->begin = calloc(figures + 2, sizeof *w->begin);
	w->sample = calloc(s->executions + 1, sizeof *w->sample);
	if (w->begin == NULL || w->sample == NULL)
		return false;
	size_t *count = w->begin + 1;
	for (size_t i = 0; i < s->executions; i++) {
		size_t figure = figure_of(w, &s->executed[i]);
		if (figure != SIZE_MAX)
			count[figure + 1]++;
	}
	for (size_t f = 1; f <= figures; f++)
		count[f] += count[f - 1];
	for (size_t i = 0; i < s->executions; i++) {
		size_t figure = figure_of(w, &s->executed[i]);
		if (figure != SIZE_MAX)
			w->sample[count[figure]++] = whole_s(w, &s->executed[i], figure);
	}
	return true;
}

static void set_pass(struct work *w, size_t figure)
{
	static const struct skep_ranked none = {NAN, NAN, NAN, 0};
	struct skep_pass_figures *pass = &w->c->pass[figure / COLUMNS];
	struct skep_figure *f = &pass->column[figure % COLUMNS];
	uint32_t count = (uint32_t)(w->begin[figure + 1] - w->begin[figure]);
	*f = (struct skep_figure){
		expected_s(&w->quiet.op_time[figure / COLUMNS], (uint32_t)(figure % COLUMNS)), none, NULL};
	pass->used = pass->used || count > 0;
	if (count >= SKEP_CALIBRATE_ROUNDS_LEAST)
		f->after = skep_ranked_median(w->sample + w->begin[figure], count);
	else
		f->kept = count > 0 ? "fewer than three were executed" : "none was executed";
}

/* Of passes and steps of one GPU: by how much a sample differs from the median of its figure, and the sum of all samples over
 * what it were if each took the median. */
static bool set_noise(struct work *w, uint32_t gpu)
{
	size_t first = (size_t)gpu * w->vstages * COLUMNS, last = first + (size_t)w->vstages * COLUMNS, count = 0;
	double *part = calloc(w->begin[last] - w->begin[first] + 1, sizeof *part);
	double sum_s = 0, medians_s = 0;
	if (part == NULL)
		return false;
	for (size_t f = first; f < last; f++) {
		const struct skep_figure *figure = &w->c->pass[f / COLUMNS].column[f % COLUMNS];
		for (size_t i = w->begin[f]; i < w->begin[f + 1] && figure->after.samples > 1; i++) {
			part[count++] = w->sample[i] / figure->after.value;
			sum_s += w->sample[i];
			medians_s += figure->after.value;
		}
	}
	w->c->gpu[gpu].mean = count > 0 ? sum_s / medians_s : NAN;
	w->c->gpu[gpu].noise = skep_ranked_deviation(part, (uint32_t)count);
	free(part);
	return true;
}

/* Operations of reductions: overhead + bytes / memory bandwidth. The bytes are those that are expected to be moved. */
static bool set_memory(struct work *w, uint32_t gpu)
{
	static const struct skep_ranked none = {NAN, NAN, NAN, 0};
	const struct skep_gpu *of = &w->quiet.topology.gpu[gpu];
	struct skep_gpu_figures *ret = &w->c->gpu[gpu];
	struct skep_ranked_point *point = calloc(w->samples->executions + 1, sizeof *point);
	struct skep_ranked_line line;
	uint32_t count = 0;
	if (point == NULL)
		return false;
	ret->overhead = (struct skep_figure){of->overhead_s, none, NULL};
	ret->memory_Bps = (struct skep_figure){of->memory_Bps, none, NULL};
	for (size_t i = 0; i < w->samples->executions && w->quiet.offload == SKEP_OFFLOAD_NONE; i++) {
		const struct skep_executed *e = &w->samples->executed[i];
		if (!skep_op_reduces(e->op.kind) || column_of(&e->op) != NO_COLUMN || gpu_of(w, e) != gpu)
			continue;
		double expected = 1e-9 * (double)skep_scenario_op_ns(&w->quiet, e->worker, &e->op);
		point[count++] =
			(struct skep_ranked_point){fmax(0, expected - of->overhead_s) * of->memory_Bps, e->seconds};
	}
	bool fine = skep_ranked_line(point, count, &line), enough = count >= SKEP_CALIBRATE_SAMPLES_LEAST;
	bool both = fine && enough && line.sizes > 1 && line.slope.low > 0 &&
	            line.slope.high <= SKEP_CALIBRATE_SPAN_MAX * line.slope.low;
	if (both)
		ret->memory_Bps.after = (struct skep_ranked){
			1 / line.slope.value, 1 / line.slope.high, 1 / line.slope.low, line.slope.samples};
	else if (fine)
		fine = skep_ranked_intercept(point, count, 1 / of->memory_Bps, &line.intercept);
	ret->overhead.kept = enough ? NULL : "fewer than five operations of reductions";
	ret->memory_Bps.kept = both ? NULL : enough ? "times hardly grow with bytes" : ret->overhead.kept;
	if (fine && enough)
		ret->overhead.after = (struct skep_ranked){fmax(0, line.intercept.value), fmax(0, line.intercept.low),
			fmax(0, line.intercept.high), line.intercept.samples};
	free(point);
	return fine;
}

bool skep_passes_fit(const struct skep_samples *samples, struct skep_calibration *c)
{
	struct work w = {.samples = samples, .c = c, .quiet = *c->scenario};
	uint32_t gpus = c->scenario->topology.gpus;
	w.vstages = skep_plan_vstages(&c->scenario->plan);
	w.quiet.compute.noise = 0;
	size_t figures = (size_t)gpus * w.vstages * COLUMNS;
	bool fine = deal(&w, figures);
	for (size_t f = 0; fine && f < figures; f++)
		set_pass(&w, f);
	for (uint32_t gpu = 0; fine && gpu < gpus; gpu++)
		fine = set_noise(&w, gpu) && set_memory(&w, gpu);
	free(w.begin);
	free(w.sample);
	return fine;
}
