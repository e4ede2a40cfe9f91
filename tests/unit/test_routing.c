/* SPDX-License-Identifier: Apache-2.0
 *
 * test_routing.c - trainer routing: the machine of an owner and of a worker that is visited, event by event, and what both
 * routings put on the links of a simulated swarm, to the byte.
 *
 * Machines: workers 0..7 in four stages; 0 and 4 own microbatches. Payload handles tell tensors apart.
 */
#include "machine_fixture.h"

#include <stdio.h>
#include <unistd.h>

#include "core/record.h"
#include "scenarios/read/scenario.h"
#include "sim/sim.h"

#define DIRECTORY 8
static const struct skep_buf none = {0, 0};

static void begin(struct fixture *f, uint32_t index)
{
	fixture_init(f, 8, 4, index);
	free(f->node);
	free(f->out.item);
	f->plan.routing = SKEP_ROUTING_TRAINER;
	f->plan.wiring = SKEP_WIRING_THROUGHPUT;
	for (uint32_t stage = 0; stage < 3; stage++)
		f->stage[stage].activation_bytes = 64 + stage;
	f->node =
		skep_node_init(aligned_alloc(16, (skep_node_size(&f->plan, index) + 15) / 16 * 16), &f->plan, index, 1);
	f->out.capacity = skep_actions_limit(&f->plan);
	f->out.item = calloc(f->out.capacity, sizeof *f->out.item);
	fixture_start(f);
}

static struct skep_message tensor(struct fixture *f, enum skep_message_kind kind, uint32_t from, uint16_t stage)
{
	struct skep_message message = fixture_message(kind, from, f->plan.workers, 0);
	message.stage = stage;
	message.to = (struct skep_peer){0, 1};
	message.payload = fixture_buf(f);
	return message;
}

/* The n-th SEND of this kind says that its tensor comes from `stage`, has so many bytes, and is kept or not. */
static struct skep_message sends(
	const struct fixture *f, enum skep_message_kind kind, uint16_t stage, uint64_t bytes, bool keep)
{
	const struct skep_action *action = fixture_find(f, SKEP_ACTION_SEND, kind, 0);
	assert_non_null(action);
	assert_null(fixture_find(f, SKEP_ACTION_SEND, kind, 1));
	assert_int_equal(action->u.send.stage, stage);
	assert_int_equal(action->u.send.payload_bytes, bytes);
	assert_int_equal(action->keep, keep);
	return action->u.send;
}

static void issue(struct fixture *f)
{
	struct skep_message grant = fixture_message(SKEP_MESSAGE_GRANT, DIRECTORY, 0, 0);
	grant.u.grant.count = 1;
	grant.u.grant.in_flight = f->plan.in_flight;
	fixture_deliver(f, grant);
	fixture_done(f, *fixture_ran(f, SKEP_OP_FORWARD), fixture_buf(f), fixture_buf(f));
}

/* Up to the last stage; input[s] is what stage s was sent. */
static void go_forwards(struct fixture *f, struct skep_message input[4])
{
	issue(f);
	for (uint16_t stage = 1; stage < 4; stage++) {
		input[stage] = sends(f, SKEP_MESSAGE_FORWARD, stage - 1, 63u + stage, stage < 3);
		assert_int_equal(input[stage].to.index % 4, stage);
		if (stage < 3) {
			struct skep_message output = tensor(f, SKEP_MESSAGE_OUTPUT, input[stage].to.index, stage);
			fixture_deliver(f, output);
			assert_int_equal(fixture_sent(f, SKEP_MESSAGE_FORWARD)->payload.slot, output.payload.slot);
		}
	}
}

/* The gradient of what went to `stage` is back; returns it. */
static struct skep_message come_back(struct fixture *f, const struct skep_message input[4], uint16_t stage)
{
	struct skep_message gradient = tensor(f, SKEP_MESSAGE_BACKWARD, input[stage].to.index, stage);
	fixture_deliver(f, gradient);
	return gradient;
}

static struct skep_message is_out(uint32_t who, uint16_t stage)
{
	struct skep_message message = fixture_message(SKEP_MESSAGE_PEER, DIRECTORY, 0, 0);
	message.u.peer.who = (struct skep_peer){who, 1};
	message.stage = stage;
	return message;
}

/* ---- the owner ------------------------------------------------------------------------------------------------ */

static void test_an_owner_visits_each_stage_and_comes_back(void **state)
{
	(void)state;
	struct fixture f;
	struct skep_message input[4];
	begin(&f, 0);
	go_forwards(&f, input);
	for (uint16_t stage = 3; stage > 1; stage--) {
		struct skep_message gradient = come_back(&f, input, stage);
		struct skep_message again = sends(&f, SKEP_MESSAGE_INPUT, stage - 2, 62u + stage, false);
		struct skep_message back = sends(&f, SKEP_MESSAGE_BACKWARD, stage, 63u + stage, false);
		assert_int_equal(again.payload.slot, input[stage - 1].payload.slot);
		assert_int_equal(back.payload.slot, gradient.payload.slot);
		assert_int_equal(again.to.index, input[stage - 1].to.index); /* who did its forward pass */
		assert_int_equal(back.to.index, input[stage - 1].to.index);
	}
	struct skep_message gradient = come_back(&f, input, 1);
	struct skep_op op = *fixture_ran(&f, SKEP_OP_BACKWARD);
	assert_int_equal(op.gradient.slot, gradient.payload.slot);
	fixture_done(&f, op, none, none);
	assert_true(fixture_sent(&f, SKEP_MESSAGE_FINISHED)->u.finished.ok);
	fixture_finish(&f);
}

static void test_who_is_gone_before_it_counts_is_replaced(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 0);
	issue(&f);
	struct skep_message first = *fixture_sent(&f, SKEP_MESSAGE_FORWARD);
	fixture_deliver(&f, is_out(first.to.index, 1));
	struct skep_message second = sends(&f, SKEP_MESSAGE_FORWARD, 0, 64, true);
	assert_int_equal(second.to.index, 6 - first.to.index); /* 1 and 5 serve stage 1 */
	assert_int_equal(second.payload.slot, first.payload.slot);
	struct skep_message late = tensor(&f, SKEP_MESSAGE_OUTPUT, first.to.index, 1);
	fixture_deliver(&f, late);
	assert_true(fixture_released(&f, late.payload));
	assert_null(fixture_sent(&f, SKEP_MESSAGE_FORWARD));
	fixture_finish(&f);
}

static void test_who_is_gone_between_its_visits_is_replaced(void **state)
{
	(void)state;
	struct fixture f;
	struct skep_message input[4];
	begin(&f, 0);
	go_forwards(&f, input);
	fixture_deliver(&f, is_out(input[2].to.index, 2));
	assert_int_equal(f.out.count, 0);
	come_back(&f, input, 3);
	struct skep_message again = sends(&f, SKEP_MESSAGE_INPUT, 1, 65, false);
	assert_int_equal(again.to.index, 8 - input[2].to.index); /* 2 and 6 serve stage 2 */
	assert_int_equal(sends(&f, SKEP_MESSAGE_BACKWARD, 3, 66, false).to.index, again.to.index);
	fixture_finish(&f);
}

static void test_who_may_have_counted_is_given_up(void **state)
{
	(void)state;
	for (uint16_t stage = 2; stage < 4;
		stage++) { /* both passes in the last stage, the gradient in the one before */
		struct fixture f;
		struct skep_message input[4];
		begin(&f, 0);
		go_forwards(&f, input);
		if (stage == 2)
			come_back(&f, input, 3);
		fixture_deliver(&f, is_out(input[stage].to.index, stage));
		assert_false(fixture_sent(&f, SKEP_MESSAGE_FINISHED)->u.finished.ok);
		assert_true(fixture_released(&f, input[1].payload)); /* kept for the way back */
		assert_null(fixture_sent(&f, SKEP_MESSAGE_ABANDON));
		assert_null(fixture_find(&f, SKEP_ACTION_RUN, 0, 0));
		fixture_finish(&f);
	}
}

static void test_an_owner_waits_when_none_serves_a_stage(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 0);
	fixture_deliver(&f, is_out(1, 1));
	fixture_deliver(&f, is_out(5, 1));
	issue(&f);
	assert_null(fixture_sent(&f, SKEP_MESSAGE_FORWARD));
	struct skep_message news = is_out(5, 1);
	news.u.peer.who.epoch = 2;
	news.u.peer.alive = true;
	fixture_deliver(&f, news);
	assert_int_equal(sends(&f, SKEP_MESSAGE_FORWARD, 0, 64, true).to.epoch, 2);
	fixture_finish(&f);
}

static void test_a_copy_that_came_back_goes_again_while_it_is_awaited(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 0);
	issue(&f);
	struct skep_event event = {.kind = SKEP_EVENT_SEND_FAILED};
	event.u.message = *fixture_sent(&f, SKEP_MESSAGE_FORWARD);
	event.u.message.payload = fixture_buf(&f);
	fixture_event(&f, event);
	assert_int_equal(sends(&f, SKEP_MESSAGE_FORWARD, 0, 64, false).payload.slot, event.u.message.payload.slot);
	fixture_deliver(&f, tensor(&f, SKEP_MESSAGE_OUTPUT, event.u.message.to.index, 1));
	fixture_event(&f, event); /* the first one had arrived after all */
	assert_null(fixture_sent(&f, SKEP_MESSAGE_FORWARD));
	assert_true(fixture_released(&f, event.u.message.payload));
	fixture_finish(&f);
}

/* ---- who is visited ------------------------------------------------------------------------------------------- */

static struct skep_message visit(struct fixture *f, enum skep_message_kind kind, uint32_t round)
{
	struct skep_message message = tensor(f, kind, 4, kind == SKEP_MESSAGE_BACKWARD ? 2 : 0);
	message.to.index = 1;
	message.round = round;
	return message;
}

static void test_nothing_is_kept_between_two_visits(void **state)
{
	(void)state;
	struct fixture f;
	for (int turned = 0; turned < 2; turned++) {
		begin(&f, 1);
		struct skep_message forward = visit(&f, SKEP_MESSAGE_FORWARD, 0);
		fixture_deliver(&f, forward);
		struct skep_op op = *fixture_ran(&f, SKEP_OP_FORWARD);
		fixture_done(&f, op, fixture_buf(&f), none);
		assert_int_equal(sends(&f, SKEP_MESSAGE_OUTPUT, 1, 65, false).to.index, 4);
		assert_true(fixture_released(&f, op.in));
		struct skep_message part[2] = {visit(&f, SKEP_MESSAGE_INPUT, 0), visit(&f, SKEP_MESSAGE_BACKWARD, 0)};
		fixture_deliver(&f, part[turned]);
		fixture_deliver(&f, part[turned]); /* a duplicate */
		assert_null(fixture_find(&f, SKEP_ACTION_RUN, 0, 0));
		fixture_deliver(&f, part[!turned]);
		op = *fixture_ran(&f, SKEP_OP_BACKWARD);
		assert_int_equal(op.in.slot, part[0].payload.slot);
		assert_int_equal(op.gradient.slot, part[1].payload.slot);
		assert_int_equal(op.stash.slot, 0);
		fixture_done(&f, op, fixture_buf(&f), none);
		assert_non_null(fixture_noted(&f, SKEP_NOTE_COUNTED));
		assert_int_equal(sends(&f, SKEP_MESSAGE_BACKWARD, 1, 64, false).to.index, 4);
		for (int i = 0; i < 2; i++) { /* once counted, not again */
			part[i].payload = fixture_buf(&f);
			fixture_deliver(&f, part[i]);
			assert_true(fixture_released(&f, part[i].payload));
			assert_null(fixture_find(&f, SKEP_ACTION_RUN, 0, 0));
		}
		fixture_finish(&f);
	}
}

/* Another worker did the forward pass, and is gone; this one has not stepped yet. */
static void test_a_gradient_of_the_next_round_waits_for_the_step(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 1);
	fixture_deliver(&f, visit(&f, SKEP_MESSAGE_INPUT, 1));
	fixture_deliver(&f, visit(&f, SKEP_MESSAGE_BACKWARD, 1));
	assert_null(fixture_find(&f, SKEP_ACTION_RUN, 0, 0));
	struct skep_message message = fixture_message(SKEP_MESSAGE_REDUCE, DIRECTORY, 1, 0);
	message.attempt = message.u.reduce.size = 1;
	message.u.reduce.next = (struct skep_peer){1, 1};
	fixture_deliver(&f, message);
	message = fixture_message(SKEP_MESSAGE_COMMIT, DIRECTORY, 1, 0);
	message.attempt = 1;
	fixture_deliver(&f, message);
	fixture_done(&f, *fixture_ran(&f, SKEP_OP_STEP), none, none);
	assert_int_equal(fixture_ran(&f, SKEP_OP_BACKWARD)->round, 1);
	fixture_finish(&f);
}

static void test_work_of_an_owner_that_is_gone_is_dropped(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 1);
	struct skep_message input = visit(&f, SKEP_MESSAGE_INPUT, 0);
	fixture_deliver(&f, input);
	fixture_deliver(&f, is_out(4, 0));
	assert_true(fixture_released(&f, input.payload));
	assert_null(fixture_sent(&f, SKEP_MESSAGE_ABANDON));
	fixture_finish(&f);
}

/* ---- bytes ---------------------------------------------------------------------------------------------------- */

#define STAGES 4u
#define WIDTH 128u /* of models/square-mlp.yaml */
#define SAMPLES 16u

struct traffic {
	const struct skep_scenario *scenario;
	uint64_t in[STAGES], out[STAGES]; /* of the workers of a stage, pipeline alone */
	int64_t loss[8];
	uint64_t lost;
};

static void on_link(void *context, const struct skep_link_use *use)
{
	struct traffic *traffic = context;
	if (use->traffic != SKEP_TRAFFIC_PIPELINE)
		return;
	traffic->out[traffic->scenario->first_stage_of[use->source]] += use->bytes;
	traffic->in[traffic->scenario->first_stage_of[use->destination]] += use->bytes;
}

static void on_note(void *context, skep_time now, struct skep_peer who, const struct skep_note *note)
{
	struct traffic *traffic = context;
	(void)now;
	(void)who;
	if (note->kind == SKEP_NOTE_LOSS && note->round < 8)
		traffic->loss[note->round] = note->value;
	traffic->lost += note->kind == SKEP_NOTE_LOST;
}

static struct traffic simulate(const char *const *set, uint32_t sets)
{
	struct skep_scenario scenario;
	struct skep_diag diag = {0};
	char text[1024] = "";
	struct skep_scenario_options options = {.set = set, .sets = sets};
	if (!skep_scenario_read("scenarios/two-datacentres.yaml", &options, &scenario, &diag))
		skep_diag_print(&diag, text, sizeof text);
	assert_string_equal(text, "");
	struct traffic traffic = {.scenario = &scenario};
	struct skep_recorder recorder = {.context = &traffic, .link = on_link, .note = on_note};
	struct skep_sim_result result;
	assert_true(skep_sim_run(&scenario, &recorder, &result));
	assert_int_equal(result.outcome, SKEP_DONE);
	assert_int_equal(traffic.lost, 0);
	skep_scenario_finish(&scenario);
	return traffic;
}

/* Bytes on the link of one activation-sized tensor: core/codec.h by hand, and a header of 96. */
static uint64_t tensor_bytes(const char *codec)
{
	uint64_t elements = SAMPLES * WIDTH;
	uint64_t payload = codec[0] == 'n'   ? 4 * elements
	                   : codec[0] == 'f' ? 2 * elements
	                                     : elements + 4 * elements / 64;
	return payload + 96;
}

/* With peer routing a stage in the middle receives two tensors and sends two; with trainer routing it receives three. The last
 * stage does both passes in one visit, and receives one and sends one either way. */
static void test_bytes_of_both_routings(void **state)
{
	(void)state;
	static const uint64_t in[2][STAGES] = {{1, 2, 2, 1}, {5, 3, 3, 1}},
			      out[2][STAGES] = {{1, 2, 2, 1}, {7, 2, 2, 1}};
	static const char *const codecs[] = {"none", "fp16", "int8"}, *const arithmetic[] = {"none", "real"};
	for (int c = 0; c < 3; c++)
		for (int m = 0; m < 2; m++)
			for (int trainer = 0; trainer < 2; trainer++) {
				char codec[64], real[64];
				snprintf(codec, sizeof codec, "schedule.compression=%s", codecs[c]);
				snprintf(real, sizeof real, "train.arithmetic=%s", arithmetic[m]);
				const char *set[] = {codec, real, "schedule.microbatch=16", "schedule.global_batch=256",
					"train.until.steps=3", "cluster.compute.type=fp32",
					trainer ? "schedule.routing=trainer" : "schedule.routing=peer"};
				struct traffic traffic = simulate(set, 7);
				uint64_t each = 3 * 16 * tensor_bytes(codecs[c]); /* rounds, microbatches */
				for (uint32_t stage = 0; stage < STAGES; stage++) {
					assert_int_equal(traffic.in[stage], in[trainer][stage] * each);
					assert_int_equal(traffic.out[stage], out[trainer][stage] * each);
				}
			}
}

static const char *const four_text = "name: four\nsource: assumed for this test\ndirectory: here\nsites:\n  here:\n"
				     "    machines: [{count: 4, gpu: v100}]\n"
				     "    inside: {bandwidth: 1 Gbit/s, latency: 1 ms}\n";

/* One worker a stage, one microbatch at a time: the order of all sums is given, so the losses are equal to the bit. */
static void test_the_way_does_not_change_what_is_learned(void **state)
{
	(void)state;
	char path[] = "/tmp/skep-routing-XXXXXX", topology[80];
	int file = mkstemp(path);
	assert_true(file >= 0 && write(file, four_text, strlen(four_text)) == (ssize_t)strlen(four_text));
	close(file);
	snprintf(topology, sizeof topology, "cluster.topology=%s", path);
	for (int codec = 0; codec < 2; codec++) {
		const char *set[] = {"schedule.routing=peer", "schedule.in_flight=1", "train.until.steps=4",
			"schedule.global_batch=256", topology,
			codec ? "schedule.compression=int8" : "schedule.compression=none"};
		struct traffic peer = simulate(set, 6);
		set[0] = "schedule.routing=trainer";
		struct traffic trainer = simulate(set, 6);
		for (int round = 0; round < 4; round++) {
			assert_true(peer.loss[round] > 0);
			assert_int_equal(peer.loss[round], trainer.loss[round]);
		}
	}
	unlink(path);
}

/* An owner keeps what went into every later stage; a stage in the middle has room for one stash, while it does both passes. */
static void test_memory_of_both_routings(void **state)
{
	(void)state;
	static const char *const routing[] = {"schedule.routing=peer", "schedule.routing=trainer"};
	struct skep_scenario s[2];
	for (int trainer = 0; trainer < 2; trainer++) {
		struct skep_diag diag = {0};
		struct skep_scenario_options options = {.set = &routing[trainer], .sets = 1};
		assert_true(skep_scenario_read("scenarios/two-datacentres.yaml", &options, &s[trainer], &diag));
	}
	double boundary = 64 * WIDTH * 4; /* bytes of a microbatch's activations */
	assert_true(s[1].memory_bytes[0] - s[0].memory_bytes[0] == s[0].plan.in_flight * 2 * boundary);
	assert_true(s[1].memory_bytes[3] == s[0].memory_bytes[3]);
	for (int stage = 1; stage < 3; stage++) {
		double stash = 64.0 * (double)s[0].cost[stage].stash_bytes, held = 16; /* twice the mean of 2 * 8 */
		assert_true(s[0].memory_bytes[stage] - s[1].memory_bytes[stage] == (held - 1) * stash);
		assert_true(s[1].op_time[stage].backward_ns > s[0].op_time[stage].backward_ns);
		assert_true(s[1].op_time[stage].forward_ns == s[0].op_time[stage].forward_ns);
	}
	skep_scenario_finish(&s[0]);
	skep_scenario_finish(&s[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_owner_visits_each_stage_and_comes_back),
		cmocka_unit_test(test_who_is_gone_before_it_counts_is_replaced),
		cmocka_unit_test(test_who_is_gone_between_its_visits_is_replaced),
		cmocka_unit_test(test_who_may_have_counted_is_given_up),
		cmocka_unit_test(test_an_owner_waits_when_none_serves_a_stage),
		cmocka_unit_test(test_a_copy_that_came_back_goes_again_while_it_is_awaited),
		cmocka_unit_test(test_nothing_is_kept_between_two_visits),
		cmocka_unit_test(test_a_gradient_of_the_next_round_waits_for_the_step),
		cmocka_unit_test(test_work_of_an_owner_that_is_gone_is_dropped),
		cmocka_unit_test(test_memory_of_both_routings),
		cmocka_unit_test(test_bytes_of_both_routings),
		cmocka_unit_test(test_the_way_does_not_change_what_is_learned),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
