/* SPDX-License-Identifier: Apache-2.0
 *
 * plot_jobs.c - completion times of many jobs as a distribution: for each policy, how large a part of the jobs was done in
 * such a time from its arrival.
 */
#include "analysis/jobs/comparison.h"
#include "analysis/jobs/jobs_db.h"
#include "analysis/plot/plot_script.h"

#define LOG_FROM 30.0 /* an axis that spans more is logarithmic */
#define BESIDE 1.06   /* of the longest, and of the shortest on a logarithmic axis: so far the axis goes beyond it */

static const char *const TEMPLATE[] = {
#include "jobs.gp.inc"
};

struct figure {
	struct skep_store *store;
	struct skep_jobs_comparison of;
	double least_s, most_s, left_s, right_s;
	bool log;
};

static bool find_range(struct figure *f, struct skep_diag *reterr)
{
	static const char sql[] = "SELECT min(end_s - arrival_s), max(end_s - arrival_s) FROM cluster_jobs"
				  " WHERE cluster_run BETWEEN ?1 AND ?2 AND end_s > arrival_s";
	sqlite3_stmt *row = skep_store_query(f->store, sql, f->of.run[0], f->of.run[f->of.policies - 1], reterr);
	if (row && skep_store_row(f->store, row)) {
		f->least_s = skep_column_real(row, 0);
		f->most_s = skep_column_real(row, 1);
	}
	sqlite3_finalize(row);
	if (!(f->most_s > 0))
		return skep_fail(reterr, "these jobs took no time");
	f->log = f->most_s > LOG_FROM * f->least_s;
	f->left_s = f->log ? f->least_s / BESIDE : 0;
	f->right_s = f->most_s * BESIDE;
	return true;
}

static bool write_points(struct figure *f, uint32_t which, double per_s, FILE *script, struct skep_diag *reterr)
{
	static const char sql[] =
		"SELECT end_s - arrival_s, row_number() OVER (ORDER BY end_s - arrival_s), count(*) OVER ()"
		" FROM cluster_jobs WHERE cluster_run = ?1 AND ?2 = 0 ORDER BY 1";
	sqlite3_stmt *row = skep_store_query(f->store, sql, f->of.run[which], 0, reterr);
	fprintf(script, "$policy%u << EOD\n%.9g 0\n", which + 1, per_s * f->left_s);
	while (row && skep_store_row(f->store, row))
		fprintf(script, "%.9g %.9g\n", per_s * sqlite3_column_double(row, 0),
			100 * sqlite3_column_double(row, 1) / sqlite3_column_double(row, 2));
	fprintf(script, "%.9g 100\nEOD\n", per_s * f->right_s);
	sqlite3_finalize(row);
	return row != NULL;
}

static bool write_picture(const void *what, struct skep_picture *picture, struct skep_diag *reterr)
{
	const struct skep_jobs_source *from = what;
	struct figure figure = {.store = from->store}, *f = &figure;
	FILE *script = picture->script;
	char title[400];
	if (!skep_jobs_comparison_find(from->store, from->comparison, &f->of, reterr) || !find_range(f, reterr))
		return false;
	struct skep_plot_unit unit = skep_plot_unit(f->most_s);
	snprintf(title, sizeof title, "%s: %u jobs, by when they are done", f->of.name, f->of.jobs);
	fprintf(script, "set title ");
	skep_script_string(script, title);
	fprintf(script, "\nset xlabel 'time from arrival to end (%s)'\n%s", unit.name,
		f->log ? "set logscale x\n" : "");
	fprintf(script, "set xrange [%.9g:%.9g]\npolicies = %u\narray Title[%u]\narray Colour[%u]\n",
		unit.per_s * f->left_s, unit.per_s * f->right_s, f->of.policies, f->of.policies, f->of.policies);
	for (uint32_t i = 0; i < f->of.policies; i++) {
		snprintf(title, sizeof title, "%s, mean %.3g %s", f->of.policy[i], unit.per_s * f->of.mean_s[i],
			unit.name);
		fprintf(script, "Title[%u] = ", i + 1);
		skep_script_string(script, title);
		fprintf(script, "\nColour[%u] = '%s'\n", i + 1, skep_plot_colour(i));
		if (!write_points(f, i, unit.per_s, script, reterr))
			return false;
	}
	skep_script_lines(script, TEMPLATE, sizeof TEMPLATE / sizeof TEMPLATE[0]);
	fprintf(script, "plot ");
	for (uint32_t i = 0; i < f->of.policies; i++)
		fprintf(script, "%s$policy%u using 1:2 with steps lw 2.2 lc rgb Colour[%u] title Title[%u]",
			i > 0 ? ", " : "", i + 1, i + 1, i + 1);
	fprintf(script, "\n");
	return skep_store_read_all(f->store, reterr);
}

bool skep_plot_jobs(const char *db, int64_t comparison, const char *target, struct skep_diag *reterr)
{
	return skep_jobs_picture(db, comparison, target, write_picture, reterr);
}
