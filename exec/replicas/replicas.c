/* SPDX-License-Identifier: Apache-2.0
 *
 * replicas.c - see replicas.h and group.h: the life of a replica's process.
 */
#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process/signals.h"
#include "exec/replicas/group.h"
#include "exec/tcp/tls.h"

#define LINGER_NS 2000000000u /* from OVER to the end: the others are to hear of it */
#define CLOSING_NS 3000000000u
#define HEARTBEATS 10u           /* in the time after which silence means an election */
#define SEGMENT_BYTES (1u << 20) /* of the log on the disk: entries have 48 bytes */

void skep_group_fail(struct group *group, int status, const char *format, ...)
{
	char words[512];
	va_list arguments;
	assert(status != 0);
	if (group->ends)
		return;
	va_start(arguments, format);
	vsnprintf(words, sizeof words, format, arguments);
	va_end(arguments);
	group->ends = true;
	group->status = status;
	skep_fail(&group->why, "replica %u of %u: %s", group->setup->own, group->count, words);
	uv_stop(&group->loop);
}

/* ---- what is agreed on ------------------------------------------------------------------------------------------------- */

static void adopt(struct group *group)
{
	group->states.run = group->kept.run;
	group->states.from = group->kept.from;
	group->states.from_version = group->kept.from_version;
	if (group->kept.run != 0 && group->kept.job != group->setup->states.job)
		skep_group_fail(group, 2,
			"the replica that leads trains something else: the scenario, or a file that it "
			"names, is another one there");
}

static int apply(struct raft_fsm *fsm, const struct raft_buffer *buffer, void **ret)
{
	struct group *group = fsm->data;
	*ret = NULL;
	if (!skep_kept_apply(&group->kept, buffer->base, buffer->len))
		return RAFT_MALFORMED;
	adopt(group);
	return 0;
}

static int snapshot(struct raft_fsm *fsm, struct raft_buffer *ret[], unsigned *ret_count)
{
	struct group *group = fsm->data;
	struct raft_buffer *buffer = raft_malloc(sizeof *buffer);
	if (buffer == NULL)
		return RAFT_NOMEM;
	buffer->len = skep_kept_snapshot_bytes(&group->kept);
	buffer->base = raft_malloc(buffer->len);
	if (buffer->base == NULL) {
		raft_free(buffer);
		return RAFT_NOMEM;
	}
	skep_kept_snapshot(&group->kept, buffer->base);
	*ret = buffer;
	*ret_count = 1;
	return 0;
}

static int restore(struct raft_fsm *fsm, struct raft_buffer *buffer)
{
	struct group *group = fsm->data;
	bool fine = skep_kept_restore(&group->kept, buffer->base, buffer->len);
	if (!fine)
		return RAFT_MALFORMED;
	adopt(group);
	raft_free(buffer->base);
	return 0;
}

/* ---- turns --------------------------------------------------------------------------------------------------------------- */

static void say_leader(struct group *group, uint64_t now_ns)
{
	raft_id leader;
	const char *address;
	assert(now_ns >= group->led_ns);
	raft_leader(&group->raft, &leader, &address);
	if (leader != 0)
		group->led_ns = now_ns;
	if (leader != 0 && leader != group->said && leader != group->setup->own && !group->setup->quiet)
		fprintf(stderr, "skep: replica %u of %u stands by: replica %llu leads\n", group->setup->own,
			group->count, leader);
	if (leader != 0)
		group->said = leader;
	if (group->said == 0 || now_ns < group->led_ns + 3 * group->setup->election_ns)
		return;
	group->said = 0;
	fprintf(stderr, "skep: replica %u of %u hears no majority of the replicas: it serves no one until it does\n",
		group->setup->own, group->count);
}

static void on_timer(uv_timer_t *timer)
{
	struct group *group = timer->data;
	uint64_t now_ns = skep_monotonic_ns();
	if (raft_state(&group->raft) == RAFT_UNAVAILABLE)
		skep_group_fail(group, 1, "%s", raft_errmsg(&group->raft));
	if (group->ends)
		return;
	skep_links_turn(group, now_ns);
	skep_leading_turn(group, now_ns);
	skep_transfers_turn(group, now_ns);
	skep_links_look(group);
	say_leader(group, now_ns);
	if (group->kept.over && group->over_ns == 0)
		group->over_ns = now_ns;
	if (group->over_ns > 0 && now_ns > group->over_ns + LINGER_NS) {
		group->ends = true;
		uv_stop(&group->loop);
	}
}

static void on_signal(uv_poll_t *poll, int status, int events)
{
	struct group *group = poll->data;
	struct signalfd_siginfo info;
	(void)status;
	(void)events;
	if (read(group->signals, &info, sizeof info) == (ssize_t)sizeof info)
		skep_group_fail(group, 128 + (int)info.ssi_signo, "ended by SIG%s", sigabbrev_np((int)info.ssi_signo));
}

/* ---- beginning ----------------------------------------------------------------------------------------------------------- */

uint32_t skep_replicas_count(const char *list, struct skep_diag *reterr)
{
	char one[SKEP_ENDPOINT_TEXT];
	const char *left = list;
	uint32_t count = 0;
	if (!skep_endpoint_check_list(list, reterr))
		return 0;
	while (skep_endpoint_next(&left, one))
		count++;
	if (count == 3 || count == 5)
		return count;
	skep_fail(reterr,
		"--replicas has %u address%s: expected three or five as HOST:PORT with commas between, so that a majority is "
		"left when one is lost",
		count, count == 1 ? "" : "es");
	return 0;
}

bool skep_replicas_ready(struct skep_diag *reterr)
{
	(void)reterr;
	return true;
}

/* Where each of them hears the others. */
static bool find_places(struct group *group, struct skep_diag *reterr)
{
	char one[SKEP_ENDPOINT_TEXT];
	const char *left = group->setup->list;
	assert(group->count == 0);
	group->count = skep_replicas_count(group->setup->list, reterr);
	for (uint32_t i = 1; i <= group->count; i++) {
		skep_endpoint_next(&left, one);
		if (!skep_endpoint_behind(one, group->address[i], reterr) ||
			!skep_endpoint_find(group->address[i], &group->place[i], &group->place_bytes[i], reterr))
			return false;
	}
	return group->count > 0;
}

/* Certificates that name the replicas: not of a run, whose number is drawn, but of the authority itself. */
static bool certify(struct group *group, struct skep_diag *reterr)
{
	uint8_t key[SKEP_CERTIFICATE_MAX], own[SKEP_CERTIFICATE_MAX], root[SKEP_CERTIFICATE_MAX];
	uint8_t fingerprint[SKEP_FINGERPRINT_BYTES];
	struct skep_tickets tickets = {0};
	struct skep_authority *authority = skep_authority_read(group->setup->keys, &tickets, reterr);
	struct skep_identity *identity = authority != NULL ? skep_identity_create(reterr) : NULL;
	bool fine = identity != NULL;
	assert(group->host == NULL && group->client == NULL);
	if (fine) {
		skep_authority_fingerprint(authority, fingerprint);
		memcpy(&group->run, fingerprint, sizeof group->run);
		size_t key_bytes = skep_identity_public(identity, key);
		size_t bytes = skep_authority_issue(authority, group->run, group->setup->own, key, key_bytes, own);
		size_t root_bytes = skep_authority_certificate(authority, root);
		fine = skep_identity_adopt(identity, own, bytes, root, root_bytes, reterr);
	}
	group->host = fine ? skep_tls_server(identity, false, reterr) : NULL;
	group->client = fine ? skep_tls_client(identity, reterr) : NULL;
	skep_identity_destroy(identity);
	skep_authority_destroy(authority);
	skep_tickets_finish(&tickets);
	return group->host != NULL && group->client != NULL;
}

/* Each replica begins with the same first entry, which names all of them. */
static int bootstrap(struct group *group)
{
	struct raft_configuration all;
	int error = 0;
	assert(group->count == 3 || group->count == 5);
	raft_configuration_init(&all);
	for (uint32_t i = 1; i <= group->count && error == 0; i++)
		error = raft_configuration_add(&all, i, group->address[i], RAFT_VOTER);
	if (error == 0)
		error = raft_bootstrap(&group->raft, &all);
	raft_configuration_close(&all);
	return error == RAFT_CANTBOOTSTRAP ? 0 : error;
}

static bool same_replicas(const struct group *group)
{
	const struct raft_configuration *all = &group->raft.configuration;
	bool same = all->n == group->count;
	assert(group->has_raft);
	for (unsigned i = 0; same && i < all->n; i++)
		same = all->servers[i].id <= group->count &&
		       strcmp(all->servers[i].address, group->address[all->servers[i].id]) == 0;
	return same;
}

static bool begin_raft(struct group *group, struct skep_diag *reterr)
{
	const struct skep_replicas_setup *setup = group->setup;
	unsigned election_ms = (unsigned)(setup->election_ns / 1000000);
	assert(setup->own > 0 && setup->own <= group->count);
	group->fsm = (struct raft_fsm){
		.version = 1, .data = group, .apply = apply, .snapshot = snapshot, .restore = restore};
	int error = raft_uv_init(&group->io, &group->loop, setup->folder, &group->transport);
	if (error != 0)
		return skep_fail(reterr, "%s: %s", setup->folder, group->io.errmsg);
	raft_uv_set_segment_size(&group->io, SEGMENT_BYTES);
	raft_uv_set_connect_retry_delay(&group->io, election_ms / HEARTBEATS);
	error = raft_init(&group->raft, &group->io, &group->fsm, setup->own, group->address[setup->own]);
	if (error != 0) {
		raft_uv_close(&group->io);
		return skep_fail(reterr, "%s: %s", setup->folder, raft_errmsg(&group->raft));
	}
	group->has_raft = true;
	raft_set_election_timeout(&group->raft, election_ms);
	raft_set_heartbeat_timeout(&group->raft, election_ms / HEARTBEATS);
	raft_set_pre_vote(&group->raft, true);
	error = bootstrap(group);
	if (error == 0)
		error = raft_start(&group->raft);
	if (error != 0)
		return skep_fail(reterr, "%s: %s", setup->folder, raft_errmsg(&group->raft));
	if (!same_replicas(group))
		return skep_fail(reterr,
			"%s remembers other replicas than --replicas names: name those, or remove this folder on every "
			"replica to begin anew",
			setup->folder);
	return true;
}

static bool begin(struct group *group, struct skep_diag *reterr)
{
	const struct skep_replicas_setup *setup = group->setup;
	if (!find_places(group, reterr) || !certify(group, reterr))
		return false;
	if (!skep_kept_create(setup->stages, &group->kept))
		return skep_fail(reterr, "no memory for what the replicas agree on");
	group->missed = setup->stages;
	mkdir(setup->states.path, 0777);
	if (mkdir(setup->folder, 0700) != 0 && errno != EEXIST)
		return skep_fail(reterr, "%s cannot be made: %s", setup->folder, strerror(errno));
	if (!skep_links_open(group, reterr) || !begin_raft(group, reterr))
		return false;
	uv_timer_init(&group->loop, &group->timer);
	group->timer.data = group;
	uv_timer_start(&group->timer, on_timer, SKEP_TURN_MS, SKEP_TURN_MS);
	uv_poll_init(&group->loop, &group->signals_poll, group->signals);
	group->signals_poll.data = group;
	uv_poll_start(&group->signals_poll, UV_READABLE, on_signal);
	return true;
}

/* ---- ending -------------------------------------------------------------------------------------------------------------- */

static void on_raft_closed(struct raft *raft)
{
	bool *closed = raft->data;
	*closed = true;
}

static void close_handle(uv_handle_t *handle, void *context)
{
	(void)context;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

static void on_closing_late(uv_timer_t *timer)
{
	(void)timer; /* it only ends the wait of the loop */
}

/* The library's own handles first, which it closes itself. */
static void end(struct group *group)
{
	bool closed = !group->has_raft;
	uv_timer_t late;
	uint64_t until_ns = skep_monotonic_ns() + CLOSING_NS;
	skep_leading_stop(group);
	uv_timer_init(&group->loop, &late);
	uv_timer_start(&late, on_closing_late, SKEP_TURN_MS, SKEP_TURN_MS);
	if (!closed) {
		group->raft.data = &closed;
		raft_close(&group->raft, on_raft_closed);
	}
	while (!closed && skep_monotonic_ns() < until_ns)
		uv_run(&group->loop, UV_RUN_ONCE);
	if (closed && group->has_raft)
		raft_uv_close(&group->io);
	skep_links_close(group);
	uv_walk(&group->loop, close_handle, NULL);
	uv_run(&group->loop, UV_RUN_DEFAULT);
	uv_loop_close(&group->loop);
	if (group->listener >= 0)
		close(group->listener);
	SSL_CTX_free(group->host);
	SSL_CTX_free(group->client);
	skep_kept_finish(&group->kept);
	free(group->offer);
}

int skep_replicas_run(const struct skep_replicas_setup *setup, bool *ret_over, struct skep_diag *reterr)
{
	struct group *group = calloc(1, sizeof *group);
	struct skep_quit_before before;
	*ret_over = false;
	if (group == NULL) {
		skep_fail(reterr, "no memory for a replica");
		return -1;
	}
	*group = (struct group){
		.setup = setup, .states = setup->states, .lease = -1, .listener = -1, .led_ns = skep_monotonic_ns()};
	group->said = setup->own; /* so that the lack of a majority is said from the first */
	signal(SIGPIPE, SIG_IGN);
	skep_quit_block(&before);
	group->before = &before;
	group->signals = skep_quit_open();
	uv_loop_init(&group->loop);
	int status = -1;
	if (begin(group, reterr)) {
		uv_run(&group->loop, UV_RUN_DEFAULT);
		status = group->status;
		*ret_over = group->kept.over && status == 0;
		if (group->why.set)
			fprintf(stderr, "skep: %s\n", group->why.message);
	}
	end(group);
	close(group->signals);
	skep_quit_restore(&before);
	free(group);
	return status;
}
