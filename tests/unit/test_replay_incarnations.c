/* SPDX-License-Identifier: Apache-2.0
 *
 * test_replay_incarnations.c - logs of machines that had several lives, or one that ended before it began.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/random.h"
#include "tests/unit/replay_fixture.h"

static struct skep_replay_result replay(const struct swarm *s)
{
	struct skep_replay_result result;
	assert_true(skep_replay_run(&s->plan, s->log, &result));
	return result;
}

/* The spare's log with a life before it that heard nothing but its START; an end of that life if there are events. */
static void live_before(struct swarm *s, struct skep_log *log, uint64_t events, uint64_t *ret_digest)
{
	const uint32_t spare = SWARM_WORKERS - 1;
	struct skep_event start = {.kind = SKEP_EVENT_START};
	void *memory = aligned_alloc(16, (skep_node_size(&s->plan, spare) + 15) / 16 * 16);
	struct skep_node *node = skep_node_init(memory, &s->plan, spare, 0);
	skep_node_step(node, &s->plan, &start, &s->actions);
	*ret_digest = skep_node_digest(node);
	free(memory);
	*log = (struct skep_log){.left = SKEP_LOG_RUN_BYTES};
	assert_true(skep_log_add(log, &start, *ret_digest));
	if (events > 0)
		assert_true(skep_log_end(log, 0, events, *ret_digest));
	uint8_t *bytes = malloc(log->count + s->log[spare].count);
	assert_non_null(bytes);
	memcpy(bytes, log->bytes, log->count);
	memcpy(bytes + log->count, s->log[spare].bytes, s->log[spare].count);
	s->log[spare].bytes = bytes;
	s->log[spare].count += log->count;
}

static void a_machine_may_have_several_lives(void **state)
{
	(void)state;
	static struct skep_log log;
	const uint32_t spare = SWARM_WORKERS - 1;
	struct swarm s;
	uint64_t digest;
	swarm_record(&s, 13, 3, true);
	const struct skep_machine_log before = s.log[spare];
	live_before(&s, &log, 1, &digest);
	s.log[spare].events++;
	s.log[spare].digest = skep_mix(skep_mix(digest) ^ before.digest);
	struct skep_replay_result result = replay(&s);
	assert_int_equal(result.verdict, SKEP_REPLAY_AGREES);
	assert_true(result.whole);
	assert_int_equal(result.lives, SWARM_MACHINES + 1);
	assert_int_equal(result.unfinished, 0);

	uint8_t *end = (uint8_t *)(uintptr_t)s.log[spare].bytes + log.count;
	end[-1] ^= 1; /* of the first life's digest */
	assert_int_equal(replay(&s).verdict, SKEP_REPLAY_DIFFERS);
	end[-1] ^= 1;
	end[-16] ^= 2; /* of the count of its events */
	assert_int_equal(replay(&s).verdict, SKEP_REPLAY_DAMAGED);
	free((uint8_t *)(uintptr_t)s.log[spare].bytes);

	s.log[spare] = before;
	live_before(&s, &log, 0, &digest);
	result = replay(&s); /* the run says that all its lives have come to their end */
	assert_int_equal(result.verdict, SKEP_REPLAY_DAMAGED);
	s.log[spare].ended = false; /* it does not: one was cut off */
	result = replay(&s);
	assert_int_equal(result.verdict, SKEP_REPLAY_AGREES);
	assert_false(result.whole);
	assert_int_equal(result.life[0].machine, spare);
	assert_int_equal(result.life[0].life, 1);
	assert_int_equal(result.life[0].events, 1);
	assert_int_equal(result.run_events, 0);
	free((uint8_t *)(uintptr_t)s.log[spare].bytes);
	swarm_finish(&s);
}

/* A process that died before its START: its slot is then a newcomer's. */
static void a_life_may_end_before_it_begins(void **state)
{
	(void)state;
	const uint32_t spare = SWARM_WORKERS - 1;
	struct swarm s;
	swarm_record(&s, 13, 3, true);
	for (uint32_t i = 0; i <= spare; i += spare) {
		struct skep_log log = {.left = SKEP_LOG_ENTRY_MAX};
		const struct skep_machine_log before = s.log[i];
		assert_true(skep_log_end(&log, 0, 0, 0));
		uint8_t *bytes = malloc(log.count + before.count);
		assert_non_null(bytes);
		memcpy(bytes, log.bytes, log.count);
		memcpy(bytes + log.count, before.bytes, before.count);
		s.log[i].bytes = bytes;
		s.log[i].count += log.count;
		struct skep_replay_result result = replay(&s);
		assert_int_equal(result.verdict, i == spare ? SKEP_REPLAY_AGREES : SKEP_REPLAY_DIFFERS);
		assert_true(i != spare || (result.whole && result.lives == SWARM_MACHINES));
		s.log[i] = before;
		free(bytes);
	}
	swarm_finish(&s);
}

/* Bytes of so many entries from the log's begin on. */
static size_t bytes_of(const struct skep_machine_log *log, uint64_t entries)
{
	struct skep_wire wire = skep_wire_reader(log->bytes, log->count);
	struct skep_event event;
	uint16_t mark;
	for (uint64_t i = 0; i < entries; i++)
		skep_log_read(&wire, &event, &mark);
	assert_true(wire.ok);
	return (size_t)(wire.at - log->bytes);
}

/* A host is lost, and with it the newest part of its worker's log. What the worker sent meanwhile stands in the logs of the
 * others, which are replayed to their ends. */
static void a_lost_host_takes_the_end_of_its_log_along(void **state)
{
	(void)state;
	struct swarm s;
	uint64_t others = 0;
	swarm_record(&s, 13, 3, true);
	for (uint32_t i = 1; i < SWARM_MACHINES; i++)
		others += s.log[i].events;
	for (uint64_t kept = 1; kept < s.log[0].events; kept += 7) {
		const struct skep_machine_log before = s.log[0];
		s.log[0].count = bytes_of(&before, kept);
		s.log[0].ended = false;
		struct skep_replay_result result = replay(&s);
		assert_int_equal(result.verdict, SKEP_REPLAY_AGREES);
		assert_false(result.whole);
		assert_int_equal(result.unfinished, 1);
		assert_int_equal(result.life[0].machine, 0);
		assert_false(result.life[0].waits);
		assert_int_equal(result.events, others + kept);
		assert_true(result.believed > 0 || kept + 14 > before.events);
		s.log[0] = before;
	}
	/* A machine whose log has its end is not believed to have sent what it has not. */
	const struct skep_machine_log before = s.log[0];
	s.log[0].count = bytes_of(&before, before.events / 2);
	assert_int_equal(replay(&s).verdict, SKEP_REPLAY_DAMAGED);
	s.log[0] = before;
	swarm_finish(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_machine_may_have_several_lives),
		cmocka_unit_test(a_life_may_end_before_it_begins),
		cmocka_unit_test(a_lost_host_takes_the_end_of_its_log_along),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
