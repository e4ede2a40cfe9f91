/* SPDX-License-Identifier: Apache-2.0
 *
 * startup.c - see startup.h.
 *
 * A collective of MPI waits for ever for a rank that is gone, and does not say for which. So each rank sends rank 0 a word, and
 * rank 0 answers when it has all of them. Where MPI survives deaths (mpi_bytes.h) a request fails as soon as its peer is known to
 * be dead. Requests to those who do not answer are left to the end of the process, and so is the memory that they may touch. All
 * memory is there before the first word, for a rank that fails between two words fails alone.
 */
#include "exec/mpi/startup.h"

#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "exec/mpi/mpi_bytes.h"

#define WORD_TAG 11
#define ANSWER_TAG 12
#define NAP_NS 200000
#define FAREWELL_NS UINT64_C(1000000000) /* for the last answer of a start that has failed */

struct word { /* of a rank to rank 0, and the answer */
	struct skep_diag diag;
	uint64_t number;
	char host[64];
	bool lost;
};

struct wait {
	const char *what;
	uint64_t began_ns, limit_ns;
	bool said;
};

struct skep_start_memory {
	struct word
		*word; /* rank 0: [ranks], and one for the last answer; other ranks: what it says and what it hears */
	MPI_Request *request; /* rank 0: [ranks] */
};

struct gathering { /* on rank 0 */
	int ranks;
	struct word *word;
	MPI_Request *request;
};

static struct wait begin(const struct skep_start *start, const char *what, uint32_t times)
{
	const uint64_t second_ns = UINT64_C(1000000000);
	return (struct wait){what, skep_monotonic_ns(), start->limit_s * second_ns * times, false};
}

static void nap(void)
{
	const struct timespec time = {.tv_nsec = NAP_NS};
	nanosleep(&time, NULL);
}

static void lose(struct skep_start *start, const char *who, const char *how, const char *what, struct skep_diag *reterr)
{
	start->lost = true;
	skep_fail(reterr, "%s %s during the start (%s): see whether its host lives and reaches the others%s", who, how,
		what, strcmp(how, "died") == 0 ? "" : ", or take a longer --start-limit");
}

static void who_is(const struct skep_start *start, int rank, char *ret, size_t room)
{
	assert(rank >= 0);
	const char *host = start->host[rank][0] != '\0' ? start->host[rank] : NULL;
	snprintf(ret, room, "rank %d%s%.64s", rank, host != NULL ? " on " : " (whose host is not known yet)",
		host != NULL ? host : "");
}

/* ---- by rank 0 --------------------------------------------------------------------------------------------------- */

static void say_missing(const struct skep_start *start, const struct gathering *g, struct wait *wait)
{
	char who[128];
	int first = 0, more = -1;
	for (int i = g->ranks - 1; i > 0; i--) {
		if (g->request[i] == MPI_REQUEST_NULL)
			continue;
		first = i;
		more++;
	}
	who_is(start, first, who, sizeof who);
	wait->said = true;
	if (more > 0)
		fprintf(stderr, "skep: waits for %s and %d more: %s\n", who, more, wait->what);
	else
		fprintf(stderr, "skep: waits for %s: %s\n", who, wait->what);
}

/* One look at all; the number of those who are awaited, or -1: one is dead or has had its time. */
static int look(struct skep_start *start, struct gathering *g, struct wait *wait, struct skep_diag *reterr)
{
	assert(g->ranks > 0 && wait->limit_ns > 0);
	char who[128], how[48];
	uint64_t waited_ns = skep_monotonic_ns() - wait->began_ns;
	int awaited = 0;
	for (int i = 1; i < g->ranks; i++) {
		int done = 0;
		int rc = g->request[i] == MPI_REQUEST_NULL ? MPI_SUCCESS
		                                           : MPI_Test(&g->request[i], &done, MPI_STATUS_IGNORE);
		awaited += g->request[i] != MPI_REQUEST_NULL;
		bool late = g->request[i] != MPI_REQUEST_NULL && waited_ns > wait->limit_ns;
		if (rc == MPI_SUCCESS && !late)
			continue;
		snprintf(how, sizeof how, rc != MPI_SUCCESS ? "died" : "has not answered for %" PRIu64 " s",
			waited_ns / 1000000000u);
		who_is(start, i, who, sizeof who);
		lose(start, who, how, wait->what, reterr);
		return -1;
	}
	if (awaited > 0 && !wait->said && waited_ns > SKEP_START_SAYS_S * UINT64_C(1000000000))
		say_missing(start, g, wait);
	return awaited;
}

static bool all_done(struct skep_start *start, struct gathering *g, struct wait *wait, struct skep_diag *reterr)
{
	int awaited;
	while ((awaited = look(start, g, wait, reterr)) > 0)
		nap();
	return awaited == 0;
}

static struct gathering gather(const struct skep_start *start)
{
	struct gathering g = {.word = start->memory->word, .request = start->memory->request};
	MPI_Comm_size(MPI_COMM_WORLD, &g.ranks);
	memset(g.word, 0, ((size_t)g.ranks + 1) * sizeof *g.word);
	for (int i = 0; i < g.ranks; i++)
		g.request[i] = MPI_REQUEST_NULL;
	return g;
}

/* To each rank, those who have failed among them: they may be there to hear of it. */
static bool answer(struct skep_start *start, struct gathering *g, struct wait *wait, const void *bytes, uint64_t count,
	struct skep_diag *reterr)
{
	assert(count <= INT_MAX);
	for (int i = 1; i < g->ranks; i++) {
		g->request[i] = MPI_REQUEST_NULL;
		if (MPI_Isend(bytes, (int)count, MPI_BYTE, i, ANSWER_TAG, MPI_COMM_WORLD, &g->request[i]) !=
			MPI_SUCCESS)
			g->request[i] = MPI_REQUEST_NULL; /* the next word that is missed says that it is dead */
	}
	return all_done(start, g, wait, reterr);
}

/* Tells who still hears that the start has failed. */
static void say_lost(struct skep_start *start, struct gathering *g, const struct skep_diag *why)
{
	struct word *last = &g->word[g->ranks];
	struct skep_diag ignored = {0};
	struct wait wait = {"the end", skep_monotonic_ns(), FAREWELL_NS, true};
	*last = (struct word){.diag = *why, .lost = true};
	answer(start, g, &wait, last, sizeof *last, &ignored);
}

static bool agree_root(
	struct skep_start *start, struct wait *wait, struct word *mine, uint64_t *ret, struct skep_diag *reterr)
{
	struct gathering g = gather(start);
	g.word[0] = *mine;
	for (int i = 1; i < g.ranks; i++) {
		if (MPI_Irecv(&g.word[i], sizeof *g.word, MPI_BYTE, i, WORD_TAG, MPI_COMM_WORLD, &g.request[i]) !=
			MPI_SUCCESS) {
			char who[128];
			who_is(start, i, who, sizeof who);
			lose(start, who, "died", wait->what, reterr);
		}
	}
	if (start->lost || !all_done(start, &g, wait, reterr)) {
		say_lost(start, &g, reterr);
		return false;
	}
	struct word *first = &g.word[0];
	*ret = 0;
	for (int i = g.ranks - 1; i >= 0; i--) {
		memcpy(start->host[i], g.word[i].host, sizeof *start->host);
		first = g.word[i].diag.set ? &g.word[i] : first;
		*ret += g.word[i].number;
	}
	*wait = begin(start, wait->what, 1);
	bool told = answer(start, &g, wait, first, sizeof *first, reterr);
	if (told)
		mine->diag = first->diag;
	return told;
}

/* ---- by the others ----------------------------------------------------------------------------------------------- */

/* Its answer, which comes later than rank 0 gives up if another rank is the missing one. False: rank 0 is dead or silent. */
static bool hear(struct skep_start *start, struct wait *wait, MPI_Request *request, struct skep_diag *reterr)
{
	char how[48];
	int done = 0, rc;
	uint64_t waited_ns = 0, limit_ns = wait->limit_ns + wait->limit_ns / 4 + 2 * FAREWELL_NS;
	while ((rc = MPI_Test(request, &done, MPI_STATUS_IGNORE)) == MPI_SUCCESS && !done && waited_ns < limit_ns) {
		nap();
		waited_ns = skep_monotonic_ns() - wait->began_ns;
	}
	if (rc == MPI_SUCCESS && done)
		return true;
	snprintf(how, sizeof how, rc != MPI_SUCCESS ? "died" : "has not answered for %" PRIu64 " s",
		waited_ns / 1000000000u);
	start->orphaned = rc != MPI_SUCCESS && skep_ulfm_is_death(rc);
	lose(start, "rank 0, the directory,", how, wait->what, reterr);
	if (!start->orphaned) { /* one that is dead says nothing, and so all would; a silent one has others to say it */
		char host[64] = "";
		int rank;
		MPI_Comm_rank(MPI_COMM_WORLD, &rank);
		gethostname(host, sizeof host - 1);
		fprintf(stderr, "skep: rank %d on %s: %s\n", rank, host, reterr->message);
	}
	return false;
}

static bool agree_other(struct skep_start *start, struct wait *wait, struct word *mine, struct skep_diag *reterr)
{
	MPI_Request request[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
	struct word *said = &start->memory->word[0], *heard = &start->memory->word[1];
	*said = *mine;
	int rc = MPI_Isend(said, sizeof *said, MPI_BYTE, 0, WORD_TAG, MPI_COMM_WORLD, &request[0]);
	if (rc == MPI_SUCCESS)
		rc = MPI_Irecv(heard, sizeof *heard, MPI_BYTE, 0, ANSWER_TAG, MPI_COMM_WORLD, &request[1]);
	if (rc != MPI_SUCCESS) {
		start->orphaned = true;
		lose(start, "rank 0, the directory,", "died", wait->what, reterr);
		return false;
	}
	if (!hear(start, wait, &request[1], reterr) || !hear(start, wait, &request[0], reterr))
		return false;
	mine->diag = heard->diag;
	start->lost = heard->lost;
	return true;
}

/* ---- together ---------------------------------------------------------------------------------------------------- */

bool skep_together_sum(struct skep_start *start, const char *what, uint32_t times, uint64_t mine, uint64_t *ret,
	struct skep_diag *reterr)
{
	int rank;
	struct wait wait = begin(start, what, times);
	struct skep_files *files = reterr->files;
	struct word word = {.diag = *reterr, .number = mine};
	*ret = 0;
	if (start->lost)
		return skep_fail(reterr, "the start has failed");
	word.diag.files = NULL;
	gethostname(word.host, sizeof word.host - 1);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	bool heard =
		rank == 0 ? agree_root(start, &wait, &word, ret, reterr) : agree_other(start, &wait, &word, reterr);
	if (!heard)
		return false;
	*reterr = word.diag;
	reterr->files = files;
	return !reterr->set;
}

bool skep_together_agree(struct skep_start *start, const char *what, uint32_t times, struct skep_diag *reterr)
{
	uint64_t ignored;
	return skep_together_sum(start, what, times, 0, &ignored, reterr);
}

static bool tell_root(
	struct skep_start *start, struct wait *wait, void *bytes, uint64_t count, struct skep_diag *reterr)
{
	struct gathering g = gather(start);
	return answer(start, &g, wait, bytes, count, reterr);
}

bool skep_together_tell(struct skep_start *start, const char *what, uint32_t times, void *bytes, uint64_t count,
	struct skep_diag *reterr)
{
	int rank;
	MPI_Request request = MPI_REQUEST_NULL;
	struct skep_diag agreed = {0};
	if (!skep_together_agree(start, what, times, &agreed)) /* who is missing becomes known first */
		return skep_fail(reterr, "%s", agreed.message);
	struct wait wait = begin(start, what, 1);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (rank == 0)
		return tell_root(start, &wait, bytes, count, reterr);
	int rc = MPI_Irecv(bytes, (int)count, MPI_BYTE, 0, ANSWER_TAG, MPI_COMM_WORLD, &request);
	return (rc == MPI_SUCCESS || request != MPI_REQUEST_NULL) && hear(start, &wait, &request, reterr);
}

/* ---- begin and end ------------------------------------------------------------------------------------------------ */

static void free_memory(struct skep_start *start)
{
	if (start->memory != NULL) {
		free(start->memory->word);
		free(start->memory->request);
	}
	free(start->memory);
	free(start->host);
}

bool skep_start_begin(struct skep_start *ret, uint32_t limit_s, struct skep_diag *reterr)
{
	int rank, ranks;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	const size_t all = rank == 0 ? (size_t)ranks : 1;
	*ret = (struct skep_start){.limit_s = limit_s, .memory = calloc(1, sizeof *ret->memory)};
	ret->host = calloc(all, sizeof *ret->host);
	if (ret->memory != NULL) {
		ret->memory->word = calloc(all + 1, sizeof(struct word));
		ret->memory->request = calloc(all, sizeof(MPI_Request));
	}
	if (ret->host != NULL && ret->memory != NULL && ret->memory->word != NULL && ret->memory->request != NULL)
		return true;
	free_memory(ret);
	*ret = (struct skep_start){.limit_s = limit_s};
	return skep_fail(reterr, "rank %d has no memory to agree with the others", rank);
}

/* What is sent or heard lies in this memory until MPI is done with it, which after a loss may be never. */
void skep_start_finish(struct skep_start *start)
{
	if (!start->lost)
		free_memory(start);
	*start = (struct skep_start){.limit_s = start->limit_s};
}

/* MPI_COMM_NULL: a process died meanwhile. */
static MPI_Comm of_host(const struct skep_start *start)
{
	struct skep_watchdog watchdog;
	MPI_Comm host = MPI_COMM_NULL;
	skep_watchdog_begin(&watchdog, start->limit_s, "all processes, to find those of each host");
	if (MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host) != MPI_SUCCESS)
		host = MPI_COMM_NULL;
	skep_watchdog_end(&watchdog);
	return host;
}

bool skep_together_one_host(const struct skep_start *start)
{
	int here = 0, all = 0;
	MPI_Comm host = of_host(start);
	if (host == MPI_COMM_NULL)
		return false;
	MPI_Comm_size(host, &here);
	MPI_Comm_size(MPI_COMM_WORLD, &all);
	MPI_Comm_free(&host);
	return here == all;
}

uint32_t skep_together_host(const struct skep_start *start)
{
	int rank, lowest;
	MPI_Comm host = of_host(start);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	lowest = rank;
	if (host == MPI_COMM_NULL)
		return (uint32_t)rank;
	MPI_Allreduce(&rank, &lowest, 1, MPI_INT, MPI_MIN, host);
	MPI_Comm_free(&host);
	return (uint32_t)lowest;
}

bool skep_together_clock(struct skep_start *start, bool one_host, struct skep_clock *ret, struct skep_diag *reterr)
{
	if (!skep_together_agree(start, "to begin", 1, reterr))
		return false;
	ret->start_ns = skep_monotonic_ns();
	return !one_host || skep_together_tell(start, "to begin", 1, &ret->start_ns, sizeof ret->start_ns, reterr);
}

bool skep_together_name(struct skep_start *start, uint64_t *ret, struct skep_diag *reterr)
{
	*ret = skep_monotonic_ns() ^ (uint64_t)getpid() << 40;
	return skep_together_tell(start, "the run's name", 1, ret, sizeof *ret, reterr);
}
