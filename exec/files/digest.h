/* SPDX-License-Identifier: Apache-2.0
 *
 * digest.h - SHA-256 (FIPS 180-4, by OpenSSL), by which files that travel are named and checked.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SKEP_DIGEST_BYTES 32u
#define SKEP_DIGEST_TEXT (2 * SKEP_DIGEST_BYTES + 1)

struct skep_digester; /* a digest of what has been added so far */

struct skep_digester *skep_digester_create(void);           /* NULL: no memory, or an OpenSSL without SHA-256 */
void skep_digester_destroy(struct skep_digester *digester); /* NULL is fine */
bool skep_digester_add(struct skep_digester *digester, const void *bytes, size_t count);
/* Nothing can be added afterwards. */
bool skep_digester_end(struct skep_digester *digester, uint8_t ret[SKEP_DIGEST_BYTES]);

bool skep_digest_of(const void *bytes, size_t count, uint8_t ret[SKEP_DIGEST_BYTES]);

/* Adds `bytes` bytes of the file from `offset` on. False: they cannot be read (errno), or the file ends before them (errno 0).
 * */
bool skep_digester_add_file(struct skep_digester *digester, int fd, uint64_t offset, uint64_t bytes);

/* 64 digits, lower case. */
void skep_digest_text(const uint8_t digest[SKEP_DIGEST_BYTES], char ret[SKEP_DIGEST_TEXT]);
