/* SPDX-License-Identifier: Apache-2.0
 *
 * import_bench.c - what nccl-tests and the OSU micro-benchmarks print, with or without the tags that mpirun puts before lines.
 *
 * nccl-tests: a collective among n ranks in a ring, whose slowest link is what is measured. Over the larger sizes (from a
 * sixteenth of the largest) time grows by S / A; the link carries f A, with the f by which nccl-tests itself makes busbw of
 * algbw. What the smallest size takes beyond that, divided by the hops that wait for each other, is the latency. Ranks on one
 * host: between its GPUs. On several: between any two of these hosts, shared by their GPUs.
 *
 * OSU: osu_bw keeps 64 messages of one pair in flight, so that its largest size is what a pair gets; osu_latency is half of a
 * ping-pong, one way, and holds in both directions.
 */
#include "topologies/import/importer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/csv.h"

#define LINE_BYTES_MAX (64u << 10)
#define RANKS_MAX 4096u
#define ROWS_MAX 256u
#define LARGE_PART 16.0

static const char blanks[] = " \t";

/* The word `index` of the text; of length 0 when there are fewer. */
static struct skep_cell word_at(const char *text, uint32_t index)
{
	for (text += strspn(text, blanks); index > 0; index--) {
		text += strcspn(text, blanks);
		text += strspn(text, blanks);
	}
	return (struct skep_cell){text, strcspn(text, blanks)};
}

/* ---- nccl-tests -------------------------------------------------------------------------------------------------- */

static const struct test {
	const char *name;
	bool twice; /* 2 (n - 1) hops and parts instead of n - 1 */
	bool pair;  /* one hop, whatever n */
} tests[] = {
	{"all_reduce_perf", true, false},
	{"all_gather_perf", false, false},
	{"reduce_scatter_perf", false, false},
	{"sendrecv_perf", false, true},
};

struct nccl {
	struct skep_importer *importer;
	struct skep_lines lines;
	const struct test *test;
	uint32_t place[RANKS_MAX], ranks;
	double bytes[ROWS_MAX], seconds[ROWS_MAX];
	uint32_t rows;
};

static void nccl_test(struct nccl *g, const char *text)
{
	struct skep_cell name = word_at(text, 0);
	if (g->test)
		skep_lines_fail(&g->lines, name.at, "a second test in this file: one is taken");
	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
		if (skep_cell_is(name, tests[i].name))
			g->test = &tests[i];
	if (!g->test)
		skep_lines_fail(&g->lines, name.at,
			"this test is not taken; all_reduce_perf, all_gather_perf, reduce_scatter_perf and "
			"sendrecv_perf are");
}

/* #  Rank  0 Group  0 Pid   4242 on     node-a device  0 ... */
static void nccl_rank(struct nccl *g, const char *text)
{
	const char *on = strstr(text, " on ");
	struct skep_cell host = word_at(on ? on + 4 : "", 0);
	if (!on || host.length == 0 || !strstr(host.at, " device ")) {
		skep_lines_fail(&g->lines, text, "expected a rank such as: Rank 0 Pid 4242 on HOST device 0");
		return;
	}
	if (g->ranks == RANKS_MAX) {
		skep_lines_fail(&g->lines, text, "more than %u ranks", RANKS_MAX);
		return;
	}
	g->place[g->ranks] = skep_import_place(g->importer, &g->lines, host);
	g->ranks += g->place[g->ranks] != SKEP_NO_PLACE;
}

/* size count type redop root time algbw busbw #wrong ...: the columns out of place. */
static void nccl_row(struct nccl *g, const char *text)
{
	struct skep_cell size = word_at(text, 0), time = word_at(text, 5), wrong = word_at(text, 8);
	double bytes, us;
	if (g->rows == ROWS_MAX || wrong.length == 0) {
		skep_lines_fail(&g->lines, text,
			"expected at most %u rows: size count type redop root time algbw busbw #wrong ...", ROWS_MAX);
		return;
	}
	if (!skep_cell_number(&g->lines, size, "a size in bytes", 0, 1e15, &bytes) ||
		!skep_cell_number(&g->lines, time, "a time in us", 1e-3, 1e12, &us))
		return;
	if (!skep_cell_is(wrong, "0") && !skep_cell_is(wrong, "N/A"))
		skep_lines_fail(&g->lines, wrong.at, "the test found wrong results: nothing it measured can be taken");
	if (bytes > 0) {
		g->bytes[g->rows] = bytes;
		g->seconds[g->rows++] = 1e-6 * us;
	}
}

static void nccl_line(struct nccl *g, const char *text)
{
	static const char starting[] = "Collective test starting:";
	const char *first = text + strspn(text, blanks), *found = strstr(text, starting);
	if (*first == '#') {
		const char *word = first + 1 + strspn(first + 1, blanks);
		if (found)
			nccl_test(g, found + strlen(starting));
		else if (strncmp(word, "Rank ", 5) == 0)
			nccl_rank(g, word);
	} else if (*first >= '0' && *first <= '9') {
		nccl_row(g, first);
	} else if (*first) {
		skep_lines_fail(&g->lines, first, "expected the output of one of the nccl-tests");
	}
}

/* Least squares over the large sizes. *ret_s: what the smallest takes beyond its share of that; NAN with one size only. */
static double seconds_per_byte(const struct nccl *g, double *ret_s)
{
	double largest = 0, n = 0, x = 0, y = 0, xx = 0, xy = 0;
	uint32_t least = 0;
	for (uint32_t i = 0; i < g->rows; i++) {
		largest = fmax(largest, g->bytes[i]);
		least = g->bytes[i] < g->bytes[least] ? i : least;
	}
	for (uint32_t i = 0; i < g->rows; i++) {
		if (g->bytes[i] * LARGE_PART < largest)
			continue;
		n++;
		x += g->bytes[i];
		y += g->seconds[i];
		xx += g->bytes[i] * g->bytes[i];
		xy += g->bytes[i] * g->seconds[i];
	}
	double spread = n * xx - x * x, slope = spread > 0 ? (n * xy - x * y) / spread : 0;
	*ret_s = slope > 0 ? fmax(0, g->seconds[least] - slope * g->bytes[least]) : NAN;
	return slope > 0 ? slope : y / x;
}

/* One value for every ordered pair of the hosts. */
static void nccl_add(struct nccl *g, double Bps, double latency_s)
{
	uint32_t places = g->importer->survey.places, hosts = 0;
	uint32_t *ranks = calloc(places + 1, sizeof *ranks), *host = calloc(places + 1, sizeof *host);
	for (uint32_t i = 0; ranks && host && i < g->ranks; i++)
		if (ranks[g->place[i]]++ == 0)
			host[hosts++] = g->place[i];
	for (uint32_t i = 0; i < hosts; i++) {
		struct skep_survey_place *place = &g->importer->survey.place[host[i]];
		place->machines = ranks[host[i]] > place->machines ? ranks[host[i]] : place->machines;
		for (uint32_t j = 0; j < hosts; j++) {
			if (i == j && hosts > 1)
				continue;
			skep_import_add(g->importer, SKEP_BANDWIDTH_SAMPLE, host[i], host[j], Bps);
			if (!isnan(latency_s))
				skep_import_add(g->importer, SKEP_LATENCY_SAMPLE, host[i], host[j], latency_s);
		}
	}
	free(ranks);
	free(host);
}

static void nccl_settle(struct nccl *g, const char *path)
{
	struct skep_diag *diag = g->importer->diag;
	double n = g->ranks, latency_s;
	if (!g->test)
		skep_diag_set(diag, path, 0, 0, NULL,
			"no line '# Collective test starting: NAME', so what was measured is not known (older "
			"nccl-tests print none: add it)");
	else if (g->ranks < 2)
		skep_diag_set(diag, path, 0, 0, NULL, "%u ranks: two are needed to measure a link", g->ranks);
	else if (g->rows == 0)
		skep_diag_set(diag, path, 0, 0, NULL, "no rows with a size above 0");
	if (diag->set)
		return;
	double hops = g->test->pair ? 1 : (g->test->twice ? 2 : 1) * (n - 1), parts = g->test->pair ? 1 : hops / n;
	double per_byte = seconds_per_byte(g, &latency_s), Bps = parts / per_byte;
	if (!(Bps >= SKEP_IMPORT_BPS_MIN && Bps <= SKEP_IMPORT_BPS_MAX)) {
		skep_diag_set(diag, path, 0, 0, NULL, "a bandwidth of %g B/s cannot be", Bps);
		return;
	}
	nccl_add(g, Bps, latency_s / hops);
}

bool skep_import_nccl(struct skep_importer *importer)
{
	struct nccl *g = malloc(sizeof *g);
	if (!g)
		skep_diag_set(importer->diag, importer->options->file[0], 0, 0, NULL, "not enough memory");
	for (uint32_t i = 0; i < importer->options->files && !importer->diag->set; i++) {
		const char *path = importer->options->file[i];
		*g = (struct nccl){.importer = importer};
		if (!skep_lines_open(&g->lines, path, LINE_BYTES_MAX, importer->diag))
			break;
		while (skep_lines_next(&g->lines))
			nccl_line(g, skep_import_untagged(g->lines.text));
		skep_lines_close(&g->lines);
		if (!importer->diag->set)
			nccl_settle(g, path);
	}
	free(g);
	importer->shared = true;
	snprintf(importer->measured, sizeof importer->measured,
		"Measured by nccl-tests: what the slowest link of the ring carries");
	return !importer->diag->set;
}

/* ---- OSU --------------------------------------------------------------------------------------------------------- */

struct osu {
	struct skep_importer *importer;
	struct skep_lines lines;
	bool known, latency;      /* which test; latency: else bandwidth */
	double least, most;       /* sizes ... */
	double at_least, at_most; /* ... and what stands beside them */
	uint32_t rows;
};

static void osu_head(struct osu *g, const char *text)
{
	bool bandwidth = strstr(text, "Bandwidth Test") != NULL, latency = strstr(text, "Latency Test") != NULL;
	if (!strstr(text, "OSU ") || !strstr(text, " Test"))
		return;
	if (g->known)
		skep_lines_fail(&g->lines, text, "a second test in this file: one is taken");
	else if (strstr(text, "Bi-Directional") || strstr(text, "Multi") || (!bandwidth && !latency))
		skep_lines_fail(&g->lines, text, "this test is not taken; osu_bw and osu_latency are");
	g->known = true;
	g->latency = latency;
}

static void osu_row(struct osu *g, const char *text)
{
	double size, value;
	struct skep_cell cell = word_at(text, 1);
	if (!g->known)
		skep_lines_fail(
			&g->lines, text, "expected a line such as '# OSU MPI Bandwidth Test' before the numbers");
	if (g->importer->diag->set ||
		!skep_cell_number(&g->lines, word_at(text, 0), "a size in bytes", 0, 1e15, &size) ||
		!skep_cell_number(&g->lines, cell, g->latency ? "a latency in us" : "a bandwidth in MB/s",
			g->latency ? 0 : 1e-6, g->latency ? 3600e6 : 1e9, &value))
		return;
	if (g->rows == 0 || size < g->least) {
		g->least = size;
		g->at_least = value;
	}
	if (g->rows == 0 || size >= g->most) {
		g->most = size;
		g->at_most = value;
	}
	g->rows++;
}

static void osu_add(struct osu *g, const char *path, const uint32_t *end)
{
	struct skep_importer *importer = g->importer;
	if (g->rows == 0)
		skep_diag_set(
			importer->diag, path, 0, 0, NULL, "no numbers: expected the output of osu_bw or osu_latency");
	else if (end[0] == end[1])
		skep_diag_set(importer->diag, path, 0, 0, NULL,
			"OSU's output does not name its machines: expected the operand FROM,TO=%.100s with two names",
			path);
	else if (!g->latency)
		skep_import_add(importer, SKEP_BANDWIDTH_SAMPLE, end[0], end[1], 1e6 * g->at_most);
	for (int i = 0; i < 2 && g->latency && !importer->diag->set; i++)
		skep_import_add(importer, SKEP_LATENCY_SAMPLE, end[i], end[1 - i], 1e-6 * g->at_least);
}

bool skep_import_osu(struct skep_importer *importer)
{
	for (uint32_t i = 0; i < importer->options->files && !importer->diag->set; i++) {
		struct osu g = {.importer = importer};
		uint32_t end[2];
		const char *path = skep_import_operand(importer, importer->options->file[i], end);
		if (importer->diag->set || !skep_lines_open(&g.lines, path, LINE_BYTES_MAX, importer->diag))
			break;
		while (skep_lines_next(&g.lines)) {
			const char *text = skep_import_untagged(g.lines.text);
			text += strspn(text, blanks);
			if (*text == '#')
				osu_head(&g, text);
			else if (*text)
				osu_row(&g, text);
		}
		skep_lines_close(&g.lines);
		if (!importer->diag->set)
			osu_add(&g, path, end);
	}
	snprintf(importer->measured, sizeof importer->measured,
		"Measured by the OSU micro-benchmarks: osu_bw at its largest size, osu_latency at its smallest");
	return !importer->diag->set;
}
