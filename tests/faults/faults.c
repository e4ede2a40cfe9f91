/* SPDX-License-Identifier: Apache-2.0
 *
 * faults.c - a library that is loaded before the others (LD_PRELOAD) and makes the world of a real process unkind, by its
 * environment:
 *
 *   FAULTS_MEMORY=N   the N-th allocation finds no memory, counted from 1; with a '+' behind it all from there on
 *   FAULTS_DISK=N     the N-th write to a file finds the disk full, and all after it; with a '~' behind it half of it is written
 *   FAULTS_SLOW=MS    each write to a file, and each fsync() of one, takes so many ms more; with FAULTS_SLOW_AT=N: the N-th
 *   FAULTS_CLOCK=S    the time of day is so many seconds ahead; negative: behind. Clocks that only measure are as they are
 *   FAULTS_DIE=N      SIGKILL at the N-th call of what a start consists of: opening, renaming, linking or removing a file,
 *                     forking, connecting, synchronising
 *   FAULTS_TRAP=1     SIGTRAP where an allocation fails, for a debugger
 *   FAULTS_COUNT=FILE at its end the process adds a line with its numbers of allocations, writes and steps and its rank
 *   FAULTS_STACKS=F   at each allocation it adds a line to F: its rank, the allocation's number, one for the calls that led there
 *   FAULTS_COPIES=K   at each allocation (1), write (2) or step (3) it stands still while copies go on with the fault (watch.h)
 *   FAULTS_CRASHES=1  it stands still behind each rename, link, removal and fsync(), so that crashes there can be thought out
 *   FAULTS_RANK=R     what makes it unkind in that rank of an MPI job alone; '-': in what is no rank, `skep run` and mpirun
 *
 * Allocations count that are asked for by the program itself, libyaml, cJSON or SQLite: what others do without memory is theirs.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "watch.h"

enum { MODULES = 64 };
enum kind { NONE, MEMORY, DISK, DIE };

static atomic_long allocations, writes, steps;
static long memory_at, disk_at, die_at, slow_ms, slow_at, clock_s;
static bool memory_on, disk_torn, crashes, ready;
static enum kind copies;
static int stacks = -1, own_rank = -1;
static struct module {
	uintptr_t begin;
	bool ours;
} module[MODULES];
static atomic_int modules;

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

/* Stands still while copies of the process go on with a fault of the kind, if it is the one that is asked for. In the copy: which
 * of the marks the fault has; else -1. With other threads there is no copy, and the fault is to be tried by itself. */
static int try_copies(enum kind kind, long now)
{
	static const char *const name[] = {NULL, "FAULTS_MEMORY", "FAULTS_DISK", "FAULTS_DIE"};
	static const char *const mark[][2] = {{0}, {"", "+"}, {"", "~"}, {"", NULL}};
	if (copies != kind)
		return -1;
	if (!faults_alone()) {
		faults_tell("other %s=%ld", name[kind], now);
		return -1;
	}
	for (int i = 0; i < 2 && mark[kind][i]; i++) {
		if (!faults_copy(name[kind], now, mark[kind][i]))
			continue;
		copies = NONE;
		return i;
	}
	return -1;
}

static long number(const char *name, char mark, bool *ret_marked)
{
	const char *text = getenv(name);
	char *end = NULL;
	long value = text ? strtol(text, &end, 10) : 0;
	if (ret_marked)
		*ret_marked = end && *end == mark;
	return value;
}

__attribute__((constructor)) static void begin(void)
{
	const char *rank = getenv("FAULTS_RANK"), *own = getenv("OMPI_COMM_WORLD_RANK");
	if (!rank || strcmp(rank, own ? own : "-") == 0) {
		memory_at = number("FAULTS_MEMORY", '+', &memory_on);
		disk_at = number("FAULTS_DISK", '~', &disk_torn);
		die_at = number("FAULTS_DIE", 0, NULL);
		slow_ms = number("FAULTS_SLOW", 0, NULL);
		slow_at = number("FAULTS_SLOW_AT", 0, NULL);
		clock_s = number("FAULTS_CLOCK", 0, NULL);
		copies = faults_watched() ? (enum kind)number("FAULTS_COPIES", 0, NULL) : NONE;
	}
	crashes = getenv("FAULTS_CRASHES") != NULL && faults_watched();
	own_rank = own ? atoi(own) : -1;
	if (getenv("FAULTS_STACKS"))
		stacks = open(getenv("FAULTS_STACKS"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	ready = true;
}

__attribute__((destructor)) static void end(void)
{
	const char *path = faults_is_copy() ? NULL : getenv("FAULTS_COUNT");
	char line[128];
	int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
	int length = snprintf(line, sizeof line, "%ld %ld %ld %d\n", allocations, writes, steps, own_rank);
	if (fd >= 0) {
		syscall(SYS_write, fd, line, (size_t)length);
		close(fd);
	}
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* Is the code that called part of what is tested? dladdr() is asked once for each library. */
static bool look_up(const void *caller)
{
	Dl_info info;
	static _Thread_local bool inside;
	if (inside)
		return false;
	inside = true;
	bool known = dladdr(caller, &info) != 0 && info.dli_fname, ours = false;
	inside = false;
	if (!known)
		return false;
	int count = modules;
	for (int i = 0; i < count; i++)
		if (module[i].begin == (uintptr_t)info.dli_fbase)
			return module[i].ours;
	const char *slash = strrchr(info.dli_fname, '/'), *name = slash ? slash + 1 : info.dli_fname;
	ours = strstr(name, ".so") == NULL || strncmp(name, "libyaml", 7) == 0 || strncmp(name, "libcjson", 8) == 0 ||
	       strncmp(name, "libsqlite3", 10) == 0; /* without .so: the program */
	if (count < MODULES) {
		module[count] = (struct module){(uintptr_t)info.dli_fbase, ours};
		modules = count + 1;
	}
	return ours;
}

/* The answers of look_up() that were asked for lately: dladdr() takes longer than all that a short run does. A slot has the
 * caller and, as its lowest bit, the answer. */
static bool is_ours(const void *caller)
{
	static atomic_uintptr_t answers[4096];
	if (!ready)
		return false;
	uintptr_t key = (uintptr_t)caller << 1, slot = ((uintptr_t)caller * UINT64_C(0x9e3779b97f4a7c15)) >> 52;
	uintptr_t answer = answers[slot];
	if ((answer & ~(uintptr_t)1) != key) {
		answer = key | look_up(caller);
		answers[slot] = answer;
	}
	return answer & 1;
}

static void add_stack(long now)
{
	static _Thread_local bool inside;
	char line[64];
	if (inside)
		return;
	inside = true;
	int length = snprintf(line, sizeof line, "%d %ld %lx\n", own_rank, now, faults_stack());
	syscall(SYS_write, stacks, line, (size_t)length);
	inside = false;
}

static bool lacks(const void *caller)
{
	if (!is_ours(caller))
		return false;
	long now = ++allocations;
	if (stacks >= 0)
		add_stack(now);
	int mark = try_copies(MEMORY, now);
	if (mark >= 0) {
		memory_at = now;
		memory_on = mark > 0;
	}
	if (memory_at == 0 || now < memory_at || (now > memory_at && !memory_on))
		return false;
	if (getenv("FAULTS_TRAP"))
		raise(SIGTRAP);
	errno = ENOMEM;
	return true;
}

void *malloc(size_t size)
{
	return lacks(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	return lacks(__builtin_return_address(0)) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
	return size > 0 && lacks(__builtin_return_address(0)) ? NULL : __libc_realloc(old, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
	return lacks(__builtin_return_address(0)) ? NULL : __libc_memalign(alignment, size);
}

char *strdup(const char *text)
{
	size_t bytes = strlen(text) + 1;
	char *copy = lacks(__builtin_return_address(0)) ? NULL : __libc_malloc(bytes);
	return copy ? memcpy(copy, text, bytes) : NULL;
}

char *strndup(const char *text, size_t most)
{
	size_t bytes = strnlen(text, most);
	char *copy = lacks(__builtin_return_address(0)) ? NULL : __libc_malloc(bytes + 1);
	if (copy) {
		memcpy(copy, text, bytes);
		copy[bytes] = '\0';
	}
	return copy;
}

/* ---- the disk ---------------------------------------------------------------------------------------------------- */

/* A disk is not waked by a signal. */
static void wait_ms(long ms)
{
	struct timespec left = {ms / 1000, ms % 1000 * 1000000};
	while (nanosleep(&left, &left) != 0 && errno == EINTR)
		;
}

/* What has become of files is told, if that is asked for. */
static int done(int result, int fd)
{
	if (result == 0 && crashes)
		faults_tell("done %d %d", (int)getpid(), fd);
	return result;
}

static bool is_file(int fd)
{
	struct stat st;
	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

/* How much of it can be written; -1: nothing. */
static ssize_t room(int fd, size_t size)
{
	if (!is_file(fd))
		return (ssize_t)size;
	long now = ++writes;
	int mark = try_copies(DISK, now);
	if (mark >= 0) {
		disk_at = now;
		disk_torn = mark > 0;
	}
	if (slow_ms > 0 && (slow_at == 0 || slow_at == now))
		wait_ms(slow_ms);
	if (disk_at == 0 || now < disk_at)
		return (ssize_t)size;
	errno = ENOSPC;
	return disk_torn && now == disk_at && size > 1 ? (ssize_t)(size / 2) : -1;
}

/* By its system call: mpirun writes in a handler of signals, which may come while dladdr() holds the lock that dlsym() takes. */
ssize_t write(int fd, const void *bytes, size_t size)
{
	ssize_t some = room(fd, size);
	return some < 0 ? -1 : syscall(SYS_write, fd, bytes, (size_t)some);
}

ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t at)
{
	REAL(pwrite64);
	ssize_t some = room(fd, size);
	return some < 0 ? -1 : real(fd, bytes, (size_t)some, at);
}

/* What a stream holds is written by the library's own write(), so it is the flush that fails. */
int fflush(FILE *file)
{
	REAL(fflush);
	if (file && room(fileno(file), 1) < 0)
		return EOF;
	return real(file);
}

static void step(void)
{
	long now = ++steps;
	if (try_copies(DIE, now) >= 0)
		die_at = now;
	if (die_at != 0 && now == die_at)
		kill(getpid(), SIGKILL);
}

int fsync(int fd)
{
	REAL(fsync);
	step();
	return room(fd, 0) < 0 ? -1 : done(real(fd), fd);
}

int fdatasync(int fd)
{
	REAL(fdatasync);
	step();
	return room(fd, 0) < 0 ? -1 : done(real(fd), fd);
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

int open64(const char *path, int flags, ...)
{
	REAL(open64);
	va_list more;
	va_start(more, flags);
	mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(more, mode_t) : 0;
	va_end(more);
	step();
	return real(path, flags, mode);
}

FILE *fopen64(const char *path, const char *mode)
{
	REAL(fopen64);
	step();
	return real(path, mode);
}

int rename(const char *from, const char *to)
{
	REAL(rename);
	step();
	return done(real(from, to), -1);
}

int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags)
{
	REAL(renameat2);
	step();
	return done(real(from_folder, from, to_folder, to, flags), -1);
}

int link(const char *from, const char *to)
{
	REAL(link);
	step();
	return done(real(from, to), -1);
}

int unlink(const char *path)
{
	REAL(unlink);
	step();
	return done(real(path), -1);
}

int posix_spawnp(pid_t *ret, const char *file, const posix_spawn_file_actions_t *actions,
	const posix_spawnattr_t *attributes, char *const words[], char *const names[])
{
	REAL(posix_spawnp);
	step();
	return real(ret, file, actions, attributes, words, names);
}

pid_t fork(void)
{
	REAL(fork);
	step();
	return real();
}

int connect(int fd, __CONST_SOCKADDR_ARG address, socklen_t size)
{
	REAL(connect);
	step();
	return real(fd, address, size);
}

/* ---- clocks ------------------------------------------------------------------------------------------------------ */

int clock_gettime(clockid_t clock, struct timespec *ret)
{
	REAL(clock_gettime);
	int result = real(clock, ret);
	if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
		ret->tv_sec += clock_s;
	return result;
}

time_t time(time_t *ret)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	if (ret)
		*ret = now.tv_sec;
	return now.tv_sec;
}
