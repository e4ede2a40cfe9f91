/* SPDX-License-Identifier: Apache-2.0
 *
 * test_replay.c - logs: what was recorded replays; what was changed afterwards is found and named; and whatever the bytes
 * are, a machine is never told what cannot be.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/replay_fixture.h"

static struct skep_replay_result replay(const struct swarm *s)
{
	struct skep_replay_result result;
	assert_true(skep_replay_run(&s->plan, s->log, &result));
	return result;
}

static uint64_t all_events(const struct swarm *s)
{
	uint64_t events = 0;
	for (uint32_t i = 0; i < SWARM_MACHINES; i++)
		events += s->log[i].events;
	return events;
}

static void rewrite(struct swarm *s, uint32_t machine, uint64_t number, const struct skep_event *event, bool keep_mark)
{
	struct skep_event old, copy = *event;
	uint8_t *at = s->machine[machine].bytes + swarm_entry(s, machine, number, &old);
	struct skep_wire reader = skep_wire_reader(at, SKEP_LOG_ENTRY_MAX);
	skep_wire_event(&reader, &old);
	struct skep_wire writer = skep_wire_writer(at, (size_t)(reader.at - at));
	skep_wire_event(&writer, &copy);
	assert_true(writer.ok && writer.at == reader.at);
	if (!keep_mark)
		writer.at[0] ^= 1;
}

/* The first event of this kind, of a message of this kind if it is one, from entry `from` on; 0: none. */
static uint64_t find(
	const struct swarm *s, uint32_t machine, uint8_t kind, uint8_t message, uint64_t from, struct skep_event *ret)
{
	for (uint64_t i = from; i <= s->log[machine].events; i++) {
		swarm_entry(s, machine, i, ret);
		if (ret->kind == kind && (message == 0 || ret->u.message.kind == message))
			return i;
	}
	return 0;
}

static void assert_found(const struct swarm *s, enum skep_replay_verdict verdict, uint32_t machine, uint64_t event)
{
	struct skep_replay_result result = replay(s);
	assert_int_equal(result.verdict, verdict);
	assert_int_equal(result.machine, machine);
	assert_int_equal(result.event, event);
	assert_non_null(result.why);
	assert_false(result.whole);
}

/* ---- as it was --------------------------------------------------------------------------------------------------- */

static void a_recorded_run_agrees(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct swarm s;
		swarm_record(&s, seed, 4, seed % 2 == 0);
		struct skep_replay_result result = replay(&s);
		assert_int_equal(skep_node_outcome(s.machine[SWARM_WORKERS].node), SKEP_DONE);
		assert_int_equal(result.verdict, SKEP_REPLAY_AGREES);
		assert_true(result.whole);
		assert_int_equal(result.events, all_events(&s));
		assert_int_equal(result.run_events, all_events(&s));
		assert_int_equal(result.machines, SWARM_MACHINES);
		swarm_finish(&s);
	}
}

/* All kinds of events that a world may tell of, but for the notice. */
static void an_unkind_run_has_every_event(void **state)
{
	(void)state;
	uint64_t seen[SKEP_EVENT_KINDS] = {0};
	struct swarm s;
	swarm_record(&s, 2, 60, true); /* long enough for a heartbeat */
	for (uint32_t i = 0; i < SWARM_MACHINES; i++) {
		struct skep_event event;
		for (uint64_t e = 1; e <= s.log[i].events; e++) {
			swarm_entry(&s, i, e, &event);
			seen[event.kind]++;
		}
	}
	for (int kind = SKEP_EVENT_START; kind <= SKEP_EVENT_SUSPECT; kind++)
		assert_true(seen[kind] > 0);
	swarm_finish(&s);
}

static struct skep_event event_of(uint8_t kind)
{
	struct skep_event event = {.now = 0x1234567890 + kind, .kind = kind};
	if (kind == SKEP_EVENT_MESSAGE || kind == SKEP_EVENT_SEND_FAILED) {
		event.u.message = (struct skep_message){.kind = SKEP_MESSAGE_CHUNK,
			.stage = 3,
			.round = 4,
			.from = {5, 6},
			.to = {7, 8},
			.attempt = 2,
			.payload = {1, 1},
			.payload_bytes = 99};
		event.u.message.u.chunk.hop = 11;
	} else if (kind == SKEP_EVENT_OP_DONE) {
		event.u.done.op.id = 77;
		event.u.done.stash = (struct skep_buf){1, 1};
		event.u.done.loss_nano = INT64_MAX;
		event.u.done.elapsed_ns = 5;
	} else if (kind == SKEP_EVENT_SUSPECT) {
		event.u.peer = (struct skep_peer){1, 2};
	} else if (kind == SKEP_EVENT_PREEMPT_NOTICE) {
		event.u.leave_at = UINT64_MAX;
	} else if (kind == SKEP_EVENT_EGRESS) {
		event.u.egress_microusd = 17;
	}
	return event;
}

/* Field by field: padding and a union's other members have no value. */
static void same_event(const struct skep_event *got, const struct skep_event *want)
{
	assert_int_equal(got->kind, want->kind);
	assert_int_equal(got->now, want->now);
	if (want->kind == SKEP_EVENT_MESSAGE || want->kind == SKEP_EVENT_SEND_FAILED) {
		const struct skep_message *g = &got->u.message, *w = &want->u.message;
		assert_true(g->kind == w->kind && g->stage == w->stage && g->round == w->round);
		assert_true(g->from.index == w->from.index && g->from.epoch == w->from.epoch);
		assert_true(g->to.index == w->to.index && g->to.epoch == w->to.epoch && g->attempt == w->attempt);
		assert_int_equal(g->payload.slot, w->payload.slot);
		assert_int_equal(g->payload_bytes, w->payload_bytes);
		assert_int_equal(g->u.chunk.hop, w->u.chunk.hop);
	} else if (want->kind == SKEP_EVENT_OP_DONE) {
		assert_int_equal(got->u.done.op.id, want->u.done.op.id);
		assert_int_equal(got->u.done.stash.slot, want->u.done.stash.slot);
		assert_int_equal(got->u.done.loss_nano, want->u.done.loss_nano);
		assert_int_equal(got->u.done.elapsed_ns, want->u.done.elapsed_ns);
	} else if (want->kind == SKEP_EVENT_SUSPECT) {
		assert_int_equal(got->u.peer.index, want->u.peer.index);
		assert_int_equal(got->u.peer.epoch, want->u.peer.epoch);
	} else if (want->kind == SKEP_EVENT_PREEMPT_NOTICE) {
		assert_int_equal(got->u.leave_at, want->u.leave_at);
	} else if (want->kind == SKEP_EVENT_EGRESS) {
		assert_int_equal(got->u.egress_microusd, want->u.egress_microusd);
	}
}

static void events_come_back(void **state)
{
	(void)state;
	for (uint8_t kind = SKEP_EVENT_START; kind < SKEP_EVENT_KINDS; kind++) {
		uint8_t bytes[SKEP_LOG_ENTRY_MAX], again[SKEP_LOG_ENTRY_MAX];
		struct skep_event want = event_of(kind), got = {0};
		struct skep_wire writer = skep_wire_writer(bytes, sizeof bytes);
		skep_wire_event(&writer, &want);
		assert_true(writer.ok);
		struct skep_wire reader = skep_wire_reader(bytes, (size_t)(writer.at - bytes));
		skep_wire_event(&reader, &got);
		assert_true(reader.ok && reader.at == reader.end);
		same_event(&got, &want);
		struct skep_wire second = skep_wire_writer(again, sizeof again);
		skep_wire_event(&second, &got);
		assert_int_equal(second.at - again, writer.at - bytes);
		assert_memory_equal(again, bytes, (size_t)(writer.at - bytes));
	}
}

/* ---- changed afterwards ------------------------------------------------------------------------------------------ */

/* One bit of one event's time: the digest holds every instant. */
static void a_flipped_bit_is_found_and_named(void **state)
{
	(void)state;
	for (uint32_t machine = 0; machine < SWARM_MACHINES; machine++) {
		struct swarm s;
		struct skep_event event;
		swarm_record(&s, 3 + machine, 3, true);
		uint64_t number = s.log[machine].events / 2;
		swarm_entry(&s, machine, number, &event);
		event.now ^= 1;
		rewrite(&s, machine, number, &event, true);
		struct skep_replay_result result = replay(&s);
		bool back = result.verdict == SKEP_REPLAY_DAMAGED; /* earlier than the event before */
		assert_true(back || result.verdict == SKEP_REPLAY_DIFFERS);
		assert_found(&s, result.verdict, machine, number);
		assert_true(back || (strlen(result.recorded) == 4 && strcmp(result.recorded, result.replayed) != 0));
		assert_true(result.what[0] != '\0');
		swarm_finish(&s);
	}
}

static void another_decision_is_found_and_named(void **state)
{
	(void)state;
	struct swarm s;
	struct skep_event event;
	swarm_record(&s, 5, 3, false);
	swarm_entry(&s, 2, 20, &event);
	rewrite(&s, 2, 20, &event, false); /* the machine had another digest then */
	assert_found(&s, SKEP_REPLAY_DIFFERS, 2, 20);
	swarm_finish(&s);
}

static void a_message_that_none_sends_is_found(void **state)
{
	(void)state;
	struct swarm s;
	struct skep_event event;
	swarm_record(&s, 5, 3, false);
	uint64_t number = find(&s, 1, SKEP_EVENT_MESSAGE, SKEP_MESSAGE_FORWARD, 10, &event);
	assert_true(number > 0);
	event.u.message.microbatch ^= 1u << 20;
	rewrite(&s, 1, number, &event, true);
	assert_found(&s, SKEP_REPLAY_DIFFERS, 1, number);
	struct skep_replay_result result = replay(&s);
	assert_non_null(strstr(result.what, "FORWARD from machine"));
	assert_string_equal(result.why, "no machine sends this message");
	swarm_finish(&s);
}

static void an_operation_that_was_not_asked_for_is_found(void **state)
{
	(void)state;
	struct swarm s;
	struct skep_event event;
	swarm_record(&s, 6, 3, false);
	uint64_t number = find(&s, 0, SKEP_EVENT_OP_DONE, 0, 10, &event);
	event.u.done.op.id += 1000;
	rewrite(&s, 0, number, &event, true);
	assert_found(&s, SKEP_REPLAY_DIFFERS, 0, number);
	swarm_finish(&s);
}

static void an_early_timer_is_found(void **state)
{
	(void)state;
	struct swarm s;
	struct skep_event event;
	swarm_record(&s, 6, 60, false); /* long enough for a heartbeat */
	uint32_t directory = SWARM_WORKERS;
	uint64_t number = find(&s, directory, SKEP_EVENT_TIMER, 0, 1, &event);
	assert_true(number > 1);
	struct skep_event before;
	swarm_entry(&s, directory, number - 1, &before);
	event.now = before.now;
	rewrite(&s, directory, number, &event, true);
	assert_found(&s, SKEP_REPLAY_DIFFERS, directory, number);
	swarm_finish(&s);
}

static void a_missing_event_is_found(void **state)
{
	(void)state;
	struct swarm s;
	struct skep_event event;
	swarm_record(&s, 7, 3, false);
	size_t at = swarm_entry(&s, 3, 15, &event), end = swarm_entry(&s, 3, 16, &event);
	memmove(s.machine[3].bytes + at, s.machine[3].bytes + end, s.machine[3].count - end);
	s.log[3].count -= end - at;
	struct skep_replay_result result = replay(&s);
	assert_int_equal(result.verdict, SKEP_REPLAY_DIFFERS);
	assert_int_equal(result.machine, 3);
	assert_int_equal(result.event, 15);
	swarm_finish(&s);
}

static void another_digest_at_the_end_is_found(void **state)
{
	(void)state;
	struct swarm s;
	swarm_record(&s, 8, 3, false);
	s.log[4].digest ^= UINT64_C(1) << 40;
	struct skep_replay_result result = replay(&s);
	assert_int_equal(result.verdict, SKEP_REPLAY_DIFFERS);
	assert_int_equal(result.machine, 4);
	assert_int_equal(result.event, s.log[4].events);
	assert_int_equal(strlen(result.recorded), 16);
	swarm_finish(&s);
}

/* Of two differences the earlier is named, whichever machine comes first. */
static void the_earliest_difference_is_named(void **state)
{
	(void)state;
	struct swarm s;
	struct skep_event event, early;
	swarm_record(&s, 9, 3, false);
	swarm_entry(&s, 4, 8, &early);
	rewrite(&s, 4, 8, &early, false);
	uint64_t number = 1;
	do
		swarm_entry(&s, 0, ++number, &event);
	while (event.now <= early.now);
	rewrite(&s, 0, number, &event, false);
	assert_found(&s, SKEP_REPLAY_DIFFERS, 4, 8);
	swarm_finish(&s);
}

/* The log of one plan against another: what a changed core would look like. */
static void another_plan_differs(void **state)
{
	(void)state;
	for (int what = 0; what < 4; what++) {
		struct swarm s;
		swarm_record(&s, 10, 3, true);
		s.plan.seed += what == 0;
		s.plan.in_flight += what == 1;
		s.plan.microbatches += what == 2;
		s.plan.rounds -= what == 3;
		struct skep_replay_result result = replay(&s);
		assert_int_equal(result.verdict, SKEP_REPLAY_DIFFERS);
		assert_true(result.event > 0 && result.why != NULL && result.what[0] != '\0');
		swarm_finish(&s);
	}
}

/* ---- not all there ----------------------------------------------------------------------------------------------- */

static void a_log_that_was_cut_is_damaged(void **state)
{
	(void)state;
	struct swarm s;
	struct skep_event event;
	swarm_record(&s, 11, 3, false);
	size_t whole = s.log[2].count, at = swarm_entry(&s, 2, 30, &event);
	s.log[2].count = at; /* between two events */
	struct skep_replay_result result = replay(&s);
	assert_int_equal(result.verdict, SKEP_REPLAY_DAMAGED);
	assert_int_equal(result.machine, 2);
	assert_int_equal(result.event, 30);
	s.log[2].count = at + 5; /* inside one */
	result = replay(&s);
	assert_int_equal(result.verdict, SKEP_REPLAY_DAMAGED);
	assert_int_equal(result.event, 30);
	assert_string_equal(result.what, "");
	s.log[2].count = whole;
	s.log[2].events--; /* more than the machine was told */
	assert_int_equal(replay(&s).verdict, SKEP_REPLAY_DAMAGED);
	swarm_finish(&s);
}

/* A run that died: its machines' logs end somewhere, and how they would have ended is not known. */
static void a_run_that_died_agrees_as_far_as_it_got(void **state)
{
	(void)state;
	struct swarm s;
	struct skep_event event;
	swarm_record(&s, 12, 3, true);
	for (uint32_t i = 0; i < SWARM_MACHINES; i++) {
		s.log[i].count = swarm_entry(&s, i, s.log[i].events * (i + 1) / (SWARM_MACHINES + 1), &event);
		s.log[i].ended = false;
		s.log[i].events = 0;
	}
	struct skep_replay_result result = replay(&s);
	assert_int_equal(result.verdict, SKEP_REPLAY_AGREES);
	assert_false(result.whole);
	assert_true(result.events > 0);
	assert_int_equal(result.run_events, 0);
	swarm_finish(&s);
}

/* A log that has reached its limit is cut, not damaged. */
static void a_full_log_agrees_as_far_as_it_reaches(void **state)
{
	(void)state;
	static struct skep_log log;
	struct skep_event event = {.kind = SKEP_EVENT_TIMER};
	log.left = 3 * SKEP_LOG_ENTRY_MAX;
	uint32_t before;
	do {
		before = log.count;
		assert_true(skep_log_add(&log, &event, 0));
	} while (log.count > before);
	assert_int_equal(log.left, 0);
	assert_true(log.count > 2 * SKEP_LOG_ENTRY_MAX && log.count <= 3 * SKEP_LOG_ENTRY_MAX);
	log.left = SKEP_LOG_RUN_BYTES;
	while (skep_log_add(&log, &event, 0))
		;
	assert_true(log.count <= sizeof log.bytes && log.count > sizeof log.bytes - SKEP_LOG_ENTRY_MAX);

	struct skep_plan plan = {.workers = 10};
	uint64_t sum = 0;
	for (uint32_t i = 0; i <= plan.workers; i++)
		sum += skep_log_share(&plan, i);
	assert_true(sum <= SKEP_LOG_RUN_BYTES && sum > SKEP_LOG_RUN_BYTES - 100);
}

static void an_empty_log_is_no_run(void **state)
{
	(void)state;
	struct swarm s;
	swarm_record(&s, 13, 2, false);
	for (uint32_t i = 0; i < SWARM_MACHINES; i++)
		s.log[i].count = 0;
	struct skep_replay_result result = replay(&s);
	assert_int_equal(result.verdict, SKEP_REPLAY_DAMAGED);
	assert_int_equal(result.events, 0);
	swarm_finish(&s);
}

/* ---- what cannot be ---------------------------------------------------------------------------------------------- */

static void impossible_events_are_damage(void **state)
{
	(void)state;
	for (int what = 0; what < 6; what++) {
		struct swarm s;
		struct skep_event event;
		swarm_record(&s, 14, 2, false);
		uint64_t number = what == 5 ? find(&s, 3, SKEP_EVENT_OP_DONE, 0, 2, &event)
		                            : find(&s, 3, SKEP_EVENT_MESSAGE, 0, 10, &event);
		if (what == 0)
			event.now = 0;
		else if (what == 1)
			event.now = UINT64_MAX;
		else if (what == 2)
			event.u.message.to.index = 0;
		else if (what == 3)
			event.u.message.from.index = UINT32_MAX;
		else if (what == 4)
			event.kind = 99;
		else
			event.u.done.loss_nano = INT64_MIN;
		if (what == 4)
			s.machine[3].bytes[swarm_entry(&s, 3, number, &event)] = 99;
		else
			rewrite(&s, 3, number, &event, true);
		assert_found(&s, SKEP_REPLAY_DAMAGED, 3, number);
		swarm_finish(&s);
	}
}

static void a_machine_starts_once(void **state)
{
	(void)state;
	struct swarm s;
	struct skep_event event;
	swarm_record(&s, 15, 2, false);
	size_t second = swarm_entry(&s, 0, 2, &event);
	s.log[0].bytes += second; /* without START */
	s.log[0].count -= second;
	assert_found(&s, SKEP_REPLAY_DAMAGED, 0, 1);
	swarm_finish(&s);
}

/* Every byte of a log, changed to something else, one at a time: an answer, and no assertion of the core. */
static void whatever_the_bytes_are_there_is_an_answer(void **state)
{
	(void)state;
	struct swarm s;
	uint32_t found = 0, all = 0;
	swarm_record(&s, 16, 1, true);
	for (uint32_t machine = 0; machine < SWARM_MACHINES; machine++) {
		for (size_t i = 0; i < s.log[machine].count; i++) {
			uint8_t *byte = &s.machine[machine].bytes[i], was = *byte;
			*byte ^= (uint8_t)(1 + swarm_draw(&s, 255));
			struct skep_replay_result result = replay(&s);
			found += result.verdict != SKEP_REPLAY_AGREES;
			all++;
			*byte = was;
		}
	}
	assert_int_equal(replay(&s).verdict, SKEP_REPLAY_AGREES);
	assert_true(found > all * 7 / 10); /* losses, times of operations and buffers decide little */
	swarm_finish(&s);
}

/* ---- what is printed --------------------------------------------------------------------------------------------- */

static void print(const struct skep_replay_result *result, bool json, char *ret, size_t size)
{
	FILE *out = fmemopen(ret, size, "w");
	assert_non_null(out);
	skep_replay_print(result, 12, json, out);
	fclose(out);
}

static void results_are_printed(void **state)
{
	(void)state;
	char text[1024];
	struct swarm s;
	struct skep_event event;
	swarm_record(&s, 17, 2, false);
	struct skep_replay_result result = replay(&s);
	print(&result, false, text, sizeof text);
	assert_non_null(strstr(text, "run 12 agrees"));
	print(&result, true, text, sizeof text);
	assert_non_null(strstr(text, "\"verdict\":\"agrees\""));
	assert_non_null(strstr(text, "\"first\":null}\n"));
	swarm_entry(&s, SWARM_WORKERS, 9, &event);
	rewrite(&s, SWARM_WORKERS, 9, &event, false);
	result = replay(&s);
	print(&result, false, text, sizeof text);
	assert_non_null(strstr(text, "run 12 differs"));
	assert_non_null(strstr(text, "machine 5 (the directory), event 9"));
	print(&result, true, text, sizeof text);
	assert_non_null(strstr(text, "\"first\":{\"machine\":5,\"event\":9,"));
	swarm_finish(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_recorded_run_agrees),
		cmocka_unit_test(an_unkind_run_has_every_event),
		cmocka_unit_test(events_come_back),
		cmocka_unit_test(a_flipped_bit_is_found_and_named),
		cmocka_unit_test(another_decision_is_found_and_named),
		cmocka_unit_test(a_message_that_none_sends_is_found),
		cmocka_unit_test(an_operation_that_was_not_asked_for_is_found),
		cmocka_unit_test(an_early_timer_is_found),
		cmocka_unit_test(a_missing_event_is_found),
		cmocka_unit_test(another_digest_at_the_end_is_found),
		cmocka_unit_test(the_earliest_difference_is_named),
		cmocka_unit_test(another_plan_differs),
		cmocka_unit_test(a_log_that_was_cut_is_damaged),
		cmocka_unit_test(a_run_that_died_agrees_as_far_as_it_got),
		cmocka_unit_test(a_full_log_agrees_as_far_as_it_reaches),
		cmocka_unit_test(an_empty_log_is_no_run),
		cmocka_unit_test(impossible_events_are_damage),
		cmocka_unit_test(a_machine_starts_once),
		cmocka_unit_test(whatever_the_bytes_are_there_is_an_answer),
		cmocka_unit_test(results_are_printed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
