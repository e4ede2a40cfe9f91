/* SPDX-License-Identifier: Apache-2.0
 *
 * test_engine.c - the simulated world around a scripted core: the skep_node functions, the operation times and the
 * devices and laws below are stand-ins made for this test, so that each duty of a world can be provoked and seen.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "scenarios/plan/loss.h"
#include "sim/queue.h"
#include "sim/sim.h"
#include "sim/traffic.h"
#include "tests/unit/engine_core.h"
#include "tests/unit/engine_scenario.h"

#define MS UINT64_C(1000000)

static char story[8192]; /* what it has said, line by line */

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
	size_t used = strlen(story);
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(story + used, sizeof story - used, format, arguments);
	va_end(arguments);
	assert_true(strlen(story) < sizeof story - 1);
}

/* ---- devices that remember one buffer each --------------------------------------------------------------------- */

struct skep_device {
	char memory[4][16];
	uint64_t bytes[4];
	bool live[4];
};

int64_t skep_loss_nano(const struct skep_scenario *scenario, uint32_t round, uint32_t microbatch)
{
	(void)scenario, (void)round, (void)microbatch;
	assert_true(false); /* no scenario here has a law */
	return 0;
}

struct skep_device *skep_device_create_on(enum skep_device_kind kind, const struct skep_device_place *place,
	const struct skep_training *training, uint32_t stage, struct skep_diag *reterr)
{
	(void)place, (void)training, (void)stage, (void)reterr;
	return kind == SKEP_DEVICE_CPU ? calloc(1, sizeof(struct skep_device)) : NULL;
}

void skep_device_set_byzantine(struct skep_device *device, const struct skep_byzantine *byzantine)
{
	assert_true(device && byzantine->attack == SKEP_ATTACK_NONE);
}
struct skep_byzantine skep_scenario_byzantine(const struct skep_scenario *scenario, uint32_t worker)
{
	(void)scenario, (void)worker;
	return (struct skep_byzantine){0};
}
void skep_device_destroy(struct skep_device *device)
{
	for (uint32_t i = 0; device && i < 4; i++)
		assert_false(device->live[i]);
	free(device);
}

struct skep_buf skep_device_buffer_create(struct skep_device *device, uint64_t bytes, void **ret_memory)
{
	uint32_t slot = 0;
	while (device->live[slot])
		slot++;
	assert_true(slot < 4 && bytes <= 16);
	device->live[slot] = true;
	device->bytes[slot] = bytes;
	*ret_memory = device->memory[slot];
	return (struct skep_buf){slot, 7};
}

const void *skep_device_buffer_read(struct skep_device *device, struct skep_buf buf, uint64_t *ret_bytes)
{
	assert_true(buf.slot < 4 && device->live[buf.slot]);
	*ret_bytes = device->bytes[buf.slot];
	return device->memory[buf.slot];
}

void skep_device_buffer_release(struct skep_device *device, struct skep_buf buf)
{
	assert_true(buf.slot < 4 && device->live[buf.slot]);
	device->live[buf.slot] = false;
	memset(device->memory[buf.slot], 0, 16);
}

void skep_device_run(struct skep_device *device, const struct skep_op *op, struct skep_device_result *ret)
{
	void *memory;
	*ret = (struct skep_device_result){.loss_nano = 42};
	ret->out = skep_device_buffer_create(device, 12, &memory);
	snprintf(memory, 12, "result %u", op->microbatch);
	say("arithmetic %u\n", op->microbatch);
}

/* ---- a world of three workers --------------------------------------------------------------------------------- */

struct heard {                 /* what the recorder was told */
	skep_time lived_ns[4]; /* [machine] by hear_life() */
	uint32_t spans, notes, links, workers, progress;
	struct skep_op_span span[16];
	struct skep_link_use link[16];
	struct skep_worker_use worker[4];
};

static void hear_note(void *context, skep_time now, struct skep_peer who, const struct skep_note *note)
{
	(void)now, (void)who, (void)note;
	((struct heard *)context)->notes++;
}

static void hear_span(void *context, const struct skep_op_span *span)
{
	struct heard *heard = context;
	heard->span[heard->spans++] = *span;
}

static void hear_link(void *context, const struct skep_link_use *use)
{
	struct heard *heard = context;
	heard->link[heard->links++] = *use;
}

static void hear_worker(void *context, const struct skep_worker_use *use)
{
	struct heard *heard = context;
	heard->worker[heard->workers++] = *use;
	assert_int_equal(heard->lived_ns[use->index], use->index < 3 ? use->alive_ns : 0);
}

static void hear_life(void *context, uint32_t machine, skep_time started_ns, skep_time ended_ns)
{
	struct heard *heard = context;
	assert_true(machine < 3 && started_ns <= ended_ns);
	heard->lived_ns[machine] += ended_ns - started_ns;
}

static void hear_progress(void *context, skep_time now, uint32_t done, uint32_t total)
{
	(void)now;
	struct heard *heard = context;
	assert_int_equal(done, ++heard->progress);
	assert_int_equal(total, 5);
}

/* 1 MB/s up, 10 ms latency between machines, also with the directory. One machine more than workers, and a slow one. */
static struct skep_sim_result simulate(script_function *function, enum skep_arithmetic arithmetic, struct heard *heard)
{
	static const uint32_t first_stage[3] = {0, 1, SKEP_NO_STAGE};
	struct skep_machine machine[5];
	struct skep_pair pair = {INFINITY, 0.01, INFINITY};
	static const struct skep_stage_plan stage[2] = {{.parameters = 1}, {.parameters = 1}};
	struct skep_model model = {0};
	struct skep_scenario scenario = {.arithmetic = arithmetic,
		.training = {.model = &model, .samples = 1},
		.plan = {.workers = 3, .stages = 2, .rounds = 5, .stage = stage, .first_stage_of = first_stage},
		.topology = {.machines = 4, .places = 1, .machine = machine, .pair = &pair}};
	struct skep_recorder recorder = {.context = heard,
		.note = hear_note,
		.op = hear_span,
		.link = hear_link,
		.worker = hear_worker,
		.life = hear_life,
		.progress = hear_progress};
	struct skep_sim_result result;
	for (uint32_t i = 0; i <= 4; i++)
		machine[i] = (struct skep_machine){.up_Bps = i == 3 ? 1 : 1e6, .down_Bps = INFINITY};
	memset(heard, 0, sizeof *heard);
	script = function;
	story[0] = 0;
	assert_true(skep_sim_run(&scenario, &recorder, &result));
	return result;
}

static struct skep_action *act(struct skep_actions *actions, enum skep_action_kind kind)
{
	assert_true(actions->count < actions->capacity);
	struct skep_action *action = &actions->item[actions->count++];
	memset(action, 0, sizeof *action);
	action->kind = (uint8_t)kind;
	return action;
}

static struct skep_message *post(
	struct skep_actions *actions, const struct skep_node *node, uint32_t to, uint8_t kind, uint64_t bytes)
{
	struct skep_message *message = &act(actions, SKEP_ACTION_SEND)->u.send;
	message->kind = kind;
	message->from = (struct skep_peer){node->index, node->epoch};
	message->to = (struct skep_peer){to, 1};
	message->payload_bytes = bytes;
	return message;
}

static void work(struct skep_actions *actions, uint8_t lane, uint32_t microbatch)
{
	struct skep_op *op = &act(actions, SKEP_ACTION_RUN)->u.run;
	op->kind = SKEP_OP_FORWARD;
	op->lane = lane;
	op->microbatch = microbatch;
	op->stage = microbatch % 2;
}

static bool is_directory(const struct skep_node *node)
{
	return node->index == node->plan->workers;
}

/* Every machine stops when the first message of kind STOP reaches it; the directory at once. */
static void stop_all(struct skep_node *node, struct skep_actions *actions)
{
	node->outcome = SKEP_DONE;
	for (uint32_t i = 0; i < node->plan->workers; i++)
		post(actions, node, i, SKEP_MESSAGE_STOP, 0);
}

static bool stopped(struct skep_node *node, const struct skep_event *event)
{
	if (event->kind == SKEP_EVENT_MESSAGE && event->u.message.kind == SKEP_MESSAGE_STOP)
		node->outcome = SKEP_DONE;
	return node->outcome == SKEP_DONE;
}

/* ---- messages ------------------------------------------------------------------------------------------------ */

/* Workers 0 and 1 throw a payload of 1 MB less the header to and fro, four times; then 1 tells the directory. */
static void ping_pong(struct skep_node *node, const struct skep_event *event, struct skep_actions *actions)
{
	if (stopped(node, event))
		return;
	if (event->kind == SKEP_EVENT_START && node->index == 0)
		post(actions, node, 1, SKEP_MESSAGE_FORWARD, 1000000 - SKEP_HEADER_BYTES);
	if (event->kind != SKEP_EVENT_MESSAGE)
		return;
	say("%llu ms: %u has it\n", (unsigned long long)(event->now / MS), node->index);
	if (is_directory(node))
		stop_all(node, actions);
	else if (node->index == 1 && ++node->count == 2)
		post(actions, node, 3, SKEP_MESSAGE_JOIN, 0);
	else
		post(actions, node, 1 - node->index, SKEP_MESSAGE_FORWARD, 1000000 - SKEP_HEADER_BYTES);
}

static void messages_take_latency_and_bandwidth(void **state)
{
	(void)state;
	struct heard heard;
	struct skep_sim_result result = simulate(ping_pong, SKEP_ARITHMETIC_NONE, &heard);
	assert_string_equal(story, "1010 ms: 1 has it\n2020 ms: 0 has it\n3030 ms: 1 has it\n3040 ms: 3 has it\n");
	assert_int_equal(result.outcome, SKEP_DONE);
	assert_int_equal(result.end_ns, 3050 * MS + 2 * SKEP_HEADER_BYTES * 1000);
	assert_int_equal(result.events, 4 + 3 + 1 + 3);
	assert_int_equal(heard.links, 2 + 1 + 3);
	assert_true(heard.link[0].source == 0 && heard.link[0].destination == 1 && heard.link[0].messages == 2 &&
		    heard.link[0].bytes == 2000000 && heard.link[0].traffic == SKEP_TRAFFIC_PIPELINE);
	assert_true(heard.link[2].source == 1 && heard.link[2].destination == 3 &&
		    heard.link[2].traffic == SKEP_TRAFFIC_CONTROL && heard.link[2].bytes == SKEP_HEADER_BYTES);
	assert_int_equal(heard.workers, 4);
	assert_true(heard.worker[1].events == 4 && heard.worker[1].digest == 101 && heard.worker[2].epoch == 0);
	assert_int_equal(heard.worker[1].alive_ns, result.end_ns);
	assert_int_equal(heard.worker[3].alive_ns, 3040 * MS + SKEP_HEADER_BYTES * 1000);
}

/* Three to the directory at once, one to itself: the latter comes at the same instant, the others in sending order. */
static void many_at_once(struct skep_node *node, const struct skep_event *event, struct skep_actions *actions)
{
	if (stopped(node, event))
		return;
	if (event->kind == SKEP_EVENT_START && node->index == 0) {
		for (uint32_t i = 0; i < 3; i++)
			post(actions, node, 3, SKEP_MESSAGE_HEARTBEAT, 0)->microbatch = i;
		post(actions, node, 0, SKEP_MESSAGE_HEARTBEAT, 1u << 30)->microbatch = 9;
	}
	if (event->kind == SKEP_EVENT_MESSAGE)
		say("%llu: %u got %u\n", (unsigned long long)event->now, node->index, event->u.message.microbatch);
	if (event->kind == SKEP_EVENT_MESSAGE && is_directory(node) && ++node->count == 3)
		stop_all(node, actions);
}

static void ties_are_settled_by_cause(void **state)
{
	(void)state;
	struct heard heard;
	simulate(many_at_once, SKEP_ARITHMETIC_NONE, &heard);
	assert_string_equal(story, "0: 0 got 9\n10096000: 3 got 0\n10096000: 3 got 1\n10096000: 3 got 2\n");
	assert_int_equal(heard.links, 4); /* the one to itself used no link */
}

/* An operation that ends when messages arrive takes its place among them by when it began. */
static void all_at_once(struct skep_node *node, const struct skep_event *event, struct skep_actions *actions)
{
	if (stopped(node, event))
		return;
	if (event->kind == SKEP_EVENT_START && node->index == 0) {
		post(actions, node, 3, SKEP_MESSAGE_HEARTBEAT, 0);
		work(actions, SKEP_LANE_COMPUTE, SKEP_HEADER_BYTES * 1000);
		post(actions, node, 3, SKEP_MESSAGE_HEARTBEAT, 0);
	}
	if (event->kind == SKEP_EVENT_OP_DONE || event->kind == SKEP_EVENT_MESSAGE)
		say("%llu: %u\n", (unsigned long long)event->now, node->index);
	if (event->kind == SKEP_EVENT_MESSAGE && ++node->count == 2)
		stop_all(node, actions);
}

static void ties_between_lanes_and_network_too(void **state)
{
	(void)state;
	struct heard heard;
	simulate(all_at_once, SKEP_ARITHMETIC_NONE, &heard);
	assert_string_equal(story, "10096000: 3\n10096000: 0\n10096000: 3\n");
}

static void silent(struct skep_node *node, const struct skep_event *event, struct skep_actions *actions)
{
	(void)actions;
	if (is_directory(node) && event->kind == SKEP_EVENT_START)
		say("started\n");
}

static void no_event_left_is_a_failed_run(void **state)
{
	(void)state;
	struct heard heard;
	struct skep_sim_result result = simulate(silent, SKEP_ARITHMETIC_NONE, &heard);
	assert_string_equal(story, "started\n");
	assert_int_equal(result.outcome, SKEP_FAILED);
	assert_int_equal(result.end_ns, 0);
	assert_int_equal(heard.workers, 4);
}

/* ---- operations ------------------------------------------------------------------------------------------------ */

static void two_lanes(struct skep_node *node, const struct skep_event *event, struct skep_actions *actions)
{
	if (stopped(node, event))
		return;
	if (event->kind == SKEP_EVENT_START && node->index == 1) {
		work(actions, SKEP_LANE_COMPUTE, 1);
		work(actions, SKEP_LANE_REDUCE, 2);
		work(actions, SKEP_LANE_COMPUTE, 3);
		work(actions, SKEP_LANE_COMPUTE, 4);
	}
	if (event->kind == SKEP_EVENT_OP_DONE) {
		assert_true(event->u.done.stash.generation != 0);
		assert_true((event->u.done.out.generation == 0) == (event->u.done.op.stage == 1)); /* of two */
		say("%llu: %u after %llu\n", (unsigned long long)event->now, event->u.done.op.microbatch,
			(unsigned long long)event->u.done.elapsed_ns);
		act(actions, SKEP_ACTION_NOTE)->u.note.kind = SKEP_NOTE_COUNTED;
		if (++node->count == 4)
			post(actions, node, 3, SKEP_MESSAGE_JOIN, 0);
	}
	if (event->kind == SKEP_EVENT_MESSAGE && is_directory(node)) {
		act(actions, SKEP_ACTION_NOTE)->u.note.kind = SKEP_NOTE_ROUND_CLOSED;
		stop_all(node, actions);
	}
}

static void lanes_run_side_by_side_each_in_order(void **state)
{
	(void)state;
	struct heard heard;
	simulate(two_lanes, SKEP_ARITHMETIC_NONE, &heard);
	assert_string_equal(story, "20000001: 1 after 20000001\n20000002: 2 after 20000002\n"
				   "40000004: 3 after 20000003\n60000008: 4 after 20000004\n");
	assert_int_equal(heard.spans, 4);
	assert_true(heard.span[2].begin_ns == 20000001 && heard.span[2].end_ns == 40000004);
	assert_true(heard.span[2].worker == 1 && heard.span[2].number == 3 && heard.span[2].busy_ns == 20000003);
	assert_int_equal(heard.worker[1].compute_ns, 60000008);
	assert_int_equal(heard.worker[1].arithmetic_ns, 0);
	assert_int_equal(heard.notes, 5);
	assert_int_equal(heard.progress, 1);
}

/* ---- memory ---------------------------------------------------------------------------------------------------- */

/* Worker 0 wants twice as much after each operation, and finds itself there, as it was, in time for the next event. */
static void hungry(struct skep_node *node, const struct skep_event *event, struct skep_actions *actions)
{
	if (stopped(node, event))
		return;
	assert_int_equal(node->wanted, 0);
	assert_int_equal(node->moves, node->count);
	if (node->index == 0 && event->kind == SKEP_EVENT_START)
		work(actions, SKEP_LANE_COMPUTE, 0);
	if (event->kind == SKEP_EVENT_OP_DONE) {
		node->wanted = sizeof *node << ++node->count;
		if (node->count < 8)
			work(actions, SKEP_LANE_COMPUTE, 0);
		else
			post(actions, node, 3, SKEP_MESSAGE_JOIN, 0);
	}
	if (event->kind == SKEP_EVENT_MESSAGE && is_directory(node))
		stop_all(node, actions);
}

static void who_wants_memory_gets_it(void **state)
{
	(void)state;
	struct heard heard;
	struct skep_sim_result result = simulate(hungry, SKEP_ARITHMETIC_NONE, &heard);
	assert_int_equal(result.outcome, SKEP_DONE);
}

/* ---- timers ---------------------------------------------------------------------------------------------------- */

/* A deadline that is put off, then brought forward, then twice the same. */
static void alarm_clock(struct skep_node *node, const struct skep_event *event, struct skep_actions *actions)
{
	if (stopped(node, event))
		return;
	if (node->index == 0 && event->kind == SKEP_EVENT_START) {
		node->deadline = 30 * MS;
		work(actions, SKEP_LANE_COMPUTE, 0); /* ends at 10 ms */
	}
	if (node->index == 0 && event->kind == SKEP_EVENT_OP_DONE) {
		node->deadline = ++node->count == 1 ? 100 * MS : 50 * MS; /* at 10 ms; at 40 ms */
		if (node->count < 4)
			work(actions, SKEP_LANE_COMPUTE, 0);
	}
	if (event->kind == SKEP_EVENT_TIMER) {
		assert_true(event->now >= node->deadline);
		say("%llu ms\n", (unsigned long long)(event->now / MS));
		node->deadline = ++node->timers == 1 ? 100 * MS : SKEP_TIME_NEVER;
		if (node->timers == 2)
			post(actions, node, 3, SKEP_MESSAGE_JOIN, 0);
	}
	if (event->kind == SKEP_EVENT_MESSAGE && is_directory(node))
		stop_all(node, actions);
}

static void timers_follow_the_deadline(void **state)
{
	(void)state;
	struct heard heard;
	struct skep_sim_result result = simulate(alarm_clock, SKEP_ARITHMETIC_NONE, &heard);
	assert_string_equal(story, "50 ms\n100 ms\n");
	assert_int_equal(result.outcome, SKEP_DONE);
}

/* A deadline that has passed already comes at the same instant, not never and not in the past. */
static void late_alarm(struct skep_node *node, const struct skep_event *event, struct skep_actions *actions)
{
	if (stopped(node, event))
		return;
	if (event->kind == SKEP_EVENT_START && node->index == 2)
		work(actions, SKEP_LANE_COMPUTE, 0);
	if (event->kind == SKEP_EVENT_OP_DONE)
		node->deadline = 1;
	if (event->kind == SKEP_EVENT_TIMER) {
		say("%llu ms\n", (unsigned long long)(event->now / MS));
		node->deadline = SKEP_TIME_NEVER;
		post(actions, node, 3, SKEP_MESSAGE_JOIN, 0);
	}
	if (event->kind == SKEP_EVENT_MESSAGE && is_directory(node))
		stop_all(node, actions);
}

static void a_deadline_in_the_past_is_now(void **state)
{
	(void)state;
	struct heard heard;
	simulate(late_alarm, SKEP_ARITHMETIC_NONE, &heard);
	assert_string_equal(story, "30 ms\n");
}

/* ---- real arithmetic ------------------------------------------------------------------------------------------------- */

static void payload_travels(struct skep_node *node, const struct skep_event *event, struct skep_actions *actions)
{
	if (stopped(node, event))
		return;
	if (event->kind == SKEP_EVENT_START && node->index == 0)
		work(actions, SKEP_LANE_COMPUTE, 5);
	if (event->kind == SKEP_EVENT_OP_DONE) {
		say("loss %lld\n", (long long)event->u.done.loss_nano);
		post(actions, node, 1, SKEP_MESSAGE_FORWARD, 12)->payload = event->u.done.out;
	}
	if (event->kind == SKEP_EVENT_MESSAGE && node->index == 1) {
		say("received\n");
		act(actions, SKEP_ACTION_RELEASE)->u.release = event->u.message.payload;
		post(actions, node, 3, SKEP_MESSAGE_JOIN, 0);
	}
	if (event->kind == SKEP_EVENT_MESSAGE && is_directory(node))
		stop_all(node, actions);
}

static void payloads_move_between_devices(void **state)
{
	(void)state;
	struct heard heard;
	simulate(payload_travels, SKEP_ARITHMETIC_REAL, &heard);
	assert_string_equal(story, "arithmetic 5\nloss 42\nreceived\n");
	assert_int_equal(heard.worker[0].arithmetic_ns, 10 * MS + 5);
}

/* ---- parts ------------------------------------------------------------------------------------------------------ */

static void the_queue_sorts_by_time_then_sequence(void **state)
{
	(void)state;
	struct skep_queue queue = {0};
	uint64_t z = 1;
	for (uint64_t i = 0; i < 5000; i++) {
		z = z * UINT64_C(6364136223846793005) + 1;
		assert_true(skep_queue_push(&queue, (struct skep_queue_entry){z >> 57, i, 0, (uint32_t)(z >> 57)}));
		if (z >> 62 == 0)
			skep_queue_pop(&queue);
	}
	struct skep_queue_entry last = {0};
	for (size_t left = queue.count; left > 0; left--) {
		assert_true(skep_queue_next(&queue) == queue.entry[0].time);
		struct skep_queue_entry next = skep_queue_pop(&queue);
		assert_true(next.time > last.time || (next.time == last.time && next.sequence >= last.sequence));
		assert_true(next.index == next.time);
		last = next;
	}
	assert_true(skep_queue_next(&queue) == SKEP_TIME_NEVER);
	skep_queue_finish(&queue);
}

struct sum {
	uint64_t messages, bytes, last, sent[SKEP_TRAFFICS];
	double usd;
};

static void add_up(void *context, const struct skep_link_use *use)
{
	struct sum *sum = context;
	uint64_t key = ((uint64_t)use->source * 1000 + use->destination) * SKEP_TRAFFICS + use->traffic;
	assert_true(sum->messages == 0 || key > sum->last);
	assert_true(use->bytes == use->messages * (use->source + 1));
	sum->last = key;
	sum->messages += use->messages;
	sum->bytes += use->bytes;
}

static void add_sent(void *context, const struct skep_sent *more)
{
	struct sum *sum = context;
	for (int i = 0; i < SKEP_TRAFFICS; i++)
		sum->sent[i] += more->bytes[i];
	sum->usd += more->egress_usd;
}

static void traffic_is_summed_per_pair_and_class(void **state)
{
	(void)state;
	struct skep_traffic_table table = {0};
	struct sum sum = {0};
	struct skep_recorder recorder = {.context = &sum, .link = add_up, .sent = add_sent};
	uint64_t bytes = 0, sent[SKEP_TRAFFICS] = {0};
	for (uint32_t i = 0; i < 20000; i++) {
		uint32_t source = i % 97, destination = i % 31, traffic = i % SKEP_TRAFFICS;
		assert_true(skep_traffic_add(&table, source, destination, (uint8_t)traffic, 1, source + 1, 0.5));
		bytes += source + 1;
		sent[traffic] += source + 1;
		if (i % 777 == 0) { /* all of it, and nothing twice */
			skep_traffic_tell(&table, &recorder);
			assert_memory_equal(sum.sent, sent, sizeof sent);
		}
	}
	assert_true(skep_traffic_report(&table, &recorder));
	assert_int_equal(sum.messages, 20000);
	assert_int_equal(sum.bytes, bytes);
	assert_memory_equal(sum.sent, sent, sizeof sent);
	assert_float_equal(sum.usd, 20000 * 0.5, 0);
	assert_int_equal(table.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_take_latency_and_bandwidth),
		cmocka_unit_test(ties_are_settled_by_cause),
		cmocka_unit_test(ties_between_lanes_and_network_too),
		cmocka_unit_test(no_event_left_is_a_failed_run),
		cmocka_unit_test(lanes_run_side_by_side_each_in_order),
		cmocka_unit_test(who_wants_memory_gets_it),
		cmocka_unit_test(timers_follow_the_deadline),
		cmocka_unit_test(a_deadline_in_the_past_is_now),
		cmocka_unit_test(payloads_move_between_devices),
		cmocka_unit_test(the_queue_sorts_by_time_then_sequence),
		cmocka_unit_test(traffic_is_summed_per_pair_and_class),
	};
	return cmocka_run_group_tests_name("engine", tests, NULL, NULL);
}
