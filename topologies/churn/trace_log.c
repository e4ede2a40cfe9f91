/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_log.c - logs of a program that requests machines, holds them and polls them: lines `[ISO time Z] text`.
 *
 * Decides what the texts mean:
 *   Created instance ID with N GPU(s) of type T in zone Z   a join, if ID is not held
 *   Instance ID running in zone Z                           a poll; a join if ID is not held (the log began later)
 *   Instance ID not running in zone Z                       a leave, if ID is held; else a poll
 *   Successfully deleted instance ID                        the same: the holder's own clean-up
 *   Instance ... creation failed                            a refused request; it may name "N GPU(s) of type T"
 * A loss is seen at the poll behind it, so lives are too long by up to one poll.
 */
#include "base/clock.h"
#include "topologies/churn/trace_reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECTED                                                                                                       \
	"Created instance, Instance ... running, not running or creation failed, or Successfully deleted instance"

/* "[2020-03-15T10:07:33.000Z] "; the text behind it, or NULL with the diagnosis filled. */
static const char *read_time(struct skep_lines *l, skep_time *ret)
{
	const char *t = l->text;
	size_t length = t[0] == '[' ? skep_date_parse(t + 1, ret) : 0;
	if (length == 0 || t[1 + length] != ']') {
		skep_lines_fail(l, t, "expected a time such as [2020-03-15T10:07:33.000Z]");
		return NULL;
	}
	return t + length + 2 + strspn(t + length + 2, " ");
}

/* ---- texts ---------------------------------------------------------------------------------------------------------- */

static bool eat(const char **at, const char *word)
{
	size_t length = strlen(word);
	if (strncmp(*at, word, length) != 0)
		return false;
	*at += length;
	return true;
}

/* Up to the next blank. */
static struct skep_cell eat_word(const char **at)
{
	struct skep_cell word = {*at, strcspn(*at, " ")};
	*at += word.length;
	return word;
}

/* "N GPU(s) of type T" */
static bool eat_gpus(const char **at, uint64_t *ret_gpus, struct skep_cell *ret_type)
{
	char *end;
	if (**at < '0' || **at > '9')
		return false;
	*ret_gpus = strtoull(*at, &end, 10);
	*at = end;
	if (!eat(at, " GPU(s) of type "))
		return false;
	*ret_type = eat_word(at);
	return *ret_gpus > 0 && *ret_gpus <= 1024 && ret_type->length > 0;
}

struct message {
	enum { CREATED, RUNNING, NOT_RUNNING, DELETED, FAILED } what;
	struct skep_cell id, type, zone;
	uint64_t gpus;
};

static bool parse(const char *at, struct message *m)
{
	*m = (struct message){.id = {"", 0}, .type = {"", 0}, .zone = {"", 0}, .gpus = 1};
	if (eat(&at, "Created instance ")) {
		m->what = CREATED;
		m->id = eat_word(&at);
		if (!eat(&at, " with ") || !eat_gpus(&at, &m->gpus, &m->type) || !eat(&at, " in zone "))
			return false;
		m->zone = eat_word(&at);
	} else if (eat(&at, "Successfully deleted instance ")) {
		m->what = DELETED;
		m->id = eat_word(&at);
	} else if (eat(&at, "Instance with ")) {
		m->what = FAILED;
		if (!eat_gpus(&at, &m->gpus, &m->type) || !eat(&at, " creation failed"))
			return false;
	} else if (eat(&at, "Instance ")) {
		m->id = eat_word(&at);
		m->what = eat(&at, " running in zone ")       ? RUNNING
		          : eat(&at, " not running in zone ") ? NOT_RUNNING
		                                              : FAILED;
		if (m->what == FAILED && !eat(&at, " creation failed"))
			return false;
		if (m->what != FAILED)
			m->zone = eat_word(&at);
	} else {
		return false;
	}
	return at[strspn(at, " ")] == 0 && (m->id.length > 0 || m->what == FAILED);
}

/* Under options->per_gpu a machine with 8 GPUs was entered as NAME/0 ... NAME/7: how many of them are held. */
static uint64_t held(const struct skep_trace_reader *r, const char *name)
{
	char numbered[SKEP_TRACE_NAME + 16];
	uint64_t count = 0;
	if (!r->options->per_gpu)
		return skep_live_names_find(&r->live, name) != SKEP_NOT_LIVE;
	do
		snprintf(numbered, sizeof numbered, "%s/%u", name, (unsigned)count);
	while (skep_live_names_find(&r->live, numbered) != SKEP_NOT_LIVE && ++count);
	return count;
}

static bool emit(struct skep_trace_reader *r, const struct message *m, struct skep_trace_row *row)
{
	uint64_t have = row->name[0] ? held(r, row->name) : 0, gpus = m->gpus;
	bool joins = m->what == CREATED || m->what == RUNNING;
	if (m->what == FAILED) {
		row->kind = SKEP_TRACE_REFUSED; /* one request, however many GPUs */
		return skep_trace_emit(r, row);
	}
	if (m->what == RUNNING ? have > 0 : !joins && have == 0)
		return skep_trace_see(r, row->at_ns, row->time_at);
	row->kind = joins ? SKEP_TRACE_JOIN : SKEP_TRACE_LEAVE;
	return skep_trace_emit_machine(r, row, joins ? gpus : have);
}

static bool read_row(struct skep_trace_reader *r, bool first, skep_time *begin)
{
	struct skep_trace_row row;
	struct message m;
	skep_time at;
	const char *text = read_time(&r->lines, &at);
	if (!text)
		return false;
	if (first)
		*begin = at;
	row.at_ns = at > *begin ? at - *begin : 0;
	row.time_at = r->lines.text;
	row.name[0] = row.gpu[0] = row.zone[0] = 0;
	if (at < *begin && !r->options->repair) {
		skep_lines_fail(&r->lines, r->lines.text, "time goes backwards, to before the first line");
		return false;
	}
	if (!parse(text, &m))
		return skep_trace_unknown(r, (struct skep_cell){text, strlen(text)}, EXPECTED);
	row.name_at = m.id.at;
	return (m.id.length == 0 || skep_trace_name(&r->lines, m.id, row.name)) &&
	       skep_trace_gpu(&r->lines, m.type, row.gpu) &&
	       skep_cell_copy(&r->lines, m.zone, "a zone", row.zone, sizeof row.zone) && emit(r, &m, &row);
}

bool skep_trace_read_log(struct skep_trace_reader *r)
{
	skep_time begin = 0;
	bool first = true;
	while (skep_lines_next_row(&r->lines)) {
		if (!read_row(r, first, &begin))
			return false;
		first = false;
	}
	return !r->lines.diag->set;
}
