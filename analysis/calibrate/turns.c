/* SPDX-License-Identifier: Apache-2.0
 *
 * turns.c - see turns.h.
 */
#include "analysis/calibrate/turns.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GRID 32  /* latencies that are tried first, on each side of the least time of a message */
#define ZOOMS 10 /* then between the neighbours of the best one, so often */
#define ZOOM_GRID 8
#define HALVINGS 12       /* of where the interval ends */
#define RESOLUTION_S 1e-6 /* of the times */
#define LATE 3.0          /* times the misfit: hosts may have heard of the messages so late */
#define TURNS 20000u      /* looked at for one line: of more, a sample of about so many */
#define HASH 2654435761u  /* draws the sample (Knuth 6.4): every n-th turn may be the same message of each round */
#define WIDE 2.0          /* an interval that says nothing by itself */
#define POINTS 200u       /* that a line is laid through */
#define ONE_SIZE 0.1      /* sizes no further apart than by this part of the largest are one */

struct sample { /* a turn that counts, and its last message */
	double bytes, trip_s, gap_s;
	uint32_t message;
	bool adjoins; /* the turn before it on this line counts too, and is the sample before */
};

struct work {
	const struct skep_turns *of;
	double *others_s; /* [larges] when the first message of another connection that is still to come was sent */
	struct sample *sample;
	double *ratio, *weight;
	/* [larges + smalls] what the messages differ by from the latency that was tried last, and from the best one, absolute */
	double *residual, *least;
	struct skep_ranked_point *point; /* [larges] */
	uint32_t samples;
	uint32_t every; /* the sample has one of so many turns */
	bool no_memory;
	/* Of the times of all messages. A latency is below the one; with what hosts mostly are late by it is below the other. */
	double least_s, middle_s;
};

/* ---- turns ------------------------------------------------------------------------------------------------------- */

static int by_line(const void *left, const void *right)
{
	const struct skep_turns_message *a = left, *b = right;
	if (a->line != b->line)
		return (a->line > b->line) - (a->line < b->line);
	if (a->received_s != b->received_s)
		return (a->received_s > b->received_s) - (a->received_s < b->received_s);
	return (a->sent_s > b->sent_s) - (a->sent_s < b->sent_s);
}

/* The earliest of what is still to come is kept of two connections, so that one of them is another. */
static void find_others(struct work *w)
{
	struct {
		uint64_t connection;
		double sent_s;
	} first[2] = {{0, INFINITY}, {0, INFINITY}};
	for (uint32_t i = w->of->larges; i-- > 0;) {
		const struct skep_turns_message *m = &w->of->large[i];
		if (i + 1 < w->of->larges && m[1].line != m->line)
			first[0].sent_s = first[1].sent_s = INFINITY;
		bool own = first[0].connection == m->connection;
		w->others_s[i] = own ? first[1].sent_s : first[0].sent_s;
		if (!own && m->sent_s < first[0].sent_s)
			first[1] = first[0], first[0].connection = m->connection, first[0].sent_s = m->sent_s;
		else if (own)
			first[0].sent_s = fmin(first[0].sent_s, m->sent_s);
		else if (m->sent_s < first[1].sent_s)
			first[1].connection = m->connection, first[1].sent_s = m->sent_s;
	}
}

/* The turns that there are if the latency is that. */
static void make_turns(struct work *w, double latency_s)
{
	struct sample turn = {0, 0, INFINITY, 0, false};
	double before_s = -INFINITY, sent_s = INFINITY;
	bool counts = true;
	w->samples = 0;
	for (uint32_t i = 0; i < w->of->larges; i++) {
		const struct skep_turns_message *m = &w->of->large[i];
		turn.bytes += m->bytes;
		sent_s = fmin(sent_s, m->sent_s);
		counts = counts && m->counts;
		if (w->others_s[i] + latency_s < m->received_s)
			continue;
		turn.trip_s = m->received_s - sent_s;
		turn.gap_s = m->received_s - before_s;
		turn.message = i;
		bool sampled = counts && (i * HASH >> 16) % w->every == 0;
		if (sampled)
			w->sample[w->samples++] = turn;
		turn.adjoins = sampled && w->every == 1;
		bool last = i + 1 == w->of->larges || m[1].line != m->line;
		before_s = last ? -INFINITY : m->received_s;
		turn.adjoins = turn.adjoins && !last;
		sent_s = INFINITY;
		counts = true;
		turn.bytes = 0;
	}
}

static double busy_s(const struct sample *turn, double latency_s)
{
	return fmin(turn->gap_s, turn->trip_s - latency_s);
}

/* ---- a latency that is tried ------------------------------------------------------------------------------------- */

static struct skep_ranked rate_at(struct work *w, double latency_s)
{
	make_turns(w, latency_s);
	for (uint32_t i = 0; i < w->samples; i++) {
		w->ratio[i] = busy_s(&w->sample[i], latency_s) / w->sample[i].bytes;
		w->weight[i] = w->sample[i].bytes;
	}
	return skep_ranked_weighted_median(w->ratio, w->weight, w->samples);
}

/* Sets residual[], of the turns that were made last and of small messages; returns the mean. */
static double misfit(struct work *w, double latency_s, double s_per_B)
{
	uint32_t larges = w->of->larges, smalls = w->of->smalls;
	double sum = 0;
	memset(w->residual, 0, (larges + smalls) * sizeof *w->residual);
	for (uint32_t i = 0; i < w->samples; i++)
		w->residual[w->sample[i].message] =
			fabs(busy_s(&w->sample[i], latency_s) - s_per_B * w->sample[i].bytes);
	for (uint32_t i = 0; i < smalls; i++)
		w->residual[larges + i] = fabs(w->of->small[i].y - latency_s - s_per_B * w->of->small[i].x);
	for (uint32_t i = 0; i < larges + smalls; i++)
		sum += w->residual[i];
	return sum / fmax(1, w->samples + smalls);
}

static double misfit_at(struct work *w, double latency_s, const double *s_per_B)
{
	if (s_per_B) {
		make_turns(w, latency_s);
		return misfit(w, latency_s, *s_per_B);
	}
	double rate = rate_at(w, latency_s).value;
	return misfit(w, latency_s, w->samples > 0 ? rate : 0);
}

struct best {
	double latency_s, low_s, high_s, misfit;
};

/* Does this latency do as well as the best one, as far as the messages can tell? Each residual is held against that of the
 * same message with the best one. */
static bool likely(struct work *w, double latency_s)
{
	uint32_t count = w->of->larges + w->of->smalls;
	double sum = 0, squares = 0;
	misfit_at(w, latency_s, NULL);
	for (uint32_t i = 0; i < count; i++) {
		double more = w->residual[i] - w->least[i];
		sum += more;
		squares += more * more;
	}
	return sum <= fmax(SKEP_TURNS_LIKELY * sqrt(squares), RESOLUTION_S * (w->samples + w->of->smalls));
}

/* Between a latency that is likely and one that is not. */
static double end_between(struct work *w, double in_s, double out_s)
{
	for (int i = 0; i < HALVINGS; i++) {
		double middle_s = (in_s + out_s) / 2;
		if (likely(w, middle_s))
			in_s = middle_s;
		else
			out_s = middle_s;
	}
	return in_s;
}

/* The latencies that are tried: evenly up to the least time of a message, then ever further apart up to the middle one. */
static double tried_s(const struct work *w, int i)
{
	double further = (double)(i - GRID) / GRID;
	if (i <= GRID)
		return w->least_s * i / GRID;
	return w->least_s + (w->middle_s - w->least_s) * further * further;
}

/* The latency with the least misfit, for that rate or for the one that fits it best. */
static struct best find_best(struct work *w, const double *s_per_B)
{
	struct best best = {.misfit = INFINITY};
	int at = 0;
	for (int i = 0; i <= 2 * GRID; i++) {
		double is = misfit_at(w, tried_s(w, i), s_per_B);
		if (is < best.misfit)
			best.latency_s = tried_s(w, i), best.misfit = is, at = i;
	}
	double from_s = tried_s(w, at > 0 ? at - 1 : 0), to_s = tried_s(w, at < 2 * GRID ? at + 1 : at);
	for (int zoom = 0; zoom < ZOOMS; zoom++) {
		double step_s = (to_s - from_s) / ZOOM_GRID;
		for (int i = 0; i <= ZOOM_GRID; i++) {
			double is = misfit_at(w, from_s + i * step_s, s_per_B);
			if (is < best.misfit)
				best.latency_s = from_s + i * step_s, best.misfit = is;
		}
		from_s = fmax(0, best.latency_s - step_s);
		to_s = fmin(w->middle_s, best.latency_s + step_s);
	}
	return best;
}

static void find_ends(struct work *w, struct best *best)
{
	misfit_at(w, best->latency_s, NULL);
	memcpy(w->least, w->residual, ((size_t)w->of->larges + w->of->smalls) * sizeof *w->least);
	int low = 0, high = 2 * GRID;
	while (tried_s(w, low) < best->latency_s && !likely(w, tried_s(w, low)))
		low++;
	while (tried_s(w, high) > best->latency_s && !likely(w, tried_s(w, high)))
		high--;
	best->low_s = fmin(tried_s(w, low), best->latency_s);
	best->high_s = fmax(tried_s(w, high), best->latency_s);
	if (low > 0)
		best->low_s = end_between(w, best->low_s, tried_s(w, low - 1));
	if (high < 2 * GRID)
		best->high_s = end_between(w, best->high_s, tried_s(w, high + 1));
}

/* ---- figures ----------------------------------------------------------------------------------------------------- */

/* Of turns that have waited one after the other the line was busy from where the first of them reached it: all of their
 * bytes, and the time from where that was sent to where the last one was received. With small messages, which have hardly any
 * bytes. */
static uint32_t put_points(struct work *w, double latency_s)
{
	uint32_t points = 0;
	struct skep_ranked_point busy = {0, 0};
	double sent_s = 0;
	bool known = false;
	for (uint32_t i = 0; i < w->samples; i++) {
		const struct sample *turn = &w->sample[i];
		double received_s = w->of->large[turn->message].received_s;
		bool idle = turn->gap_s > turn->trip_s - latency_s;
		if (known && (idle || !turn->adjoins))
			w->point[points++] = busy;
		known = idle || (known && turn->adjoins);
		sent_s = idle ? received_s - turn->trip_s : sent_s;
		busy.x = turn->bytes + (idle ? 0 : busy.x);
		busy.y = received_s - sent_s;
	}
	if (known)
		w->point[points++] = busy;
	for (uint32_t i = 0; i < w->of->smalls; i++)
		w->point[points++] = w->of->small[i];
	return points;
}

/* The slope of the line through such points, where they have several sizes: what one message is late by moves it less than
 * what is left of each turn's time. 0 samples: they have not. */
static struct skep_ranked slope_at(struct work *w, double latency_s)
{
	struct skep_ranked_line line;
	make_turns(w, latency_s);
	uint32_t points = put_points(w, latency_s), every = 1 + points / POINTS, kept = 0;
	for (uint32_t i = 0; i < points; i += every)
		w->point[kept++] = w->point[i];
	if (!skep_ranked_line(w->point, kept, &line))
		w->no_memory = true;
	return line.slope;
}

static void widen(struct skep_ranked *r, double low, double high)
{
	r->low = fmin(r->low, low);
	r->high = fmax(r->high, high);
}

/* What is left of the times of turns that found the line idle, and of small messages. */
static struct skep_ranked latency_of(struct work *w, double latency_s, double s_per_B)
{
	uint32_t count = 0;
	make_turns(w, latency_s);
	for (uint32_t i = 0; i < w->samples; i++)
		if (w->sample[i].gap_s > w->sample[i].trip_s - latency_s)
			w->ratio[count++] = w->sample[i].trip_s - s_per_B * w->sample[i].bytes;
	for (uint32_t i = 0; i < w->of->smalls; i++)
		w->ratio[count++] = w->of->small[i].y - s_per_B * w->of->small[i].x;
	return skep_ranked_median(w->ratio, count);
}

/* What the line says of a rate, where it lies in the interval that single turns give it. That interval stays unless it is
 * WIDE: of periods that last long since a host was late the line is sure of what is wrong. */
static bool narrow(struct work *w, const struct best *best, struct skep_ranked *rate)
{
	struct skep_ranked slope = slope_at(w, best->latency_s), low = slope_at(w, best->low_s),
			   high = slope_at(w, best->high_s);
	if (slope.samples == 0 || low.samples == 0 || high.samples == 0)
		return false;
	widen(&slope, fmin(low.low, high.low), fmax(low.high, high.high));
	if (rate->low > slope.value || slope.value > rate->high)
		return false;
	rate->value = slope.value;
	if (rate->high > WIDE * rate->low) {
		rate->low = fmax(rate->low, slope.low);
		rate->high = fmin(rate->high, slope.high);
	}
	return true;
}

static void fit_both(struct work *w, const struct best *best, struct skep_turns_fit *ret)
{
	ret->s_per_B = rate_at(w, best->latency_s);
	ret->turns = w->samples;
	double least = INFINITY, most = 0, sum = 0, busy = 0;
	for (uint32_t i = 0; i < w->samples; i++) {
		least = fmin(least, w->sample[i].bytes);
		most = fmax(most, w->sample[i].bytes);
		sum += w->sample[i].bytes;
	}
	ret->bytes = w->samples > 0 ? sum / w->samples : 1;
	ret->one_size = most - least <= ONE_SIZE * most;
	busy = sum * ret->s_per_B.value;
	bool poor = w->samples > 0 && !(best->misfit * w->samples <= busy + RESOLUTION_S * w->samples);
	struct skep_ranked low = rate_at(w, best->low_s), high = rate_at(w, best->high_s);
	widen(&ret->s_per_B, fmin(low.low, high.low), fmax(low.high, high.high));
	if (!narrow(w, best, &ret->s_per_B) && poor)
		ret->s_per_B.samples = 0;
	double rate = ret->s_per_B.samples > 0 ? ret->s_per_B.value : 0;
	ret->latency = latency_of(w, best->latency_s, rate);
	widen(&ret->latency, best->low_s, best->high_s);
}

/* Of what is known within a factor: the part that the messages allow, and in it what is nearest to the figure itself. */
struct known {
	double value, low, high;
	bool allowed;
};

static struct known known_within(double value, double low, double high)
{
	struct known k = {fmin(fmax(value, low), high), fmax(value / SKEP_TURNS_KNOWN, low),
		fmin(value * SKEP_TURNS_KNOWN, high), true};
	k.allowed = k.low <= k.high;
	return k;
}

static struct skep_ranked latency_for(struct work *w, double s_per_B)
{
	return latency_of(w, find_best(w, &s_per_B).latency_s, s_per_B);
}

/* The more a byte takes the less is left for the latency, and the other way round. */
static void fit_one(
	struct work *w, const struct best *best, double latency_s, double s_per_B, struct skep_turns_fit *ret)
{
	struct known rate = known_within(s_per_B, 0, INFINITY),
		     latency = known_within(latency_s, best->low_s, best->high_s);
	if (ret->turns > 0)
		rate = known_within(s_per_B, rate_at(w, best->high_s).value, rate_at(w, best->low_s).value);
	latency.high = fmin(latency.high + LATE * best->misfit, best->high_s);
	latency.allowed = latency.low <= latency.high;
	if (rate.allowed) {
		ret->latency_alone = latency_for(w, rate.value);
		widen(&ret->latency_alone, latency_for(w, rate.high).low, latency_for(w, rate.low).high);
	}
	if (latency.allowed && ret->turns > 0) {
		ret->s_per_B_alone = rate_at(w, latency.value);
		widen(&ret->s_per_B_alone, rate_at(w, latency.high).low, rate_at(w, latency.low).high);
	}
}

static void find_range(struct work *w)
{
	const struct skep_turns *of = w->of;
	uint32_t count = 0;
	for (uint32_t i = 0; i < of->larges; i++)
		w->ratio[count++] = of->large[i].received_s - of->large[i].sent_s;
	for (uint32_t i = 0; i < of->smalls; i++)
		w->ratio[count++] = of->small[i].y;
	w->middle_s = fmax(0, skep_ranked_median(w->ratio, count).value);
	w->least_s = fmax(0, w->ratio[0]);
}

static bool start(struct work *w)
{
	const struct skep_turns *of = w->of;
	w->every = 1;
	w->others_s = calloc(of->larges + 1u, sizeof *w->others_s);
	w->sample = calloc(of->larges + 1u, sizeof *w->sample);
	w->point = calloc((size_t)of->larges + of->smalls + 1, sizeof *w->point);
	w->residual = calloc((size_t)of->larges + of->smalls + 1, sizeof *w->residual);
	w->least = calloc((size_t)of->larges + of->smalls + 1, sizeof *w->least);
	w->ratio = calloc((size_t)of->larges + of->smalls + 1, sizeof *w->ratio);
	w->weight = calloc(of->larges + 1u, sizeof *w->weight);
	if (!w->others_s || !w->sample || !w->ratio || !w->weight || !w->residual || !w->least || !w->point)
		return false;
	find_range(w);
	qsort(of->large, of->larges, sizeof *of->large, by_line);
	find_others(w);
	make_turns(w, w->least_s);
	w->every = 1 + w->samples / TURNS;
	return true;
}

static void finish(struct work *w)
{
	free(w->others_s);
	free(w->sample);
	free(w->ratio);
	free(w->weight);
	free(w->residual);
	free(w->least);
	free(w->point);
}

bool skep_turns_fit(const struct skep_turns *turns, double latency_s, double s_per_B, struct skep_turns_fit *ret)
{
	static const struct skep_ranked none = {NAN, NAN, NAN, 0};
	struct work w = {.of = turns};
	bool fine = start(&w);
	*ret = (struct skep_turns_fit){none, none, none, none, 0, 1, true};
	if (fine && turns->larges + turns->smalls > 0) {
		struct best best = find_best(&w, NULL);
		find_ends(&w, &best);
		fit_both(&w, &best, ret);
		fit_one(&w, &best, latency_s, s_per_B, ret);
	}
	finish(&w);
	return fine && !w.no_memory;
}
