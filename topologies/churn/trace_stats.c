/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_stats.c - counts a trace while it is read. A lifetime shorter than 1 s counts as 1 s in the fitted
 * distributions, which have no lifetime of 0.
 */
#include "topologies/churn/trace_stats.h"

#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/order.h"
#include "core/random.h"

#define LIFETIME_MIN_S 1.0

struct count {
	struct skep_trace_stats *stats;
	skep_time first_ns, last_ns; /* last_ns: up to where alive_ns counts */
	bool begun;
	uint32_t alive;
	double alive_s; /* machines times seconds */
	double sum_s;   /* of ended lives */
	double *lifetime_s;
	uint32_t kept;
	uint64_t random;
	skep_time *joined; /* [slots], SKEP_TIME_NEVER: the slot is empty */
	uint32_t slots, slot_room;
	skep_time instant_ns, window_ns; /* the bursts that are being counted */
	uint32_t in_instant, in_window;
};

/* ---- bursts ----------------------------------------------------------------------------------------------------- */

static bool burst_close(struct skep_bursts *bursts, uint32_t size)
{
	if (size == 0)
		return true;
	if (size > bursts->room) {
		uint32_t room = 16;
		while (room < size)
			room *= 2;
		uint64_t *more = realloc(bursts->count, room * sizeof *more);
		if (!more)
			return false;
		memset(more + bursts->room, 0, (room - bursts->room) * sizeof *more);
		bursts->count = more;
		bursts->room = room;
	}
	bursts->count[size - 1]++;
	bursts->bursts++;
	bursts->losses += size;
	bursts->most = size > bursts->most ? size : bursts->most;
	return true;
}

static bool burst_loss(struct count *c, skep_time at_ns)
{
	bool ok = true;
	if (c->in_instant > 0 && at_ns != c->instant_ns) {
		ok = burst_close(&c->stats->instant, c->in_instant);
		c->in_instant = 0;
	}
	if (c->in_window > 0 && at_ns - c->window_ns >= SKEP_BURST_WINDOW_NS) {
		ok = burst_close(&c->stats->window, c->in_window) && ok;
		c->in_window = 0;
	}
	c->instant_ns = at_ns;
	if (c->in_window == 0)
		c->window_ns = at_ns;
	c->in_instant++;
	c->in_window++;
	return ok;
}

/* ---- lives ----------------------------------------------------------------------------------------------------------- */

static bool keep(struct count *c, double seconds)
{
	c->stats->lives++;
	c->sum_s += seconds;
	if (c->kept == SKEP_INCARNATIONS_KEPT) { /* Vitter's reservoir: each life is in it with the same chance */
		uint64_t i = skep_random_next(&c->random) % c->stats->lives;
		if (i < SKEP_INCARNATIONS_KEPT)
			c->lifetime_s[i] = seconds;
		return true;
	}
	if (!skep_grow(&c->lifetime_s, c->kept, sizeof *c->lifetime_s))
		return false;
	c->lifetime_s[c->kept++] = seconds;
	return true;
}

static bool note_join(struct count *c, const struct skep_trace_event *event)
{
	if (event->slot >= c->slot_room) {
		uint32_t room = c->slot_room ? 2 * c->slot_room : 64;
		while (room <= event->slot)
			room *= 2;
		skep_time *more = realloc(c->joined, room * sizeof *more);
		if (!more)
			return false;
		c->joined = more;
		c->slot_room = room;
	}
	for (; c->slots <= event->slot; c->slots++)
		c->joined[c->slots] = SKEP_TIME_NEVER;
	c->joined[event->slot] = event->at_ns;
	c->alive++;
	c->stats->at_start += event->at_ns == c->first_ns;
	return true;
}

static bool note_leave(struct count *c, const struct skep_trace_event *event)
{
	c->joined[event->slot] = SKEP_TIME_NEVER;
	c->alive--;
	c->stats->early += event->joined_ns == c->first_ns;
	return keep(c, 1e-9 * (double)(event->at_ns - event->joined_ns)) && burst_loss(c, event->at_ns);
}

static bool count_event(void *user, const struct skep_trace_event *event)
{
	struct count *c = user;
	if (!c->begun)
		c->first_ns = c->last_ns = event->at_ns;
	c->begun = true;
	c->alive_s += c->alive * (1e-9 * (double)(event->at_ns - c->last_ns));
	c->last_ns = event->at_ns;
	if (event->kind == SKEP_TRACE_JOIN)
		return note_join(c, event);
	if (event->kind == SKEP_TRACE_LEAVE)
		return note_leave(c, event);
	return true;
}

/* ---- results --------------------------------------------------------------------------------------------------------- */

static struct skep_lifetime_sample sample_of(double seconds, double weight, bool ended)
{
	return (struct skep_lifetime_sample){seconds > LIFETIME_MIN_S ? seconds : LIFETIME_MIN_S, weight, ended};
}

static bool fit(struct count *c)
{
	struct skep_trace_stats *s = c->stats;
	struct skep_lifetime_sample *sample = malloc(((size_t)c->kept + c->alive + 1) * sizeof *sample);
	size_t n = 0;
	if (!sample)
		return false;
	for (uint32_t i = 0; i < c->kept; i++)
		sample[n++] = sample_of(c->lifetime_s[i], (double)s->lives / c->kept, true);
	for (uint32_t i = 0; i < c->slots; i++)
		if (c->joined[i] != SKEP_TIME_NEVER)
			sample[n++] = sample_of(1e-9 * (double)(c->last_ns - c->joined[i]), 1, false);
	s->fitted = skep_lifetime_fit(SKEP_LIFETIME_EXPONENTIAL, sample, n, &s->exponential) &&
	            skep_lifetime_fit(SKEP_LIFETIME_WEIBULL, sample, n, &s->weibull);
	free(sample);
	return true;
}

static bool conclude(struct count *c)
{
	struct skep_trace_stats *s = c->stats;
	uint64_t later = s->report.joins - s->at_start, asked = s->report.refused + later;
	s->duration_s = 1e-9 * (double)(c->last_ns - c->first_ns);
	s->mean_alive = s->duration_s > 0 ? c->alive_s / s->duration_s : c->alive;
	s->censored = c->alive;
	s->refusal_rate = asked > 0 ? (double)s->report.refused / (double)asked : NAN;
	if (c->kept > 0)
		gsl_sort(c->lifetime_s, 1, c->kept);
	s->mean_s = s->lives > 0 ? c->sum_s / (double)s->lives : NAN;
	s->p10_s = skep_order_quantile(c->lifetime_s, c->kept, 0.1);
	s->median_s = skep_order_quantile(c->lifetime_s, c->kept, 0.5);
	s->p90_s = skep_order_quantile(c->lifetime_s, c->kept, 0.9);
	return burst_close(&s->instant, c->in_instant) && burst_close(&s->window, c->in_window) && fit(c);
}

bool skep_trace_stats_read(const char *path, const struct skep_trace_options *options, struct skep_trace_stats *ret,
	struct skep_diag *reterr)
{
	struct count c = {.stats = ret};
	*ret = (struct skep_trace_stats){0};
	bool ok = skep_trace_read(path, options, count_event, &c, &ret->report, reterr);
	if (ok && !conclude(&c)) {
		skep_diag_set(reterr, path, 0, 0, NULL, "cannot be counted: not enough memory");
		ok = false;
	}
	free(c.lifetime_s);
	free(c.joined);
	if (!ok)
		skep_trace_stats_finish(ret);
	return ok;
}

void skep_trace_stats_finish(struct skep_trace_stats *stats)
{
	free(stats->instant.count);
	free(stats->window.count);
	*stats = (struct skep_trace_stats){0};
}

const struct skep_lifetime_fit *skep_trace_stats_best(const struct skep_trace_stats *stats)
{
	return stats->weibull.log_likelihood - 1 > stats->exponential.log_likelihood ? &stats->weibull
	                                                                             : &stats->exponential;
}
