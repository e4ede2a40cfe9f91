/* SPDX-License-Identifier: Apache-2.0
 *
 * record_run.h - a real run by the process that records it, whatever starts its workers: into the database, onto the screen, and
 * to an exit status.
 */
#pragma once

#include "commands/arguments.h"
#include "exec/exec.h"

struct record_run {
	enum skep_device_kind device;
	bool pace, shape;
	/* Trains, and reports to the recorder. False: the run could not go on, for the reason in reterr. */
	bool (*run)(void *context, const struct skep_scenario *scenario, const struct skep_recorder *recorder,
		struct skep_exec_result *ret, struct skep_diag *reterr);
	void (*refused)(void *context); /* the database takes no run; NULL: nothing else has to know */
	void *context;
};

/* All is said when it returns. */
enum status skep_record_run(const struct arguments *arguments, const struct record_run *how,
	const struct skep_scenario *scenario, struct skep_exec_result *ret);
