/* SPDX-License-Identifier: Apache-2.0
 *
 * keys.c - see keys.h.
 */
#include "exec/serve/keys.h"

#include <openssl/rand.h>

#include "base/diag.h"

/* The own certificate of rank 0, by the authority that it is. */
static bool certify(struct skep_keys *keys, struct skep_diag *reterr)
{
	uint8_t key[SKEP_CERTIFICATE_MAX], own[SKEP_CERTIFICATE_MAX], authority[SKEP_CERTIFICATE_MAX];
	size_t key_bytes = skep_identity_public(keys->identity, key);
	size_t bytes = skep_authority_issue(keys->authority, keys->run, 0, key, key_bytes, own);
	size_t authority_bytes = skep_authority_certificate(keys->authority, authority);
	return skep_identity_adopt(keys->identity, own, bytes, authority, authority_bytes, reterr);
}

bool skep_keys_open(struct skep_keys *keys, const char *path, struct skep_diag *reterr)
{
	*keys = (struct skep_keys){0};
	if (RAND_bytes((unsigned char *)&keys->run, sizeof keys->run) != 1)
		return skep_fail(reterr, "this machine has no random numbers to make keys of");
	keys->authority =
		path != NULL ? skep_authority_read(path, &keys->tickets, reterr) : skep_authority_create(reterr);
	keys->identity = keys->authority != NULL ? skep_identity_create(reterr) : NULL;
	if (keys->identity == NULL || !certify(keys, reterr))
		return false;
	keys->host = skep_tls_server(keys->identity, true, reterr);
	return keys->host != NULL;
}

void skep_keys_close(struct skep_keys *keys)
{
	skep_tickets_finish(&keys->tickets);
	SSL_CTX_free(keys->host);
	skep_identity_destroy(keys->identity);
	skep_authority_destroy(keys->authority);
	*keys = (struct skep_keys){0};
}

bool skep_keys_are_there(const char *path, struct skep_diag *reterr)
{
	struct skep_tickets tickets = {0};
	struct skep_authority *authority = skep_authority_read(path, &tickets, reterr);
	bool there = authority != NULL;
	skep_tickets_finish(&tickets);
	skep_authority_destroy(authority);
	return there;
}

bool skep_keys_make(const char *path, struct skep_diag *reterr)
{
	struct skep_tickets tickets = {0};
	uint8_t secret[SKEP_SECRET_BYTES];
	struct skep_authority *authority = skep_authority_create(reterr);
	bool fine = authority != NULL && skep_tickets_add(&tickets, SKEP_ADMISSIONS_UNLIMITED, secret, reterr) &&
	            skep_authority_write(authority, &tickets, path, reterr);
	skep_tickets_finish(&tickets);
	skep_authority_destroy(authority);
	return fine;
}
