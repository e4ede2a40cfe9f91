/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_gaps.c - was a machine there or not, once every gap: one line per machine, 1 there, 0 not, as one character or one
 * CSV cell per gap ("0110", "0,1,1,0"), with or without a name in front ("m7,0110"). All lines are equally long. The length
 * of a gap is an option, or a comment before the first line: "# gap: 600 s". Also read, as SkyPilot's spot traces have it:
 * {"metadata": {"gap_seconds": 600, ...}, "data": [0, 1, 1, 0]}, where a number is how many machines of one kind were there in
 * that gap. It does not say which of them: those that came last go first.
 *
 * A machine that is there in gap i and not in the one before joins at the begin of gap i. Since each line spans the whole
 * time, the changes (not the cells) of all lines are kept and sorted; in one instant leaves come before joins.
 */
#include "base/grow.h"
#include "base/units.h"
#include "topologies/churn/trace_reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHANGES_MAX (64u << 20)
#define MACHINES_MAX 1000000u

struct change {
	uint32_t gap, machine;
	bool join;
};

struct table {
	struct change *change;
	size_t changes;
	char (*name)[SKEP_TRACE_NAME];
	uint32_t machines;
	uint32_t gaps; /* of each line */
	skep_time gap_ns;
};

static bool fail_memory(struct skep_trace_reader *r)
{
	skep_diag_set(r->lines.diag, r->lines.path, 0, 0, NULL, "cannot be read: not enough memory");
	return false;
}

static bool add_change(struct skep_trace_reader *r, struct table *t, uint32_t machine, uint32_t gap, bool join)
{
	if (t->changes >= CHANGES_MAX || !skep_grow(&t->change, t->changes, sizeof *t->change))
		return fail_memory(r);
	t->change[t->changes++] = (struct change){gap, machine, join};
	return true;
}

static bool add_machine(struct skep_trace_reader *r, struct table *t, struct skep_cell name)
{
	if (t->machines >= 2 * MACHINES_MAX || !skep_grow(&t->name, t->machines, sizeof *t->name))
		return fail_memory(r);
	char *to = t->name[t->machines++];
	if (name.length > 0)
		return skep_cell_copy(&r->lines, name, "a name", to, SKEP_TRACE_NAME);
	snprintf(to, SKEP_TRACE_NAME, "m%u", t->machines - 1);
	return true;
}

/* ---- lines of 0 and 1 ------------------------------------------------------------------------------------------------ */

/* "# gap: 600 s" */
static bool read_gap(struct skep_trace_reader *r, struct table *t)
{
	const char *text = r->lines.text + strspn(r->lines.text, "# \t"), *expected;
	double seconds;
	if (strncmp(text, "gap:", 4) != 0 || t->gap_ns > 0)
		return true;
	text += 4 + strspn(text + 4, " \t");
	if (!skep_quantity_parse(text, SKEP_TIME, &seconds, &expected) || !(seconds >= 1e-3 && seconds <= 1e8)) {
		skep_lines_fail(&r->lines, text, "expected a time with its unit from 1 ms to 1e8 s, such as 600 s");
		return false;
	}
	t->gap_ns = (skep_time)(seconds * 1e9 + 0.5);
	return true;
}

/* The cell in front, if it is a name and not of the 0 and 1. */
static struct skep_cell name_of(const struct skep_lines *lines)
{
	struct skep_cell cell = {"", 0};
	if (strchr(lines->text, ',') == NULL)
		return cell;
	skep_lines_cells(lines, &cell, 1);
	return strspn(cell.at, "01") >= cell.length ? (struct skep_cell){"", 0} : cell;
}

static bool read_cells(struct skep_trace_reader *r, struct table *t, const char *c)
{
	bool there = false;
	uint32_t gap = 0;
	for (; *c; c++) {
		if (*c == ',' || *c == ' ' || *c == '\t')
			continue;
		if (*c != '0' && *c != '1') {
			skep_lines_fail(&r->lines, c, "expected 0 or 1 for each gap");
			return false;
		}
		if ((*c == '1') != there && !add_change(r, t, t->machines - 1, gap, !there))
			return false;
		there = *c == '1';
		gap++;
	}
	if (t->machines > 1 && gap != t->gaps)
		skep_lines_fail(&r->lines, r->lines.text + r->lines.length,
			"%u gaps in this line, %u in the one before: each line spans the whole time", gap, t->gaps);
	t->gaps = gap;
	return !r->lines.diag->set;
}

static bool read_line(struct skep_trace_reader *r, struct table *t)
{
	struct skep_cell name = name_of(&r->lines);
	const char *from = name.length > 0 ? strchr(name.at + name.length, ',') : r->lines.text;
	return add_machine(r, t, name) && read_cells(r, t, from);
}

/* ---- {"metadata": {"gap_seconds": 600}, "data": [0, 1]} -------------------------------------------------------------- */

enum { BEFORE_LIST, IN_LIST, BEHIND_LIST };

static bool read_gap_seconds(struct skep_trace_reader *r, struct table *t, const char *at)
{
	at += strspn(at, "\": \t");
	struct skep_cell cell = {at, strspn(at, "0123456789.")};
	skep_time gap_ns;
	if (!skep_cell_time(&r->lines, cell, SKEP_SECOND_NS, &gap_ns))
		return false;
	t->gap_ns = t->gap_ns > 0 ? t->gap_ns : gap_ns;
	return true;
}

/* Of those that are there, or were once, the first `count` are. */
static bool set_count(struct skep_trace_reader *r, struct table *t, uint32_t *there, uint32_t count)
{
	while (*there < count) {
		if (*there == t->machines && !add_machine(r, t, (struct skep_cell){"", 0}))
			return false;
		if (!add_change(r, t, (*there)++, t->gaps, true))
			return false;
	}
	while (*there > count)
		if (!add_change(r, t, --*there, t->gaps, false))
			return false;
	return true;
}

static bool read_list(struct skep_trace_reader *r, struct table *t, const char **at, uint32_t *there)
{
	while (**at && **at != ']') {
		size_t blanks = strspn(*at, ", \t"), digits = strspn(*at + blanks, "0123456789");
		const char *number = *at + blanks, *end = number + digits;
		*at = end;
		if (*number == 0 || *number == ']')
			continue;
		unsigned long count = digits > 0 && digits < 8 ? strtoul(number, NULL, 10) : MACHINES_MAX + 1ul;
		if (count > MACHINES_MAX || (*end && !strchr(", \t]", *end))) {
			skep_lines_fail(&r->lines, number,
				"expected for each gap how many machines were there, 0 to %u", MACHINES_MAX);
			return false;
		}
		if (!set_count(r, t, there, (uint32_t)count))
			return false;
		t->gaps++;
	}
	return true;
}

static bool read_json(struct skep_trace_reader *r, struct table *t)
{
	int state = BEFORE_LIST;
	uint32_t there = 0;
	do {
		const char *at = r->lines.text, *gap = strstr(at, "\"gap_seconds\""), *data = strstr(at, "\"data\"");
		if (gap && !read_gap_seconds(r, t, gap + 13))
			return false;
		if (state == BEFORE_LIST && data && (at = strchr(data, '['))) {
			state = IN_LIST;
			at++;
		}
		if (state == IN_LIST && !read_list(r, t, &at, &there))
			return false;
		if (state == IN_LIST && *at == ']')
			state = BEHIND_LIST;
	} while (skep_lines_next(&r->lines));
	if (state != BEHIND_LIST && !r->lines.diag->set)
		skep_diag_set(r->lines.diag, r->lines.path, 0, 0, NULL, "%s",
			state == IN_LIST ? "\"data\": [ ... has no ]" : "expected \"data\": [0, 1, ...] in it");
	return !r->lines.diag->set;
}

/* ---- all of it ------------------------------------------------------------------------------------------------------- */

static int by_time(const void *a, const void *b)
{
	const struct change *x = a, *y = b;
	if (x->gap != y->gap)
		return x->gap < y->gap ? -1 : 1;
	if (x->join != y->join)
		return x->join ? 1 : -1;
	return x->machine < y->machine ? -1 : x->machine > y->machine;
}

static bool play(struct skep_trace_reader *r, struct table *t)
{
	struct skep_trace_row row;
	row.time_at = row.name_at = NULL;
	row.gpu[0] = row.zone[0] = 0;
	if (t->gap_ns == 0 || t->gap_ns > SKEP_TIME_NEVER / 2 / (t->gaps + 1)) {
		skep_diag_set(r->lines.diag, r->lines.path, 0, 0, NULL,
			"the length of a gap is %s: expected a comment \"# gap: 600 s\", or --gap \"600 s\"",
			t->gap_ns ? "too long" : "not known");
		return false;
	}
	if (t->changes > 0)
		qsort(t->change, t->changes, sizeof *t->change, by_time);
	for (size_t i = 0; i < t->changes; i++) {
		row.kind = t->change[i].join ? SKEP_TRACE_JOIN : SKEP_TRACE_LEAVE;
		row.at_ns = t->change[i].gap * t->gap_ns;
		memcpy(row.name, t->name[t->change[i].machine], sizeof row.name);
		if (!skep_trace_emit(r, &row))
			return false;
	}
	row.kind = SKEP_TRACE_END;
	row.at_ns = t->gaps * t->gap_ns;
	return skep_trace_emit(r, &row);
}

static bool read_table(struct skep_trace_reader *r, struct table *t)
{
	while (skep_lines_next(&r->lines)) {
		const char *text = r->lines.text + strspn(r->lines.text, " \t");
		if (*text == '{' && t->machines == 0)
			return read_json(r, t);
		if (*text != 0 && !(*text == '#' ? read_gap(r, t) : read_line(r, t)))
			return false;
	}
	return !r->lines.diag->set;
}

bool skep_trace_read_gaps(struct skep_trace_reader *r)
{
	struct table t = {.gap_ns = r->options->gap_ns};
	bool ok = read_table(r, &t) && play(r, &t);
	free(t.change);
	free(t.name);
	return ok;
}
