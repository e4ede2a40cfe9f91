/* SPDX-License-Identifier: Apache-2.0
 *
 * test_delayed.c - delayed updates in the simulator: what they cost (the larger of compute and reduction, not their sum), what
 * they compute (w[t+1] = w[t] - lr g(w[t-1]), worked out here in double precision), and what comes of a run that ends while
 * a later round is open.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "models/corpus/data.h"
#include "models/stage/stage.h"
#include "scenarios/read/scenario.h"
#include "sim/sim.h"

#define ROUNDS 24u

struct run { /* what the recorder hears */
	struct skep_sim_result result;
	double opened_s[ROUNDS + 1], closed_s[ROUNDS], loss[ROUNDS];
	double passes_end_s[ROUNDS], step_end_s[ROUNDS];
	int64_t stalest[ROUNDS], freshest[ROUNDS];
	uint32_t opened, closed, losses;
};

static void hear_note(void *context, skep_time now, struct skep_peer who, const struct skep_note *note)
{
	struct run *run = context;
	(void)who;
	if (note->kind == SKEP_NOTE_ROUND_OPENED)
		run->opened_s[run->opened++] = (double)now * 1e-9;
	if (note->kind == SKEP_NOTE_ROUND_CLOSED)
		run->closed_s[run->closed++] = (double)now * 1e-9;
	if (note->kind == SKEP_NOTE_LOSS)
		run->loss[run->losses++] = (double)note->value * 1e-9;
	if (note->kind == SKEP_NOTE_COUNTED && note->value > run->stalest[note->round])
		run->stalest[note->round] = note->value;
	if (note->kind == SKEP_NOTE_COUNTED && note->value < run->freshest[note->round])
		run->freshest[note->round] = note->value;
}

static void hear_op(void *context, const struct skep_op_span *span)
{
	struct run *run = context;
	double *end_s = span->kind == SKEP_OP_BACKWARD ? run->passes_end_s
	                : span->kind == SKEP_OP_STEP   ? run->step_end_s
	                                               : NULL;
	if (end_s)
		end_s[span->round] = fmax(end_s[span->round], (double)span->end_ns * 1e-9);
}

static void write_file(const char *name, const char *text)
{
	FILE *file = fopen(name, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
}

static void read_scenario(const char *text, bool delayed, struct skep_scenario *ret)
{
	struct skep_diag diag = {0};
	const char *const set[] = {delayed ? "sync.delayed=true" : "sync.delayed=false"};
	struct skep_scenario_options options = {.set = set, .sets = 1};
	if (!skep_scenario_read_text("s.yaml", text, strlen(text), &options, ret, &diag))
		fail_msg("%s", diag.text);
	assert_int_equal(ret->plan.delayed, delayed);
}

static void simulate(const struct skep_scenario *s, struct run *ret)
{
	*ret = (struct run){0};
	for (uint32_t r = 0; r < ROUNDS; r++)
		ret->freshest[r] = INT64_MAX;
	const struct skep_recorder recorder = {.context = ret, .note = hear_note, .op = hear_op};
	assert_true(skep_sim_run(s, &recorder, &ret->result));
	assert_int_equal(ret->result.outcome, SKEP_DONE);
}

static void check_staleness(const struct run *run, bool delayed)
{
	for (uint32_t r = 0; r < run->closed; r++) {
		assert_int_equal(run->stalest[r], delayed && r > 0);
		assert_int_equal(run->freshest[r], delayed && r > 0);
	}
}

/* ---- time ------------------------------------------------------------------------------------------------------- */

static const char *const topology_text = "name: t\nsource: assumed for this test\ndirectory: here\nsites:\n  here:\n"
					 "    machines: [{count: 4, gpu: g}]\n"
					 "    inside: {bandwidth: 1 Gbit/s, latency: 0.01 ms}\n";
static const char *const gpu_text = "name: g\nsource: assumed for this test\nflops: 1 TFLOP/s\nefficiency: 1\n"
				    "memory_bandwidth: 100 GB/s\nmemory: 16 GB\noverhead: 10 us\n";
static const char *const wide_text = "name: m\nkind: mlp\nactivation: tanh\n"
				     "layers: {inputs: 1, hidden: 512, hidden_layers: 4, outputs: 1}\n";

/* Mean seconds from the end of one round to that of the next, when the run is in its swing. */
static double period_s(const struct run *run)
{
	return (run->closed_s[ROUNDS - 4] - run->closed_s[3]) / (ROUNDS - 7);
}

/* With so much compute in a round: the two parts of a step when they follow each other, and the period when they overlap. */
static void check_period(unsigned batch, bool reduction_is_longer)
{
	char text[512];
	struct skep_scenario s;
	static struct run prompt, delayed;
	snprintf(text, sizeof text,
		"name: d\nmodel: {file: m.yaml, stages: 1}\ncluster: {topology: t.yaml}\n"
		"schedule: {global_batch: %u, microbatch: 16}\n"
		"train: {arithmetic: none, until: {steps: %u}}\n",
		batch, ROUNDS);
	read_scenario(text, false, &s);
	simulate(&s, &prompt);
	skep_scenario_finish(&s);
	read_scenario(text, true, &s);
	simulate(&s, &delayed);
	skep_scenario_finish(&s);
	check_staleness(&prompt, false);
	check_staleness(&delayed, true);
	double compute_s = 0, reduce_s = 0;
	for (uint32_t r = 3; r + 4 < ROUNDS; r++) {
		compute_s += (prompt.passes_end_s[r] - prompt.step_end_s[r - 1]) / (ROUNDS - 7);
		reduce_s += (prompt.step_end_s[r] - prompt.passes_end_s[r]) / (ROUNDS - 7);
	}
	double sum_s = compute_s + reduce_s, longer_s = fmax(compute_s, reduce_s);
	printf("compute %.3f ms, reduction and step %.3f ms: together %.3f ms, delayed %.3f ms, sum / max %.3f\n",
		1e3 * compute_s, 1e3 * reduce_s, 1e3 * period_s(&prompt), 1e3 * period_s(&delayed), sum_s / longer_s);
	assert_int_equal(reduce_s > compute_s, reduction_is_longer);
	assert_true(sum_s > 1.3 * longer_s); /* else there is nothing to see */
	assert_true(fabs(period_s(&prompt) / sum_s - 1) < 0.01);
	assert_true(fabs(period_s(&delayed) / longer_s - 1) < 0.02);
}

static void test_period(void **state)
{
	(void)state;
	check_period(8192, true);
	check_period(32768, false);
	check_period(16384, false);
}

/* ---- arithmetic ------------------------------------------------------------------------------------------------- */

enum { HIDDEN = 4, MICROBATCHES = 3, PARAMETERS = 3 * HIDDEN + 1 };

static const char *const small_text = "name: m\nkind: mlp\nactivation: tanh\n"
				      "layers: {inputs: 1, hidden: 4, hidden_layers: 1, outputs: 1}\n";
static const char *const small_scenario = "name: d\nmodel: {file: m.yaml, stages: 2}\ncluster: {topology: t2.yaml}\n"
					  "schedule: {global_batch: 24, microbatch: 8}\n"
					  "train:\n  optimizer: {name: sgd, lr: 5.0e-3}\n  until: {steps: 24}\n";
static const char *const adamw_scenario = "name: d\nmodel: {file: m.yaml, stages: 2}\ncluster: {topology: t2.yaml}\n"
					  "schedule: {global_batch: 24, microbatch: 8}\n"
					  "train:\n  optimizer: {name: adamw, lr: 5.0e-2, beta2: 0.99}\n"
					  "  until: {steps: 24}\n";

/* u[HIDDEN], a[HIDDEN], v[HIDDEN], b: b + sum v tanh(u x + a). Mean squared error and its gradient over a round. */
static double loss_and_gradient(const struct skep_scenario *s, uint32_t round, const double *w, double *ret_gradient)
{
	const double *u = w, *a = w + HIDDEN, *v = w + 2 * HIDDEN, samples = MICROBATCHES * (double)s->samples;
	double sum = 0;
	memset(ret_gradient, 0, PARAMETERS * sizeof *ret_gradient);
	for (uint32_t m = 0; m < MICROBATCHES; m++) {
		float x[64], y[64];
		skep_corpus_microbatch(&s->training, round, m, x, y);
		for (uint32_t i = 0; i < s->samples; i++) {
			double hidden[HIDDEN], error = w[3 * HIDDEN] - (double)y[i];
			for (uint32_t h = 0; h < HIDDEN; h++) {
				hidden[h] = tanh(u[h] * (double)x[i] + a[h]);
				error += v[h] * hidden[h];
			}
			sum += error * error;
			double delta = 2 * error / samples;
			for (uint32_t h = 0; h < HIDDEN; h++) {
				double inner = delta * v[h] * (1 - hidden[h] * hidden[h]);
				ret_gradient[h] += inner * (double)x[i];
				ret_gradient[HIDDEN + h] += inner;
				ret_gradient[2 * HIDDEN + h] += delta * hidden[h];
			}
			ret_gradient[3 * HIDDEN] += delta;
		}
	}
	return sum / samples;
}

static void first_parameters(const struct skep_scenario *s, double *ret)
{
	for (uint32_t stage = 0; stage < 2; stage++) {
		struct skep_stage made;
		assert_true(skep_stage_init(&s->training, stage, &made));
		for (size_t i = 0; i < made.parameters; i++)
			*ret++ = (double)made.parameter[i];
		skep_stage_finish(&made);
	}
}

/* One step of the optimizer on one parameter, with its mean gradients and squares so far. */
static double stepped(const struct skep_optimizer *o, uint32_t steps, double w, double g, double *mean, double *square)
{
	double rate = (double)o->learning_rate, beta1 = (double)o->beta1, beta2 = (double)o->beta2;
	if (o->kind == SKEP_OPTIMIZER_SGD)
		return w - rate * g;
	*mean = beta1 * *mean + (1 - beta1) * g;
	*square = beta2 * *square + (1 - beta2) * g * g;
	double root = sqrt(*square / (1 - pow(beta2, steps))) + (double)o->epsilon;
	return w - rate * (*mean / (1 - pow(beta1, steps)) / root + (double)o->weight_decay * w);
}

/* The losses of a descent in which each gradient is taken where the parameters were `lag` steps before. */
static void descend(const struct skep_scenario *s, uint32_t lag, double *ret_loss)
{
	double w[ROUNDS + 1][PARAMETERS], gradient[PARAMETERS], mean[PARAMETERS] = {0}, square[PARAMETERS] = {0};
	first_parameters(s, w[0]);
	for (uint32_t t = 0; t < ROUNDS; t++) {
		ret_loss[t] = loss_and_gradient(s, t, w[t < lag ? 0 : t - lag], gradient);
		for (uint32_t i = 0; i < PARAMETERS; i++)
			w[t + 1][i] = stepped(&s->optimizer, t + 1, w[t][i], gradient[i], &mean[i], &square[i]);
	}
}

static double worst(const double *a, const double *b)
{
	double most = 0;
	for (uint32_t t = 0; t < ROUNDS; t++)
		most = fmax(most, fabs(a[t] / b[t] - 1));
	return most;
}

static void check_arithmetic(const char *text, bool delayed)
{
	static struct run run;
	double now[ROUNDS], before[ROUNDS];
	struct skep_scenario s;
	read_scenario(text, delayed, &s);
	descend(&s, 0, now);
	descend(&s, 1, before);
	simulate(&s, &run);
	assert_int_equal(run.losses, ROUNDS);
	check_staleness(&run, delayed);
	assert_true(worst(run.loss, delayed ? before : now) < 1e-5);
	assert_true(worst(run.loss, delayed ? now : before) > 1e-2); /* and the two are not the same */
	skep_scenario_finish(&s);
}

static void test_arithmetic(void **state)
{
	(void)state;
	check_arithmetic(small_scenario, false);
	check_arithmetic(small_scenario, true);
	check_arithmetic(adamw_scenario, false);
	check_arithmetic(adamw_scenario, true);
}

/* ---- the end ---------------------------------------------------------------------------------------------------- */

/* The target is reached by a round when the next one is open: that one is dropped, and never closes. */
static void test_target(void **state)
{
	(void)state;
	static struct run all, some;
	char text[640];
	struct skep_scenario s;
	read_scenario(small_scenario, true, &s);
	simulate(&s, &all);
	skep_scenario_finish(&s);
	assert_int_equal(all.opened, ROUNDS);
	snprintf(text, sizeof text, "%.*s, loss: %.6f}\n", (int)strlen(small_scenario) - 2, small_scenario,
		all.loss[9] + 1e-6);
	read_scenario(text, true, &s);
	simulate(&s, &some);
	skep_scenario_finish(&s);
	uint32_t first = 0;
	while (all.loss[first] > all.loss[9] + 1e-6)
		first++;
	assert_int_equal(some.closed, first + 1);
	assert_int_equal(some.opened, first + 2);
	assert_true(some.closed_s[first] == all.closed_s[first]);
}

static int enter(void **state)
{
	static char folder[] = "/tmp/skep-delayed-XXXXXX";
	*state = folder;
	return mkdtemp(folder) && chdir(folder) == 0 && mkdir("gpus", 0700) == 0 ? 0 : -1;
}

static int leave(void **state)
{
	static const char *const name[] = {"m.yaml", "t.yaml", "t2.yaml", "gpus/g.yaml"};
	for (size_t i = 0; i < sizeof name / sizeof *name; i++)
		unlink(name[i]);
	return rmdir("gpus") == 0 && rmdir(*state) == 0 ? 0 : -1;
}

static int wide(void **state)
{
	(void)state;
	write_file("m.yaml", wide_text);
	write_file("t.yaml", topology_text);
	write_file("gpus/g.yaml", gpu_text);
	return 0;
}

static int small(void **state)
{
	(void)state;
	char text[512], *count;
	snprintf(text, sizeof text, "%s", topology_text);
	count = strstr(text, "count: 4");
	assert_non_null(count);
	count[7] = '2';
	write_file("m.yaml", small_text);
	write_file("t2.yaml", text);
	write_file("gpus/g.yaml", gpu_text);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_period, wide),
		cmocka_unit_test_setup(test_arithmetic, small),
		cmocka_unit_test_setup(test_target, small),
	};
	return cmocka_run_group_tests_name("delayed", tests, enter, leave);
}
