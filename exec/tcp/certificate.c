/* SPDX-License-Identifier: Apache-2.0
 *
 * certificate.c - see certificate.h.
 */
#include "exec/tcp/certificate.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <openssl/asn1.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/x509v3.h>

/* RFC 5280, 4.1.2.5: the second one stands for a certificate without an end. */
#define FROM "19700101000000Z"
#define UNTIL "99991231235959Z"

enum { SERIAL_BITS = 127 }; /* at most 20 bytes, unpredictable: RFC 5280, 4.1.2.2 */

bool skep_key_is_p256(const EVP_PKEY *key)
{
	char group[32];
	return EVP_PKEY_is_a(key, "EC") && EVP_PKEY_get_group_name(key, group, sizeof group, NULL) == 1 &&
	       strcmp(group, SN_X9_62_prime256v1) == 0;
}

static bool put_serial(X509 *certificate)
{
	BIGNUM *serial = BN_new();
	bool done = serial != NULL && BN_rand(serial, SERIAL_BITS, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1 &&
	            BN_to_ASN1_INTEGER(serial, X509_get_serialNumber(certificate)) != NULL;
	BN_free(serial);
	return done;
}

static bool put_extension(X509 *certificate, int nid, const char *value)
{
	X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, nid, value);
	bool done = extension != NULL && X509_add_ext(certificate, extension, -1) == 1;
	X509_EXTENSION_free(extension);
	return done;
}

static bool put_use(X509 *certificate, bool signs_others)
{
	if (signs_others)
		return put_extension(certificate, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
		       put_extension(certificate, NID_key_usage, "critical,keyCertSign");
	return put_extension(certificate, NID_basic_constraints, "critical,CA:FALSE") &&
	       put_extension(certificate, NID_key_usage, "critical,digitalSignature") &&
	       put_extension(certificate, NID_ext_key_usage, "serverAuth,clientAuth");
}

X509 *skep_certificate_make(EVP_PKEY *key, const char *common_name, const X509 *issuer, EVP_PKEY *signer)
{
	X509 *made = X509_new();
	X509_NAME *name = made != NULL ? X509_get_subject_name(made) : NULL;
	if (name != NULL && X509_set_version(made, X509_VERSION_3) == 1 && put_serial(made) &&
		ASN1_TIME_set_string_X509(X509_getm_notBefore(made), FROM) == 1 &&
		ASN1_TIME_set_string_X509(X509_getm_notAfter(made), UNTIL) == 1 &&
		X509_NAME_add_entry_by_NID(
			name, NID_commonName, MBSTRING_ASC, (const unsigned char *)common_name, -1, -1, 0) == 1 &&
		X509_set_issuer_name(made, issuer != NULL ? X509_get_subject_name(issuer) : name) == 1 &&
		X509_set_pubkey(made, key) == 1 && put_use(made, issuer == NULL) &&
		X509_sign(made, signer, EVP_sha256()) > 0)
		return made;
	X509_free(made);
	return NULL;
}

X509 *skep_certificate_parse(const uint8_t *bytes, size_t size)
{
	const unsigned char *at = bytes;
	X509 *parsed = size > 0 && size <= SKEP_CERTIFICATE_MAX ? d2i_X509(NULL, &at, (long)size) : NULL;
	if (parsed != NULL && at == bytes + size)
		return parsed;
	X509_free(parsed);
	return NULL;
}

size_t skep_certificate_bytes(const X509 *certificate, uint8_t ret[SKEP_CERTIFICATE_MAX])
{
	unsigned char *at = ret;
	int size = i2d_X509(certificate, NULL);
	return size > 0 && size <= (int)SKEP_CERTIFICATE_MAX && i2d_X509(certificate, &at) == size ? (size_t)size : 0;
}

void skep_certificate_name(uint64_t run, uint32_t rank, char ret[SKEP_CERTIFICATE_NAME])
{
	snprintf(ret, SKEP_CERTIFICATE_NAME, "skep %016" PRIx64 " rank %" PRIu32, run, rank);
}

uint32_t skep_certificate_rank(const X509 *certificate, uint64_t *ret_run)
{
	char name[SKEP_CERTIFICATE_NAME], again[SKEP_CERTIFICATE_NAME];
	const X509_NAME *subject = X509_get_subject_name(certificate);
	uint32_t rank = 0;
	*ret_run = 0;
	int length = X509_NAME_entry_count(subject) == 1
	                     ? X509_NAME_get_text_by_NID(subject, NID_commonName, name, sizeof name)
	                     : -1;
	if (length > 0 && (size_t)length == strlen(name) &&
		sscanf(name, "skep %16" SCNx64 " rank %10" SCNu32, ret_run, &rank) == 2) {
		skep_certificate_name(*ret_run, rank, again);
		if (strcmp(name, again) == 0 && rank != UINT32_MAX)
			return rank;
	}
	*ret_run = 0;
	return UINT32_MAX;
}
