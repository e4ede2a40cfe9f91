/* SPDX-License-Identifier: Apache-2.0
 *
 * parts.h - the parts of a file of jobs, each in a file of its own. Private to this folder.
 */
#pragma once

#include "scenarios/jobs/jobs_file.h"

struct skep_jobs_draft {
	struct skep_jobs_file *file;
	struct skep_reader r;
};

/* A whole number from YAML as a time, which is refused above 10^9 s. */
#define SKEP_JOBS_TIME_S_MAX 1e9

/* types.c: a map or the name of a scenario as one more type; `in` is what errors call it. False: an error. */
bool skep_jobs_read_type(struct skep_jobs_draft *d, const struct skep_yaml_node *node, const char *in, bool listed);
bool skep_jobs_read_types(struct skep_jobs_draft *d, const struct skep_yaml_node *jobs);

/* arrivals.c: the jobs of a list, of a trace, or drawn. */
void skep_jobs_read_arrivals(struct skep_jobs_draft *d, const struct skep_yaml_node *root);

/* The number of a type by its name; file->types: there is none. */
uint32_t skep_jobs_find_type(const struct skep_jobs_file *file, const char *name, size_t length);
