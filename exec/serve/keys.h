/* SPDX-License-Identifier: Apache-2.0
 *
 * keys.h - what a server of a run shows itself with, and whom it knows: the authority of the run and its tickets, which stand in
 * a file that its processes take over from each other, and a certificate of this process alone.
 */
#pragma once

#include "exec/tcp/certificate.h"
#include "exec/tcp/ticket.h"
#include "exec/tcp/tls.h"

struct skep_keys {
	struct skep_authority *authority;
	struct skep_identity *identity;
	SSL_CTX *host; /* for connections taken in */
	struct skep_tickets tickets;
	uint64_t
		run; /* drawn: certificates name it, so processes that an earlier server let in are strangers to this one */
};

/* Those of the file at `path`; NULL: new ones, without a ticket and without a file. skep_keys_close() also after an error. */
bool skep_keys_open(struct skep_keys *keys, const char *path, struct skep_diag *reterr);
void skep_keys_close(struct skep_keys *keys); /* all zero is fine */

/* Is the file one of these? */
bool skep_keys_are_there(const char *path, struct skep_diag *reterr);
/* Writes such a file, with a ticket that admits as many as come. */
bool skep_keys_make(const char *path, struct skep_diag *reterr);
