/* SPDX-License-Identifier: Apache-2.0
 *
 * test_pipelines.c - fixed pipelines, event by event: who works with whom, when a worker turns round, what the directory grants
 * and whom it tells; and what a scenario may say about them.
 */
#include "machine_fixture.h"

#include "core/schedule/pipelines.h"
#include "scenarios/read/scenario.h"

static const struct skep_buf none = {0, 0};

/* Worker i serves stage i modulo `stages` of pipeline i / `stages`. */
static void begin(struct fixture *f, enum skep_pipeline pipeline, uint32_t workers, uint32_t stages, uint32_t index)
{
	fixture_init(f, workers, stages, index);
	f->plan.pipeline = pipeline;
	f->plan.wiring = SKEP_WIRING_FIXED;
	f->plan.microbatches = 3 * workers / stages;
	f->plan.in_flight = skep_plan_held(&f->plan, 0);
	fixture_make(f, index); /* it was made for a swarm */
	fixture_start(f);
}

/* The directory of 1F1B in two stages: the last `last` workers serve the second one. */
static void begin_uneven(struct fixture *f, uint32_t workers, uint32_t last, uint32_t microbatches)
{
	fixture_init(f, workers, 2, workers);
	for (uint32_t i = 0; i < workers; i++)
		f->first_stage_of[i] = i + last >= workers;
	f->plan.pipeline = SKEP_PIPELINE_1F1B;
	f->plan.wiring = SKEP_WIRING_FIXED;
	f->plan.microbatches = microbatches;
	f->plan.in_flight = skep_plan_held(&f->plan, 0);
	f->plan.liveness.wait_for_join_ns = 3 * SECOND_NS;
	fixture_make(f, workers);
	fixture_start(f);
}

/* ---- the plan ------------------------------------------------------------------------------------------------------ */

static void test_places(void **state)
{
	(void)state;
	static const uint32_t stage_of[] = {2, 0, 1, 1, 0, 2};
	struct skep_plan plan = {.workers = 6, .stages = 3, .microbatches = 10, .first_stage_of = stage_of};
	plan.pipeline = SKEP_PIPELINE_1F1B;
	assert_int_equal(skep_plan_pipelines(&plan), 2);
	assert_int_equal(skep_plan_share(&plan, 0), 5);
	const uint32_t pipeline_of[] = {0, 0, 0, 1, 1, 1};
	for (uint32_t i = 0; i < 6; i++) {
		assert_int_equal(skep_plan_pipeline_of(&plan, i), pipeline_of[i]);
		assert_int_equal(skep_plan_place(&plan, pipeline_of[i], stage_of[i]), i);
	}
	assert_int_equal(skep_plan_place(&plan, 2, 0), 1); /* as 2 mod 2 says */
	assert_int_equal(skep_plan_place(&plan, 0, 3), SKEP_NO_INDEX);
}

/* PipeDream's 15-1: fifteen pipelines, and the workers behind one of the first stage are one for each, rounded up. */
static void test_uneven_places(void **state)
{
	(void)state;
	uint32_t stage_of[16] = {0};
	stage_of[3] = 1;
	struct skep_plan plan = {.workers = 16, .stages = 2, .microbatches = 60, .first_stage_of = stage_of};
	plan.pipeline = SKEP_PIPELINE_1F1B;
	assert_true(skep_plan_uneven(&plan));
	assert_int_equal(skep_plan_pipelines(&plan), 15);
	assert_int_equal(skep_plan_share(&plan, 0), 4);
	assert_int_equal(skep_plan_share(&plan, 1), 60);
	assert_int_equal(skep_plan_held(&plan, 0), 2);
	assert_int_equal(skep_plan_held(&plan, 1), 1);
	for (uint32_t pipeline = 0; pipeline < 15; pipeline++) {
		assert_int_equal(skep_plan_place(&plan, pipeline, 0), pipeline < 3 ? pipeline : pipeline + 1);
		assert_int_equal(skep_plan_place(&plan, pipeline, 1), 3);
	}
	const uint32_t replicas[] = {4, 6, 10};
	assert_int_equal(skep_replicas_pipelines(replicas, 3), 60);
	const uint32_t lacking[] = {4, 0}, many[] = {65521, 65519, 65497}; /* primes */
	assert_int_equal(skep_replicas_pipelines(lacking, 2), 0);
	assert_int_equal(skep_replicas_pipelines(many, 3), SKEP_PIPELINES_MAX);
}

/* By trying all pipelines. */
static void test_joined(void **state)
{
	(void)state;
	for (uint32_t a = 1; a <= 6; a++)
		for (uint32_t b = 1; b <= 6; b++)
			for (uint32_t i = 0; i < a * b; i++) {
				bool joined = false;
				for (uint32_t p = 0; p < a * b; p++)
					joined = joined || (p % a == i % a && p % b == i / a);
				assert_int_equal(skep_pipeline_joins(i % a, a, i / a, b), joined);
			}
}

static void test_held(void **state)
{
	(void)state;
	static const uint32_t stage_of[] = {0, 1, 2};
	struct skep_plan plan = {.workers = 3, .stages = 3, .microbatches = 2, .first_stage_of = stage_of};
	assert_int_equal(skep_plan_held(&plan, 0), 0);
	for (uint32_t stage = 0; stage < 3; stage++) {
		plan.pipeline = SKEP_PIPELINE_GPIPE;
		plan.microbatches = 9;
		assert_int_equal(skep_plan_held(&plan, stage), 9);
		plan.pipeline = SKEP_PIPELINE_1F1B;
		assert_int_equal(skep_plan_held(&plan, stage), 3 - stage);
		plan.microbatches = 2; /* and not more than there are */
		assert_int_equal(skep_plan_held(&plan, stage), stage == 2 ? 1 : 2);
	}
}

/* ---- a worker ------------------------------------------------------------------------------------------------------- */

static void bring(struct fixture *f, uint32_t from, uint32_t to, uint32_t microbatch)
{
	struct skep_message message = fixture_message(SKEP_MESSAGE_FORWARD, from, to, 0);
	message.microbatch = microbatch;
	message.payload = fixture_buf(f);
	fixture_deliver(f, message);
}

/* The operation that is under way ends; what comes next is in `out`. */
static void pass(struct fixture *f, struct skep_op op, bool last)
{
	bool forward = op.kind == SKEP_OP_FORWARD;
	fixture_done(f, op, forward && last ? none : fixture_buf(f), forward ? fixture_buf(f) : none);
}

static struct skep_op ran(struct fixture *f, enum skep_op_kind kind, uint32_t microbatch)
{
	const struct skep_op *op = fixture_ran(f, kind);
	assert_non_null(op);
	assert_int_equal(op->microbatch, microbatch);
	return *op;
}

static void test_the_last_stage_waits_for_its_share(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, SKEP_PIPELINE_GPIPE, 4, 2, 1);
	for (uint32_t m = 0; m < 3; m++) {
		bring(&f, 0, 1, m);
		struct skep_op op = ran(&f, SKEP_OP_FORWARD, m);
		pass(&f, op, true);
		assert_int_equal(fixture_ran(&f, SKEP_OP_BACKWARD) != NULL, m == 2);
	}
	ran(&f, SKEP_OP_BACKWARD, 0);
	fixture_finish(&f);
}

static void test_turn_ends_the_wait(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, SKEP_PIPELINE_GPIPE, 4, 2, 1);
	bring(&f, 0, 1, 0);
	pass(&f, ran(&f, SKEP_OP_FORWARD, 0), true);
	assert_null(fixture_ran(&f, SKEP_OP_BACKWARD));
	fixture_deliver(&f, fixture_message(SKEP_MESSAGE_DRAIN, 4, 1, 0));
	struct skep_op op = ran(&f, SKEP_OP_BACKWARD, 0);
	bring(&f, 0, 1, 1); /* what comes after all goes forwards first */
	pass(&f, op, true);
	ran(&f, SKEP_OP_FORWARD, 1);
	fixture_finish(&f);
}

/* Stage 1 of 3: two at most. The third waits until one has gone backwards, and then comes before the other's gradient. */
static void test_1f1b_keeps_its_bound_and_alternates(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, SKEP_PIPELINE_1F1B, 3, 3, 1);
	for (uint32_t m = 0; m < 2; m++) {
		bring(&f, 0, 1, m);
		pass(&f, ran(&f, SKEP_OP_FORWARD, m), false);
		assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_FORWARD)->to.index, 2);
	}
	bring(&f, 0, 1, 2);
	assert_null(fixture_ran(&f, SKEP_OP_FORWARD));
	struct skep_op op = {0};
	for (uint32_t m = 0; m < 2; m++) {
		struct skep_message message = fixture_message(SKEP_MESSAGE_BACKWARD, 2, 1, 0);
		message.microbatch = m;
		message.payload = fixture_buf(&f);
		fixture_deliver(&f, message);
		if (m == 0)
			op = ran(&f, SKEP_OP_BACKWARD, 0);
	}
	pass(&f, op, false);
	pass(&f, ran(&f, SKEP_OP_FORWARD, 2), false);
	ran(&f, SKEP_OP_BACKWARD, 1);
	fixture_finish(&f);
}

static void test_who_has_no_partner_gives_up(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, SKEP_PIPELINE_GPIPE, 6, 3, 1);
	struct skep_message gone = fixture_message(SKEP_MESSAGE_PEER, 6, 1, 0);
	gone.stage = 2;
	gone.u.peer.who = (struct skep_peer){2, 1}; /* its partner; worker 5 serves the same stage and is no use */
	fixture_deliver(&f, gone);
	bring(&f, 0, 1, 0);
	pass(&f, ran(&f, SKEP_OP_FORWARD, 0), false);
	assert_null(fixture_sent(&f, SKEP_MESSAGE_FORWARD));
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_ABANDON)->to.index, 0);
	struct skep_message back = gone;
	back.u.peer.who.epoch = 2;
	back.u.peer.alive = true;
	fixture_deliver(&f, back);
	bring(&f, 0, 1, 1);
	pass(&f, ran(&f, SKEP_OP_FORWARD, 1), false);
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_FORWARD)->to.epoch, 2);
	fixture_finish(&f);
}

/* ---- the directory: workers 0 and 2 own, 1 and 3 turn round -------------------------------------------------------- */

#define DIRECTORY 4

static void finish(struct fixture *f, uint32_t owner, uint32_t microbatch, bool ok)
{
	struct skep_message message = fixture_message(SKEP_MESSAGE_FINISHED, owner, f->plan.workers, 0);
	message.microbatch = microbatch;
	message.u.finished.ok = ok;
	fixture_deliver(f, message);
}

static void suspect(struct fixture *f, uint32_t worker)
{
	struct skep_event event = {.kind = SKEP_EVENT_SUSPECT};
	event.u.peer = (struct skep_peer){worker, 1};
	fixture_event(f, event);
}

/* A fresh process in the place of a worker, up to READY. */
static void come_back(struct fixture *f, uint32_t worker)
{
	struct skep_message message = fixture_message(SKEP_MESSAGE_JOIN, worker, f->plan.workers, 0);
	message.from.epoch = 0;
	message.u.join.started_ns = 7;
	fixture_deliver(f, message);
	assert_int_equal(fixture_sent(f, SKEP_MESSAGE_ASSIGN)->stage, f->first_stage_of[worker]);
	message = fixture_message(SKEP_MESSAGE_ENTERED, worker, f->plan.workers, 0);
	message.from.epoch = 2;
	fixture_deliver(f, message);
	assert_non_null(fixture_sent(f, SKEP_MESSAGE_ADMIT));
	message.kind = SKEP_MESSAGE_READY;
	fixture_deliver(f, message);
}

static void test_each_pipeline_is_granted_its_share(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, SKEP_PIPELINE_GPIPE, 4, 2, DIRECTORY);
	assert_int_equal(fixture_count_sent(&f, SKEP_MESSAGE_GRANT), 2);
	for (uint32_t i = 0; i < 2; i++) {
		const struct skep_message *grant = &fixture_find(&f, SKEP_ACTION_SEND, SKEP_MESSAGE_GRANT, i)->u.send;
		assert_int_equal(grant->to.index, 2 * i);
		assert_int_equal(grant->u.grant.count, 3);
	}
	assert_null(fixture_sent(&f, SKEP_MESSAGE_DRAIN));
	finish(&f, 0, 0, true); /* the faster one gets no more than its share */
	assert_null(fixture_sent(&f, SKEP_MESSAGE_GRANT));
	finish(&f, 0, 1, false);
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_DRAIN)->to.index, 1);
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_GRANT)->to.index, 0);
	finish(&f, 0, 2, false); /* once is enough */
	assert_null(fixture_sent(&f, SKEP_MESSAGE_DRAIN));
	fixture_finish(&f);
}

static void test_a_broken_pipeline_is_granted_nothing(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, SKEP_PIPELINE_GPIPE, 4, 2, DIRECTORY);
	suspect(&f, 1);
	assert_int_equal(fixture_count_sent(&f, SKEP_MESSAGE_PEER), 2); /* itself, and its partner 0 alone */
	for (uint32_t m = 0; m < 3; m++) {
		finish(&f, 0, m, false);
		assert_null(fixture_sent(&f, SKEP_MESSAGE_GRANT)); /* 2 holds its share already */
	}
	finish(&f, 2, 3, true);
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_GRANT)->to.index, 2);
	come_back(&f, 1); /* at once, and it has not seen what passed before */
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_DRAIN)->to.index, 1);
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_DRAIN)->to.epoch, 2);
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_GRANT)->to.index, 0);
	fixture_finish(&f);
}

/* Of each pipeline one, of different stages: no stage is empty, and no worker can work. */
static void test_when_all_are_broken_the_run_waits_and_fails(void **state)
{
	(void)state;
	for (int returns = 0; returns < 2; returns++) {
		struct fixture f;
		begin(&f, SKEP_PIPELINE_1F1B, 4, 2, DIRECTORY);
		f.plan.liveness.wait_for_join_ns = 3 * SECOND_NS;
		suspect(&f, 1);
		suspect(&f, 2);
		assert_null(fixture_noted(&f, SKEP_NOTE_STAGE_EMPTY));
		for (uint32_t s = 1; s <= 3; s++) {
			fixture_timer(&f, s * SECOND_NS);
			assert_null(fixture_noted(&f, SKEP_NOTE_STOPPED));
			for (uint32_t w = 0; w < 4; w += 3)
				fixture_deliver(&f, fixture_message(SKEP_MESSAGE_HEARTBEAT, w, DIRECTORY, 0));
		}
		if (returns)
			come_back(&f, 2);
		fixture_timer(&f, 4 * SECOND_NS);
		assert_int_equal(fixture_noted(&f, SKEP_NOTE_STOPPED) != NULL, !returns);
		if (!returns) {
			assert_int_equal(fixture_noted(&f, SKEP_NOTE_STOPPED)->value, 0);
			assert_int_equal(fixture_noted(&f, SKEP_NOTE_STOPPED)->stage, 1); /* of worker 1 */
		}
		fixture_finish(&f);
	}
}

/* Four workers and two, so four pipelines. What is left of them is one of pipelines 1 and 3, and one of 0 and 2: none is whole
 * until worker 5 is back, who is in pipelines 1 and 3, and holds its state while the round is reduced. */
static void test_a_pipeline_that_shares_a_worker_will_be_whole(void **state)
{
	(void)state;
	for (int returns = 0; returns < 2; returns++) {
		struct fixture f;
		begin_uneven(&f, 6, 2, 4);
		for (uint32_t p = 0; p < 4; p++)
			finish(&f, p, p, true);
		assert_int_equal(fixture_count_sent(&f, SKEP_MESSAGE_REDUCE), 6);
		for (uint32_t w = 0; w < 6; w++)
			if (w != 3 && w != 4)
				suspect(&f, w);
		if (returns)
			come_back(&f, 5);
		for (uint32_t s = 1; s <= 4; s++) {
			assert_null(fixture_noted(&f, SKEP_NOTE_STOPPED));
			fixture_deliver(&f, fixture_message(SKEP_MESSAGE_HEARTBEAT, 3, 6, 0));
			fixture_deliver(&f, fixture_message(SKEP_MESSAGE_HEARTBEAT, 4, 6, 0));
			fixture_timer(&f, s * SECOND_NS);
		}
		assert_int_equal(fixture_noted(&f, SKEP_NOTE_STOPPED) != NULL, !returns);
		fixture_finish(&f);
	}
}

/* Where stages are uneven and a pipeline is broken, each microbatch is granted by a message of its own: no more of them at once
 * than one step has room for, which is one for each worker and 1024. */
static void test_grants_one_by_one_are_bounded(void **state)
{
	(void)state;
	struct fixture f;
	const uint32_t share = 4000;
	begin_uneven(&f, 3, 1, 2 * share);
	assert_int_equal(fixture_count_sent(&f, SKEP_MESSAGE_GRANT), 2);
	for (uint32_t owner = 0; owner < 2; owner++)
		for (uint32_t i = 0; i < share; i++)
			finish(&f, owner, owner * share + i, true);
	assert_int_equal(fixture_count_sent(&f, SKEP_MESSAGE_REDUCE), 3);
	struct skep_message tally = fixture_message(SKEP_MESSAGE_TALLY, 2, 3, 0);
	tally.attempt = fixture_sent(&f, SKEP_MESSAGE_REDUCE)->attempt;
	fixture_deliver(&f, tally);
	suspect(&f, 0); /* the first stage alone sums anew */
	assert_int_equal(fixture_count_sent(&f, SKEP_MESSAGE_REDUCE), 1);
	tally.from.index = 1;
	tally.attempt = fixture_sent(&f, SKEP_MESSAGE_REDUCE)->attempt;
	fixture_deliver(&f, tally);
	assert_int_equal(fixture_noted(&f, SKEP_NOTE_ROUND_OPENED)->round, 1);
	assert_int_equal(fixture_count_sent(&f, SKEP_MESSAGE_GRANT), 3 + 1024);
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_GRANT)->u.grant.count, 1);
	fixture_finish(&f);
}

/* ---- a scenario ----------------------------------------------------------------------------------------------------- */

static const char *const baseline = "scenarios/baselines/1f1b.yaml";

static bool reads(const char *const *set, uint32_t sets, struct skep_scenario *ret, struct skep_diag *diag)
{
	struct skep_scenario_options options = {.set = set, .sets = sets};
	*diag = (struct skep_diag){0};
	return skep_scenario_read(baseline, &options, ret, diag);
}

static void test_a_scenario_makes_a_plan(void **state)
{
	(void)state;
	struct skep_scenario s;
	struct skep_diag diag;
	static const char *const gpipe[] = {
		"schedule.pipeline=gpipe", "schedule.wiring=fixed", "schedule.routing=peer"};
	assert_true(reads(NULL, 0, &s, &diag));
	double held_bytes = s.memory[s.plan.stages + 3].activations; /* on the second kind of GPU */
	assert_int_equal(s.plan.pipeline, SKEP_PIPELINE_1F1B);
	assert_int_equal(s.plan.wiring, SKEP_WIRING_FIXED);
	assert_int_equal(s.plan.in_flight, 4);
	skep_scenario_finish(&s);
	assert_true(reads(gpipe, 3, &s, &diag));
	assert_int_equal(s.plan.pipeline, SKEP_PIPELINE_GPIPE);
	assert_int_equal(s.plan.in_flight, 16);
	assert_true(
		held_bytes > 0 && s.memory[s.plan.stages + 3].activations > 15 * held_bytes); /* 16 instead of one */
	skep_scenario_finish(&s);
}

#define STREAM "schedule.pipeline=pipedream", "schedule.global_batch=128"

static void test_what_is_refused(void **state)
{
	(void)state;
	static const struct {
		const char *set[3], *answer;
	} cases[] = {
		{{"schedule.pipeline=zigzag"},
			"expected one of: swarm, gpipe, 1f1b, interleaved, pipedream, not `zigzag`"},
		{{"schedule.pipeline=pipedream"}, "one of each of the 2 pipelines: 128 samples, not 2048"},
		{{STREAM, "schedule.on_loss=rerun"}, "nothing can be run again"},
		{{STREAM, "sync.collective=tree"}, "leave this out or take `ring`"},
		{{STREAM, "sync.overlap=true"}, "goes with `pipeline: gpipe` and `1f1b`"},
		{{STREAM, "sync.delayed=true"}, "not with `pipeline: pipedream`, which never waits for a step"},
		{{STREAM, "train.optimizer.offload=optimizer"}, "the versions that are kept lie on the device"},
		{{STREAM, "schedule.in_flight=3"}, "schedule.in_flight: not with `pipeline: pipedream`"},
		{{"schedule.wiring=uniform"}, "schedule.wiring: a worker of a fixed pipeline has one partner"},
		{{"schedule.pipeline=swarm", "schedule.wiring=fixed"},
			"`fixed` comes with `pipeline: gpipe`, `1f1b`, `interleaved` and `pipedream`"},
		{{"schedule.model_chunks=2"},
			"schedule.model_chunks: comes with `pipeline: interleaved` alone; with `1f1b` a "
			"worker has one piece"},
		{{"schedule.routing=trainer"}, "schedule.routing: in a fixed pipeline"},
		{{"schedule.reissue_timeout=1 s"}, "schedule.reissue_timeout: not with `pipeline: 1f1b`"},
		{{"schedule.joins=needed"}, "schedule.joins: not with `pipeline: 1f1b`: a newcomer returns"},
		{{"schedule.rebalance={period: 1 s}"}, "schedule.rebalance: not with"},
		{{"schedule.in_flight=3"}, "schedule.in_flight: not with `pipeline: 1f1b`: it follows"},
		{{"sync.delayed=true"}, "sync.delayed: not with `pipeline: 1f1b`"},
		{{"schedule.global_batch=2112"},
			"2112 samples are not the same number of microbatches for each of the 2 "
			"pipelines; the nearest are 2048 and 2176"},
		{{"schedule.global_batch=64"}, "for each of the 2 pipelines; the nearest is 128"},
		{{"schedule.global_batch=8194", "schedule.microbatch=1"},
			"4097 microbatches for each pipeline, at most 4096"},
		{{"schedule.pipeline=gpipe", "model.stages=3"},
			"stage 0 has 3 workers and stage 2 has 2; take as many machines as make equal stages"},
		{{"schedule.pipeline=gpipe",
			 "cluster.allocation={method: explicit, stage_of: [0, 1, 2, 3, 0, 1, 2, -1]}"},
			"stage 0 has 2 workers and stage 3 has 1"},
		{{"model.stages=3"},
			"each of the 6 pipelines that stages of 3, 3, 2 workers make; the nearest are 1920 and 2304"},
		{{"cluster.allocation={method: explicit, stage_of: [0, 1, 2, 3, 0, 1, 2, -1]}"},
			"1f1b has no place for 1 worker that is a spare"},
		{{"cluster.allocation={method: explicit, stage_of: [0, 1, 2, 3, -1, -1, -1, -1]}"},
			"1f1b has no place for 4 workers that are spares"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct skep_scenario s;
		struct skep_diag diag;
		assert_false(reads(cases[i].set, 1 + (cases[i].set[1] != NULL) + (cases[i].set[2] != NULL), &s, &diag));
		if (!strstr(diag.message, cases[i].answer))
			fail_msg("%s: %s", cases[i].set[0], diag.message);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_uneven_places),
		cmocka_unit_test(test_joined),
		cmocka_unit_test(test_held),
		cmocka_unit_test(test_the_last_stage_waits_for_its_share),
		cmocka_unit_test(test_turn_ends_the_wait),
		cmocka_unit_test(test_1f1b_keeps_its_bound_and_alternates),
		cmocka_unit_test(test_who_has_no_partner_gives_up),
		cmocka_unit_test(test_each_pipeline_is_granted_its_share),
		cmocka_unit_test(test_a_broken_pipeline_is_granted_nothing),
		cmocka_unit_test(test_when_all_are_broken_the_run_waits_and_fails),
		cmocka_unit_test(test_a_pipeline_that_shares_a_worker_will_be_whole),
		cmocka_unit_test(test_grants_one_by_one_are_bounded),
		cmocka_unit_test(test_a_scenario_makes_a_plan),
		cmocka_unit_test(test_what_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
