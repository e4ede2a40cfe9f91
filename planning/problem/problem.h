/* SPDX-License-Identifier: Apache-2.0
 *
 * problem.h - the question that a scenario asks of planning/search: its links, the time of its stages on its machines, what moves
 * between them, what fits whom; and an answer turned back into what a scenario says.
 *
 * Who takes part: the workers that are there at the start. Stages may have unequal numbers of workers; fixed pipelines keep those
 * of the scenario, and where these are unequal the searches take each worker for a partner of all of the next stage.
 *
 * Links. Two views of the same topology, since a link that machines share is seldom used by one flow, nor always by all:
 *
 *   alone   what a flow gets when nothing else moves
 *   shared  ... when every machine of its place sends over the same shared line as well, and every machine of the other place
 *           receives: each gets an even part
 *
 * A search is made with each, and the simulator, which knows who really sends, chooses between what they find.
 *
 * Memory. What a stage takes depends on how many serve it, because more is in flight for each where there are few. need_bytes
 * is what it takes at least, whatever the sizes are; with those of an allocation the cost asks memory_limits.h, so what it calls
 * possible fits.
 *
 * Left out. `problem` leaves out only machines that can hold no stage whatever the sizes are; `lean` may leave out any. Both
 * but for fixed pipelines, of which the file says how many there are. Who stands by in the scenario is none of the planning's.
 */
#pragma once

#include "base/diag.h"
#include "planning/problem/memory_limits.h"
#include "planning/search/throughput.h"
#include "scenarios/read/scenario.h"

enum skep_contention { SKEP_UNCONTENDED, SKEP_CONTENDED, SKEP_CONTENTIONS };

struct skep_planning {
	const struct skep_scenario *scenario;
	uint32_t workers, stages;
	uint32_t *machine; /* [workers] which worker of the scenario, rising */
	uint32_t *type;    /* [workers] its GPU in the topology */
	struct skep_memory_limits room;
	double *delay_s; /* [workers * workers] */
	double *rate_Bps[SKEP_CONTENTIONS];
	struct skep_links links[SKEP_CONTENTIONS];
	uint32_t *least, *most; /* [stages] */
	uint64_t *need_bytes;   /* [stages] */
	uint64_t *have_bytes;   /* [workers] */
	uint32_t *kind;         /* [workers] */
	struct skep_problem problem, lean;
	uint32_t idle;                /* workers that can hold no stage */
	double *compute_s, *update_s; /* [workers * stages] */
	double *directory_s;          /* [workers] to the directory and back */
	uint32_t *place;              /* [workers] of the topology */
	double *rent;                 /* [workers] USD per second; NULL: not known of all */
	double standing_rent; /* USD per second of machines that stand by, in every allocation; NAN: not known */
	double *rounds; /* [workers + 1] of struct skep_throughput; NULL: no loss is aimed at, or they are all the same */
	double *forward_bytes, *backward_bytes, *reduced_bytes; /* [stages] */
	struct skep_throughput throughput[SKEP_CONTENTIONS];
};

/* The scenario must stay where it is. False: `reterr` says why it cannot be planned, and *ret is empty. */
bool skep_planning_make(const struct skep_scenario *scenario, struct skep_planning *ret, struct skep_diag *reterr);
void skep_planning_finish(struct skep_planning *planning);

/* How many times the rounds of the start this allocation wants until the loss that is aimed at: its costs are those of a step so
 * many times. 1 where none is. */
double skep_planning_rounds(const struct skep_planning *planning, const uint32_t *stage_of);

/* The two halves of it: what is asked, and whether there is an allocation at all. After pose() without check() nothing may be
 * searched for; another cut of the model may mend it (cuts.h). */
bool skep_planning_pose(const struct skep_scenario *scenario, struct skep_planning *ret, struct skep_diag *reterr);
bool skep_planning_check(const struct skep_planning *planning, struct skep_diag *reterr);

/* The scenario's own allocation, [workers]; false: some worker that is there serves no stage. */
bool skep_planning_start(const struct skep_planning *planning, uint32_t *ret_stage_of);

/* Are parts of its workers by their speed? The first stage's are dealt out (core/directory/dealing.c), and the others' are by
 * their senders' wiring. */
bool skep_planning_by_speed(const struct skep_planning *planning, uint32_t stage);
/* Wired by latency a sender counts the way to a worker and back beside how long that computes. Trainers that route
 * microbatches do so as well, but here they are taken to choose by speed alone. */
bool skep_planning_by_latency(const struct skep_planning *planning);
double skep_planning_ways_s(const struct skep_planning *planning, uint32_t from, uint32_t to); /* both; else 0 */
/* Of which parts are made: a worker's weight among those of its stage; and that of worker `to` of the next stage for a sender, a
 * microbatch of which waits so long on the lines to it and back. */
double skep_planning_weight(const struct skep_planning *planning, const uint32_t *stage_of, uint32_t worker);
double skep_planning_weight_for(
	const struct skep_planning *planning, const uint32_t *stage_of, uint32_t from, uint32_t to, double wait_s);
/* Both passes of a microbatch in the stage that the worker serves. */
double skep_planning_compute_s(const struct skep_planning *planning, const uint32_t *stage_of, uint32_t worker);

/* SWARM's start: even sizes, shuffled by the seed. */
void skep_planning_random(const struct skep_planning *planning, uint64_t seed, uint32_t *ret_stage_of);

/* `cluster.allocation={...}` as --set takes it; the caller frees it. NULL: no memory. */
char *skep_planning_assignment(const struct skep_planning *planning, const uint32_t *stage_of);
