/* SPDX-License-Identifier: Apache-2.0
 *
 * order.h - the order in which an idle device does passes, one table for each kind of pipeline: swarm.c, gpipe.c,
 * interleaved.c, pipedream.c. What the directory does for fixed pipelines is fixed.c.
 */
#pragma once

#include "core/derived.h"

struct step;
struct worker;

/* Which workers of a pipeline may wait for what will not come, and have to be told (DRAIN). */
enum skep_drains { SKEP_DRAINS_NONE, SKEP_DRAINS_LAST, SKEP_DRAINS_ALL };

struct skep_order {
	void (*pick)(struct worker *w, struct step *step); /* gives an idle device its next pass, if there is one */
	void (*forwarded)(struct worker *w, struct step *step); /* the last stage has done one more FORWARD */
	enum skep_drains drains;
	bool drains_late; /* DRAIN is of use also when its round is not the open one */
};

extern const struct skep_order skep_order_swarm, skep_order_gpipe, skep_order_interleaved, skep_order_pipedream;

extern const struct skep_order *const skep_order_of[SKEP_PIPELINES];

/* May the worker begin another microbatch? What has come and was not begun does not count as held. */
bool skep_order_has_room(struct worker *w);
/* `forwarded` where no worker waits at a barrier: does nothing. */
void skep_order_no_barrier(struct worker *w, struct step *step);
