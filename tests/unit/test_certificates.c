/* SPDX-License-Identifier: Apache-2.0
 *
 * test_certificates.c - what the authority of a run signs and what a process adopts; the file that the authority is kept in.
 */
#include "exec/tcp/certificate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/sha.h>

#define RUN UINT64_C(0x00b2c3d400000007)
#define NONE UINT32_MAX

struct parts {
	struct skep_authority *authority, *stranger;
	struct skep_identity *identity;
	uint8_t key[SKEP_CERTIFICATE_MAX], own[SKEP_CERTIFICATE_MAX], signer[SKEP_CERTIFICATE_MAX];
	size_t key_bytes, own_bytes, signer_bytes; /* own: rank 7 of RUN */
	char folder[64], path[128];
};

static int begin(void **state)
{
	struct skep_diag diag = {0};
	struct parts *p = calloc(1, sizeof *p);
	*state = p;
	strcpy(p->folder, "/tmp/skep-certificates-XXXXXX");
	assert_non_null(mkdtemp(p->folder));
	snprintf(p->path, sizeof p->path, "%s/authority.pem", p->folder);
	assert_non_null(p->authority = skep_authority_create(&diag));
	assert_non_null(p->stranger = skep_authority_create(&diag));
	assert_non_null(p->identity = skep_identity_create(&diag));
	p->key_bytes = skep_identity_public(p->identity, p->key);
	p->own_bytes = skep_authority_issue(p->authority, RUN, 7, p->key, p->key_bytes, p->own);
	p->signer_bytes = skep_authority_certificate(p->authority, p->signer);
	assert_true(p->key_bytes > 0 && p->own_bytes > 0 && p->signer_bytes > 0);
	return 0;
}

static int finish(void **state)
{
	struct parts *p = *state;
	unlink(p->path);
	assert_int_equal(rmdir(p->folder), 0);
	skep_authority_destroy(p->authority);
	skep_authority_destroy(p->stranger);
	skep_identity_destroy(p->identity);
	free(p);
	return 0;
}

/* ---- what is signed ---------------------------------------------------------------------------------------------- */

static void the_fingerprint_is_of_the_certificate(void **state)
{
	struct parts *p = *state;
	uint8_t said[SKEP_FINGERPRINT_BYTES], digest[SHA256_DIGEST_LENGTH];
	skep_authority_fingerprint(p->authority, said);
	assert_memory_equal(said, SHA256(p->signer, p->signer_bytes, digest), sizeof said);
	skep_authority_fingerprint(p->stranger, said);
	assert_memory_not_equal(said, digest, sizeof said);
}

static void a_certificate_names_run_and_rank(void **state)
{
	struct parts *p = *state;
	static const struct {
		uint64_t run;
		uint32_t rank;
		const char *name;
	} cases[] = {
		{0, 0, "skep 0000000000000000 rank 0"},
		{UINT64_MAX, UINT32_MAX - 1, "skep ffffffffffffffff rank 4294967294"},
		{UINT64_C(0xab), 10, "skep 00000000000000ab rank 10"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		uint8_t bytes[SKEP_CERTIFICATE_MAX];
		char name[128] = "";
		uint64_t run;
		size_t size =
			skep_authority_issue(p->authority, cases[i].run, cases[i].rank, p->key, p->key_bytes, bytes);
		X509 *issued = skep_certificate_parse(bytes, size);
		assert_non_null(issued);
		X509_NAME_get_text_by_NID(X509_get_subject_name(issued), NID_commonName, name, sizeof name);
		assert_string_equal(name, cases[i].name);
		assert_true(skep_certificate_rank(issued, &run) == cases[i].rank && run == cases[i].run);
		assert_int_equal(X509_cmp_time(X509_get0_notBefore(issued), &(time_t){1}), -1);
		assert_int_equal(
			X509_cmp_time(X509_get0_notAfter(issued), &(time_t){253402300798}), 1); /* 9999-12-31 */
		X509_free(issued);
	}
	uint8_t bytes[SKEP_CERTIFICATE_MAX];
	assert_int_equal(skep_authority_issue(p->authority, RUN, UINT32_MAX, p->key, p->key_bytes, bytes), 0);
}

/* Signed by the authority, and yet of no rank. */
static void names_in_another_form_are_no_ranks(void **state)
{
	struct parts *p = *state;
	static const char *const names[] = {"skep authority", "skep 1 rank 0", "skep 0000000000000001 rank 00",
		"skep 0000000000000001 rank -1", "skep 0000000000000001 rank 4294967295",
		"skep 0x00000000000001 rank 0", "skep 0000000000000001 rank 4294967296", "skep 00000000000000AB rank 1",
		"skep 0000000000000001 rank 1 ", " skep 0000000000000001 rank 1", "skep 0000000000000001  rank 1",
		"skep 0000000000000001 rank"};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		uint64_t run = 5;
		X509 *made =
			skep_certificate_make(p->identity->key, names[i], p->authority->certificate, p->authority->key);
		assert_non_null(made);
		assert_int_equal(skep_certificate_rank(made, &run), NONE);
		assert_true(run == 0);
		X509_free(made);
	}
}

/* The bytes of a certificate of this key; 0: it is refused. */
static size_t issue_for(const struct parts *p, EVP_PKEY *key)
{
	uint8_t bytes[SKEP_CERTIFICATE_MAX], ret[SKEP_CERTIFICATE_MAX];
	unsigned char *at = bytes;
	int size = i2d_PUBKEY(key, NULL);
	assert_true(size > 0 && size <= (int)sizeof bytes && i2d_PUBKEY(key, &at) == size);
	return skep_authority_issue(p->authority, RUN, 1, bytes, (size_t)size, ret);
}

static void other_keys_are_not_signed(void **state)
{
	enum { COUNT = 6 }; /* the last one is right */
	struct parts *p = *state;
	EVP_PKEY *others[COUNT] = {EVP_EC_gen("P-384"), EVP_EC_gen("SM2"), EVP_EC_gen("secp256k1"),
		EVP_PKEY_Q_keygen(NULL, NULL, "ED25519"), EVP_RSA_gen(2048), EVP_EC_gen("P-256")};
	for (size_t i = 0; i < COUNT; i++) {
		assert_non_null(others[i]);
		assert_true((issue_for(p, others[i]) > 0) == (i == COUNT - 1));
	}
	assert_int_equal(EVP_PKEY_set_utf8_string_param(others[COUNT - 1], "point-format", "compressed"), 1);
	assert_int_equal(issue_for(p, others[COUNT - 1]), 0);
	for (size_t i = 0; i < COUNT; i++)
		EVP_PKEY_free(others[i]);
}

static void spoilt_keys_are_not_signed(void **state)
{
	struct parts *p = *state;
	uint8_t key[SKEP_CERTIFICATE_MAX + 1] = {0}, ret[SKEP_CERTIFICATE_MAX];
	memcpy(key, p->key, p->key_bytes);
	for (size_t size = 0; size < sizeof key; size++)
		assert_true((skep_authority_issue(p->authority, RUN, 1, key, size, ret) > 0) == (size == p->key_bytes));
	for (size_t bit = 0; bit < 8 * p->key_bytes; bit++) { /* one off the curve, or in another form */
		key[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_int_equal(skep_authority_issue(p->authority, RUN, 1, key, p->key_bytes, ret), 0);
		key[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	key[p->key_bytes - 65] = 6 | (key[p->key_bytes - 1] & 1); /* the same point in the hybrid form of X9.62 */
	assert_int_equal(skep_authority_issue(p->authority, RUN, 1, key, p->key_bytes, ret), 0);
}

/* ---- what is adopted --------------------------------------------------------------------------------------------- */

/* Whether it is refused with these words, and what was adopted before is still there. */
static bool refuses(
	struct parts *p, const void *own, size_t own_bytes, const void *signer, size_t signer_bytes, const char *words)
{
	struct skep_diag diag = {0};
	const X509 *before = p->identity->certificate;
	bool adopted = skep_identity_adopt(p->identity, own, own_bytes, signer, signer_bytes, &diag);
	return !adopted && diag.set && strstr(diag.message, words) != NULL && p->identity->certificate == before;
}

static void only_its_own_certificate_is_adopted(void **state)
{
	struct parts *p = *state;
	struct skep_diag diag = {0};
	uint8_t bytes[SKEP_CERTIFICATE_MAX], others[SKEP_CERTIFICATE_MAX], key[SKEP_CERTIFICATE_MAX];
	struct skep_identity *other = skep_identity_create(&diag);
	size_t key_bytes = skep_identity_public(other, key);
	for (int adopted = 0; adopted < 2; adopted++) {
		size_t size = skep_authority_issue(p->authority, RUN, 7, key, key_bytes, bytes);
		assert_true(refuses(p, bytes, size, p->signer, p->signer_bytes, "another key"));
		size = skep_authority_issue(p->stranger, RUN, 7, p->key, p->key_bytes, bytes);
		assert_true(refuses(p, bytes, size, p->signer, p->signer_bytes, "not signed by"));
		size = skep_authority_certificate(p->stranger, others);
		assert_true(refuses(p, p->own, p->own_bytes, others, size, "not signed by"));
		assert_true(refuses(p, p->own, p->own_bytes, p->own, p->own_bytes, "not signed by"));
		assert_true(refuses(p, p->signer, p->signer_bytes, p->signer, p->signer_bytes, "another key"));
		assert_true(refuses(p, p->own, p->own_bytes - 1, p->signer, p->signer_bytes, "is none"));
		assert_true(refuses(p, p->own, 0, p->signer, p->signer_bytes, "is none"));
		assert_true(refuses(p, p->own, p->own_bytes, p->signer, p->signer_bytes + 1, "is none"));
		assert_true(skep_identity_adopt(p->identity, p->own, p->own_bytes, p->signer, p->signer_bytes, &diag));
	}
	skep_identity_destroy(other);
}

/* A process with a certificate of its own signs another for itself. */
static void a_certificate_by_a_process_is_not_adopted(void **state)
{
	struct parts *p = *state;
	uint8_t bytes[SKEP_CERTIFICATE_MAX];
	X509 *signer = skep_certificate_parse(p->own, p->own_bytes);
	X509 *made = skep_certificate_make(p->identity->key, "skep 0000000000000001 rank 0", signer, p->identity->key);
	size_t size = skep_certificate_bytes(made, bytes);
	assert_true(size > 0);
	assert_true(refuses(p, bytes, size, p->own, p->own_bytes, "not signed by"));
	assert_true(refuses(p, bytes, size, p->signer, p->signer_bytes, "not signed by"));
	X509_free(made);
	X509_free(signer);
}

static void changed_certificates_are_not_adopted(void **state)
{
	struct parts *p = *state;
	struct skep_diag diag = {0};
	for (size_t bit = 0; bit < 8 * p->own_bytes; bit += 3) {
		p->own[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_false(skep_identity_adopt(p->identity, p->own, p->own_bytes, p->signer, p->signer_bytes, &diag));
		p->own[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
}

/* ---- in a file --------------------------------------------------------------------------------------------------- */

static void a_file_keeps_the_authority(void **state)
{
	struct parts *p = *state;
	struct skep_diag diag = {0};
	uint8_t first[SKEP_FINGERPRINT_BYTES], second[SKEP_FINGERPRINT_BYTES], bytes[SKEP_CERTIFICATE_MAX];
	struct skep_tickets tickets = {0}, read = {0};
	uint8_t secret[SKEP_SECRET_BYTES];
	struct stat file;
	fclose(fopen(p->path, "w"));
	assert_int_equal(chmod(p->path, 0644), 0); /* the old file's permissions do not count */
	mode_t before = umask(0);
	assert_true(skep_tickets_add(&tickets, 7, secret, &diag));
	assert_true(skep_authority_write(p->authority, &tickets, p->path, &diag));
	umask(before);
	assert_int_equal(stat(p->path, &file), 0);
	assert_int_equal(file.st_mode & 07777, 0600);
	struct skep_authority *later = skep_authority_read(p->path, &read, &diag);
	assert_int_equal(read.count, 1);
	assert_int_equal(read.entry[0].left, 7);
	assert_true(skep_tickets_know(&read, secret));
	assert_non_null(later);
	skep_authority_fingerprint(p->authority, first);
	skep_authority_fingerprint(later, second);
	assert_memory_equal(first, second, sizeof first);
	size_t size = skep_authority_issue(later, RUN, 7, p->key, p->key_bytes, bytes);
	assert_true(skep_identity_adopt(p->identity, bytes, size, p->signer, p->signer_bytes, &diag));
	skep_authority_destroy(later);
	assert_false(skep_authority_write(p->authority, &tickets, "/nowhere/authority.pem", &diag));
	skep_tickets_finish(&tickets);
	skep_tickets_finish(&read);
}

static bool refuses_file(const struct parts *p, const char *words)
{
	struct skep_diag diag = {0};
	struct skep_tickets tickets = {0};
	struct skep_authority *read = skep_authority_read(p->path, &tickets, &diag);
	skep_tickets_finish(&tickets);
	skep_authority_destroy(read);
	return read == NULL && diag.set && strstr(diag.message, words) != NULL && strcmp(diag.file, p->path) == 0;
}

static void put_pem(const struct parts *p, EVP_PKEY *key, const char *password, X509 *certificate)
{
	FILE *file = fopen(p->path, "w");
	assert_non_null(file);
	const EVP_CIPHER *cipher = password != NULL ? EVP_aes_128_cbc() : NULL;
	int length = password != NULL ? (int)strlen(password) : 0;
	if (key != NULL)
		assert_int_equal(PEM_write_PKCS8PrivateKey(file, key, cipher, password, length, NULL, NULL), 1);
	if (certificate != NULL)
		assert_int_equal(PEM_write_X509(file, certificate), 1);
	fclose(file);
}

static void other_files_are_refused(void **state)
{
	struct parts *p = *state;
	X509 *leaf = skep_certificate_parse(p->own, p->own_bytes);
	EVP_PKEY *p384 = EVP_EC_gen("P-384");
	X509 *large = skep_certificate_make(p384, "skep authority", NULL, p384);
	X509 *by_other = skep_certificate_make(p->identity->key, "skep authority", NULL, p->authority->key);
	X509 *signs_none =
		skep_certificate_make(p->identity->key, "skep authority", p->authority->certificate, p->identity->key);
	const struct {
		EVP_PKEY *key;
		const char *password;
		X509 *certificate;
	} cases[] = {
		{NULL, NULL, NULL},
		{p->authority->key, NULL, NULL},
		{NULL, NULL, p->authority->certificate},
		{p->stranger->key, NULL, p->authority->certificate},
		{p->identity->key, NULL, leaf},
		{p->identity->key, NULL, by_other},
		{p->identity->key, NULL, signs_none},
		{p->authority->key, "secret", p->authority->certificate},
		{p384, NULL, large},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		put_pem(p, cases[i].key, cases[i].password, cases[i].certificate);
		assert_true(refuses_file(p, "not the authority"));
	}
	put_pem(p, p->authority->key, NULL, p->authority->certificate);
	assert_false(refuses_file(p, ""));
	assert_int_equal(truncate(p->path, 300), 0);
	assert_true(refuses_file(p, "not the authority"));
	assert_int_equal(unlink(p->path), 0);
	assert_true(refuses_file(p, "No such file"));
	X509_free(leaf);
	X509_free(large);
	X509_free(by_other);
	X509_free(signs_none);
	EVP_PKEY_free(p384);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_fingerprint_is_of_the_certificate),
		cmocka_unit_test(a_certificate_names_run_and_rank),
		cmocka_unit_test(names_in_another_form_are_no_ranks),
		cmocka_unit_test(other_keys_are_not_signed),
		cmocka_unit_test(spoilt_keys_are_not_signed),
		cmocka_unit_test(only_its_own_certificate_is_adopted),
		cmocka_unit_test(a_certificate_by_a_process_is_not_adopted),
		cmocka_unit_test(changed_certificates_are_not_adopted),
		cmocka_unit_test(a_file_keeps_the_authority),
		cmocka_unit_test(other_files_are_refused),
	};
	return cmocka_run_group_tests(tests, begin, finish);
}
