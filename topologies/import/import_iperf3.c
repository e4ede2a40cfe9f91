/* SPDX-License-Identifier: Apache-2.0
 *
 * import_iperf3.c - what `iperf3 --json` prints of a TCP test: bandwidth as received, of all streams together, from the sender
 * to the receiver (the other way round with --reverse); latency half of the least round trip that the sender's TCP saw, in
 * both directions.
 *
 * One stream is what one flow gets, many are the capacity: which it was is noted.
 */
#include "topologies/import/importer.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_BYTES_MAX (64u << 20)

struct iperf {
	struct skep_importer *importer;
	const char *path;
	uint32_t few, many; /* files with one stream, and with several */
};

/* Where in the text the parser stopped. */
static void fail_json(struct iperf *g, const char *text, size_t size, const char *at)
{
	uint32_t line = 1;
	const char *start = text;
	at = at && at >= text && at <= text + size ? at : text;
	for (const char *c = text; c < at; c++)
		if (*c == '\n') {
			line++;
			start = c + 1;
		}
	bool end = at >= text + size || *at == 0;
	skep_diag_set(g->importer->diag, g->path, line, (uint32_t)(at - start) + 1, start, "%s",
		size == 0 ? "is empty: expected what `iperf3 --json` prints"
		: end     ? "the text ends in the middle: not all of what `iperf3 --json` prints"
			  : "is not JSON here: expected what `iperf3 --json` prints");
}

static const cJSON *find(const cJSON *from, const char *path)
{
	char name[64];
	while (from && *path) {
		size_t length = strcspn(path, ".");
		snprintf(name, sizeof name, "%.*s", (int)length, path);
		from = cJSON_GetObjectItemCaseSensitive(from, name);
		path += length + (path[length] == '.');
	}
	return from;
}

static void fail_key(struct iperf *g, const char *key, const char *what)
{
	skep_diag_set(g->importer->diag, g->path, 0, 0, NULL, "%s: %s", key, what);
}

/* NAN: there is none. */
static double number(const cJSON *from, const char *path)
{
	const cJSON *item = find(from, path);
	return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

static uint32_t address(struct iperf *g, const cJSON *root, const char *key)
{
	const char *wrong = NULL;
	const cJSON *item = find(cJSON_GetArrayItem(find(root, "start.connected"), 0), key);
	if (!cJSON_IsString(item)) {
		fail_key(g, "start.connected", "no addresses: name the machines by the operand FROM,TO=FILE");
		return SKEP_NO_PLACE;
	}
	uint32_t place = skep_survey_place(&g->importer->survey, item->valuestring, strlen(item->valuestring), &wrong);
	if (wrong)
		fail_key(g, key, wrong);
	return place;
}

/* From whom the bytes went to whom: those of the operand, else addresses. */
static void find_ends(struct iperf *g, const cJSON *root, uint32_t *end)
{
	const cJSON *local, *remote;
	bool named = end[0] != SKEP_NO_PLACE;
	if (!named) {
		local = find(cJSON_GetArrayItem(find(root, "start.connected"), 0), "local_host");
		remote = find(cJSON_GetArrayItem(find(root, "start.connected"), 0), "remote_host");
		if (cJSON_IsString(local) && cJSON_IsString(remote) &&
			strcmp(local->valuestring, remote->valuestring) == 0) {
			fail_key(g, "start.connected",
				"a test from one address to itself: name the machines by FROM,TO=FILE");
			return;
		}
		end[0] = address(g, root, "local_host");
		end[1] = g->importer->diag->set ? SKEP_NO_PLACE : address(g, root, "remote_host");
	}
	if (!named && number(root, "start.test_start.reverse") == 1) {
		uint32_t client = end[0];
		end[0] = end[1];
		end[1] = client;
	}
}

/* In microseconds; of the stream that saw the least. */
static double least_rtt_us(const cJSON *root)
{
	double least = NAN;
	const cJSON *stream;
	cJSON_ArrayForEach(stream, find(root, "end.streams"))
	{
		double rtt = number(stream, "sender.min_rtt");
		if (rtt > 0)
			least = fmin(least, rtt);
	}
	return least;
}

static void take(struct iperf *g, const cJSON *root, uint32_t *end)
{
	struct skep_importer *importer = g->importer;
	const cJSON *error = find(root, "error"), *protocol = find(root, "start.test_start.protocol");
	double bps = number(root, "end.sum_received.bits_per_second"),
	       streams = number(root, "start.test_start.num_streams");
	if (cJSON_IsString(error))
		fail_key(g, "error", "the test failed, as iperf3 itself says here");
	else if (!cJSON_IsString(protocol) || strcmp(protocol->valuestring, "TCP") != 0)
		fail_key(g, "start.test_start.protocol", "expected a test of TCP");
	else if (number(root, "start.test_start.bidir") == 1)
		fail_key(g, "start.test_start.bidir", "both directions at once are not taken: test each by itself");
	else if (isnan(bps))
		fail_key(g, "end.sum_received.bits_per_second", "expected a number");
	else if (!(bps >= 8 * SKEP_IMPORT_BPS_MIN && bps <= 8 * SKEP_IMPORT_BPS_MAX))
		fail_key(g, "end.sum_received.bits_per_second", "expected a bandwidth above 0");
	if (!importer->diag->set)
		find_ends(g, root, end);
	if (importer->diag->set || end[0] == SKEP_NO_PLACE || end[1] == SKEP_NO_PLACE)
		return;
	if (end[0] == end[1]) {
		fail_key(g, "start.connected", "expected two machines");
		return;
	}
	g->few += !(streams > 1);
	g->many += streams > 1;
	skep_import_add(importer, SKEP_BANDWIDTH_SAMPLE, end[0], end[1], bps / 8);
	double rtt_s = 1e-6 * least_rtt_us(root);
	for (int i = 0; i < 2 && rtt_s <= 2 * SKEP_IMPORT_S_MAX; i++)
		skep_import_add(importer, SKEP_LATENCY_SAMPLE, end[i], end[1 - i], 0.5 * rtt_s);
}

static void read_file(struct iperf *g, const char *operand)
{
	char *text;
	size_t size;
	uint32_t end[2];
	const char *stopped = NULL;
	g->path = skep_import_operand(g->importer, operand, end);
	if (g->importer->diag->set || !skep_file_read(g->path, FILE_BYTES_MAX, &text, &size, g->importer->diag))
		return;
	cJSON *root = cJSON_ParseWithLengthOpts(text, size + 1, &stopped, 1);
	if (root)
		take(g, root, end);
	else
		fail_json(g, text, size, stopped);
	cJSON_Delete(root);
	free(text);
}

bool skep_import_iperf3(struct skep_importer *importer)
{
	struct iperf g = {.importer = importer};
	for (uint32_t i = 0; i < importer->options->files && !importer->diag->set; i++)
		read_file(&g, importer->options->file[i]);
	if (g.few > 0 && !importer->diag->set)
		skep_import_note(
			importer, "%u files of one TCP stream: that is what one flow gets, not the capacity", g.few);
	snprintf(importer->measured, sizeof importer->measured,
		"Measured by iperf3: %s, as received; latency half of the least round trip",
		g.few == 0    ? "capacity of several TCP streams"
		: g.many == 0 ? "one TCP stream"
			      : "one or several TCP streams");
	return !importer->diag->set;
}
