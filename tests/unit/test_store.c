/* SPDX-License-Identifier: Apache-2.0
 *
 * test_store.c - what a run leaves in the database, what a dying one leaves, a full disk, and others at the same file.
 */
#include "tests/unit/fresh.h"
#include "tests/unit/store_fixture.h"

#include "analysis/store/database.h"

#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* ---- what a run leaves ------------------------------------------------------------------------------------------ */

static void test_whole_run(void **state)
{
	(void)state;
	struct synthetic s;
	synthetic_init(&s, "it's two", 8, 2);
	record("a.db", &s);
	assert_int_equal(files("."), 1); /* no -wal, no -shm */
	assert_int_equal(
		query("a.db", "SELECT count(*) FROM runs WHERE status = 'done' AND scenario = 'it''s two'"
			      " AND digest = 'fedcba9876543210' AND final_loss IS NULL AND pace = 1 AND shape = 0"
			      " AND seed = 7 AND workers = 8 AND stages = 2 AND target_loss = 1.0"),
		1);
	assert_int_equal(query("a.db", "SELECT count(*) FROM rounds"), 20);
	assert_int_equal(
		query("a.db", "SELECT count(*) FROM stage_rounds WHERE counted = 16 AND lost = 0 AND members = 4"), 40);
	assert_int_equal(query("a.db", "SELECT count(*) FROM losses"), 20);
	assert_int_equal(query("a.db", "SELECT round(loss * 1e6) FROM losses WHERE round = 0"), 40050000);
	assert_int_equal(query("a.db", "SELECT count(*) FROM workers WHERE role = 'worker' AND alive_s = 2.0"), 8);
	assert_int_equal(query("a.db", "SELECT count(*) FROM workers WHERE role = 'directory' AND gpu IS NULL"
				       " AND first_stage IS NULL AND final_stage IS NULL AND digest IS NOT NULL"),
		1);
	assert_int_equal(query("a.db", "SELECT count(*) FROM ops"), 20 * (2 * 16 * 2 + 2 * 8));
	assert_int_equal(query("a.db", "SELECT count(*) FROM links"), 32);
	assert_int_equal(query("a.db", "SELECT count(*) FROM links WHERE class = 'inside'"
				       " AND (source + destination) % 2 = 1"),
		0);
	assert_int_equal(query("a.db", "SELECT count(*) FROM links WHERE class = 'between'"
				       " AND (source + destination) % 2 = 0"),
		0);
	assert_int_equal(query("a.db", "SELECT count(*) FROM v_ledger WHERE verdict = 'kept'"), 40);
	assert_int_equal(query("a.db", "SELECT count(*) FROM v_counted_once WHERE verdict = 'kept'"), 20 * 2 * 16);
	assert_int_equal(query("a.db", "SELECT count(*) FROM v_counted_once WHERE verdict <> 'kept'"), 0);
	assert_int_equal(query("a.db", "SELECT count(*) FROM v_throughput WHERE abs(samples_per_s - 640) < 0.01"), 20);
	assert_int_equal(
		query("a.db", "SELECT count(*) FROM v_pairs WHERE class = 'inside' AND capacity_bytes_per_s = 125e6"),
		24);
	assert_int_equal(
		query("a.db", "SELECT count(*) FROM v_pairs WHERE class = 'between' AND capacity_bytes_per_s = 25e6"),
		32);
	assert_int_equal(query("a.db", "SELECT count(*) FROM places WHERE name IN ('Frankfurt', 'Iowa')"), 2);
	assert_int_equal(query("a.db", "SELECT count(*) FROM pairs WHERE capacity_bytes_per_s IS NULL"), 2);
	synthetic_finish(&s);
}

/* As old as the oldest of the parameters that the round's gradients were computed on, as the workers told. */
static void test_staleness(void **state)
{
	(void)state;
	struct synthetic s;
	synthetic_init(&s, "prompt", 4, 2);
	record("a.db", &s);
	assert_int_equal(query("a.db", "SELECT count(*) FROM rounds WHERE staleness = 0"), 20);
	synthetic_finish(&s);
	synthetic_init(&s, "delayed", 4, 2);
	s.scenario.plan.delayed = true;
	record("b.db", &s);
	assert_int_equal(query("b.db", "SELECT staleness FROM rounds WHERE round = 0"), 0);
	assert_int_equal(query("b.db", "SELECT count(*) FROM rounds WHERE staleness = 1 AND round > 0"), 19);
	synthetic_finish(&s);
}

/* SQLite refuses the value of one column: that is what is reported, and no row is written without it. */
/* A row when it has ended: with a perplexity where there are tokens, without a loss where there is none. */
static void test_validations(void **state)
{
	(void)state;
	struct synthetic s;
	const char *path = "a.db";
	synthetic_init(&s, "judged", 4, 2);
	for (int i = 0; i < 2; i++) {
		struct skep_store *store = must_open(path, true);
		s.scenario.model.sequence = i == 0 ? 0 : 16;
		must_begin(store, &s);
		struct skep_recorder recorder = skep_store_recorder(store);
		synthetic_round(&s, &recorder, 0, true);
		static const struct skep_note notes[] = {{.kind = SKEP_NOTE_VALIDATING, .round = 1, .microbatch = 5},
			{.kind = SKEP_NOTE_VALIDATED, .round = 1, .microbatch = 4, .value = 2000000000},
			{.kind = SKEP_NOTE_VALIDATING, .round = 2, .microbatch = 5},
			{.kind = SKEP_NOTE_VALIDATED, .round = 2},
			{.kind = SKEP_NOTE_VALIDATING, .round = 3, .microbatch = 5}};
		for (uint64_t n = 0; n < sizeof notes / sizeof notes[0]; n++) {
			if (skep_note_ends(notes[n].kind))
				recorder.sent(recorder.context, &(struct skep_sent){.bytes = {10, 7, 3, 2}});
			synthetic_note(&recorder, (n + 1) * 1000000000, 4, notes[n]);
		}
		skep_store_close(store); /* without an end: what has ended is there all the same */
	}
	assert_int_equal(query(path, "SELECT count(*) FROM validations"), 4);
	assert_int_equal(query(path, "SELECT count(*) FROM validations WHERE round = 1 AND step = 1 AND began_s = 1"
				     " AND ended_s = 2 AND asked = 5 AND counted = 4 AND loss = 2"),
		2);
	assert_int_equal(
		query(path, "SELECT count(*) FROM validations WHERE round = 2 AND counted = 0 AND loss IS NULL"), 2);
	assert_int_equal(query(path, "SELECT count(*) FROM validations WHERE abs(perplexity - 7.389056) < 1e-6"), 1);
	assert_int_equal(query(path, "SELECT samples FROM v_validations WHERE run = 1 AND round = 1"), 8 * 4);
	assert_int_equal(
		query(path, "SELECT bytes FROM v_validations WHERE run = 1 AND round = 2"), 12000 + 2 * (10 + 7));
	assert_int_equal(query(path, "SELECT bytes_sync FROM v_validations WHERE run = 2 AND round = 1"), 8000 + 7);
	assert_int_equal(query(path, "SELECT bytes_pipeline FROM rounds WHERE run = 2 AND round = 0"), 4000);
	synthetic_finish(&s);
}

static void test_refused_value(void **state)
{
	(void)state;
	struct synthetic s;
	int64_t run;
	synthetic_init(&s, "small", 4, 2);
	free(s.scenario.text);
	s.scenario.text = calloc(1, 2001);
	memset(s.scenario.text, '#', 2000);
	struct skep_store *store = must_open("a.db", true);
	sqlite3_limit(skep_store_database(store), SQLITE_LIMIT_LENGTH, 1000);
	assert_false(skep_store_begin(store, &s.scenario, "sim", "cpu", 0, 0, &run, fresh(&error)));
	if (strstr(error.message, "too big") == NULL)
		fail_msg("%s", error.message);
	s.scenario.text[100] = '\0';
	must_begin(store, &s);
	skep_store_close(store);
	assert_int_equal(query("a.db", "SELECT count(*) FROM runs"), 1);
	synthetic_finish(&s);
}

static void test_lost_worker(void **state)
{
	(void)state;
	struct synthetic s;
	synthetic_init(&s, "lossy", 6, 3);
	s.lost_round = 4;
	record("a.db", &s);
	assert_int_equal(query("a.db", "SELECT lost FROM stage_rounds WHERE round = 4 AND stage = 2"), 6);
	assert_int_equal(query("a.db", "SELECT members FROM stage_rounds WHERE round = 4 AND stage = 2"), 1);
	assert_int_equal(query("a.db", "SELECT count(*) FROM v_ledger WHERE verdict <> 'kept'"), 0);
	assert_int_equal(query("a.db", "SELECT count(*) FROM v_counted_once WHERE verdict <> 'kept'"), 0);
	assert_int_equal(query("a.db", "SELECT count(*) FROM v_counted_once WHERE lost = 1"), 6);
	assert_int_equal(query("a.db", "SELECT peer FROM notes WHERE kind = 'fenced'"), 5);
	synthetic_finish(&s);
}

static void test_several_runs_one_store(void **state)
{
	(void)state;
	struct synthetic s;
	synthetic_init(&s, "again", 4, 2);
	struct skep_store *store = must_open("a.db", true);
	struct skep_recorder recorder = skep_store_recorder(store);
	for (int i = 0; i < 3; i++) {
		int64_t run = must_begin(store, &s);
		assert_int_equal(run, i + 1);
		synthetic_feed(&s, &recorder);
		assert_true(end_run(store, run));
	}
	synthetic_feed(&s, &recorder); /* outside of a run: not heard */
	assert_false(end_run(store, 3));
	skep_store_close(store);
	assert_int_equal(query("a.db", "SELECT count(*) FROM rounds"), 60);
	synthetic_finish(&s);
}

static void test_caps(void **state)
{
	(void)state;
	struct synthetic s;
	synthetic_init(&s, "long", 2, 1);
	struct skep_store *store = must_open("a.db", true);
	int64_t run = must_begin(store, &s);
	struct skep_recorder recorder = skep_store_recorder(store);
	for (uint32_t i = 0; i < 30000; i++)
		synthetic_op(&s, &recorder, SKEP_OP_FORWARD, SKEP_LANE_COMPUTE, i, 0, 0, 0, 0.5);
	assert_true(end_run(store, run));
	assert_int_equal(query("a.db", "SELECT count(*) FROM ops WHERE run = 1"), 25000); /* half of 50,000 */
	run = must_begin(store, &s);
	skep_store_keep_details(store);
	recorder = skep_store_recorder(store);
	for (uint32_t i = 0; i < 150000; i++) {
		synthetic_op(&s, &recorder, SKEP_OP_FORWARD, SKEP_LANE_COMPUTE, i, 0, 0, 0, 0.5);
		synthetic_note(
			&recorder, i, 0, (struct skep_note){.kind = SKEP_NOTE_COUNTED, .round = 9, .microbatch = i});
	}
	synthetic_op(&s, &recorder, SKEP_OP_FORWARD, SKEP_LANE_COMPUTE, 1, 0, 1, 0, 0.5); /* the other has room */
	assert_true(end_run(store, run));
	skep_store_close(store);
	assert_int_equal(query("a.db", "SELECT count(*) FROM ops WHERE run = 2 AND worker = 0"), 100000);
	assert_int_equal(query("a.db", "SELECT count(*) FROM ops WHERE worker = 1"), 1);
	assert_int_equal(query("a.db", "SELECT ops_dropped FROM runs WHERE id = 2"), 50000);
	assert_int_equal(query("a.db", "SELECT notes_dropped FROM runs WHERE id = 2"), 50000);
	assert_int_equal(query("a.db", "SELECT count(*) FROM notes"), 100000);
	synthetic_finish(&s);
}

/* A world that reports nonsense does no harm. */
static void test_out_of_range(void **state)
{
	(void)state;
	struct synthetic s;
	synthetic_init(&s, "odd", 2, 1);
	struct skep_store *store = must_open("a.db", true);
	int64_t run = must_begin(store, &s);
	struct skep_recorder r = skep_store_recorder(store);
	r.op(r.context, &(struct skep_op_span){.worker = 2, .kind = SKEP_OP_STEP});
	r.op(r.context, &(struct skep_op_span){.kind = SKEP_OP_KINDS});
	r.op(r.context, &(struct skep_op_span){.kind = SKEP_OP_STEP, .lane = SKEP_LANES});
	r.link(r.context, &(struct skep_link_use){.source = 3});
	r.link(r.context, &(struct skep_link_use){.traffic = SKEP_TRAFFICS});
	r.worker(r.context, &(struct skep_worker_use){.index = 3});
	synthetic_note(&r, 0, 3, (struct skep_note){.kind = SKEP_NOTE_LOST});
	synthetic_note(&r, 0, 0, (struct skep_note){.kind = SKEP_NOTE_KINDS});
	synthetic_note(&r, 0, 2, (struct skep_note){.kind = SKEP_NOTE_MEMBER, .stage = 9});
	synthetic_note(&r, 0, 2, (struct skep_note){.kind = SKEP_NOTE_STAGE_COMMITTED, .stage = 9});
	synthetic_note(&r, 0, 2, (struct skep_note){.kind = SKEP_NOTE_ROUND_CLOSED, .round = 5});
	assert_true(end_run(store, run));
	skep_store_close(store);
	assert_int_equal(query("a.db", "SELECT count(*) FROM ops"), 0);
	assert_int_equal(query("a.db", "SELECT count(*) FROM rounds"), 0);
	synthetic_finish(&s);
}

static void test_loss_after_close(void **state)
{
	(void)state;
	struct synthetic s;
	synthetic_init(&s, "late", 2, 1);
	struct skep_store *store = must_open("a.db", true);
	int64_t run = must_begin(store, &s);
	struct skep_recorder r = skep_store_recorder(store);
	synthetic_note(&r, 5, 2, (struct skep_note){.kind = SKEP_NOTE_ROUND_OPENED, .round = 0});
	synthetic_note(&r, 9, 2, (struct skep_note){.kind = SKEP_NOTE_ROUND_CLOSED, .round = 0, .microbatch = 4});
	synthetic_note(&r, 9, 2, (struct skep_note){.kind = SKEP_NOTE_LOSS, .round = 0, .value = 2500000000});
	synthetic_note(&r, 10, 2, (struct skep_note){.kind = SKEP_NOTE_ROUND_OPENED, .round = 1});
	synthetic_note(&r, 11, 2, (struct skep_note){.kind = SKEP_NOTE_LOSS, .round = 1, .value = INT64_MAX});
	synthetic_note(&r, 12, 2, (struct skep_note){.kind = SKEP_NOTE_ROUND_CLOSED, .round = 1, .microbatch = 4});
	assert_true(end_run(store, run));
	skep_store_close(store);
	assert_int_equal(query("a.db", "SELECT count(*) FROM rounds WHERE round = 0 AND loss = 2.5 AND issued = 4"), 1);
	assert_int_equal(query("a.db", "SELECT count(*) FROM rounds WHERE round = 1 AND loss = 9e999"), 1);
	synthetic_finish(&s);
}

/* ---- a run that dies -------------------------------------------------------------------------------------------- */

static void test_killed(void **state)
{
	(void)state;
	struct synthetic s;
	synthetic_init(&s, "killed", 8, 2);
	pid_t pid = fork();
	if (pid == 0) {
		struct skep_store *store = must_open("a.db", true);
		must_begin(store, &s);
		struct skep_recorder recorder = skep_store_recorder(store);
		for (uint32_t round = 0; round <= 7; round++)
			synthetic_round(&s, &recorder, round, round < 7);
		raise(SIGKILL);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	struct skep_store *reader = must_open("a.db", false);
	assert_int_equal(query("a.db", "SELECT count(*) FROM runs WHERE status = 'running' AND digest IS NULL"), 1);
	assert_int_equal(query("a.db", "SELECT count(*) FROM rounds"), 7);
	assert_int_equal(query("a.db", "SELECT count(*) FROM v_ledger WHERE verdict = 'kept'"), 14);
	assert_int_equal(query("a.db", "SELECT count(*) FROM v_counted_once WHERE verdict <> 'kept'"), 0);
	skep_store_close(reader);
	record("a.db", &s); /* the next writer notices */
	assert_int_equal(query("a.db", "SELECT count(*) FROM runs WHERE status = 'dead'"), 1);
	assert_int_equal(query("a.db", "SELECT count(*) FROM runs WHERE status = 'done'"), 1);
	assert_int_equal(query("a.db", "SELECT count(*) FROM rounds WHERE run = 1"), 7);
	synthetic_finish(&s);
}

static void test_living_run_is_not_dead(void **state)
{
	(void)state;
	struct synthetic s;
	synthetic_init(&s, "alive", 2, 1);
	struct skep_store *first = must_open("a.db", true);
	int64_t run = must_begin(first, &s);
	struct skep_store *second = must_open("a.db", true);
	assert_int_equal(query("a.db", "SELECT count(*) FROM runs WHERE status = 'running'"), 1);
	skep_store_close(second);
	assert_true(end_run(first, run));
	skep_store_close(first);
	synthetic_finish(&s);
}

/* ---- a full disk ------------------------------------------------------------------------------------------------ */

/* In a process of its own: how much may be written, and whether the run was told. */
static void run_into_full_disk(const struct synthetic *s, rlim_t more, const char *path)
{
	struct skep_store *store = must_open(path, true);
	struct stat st = {0};
	int64_t run = must_begin(store, s);
	char wal[128];
	snprintf(wal, sizeof wal, "%s-wal", path);
	stat(wal, &st);
	if (more > 0) {
		struct rlimit limit = {(rlim_t)st.st_size + more, RLIM_INFINITY};
		signal(SIGXFSZ, SIG_IGN);
		setrlimit(RLIMIT_FSIZE, &limit);
	}
	struct skep_recorder recorder = skep_store_recorder(store);
	synthetic_feed(s, &recorder);
	bool ended = end_run(store, run);
	skep_store_close(store);
	_exit(ended ? 1 : strstr(error.message, "is full: free some space") == NULL ? 2 : 0);
}

static void test_disk_limit_in_a_run(void **state)
{
	(void)state;
	struct synthetic s;
	synthetic_init(&s, "full", 8, 2);
	s.rounds = 200;
	pid_t pid = fork();
	if (pid == 0)
		run_into_full_disk(&s, 200000, "a.db");
	int status;
	waitpid(pid, &status, 0);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	struct skep_store *reader = must_open("a.db", false);
	skep_store_close(reader);
	int64_t rounds = query("a.db", "SELECT count(*) FROM rounds");
	assert_in_range(rounds, 2, 199);
	assert_int_equal(query("a.db", "SELECT max(round) + 1 FROM rounds"), rounds);
	assert_int_equal(query("a.db", "SELECT count(*) FROM v_ledger WHERE verdict <> 'kept'"), 0);
	assert_int_equal(query("a.db", "SELECT count(*) FROM runs WHERE status = 'dead'"), 1);
	synthetic_finish(&s);
}

static void test_disk_limit_at_once(void **state)
{
	(void)state;
	pid_t pid = fork();
	if (pid == 0) {
		signal(SIGXFSZ, SIG_IGN);
		setrlimit(RLIMIT_FSIZE, &(struct rlimit){3000, RLIM_INFINITY});
		struct skep_store *store = skep_store_open("a.db", true, fresh(&error));
		_exit(store != NULL                                                                      ? 1
			: strstr(error.message, "a.db") == NULL || strstr(error.message, "disk") == NULL ? 2
													 : 0);
	}
	int status;
	waitpid(pid, &status, 0);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(files("."), 0);
}

/* The real thing, where file systems may be mounted. */
static void test_full_disk(void **state)
{
	(void)state;
	assert_int_equal(mkdir("small", 0777), 0);
	if (mount("none", "small", "tmpfs", 0, "size=600k") != 0)
		skip();
	struct synthetic s;
	synthetic_init(&s, "full", 8, 2);
	s.rounds = 200;
	pid_t pid = fork();
	if (pid == 0)
		run_into_full_disk(&s, 0, "small/a.db");
	int status;
	waitpid(pid, &status, 0);
	struct skep_store *reader = skep_store_open("small/a.db", false, fresh(&error));
	int64_t rounds = reader ? query("small/a.db", "SELECT count(*) FROM rounds") : -1;
	int64_t dead = reader ? query("small/a.db", "SELECT count(*) FROM runs WHERE status = 'dead'") : -1;
	skep_store_close(reader);
	umount("small");
	assert_int_equal(mount("none", "small", "tmpfs", 0, "size=16k"), 0);
	struct skep_store *none = skep_store_open("small/b.db", true, fresh(&error));
	int left = files("small");
	umount("small");
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_in_range(rounds, 1, 199);
	assert_int_equal(dead, 1);
	assert_null(none);
	assert_non_null(strstr(error.message, "full"));
	assert_int_equal(left, 0);
	synthetic_finish(&s);
}

/* ---- others at the same database -------------------------------------------------------------------------------- */

static void test_locked_for_a_while(void **state)
{
	(void)state;
	struct synthetic s;
	sqlite3 *other = NULL;
	synthetic_init(&s, "patient", 8, 2);
	struct skep_store *store = must_open("a.db", true);
	int64_t run = must_begin(store, &s);
	struct skep_recorder recorder = skep_store_recorder(store);
	for (uint32_t round = 0; round < 5; round++)
		synthetic_round(&s, &recorder, round, true);
	assert_int_equal(sqlite3_open("a.db", &other), SQLITE_OK);
	assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	for (uint32_t round = 5; round < 15; round++)
		synthetic_round(&s, &recorder, round, true);
	assert_int_equal(query("a.db", "SELECT count(*) FROM rounds"), 5);
	sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL);
	sqlite3_close(other);
	for (uint32_t round = 15; round < 20; round++)
		synthetic_round(&s, &recorder, round, true);
	assert_int_equal(query("a.db", "SELECT count(*) FROM rounds"), 20);
	assert_true(end_run(store, run));
	skep_store_close(store);
	assert_int_equal(query("a.db", "SELECT count(*) FROM v_counted_once WHERE verdict <> 'kept'"), 0);
	synthetic_finish(&s);
}

/* Until the end and past the patience: it is said, the run keeps what was written, and is marked once that works. */
static void test_locked_at_the_end(void **state)
{
	(void)state;
	struct synthetic s;
	sqlite3 *other = NULL;
	char *said = NULL;
	size_t length;
	synthetic_init(&s, "patient", 8, 2);
	struct skep_store *store = must_open("a.db", true);
	FILE *say = open_memstream(&said, &length);
	skep_store_patience(store, 2, say);
	int64_t run = must_begin(store, &s);
	struct skep_recorder recorder = skep_store_recorder(store);
	for (uint32_t round = 0; round < 5; round++)
		synthetic_round(&s, &recorder, round, true);
	assert_int_equal(sqlite3_open("a.db", &other), SQLITE_OK);
	assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	for (uint32_t round = 5; round < 15; round++)
		synthetic_round(&s, &recorder, round, true);
	assert_false(end_run(store, run));
	fclose(say);
	assert_non_null(strstr(said, "a.db is locked by another program: run 1 waits with its last 10 rounds"));
	assert_non_null(strstr(error.message, "run 1 was not recorded to its end: a.db: locked by another program"));
	assert_int_equal(query("a.db", "SELECT count(*) FROM runs WHERE status = 'running'"), 1);
	sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL);
	sqlite3_close(other);
	skep_store_close(store);
	assert_int_equal(query("a.db", "SELECT count(*) FROM rounds"), 5);
	free(said);
	synthetic_finish(&s);
}

/* A recording that failed for a reason of its own is marked at once: no reader takes the run for one that goes on. */
static void test_failed_recording_is_marked(void **state)
{
	(void)state;
	struct synthetic s;
	synthetic_init(&s, "broken off", 8, 2);
	struct skep_store *store = must_open("a.db", true);
	int64_t run = must_begin(store, &s);
	struct skep_recorder recorder = skep_store_recorder(store);
	change("a.db",
		"CREATE TRIGGER no BEFORE INSERT ON rounds WHEN NEW.round = 3 BEGIN SELECT RAISE(ABORT, 'no'); END");
	for (uint32_t round = 0; round < 6; round++)
		synthetic_round(&s, &recorder, round, true);
	assert_false(end_run(store, run));
	assert_non_null(strstr(error.message, "run 1 was not recorded to its end"));
	skep_store_close(store);
	assert_int_equal(query("a.db", "SELECT count(*) FROM rounds"), 3);
	assert_int_equal(query("a.db", "SELECT count(*) FROM runs WHERE status = 'dead'"), 1);
	synthetic_finish(&s);
}

static void test_many_at_once(void **state)
{
	(void)state;
	enum { PROCESSES = 6 };
	pid_t pid[PROCESSES];
	struct synthetic s;
	synthetic_init(&s, "crowd", 8, 2);
	for (int i = 0; i < PROCESSES; i++) {
		pid[i] = fork();
		if (pid[i] == 0) {
			bool ok = try_record("a.db", &s);
			if (!ok)
				fprintf(stderr, "%s\n", error.message);
			_exit(!ok);
		}
	}
	for (int i = 0; i < PROCESSES; i++) {
		int status;
		waitpid(pid[i], &status, 0);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
	assert_int_equal(query("a.db", "SELECT count(*) FROM runs WHERE status = 'done'"), PROCESSES);
	assert_int_equal(query("a.db", "SELECT count(*) FROM rounds"), 20 * PROCESSES);
	assert_int_equal(query("a.db", "SELECT count(*) FROM v_counted_once WHERE verdict <> 'kept'"), 0);
	synthetic_finish(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_whole_run),
		TEST(test_staleness),
		TEST(test_validations),
		TEST(test_refused_value),
		TEST(test_lost_worker),
		TEST(test_several_runs_one_store),
		TEST(test_caps),
		TEST(test_out_of_range),
		TEST(test_loss_after_close),
		TEST(test_killed),
		TEST(test_living_run_is_not_dead),
		TEST(test_disk_limit_in_a_run),
		TEST(test_disk_limit_at_once),
		TEST(test_full_disk),
		TEST(test_locked_for_a_while),
		TEST(test_locked_at_the_end),
		TEST(test_failed_recording_is_marked),
		TEST(test_many_at_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
