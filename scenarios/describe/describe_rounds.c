/* SPDX-License-Identifier: Apache-2.0
 *
 * describe_rounds.c - see describe_groups.h: how rounds are made, by periodic sync or after each step, what is made of
 * the parts of their members, which of these are Byzantine, and what is reduced beside the backward pass.
 */
#include "scenarios/describe/describe_groups.h"

#include <inttypes.h>
#include <math.h>

#include "base/layout.h"
#include "core/sums.h"
#include "scenarios/plan/plan.h"
#include "scenarios/read/groups.h"
#include "scenarios/read/periodic.h"

/* ---- periodic sync ------------------------------------------------------------------------------------------------ */

static void print_async(const struct skep_scenario *s, FILE *out)
{
	const struct skep_plan *plan = &s->plan;
	if (plan->inner.by_share)
		fprintf(out, "            each merges once in the time of a round, however many steps it has made\n");
	else
		fprintf(out, "            each merges after %u step%s of its own, its part of so many samples each\n",
			plan->inner.steps, skep_plural(plan->inner.steps));
	if (plan->reduction.gather)
		fprintf(out, "            what %u of a stage's workers bring, or all of them, is merged as one\n",
			plan->async.group_size);
	if (s->outer.turns > 0)
		fprintf(out, "            the outer momentum changes every %u merge%s\n", s->outer.turns,
			skep_plural(s->outer.turns));
	else if (plan->reduction.gather)
		fprintf(out, "            the outer momentum changes once when all of a stage have merged\n");
	else
		fprintf(out, "            the outer momentum changes once in as many merges as a stage has workers\n");
}

static uint64_t under_way(const struct skep_scenario *s)
{
	uint64_t all = (uint64_t)skep_plan_serving(s, 0) * s->plan.in_flight;
	return all < s->plan.microbatches ? all : s->plan.microbatches;
}

/* How many inner steps the first stage makes while a microbatch is away, by Little's law: as many microbatches come back as are
 * under way. Its gradient is of parameters that are newer than its activations by so many. None in a fixed pipeline, which runs
 * empty before each step. */
static double steps_away(const struct skep_scenario *s)
{
	return skep_plan_fixed(&s->plan) ? 0 : (double)under_way(s) / skep_plan_inner_batch(&s->plan);
}

static void print_fragments(const struct skep_plan *plan, FILE *out)
{
	uint32_t fragments = skep_plan_fragments(plan);
	if (fragments == 1 && plan->inner.overlap == 0)
		return;
	if (fragments > 1)
		fprintf(out,
			"            and sums one of %u %sfragments of each stage; each has its turn every %u steps and is",
			fragments, plan->inner.strided ? "strided " : "",
			(uint32_t)skep_plan_steps_before(plan, fragments));
	else
		fprintf(out, "            and sums all of each stage, which is");
	fprintf(out, " applied %u step%s later%s\n", plan->inner.overlap, skep_plural(plan->inner.overlap),
		plan->inner.deadline ? ", for which a worker waits"
		: plan->delayed      ? ", or when it is there"
				     : "");
}

static uint32_t steps_between_sums(const struct skep_plan *plan)
{
	return (uint32_t)skep_plan_steps_before(plan, skep_plan_cycle(plan));
}

/* Workers that do not meet before the end train apart from each other, which is not what local steps are asked for. Where stages
 * have periods of their own, those with a shorter one do. */
static bool is_longer_than_run(const struct skep_scenario *s)
{
	return !s->plan.inner.sum_every && steps_between_sums(&s->plan) > s->until_steps;
}

static void print_length(const struct skep_scenario *s, FILE *out)
{
	const struct skep_plan *plan = &s->plan;
	uint64_t steps = skep_plan_all_steps(s);
	if (steps != s->until_steps)
		fprintf(out, "            %s: %" PRIu64 " steps, not the %" PRIu32 " of train.until.steps\n",
			plan->inner.sum_every ? "the run ends with a sum of every stage" : "rounds are whole", steps,
			s->until_steps);
	if (is_longer_than_run(s))
		fprintf(out,
			"            warning: sync.%s, %" PRIu32 " steps, is longer than the run, %" PRIu32
			" in train.until.steps: %s\n",
			plan->inner.by_share ? "mean_inner_steps" : "every", steps_between_sums(plan), s->until_steps,
			plan->inner.fragments > 1 ? "some fragments are never summed"
						  : "the only outer step is the one that ends it");
}

static uint32_t period_of(const struct skep_plan *plan, uint32_t stage)
{
	return plan->inner.steps * skep_plan_sum_every(plan, stage);
}

static void print_periods(const struct skep_scenario *s, FILE *out)
{
	const struct skep_plan *plan = &s->plan;
	if (!plan->inner.sum_every)
		return;
	fprintf(out, "            by stage, workers sum every");
	for (uint32_t stage = 0; stage < plan->stages; stage++)
		fprintf(out, "%s%" PRIu32, stage > 0 ? ", " : " ", period_of(plan, stage));
	fprintf(out, " steps; bytes of a round are the mean\n");
	if (s->until_s > 0 || s->until_usd > 0 || !isnan(s->target_loss))
		fprintf(out, "            a run that time, usd or loss ends may end between two sums of a stage\n");
}

void skep_periodic_print(const struct skep_scenario *s, FILE *out)
{
	const struct skep_plan *plan = &s->plan;
	if (!skep_plan_periodic(plan))
		return;
	uint32_t samples = s->batch / plan->inner.steps;
	fprintf(out, "  periodic  %s: a round is ", skep_periodic_method(plan));
	if (plan->inner.cycle > 0)
		fprintf(out, "%u or ", plan->inner.steps - 1);
	fprintf(out, "%u inner step%s of %u sample%s; %s\n", plan->inner.steps, skep_plural(plan->inner.steps), samples,
		skep_plural(samples),
		plan->async.waits      ? "a worker waits for its own merge, and for no other worker"
		: plan->async.on       ? "no worker waits for another"
		: plan->inner.by_share ? "a worker makes as many as it counts its part of, a fast one more"
		: plan->inner.fixed || skep_plan_fixed(plan) ? "each worker makes so many, on equal parts"
							     : "each worker makes so many, on what it is sent");
	print_length(s, out);
	if (plan->async.on)
		print_async(s, out);
	if (plan->gossip)
		fprintf(out,
			"            when a round ends each worker meets one other of its stage, drawn anew; an odd one is "
			"alone\n");
	print_fragments(plan, out);
	print_periods(s, out);
	fprintf(out, "            outer optimizer %s, lr %g, momentum %g",
		s->outer.kind == SKEP_OPTIMIZER_SGD ? "sgd" : "nesterov", (double)s->outer.learning_rate,
		(double)s->outer.momentum);
	if (plan->delayed && !plan->async.on)
		fprintf(out, "; %g of what a worker did meanwhile is kept", (double)s->mixing);
	uint32_t batch = skep_plan_inner_batch(plan);
	fprintf(out, "\n            %" PRIu32 " microbatch%s a step, up to %" PRIu64 " under way", batch,
		batch == 1 ? "" : "es", under_way(s));
	if (!skep_plan_fixed(plan))
		fprintf(out,
			": when one comes back to the first stage, parameters there are up to %.2g steps newer than when it "
			"left%s",
			steps_away(s), steps_away(s) >= 1 ? "; a smaller schedule.in_flight learns better" : "");
	fprintf(out, "\n");
}

void skep_periodic_add_json(const struct skep_scenario *s, cJSON *root)
{
	const struct skep_plan *plan = &s->plan;
	cJSON_AddNumberToObject(root, "steps", (double)skep_plan_all_steps(s));
	cJSON_AddNumberToObject(root, "samples_per_step", s->batch / skep_plan_most_steps(plan));
	cJSON *periodic = skep_json_add_object(root, "periodic", skep_plan_periodic(plan));
	if (periodic == NULL)
		return;
	cJSON_AddStringToObject(periodic, "method", skep_periodic_method(plan));
	cJSON_AddNumberToObject(periodic, "fragments", skep_plan_fragments(plan));
	cJSON_AddStringToObject(periodic, "fragment_pattern", plan->inner.strided ? "strided" : "sequential");
	cJSON_AddNumberToObject(periodic, "overlap_steps", plan->inner.overlap);
	cJSON_AddBoolToObject(periodic, "overlap_deadline", plan->inner.deadline);
	cJSON_AddNumberToObject(periodic, "inner_steps", skep_plan_mean_steps(plan));
	cJSON *every = plan->inner.sum_every ? cJSON_AddArrayToObject(periodic, "every") : NULL;
	for (uint32_t stage = 0; every && stage < plan->stages; stage++)
		cJSON_AddItemToArray(every, cJSON_CreateNumber(period_of(plan, stage)));
	cJSON_AddBoolToObject(periodic, "longer_than_run", is_longer_than_run(s));
	cJSON_AddStringToObject(periodic, "steps_by",
		plan->inner.by_share                         ? "share"
		: plan->inner.fixed || skep_plan_fixed(plan) ? "fixed"
							     : "progress");
	cJSON_AddNumberToObject(periodic, "microbatches_per_step", skep_plan_inner_batch(plan));
	cJSON_AddNumberToObject(periodic, "under_way", (double)under_way(s));
	cJSON_AddNumberToObject(periodic, "steps_between_passes", steps_away(s));
	cJSON_AddStringToObject(periodic, "outer_optimizer", s->outer.kind == SKEP_OPTIMIZER_SGD ? "sgd" : "nesterov");
	cJSON_AddNumberToObject(periodic, "outer_learning_rate", (double)s->outer.learning_rate);
	cJSON_AddNumberToObject(periodic, "outer_momentum", (double)s->outer.momentum);
	cJSON_AddNumberToObject(periodic, "mixing", plan->delayed && !plan->async.on ? (double)s->mixing : 0);
	if (plan->async.on) /* 0: as many as the stage has workers at the start */
		cJSON_AddNumberToObject(periodic, "buffer", s->outer.turns);
	if (plan->async.on)
		cJSON_AddNumberToObject(periodic, "group_size", plan->reduction.gather ? plan->async.group_size : 1);
}

/* ---- aggregation -------------------------------------------------------------------------------------------------- */

static void print_attackers(const struct skep_scenario *s, FILE *out)
{
	uint32_t attackers = 0;
	for (uint32_t i = 0; i < s->plan.workers; i++)
		attackers += s->liar[i];
	fprintf(out, "  byzantine worker%s ", skep_plural(attackers));
	for (uint32_t i = 0; i < s->plan.workers; i++)
		if (s->liar[i])
			fprintf(out, "%" PRIu32 "%s", i, --attackers > 0 ? ", " : "");
	const char *what = s->attacks_activations ? "the activations" : "the gradient";
	fprintf(out, s->attacks_activations ? ": what goes to the next stage is " : ": what goes into reductions is ");
	if (s->attack == SKEP_ATTACK_SIGN_FLIP)
		fprintf(out, "-%g times %s\n", s->attack_scale, what);
	else if (s->attack == SKEP_ATTACK_NOISE)
		fprintf(out, "%s times noise of deviation %g\n", what, s->attack_scale);
	else
		fprintf(out, "NaN\n");
}

void skep_robust_print(const struct skep_scenario *s, FILE *out)
{
	uint32_t most = skep_plan_serving_most(s), left_out = skep_robust_left_out(&s->robust, most);
	if (s->plan.reduction.gather) {
		fprintf(out, "  aggregate %s: of %" PRIu32 " workers of a stage ",
			skep_robust_method_name(s->robust.method), most);
		if (s->robust.method == SKEP_ROBUST_TRIMMED_MEAN)
			fprintf(out,
				"the %" PRIu32 " least and the %" PRIu32 " largest are left out, element by element\n",
				left_out, left_out);
		else
			fprintf(out, "the %" PRIu32 " with the lowest score %s left out, rho %g\n", left_out,
				left_out == 1 ? "is" : "are", s->robust.rho);
	}
	if (s->liar)
		print_attackers(s, out);
}

void skep_robust_add_json(const struct skep_scenario *s, cJSON *root)
{
	cJSON_AddStringToObject(root, "aggregate", skep_robust_method_name(s->robust.method));
	if (s->plan.reduction.gather)
		cJSON_AddNumberToObject(root, "left_out", skep_robust_left_out(&s->robust, skep_plan_serving_most(s)));
	if (s->robust.method == SKEP_ROBUST_ZENO)
		cJSON_AddNumberToObject(root, "rho", s->robust.rho);
	cJSON *byzantine = skep_json_add_object(root, "byzantine", s->liar != NULL);
	if (byzantine == NULL)
		return;
	cJSON_AddStringToObject(byzantine, "attack", skep_attack_name(s->attack));
	cJSON_AddStringToObject(byzantine, "tensors", skep_attack_tensors_name(s->attacks_activations));
	if (s->attack != SKEP_ATTACK_NAN)
		cJSON_AddNumberToObject(byzantine, "scale", s->attack_scale);
	cJSON *workers = cJSON_AddArrayToObject(byzantine, "workers");
	for (uint32_t i = 0; i < s->plan.workers; i++)
		if (s->liar[i])
			cJSON_AddItemToArray(workers, cJSON_CreateNumber(i));
}

/* ---- buckets that are reduced beside the backward pass ------------------------------------------------------------ */

struct bucket_sizes {
	uint32_t buckets;
	double least_bytes, most_bytes;
};

static struct bucket_sizes sizes_of(const struct skep_scenario *s, uint32_t stage)
{
	struct bucket_sizes sizes = {.buckets = skep_plan_buckets(&s->plan, stage), .least_bytes = INFINITY};
	for (uint32_t b = 0; b < sizes.buckets; b++) {
		uint64_t first, count;
		skep_plan_bucket(&s->plan, stage, b, &first, &count);
		sizes.least_bytes = fmin(sizes.least_bytes, (double)(skep_model_number_bytes(&s->model) * count));
		sizes.most_bytes = fmax(sizes.most_bytes, (double)(skep_model_number_bytes(&s->model) * count));
	}
	return sizes;
}

void skep_overlap_print(const struct skep_scenario *s, FILE *out)
{
	char least[SKEP_TEXT_BYTES], most[SKEP_TEXT_BYTES];
	for (uint32_t stage = 0; s->plan.eager && stage < s->plan.stages; stage++) {
		struct bucket_sizes sizes = sizes_of(s, stage);
		fprintf(out, "  overlap   stage %u: %u bucket%s of %s to %s, summed beside the last backward pass\n",
			stage, sizes.buckets, skep_plural(sizes.buckets), skep_bytes_text(sizes.least_bytes, least),
			skep_bytes_text(sizes.most_bytes, most));
	}
}

void skep_overlap_add_json(const struct skep_scenario *s, cJSON *root)
{
	if (!s->plan.eager) {
		cJSON_AddNullToObject(root, "overlap");
		return;
	}
	cJSON *rows = cJSON_AddArrayToObject(root, "overlap");
	for (uint32_t stage = 0; stage < s->plan.stages; stage++) {
		struct bucket_sizes sizes = sizes_of(s, stage);
		cJSON *row = skep_json_add_row(rows);
		cJSON_AddNumberToObject(row, "stage", stage);
		cJSON_AddNumberToObject(row, "buckets", sizes.buckets);
		cJSON_AddNumberToObject(row, "least_bytes", sizes.least_bytes);
		cJSON_AddNumberToObject(row, "most_bytes", sizes.most_bytes);
	}
}
