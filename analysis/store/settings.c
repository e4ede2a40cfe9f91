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

struct periods {
	double shortest, longest; /* inner steps of `rounds` rounds, of all stages */
	double rounds;
	bool own; /* each worker makes as many as it can; these are the mean */
};

static double read_steps(struct skep_reader *r, const struct skep_yaml_node *map, const char *key)
{
	return (double)skep_read_integer(r, map, key, 1, INT32_MAX, 1);
}

/* Of fragments there are no more than steps. */
static struct periods read_periods(struct skep_reader *r)
{
	struct periods p = {1, 1, 1, false};
	const struct skep_yaml_node *sync = skep_read_map(r, skep_yaml_root(r->yaml), "sync", false);
	const struct skep_yaml_node *list = skep_read_any(r, sync, "every");
	const char *method = skep_read_string(r, sync, "method", "step");
	if (strcmp(method, "step") == 0)
		return p;
	if (skep_yaml_kind(list) != SKEP_YAML_LIST) {
		p.own = strcmp(skep_read_string(r, sync, "every", "1"), "auto") == 0;
		p.shortest = p.longest = read_steps(r, sync, p.own ? "mean_inner_steps" : "every");
	}
	for (uint32_t i = 0; skep_yaml_kind(list) == SKEP_YAML_LIST && i < skep_yaml_length(list); i++) {
		double steps = read_steps(r, skep_yaml_item(list, i), NULL);
		p.shortest = i == 0 ? steps : fmin(p.shortest, steps);
		p.longest = i == 0 ? steps : fmax(p.longest, steps);
	}
	if (strcmp(method, "streaming") == 0)
		p.rounds = fmin(read_steps(r, sync, "fragments"), p.shortest);
	return p;
}

double skep_settings_every(const char *text, uint32_t *ret_warmup)
{
	struct skep_diag diag = {0};
	struct skep_reader r = {skep_yaml_parse("scenario", text, strlen(text), &diag), &diag};
	*ret_warmup = 0;
	if (!r.yaml)
		return 0;
	const struct periods p = read_periods(&r);
	const struct skep_yaml_node *train = skep_read_map(&r, skep_yaml_root(r.yaml), "train", false);
	const struct skep_yaml_node *schedule = skep_read_map(&r, train, "schedule", false);
	double warmup = (double)skep_read_integer(&r, schedule, "warmup", 0, INT32_MAX, 0);
	*ret_warmup = (uint32_t)(warmup * p.rounds / p.shortest);
	skep_yaml_destroy(r.yaml);
	return !p.own && p.longest <= p.shortest ? p.shortest / p.rounds : 0;
}

double skep_settings_steps(const char *text, double *ret_rounds)
{
	struct skep_diag diag = {0};
	struct skep_reader r = {skep_yaml_parse("scenario", text, strlen(text), &diag), &diag};
	struct periods p = {1, 1, 1, false};
	if (r.yaml)
		p = read_periods(&r);
	skep_yaml_destroy(r.yaml);
	*ret_rounds = p.rounds;
	return p.shortest;
}

int64_t skep_settings_microbatches(const char *text, double rounds, double each)
{
	double of_rounds, steps = skep_settings_steps(text, &of_rounds);
	return llround(floor(rounds * steps / of_rounds) * round(each * of_rounds / steps));
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
