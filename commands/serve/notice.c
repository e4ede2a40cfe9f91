/* SPDX-License-Identifier: Apache-2.0
 *
 * notice.c - see notice.h.
 */
#include "commands/serve/notice.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define EVERY_S 2

/* In a child of its own, so that it hangs and dies alone. */
static bool succeeds(const char *command)
{
	int status = -1;
	pid_t child = fork();
	if (child == 0) {
		int null = open("/dev/null", O_RDWR);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (int fd = 0; null >= 0 && fd < 3; fd++)
			dup2(null, fd);
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static _Noreturn void watch(const char *command, pid_t parent)
{
	const struct timespec pause = {.tv_sec = EVERY_S};
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (getppid() == parent && !succeeds(command))
		nanosleep(&pause, NULL);
	if (getppid() == parent)
		kill(parent, SIGTERM);
	_exit(0);
}

pid_t skep_notice_begin(const char *command, struct skep_diag *reterr)
{
	pid_t parent = getpid(), child = fork();
	if (child == 0)
		watch(command, parent);
	if (child < 0)
		skep_fail(reterr, "no process to look for the notice of a leave");
	return child;
}

void skep_notice_end(pid_t child)
{
	if (child <= 0)
		return;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}
