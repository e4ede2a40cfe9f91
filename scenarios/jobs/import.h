/* SPDX-License-Identifier: Apache-2.0
 *
 * import.h - tables of production clusters as traces of jobs, in the form that a file of jobs reads (arrivals.c).
 *
 *   pai     pai_task_table.csv of Alibaba's cluster-trace-gpu-v2020, with its row of names or without. The tasks of a job are
 *           one: it arrives when the first is launched and ends with the last, on as many machines as its instances have
 *           GPUs, parts of a GPU rounded up for each instance. Tasks without a GPU, and jobs that did not end well, are left out
 *   openb   openb_pod_list*.csv of Alibaba's cluster-trace-gpu-v2023: a pod arrives when it is created and stays as long as
 *           from its schedule to its deletion. Pods without a GPU, pods that never ran, and those there until the last
 *           deletion are left out
 */
#pragma once

#include "base/files/lines.h"
#include "core/plan.h"

enum skep_jobs_format { SKEP_JOBS_DETECT, SKEP_JOBS_PAI, SKEP_JOBS_OPENB, SKEP_JOBS_FORMATS };
extern const char *const skep_jobs_format_names[SKEP_JOBS_FORMATS + 1]; /* NULL at the end */

#define SKEP_JOBS_WRITTEN "# written by: skep trace jobs"

struct skep_jobs_import_options {
	enum skep_jobs_format format;
	double start_s, end_s; /* of the table's time: jobs that arrive then, counted from the start */
	const char *source, *licence;
};

struct skep_jobs_import_report {
	enum skep_jobs_format format;
	uint64_t rows, jobs;
	uint64_t without_gpu, not_ended, outside; /* rows or jobs that are left out; outside: of start and end */
	uint64_t parts;                           /* jobs that asked for a part of a GPU, and have one machine for it */
	uint32_t machines_most;
	double machine_s, last_s; /* machine-seconds of all; the last arrival */
};

/* Writes `to` when all of `path` was read. */
bool skep_jobs_import(const char *path, const char *to, const struct skep_jobs_import_options *options,
	struct skep_jobs_import_report *ret, struct skep_diag *reterr);

/* ---- private to this folder ------------------------------------------------------------------------------------------ */

struct skep_jobs_row {
	char name[64];
	skep_time arrival_ns, end_ns; /* it stays from begin to end, which may be after it arrived */
	skep_time begin_ns;
	uint32_t machines;
	bool part, whole; /* whole: it ended well */
};

struct skep_jobs_rows {
	struct skep_lines lines;
	struct skep_jobs_row *row;
	uint32_t count;
	struct skep_jobs_import_report *report;
};

bool skep_jobs_put(struct skep_jobs_rows *rows, const struct skep_jobs_row *row);

/* Each reads from the line at hand, the first one, to the end. */
bool skep_jobs_read_pai(struct skep_jobs_rows *rows);
bool skep_jobs_read_openb(struct skep_jobs_rows *rows);
