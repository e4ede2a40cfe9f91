/* SPDX-License-Identifier: Apache-2.0
 *
 * status_ask.c - a process that does not join, and asks how the run is.
 */
#include <stdlib.h>
#include <string.h>

#include "exec/joining/join_internal.h"

#define STATUS_BYTES_MAX (16u << 20)

static char *hear_status(struct skep_joining *j, struct skep_diag *reterr)
{
	union skep_words words;
	uint64_t have = 0, bytes;
	if (!skep_joining_answer(j, SKEP_RECORD_STATUS, &words, reterr))
		return NULL;
	bytes = words.status;
	char *text = bytes <= STATUS_BYTES_MAX ? malloc(bytes + 1) : NULL;
	while (text != NULL && have < bytes) {
		if (!skep_joining_answer(j, SKEP_RECORD_PIECE, &words, reterr) || words.piece.offset != have ||
			words.piece.count > bytes - have) {
			skep_fail(reterr, "%.200s says what no skep says", j->options.server);
			free(text);
			return NULL;
		}
		memcpy(text + have, words.piece.bytes, words.piece.count);
		have += words.piece.count;
	}
	if (text == NULL)
		skep_fail(reterr, "no memory for what %.200s says", j->options.server);
	else
		text[have] = '\0';
	return text;
}

char *skep_status_ask(const char *server, const char *ticket_text, const char *version, struct skep_diag *reterr)
{
	struct skep_ticket ticket;
	char *text = NULL;
	const struct skep_join_options options = {.server = server, .version = version, .worker = SKEP_NO_INDEX};
	struct skep_joining *j = skep_joining_create(&options);
	if (j == NULL) {
		skep_fail(reterr, "no memory");
		return NULL;
	}
	j->asks = true;
	if (skep_ticket_parse(ticket_text, &ticket, reterr) && skep_endpoint_check_list(server, reterr) &&
		skep_joining_connect(j, &ticket, reterr)) {
		skep_joining_introduce(j, &ticket);
		text = hear_status(j, reterr);
	}
	skep_joining_finish(j);
	return text;
}
