/* SPDX-License-Identifier: Apache-2.0
 *
 * storm.c - the MPI transport under mpirun, 2 processes or more: thousands of tensors of all sizes crossing each other, some
 * refused, and what a broken peer would send. Reaches into the transport for its communicators.
 *
 *     mpirun -n 4 storm            checks; status 0 and one line per rank if all is well
 *     mpirun -n 2 storm --bench    what a frame and a tensor cost
 *     mpirun -n 2 storm --huge     one tensor of more than 2 GiB
 */
#include "exec/mpi/transport_mpi_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/loop/clock.h"

#define MESSAGES 3000u
#define HOSTILE 5u

struct processes {
	struct skep_transport transport;
	struct skep_rejects rejects;
	uint64_t seed;
	uint32_t sent, done; /* with a tensor */
	uint32_t got, refused, lasts;
	uint32_t spoilt;
	bool wrong;
};

static uint64_t draw(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static void fail(struct processes *processes, const char *what)
{
	fprintf(stderr, "storm: rank %" PRIu32 ": %s\n", processes->transport.rank, what);
	processes->wrong = true;
}

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

/* A buffer's handle is its address in two halves. */
static void *landing_memory(void *context, uint32_t peer, const struct skep_frame *frame, struct skep_buf *ret)
{
	struct processes *processes = context;
	if (refused(peer, frame->number)) {
		processes->refused++;
		return NULL;
	}
	void *memory = malloc(frame->body);
	uintptr_t address = (uintptr_t)memory;
	*ret = (struct skep_buf){(uint32_t)address, (uint32_t)((uint64_t)address >> 32)};
	return memory;
}

static uint8_t *memory_of(struct skep_buf buf)
{
	return (uint8_t *)((uintptr_t)buf.slot | (uintptr_t)buf.generation << 32);
}

static void send_tensor(struct processes *processes, uint32_t peer, uint64_t bytes)
{
	struct skep_frame frame = {.type = SKEP_FRAME_MESSAGE, .number = ++processes->sent, .body = bytes};
	uint8_t *body = bytes > 0 ? malloc(bytes) : NULL;
	uintptr_t address = (uintptr_t)body;
	fill(body, bytes, processes->transport.rank, frame.number);
	frame.u.message.kind = SKEP_MESSAGE_FORWARD;
	frame.u.message.payload_bytes = bytes;
	frame.u.message.payload = (struct skep_buf){(uint32_t)address, (uint32_t)((uint64_t)address >> 32)};
	processes->transport.send(processes->transport.self, peer, &frame, body);
	processes->done += bytes == 0;
}

static void check_body(struct processes *processes, const struct skep_transport_event *event)
{
	uint64_t bytes = event->frame.body;
	uint8_t *got = memory_of(event->frame.u.message.payload);
	uint8_t *want = malloc(bytes);
	fill(want, bytes, event->peer, event->frame.number);
	if (memcmp(got, want, bytes) != 0)
		fail(processes, "a tensor is not what was sent");
	free(want);
	free(got);
}

static void take(struct processes *processes, const struct skep_transport_event *event)
{
	switch (event->kind) {
	case SKEP_TRANSPORT_ARRIVED:
		if (event->frame.type == SKEP_FRAME_LAST) {
			processes->lasts++;
			break;
		}
		processes->got++;
		if (event->frame.body > 0)
			check_body(processes, event);
		break;
	case SKEP_TRANSPORT_SENT:
		free(memory_of(event->frame.u.message.payload));
		processes->done++;
		break;
	case SKEP_TRANSPORT_SPOILT:
		free(memory_of(event->frame.u.message.payload));
		processes->spoilt++;
		break;
	case SKEP_TRANSPORT_UNREADABLE: /* what the hostile one sends */
		break;
	case SKEP_TRANSPORT_BROKEN:
		fail(processes, event->reason);
		break;
	case SKEP_TRANSPORT_GONE:
	case SKEP_TRANSPORT_NEW:
	case SKEP_TRANSPORT_LOST:
		fail(processes, "no process has died");
		break;
	}
}

static bool drain(struct processes *processes)
{
	const struct skep_landing landing = {.context = processes, .memory = landing_memory};
	struct skep_transport_event event;
	bool any = false;
	while (!processes->wrong && processes->transport.poll(processes->transport.self, &landing, &event)) {
		take(processes, &event);
		any = true;
	}
	return any;
}

/* What must never come, sent by rank 1 to rank 0 past the transport. */
static void be_hostile(struct processes *processes)
{
	struct mpi *mpi = processes->transport.self;
	static uint8_t junk[1 << 20];
	uint8_t bytes[SKEP_FRAME_MAX];
	MPI_Request ended[8];
	memset(junk, 0xa5, sizeof junk);
	MPI_Isend(junk, 200, MPI_BYTE, 0, 0, mpi->frames, &ended[0]);         /* not ours */
	MPI_Isend(junk, sizeof junk, MPI_BYTE, 0, 0, mpi->frames, &ended[1]); /* far too long */
	MPI_Isend(junk, 0, MPI_BYTE, 0, 9, mpi->frames, &ended[2]);           /* nothing, under another tag */
	struct skep_frame frame = {.type = SKEP_FRAME_MESSAGE, .number = 2000001, .body = 1000};
	frame.u.message.kind = SKEP_MESSAGE_FORWARD;
	frame.u.message.payload_bytes = 1000;
	int size = (int)skep_frame_encode(&frame, mpi->run, bytes);
	MPI_Send(bytes, size, MPI_BYTE, 0, 0, mpi->frames);
	MPI_Isend(junk, 500, MPI_BYTE, 0, skep_mpi_body_tag(mpi, &frame), mpi->bodies,
		&ended[3]); /* shorter than announced */
	frame.number++;
	skep_frame_encode(&frame, mpi->run, bytes);
	MPI_Send(bytes, size, MPI_BYTE, 0, 0, mpi->frames);
	MPI_Isend(junk, sizeof junk, MPI_BYTE, 0, skep_mpi_body_tag(mpi, &frame), mpi->bodies, &ended[4]); /* longer */
	frame.number += 2;
	skep_frame_encode(&frame, mpi->run + 1, bytes); /* of another run */
	MPI_Send(bytes, size, MPI_BYTE, 0, 0, mpi->frames);
	int done = 0;
	while (!done) {
		MPI_Testall(5, ended, &done, MPI_STATUSES_IGNORE);
		drain(processes);
	}
}

static uint64_t size_of(uint64_t *seed)
{
	static const uint64_t edge[] = {0, 1, 3, 4095, 4096, 4097, 65535, 65537};
	uint64_t kind = draw(seed) % 20;
	return kind < 8 ? edge[kind] : kind < 18 ? draw(seed) % 20000 : draw(seed) % 1000000;
}

static void expect(struct processes *processes, uint64_t got, uint64_t want, const char *what)
{
	if (got == want)
		return;
	fprintf(stderr, "storm: rank %" PRIu32 ": %s: %" PRIu64 ", expected %" PRIu64 "\n", processes->transport.rank,
		what, got, want);
	processes->wrong = true;
}

static void storm(struct processes *processes)
{
	uint32_t rank = processes->transport.rank, ranks = processes->transport.ranks;
	for (uint32_t i = 0; i < MESSAGES; i++) {
		uint32_t peer = (rank + 1 + (uint32_t)(draw(&processes->seed) % (ranks - 1))) % ranks;
		send_tensor(processes, peer, size_of(&processes->seed));
		if (rank == 1 && i == MESSAGES / 2)
			be_hostile(processes);
		if (i % 7 == 0)
			drain(processes);
	}
	struct skep_frame last = {.type = SKEP_FRAME_LAST};
	for (uint32_t peer = 0; peer < ranks; peer++) {
		if (peer != rank)
			processes->transport.send(processes->transport.self, peer, &last, NULL);
	}
	while (!processes->wrong &&
		(processes->lasts < ranks - 1 || processes->transport.pending(processes->transport.self) > 0)) {
		if (!drain(processes))
			processes->transport.wait(processes->transport.self, 10000000);
	}
	uint32_t mine[2] = {processes->sent, processes->got + processes->refused}, all[2];
	MPI_Allreduce(mine, all, 2, MPI_UINT32_T, MPI_SUM, MPI_COMM_WORLD);
	expect(processes, all[1], all[0], "messages arrived or refused");
	expect(processes, processes->done, processes->sent, "sends ended");
	expect(processes, processes->spoilt, rank == 0 ? 2 : 0, "spoilt tensors");
	expect(processes, skep_rejects_close(&processes->rejects), rank == 0 ? 6 : 0, "complaints");
}

/* A send that MPI refuses: the next poll says so, and every one after it; nothing stays pending that has not begun. */
static void refuse_a_send(uint32_t rank, struct processes *processes)
{
	const struct skep_landing landing = {.context = processes, .memory = landing_memory};
	struct skep_transport transport;
	struct skep_transport_event event;
	struct skep_frame frame = {.type = SKEP_FRAME_LAST};
	if (!skep_transport_mpi_create(&transport, &processes->rejects) ||
		!skep_transport_mpi_connect(&transport, 4712)) {
		fail(processes, "no second transport");
		return;
	}
	struct mpi *mpi = transport.self;
	MPI_Comm frames = mpi->frames;
	mpi->frames = MPI_COMM_SELF; /* which has no second rank */
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	transport.send(transport.self, rank == 0 ? 1 : rank, &frame, NULL);
	mpi->frames = frames;
	expect(processes, transport.pending(transport.self), 0, "sends pending that MPI has refused");
	for (int i = 0; i < 2; i++) {
		bool told = transport.poll(transport.self, &landing, &event);
		if (!told || event.kind != SKEP_TRANSPORT_BROKEN || event.reason[0] == '\0')
			fail(processes, "a refused send is not told");
	}
	skep_transport_mpi_destroy(&transport, true);
}

/* ---- figures ----------------------------------------------------------------------------------------------------- */

static uint32_t next_event(struct processes *processes)
{
	const struct skep_landing landing = {.context = processes, .memory = landing_memory};
	struct skep_transport_event event;
	while (!processes->transport.poll(processes->transport.self, &landing, &event))
		;
	if (event.frame.body > 0)
		free(memory_of(event.frame.u.message.payload));
	return event.kind;
}

/* Frames (bytes 0) or tensors back and forth between ranks 0 and 1, both polling. */
static void ping_pong(struct processes *processes, uint64_t bytes, uint32_t turns)
{
	uint32_t rank = processes->transport.rank, arrived = 0;
	uint8_t *pattern = malloc(bytes + 1);
	uint64_t begin = skep_monotonic_ns();
	memset(pattern, 1, bytes + 1);
	for (uint32_t i = 0; i < turns; i++) {
		struct skep_frame frame = {
			.type = SKEP_FRAME_MESSAGE, .number = 16ull * ++processes->sent, .body = bytes};
		frame.u.message.kind = SKEP_MESSAGE_FORWARD;
		frame.u.message.payload_bytes = bytes;
		if (rank == 1)
			for (; arrived <= i; arrived += next_event(processes) == SKEP_TRANSPORT_ARRIVED)
				;
		processes->transport.send(processes->transport.self, 1 - rank, &frame, pattern);
		if (rank == 0)
			for (; arrived <= i; arrived += next_event(processes) == SKEP_TRANSPORT_ARRIVED)
				;
	}
	double each_us = (double)(skep_monotonic_ns() - begin) / (2e3 * turns);
	while (processes->transport.pending(processes->transport.self) > 0)
		drain(processes);
	if (rank == 0)
		printf("%9" PRIu64 " bytes: %.2f us one way, %.2f GB/s\n", bytes, each_us,
			(double)bytes / each_us / 1e3);
	free(pattern);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void bench(struct processes *processes)
{
	if (processes->transport.rank > 1)
		return;
	ping_pong(processes, 0, 20000);
	ping_pong(processes, 4096, 20000);
	ping_pong(processes, 65536, 5000);
	ping_pong(processes, 524288, 1000);
	ping_pong(processes, 4194304, 200);
	ping_pong(processes, 67108864, 10);
}

static void huge(struct processes *processes)
{
	processes->sent = 100;
	if (processes->transport.rank == 0)
		send_tensor(processes, 1, (2ull << 30) + 12345);
	while (!processes->wrong && (processes->transport.rank == 0 ? processes->done == 0
								    : processes->got + processes->transport.rank == 1))
		drain(processes);
}

int main(int argc, char **argv)
{
	struct processes processes = {0};
	int rank, wrong;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	processes.rejects.rank = (uint32_t)rank;
	processes.seed = (uint64_t)rank + 1;
	if (!skep_transport_mpi_create(&processes.transport, &processes.rejects) ||
		!skep_transport_mpi_connect(&processes.transport, 4711) || processes.transport.ranks < 2)
		fail(&processes, "needs 2 ranks or more");
	else if (argc > 1 && strcmp(argv[1], "--bench") == 0)
		bench(&processes);
	else if (argc > 1 && strcmp(argv[1], "--huge") == 0)
		huge(&processes);
	else
		storm(&processes);
	refuse_a_send((uint32_t)rank, &processes);
	int mine = processes.wrong;
	MPI_Allreduce(&mine, &wrong, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
	skep_transport_mpi_destroy(&processes.transport, wrong == 0);
	if (rank == 0)
		printf("storm: %s\n", wrong ? "failed" : "passed");
	MPI_Finalize();
	return wrong;
}
