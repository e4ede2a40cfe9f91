/* SPDX-License-Identifier: Apache-2.0
 *
 * links.c - see links.h.
 */
#include "analysis/calibrate/links.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "topologies/network/network.h"
#include "topologies/read/path.h"

#define PASSES 4 /* estimates of the latency, each from the periods that the one before makes */
#define SLACK 2.0
#define FIRST_SLACK 2.0 /* times SLACK: for what is believed before anything was estimated */
#define WINDOW_NEAR 0.9 /* of what a window allows: it is the window that was seen */

struct item {
	const struct skep_transfer *of;
	uint64_t line; /* that it takes */
	uint32_t pair; /* of places */
	bool crowded;
};

struct work {
	const struct skep_topology *topology;
	struct item
		*item; /* [items]: large ones by line and time, then small ones by ordered pair of machines and time */
	size_t items, large;
};

static bool is_large(const struct skep_transfer *t)
{
	return t->bytes > SKEP_NETWORK_SMALL_BYTES;
}

static uint64_t pair_of_machines(const struct skep_transfer *t)
{
	return (uint64_t)t->from << 32 | t->to;
}

/* ---- in order ---------------------------------------------------------------------------------------------------- */

static int compare(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int by_time(const struct item *a, const struct item *b)
{
	if (a->of->sent_s != b->of->sent_s)
		return (a->of->sent_s > b->of->sent_s) - (a->of->sent_s < b->of->sent_s);
	return (a->of->received_s > b->of->received_s) - (a->of->received_s < b->of->received_s);
}

/* Large ones first; of the same pair of places together, then of the same line. */
static int by_line(const void *left, const void *right)
{
	const struct item *a = left, *b = right;
	int order = compare(is_large(b->of), is_large(a->of));
	order = order ? order : compare(a->pair, b->pair);
	order = order ? order : compare(a->line, b->line);
	return order ? order : by_time(a, b);
}

static uint32_t place_of(const struct work *w, uint32_t machine)
{
	return w->topology->machine[machine].place;
}

static bool gather(struct work *w, const struct skep_samples *s)
{
	const struct skep_topology *t = w->topology;
	w->item = calloc(s->transfers + 1, sizeof *w->item);
	if (w->item == NULL)
		return false;
	for (size_t i = 0; i < s->transfers; i++) {
		const struct skep_transfer *of = &s->transfer[i];
		assert(of->from <= t->machines && of->to <= t->machines && of->from != of->to);
		uint32_t pair = place_of(w, of->from) * t->places + place_of(w, of->to);
		bool shared = isfinite(t->pair[pair].shared_Bps) && is_large(of);
		w->item[w->items++] = (struct item){
			.of = of, .pair = pair, .line = shared ? pair : (uint64_t)1 << 63 | pair_of_machines(of)};
		w->large += is_large(of);
	}
	qsort(w->item, w->items, sizeof *w->item, by_line);
	return true;
}

/* ---- what else was there ----------------------------------------------------------------------------------------- */

struct meeting { /* of a large message with those of other lines on one link of its way */
	struct item *item;
	uint32_t link;
};

static int by_link(const void *left, const void *right)
{
	const struct meeting *a = left, *b = right;
	return a->link != b->link ? compare(a->link, b->link) : by_time(a->item, b->item);
}

/* Marks each whose time overlaps with that of one of another line on the same link. The latest end so far is kept of two lines,
 * so that one of them is another. */
static void mark_link(struct meeting *m, size_t count)
{
	struct {
		uint64_t line;
		double end_s;
	} last[2] = {{0, -INFINITY}, {0, -INFINITY}};
	for (size_t i = 0; i < count; i++) {
		const struct skep_transfer *of = m[i].item->of;
		uint64_t line = m[i].item->line;
		int own = last[0].line == line ? 0 : last[1].line == line ? 1 : -1;
		double others_s = own == 0   ? last[1].end_s
		                  : own == 1 ? last[0].end_s
		                             : fmax(last[0].end_s, last[1].end_s);
		m[i].item->crowded = m[i].item->crowded || others_s > of->sent_s;
		int at = own >= 0 ? own : last[0].end_s <= last[1].end_s ? 0 : 1;
		if (own >= 0)
			last[at].end_s = fmax(last[at].end_s, of->received_s);
		else
			last[at].line = line, last[at].end_s = of->received_s;
	}
	for (size_t i = count, other = count; i-- > 0;) { /* other: the next one of another line */
		if (i + 1 < count && m[i + 1].item->line != m[i].item->line)
			other = i + 1;
		if (other < count && m[other].item->of->sent_s < m[i].item->of->received_s)
			m[i].item->crowded = true;
	}
}

/* The most that the line of such a message can carry, as the topology has it. */
static double line_Bps(const struct work *w, const struct item *item)
{
	const struct skep_pair *pair = &w->topology->pair[item->pair];
	return fmin(pair->capacity_Bps, pair->shared_Bps);
}

enum end { UP, DOWN, SITE_UP, SITE_DOWN, ENDS };

/* The link at that end of the way; *ret_Bps: its capacity. */
static uint32_t link_at(const struct work *w, const struct item *item, enum end end, double *ret_Bps)
{
	const struct skep_topology *t = w->topology;
	uint32_t machine = end == UP || end == SITE_UP ? item->of->from : item->of->to, place = place_of(w, machine);
	bool inside = place_of(w, item->of->from) == place_of(w, item->of->to);
	if (end == UP || end == DOWN) {
		*ret_Bps = end == UP ? t->machine[machine].up_Bps : t->machine[machine].down_Bps;
		return machine;
	}
	*ret_Bps = !t->site_link || inside ? INFINITY
	           : end == SITE_UP        ? t->site_link[place].up_Bps
	                                   : t->site_link[place].down_Bps;
	return place;
}

static void mark_crowded(struct work *w, struct meeting *m)
{
	for (int end = 0; end < ENDS; end++) {
		size_t count = 0;
		for (size_t i = 0; i < w->large; i++) {
			double Bps;
			uint32_t link = link_at(w, &w->item[i], (enum end)end, &Bps);
			if (isfinite(Bps) && Bps < SKEP_LINKS_ROOM * line_Bps(w, &w->item[i]))
				m[count++] = (struct meeting){&w->item[i], link};
		}
		qsort(m, count, sizeof *m, by_link);
		for (size_t i = 0, next; i < count; i = next) {
			for (next = i; next < count && m[next].link == m[i].link; next++)
				;
			mark_link(m + i, next - i);
		}
	}
}

static int by_machines(const void *left, const void *right)
{
	const struct meeting *a = left, *b = right;
	int order = compare(pair_of_machines(a->item->of), pair_of_machines(b->item->of));
	return order ? order : by_time(a->item, b->item);
}

/* Small messages that found a large one of their machines under way: these have waited for their turn. */
static void mark_waiting(struct work *w, struct meeting *m)
{
	double until_s = -INFINITY;
	for (size_t i = 0; i < w->items; i++)
		m[i] = (struct meeting){&w->item[i], 0};
	qsort(m, w->items, sizeof *m, by_machines);
	for (size_t i = 0; i < w->items; i++) {
		const struct skep_transfer *of = m[i].item->of;
		if (i == 0 || pair_of_machines(m[i - 1].item->of) != pair_of_machines(of))
			until_s = -INFINITY;
		if (is_large(of))
			until_s = fmax(until_s, of->received_s);
		else
			m[i].item->crowded = until_s > of->sent_s;
	}
}

static bool mark(struct work *w)
{
	struct meeting *m = calloc(w->items + 1, sizeof *m);
	if (m == NULL)
		return false;
	mark_crowded(w, m);
	mark_waiting(w, m);
	free(m);
	return true;
}

/* ---- points ------------------------------------------------------------------------------------------------------ */

struct span { /* items of a pair of places: [begin, end) large ones, [small, small_end) small ones */
	size_t begin, end, small, small_end;
};

static uint32_t small_points(const struct work *w, const struct span *span, struct skep_ranked_point *ret)
{
	uint32_t points = 0;
	for (size_t i = span->small; i < span->small_end; i++) {
		const struct skep_transfer *of = w->item[i].of;
		if (!w->item[i].crowded)
			ret[points++] = (struct skep_ranked_point){(double)of->bytes, of->received_s - of->sent_s};
	}
	return points;
}

struct guess {
	double latency_s, Bps; /* of the estimate before */
};

/*
 * The busy period that begins with item i; returns the item after it. A message belongs to it that reaches the line before the
 * last one has left it. Where it would not have, had the line been no slower than a SLACK-th of what is believed, it was a delay
 * on a host that made the period so long: then it does not count, for it would say that many bytes take long because what takes
 * long lets many bytes gather.
 */
static size_t one_period(const struct work *w, size_t i, size_t end, const struct guess *guess, bool *ret_counts,
	struct skep_ranked_point *ret)
{
	const struct item *first = &w->item[i];
	double until_s = first->of->received_s;
	*ret = (struct skep_ranked_point){0, 0};
	*ret_counts = true;
	for (; i < end && w->item[i].line == first->line; i++) {
		const struct item *item = &w->item[i];
		double reaches_s = item->of->sent_s + guess->latency_s;
		if (item != first && reaches_s >= until_s)
			break;
		double busy_s = SLACK * ret->x / guess->Bps;
		bool expected = item == first || item->of->sent_s <= first->of->sent_s + busy_s;
		*ret_counts = *ret_counts && expected && !item->crowded;
		ret->x += (double)item->of->bytes;
		until_s = fmax(until_s, item->of->received_s);
	}
	ret->y = until_s - first->of->sent_s;
	return i;
}

static uint32_t large_points(
	const struct work *w, const struct span *span, const struct guess *guess, struct skep_ranked_point *ret)
{
	uint32_t points = 0;
	for (size_t i = span->begin; i < span->end;) {
		bool counts;
		i = one_period(w, i, span->end, guess, &counts, &ret[points]);
		points += counts;
	}
	return points;
}

/* ---- a line ------------------------------------------------------------------------------------------------------ */

struct fit {
	struct skep_ranked_line line;
	struct skep_ranked_point *point; /* [points], the last periods */
	uint32_t points, periods;
};

/* The least that a message took is no less than the latency; with small messages it is hardly more. */
static double least_s(const struct work *w, const struct span *span)
{
	double least_s = INFINITY;
	for (size_t i = span->begin; i < span->end; i++)
		least_s = fmin(least_s, w->item[i].of->received_s - w->item[i].of->sent_s);
	for (size_t i = span->small; i < span->small_end; i++)
		least_s = fmin(least_s, w->item[i].of->received_s - w->item[i].of->sent_s);
	return fmax(0, least_s);
}

static bool bears(const struct skep_ranked *r)
{
	return r->samples >= SKEP_CALIBRATE_SAMPLES_LEAST && r->low > 0 && r->high <= SKEP_CALIBRATE_SPAN_MAX * r->low;
}

static bool fit_line(const struct work *w, const struct span *span, double before_s, double before_Bps, struct fit *ret)
{
	size_t room = span->end - span->begin + span->small_end - span->small;
	double most_s = least_s(w, span);
	struct guess guess = {.Bps = before_Bps / FIRST_SLACK};
	*ret = (struct fit){.point = calloc(room + 1, sizeof *ret->point)};
	guess.latency_s = span->small < span->small_end ? 0.9 * most_s : 0.5 * fmin(most_s, before_s);
	bool fine = ret->point != NULL;
	for (int pass = 0; fine && pass < PASSES; pass++) {
		uint32_t smalls = small_points(w, span, ret->point);
		ret->periods = large_points(w, span, &guess, ret->point + smalls);
		ret->points = smalls + ret->periods;
		fine = skep_ranked_line(ret->point, ret->points, &ret->line);
		if (!fine || ret->line.sizes < 2)
			break;
		guess.latency_s = fmax(0, fmin(ret->line.intercept.value, most_s));
		if (bears(&ret->line.slope))
			guess.Bps = 1 / ret->line.slope.value;
	}
	return fine;
}

/* ---- figures ----------------------------------------------------------------------------------------------------- */

/* Why nothing can be said of the bandwidth, whatever the samples; NULL: it can. */
static const char *unseen(const struct work *w, const struct skep_link_figures *link, const struct fit *fit)
{
	const struct skep_topology *t = w->topology;
	double narrowest_Bps = INFINITY;
	for (uint32_t i = 0; i < t->machines; i++) {
		if (t->machine[i].place == link->from)
			narrowest_Bps = fmin(narrowest_Bps, t->machine[i].up_Bps);
		if (t->machine[i].place == link->to)
			narrowest_Bps = fmin(narrowest_Bps, t->machine[i].down_Bps);
	}
	if (link->shared && narrowest_Bps < link->bandwidth.before)
		return "the links of its machines are narrower";
	if (fit->periods < SKEP_CALIBRATE_SAMPLES_LEAST)
		return "fewer than five tensors had it to themselves";
	return NULL;
}

static struct skep_ranked inverse(const struct skep_ranked *r)
{
	return (struct skep_ranked){1 / r->value, 1 / r->high, 1 / r->low, r->samples};
}

/* Of messages of one size: what is left of their time when the latency is as before. */
static bool bandwidth_alone(const struct fit *fit, double latency_s, struct skep_ranked *ret)
{
	double *s_per_B = calloc(fit->points + 1u, sizeof *s_per_B);
	for (uint32_t i = 0; s_per_B != NULL && i < fit->points; i++)
		s_per_B[i] = (fit->point[i].y - latency_s) / fit->point[i].x;
	if (s_per_B != NULL)
		*ret = skep_ranked_median(s_per_B, fit->points);
	free(s_per_B);
	return s_per_B != NULL;
}

/* What the line leaves out of a message's time: what the sender's overhead and the scenario add. */
static void set_latency(struct skep_link_figures *link, struct skep_ranked r, double besides_s)
{
	r.value = fmax(0, r.value - besides_s);
	r.low = fmax(0, r.low - besides_s);
	r.high = fmax(0, r.high - besides_s);
	struct skep_figure *f = &link->latency;
	bool told = bears(&r) || f->before < r.low || f->before > r.high;
	if (r.samples < SKEP_CALIBRATE_SAMPLES_LEAST)
		f->kept = "fewer than five messages had it to themselves";
	else if (!told)
		f->kept = "times are a factor of two apart, and it lies between";
	else
		f->after = r;
}

static bool set_one_size(struct skep_link_figures *link, const struct fit *fit, double besides_s)
{
	struct skep_ranked alone;
	double before_s = link->latency.before + besides_s, size = fit->points > 0 ? fit->point[0].x : 1;
	bool by_bytes = size / link->bandwidth.before > before_s;
	if (!by_bytes) {
		if (link->bandwidth.kept == NULL)
			link->bandwidth.kept = "one size of messages, mostly latency";
		double slope = isfinite(link->bandwidth.before) ? 1 / link->bandwidth.before : 0;
		if (!skep_ranked_intercept(fit->point, fit->points, slope, &alone))
			return false;
		set_latency(link, alone, besides_s);
		return true;
	}
	link->latency.kept = "one size of messages, mostly bytes";
	if (link->bandwidth.kept != NULL)
		return true;
	if (!bandwidth_alone(fit, before_s, &alone))
		return false;
	if (bears(&alone))
		link->bandwidth.after = inverse(&alone);
	else
		link->bandwidth.kept = "times are a factor of two apart";
	return true;
}

static bool set_figures(const struct work *w, const struct fit *fit, double extra_s, struct skep_link_figures *link)
{
	double besides_s = extra_s + skep_path_overhead_s(w->topology, link->from, link->to);
	double cap_Bps = skep_path_cap_Bps(w->topology, link->from, link->to);
	struct skep_ranked intercept = fit->line.intercept;
	link->bandwidth.kept = unseen(w, link, fit);
	if (fit->line.sizes < 2)
		return set_one_size(link, fit, besides_s);
	if (link->bandwidth.kept == NULL && (!bears(&fit->line.slope) || fit->line.intercept.high < 0))
		link->bandwidth.kept = "times do not tell bytes apart";
	if (link->bandwidth.kept == NULL && 1 / fit->line.slope.value > WINDOW_NEAR * cap_Bps)
		link->bandwidth.kept = "window or loss allow no more";
	if (link->bandwidth.kept == NULL)
		link->bandwidth.after = inverse(&fit->line.slope);
	else if (!skep_ranked_intercept(fit->point, fit->points,
			 isfinite(link->bandwidth.before) ? 1 / link->bandwidth.before : 0, &intercept))
		return false;
	set_latency(link, intercept, besides_s);
	return true;
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

static struct span span_of(const struct work *w, uint32_t pair, size_t *large, size_t *small)
{
	struct span span = {.begin = *large, .small = *small};
	while (*large < w->large && w->item[*large].pair == pair)
		++*large;
	while (*small < w->items && w->item[*small].pair == pair)
		++*small;
	span.end = *large;
	span.small_end = *small;
	return span;
}

static void begin_figures(const struct skep_topology *t, uint32_t pair, struct skep_link_figures *ret)
{
	static const struct skep_ranked none = {NAN, NAN, NAN, 0};
	const struct skep_pair *of = &t->pair[pair];
	bool shared = isfinite(of->shared_Bps);
	*ret = (struct skep_link_figures){.from = pair / t->places, .to = pair % t->places, .shared = shared};
	ret->latency = (struct skep_figure){of->latency_s, none, NULL};
	ret->bandwidth = (struct skep_figure){shared ? of->shared_Bps : of->capacity_Bps, none, NULL};
}

bool skep_links_fit(const struct skep_samples *samples, const struct skep_topology *t, double extra_latency_s,
	struct skep_link_figures *ret)
{
	struct work w = {.topology = t};
	bool fine = gather(&w, samples) && mark(&w);
	size_t large = 0, small = w.large;
	for (uint32_t pair = 0; fine && pair < t->places * t->places; pair++) {
		double extra_s = skep_topology_is_link(&t->pair[pair]) ? extra_latency_s : 0;
		struct span span = span_of(&w, pair, &large, &small);
		struct fit fit = {0};
		begin_figures(t, pair, &ret[pair]);
		ret[pair].messages = span.end - span.begin + span.small_end - span.small;
		if (ret[pair].messages == 0) {
			ret[pair].latency.kept = ret[pair].bandwidth.kept = "no message went over it";
			continue;
		}
		fine = fit_line(&w, &span, ret[pair].latency.before + extra_s, ret[pair].bandwidth.before, &fit) &&
		       set_figures(&w, &fit, extra_s, &ret[pair]);
		free(fit.point);
	}
	free(w.item);
	return fine;
}
