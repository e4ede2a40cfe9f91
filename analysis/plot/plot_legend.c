/* SPDX-License-Identifier: Apache-2.0
 *
 * plot_legend.c - what pictures of several runs share: which runs, the title, the unit of the time axis, and what a run is
 * called: its number and world; its scenario and its seed if these differ in the picture; and the settings that tell it from the
 * other runs of its scenario there.
 */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "analysis/plot/plot_script.h"
#include "analysis/store/database.h"
#include "analysis/summary/compare.h"

#define SETTINGS_MAX 3u /* of a run */
#define VALUE_CHARS 20  /* of a setting */

const char *skep_plot_short_key(const char *key, char *ret, size_t size)
{
	const char *last = strrchr(key, '.'), *word = last ? last + 1 : key;
	bool plain = last && (strcmp(word, "method") == 0 || strcmp(word, "file") == 0 || strcmp(word, "name") == 0);
	if (plain) {
		const char *before = last;
		while (before > key && before[-1] != '.')
			before--;
		snprintf(ret, size, "%.*s", (int)(last - before), before);
	} else {
		snprintf(ret, size, "%s", word);
	}
	return ret;
}

bool skep_plot_add_setting(char *settings, size_t size, uint32_t *count, const struct skep_difference *d)
{
	char setting[192], key[96];
	const char *value = d->second[0] ? d->second : "not set";
	snprintf(setting, sizeof setting, ", %s %.*s%s", skep_plot_short_key(d->key, key, sizeof key), VALUE_CHARS,
		value, strlen(value) > VALUE_CHARS ? ".." : "");
	if (strstr(settings, setting) != NULL ||
		strcmp(d->key, "seed") == 0) /* a seed that differs has its own place */
		return true;
	bool room = (*count)++ < SETTINGS_MAX;
	size_t used = strlen(settings);
	snprintf(settings + used, size - used, "%s", room ? setting : ", ...");
	return room;
}

/* The settings that tell a run from the other runs of its scenario. */
static bool list_settings(struct skep_store *store, const struct skep_plot_run *run, uint32_t runs, uint32_t which,
	char *ret, size_t ret_size, struct skep_diag *reterr)
{
	uint32_t count = 0;
	ret[0] = '\0';
	for (uint32_t i = 0; i < runs; i++) {
		struct skep_differences d;
		if (strcmp(run[i].scenario, run[which].scenario) != 0)
			continue;
		if (!skep_settings_compare_runs(store, run[i].id, run[which].id, skep_settings_of_runs, &d, reterr))
			return false;
		for (size_t k = 0; k < d.count && k < SKEP_DIFFERENCES_SHOWN; k++)
			if (!skep_plot_add_setting(ret, ret_size, &count, &d.item[k]))
				return true;
	}
	return true;
}

bool skep_plot_one_scenario(const struct skep_plot_run *run, uint32_t runs)
{
	for (uint32_t i = 1; i < runs; i++)
		if (strcmp(run[i].scenario, run[0].scenario) != 0)
			return false;
	return true;
}

void skep_plot_name(
	const struct skep_plot_run *run, uint32_t runs, uint32_t which, const char *settings, char *ret, size_t size)
{
	char world[64];
	bool seeds = false, same = skep_plot_one_scenario(run, runs);
	skep_plot_world(&run[which], world, sizeof world);
	for (uint32_t i = 1; i < runs; i++)
		seeds = seeds || strcmp(run[i].seed, run[0].seed) != 0;
	snprintf(ret, size, "run %lld, %s%s%s%s%s%s", (long long)run[which].id, world, same ? "" : ", ",
		same ? "" : run[which].scenario, settings, seeds ? ", seed " : "", seeds ? run[which].seed : "");
}

static bool name_run(struct skep_store *store, const struct skep_plot_run *run, uint32_t runs, uint32_t which,
	char *ret, size_t ret_size, struct skep_diag *reterr)
{
	char settings[640];
	if (!list_settings(store, run, runs, which, settings, sizeof settings, reterr))
		return false;
	skep_plot_name(run, runs, which, settings, ret, ret_size);
	return true;
}

void skep_plot_title(FILE *script, const struct skep_plot_run *run, uint32_t runs, const char *what)
{
	char title[256];
	bool same = skep_plot_one_scenario(run, runs);
	snprintf(title, sizeof title, "%s%s%s", same ? run[0].scenario : "", same ? ": " : "", what);
	if (!same)
		title[0] = (char)toupper((unsigned char)title[0]);
	fprintf(script, "set title ");
	skep_script_string(script, title);
	fprintf(script, "\n");
}

bool skep_plot_heading(struct skep_store *store, const struct skep_plot_run *run, uint32_t runs, const char *what,
	FILE *script, struct skep_diag *reterr)
{
	char name[1024];
	skep_plot_title(script, run, runs, what);
	fprintf(script, "runs = %u\narray Title[%u]\n", runs, runs);
	for (uint32_t i = 0; i < runs; i++) {
		if (!name_run(store, run, runs, i, name, sizeof name, reterr))
			return false;
		fprintf(script, "Title[%u] = ", i + 1);
		skep_script_string(script, name);
		fprintf(script, "\n");
	}
	return true;
}

bool skep_plot_kinship(struct skep_store *store, const struct skep_plot_run *a, const struct skep_plot_run *b,
	enum skep_plot_kin *ret, struct skep_diag *reterr)
{
	struct skep_differences d;
	if (!skep_settings_compare_runs(store, a->id, b->id, skep_settings_of_runs, &d, reterr))
		return false;
	bool same = d.count <= SKEP_DIFFERENCES_SHOWN, world = strcmp(a->world, b->world) == 0;
	for (size_t i = 0; same && i < d.count; i++)
		same = strcmp(d.item[i].key, "seed") == 0;
	if (strcmp(a->world, "real") == 0)
		world = world && strcmp(a->device, b->device) == 0 && a->pace == b->pace && a->shape == b->shape;
	*ret = !same ? SKEP_PLOT_OTHER : world ? SKEP_PLOT_ALIKE : SKEP_PLOT_SAME_SETTINGS;
	return true;
}

void skep_plot_world(const struct skep_plot_run *run, char *ret, size_t size)
{
	if (strcmp(run->world, "real") == 0)
		snprintf(ret, size, "real, %s%s%s", run->device, run->pace ? ", paced" : "",
			run->shape ? ", shaped" : "");
	else
		snprintf(ret, size, "%s", strcmp(run->arithmetic, "law") == 0 ? "by a law" : "simulated");
}

struct skep_plot_unit skep_plot_unit(double end_s)
{
	static const struct {
		double least_s;
		struct skep_plot_unit unit;
	} scale[] = {{7200, {1 / 3600.0, "h"}}, {300, {1 / 60.0, "min"}}, {1, {1, "s"}}, {0, {1e3, "ms"}}};
	size_t i = 0;
	while (i + 1 < sizeof scale / sizeof scale[0] && end_s < scale[i].least_s)
		i++;
	return scale[i].unit;
}

double skep_plot_time_axis(FILE *script, double end_s, double room)
{
	struct skep_plot_unit unit = skep_plot_unit(end_s);
	fprintf(script, "set xlabel 'time since the start of the run (%s)'\nset xrange [0:%.9g]\n", unit.name,
		room * unit.per_s * end_s);
	return unit.per_s;
}

double skep_plot_step(double least)
{
	double power = pow(10, floor(log10(least)));
	return power * (least <= power ? 1 : least <= 2 * power ? 2 : least <= 5 * power ? 5 : 10);
}

void skep_plot_tics(FILE *script, char axis, double low, double high)
{
	static const int times[] = {1, 2, 3, 5};
	const char *comma = "";
	if (high > 50 * low)
		return;
	fprintf(script, "set %ctics (", axis);
	double step = skep_plot_step((high - low) / 8);
	for (double at = ceil(low / step) * step; high < 6 * low && at <= high; at += step, comma = ", ")
		fprintf(script, "%s'%g' %g", comma, at, at);
	for (int power = (int)floor(log10(low)); high >= 6 * low && power <= (int)ceil(log10(high)); power++)
		for (size_t i = 0; i < sizeof times / sizeof times[0]; i++, comma = ", ")
			fprintf(script, "%s'%g' %g", comma, times[i] * pow(10, power), times[i] * pow(10, power));
	fprintf(script, ")\n");
}

double skep_plot_token_axis(FILE *script, double most)
{
	static const struct {
		double least, per;
		const char *name;
	} unit[] = {{1e10, 1e-9, "billion "}, {1e7, 1e-6, "million "}, {1e4, 1e-3, "thousand "}, {0, 1, ""}};
	size_t i = 0;
	while (most < unit[i].least)
		i++;
	fprintf(script, "set xlabel '%stokens trained on (samples, of models without tokens)'\n", unit[i].name);
	return unit[i].per;
}

/* ---- which runs ------------------------------------------------------------------------------------------------- */

/* Where the newest scenario has finished runs of both worlds: the pair that `skep compare` takes, so that pictures and
 * tables speak of the same two. */
static bool compared_pair(struct skep_store *store, const char *has, int64_t ret_run[2], struct skep_diag *reterr)
{
	char sql[768];
	struct skep_diag none = skep_diag_beside(reterr);
	snprintf(sql, sizeof sql,
		"SELECT count(DISTINCT world) = 2 AND sum(id IN (?1, ?2)) = 2 FROM runs WHERE status = 'done' AND %s AND"
		" (id IN (?1, ?2) OR scenario = (SELECT scenario FROM runs WHERE %s ORDER BY id DESC LIMIT 1))"
		" AND (SELECT count(DISTINCT world) FROM runs WHERE status = 'done' AND scenario = (SELECT scenario FROM runs"
		" WHERE %s ORDER BY id DESC LIMIT 1)) = 2",
		has, has, has);
	if (!skep_compare_choose(store, &ret_run[0], &ret_run[1], &none))
		return false;
	sqlite3_stmt *row = skep_store_query(store, sql, ret_run[0], ret_run[1], reterr);
	bool pair = row != NULL && skep_store_row(store, row) && sqlite3_column_int(row, 0);
	sqlite3_finalize(row);
	return pair;
}

/* Up to `most` runs that the statement names. None: why is `none`, unless it is another reason. */
static bool list_runs(struct skep_store *store, const char *sql, int64_t number, const char *none, int64_t *ret_run,
	uint32_t most, uint32_t *ret_runs, struct skep_diag *reterr)
{
	sqlite3_stmt *row = skep_store_query(store, sql, number, 0, reterr);
	*ret_runs = 0;
	while (row != NULL && *ret_runs < most && skep_store_row(store, row))
		ret_run[(*ret_runs)++] = sqlite3_column_int64(row, 0);
	if (row != NULL && *ret_runs == 0)
		skep_fail(reterr, "%s", none);
	sqlite3_finalize(row);
	return *ret_runs > 0;
}

/* The newest run, and beside it the newest one of the same text in the other world. */
static bool newest_runs(struct skep_store *store, const char *has, const char *none, int64_t *ret_run,
	uint32_t *ret_runs, struct skep_diag *reterr)
{
	char sql[512];
	snprintf(sql, sizeof sql,
		"WITH shown AS (SELECT id, text, world FROM runs WHERE %s),"
		" newest AS (SELECT text FROM shown ORDER BY id DESC LIMIT 1)"
		" SELECT max(id) FROM shown JOIN newest USING (text) WHERE ?1 = 0"
		" GROUP BY world ORDER BY world DESC",
		has);
	*ret_runs = 2;
	if (compared_pair(store, has, ret_run, reterr))
		return true;
	return list_runs(store, sql, 0, none, ret_run, SKEP_PLOT_RUNS_MAX, ret_runs, reterr);
}

bool skep_plot_scenario_runs(struct skep_store *store, const char *has, const char *none, bool one_a_world,
	int64_t *ret_run, uint32_t most, uint32_t *ret_runs, struct skep_diag *reterr)
{
	char sql[640];
	snprintf(sql, sizeof sql,
		"WITH shown AS (SELECT id, scenario, world FROM runs WHERE %s),"
		" newest AS (SELECT scenario FROM shown ORDER BY id DESC LIMIT 1),"
		" its AS (SELECT id, world FROM shown JOIN newest USING (scenario))"
		" SELECT id FROM its WHERE ?1 = 0 OR (SELECT count(DISTINCT world) FROM its) = 1"
		" OR id IN (SELECT max(id) FROM its GROUP BY world) ORDER BY ?1 * (world = 'real'), id",
		has);
	*ret_runs = 2;
	if (one_a_world && most >= 2 && compared_pair(store, has, ret_run, reterr))
		return true;
	return list_runs(store, sql, one_a_world, none, ret_run, most, ret_runs, reterr);
}

bool skep_plot_chosen_runs(struct skep_store *store, const int64_t *run, uint32_t runs, const char *has,
	const char *none, struct skep_plot_run ret[SKEP_PLOT_RUNS_MAX], uint32_t *ret_runs, struct skep_diag *reterr)
{
	int64_t newest[SKEP_PLOT_RUNS_MAX];
	if (runs > SKEP_PLOT_RUNS_MAX)
		return skep_fail(reterr, "at most %u runs fit into one picture, not %u", SKEP_PLOT_RUNS_MAX, runs);
	if (runs == 0) {
		run = newest;
		if (!newest_runs(store, has, none, newest, &runs, reterr))
			return false;
	}
	*ret_runs = runs;
	for (uint32_t i = 0; i < runs; i++)
		if (!skep_plot_read_run(store, run[i], &ret[i], reterr))
			return false;
	return true;
}
