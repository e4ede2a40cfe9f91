/* SPDX-License-Identifier: Apache-2.0
 *
 * link_profiles.c - reads what a topology says of its links besides bandwidth and latency: connections and their
 * windows, loss, the overhead of a message, jitter.
 *
 * The same keys stand at the root of the file, for all its links, and at a link, a site's inside or the fallback, for that
 * one; what a link does not say is as at the root.
 *
 * What is kept true: link_profile[0] is the root's; equal profiles are one; a window is above 0, loss below 100 %, a
 * table of delays has at least one entry.
 */
#include "base/grow.h"
#include "topologies/read/draft.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/lines.h"

#define MSS_BYTES 1460.0 /* Ethernet's 1500 less the headers of IPv4 and TCP */

#define STREAMS_MOST 1024

static const struct skep_link_profile plain = {.window_bytes = INFINITY, .mss_bytes = MSS_BYTES, .streams = 1};

static bool same_number(double a, double b)
{
	return memcmp(&a, &b, sizeof a) == 0;
}

static bool same(const struct skep_link_profile *a, const struct skep_link_profile *b)
{
	return same_number(a->window_bytes, b->window_bytes) && same_number(a->loss, b->loss) &&
	       same_number(a->mss_bytes, b->mss_bytes) && same_number(a->overhead_s, b->overhead_s) &&
	       a->streams == b->streams && a->overtake == b->overtake && a->jitter.kind == b->jitter.kind &&
	       a->jitter.relative == b->jitter.relative && same_number(a->jitter.deviation, b->jitter.deviation) &&
	       a->jitter.first == b->jitter.first && a->jitter.count == b->jitter.count;
}

static uint16_t add(
	struct skep_draft *d, const struct skep_yaml_node *map, const struct skep_link_profile *link_profile)
{
	struct skep_topology *t = d->topology;
	for (uint32_t i = 0; i < t->link_profiles; i++)
		if (same(&t->link_profile[i], link_profile))
			return (uint16_t)i;
	if (t->link_profiles == SKEP_LINK_PROFILES_MAX) {
		skep_reader_fail(&d->r, map, NULL,
			"more than %u links that differ in streams, window, loss, overhead or jitter",
			SKEP_LINK_PROFILES_MAX);
		return 0;
	}
	if (!skep_grow(&t->link_profile, t->link_profiles, sizeof *t->link_profile)) {
		skep_draft_no_memory(d);
		return 0;
	}
	t->link_profile[t->link_profiles] = *link_profile;
	return (uint16_t)t->link_profiles++;
}

/* ---- jitter ------------------------------------------------------------------------------------------------------ */

/* `deviation`: a time, or a part of the latency. */
static void read_deviation(struct skep_draft *d, const struct skep_yaml_node *map, struct skep_jitter *jitter)
{
	const char *text = skep_read_string(&d->r, map, "deviation", NULL), *expected;
	double value = 0;
	if (d->r.diag->set)
		return;
	jitter->relative = skep_quantity_parse(text, SKEP_PART, &value, &expected);
	bool good = jitter->relative || skep_quantity_parse(text, SKEP_TIME, &value, &expected);
	if (!good || value < 0 || value > (jitter->relative ? 100 : SKEP_LATENCY_S_MAX))
		skep_reader_fail(&d->r, map, "deviation",
			"expected a deviation, of at least 0, as a time (`20 ms`) or as a part of the latency (`20 "
			"%%`), not `%.60s`",
			text);
	jitter->deviation = value;
}

static bool add_delay(struct skep_draft *d, struct skep_jitter *jitter, double delay_s)
{
	struct skep_topology *t = d->topology;
	uint32_t used = jitter->first + jitter->count;
	if (!skep_grow(&t->delay_s, used, sizeof *t->delay_s)) {
		skep_draft_no_memory(d);
		return false;
	}
	t->delay_s[used] = delay_s;
	t->delays = used + 1;
	jitter->count++;
	return true;
}

static void read_values(struct skep_draft *d, const struct skep_yaml_node *list, struct skep_jitter *jitter)
{
	for (uint32_t i = 0; i < skep_yaml_length(list) && !d->r.diag->set; i++) {
		double delay_s = skep_read_quantity(
			&d->r, skep_yaml_item(list, i), NULL, SKEP_TIME, -SKEP_LATENCY_S_MAX, SKEP_LATENCY_S_MAX, NAN);
		if (jitter->first + jitter->count == SKEP_DELAYS_MAX)
			skep_reader_fail(&d->r, list, NULL, "more than %u delays in this topology", SKEP_DELAYS_MAX);
		else if (!d->r.diag->set)
			add_delay(d, jitter, delay_s);
	}
}

/* One number a line, in `unit`. */
static bool read_delay(struct skep_draft *d, struct skep_lines *lines, const char *unit, struct skep_jitter *jitter)
{
	struct skep_cell cell;
	char text[64];
	const char *expected;
	double delay_s = 0;
	uint32_t cells = skep_lines_cells(lines, &cell, 1);
	snprintf(text, sizeof text, "%.*s %s", (int)(cell.length < 40 ? cell.length : 40), cell.at, unit);
	if (cells != 1 || !skep_quantity_parse(text, SKEP_TIME, &delay_s, &expected) ||
		fabs(delay_s) > SKEP_LATENCY_S_MAX) {
		skep_lines_fail(lines, cell.at, "expected one number, a delay in %s of at most an hour", unit);
		return false;
	}
	if (jitter->first + jitter->count == SKEP_DELAYS_MAX) {
		skep_lines_fail(lines, cell.at, "more than %u delays in one topology", SKEP_DELAYS_MAX);
		return false;
	}
	return add_delay(d, jitter, delay_s);
}

static void read_delay_file(
	struct skep_draft *d, const char *path, const char *unit, double scale_s, struct skep_jitter *jitter)
{
	struct skep_topology *t = d->topology;
	struct skep_lines lines;
	if (!skep_grow(&t->delay_file, t->delay_files, sizeof *t->delay_file)) {
		skep_draft_no_memory(d);
		return;
	}
	if (!skep_lines_open(&lines, path, 4096, d->r.diag))
		return;
	while (skep_lines_next_row(&lines) && read_delay(d, &lines, unit, jitter))
		;
	skep_lines_close(&lines);
	if (!d->r.diag->set && jitter->count == 0)
		skep_diag_set(d->r.diag, path, 0, 0, NULL, "no delay in this file: expected one number a line");
	struct skep_delay_file *file = &t->delay_file[t->delay_files++];
	*file = (struct skep_delay_file){.scale_s = scale_s, .first = jitter->first, .count = jitter->count};
	snprintf(file->path, sizeof file->path, "%s", path);
}

/* Each file is read once, however many links name it. */
static void read_delays(struct skep_draft *d, const struct skep_yaml_node *map, struct skep_jitter *jitter)
{
	const struct skep_topology *t = d->topology;
	const char *name = skep_read_string(&d->r, map, "file", NULL), *expected;
	const char *unit = skep_read_string(&d->r, map, "unit", NULL);
	char path[512], one[48];
	double scale_s;
	if (d->r.diag->set)
		return;
	snprintf(one, sizeof one, "1 %.40s", unit);
	if (!skep_quantity_parse(one, SKEP_TIME, &scale_s, &expected)) {
		skep_reader_fail(&d->r, map, "unit", "expected the unit alone, as in %s", expected);
		return;
	}
	if (!skep_read_find(&d->r, map, "file", d->path, name, path, sizeof path)) {
		skep_reader_fail(&d->r, map, "file", "no file `%.200s` with delays", name);
		return;
	}
	for (uint32_t i = 0; i < t->delay_files; i++)
		if (strcmp(t->delay_file[i].path, path) == 0 && same_number(t->delay_file[i].scale_s, scale_s)) {
			jitter->first = t->delay_file[i].first;
			jitter->count = t->delay_file[i].count;
			return;
		}
	read_delay_file(d, path, unit, scale_s, jitter);
}

static void read_empirical(struct skep_draft *d, const struct skep_yaml_node *map, struct skep_jitter *jitter)
{
	const struct skep_yaml_node *values = skep_read_list(&d->r, map, "values", false);
	double sum = 0;
	jitter->first = d->topology->delays;
	if (values && skep_read_has(&d->r, map, "file"))
		skep_reader_fail(&d->r, map, "file", "either `values` or `file`, not both");
	else if (values && skep_yaml_length(values) == 0)
		skep_reader_fail(
			&d->r, values, NULL, "the table is empty: expected delays such as [0 ms, 5 ms, 80 ms]");
	else if (values)
		read_values(d, values, jitter);
	else if (!skep_read_has(&d->r, map, "file"))
		skep_reader_fail(
			&d->r, map, NULL, "expected a table: values: [0 ms, 5 ms, ...], or file and unit of one");
	else
		read_delays(d, map, jitter);
	jitter->most_s = -INFINITY;
	for (uint32_t i = 0; i < jitter->count; i++) {
		double delay_s = d->topology->delay_s[jitter->first + i];
		sum += delay_s;
		jitter->most_s = fmax(jitter->most_s, delay_s);
	}
	jitter->mean_s = sum / jitter->count;
}

static void read_jitter(
	struct skep_draft *d, const struct skep_yaml_node *map, double spread_s, struct skep_link_profile *link_profile)
{
	static const char *const words[] = {"none", "normal", "lognormal", "empirical", NULL};
	const struct skep_yaml_node *node = skep_read_map(&d->r, map, "jitter", false);
	if (node && spread_s > 0)
		skep_reader_fail(&d->r, map, "jitter", "either `latency` with a deviation or `jitter`, not both");
	if (spread_s > 0)
		link_profile->jitter = (struct skep_jitter){.kind = SKEP_JITTER_NORMAL, .deviation = spread_s};
	if (!node || d->r.diag->set)
		return;
	link_profile->jitter = (struct skep_jitter){0};
	link_profile->jitter.kind = (enum skep_jitter_kind)skep_read_choice(&d->r, node, "distribution", words, -1);
	if (d->r.diag->set)
		return;
	if (link_profile->jitter.kind == SKEP_JITTER_EMPIRICAL)
		read_empirical(d, node, &link_profile->jitter);
	else if (link_profile->jitter.kind != SKEP_JITTER_NONE)
		read_deviation(d, node, &link_profile->jitter);
	skep_reader_close_map(&d->r, node);
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

/* 0: all that is ever sent is under way at once, so there is no window; said in words, since no number is right. */
static double read_window(struct skep_draft *d, const struct skep_yaml_node *map, double fallback)
{
	if (!skep_read_has(&d->r, map, "window"))
		return fallback;
	double bytes = skep_read_quantity(&d->r, map, "window", SKEP_BYTES, -1e18, 1e18, NAN);
	if (!d->r.diag->set && bytes < 1)
		skep_reader_fail(&d->r, map, "window",
			"a flow with a window of %g B never moves: expected at least 1 B; without the key there is no "
			"limit",
			bytes);
	return bytes;
}

static double read_loss(struct skep_draft *d, const struct skep_yaml_node *map, double fallback)
{
	double loss = skep_read_quantity(&d->r, map, "loss", SKEP_PART, 0, INFINITY, fallback);
	if (!d->r.diag->set && loss >= 1)
		skep_reader_fail(&d->r, map, "loss", "with a loss of 100 %% nothing arrives: expected less");
	return loss;
}

/* Where nothing says `loss`, not even that it is 0, the size of a packet changes nothing: something was forgotten. */
static void check_mss(struct skep_draft *d, const struct skep_yaml_node *map)
{
	if (skep_read_has(&d->r, map, "mss") && !skep_read_has(&d->r, map, "loss"))
		skep_reader_fail(
			&d->r, map, "mss", "`mss` counts with `loss` alone: add the part of packets that is lost");
}

static uint32_t read_streams(struct skep_draft *d, const struct skep_yaml_node *map, uint32_t fallback)
{
	if (!skep_read_has(&d->r, map, "streams"))
		return fallback;
	const char *text = skep_read_string(&d->r, map, "streams", "");
	if (d->r.diag->set || strcmp(text, "each") == 0)
		return SKEP_STREAMS_EACH;
	if (text[0] < '0' || text[0] > '9')
		skep_reader_fail_value(&d->r, map, "streams",
			"streams: expected a whole number from 1 to %d, or `each`: every message has a connection of its own",
			STREAMS_MOST);
	return (uint32_t)skep_read_integer(&d->r, map, "streams", 1, STREAMS_MOST, 1);
}

static struct skep_link_profile read_link_profile(struct skep_draft *d, const struct skep_yaml_node *map,
	double spread_s, const struct skep_link_profile *otherwise)
{
	static const char *const words[] = {"kept", "free", NULL};
	struct skep_link_profile link_profile = *otherwise;
	link_profile.window_bytes = read_window(d, map, otherwise->window_bytes);
	link_profile.loss = read_loss(d, map, otherwise->loss);
	link_profile.mss_bytes = skep_read_quantity(&d->r, map, "mss", SKEP_BYTES, 1, 1e6, otherwise->mss_bytes);
	if (!d->r.diag->set && map != d->root && link_profile.loss <= 0)
		check_mss(d, map);
	link_profile.overhead_s = skep_read_quantity(&d->r, map, "overhead", SKEP_TIME, 0, 60, otherwise->overhead_s);
	link_profile.streams = read_streams(d, map, otherwise->streams);
	link_profile.overtake = skep_read_choice(&d->r, map, "order", words, otherwise->overtake) == 1;
	read_jitter(d, map, spread_s, &link_profile);
	return link_profile;
}

void skep_draft_read_link_profiles(struct skep_draft *d, const struct skep_yaml_node *root)
{
	d->root = root;
	struct skep_link_profile link_profile = read_link_profile(d, root, 0, &plain);
	add(d, root, &link_profile);
}

uint16_t skep_draft_read_link_profile(struct skep_draft *d, const struct skep_yaml_node *map, double spread_s)
{
	if (d->r.diag->set)
		return 0;
	struct skep_link_profile link_profile = read_link_profile(d, map, spread_s, &d->topology->link_profile[0]);
	return d->r.diag->set ? 0 : add(d, map, &link_profile);
}

void skep_draft_finish_link_profiles(struct skep_draft *d)
{
	bool lossy = false;
	for (uint32_t i = 0; i < d->topology->link_profiles; i++)
		lossy = lossy || d->topology->link_profile[i].loss > 0;
	if (!lossy && !d->r.diag->set)
		check_mss(d, d->root);
	if (d->topology->link_profiles == 1 && same(&d->topology->link_profile[0], &plain))
		d->topology->link_profiles = 0;
}
