/* SPDX-License-Identifier: Apache-2.0
 *
 * asked.c - what was asked and what came out: the figures of the first run in large letters, then a table with a column for each
 * run.
 */
#include <math.h>
#include <string.h>

#include "analysis/report/page.h"
#include "analysis/store/database.h"
#include "base/layout.h"

enum unit { UNIT_TEXT, UNIT_TIME, UNIT_BYTES, UNIT_COUNT, UNIT_NUMBER, UNIT_SHARE, UNIT_USD, UNIT_SPEED };

struct fact {
	const char *name;
	enum unit unit;
	const char *sql; /* one row with one value, of run ?1 */
};

#define OF_RUN(column) "SELECT " column " FROM runs WHERE id = ?1"

static const struct fact ASKED[] = {
	{"scenario", UNIT_TEXT, OF_RUN("scenario")},
	{"model", UNIT_TEXT, OF_RUN("model || ' in ' || stages || iif(stages = 1, ' stage', ' stages')")},
	{"network", UNIT_TEXT, OF_RUN("topology")},
	{"machines", UNIT_TEXT,
		"SELECT group_concat(number || ' \xc3\x97 ' || gpu, ', ') FROM (SELECT gpu, count(*) AS number FROM workers"
		" WHERE run = ?1 AND role = 'worker' GROUP BY gpu ORDER BY number DESC, gpu)"},
	{"places", UNIT_COUNT, "SELECT count(DISTINCT place) FROM workers WHERE run = ?1 AND role = 'worker'"},
	{"training", UNIT_TEXT,
		OF_RUN("rounds_planned || ' rounds of ' || microbatches || ' microbatches of '"
		       " || samples_per_microbatch || iif(samples_per_microbatch = 1, ' sample', ' samples')")},
	{"arithmetic", UNIT_TEXT, OF_RUN("arithmetic || ', ' || number_format")},
	{"target loss", UNIT_NUMBER, OF_RUN("target_loss")},
	{"seed", UNIT_TEXT, OF_RUN("printf('%llu', seed)")},
	{"goes on with run", UNIT_COUNT, OF_RUN("continues")},
};

static const struct fact CAME_OUT[] = {
	{"ended", UNIT_TEXT,
		OF_RUN("CASE status WHEN 'done' THEN 'as planned' WHEN 'failed' THEN 'before its goal (failed)'"
		       " WHEN 'dead' THEN 'not recorded to its end' ELSE 'still running' END")},
	{"rounds closed", UNIT_COUNT, "SELECT count(*) FROM rounds WHERE run = ?1"},
	{"time", UNIT_TIME, OF_RUN("time_s")},
	{"throughput", UNIT_SPEED, OF_RUN("throughput_samples_per_s")},
	{"utilisation", UNIT_SHARE, OF_RUN("100 * utilisation")},
	{"final loss", UNIT_NUMBER, OF_RUN("final_loss")},
	{"final validation loss", UNIT_NUMBER, OF_RUN("final_validation_loss")},
	{"time to target", UNIT_TIME, OF_RUN("time_to_target_s")},
	{"cost", UNIT_USD, OF_RUN("cost_usd")},
	{"of that for egress", UNIT_USD, OF_RUN("egress_usd")},
	{"cost to target", UNIT_USD, OF_RUN("cost_to_target_usd")},
	{"sent between stages", UNIT_BYTES, OF_RUN("bytes_pipeline")},
	{"sent in reductions", UNIT_BYTES, OF_RUN("bytes_sync")},
	{"gradients issued", UNIT_COUNT, OF_RUN("issued")},
	{"gradients lost", UNIT_COUNT, OF_RUN("lost")},
	{"workers lost", UNIT_COUNT, OF_RUN("preemptions")},
	{"joins", UNIT_COUNT, OF_RUN("joins")},
	{"migrations", UNIT_COUNT, OF_RUN("migrations")},
};

/* In large letters, where the run has them. */
static const struct fact HEADLINE[] = {
	{"time", UNIT_TIME, OF_RUN("time_s")},
	{"throughput", UNIT_SPEED, OF_RUN("throughput_samples_per_s")},
	{"final loss", UNIT_NUMBER, OF_RUN("final_loss")},
	{"final validation loss", UNIT_NUMBER, OF_RUN("final_validation_loss")},
	{"cost", UNIT_USD, OF_RUN("cost_usd")},
	{"utilisation", UNIT_SHARE, OF_RUN("100 * utilisation")},
	{"gradients lost", UNIT_SHARE, OF_RUN("100.0 * lost / nullif(issued, 0)")},
};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))
#define VALUE_BYTES 512u

/* "": the run does not have it. */
static void print_value(const struct fact *fact, sqlite3_stmt *row, char ret[VALUE_BYTES])
{
	char text[SKEP_TEXT_BYTES];
	double value = skep_column_real(row, 0);
	ret[0] = '\0';
	if (sqlite3_column_type(row, 0) == SQLITE_NULL)
		return;
	if (fact->unit == UNIT_TEXT)
		snprintf(ret, VALUE_BYTES, "%s", skep_column_text(row, 0));
	else if (isinf(value))
		snprintf(ret, VALUE_BYTES, "diverged");
	else if (fact->unit == UNIT_TIME)
		snprintf(ret, VALUE_BYTES, "%s", skep_time_text(value, text));
	else if (fact->unit == UNIT_BYTES)
		snprintf(ret, VALUE_BYTES, "%s", skep_bytes_text(value, text));
	else if (fact->unit == UNIT_COUNT)
		snprintf(ret, VALUE_BYTES, "%.0f", value);
	else if (fact->unit == UNIT_SHARE)
		snprintf(ret, VALUE_BYTES, value > 0 && value < 0.1 ? "%.2f %%" : "%.1f %%", value);
	else if (fact->unit == UNIT_USD)
		snprintf(ret, VALUE_BYTES, value > 0 && value < 0.1 ? "%.2g USD" : "%.2f USD", value);
	else if (fact->unit == UNIT_SPEED)
		snprintf(ret, VALUE_BYTES, value < 100 ? "%.3g samples/s" : "%.0f samples/s", value);
	else
		snprintf(ret, VALUE_BYTES, "%.4g", value);
}

static bool read_value(struct skep_page *page, const struct fact *fact, int64_t run, char ret[VALUE_BYTES])
{
	sqlite3_stmt *row = skep_store_query(page->store, fact->sql, run, 0, page->reterr);
	ret[0] = '\0';
	bool ok = row != NULL;
	if (ok && skep_store_row(page->store, row))
		print_value(fact, row, ret);
	sqlite3_finalize(row);
	return ok;
}

static bool write_headline(struct skep_page *page)
{
	char value[VALUE_BYTES], name[SKEP_PAGE_NAME_BYTES];
	fputs("<dl class=\"cards\">\n", page->out);
	for (size_t i = 0; i < COUNT(HEADLINE); i++) {
		if (!read_value(page, &HEADLINE[i], page->run[0].id, value))
			return false;
		if (value[0] == '\0')
			continue;
		fputs("<div>", page->out);
		skep_html_element(page->out, "dt", HEADLINE[i].name);
		skep_html_element(page->out, "dd", value);
		fputs("</div>\n", page->out);
	}
	fputs("</dl>\n", page->out);
	if (page->runs > 1) {
		fputs("<p class=\"note\">The figures above are those of ", page->out);
		skep_html_text(page->out, skep_page_run_name(&page->run[0], name));
		fputs(".</p>\n", page->out);
	}
	return true;
}

/* Rows that no run has are left out. */
static bool write_facts(struct skep_page *page, const struct fact *fact, size_t facts)
{
	char value[SKEP_REPORT_RUNS_MAX][VALUE_BYTES];
	for (size_t f = 0; f < facts; f++) {
		bool any = false;
		for (uint32_t i = 0; i < page->runs; i++) {
			if (!read_value(page, &fact[f], page->run[i].id, value[i]))
				return false;
			any = any || value[i][0] != '\0';
		}
		if (!any)
			continue;
		fputs("<tr>", page->out);
		skep_html_element(page->out, "th scope=\"row\"", fact[f].name);
		for (uint32_t i = 0; i < page->runs; i++)
			skep_html_element(page->out, "td", value[i][0] ? value[i] : "-");
		fputs("</tr>\n", page->out);
	}
	return true;
}

static bool write_table(struct skep_page *page, const char *caption, const struct fact *fact, size_t facts)
{
	char name[SKEP_PAGE_NAME_BYTES];
	fputs("<div class=\"wide\"><table>", page->out);
	skep_html_element(page->out, "caption", caption);
	fputs("<thead><tr><td></td>", page->out);
	for (uint32_t i = 0; i < page->runs; i++)
		skep_html_element(page->out, "th scope=\"col\"", skep_page_run_name(&page->run[i], name));
	fputs("</tr></thead>\n<tbody>\n", page->out);
	bool ok = write_facts(page, fact, facts);
	fputs("</tbody></table></div>\n", page->out);
	return ok;
}

/* A number that a law gave outside of what it was fitted in is not to be read like the others. */
static bool write_warnings(struct skep_page *page)
{
	static const struct fact extrapolated = {"", UNIT_COUNT, OF_RUN("nullif(extrapolated, 0)")};
	char value[VALUE_BYTES], name[SKEP_PAGE_NAME_BYTES];
	for (uint32_t i = 0; i < page->runs; i++) {
		if (!read_value(page, &extrapolated, page->run[i].id, value))
			return false;
		if (value[0] == '\0')
			continue;
		fputs("<p class=\"warning\">The loss of ", page->out);
		skep_html_text(page->out, skep_page_run_name(&page->run[i], name));
		fputs(" is extrapolated: its law was asked outside of what it was fitted in.</p>\n", page->out);
	}
	return true;
}

bool skep_page_asked(struct skep_page *page)
{
	skep_page_open(page, "asked", "What was asked, and what came out");
	bool ok = write_headline(page) && write_warnings(page) && write_table(page, "Asked", ASKED, COUNT(ASKED)) &&
	          write_table(page, "Came out", CAME_OUT, COUNT(CAME_OUT));
	skep_page_close(page);
	return ok;
}
