/* SPDX-License-Identifier: Apache-2.0
 *
 * regions.c - see regions.h. What is kept true of a table that was read: shares add up to 1, every access is above 0, and every
 * ordered pair of regions has a latency.
 */
#include "topologies/read/regions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/csv.h"

#define LATENCY_PREFIX "latency_ms_to_"
#define BPS_MAX 8e15
#define LATENCY_MS_MAX 3600e3

enum { NAME, SHARE, DOWN, UP, COLUMNS };

struct reading {
	struct skep_table table;
	struct skep_regions *regions;
	uint32_t at[COLUMNS];
	uint32_t latency_at[SKEP_REGIONS_MAX], latencies; /* columns, as they stand in the header */
};

static bool read_header(struct reading *g)
{
	static const char *const names[] = {"region", "node_share", "download_bps", "upload_bps", NULL};
	struct skep_table *t = &g->table;
	if (!skep_table_need(t, names, g->at))
		return false;
	for (uint32_t i = 0; i < t->columns; i++) {
		if (t->name[i].length <= strlen(LATENCY_PREFIX) ||
			strncmp(t->name[i].at, LATENCY_PREFIX, strlen(LATENCY_PREFIX)) != 0)
			continue;
		if (g->latencies == SKEP_REGIONS_MAX) {
			skep_lines_fail(&t->lines, t->lines.text, "more than %u regions", SKEP_REGIONS_MAX);
			return false;
		}
		g->latency_at[g->latencies++] = i;
	}
	if (g->latencies == 0)
		skep_lines_fail(&t->lines, t->lines.text, "expected a column %sNAME for each region", LATENCY_PREFIX);
	g->regions->region = calloc(g->latencies + 1, sizeof *g->regions->region);
	g->regions->latency_s = calloc((size_t)g->latencies * g->latencies + 1, sizeof *g->regions->latency_s);
	if (!g->regions->region || !g->regions->latency_s)
		skep_lines_fail(&t->lines, t->lines.text, "not enough memory");
	return !t->lines.diag->set;
}

/* The order of the latency columns is that of the regions. */
static uint32_t find_region(struct reading *g, struct skep_cell name)
{
	for (uint32_t i = 0; i < g->latencies; i++) {
		struct skep_cell column = g->table.name[g->latency_at[i]];
		if (column.length - strlen(LATENCY_PREFIX) == name.length &&
			strncmp(column.at + strlen(LATENCY_PREFIX), name.at, name.length) == 0)
			return i;
	}
	skep_lines_fail(&g->table.lines, name.at, "region '%.*s' has no column %s%.*s",
		(int)(name.length < 40 ? name.length : 40), name.at, LATENCY_PREFIX,
		(int)(name.length < 40 ? name.length : 40), name.at);
	return UINT32_MAX;
}

static bool read_row(struct reading *g)
{
	struct skep_table *t = &g->table;
	struct skep_lines *l = &t->lines;
	uint32_t i = find_region(g, t->cell[g->at[NAME]]);
	if (i == UINT32_MAX)
		return false;
	struct skep_region *region = &g->regions->region[i];
	if (region->name[0])
		skep_lines_fail(l, t->cell[g->at[NAME]].at, "a second row of region %s", region->name);
	if (l->diag->set || !skep_cell_copy(l, t->cell[g->at[NAME]], "a region", region->name, sizeof region->name) ||
		!skep_cell_number(l, t->cell[g->at[SHARE]], "a share of the peers", 0, 1e12, &region->share) ||
		!skep_cell_number(l, t->cell[g->at[DOWN]], "a bandwidth in bit/s", 8, BPS_MAX, &region->down_Bps) ||
		!skep_cell_number(l, t->cell[g->at[UP]], "a bandwidth in bit/s", 8, BPS_MAX, &region->up_Bps))
		return false;
	region->down_Bps /= 8;
	region->up_Bps /= 8;
	for (uint32_t j = 0; j < g->latencies && !l->diag->set; j++) {
		double ms;
		if (skep_cell_number(l, t->cell[g->latency_at[j]], "a latency in ms", 0, LATENCY_MS_MAX, &ms))
			g->regions->latency_s[(size_t)i * g->latencies + j] = 1e-3 * ms;
	}
	g->regions->count++;
	return !l->diag->set;
}

static void check_whole(struct reading *g, const char *path, struct skep_diag *reterr)
{
	double sum = 0;
	struct skep_regions *r = g->regions;
	for (uint32_t i = 0; i < g->latencies; i++) {
		struct skep_cell column = g->table.name[g->latency_at[i]];
		if (!r->region[i].name[0])
			skep_diag_set(reterr, path, 0, 0, NULL, "the column %.*s has no row of its region",
				(int)(column.length < 60 ? column.length : 60), column.at);
		sum += r->region[i].share;
	}
	if (!(sum > 0))
		skep_diag_set(reterr, path, 0, 0, NULL, "all shares are 0: no region has peers");
	for (uint32_t i = 0; i < r->count && !reterr->set; i++)
		r->region[i].share /= sum;
}

bool skep_regions_read(const char *path, struct skep_regions *ret, struct skep_diag *reterr)
{
	struct reading *g = calloc(1, sizeof *g);
	*ret = (struct skep_regions){0};
	if (!g) {
		skep_diag_set(reterr, path, 0, 0, NULL, "not enough memory");
		return false;
	}
	g->regions = ret;
	if (skep_table_open(&g->table, path, reterr) && read_header(g)) {
		while (skep_table_next(&g->table) && read_row(g))
			;
		if (!reterr->set)
			check_whole(g, path, reterr);
	}
	skep_table_close(&g->table);
	free(g);
	if (reterr->set)
		skep_regions_finish(ret);
	return !reterr->set;
}

void skep_regions_finish(struct skep_regions *r)
{
	free(r->region);
	free(r->latency_s);
	*r = (struct skep_regions){0};
}
