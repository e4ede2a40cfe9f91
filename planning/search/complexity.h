/* SPDX-License-Identifier: Apache-2.0
 *
 * complexity.h - how many bytes a step moves, by class of link: what grows with the batch, the stages and the model.
 *
 * A microbatch, b samples of L tokens of H numbers, is sent from device to device so many times, there and back:
 *
 *   2 (v S - 1)  past the cuts of S stages of v virtual stages each, also from the last stage to the first
 *   5 S - 8      where trainers route: from its owner to each of the later stages and back, and once more with its gradient to
 *                all of them but the last
 *
 *   pipeline   B times that, times b L H numbers, for B microbatches a step
 *   reduction  2 (n - 1) V bytes in a stage of n workers, V bytes of gradients, once in `period` steps
 *
 * Which links carry it depends on the allocation: a swarm's microbatch goes from each worker to each of the next stage in
 * proportion to their shares, or, routed by trainers, from its owner to each of the later stages and back, with its input
 * once more beside its gradient; interleaved, also from the last worker of a pipeline to its first and back. Who sends
 * how much to whom once in a round, in reductions and what goes with them, the caller says. Headers and acknowledgements are
 * left out.
 */
#pragma once

#include "planning/search/allocation.h"

struct skep_complexity {     /* the closed form */
	double microbatches; /* B of a step */
	uint32_t stages;     /* S */
	uint32_t sent;       /* times that a microbatch is sent, skep_complexity_sent() */
	double samples;      /* b of a microbatch */
	double tokens;       /* L of a sample; 1 where there are none */
	double width;        /* H numbers of a token */
	double number_bytes; /* as a number travels */
	double parameters;   /* of the model, spread evenly over the stages */
	double workers;      /* spread evenly over the stages */
	double period;       /* steps from reduction to reduction */
};

struct skep_complexity_bytes { /* a step, all links together */
	double pipeline, reduction;
};

/* Of one microbatch, there and back; `chunks` virtual stages in each stage, one where trainers route. */
uint32_t skep_complexity_sent(uint32_t stages, uint32_t chunks, bool by_owner);

struct skep_complexity_bytes skep_complexity_of(const struct skep_complexity *complexity);

/* Hears of bytes that one worker sends to another once in a round. */
typedef void skep_carry_sum(void *context, uint32_t source, uint32_t destination, double bytes);

struct skep_step_traffic { /* the same of one allocation, cut by cut */
	uint32_t workers, stages;
	const double *share; /* [workers] part of its stage's microbatches; NULL: equal */
	/* Of all microbatches those that one worker sends to another of the next stage; NULL: both have their shares of them. */
	double (*part)(const void *of_part, uint32_t from, uint32_t to);
	const void *of_part;
	bool fixed;                                     /* pipeline p is worker p mod r of each stage of r */
	const double *forward_bytes, *backward_bytes;   /* [stages] of a microbatch, to and from the next stage */
	bool by_owner;                                  /* trainers route */
	double wrap_forward_bytes, wrap_backward_bytes; /* of a microbatch, from the last stage to the first; back */
	/* Names what workers send each other in a round beside passes; `scratch` [workers]. */
	void (*round)(const void *of_round, const uint32_t *stage_of, uint32_t *scratch, skep_carry_sum *carry,
		void *context);
	const void *of_round;
	double microbatches, period;
	uint32_t classes;
	uint32_t (*class_of)(const void *context, uint32_t source, uint32_t destination); /* below classes */
	const void *context;
};

/* Hears what one worker sends to another in a step; a pair may come more than once. */
typedef void skep_carry(void *context, uint32_t source, uint32_t destination, struct skep_complexity_bytes bytes);
/* Classes are not asked for. `scratch` is [stages + workers]. */
void skep_traffic_each(const struct skep_step_traffic *traffic, const uint32_t *stage_of, uint32_t *scratch,
	skep_carry *carry, void *context);

/* ret [classes]. `scratch` is [stages + workers]. */
void skep_traffic_by_class(const struct skep_step_traffic *traffic, const uint32_t *stage_of, uint32_t *scratch,
	struct skep_complexity_bytes *ret);
