/* SPDX-License-Identifier: Apache-2.0
 *
 * join.c - `skep join`: this machine takes part in a run that another one serves (serve.c).
 *
 * With --stay a process watches over the one that takes part, and starts another when it has ended before the run has: killed,
 * evicted, or cut off.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/process/signals.h"
#include "commands/arguments.h"
#include "commands/commands.h"
#include "exec/joining/join.h"
#include "planning/problem/resolve.h"
#include "scenarios/outage/outage.h"
#include "scenarios/resume/resume.h"
#include "version.h"

#define PAUSE_SEVERAL_S 4 /* where one of several servers takes over from another */
#define LONG_ENOUGH_S 30  /* who took part for so long begins with short pauses again */
#define EVERY_S 2

/* ---- a cloud's notice -------------------------------------------------------------------------------------------- */

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

/* A cloud tells by a command that it will take this machine away: clouds differ in addresses, headers and tokens, and their users
 * have curl. From now on a child runs `command` by the shell every 2 s, without its output; when it succeeds this process gets
 * SIGTERM. Returns the child, which ends with this process; -1 and reterr. */
static pid_t notice_begin(const char *command, struct skep_diag *reterr)
{
	pid_t parent = getpid(), child = fork();
	if (child == 0)
		watch(command, parent);
	if (child < 0)
		skep_fail(reterr, "no process to look for the notice of a leave");
	return child;
}

static void notice_end(pid_t child) /* 0: there is none */
{
	if (child <= 0)
		return;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

struct join_arguments {
	struct arguments common;
	struct skep_join_options join;
	const char *notice;
	bool stay;
};

/* A name that no machine of the scenario has fits each place as badly as any other: it may be mistyped. */
static void say_unknown_gpu(const struct join_arguments *a, const struct skep_topology *topology)
{
	bool known = a->join.gpu == NULL || a->join.quiet;
	for (uint32_t i = 0; !known && i < topology->gpus; i++)
		known = strcmp(a->join.gpu, topology->gpu[i].name) == 0;
	if (known)
		return;
	fprintf(stderr, "skep: no machine of the scenario has a GPU `%s`, so any place will do; they have",
		a->join.gpu);
	for (uint32_t i = 0; i < topology->gpus; i++)
		fprintf(stderr, "%s %s", i > 0 ? "," : "", topology->gpu[i].name);
	fputc('\n', stderr);
}

/* ---- one time ------------------------------------------------------------------------------------------------------- */

static bool read_scenario(const struct skep_joined *joined, struct skep_scenario *ret, struct skep_diag *reterr)
{
	const struct skep_manifest *manifest = joined->manifest;
	const struct skep_scenario_options options = {.set = (const char *const *)manifest->override,
		.sets = manifest->overrides,
		.has_seed = joined->offer.seeded,
		.seed = joined->offer.seed,
		.real = true,
		.pace = joined->offer.pace,
		.root = joined->root,
		.folder = manifest->folder};
	if (!skep_scenario_read(joined->scenario, &options, ret, reterr))
		return false;
	ret->kept_as = joined->offer.kept_as;
	bool fine = !ret->unresolved ||
	            (joined->allocation != NULL && skep_resolve_with(ret, &options, joined->allocation, reterr));
	ret->kept_as = joined->offer.kept_as;
	if (fine && joined->offer.first_round >= ret->plan.rounds)
		return skep_fail(reterr, "the run begins behind its last step");
	const struct skep_resume from = {.run = joined->offer.kept_from, .version = joined->offer.first_round};
	skep_resume_from(ret, &from);
	return fine;
}

static enum status take_part(const struct join_arguments *a, bool *ret_for_good)
{
	struct skep_joined joined = {0};
	struct skep_scenario scenario = {0};
	struct skep_exec_result result = {0};
	struct skep_diag error = {0};
	bool fine = false;
	struct skep_joining *joining = skep_joining_begin(&a->join, &joined, ret_for_good, &error);
	if (joining != NULL && !read_scenario(&joined, &scenario, &error)) {
		*ret_for_good = true;
		skep_joining_decline(joining, error.message);
	} else if (joining != NULL) {
		say_unknown_gpu(a, &scenario.topology);
		fine = skep_joining_run(joining, &scenario, &result, ret_for_good, &error);
	}
	skep_joining_finish(joining);
	skep_scenario_finish(&scenario);
	if (joined.over && !a->join.quiet)
		fputs("skep: the run has reached its end: nothing is left to do\n", stderr);
	if (fine || joined.over)
		return STATUS_DONE;
	return skep_report_diag(*ret_for_good ? STATUS_BAD_INPUT : STATUS_FAILED, &error);
}

/* ---- again and again ------------------------------------------------------------------------------------------------- */

/* In a process of its own, which gets the signals that this one gets; *ret_signal: one of them came. */
static int once(const struct join_arguments *a, const struct skep_quit_before *before, int signals, int *ret_signal)
{
	struct signalfd_siginfo info;
	struct timespec nap = {.tv_nsec = 50000000};
	int status = 0;
	pid_t self = getpid(), child = fork();
	if (child == 0) {
		bool for_good;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != self) /* it was killed before that */
			_exit(STATUS_FAILED);
		skep_quit_restore(before); /* until the run begins a signal ends it */
		enum status ended = take_part(a, &for_good);
		fflush(NULL);
		_exit((int)ended);
	}
	while (child > 0 && waitpid(child, &status, WNOHANG) == 0) {
		if (read(signals, &info, sizeof info) == (ssize_t)sizeof info) {
			*ret_signal = (int)info.ssi_signo;
			kill(child, SIGTERM);
		}
		nanosleep(&nap, NULL);
	}
	return child > 0 ? status : -1;
}

/* True: a signal came meanwhile. */
static bool pause_for(uint32_t seconds, int signals, int *ret_signal)
{
	struct signalfd_siginfo info;
	struct timespec nap = {.tv_nsec = 100000000};
	for (uint32_t i = 0; i < 10 * seconds; i++) {
		nanosleep(&nap, NULL);
		if (read(signals, &info, sizeof info) == (ssize_t)sizeof info) {
			*ret_signal = (int)info.ssi_signo;
			return true;
		}
	}
	return false;
}

static enum status stay(struct join_arguments *a)
{
	/* Shared with the child processes: the next one hands over the state that the last one has kept. */
	void *left = mmap(NULL, sizeof *a->join.left, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	a->join.left = left != MAP_FAILED ? left : NULL;
	uint32_t pause_s = SKEP_KNOCK_LEAST_S;
	uint32_t most_s = strchr(a->join.server, ',') != NULL ? PAUSE_SEVERAL_S : SKEP_KNOCK_MOST_S;
	int number = 0;
	struct skep_quit_before before;
	skep_quit_block(&before);
	int signals = skep_quit_open();
	for (;;) {
		time_t begin = time(NULL);
		int status = once(a, &before, signals, &number);
		bool by_itself = status >= 0 && WIFEXITED(status);
		if (number != 0 || (by_itself && WEXITSTATUS(status) != STATUS_FAILED))
			return number != 0 ? STATUS_SIGNAL + (enum status)number : (enum status)WEXITSTATUS(status);
		pause_s = time(NULL) - begin >= LONG_ENOUGH_S ? SKEP_KNOCK_LEAST_S : pause_s;
		if (!a->common.quiet)
			fprintf(stderr, "skep: tries again in %" PRIu32 " s\n", pause_s);
		if (pause_for(pause_s, signals, &number))
			return STATUS_SIGNAL + (enum status)number;
		pause_s = 2 * pause_s < most_s ? 2 * pause_s : most_s;
	}
}

static enum status join(struct skep_command_line *line)
{
	struct join_arguments a = {.join = {.worker = SKEP_NO_INDEX, .version = SKEP_VERSION, .farewell_s = 5}};
	enum status status;
	bool for_good;
	if (!skep_arguments_read(line, &a.common, &status))
		return status;
	a.join.server = a.common.positional[0];
	a.join.quiet = a.common.quiet;
	struct skep_diag error = {0};
	if (!skep_joining_check(a.join.server, a.join.ticket, &error))
		return skep_report_diag(STATUS_BAD_INPUT, &error);
	pid_t watcher = a.notice != NULL ? notice_begin(a.notice, &error) : 0;
	if (watcher < 0)
		return skep_report_diag(STATUS_FAILED, &error);
	status = a.stay ? stay(&a) : take_part(&a, &for_good);
	notice_end(watcher);
	return status;
}

/* ---- options -------------------------------------------------------------------------------------------------------- */

#define AT(member) offsetof(struct join_arguments, join.member)
static const struct skep_option rows[] = {
	{"ticket", 0, SKEP_OPTION_TEXT, AT(ticket), "TICKET", .help = "what `skep serve` has printed",
		.environment = "SKEP_TICKET"},
	{"stay", 0, SKEP_OPTION_FLAG, offsetof(struct join_arguments, stay),
		.help = "join again, after growing pauses, until the run is done"},
	{"listen", 0, SKEP_OPTION_TEXT, AT(listen), "ADDR:PORT", .help = "where other workers find this one",
		.usual = "any free port; who cannot be reached is relayed"},
	{"cache", 0, SKEP_OPTION_PATH, AT(cache), "FOLDER", .help = "where received files are kept",
		.usual = "~/.cache/skep"},
};
static const struct skep_option machine[] = {
	{"gpu", 0, SKEP_OPTION_TEXT, AT(gpu), "NAME", .help = "the GPU profile of this machine, to get a place like it",
		.usual = "any place will do"},
	{"memory", 0, SKEP_OPTION_QUANTITY, AT(memory_bytes), "SIZE", .help = "of the device", .dimension = SKEP_BYTES,
		.low = 1, .high = 0x1p50, .usual = "enough for any stage", .example = "16 GiB",
		.expected = "a size with its unit, such as '16 GiB'"},
	{"worker", 0, SKEP_OPTION_U32, AT(worker), "N", .help = "take the place of this worker and no other",
		.most = (1 << 20), .usual = "the one that fits best"},
	{"notice", 0, SKEP_OPTION_TEXT, offsetof(struct join_arguments, notice), "COMMAND",
		.help = "is run every 2 s; when it succeeds, the machine is about to be taken away: leave as with SIGTERM"},
	{"farewell", 0, SKEP_OPTION_QUANTITY, AT(farewell_s), "TIME",
		.help = "from SIGTERM or SIGINT to leaving; a second signal ends at once", .dimension = SKEP_TIME,
		.low = 0, .high = 3600, .usual = "5 s", .example = "30 s",
		.expected = "a time of 0 s to 1 h, such as '30 s'"},
};
static const struct skep_option output[] = {
	{"quiet", 'q', SKEP_OPTION_FLAG, offsetof(struct join_arguments, common.quiet), .help = "say errors alone"},
};

static const struct skep_option_group groups[] = {SKEP_OWN_OPTIONS("The run", rows),
	SKEP_OWN_OPTIONS("This machine", machine), SKEP_OWN_OPTIONS("Output", output), {0}};
static const struct skep_example examples[] = {
	{"skep join node7:7337 --ticket skep1-...", "the line that `skep serve` prints"},
	{"SKEP_TICKET=skep1-... skep join node7:7337 --stay --gpu a100", "on spot instances: comes back by itself"},
	{"skep join node7:7337,node8:7337 --stay --ticket skep1-...",
		"`serve --resume` may run on node8 if node7 is lost"},
	{"skep join node7:7337 --stay --notice 'curl -sf http://169.254.169.254/...'",
		"leaves when the cloud gives notice"},
	{0},
};

const struct skep_command skep_command_join = {
	.name = "join",
	.operands = "HOST:PORT[,HOST:PORT...]",
	.summary = "take part in a run that another machine serves",
	.text = "Connects to `skep serve`, fetches the scenario and the files that this machine lacks, and trains as one of "
		"its workers until the run is done. When all places are taken it stands by for one that becomes free. A "
		"machine may be taken away at any moment; with SIGTERM it leaves politely. Of several addresses each is "
		"tried in turn: the run may be served again at another one.",
	.least = 1,
	.most = 1,
	.group = groups,
	.example = examples,
	.run = join,
};
