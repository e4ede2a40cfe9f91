/* SPDX-License-Identifier: Apache-2.0
 *
 * trace.c - what every trace has to obey, whatever its format: decides what is an error, what is repaired, and how both
 * are worded. The formats are read by trace_events.c, trace_counts.c, trace_log.c, trace_gaps.c and trace_openb.c.
 */
#include "topologies/churn/trace.h"

#include <assert.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topologies/churn/trace_reader.h"

/* ---- which format a trace has ------------------------------------------------------------------------------------ */

/* By its first line that is neither blank nor a comment. A line that a header of the counts form could be is followed by the
 * next. */

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

/* The format that the first lines look like; SKEP_TRACE_DETECT: none, with the diagnosis filled. */
static enum skep_trace_format detect(struct skep_trace_reader *r)
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

const char *const skep_trace_format_names[SKEP_TRACE_FORMATS + 1] = {
	"detect", "own", "named", "counts", "log", "gaps", "tasks", "nodes", NULL};
const char *const skep_trace_victim_names[] = {"random", "newest", "oldest", "zone", NULL};

/* ---- one row becomes one event ------------------------------------------------------------------------------------ */

/* At `at` of the line, or, for a row that came of an earlier line, about the file. */
static void fail_at(struct skep_trace_reader *r, const char *at, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void fail_at(struct skep_trace_reader *r, const char *at, const char *format, ...)
{
	char message[512];
	va_list args;
	va_start(args, format);
	vsnprintf(message, sizeof message, format, args);
	va_end(args);
	if (at)
		skep_lines_fail(&r->lines, at, "%s", message);
	else
		skep_diag_set(r->lines.diag, r->lines.path, 0, 0, NULL, "%s", message);
}

static void note(struct skep_trace_reader *r, enum skep_trace_repair repair)
{
	if (r->report->repairs[repair]++ == 0)
		r->report->repair_line[repair] = r->lines.line;
}

static bool send(struct skep_trace_reader *r, const struct skep_trace_event *event)
{
	if (!r->begun)
		r->report->first_ns = event->at_ns;
	r->begun = true;
	if (r->sink(r->user, event))
		return true;
	fail_at(r, NULL, "reading was stopped: not enough memory, or the events are no longer wanted");
	return false;
}

static bool check_time(struct skep_trace_reader *r, skep_time at_ns, const char *time_at, skep_time *ret)
{
	*ret = at_ns;
	if (r->ended) {
		fail_at(r, time_at, "an event after the end of the trace");
		return false;
	}
	if (at_ns >= r->seen_ns)
		return true;
	*ret = r->seen_ns;
	if (r->options->repair)
		note(r, SKEP_REPAIR_BACKWARDS);
	else
		fail_at(r, time_at,
			"time goes backwards: %.10g s, after %.10g s before it "
			"(`skep trace import --repair`: as if it happened then)",
			1e-9 * (double)at_ns, 1e-9 * (double)r->seen_ns);
	return r->options->repair;
}

bool skep_trace_see(struct skep_trace_reader *r, skep_time at_ns, const char *time_at)
{
	skep_time seen_ns;
	bool ok = check_time(r, at_ns, time_at, &seen_ns);
	r->report->idle++;
	r->seen_ns = seen_ns;
	return ok;
}

static bool join(struct skep_trace_reader *r, const struct skep_trace_row *row, struct skep_trace_event *event)
{
	if (skep_live_names_find(&r->live, row->name) != SKEP_NOT_LIVE) {
		if (r->options->repair)
			note(r, SKEP_REPAIR_JOIN);
		else
			fail_at(r, row->name_at,
				"'%s' joins, but is alive since %.10g s (`skep trace import --repair` leaves it out)",
				row->name,
				1e-9 * (double)r->live.life[skep_live_names_find(&r->live, row->name)].joined_ns);
		return r->options->repair;
	}
	event->slot = skep_live_names_add(&r->live, row->name, event->gpu, event->zone, event->at_ns);
	if (event->slot == SKEP_NOT_LIVE) {
		fail_at(r, NULL, "cannot be read: not enough memory for %u that are alive", r->live.count + 1);
		return false;
	}
	event->joined_ns = event->at_ns;
	r->report->joins++;
	if (r->live.count > r->report->most)
		r->report->most = r->live.count;
	return send(r, event);
}

static bool leave(struct skep_trace_reader *r, const struct skep_trace_row *row, struct skep_trace_event *event)
{
	event->slot = skep_live_names_find(&r->live, row->name);
	if (event->slot == SKEP_NOT_LIVE) {
		if (r->options->repair)
			note(r, SKEP_REPAIR_LEAVE);
		else
			fail_at(r, row->name_at,
				"'%s' leaves, but is not alive (`skep trace import --repair` leaves it out)",
				row->name);
		return r->options->repair;
	}
	const struct skep_live_name *life = &r->live.life[event->slot];
	event->gpu = life->gpu;
	event->zone = life->zone;
	event->joined_ns = life->joined_ns;
	r->report->leaves++;
	bool ok = send(r, event);
	skep_live_names_remove(&r->live, event->slot);
	return ok;
}

bool skep_trace_emit(struct skep_trace_reader *r, const struct skep_trace_row *row)
{
	struct skep_trace_event event = {.kind = row->kind, .name = row->name, .gpu = row->gpu, .zone = row->zone};
	if (!event.gpu[0] && r->options->gpu)
		event.gpu = r->options->gpu;
	if (!check_time(r, row->at_ns, row->time_at, &event.at_ns))
		return false;
	r->seen_ns = event.at_ns;
	switch (row->kind) {
	case SKEP_TRACE_JOIN:
		return join(r, row, &event);
	case SKEP_TRACE_LEAVE:
		return leave(r, row, &event);
	case SKEP_TRACE_REFUSED:
		r->report->refused++;
		return send(r, &event);
	case SKEP_TRACE_END:
		r->ended = true; /* told when the file has ended too */
		return true;
	}
	return false;
}

bool skep_trace_emit_machine(struct skep_trace_reader *r, struct skep_trace_row *row, uint64_t gpus)
{
	if (!r->options->per_gpu)
		return skep_trace_emit(r, row);
	size_t length = strlen(row->name);
	for (uint64_t i = 0; i < gpus; i++) {
		if (length > 0 && (size_t)snprintf(row->name + length, sizeof row->name - length, "/%u", (unsigned)i) >=
					  sizeof row->name - length) {
			row->name[length] = 0;
			fail_at(r, row->name_at, "'%s' is too long a name to number its GPUs", row->name);
			return false;
		}
		if (!skep_trace_emit(r, row))
			return false;
	}
	row->name[length] = 0;
	return true;
}

bool skep_trace_unknown(struct skep_trace_reader *r, struct skep_cell cell, const char *expected)
{
	if (r->options->repair)
		note(r, SKEP_REPAIR_WORD);
	else
		skep_lines_fail(&r->lines, cell.at,
			"expected %s, found '%.*s' (`skep trace import --repair` leaves the row out)", expected,
			cell.length < 40 ? (int)cell.length : 40, cell.at);
	return r->options->repair;
}

/* ---- names --------------------------------------------------------------------------------------------------------- */

bool skep_trace_name(struct skep_lines *lines, struct skep_cell cell, char ret[SKEP_TRACE_NAME])
{
	if (cell.length == 0) {
		skep_lines_fail(lines, cell.at, "expected a name");
		return false;
	}
	return skep_cell_copy(lines, cell, "a name", ret, SKEP_TRACE_NAME);
}

bool skep_trace_gpu(struct skep_lines *lines, struct skep_cell cell, char ret[SKEP_TRACE_NAME])
{
	static const char *const vendor[] = {"nvidia-", "tesla-"};
	char text[SKEP_TRACE_NAME];
	if (!skep_cell_copy(lines, cell, "a GPU type", text, sizeof text))
		return false;
	for (char *c = text; *c; c++)
		*c = (char)tolower((uint8_t)*c);
	const char *from = text;
	for (uint32_t i = 0; i < 2; i++)
		if (strncmp(from, vendor[i], strlen(vendor[i])) == 0)
			from += strlen(vendor[i]);
	if (strcmp(from, "v100m16") == 0)
		from = "v100-16";
	else if (strcmp(from, "v100m32") == 0)
		from = "v100-32";
	memmove(ret, from, strlen(from) + 1);
	return true;
}

/* ---- a whole file -------------------------------------------------------------------------------------------------- */

static bool read_format(struct skep_trace_reader *r)
{
	switch (r->report->format) {
	case SKEP_TRACE_OWN:
	case SKEP_TRACE_NAMED:
		return skep_trace_read_events(r);
	case SKEP_TRACE_COUNTS:
		return skep_trace_read_counts(r);
	case SKEP_TRACE_LOG:
		return skep_trace_read_log(r);
	case SKEP_TRACE_GAPS:
		return skep_trace_read_gaps(r);
	case SKEP_TRACE_TASKS:
		return skep_trace_read_tasks(r);
	case SKEP_TRACE_NODES:
		return skep_trace_read_nodes(r);
	case SKEP_TRACE_DETECT:
	case SKEP_TRACE_FORMATS:
		break;
	}
	return false;
}

static bool read_all(struct skep_trace_reader *r)
{
	struct skep_trace_report *report = r->report;
	report->format = r->options->format;
	if (report->format == SKEP_TRACE_DETECT)
		report->format = detect(r);
	if (r->lines.diag->set)
		return false;
	skep_lines_rewind(&r->lines);
	if (report->format == SKEP_TRACE_GAPS)
		r->lines.limit = SKEP_TRACE_GAP_LINE_MAX;
	if (!read_format(r) || r->lines.diag->set)
		return false;
	if (!r->begun) {
		fail_at(r, NULL, "holds no events: expected joins and leaves");
		return false;
	}
	struct skep_trace_event end = {.kind = SKEP_TRACE_END, .at_ns = r->seen_ns, .name = "", .gpu = "", .zone = ""};
	end.implied = !r->ended;
	report->last_ns = r->seen_ns;
	return send(r, &end);
}

bool skep_trace_read(const char *path, const struct skep_trace_options *options, skep_trace_sink sink, void *user,
	struct skep_trace_report *ret, struct skep_diag *reterr)
{
	struct skep_trace_report report = {0};
	struct skep_trace_reader r = {
		.options = options, .report = &report, .sink = sink, .user = user, .random = options->seed};
	if (!skep_lines_open(&r.lines, path, SKEP_TRACE_LINE_MAX, reterr))
		return false;
	bool ok = read_all(&r);
	report.bytes = r.lines.bytes;
	report.lines = r.lines.line;
	report.live = r.live.count;
	skep_live_names_finish(&r.live);
	skep_lines_close(&r.lines);
	if (ret)
		*ret = report;
	assert(ok != reterr->set);
	return ok;
}

size_t skep_trace_repairs_print(const struct skep_trace_report *report, const char *path, char *ret, size_t size)
{
	static const char *const text[SKEP_REPAIRS] = {
		"events earlier than the one before, taken as if they happened then",
		"joins of names that were alive, left out",
		"leaves of names that were not alive, left out",
		"rows of an unknown type, left out",
	};
	size_t used = 0;
	ret[0] = 0;
	for (int i = 0; i < SKEP_REPAIRS; i++) {
		if (report->repairs[i] == 0 || used >= size)
			continue;
		int n = snprintf(ret + used, size - used, "%s: warning: %llu %s (first at line %u)\n", path,
			(unsigned long long)report->repairs[i], text[i], report->repair_line[i]);
		used += n > 0 ? (size_t)n : 0;
	}
	return used < size ? used : size - 1;
}
