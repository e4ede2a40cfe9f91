/* SPDX-License-Identifier: Apache-2.0
 *
 * loop.h - one machine of the core in real time: what skep_node_step() asks for is done, and what happens is told to it.
 */
#pragma once

#include <stdatomic.h>

#include "base/diag.h"
#include "exec/exec.h"
#include "exec/loop/clock.h"
#include "exec/transport/rejects.h"
#include "exec/transport/transport.h"

struct skep_plane;
struct skep_post_mortem;

/* Who decides which process gets the place of a lost worker. All NULL: any spare process will do, and no more come than
 * are there. */
struct skep_newcomers {
	void *context;
	uint32_t (*fit)(void *context, uint32_t worker, uint32_t rank); /* how well, 0: not at all */
	void (*placed)(void *context, uint32_t worker, uint32_t rank);  /* it has the place now */
};

struct skep_loop_setup {
	const struct skep_scenario *scenario;
	bool pace, shape;
	struct skep_device *device; /* NULL on rank 0; each later life of a worker has a new one */
	enum skep_device_kind device_kind;
	struct skep_device_place device_place;
	struct skep_keeper keeper;            /* of every life's device; zero: the scenario has no checkpoints */
	struct skep_post_mortem *post_mortem; /* [ranks] in memory that all ranks share, or NULL */
	/* [ranks * (workers + 1) * SKEP_TRAFFICS] what each has sent, in such memory, all zero; or NULL: what a process has not
	 * told of when it dies is not known. */
	struct skep_link_use *used;
	struct skep_transport *transport;
	struct skep_plane *
		plane; /* that `transport` is of; NULL: there is one alone, as in every run without tensor parallelism */
	atomic_bool *abandoned; /* with planes: set when the run ends early, so that no pass waits for another plane */
	const struct skep_clock *clock;
	const struct skep_recorder *recorder; /* rank 0; else NULL */
	struct skep_rejects *rejects;
	int signal_fd; /* readable when the run shall end early, or, of a worker, when it shall leave; -1: none */
	/* Where processes join while the run goes on: */
	const bool *absent;              /* [ranks] of no process yet; NULL: all are there */
	struct skep_newcomers newcomers; /* rank 0 */
	/* Rank 0, with cluster.scale: so many machines of the kind are wanted from now on. NULL: there is no way to ask. */
	void (*scale)(void *context, uint32_t kind, uint32_t machines);
	void *scale_context;
	/* Rank 0 is lost to this worker: from now on the keeper keeps states by itself, and is about to be given the one that the
	 * worker holds. NULL: none is kept then. */
	void (*orphaned)(void *context);
	void *orphaned_context;
	uint64_t farewell_ns; /* of a worker that shall leave: from the notice that the core is given to its end */
};

/* Runs the machine of transport->rank to its end, or whatever machines it gets to run. Afterwards setup->device is the caller's
 * again. *ret_clean: all ranks have said good-bye and nothing is under way. */
bool skep_loop_run(
	struct skep_loop_setup *setup, struct skep_exec_result *ret, bool *ret_clean, struct skep_diag *reterr);

/* How long rank 0 waits for the workers once the directory has ended: with pace, a worker may have just begun the longest
 * operation of the plan. */
uint64_t skep_loop_patience_ns(const struct skep_scenario *scenario, bool pace);
