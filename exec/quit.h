/* SPDX-License-Identifier: Apache-2.0
 *
 * quit.h - SIGINT and SIGTERM as something that a loop reads when it wants to, in place of something that interrupts it.
 *
 * They have to be blocked in every thread of the process. Some are there before anybody can block anything, for libraries start
 * threads when they are loaded (OpenBLAS, MPI): a handler that runs on one of these blocks the signal there as well and sends it
 * again, until it has found no thread that takes it, and waits for the descriptor.
 */
#ifndef SKEP_EXEC_QUIT_H
#define SKEP_EXEC_QUIT_H

#include <signal.h>
#include <stddef.h>
#include <sys/signalfd.h>
#include <ucontext.h>
#include <unistd.h>

static inline sigset_t skep_quit_signals(void)
{
	sigset_t quit;
	sigemptyset(&quit);
	sigaddset(&quit, SIGINT);
	sigaddset(&quit, SIGTERM);
	return quit;
}

static inline void skep_quit_pass_on(int number, siginfo_t *info, void *context)
{
	ucontext_t *interrupted = context;
	(void)info;
	sigaddset(&interrupted->uc_sigmask, number);
	kill(getpid(), number);
}

/* Before this thread starts others. ret_before: what was blocked; NULL: nobody will want it back. */
static inline void skep_quit_block(sigset_t *ret_before)
{
	const struct sigaction action = {.sa_sigaction = skep_quit_pass_on, .sa_flags = SA_SIGINFO | SA_RESTART};
	const sigset_t quit = skep_quit_signals();
	pthread_sigmask(SIG_BLOCK, &quit, ret_before);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

/* A descriptor that has them, to be closed; -1: there is none to be had. */
static inline int skep_quit_open(void)
{
	const sigset_t quit = skep_quit_signals();
	return signalfd(-1, &quit, SFD_NONBLOCK | SFD_CLOEXEC);
}

#endif
