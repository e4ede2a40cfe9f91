/* SPDX-License-Identifier: Apache-2.0
 *
 * digest.c - see digest.h.
 */
#include "exec/files/digest.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <openssl/evp.h>

#define READ_BYTES (1u << 20)

struct skep_digester {
	EVP_MD_CTX *context;
};

struct skep_digester *skep_digester_create(void)
{
	struct skep_digester *digester = malloc(sizeof *digester);
	if (digester == NULL)
		return NULL;
	digester->context = EVP_MD_CTX_new();
	if (digester->context != NULL && EVP_DigestInit_ex(digester->context, EVP_sha256(), NULL) == 1)
		return digester;
	skep_digester_destroy(digester);
	return NULL;
}

void skep_digester_destroy(struct skep_digester *digester)
{
	if (digester != NULL)
		EVP_MD_CTX_free(digester->context);
	free(digester);
}

bool skep_digester_add(struct skep_digester *digester, const void *bytes, size_t count)
{
	assert(digester->context != NULL && (bytes != NULL || count == 0));
	return EVP_DigestUpdate(digester->context, bytes, count) == 1;
}

bool skep_digester_end(struct skep_digester *digester, uint8_t ret[SKEP_DIGEST_BYTES])
{
	return EVP_DigestFinal_ex(digester->context, ret, NULL) == 1;
}

bool skep_digest_of(const void *bytes, size_t count, uint8_t ret[SKEP_DIGEST_BYTES])
{
	return EVP_Digest(bytes, count, ret, NULL, EVP_sha256(), NULL) == 1;
}

bool skep_digester_add_file(struct skep_digester *digester, int fd, uint64_t offset, uint64_t bytes)
{
	assert(fd >= 0);
	uint8_t *buffer = malloc(READ_BYTES);
	uint64_t at = 0;
	bool ok = buffer != NULL;
	while (ok && at < bytes) {
		size_t most = bytes - at < READ_BYTES ? (size_t)(bytes - at) : READ_BYTES;
		errno = 0;
		ssize_t got = pread(fd, buffer, most, (off_t)(offset + at));
		if (got < 0 && errno == EINTR)
			continue;
		ok = got > 0 && skep_digester_add(digester, buffer, (size_t)got);
		at += got > 0 ? (uint64_t)got : 0;
	}
	free(buffer);
	return ok;
}

void skep_digest_text(const uint8_t digest[SKEP_DIGEST_BYTES], char ret[SKEP_DIGEST_TEXT])
{
	for (size_t i = 0; i < SKEP_DIGEST_BYTES; i++)
		snprintf(ret + 2 * i, 3, "%02x", digest[i]);
}
