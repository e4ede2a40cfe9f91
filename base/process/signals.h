/* SPDX-License-Identifier: Apache-2.0
 *
 * signals.h - SIGINT, SIGTERM and SIGHUP as something that a loop reads when it wants to, in place of something that
 * interrupts it. A SIGHUP that is ignored (nohup) stays so.
 *
 * They have to be blocked in every thread of the process. Some threads exist before main() runs, for libraries start
 * threads when they are loaded (OpenBLAS, MPI): a handler that runs on one of these blocks the signal there as well and
 * sends it again, until it has found no thread that takes it, and waits for the descriptor.
 */
#pragma once

#include <signal.h>
#include <stddef.h>
#include <sys/signalfd.h>
#include <ucontext.h>
#include <unistd.h>

static inline sigset_t skep_quit_signals(void)
{
	sigset_t quit;
	struct sigaction hangup;
	sigemptyset(&quit);
	sigaddset(&quit, SIGINT);
	sigaddset(&quit, SIGTERM);
	sigaction(SIGHUP, NULL, &hangup);
	if (hangup.sa_handler != SIG_IGN)
		sigaddset(&quit, SIGHUP);
	return quit;
}

static inline void skep_quit_pass_on(int number, siginfo_t *info, void *context)
{
	ucontext_t *interrupted = context;
	(void)info;
	sigaddset(&interrupted->uc_sigmask, number);
	kill(getpid(), number);
}

struct skep_quit_before { /* what signals did */
	sigset_t mask;
	struct sigaction interrupt, terminate, hangup;
};

/* Before this thread starts others. ret_before: to be given back; NULL: it is not wanted. */
static inline void skep_quit_block(struct skep_quit_before *ret_before)
{
	struct skep_quit_before before;
	const struct sigaction action = {.sa_sigaction = skep_quit_pass_on, .sa_flags = SA_SIGINFO | SA_RESTART};
	const sigset_t quit = skep_quit_signals();
	pthread_sigmask(SIG_BLOCK, &quit, &before.mask);
	sigaction(SIGINT, &action, &before.interrupt);
	sigaction(SIGTERM, &action, &before.terminate);
	sigaction(SIGHUP, sigismember(&quit, SIGHUP) ? &action : NULL, &before.hangup);
	if (ret_before != NULL)
		*ret_before = before;
}

static inline void skep_quit_restore(const struct skep_quit_before *before)
{
	sigaction(SIGINT, &before->interrupt, NULL);
	sigaction(SIGTERM, &before->terminate, NULL);
	sigaction(SIGHUP, &before->hangup, NULL);
	pthread_sigmask(SIG_SETMASK, &before->mask, NULL);
}

/* A descriptor that has them, to be closed; -1: there is none to be had. */
static inline int skep_quit_open(void)
{
	const sigset_t quit = skep_quit_signals();
	return signalfd(-1, &quit, SFD_NONBLOCK | SFD_CLOEXEC);
}
