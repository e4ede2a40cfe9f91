/* SPDX-License-Identifier: Apache-2.0
 *
 * test_no_flush.c - rounds without a flush (PipeDream), event by event and in the simulator, to the ns; with K equal stages, f
 * and b for a pass, u for a step:
 *
 *   - R microbatches of a pipeline take as long as 1F1B does for R in one round, although each is followed by a step:
 *     (R + K - 1)(f + b) without links and steps. With the 1 ns that a message takes at least it is what 1F1B takes in the same
 *     simulator, which test_schedule.c holds to the paper's order.
 *   - With steps a pipeline that is full ends one microbatch every f + b + u.
 *   - Stage s does microbatch m on the parameters after min(m, m - (K - 1 - s)) steps, m counted from 0: of its step t, the
 *     weights w(t - n + 1), ..., w(t) of Narayanan et al. 2019, section 3.3, n being K.
 *   - Several pipelines take no longer as long as a sum takes no longer than f + b, and lack one step more at most.
 */
#include "folder_fixture.h"
#include "machine_fixture.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/schedule/pipelines.h"
#include "scenarios/read/scenario.h"
#include "sim/sim.h"
#include "tests/unit/fresh.h"
#include "tests/unit/observed_device.h"

static const struct skep_buf none = {0, 0};

/* ---- the plan ------------------------------------------------------------------------------------------------------ */

static void test_the_plan(void **state)
{
	(void)state;
	static const uint32_t stage_of[] = {0, 1, 2, 0, 1, 2};
	struct skep_plan plan = {.workers = 3, .stages = 3, .microbatches = 1, .first_stage_of = stage_of};
	plan.pipeline = SKEP_PIPELINE_PIPEDREAM;
	for (uint32_t stage = 0; stage < 3; stage++) {
		assert_int_equal(skep_plan_held(&plan, stage), 3 - stage);
		assert_int_equal(skep_plan_staleness(&plan, stage), 2 - stage);
		assert_int_equal(skep_plan_versions(&plan, stage), 3 - stage);
	}
	assert_int_equal(skep_round_capacity(&plan), 1);
	assert_true(skep_plan_window(&plan) >= 3);
	plan.workers = 6;
	plan.microbatches = 2;
	assert_int_equal(skep_plan_staleness(&plan, 2), 1);
	assert_int_equal(skep_plan_versions(&plan, 0), 4);
	plan.pipeline = SKEP_PIPELINE_1F1B;
	assert_int_equal(skep_plan_versions(&plan, 0), 1);
	plan.delayed = true;
	assert_int_equal(skep_plan_versions(&plan, 0), 2);
}

/* ---- a worker ------------------------------------------------------------------------------------------------------- */

/* Worker i serves stage i modulo `stages` of pipeline i / `stages`. */
static void begin(struct fixture *f, uint32_t workers, uint32_t stages, uint32_t index)
{
	fixture_init(f, workers, stages, index);
	f->plan.pipeline = SKEP_PIPELINE_PIPEDREAM;
	f->plan.wiring = SKEP_WIRING_FIXED;
	f->plan.microbatches = workers / stages;
	f->plan.rounds = 20;
	f->plan.in_flight = skep_plan_held(&f->plan, 0);
	f->plan.liveness.wait_for_join_ns = SECOND_NS;
	fixture_make(f, index); /* anew: it was made for a swarm */
	fixture_start(f);
}

static void tell(struct fixture *f, uint32_t round, uint32_t attempt, uint32_t size, uint32_t share)
{
	uint32_t self = skep_node_stage(f->node); /* of pipeline 0 */
	struct skep_message message = fixture_message(SKEP_MESSAGE_REDUCE, f->plan.workers, self, round);
	message.attempt = attempt;
	message.u.reduce.size = size;
	message.u.reduce.share = share;
	message.u.reduce.next = (struct skep_peer){size > 1 ? self + f->plan.stages : self, 1};
	fixture_deliver(f, message);
}

static void bring(struct fixture *f, enum skep_message_kind kind, uint32_t from, uint32_t to, uint32_t round)
{
	struct skep_message message = fixture_message(kind, from, to, round);
	message.payload = fixture_buf(f);
	fixture_deliver(f, message);
}

static struct skep_op ran(struct fixture *f, enum skep_op_kind kind, uint32_t round, uint32_t version)
{
	const struct skep_op *op = fixture_ran(f, kind);
	assert_non_null(op);
	assert_int_equal(op->round, round);
	assert_int_equal(op->version, version);
	return *op;
}

static void pass(struct fixture *f, struct skep_op op, bool last)
{
	bool forward = op.kind == SKEP_OP_FORWARD;
	fixture_done(f, op, forward && last ? none : fixture_buf(f), forward ? fixture_buf(f) : none);
}

/* Stage 1 of 3, one pipeline: two forwards on version 0, then BACKWARD, STEP, FORWARD on version 1 in turn, and each BACKWARD on
 * what its FORWARD read. It steps on its own word. */
static void test_each_backward_is_followed_by_a_step(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 3, 3, 1);
	for (uint32_t round = 0; round < 5; round++)
		tell(&f, round, 1, 1, 1);
	for (uint32_t round = 0; round < 2; round++) {
		bring(&f, SKEP_MESSAGE_FORWARD, 0, 1, round);
		pass(&f, ran(&f, SKEP_OP_FORWARD, round, 0), false);
	}
	bring(&f, SKEP_MESSAGE_FORWARD, 0, 1, 2);
	assert_null(fixture_ran(&f, SKEP_OP_FORWARD)); /* two are held, and it would lack two steps */
	for (uint32_t round = 0; round < 4; round++) {
		bring(&f, SKEP_MESSAGE_BACKWARD, 2, 1, round);
		pass(&f, ran(&f, SKEP_OP_BACKWARD, round, round > 0 ? round - 1 : 0), false);
		assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_TALLY)->round, round);
		assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_TALLY)->u.tally.count, 1);
		struct skep_op step = ran(&f, SKEP_OP_STEP, round, round);
		assert_int_equal(step.size, 1);
		assert_int_equal(step.microbatches, 1);
		assert_int_equal(step.lane, SKEP_LANE_COMPUTE);
		fixture_done(&f, step, none, none);
		if (round > 0)
			bring(&f, SKEP_MESSAGE_FORWARD, 0, 1, round + 2);
		pass(&f, ran(&f, SKEP_OP_FORWARD, round + 2, round + 1), false);
	}
	fixture_finish(&f);
}

/* Two pipelines: stage 1 of 2 sums with worker 3 and steps at the COMMIT; meanwhile it goes on, one round ahead. */
static void test_a_sum_has_the_time_of_the_next_passes(void **state)
{
	(void)state;
	struct fixture f;
	struct skep_op backward = {0};
	begin(&f, 4, 2, 1);
	for (uint32_t round = 0; round < 4; round++) {
		tell(&f, round, 1, 2, 1);
		bring(&f, SKEP_MESSAGE_FORWARD, 0, 1, round);
		if (round > 0)
			continue;
		pass(&f, ran(&f, SKEP_OP_FORWARD, 0, 0), true);
		backward = ran(&f, SKEP_OP_BACKWARD, 0, 0);
	}
	pass(&f, backward, true);
	struct skep_op take = ran(&f, SKEP_OP_COPY_GRAD, 0, 0), forward = ran(&f, SKEP_OP_FORWARD, 1, 0);
	assert_null(fixture_sent(&f, SKEP_MESSAGE_TALLY));
	fixture_done(&f, take, fixture_buf(&f), none);
	pass(&f, forward, true);
	pass(&f, ran(&f, SKEP_OP_BACKWARD, 1, 0), true); /* into the other accumulator */
	assert_null(fixture_ran(&f, SKEP_OP_FORWARD));   /* it would lack two steps */
	assert_null(fixture_ran(&f, SKEP_OP_COPY_GRAD)); /* one sum after the other */
	struct skep_message chunk = fixture_message(SKEP_MESSAGE_CHUNK, 3, 1, 0);
	chunk.attempt = 1;
	for (uint32_t hop = 1; hop <= 2; hop++) {
		chunk.u.chunk.hop = hop;
		chunk.u.chunk.chunk = hop == 1;
		chunk.payload = fixture_buf(&f);
		fixture_deliver(&f, chunk);
		fixture_done(&f, f.out.item[0].u.run, fixture_buf(&f), none);
	}
	assert_non_null(fixture_sent(&f, SKEP_MESSAGE_TALLY));
	assert_null(fixture_ran(&f, SKEP_OP_STEP));
	struct skep_message commit = fixture_message(SKEP_MESSAGE_COMMIT, 4, 1, 0);
	commit.attempt = 1;
	commit.u.commit.microbatches = 2;
	fixture_deliver(&f, commit);
	fixture_done(&f, ran(&f, SKEP_OP_STEP, 0, 0), none, none);
	ran(&f, SKEP_OP_COPY_GRAD, 1, 0);
	ran(&f, SKEP_OP_FORWARD, 2, 1);
	fixture_finish(&f);
}

/* DRAIN: what is held is dropped, what comes is too late, and the sums go on without. */
static void test_a_pipeline_gives_up(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 3, 3, 1);
	for (uint32_t round = 0; round < 4; round++)
		tell(&f, round, 1, 1, 1);
	for (uint32_t round = 0; round < 2; round++) {
		bring(&f, SKEP_MESSAGE_FORWARD, 0, 1, round);
		pass(&f, ran(&f, SKEP_OP_FORWARD, round, 0), false);
	}
	fixture_deliver(&f, fixture_message(SKEP_MESSAGE_DRAIN, 3, 1, 1));
	for (uint32_t round = 0; round < 2; round++) {
		assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_TALLY)->u.tally.count, 0);
		struct skep_op step = ran(&f, SKEP_OP_STEP, round, round);
		assert_int_equal(step.microbatches, 0);
		fixture_done(&f, step, none, none);
	}
	assert_null(fixture_sent(&f, SKEP_MESSAGE_TALLY));
	struct skep_message late = fixture_message(SKEP_MESSAGE_BACKWARD, 2, 1, 1);
	late.payload = fixture_buf(&f);
	fixture_deliver(&f, late);
	assert_true(fixture_released(&f, late.payload));
	bring(&f, SKEP_MESSAGE_FORWARD, 0, 1, 2);
	ran(&f, SKEP_OP_FORWARD, 2, 2);
	fixture_finish(&f);
}

/* ---- the directory -------------------------------------------------------------------------------------------------- */

static void tally(struct fixture *f, uint32_t worker, uint32_t round, uint32_t attempt, uint32_t count)
{
	struct skep_message message = fixture_message(SKEP_MESSAGE_TALLY, worker, f->plan.workers, round);
	message.attempt = attempt;
	message.u.tally.count = count;
	message.u.tally.used = (uint16_t)count;
	message.u.tally.base = worker / f->plan.stages; /* pipeline p is granted microbatch p */
	fixture_deliver(f, message);
}

static void test_the_window(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 4, 2, 4);
	uint32_t window = skep_plan_window(&f.plan);
	assert_int_equal(fixture_count_sent(&f, SKEP_MESSAGE_GRANT), 2 * window);
	assert_int_equal(fixture_count_sent(&f, SKEP_MESSAGE_REDUCE), 4 * window);
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_REDUCE)->u.reduce.share, 1);
	tally(&f, 1, 1, 1, 1); /* rounds of a stage are committed in order */
	tally(&f, 3, 1, 1, 1);
	assert_null(fixture_noted(&f, SKEP_NOTE_STAGE_COMMITTED));
	tally(&f, 1, window, 1, 1); /* of the next one to open, which will have the place of round 0 */
	tally(&f, 3, window, 1, 1);
	assert_null(fixture_noted(&f, SKEP_NOTE_STAGE_COMMITTED));
	tally(&f, 1, 0, 1, 1);
	tally(&f, 3, 0, 1, 1);
	assert_int_equal(fixture_count_sent(&f, SKEP_MESSAGE_COMMIT), 4);
	assert_null(fixture_noted(&f, SKEP_NOTE_ROUND_CLOSED)); /* stage 0 has not told */
	tally(&f, 0, 0, 1, 1);
	tally(&f, 2, 0, 1, 1);
	assert_int_equal(fixture_noted(&f, SKEP_NOTE_ROUND_CLOSED)->round, 0);
	assert_int_equal(fixture_noted(&f, SKEP_NOTE_ROUND_OPENED)->round, window);
	assert_int_equal(fixture_count_sent(&f, SKEP_MESSAGE_GRANT), 2);
	fixture_finish(&f);
}

/* What two workers say of their losses is more than there are numbers: it stays the largest one, and is no small one. */
static void test_losses_beyond_measure(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 4, 2, 4);
	for (uint32_t worker = 1; worker < 4; worker += 2) {
		struct skep_message message = fixture_message(SKEP_MESSAGE_TALLY, worker, 4, 0);
		message.attempt = 1;
		message.u.tally.count = message.u.tally.used = 1;
		message.u.tally.base = worker / 2;
		message.u.tally.loss_nano = INT64_MAX;
		fixture_deliver(&f, message);
	}
	assert_true(fixture_noted(&f, SKEP_NOTE_LOSS)->loss_nano == INT64_MAX);
	fixture_finish(&f);
}

/* Worker 3, of stage 1, is lost: each open round is summed anew by worker 1, and pipeline 1 gives up what it has. */
static void test_a_member_is_lost(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 4, 2, 4);
	uint32_t window = skep_plan_window(&f.plan);
	tally(&f, 1, 0, 1, 1);
	fixture_event(&f, (struct skep_event){.kind = SKEP_EVENT_SUSPECT, .u.peer = {3, 1}});
	assert_int_equal(fixture_count_sent(&f, SKEP_MESSAGE_REDUCE), window);
	const struct skep_message *reduce = fixture_sent(&f, SKEP_MESSAGE_REDUCE);
	assert_int_equal(reduce->to.index, 1);
	assert_int_equal(reduce->attempt, 2);
	assert_int_equal(reduce->u.reduce.size, 1);
	assert_int_equal(fixture_count_sent(&f, SKEP_MESSAGE_DRAIN), 1);
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_DRAIN)->to.index, 2);
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_DRAIN)->round, window - 1);
	tally(&f, 1, 0, 1, 1); /* of the attempt that is void */
	assert_null(fixture_noted(&f, SKEP_NOTE_STAGE_COMMITTED));
	tally(&f, 1, 0, 2, 1);
	assert_int_equal(fixture_noted(&f, SKEP_NOTE_LOST)->value, 2);    /* microbatch 1 */
	assert_int_equal(fixture_count_sent(&f, SKEP_MESSAGE_COMMIT), 0); /* it steps on its own word */
	tally(&f, 0, 0, 1, 1);
	tally(&f, 2, 0, 1, 0);
	assert_int_equal(fixture_count_sent(&f, SKEP_MESSAGE_GRANT), 1);
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_GRANT)->to.index, 0);
	fixture_finish(&f);
}

/* ---- the simulator -------------------------------------------------------------------------------------------------- */

#define ROUNDS 40u

struct run {
	uint32_t stages;
	skep_time begin_ns, end_ns, backward_ns[ROUNDS]; /* of stage 0, pipeline 0: their ends */
	int64_t staleness[8][ROUNDS];                    /* the most, by stage */
	int64_t loss_nano[ROUNDS];
	struct skep_sim_result result;
};

static void hear_note(void *context, skep_time now, struct skep_peer who, const struct skep_note *note)
{
	struct run *run = context;
	(void)now, (void)who;
	if (note->kind == SKEP_NOTE_LOSS)
		run->loss_nano[note->round] = note->value;
	if (note->kind == SKEP_NOTE_COUNTED && note->value > run->staleness[note->stage][note->round])
		run->staleness[note->stage][note->round] = note->value;
}

static void hear_op(void *context, const struct skep_op_span *span)
{
	struct run *run = context;
	if (span->kind != SKEP_OP_FORWARD && span->kind != SKEP_OP_BACKWARD)
		return;
	run->begin_ns = span->begin_ns < run->begin_ns ? span->begin_ns : run->begin_ns;
	run->end_ns = span->end_ns > run->end_ns ? span->end_ns : run->end_ns;
	if (span->kind == SKEP_OP_BACKWARD && span->worker == 0)
		run->backward_ns[span->round] = span->end_ns;
}

struct shape {
	uint32_t stages, pipelines;
	skep_time forward_ns, backward_ns, step_ns;
	bool arithmetic;
};

static const char *const topology_text = "name: t\nsource: assumed for this test\ndirectory: here\nsites:\n  here:\n"
					 "    machines: [{count: %u, gpu: g}]\n"
					 "    inside: {bandwidth: 1000000 Gbit/s, latency: 0 us}\n";
static const char *const scenario_text =
	"name: s\nmodel: {file: m.yaml, stages: %u}\n"
	"cluster: {topology: t.yaml, allocation: {method: strided}}\n"
	"schedule: {pipeline: %s, global_batch: %u, microbatch: %u}\n"
	"train: {arithmetic: %s, optimizer: {name: sgd, lr: 2.0e-3}, until: {steps: %u}}\n";

/* ROUNDS microbatches for each pipeline: without a flush, or 1F1B in one round. */
static void must_read(const struct shape *shape, bool stream, struct skep_scenario *ret)
{
	char text[512];
	struct skep_diag diag = {0};
	uint32_t samples = shape->arithmetic ? 16 : 1, batch = shape->pipelines * samples;
	snprintf(text, sizeof text, topology_text, shape->stages * shape->pipelines);
	folder_write("t.yaml", text);
	snprintf(text, sizeof text, scenario_text, shape->stages, stream ? "pipedream" : "1f1b",
		stream ? batch : ROUNDS * batch, samples, shape->arithmetic ? "real" : "none", stream ? ROUNDS : 1);
	if (!skep_scenario_read_text("s.yaml", text, strlen(text), NULL, ret, &diag))
		fail_msg("%s", diag.text);
}

static void simulate(const struct shape *shape, bool stream, struct run *ret)
{
	struct skep_scenario s;
	must_read(shape, stream, &s);
	for (uint32_t stage = 0; stage < shape->stages; stage++) {
		s.op_time[stage].forward_ns = shape->forward_ns;
		s.op_time[stage].backward_ns = shape->backward_ns;
		s.op_time[stage].step_ns = shape->step_ns;
	}
	*ret = (struct run){.stages = shape->stages, .begin_ns = SKEP_TIME_NEVER};
	const struct skep_recorder recorder = {.context = ret, .note = hear_note, .op = hear_op};
	assert_true(skep_sim_run(&s, &recorder, &ret->result));
	assert_int_equal(ret->result.outcome, SKEP_DONE);
	skep_scenario_finish(&s);
}

static const uint32_t stages[] = {1, 2, 3, 4, 8};
static const struct {
	skep_time forward_ns, backward_ns;
} passes[] = {{1000000, 1000000}, {1000000, 2000000}, {700000, 1900001}, {3000000, 1000000}};

static void check_time(const struct shape *shape)
{
	static struct run run, flushed;
	simulate(shape, true, &run);
	simulate(shape, false, &flushed);
	skep_time ns = run.end_ns - run.begin_ns, both = shape->forward_ns + shape->backward_ns;
	skep_time form_ns = (ROUNDS + shape->stages - 1) * both;
	if (ns != flushed.end_ns - flushed.begin_ns)
		fail_msg("K %u, P %u: %llu ns, 1F1B %llu", shape->stages, shape->pipelines, (unsigned long long)ns,
			(unsigned long long)(flushed.end_ns - flushed.begin_ns));
	/* nothing but messages of 1 ns is beyond the form: each microbatch waits for less than one way out and back */
	assert_true(ns >= form_ns && ns - form_ns <= (ROUNDS + 1) * 2 * shape->stages);
	assert_true(shape->stages > 1 || ns == form_ns);
}

static void test_no_step_makes_a_bubble(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof stages / sizeof *stages; i++)
		for (size_t j = 0; j < sizeof passes / sizeof *passes; j++)
			for (uint32_t pipelines = 1; pipelines <= 3; pipelines++)
				check_time(&(struct shape){
					stages[i], pipelines, passes[j].forward_ns, passes[j].backward_ns, 0, false});
}

/* u hides the links: not a ns is lost. */
static void test_a_full_pipeline(void **state)
{
	(void)state;
	static struct run run;
	for (size_t i = 0; i < sizeof stages / sizeof *stages; i++)
		for (size_t j = 0; j < sizeof passes / sizeof *passes; j++) {
			struct shape shape = {stages[i], 1, passes[j].forward_ns, passes[j].backward_ns, 50000, false};
			simulate(&shape, true, &run);
			for (uint32_t m = ROUNDS / 2; m + shape.stages < ROUNDS; m++)
				assert_int_equal(run.backward_ns[m] - run.backward_ns[m - 1],
					shape.forward_ns + shape.backward_ns + shape.step_ns);
		}
}

static void test_versions(void **state)
{
	(void)state;
	static struct run run;
	for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
		struct shape shape = {stages[i], 1, 1000000, 2000000, 0, false};
		simulate(&shape, true, &run);
		for (uint32_t s = 0; s < shape.stages; s++)
			for (uint32_t m = 0; m < ROUNDS; m++)
				assert_int_equal(
					run.staleness[s][m], m < shape.stages - 1 - s ? m : shape.stages - 1 - s);
		shape.pipelines = 2;
		simulate(&shape, true, &run);
		for (uint32_t s = 0; s < shape.stages; s++)
			for (uint32_t m = 2 * shape.stages; m < ROUNDS; m++)
				assert_int_equal(run.staleness[s][m], shape.stages - s);
	}
}

/* What `skep check` says of the versions is what a device allocates for them. */
static void test_versions_take_memory(void **state)
{
	(void)state;
	for (uint32_t pipelines = 1; pipelines <= 2; pipelines++) {
		struct shape shape = {4, pipelines, 1000000, 2000000, 0, true};
		struct skep_scenario s;
		must_read(&shape, true, &s);
		for (uint32_t stage = 0; stage < shape.stages; stage++) {
			struct skep_diag error;
			struct skep_device *device = skep_device_create_on(
				SKEP_DEVICE_CPU, &(struct skep_device_place){0}, &s.training, stage, fresh(&error));
			assert_non_null(device);
			double bytes = (double)device_memory_of(device).weights_bytes;
			double array = (double)(sizeof(float) * s.plan.stage[stage].parameters);
			assert_true(bytes == (shape.stages - stage + (pipelines > 1)) * array);
			assert_true(s.memory[stage].weights == bytes);
			skep_device_destroy(device);
		}
		skep_scenario_finish(&s);
	}
}

static void test_it_learns(void **state)
{
	(void)state;
	static struct run run;
	for (uint32_t pipelines = 1; pipelines <= 2; pipelines++) {
		struct shape shape = {4, pipelines, 1000000, 2000000, 50000, true};
		int64_t first = 0, last = 0;
		simulate(&shape, true, &run);
		for (uint32_t m = 0; m < 5; m++) {
			first += run.loss_nano[m];
			last += run.loss_nano[ROUNDS - 1 - m];
		}
		assert_true(first > 0 && last < first);
	}
}

static int enter(void **state)
{
	static char folder[] = "/tmp/skep-stream-XXXXXX";
	*state = folder;
	return folder_enter(folder, "inputs: 1, hidden: 8, hidden_layers: 8, outputs: 1");
}

static int leave(void **state)
{
	return folder_leave(*state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_plan),
		cmocka_unit_test(test_each_backward_is_followed_by_a_step),
		cmocka_unit_test(test_a_sum_has_the_time_of_the_next_passes),
		cmocka_unit_test(test_a_pipeline_gives_up),
		cmocka_unit_test(test_the_window),
		cmocka_unit_test(test_losses_beyond_measure),
		cmocka_unit_test(test_a_member_is_lost),
		cmocka_unit_test(test_no_step_makes_a_bubble),
		cmocka_unit_test(test_a_full_pipeline),
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_versions_take_memory),
		cmocka_unit_test(test_it_learns),
	};
	return cmocka_run_group_tests(tests, enter, leave);
}
