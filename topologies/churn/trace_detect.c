/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_detect.c - decides which format a trace has by its first line that is neither blank nor a comment. A line that a
 * header of the counts form could be is followed by the next.
 */
#include "topologies/churn/trace_reader.h"

#include <string.h>

static bool number(struct skep_cell cell)
{
	return cell.length > 0 && strspn(cell.at, "0123456789.") >= cell.length;
}

/* Nothing but 0, 1, commas and blanks, perhaps behind a name; two cells of numbers are counts. */
static bool gaps(const struct skep_lines *lines, const struct skep_cell *cell, uint32_t cells)
{
	const char *from = lines->text;
	size_t bits = strspn(from, "01, \t");
	bool all = bits == lines->length && strpbrk(from, "01");
	if (all)
		return cells != 2;
	if (cells < 2 || number(cell[0]))
		return false;
	from = cell[1].at;
	bits = strspn(from, "01, \t");
	return bits > 0 && from + bits == lines->text + lines->length && (cells > 2 || cell[1].length > 1);
}

static bool log_line(const char *text)
{
	return text[0] == '[' && strspn(text + 1, "0123456789") == 4 && text[5] == '-';
}

static enum skep_trace_format look(const struct skep_lines *lines, uint32_t lines_before)
{
	struct skep_cell cell[5] = {{"", 0}, {"", 0}, {"", 0}, {"", 0}, {"", 0}};
	uint32_t cells = skep_lines_cells(lines, cell, 5);
	if (log_line(lines->text))
		return SKEP_TRACE_LOG;
	if (lines->text[strspn(lines->text, " \t")] == '{')
		return SKEP_TRACE_GAPS;
	if (strstr(lines->text, "deletion_time") && strstr(lines->text, "creation_time"))
		return SKEP_TRACE_TASKS;
	if (skep_cell_is(cell[0], "sn") && strstr(lines->text, "model"))
		return SKEP_TRACE_NODES;
	if (skep_cell_is(cell[1], "add") || skep_cell_is(cell[1], "remove"))
		return SKEP_TRACE_NAMED;
	if (skep_trace_is_own(cell[1]) || (cells >= 3 && skep_cell_is(cell[0], "seconds")))
		return SKEP_TRACE_OWN;
	if (gaps(lines, cell, cells))
		return SKEP_TRACE_GAPS;
	if (cells == 2 && number(cell[0]) && number(cell[1]))
		return SKEP_TRACE_COUNTS;
	if (cells == 2 && lines_before == 0 && (skep_cell_is(cell[1], "count") || skep_cell_is(cell[0], "seconds")))
		return SKEP_TRACE_COUNTS;
	return SKEP_TRACE_DETECT;
}

/* Behind a line of column names it is the next one that tells. */
static enum skep_trace_format look_twice(struct skep_lines *lines)
{
	struct skep_cell cell[5];
	enum skep_trace_format format = look(lines, 0);
	if (format != SKEP_TRACE_DETECT || !skep_trace_is_header(cell, skep_lines_cells(lines, cell, 5)) ||
		!skep_lines_next_row(lines))
		return format;
	format = look(lines, 1);
	return format == SKEP_TRACE_OWN || format == SKEP_TRACE_NAMED ? format : SKEP_TRACE_DETECT;
}

/* The gaps form says how long a gap is, so that tells it where a row alone does not. */
static bool says_gap(struct skep_lines *lines)
{
	bool found = false;
	while (!found && skep_lines_next(lines)) {
		const char *text = lines->text + strspn(lines->text, " \t");
		if (text[0] != '#' && text[0] != 0)
			break;
		text += strspn(text, "# \t");
		found = strncmp(text, "gap:", 4) == 0;
	}
	return found;
}

enum skep_trace_format skep_trace_detect(struct skep_trace_reader *r)
{
	struct skep_lines *lines = &r->lines;
	lines->limit = SKEP_TRACE_GAP_LINE_MAX;
	bool gap = r->options->gap_ns > 0 || says_gap(lines);
	skep_lines_rewind(lines);
	enum skep_trace_format format = SKEP_TRACE_DETECT;
	if (gap && !lines->diag->set)
		format = SKEP_TRACE_GAPS;
	else if (skep_lines_next_row(lines))
		format = look_twice(lines);
	else if (!lines->diag->set)
		skep_diag_set(lines->diag, lines->path, 0, 0, NULL, "holds no events: it is empty, or comments only");
	if (format == SKEP_TRACE_DETECT && !lines->diag->set)
		skep_lines_fail(lines, lines->text,
			"no known trace format: expected seconds,join|leave,name (own), ms,add|remove,name (named), "
			"seconds,count (counts), [ISO time Z] text (log), 0 and 1 per gap (gaps), or a table of the "
			"Alibaba 2023 GPU cluster (tasks, nodes); --format forces one");
	lines->limit = SKEP_TRACE_LINE_MAX;
	return format;
}
