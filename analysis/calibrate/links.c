/* SPDX-License-Identifier: Apache-2.0
 *
 * links.c - see links.h.
 */
#include "analysis/calibrate/links.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "analysis/calibrate/turns.h"
#include "topologies/network/network.h"
#include "topologies/read/path.h"

#define PASSES                                                                                                         \
	2 /* in the second one lines are as wide as the first one has found them, where links of machines may be narrower */
#define PART 0.05       /* of a link: a line that can take less of it does not matter to others */
#define WINDOW_NEAR 0.9 /* of what a window allows: it is the window that was seen */

struct item {
	const struct skep_transfer *of;
	uint64_t line; /* that it takes */
	uint32_t pair; /* of places */
	bool crowded;
};

struct work {
	const struct skep_topology *topology;
	struct skep_link_figures *link; /* [places * places] */
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
	bool narrow; /* the link may be what holds it up; else it only takes a part of it from others */
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
		m[i].item->crowded = m[i].item->crowded || (m[i].narrow && others_s > of->sent_s);
		int at = own >= 0 ? own : last[0].end_s <= last[1].end_s ? 0 : 1;
		if (own >= 0)
			last[at].end_s = fmax(last[at].end_s, of->received_s);
		else
			last[at].line = line, last[at].end_s = of->received_s;
	}
	for (size_t i = count, other = count; i-- > 0;) { /* other: the next one of another line */
		if (i + 1 < count && m[i + 1].item->line != m[i].item->line)
			other = i + 1;
		if (m[i].narrow && other < count && m[other].item->of->sent_s < m[i].item->of->received_s)
			m[i].item->crowded = true;
	}
}

/* The most that the line of such a message can carry, as the topology has it or as it was seen. */
static double line_Bps(const struct work *w, const struct item *item)
{
	const struct skep_pair *pair = &w->topology->pair[item->pair];
	const struct skep_ranked *seen = &w->link[item->pair].bandwidth.after;
	double Bps = fmin(pair->capacity_Bps, pair->shared_Bps);
	return seen->samples > 0 ? fmax(Bps, seen->value) : Bps;
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
			double line = line_Bps(w, &w->item[i]);
			if (isfinite(Bps) && Bps * PART < line)
				m[count++] = (struct meeting){&w->item[i], link, Bps < SKEP_LINKS_ROOM * line};
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
		m[i] = (struct meeting){&w->item[i], 0, false};
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
	for (size_t i = 0; i < w->items; i++)
		w->item[i].crowded = false;
	mark_crowded(w, m);
	mark_waiting(w, m);
	free(m);
	return true;
}

/* ---- turns ------------------------------------------------------------------------------------------------------- */

struct span { /* items of a pair of places: [begin, end) large ones, [small, small_end) small ones */
	size_t begin, end, small, small_end;
};

/* Messages of one connection arrive in the order in which they were sent; those of a link that has several, or lets them overtake
 * each other, have a number each. */
static uint64_t connection_of(const struct work *w, const struct item *item, uint64_t number)
{
	const struct skep_topology *t = w->topology;
	uint32_t from = item->pair / t->places, to = item->pair % t->places;
	bool in_order = skep_path_streams(t, from, to) == 1 && !skep_path_overtakes(t, from, to);
	return in_order ? pair_of_machines(item->of) : number;
}

static void put_turns(const struct work *w, const struct span *span, struct skep_turns *ret)
{
	for (size_t i = span->begin; i < span->end; i++) {
		const struct item *item = &w->item[i];
		ret->large[ret->larges++] = (struct skep_turns_message){.bytes = (double)item->of->bytes,
			.sent_s = item->of->sent_s,
			.received_s = item->of->received_s,
			.line = item->line,
			.connection = connection_of(w, item, i),
			.counts = !item->crowded};
	}
	for (size_t i = span->small; i < span->small_end; i++) {
		const struct skep_transfer *of = w->item[i].of;
		if (!w->item[i].crowded)
			ret->small[ret->smalls++] =
				(struct skep_ranked_point){(double)of->bytes, of->received_s - of->sent_s};
	}
}

static bool fit_turns(
	const struct work *w, const struct span *span, double latency_s, double Bps, struct skep_turns_fit *ret)
{
	struct skep_turns turns = {calloc(span->end - span->begin + 1, sizeof *turns.large),
		calloc(span->small_end - span->small + 1, sizeof *turns.small), 0, 0};
	bool fine = turns.large && turns.small;
	if (fine)
		put_turns(w, span, &turns);
	fine = fine && skep_turns_fit(&turns, latency_s, isfinite(Bps) ? 1 / Bps : 0, ret);
	free(turns.large);
	free(turns.small);
	return fine;
}

static bool bears(const struct skep_ranked *r)
{
	return r->samples >= SKEP_CALIBRATE_SAMPLES_LEAST && r->low > 0 && r->high <= SKEP_CALIBRATE_SPAN_MAX * r->low;
}

/* ---- figures ----------------------------------------------------------------------------------------------------- */

/* The narrowest link of the machines at both ends. */
static double narrowest_Bps(const struct skep_topology *t, const struct skep_link_figures *link)
{
	double narrowest_Bps = INFINITY;
	for (uint32_t i = 0; i < t->machines; i++) {
		if (t->machine[i].place == link->from)
			narrowest_Bps = fmin(narrowest_Bps, t->machine[i].up_Bps);
		if (t->machine[i].place == link->to)
			narrowest_Bps = fmin(narrowest_Bps, t->machine[i].down_Bps);
	}
	return narrowest_Bps;
}

/* What one message may get, as the topology has it. */
static double before_Bps(const struct skep_topology *t, const struct skep_link_figures *link)
{
	double Bps = fmin(link->bandwidth.before, narrowest_Bps(t, link));
	return fmin(Bps, skep_path_cap_Bps(t, link->from, link->to));
}

/* Why nothing can be said of the bandwidth, whatever the samples; NULL: it can. */
static const char *unseen(const struct work *w, const struct skep_link_figures *link, const struct skep_turns_fit *fit)
{
	if (link->shared && narrowest_Bps(w->topology, link) < link->bandwidth.before)
		return "the links of its machines are narrower";
	if (fit->turns < SKEP_CALIBRATE_SAMPLES_LEAST)
		return "fewer than five tensors had it to themselves";
	return NULL;
}

static struct skep_ranked inverse(const struct skep_ranked *r)
{
	return (struct skep_ranked){1 / r->value, 1 / r->high, 1 / r->low, r->samples};
}

/* What is no link's of a message's time: what the sender's overhead and the scenario add. */
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

/* The bandwidth, with a latency that stays, or with one that is told beside it. */
static void set_by_bytes(const struct skep_turns_fit *fit, double besides_s, struct skep_link_figures *link)
{
	struct skep_ranked s_per_B = fit->s_per_B_alone;
	if (fit->s_per_B.samples > 0 && bears(&fit->latency)) {
		set_latency(link, fit->latency, besides_s);
		s_per_B.value = fit->s_per_B.value;
		s_per_B.low = fmin(s_per_B.low, s_per_B.value);
		s_per_B.high = fmax(s_per_B.high, s_per_B.value);
	} else {
		link->latency.kept =
			fit->one_size ? "one size of messages, mostly bytes" : "times do not tell it from bytes";
	}
	if (bears(&s_per_B))
		link->bandwidth.after = inverse(&s_per_B);
	else if (s_per_B.samples > 0)
		link->bandwidth.kept = "times are a factor of two apart";
	else
		link->bandwidth.kept = "the times are of another latency, and do not tell the two apart";
}

/* Latency and bandwidth cannot be told apart: the one that takes less of a message's time stays, if the times allow it. */
static void set_one(
	const struct work *w, const struct skep_turns_fit *fit, double besides_s, struct skep_link_figures *link)
{
	bool by_bytes = fit->bytes / before_Bps(w->topology, link) > link->latency.before + besides_s;
	if (by_bytes && link->bandwidth.kept == NULL) {
		set_by_bytes(fit, besides_s, link);
		return;
	}
	if (link->bandwidth.kept == NULL)
		link->bandwidth.kept =
			fit->one_size ? "one size of messages, mostly latency" : "times do not tell bytes apart";
	if (fit->latency_alone.samples > 0 || link->messages < SKEP_CALIBRATE_SAMPLES_LEAST)
		set_latency(link, fit->latency_alone, besides_s);
	else
		link->latency.kept = "the times are of another bandwidth, and do not tell the two apart";
}

static void set_figures(
	const struct work *w, const struct skep_turns_fit *fit, double besides_s, struct skep_link_figures *link)
{
	double cap_Bps = skep_path_cap_Bps(w->topology, link->from, link->to);
	link->bandwidth.kept = unseen(w, link, fit);
	if (link->bandwidth.kept != NULL || !bears(&fit->s_per_B)) {
		set_one(w, fit, besides_s, link);
		return;
	}
	if (1 / fit->s_per_B.value > WINDOW_NEAR * cap_Bps)
		link->bandwidth.kept = "window or loss allow no more";
	else
		link->bandwidth.after = inverse(&fit->s_per_B);
	set_latency(link, fit->latency, besides_s);
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

static bool fit_pair(const struct work *w, const struct span *span, double extra_s, struct skep_link_figures *link)
{
	double besides_s = extra_s + skep_path_overhead_s(w->topology, link->from, link->to);
	struct skep_turns_fit fit;
	link->messages = span->end - span->begin + span->small_end - span->small;
	if (link->messages == 0) {
		link->latency.kept = link->bandwidth.kept = "no message went over it";
		return true;
	}
	if (!fit_turns(w, span, link->latency.before + besides_s, before_Bps(w->topology, link), &fit))
		return false;
	set_figures(w, &fit, besides_s, link);
	return true;
}

static bool fit_all(struct work *w, double extra_latency_s)
{
	const struct skep_topology *t = w->topology;
	size_t large = 0, small = w->large;
	for (uint32_t pair = 0; pair < t->places * t->places; pair++) {
		struct span span = span_of(w, pair, &large, &small);
		begin_figures(t, pair, &w->link[pair]);
		if (!fit_pair(w, &span, skep_topology_is_link(&t->pair[pair]) ? extra_latency_s : 0, &w->link[pair]))
			return false;
	}
	return true;
}

bool skep_links_fit(const struct skep_samples *samples, const struct skep_topology *t, double extra_latency_s,
	struct skep_link_figures *ret)
{
	struct work w = {.topology = t, .link = ret};
	for (uint32_t pair = 0; pair < t->places * t->places; pair++)
		begin_figures(t, pair, &ret[pair]);
	bool fine = gather(&w, samples);
	for (int pass = 0; pass < PASSES; pass++)
		fine = fine && mark(&w) && fit_all(&w, extra_latency_s);
	free(w.item);
	return fine;
}
