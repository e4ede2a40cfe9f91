/* SPDX-License-Identifier: Apache-2.0
 *
 * test_trace_generate.c - drawn traces have the law that they were drawn from; and the commands of `skep trace`.
 */
#include <glob.h>
#include <math.h>

#include "commands/commands.h"
#include "tests/unit/trace_fixture.h"
#include "topologies/churn/trace_generate.h"

/* ---- generating ------------------------------------------------------------------------------------------------------ */

static void generate_into(const char *name, const struct skep_generate_options *o)
{
	struct skep_diag diag = {0};
	struct skep_trace_writer *w = skep_trace_writer_create(in_folder(name), "drawn", "none", &diag);
	assert_non_null(w);
	assert_null(skep_generate_check(o));
	assert_true(skep_trace_generate(o, skep_trace_write, w));
	assert_true(skep_trace_writer_close(w));
}

static struct skep_generate_options law(double shape, double scale_s)
{
	return (struct skep_generate_options){.machines = 400,
		.duration_s = 5 * 86400,
		.life = {.law = SKEP_LIFETIME_WEIBULL, .shape = shape, .scale_s = scale_s},
		.wait_s = 300};
}

static void a_drawn_trace_has_the_law_it_was_drawn_from(void **state)
{
	(void)state;
	static const double shapes[] = {0.6, 1, 1.6};
	for (size_t i = 0; i < COUNT(shapes); i++) {
		struct skep_generate_options o = law(shapes[i], 7200);
		o.seed = i;
		generate_into("drawn", &o);
		struct skep_trace_stats s = stats_of(in_folder("drawn"));
		assert_true(fabs(s.weibull.shape - shapes[i]) < 4 * s.weibull.shape_error + 0.002);
		assert_true(fabs(s.weibull.scale_s - 7200) < 4 * s.weibull.scale_error_s);
		skep_trace_stats_finish(&s);
	}
}

/* Within bursts lives are evened out a little: 3 % where a burst is 1 % of the machines. */
static void a_trace_like_another_fits_the_same_law(void **state)
{
	(void)state;
	struct skep_generate_options o, again;
	struct skep_trace_stats real = stats_of("topologies/traces/aws-p3.csv");
	assert_true(skep_generate_like(&real, &o));
	o.machines = 400;
	o.duration_s = 5 * 86400;
	o.life = real.weibull;
	generate_into("like", &o);
	struct skep_trace_stats s = stats_of(in_folder("like"));
	assert_true(fabs(s.weibull.shape / real.weibull.shape - 1) < 0.03);
	assert_true(fabs(s.weibull.scale_s / real.weibull.scale_s - 1) < 0.03);
	for (uint32_t i = 0; i < real.window.most; i++) {
		double share = (double)real.window.count[i] / (double)real.window.bursts, n = (double)s.instant.bursts;
		double got = (double)s.instant.count[i] / n;
		assert_true(fabs(got - share) < 4 * sqrt(share * (1 - share) / n) + 0.003);
	}
	double missing = (s.report.most - s.mean_alive) / s.report.most;
	assert_true(fabs(missing - (32 - real.mean_alive) / 32) < 0.03);
	assert_true(skep_generate_like(&s, &again) && fabs(again.wait_s / o.wait_s - 1) < 0.1);
	skep_trace_stats_finish(&s);
	skep_trace_stats_finish(&real);
}

/* Whatever law is likeliest: that of Google's recording has a mean of 52 minutes, and a machine was lost each 62. */
static void a_trace_like_another_loses_as_many(void **state)
{
	(void)state;
	static const char *const path[] = {"topologies/traces/gcp-2020-03.csv", "topologies/traces/aws-p3.csv"};
	for (size_t i = 0; i < COUNT(path); i++) {
		struct skep_generate_options o;
		struct skep_trace_stats real = stats_of(path[i]);
		assert_true(skep_generate_like(&real, &o));
		o.machines = 400;
		o.duration_s = 10 * 86400;
		generate_into("like", &o);
		struct skep_trace_stats s = stats_of(in_folder("like"));
		double wanted = real.mean_alive * real.duration_s / (double)real.lives;
		assert_true(fabs(s.mean_alive * s.duration_s / (double)s.lives / wanted - 1) < 0.03);
		skep_trace_stats_finish(&s);
		skep_trace_stats_finish(&real);
	}
}

/* Even where a burst is a large part of all machines. */
static void bursts_keep_the_mean_life(void **state)
{
	(void)state;
	uint64_t count[8] = {[7] = 1};
	struct skep_generate_options o = law(1, 3600);
	o.machines = 100;
	o.duration_s = 30 * 86400;
	o.bursts = (struct skep_bursts){.count = count, .room = 8, .most = 8, .bursts = 1, .losses = 8};
	generate_into("drawn", &o);
	struct skep_trace_stats s = stats_of(in_folder("drawn"));
	assert_true(s.instant.count[7] > s.instant.bursts * 99 / 100);
	assert_true(fabs(s.exponential.scale_s / 3600 - 1) < 0.015);
	skep_trace_stats_finish(&s);
}

static void the_same_seed_draws_the_same_trace(void **state)
{
	(void)state;
	struct skep_generate_options o = law(0.8, 3600);
	struct record *a = calloc(3, sizeof *a);
	uint64_t count[3] = {3, 1, 2};
	assert_non_null(a);
	o.machines = 20;
	o.bursts = (struct skep_bursts){.count = count, .room = 3, .most = 3, .bursts = 6, .losses = 11};
	o.refusal = 0.4;
	o.diurnal = 0.5;
	for (int i = 0; i < 3; i++) {
		o.seed = i < 2 ? 9 : 10;
		assert_true(skep_trace_generate(&o, note, &a[i]));
	}
	assert_string_equal(a[0].text, a[1].text);
	assert_int_equal(a[0].events, a[1].events);
	assert_string_not_equal(a[0].text, a[2].text);
	free(a);
}

static void refusals_types_and_the_ramp(void **state)
{
	(void)state;
	struct skep_generate_options o = law(1, 3600);
	o.refusal = 0.6;
	o.gpus = 2;
	snprintf(o.gpu[0].name, sizeof o.gpu[0].name, "t4");
	snprintf(o.gpu[1].name, sizeof o.gpu[1].name, "a100");
	o.gpu[0].share = 3;
	o.gpu[1].share = 1;
	generate_into("drawn", &o);
	struct skep_trace_stats s = stats_of(in_folder("drawn"));
	assert_true(fabs(s.refusal_rate - 0.6) < 0.01);
	skep_trace_stats_finish(&s);
	struct record *r = calloc(1, sizeof *r);
	assert_non_null(r);
	r->types = true;
	o.duration_s = 1;
	assert_true(skep_trace_generate(&o, note, r));
	uint32_t a100 = 0;
	for (const char *at = r->text; (at = strstr(at, "(a100")); at++)
		a100++;
	assert_int_equal(a100, 100);
	free(r);
	o = law(1, 3600);
	o.diurnal = 1; /* none wanted at noon: half of all on average, and those that outlive the fall */
	generate_into("drawn", &o);
	s = stats_of(in_folder("drawn"));
	assert_true(s.mean_alive > 0.45 * 400 && s.mean_alive < 0.58 * 400);
	skep_trace_stats_finish(&s);
}

static void options_out_of_range_are_refused(void **state)
{
	(void)state;
	struct skep_generate_options good = law(1, 3600), o[9];
	assert_null(skep_generate_check(&good));
	for (size_t i = 0; i < COUNT(o); i++)
		o[i] = good;
	o[0].machines = 0;
	o[1].machines = 2000000;
	o[2].duration_s = NAN;
	o[3].life.shape = 0;
	o[4].life.scale_s = -1;
	o[5].refusal = 1;
	o[6].refusal = NAN;
	o[7].wait_s = 0;
	o[8].diurnal = 1.1;
	for (size_t i = 0; i < COUNT(o); i++)
		assert_non_null(skep_generate_check(&o[i]));
}

/* ---- the commands ---------------------------------------------------------------------------------------------------- */

static const struct skep_command *const trace_alone[] = {&skep_command_trace, NULL};
static const struct skep_program program = {.name = "skep", .version = "", .text = "", .command = trace_alone};

/* Splits at blanks; what the command printed is in *ret, the error or the warnings in ret_error. */
static bool command(const char *line, char **ret, char ret_error[4096])
{
	char copy[1024], *argv[32] = {"skep", "trace"};
	int argc = 2;
	size_t size;
	FILE *out = stdout, *err = stderr;
	snprintf(copy, sizeof copy, "%s", line);
	for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
		argv[argc++] = word;
	memset(ret_error, 0, 4096);
	stdout = open_memstream(ret, &size);
	stderr = fmemopen(ret_error, 4096, "w");
	assert_true(stdout && stderr);
	enum status status = skep_program_run(&program, argc, argv);
	fclose(stdout);
	fclose(stderr);
	stdout = out;
	stderr = err;
	return status == STATUS_DONE;
}

static void expect_command(const char *line, bool ok, const char *printed, const char *error)
{
	char *text, said[4096];
	bool got = command(line, &text, said);
	if (got != ok || !strstr(text, printed) || !strstr(said, error))
		fail_msg("'%s' %s:\n%s\n%s", line, got ? "worked" : "failed", text, said);
	free(text);
}

static const struct {
	const char *line;
	bool ok;
	const char *printed, *error;
} session[] = {
	{"import named -o own.csv --licence MIT", true, "joins, losses     2, 1", ""},
	{"stats own.csv", true, "own format", ""},
	{"stats bad", false, "", "bad:2:1: error: time goes backwards"},
	{"stats bad --repair", true, "1, 1", "1 events earlier"},
	{"import bad -o never.csv", false, "", "time goes backwards"},
	{"generate -o g.csv --machines 50 --duration 12h --scale 1h --bursts 2x1,1x3 --gpu t4=3,a100=1 --seed 4", true,
		"most 50", ""},
	{"generate -o h.csv --like g.csv --seed 4 --machines 10 --life weibull", true, "own format", ""},
	{"stats g.csv --format log", false, "", "expected a time such as"},
	{"stats", false, "", "skep: trace stats takes FILE; see skep trace stats --help"},
	{"stats a b", false, "", "'b' is one word too many"},
	{"stats --wrong g.csv", false, "", "unrecognized option '--wrong'"},
	{"stats g.csv --machines 3", false, "", "trace stats does not take the option --machines"},
	{"stats g.csv --seed x", false, "", "--seed x: expected a whole number"},
	{"stats g.csv --format csv", false, "", "expected one of detect, own"},
	{"stats g.csv --gap 5", false, "", "with its unit"},
	{"stats g.csv --seed", false, "", "option '--seed' requires an argument"},
	{"import g.csv", false, "", "expected -o FILE"},
	{"generate -o never.csv", false, "", "expected --like FILE, or"},
	{"generate -o never.csv --machines 5 --duration 1h --scale 1h --bursts 3y", false, "", "--bursts"},
	{"generate -o never.csv --machines 5 --duration 1h --scale 1h --bursts ,", false, "", "--bursts"},
	{"generate -o never.csv --machines 5 --duration 1h --scale 1h --bulks 2x1", false, "",
		"--bulks was renamed to --bursts"},
	{"generate -o never.csv --machines 5 --duration 1h --scale 1h --refusal 1", false, "", "refusal"},
	{"generate -o never.csv --machines 5 --duration 1h --scale 1h --gpu t4=0", false, "", "share"},
	{"generate -o never.csv --machines 5 --duration 1h --scale 1h --shape 2 --life exponential", false, "",
		"no shape"},
	{"frobnicate", false, "", "expected skep trace import, stats, generate or jobs"},
	{"stats --help", true, "--victims", ""},
};

static void commands(void **state)
{
	(void)state;
	char *text, said[4096];
	assert_int_equal(chdir(folder), 0);
	put("named", "0,add,a\r\n0,add,b\r\n60000,remove,a\r\n");
	put("bad", "5,join,a\n4,leave,a\n");
	for (size_t i = 0; i < COUNT(session); i++)
		expect_command(session[i].line, session[i].ok, session[i].printed, session[i].error);
	assert_int_not_equal(access("never.csv", F_OK), 0);
	assert_int_equal(glob("never.csv*", 0, NULL, &(glob_t){0}), GLOB_NOMATCH);
	assert_true(command("stats g.csv --json", &text, said));
	assert_true(text[0] == '{' && strstr(text, "\"most_alive\":50,") && strstr(text, "\"weibull\":{\"shape\":"));
	assert_true(strchr(text, '\n') == text + strlen(text) - 1);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_drawn_trace_has_the_law_it_was_drawn_from),
		cmocka_unit_test(a_trace_like_another_fits_the_same_law),
		cmocka_unit_test(a_trace_like_another_loses_as_many), cmocka_unit_test(bursts_keep_the_mean_life),
		cmocka_unit_test(the_same_seed_draws_the_same_trace), cmocka_unit_test(refusals_types_and_the_ramp),
		cmocka_unit_test(options_out_of_range_are_refused),
		cmocka_unit_test(commands), /* last: it changes the working directory */
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
