/* SPDX-License-Identifier: Apache-2.0
 *
 * plot_presence.c - the spans of each worker's presence, from the notes of the directory.
 *
 * A worker that has a stage in the plan serves it from the start; `fenced` and `left` end that, `admitted` and `migrated` begin a
 * download, `joined` and `stage_restarted` end it. This is what the directory knew: a death is seen when it is fenced, at most
 * directory.timeout after it happened. So each span is then cut at the begins and ends of the worker's lives, which are recorded
 * when a run ends; of one that has not ended the notes alone count.
 */
#include "analysis/plot/plot_presence.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/store/database.h"
#include "base/grow.h"

struct open_span {
	struct skep_presence_span span;
	int64_t served; /* last; -1: none */
};

static bool close_span(struct skep_presence *presence, struct open_span *open, double now_s, struct skep_diag *reterr)
{
	if (now_s <= open->span.begin_s)
		return true;
	if (!skep_grow(&presence->span, presence->spans, sizeof *presence->span))
		return skep_fail(reterr, "no memory for the plot");
	open->span.end_s = now_s;
	presence->span[presence->spans++] = open->span;
	return true;
}

static enum skep_presence_state state_of(const char *kind)
{
	if (strcmp(kind, "fenced") == 0 || strcmp(kind, "left") == 0)
		return SKEP_PRESENCE_AWAY;
	bool serves = strcmp(kind, "joined") == 0 || strcmp(kind, "stage_restarted") == 0;
	return serves ? SKEP_PRESENCE_SERVING : SKEP_PRESENCE_DOWNLOADING;
}

static bool turn(struct skep_presence *presence, struct open_span *open, double now_s, enum skep_presence_state state,
	int64_t stage, struct skep_diag *reterr)
{
	struct skep_presence_span *span = &open->span;
	stage = state == SKEP_PRESENCE_AWAY ? -1 : stage;
	presence->churned = true;
	if (span->state == state && span->stage == stage)
		return true;
	if (!close_span(presence, open, now_s, reterr))
		return false;
	bool serves = state == SKEP_PRESENCE_SERVING;
	*span = (struct skep_presence_span){
		.worker = span->worker, .state = state, .stage = stage, .begin_s = now_s, .changed = serves};
	span->changed = serves && open->served != stage;
	open->served = serves ? stage : open->served;
	return true;
}

static bool read_first(struct skep_store *store, const struct skep_plot_run *run, struct open_span *open,
	struct skep_presence *presence, struct skep_diag *reterr)
{
	static const char sql[] =
		"SELECT worker, coalesce(first_stage, -1) FROM workers WHERE run = ?1 AND role = 'worker'";
	sqlite3_stmt *row = skep_store_query(store, sql, run->id, 0, reterr);
	while (row != NULL && skep_store_row(store, row)) {
		uint32_t worker = (uint32_t)sqlite3_column_int64(row, 0);
		int64_t stage = sqlite3_column_int64(row, 1);
		if (worker >= run->workers)
			continue;
		presence->churned = presence->churned || stage < 0;
		open[worker].served = open[worker].span.stage = stage;
		open[worker].span.state = stage < 0 ? SKEP_PRESENCE_AWAY : SKEP_PRESENCE_SERVING;
	}
	sqlite3_finalize(row);
	return row != NULL;
}

static bool read_turns(struct skep_store *store, const struct skep_plot_run *run, struct open_span *open,
	struct skep_presence *presence, struct skep_diag *reterr)
{
	static const char sql[] =
		"SELECT time_s, kind, peer, coalesce(stage, -1) FROM notes WHERE run = ?1 AND kind IN"
		" ('fenced', 'left', 'admitted', 'migrated', 'joined', 'stage_restarted') ORDER BY time_s, rowid";
	sqlite3_stmt *row = skep_store_query(store, sql, run->id, 0, reterr);
	bool ok = row != NULL;
	while (ok && skep_store_row(store, row)) {
		uint32_t worker = (uint32_t)sqlite3_column_int64(row, 2);
		if (worker < run->workers)
			ok = turn(presence, &open[worker], sqlite3_column_double(row, 0),
				state_of(skep_column_text(row, 1)), sqlite3_column_int64(row, 3), reterr);
	}
	sqlite3_finalize(row);
	return ok;
}

/* ---- lives -------------------------------------------------------------------------------------------------------- */

struct life {
	uint32_t worker;
	double begin_s, end_s;
};

struct lives { /* by worker, then begin */
	struct life *life;
	size_t lives;
	size_t *first; /* [workers + 1]: of each worker */
};

static bool read_lives(
	struct skep_store *store, const struct skep_plot_run *run, struct lives *ret, struct skep_diag *reterr)
{
	static const char sql[] = "SELECT worker, started_s, ended_s FROM incarnations WHERE run = ?1 AND worker < ?2"
				  " ORDER BY worker, started_s";
	uint32_t next = 0;
	sqlite3_stmt *row = skep_store_query(store, sql, run->id, run->workers, reterr);
	bool ok = row != NULL && (ret->first = calloc(run->workers + 1, sizeof *ret->first)) != NULL;
	while (ok && skep_store_row(store, row) && (ok = skep_grow(&ret->life, ret->lives, sizeof *ret->life))) {
		uint32_t worker = (uint32_t)sqlite3_column_int64(row, 0);
		while (next <= worker)
			ret->first[next++] = ret->lives;
		ret->life[ret->lives++] =
			(struct life){worker, sqlite3_column_double(row, 1), sqlite3_column_double(row, 2)};
	}
	while (ok && next <= run->workers)
		ret->first[next++] = ret->lives;
	if (row != NULL && !ok)
		skep_fail(reterr, "no memory for the plot");
	sqlite3_finalize(row);
	return ok;
}

/* Is the worker alive from `at_s` on, and until when is that so? */
static bool alive_at(const struct lives *lives, uint32_t worker, double at_s, double *ret_until_s)
{
	*ret_until_s = INFINITY;
	for (size_t i = lives->first[worker]; i < lives->first[worker + 1]; i++) {
		const struct life *life = &lives->life[i];
		if (life->end_s <= at_s)
			continue;
		bool alive = life->begin_s <= at_s;
		*ret_until_s = alive ? life->end_s : life->begin_s;
		return alive;
	}
	return false;
}

/* Pieces of a span in which the worker is either alive or not. */
static bool cut_span(struct skep_presence *to, const struct skep_presence_span *span, const struct lives *lives)
{
	struct skep_presence_span piece = *span;
	bool changed = span->changed;
	while (piece.begin_s < span->end_s) {
		double until_s;
		bool alive = alive_at(lives, span->worker, piece.begin_s, &until_s);
		bool away = span->state == SKEP_PRESENCE_AWAY;
		piece.state = !alive ? SKEP_PRESENCE_AWAY : away ? SKEP_PRESENCE_IDLE : span->state;
		piece.stage = alive ? span->stage : -1;
		piece.changed = alive && changed;
		changed = changed && !alive;
		piece.end_s = fmin(span->end_s, until_s);
		if (!skep_grow(&to->span, to->spans, sizeof *to->span))
			return false;
		to->span[to->spans++] = piece;
		piece.begin_s = piece.end_s;
	}
	return true;
}

static bool cut_to_lives(struct skep_store *store, const struct skep_plot_run *run, struct skep_presence *presence,
	struct skep_diag *reterr)
{
	struct lives lives = {0};
	struct skep_presence cut = {.churned = presence->churned};
	bool ok = read_lives(store, run, &lives, reterr), recorded = ok && lives.lives > 0;
	for (size_t i = 0; ok && recorded && i < presence->spans; i++)
		ok = cut_span(&cut, &presence->span[i], &lives) || skep_fail(reterr, "no memory for the plot");
	free(lives.life);
	free(lives.first);
	if (!ok || !recorded) {
		free(cut.span);
		return ok;
	}
	free(presence->span);
	*presence = cut;
	return true;
}

bool skep_presence_read(struct skep_store *store, const struct skep_plot_run *run, double end_s,
	struct skep_presence *ret, struct skep_diag *reterr)
{
	*ret = (struct skep_presence){0};
	struct open_span *open = calloc(run->workers ? run->workers : 1, sizeof *open);
	if (open == NULL)
		return skep_fail(reterr, "no memory for %u workers", run->workers);
	for (uint32_t i = 0; i < run->workers; i++)
		open[i] = (struct open_span){
			.served = -1, .span = {.worker = i, .state = SKEP_PRESENCE_AWAY, .stage = -1}};
	bool ok = read_first(store, run, open, ret, reterr) && read_turns(store, run, open, ret, reterr);
	for (uint32_t i = 0; ok && i < run->workers; i++)
		ok = close_span(ret, &open[i], end_s, reterr);
	free(open);
	ok = ok && cut_to_lives(store, run, ret, reterr);
	if (!ok)
		skep_presence_finish(ret);
	return ok;
}

void skep_presence_finish(struct skep_presence *presence)
{
	free(presence->span);
	*presence = (struct skep_presence){0};
}
