/* SPDX-License-Identifier: Apache-2.0
 *
 * store_spread.c - see store_spread.h.
 */
#include "analysis/store/store_spread.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/store/database.h"

static double throughput(const double *workers, const double *cost, uint32_t stages)
{
	double least = INFINITY;
	for (uint32_t s = 0; s < stages; s++)
		least = fmin(least, workers[s] / cost[s]);
	return least;
}

/* One worker after the other goes to the stage that is slowest then: no spread of whole workers is better. */
static double best_throughput(double all, const double *cost, uint32_t stages, double *scratch)
{
	memset(scratch, 0, stages * sizeof *scratch);
	for (; all > 0; all--) {
		uint32_t slowest = 0;
		for (uint32_t s = 1; s < stages; s++)
			if (scratch[s] / cost[s] < scratch[slowest] / cost[slowest])
				slowest = s;
		scratch[slowest]++;
	}
	return throughput(scratch, cost, stages);
}

/* No cost is known of a stage whose first operations, all that the database of a sweep keeps, are forward passes alone. `kinds`
 * has a number for each stage, all zero, and is left so. */
static bool read_costs(
	struct skep_store *store, int64_t run, uint32_t stages, double *ret, double *kinds, struct skep_diag *reterr)
{
	static const char sql[] = "SELECT stage, avg(end_s - begin_s), kind FROM ops"
				  " WHERE run = ?1 AND kind IN ('forward', 'backward') GROUP BY stage, kind";
	bool known = true;
	sqlite3_stmt *row = skep_store_query(store, sql, run, 0, reterr);
	while (row != NULL && skep_store_row(store, row)) {
		int64_t stage = sqlite3_column_int64(row, 0);
		if (stage < stages) {
			ret[stage] += sqlite3_column_double(row, 1);
			kinds[stage]++;
		}
	}
	sqlite3_finalize(row);
	for (uint32_t s = 0; s < stages; s++)
		known = known && kinds[s] == 2 && ret[s] > 0;
	for (uint32_t s = 0; s < stages && !known; s++)
		ret[s] = 1;
	memset(kinds, 0, stages * sizeof *kinds);
	return row != NULL;
}

/* `scratch` has three numbers for each stage, all zero. */
static bool read_rounds(struct skep_store *store, int64_t run, uint32_t stages, double *scratch,
	skep_spread_visit *visit, void *context, struct skep_diag *reterr)
{
	static const char sql[] = "SELECT stage, members, opened_s, closed_s FROM stage_rounds"
				  " JOIN rounds USING (run, round) WHERE run = ?1 ORDER BY round, stage";
	double *cost = scratch, *workers = scratch + stages, *best = scratch + 2 * (size_t)stages, all = 0;
	if (!read_costs(store, run, stages, cost, best, reterr))
		return false;
	sqlite3_stmt *row = skep_store_query(store, sql, run, 0, reterr);
	while (row != NULL && skep_store_row(store, row)) {
		uint32_t stage = (uint32_t)sqlite3_column_int64(row, 0);
		if (stage >= stages)
			continue;
		workers[stage] = sqlite3_column_double(row, 1);
		all = stage == 0 ? workers[stage] : all + workers[stage];
		if (stage + 1 < stages)
			continue;
		double most = best_throughput(all, cost, stages, best);
		visit(context, sqlite3_column_double(row, 2), sqlite3_column_double(row, 3),
			most > 0 ? 100 * throughput(workers, cost, stages) / most : 0);
	}
	sqlite3_finalize(row);
	return row != NULL;
}

bool skep_store_spread(struct skep_store *store, int64_t run, uint32_t stages, skep_spread_visit *visit, void *context,
	struct skep_diag *reterr)
{
	double *scratch = calloc(3 * (size_t)stages, sizeof *scratch);
	bool good = scratch != NULL && read_rounds(store, run, stages, scratch, visit, context, reterr);
	if (scratch == NULL)
		skep_fail(reterr, "not enough memory for the spread of %u stages", stages);
	free(scratch);
	return good;
}

struct mean {
	double sum, time_s;
};

static void add_to_mean(void *context, double opened_s, double closed_s, double percent)
{
	struct mean *mean = context;
	mean->sum += percent * (closed_s - opened_s);
	mean->time_s += closed_s - opened_s;
}

bool skep_store_spread_mean(
	struct skep_store *store, int64_t run, uint32_t stages, double *ret, struct skep_diag *reterr)
{
	struct mean mean = {0};
	if (!skep_store_spread(store, run, stages, add_to_mean, &mean, reterr))
		return false;
	*ret = mean.time_s > 0 ? mean.sum / mean.time_s : NAN;
	return true;
}
