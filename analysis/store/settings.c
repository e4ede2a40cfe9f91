/* SPDX-License-Identifier: Apache-2.0
 *
 * settings.c - see settings.h.
 */
#include "analysis/store/settings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/store/database.h"
#include "base/reader.h"

bool skep_settings_of_runs(const char *key)
{
	return strncmp(key, "plan", 4) != 0 || (key[4] != '\0' && key[4] != '.');
}

bool skep_settings_compare_runs(struct skep_store *store, int64_t first, int64_t second, skep_settings_counts *counts,
	struct skep_differences *ret, struct skep_diag *reterr)
{
	static const char sql[] = "SELECT a.text, b.text FROM runs AS a JOIN runs AS b WHERE a.id = ?1 AND b.id = ?2";
	sqlite3_stmt *row = skep_store_query(store, sql, first, second, reterr);
	bool found = row != NULL && skep_store_row(store, row);
	if (found)
		skep_settings_compare(skep_column_text(row, 0), skep_column_text(row, 1), counts, ret);
	else if (row != NULL)
		skep_fail(reterr, "%s", sqlite3_errmsg(skep_store_database(store)));
	sqlite3_finalize(row);
	return found;
}

/* Of all stages: the shortest, and the longest. 0: each worker has its own. */
static void read_periods(struct skep_reader *r, double *ret_shortest, double *ret_longest)
{
	const struct skep_yaml_node *sync = skep_read_map(r, skep_yaml_root(r->yaml), "sync", false);
	const struct skep_yaml_node *list = skep_read_any(r, sync, "every");
	bool each_step = strcmp(skep_read_string(r, sync, "method", "step"), "step") == 0;
	*ret_shortest = *ret_longest = 1;
	if (each_step)
		return;
	if (skep_yaml_kind(list) != SKEP_YAML_LIST)
		*ret_shortest = *ret_longest = strtod(skep_read_string(r, sync, "every", "1"), NULL);
	for (uint32_t i = 0; skep_yaml_kind(list) == SKEP_YAML_LIST && i < skep_yaml_length(list); i++) {
		double steps = (double)skep_read_integer(r, skep_yaml_item(list, i), NULL, 1, INT32_MAX, INT64_MIN);
		*ret_shortest = i == 0 ? steps : fmin(*ret_shortest, steps);
		*ret_longest = i == 0 ? steps : fmax(*ret_longest, steps);
	}
}

double skep_settings_every(const char *text, uint32_t *ret_warmup)
{
	struct skep_diag diag = {0};
	struct skep_reader r = {skep_yaml_parse("scenario", text, strlen(text), &diag), &diag};
	double steps, longest;
	*ret_warmup = 0;
	if (!r.yaml)
		return 0;
	read_periods(&r, &steps, &longest);
	const struct skep_yaml_node *train = skep_read_map(&r, skep_yaml_root(r.yaml), "train", false);
	const struct skep_yaml_node *schedule = skep_read_map(&r, train, "schedule", false);
	double warmup = (double)skep_read_integer(&r, schedule, "warmup", 0, INT32_MAX, 0);
	*ret_warmup = (uint32_t)(warmup / fmax(steps, 1));
	skep_yaml_destroy(r.yaml);
	return steps >= 1 && longest <= steps ? steps : 0;
}

double skep_settings_round_steps(const char *text)
{
	struct skep_diag diag = {0};
	struct skep_reader r = {skep_yaml_parse("scenario", text, strlen(text), &diag), &diag};
	double steps = 1, longest;
	if (r.yaml)
		read_periods(&r, &steps, &longest);
	skep_yaml_destroy(r.yaml);
	return steps >= 1 ? steps : 1;
}

double skep_settings_compute_scale(const char *text)
{
	struct skep_diag diag = {0};
	struct skep_reader r = {skep_yaml_parse("scenario", text, strlen(text), &diag), &diag};
	if (!r.yaml)
		return 1;
	const struct skep_yaml_node *cluster = skep_read_map(&r, skep_yaml_root(r.yaml), "cluster", false);
	double scale = skep_read_number(&r, cluster, "compute_scale", 1e-6, 1e9, 1);
	skep_yaml_destroy(r.yaml);
	return scale;
}
