/* SPDX-License-Identifier: Apache-2.0
 *
 * trace.c - what every trace has to obey, whatever its format: decides what is an error, what is repaired, and how both
 * are worded. The formats are read by trace_events.c, trace_counts.c, trace_log.c, trace_gaps.c and trace_openb.c.
 */
#include "topologies/churn/trace.h"
#include "topologies/churn/trace_reader.h"

#include <assert.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
		report->format = skep_trace_detect(r);
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
