/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_events.c - the formats with one named event a line: ours (seconds,join|leave|refused|end,name,gpu,zone) and the
 * named one (ms,add|remove,name). A line of column names may come first. Words that clouds and people use for a join or a leave
 * mean the same, in any case of letters.
 */
#include "base/units.h"
#include "topologies/churn/trace_reader.h"

#include <string.h>

static const struct {
	const char *word;
	enum skep_trace_kind kind;
} own[] =
	{
		{"join", SKEP_TRACE_JOIN},
		{"leave", SKEP_TRACE_LEAVE},
		{"up", SKEP_TRACE_JOIN},
		{"start", SKEP_TRACE_JOIN},
		{"down", SKEP_TRACE_LEAVE},
		{"stop", SKEP_TRACE_LEAVE},
		{"preempt", SKEP_TRACE_LEAVE},
		{"preempted", SKEP_TRACE_LEAVE},
		{"evict", SKEP_TRACE_LEAVE},
		{"evicted", SKEP_TRACE_LEAVE},
		{"terminate", SKEP_TRACE_LEAVE},
		{"terminated", SKEP_TRACE_LEAVE},
		{"refused", SKEP_TRACE_REFUSED},
		{"end", SKEP_TRACE_END},
},
  named[] = {
	  {"add", SKEP_TRACE_JOIN},
	  {"remove", SKEP_TRACE_LEAVE},
};

static bool find_kind(struct skep_cell word, bool is_own, enum skep_trace_kind *ret)
{
	uint32_t count = is_own ? sizeof own / sizeof *own : sizeof named / sizeof *named;
	for (uint32_t i = 0; i < count; i++)
		if (skep_cell_is(word, is_own ? own[i].word : named[i].word)) {
			*ret = is_own ? own[i].kind : named[i].kind;
			return true;
		}
	return false;
}

/* "seconds,event,name,gpu,zone" or the like: no digit in front, and not a word that an event has. */
static bool column_names(const struct skep_cell *cell, uint32_t cells, bool is_own)
{
	static const char *const words[] = {
		"seconds", "s", "sec", "milliseconds", "ms", "time", "time_s", "timestamp", "t", "when", "at"};
	enum skep_trace_kind kind;
	for (uint32_t i = 0; cells > 1 && i < sizeof words / sizeof *words; i++)
		if (skep_cell_is(cell[0], words[i]))
			return !find_kind(cell[1], is_own, &kind);
	return false;
}

bool skep_trace_is_own(struct skep_cell word)
{
	enum skep_trace_kind kind;
	return find_kind(word, true, &kind);
}

bool skep_trace_is_header(const struct skep_cell *cell, uint32_t cells)
{
	return cells >= 3 && column_names(cell, cells, true) && column_names(cell, cells, false);
}

static bool check_cells(struct skep_trace_reader *r, const struct skep_cell *cell, uint32_t cells, bool is_own)
{
	if (cells > (is_own ? 5u : 3u))
		skep_lines_fail(&r->lines, is_own ? r->lines.text : cell[3].at, "%u cells in a row: expected %s", cells,
			is_own ? "seconds,join|leave,name[,gpu][,zone]" : "milliseconds,add|remove,name");
	else if (cells < 2)
		skep_lines_fail(&r->lines, r->lines.text, "expected %s",
			is_own ? "seconds,join|leave,name[,gpu][,zone]" : "milliseconds,add|remove,name");
	return !r->lines.diag->set;
}

static bool read_row(struct skep_trace_reader *r, const struct skep_cell *cell, uint32_t cells, bool is_own)
{
	struct skep_lines *lines = &r->lines;
	struct skep_trace_row row;
	row.time_at = cell[0].at;
	row.name[0] = row.gpu[0] = row.zone[0] = 0;
	if (!check_cells(r, cell, cells, is_own) ||
		!skep_cell_time(lines, cell[0], is_own ? SKEP_SECOND_NS : 1000000, &row.at_ns))
		return false;
	if (!find_kind(cell[1], is_own, &row.kind))
		return skep_trace_unknown(r, cell[1],
			is_own ? "join (or up, start), leave (or down, stop, preempt, evict, terminate), refused or end"
			       : "add or remove");
	bool nameless = row.kind == SKEP_TRACE_REFUSED || row.kind == SKEP_TRACE_END;
	if (cells < 3 && !nameless) {
		skep_lines_fail(lines, lines->text + lines->length, "expected a name behind %.*s", (int)cell[1].length,
			cell[1].at);
		return false;
	}
	row.name_at = cells > 2 ? cell[2].at : NULL;
	if (cells > 2 && (cell[2].length > 0 || !nameless) && !skep_trace_name(lines, cell[2], row.name))
		return false;
	if (cells > 3 && !skep_trace_gpu(lines, cell[3], row.gpu))
		return false;
	if (cells > 4 && !skep_cell_copy(lines, cell[4], "a zone", row.zone, sizeof row.zone))
		return false;
	return skep_trace_emit(r, &row);
}

bool skep_trace_read_events(struct skep_trace_reader *r)
{
	bool is_own = r->report->format == SKEP_TRACE_OWN, first = true;
	while (skep_lines_next_row(&r->lines)) {
		struct skep_cell cell[5];
		uint32_t cells = skep_lines_cells(&r->lines, cell, 5);
		if (first && column_names(cell, cells, is_own)) {
			first = false;
			continue;
		}
		first = false;
		if (!read_row(r, cell, cells, is_own))
			return false;
	}
	return !r->lines.diag->set;
}
