/* SPDX-License-Identifier: Apache-2.0
 *
 * stop.c - see stop.h. A handler, and not the descriptor of base/process/signals.h: a simulation never waits, so
 * it would have to ask the
 * kernel time and again, and a second signal has to end it in the middle of an operation of minutes.
 */
#include "base/process/stop.h"

#include <stddef.h>

#include "base/clock.h"

static const int STOPS[] = {SIGINT, SIGTERM, SIGHUP};
#define COUNT (sizeof STOPS / sizeof STOPS[0])

#define AGAIN_MS 100 /* what comes sooner is the same word twice: timeout(1) tells the process, and then its group */

/* The only variables of the program with static storage that change: a signal handler is given no context of its
 * own. */
static volatile sig_atomic_t asked, asked_ms;

void skep_stop_deafen(void)
{
	for (size_t i = 0; i < COUNT; i++) {
		struct sigaction now;
		sigaction(STOPS[i], NULL, &now);
		if (now.sa_handler != SIG_IGN)
			signal(STOPS[i], SIG_DFL);
	}
}

void skep_stop_die(int number)
{
	sigset_t only;
	sigemptyset(&only);
	sigaddset(&only, number);
	signal(number, SIG_DFL);
	pthread_sigmask(SIG_UNBLOCK, &only, NULL);
	raise(number);
}

static void hear(int number)
{
	int now_ms = (int)(skep_monotonic_ns() / 1000000 % 1000000000);
	if (asked == 0) {
		asked_ms = now_ms;
		asked = number;
	} else if (now_ms - asked_ms > AGAIN_MS || now_ms < asked_ms) {
		skep_stop_die(number);
	}
}

const volatile sig_atomic_t *skep_stop_listen(void)
{
	struct sigaction action = {.sa_handler = hear, .sa_flags = SA_RESTART}, before;
	for (size_t i = 0; i < COUNT; i++)
		sigaddset(&action.sa_mask, STOPS[i]);
	for (size_t i = 0; i < COUNT; i++) {
		sigaction(STOPS[i], NULL, &before);
		if (before.sa_handler != SIG_IGN)
			sigaction(STOPS[i], &action, NULL);
	}
	return &asked;
}

int skep_stop_asked(void)
{
	return asked;
}
