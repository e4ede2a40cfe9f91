/* SPDX-License-Identifier: Apache-2.0
 *
 * test_incarnations.c - processes that die and are born, with a thread per rank and the letter boxes of network_fixture.h: by a
 * trace, softly; and for good, in a transport that survives it, where a spare takes the seat.
 */
#include <assert.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "exec/loop/loop.h"
#include "exec/loop/post_mortem.h"
#include "exec/loop/slots.h"
#include "exec/replay/replay.h"
#include "tests/unit/fresh.h"
#include "tests/unit/loop_fixture.h"
#include "tests/unit/network_fixture.h"

#define MACHINES_MAX 16u

/* ---- seats and remains by themselves ----------------------------------------------------------------------------- */

static void a_slot_has_one_holder_at_a_time(void **state)
{
	(void)state;
	struct skep_slots slots;
	assert_true(skep_slots_init(&slots, 6, 3)); /* ranks 4 and 5 are spares */
	assert_int_equal(slots.rank_of[3], 0);
	assert_int_equal(slots.machine_of[2], 1);
	assert_int_equal(skep_slots_spare(&slots, 0), 4);
	assert_int_equal(skep_slots_awaited(&slots, 0), 5);
	assert_false(skep_slots_assign(&slots, 3, 4, 1)); /* the directory's */
	assert_false(skep_slots_assign(&slots, 1, 6, 1));
	assert_false(skep_slots_assign(&slots, 1, 3, 1)); /* it sits elsewhere */
	assert_false(skep_slots_assign(&slots, 1, 4, 0)); /* no new life */
	slots.gone[2] = true;
	assert_true(skep_slots_assign(&slots, 1, 4, 1));
	assert_true(skep_slots_assign(&slots, 1, 4, 1)); /* heard twice */
	assert_int_equal(slots.rank_of[1], 4);
	assert_int_equal(slots.machine_of[2], 1); /* late news from the dead is still known as its */
	assert_int_equal(skep_slots_spare(&slots, 0), 5);
	slots.last[5] = true;
	assert_int_equal(skep_slots_spare(&slots, 0), SKEP_NO_INDEX);
	assert_int_equal(skep_slots_awaited(&slots, 0), 3);
	assert_true(skep_slots_any_gone(&slots));
	skep_slots_finish(&slots);
}

static void post_mortem_hold_what_was_not_sent(void **state)
{
	(void)state;
	struct skep_post_mortem *post_mortem = calloc(1, sizeof *post_mortem);
	const uint8_t entry[40] = {7, 8, 9}, *bytes;
	uint32_t count;
	uint64_t events, digest;
	assert_non_null(post_mortem);
	skep_post_mortem_end(post_mortem, &events, &digest);
	assert_int_equal(events, 0);
	for (uint64_t i = 1; i <= 3 * SKEP_POST_MORTEM_BATCHES; i++) {
		skep_post_mortem_add(post_mortem, entry, sizeof entry, 2 * i - 1, 100 + i);
		skep_post_mortem_add(post_mortem, entry, sizeof entry, 2 * i, 1000 + i);
		if (i < 3 * SKEP_POST_MORTEM_BATCHES)
			skep_post_mortem_sent(post_mortem);
	}
	skep_post_mortem_end(post_mortem, &events, &digest);
	assert_int_equal(events, 6 * SKEP_POST_MORTEM_BATCHES);
	assert_int_equal(digest, 1000 + 3 * SKEP_POST_MORTEM_BATCHES);
	uint64_t open = 3 * SKEP_POST_MORTEM_BATCHES - 1;
	assert_true(skep_post_mortem_batch(post_mortem, open, &bytes, &count));
	assert_int_equal(count, 2 * sizeof entry);
	assert_memory_equal(bytes + sizeof entry, entry, sizeof entry);
	assert_true(skep_post_mortem_batch(post_mortem, open + 2 - SKEP_POST_MORTEM_BATCHES, &bytes, &count));
	assert_false(skep_post_mortem_batch(
		post_mortem, open + 1 - SKEP_POST_MORTEM_BATCHES, &bytes, &count)); /* overwritten */
	assert_false(skep_post_mortem_batch(post_mortem, open + 1, &bytes, &count));
	free(post_mortem);
}

/* ---- a swarm ------------------------------------------------------------------------------------------------------ */

struct member {
	struct swarm *swarm;
	pthread_t thread;
	struct skep_transport transport;
	struct skep_loop_setup setup;
	struct skep_exec_result result;
	uint32_t sends;                                         /* that are left until it dies; 0: it lives on */
	uint64_t bytes[SKEP_TRAFFICS], messages[SKEP_TRAFFICS]; /* that it has handed over */
	bool dead, fine, clean;
	struct skep_diag reason;
};

struct swarm {
	struct skep_scenario scenario;
	struct post *post;
	struct skep_clock clock;
	struct skep_recorder recorder;
	uint32_t ranks;
	struct skep_post_mortem *post_mortem, *left; /* [ranks] as they are written, and as they were left */
	struct skep_link_use *used, *last;           /* [ranks * links] the same */
	struct member member[RANKS_MAX];

	uint64_t sent[SKEP_TRAFFICS];                                /* as was told on the way */
	uint64_t link_bytes[SKEP_TRAFFICS], messages[SKEP_TRAFFICS]; /* and at the end */
	uint32_t notes[SKEP_NOTE_KINDS], deaths;
	uint64_t issued, counted, lost;
	int64_t first_loss, last_loss;
	bool torn;
	struct skep_machine_log log[MACHINES_MAX];
};

static void hear_note(void *context, skep_time now, struct skep_peer who, const struct skep_note *note)
{
	struct swarm *swarm = context;
	(void)now;
	(void)who;
	swarm->notes[note->kind]++;
	if (note->kind == SKEP_NOTE_LOSS && note->round == 0)
		swarm->first_loss = note->value;
	if (note->kind == SKEP_NOTE_LOSS && note->value != INT64_MAX)
		swarm->last_loss = note->value;
	if (note->kind == SKEP_NOTE_ROUND_CLOSED)
		swarm->issued += (uint64_t)note->microbatch * swarm->scenario.plan.stages;
	if (note->kind == SKEP_NOTE_STAGE_COMMITTED) {
		swarm->counted += note->microbatch;
		swarm->lost += (uint64_t)note->value;
	}
}

static void hear_death(void *context, uint32_t machine)
{
	struct swarm *swarm = context;
	assert(machine == 2);
	swarm->deaths++;
}

static void hear_worker(void *context, const struct skep_worker_use *use)
{
	struct swarm *swarm = context;
	swarm->torn = swarm->torn || use->torn;
	log_end(&swarm->log[use->index], use);
}

static void hear_sent(void *context, const struct skep_sent *sent)
{
	struct swarm *swarm = context;
	add_bytes(swarm->sent, sent->bytes);
}

static void hear_link(void *context, const struct skep_link_use *use)
{
	struct swarm *swarm = context;
	swarm->link_bytes[use->traffic] += use->bytes;
	swarm->messages[use->traffic] += use->messages;
}

static void hear_log(void *context, uint32_t machine, const uint8_t *bytes, uint32_t count)
{
	struct swarm *swarm = context;
	log_add(&swarm->log[machine], bytes, count);
}

static size_t links_of(const struct swarm *swarm)
{
	return (size_t)(swarm->scenario.plan.workers + 1) * SKEP_TRAFFICS;
}

/* Dies in the middle of sending: this frame and all later ones are lost, and the others hear of its death. */
static void die(struct member *m)
{
	struct post *post = m->swarm->post;
	m->dead = true; /* its thread goes on for a little, a killed process would not */
	const uint32_t rank = m->transport.rank;
	const size_t links = links_of(m->swarm);
	m->swarm->left[rank] = m->swarm->post_mortem[rank];
	memcpy(m->swarm->last + rank * links, m->swarm->used + rank * links, links * sizeof *m->swarm->last);
	for (uint32_t to = 0; to < post->ranks; to++) {
		if (to == m->transport.rank)
			continue;
		struct probe_message *news = letter_new(m->transport.rank, 0);
		news->gone = true;
		drop_in(&post->box[to], news);
	}
}

static struct box *box_of(void *self)
{
	struct member *m = self;
	return &m->swarm->post->box[m->transport.rank];
}

static void mortal_send(void *self, uint32_t peer, const struct skep_frame *frame, const void *body)
{
	struct member *m = self;
	if (!m->dead && frame->type == SKEP_FRAME_MESSAGE) {
		m->bytes[skep_message_traffic(&frame->u.message)] += skep_message_bytes(&frame->u.message);
		m->messages[skep_message_traffic(&frame->u.message)]++;
	}
	if (m->sends > 0 && --m->sends == 0)
		die(m);
	if (!m->dead)
		box_send(box_of(m), peer, frame, body);
}

static bool mortal_poll(void *self, const struct skep_landing *landing, struct skep_transport_event *ret)
{
	struct member *m = self;
	if (!m->dead)
		return box_poll(box_of(m), landing, ret);
	*ret = (struct skep_transport_event){.kind = SKEP_TRANSPORT_BROKEN, .reason = "dead"};
	return true;
}

static uint32_t mortal_pending(const void *self)
{
	return box_pending(box_of((void *)(uintptr_t)self));
}

static void mortal_wait(void *self, uint64_t most_ns)
{
	box_wait(box_of(self), most_ns);
}

static void mortal_wake(void *self)
{
	box_wake(box_of(self));
}

static void *member_main(void *argument)
{
	struct member *m = argument;
	m->fine = skep_loop_run(&m->setup, &m->result, &m->clean, fresh(&m->reason));
	skep_device_destroy(m->setup.device);
	return NULL;
}

static struct swarm *swarm_new(const char *const *set, uint32_t sets, uint32_t spares)
{
	struct swarm *swarm = calloc(1, sizeof *swarm);
	struct skep_scenario_options options = {.set = set, .sets = sets};
	struct skep_diag diag = {0};
	assert_non_null(swarm);
	bool trace = spares == 0;
	assert_true(skep_scenario_read(
		trace ? "scenarios/churn.yaml" : "scenarios/two-datacentres.yaml", &options, &swarm->scenario, &diag));
	swarm->ranks = swarm->scenario.plan.workers + 1 + spares;
	swarm->post = post_new(swarm->ranks);
	swarm->post_mortem = calloc(swarm->ranks, sizeof *swarm->post_mortem);
	swarm->left = calloc(swarm->ranks, sizeof *swarm->left);
	swarm->used = calloc(swarm->ranks * links_of(swarm), sizeof *swarm->used);
	swarm->last = calloc(swarm->ranks * links_of(swarm), sizeof *swarm->last);
	assert_true(swarm->post_mortem != NULL && swarm->left != NULL && swarm->used != NULL && swarm->last != NULL);
	swarm->recorder = (struct skep_recorder){.context = swarm,
		.note = hear_note,
		.link = hear_link,
		.sent = hear_sent,
		.worker = hear_worker,
		.died = hear_death,
		.log = hear_log};
	for (uint32_t i = 0; i < swarm->ranks; i++) {
		struct member *m = &swarm->member[i];
		m->swarm = swarm;
		m->transport = (struct skep_transport){.self = m,
			.rank = i,
			.ranks = swarm->ranks,
			.survives = spares > 0,
			.send = mortal_send,
			.poll = mortal_poll,
			.pending = mortal_pending,
			.wait = mortal_wait,
			.wake = mortal_wake};
		m->setup = (struct skep_loop_setup){.scenario = &swarm->scenario,
			.transport = &m->transport,
			.clock = &swarm->clock,
			.rejects = &swarm->post->box[i].rejects,
			.recorder = i == 0 ? &swarm->recorder : NULL,
			.post_mortem = i == 0 ? swarm->left : swarm->post_mortem,
			.used = i == 0 ? swarm->last : swarm->used,
			.signal_fd = -1};
		if (i == 0)
			continue;
		bool seated = i <= swarm->scenario.plan.workers;
		m->setup.device = device_of_stage(
			&swarm->scenario, seated ? swarm->scenario.first_stage_of[i - 1] : SKEP_NO_STAGE);
	}
	return swarm;
}

static void swarm_run(struct swarm *swarm)
{
	swarm->clock.start_ns = skep_monotonic_ns();
	for (uint32_t i = 0; i < swarm->ranks; i++)
		assert_int_equal(pthread_create(&swarm->member[i].thread, NULL, member_main, &swarm->member[i]), 0);
	for (uint32_t i = 0; i < swarm->ranks; i++)
		pthread_join(swarm->member[i].thread, NULL);
}

static struct skep_replay_result swarm_replay(struct swarm *swarm)
{
	struct skep_replay_result result;
	assert_true(skep_replay_run(&swarm->scenario.plan, swarm->log, &result));
	assert_int_equal(result.verdict, SKEP_REPLAY_AGREES);
	return result;
}

static void swarm_free(struct swarm *swarm)
{
	for (uint32_t i = 0; i < MACHINES_MAX; i++)
		log_free(&swarm->log[i]);
	post_free(swarm->post);
	skep_scenario_finish(&swarm->scenario);
	free(swarm->post_mortem);
	free(swarm->left);
	free(swarm->used);
	free(swarm->last);
	free(swarm);
}

static void check_learnt(const struct swarm *swarm)
{
	assert_true(swarm->issued > 0);
	assert_int_equal(swarm->counted + swarm->lost, swarm->issued);
	assert_true(swarm->last_loss < swarm->first_loss / 4);
}

/* What rank 0 knows to have been sent; what the dead had not told of is in it only if they have left their counts. A
 * message to a process that is known to be dead counts though no process takes it. */
static void check_traffic(const struct swarm *swarm, bool whole, bool deaths)
{
	uint64_t least = 0;
	for (int i = 0; i < SKEP_TRAFFICS; i++) {
		uint64_t bytes = 0, messages = 0;
		for (uint32_t rank = 0; rank < swarm->ranks; rank++) {
			bytes += swarm->member[rank].bytes[i];
			messages += swarm->member[rank].messages[i];
		}
		assert_int_equal(swarm->sent[i], swarm->link_bytes[i]);
		assert_true(!whole || (swarm->link_bytes[i] >= bytes && swarm->messages[i] >= messages));
		assert_true(deaths || (swarm->link_bytes[i] == bytes && swarm->messages[i] == messages));
		assert_true(!whole || swarm->messages[i] <= messages + 8);
		least += bytes;
	}
	assert_true(whole || swarm->sent[SKEP_TRAFFIC_PIPELINE] > least / 2);
}

/* ---- what happens to it -------------------------------------------------------------------------------------------- */

static void a_trace_kills_softly_where_nothing_survives(void **state)
{
	(void)state;
	/* At an eighth of a second per kill the last one may come after the end on a fast machine. */
	const char *const set[] = {"train.until.steps=150", "cluster.trace.scale=0.006", "schedule.microbatch=128",
		"directory.heartbeat=20 ms", "directory.timeout=300 ms"};
	struct swarm *swarm = swarm_new(set, 5, 0);
	swarm_run(swarm);
	for (uint32_t i = 0; i < swarm->ranks; i++) {
		assert_string_equal(swarm->member[i].reason.message, "");
		assert_true(swarm->member[i].fine && swarm->member[i].clean);
	}
	check_learnt(swarm);
	check_traffic(swarm, true, false);
	assert_int_equal(swarm->deaths, 0);
	assert_true(swarm->notes[SKEP_NOTE_FENCED] > 0 && swarm->notes[SKEP_NOTE_JOINED] > 0);
	struct skep_replay_result replay = swarm_replay(swarm);
	assert_true(replay.whole && replay.lives > replay.machines);
	swarm_free(swarm);
}

/* No silence is long enough here: without the word that the directory gets no worker would be fenced, and the run would
 * wait. */
static void a_loss_is_heard_of(void **state)
{
	(void)state;
	const char *const set[] = {"train.until.steps=60", "cluster.trace.scale=0.004", "schedule.microbatch=128",
		"directory.heartbeat=20 ms", "directory.timeout=100 s", "cluster.trace.detection_delay=5 ms"};
	struct swarm *swarm = swarm_new(set, 6, 0);
	swarm_run(swarm);
	for (uint32_t i = 0; i < swarm->ranks; i++)
		assert_true(swarm->member[i].fine && swarm->member[i].clean);
	assert_true(swarm->issued > 0 && swarm->counted + swarm->lost == swarm->issued);
	assert_true(swarm->notes[SKEP_NOTE_FENCED] > 0);
	assert_true(swarm->member[0].result.end_ns < 100000000000);
	assert_true(swarm_replay(swarm).whole);
	swarm_free(swarm);
}

/* Two die for good, one of them as soon as it has taken the seat of the other. */
static void kill_two(bool post_mortem)
{
	const char *const set[] = {"train.until.steps=40", "schedule.global_batch=512", "schedule.microbatch=32"};
	struct swarm *swarm = swarm_new(set, 3, 3);
	for (uint32_t i = 0; i < swarm->ranks && !post_mortem; i++) {
		swarm->member[i].setup.post_mortem = NULL;
		swarm->member[i].setup.used = NULL;
	}
	swarm->member[3].sends = 400;
	swarm->member[9].sends = 60; /* of which 11 say where it sits */
	swarm_run(swarm);
	for (uint32_t i = 0; i < swarm->ranks; i++)
		assert_int_equal(swarm->member[i].fine, i != 3 && i != 9);
	assert_int_equal(swarm->member[0].result.outcome, SKEP_DONE);
	assert_true(swarm->member[0].result.bereaved);
	check_learnt(swarm);
	check_traffic(swarm, post_mortem, true);
	assert_int_equal(swarm->deaths, 2);
	assert_true(swarm->notes[SKEP_NOTE_FENCED] >= 1 && swarm->notes[SKEP_NOTE_JOINED] >= 1);
	assert_int_equal(swarm->torn, !post_mortem);
	struct skep_replay_result replay = swarm_replay(swarm);
	assert_int_equal(replay.whole, post_mortem);
	if (post_mortem) {
		assert_int_equal(replay.lives, swarm->ranks - 1); /* one spare was not needed */
	} else {
		assert_true(replay.unfinished > 0); /* and it says so */
		assert_int_equal(replay.run_events, 0);
	}
	swarm_free(swarm);
}

static void a_spare_takes_the_slot_of_the_dead(void **state)
{
	(void)state;
	kill_two(true);
}

static void without_post_mortem_the_replay_says_what_it_lacks(void **state)
{
	(void)state;
	kill_two(false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slot_has_one_holder_at_a_time),
		cmocka_unit_test(post_mortem_hold_what_was_not_sent),
		cmocka_unit_test(a_trace_kills_softly_where_nothing_survives),
		cmocka_unit_test(a_loss_is_heard_of),
		cmocka_unit_test(a_spare_takes_the_slot_of_the_dead),
		cmocka_unit_test(without_post_mortem_the_replay_says_what_it_lacks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
