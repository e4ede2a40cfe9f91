/* SPDX-License-Identifier: Apache-2.0
 *
 * test_trace_stats.c - the statistics of a trace by hand, those of the shipped traces, and laws fitted to lives of which the
 * law is known.
 */
#include <math.h>

#include "core/random.h"
#include "tests/unit/trace_fixture.h"

/* ---- statistics ---------------------------------------------------------------------------------------------------- */

static void statistics_by_hand(void **state)
{
	(void)state;
	put("trace", "100,join,a\n100,join,b\n130,join,c\n160,leave,a\n160,leave,b\n219,leave,c\n220,refused\n"
		     "230,join,d\n280,leave,d\n290,join,e\n300,end\n");
	struct skep_trace_stats s = stats_of(in_folder("trace"));
	assert_true(s.duration_s == 200 && s.lives == 4 && s.early == 2 && s.censored == 1 && s.at_start == 2);
	assert_true(fabs(s.mean_alive - (60 + 60 + 89 + 50 + 10) / 200.0) < 1e-9);
	assert_true(fabs(s.mean_s - (60 + 60 + 89 + 50) / 4.0) < 1e-9 && fabs(s.median_s - 60) < 1e-9);
	assert_true(fabs(s.p10_s - 53) < 1e-9 && fabs(s.p90_s - (60 + 0.7 * 29)) < 1e-9);
	assert_true(fabs(s.refusal_rate - 0.25) < 1e-12);
	assert_true(s.instant.bursts == 3 && s.instant.count[0] == 2 && s.instant.count[1] == 1);
	/* 160, 160 and 219 are less than a minute apart, 280 is not */
	assert_true(s.window.bursts == 2 && s.window.count[0] == 1 && s.window.count[2] == 1 && s.window.most == 3);
	assert_true(fabs(s.exponential.scale_s - (60 + 60 + 89 + 50 + 10) / 4.0) < 1e-9);
	skep_trace_stats_finish(&s);
}

static void shipped_traces(void **state)
{
	(void)state;
	static const struct {
		const char *path;
		uint64_t joins, losses, refused;
		uint32_t most;
		double hours;
	} shipped[] = {
		{"topologies/traces/aws-p3.csv", 177, 167, 0, 32, 11.37},
		{"topologies/traces/small.csv", 12, 6, 0, 8, 0.0833},
		{"topologies/traces/aws-2020-03.csv", 39, 32, 290, 8, 53.49},
		{"topologies/traces/gcp-2020-03.csv", 423, 417, 513, 8, 68.81},
		{"topologies/traces/g4dn-like-day.csv", 376, 353, 0, 32, 24},
	};
	for (size_t i = 0; i < COUNT(shipped); i++) {
		struct skep_trace_stats s = stats_of(shipped[i].path);
		assert_true(s.report.joins == shipped[i].joins && s.report.leaves == shipped[i].losses);
		assert_true(s.report.refused == shipped[i].refused && s.report.most == shipped[i].most);
		assert_true(fabs(s.duration_s / 3600 - shipped[i].hours) < 0.01);
		skep_trace_stats_finish(&s);
	}
	struct skep_trace_stats s = stats_of("topologies/traces/aws-p3.csv");
	assert_true(fabs(s.mean_alive - 24.0) < 0.05 && s.median_s == 59 * 60);
	skep_trace_stats_finish(&s);
}

/* Beyond SKEP_INCARNATIONS_KEPT a sample stands for all: the median is near the true one, the mean exact. */
static void many_lives_are_sampled(void **state)
{
	(void)state;
	enum { LIVES = 1200000 };
	FILE *file = fopen(in_folder("large"), "w");
	assert_non_null(file);
	for (uint32_t i = 0; i < LIVES; i++) /* 1 to 1000 s, those of the second half 1000 s more */
		fprintf(file, "%u,join,a\n%u,leave,a\n", i * 2001,
			i * 2001 + 1 + i % 1000 + (i < LIVES / 2 ? 0 : 1000));
	fclose(file);
	struct skep_trace_stats s = stats_of(in_folder("large"));
	assert_true(s.lives == LIVES && fabs(s.mean_s - 1000.5) < 1e-6);
	assert_true(fabs(s.median_s - 1000) < 10 && fabs(s.p90_s - 1800) < 10 && fabs(s.p10_s - 200) < 10);
	assert_true(fabs(s.exponential.scale_s - 1000.5) < 3);
	skep_trace_stats_finish(&s);
	unlink(in_folder("large"));
}

/* ---- laws ----------------------------------------------------------------------------------------------------------- */

/* Lives of a known law, those beyond `cut` censored there. */
static size_t draw_lives(
	double shape, double scale_s, double cut, size_t n, uint64_t seed, struct skep_lifetime_sample *ret)
{
	struct skep_lifetime_fit law = {.law = SKEP_LIFETIME_WEIBULL, .shape = shape, .scale_s = scale_s};
	for (size_t i = 0; i < n; i++) {
		double life = skep_lifetime_quantile_s(&law, (double)(skep_random_next(&seed) >> 11) * 0x1p-53);
		ret[i] = (struct skep_lifetime_sample){life < cut ? fmax(life, 1e-6) : cut, 1, life < cut};
	}
	return n;
}

static void fits_find_the_law_they_were_drawn_from(void **state)
{
	(void)state;
	static struct skep_lifetime_sample sample[4000];
	static const double shapes[] = {0.4, 0.7, 1, 1.5, 4}, cuts[] = {1e12, 5000, 2000};
	uint32_t far = 0, all = 0;
	for (size_t i = 0; i < COUNT(shapes) * COUNT(cuts) * 10; i++) {
		double shape = shapes[i % COUNT(shapes)], cut = cuts[i / COUNT(shapes) % COUNT(cuts)];
		struct skep_lifetime_fit fit;
		size_t n = draw_lives(shape, 3600, cut, COUNT(sample), i, sample);
		assert_true(skep_lifetime_fit(SKEP_LIFETIME_WEIBULL, sample, n, &fit));
		double off[2] = {
			fabs(fit.shape - shape) / fit.shape_error, fabs(fit.scale_s - 3600) / fit.scale_error_s};
		for (int j = 0; j < 2; j++) {
			assert_true(off[j] < 4.5);
			far += off[j] > 2;
			all++;
		}
	}
	assert_true(far > all / 100 && far < all / 10); /* 4.6 % lie beyond two standard errors */
}

static double log_likelihood(const struct skep_lifetime_sample *sample, size_t n, double k, double c)
{
	double sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += (sample[i].ended ? log(k / c) + (k - 1) * log(sample[i].seconds / c) : 0) -
		       pow(sample[i].seconds / c, k);
	return sum;
}

/* The stated errors against the likelihood's curvature in (shape, ln scale), by differences. */
static void assert_errors(const struct skep_lifetime_sample *sample, size_t n, const struct skep_lifetime_fit *fit)
{
	double h = 1e-4, l[3][3];
	for (int i = 0; i < 3; i++)
		for (int j = 0; j < 3; j++)
			l[i][j] = log_likelihood(sample, n, fit->shape + h * (i - 1), fit->scale_s * exp(h * (j - 1)));
	double kk = -(l[2][1] - 2 * l[1][1] + l[0][1]) / (h * h), cc = -(l[1][2] - 2 * l[1][1] + l[1][0]) / (h * h);
	double kc = -(l[2][2] - l[2][0] - l[0][2] + l[0][0]) / (4 * h * h), determinant = kk * cc - kc * kc;
	assert_true(fabs(sqrt(cc / determinant) / fit->shape_error - 1) < 1e-3);
	assert_true(fabs(fit->scale_s * sqrt(kk / determinant) / fit->scale_error_s - 1) < 1e-3);
}

static void a_fit_is_the_maximum(void **state)
{
	(void)state;
	struct skep_lifetime_sample sample[60];
	size_t n = COUNT(sample);
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct skep_lifetime_fit fit, exponential;
		draw_lives(0.8, 1000, 1500, n, seed, sample);
		assert_true(skep_lifetime_fit(SKEP_LIFETIME_WEIBULL, sample, n, &fit));
		assert_true(skep_lifetime_fit(SKEP_LIFETIME_EXPONENTIAL, sample, n, &exponential));
		double best = log_likelihood(sample, n, fit.shape, fit.scale_s);
		assert_true(fabs(best - fit.log_likelihood) < 1e-6);
		for (int i = -3; i <= 3; i++)
			for (int j = -3; j <= 3; j++)
				assert_true(log_likelihood(sample, n, fit.shape * (1 + 1e-3 * i),
						    fit.scale_s * (1 + 1e-3 * j)) <= best + 1e-9);
		assert_errors(sample, n, &fit);
		double plain_best = log_likelihood(sample, n, 1, exponential.scale_s);
		assert_true(fabs(plain_best - exponential.log_likelihood) < 1e-6);
		assert_true(fit.log_likelihood >= exponential.log_likelihood - 1e-9);
	}
}

static void odd_samples(void **state)
{
	(void)state;
	struct skep_lifetime_sample sample[3] = {{100, 1, false}, {200, 1, false}, {300, 1, false}};
	struct skep_lifetime_fit fit, a, b;
	assert_false(skep_lifetime_fit(SKEP_LIFETIME_WEIBULL, sample, 3, &fit));
	assert_false(skep_lifetime_fit(SKEP_LIFETIME_WEIBULL, sample, 0, &fit));
	sample[0].ended = true;
	assert_true(skep_lifetime_fit(SKEP_LIFETIME_WEIBULL, sample, 3, &fit) && isfinite(fit.scale_s));
	for (int i = 0; i < 3; i++)
		sample[i] = (struct skep_lifetime_sample){100, 1, true};
	assert_true(skep_lifetime_fit(SKEP_LIFETIME_WEIBULL, sample, 3, &fit)); /* no spread: as steep as it goes */
	assert_true(fit.shape > 100 && fabs(fit.scale_s - 100) < 1 && isfinite(fit.log_likelihood));
	/* a weight is as many equal lives */
	struct skep_lifetime_sample twice[4] = {{50, 1, true}, {50, 1, true}, {90, 1, true}, {90, 1, true}};
	struct skep_lifetime_sample once[2] = {{50, 2, true}, {90, 2, true}};
	assert_true(skep_lifetime_fit(SKEP_LIFETIME_WEIBULL, twice, 4, &a) &&
		    skep_lifetime_fit(SKEP_LIFETIME_WEIBULL, once, 2, &b));
	assert_true(fabs(a.shape - b.shape) < 1e-7 && fabs(a.scale_s - b.scale_s) < 1e-5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(statistics_by_hand),
		cmocka_unit_test(shipped_traces),
		cmocka_unit_test(many_lives_are_sampled),
		cmocka_unit_test(fits_find_the_law_they_were_drawn_from),
		cmocka_unit_test(a_fit_is_the_maximum),
		cmocka_unit_test(odd_samples),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
