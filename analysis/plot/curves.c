/* SPDX-License-Identifier: Apache-2.0
 *
 * curves.c - see curves.h. The loss of round r is placed at all that was spent when the round closed: its closing
 * time, the steps and the tokens of rounds 0 to r, and the bytes and dollars that were spent until then. A run that continues
 * another one begins at what that one had spent (v_before), so that both are one line.
 */
#include "analysis/plot/curves.h"

#include <math.h>
#include <string.h>

#include "analysis/store/database.h"
#include "analysis/store/settings.h"

struct source { /* rows of x and loss */
	struct skep_store *store;
	sqlite3_stmt *row;
	double steps, rounds; /* x counts rounds, of which so many have so many steps; 0: it does not */
};

static bool has_tokens(
	struct skep_store *store, const struct skep_plot_run *run, struct source *ret, struct skep_diag *reterr)
{
	sqlite3_stmt *row =
		skep_store_query(store, "SELECT tokens > 0, text FROM runs WHERE id = ?1", run->id, 0, reterr);
	bool has = row != NULL && skep_store_row(store, row) && sqlite3_column_int(row, 0) != 0;
	ret->steps = row != NULL ? skep_settings_steps(skep_column_text(row, 1), &ret->rounds) : 0;
	sqlite3_finalize(row);
	return has;
}

static bool has_validations(struct skep_store *store, struct skep_diag *reterr)
{
	sqlite3_stmt *row = skep_store_query(
		store, "SELECT 1 FROM sqlite_master WHERE name = 'v_validations' AND ?1 = 0", 0, 0, reterr);
	bool has = row != NULL && skep_store_row(store, row);
	sqlite3_finalize(row);
	return has;
}

/* What the runs that run ?1 goes on with had cost when their last rounds before its own had closed. */
#define COST_BEFORE                                                                                                    \
	"(WITH RECURSIVE line(earlier, round) AS (SELECT continues, first_round FROM runs WHERE id = ?1"               \
	" AND continues IS NOT NULL UNION ALL SELECT runs.continues, runs.first_round FROM line"                       \
	" JOIN runs ON runs.id = earlier WHERE runs.continues IS NOT NULL)"                                            \
	" SELECT total((SELECT cost_usd FROM rounds WHERE rounds.run = earlier AND rounds.round < line.round"          \
	" ORDER BY rounds.round DESC LIMIT 1)) FROM line)"

static const char *const TRAINING[SKEP_CURVE_XS] = {
	[SKEP_CURVE_TIME] = ("SELECT time_s + (SELECT total(time_s) FROM v_before WHERE v_before.run = ?1), loss"
			     " FROM losses WHERE run = ?1 AND loss < 9e300 ORDER BY round"),
	[SKEP_CURVE_STEPS] = "SELECT round + 1.0, loss FROM losses WHERE run = ?1 AND loss < 9e300 ORDER BY round",
	[SKEP_CURVE_TOKENS] = ("SELECT (sum(stage_rounds.counted) OVER (ORDER BY round)"
			       " + (SELECT total(counted) FROM v_before WHERE v_before.run = ?1))"
			       " * 1.0 * samples_per_microbatch * iif(tokens > 0, tokens / samples, 1), loss"
			       " FROM losses JOIN runs ON runs.id = run JOIN stage_rounds USING (run, round)"
			       " WHERE run = ?1 AND stage = vstages - 1 AND loss < 9e300 ORDER BY round"),
	[SKEP_CURVE_BYTES] =
		("SELECT bytes_pipeline + bytes_sync"
		 " + (SELECT total(bytes_pipeline + bytes_sync) FROM v_before WHERE v_before.run = ?1), loss"
		 " FROM rounds WHERE run = ?1 AND loss < 9e300 ORDER BY round"),
	[SKEP_CURVE_SYNC_BYTES] =
		("SELECT bytes_sync + (SELECT total(bytes_sync) FROM v_before WHERE v_before.run = ?1), loss"
		 " FROM rounds WHERE run = ?1 AND loss < 9e300 ORDER BY round"),
	[SKEP_CURVE_COST] = ("SELECT cost_usd + " COST_BEFORE ", loss FROM rounds"
			     " WHERE run = ?1 AND loss < 9e300 AND cost_usd IS NOT NULL ORDER BY round"),
};

static const char *const VALIDATION[SKEP_CURVE_XS] = {
	[SKEP_CURVE_TIME] = ("SELECT time_s + (SELECT total(time_s) FROM v_before WHERE v_before.run = ?1), loss"
			     " FROM v_validations WHERE run = ?1 AND loss < 9e300 ORDER BY round"),
	[SKEP_CURVE_STEPS] = "SELECT step, loss FROM v_validations WHERE run = ?1 AND loss < 9e300 ORDER BY round",
	[SKEP_CURVE_TOKENS] =
		("SELECT iif(tokens > 0, tokens, samples), loss FROM v_validations WHERE run = ?1 AND loss < 9e300"
		 " ORDER BY round"),
	[SKEP_CURVE_BYTES] =
		("SELECT bytes + (SELECT total(bytes_pipeline + bytes_sync) FROM v_before WHERE v_before.run = ?1), loss"
		 " FROM v_validations WHERE run = ?1 AND loss < 9e300 ORDER BY round"),
	[SKEP_CURVE_SYNC_BYTES] =
		("SELECT bytes_sync + (SELECT total(bytes_sync) FROM v_before WHERE v_before.run = ?1), loss"
		 " FROM v_validations WHERE run = ?1 AND loss < 9e300 ORDER BY round"),
	[SKEP_CURVE_COST] = ("SELECT cost_usd + " COST_BEFORE ", v_validations.loss FROM v_validations JOIN rounds"
			     " ON rounds.run = ?1 AND rounds.round + 1 = v_validations.round"
			     " WHERE v_validations.run = ?1 AND v_validations.loss < 9e300 AND cost_usd IS NOT NULL"
			     " ORDER BY v_validations.round"),
};

static bool open_rows(struct skep_store *store, const struct skep_plot_run *run, const struct skep_curve_kind *kind,
	struct source *ret, struct skep_diag *reterr)
{
	const char *sql = kind->validation ? VALIDATION[kind->x] : TRAINING[kind->x];
	*ret = (struct source){.store = store};
	bool tokens = has_tokens(store, run, ret, reterr);
	if (kind->x != SKEP_CURVE_STEPS || kind->validation)
		ret->steps = 0;
	if (kind->perplexity && !tokens)
		skep_fail(reterr, "run %lld has no tokens, so there is no perplexity: take `--y loss`",
			(long long)run->id);
	else if (!kind->validation || has_validations(store, reterr))
		ret->row = skep_store_query(store, sql, run->id, 0, reterr);
	else
		skep_fail(reterr, "the database knows of no validation: leave out --validation");
	return ret->row != NULL;
}

static bool next(struct source *source, const struct skep_curve_kind *kind, double *ret_x, double *ret_y)
{
	if (!skep_store_row(source->store, source->row))
		return false;
	*ret_x = sqlite3_column_double(source->row, 0);
	if (source->steps > 0)
		*ret_x = floor(*ret_x * source->steps / source->rounds);
	*ret_y = sqlite3_column_double(source->row, 1);
	if (kind->perplexity)
		*ret_y = exp(fmin(*ret_y, 700));
	return true;
}

static void say_empty(const struct skep_plot_run *run, const struct skep_curve_kind *kind, struct skep_diag *reterr)
{
	const char *why = "it closed no round, or diverged at once";
	if (strcmp(run->arithmetic, "none") == 0)
		why = "its scenario says `arithmetic: none`; take `arithmetic: real`";
	else if (kind->validation)
		why = "it made no validation; see train.validate";
	else if (kind->x == SKEP_CURVE_COST)
		why = "the topology names no prices, or the run has not ended";
	skep_fail(reterr, "run %lld has no loss %sto show: %s", (long long)run->id,
		kind->x == SKEP_CURVE_COST ? "against cost " : "", why);
}

bool skep_curve_extend(struct skep_store *store, const struct skep_plot_run *run, const struct skep_curve_kind *kind,
	struct skep_curve_range *range, struct skep_diag *reterr)
{
	struct source source;
	double x, y = 0, end = 0;
	uint32_t points = 0;
	if (!open_rows(store, run, kind, &source, reterr))
		return false;
	for (; next(&source, kind, &x, &y); points++) {
		if (points == 0)
			range->usual_y = fmax(range->usual_y, y);
		if (x > 0)
			range->least_x = fmin(range->least_x, x);
		end = x;
		range->least_y = fmin(range->least_y, y);
		range->most_y = fmax(range->most_y, y);
	}
	sqlite3_finalize(source.row);
	if (points > 0)
		range->usual_y = fmax(range->usual_y, y);
	range->most_x = fmax(range->most_x, end);
	range->least_end_x = fmin(range->least_end_x, end);
	range->points += points;
	if (points == 0)
		say_empty(run, kind, reterr);
	return points > 0;
}

/* ---- bins ------------------------------------------------------------------------------------------------------- */

static double place(const struct skep_curve_axis *axis, double x)
{
	if (axis->logarithmic)
		return log(fmax(x, axis->from) / axis->from) / log(axis->to / axis->from);
	return (x - axis->from) / (axis->to - axis->from);
}

double skep_curve_bin(const struct skep_curve_axis *axis, uint32_t bin)
{
	double part = (bin + 0.5) / SKEP_CURVE_BINS;
	if (axis->logarithmic)
		return axis->from * pow(axis->to / axis->from, part);
	return axis->from + part * (axis->to - axis->from);
}

/* Sums become means, and bins without points go. */
static void close_bins(struct skep_curve *curve, const uint32_t *points)
{
	for (uint32_t bin = 0; bin < SKEP_CURVE_BINS; bin++) {
		if (points[bin] == 0)
			continue;
		curve->x[curve->bins] = curve->x[bin] / points[bin];
		curve->y[curve->bins++] = curve->y[bin] / points[bin];
		curve->densest = points[bin] > curve->densest ? points[bin] : curve->densest;
	}
}

bool skep_curve_read(struct skep_store *store, const struct skep_plot_run *run, const struct skep_curve_kind *kind,
	const struct skep_curve_axis *axis, struct skep_curve *ret, struct skep_diag *reterr)
{
	struct source source;
	uint32_t points[SKEP_CURVE_BINS] = {0};
	double x, y;
	*ret = (struct skep_curve){0};
	if (!open_rows(store, run, kind, &source, reterr))
		return false;
	while (next(&source, kind, &x, &y)) {
		double part = fmin(fmax(place(axis, x), 0), 1);
		uint32_t bin = (uint32_t)(part * (SKEP_CURVE_BINS - 1) + 0.5);
		points[bin]++;
		ret->x[bin] += x;
		ret->y[bin] += y;
	}
	sqlite3_finalize(source.row);
	close_bins(ret, points);
	return true;
}

double skep_curve_at(const struct skep_curve *curve, const struct skep_curve_axis *axis, double x)
{
	uint32_t high = 0;
	double bin = 1.0 / SKEP_CURVE_BINS; /* the last point stands for the bin that it is in */
	while (high < curve->bins && curve->x[high] < x)
		high++;
	if (high == curve->bins)
		return high > 0 && place(axis, x) - place(axis, curve->x[high - 1]) < bin ? curve->y[high - 1] : NAN;
	if (high == 0)
		return place(axis, curve->x[0]) - place(axis, x) < bin ? curve->y[0] : NAN;
	double low_place = place(axis, curve->x[high - 1]), high_place = place(axis, curve->x[high]);
	double part = high_place > low_place ? (place(axis, x) - low_place) / (high_place - low_place) : 1;
	return curve->y[high - 1] + part * (curve->y[high] - curve->y[high - 1]);
}
