/* SPDX-License-Identifier: Apache-2.0
 *
 * test_scenario.c - from a scenario file to a plan: what each key does, what is taken when it is absent, and the error when
 * keys contradict each other, the model or the topology.
 */
#include "scenarios/read/scenario.h"

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

/* Six machines: 0 to 3 fast (2 TFLOP/s, 1 GB), 4 and 5 slow (1 TFLOP/s, 0.5 GB). Five layers: 2 -> 64 (four times) -> 2. */
static const char *const model_text = "name: m\nkind: mlp\nactivation: tanh\n"
				      "layers: {inputs: 2, hidden: 64, hidden_layers: 4, outputs: 2}\n";
static const char *const topology_text = "name: t\nsource: assumed for this test\ndirectory: here\nsites:\n  here:\n"
					 "    machines: [{count: 4, gpu: fast}, {count: 2, gpu: slow}]\n"
					 "    inside: {bandwidth: 1 Gbit/s, latency: 1 ms}\n";
static const char *const fast_text = "name: fast\nsource: assumed for this test\nflops: 2 TFLOP/s\nefficiency: 0.5\n"
				     "memory_bandwidth: 100 GB/s\nmemory: 1 GB\noverhead: 10 us\n";
static const char *const slow_text = "name: slow\nsource: assumed for this test\nflops: 1 TFLOP/s\nefficiency: 0.5\n"
				     "memory_bandwidth: 50 GB/s\nmemory: 500 MB\noverhead: 10 us\n";

static const char *const base_text = "name: base\n"
				     "model: {file: m.yaml, stages: 3}\n"
				     "cluster: {topology: t.yaml}\n"
				     "schedule: {global_batch: 64, microbatch: 8}\n"
				     "train: {until: {steps: 10}}\n";

static const char *const full_text =
	"name: full\r\n"
	"seed: 9\r\n"
	"model: {file: m.yaml, stages: 2}\r\n"
	"cluster:\r\n"
	"  topology: t.yaml\r\n"
	"  compute_scale: 2.5\r\n"
	"  allocation: {method: explicit, stage_of: [1, 0, 0, -1, 1, 1]}\r\n"
	"schedule: {pipeline: swarm, wiring: uniform, global_batch: 96, microbatch: 4, in_flight: 7}\r\n"
	"sync: {method: step, collective: ring}\r\n"
	"directory: {heartbeat: 500 ms, timeout: 3 s}\r\n"
	"train:\r\n"
	"  arithmetic: real\r\n"
	"  data: {corpus: quadratic}\r\n"
	"  optimizer: {name: sgd, lr: 0.125, momentum: 0.5, weight_decay: 0.25}\r\n"
	"  until: {steps: 1000, loss: 0.5}\r\n";

/* ---- helpers -------------------------------------------------------------------------------------------------- */

static char folder[64];

static const char *write_file(const char *name, const char *text)
{
	static char path[128];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	FILE *f = fopen(path, "wb");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	return path;
}

static int make_folder(void **state)
{
	(void)state;
	char path[128];
	strcpy(folder, "/tmp/skep-test-scenario-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof path, "%s/gpus", folder);
	if (mkdir(path, 0700) != 0)
		return -1;
	write_file("m.yaml", model_text);
	write_file("t.yaml", topology_text);
	write_file("gpus/fast.yaml", fast_text);
	write_file("gpus/slow.yaml", slow_text);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	char command[128];
	snprintf(command, sizeof command, "rm -r %s", folder);
	return system(command);
}

static bool try_read(const char *text, const char *set, struct skep_scenario *ret, struct skep_diag *reterr)
{
	struct skep_scenario_options options = {.set = &set, .sets = set ? 1 : 0};
	memset(reterr, 0, sizeof *reterr);
	return skep_scenario_read(write_file("s.yaml", text), &options, ret, reterr);
}

static void must_read(const char *text, const char *set, struct skep_scenario *ret)
{
	struct skep_diag diag;
	if (!try_read(text, set, ret, &diag))
		fail_msg("%s:%u:%u: %s", diag.file, diag.line, diag.column, diag.message);
}

static void check_diag(const struct skep_diag *diag, uint32_t line, uint32_t column, const char *part)
{
	if (!diag->set || diag->line != line || diag->column != column || !strstr(diag->message, part))
		fail_msg("%s:%u:%u: %s; expected %u:%u: %s", diag->file, diag->line, diag->column, diag->message, line,
			column, part);
}

/* The base file with one piece of text replaced is refused at this place. */
static void check_refused(const char *old, const char *new, uint32_t line, uint32_t column, const char *part)
{
	char text[4096];
	const char *at = strstr(base_text, old);
	assert_non_null(at);
	snprintf(text, sizeof text, "%.*s%s%s", (int)(at - base_text), base_text, new, at + strlen(old));
	struct skep_scenario s;
	struct skep_diag diag;
	if (try_read(text, NULL, &s, &diag))
		fail_msg("accepted: %s", new);
	check_diag(&diag, line, column, part);
	assert_null(s.text);
	skep_scenario_finish(&s);
}

static void check_set_refused(const char *set, const char *part)
{
	struct skep_scenario s;
	struct skep_diag diag;
	if (try_read(base_text, set, &s, &diag))
		fail_msg("accepted: %s", set);
	check_diag(&diag, 0, diag.column, part);
	assert_string_equal(diag.file + 6, set);
	assert_in_range(diag.column, sizeof "--set ", sizeof "--set " + strlen(set));
}

static void check_stages(const struct skep_scenario *s, const uint32_t stages[6])
{
	for (int i = 0; i < 6; i++)
		assert_int_equal(s->first_stage_of[i], stages[i]);
}

/* ---- what the keys do ----------------------------------------------------------------------------------------- */

static void short_file_takes_the_usual_values(void **state)
{
	(void)state;
	struct skep_scenario s;
	must_read(base_text, NULL, &s);
	assert_string_equal(s.name, "base");
	assert_string_equal(s.text, base_text);
	assert_int_equal(s.seed, 1);
	assert_int_equal(s.plan.seed, 1);
	assert_int_equal(s.plan.workers, 6);
	assert_int_equal(s.plan.stages, 3);
	assert_int_equal(s.samples, 8);
	assert_int_equal(s.batch, 64);
	assert_int_equal(s.plan.microbatches, 8);
	assert_int_equal(s.plan.in_flight, 6); /* 2 * 6 workers / 2 in the first stage */
	assert_int_equal(s.plan.rounds, 10);
	assert_int_equal(s.plan.liveness.heartbeat_ns, 1000000000);
	assert_int_equal(s.plan.liveness.fence_after_ns, 10000000000);
	assert_true(s.plan.until.target_loss_nano == INT64_MIN);
	assert_true(isnan(s.target_loss));
	assert_int_equal(s.arithmetic, SKEP_ARITHMETIC_REAL);
	assert_int_equal(s.optimizer.kind, SKEP_OPTIMIZER_ADAMW);
	assert_true(s.optimizer.beta2 == 0.999f && s.optimizer.learning_rate == 1e-3f);
	assert_true(s.compute_scale == 1);
	check_stages(&s, (const uint32_t[]){0, 0, 1, 1, 2, 2});
	skep_scenario_finish(&s);
	skep_scenario_finish(&s);
}

static void full_file_fills_the_plan(void **state)
{
	(void)state;
	struct skep_scenario s;
	must_read(full_text, NULL, &s);
	assert_int_equal(s.plan.seed, 9);
	assert_int_equal(s.plan.microbatches, 24);
	assert_int_equal(s.plan.in_flight, 7);
	assert_int_equal(s.plan.rounds, 1000);
	assert_int_equal(s.plan.liveness.heartbeat_ns, 500000000);
	assert_int_equal(s.plan.liveness.fence_after_ns, 3000000000);
	assert_int_equal(s.plan.until.target_loss_nano, 500000000);
	assert_true(s.target_loss == 0.5);
	assert_true(s.optimizer.learning_rate == 0.125f && s.optimizer.momentum == 0.5f &&
		    s.optimizer.weight_decay == 0.25f);
	assert_int_equal(s.optimizer.kind, SKEP_OPTIMIZER_SGD);
	check_stages(&s, (const uint32_t[]){1, 0, 0, SKEP_NO_STAGE, 1, 1});
	assert_ptr_equal(s.plan.stage, s.stage);
	assert_ptr_equal(s.plan.first_stage_of, s.first_stage_of);
	assert_ptr_equal(s.training.model, &s.model);
	assert_ptr_equal(s.training.plan, &s.plan);
	assert_int_equal(s.training.samples, 4);
	uint64_t parameters = s.stage[0].parameters + s.stage[1].parameters;
	assert_int_equal(parameters, 2 * 64 + 64 + 3 * (64 * 64 + 64) + 64 * 2 + 2);
	assert_int_equal(s.stage[0].activation_bytes, 4 * 64 * 4);
	assert_int_equal(s.stage[1].activation_bytes, 0);
	assert_int_equal(s.stage[0].state_bytes,
		skep_device_state_bytes(&s.optimizer, s.stage[0].parameters, s.stage[0].parameters, 1));
	skep_scenario_finish(&s);
}

static void byte_order_mark_is_no_content(void **state)
{
	(void)state;
	char text[1024] = "\xef\xbb\xbf";
	struct skep_scenario s;
	must_read(strcat(text, base_text), NULL, &s);
	assert_string_equal(s.text, base_text);
	skep_scenario_finish(&s);
}

static void allocation_methods(void **state)
{
	(void)state;
	struct skep_scenario s, t;
	must_read(base_text, "cluster.allocation.method=strided", &s);
	check_stages(&s, (const uint32_t[]){0, 1, 2, 0, 1, 2});
	skep_scenario_finish(&s);
	bool differs = false;
	for (int seed = 0; seed < 20; seed++) {
		char text[1024];
		snprintf(text, sizeof text, "seed: %d\n%s", seed, base_text);
		must_read(text, "cluster.allocation.method=random", &s);
		must_read(text, "cluster.allocation.method=random", &t);
		check_stages(&s, t.first_stage_of);
		uint32_t count[3] = {0};
		for (int i = 0; i < 6; i++)
			count[s.first_stage_of[i]]++;
		assert_true(count[0] == 2 && count[1] == 2 && count[2] == 2);
		differs = differs || s.first_stage_of[0] != 0;
		skep_scenario_finish(&s);
		skep_scenario_finish(&t);
	}
	assert_true(differs);
}

static void in_flight_fills_the_swarm(void **state)
{
	(void)state;
	static const struct {
		const char *stage_of;
		uint32_t in_flight;
	} cases[] = {
		{"[0, 0, 0, 0, 1, 2]", 3},   /* 12 / 4 */
		{"[0, 1, 1, 1, 1, 2]", 12},  /* 12 / 1 */
		{"[0, 0, 0, 1, 2, -1]", 4},  /* 10 / 3, rounded up */
		{"[0, 1, 2, -1, -1, -1]", 6} /* 6 / 1 */
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char set[128];
		struct skep_scenario s;
		snprintf(set, sizeof set, "cluster.allocation={method: explicit, stage_of: %s}", cases[i].stage_of);
		must_read(base_text, set, &s);
		assert_int_equal(s.plan.in_flight, cases[i].in_flight);
		skep_scenario_finish(&s);
	}
	struct skep_scenario s;
	must_read(base_text, "model.stages=1", &s);
	assert_int_equal(s.plan.in_flight, 2);
	skep_scenario_finish(&s);
}

/* ---- time and memory ------------------------------------------------------------------------------------------ */

static uint64_t time_of(const struct skep_scenario *s, uint32_t worker, enum skep_op_kind kind, uint16_t stage)
{
	struct skep_op op = {.kind = (uint8_t)kind, .stage = stage, .chunk = 1, .size = 2};
	skep_chunk_range(s->stage[stage].parameters, op.chunk, op.size, &op.first, &op.count);
	return skep_scenario_op_ns(s, worker, &op);
}

static void times_follow_the_roofline(void **state)
{
	(void)state;
	struct skep_scenario s;
	must_read(base_text, "schedule={global_batch: 65536, microbatch: 65536, in_flight: 1}", &s);
	for (uint16_t stage = 0; stage < 3; stage++) {
		double flop = s.cost[stage].forward_flop * 65536, samples = s.cost[stage].sample_bytes * 65536;
		double bytes = samples + s.cost[stage].forward_bytes;
		double ns = 10e3 + 1e9 * fmax(flop / 1e12, bytes / 100e9);
		assert_true(fabs((double)time_of(&s, 0, SKEP_OP_FORWARD, stage) - ns) <= 1);
		ns = 10e3 + 1e9 * fmax(s.cost[stage].backward_flop / 1e12 * 65536,
					  (2 * samples + s.cost[stage].backward_bytes) / 100e9);
		assert_true(fabs((double)time_of(&s, 3, SKEP_OP_BACKWARD, stage) - ns) <= 1);
		assert_true(time_of(&s, 5, SKEP_OP_FORWARD, stage) > time_of(&s, 0, SKEP_OP_FORWARD, stage));
	}
	skep_scenario_finish(&s);
}

static void times_of_state_and_chunks_follow_memory(void **state)
{
	(void)state;
	struct skep_scenario s;
	must_read(base_text, NULL, &s);
	double parameters = 4.0 * (double)s.stage[1].parameters, all = (double)s.stage[1].state_bytes;
	uint64_t first, count;
	skep_chunk_range(s.stage[1].parameters, 1, 2, &first, &count);
	const struct {
		enum skep_op_kind kind;
		double bytes;
	} cases[] = {
		{SKEP_OP_STEP, 2 * parameters + 2 * all},
		{SKEP_OP_ENTER, 2 * all},
		{SKEP_OP_SAVE, 2 * all},
		{SKEP_OP_LOAD, 2 * all},
		{SKEP_OP_COPY_GRAD, 8.0 * (double)count},
		{SKEP_OP_ADD, 12.0 * (double)count},
		{SKEP_OP_ADD_STORE, 16.0 * (double)count},
		{SKEP_OP_STORE, 8.0 * (double)count},
		{SKEP_OP_INIT_RESULT, 8.0 * (double)count},
		{SKEP_OP_ADD_TO_RESULT, 12.0 * (double)count},
		{SKEP_OP_COPY_RESULT, 8.0 * (double)count},
		{SKEP_OP_PACK_PART, 8.0 * (double)count},
		{SKEP_OP_UNPACK_PART, 8.0 * (double)count},
		{SKEP_OP_AGGREGATE, 4.0 * (2 + 1) * (double)count},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_true(fabs((double)time_of(&s, 4, cases[i].kind, 1) - (10e3 + cases[i].bytes / 50)) <= 1);
	skep_scenario_finish(&s);
}

/* The parameters are there twice, and nothing else changes. */
static void delayed_updates_need_memory(void **state)
{
	(void)state;
	struct skep_scenario s, t;
	must_read(base_text, NULL, &s);
	must_read(base_text, "sync={delayed: true}", &t);
	assert_false(s.plan.delayed);
	assert_true(t.plan.delayed);
	for (uint32_t i = 0; i < 3; i++) {
		assert_true(t.memory_bytes[i] - s.memory_bytes[i] == 4.0 * (double)s.stage[i].parameters);
		assert_int_equal(t.stage[i].state_bytes, s.stage[i].state_bytes);
		assert_int_equal(time_of(&t, 0, SKEP_OP_STEP, (uint16_t)i), time_of(&s, 0, SKEP_OP_STEP, (uint16_t)i));
	}
	skep_scenario_finish(&s);
	skep_scenario_finish(&t);
}

/* But not the overhead of launching it. */
static void compute_scale_stretches_the_work(void **state)
{
	(void)state;
	struct skep_scenario s, t;
	must_read(base_text, NULL, &s);
	must_read(base_text, "cluster.compute_scale=3", &t);
	for (int kind = 1; kind < SKEP_OP_KINDS; kind++) {
		if (kind == SKEP_OP_CHECKPOINT) /* goes by the folder's bandwidth */
			continue;
		double overhead_ns = 1e9 * s.topology.gpu[s.topology.machine[5].gpu].overhead_s;
		double a = (double)time_of(&s, 5, (enum skep_op_kind)kind, 2) - overhead_ns;
		double b = (double)time_of(&t, 5, (enum skep_op_kind)kind, 2) - overhead_ns;
		assert_true(fabs(b - 3 * a) <= 3);
	}
	skep_scenario_finish(&s);
	skep_scenario_finish(&t);
}

static void memory_is_the_sum_of_its_parts(void **state)
{
	(void)state;
	struct skep_scenario s;
	must_read(base_text, NULL, &s);
	double in_flight[3] = {6, 12, 12}; /* stage 0 holds its own; others twice their share of 2 * 6, at most all */
	double stashes[3] = {6, 12, 1};    /* in the last stage the backward pass is next */
	for (int i = 0; i < 3; i++) {
		double edges =
			(double)s.cost[i].activation_bytes + (i > 0 ? (double)s.cost[i - 1].activation_bytes : 0);
		double p = (double)s.stage[i].parameters;
		double bytes =
			12 * p + 12 * p + in_flight[i] * 8 * edges + stashes[i] * 8 * (double)s.cost[i].stash_bytes;
		double buffers =
			8 * edges + 2 * 12 * p + 2 * 4 * ceil(p / 2); /* under way, state, chunks of a ring of two */
		assert_true(s.memory_bytes[i] == bytes + buffers + 8 * 2 * 4 * 64); /* two arrays, 64 wide */
	}
	skep_scenario_finish(&s);
}

static void scenario_that_does_not_fit_is_refused(void **state)
{
	(void)state;
	struct skep_scenario s;
	/* stage 1 holds 12 inputs, outputs and stashes of 131072 * 64 * 4 bytes each; buffers 4 more */
	check_refused("global_batch: 64, microbatch: 8", "global_batch: 524288, microbatch: 131072", 2, 31,
		"stage 1 needs 1.342 GB on worker 2, a fast with 1 GB: weights 1.66e-05, gradients 3.33e-05, optimizer "
		"3.33e-05, 12 microbatches in flight 1.21, buffers 0.134; any of these would do: schedule.microbatch: "
		"65536, schedule.in_flight: 4");
	/* a spare may be sent to any stage */
	must_read(base_text, "cluster.allocation={method: explicit, stage_of: [0, 0, 1, 2, -1, -1]}", &s);
	skep_scenario_finish(&s);
	check_refused("cluster: {topology: t.yaml}\nschedule: {global_batch: 64, microbatch: 8}",
		"cluster: {topology: t.yaml, allocation: {method: explicit, stage_of: [0, 0, 1, 2, -1, -1]}}\n"
		"schedule: {global_batch: 1048576, microbatch: 131072, in_flight: 3}",
		2, 31, "on worker 4, a slow with 0.5 GB");
}

/* ---- options -------------------------------------------------------------------------------------------------- */

static void overrides_are_in_the_text(void **state)
{
	(void)state;
	struct skep_scenario s, t;
	const char *set[] = {"train.optimizer={name: sgd, lr: 0.5}", "schedule.in_flight=3", "train.until.steps=11"};
	struct skep_scenario_options options = {.set = set, .sets = 3, .has_seed = true, .seed = 77};
	struct skep_diag diag = {0};
	assert_true(skep_scenario_read(write_file("s.yaml", base_text), &options, &s, &diag));
	assert_int_equal(s.seed, 77);
	assert_int_equal(s.plan.in_flight, 3);
	must_read(s.text, NULL, &t);
	assert_int_equal(t.seed, 77);
	assert_int_equal(t.plan.in_flight, 3);
	assert_int_equal(t.plan.rounds, 11);
	assert_true(t.optimizer.learning_rate == 0.5f);
	skep_scenario_finish(&s);
	skep_scenario_finish(&t);
}

static void overrides_are_checked(void **state)
{
	(void)state;
	check_set_refused("train.until.step=5", "unknown key `train.until.step`, did you mean `steps`?");
	check_set_refused("schedule.microbatch=0", "schedule.microbatch: expected a whole decimal number from 1 to");
	check_set_refused("name.x=1", "`name.x` does not lead to a key");
	check_set_refused("directory.timeout=10", "expected a time with its unit");
	check_set_refused("directory.timeout=1500 ms", "less than two heartbeats");
	check_set_refused("schedule.global_batch=60", "the nearest are 56 and 64");
	check_set_refused("model.stages=7", "7 stages cannot be cut from the 5 layers");
	check_set_refused("cluster.topology=none.yaml", "no file `none.yaml`");
	check_set_refused("trace=t.csv", "unknown key `trace`; accepted here: name, seed, model");
	check_set_refused("seed=99999999999999999999", "seed: expected a whole decimal number");
}

/* ---- what is refused ------------------------------------------------------------------------------------------ */

static void keys_are_refused_at_their_place(void **state)
{
	(void)state;
	static const struct {
		const char *old, *new;
		uint32_t line, column;
		const char *part;
	} cases[] = {
		{"name: base\n", "", 1, 1, "key `name` is missing"},
		{"base", "a-name-that-is-longer-than-sixty-three-bytes-and-so-does-not-fit-the-field", 1, 7,
			"at most 63 bytes"},
		{"name: base", "name: base\nseed: -1", 2, 7, "seed: expected a whole decimal number from 0"},
		{"model:", "modle:", 2, 1, "key `model` is missing; is `modle` misspelt?"},
		{"stages", "stagse", 2, 23, "key `model.stages` is missing; is `stagse` misspelt?"},
		{"stages: 3", "stages: 3, trace: x", 2, 34, "unknown key `model.trace`; accepted here: file, stages"},
		{"stages: 3", "stages: 0", 2, 31, "model.stages: expected a whole decimal number from 1"},
		{"stages: 3", "stages: 6", 2, 31, "6 stages cannot be cut from the 5 layers"},
		{"m.yaml", "none.yaml", 2, 15, "model.file: no file `none.yaml`"},
		{"m.yaml", "[m.yaml]", 2, 15, "model.file: expected a text, not a list"},
		{"t.yaml", "t.yaml, allocation: {method: evolution}", 3, 50,
			"expected one of: contiguous, strided, random, explicit, greedy, relaxed, genetic, anneal, portfolio"},
		{"t.yaml", "t.yaml, allocation: {stage_of: [0]}", 3, 42, "unknown key `cluster.allocation.stage_of`"},
		{"t.yaml", "t.yaml, allocation: {method: explicit}", 3, 41,
			"key `cluster.allocation.stage_of` is missing"},
		{"t.yaml", "t.yaml, allocation: {method: explicit, stage_of: [0, 1, 2]}", 3, 70,
			"3 entries, the topology has 6 machines"},
		{"t.yaml", "t.yaml, allocation: {method: explicit, stage_of: [0, 1, 1, 1, 0, -1]}", 3, 70,
			"no worker serves stage 2"},
		{"t.yaml", "t.yaml, allocation: {method: explicit, stage_of: [0, 1, 3, 1, 0, -1]}", 3, 77,
			"cluster.allocation.stage_of[2]: expected a whole decimal number from -1 to 2"},
		{"t.yaml", "t.yaml, compute_scale: 0", 3, 44, "compute_scale: expected a decimal number from 1e-06"},
		{"t.yaml", "t.yaml, compute_scale: nan", 3, 44, "compute_scale: expected a decimal number"},
		{"schedule", "sched", 1, 1, "key `schedule` is missing"},
		{"microbatch: 8", "microbatch: 7", 4, 26,
			"64 is not a multiple of the microbatch, 7; the nearest are 63 and 70"},
		{"microbatch: 8", "microbatch: 80", 4, 26, "the nearest is 80"},
		{"microbatch: 8", "microbatch: 8, wiring: random", 4, 53, "schedule.wiring: expected"},
		{"microbatch: 8", "microbatch: 8, delayed: true", 4, 45, "unknown key `schedule.delayed`"},
		{"microbatch: 8", "microbatch: 8, in_flight: 5000", 4, 56,
			"in_flight: expected a whole decimal number from 1 to 4096"},
		{"global_batch: 64, microbatch: 8", "global_batch: 4000000000, microbatch: 1", 4, 26,
			"4000000000 microbatches in a round, at most 1048576"},
		{"train:", "sync: {method: now}\ntrain:", 5, 16, "sync.method: expected one of: step, diloco"},
		{"train:", "directory: {heartbeat: 1}\ntrain:", 5, 24,
			"directory.heartbeat: expected a time with its unit"},
		{"train:", "directory: {heartbeat: 20 MB}\ntrain:", 5, 24, "expected a time with its unit"},
		{"train:", "directory: {heartbeat: 4 s, timeout: 7 s}\ntrain:", 5, 38,
			"less than two heartbeats and the way to the directory"},
		{"{steps: 10}", "{loss: 1}", 5, 23, "train.until.loss: ends a run before its last step: say how many"},
		{"{steps: 10}", "{steps: 1e3}", 5, 24, "train.until.steps: expected a whole decimal number"},
		{"{steps: 10}", "{steps: 10, loss: -1}", 5, 34, "train.until.loss: expected a decimal number from 0"},
		{"{until: {steps: 10}", "{arithmetic: none, until: {steps: 10, loss: 1}", 5, 52, "no loss to reach"},
		{"{until", "{optimizer: {name: sgd, beta1: 0.9}, until", 5, 32,
			"unknown key `train.optimizer.beta1`; accepted here: name, lr, momentum, weight_decay"},
		{"{until", "{optimizer: {lr: 0}, until", 5, 25,
			"train.optimizer.lr: expected a decimal number from 1e-12"},
		{"{until", "{optimizer: {beta1: 1.0}, until", 5, 28,
			"train.optimizer.beta1: expected a decimal number from 0 to"},
		{"{until", "{data: {corpus: poems}, until", 5, 24,
			"train.data.corpus: expected one of: quadratic, text, tokens"},
		{"{steps: 10}}", "{steps: 10}}\nbudget: 4", 6, 1, "unknown key `budget`"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		check_refused(cases[i].old, cases[i].new, cases[i].line, cases[i].column, cases[i].part);
}

static void fewer_workers_than_stages(void **state)
{
	(void)state;
	write_file("two.yaml",
		"name: two\nsource: assumed for this test\ndirectory: here\nsites:\n  here:\n"
		"    machines: [{count: 2, gpu: fast}]\n    inside: {bandwidth: 1 Gbit/s, latency: 1 ms}\n");
	check_refused("t.yaml", "two.yaml", 2, 31, "3 stages need at least as many workers");
}

static void runs_that_could_not_be_counted_are_refused(void **state)
{
	(void)state;
	check_refused("t.yaml}\nschedule: {global_batch: 64, microbatch: 8}\ntrain: {until: {steps: 10}}",
		"t.yaml, compute_scale: 1e9}\nschedule: {global_batch: 64, microbatch: 8}\ntrain: {until: {steps: "
		"1000000000}}",
		5, 16, "would compute for at least");
	check_refused("t.yaml}\nschedule: {global_batch: 64, microbatch: 8}\ntrain: {until: {steps: 10}}",
		"t.yaml, compute_scale: 1e-6}\nschedule: {global_batch: 4000000000, microbatch: 4000, in_flight: 1}\n"
		"train: {until: {steps: 1000000000}}",
		5, 16, "would not fit in 63 bits");
}

static void corpus_must_fit_the_model(void **state)
{
	(void)state;
	write_file("odd.yaml", "name: odd\nkind: mlp\nactivation: tanh\n"
			       "layers: {inputs: 2, hidden: 64, hidden_layers: 4, outputs: 3}\n");
	check_refused("m.yaml", "odd.yaml", 5, 8, "odd has 2 inputs and 3 outputs");
	struct skep_scenario s;
	must_read("name: odd\nmodel: {file: odd.yaml, stages: 3}\ncluster: {topology: t.yaml}\n"
		  "schedule: {global_batch: 64, microbatch: 8}\ntrain: {arithmetic: none, until: {steps: 10}}\n",
		NULL, &s); /* no arithmetic, no data */
	skep_scenario_finish(&s);
}

static void errors_in_named_files_stand_there(void **state)
{
	(void)state;
	struct skep_scenario s;
	struct skep_diag diag;
	write_file("bad.yaml", "name: m\nkind: cnn\n");
	assert_false(try_read(base_text, "model.file=bad.yaml", &s, &diag));
	check_diag(&diag, 2, 7, "kind");
	assert_non_null(strstr(diag.file, "bad.yaml"));
	assert_false(try_read(base_text, "model.file=gpus", &s, &diag));
	check_diag(&diag, 0, 18, "`gpus` is a directory");
}

static void no_file_is_an_error(void **state)
{
	(void)state;
	struct skep_scenario s;
	struct skep_diag diag = {0};
	assert_false(skep_scenario_read("/nonexistent/s.yaml", NULL, &s, &diag));
	check_diag(&diag, 0, 0, "cannot be opened");
	skep_scenario_finish(&s);
	char path[600];
	memset(path, 'a', sizeof path - 1);
	path[sizeof path - 1] = 0;
	memset(&diag, 0, sizeof diag);
	assert_false(skep_scenario_read(path, NULL, &s, &diag));
	check_diag(&diag, 0, 0, "path is too long");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(short_file_takes_the_usual_values),
		cmocka_unit_test(full_file_fills_the_plan),
		cmocka_unit_test(byte_order_mark_is_no_content),
		cmocka_unit_test(allocation_methods),
		cmocka_unit_test(in_flight_fills_the_swarm),
		cmocka_unit_test(times_follow_the_roofline),
		cmocka_unit_test(times_of_state_and_chunks_follow_memory),
		cmocka_unit_test(delayed_updates_need_memory),
		cmocka_unit_test(compute_scale_stretches_the_work),
		cmocka_unit_test(memory_is_the_sum_of_its_parts),
		cmocka_unit_test(scenario_that_does_not_fit_is_refused),
		cmocka_unit_test(overrides_are_in_the_text),
		cmocka_unit_test(overrides_are_checked),
		cmocka_unit_test(keys_are_refused_at_their_place),
		cmocka_unit_test(fewer_workers_than_stages),
		cmocka_unit_test(runs_that_could_not_be_counted_are_refused),
		cmocka_unit_test(corpus_must_fit_the_model),
		cmocka_unit_test(errors_in_named_files_stand_there),
		cmocka_unit_test(no_file_is_an_error),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
