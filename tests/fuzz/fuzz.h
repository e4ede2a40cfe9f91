/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz.h - what the fuzzers of readers share: a check that speaks, what every diagnosis must keep, and bytes as a file.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Unlike assert(), says what went wrong in every build. */
#define must(condition)                                                                                                \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #condition);                        \
			abort();                                                                                       \
		}                                                                                                      \
	} while (0)

static inline void check_diag(const struct skep_diag *diag)
{
	char text[2048];
	must(diag->set && diag->message[0]);
	must(strlen(diag->text) < sizeof diag->text && diag->caret <= strlen(diag->text));
	skep_diag_print(diag, text, sizeof text);
	for (const char *c = text; *c; c++)
		must((uint8_t)*c >= 0x20 || *c == '\n');
}

/* A path under which the bytes can be opened; the caller closes *ret_fd. */
static inline void make_file(const void *bytes, size_t size, int *ret_fd, char *ret, size_t ret_size)
{
	*ret_fd = memfd_create("fuzz", MFD_CLOEXEC);
	must(*ret_fd >= 0 && write(*ret_fd, bytes, size) == (ssize_t)size);
	snprintf(ret, ret_size, "/proc/self/fd/%d", *ret_fd);
}

/* A file as one input, without the fuzzer. */
static inline bool fuzz_file(const char *path)
{
	static uint8_t data[1 << 20];
	FILE *file = fopen(path, "rb");
	if (!file) {
		perror(path);
		return false;
	}
	size_t size = fread(data, 1, sizeof data, file);
	fclose(file);
	LLVMFuzzerTestOneInput(data, size);
	return true;
}
