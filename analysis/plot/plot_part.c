/* SPDX-License-Identifier: Apache-2.0
 *
 * plot_part.c - see plot_timeline.h. A worker's arithmetic in a reduction is short, on slow links the reduction is long: nearly
 * all of it lies between operations. Both worlds record the same ones, so it is found from these alone: from the first in the
 * reduce lane (a worker takes its own sum) until the step, which waits for the last of the others.
 */
#include "analysis/plot/plot_timeline.h"

#include <math.h>
#include <stdlib.h>

#include "analysis/store/database.h"
#include "base/grow.h"

static bool add_part(struct skep_parts *parts, sqlite3_stmt *row, struct skep_diag *reterr)
{
	if (!skep_grow(&parts->part, parts->parts, sizeof *parts->part))
		return skep_fail(reterr, "no memory for more than %zu reductions", parts->parts);
	double begin_s = sqlite3_column_double(row, 1);
	parts->part[parts->parts++] = (struct skep_part){.worker = (uint32_t)sqlite3_column_int64(row, 0),
		.begin_s = begin_s,
		.passed_s = begin_s,
		.end_s = sqlite3_column_double(row, 2)};
	return true;
}

/* Delayed updates step in the reduce lane, others in the compute lane. */
static bool read_parts(
	struct skep_store *store, const struct skep_plot_run *run, struct skep_parts *ret, struct skep_diag *reterr)
{
	static const char sql[] =
		"SELECT worker, min(CASE WHEN kind <> 'step' THEN begin_s END) AS begun,"
		" max(CASE WHEN kind = 'step' THEN begin_s ELSE end_s END)"
		" FROM ops WHERE run = ?1 AND worker < ?2 AND (lane = 'reduce' OR kind = 'step')"
		" GROUP BY worker, epoch, round, stage HAVING begun IS NOT NULL ORDER BY worker, begun";
	sqlite3_stmt *row = skep_store_query(store, sql, run->id, run->workers, reterr);
	bool ok = row != NULL;
	while (ok && skep_store_row(store, row))
		ok = add_part(ret, row, reterr);
	sqlite3_finalize(row);
	return ok;
}

/* Both are sorted alike: a part that ended before an operation began has nothing beside it any more. */
static bool read_passes(
	struct skep_store *store, const struct skep_plot_run *run, struct skep_parts *parts, struct skep_diag *reterr)
{
	static const char sql[] = "SELECT worker, begin_s, end_s FROM ops"
				  " WHERE run = ?1 AND lane = 'compute' AND kind <> 'step' ORDER BY worker, begin_s";
	size_t first = 0;
	sqlite3_stmt *row = skep_store_query(store, sql, run->id, 0, reterr);
	while (row != NULL && skep_store_row(store, row)) {
		uint32_t worker = (uint32_t)sqlite3_column_int64(row, 0);
		double begin_s = sqlite3_column_double(row, 1), end_s = sqlite3_column_double(row, 2);
		const struct skep_part *part = parts->part;
		while (first < parts->parts &&
			(part[first].worker < worker || (part[first].worker == worker && part[first].end_s <= begin_s)))
			first++;
		for (size_t i = first; i < parts->parts && part[i].worker == worker && part[i].begin_s < end_s; i++)
			if (part[i].end_s > begin_s)
				parts->part[i].passed_s = fmin(fmax(part[i].passed_s, end_s), part[i].end_s);
	}
	sqlite3_finalize(row);
	return row != NULL;
}

static bool read_known(
	struct skep_store *store, const struct skep_plot_run *run, struct skep_parts *ret, struct skep_diag *reterr)
{
	static const char sql[] = "SELECT (SELECT max(end_s) FROM ops WHERE run = ?1) FROM runs WHERE id = ?1"
				  " AND ops_dropped > 0";
	sqlite3_stmt *row = skep_store_query(store, sql, run->id, 0, reterr);
	ret->known_s = row != NULL && skep_store_row(store, row) ? sqlite3_column_double(row, 0) : INFINITY;
	sqlite3_finalize(row);
	return row != NULL;
}

bool skep_parts_read(
	struct skep_store *store, const struct skep_plot_run *run, struct skep_parts *ret, struct skep_diag *reterr)
{
	*ret = (struct skep_parts){0};
	bool ok = read_parts(store, run, ret, reterr) && read_passes(store, run, ret, reterr) &&
	          read_known(store, run, ret, reterr);
	if (!ok)
		skep_parts_finish(ret);
	return ok;
}

void skep_parts_finish(struct skep_parts *parts)
{
	free(parts->part);
	*parts = (struct skep_parts){0};
}
