/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_words.c - any bytes as what a stranger says to `skep serve`, or it to a machine that joins: the words of a record, a
 * connection full of records, a ticket as text, the file of a run's tickets. Refused, or values that are written back the same.
 *
 * The first byte of the input chooses: 'w' the words of the record whose type the second byte is, 'c' a connection, of
 * which the second byte says how much may come as a tensor, 't' a ticket, 'a' tickets.
 *
 *   clang -DSKEP_LIBFUZZER -fsanitize=fuzzer,address,undefined ...    then: fuzz_words FOLDER
 *   without SKEP_LIBFUZZER it is a plain program: the files of its arguments, each also in damaged versions
 */
#include <fcntl.h>
#include <sys/socket.h>

#include "exec/tcp/ticket.h"
#include "exec/tcp/words.h"
#include "tests/fuzz/damage.h"

enum { DAMAGES = 2000, SINK = 1 << 12 };

static struct {
	unsigned taken, refused, records, tickets;
} tried; /* for the last line */

static void try_words(uint8_t type, const uint8_t *bytes, size_t size)
{
	static uint8_t again[SKEP_RECORD_MAX];
	union skep_words words;
	if (size > SKEP_RECORD_MAX || type < SKEP_RECORD_MEMBER)
		return;
	uint8_t *copy = malloc(size + (size == 0));
	must(copy);
	memcpy(copy, bytes, size);
	const struct skep_record record = {.type = type, .content = copy, .bytes = (uint32_t)size};
	bool fine = skep_words_decode(&record, &words);
	tried.taken += fine;
	tried.refused += !fine;
	if (fine)
		must(skep_words_encode(type, &words, again) == size && memcmp(again, copy, size) == 0);
	free(copy);
}

/* As a bare one, for TLS has its own bytes; what comes after its handshake is the same. */
static void try_connection(size_t tensor, const uint8_t *bytes, size_t size)
{
	int end[2];
	uint8_t *sink = malloc(SINK);
	struct skep_channel channel;
	struct skep_record record;
	must(sink && socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, end) == 0);
	must(skep_channel_open(&channel, end[0], true, NULL, true));
	channel.sink = sink;
	channel.sink_left = tensor;
	for (size_t at = 0; at < size && channel.state == SKEP_CHANNEL_OPEN;) {
		size_t part = size - at < 5000 ? size - at : 5000; /* records come in pieces */
		must(write(end[1], bytes + at, part) == (ssize_t)part);
		at += part;
		while (skep_channel_read(&channel, &record)) {
			must(record.type > 0 && record.type < SKEP_RECORD_TYPES);
			must((record.content == NULL) == (record.type == SKEP_RECORD_DATA));
			tried.records++;
			if (record.content != NULL)
				try_words(record.type, record.content, record.bytes);
		}
	}
	must(channel.state == SKEP_CHANNEL_OPEN || (channel.why && channel.why[0]));
	skep_channel_close(&channel);
	close(end[1]);
	free(sink);
}

static void try_ticket(const char *text)
{
	struct skep_ticket ticket, second;
	struct skep_diag diag = {0};
	char again[SKEP_TICKET_TEXT];
	bool fine = skep_ticket_parse(text, &ticket, &diag);
	must(fine == !diag.set);
	tried.tickets += fine;
	if (!fine) {
		check_diag(&diag);
		return;
	}
	skep_ticket_format(&ticket, again, sizeof again);
	must(skep_ticket_parse(again, &second, &diag) && memcmp(&ticket, &second, sizeof ticket) == 0);
}

/* What a later process of the run reads are the same tickets. */
static void write_tickets(const struct skep_tickets *tickets)
{
	struct skep_tickets second = {0};
	struct skep_diag diag = {0};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	skep_tickets_write(tickets, out);
	must(fclose(out) == 0 && skep_tickets_read(&second, text, &diag) && second.count == tickets->count);
	for (uint32_t i = 0; i < second.count; i++) {
		must(skep_ticket_same_secret(second.entry[i].secret, tickets->entry[i].secret));
		must(second.entry[i].revoked == tickets->entry[i].revoked);
		must(second.entry[i].revoked || second.entry[i].left == tickets->entry[i].left);
	}
	skep_tickets_finish(&second);
	free(text);
}

static void try_tickets(const char *text)
{
	struct skep_tickets tickets = {0};
	struct skep_diag diag = {0};
	bool fine = skep_tickets_read(&tickets, text, &diag);
	must(fine == !diag.set);
	if (!fine)
		check_diag(&diag);
	if (fine)
		write_tickets(&tickets);
	for (uint32_t i = 0; fine && i < tickets.count && i < 8; i++) {
		const uint8_t *secret = tickets.entry[i].secret;
		must(skep_tickets_know(&tickets, secret) || tickets.entry[i].revoked);
		enum skep_admission admission = skep_tickets_admit(&tickets, secret);
		must(admission != SKEP_TICKET_UNKNOWN &&
			strncmp(skep_admission_text(admission), "the ticket", 10) == 0);
		must(!skep_tickets_endless(&tickets, secret) || admission != SKEP_TICKET_USED_UP);
		must(skep_tickets_revoke(&tickets, secret) &&
			skep_tickets_admit(&tickets, secret) == SKEP_TICKET_REVOKED);
	}
	uint8_t secret[SKEP_SECRET_BYTES];
	must(!fine || skep_tickets_add(&tickets, 1, secret, &diag));
	must(!fine || skep_tickets_admit(&tickets, secret) == SKEP_ADMITTED);
	skep_tickets_finish(&tickets);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2 || size > 1 << 18)
		return 0;
	char *text = strndup((const char *)data + 1, size - 1);
	must(text);
	if (data[0] == 'w')
		try_words(data[1] % SKEP_RECORD_TYPES, data + 2, size - 2);
	else if (data[0] == 'c')
		try_connection((size_t)data[1] * (SINK / 256), data + 2, size - 2);
	else if (data[0] == 't')
		try_ticket(text);
	else
		try_tickets(text);
	free(text);
	return 0;
}

#ifndef SKEP_LIBFUZZER
int main(int argc, char **argv)
{
	bool ok = damage_files(argv + 1, argc - 1, DAMAGES);
	printf("%u taken, %u refused, %u records, %u tickets\n", tried.taken, tried.refused, tried.records,
		tried.tickets);
	return ok && tried.taken > 0 && tried.refused > 0 && tried.records > 0 && tried.tickets > 0 ? 0 : 1;
}
#endif
