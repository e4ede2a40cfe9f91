/* SPDX-License-Identifier: Apache-2.0
 *
 * policy.h - what a plan says of the machines that a run asks for, which scale.h decides by.
 */
#pragma once

#include "core/plan.h"

enum skep_scale_policy {
	SKEP_SCALE_DEADLINE, /* as few as finish in time */
	SKEP_SCALE_PRICE,    /* while one more is worth its price */
	SKEP_SCALE_POLICIES
};
#define SKEP_SCALE_KINDS_MAX 16u

struct skep_scale_kind {  /* machines that are alike in speed and price */
	uint32_t workers; /* of the plan that are */
	uint32_t speed;   /* of one, from 1 to SKEP_SPEED_MAX, of which only ratios count */
	uint32_t start;   /* that are there at the start */
	uint32_t example; /* one of them, whose price is that of all */
};

/* In a swarm, without candidates, standbys and SKEP_ON_LOSS_WAIT. */
struct skep_scale {
	enum skep_scale_policy policy;
	uint32_t kinds; /* from 1 to SKEP_SCALE_KINDS_MAX */
	const struct skep_scale_kind *kind;
	const uint32_t *kind_of;         /* [workers] */
	uint32_t min, max;               /* machines, of all kinds together */
	skep_time deadline_ns;           /* SKEP_SCALE_DEADLINE: of the run's time */
	skep_time period_ns;             /* between two decisions, at least */
	skep_time cool_down_ns;          /* from a change until machines may be given back, and until a kind is short */
	uint64_t budget_microusd_per_h;  /* that all machines may cost together, beyond `min`; 0: no limit */
	uint64_t machine_microusd_per_h; /* the same of one machine */
	uint32_t margin_ppm;             /* half of the band in which nothing changes */
	uint32_t share_ppm; /* SKEP_SCALE_PRICE: of the mean throughput per price that one machine more has to bring */
};
