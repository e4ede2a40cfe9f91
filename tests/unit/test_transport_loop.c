/* SPDX-License-Identifier: Apache-2.0
 *
 * test_transport_loop.c - whole runs of the real loop, core and devices in one process: a thread per rank, and the
 * letter boxes of network_fixture.h in place of MPI.
 */
#include <assert.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "exec/loop/loop.h"
#include "exec/loop/rows.h"
#include "exec/replay/replay.h"
#include "tests/unit/fresh.h"
#include "tests/unit/loop_fixture.h"
#include "tests/unit/network_fixture.h"
#include "tests/unit/observed_device.h"

#define MS UINT64_C(1000000)

/* ---- a run ------------------------------------------------------------------------------------------------------- */

struct tally { /* what rank 0's recorder has heard */
	uint32_t notes[SKEP_NOTE_KINDS], ops, links, workers, progress;
	uint64_t members, events, messages;
	uint64_t used[SKEP_TRAFFICS], sent[SKEP_TRAFFICS]; /* bytes, as links say, and as was told on the way */
	uint64_t first_sent;                               /* of pipeline and reductions, when the first round closed */
	int64_t first_loss, last_loss;
	struct skep_machine_log log[RANKS_MAX]; /* by machine */
	_Atomic uint32_t rounds;                /* closed, for others than rank 0's thread */
};

static void hear_note(void *context, skep_time now, struct skep_peer who, const struct skep_note *note)
{
	struct tally *tally = context;
	(void)now;
	(void)who;
	tally->notes[note->kind]++;
	atomic_fetch_add(&tally->rounds, note->kind == SKEP_NOTE_ROUND_CLOSED);
	if (note->kind == SKEP_NOTE_ROUND_CLOSED) { /* all rounds move the same */
		uint64_t sent = tally->sent[SKEP_TRAFFIC_PIPELINE] + tally->sent[SKEP_TRAFFIC_SYNC];
		tally->first_sent = note->round == 0 ? sent : tally->first_sent;
		assert(sent > 0 && sent == (note->round + 1) * tally->first_sent);
	}
	if (note->kind == SKEP_NOTE_MEMBER)
		tally->members += (uint64_t)note->value;
	if (note->kind == SKEP_NOTE_LOSS && note->round == 0)
		tally->first_loss = note->value;
	if (note->kind == SKEP_NOTE_LOSS)
		tally->last_loss = note->value;
}

static void hear_op(void *context, const struct skep_op_span *span)
{
	struct tally *tally = context;
	tally->ops++;
	assert(span->end_ns - span->begin_ns >= span->busy_ns);
}

static void hear_link(void *context, const struct skep_link_use *use)
{
	struct tally *tally = context;
	tally->links++;
	tally->messages += use->messages;
	tally->used[use->traffic] += use->bytes;
}

static void hear_sent(void *context, const struct skep_sent *sent)
{
	struct tally *tally = context;
	add_bytes(tally->sent, sent->bytes);
}

static void hear_worker(void *context, const struct skep_worker_use *use)
{
	struct tally *tally = context;
	tally->workers++;
	tally->events += use->events;
	assert(!use->torn);
	log_end(&tally->log[use->index], use);
	assert(use->compute_ns >= use->arithmetic_ns && use->alive_ns >= use->compute_ns);
}

static void hear_progress(void *context, skep_time now, uint32_t done, uint32_t total)
{
	struct tally *tally = context;
	(void)now;
	assert(done == ++tally->progress && done <= total);
}

static void hear_log(void *context, uint32_t machine, const uint8_t *bytes, uint32_t count)
{
	struct tally *tally = context;
	log_add(&tally->log[machine], bytes, count);
}

struct member { /* one rank */
	struct swarm *swarm;
	pthread_t thread;
	struct skep_transport transport;
	struct skep_loop_setup setup;
	struct skep_exec_result result;
	bool fine, clean;
	uint32_t buffers; /* left in the device */
	struct skep_diag reason;
};

struct swarm {
	struct skep_scenario scenario;
	struct post *post;
	struct skep_clock clock;
	struct skep_recorder recorder;
	struct tally tally;
	uint32_t ranks;
	uint32_t silent; /* this rank never runs; 0: all run */
	struct member member[RANKS_MAX];
};

static void *member_main(void *argument)
{
	struct member *m = argument;
	m->fine = skep_loop_run(&m->setup, &m->result, &m->clean, fresh(&m->reason));
	if (m->setup.device != NULL)
		m->buffers = buffers_live(m->setup.device);
	skep_device_destroy(m->setup.device);
	return NULL;
}

/* The scenario of the proof of concept with so many rounds. */
static void read_scenario(const char *steps, struct skep_scenario *ret)
{
	const char *const set[] = {steps, "schedule.global_batch=512", "schedule.microbatch=32"};
	struct skep_scenario_options options = {.set = set, .sets = 3};
	struct skep_diag diag = {0};
	assert_true(skep_scenario_read("scenarios/two-datacentres.yaml", &options, ret, &diag));
}

/* A swarm of 8 workers in 4 stages, ready to run. */
static struct swarm *swarm_new(const char *steps, bool shape)
{
	struct swarm *swarm = calloc(1, sizeof *swarm);
	assert_non_null(swarm);
	read_scenario(steps, &swarm->scenario);
	swarm->ranks = swarm->scenario.plan.workers + 1;
	swarm->post = post_new(swarm->ranks);
	swarm->recorder = (struct skep_recorder){.context = &swarm->tally,
		.note = hear_note,
		.op = hear_op,
		.link = hear_link,
		.worker = hear_worker,
		.progress = hear_progress,
		.sent = hear_sent,
		.log = hear_log};
	for (uint32_t i = 0; i < swarm->ranks; i++) {
		struct member *m = &swarm->member[i];
		m->swarm = swarm;
		m->transport = (struct skep_transport){.self = &swarm->post->box[i],
			.rank = i,
			.ranks = swarm->ranks,
			.send = box_send,
			.poll = box_poll,
			.pending = box_pending,
			.wait = box_wait,
			.wake = box_wake};
		m->setup = (struct skep_loop_setup){.scenario = &swarm->scenario,
			.shape = shape,
			.transport = &m->transport,
			.clock = &swarm->clock,
			.rejects = &swarm->post->box[i].rejects,
			.recorder = i == 0 ? &swarm->recorder : NULL,
			.signal_fd = -1};
		if (i == 0)
			continue;
		m->setup.device = device_of_stage(&swarm->scenario, swarm->scenario.first_stage_of[i - 1]);
	}
	return swarm;
}

static void swarm_start(struct swarm *swarm)
{
	swarm->clock.start_ns = skep_monotonic_ns();
	for (uint32_t i = 0; i < swarm->ranks; i++) {
		if (i == 0 || i != swarm->silent)
			assert_int_equal(
				pthread_create(&swarm->member[i].thread, NULL, member_main, &swarm->member[i]), 0);
	}
}

static void swarm_join(struct swarm *swarm)
{
	for (uint32_t i = 0; i < swarm->ranks; i++) {
		if (i == 0 || i != swarm->silent)
			pthread_join(swarm->member[i].thread, NULL);
		else
			skep_device_destroy(swarm->member[i].setup.device);
	}
}

static void swarm_free(struct swarm *swarm)
{
	post_free(swarm->post);
	skep_scenario_finish(&swarm->scenario);
	for (uint32_t i = 0; i < swarm->ranks; i++)
		log_free(&swarm->tally.log[i]);
	free(swarm);
}

static uint64_t rejects(const struct swarm *swarm, uint32_t rank, int kind)
{
	return swarm->post->box[rank].rejects.count[kind];
}

/* All ranks have ended as they should, and rank 0 has heard everything. */
static void check_finished(const struct swarm *swarm, uint32_t rounds)
{
	const struct tally *tally = &swarm->tally;
	const struct skep_plan *plan = &swarm->scenario.plan;
	for (uint32_t i = 0; i < swarm->ranks; i++) {
		assert_string_equal(swarm->member[i].reason.message, "");
		assert_true(swarm->member[i].fine && swarm->member[i].clean);
		assert_int_equal(swarm->member[i].result.outcome, SKEP_DONE);
		assert_int_equal(swarm->member[i].buffers, 0);
	}
	assert_int_equal(tally->notes[SKEP_NOTE_ROUND_CLOSED], rounds);
	assert_int_equal(tally->progress, rounds);
	assert_int_equal(tally->workers, swarm->ranks);
	assert_int_equal(tally->events, swarm->member[0].result.events);
	assert_int_equal(tally->members, (uint64_t)rounds * plan->microbatches * plan->stages);
	assert_int_equal(tally->notes[SKEP_NOTE_COUNTED], tally->members);
	assert_true(tally->ops >= 2 * tally->members + rounds * plan->workers);
	assert_true(tally->messages > 0 && tally->links > 0);
	assert_memory_equal(tally->sent, tally->used, sizeof tally->sent);
}

/* Not for swarms that are told what none of their machines sent. */
static void check_replays(const struct swarm *swarm)
{
	const struct tally *tally = &swarm->tally;
	struct skep_replay_result replay;
	assert_true(skep_replay_run(&swarm->scenario.plan, tally->log, &replay));
	assert_int_equal(replay.verdict, SKEP_REPLAY_AGREES);
	assert_true(replay.whole);
	assert_int_equal(replay.events, tally->events);
}

static void a_swarm_learns_over_threads(void **state)
{
	(void)state;
	struct swarm *swarm = swarm_new("train.until.steps=20", false);
	swarm_start(swarm);
	swarm_join(swarm);
	check_finished(swarm, 20);
	check_replays(swarm);
	assert_true(swarm->tally.last_loss < swarm->tally.first_loss / 4);
	for (uint32_t i = 0; i < swarm->ranks; i++)
		assert_int_equal(skep_rejects_close(&swarm->post->box[i].rejects), 0);
	swarm_free(swarm);
}

/* A round needs the pipeline there and back: its grant, 3 + 3 hops between stages, and the word that it came back. */
static void a_shaped_swarm_keeps_to_the_network(void **state)
{
	(void)state;
	struct swarm *swarm = swarm_new("train.until.steps=3", true);
	swarm_start(swarm);
	swarm_join(swarm);
	check_finished(swarm, 3);
	check_replays(swarm);
	double least_s = 1e9;
	for (uint32_t i = 0; i <= swarm->scenario.plan.workers; i++) {
		for (uint32_t j = 0; j <= swarm->scenario.plan.workers; j++) {
			double latency_s = skep_topology_pair(&swarm->scenario.topology, i, j).latency_s;
			least_s = i != j && latency_s < least_s ? latency_s : least_s;
		}
	}
	assert_true(least_s > 0);
	assert_true((double)swarm->member[0].result.end_ns * 1e-9 >= 3 * 8 * least_s);
	swarm_free(swarm);
}

/* ---- what a process must not believe ------------------------------------------------------------------------------ */

static struct skep_frame message_frame(
	const struct swarm *swarm, uint32_t kind, uint32_t from_rank, uint32_t to_rank, uint64_t body)
{
	uint32_t workers = swarm->scenario.plan.workers;
	struct skep_frame frame = {.type = SKEP_FRAME_MESSAGE, .number = 1u << 20, .body = body};
	frame.u.message.kind = (uint8_t)kind;
	frame.u.message.from = (struct skep_peer){from_rank == 0 ? workers : from_rank - 1, 1};
	frame.u.message.to = (struct skep_peer){to_rank == 0 ? workers : to_rank - 1, 1};
	frame.u.message.payload_bytes = body;
	return frame;
}

static void nonsense_is_dropped_and_counted(void **state)
{
	(void)state;
	static const uint8_t zeros[16];
	struct swarm *swarm = swarm_new("train.until.steps=5", false);
	struct post *post = swarm->post;
	struct skep_frame f;

	struct probe_message *garbage = letter_new(4, 0);
	memset(garbage->bytes, 0xa5, garbage->size = 200);
	drop_in(&post->box[2], garbage);
	struct probe_message *stranger = letter_new(4, 0);
	f = message_frame(swarm, SKEP_MESSAGE_STOP, 4, 2, 0);
	stranger->size = skep_frame_encode(&f, RUN + 1, stranger->bytes); /* of another run */
	drop_in(&post->box[2], stranger);
	f = message_frame(swarm, SKEP_MESSAGE_STOP, 0, 2, 0);
	f.u.message.kind = SKEP_MESSAGE_GRANT;
	f.u.message.u.grant.count = 1;
	f.u.message.u.grant.in_flight = 1;
	f.u.message.to.epoch = 77; /* of an age that is not */
	post_frame(post, 0, 2, &f, NULL);
	f = (struct skep_frame){.type = SKEP_FRAME_HALT}; /* not by rank 0 */
	post_frame(post, 4, 2, &f, NULL);
	f = (struct skep_frame){.type = SKEP_FRAME_RELEASE};
	post_frame(post, 4, 2, &f, NULL);
	f = (struct skep_frame){.type = SKEP_FRAME_ROWS}; /* not to a worker */
	post_frame(post, 4, 2, &f, NULL);
	f.u.text.bytes = zeros; /* no rows */
	f.u.text.count = 9;
	post_frame(post, 4, 0, &f, NULL);
	f = (struct skep_frame){.type = SKEP_FRAME_FLOW}; /* nothing is shaped */
	post_frame(post, 4, 0, &f, NULL);

	swarm_start(swarm);
	swarm_join(swarm);
	check_finished(swarm, 5);
	assert_int_equal(rejects(swarm, 2, SKEP_FRAME_BAD_MAGIC), 1);
	assert_int_equal(rejects(swarm, 2, SKEP_FRAME_BAD_RUN), 1);
	assert_int_equal(rejects(swarm, 2, SKEP_REJECT_OUT_OF_PLACE), 3);
	assert_int_equal(rejects(swarm, 0, SKEP_REJECT_OUT_OF_PLACE), 2);
	swarm_free(swarm);
}

/* A message of the run that its machine cannot be given: the run ends, counts it, and says who has lost what. */
static void check_lost(uint32_t kind, uint32_t from, uint32_t to, uint64_t body, uint64_t posted, uint32_t stage,
	uint32_t receiver, int reject)
{
	static const uint8_t zeros[100000];
	struct skep_diag reason;
	struct swarm *swarm = swarm_new("train.until.steps=100000", false);
	struct skep_frame frame = message_frame(swarm, kind, from, to, body);
	frame.u.message.stage = (uint16_t)stage;
	struct probe_message *probe_message = letter_new(4, posted);
	probe_message->size = skep_frame_encode(&frame, RUN, probe_message->bytes);
	memcpy(probe_message->body, zeros, posted);
	drop_in(&swarm->post->box[receiver], probe_message);
	swarm_start(swarm);
	swarm_join(swarm);
	assert_false(swarm->member[0].fine);
	assert_true(swarm->member[0].clean);
	snprintf(reason.message, sizeof reason.message, "%slost a message %s, from rank 4",
		receiver == 0 ? "" : "worker 1: ", skep_reject_text((enum skep_reject)reject));
	assert_string_equal(swarm->member[0].reason.message, reason.message);
	assert_int_equal(rejects(swarm, receiver, reject), reject == SKEP_REJECT_BODY_SIZE ? 0 : 1);
	swarm_free(swarm);
}

static void a_lost_message_ends_the_run(void **state)
{
	(void)state;
	struct skep_scenario scenario;
	read_scenario("train.until.steps=1", &scenario);
	uint64_t right = scenario.plan.stage[0].activation_bytes;
	skep_scenario_finish(&scenario);
	check_lost(SKEP_MESSAGE_STOP, 4, 3, 0, 0, 0, 2, SKEP_REJECT_MISDIRECTED); /* for another machine */
	check_lost(SKEP_MESSAGE_STOP, 0, 2, 0, 0, 0, 2, SKEP_REJECT_MISDIRECTED); /* in another's name */
	check_lost(SKEP_MESSAGE_FORWARD, 4, 2, right + 1, right + 1, 0, 2, SKEP_REJECT_PAYLOAD);
	check_lost(SKEP_MESSAGE_FORWARD, 4, 2, right - 1, right - 1, 0, 2, SKEP_REJECT_PAYLOAD);
	check_lost(SKEP_MESSAGE_FORWARD, 4, 2, 0, 0, 0, 2, SKEP_REJECT_PAYLOAD);
	check_lost(SKEP_MESSAGE_FORWARD, 4, 2, right, right, UINT16_MAX, 2, SKEP_REJECT_PAYLOAD); /* no such stage */
	check_lost(SKEP_MESSAGE_HEARTBEAT, 4, 2, 64, 64, 0, 2, SKEP_REJECT_PAYLOAD); /* where none belongs */
	check_lost(SKEP_MESSAGE_CHUNK, 4, 0, 64, 64, 0, 0, SKEP_REJECT_PAYLOAD);     /* no device */
	check_lost(SKEP_MESSAGE_HEARTBEAT, 4, 2, 0, 0, 0, 2, SKEP_REJECT_FIELDS);    /* a directory sends none */
	check_lost(SKEP_MESSAGE_FORWARD, 4, 2, right, right - 1, 0, 2, SKEP_REJECT_BODY_SIZE);
}

/* A device that holds another stage can do nothing that it is asked for. */
static void a_failed_operation_ends_the_run(void **state)
{
	(void)state;
	static const char text[] = "worker 2: the device could not do forward of round 0, microbatch ";
	struct swarm *swarm = swarm_new("train.until.steps=100000", false);
	struct member *m = &swarm->member[3];
	struct skep_diag error;
	uint32_t stage = (swarm->scenario.first_stage_of[2] + 1) % swarm->scenario.plan.stages;
	skep_device_destroy(m->setup.device);
	m->setup.device = skep_device_create_on(
		SKEP_DEVICE_CPU, &(struct skep_device_place){0}, &swarm->scenario.training, stage, fresh(&error));
	assert_non_null(m->setup.device);
	swarm_start(swarm);
	swarm_join(swarm);
	assert_false(swarm->member[0].fine);
	assert_true(swarm->member[0].clean);
	assert_memory_equal(swarm->member[0].reason.message, text, sizeof text - 1);
	swarm_free(swarm);
}

static void patience_grows_with_the_longest_operation(void **state)
{
	(void)state;
	struct skep_scenario scenario;
	struct skep_op op = {.kind = SKEP_OP_BACKWARD, .stage = 1};
	read_scenario("train.until.steps=1", &scenario);
	uint64_t least_ns = skep_loop_patience_ns(&scenario, false);
	assert_true(least_ns >= 10000 * MS);
	scenario.op_time[(size_t)scenario.topology.machine[7].gpu * scenario.plan.stages + 1].backward_ns =
		3600000 * MS;
	assert_int_equal(skep_scenario_op_ns(&scenario, 7, &op), 3600000 * MS);
	assert_true(skep_loop_patience_ns(&scenario, true) >= least_ns + 3600000 * MS);
	assert_int_equal(skep_loop_patience_ns(&scenario, false), least_ns);
	skep_scenario_finish(&scenario);
}

/* ---- ends before the end ------------------------------------------------------------------------------------------ */

static void a_worker_that_cannot_go_on_ends_the_run(void **state)
{
	(void)state;
	static const char text[] = "worker 3: the device is on fire";
	struct swarm *swarm = swarm_new("train.until.steps=100000", false);
	struct skep_frame fault = {.type = SKEP_FRAME_FAULT};
	fault.u.text.bytes = (const uint8_t *)text;
	fault.u.text.count = sizeof text - 1;
	swarm_start(swarm);
	usleep(200000);
	post_frame(swarm->post, 4, 0, &fault, NULL);
	swarm_join(swarm);
	assert_false(swarm->member[0].fine);
	assert_true(swarm->member[0].clean);
	assert_string_equal(swarm->member[0].reason.message, text);
	for (uint32_t i = 1; i < swarm->ranks; i++)
		assert_string_equal(swarm->member[i].reason.message, "rank 0 has ended the run");
	assert_int_equal(swarm->tally.workers, swarm->ranks);
	swarm_free(swarm);
}

static int signal_source(void)
{
	sigset_t quit;
	sigemptyset(&quit);
	sigaddset(&quit, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &quit, NULL);
	return signalfd(-1, &quit, SFD_NONBLOCK | SFD_CLOEXEC);
}

static void a_signal_ends_the_run_in_order(void **state)
{
	(void)state;
	struct swarm *swarm = swarm_new("train.until.steps=100000", true);
	int fd = signal_source();
	swarm->member[0].setup.signal_fd = fd;
	swarm_start(swarm);
	usleep(200000);
	pthread_kill(swarm->member[0].thread, SIGTERM); /* other threads of this program have not blocked it */
	swarm_join(swarm);
	assert_false(swarm->member[0].fine);
	assert_non_null(strstr(swarm->member[0].reason.message, "SIGTERM"));
	for (uint32_t i = 0; i < swarm->ranks; i++)
		assert_true(swarm->member[i].clean);
	assert_int_equal(swarm->tally.workers, swarm->ranks);
	close(fd);
	swarm_free(swarm);
}

/* As box_poll, but there is always one more frame: rows with nothing in them. */
static bool flood_poll(void *self, const struct skep_landing *landing, struct skep_transport_event *ret)
{
	static const uint8_t nothing[1];
	if (box_poll(self, landing, ret))
		return true;
	*ret = (struct skep_transport_event){
		.kind = SKEP_TRANSPORT_ARRIVED, .peer = 4, .frame = {.type = SKEP_FRAME_ROWS}};
	ret->frame.u.text.bytes = nothing;
	return true;
}

static void a_signal_gets_through_a_flood(void **state)
{
	(void)state;
	struct swarm *swarm = swarm_new("train.until.steps=100000", true);
	int fd = signal_source();
	swarm->member[0].setup.signal_fd = fd;
	swarm->member[0].transport.poll = flood_poll;
	swarm_start(swarm);
	while (atomic_load(&swarm->tally.rounds) == 0)
		usleep(1000);
	pthread_kill(swarm->member[0].thread, SIGTERM); /* other threads of this program have not blocked it */
	swarm_join(swarm);
	assert_non_null(strstr(swarm->member[0].reason.message, "SIGTERM"));
	assert_true(swarm->member[0].clean);
	assert_true(swarm->tally.notes[SKEP_NOTE_ISSUED] > 0 && swarm->tally.ops > 0); /* shaped: it has kept time */
	close(fd);
	swarm_free(swarm);
}

/* A rank that never answers is given up; what the others have reported is kept. */
static void a_silent_rank_does_not_hold_up_the_end(void **state)
{
	(void)state;
	struct swarm *swarm = swarm_new("train.until.steps=100000", false);
	int fd = signal_source();
	swarm->silent = 5;
	swarm->member[0].setup.signal_fd = fd;
	swarm_start(swarm);
	usleep(100000);
	pthread_kill(swarm->member[0].thread, SIGTERM); /* other threads of this program have not blocked it */
	swarm_join(swarm);
	for (uint32_t i = 0; i < swarm->ranks; i++)
		assert_false(swarm->member[i].fine || swarm->member[i].clean);
	assert_int_equal(swarm->tally.workers, swarm->ranks - 1);
	close(fd);
	swarm_free(swarm);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_swarm_learns_over_threads),
		cmocka_unit_test(a_shaped_swarm_keeps_to_the_network),
		cmocka_unit_test(nonsense_is_dropped_and_counted),
		cmocka_unit_test(a_lost_message_ends_the_run),
		cmocka_unit_test(a_failed_operation_ends_the_run),
		cmocka_unit_test(patience_grows_with_the_longest_operation),
		cmocka_unit_test(a_worker_that_cannot_go_on_ends_the_run),
		cmocka_unit_test(a_signal_ends_the_run_in_order),
		cmocka_unit_test(a_signal_gets_through_a_flood),
		cmocka_unit_test(a_silent_rank_does_not_hold_up_the_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
