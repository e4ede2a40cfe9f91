/* SPDX-License-Identifier: Apache-2.0
 *
 * certificate.h - keys and certificates of a run (tls.h): what is in them and in which form.
 */
#pragma once

#include <openssl/evp.h>
#include <openssl/x509.h>

#include "exec/tcp/tls.h"

struct skep_authority {
	EVP_PKEY *key;
	X509 *certificate;
	uint8_t fingerprint[SKEP_FINGERPRINT_BYTES];
};

struct skep_identity {
	EVP_PKEY *key;
	X509 *certificate, *authority; /* NULL: none yet */
};

bool skep_key_is_p256(const EVP_PKEY *key);

/* For `key`, with this common name, signed with `signer` in the name of `issuer` (NULL: of itself, and it may sign others). NULL:
 * an error of OpenSSL. The caller frees it. */
X509 *skep_certificate_make(EVP_PKEY *key, const char *common_name, const X509 *issuer, EVP_PKEY *signer);

/* The bytes are one certificate and nothing else; NULL if not. The caller frees it. */
X509 *skep_certificate_parse(const uint8_t *bytes, size_t size);
/* Its DER; returns the bytes, 0: an error, or over SKEP_CERTIFICATE_MAX. */
size_t skep_certificate_bytes(const X509 *certificate, uint8_t ret[SKEP_CERTIFICATE_MAX]);

/* "skep RUN rank RANK". */
#define SKEP_CERTIFICATE_NAME 64u
void skep_certificate_name(uint64_t run, uint32_t rank, char ret[SKEP_CERTIFICATE_NAME]);
/* The rank in the certificate's name, exactly as it is written by skep_certificate_name(); UINT32_MAX: it has another name. */
uint32_t skep_certificate_rank(const X509 *certificate, uint64_t *ret_run);
