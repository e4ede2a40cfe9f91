/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_reader.h - what the readers of the trace formats share. Private to them.
 *
 * A reader turns lines into rows and hands each to skep_trace_emit(), which alone decides what is an error, what is
 * repaired, and what reaches the caller.
 */
#pragma once

#include "base/files/lines.h"
#include "topologies/churn/live_names.h"
#include "topologies/churn/trace.h"

#define SKEP_TRACE_NAME 128u /* bytes of a name, a type or a zone, with the final 0 */

struct skep_trace_reader {
	const struct skep_trace_options *options;
	struct skep_trace_report *report;
	struct skep_lines lines;
	struct skep_live_names live;
	skep_trace_sink sink;
	void *user;
	bool begun, ended;
	skep_time seen_ns; /* the latest that the file told of */
	uint64_t random;
};

struct skep_trace_row {
	enum skep_trace_kind kind;
	skep_time at_ns;
	const char *time_at, *name_at; /* where they stand in the line, for the caret; NULL: not in this line */
	char name[SKEP_TRACE_NAME], gpu[SKEP_TRACE_NAME], zone[SKEP_TRACE_NAME];
};

/* False: an error, or the caller has enough. */
bool skep_trace_emit(struct skep_trace_reader *r, const struct skep_trace_row *row);
/* A row that is no event: it tells that the recorder was looking. */
bool skep_trace_see(struct skep_trace_reader *r, skep_time at_ns, const char *time_at);
/* skep_trace_emit() for a machine with `gpus` of them: options->per_gpu decides whether it is one name or several. */
bool skep_trace_emit_machine(struct skep_trace_reader *r, struct skep_trace_row *row, uint64_t gpus);
/* A row of an unknown type: true if it may be left out. `expected`: what would have been right. */
bool skep_trace_unknown(struct skep_trace_reader *r, struct skep_cell cell, const char *expected);
/* Types as GPU profiles name them: lower case, without the vendor ("nvidia-tesla-v100": v100; "V100M32": v100-32). */
bool skep_trace_gpu(struct skep_lines *lines, struct skep_cell cell, char ret[SKEP_TRACE_NAME]);
/* A name, not empty. */
bool skep_trace_name(struct skep_lines *lines, struct skep_cell cell, char ret[SKEP_TRACE_NAME]);

/* Each reads to the end of the file, from the first line. */
bool skep_trace_read_events(struct skep_trace_reader *r);                /* own and named */
bool skep_trace_is_own(struct skep_cell word);                           /* a word of our own format for what happens */
bool skep_trace_is_header(const struct skep_cell *cell, uint32_t cells); /* a line of column names of either */
bool skep_trace_read_counts(struct skep_trace_reader *r);
bool skep_trace_read_log(struct skep_trace_reader *r);
bool skep_trace_read_gaps(struct skep_trace_reader *r);
bool skep_trace_read_tasks(struct skep_trace_reader *r);
bool skep_trace_read_nodes(struct skep_trace_reader *r);

#define SKEP_TRACE_LINE_MAX (64u << 10)
#define SKEP_TRACE_GAP_LINE_MAX (64u << 20)
