/* SPDX-License-Identifier: Apache-2.0
 *
 * tensor_mpi.c - see tensor_mpi.h.
 */
#include "exec/mpi/tensor_mpi.h"

#include <assert.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sum.h"

static const char NO_MPI[] = "MPI does not send or receive what the ranks that share a stage exchange";

enum { TAG_GATHER = 1, TAG_SCATTER, TAG_SUM };

/* A rank that lacks memory or whose MPI fails can do nothing that the others could go on with. */
static void give_up(const struct skep_tensor_mpi *t, const char *why)
{
	fprintf(stderr, "skep: tensor parallel rank %d of %d: %s: the run ends\n", t->rank, t->ranks, why);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

/* A message: a part of so many bytes, and behind it their sum (base/sum.h). */
static size_t message_bytes(size_t bytes)
{
	return bytes + sizeof(uint64_t);
}

static void reserve(struct skep_tensor_mpi *t, size_t bytes)
{
	size_t wanted = 2 * (size_t)t->ranks * message_bytes(bytes);
	assert(message_bytes(bytes) <= INT_MAX);
	if (wanted <= t->room)
		return;
	free(t->scratch);
	t->scratch = malloc(wanted);
	t->room = wanted;
	if (t->scratch == NULL)
		give_up(t, "no memory for what the ranks that share a stage send each other within passes");
}

/* In scratch: what rank `peer` sends to this one, or behind these what it is sent. */
static char *place_of(const struct skep_tensor_mpi *t, bool sent, int peer, size_t bytes)
{
	assert(peer >= 0 && peer < t->ranks && 2 * (size_t)t->ranks * message_bytes(bytes) <= t->room);
	return t->scratch + (size_t)(sent ? t->ranks + peer : peer) * message_bytes(bytes);
}

static void expect(struct skep_tensor_mpi *t, int tag, size_t bytes)
{
	for (int r = 0; r < t->ranks; r++) {
		if (r != t->rank && MPI_Irecv(place_of(t, false, r, bytes), (int)message_bytes(bytes), MPI_BYTE, r, tag,
					    t->comm, &t->request[r]) != MPI_SUCCESS)
			give_up(t, NO_MPI);
	}
}

static void tell(struct skep_tensor_mpi *t, int peer, int tag, const void *memory, size_t bytes)
{
	char *message = place_of(t, true, peer, bytes);
	assert(peer != t->rank);
	const uint64_t sum = skep_sum(0, memory, bytes);
	memcpy(message, memory, bytes);
	memcpy(message + bytes, &sum, sizeof sum);
	if (MPI_Isend(message, (int)message_bytes(bytes), MPI_BYTE, peer, tag, t->comm, &t->request[t->ranks + peer]) !=
		MPI_SUCCESS)
		give_up(t, NO_MPI);
	t->bytes += bytes;
}

/* In the middle of a pass, and its sender goes on with other numbers: it is too late to ask again. */
static void check(const struct skep_tensor_mpi *t, int peer, size_t bytes)
{
	const char *message = place_of(t, false, peer, bytes);
	uint64_t said;
	memcpy(&said, message + bytes, sizeof said);
	if (skep_sum(0, message, bytes) == said)
		return;
	char why[160];
	snprintf(why, sizeof why,
		"%zu bytes from rank %d were damaged on their way, within a pass (their sum is not that of what was sent)",
		bytes, peer);
	give_up(t, why);
}

/* Until all has been sent and has come, or nothing is waited for any more. Other threads of the host may need the core. */
static void finish(struct skep_tensor_mpi *t, size_t bytes)
{
	int done = 0;
	while (!done && !atomic_load_explicit(&t->abandoned, memory_order_relaxed)) {
		if (MPI_Testall(2 * t->ranks, t->request, &done, MPI_STATUSES_IGNORE) != MPI_SUCCESS)
			give_up(t, NO_MPI);
		if (!done)
			sched_yield();
	}
	for (int r = 0; done && r < t->ranks; r++) {
		if (r != t->rank)
			check(t, r, bytes);
	}
	t->calls++;
}

/* Each rank's part goes to all others: part r of `ret` comes from rank r. */
static void exchange(struct skep_tensor_mpi *t, int tag, size_t bytes, const void *own, void *ret)
{
	reserve(t, bytes);
	expect(t, tag, bytes);
	for (int r = 0; r < t->ranks; r++) {
		if (r != t->rank)
			tell(t, r, tag, own, bytes);
	}
	finish(t, bytes);
	for (int r = 0; r < t->ranks; r++) {
		if (r != t->rank)
			memcpy((char *)ret + (size_t)r * bytes, place_of(t, false, r, bytes), bytes);
	}
}

static void all_gather(void *context, size_t n, const skep_real *own, skep_real *ret)
{
	struct skep_tensor_mpi *t = context;
	skep_real *place = ret + (size_t)t->rank * n;
	if (own != place)
		memcpy(place, own, n * sizeof *ret);
	exchange(t, TAG_GATHER, n * sizeof *ret, place, ret);
}

static void reduce_scatter(void *context, size_t n, skep_real *full, skep_real *ret)
{
	struct skep_tensor_mpi *t = context;
	const size_t bytes = n * sizeof *ret;
	reserve(t, bytes);
	expect(t, TAG_SCATTER, bytes);
	for (int r = 0; r < t->ranks; r++) {
		if (r != t->rank)
			tell(t, r, TAG_SCATTER, full + (size_t)r * n, bytes);
	}
	finish(t, bytes);
	memcpy(place_of(t, false, t->rank, bytes), full + (size_t)t->rank * n, bytes);
	memcpy(ret, place_of(t, false, 0, bytes), bytes);
	for (int r = 1; r < t->ranks; r++) {
		const skep_real *part = (const skep_real *)(const void *)place_of(t, false, r, bytes);
		for (size_t i = 0; i < n; i++)
			ret[i] += part[i];
	}
}

static double sum(void *context, double own)
{
	struct skep_tensor_mpi *t = context;
	double all = 0;
	t->part[t->rank] = own;
	exchange(t, TAG_SUM, sizeof own, &own, t->part);
	for (int r = 0; r < t->ranks; r++)
		all += t->part[r];
	return all;
}

bool skep_tensor_mpi_create(struct skep_tensor_mpi *ret, int color)
{
	*ret = (struct skep_tensor_mpi){.comm = MPI_COMM_NULL};
	if (MPI_Comm_split(MPI_COMM_WORLD, color, 0, &ret->comm) != MPI_SUCCESS)
		return false;
	MPI_Comm_rank(ret->comm, &ret->rank);
	MPI_Comm_size(ret->comm, &ret->ranks);
	ret->request = calloc((size_t)ret->ranks, 2 * sizeof(MPI_Request));
	for (int i = 0; ret->request != NULL && i < 2 * ret->ranks; i++)
		ret->request[i] = MPI_REQUEST_NULL;
	ret->group = (struct skep_tensor_group){
		.context = ret, .all_gather = all_gather, .reduce_scatter = reduce_scatter, .sum = sum};
	ret->part = calloc((size_t)ret->ranks, sizeof *ret->part);
	return ret->request != NULL && ret->part != NULL;
}

void skep_tensor_mpi_destroy(struct skep_tensor_mpi *tensor, bool clean)
{
	if (!clean || tensor->comm == MPI_COMM_NULL)
		return;
	MPI_Comm_free(&tensor->comm);
	free(tensor->request);
	free(tensor->part);
	free(tensor->scratch);
}
