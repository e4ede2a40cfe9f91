/* SPDX-License-Identifier: Apache-2.0
 *
 * map.c - the machines of a run: a disc for each place with a dot for each worker in it, and lines between places that sent to
 * each other. The page's script moves the dots' colours through the run (play.c has the data, play.js the script); without a
 * script the picture shows where each machine is and which stage it had at first.
 *
 * Places stand on an ellipse in the order of their numbers, for the database knows links and no coordinates.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/report/page.h"
#include "analysis/store/database.h"
#include "base/grow.h"
#include "base/layout.h"

#define WIDTH 720.0
#define HEIGHT 470.0  /* at most */
#define MARGIN 30.0   /* around, for names */
#define DOT_MOST 19.0 /* radius */
#define DOT_LEAST 1.5
#define SPREAD 1.25        /* of the spiral, in radii of a dot: its neighbours do not touch */
#define GOLDEN 2.39996     /* the angle between two turns of a sunflower */
#define RING_MAX 5u        /* workers of a place that stand in a ring; more fill a spiral */
#define NUMBERED_FROM 8.0  /* a dot of this radius has room for its stage */
#define NAMED_FROM 46.0    /* places this far from each other have room for their names */
#define LINK_LABELS_MAX 6u /* places whose links are labelled */
#define LINES_MAX 300      /* between places; the busiest */
#define PLAYED_MAX 3u      /* runs with a map */

struct place {
	int64_t number;
	uint32_t workers;
	double x, y, radius;
	char name[64];
};

struct map {
	struct place *place;
	size_t places;
	double dot;
};

static struct place *find_place(struct map *map, int64_t number)
{
	for (size_t i = 0; i < map->places; i++)
		if (map->place[i].number == number)
			return &map->place[i];
	return NULL;
}

static bool read_places(struct skep_page *page, int64_t run, struct map *ret)
{
	static const char sql[] = "SELECT place, sum(role = 'worker'), (SELECT name FROM places WHERE places.run = ?1"
				  " AND places.place = workers.place) FROM workers WHERE run = ?1 GROUP BY place";
	sqlite3_stmt *row = skep_store_query(page->store, sql, run, 0, page->reterr);
	bool ok = row != NULL;
	while (ok && skep_store_row(page->store, row)) {
		if (!skep_grow(&ret->place, ret->places, sizeof *ret->place)) {
			ok = skep_fail(page->reterr, "no memory for the report");
			break;
		}
		struct place *place = &ret->place[ret->places++];
		*place = (struct place){
			.number = sqlite3_column_int64(row, 0), .workers = (uint32_t)sqlite3_column_int64(row, 1)};
		snprintf(place->name, sizeof place->name, "%s", skep_column_text(row, 2));
	}
	sqlite3_finalize(row);
	return ok;
}

/* ---- where everything stands --------------------------------------------------------------------------------------- */

static double radius_of(const struct place *place, double dot)
{
	if (place->workers <= RING_MAX)
		return (place->workers > 1 ? 1.15 * dot / sin(M_PI / place->workers) : 0) + dot + 5;
	return SPREAD * dot * sqrt(place->workers) + dot + 5;
}

/* Do the discs keep apart if dots are this large? */
static bool fits(struct map *map, double dot)
{
	double widest = 0;
	for (size_t i = 0; i < map->places; i++)
		widest = fmax(widest, map->place[i].radius = radius_of(&map->place[i], dot));
	double a = WIDTH / 2 - MARGIN - widest, b = HEIGHT / 2 - MARGIN - widest;
	for (size_t i = 0; i < map->places; i++) {
		struct place *p = &map->place[i];
		double angle = M_PI + 2 * M_PI * (double)i / (double)map->places;
		bool alone = map->places == 1;
		p->x = WIDTH / 2 + (alone ? 0 : fmax(a, 0) * cos(angle));
		p->y = HEIGHT / 2 + (alone ? 0 : fmax(b, 0) * sin(angle));
	}
	bool fit = a > 0 && b > 0;
	for (size_t i = 0; fit && i < map->places && map->places > 1; i++) {
		const struct place *p = &map->place[i], *q = &map->place[(i + 1) % map->places];
		double gap = map->places < 8 ? 24 : map->places < 40 ? 5 : 0;
		fit = hypot(p->x - q->x, p->y - q->y) >= p->radius + q->radius + gap;
	}
	return fit;
}

static void lay_out(struct map *map)
{
	double dot = DOT_MOST;
	while (dot > DOT_LEAST && !fits(map, dot))
		dot *= 0.95;
	map->dot = dot;
}

/* ---- drawing --------------------------------------------------------------------------------------------------------- */

static void write_link_label(FILE *out, const struct place *p, const struct place *q, sqlite3_stmt *row)
{
	char rate[SKEP_TEXT_BYTES], latency[SKEP_TEXT_BYTES];
	double x = 0.5 * (p->x + q->x), y = 0.5 * (p->y + q->y);
	if (sqlite3_column_type(row, 4) == SQLITE_NULL)
		return;
	fprintf(out, "<text class=\"link-label\" x=\"%.1f\" y=\"%.1f\">", x, y - 5);
	if (sqlite3_column_type(row, 3) != SQLITE_NULL)
		skep_html_printf(out, "%s, ", skep_rate_text(sqlite3_column_double(row, 3), rate));
	skep_html_text(out, skep_time_text(sqlite3_column_double(row, 4), latency));
	fputs("</text>\n", out);
}

/* A line for each pair of places, as thick as what it carried in both directions; or the labels, which lie
 * above all lines and tell the narrower direction. */
static bool write_links(struct skep_page *page, int64_t run, struct map *map, bool labels)
{
	static const char sql[] =
		"WITH sent AS (SELECT min(a.place, b.place) AS low, max(a.place, b.place) AS high, sum(bytes) AS bytes FROM links"
		" JOIN workers AS a ON a.run = ?1 AND a.worker = source"
		" JOIN workers AS b ON b.run = ?1 AND b.worker = destination"
		" WHERE links.run = ?1 AND a.place <> b.place GROUP BY 1, 2)"
		" SELECT low, high, bytes, (SELECT min(min(coalesce(capacity_bytes_per_s, 9e999), coalesce(shared_bytes_per_s,"
		" 9e999))) FROM pairs WHERE run = ?1 AND ((source = low AND destination = high) OR (source = high"
		" AND destination = low))), (SELECT max(latency_s) FROM pairs WHERE run = ?1 AND ((source = low"
		" AND destination = high) OR (source = high AND destination = low))), max(bytes) OVER () FROM sent"
		" ORDER BY bytes DESC LIMIT ?2";
	sqlite3_stmt *row = skep_store_query(page->store, sql, run, LINES_MAX, page->reterr);
	char bytes[SKEP_TEXT_BYTES];
	while (row != NULL && skep_store_row(page->store, row)) {
		const struct place *p = find_place(map, sqlite3_column_int64(row, 0));
		const struct place *q = find_place(map, sqlite3_column_int64(row, 1));
		double share = sqlite3_column_double(row, 2) / fmax(sqlite3_column_double(row, 5), 1);
		if (p == NULL || q == NULL)
			continue;
		if (labels) {
			write_link_label(page->out, p, q, row);
			continue;
		}
		fprintf(page->out,
			"<line class=\"link\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke-width=\"%.1f\"><title>",
			p->x, p->y, q->x, q->y, (map->places < 12 ? 2 : 0.5) + 6 * share);
		skep_html_printf(page->out, "%s - %s: %s", p->name, q->name,
			skep_bytes_text(sqlite3_column_double(row, 2), bytes));
		fputs("</title></line>\n", page->out);
	}
	sqlite3_finalize(row);
	return row != NULL;
}

static void write_places(struct skep_page *page, const struct map *map)
{
	bool named = map->places == 1 ||
	             hypot(map->place[0].x - map->place[1].x, map->place[0].y - map->place[1].y) >= NAMED_FROM;
	for (size_t i = 0; i < map->places; i++) {
		const struct place *p = &map->place[i];
		fprintf(page->out, "<circle class=\"place\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"><title>", p->x, p->y,
			p->radius);
		skep_html_text(page->out, p->name);
		fputs("</title></circle>\n", page->out);
		if (!named)
			continue;
		fprintf(page->out, "<text class=\"place-name\" x=\"%.1f\" y=\"%.1f\">", p->x, p->y + p->radius + 16);
		skep_html_printf(page->out, "%.24s%s", p->name, strlen(p->name) > 24 ? ".." : "");
		fputs("</text>\n", page->out);
	}
}

static void write_dot(
	struct skep_page *page, const struct map *map, const struct place *p, uint32_t number, sqlite3_stmt *row)
{
	bool ring = p->workers <= RING_MAX;
	double turn = ring ? 2 * M_PI * number / p->workers - M_PI / 2 : GOLDEN * number;
	double from = SPREAD * map->dot * sqrt(number + 0.5);
	if (ring)
		from = p->workers > 1 ? 1.15 * map->dot / sin(M_PI / p->workers) : 0;
	double x = p->x + from * cos(turn), y = p->y + from * sin(turn);
	bool has_stage = sqlite3_column_type(row, 3) != SQLITE_NULL;
	fprintf(page->out, "<g class=\"worker\" data-w=\"%lld\"><circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"><title>",
		(long long)sqlite3_column_int64(row, 0), x, y, map->dot);
	skep_html_printf(page->out, "worker %lld, %s, %s", (long long)sqlite3_column_int64(row, 0),
		skep_column_text(row, 2), p->name);
	fputs("</title></circle>", page->out);
	if (map->dot >= NUMBERED_FROM) {
		fprintf(page->out, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%.1f\">", x, y + 0.38 * map->dot, map->dot);
		if (has_stage)
			fprintf(page->out, "%lld", (long long)sqlite3_column_int64(row, 3));
		fputs("</text>", page->out);
	}
	fputs("</g>\n", page->out);
}

static bool write_dots(struct skep_page *page, int64_t run, struct map *map)
{
	static const char sql[] =
		"SELECT worker, place, gpu, first_stage, row_number() OVER (PARTITION BY place ORDER BY first_stage, worker) - 1"
		" FROM workers WHERE run = ?1 AND role = 'worker' ORDER BY worker";
	sqlite3_stmt *row = skep_store_query(page->store, sql, run, 0, page->reterr);
	while (row != NULL && skep_store_row(page->store, row)) {
		const struct place *p = find_place(map, sqlite3_column_int64(row, 1));
		if (p != NULL)
			write_dot(page, map, p, (uint32_t)sqlite3_column_int64(row, 4), row);
	}
	sqlite3_finalize(row);
	return row != NULL;
}

/* ---- the section ----------------------------------------------------------------------------------------------------- */

static const char controls[] =
	"<div class=\"controls\"><button type=\"button\">Play</button><input type=\"range\" min=\"0\" value=\"0\" "
	"aria-label=\"time of the run\"><output></output></div>\n<p class=\"now\" aria-live=\"off\"></p>\n"
	"<ul class=\"legend\"><li><i data-s=\"f\"></i>forward</li><li><i data-s=\"b\"></i>backward</li><li><i "
	"data-s=\"s\"></i>step</li><li><i data-s=\"r\"></i>reduction</li><li><i data-s=\"d\"></i>downloads its state</li>"
	"<li><i data-s=\"i\"></i>alive, idle</li><li><i data-s=\"x\"></i>dead or not there</li>"
	"<li><b data-t=\"p\"></b>between stages</li><li><b data-t=\"y\"></b>reduction</li>"
	"<li><b data-t=\"d\"></b>state</li></ul>\n";

static bool write_map(struct skep_page *page, uint32_t which)
{
	struct map map = {0};
	const struct skep_plot_run *run = &page->run[which];
	char name[SKEP_PAGE_NAME_BYTES];
	bool ok = read_places(page, run->id, &map);
	if (ok && map.places > 0) {
		lay_out(&map);
		double top = HEIGHT, bottom = 0; /* a map of two places is flat */
		for (size_t i = 0; i < map.places; i++) {
			top = fmin(top, map.place[i].y - map.place[i].radius - 14);
			bottom = fmax(bottom, map.place[i].y + map.place[i].radius + 30);
		}
		fprintf(page->out, "<figure class=\"swarm\">\n<svg viewBox=\"0 %.0f %.0f %.0f\" role=\"img\"><title>",
			top, WIDTH, bottom - top);
		skep_html_printf(page->out, "machines of %s", skep_page_run_name(run, name));
		fputs("</title>\n", page->out);
		ok = write_links(page, run->id, &map, false);
		write_places(page, &map);
		fputs("<g class=\"wires\"></g>\n", page->out);
		ok = ok && write_dots(page, run->id, &map);
		ok = ok && (map.places > LINK_LABELS_MAX || write_links(page, run->id, &map, true));
		fputs("</svg>\n", page->out);
		fputs(controls, page->out);
		fputs("<figcaption>The machines of ", page->out);
		skep_html_text(page->out, skep_page_run_name(run, name));
		fputs(": a dot is a worker with the number of its stage, a disc is a place, a line between places is "
		      "as thick as what it carried. The slider goes through the run. How much a pair of workers sent "
		      "at a time is not recorded: lines between workers show their part of all bytes, at the rate of "
		      "the round.</figcaption>\n",
			page->out);
		cJSON *frames = ok ? skep_page_frames(page, run, page->end_s[which]) : NULL;
		ok = frames != NULL;
		if (ok)
			skep_html_data(page->out, "frames", frames);
		fputs("</figure>\n", page->out);
	}
	free(map.place);
	return ok;
}

bool skep_page_machines(struct skep_page *page)
{
	bool ok = true;
	skep_page_open(page, "machines", "Machines and what they did");
	for (uint32_t i = 0; ok && i < page->runs && i < PLAYED_MAX; i++)
		ok = write_map(page, i);
	if (page->runs > PLAYED_MAX)
		skep_page_note(page, "The first three runs have a map.");
	skep_page_close(page);
	return ok;
}
