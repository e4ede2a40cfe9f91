/* SPDX-License-Identifier: Apache-2.0
 *
 * tables.c - see tables.h.
 */
#include "asking/tables.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/files/csv.h"

#define LINKS "topologies/regions/cloud-links.csv"
#define HOMES "topologies/regions/home-2019.csv"
#define PRICES "topologies/prices/gpus.csv"
#define DILOCO "scenarios/laws/diloco-2025.csv"

/* Opens the table and finds the columns of these names. Close it in either case. */
static bool open_table(
	struct skep_table *table, const char *name, const char *const column[], uint32_t *ret, struct skep_diag *reterr)
{
	char path[512];
	memset(table, 0, sizeof *table);
	table->lines.fd = -1;
	if (!skep_file_find(reterr->files, name, name, path, sizeof path))
		return skep_fail(reterr,
			"%s: is not there: `skep ask` needs the data of skep beside it; start it in the folder of skep",
			name);
	return skep_table_open(table, path, reterr) && skep_table_need(table, column, ret);
}

/* NAN: the cell is empty. */
static double number(struct skep_table *table, uint32_t column, const char *what)
{
	double value = NAN;
	struct skep_cell cell = table->cell[column];
	if (cell.length == 0 || !skep_cell_number(&table->lines, cell, what, 0, 1e15, &value))
		return NAN;
	return value;
}

static void text(const struct skep_table *table, uint32_t column, char *ret, size_t size)
{
	struct skep_cell cell = table->cell[column];
	snprintf(ret, size, "%.*s", (int)cell.length, cell.at);
}

/* ---- clouds ------------------------------------------------------------------------------------------------------ */

static const char *const link_columns[] = {"from", "to", "gbit_s", "latency_ms", "usd_per_gb", NULL};
enum { FROM, TO, GBIT, MS, USD };

bool skep_cloud_regions_read(struct skep_cloud_regions *ret, struct skep_diag *reterr)
{
	struct skep_table table;
	uint32_t column[5];
	bool ok = open_table(&table, LINKS, link_columns, column, reterr);
	ret->count = 0;
	while (ok && skep_table_next(&table)) { /* rows of one source follow each other */
		char name[40];
		text(&table, column[FROM], name, sizeof name);
		bool again = ret->count > 0 && strcmp(ret->name[ret->count - 1], name) == 0;
		if (!again && ret->count < SKEP_CLOUD_REGIONS_MAX)
			memcpy(ret->name[ret->count++], name, sizeof name);
	}
	skep_table_close(&table);
	return ok && !reterr->set;
}

bool skep_region_link_read(const char *from, const char *to, struct skep_region_link *ret, struct skep_diag *reterr)
{
	struct skep_table table;
	uint32_t column[5];
	bool ok = open_table(&table, LINKS, link_columns, column, reterr);
	*ret = (struct skep_region_link){NAN, NAN, NAN};
	while (ok && skep_table_next(&table)) {
		if (!skep_cell_is(table.cell[column[FROM]], from) || !skep_cell_is(table.cell[column[TO]], to))
			continue;
		ret->Bps = number(&table, column[GBIT], "a bandwidth in Gbit/s") * 1e9 / 8;
		ret->latency_s = number(&table, column[MS], "a latency in ms") * 1e-3;
		ret->usd_per_byte = number(&table, column[USD], "a price in USD per GB") * 1e-9;
	}
	skep_table_close(&table);
	return ok && !reterr->set;
}

bool skep_provider_read(const char *provider, double *ret_up_Bps, double *ret_usd_per_byte, struct skep_diag *reterr)
{
	struct skep_table table;
	uint32_t column[5], seen[1000] = {0}, most = 0;
	size_t length = strlen(provider);
	bool ok = open_table(&table, LINKS, link_columns, column, reterr);
	*ret_up_Bps = *ret_usd_per_byte = NAN;
	while (ok && skep_table_next(&table)) {
		struct skep_cell from = table.cell[column[FROM]];
		if (from.length <= length || strncmp(from.at, provider, length) != 0 || from.at[length] != ':')
			continue;
		double usd = number(&table, column[USD], "a price in USD per GB");
		double Bps = number(&table, column[GBIT], "a bandwidth in Gbit/s") * 1e9 / 8;
		if (isnan(*ret_up_Bps) || Bps > *ret_up_Bps)
			*ret_up_Bps = Bps;
		uint32_t cents = usd < 9.99 ? (uint32_t)(100 * usd + 0.5) : 0; /* NAN too: 0 */
		if (usd > 0 && ++seen[cents] > most) {
			most = seen[cents];
			*ret_usd_per_byte = cents * 1e-11;
		}
	}
	skep_table_close(&table);
	return ok && !reterr->set;
}

/* ---- homes ------------------------------------------------------------------------------------------------------- */

static bool alike(struct skep_cell cell, const char *name)
{
	if (cell.length != strlen(name))
		return false;
	for (size_t i = 0; i < cell.length; i++) {
		char c = name[i] == '-' ? '_' : (char)toupper((unsigned char)name[i]);
		if (cell.at[i] != c)
			return false;
	}
	return true;
}

static void add_name(struct skep_cell cell, char *ret, size_t size)
{
	size_t used = strlen(ret);
	snprintf(ret + used, size - used, "%shome-%.*s", used > 0 ? ", " : "", (int)cell.length, cell.at);
	for (char *c = ret + used; *c; c++)
		*c = *c == '_' ? '-' : (char)tolower((unsigned char)*c);
}

bool skep_home_read(const char *region, struct skep_home *ret, bool *ret_found, char *ret_names, size_t size,
	struct skep_diag *reterr)
{
	static const char *const columns[] = {"region", "download_bps", "upload_bps", NULL};
	struct skep_table table;
	uint32_t column[3];
	bool ok = open_table(&table, HOMES, columns, column, reterr);
	*ret_found = false;
	ret_names[0] = '\0';
	while (ok && skep_table_next(&table)) {
		struct skep_cell name = table.cell[column[0]];
		char to[64];
		add_name(name, ret_names, size);
		if (!alike(name, region))
			continue;
		snprintf(to, sizeof to, "latency_ms_to_%.*s", (int)name.length, name.at);
		uint32_t inside = skep_table_column(&table, to);
		*ret_found = inside != UINT32_MAX;
		ret->down_Bps = number(&table, column[1], "a bandwidth in bit/s") / 8;
		ret->up_Bps = number(&table, column[2], "a bandwidth in bit/s") / 8;
		ret->inside_s = *ret_found ? number(&table, inside, "a latency in ms") * 1e-3 : NAN;
	}
	skep_table_close(&table);
	return ok && !reterr->set;
}

/* ---- prices ------------------------------------------------------------------------------------------------------ */

bool skep_gpu_price_read(const char *gpu, const char *provider, struct skep_gpu_price *ret, struct skep_diag *reterr)
{
	static const char *const columns[] = {
		"gpu", "provider", "as_of", "host", "on_demand_usd_per_h", "spot_usd_per_h", NULL};
	struct skep_table table;
	uint32_t column[6];
	bool ok = open_table(&table, PRICES, columns, column, reterr), found = false;
	*ret = (struct skep_gpu_price){.usd_per_h = {NAN, NAN}};
	while (ok && skep_table_next(&table)) {
		bool here = skep_cell_is(table.cell[column[1]], provider);
		if (!skep_cell_is(table.cell[column[0]], gpu) || (found && (!here || !ret->elsewhere)))
			continue;
		ret->elsewhere = !here;
		text(&table, column[1], ret->provider, sizeof ret->provider);
		text(&table, column[2], ret->as_of, sizeof ret->as_of);
		ret->attached = skep_cell_is(table.cell[column[3]], "no");
		ret->usd_per_h[0] = number(&table, column[4], "a price in USD per hour");
		ret->usd_per_h[1] = number(&table, column[5], "a price in USD per hour");
		found = true;
	}
	skep_table_close(&table);
	return ok && !reterr->set;
}

/* ---- losses ------------------------------------------------------------------------------------------------------ */

bool skep_diloco_read(struct skep_diloco_row *ret, uint32_t *ret_count, struct skep_diag *reterr)
{
	static const char *const columns[] = {"parameters", "data_parallel", "m1", "m2", "m4", "m8", NULL};
	struct skep_table table;
	uint32_t column[6];
	bool ok = open_table(&table, DILOCO, columns, column, reterr);
	*ret_count = 0;
	while (ok && skep_table_next(&table) && *ret_count < SKEP_DILOCO_ROWS_MAX) {
		struct skep_diloco_row *row = &ret[(*ret_count)++];
		row->parameters = number(&table, column[0], "a number of parameters");
		row->data_parallel = number(&table, column[1], "a loss");
		for (uint32_t i = 0; i < SKEP_DILOCO_REPLICAS; i++)
			row->with[i] = number(&table, column[2 + i], "a loss");
	}
	skep_table_close(&table);
	return ok && !reterr->set;
}
