/* SPDX-License-Identifier: Apache-2.0
 *
 * tensor_mpi.c - see tensor_mpi.h.
 */
#include "exec/mpi/tensor_mpi.h"

#include <assert.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "exec/mpi/mpi_bytes.h"

enum { TAG_GATHER = 1, TAG_SCATTER, TAG_SUM };

/* A rank that lacks memory or whose MPI fails can do nothing that the others could go on with. */
static void give_up(void)
{
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static void expect(struct skep_tensor_mpi *t, int peer, int tag, void *memory, size_t bytes)
{
	assert(bytes <= INT_MAX);
	if (MPI_Irecv(memory, (int)bytes, MPI_BYTE, peer, tag, t->comm, &t->request[peer]) != MPI_SUCCESS)
		give_up();
}

static void tell(struct skep_tensor_mpi *t, int peer, int tag, const void *memory, size_t bytes)
{
	if (MPI_Isend(memory, (int)bytes, MPI_BYTE, peer, tag, t->comm, &t->request[t->ranks + peer]) != MPI_SUCCESS)
		give_up();
	t->bytes += bytes;
}

/* Until all has been sent and has come, or nothing is waited for any more. Other threads of the host may need the core. */
static void finish(struct skep_tensor_mpi *t)
{
	int done = 0;
	while (!done && !atomic_load_explicit(&t->abandoned, memory_order_relaxed)) {
		if (MPI_Testall(2 * t->ranks, t->request, &done, MPI_STATUSES_IGNORE) != MPI_SUCCESS)
			give_up();
		if (!done)
			sched_yield();
	}
	t->calls++;
}

/* Each rank's part goes to all others: part r of `ret` comes from rank r. */
static void exchange(struct skep_tensor_mpi *t, int tag, size_t bytes, const void *own, void *ret)
{
	for (int r = 0; r < t->ranks; r++) {
		if (r != t->rank)
			expect(t, r, tag, (char *)ret + (size_t)r * bytes, bytes);
	}
	for (int r = 0; r < t->ranks; r++) {
		if (r != t->rank)
			tell(t, r, tag, own, bytes);
	}
	finish(t);
}

static void all_gather(void *context, size_t n, const skep_real *own, skep_real *ret)
{
	struct skep_tensor_mpi *t = context;
	skep_real *place = ret + (size_t)t->rank * n;
	if (own != place)
		memcpy(place, own, n * sizeof *ret);
	exchange(t, TAG_GATHER, n * sizeof *ret, place, ret);
}

static bool reserve(struct skep_tensor_mpi *t, size_t n)
{
	if (n <= t->room)
		return true;
	free(t->scratch);
	t->scratch = malloc(n * sizeof *t->scratch);
	t->room = t->scratch != NULL ? n : 0;
	return t->scratch != NULL;
}

static void reduce_scatter(void *context, size_t n, skep_real *full, skep_real *ret)
{
	struct skep_tensor_mpi *t = context;
	if (!reserve(t, (size_t)t->ranks * n))
		give_up();
	for (int r = 0; r < t->ranks; r++) {
		if (r != t->rank)
			expect(t, r, TAG_SCATTER, t->scratch + (size_t)r * n, n * sizeof *ret);
	}
	for (int r = 0; r < t->ranks; r++) {
		if (r != t->rank)
			tell(t, r, TAG_SCATTER, full + (size_t)r * n, n * sizeof *ret);
	}
	finish(t);
	memcpy(t->scratch + (size_t)t->rank * n, full + (size_t)t->rank * n, n * sizeof *ret);
	memcpy(ret, t->scratch, n * sizeof *ret);
	for (int r = 1; r < t->ranks; r++) {
		const skep_real *part = t->scratch + (size_t)r * n;
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
