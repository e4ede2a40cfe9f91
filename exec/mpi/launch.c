/* SPDX-License-Identifier: Apache-2.0
 *
 * launch.c - starts the processes of a run: this file starts mpirun, or finds that mpirun has started this process.
 *
 * mpirun is a child, so that a run which is killed ends as any other that fails: with status 1 and a last line that says why.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process/signals.h"
#include "base/process/thread_pool.h"
#include "base/reader.h"
#include "exec/exec.h"
#include "exec/loop/clock.h"
#include "exec/mpi/mpi_bytes.h"
#include "exec/mpi/startup.h"
#include "scenarios/shard/shard.h"

/* srun numbers real steps from 0; the batch script, an interactive shell and the like have numbers from here on. */
#define SLURM_SPECIAL_STEPS 4294967280u

#define ROOM_BYTES (UINT64_C(8) << 20)  /* of a folder for temporary files */
#define EAGER_LEAST (UINT64_C(1) << 20) /* bytes */

static bool set(const char *name)
{
	const char *value = getenv(name);
	return value != NULL && value[0] != '\0';
}

/* Is this a task of an srun step, and not just a shell inside an allocation? */
static bool slurm_step(void)
{
	const char *step = getenv("SLURM_STEP_ID");
	if (!set("SLURM_PROCID") || step == NULL)
		return false;
	char *end;
	unsigned long number = strtoul(step, &end, 10);
	return end != step && *end == '\0' && number < SLURM_SPECIAL_STEPS;
}

bool skep_exec_launched(void)
{
	return set("OMPI_COMM_WORLD_SIZE") || set("PMIX_RANK") || set("PMI_SIZE") || set("PMI_RANK") || slurm_step();
}

bool skep_exec_survives(void)
{
	int up = 0;
	MPI_Initialized(&up);
	return up ? skep_ulfm_active() : skep_ulfm_built();
}

bool skep_exec_ready(const struct skep_exec_options *options, struct skep_diag *reterr)
{
	if (options->has_spares && !skep_exec_survives())
		return skep_fail(reterr,
			"--spares: the MPI that this program was built with ends a run when one of its processes dies; "
			"it takes Open MPI 5, as in Debian 13");
	if (skep_program_find("mpirun"))
		return true;
	return skep_fail(reterr, "mpirun is not installed: apt-get install openmpi-bin");
}

/* Will mpirun start all ranks on this host? */
static bool local(void)
{
	return !set("SLURM_JOB_ID") && !set("PBS_JOBID") && !set("LSB_JOBID");
}

/* What mpirun's children are to inherit. OpenBLAS: one thread a rank, before it starts its own. All ranks of a run that
 * mpirun starts outside of a cluster's allocation are on this host, so shared memory will do: Open MPI 5 complains for
 * each pair of ranks when no network interface suits it, and libfabric, of which Open MPI asks for fast networks, looks at all
 * devices of the machine and at all symbols of its kernel for some seconds first. */
static void prepare_environment(bool shared_memory_only)
{
	setenv("OPENBLAS_NUM_THREADS", "1", 1);
	if (shared_memory_only) {
		setenv("OMPI_MCA_pml", "ob1", 0);
		setenv("OMPI_MCA_btl", "^tcp,ofi,openib,usnic", 0);
	}
	if (geteuid() != 0)
		return;
	static const char *const allow[] = {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", /* Open MPI 4 */
		"PRTE_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM"};                            /* 5 */
	for (size_t i = 0; i < sizeof allow / sizeof allow[0]; i++)
		setenv(allow[i], "1", 1);
}

/* The command line of mpirun, in memory of its own; NULL: none, and the reason. The strings are the caller's. */
static char **command_line(char *const option[], char *const argv[], struct skep_diag *reterr)
{
	size_t options = 0, arguments = 0;
	assert(option[0] != NULL && argv[0] != NULL);
	while (option[options] != NULL)
		options++;
	while (argv[arguments] != NULL)
		arguments++;
	char **all = calloc(options + arguments + 1, sizeof *all);
	if (all == NULL) {
		skep_fail(reterr, "no memory to start mpirun");
		return NULL;
	}
	memcpy(all, option, options * sizeof *all);
	for (size_t i = 1; i < arguments; i++) /* argv[0] is the program's own name */
		all[options + i - 1] = argv[i];
	return all;
}

static bool this_program(char *ret, size_t room, struct skep_diag *reterr)
{
	ssize_t length = readlink("/proc/self/exe", ret, room - 1);
	assert(room > 1);
	ret[length > 0 ? length : 0] = '\0';
	if (length <= 0)
		skep_fail(reterr, "cannot tell where this program is: %s", strerror(errno));
	return length > 0;
}

/* ---- mpirun as a child --------------------------------------------------------------------------------------------- */

#define WORD "SKEP_WORD" /* names the file for the run's last word */
#define LOOK_MS 20
#define WORD_NS UINT64_C(1000000000)      /* from the last word to the end of mpirun: all ranks end at once */
#define FINALIZE_NS UINT64_C(20000000000) /* the same where they end together, by MPI_Finalize */
#define SIGNAL_NS UINT64_C(8000000000)    /* from a signal to the same: rank 0 has things to write */
#define ORPHANS_NS UINT64_C(10000000000)  /* from the end of a killed mpirun to that of its ranks */
#define AGAIN_NS UINT64_C(100000000) /* what comes sooner is the same word twice: timeout(1) tells us and our group */
#define NOT_THERE 127                /* mpirun's status when it could not be started, as a shell has it */
#define ORPHANED 3                   /* a word that is no status: the directory, rank 0, is dead */

bool skep_launch_wants_word(void)
{
	return set(WORD);
}

void skep_launch_leave_word(int status)
{
	const char *path = getenv(WORD);
	FILE *file = path != NULL ? fopen(path, "wx") : NULL; /* the first word counts */
	if (file == NULL)
		return;
	fprintf(file, "%d\n", status);
	fclose(file);
}

void skep_launch_leave_word_of_orphan(void)
{
	skep_launch_leave_word(ORPHANED);
}

/* -1: not there yet. */
static int read_word(const char *path)
{
	int status = -1;
	FILE *file = fopen(path, "r");
	if (file == NULL)
		return -1;
	if (fscanf(file, "%d", &status) != 1)
		status = -1;
	fclose(file);
	return status;
}

struct watch {
	pid_t mpirun;
	int signals;      /* a descriptor: what this process is sent */
	const char *path; /* where rank 0 leaves word */
	bool survives;    /* the run, the death of its processes */
	int word, asked;  /* -1: none yet; the signal that was to end the run, 0: none */
	uint64_t asked_ns;
};

/* Passes on to mpirun a signal that this process got. A terminal has sent its signal to mpirun too, and a second
 * one would leave rank 0 no time to write. (mpirun ignores SIGHUP; its sender cannot be told.) A user who does not
 * want to wait and sends the signal again ends everything at once. */
static bool pass_on(struct watch *w)
{
	struct signalfd_siginfo info;
	assert(w->signals >= 0 && w->mpirun > 0);
	if (read(w->signals, &info, sizeof info) != (ssize_t)sizeof info || info.ssi_signo == SIGCHLD)
		return false;
	uint64_t now_ns = skep_monotonic_ns();
	if (w->asked == 0) {
		w->asked = (int)info.ssi_signo;
		w->asked_ns = now_ns;
		if (w->asked == SIGHUP || info.ssi_code != SI_KERNEL)
			kill(w->mpirun, w->asked == SIGHUP ? SIGTERM : w->asked);
	} else if (now_ns - w->asked_ns > AGAIN_NS) {
		kill(w->mpirun, SIGKILL);
	}
	return true;
}

/* mpirun to its end, or until there is nothing left to wait for. Returns its state. */
static int wait_for_mpirun(struct watch *w)
{
	struct pollfd asked = {.fd = w->signals, .events = POLLIN};
	uint64_t end_ns = UINT64_MAX;
	int state = 0;
	assert(w->mpirun > 0 && w->word < 0);
	while (waitpid(w->mpirun, &state, WNOHANG) == 0) {
		bool signalled = poll(&asked, 1, LOOK_MS) > 0 && pass_on(w);
		w->word = w->word < 0 ? read_word(w->path) : w->word;
		uint64_t now_ns = skep_monotonic_ns();
		uint64_t rest_ns = w->survives ? WORD_NS : FINALIZE_NS;
		if (w->word >= 0 && end_ns > now_ns + rest_ns)
			end_ns = now_ns + rest_ns;
		if (signalled && w->survives && end_ns > now_ns + SIGNAL_NS)
			end_ns = now_ns + SIGNAL_NS;
		if (now_ns > end_ns)
			kill(w->mpirun, SIGKILL); /* on a milder signal it would wait, and complain */
	}
	if (w->word < 0)
		w->word = read_word(w->path);
	return state;
}

/* What the processes of the run could not say themselves. */
static void say_end(const struct watch *w, int state, struct skep_diag *reterr)
{
	int code = WIFEXITED(state) ? WEXITSTATUS(state) : 0;
	assert(w->word < 0 || w->word == ORPHANED || !w->survives);
	if (w->word == ORPHANED)
		skep_fail(reterr,
			"the directory (rank 0) died, and the run with it; the database has what it had recorded");
	else if (code == NOT_THERE)
		skep_fail(reterr, "mpirun does not start");
	else if (WIFSIGNALED(state))
		skep_fail(reterr, "mpirun was ended by SIG%s, and the run with it", sigabbrev_np(WTERMSIG(state)));
	else if (code > 2)
		skep_fail(reterr,
			"a process of the run died, and the run with it; which one it was, mpirun says (its status is "
			"%d)",
			code);
	else
		skep_fail(reterr,
			"the run ended without a last word of its directory (rank 0), which counts as failed, though "
			"mpirun's status is %d: a process died, or could not begin",
			code);
}

/* The run's status, and what is left to be said. Only rank 0's word tells success: mpirun may end with 0 after the death of any
 * process, rank 0 among them. Ranks end with a status of at most 2; whatever else mpirun ends with was not their choice. */
static int verdict(const struct watch *w, int state, struct skep_diag *reterr)
{
	assert(WIFEXITED(state) || WIFSIGNALED(state));
	int code = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
	bool told = w->word >= 0 && w->word != ORPHANED;
	int status = told ? w->word : code == 2 ? 2 : 1;
	bool torn = !w->survives && WIFEXITED(state) && code > 2; /* rank 0 was told to end, and not by us */
	if (status != 0 && w->asked != 0)
		skep_fail(reterr, "the run was ended by SIG%s", sigabbrev_np(w->asked));
	else if (status != 0 && (!told || torn))
		say_end(w, state, reterr);
	return status != 0 && w->asked != 0 ? 128 + w->asked : status;
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *where)
{
	(void)status;
	(void)kind;
	(void)where;
	return remove(path) != 0 && errno != ENOENT;
}

/* A folder of the same name in the system's shared memory, for what ranks on one host share. */
static void shared_memory_of(const char *folder, char *ret, size_t room)
{
	assert(strrchr(folder, '/') != NULL);
	snprintf(ret, room, "/dev/shm/%s", strrchr(folder, '/') + 1);
}

static void remove_folders(const char *folder)
{
	char memory[64];
	shared_memory_of(folder, memory, sizeof memory);
	nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	nftw(memory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- who tidies up ------------------------------------------------------------------------------------------------- */

#define LEFT_MS 10000 /* for mpirun to end after its parent process; it is sent SIGTERM then */

struct made { /* what the process that tidies up tells of the folder that it has made */
	int error;
	char folder[64];
};

/* Makes the folder, is told mpirun's number, and removes the folder when the process that has the other end has ended, which
 * alone has it and never closes it, and mpirun, whose ranks may write to the folder. */
static void tidy_up(struct made made, int end)
{
	pid_t mpirun = 0;
	struct pollfd run = {.fd = -1, .events = POLLIN};
	setsid(); /* what ends our group shall not end this */
	dup2(end, 0);
	close_range(1, ~0u, 0); /* what reads the output of the run must not wait for this process */
	made.error = mkdtemp(made.folder) == NULL ? errno : 0;
	ssize_t told = send(0, &made, sizeof made, MSG_NOSIGNAL);
	if (made.error != 0)
		return;
	if (told == sizeof made && recv(0, &mpirun, sizeof mpirun, 0) == sizeof mpirun) {
		run.fd = (int)syscall(SYS_pidfd_open, mpirun, 0);
		while (recv(0, &mpirun, sizeof mpirun, 0) > 0)
			continue;
	}
	if (access(made.folder, F_OK) != 0)
		return;
	if (run.fd >= 0)
		poll(&run, 1, LEFT_MS);
	remove_folders(made.folder);
}

/* A process that makes the folder, and removes it when this one was killed and could not: at no moment is it there and nothing
 * would remove it. It is no child of ours, whose end we would wait for. Returns the end by which to tell it mpirun's number;
 * -1, with errno: there is no folder. */
static int make_folder(char *folder, size_t room)
{
	struct made made = {.error = EAGAIN};
	int end[2];
	assert(room >= sizeof made.folder);
	snprintf(made.folder, sizeof made.folder, "%s", folder);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, end) != 0)
		return -1;
	pid_t pid = fork();
	if (pid == 0) {
		close(end[0]);
		if (fork() == 0)
			tidy_up(made, end[1]);
		_exit(0);
	}
	int failed = errno;
	close(end[1]);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	if (pid > 0 && recv(end[0], &made, sizeof made, MSG_WAITALL) == sizeof made && made.error == 0) {
		memcpy(folder, made.folder, sizeof made.folder);
		return end[0];
	}
	close(end[0]);
	errno = pid > 0 ? made.error : failed;
	return -1;
}

/* Ranks whose mpirun was killed are our children by then, and end by themselves. What they have in the database is not to be
 * looked at before. */
static void wait_for_orphans(void)
{
	uint64_t end_ns = skep_monotonic_ns() + ORPHANS_NS;
	while (waitpid(-1, NULL, WNOHANG) >= 0 && skep_monotonic_ns() < end_ns)
		poll(NULL, 0, LOOK_MS);
}

/* `folder` is there until the caller removes it; after a death of this process the one at the other end of `tells` does. */
static int launch_child(char **command, const char *folder, int tells, bool survives, struct skep_diag *reterr)
{
	char path[80];
	assert(command[0] != NULL);
	snprintf(path, sizeof path, "%s/word", folder);
	sigset_t heard = skep_quit_signals(), before;
	sigaddset(&heard, SIGCHLD);
	signal(SIGCHLD, SIG_DFL);
	sigprocmask(SIG_BLOCK, &heard, &before);
	struct watch w = {.signals = signalfd(-1, &heard, SFD_NONBLOCK | SFD_CLOEXEC),
		.path = path,
		.survives = survives,
		.word = -1};
	pid_t parent = getpid();
	w.mpirun = w.signals >= 0 ? fork() : -1;
	if (w.mpirun == 0) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		sigaddset(&before, SIGHUP);
		sigprocmask(SIG_SETMASK, &before, NULL);
		setenv(WORD, path, 1);
		if (getppid() == parent)
			execvp(command[0], command);
		_exit(NOT_THERE);
	}
	if (w.mpirun > 0) {
		send(tells, &w.mpirun, sizeof w.mpirun, MSG_NOSIGNAL);
		prctl(PR_SET_CHILD_SUBREAPER, 1);
		int state = wait_for_mpirun(&w);
		if (w.word < 0)
			wait_for_orphans();
		return verdict(&w, state, reterr);
	}
	skep_fail(reterr, "mpirun does not start: %s", strerror(errno));
	return -1;
}

/* There may be more ranks than cores; no rank is bound to a core; idle ranks yield; after SIGTERM rank 0 gets time
 * to write. */
#define ALWAYS                                                                                                         \
	"--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1", "--mca",                          \
		"odls_base_sigkill_timeout", "3"

/* Open MPI 5, or 4: a killed mpirun removes neither its own folder nor the memory that the ranks have shared. */
static void keep_what_is_left_in(const char *folder)
{
	char memory[64];
	shared_memory_of(folder, memory, sizeof memory);
	setenv("PRTE_MCA_prte_tmpdir_base", folder, 1);
	setenv("OMPI_MCA_orte_tmpdir_base", folder, 1);
	if (!local() || mkdir(memory, 0700) != 0) /* other hosts have no such folder */
		return;
	setenv("OMPI_MCA_btl_sm_backing_directory", memory, 0);
	setenv("OMPI_MCA_btl_vader_backing_directory", memory, 0);
}

/* Open MPI has its sockets, and on some systems what ranks share, in that folder; without room for them it ends with words of
 * its own, which name no disk. */
static bool has_room(const char *folder, struct skep_diag *reterr)
{
	struct statvfs fs;
	if (statvfs(folder, &fs) != 0 || fs.f_blocks == 0 || fs.f_bavail * fs.f_frsize >= ROOM_BYTES)
		return true; /* or that is not known */
	return skep_fail(reterr,
		"the disk of %s is full: mpirun needs some %u MiB there; remove files, or name a folder on another disk with "
		"TMPDIR",
		folder, (unsigned)(ROOM_BYTES >> 20));
}

/* Starts mpirun with a folder of its own for rank 0's word and, where all ranks see that folder, for what a killed mpirun
 * leaves. */
static int launch_in_folder(char **command, bool survives, struct skep_diag *reterr)
{
	char folder[64];
	const char *tmp = getenv("TMPDIR");
	/* Open MPI has sockets below it, whose paths have an end at 107 bytes. */
	snprintf(folder, sizeof folder, "%s/skep-XXXXXX",
		tmp != NULL && tmp[0] == '/' && strlen(tmp) < 32 ? tmp : "/tmp");
	int tells = make_folder(folder, sizeof folder); /* it stays open as long as this process lives */
	if (tells < 0) {
		skep_fail(reterr, "cannot make %s: %s", folder, strerror(errno));
		return -1;
	}
	if (survives || local())
		keep_what_is_left_in(folder);
	int status = has_room(folder, reterr) ? launch_child(command, folder, tells, survives, reterr) : -1;
	remove_folders(folder);
	return status;
}

int skep_exec_launch_ranks(uint32_t ranks, char *const argv[], struct skep_diag *reterr)
{
	char program[4096], number[16];
	assert(ranks > 0);
	if (!this_program(program, sizeof program, reterr))
		return -1;
	snprintf(number, sizeof number, "%" PRIu32, ranks);
	char *const option[] = {"mpirun", ALWAYS, "-n", number, program, NULL};
	char **all = command_line(option, argv, reterr);
	if (all == NULL)
		return -1;
	prepare_environment(local());
	int status = launch_in_folder(all, false, reterr);
	free(all);
	return status;
}

/* ---- a run that survives ------------------------------------------------------------------------------------------ */

static int launch_surviving(uint32_t ranks, uint64_t largest, char *const argv[], struct skep_diag *reterr)
{
	char program[4096], number[16], eager[32];
	if (!this_program(program, sizeof program, reterr))
		return -1;
	snprintf(number, sizeof number, "%" PRIu32, ranks);
	/* What goes to a dying process must not need its answer: a rendezvous with it can hang the others. */
	snprintf(eager, sizeof eager, "%" PRIu64, (largest < EAGER_LEAST ? EAGER_LEAST : largest) + 4096);
	char *const option[] = {"mpirun", "--with-ft", "ulfm", ALWAYS, "--mca", "btl_tcp_eager_limit", eager, "--mca",
		"btl_tcp_rndv_eager_limit", eager, "-n", number, program, NULL};
	char **all = command_line(option, argv, reterr);
	if (all == NULL)
		return -1;
	prepare_environment(false);
	if (local()) {
		setenv("OMPI_MCA_pml", "ob1", 0);
		setenv("OMPI_MCA_btl", "tcp,self", 0);
		setenv("OMPI_MCA_btl_tcp_if_include", "lo", 0);
	}
	int status = launch_in_folder(all, true, reterr);
	free(all);
	return status;
}

static uint64_t largest_message(const struct skep_plan *plan)
{
	uint64_t largest = 0;
	for (uint32_t i = 0; i < plan->stages; i++) {
		const struct skep_stage_plan *stage = &plan->stage[i];
		largest = stage->activation_bytes > largest ? stage->activation_bytes : largest;
		largest = stage->state_bytes > largest ? stage->state_bytes : largest;
	}
	return largest;
}

#define CROWD 32u /* processes for each core: where they all look for each other, starting takes minutes */

static void say_how_many(uint32_t ranks)
{
	uint32_t cores = skep_thread_pool_cores();
	if (local() && ranks / CROWD >= cores)
		fprintf(stderr,
			"skep: starts %" PRIu32 " processes on %" PRIu32 " core%s, %" PRIu32
			" for each: that alone may take longer than --start-limit, and they compute in turns\n",
			ranks, cores, cores > 1 ? "s" : "", ranks / cores);
}

int skep_exec_launch(const struct skep_scenario *scenario, const struct skep_exec_options *options, char *const argv[],
	struct skep_diag *reterr)
{
	uint32_t ranks = skep_shard_processes(scenario);
	/* What survives deaths has to do without shared memory, which a run as fast as this machine can would feel. */
	bool shall = options->has_spares || ((scenario->has_trace || options->pace) && skep_exec_survives());
	say_how_many(ranks);
	if (!shall)
		return skep_exec_launch_ranks(ranks, argv, reterr);
	uint64_t spares = options->has_spares ? options->spares : scenario->churn.joins;
	ranks += (uint32_t)(spares < SKEP_EXEC_SPARES_MAX ? spares : SKEP_EXEC_SPARES_MAX);
	return launch_surviving(ranks, largest_message(&scenario->plan), argv, reterr);
}
