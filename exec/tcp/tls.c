/* SPDX-License-Identifier: Apache-2.0
 *
 * tls.c - contexts for connections, and what a connection says of the other side (tls.h).
 */
#include "exec/tcp/tls.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/x509_vfy.h>

#include "exec/tcp/certificate.h"

enum {
	CHAIN_BYTES = 4096, /* of a chain that is taken: two certificates and what frames them */
	PIN_TEXT = 2 * SKEP_FINGERPRINT_BYTES + 1u, /* a fingerprint in hexadecimal */
};

/* ---- what all have in common ------------------------------------------------------------------------------------- */

/* All of it is said here, so that a configuration of OpenSSL on some host changes nothing. */
static bool restrict_handshake(SSL_CTX *c)
{
	return SSL_CTX_set_min_proto_version(c, TLS1_3_VERSION) == 1 &&
	       SSL_CTX_set_max_proto_version(c, TLS1_3_VERSION) == 1 &&
	       SSL_CTX_set_ciphersuites(c, "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256") == 1 &&
	       SSL_CTX_set1_groups_list(c, "X25519:P-256") == 1 && SSL_CTX_set1_sigalgs_list(c, "ECDSA+SHA256") == 1 &&
	       SSL_CTX_set1_client_sigalgs_list(c, "ECDSA+SHA256") == 1 && SSL_CTX_set_num_tickets(c, 0) == 1 &&
	       SSL_CTX_set_max_early_data(c, 0) == 1 && SSL_CTX_set_recv_max_early_data(c, 0) == 1;
}

/* Depth 0: nothing between the certificate and the authority's. */
static bool restrict_chain(SSL_CTX *c)
{
	SSL_CTX_set_max_cert_list(c, CHAIN_BYTES);
	SSL_CTX_set_verify_depth(c, 0);
	return X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(c), X509_V_FLAG_NO_CHECK_TIME) == 1;
}

/* Buffers go back while a connection is idle, since most of a swarm's are, and a stranger's all the time. */
static void set_modes(SSL_CTX *c)
{
	SSL_CTX_set_options(c,
		SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
	SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_mode(c, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
				    SSL_MODE_RELEASE_BUFFERS | SSL_MODE_NO_AUTO_CHAIN);
	SSL_CTX_set_read_ahead(c, 1);
}

/* NULL, with reterr, if it is not `good`. */
static SSL_CTX *finish(SSL_CTX *c, bool good, struct skep_diag *reterr)
{
	char why[256];
	if (good) {
		ERR_clear_error();
		return c;
	}
	skep_fail(reterr, "cannot prepare TLS 1.3: %s", skep_tls_error(why, sizeof why));
	SSL_CTX_free(c);
	return NULL;
}

static SSL_CTX *begin(const SSL_METHOD *method)
{
	SSL_CTX *c = SSL_CTX_new(method);
	if (c == NULL)
		return NULL;
	set_modes(c);
	if (restrict_handshake(c) && restrict_chain(c))
		return c;
	SSL_CTX_free(c);
	return NULL;
}

/* ---- with a certificate ------------------------------------------------------------------------------------------ */

/* The authority's certificate travels too: a guest has only its fingerprint. */
static bool show(SSL_CTX *c, const struct skep_identity *identity)
{
	return SSL_CTX_use_certificate(c, identity->certificate) == 1 &&
	       SSL_CTX_add1_chain_cert(c, identity->authority) == 1 && SSL_CTX_use_PrivateKey(c, identity->key) == 1 &&
	       SSL_CTX_check_private_key(c) == 1 &&
	       X509_STORE_add_cert(SSL_CTX_get_cert_store(c), identity->authority) == 1;
}

SSL_CTX *skep_tls_server(const struct skep_identity *identity, bool for_guests, struct skep_diag *reterr)
{
	assert(identity->certificate != NULL);
	SSL_CTX *c = begin(TLS_server_method());
	if (c != NULL)
		SSL_CTX_set_verify(c, SSL_VERIFY_PEER | (for_guests ? 0 : SSL_VERIFY_FAIL_IF_NO_PEER_CERT), NULL);
	return finish(c, c != NULL && show(c, identity), reterr);
}

SSL_CTX *skep_tls_client(const struct skep_identity *identity, struct skep_diag *reterr)
{
	assert(identity->certificate != NULL);
	SSL_CTX *c = begin(TLS_client_method());
	if (c != NULL)
		SSL_CTX_set_verify(c, SSL_VERIFY_PEER, NULL);
	return finish(c, c != NULL && show(c, identity), reterr);
}

/* ---- with a fingerprint ------------------------------------------------------------------------------------------ */

static void pin_text(const uint8_t fingerprint[SKEP_FINGERPRINT_BYTES], char ret[PIN_TEXT])
{
	for (size_t i = 0; i < SKEP_FINGERPRINT_BYTES; i++)
		snprintf(ret + 2 * i, 3, "%02x", fingerprint[i]);
}

static bool is_pinned(const X509 *certificate, const char *pin)
{
	uint8_t digest[SKEP_FINGERPRINT_BYTES];
	char text[PIN_TEXT];
	if (X509_digest(certificate, EVP_sha256(), digest, NULL) != 1)
		return false;
	pin_text(digest, text);
	return strcmp(text, pin) == 0;
}

/* The one of these certificates with the fingerprint, as the only one that is trusted; NULL: none has it, or no memory. */
static STACK_OF(X509) * find_pinned(const STACK_OF(X509) * came, const char *pin)
{
	for (int i = 0; i < sk_X509_num(came); i++) {
		STACK_OF(X509) *trusted = is_pinned(sk_X509_value(came, i), pin) ? sk_X509_new_null() : NULL;
		if (trusted != NULL && sk_X509_push(trusted, sk_X509_value(came, i)) > 0)
			return trusted;
		sk_X509_free(trusted);
	}
	return NULL;
}

static int verify_with(X509_STORE_CTX *check, STACK_OF(X509) * trusted)
{
	uint64_t run;
	X509_STORE_CTX_set0_trusted_stack(check, trusted);
	if (X509_verify_cert(check) != 1)
		return 0;
	if (skep_certificate_rank(X509_STORE_CTX_get0_cert(check), &run) == 0)
		return 1;
	X509_STORE_CTX_set_error(check, X509_V_ERR_APPLICATION_VERIFICATION);
	return 0;
}

/* The fingerprint stands where the host's name would, a copy of it in each verification. It is taken from there, since no
 * certificate has it as its name; one that were verified in another way would be refused for that. */
static int verify_pinned(X509_STORE_CTX *check, void *data)
{
	(void)data;
	X509_VERIFY_PARAM *parameters = X509_STORE_CTX_get0_param(check);
	const char *pin = X509_VERIFY_PARAM_get0_host(parameters, 0);
	STACK_OF(X509) *trusted = pin != NULL ? find_pinned(X509_STORE_CTX_get0_untrusted(check), pin) : NULL;
	int good = 0;
	if (trusted != NULL && X509_VERIFY_PARAM_set1_host(parameters, NULL, 0) == 1)
		good = verify_with(check, trusted);
	else
		X509_STORE_CTX_set_error(check, X509_V_ERR_CERT_UNTRUSTED);
	X509_STORE_CTX_set0_trusted_stack(check, NULL);
	sk_X509_free(trusted);
	return good;
}

SSL_CTX *skep_tls_guest(const uint8_t fingerprint[SKEP_FINGERPRINT_BYTES], struct skep_diag *reterr)
{
	char pin[PIN_TEXT];
	pin_text(fingerprint, pin);
	SSL_CTX *c = begin(TLS_client_method());
	if (c != NULL) {
		SSL_CTX_set_verify(c, SSL_VERIFY_PEER, NULL);
		SSL_CTX_set_cert_verify_callback(c, verify_pinned, NULL);
	}
	return finish(c, c != NULL && X509_VERIFY_PARAM_set1_host(SSL_CTX_get0_param(c), pin, 0) == 1, reterr);
}

/* ---- of a connection --------------------------------------------------------------------------------------------- */

uint32_t skep_tls_peer(const SSL *ssl, uint64_t *ret_run)
{
	const X509 *shown = SSL_is_init_finished(ssl) ? SSL_get0_peer_certificate(ssl) : NULL;
	*ret_run = 0;
	if (shown == NULL || SSL_get_verify_result(ssl) != X509_V_OK)
		return UINT32_MAX;
	return skep_certificate_rank(shown, ret_run);
}

uint32_t skep_tls_peer_rank(const SSL *ssl, uint64_t run)
{
	uint64_t shown;
	uint32_t rank = skep_tls_peer(ssl, &shown);
	return shown == run ? rank : UINT32_MAX;
}

const char *skep_tls_error(char *ret, size_t size)
{
	const char *data = NULL;
	int flags = 0;
	unsigned long error = ERR_peek_last_error_all(NULL, NULL, NULL, &data, &flags);
	const char *reason = ERR_SYSTEM_ERROR(error) ? strerror(ERR_GET_REASON(error)) : ERR_reason_error_string(error);
	/* What OpenSSL calls a wrong version is an answer that is no record of TLS at all. */
	if (ERR_GET_LIB(error) == ERR_LIB_SSL && ERR_GET_REASON(error) == SSL_R_WRONG_VERSION_NUMBER)
		reason = "it does not speak TLS, so another program has the port";
	bool more = (flags & ERR_TXT_STRING) != 0 && data != NULL && data[0] != '\0';
	snprintf(ret, size, "%s%s%s",
		error == 0 ? "no reason is known"
		: reason   ? reason
			   : "unknown error",
		more ? ": " : "", more ? data : "");
	ERR_clear_error();
	return ret;
}
