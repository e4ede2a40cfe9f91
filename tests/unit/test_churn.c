/* SPDX-License-Identifier: Apache-2.0
 *
 * test_churn.c - traces played on machines: which machine a join takes, what the options do, and what holds for any
 * trace. Moves are compared as text: "=0" present, "+1" joins, "-1" leaves, each move after its second.
 */
#include "topologies/churn/churn.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/random.h"

#define SECOND 1000000000u

static char path[] = "/tmp/skep-churn-XXXXXX";

/* ---- helpers ------------------------------------------------------------------------------------------------------ */

static void put(const char *text)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

/* Machine i has the GPU of letter i of `gpus`: t for T4, v for V100-SXM2-16, w for V100-SXM2-32. */
static struct skep_topology topology_of(const char *gpus)
{
	static struct skep_gpu gpu[3] = {{.name = "T4"}, {.name = "V100-SXM2-16"}, {.name = "V100-SXM2-32"}};
	struct skep_topology t = {.name = "by hand", .machines = (uint32_t)strlen(gpus), .gpus = 3, .gpu = gpu};
	t.machine = calloc(t.machines + 1, sizeof *t.machine);
	assert_non_null(t.machine);
	for (uint32_t i = 0; i < t.machines; i++)
		t.machine[i].gpu = gpus[i] == 't' ? 0 : gpus[i] == 'v' ? 1 : 2;
	t.machine[t.machines].gpu = UINT32_MAX;
	return t;
}

static struct skep_topology many(uint32_t machines)
{
	char *gpus = malloc(machines + 1);
	assert_non_null(gpus);
	memset(gpus, 't', machines);
	gpus[machines] = 0;
	struct skep_topology t = topology_of(gpus);
	free(gpus);
	return t;
}

/* What the header promises of any churn. */
static void check(const struct skep_churn *c, const struct skep_topology *t)
{
	bool *there = calloc(t->machines, sizeof *there);
	uint32_t alive = c->presents;
	uint64_t joins = 0;
	assert_non_null(there);
	for (uint32_t i = 0; i < c->presents; i++) {
		assert_true(c->present[i] < t->machines && (i == 0 || c->present[i - 1] < c->present[i]));
		there[c->present[i]] = true;
	}
	for (size_t i = 0; i < c->events; i++) {
		const struct skep_churn_event *e = &c->event[i];
		assert_true(e->worker < t->machines && e->at_ns > 0 && e->at_ns <= c->end_ns);
		assert_true(i == 0 || c->event[i - 1].at_ns <= e->at_ns);
		assert_true(there[e->worker] != e->join);
		there[e->worker] = e->join;
		alive = e->join ? alive + 1 : alive - 1;
		joins += e->join;
		assert_true(alive <= c->most);
	}
	assert_true(c->joins == joins && c->leaves == c->events - joins && c->most <= t->machines);
	free(there);
}

static struct skep_churn churn_of(const char *file, const struct skep_topology *t, const struct skep_churn_options *o)
{
	struct skep_churn churn;
	struct skep_diag diag = {0};
	if (!skep_churn_read(file, t, o, &churn, &diag))
		fail_msg("%u: %s", diag.line, diag.message);
	check(&churn, t);
	return churn;
}

static void expect_moves(const struct skep_churn *c, const char *moves)
{
	char got[2048] = "";
	for (uint32_t i = 0; i < c->presents; i++)
		snprintf(got + strlen(got), sizeof got - strlen(got), "%s=%u", got[0] ? " " : "", c->present[i]);
	for (size_t i = 0; i < c->events; i++)
		snprintf(got + strlen(got), sizeof got - strlen(got), "%s%.10g%c%u", got[0] ? " " : "",
			1e-9 * (double)c->event[i].at_ns, c->event[i].join ? '+' : '-', c->event[i].worker);
	assert_string_equal(got, moves);
}

static void expect_on(const char *text, const struct skep_topology *t, const struct skep_churn_options *o,
	const char *moves, uint64_t unplaced)
{
	put(text);
	struct skep_churn c = churn_of(path, t, o);
	expect_moves(&c, moves);
	assert_int_equal(c.unplaced, unplaced);
	skep_churn_finish(&c);
}

static void expect(
	const char *text, const char *gpus, const struct skep_churn_options *o, const char *moves, uint64_t unplaced)
{
	struct skep_topology t = topology_of(gpus);
	expect_on(text, &t, o, moves, unplaced);
	free(t.machine);
}

static void expect_error(const char *text, const char *gpus, const struct skep_churn_options *o, const char *message)
{
	struct skep_topology t = topology_of(gpus);
	struct skep_churn c;
	struct skep_diag diag = {0};
	put(text);
	assert_false(skep_churn_read(path, &t, o, &c, &diag));
	if (!strstr(diag.message, message))
		fail_msg("'%s' does not say '%s'", diag.message, message);
	assert_null(c.event);
	free(t.machine);
}

/* ---- machines ------------------------------------------------------------------------------------------------------- */

static const struct skep_churn_options defaults = SKEP_CHURN_DEFAULTS;

static void joins_take_the_lowest_free_machine(void **state)
{
	(void)state;
	expect("0,join,a\n0,join,b\n5,join,c\n6,leave,a\n7,leave,b\n8,join,d\n9,join,e\n9,end\n", "tttt", &defaults,
		"=0 =1 5+2 6-0 7-1 8+0", 0); /* e joins at the end: nothing is known behind it */
	expect("0,join,a\n5,leave,a\n9,join,a\n", "t", &defaults, "=0 5-0 9+0", 0); /* no end: the last event counts */
	expect("600,join,a\n660,join,b\n720,leave,a\n", "tt", &defaults, "=0 60+1 120-0", 0); /* 0 is the first event */
}

static void a_machine_passes_on_within_an_instant(void **state)
{
	(void)state;
	expect("0,join,a\n5,join,b\n5,leave,a\n9,leave,b\n", "t", &defaults, "=0 5-0 5+0 9-0", 0);
}

static void joins_without_a_machine_are_left_out(void **state)
{
	(void)state;
	expect("0,join,a\n0,join,b\n0,join,c\n4,leave,c\n5,leave,a\n6,join,d\n7,join,e\n8,leave,e\n9,leave,b\n", "tt",
		&defaults, "=0 =1 5-0 6+0 9-1", 2);
}

static void types_find_their_machines(void **state)
{
	(void)state;
	expect("0,join,a,v100\n0,join,b,T4\n1,join,c,v100-32\n2,join,d,nvidia-tesla-v100\n3,join,e,V100M16\n"
	       "4,join,f\n5,leave,c\n6,join,g,t4\n7,end\n",
		"tvwvtw", &defaults, "=0 =1 1+2 2+3 4+4 5-2", 2);
	struct skep_churn_options any = defaults;
	any.any_gpu = true;
	expect("0,join,a,h100\n1,join,b,v100\n2,end\n", "tt", &any, "=0 1+1", 0);
	expect_error("0,join,a,h100\n", "tt", &defaults, "no machine of the topology 'by hand' suits");
	expect("0,join,a,h100\n0,join,b,t4\n", "tt", &defaults, "=0", 1);
}

static void how_types_and_profiles_are_compared(void **state)
{
	(void)state;
	assert_true(skep_churn_suits("v100", "V100-SXM2-16") && skep_churn_suits("t4", "T4"));
	assert_true(skep_churn_suits("v100-32", "V100-SXM2-32") && skep_churn_suits("a100-sxm4", "A100-SXM4-80"));
	assert_false(skep_churn_suits("v100-32", "V100-SXM2-16"));
	assert_false(skep_churn_suits("v10", "V100-SXM2-16"));
	assert_false(skep_churn_suits("sxm2", "V100-SXM2-16"));
	assert_false(skep_churn_suits("v100-16-16", "V100-SXM2-16"));
	assert_false(skep_churn_suits("t4-x", "T4"));
	assert_false(skep_churn_suits("a40", "A100-SXM4-40"));
}

static void drawn_machines_follow_the_seed(void **state)
{
	(void)state;
	struct skep_topology t = many(400);
	struct skep_churn_options o = defaults;
	o.random_machine = true;
	struct skep_churn a = churn_of("topologies/traces/g4dn-like-day.csv", &t, &o);
	struct skep_churn b = churn_of("topologies/traces/g4dn-like-day.csv", &t, &o);
	o.seed = 1;
	struct skep_churn c = churn_of("topologies/traces/g4dn-like-day.csv", &t, &o);
	assert_true(a.presents == 32 && a.events == b.events);
	for (size_t i = 0; i < a.events; i++)
		assert_true(a.event[i].worker == b.event[i].worker && a.event[i].at_ns == b.event[i].at_ns);
	assert_memory_equal(a.present, b.present, a.presents * sizeof *a.present);
	assert_memory_not_equal(a.present, c.present, a.presents * sizeof *a.present);
	assert_true(a.present[31] > 200); /* drawn from all 400 */
	skep_churn_finish(&a);
	skep_churn_finish(&b);
	skep_churn_finish(&c);
	free(t.machine);
}

/* ---- time -------------------------------------------------------------------------------------------------------------- */

static const char hour[] = "100,join,a\n100,join,b\n1100,leave,a\n1200,refused\n2100,join,c\n3100,leave,b\n4100,end\n";

static void time_is_scaled_and_cut(void **state)
{
	(void)state;
	struct skep_churn_options o = defaults;
	expect(hour, "ttt", &o, "=0 =1 1000-0 2000+0 3000-1", 0);
	o.scale = 0.1;
	expect(hour, "ttt", &o, "=0 =1 100-0 200+0 300-1", 0);
	o.scale = 2;
	o.start_ns = 500 * (skep_time)SECOND;
	expect(hour, "ttt", &o, "=0 =1 1000-0 3000+0 5000-1", 0);
	o.start_ns = 1000 * (skep_time)SECOND; /* a leaves just then: never there */
	o.scale = 1;
	expect(hour, "ttt", &o, "=0 1000+1 2000-0", 0);
	o.end_ns = 2500 * (skep_time)SECOND;
	expect(hour, "ttt", &o, "=0 1000+1", 0);
	struct skep_topology t = many(3);
	put(hour);
	struct skep_churn c = churn_of(path, &t, &o);
	assert_true(c.end_ns == 1500 * (skep_time)SECOND && c.refused == 1);
	skep_churn_finish(&c);
	free(t.machine);
}

static void wrong_options_are_refused(void **state)
{
	(void)state;
	struct skep_churn_options o = defaults;
	o.scale = 0;
	expect_error(hour, "t", &o, "time scale above 0");
	o.scale = NAN;
	expect_error(hour, "t", &o, "time scale above 0");
	o = defaults;
	o.start_ns = 5000 * (skep_time)SECOND;
	expect_error(hour, "t", &o, "the start lies behind the end of the trace, 4000 s");
	o.end_ns = 5;
	expect_error(hour, "t", &o, "an end of the trace behind the start");
	o = defaults;
	o.copies = -1;
	expect_error(hour, "t", &o, "machines for each name");
	o = defaults;
	o.jitter_ns = SKEP_TIME_NEVER;
	expect_error(hour, "t", &o, "jitter of at most a day");
	o = defaults;
	o.scale = 1000;
	expect_error("0,join,a\n9999999999,leave,a\n", "t", &o, "too long at this time scale");
	expect_error("0,join,a\n0,leave,b\n", "t", &defaults, "'b' leaves, but is not alive");
}

/* ---- more machines than the trace ---------------------------------------------------------------------------------------- */

static void thirty_two_machines_become_four_hundred(void **state)
{
	(void)state;
	struct skep_topology t = many(400);
	struct skep_churn_options o = defaults;
	struct skep_churn one = churn_of("topologies/traces/g4dn-like-day.csv", &t, &o);
	o.copies = 12.5;
	struct skep_churn c = churn_of("topologies/traces/g4dn-like-day.csv", &t, &o);
	assert_true(c.presents == 400 && c.most == 400 && c.unplaced == 0);
	assert_true(fabs((double)c.leaves / (double)one.leaves - 12.5) < 0.5);
	o.copies = 0;
	struct skep_churn filled = churn_of("topologies/traces/g4dn-like-day.csv", &t, &o);
	assert_true(filled.events == c.events && filled.presents == 400);
	skep_churn_finish(&one);
	skep_churn_finish(&c);
	skep_churn_finish(&filled);
	free(t.machine);
}

static void jitter_spreads_events_over_the_minute(void **state)
{
	(void)state;
	struct skep_topology t = many(400);
	struct skep_churn_options o = defaults;
	o.any_gpu = true;
	o.copies = 0;
	struct skep_churn sharp = churn_of("topologies/traces/aws-p3.csv", &t, &o);
	for (size_t i = 0; i < sharp.events; i++)
		assert_true(sharp.event[i].at_ns % (60 * (skep_time)SECOND) == 0);
	o.jitter_ns = 60 * (skep_time)SECOND;
	struct skep_churn c = churn_of("topologies/traces/aws-p3.csv", &t, &o);
	double sum = 0;
	uint32_t quarter[4] = {0};
	for (size_t i = 0; i < c.events; i++) {
		double second = 1e-9 * (double)(c.event[i].at_ns % (60 * (skep_time)SECOND));
		sum += second;
		quarter[(int)(second / 15)]++;
	}
	double n = (double)c.events, mean = sum / n;
	assert_true(n > 2000 && fabs(mean - 30) < 4 * 17.32 / sqrt(n));
	for (int i = 0; i < 4; i++)
		assert_true(fabs(quarter[i] / n - 0.25) < 4 * sqrt(0.1875 / n));
	/* with everything late by another time, a few joins come before the leave that made room */
	assert_true(c.joins + c.presents + c.unplaced == sharp.joins + sharp.presents + sharp.unplaced);
	skep_churn_finish(&sharp);
	skep_churn_finish(&c);
	free(t.machine);
}

/* ---- any trace --------------------------------------------------------------------------------------------------- */

static void promises_hold_for_random_traces_and_options(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 200; seed++) {
		uint64_t random = skep_mix(seed);
		bool alive[40] = {false};
		FILE *file = fopen(path, "w");
		assert_non_null(file);
		for (uint32_t i = 0, at = 0; i < 500; i++) {
			uint32_t name = skep_random_below(&random, 40);
			at += skep_random_below(&random, 3) * 20;
			alive[name] = !alive[name];
			fprintf(file, "%u,%s,n%u%s\n", at, alive[name] ? "join" : "leave", name,
				alive[name] && name % 3 == 0 ? ",t4" : "");
		}
		fclose(file);
		struct skep_topology t = topology_of("tvtwttvvwwtttvvvttttttttwwwwwvvvvvvvttt");
		struct skep_churn_options o = defaults;
		o.scale = skep_random_below(&random, 2) ? 1e-9 : 0.3;
		o.copies = skep_random_below(&random, 40) / 10.0;
		o.jitter_ns = skep_random_below(&random, 2) * 60 * (skep_time)SECOND;
		o.start_ns = skep_random_below(&random, 3000) * (skep_time)SECOND;
		o.end_ns = skep_random_below(&random, 2) ? SKEP_TIME_NEVER : o.start_ns + 3000 * (skep_time)SECOND;
		o.random_machine = skep_random_below(&random, 2);
		o.seed = seed;
		struct skep_churn c = churn_of(path, &t, &o);
		skep_churn_finish(&c);
		free(t.machine);
	}
}

/* ---- drawn traces --------------------------------------------------------------------------------------------------- */

static const char recording[] = "topologies/traces/aws-p3.csv";

static struct skep_churn drawn(uint32_t machines, skep_time duration_ns, uint64_t seed, struct skep_topology *t)
{
	struct skep_churn churn;
	struct skep_diag diag = {0};
	struct skep_churn_options o = defaults;
	o.seed = seed;
	*t = many(machines);
	if (!skep_churn_draw(recording, duration_ns, t, &o, &churn, &diag))
		fail_msg("%u: %s", diag.line, diag.message);
	check(&churn, t);
	return churn;
}

static bool same_events(const struct skep_churn *a, const struct skep_churn *b)
{
	if (a->events != b->events)
		return false;
	for (size_t i = 0; i < a->events; i++)
		if (a->event[i].at_ns != b->event[i].at_ns || a->event[i].worker != b->event[i].worker)
			return false;
	return true;
}

/* All there at 0, whatever their number; each seed another trace, the same each time. */
/* A machine that was there has what it needs, a new one takes longer, and one that is gone by then never was. */
static void joins_take_their_time(void **state)
{
	(void)state;
	const skep_time first[] = {UINT64_C(4) * SECOND, UINT64_C(4) * SECOND, UINT64_C(9) * SECOND},
			again[] = {SECOND, SECOND, UINT64_C(3) * SECOND};
	struct skep_topology t = topology_of("ttt");
	put("0,join,a\n10,join,b\n11,leave,a\n11,join,c\n14,leave,b\n16,leave,c\n17,join,d\n18,join,e\n18,join,f\n20,leave,d\n"
	    "40,end\n");
	struct skep_churn c = churn_of(path, &t, &defaults);
	expect_moves(&c, "=0 10+1 11-0 11+0 14-1 16-0 17+0 18+1 18+2 20-0");
	assert_true(skep_churn_admit(&c, t.machines, first, again));
	check(&c, &t);
	expect_moves(&c, "=0 11-0 12+0 16-0 18+0 20-0 22+1 27+2"); /* b was there for 4 s, and needed as many */
	assert_int_equal(c.unadmitted, 1);
	skep_churn_finish(&c);
	free(t.machine);
}

static void promises_hold_whatever_joins_take(void **state)
{
	(void)state;
	struct skep_topology t = many(40);
	skep_time first[40], again[40];
	for (uint64_t seed = 1; seed <= 50; seed++) {
		struct skep_churn_options o = defaults;
		uint64_t draws = seed;
		o.seed = seed;
		o.any_gpu = true;
		struct skep_churn c = churn_of("topologies/traces/aws-p3.csv", &t, &o);
		for (uint32_t i = 0; i < t.machines; i++) {
			again[i] = skep_random_next(&draws) % (UINT64_C(600) * SECOND);
			first[i] = again[i] + skep_random_next(&draws) % (UINT64_C(6000) * SECOND);
		}
		size_t before = c.events;
		assert_true(skep_churn_admit(&c, t.machines, first, again));
		check(&c, &t);
		assert_true(c.events <= before && before - c.events <= 2 * c.unadmitted);
		skep_churn_finish(&c);
	}
	free(t.machine);
}

static void each_seed_draws_a_trace_of_its_own(void **state)
{
	(void)state;
	struct skep_topology t[3];
	skep_time hours_ns = 8u * 3600u * (skep_time)SECOND;
	struct skep_churn first = drawn(64, hours_ns, 1, &t[0]), again = drawn(64, hours_ns, 1, &t[1]),
			  other = drawn(64, hours_ns, 2, &t[2]);
	assert_true(first.presents == 64 && first.unplaced == 0 && first.end_ns == hours_ns && first.most == 64);
	assert_true(same_events(&first, &again) && !same_events(&first, &other));
	assert_true(first.drawn_from.law == SKEP_LIFETIME_EXPONENTIAL && first.drawn_from.scale_s > 3600);
	struct skep_churn *all[] = {&first, &again, &other};
	for (size_t i = 0; i < 3; i++) {
		skep_churn_finish(all[i]);
		free(t[i].machine);
	}
}

/* Over many seeds losses come as often for each machine and hour as the law says: 64 machines, of which the mean is there
 * that the recording had. */
static void drawn_losses_are_those_of_the_law(void **state)
{
	(void)state;
	double losses = 0, hours = 0, scale_s = 0;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct skep_topology t;
		struct skep_churn c = drawn(64, 0, seed, &t);
		double alive = c.presents, since_s = 0;
		for (size_t i = 0; i < c.events; i++) {
			double now_s = 1e-9 * (double)c.event[i].at_ns;
			hours += alive * (now_s - since_s) / 3600;
			since_s = now_s;
			alive += c.event[i].join ? 1 : -1;
		}
		hours += alive * (1e-9 * (double)c.end_ns - since_s) / 3600;
		losses += (double)c.leaves;
		scale_s = c.drawn_from.scale_s;
		skep_churn_finish(&c);
		free(t.machine);
	}
	double expected = hours * 3600 / scale_s;
	assert_true(losses > 4000 && fabs(losses / expected - 1) < 0.05);
}

static void nothing_is_drawn_like_a_day_without_losses(void **state)
{
	(void)state;
	struct skep_topology t = many(4);
	struct skep_churn c;
	struct skep_diag diag = {0};
	put("0,join,a\n0,join,b\n3600,end\n");
	assert_false(skep_churn_draw(path, 0, &t, &defaults, &c, &diag));
	assert_non_null(strstr(diag.message, "no life ends in it, so there is no law to draw from"));
	assert_null(c.event);
	free(t.machine);
}

static int make_file(void **state)
{
	(void)state;
	return mkstemp(path) >= 0 ? 0 : -1;
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(path);
}

/* ---- places ------------------------------------------------------------------------------------------------------- */

/* Two machines at each of three places, of which the second has V100. */
static struct skep_topology at_places(void)
{
	static char name[3][32] = {"west", "east", "north"};
	struct skep_topology t = topology_of("ttvvtt");
	t.places = 3;
	t.place_name = name;
	for (uint32_t i = 0; i < t.machines; i++)
		t.machine[i].place = i / 2;
	return t;
}

static void names_of_places_bind_machines(void **state)
{
	(void)state;
	struct skep_topology t = at_places();
	expect_on("0,join,east\n0,join,north-1\n0,join,north-2\n5,leave,north-1\n9,join,west/0\n20,end\n", &t,
		&defaults, "=2 =4 =5 5-4 9+0", 0);
	expect_on(
		"0,join,a,,east\n0,join,b,,north\n3,join,c,,east\n20,end\n", &t, &defaults, "=2 =4 3+3", 0); /* zones */
	expect_on("0,join,x1\n0,join,x2\n20,end\n", &t, &defaults, "=0 =1", 0); /* no place has these names */
	free(t.machine);
}

static void a_place_that_is_full_or_has_another_gpu_takes_no_more(void **state)
{
	(void)state;
	struct skep_topology t = at_places();
	struct skep_churn churn;
	struct skep_diag diag = {0};
	put("0,join,west-1\n0,join,west-2\n3,join,west-3\n4,join,east,t4\n20,end\n");
	assert_true(skep_churn_read(path, &t, &defaults, &churn, &diag));
	assert_true(churn.presents == 2 && churn.joins == 0 && churn.unplaced == 2 && churn.unsuited == 1);
	assert_string_equal(churn.unsuited_type, "t4 at east");
	skep_churn_finish(&churn);
	put("0,join,west\n0,join,eats\n20,end\n");
	assert_false(skep_churn_read(path, &t, &defaults, &churn, &diag));
	assert_non_null(strstr(diag.message, "'eats' none: name all machines"));
	assert_non_null(strstr(diag.message, "there are: west, east, north"));
	free(t.machine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(joins_take_the_lowest_free_machine),
		cmocka_unit_test(names_of_places_bind_machines),
		cmocka_unit_test(a_place_that_is_full_or_has_another_gpu_takes_no_more),
		cmocka_unit_test(a_machine_passes_on_within_an_instant),
		cmocka_unit_test(joins_without_a_machine_are_left_out),
		cmocka_unit_test(types_find_their_machines),
		cmocka_unit_test(how_types_and_profiles_are_compared),
		cmocka_unit_test(drawn_machines_follow_the_seed),
		cmocka_unit_test(time_is_scaled_and_cut),
		cmocka_unit_test(wrong_options_are_refused),
		cmocka_unit_test(thirty_two_machines_become_four_hundred),
		cmocka_unit_test(jitter_spreads_events_over_the_minute),
		cmocka_unit_test(promises_hold_for_random_traces_and_options),
		cmocka_unit_test(joins_take_their_time),
		cmocka_unit_test(promises_hold_whatever_joins_take),
		cmocka_unit_test(each_seed_draws_a_trace_of_its_own),
		cmocka_unit_test(drawn_losses_are_those_of_the_law),
		cmocka_unit_test(nothing_is_drawn_like_a_day_without_losses),
	};
	return cmocka_run_group_tests(tests, make_file, remove_file);
}
