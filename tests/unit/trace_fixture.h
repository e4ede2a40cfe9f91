/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_fixture.h - a folder for trace files, and events as text: "+a" joins, "-a" leaves, "?a" refused, "." the end, each
 * after its second.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "topologies/churn/trace_stats.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static char folder[] = "/tmp/skep-trace-XXXXXX";

static inline const char *in_folder(const char *name)
{
	static char path[2][128];
	static int turn;
	turn = !turn;
	snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
	return path[turn];
}

static inline void put_bytes(const char *name, const char *text, size_t size)
{
	FILE *file = fopen(in_folder(name), "w");
	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

static inline void put(const char *name, const char *text)
{
	put_bytes(name, text, strlen(text));
}

/* A sink that writes events down. */
struct record {
	char text[1 << 14];
	size_t length;
	uint64_t events;
	bool types;
};

static inline bool note(void *user, const struct skep_trace_event *event)
{
	static const char sign[] = {'+', '-', '?', '.'};
	struct record *r = user;
	r->events++;
	if (r->length + 200 < sizeof r->text) {
		int n = snprintf(r->text + r->length, sizeof r->text - r->length, "%s%.10g%c%s", r->length ? " " : "",
			1e-9 * (double)event->at_ns, sign[event->kind], event->name);
		r->length += (size_t)n;
		if (r->types && (event->gpu[0] || event->zone[0]))
			r->length += (size_t)snprintf(
				r->text + r->length, sizeof r->text - r->length, "(%s,%s)", event->gpu, event->zone);
	}
	return true;
}

static inline struct skep_trace_report read_events(
	const char *text, const struct skep_trace_options *options, bool types, struct record *ret)
{
	struct skep_trace_report report;
	struct skep_diag diag = {0};
	put("trace", text);
	memset(ret, 0, sizeof *ret);
	ret->types = types;
	if (!skep_trace_read(in_folder("trace"), options, note, ret, &report, &diag))
		fail_msg("%u:%u: %s", diag.line, diag.column, diag.message);
	return report;
}

static inline void expect(const char *text, const struct skep_trace_options *options, bool types, const char *events)
{
	struct record record;
	read_events(text, options, types, &record);
	assert_string_equal(record.text, events);
}

static const struct skep_trace_options plain = {.seed = 0};

static inline struct skep_trace_stats stats_of(const char *path)
{
	struct skep_trace_stats stats;
	struct skep_diag diag = {0};
	if (!skep_trace_stats_read(path, &plain, &stats, &diag))
		fail_msg("%s:%u: %s", path, diag.line, diag.message);
	return stats;
}

static inline int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static inline int remove_folder(void **state)
{
	(void)state;
	static const char *const names[] = {"trace", "nodes", "tasks", "many", "large", "written", "drawn", "like",
		"named", "bad", "own.csv", "g.csv", "h.csv"};
	for (size_t i = 0; i < COUNT(names); i++)
		unlink(in_folder(names[i]));
	return rmdir(folder);
}
