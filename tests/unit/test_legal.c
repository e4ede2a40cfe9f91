/* SPDX-License-Identifier: Apache-2.0
 *
 * test_legal.c - what comes from outside and what may be handed to a machine: each rule of core/legal.c with the value that it
 * just allows and the one that it just refuses.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/record.h"
#include "core/scale/policy.h"
#include "core/skep.h"

enum { WORKERS = 4, STAGES = 2 };

static struct skep_stage_plan stage[STAGES] = {
	{.parameters = 100, .activation_bytes = 64, .state_bytes = 1200}, {.parameters = 100, .state_bytes = 1200}};
static uint32_t first_stage_of[WORKERS] = {0, 0, 1, 1};

static struct skep_plan plan(void)
{
	return (struct skep_plan){.workers = WORKERS,
		.stages = STAGES,
		.samples = 4,
		.microbatches = 8,
		.in_flight = 2,
		.rounds = 3,
		.liveness.heartbeat_ns = 1000,
		.liveness.fence_after_ns = 5000,
		.until.target_loss_nano = INT64_MIN,
		.stage = stage,
		.first_stage_of = first_stage_of};
}

/* From the directory to worker 1, from worker 1 to the directory, or between two workers. */
static struct skep_message message(uint8_t kind, uint32_t from, uint32_t to)
{
	return (struct skep_message){.kind = kind, .from = {from, 1}, .to = {to, 1}};
}

#define LEGAL(m) assert_true(skep_message_legal(&p, &(m)))
#define REFUSED(m) assert_false(skep_message_legal(&p, &(m)))

static void test_who_says_what_to_whom(void **state)
{
	(void)state;
	const struct skep_plan p = plan();
	struct skep_message m = message(SKEP_MESSAGE_HEARTBEAT, 1, WORKERS);
	LEGAL(m);
	m.to.index = 2; /* a report to a worker */
	REFUSED(m);
	m = message(SKEP_MESSAGE_HEARTBEAT, WORKERS, WORKERS);
	REFUSED(m);
	m = message(SKEP_MESSAGE_STOP, WORKERS, 1);
	LEGAL(m);
	m.from.index = 0; /* an order by a worker */
	REFUSED(m);
	m = message(SKEP_MESSAGE_STOP, WORKERS, WORKERS);
	REFUSED(m);
	m = message(SKEP_MESSAGE_HEARTBEAT, WORKERS + 1, WORKERS);
	REFUSED(m);
	m = message(0, 1, WORKERS);
	REFUSED(m);
	m.kind = SKEP_MESSAGE_KINDS;
	REFUSED(m);
	m = message(SKEP_MESSAGE_HEARTBEAT, 1, WORKERS);
	m.round = 1; /* a field that the kind does not use */
	REFUSED(m);
	m.round = 0;
	m.payload_bytes = 1;
	REFUSED(m);
}

static void test_grants(void **state)
{
	(void)state;
	const struct skep_plan p = plan();
	const uint32_t numbers = skep_plan_numbers(&p), most = skep_plan_in_flight_most(&p);
	struct skep_message m = message(SKEP_MESSAGE_GRANT, WORKERS, 1);
	m.span = (struct skep_span){0, STAGES - 1};
	m.u.grant.count = 1;
	m.u.grant.in_flight = most;
	LEGAL(m);
	m.microbatch = numbers - 1;
	LEGAL(m);
	m.microbatch = numbers;
	REFUSED(m);
	m.microbatch = numbers - 2;
	m.u.grant.count = 3;
	REFUSED(m);
	m.microbatch = 0;
	m.u.grant.count = numbers;
	LEGAL(m);
	m.u.grant.count = 0;
	REFUSED(m);
	m.u.grant.count = 1;
	m.u.grant.in_flight = most + 1;
	REFUSED(m);
	m.u.grant.in_flight = 0;
	REFUSED(m);
}

static void test_reductions(void **state)
{
	(void)state;
	struct skep_plan p = plan();
	struct skep_message m = message(SKEP_MESSAGE_REDUCE, WORKERS, 1);
	m.attempt = 1;
	m.u.reduce.size = WORKERS;
	m.u.reduce.rank = WORKERS - 1;
	LEGAL(m);
	m.u.reduce.discard = true; /* a sum, and nothing to sum */
	REFUSED(m);
	m.u.reduce.rank = WORKERS;
	REFUSED(m);
	m.u.reduce.discard = false;
	REFUSED(m);
	m.u.reduce.rank = 0;
	m.u.reduce.size = WORKERS + 1;
	REFUSED(m);
	m.u.reduce.size = 0;
	LEGAL(m);
	m.u.reduce.discard = true;
	REFUSED(m);
	p.on_loss = SKEP_ON_LOSS_VOID;
	LEGAL(m);
	m.stage = STAGES;
	REFUSED(m);

	m = message(SKEP_MESSAGE_ROSTER, WORKERS, 1);
	m.u.roster.size = WORKERS;
	m.u.roster.first = WORKERS - 1;
	LEGAL(m);
	m.u.roster.first = WORKERS;
	REFUSED(m);
	m.u.roster.first = 0;
	m.u.roster.size = WORKERS + 1;
	REFUSED(m);

	m = message(SKEP_MESSAGE_COMMIT, WORKERS, 1);
	LEGAL(m);
	m.u.commit.tied = 1;
	REFUSED(m);
	m = message(SKEP_MESSAGE_NORM, 1, WORKERS);
	REFUSED(m); /* nothing is clipped */
	p.clip = true;
	m.u.norm.term = SKEP_NORM_SQUARES;
	LEGAL(m);
	m.u.norm.term = SKEP_NORM_SQUARES + 1;
	REFUSED(m);
}

static void test_tallies(void **state)
{
	(void)state;
	const struct skep_plan p = plan();
	struct skep_message m = message(SKEP_MESSAGE_TALLY, 1, WORKERS);
	LEGAL(m);
	m.u.tally.count = m.u.tally.used = 2;
	m.u.tally.offset[1] = 1;
	LEGAL(m);
	m.u.tally.offset[0] = 1; /* twice the same */
	REFUSED(m);
	m.u.tally.offset[0] = 0;
	m.u.tally.count = 1; /* more than there are */
	REFUSED(m);
	m.u.tally.used = SKEP_TALLY_PART + 1;
	m.u.tally.count = SKEP_TALLY_PART + 1;
	REFUSED(m);
}

static void test_states_and_peers(void **state)
{
	(void)state;
	const struct skep_plan p = plan();
	struct skep_message m = message(SKEP_MESSAGE_FETCH, 1, 2);
	m.u.state.chunk = skep_state_chunks(&p, 0) - 1;
	LEGAL(m);
	m.u.state.chunk++;
	REFUSED(m);
	m = message(SKEP_MESSAGE_PEER, WORKERS, 1);
	m.u.peer.who.index = WORKERS - 1;
	LEGAL(m);
	m.u.peer.who.index = WORKERS;
	REFUSED(m);
	m = message(SKEP_MESSAGE_ADMIT, WORKERS, 1);
	m.admission = 1;
	m.u.admit.source.index = WORKERS - 1;
	LEGAL(m);
	m.u.admit.source.index = SKEP_NO_INDEX;
	LEGAL(m);
	m.u.admit.source.index = WORKERS;
	REFUSED(m);
	m.u.admit.source.index = 0;
	m.admission = 0;
	REFUSED(m);
	m = message(SKEP_MESSAGE_FAULT, 1, WORKERS);
	REFUSED(m);
	m.u.fault.kind = SKEP_FAULTS - 1;
	LEGAL(m);
	m.u.fault.kind = SKEP_FAULTS;
	REFUSED(m);
}

/* It is told of traffic where money ends the run. */
static void test_egress(void **state)
{
	struct skep_plan ends = plan();
	(void)state;
	struct skep_event event = {.kind = SKEP_EVENT_EGRESS, .u.egress_microusd = 5};
	assert_false(skep_event_legal(&ends, &event));
	ends.until.budget_microusd = 1;
	assert_true(skep_event_legal(&ends, &event));
}

static void test_operations_and_events(void **state)
{
	(void)state;
	const struct skep_plan p = plan();
	struct skep_op op = {.kind = SKEP_OP_FORWARD, .lane = SKEP_LANE_COMPUTE};
	assert_true(skep_op_legal(&p, &op));
	op.number = skep_plan_numbers(&p) - 1;
	assert_true(skep_op_legal(&p, &op));
	op.number++;
	assert_false(skep_op_legal(&p, &op));
	op.number = 0;
	op.stage = 1; /* without anything to work on */
	assert_false(skep_op_legal(&p, &op));
	op.in = (struct skep_buf){1, 1};
	assert_true(skep_op_legal(&p, &op));
	op.stage = STAGES;
	assert_false(skep_op_legal(&p, &op));
	op = (struct skep_op){.kind = SKEP_OP_ADD, .lane = SKEP_LANE_REDUCE, .in = {1, 1}, .count = 100};
	op.members = 2;
	assert_true(skep_op_legal(&p, &op));
	op.first = 1; /* one element too many */
	assert_false(skep_op_legal(&p, &op));
	op.first = 0;
	op.members = 1;
	assert_false(skep_op_legal(&p, &op));
	op.members = 2;
	op.in = (struct skep_buf){0, 0};
	assert_false(skep_op_legal(&p, &op));

	op = (struct skep_op){.kind = SKEP_OP_RESTORE, .lane = SKEP_LANE_COMPUTE, .stage = 1};
	assert_true(skep_op_legal(&p, &op));
	op.size = 1;
	assert_false(skep_op_legal(&p, &op));
	op.size = 0;
	op.candidate = 1; /* of which the plan has none */
	assert_false(skep_op_legal(&p, &op));

	op = (struct skep_op){.kind = SKEP_OP_ALLREDUCE, .lane = SKEP_LANE_REDUCE, .count = 100, .members = 2};
	op.rank = 1;
	op.receiver = WORKERS - 1;
	assert_true(skep_op_legal(&p, &op));
	op.receiver = WORKERS;
	assert_false(skep_op_legal(&p, &op));
	op.receiver = 0;
	op.rank = 2;
	assert_false(skep_op_legal(&p, &op));

	struct skep_event event = {.kind = SKEP_EVENT_SUSPECT, .u.peer = {WORKERS, 1}}; /* the directory */
	assert_true(skep_event_legal(&p, &event));
	event.u.peer.index = WORKERS + 1;
	assert_false(skep_event_legal(&p, &event));
	event = (struct skep_event){.kind = SKEP_EVENT_PREEMPT_NOTICE};
	assert_true(skep_event_legal(&p, &event));
	event.kind = SKEP_EVENT_KINDS;
	assert_false(skep_event_legal(&p, &event));
	event.kind = 0;
	assert_false(skep_event_legal(&p, &event));
	/* The first and the last kind of each list are there, what is before and behind them is not. */
	for (uint32_t kind = 0; kind <= SKEP_MESSAGE_KINDS; kind++) {
		event = (struct skep_event){.kind = SKEP_EVENT_SEND_FAILED};
		event.u.message.kind = (uint8_t)kind;
		assert_int_equal(skep_event_legal(&p, &event), kind > 0 && kind < SKEP_MESSAGE_KINDS);
	}
	for (uint32_t kind = 0; kind <= SKEP_OP_KINDS; kind++) {
		event = (struct skep_event){.kind = SKEP_EVENT_OP_DONE};
		event.u.done.op.kind = (uint8_t)kind;
		assert_int_equal(skep_event_legal(&p, &event), kind > 0 && kind < SKEP_OP_KINDS);
	}
}

/* With periodic sync the last BACKWARD of a share may write the pseudo-gradient part by part, and then alone. */
static void test_a_backward_in_parts(void **state)
{
	(void)state;
	struct skep_plan p = plan();
	p.inner.steps = 2;
	struct skep_op op = {.kind = SKEP_OP_BACKWARD, .lane = SKEP_LANE_COMPUTE, .parts = 2, .count = 50};
	assert_true(skep_op_legal(&p, &op));
	op.inner = 1;
	op.microbatches = 1;
	assert_true(skep_op_legal(&p, &op));
	op.microbatches = 0; /* an inner step of nothing */
	assert_false(skep_op_legal(&p, &op));
	op.microbatches = 1;
	op.part = 1;
	assert_true(skep_op_legal(&p, &op));
	op.part = 2; /* of two */
	assert_false(skep_op_legal(&p, &op));
	op.part = 1;
	op.first = 51; /* to 101, of 100 */
	assert_false(skep_op_legal(&p, &op));
	op.part = 0;
	op.first = 0;
	op.parts = 0;
	op.count = 0;
	assert_false(skep_op_legal(&p, &op));
	op.inner = 0;
	op.microbatches = 0;
	assert_true(skep_op_legal(&p, &op));
	op.parts = 2;
	op.count = 50;
	op.inner = op.microbatches = 1;
	p.inner.steps = 0;
	assert_false(skep_op_legal(&p, &op));
}

/* Where parts are gathered each member packs and unpacks one: its own, which it need not take in, or that of another one. */
static void test_parts_that_are_gathered(void **state)
{
	(void)state;
	struct skep_plan p = plan();
	struct skep_op op = {
		.kind = SKEP_OP_UNPACK_PART, .lane = SKEP_LANE_REDUCE, .members = 2, .member = 1, .count = 50};
	assert_false(skep_op_legal(&p, &op)); /* nothing is gathered */
	p.reduction.gather = true;
	assert_true(skep_op_legal(&p, &op));
	op.member = 2; /* of two */
	assert_false(skep_op_legal(&p, &op));
	op.member = 1;
	op.microbatches = 3;
	assert_true(skep_op_legal(&p, &op));
	op.in = (struct skep_buf){1, 1}; /* its own part, from elsewhere */
	assert_false(skep_op_legal(&p, &op));
	op = (struct skep_op){
		.kind = SKEP_OP_PACK_PART, .lane = SKEP_LANE_REDUCE, .members = 2, .member = 1, .count = 50};
	assert_true(skep_op_legal(&p, &op));
	op.member = 2;
	assert_false(skep_op_legal(&p, &op));
}

static void test_discard_is_of_a_void_round(void **state)
{
	(void)state;
	struct skep_plan p = plan();
	struct skep_op op = {.kind = SKEP_OP_DISCARD, .lane = SKEP_LANE_COMPUTE};
	assert_false(skep_op_legal(&p, &op));
	p.on_loss = SKEP_ON_LOSS_VOID;
	assert_true(skep_op_legal(&p, &op));
	op.number = 1;
	assert_false(skep_op_legal(&p, &op));
	op.number = 0;
	op.index = 1;
	assert_false(skep_op_legal(&p, &op));
	op.index = 0;
	op.size = 1;
	assert_false(skep_op_legal(&p, &op));
}

/* A state is presumed where stages step together, and a step can be made without word of it. */
static void test_presumed_states(void **state)
{
	(void)state;
	struct skep_plan p = plan();
	struct skep_op op = {.kind = SKEP_OP_CHECKPOINT, .lane = SKEP_LANE_COMPUTE, .round = 2};
	assert_true(skep_op_legal(&p, &op));
	op.presumed = true;
	assert_false(skep_op_legal(&p, &op)); /* stages do not step together */
	p.together = true;
	assert_true(skep_op_legal(&p, &op));
	p.sharded = true;
	assert_false(skep_op_legal(&p, &op));
	p.sharded = false;
	for (uint8_t kind = 1; kind < SKEP_OP_KINDS; kind++) {
		op = (struct skep_op){.kind = kind, .lane = SKEP_LANE_COMPUTE, .presumed = true};
		op.lane = skep_op_reduces(kind) ? SKEP_LANE_REDUCE : SKEP_LANE_COMPUTE;
		assert_true(skep_op_legal(&p, &op) == (kind == SKEP_OP_CHECKPOINT));
	}
}

/* A tensor comes from a stage with so many bytes of activations; a gradient has those of the stage before. */
static void test_what_a_message_may_carry(void **state)
{
	(void)state;
	const struct skep_plan p = plan();
	static const struct {
		uint8_t kind;
		uint16_t stage;
		uint64_t bytes;
	} most[] = {{SKEP_MESSAGE_FORWARD, 0, 64}, {SKEP_MESSAGE_OUTPUT, 0, 64}, {SKEP_MESSAGE_INPUT, 0, 64},
		{SKEP_MESSAGE_FORWARD, 1, 0}, {SKEP_MESSAGE_BACKWARD, 0, 0}, {SKEP_MESSAGE_BACKWARD, 1, 64},
		{SKEP_MESSAGE_BACKWARD, STAGES, 0}, {SKEP_MESSAGE_CHUNK, 1, 400 + 4}, {SKEP_MESSAGE_CHUNK, STAGES, 0},
		{SKEP_MESSAGE_STATE, 1, 1200}, {SKEP_MESSAGE_HEARTBEAT, 0, 0}};
	for (uint32_t i = 0; i < sizeof most / sizeof *most; i++) {
		struct skep_message m = message(most[i].kind, 0, 1);
		m.stage = most[i].stage;
		assert_int_equal(skep_message_payload_max(&p, &m), most[i].bytes);
	}
	struct skep_message m = message(SKEP_MESSAGE_STATE, 0, 1);
	m.u.state.chunk = skep_state_chunks(&p, 0);
	assert_int_equal(skep_message_payload_max(&p, &m), 0);
}

/* A tensor goes on from FORWARD, but for that of the last stage, and back from BACKWARD to what is trained before; a part of a
 * BACKWARD brings one to the next part. */
static void test_what_passes_put_out(void **state)
{
	(void)state;
	struct skep_plan p = plan();
	for (uint16_t of = 0; of < STAGES; of++) {
		struct skep_op forward = {.kind = SKEP_OP_FORWARD, .stage = of};
		assert_int_equal(skep_op_puts_out(&p, &forward), of + 1 < STAGES);
		for (p.frozen_vstages = 0; p.frozen_vstages < STAGES; p.frozen_vstages++) {
			struct skep_op backward = {.kind = SKEP_OP_BACKWARD, .stage = of};
			bool back = of > 0 && p.frozen_vstages < of;
			assert_int_equal(skep_op_puts_out(&p, &backward), back);
			backward.parts = 2;
			assert_true(skep_op_puts_out(&p, &backward));
			backward.part = 1;
			assert_int_equal(skep_op_puts_out(&p, &backward), back);
		}
	}
}

static void test_notes(void **state)
{
	(void)state;
	const struct skep_plan p = plan();
	struct skep_note n = {.kind = SKEP_NOTE_JOINED, .stage = STAGES - 1, .peer = {WORKERS - 1, 1}};
	assert_true(skep_note_legal(&p, &n));
	n.stage = STAGES;
	assert_false(skep_note_legal(&p, &n));
	n.stage = 0;
	n.peer.index = WORKERS;
	assert_false(skep_note_legal(&p, &n));
	n.peer.index = 0;
	n.value = 1;
	assert_false(skep_note_legal(&p, &n));
	n = (struct skep_note){.kind = SKEP_NOTE_STOPPED, .value = 1};
	assert_true(skep_note_legal(&p, &n));
	n.value = 2;
	assert_false(skep_note_legal(&p, &n));
	n = (struct skep_note){.kind = SKEP_NOTE_SCALED, .there = 2};
	assert_false(skep_note_legal(&p, &n)); /* it asks for no machines */
	const struct skep_scale scale = {.kinds = 2};
	struct skep_plan asks = plan();
	asks.scale = &scale;
	for (n.stage = 0; n.stage < 4; n.stage++)
		assert_int_equal(skep_note_legal(&asks, &n), n.stage < 2);
	n.stage = 1;
	n.there = -1;
	assert_false(skep_note_legal(&asks, &n));
	n = (struct skep_note){.kind = SKEP_NOTE_KINDS};
	assert_false(skep_note_legal(&p, &n));
	n = (struct skep_note){.kind = SKEP_NOTE_LOSS, .candidate = 1};
	assert_false(skep_note_legal(&p, &n));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_says_what_to_whom),
		cmocka_unit_test(test_grants),
		cmocka_unit_test(test_reductions),
		cmocka_unit_test(test_tallies),
		cmocka_unit_test(test_states_and_peers),
		cmocka_unit_test(test_operations_and_events),
		cmocka_unit_test(test_egress),
		cmocka_unit_test(test_a_backward_in_parts),
		cmocka_unit_test(test_parts_that_are_gathered),
		cmocka_unit_test(test_discard_is_of_a_void_round),
		cmocka_unit_test(test_presumed_states),
		cmocka_unit_test(test_what_a_message_may_carry),
		cmocka_unit_test(test_what_passes_put_out),
		cmocka_unit_test(test_notes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
