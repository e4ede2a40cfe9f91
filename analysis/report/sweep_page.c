/* SPDX-License-Identifier: Apache-2.0
 *
 * sweep_page.c - reports of sweeps, and of runs that a plan or a hand has made: the table, then the pictures that set the choices
 * against each other.
 */
#include "analysis/report/page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/store/database.h"
#include "base/layout.h"

static const char *const LINKS[] = {"asked", "What was asked", "results", "Results", "choice", "Time against price",
	"pictures", "Pictures", "repeat", "Repeat it", NULL};

/* ---- the table of a sweep ---------------------------------------------------------------------------------------------- */

static bool has_figures(const struct skep_sweep_table *t, int metric)
{
	for (uint32_t p = 0; p < t->points; p++)
		if (t->row[p].figure[metric].runs > 0)
			return true;
	return false;
}

static bool more_is_better(int metric)
{
	return metric == SKEP_SWEEP_THROUGHPUT || metric == SKEP_SWEEP_UTILISATION;
}

/* By its mean; of equal ones the first. */
static uint32_t best_point(const struct skep_sweep_table *t, int metric)
{
	uint32_t best = UINT32_MAX;
	for (uint32_t p = 0; p < t->points; p++) {
		double mean = t->row[p].figure[metric].mean,
		       least = best < t->points ? t->row[best].figure[metric].mean : NAN;
		if (isfinite(mean) && (isnan(least) || (more_is_better(metric) ? mean > least : mean < least)))
			best = p;
	}
	return best;
}

static void write_head(FILE *out, const struct skep_sweep_table *t)
{
	fputs("<div class=\"wide\"><table><thead><tr>", out);
	for (uint32_t k = 0; k < t->keys; k++)
		skep_html_element(out, "th", t->key[k]);
	fputs("<th class=\"number\">runs</th>", out);
	for (int m = 0; m < SKEP_SWEEP_METRICS; m++)
		if (has_figures(t, m))
			skep_html_element(
				out, "th class=\"number\"", skep_sweep_metric_title((enum skep_sweep_metric)m));
	fputs("</tr></thead><tbody>\n", out);
}

static void write_row(
	FILE *out, const struct skep_sweep_table *t, uint32_t p, const uint32_t best_of[SKEP_SWEEP_METRICS])
{
	const struct skep_sweep_row *row = &t->row[p];
	char text[SKEP_TEXT_BYTES];
	fputs("<tr>", out);
	for (uint32_t k = 0; k < t->keys; k++)
		skep_html_element(out, "td", t->value[(size_t)p * t->keys + k]);
	fprintf(out, "<td class=\"number\">%u", row->done);
	if (row->failed > 0)
		fprintf(out, ", %u failed", row->failed);
	if (row->diverged > 0)
		fprintf(out, ", %u diverged", row->diverged);
	fputs("</td>", out);
	for (int m = 0; m < SKEP_SWEEP_METRICS; m++) {
		double scale = skep_sweep_metric_scale((enum skep_sweep_metric)m);
		const struct skep_sweep_figure *f = &row->figure[m];
		if (!has_figures(t, m))
			continue;
		bool best = best_of[m] == p;
		fprintf(out, "<td class=\"number\">%s", best ? "<strong>" : "");
		skep_html_text(out, f->runs > 0 ? skep_mean_text(f->mean * scale, f->spread * scale, text) : "-");
		fprintf(out, "%s</td>", best ? "</strong>" : "");
	}
	fputs("</tr>\n", out);
}

/* The values of the key, each once and in the order of the points; `ret` has room for one of each point. */
static uint32_t find_values(const struct skep_sweep_table *t, uint32_t key, const char **ret)
{
	uint32_t values = 0;
	for (uint32_t p = 0; ret != NULL && p < t->points; p++) {
		uint32_t i = 0;
		const char *value = t->value[(size_t)p * t->keys + key];
		while (i < values && strcmp(ret[i], value) != 0)
			i++;
		if (i == values)
			ret[values++] = value;
	}
	return values;
}

static void write_facts(struct skep_page *page, const struct skep_sweep_table *t)
{
	FILE *out = page->out;
	const char **value = calloc(t->points + 1u, sizeof *value);
	fputs("<div class=\"wide\"><table><tbody>\n<tr><th scope=\"row\">scenario</th>", out);
	skep_html_element(out, "td", t->scenario);
	fputs("</tr>\n", out);
	for (uint32_t k = 0; k < t->keys; k++) {
		fputs("<tr>", out);
		skep_html_element(out, "th scope=\"row\"", t->key[k]);
		fputs("<td>", out);
		uint32_t values = find_values(t, k, value);
		for (uint32_t i = 0; i < values; i++)
			skep_html_printf(out, "%s%s", i > 0 ? ", " : "", value[i]);
		fputs("</td></tr>\n", out);
	}
	fprintf(out, "<tr><th scope=\"row\">runs</th><td>%u of %u are there", t->done + t->failed, t->wanted);
	if (t->failed > 0)
		fprintf(out, "; %u failed, and no mean counts them", t->failed);
	fputs("</td></tr>\n<tr><th scope=\"row\">number formats</th>", out);
	skep_html_element(out, "td", t->format);
	fputs("</tr>\n</tbody></table></div>\n", out);
	free(value);
}

/* ---- pictures -------------------------------------------------------------------------------------------------------- */

static void write_choice(struct skep_page *page, const int64_t *run, uint32_t runs)
{
	skep_page_open(page, "choice", "Time against price");
	skep_page_picture(page, "pareto", run, runs, NULL,
		"Each choice of settings by what it costs and how long it takes, runs that differ by their seed in their mean.");
	skep_page_close(page);
}

static void write_pictures(struct skep_page *page, const struct skep_sweep_table *t, const int64_t *run, uint32_t runs)
{
	static const int drawn[] = {SKEP_SWEEP_THROUGHPUT, SKEP_SWEEP_TO_TARGET, SKEP_SWEEP_COST, SKEP_SWEEP_LOSS};
	char caption[128];
	skep_page_open(page, "pictures", "Pictures");
	for (size_t i = 0; t != NULL && t->keys > 0 && i < sizeof drawn / sizeof drawn[0]; i++) {
		const char *key = skep_sweep_metric_key((enum skep_sweep_metric)drawn[i]);
		const struct skep_plot_choice choice = {.metric = key};
		if (!has_figures(t, drawn[i]))
			continue;
		snprintf(caption, sizeof caption, "%s against the settings.",
			skep_sweep_metric_title((enum skep_sweep_metric)drawn[i]));
		skep_page_picture(page, "sweep", run, 1, &choice, caption);
	}
	skep_page_picture(page, "accuracy", run, runs, NULL, "Training loss against the time of the run.");
	skep_page_close(page);
}

/* ---- how to repeat it ---------------------------------------------------------------------------------------------------- */

static void write_vary(FILE *out, const struct skep_sweep_table *t, uint32_t k)
{
	char *word = NULL;
	size_t length = 0;
	FILE *text = open_memstream(&word, &length);
	if (text == NULL)
		return;
	const char **value = calloc(t->points + 1u, sizeof *value);
	uint32_t values = find_values(t, k, value);
	fprintf(text, "%s=", t->key[k]);
	for (uint32_t i = 0; i < values; i++)
		fprintf(text, "%s%s", i > 0 ? "," : "", value[i]);
	free(value);
	if (fclose(text) == 0) {
		fputs(" --vary ", out);
		skep_html_word(out, word);
	}
	free(word);
}

static bool write_seeds(struct skep_page *page, int64_t sweep)
{
	static const char sql[] = "SELECT group_concat(seed, ',') FROM (SELECT DISTINCT printf('%llu', seed) AS seed"
				  " FROM sweep_runs WHERE sweep = ?1 ORDER BY number)";
	sqlite3_stmt *row = skep_store_query(page->store, sql, sweep, 0, page->reterr);
	if (row != NULL && skep_store_row(page->store, row)) {
		fputs(" --seeds ", page->out);
		skep_html_word(page->out, skep_column_text(row, 0));
	}
	sqlite3_finalize(row);
	return row != NULL;
}

static bool write_repeat(struct skep_page *page, const struct skep_sweep_table *t)
{
	sqlite3_stmt *row =
		skep_store_query(page->store, "SELECT path FROM sweeps WHERE id = ?1", t->sweep, 0, page->reterr);
	bool ok = row != NULL && skep_store_row(page->store, row);
	skep_page_open(page, "repeat", "How to repeat it");
	if (ok) {
		fputs("<pre>skep sweep ", page->out);
		skep_html_word(page->out, skep_column_text(row, 0));
		for (uint32_t k = 0; k < t->keys; k++)
			write_vary(page->out, t, k);
		ok = write_seeds(page, t->sweep);
		skep_page_database(page);
		fputs("\n", page->out);
		skep_page_command(page, true, NULL, 0);
		fputs("</pre>\n<p class=\"note\">", page->out);
		skep_html_printf(page->out,
			"With skep %s, and with what --set changed if the sweep was started with that: the database "
			"keeps the text of each run, in which all of it is, and not the option.",
			t->version);
		fputs("</p>\n", page->out);
	}
	skep_page_close(page);
	sqlite3_finalize(row);
	return ok;
}

bool skep_page_sweep(struct skep_page *page, const struct skep_sweep_table *t, const int64_t *run, uint32_t runs)
{
	char under[128];
	snprintf(under, sizeof under, "sweep %lld, %u runs", (long long)t->sweep, t->done + t->failed);
	skep_page_begin(page, t->scenario, under, LINKS);
	skep_page_open(page, "asked", "What was asked");
	write_facts(page, t);
	skep_page_close(page);
	skep_page_open(page, "results", "Results");
	write_head(page->out, t);
	uint32_t best[SKEP_SWEEP_METRICS];
	for (int m = 0; m < SKEP_SWEEP_METRICS; m++)
		best[m] = best_point(t, m);
	for (uint32_t p = 0; p < t->points; p++)
		write_row(page->out, t, p, best);
	fputs("</tbody></table></div>\n", page->out);
	skep_page_note(page, "Means over the seeds, with standard deviations. The best mean of each column is bold.");
	skep_page_close(page);
	write_choice(page, run, runs);
	write_pictures(page, t, run, runs);
	bool ok = write_repeat(page, t);
	skep_page_end(page);
	return ok;
}

/* ---- of any runs -------------------------------------------------------------------------------------------------------- */

static void write_settings(FILE *out, const struct skep_differences *d)
{
	char key[96];
	if (d->same)
		fputs("-", out);
	for (size_t i = 0; i < d->count && i < SKEP_DIFFERENCES_SHOWN; i++)
		skep_html_printf(out, "%s%s %s", i ? ", " : "", skep_plot_short_key(d->item[i].key, key, sizeof key),
			d->item[i].second[0] ? d->item[i].second : "not set");
	if (d->count > SKEP_DIFFERENCES_SHOWN)
		fprintf(out, ", ... (%zu)", d->count);
}

static bool write_run(struct skep_page *page, int64_t first, int64_t run)
{
	static const char sql[] =
		"SELECT scenario, printf('%llu', seed), status, time_s, throughput_samples_per_s, cost_usd,"
		" final_loss, time_to_target_s, world FROM runs WHERE id = ?1";
	struct skep_differences d;
	char text[SKEP_TEXT_BYTES];
	FILE *out = page->out;
	if (!skep_settings_compare_runs(page->store, first, run, NULL, &d, page->reterr))
		return false;
	sqlite3_stmt *row = skep_store_query(page->store, sql, run, 0, page->reterr);
	bool found = row != NULL && skep_store_row(page->store, row);
	if (found) {
		double time_s = skep_column_real(row, 3), target_s = skep_column_real(row, 7);
		fprintf(out, "<tr><td class=\"number\">%lld</td><td>", (long long)run);
		skep_html_printf(out, "%s, %s", skep_column_text(row, 0),
			strcmp(skep_column_text(row, 8), "sim") == 0 ? "simulated" : "real");
		fputs("</td><td>", out);
		write_settings(out, &d);
		fputs("</td>", out);
		skep_html_element(out, "td class=\"number\"", skep_column_text(row, 1));
		skep_html_element(out, "td", skep_column_text(row, 2));
		skep_html_element(out, "td class=\"number\"", isnan(time_s) ? "-" : skep_time_text(time_s, text));
		for (int i = 4; i < 7; i++) {
			double value = skep_column_real(row, i);
			fprintf(out, isnan(value) ? "<td class=\"number\">-</td>" : "<td class=\"number\">%.4g</td>",
				value);
		}
		skep_html_element(out, "td class=\"number\"", isnan(target_s) ? "-" : skep_time_text(target_s, text));
		fputs("</tr>\n", out);
	} else if (row != NULL) {
		skep_fail(page->reterr, "there is no run %lld in the database; `skep runs list` shows which there are",
			(long long)run);
	}
	sqlite3_finalize(row);
	return found;
}

bool skep_page_many(struct skep_page *page, const int64_t *run, uint32_t runs)
{
	char under[64];
	bool ok = true;
	snprintf(under, sizeof under, "%u runs side by side", runs);
	skep_page_begin(page, page->run[0].scenario, under, LINKS);
	skep_page_open(page, "asked", "What was asked");
	skep_page_note(page,
		"Runs that no sweep has made, of a plan that was confirmed or by hand. The settings of each are those "
		"in which it differs from the first.");
	skep_page_close(page);
	skep_page_open(page, "results", "Results");
	fputs("<div class=\"wide\"><table><thead><tr><th class=\"number\">run</th><th>scenario</th><th>settings</th>"
	      "<th class=\"number\">seed</th><th>status</th><th class=\"number\">time</th><th class=\"number\">samples/s</th>"
	      "<th class=\"number\">cost (USD)</th><th class=\"number\">final loss</th><th class=\"number\">to target</th>"
	      "</tr></thead><tbody>\n",
		page->out);
	for (uint32_t i = 0; ok && i < runs; i++)
		ok = write_run(page, run[0], run[i]);
	fputs("</tbody></table></div>\n", page->out);
	skep_page_close(page);
	write_choice(page, run, runs);
	write_pictures(page, NULL, run, runs);
	skep_page_open(page, "repeat", "How to repeat it");
	fputs("<pre>", page->out);
	skep_page_command(page, true, run, runs);
	fputs("</pre>\n<p class=\"note\">The report of a single run, `skep report RUN`, says how to "
	      "repeat that run.</p>\n",
		page->out);
	skep_page_close(page);
	skep_page_end(page);
	return ok;
}
