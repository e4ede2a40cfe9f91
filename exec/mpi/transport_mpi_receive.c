/* SPDX-License-Identifier: Apache-2.0
 *
 * transport_mpi_receive.c - what comes: frames, which are looked for and taken in one by one, and their tensors.
 */
#include "exec/mpi/transport_mpi_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

/* Open MPI looks first and takes in what has come afterwards: the second look finds what the first has taken in. Without
 * it a process would go to sleep over a message. */
static int probe(MPI_Comm comm, int peer, int tag, int *ret_there, MPI_Message *ret, MPI_Status *ret_status)
{
	int rc = MPI_Improbe(peer, tag, comm, ret_there, ret, ret_status);
	if (rc == MPI_SUCCESS && !*ret_there)
		rc = MPI_Improbe(peer, tag, comm, ret_there, ret, ret_status);
	*ret_there = rc == MPI_SUCCESS && *ret_there;
	return rc;
}

/* NULL: no memory. */
static struct intake *intake_add(struct mpi *mpi, uint32_t peer, const struct skep_frame *frame)
{
	assert(peer < mpi->ranks);
	if (!skep_grow(&mpi->receive, mpi->intakes, sizeof *mpi->receive) ||
		!skep_grow(&mpi->intake, mpi->intakes, sizeof *mpi->intake))
		return NULL;
	struct intake *intake = &mpi->intake[mpi->intakes];
	memset(intake, 0, sizeof *intake);
	intake->peer = peer;
	if (frame != NULL)
		intake->frame = *frame;
	mpi->receive[mpi->intakes++] = MPI_REQUEST_NULL;
	return intake;
}

/* Begins the receive of a message into memory of exactly its size: a shorter buffer is not safe, Open MPI 4.1 writes past
 * it when it copies from the sender's memory. */
static int draw_off(struct mpi *mpi, struct intake *intake, uint64_t bytes, MPI_Message *matched)
{
	assert(intake->scratch == NULL && intake >= mpi->intake && intake < mpi->intake + mpi->intakes);
	intake->scratch = malloc(bytes + 1);
	if (intake->scratch == NULL)
		return MPI_ERR_NO_MEM;
	return skep_mpi_receive(intake->scratch, bytes, matched, &mpi->receive[intake - mpi->intake]);
}

/* Looks for the tensor of a frame, and takes it to where it belongs if it is as long as announced. */
static int match_body(struct mpi *mpi, struct intake *intake)
{
	MPI_Message matched;
	MPI_Status status;
	int there = 0;
	int rc = probe(
		mpi->bodies, (int)intake->peer, skep_mpi_body_tag(mpi, &intake->frame), &there, &matched, &status);
	if (rc != MPI_SUCCESS || !there)
		return rc;
	uint64_t bytes = skep_mpi_size(&status);
	assert(!intake->matched && mpi->receive[intake - mpi->intake] == MPI_REQUEST_NULL);
	intake->matched = true;
	if (intake->memory != NULL && bytes == intake->frame.body)
		return skep_mpi_receive(intake->memory, bytes, &matched, &mpi->receive[intake - mpi->intake]);
	return draw_off(mpi, intake, bytes, &matched);
}

/* False: no memory. */
static bool expect_body(
	struct mpi *mpi, const struct skep_landing *landing, uint32_t peer, const struct skep_frame *frame)
{
	struct skep_buf buf = {0, 0};
	assert(frame->body > 0);
	void *memory = landing->memory(landing->context, peer, frame, &buf);
	struct intake *intake = intake_add(mpi, peer, frame);
	if (intake == NULL)
		return false;
	intake->frame.u.message.payload = buf;
	intake->memory = memory;
	return true;
}

bool skep_mpi_poll_frame(
	struct mpi *mpi, const struct skep_landing *landing, struct skep_transport_event *ret, bool *ret_found)
{
	MPI_Message matched;
	MPI_Status status;
	int there = 0;
	*ret_found = false;
	int rc = probe(mpi->frames, MPI_ANY_SOURCE, MPI_ANY_TAG, &there, &matched, &status);
	if (rc != MPI_SUCCESS) /* what has come lies behind the news of a death */
		return !skep_mpi_is_death(mpi, rc) && skep_mpi_break(mpi, rc, ret);
	if (!there)
		return false;
	*ret_found = true;
	uint32_t peer = (uint32_t)status.MPI_SOURCE;
	uint64_t size = skep_mpi_size(&status);
	if (size > SKEP_FRAME_MAX) {
		struct intake *intake = intake_add(mpi, peer, NULL);
		skep_complain(mpi->rejects, (enum skep_reject)SKEP_FRAME_BAD_SIZE, peer);
		if (intake == NULL)
			return skep_mpi_break(mpi, MPI_ERR_NO_MEM, ret);
		intake->matched = true;
		rc = draw_off(mpi, intake, size, &matched);
		return rc != MPI_SUCCESS && skep_mpi_break(mpi, rc, ret);
	}
	rc = MPI_Mrecv(mpi->bytes, (int)size, MPI_BYTE, &matched, &status);
	if (rc != MPI_SUCCESS)
		return !skep_mpi_is_death(mpi, rc) && skep_mpi_break(mpi, rc, ret);
	*ret = (struct skep_transport_event){.kind = SKEP_TRANSPORT_ARRIVED, .peer = peer};
	enum skep_frame_fault fault = skep_frame_decode(mpi->bytes, size, mpi->run, &ret->frame);
	if (fault != SKEP_FRAME_GOOD) { /* without a body */
		skep_complain(mpi->rejects, (enum skep_reject)fault, peer);
		*ret = (struct skep_transport_event){SKEP_TRANSPORT_UNREADABLE, peer, {.type = (uint8_t)fault}, NULL};
	}
	if (ret->frame.body == 0)
		return true;
	return !expect_body(mpi, landing, peer, &ret->frame) && skep_mpi_break(mpi, MPI_ERR_NO_MEM, ret);
}

/* A receive has ended; true if that is news for the caller. */
static bool received(struct mpi *mpi, size_t at, struct skep_transport_event *ret)
{
	assert(at < mpi->intakes);
	struct intake intake = mpi->intake[at];
	size_t last = --mpi->intakes;
	mpi->intake[at] = mpi->intake[last];
	mpi->receive[at] = mpi->receive[last];
	free(intake.scratch);
	if (intake.memory == NULL)
		return false;
	bool whole = intake.scratch == NULL;
	if (!whole)
		skep_complain(mpi->rejects, SKEP_REJECT_BODY_SIZE, intake.peer);
	ret->kind = whole ? SKEP_TRANSPORT_ARRIVED : SKEP_TRANSPORT_SPOILT;
	ret->peer = intake.peer;
	ret->frame = intake.frame;
	return true;
}

/* The tensor's sender is dead; true if that is news for the caller. */
static bool lost(struct mpi *mpi, size_t at, struct skep_transport_event *ret)
{
	assert(at < mpi->intakes && mpi->survives);
	struct intake intake = mpi->intake[at];
	size_t last = --mpi->intakes;
	mpi->intake[at] = mpi->intake[last];
	mpi->receive[at] = mpi->receive[last];
	free(intake.scratch);
	*ret = (struct skep_transport_event){.kind = SKEP_TRANSPORT_LOST, .peer = intake.peer, .frame = intake.frame};
	return intake.memory != NULL;
}

/* Each by itself: of a tensor it has to be certain that it is whole. */
static bool poll_each_body(struct mpi *mpi, struct skep_transport_event *ret)
{
	for (size_t i = 0; i < mpi->intakes; i++) {
		struct intake *intake = &mpi->intake[i];
		size_t before = mpi->intakes;
		int done = 0, rc = intake->matched ? skep_mpi_look(mpi, &mpi->receive[i], &done) : MPI_SUCCESS;
		if (rc != MPI_SUCCESS)
			return skep_mpi_break(mpi, rc, ret);
		bool dead =
			!done && (mpi->gone[intake->peer] || (intake->matched && mpi->receive[i] == MPI_REQUEST_NULL));
		if ((dead && lost(mpi, i, ret)) || (done && received(mpi, i, ret)))
			return true;
		i -= mpi->intakes < before;
	}
	return false;
}

bool skep_mpi_poll_bodies(struct mpi *mpi, struct skep_transport_event *ret)
{
	for (size_t i = 0; i < mpi->intakes; i++) {
		int rc = mpi->intake[i].matched ? MPI_SUCCESS : match_body(mpi, &mpi->intake[i]);
		if (rc != MPI_SUCCESS && !skep_mpi_is_death(mpi, rc))
			return skep_mpi_break(mpi, rc, ret);
	}
	if (mpi->survives)
		return poll_each_body(mpi, ret);
	while (mpi->intakes > 0) {
		int at, done;
		int rc = MPI_Testany((int)mpi->intakes, mpi->receive, &at, &done, MPI_STATUS_IGNORE);
		if (rc != MPI_SUCCESS)
			return skep_mpi_break(mpi, rc, ret);
		if (!done || at == MPI_UNDEFINED)
			return false;
		if (received(mpi, (size_t)at, ret))
			return true;
	}
	return false;
}
