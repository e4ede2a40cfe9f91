/* SPDX-License-Identifier: Apache-2.0
 *
 * test_law.c - laws of losses: the formula, its file, the range that it was fitted in; and fits that must find the parameters
 * that made-up losses were made with, within their errors, fix what the losses cannot tell, and refuse what is no curve.
 */
#include "tests/unit/fresh.h"
#include "tests/unit/plot_fixture.h"

#include "analysis/fit/fit.h"
#include "core/random.h"
#include "scenarios/plan/law.h"
#include "scenarios/plan/loss.h"

#define assert_near(a, b, tolerance) assert_true(fabs((a) - (b)) <= (tolerance))

static char root[4096]; /* of the tree */

/* What the made-up losses obey: like a small language model. */
static struct skep_law truth(void)
{
	struct skep_law law = {.model = "made up",
		.reference = 4e6,
		.first = 5.5,
		.value = {1.4, 0.5, 0.45, 6e4, 0.3, 0.15, 0.8},
		.least = {0, 1, 1, 0, 2000},
		.most = {4e6, 64, 8, 1, 2000}};
	for (int i = 0; i < SKEP_LAW_PARAMETERS; i++)
		law.error[i] = 0.01;
	return law;
}

static double gauss(uint64_t *random)
{
	double sum = 0;
	for (int i = 0; i < 12; i++)
		sum += (double)(skep_random_next(random) >> 11) * 0x1p-53;
	return sum - 6;
}

/* A run of so many points, from `from` tokens on; noise relative to the loss. */
static void add_run(struct skep_loss_points *points, const struct skep_law *law, double every, double replicas,
	double stale, double from, uint32_t count, double noise, uint64_t *random)
{
	snprintf(points->model, sizeof points->model, "%s", law->model);
	points->first = law->first;
	points->point = realloc(points->point, (points->count + count) * sizeof *points->point);
	assert_non_null(points->point);
	for (uint32_t i = 0; i < count; i++) {
		double tokens = from * pow(4e6 / from, i / fmax(count - 1, 1));
		struct skep_loss_point *point = &points->point[points->count++];
		*point = (struct skep_loss_point){.at = {tokens, every, replicas, stale, 2000}, .run = points->runs};
		point->loss = skep_law_loss(law, point->at) * (1 + noise * gauss(random));
	}
	points->run[points->runs] = points->runs + 1;
	points->runs++;
}

static void test_formula(void **state)
{
	(void)state;
	struct skep_law law = truth();
	double at[SKEP_LAW_AXES] = {4e6, 1, 1, 0, 2000};
	assert_near(skep_law_loss(&law, at), 1.9, 1e-12); /* E + A */
	at[SKEP_LAW_MEMBERS] = 8;                         /* with H = 1 replicas change nothing */
	assert_near(skep_law_loss(&law, at), 1.9, 1e-12);
	at[SKEP_LAW_EVERY] = 16;
	at[SKEP_LAW_STALE] = 1;
	double waste = pow(16, 0.3) * pow(8, 0.15 * log(16)) * pow(2, 0.8);
	assert_near(skep_law_loss(&law, at), 1.4 + 0.5 * pow((4e6 / waste + 6e4) / (4e6 + 6e4), -0.45), 1e-12);
	at[SKEP_LAW_TOKENS] = 0; /* the first loss knows of none of that */
	double first = skep_law_loss(&law, at);
	at[SKEP_LAW_EVERY] = at[SKEP_LAW_MEMBERS] = 1;
	assert_near(skep_law_loss(&law, at), first, 1e-12);
	law.value[SKEP_LAW_ONSET] = 0;
	assert_near(skep_law_loss(&law, at), 5.5, 0); /* never more than the first one */
}

static void test_range(void **state)
{
	(void)state;
	char how[512];
	struct skep_law law = truth();
	double at[SKEP_LAW_AXES] = {4e6, 64, 8, 1, 2000};
	assert_false(skep_law_leaves(&law, "made up", at, how, sizeof how));
	at[SKEP_LAW_TOKENS] = 0;
	assert_false(skep_law_leaves(&law, "made up", at, how, sizeof how));
	assert_true(skep_law_leaves(&law, "another", at, how, sizeof how));
	assert_string_equal(how, "model another (fitted: made up)");
	double far[SKEP_LAW_AXES] = {5e6, 65, 9, 2, 1999};
	assert_true(skep_law_leaves(&law, "made up", far, how, sizeof how));
	assert_string_equal(how,
		"5e+06 tokens (fitted: 0 to 4e+06); H = 65 (fitted: 1 to 64); 9 replicas (fitted: 1 to 8);"
		" staleness 2 (fitted: 0 to 1); a batch of 1999 tokens (fitted: 2000)");
	assert_true(skep_law_leaves(&law, "made up", far, how, 20)); /* what has no room is cut */
	assert_int_equal(strlen(how), 19);
}

/* Two terms by hand: 10 N^-0.1 M^0.01 and 400 D^-0.28, of which the first falls as models grow. */
static struct skep_law powers(void)
{
	struct skep_law law = truth();
	law.terms = 2;
	law.value[SKEP_LAW_FLOOR] = 0.5;
	law.term[0] = (struct skep_law_term){.factor = 10, .size_power = -0.1};
	law.term[0].power[SKEP_LAW_MEMBERS] = 0.01;
	law.term[1] = (struct skep_law_term){.factor = 400};
	law.term[1].power[SKEP_LAW_TOKENS] = -0.28;
	law.size = 1e6;
	law.size_least = 1e5;
	law.size_most = 1e7;
	return law;
}

static void test_powers(void **state)
{
	(void)state;
	char how[512];
	struct skep_law law = powers(), read;
	struct skep_diag diag = {0};
	double at[SKEP_LAW_AXES] = {4e9, 64, 8, 0, 2000};
	double loss = 0.5 + 10 * pow(1e6, -0.1) * pow(8, 0.01) + 400 * pow(4e9, -0.28);
	assert_near(skep_law_loss(&law, at), loss, 1e-12);
	law.term[0].power[SKEP_LAW_STALE] = 0.5; /* of 1 + s */
	assert_near(skep_law_loss(&law, at), loss, 1e-12);
	at[SKEP_LAW_STALE] = 1;
	assert_near(skep_law_loss(&law, at), loss + (sqrt(2) - 1) * 10 * pow(1e6, -0.1) * pow(8, 0.01), 1e-12);
	at[SKEP_LAW_TOKENS] = 0;
	assert_near(skep_law_loss(&law, at), 5.5, 0);
	assert_false(skep_law_leaves(&law, "any model", at, how, sizeof how));
	law.size = 2e7;
	assert_true(skep_law_leaves(&law, "any model", at, how, sizeof how));
	assert_string_equal(how, "2e+07 parameters (fitted: 1e+05 to 1e+07)");
	FILE *file = fopen("powers.yaml", "w");
	fprintf(file,
		"law: powers\nsource: \"made up\"\nfirst_loss: %.9g\nfloor: 0.5\nterms:\n"
		"  - {factor: 10, parameters: -0.1, replicas: 0.01, staleness: 0.5}\n"
		"  - {factor: 400, tokens: -0.28}\n"
		"fitted: {tokens: [0, 1e12], every: [1, 100], replicas: [1, 100], staleness: [0, 1], "
		"batch: [0, 1e9], parameters: [1e5, 1e7], misfit: 0.01}\n",
		law.first);
	fclose(file);
	if (!skep_law_read("powers.yaml", &read, &diag))
		fail_msg("%u:%u: %s", diag.line, diag.column, diag.message);
	read.size = law.size;
	at[SKEP_LAW_TOKENS] = 3e8;
	assert_near(skep_law_loss(&read, at), skep_law_loss(&law, at), 1e-8);
	assert_string_equal(read.source, "made up");
	assert_true(read.terms == 2 && read.size_least == 1e5 && read.size_most == 1e7);
}

static void refuses_powers(const char *terms, const char *expected)
{
	struct skep_law read;
	struct skep_diag diag = {0};
	FILE *file = fopen("bad.yaml", "w");
	fprintf(file, "law: powers\nsource: \"made up\"\nfirst_loss: 10\nterms: [%s]\nfitted: {}\n", terms);
	fclose(file);
	assert_false(skep_law_read("bad.yaml", &read, &diag));
	if (!strstr(diag.message, expected))
		fail_msg("`%s` instead of `%s`", diag.message, expected);
}

static void test_bad_powers(void **state)
{
	(void)state;
	refuses_powers("", "terms: expected 1 to 8");
	refuses_powers("{factor: 10, parameters: -0.1}", "none has `tokens`");
	refuses_powers("{factor: 10, tokens: 0.3}", "would rise with tokens");
	refuses_powers("{factor: -10, tokens: -0.3}", "would rise with tokens");
	refuses_powers("{factor: 10, token: -0.3}", "token");
	refuses_powers("{tokens: -0.3}", "factor");
	refuses_powers("{factor: 10, tokens: -0.3}", "fitted");
}

static void test_file(void **state)
{
	(void)state;
	struct skep_law law = truth(), read;
	struct skep_diag diag = {0};
	snprintf(law.model, sizeof law.model, "a \"quoted\" \\ name");
	snprintf(law.fixed[SKEP_LAW_PERIOD], sizeof law.fixed[0], "all runs have H = 1");
	law.value[SKEP_LAW_PERIOD] = 0;
	law.misfit = 0.0125;
	FILE *file = fopen("law.yaml", "w");
	skep_law_write(&law, file);
	fclose(file);
	if (!skep_law_read("law.yaml", &read, &diag))
		fail_msg("%u:%u: %s", diag.line, diag.column, diag.message);
	assert_string_equal(read.model, law.model);
	assert_true(read.reference == law.reference && read.first == law.first && read.misfit == law.misfit);
	for (int i = 0; i < SKEP_LAW_PARAMETERS; i++) {
		assert_near(read.value[i], law.value[i], 1e-6 * fabs(law.value[i]));
		assert_string_equal(read.fixed[i], law.fixed[i]);
		assert_true(law.fixed[i][0] ? isnan(read.error[i]) : read.error[i] == law.error[i]);
	}
	for (int axis = 0; axis < SKEP_LAW_AXES; axis++)
		assert_true(read.least[axis] == law.least[axis] && read.most[axis] == law.most[axis]);
}

static void refuses_file(const char *find, const char *replace, const char *expected)
{
	struct skep_law law = truth(), read;
	struct skep_diag diag = {0};
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size), *file = fopen("bad.yaml", "w");
	skep_law_write(&law, out);
	fclose(out);
	char *at = strstr(text, find);
	assert_non_null(at);
	fprintf(file, "%.*s%s%s", (int)(at - text), text, replace, at + strlen(find));
	fclose(file);
	assert_false(skep_law_read("bad.yaml", &read, &diag));
	if (!strstr(diag.message, expected))
		fail_msg("`%s` instead of `%s`", diag.message, expected);
	free(text);
}

static void test_bad_files(void **state)
{
	(void)state;
	refuses_file("chinchilla-diloco", "moore", "law: expected one of: chinchilla-diloco, powers");
	refuses_file("  mu: {", "  nu: {", "mu");
	refuses_file("value: 0.45", "value: -1", "value");
	refuses_file("value: 0.45", "value: fast", "value");
	refuses_file("every: [1, 64]", "every: [64, 1]", "is less than the least");
	refuses_file("every: [1, 64]", "every: [1]", "the least and the most");
	refuses_file("first_loss: 5.5", "first_loss: 0", "first_loss");
	refuses_file("fitted:", "fitted:\n  extra: 1", "extra");
}

/* Within 3 standard errors, all of them; with errors that are worth something. */
static void test_recovers(void **state)
{
	(void)state;
	struct skep_law law = truth(), found;
	struct skep_loss_points points = {0};
	uint64_t random;
	random = 5;
	static const double conditions[][3] = {{1, 2, 0}, {8, 2, 0}, {64, 2, 0}, {8, 4, 0}, {64, 8, 0}, {1, 4, 1}};
	for (int i = 0; i < 6; i++)
		add_run(&points, &law, conditions[i][0], conditions[i][1], conditions[i][2], 4e3, 120, 0.01, &random);
	if (!skep_law_fit(&points, &found, fresh(&error)))
		fail_msg("%s", error.message);
	for (int i = 0; i < SKEP_LAW_PARAMETERS; i++) {
		assert_string_equal(found.fixed[i], "");
		assert_true(found.error[i] > 0 && found.error[i] < 0.2 * law.value[i]);
		if (fabs(found.value[i] - law.value[i]) > 3 * found.error[i])
			fail_msg("%s: %g instead of %g ± %g", skep_law_name((enum skep_law_parameter)i), found.value[i],
				law.value[i], found.error[i]);
	}
	assert_near(found.misfit, 0.01, 0.001);
	assert_true(found.most[SKEP_LAW_EVERY] == 64 && found.least[SKEP_LAW_EVERY] == 1);
	assert_near(found.reference, 4e6, 1);
	struct skep_fit_run run[6];
	skep_law_judge(&found, &points, run);
	for (int i = 0; i < 6; i++)
		assert_true(run[i].points == 120 && run[i].misfit < 0.013 && fabs(run[i].worst) < 0.05);
	skep_loss_points_finish(&points);
}

/* Over many noises the true value is within two errors nearly always, and not always within half of one. */
static void test_errors(void **state)
{
	(void)state;
	struct skep_law law = truth(), found;
	uint32_t within_half = 0, within_two = 0, all = 0;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct skep_loss_points points = {0};
		uint64_t random;
		random = seed;
		for (int i = 0; i < 3; i++)
			add_run(&points, &law, 1, 2, i % 2, 4e3, 80, 0.01, &random);
		if (!skep_law_fit(&points, &found, fresh(&error)))
			fail_msg("%s", error.message);
		for (int i = 0; i < SKEP_LAW_PARAMETERS; i++) {
			if (found.fixed[i][0])
				continue;
			double off = fabs(found.value[i] - law.value[i]) / found.error[i];
			within_half += off < 0.5;
			within_two += off < 2;
			all++;
		}
		skep_loss_points_finish(&points);
	}
	assert_int_equal(all, 20 * 5); /* neither gamma nor mu */
	assert_in_range(within_two, 85, 100);
	assert_in_range(within_half, 20, 60);
}

static void expects_fixed(struct skep_loss_points *points, enum skep_law_parameter parameter, const char *why)
{
	struct skep_law found;
	if (!skep_law_fit(points, &found, fresh(&error)))
		fail_msg("%s", error.message);
	assert_string_equal(found.fixed[parameter], why);
	assert_true(found.value[parameter] == 0 && isnan(found.error[parameter]));
	skep_loss_points_finish(points);
}

static void test_fixes(void **state)
{
	(void)state;
	struct skep_law law = truth();
	struct skep_loss_points points = {0};
	uint64_t random;
	random = 9;
	add_run(&points, &law, 1, 4, 0, 4e3, 90, 0.01, &random);
	expects_fixed(&points, SKEP_LAW_PERIOD, "all runs have H = 1");
	add_run(&points, &law, 1, 4, 1, 4e3, 90, 0.01, &random);
	add_run(&points, &law, 1, 2, 1, 4e3, 90, 0.01, &random); /* with H = 1 the replicas say nothing */
	expects_fixed(&points, SKEP_LAW_REPLICAS, "no run has H > 1");
	add_run(&points, &law, 1, 4, 1, 4e3, 90, 0.01, &random);
	expects_fixed(&points, SKEP_LAW_STALENESS, "all runs have staleness 1");
	add_run(&points, &law, 1, 2, 0, 4e3, 90, 0.01, &random);
	add_run(&points, &law, 8, 4, 0, 4e3, 90, 0.01, &random);
	expects_fixed(&points, SKEP_LAW_REPLICAS, "all runs with H > 1 have 4 replicas");
	law.value[SKEP_LAW_FLOOR] = 0;
	add_run(&points, &law, 1, 2, 0, 4e3, 90, 0.01, &random);
	expects_fixed(&points, SKEP_LAW_FLOOR, "less than two of its errors: the runs do not flatten");
	law = truth();
	law.value[SKEP_LAW_ONSET] = 0;
	add_run(&points, &law, 1, 2, 0, 1e6, 90, 0.01, &random);
	expects_fixed(&points, SKEP_LAW_ONSET, "the runs do not tell how they begin");
}

static void refuses(struct skep_loss_points *points, const char *expected)
{
	struct skep_law found = {.misfit = -1};
	if (skep_law_fit(points, &found, fresh(&error))) {
		skep_fit_print(&found, points, stderr);
		fail_msg("fitted, though expected `%s`", expected);
	}
	if (!strstr(error.message, expected))
		fail_msg("`%s` instead of `%s`", error.message, expected);
	assert_true(found.misfit == -1); /* untouched */
	skep_loss_points_finish(points);
}

static void test_refuses(void **state)
{
	(void)state;
	struct skep_law law = truth();
	struct skep_loss_points points = {0};
	uint64_t random;
	random = 3;
	add_run(&points, &law, 1, 2, 0, 4e6, 1, 0.01, &random);
	refuses(&points, "one point is no curve");
	add_run(&points, &law, 1, 2, 0, 4e3, 5, 0.01, &random);
	refuses(&points, "5 points are too few");
	law.value[SKEP_LAW_AMPLITUDE] = 1e-6; /* noise alone */
	add_run(&points, &law, 1, 2, 0, 4e3, 60, 0.02, &random);
	refuses(&points, "do not tell how fast the loss falls");
	law = truth();
	add_run(&points, &law, 1, 2, 0, 4e3, 60, 0.01, &random);
	for (uint32_t i = 0; i < points.count; i++) /* five decades, and back again */
		points.point[i].loss = pow(10, -5.0 + fabs(i - 30.0) / 6);
	refuses(&points, "they do not fall as a power");
	/* H and staleness change together, so the data cannot tell which it was. */
	add_run(&points, &law, 1, 2, 0, 4e3, 60, 0.01, &random);
	add_run(&points, &law, 8, 2, 1, 4e3, 60, 0.01, &random);
	refuses(&points, "cannot tell two parameters apart");
}

/* What a scenario asks of its law: tokens of all inner steps before, H, replicas, staleness, and the batch of a step. */
static void test_scenario(void **state)
{
	(void)state;
	char path[4200], file[4200], how[256];
	struct skep_law law = truth();
	struct skep_diag diag = {0};
	struct skep_scenario s;
	double at[SKEP_LAW_AXES];
	FILE *out = fopen("law.yaml", "w");
	skep_law_write(&law, out);
	fclose(out);
	snprintf(path, sizeof path, "%s/scenarios/diloco.yaml", root);
	snprintf(file, sizeof file, "train.law.file=%s/law.yaml", getcwd(how, sizeof how));
	const char *const set[] = {"train.arithmetic=law", file, "sync.delayed=true"};
	struct skep_scenario_options options = {.set = set, .sets = 3};
	if (!skep_scenario_read(path, &options, &s, &diag))
		fail_msg("%s", diag.message);
	double step = 32 * 64; /* tokens of a step; a round is eight of them, of eight microbatches each */
	skep_loss_at(&s, 0, 0, at);
	assert_true(at[SKEP_LAW_TOKENS] == 0 && at[SKEP_LAW_STALE] == 0);
	assert_true(at[SKEP_LAW_EVERY] == 8 && at[SKEP_LAW_MEMBERS] == 2 && at[SKEP_LAW_BATCH] == step);
	skep_loss_at(&s, 3, 2 * 8 + 1, at);
	assert_true(at[SKEP_LAW_TOKENS] == (3 * 8 + 2) * step);
	assert_true(skep_loss_nano(&s, 3, 17) == llround(1e9 * skep_law_loss(s.law, at)));
	assert_true(skep_loss_extrapolates(&s, 2, how, sizeof how)); /* another model and batch */
	assert_non_null(strstr(how, "model tiny-gpt2 (fitted: made up); a batch of 2048 tokens (fitted: 2000)"));
	skep_scenario_finish(&s);
}

/* ---- runs of a database --------------------------------------------------------------------------------------------- */

static void refuses_runs(struct skep_store *store, const int64_t *run, uint32_t runs, const char *expected)
{
	struct skep_loss_points points;
	assert_false(skep_loss_points_read(store, run, runs, SKEP_FIT_FROM_USUAL, &points, fresh(&error)));
	if (!strstr(error.message, expected))
		fail_msg("`%s` instead of `%s`", error.message, expected);
	assert_null(points.point);
}

static int64_t record_whole(struct skep_store *store, struct synthetic *s)
{
	int64_t run;
	if (!skep_store_begin(store, &s->scenario, "sim", "cpu", false, false, &run, fresh(&error)))
		fail_msg("%s", error.message);
	struct skep_recorder recorder = skep_store_recorder(store);
	synthetic_feed(s, &recorder);
	struct skep_summary summary = {.world = "sim",
		.samples = s->rounds * s->scenario.plan.microbatches * s->scenario.samples,
		.final_loss = 1,
		.ok = true};
	summary.tokens = summary.samples * 16;
	if (!skep_store_end(store, &summary, fresh(&error)))
		fail_msg("%s", error.message);
	return run;
}

static void test_points(void **state)
{
	(void)state;
	struct synthetic s;
	struct skep_loss_points points;
	struct skep_store *store = open_store();
	refuses_runs(store, NULL, 0, "no run in the database has losses that were computed");
	synthetic_init(&s, "points", 4, 2);
	s.rounds = s.scenario.plan.rounds = 200;
	s.decay = 0.99;
	free(s.scenario.text);
	s.scenario.text = strdup("train: {schedule: {warmup: 25}}\n");
	int64_t run[2] = {record_whole(store, &s), record_whole(store, &s)}, none = 99;
	if (!skep_loss_points_read(store, NULL, 0, SKEP_FIT_FROM_USUAL, &points, fresh(&error)))
		fail_msg("%s", error.message);
	assert_int_equal(points.runs, 2);
	assert_near(points.first, 40.05, 1e-9);
	const struct skep_loss_point *point = &points.point[0];
	double step = 8 * 4 * 16;                                 /* microbatches, samples, tokens */
	assert_near(point->at[SKEP_LAW_TOKENS], 25 * step, 1e-9); /* behind the warm-up */
	assert_near(point->loss, 40 * pow(0.99, 25) + 0.05, 1e-6);
	assert_true(point->at[SKEP_LAW_EVERY] == 1 && point->at[SKEP_LAW_MEMBERS] == 2);
	assert_true(point->at[SKEP_LAW_STALE] == 0 && point->at[SKEP_LAW_BATCH] == step);
	assert_in_range(points.count, 60, 120); /* of 350 rounds */
	assert_true(points.point[points.count - 1].at[SKEP_LAW_TOKENS] > 190 * step);
	skep_loss_points_finish(&points);
	free(s.scenario.text);
	s.scenario.text = strdup("sync: {method: diloco, every: 5}\n");
	run[1] = record_whole(store, &s);
	assert_true(skep_loss_points_read(store, run, 2, 0, &points, fresh(&error)));
	for (uint32_t i = 0; i < points.count; i++)
		assert_true(points.point[i].at[SKEP_LAW_EVERY] == (points.point[i].run ? 5 : 1));
	assert_near(points.point[0].at[SKEP_LAW_TOKENS], 0, 0);
	skep_loss_points_finish(&points);
	free(s.scenario.text); /* a round has two of the eight steps from one sum of a parameter to the next */
	s.scenario.text = strdup("sync: {method: streaming, every: 8, fragments: 4}\n");
	run[1] = record_whole(store, &s);
	assert_true(skep_loss_points_read(store, run + 1, 1, 0, &points, fresh(&error)));
	assert_true(points.point[0].at[SKEP_LAW_EVERY] == 8 && points.point[0].at[SKEP_LAW_BATCH] == step / 2);
	skep_loss_points_finish(&points);
	refuses_runs(store, &none, 1, "run 99 is not in the database");
	skep_store_close(store);
	synthetic_finish(&s);
}

static void test_bad_runs(void **state)
{
	(void)state;
	struct synthetic s;
	struct skep_store *store = open_store();
	synthetic_init(&s, "bad", 4, 2);
	int64_t run[2] = {record_whole(store, &s), 0};
	s.scenario.arithmetic = SKEP_ARITHMETIC_NONE;
	run[1] = record_whole(store, &s);
	refuses_runs(store, run, 2, "run 2 has no loss: its scenario says `arithmetic: none`");
	s.scenario.arithmetic = SKEP_ARITHMETIC_SCALING_LAW;
	run[1] = record_whole(store, &s);
	refuses_runs(store, run, 2, "run 3 has its losses from a law");
	s.scenario.arithmetic = SKEP_ARITHMETIC_REAL;
	s.scenario.plan.first_round = 3;
	run[1] = record_whole(store, &s);
	refuses_runs(store, run, 2, "run 4 goes on with another run, and a law is about whole ones");
	s.scenario.plan.first_round = 0;
	s.start_loss = INFINITY;
	run[1] = record_whole(store, &s);
	refuses_runs(store, run, 2, "run 5 diverged: round 0");
	s.start_loss = 40;
	snprintf(s.scenario.model.name, sizeof s.scenario.model.name, "other");
	run[1] = record_whole(store, &s);
	refuses_runs(store, run, 2, "run 1 trains mlp, run 6 trains other");
	free(s.scenario.text);
	s.scenario.text = strdup("sync: {method: diloco, every: auto}\n");
	run[1] = record_whole(store, &s);
	refuses_runs(store, run + 1, 1, "run 7 has a sync period that differs from worker to worker");
	skep_store_close(store);
	synthetic_finish(&s);
}

int main(void)
{
	if (getcwd(root, sizeof root) == NULL)
		return 1;
	const struct CMUnitTest tests[] = {
		TEST(test_formula),
		TEST(test_range),
		TEST(test_powers),
		TEST(test_bad_powers),
		TEST(test_file),
		TEST(test_bad_files),
		TEST(test_recovers),
		TEST(test_errors),
		TEST(test_fixes),
		TEST(test_refuses),
		TEST(test_scenario),
		TEST(test_points),
		TEST(test_bad_runs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
