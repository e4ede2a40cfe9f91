/* SPDX-License-Identifier: Apache-2.0
 *
 * plot_script.c - what all kinds of pictures write into their scripts, and what they say of a run. See plot_script.h.
 */
#include "analysis/plot/plot_script.h"

#include <errno.h>
#include <inttypes.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analysis/store/database.h"
#include "base/text.h"

#define FAR_GLYPHS 0x590u /* behind Latin, Greek, Cyrillic and Armenian */
#define EAST_ASIA 0x2e80u /* and all that has a number beyond it */
#define GLYPHS 256u

/* Nothing can be escaped in a single-quoted string of gnuplot but the quote itself, and not everywhere: it becomes the
 * typographic one. What a picture cannot show becomes a blank. */
void skep_script_string(FILE *script, const char *text)
{
	fputc('\'', script);
	for (size_t left = strlen(text); left > 0;) {
		uint32_t code, bytes = skep_utf8_next(text, left, &code);
		if (bytes > 0 && code == '\'')
			fputs("\xe2\x80\x99", script);
		else if (bytes == 0 || code < ' ' || (code >= 0x7f && code < 0xa0) || skep_utf8_turns(code))
			fputc(' ', script);
		else
			fwrite(text, 1, bytes, script);
		bytes = bytes > 0 ? bytes : 1;
		text += bytes;
		left -= bytes;
	}
	fputc('\'', script);
}

/* What `fc-list` says of all fonts here; where it is not there, few are, and none with the scripts of East Asia. */
static bool some_font_has(uint32_t code)
{
	char pattern[32];
	char *argv[] = {"fc-list", "-q", pattern, NULL};
	pid_t pid;
	int status = 0;
	snprintf(pattern, sizeof pattern, ":charset=%" PRIx32, code);
	if (posix_spawnp(&pid, "fc-list", NULL, NULL, argv, environ) != 0)
		return code < EAST_ASIA;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return !WIFEXITED(status) || WEXITSTATUS(status) != 1;
}

struct glyphs { /* what was asked for already */
	uint32_t code[GLYPHS];
	bool has[GLYPHS];
	uint32_t count;
};

static bool has_glyph(struct glyphs *g, uint32_t code)
{
	uint32_t n = 0;
	while (n < g->count && g->code[n] != code)
		n++;
	if (n == GLYPHS)
		return true;
	if (n == g->count) {
		g->code[n] = code;
		g->has[n] = some_font_has(code);
		g->count++;
	}
	return g->has[n];
}

uint32_t skep_script_cover(char *body, size_t *length)
{
	struct glyphs glyphs = {.count = 0};
	uint32_t first = 0;
	char *to = body;
	for (size_t at = 0, bytes; at < *length; at += bytes) {
		uint32_t code = 0;
		bytes = skep_utf8_next(body + at, *length - at, &code);
		bool lacks = bytes > 0 && code >= FAR_GLYPHS && !has_glyph(&glyphs, code);
		bytes = bytes > 0 ? bytes : 1;
		first = lacks && first == 0 ? code : first;
		memmove(to, lacks ? "?" : body + at, lacks ? 1 : bytes);
		to += lacks ? 1 : bytes;
	}
	*length = (size_t)(to - body);
	return first;
}

void skep_script_lines(FILE *script, const char *const *line, size_t lines)
{
	for (size_t i = 0; i < lines; i++)
		fputs(line[i], script);
}

const char *skep_plot_colour(uint32_t i)
{
	static const char *const colour[] = {
		"#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000", "#F0E442"};
	return colour[i % (sizeof colour / sizeof colour[0])];
}

bool skep_plot_read_run(struct skep_store *store, int64_t id, struct skep_plot_run *ret, struct skep_diag *reterr)
{
	static const char sql[] =
		"SELECT scenario, world, device, printf('%llu', seed), workers, stages, pace, shape,"
		" target_loss, arithmetic, (SELECT count(*) FROM rounds WHERE run = ?1), time_s FROM runs WHERE id = ?1";
	sqlite3_stmt *row = skep_store_query(store, sql, id, 0, reterr);
	bool found = row != NULL && skep_store_row(store, row);
	if (found) {
		*ret = (struct skep_plot_run){.id = id};
		snprintf(ret->scenario, sizeof ret->scenario, "%s", skep_column_text(row, 0));
		snprintf(ret->world, sizeof ret->world, "%s", skep_column_text(row, 1));
		snprintf(ret->device, sizeof ret->device, "%s", skep_column_text(row, 2));
		snprintf(ret->seed, sizeof ret->seed, "%s", skep_column_text(row, 3));
		ret->workers = (uint32_t)sqlite3_column_int64(row, 4);
		ret->stages = (uint32_t)sqlite3_column_int64(row, 5);
		ret->pace = sqlite3_column_int(row, 6);
		ret->shape = sqlite3_column_int(row, 7);
		ret->target_loss = skep_column_real(row, 8);
		snprintf(ret->arithmetic, sizeof ret->arithmetic, "%s", skep_column_text(row, 9));
		ret->rounds = (uint32_t)sqlite3_column_int64(row, 10);
		ret->time_s = skep_column_real(row, 11);
	} else if (row != NULL) {
		skep_fail(reterr, "there is no run %lld in the database; `skep runs list` shows which there are",
			(long long)id);
	}
	sqlite3_finalize(row);
	return found;
}

static bool newest_run(struct skep_store *store, int64_t *ret, struct skep_diag *reterr)
{
	static const char sql[] = "SELECT max(CASE WHEN EXISTS (SELECT 1 FROM rounds WHERE run = id) THEN id END),"
				  " count(*) FROM runs WHERE ?1 = 0";
	sqlite3_stmt *row = skep_store_query(store, sql, 0, 0, reterr);
	bool read = row != NULL && skep_store_row(store, row);
	*ret = read ? sqlite3_column_int64(row, 0) : 0;
	if (read && *ret == 0)
		skep_fail(reterr, "the database holds no run%s: `skep sim` and `skep run` make one",
			sqlite3_column_int64(row, 1) > 0 ? " that closed a round" : "");
	else if (row != NULL && !read)
		skep_fail(reterr, "%s", sqlite3_errmsg(skep_store_database(store)));
	sqlite3_finalize(row);
	return *ret != 0;
}

bool skep_plot_single_run(struct skep_store *store, const int64_t *run, uint32_t runs, struct skep_plot_run *ret,
	struct skep_diag *reterr)
{
	int64_t id = runs > 0 ? run[0] : 0;
	if (runs > 1)
		return skep_fail(reterr, "this picture shows one run, not %u", runs);
	if (runs == 0 && !newest_run(store, &id, reterr))
		return false;
	return skep_plot_read_run(store, id, ret, reterr);
}
