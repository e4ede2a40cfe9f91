/* SPDX-License-Identifier: Apache-2.0
 *
 * fit_points.c - the losses of runs as a law sees them: see fit.h.
 *
 * The loss of a round is that of the parameters before it, so tokens are those counted in the rounds before; with H inner steps
 * in a round, those of half of its other steps too. Rounds are put together where they are many: each point has at most
 * 1/20 of the rounds before it, so that a run of any length has some two hundred points, as many for each factor in tokens.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/fit/fit.h"
#include "analysis/store/database.h"
#include "analysis/store/settings.h"
#include "base/grow.h"

#define ROUNDS_PER_POINT 20u

struct source { /* a run */
	int64_t id;
	double microbatch_tokens, microbatches, steps, every, replicas; /* microbatches and steps of a round; H */
	uint32_t last_vstage, from;
};

static bool add(struct skep_loss_points *points, const struct skep_loss_point *point)
{
	if (!skep_grow(&points->point, points->count, sizeof *points->point))
		return false;
	points->point[points->count++] = *point;
	return true;
}

/* ---- a run ------------------------------------------------------------------------------------------------------ */

/* Why the run cannot be fitted; NULL: it can. */
static const char *refusal(const char *arithmetic, const char *status, double samples, double every, bool resumed)
{
	if (strcmp(arithmetic, "none") == 0)
		return "has no loss: its scenario says `arithmetic: none`";
	if (strcmp(arithmetic, "law") == 0)
		return "has its losses from a law: fit the runs whose arithmetic was done";
	if (strcmp(status, "done") != 0 && strcmp(status, "failed") != 0)
		return "was not recorded to its end";
	if (!(samples > 0))
		return "closed no round";
	if (resumed)
		return "goes on with another run, and a law is about whole ones";
	if (every == 0)
		return "has a sync period that differs from worker to worker, or from stage to stage: a law has one H";
	return NULL;
}

static bool read_source(struct skep_store *store, int64_t id, uint32_t from, struct source *ret, char *model,
	size_t model_size, struct skep_diag *reterr)
{
	static const char sql[] =
		"SELECT model, arithmetic, status, text, samples, tokens, samples_per_microbatch,"
		" microbatches, vstages, (SELECT count(*) FROM rounds WHERE run = ?1), first_round,"
		" EXISTS (SELECT 1 FROM rounds WHERE run = ?1 AND local_staleness IS NOT NULL) FROM runs WHERE id = ?1";
	sqlite3_stmt *row = skep_store_query(store, sql, id, 0, reterr);
	bool found = row != NULL && skep_store_row(store, row);
	uint32_t warmup = 0;
	const char *why = "is not in the database; `skep runs list` shows which there are";
	if (found) {
		double samples = sqlite3_column_double(row, 4), tokens = sqlite3_column_double(row, 5);
		ret->id = id;
		double fragments;
		ret->steps = skep_settings_every(skep_column_text(row, 3), &warmup);
		ret->every = skep_settings_steps(skep_column_text(row, 3), &fragments);
		ret->microbatch_tokens = sqlite3_column_double(row, 6) * (tokens > 0 ? tokens / samples : 1);
		ret->microbatches = sqlite3_column_double(row, 7);
		ret->last_vstage = (uint32_t)sqlite3_column_int64(row, 8) - 1;
		snprintf(model, model_size, "%s", skep_column_text(row, 0));
		if (from == SKEP_FIT_FROM_USUAL)
			from = (uint32_t)fmax(warmup, ceil(sqlite3_column_double(row, 9) / ROUNDS_PER_POINT));
		ret->from = from;
		if (sqlite3_column_int(row, 11))
			why = "has waves (`sync.method: wsp`), whose staleness is of microbatches: a law knows one staleness, "
			      "in steps";
		else
			why = refusal(skep_column_text(row, 1), skep_column_text(row, 2), samples, ret->steps,
				sqlite3_column_int64(row, 10) > 0);
	}
	if (row != NULL && why)
		skep_fail(reterr, "run %lld %s", (long long)id, why);
	sqlite3_finalize(row);
	return found && !why;
}

static bool read_replicas(struct skep_store *store, struct source *source, struct skep_diag *reterr)
{
	static const char *const SQL =
		"SELECT max(mean) FROM (SELECT avg(members) mean FROM stage_rounds WHERE run = ?1 GROUP BY stage)";
	sqlite3_stmt *row = skep_store_query(store, SQL, source->id, 0, reterr);
	if (row == NULL)
		return false;
	source->replicas = skep_store_row(store, row) ? fmax(1, round(sqlite3_column_double(row, 0))) : 1;
	sqlite3_finalize(row);
	return true;
}

/* ---- its points ------------------------------------------------------------------------------------------------- */

struct bin {                     /* rounds that become one point */
	uint32_t rounds, before; /* in it, and in those before */
	double tokens, loss, stale;
};

static bool close_bin(struct skep_loss_points *points, const struct source *source, struct bin *bin)
{
	struct skep_loss_point point = {.loss = bin->loss / bin->rounds, .run = points->runs};
	double step_tokens = source->microbatch_tokens * source->microbatches / source->steps;
	point.at[SKEP_LAW_TOKENS] = bin->tokens / bin->rounds + step_tokens * (source->steps - 1) / 2;
	point.at[SKEP_LAW_EVERY] = source->every;
	point.at[SKEP_LAW_MEMBERS] = source->replicas;
	point.at[SKEP_LAW_STALE] = bin->stale / bin->rounds;
	point.at[SKEP_LAW_BATCH] = step_tokens;
	*bin = (struct bin){.before = bin->before + bin->rounds};
	return add(points, &point);
}

/* False: no memory, or *ret_bad is a round without a usable loss. */
static bool take_rounds(struct skep_store *store, sqlite3_stmt *row, const struct source *source,
	struct skep_loss_points *points, int64_t *ret_bad)
{
	struct bin bin = {.before = source->from};
	double tokens = 0;
	bool good = true;
	while (good && skep_store_row(store, row)) {
		double loss = sqlite3_column_double(row, 1);
		if (sqlite3_column_type(row, 1) == SQLITE_NULL || !isfinite(loss) || loss <= 0) {
			*ret_bad = sqlite3_column_int64(row, 0);
			return false;
		}
		double before = tokens;
		tokens += sqlite3_column_double(row, 3) * source->microbatch_tokens;
		points->most_tokens = fmax(points->most_tokens, before);
		if (before == 0)
			points->first += loss;
		if (sqlite3_column_int64(row, 0) < source->from)
			continue;
		bin.rounds++;
		bin.tokens += before;
		bin.loss += loss;
		bin.stale += sqlite3_column_double(row, 2);
		if (bin.rounds >= bin.before / ROUNDS_PER_POINT)
			good = close_bin(points, source, &bin);
	}
	return good;
}

static bool read_run(
	struct skep_store *store, int64_t id, uint32_t from, struct skep_loss_points *points, struct skep_diag *reterr)
{
	static const char sql[] = "SELECT round, loss, coalesce(staleness, 0), counted FROM rounds"
				  " JOIN stage_rounds USING (run, round) WHERE run = ?1 AND stage = ?2 ORDER BY round";
	struct source source;
	char model[sizeof points->model];
	int64_t bad = -1;
	if (!read_source(store, id, from, &source, model, sizeof model, reterr) ||
		!read_replicas(store, &source, reterr))
		return false;
	if (points->runs > 0 && strcmp(model, points->model) != 0)
		return skep_fail(reterr, "run %lld trains %s, run %lld trains %s: fit them one after the other",
			(long long)points->run[0], points->model, (long long)id, model);
	snprintf(points->model, sizeof points->model, "%s", model);
	sqlite3_stmt *row = skep_store_query(store, sql, id, source.last_vstage, reterr);
	bool good = row != NULL && take_rounds(store, row, &source, points, &bad);
	if (row != NULL && !good && bad >= 0)
		skep_fail(reterr, "run %lld diverged: round %lld has no finite loss above 0; leave it out",
			(long long)id, (long long)bad);
	else if (row != NULL && !good)
		skep_fail(reterr, "no memory for the losses");
	sqlite3_finalize(row);
	points->run[points->runs++] = id;
	return good;
}

/* ---- which runs ------------------------------------------------------------------------------------------------- */

static bool newest_runs(struct skep_store *store, int64_t *ret, uint32_t *ret_runs, struct skep_diag *reterr)
{
	static const char sql[] =
		"WITH shown AS (SELECT id, scenario FROM runs WHERE arithmetic = 'real' AND status = 'done' AND first_round = 0"
		"   AND NOT EXISTS (SELECT 1 FROM rounds WHERE run = id AND NOT loss < 9e300)),"
		" newest AS (SELECT scenario FROM shown ORDER BY id DESC LIMIT 1)"
		" SELECT id FROM shown JOIN newest USING (scenario) WHERE ?1 = 0 ORDER BY id DESC";
	sqlite3_stmt *row = skep_store_query(store, sql, 0, 0, reterr);
	*ret_runs = 0;
	while (row != NULL && *ret_runs < SKEP_FIT_RUNS_MAX && skep_store_row(store, row))
		ret[(*ret_runs)++] = sqlite3_column_int64(row, 0);
	if (row != NULL && *ret_runs == 0)
		skep_fail(reterr,
			"no run in the database has losses that were computed: run or simulate a scenario with "
			"`arithmetic: real`");
	sqlite3_finalize(row);
	return *ret_runs > 0;
}

bool skep_loss_points_read(struct skep_store *store, const int64_t *run, uint32_t runs, uint32_t from,
	struct skep_loss_points *ret, struct skep_diag *reterr)
{
	int64_t newest[SKEP_FIT_RUNS_MAX];
	*ret = (struct skep_loss_points){0};
	if (runs > SKEP_FIT_RUNS_MAX)
		return skep_fail(reterr, "at most %u runs can be fitted at once, not %u", SKEP_FIT_RUNS_MAX, runs);
	if (runs == 0) {
		run = newest;
		if (!newest_runs(store, newest, &runs, reterr)) {
			skep_store_read_all(store, reterr);
			return false;
		}
	}
	bool read = true;
	for (uint32_t i = 0; read && i < runs; i++)
		read = read_run(store, run[i], from, ret, reterr);
	read = skep_store_read_all(store, reterr) && read;
	if (read)
		ret->first /= ret->runs;
	else
		skep_loss_points_finish(ret);
	return read;
}

void skep_loss_points_finish(struct skep_loss_points *points)
{
	free(points->point);
	*points = (struct skep_loss_points){0};
}
