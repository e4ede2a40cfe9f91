/* SPDX-License-Identifier: Apache-2.0
 *
 * traced.c - see groups.h. Keeps true: with `like` each seed has a trace of its own, the same on every machine that reads the
 * scenario with this seed; what only a recording can have (types, copies of its names) is refused beside it.
 */
#include "scenarios/read/groups.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/layout.h"

#define DAY_S 86400.0
#define TRACE_S_MAX (10 * 365.25 * DAY_S)

static skep_time read_time(
	struct skep_reader *r, const struct skep_yaml_node *map, const char *key, double most_s, double usual_s)
{
	return (skep_time)(1e9 * skep_read_quantity(r, map, key, SKEP_TIME, 0, most_s, usual_s));
}

static void find_file(struct skep_reader *r, const struct skep_yaml_node *map, const char *key, struct skep_scenario *s)
{
	const char *name = skep_read_string(r, map, key, NULL);
	if (!r->diag->set && !skep_file_find(s->path, name, s->trace_path, sizeof s->trace_path))
		skep_reader_fail_value(r, map, key,
			"cluster.trace.%s: no file `%.200s` (looked in the working directory, beside %.100s and in the "
			"folders above it)",
			key, name, s->path);
}

/* The trace's part of the options; what has no meaning for this kind of trace is refused. */
static void read_options(
	struct skep_reader *r, const struct skep_yaml_node *map, bool drawn, struct skep_churn_options *ret)
{
	static const char *const machines[] = {"lowest", "random", NULL}, *const recorded[] = {"any_gpu", "copies"};
	for (uint32_t i = 0; drawn && i < 2; i++)
		if (skep_read_has(r, map, recorded[i]))
			skep_reader_fail(r, map, recorded[i],
				"cluster.trace.%s: is of recordings; a trace that is drawn has each machine of the "
				"topology once, whatever its type: leave it out",
				recorded[i]);
	ret->scale = skep_read_number(r, map, "scale", 1e-6, 1e6, 1);
	ret->start_ns = read_time(r, map, "start", TRACE_S_MAX, 0);
	if (skep_read_has(r, map, "end"))
		ret->end_ns = read_time(r, map, "end", TRACE_S_MAX, NAN);
	ret->copies = drawn ? 1 : skep_read_number(r, map, "copies", 0, 1e6, 1);
	ret->jitter_ns = read_time(r, map, "jitter", DAY_S, 0);
	ret->any_gpu = !drawn && skep_read_bool(r, map, "any_gpu", false);
	ret->random_machine = skep_read_choice(r, map, "machine", machines, 0) == 1;
}

static void read_churn(struct skep_reader *r, const struct skep_churn_options *o, bool drawn, skep_time duration_ns,
	struct skep_scenario *s)
{
	if (drawn)
		s->has_trace = skep_churn_draw(s->trace_path, duration_ns, &s->topology, o, &s->churn, r->diag);
	else
		s->has_trace = skep_churn_read(s->trace_path, &s->topology, o, &s->churn, r->diag);
}

void skep_traced_read(struct skep_reader *r, const struct skep_yaml_node *cluster, struct skep_scenario *s)
{
	struct skep_churn_options o = SKEP_CHURN_DEFAULTS;
	skep_time duration_ns = 0;
	const struct skep_yaml_node *map = skep_read_map(r, cluster, "trace", false);
	if (!map)
		return;
	bool drawn = skep_read_has(r, map, "like");
	if (drawn && skep_read_has(r, map, "file"))
		skep_reader_fail(r, map, "like",
			"cluster.trace.like: draws a trace, and `file` names one to be played: leave out either");
	find_file(r, map, drawn ? "like" : "file", s);
	if (skep_read_has(r, map, "duration")) {
		duration_ns = (skep_time)(1e9 * skep_read_quantity(r, map, "duration", SKEP_TIME, 1, 1e9, NAN));
		if (!drawn)
			skep_reader_fail(r, map, "duration",
				"cluster.trace.duration: is of a trace that is drawn (`like`); of a recording `end` is what "
				"is played");
	}
	read_options(r, map, drawn, &o);
	s->notice_ns = read_time(r, map, "preempt_notice", DAY_S, 0);
	s->detection_delay_ns = read_time(r, map, "detection_delay", DAY_S, 0);
	o.seed = o.trace.seed = s->seed;
	skep_reader_close_map(r, map);
	if (!r->diag->set)
		read_churn(r, &o, drawn, duration_ns, s);
	if (!r->diag->set && s->churn.presents < s->plan.stages)
		skep_reader_fail(r, map, drawn ? "start" : "file",
			"cluster.trace: %u workers are there at the start, %u stages need one each; start later in the "
			"trace (start: ...) or take more copies",
			s->churn.presents, s->plan.stages);
	if (!s->has_trace)
		s->trace_path[0] = '\0';
}

/* ---- for `skep check` ------------------------------------------------------------------------------------------- */

static void print_law(const struct skep_lifetime_fit *law, FILE *out)
{
	char mean[SKEP_TEXT_BYTES];
	if (!(law->scale_s > 0))
		return;
	fprintf(out, ", drawn by the seed from its law: %s lives of %s on the mean",
		skep_lifetime_distribution_names[law->law], skep_time_text(skep_lifetime_mean_s(law), mean));
	if (law->law == SKEP_LIFETIME_WEIBULL)
		fprintf(out, ", shape %.3g", law->shape);
}

void skep_traced_print(const struct skep_scenario *s, FILE *out)
{
	if (!s->has_trace)
		return;
	fprintf(out, "  churn     %s%s", s->churn.drawn_from.scale_s > 0 ? "like " : "", s->trace_path);
	print_law(&s->churn.drawn_from, out);
	fprintf(out, ": %" PRIu64 " loss%s, %" PRIu64 " join%s\n", s->churn.leaves, s->churn.leaves == 1 ? "" : "es",
		s->churn.joins, skep_plural(s->churn.joins));
	if (s->churn.unplaced > 0)
		fprintf(out, "            left out: %" PRIu64 " join%s of the trace found no free machine of %s type\n",
			s->churn.unplaced, skep_plural(s->churn.unplaced), s->churn.unplaced == 1 ? "its" : "their");
}

static void add_or_null(cJSON *root, const char *key, const char *text)
{
	if (text)
		cJSON_AddStringToObject(root, key, text);
	else
		cJSON_AddNullToObject(root, key);
}

void skep_traced_add_json(const struct skep_scenario *s, cJSON *root)
{
	const struct skep_lifetime_fit *law = &s->churn.drawn_from;
	bool drawn = s->has_trace && law->scale_s > 0;
	add_or_null(root, "trace", s->has_trace ? s->trace_path : NULL);
	add_or_null(root, "trace_law", drawn ? skep_lifetime_distribution_names[law->law] : NULL);
	cJSON_AddNumberToObject(root, "trace_left_out", (double)s->churn.unplaced);
	if (drawn)
		cJSON_AddNumberToObject(root, "trace_mean_life_s", skep_lifetime_mean_s(law));
	else
		cJSON_AddNullToObject(root, "trace_mean_life_s");
}
