/* SPDX-License-Identifier: Apache-2.0
 *
 * transport_mpi_send.c - what leaves this process: a frame, and behind it its tensor, until MPI has seen the end of both.
 */
#include "exec/mpi/transport_mpi_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

#define SENDS_A_POLL 4u

/* NULL: no memory. */
static struct parcel *parcel_take(struct mpi *mpi)
{
	struct parcel *parcel = mpi->spare;
	if (parcel == NULL)
		return malloc(sizeof *parcel);
	mpi->spare = parcel->next;
	return parcel;
}

static void parcel_put(struct mpi *mpi, struct parcel *parcel)
{
	assert(parcel != mpi->spare);
	parcel->next = mpi->spare;
	mpi->spare = parcel;
}

static void ring(struct mpi *mpi, uint32_t peer)
{
	assert(peer < mpi->ranks);
	if (mpi->wakeups.wakeup[peer] != NULL)
		skep_wakeup_ring(mpi->wakeups.wakeup[peer]);
}

static bool sends_room(struct mpi *mpi)
{
	return skep_grow(&mpi->send, mpi->sends, 2 * sizeof *mpi->send) &&
	       skep_grow(&mpi->parcel, mpi->sends, sizeof *mpi->parcel);
}

void skep_mpi_give(void *self, uint32_t peer, const struct skep_frame *frame, const void *body)
{
	struct mpi *mpi = self;
	struct parcel *parcel = sends_room(mpi) ? parcel_take(mpi) : NULL;
	assert(peer < mpi->ranks && (frame->body == 0 || body != NULL));
	if (parcel == NULL) {
		skep_mpi_keep_fault(mpi, MPI_ERR_NO_MEM);
		return;
	}
	parcel->frame = *frame;
	parcel->peer = peer;
	int size = (int)skep_frame_encode(frame, mpi->run, parcel->bytes);
	MPI_Request *request = &mpi->send[2 * mpi->sends];
	request[0] = request[1] = MPI_REQUEST_NULL;
	if (!mpi->gone[peer])
		skep_mpi_keep_fault(mpi, MPI_Isend(parcel->bytes, size, MPI_BYTE, (int)peer, SKEP_MPI_FRAME_TAG,
						 mpi->frames, &request[0]));
	mpi->sweep = mpi->sweep || mpi->gone[peer];
	if (frame->body > 0 && !mpi->gone[peer])
		skep_mpi_keep_fault(mpi, skep_mpi_send(body, frame->body, (int)peer, skep_mpi_body_tag(mpi, frame),
						 mpi->bodies, &request[1]));
	ring(mpi, peer);
	if (frame->body == 0) /* a small one usually has left: then there is nothing to keep */
		skep_mpi_keep_fault(mpi, skep_mpi_test(mpi, &request[0]));
	if (frame->body == 0 && request[0] == MPI_REQUEST_NULL) { /* or it has not begun */
		parcel_put(mpi, parcel);
		return;
	}
	mpi->parcel[mpi->sends++] = parcel;
}

/* A send has ended; true if that is news for the caller. */
static bool sent(struct mpi *mpi, size_t at, struct skep_transport_event *ret)
{
	assert(at < mpi->sends);
	MPI_Request *request = &mpi->send[2 * at];
	if (request[0] != MPI_REQUEST_NULL || request[1] != MPI_REQUEST_NULL)
		return false;
	struct parcel *parcel = mpi->parcel[at];
	ring(mpi, parcel->peer); /* it may have left only now */
	*ret = (struct skep_transport_event){.kind = SKEP_TRANSPORT_SENT, .peer = parcel->peer, .frame = parcel->frame};
	size_t last = --mpi->sends;
	mpi->parcel[at] = mpi->parcel[last];
	memmove(request, &mpi->send[2 * last], 2 * sizeof *request);
	parcel_put(mpi, parcel);
	return ret->frame.body > 0;
}

/* Parcels to the dead have gone. True: one of them is news. */
static bool sweep(struct mpi *mpi, struct skep_transport_event *ret)
{
	assert(mpi->survives);
	for (size_t i = 0; i < mpi->sends;) {
		size_t before = mpi->sends;
		if (mpi->gone[mpi->parcel[i]->peer])
			mpi->send[2 * i] = mpi->send[2 * i + 1] = MPI_REQUEST_NULL;
		if (sent(mpi, i, ret))
			return true;
		i += mpi->sends == before; /* else another one has taken its place */
	}
	mpi->sweep = false;
	return false;
}

/* A few at a time: each look makes MPI look around, and may give the processor away. */
static bool poll_some_sends(struct mpi *mpi, struct skep_transport_event *ret)
{
	if (mpi->sweep && sweep(mpi, ret))
		return true;
	for (size_t n = 0; n < SENDS_A_POLL && n < mpi->sends; n++) {
		size_t i = mpi->turn++ % mpi->sends;
		int rc = skep_mpi_test(mpi, &mpi->send[2 * i]);
		if (rc == MPI_SUCCESS)
			rc = skep_mpi_test(mpi, &mpi->send[2 * i + 1]);
		if (rc != MPI_SUCCESS)
			return skep_mpi_break(mpi, rc, ret);
		if (sent(mpi, i, ret))
			return true;
	}
	return false;
}

bool skep_mpi_poll_sends(struct mpi *mpi, struct skep_transport_event *ret)
{
	if (mpi->survives)
		return poll_some_sends(mpi, ret);
	while (mpi->sends > 0) {
		int at, done;
		int rc = MPI_Testany((int)(2 * mpi->sends), mpi->send, &at, &done, MPI_STATUS_IGNORE);
		if (rc != MPI_SUCCESS)
			return skep_mpi_break(mpi, rc, ret);
		if (!done || at == MPI_UNDEFINED)
			return false;
		if (sent(mpi, (size_t)at / 2, ret))
			return true;
	}
	return false;
}
