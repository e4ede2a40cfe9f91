/* SPDX-License-Identifier: Apache-2.0
 *
 * storm_tcp.c - the transport over TCP, four processes on this host: thousands of tensors of all sizes crossing each other, some
 * refused, two processes that cannot connect to each other, one that can be reached by another one alone, and with --kill one
 * that dies in the middle of it.
 *
 *     storm_tcp [--bare] [--kill]    checks; status 0 if all is well
 *     storm_tcp [--bare] --bench     what a frame and a tensor cost between two processes
 *         --from FILE --to ADDRESS   between the network namespace FILE and ours, which has this address
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "exec/tcp/mesh_internal.h"

#define RANKS 4u
#define DEAD 2u /* with --kill; its records to and from rank 3 are passed on by rank 0 */
#define RUN 4711u
#define MESSAGES 3000u
#define SILENCE_NS 5000000000u

struct tally { /* in memory that all processes share: [from] of those to this rank */
	uint64_t sent[RANKS], got[RANKS];
};

struct process {
	struct skep_mesh *mesh;
	struct skep_transport transport;
	struct skep_rejects rejects;
	struct tally *tally; /* [RANKS] */
	uint64_t seed, number, waiting;
	bool last[RANKS], gone[RANKS], wrong;
	bool kill;
};

struct sockets { /* made before the processes are */
	int listener[RANKS];
	uint16_t port[RANKS];
	int root[RANKS], own[RANKS]; /* the two ends of the connection of rank 0 and each other one */
	struct skep_authority *authority;
};

static void die(const char *what)
{
	fprintf(stderr, "storm_tcp: %s\n", what);
	exit(1);
}

static uint64_t draw(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static void fail(struct process *p, const char *what)
{
	fprintf(stderr, "storm_tcp: rank %" PRIu32 ": %s\n", p->transport.rank, what);
	p->wrong = true;
}

/* ---- tensors -------------------------------------------------------------------------------------------------------- */

/* Filled with what only this sender's message of this number has. */
static void fill(uint8_t *body, uint64_t bytes, uint32_t rank, uint64_t number)
{
	uint64_t seed = (uint64_t)rank << 40 ^ number;
	for (uint64_t i = 0; i < bytes; i++)
		body[i] = i % 64 == 0 ? (uint8_t)draw(&seed) : (uint8_t)(body[i - 1] + 1);
}

static bool refused(uint32_t rank, uint64_t number)
{
	return (rank * 31 + number) % 16 == 3;
}

static uint8_t *memory_of(struct skep_buf buf)
{
	return (uint8_t *)((uintptr_t)buf.slot | (uintptr_t)buf.generation << 32);
}

/* A buffer's handle is its address in two halves. */
static struct skep_buf handle_of(const void *memory)
{
	uintptr_t address = (uintptr_t)memory;
	return (struct skep_buf){(uint32_t)address, (uint32_t)((uint64_t)address >> 32)};
}

static void *landing_memory(void *context, uint32_t peer, const struct skep_frame *frame, struct skep_buf *ret)
{
	struct process *p = context;
	if (refused(peer, frame->number)) {
		p->tally[p->transport.rank].got[peer]++;
		return NULL;
	}
	void *memory = malloc(frame->body);
	*ret = handle_of(memory);
	return memory;
}

static void send_tensor(struct process *p, uint32_t peer, uint64_t bytes)
{
	struct skep_frame frame = {.type = SKEP_FRAME_MESSAGE, .number = ++p->number, .body = bytes};
	uint8_t *body = bytes > 0 ? malloc(bytes) : NULL;
	if (bytes > 0)
		fill(body, bytes, p->transport.rank, frame.number);
	frame.u.message.kind = SKEP_MESSAGE_FORWARD;
	frame.u.message.payload_bytes = bytes;
	frame.u.message.payload = handle_of(body);
	p->waiting += bytes > 0;
	p->tally[peer].sent[p->transport.rank]++;
	p->transport.send(p->transport.self, peer, &frame, body);
}

static void check_body(struct process *p, const struct skep_transport_event *event)
{
	uint64_t bytes = event->frame.body;
	uint8_t *got = memory_of(event->frame.u.message.payload), *want = malloc(bytes);
	fill(want, bytes, event->peer, event->frame.number);
	if (memcmp(got, want, bytes) != 0)
		fail(p, "a tensor is not what was sent");
	free(want);
	free(got);
}

/* ---- events --------------------------------------------------------------------------------------------------------- */

static void send_all(struct process *p, const struct skep_frame *frame)
{
	for (uint32_t peer = 0; peer < RANKS; peer++) {
		if (peer != p->transport.rank && !p->gone[peer])
			p->transport.send(p->transport.self, peer, frame, NULL);
	}
}

static void lose(struct process *p, uint32_t peer)
{
	struct skep_frame frame = {.type = SKEP_FRAME_GONE};
	if (!p->kill || peer != DEAD)
		fail(p, "a process has gone that lives");
	p->gone[peer] = true;
	frame.u.slot.rank = peer;
	if (p->transport.rank == 0)
		send_all(p, &frame);
}

static void arrive(struct process *p, const struct skep_transport_event *event)
{
	if (event->frame.type == SKEP_FRAME_LAST) {
		p->last[event->peer] = true;
	} else if (event->frame.type == SKEP_FRAME_GONE) {
		lose(p, event->frame.u.slot.rank);
		p->transport.bury(p->transport.self, event->frame.u.slot.rank);
	} else {
		p->tally[p->transport.rank].got[event->peer]++;
		if (event->frame.body > 0)
			check_body(p, event);
	}
}

static void take(struct process *p, const struct skep_transport_event *event)
{
	switch (event->kind) {
	case SKEP_TRANSPORT_ARRIVED:
		arrive(p, event);
		break;
	case SKEP_TRANSPORT_SENT:
		free(memory_of(event->frame.u.message.payload));
		p->waiting--;
		break;
	case SKEP_TRANSPORT_LOST:
		free(memory_of(event->frame.u.message.payload));
		if (!p->kill || event->peer != DEAD)
			fail(p, "a tensor of a process that lives was lost");
		break;
	case SKEP_TRANSPORT_GONE:
		lose(p, event->peer);
		break;
	case SKEP_TRANSPORT_NEW:
		break;
	case SKEP_TRANSPORT_SPOILT:
	case SKEP_TRANSPORT_UNREADABLE:
	case SKEP_TRANSPORT_BROKEN:
		fail(p, event->kind == SKEP_TRANSPORT_BROKEN ? event->reason : "a tensor was not as announced");
		break;
	}
}

static bool drain(struct process *p)
{
	const struct skep_landing landing = {.context = p, .memory = landing_memory};
	struct skep_transport_event event;
	bool any = false;
	while (!p->wrong && p->transport.poll(p->transport.self, &landing, &event)) {
		take(p, &event);
		any = true;
	}
	return any;
}

static uint64_t size_of(uint64_t *seed)
{
	static const uint64_t edge[] = {0, 1, 3, 4095, 4096, 4097, 16376, 16377, 65535, 65537};
	uint64_t kind = draw(seed) % 20;
	return kind < 10 ? edge[kind] : kind < 18 ? draw(seed) % 20000 : draw(seed) % 1000000;
}

static bool all_said(const struct process *p)
{
	for (uint32_t peer = 0; peer < RANKS; peer++) {
		if (peer != p->transport.rank && !p->last[peer] && !p->gone[peer])
			return false;
	}
	return p->transport.pending(p->transport.self) == 0 && p->waiting == 0;
}

static void storm(struct process *p)
{
	uint32_t rank = p->transport.rank;
	for (uint32_t i = 0; i < MESSAGES && !p->wrong; i++) {
		uint32_t peer = (rank + 1 + (uint32_t)(draw(&p->seed) % (RANKS - 1))) % RANKS;
		send_tensor(p, peer, size_of(&p->seed));
		if (p->kill && rank == DEAD && i == MESSAGES / 2)
			raise(SIGKILL);
		if (i % 7 == 0)
			drain(p);
	}
	send_all(p, &(struct skep_frame){.type = SKEP_FRAME_LAST});
	while (!p->wrong && !all_said(p)) {
		if (!drain(p))
			p->transport.wait(p->transport.self, 10000000);
	}
}

/* ---- figures -------------------------------------------------------------------------------------------------------- */

static void ping_pong(struct process *p, uint64_t bytes, uint32_t turns)
{
	uint32_t rank = p->transport.rank, arrived = 0;
	const struct skep_landing landing = {.context = p, .memory = landing_memory};
	struct skep_transport_event event;
	uint8_t *pattern = malloc(bytes + 1);
	memset(pattern, 1, bytes + 1);
	uint64_t begin = skep_monotonic_ns();
	for (uint32_t i = 0; i < 2 * turns; i++) {
		struct skep_frame frame = {.type = SKEP_FRAME_MESSAGE, .number = 16 * ++p->number, .body = bytes};
		frame.u.message.kind = SKEP_MESSAGE_FORWARD;
		frame.u.message.payload_bytes = bytes;
		if (i % 2 == rank)
			p->transport.send(p->transport.self, 1 - rank, &frame, pattern);
		while (i % 2 != rank && arrived <= i / 2) {
			if (!p->transport.poll(p->transport.self, &landing, &event))
				continue;
			if (event.kind == SKEP_TRANSPORT_ARRIVED && event.frame.body > 0)
				free(memory_of(event.frame.u.message.payload));
			arrived += event.kind == SKEP_TRANSPORT_ARRIVED;
		}
	}
	double each_us = (double)(skep_monotonic_ns() - begin) / (2e3 * turns);
	while (p->transport.pending(p->transport.self) > 0)
		p->transport.poll(p->transport.self, &landing, &event);
	if (rank == 0)
		printf("%9" PRIu64 " bytes: %.2f us one way, %.2f GB/s\n", bytes, each_us,
			(double)bytes / each_us / 1e3);
	fflush(stdout);
	free(pattern);
}

static void bench(struct process *p)
{
	if (p->transport.rank > 1)
		return;
	ping_pong(p, 0, 20000);
	ping_pong(p, 4096, 20000);
	ping_pong(p, 65536, 5000);
	ping_pong(p, 524288, 1000);
	ping_pong(p, 4194304, 200);
	ping_pong(p, 67108864, 10);
}

/* ---- up and down ---------------------------------------------------------------------------------------------------- */

struct choice {
	bool bare, kill, bench;
	const char *from; /* a network namespace; NULL: ours */
	const char *to;   /* an address of ours in dotted decimals */
};

static int listen_here(const struct choice *choice, uint16_t *ret_port)
{
	struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr(choice->to)};
	socklen_t size = sizeof here;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&here, size) != 0 || listen(fd, 16) != 0 ||
		getsockname(fd, (struct sockaddr *)&here, &size) != 0)
		die("no socket");
	*ret_port = ntohs(here.sin_port);
	return fd;
}

/* A socket belongs to the namespace that it was made in, also in the hands of a process of another one. */
static int socket_from(const char *namespace)
{
	int own = open("/proc/self/ns/net", O_RDONLY), other = namespace != NULL ? open(namespace, O_RDONLY) : -1;
	if (namespace != NULL && (other < 0 || setns(other, CLONE_NEWNET) != 0))
		die("no such namespace, or no leave to enter it");
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	if (namespace != NULL && setns(own, CLONE_NEWNET) != 0)
		die("no way back to our own namespace");
	close(own);
	if (other >= 0)
		close(other);
	return fd;
}

static void prepare(struct sockets *s, const struct choice *choice)
{
	struct skep_diag why = {0};
	s->authority = skep_authority_create(&why);
	for (uint32_t rank = 0; rank < RANKS; rank++) {
		struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr(choice->to)};
		s->listener[rank] = listen_here(choice, &s->port[rank]);
		to.sin_port = htons(s->port[0]);
		s->own[rank] = rank > 0 ? socket_from(choice->from) : -1;
		if (rank > 0 && connect(s->own[rank], (struct sockaddr *)&to, sizeof to) != 0)
			die("no connection");
		if (rank > 0)
			fcntl(s->own[rank], F_SETFL, O_NONBLOCK);
		s->root[rank] = rank > 0 ? accept4(s->listener[0], NULL, NULL, SOCK_NONBLOCK) : -1;
	}
}

static void certify(const struct sockets *s, struct skep_mesh_setup *setup)
{
	struct skep_diag why = {0};
	uint8_t key[SKEP_CERTIFICATE_MAX], own[SKEP_CERTIFICATE_MAX], authority[SKEP_CERTIFICATE_MAX];
	struct skep_identity *identity = skep_identity_create(&why);
	size_t bytes = skep_identity_public(identity, key);
	bytes = skep_authority_issue(s->authority, RUN, setup->rank, key, bytes, own);
	size_t authority_bytes = skep_authority_certificate(s->authority, authority);
	if (!skep_identity_adopt(identity, own, bytes, authority, authority_bytes, &why))
		die(why.message);
	setup->host = skep_tls_server(identity, false, &why);
	setup->client = skep_tls_client(identity, &why);
	skep_identity_destroy(identity);
}

/* The connection of rank 0 and another one, its handshake done. */
static void attach(struct process *p, const struct skep_mesh_setup *setup, uint32_t peer, int fd)
{
	struct skep_channel channel;
	bool host = setup->rank == 0;
	if (!skep_channel_open(&channel, fd, true, host ? setup->host : setup->client, host))
		die("no channel");
	while (channel.state < SKEP_CHANNEL_OPEN) {
		struct pollfd ready = {.fd = fd, .events = POLLIN};
		poll(&ready, 1, 100);
		skep_channel_advance(&channel);
	}
	if (channel.state != SKEP_CHANNEL_OPEN)
		die(channel.why);
	struct skep_member member = {.rank = peer};
	skep_mesh_member(p->mesh, &member, false);
	if (!skep_mesh_attach(p->mesh, peer, &channel))
		die("no connection to rank 0");
}

static void enter(struct process *p, const struct sockets *s, const struct skep_mesh_setup *setup)
{
	for (uint32_t peer = 1; peer < RANKS && setup->rank == 0; peer++)
		attach(p, setup, peer, s->root[peer]);
	if (setup->rank > 0)
		attach(p, setup, 0, s->own[setup->rank]);
	for (uint32_t peer = 1; peer < RANKS && setup->rank > 0; peer++) {
		struct skep_member member = {.rank = peer, .port = s->port[peer], .address = "127.0.0.1"};
		bool apart = (setup->rank == 3 && peer == DEAD) || (setup->rank == DEAD && peer == 3);
		if (apart || (setup->rank == 3 && peer == 1)) /* of 1 and 3 the former can connect to the latter */
			member.port = 0;
		if (peer != setup->rank)
			skep_mesh_member(p->mesh, &member, false);
	}
}

static int one(uint32_t rank, const struct sockets *s, struct tally *tally, const struct choice *choice)
{
	struct skep_diag why = {0};
	struct process p = {.tally = tally, .seed = rank + 1, .kill = choice->kill, .rejects = {.rank = rank}};
	struct skep_mesh_setup setup = {.rank = rank,
		.ranks = RANKS,
		.run = RUN,
		.listener = rank > 0 ? s->listener[rank] : -1,
		.silence_ns = SILENCE_NS,
		.rejects = &p.rejects};
	if (!choice->bare)
		certify(s, &setup);
	p.mesh = skep_mesh_create(&setup, &why);
	if (p.mesh == NULL)
		die(why.message);
	p.transport = skep_mesh_transport(p.mesh);
	enter(&p, s, &setup);
	if (choice->bench)
		bench(&p);
	else
		storm(&p);
	if (skep_rejects_close(&p.rejects) > 0)
		fail(&p, "frames were rejected");
	if (!choice->bench && rank == 0 && skep_mesh_counts(p.mesh).relayed_bytes == 0)
		fail(&p, "nothing was passed on");
	if (!choice->bench && (rank == 1 || rank == 3) && p.mesh->peer[4 - rank].relayed)
		fail(&p, "what 1 and 3 say to each other was passed on");
	if (!choice->bench && rank == 0 && skep_mesh_counts(p.mesh).relay_most > skep_relay_most(setup.ranks))
		fail(&p, "a sender's records filled rank 0");
	skep_mesh_destroy(p.mesh, !p.wrong);
	SSL_CTX_free(setup.host);
	SSL_CTX_free(setup.client);
	skep_authority_destroy(s->authority);
	return p.wrong;
}

/* Between processes that have lived to the end everything has arrived once. */
static int compare(const struct tally *tally, const struct choice *choice)
{
	int wrong = 0;
	for (uint32_t to = 0; to < RANKS; to++) {
		for (uint32_t from = 0; from < RANKS; from++) {
			bool dead = choice->kill && (to == DEAD || from == DEAD);
			uint64_t sent = tally[to].sent[from], got = tally[to].got[from];
			if (dead ? got <= sent : got == sent)
				continue;
			fprintf(stderr, "storm_tcp: %" PRIu64 " of %" PRIu64 " messages from %u came to %u\n", got,
				sent, from, to);
			wrong = 1;
		}
	}
	return wrong;
}

int main(int argc, char **argv)
{
	struct choice choice = {.to = "127.0.0.1"};
	struct sockets sockets;
	int wrong = 0;
	for (int i = 1; i < argc; i++) {
		choice.bare = choice.bare || strcmp(argv[i], "--bare") == 0;
		choice.kill = choice.kill || strcmp(argv[i], "--kill") == 0;
		choice.bench = choice.bench || strcmp(argv[i], "--bench") == 0;
		if (i + 1 < argc && strcmp(argv[i], "--from") == 0)
			choice.from = argv[i + 1];
		if (i + 1 < argc && strcmp(argv[i], "--to") == 0)
			choice.to = argv[i + 1];
	}
	signal(SIGPIPE, SIG_IGN);
	size_t bytes = RANKS * sizeof(struct tally);
	struct tally *tally = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	prepare(&sockets, &choice);
	pid_t pid[RANKS];
	for (uint32_t rank = 0; rank < RANKS; rank++) {
		pid[rank] = fork();
		if (pid[rank] != 0)
			continue;
		for (uint32_t other = 0; other < RANKS; other++) { /* or a death would not be seen */
			if (rank > 0 && other > 0)
				close(sockets.root[other]);
			if (other != rank && other > 0)
				close(sockets.own[other]);
		}
		exit(one(rank, &sockets, tally, &choice));
	}
	for (uint32_t rank = 1; rank < RANKS; rank++) {
		close(sockets.root[rank]);
		close(sockets.own[rank]);
	}
	for (uint32_t rank = 0; rank < RANKS; rank++) {
		int status = 0;
		waitpid(pid[rank], &status, 0);
		bool killed = choice.kill && rank == DEAD && WIFSIGNALED(status);
		wrong |= !killed && status != 0;
	}
	wrong |= compare(tally, &choice);
	skep_authority_destroy(sockets.authority);
	printf("storm_tcp: %s\n", wrong ? "failed" : "passed");
	return wrong;
}
