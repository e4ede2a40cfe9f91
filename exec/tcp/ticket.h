/* SPDX-License-Identifier: Apache-2.0
 *
 * ticket.h - what `skep serve` prints and `skep join` is given: whom to trust, and a secret that admits.
 *
 * The fingerprint lets a machine that knows nothing else tell the right server from one in its place, so the secret is only
 * ever said to the right one. The text has a checksum: a ticket that was cut or mistyped is refused where it was typed, and
 * what a server refuses is a ticket of another run, one that is used up, or a revoked one.
 */
#pragma once

#include <stdio.h>

#include "base/diag.h"

#define SKEP_FINGERPRINT_BYTES 32u /* SHA-256 of the authority's certificate (tls.h) */
#define SKEP_SECRET_BYTES 16u

struct skep_ticket {
	uint8_t fingerprint[SKEP_FINGERPRINT_BYTES];
	uint8_t secret[SKEP_SECRET_BYTES];
};

/* ---- as text ----------------------------------------------------------------------------------------------------- */

/* "skep1-" and 80 characters of Crockford's base32 in lower case, which has no i, l, o or u: fingerprint, secret, and their
 * CRC-16, which finds every mistyped character and every two neighbours that changed places. With the final 0: */
#define SKEP_TICKET_TEXT 87u

/* `size` is at least SKEP_TICKET_TEXT. */
void skep_ticket_format(const struct skep_ticket *ticket, char *ret, size_t size);

/* Takes capitals as well, and as Crockford has it i and l for 1 and o for 0. The error says whether the text is no ticket,
 * lacks characters, has too many, or has a mistyped one; it shows nothing of the text, which may be a secret. */
bool skep_ticket_parse(const char *text, struct skep_ticket *ret, struct skep_diag *reterr);

/* In a time that does not depend on the secrets. */
bool skep_ticket_same_secret(const uint8_t a[SKEP_SECRET_BYTES], const uint8_t b[SKEP_SECRET_BYTES]);

/* ---- those of a run ---------------------------------------------------------------------------------------------- */

#define SKEP_ADMISSIONS_UNLIMITED UINT32_MAX

struct skep_ticket_entry {
	uint8_t secret[SKEP_SECRET_BYTES];
	uint32_t left; /* admissions, or SKEP_ADMISSIONS_UNLIMITED */
	bool revoked;
};

/* Begin with {0}. */
struct skep_tickets {
	struct skep_ticket_entry *entry;
	uint32_t count;
	uint64_t
		run; /* that was begun last with them, by its number in folders of checkpoints; 0: none that is known */
};

void skep_tickets_finish(struct skep_tickets *tickets);

/* A secret of random bytes, which admits so often: once, N times, SKEP_ADMISSIONS_UNLIMITED. */
bool skep_tickets_add(struct skep_tickets *tickets, uint32_t admissions, uint8_t ret_secret[SKEP_SECRET_BYTES],
	struct skep_diag *reterr);
/* Lines of "ticket SECRET LEFT", the secret as hexadecimal digits, LEFT a number, "unlimited" or "revoked": and
 * "run NUMBER", for a later process of the same run. Whether the file could be written, the caller asks it. */
void skep_tickets_write(const struct skep_tickets *tickets, FILE *file);
/* Adds those of the lines in a text that begin with "ticket", and takes the number of one with "run"; other lines are not looked
 * at. False: a line is no ticket, a ticket is there twice, or memory lacks. */
bool skep_tickets_read(struct skep_tickets *tickets, const char *text, struct skep_diag *reterr);

enum skep_admission { SKEP_ADMITTED, SKEP_TICKET_UNKNOWN, SKEP_TICKET_USED_UP, SKEP_TICKET_REVOKED, SKEP_ADMISSIONS };
const char *skep_admission_text(enum skep_admission admission); /* "the ticket ..." */

/* ADMITTED takes one of what is left. All secrets are compared, whichever it is, so that the time tells nothing. A revoked one is
 * REVOKED, used up or not. */
enum skep_admission skep_tickets_admit(struct skep_tickets *tickets, const uint8_t secret[SKEP_SECRET_BYTES]);

/* Is it one of the run, if one that is used up? Takes nothing: for who only asks. */
bool skep_tickets_know(const struct skep_tickets *tickets, const uint8_t secret[SKEP_SECRET_BYTES]);

/* Does it admit as many as come? */
bool skep_tickets_endless(const struct skep_tickets *tickets, const uint8_t secret[SKEP_SECRET_BYTES]);

/* It no longer admits; those that it admitted stay. False: no such ticket. */
bool skep_tickets_revoke(struct skep_tickets *tickets, const uint8_t secret[SKEP_SECRET_BYTES]);
