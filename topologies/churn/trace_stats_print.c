/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_stats_print.c - the statistics of a trace as a table and as one JSON object.
 */
#include "topologies/churn/trace_stats.h"

#include <math.h>

#include "base/json.h"

/* "59 min", "2.1 d": two or three digits and the unit that suits. */
static const char *span(double seconds, char *ret, size_t size)
{
	if (isnan(seconds))
		snprintf(ret, size, "-");
	else if (seconds < 120)
		snprintf(ret, size, "%.3g s", seconds);
	else if (seconds < 2 * 3600)
		snprintf(ret, size, "%.3g min", seconds / 60);
	else if (seconds < 2 * 86400)
		snprintf(ret, size, "%.3g h", seconds / 3600);
	else
		snprintf(ret, size, "%.4g d", seconds / 86400);
	return ret;
}

static void print_bursts(const struct skep_bursts *bursts, const char *label, FILE *out)
{
	uint32_t shown = 0;
	fprintf(out, "%s", label);
	if (bursts->bursts == 0)
		fprintf(out, "none");
	else
		fprintf(out, "%llu, mean %.2f, largest %u:", (unsigned long long)bursts->bursts,
			(double)bursts->losses / (double)bursts->bursts, bursts->most);
	for (uint32_t i = 0; i < bursts->most && shown < 12; i++)
		if (bursts->count[i] > 0) {
			fprintf(out, " %llu x %u", (unsigned long long)bursts->count[i], i + 1);
			if (++shown == 12 && i + 1 < bursts->most)
				fprintf(out, " ...");
		}
	fputc('\n', out);
}

static void print_fit(const struct skep_lifetime_fit *fit, bool best, FILE *out)
{
	char scale[32], error[32], mean[32];
	span(fit->scale_s, scale, sizeof scale);
	span(fit->scale_error_s, error, sizeof error);
	span(skep_lifetime_mean_s(fit), mean, sizeof mean);
	fprintf(out, "  %-18s", skep_lifetime_distribution_names[fit->law]);
	if (fit->law == SKEP_LIFETIME_WEIBULL)
		fprintf(out, "shape %.3f +- %.3f, ", fit->shape, fit->shape_error);
	double aic = 2 * (fit->law == SKEP_LIFETIME_WEIBULL ? 2 : 1) - 2 * fit->log_likelihood;
	fprintf(out, "scale %s +- %s, mean %s, log likelihood %.1f, AIC %.1f%s\n", scale, error, mean,
		fit->log_likelihood, aic, best ? " (smaller: better)" : "");
}

void skep_trace_stats_print(const struct skep_trace_stats *stats, const char *path, FILE *out)
{
	const struct skep_trace_report *r = &stats->report;
	char a[32], b[32], c[32], d[32];
	fprintf(out, "%s: %s format, %s\n", path, skep_trace_format_names[r->format],
		span(stats->duration_s, a, sizeof a));
	fprintf(out, "  alive             mean %.1f, most %u, %u at the start, %u at the end\n", stats->mean_alive,
		r->most, stats->at_start, r->live);
	fprintf(out, "  joins, losses     %llu, %llu\n", (unsigned long long)r->joins, (unsigned long long)r->leaves);
	fprintf(out, "  refused           %llu", (unsigned long long)r->refused);
	if (!isnan(stats->refusal_rate))
		fprintf(out, ", %.1f %% of the requests after the start", 100 * stats->refusal_rate);
	fprintf(out, "\n  ended lives       %llu: mean %s, p10 %s, median %s, p90 %s\n",
		(unsigned long long)stats->lives, span(stats->mean_s, a, sizeof a), span(stats->p10_s, b, sizeof b),
		span(stats->median_s, c, sizeof c), span(stats->p90_s, d, sizeof d));
	fprintf(out,
		"                    %llu of them from the start: possibly longer; not in it: %llu censored, alive at "
		"the end\n",
		(unsigned long long)stats->early, (unsigned long long)stats->censored);
	print_bursts(&stats->instant, "  losses at once    ", out);
	print_bursts(&stats->window, "  within a minute   ", out);
	if (!stats->fitted)
		fprintf(out, "  no life has ended: no law fitted\n");
	else {
		print_fit(&stats->exponential, skep_trace_stats_best(stats) == &stats->exponential, out);
		print_fit(&stats->weibull, skep_trace_stats_best(stats) == &stats->weibull, out);
	}
}

/* ---- JSON ------------------------------------------------------------------------------------------------------------ */

/* [[size, how many], ...] */
static void add_bursts(cJSON *root, const char *key, const struct skep_bursts *bursts)
{
	cJSON *list = cJSON_AddArrayToObject(root, key);
	for (uint32_t i = 0; i < bursts->most; i++)
		if (bursts->count[i] > 0)
			cJSON_AddItemToArray(
				list, cJSON_CreateDoubleArray((double[]){i + 1, (double)bursts->count[i]}, 2));
}

static void add_fit(cJSON *root, const struct skep_lifetime_fit *fit, enum skep_lifetime_distribution law, bool fitted)
{
	const char *key = skep_lifetime_distribution_names[law];
	cJSON *object = skep_json_add_object(root, key, fitted);
	if (object == NULL)
		return;
	skep_json_add_number(object, "shape", fit->shape);
	skep_json_add_number(object, "shape_error", fit->shape_error);
	skep_json_add_number(object, "scale_s", fit->scale_s);
	skep_json_add_number(object, "scale_error_s", fit->scale_error_s);
	skep_json_add_number(object, "mean_s", skep_lifetime_mean_s(fit));
	skep_json_add_number(object, "log_likelihood", fit->log_likelihood);
}

void skep_trace_stats_print_json(const struct skep_trace_stats *stats, const char *path, FILE *out)
{
	static const char *const repair[SKEP_REPAIRS] = {
		"repaired_backwards", "repaired_joins", "repaired_leaves", "repaired_unknown"};
	const struct skep_trace_report *r = &stats->report;
	cJSON *root = cJSON_CreateObject();
	cJSON_AddStringToObject(root, "trace", path);
	cJSON_AddStringToObject(root, "format", skep_trace_format_names[r->format]);
	skep_json_add_number(root, "duration_s", stats->duration_s);
	skep_json_add_number(root, "mean_alive", stats->mean_alive);
	skep_json_add_count(root, "most_alive", r->most);
	skep_json_add_count(root, "alive_at_start", stats->at_start);
	skep_json_add_count(root, "alive_at_end", r->live);
	skep_json_add_count(root, "joins", r->joins);
	skep_json_add_count(root, "losses", r->leaves);
	skep_json_add_count(root, "refused", r->refused);
	skep_json_add_number(root, "refusal_rate", stats->refusal_rate);
	skep_json_add_count(root, "lives", stats->lives);
	skep_json_add_count(root, "lives_from_start", stats->early);
	skep_json_add_count(root, "lives_censored", stats->censored);
	skep_json_add_number(root, "life_mean_s", stats->mean_s);
	skep_json_add_number(root, "life_p10_s", stats->p10_s);
	skep_json_add_number(root, "life_median_s", stats->median_s);
	skep_json_add_number(root, "life_p90_s", stats->p90_s);
	add_bursts(root, "bursts_instant", &stats->instant);
	add_bursts(root, "bursts_minute", &stats->window);
	add_fit(root, &stats->exponential, SKEP_LIFETIME_EXPONENTIAL, stats->fitted);
	add_fit(root, &stats->weibull, SKEP_LIFETIME_WEIBULL, stats->fitted);
	for (int i = 0; i < SKEP_REPAIRS; i++)
		skep_json_add_count(root, repair[i], r->repairs[i]);
	skep_json_print(root, out);
}
