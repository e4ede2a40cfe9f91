/* SPDX-License-Identifier: Apache-2.0
 *
 * test_store_log.c - event logs in the database: what was written comes back, round by round; what is damaged, incomplete or
 * not there is refused with a reason.
 */
#include "tests/unit/fresh.h"
#include "tests/unit/store_fixture.h"

#include "analysis/store/store_log.h"
#include "core/hash.h"
#include "scenarios/read/sources.h"

#define PATH "log.db"

static uint8_t byte_of(uint32_t machine, size_t i)
{
	return (uint8_t)(17 * machine + i * i + (i >> 8));
}

static void hear(const struct skep_recorder *r, uint32_t machine, size_t first, uint32_t count)
{
	uint8_t bytes[5000];
	for (uint32_t i = 0; i < count; i++)
		bytes[i] = byte_of(machine, first + i);
	r->log(r->context, machine, bytes, count);
}

/* A run of `world` whose machine i has a log of (i + 1) * 4,000 bytes in four parts, two of them before a round closes. */
static int64_t record_logs(const struct synthetic *s, const char *world, bool end)
{
	int64_t run = 0;
	struct skep_store *store = must_open(PATH, true);
	assert_true(skep_store_begin(store, &s->scenario, world, "cpu", true, false, &run, fresh(&error)));
	struct skep_recorder r = skep_store_recorder(store);
	uint32_t machines = s->scenario.plan.workers + 1;
	for (uint32_t part = 0; part < 4; part++) {
		for (uint32_t i = 0; i < machines; i++) {
			for (uint32_t piece = 0; piece <= i; piece++)
				hear(&r, i, (size_t)(part * (i + 1) + piece) * 1000, 1000);
		}
		if (part == 1)
			synthetic_round(s, &r, 0, true);
	}
	r.log(r.context, machines, (const uint8_t *)"x", 1); /* no such machine */
	if (end)
		synthetic_uses(s, &r);
	if (end)
		assert_true(end_run(store, run));
	skep_store_close(store);
	return run;
}

static bool read_log(int64_t run, struct skep_run_log *ret)
{
	struct skep_store *store = must_open(PATH, false);
	bool ok = skep_run_log_read(store, run, ret, fresh(&error));
	skep_store_close(store);
	return ok;
}

static void refused(int64_t run, const char *reason)
{
	struct skep_run_log log;
	assert_false(read_log(run, &log));
	assert_null(log.machine);
	if (strstr(error.message, reason) == NULL)
		fail_msg("%s", error.message);
}

static void a_log_comes_back(void **state)
{
	(void)state;
	struct synthetic s;
	struct skep_run_log log;
	synthetic_init(&s, "logged", 4, 2);
	int64_t run = record_logs(&s, "real", true);
	assert_true(read_log(run, &log));
	assert_int_equal(log.machines, s.scenario.plan.workers + 1);
	assert_string_equal(log.text, s.scenario.text ? s.scenario.text : "");
	assert_string_equal(log.path, s.scenario.path);
	for (uint32_t i = 0; i < log.machines; i++) {
		assert_int_equal(log.machine[i].count, (i + 1) * 4000);
		for (size_t b = 0; b < log.machine[i].count; b++)
			assert_int_equal(log.machine[i].bytes[b], byte_of(i, b));
		assert_true(log.machine[i].ended);
	}
	skep_run_log_finish(&log);
	synthetic_finish(&s);
}

/* Only what was heard before the last closed round is there, and how the machines ended is not known. */
static void a_run_that_died_has_a_log(void **state)
{
	(void)state;
	struct synthetic s;
	struct skep_run_log log;
	synthetic_init(&s, "logged", 4, 2);
	int64_t run = record_logs(&s, "real", false);
	assert_true(read_log(run, &log));
	for (uint32_t i = 0; i < log.machines; i++) {
		assert_int_equal(log.machine[i].count, (i + 1) * 2000);
		assert_false(log.machine[i].ended);
	}
	skep_run_log_finish(&log);
	synthetic_finish(&s);
}

static void runs_without_a_log_are_refused(void **state)
{
	(void)state;
	struct synthetic s;
	synthetic_init(&s, "logged", 4, 2);
	int64_t simulated = record_logs(&s, "sim", true), real = record_logs(&s, "real", true);
	refused(99, "there is no run 99");
	refused(simulated, "name a real one");
	change(PATH, "DELETE FROM event_log");
	refused(real, "has no log");
	synthetic_finish(&s);
}

static void a_damaged_log_is_refused(void **state)
{
	(void)state;
	static const char *const damage[] = {
		"UPDATE event_log SET bytes = zeroblob(1000) WHERE worker = 1 AND part = 2",
		"UPDATE event_log SET bytes = substr(bytes, 1, 999) WHERE worker = 1 AND part = 2",
		"UPDATE event_log SET bytes = x'' WHERE worker = 1 AND part = 2",
		"UPDATE event_log SET checksum = checksum - 1 WHERE worker = 1 AND part = 2",
		"DELETE FROM event_log WHERE worker = 1 AND part = 2", "DELETE FROM event_log WHERE part = 0",
		"UPDATE event_log SET worker = 1000 WHERE worker = 1",
		"UPDATE event_log SET worker = -1 WHERE worker = 1",
		"UPDATE event_log SET part = 9223372036854775807 WHERE worker = 1 AND part = 2"};
	struct synthetic s;
	synthetic_init(&s, "logged", 4, 2);
	for (size_t i = 0; i < sizeof damage / sizeof damage[0]; i++) {
		int64_t run = record_logs(&s, "real", true);
		change(PATH, damage[i]);
		refused(run, "is damaged: part ");
		change(PATH, "DELETE FROM event_log");
	}
	int64_t run = record_logs(&s, "real", true);
	change(PATH, "UPDATE runs SET workers = 1000000000000");
	refused(run, "is damaged");
	synthetic_finish(&s);
}

/* ---- the files of a scenario ------------------------------------------------------------------------------------- */

static void write_file(const char *path, size_t bytes, char letter)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	for (size_t i = 0; i < bytes; i++)
		putc(letter, file);
	assert_int_equal(fclose(file), 0);
}

static void name_files(struct skep_scenario *scenario)
{
	snprintf(scenario->model.path, sizeof scenario->model.path, "model");
	snprintf(scenario->topology.path, sizeof scenario->topology.path, "place");
	snprintf(scenario->trace_path, sizeof scenario->trace_path, "trace");
	write_file("model", 100, 'm');
	write_file("place", SKEP_SOURCE_TEXT_MAX, 'p');
	write_file("trace", SKEP_SOURCE_TEXT_MAX + 1, 't');
}

static void files_are_kept(void **state)
{
	(void)state;
	struct synthetic s;
	synthetic_init(&s, "named", 4, 2);
	name_files(&s.scenario);
	record_logs(&s, "sim", true);
	assert_int_equal(query(PATH, "SELECT count(*) FROM sources"), 3);
	assert_int_equal(query(PATH, "SELECT length(text) FROM sources WHERE path = 'model'"), 100);
	assert_int_equal(query(PATH, "SELECT length(text) FROM sources WHERE path = 'place'"), SKEP_SOURCE_TEXT_MAX);
	assert_int_equal(query(PATH, "SELECT bytes FROM sources WHERE path = 'trace' AND text IS NULL"),
		SKEP_SOURCE_TEXT_MAX + 1);
	synthetic_finish(&s);
}

static void a_changed_file_is_named(void **state)
{
	(void)state;
	struct synthetic s;
	struct skep_run_log log;
	synthetic_init(&s, "named", 4, 2);
	name_files(&s.scenario);
	assert_true(read_log(record_logs(&s, "real", true), &log));
	assert_null(skep_run_sources_changed(&log.sources, &s.scenario));
	assert_null(skep_run_sources_changed(&log.sources, NULL));
	write_file("trace", SKEP_SOURCE_TEXT_MAX + 1, 'u'); /* as long as before */
	assert_string_equal(skep_run_sources_changed(&log.sources, &s.scenario), "trace");
	write_file("place", SKEP_SOURCE_TEXT_MAX - 1, 'p');
	assert_string_equal(skep_run_sources_changed(&log.sources, &s.scenario), "place");
	assert_string_equal(skep_run_sources_changed(&log.sources, NULL), "place");
	assert_int_equal(unlink("model"), 0);
	assert_string_equal(skep_run_sources_changed(&log.sources, &s.scenario), "model");
	assert_string_equal(skep_run_sources_changed(&log.sources, NULL), "place"); /* it may be elsewhere now */
	skep_run_log_finish(&log);
	synthetic_finish(&s);
}

/* The published values of FNV-1a, on which checksums in old databases depend. */
static void the_checksum_is_fnv_1a(void **state)
{
	(void)state;
	assert_true(skep_hash_bytes(SKEP_HASH_EMPTY, "", 0) == UINT64_C(0xcbf29ce484222325));
	assert_true(skep_hash_bytes(SKEP_HASH_EMPTY, "a", 1) == UINT64_C(0xaf63dc4c8601ec8c));
	assert_true(skep_hash_bytes(SKEP_HASH_EMPTY, "foobar", 6) == UINT64_C(0x85944171f73967e8));
}

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(a_log_comes_back), TEST(a_run_that_died_has_a_log),
		TEST(runs_without_a_log_are_refused), TEST(a_damaged_log_is_refused), TEST(files_are_kept),
		TEST(a_changed_file_is_named), TEST(the_checksum_is_fnv_1a)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
