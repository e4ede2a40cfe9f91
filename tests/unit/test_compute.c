/* SPDX-License-Identifier: Apache-2.0
 *
 * test_compute.c - `cluster.compute` of a scenario: stages' times against sums of measured layers and products worked out
 * here, what is outside of a table, and what is refused.
 */
#include "scenarios/plan/compute.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "scenarios/read/scenario.h"
#include "scenarios/read/sources.h"

#define OPT "scenarios/opt-350m.yaml"
#define LEAN "model.file=tests/data/opt-350m-lean.yaml", "cluster.topology=tests/data/three-gpus.yaml"
#define V100 0
#define A100_40 1
#define A100_80 2

/* Reads a scenario with up to eight settings, NULL at the end. */
static bool read_set(const char *path, struct skep_scenario *ret, struct skep_diag *diag, const char *const set[])
{
	struct skep_scenario_options options = {.set = set};
	while (set[options.sets])
		options.sets++;
	*diag = (struct skep_diag){0};
	return skep_scenario_read(path, &options, ret, diag);
}

#define MUST_READ(path, s, ...)                                                                                        \
	do {                                                                                                           \
		struct skep_diag diag;                                                                                 \
		const char *const set[] = {__VA_ARGS__, NULL};                                                         \
		if (!read_set(path, s, &diag, set))                                                                    \
			fail_msg("line %u: %s", diag.line, diag.message);                                              \
	} while (0)

static void refuses(const char *path, const char *message, const char *const set[])
{
	struct skep_scenario s;
	struct skep_diag diag;
	if (read_set(path, &s, &diag, set))
		fail_msg("read, but expected: %s", message);
	if (!strstr(diag.message, message))
		fail_msg("%s, but expected: %s", diag.message, message);
}

static const struct skep_op_time *time_of(const struct skep_scenario *s, uint32_t gpu, uint32_t stage)
{
	return &s->op_time[(size_t)gpu * s->plan.stages + stage];
}

static const struct skep_compute_stage *timing_of(const struct skep_scenario *s, uint32_t gpu, uint32_t stage)
{
	return &s->timing[(size_t)gpu * s->plan.stages + stage];
}

/* Rows of the tables, microbatch 4, in us: embedding, block, head. Stages have 4, 6, 6, 6 and 3 layers. */
static void test_measured_layers(void **state)
{
	(void)state;
	struct skep_scenario s;
	MUST_READ(OPT, &s, LEAN, "schedule.microbatch=4", "schedule.checkpoint_activations=false",
		"schedule.in_flight=1");
	assert_int_equal(time_of(&s, A100_40, 0)->forward_ns, 508000 + 4 * 8204000);
	assert_int_equal(time_of(&s, A100_40, 1)->forward_ns, 6 * 8204000);
	assert_int_equal(time_of(&s, A100_40, 1)->backward_ns, 6 * 22715000);
	assert_int_equal(time_of(&s, V100, 1)->forward_ns, 6 * 28839000);
	assert_int_equal(time_of(&s, V100, 1)->backward_ns, 6 * 71714000);
	assert_int_equal(time_of(&s, V100, 4)->forward_ns, 2 * 28839000 + 74796000);
	assert_int_equal(time_of(&s, V100, 4)->step_ns, 2 * 3900940 + 15953200);
	assert_true(timing_of(&s, V100, 4)->step_known && timing_of(&s, V100, 4)->backward_measured);
	assert_false(timing_of(&s, A100_80, 1)->step_known); /* not measured */
	double ratio = (double)time_of(&s, V100, 1)->forward_ns / (double)time_of(&s, A100_40, 1)->forward_ns;
	assert_true(ratio > 3.2 && ratio < 3.55);
	struct skep_op op = {.kind = SKEP_OP_BACKWARD, .stage = 1};
	assert_int_equal(skep_scenario_op_ns(&s, 1, &op), 6 * 22715000); /* both worlds ask this */
	skep_scenario_finish(&s);
}

/* What was measured of a step is a whole one of `train.optimizer`: a part of it with ZeRO, with local steps the inner one, and
 * nothing of one on the host. */
static void test_measured_steps(void **state)
{
	(void)state;
	struct skep_scenario plain, zero, local;
	MUST_READ(OPT, &plain, "seed=1");
	MUST_READ(OPT, &zero, "sync.zero=1"); /* one worker a stage, which has all of it */
	MUST_READ(OPT, &local, "sync={method: diloco, every: 4}");
	for (uint32_t stage = 0; stage < plain.plan.stages; stage++) {
		const uint32_t gpu = plain.topology.machine[stage].gpu;
		const struct skep_compute_stage *timing = timing_of(&local, gpu, stage);
		const bool known = timing_of(&plain, gpu, stage)->step_known;
		assert_int_equal(time_of(&zero, gpu, stage)->step_ns, time_of(&plain, gpu, stage)->step_ns);
		assert_true(timing_of(&zero, gpu, stage)->step_known == known);
		assert_true(timing->inner_known == known && !timing->step_known);
		if (known)
			assert_int_equal(time_of(&local, gpu, stage)->inner_ns, time_of(&plain, gpu, stage)->step_ns);
		/* of nesterov, without mixed precision: the sum, one moment and the parameters, and the inner ones behind it */
		double outer = (2 + 2 * 2 + 1) * 4 * (double)local.cost[stage].parameters;
		assert_true(fabs(1e-9 * (double)time_of(&local, gpu, stage)->step_ns /
					    (1e-9 * (double)skep_gpu_time_ns(&local.topology.gpu[gpu], 0, outer)) -
				    1) < 1e-4);
	}
	skep_scenario_finish(&plain);
	skep_scenario_finish(&zero);
	skep_scenario_finish(&local);
	MUST_READ("scenarios/baselines/zero-1f1b.yaml", &zero, "model={file: models/opt-350m.yaml, stages: 1}",
		"cluster.topology=topologies/eight-p3.yaml", "train.arithmetic=none",
		"cluster={topology: topologies/eight-p3.yaml, compute: {predictor: table, type: fp32}}",
		"schedule={pipeline: 1f1b, global_batch: 16, microbatch: 1, checkpoint_activations: all}",
		"sync={zero: 1, collective: ring}");
	assert_true(timing_of(&zero, 0, 0)->step_known);
	assert_int_equal(time_of(&zero, 0, 0)->step_ns,
		((uint64_t)(skep_compute_sum(&timing_of(&zero, 0, 0)->step) + 0.5) + 7) / 8);
	skep_scenario_finish(&zero);
	MUST_READ("scenarios/baselines/ddp-offload.yaml", &local, "cluster.compute.predictor=table");
	assert_false(timing_of(&local, 0, 0)->step_known);
	skep_scenario_finish(&local);
}

/* tests/data/stages.csv, or another table, of two GPUs that have it. */
static void write_stages(const char *folder, const char *table, const char *offload)
{
	char path[128];
	snprintf(path, sizeof path, "%s/gpus/m.yaml", folder);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fprintf(file,
		"name: M\nsource: assumed\nflops: 10 TFLOP/s\nefficiency: 1\nmemory_bandwidth: 900 GB/s\nmemory: 16 GB\n"
		"overhead: 0 ms\ntables: [{file: %s, of: stages, model: square-mlp, source: measured, offload: %s}]\n",
		table, offload);
	fclose(file);
	snprintf(path, sizeof path, "%s/two.yaml", folder);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs("name: two\nsource: assumed\ndirectory: a\nsites:\n  a:\n    machines: [{count: 2, gpu: m, pcie: 10 GB/s, "
	      "host: {memory: 64 GB, bandwidth: 100 GB/s}}]\n    inside: {bandwidth: 1 GB/s, latency: 1 ms}\n",
		file);
	fclose(file);
}

static struct skep_op_time updates_of(const char *folder, const char *change, bool *ret_step, bool *ret_inner)
{
	struct skep_scenario s;
	char topology[128];
	snprintf(topology, sizeof topology, "cluster.topology=%s/two.yaml", folder);
	MUST_READ("scenarios/one-worker.yaml", &s, topology, "cluster.compute={predictor: table, type: fp32}",
		"train.arithmetic=none", change);
	struct skep_op_time ret = *time_of(&s, 0, 0);
	*ret_step = timing_of(&s, 0, 0)->step_known;
	*ret_inner = timing_of(&s, 0, 0)->inner_known;
	skep_scenario_finish(&s);
	return ret;
}

/* The 400 us that were measured are those of train.optimizer, of all parameters, on the GPU. */
static void test_measured_stages(void **state)
{
	(void)state;
	char folder[] = "/tmp/skep-stages-XXXXXX", path[64], table[80];
	bool step, inner;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/gpus", folder);
	assert_int_equal(mkdir(path, 0700), 0);
	write_stages(folder, "tests/data/stages.csv", "none");
	assert_int_equal(updates_of(folder, "seed=1", &step, &inner).step_ns, 400000);
	assert_true(step && !inner);
	assert_int_equal(updates_of(folder, "sync.zero=1", &step, &inner).step_ns, 200000);
	struct skep_op_time time = updates_of(folder, "sync={method: diloco, every: 4}", &step, &inner);
	assert_true(inner && !step && time.inner_ns == 400000 && time.step_ns < 10000);
	const uint64_t host_ns = updates_of(folder, "train.optimizer.offload=optimizer", &step, &inner).step_ns;
	assert_true(!step && host_ns > 60000 && host_ns < 200000); /* 0.93 MB by 10 GB/s, 3.2 MB by 100 GB/s */
	write_stages(folder, "tests/data/stages.csv", "optimizer");
	assert_int_equal(updates_of(folder, "train.optimizer.offload=optimizer", &step, &inner).step_ns, 400000);
	assert_true(updates_of(folder, "seed=1", &step, &inner).step_ns < 10000 && !step);
	/* of a run with local steps */
	snprintf(table, sizeof table, "%s/stages.csv", folder);
	FILE *file = fopen(table, "w");
	assert_non_null(file);
	fprintf(file, SKEP_STAGE_TABLE_HEADER "\n0,9,64,1500,3100,,,70,300,20\n");
	fclose(file);
	write_stages(folder, table, "none");
	time = updates_of(folder, "sync={method: diloco, every: 4}", &step, &inner);
	assert_true(step && inner && time.inner_ns == 300000 && time.step_ns == 70000 && time.pseudo_ns == 20000);
	assert_int_equal(updates_of(folder, "seed=1", &step, &inner).step_ns, 300000);
	assert_int_equal(updates_of(folder, "sync.zero=1", &step, &inner).step_ns, 150000);
	snprintf(path, sizeof path, "rm -r %s", folder);
	assert_int_equal(system(path), 0);
}

static void test_recompute_and_scale(void **state)
{
	(void)state;
	struct skep_scenario s;
	MUST_READ(OPT, &s, "cluster.compute_scale=10");
	assert_int_equal(time_of(&s, V100, 1)->forward_ns, 60 * 7321000);
	assert_int_equal(time_of(&s, V100, 1)->backward_ns, 60 * (17195000 + 7321000));
	skep_scenario_finish(&s);
}

static void test_between_and_beyond(void **state)
{
	(void)state;
	struct skep_scenario s;
	const struct skep_compute_time *time;
	MUST_READ(OPT, &s, "schedule.microbatch=3", "schedule.global_batch=63", "schedule.in_flight=1");
	time = &timing_of(&s, V100, 1)->forward;
	assert_true(time->ns[SKEP_TIME_INTERPOLATED] == skep_compute_sum(time));
	double share = log(3 / 2.0) / log(4 / 2.0), expected = 6e3 * pow(14086, 1 - share) * pow(28839, share);
	assert_true(fabs((double)time_of(&s, V100, 1)->forward_ns / expected - 1) < 1e-6);
	skep_scenario_finish(&s);

	const char *const beyond[] = {"schedule.microbatch=16", "schedule.in_flight=1", NULL};
	refuses(OPT, "cluster.compute.outside: the tables of V100-SXM2-16 in fp32 do not have all of stage 0", beyond);
	MUST_READ(OPT, &s, LEAN, "schedule.microbatch=16", "schedule.in_flight=1", "cluster.compute.outside=fit");
	time = &timing_of(&s, V100, 4)->forward;
	assert_true(time->ns[SKEP_TIME_INTERPOLATED] == 0 && skep_compute_outside(timing_of(&s, V100, 4)));
	assert_true(fabs((double)time_of(&s, V100, 4)->forward_ns / (4e3 * (2 * 28839 + 74796)) - 1) < 0.03);
	skep_scenario_finish(&s);
}

/* A perceptron on T4: each layer is one product, backward two of them but for the first layer. */
static void test_products(void **state)
{
	(void)state;
	struct skep_scenario s;
	MUST_READ("scenarios/one-worker.yaml", &s, "cluster.compute={predictor: table, type: fp16}", "seed=1",
		"model.file=models/bench-mlp-512.yaml", "cluster.topology=topologies/eleven.yaml", "model.stages=2",
		"train.arithmetic=none");
	const struct skep_predictor *p = &s.predictor[0];
	uint32_t first, count;
	double forward_s = 1e-4, backward_s = 1e-4; /* the profile's overhead */
	skep_model_cut(&s.model, 2, 0, &first, &count);
	for (uint32_t l = 0; l < count; l++) {
		enum skep_time_origin origin;
		struct skep_product product = {1, s.model.width[l + 1], s.model.width[l], s.samples};
		double seconds = skep_predictor_product_s(p, &product, &origin);
		forward_s += seconds;
		backward_s += l == 0 ? seconds : 2 * seconds;
	}
	assert_int_equal(time_of(&s, 0, 0)->forward_ns, (uint64_t)(1e9 * forward_s + 0.5));
	assert_int_equal(time_of(&s, 0, 0)->backward_ns, (uint64_t)(1e9 * backward_s + 0.5));
	assert_false(timing_of(&s, 0, 0)->backward_measured || timing_of(&s, 0, 0)->step_known);
	double moved = 2 * sizeof(float) * (double)s.cost[0].parameters + 2 * (double)s.stage[0].state_bytes;
	assert_int_equal(time_of(&s, 0, 0)->step_ns, skep_gpu_time_ns(&s.topology.gpu[0], 0, moved * s.compute_scale));
	skep_scenario_finish(&s);
}

/* What the predictors say of a block where it was measured: not the same, not far off. */
static void test_predictors_differ(void **state)
{
	(void)state;
	static const char *const wanted[] = {"cluster.compute={predictor: table}",
		"cluster.compute={predictor: analytic}", "cluster.compute={predictor: regression}"};
	uint64_t ns[3];
	for (int i = 0; i < 3; i++) {
		struct skep_scenario s;
		MUST_READ(OPT, &s, wanted[i]);
		ns[i] = time_of(&s, V100, 1)->forward_ns;
		assert_true(i == 0 || skep_compute_outside(timing_of(&s, V100, 1)));
		skep_scenario_finish(&s);
		for (int j = 0; j < i; j++)
			assert_true(ns[i] != ns[j] && 10 * ns[i] > 6 * ns[j] && 10 * ns[j] > 6 * ns[i]);
	}
}

static void test_default_is_the_roofline(void **state)
{
	(void)state;
	struct skep_scenario plain, named;
	MUST_READ("scenarios/two-datacentres.yaml", &plain, "seed=1");
	MUST_READ("scenarios/two-datacentres.yaml", &named, "cluster.compute={predictor: roofline}");
	assert_null(plain.predictor);
	assert_null(named.predictor);
	assert_memory_equal(
		plain.op_time, named.op_time, plain.topology.gpus * plain.plan.stages * sizeof *plain.op_time);
	const struct skep_cost *c = &plain.cost[1];
	assert_int_equal(time_of(&plain, 0, 1)->forward_ns,
		skep_gpu_time_ns(&plain.topology.gpu[0], plain.compute_scale * plain.samples * c->forward_flop,
			plain.compute_scale * (c->forward_bytes + plain.samples * c->sample_bytes)));
	skep_scenario_finish(&plain);
	skep_scenario_finish(&named);
}

static void test_refuses(void **state)
{
	(void)state;
	static const struct {
		const char *set, *message;
	} bad[] = {
		{"cluster.compute={predictor: guess}", "one of: roofline, table, analytic, regression"},
		{"cluster.compute={uncertainty: 0.2}", "one of: ignored, drawn"},
		{"cluster.compute={noise: 0.2}", "noise: expected a decimal number from 0 to 0.15"},
		{"cluster.compute={predictor: roofline, type: tf32}",
			"cluster.compute.type: the profile of V100-SXM2-16 has no peak of tf32; take `type: fp16`"},
		{"cluster.compute={predictor: analytic, outside: fit}",
			"cluster.compute.outside: asks what to do outside of a table"},
		{"cluster.compute={predictor: table, type: int8}", "one of: fp32, tf32, fp16, bf16"},
		{"cluster.compute={predictor: table, type: bf16}",
			"cluster.compute.type: bf16 is no type of V100-SXM2-16, which has fp32, fp16"},
		{"cluster.compute={predictor: table, type: fp16, outside: refuse}", "do not have all of stage 0"},
	};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		const char *const set[] = {
			"cluster.topology=topologies/one-host.yaml", "model.stages=2", bad[i].set, NULL};
		refuses(OPT, bad[i].message, set);
	}
}

/* Mean and deviation as asked for, the same for the same operation, another for any other. */
static void test_noise(void **state)
{
	(void)state;
	enum { DRAWS = 20000 };
	struct skep_scenario s, other;
	double sum = 0, squares = 0;
	MUST_READ(OPT, &s, "cluster.compute.noise=0.05");
	MUST_READ(OPT, &other, "cluster.compute.noise=0.05", "seed=2");
	struct skep_op op = {.kind = SKEP_OP_FORWARD, .stage = 1};
	double exact = (double)time_of(&s, V100, 1)->forward_ns;
	uint64_t before = 0;
	for (op.microbatch = 0; op.microbatch < DRAWS; op.microbatch++) {
		uint64_t ns = skep_scenario_op_ns(&s, 0, &op);
		double x = (double)ns / exact - 1;
		assert_true(ns != before && ns == skep_scenario_op_ns(&s, 0, &op));
		assert_true(fabs(x) < 0.3);
		sum += x;
		squares += x * x;
		before = ns;
	}
	assert_true(fabs(sum / DRAWS) < 0.05 * 4 / sqrt(DRAWS));
	assert_true(fabs(sqrt(squares / DRAWS) / 0.05 - 1) < 0.03);
	struct skep_op variant[5];
	for (int i = 0; i < 5; i++)
		variant[i] = op;
	variant[1].stage = 2; /* of as many layers */
	variant[2].round = 1;
	variant[3].microbatch = 7;
	variant[4].kind = SKEP_OP_BACKWARD;
	for (int i = 0; i < 5; i++) {
		struct skep_op *v = &variant[i];
		double all_ns = (double)(i == 4 ? time_of(&s, V100, 1)->backward_ns : time_of(&s, V100, 1)->forward_ns);
		double x = (double)skep_scenario_op_ns(&s, 0, v) / all_ns;
		for (int j = 0; j < i; j++)
			assert_true(fabs(x - (double)skep_scenario_op_ns(&s, 0, &variant[j]) / exact) > 1e-6);
	}
	double here = (double)skep_scenario_op_ns(&s, 0, &op) / exact;
	double there = (double)skep_scenario_op_ns(&s, 1, &op) / (double)time_of(&s, A100_40, 1)->forward_ns;
	assert_true(fabs(here - there) > 1e-6);
	op.microbatch = 7;
	assert_true(skep_scenario_op_ns(&s, 0, &op) != skep_scenario_op_ns(&other, 0, &op));
	op.kind = SKEP_OP_SAVE; /* moves through memory, without noise */
	op.size = 1;
	assert_true(skep_scenario_op_ns(&s, 0, &op) == skep_scenario_op_ns(&other, 0, &op));
	skep_scenario_finish(&s);
	skep_scenario_finish(&other);
}

/* The seed's factors are those of the times' origins: what was measured stays, and cards of one kind are off together. */
static void test_uncertainty(void **state)
{
	(void)state;
	struct skep_scenario plain, drawn, other, measured;
	MUST_READ(OPT, &plain, "cluster.compute={predictor: regression, type: fp32}");
	MUST_READ(OPT, &drawn, "cluster.compute={predictor: regression, type: fp32, uncertainty: drawn}");
	MUST_READ(OPT, &other, "cluster.compute={predictor: regression, type: fp32, uncertainty: drawn}", "seed=2");
	MUST_READ(OPT, &measured, "cluster.compute.uncertainty=drawn");
	assert_null(plain.draw);
	for (uint32_t gpu = V100; gpu <= A100_80; gpu++) {
		const double *factor = drawn.draw[gpu].factor;
		const struct skep_compute_time *forward = &timing_of(&plain, gpu, 1)->forward;
		double fitted_ns = forward->ns[SKEP_TIME_FITTED], memory_ns = forward->ns[SKEP_TIME_MEMORY];
		assert_true(fitted_ns > 0 && fitted_ns + memory_ns == skep_compute_sum(forward));
		assert_true(factor[SKEP_TIME_FITTED] != 1 && drawn.draw[gpu].deviation[SKEP_TIME_FITTED] < 0.1);
		assert_int_equal(time_of(&drawn, gpu, 1)->forward_ns,
			(uint64_t)(factor[SKEP_TIME_FITTED] * fitted_ns + factor[SKEP_TIME_MEMORY] * memory_ns + 0.5));
		assert_true(time_of(&drawn, gpu, 1)->forward_ns != time_of(&other, gpu, 1)->forward_ns);
	}
	assert_int_equal(time_of(&measured, V100, 1)->forward_ns, 6 * 7321000);
	assert_int_equal(time_of(&measured, V100, 1)->backward_ns, 6 * (17195000 + 7321000));
	skep_scenario_finish(&plain);
	skep_scenario_finish(&drawn);
	skep_scenario_finish(&other);
	skep_scenario_finish(&measured);
	MUST_READ("scenarios/two-datacentres.yaml", &plain, "seed=5");
	MUST_READ("scenarios/two-datacentres.yaml", &drawn, "seed=5", "cluster.compute.uncertainty=drawn");
	for (uint32_t gpu = 0; gpu < plain.topology.gpus; gpu++) {
		double passes = drawn.draw[gpu].factor[SKEP_TIME_ASSUMED],
		       updates = drawn.draw[gpu].factor[SKEP_TIME_MEMORY];
		const struct skep_op_time *was = time_of(&plain, gpu, 1), *is = time_of(&drawn, gpu, 1);
		assert_int_equal(is->forward_ns, (uint64_t)(passes * (double)was->forward_ns + 0.5));
		assert_int_equal(is->backward_ns, (uint64_t)(passes * (double)was->backward_ns + 0.5));
		assert_int_equal(is->step_ns, (uint64_t)(updates * (double)was->step_ns + 0.5));
		assert_true(fabs((double)is->recompute_ns / (passes * (double)was->recompute_ns) - 1) < 1e-6);
	}
	skep_scenario_finish(&plain);
	skep_scenario_finish(&drawn);
}

static void test_tables_are_sources(void **state)
{
	(void)state;
	struct skep_scenario s;
	uint32_t tables = 0;
	MUST_READ(OPT, &s, "seed=1");
	for (uint32_t i = 0; skep_scenario_source(&s, i) != NULL; i++)
		tables += strstr(skep_scenario_source(&s, i), "gpus/tables/") != NULL;
	assert_int_equal(tables, 6); /* layers of five GPUs, and the V100's products in fp32 */
	skep_scenario_finish(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_measured_layers),
		cmocka_unit_test(test_measured_steps),
		cmocka_unit_test(test_measured_stages),
		cmocka_unit_test(test_recompute_and_scale),
		cmocka_unit_test(test_between_and_beyond),
		cmocka_unit_test(test_products),
		cmocka_unit_test(test_predictors_differ),
		cmocka_unit_test(test_default_is_the_roofline),
		cmocka_unit_test(test_refuses),
		cmocka_unit_test(test_noise),
		cmocka_unit_test(test_uncertainty),
		cmocka_unit_test(test_tables_are_sources),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
