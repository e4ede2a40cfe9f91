/* SPDX-License-Identifier: Apache-2.0
 *
 * time_parts.c - see time_parts.h. All comes from columns of `runs`, `rounds` and `incarnations`, and from `activity`, which
 * has all operations of a run however long it was.
 */
#include "analysis/summary/time_parts.h"

#include <math.h>
#include <string.h>

#include "analysis/store/database.h"
#include "base/json.h"
#include "base/layout.h"

#define ALIKE 0.01 /* runs that differ by less are alike */

static const char *const words[SKEP_TIME_PARTS] = {
	"passes", "steps", "reductions", "joins", "start and end", "waiting"};

static const char *const hints[SKEP_TIME_PARTS] = {
	"passes on these devices: `skep calibrate` takes them from a real run",
	"optimizer steps on these devices: `skep calibrate` takes them from a real run",
	"links within a stage while all send: `skep calibrate`, `skep probe`",
	"when workers come and go (cluster.trace), and the links of their downloads",
	"nothing of the cluster: processes start and end; take a longer run",
	"links between stages (`skep calibrate`, `skep probe`); see `skep plot timeline`",
};

static const char unshaped[] =
	"the same by `skep run --shape`: messages took the links of the machines that it ran on, and not the topology's; where "
	"these are the topology's machines, their links (`skep calibrate`, `skep probe`)";

static void add_up(struct skep_time_parts *p, sqlite3_stmt *row)
{
	double rounds = skep_column_real(row, 1), workers = skep_column_real(row, 2);
	double passes_s = skep_column_real(row, 3), reduction_s = skep_column_real(row, 4);
	double present_s = skep_column_real(row, 5), state_s = skep_column_real(row, 8),
	       rounds_s = skep_column_real(row, 9);
	p->own_links = sqlite3_column_int(row, 10);
	p->time_s = skep_column_real(row, 0);
	p->part_s[SKEP_TIME_PART_PASSES] = skep_column_real(row, 6) / workers;
	p->part_s[SKEP_TIME_PART_STEPS] = skep_column_real(row, 7) / workers;
	double rest_s = rounds_s / rounds - (isnan(passes_s) ? 0 : passes_s);
	double alone_s = isnan(reduction_s) ? 0 : fmin(reduction_s, rest_s);
	p->part_s[SKEP_TIME_PART_REDUCTIONS] = fmax(0, alone_s) * rounds;
	p->part_s[SKEP_TIME_PART_JOINS] = fmax(0, rounds_s - present_s / workers) + state_s / workers;
	p->part_s[SKEP_TIME_PART_ENDS] = fmax(0, p->time_s - rounds_s);
	double sum_s = 0;
	for (int i = 0; i < SKEP_TIME_PART_WAITING; i++)
		sum_s += p->part_s[i];
	p->part_s[SKEP_TIME_PART_WAITING] = p->time_s - sum_s;
	p->known = isfinite(p->time_s) && p->time_s > 0 && isfinite(sum_s) && rounds > 0;
}

bool skep_time_parts_read(struct skep_store *store, int64_t run, struct skep_time_parts *ret, struct skep_diag *reterr)
{
	static const char sql[] =
		"WITH span AS (SELECT min(opened_s) AS opened, max(closed_s) AS closed, count(*) AS rounds FROM rounds"
		" WHERE run = ?1),"
		" busy AS (SELECT sum(forward_s) + sum(backward_s) AS passes, sum(step_s) AS steps, sum(state_s) AS state"
		" FROM activity WHERE run = ?1),"
		" there AS (SELECT sum(max(0.0, min(ended_s, closed) - max(started_s, opened))) AS present"
		" FROM incarnations, span WHERE run = ?1)"
		" SELECT time_s, rounds, (SELECT count(*) FROM workers WHERE run = ?1 AND role = 'worker'),"
		" passes_s, reduction_s, present, busy.passes, busy.steps, busy.state, closed - opened,"
		" world = 'real' AND NOT shape"
		" FROM runs, span, busy, there WHERE id = ?1";
	sqlite3_stmt *row = skep_store_query(store, sql, run, 0, reterr);
	*ret = (struct skep_time_parts){0};
	if (row != NULL && skep_store_row(store, row))
		add_up(ret, row);
	sqlite3_finalize(row);
	return row != NULL;
}

/* The part that makes most of the difference; SKEP_TIME_PARTS: the runs are alike. */
static enum skep_time_part largest(const struct skep_time_parts *first, const struct skep_time_parts *second)
{
	double difference_s = second->time_s - first->time_s, most_s = 0;
	enum skep_time_part part = SKEP_TIME_PARTS;
	for (int i = 0; i < SKEP_TIME_PARTS; i++) {
		double more_s = copysign(1, difference_s) * (second->part_s[i] - first->part_s[i]);
		if (more_s > most_s && fabs(difference_s) > ALIKE * first->time_s) {
			most_s = more_s;
			part = (enum skep_time_part)i;
		}
	}
	return part;
}

static const char *hint(
	enum skep_time_part part, const struct skep_time_parts *first, const struct skep_time_parts *second)
{
	bool links = part == SKEP_TIME_PART_REDUCTIONS || part == SKEP_TIME_PART_WAITING;
	if (part == SKEP_TIME_PARTS)
		return "";
	return links && first->own_links != second->own_links ? unshaped : hints[part];
}

/* Of times below a second in ms, as the metrics above them. */
static void print_row(const char *name, double first_s, double second_s, bool ms, FILE *out)
{
	double factor = ms ? 1e3 : 1;
	char difference[SKEP_TEXT_BYTES];
	snprintf(difference, sizeof difference, "%+.*f %s", ms ? 1 : 3, factor * (second_s - first_s), ms ? "ms" : "s");
	fprintf(out, "  %-22s %-9s %15.*f %15.*f %11s\n", name, ms ? "ms" : "s", ms ? 2 : 4, factor * first_s,
		ms ? 2 : 4, factor * second_s, difference);
}

void skep_time_parts_print(
	const struct skep_time_parts *first, const struct skep_time_parts *second, bool real, FILE *out)
{
	if (!first->known || !second->known)
		return;
	bool ms = fmax(first->time_s, second->time_s) < 1;
	enum skep_time_part part = largest(first, second);
	fputs("time of a mean worker\n", out);
	for (int i = 0; i < SKEP_TIME_PARTS; i++)
		print_row(words[i], first->part_s[i], second->part_s[i], ms, out);
	if (part == SKEP_TIME_PARTS)
		fprintf(out, "\nthe times are within 1 %% of each other%s\n",
			real ? ": nothing is left to measure" : "");
	else
		fprintf(out, "\nmost of the difference in time is in: %s\n", words[part]);
	if (part != SKEP_TIME_PARTS && real)
		fprintf(out, "measure next: %s\n", hint(part, first, second));
}

void skep_time_parts_add_json(
	const struct skep_time_parts *first, const struct skep_time_parts *second, bool real, cJSON *object)
{
	bool known = first->known && second->known;
	cJSON *parts = cJSON_AddArrayToObject(object, "time_parts");
	for (int i = 0; known && i < SKEP_TIME_PARTS; i++) {
		cJSON *part = skep_json_add_row(parts);
		cJSON_AddStringToObject(part, "part", words[i]);
		skep_json_add_number(part, "first_s", first->part_s[i]);
		skep_json_add_number(part, "second_s", second->part_s[i]);
		skep_json_add_number(part, "difference_s", second->part_s[i] - first->part_s[i]);
	}
	enum skep_time_part part = known ? largest(first, second) : SKEP_TIME_PARTS;
	skep_json_add_text(object, "largest_part", part < SKEP_TIME_PARTS ? words[part] : "");
	skep_json_add_text(object, "measure_next", real ? hint(part, first, second) : "");
}
