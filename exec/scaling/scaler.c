/* SPDX-License-Identifier: Apache-2.0
 *
 * scaler.c - see scaler.h.
 */
#include "exec/scaling/scaler.h"

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"

#define PAUSE_LEAST_S 5u
#define PAUSE_MOST_S 60u
#define CALL_MOST_S 600u /* a call that takes longer is ended */
#define LAST_MOST_S 60u  /* the same when the run has ended */
#define NAP_NS 50000000
#define OWN 5u /* variables */
#define TEXT_BYTES 600u

struct kind {
	uint32_t wanted, told; /* told: by the last call that succeeded */
	uint32_t present;
	bool again; /* a machine was lost since */
	bool called;
	uint64_t due_ns;  /* no call before */
	uint64_t last_ns; /* when the last one succeeded */
	uint32_t pause_s;
};

struct skep_scaler {
	struct skep_scaler_setup setup;
	char server[512], ticket[256];
	pthread_t thread;
	bool begun;
	pthread_mutex_t lock;
	bool ending, done;
	bool running; /* the first round has opened */
	bool *there;  /* [workers] */
	struct kind kind[SKEP_SCALE_KINDS_MAX];
};

struct call { /* what one is told */
	const char *kind;
	uint32_t wanted, present;
};

/* ---- one call ------------------------------------------------------------------------------------------------------------ */

/* The environment of this process, and what the command is told; `text` holds the latter. NULL: no memory. */
static char **make_environment(const struct skep_scaler *s, const struct call *call, char text[OWN][TEXT_BYTES])
{
	uint32_t count = 0;
	while (environ[count] != NULL)
		count++;
	char **all = calloc(count + OWN + 1, sizeof *all);
	snprintf(text[0], TEXT_BYTES, "SKEP_SCALE_KIND=%s", call->kind);
	snprintf(text[1], TEXT_BYTES, "SKEP_SCALE_WANTED=%" PRIu32, call->wanted);
	snprintf(text[2], TEXT_BYTES, "SKEP_SCALE_PRESENT=%" PRIu32, call->present);
	snprintf(text[3], TEXT_BYTES, "SKEP_SERVER=%s", s->server);
	snprintf(text[4], TEXT_BYTES, "SKEP_TICKET=%s", s->ticket);
	for (uint32_t i = 0; all != NULL && i < OWN; i++) /* the first of a name counts */
		all[i] = text[i];
	for (uint32_t i = 0; all != NULL && i < count; i++)
		all[OWN + i] = environ[i];
	return all;
}

/* In a group of its own, so that what ends this process by a terminal ends no call half-way; with the signals of a new
 * process. */
static bool start(const struct skep_scaler *s, char **environment, pid_t *ret_child)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t how;
	sigset_t none, usual;
	char *const words[] = {"sh", "-c", (char *)s->setup.command, NULL};
	sigemptyset(&none);
	sigemptyset(&usual);
	sigaddset(&usual, SIGPIPE);
	if (posix_spawn_file_actions_init(&files) != 0)
		return false;
	if (posix_spawnattr_init(&how) != 0) {
		posix_spawn_file_actions_destroy(&files);
		return false;
	}
	bool fine = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0) == 0 &&
	            posix_spawn_file_actions_adddup2(&files, 2, 1) == 0 &&
	            posix_spawn_file_actions_addclosefrom_np(&files, 3) == 0 &&
	            posix_spawnattr_setsigmask(&how, &none) == 0 && posix_spawnattr_setsigdefault(&how, &usual) == 0 &&
	            posix_spawnattr_setpgroup(&how, 0) == 0 &&
	            posix_spawnattr_setflags(
			    &how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP) == 0 &&
	            posix_spawn(ret_child, "/bin/sh", &files, &how, words, environment) == 0;
	posix_spawnattr_destroy(&how);
	posix_spawn_file_actions_destroy(&files);
	return fine;
}

static bool is_ending(struct skep_scaler *s)
{
	pthread_mutex_lock(&s->lock);
	bool ending = s->ending;
	pthread_mutex_unlock(&s->lock);
	return ending;
}

/* The status as waitpid() has it. */
static int wait_for(struct skep_scaler *s, pid_t child)
{
	const struct timespec nap = {.tv_nsec = NAP_NS};
	uint64_t began_ns = skep_monotonic_ns(), ending_ns = 0;
	int status = 0;
	while (waitpid(child, &status, WNOHANG) == 0) {
		uint64_t now_ns = skep_monotonic_ns();
		if (ending_ns == 0 && is_ending(s))
			ending_ns = now_ns;
		if (now_ns > began_ns + CALL_MOST_S * SKEP_SECOND_NS ||
			(ending_ns > 0 && now_ns > ending_ns + LAST_MOST_S * SKEP_SECOND_NS))
			kill(-child, SIGKILL);
		nanosleep(&nap, NULL);
	}
	return status;
}

static bool call_command(struct skep_scaler *s, const struct call *call)
{
	char text[OWN][TEXT_BYTES], why[64] = "could not be started";
	char **environment = make_environment(s, call, text);
	pid_t child;
	bool fine = environment != NULL && start(s, environment, &child);
	free(environment);
	if (fine) {
		int status = wait_for(s, child);
		fine = WIFEXITED(status) && WEXITSTATUS(status) == 0;
		if (WIFEXITED(status))
			snprintf(why, sizeof why, "ended with status %d", WEXITSTATUS(status));
		else
			snprintf(why, sizeof why, "was ended by signal %d", WTERMSIG(status));
	}
	if (fine && !s->setup.quiet)
		fprintf(stderr, "skep: asked for %" PRIu32 " of %s, of which %" PRIu32 " are here\n", call->wanted,
			call->kind, call->present);
	if (!fine)
		fprintf(stderr, "skep: the scale command %s: it was to have %" PRIu32 " of %s there\n", why,
			call->wanted, call->kind);
	return fine;
}

/* ---- whom to tell ------------------------------------------------------------------------------------------------------- */

static bool is_due(const struct skep_scaler *s, const struct kind *kind, uint64_t now_ns)
{
	uint64_t cool_down_ns = s->setup.scenario->scale.cool_down_ns;
	bool lacks = kind->present < kind->wanted;
	bool again = lacks && s->running && (kind->again || now_ns > kind->last_ns + cool_down_ns);
	return now_ns >= kind->due_ns && (!kind->called || kind->told != kind->wanted || again);
}

/* Tells one kind, with the lock in hand, which it puts down for as long as the call takes. */
static void tell(struct skep_scaler *s, uint32_t k)
{
	struct kind *kind = &s->kind[k];
	const struct call call = {s->setup.scenario->scale_name[k], kind->wanted, kind->present};
	kind->again = false;
	pthread_mutex_unlock(&s->lock);
	bool fine = call_command(s, &call);
	pthread_mutex_lock(&s->lock);
	kind->last_ns = skep_monotonic_ns();
	if (fine) {
		kind->called = true;
		kind->told = call.wanted;
		kind->pause_s = 0;
		return;
	}
	kind->called = false;
	kind->pause_s = kind->pause_s == 0 ? PAUSE_LEAST_S : 2 * kind->pause_s;
	kind->pause_s = kind->pause_s < PAUSE_MOST_S ? kind->pause_s : PAUSE_MOST_S;
	kind->due_ns = kind->last_ns + kind->pause_s * SKEP_SECOND_NS;
}

static void *work(void *context)
{
	struct skep_scaler *s = context;
	const uint32_t kinds = s->setup.scenario->scale.kinds;
	const struct timespec nap = {.tv_nsec = NAP_NS};
	pthread_mutex_lock(&s->lock);
	while (!s->ending) {
		for (uint32_t k = 0; k < kinds && !s->ending; k++)
			if (is_due(s, &s->kind[k], skep_monotonic_ns()))
				tell(s, k);
		pthread_mutex_unlock(&s->lock);
		nanosleep(&nap, NULL);
		pthread_mutex_lock(&s->lock);
	}
	for (uint32_t k = 0; s->done && k < kinds; k++) {
		s->kind[k].wanted = 0;
		if (!s->kind[k].called || s->kind[k].told > 0)
			tell(s, k);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* ---- who takes part -------------------------------------------------------------------------------------------------------- */

static void set_there(struct skep_scaler *s, uint32_t worker, bool there)
{
	struct kind *kind = &s->kind[s->setup.scenario->scale_kind_of[worker]];
	if (s->there[worker] == there)
		return;
	s->there[worker] = there;
	if (there)
		kind->present++;
	else
		kind->present--;
	kind->again = kind->again || !there;
}

static void begin_running(struct skep_scaler *s)
{
	s->running = true;
	for (uint32_t i = 0; i < s->setup.scenario->plan.workers; i++)
		set_there(s, i, s->setup.scenario->first_stage_of[i] != SKEP_NO_STAGE);
}

static void hear(void *context, skep_time now, struct skep_peer who, const struct skep_note *note)
{
	struct skep_scaler *s = context;
	(void)now, (void)who;
	pthread_mutex_lock(&s->lock);
	if (!s->running)
		begin_running(s);
	if (note->kind == SKEP_NOTE_ADMITTED || note->kind == SKEP_NOTE_JOINED)
		set_there(s, note->peer.index, true);
	else if (note->kind == SKEP_NOTE_FENCED || note->kind == SKEP_NOTE_LEFT)
		set_there(s, note->peer.index, false);
	pthread_mutex_unlock(&s->lock);
}

struct skep_recorder skep_scaler_recorder(struct skep_scaler *scaler)
{
	return (struct skep_recorder){.context = scaler, .note = scaler != NULL ? hear : NULL};
}

void skep_scaler_want(void *scaler, uint32_t kind, uint32_t machines)
{
	struct skep_scaler *s = scaler;
	assert(kind < s->setup.scenario->scale.kinds);
	pthread_mutex_lock(&s->lock);
	s->kind[kind].wanted = machines;
	pthread_mutex_unlock(&s->lock);
}

/* ---- up and down ----------------------------------------------------------------------------------------------------------- */

struct skep_scaler *skep_scaler_create(const struct skep_scaler_setup *setup, struct skep_diag *reterr)
{
	struct skep_scaler *s = calloc(1, sizeof *s);
	assert(setup->scenario->plan.scale != NULL);
	if (s != NULL)
		s->there = calloc(setup->scenario->plan.workers, sizeof *s->there);
	if (s == NULL || s->there == NULL) {
		free(s);
		skep_fail(reterr, "no memory for the scale command");
		return NULL;
	}
	s->setup = *setup;
	for (uint32_t k = 0; k < setup->scenario->scale.kinds; k++) {
		s->kind[k].wanted = setup->scenario->scale_kind[k].start;
		s->kind[k].called = s->kind[k].wanted == 0; /* there is nothing to tell */
	}
	pthread_mutex_init(&s->lock, NULL);
	return s;
}

bool skep_scaler_begin(struct skep_scaler *s, const char *server, const char *ticket, struct skep_diag *reterr)
{
	assert(!s->begun);
	snprintf(s->server, sizeof s->server, "%s", server);
	snprintf(s->ticket, sizeof s->ticket, "%s", ticket);
	s->begun = pthread_create(&s->thread, NULL, work, s) == 0;
	return s->begun || skep_fail(reterr, "no thread for the scale command");
}

void skep_scaler_destroy(struct skep_scaler *scaler, bool done)
{
	if (scaler == NULL)
		return;
	pthread_mutex_lock(&scaler->lock);
	scaler->ending = true;
	scaler->done = done;
	pthread_mutex_unlock(&scaler->lock);
	if (scaler->begun)
		pthread_join(scaler->thread, NULL);
	pthread_mutex_destroy(&scaler->lock);
	free(scaler->there);
	free(scaler);
}
