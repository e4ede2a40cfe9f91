/* SPDX-License-Identifier: Apache-2.0
 *
 * route.h - how microbatches travel through the stages: who may send them to whom, and what a worker does when a pass is
 * done, when a tensor comes, when a neighbour is gone. pipeline.c does what is the same for both ways.
 *
 *   route_peer.c     from worker to worker; each waits for the gradient of what it sent, and keeps input and stash until then
 *   route_trainer.c  through the owner, who waits for each stage in turn; the others keep nothing between two visits
 */
#pragma once

#include "core/skep.h"

struct worker;
struct step;
struct skep_work;

struct route {
	/* FORWARD is done, of a stage before the last: work->gradient is what it put out. May remove the work. */
	void (*forwarded)(struct worker *w, struct step *step, struct skep_work *work);
	/* Chooses who gets the work next and sends it there, or lets it wait for a worker. */
	void (*go_on)(struct worker *w, struct step *step, struct skep_work *work);
	void (*on_output)(struct worker *w, struct step *step, const struct skep_message *message);
	void (*on_input)(struct worker *w, struct step *step, const struct skep_message *message);
	void (*on_backward)(struct worker *w, struct step *step, const struct skep_message *message);
	/* A worker is gone, perhaps one that this work has to do with. May remove the work. */
	void (*gone)(struct worker *w, struct step *step, struct skep_work *work, struct skep_peer gone);
	/* True if the work waits for a worker that has counted nothing yet, unless it has begun. */
	bool (*outward)(const struct skep_plan *plan, const struct skep_work *work);
	/* That one has dropped it: to another one. May remove the work. */
	void (*take_back)(struct worker *w, struct step *step, struct skep_work *work);
	/* The FORWARD that took the work outward came back from one that never had it, with this payload: to another one. */
	void (*send_elsewhere)(struct worker *w, struct step *step, struct skep_work *work, struct skep_buf payload);
	/* A tensor of the pipeline could not be delivered: is it of use still? */
	bool (*wants)(struct worker *w, const struct step *step, const struct skep_message *message);
};

extern const struct route skep_route_peer, skep_route_trainer;

/* Do workers of stage `from` send microbatches to those of stage `to`, if that is one? */
static inline bool route_leads(const struct skep_plan *plan, uint32_t from, uint32_t to)
{
	if (plan->routing == SKEP_ROUTING_TRAINER)
		return from == 0 && to > 0 && to < plan->stages;
	if (skep_plan_model_chunks(plan) > 1 && from + 1 == plan->stages)
		return to == 0;
	return to == from + 1;
}

/* Stages among whose workers one worker may have to choose; it has a view of each. */
static inline uint32_t route_views(const struct skep_plan *plan)
{
	return plan->routing == SKEP_ROUTING_TRAINER && plan->stages > 1 ? plan->stages - 1 : 1;
}
