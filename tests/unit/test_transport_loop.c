/* SPDX-License-Identifier: Apache-2.0
 *
 * test_transport_loop.c - whole runs of the real loop, core and devices in one process: a thread per rank, and letter
 * boxes in place of MPI. Letters are frames as bytes, so a test can put in what a broken or hostile process would send.
 */
#include <assert.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "exec/bell.h"
#include "exec/loop.h"
#include "exec/replay.h"
#include "exec/rows.h"

#define RUN 77u
#define RANKS_MAX 16u
#define MS UINT64_C(1000000)

/* ---- letter boxes ---------------------------------------------------------------------------------------------- */

struct letter {
	struct letter *next;
	uint32_t peer;
	bool sent; /* not mail: news that the body of an own letter has gone */
	uint8_t bytes[SKEP_FRAME_MAX];
	size_t size;
	struct skep_frame frame; /* sent */
	uint64_t body_bytes;
	uint8_t body[];
};

struct post; /* the boxes of all ranks */

struct box {
	struct post *post;
	uint32_t rank;
	pthread_mutex_t lock;
	struct letter *first, **last;
	struct letter *open; /* its bytes are looked at */
	struct skep_bell bell;
	uint32_t heard;
	struct skep_complaints complaints;
};

struct post {
	struct box box[RANKS_MAX];
	uint32_t ranks;
};

static struct letter *letter_new(uint32_t peer, uint64_t body_bytes)
{
	struct letter *letter = calloc(1, sizeof *letter + body_bytes);
	assert_non_null(letter);
	letter->peer = peer;
	letter->body_bytes = body_bytes;
	return letter;
}

static void drop_in(struct box *box, struct letter *letter)
{
	pthread_mutex_lock(&box->lock);
	*box->last = letter;
	box->last = &letter->next;
	pthread_mutex_unlock(&box->lock);
	skep_bell_ring(&box->bell);
}

static void post_frame(struct post *post, uint32_t from, uint32_t to, const struct skep_frame *frame, const void *body)
{
	struct letter *letter = letter_new(from, frame->body);
	letter->size = skep_frame_encode(frame, RUN, letter->bytes);
	if (frame->body > 0)
		memcpy(letter->body, body, frame->body);
	drop_in(&post->box[to], letter);
}

static void box_send(void *self, uint32_t peer, const struct skep_frame *frame, const void *body)
{
	struct box *box = self;
	post_frame(box->post, box->rank, peer, frame, body);
	if (frame->body == 0)
		return;
	struct letter *news = letter_new(peer, 0);
	news->sent = true;
	news->frame = *frame;
	drop_in(box, news);
}

static struct letter *take_out(struct box *box)
{
	pthread_mutex_lock(&box->lock);
	struct letter *letter = box->first;
	if (letter != NULL && (box->first = letter->next) == NULL)
		box->last = &box->first;
	pthread_mutex_unlock(&box->lock);
	free(box->open);
	box->open = letter;
	return letter;
}

static bool box_poll(void *self, const struct skep_landing *landing, struct skep_transport_event *ret)
{
	struct box *box = self;
	struct letter *letter;
	box->heard = skep_bell_count(&box->bell);
	while ((letter = take_out(box)) != NULL) {
		*ret = (struct skep_transport_event){.kind = SKEP_TRANSPORT_ARRIVED, .peer = letter->peer};
		if (letter->sent) {
			ret->kind = SKEP_TRANSPORT_SENT;
			ret->frame = letter->frame;
			return true;
		}
		enum skep_frame_fault fault = skep_frame_decode(letter->bytes, letter->size, RUN, &ret->frame);
		if (fault != SKEP_FRAME_GOOD) {
			skep_complain(&box->complaints, (enum skep_complaint)fault, letter->peer);
			continue;
		}
		if (ret->frame.body == 0)
			return true;
		struct skep_buf buf;
		void *memory = landing->memory(landing->context, letter->peer, &ret->frame, &buf);
		if (memory == NULL)
			continue;
		memcpy(memory, letter->body, letter->body_bytes);
		ret->frame.u.message.payload = buf;
		return true;
	}
	return false;
}

static uint32_t box_pending(const void *self)
{
	const struct box *box = self;
	return box->first != NULL; /* own thread: nothing is taken out meanwhile */
}

static void box_wait(void *self, uint64_t most_ns)
{
	struct box *box = self;
	skep_bell_wait(&box->bell, box->heard, most_ns);
}

static void box_wake(void *self)
{
	struct box *box = self;
	skep_bell_ring(&box->bell);
}

static struct post *post_new(uint32_t ranks)
{
	struct post *post = calloc(1, sizeof *post);
	assert_non_null(post);
	assert_true(ranks <= RANKS_MAX);
	post->ranks = ranks;
	for (uint32_t i = 0; i < ranks; i++) {
		struct box *box = &post->box[i];
		*box = (struct box){.post = post, .rank = i, .last = &box->first, .complaints = {.rank = i}};
		pthread_mutex_init(&box->lock, NULL);
	}
	return post;
}

static void post_free(struct post *post)
{
	for (uint32_t i = 0; i < post->ranks; i++) {
		struct box *box = &post->box[i];
		while (take_out(box) != NULL)
			;
		pthread_mutex_destroy(&box->lock);
	}
	free(post);
}

/* ---- a run ------------------------------------------------------------------------------------------------------- */

struct tally { /* what rank 0's recorder has heard */
	uint32_t notes[SKEP_NOTE_KINDS], ops, links, workers, progress;
	uint64_t members, events, messages;
	int64_t first_loss, last_loss;
	struct skep_machine_log log[RANKS_MAX]; /* by machine */
};

static void hear_note(void *context, skep_time now, struct skep_peer who, const struct skep_note *note)
{
	struct tally *tally = context;
	(void)now;
	(void)who;
	tally->notes[note->kind]++;
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
}

static void hear_worker(void *context, const struct skep_worker_use *use)
{
	struct tally *tally = context;
	tally->workers++;
	tally->events += use->events;
	tally->log[use->index].ended = true;
	tally->log[use->index].events = use->events;
	tally->log[use->index].digest = use->digest;
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
	struct skep_machine_log *log = &tally->log[machine];
	uint8_t *all = realloc((uint8_t *)(uintptr_t)log->bytes, log->count + count);
	assert(all != NULL);
	memcpy(all + log->count, bytes, count);
	log->bytes = all;
	log->count += count;
}

struct member { /* one rank */
	struct swarm *swarm;
	pthread_t thread;
	struct skep_transport transport;
	struct skep_loop_setup setup;
	struct skep_exec_result result;
	bool fine, clean;
	uint32_t buffers; /* left in the device */
	char reason[256];
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
	m->fine = skep_loop_run(&m->setup, &m->result, &m->clean, m->reason, sizeof m->reason);
	if (m->setup.device != NULL)
		m->buffers = skep_device_buffers_live(m->setup.device);
	skep_device_destroy(m->setup.device);
	return NULL;
}

/* A swarm of 8 workers in 4 stages, ready to run; the scenario of the proof of concept with so many rounds. */
static struct swarm *swarm_new(const char *steps, bool shape)
{
	struct swarm *swarm = calloc(1, sizeof *swarm);
	const char *const set[] = {steps, "schedule.global_batch=512", "schedule.microbatch=32"};
	struct skep_scenario_options options = {.set = set, .sets = 3};
	struct skep_diag diag = {0};
	char error[256];
	assert_non_null(swarm);
	assert_true(skep_scenario_read("scenarios/two-datacentres.yaml", &options, &swarm->scenario, &diag));
	swarm->ranks = swarm->scenario.plan.workers + 1;
	swarm->post = post_new(swarm->ranks);
	swarm->recorder = (struct skep_recorder){.context = &swarm->tally,
		.note = hear_note,
		.op = hear_op,
		.link = hear_link,
		.worker = hear_worker,
		.progress = hear_progress,
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
			.complaints = &swarm->post->box[i].complaints,
			.recorder = i == 0 ? &swarm->recorder : NULL,
			.signal_fd = -1};
		if (i == 0)
			continue;
		m->setup.device = skep_device_create(SKEP_DEVICE_CPU, &swarm->scenario.training,
			swarm->scenario.first_stage_of[i - 1], error, sizeof error);
		assert_non_null(m->setup.device);
	}
	return swarm;
}

static void swarm_start(struct swarm *swarm)
{
	swarm->clock.start_ns = skep_clock_raw_ns();
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
		free((uint8_t *)(uintptr_t)swarm->tally.log[i].bytes);
	free(swarm);
}

static uint64_t complaints(const struct swarm *swarm, uint32_t rank, int kind)
{
	return swarm->post->box[rank].complaints.count[kind];
}

/* All ranks have ended as they should, and rank 0 has heard everything. */
static void check_finished(const struct swarm *swarm, uint32_t rounds)
{
	const struct tally *tally = &swarm->tally;
	const struct skep_plan *plan = &swarm->scenario.plan;
	for (uint32_t i = 0; i < swarm->ranks; i++) {
		assert_string_equal(swarm->member[i].reason, "");
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
	struct skep_replay_result replay;
	assert_true(skep_replay_run(plan, tally->log, &replay));
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
	assert_true(swarm->tally.last_loss < swarm->tally.first_loss / 4);
	for (uint32_t i = 0; i < swarm->ranks; i++)
		assert_int_equal(skep_complaints_close(&swarm->post->box[i].complaints), 0);
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
	static const uint8_t zeros[100000];
	struct swarm *swarm = swarm_new("train.until.steps=5", false);
	struct post *post = swarm->post;
	struct skep_frame f;

	struct letter *garbage = letter_new(4, 0);
	memset(garbage->bytes, 0xa5, garbage->size = 200);
	drop_in(&post->box[2], garbage);
	f = message_frame(swarm, SKEP_MESSAGE_STOP, 4, 3, 0); /* for another machine */
	post_frame(post, 4, 2, &f, NULL);
	f = message_frame(swarm, SKEP_MESSAGE_STOP, 0, 2, 0); /* in another's name */
	post_frame(post, 4, 2, &f, NULL);
	f = message_frame(swarm, SKEP_MESSAGE_FORWARD, 4, 2, sizeof zeros); /* more than the plan has */
	post_frame(post, 4, 2, &f, zeros);
	f = message_frame(swarm, SKEP_MESSAGE_FORWARD, 4, 2, 4); /* less */
	post_frame(post, 4, 2, &f, zeros);
	f = message_frame(swarm, SKEP_MESSAGE_FORWARD, 4, 2, 0); /* none */
	post_frame(post, 4, 2, &f, NULL);
	f = message_frame(swarm, SKEP_MESSAGE_HEARTBEAT, 4, 2, 64); /* some where none belongs */
	post_frame(post, 4, 2, &f, zeros);
	f = message_frame(swarm, SKEP_MESSAGE_CHUNK, 4, 0, 64); /* the directory has no device */
	post_frame(post, 4, 0, &f, zeros);
	f = message_frame(swarm, SKEP_MESSAGE_FORWARD, 4, 2, 4);
	f.u.message.stage = UINT16_MAX; /* of a stage that is not */
	post_frame(post, 4, 2, &f, zeros);
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
	assert_int_equal(complaints(swarm, 2, SKEP_FRAME_BAD_MAGIC), 1);
	assert_int_equal(complaints(swarm, 2, SKEP_COMPLAINT_MISDIRECTED), 2);
	assert_int_equal(complaints(swarm, 2, SKEP_COMPLAINT_PAYLOAD), 5);
	assert_int_equal(complaints(swarm, 2, SKEP_COMPLAINT_OUT_OF_PLACE), 3);
	assert_int_equal(complaints(swarm, 0, SKEP_COMPLAINT_PAYLOAD), 1);
	assert_int_equal(complaints(swarm, 0, SKEP_COMPLAINT_OUT_OF_PLACE), 2);
	swarm_free(swarm);
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
	assert_string_equal(swarm->member[0].reason, text);
	for (uint32_t i = 1; i < swarm->ranks; i++)
		assert_string_equal(swarm->member[i].reason, "rank 0 has ended the run");
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
	assert_non_null(strstr(swarm->member[0].reason, "SIGTERM"));
	for (uint32_t i = 0; i < swarm->ranks; i++)
		assert_true(swarm->member[i].clean);
	assert_int_equal(swarm->tally.workers, swarm->ranks);
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
		cmocka_unit_test(a_worker_that_cannot_go_on_ends_the_run),
		cmocka_unit_test(a_signal_ends_the_run_in_order),
		cmocka_unit_test(a_silent_rank_does_not_hold_up_the_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
