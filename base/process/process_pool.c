/* SPDX-License-Identifier: Apache-2.0
 *
 * process_pool.c - see process_pool.h.
 *
 * Processes and not threads: a crash, or the kernel's want of memory, takes one job with it. They live from job to job, since
 * some jobs are shorter than a fork. Keeps true: a worker ends with its parent, however that ends (the kernel signals it, and
 * its pipe ends); an answer is whole or it is a death; no worker holds an end of another one's pipe.
 */
#include "base/process/process_pool.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process/signals.h"

struct worker {
	pid_t pid; /* 0: none */
	int fd;    /* its socket */
	bool busy;
	struct skep_process_pool_job job;
	uint64_t want, got; /* of the answer: its length, which comes first, and what has come of both */
	char *bytes;
};

struct skep_process_pool {
	skep_process_pool_work *work;
	void *context;
	struct skep_quit_before before;
	int signals; /* a descriptor */
	uint32_t workers;
	struct worker worker[];
};

/* ---- in a worker ------------------------------------------------------------------------------------------------- */

static bool read_all(int fd, void *ret, size_t count)
{
	for (size_t got = 0; got < count;) {
		ssize_t n = read(fd, (char *)ret + got, count - got);
		if (n <= 0 && !(n < 0 && errno == EINTR))
			return false;
		got += n > 0 ? (size_t)n : 0;
	}
	return true;
}

static bool write_all(int fd, const void *bytes, size_t count)
{
	for (size_t put = 0; put < count;) {
		ssize_t n = send(fd, (const char *)bytes + put, count - put, MSG_NOSIGNAL);
		if (n < 0 && errno != EINTR)
			return false;
		put += n > 0 ? (size_t)n : 0;
	}
	return true;
}

/* When memory is short a worker shall go, and not its parent. */
static void offer_to_the_killer(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (write(fd, "500", 3) < 0)
		errno = 0; /* as it was, then */
	close(fd);
}

static _Noreturn void live(struct skep_process_pool *pool, int fd, pid_t parent)
{
	struct skep_process_pool_job job;
	void *answer;
	uint64_t count;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGINT, SIG_IGN); /* a terminal sends these two to all; the parent says what becomes of it */
	signal(SIGHUP, SIG_IGN);
	signal(SIGTERM, SIG_DFL);
	sigprocmask(SIG_SETMASK, &pool->before.mask, NULL);
	for (uint32_t i = 0; i < pool->workers; i++)
		if (pool->worker[i].pid != 0)
			close(pool->worker[i].fd);
	close(pool->signals);
	offer_to_the_killer();
	while (getppid() == parent && read_all(fd, &job, sizeof job)) {
		if (!pool->work(pool->context, &job, &answer, &count))
			_exit(1);
		if (!write_all(fd, &count, sizeof count) || !write_all(fd, answer, count))
			break;
		free(answer);
	}
	_exit(0);
}

/* ---- the parent -------------------------------------------------------------------------------------------------- */

static bool start(struct skep_process_pool *pool, struct worker *worker)
{
	int ends[2];
	pid_t parent = getpid();
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
		return false;
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		close(ends[0]);
		live(pool, ends[1], parent);
	}
	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		return false;
	}
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	*worker = (struct worker){.pid = pid, .fd = ends[0]};
	return true;
}

struct skep_process_pool *skep_process_pool_create(
	uint32_t workers, skep_process_pool_work *work, void *context, struct skep_diag *reterr)
{
	struct skep_process_pool *pool = calloc(1, sizeof *pool + workers * sizeof pool->worker[0]);
	if (pool == NULL) {
		skep_fail(reterr, "no memory for %u processes", workers);
		return NULL;
	}
	pool->work = work;
	pool->context = context;
	pool->workers = workers;
	skep_quit_block(&pool->before);
	signal(SIGCHLD, SIG_DFL);
	pool->signals = skep_quit_open();
	bool started = pool->signals >= 0;
	for (uint32_t i = 0; started && i < workers; i++)
		started = start(pool, &pool->worker[i]);
	if (started)
		return pool;
	skep_fail(reterr, "cannot start %u processes: %s; take fewer with --jobs", workers, strerror(errno));
	skep_process_pool_destroy(pool);
	return NULL;
}

/* The state that waitpid() gives. */
static int bury(struct worker *worker)
{
	int state = 0;
	while (waitpid(worker->pid, &state, 0) < 0 && errno == EINTR)
		;
	close(worker->fd);
	free(worker->bytes);
	*worker = (struct worker){0};
	return state;
}

void skep_process_pool_destroy(struct skep_process_pool *pool)
{
	if (pool == NULL)
		return;
	for (uint32_t i = 0; i < pool->workers; i++)
		if (pool->worker[i].pid != 0)
			kill(pool->worker[i].pid, SIGKILL);
	for (uint32_t i = 0; i < pool->workers; i++)
		if (pool->worker[i].pid != 0)
			bury(&pool->worker[i]);
	if (pool->signals >= 0)
		close(pool->signals);
	free(pool);
}

uint32_t skep_process_pool_busy(const struct skep_process_pool *pool)
{
	uint32_t busy = 0;
	for (uint32_t i = 0; i < pool->workers; i++)
		busy += pool->worker[i].busy;
	return busy;
}

/* False: it is not there any more. */
static bool tell(struct worker *worker, const struct skep_process_pool_job *job)
{
	if (!write_all(worker->fd, job, sizeof *job))
		return false;
	worker->busy = true;
	worker->job = *job;
	return true;
}

bool skep_process_pool_give(struct skep_process_pool *pool, const struct skep_process_pool_job *job)
{
	struct worker *worker = pool->worker;
	assert(skep_process_pool_busy(pool) < pool->workers);
	while (worker->busy)
		worker++;
	if (worker->pid != 0 && tell(worker, job))
		return true;
	if (worker->pid != 0)
		bury(worker); /* it was killed while it had nothing to do */
	return start(pool, worker) && tell(worker, job);
}

/* Takes what has come. 1: the answer is whole; 0: it is not yet; -1: none will come. */
static int hear(struct worker *worker)
{
	for (;;) {
		bool head = worker->got < sizeof worker->want;
		uint64_t done = head ? worker->got : worker->got - sizeof worker->want;
		uint64_t all = head ? sizeof worker->want : worker->want;
		char *to = head ? (char *)&worker->want : worker->bytes;
		ssize_t n = all > done ? read(worker->fd, to + done, all - done) : 0;
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return 0;
		if (n < 0 || (n == 0 && all > done))
			return -1;
		worker->got += (uint64_t)n;
		if (head && worker->got == sizeof worker->want) {
			worker->bytes = malloc(worker->want + 1);
			if (worker->bytes == NULL)
				return -1;
		}
		if (worker->got >= sizeof worker->want && worker->got == sizeof worker->want + worker->want)
			return 1;
	}
}

static enum skep_process_pool_event take(struct worker *worker, struct skep_process_pool_answer *ret)
{
	int heard = hear(worker);
	if (heard == 0)
		return SKEP_PROCESS_POOL_NOTHING;
	*ret = (struct skep_process_pool_answer){.job = worker->job, .pid = (uint32_t)worker->pid};
	if (heard < 0) {
		bool busy = worker->busy;
		kill(worker->pid, SIGKILL); /* if it was this process that had no memory */
		ret->number = bury(worker);
		return busy ? SKEP_PROCESS_POOL_DEATH : SKEP_PROCESS_POOL_NOTHING;
	}
	ret->bytes = worker->bytes;
	ret->count = worker->want;
	worker->bytes = NULL;
	worker->want = worker->got = 0;
	worker->busy = false;
	return SKEP_PROCESS_POOL_ANSWER;
}

int skep_process_pool_signal(struct skep_process_pool *pool)
{
	struct signalfd_siginfo info;
	return read(pool->signals, &info, sizeof info) == (ssize_t)sizeof info ? (int)info.ssi_signo : 0;
}

enum skep_process_pool_event skep_process_pool_wait(
	struct skep_process_pool *pool, int timeout_ms, struct skep_process_pool_answer *ret)
{
	struct pollfd *fd = calloc(pool->workers + 1, sizeof *fd);
	enum skep_process_pool_event event = SKEP_PROCESS_POOL_NOTHING;
	*ret = (struct skep_process_pool_answer){0};
	if (fd == NULL)
		return event;
	for (uint32_t i = 0; i < pool->workers; i++)
		fd[i] = (struct pollfd){.fd = pool->worker[i].pid != 0 ? pool->worker[i].fd : -1, .events = POLLIN};
	fd[pool->workers] = (struct pollfd){.fd = pool->signals, .events = POLLIN};
	if (poll(fd, pool->workers + 1, timeout_ms) > 0) {
		if (fd[pool->workers].revents != 0 && (ret->number = skep_process_pool_signal(pool)) != 0)
			event = SKEP_PROCESS_POOL_SIGNAL;
		for (uint32_t i = 0; event == SKEP_PROCESS_POOL_NOTHING && i < pool->workers; i++)
			if (fd[i].revents != 0)
				event = take(&pool->worker[i], ret);
	}
	free(fd);
	return event;
}
