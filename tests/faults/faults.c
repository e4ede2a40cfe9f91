/* SPDX-License-Identifier: Apache-2.0
 *
 * faults.c - a library that is loaded before the others (LD_PRELOAD) and makes the world of a real process unkind, by its
 * environment:
 *
 *   FAULTS_MEMORY=N   the N-th allocation finds no memory, counted from 1; with a '+' behind it all from there on
 *   FAULTS_DISK=N     the N-th write to a file finds the disk full, and all after it; with a '~' behind it half of it is written
 *   FAULTS_SLOW=MS    each fsync() takes so many ms more
 *   FAULTS_CLOCK=S    the time of day is so many seconds ahead; negative: behind. Clocks that only measure are as they are
 *   FAULTS_DIE=N      SIGKILL at the N-th call of what a start consists of: opening, renaming, linking or removing a file,
 *                     forking, connecting, synchronising
 *   FAULTS_COUNT=FILE at its end the process adds a line with its numbers of allocations, writes and steps
 *   FAULTS_RANK=R     all but FAULTS_COUNT in that rank of an MPI job alone; '-': in what is no rank, `skep run` and mpirun
 *
 * Allocations count that are asked for by the program itself, libyaml, cJSON or SQLite: what others do without memory is theirs.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { MODULES = 64 };

static atomic_long allocations, writes, steps;
static long memory_at, disk_at, die_at, slow_ms, clock_s;
static bool memory_on, disk_torn, ready;
static struct module {
	uintptr_t begin;
	bool ours;
} module[MODULES];
static atomic_int modules;

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

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
		clock_s = number("FAULTS_CLOCK", 0, NULL);
	}
	ready = true;
}

__attribute__((destructor)) static void end(void)
{
	const char *path = getenv("FAULTS_COUNT");
	char line[96];
	int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
	int length = snprintf(line, sizeof line, "%ld %ld %ld\n", allocations, writes, steps);
	if (fd >= 0) {
		disk_at = 0;
		(void)!write(fd, line, (size_t)length);
		close(fd);
	}
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* Is the code that called part of what is tested? Looked up once for each library. */
static bool is_ours(const void *caller)
{
	Dl_info info;
	static _Thread_local bool inside;
	if (inside || !ready)
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
	ours = strncmp(name, "lib", 3) != 0 || strncmp(name, "libyaml", 7) == 0 || strncmp(name, "libcjson", 8) == 0 ||
	       strncmp(name, "libsqlite3", 10) == 0;
	if (count < MODULES) {
		module[count] = (struct module){(uintptr_t)info.dli_fbase, ours};
		modules = count + 1;
	}
	return ours;
}

static bool lacks(const void *caller)
{
	if (!is_ours(caller))
		return false;
	long now = ++allocations;
	if (memory_at == 0 || now < memory_at || (now > memory_at && !memory_on))
		return false;
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

#define REAL(name) __typeof__(&name) real = (__typeof__(&name))(uintptr_t)dlsym(RTLD_NEXT, #name)

static bool is_file(int fd)
{
	struct stat st;
	return disk_at != 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

/* How much of it can be written; -1: nothing. */
static ssize_t room(int fd, size_t size)
{
	long now = ++writes;
	if (!is_file(fd) || now < disk_at)
		return (ssize_t)size;
	errno = ENOSPC;
	return disk_torn && now == disk_at && size > 1 ? (ssize_t)(size / 2) : -1;
}

ssize_t write(int fd, const void *bytes, size_t size)
{
	REAL(write);
	ssize_t some = room(fd, size);
	return some < 0 ? -1 : real(fd, bytes, (size_t)some);
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
	if (die_at != 0 && now == die_at)
		kill(getpid(), SIGKILL);
}

int fsync(int fd)
{
	REAL(fsync);
	step();
	if (slow_ms > 0)
		nanosleep(&(struct timespec){slow_ms / 1000, slow_ms % 1000 * 1000000}, NULL);
	if (room(fd, 0) < 0)
		return -1;
	return real(fd);
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
	return real(from, to);
}

int link(const char *from, const char *to)
{
	REAL(link);
	step();
	return real(from, to);
}

int unlink(const char *path)
{
	REAL(unlink);
	step();
	return real(path);
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
