/* SPDX-License-Identifier: Apache-2.0
 *
 * test_mesh_asked.c - a member with a lower rank connects to this process only when it was asked to, and once; one that does not
 * answer is asked soon, and relayed when it says that it cannot and the attempt of this process fails as well; and nothing that
 * rank 0 passes on of one whose stream has broken is heard.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>
#include <openssl/ssl.h>

#include "base/clock.h"
#include "exec/tcp/mesh_internal.h"

#define RANKS 4u
#define OWN 2u
#define OLDER 1u
#define LOOKS 200u /* of 5 ms */

static void *no_memory(void *context, uint32_t peer, const struct skep_frame *frame, struct skep_buf *ret)
{
	(void)context;
	(void)peer;
	(void)frame;
	(void)ret;
	return NULL;
}

static void look(struct skep_mesh *mesh)
{
	const struct skep_landing landing = {.memory = no_memory};
	struct skep_transport transport = skep_mesh_transport(mesh);
	struct skep_transport_event event;
	transport.wait(transport.self, 5000000);
	while (transport.poll(transport.self, &landing, &event))
		;
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

/* A bare connection that says whose it is. */
static int connect_as(uint32_t rank, const struct sockaddr_in *to)
{
	uint8_t record[SKEP_RECORD_HEAD + SKEP_RECORD_MAX] = {0};
	union skep_words words = {.member = {.rank = rank}};
	size_t bytes = skep_words_encode(SKEP_RECORD_MEMBER, &words, record + SKEP_RECORD_HEAD);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)to, sizeof *to), 0);
	record[0] = (uint8_t)bytes;
	record[4] = SKEP_RECORD_MEMBER;
	assert_int_equal(send(fd, record, SKEP_RECORD_HEAD + bytes, 0), SKEP_RECORD_HEAD + bytes);
	return fd;
}

static bool is_closed(struct skep_mesh *mesh, int fd)
{
	char scratch[256];
	for (uint32_t i = 0; i < LOOKS; i++) {
		look(mesh);
		if (recv(fd, scratch, sizeof scratch, MSG_DONTWAIT) == 0)
			return true;
	}
	return false;
}

static bool has_link(struct skep_mesh *mesh, uint32_t rank)
{
	for (uint32_t i = 0; i < LOOKS && mesh->peer[rank].link == NULL; i++)
		look(mesh);
	return mesh->peer[rank].link != NULL;
}

static void test_asked_once(void **state)
{
	struct sockaddr_in here;
	struct skep_diag why = {0};
	struct skep_rejects rejects = {.rank = OWN};
	const struct skep_member older = {.rank = OLDER}; /* on no port: it cannot be connected to */
	const struct skep_mesh_setup setup = {.rank = OWN,
		.ranks = RANKS,
		.listener = listen_here(&here),
		.silence_ns = 60000000000u,
		.rejects = &rejects};
	struct skep_mesh *mesh = skep_mesh_create(&setup, &why);
	(void)state;
	assert_non_null(mesh);
	int early = connect_as(OLDER, &here);
	assert_true(is_closed(mesh, early));
	skep_mesh_member(mesh, &older, false);
	assert_true(mesh->peer[OLDER].asked);
	assert_false(mesh->peer[OLDER].relayed);
	int asked = connect_as(OLDER, &here);
	assert_true(has_link(mesh, OLDER));
	int again = connect_as(OLDER, &here);
	assert_true(is_closed(mesh, again));
	assert_true(mesh->peer[OLDER].there && mesh->peer[OLDER].link != NULL);
	skep_mesh_destroy(mesh, false);
	close(early);
	close(asked);
	close(again);
}

/* ---- a port that does not answer -------------------------------------------------------------------------------------- */

struct silent { /* a socket for one connection that waits, and more: what else comes to it is dropped by the kernel */
	struct sockaddr_in at;
	int listener, waiting[4];
};

struct dialled { /* a mesh that tries to reach a silent port */
	struct silent silent;
	struct sockaddr_in here;
	struct skep_rejects rejects;
	struct skep_mesh *mesh;
};

static void be_silent(struct silent *ret)
{
	socklen_t size = sizeof ret->at;
	ret->listener = socket(AF_INET, SOCK_STREAM, 0);
	ret->at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	assert_int_equal(bind(ret->listener, (struct sockaddr *)&ret->at, size), 0);
	assert_int_equal(listen(ret->listener, 0), 0);
	assert_int_equal(getsockname(ret->listener, (struct sockaddr *)&ret->at, &size), 0);
	for (uint32_t i = 0; i < 4; i++) {
		ret->waiting[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		connect(ret->waiting[i], (const struct sockaddr *)&ret->at, size);
	}
}

/* What comes next is answered by the kernel, and waits to be accepted. */
static void hear_again(struct silent *silent)
{
	for (uint32_t i = 0; i < 4 && silent->waiting[i] >= 0; i++) {
		close(silent->waiting[i]);
		silent->waiting[i] = -1;
	}
	fcntl(silent->listener, F_SETFL, O_NONBLOCK);
}

/* All that wait, with a reset if so. */
static void refuse_all(struct silent *silent, bool resets)
{
	const struct linger at_once = {resets, 0};
	for (int fd; (fd = accept(silent->listener, NULL, NULL)) >= 0;) {
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
		close(fd);
	}
}

static void say_cannot(struct skep_mesh *mesh)
{
	const uint8_t bytes[SKEP_RELAY_HEAD] = {OLDER, 0, 0, 0, SKEP_RECORD_DIAL};
	const struct skep_record record = {.type = SKEP_RECORD_RELAY, .content = bytes, .bytes = sizeof bytes};
	struct skep_transport_event event;
	assert_false(skep_mesh_take(mesh, 0, &record, &event));
}

static void hang_up(struct dialled *d)
{
	skep_mesh_destroy(d->mesh, false);
	hear_again(&d->silent);
	close(d->silent.listener);
}

static void dial_silent(struct dialled *d, SSL_CTX *client)
{
	struct skep_diag why = {0};
	*d = (struct dialled){.rejects = {.rank = OWN}};
	const struct skep_mesh_setup setup = {.rank = OWN,
		.ranks = RANKS,
		.listener = listen_here(&d->here),
		.client = client,
		.silence_ns = 60000000000u,
		.rejects = &d->rejects};
	struct skep_mesh *mesh = d->mesh = skep_mesh_create(&setup, &why);
	struct skep_member older = {.rank = OLDER, .address = "127.0.0.1"};
	be_silent(&d->silent);
	older.port = ntohs(d->silent.at.sin_port);
	assert_non_null(mesh);
	skep_mesh_member(mesh, &(struct skep_member){.rank = 0}, false);
	skep_mesh_member(mesh, &older, false);
	assert_false(mesh->peer[OLDER].asked);
	uint64_t begun_ns = skep_monotonic_ns();
	for (uint32_t i = 0; i < LOOKS && !mesh->peer[OLDER].asked; i++)
		look(mesh);
	assert_true(mesh->peer[OLDER].asked);
	if (mesh->peer[OLDER].link == NULL && skep_monotonic_ns() - begun_ns > 1500000000u) {
		hang_up(d);
		skip(); /* this process was kept from a core until the attempt was over */
	}
	assert_true(mesh->peer[OLDER].link->held);
	assert_true(skep_monotonic_ns() - begun_ns >= 300000000u);
}

static bool is_relayed(struct skep_mesh *mesh)
{
	for (uint32_t i = 0; i < 5 * LOOKS && !mesh->peer[OLDER].relayed && mesh->peer[OLDER].link != NULL; i++)
		look(mesh);
	return mesh->peer[OLDER].relayed;
}

static void test_relayed_without_an_answer(void **state)
{
	struct dialled d;
	(void)state;
	dial_silent(&d, NULL);
	say_cannot(d.mesh);
	assert_false(d.mesh->peer[OLDER].relayed); /* the second packet may come through */
	assert_true(is_relayed(d.mesh));
	say_cannot(d.mesh); /* once more, which changes nothing */
	assert_true(d.mesh->peer[OLDER].relayed && d.mesh->peer[OLDER].there);
	hang_up(&d);
}

static void test_answer_to_the_second_packet(void **state)
{
	struct dialled d;
	(void)state;
	dial_silent(&d, NULL);
	const struct peer *peer = &d.mesh->peer[OLDER];
	hear_again(&d.silent);
	refuse_all(&d.silent, false);
	for (uint32_t i = 0; i < 3 * LOOKS && peer->link->channel.state == SKEP_CHANNEL_CONNECTING; i++)
		look(d.mesh);
	assert_true(peer->link->held && peer->dial_until_ns > 0); /* nothing is said to it yet */
	say_cannot(d.mesh);
	assert_false(peer->link->held);
	assert_true(peer->dial_until_ns == 0 && !peer->relayed);
	hang_up(&d);
}

static void test_the_other_one_comes_first(void **state)
{
	struct dialled d;
	(void)state;
	dial_silent(&d, NULL);
	const struct peer *peer = &d.mesh->peer[OLDER];
	int back = connect_as(OLDER, &d.here);
	for (uint32_t i = 0; i < LOOKS && peer->link->held; i++)
		look(d.mesh);
	assert_true(!peer->link->held && !peer->asked && peer->dial_until_ns == 0);
	say_cannot(d.mesh);
	assert_true(peer->link != NULL && !peer->relayed);
	hang_up(&d);
	close(back);
}

/* Its kernel has answered, and then the connection is reset while it is held: the attempt is over, and polling ends. */
static void test_reset_while_it_is_held(void **state)
{
	struct dialled d;
	SSL_CTX *client = SSL_CTX_new(TLS_client_method());
	(void)state;
	dial_silent(&d, client);
	const struct peer *peer = &d.mesh->peer[OLDER];
	hear_again(&d.silent);
	for (uint32_t i = 0; i < 5 * LOOKS && peer->link != NULL; i++) {
		refuse_all(&d.silent, true);
		look(d.mesh);
	}
	assert_true(peer->link == NULL && peer->asked && !peer->relayed);
	say_cannot(d.mesh);
	assert_true(peer->relayed);
	hang_up(&d);
	SSL_CTX_free(client);
}

/* ---- behind a break ---------------------------------------------------------------------------------------------------- */

static bool is_heard(struct skep_mesh *mesh, const struct skep_frame *frame)
{
	uint8_t bytes[SKEP_RELAY_HEAD + SKEP_FRAME_MAX] = {OLDER, 0, 0, 0, SKEP_RECORD_FRAME};
	struct skep_transport_event event;
	const struct skep_record record = {.type = SKEP_RECORD_RELAY,
		.content = bytes,
		.bytes = (uint32_t)(SKEP_RELAY_HEAD + skep_frame_encode(frame, 0, bytes + SKEP_RELAY_HEAD))};
	return skep_mesh_take(mesh, 0, &record, &event);
}

static void test_passed_on_after_a_break(void **state)
{
	struct skep_diag why = {0};
	struct skep_rejects rejects = {.rank = OWN};
	const struct skep_member root = {.rank = 0}, older = {.rank = OLDER};
	const struct skep_frame said = {.type = SKEP_FRAME_LAST};
	const struct skep_mesh_setup setup = {
		.rank = OWN, .ranks = RANKS, .listener = -1, .silence_ns = 60000000000u, .rejects = &rejects};
	struct skep_mesh *mesh = skep_mesh_create(&setup, &why);
	(void)state;
	assert_non_null(mesh);
	skep_mesh_member(mesh, &root, false);
	skep_mesh_member(mesh, &older, false);
	mesh->peer[OLDER].broken = true;
	assert_false(is_heard(mesh, &said));
	assert_false(mesh->peer[OLDER].last);
	mesh->peer[OLDER].broken = false;
	assert_true(is_heard(mesh, &said));
	assert_true(mesh->peer[OLDER].last);
	skep_mesh_destroy(mesh, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_asked_once),
		cmocka_unit_test(test_relayed_without_an_answer), cmocka_unit_test(test_answer_to_the_second_packet),
		cmocka_unit_test(test_the_other_one_comes_first), cmocka_unit_test(test_reset_while_it_is_held),
		cmocka_unit_test(test_passed_on_after_a_break)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
