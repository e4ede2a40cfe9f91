/* SPDX-License-Identifier: Apache-2.0
 *
 * test_tls.c - handshakes in memory: who is taken, who is refused, and what a connection says of the other side. Also what
 * the authority signs, and its file.
 */
#include "exec/tcp/tls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include "exec/tcp/certificate.h"

#define RUN UINT64_C(0xa1b2c3d400000007)
#define NONE UINT32_MAX

/* ---- processes --------------------------------------------------------------------------------------------------- */

struct world {
	struct skep_authority *authority, *stranger; /* of two runs */
	struct skep_identity *root, *third;          /* ranks 0 and 3 of RUN */
	struct skep_identity *impostor;              /* rank 0 of RUN, as the stranger says */
	uint8_t fingerprint[SKEP_FINGERPRINT_BYTES]; /* of the authority */
};

static struct skep_identity *process(const struct skep_authority *authority, uint64_t run, uint32_t rank)
{
	struct skep_diag diag = {0};
	uint8_t key[SKEP_CERTIFICATE_MAX], own[SKEP_CERTIFICATE_MAX], signer[SKEP_CERTIFICATE_MAX];
	struct skep_identity *identity = skep_identity_create(&diag);
	assert_non_null(identity);
	size_t key_bytes = skep_identity_public(identity, key);
	size_t bytes = skep_authority_issue(authority, run, rank, key, key_bytes, own);
	assert_true(key_bytes > 0 && bytes > 0);
	size_t signer_bytes = skep_authority_certificate(authority, signer);
	assert_true(skep_identity_adopt(identity, own, bytes, signer, signer_bytes, &diag));
	return identity;
}

static int begin(void **state)
{
	struct skep_diag diag = {0};
	struct world *w = calloc(1, sizeof *w);
	*state = w;
	assert_non_null(w->authority = skep_authority_create(&diag));
	assert_non_null(w->stranger = skep_authority_create(&diag));
	w->root = process(w->authority, RUN, 0);
	w->third = process(w->authority, RUN, 3);
	w->impostor = process(w->stranger, RUN, 0);
	skep_authority_fingerprint(w->authority, w->fingerprint);
	return 0;
}

static int finish(void **state)
{
	struct world *w = *state;
	skep_identity_destroy(w->root);
	skep_identity_destroy(w->third);
	skep_identity_destroy(w->impostor);
	skep_authority_destroy(w->authority);
	skep_authority_destroy(w->stranger);
	free(w);
	return 0;
}

/* ---- handshakes -------------------------------------------------------------------------------------------------- */

/* Bytes that left one side and have not come to the other one lie in the BIO behind it. */
static SSL *side(SSL_CTX *context, bool server)
{
	SSL *ssl = SSL_new(context);
	BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
	assert_true(ssl != NULL && in != NULL && out != NULL);
	SSL_set_bio(ssl, in, out);
	server ? SSL_set_accept_state(ssl) : SSL_set_connect_state(ssl);
	return ssl;
}

/* Also appends them to `copy`, if there is one. Returns how many moved. */
static int move(SSL *from, SSL *to, BIO *copy)
{
	char bytes[4096];
	int moved = 0, now;
	while ((now = BIO_read(SSL_get_wbio(from), bytes, sizeof bytes)) > 0) {
		assert_int_equal(BIO_write(SSL_get_rbio(to), bytes, now), now);
		if (copy != NULL)
			assert_int_equal(BIO_write(copy, bytes, now), now);
		moved += now;
	}
	return moved;
}

struct met {
	bool server, client; /* whether it takes the other one */
	uint32_t server_sees, client_sees;
	uint64_t guest_sees; /* the run, by the certificate alone */
	char server_says[256], client_says[256];
};

/* Whether this side is still there; the first error goes to ret_why. */
static bool step(SSL *ssl, bool *ret_failed, char *ret_why, size_t size)
{
	int done = *ret_failed ? 1 : SSL_do_handshake(ssl);
	if (done != 1 && SSL_get_error(ssl, done) != SSL_ERROR_WANT_READ) {
		skep_tls_error(ret_why, size);
		*ret_failed = true;
	}
	return !*ret_failed;
}

/* A byte from the server tells a client that it was taken. */
static void meet(SSL *server, SSL *client, BIO *copy, struct met *ret)
{
	bool server_failed = false, client_failed = false;
	char byte = 'x';
	*ret = (struct met){.server_sees = NONE, .client_sees = NONE};
	ERR_clear_error();
	do {
		step(client, &client_failed, ret->client_says, sizeof ret->client_says);
		step(server, &server_failed, ret->server_says, sizeof ret->server_says);
	} while (move(client, server, copy) + move(server, client, NULL) > 0);
	ret->server = !server_failed && SSL_is_init_finished(server) && SSL_write(server, &byte, 1) == 1;
	move(server, client, NULL);
	if (!client_failed && SSL_is_init_finished(client)) {
		ret->client = SSL_read(client, &byte, 1) == 1;
		if (!ret->client)
			skep_tls_error(ret->client_says, sizeof ret->client_says);
	}
	ret->server_sees = skep_tls_peer_rank(server, RUN);
	ret->client_sees = skep_tls_peer_rank(client, RUN);
	assert_true(skep_tls_peer(client, &ret->guest_sees) == ret->client_sees || ret->guest_sees != RUN);
}

static struct met meet_contexts(SSL_CTX *server, SSL_CTX *client)
{
	struct met met;
	assert_true(server != NULL && client != NULL);
	SSL *a = side(server, true), *b = side(client, false);
	meet(a, b, NULL, &met);
	SSL_free(a);
	SSL_free(b);
	return met;
}

static struct met meet_once(SSL_CTX *server, SSL_CTX *client)
{
	struct met met = meet_contexts(server, client);
	SSL_CTX_free(server);
	SSL_CTX_free(client);
	return met;
}

static SSL_CTX *server_of(const struct skep_identity *identity, bool for_guests)
{
	struct skep_diag diag = {0};
	return skep_tls_server(identity, for_guests, &diag);
}

static SSL_CTX *client_of(const struct skep_identity *identity)
{
	struct skep_diag diag = {0};
	return skep_tls_client(identity, &diag);
}

static SSL_CTX *guest_of(const struct world *w)
{
	struct skep_diag diag = {0};
	return skep_tls_guest(w->fingerprint, &diag);
}

/* The server stays. */
static struct met meet_guest(SSL_CTX *server, const struct world *w)
{
	SSL_CTX *guest = guest_of(w);
	struct met met = meet_contexts(server, guest);
	SSL_CTX_free(guest);
	return met;
}

static bool refused_by_both(const struct met *met)
{
	return !met->server && !met->client && met->server_sees == NONE;
}

/* ---- who is taken ------------------------------------------------------------------------------------------------ */

static void each_side_sees_the_rank_of_the_other(void **state)
{
	struct world *w = *state;
	for (int for_guests = 0; for_guests < 2; for_guests++) {
		struct met met = meet_once(server_of(w->root, for_guests), client_of(w->third));
		assert_true(met.server && met.client);
		assert_int_equal(met.server_sees, 3);
		assert_int_equal(met.client_sees, 0);
	}
	struct met met = meet_once(server_of(w->third, false), client_of(w->third));
	assert_true(met.server && met.client && met.server_sees == 3 && met.client_sees == 3);
}

static void a_guest_sees_the_run_and_shows_nothing(void **state)
{
	struct world *w = *state;
	struct met met = meet_once(server_of(w->root, true), guest_of(w));
	assert_true(met.server && met.client);
	assert_true(met.server_sees == NONE && met.client_sees == 0 && met.guest_sees == RUN);
}

static void a_rank_of_another_run_is_none(void **state)
{
	struct world *w = *state;
	struct skep_identity *earlier = process(w->authority, RUN - 1, 3);
	struct met met = meet_once(server_of(w->root, false), client_of(earlier));
	assert_true(met.server && met.client && met.client_sees == 0);
	assert_int_equal(met.server_sees, NONE);
	skep_identity_destroy(earlier);
}

static void only_the_agreed_version_and_ciphers_are_spoken(void **state)
{
	struct world *w = *state;
	SSL_CTX *server = server_of(w->root, false), *client = client_of(w->third);
	struct met met;
	SSL *a = side(server, true), *b = side(client, false);
	meet(a, b, NULL, &met);
	assert_string_equal(SSL_get_version(b), "TLSv1.3");
	assert_string_equal(SSL_get_cipher(b), "TLS_AES_128_GCM_SHA256");
	SSL_free(a);
	SSL_free(b);
	assert_int_equal(SSL_CTX_set_ciphersuites(client, "TLS_CHACHA20_POLY1305_SHA256"), 1);
	met = meet_contexts(server, client);
	assert_true(met.server && met.client);
	assert_int_equal(SSL_CTX_set_ciphersuites(client, "TLS_AES_256_GCM_SHA384"), 1);
	met = meet_contexts(server, client);
	assert_true(refused_by_both(&met));
	SSL_CTX_free(server);
	SSL_CTX_free(client);
}

/* Between the dates of the certificates, which are those of all clocks. */
static void the_clock_does_not_matter(void **state)
{
	struct world *w = *state;
	static const int64_t times[] = {1, 946684800, 4102444800, INT64_C(253402300798)}; /* 1970, 2000, 2100, 9999 */
	for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
		for (int guest = 0; guest < 2; guest++) {
			SSL_CTX *server = server_of(w->root, true), *client = guest ? guest_of(w) : client_of(w->third);
			X509_VERIFY_PARAM_set_time(SSL_CTX_get0_param(server), (time_t)times[i]);
			X509_VERIFY_PARAM_set_time(SSL_CTX_get0_param(client), (time_t)times[i]);
			struct met met = meet_once(server, client);
			assert_true(met.server && met.client && met.client_sees == 0);
			assert_int_equal(met.server_sees, guest ? NONE : 3);
		}
	}
}

/* The same by certificates of which one has ended and one has not begun. */
static void dates_of_certificates_do_not_matter(void **state)
{
	struct world *w = *state;
	static const char *const dates[][2] = {
		{"19700101000000Z", "19700102000000Z"}, {"99981231235959Z", "99991231235959Z"}};
	for (int i = 0; i < 2; i++) {
		X509 *of[] = {X509_dup(w->root->certificate), X509_dup(w->third->certificate)};
		SSL_CTX *server = server_of(w->root, true), *client = client_of(w->third);
		for (int j = 0; j < 2; j++) {
			assert_int_equal(ASN1_TIME_set_string_X509(X509_getm_notBefore(of[j]), dates[i][0]), 1);
			assert_int_equal(ASN1_TIME_set_string_X509(X509_getm_notAfter(of[j]), dates[i][1]), 1);
			assert_true(X509_sign(of[j], w->authority->key, EVP_sha256()) > 0);
			assert_int_equal(SSL_CTX_use_certificate(j ? client : server, of[j]), 1);
			X509_free(of[j]);
		}
		struct met met = meet_contexts(server, client);
		assert_true(met.server && met.client && met.client_sees == 0 && met.server_sees == 3);
		met = meet_once(server, guest_of(w));
		assert_true(met.server && met.client && met.client_sees == 0);
		SSL_CTX_free(client);
	}
}

/* ---- who is refused ---------------------------------------------------------------------------------------------- */

static void certificates_of_another_authority_are_refused(void **state)
{
	struct world *w = *state;
	for (int for_guests = 0; for_guests < 2; for_guests++) {
		struct met met = meet_once(server_of(w->root, for_guests), client_of(w->impostor));
		assert_true(refused_by_both(&met));
		met = meet_once(server_of(w->impostor, for_guests), client_of(w->third));
		assert_true(refused_by_both(&met));
		assert_int_equal(met.client_sees, NONE);
		assert_non_null(strstr(met.client_says, "certificate verify failed"));
	}
}

static void without_a_certificate_only_a_guest_comes_in(void **state)
{
	struct world *w = *state;
	struct met met = meet_once(server_of(w->root, false), guest_of(w));
	assert_true(refused_by_both(&met));
	assert_non_null(strstr(met.server_says, "peer did not return a certificate"));
	assert_non_null(strstr(met.client_says, "certificate required"));
}

static void a_guest_refuses_every_other_fingerprint(void **state)
{
	struct world *w = *state;
	struct skep_diag diag = {0};
	for (int bit = 0; bit < (int)SKEP_FINGERPRINT_BYTES * 8; bit += 15) {
		uint8_t wrong[SKEP_FINGERPRINT_BYTES];
		memcpy(wrong, w->fingerprint, sizeof wrong);
		wrong[bit / 8] ^= (uint8_t)(1u << bit % 8);
		struct met met = meet_once(server_of(w->root, true), skep_tls_guest(wrong, &diag));
		assert_true(refused_by_both(&met) && met.client_sees == NONE);
		assert_non_null(strstr(met.client_says, "certificate verify failed"));
	}
	struct met met = meet_once(server_of(w->impostor, true), guest_of(w));
	assert_true(refused_by_both(&met) && met.client_sees == NONE);
}

/* Everybody has seen the authority's certificate and can send it along. */
static void the_right_authority_beside_a_wrong_certificate_is_refused(void **state)
{
	struct world *w = *state;
	SSL_CTX *server = server_of(w->impostor, true);
	assert_int_equal(SSL_CTX_clear_chain_certs(server), 1);
	assert_int_equal(SSL_CTX_add1_chain_cert(server, w->authority->certificate), 1);
	struct met met = meet_guest(server, w);
	assert_true(refused_by_both(&met) && met.client_sees == NONE);
	met = meet_once(server, client_of(w->third));
	assert_true(refused_by_both(&met) && met.client_sees == NONE);
}

static void a_guest_refuses_a_rank_that_is_not_the_root(void **state)
{
	struct world *w = *state;
	struct met met = meet_once(server_of(w->third, true), guest_of(w));
	assert_true(refused_by_both(&met) && met.client_sees == NONE);
}

/* Rank 3 signs a certificate of rank 0 for itself and sends the whole chain. */
static void a_process_cannot_sign(void **state)
{
	struct world *w = *state;
	char name[SKEP_CERTIFICATE_NAME];
	skep_certificate_name(RUN, 0, name);
	X509 *forged = skep_certificate_make(w->third->key, name, w->third->certificate, w->third->key);
	assert_non_null(forged);
	SSL_CTX *server = server_of(w->third, true), *client = client_of(w->third);
	for (int i = 0; i < 2; i++) {
		SSL_CTX *liar = i ? server : client;
		assert_int_equal(SSL_CTX_use_certificate(liar, forged), 1);
		assert_int_equal(SSL_CTX_add1_chain_cert(liar, w->third->certificate), 1);
	}
	struct met met = meet_guest(server, w);
	assert_true(refused_by_both(&met) && met.client_sees == NONE);
	met = meet_once(server, client_of(w->root));
	assert_true(refused_by_both(&met) && met.client_sees == NONE);
	met = meet_once(server_of(w->root, true), client);
	assert_true(refused_by_both(&met));
	X509_free(forged);
}

static void tls_1_2_is_refused(void **state)
{
	struct world *w = *state;
	SSL_CTX *old = SSL_CTX_new(TLS_method());
	assert_int_equal(SSL_CTX_set_max_proto_version(old, TLS1_2_VERSION), 1);
	SSL_CTX *server = server_of(w->root, true);
	struct met met = meet_contexts(server, old);
	SSL_CTX_free(server);
	assert_true(refused_by_both(&met));
	assert_non_null(strstr(met.server_says, "unsupported protocol"));
	assert_int_equal(SSL_CTX_use_certificate(old, w->root->certificate), 1);
	assert_int_equal(SSL_CTX_use_PrivateKey(old, w->root->key), 1);
	met = meet_once(old, client_of(w->third));
	assert_true(refused_by_both(&met) && met.client_sees == NONE);
}

static void nothing_is_resumed(void **state)
{
	struct world *w = *state;
	SSL_CTX *server = server_of(w->root, false), *client = client_of(w->third);
	SSL_CTX_set_session_cache_mode(client, SSL_SESS_CACHE_CLIENT);
	struct met met;
	SSL *a = side(server, true), *b = side(client, false);
	meet(a, b, NULL, &met);
	SSL_SESSION *session = SSL_get1_session(b);
	assert_true(met.client && session != NULL && !SSL_SESSION_is_resumable(session));
	SSL_free(a);
	SSL_free(b);
	a = side(server, true), b = side(client, false);
	SSL_set_session(b, session);
	meet(a, b, NULL, &met);
	assert_true(met.client && met.server_sees == 3 && !SSL_session_reused(a) && !SSL_session_reused(b));
	SSL_SESSION_free(session);
	SSL_free(a);
	SSL_free(b);
	SSL_CTX_free(server);
	SSL_CTX_free(client);
}

/* Hands these bytes to a new server; whether it took them for a handshake. */
static bool taken_from(SSL_CTX *context, const void *bytes, int size)
{
	SSL *ssl = side(context, true);
	BIO_write(SSL_get_rbio(ssl), bytes, size);
	bool taken = SSL_do_handshake(ssl) == 1;
	assert_true(taken || SSL_get_error(ssl, -1) != SSL_ERROR_NONE);
	assert_int_equal(skep_tls_peer_rank(ssl, RUN), NONE);
	SSL_free(ssl);
	ERR_clear_error();
	return taken;
}

static void a_replayed_handshake_is_refused(void **state)
{
	struct world *w = *state;
	SSL_CTX *server = server_of(w->root, false), *client = client_of(w->third);
	BIO *copy = BIO_new(BIO_s_mem());
	struct met met;
	SSL *a = side(server, true), *b = side(client, false);
	meet(a, b, copy, &met);
	assert_true(met.server && met.client);
	char *bytes;
	long size = BIO_get_mem_data(copy, &bytes);
	assert_true(size > 500);
	assert_false(taken_from(server, bytes, (int)size));
	SSL_free(a);
	SSL_free(b);
	BIO_free(copy);
	SSL_CTX_free(server);
	SSL_CTX_free(client);
}

static void garbage_is_refused(void **state)
{
	struct world *w = *state;
	SSL_CTX *server = server_of(w->root, true);
	for (int i = 0; i < 2000; i++) {
		uint8_t bytes[600];
		assert_int_equal(RAND_bytes(bytes, sizeof bytes), 1);
		if (i % 2) /* the head of a record with a ClientHello */
			memcpy(bytes, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11);
		assert_false(taken_from(server, bytes, 1 + i % (int)sizeof bytes));
	}
	SSL_CTX_free(server);
}

/* One bit of one flight of either side is changed on the way. */
static void what_is_changed_on_the_way_is_refused(void **state)
{
	struct world *w = *state;
	SSL_CTX *server = server_of(w->root, false), *client = client_of(w->third);
	for (int i = 0; i < 300; i++) {
		SSL *a = side(server, true), *b = side(client, false);
		char *bytes;
		struct met met;
		SSL_do_handshake(b);
		if (i % 2) {
			move(b, a, NULL);
			SSL_do_handshake(a);
		}
		long size = BIO_get_mem_data(SSL_get_wbio(i % 2 ? a : b), &bytes);
		assert_true(size > 100);
		bytes[5 + i * 7 % (size - 5)] ^= (char)(1 << i % 8); /* behind the head, whose version is not read */
		meet(a, b, NULL, &met);
		assert_false(met.server && met.client);
		SSL_free(a);
		SSL_free(b);
	}
	SSL_CTX_free(server);
	SSL_CTX_free(client);
}

static void a_chain_without_end_is_refused(void **state)
{
	struct world *w = *state;
	SSL_CTX *client = client_of(w->third);
	for (int i = 0; i < 10; i++)
		assert_int_equal(SSL_CTX_add1_chain_cert(client, w->authority->certificate), 1);
	struct met met = meet_once(server_of(w->root, true), client);
	assert_true(refused_by_both(&met));
	assert_non_null(strstr(met.server_says, "excessive message size"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_side_sees_the_rank_of_the_other),
		cmocka_unit_test(a_guest_sees_the_run_and_shows_nothing),
		cmocka_unit_test(a_rank_of_another_run_is_none),
		cmocka_unit_test(only_the_agreed_version_and_ciphers_are_spoken),
		cmocka_unit_test(the_clock_does_not_matter),
		cmocka_unit_test(dates_of_certificates_do_not_matter),
		cmocka_unit_test(certificates_of_another_authority_are_refused),
		cmocka_unit_test(without_a_certificate_only_a_guest_comes_in),
		cmocka_unit_test(a_guest_refuses_every_other_fingerprint),
		cmocka_unit_test(the_right_authority_beside_a_wrong_certificate_is_refused),
		cmocka_unit_test(a_guest_refuses_a_rank_that_is_not_the_root),
		cmocka_unit_test(a_process_cannot_sign),
		cmocka_unit_test(tls_1_2_is_refused),
		cmocka_unit_test(nothing_is_resumed),
		cmocka_unit_test(a_replayed_handshake_is_refused),
		cmocka_unit_test(garbage_is_refused),
		cmocka_unit_test(what_is_changed_on_the_way_is_refused),
		cmocka_unit_test(a_chain_without_end_is_refused),
	};
	return cmocka_run_group_tests(tests, begin, finish);
}
