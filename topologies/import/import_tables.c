/* SPDX-License-Identifier: Apache-2.0
 *
 * import_tables.c - tables with a row for each pair: Skyplane's throughput and pings, city pairs, and pings between the
 * regions of Google's cloud, a file for each source.
 *
 * What is kept true: pings and the delays of the city pairs are round trips and are halved (unless the user says that they are
 * one way); a bandwidth is what the receiver saw.
 */
#include "topologies/import/importer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/csv.h"

#define PROVIDERS_MAX 16u
#define NAME_BYTES 32u

/* ---- Skyplane ---------------------------------------------------------------------------------------------------- */

/* The most that any pair leaving a provider shows: providers cap what a machine sends. */
struct cap {
	char provider[NAME_BYTES];
	double most_Bps;
};

struct skyplane {
	struct skep_importer *importer;
	struct cap cap[PROVIDERS_MAX];
	uint32_t caps;
	uint32_t other_tier, failed, kinds; /* rows that were left out; bits of the kinds of files read */
};

/* The part of a region's name before the colon. */
static size_t provider_length(struct skep_cell region)
{
	const char *colon = memchr(region.at, ':', region.length);
	return colon ? (size_t)(colon - region.at) : 0;
}

/* Is it in the list A,B,C? */
static bool listed(const char *list, const char *provider, size_t length)
{
	for (const char *at = list; at && *at; at += strcspn(at, ","), at += *at == ',')
		if (length > 0 && strcspn(at, ",") == length && strncmp(at, provider, length) == 0)
			return true;
	return list == NULL;
}

static bool wanted_tier(const struct skep_import_options *o, struct skep_cell from, struct skep_cell to)
{
	const char *tier = skep_import_tier_names[o->tier];
	return o->tier == SKEP_TIER_ANY || (skep_cell_is(from, tier) && skep_cell_is(to, tier));
}

static void raise_cap(struct skyplane *s, struct skep_cell region, double Bps)
{
	size_t length = provider_length(region);
	uint32_t i = 0;
	if (length == 0 || length >= NAME_BYTES)
		return;
	while (i < s->caps && (strncmp(s->cap[i].provider, region.at, length) != 0 || s->cap[i].provider[length] != 0))
		i++;
	if (i == PROVIDERS_MAX)
		return;
	if (i == s->caps)
		memcpy(s->cap[s->caps++].provider, region.at, length);
	s->cap[i].most_Bps = fmax(s->cap[i].most_Bps, Bps);
}

enum { FROM, FROM_TIER, TO, TO_TIER, VALUE, OK, SKYPLANE_COLUMNS };

static void skyplane_row(struct skyplane *s, struct skep_table *t, const uint32_t *at, enum skep_survey_kind kind)
{
	struct skep_importer *importer = s->importer;
	const struct skep_import_options *o = importer->options;
	bool bandwidth = kind == SKEP_BANDWIDTH_SAMPLE;
	double value;
	const char *what = bandwidth ? "the received bit/s" : "the average round trip in ms";
	if (bandwidth && !skep_cell_is(t->cell[at[OK]], "true")) {
		s->failed++;
		return;
	}
	if (!skep_cell_number(&t->lines, t->cell[at[VALUE]], what, bandwidth ? 8 * SKEP_IMPORT_BPS_MIN : 0,
		    bandwidth ? 8 * SKEP_IMPORT_BPS_MAX : 2e3 * SKEP_IMPORT_S_MAX, &value))
		return;
	if (!wanted_tier(o, t->cell[at[FROM_TIER]], t->cell[at[TO_TIER]])) {
		s->other_tier++;
		return;
	}
	value *= bandwidth ? 0.125 : o->one_way ? 1e-3 : 0.5e-3;
	if (bandwidth)
		raise_cap(s, t->cell[at[FROM]], value);
	struct skep_cell source = t->cell[at[FROM]], target = t->cell[at[TO]];
	if (!listed(o->provider, source.at, provider_length(source)) ||
		!listed(o->provider, target.at, provider_length(target)))
		return;
	uint32_t from = skep_import_place(importer, &t->lines, t->cell[at[FROM]]);
	uint32_t to = importer->diag->set ? SKEP_NO_PLACE : skep_import_place(importer, &t->lines, t->cell[at[TO]]);
	if (from != SKEP_NO_PLACE && to != SKEP_NO_PLACE)
		skep_import_add(importer, kind, from, to, value);
}

static void skyplane_file(struct skyplane *s, struct skep_table *t, enum skep_survey_kind wanted)
{
	static const char *const throughput[] = {
		"src_region", "src_tier", "dst_region", "dst_tier", "received_bps", "ok", NULL};
	static const char *const ping[] = {"src_region", "src_tier", "dst_region", "dst_tier", "avg_rtt", NULL};
	uint32_t at[SKYPLANE_COLUMNS];
	bool bandwidth = skep_table_column(t, "avg_rtt") == UINT32_MAX;
	enum skep_survey_kind kind = bandwidth ? SKEP_BANDWIDTH_SAMPLE : SKEP_LATENCY_SAMPLE;
	if (bandwidth && skep_table_column(t, "received_bps") == UINT32_MAX)
		skep_lines_fail(&t->lines, t->lines.text,
			"expected Skyplane's throughput (with a column received_bps) or its pings (avg_rtt)");
	if (s->importer->diag->set || kind != wanted || !skep_table_need(t, bandwidth ? throughput : ping, at))
		return;
	s->kinds |= 1u << kind;
	while (skep_table_next(t) && !s->importer->diag->set)
		skyplane_row(s, t, at, kind);
}

static void cap_senders(struct skyplane *s)
{
	struct skep_survey *survey = &s->importer->survey;
	for (uint32_t c = 0; c < s->caps; c++) {
		const struct cap *cap = &s->cap[c];
		uint32_t places = 0;
		for (uint32_t i = 0; i < survey->places; i++) {
			struct skep_survey_place *place = &survey->place[i];
			size_t length = provider_length((struct skep_cell){place->name, strlen(place->name)});
			if (!listed(cap->provider, place->name, length))
				continue;
			place->up_Bps = cap->most_Bps;
			places++;
		}
		if (places > 0)
			skep_import_note(s->importer,
				"up of %s: %.4g Gbit/s, the most that any pair leaving there shows", cap->provider,
				cap->most_Bps * 8e-9);
	}
}

bool skep_import_skyplane(struct skep_importer *importer)
{
	struct skyplane s = {.importer = importer};
	struct skep_table *t = malloc(sizeof *t);
	if (!t)
		skep_diag_set(importer->diag, importer->options->file[0], 0, 0, NULL, "not enough memory");
	for (uint32_t i = 0; i < 2 * importer->options->files && !importer->diag->set; i++) {
		bool pings = i >= importer->options->files;
		/* Regions that were only pinged would be all holes. */
		importer->survey.closed = importer->survey.closed || (pings && importer->survey.places > 0);
		if (skep_table_open(t, importer->options->file[i % importer->options->files], importer->diag))
			skyplane_file(&s, t, pings ? SKEP_LATENCY_SAMPLE : SKEP_BANDWIDTH_SAMPLE);
		skep_table_close(t);
	}
	free(t);
	if (importer->diag->set)
		return false;
	cap_senders(&s);
	if (s.other_tier > 0)
		skep_import_note(importer, "%u rows of another network tier than %s left out", s.other_tier,
			skep_import_tier_names[importer->options->tier]);
	if (s.failed > 0)
		skep_import_note(importer, "%u rows of runs that failed left out", s.failed);
	snprintf(importer->measured, sizeof importer->measured, "Measured by Skyplane:%s%s",
		s.kinds & 1u << SKEP_BANDWIDTH_SAMPLE ? " capacity of 64 TCP streams as received" : "",
		!(s.kinds & 1u << SKEP_LATENCY_SAMPLE) ? ""
		: importer->options->one_way           ? "; pings taken as one way"
						       : "; latency half of the pings");
	return true;
}

/* ---- city pairs -------------------------------------------------------------------------------------------------- */

static void city_row(struct skep_importer *importer, struct skep_table *t, const uint32_t *at)
{
	double delay_ms, gbps;
	if (!skep_cell_number(&t->lines, t->cell[at[2]], "a delay in ms", 0, 1e3 * SKEP_IMPORT_S_MAX, &delay_ms) ||
		!skep_cell_number(&t->lines, t->cell[at[3]], "a bandwidth in Gbit/s", 8e-9 * SKEP_IMPORT_BPS_MIN,
			8e-9 * SKEP_IMPORT_BPS_MAX, &gbps))
		return;
	uint32_t a = skep_import_place(importer, &t->lines, t->cell[at[0]]);
	uint32_t b = importer->diag->set ? SKEP_NO_PLACE : skep_import_place(importer, &t->lines, t->cell[at[1]]);
	if (a == SKEP_NO_PLACE || b == SKEP_NO_PLACE)
		return;
	double latency_s = (importer->options->one_way ? 1e-3 : 0.5e-3) * delay_ms, capacity_Bps = gbps * 1e9 / 8;
	for (int i = 0; i < (a == b ? 1 : 2); i++) {
		skep_import_add(importer, SKEP_BANDWIDTH_SAMPLE, i ? b : a, i ? a : b, capacity_Bps);
		skep_import_add(importer, SKEP_LATENCY_SAMPLE, i ? b : a, i ? a : b, latency_s);
	}
}

bool skep_import_city_pairs(struct skep_importer *importer)
{
	static const char *const names[] = {"region_a", "region_b", "delay_ms", "bandwidth_gbps", NULL};
	uint32_t at[4];
	struct skep_table *t = malloc(sizeof *t);
	if (!t)
		skep_diag_set(importer->diag, importer->options->file[0], 0, 0, NULL, "not enough memory");
	for (uint32_t i = 0; i < importer->options->files && !importer->diag->set; i++) {
		if (skep_table_open(t, importer->options->file[i], importer->diag) && skep_table_need(t, names, at))
			while (skep_table_next(t) && !importer->diag->set)
				city_row(importer, t, at);
		skep_table_close(t);
	}
	free(t);
	snprintf(importer->measured, sizeof importer->measured,
		"Measured: table of pairs, both directions alike; latency %s",
		importer->options->one_way ? "as given" : "half of the delay, a round trip");
	return !importer->diag->set;
}

/* ---- pings between the regions of Google's cloud ----------------------------------------------------------------- */

/* REGION of a path that ends in REGION.dat. */
static uint32_t ping_source(struct skep_importer *importer, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.'), *wrong;
	size_t length = dot && strcmp(dot, ".dat") == 0 ? (size_t)(dot - name) : 0;
	uint32_t place = length > 0 ? skep_survey_place(&importer->survey, name, length, &wrong) : SKEP_NO_PLACE;
	if (length == 0 || wrong)
		skep_diag_set(
			importer->diag, path, 0, 0, NULL, "expected a file that is called as its source: REGION.dat");
	return place;
}

/* min/avg/max/mdev:destination */
static void ping_row(struct skep_importer *importer, struct skep_lines *l, uint32_t from)
{
	static const char form[] = "expected min/avg/max/mdev:destination, in ms";
	const char *colon = strchr(l->text, ':'), *at = l->text;
	double value[4];
	for (int i = 0; i < 4 && !importer->diag->set; i++) {
		const char *end = colon ? memchr(at, i < 3 ? '/' : ':', (size_t)(colon + 1 - at)) : NULL;
		if (!end)
			skep_lines_fail(l, at, form);
		else if (skep_cell_number(l, (struct skep_cell){at, (size_t)(end - at)}, "a round trip in ms", 0,
				 2e3 * SKEP_IMPORT_S_MAX, &value[i]))
			at = end + 1;
	}
	if (importer->diag->set)
		return;
	if (value[0] > value[1] || value[1] > value[2])
		skep_lines_fail(l, l->text, "%s: these are not in order", form);
	size_t length = strlen(at);
	while (length > 0 && strchr(" \t", at[length - 1]))
		length--;
	uint32_t to =
		importer->diag->set ? SKEP_NO_PLACE : skep_import_place(importer, l, (struct skep_cell){at, length});
	if (to != SKEP_NO_PLACE && from != SKEP_NO_PLACE)
		skep_import_add(importer, SKEP_LATENCY_SAMPLE, from, to,
			(importer->options->one_way ? 1e-3 : 0.5e-3) * value[1]);
}

bool skep_import_gcp_ping(struct skep_importer *importer)
{
	for (uint32_t i = 0; i < importer->options->files && !importer->diag->set; i++) {
		struct skep_lines lines;
		const char *path = importer->options->file[i];
		uint32_t from = ping_source(importer, path), rows = 0;
		if (importer->diag->set || !skep_lines_open(&lines, path, 4096, importer->diag))
			return false;
		for (; skep_lines_next_row(&lines); rows++)
			ping_row(importer, &lines, from);
		if (rows == 0)
			skep_diag_set(importer->diag, path, 0, 0, NULL, "is empty: expected rows of pings");
		skep_lines_close(&lines);
	}
	snprintf(importer->measured, sizeof importer->measured, "Measured by ping: latency %s the average round trip",
		importer->options->one_way ? "is" : "half of");
	return !importer->diag->set;
}
