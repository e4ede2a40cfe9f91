/* SPDX-License-Identifier: Apache-2.0
 *
 * farewell.c - see farewell.h. A mesh without members, whose lobby hears HELLO and nothing else.
 */
#include "exec/farewell/farewell.h"

#include <openssl/rand.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process/signals.h"
#include "base/units.h"
#include "exec/tcp/mesh.h"

#define REST_NS 50000000u
#define LAST_NS SKEP_SECOND_NS /* for what was told last to be on its way */

struct farewell {
	struct skep_authority *authority;
	struct skep_identity *identity;
	SSL_CTX *host;
	struct skep_tickets tickets;
	struct skep_mesh *mesh;
	struct skep_rejects rejects;
	uint32_t told;
	int signals;
};

static void on_record(void *self, uint32_t guest, const struct skep_record *record)
{
	struct farewell *f = self;
	union skep_words words;
	bool hello = record->type == SKEP_RECORD_HELLO && skep_words_decode(record, &words);
	if (hello && skep_tickets_know(&f->tickets, words.hello.secret)) {
		f->told += !words.hello.asks;
		skep_mesh_guest_trust(f->mesh, guest);
		skep_mesh_guest_tell(f->mesh, guest, SKEP_RECORD_OVER, &(union skep_words){0});
	}
	skep_mesh_guest_close(f->mesh, guest);
}

static void on_room(void *self, uint32_t guest)
{
	(void)self, (void)guest;
}

/* As any server of the run shows itself. */
static bool make_host(struct farewell *f, const char *keys, uint64_t run, struct skep_diag *reterr)
{
	uint8_t key[SKEP_CERTIFICATE_MAX], own[SKEP_CERTIFICATE_MAX], authority[SKEP_CERTIFICATE_MAX];
	f->authority = skep_authority_read(keys, &f->tickets, reterr);
	f->identity = f->authority != NULL ? skep_identity_create(reterr) : NULL;
	if (f->identity == NULL)
		return false;
	size_t key_bytes = skep_identity_public(f->identity, key);
	size_t bytes = skep_authority_issue(f->authority, run, 0, key, key_bytes, own);
	size_t authority_bytes = skep_authority_certificate(f->authority, authority);
	if (!skep_identity_adopt(f->identity, own, bytes, authority, authority_bytes, reterr))
		return false;
	f->host = skep_tls_server(f->identity, true, reterr);
	return f->host != NULL;
}

static bool listen_on(
	struct farewell *f, const struct skep_serve_options *options, uint64_t run, struct skep_diag *reterr)
{
	const struct skep_mesh_setup setup = {.ranks = 2,
		.run = run,
		.host = f->host,
		.listener = options->listener,
		.silence_ns = (uint64_t)(options->silence_s * 1e9),
		.rejects = &f->rejects,
		.lobby = {.self = f, .record = on_record, .room = on_room}};
	f->mesh = skep_mesh_create(&setup, reterr);
	return f->mesh != NULL;
}

static int tell(struct farewell *f, uint32_t most)
{
	struct skep_transport transport = skep_mesh_transport(f->mesh);
	const struct skep_landing nowhere = {0};
	struct skep_transport_event event;
	struct signalfd_siginfo info;
	uint64_t until_ns = skep_monotonic_ns() + SKEP_FAREWELL_S * SKEP_SECOND_NS;
	bool last = false;
	while (skep_monotonic_ns() < until_ns) {
		while (transport.poll(transport.self, &nowhere, &event))
			;
		if (read(f->signals, &info, sizeof info) == (ssize_t)sizeof info)
			return (int)info.ssi_signo;
		if (!last && f->told >= most)
			until_ns = skep_monotonic_ns() + LAST_NS;
		last = f->told >= most;
		transport.wait(transport.self, REST_NS);
	}
	return 0;
}

int skep_farewell(
	const struct skep_scenario *scenario, const struct skep_serve_options *options, struct skep_diag *reterr)
{
	struct farewell f = {0};
	uint64_t run;
	int number = 0;
	skep_quit_block(NULL);
	signal(SIGPIPE, SIG_IGN);
	f.signals = skep_quit_open();
	if (RAND_bytes((unsigned char *)&run, sizeof run) != 1)
		skep_fail(reterr, "this machine has no random numbers to make keys of");
	else if (make_host(&f, options->keys, run, reterr) && listen_on(&f, options, run, reterr))
		number = tell(&f, scenario->plan.workers);
	skep_mesh_destroy(f.mesh, false);
	skep_tickets_finish(&f.tickets);
	SSL_CTX_free(f.host);
	skep_identity_destroy(f.identity);
	skep_authority_destroy(f.authority);
	if (f.signals >= 0)
		close(f.signals);
	return number;
}
