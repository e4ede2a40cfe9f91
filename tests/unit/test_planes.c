/* SPDX-License-Identifier: Apache-2.0
 *
 * test_planes.c - runs of several planes (exec/transport/plane.h) in one process: a thread for each rank of each plane, and
 * letter boxes in place of MPI. Each plane has the whole model here, so that all of them have to end alike whatever they
 * decide; where they meet inside passes is test_tensor_parallel.c's.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "exec/loop/loop.h"
#include "exec/transport/plane.h"
#include "tests/unit/fresh.h"
#include "tests/unit/loop_fixture.h"
#include "tests/unit/network_fixture.h"
#include "tests/unit/observed_device.h"

enum { PLANES = 3 };

struct member { /* one rank of all planes */
	pthread_t thread;
	struct skep_transport below, transport;
	struct skep_plane *plane;
	struct skep_loop_setup setup;
	struct skep_exec_result result;
	atomic_bool abandoned;
	bool fine, clean;
	struct skep_diag reason;
	int64_t last_loss; /* of a directory */
	struct skep_recorder recorder;
};

struct run {
	struct skep_scenario scenario;
	struct post *post;
	struct skep_clock clock;
	uint32_t ranks;
	struct member member[RANKS_MAX];
};

static void hear_note(void *context, skep_time now, struct skep_peer who, const struct skep_note *note)
{
	struct member *m = context;
	(void)now;
	(void)who;
	if (note->kind == SKEP_NOTE_LOSS)
		m->last_loss = note->value;
}

static void *member_main(void *argument)
{
	struct member *m = argument;
	m->fine = skep_loop_run(&m->setup, &m->result, &m->clean, fresh(&m->reason));
	skep_device_destroy(m->setup.device);
	return NULL;
}

static void member_begin(struct run *run, uint32_t rank)
{
	struct member *m = &run->member[rank];
	uint32_t place = rank / PLANES;
	m->below = (struct skep_transport){.self = &run->post->box[rank],
		.rank = rank,
		.ranks = run->ranks,
		.send = box_send,
		.poll = box_poll,
		.pending = box_pending,
		.wait = box_wait,
		.wake = box_wake};
	m->plane = skep_plane_create(&m->below, PLANES, &m->transport);
	assert_non_null(m->plane);
	m->recorder = (struct skep_recorder){.context = m, .note = hear_note};
	m->setup = (struct skep_loop_setup){.scenario = &run->scenario,
		.transport = &m->transport,
		.plane = m->plane,
		.abandoned = &m->abandoned,
		.clock = &run->clock,
		.rejects = &run->post->box[rank].rejects,
		.recorder = place == 0 ? &m->recorder : NULL,
		.signal_fd = -1};
	if (place > 0)
		m->setup.device = device_of_stage(&run->scenario, run->scenario.first_stage_of[place - 1]);
}

static struct run *run_new(const char *setting)
{
	const char *const set[] = {"train.until.steps=12", "schedule.global_batch=256", "schedule.microbatch=32",
		"cluster.topology=topologies/four-a100.yaml", "model.stages=2", setting};
	struct skep_scenario_options options = {.set = set, .sets = sizeof set / sizeof set[0]};
	struct skep_diag diag = {0};
	struct run *run = calloc(1, sizeof *run);
	assert_non_null(run);
	assert_true(skep_scenario_read("scenarios/two-datacentres.yaml", &options, &run->scenario, &diag));
	run->ranks = PLANES * (run->scenario.plan.workers + 1);
	run->post = post_new(run->ranks);
	for (uint32_t i = 0; i < run->ranks; i++)
		member_begin(run, i);
	return run;
}

static void run_whole(struct run *run)
{
	run->clock.start_ns = skep_monotonic_ns();
	for (uint32_t i = 0; i < run->ranks; i++)
		assert_int_equal(pthread_create(&run->member[i].thread, NULL, member_main, &run->member[i]), 0);
	for (uint32_t i = 0; i < run->ranks; i++)
		pthread_join(run->member[i].thread, NULL);
}

static void run_free(struct run *run)
{
	for (uint32_t i = 0; i < run->ranks; i++)
		skep_plane_destroy(run->member[i].plane);
	post_free(run->post);
	skep_scenario_finish(&run->scenario);
	free(run);
}

/* A plane whose machine had another digest at any event would have ended the run. */
static void planes_take_the_same_decisions(void **state)
{
	static const char *const pipelines[] = {
		"schedule.pipeline=swarm", "schedule.pipeline=1f1b", "schedule.pipeline=gpipe"};
	(void)state;
	for (uint32_t p = 0; p < sizeof pipelines / sizeof pipelines[0]; p++) {
		struct run *run = run_new(pipelines[p]);
		run_whole(run);
		for (uint32_t i = 0; i < run->ranks; i++) {
			assert_string_equal(run->member[i].reason.message, "");
			assert_true(run->member[i].fine && run->member[i].clean);
			assert_int_equal(run->member[i].result.outcome, SKEP_DONE);
			assert_int_equal(skep_rejects_close(&run->post->box[i].rejects), 0);
			assert_false(run->member[i].abandoned);
		}
		for (uint32_t t = 1; t < PLANES; t++) {
			assert_int_equal(run->member[t].last_loss, run->member[0].last_loss);
			assert_int_equal(run->member[t].result.events, run->member[0].result.events);
		}
		assert_true(run->member[0].last_loss > 0);
		run_free(run);
	}
}

/* A process that cannot go on, in whichever plane, ends all planes, and no pass waits for another plane any more. */
static void what_ends_a_plane_ends_all(void **state)
{
	(void)state;
	for (uint32_t plane = 0; plane < PLANES; plane++) {
		struct run *run = run_new("train.until.steps=100000");
		struct skep_frame fault = {.type = SKEP_FRAME_FAULT};
		fault.u.text.bytes = (const uint8_t *)"no more";
		fault.u.text.count = 7;
		post_frame(run->post, PLANES + plane, plane, &fault, NULL);
		run_whole(run);
		for (uint32_t i = 0; i < run->ranks; i++) {
			assert_false(run->member[i].fine);
			assert_true(run->member[i].abandoned);
		}
		assert_string_equal(run->member[plane].reason.message, "no more");
		run_free(run);
	}
}

/* Words of another machine, and frames of another plane than the receiver's, come to no loop. */
static void frames_of_other_planes_are_dropped(void **state)
{
	(void)state;
	struct run *run = run_new("schedule.pipeline=swarm");
	struct skep_frame frame = {.type = SKEP_FRAME_HALT}, word = {.type = SKEP_FRAME_LOCKSTEP};
	word.u.text.bytes = (const uint8_t *)"\2";
	word.u.text.count = 1;
	post_frame(run->post, 1, PLANES, &frame, NULL);    /* by the directory of plane 1, to worker 0 of plane 0 */
	post_frame(run->post, PLANES + 1, 0, &word, NULL); /* by a worker */
	run_whole(run);
	for (uint32_t i = 0; i < run->ranks; i++)
		assert_true(run->member[i].fine);
	run_free(run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(planes_take_the_same_decisions),
		cmocka_unit_test(what_ends_a_plane_ends_all),
		cmocka_unit_test(frames_of_other_planes_are_dropped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
