/* SPDX-License-Identifier: Apache-2.0
 *
 * identity.c - a process's key and its certificate (tls.h).
 */
#include <stdlib.h>

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/x509_vfy.h>

#include "exec/tcp/certificate.h"

struct skep_identity *skep_identity_create(struct skep_diag *reterr)
{
	char why[256];
	struct skep_identity *identity = calloc(1, sizeof *identity);
	if (identity != NULL)
		identity->key = EVP_EC_gen(SN_X9_62_prime256v1);
	if (identity != NULL && identity->key != NULL)
		return identity;
	skep_fail(reterr, "cannot make a key: %s", skep_tls_error(why, sizeof why));
	free(identity);
	return NULL;
}

void skep_identity_destroy(struct skep_identity *identity)
{
	if (identity == NULL)
		return;
	EVP_PKEY_free(identity->key);
	X509_free(identity->certificate);
	X509_free(identity->authority);
	free(identity);
}

size_t skep_identity_public(const struct skep_identity *identity, uint8_t ret[SKEP_CERTIFICATE_MAX])
{
	unsigned char *at = ret;
	int size = i2d_PUBKEY(identity->key, NULL);
	return size > 0 && size <= (int)SKEP_CERTIFICATE_MAX && i2d_PUBKEY(identity->key, &at) == size ? (size_t)size
	                                                                                               : 0;
}

/* X509_V_OK, or why the authority has not signed it. */
static int verify(X509 *certificate, X509 *authority)
{
	int why = X509_V_ERR_OUT_OF_MEM;
	X509_STORE *store = X509_STORE_new();
	X509_STORE_CTX *check = X509_STORE_CTX_new();
	if (store != NULL && check != NULL && X509_STORE_add_cert(store, authority) == 1 &&
		X509_STORE_set_flags(store, X509_V_FLAG_NO_CHECK_TIME) == 1 && X509_STORE_set_depth(store, 0) == 1 &&
		X509_STORE_CTX_init(check, store, certificate, NULL) == 1)
		why = X509_verify_cert(check) == 1 ? X509_V_OK : X509_STORE_CTX_get_error(check);
	X509_STORE_CTX_free(check);
	X509_STORE_free(store);
	return why;
}

/* X509_verify_cert() takes the trusted one itself too, which signs and names no rank. */
static bool may_adopt(
	const struct skep_identity *identity, X509 *certificate, X509 *authority, struct skep_diag *reterr)
{
	uint64_t run;
	if (certificate == NULL || authority == NULL)
		return skep_fail(reterr, "what came as a certificate is none");
	if (X509_check_private_key(certificate, identity->key) != 1)
		return skep_fail(reterr, "the certificate is of another key than this process has");
	if (skep_certificate_rank(certificate, &run) == UINT32_MAX)
		return skep_fail(reterr, "the certificate names no run and rank");
	int why = verify(certificate, authority);
	return why == X509_V_OK || skep_fail(reterr, "the certificate is not signed by the authority of the run: %s",
					   X509_verify_cert_error_string(why));
}

bool skep_identity_adopt(struct skep_identity *identity, const uint8_t *certificate, size_t bytes,
	const uint8_t *authority, size_t authority_bytes, struct skep_diag *reterr)
{
	X509 *own = skep_certificate_parse(certificate, bytes);
	X509 *signer = skep_certificate_parse(authority, authority_bytes);
	bool taken = may_adopt(identity, own, signer, reterr);
	X509_free(taken ? identity->certificate : own);
	X509_free(taken ? identity->authority : signer);
	if (taken) {
		identity->certificate = own;
		identity->authority = signer;
	}
	ERR_clear_error();
	return taken;
}
