/* SPDX-License-Identifier: Apache-2.0
 *
 * transport_mpi.c - frames and tensors as MPI messages.
 *
 * Two communicators, which over TCP share one connection for each pair of processes: frames wait behind the tensors before
 * them, as in the network model. Frames are small, carry one tag and are found by a matched probe, so nothing that arrives
 * can surprise a posted receive. A tensor goes straight from the sender's buffer to the receiver's as a contiguous message of
 * its own (the only kind that Open MPI moves with a single copy between processes of a host), under a
 * tag that its frame's number gives: of one sender, no two tensors under way share a tag, so they cannot be
 * mistaken for each other. It is probed for too, and received only if it is as long as its frame says. Sends are
 * owned until MPI_Test has seen their end; no request is ever freed or cancelled.
 *
 * Where MPI survives the death of a process (mpi_bytes.h), a call that concerns a dead peer, or any peer while a death
 * is news, returns an error: then the dead are looked up and said to be GONE, one by one. What was under way to
 * one of them counts as sent, what was to come from it as lost, and their requests are left alone for good.
 * MPI_Test would declare a request to a dead peer failed while its bytes are still on their way out, and Open MPI
 * 5.0 ends the process when those bytes fail in their turn. So a request is tested only when
 * MPI_Request_get_status, which declares nothing, says that it has ended by itself. No rank is replaced here:
 * spare ranks are there from the start.
 *
 * MPI can only be polled. So that an idle process can sleep, every process has a wake-up in memory that the host's
 * processes share, and a sender signals the receiver's. For peers on other hosts, and for transfers that take
 * several steps, a wait is a short sleep between polls.
 */
#include "exec/mpi/transport_mpi.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "exec/mpi/mpi_bytes.h"

#define FRAME_TAG 0
#define SENDS_A_POLL 4u
#define NAP_PENDING_NS 50000u /* a transfer in several steps waits for both sides */
#define NAP_FIRST_NS 20000u   /* no bell: about twice the cost of waking up ... */
#define NAP_LAST_NS 300000u   /* ... growing to what a message may wait for an idle process */

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

/* Is this a death, and not the end of the run? */
static bool death(struct mpi *mpi, int rc)
{
	if (!mpi->survives || !skep_ulfm_is_death(rc))
		return false;
	skep_ulfm_failed(mpi->frames, mpi->gone);
	mpi->news = mpi->sweep = true;
	return true;
}

static void keep_fault(struct mpi *mpi, int rc)
{
	if (rc != MPI_SUCCESS && death(mpi, rc))
		return;
	if (mpi->fault == MPI_SUCCESS)
		mpi->fault = rc;
}

static int body_tag(const struct mpi *mpi, const struct skep_frame *frame)
{
	assert(frame->body > 0 && mpi->tag_limit > 0);
	return (int)(frame->number % (uint64_t)mpi->tag_limit);
}

static bool broken(struct mpi *mpi, int rc, struct skep_transport_event *ret)
{
	int length;
	assert(rc != MPI_SUCCESS);
	keep_fault(mpi, rc);
	if (MPI_Error_string(mpi->fault, mpi->reason, &length) != MPI_SUCCESS)
		strcpy(mpi->reason, "unknown MPI error");
	*ret = (struct skep_transport_event){.kind = SKEP_TRANSPORT_BROKEN, .reason = mpi->reason};
	return true;
}

/* A request that has ended becomes MPI_REQUEST_NULL, and is done if it did not end by the death of its peer. */
static int look(struct mpi *mpi, MPI_Request *request, int *ret_done)
{
	assert(mpi->survives && *request != MPI_REQUEST_NULL);
	int ended = 0, rc = MPI_Request_get_status(*request, &ended, MPI_STATUS_IGNORE);
	*ret_done = 0;
	if (rc == MPI_SUCCESS && ended)
		rc = MPI_Test(request, ret_done, MPI_STATUS_IGNORE);
	if (rc == MPI_SUCCESS || !death(mpi, rc))
		return rc;
	*ret_done = 0;
	*request = MPI_REQUEST_NULL;
	return MPI_SUCCESS;
}

/* Ended requests become MPI_REQUEST_NULL. */
static int test(struct mpi *mpi, MPI_Request *request)
{
	int done;
	if (*request == MPI_REQUEST_NULL)
		return MPI_SUCCESS;
	return mpi->survives ? look(mpi, request, &done) : MPI_Test(request, &done, MPI_STATUS_IGNORE);
}

/* ---- sending ----------------------------------------------------------------------------------------------------- */

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

static void mpi_send(void *self, uint32_t peer, const struct skep_frame *frame, const void *body)
{
	struct mpi *mpi = self;
	struct parcel *parcel = sends_room(mpi) ? parcel_take(mpi) : NULL;
	assert(peer < mpi->ranks && (frame->body == 0 || body != NULL));
	if (parcel == NULL) {
		keep_fault(mpi, MPI_ERR_NO_MEM);
		return;
	}
	parcel->frame = *frame;
	parcel->peer = peer;
	int size = (int)skep_frame_encode(frame, mpi->run, parcel->bytes);
	MPI_Request *request = &mpi->send[2 * mpi->sends];
	request[0] = request[1] = MPI_REQUEST_NULL;
	if (!mpi->gone[peer])
		keep_fault(
			mpi, MPI_Isend(parcel->bytes, size, MPI_BYTE, (int)peer, FRAME_TAG, mpi->frames, &request[0]));
	mpi->sweep = mpi->sweep || mpi->gone[peer];
	if (frame->body > 0 && !mpi->gone[peer])
		keep_fault(mpi,
			skep_mpi_send(body, frame->body, (int)peer, body_tag(mpi, frame), mpi->bodies, &request[1]));
	ring(mpi, peer);
	if (frame->body == 0) /* a small one usually has left: then there is nothing to keep */
		keep_fault(mpi, test(mpi, &request[0]));
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
		int rc = test(mpi, &mpi->send[2 * i]);
		if (rc == MPI_SUCCESS)
			rc = test(mpi, &mpi->send[2 * i + 1]);
		if (rc != MPI_SUCCESS)
			return broken(mpi, rc, ret);
		if (sent(mpi, i, ret))
			return true;
	}
	return false;
}

static bool poll_sends(struct mpi *mpi, struct skep_transport_event *ret)
{
	if (mpi->survives)
		return poll_some_sends(mpi, ret);
	while (mpi->sends > 0) {
		int at, done;
		int rc = MPI_Testany((int)(2 * mpi->sends), mpi->send, &at, &done, MPI_STATUS_IGNORE);
		if (rc != MPI_SUCCESS)
			return broken(mpi, rc, ret);
		if (!done || at == MPI_UNDEFINED)
			return false;
		if (sent(mpi, (size_t)at / 2, ret))
			return true;
	}
	return false;
}

/* ---- receiving --------------------------------------------------------------------------------------------------- */

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
	int rc = probe(mpi->bodies, (int)intake->peer, body_tag(mpi, &intake->frame), &there, &matched, &status);
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

/* One frame, if there is any. *ret_found; true: `ret` is filled. */
static bool poll_frame(
	struct mpi *mpi, const struct skep_landing *landing, struct skep_transport_event *ret, bool *ret_found)
{
	MPI_Message matched;
	MPI_Status status;
	int there = 0;
	*ret_found = false;
	int rc = probe(mpi->frames, MPI_ANY_SOURCE, MPI_ANY_TAG, &there, &matched, &status);
	if (rc != MPI_SUCCESS) /* what has come lies behind the news of a death */
		return !death(mpi, rc) && broken(mpi, rc, ret);
	if (!there)
		return false;
	*ret_found = true;
	uint32_t peer = (uint32_t)status.MPI_SOURCE;
	uint64_t size = skep_mpi_size(&status);
	if (size > SKEP_FRAME_MAX) {
		struct intake *intake = intake_add(mpi, peer, NULL);
		skep_complain(mpi->rejects, (enum skep_reject)SKEP_FRAME_BAD_SIZE, peer);
		if (intake == NULL)
			return broken(mpi, MPI_ERR_NO_MEM, ret);
		intake->matched = true;
		rc = draw_off(mpi, intake, size, &matched);
		return rc != MPI_SUCCESS && broken(mpi, rc, ret);
	}
	rc = MPI_Mrecv(mpi->bytes, (int)size, MPI_BYTE, &matched, &status);
	if (rc != MPI_SUCCESS)
		return !death(mpi, rc) && broken(mpi, rc, ret);
	*ret = (struct skep_transport_event){.kind = SKEP_TRANSPORT_ARRIVED, .peer = peer};
	enum skep_frame_fault fault = skep_frame_decode(mpi->bytes, size, mpi->run, &ret->frame);
	if (fault != SKEP_FRAME_GOOD) { /* without a body */
		skep_complain(mpi->rejects, (enum skep_reject)fault, peer);
		*ret = (struct skep_transport_event){SKEP_TRANSPORT_UNREADABLE, peer, {.type = (uint8_t)fault}, NULL};
	}
	if (ret->frame.body == 0)
		return true;
	return !expect_body(mpi, landing, peer, &ret->frame) && broken(mpi, MPI_ERR_NO_MEM, ret);
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
		int done = 0, rc = intake->matched ? look(mpi, &mpi->receive[i], &done) : MPI_SUCCESS;
		if (rc != MPI_SUCCESS)
			return broken(mpi, rc, ret);
		bool dead =
			!done && (mpi->gone[intake->peer] || (intake->matched && mpi->receive[i] == MPI_REQUEST_NULL));
		if ((dead && lost(mpi, i, ret)) || (done && received(mpi, i, ret)))
			return true;
		i -= mpi->intakes < before;
	}
	return false;
}

static bool poll_bodies(struct mpi *mpi, struct skep_transport_event *ret)
{
	for (size_t i = 0; i < mpi->intakes; i++) {
		int rc = mpi->intake[i].matched ? MPI_SUCCESS : match_body(mpi, &mpi->intake[i]);
		if (rc != MPI_SUCCESS && !death(mpi, rc))
			return broken(mpi, rc, ret);
	}
	if (mpi->survives)
		return poll_each_body(mpi, ret);
	while (mpi->intakes > 0) {
		int at, done;
		int rc = MPI_Testany((int)mpi->intakes, mpi->receive, &at, &done, MPI_STATUS_IGNORE);
		if (rc != MPI_SUCCESS)
			return broken(mpi, rc, ret);
		if (!done || at == MPI_UNDEFINED)
			return false;
		if (received(mpi, (size_t)at, ret))
			return true;
	}
	return false;
}

/* Reports one dead peer of which the caller has not been told. False: there is none. */
static bool tell_death(struct mpi *mpi, struct skep_transport_event *ret)
{
	assert(mpi->survives);
	for (uint32_t peer = 0; peer < mpi->ranks; peer++) {
		if (!mpi->gone[peer] || mpi->told[peer])
			continue;
		mpi->told[peer] = true;
		*ret = (struct skep_transport_event){.kind = SKEP_TRANSPORT_GONE, .peer = peer};
		return true;
	}
	mpi->news = false;
	return false;
}

static void mpi_bury(void *self, uint32_t peer)
{
	struct mpi *mpi = self;
	assert(peer < mpi->ranks);
	mpi->gone[peer] = mpi->told[peer] = mpi->sweep = true;
}

static bool mpi_poll(void *self, const struct skep_landing *landing, struct skep_transport_event *ret)
{
	struct mpi *mpi = self;
	bool found = true;
	if (mpi->fault != MPI_SUCCESS)
		return broken(mpi, mpi->fault, ret);
	mpi->heard = skep_wakeup_count(mpi->wakeups.own);
	if (skep_pids_look(&mpi->pids, mpi->gone))
		mpi->news = mpi->sweep = true;
	if (mpi->news && tell_death(mpi, ret))
		return true;
	while (found) {
		if (poll_frame(mpi, landing, ret, &found)) {
			mpi->nap_ns = NAP_FIRST_NS;
			return true;
		}
	}
	return poll_bodies(mpi, ret) || poll_sends(mpi, ret);
}

static uint32_t mpi_pending(const void *self)
{
	const struct mpi *mpi = self;
	return (uint32_t)(mpi->sends + mpi->intakes);
}

static void mpi_wait(void *self, uint64_t most_ns)
{
	struct mpi *mpi = self;
	uint64_t nap_ns = most_ns;
	if (!mpi->wakeups.alone) {
		mpi->nap_ns = mpi->nap_ns < NAP_LAST_NS ? mpi->nap_ns + mpi->nap_ns / 4 : NAP_LAST_NS;
		nap_ns = mpi->nap_ns;
	}
	if (mpi_pending(self) > 0 && nap_ns > NAP_PENDING_NS)
		nap_ns = NAP_PENDING_NS;
	skep_wakeup_wait(mpi->wakeups.own, mpi->heard, nap_ns < most_ns ? nap_ns : most_ns);
}

static void mpi_wake(void *self)
{
	skep_wakeup_ring(((struct mpi *)self)->wakeups.own);
}

/* ---- up and down ------------------------------------------------------------------------------------------------- */

bool skep_transport_mpi_create(struct skep_transport *ret, struct skep_rejects *rejects)
{
	struct mpi *mpi = calloc(1, sizeof *mpi);
	int rank = 0, ranks = 0, found = 0, *limit = NULL;
	if (mpi == NULL)
		return false;
	*mpi = (struct mpi){.nap_ns = NAP_FIRST_NS, .rejects = rejects};
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &limit, &found);
	mpi->tag_limit = found ? *limit : 32767; /* the least that the standard allows */
	mpi->ranks = (uint32_t)ranks;
	mpi->survives = skep_ulfm_active();
	mpi->gone = calloc((size_t)ranks, 2 * sizeof *mpi->gone);
	mpi->told = mpi->gone + ranks;
	if (mpi->gone == NULL || (mpi->survives && !skep_pids_create(&mpi->pids, rank, ranks)) ||
		!skep_wakeups_create(&mpi->wakeups, mpi->survives)) {
		skep_pids_destroy(&mpi->pids);
		free(mpi->gone);
		free(mpi);
		return false;
	}
	*ret = (struct skep_transport){.self = mpi,
		.rank = (uint32_t)rank,
		.ranks = (uint32_t)ranks,
		.survives = mpi->survives,
		.bury = mpi_bury,
		.send = mpi_send,
		.poll = mpi_poll,
		.pending = mpi_pending,
		.wait = mpi_wait,
		.wake = mpi_wake};
	return true;
}

bool skep_transport_mpi_connect(struct skep_transport *transport, uint64_t run)
{
	struct mpi *mpi = transport->self;
	mpi->run = run;
	skep_wakeups_connect(&mpi->wakeups, run ^ 1);
	if (MPI_Comm_dup(MPI_COMM_WORLD, &mpi->frames) || MPI_Comm_dup(MPI_COMM_WORLD, &mpi->bodies))
		return false;
	if (mpi->survives && mpi->wakeups.alone)
		skep_pids_connect(&mpi->pids, MPI_COMM_WORLD);
	MPI_Comm_set_errhandler(mpi->frames, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(mpi->bodies, MPI_ERRORS_RETURN);
	return true;
}

void skep_transport_mpi_destroy(struct skep_transport *transport, bool clean)
{
	struct mpi *mpi = transport->self;
	if (!clean || !skep_mpi_meet(mpi->frames, 10))
		return; /* requests may still write into what would be freed, or others ring its bells */
	assert(mpi->sends == 0 && mpi->intakes == 0);
	skep_wakeups_destroy(&mpi->wakeups);
	skep_pids_destroy(&mpi->pids);
	MPI_Comm_free(&mpi->frames);
	MPI_Comm_free(&mpi->bodies);
	free(mpi->gone);
	while (mpi->spare != NULL) {
		struct parcel *parcel = mpi->spare;
		mpi->spare = parcel->next;
		free(parcel);
	}
	free(mpi->send);
	free(mpi->parcel);
	free(mpi->receive);
	free(mpi->intake);
	free(mpi);
}
