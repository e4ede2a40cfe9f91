/* SPDX-License-Identifier: Apache-2.0
 *
 * report.c - which runs a report shows, and its sections in their order.
 */
#include "analysis/report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/report/page.h"
#include "analysis/store/database.h"
#include "analysis/summary/compare.h"
#include "base/files/outputs.h"

#define UTILISATION_RUNS 4u /* that fit into one picture */

/* ---- sections that gnuplot draws --------------------------------------------------------------------------------- */

static bool losses(struct skep_page *page)
{
	static const struct skep_plot_axes by_cost = {.x = "cost"};
	static const struct skep_plot_choice against_cost = {.axes = &by_cost};
	skep_page_open(page, "loss", "Loss against time and price");
	skep_page_picture_of_all(page, "accuracy", NULL, "Training loss against the time of the run.");
	skep_page_picture_of_all(page, "accuracy", &against_cost, "Training loss against what all machines have cost.");
	skep_page_close(page);
	return true;
}

static void write_timeline(struct skep_page *page, uint32_t which)
{
	static const struct skep_plot_rounds whole = {.all = true};
	static const struct skep_plot_choice all = {.rounds = &whole};
	char caption[2 * SKEP_PAGE_NAME_BYTES], name[SKEP_PAGE_NAME_BYTES];
	snprintf(caption, sizeof caption, "The whole of %s: what each worker did, in bins of time.",
		skep_page_run_name(&page->run[which], name));
	skep_page_picture(page, "timeline", &page->run[which].id, 1, &all, caption);
}

static bool times(struct skep_page *page)
{
	int64_t run[UTILISATION_RUNS];
	uint32_t runs = page->runs < UTILISATION_RUNS ? page->runs : UTILISATION_RUNS;
	skep_page_open(page, "timeline", "Timeline");
	for (uint32_t i = 0; i < page->runs; i++)
		write_timeline(page, i);
	skep_page_close(page);
	skep_page_open(page, "utilisation", "Utilisation");
	for (uint32_t i = 0; i < runs; i++)
		run[i] = page->run[i].id;
	skep_page_picture(page, "utilisation", run, runs, NULL,
		"Compute time over time alive of each worker, over the time of the run.");
	if (page->runs > runs)
		skep_page_note(page, "The picture has room for the first four runs.");
	skep_page_close(page);
	return true;
}

/* ---- of runs ---------------------------------------------------------------------------------------------------- */

/* The end of the run if it is known, else that of its last round; 0: it has none. */
static bool read_end(struct skep_page *page, uint32_t which)
{
	static const char sql[] = "SELECT coalesce(time_s, (SELECT max(closed_s) FROM rounds WHERE run = ?1), 0)"
				  " FROM runs WHERE id = ?1";
	sqlite3_stmt *row = skep_store_query(page->store, sql, page->run[which].id, 0, page->reterr);
	bool read = row != NULL && skep_store_row(page->store, row);
	page->end_s[which] = read ? fmax(sqlite3_column_double(row, 0), 0) : 0;
	sqlite3_finalize(row);
	return read;
}

static bool choose_runs(struct skep_page *page, const int64_t *run, uint32_t runs)
{
	int64_t pair[2];
	struct skep_diag no_pair = skep_diag_beside(page->reterr);
	if (runs > SKEP_REPORT_RUNS_MAX)
		return skep_fail(
			page->reterr, "at most %u runs fit into one report, not %u", SKEP_REPORT_RUNS_MAX, runs);
	page->runs = runs;
	if (runs == 0 && skep_compare_choose(page->store, &pair[0], &pair[1], &no_pair)) {
		run = pair;
		page->runs = 2;
	} else if (runs == 0) {
		page->runs = 1;
		return skep_plot_single_run(page->store, NULL, 0, &page->run[0], page->reterr) && read_end(page, 0);
	}
	for (uint32_t i = 0; i < page->runs; i++) {
		for (uint32_t k = 0; k < i; k++)
			if (run[i] == run[k])
				return skep_fail(page->reterr, "run %lld is named twice", (long long)run[i]);
		if (!skep_plot_read_run(page->store, run[i], &page->run[i], page->reterr) || !read_end(page, i))
			return false;
	}
	return true;
}

static bool write_sections(struct skep_page *page, const void *what)
{
	static const char *const links[] = {"asked", "What was asked", "machines", "Machines", "loss", "Loss",
		"timeline", "Timeline", "utilisation", "Utilisation", "traffic", "Traffic", "churn", "Churn",
		"prediction", "Prediction and reality", "scenario", "Scenario", "repeat", "Repeat it", NULL};
	char under[256] = "", name[SKEP_PAGE_NAME_BYTES];
	bool same = true;
	(void)what;
	for (uint32_t i = 0; i < page->runs; i++) {
		size_t used = strlen(under);
		snprintf(under + used, sizeof under - used, "%s%s", i ? "; " : "",
			skep_page_run_name(&page->run[i], name));
		same = same && strcmp(page->run[i].scenario, page->run[0].scenario) == 0;
	}
	skep_page_begin(page, same ? page->run[0].scenario : "runs of several scenarios", under, links);
	bool ok = skep_page_asked(page) && skep_page_machines(page) && losses(page) && times(page) &&
	          skep_page_traffic(page) && skep_page_churn(page) && skep_page_against(page) && skep_page_repeat(page);
	skep_page_end(page);
	return ok;
}

/* `what`: of the part that writes. */
typedef bool part(struct skep_page *page, const void *what);

static bool write_page(struct skep_page *page, part *write, const void *what, const char *target)
{
	char *text = NULL;
	size_t length = 0;
	struct skep_diag diag = {0};
	page->out = open_memstream(&text, &length);
	if (page->out == NULL)
		return skep_fail(page->reterr, "no memory for the report");
	bool ok = write(page, what);
	bool whole = fclose(page->out) == 0;
	ok = skep_store_read_all(page->store, page->reterr) && ok;
	if (ok && !whole)
		ok = skep_fail(page->reterr, "no memory for the report");
	if (ok && !skep_file_write(target, text, length, &diag))
		ok = skep_fail(page->reterr, "%s: %s", target, diag.message);
	free(text);
	return ok;
}

bool skep_report_runs(
	struct skep_store *store, const int64_t *run, uint32_t runs, const char *target, struct skep_diag *reterr)
{
	struct skep_page page = {.store = store, .reterr = reterr};
	return choose_runs(&page, run, runs) && write_page(&page, write_sections, NULL, target);
}

/* ---- of many runs ------------------------------------------------------------------------------------------------- */

struct many { /* a sweep, or any runs */
	struct skep_sweep_table table;
	int64_t run[SKEP_REPORT_MANY_MAX];
	uint32_t runs;
};

/* The first ones, if it has more than a page shows. */
static bool read_sweep_runs(struct skep_page *page, struct many *many)
{
	static const char sql[] =
		"SELECT run FROM sweep_runs WHERE sweep = ?1 AND run IS NOT NULL ORDER BY number LIMIT ?2";
	sqlite3_stmt *row = skep_store_query(page->store, sql, many->table.sweep, SKEP_REPORT_MANY_MAX, page->reterr);
	many->runs = 0;
	while (row != NULL && many->runs < SKEP_REPORT_MANY_MAX && skep_store_row(page->store, row))
		many->run[many->runs++] = sqlite3_column_int64(row, 0);
	sqlite3_finalize(row);
	if (row != NULL && many->runs == 0)
		skep_fail(page->reterr, "sweep %lld has no run that is there", (long long)many->table.sweep);
	return many->runs > 0;
}

static bool write_sweep(struct skep_page *page, const void *what)
{
	const struct many *many = what;
	return skep_page_sweep(page, &many->table, many->run, many->runs);
}

static bool write_many(struct skep_page *page, const void *what)
{
	const struct many *many = what;
	struct skep_plot_run run;
	for (uint32_t i = many->runs; i-- > 0; page->run[0] = run)
		if (!skep_plot_read_run(page->store, many->run[i], &run, page->reterr))
			return false;
	return skep_page_many(page, many->run, many->runs);
}

static bool report_sweep(struct skep_page *page, int64_t sweep, struct many *many, const char *target)
{
	bool ok = skep_sweep_table_read(page->store, sweep, &many->table, page->reterr) &&
	          read_sweep_runs(page, many) && write_page(page, write_sweep, many, target);
	skep_sweep_table_finish(&many->table);
	return ok;
}

bool skep_report_sweep(
	struct skep_store *store, const int64_t *run, uint32_t runs, const char *target, struct skep_diag *reterr)
{
	struct skep_page page = {.store = store, .reterr = reterr};
	struct many *many = calloc(1, sizeof *many);
	if (many == NULL || runs > SKEP_REPORT_MANY_MAX) {
		free(many);
		return skep_fail(reterr, "no memory for a report of %u runs", runs);
	}
	int64_t sweep = runs == 1 ? skep_sweep_of_run(store, run[0], reterr) : 0;
	bool ok = runs != 1 || sweep != 0;
	if (ok && runs > 1) {
		memcpy(many->run, run, runs * sizeof *run);
		many->runs = runs;
		ok = write_page(&page, write_many, many, target);
	} else if (ok) {
		ok = report_sweep(&page, sweep, many, target);
	}
	free(many);
	return ok;
}
