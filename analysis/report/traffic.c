/* SPDX-License-Identifier: Apache-2.0
 *
 * traffic.c - what each link carried: a row for each ordered pair of places, the busiest first, with its part of the link's rate
 * over the whole run, and what was paid for it where the topology has prices of traffic.
 */
#include <math.h>

#include "analysis/report/page.h"
#include "analysis/store/database.h"
#include "base/layout.h"

#define ROWS_MAX 24

static const char SQL[] =
	"WITH sent AS (SELECT a.place AS source, b.place AS destination, sum(bytes) AS bytes, sum(messages) AS messages,"
	" total(iif(traffic = 'pipeline', bytes, 0)) AS pipeline, total(iif(traffic = 'sync', bytes, 0)) AS sync,"
	" total(iif(traffic = 'state', bytes, 0)) AS state FROM links JOIN workers AS a ON a.run = ?1 AND a.worker ="
	" links.source JOIN workers AS b ON b.run = ?1 AND b.worker = links.destination WHERE links.run = ?1 GROUP BY 1, 2)"
	" SELECT (SELECT name FROM places WHERE run = ?1 AND place = sent.source), (SELECT name FROM places WHERE run = ?1"
	" AND place = sent.destination), bytes, messages, pipeline, sync, state, shared_bytes_per_s, max(bytes) OVER (),"
	" count(*) OVER (), sent.source = sent.destination, 1e-9 * bytes * egress_usd_per_GB,"
	" EXISTS (SELECT 1 FROM pairs WHERE run = ?1 AND egress_usd_per_GB IS NOT NULL) FROM sent LEFT JOIN"
	" pairs ON pairs.run = ?1"
	" AND pairs.source = sent.source AND pairs.destination = sent.destination ORDER BY bytes DESC LIMIT ?2";

static void write_part(FILE *out, const char *class, double bytes, double most)
{
	if (bytes > 0)
		fprintf(out, "<span class=\"%s\" style=\"width:%.2f%%\"></span>", class, 100 * bytes / most);
}

static void write_egress(FILE *out, sqlite3_stmt *row)
{
	double usd = skep_column_real(row, 11);
	if (sqlite3_column_int(row, 12) == 0)
		return;
	if (isnan(usd))
		fputs("<td class=\"number\">not known</td>", out);
	else
		fprintf(out,
			usd > 0 && usd < 0.1 ? "<td class=\"number\">%.2g USD</td>"
					     : "<td class=\"number\">%.2f USD</td>",
			usd);
}

static void write_row(FILE *out, sqlite3_stmt *row, double end_s)
{
	char text[SKEP_TEXT_BYTES];
	double bytes = sqlite3_column_double(row, 2), most = fmax(sqlite3_column_double(row, 8), 1);
	double pipeline = sqlite3_column_double(row, 4), sync = sqlite3_column_double(row, 5),
	       state = sqlite3_column_double(row, 6), shared = skep_column_real(row, 7);
	fputs("<tr><td>", out);
	skep_html_text(out, skep_column_text(row, 0));
	if (sqlite3_column_int(row, 10)) {
		fputs(", inside", out);
	} else {
		fputs(" \xe2\x86\x92 ", out);
		skep_html_text(out, skep_column_text(row, 1));
	}
	fputs("<div class=\"bar\">", out);
	write_part(out, "pipeline", pipeline, most);
	write_part(out, "sync", sync, most);
	write_part(out, "state", state, most);
	write_part(out, "control", bytes - pipeline - sync - state, most);
	fprintf(out, "</div></td><td class=\"number\">%s</td>", skep_bytes_text(bytes, text));
	fprintf(out, "<td class=\"number\">%lld</td>", (long long)sqlite3_column_int64(row, 3));
	fprintf(out, "<td class=\"number\">%s</td>", end_s > 0 ? skep_rate_text(bytes / end_s, text) : "-");
	fprintf(out, "<td class=\"number\">%s</td>", isnan(shared) ? "-" : skep_rate_text(shared, text));
	if (isnan(shared) || !(end_s > 0))
		fputs("<td class=\"number\">-</td>", out);
	else
		fprintf(out, "<td class=\"number\">%.1f %%</td>", 100 * bytes / end_s / shared);
	write_egress(out, row);
	fputs("</tr>\n", out);
}

static bool write_run(struct skep_page *page, uint32_t which)
{
	char name[SKEP_PAGE_NAME_BYTES];
	int64_t rows = 0, all = 0;
	sqlite3_stmt *row = skep_store_query(page->store, SQL, page->run[which].id, ROWS_MAX, page->reterr);
	skep_html_element(page->out, "h3", skep_page_run_name(&page->run[which], name));
	for (; row != NULL && skep_store_row(page->store, row); rows++) {
		if (rows == 0)
			fprintf(page->out,
				"<div class=\"wide\"><table><thead><tr><th>link</th><th class=\"number\">bytes</th>"
				"<th class=\"number\">messages</th><th class=\"number\">mean rate</th>"
				"<th class=\"number\">shared line</th><th class=\"number\">of it used</th>%s</tr></thead><tbody>"
				"\n",
				sqlite3_column_int(row, 12) ? "<th class=\"number\">egress</th>" : "");
		all = sqlite3_column_int64(row, 9);
		write_row(page->out, row, page->end_s[which]);
	}
	sqlite3_finalize(row);
	skep_page_end_table(page, rows, all, "No traffic is recorded: it is written when a run ends.",
		"These are the busiest", "links");
	return row != NULL;
}

bool skep_page_traffic(struct skep_page *page)
{
	bool ok = true;
	skep_page_open(page, "traffic", "Traffic by link");
	fputs("<ul class=\"legend\"><li><b></b>between stages</li><li><b data-t=\"y\"></b>reductions</li>"
	      "<li><b data-t=\"d\"></b>state of joining workers</li></ul>\n",
		page->out);
	for (uint32_t i = 0; ok && i < page->runs; i++)
		ok = write_run(page, i);
	skep_page_close(page);
	return ok;
}
