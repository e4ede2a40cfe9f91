/* SPDX-License-Identifier: Apache-2.0
 *
 * tls.h - who is who among the processes of a run over TCP: keys, certificates, and TLS 1.3 with nothing else.
 *
 * Each run has an authority of its own: a key and a self-signed certificate, which `serve` makes. A process makes its key itself
 * and shows the public half; the authority signs a certificate that names the run and the process's rank. From then on both sides
 * of each connection show theirs, and whatever the authority did not sign is refused within the handshake, before a byte of
 * the run is read. A guest, which has no certificate yet, knows the server by the fingerprint in its ticket (ticket.h).
 *
 * Time plays no part. The clock of a machine that was just rented may be years off, and a run is over when its authority's key
 * is: so certificates are valid from 1970 to 9999, and no verification looks at the clock.
 *
 * Keys are EC P-256, which everything that has TLS 1.3 has to know, and signatures ECDSA with SHA-256. There are no session
 * tickets, no resumption and no early data: what could be replayed does not exist.
 *
 * In TLS 1.3 a client's handshake ends before the server has looked at the client's certificate. A client learns by its first
 * SSL_read that it was refused; only data from the server says that it was not.
 */
#pragma once

#include <openssl/ssl.h>

#include "exec/tcp/ticket.h"

#define SKEP_CERTIFICATE_MAX                                                                                           \
	1024u /* DER bytes of a certificate or public key that is taken; ours have about 400 and 91 */

struct skep_authority; /* of one run: what `serve` signs with */
struct skep_identity; /* of one process: its key, its certificate, and the certificate of the authority that signed it */

/* ---- the authority ----------------------------------------------------------------------------------------------- */

struct skep_authority *skep_authority_create(struct skep_diag *reterr);
void skep_authority_destroy(struct skep_authority *authority); /* NULL is fine */

/* The tickets, and key and certificate as PEM, whole or not at all, for the owner alone from the moment that the file is there.
 * Who reads it can admit himself to the run. */
bool skep_authority_write(const struct skep_authority *authority, const struct skep_tickets *tickets, const char *path,
	struct skep_diag *reterr);
/* Refuses what is not the key and the self-signed certificate of an authority. Asks for no password. Adds to ret_tickets,
 * which the caller finishes, after an error too. */
struct skep_authority *skep_authority_read(
	const char *path, struct skep_tickets *ret_tickets, struct skep_diag *reterr);

/* SHA-256 of the certificate's DER. */
void skep_authority_fingerprint(const struct skep_authority *authority, uint8_t ret[SKEP_FINGERPRINT_BYTES]);
/* The certificate's DER; returns its bytes, 0: an error. */
size_t skep_authority_certificate(const struct skep_authority *authority, uint8_t ret[SKEP_CERTIFICATE_MAX]);

/* A certificate of this public key (SubjectPublicKeyInfo, DER) for the process `rank` of the run, as server and as client. Its
 * common name is "skep RUN rank RANK", RUN as 16 hexadecimal digits. Returns its bytes; 0: `public_key` is not a P-256 key in
 * its one usual form, or no memory. Without the other half of the key the certificate is of no use. */
size_t skep_authority_issue(const struct skep_authority *authority, uint64_t run, uint32_t rank,
	const uint8_t *public_key, size_t bytes, uint8_t ret[SKEP_CERTIFICATE_MAX]);

/* ---- a process --------------------------------------------------------------------------------------------------- */

/* A fresh key, no certificate yet. */
struct skep_identity *skep_identity_create(struct skep_diag *reterr);
void skep_identity_destroy(struct skep_identity *identity); /* NULL is fine */

/* The public key as skep_authority_issue() takes it; returns its bytes, 0: an error. */
size_t skep_identity_public(const struct skep_identity *identity, uint8_t ret[SKEP_CERTIFICATE_MAX]);

/* Takes the certificate, in place of an earlier one. Refuses one that is not of the identity's own key, that this authority has
 * not signed, or that names no rank; the identity is then as it was. */
bool skep_identity_adopt(struct skep_identity *identity, const uint8_t *certificate, size_t bytes,
	const uint8_t *authority, size_t authority_bytes, struct skep_diag *reterr);

/* ---- connections ------------------------------------------------------------------------------------------------- */

/* Contexts for SSL_new(), which the caller frees (SSL_CTX_free); they do not need the identity any longer. The identity has a
 * certificate. Writes may be partial and may be repeated from another address; a read takes what the socket has
 * (SSL_has_pending() says that there is more). */

/* The side that accepts. Others have to show a certificate of the authority; with `for_guests` they may show none, and one
 * that they show still has to be right. */
SSL_CTX *skep_tls_server(const struct skep_identity *identity, bool for_guests, struct skep_diag *reterr);
/* The side that connects: shows its certificate, and takes a server with any certificate of the authority. Whether the server is
 * the one that was looked for says skep_tls_peer_rank(). */
SSL_CTX *skep_tls_client(const struct skep_identity *identity, struct skep_diag *reterr);
/* Connects without a certificate. Takes a server that is rank 0 of a run whose authority has this fingerprint, and no other. */
SSL_CTX *skep_tls_guest(const uint8_t fingerprint[SKEP_FINGERPRINT_BYTES], struct skep_diag *reterr);

/* After the handshake, the rank in the other side's verified certificate; UINT32_MAX: it showed none, or one of another run. */
uint32_t skep_tls_peer_rank(const SSL *ssl, uint64_t run);
/* The same for who does not know the run yet; *ret_run is that of the certificate, or 0 with UINT32_MAX. */
uint32_t skep_tls_peer(const SSL *ssl, uint64_t *ret_run);

/* The newest of this thread's errors in OpenSSL as a text, cut to `size`; returns ret and empties the queue, as is needed before
 * the next call whose result SSL_get_error() shall explain. */
const char *skep_tls_error(char *ret, size_t size);
