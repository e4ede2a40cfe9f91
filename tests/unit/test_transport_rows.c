/* SPDX-License-Identifier: Apache-2.0
 *
 * test_transport_rows.c - the batches in which a worker's report travels, and the messages that wait for the shaper.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "exec/loop/delay_queue.h"
#include "exec/loop/rows.h"

struct heard {
	uint32_t notes, ops, links, workers;
	skep_time now;
	struct skep_peer who;
	struct skep_note note;
	struct skep_op_span span;
	struct skep_link_use link;
	struct skep_worker_use worker;
};

static void hear_note(void *context, skep_time now, struct skep_peer who, const struct skep_note *note)
{
	struct heard *heard = context;
	heard->notes++;
	heard->now = now;
	heard->who = who;
	heard->note = *note;
}

static void hear_op(void *context, const struct skep_op_span *span)
{
	struct heard *heard = context;
	heard->ops++;
	heard->span = *span;
}

static void hear_link(void *context, const struct skep_link_use *use)
{
	struct heard *heard = context;
	heard->links++;
	heard->link = *use;
}

static void hear_worker(void *context, const struct skep_worker_use *use)
{
	struct heard *heard = context;
	heard->workers++;
	heard->worker = *use;
}

static struct skep_recorder recorder_of(struct heard *heard)
{
	memset(heard, 0, sizeof *heard);
	return (struct skep_recorder){
		.context = heard, .note = hear_note, .op = hear_op, .link = hear_link, .worker = hear_worker};
}

static const struct skep_peer who = {7, 3};
static const struct skep_note note = {.kind = SKEP_NOTE_COUNTED,
	.candidate = 3,
	.stage = 2,
	.round = 9,
	.microbatch = 11,
	.peer = {5, 6},
	.staleness = -12345678901};
static const struct skep_op_span span = {1, 2, 3, 4, 5, SKEP_OP_BACKWARD, SKEP_LANE_COMPUTE, 100, 250, 120, 130};
static const struct skep_link_use link_use = {3, 4, SKEP_TRAFFIC_SYNC, 17, 1u << 31};
static const struct skep_worker_use worker_use = {
	5, 6, 1, 77, 1000, 900, 800, 4321, 0xfedcba9876543210, 2, {6, 7, 8, 9, 1ull << 40}, false};

static void rows_come_back(void **state)
{
	(void)state;
	struct heard heard;
	struct skep_recorder recorder = recorder_of(&heard);
	struct skep_rows rows = {0};
	uint64_t events = 1;
	assert_true(skep_rows_note(&rows, 40, who, &note));
	assert_true(skep_rows_op(&rows, 41, &span));
	assert_true(skep_rows_link(&rows, 42, &link_use));
	assert_true(skep_rows_worker(&rows, 43, &worker_use));
	assert_int_equal(rows.oldest, 40);
	assert_true(skep_rows_replay(rows.bytes, rows.count, &recorder, &events));
	assert_int_equal(events, 1 + 4321);
	assert_true(heard.notes == 1 && heard.ops == 1 && heard.links == 1 && heard.workers == 1);
	assert_int_equal(heard.now, 40);
	assert_memory_equal(&heard.who, &who, sizeof who);
	assert_int_equal(heard.note.staleness, note.staleness);
	assert_true(heard.note.kind == note.kind && heard.note.candidate == 3 && heard.note.stage == 2 &&
		    heard.note.round == 9);
	assert_true(heard.note.microbatch == 11 && heard.note.peer.index == 5 && heard.note.peer.epoch == 6);
	assert_memory_equal(&heard.span, &span, sizeof span);
	assert_true(heard.link.source == 3 && heard.link.destination == 4 && heard.link.traffic == SKEP_TRAFFIC_SYNC);
	assert_true(heard.link.messages == 17 && heard.link.bytes == 1u << 31);
	assert_memory_equal(&heard.worker, &worker_use, sizeof worker_use);
}

/* As many rows as fit, then none; what fitted is whole. */
static void a_full_batch_says_so(void **state)
{
	(void)state;
	struct heard heard;
	struct skep_recorder recorder = recorder_of(&heard);
	struct skep_rows rows = {0};
	uint64_t events = 0;
	uint32_t fitted = 0;
	while (skep_rows_op(&rows, 1, &span))
		fitted++;
	assert_true(fitted > 50);
	assert_true(rows.count <= SKEP_FRAME_CONTENT);
	uint32_t before = rows.count;
	assert_false(skep_rows_worker(&rows, 1, &worker_use));
	assert_int_equal(rows.count, before);
	assert_true(skep_rows_replay(rows.bytes, rows.count, &recorder, &events));
	assert_int_equal(heard.ops, fitted);
}

static void a_recorder_may_not_listen(void **state)
{
	(void)state;
	const struct skep_recorder deaf = {0};
	struct skep_rows rows = {0};
	uint64_t events = 0;
	assert_true(skep_rows_note(&rows, 1, who, &note) && skep_rows_op(&rows, 1, &span));
	assert_true(skep_rows_link(&rows, 1, &link_use) && skep_rows_worker(&rows, 1, &worker_use));
	assert_true(skep_rows_replay(rows.bytes, rows.count, &deaf, &events));
	assert_int_equal(events, 4321);
}

static void a_bad_batch_is_refused(void **state)
{
	(void)state;
	struct heard heard;
	struct skep_recorder recorder = recorder_of(&heard);
	struct skep_rows rows = {0};
	uint64_t events = 0;
	assert_true(skep_rows_op(&rows, 1, &span));
	assert_true(skep_rows_link(&rows, 1, &link_use));
	for (uint32_t cut = 0; cut <= rows.count; cut++) {
		uint8_t *exact = malloc(cut + 1);
		memcpy(exact, rows.bytes, cut);
		heard.ops = heard.links = 0;
		bool whole = skep_rows_replay(exact, cut, &recorder, &events);
		bool at_row = cut == 0 || cut == rows.count || (heard.ops == 1 && heard.links == 0 && whole);
		assert_int_equal(whole, at_row);
		assert_int_equal(heard.links, cut == rows.count);
		free(exact);
	}
	rows.bytes[0] = 99;
	assert_false(skep_rows_replay(rows.bytes, rows.count, &recorder, &events));
	struct skep_rows other = {0};
	const struct skep_op_span wrong_lane = {.kind = SKEP_OP_STEP, .lane = SKEP_LANES};
	assert_false(skep_rows_op(&other, 1, &wrong_lane));
	assert_int_equal(other.count, 0);
}

static struct skep_message from(uint32_t index, uint32_t microbatch)
{
	return (struct skep_message){.kind = SKEP_MESSAGE_FORWARD, .from = {index, 1}, .microbatch = microbatch};
}

static void a_message_waits_for_its_release(void **state)
{
	(void)state;
	struct skep_delay_queue held = {0};
	struct skep_message first = from(1, 10), second = from(2, 20), got;
	assert_false(skep_delay_queue_arrive(&held, 5, &first));
	assert_false(skep_delay_queue_arrive(&held, 5, &second));  /* the same number of another sender */
	assert_false(skep_delay_queue_release(&held, 1, 6, &got)); /* its message is still to come */
	assert_true(skep_delay_queue_release(&held, 2, 5, &got));
	assert_int_equal(got.microbatch, 20);
	assert_true(skep_delay_queue_release(&held, 1, 5, &got));
	assert_int_equal(got.microbatch, 10);
	struct skep_message third = from(1, 30);
	assert_true(skep_delay_queue_arrive(&held, 6, &third));
	assert_int_equal(held.count, 0);
	skep_delay_queue_finish(&held);
}

static void a_release_without_a_message_can_be_forgotten(void **state)
{
	(void)state;
	struct skep_delay_queue held = {0};
	struct skep_message got;
	for (uint64_t number = 1; number <= 100; number++)
		assert_false(skep_delay_queue_release(&held, 1, number, &got));
	assert_false(skep_delay_queue_release(&held, 1, 50, &got)); /* twice is once */
	for (uint64_t number = 1; number <= 100; number += 2)
		skep_delay_queue_forget(&held, 1, number);
	skep_delay_queue_forget(&held, 1, 1000);
	assert_int_equal(held.count, 50);
	struct skep_message even = from(1, 1), odd = from(1, 2);
	assert_true(skep_delay_queue_arrive(&held, 50, &even));
	assert_false(skep_delay_queue_arrive(&held, 51, &odd));
	skep_delay_queue_finish(&held);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_come_back),
		cmocka_unit_test(a_full_batch_says_so),
		cmocka_unit_test(a_recorder_may_not_listen),
		cmocka_unit_test(a_bad_batch_is_refused),
		cmocka_unit_test(a_message_waits_for_its_release),
		cmocka_unit_test(a_release_without_a_message_can_be_forgotten),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
