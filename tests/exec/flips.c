/* SPDX-License-Identifier: Apache-2.0
 *
 * flips.c - loaded into the program in front of its libraries (LD_PRELOAD): does what broken memory, a bad line or a wrong clock
 * does.
 *
 *     FAULT_FLIP=N        flips a bit in the middle of the N-th tensor that this process sends over MPI
 *     FAULT_FLIP_FRAME=N  the same in the N-th message of less than 4,000 bytes
 *     FAULT_PARAMETER=N   flips a bit of a weight in memory, before the N-th forward pass through a layer
 *     FAULT_RANK=R        only in that rank
 *     FAULT_BYTES=B       only tensors of that many bytes count
 *     FAULT_CLOCK=S       the clock of the day is S seconds ahead; negative: behind
 */
#include <cblas.h>
#include <dlfcn.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static long asked(const char *name)
{
	const char *text = getenv(name);
	return text != NULL ? atol(text) : 0;
}

static bool is_this_rank(void)
{
	int rank = 0, up = 0;
	PMPI_Initialized(&up);
	if (up)
		PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
	return !up || getenv("FAULT_RANK") == NULL || asked("FAULT_RANK") == rank;
}

/* True once, for the one that is asked for. */
static bool is_due(bool frame, int bytes)
{
	static long tensors, frames;
	long *seen = frame ? &frames : &tensors, nth = asked(frame ? "FAULT_FLIP_FRAME" : "FAULT_FLIP");
	if (nth == 0 || !is_this_rank() || (!frame && getenv("FAULT_BYTES") != NULL && asked("FAULT_BYTES") != bytes))
		return false;
	return ++*seen == nth;
}

/* What is sent is a copy, which stays to the end: the sender's own bytes are as they were. */
int MPI_Isend(const void *bytes, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
	bool frame = tag == 0; /* transport_mpi.c: tensors have the numbers of their frames */
	if (type != MPI_BYTE || comm == MPI_COMM_WORLD || count == 0 || !is_due(frame, count))
		return PMPI_Isend(bytes, count, type, to, tag, comm, request);
	unsigned char *copy = malloc((size_t)count);
	memcpy(copy, bytes, (size_t)count);
	copy[count / 2] ^= 64;
	fprintf(stderr, "fault: flipped a bit of %d bytes to rank %d\n", count, to);
	return PMPI_Isend(copy, count, type, to, tag, comm, request);
}

/* In a forward pass alone neither factor is transposed, and the second one is the weights (models/layers/dense.c). */
void cblas_sgemm(enum CBLAS_ORDER order, enum CBLAS_TRANSPOSE first, enum CBLAS_TRANSPOSE second, blasint m, blasint n,
	blasint k, float alpha, const float *a, blasint lda, const float *b, blasint ldb, float beta, float *c,
	blasint ldc)
{
	static void (*real)(enum CBLAS_ORDER, enum CBLAS_TRANSPOSE, enum CBLAS_TRANSPOSE, blasint, blasint, blasint,
		float, const float *, blasint, const float *, blasint, float, float *, blasint);
	static long passes;
	if (real == NULL)
		*(void **)&real = dlsym(RTLD_NEXT, "cblas_sgemm");
	bool forward = first == CblasNoTrans && second == CblasNoTrans;
	if (forward && asked("FAULT_PARAMETER") > 0 && is_this_rank() && ++passes == asked("FAULT_PARAMETER")) {
		((unsigned char *)(uintptr_t)b)[1] ^= 16; /* one of the middle of the mantissa: no loss shows it */
		fprintf(stderr, "fault: flipped a bit of a weight\n");
	}
	real(order, first, second, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

int clock_gettime(clockid_t clock, struct timespec *ret)
{
	static int (*real)(clockid_t, struct timespec *);
	if (real == NULL)
		*(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
	int status = real(clock, ret);
	if (clock == CLOCK_REALTIME)
		ret->tv_sec += asked("FAULT_CLOCK");
	return status;
}
