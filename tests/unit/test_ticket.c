/* SPDX-License-Identifier: Apache-2.0
 *
 * test_ticket.c - tickets as texts, with every mistake of one character, and whom they admit.
 */
#include "exec/tcp/ticket.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { PREFIX = 6, WHOLE = SKEP_TICKET_TEXT - 1 };

/* Bytes 0 to 47 with binascii.crc_hqx(bytes, 0xffff), as base64.b32encode() of Python has them in the alphabet of Crockford. */
static const char known[] = "skep1-000g40r40m30e209185gr38e1w8124gk2gahc5rr34d1p70x3rfj08924cj2a9h750mjmasc5mq2y4bf";

static struct skep_ticket counting(void)
{
	struct skep_ticket ticket;
	for (uint8_t i = 0; i < SKEP_FINGERPRINT_BYTES; i++)
		ticket.fingerprint[i] = i;
	for (uint8_t i = 0; i < SKEP_SECRET_BYTES; i++)
		ticket.secret[i] = (uint8_t)(SKEP_FINGERPRINT_BYTES + i);
	return ticket;
}

static bool same(const struct skep_ticket *a, const struct skep_ticket *b)
{
	return memcmp(a->fingerprint, b->fingerprint, SKEP_FINGERPRINT_BYTES) == 0 &&
	       skep_ticket_same_secret(a->secret, b->secret);
}

/* Whether it is refused with these words and without its own text. */
static bool refused(const char *text, const char *words)
{
	struct skep_ticket ticket;
	struct skep_diag diag = {0};
	bool parsed = skep_ticket_parse(text, &ticket, &diag);
	bool shown = strlen(text) >= WHOLE - 1 && strstr(diag.message, text + WHOLE - 20) != NULL;
	return !parsed && diag.set && strstr(diag.message, words) != NULL && !shown;
}

static bool accepted(const char *text)
{
	struct skep_ticket got, ticket = counting();
	struct skep_diag diag = {0};
	return skep_ticket_parse(text, &got, &diag) && !diag.set && same(&got, &ticket);
}

static void the_text_is_the_known_one(void **state)
{
	(void)state;
	struct skep_ticket ticket = counting();
	char text[SKEP_TICKET_TEXT];
	skep_ticket_format(&ticket, text, sizeof text);
	assert_string_equal(text, known);
	assert_true(accepted(text));
}

static void other_ways_to_write_it_are_taken(void **state)
{
	(void)state;
	char text[SKEP_TICKET_TEXT];
	for (int i = 0; i <= WHOLE; i++)
		text[i] = (char)toupper(known[i]);
	assert_true(accepted(text));
	for (int alias = 0; alias < 2; alias++) {
		for (int i = 0; i <= WHOLE; i++)
			text[i] = i < PREFIX        ? known[i]
			          : known[i] == '0' ? 'o'
			          : known[i] != '1' ? known[i]
			          : alias           ? 'l'
			                            : 'I';
		assert_true(accepted(text));
	}
}

static void each_mistyped_character_is_found(void **state)
{
	(void)state;
	static const char alphabet[] = "0123456789abcdefghjkmnpqrstvwxyz";
	for (int i = PREFIX; i < WHOLE; i++) {
		char text[SKEP_TICKET_TEXT];
		strcpy(text, known);
		for (const char *with = alphabet; *with; with++) {
			text[i] = *with;
			assert_true(*with == known[i] ? accepted(text) : refused(text, "checksum"));
		}
		for (const char *with = "u-_ \t\x01\xff/"; *with; with++) {
			char words[64];
			text[i] = *with;
			snprintf(words, sizeof words, "mistyped: its character %d ", i + 1);
			assert_true(refused(text, words));
		}
	}
}

static void neighbours_that_changed_places_are_found(void **state)
{
	(void)state;
	for (int i = PREFIX; i + 1 < WHOLE; i++) {
		char text[SKEP_TICKET_TEXT];
		strcpy(text, known);
		text[i] = known[i + 1];
		text[i + 1] = known[i];
		assert_true(known[i] == known[i + 1] ? accepted(text) : refused(text, "mistyped"));
	}
}

static void cut_and_long_ones_are_told_apart(void **state)
{
	(void)state;
	char text[2 * SKEP_TICKET_TEXT];
	for (int i = PREFIX; i < WHOLE; i++) {
		snprintf(text, sizeof text, "%.*s", i, known);
		assert_true(refused(text, "cut off"));
		snprintf(text, sizeof text, "%.*s%s", i, known, known + i + 1);
		assert_true(refused(text, "has 85 characters, and a whole one has 86"));
	}
	snprintf(text, sizeof text, "%s0", known);
	assert_true(refused(text, "too long"));
}

static void what_is_no_ticket_is_refused(void **state)
{
	(void)state;
	static const char *const cases[] = {"", "s", "skep1", "skep2-", "host:4711", " skep1-0", "skepl-0", "\xff\xff"};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_true(refused(cases[i], "not a ticket"));
}

/* ---- those of a run ---------------------------------------------------------------------------------------------- */

static void admissions_are_counted(void **state)
{
	(void)state;
	struct skep_tickets tickets = {0};
	struct skep_diag diag = {0};
	uint8_t once[SKEP_SECRET_BYTES], thrice[SKEP_SECRET_BYTES], ever[SKEP_SECRET_BYTES], other[SKEP_SECRET_BYTES];
	assert_int_equal(skep_tickets_admit(&tickets, (uint8_t[SKEP_SECRET_BYTES]){0}), SKEP_TICKET_UNKNOWN);
	assert_true(skep_tickets_add(&tickets, 1, once, &diag) && skep_tickets_add(&tickets, 3, thrice, &diag));
	assert_true(skep_tickets_add(&tickets, SKEP_ADMISSIONS_UNLIMITED, ever, &diag));
	memcpy(other, once, sizeof other);
	other[SKEP_SECRET_BYTES - 1] ^= 1;
	for (int i = 0; i < 5; i++) {
		assert_int_equal(skep_tickets_admit(&tickets, once), i < 1 ? SKEP_ADMITTED : SKEP_TICKET_USED_UP);
		assert_int_equal(skep_tickets_admit(&tickets, thrice), i < 3 ? SKEP_ADMITTED : SKEP_TICKET_USED_UP);
		assert_int_equal(skep_tickets_admit(&tickets, ever), SKEP_ADMITTED);
		assert_int_equal(skep_tickets_admit(&tickets, other), SKEP_TICKET_UNKNOWN);
	}
	assert_true(tickets.entry[2].left == SKEP_ADMISSIONS_UNLIMITED);
	skep_tickets_finish(&tickets);
}

/* As skep_tickets_write() writes them. */
static void keep(const struct skep_tickets *tickets, char *ret, size_t size)
{
	FILE *file = fmemopen(ret, size, "w");
	assert_non_null(file);
	skep_tickets_write(tickets, file);
	fclose(file);
}

static void lines_that_are_no_tickets_are_refused(void **state)
{
	(void)state;
	const char *const lines[] = {
		"ticket \n",
		"ticket 0011223344556677\n",
		"ticket 00112233445566778899aabbccddeeff\n",
		"ticket 00112233445566778899aabbccddeeff often\n",
		"ticket 00112233445566778899aabbccddeeff 7x\n",
		"ticket 00112233445566778899aabbccddeeff 99999999999999\n",
		"ticket 00112233445566778899aabbccddeegg 7\n",
		"ticket 00112233445566778899aabbccddeeff revoked\nticket 00112233445566778899aabbccddeeff 7\n",
	};
	for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
		struct skep_tickets tickets = {0};
		struct skep_diag diag = {0};
		assert_false(skep_tickets_read(&tickets, lines[i], &diag));
		assert_true(diag.set);
		skep_tickets_finish(&tickets);
	}
}

static void revoked_ones_do_not_admit(void **state)
{
	(void)state;
	struct skep_tickets tickets = {0}, later = {0};
	struct skep_diag diag = {0};
	uint8_t first[SKEP_SECRET_BYTES], second[SKEP_SECRET_BYTES], third[SKEP_SECRET_BYTES];
	uint8_t unknown[SKEP_SECRET_BYTES] = {0};
	char text[512];
	assert_true(skep_tickets_add(&tickets, SKEP_ADMISSIONS_UNLIMITED, first, &diag));
	assert_true(skep_tickets_add(&tickets, 2, second, &diag));
	assert_int_equal(skep_tickets_admit(&tickets, first), SKEP_ADMITTED);
	assert_int_equal(skep_tickets_admit(&tickets, second), SKEP_ADMITTED);
	assert_true(skep_tickets_add(&tickets, SKEP_ADMISSIONS_UNLIMITED, third, &diag));
	assert_true(skep_tickets_revoke(&tickets, first) && !skep_tickets_revoke(&tickets, unknown));
	keep(&tickets, text, sizeof text);
	assert_true(skep_tickets_read(&later, text, &diag));
	assert_int_equal(later.count, 3);
	assert_true(skep_tickets_endless(&later, third) && !skep_tickets_endless(&later, second));
	assert_int_equal(skep_tickets_admit(&later, third), SKEP_ADMITTED);
	assert_int_equal(skep_tickets_admit(&later, first), SKEP_TICKET_REVOKED);
	assert_int_equal(skep_tickets_admit(&later, second), SKEP_ADMITTED);
	assert_int_equal(skep_tickets_admit(&later, second), SKEP_TICKET_USED_UP);
	assert_true(skep_tickets_revoke(&later, second));
	assert_int_equal(skep_tickets_admit(&later, second), SKEP_TICKET_REVOKED);
	skep_tickets_finish(&tickets);
	skep_tickets_finish(&later);
}

static void secrets_differ(void **state)
{
	(void)state;
	enum { MANY = 500 };
	static uint8_t secrets[MANY][SKEP_SECRET_BYTES];
	struct skep_tickets tickets = {0};
	struct skep_diag diag = {0};
	for (int i = 0; i < MANY; i++) {
		assert_true(skep_tickets_add(&tickets, 1, secrets[i], &diag));
		for (int j = 0; j < i; j++)
			assert_false(skep_ticket_same_secret(secrets[i], secrets[j]));
	}
	for (int i = MANY - 1; i >= 0; i--)
		assert_int_equal(skep_tickets_admit(&tickets, secrets[i]), SKEP_ADMITTED);
	skep_tickets_finish(&tickets);
}

static void each_answer_has_words_of_its_own(void **state)
{
	(void)state;
	for (int i = 0; i < SKEP_ADMISSIONS; i++)
		for (int j = 0; j < i; j++)
			assert_string_not_equal(skep_admission_text(i), skep_admission_text(j));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_text_is_the_known_one),
		cmocka_unit_test(other_ways_to_write_it_are_taken),
		cmocka_unit_test(each_mistyped_character_is_found),
		cmocka_unit_test(neighbours_that_changed_places_are_found),
		cmocka_unit_test(cut_and_long_ones_are_told_apart),
		cmocka_unit_test(what_is_no_ticket_is_refused),
		cmocka_unit_test(admissions_are_counted),
		cmocka_unit_test(revoked_ones_do_not_admit),
		cmocka_unit_test(lines_that_are_no_tickets_are_refused),
		cmocka_unit_test(secrets_differ),
		cmocka_unit_test(each_answer_has_words_of_its_own),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
