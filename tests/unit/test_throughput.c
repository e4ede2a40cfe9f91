/* SPDX-License-Identifier: Apache-2.0
 *
 * test_throughput.c - the expected time of a step against the same sums written plainly, pair by pair; what changes cost;
 * pipelines that are fixed; links that are missing; and how many bytes go over which links.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dtfm_fixture.h"
#include "planning/search/complexity.h"
#include "planning/search/methods.h"
#include "planning/search/throughput.h"
#include "tests/unit/seeds.h"

enum { STAGES_MOST = 4, WORKERS_MOST = 16, PUZZLES = 24, PLACES = 3 };

struct world {
	struct pool pool;
	double compute_s[WORKERS_MOST * STAGES_MOST], update_s[WORKERS_MOST * STAGES_MOST];
	double forward[STAGES_MOST], backward[STAGES_MOST], reduced[STAGES_MOST];
	struct skep_throughput t;
	void *mem;
	const struct skep_objective *cost;
	uint32_t workers, stages;
	double rent[WORKERS_MOST], egress[PLACES * PLACES];
	uint64_t way_ns[PLACES * PLACES];
	uint32_t type[WORKERS_MOST], place[WORKERS_MOST];
};

static void begin(struct world *w, uint32_t workers, uint32_t stages, enum skep_shares shares, uint64_t seed)
{
	*w = (struct world){.pool = pool_make(workers, stages, seed, false), .workers = workers, .stages = stages};
	for (uint32_t i = 0; i < workers * stages; i++) {
		w->compute_s[i] = 0.01 * (1 + pool_draw(&seed, 20));
		w->update_s[i] = 0.001 * pool_draw(&seed, 20);
	}
	for (uint32_t s = 0; s < stages; s++) {
		w->forward[s] = 2e6 * pool_draw(&seed, 20);
		w->backward[s] = 2e6 * pool_draw(&seed, 20);
		w->reduced[s] = 1e7 * pool_draw(&seed, 20);
	}
	w->t = (struct skep_throughput){&w->pool.links, stages, shares, w->compute_s, w->update_s, w->forward,
		w->backward, w->reduced, .ring_segments = 1 + pool_draw(&seed, 4), .microbatches = 32,
		.in_flight = 1 + pool_draw(&seed, 8), .period = 1 + pool_draw(&seed, 3),
		.flushes = 1 + pool_draw(&seed, 3), .delayed = pool_draw(&seed, 2)};
	w->t.overlap = w->t.delayed ? pool_draw(&seed, 3) : 0;
	w->mem = malloc(skep_throughput_size(&w->t));
	w->cost = skep_throughput_init(w->mem, &w->t);
}

/* In a stage behind the first so many of a type can be, as the first stage has, and one more. */
static bool fits(void *room, uint32_t stage, uint32_t type, const uint32_t *workers)
{
	(void)room;
	return stage == 0 || workers[stage] <= workers[0] + 1 + type;
}

static bool all_fit(const struct world *w, const uint32_t *stage_of)
{
	uint32_t workers[STAGES_MOST] = {0};
	for (uint32_t i = 0; i < w->workers; i++)
		if (stage_of[i] != SKEP_SPARE)
			workers[stage_of[i]]++;
	for (uint32_t i = 0; i < w->workers; i++)
		if (stage_of[i] != SKEP_SPARE && !fits(NULL, stage_of[i], w->type[i], workers))
			return false;
	return true;
}

/* The same pool, where memory depends on sizes, and who takes part and what is sent between places is paid; one price is not
 * known. `by_way`: senders choose by the way too. */
static void pay(struct world *w, bool by_way)
{
	for (uint32_t i = 0; i < w->workers; i++) {
		w->rent[i] = 1 + i % 5;
		w->type[i] = i % 3;
		w->place[i] = i % PLACES;
	}
	for (uint32_t i = 0; i < PLACES * PLACES; i++)
		w->egress[i] = i / PLACES == i % PLACES ? 0 : i == 5 ? (double)NAN : 4e-9 * (1 + i);
	for (uint32_t i = 0; i < PLACES * PLACES; i++)
		w->way_ns[i] = 7000000ull * (i % 5);
	w->t.egress_usd_per_B = w->egress;
	w->t.way_ns = by_way ? w->way_ns : NULL;
	w->t.place = w->place;
	w->t.places = PLACES;
	w->t.rent = w->rent;
	w->t.fits = fits;
	w->t.type = w->type;
	w->t.types = 3;
	free(w->mem);
	w->mem = malloc(skep_throughput_size(&w->t));
	w->cost = skep_throughput_init(w->mem, &w->t);
}

static void finish(struct world *w)
{
	w->pool.mem = NULL;
	pool_finish(&w->pool);
	free(w->mem);
}

/* ---- plainly -------------------------------------------------------------------------------------------------------- */

static double rate_of(const struct world *w, uint32_t i, uint32_t j)
{
	return w->pool.links.rate_Bps[i * w->workers + j];
}

static double delay_of(const struct world *w, uint32_t i, uint32_t j)
{
	return w->pool.links.delay_s[i * w->workers + j];
}

static uint32_t place_of(const struct world *w, const uint32_t *stage_of, uint32_t i)
{
	uint32_t place = 0;
	for (uint32_t j = 0; j < i && j < w->workers; j++)
		place += stage_of[j] == stage_of[i];
	return place;
}

/* Part of i's traffic with the stage of j that is with j. */
static double part_of(const struct world *w, const uint32_t *stage_of, uint32_t i, uint32_t j)
{
	double sum = 0, own = 0;
	if (w->t.shares == SKEP_SHARES_FIXED && i < w->workers)
		return place_of(w, stage_of, i) == place_of(w, stage_of, j);
	for (uint32_t k = 0; k < w->workers; k++)
		if (stage_of[k] == stage_of[j]) {
			double weight =
				w->t.shares == SKEP_SHARES_BY_SPEED ? 1 / w->compute_s[k * w->stages + stage_of[k]] : 1;
			sum += weight;
			own += k == j ? weight : 0;
		}
	return own / sum;
}

/* The same of what is paid for: also by the way from i to j and back. */
static double paid_part_of(const struct world *w, const uint32_t *stage_of, uint32_t i, uint32_t j)
{
	double sum = 0, own = 0;
	for (uint32_t k = 0; w->t.way_ns && k < w->workers; k++)
		if (stage_of[k] == stage_of[j]) {
			uint32_t from = w->place[i], to = w->place[k];
			uint64_t ns = w->way_ns[from * PLACES + to] + w->way_ns[to * PLACES + from];
			double weight = 1 / (w->compute_s[k * w->stages + stage_of[k]] + 1e-9 * (double)ns);
			sum += weight;
			own += k == j ? weight : 0;
		}
	return w->t.way_ns ? own / sum : part_of(w, stage_of, i, j);
}

static double plain_ring(const struct world *w, const uint32_t *stage_of, uint32_t stage)
{
	uint32_t member[WORKERS_MOST], n = 0;
	double slowest = 0, delay = 0;
	for (uint32_t i = 0; i < w->workers; i++)
		if (stage_of[i] == stage)
			member[n++] = i;
	for (uint32_t i = 0; i < n; i++) {
		slowest = fmax(slowest, 1 / rate_of(w, member[i], member[(i + 1) % n]));
		delay += delay_of(w, member[i], member[(i + 1) % n]) / n;
	}
	double chunk = w->reduced[stage] / n * slowest;
	return n < 2 ? 0 : (2.0 * n - 3) * fmax(chunk, chunk / w->t.ring_segments + delay) + chunk + delay;
}

static double plain_step(const struct world *w, const uint32_t *stage_of)
{
	double pace = 0, trip = 0, reduction = 0, update = 0, first = 0;
	for (uint32_t i = 0; i < w->workers; i++) {
		uint32_t s = stage_of[i];
		if (s == SKEP_SPARE)
			continue;
		double share = part_of(w, stage_of, UINT32_MAX, i), send = 0, receive = 0, delay = 0, travel = 0;
		for (uint32_t j = 0; j < w->workers; j++) {
			bool ahead = stage_of[j] == s + 1, before = stage_of[j] != SKEP_SPARE && stage_of[j] + 1 == s;
			if (!ahead && !before)
				continue;
			double part = part_of(w, stage_of, i, j);
			double there = part * (ahead ? w->forward[s] : w->backward[s - 1]) / rate_of(w, i, j);
			double back = part * (ahead ? w->backward[s] : w->forward[s - 1]) / rate_of(w, j, i);
			send += there;
			receive += back;
			travel += ahead ? there + back : 0;
			delay += ahead ? part * (delay_of(w, i, j) + delay_of(w, j, i)) : 0;
		}
		double compute = w->compute_s[i * w->stages + s];
		pace = fmax(pace, share * fmax(compute, fmax(send, receive)));
		trip += share * (compute + travel + delay);
		update = fmax(update, w->update_s[i * w->stages + s]);
		first += s == 0;
	}
	for (uint32_t s = 0; s < w->stages; s++)
		reduction = fmax(reduction, plain_ring(w, stage_of, s));
	double m = w->t.microbatches * w->t.period / w->t.flushes; /* of a flush */
	double flow = w->t.flushes * fmax(trip + (m - 1) * pace, m * trip / (first * w->t.in_flight));
	double beside = !w->t.delayed ? 0 : w->t.overlap > 0 ? fmin(1, w->t.overlap / w->t.period) : 1;
	return (fmax(beside * flow, reduction) + (1 - beside) * flow + update) / w->t.period;
}

static double price_of(const struct world *w, uint32_t i, uint32_t j)
{
	double usd = w->egress[w->place[i] * PLACES + w->place[j]];
	return isnan(usd) ? 0 : usd;
}

/* What traffic costs a step: of each microbatch there and back, and of the rings. */
static double plain_egress(const struct world *w, const uint32_t *stage_of)
{
	double usd = 0;
	for (uint32_t i = 0; i < w->workers; i++)
		for (uint32_t j = 0; stage_of[i] != SKEP_SPARE && j < w->workers; j++) {
			uint32_t s = stage_of[i], n = 0, between = 0;
			if (stage_of[j] == s + 1)
				usd += w->t.microbatches * part_of(w, stage_of, UINT32_MAX, i) *
				       paid_part_of(w, stage_of, i, j) *
				       (w->forward[s] * price_of(w, i, j) + w->backward[s] * price_of(w, j, i));
			for (uint32_t k = 0; k < w->workers; k++) {
				bool behind_i = i < j ? k > i && k < j : k > i || k < j;
				n += stage_of[k] == s;
				between += stage_of[k] == s && k != i && k != j && behind_i;
			}
			if (stage_of[j] == s && i != j && between == 0)
				usd += 2 * (n - 1.0) / n * w->reduced[s] / w->t.period * price_of(w, i, j);
		}
	return usd;
}

static bool same_s(double a, double b)
{
	return fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b));
}

static void deal(struct world *w, uint64_t *seed, uint32_t spares, uint32_t *ret)
{
	for (uint32_t i = 0; i < w->workers; i++)
		ret[i] = i < spares ? SKEP_SPARE : i % w->stages;
	for (uint32_t i = w->workers; i > 1; i--) {
		uint32_t j = pool_draw(seed, i), swapped = ret[i - 1];
		ret[i - 1] = ret[j];
		ret[j] = swapped;
	}
}

static void as_written_plainly(void **state)
{
	(void)state;
	for (uint64_t n = 0; n < 60; n++) {
		struct world w;
		uint32_t stages = 1 + n % STAGES_MOST, stage_of[WORKERS_MOST];
		uint64_t seed = n + 1;
		enum skep_shares shares = (enum skep_shares)(n % 3);
		begin(&w, shares == SKEP_SHARES_FIXED ? stages * 3 : stages * 3 + 2, stages, shares, n + 1);
		deal(&w, &seed, shares == SKEP_SHARES_FIXED ? 0 : (uint32_t)n % 3, stage_of);
		assert_true(same_s(w.cost->whole(w.cost->self, stage_of), plain_step(&w, stage_of)));
		struct skep_throughput_stage stage[STAGES_MOST];
		struct skep_throughput_parts parts = skep_throughput_explain(w.cost, stage_of, stage);
		assert_true(same_s(parts.step_s, plain_step(&w, stage_of)));
		assert_true(same_s(stage[parts.slowest_stage].pace_s, parts.pace_s));
		for (uint32_t s = 0; s < stages; s++)
			assert_true(stage_of[stage[s].slowest] == s &&
				    same_s(stage[s].reduction_s, plain_ring(&w, stage_of, s)));
		finish(&w);
	}
}

/* The time of a step times what a second costs; what does not fit cannot be, and is not explained as a time either. */
static void what_a_step_costs(void **state)
{
	(void)state;
	uint32_t can = 0, all = 60;
	for (uint64_t n = 0; n < all; n++) {
		struct world w;
		uint32_t stage_of[WORKERS_MOST];
		uint64_t seed = n + 1;
		double rent = 0;
		begin(&w, 9, 3, (enum skep_shares)(n % 2), n + 1);
		pay(&w, n % 4 == 0);
		for (uint32_t i = 0; i < 9; i++) {
			stage_of[i] = i < 3 ? i : pool_draw(&seed, 4);
			stage_of[i] = stage_of[i] == 3 ? SKEP_SPARE : stage_of[i];
			rent += stage_of[i] == SKEP_SPARE ? 0 : w.rent[i];
		}
		struct skep_throughput_stage stage[STAGES_MOST];
		double cost = w.cost->whole(w.cost->self, stage_of);
		double step_s = skep_throughput_explain(w.cost, stage_of, stage).step_s;
		bool fine = all_fit(&w, stage_of);
		assert_int_equal(isfinite(cost), fine);
		assert_int_equal(isfinite(step_s), fine);
		assert_true(!fine || (same_s(step_s, plain_step(&w, stage_of)) &&
					     same_s(cost, step_s * rent + plain_egress(&w, stage_of))));
		can += fine;
		finish(&w);
	}
	assert_true(can > 10 && can < all - 10);
}

static struct skep_change draw_change(const struct world *w, uint64_t *seed)
{
	bool swaps = w->t.shares == SKEP_SHARES_FIXED || pool_draw(seed, 2);
	uint32_t to = pool_draw(seed, w->stages + 1);
	struct skep_change change = {pool_draw(seed, w->workers), SKEP_NO_WORKER, to == w->stages ? SKEP_SPARE : to};
	if (swaps)
		change.other = pool_draw(seed, w->workers);
	return change;
}

static void a_change_costs_what_the_whole_would(void **state)
{
	(void)state;
	for (uint64_t n = 0; n < 18; n++) {
		struct world w, other;
		enum skep_shares shares = (enum skep_shares)(n % 3);
		uint32_t stage_of[WORKERS_MOST], changed[WORKERS_MOST];
		uint64_t seed = n;
		begin(&w, 12, 1 + n % 4, shares, n);
		begin(&other, 12, 1 + n % 4, shares, n);
		if (n >= 12) {
			pay(&w, n == 12);
			pay(&other, n == 12);
		}
		deal(&w, &seed, 0, stage_of);
		w.cost->whole(w.cost->self, stage_of);
		for (uint32_t i = 0; i < 300; i++) {
			struct skep_change change = draw_change(&w, &seed);
			memcpy(changed, stage_of, sizeof changed);
			changed[change.worker] = change.other == SKEP_NO_WORKER ? change.to : stage_of[change.other];
			if (change.other != SKEP_NO_WORKER)
				changed[change.other] = stage_of[change.worker];
			uint32_t left = 0;
			for (uint32_t j = 0; j < 12; j++)
				left += changed[j] == stage_of[change.worker];
			if (left == 0 || (change.other == SKEP_NO_WORKER && change.to == stage_of[change.worker]) ||
				change.other == change.worker)
				continue;
			double said = w.cost->change(w.cost->self, &change),
			       whole = other.cost->whole(other.cost->self, changed);
			assert_true(same_s(said, whole) || (isinf(said) && isinf(whole)));
			if (i % 2 == 0) {
				w.cost->keep(w.cost->self);
				memcpy(stage_of, changed, sizeof changed);
			}
		}
		finish(&w);
		finish(&other);
	}
}

static void what_cannot_be(void **state)
{
	(void)state;
	struct world w;
	uint32_t stage_of[] = {0, 0, 1, 1, 2, 2};
	begin(&w, 6, 3, SKEP_SHARES_BY_SPEED, 1);
	double *rate = (double *)w.pool.links.rate_Bps, fine = w.cost->whole(w.cost->self, stage_of);
	assert_true(isfinite(fine));
	rate[1 * 6 + 3] = 0; /* of two that may meet */
	free(w.mem);
	w.mem = malloc(skep_throughput_size(&w.t));
	w.cost = skep_throughput_init(w.mem, &w.t);
	assert_true(isinf(w.cost->whole(w.cost->self, stage_of)));
	/* 1 and 4 change places: 1 is in the last stage, and 3 still before it, so it would meet 3 too. With 0 it would not. */
	struct skep_change far = {3, 4, 0}, still = {1, 4, 0};
	assert_true(isinf(w.cost->change(w.cost->self, &still)));
	double moved = w.cost->change(w.cost->self, &far);
	assert_true(same_s(moved, plain_step(&w, (const uint32_t[]){0, 0, 1, 2, 1, 2})));
	w.cost->keep(w.cost->self);
	assert_true(isinf(w.cost->change(w.cost->self, &far)));
	w.compute_s[0 * 3 + 0] = INFINITY; /* worker 0 cannot serve stage 0 */
	double cannot = w.cost->whole(w.cost->self, stage_of);
	assert_true(isinf(cannot));
	finish(&w);
	begin(&w, 6, 3, SKEP_SHARES_FIXED, 1);
	assert_true(isinf(w.cost->whole(w.cost->self, (const uint32_t[]){0, 0, 0, 1, 1, 2})));
	assert_true(isfinite(w.cost->whole(w.cost->self, stage_of)));
	finish(&w);
}

/* All searches on it, stages of any size, against the enumeration of exact. */
static void searches_find_it(void **state)
{
	(void)state;
	for (uint64_t world = 1; world <= 2; world++) {
		struct world w;
		uint32_t least[] = {1, 1, 1}, most[] = {6, 6, 6}, stage_of[8];
		begin(&w, 8, 3, SKEP_SHARES_BY_SPEED, world);
		struct skep_problem problem = {.workers = 8, .stages = 3, .least = least, .most = most, .spares = 2};
		struct skep_search search = {SKEP_METHOD_EXACT, &problem, w.cost, {.evaluations = 1000000}, .seed = 1};
		search.together_s = skep_throughput_together(w.cost);
		search.along_s = skep_throughput_along(w.cost);
		search.alone_s = skep_throughput_alone(w.cost);
		double best = 0;
		for (uint32_t m = 0; m < 4; m++) {
			static const enum skep_method method[] = {
				SKEP_METHOD_EXACT, SKEP_METHOD_GENETIC, SKEP_METHOD_ANNEAL, SKEP_METHOD_PORTFOLIO};
			search.method = method[m];
			void *mem = malloc(skep_search_size(&search));
			struct skep_found found = skep_search_run(&search, mem, stage_of);
			assert_true(same_s(found.cost, plain_step(&w, stage_of)));
			best = m == 0 ? found.cost : best;
			assert_true(found.optimal || m > 0);
			assert_true(same_s(found.cost, best) && found.mean != found.cost);
			search.budget.evaluations = 20000;
			free(mem);
		}
		finish(&w);
	}
}

/* Problems of all sorts, drawn: sizes with bounds, spares, memory by stage and by sizes, workers whose stage is given, kinds of
 * workers, fixed pipelines; by time and by rent. ret_least and so on have room for all. */
struct puzzle {
	struct world w;
	struct skep_problem problem;
	uint32_t least[STAGES_MOST], most[STAGES_MOST], fixed[WORKERS_MOST], kind[WORKERS_MOST];
	uint64_t need[STAGES_MOST], have[WORKERS_MOST];
};

static void draw_puzzle(struct puzzle *p, uint64_t *seed)
{
	const uint32_t stages = 2 + pool_draw(seed, 2), shares = pool_draw(seed, 3);
	const bool even = shares == SKEP_SHARES_FIXED;
	const uint32_t workers = even ? stages * (stages == 2 ? 4 : 2 + pool_draw(seed, 2)) : 6 + pool_draw(seed, 3);
	begin(&p->w, workers, stages, (enum skep_shares)shares, *seed);
	p->problem = (struct skep_problem){.workers = workers, .stages = stages};
	if (!even && pool_draw(seed, 3) == 0)
		pay(&p->w, false);
	for (uint32_t s = 0; s < stages; s++) {
		p->least[s] = 1 + pool_draw(seed, 2);
		p->most[s] = p->least[s] + 1 + pool_draw(seed, 4);
		p->need[s] = pool_draw(seed, 4);
	}
	for (uint32_t i = 0; i < workers; i++) {
		p->have[i] = 1 + pool_draw(seed, 6);
		p->fixed[i] = pool_draw(seed, 8) == 0 ? pool_draw(seed, stages) : SKEP_ANY_STAGE;
	}
	if (!even) {
		p->problem.least = p->least;
		p->problem.most = p->most;
		p->problem.spares = pool_draw(seed, 3);
	}
	if (pool_draw(seed, 2) == 0) {
		p->problem.need_bytes = p->need;
		p->problem.have_bytes = p->have;
	}
	if (pool_draw(seed, 3) == 0)
		p->problem.fixed = p->fixed;
}

static double plain_cost_of(const struct puzzle *p, const uint32_t *stage_of)
{
	double rent = p->w.t.rent ? 0 : 1;
	if (p->w.t.fits && !all_fit(&p->w, stage_of))
		return INFINITY;
	for (uint32_t i = 0; p->w.t.rent && i < p->w.workers; i++)
		rent += stage_of[i] == SKEP_SPARE ? 0 : p->w.rent[i];
	return rent * plain_step(&p->w, stage_of) + (p->w.t.rent ? plain_egress(&p->w, stage_of) : 0);
}

/* The best of all, by the plain formulas. */
static double plain_best(struct puzzle *p, uint32_t *stage_of, uint32_t at)
{
	uint32_t count[STAGES_MOST];
	double best = INFINITY;
	if (at == p->w.workers)
		return skep_problem_allows(&p->problem, stage_of, count) ? plain_cost_of(p, stage_of) : INFINITY;
	for (uint32_t s = 0; s <= p->w.stages; s++) {
		stage_of[at] = s == p->w.stages ? SKEP_SPARE : s;
		if (s < p->w.stages || p->problem.spares > 0)
			best = fmin(best, plain_best(p, stage_of, at + 1));
	}
	return best;
}

/* Issue "Planning", shown by 1, for the expected time of a step: three methods, ten seeds each, as often as `skep plan` asks. */
static void all_seeds_find_it_in_puzzles(void **state)
{
	(void)state;
	static const enum skep_method method[] = {SKEP_METHOD_GENETIC, SKEP_METHOD_ANNEAL, SKEP_METHOD_PORTFOLIO};
	uint64_t seed = 77;
	uint32_t possible = 0;
	for (uint32_t n = 0; n < PUZZLES; n++) {
		struct puzzle p;
		uint32_t stage_of[WORKERS_MOST], count[STAGES_MOST];
		draw_puzzle(&p, &seed);
		double best = plain_best(&p, stage_of, 0);
		struct skep_search search = {.problem = &p.problem, .cost = p.w.cost, .budget = {.evaluations = 20000}};
		search.together_s = skep_throughput_together(p.w.cost);
		search.along_s = skep_throughput_along(p.w.cost);
		search.alone_s = skep_throughput_alone(p.w.cost);
		possible += isfinite(best);
		for (uint32_t m = 0; isfinite(best) && m < 3; m++)
			for (search.seed = 1; search.seed <= SEARCH_SEEDS; search.seed++) {
				search.method = method[m];
				void *mem = malloc(skep_search_size(&search));
				struct skep_found found = skep_search_run(&search, mem, stage_of);
				free(mem);
				assert_true(skep_problem_allows(&p.problem, stage_of, count));
				if (!same_s(found.cost, best))
					print_error("puzzle %u, %s, seed %u: %g, and %g is the best\n", n,
						skep_method_name(search.method), (unsigned)search.seed, found.cost,
						best);
				assert_true(same_s(found.cost, best));
			}
		finish(&p.w);
	}
	assert_true(possible > PUZZLES / 2);
}

/* ---- bytes ---------------------------------------------------------------------------------------------------------- */

static uint32_t half_of(const void *context, uint32_t source, uint32_t destination)
{
	return source / *(const uint32_t *)context != destination / *(const uint32_t *)context;
}

/* A ring: each edge carries 2 (n - 1) / n of the stage's bytes, `reduced` [stages]. */
static void sum_in_rings(
	const void *reduced, const uint32_t *stage_of, uint32_t *member, skep_carry_sum *carry, void *context)
{
	for (uint32_t stage = 0; stage < 2; stage++) {
		uint32_t members = 0;
		for (uint32_t i = 0; i < 8; i++)
			if (stage_of[i] == stage)
				member[members++] = i;
		double bytes = 2.0 * (members - 1) / members * ((const double *)reduced)[stage];
		for (uint32_t rank = 0; rank < members; rank++)
			carry(context, member[rank], member[(rank + 1) % members], bytes);
	}
}

/* By class they add up to the closed form: 2 B (S - 1) b L H numbers, and 2 (n - 1) V in each stage. */
static void bytes_add_up(void **state)
{
	(void)state;
	uint32_t half = 4, stage_of[8], scratch[2 + 8];
	struct skep_complexity closed = {.microbatches = 16,
		.stages = 2,
		.sent = skep_complexity_sent(2, 1, false),
		.samples = 4,
		.tokens = 128,
		.width = 512,
		.number_bytes = 2,
		.parameters = 2e6,
		.workers = 8,
		.period = 5};
	struct skep_complexity_bytes all = skep_complexity_of(&closed), by_class[2];
	assert_true(skep_complexity_sent(4, 2, false) == 2 * 7 && skep_complexity_sent(4, 1, true) == 2 + 2 * 5);
	assert_true(
		same_s(all.pipeline, 2.0 * 16 * 1 * 4 * 128 * 512 * 2) && same_s(all.reduction, 2 * 3 * 2e6 * 2 / 5));
	double bytes[] = {4 * 128 * 512 * 2, 0}, reduced[] = {2e6, 2e6};
	struct skep_step_traffic traffic = {.workers = 8,
		.stages = 2,
		.forward_bytes = bytes,
		.backward_bytes = bytes,
		.round = sum_in_rings,
		.of_round = reduced,
		.microbatches = 16,
		.period = 5,
		.classes = 2,
		.class_of = half_of,
		.context = &half};
	for (uint32_t fixed = 0; fixed < 2; fixed++)
		for (uint32_t strided = 0; strided < 2; strided++) {
			traffic.fixed = fixed;
			for (uint32_t i = 0; i < 8; i++)
				stage_of[i] = strided ? i % 2 : i / 4;
			skep_traffic_by_class(&traffic, stage_of, scratch, by_class);
			assert_true(same_s(by_class[0].pipeline + by_class[1].pipeline, all.pipeline));
			assert_true(same_s(by_class[0].reduction + by_class[1].reduction, all.reduction));
			/* A stage in each half: all activations cross, no reduction does. Dealt out: half of a swarm's
			 * activations do, none of fixed pipelines', and two hops of four of each ring. */
			double crossing = strided ? (fixed ? 0 : 0.5) : 1;
			assert_true(same_s(by_class[1].pipeline, crossing * all.pipeline));
			assert_true(same_s(by_class[1].reduction, strided ? all.reduction / 2 : 0));
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_written_plainly),
		cmocka_unit_test(what_a_step_costs),
		cmocka_unit_test(a_change_costs_what_the_whole_would),
		cmocka_unit_test(what_cannot_be),
		cmocka_unit_test(searches_find_it),
		cmocka_unit_test(all_seeds_find_it_in_puzzles),
		cmocka_unit_test(bytes_add_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
