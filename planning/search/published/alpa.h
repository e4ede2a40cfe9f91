/* SPDX-License-Identifier: Apache-2.0
 *
 * alpa.h - the inter-operator planner of Zheng, Li, Zhang et al.: Alpa: Automating Inter- and Intra-Operator Parallelism for
 * Distributed Deep Learning. OSDI 2022, section 5: which layers make a stage, and which submesh of N hosts of M GPUs serves
 * it, for the least time of a step. All GPUs are used.
 *
 * Submeshes are (1, 2^p), a part of a host, and (n, M), whole hosts (section 5.2); such shapes always tile the mesh, and dealt
 * out in the order of the stages to the first hosts with room they do. How a stage is spread over its submesh is an option: a
 * tensor parallel degree inside of a host, and so many copies that are data parallel.
 *
 * In the paper all GPUs of a submesh share each microbatch, and a step of B of them takes the sum of the stages' times and
 * (B - 1) times the longest, t_max. Here copies take microbatches in turn, as workers of a stage do, so a stage with c copies
 * and the time t is passed once, and then has B / c - 1 microbatches to go; and what follows its last one is its own. All stages
 * have as many copies: pipelines that share the workers of smaller stages wait for each other, which no such formula knows.
 *
 *   T* = min over c and plans of  sum of t  +  max of (B / c - 1) t + after
 *      = min over c and r of { F(s, 0, D; r) + r },  F the least sum of the stages whose second part is no more than r
 *
 * which for c = 1, and with nothing after, is the paper's formula with r = (B - 1) t_max. F is found by its recurrence, from the
 * last stage to the first, over layers, GPUs, and the number s of stages, on which it depends how many microbatches 1F1B holds,
 * and so whether a stage fits memory. Values of r are taken from the largest down; those between two plans, and those that cannot
 * be better than what was found, are passed over. So it is exact.
 *
 * Ties go to what was found first: fewer copies, then later ends of a stage, then earlier options.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SKEP_ALPA_LAYERS 512u
#define SKEP_ALPA_OPTIONS 250u

struct skep_alpa_option {
	uint32_t gpus;   /* of the submesh: degree * copies */
	uint32_t degree; /* of a worker */
	uint32_t copies; /* workers of the stage */
};

struct skep_alpa_cost {       /* of a stage */
	double trip_s;        /* what a microbatch takes, forwards and backwards */
	double rest_s;        /* of the step, behind the first microbatch; INFINITY: it cannot be */
	uint32_t behind_most; /* with so many stages behind it, and no more, it fits memory */
};

struct skep_alpa {
	uint32_t layers, gpus, options;
	const struct skep_alpa_option *option;
	const struct skep_alpa_cost *cost; /* skep_alpa_at() */
};

struct skep_alpa_stage {
	uint32_t first, layers, option;
};

static inline size_t skep_alpa_at(const struct skep_alpa *alpa, uint32_t first, uint32_t end, uint32_t option)
{
	return ((size_t)first * (alpa->layers + 1) + end) * alpa->options + option;
}
static inline size_t skep_alpa_costs(const struct skep_alpa *alpa)
{
	return (size_t)alpa->layers * (alpa->layers + 1) * alpa->options;
}

/* The options of N hosts of M GPUs, M a power of two, that have so many microbatches: degrees up to M, copies that divide the
 * microbatches. ret [SKEP_ALPA_OPTIONS]. How many; UINT32_MAX: more than that. */
uint32_t skep_alpa_options(uint32_t hosts, uint32_t gpus, uint32_t microbatches, struct skep_alpa_option *ret);

size_t skep_alpa_size(const struct skep_alpa *alpa);
/* How many ways to make a stage are looked at for one r, about. */
double skep_alpa_ways(const struct skep_alpa *alpa);
/* T*; INFINITY: no plan can be. ret_stage [layers], *ret_stages of them. */
double skep_alpa_find(const struct skep_alpa *alpa, void *mem, struct skep_alpa_stage *ret_stage, uint32_t *ret_stages);

/* Deals the hosts out: a stage takes ret_gpus[stage * hosts + host] of each. */
void skep_alpa_place(const struct skep_alpa *alpa, const struct skep_alpa_stage *stage, uint32_t stages, uint32_t hosts,
	uint32_t *ret_gpus);
