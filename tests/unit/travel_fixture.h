/* SPDX-License-Identifier: Apache-2.0
 *
 * travel_fixture.h - for tests of files that travel: a folder of the test's own with a cache in it, and a file that goes into it.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "exec/files/cache.h"

static inline void good(bool ok, const struct skep_diag *diag)
{
	if (!ok)
		fail_msg("%s: %s", diag->file, diag->message);
}

/* Bytes of a file, in pieces of `piece`. */
static inline void receive(struct skep_cache *cache, const uint8_t *digest, int fd, uint64_t bytes, size_t piece)
{
	struct skep_cache_part part;
	struct skep_diag diag = {0};
	char *buffer = malloc(piece);
	enum skep_cache_begun begun = skep_cache_begin(cache, digest, bytes, &part, &diag);
	good(begun == SKEP_CACHE_BEGUN || begun == SKEP_CACHE_WHOLE, &diag);
	while (begun == SKEP_CACHE_BEGUN && part.offset < bytes) {
		ssize_t got = pread(fd, buffer, piece, (off_t)part.offset);
		assert_true(got > 0);
		good(skep_cache_append(&part, part.offset, buffer, (size_t)got, &diag), &diag);
	}
	if (begun == SKEP_CACHE_BEGUN)
		good(skep_cache_commit(&part, &diag), &diag);
	assert_true(skep_cache_has(cache, digest, bytes));
	free(buffer);
}
