/* SPDX-License-Identifier: Apache-2.0
 *
 * trace.h - churn traces: which machine was there when, as a recorder wrote it down. A trace is read as a stream of
 * events in order of time, whatever its format, and written in skep's own format.
 *
 * What is kept true of the events: time never goes backwards; a join is of a name that is not alive, a leave of one
 * that is; the last event, and only the last, is SKEP_TRACE_END. Memory grows with the number alive, not with the file,
 * except in the gaps format, where it grows with the changes. docs/traces.md says what each format looks like.
 */
#pragma once

#include "base/reader.h"
#include "core/skep.h"

enum skep_trace_kind {
	SKEP_TRACE_JOIN,
	SKEP_TRACE_LEAVE,
	SKEP_TRACE_REFUSED, /* a request for a machine was refused; the name may be empty */
	SKEP_TRACE_END,     /* the record ends; machines alive here live on */
};

struct skep_trace_event {
	enum skep_trace_kind kind;
	skep_time at_ns; /* as in the file; logs with a date: since their first line */
	const char *name, *gpu,
		*zone;       /* never NULL, "" unknown; valid during the call. A leave has those of its join */
	uint32_t slot;       /* join and leave: a number below the most alive so far, this name's while it lives */
	skep_time joined_ns; /* join and leave */
	bool implied;        /* an end that no row tells of: the last event is taken for it */
};

enum skep_trace_format {
	SKEP_TRACE_DETECT,
	SKEP_TRACE_OWN,    /* seconds,join|leave|refused|end,name[,gpu][,zone] */
	SKEP_TRACE_NAMED,  /* ms,add|remove,name */
	SKEP_TRACE_COUNTS, /* seconds,count */
	SKEP_TRACE_LOG,    /* [ISO time Z] text */
	SKEP_TRACE_GAPS,   /* 0 or 1 for each gap, one line per machine */
	SKEP_TRACE_TASKS,  /* tasks of the Alibaba 2023 GPU cluster */
	SKEP_TRACE_NODES,  /* machines of the same */
	SKEP_TRACE_FORMATS
};
extern const char *const skep_trace_format_names[SKEP_TRACE_FORMATS + 1]; /* NULL at the end */

enum skep_trace_victims { SKEP_VICTIMS_RANDOM, SKEP_VICTIMS_NEWEST, SKEP_VICTIMS_OLDEST, SKEP_VICTIMS_ZONE };
extern const char *const skep_trace_victim_names[];

/* All zero is a valid choice. */
struct skep_trace_options {
	enum skep_trace_format format;
	bool repair;                     /* see enum skep_trace_repair; else these are errors */
	bool per_gpu;                    /* log, tasks, nodes: a machine with n GPUs is n names, NAME/0 .. */
	const char *gpu;                 /* type of the machines whose type the trace does not tell; NULL unknown */
	skep_time gap_ns;                /* gaps: 0 as the file says */
	const char *nodes_path;          /* tasks: the table of nodes, to draw the type of a task that takes any */
	uint64_t seed;                   /* counts: victims; tasks: types */
	enum skep_trace_victims victims; /* counts */
	uint32_t zones;                  /* counts: newcomers go to the emptiest of so many; 0 is 1 */
};

/* What is put right if `repair` allows. */
enum skep_trace_repair {
	SKEP_REPAIR_BACKWARDS, /* an event earlier than the one before happens when that one does */
	SKEP_REPAIR_JOIN,      /* a join of a name that is alive is left out */
	SKEP_REPAIR_LEAVE,     /* a leave of a name that is not alive is left out */
	SKEP_REPAIR_WORD,      /* a row of an unknown type is left out */
	SKEP_REPAIRS
};

struct skep_trace_report {
	enum skep_trace_format format;
	uint64_t bytes, lines, joins, leaves, refused;
	uint64_t idle; /* rows that are no churn: polls that find nothing new, tasks without a GPU */
	uint64_t repairs[SKEP_REPAIRS];
	uint32_t repair_line[SKEP_REPAIRS]; /* of the first */
	skep_time first_ns, last_ns;        /* first event; END */
	uint32_t live, most;                /* at the end; at once */
};

/* False stops the reading; the reading then fails if the diagnosis was not set either. */
typedef bool (*skep_trace_sink)(void *user, const struct skep_trace_event *event);

/* Reads the file to its end. *ret may be NULL. */
bool skep_trace_read(const char *path, const struct skep_trace_options *options, skep_trace_sink sink, void *user,
	struct skep_trace_report *ret, struct skep_diag *reterr);

/* One sentence for each kind of repair that was made, with its count and first line; "" for none. Returns its length. */
size_t skep_trace_repairs_print(const struct skep_trace_report *report, const char *path, char *ret, size_t size);

/* ---- writing ------------------------------------------------------------------------------------------------------ */

struct skep_trace_writer;

/* A comment on top of every trace that skep writes, by which it may be replaced. */
#define SKEP_TRACE_WRITTEN "# written by: skep trace"

/* The file appears under its name when it is complete. `source` and `licence` become comments, one line each (line breaks
 * in them start another comment line). NULL with `reterr` filled. */
struct skep_trace_writer *skep_trace_writer_create(
	const char *path, const char *source, const char *licence, struct skep_diag *reterr);
bool skep_trace_write(
	void *writer, const struct skep_trace_event *event);      /* a skep_trace_sink; errors show at the end */
bool skep_trace_writer_close(struct skep_trace_writer *writer);   /* destroys it */
void skep_trace_writer_destroy(struct skep_trace_writer *writer); /* and its unfinished file; NULL is fine */
