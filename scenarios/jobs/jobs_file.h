/* SPDX-License-Identifier: Apache-2.0
 *
 * jobs_file.h - many jobs on one cluster, as a file says it: the topology and its hosts, the policies to compare, and jobs with
 * their arrivals: in a list, from a trace, or drawn. docs/reference/jobs.md lists the keys.
 *
 * Kept true: jobs are in order of arrival, the first one at 0 or later; a job's type exists. What a job's scenario makes of its
 * machines is not known here: planning/jobs/ finds it, and says at its node what is wrong.
 */
#pragma once

#include "base/files/files.h"
#include "base/reader.h"
#include "core/jobs/jobs.h"
#include "topologies/read/topology.h"

#define SKEP_JOBS_POLICIES_MAX 6u
#define SKEP_JOBS_MACHINES_MAX 4096u
#define SKEP_JOBS_MAX 1000000u

struct skep_job_type { /* what jobs of a kind have in common; an entry of a list of jobs is one of its own */
	char name[64];
	char scenario[512]; /* its file */
	char **set;         /* [sets] KEY=VALUE, as --set takes them */
	uint32_t sets;
	uint32_t machines, min, max; /* 0: not said */
	uint32_t steps;              /* 0: as the scenario says */
	double share;                /* of the jobs whose type is drawn */
	struct skep_jobs_needs needs;
	double *numbers; /* that `needs` points into */
	const struct skep_yaml_node *node;
};

struct skep_job_entry {
	char name[64];
	skep_time arrival_ns;
	double duration_s; /* with what it asks for; 0: as long as its steps take */
	uint32_t type;
	uint32_t machines; /* that it asks for; 0: as its type says */
	uint32_t line;     /* of the trace; 0: it is of no trace */
};

struct skep_jobs_file {
	char name[64], path[512];
	char *text; /* with overrides, for the database */
	uint64_t seed;
	char topology_path[512];
	struct skep_topology topology;
	uint32_t host_machines;        /* so many machines, one after the other, are a host */
	double host_cpus, host_memory; /* of a host; 0: not said */
	double restart_s, checkpoint_Bps;
	uint32_t policies;
	char policy_name[SKEP_JOBS_POLICIES_MAX][16];
	struct skep_jobs_policy policy[SKEP_JOBS_POLICIES_MAX];
	struct skep_job_type *type; /* [types] */
	uint32_t types;
	struct skep_job_entry *job; /* [jobs] by arrival */
	uint32_t jobs;
	char trace_path[512];   /* "": jobs are of no trace */
	struct skep_yaml *yaml; /* the file, for errors at its nodes */
	struct skep_files files;
};

struct skep_jobs_options {
	const char *const *set; /* [sets] */
	uint32_t sets;
	bool has_seed;
	uint64_t seed;
	const char *policies; /* words with commas between them, in place of the file's; NULL: the file's */
};

/* On failure *ret is empty, and finishing it does nothing. */
bool skep_jobs_file_read(const char *path, const struct skep_jobs_options *options, struct skep_jobs_file *ret,
	struct skep_diag *reterr);
void skep_jobs_file_finish(struct skep_jobs_file *file);
