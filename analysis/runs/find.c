/* SPDX-License-Identifier: Apache-2.0
 *
 * find.c - which runs a word of a command line means.
 */
#include "analysis/runs/runs_db.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

bool skep_label_ok(const char *text)
{
	static const char may[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	size_t length = strlen(text);
	bool letter = (text[0] >= 'a' && text[0] <= 'z') || (text[0] >= 'A' && text[0] <= 'Z');
	return letter && length < SKEP_LABEL_BYTES && strspn(text, may) == length && strstr(text, "..") == NULL;
}

/* ---- numbers ---------------------------------------------------------------------------------------------------------- */

static bool number(const char *text, const char **ret_end, int64_t *ret)
{
	char *end;
	errno = 0;
	*ret = text[0] >= '0' && text[0] <= '9' ? strtoll(text, &end, 10) : 0;
	*ret_end = *ret > 0 && errno == 0 ? end : text;
	return *ret_end != text;
}

/* 7, or 3..14. False: neither; the word may be a name. */
static bool range(const char *word, int64_t *ret_first, int64_t *ret_last)
{
	const char *end;
	if (!number(word, &end, ret_first))
		return false;
	*ret_last = *ret_first;
	if (*end == 0)
		return true;
	return strncmp(end, "..", 2) == 0 && number(end + 2, &end, ret_last) && *end == 0 && *ret_last >= *ret_first;
}

/* ---- labels ----------------------------------------------------------------------------------------------------------- */

static const char by_name[] = "SELECT run, label FROM labels WHERE kind = 'name' AND label = ?1";
static const char by_prefix[] =
	"SELECT run, label FROM labels WHERE kind = 'name' AND substr(label, 1, length(?1)) = ?1 ORDER BY label";
static const char by_tag[] = "SELECT run, label FROM labels WHERE kind = 'tag' AND label = ?1 ORDER BY run";

static bool fail_too_many(const char *word, uint32_t room, struct skep_diag *reterr)
{
	if (room == 1)
		return skep_fail(reterr, "%.80s stands for several runs, and one is wanted here: name one", word);
	return skep_fail(reterr, "more than %" PRIu32 " runs: name fewer", room);
}

/* As many as there are; up to `room` of them in ret. False: the database cannot be read. */
static bool ask(const struct skep_runs_db *d, const char *sql, const char *word, uint32_t room, int64_t *ret,
	uint32_t *ret_count, struct skep_diag *reterr)
{
	sqlite3_stmt *row = NULL;
	int rc = sqlite3_prepare_v2(d->db, sql, -1, &row, NULL);
	*ret_count = 0;
	if (rc == SQLITE_OK)
		rc = sqlite3_bind_text(row, 1, word, -1, SQLITE_TRANSIENT);
	while (rc == SQLITE_OK && (rc = sqlite3_step(row)) == SQLITE_ROW) {
		if (*ret_count < room)
			ret[*ret_count] = sqlite3_column_int64(row, 0);
		++*ret_count;
		rc = SQLITE_OK;
	}
	sqlite3_finalize(row);
	if (rc != SQLITE_DONE)
		skep_database_explain(d->db, d->path, rc, reterr);
	return rc == SQLITE_DONE;
}

static bool find_label(const struct skep_runs_db *d, const char *word, uint32_t room, int64_t *ret, uint32_t *ret_count,
	struct skep_diag *reterr)
{
	bool tag = word[0] == '@', labels;
	if (!skep_runs_db_has_labels(d, &labels, reterr))
		return false;
	*ret_count = 0;
	if (labels && !ask(d, tag ? by_tag : by_name, tag ? word + 1 : word, room, ret, ret_count, reterr))
		return false;
	if (labels && !tag && *ret_count == 0 && !ask(d, by_prefix, word, room, ret, ret_count, reterr))
		return false;
	if (!tag && *ret_count > 1)
		return skep_fail(
			reterr, "%.80s: %" PRIu32 " runs have names that begin so: write more of it", word, *ret_count);
	if (*ret_count > room)
		return fail_too_many(word, room, reterr);
	return *ret_count > 0 ||
	       skep_fail(reterr,
		       tag ? "%.80s: no run has this tag; `skep runs list` shows which there are"
			   : "%.80s is not the number of a run, two of them as in 3..14, or the name of one; `skep runs list` "
			     "shows them",
		       word);
}

bool skep_runs_find(
	const char *db, const char *word, uint32_t room, int64_t *ret, uint32_t *ret_count, struct skep_diag *reterr)
{
	int64_t first, last;
	*ret_count = 0;
	if (range(word, &first, &last)) {
		if (last - first >= (int64_t)room)
			return fail_too_many(word, room, reterr);
		while (first <= last)
			ret[(*ret_count)++] = first++;
		return true;
	}
	if (word[0] != '@' && !skep_label_ok(word))
		return skep_fail(reterr,
			"%.80s is not the number of a run, two of them as in 3..14, or the name of one; `skep runs list` shows "
			"them",
			word);
	struct skep_runs_db d;
	struct skep_diag closed = {0};
	if (!skep_runs_db_open(&d, db, false, &closed))
		return skep_fail(reterr, "%.80s is not the number of a run, and names cannot be looked up: %s", word,
			closed.message);
	bool found = find_label(&d, word, room, ret, ret_count, reterr);
	skep_runs_db_close(&d);
	return found;
}
