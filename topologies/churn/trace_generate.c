/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_generate.c - draws a trace. Every one of the wanted machines has exactly one event ahead: its death while it is
 * alive, the answer to a request for it while it is not.
 *
 * Lifetimes are drawn from the distribution when a machine joins.
 *
 * Bursts: at the earliest death that is not yet in a burst, a size b is drawn; that death and the b - 1 next ones all
 * happen at the mean of their b times. So the sum of the lifetimes stays what was drawn, and nearly their distribution
 * as well while a burst is a small part of all machines; a large burst evens lifetimes out.
 *
 * Requests: a lost machine is requested at once; each answer comes after an exponential wait, and a refused request is
 * made again.
 *
 * Diurnal: of N machines N (1 - A (1 - cos(2 pi t / 24 h)) / 2) are wanted. No machine is sent away for it, but a
 * request is held back while enough machines are alive. Times are whole ms. The same options give the same trace.
 */
#include "topologies/churn/trace_generate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "core/random.h"

#define WAIT_MIN_S 1.0

struct pending {
	double at_s;
	enum { DEATH, SETTLED, ANSWER } what;
	uint32_t machine;
};

struct machine {
	double joined_s;
	uint32_t lives, gpu, slot;
};

struct draw {
	const struct skep_generate_options *options;
	skep_trace_sink sink;
	void *user;
	struct machine *machine;
	struct pending *heap; /* [count], earliest first */
	uint32_t count;
	struct pending *group, *aside; /* [machines], while a burst is put together */
	uint32_t *unused;              /* slots of the dead, a stack */
	uint32_t slots, alive;
	uint64_t random;
};

static double exponential(struct draw *d, double mean)
{
	return -mean * log1p(-skep_random_unit(&d->random));
}

/* ---- what is to come ------------------------------------------------------------------------------------------------- */

static bool before(const struct pending *a, const struct pending *b)
{
	return a->at_s != b->at_s ? a->at_s < b->at_s : a->machine < b->machine;
}

static void push(struct draw *d, struct pending item)
{
	uint32_t i = d->count++;
	for (; i > 0 && before(&item, &d->heap[(i - 1) / 2]); i = (i - 1) / 2)
		d->heap[i] = d->heap[(i - 1) / 2];
	d->heap[i] = item;
}

static struct pending pop(struct draw *d)
{
	struct pending top = d->heap[0], last = d->heap[--d->count];
	uint32_t i = 0;
	for (;;) {
		uint32_t child = 2 * i + 1;
		if (child + 1 < d->count && before(&d->heap[child + 1], &d->heap[child]))
			child++;
		if (child >= d->count || !before(&d->heap[child], &last))
			break;
		d->heap[i] = d->heap[child];
		i = child;
	}
	d->heap[i] = last;
	return top;
}

/* ---- events ----------------------------------------------------------------------------------------------------------- */

static skep_time ns(double seconds)
{
	return (skep_time)(seconds * 1e3 + 0.5) * 1000000;
}

/* Returns the end. Long traces have millions of names: printf would take as long as all the rest. */
static char *put_number(char *at, uint32_t number)
{
	char digit[10];
	uint32_t digits = 0;
	do
		digit[digits++] = (char)('0' + number % 10);
	while ((number /= 10) > 0);
	while (digits > 0)
		*at++ = digit[--digits];
	return at;
}

/* "m12.3": machine 12 behind three of its losses. */
static void put_name(char ret[24], uint32_t index, uint32_t lives)
{
	ret[0] = 'm';
	char *at = put_number(ret + 1, index);
	*at++ = '.';
	*put_number(at, lives) = '\0';
}

static bool tell(struct draw *d, enum skep_trace_kind kind, double at_s, uint32_t index)
{
	const struct machine *m = &d->machine[index];
	char name[24];
	put_name(name, index, m->lives);
	struct skep_trace_event event = {.kind = kind,
		.at_ns = ns(at_s),
		.name = kind == SKEP_TRACE_REFUSED || kind == SKEP_TRACE_END ? "" : name,
		.gpu = d->options->gpus > 0 && kind != SKEP_TRACE_END ? d->options->gpu[m->gpu].name : "",
		.zone = "",
		.slot = m->slot,
		.joined_ns = ns(m->joined_s)};
	return d->sink(d->user, &event);
}

static bool join(struct draw *d, uint32_t index, double at_s)
{
	struct machine *m = &d->machine[index];
	uint32_t unused = d->slots - d->alive;
	m->slot = unused > 0 ? d->unused[unused - 1] : d->slots++;
	m->joined_s = at_s;
	d->alive++;
	push(d, (struct pending){at_s + skep_lifetime_quantile_s(&d->options->life, skep_random_unit(&d->random)),
			DEATH, index});
	return tell(d, SKEP_TRACE_JOIN, at_s, index);
}

static bool leave(struct draw *d, uint32_t index, double at_s)
{
	bool ok = tell(d, SKEP_TRACE_LEAVE, at_s, index);
	d->unused[d->slots - d->alive] = d->machine[index].slot;
	d->alive--;
	d->machine[index].lives++;
	push(d, (struct pending){at_s + exponential(d, d->options->wait_s), ANSWER, index});
	return ok;
}

static double wanted(const struct draw *d, double at_s)
{
	const struct skep_generate_options *o = d->options;
	return o->machines * (1 - o->diurnal * (1 - cos(2 * M_PI * at_s / SKEP_DAY_S)) / 2);
}

static bool answer(struct draw *d, uint32_t index, double at_s)
{
	bool held_back = d->alive + 1 > ceil(wanted(d, at_s));
	bool refused = !held_back && skep_random_unit(&d->random) < d->options->refusal;
	if (!held_back && !refused)
		return join(d, index, at_s);
	push(d, (struct pending){at_s + exponential(d, d->options->wait_s), ANSWER, index});
	return held_back || tell(d, SKEP_TRACE_REFUSED, at_s, index);
}

/* ---- bursts ------------------------------------------------------------------------------------------------------ */

static uint32_t draw_size(struct draw *d)
{
	const struct skep_bursts *bursts = &d->options->bursts;
	if (bursts->bursts == 0)
		return 1;
	uint64_t left = skep_random_next(&d->random) % bursts->bursts;
	uint32_t i = 0;
	while (left >= bursts->count[i])
		left -= bursts->count[i++];
	return i + 1;
}

/* `first` was the earliest death to come. The group comes back with one common time. */
static void settle(struct draw *d, struct pending first)
{
	uint32_t size = draw_size(d), grouped = 1, aside = 0;
	double sum_s = first.at_s;
	d->group[0] = first;
	while (grouped < size && d->count > 0) {
		struct pending next = pop(d);
		if (next.what != DEATH) {
			d->aside[aside++] = next;
			continue;
		}
		d->group[grouped++] = next;
		sum_s += next.at_s;
	}
	while (aside > 0)
		push(d, d->aside[--aside]);
	for (uint32_t i = 0; i < grouped; i++)
		push(d, (struct pending){sum_s / grouped, SETTLED, d->group[i].machine});
}

/* ---- all of it -------------------------------------------------------------------------------------------------------- */

/* Types in proportion to their shares, spread evenly over the machines: each goes to the type that lags most. */
static void deal_types(struct draw *d)
{
	const struct skep_generate_options *o = d->options;
	double sum = 0, given[SKEP_GENERATE_GPUS_MAX] = {0};
	for (uint32_t g = 0; g < o->gpus; g++)
		sum += o->gpu[g].share;
	for (uint32_t i = 0; i < o->machines; i++) {
		uint32_t best = 0;
		for (uint32_t g = 1; g < o->gpus; g++)
			if ((i + 1) * o->gpu[g].share / sum - given[g] >
				(i + 1) * o->gpu[best].share / sum - given[best] + 1e-9)
				best = g;
		d->machine[i].gpu = best;
		given[best]++;
	}
}

static bool play(struct draw *d)
{
	const struct skep_generate_options *o = d->options;
	bool ok = true;
	deal_types(d);
	for (uint32_t i = 0; i < o->machines && ok; i++)
		ok = join(d, i, 0);
	while (ok && d->heap[0].at_s < o->duration_s) {
		struct pending next = pop(d);
		if (next.what == DEATH)
			settle(d, next);
		else if (next.what == SETTLED)
			ok = leave(d, next.machine, next.at_s);
		else
			ok = answer(d, next.machine, next.at_s);
	}
	return ok && tell(d, SKEP_TRACE_END, o->duration_s, 0);
}

bool skep_trace_generate(const struct skep_generate_options *options, skep_trace_sink sink, void *user)
{
	size_t n = options->machines;
	struct draw d = {.options = options, .sink = sink, .user = user, .random = skep_mix(options->seed)};
	d.machine = calloc(n, sizeof *d.machine);
	d.heap = calloc(n, sizeof *d.heap);
	d.group = calloc(n, sizeof *d.group);
	d.aside = calloc(n, sizeof *d.aside);
	d.unused = calloc(n, sizeof *d.unused);
	bool ok = d.machine && d.heap && d.group && d.aside && d.unused && play(&d);
	free(d.machine);
	free(d.heap);
	free(d.group);
	free(d.aside);
	free(d.unused);
	return ok;
}

const char *skep_generate_check(const struct skep_generate_options *o)
{
	if (o->machines < 1 || o->machines > 1000000)
		return "expected 1 to 1000000 machines";
	if (!(o->duration_s >= 1 && o->duration_s <= 1e9))
		return "expected a duration from 1 s to 1e9 s";
	if (!(o->life.shape >= 0.05 && o->life.shape <= 1000))
		return "expected a shape of the lives from 0.05 to 1000";
	if (!(o->life.scale_s >= 1 && o->life.scale_s <= 1e10))
		return "expected a scale of the lives from 1 s to 1e10 s";
	if (!(o->refusal >= 0 && o->refusal <= 0.999))
		return "expected a probability of refusal from 0 to 0.999";
	if (!(o->wait_s >= WAIT_MIN_S && o->wait_s <= 1e9))
		return "expected a wait for the answer to a request from 1 s to 1e9 s";
	if (!(o->diurnal >= 0 && o->diurnal <= 1))
		return "expected a diurnal ramp from 0 to 1";
	for (uint32_t i = 0; i < o->gpus; i++)
		if (!(o->gpu[i].share > 0 && o->gpu[i].share <= 1e9))
			return "expected a share above 0 for each GPU type";
	return NULL;
}

struct skep_lifetime_fit skep_generate_life(const struct skep_trace_stats *stats, const struct skep_lifetime_fit *law)
{
	struct skep_lifetime_fit life = *law;
	double mean_s = stats->mean_alive * stats->duration_s / (double)stats->lives;
	life.scale_s *= mean_s / skep_lifetime_mean_s(law);
	return life;
}

bool skep_generate_like(const struct skep_trace_stats *stats, struct skep_generate_options *ret)
{
	*ret = (struct skep_generate_options){.machines = stats->report.most, .duration_s = stats->duration_s};
	if (!stats->fitted)
		return false;
	ret->life = skep_generate_life(stats, skep_trace_stats_best(stats));
	ret->bursts = stats->window;
	ret->refusal = stats->refusal_rate > 0 ? fmin(stats->refusal_rate, 0.999) : 0;
	/* Little's law: missing machines = losses per second * mean time until one is replaced. */
	double missing_s = (stats->report.most - stats->mean_alive) * stats->duration_s / (double)stats->lives;
	ret->wait_s = fmax(WAIT_MIN_S, missing_s * (1 - ret->refusal));
	return true;
}
