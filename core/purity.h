/* SPDX-License-Identifier: Apache-2.0
 *
 * purity.h - what core/ may not touch. The build includes this before the first line of every file of core: a mention of
 * a poisoned name, or a call of a plain word below, is then a compile error, and so is including the header of one.
 *
 * The headers that core may use come first; they are guarded, so a later #include of them is harmless. What escapes these
 * lists shows among the library's undefined symbols, which tests/style/purity.sh compares with the few allowed ones.
 */
#pragma once

#include <assert.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* memory */
#pragma GCC poison malloc calloc realloc reallocarray alloca aligned_alloc posix_memalign mmap munmap strdup strndup
/* files and streams */
#pragma GCC poison printf fprintf dprintf sprintf snprintf vprintf vfprintf vsprintf vsnprintf puts fputs putchar perror
#pragma GCC poison scanf sscanf fscanf fopen fdopen fclose fread fwrite fgets fflush FILE stdin stdout stderr
#pragma GCC poison openat ioctl recvmsg sendmsg
/* clocks */
#pragma GCC poison clock_gettime gettimeofday timespec_get localtime gmtime usleep nanosleep
/* chance that the seed does not decide */
#pragma GCC poison srand srandom rand_r drand48 getrandom getentropy
/* the process and what surrounds it */
#pragma GCC poison getenv secure_getenv setenv setlocale errno abort _exit quick_exit atexit fork setjmp longjmp
#pragma GCC poison pthread_create pthread_mutex_lock thrd_create mtx_lock

/* Good words for a field, so only the call is refused. */
#define SKEP_IMPURE _Pragma("GCC error \"core/ is pure: this call belongs to a world\"")
#define free(...) SKEP_IMPURE
#define open(...) SKEP_IMPURE
#define read(...) SKEP_IMPURE
#define write(...) SKEP_IMPURE
#define close(...) SKEP_IMPURE
#define send(...) SKEP_IMPURE
#define recv(...) SKEP_IMPURE
#define time(...) SKEP_IMPURE
#define clock(...) SKEP_IMPURE
#define sleep(...) SKEP_IMPURE
#define rand(...) SKEP_IMPURE
#define random(...) SKEP_IMPURE
#define exit(...) SKEP_IMPURE
#define system(...) SKEP_IMPURE
#define signal(...) SKEP_IMPURE
#define raise(...) SKEP_IMPURE
