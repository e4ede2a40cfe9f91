/* SPDX-License-Identifier: Apache-2.0
 *
 * relaxed.c - continuous relaxation: a worker is at every stage with some probability, and gradient descent makes up its mind.
 *
 * Liu, Simonyan, Yang: DARTS: Differentiable Architecture Search. ICLR 2019, section 2.3, for the frame: softmax over choices,
 * descent on a smooth cost, then the likeliest choice. Here the temperature of the softmax falls as well, so that
 * probabilities end near 0 and 1; sizes are kept by a penalty; and rounding takes the surest choices first while there is
 * room, then repairs.
 *
 * The smooth cost, of probabilities P[w][s] of worker w at stage s, of sizes n[s], from the stand-ins of struct skep_search:
 *
 *   sum over s, w, v  P[w][s] P[v][s] together[w][v] / workers               the mean of what a worker has in its stage
 *   2 sum over s, w   P[w][s] / n[s] * n[s+1] / sum over v P[v][s+1] / along[w][v]
 *                       how far it is to the next stage, as the harmonic mean, to which the nearest count most: a worker
 *                       needs one partner there, not all
 *   sum over s, w     P[w][s] alone[w][s] / n[s]
 *   penalty sum over s  (sum over w P[w][s] - n[s])^2
 *
 * Several descents from random beginnings, each rounded and asked about; what is left of the budget goes into descents by
 * single changes from the best.
 */
#include <string.h>

#include "planning/search/exponential.h"
#include "planning/search/hunt.h"

#define STEPS 60u
#define DESCENTS 12u
#define DESCENTS_OF_MANY 2u
#define HOT 1.0
#define FALL 3.0 /* the temperature ends at exp(-3) of that */
#define RATE 0.5 /* of a step: logits change by so much at most */

struct cloud {
	struct hunt *h;
	double *logit, *chance, *slope; /* [workers * stages] */
	double *reach;                  /* [workers * stages] sum over v of P[v][s] / along[w][v] */
	double *size, *mass;            /* [stages] wanted, and sum of P */
	uint32_t *stage_of, *count;
	double scale; /* of the cost, so that the penalty weighs as much */
};

static double nearness(const struct hunt *h, uint32_t w, uint32_t v)
{
	double s = h->search->along_s[(size_t)w * h->workers + v];
	return s > 1e-12 ? 1 / s : 1e12;
}

static double apart(const struct hunt *h, uint32_t w, uint32_t v)
{
	double s = h->search->together_s[(size_t)w * h->workers + v];
	return s < 1e12 ? s : 1e12;
}

static void soften(struct cloud *c, double temperature)
{
	uint32_t stages = c->h->stages;
	memset(c->mass, 0, stages * sizeof *c->mass);
	for (uint32_t w = 0; w < c->h->workers; w++) {
		double *logit = c->logit + (size_t)w * stages, *chance = c->chance + (size_t)w * stages, sum = 0,
		       most = -SKEP_NEVER;
		for (uint32_t s = 0; s < stages; s++)
			most = logit[s] > most && skep_bounds_may(&c->h->bounds, w, s) ? logit[s] : most;
		for (uint32_t s = 0; s < stages; s++) {
			bool may = skep_bounds_may(&c->h->bounds, w, s);
			chance[s] = may ? skep_exp_minus((most - logit[s]) / temperature) : 0;
			sum += chance[s];
		}
		for (uint32_t s = 0; s < stages; s++) {
			chance[s] = sum > 0 ? chance[s] / sum : 0;
			c->mass[s] += chance[s];
		}
	}
}

/* slope += of what workers of one stage cost each other */
static void add_together(struct cloud *c)
{
	const struct hunt *h = c->h;
	for (uint32_t w = 0; w < h->workers; w++)
		for (uint32_t v = 0; v < h->workers; v++) {
			double s = v == w ? 0 : (apart(h, w, v) + apart(h, v, w)) / h->workers;
			for (uint32_t t = 0; t < h->stages; t++)
				c->slope[(size_t)w * h->stages + t] += s * c->chance[(size_t)v * h->stages + t];
		}
}

/* slope += of how far it is to the next stage: P[w][t] n[t+1] / (n[t] reach), and through reach of those who are reached */
static void add_along(struct cloud *c)
{
	const struct hunt *h = c->h;
	uint32_t stages = h->stages;
	memset(c->reach, 0, (size_t)h->workers * stages * sizeof *c->reach);
	for (uint32_t w = 0; w < h->workers; w++)
		for (uint32_t v = 0; v < h->workers; v++)
			for (uint32_t t = 0; v != w && t < stages; t++)
				c->reach[(size_t)w * stages + t] +=
					c->chance[(size_t)v * stages + t] * nearness(h, w, v);
	for (uint32_t w = 0; w < h->workers; w++)
		for (uint32_t t = 0; t + 1 < stages; t++) {
			double reach = c->reach[(size_t)w * stages + t + 1] + 1e-9,
			       ratio = 2 * c->size[t + 1] / c->size[t];
			double back = c->chance[(size_t)w * stages + t] * ratio / (reach * reach);
			c->slope[(size_t)w * stages + t] += ratio / reach;
			for (uint32_t v = 0; v < h->workers; v++)
				if (v != w)
					c->slope[(size_t)v * stages + t + 1] -= back * nearness(h, w, v);
		}
}

static double largest(const double *value, size_t count)
{
	double most = 0;
	for (size_t i = 0; i < count; i++) {
		most = value[i] > most ? value[i] : most;
		most = -value[i] > most ? -value[i] : most;
	}
	return most;
}

static void find_slope(struct cloud *c)
{
	const struct skep_search *search = c->h->search;
	uint32_t workers = c->h->workers, stages = c->h->stages;
	size_t all = (size_t)workers * stages;
	memset(c->slope, 0, all * sizeof *c->slope);
	if (search->together_s)
		add_together(c);
	if (search->along_s && stages > 1)
		add_along(c);
	for (uint32_t w = 0; w < workers && search->alone_s; w++)
		for (uint32_t s = 0; s < stages; s++) {
			double alone = search->alone_s[(size_t)w * stages + s];
			c->slope[(size_t)w * stages + s] += (alone < 1e12 ? alone : 1e12) / c->size[s];
		}
	c->scale = largest(c->slope, all);
	for (uint32_t w = 0; w < workers; w++)
		for (uint32_t s = 0; s < stages; s++)
			c->slope[(size_t)w * stages + s] += c->scale * 4 * (c->mass[s] - c->size[s]) / c->size[s];
}

/* Through the softmax, and a step down that changes no logit by more than RATE. */
static void descend(struct cloud *c)
{
	uint32_t stages = c->h->stages;
	double most = 0;
	for (uint32_t w = 0; w < c->h->workers; w++) {
		double *slope = c->slope + (size_t)w * stages, *chance = c->chance + (size_t)w * stages, mean = 0;
		for (uint32_t s = 0; s < stages; s++)
			mean += slope[s] * chance[s];
		for (uint32_t s = 0; s < stages; s++)
			slope[s] = chance[s] * (slope[s] - mean);
		double here = largest(slope, stages);
		most = here > most ? here : most;
	}
	for (size_t i = 0; i < (size_t)c->h->workers * stages && most > 0; i++)
		c->logit[i] -= RATE * c->slope[i] / most;
}

/* The surest choices first, where there is room. */
static void round_off(struct cloud *c)
{
	uint32_t workers = c->h->workers, stages = c->h->stages;
	memset(c->count, 0, stages * sizeof *c->count);
	for (uint32_t w = 0; w < workers; w++)
		c->stage_of[w] = SKEP_UNDECIDED;
	for (uint32_t n = 0; n < workers; n++) {
		double best = -1;
		uint32_t who = SKEP_NO_WORKER, where = 0;
		for (uint32_t w = 0; w < workers; w++)
			for (uint32_t s = 0; c->stage_of[w] == SKEP_UNDECIDED && s < stages; s++)
				if (c->chance[(size_t)w * stages + s] > best && c->count[s] < c->size[s]) {
					best = c->chance[(size_t)w * stages + s];
					who = w;
					where = s;
				}
		if (who == SKEP_NO_WORKER)
			break;
		c->stage_of[who] = where;
		c->count[where]++;
	}
	skep_bounds_repair(&c->h->bounds, c->stage_of, c->count);
}

static void carve_cloud(struct cloud *d, struct skep_search_carve *c)
{
	size_t all = (size_t)d->h->workers * d->h->stages;
	d->logit = skep_search_carve(c, all, sizeof *d->logit);
	d->chance = skep_search_carve(c, all, sizeof *d->chance);
	d->slope = skep_search_carve(c, all, sizeof *d->slope);
	d->reach = skep_search_carve(c, all, sizeof *d->reach);
	d->size = skep_search_carve(c, d->h->stages, sizeof *d->size);
	d->mass = skep_search_carve(c, d->h->stages, sizeof *d->mass);
	d->stage_of = skep_search_carve(c, d->h->workers, sizeof *d->stage_of);
	d->count = skep_search_carve(c, d->h->stages, sizeof *d->count);
}

void skep_search_relaxed(struct hunt *h, struct skep_search_carve *c)
{
	struct cloud d = {.h = h};
	carve_cloud(&d, c);
	if (!c->mem)
		return;
	skep_search_state_contiguous(h, d.stage_of); /* for the sizes */
	memset(d.size, 0, h->stages * sizeof *d.size);
	for (uint32_t w = 0; w < h->workers; w++)
		if (d.stage_of[w] < h->stages)
			d.size[d.stage_of[w]]++;
	uint32_t descents = h->workers > SKEP_SEARCH_MANY ? DESCENTS_OF_MANY : DESCENTS;
	for (uint32_t n = 0; n < descents && (n == 0 || !skep_search_state_over(h)); n++) {
		for (size_t i = 0; i < (size_t)h->workers * h->stages; i++)
			d.logit[i] = skep_random_unit(&h->random);
		for (uint32_t i = 0; i <= STEPS; i++) {
			soften(&d, HOT * skep_exp_minus(FALL * i / STEPS));
			if (i == STEPS)
				break;
			find_slope(&d);
			descend(&d);
		}
		round_off(&d);
		skep_search_state_begin(h, d.stage_of);
	}
	if (skep_search_state_over(h))
		return;
	skep_search_state_begin(h, h->best_of);
	skep_search_state_descend(h);
}
