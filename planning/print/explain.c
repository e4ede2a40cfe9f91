/* SPDX-License-Identifier: Apache-2.0
 *
 * explain.c - see print.h. What was chosen, stage by stage, which links carry how much, and why machines are left out: that is
 * answered by putting one of each kind back, at the stage where a step then costs least.
 */
#include "planning/print/print.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/layout.h"
#include "planning/problem/traffic.h"
#include "scenarios/plan/split.h"

/* ---- the stages --------------------------------------------------------------------------------------------------- */

static bool alike(const struct skep_planner *w, uint32_t a, uint32_t b)
{
	const struct skep_topology *t = &w->scenario.topology;
	const struct skep_machine *x = &t->machine[w->planning.machine[a]], *y = &t->machine[w->planning.machine[b]];
	return x->place == y->place && x->gpu == y->gpu;
}

void skep_planner_members(
	const struct skep_planner *w, const uint32_t *stage_of, uint32_t stage, char *ret, size_t size)
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

/* "0-3", or of several virtual stages "4 in 2". */
static void put_layers(const struct skep_planner *w, uint32_t stage, char *ret, size_t size)
{
	const uint32_t vstages = skep_plan_vstages(&w->scenario.plan), stages = w->planning.stages;
	uint32_t first, layers, all = 0;
	for (uint32_t vstage = stage; vstage < vstages; vstage += stages) {
		skep_model_cut(&w->scenario.model, vstages, vstage, &first, &layers);
		all += layers;
	}
	if (vstages > stages)
		snprintf(ret, size, "%" PRIu32 " in %" PRIu32, all, vstages / stages);
	else
		snprintf(ret, size, "%" PRIu32 "-%" PRIu32, first, first + layers - 1);
}

static void print_stages(const struct skep_planner *w, const struct skep_throughput_parts *parts,
	const struct skep_throughput_stage *stage, const struct skep_scenario *planned, FILE *out)
{
	static const char *const head[] = {"stage", "layers", "workers", "memory", "to next", "reduced", "forward",
		"backward", "pace", "by", "reduction", "who"};
	static const char *const by[] = {"computing", "sending", "receiving"};
	struct skep_layout layout;
	char text[SKEP_TEXT_BYTES], layers[40], stage_workers[200];
	const uint32_t *stage_of = w->candidate[w->chosen].stage_of;
	uint32_t vstages = skep_plan_vstages(&w->scenario.plan);
	skep_layout_begin(&layout, "rrrrrrrrrlrl", head);
	for (uint32_t i = 0; i < w->planning.stages; i++) {
		const uint32_t gpu = w->scenario.topology.machine[w->planning.machine[stage[i].slowest]].gpu;
		const struct skep_op_time *time = &w->scenario.op_time[(size_t)gpu * vstages];
		uint64_t forward_ns = 0, backward_ns = 0;
		for (uint32_t vstage = i; vstage < vstages; vstage += w->planning.stages) {
			forward_ns += time[vstage].forward_ns;
			backward_ns += time[vstage].backward_ns;
		}
		put_layers(w, i, layers, sizeof layers);
		skep_planner_members(w, stage_of, i, stage_workers, sizeof stage_workers);
		skep_layout_cell(&layout, "%" PRIu32 "%s", i, i == parts->slowest_stage ? " *" : "");
		skep_layout_cell(&layout, "%s", layers);
		skep_layout_cell(&layout, "%" PRIu32, stage[i].workers);
		skep_layout_cell(&layout, "%s", skep_bytes_text(planned->memory_bytes[i], text));
		skep_layout_cell(&layout, "%s",
			skep_bytes_text(i + 1 < w->planning.stages ? w->planning.forward_bytes[i] : 0, text));
		skep_layout_cell(&layout, "%s", skep_bytes_text(w->planning.reduced_bytes[i], text));
		skep_layout_cell(&layout, "%s", skep_time_text(1e-9 * (double)forward_ns, text));
		skep_layout_cell(&layout, "%s", skep_time_text(1e-9 * (double)backward_ns, text));
		skep_layout_cell(&layout, "%s", skep_time_text(stage[i].pace_s, text));
		skep_layout_cell(&layout, "%s", by[stage[i].bottleneck]);
		skep_layout_cell(&layout, "%s", skep_time_text(stage[i].reduction_s, text));
		skep_layout_cell(&layout, "%s", stage_workers);
	}
	skep_layout_end(&layout, out);
}

void skep_planner_print_stages(const struct skep_planner *w, const struct skep_scenario *planned, FILE *out)
{
	const struct skep_candidate *c = &w->candidate[w->chosen];
	struct skep_throughput_stage *stage = calloc(w->planning.stages, sizeof *stage);
	if (!stage)
		return;
	struct skep_throughput_parts parts = skep_throughput_explain(w->cost[c->view], c->stage_of, stage);
	print_stages(w, &parts, stage, planned, out);
	free(stage);
}

/* Of the worker that sets the pace of each stage; nothing where all have one GPU. */
static void print_split(const struct skep_planner *w, const struct skep_throughput_stage *stage, FILE *out)
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
		for (uint32_t vstage = i; vstage < skep_plan_vstages(&w->scenario.plan); vstage += w->planning.stages)
			inner_s += skep_split_inner_s(&w->scenario, gpu, vstage);
		skep_layout_cell(&layout, "%" PRIu32, i);
		skep_layout_cell(&layout, "%" PRIu32, skep_split_of(&w->scenario, gpu).gpus);
		skep_layout_cell(&layout, "%s", skep_time_text(inner_s, text));
		skep_layout_cell(&layout, "%.1f %%", 100 * inner_s / passes_s);
	}
	skep_layout_end(&layout, out);
}

/* ---- machines that are left out ------------------------------------------------------------------------------------ */

struct skep_left_out skep_planner_put_back(const struct skep_planner *w, uint32_t worker)
{
	const struct skep_candidate *c = &w->candidate[w->chosen];
	const struct skep_objective *cost = w->rented ? w->rented : w->cost[c->view], *time = w->cost[c->view];
	struct skep_left_out b = {.stage = SKEP_SPARE, .step_s = SKEP_NEVER, .usd = NAN, .without_usd = NAN};
	uint32_t *with = calloc(w->planning.workers, sizeof *with);
	double least = SKEP_NEVER;
	if (!with)
		return b;
	memcpy(with, c->stage_of, w->planning.workers * sizeof *with);
	b.without_s = time->whole(time->self, with);
	b.without_usd = w->rented ? cost->whole(cost->self, with) : NAN;
	for (uint32_t stage = 0; stage < w->planning.stages; stage++) {
		if (!(w->planning.compute_s[(size_t)worker * w->planning.stages + stage] < INFINITY))
			continue;
		with[worker] = stage;
		double here = cost->whole(cost->self, with);
		if (b.stage != SKEP_SPARE && !(here < least))
			continue;
		least = here;
		b.stage = stage;
		b.fits = here < SKEP_NEVER;
		b.usd = w->rented ? here : NAN;
		b.step_s = time->whole(time->self, with);
	}
	free(with);
	return b;
}

/* Machines of one kind at one place, of which this is the first that is out. */
static uint32_t crowd(const struct skep_planner *w, uint32_t worker)
{
	const uint32_t *stage_of = w->candidate[w->chosen].stage_of;
	uint32_t count = 0;
	for (uint32_t i = 0; i < w->planning.workers; i++) {
		if (stage_of[i] != SKEP_SPARE || !alike(w, i, worker))
			continue;
		if (i < worker)
			return 0;
		count++;
	}
	return count;
}

static void print_why(const struct skep_left_out *b, FILE *out)
{
	char with[SKEP_TEXT_BYTES], without[SKEP_TEXT_BYTES];
	if (b->stage == SKEP_SPARE)
		fprintf(out, "no stage fits");
	else if (!b->fits)
		fprintf(out, "beside the others it fits nowhere");
	else if (!isnan(b->usd))
		fprintf(out, "with one at stage %" PRIu32 " a step costs %.4g USD, not %.4g, and takes %s, not %s",
			b->stage, b->usd, b->without_usd, skep_time_text(b->step_s, with),
			skep_time_text(b->without_s, without));
	else
		fprintf(out, "with one at stage %" PRIu32 " a step takes %s, not %s", b->stage,
			skep_time_text(b->step_s, with), skep_time_text(b->without_s, without));
}

static void print_left_out(const struct skep_planner *w, FILE *out)
{
	const struct skep_topology *t = &w->scenario.topology;
	const uint32_t *stage_of = w->candidate[w->chosen].stage_of;
	if (skep_planner_left_out(w, stage_of) == 0)
		return;
	fprintf(out, "\nleft out, by the cost of the search%s:\n",
		w->planning.rounds ? " (a step times the rounds until the loss, over those of the start)" : "");
	for (uint32_t i = 0; i < w->planning.workers; i++) {
		uint32_t count = stage_of[i] == SKEP_SPARE ? crowd(w, i) : 0;
		if (count == 0)
			continue;
		const struct skep_machine *m = &t->machine[w->planning.machine[i]];
		struct skep_left_out b = skep_planner_put_back(w, i);
		fprintf(out, "  %s %" PRIu32 " x %s: ", t->place_name[m->place], count, t->gpu[m->gpu].name);
		print_why(&b, out);
		fprintf(out, "\n");
	}
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

static void print_sent(const struct skep_planner *w, const struct skep_planning_traffic *t, FILE *out)
{
	const struct skep_plan *plan = &w->scenario.plan;
	const bool by_owner = plan->routing == SKEP_ROUTING_TRAINER, several = skep_plan_model_chunks(plan) > 1;
	char text[SKEP_TEXT_BYTES];
	fprintf(out,
		"  at most %s = %s%.6g x %" PRIu32 " x %.6g x %.6g x %.4g B = %s between stages\n"
		"          (B microbatches of b samples, L tokens each; S stages%s; H bytes for a token)\n",
		by_owner  ? "B (5 S - 8) b L H"
		: several ? "2 B (v S - 1) b L H"
			  : "2 B (S - 1) b L H",
		by_owner ? "" : "2 x ", t->microbatches, by_owner ? t->sent : t->sent / 2, t->samples, t->tokens,
		t->number_bytes, skep_bytes_text(t->closed.pipeline, text), several ? " of v virtual ones" : "");
}

static void print_complexity(const struct skep_planner *w, FILE *out)
{
	struct skep_planning_traffic t;
	char text[SKEP_TEXT_BYTES];
	if (!skep_planning_traffic(&w->planning, w->candidate[w->chosen].stage_of, &t))
		return;
	fputs("\nbytes of a step, in all, and on links by what one flow gets\n", out);
	if (w->planning.stages > 1)
		print_sent(w, &t, out);
	if (t.closed.reduction > 0) {
		fprintf(out, "  about 2 (n - 1) V for each stage");
		if (w->planning.throughput[0].period > 1)
			fprintf(out, ", every %.4g steps,", w->planning.throughput[0].period);
		fprintf(out, " = %s in reductions\n          (n workers, V bytes of gradients)\n",
			skep_bytes_text(t.closed.reduction, text));
	}
	fputs("\n", out);
	print_classes(&t, out);
}

/* What the cost is made of: all of one step, and how a reduction of several steps comes to that. */
static void print_step(const struct skep_throughput *throughput, const struct skep_throughput_parts *parts, FILE *out)
{
	char step[SKEP_TEXT_BYTES], flow[SKEP_TEXT_BYTES], pace[SKEP_TEXT_BYTES], trip[SKEP_TEXT_BYTES],
		part[SKEP_TEXT_BYTES], sum[SKEP_TEXT_BYTES], rest[SKEP_TEXT_BYTES];
	double period = throughput->period;
	fprintf(out, "\nits cost, by the search: %s a step\n", skep_time_text(parts->step_s, step));
	fprintf(out, "  passes      %s (pace %s, a microbatch there and back %s)%s\n",
		skep_time_text(parts->flow_s, flow), skep_time_text(parts->pace_s, pace),
		skep_time_text(parts->trip_s, trip), parts->starved ? "; more in flight would help" : "");
	fprintf(out, "  reductions  %s%s", skep_time_text(parts->reduction_s / period, part),
		throughput->delayed ? ", beside the passes" : "");
	if (throughput->overlap > 0)
		fprintf(out, " of %.4g step%s in a round", throughput->overlap, throughput->overlap > 1 ? "s" : "");
	if (period > 1)
		fprintf(out, " (the longest takes %s, every %.4g steps)", skep_time_text(parts->reduction_s, sum),
			period);
	fprintf(out, "\n  the rest    %s (updates, the directory)\n",
		skep_time_text((parts->update_s + parts->turn_s) / period, rest));
}

void skep_planner_explain(const struct skep_planner *w, FILE *out)
{
	struct skep_throughput_stage *stage = calloc(w->planning.stages, sizeof *stage);
	struct skep_scenario planned;
	struct skep_diag diag = {0};
	const struct skep_candidate *c = &w->candidate[w->chosen];
	if (!stage || !skep_planner_read(w, c->stage_of, NULL, NULL, &planned, &diag)) {
		free(stage);
		return;
	}
	const struct skep_objective *cost = w->cost[c->view];
	struct skep_throughput_parts parts = skep_throughput_explain(cost, c->stage_of, stage);
	fprintf(out,
		"\nwhat was chosen. To next, forward, backward: of a microbatch, on the worker that sets the pace of its stage;\n"
		"pace: from one microbatch to the next, of the whole swarm; reduced, reduction: of one reduction;\n"
		"*: the bottleneck\n\n");
	print_stages(w, &parts, stage, &planned, out);
	print_split(w, stage, out);
	print_step(&w->planning.throughput[0], &parts, out);
	print_left_out(w, out);
	print_complexity(w, out);
	skep_scenario_finish(&planned);
	free(stage);
}
