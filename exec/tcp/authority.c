/* SPDX-License-Identifier: Apache-2.0
 *
 * authority.c - what `serve` signs with (tls.h): made, kept in a file, and used.
 */
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "base/files/outputs.h"
#include "base/reader.h"
#include "exec/tcp/certificate.h"

enum {
	FILE_BYTES = 16384,
	P256_BYTES = 91, /* a P-256 key as SubjectPublicKeyInfo, which ends with the point: its form, x and y */
	FORM = P256_BYTES - 65,
};

/* Takes both, or frees both; NULL: one of them is not there or not right. */
static struct skep_authority *make(EVP_PKEY *key, X509 *certificate)
{
	struct skep_authority *a = calloc(1, sizeof *a);
	if (a != NULL && key != NULL && certificate != NULL &&
		X509_digest(certificate, EVP_sha256(), a->fingerprint, NULL) == 1) {
		a->key = key;
		a->certificate = certificate;
		return a;
	}
	free(a);
	EVP_PKEY_free(key);
	X509_free(certificate);
	return NULL;
}

struct skep_authority *skep_authority_create(struct skep_diag *reterr)
{
	char why[256];
	EVP_PKEY *key = EVP_EC_gen(SN_X9_62_prime256v1);
	X509 *certificate = key != NULL ? skep_certificate_make(key, "skep authority", NULL, key) : NULL;
	struct skep_authority *a = make(key, certificate);
	if (a == NULL)
		skep_fail(reterr, "cannot make the authority of a run: %s", skep_tls_error(why, sizeof why));
	return a;
}

void skep_authority_destroy(struct skep_authority *a)
{
	if (a == NULL)
		return;
	EVP_PKEY_free(a->key);
	X509_free(a->certificate);
	free(a);
}

/* ---- in a file --------------------------------------------------------------------------------------------------- */

bool skep_authority_write(
	const struct skep_authority *a, const struct skep_tickets *tickets, const char *path, struct skep_diag *reterr)
{
	char why[256];
	struct skep_outputs outputs = {.diag = reterr, .owner_only = true};
	FILE *file = skep_outputs_begin(&outputs, path);
	if (file != NULL)
		skep_tickets_write(tickets, file);
	if (file != NULL &&
		(PEM_write_PKCS8PrivateKey(file, a->key, NULL, NULL, 0, NULL, NULL) != 1 ||
			PEM_write_X509(file, a->certificate) != 1) &&
		!ferror(file))
		skep_diag_set(reterr, path, 0, 0, NULL, "cannot be written: %s", skep_tls_error(why, sizeof why));
	ERR_clear_error();
	return skep_outputs_commit(&outputs);
}

/* OpenSSL would ask the terminal. */
static int no_password(char *ret, int size, int writing, void *data)
{
	(void)ret, (void)size, (void)writing, (void)data;
	return -1;
}

static struct skep_authority *parse(const char *text, size_t size)
{
	BIO *in = BIO_new_mem_buf(text, (int)size);
	if (in == NULL)
		return NULL;
	EVP_PKEY *key = PEM_read_bio_PrivateKey(in, NULL, no_password, NULL);
	X509 *certificate = BIO_reset(in) == 1 ? PEM_read_bio_X509(in, NULL, no_password, NULL) : NULL;
	BIO_free(in);
	return make(key, certificate);
}

static bool is_authority(const struct skep_authority *a)
{
	return skep_key_is_p256(a->key) && X509_check_private_key(a->certificate, a->key) == 1 &&
	       X509_verify(a->certificate, a->key) == 1 && X509_check_ca(a->certificate) == 1;
}

struct skep_authority *skep_authority_read(const char *path, struct skep_tickets *ret_tickets, struct skep_diag *reterr)
{
	struct skep_diag why = {0};
	char *text;
	size_t size;
	if (!skep_file_read(path, FILE_BYTES, &text, &size, reterr))
		return NULL;
	struct skep_authority *a = parse(text, size);
	bool tickets = skep_tickets_read(ret_tickets, text, &why);
	OPENSSL_cleanse(text, size);
	free(text);
	if (a == NULL || !is_authority(a) || !tickets) {
		if (tickets)
			skep_fail(&why,
				"is not the authority of a run: it lacks a P-256 key or that key's self-signed certificate");
		skep_diag_set(reterr, path, 0, 0, NULL, "%s", why.message);
		skep_authority_destroy(a);
		a = NULL;
	}
	ERR_clear_error();
	return a;
}

/* ---- what it says ------------------------------------------------------------------------------------------------ */

void skep_authority_fingerprint(const struct skep_authority *a, uint8_t ret[SKEP_FINGERPRINT_BYTES])
{
	memcpy(ret, a->fingerprint, SKEP_FINGERPRINT_BYTES);
}

size_t skep_authority_certificate(const struct skep_authority *a, uint8_t ret[SKEP_CERTIFICATE_MAX])
{
	return skep_certificate_bytes(a->certificate, ret);
}

/* Written again it has to give the same bytes: then the curve has its name and nothing follows. The form of the point would be
 * kept, so it is looked at first. */
static EVP_PKEY *parse_public(const uint8_t *bytes, size_t size)
{
	uint8_t again[P256_BYTES];
	const unsigned char *from = bytes;
	unsigned char *to = again;
	bool usual = size == P256_BYTES && bytes[FORM] == POINT_CONVERSION_UNCOMPRESSED;
	EVP_PKEY *key = usual ? d2i_PUBKEY(NULL, &from, P256_BYTES) : NULL;
	if (key != NULL && skep_key_is_p256(key) && i2d_PUBKEY(key, NULL) == P256_BYTES &&
		i2d_PUBKEY(key, &to) == P256_BYTES && memcmp(bytes, again, P256_BYTES) == 0)
		return key;
	EVP_PKEY_free(key);
	return NULL;
}

size_t skep_authority_issue(const struct skep_authority *a, uint64_t run, uint32_t rank, const uint8_t *public_key,
	size_t bytes, uint8_t ret[SKEP_CERTIFICATE_MAX])
{
	char name[SKEP_CERTIFICATE_NAME];
	EVP_PKEY *key = rank != UINT32_MAX ? parse_public(public_key, bytes) : NULL;
	skep_certificate_name(run, rank, name);
	X509 *issued = key != NULL ? skep_certificate_make(key, name, a->certificate, a->key) : NULL;
	size_t size = issued != NULL ? skep_certificate_bytes(issued, ret) : 0;
	X509_free(issued);
	EVP_PKEY_free(key);
	ERR_clear_error();
	return size;
}
