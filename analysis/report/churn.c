/* SPDX-License-Identifier: Apache-2.0
 *
 * churn.c - who came and went: how many workers served over time, and each event.
 */
#include <math.h>
#include <stdlib.h>

#include "analysis/report/page.h"
#include "analysis/store/database.h"
#include "base/layout.h"

#define WIDTH 720.0
#define HEIGHT 190.0
#define LEFT 48.0
#define RIGHT 12.0
#define TOP 14.0
#define BOTTOM 44.0
#define EVENTS_MAX 60
#define TICKS 6.0

struct turn {
	double time_s;
	int change; /* of the number of workers that serve */
};

static int by_time(const void *a, const void *b)
{
	const struct turn *x = a, *y = b;
	return (x->time_s > y->time_s) - (x->time_s < y->time_s);
}

static double x_of(double time_s, double end_s)
{
	return LEFT + (WIDTH - LEFT - RIGHT) * time_s / end_s;
}

static double y_of(double count, double most)
{
	return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * count / most;
}

static void write_axes(FILE *out, uint32_t workers, double end_s)
{
	struct skep_plot_unit unit = skep_plot_unit(end_s);
	double step = skep_plot_step(end_s * unit.per_s / TICKS), whole = skep_plot_step(fmax(workers / 4.0, 1));
	for (double at = 0; at <= workers; at += whole)
		fprintf(out,
			"<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/><text x=\"%.1f\" y=\"%.1f\" "
			"text-anchor=\"end\">%.0f</text>\n",
			LEFT, WIDTH - RIGHT, y_of(at, workers), y_of(at, workers), LEFT - 7, y_of(at, workers) + 4, at);
	for (double at = 0; at <= end_s * unit.per_s * 1.0001; at += step)
		fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%g</text>\n",
			x_of(at / unit.per_s, end_s), HEIGHT - BOTTOM + 17, at);
	fprintf(out,
		"<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">time since the start of the run (%s)</text>\n"
		"<path class=\"axis\" d=\"M%.1f %.1fV%.1fH%.1f\"/>\n",
		LEFT + (WIDTH - LEFT - RIGHT) / 2, HEIGHT - 6, unit.name, LEFT, TOP, HEIGHT - BOTTOM, WIDTH - RIGHT);
}

static void write_curve(FILE *out, const struct turn *turn, size_t turns, uint32_t workers, double end_s)
{
	for (int area = 1; area >= 0; area--) {
		int count = 0;
		fprintf(out, "<path class=\"%s\" d=\"M%.1f %.1f", area ? "area" : "curve", LEFT, y_of(0, workers));
		for (size_t i = 0; i < turns;) {
			double at_s = turn[i].time_s;
			for (; i < turns && turn[i].time_s <= at_s; i++)
				count += turn[i].change;
			if (at_s < end_s)
				fprintf(out, "H%.1fV%.1f", x_of(at_s, end_s), y_of(count, workers));
		}
		fprintf(out, "H%.1f", x_of(end_s, end_s));
		if (area)
			fprintf(out, "V%.1fZ", y_of(0, workers));
		fputs("\"/>\n", out);
	}
}

static bool write_chart(struct skep_page *page, uint32_t which)
{
	struct skep_presence presence;
	const struct skep_plot_run *run = &page->run[which];
	double end_s = page->end_s[which];
	if (!(end_s > 0) || run->workers == 0)
		return true;
	if (!skep_presence_read(page->store, run, end_s, &presence, page->reterr))
		return false;
	struct turn *turn = calloc(2 * presence.spans + 1, sizeof *turn);
	size_t turns = 0;
	for (size_t i = 0; turn != NULL && i < presence.spans; i++)
		if (presence.span[i].state == SKEP_PRESENCE_SERVING) {
			turn[turns++] = (struct turn){presence.span[i].begin_s, 1};
			turn[turns++] = (struct turn){presence.span[i].end_s, -1};
		}
	if (turn != NULL) {
		qsort(turn, turns, sizeof *turn, by_time);
		fprintf(page->out,
			"<figure><svg class=\"chart\" viewBox=\"0 0 %.0f %.0f\" role=\"img\"><title>workers that serve a stage"
			"</title>\n",
			WIDTH, HEIGHT);
		write_axes(page->out, run->workers, end_s);
		write_curve(page->out, turn, turns, run->workers, end_s);
		fputs("</svg><figcaption>Workers that serve a stage.</figcaption></figure>\n", page->out);
	} else {
		skep_fail(page->reterr, "no memory for the report");
	}
	free(turn);
	skep_presence_finish(&presence);
	return turn != NULL;
}

static bool write_events(struct skep_page *page, const struct skep_plot_run *run)
{
	static const char sql[] =
		"SELECT time_s, CASE kind WHEN 'fenced' THEN 'is lost' WHEN 'left' THEN 'leaves with notice' WHEN"
		" 'admitted' THEN 'is admitted and downloads its state' WHEN 'joined' THEN 'serves' WHEN 'migrated' THEN"
		" 'moves here from another stage' WHEN 'stage_empty' THEN 'was the last of the stage' ELSE"
		" 'has restored the stage' END, peer, stage, round, count(*) OVER (), (SELECT gpu FROM workers WHERE"
		" workers.run = ?1 AND workers.worker = peer) FROM notes WHERE run = ?1 AND kind IN ('fenced', 'left',"
		" 'admitted', 'joined', 'migrated', 'stage_empty', 'stage_restarted') ORDER BY time_s, rowid LIMIT ?2";
	sqlite3_stmt *row = skep_store_query(page->store, sql, run->id, EVENTS_MAX, page->reterr);
	int64_t rows = 0, all = 0;
	char text[SKEP_TEXT_BYTES];
	for (; row != NULL && skep_store_row(page->store, row); rows++) {
		if (rows == 0)
			fputs("<div class=\"wide\"><table><thead><tr><th class=\"number\">time</th><th class=\"number\">round"
			      "</th><th>worker</th><th class=\"number\">stage</th><th>what</th></tr></thead><tbody>\n",
				page->out);
		all = sqlite3_column_int64(row, 5);
		fprintf(page->out, "<tr><td class=\"number\">%s</td><td class=\"number\">%lld</td><td>",
			skep_time_text(sqlite3_column_double(row, 0), text), (long long)sqlite3_column_int64(row, 4));
		if (sqlite3_column_type(row, 2) != SQLITE_NULL)
			skep_html_printf(page->out, "%lld, %s", (long long)sqlite3_column_int64(row, 2),
				skep_column_text(row, 6));
		fputs("</td><td class=\"number\">", page->out);
		skep_html_text(page->out, skep_column_text(row, 3));
		fputs("</td>", page->out);
		skep_html_element(page->out, "td", skep_column_text(row, 1));
		fputs("</tr>\n", page->out);
	}
	sqlite3_finalize(row);
	skep_page_end_table(
		page, rows, all, "Every worker was there from the start to the end.", "These are the first", "events");
	return row != NULL;
}

bool skep_page_churn(struct skep_page *page)
{
	char name[SKEP_PAGE_NAME_BYTES];
	bool ok = true;
	skep_page_open(page, "churn", "Workers that came and went");
	for (uint32_t i = 0; ok && i < page->runs; i++) {
		skep_html_element(page->out, "h3", skep_page_run_name(&page->run[i], name));
		ok = write_chart(page, i) && write_events(page, &page->run[i]);
	}
	skep_page_close(page);
	return ok;
}
