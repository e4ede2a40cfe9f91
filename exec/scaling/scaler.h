/* SPDX-License-Identifier: Apache-2.0
 *
 * scaler.h - calls a command of the user's with the number of machines that a served run wants: `serve --scale-command`.
 *
 * The command is told a level, not a difference: it is called for each kind at the start, when another number is wanted, when a
 * machine is lost while fewer are there than are wanted, again after a cool-down while that lasts, and with 0 when the run is
 * done. It finds in its environment
 *
 *     SKEP_SCALE_KIND      the kind, as `skep check` lists it: what `skep join --gpu` takes
 *     SKEP_SCALE_WANTED    so many are wanted
 *     SKEP_SCALE_PRESENT   so many take part now
 *     SKEP_SERVER          HOST:PORT, and
 *     SKEP_TICKET          what `skep join` needs
 *
 * What is kept true: one call at a time, in a thread of its own, so the run never waits for it. One that fails, or takes too
 * long, is said and made again after pauses that grow, with the number that is wanted by then. Its stdin is empty, its
 * stdout is stderr.
 */
#pragma once

#include "base/diag.h"
#include "core/record.h"
#include "scenarios/read/scenario.h"

struct skep_scaler;

struct skep_scaler_setup {
	const struct skep_scenario *scenario; /* with cluster.scale */
	const char *command;                  /* for /bin/sh */
	bool quiet;
};

/* In this order: create; begin, from where the command is called, first with the numbers of the start; destroy. NULL: no memory.
 * What the setup points to stays. */
struct skep_scaler *skep_scaler_create(const struct skep_scaler_setup *setup, struct skep_diag *reterr);
bool skep_scaler_begin(struct skep_scaler *scaler, const char *server, const char *ticket,
	struct skep_diag *reterr); /* false: no thread */
/* done: the run is, and no machine is wanted any more. Waits for the end of a call. NULL is fine. */
void skep_scaler_destroy(struct skep_scaler *scaler, bool done);

void skep_scaler_want(void *scaler, uint32_t kind, uint32_t machines);
/* What tells it who takes part. */
struct skep_recorder skep_scaler_recorder(struct skep_scaler *scaler);
