/* SPDX-License-Identifier: Apache-2.0
 *
 * test_rerun.c - lost work that is run again (schedule.on_loss: rerun): the directory's part event by event (rerun.c), and a
 * simulated run in which ten workers die. Workers 0 .. n-1 serve their index modulo the stages; in two stages 0 and 2 own the
 * microbatches, in three 0 and 3. Four microbatches a round; passes are counted by attempts: the first count is attempt 1, and
 * what it finds missing travels with that number.
 */
#include "machine_fixture.h"

#include "scenarios/read/scenario.h"
#include "sim/sim.h"

static void begin(struct fixture *f, uint32_t stages)
{
	fixture_init(f, 2 * stages, stages, 2 * stages);
	f->plan.on_loss = SKEP_ON_LOSS_RERUN;
	f->plan.liveness.wait_for_join_ns = 100 * SECOND_NS;
	fixture_start(f);
}

static struct skep_message from_worker(const struct fixture *f, enum skep_message_kind kind, uint32_t worker)
{
	return fixture_message(kind, worker, f->plan.workers, 0);
}

static void finish(struct fixture *f, uint32_t owner, uint32_t microbatch, uint32_t attempt, bool ok)
{
	struct skep_message message = from_worker(f, SKEP_MESSAGE_FINISHED, owner);
	message.microbatch = microbatch;
	message.attempt = attempt;
	message.u.finished.ok = ok;
	fixture_deliver(f, message);
}

/* The round's first pass comes to its end; with `ok` false nothing of it came back. */
static void finish_all(struct fixture *f, bool ok)
{
	for (uint32_t microbatch = 0; microbatch < 4; microbatch++)
		finish(f, microbatch / 2 * f->plan.stages, microbatch, 0, ok);
}

static void tally(struct fixture *f, struct skep_peer worker, uint32_t attempt, uint32_t bits)
{
	struct skep_message message = from_worker(f, SKEP_MESSAGE_TALLY, worker.index);
	message.from.epoch = worker.epoch;
	message.attempt = attempt;
	for (uint16_t i = 0; i < 4; i++) {
		if (bits >> i & 1)
			message.u.tally.offset[message.u.tally.used++] = i;
	}
	message.u.tally.count = message.u.tally.used;
	fixture_deliver(f, message);
}

/* Every worker tells of the microbatches in bits[worker]. */
static void tell_all(struct fixture *f, uint32_t attempt, const uint32_t *bits)
{
	for (uint32_t i = 0; i < f->plan.workers; i++)
		tally(f, (struct skep_peer){i, 1}, attempt, bits[i]);
}

static void suspect(struct fixture *f, uint32_t worker)
{
	struct skep_event event = {.kind = SKEP_EVENT_SUSPECT};
	event.u.peer = (struct skep_peer){worker, 1};
	fixture_event(f, event);
}

/* The last step asks just these workers (a bit each) what they have counted. */
static void expect_asked(const struct fixture *f, uint32_t attempt, uint32_t workers)
{
	uint32_t asked = 0;
	const struct skep_action *a;
	for (uint32_t i = 0; (a = fixture_find(f, SKEP_ACTION_SEND, SKEP_MESSAGE_REDUCE, i)) != NULL; i++) {
		assert_int_equal(a->u.send.u.reduce.size, 0);
		assert_int_equal(a->u.send.attempt, attempt);
		asked |= 1u << a->u.send.to.index;
	}
	assert_int_equal(asked, workers);
}

/* The n-th grant of the last step, and its note; returns whom it is for. */
static uint32_t expect_again(
	const struct fixture *f, uint32_t n, uint32_t attempt, uint32_t microbatch, uint16_t first, uint16_t last)
{
	const struct skep_action *a = fixture_find(f, SKEP_ACTION_SEND, SKEP_MESSAGE_GRANT, n);
	const struct skep_action *noted = fixture_find(f, SKEP_ACTION_NOTE, SKEP_NOTE_RERUN, n);
	assert_true(a && noted);
	const struct skep_message *grant = &a->u.send;
	assert_int_equal(grant->u.grant.count, 1);
	assert_int_equal(grant->microbatch, microbatch);
	assert_int_equal(grant->attempt, attempt);
	assert_int_equal(grant->span.first, first);
	assert_int_equal(grant->span.last, last);
	assert_int_equal(noted->u.note.microbatch, microbatch);
	assert_int_equal(skep_note_value(&noted->u.note), (int64_t)attempt << 32 | (int64_t)first << 16 | last);
	assert_int_equal(noted->u.note.peer.index, grant->to.index);
	return grant->to.index;
}

static void expect_no_more(const struct fixture *f, uint32_t grants)
{
	assert_null(fixture_find(f, SKEP_ACTION_SEND, SKEP_MESSAGE_GRANT, grants));
	assert_null(fixture_noted(f, SKEP_NOTE_ISSUED));
}

/* ---- what is missing --------------------------------------------------------------------------------------------- */

static void test_what_is_missing_is_granted_again(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 2);
	finish_all(&f, true);
	expect_asked(&f, 1, 15);
	tell_all(&f, 1, (const uint32_t[]){3, 1, 4, 4}); /* stage 1 lacks 1, both lack 3 */
	uint32_t one = expect_again(&f, 0, 1, 1, 1, 1), three = expect_again(&f, 1, 1, 3, 0, 1);
	assert_int_equal(one | three, 2); /* an owner each */
	expect_no_more(&f, 2);
	assert_null(fixture_sent(&f, SKEP_MESSAGE_REDUCE));
	finish(&f, one, 1, 1, true);
	assert_int_equal(f.out.count, 0);
	finish(&f, three, 3, 1, true);
	expect_asked(&f, 2, 15);
	fixture_finish(&f);
}

static void test_a_gap_between_two_runs_of_stages_takes_two_passes(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 3);
	finish_all(&f, true);
	expect_asked(&f, 1, 63);
	tell_all(&f, 1, (const uint32_t[]){14, 15, 14, 0, 0, 0}); /* only stage 1 has 0 */
	uint32_t owner = expect_again(&f, 0, 1, 0, 0, 0);
	expect_no_more(&f, 1);
	finish(&f, owner, 0, 1, true);
	expect_asked(&f, 2, 63);
	tell_all(&f, 2, (const uint32_t[]){15, 15, 14, 0, 0, 0});
	owner = expect_again(&f, 0, 2, 0, 2, 2);
	finish(&f, owner, 0, 2, true);
	expect_asked(&f, 3, 63);
	fixture_finish(&f);
}

/* Nothing that is abandoned is replaced by a fresh one: the count finds it. */
static void test_what_was_abandoned_waits_for_the_count(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 2);
	finish(&f, 0, 1, 0, false);
	expect_no_more(&f, 0);
	finish(&f, 0, 0, 0, true);
	finish(&f, 2, 2, 0, true);
	finish(&f, 2, 3, 0, true);
	expect_asked(&f, 1, 15);
	tell_all(&f, 1, (const uint32_t[]){1, 1, 12, 12});
	uint32_t owner = expect_again(&f, 0, 1, 1, 0, 1);
	finish(&f, owner, 1, 0, true); /* late word of the first pass */
	assert_int_equal(f.out.count, 0);
	finish(&f, owner, 1, 1, false); /* lost once more */
	expect_asked(&f, 2, 15);
	tell_all(&f, 2, (const uint32_t[]){1, 1, 12, 12});
	expect_again(&f, 0, 2, 1, 0, 1);
	fixture_finish(&f);
}

/* ---- the sums ----------------------------------------------------------------------------------------------------- */

static const uint32_t ALL_COUNTED[] = {3, 5, 12, 10};

/* All has been counted: the sums begin, as attempt 2. */
static void begin_sums(struct fixture *f)
{
	begin(f, 2);
	finish_all(f, true);
	tell_all(f, 1, ALL_COUNTED);
	for (uint32_t i = 0; i < 4; i++) {
		const struct skep_action *a = fixture_find(f, SKEP_ACTION_SEND, SKEP_MESSAGE_REDUCE, i);
		assert_true(a && a->u.send.attempt == 2 && a->u.send.u.reduce.size == 2);
	}
	expect_no_more(f, 0);
}

static void test_none_commits_before_all_have_their_sums(void **state)
{
	(void)state;
	struct fixture f;
	begin_sums(&f);
	for (uint32_t i = 0; i < 3; i++) { /* stage 0 has its sum after worker 2 */
		uint32_t worker = (const uint32_t[]){0, 2, 1}[i];
		tally(&f, (struct skep_peer){worker, 1}, 2, ALL_COUNTED[worker]);
		assert_int_equal(f.out.count, 0);
	}
	tally(&f, (struct skep_peer){3, 1}, 2, ALL_COUNTED[3]);
	for (uint32_t i = 0; i < 4; i++) {
		const struct skep_action *a = fixture_find(&f, SKEP_ACTION_SEND, SKEP_MESSAGE_COMMIT, i);
		assert_true(a && a->u.send.u.commit.microbatches == 4);
	}
	assert_null(fixture_noted(&f, SKEP_NOTE_LOST));
	assert_int_equal(fixture_noted(&f, SKEP_NOTE_ROUND_CLOSED)->microbatch, 4);
	const struct skep_message *grant = fixture_sent(&f, SKEP_MESSAGE_GRANT);
	assert_true(grant->round == 1 && grant->attempt == 0 && grant->span.first == 0 && grant->span.last == 1);
	fixture_finish(&f);
}

static void test_a_death_in_the_sums_sends_the_round_back(void **state)
{
	(void)state;
	struct fixture f;
	begin_sums(&f);
	tally(&f, (struct skep_peer){0, 1}, 2, 3);
	tally(&f, (struct skep_peer){2, 1}, 2, 12); /* stage 0 has its sum, and it is void all the same */
	suspect(&f, 3);
	assert_null(fixture_sent(&f, SKEP_MESSAGE_COMMIT));
	expect_asked(&f, 3, 7);
	tally(&f, (struct skep_peer){1, 1}, 2, 5); /* of the sum that is void */
	assert_int_equal(f.out.count, 0);
	tally(&f, (struct skep_peer){0, 1}, 3, 3);
	tally(&f, (struct skep_peer){1, 1}, 3, 5);
	tally(&f, (struct skep_peer){2, 1}, 3, 12);
	expect_again(&f, 0, 3, 1, 1, 1); /* what only the dead one had, and only in its stage */
	expect_again(&f, 1, 3, 3, 1, 1);
	expect_no_more(&f, 2);
	fixture_finish(&f);
}

static void test_a_death_in_the_count_begins_it_anew(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 2);
	finish_all(&f, true);
	tally(&f, (struct skep_peer){3, 1}, 1, 10);
	suspect(&f, 3); /* it has told, and what it told is gone with it */
	expect_asked(&f, 2, 7);
	tally(&f, (struct skep_peer){0, 1}, 2, 3);
	tally(&f, (struct skep_peer){1, 1}, 2, 5);
	tally(&f, (struct skep_peer){2, 1}, 2, 12);
	expect_again(&f, 0, 2, 1, 1, 1);
	expect_again(&f, 1, 2, 3, 1, 1);
	fixture_finish(&f);
}

/* ---- a stage without workers --------------------------------------------------------------------------------------- */

/* Worker 3 founds stage 1 anew, while the others tell what they have counted. */
static void enter_restorer(struct fixture *f)
{
	struct skep_message join = from_worker(f, SKEP_MESSAGE_JOIN, 3);
	fixture_deliver(f, join);
	assert_int_equal(fixture_sent(f, SKEP_MESSAGE_ASSIGN)->to.epoch, 2);
	struct skep_message entered = from_worker(f, SKEP_MESSAGE_ENTERED, 3);
	entered.from.epoch = 2;
	fixture_deliver(f, entered);
	assert_int_equal(fixture_sent(f, SKEP_MESSAGE_ADMIT)->u.admit.source.index, SKEP_NO_INDEX);
}

static void test_a_restorer_that_is_ready_in_the_count_is_asked_too(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 2);
	suspect(&f, 1);
	suspect(&f, 3);
	assert_non_null(fixture_noted(&f, SKEP_NOTE_STAGE_EMPTY));
	finish_all(&f, false);
	expect_asked(&f, 1, 5);
	tally(&f, (struct skep_peer){0, 1}, 1, 3);
	enter_restorer(&f);
	struct skep_message ready = from_worker(&f, SKEP_MESSAGE_READY, 3);
	ready.from.epoch = 2;
	fixture_deliver(&f, ready);
	assert_non_null(fixture_noted(&f, SKEP_NOTE_STAGE_RESTARTED));
	expect_asked(&f, 2, 13);
	tally(&f, (struct skep_peer){2, 1}, 1, 12); /* the answer to the first question */
	tally(&f, (struct skep_peer){0, 1}, 2, 3);
	tally(&f, (struct skep_peer){2, 1}, 2, 12);
	assert_int_equal(f.out.count, 0); /* not without the restorer */
	tally(&f, (struct skep_peer){3, 2}, 2, 0);
	for (uint32_t i = 0; i < 3; i++) /* half of what the one worker of stage 1 can hold; the last one follows */
		expect_again(&f, i, 2, i, 1, 1);
	expect_no_more(&f, 3);
	fixture_finish(&f);
}

/* ---- a run in which workers come and go --------------------------------------------------------------------------- */

struct run {
	struct skep_sim_result result;
	uint64_t issued, counted, lost; /* the latter two over all stages */
	uint32_t commits, reruns, fenced;
};

static void hear_note(void *context, skep_time now, struct skep_peer who, const struct skep_note *note)
{
	struct run *run = context;
	(void)now;
	(void)who;
	run->reruns += note->kind == SKEP_NOTE_RERUN;
	run->fenced += note->kind == SKEP_NOTE_FENCED;
	if (note->kind == SKEP_NOTE_ROUND_CLOSED)
		run->issued += note->microbatch;
	if (note->kind != SKEP_NOTE_STAGE_COMMITTED)
		return;
	run->commits++;
	run->counted += note->microbatch;
	run->lost += (uint64_t)note->value;
}

static void simulate(const char *on_loss, struct run *ret)
{
	struct skep_diag diag = {0};
	struct skep_scenario s;
	const char *set[] = {"train.arithmetic=none", on_loss};
	struct skep_scenario_options options = {.set = set, .sets = 2};
	*ret = (struct run){0};
	const struct skep_recorder recorder = {.context = ret, .note = hear_note};
	if (!skep_scenario_read("scenarios/churn.yaml", &options, &s, &diag))
		fail_msg("%s", diag.text);
	assert_true(skep_sim_run(&s, &recorder, &ret->result));
	assert_int_equal(ret->result.outcome, SKEP_DONE);
	assert_int_equal(ret->commits, s.plan.stages * s.plan.rounds);
	assert_int_equal(ret->counted + ret->lost, s.plan.stages * ret->issued);
	assert_int_equal(ret->fenced, 10);
	if (s.plan.on_loss == SKEP_ON_LOSS_RERUN)
		assert_int_equal(ret->issued, s.plan.rounds * s.plan.microbatches);
	skep_scenario_finish(&s);
}

static void test_a_run_with_deaths_loses_nothing(void **state)
{
	(void)state;
	struct run report, rerun;
	simulate("schedule.on_loss=report", &report);
	simulate("schedule.on_loss=rerun", &rerun);
	assert_true(report.lost > 0 && report.reruns == 0);
	assert_int_equal(rerun.lost, 0);
	assert_true(rerun.reruns > 0);
	assert_true(rerun.issued < report.issued); /* no fresh ones in the place of the lost */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_missing_is_granted_again),
		cmocka_unit_test(test_a_gap_between_two_runs_of_stages_takes_two_passes),
		cmocka_unit_test(test_what_was_abandoned_waits_for_the_count),
		cmocka_unit_test(test_none_commits_before_all_have_their_sums),
		cmocka_unit_test(test_a_death_in_the_sums_sends_the_round_back),
		cmocka_unit_test(test_a_death_in_the_count_begins_it_anew),
		cmocka_unit_test(test_a_restorer_that_is_ready_in_the_count_is_asked_too),
		cmocka_unit_test(test_a_run_with_deaths_loses_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
