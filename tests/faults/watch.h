/* SPDX-License-Identifier: Apache-2.0
 *
 * watch.h - what is loaded before the others asks `tests/faults/run`, which listens at the socket FAULTS_WATCH, a line at a
 * time, and waits for its answer. So the files of a process can be looked at, and set back, while it stands still.
 */
#ifndef SKEP_FAULTS_WATCH_H
#define SKEP_FAULTS_WATCH_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>

/* The function that this library stands before. */
#define REAL(name) __typeof__(&name) real = (__typeof__(&name))(uintptr_t)dlsym(RTLD_NEXT, #name)

/* Is there such a socket, and is this no copy? */
bool faults_watched(void);
bool faults_is_copy(void);

/* The first byte of the answer; 0 if there is none. */
char faults_tell(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A copy of the process, in which one fault happens: by the environment it would be `fault`=`number``mark`. The copy goes on to
 * its end while this one waits, and then tells how it ended. True: this is the copy. What both have in common is set back: where
 * files are read, by this function; their bytes, by who is told. The copy has no locks of the first one's, and needs none: it
 * is told that each is free. */
bool faults_copy(const char *fault, long number, const char *mark);

/* A number for the calls that led here, the same in each process. */
unsigned long faults_stack(void);

/* The only thread of its process? */
bool faults_alone(void);

#endif
