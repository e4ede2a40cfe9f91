/* SPDX-License-Identifier: Apache-2.0
 *
 * describe_step.c - see describe_groups.h.
 */
#include "scenarios/describe/describe_groups.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/layout.h"
#include "scenarios/outage/outage.h"
#include "scenarios/plan/loss.h"
#include "scenarios/plan/plan.h"

struct whole {                                 /* a run without losses or joins, in whole rounds */
	double steps, time_s, usd, egress_usd; /* usd: NAN, prices unknown; of it, egress_usd for traffic */
	double lost_s;                         /* of the time, since the directory is lost ... */
	uint32_t outages;                      /* ... so often */
	const char *ended_by;                  /* the key of train.until */
	bool at_most;                          /* train.until.loss may end it earlier: when is not known */
	bool unreached;                        /* by its law it never has that loss */
};

static bool has_loss(const struct skep_scenario *s)
{
	return s->plan.until.target_loss_nano != INT64_MIN;
}

/* By the law; INFINITY: it is not reached, or there is no law or no such end. */
static double steps_until_loss(const struct skep_scenario *s)
{
	uint32_t rounds =
		s->law && has_loss(s) ? skep_loss_rounds_to(s, 1e-9 * (double)s->plan.until.target_loss_nano) : 0;
	return rounds > 0 ? (double)skep_plan_steps_before(&s->plan, rounds) : INFINITY;
}

/* Of all machines for so long from the start of the run, each at the prices of that time; NAN: not known. */
static double machines_usd(const struct skep_scenario *s, double time_s)
{
	skep_time until_ns = (skep_time)fmin(1e9 * time_s, (double)(SKEP_TIME_NEVER / 4));
	double usd = 0;
	for (uint32_t i = 0; i < s->plan.workers; i++)
		if (skep_scenario_pays_at_start(s, i))
			usd += skep_topology_cost_usd(&s->topology, i, 0, until_ns);
	return usd;
}

/* Without a flush the first stage makes its step when the gradient is back, which is a half of a microbatch's way through the
 * stages later than the last one does. Over lines that take longer than passes all that are under way go one behind the other. */
static double share_apart(const struct skep_described_step *step)
{
	double fill_s = step->pace.fill_s, trip_s = fill_s + step->pace.step_s;
	return fill_s > 0 ? fmin(1, 0.5 + step->busy * fill_s / trip_s) : 0;
}

/* With the losses of the directory that the scenario has; *ret_times: how many. */
static double time_with_losses(
	const struct skep_scenario *s, const struct skep_described_step *step, double steps, uint32_t *ret_times)
{
	uint32_t rounds = skep_plan_rounds_of(&s->plan, (uint32_t)steps);
	double kept_s = s->plan.checkpoint_every > 0 ? step->pace.last_checkpoint_s : 0;
	double apart = skep_plan_no_flush(&s->plan) ? share_apart(step) : 0;
	return skep_outage_run_s(s, skep_pace_time_s(s, &step->pace, steps), rounds, kept_s, apart, ret_times);
}

static double time_behind(const struct skep_scenario *s, const struct skep_described_step *step, double steps)
{
	uint32_t times;
	return time_with_losses(s, step, steps, &times);
}

static double usd_behind(const struct skep_scenario *s, const struct skep_described_step *step, double steps)
{
	return machines_usd(s, time_behind(s, step, steps)) + skep_pace_traffic_usd(s, &step->pace, steps);
}

/* What grows with the steps of a run. */
typedef double grows(const struct skep_scenario *s, const struct skep_described_step *step, double steps);

/* The first of so many steps at whose end that is so much; INFINITY: none, or no such end is given. */
static double steps_until(
	const struct skep_scenario *s, const struct skep_described_step *step, double steps, grows *behind, double end)
{
	double low = 0, high = steps;
	if (!(end > 0) || !(behind(s, step, steps) >= end))
		return INFINITY;
	while (high - low > 1) {
		double middle = floor((low + high) / 2);
		if (behind(s, step, middle) >= end)
			high = middle;
		else
			low = middle;
	}
	return high;
}

/* The end of the round in which so many steps are made; INFINITY: it comes behind the last one. */
static double whole_rounds(const struct skep_scenario *s, double steps)
{
	double all = (double)skep_plan_all_steps(s);
	return steps < all ? (double)skep_plan_whole_steps(s, (uint32_t)steps) : INFINITY;
}

static struct whole whole_run(const struct skep_scenario *s, const struct skep_described_step *step)
{
	double least = (double)skep_plan_all_steps(s);
	struct whole whole = {.ended_by = "steps"};
	double by_time = whole_rounds(s, steps_until(s, step, least, time_behind, s->until_s));
	double by_usd = whole_rounds(s, steps_until(s, step, least, usd_behind, s->until_usd));
	double by_loss = steps_until_loss(s);
	whole.at_most = has_loss(s) && !s->law;
	whole.unreached = has_loss(s) && s->law && !isfinite(by_loss);
	if (by_time < least)
		whole.ended_by = "time";
	least = fmin(least, by_time);
	if (by_usd < least)
		whole.ended_by = "usd";
	least = fmin(least, by_usd);
	if (by_loss < least)
		whole.ended_by = "loss";
	whole.steps = fmin(least, by_loss);
	whole.time_s = time_with_losses(s, step, whole.steps, &whole.outages);
	whole.lost_s = whole.time_s - skep_pace_time_s(s, &step->pace, whole.steps);
	whole.egress_usd = skep_pace_traffic_usd(s, &step->pace, whole.steps);
	whole.usd = usd_behind(s, step, whole.steps);
	return whole;
}

/* What is known of the loss that ends the run. */
static void describe_loss(const struct skep_scenario *s, const struct whole *whole, FILE *out)
{
	char how[200];
	uint32_t rounds = skep_plan_rounds_of(&s->plan, (uint32_t)whole->steps);
	bool guess = skep_loss_extrapolates(s, rounds, how, sizeof how);
	fprintf(out, "          by the law of %.200s: loss %.4g then%s%s%s\n", s->law->path,
		1e-9 * (double)s->plan.until.target_loss_nano, guess ? " (extrapolated: " : "", guess ? how : "",
		guess ? ")" : "");
}

static void describe_whole(const struct skep_scenario *s, const struct skep_described_step *step, FILE *out)
{
	char time[SKEP_TEXT_BYTES];
	const struct whole whole = whole_run(s, step);
	bool all = strcmp(whole.ended_by, "steps") == 0;
	if (all)
		fprintf(out, "          %s %.0f step%s %s", whole.steps > 1 ? "all" : "the", whole.steps,
			whole.steps > 1 ? "s take" : " takes", skep_time_text(whole.time_s, time));
	else
		fprintf(out, "          train.until.%s ends the run after about %.0f of %" PRIu64 " steps: %s",
			whole.ended_by, whole.steps, skep_plan_all_steps(s), skep_time_text(whole.time_s, time));
	if (isfinite(whole.usd))
		fprintf(out, "%s%.3g USD", all ? " and cost " : ", ", whole.usd);
	if (isfinite(whole.usd) && whole.egress_usd > 0)
		fprintf(out, ", of that %.3g USD for egress", whole.egress_usd);
	fputs(whole.at_most ? " at most: train.until.loss may end it earlier\n" : "\n", out);
	if (strcmp(whole.ended_by, "loss") == 0)
		describe_loss(s, &whole, out);
	else if (whole.unreached)
		fputs("          train.until.loss is not reached by then, by its law\n", out);
	if (whole.outages > 0)
		fprintf(out,
			"          in that the directory is lost %" PRIu32
			" time%s, which takes %s with what is made again\n",
			whole.outages, skep_plural(whole.outages), skep_time_text(whole.lost_s, time));
}

/* Each time, in that. */
static void describe_extras(const struct skep_scenario *s, const struct skep_pace *pace, FILE *out)
{
	char judged[SKEP_TEXT_BYTES], kept[SKEP_TEXT_BYTES];
	bool validates = s->plan.validation.every > 0, keeps = s->plan.checkpoint_every > 0;
	skep_time_text(pace->validation_s, judged);
	skep_time_text(pace->checkpoint_s, kept);
	if (validates && keeps)
		fprintf(out, "          in that a validation takes %s, and keeping a state %s\n", judged, kept);
	else if (validates || keeps)
		fprintf(out, "          in that %s %s\n", validates ? "a validation takes" : "keeping a state takes",
			validates ? judged : kept);
}

static uint32_t at_start(const struct skep_scenario *s)
{
	uint32_t machines = 0;
	for (uint32_t worker = 0; worker < s->plan.workers; worker++)
		machines += skep_scenario_pays_at_start(s, worker);
	return machines;
}

void skep_describe_step(const struct skep_scenario *scenario, const struct skep_described_step *step, FILE *out)
{
	char whole[SKEP_TEXT_BYTES], passes[SKEP_TEXT_BYTES], sum[SKEP_TEXT_BYTES], rest[SKEP_TEXT_BYTES];
	char beside[64] = "";
	const struct skep_plan *plan = &scenario->plan;
	if (plan->inner.deadline)
		snprintf(beside, sizeof beside, ", beside the first %" PRIu32 " step%s of a round", plan->inner.overlap,
			skep_plural(plan->inner.overlap));
	fprintf(out, "\nexpected: %s a step: passes %s, reductions %s%s, updates and the directory %s\n",
		skep_time_text(step->pace.step_s, whole), skep_time_text(step->passes_s, passes),
		skep_time_text(step->reduction_s, sum),
		plan->delayed && !plan->inner.deadline ? " beside them" : beside,
		skep_time_text(step->update_s + step->turn_s, rest));
	fprintf(out, "          busiest in the passes, %.0f %% of the time: %s%s\n", 100 * step->busy, step->bound,
		step->starved ? "; more microbatches in flight would help" : "");
	describe_whole(scenario, step, out);
	describe_extras(scenario, &step->pace, out);
	if (plan->scale)
		fprintf(out,
			"          with the %" PRIu32 " machine%s of the start, of the %" PRIu32
			" that it may ask for\n",
			at_start(scenario), skep_plural(at_start(scenario)), plan->scale->max);
	fprintf(out, "          (means without losses%s; `skep sim` plays it through)\n",
		skep_pace_is_least(scenario) ? ", joins and what waits while a state is kept" : " or joins");
}

void skep_describe_step_json(const struct skep_scenario *scenario, const struct skep_described_step *step, cJSON *root)
{
	cJSON *row = skep_json_add_object(root, "expected", step != NULL);
	if (row == NULL)
		return;
	skep_json_add_count(row, "machines", at_start(scenario));
	skep_json_add_number(row, "step_s", step->pace.step_s);
	skep_json_add_number(row, "passes_s", step->passes_s);
	skep_json_add_number(row, "reduction_s", step->reduction_s);
	skep_json_add_number(row, "update_s", step->update_s);
	skep_json_add_number(row, "directory_s", step->turn_s);
	skep_json_add_number(row, "validation_s", step->pace.validation_s);
	skep_json_add_number(row, "checkpoint_s", step->pace.checkpoint_s);
	skep_json_add_number(row, "last_checkpoint_s", step->pace.last_checkpoint_s);
	skep_json_add_number(row, "busy", step->busy);
	cJSON_AddStringToObject(row, "busiest", step->bound);
	cJSON_AddBoolToObject(row, "starved", step->starved);
	const struct whole whole = whole_run(scenario, step);
	skep_json_add_number(row, "steps", whole.steps);
	skep_json_add_number(row, "time_s", whole.time_s);
	skep_json_add_number(row, "outages", whole.outages);
	skep_json_add_number(row, "outages_s", whole.lost_s);
	skep_json_add_number(row, "cost_usd", whole.usd);
	skep_json_add_number(row, "egress_usd", scenario->topology.egress_usd_per_B ? whole.egress_usd : (double)NAN);
	cJSON_AddStringToObject(row, "ended_by", whole.ended_by);
	cJSON_AddBoolToObject(row, "at_most", whole.at_most);
}
