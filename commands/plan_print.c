/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_print.c - what `skep plan` says to a person: what each allocation comes to, and with --explain what was chosen, stage by
 * stage, and which links carry how much.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "commands/plan_confirm.h"
#include "commands/plan_joint.h"
#include "commands/plan_out.h"
#include "planning/traffic.h"
#include "scenarios/layout.h"
#include "scenarios/memory.h"
#include "scenarios/split.h"

/* ---- the comparison ----------------------------------------------------------------------------------------------- */

static void lay_step(struct skep_layout *layout, double seconds)
{
	char text[SKEP_TEXT_BYTES];
	skep_layout_cell(layout, "%s", seconds < SKEP_NEVER ? skep_time_text(seconds, text) : "-");
}

/* "layers 3 2 2 2"; of many, only that there is a cut. */
static void name_cut(const struct plan_work *w, const uint32_t *layers, char *ret, size_t size)
{
	uint32_t slices = skep_plan_slices(&w->scenario.plan);
	int used = snprintf(ret, size, "layers");
	for (uint32_t i = 0; i < slices && (size_t)used + 8 < size; i++)
		used += snprintf(ret + used, size - (size_t)used, " %" PRIu32, layers[i]);
	if ((size_t)used + 8 >= size)
		snprintf(ret, size, "another cut");
}

static void lay_remarks(const struct plan_work *w, uint32_t which, struct skep_layout *layout)
{
	const struct plan_candidate *c = &w->candidate[which];
	uint32_t out = which > 0 ? plan_out_count(w, c->stage_of) : 0;
	const char *chosen = which == w->chosen ? "chosen" : "", *optimal = c->optimal ? "least expected" : "";
	char left[40] = "", cut[80] = "", all[120] = "", mean[SKEP_TEXT_BYTES], worst[SKEP_TEXT_BYTES];
	if (out > 0)
		snprintf(left, sizeof left, "%" PRIu32 " left out", out);
	if (c->layers)
		name_cut(w, c->layers, cut, sizeof cut);
	if (!isnan(c->mean_s))
		snprintf(all, sizeof all, "of all the mean is %s, the worst %s", skep_time_text(c->mean_s, mean),
			skep_time_text(c->worst_s, worst));
	const char *part[] = {chosen, optimal, all, left, cut};
	char text[320] = "";
	for (size_t i = 0; i < sizeof part / sizeof *part; i++)
		if (*part[i])
			snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", *text ? ", " : "", part[i]);
	skep_layout_cell(layout, "%s", text);
}

static void lay_candidate(const struct plan_work *w, uint32_t which, struct skep_layout *layout)
{
	const struct plan_candidate *c = &w->candidate[which];
	skep_layout_cell(layout, "%s", c->name);
	skep_layout_cell(layout, "%s", which == 0 ? "-" : c->view == SKEP_VIEW_SHARED ? "shared" : "alone");
	lay_step(layout, c->step_s[SKEP_VIEW_SHARED]);
	lay_step(layout, c->step_s[SKEP_VIEW_ALONE]);
	if (c->tried) {
		lay_step(layout, c->round_s);
		skep_layout_cell(layout, "%.6g", c->samples_per_s);
		if (w->random_rate.count > 0)
			skep_layout_cell(layout, "%.2f", c->samples_per_s / w->random_rate.mean);
		else
			skep_layout_cell(layout, "-");
	} else {
		skep_layout_cell(layout, "%s", c->fits ? "-" : "does not fit");
		skep_layout_cell(layout, "-");
		skep_layout_cell(layout, "-");
	}
	lay_remarks(w, which, layout);
}

static void lay_random(const struct plan_work *w, struct skep_layout *layout)
{
	char rate[SKEP_TEXT_BYTES];
	skep_layout_cell(layout, "random");
	skep_layout_cell(layout, "-");
	lay_step(layout, w->random_step.count > 0 ? w->random_step.mean : SKEP_NEVER);
	skep_layout_cell(layout, "-");
	lay_step(layout, w->random_round.count > 0 ? w->random_round.mean : SKEP_NEVER);
	if (w->random_rate.count > 0)
		skep_layout_cell(layout, "%s", skep_mean_text(w->random_rate.mean, w->random_rate.half, rate));
	else
		skep_layout_cell(layout, "-");
	skep_layout_cell(layout, w->random_rate.count > 0 ? "1.00" : "-");
	skep_layout_cell(layout, "mean of %" PRIu32 "%s", w->random_rate.count,
		w->random_rate.count < plan_randoms(w) ? ", the others cannot be or were not tried" : "");
}

void plan_print(const struct plan_work *w, FILE *out)
{
	static const char *const head[] = {
		"allocation", "links", "expected", "links alone", "simulated", "samples/s", "times random", ""};
	struct skep_layout layout;
	const struct plan_candidate *c = &w->candidate[w->chosen];
	char time[SKEP_TEXT_BYTES];
	if (w->joint)
		plan_joint_print(w->joint, out);
	fprintf(out,
		"%s: %" PRIu32 " worker%s in %" PRIu32 " stage%s; a step's time as expected, and in %" PRIu32
		" simulated\n\n",
		w->scenario.name, w->planning.workers, skep_plural(w->planning.workers), w->planning.stages,
		skep_plural(w->planning.stages), w->rounds);
	skep_layout_begin(&layout, "llrrrrrl", head);
	lay_candidate(w, 0, &layout);
	lay_random(w, &layout);
	for (uint32_t i = 1; i < w->candidates; i++)
		lay_candidate(w, i, &layout);
	skep_layout_end(&layout, out);
	fprintf(out, "\nchosen: %s, %.6g samples/s simulated", c->name, c->samples_per_s);
	if (w->chosen == 0)
		fprintf(out, ": the scenario's own allocation, and nothing that was tried is better");
	else if (w->candidate[0].tried)
		fprintf(out, ", %.2f times the scenario's own allocation",
			c->samples_per_s / w->candidate[0].samples_per_s);
	if (c->layers && w->even_samples_per_s > 0)
		fprintf(out, ", %.2f times the best that was tried without another cut",
			c->samples_per_s / w->even_samples_per_s);
	if (c->forecast.rounds > 0)
		fprintf(out, "; %s to the target loss%s", skep_time_text(c->forecast.time_s, time),
			c->forecast.extrapolated ? " (extrapolated)" : "");
	if (c->forecast.rounds > 0 && isfinite(c->forecast.usd))
		fprintf(out, ", %.4g USD", c->forecast.usd);
	fprintf(out, "\n");
	if (w->opened)
		fprintf(out,
			"%s: as it is cut by itself the model fits nobody's memory, so all of this is with another cut\n",
			w->cut);
	if (c->forecast.rounds > 0 && c->forecast.extrapolated)
		fprintf(out, "extrapolated: the law was fitted elsewhere: %s\n", c->forecast.how);
	plan_confirm_print_stated(w, "", out);
}

/* ---- the stages --------------------------------------------------------------------------------------------------- */

static bool alike(const struct plan_work *w, uint32_t a, uint32_t b)
{
	const struct skep_topology *t = &w->scenario.topology;
	const struct skep_machine *x = &t->machine[w->planning.machine[a]], *y = &t->machine[w->planning.machine[b]];
	return x->place == y->place && x->gpu == y->gpu;
}

void plan_crew(const struct plan_work *w, const uint32_t *stage_of, uint32_t stage, char *ret, size_t size)
{
	const struct skep_topology *t = &w->scenario.topology;
	size_t used = 0;
	ret[0] = '\0';
	for (uint32_t i = 0; i < w->planning.workers; i++) {
		uint32_t count = 0, earlier = 0;
		for (uint32_t j = 0; stage_of[i] == stage && j < w->planning.workers; j++) {
			count += stage_of[j] == stage && alike(w, i, j);
			earlier += j < i && stage_of[j] == stage && alike(w, i, j);
		}
		if (count == 0 || earlier > 0)
			continue;
		const struct skep_machine *m = &t->machine[w->planning.machine[i]];
		uint32_t gpus = skep_split_of(&w->scenario, m->gpu).gpus;
		char split[16] = "";
		if (gpus > 1)
			snprintf(split, sizeof split, "%" PRIu32 " ", gpus);
		int wrote = snprintf(ret + used, size - used, "%s%s %" PRIu32 " x %s%s", used > 0 ? ", " : "",
			t->place_name[m->place], count, split, t->gpu[m->gpu].name);
		used = (size_t)wrote < size - used ? used + (size_t)wrote : size - 1;
	}
}

static void print_stages(const struct plan_work *w, const struct skep_throughput_parts *parts,
	const struct skep_throughput_stage *stage, const struct skep_scenario *planned, FILE *out)
{
	static const char *const head[] = {"stage", "layers", "workers", "memory", "to next", "reduced", "forward",
		"backward", "pace", "by", "reduction", "who"};
	static const char *const by[] = {"computing", "sending", "receiving"};
	struct skep_layout layout;
	char text[SKEP_TEXT_BYTES], crew[200];
	const uint32_t *stage_of = w->candidate[w->chosen].stage_of;
	uint32_t slices = skep_plan_slices(&w->scenario.plan);
	skep_layout_begin(&layout, "rrrrrrrrrlrl", head);
	for (uint32_t i = 0; i < w->planning.stages; i++) {
		uint32_t first, layers, gpu = w->scenario.topology.machine[w->planning.machine[stage[i].slowest]].gpu;
		const struct skep_op_time *time = &w->scenario.op_time[(size_t)gpu * slices + i];
		skep_model_cut(&w->scenario.model, slices, i, &first, &layers);
		plan_crew(w, stage_of, i, crew, sizeof crew);
		skep_layout_cell(&layout, "%" PRIu32 "%s", i, i == parts->slowest_stage ? " *" : "");
		skep_layout_cell(&layout, "%" PRIu32 "-%" PRIu32, first, first + layers - 1);
		skep_layout_cell(&layout, "%" PRIu32, stage[i].workers);
		skep_layout_cell(&layout, "%s", skep_bytes_text(planned->memory_bytes[i], text));
		skep_layout_cell(&layout, "%s",
			skep_bytes_text(i + 1 < w->planning.stages ? w->planning.forward_bytes[i] : 0, text));
		skep_layout_cell(&layout, "%s", skep_bytes_text(w->planning.reduced_bytes[i], text));
		skep_layout_cell(&layout, "%s", skep_time_text(1e-9 * (double)time->forward_ns, text));
		skep_layout_cell(&layout, "%s", skep_time_text(1e-9 * (double)time->backward_ns, text));
		skep_layout_cell(&layout, "%s", skep_time_text(stage[i].pace_s, text));
		skep_layout_cell(&layout, "%s", by[stage[i].bottleneck]);
		skep_layout_cell(&layout, "%s", skep_time_text(stage[i].reduction_s, text));
		skep_layout_cell(&layout, "%s", crew);
	}
	skep_layout_end(&layout, out);
}

void plan_print_stages(const struct plan_work *w, const struct skep_scenario *planned, FILE *out)
{
	const struct plan_candidate *c = &w->candidate[w->chosen];
	struct skep_throughput_stage *stage = calloc(w->planning.stages, sizeof *stage);
	if (!stage)
		return;
	struct skep_throughput_parts parts = skep_throughput_explain(w->cost[c->view], c->stage_of, stage);
	print_stages(w, &parts, stage, planned, out);
	free(stage);
}

/* Of the worker that sets the pace of each stage; nothing where all have one GPU. */
static void print_split(const struct plan_work *w, const struct skep_throughput_stage *stage, FILE *out)
{
	static const char *const head[] = {"stage", "GPUs of a worker", "between them", "of its passes"};
	struct skep_layout layout;
	char text[SKEP_TEXT_BYTES];
	bool any = false;
	for (uint32_t gpu = 0; gpu < w->scenario.topology.gpus; gpu++)
		any = any || skep_split_of(&w->scenario, gpu).gpus > 1;
	if (!any)
		return;
	fprintf(out,
		"\nstages that are split over the GPUs of a worker (cluster.tensor_parallel): time on the link between "
		"them, of a\nmicrobatch there and back\n\n");
	skep_layout_begin(&layout, "rrrr", head);
	for (uint32_t i = 0; i < w->planning.stages; i++) {
		uint32_t worker = stage[i].slowest, gpu = w->scenario.topology.machine[w->planning.machine[worker]].gpu;
		double inner_s = 0, passes_s = w->planning.compute_s[(size_t)worker * w->planning.stages + i];
		for (uint32_t slice = i; slice < skep_plan_slices(&w->scenario.plan); slice += w->planning.stages)
			inner_s += skep_split_inner_s(&w->scenario, gpu, slice);
		skep_layout_cell(&layout, "%" PRIu32, i);
		skep_layout_cell(&layout, "%" PRIu32, skep_split_of(&w->scenario, gpu).gpus);
		skep_layout_cell(&layout, "%s", skep_time_text(inner_s, text));
		skep_layout_cell(&layout, "%.1f %%", 100 * inner_s / passes_s);
	}
	skep_layout_end(&layout, out);
}

/* ---- bytes -------------------------------------------------------------------------------------------------------- */

static void print_classes(const struct skep_planning_traffic *traffic, FILE *out)
{
	static const char *const head[] = {"links", "between stages", "in reductions"};
	struct skep_layout layout;
	char text[SKEP_TEXT_BYTES];
	skep_layout_begin(&layout, "lrr", head);
	for (uint32_t i = 0; i < SKEP_LINK_CLASSES; i++) {
		const struct skep_planning_bytes *bytes = &traffic->on[i];
		if (!(bytes->pipeline > 0) && !(bytes->reduction > 0))
			continue;
		skep_layout_cell(&layout, "%s", skep_link_class_name[i]);
		skep_layout_cell(&layout, "%s", skep_bytes_text(bytes->pipeline, text));
		skep_layout_cell(&layout, "%s", skep_bytes_text(bytes->reduction, text));
	}
	skep_layout_end(&layout, out);
}

static void print_complexity(const struct plan_work *w, FILE *out)
{
	struct skep_planning_traffic t;
	char a[SKEP_TEXT_BYTES], b[SKEP_TEXT_BYTES];
	if (!skep_planning_traffic(&w->planning, w->candidate[w->chosen].stage_of, &t))
		return;
	fprintf(out,
		"\nbytes of a step, by what one flow gets; in all at most 2 B (S - 1) b L H = 2 x %.6g x %" PRIu32
		" x %.6g x %.6g x %.4g B = %s between stages,\nand about 2 (n - 1) V for each stage = %s in reductions "
		"(n workers,\nV bytes of gradients)\n\n",
		t.microbatches, w->planning.stages - 1, t.samples, t.tokens, t.number_bytes,
		skep_bytes_text(t.closed.pipeline, a), skep_bytes_text(t.closed.reduction, b));
	print_classes(&t, out);
}

void plan_explain(const struct plan_work *w, FILE *out)
{
	struct skep_throughput_stage *stage = calloc(w->planning.stages, sizeof *stage);
	struct skep_scenario planned;
	struct skep_diag diag = {0};
	char flow[SKEP_TEXT_BYTES], pace[SKEP_TEXT_BYTES], trip[SKEP_TEXT_BYTES], sum[SKEP_TEXT_BYTES];
	const struct plan_candidate *c = &w->candidate[w->chosen];
	if (!stage || !plan_trial_read(w, c->stage_of, &planned, &diag)) {
		free(stage);
		return;
	}
	const struct skep_objective *cost = w->cost[c->view];
	struct skep_throughput_parts parts = skep_throughput_explain(cost, c->stage_of, stage);
	fprintf(out,
		"\nwhat was chosen (forward and backward: a microbatch on the worker that sets the pace; pace: time of the\n"
		"whole swarm for each microbatch; * the bottleneck)\n\n");
	print_stages(w, &parts, stage, &planned, out);
	print_split(w, stage, out);
	fprintf(out,
		"\nexpected: %s for all microbatches (pace %s, one there and back %s)%s, %s for the longest reduction%s\n",
		skep_time_text(parts.flow_s, flow), skep_time_text(parts.pace_s, pace),
		skep_time_text(parts.trip_s, trip), parts.starved ? "; more in flight would help" : "",
		skep_time_text(parts.reduction_s, sum),
		w->planning.throughput[0].delayed ? ", which goes on meanwhile" : "");
	plan_out_print(w, out);
	print_complexity(w, out);
	skep_scenario_finish(&planned);
	free(stage);
}
