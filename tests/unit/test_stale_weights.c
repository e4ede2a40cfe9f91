/* SPDX-License-Identifier: Apache-2.0
 *
 * test_stale_weights.c - what passes read without a flush (schedule.weights), which steps are synchronous and what the
 * learning rate of a stale stage is, against recurrences that are written here: a perceptron of K layers, each a stage, in
 * double precision, with each version of each layer kept for ever. One pipeline, so BACKWARD of round r comes when r steps
 * are made, and FORWARD in stage s when r - (K - 1 - s) are.
 *
 *   stashed        the gradient of (w_s(r - (K - 1 - s)))                               Narayanan et al. 2019, section 3.3
 *   vertical-sync  w(t + 1) = w(t) - lr grad f(w(t - K + 1))                            the same section
 *   newest         forwards w_s(r - (K - 1 - s)), backwards w_s(r)
 *   predicted      forwards w_s + (K - 1 - s) times the next step as the moments have it, backwards w_s(r)
 *   corrected      forwards as newest, backwards w_s(r) - (K - 1 - s) d
 */
#include "folder_fixture.h"

#include <math.h>
#include <string.h>

#include "models/corpus/data.h"
#include "models/stage/stage.h"
#include "scenarios/read/scenario.h"
#include "sim/sim.h"
#include "tests/unit/fresh.h"
#include "tests/unit/observed_device.h"

enum { K = 8, ROUNDS = 60, SAMPLES = 8, WIDE = 4, MOST = WIDE * WIDE + WIDE };

struct job {
	const char *weights, *optimizer;
	uint32_t synchronous, by_staleness;
	bool adamw;
};

#define EQUAL 5e-7     /* relative: single precision and double */
#define DIFFERENT 1e-6 /* the most that two rules are apart in any round, at least; most are so by 1e-4 and more */

static const double lr = 3e-3, momentum = 0.5, beta1 = 0.9, beta2 = 0.99, epsilon = 1e-3;
static const char sgd[] = "{name: sgd, lr: 3.0e-3, momentum: 0.5}";
static const char adamw[] = "{name: adamw, lr: 3.0e-3, beta1: 0.9, beta2: 0.99, eps: 1.0e-3, weight_decay: 0}";

/* ---- the program ---------------------------------------------------------------------------------------------------- */

static void hear_note(void *context, skep_time now, struct skep_peer who, const struct skep_note *note)
{
	double *loss = context;
	(void)now, (void)who;
	if (note->kind == SKEP_NOTE_LOSS)
		loss[note->round] = 1e-9 * (double)note->value;
}

static void must_read(const struct job *job, struct skep_scenario *ret)
{
	char text[1024];
	struct skep_diag diag = {0};
	folder_write("t.yaml", "name: t\nsource: assumed for this test\ndirectory: here\nsites:\n  here:\n"
			       "    machines: [{count: 8, gpu: g}]\n"
			       "    inside: {bandwidth: 1000000 Gbit/s, latency: 0 us}\n");
	snprintf(text, sizeof text,
		"name: s\nmodel: {file: m.yaml, stages: %d}\n"
		"cluster: {topology: t.yaml, allocation: {method: strided}}\n"
		"schedule: {pipeline: pipedream, global_batch: %d, microbatch: %d, weights: %s, synchronous_steps: %u}\n"
		"train: {init: {method: normal, deviation: 0.7}, optimizer: %s, schedule: {by_staleness: %u}, "
		"until: {steps: %d}}\n",
		K, SAMPLES, SAMPLES, job->weights, job->synchronous, job->optimizer, job->by_staleness, ROUNDS);
	if (!skep_scenario_read_text("s.yaml", text, strlen(text), NULL, ret, &diag))
		fail_msg("%s", diag.text);
}

/* ---- the recurrence -------------------------------------------------------------------------------------------------- */

struct layer {
	uint32_t in, out, numbers;
	double w[ROUNDS + 1][MOST]; /* by version */
	double mean[MOST], square[MOST], drift[MOST], gradient[MOST];
	double x[SAMPLES][WIDE], slope[SAMPLES][WIDE];
};

static struct layer layers[K];

static uint32_t at_least(int64_t round, int64_t lag, int64_t floor)
{
	return (uint32_t)(round - lag > floor ? round - lag : floor);
}

/* The version that FORWARD of the round begins with. */
static uint32_t forward_version(const struct job *job, uint32_t s, uint32_t round)
{
	bool vertical = strcmp(job->weights, "vertical-sync") == 0;
	if (round < job->synchronous)
		return round;
	return at_least(round, vertical ? K - 1 : K - 1 - s, job->synchronous > 0 ? job->synchronous - 1 : 0);
}

static double rate(const struct job *job, uint32_t s, uint32_t round)
{
	uint32_t lag = strcmp(job->weights, "vertical-sync") == 0 ? K - 1 : K - 1 - s;
	if (lag < 2 || round < job->synchronous || round - job->synchronous >= job->by_staleness)
		return lr;
	return lr / pow(lag, 1 - (double)(round - job->synchronous) / job->by_staleness);
}

static void read_forward(const struct job *job, uint32_t s, uint32_t round, double *ret)
{
	const struct layer *l = &layers[s];
	uint32_t version = forward_version(job, s, round);
	for (uint32_t i = 0; i < l->numbers; i++) {
		double next = job->adamw && version > 0
		                      ? l->mean[i] / (1 - pow(beta1, version)) /
		                                (sqrt(l->square[i] / (1 - pow(beta2, version))) + epsilon)
		                      : l->mean[i];
		ret[i] = l->w[version][i];
		if (strcmp(job->weights, "predicted") == 0)
			ret[i] -= (round - version) * rate(job, s, version) * next;
	}
}

static void read_backward(const struct job *job, uint32_t s, uint32_t round, const double *forward, double *ret)
{
	const struct layer *l = &layers[s];
	uint32_t version = forward_version(job, s, round);
	bool stashed = strcmp(job->weights, "stashed") == 0 || strcmp(job->weights, "vertical-sync") == 0;
	for (uint32_t i = 0; i < l->numbers; i++) {
		ret[i] = stashed ? forward[i] : l->w[round][i];
		if (strcmp(job->weights, "corrected") == 0)
			ret[i] -= (round - version) * l->drift[i];
	}
}

/* Sets what each layer keeps, and the gradient at the output; returns the loss. */
static double go_forward(
	double forward[K][MOST], double x[SAMPLES][WIDE], const float *target, double ret[SAMPLES][WIDE])
{
	double loss = 0;
	for (uint32_t s = 0; s < K; s++) {
		struct layer *l = &layers[s];
		memcpy(l->x, x, sizeof l->x);
		for (uint32_t b = 0; b < SAMPLES; b++) {
			for (uint32_t j = 0; j < l->out; j++) {
				double sum = forward[s][l->in * l->out + j];
				for (uint32_t i = 0; i < l->in; i++)
					sum += l->x[b][i] * forward[s][i * l->out + j];
				x[b][j] = s + 1 < K ? tanh(sum) : sum;
				l->slope[b][j] = s + 1 < K ? 1 - x[b][j] * x[b][j] : 1;
			}
		}
	}
	for (uint32_t b = 0; b < SAMPLES; b++) {
		double error = x[b][0] - (double)target[b];
		loss += error * error / SAMPLES;
		ret[b][0] = 2 * error / SAMPLES;
	}
	return loss;
}

static void go_backward(double backward[K][MOST], double gradient[SAMPLES][WIDE])
{
	for (uint32_t s = K; s-- > 0;) {
		struct layer *l = &layers[s];
		memset(l->gradient, 0, sizeof l->gradient);
		for (uint32_t b = 0; b < SAMPLES; b++) {
			double delta[WIDE], below[WIDE] = {0};
			for (uint32_t j = 0; j < l->out; j++) {
				delta[j] = gradient[b][j] * l->slope[b][j];
				l->gradient[l->in * l->out + j] += delta[j];
				for (uint32_t i = 0; i < l->in; i++) {
					l->gradient[i * l->out + j] += l->x[b][i] * delta[j];
					below[i] += delta[j] * backward[s][i * l->out + j];
				}
			}
			memcpy(gradient[b], below, sizeof below);
		}
	}
}

static void step_layer(const struct job *job, uint32_t s, uint32_t round)
{
	struct layer *l = &layers[s];
	double kept = s + 1 < K ? exp(-2.0 / (K - 1 - s)) : 0;
	for (uint32_t i = 0; i < l->numbers; i++) {
		double g = l->gradient[i], step;
		if (job->adamw) {
			l->mean[i] = beta1 * l->mean[i] + (1 - beta1) * g;
			l->square[i] = beta2 * l->square[i] + (1 - beta2) * g * g;
			step = l->mean[i] / (1 - pow(beta1, round + 1.0)) /
			       (sqrt(l->square[i] / (1 - pow(beta2, round + 1.0))) + epsilon);
		} else {
			step = l->mean[i] = momentum * l->mean[i] + g;
		}
		l->w[round + 1][i] = l->w[round][i] - rate(job, s, round) * step;
		l->drift[i] = kept * l->drift[i] + (1 - kept) * (l->w[round + 1][i] - l->w[round][i]);
	}
}

/* As the devices of the run begin. */
static void draw(const struct skep_scenario *scenario)
{
	for (uint32_t s = 0; s < K; s++) {
		struct skep_stage stage;
		assert_true(skep_stage_init(&scenario->training, s, &stage));
		layers[s] = (struct layer){.in = s == 0 ? 1 : WIDE, .out = s + 1 == K ? 1 : WIDE};
		layers[s].numbers = layers[s].in * layers[s].out + layers[s].out;
		assert_int_equal(stage.parameters, layers[s].numbers);
		for (uint32_t i = 0; i < layers[s].numbers; i++)
			layers[s].w[0][i] = (double)stage.parameter[i];
		skep_stage_finish(&stage);
	}
}

static void follow(const struct job *job, const struct skep_scenario *scenario, double *ret_loss)
{
	/* What stage s reads in FORWARD of round r is made of its state of that time, which is before its next steps. */
	static double read_ahead[ROUNDS + K][K][MOST];
	draw(scenario);
	for (uint32_t s = 0; s < K; s++)
		for (uint32_t r = 0; r < ROUNDS && forward_version(job, s, r) == 0; r++)
			read_forward(job, s, r, read_ahead[r][s]);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		float drawn[SAMPLES], target[SAMPLES];
		double x[SAMPLES][WIDE] = {{0}}, gradient[SAMPLES][WIDE] = {{0}}, backward[K][MOST];
		skep_corpus_microbatch(&scenario->training, round, 0, drawn, target);
		for (uint32_t b = 0; b < SAMPLES; b++)
			x[b][0] = (double)drawn[b];
		for (uint32_t s = 0; s < K; s++)
			read_backward(job, s, round, read_ahead[round][s], backward[s]);
		ret_loss[round] = go_forward(read_ahead[round], x, target, gradient);
		go_backward(backward, gradient);
		for (uint32_t s = 0; s < K; s++) {
			step_layer(job, s, round);
			for (uint32_t r = round + 1; r < ROUNDS; r++)
				if (forward_version(job, s, r) == round + 1)
					read_forward(job, s, r, read_ahead[r][s]);
		}
	}
}

/* ---- both ------------------------------------------------------------------------------------------------------------ */

static void compare(const struct job *job, double *ret_loss)
{
	struct skep_scenario s;
	struct skep_sim_result result;
	double expected[ROUNDS];
	const struct skep_recorder recorder = {.context = ret_loss, .note = hear_note};
	must_read(job, &s);
	assert_true(skep_sim_run(&s, &recorder, &result));
	assert_int_equal(result.outcome, SKEP_DONE);
	follow(job, &s, expected);
	for (uint32_t r = 0; r < ROUNDS; r++) {
		double apart = fabs(ret_loss[r] - expected[r]) / expected[r];
		if (apart > EQUAL)
			fail_msg("%s, %s, synchronous %u, by staleness %u: round %u has the loss %.9f, by hand %.9f",
				job->weights, job->adamw ? "adamw" : "sgd", job->synchronous, job->by_staleness, r,
				ret_loss[r], expected[r]);
	}
	skep_scenario_finish(&s);
}

static const char *const weights[] = {"stashed", "newest", "vertical-sync", "predicted", "corrected"};
enum { WEIGHTS = sizeof weights / sizeof *weights };

/* Each follows its own recurrence and no other one's. */
static void each_by_hand(uint32_t synchronous, uint32_t by_staleness, bool adam)
{
	static double loss[WEIGHTS][ROUNDS];
	for (uint32_t i = 0; i < WEIGHTS; i++)
		compare(&(struct job){.weights = weights[i],
				.optimizer = adam ? adamw : sgd,
				.synchronous = synchronous,
				.by_staleness = by_staleness,
				.adamw = adam},
			loss[i]);
	for (uint32_t i = 0; i < WEIGHTS; i++)
		for (uint32_t j = 0; j < i; j++) {
			double apart = 0;
			for (uint32_t r = 0; r < ROUNDS; r++)
				apart = fmax(apart, fabs(loss[i][r] / loss[j][r] - 1));
			if (apart < DIFFERENT)
				fail_msg("%s and %s learn the same", weights[i], weights[j]);
		}
}

static void test_by_hand(void **state)
{
	(void)state;
	each_by_hand(0, 0, false);
	each_by_hand(0, 0, true);
}

static void test_synchronous_steps(void **state)
{
	(void)state;
	each_by_hand(1, 0, false);
	each_by_hand(20, 0, false);
	each_by_hand(20, 0, true);
}

static void test_rate_by_staleness(void **state)
{
	(void)state;
	each_by_hand(0, 40, false);
	each_by_hand(15, 30, true);
}

/* All steps are synchronous: nothing is stale, so all of them are one, and it is what 1F1B does with a flush after each. */
static void test_all_synchronous(void **state)
{
	(void)state;
	static double loss[WEIGHTS][ROUNDS];
	for (uint32_t i = 0; i < WEIGHTS; i++) {
		compare(&(struct job){.weights = weights[i], .optimizer = sgd, .synchronous = ROUNDS}, loss[i]);
		assert_memory_equal(loss[i], loss[0], sizeof loss[0]);
	}
}

/* ---- memory ---------------------------------------------------------------------------------------------------------- */

/* Arrays of a stage's parameters, by hand: K - s versions; K of them; one; and one or two beside the one. All is trained. */
static void test_memory(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < WEIGHTS; i++) {
		struct skep_scenario s;
		must_read(&(struct job){.weights = weights[i], .optimizer = sgd}, &s);
		for (uint32_t stage = 0; stage < K; stage++) {
			const uint32_t arrays[] = {K - stage, 1, K, 2, 3};
			struct skep_diag error;
			struct skep_device *device = skep_device_create_on(
				SKEP_DEVICE_CPU, &(struct skep_device_place){0}, &s.training, stage, fresh(&error));
			assert_non_null(device);
			double bytes = 4.0 * arrays[i] * (double)s.plan.stage[stage].parameters;
			assert_true((double)device_memory_of(device).weights_bytes == bytes);
			assert_true(s.memory[stage].weights == bytes);
			skep_device_destroy(device);
		}
		skep_scenario_finish(&s);
	}
}

static int enter(void **state)
{
	static char folder[] = "/tmp/skep-weights-XXXXXX";
	*state = folder;
	return folder_enter(folder, "inputs: 1, hidden: 4, hidden_layers: 7, outputs: 1");
}

static int leave(void **state)
{
	return folder_leave(*state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_hand),
		cmocka_unit_test(test_synchronous_steps),
		cmocka_unit_test(test_rate_by_staleness),
		cmocka_unit_test(test_all_synchronous),
		cmocka_unit_test(test_memory),
	};
	return cmocka_run_group_tests(tests, enter, leave);
}
