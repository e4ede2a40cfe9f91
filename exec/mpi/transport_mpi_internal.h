/* SPDX-License-Identifier: Apache-2.0
 *
 * transport_mpi_internal.h - what the files of the transport over MPI share: transport_mpi.c, which says how it works,
 * transport_mpi_send.c and transport_mpi_receive.c.
 */
#pragma once

#include <assert.h>

#include "exec/mpi/transport_mpi.h"

#define SKEP_MPI_FRAME_TAG 0

struct parcel { /* a send under way */
	uint8_t bytes[SKEP_FRAME_MAX];
	struct skep_frame frame;
	uint32_t peer;
	struct parcel *next; /* spare ones */
};

struct intake { /* a tensor that is to come, or is being received */
	struct skep_frame frame;
	uint32_t peer;
	void *memory;  /* of the landing; NULL: refused */
	void *scratch; /* receives a tensor that was refused, as large as the tensor */
	bool matched;  /* its receive has begun */
};

struct mpi {
	MPI_Comm frames, bodies;
	uint64_t run;
	int tag_limit;
	struct skep_rejects *rejects;

	MPI_Request *send; /* [2 * sends]: frame and body of parcel[i] */
	struct parcel **parcel;
	size_t sends;
	struct parcel *spare;

	MPI_Request *receive; /* [intakes] */
	struct intake *intake;
	size_t intakes;

	struct skep_wakeups wakeups;
	struct skep_pids pids;
	uint32_t heard;  /* its count before the last look */
	uint64_t nap_ns; /* the last one, while nothing comes */

	uint32_t ranks;
	bool survives;
	bool *gone, *told; /* [ranks]: dead; and the caller has heard of it */
	bool news;         /* some are not told */
	bool sweep;        /* there may be sends to the dead */
	size_t turn;       /* survives: which send is looked at next */

	uint8_t bytes[SKEP_FRAME_MAX]; /* the frame handed out last */
	int fault;                     /* the first error, or MPI_SUCCESS: every poll from then on says BROKEN */
	char reason[MPI_MAX_ERROR_STRING];
};

static inline int skep_mpi_body_tag(const struct mpi *mpi, const struct skep_frame *frame)
{
	assert(frame->body > 0 && mpi->tag_limit > 0);
	return (int)(frame->number % (uint64_t)mpi->tag_limit);
}

/* An error of a call: is it a death, and not the end of the run? The dead are looked up then. */
bool skep_mpi_is_death(struct mpi *mpi, int rc);
/* The end of the run by it, unless it is a death or none. */
void skep_mpi_keep_fault(struct mpi *mpi, int rc);
bool skep_mpi_break(struct mpi *mpi, int rc, struct skep_transport_event *ret); /* true, with the event that says so */

/* A request that has ended becomes MPI_REQUEST_NULL, and is done if it did not end by the death of its peer: _look() where MPI
 * survives that, _test() in any case. Returns what MPI does. */
int skep_mpi_look(struct mpi *mpi, MPI_Request *request, int *ret_done);
int skep_mpi_test(struct mpi *mpi, MPI_Request *request);

/* transport_mpi_send.c */
void skep_mpi_give(void *self, uint32_t peer, const struct skep_frame *frame, const void *body);
bool skep_mpi_poll_sends(struct mpi *mpi, struct skep_transport_event *ret);

/* transport_mpi_receive.c */

/* One frame, if there is any. *ret_found; true: `ret` is filled. */
bool skep_mpi_poll_frame(
	struct mpi *mpi, const struct skep_landing *landing, struct skep_transport_event *ret, bool *ret_found);
bool skep_mpi_poll_bodies(struct mpi *mpi, struct skep_transport_event *ret);
