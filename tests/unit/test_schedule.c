/* SPDX-License-Identifier: Apache-2.0
 *
 * test_schedule.c - fixed pipelines in the simulator against the closed forms of the papers: K equal stages, M microbatches for
 * each pipeline, f and b for a pass, s for a link. Times are in ns and must be equal.
 *
 *   GPipe   M(f + b) + (K - 1)(f + b + 2s), idle (K - 1) / (M + K - 1) if s is nothing. With recomputation r, which a stage
 *           does ahead while it waits for its first gradient and between gradients, so that only the last stage has it in
 *           its way: M(f + r + b) + (K - 1)(f + b + 2s). With a barrier between pipelines 2s more, to the directory and back.
 *           In A flushes A times that of M / A microbatches.
 *   1F1B    the same time without latency, while stage k holds K - k microbatches at most.
 *
 * A message takes 1 ns at least, so s is never 0: GPipe's form has it, and for 1F1B the paper's schedule is worked out here,
 * pass by pass, with s and, to compare with the form, without.
 */
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

#include "folder_fixture.h"
#include "scenarios/read/scenario.h"
#include "sim/sim.h"

#define WORKERS_MAX 32u
#define ROUNDS 3u

struct busy { /* one worker in one round */
	skep_time begin_ns, end_ns, busy_ns, last_forward_ns, first_backward_ns;
	uint32_t forwards, backwards, held, held_most;
};

struct run {
	struct skep_sim_result result;
	struct busy busy[ROUNDS][WORKERS_MAX];
	uint64_t recomputed;
	int64_t loss_nano[ROUNDS];
};

static void hear_note(void *context, skep_time now, struct skep_peer who, const struct skep_note *note)
{
	struct run *run = context;
	(void)now, (void)who;
	if (note->kind == SKEP_NOTE_LOSS)
		run->loss_nano[note->round] = note->value;
}

/* Spans come when an operation ends, in the order of their ends, of a worker in the order of its work. */
static void hear_op(void *context, const struct skep_op_span *span)
{
	struct run *run = context;
	struct busy *busy = &run->busy[span->round][span->worker];
	run->recomputed += span->kind == SKEP_OP_RECOMPUTE;
	if (span->kind == SKEP_OP_RECOMPUTE)
		busy->busy_ns += span->end_ns - span->begin_ns;
	if (span->kind != SKEP_OP_FORWARD && span->kind != SKEP_OP_BACKWARD)
		return;
	bool forward = span->kind == SKEP_OP_FORWARD;
	if (busy->forwards == 0)
		busy->begin_ns = span->begin_ns;
	if (!forward && busy->backwards == 0)
		busy->first_backward_ns = span->begin_ns;
	if (forward)
		busy->last_forward_ns = span->end_ns;
	busy->end_ns = span->end_ns;
	busy->busy_ns += span->end_ns - span->begin_ns;
	busy->forwards += forward;
	busy->backwards += !forward;
	busy->held += forward;
	busy->held_most = busy->held > busy->held_most ? busy->held : busy->held_most;
	busy->held -= !forward;
}

struct shape {
	const char *pipeline;
	uint32_t stages, pipelines, share;
	skep_time forward_ns, backward_ns, latency_ns;
	skep_time recompute_ns; /* 0: FORWARD keeps what BACKWARD needs */
	bool arithmetic, barrier;
	uint32_t flushes; /* of the share, one after the other; 0 is 1 */
};

static uint32_t flushes_of(const struct shape *shape)
{
	return shape->flushes > 0 ? shape->flushes : 1;
}

static const char *const scenario_text =
	"name: s\nmodel: {file: m.yaml, stages: %u}\n"
	"cluster: {topology: t.yaml, allocation: {method: strided}}\n"
	"schedule: {pipeline: %s, global_batch: %u, microbatch: 1, checkpoint_activations: %s, barrier: %s, accumulate: %u}\n"
	"train: {arithmetic: %s, until: {steps: %u}}\n";
static const char *const topology_text = "name: t\nsource: assumed for this test\ndirectory: here\nsites:\n  here:\n"
					 "    machines: [{count: %u, gpu: g}]\n"
					 "    inside: {bandwidth: 1000000 Gbit/s, latency: %u us}\n";

/* The GPU of the file is of no account: every pass takes what the shape says. */
static void simulate(const struct shape *shape, struct run *ret)
{
	char text[512];
	struct skep_scenario s;
	struct skep_diag diag = {0};
	uint32_t workers = shape->stages * shape->pipelines;
	assert_true(workers <= WORKERS_MAX && shape->latency_ns % 1000 == 0);
	snprintf(text, sizeof text, topology_text, workers, (unsigned)(shape->latency_ns / 1000));
	folder_write("t.yaml", text);
	snprintf(text, sizeof text, scenario_text, shape->stages, shape->pipeline, shape->share * shape->pipelines,
		shape->recompute_ns > 0 ? "true" : "false", shape->barrier ? "true" : "false", flushes_of(shape),
		shape->arithmetic ? "real" : "none", ROUNDS);
	if (!skep_scenario_read_text("s.yaml", text, strlen(text), NULL, &s, &diag))
		fail_msg("%s", diag.text);
	for (uint32_t stage = 0; stage < shape->stages; stage++) {
		s.op_time[stage].forward_ns = shape->forward_ns;
		s.op_time[stage].backward_ns = shape->recompute_ns + shape->backward_ns;
		s.op_time[stage].recompute_ns = shape->recompute_ns;
		s.op_time[stage].recomputed_ns = shape->backward_ns;
	}
	*ret = (struct run){0};
	const struct skep_recorder recorder = {.context = ret, .note = hear_note, .op = hear_op};
	assert_true(skep_sim_run(&s, &recorder, &ret->result));
	assert_int_equal(ret->result.outcome, SKEP_DONE);
	skep_scenario_finish(&s);
}

/* From the first forward pass of a pipeline to its last backward pass. Worker w is stage w % K of pipeline w / K. */
static skep_time makespan_ns(const struct run *run, const struct shape *shape, uint32_t round, uint32_t pipeline)
{
	skep_time begin_ns = SKEP_TIME_NEVER, end_ns = 0;
	for (uint32_t w = pipeline * shape->stages; w < (pipeline + 1) * shape->stages; w++) {
		const struct busy *busy = &run->busy[round][w];
		assert_int_equal(busy->forwards, shape->share);
		assert_int_equal(busy->backwards, shape->share);
		assert_int_equal(
			busy->busy_ns, shape->share * (shape->forward_ns + shape->recompute_ns + shape->backward_ns));
		begin_ns = busy->begin_ns < begin_ns ? busy->begin_ns : begin_ns;
		end_ns = busy->end_ns > end_ns ? busy->end_ns : end_ns;
	}
	return end_ns - begin_ns;
}

static skep_time form_ns(const struct shape *shape, skep_time link_ns)
{
	skep_time passes_ns = shape->forward_ns + shape->backward_ns, ramp = shape->stages - 1;
	return shape->share * (passes_ns + shape->recompute_ns) + flushes_of(shape) * ramp * (passes_ns + 2 * link_ns);
}

#define STAGES_MAX 8u
#define SHARE_MAX 32u

/* Narayanan et al. 2021, figure 4: stage k goes forwards min(K - 1 - k, M) times, then once forwards and once backwards in turn,
 * then backwards with what is left. Returns when the last pass ends. */
static skep_time one_f_one_b_ns(const struct shape *shape, skep_time link_ns)
{
	skep_time forward[STAGES_MAX][SHARE_MAX] = {{0}}, backward[STAGES_MAX][SHARE_MAX] = {{0}}, end_ns = 0;
	uint32_t last = shape->stages - 1, share = shape->share;
	for (uint32_t sweep = 0; sweep < 2 * (share + shape->stages); sweep++) { /* until nothing changes any more */
		for (uint32_t k = 0; k <= last; k++) {
			uint32_t warm = last - k < share ? last - k : share, f = 0, b = 0;
			skep_time now_ns = 0;
			while (b < share) {
				bool goes_forward = f < share && f <= b + warm && (f < warm || f == b + warm);
				uint32_t m = goes_forward ? f++ : b++;
				skep_time ready_ns = goes_forward ? (k > 0 ? forward[k - 1][m] + link_ns : 0)
				                     : k < last   ? backward[k + 1][m] + link_ns
				                                  : forward[k][m];
				now_ns = (ready_ns > now_ns ? ready_ns : now_ns) +
				         (goes_forward ? shape->forward_ns : shape->backward_ns);
				(goes_forward ? forward : backward)[k][m] = now_ns;
			}
			end_ns = now_ns > end_ns ? now_ns : end_ns;
		}
	}
	return end_ns;
}

static void check_makespan(const struct shape *shape, skep_time expected_ns)
{
	static struct run run;
	simulate(shape, &run);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		for (uint32_t p = 0; p < shape->pipelines; p++) {
			skep_time ns = makespan_ns(&run, shape, round, p);
			if (ns != expected_ns)
				fail_msg("%s, K %u, M %u, f %u, b %u, s %u: %llu ns, not %llu", shape->pipeline,
					shape->stages, shape->share, (unsigned)shape->forward_ns,
					(unsigned)shape->backward_ns, (unsigned)shape->latency_ns,
					(unsigned long long)ns, (unsigned long long)expected_ns);
			skep_time all_ns = form_ns(shape, 0), busy_ns = run.busy[round][p * shape->stages].busy_ns;
			if (shape->recompute_ns == 0) /* of the time of each worker so much is idle, links left out */
				assert_int_equal(
					(all_ns - busy_ns) * (shape->share / flushes_of(shape) + shape->stages - 1),
					all_ns * (shape->stages - 1));
		}
	}
}

static const struct {
	uint32_t stages, share;
} sizes[] = {{1, 1}, {1, 5}, {2, 1}, {2, 2}, {2, 7}, {3, 2}, {3, 8}, {4, 1}, {4, 3}, {4, 4}, {4, 16}, {7, 5}, {8, 8},
	{8, 31}};
static const struct {
	skep_time forward_ns, backward_ns;
} passes[] = {{1000000, 1000000}, {1000000, 2000000}, {700000, 1900001}, {3000000, 1000000}};

static struct shape shape_of(const char *pipeline, size_t size, size_t pass, skep_time latency_ns)
{
	return (struct shape){pipeline, sizes[size].stages, 1 + (uint32_t)(size + pass) % 3, sizes[size].share,
		passes[pass].forward_ns, passes[pass].backward_ns, latency_ns, 0, false, false, 0};
}

static const skep_time latencies_ns[] = {0, 50000, 20000000}; /* the last is much longer than a pass */

static void test_gpipe(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		for (size_t j = 0; j < sizeof passes / sizeof *passes; j++)
			for (size_t l = 0; l < sizeof latencies_ns / sizeof *latencies_ns; l++) {
				struct shape shape = shape_of("gpipe", i, j, latencies_ns[l]);
				check_makespan(&shape, form_ns(&shape, latencies_ns[l] + 1));
				shape.recompute_ns = shape.forward_ns;
				check_makespan(&shape, form_ns(&shape, latencies_ns[l] + 1));
			}
}

/* With a barrier word goes to the directory, and back when all pipelines have sent it: equal ones do so at once. */
static void test_gpipe_with_a_barrier(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		for (size_t l = 0; l < sizeof latencies_ns / sizeof *latencies_ns; l++) {
			skep_time link_ns = latencies_ns[l] + 1;
			struct shape shape = shape_of("gpipe", i, i % 4, latencies_ns[l]);
			shape.barrier = true;
			check_makespan(&shape, form_ns(&shape, link_ns) + 2 * link_ns);
			shape.recompute_ns = shape.forward_ns;
			check_makespan(&shape, form_ns(&shape, link_ns) + 2 * link_ns);
		}
}

static void test_1f1b(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		for (size_t j = 0; j < sizeof passes / sizeof *passes; j++)
			for (size_t l = 0; l < sizeof latencies_ns / sizeof *latencies_ns; l++) {
				struct shape shape = shape_of("1f1b", i, j, latencies_ns[l]);
				assert_int_equal(one_f_one_b_ns(&shape, 0), form_ns(&shape, 0));
				check_makespan(&shape, one_f_one_b_ns(&shape, latencies_ns[l] + 1));
			}
}

/* Of so many times the share, each with links of its own; and no worker holds more than one flush. */
static void test_flushes(void **state)
{
	(void)state;
	static struct run run;
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		for (size_t l = 0; l < sizeof latencies_ns / sizeof *latencies_ns; l++) {
			skep_time link_ns = latencies_ns[l] + 1;
			struct shape gpipe = shape_of("gpipe", i, i % 4, latencies_ns[l]),
				     one = shape_of("1f1b", i, i % 4, latencies_ns[l]);
			skep_time each_ns = one_f_one_b_ns(&one, link_ns);
			gpipe.flushes = one.flushes = 2 + (uint32_t)i % 3;
			gpipe.share = one.share = gpipe.flushes * sizes[i].share;
			check_makespan(&gpipe, form_ns(&gpipe, link_ns));
			check_makespan(&one, one.flushes * each_ns);
			simulate(&gpipe, &run);
			for (uint32_t w = 0; w < gpipe.stages * gpipe.pipelines; w++)
				assert_int_equal(run.busy[1][w].held_most, sizes[i].share);
			gpipe.recompute_ns = gpipe.forward_ns;
			check_makespan(&gpipe, form_ns(&gpipe, link_ns));
		}
}

/* What is held, and when the last stage turns round. */
static void test_what_is_held(void **state)
{
	(void)state;
	static struct run run;
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct shape shape = {
			"gpipe", sizes[i].stages, 2, sizes[i].share, 1000000, 2000000, 30000, 0, false, false, 0};
		for (int one = 0; one < 2; one++) {
			shape.pipeline = one ? "1f1b" : "gpipe";
			simulate(&shape, &run);
			for (uint32_t w = 0; w < 2 * shape.stages; w++) {
				const struct busy *busy = &run.busy[1][w];
				uint32_t depth = shape.stages - w % shape.stages;
				uint32_t least = depth < shape.share ? depth : shape.share;
				assert_int_equal(busy->held_most, one ? least : shape.share);
				assert_true(one || busy->first_backward_ns >= busy->last_forward_ns);
			}
		}
	}
}

/* What is learnt does not depend on the schedule, nor on whether activations are kept. */
static void test_all_learn_the_same(void **state)
{
	(void)state;
	static struct run run;
	static const char *const pipelines[] = {"gpipe", "gpipe", "1f1b", "1f1b"};
	int64_t loss_nano[4][ROUNDS];
	uint64_t recomputed[4];
	for (uint32_t i = 0; i < 4; i++) {
		struct shape shape = {pipelines[i], 4, 2, 5, 1000000, 2000000, 30000, i % 2 * 1000000, true, false, 0};
		simulate(&shape, &run);
		memcpy(loss_nano[i], run.loss_nano, sizeof loss_nano[i]);
		recomputed[i] = run.recomputed;
	}
	for (uint32_t i = 1; i < 4; i++)
		assert_memory_equal(loss_nano[i], loss_nano[0], sizeof loss_nano[0]);
	assert_true(loss_nano[0][ROUNDS - 1] < loss_nano[0][0] && loss_nano[0][0] > 0);
	assert_int_equal(recomputed[0] + recomputed[2] + recomputed[3], 0);
	assert_int_equal(recomputed[1], ROUNDS * 2 * 3 * 5); /* of all stages but the last */
}

static int enter(void **state)
{
	static char folder[] = "/tmp/skep-schedule-XXXXXX";
	*state = folder;
	return folder_enter(folder, "inputs: 1, hidden: 2, hidden_layers: 8, outputs: 1");
}

static int leave(void **state)
{
	return folder_leave(*state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gpipe),
		cmocka_unit_test(test_gpipe_with_a_barrier),
		cmocka_unit_test(test_1f1b),
		cmocka_unit_test(test_flushes),
		cmocka_unit_test(test_what_is_held),
		cmocka_unit_test(test_all_learn_the_same),
	};
	return cmocka_run_group_tests(tests, enter, leave);
}
