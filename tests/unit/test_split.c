/* SPDX-License-Identifier: Apache-2.0
 *
 * test_split.c - stages spread over the GPUs of a machine, over hosts and over machines: every count and time against
 * figures worked out by hand from those of split_fixture.h.
 */
#include "tests/unit/fresh.h"
#include "tests/unit/split_fixture.h"

#include <math.h>

#include "core/collective/collective.h"
#include "scenarios/plan/split.h"
#include "sim/sim.h"

/* ---- the shares of a model -------------------------------------------------------------------------------------- */

static void share_of(const char *file, uint32_t stages, uint32_t stage, struct skep_split split, struct skep_cost *ret)
{
	char path[128];
	struct skep_diag diag = {0};
	struct skep_model model;
	snprintf(path, sizeof path, "%s/%s", folder, file);
	assert_true(skep_model_read(path, &model, &diag));
	skep_model_share(&model, stages, stage, &split, ret);
	skep_model_finish(&model);
}

static void test_blocks_over_four_gpus(void **state)
{
	(void)state;
	struct skep_cost one, four, sequence;
	share_of("block.yaml", 2, 0, (struct skep_split){1, false}, &one); /* two blocks; two and the head behind it */
	share_of("block.yaml", 2, 0, (struct skep_split){4, false}, &four);
	share_of("block.yaml", 2, 0, (struct skep_split){4, true}, &sequence);
	assert_int_equal(one.parameters, 2 * BLOCK);
	assert_int_equal(four.parameters, 2 * ((49152 + 448) / 4 + 384)); /* all but the norms and two of the biases */
	assert_int_equal(sequence.parameters, four.parameters);
	assert_true(
		one.forward_flop == 2 * 3407872 && four.forward_flop == 2 * 851968 && four.backward_flop == 4 * 851968);
	/* 18 bytes of s h between the products, 48 inside, 9 of a s^2 */
	assert_int_equal(one.stash_bytes, 2 * (18 * 2048 + 48 * 2048 + 9 * 8192));
	assert_int_equal(four.stash_bytes, 2 * (18 * 2048 + (48 * 2048 + 9 * 8192) / 4));
	assert_int_equal(sequence.stash_bytes, one.stash_bytes / 4);
	assert_true(four.sample_bytes == 2 * 4 * 2048 * (10 + 6) && sequence.sample_bytes == 2 * 4 * 2048 * 8.5);
	assert_int_equal(one.scratch_bytes, 2 * 4 * 4 * 2048); /* 4 s h, and a s^2 is as wide */
	assert_int_equal(four.scratch_bytes, 2 * 4 * 2048);
	assert_int_equal(one.forward_gathers + one.backward_gathers, 0);
	/* two all-reduces of s h numbers in each block and direction */
	assert_int_equal(four.forward_gathers, 2 * 4);
	assert_int_equal(four.backward_gathers, 2 * 4);
	assert_int_equal(four.forward_gathered_bytes, 2 * 4 * 4 * 2048);
	assert_int_equal(sequence.backward_gathered_bytes, four.backward_gathered_bytes);
	skep_cost_checkpoint(&four);
	assert_int_equal(four.backward_gathers, 4 * 4); /* the forward pass once more */
	assert_int_equal(four.backward_gathered_bytes, 4 * 4 * 4 * 2048);
}

static void test_the_head_over_four_gpus(void **state)
{
	(void)state;
	struct skep_cost one, four, sequence;
	share_of("block.yaml", 5, 4, (struct skep_split){1, false}, &one);
	share_of("block.yaml", 5, 4, (struct skep_split){4, false}, &four);
	share_of("block.yaml", 5, 4, (struct skep_split){4, true}, &sequence);
	assert_int_equal(one.parameters, HEAD);
	assert_int_equal(four.parameters, 25 * 64 + 128);
	assert_int_equal(one.stash_bytes, 4 * 32 * (64 + 2 * 100));
	assert_int_equal(four.stash_bytes, 4 * 32 * (64 + 2 * 25));
	assert_int_equal(sequence.stash_bytes, 4 * 32 * (16 + 2 * 25));
	assert_true(four.forward_flop == 2 * 32 * 64 * 25);
	assert_int_equal(four.forward_gathers, 0);
	assert_int_equal(four.backward_gathered_bytes, 2 * 4 * 2048); /* an all-reduce of the input's gradient */
	assert_int_equal(sequence.forward_gathered_bytes, 4 * 2048);
	assert_int_equal(sequence.backward_gathered_bytes, 4 * 2048);
}

/* What can be trained has its own formulas: of a block 8 s h numbers and the attention's sums, s a, are inside of split products,
 * and s h, two norms' measures of 2 s each, and the output lie between them. */
static void test_trained_blocks_over_four_gpus(void **state)
{
	(void)state;
	const uint64_t s = 32, h = 64, a = 8, v = 100, inside = s * (8 * h + a), between = s * (h + 4), edge = s * h;
	struct skep_cost first, last, sequence;
	write_file("gpt2.yaml",
		"name: g\nkind: transformer\ntransformer: {architecture: gpt2, hidden: 64, sequence: 32, "
		"blocks: 4, vocabulary: 100, heads: 8}\n");
	share_of("gpt2.yaml", 2, 0, (struct skep_split){4, false},
		&first); /* embedding and two blocks; two and the head */
	share_of("gpt2.yaml", 2, 1, (struct skep_split){4, false}, &last);
	assert_int_equal(first.stash_bytes, 4 * (s + 1 + 2 * edge + 2 * (between + inside / 4)));
	assert_int_equal(last.stash_bytes, 4 * (2 * edge + 2 * (between + inside / 4) + 2 * s + s * v / 4));
	assert_int_equal(first.recompute_bytes, first.stash_bytes);
	/* norms, biases behind the second products, and positions are on every GPU */
	assert_int_equal(first.parameters, v * h / 4 + s * h + 2 * ((12 * h * h + 7 * h) / 4 + 6 * h));
	assert_int_equal(last.parameters, 2 * ((12 * h * h + 7 * h) / 4 + 6 * h) + 2 * h + v * h / 4);
	/* four all-reduces of two blocks, the embedding's forwards and the head's backwards */
	assert_true(first.forward_gathers == 8 + 2 && first.backward_gathers == 8);
	assert_true(last.forward_gathers == 8 && last.backward_gathered_bytes == 4 * 10 * edge);
	share_of("gpt2.yaml", 2, 0, (struct skep_split){4, true}, &sequence);
	assert_int_equal(sequence.stash_bytes, 4 * (s + 1 + 2 * edge / 4 + 2 * (between + inside) / 4));
	assert_true(sequence.forward_gathers == 8 + 1 && sequence.backward_gathers == 8 + 1);
	assert_true(sequence.parameters == first.parameters && sequence.sample_bytes < first.sample_bytes);
	write_file("bert.yaml",
		"name: g\nkind: transformer\ntransformer: {architecture: bert, hidden: 64, sequence: 32, "
		"blocks: 4, vocabulary: 100, heads: 8}\n");
	share_of("bert.yaml", 2, 0, (struct skep_split){1, false}, &first);
	share_of("bert.yaml", 2, 0, (struct skep_split){4, false}, &last);
	assert_int_equal(first.stash_bytes - last.stash_bytes, 3 * 4 * 2 * inside / 4);
	assert_int_equal(first.parameters - last.parameters, 3 * (v * h + 2 * (12 * h * h + 7 * h)) / 4);
}

/* 1 -> 8 and 8 -> 8 are split by columns, 8 -> 1 is not. */
static void test_dense_layers_over_two_gpus(void **state)
{
	(void)state;
	struct skep_cost two;
	share_of("mlp.yaml", 1, 0, (struct skep_split){2, false}, &two);
	assert_int_equal(two.parameters, (4 + 4) + (8 * 4 + 4) + (8 + 1));
	assert_true(two.forward_flop == 2 * (4 + 32 + 8) && two.backward_flop == 2 * (4 + 2 * 32 + 2 * 8));
	assert_int_equal(two.forward_gathers, 2);
	assert_int_equal(two.forward_gathered_bytes, 4 * (8 + 8));
	assert_int_equal(two.backward_gathers, 2); /* one all-reduce of the second layer's input gradient */
	assert_int_equal(two.backward_gathered_bytes, 4 * 2 * 8);
	assert_int_equal(
		two.stash_bytes, 4 * (1 + 8 + 8 + (4 + 4 + 1))); /* inputs, gathered outputs, slopes of the own */
}

static void test_what_else_a_block_may_keep(void **state)
{
	(void)state;
	static const struct {
		const char *keys;
		uint64_t sh, as2; /* bytes */
	} cases[] = {{"", 66, 0}, {", dropout: residual, attention: kept", 66, 4},
		{", dropout: none, attention: kept", 64, 4}, {", attention: kept, activation: relu", 50, 9}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char text[256];
		struct skep_cost cost;
		snprintf(text, sizeof text,
			"name: b\nkind: transformer\ntransformer: {hidden: 64, sequence: 32, blocks: 1, vocabulary: "
			"100, heads: "
			"8%s}\n",
			cases[i].keys);
		write_file("kept.yaml", text);
		share_of("kept.yaml", 2, 0, SKEP_SPLIT_NONE, &cost);
		assert_int_equal(cost.stash_bytes, cases[i].sh * 2048 + cases[i].as2 * 8192);
	}
}

/* ---- time: the inner link ----------------------------------------------------------------------------------------- */

static uint64_t time_of(const struct skep_scenario *s, enum skep_op_kind kind)
{
	struct skep_op op = {.kind = (uint8_t)kind};
	return skep_scenario_op_ns(s, 0, &op);
}

static void test_time_of_a_machine_with_four_gpus(void **state)
{
	(void)state;
	struct skep_scenario s;
	must_read("block.yaml", "node.yaml", NULL, &s);
	/* 16 gathers of 2048 floats a sample: 3 hops of 1 us each, and a quarter of their bytes each hop at 1 GB/s */
	uint64_t gathers_ns = 3 * (16 * 1000 + 2 * 16 * 4 * 2048 / 4);
	uint64_t flop_ns = 2 * (4 * 851968 + 102400) / 1000;                              /* at 1 TFLOP/s */
	assert_int_equal(time_of(&s, SKEP_OP_FORWARD), 10000 + flop_ns + 1 + gathers_ns); /* rounded up */
	gathers_ns += 3 * (2 * 1000 + 2 * 2 * 4 * 2048 / 4); /* and the head's all-reduce */
	assert_int_equal(time_of(&s, SKEP_OP_BACKWARD), 10000 + 2 * flop_ns + 1 + gathers_ns);
	/* a quarter of 2 P and 2 * 12 P bytes, the replicated parameters apart, at 1 TB/s */
	double parameters = 4 * (4 * 12784 + 1728), state_bytes = (double)s.stage[0].state_bytes / 4;
	assert_int_equal(time_of(&s, SKEP_OP_STEP), (uint64_t)(10000.5 + (2 * parameters + 2 * state_bytes) / 1000));
	assert_int_equal(s.stage[0].parameters, ALL); /* what travels between machines is whole */
	skep_scenario_finish(&s);
}

/* A ring of g GPUs sends 2 (g - 1) / g of each tensor that it sums: in 4 blocks two of 2048 floats a sample each. */
static void test_bytes_that_a_gpu_sends(void **state)
{
	(void)state;
	static const struct {
		const char *set;
		double share;
	} cases[] = {{NULL, 0.75}, {"cluster.tensor_parallel=2", 0.5}, {"cluster.tensor_parallel=1", 0}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct skep_scenario s;
		double forward, backward;
		must_read("block.yaml", "node.yaml", cases[i].set, &s);
		skep_split_inner_bytes(&s, 0, 0, &forward, &backward);
		assert_true(fabs(forward - cases[i].share * 2 * 8 * 4 * 2048 * s.samples) < 1e-6);
		assert_true(fabs(backward - cases[i].share * 2 * 9 * 4 * 2048 * s.samples) < 1e-6); /* the head's */
		skep_scenario_finish(&s);
	}
}

static void test_fewer_gpus_than_there_are(void **state)
{
	(void)state;
	struct skep_scenario one, node;
	must_read("block.yaml", "one.yaml", NULL, &one);
	must_read("block.yaml", "node.yaml", "cluster.tensor_parallel=1", &node);
	for (int kind = 1; kind <= SKEP_OP_LOAD; kind++)
		assert_int_equal(time_of(&one, (enum skep_op_kind)kind), time_of(&node, (enum skep_op_kind)kind));
	skep_scenario_finish(&node);
	must_read("block.yaml", "node.yaml", "cluster.tensor_parallel=2", &node);
	assert_int_equal(skep_split_of(&node, 0).gpus, 2);
	skep_scenario_finish(&one);
	skep_scenario_finish(&node);
}

/* A swarm may mix machines with one, two and four GPUs. */
static void test_machines_that_differ(void **state)
{
	(void)state;
	struct skep_scenario s;
	write_topology("mixed.yaml",
		"{gpu: g, gpus: 4, inner: {bandwidth: 1 GB/s, latency: 1 us}}, "
		"{gpu: g, gpus: 2, inner: {bandwidth: 1 GB/s, latency: 1 us}}, {gpu: g}, {gpu: g}");
	must_read("block.yaml", "mixed.yaml", NULL, &s);
	assert_int_equal(s.topology.gpus, 3);
	static const uint32_t gpus[4] = {4, 2, 1, 1};
	struct skep_op op = {.kind = SKEP_OP_FORWARD};
	for (uint32_t i = 0; i < 4; i++) {
		uint32_t type = s.topology.machine[i].gpu;
		assert_int_equal(skep_split_of(&s, type).gpus, gpus[i]);
		assert_int_equal(s.memory[type].workers, gpus[i] == 1 ? 2 : 1);
		assert_true(i == 0 || s.memory[type].total >= s.memory[s.topology.machine[i - 1].gpu].total);
	}
	assert_int_equal(skep_scenario_op_ns(&s, 2, &op), skep_scenario_op_ns(&s, 3, &op));
	assert_true(skep_scenario_op_ns(&s, 1, &op) != skep_scenario_op_ns(&s, 0, &op));
	skep_scenario_finish(&s);
}

/* ---- time: the host ----------------------------------------------------------------------------------------------- */

static void test_time_of_a_step_on_the_host(void **state)
{
	(void)state;
	struct skep_scenario s;
	const uint64_t p = 4 * ALL,
		       all = 3 * p + 32; /* bytes: parameters; with two moments and the header of a chunk */
	must_read("block.yaml", "host.yaml", "train.optimizer={offload: optimizer}", &s);
	assert_int_equal(s.stage[0].state_bytes, all);
	/* down and up at 0.5 GB/s; the host reads the gradient, reads and writes the state at 1 GB/s */
	assert_int_equal(time_of(&s, SKEP_OP_STEP), 10000 + 2 * 2 * p + p + 2 * all);
	skep_scenario_finish(&s);
	must_read("block.yaml", "host.yaml", "train.optimizer={offload: gradients}", &s);
	/* parameters go up while the host still steps, which takes longer */
	assert_int_equal(time_of(&s, SKEP_OP_STEP), 10000 + 2 * p + 2 * all);
	/* a backward pass of 66 us waits for its gradients: 2 p ns down, 3 p ns to add them */
	assert_int_equal(time_of(&s, SKEP_OP_BACKWARD), 3 * p);
	skep_scenario_finish(&s);
	must_read("block.yaml", "one.yaml", NULL, &s);
	assert_true(time_of(&s, SKEP_OP_BACKWARD) < 70000);
	skep_scenario_finish(&s);
}

/* ---- ZeRO --------------------------------------------------------------------------------------------------------- */

static const uint64_t gather_ns = 3 * (1000000 + ALL); /* 4 ALL / 4 bytes, at 1 GB/s, and 1 ms, in three hops */

static void test_time_of_zero(void **state)
{
	(void)state;
	struct skep_scenario s[4];
	static const char *const sets[4] = {"sync={zero: 0}", "sync={zero: 1}", "sync={zero: 2}", "sync={zero: 3}"};
	for (int i = 0; i < 4; i++)
		must_read("block.yaml", "four.yaml", sets[i], &s[i]); /* one microbatch for each worker */
	for (int i = 0; i < 3; i++) {
		assert_int_equal(time_of(&s[i], SKEP_OP_FORWARD), time_of(&s[0], SKEP_OP_FORWARD));
		assert_int_equal(time_of(&s[i], SKEP_OP_BACKWARD), time_of(&s[0], SKEP_OP_BACKWARD));
	}
	assert_int_equal(time_of(&s[3], SKEP_OP_FORWARD), time_of(&s[0], SKEP_OP_FORWARD));
	assert_int_equal(time_of(&s[3], SKEP_OP_BACKWARD), gather_ns);
	double bytes = 2 * 4 * ALL + 2 * (double)s[0].stage[0].state_bytes;
	assert_int_equal(time_of(&s[0], SKEP_OP_STEP), (uint64_t)(10000.5 + bytes / 1000));
	for (int i = 1; i < 4; i++)
		assert_int_equal(time_of(&s[i], SKEP_OP_STEP), (uint64_t)(10000.5 + bytes / 4 / 1000));
	for (int i = 0; i < 4; i++)
		skep_scenario_finish(&s[i]);
}

/* A part of all that a step does, whatever it is made of: what mixed precision writes besides, and what a model gives. */
static void test_zero_shares_any_step(void **state)
{
	(void)state;
	struct skep_scenario s[2];
	struct skep_diag diag;
	const char *sets[] = {"sync={zero: 0}", "cluster.compute={type: fp16, mixed: true}"};
	write_file("gpus/h.yaml",
		"name: H\nsource: assumed\nflops: 1 TFLOP/s\nefficiency: 1\nmemory_bandwidth: 1000 GB/s\n"
		"memory: 1 GB\noverhead: 0.01 ms\npeaks: {fp16: 2 TFLOP/s}\n");
	write_topology("halves.yaml", "{gpu: h, count: 4, up: 1 GB/s, down: 1 GB/s}");
	for (int i = 0; i < 2; i++) {
		sets[0] = i > 0 ? "sync={zero: 1}" : "sync={zero: 0}";
		assert_true(try_read("block.yaml", "halves.yaml", sets, 2, &s[i], &diag));
		double bytes = 2 * 2 * ALL + 2 * (double)s[i].stage[0].state_bytes + 2 * ALL;
		assert_int_equal(time_of(&s[i], SKEP_OP_STEP), (uint64_t)(10000.5 + bytes / (i > 0 ? 4 : 1) / 1000));
		skep_scenario_finish(&s[i]);
	}
	write_file("given.yaml", "name: given\nkind: given\ngiven: {microbatch: 2, layers: [{parameters: 1000, "
				 "forward: 1 ms, step: 500 ms}]}\n");
	for (int i = 0; i < 2; i++) {
		must_read("given.yaml", "four.yaml", i > 0 ? "sync={zero: 1}" : NULL, &s[i]);
		assert_int_equal(time_of(&s[i], SKEP_OP_STEP), i > 0 ? 125000000 : 500000000);
		skep_scenario_finish(&s[i]);
	}
}

static void test_time_of_zero_with_accumulation(void **state)
{
	(void)state;
	struct skep_scenario s;
	struct skep_diag diag;
	const char *two[] = {"sync={zero: 2}", "schedule.global_batch=16"};
	assert_true(try_read("block.yaml", "four.yaml", two, 2, &s, &diag)); /* two microbatches for each worker */
	assert_int_equal(time_of(&s, SKEP_OP_BACKWARD), gather_ns / 2);
	skep_scenario_finish(&s);
	two[0] = "sync={zero: 3}";
	assert_true(try_read("block.yaml", "four.yaml", two, 2, &s, &diag));
	assert_int_equal(time_of(&s, SKEP_OP_FORWARD), gather_ns / 2);
	assert_int_equal(time_of(&s, SKEP_OP_BACKWARD), gather_ns * 3 / 2);
	skep_scenario_finish(&s);
}

/* Two stages, of two blocks, and of two and the head, on five machines: the first stage has three of them. A stage's step is
 * divided by its own workers, and what it reduces of each microbatch goes round its own ring. */
static const uint64_t in_stages[2] = {2 * BLOCK, 2 * BLOCK + HEAD}, members[2] = {3, 2};

static void read_stages(const char *zero, const char *batch, struct skep_scenario *ret)
{
	const char *sets[] = {
		"model.stages=2", "schedule={pipeline: 1f1b, global_batch: 24, microbatch: 2}", zero, batch};
	struct skep_diag diag;
	write_topology("five.yaml", "{gpu: g, count: 5, up: 1 GB/s, down: 1 GB/s}");
	if (!try_read("block.yaml", "five.yaml", sets, 4, ret, &diag))
		fail_msg("%s: %s", zero, diag.message);
}

static uint64_t time_in(const struct skep_scenario *s, uint32_t stage, enum skep_op_kind kind)
{
	struct skep_op op = {.kind = (uint8_t)kind, .stage = (uint16_t)stage};
	uint32_t worker = 0;
	while (s->first_stage_of[worker] != stage)
		worker++;
	return skep_scenario_op_ns(s, worker, &op);
}

static void test_time_of_zero_in_stages(void **state)
{
	(void)state;
	struct skep_scenario s[3];
	static const char *const sets[3] = {"sync={zero: 0}", "sync={zero: 1}", "sync={zero: 2}"};
	for (int i = 0; i < 3; i++)
		read_stages(sets[i], "schedule.global_batch=24", &s[i]); /* 4 and 6 microbatches for each worker */
	for (uint32_t stage = 0; stage < 2; stage++) {
		double n = (double)members[stage], v = 4 * (double)in_stages[stage];
		double bytes = 2 * v + 2 * (double)s[0].stage[stage].state_bytes, m = 12 / n;
		assert_int_equal(skep_split_owners(&s[1], stage), members[stage]);
		assert_int_equal(time_in(&s[0], stage, SKEP_OP_STEP), (uint64_t)(10000.5 + bytes / 1000));
		for (int i = 1; i < 3; i++)
			assert_int_equal(time_in(&s[i], stage, SKEP_OP_STEP), (uint64_t)(10000.5 + bytes / n / 1000));
		for (int i = 0; i < 3; i++)
			assert_int_equal(
				time_in(&s[i], stage, SKEP_OP_FORWARD), time_in(&s[0], stage, SKEP_OP_FORWARD));
		assert_int_equal(time_in(&s[1], stage, SKEP_OP_BACKWARD), time_in(&s[0], stage, SKEP_OP_BACKWARD));
		/* m - 1 scatters beside m passes, of n - 1 hops of V/n bytes at 1 GB/s and 1 ms each */
		double scatter_ns = (n - 1) * (1e6 + v / n);
		assert_int_equal(time_in(&s[2], stage, SKEP_OP_BACKWARD), (uint64_t)(scatter_ns * (m - 1) / m + 0.5));
	}
	for (int i = 0; i < 3; i++)
		skep_scenario_finish(&s[i]);
}

struct sync_bytes {
	uint64_t bytes;
	const uint32_t *stage_of; /* NULL: do not ask where */
	uint64_t of[2];           /* stages */
	uint32_t across;          /* messages between them */
};

static void count_sync(void *context, const struct skep_link_use *use)
{
	struct sync_bytes *sum = context;
	if (use->traffic != SKEP_TRAFFIC_SYNC)
		return;
	sum->bytes += use->bytes;
	if (sum->stage_of == NULL)
		return;
	sum->of[sum->stage_of[use->source]] += use->bytes;
	sum->across += sum->stage_of[use->source] != sum->stage_of[use->destination];
}

/* What goes over all links in two rounds of m microbatches a worker, in units of 3 V (n = 4): 2 with the ring, m + 1 with
 * stage 2, 3 m with stage 3. */
static void test_bytes_of_zero(void **state)
{
	(void)state;
	static const uint64_t expected[4][2] = {{2, 2}, {2, 2}, {2, 4}, {3, 9}};
	for (int zero = 0; zero < 4; zero++)
		for (int i = 0; i < 2; i++) {
			char set[2][40];
			const char *sets[] = {set[0], set[1]};
			struct skep_scenario s;
			struct skep_diag diag;
			struct sync_bytes sum = {0};
			struct skep_recorder recorder = {.context = &sum, .link = count_sync};
			struct skep_sim_result result;
			snprintf(set[0], sizeof set[0], "sync={zero: %d}", zero);
			snprintf(set[1], sizeof set[1], "schedule.global_batch=%d", i == 0 ? 8 : 24);
			assert_true(try_read("block.yaml", "four.yaml", sets, 2, &s, &diag));
			assert_true(skep_sim_run(&s, &recorder, &result));
			assert_int_equal(result.outcome, SKEP_DONE);
			uint64_t headers = 2 * 6 * 4 * SKEP_HEADER_BYTES *
			                   skep_ring_segments(&s.plan, 0, s.stage[0].parameters, 4);
			assert_int_equal(sum.bytes, 2 * expected[zero][i] * 3 * 4 * ALL + headers);
			assert_int_equal(skep_split_round_bytes(&s, 0, 4), (expected[zero][i] - 2) * 3 * 4 * ALL);
			skep_scenario_finish(&s);
		}
}

/* Of each stage by itself, in each of two rounds: 2 (n - 1) V with the ring and with stage 1, (m + 1) (n - 1) V with stage 2, m
 * being 4 in one stage and 6 in the other; and as `skep check` says it. Nothing of it goes from one stage to the other. */
static void test_bytes_of_zero_in_stages(void **state)
{
	(void)state;
	static const char *const sets[] = {"sync={zero: 0}", "sync={zero: 1}", "sync={zero: 2}"};
	static const uint64_t scatters[3][2] = {{0, 0}, {0, 0}, {3, 5}};
	for (int zero = 0; zero < 3; zero++) {
		struct skep_scenario s;
		struct skep_sim_result result;
		read_stages(sets[zero], "schedule.global_batch=24", &s);
		struct sync_bytes sum = {.stage_of = s.first_stage_of};
		struct skep_recorder recorder = {.context = &sum, .link = count_sync};
		assert_true(skep_sim_run(&s, &recorder, &result));
		assert_int_equal(result.outcome, SKEP_DONE);
		assert_int_equal(sum.across, 0);
		for (uint32_t stage = 0; stage < 2; stage++) {
			uint64_t n = members[stage], v = 4 * in_stages[stage];
			uint64_t messages =
				2 * n * (n - 1) * skep_ring_segments(&s.plan, stage, in_stages[stage], (uint32_t)n);
			uint64_t more = scatters[zero][stage] * (n - 1) * v;
			assert_int_equal(sum.of[stage], 2 * (2 * (n - 1) * v + messages * SKEP_HEADER_BYTES + more));
			assert_int_equal(skep_split_round_bytes(&s, stage, (uint32_t)n), more);
		}
		skep_scenario_finish(&s);
	}
}

/* OPT-350M on eight machines, two microbatches each: what goes over the links in units of 7 V, and which needs most of a GPU. */
static void test_shipped_baselines(void **state)
{
	(void)state;
	static const struct {
		const char *path;
		uint64_t units;
	} shipped[] = {{"scenarios/baselines/ddp.yaml", 2}, {"scenarios/baselines/zero-offload.yaml", 3},
		{"scenarios/baselines/zero-3.yaml", 6}, {"scenarios/baselines/ddp-offload.yaml", 2}};
	const char *set = "train.until.steps=3";
	struct skep_scenario_options options = {.set = &set, .sets = 1};
	double total[4];
	skep_time end_ns[4], step_ns[4];
	for (int i = 0; i < 4; i++) {
		struct skep_scenario s;
		struct skep_diag diag = {0};
		struct sync_bytes sum = {0};
		struct skep_recorder recorder = {.context = &sum, .link = count_sync};
		struct skep_sim_result result;
		assert_true(skep_scenario_read(shipped[i].path, &options, &s, &diag));
		assert_true(skep_sim_run(&s, &recorder, &result));
		assert_int_equal(result.outcome, SKEP_DONE);
		uint64_t segments = 0, first, elements;
		for (uint32_t b = 0; b < skep_plan_buckets(&s.plan, 0); b++) {
			skep_plan_range(&s.plan, 0, 0, b, &first, &elements);
			segments += skep_ring_segments(&s.plan, 0, elements, 8);
		}
		assert_int_equal(sum.bytes, 3 * (shipped[i].units * 7 * 4 * s.stage[0].parameters +
							segments * 2 * 7 * 8 * SKEP_HEADER_BYTES));
		total[i] = s.memory[0].total;
		step_ns[i] = s.op_time[0].step_ns;
		end_ns[i] = result.end_ns;
		skep_scenario_finish(&s);
	}
	assert_true(total[1] < total[0] / 2 && total[2] < total[0] / 2);
	assert_true(end_ns[0] < end_ns[1] && end_ns[1] < end_ns[2]);
	/* nothing but the step takes longer where the optimizer is on the host, and nothing else leaves the GPU */
	assert_int_equal(end_ns[3] - end_ns[0], 3 * (step_ns[3] - step_ns[0]));
	assert_true(step_ns[3] > 40 * step_ns[0] && total[3] < 0.8 * total[0]);
}

/* ---- what is refused ---------------------------------------------------------------------------------------------- */

static void test_what_is_refused(void **state)
{
	(void)state;
	must_refuse("block.yaml", "one.yaml", "cluster.tensor_parallel=2",
		"2 GPUs for each worker, the machine of worker 0 has 1");
	must_refuse("block.yaml", "one.yaml", "cluster.sequence_parallel=true", "no worker has more than one GPU");
	must_refuse("block.yaml", "node.yaml", "cluster.tensor_parallel=3",
		"a number of heads that is no multiple of that");
	must_refuse("headless.yaml", "node.yaml", NULL, "does not say how many heads");
	must_refuse("mlp.yaml", "node.yaml", "cluster.sequence_parallel=true", "has no sequence that could be split");
	must_refuse("block.yaml", "one.yaml", "train.optimizer={offload: optimizer}",
		"worker 0 does not say what its host has: add `host: ");
	must_refuse("block.yaml", "one.yaml", "train.optimizer={offload: optimizer}",
		"(and `pcie`, which is else 12 GB/s)");
	must_refuse("block.yaml", "four.yaml", "sync={zero: 4}", "from 0 to 3");
	must_refuse("block.yaml", "four.yaml", "sync={zero: 1, compression: fp16}", "must not be rounded");
	const char *sets[] = {"sync={zero: 3}", "model.stages=2"};
	struct skep_scenario s;
	struct skep_diag diag;
	assert_false(try_read("block.yaml", "four.yaml", sets, 2, &s, &diag));
	assert_non_null(strstr(diag.message, "needs `model.stages: 1`, not 2"));
	sets[0] = "sync={zero: 2}";
	const char *uneven[] = {sets[0], sets[1], "schedule.global_batch=16"};
	assert_false(try_read("block.yaml", "five.yaml", uneven, 3, &s, &diag));
	assert_non_null(strstr(diag.message, "all workers of stage 0 do as many"));
	assert_non_null(strstr(diag.message, "a multiple of 6 (3 workers, microbatch 2); the next is 18"));
	sets[0] = "sync={zero: 1}";
	sets[1] = "schedule.global_batch=12";
	assert_false(try_read("block.yaml", "four.yaml", sets, 2, &s, &diag));
	assert_non_null(strstr(diag.message, "a multiple of 8 (4 workers, microbatch 2); the next is 16"));
	write_topology("bad.yaml", "{gpu: g, gpus: 2}");
	must_refuse("block.yaml", "bad.yaml", NULL, "2 GPUs in one machine need `inner: {bandwidth, latency}`");
	write_topology("bad.yaml", "{gpu: g, inner: {bandwidth: 1 GB/s, latency: 1 us}}");
	must_refuse("block.yaml", "bad.yaml", NULL, "a machine with one GPU has no inner link");
	write_topology("bad.yaml", "{gpu: g, gpus: -1}");
	must_refuse("block.yaml", "bad.yaml", NULL, "from 1 to 1024");
	write_topology("bad.yaml", "{gpu: g, pcie: -3 GB/s}");
	must_refuse("block.yaml", "bad.yaml", NULL, "pcie");
}

static void test_what_does_not_run_for_real(void **state)
{
	(void)state;
	struct skep_scenario s;
	const char *key[2];
	struct skep_diag error;
	must_read("block.yaml", "four.yaml", NULL, &s);
	assert_false(skep_scenario_runs(&s, true, key, fresh(&error)));
	assert_non_null(strstr(error.message, "is known by its cost alone"));
	skep_scenario_finish(&s);
	must_read("mlp.yaml", "four.yaml", "sync={zero: 1}", &s);
	assert_true(skep_scenario_runs(&s, true, key, fresh(&error)));
	skep_scenario_finish(&s);
	must_read("mlp.yaml", "four.yaml", "sync={zero: 3}", &s);
	assert_false(skep_scenario_runs(&s, true, key, fresh(&error)));
	assert_non_null(strstr(error.message, "stage 3 is simulated alone"));
	assert_string_equal(key[0], "sync");
	assert_string_equal(key[1], "zero");
	skep_scenario_finish(&s);
	must_read("mlp.yaml", "node.yaml", NULL, &s);
	assert_false(skep_scenario_runs(&s, false, key, fresh(&error)));
	assert_non_null(strstr(error.message, "--pace"));
	assert_true(skep_scenario_runs(&s, true, key, fresh(&error)));
	skep_scenario_finish(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_blocks_over_four_gpus),
		cmocka_unit_test(test_the_head_over_four_gpus),
		cmocka_unit_test(test_trained_blocks_over_four_gpus),
		cmocka_unit_test(test_dense_layers_over_two_gpus),
		cmocka_unit_test(test_what_else_a_block_may_keep),
		cmocka_unit_test(test_time_of_a_machine_with_four_gpus),
		cmocka_unit_test(test_bytes_that_a_gpu_sends),
		cmocka_unit_test(test_fewer_gpus_than_there_are),
		cmocka_unit_test(test_machines_that_differ),
		cmocka_unit_test(test_time_of_a_step_on_the_host),
		cmocka_unit_test(test_time_of_zero),
		cmocka_unit_test(test_zero_shares_any_step),
		cmocka_unit_test(test_time_of_zero_with_accumulation),
		cmocka_unit_test(test_bytes_of_zero),
		cmocka_unit_test(test_time_of_zero_in_stages),
		cmocka_unit_test(test_bytes_of_zero_in_stages),
		cmocka_unit_test(test_shipped_baselines),
		cmocka_unit_test(test_what_is_refused),
		cmocka_unit_test(test_what_does_not_run_for_real),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
