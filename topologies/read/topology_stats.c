/* SPDX-License-Identifier: Apache-2.0
 *
 * topology_stats.c - see topology_stats.h. While there are at most PAIRS_MAX ordered pairs all of them are looked at,
 * else as many that are drawn with a fixed seed: 4096 peers have 17 million pairs.
 */
#include "topologies/read/topology_stats.h"

#include <gsl/gsl_sort.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "core/random.h"
#include "topologies/read/path.h"

#define PAIRS_MAX 1000000u
#define LISTED 8u

/* ---- quantiles --------------------------------------------------------------------------------------------------- */

/* The nearest rank. */
static void quantiles(double *value, size_t count, double *ret)
{
	static const double part[SKEP_QUANTILES] = {0, 0.1, 0.5, 0.9, 1};
	gsl_sort(value, 1, count);
	for (int q = 0; q < SKEP_QUANTILES; q++)
		ret[q] = count > 0 ? value[(size_t)(part[q] * (double)(count - 1) + 0.5)] : NAN;
}

bool skep_topology_stats_make(const struct skep_topology *t, struct skep_topology_stats *ret)
{
	uint64_t n = t->machines, random = skep_mix(1);
	*ret = (struct skep_topology_stats){.pairs = n * (n - 1)};
	ret->drawn = ret->pairs > PAIRS_MAX;
	ret->looked_at = ret->drawn ? PAIRS_MAX : ret->pairs;
	double *bandwidth = malloc((ret->looked_at + 1) * sizeof *bandwidth);
	double *latency = malloc((ret->looked_at + 1) * sizeof *latency);
	for (uint64_t i = 0; bandwidth && latency && i < ret->looked_at; i++) {
		uint32_t from = ret->drawn ? skep_random_below(&random, (uint32_t)n) : (uint32_t)(i / (n - 1));
		uint32_t to = ret->drawn ? skep_random_below(&random, (uint32_t)n - 1) : (uint32_t)(i % (n - 1));
		to += to >= from; /* a peer has no link to itself */
		bandwidth[i] = skep_path_lone_Bps(t, from, to);
		latency[i] = skep_topology_pair(t, from, to).latency_s;
		double back = skep_path_lone_Bps(t, to, from);
		ret->lopsided += fmax(bandwidth[i], back) > 1.1 * fmin(bandwidth[i], back);
	}
	if (bandwidth && latency) {
		quantiles(bandwidth, ret->looked_at, ret->bandwidth_Bps);
		quantiles(latency, ret->looked_at, ret->latency_s);
	}
	bool ok = bandwidth && latency;
	free(bandwidth);
	free(latency);
	return ok;
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

static uint32_t *count_by(const struct skep_topology *t, bool by_gpu)
{
	uint32_t *count = calloc((by_gpu ? t->gpus : t->places) + 1, sizeof *count);
	for (uint32_t i = 0; count && i < t->machines; i++)
		count[by_gpu ? t->machine[i].gpu : t->machine[i].place]++;
	return count;
}

/* The largest first. */
static void print_counts(const struct skep_topology *t, bool by_gpu, FILE *out)
{
	uint32_t kinds = by_gpu ? t->gpus : t->places, *count = count_by(t, by_gpu), shown = 0;
	for (; count && shown < LISTED; shown++) {
		uint32_t most = 0;
		for (uint32_t i = 1; i < kinds; i++)
			most = count[i] > count[most] ? i : most;
		if (count[most] == 0)
			break;
		fprintf(out, "%s%" PRIu32 " %s", shown ? ", " : "", count[most],
			by_gpu ? t->gpu[most].name : t->place_name[most]);
		count[most] = 0;
	}
	fprintf(out, "%s\n", kinds > LISTED ? ", ..." : "");
	free(count);
}

struct unit {
	const char *name;
	double per_base;
};

static const struct unit rates[] = {{"Tbit/s", 8e-12}, {"Gbit/s", 8e-9}, {"Mbit/s", 8e-6}, {"kbit/s", 8e-3}, {NULL, 0}};
static const struct unit times[] = {{"s", 1}, {"ms", 1e3}, {"us", 1e6}, {NULL, 0}};

/* In the unit that suits the median: four digits, and no exponent of large numbers. */
static void print_row(const char *name, const double *value, const struct unit *unit, FILE *out)
{
	while (unit[1].name &&
		(isinf(value[SKEP_QUANTILES / 2]) || value[SKEP_QUANTILES / 2] * unit->per_base < 0.99995))
		unit++;
	double scale = unit->per_base;
	fprintf(out, "  %s, %-*s", name, (int)(15 - strlen(name)), unit->name);
	for (int q = 0; q < SKEP_QUANTILES; q++) {
		if (isinf(value[q]))
			fprintf(out, " %10s", "no limit");
		else
			fprintf(out, value[q] * scale >= 9999.5 ? " %10.0f" : " %10.4g", value[q] * scale);
	}
	putc('\n', out);
}

void skep_topology_stats_print(const struct skep_topology *t, const struct skep_topology_stats *s, FILE *out)
{
	fprintf(out, "%s\n  source    %s\n", t->name, t->source);
	fprintf(out, "  workers   %" PRIu32 ": ", t->machines);
	print_counts(t, true, out);
	fprintf(out, "  places    %" PRIu32 "%s", t->places, t->places == t->machines ? ", a worker at each\n" : ": ");
	if (t->places != t->machines)
		print_counts(t, false, out);
	fprintf(out, "  directory %s\n\n", t->place_name[t->machine[t->machines].place]);
	if (s->pairs == 0) {
		fputs("  one worker, no pairs\n", out);
		return;
	}
	fprintf(out, "  %-17s %10s %10s %10s %10s %10s\n", "pairs of workers", "least", "p10", "median", "p90", "most");
	print_row("bandwidth", s->bandwidth_Bps, rates, out);
	print_row("latency", s->latency_s, times, out);
	fprintf(out,
		"  %s%" PRIu64
		" ordered pairs, each alone in the network; %.3g %% differ by over 10 %% from their reverse\n",
		s->drawn ? "a sample of " : "", s->looked_at, 100.0 * (double)s->lopsided / (double)s->looked_at);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static void add_quantiles(cJSON *root, const char *key, const double *value)
{
	static const char *const name[SKEP_QUANTILES] = {"least", "p10", "median", "p90", "most"};
	cJSON *object = cJSON_AddObjectToObject(root, key);
	for (int q = 0; q < SKEP_QUANTILES; q++)
		skep_json_add_number(object, name[q], value[q]);
}

static void add_counts(cJSON *root, const char *key, const struct skep_topology *t, bool by_gpu)
{
	uint32_t *count = count_by(t, by_gpu);
	cJSON *object = cJSON_AddObjectToObject(root, key);
	for (uint32_t i = 0; count && i < (by_gpu ? t->gpus : t->places); i++)
		cJSON_AddNumberToObject(object, by_gpu ? t->gpu[i].name : t->place_name[i], count[i]);
	free(count);
}

void skep_topology_stats_print_json(const struct skep_topology *t, const struct skep_topology_stats *s, FILE *out)
{
	cJSON *root = cJSON_CreateObject();
	cJSON_AddStringToObject(root, "topology", t->path);
	cJSON_AddStringToObject(root, "name", t->name);
	cJSON_AddStringToObject(root, "source", t->source);
	cJSON_AddNumberToObject(root, "workers", t->machines);
	cJSON_AddNumberToObject(root, "places", t->places);
	cJSON_AddStringToObject(root, "directory", t->place_name[t->machine[t->machines].place]);
	add_counts(root, "workers_by_gpu", t, true);
	add_counts(root, "workers_by_place", t, false);
	cJSON_AddNumberToObject(root, "pairs", (double)s->pairs);
	cJSON_AddNumberToObject(root, "pairs_looked_at", (double)s->looked_at);
	cJSON_AddNumberToObject(root, "pairs_lopsided", (double)s->lopsided);
	add_quantiles(root, "bandwidth_bytes_per_s", s->bandwidth_Bps);
	add_quantiles(root, "latency_s", s->latency_s);
	skep_json_print(root, out);
}
