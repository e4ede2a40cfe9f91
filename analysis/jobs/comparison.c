/* SPDX-License-Identifier: Apache-2.0
 *
 * comparison.c - see comparison.h.
 */
#include "analysis/jobs/comparison.h"

bool skep_jobs_comparison_find(
	struct skep_store *store, int64_t comparison, struct skep_jobs_comparison *ret, struct skep_diag *reterr)
{
	static const char there[] =
		"SELECT count(*) FROM sqlite_master WHERE name = 'cluster_runs' AND ?1 = ?1 AND ?2 = ?2";
	static const char sql[] =
		"SELECT id, policy, completion_mean_s, name, jobs, machines FROM cluster_runs WHERE ?2 = 0 AND comparison ="
		" coalesce(nullif(?1, 0), (SELECT max(comparison) FROM cluster_runs)) ORDER BY id";
	*ret = (struct skep_jobs_comparison){.policies = 0};
	sqlite3_stmt *row = skep_store_query(store, there, 0, 0, reterr);
	bool has = row && skep_store_row(store, row) && sqlite3_column_int(row, 0) > 0;
	sqlite3_finalize(row);
	row = has ? skep_store_query(store, sql, comparison, 0, reterr) : NULL;
	while (row && ret->policies < SKEP_JOBS_POLICIES_MAX && skep_store_row(store, row)) {
		uint32_t i = ret->policies++;
		ret->run[i] = sqlite3_column_int64(row, 0);
		skep_column_show(row, 1, ret->policy[i], sizeof ret->policy[i]);
		ret->mean_s[i] = skep_column_real(row, 2);
		skep_column_show(row, 3, ret->name, sizeof ret->name);
		ret->jobs = (uint32_t)sqlite3_column_int64(row, 4);
		ret->machines = (uint32_t)sqlite3_column_int64(row, 5);
	}
	sqlite3_finalize(row);
	if (ret->policies > 0)
		return true;
	return comparison > 0 ? skep_fail(reterr, "comparison %lld is not in the database", (long long)comparison)
	                      : skep_fail(reterr, "the database holds no jobs: `skep jobs FILE` writes some");
}

bool skep_jobs_picture(
	const char *db, int64_t comparison, const char *target, skep_picture_write *write, struct skep_diag *reterr)
{
	const struct skep_jobs_source from = {skep_store_open(db, false, reterr), comparison};
	bool done = from.store && skep_plot_picture(target, write, &from, reterr);
	skep_store_close(from.store);
	return done;
}
