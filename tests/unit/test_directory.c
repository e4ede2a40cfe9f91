/* SPDX-License-Identifier: Apache-2.0
 *
 * test_directory.c - the directory's machine: directory.c, rounds.c and boundary.c, event by event.
 */
#include "core/directory/directory.h"
#include "directory_fixture.h"

/* Grants at the start: microbatches 0, 1 to worker 0 and 2, 3 to worker 2. */
static void finish_all(struct fixture *f)
{
	finish(f, 0, 0, true);
	finish(f, 0, 1, true);
	finish(f, 2, 2, true);
	assert_null(fixture_sent(f, SKEP_MESSAGE_REDUCE));
	finish(f, 2, 3, true);
	assert_int_equal(fixture_count_sent(f, SKEP_MESSAGE_REDUCE), 4);
}

static void test_grants_are_shared_out(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	assert_int_equal(fixture_count_sent(&f, SKEP_MESSAGE_GRANT), 2);
	for (uint32_t i = 0; i < 2; i++) {
		const struct skep_message *grant = &fixture_find(&f, SKEP_ACTION_SEND, SKEP_MESSAGE_GRANT, i)->u.send;
		assert_int_equal(grant->to.index, 2 * i);
		assert_int_equal(grant->from.index, DIRECTORY);
		assert_int_equal(grant->from.epoch, 1); /* who has one life */
		assert_int_equal(grant->microbatch, 2 * i);
		assert_int_equal(grant->u.grant.count, 2);
	}
	fixture_finish(&f);
}

/* With a fixed number of inner steps each grant is a message of its own, and a step makes as many as it has room for. */
static void test_grants_of_one_fit_a_step(void **state)
{
	(void)state;
	for (uint32_t bound = 0; bound < 2; bound++) {
		struct fixture f;
		fixture_init(&f, 4, 2, DIRECTORY);
		f.plan.inner.fixed = true;
		f.plan.inner.steps = 2;
		f.plan.in_flight = bound ? 2000 : 3;
		f.plan.microbatches = 3000;
		fixture_make(&f, DIRECTORY);
		fixture_start(&f);
		assert_int_equal(fixture_count_sent(&f, SKEP_MESSAGE_GRANT), bound ? 1024 + 4 : 10);
		fixture_finish(&f);
	}
}

static void test_round_reduces_commits_and_the_next_opens(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	finish_all(&f);
	tally(&f, 0, 1, 3);
	tally(&f, 2, 1, 12);
	assert_int_equal(fixture_count_sent(&f, SKEP_MESSAGE_COMMIT), 2);
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_COMMIT)->u.commit.microbatches, 4);
	assert_null(fixture_noted(&f, SKEP_NOTE_LOST));
	assert_null(fixture_noted(&f, SKEP_NOTE_ROUND_CLOSED)); /* the other stage is still at it */
	tally(&f, 1, 1, 5);
	tally(&f, 3, 1, 10);
	assert_non_null(fixture_noted(&f, SKEP_NOTE_ROUND_CLOSED));
	assert_int_equal(fixture_noted(&f, SKEP_NOTE_LOSS)->value, 100);
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_GRANT)->round, 1);
	fixture_finish(&f);
}

static void test_abandoned_is_replaced_by_a_fresh_one(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	finish(&f, 0, 1, false);
	const struct skep_message *grant = fixture_sent(&f, SKEP_MESSAGE_GRANT);
	assert_int_equal(grant->to.index, 0);
	assert_int_equal(grant->microbatch, 4); /* a number that was not used yet */
	finish(&f, 0, 1, false);                /* a duplicate */
	assert_int_equal(f.out.count, 0);
	fixture_finish(&f);
}

static void test_what_no_member_counted_is_lost(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	finish_all(&f);
	tally(&f, 1, 1, 1);
	tally(&f, 3, 1, 4);
	const struct skep_note *lost = fixture_noted(&f, SKEP_NOTE_LOST);
	assert_int_equal(lost->value, 10);
	assert_int_equal(fixture_noted(&f, SKEP_NOTE_STAGE_COMMITTED)->value, 2);
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_COMMIT)->u.commit.microbatches, 2);
	fixture_finish(&f);
}

static void test_death_in_a_reduction_starts_it_anew(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	finish_all(&f);
	tally(&f, 0, 1, 3);
	suspect(&f, 2);
	assert_non_null(fixture_noted(&f, SKEP_NOTE_FENCED));
	assert_int_equal(fixture_count_sent(&f, SKEP_MESSAGE_REDUCE), 1);
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_REDUCE)->attempt, 2);
	tally(&f, 0, 1, 3); /* of the attempt that is void */
	assert_null(fixture_sent(&f, SKEP_MESSAGE_COMMIT));
	tally(&f, 0, 2, 3);
	assert_non_null(fixture_sent(&f, SKEP_MESSAGE_COMMIT));
	assert_int_equal(fixture_noted(&f, SKEP_NOTE_LOST)->value, 12); /* what only the dead one had counted */
	fixture_finish(&f);
}

static void test_fenced_owner_is_replaced_by_another(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	suspect(&f, 2);
	const struct skep_message *grant = fixture_sent(&f, SKEP_MESSAGE_GRANT);
	assert_int_equal(grant->to.index, 0);
	assert_int_equal(grant->microbatch, 4);
	uint32_t told = 0;
	for (uint32_t i = 0; fixture_find(&f, SKEP_ACTION_SEND, SKEP_MESSAGE_PEER, i); i++) {
		const struct skep_message *news = &fixture_find(&f, SKEP_ACTION_SEND, SKEP_MESSAGE_PEER, i)->u.send;
		assert_false(news->u.peer.alive);
		told |= 1u << news->to.index;
	}
	assert_int_equal(told, 1u << 1 | 1u << 2 | 1u << 3); /* the next stage, and itself */
	fixture_finish(&f);
}

static void test_silence_is_fenced_but_not_after_our_own_sleep(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	fixture_timer(&f, 3 * SECOND_NS);
	for (uint32_t i = 0; i < 3; i++)
		fixture_deliver(&f, from_worker(SKEP_MESSAGE_HEARTBEAT, i, 0));
	fixture_timer(&f, 4 * SECOND_NS); /* the directory itself was late once: everyone starts afresh then */
	for (uint64_t now = 5; now < 8; now++) {
		for (uint32_t i = 0; i < 3; i++)
			fixture_deliver(&f, from_worker(SKEP_MESSAGE_HEARTBEAT, i, 0));
		fixture_timer(&f, now * SECOND_NS);
		assert_null(fixture_noted(&f, SKEP_NOTE_FENCED));
	}
	fixture_timer(&f, 8 * SECOND_NS);
	assert_int_equal(fixture_noted(&f, SKEP_NOTE_FENCED)->peer.index, 3);
	fixture_timer(&f, 60 * SECOND_NS);
	assert_null(fixture_noted(&f, SKEP_NOTE_FENCED));
	fixture_finish(&f);
}

static void test_join_ready_member(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	suspect(&f, 3);
	join(&f, 3, 1, 0);
	struct skep_message assign = *fixture_sent(&f, SKEP_MESSAGE_ASSIGN);
	assert_int_equal(assign.to.epoch, 2);
	assert_int_equal(assign.stage, 1);
	join(&f, 3, 1, 0); /* a duplicate */
	assert_int_equal(f.out.count, 0);
	entered(&f, 3, 2);
	const struct skep_message *admit = fixture_sent(&f, SKEP_MESSAGE_ADMIT);
	assert_int_equal(admit->u.admit.source.index, 1);
	assert_int_equal(admit->round, 0);
	assert_non_null(fixture_noted(&f, SKEP_NOTE_ADMITTED));
	entered(&f, 3, 2); /* a duplicate */
	assert_int_equal(f.out.count, 0);
	struct skep_message ready = from_worker(SKEP_MESSAGE_READY, 3, 0);
	ready.from.epoch = 2;
	fixture_deliver(&f, ready);
	assert_non_null(fixture_noted(&f, SKEP_NOTE_JOINED));
	finish_all(&f); /* four members: the newcomer is one of them */
	tally(&f, 1, 1, 15);
	struct skep_message empty = from_worker(SKEP_MESSAGE_TALLY, 3, 0);
	empty.from.epoch = 2;
	empty.attempt = 1;
	fixture_deliver(&f, empty);
	uint32_t told = 0;
	for (uint32_t i = 0; fixture_find(&f, SKEP_ACTION_SEND, SKEP_MESSAGE_PEER, i); i++)
		told |= 1u << fixture_find(&f, SKEP_ACTION_SEND, SKEP_MESSAGE_PEER, i)->u.send.to.index;
	assert_int_equal(told, 1u << 0 | 1u << 2); /* the stage before may choose it from now on */
	fixture_finish(&f);
}

static void test_a_restarted_process_replaces_the_one_we_knew(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	join(&f, 3, 0, SECOND_NS);
	assert_int_equal(fixture_noted(&f, SKEP_NOTE_FENCED)->peer.epoch, 1);
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_ASSIGN)->to.epoch, 2);
	fixture_finish(&f);
}

/* It never suspects itself, whatever a world says. */
static void test_the_directory_is_no_worker(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	for (uint32_t epoch = 0; epoch < 3; epoch++) {
		fixture_event(&f, (struct skep_event){.kind = SKEP_EVENT_SUSPECT, .u.peer = {DIRECTORY, epoch}});
		assert_int_equal(f.out.count, 0);
	}
	fixture_finish(&f);
}

static void test_an_empty_stage_ends_the_run(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	suspect(&f, 1);
	suspect(&f, 3);
	assert_int_equal(fixture_noted(&f, SKEP_NOTE_STAGE_EMPTY)->stage, 1);
	assert_int_equal(fixture_noted(&f, SKEP_NOTE_STOPPED)->value, 0);
	assert_int_equal(skep_node_outcome(f.node), SKEP_FAILED);
	assert_int_equal(fixture_count_sent(&f, SKEP_MESSAGE_STOP), 4);
	fixture_deliver(&f, from_worker(SKEP_MESSAGE_HEARTBEAT, 0, 0)); /* someone has not heard */
	assert_int_equal(fixture_count_sent(&f, SKEP_MESSAGE_STOP), 1);
	fixture_finish(&f);
}

static void test_target_loss_stops(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f, 4, 2, DIRECTORY);
	f.plan.until.target_loss_nano = 100;
	fixture_start(&f);
	finish_all(&f);
	tally(&f, 0, 1, 3);
	tally(&f, 2, 1, 12);
	tally(&f, 1, 1, 5);
	tally(&f, 3, 1, 10);
	assert_int_equal(skep_node_outcome(f.node), SKEP_DONE);
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_STOP)->round, 1);
	fixture_finish(&f);
}

/* ---- leaving and moving --------------------------------------------------------------------------------------- */

static void commit_round(struct fixture *f)
{
	tally(f, 0, 1, 3);
	tally(f, 2, 1, 12);
	tally(f, 1, 1, 5);
	tally(f, 3, 1, 10);
	assert_non_null(fixture_noted(f, SKEP_NOTE_ROUND_CLOSED));
}

/* A round that has no number left is cut beside the sums of the one before: what was counted of that stays. */
static void test_cut_forgets_grants_alone(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f, 4, 2, DIRECTORY);
	f.plan.microbatches = 8;
	fixture_make(&f, DIRECTORY);
	fixture_start(&f);
	struct directory *d = (struct directory *)f.node;
	uint32_t *counters = skep_rounds_counters(d, 0);
	assert_int_equal(d->counter_at - d->owner_at, d->capacity * sizeof *counters); /* side by side */
	d->issued = d->capacity;
	counters[0] = 2;
	skep_rounds_cut(d, &f.plan);
	assert_int_equal(counters[0], 2);
	fixture_finish(&f);
}

/* One message each, and there is room for so many in a step. */
static void test_a_validation_is_granted_piece_by_piece(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f, 4, 2, DIRECTORY);
	f.plan.in_flight = 2000;
	f.plan.validation.every = 1;
	f.plan.validation.microbatches = 3000;
	fixture_make(&f, DIRECTORY);
	fixture_start(&f);
	finish_all(&f);
	commit_round(&f);
	assert_non_null(fixture_noted(&f, SKEP_NOTE_VALIDATING));
	assert_int_equal(fixture_count_sent(&f, SKEP_MESSAGE_GRANT), 1024);
	fixture_finish(&f);
}

static void leave(struct fixture *f, uint32_t worker)
{
	fixture_deliver(f, from_worker(SKEP_MESSAGE_LEAVE, worker, 0));
}

/* What worker `to` is told about worker `who` in this step, or NULL. */
static const struct skep_message *news_for(const struct fixture *f, uint32_t to, uint32_t who)
{
	for (uint32_t i = 0; fixture_find(f, SKEP_ACTION_SEND, SKEP_MESSAGE_PEER, i); i++) {
		const struct skep_message *news = &fixture_find(f, SKEP_ACTION_SEND, SKEP_MESSAGE_PEER, i)->u.send;
		if (news->to.index == to && news->u.peer.who.index == who)
			return news;
	}
	return NULL;
}

static void test_who_leaves_is_told_of_and_granted_nothing(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	leave(&f, 3);
	for (uint32_t owner = 0; owner < 4; owner += 2) {
		const struct skep_message *news = news_for(&f, owner, 3);
		assert_true(news && news->u.peer.alive && news->u.peer.leaving && news->stage == 1);
	}
	assert_int_equal(fixture_count_sent(&f, SKEP_MESSAGE_PEER), 2);
	leave(&f, 3); /* a duplicate */
	assert_int_equal(f.out.count, 0);
	leave(&f, 0);
	finish(&f, 0, 1, false); /* handed back */
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_GRANT)->to.index, 2);
	fixture_finish(&f);
}

static void test_who_leaves_goes_when_the_round_has_ended(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	leave(&f, 0);
	leave(&f, 3);
	finish_all(&f); /* they take part in the reduction */
	commit_round(&f);
	assert_null(fixture_noted(&f, SKEP_NOTE_FENCED));
	const struct skep_action *left = fixture_find(&f, SKEP_ACTION_NOTE, SKEP_NOTE_LEFT, 0);
	assert_true(left && left->u.note.peer.index == 0 && left->u.note.stage == 0);
	left = fixture_find(&f, SKEP_ACTION_NOTE, SKEP_NOTE_LEFT, 1);
	assert_true(left && left->u.note.peer.index == 3 && left->u.note.stage == 1);
	assert_true(news_for(&f, 0, 0) && !news_for(&f, 0, 0)->u.peer.alive);
	assert_true(news_for(&f, 2, 3) && !news_for(&f, 2, 3)->u.peer.alive);
	assert_true(news_for(&f, 1, 0) && !news_for(&f, 1, 0)->u.peer.alive);
	assert_int_equal(fixture_count_sent(&f, SKEP_MESSAGE_GRANT), 1);
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_GRANT)->to.index, 2);
	fixture_deliver(&f, from_worker(SKEP_MESSAGE_HEARTBEAT, 3, 0)); /* it has not heard */
	assert_true(news_for(&f, 3, 3) != NULL);
	fixture_finish(&f);
}

static void test_the_last_of_a_stage_works_on(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	leave(&f, 0);
	leave(&f, 2);
	finish(&f, 0, 1, false);
	assert_non_null(fixture_sent(&f, SKEP_MESSAGE_GRANT)); /* none stays: all are asked */
	finish(&f, 0, 0, true);
	finish(&f, 2, 2, true);
	finish(&f, 2, 3, true);
	finish(&f, 0, 4, true);
	assert_int_equal(fixture_count_sent(&f, SKEP_MESSAGE_REDUCE), 4);
	tally(&f, 0, 1, 17);
	tally(&f, 2, 1, 12);
	tally(&f, 1, 1, 5);
	tally(&f, 3, 1, 24);
	assert_int_equal(fixture_noted(&f, SKEP_NOTE_LEFT)->peer.index, 0);
	assert_null(fixture_find(&f, SKEP_ACTION_NOTE, SKEP_NOTE_LEFT, 1));
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_GRANT)->to.index, 2);
	fixture_finish(&f);
}

static void test_leaver_works_on_when_the_one_that_stays_dies(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	leave(&f, 0);
	suspect(&f, 2);
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_GRANT)->to.index, 0);
	assert_int_equal(skep_node_outcome(f.node), SKEP_RUNNING);
	fixture_finish(&f);
}

static void test_who_joins_and_leaves_is_fenced(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	suspect(&f, 3);
	join(&f, 3, 1, 0);
	struct skep_message message = from_worker(SKEP_MESSAGE_LEAVE, 3, 0);
	message.from.epoch = 2;
	fixture_deliver(&f, message);
	assert_int_equal(fixture_noted(&f, SKEP_NOTE_FENCED)->peer.epoch, 2);
	fixture_finish(&f);
}

static void test_newcomer_hears_who_leaves(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	leave(&f, 3);
	suspect(&f, 2);
	join(&f, 2, 1, 0);
	entered(&f, 2, 2);
	struct skep_message ready = from_worker(SKEP_MESSAGE_READY, 2, 0);
	ready.from.epoch = 2;
	fixture_deliver(&f, ready);
	assert_false(news_for(&f, 2, 1)->u.peer.leaving);
	assert_true(news_for(&f, 2, 3)->u.peer.leaving);
	fixture_finish(&f);
}

static void report_load(struct fixture *f, uint32_t worker, uint64_t queue_milli, skep_time needed_ns)
{
	struct skep_message message = from_worker(SKEP_MESSAGE_LOAD, worker, 0);
	message.u.load.queue_milli = queue_milli;
	message.u.load.needed_ns = needed_ns;
	fixture_deliver(f, message);
}

static void begin_moving(struct fixture *f)
{
	fixture_init(f, 4, 2, DIRECTORY);
	f->plan.rebalance.period_ns = 2 * SECOND_NS;
	f->plan.rounds = 3;
	fixture_start(f);
}

static void test_idle_worker_moves_to_the_loaded_stage(void **state)
{
	(void)state;
	struct fixture f;
	begin_moving(&f);
	report_load(&f, 0, 300, SECOND_NS);
	report_load(&f, 2, 400, SECOND_NS);
	report_load(&f, 2, 0, 0); /* the end of the round, when little is done: the mean counts, and the time stays */
	report_load(&f, 1, 0, 3 * SECOND_NS);
	finish_all(&f);
	f.now = 2 * SECOND_NS;
	commit_round(&f);
	const struct skep_note *moved = fixture_noted(&f, SKEP_NOTE_MIGRATED);
	assert_true(moved && moved->peer.index == 2 && moved->peer.epoch == 1 && moved->stage == 1);
	assert_null(fixture_noted(&f, SKEP_NOTE_FENCED));
	const struct skep_message *assign = fixture_sent(&f, SKEP_MESSAGE_ASSIGN);
	assert_true(assign && assign->to.index == 2 && assign->to.epoch == 2 && assign->stage == 1);
	assert_int_equal(fixture_count_sent(&f, SKEP_MESSAGE_GRANT), 1);
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_GRANT)->to.index, 0);
	for (uint32_t to = 1; to < 4; to += 2)
		assert_true(news_for(&f, to, 2) && !news_for(&f, to, 2)->u.peer.alive);
	fixture_deliver(&f, from_worker(SKEP_MESSAGE_HEARTBEAT, 2, 0)); /* its assignment is on the way */
	join(&f, 2, 1, 0);
	assert_null(fixture_noted(&f, SKEP_NOTE_FENCED));
	assert_null(fixture_sent(&f, SKEP_MESSAGE_ASSIGN));
	fixture_finish(&f);
}

static void test_none_moves_before_the_period_is_over(void **state)
{
	(void)state;
	struct fixture f;
	begin_moving(&f);
	report_load(&f, 1, 4000, 3 * SECOND_NS);
	report_load(&f, 0, 0, SECOND_NS);
	finish_all(&f);
	f.now = 2 * SECOND_NS - 1;
	commit_round(&f);
	assert_null(fixture_noted(&f, SKEP_NOTE_MIGRATED));
	assert_int_equal(fixture_count_sent(&f, SKEP_MESSAGE_GRANT), 2);
	fixture_finish(&f);
}

static void test_newcomer_goes_where_the_load_is(void **state)
{
	(void)state;
	struct fixture f;
	begin_moving(&f);
	suspect(&f, 3); /* stage 1 has fewer workers, stage 0 more to do */
	report_load(&f, 0, 0, 3 * SECOND_NS);
	report_load(&f, 1, 100, SECOND_NS);
	join(&f, 3, 1, 0);
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_ASSIGN)->stage, 0);
	fixture_finish(&f);
}

/* With worker 3 stage 1 would be the faster one. */
static void test_who_gave_notice_is_no_help(void **state)
{
	(void)state;
	struct fixture f;
	begin_moving(&f);
	suspect(&f, 2);
	report_load(&f, 0, 0, 2 * SECOND_NS);
	report_load(&f, 1, 0, 3 * SECOND_NS);
	report_load(&f, 3, 0, 3 * SECOND_NS);
	leave(&f, 3);
	join(&f, 2, 1, 0);
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_ASSIGN)->stage, 1);
	fixture_finish(&f);
}

/* A load is shared by those that are on their way. */
static void test_newcomers_of_a_burst_spread_over_the_loads(void **state)
{
	(void)state;
	struct fixture f;
	begin_moving(&f);
	suspect(&f, 2);
	suspect(&f, 3);
	report_load(&f, 0, 0, 3 * SECOND_NS);
	report_load(&f, 1, 0, 2 * SECOND_NS);
	join(&f, 2, 1, 0);
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_ASSIGN)->stage, 0);
	join(&f, 3, 1, 0);
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_ASSIGN)->stage, 1);
	fixture_finish(&f);
}

static void test_who_waits_may_ask_again(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	suspect(&f, 3);
	finish(&f, 0, 0, true);
	finish(&f, 0, 1, true);
	finish(&f, 2, 2, true);
	finish(&f, 2, 3, true);
	for (uint64_t now = 0; now < 12; now++) { /* a long reduction */
		f.now = now * SECOND_NS;
		join(&f, 3, 1, 0);
		for (uint32_t i = 0; i < 3; i++)
			fixture_deliver(&f, from_worker(SKEP_MESSAGE_HEARTBEAT, i, 0));
		fixture_timer(&f, f.now);
		assert_null(fixture_noted(&f, SKEP_NOTE_FENCED));
	}
	for (uint64_t now = 12; !fixture_noted(&f, SKEP_NOTE_FENCED); now++) { /* silent at last */
		f.now = now * SECOND_NS;
		for (uint32_t i = 0; i < 3; i++)
			fixture_deliver(&f, from_worker(SKEP_MESSAGE_HEARTBEAT, i, 0));
		fixture_timer(&f, f.now);
		assert_true(now < 20);
	}
	assert_int_equal(fixture_noted(&f, SKEP_NOTE_FENCED)->peer.epoch, 2);
	join(&f, 3, 1, 0);
	assert_int_equal(fixture_sent(&f, SKEP_MESSAGE_ASSIGN)->to.epoch, 3);
	fixture_finish(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_grants_are_shared_out),
		cmocka_unit_test(test_grants_of_one_fit_a_step),
		cmocka_unit_test(test_round_reduces_commits_and_the_next_opens),
		cmocka_unit_test(test_abandoned_is_replaced_by_a_fresh_one),
		cmocka_unit_test(test_what_no_member_counted_is_lost),
		cmocka_unit_test(test_death_in_a_reduction_starts_it_anew),
		cmocka_unit_test(test_fenced_owner_is_replaced_by_another),
		cmocka_unit_test(test_silence_is_fenced_but_not_after_our_own_sleep),
		cmocka_unit_test(test_join_ready_member),
		cmocka_unit_test(test_a_restarted_process_replaces_the_one_we_knew),
		cmocka_unit_test(test_the_directory_is_no_worker),
		cmocka_unit_test(test_an_empty_stage_ends_the_run),
		cmocka_unit_test(test_target_loss_stops),
		cmocka_unit_test(test_cut_forgets_grants_alone),
		cmocka_unit_test(test_a_validation_is_granted_piece_by_piece),
		cmocka_unit_test(test_who_leaves_is_told_of_and_granted_nothing),
		cmocka_unit_test(test_who_leaves_goes_when_the_round_has_ended),
		cmocka_unit_test(test_the_last_of_a_stage_works_on),
		cmocka_unit_test(test_leaver_works_on_when_the_one_that_stays_dies),
		cmocka_unit_test(test_who_joins_and_leaves_is_fenced),
		cmocka_unit_test(test_newcomer_hears_who_leaves),
		cmocka_unit_test(test_idle_worker_moves_to_the_loaded_stage),
		cmocka_unit_test(test_none_moves_before_the_period_is_over),
		cmocka_unit_test(test_newcomer_goes_where_the_load_is),
		cmocka_unit_test(test_who_gave_notice_is_no_help),
		cmocka_unit_test(test_newcomers_of_a_burst_spread_over_the_loads),
		cmocka_unit_test(test_who_waits_may_ask_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
