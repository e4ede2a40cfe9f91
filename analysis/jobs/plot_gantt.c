/* SPDX-License-Identifier: Apache-2.0
 *
 * plot_gantt.c - which job had how many machines when, by policy: a row for each job, by arrival, from there to its end, and a
 * box for each stretch of time with a number of machines, the darker the more.
 */
#include "analysis/jobs/comparison.h"
#include "analysis/jobs/jobs_db.h"
#include "analysis/plot/plot_script.h"
#include "base/layout.h"

#define NAMED_MOST 24u /* jobs, by their names; of more the axis says how many there are */
#define PANELS_MAX 6u
#define ROW_PX 18u /* of a job, within these bounds of a panel */
#define PANEL_LEAST_PX 150u
#define PANEL_MOST_PX 420u
#define BESIDE 1.01   /* of the last end: so far the axis goes */
#define AROUND_PX 70u /* of each panel: its title and its axis */

static const char *const TEMPLATE[] = {
#include "gantt.gp.inc"
};

struct figure {
	struct skep_store *store;
	struct skep_jobs_comparison of;
	double most_s;     /* when the last job of all policies has ended */
	uint32_t machines; /* that a job had, at most */
};

static bool find_range(struct figure *f, struct skep_diag *reterr)
{
	static const char sql[] =
		"SELECT max(end_s), max(machines) FROM cluster_spans WHERE cluster_run BETWEEN ?1 AND ?2";
	sqlite3_stmt *row = skep_store_query(f->store, sql, f->of.run[0], f->of.run[f->of.policies - 1], reterr);
	bool read = row && skep_store_row(f->store, row);
	if (read) {
		f->most_s = skep_column_real(row, 0);
		f->machines = (uint32_t)sqlite3_column_int64(row, 1);
	}
	sqlite3_finalize(row);
	return skep_store_read_all(f->store, reterr) && read &&
	       (f->most_s > 0 || skep_fail(reterr, "these jobs took no time"));
}

/* Rows of numbers, each as a line of a data block. */
static bool write_block(struct figure *f, const char *name, uint32_t panel, const char *sql, double per_s, FILE *script,
	struct skep_diag *reterr)
{
	sqlite3_stmt *row = skep_store_query(f->store, sql, f->of.run[panel], 0, reterr);
	fprintf(script, "$%s%u << EOD\n", name, panel + 1);
	while (row && skep_store_row(f->store, row))
		fprintf(script, "%lld %.9g %.9g %lld\n", (long long)sqlite3_column_int64(row, 0),
			per_s * sqlite3_column_double(row, 1), per_s * sqlite3_column_double(row, 2),
			(long long)sqlite3_column_int64(row, 3));
	fprintf(script, "EOD\n");
	sqlite3_finalize(row);
	return row != NULL;
}

static bool write_names(struct figure *f, FILE *script, struct skep_diag *reterr)
{
	static const char sql[] = "SELECT job, name FROM cluster_jobs WHERE cluster_run = ?1 AND ?2 = 0 ORDER BY job";
	char name[48];
	sqlite3_stmt *row = skep_store_query(f->store, sql, f->of.run[0], 0, reterr);
	fprintf(script, "set ytics scale 0 (");
	for (uint32_t i = 0; row && skep_store_row(f->store, row); i++) {
		skep_column_show(row, 1, name, sizeof name);
		fprintf(script, "%s", i > 0 ? ", " : "");
		skep_script_string(script, name);
		fprintf(script, " %lld", (long long)sqlite3_column_int64(row, 0));
	}
	fprintf(script, ")\n");
	sqlite3_finalize(row);
	return row != NULL;
}

static void write_panel(struct figure *f, uint32_t panel, struct skep_plot_unit unit, bool last, FILE *script)
{
	char title[96];
	snprintf(title, sizeof title, "%s, mean %.3g %s from arrival to end", f->of.policy[panel],
		unit.per_s * f->of.mean_s[panel], unit.name);
	fprintf(script, "set title ");
	skep_script_string(script, title);
	if (last)
		fprintf(script, "\nset xlabel 'time (%s)'", unit.name);
	fprintf(script,
		"\nplot $stays%u using 2:1:2:3:($1-0.1):($1+0.1) with boxxyerror fs solid 1 noborder lc rgb '#c8c8c8', "
		"$spans%u using 2:1:2:3:($1-0.4):($1+0.4):4 with boxxyerror fs solid 1 noborder lc palette\n",
		panel + 1, panel + 1);
}

static uint32_t panel_px(uint32_t jobs)
{
	uint32_t px = ROW_PX * (jobs < 1000 ? jobs : 1000);
	px = px < PANEL_LEAST_PX ? PANEL_LEAST_PX : px > PANEL_MOST_PX ? PANEL_MOST_PX : px;
	return px + AROUND_PX;
}

static bool write_picture(const void *what, struct skep_picture *picture, struct skep_diag *reterr)
{
	static const char stays[] =
		"SELECT job, arrival_s, end_s, 0 FROM cluster_jobs WHERE cluster_run = ?1 AND ?2 = 0 ORDER BY job";
	static const char spans[] = "SELECT job, begin_s, end_s, machines FROM cluster_spans WHERE cluster_run = ?1"
				    " AND ?2 = 0 ORDER BY job, begin_s";
	const struct skep_jobs_source *from = what;
	struct figure figure = {.store = from->store}, *f = &figure;
	FILE *script = picture->script;
	if (!skep_jobs_comparison_find(from->store, from->comparison, &f->of, reterr) || !find_range(f, reterr))
		return false;
	struct skep_plot_unit unit = skep_plot_unit(f->most_s);
	uint32_t panels = f->of.policies < PANELS_MAX ? f->of.policies : PANELS_MAX;
	bool named = f->of.jobs <= NAMED_MOST;
	char title[400];
	picture->height = panels * panel_px(f->of.jobs) + AROUND_PX;
	fprintf(script, "panels = %u\njobs = %u\nmachines = %u\nstep = %.9g\nnames = %d\nset xrange [0:%.9g]\n", panels,
		f->of.jobs, f->machines, skep_plot_step(f->machines > 4 ? f->machines / 4.0 : 1), named,
		BESIDE * unit.per_s * f->most_s);
	skep_script_lines(script, TEMPLATE, sizeof TEMPLATE / sizeof TEMPLATE[0]);
	if (named && !write_names(f, script, reterr))
		return false;
	if (!named)
		fprintf(script, "set ylabel 'jobs, by arrival'\n");
	for (uint32_t i = 0; i < panels; i++)
		if (!write_block(f, "stays", i, stays, unit.per_s, script, reterr) ||
			!write_block(f, "spans", i, spans, unit.per_s, script, reterr))
			return false;
	char some[48] = "";
	if (panels < f->of.policies)
		snprintf(some, sizeof some, ", the first %u of %u policies", panels, f->of.policies);
	snprintf(title, sizeof title, "%s: %u job%s on %u machine%s%s", f->of.name, f->of.jobs, skep_plural(f->of.jobs),
		f->of.machines, skep_plural(f->of.machines), some);
	fprintf(script, "set multiplot layout panels, 1 title ");
	skep_script_string(script, title);
	fprintf(script, " font ',14'\n");
	for (uint32_t i = 0; i < panels; i++)
		write_panel(f, i, unit, i + 1 == panels, script);
	fprintf(script, "unset multiplot\n");
	return skep_store_read_all(f->store, reterr);
}

bool skep_plot_gantt(const char *db, int64_t comparison, const char *target, struct skep_diag *reterr)
{
	return skep_jobs_picture(db, comparison, target, write_picture, reterr);
}
