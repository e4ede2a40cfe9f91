/* SPDX-License-Identifier: Apache-2.0
 *
 * test_buckets.c - gradients that are summed bucket by bucket while the backward pass runs: the arithmetic is that of a whole
 * pass, to the bit; the simulated time of a step is the closed form of core/methods/eager.c, and the bytes
 * are those of one sum.
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

#include "core/names.h"
#include "core/record.h"
#include "sim/sim.h"
#include "star_fixture.h"
#include "tests/unit/job.h"

/* ---- the arithmetic --------------------------------------------------------------------------------------------- */

enum { LAYERS = 7, HIDDEN = 8 };

/* Where the stage's layers begin in its parameters, and where the last one ends. */
static uint32_t layer_starts(const struct job *job, uint32_t stage, uint64_t *ret)
{
	uint32_t first, layers;
	skep_model_cut(&job->model, job->plan.stages, stage, &first, &layers);
	ret[0] = 0;
	for (uint32_t l = 0; l < layers; l++)
		ret[l + 1] = ret[l] + (uint64_t)(job->width[first + l] + 1) * job->width[first + l + 1];
	return layers;
}

/* As job_backward(), each stage in parts of `each` layers from the last one on. */
static void backward_in_parts(struct job *job, const struct job_passage *passage, uint32_t each)
{
	struct skep_buf gradient = {0};
	for (uint32_t s = job->plan.stages; s--;) {
		uint64_t start[LAYERS + 1];
		uint32_t layers = layer_starts(job, s, start), parts = (layers + each - 1) / each, end = layers;
		struct skep_op op = {.kind = SKEP_OP_BACKWARD, .stage = (uint16_t)s, .round = passage->round};
		op.microbatch = passage->microbatch;
		op.in = passage->in[s], op.stash = passage->stash[s], op.size = parts;
		for (op.chunk = 0; op.chunk < parts; op.chunk++) {
			uint32_t lowest = end > each ? end - each : 0;
			op.first = start[lowest], op.count = start[end] - start[lowest], op.gradient = gradient;
			struct skep_device_result result = job_run(job->device[s], op);
			assert_false(result.failed);
			skep_device_buffer_release(job->device[s], gradient);
			gradient = result.out;
			end = lowest;
		}
		skep_device_buffer_release(job->device[s], op.in);
		skep_device_buffer_release(job->device[s], op.stash);
		gradient = s ? job_carry(job->device[s], gradient, job->device[s - 1]) : (struct skep_buf){0};
	}
}

static void check_parts(uint32_t stages, bool checkpoint, enum skep_codec codec, uint32_t each)
{
	struct job job;
	struct job_passage passage;
	size_t n;
	job_init(&job, stages, SKEP_ACTIVATION_GELU, LAYERS, HIDDEN);
	job.training.checkpoint_activations = checkpoint;
	job.training.activation_codec = codec;
	job_restart(&job);
	job_microbatch(&job, 0, 0);
	job_microbatch(&job, 0, 1);
	float *whole = job_gradients(&job, 0, &n);
	job_step(&job, 0, 0); /* clears */
	job_microbatch(&job, 0, 0);
	job_forward(&job, 0, 1, &passage);
	backward_in_parts(&job, &passage, each);
	float *parts = job_gradients(&job, 0, &n);
	assert_memory_equal(whole, parts, n * sizeof *whole);
	free(whole), free(parts);
	job_finish(&job);
}

static void test_parts_add_what_a_whole_adds(void **state)
{
	(void)state;
	for (uint32_t stages = 1; stages <= 3; stages++)
		for (uint32_t each = 1; each <= LAYERS; each++)
			for (int checkpoint = 0; checkpoint < 2; checkpoint++) {
				check_parts(stages, checkpoint, SKEP_CODEC_NONE, each);
				check_parts(stages, checkpoint, SKEP_CODEC_INT8, each);
			}
}

static void test_parts_that_cut_a_layer_are_refused(void **state)
{
	(void)state;
	struct job job;
	struct job_passage passage;
	job_init(&job, 1, SKEP_ACTIVATION_TANH, LAYERS, HIDDEN);
	job_forward(&job, 0, 0, &passage);
	struct skep_op op = {.kind = SKEP_OP_BACKWARD, .stash = passage.stash[0], .size = 2};
	uint64_t start[LAYERS + 1];
	layer_starts(&job, 0, start);
	op.first = start[3] + 1, op.count = start[LAYERS] - op.first;
	assert_true(job_run(job.device[0], op).failed);
	op.first = start[3], op.count = start[LAYERS] - op.first - 1;
	assert_true(job_run(job.device[0], op).failed);
	op.first = start[3], op.count = 0;
	assert_true(job_run(job.device[0], op).failed);
	op.first = start[LAYERS], op.count = 1;
	assert_true(job_run(job.device[0], op).failed);
	skep_device_buffer_release(job.device[0], passage.stash[0]);
	job_finish(&job);
}

/* ---- time and bytes --------------------------------------------------------------------------------------------- */

/* Equal layers, whose parameters all numbers of members in here divide; the first needs no gradient of its input. */
enum { WIDTH = 240, DEPTH = 8, LAYER_BYTES = 4 * (WIDTH + 1) * WIDTH };
#define RATE_BPS 1e8
#define LATENCY_NS 150000.0
#define FORWARD_NS 1000000u
#define MICROBATCHES 2u
/* An operation of a nanosecond, and a transfer rounded up to one, for each of a few hundred moves in a row. */
#define TOLERANCE_NS 1500.0

static void write_files(uint32_t members)
{
	char text[1024];
	snprintf(text, sizeof text,
		"name: star\nsource: \"Assumed: a test.\"\ndirectory: here\nsites:\n  here:\n"
		"    machines: [{count: %u, gpu: fast, up: 100 MB/s, down: 100 MB/s}]\n"
		"    inside: {bandwidth: 1000 Gbit/s, latency: 0.15 ms}\n",
		members);
	star_write("star.yaml", text);
	star_write("gpus/fast.yaml", "name: fast\nsource: \"Assumed: a test.\"\nflops: 1 TFLOP/s\nefficiency: 1\n"
				     "memory_bandwidth: 1000000 GB/s\nmemory: 1000 GB\noverhead: 0 ms\n");
	snprintf(text, sizeof text,
		"name: m\nkind: mlp\nactivation: gelu\nlayers: {inputs: %d, hidden: %d, hidden_layers: %d, outputs: "
		"%d}\n",
		WIDTH, WIDTH, DEPTH - 1, WIDTH);
	star_write("model.yaml", text);
}

struct heard {
	skep_time begin_ns, end_ns, last_begin_ns, backward_end_ns; /* of reductions, and of the last backward pass */
	uint64_t sync_messages, sync_bytes;
	uint32_t operations, parts;
	int64_t loss_nano[8];
};

static void hear_note(void *context, skep_time now, struct skep_peer who, const struct skep_note *note)
{
	struct heard *heard = context;
	(void)now, (void)who;
	if (note->kind == SKEP_NOTE_LOSS)
		heard->loss_nano[note->round % 8] = note->value;
}

static void hear_op(void *context, const struct skep_op_span *span)
{
	struct heard *heard = context;
	if (span->kind == SKEP_OP_BACKWARD && span->number % MICROBATCHES == MICROBATCHES - 1) {
		if (heard->parts++ == 0 || span->begin_ns < heard->last_begin_ns)
			heard->last_begin_ns = span->begin_ns;
		heard->backward_end_ns = span->end_ns;
	}
	if (span->lane != SKEP_LANE_REDUCE)
		return;
	if (heard->operations++ == 0 || span->begin_ns < heard->begin_ns)
		heard->begin_ns = span->begin_ns;
	heard->end_ns = span->end_ns > heard->end_ns ? span->end_ns : heard->end_ns;
}

static void hear_link(void *context, const struct skep_link_use *use)
{
	struct heard *heard = context;
	heard->sync_messages += use->traffic == SKEP_TRAFFIC_SYNC ? use->messages : 0;
	heard->sync_bytes += use->traffic == SKEP_TRAFFIC_SYNC ? use->bytes : 0;
}

struct shape {
	uint8_t collective;
	uint32_t members, buckets; /* 0: no overlap */
	skep_time backward_ns;
	bool flows;
};

static struct heard simulate(const struct shape *shape)
{
	char path[128], text[1024], sync[128] = "";
	struct skep_scenario s;
	struct skep_diag diag = {0};
	struct heard heard = {0};
	struct skep_recorder recorder = {.context = &heard, .note = hear_note, .op = hear_op, .link = hear_link};
	struct skep_sim_result result;
	write_files(shape->members);
	if (shape->buckets > 0)
		snprintf(sync, sizeof sync, ", overlap: true, bucket: %u B", LAYER_BYTES * (DEPTH / shape->buckets));
	snprintf(path, sizeof path, "%s/scenario.yaml", folder);
	int size = snprintf(text, sizeof text,
		"name: t\nmodel: {file: model.yaml, stages: 1}\ncluster: {topology: star.yaml}\n"
		"schedule: {pipeline: 1f1b, global_batch: %u, microbatch: 1}\nsync: {collective: %s%s}\n"
		"train: {arithmetic: none, until: {steps: 1}}\nsimulate: {collectives: %s}\n",
		shape->members * MICROBATCHES, skep_collective_name(shape->collective), sync,
		shape->flows ? "flows" : "messages");
	if (!skep_scenario_read_text(path, text, (size_t)size, NULL, &s, &diag))
		fail_msg("%s", diag.message);
	if (shape->buckets > 0)
		assert_int_equal(s.stage[0].buckets, shape->buckets);
	s.op_time[0].forward_ns = FORWARD_NS;
	s.op_time[0].backward_ns = shape->backward_ns;
	assert_true(skep_sim_run(&s, &recorder, &result));
	assert_int_equal(result.outcome, SKEP_DONE);
	skep_scenario_finish(&s);
	return heard;
}

/* A message of so many bytes, alone on its link, but for the latency. */
static double t(double bytes)
{
	return 1e9 * (bytes + SKEP_HEADER_BYTES) / RATE_BPS;
}

/* By the rule of core/collective/ring.h: three segments of at least 64 KiB, where a chunk is that large. */
static uint32_t segments_of(uint32_t n, double bytes)
{
	uint32_t most = (uint32_t)(bytes / n / 65536);
	return most < 1 ? 1 : most < 3 ? most : 3;
}

static double ring_ns(uint32_t n, double bytes)
{
	uint32_t k = segments_of(n, bytes);
	double segment = t(bytes / n / k);
	return (2 * n - 3) * fmax(k * segment, segment + LATENCY_NS) + k * segment + LATENCY_NS;
}

static double sum_ns(uint8_t collective, uint32_t n, double bytes)
{
	if (collective == SKEP_COLLECTIVE_RING)
		return ring_ns(n, bytes);
	assert_int_equal(collective, SKEP_COLLECTIVE_PARAMETER_SERVER);
	return 2 * (LATENCY_NS + (n - 1) * t(bytes));
}

/* From the begin of the last backward pass. A layer takes two products, the first one: bucket b of B of DEPTH layers is done
 * after (b + 1) DEPTH / B of these, and the whole takes DEPTH - 1/2 of them. */
static double form_ns(const struct shape *shape)
{
	double end_ns = 0, layer_ns = (double)shape->backward_ns / (DEPTH - 0.5);
	for (uint32_t b = 0; b < shape->buckets; b++) {
		double part_ns = b + 1 < shape->buckets ? (b + 1) * (DEPTH / shape->buckets) * layer_ns
		                                        : (double)shape->backward_ns;
		double bytes = (double)LAYER_BYTES * (DEPTH / shape->buckets);
		end_ns = fmax(end_ns, part_ns) + sum_ns(shape->collective, shape->members, bytes);
	}
	return end_ns;
}

static void check_time(const struct shape *shape)
{
	struct heard heard = simulate(shape);
	double ns = (double)(heard.end_ns - heard.last_begin_ns), expected_ns = form_ns(shape);
	if (fabs(ns - expected_ns) > TOLERANCE_NS)
		fail_msg("%s of %u members, %u buckets, backward %u us: %.0f ns, not %.0f",
			skep_collective_name(shape->collective), shape->members, shape->buckets,
			(unsigned)(shape->backward_ns / 1000), ns, expected_ns);
	assert_int_equal(heard.parts, shape->members * shape->buckets);
	uint32_t n = shape->members, segments = segments_of(n, (double)LAYER_BYTES * (DEPTH / shape->buckets)),
		 messages = shape->collective == SKEP_COLLECTIVE_RING ? 2 * n * (n - 1) * segments : 2 * (n - 1);
	assert_int_equal(heard.sync_messages, messages * shape->buckets);
	assert_true(heard.sync_bytes ==
		    2ull * (n - 1) * DEPTH * LAYER_BYTES + (uint64_t)SKEP_HEADER_BYTES * messages * shape->buckets);
}

/* Where the network is slower the buckets queue up behind the first; where the arithmetic is, the last one is left over; and
 * something in between. */
static void test_a_step_takes_as_long_as_its_closed_form(void **state)
{
	(void)state;
	static const uint8_t kinds[] = {SKEP_COLLECTIVE_RING, SKEP_COLLECTIVE_PARAMETER_SERVER};
	static const uint32_t members[] = {2, 3, 5, 8}, buckets[] = {1, 2, 4, 8};
	static const skep_time backward_ns[] = {1000000, 40000000, 1000000000};
	for (size_t k = 0; k < 2; k++)
		for (size_t m = 0; m < 4; m++)
			for (size_t b = 0; b < 4; b++)
				for (size_t t = 0; t < 3; t++)
					check_time(&(struct shape){.collective = kinds[k],
						.members = members[m],
						.buckets = buckets[b],
						.backward_ns = backward_ns[t]});
}

static void test_overlap_hides_what_it_can(void **state)
{
	(void)state;
	struct shape shape = {.collective = SKEP_COLLECTIVE_RING, .members = 4, .backward_ns = 40000000};
	struct heard after = simulate(&shape);
	shape.buckets = 8;
	struct heard beside = simulate(&shape);
	double after_ns = (double)(after.end_ns - after.last_begin_ns),
	       beside_ns = (double)(beside.end_ns - beside.last_begin_ns);
	print_message("%.1f ms with overlap, %.1f ms without\n", beside_ns * 1e-6, after_ns * 1e-6);
	assert_true(after.begin_ns >= after.backward_end_ns);
	assert_true(beside.begin_ns < beside.backward_end_ns && beside_ns < 0.75 * after_ns);
	/* one sum from the directory's word on: the word goes there and back, and nothing else is different */
	shape.buckets = 1;
	struct heard eager = simulate(&shape);
	double word_ns = after_ns - (double)(eager.end_ns - eager.last_begin_ns);
	assert_true(word_ns > 2 * LATENCY_NS && word_ns < 2 * LATENCY_NS + 100000);
}

static void test_flows_stand_for_messages(void **state)
{
	(void)state;
	struct shape shape = {.collective = SKEP_COLLECTIVE_RING, .members = 5, .buckets = 4, .backward_ns = 40000000};
	double messages_ns = form_ns(&shape);
	shape.flows = true;
	struct heard heard = simulate(&shape);
	double ns = (double)(heard.end_ns - heard.last_begin_ns);
	print_message("%.3f ms with flows, %.3f ms with messages\n", ns * 1e-6, messages_ns * 1e-6);
	assert_true(fabs(ns - messages_ns) < 0.02 * messages_ns);
	assert_int_equal(heard.sync_messages, 2 * 5 * 4 * 4);
}

/* ---- both together ---------------------------------------------------------------------------------------------- */

static struct heard train(uint32_t members, const char *sync)
{
	char path[128], text[1024];
	struct skep_scenario s;
	struct skep_diag diag = {0};
	struct heard heard = {0};
	struct skep_recorder recorder = {.context = &heard, .note = hear_note};
	struct skep_sim_result result;
	write_files(members);
	star_write("model.yaml",
		"name: m\nkind: mlp\nactivation: tanh\nlayers: {inputs: 1, hidden: 24, hidden_layers: 5, "
		"outputs: 1}\n");
	snprintf(path, sizeof path, "%s/scenario.yaml", folder);
	int size = snprintf(text, sizeof text,
		"name: t\nmodel: {file: model.yaml, stages: 1}\ncluster: {topology: star.yaml}\n"
		"schedule: {pipeline: 1f1b, global_batch: %u, microbatch: 4}\nsync: %s\n"
		"train: {arithmetic: real, until: {steps: 8}}\n",
		members * 4 * 3, sync);
	if (!skep_scenario_read_text(path, text, (size_t)size, NULL, &s, &diag))
		fail_msg("%s", diag.message);
	assert_true(skep_sim_run(&s, &recorder, &result));
	assert_int_equal(result.outcome, SKEP_DONE);
	skep_scenario_finish(&s);
	return heard;
}

/* The sum of two is the same in either order, so with two members nothing may differ, not a bit in eight steps. */
static void test_training_is_the_same(void **state)
{
	(void)state;
	struct heard after = train(2, "{}"), beside = train(2, "{overlap: true, bucket: 1 KiB}");
	assert_memory_equal(after.loss_nano, beside.loss_nano, sizeof after.loss_nano);
	assert_true(after.loss_nano[0] > 0);
	struct heard tree = train(5, "{collective: tree}"),
		     parts = train(5, "{collective: tree, overlap: true, bucket: 1 KiB}");
	for (int i = 0; i < 8; i++)
		assert_true(fabs((double)(tree.loss_nano[i] - parts.loss_nano[i])) < 1e-4 * (double)tree.loss_nano[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts_add_what_a_whole_adds),
		cmocka_unit_test(test_parts_that_cut_a_layer_are_refused),
		cmocka_unit_test(test_a_step_takes_as_long_as_its_closed_form),
		cmocka_unit_test(test_overlap_hides_what_it_can),
		cmocka_unit_test(test_flows_stand_for_messages),
		cmocka_unit_test(test_training_is_the_same),
	};
	return cmocka_run_group_tests(tests, star_enter, star_leave);
}
