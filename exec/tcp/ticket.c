/* SPDX-License-Identifier: Apache-2.0
 *
 * ticket.c - see ticket.h.
 */
#include "exec/tcp/ticket.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include "base/grow.h"

#define PREFIX "skep1-"

enum {
	PREFIX_BYTES = sizeof PREFIX - 1,
	CRC_BYTES = 2,
	CONTENT = SKEP_FINGERPRINT_BYTES + SKEP_SECRET_BYTES,
	PACKED = CONTENT + CRC_BYTES,
	CHARACTERS = PACKED * 8 / 5,
};
_Static_assert(PACKED * 8 % 5 == 0, "no character is filled up");
_Static_assert(PREFIX_BYTES + CHARACTERS + 1 == SKEP_TICKET_TEXT, "the text with its final 0");

static const char alphabet[] = "0123456789abcdefghjkmnpqrstvwxyz";

/* ---- as text ----------------------------------------------------------------------------------------------------- */

/* CRC-16/CCITT-FALSE: finds every burst of at most 16 bits, so any two neighbouring characters. */
static uint16_t crc16(const uint8_t *bytes, size_t size)
{
	uint32_t crc = 0xffff;
	for (size_t i = 0; i < size; i++) {
		crc ^= (uint32_t)bytes[i] << 8;
		for (int bit = 0; bit < 8; bit++)
			crc = crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1;
	}
	return (uint16_t)crc;
}

static void pack(const struct skep_ticket *ticket, uint8_t ret[PACKED])
{
	memcpy(ret, ticket->fingerprint, SKEP_FINGERPRINT_BYTES);
	memcpy(ret + SKEP_FINGERPRINT_BYTES, ticket->secret, SKEP_SECRET_BYTES);
	uint16_t crc = crc16(ret, CONTENT);
	ret[CONTENT] = (uint8_t)(crc >> 8);
	ret[CONTENT + 1] = (uint8_t)crc;
}

void skep_ticket_format(const struct skep_ticket *ticket, char *ret, size_t size)
{
	assert(size >= SKEP_TICKET_TEXT);
	uint8_t packed[PACKED];
	pack(ticket, packed);
	memcpy(ret, PREFIX, PREFIX_BYTES);
	uint32_t held = 0, bits = 0;
	char *at = ret + PREFIX_BYTES;
	for (size_t i = 0; i < PACKED; i++) {
		held = held << 8 | packed[i];
		for (bits += 8; bits >= 5; bits -= 5)
			*at++ = alphabet[held >> (bits - 5) & 31];
	}
	*at = '\0';
	OPENSSL_cleanse(packed, sizeof packed);
}

/* What the character stands for, 0 to 31, or -1. */
static int value_of(char character)
{
	int low = tolower((unsigned char)character);
	low = low == 'i' || low == 'l' ? '1' : low == 'o' ? '0' : low;
	const char *at = low != '\0' ? strchr(alphabet, low) : NULL;
	return at ? (int)(at - alphabet) : -1;
}

static bool unpack(const char *text, uint8_t ret[PACKED], struct skep_diag *reterr)
{
	uint32_t held = 0, bits = 0;
	size_t characters = strlen(text);
	for (size_t i = 0; i < characters && i < CHARACTERS; i++) {
		int value = value_of(text[i]);
		if (value < 0)
			return skep_fail(reterr, "the ticket is mistyped: its character %zu is in no ticket",
				PREFIX_BYTES + i + 1);
		held = held << 5 | (uint32_t)value;
		bits += 5;
		if (bits >= 8)
			*ret++ = (uint8_t)(held >> (bits -= 8));
	}
	if (characters == CHARACTERS)
		return true;
	return skep_fail(reterr, "the ticket %s: it has %zu characters, and a whole one has %d",
		characters < CHARACTERS ? "is cut off, or lacks characters" : "is too long", PREFIX_BYTES + characters,
		PREFIX_BYTES + CHARACTERS);
}

bool skep_ticket_parse(const char *text, struct skep_ticket *ret, struct skep_diag *reterr)
{
	uint8_t packed[PACKED], again[PACKED];
	if (strncasecmp(text, PREFIX, PREFIX_BYTES) != 0)
		return skep_fail(reterr, "this is not a ticket: one begins with %s, and skep serve prints it", PREFIX);
	if (!unpack(text + PREFIX_BYTES, packed, reterr))
		return false;
	memcpy(ret->fingerprint, packed, SKEP_FINGERPRINT_BYTES);
	memcpy(ret->secret, packed + SKEP_FINGERPRINT_BYTES, SKEP_SECRET_BYTES);
	pack(ret, again);
	bool same = memcmp(packed, again, sizeof packed) == 0;
	OPENSSL_cleanse(packed, sizeof packed);
	OPENSSL_cleanse(again, sizeof again);
	return same || skep_fail(reterr, "the ticket is mistyped: its checksum does not fit its other characters");
}

bool skep_ticket_same_secret(const uint8_t a[SKEP_SECRET_BYTES], const uint8_t b[SKEP_SECRET_BYTES])
{
	return CRYPTO_memcmp(a, b, SKEP_SECRET_BYTES) == 0;
}

/* ---- those of a run ---------------------------------------------------------------------------------------------- */

void skep_tickets_finish(struct skep_tickets *tickets)
{
	if (tickets->count > 0)
		OPENSSL_cleanse(tickets->entry, tickets->count * sizeof *tickets->entry);
	free(tickets->entry);
	*tickets = (struct skep_tickets){0};
}

static bool put(struct skep_tickets *tickets, const struct skep_ticket_entry *entry, struct skep_diag *reterr)
{
	if (!skep_grow(&tickets->entry, tickets->count, sizeof *tickets->entry))
		return skep_fail(reterr, "no memory for a ticket");
	tickets->entry[tickets->count++] = *entry;
	return true;
}

bool skep_tickets_add(struct skep_tickets *tickets, uint32_t admissions, uint8_t ret_secret[SKEP_SECRET_BYTES],
	struct skep_diag *reterr)
{
	struct skep_ticket_entry entry = {.left = admissions};
	if (RAND_bytes(entry.secret, sizeof entry.secret) != 1)
		return skep_fail(reterr, "no random bytes for a ticket");
	if (!put(tickets, &entry, reterr))
		return false;
	memcpy(ret_secret, entry.secret, sizeof entry.secret);
	return true;
}

void skep_tickets_write(const struct skep_tickets *tickets, FILE *file)
{
	for (uint32_t i = 0; i < tickets->count; i++) {
		const struct skep_ticket_entry *entry = &tickets->entry[i];
		fputs("ticket ", file);
		for (uint32_t at = 0; at < SKEP_SECRET_BYTES; at++)
			fprintf(file, "%02x", entry->secret[at]);
		if (entry->revoked || entry->left == SKEP_ADMISSIONS_UNLIMITED)
			fprintf(file, " %s\n", entry->revoked ? "revoked" : "unlimited");
		else
			fprintf(file, " %" PRIu32 "\n", entry->left);
	}
	if (tickets->run > 0)
		fprintf(file, "run %" PRIu64 "\n", tickets->run);
}

static bool read_line(const char *line, struct skep_ticket_entry *ret)
{
	char word[16];
	int end = 0;
	*ret = (struct skep_ticket_entry){.left = SKEP_ADMISSIONS_UNLIMITED};
	for (uint32_t i = 0; i < SKEP_SECRET_BYTES; i++)
		if (sscanf(line + 2 * i, "%2" SCNx8 "%n", &ret->secret[i], &end) != 1 || end != 2)
			return false;
	if (sscanf(line + (size_t)(2 * SKEP_SECRET_BYTES), " %15[a-z0-9]", word) != 1)
		return false;
	ret->revoked = strcmp(word, "revoked") == 0;
	if (ret->revoked || strcmp(word, "unlimited") == 0)
		return true;
	char *behind;
	uint64_t left = strtoull(word, &behind, 10);
	ret->left = (uint32_t)left;
	return *behind == '\0' && left < SKEP_ADMISSIONS_UNLIMITED;
}

static struct skep_ticket_entry *find(const struct skep_tickets *tickets, const uint8_t *secret)
{
	struct skep_ticket_entry *found = NULL;
	for (uint32_t i = 0; i < tickets->count; i++)
		found = skep_ticket_same_secret(tickets->entry[i].secret, secret) ? &tickets->entry[i] : found;
	return found;
}

bool skep_tickets_read(struct skep_tickets *tickets, const char *text, struct skep_diag *reterr)
{
	static const char begin[] = "ticket ";
	struct skep_ticket_entry entry;
	for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, "run ", 4) == 0)
			tickets->run = strtoull(line + 4, NULL, 10);
		if (strncmp(line, begin, sizeof begin - 1) != 0)
			continue;
		if (!read_line(line + sizeof begin - 1, &entry))
			return skep_fail(reterr, "has a line of a ticket that is none");
		if (find(tickets, entry.secret) != NULL)
			return skep_fail(reterr, "has a ticket twice, so that it cannot be told what it admits");
		if (!put(tickets, &entry, reterr))
			return false;
	}
	return true;
}

enum skep_admission skep_tickets_admit(struct skep_tickets *tickets, const uint8_t secret[SKEP_SECRET_BYTES])
{
	struct skep_ticket_entry *entry = find(tickets, secret);
	if (entry == NULL || entry->revoked || entry->left == 0)
		return entry == NULL ? SKEP_TICKET_UNKNOWN : entry->revoked ? SKEP_TICKET_REVOKED : SKEP_TICKET_USED_UP;
	entry->left -= entry->left != SKEP_ADMISSIONS_UNLIMITED;
	return SKEP_ADMITTED;
}

bool skep_tickets_know(const struct skep_tickets *tickets, const uint8_t secret[SKEP_SECRET_BYTES])
{
	const struct skep_ticket_entry *entry = find(tickets, secret);
	return entry != NULL && !entry->revoked;
}

bool skep_tickets_endless(const struct skep_tickets *tickets, const uint8_t secret[SKEP_SECRET_BYTES])
{
	const struct skep_ticket_entry *entry = find(tickets, secret);
	return entry != NULL && entry->left == SKEP_ADMISSIONS_UNLIMITED;
}

bool skep_tickets_revoke(struct skep_tickets *tickets, const uint8_t secret[SKEP_SECRET_BYTES])
{
	struct skep_ticket_entry *entry = find(tickets, secret);
	if (entry != NULL)
		entry->revoked = true;
	return entry != NULL;
}

const char *skep_admission_text(enum skep_admission admission)
{
	static const char *const texts[SKEP_ADMISSIONS] = {
		[SKEP_ADMITTED] = "the ticket admits",
		[SKEP_TICKET_UNKNOWN] = "the ticket is not one of this run",
		[SKEP_TICKET_USED_UP] = "the ticket is used up",
		[SKEP_TICKET_REVOKED] = "the ticket is revoked",
	};
	return (unsigned)admission < SKEP_ADMISSIONS ? texts[admission] : "?";
}
