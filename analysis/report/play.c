/* SPDX-License-Identifier: Apache-2.0
 *
 * play.c - a run as frames of equal length, for the slider of the map.
 *
 * Of each worker a letter a frame says what it did most of it, and a digit which part of the frame it computed (9: all). A worker
 * that is away or downloads in the middle of a frame has the letter of that. Traffic has one number a frame for each class, of
 * all workers together, from what was sent until rounds closed; and for each of the busiest pairs of workers its part of all that
 * was sent in the run. The run's table of links knows no times.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/report/page.h"
#include "analysis/store/database.h"
#include "base/json.h"

#define FRAMES 240u
#define WIRES_MAX 240 /* pairs of workers */
#define WORKERS_MAX 4096u
#define IDLE 0.02 /* of a frame: who does less is idle */

enum group { GROUP_FORWARD, GROUP_BACKWARD, GROUP_STEP, GROUP_REDUCE, GROUP_STATE, GROUPS };
static const char LETTER[GROUPS + 1] = "fbsrd";

struct play {
	struct skep_page *page;
	const struct skep_plot_run *run;
	double end_s, frame_s;
	double (*busy_s)[GROUPS]; /* [workers * FRAMES] */
	char *letter, *digit;     /* [workers * (FRAMES + 1)], a text for each worker */
};

static double clamp(double value, double low, double high)
{
	return fmin(fmax(value, low), high);
}

/* ---- who computes ------------------------------------------------------------------------------------------------------ */

/* A bin that spans several frames is spread over them evenly. */
static void add_bin(struct play *p, uint32_t worker, double from_s, double bin_s, sqlite3_stmt *row)
{
	double to_s = fmin(from_s + bin_s, p->end_s), long_s = to_s - from_s;
	if (!(long_s > 0))
		return;
	uint32_t first = (uint32_t)clamp(from_s / p->frame_s, 0, FRAMES - 1);
	uint32_t last = (uint32_t)clamp(to_s / p->frame_s, 0, FRAMES - 1);
	for (uint32_t frame = first; frame <= last; frame++) {
		double part_s = fmin(to_s, (frame + 1) * p->frame_s) - fmax(from_s, frame * p->frame_s);
		for (int g = 0; part_s > 0 && g < GROUPS; g++)
			p->busy_s[worker * FRAMES + frame][g] += part_s / long_s * sqlite3_column_double(row, 3 + g);
	}
}

static bool read_activity(struct play *p)
{
	static const char sql[] = "SELECT worker, bin, activity_bin_s, forward_s, backward_s, step_s, reduce_s, state_s"
				  " FROM activity JOIN runs ON runs.id = run WHERE run = ?1";
	sqlite3_stmt *row = skep_store_query(p->page->store, sql, p->run->id, 0, p->page->reterr);
	while (row != NULL && skep_store_row(p->page->store, row)) {
		uint32_t worker = (uint32_t)sqlite3_column_int64(row, 0);
		double bin_s = sqlite3_column_double(row, 2);
		if (worker < p->run->workers)
			add_bin(p, worker, sqlite3_column_double(row, 1) * bin_s, bin_s, row);
	}
	sqlite3_finalize(row);
	return row != NULL;
}

static void write_letters(struct play *p)
{
	for (uint32_t worker = 0; worker < p->run->workers; worker++)
		for (uint32_t frame = 0; frame < FRAMES; frame++) {
			const double *busy_s = p->busy_s[worker * FRAMES + frame];
			double sum_s = 0;
			int most = 0;
			for (int g = 0; g < GROUPS; g++) {
				sum_s += busy_s[g];
				most = busy_s[g] > busy_s[most] ? g : most;
			}
			size_t at = worker * (FRAMES + 1) + frame;
			p->letter[at] = sum_s < IDLE * p->frame_s ? 'i' : LETTER[most];
			p->digit[at] = (char)('0' + (int)clamp(9 * sum_s / p->frame_s + 0.5, 0, 9));
		}
}

/* ---- who is there ------------------------------------------------------------------------------------------------------ */

static void write_span(struct play *p, const struct skep_presence_span *span, cJSON *stages)
{
	char letter = span->state == SKEP_PRESENCE_AWAY ? 'x' : span->state == SKEP_PRESENCE_DOWNLOADING ? 'd' : 0;
	uint32_t first = (uint32_t)clamp(ceil(span->begin_s / p->frame_s - 0.5), 0, FRAMES);
	uint32_t last = (uint32_t)clamp(ceil(span->end_s / p->frame_s - 0.5), 0, FRAMES);
	for (uint32_t frame = first; letter != 0 && frame < last; frame++)
		p->letter[span->worker * (FRAMES + 1) + frame] = letter;
	if (first == last)
		return;
	cJSON *change = cJSON_CreateArray();
	cJSON_AddItemToArray(change, cJSON_CreateNumber(first));
	cJSON_AddItemToArray(change, cJSON_CreateNumber((double)span->stage));
	cJSON_AddItemToArray(cJSON_GetArrayItem(stages, (int)span->worker), change);
}

static bool add_workers(struct play *p, cJSON *frames)
{
	struct skep_presence presence;
	if (!skep_presence_read(p->page->store, p->run, p->end_s, &presence, p->page->reterr))
		return false;
	cJSON *stages = cJSON_AddArrayToObject(frames, "stages"), *did = cJSON_AddArrayToObject(frames, "did"),
	      *busy = cJSON_AddArrayToObject(frames, "busy");
	cJSON **of = calloc(p->run->workers + 1, sizeof *of);
	for (uint32_t i = 0; of != NULL && i < p->run->workers; i++)
		cJSON_AddItemToArray(stages, of[i] = cJSON_CreateArray());
	free(of);
	for (size_t i = 0; i < presence.spans; i++)
		write_span(p, &presence.span[i], stages);
	for (uint32_t i = 0; i < p->run->workers; i++) {
		cJSON_AddItemToArray(did, cJSON_CreateString(p->letter + i * (FRAMES + 1)));
		cJSON_AddItemToArray(busy, cJSON_CreateString(p->digit + i * (FRAMES + 1)));
	}
	skep_presence_finish(&presence);
	return true;
}

/* ---- what travels ------------------------------------------------------------------------------------------------------ */

static bool add_wires(struct play *p, cJSON *frames)
{
	static const char sql[] =
		"SELECT source, destination, total(iif(traffic = 'pipeline', bytes, 0)), total(iif(traffic = 'sync', bytes, 0)),"
		" total(iif(traffic = 'state', bytes, 0)) FROM links JOIN runs ON runs.id = run WHERE run = ?1"
		" AND source < workers AND destination < workers AND traffic <> 'control' GROUP BY source, destination"
		" ORDER BY sum(bytes) DESC LIMIT ?2";
	cJSON *wires = cJSON_AddArrayToObject(frames, "wires");
	sqlite3_stmt *row = skep_store_query(p->page->store, sql, p->run->id, WIRES_MAX, p->page->reterr);
	while (row != NULL && skep_store_row(p->page->store, row)) {
		cJSON *wire = cJSON_CreateArray();
		for (int i = 0; i < 5; i++)
			cJSON_AddItemToArray(wire, cJSON_CreateNumber(sqlite3_column_double(row, i)));
		cJSON_AddItemToArray(wires, wire);
	}
	sqlite3_finalize(row);
	return row != NULL;
}

/* From `from` to `to` a quantity has grown by `more`. */
static void spread(const struct play *p, double from_s, double to_s, double more, double frame[FRAMES])
{
	uint32_t first = (uint32_t)clamp(from_s / p->frame_s, 0, FRAMES - 1);
	uint32_t last = (uint32_t)clamp(to_s / p->frame_s, 0, FRAMES - 1);
	for (uint32_t i = first; i <= last && to_s > from_s; i++) {
		double part_s = fmin(to_s, (i + 1) * p->frame_s) - fmax(from_s, i * p->frame_s);
		frame[i] += more * fmax(part_s, 0) / (to_s - from_s);
	}
}

static bool add_rounds(struct play *p, cJSON *frames)
{
	static const char sql[] =
		"SELECT closed_s, bytes_pipeline, bytes_sync, loss, round FROM rounds WHERE run = ?1 ORDER BY closed_s";
	double pipeline[FRAMES] = {0}, sync[FRAMES] = {0}, before_s = 0, sent[2] = {0, 0};
	cJSON *losses = cJSON_AddArrayToObject(frames, "losses");
	sqlite3_stmt *row = skep_store_query(p->page->store, sql, p->run->id, 0, p->page->reterr);
	int shown = -1; /* frame of the last loss: one a frame is enough */
	while (row != NULL && skep_store_row(p->page->store, row)) {
		double closed_s = sqlite3_column_double(row, 0);
		spread(p, before_s, closed_s, sqlite3_column_double(row, 1) - sent[0], pipeline);
		spread(p, before_s, closed_s, sqlite3_column_double(row, 2) - sent[1], sync);
		sent[0] = sqlite3_column_double(row, 1);
		sent[1] = sqlite3_column_double(row, 2);
		before_s = closed_s;
		int frame = (int)clamp(closed_s / p->frame_s, 0, FRAMES - 1);
		if (frame == shown)
			continue;
		shown = frame;
		cJSON *loss = cJSON_CreateArray();
		cJSON_AddItemToArray(loss, cJSON_CreateNumber(frame));
		cJSON_AddItemToArray(loss, cJSON_CreateNumber(sqlite3_column_double(row, 4)));
		cJSON_AddItemToArray(loss, skep_json_number(skep_column_real(row, 3)));
		cJSON_AddItemToArray(losses, loss);
	}
	sqlite3_finalize(row);
	cJSON *rates[] = {cJSON_AddArrayToObject(frames, "pipeline"), cJSON_AddArrayToObject(frames, "sync")};
	for (uint32_t i = 0; i < FRAMES; i++) {
		cJSON_AddItemToArray(rates[0], cJSON_CreateNumber(floor(fmax(pipeline[i], 0) / p->frame_s)));
		cJSON_AddItemToArray(rates[1], cJSON_CreateNumber(floor(fmax(sync[i], 0) / p->frame_s)));
	}
	return row != NULL;
}

/* ---- what happened ------------------------------------------------------------------------------------------------------- */

static bool add_events(struct play *p, cJSON *frames)
{
	static const char sql[] =
		"SELECT time_s, CASE kind WHEN 'fenced' THEN 'worker ' || peer || ' is lost' WHEN 'left' THEN 'worker ' || peer"
		" || ' leaves' WHEN 'joined' THEN 'worker ' || peer || ' serves stage ' || stage WHEN 'migrated' THEN 'worker '"
		" || peer || ' moves to stage ' || stage WHEN 'stage_empty' THEN 'stage ' || stage || ' has no worker'"
		" ELSE 'stage ' || stage || ' is restored' END FROM notes WHERE run = ?1 AND kind IN ('fenced', 'left',"
		" 'joined', 'migrated', 'stage_empty', 'stage_restarted') ORDER BY time_s, rowid";
	cJSON *events = cJSON_AddArrayToObject(frames, "events"), *event = NULL;
	sqlite3_stmt *row = skep_store_query(p->page->store, sql, p->run->id, 0, p->page->reterr);
	int shown = -1; /* frame of the last event: of each frame its last one is shown */
	while (row != NULL && skep_store_row(p->page->store, row)) {
		int frame = (int)clamp(sqlite3_column_double(row, 0) / p->frame_s, 0, FRAMES - 1);
		cJSON *text = cJSON_CreateString(skep_column_text(row, 1));
		if (frame == shown) {
			cJSON_ReplaceItemInArray(event, 1, text);
			continue;
		}
		shown = frame;
		event = cJSON_CreateArray();
		cJSON_AddItemToArray(event, cJSON_CreateNumber(frame));
		cJSON_AddItemToArray(event, text);
		cJSON_AddItemToArray(events, event);
	}
	sqlite3_finalize(row);
	return row != NULL;
}

cJSON *skep_page_frames(struct skep_page *page, const struct skep_plot_run *run, double end_s)
{
	size_t cells = (size_t)(run->workers + 1) * (FRAMES + 1);
	struct play p = {.page = page, .run = run, .end_s = end_s, .frame_s = end_s / FRAMES};
	struct skep_plot_unit unit = skep_plot_unit(end_s);
	cJSON *frames = cJSON_CreateObject();
	cJSON_AddNumberToObject(frames, "frames", end_s > 0 && run->workers <= WORKERS_MAX ? FRAMES : 0);
	cJSON_AddNumberToObject(frames, "time", end_s * unit.per_s);
	cJSON_AddStringToObject(frames, "unit", unit.name);
	if (!(end_s > 0) || run->workers > WORKERS_MAX)
		return frames;
	p.busy_s = calloc(cells, sizeof *p.busy_s);
	p.letter = calloc(cells, 1);
	p.digit = calloc(cells, 1);
	bool ok = p.busy_s && p.letter && p.digit;
	if (!ok)
		skep_fail(page->reterr, "no memory for the report");
	ok = ok && read_activity(&p);
	if (ok)
		write_letters(&p);
	ok = ok && add_workers(&p, frames) && add_wires(&p, frames) && add_rounds(&p, frames) && add_events(&p, frames);
	free(p.busy_s);
	free(p.letter);
	free(p.digit);
	if (!ok)
		cJSON_Delete(frames);
	return ok ? frames : NULL;
}
