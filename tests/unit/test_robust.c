/* SPDX-License-Identifier: Apache-2.0
 *
 * test_robust.c - aggregates of gradients against plain references in double precision: who is left out, ties, weights, votes
 * that there are not, numbers that are none; what a few liars can do, and what devices that lie tell.
 */
#include "models/update/robust.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/collective/collective.h"
#include "core/random.h"
#include "models/update/byzantine.h"
#include "models/update/codec.h"

enum { MEMBERS_MAX = 40 };

struct case_of { /* one reduction */
	uint32_t members;
	size_t n;
	float *part; /* [members][n] */
	uint32_t weight[SKEP_ROSTER_MAX];
	float *got;
};

/* Some members have counted nothing, and then their part says so; some elements are equal. */
static void draw(struct case_of *c, uint32_t members, size_t n, uint64_t seed, bool ties)
{
	*c = (struct case_of){.members = members, .n = n};
	c->part = malloc(members * n * sizeof *c->part + 1);
	c->got = malloc(n * sizeof *c->got + 1);
	for (uint32_t m = 0; m < members; m++) {
		c->weight[m] = skep_random_below(&seed, 4) ? 1 + skep_random_below(&seed, 9) : 0;
		for (size_t i = 0; i < n; i++) {
			double g = (double)skep_random_below(&seed, ties ? 5 : 1u << 24) - (ties ? 2 : 1 << 23);
			c->part[m * n + i] = (float)(g * c->weight[m]);
		}
	}
}

static void finish(struct case_of *c)
{
	free(c->part);
	free(c->got);
}

static void aggregate(struct case_of *c, const struct skep_robust *robust)
{
	skep_robust_aggregate(robust, c->members, c->n, c->part, c->weight, c->got);
}

/* ---- plain references ---------------------------------------------------------------------------------------------- */

struct vote {
	double g, sum, weight;
	uint32_t rank;
};

static uint32_t votes_of(const struct case_of *c, size_t i, struct vote *ret)
{
	uint32_t votes = 0;
	for (uint32_t m = 0; m < c->members; m++)
		if (c->weight[m] > 0)
			ret[votes++] = (struct vote){(double)(c->part[m * c->n + i] / (float)c->weight[m]),
				(double)c->part[m * c->n + i], c->weight[m], m};
	return votes;
}

static int by_size(const void *a, const void *b)
{
	const struct vote *x = a, *y = b;
	if (x->g != y->g)
		return x->g < y->g ? -1 : 1;
	return x->rank < y->rank ? -1 : 1;
}

/* Of equal ones the lowest ranks go first, at both ends; what is not finite goes before all. */
static double trimmed(struct vote *vote, uint32_t votes, uint32_t out, double all)
{
	bool gone[MEMBERS_MAX] = {false};
	double sum = 0, weight = 0;
	uint32_t finite = 0;
	for (uint32_t v = 0; v < votes; v++)
		if (isfinite(vote[v].g))
			vote[finite++] = vote[v];
	if (finite == 0)
		return NAN;
	out = out > votes - finite ? out - (votes - finite) : 0;
	votes = finite;
	qsort(vote, votes, sizeof *vote, by_size);
	double high = vote[votes - 1 - out].g;
	uint32_t left = out;
	for (uint32_t v = 0; v < out; v++)
		gone[v] = true;
	for (uint32_t v = 0; v < votes; v++)
		if (vote[v].g > high && !gone[v])
			gone[v] = true, left--;
	for (uint32_t v = 0; v < votes && left > 0; v++)
		if (vote[v].g == high && !gone[v])
			gone[v] = true, left--;
	for (uint32_t v = 0; v < votes; v++)
		if (!gone[v])
			sum += vote[v].sum, weight += vote[v].weight;
	return sum * all / weight;
}

static double all_of(const struct case_of *c)
{
	double all = 0;
	for (uint32_t m = 0; m < c->members; m++)
		all += c->weight[m];
	return all;
}

static uint32_t counting(const struct case_of *c)
{
	uint32_t votes = 0;
	for (uint32_t m = 0; m < c->members; m++)
		votes += c->weight[m] > 0;
	return votes;
}

static void expect(const struct case_of *c, size_t i, double right, double size)
{
	if (!(fabs((double)c->got[i] - right) <= c->members * 0x1p-22 * size))
		fail_msg(
			"element %zu of %zu, %u members: %.9g for %.9g", i, c->n, c->members, (double)c->got[i], right);
}

/* ---- who is left out ----------------------------------------------------------------------------------------------- */

static void test_at_most_a_minority(void **state)
{
	(void)state;
	for (uint32_t votes = 0; votes <= SKEP_ROSTER_MAX; votes++)
		for (uint32_t trim = 0; trim < 300; trim += 7) {
			struct skep_robust robust = {.method = SKEP_ROBUST_TRIMMED_MEAN, .trim = trim};
			uint32_t most = votes > 0 ? (votes - 1) / 2 : 0;
			assert_int_equal(skep_robust_left_out(&robust, votes), trim < most ? trim : most);
			robust.trim = 0;
			for (uint32_t percent = 0; percent <= 50; percent += 5) {
				uint32_t part = votes * percent / 100;
				robust.share = percent / 100.0;
				assert_int_equal(skep_robust_left_out(&robust, votes), part < most ? part : most);
			}
		}
}

/* ---- trimmed mean -------------------------------------------------------------------------------------------------- */

/* Some values that are not finite, in some elements all of them. */
static void spoil(struct case_of *c, uint64_t seed)
{
	const float odd[] = {NAN, -NAN, INFINITY, -INFINITY};
	for (size_t i = 0; i < c->n; i++)
		for (uint32_t m = 0; m < c->members; m++)
			if (skep_random_below(&seed, 4) < i % 5)
				c->part[m * c->n + i] = odd[skep_random_below(&seed, 4)];
}

static void check_trimmed(uint32_t members, size_t n, uint32_t trim, uint64_t seed, bool ties, bool odd)
{
	struct case_of c;
	struct vote vote[MEMBERS_MAX];
	struct skep_robust robust = {.method = SKEP_ROBUST_TRIMMED_MEAN, .trim = trim};
	draw(&c, members, n, seed, ties);
	if (odd)
		spoil(&c, seed);
	aggregate(&c, &robust);
	uint32_t votes = counting(&c), out = skep_robust_left_out(&robust, votes);
	for (size_t i = 0; i < n; i++) {
		votes_of(&c, i, vote);
		double size = 0, right = votes > 0 ? trimmed(vote, votes, out, all_of(&c)) : 0;
		for (uint32_t v = 0; v < votes; v++)
			size += isfinite(vote[v].sum) ? fabs(vote[v].sum) : 0;
		if (isnan(right))
			assert_false(isfinite(c.got[i]));
		else if (out > 0)
			expect(&c, i, right, size);
		else
			assert_true(odd || votes == 0 || fabs((double)c.got[i] - right) <= 1e-5 * size);
	}
	finish(&c);
}

static void test_trimmed_means(void **state)
{
	(void)state;
	const size_t lengths[] = {0, 1, 15, 16, 17, 100};
	for (uint32_t members = 1; members <= 33; members++)
		for (uint32_t trim = 0; trim < 5; trim++)
			for (uint64_t seed = 0; seed < 6; seed++)
				for (int odd = 0; odd < 2; odd++)
					check_trimmed(
						members, lengths[seed], trim, seed * 100 + members, seed % 2, odd);
}

/* All kept: the sum, rank by rank, to the bit. */
static void test_none_left_out_is_the_sum(void **state)
{
	(void)state;
	const struct skep_robust none[] = {{.method = SKEP_ROBUST_MEAN, .trim = 3},
		{.method = SKEP_ROBUST_TRIMMED_MEAN}, {.method = SKEP_ROBUST_ZENO, .rho = 0.5}};
	for (size_t r = 0; r < 3; r++)
		for (uint32_t members = 1; members < 20; members++) {
			struct case_of c;
			draw(&c, members, 50, members, false);
			aggregate(&c, &none[r]);
			for (size_t i = 0; i < c.n; i++) {
				float sum = -0.0f;
				for (uint32_t m = 0; m < members; m++)
					sum += c.weight[m] > 0 ? c.part[m * c.n + i] : -0.0f;
				sum = counting(&c) > 0 ? sum : 0;
				assert_memory_equal(&sum, &c.got[i], sizeof sum);
			}
			finish(&c);
		}
}

/* b liars among m > 2b votes: each element of the mean stays between the least and the largest of the others. */
static void test_attackers_stay_between_the_others(void **state)
{
	(void)state;
	const float lies[] = {FLT_MAX, -FLT_MAX, INFINITY, -INFINITY, NAN, -NAN, 0, 1e30f, 2, -0.0f};
	uint64_t random = 1;
	for (uint32_t turn = 0; turn < 3000; turn++) {
		struct case_of c;
		uint32_t attackers = 1 + skep_random_below(&random, 4),
			 members = 2 * attackers + 1 + skep_random_below(&random, 6);
		struct skep_robust robust = {.method = SKEP_ROBUST_TRIMMED_MEAN, .trim = attackers};
		draw(&c, members, 20, turn, turn % 2);
		for (uint32_t m = 0; m < members; m++)
			c.weight[m] = 1 + m % 3;
		for (size_t i = 0; i < c.n; i++)
			for (uint32_t m = 0; m < attackers; m++)
				c.part[(m * 3 + turn) % members * c.n + i] = lies[skep_random_below(&random, 10)];
		aggregate(&c, &robust);
		for (size_t i = 0; i < c.n; i++) {
			double least = INFINITY, largest = -INFINITY;
			for (uint32_t m = 0; m < members; m++) {
				bool lies_here = false;
				for (uint32_t l = 0; l < attackers; l++)
					lies_here |= (l * 3 + turn) % members == m;
				double g = (double)(c.part[m * c.n + i] / (float)c.weight[m]);
				least = lies_here ? least : fmin(least, g);
				largest = lies_here ? largest : fmax(largest, g);
			}
			double mean = (double)c.got[i] / all_of(&c), slack = 1e-5 * fmax(fabs(least), fabs(largest));
			if (!(mean >= least - slack && mean <= largest + slack))
				fail_msg("%g is not in %g .. %g", mean, least, largest);
		}
		finish(&c);
	}
}

/* ---- zeno ---------------------------------------------------------------------------------------------------------- */

static double median_of(struct vote *vote, uint32_t votes)
{
	qsort(vote, votes, sizeof *vote, by_size);
	return 0.5 * vote[(votes - 1) / 2].g + 0.5 * vote[votes / 2].g;
}

static void check_zeno(uint32_t members, size_t n, const struct skep_robust *robust, uint64_t seed)
{
	struct case_of c;
	struct vote vote[MEMBERS_MAX];
	double score[MEMBERS_MAX] = {0};
	bool gone[MEMBERS_MAX] = {false};
	draw(&c, members, n, seed, false);
	aggregate(&c, robust);
	uint32_t votes = counting(&c);
	for (size_t i = 0; i < n; i++) {
		votes_of(&c, i, vote);
		double centre = votes > 0 ? median_of(vote, votes) : 0;
		for (uint32_t v = 0; v < votes; v++)
			score[vote[v].rank] += centre * vote[v].g - robust->rho * vote[v].g * vote[v].g;
	}
	for (uint32_t out = skep_robust_left_out(robust, votes); out > 0; out--) {
		uint32_t worst = SKEP_NO_INDEX;
		for (uint32_t m = 0; m < members; m++)
			if (c.weight[m] > 0 && !gone[m] && (worst == SKEP_NO_INDEX || score[m] <= score[worst]))
				worst = m;
		gone[worst] = true;
	}
	double kept = 0;
	for (uint32_t m = 0; m < members; m++)
		kept += gone[m] ? 0 : c.weight[m];
	for (size_t i = 0; i < n; i++) {
		double sum = 0, size = 0;
		for (uint32_t m = 0; m < members; m++) {
			sum += gone[m] || c.weight[m] == 0 ? 0 : (double)c.part[m * n + i];
			size += fabs((double)c.part[m * n + i]);
		}
		expect(&c, i, kept > 0 ? sum * all_of(&c) / kept : 0, size);
	}
	finish(&c);
}

static void test_zeno(void **state)
{
	(void)state;
	const size_t lengths[] = {1, 15, 16, 17, 100};
	for (uint32_t members = 1; members <= 33; members++)
		for (uint32_t seed = 0; seed < 20; seed++)
			check_zeno(members, lengths[seed % 5],
				&(struct skep_robust){
					.method = SKEP_ROBUST_ZENO, .trim = seed % 4, .rho = seed % 3 ? 0.5 : 0.1},
				seed * 100 + members);
}

/* With rho 1/2 the score is half of |z|^2 - |g - z|^2: who is left out is who is farthest from the median. What is no number goes
 * first, wherever it is. */
static void test_zeno_leaves_out_who_is_far(void **state)
{
	(void)state;
	enum { MEMBERS = 7, N = 40 };
	const float lies[] = {NAN, -INFINITY, INFINITY, FLT_MAX, 1e6f, -1e6f};
	struct skep_robust robust = {.method = SKEP_ROBUST_ZENO, .trim = 2, .rho = 0.5};
	for (size_t l = 0; l < sizeof lies / sizeof *lies; l++)
		for (uint32_t liar = 0; liar < MEMBERS; liar++) {
			struct case_of c;
			draw(&c, MEMBERS, N, 5, true);
			for (uint32_t m = 0; m < MEMBERS; m++)
				c.weight[m] = 1;
			float *wrong = c.part + liar * N, *other = c.part + (liar + 3) % MEMBERS * N;
			wrong[l] = lies[l];
			for (size_t i = 0; i < N; i++)
				other[i] = 100;
			aggregate(&c, &robust);
			for (size_t i = 0; i < N; i++) {
				double sum = 0;
				for (uint32_t m = 0; m < MEMBERS; m++)
					sum += m == liar || m == (liar + 3) % MEMBERS ? 0 : (double)c.part[m * N + i];
				expect(&c, i, sum * MEMBERS / (MEMBERS - 2), 100);
			}
			finish(&c);
		}
}

/* As far from the median, on either side: the lower rank stays. */
static void test_zeno_of_equals(void **state)
{
	(void)state;
	const struct skep_robust robust = {.method = SKEP_ROBUST_ZENO, .trim = 1, .rho = 0.5};
	const uint32_t weight[] = {1, 1, 1};
	for (uint32_t middle = 0; middle < 3; middle++) {
		float part[3] = {-1, -1, -1}, got;
		part[middle] = 0;
		part[middle == 2 ? 1 : 2] = 1;
		skep_robust_aggregate(&robust, 3, 1, part, weight, &got);
		assert_true(got == -1 * 3.0f / 2);
	}
}

/* ---- the very bits --------------------------------------------------------------------------------------------------- */

/* Taken once: no compiler, level or width of registers may change them. */
static void test_the_very_bits(void **state)
{
	(void)state;
	static const uint64_t golden[2] = {0x7742bd3f7c3f5b14u, 0xdcbc62f11bd16961u};
	for (size_t method = 0; method < 2; method++) {
		struct case_of c;
		struct skep_robust robust = {
			.method = (enum skep_robust_method)(SKEP_ROBUST_TRIMMED_MEAN + method), .trim = 2, .rho = 0.5};
		uint64_t hash = 0;
		draw(&c, 11, 1003, 9, false);
		for (size_t i = 0; i < 11 * c.n; i++)
			c.part[i] *= 1.1f;
		aggregate(&c, &robust);
		for (size_t i = 0; i < c.n; i++) {
			uint32_t bits;
			memcpy(&bits, &c.got[i], sizeof bits);
			hash = skep_mix(hash ^ bits);
		}
		if (hash != golden[method])
			fail_msg("method %zu: 0x%016llx", method, (unsigned long long)hash);
		finish(&c);
	}
}

/* ---- devices that lie ------------------------------------------------------------------------------------------------ */

/* The same however it is cut; never the same for another worker or round; as far off as was asked for. */
static void test_lies(void **state)
{
	(void)state;
	enum { N = 20000 };
	static float own[N], whole[N], piece[N], other[N];
	for (size_t i = 0; i < N; i++)
		own[i] = (float)(i % 7) - 2.5f;
	for (enum skep_attack attack = SKEP_ATTACK_SIGN_FLIP; attack <= SKEP_ATTACK_NAN; attack++) {
		struct skep_byzantine liar = {.attack = attack, .scale = 3, .seed = 11},
				      another = {.attack = attack, .scale = 3, .seed = 12};
		double squares = 0;
		skep_byzantine_tell(&liar, 4, 0, N, own, whole);
		for (size_t first = 0; first < N; first += 1234)
			skep_byzantine_tell(
				&liar, 4, first, N - first < 1234 ? N - first : 1234, own + first, piece + first);
		assert_memory_equal(whole, piece, sizeof whole);
		skep_byzantine_tell(&another, 4, 0, N, own, piece);
		skep_byzantine_tell(&liar, 5, 0, N, own, other);
		for (size_t i = 0; i < N; i++) {
			double ratio = (double)whole[i] / (double)own[i];
			assert_true(attack != SKEP_ATTACK_SIGN_FLIP || ratio == -3);
			assert_true(attack == SKEP_ATTACK_NAN ? isnan(whole[i]) : isfinite(whole[i]));
			squares += ratio * ratio;
		}
		assert_true(attack == SKEP_ATTACK_NAN || fabs(squares / N - 9) < 0.3);
		bool draws = attack == SKEP_ATTACK_NOISE;
		assert_true((memcmp(whole, piece, sizeof whole) != 0) == draws);
		assert_true((memcmp(whole, other, sizeof whole) != 0) == draws);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_at_most_a_minority),
		cmocka_unit_test(test_trimmed_means),
		cmocka_unit_test(test_none_left_out_is_the_sum),
		cmocka_unit_test(test_attackers_stay_between_the_others),
		cmocka_unit_test(test_zeno),
		cmocka_unit_test(test_zeno_leaves_out_who_is_far),
		cmocka_unit_test(test_zeno_of_equals),
		cmocka_unit_test(test_the_very_bits),
		cmocka_unit_test(test_lies),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
