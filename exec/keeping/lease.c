/* SPDX-License-Identifier: Apache-2.0
 *
 * lease.c - see lease.h.
 */
#include "exec/keeping/lease.h"

#include <assert.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/grow.h"

#define LOOK_MS 20 /* between two looks at the clock */

struct skep_lease {
	int fd;
	pthread_t thread;
	pthread_mutex_t mutex; /* of all below */
	pthread_cond_t changed;
	bool begun, closing;
	uint64_t until_ns;
	struct skep_lease_message *kept; /* [count], those before `at` were heard of */
	size_t at, count;
};

static void __attribute__((noreturn)) end(const char *why)
{
	fprintf(stderr, "skep: this server has ended: %s\n", why);
	_exit(SKEP_LEASE_LOST);
}

static void take(struct skep_lease *lease, const struct skep_lease_message *message)
{
	pthread_mutex_lock(&lease->mutex);
	if (message->kind == SKEP_LEASE_RENEWED && message->until_ns > lease->until_ns)
		lease->until_ns = message->until_ns;
	if (message->kind == SKEP_LEASE_BEGUN)
		lease->begun = true;
	if (message->kind == SKEP_LEASE_KEPT) {
		if (!skep_grow(&lease->kept, lease->count, sizeof *lease->kept))
			end("no memory for what the replicas keep");
		lease->kept[lease->count++] = *message;
	}
	pthread_cond_broadcast(&lease->changed);
	pthread_mutex_unlock(&lease->mutex);
}

static void *watch(void *context)
{
	struct skep_lease *lease = context;
	struct skep_lease_message message;
	struct pollfd ready = {.fd = lease->fd, .events = POLLIN};
	for (;;) {
		poll(&ready, 1, LOOK_MS);
		ssize_t got;
		while ((got = recv(lease->fd, &message, sizeof message, MSG_DONTWAIT)) == (ssize_t)sizeof message)
			take(lease, &message);
		pthread_mutex_lock(&lease->mutex);
		bool closing = lease->closing, late = skep_monotonic_ns() > lease->until_ns;
		pthread_mutex_unlock(&lease->mutex);
		if (closing)
			return NULL;
		if (got == 0)
			end("the process that speaks with the other replicas is gone");
		if (late)
			end("it was stopped, or no majority of the replicas was heard, for too long");
	}
}

struct skep_lease *skep_lease_open(int fd, uint64_t first_ns, struct skep_diag *reterr)
{
	struct skep_lease *lease = calloc(1, sizeof *lease);
	assert(fd >= 0);
	if (lease == NULL) {
		skep_fail(reterr, "no memory for the lease of this server");
		return NULL;
	}
	lease->fd = fd;
	lease->until_ns = skep_monotonic_ns() + first_ns;
	pthread_mutex_init(&lease->mutex, NULL);
	pthread_cond_init(&lease->changed, NULL);
	if (pthread_create(&lease->thread, NULL, watch, lease) == 0)
		return lease;
	skep_fail(reterr, "no thread for the lease of this server");
	pthread_mutex_destroy(&lease->mutex);
	pthread_cond_destroy(&lease->changed);
	free(lease);
	return NULL;
}

void skep_lease_close(struct skep_lease *lease)
{
	if (lease == NULL)
		return;
	pthread_mutex_lock(&lease->mutex);
	lease->closing = true;
	pthread_mutex_unlock(&lease->mutex);
	pthread_join(lease->thread, NULL);
	pthread_mutex_destroy(&lease->mutex);
	pthread_cond_destroy(&lease->changed);
	close(lease->fd);
	free(lease->kept);
	free(lease);
}

/* What cannot be said has no receiver any more, which the thread finds. */
static void say(struct skep_lease *lease, const struct skep_lease_message *message)
{
	send(lease->fd, message, sizeof *message, MSG_NOSIGNAL);
}

void skep_lease_hand_on(struct skep_lease *lease, uint32_t stage, uint32_t version, uint64_t bytes)
{
	bool is_kept = false;
	assert(!lease->begun);
	skep_lease_keep(lease, stage, version, bytes);
	pthread_mutex_lock(&lease->mutex);
	while (!is_kept) {
		while (lease->at == lease->count)
			pthread_cond_wait(&lease->changed, &lease->mutex);
		const struct skep_lease_message *kept = &lease->kept[lease->at++];
		is_kept = kept->stage == stage && kept->version == version;
	}
	pthread_mutex_unlock(&lease->mutex);
}

void skep_lease_begin(struct skep_lease *lease, const struct skep_checkpoint_folder *folder)
{
	say(lease, &(struct skep_lease_message){.kind = SKEP_LEASE_BEGINS,
			   .run = folder->run,
			   .from = folder->from,
			   .from_version = folder->from_version});
	pthread_mutex_lock(&lease->mutex);
	while (!lease->begun)
		pthread_cond_wait(&lease->changed, &lease->mutex);
	pthread_mutex_unlock(&lease->mutex);
}

void skep_lease_keep(struct skep_lease *lease, uint32_t stage, uint32_t version, uint64_t bytes)
{
	assert(version > 0);
	say(lease, &(struct skep_lease_message){
			   .kind = SKEP_LEASE_KEEPS, .stage = stage, .version = version, .bytes = bytes});
}

bool skep_lease_kept(struct skep_lease *lease, uint32_t *ret_stage, uint32_t *ret_version)
{
	pthread_mutex_lock(&lease->mutex);
	bool is_one = lease->at < lease->count;
	if (is_one) {
		*ret_stage = lease->kept[lease->at].stage;
		*ret_version = lease->kept[lease->at++].version;
	} else {
		lease->at = lease->count = 0;
	}
	pthread_mutex_unlock(&lease->mutex);
	return is_one;
}
