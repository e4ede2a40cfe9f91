/* SPDX-License-Identifier: Apache-2.0
 *
 * test_mesh_direct.c - two processes whose records rank 0 passes on go over to a connection once one of them can make it: all
 * that is said meanwhile comes, in the order in which it was said, and tensors whole; an attempt of which nothing comes changes
 * nothing; and an end in the middle of it is as any other. Three meshes of this process; what goes through rank 0 is bare, the
 * connection bare or under TLS.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "exec/tcp/mesh_internal.h"

#define RUN 7u
#define RANKS 3u
#define LOW 1u
#define HIGH 2u
#define LOOKS 4000u
#define TENSOR 300000u

struct process {
	struct skep_mesh *mesh;
	struct skep_rejects rejects;
	struct sockaddr_in at;
	uint8_t landing[TENSOR];
	uint64_t said, heard, tensors_said, tensors_heard; /* numbers, from 1 */
	bool sending;                                      /* a tensor is on its way */
	bool ends;                                         /* it may lose others, and what they said */
	uint32_t gone;                                     /* and has, so many */
};

static struct run {
	struct process process[RANKS];
	uint32_t relayed, direct;
	uint8_t tensor[TENSOR];
} run;

static SSL_CTX *hosts[RANKS], *clients[RANKS];

static void *memory(void *context, uint32_t peer, const struct skep_frame *frame, struct skep_buf *ret)
{
	struct process *p = context;
	(void)peer;
	*ret = (struct skep_buf){1, 1};
	memset(p->landing, 0, sizeof p->landing);
	assert_int_equal(frame->body, TENSOR);
	return p->landing;
}

static void on_event(struct process *p, const struct skep_transport_event *event)
{
	if (event->kind == SKEP_TRANSPORT_SENT) {
		p->sending = false;
		return;
	}
	p->gone += event->kind == SKEP_TRANSPORT_GONE;
	if (p->ends && (event->kind == SKEP_TRANSPORT_GONE || event->kind == SKEP_TRANSPORT_LOST))
		return;
	assert_int_equal(event->kind, SKEP_TRANSPORT_ARRIVED);
	if (event->frame.body == 0) {
		assert_int_equal(event->frame.number, ++p->heard);
		return;
	}
	assert_int_equal(event->frame.number, ++p->tensors_heard);
	assert_memory_equal(p->landing, run.tensor, TENSOR);
}

static void look_at(uint32_t rank)
{
	struct process *p = &run.process[rank];
	const struct skep_landing landing = {p, memory};
	struct skep_transport_event event;
	if (p->mesh == NULL)
		return;
	struct skep_transport transport = skep_mesh_transport(p->mesh);
	while (transport.poll(transport.self, &landing, &event))
		on_event(p, &event);
}

static void look(void)
{
	for (uint32_t rank = 0; rank < RANKS; rank++)
		look_at(rank);
}

static void say(uint32_t from, uint32_t to)
{
	struct process *p = &run.process[from];
	struct skep_frame frame = {.type = SKEP_FRAME_RELEASE, .number = ++p->said};
	skep_mesh_send(p->mesh, to, &frame, NULL);
	if (p->sending)
		return;
	frame = (struct skep_frame){.type = SKEP_FRAME_MESSAGE, .number = ++p->tensors_said, .body = TENSOR};
	frame.u.message.kind = SKEP_MESSAGE_CHUNK;
	frame.u.message.payload = (struct skep_buf){1, 1};
	frame.u.message.payload_bytes = TENSOR;
	p->sending = true;
	skep_mesh_send(p->mesh, to, &frame, run.tensor);
}

static int listen_here(struct sockaddr_in *ret)
{
	socklen_t size = sizeof *ret;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	*ret = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	assert_int_equal(bind(fd, (struct sockaddr *)ret, size), 0);
	assert_int_equal(listen(fd, 4), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)ret, &size), 0);
	return fd;
}

static void on_relayed(void *self, uint32_t from, uint32_t to)
{
	(void)self;
	assert_true(from + to == LOW + HIGH);
	run.relayed++;
}

static void on_direct(void *self, uint32_t from, uint32_t to)
{
	(void)self;
	assert_true(from + to == LOW + HIGH);
	run.direct++;
}

static void attach(uint32_t rank, uint32_t peer, int fd)
{
	struct skep_channel channel;
	assert_true(skep_channel_open(&channel, fd, true, NULL, rank == 0));
	skep_mesh_member(run.process[rank].mesh, &(struct skep_member){.rank = peer}, false);
	assert_true(skep_mesh_attach(run.process[rank].mesh, peer, &channel));
}

/* Neither says on which port it listens, so they are relayed. */
static void begin(bool tls)
{
	struct skep_diag why = {0};
	run = (struct run){0};
	for (uint32_t i = 0; i < TENSOR; i++)
		run.tensor[i] = (uint8_t)(i * i >> 3);
	for (uint32_t rank = 0; rank < RANKS; rank++) {
		struct process *p = &run.process[rank];
		const struct skep_mesh_setup setup = {.rank = rank,
			.ranks = RANKS,
			.listener = rank > 0 ? listen_here(&p->at) : -1,
			.run = RUN,
			.host = tls ? hosts[rank] : NULL,
			.client = tls ? clients[rank] : NULL,
			.silence_ns = 60000000000u,
			.lobby = {.relayed = on_relayed, .direct = on_direct},
			.rejects = &p->rejects};
		p->mesh = skep_mesh_create(&setup, &why);
		assert_non_null(p->mesh);
	}
	for (uint32_t rank = 1; rank < RANKS; rank++) {
		int pair[2];
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
		attach(0, rank, pair[0]);
		attach(rank, 0, pair[1]);
	}
	skep_mesh_member(run.process[LOW].mesh, &(struct skep_member){.rank = HIGH, .address = "127.0.0.1"}, false);
	skep_mesh_member(run.process[HIGH].mesh, &(struct skep_member){.rank = LOW, .address = "127.0.0.1"}, false);
	const struct peer *low = &run.process[LOW].mesh->peer[HIGH], *high = &run.process[HIGH].mesh->peer[LOW];
	for (uint32_t i = 0; i < LOOKS && !(low->relayed && high->relayed); i++)
		look();
	assert_true(low->relayed && high->relayed && run.relayed > 0 && run.direct == 0);
}

static void end_one(uint32_t rank)
{
	skep_mesh_destroy(run.process[rank].mesh, false);
	run.process[rank].mesh = NULL;
}

static void end(void)
{
	for (uint32_t rank = RANKS; rank-- > 0;)
		end_one(rank);
}

static struct peer *of(uint32_t rank) /* the other one of the two, as it sees it */
{
	return &run.process[rank].mesh->peer[LOW + HIGH - rank];
}

static bool is_direct(const struct peer *peer)
{
	return !peer->relayed && !peer->from_root && peer->direct == DIRECT_NOT && peer->link != NULL &&
	       peer->spare == NULL;
}

static bool all_came(void)
{
	const struct process *low = &run.process[LOW], *high = &run.process[HIGH];
	return low->said == high->heard && high->said == low->heard && low->tensors_said == high->tensors_heard &&
	       high->tensors_said == low->tensors_heard && !low->sending && !high->sending;
}

/* `who` learns where the other one can be connected to, and the next attempt is due. Both speak all the while. */
static void test_goes_over(void **state)
{
	(void)state;
	for (uint32_t kind = 0; kind < 4; kind++) {
		uint32_t who = kind < 2 ? LOW : HIGH;
		begin(kind % 2 == 1);
		struct peer *low = &run.process[LOW].mesh->peer[HIGH], *high = &run.process[HIGH].mesh->peer[LOW];
		for (uint32_t i = 0; i < 200; i++) {
			say(LOW, HIGH);
			say(HIGH, LOW);
			look();
		}
		(who == LOW ? low : high)->member.port = ntohs(run.process[LOW + HIGH - who].at.sin_port);
		high->again_ns = 0;
		for (uint32_t i = 0; i < LOOKS && !(is_direct(low) && is_direct(high)); i++) {
			usleep(100);
			say(LOW, HIGH);
			say(HIGH, LOW);
			look();
		}
		assert_true(is_direct(low) && is_direct(high));
		assert_int_equal(run.direct, 2);
		uint64_t passed = skep_mesh_counts(run.process[0].mesh).relayed_bytes;
		for (uint32_t i = 0; i < 200; i++) {
			say(LOW, HIGH);
			say(HIGH, LOW);
			look();
		}
		for (uint32_t i = 0; i < LOOKS && !all_came(); i++)
			look();
		assert_true(all_came());
		assert_true(run.process[LOW].tensors_heard > 10 && run.process[HIGH].tensors_heard > 10);
		assert_true(skep_mesh_counts(run.process[0].mesh).relayed_bytes == passed);
		end();
	}
}

/* Another process listens there, and hangs up. */
static void test_stays_relayed(void **state)
{
	struct sockaddr_in other;
	const struct linger at_once = {1, 0};
	(void)state;
	begin(false);
	int listener = listen_here(&other), fd = -1;
	struct peer *low = &run.process[LOW].mesh->peer[HIGH], *high = &run.process[HIGH].mesh->peer[LOW];
	high->member.port = ntohs(other.sin_port);
	high->again_ns = 0;
	for (uint32_t i = 0; i < LOOKS && fd < 0; i++) {
		usleep(1000);
		look();
		fd = accept(listener, NULL, NULL);
	}
	assert_true(fd >= 0 && high->spare != NULL);
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
	close(fd);
	for (uint32_t i = 0; i < LOOKS && high->spare != NULL; i++) {
		usleep(1000);
		say(LOW, HIGH);
		say(HIGH, LOW);
		look();
	}
	assert_true(high->spare == NULL && high->relayed && low->relayed && !high->broken && !low->broken);
	assert_true(high->again_ns > 0);
	for (uint32_t i = 0; i < LOOKS && !all_came(); i++)
		look();
	assert_true(all_came() && run.direct == 0);
	end();
	close(listener);
}

/* ---- an attempt that stands still in the middle -------------------------------------------------------------------- */

/* HIGH learns where LOW listens, and connects as soon as it is looked at. */
static void begin_attempt(bool tls)
{
	begin(tls);
	of(HIGH)->member.port = ntohs(run.process[LOW].at.sin_port);
	of(HIGH)->again_ns = 0;
}

static void until(uint32_t rank, enum direct what, bool with_root)
{
	for (uint32_t i = 0; i < LOOKS && of(rank)->direct != what; i++) {
		usleep(1000);
		look_at(HIGH);
		if (of(rank)->direct != what)
			look_at(LOW);
		if (of(rank)->direct != what && with_root)
			look_at(0);
	}
	assert_int_equal(of(rank)->direct, what);
}

/* So much that no record has room in its channel to rank 0, which is not looked at. */
static void fill(uint32_t rank)
{
	struct skep_mesh *mesh = run.process[rank].mesh;
	say(rank, LOW + HIGH - rank);
	for (uint32_t i = 0; i < 2000; i++)
		skep_mesh_queue(mesh, LOW + HIGH - rank, false, SKEP_RECORD_PING, NULL, 0);
	skep_mesh_pump(mesh, 0);
	assert_false(skep_channel_has_room(&mesh->peer[0].link->channel, SKEP_RELAY_HEAD));
}

/* LOW has taken it in, and cannot say DIRECT. */
static void begin_taken(bool tls)
{
	begin_attempt(tls);
	fill(LOW);
	until(LOW, DIRECT_SAYS, false);
	until(HIGH, DIRECT_MADE, false);
}

/* LOW has said DIRECT, and HIGH does not hear it. */
static void begin_said(bool tls)
{
	begin_attempt(tls);
	until(LOW, DIRECT_SAID, false);
	until(HIGH, DIRECT_MADE, false);
}

/* HIGH hears DIRECT, and cannot say it. */
static void begin_heard(bool tls)
{
	begin_said(tls);
	for (uint32_t i = 0; i < 10; i++)
		look_at(0);
	fill(HIGH);
	for (uint32_t i = 0; i < LOOKS && of(HIGH)->direct == DIRECT_MADE; i++)
		look_at(HIGH);
	assert_true(of(HIGH)->direct == DIRECT_SAYS && of(HIGH)->relayed && !of(HIGH)->from_root);
}

/* All timers are due again and again, and rank 0 is alive though it is not looked at. */
static void tick_for_ms(uint32_t ms)
{
	uint64_t until_ns = skep_monotonic_ns() + ms * UINT64_C(1000000);
	do {
		for (uint32_t rank = LOW; rank <= HIGH; rank++) {
			struct skep_mesh *mesh = run.process[rank].mesh;
			if (mesh != NULL && mesh->peer[0].link != NULL)
				mesh->peer[0].link->channel.heard_ns = skep_monotonic_ns();
			if (mesh != NULL)
				mesh->tick_ns = 0;
			look_at(rank);
		}
		usleep(1000);
	} while (skep_monotonic_ns() < until_ns);
}

static void assert_broken(uint32_t rank)
{
	const struct skep_mesh *mesh = run.process[rank].mesh;
	const struct peer *peer = of(rank);
	assert_true(peer->there && peer->broken && !peer->relayed && mesh->relays == 0);
	assert_true(peer->link == NULL && peer->spare == NULL && peer->direct == DIRECT_NOT);
}

/* The other one ends, and this process goes on; which has, or has not, gone over when it sees that. */
static void test_breaks(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 6; i++) {
		bool tls = i % 2 == 1;
		uint32_t other = i / 2 == 1 ? LOW : HIGH;
		uint32_t rank = LOW + HIGH - other;
		if (i / 2 == 0)
			begin_taken(tls);
		else if (i / 2 == 1)
			begin_heard(tls);
		else
			begin_said(tls);
		run.process[rank].ends = run.process[0].ends = true;
		if (i / 2 == 0) /* what comes through rank 0 cannot be read */
			skep_mesh_lost(run.process[rank].mesh, other, "it sent a tensor within a tensor");
		else
			end_one(other);
		for (uint32_t looks = 0; looks < LOOKS && !of(rank)->broken; looks++) {
			if (of(rank)->direct == DIRECT_SAID) /* it reads nothing yet */
				say(rank, other);
			tick_for_ms(1);
		}
		assert_broken(rank);
		for (uint32_t looks = 0; looks < 200; looks++) /* there is room again */
			look();
		assert_broken(rank);
		assert_true(run.process[0].mesh->peer[rank].there && run.process[rank].gone == 0);
		assert_int_equal(run.process[0].gone, i / 2 == 0 ? 0 : 1);
		end();
	}
}

/* DIRECT waits at rank 0 for longer than any limit of time, first what who has taken it in says, then the other's. */
static void test_late(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		int keeps = 0;
		socklen_t size = sizeof keeps;
		begin_said(i == 1);
		assert_int_equal(getsockopt(of(HIGH)->spare->channel.fd, SOL_SOCKET, SO_KEEPALIVE, &keeps, &size), 0);
		assert_int_equal(keeps, 1);
		say(LOW, HIGH);
		say(HIGH, LOW);
		of(HIGH)->spare->since_ns = 1;
		run.process[LOW].mesh->setup.silence_ns = run.process[HIGH].mesh->setup.silence_ns = 200000000u;
		tick_for_ms(600);
		assert_true(of(HIGH)->direct == DIRECT_MADE && of(HIGH)->spare != NULL && !of(LOW)->broken);
		for (uint32_t looks = 0; looks < 1000; looks++)
			look_at(0);
		for (uint32_t looks = 0; looks < LOOKS && of(HIGH)->relayed; looks++)
			look_at(HIGH);
		assert_true(is_direct(of(HIGH)) && of(LOW)->direct == DIRECT_SAID);
		tick_for_ms(600); /* neither has anything to say */
		assert_true(is_direct(of(HIGH)) && of(LOW)->direct == DIRECT_SAID && !of(HIGH)->broken);
		for (uint32_t looks = 0; looks < LOOKS && !(is_direct(of(LOW)) && all_came()); looks++) {
			look_at(0);
			tick_for_ms(1);
		}
		assert_true(is_direct(of(LOW)) && is_direct(of(HIGH)) && all_came() && run.direct == 2);
		end();
	}
}

/* Who has taken it in closes it: nothing has come of it where nothing was said over it; else that is heard before the end. */
static void test_closed(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 4; i++) {
		bool tls = i % 2 == 1, spoke = i >= 2;
		if (spoke)
			begin_said(tls);
		else
			begin_taken(tls);
		of(HIGH)->again_ns = UINT64_MAX;
		run.process[LOW].ends = run.process[HIGH].ends = spoke;
		tick_for_ms(20);
		assert_int_equal(of(HIGH)->direct, DIRECT_MADE);
		if (!spoke) {
			skep_mesh_direct_failed(run.process[LOW].mesh, HIGH);
			until(HIGH, DIRECT_NOT, false);
			assert_true(of(HIGH)->relayed && of(LOW)->relayed && !of(HIGH)->broken && !of(LOW)->broken);
			for (uint32_t looks = 0; looks < LOOKS && !all_came(); looks++)
				look();
			assert_true(all_came() && run.direct == 0);
			end();
			continue;
		}
		struct skep_frame frame = {.type = SKEP_FRAME_RELEASE, .number = ++run.process[LOW].said};
		skep_mesh_send(run.process[LOW].mesh, HIGH, &frame, NULL);
		skep_mesh_lost(run.process[LOW].mesh, HIGH, "it fell silent");
		tick_for_ms(300);
		assert_int_equal(of(HIGH)->direct, DIRECT_MADE);
		for (uint32_t looks = 0; looks < LOOKS && !of(HIGH)->broken; looks++)
			look();
		assert_broken(HIGH);
		assert_int_equal(run.process[HIGH].heard, run.process[LOW].said);
		end();
	}
}

/* A run ends meanwhile: nothing of it is left in this process. */
static void test_ends(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 6; i++) {
		int fd[2] = {-1, -1};
		if (i < 2) { /* bare it is there at once */
			begin_attempt(i == 1);
			for (uint32_t looks = 0; looks < LOOKS && of(HIGH)->spare == NULL; looks++) {
				usleep(1000);
				look_at(HIGH);
			}
		} else if (i < 4) {
			begin_taken(i == 3);
		} else {
			begin_heard(i == 5);
		}
		const struct link *high = of(HIGH)->spare != NULL ? of(HIGH)->spare : of(HIGH)->link;
		const struct link *low = of(LOW)->spare != NULL ? of(LOW)->spare : of(LOW)->link;
		assert_true(high != NULL && (low != NULL) == (i >= 2));
		fd[0] = high->channel.fd;
		fd[1] = low != NULL ? low->channel.fd : -1;
		end();
		for (uint32_t k = 0; k < 2; k++)
			assert_true(fd[k] < 0 || fcntl(fd[k], F_GETFD) < 0);
	}
}

/* DIRECT cannot come any more. The worker goes on, for as long as its loop wants to. */
static void test_root_gone(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		begin_said(i == 1);
		of(HIGH)->spare->since_ns = 1;
		run.process[LOW].ends = run.process[HIGH].ends = true;
		end_one(0);
		tick_for_ms(300);
		assert_int_equal(run.process[HIGH].gone, 1);
		assert_non_null(skep_mesh_parted(run.process[HIGH].mesh));
		assert_true(of(HIGH)->there && of(HIGH)->relayed && of(HIGH)->direct == DIRECT_MADE);
		end_one(LOW);
		tick_for_ms(20);
		for (uint32_t looks = 0; looks < LOOKS && of(HIGH)->spare != NULL; looks++)
			tick_for_ms(1);
		assert_true(of(HIGH)->spare == NULL && of(HIGH)->direct == DIRECT_NOT);
		end();
	}
}

/* ---- all ------------------------------------------------------------------------------------------------------------ */

static int begin_all(void **state)
{
	struct skep_diag why = {0};
	struct skep_authority *authority = skep_authority_create(&why);
	assert_non_null(authority);
	(void)state;
	signal(SIGPIPE, SIG_IGN); /* as processes of a run do */
	for (uint32_t rank = LOW; rank <= HIGH; rank++) {
		uint8_t key[SKEP_CERTIFICATE_MAX], own[SKEP_CERTIFICATE_MAX], signer[SKEP_CERTIFICATE_MAX];
		struct skep_identity *identity = skep_identity_create(&why);
		assert_non_null(identity);
		size_t key_bytes = skep_identity_public(identity, key);
		size_t bytes = skep_authority_issue(authority, RUN, rank, key, key_bytes, own);
		size_t signer_bytes = skep_authority_certificate(authority, signer);
		assert_true(skep_identity_adopt(identity, own, bytes, signer, signer_bytes, &why));
		assert_non_null(hosts[rank] = skep_tls_server(identity, false, &why));
		assert_non_null(clients[rank] = skep_tls_client(identity, &why));
		skep_identity_destroy(identity);
	}
	skep_authority_destroy(authority);
	return 0;
}

static int end_all(void **state)
{
	(void)state;
	for (uint32_t rank = LOW; rank <= HIGH; rank++) {
		SSL_CTX_free(hosts[rank]);
		SSL_CTX_free(clients[rank]);
	}
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_goes_over), cmocka_unit_test(test_stays_relayed),
		cmocka_unit_test(test_breaks), cmocka_unit_test(test_late), cmocka_unit_test(test_closed),
		cmocka_unit_test(test_ends), cmocka_unit_test(test_root_gone)};
	return cmocka_run_group_tests(tests, begin_all, end_all);
}
