/* SPDX-License-Identifier: Apache-2.0
 *
 * test_wsp.c - waves (HetPipe, Park et al. 2020, arXiv 2005.14038; core/methods/wsp.c), in the simulator:
 *
 *   - The bounds are the paper's: s_local = Nm - 1, s_global = (D + 1)(s_local + 1) + s_local - 1.
 *   - Arithmetic, against a recurrence that is written here, in double precision: microbatch m of virtual worker p reads in
 *   stage s
 *     W_s(v) - lr / C (its own gradients that it knows of), v waves of all being behind it, and wave r of all makes
 *     W(r + 1) = W(r) - lr / C (all of its gradients). v and what is known are what COUNTED notes say, within the bounds.
 *   - One virtual worker with as many microbatches in a wave as stages is PipeDream with lr / Nm.
 *   - Time. With Nm = K equal virtual workers and D > 0 R waves take (R Nm + K - 1)(f + b), as if nothing were summed; with D =
 *   0 a wave
 *     waits for all of a sum. With one that is c times as slow they take what that one takes; the fast one is ahead by D + 1
 *     waves.
 */
#include "folder_fixture.h"

#include <math.h>
#include <string.h>

#include "core/schedule/pipelines.h"
#include "models/corpus/data.h"
#include "models/stage/stage.h"
#include "scenarios/read/scenario.h"
#include "sim/sim.h"
#include "tests/unit/fresh.h"
#include "tests/unit/observed_device.h"

enum { LAYERS = 4, STAGES_MOST = 4, WORKERS_MOST = 2 * STAGES_MOST, WAVE_MOST = 6, ROUNDS = 24, SAMPLES = 8 };

struct shape {
	uint32_t stages, pipelines, wave, distance;
	bool arithmetic, waves; /* without waves: PipeDream, of as many microbatches */
	const char *latency;
	skep_time forward_ns, backward_ns; /* 0: as the GPUs have it */
	uint32_t slower;                   /* times, of the second pipeline */
};

struct microbatch { /* in one stage */
	bool counted;
	uint32_t lacked, lacked_own;
};

struct run {
	uint32_t stages;
	skep_time begin_ns, end_ns;
	double loss[WAVE_MOST * ROUNDS];
	struct microbatch microbatch[2][STAGES_MOST][ROUNDS * WAVE_MOST];
	uint32_t done[WORKERS_MOST],
		ahead; /* microbatches gone backwards; most waves between two workers of the first stage */
	uint32_t wave;
	struct skep_sim_result result;
};

static void hear_note(void *context, skep_time now, struct skep_peer who, const struct skep_note *note)
{
	struct run *run = context;
	(void)now;
	if (note->kind == SKEP_NOTE_LOSS)
		run->loss[note->round] = 1e-9 * (double)note->value;
	if (note->kind != SKEP_NOTE_COUNTED || run->wave == 0)
		return;
	uint32_t number = note->round * run->wave + note->microbatch % run->wave;
	struct microbatch *m = &run->microbatch[who.index / run->stages][note->stage][number];
	assert_false(m->counted);
	*m = (struct microbatch){true, skep_note_lacked(note->staleness), skep_note_lacked_own(note->staleness)};
	run->done[who.index]++;
	if (note->stage > 0)
		return;
	uint32_t waves = run->done[who.index] / run->wave;
	for (uint32_t w = 0; w < WORKERS_MOST; w += run->stages) {
		bool there = run->done[w] > 0 || w == 0;
		uint32_t behind = there && run->done[w] / run->wave < waves ? waves - run->done[w] / run->wave : 0;
		run->ahead = behind > run->ahead ? behind : run->ahead;
	}
}

static void hear_op(void *context, const struct skep_op_span *span)
{
	struct run *run = context;
	if (span->kind != SKEP_OP_FORWARD && span->kind != SKEP_OP_BACKWARD)
		return;
	run->begin_ns = span->begin_ns < run->begin_ns ? span->begin_ns : run->begin_ns;
	run->end_ns = span->end_ns > run->end_ns ? span->end_ns : run->end_ns;
}

static const double lr = 4e-3;

/* A pipeline's rounds of one microbatch are as many as it has in all its waves, and step by as much together. */
static void must_read(const struct shape *shape, struct skep_scenario *ret)
{
	char text[1024], topology[512];
	struct skep_diag diag = {0};
	snprintf(topology, sizeof topology,
		"name: t\nsource: assumed for this test\ndirectory: here\nsites:\n  here:\n"
		"    machines: [{count: %u, gpu: g}, {count: %u, gpu: h}]\n"
		"    inside: {bandwidth: 1000000 Gbit/s, latency: %s}\n",
		shape->stages, shape->stages * (shape->pipelines - 1), shape->latency);
	if (shape->pipelines == 1)
		snprintf(topology, sizeof topology,
			"name: t\nsource: assumed for this test\ndirectory: here\nsites:\n  here:\n"
			"    machines: [{count: %u, gpu: g}]\n    inside: {bandwidth: 1000000 Gbit/s, latency: %s}\n",
			shape->stages, shape->latency);
	folder_write("t.yaml", topology);
	uint32_t wave = shape->waves ? shape->wave : 1;
	char sync[64] = "";
	if (shape->waves)
		snprintf(sync, sizeof sync, "sync: {method: wsp, distance: %u}\n", shape->distance);
	snprintf(text, sizeof text,
		"name: s\nmodel: {file: m.yaml, stages: %u}\n"
		"cluster: {topology: t.yaml, allocation: {method: strided}}\n"
		"schedule: {pipeline: pipedream, global_batch: %u, microbatch: %u}\n%s"
		"train: {arithmetic: %s, init: {method: normal, deviation: 0.7}, optimizer: {name: sgd, lr: %.17g}, "
		"until: {steps: %u}}\n",
		shape->stages, SAMPLES * wave * shape->pipelines, SAMPLES, sync, shape->arithmetic ? "real" : "none",
		shape->waves ? lr : lr / shape->wave, shape->waves ? ROUNDS : ROUNDS * shape->wave);
	if (!skep_scenario_read_text("s.yaml", text, strlen(text), NULL, ret, &diag))
		fail_msg("%s", diag.text);
}

static void simulate(const struct shape *shape, struct skep_scenario *s, struct run *ret)
{
	must_read(shape, s);
	for (uint32_t gpu = 0; gpu < (shape->pipelines > 1 ? 2 : 1) && shape->forward_ns > 0; gpu++)
		for (uint32_t stage = 0; stage < shape->stages; stage++) {
			struct skep_op_time *time = &s->op_time[gpu * shape->stages + stage];
			time->forward_ns = shape->forward_ns * (gpu > 0 ? shape->slower : 1);
			time->backward_ns = shape->backward_ns * (gpu > 0 ? shape->slower : 1);
			time->step_ns = 0;
		}
	memset(ret, 0, sizeof *ret);
	ret->stages = shape->stages;
	ret->wave = shape->waves ? shape->wave : 0;
	ret->begin_ns = SKEP_TIME_NEVER;
	const struct skep_recorder recorder = {.context = ret, .note = hear_note, .op = hear_op};
	assert_true(skep_sim_run(s, &recorder, &ret->result));
	assert_int_equal(ret->result.outcome, SKEP_DONE);
}

/* ---- the plan ------------------------------------------------------------------------------------------------------ */

static void test_the_plan(void **state)
{
	(void)state;
	static const uint32_t stage_of[] = {0, 1, 2, 3, 0, 1, 2, 3};
	struct skep_plan plan = {.workers = 8, .stages = 4, .microbatches = 8, .first_stage_of = stage_of};
	plan.pipeline = SKEP_PIPELINE_PIPEDREAM;
	plan.no_flush.weights = SKEP_WEIGHTS_WAVES;
	for (uint32_t distance = 0; distance <= SKEP_DISTANCE_MAX; distance++) {
		uint32_t local = 4 - 1;
		plan.no_flush.distance = distance;
		assert_int_equal(skep_plan_wave(&plan), 4);
		assert_int_equal(skep_plan_local_staleness(&plan), local);
		assert_int_equal(skep_plan_global_staleness(&plan), (distance + 1) * (local + 1) + local - 1);
		assert_true(skep_plan_accumulators(&plan) >= distance + 2);
		assert_true(skep_plan_window(&plan) >= distance + 2);
	}
	plan.no_flush.distance = 0;
	assert_int_equal(skep_plan_global_staleness(&plan), 6); /* the paper's example: 5 to 10 are missing at 11 */
	assert_int_equal(skep_plan_accumulators(&plan), 2);
	for (uint32_t stage = 0; stage < 4; stage++) {
		assert_int_equal(skep_plan_held(&plan, stage), 4 - stage);
		assert_int_equal(skep_plan_versions(&plan, stage), 1);
	}
	plan.microbatches = 4; /* two each: behind the second stage one is all that comes */
	assert_int_equal(skep_plan_held(&plan, 0), 2);
	assert_int_equal(skep_plan_held(&plan, 1), 1);
	assert_int_equal(skep_plan_held(&plan, 3), 1);
}

/* ---- arithmetic ------------------------------------------------------------------------------------------------------ */

struct layer {                                     /* of one weight and one bias; each stage has as many */
	double w[ROUNDS + 1][2];                   /* by waves of all behind it */
	double gradient[2][ROUNDS * WAVE_MOST][2]; /* by virtual worker and microbatch */
};

static struct layer layers[LAYERS];

static uint32_t stage_of(const struct shape *shape, uint32_t layer)
{
	return layer * shape->stages / LAYERS;
}

static void draw(const struct skep_scenario *scenario)
{
	memset(layers, 0, sizeof layers);
	for (uint32_t s = 0; s < scenario->plan.stages; s++) {
		struct skep_stage stage;
		assert_true(skep_stage_init(&scenario->training, s, &stage));
		for (uint32_t i = 0; i < stage.layers; i++) {
			struct layer *l = &layers[stage.layer[i].number];
			assert_int_equal(stage.layer[i].parameters, 2);
			l->w[0][0] = (double)stage.parameter[stage.layer[i].parameter];
			l->w[0][1] = (double)stage.parameter[stage.layer[i].parameter + 1];
		}
		skep_stage_finish(&stage);
	}
}

/* What microbatch m of virtual worker p reads of the layer, by what its note says; within the bounds. */
static void read_layer(
	const struct shape *shape, const struct run *run, uint32_t p, uint32_t layer, uint32_t m, double ret[2])
{
	const struct microbatch *noted = &run->microbatch[p][stage_of(shape, layer)][m];
	uint32_t local = shape->wave - 1, global = (shape->distance + 1) * (local + 1) + local - 1;
	assert_true(noted->counted && noted->lacked <= global && noted->lacked_own <= local);
	assert_true(noted->lacked <= m && noted->lacked_own <= m && (m - noted->lacked) % shape->wave == 0);
	uint32_t version = (m - noted->lacked) / shape->wave;
	ret[0] = layers[layer].w[version][0];
	ret[1] = layers[layer].w[version][1];
	for (uint32_t own = version * shape->wave; own + noted->lacked_own < m; own++)
		for (uint32_t i = 0; i < 2; i++)
			ret[i] -= lr / (shape->wave * shape->pipelines) * layers[layer].gradient[p][own][i];
}

static double pass(
	const struct shape *shape, const struct run *run, const struct skep_scenario *scenario, uint32_t p, uint32_t m)
{
	float drawn[SAMPLES], target[SAMPLES];
	double w[LAYERS][2], loss = 0;
	uint32_t round = m / shape->wave, number = p * shape->wave + m % shape->wave, last = LAYERS - 1;
	for (uint32_t l = 0; l < LAYERS; l++)
		read_layer(shape, run, p, l, m, w[l]);
	skep_corpus_microbatch(&scenario->training, round, number, drawn, target);
	for (uint32_t b = 0; b < SAMPLES; b++) {
		double x[LAYERS + 1] = {(double)drawn[b]};
		for (uint32_t s = 0; s <= last; s++)
			x[s + 1] = s < last ? tanh(w[s][0] * x[s] + w[s][1]) : w[s][0] * x[s] + w[s][1];
		double error = x[last + 1] - (double)target[b], delta = 2 * error / SAMPLES;
		loss += error * error / SAMPLES;
		for (uint32_t s = last + 1; s-- > 0;) {
			delta *= s < last ? 1 - x[s + 1] * x[s + 1] : 1;
			layers[s].gradient[p][m][0] += delta * x[s];
			layers[s].gradient[p][m][1] += delta;
			delta *= w[s][0];
		}
	}
	return loss;
}

static void follow(const struct shape *shape, const struct run *run, const struct skep_scenario *scenario)
{
	const uint32_t all = shape->wave * shape->pipelines;
	draw(scenario);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		double loss = 0;
		for (uint32_t m = round * shape->wave; m < (round + 1) * shape->wave; m++)
			for (uint32_t p = 0; p < shape->pipelines; p++)
				loss += pass(shape, run, scenario, p, m) / all;
		for (uint32_t s = 0; s < LAYERS; s++)
			for (uint32_t i = 0; i < 2; i++) {
				double sum = 0;
				for (uint32_t m = round * shape->wave; m < (round + 1) * shape->wave; m++)
					for (uint32_t p = 0; p < shape->pipelines; p++)
						sum += layers[s].gradient[p][m][i];
				layers[s].w[round + 1][i] = layers[s].w[round][i] - lr / all * sum;
			}
		if (fabs(run->loss[round] - loss) > 2e-6 * loss)
			fail_msg("K %u, P %u, Nm %u, D %u: round %u has the loss %.9f, by hand %.9f", shape->stages,
				shape->pipelines, shape->wave, shape->distance, round, run->loss[round], loss);
	}
}

static void test_arithmetic(void **state)
{
	(void)state;
	static struct run run;
	static const char *const latencies[] = {"0 us", "40 us", "2 ms"};
	for (uint32_t stages = 1; stages <= 4; stages += stages)
		for (uint32_t pipelines = 1; pipelines <= 2; pipelines++)
			for (uint32_t wave = 2; wave <= WAVE_MOST; wave += 2)
				for (uint32_t distance = 0; distance <= SKEP_DISTANCE_MAX; distance += 3)
					for (uint32_t l = 0; l < 3; l++) {
						struct shape shape = {stages, pipelines, wave, distance, true, true,
							latencies[l], 0, 0, 1};
						struct skep_scenario s;
						simulate(&shape, &s, &run);
						follow(&shape, &run, &s);
						skep_scenario_finish(&s);
					}
}

/* As many under way as there are stages, and no other virtual worker to hear of. */
static void test_one_is_pipedream(void **state)
{
	(void)state;
	static struct run waves, stream;
	for (uint32_t stages = 2; stages <= STAGES_MOST; stages++) {
		struct shape shape = {stages, 1, stages, 0, true, true, "0 us", 1000000, 2000000, 1};
		struct skep_scenario s;
		simulate(&shape, &s, &waves);
		skep_scenario_finish(&s);
		shape.waves = false;
		simulate(&shape, &s, &stream);
		skep_scenario_finish(&s);
		assert_int_equal(waves.end_ns - waves.begin_ns, stream.end_ns - stream.begin_ns);
		for (uint32_t round = 0; round < ROUNDS; round++) {
			double mean = 0;
			for (uint32_t m = 0; m < stages; m++)
				mean += stream.loss[round * stages + m] / stages;
			assert_true(fabs(waves.loss[round] - mean) <= 2e-6 * mean);
		}
	}
}

/* What `skep check` says of copies is what is kept of microbatches that are held. */
static void test_memory(void **state)
{
	(void)state;
	struct shape shape = {4, 2, 4, 2, true, true, "0 us", 0, 0, 1};
	struct skep_scenario s;
	must_read(&shape, &s);
	for (uint32_t stage = 0; stage < 4; stage++) {
		double array = (double)(sizeof(float) * s.plan.stage[stage].parameters);
		assert_true(s.memory[stage].weights == (1 + 4 - stage) * array);
		assert_true(
			s.memory[stage].gradients == 4 * array); /* four accumulators: three waves may be open here */
	}
	skep_scenario_finish(&s);
}

/* ---- time ------------------------------------------------------------------------------------------------------------ */

static void time_it(const struct shape *shape, struct run *run)
{
	struct skep_scenario s;
	simulate(shape, &s, run);
	skep_scenario_finish(&s);
}

/* Beyond the form there are messages of 1 ns, of which each microbatch and each sum waits for some; and with D = 0, where a
 * wave is as long as the way there and back, all of each sum, which takes some 90 us of three operations. */
static void check_time(const struct shape *shape, const struct run *run, skep_time form_ns)
{
	const skep_time all = ROUNDS * shape->wave, ns = run->end_ns - run->begin_ns;
	const skep_time messages_ns = (all + 1) * 2 * shape->stages + ROUNDS * 100;
	const bool sums = shape->distance == 0 && shape->pipelines > 1 && shape->stages > 1;
	const skep_time least_ns = form_ns + (sums ? (ROUNDS - 1) * 50000 : 0),
			most_ns = form_ns + messages_ns + (sums ? ROUNDS * 100000 : 0);
	if (ns < least_ns || ns > most_ns)
		fail_msg("K %u, P %u, D %u: %llu ns, by hand %llu to %llu", shape->stages, shape->pipelines,
			shape->distance, (unsigned long long)ns, (unsigned long long)least_ns,
			(unsigned long long)most_ns);
}

static void test_equal_ones(void **state)
{
	(void)state;
	static struct run run;
	for (uint32_t stages = 1; stages <= 4; stages++)
		for (uint32_t pipelines = 1; pipelines <= 2; pipelines++)
			for (uint32_t distance = 0; distance <= 2; distance++) {
				struct shape shape = {stages, pipelines, stages > 1 ? stages : 2, distance, false, true,
					"0 us", 1000000, 2000000, 1};
				time_it(&shape, &run);
				check_time(&shape, &run, (ROUNDS * shape.wave + stages - 1) * 3000000);
			}
}

/* The slow one never waits, and all end with it; the fast one is ahead by as much as it may. */
static void test_unequal_ones(void **state)
{
	(void)state;
	static struct run run;
	for (uint32_t stages = 1; stages <= 4; stages++)
		for (uint32_t distance = 0; distance <= SKEP_DISTANCE_MAX; distance++) {
			struct shape shape = {
				stages, 2, stages > 1 ? stages : 2, distance, false, true, "0 us", 1000000, 2000000, 3};
			time_it(&shape, &run);
			check_time(&shape, &run, (ROUNDS * shape.wave + stages - 1) * 3 * 3000000);
			assert_int_equal(run.ahead, distance + 1);
		}
}

static int enter(void **state)
{
	static char folder[] = "/tmp/skep-wsp-XXXXXX";
	*state = folder;
	if (folder_enter(folder, "inputs: 1, hidden: 1, hidden_layers: 3, outputs: 1") != 0)
		return -1;
	folder_write("gpus/h.yaml", "name: h\nsource: assumed for this test\nflops: 0.3 TFLOP/s\nefficiency: 1\n"
				    "memory_bandwidth: 40 GB/s\nmemory: 16 GB\noverhead: 30 us\n");
	return 0;
}

static int leave(void **state)
{
	return unlink("gpus/h.yaml") == 0 ? folder_leave(*state) : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_plan),
		cmocka_unit_test(test_arithmetic),
		cmocka_unit_test(test_one_is_pipedream),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_equal_ones),
		cmocka_unit_test(test_unequal_ones),
	};
	return cmocka_run_group_tests(tests, enter, leave);
}
