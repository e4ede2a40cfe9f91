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
#include "exec/mpi/transport_mpi_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "exec/mpi/mpi_bytes.h"

#define NAP_PENDING_NS 50000u /* a transfer in several steps waits for both sides */
#define NAP_FIRST_NS 20000u   /* no bell: about twice the cost of waking up ... */
#define NAP_LAST_NS 300000u   /* ... growing to what a message may wait for an idle process */

bool skep_mpi_is_death(struct mpi *mpi, int rc)
{
	if (!mpi->survives || !skep_ulfm_is_death(rc))
		return false;
	skep_ulfm_failed(mpi->frames, mpi->gone);
	mpi->news = mpi->sweep = true;
	return true;
}

void skep_mpi_keep_fault(struct mpi *mpi, int rc)
{
	if (rc != MPI_SUCCESS && skep_mpi_is_death(mpi, rc))
		return;
	if (mpi->fault == MPI_SUCCESS)
		mpi->fault = rc;
}

bool skep_mpi_break(struct mpi *mpi, int rc, struct skep_transport_event *ret)
{
	int length;
	assert(rc != MPI_SUCCESS);
	skep_mpi_keep_fault(mpi, rc);
	if (MPI_Error_string(mpi->fault, mpi->reason, &length) != MPI_SUCCESS)
		strcpy(mpi->reason, "unknown MPI error");
	*ret = (struct skep_transport_event){.kind = SKEP_TRANSPORT_BROKEN, .reason = mpi->reason};
	return true;
}

int skep_mpi_look(struct mpi *mpi, MPI_Request *request, int *ret_done)
{
	assert(mpi->survives && *request != MPI_REQUEST_NULL);
	int ended = 0, rc = MPI_Request_get_status(*request, &ended, MPI_STATUS_IGNORE);
	*ret_done = 0;
	if (rc == MPI_SUCCESS && ended)
		rc = MPI_Test(request, ret_done, MPI_STATUS_IGNORE);
	if (rc == MPI_SUCCESS || !skep_mpi_is_death(mpi, rc))
		return rc;
	*ret_done = 0;
	*request = MPI_REQUEST_NULL;
	return MPI_SUCCESS;
}

int skep_mpi_test(struct mpi *mpi, MPI_Request *request)
{
	int done;
	if (*request == MPI_REQUEST_NULL)
		return MPI_SUCCESS;
	return mpi->survives ? skep_mpi_look(mpi, request, &done) : MPI_Test(request, &done, MPI_STATUS_IGNORE);
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
		return skep_mpi_break(mpi, mpi->fault, ret);
	mpi->heard = skep_wakeup_count(mpi->wakeups.own);
	if (skep_pids_look(&mpi->pids, mpi->gone))
		mpi->news = mpi->sweep = true;
	if (mpi->news && tell_death(mpi, ret))
		return true;
	while (found) {
		if (skep_mpi_poll_frame(mpi, landing, ret, &found)) {
			mpi->nap_ns = NAP_FIRST_NS;
			return true;
		}
	}
	return skep_mpi_poll_bodies(mpi, ret) || skep_mpi_poll_sends(mpi, ret);
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
		.send = skep_mpi_give,
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
