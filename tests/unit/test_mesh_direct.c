/* SPDX-License-Identifier: Apache-2.0
 *
 * test_mesh_direct.c - two processes whose records rank 0 passes on go over to a connection once one of them can make it: all
 * that is said meanwhile comes, in the order in which it was said, and tensors whole; and an attempt of which nothing comes
 * changes nothing. Three meshes of this process, bare.
 */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "exec/tcp/mesh_internal.h"

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
};

static struct run {
	struct process process[RANKS];
	uint32_t relayed, direct;
	uint8_t tensor[TENSOR];
} run;

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
	assert_int_equal(event->kind, SKEP_TRANSPORT_ARRIVED);
	if (event->frame.body == 0) {
		assert_int_equal(event->frame.number, ++p->heard);
		return;
	}
	assert_int_equal(event->frame.number, ++p->tensors_heard);
	assert_memory_equal(p->landing, run.tensor, TENSOR);
}

static void look(void)
{
	for (uint32_t rank = 0; rank < RANKS; rank++) {
		struct process *p = &run.process[rank];
		const struct skep_landing landing = {p, memory};
		struct skep_transport transport = skep_mesh_transport(p->mesh);
		struct skep_transport_event event;
		while (transport.poll(transport.self, &landing, &event))
			on_event(p, &event);
	}
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
static void begin(void)
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

static void end(void)
{
	for (uint32_t rank = RANKS; rank-- > 0;)
		skep_mesh_destroy(run.process[rank].mesh, false);
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
	for (uint32_t who = LOW; who <= HIGH; who++) {
		begin();
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
	begin();
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

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_goes_over), cmocka_unit_test(test_stays_relayed)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
