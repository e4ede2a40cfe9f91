/* SPDX-License-Identifier: Apache-2.0
 *
 * rates.h - how fast a job's scenario trains on given machines of a shared cluster: skep's own expectation
 * (expected/expected.h), or where that is not known a few rounds of it in the simulator. Each is asked once for machines that
 * are alike.
 *
 * Machines are alike if their GPU, place, and ways in and out are. A job on n machines serves its stages with them in a row:
 * machine k of n has stage floor(k stages / n). What other jobs send at the same time is not counted: jobs have their links
 * to themselves.
 */
#pragma once

#include "scenarios/jobs/jobs_file.h"

struct skep_job_basis {                  /* of a type, on its own topology */
	uint32_t stages, workers, steps; /* steps 0: it does not say how many */
	double state_bytes;              /* parameters and optimizer state of all stages */
};

struct skep_job_rates;

/* The file stays where it is. NULL: no memory. */
struct skep_job_rates *skep_job_rates_create(const struct skep_jobs_file *file);
void skep_job_rates_destroy(struct skep_job_rates *rates); /* NULL is fine */

/* Types with one number here are the same scenario with the same changes. */
uint32_t skep_job_rates_group(const struct skep_job_rates *rates, uint32_t type);

/* Reads the scenario of a type as it is, with its changes. */
bool skep_job_rates_basis(
	const struct skep_job_rates *rates, uint32_t type, struct skep_job_basis *ret, struct skep_diag *reterr);

/* Steps per second on these machines, which rise; 0 and reterr: why it cannot run there. */
double skep_job_rates_ask(struct skep_job_rates *rates, uint32_t type, uint32_t stages, const uint32_t *machine,
	uint32_t machines, struct skep_diag *reterr);
uint32_t skep_job_rates_asked(const struct skep_job_rates *rates); /* that were found, each once */
