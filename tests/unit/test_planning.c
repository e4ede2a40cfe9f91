/* SPDX-License-Identifier: Apache-2.0
 *
 * test_planning.c - the problem that a scenario poses: its links in both views, times, bytes, memory, who takes part; and an
 * allocation turned back into what the scenario's reader takes.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/random.h"
#include "core/record.h"
#include "planning/expected/loads.h"
#include "planning/problem/resolve.h"
#include "planning/problem/run_search.h"
#include "planning/problem/traffic.h"
#include "scenarios/plan/loss.h"
#include "scenarios/plan/memory.h"
#include "tests/unit/fresh.h"
#include "tests/unit/read_with.h"

static const char two[] = "scenarios/two-datacentres.yaml";

static void make(struct skep_scenario *s, struct skep_planning *p, const char *const *set, uint32_t sets)
{
	struct skep_diag error;
	read_with(s, two, set, sets);
	bool made = skep_planning_make(s, p, fresh(&error));
	if (!made)
		print_error("%s\n", error.message);
	assert_true(made);
}

static void finish(struct skep_scenario *s, struct skep_planning *p)
{
	skep_planning_finish(p);
	skep_scenario_finish(s);
}

static bool near(double a, double b)
{
	return fabs(a - b) <= 1e-9 * fabs(b);
}

/* 10 Gbit/s inside, and one line of 200 Mbit/s for all four of each place. */
static void test_links_in_both_views(void **state)
{
	(void)state;
	struct skep_scenario s;
	struct skep_planning p;
	make(&s, &p, NULL, 0);
	assert_int_equal(p.workers, 8);
	assert_int_equal(p.stages, 4);
	const double *alone = p.rate_Bps[SKEP_UNCONTENDED], *shared = p.rate_Bps[SKEP_CONTENDED];
	assert_true(near(alone[0 * 8 + 3], 1.25e9) && near(shared[0 * 8 + 3], 1.25e9));
	assert_true(near(alone[0 * 8 + 4], 25e6) && near(shared[0 * 8 + 4], 25e6 / 4));
	assert_true(near(p.delay_s[0 * 8 + 4], 0.010) && near(p.delay_s[0 * 8 + 3], 0.05e-3));
	finish(&s, &p);
}

static void test_stages_as_the_simulator_has_them(void **state)
{
	(void)state;
	struct skep_scenario s;
	struct skep_planning p;
	make(&s, &p, NULL, 0);
	for (uint32_t i = 0; i < 8; i++)
		for (uint32_t stage = 0; stage < 4; stage++) {
			struct skep_op op = {.kind = SKEP_OP_FORWARD, .stage = (uint16_t)stage};
			double ns = (double)skep_scenario_op_ns(&s, i, &op);
			op.kind = SKEP_OP_BACKWARD;
			ns += (double)skep_scenario_op_ns(&s, i, &op);
			assert_true(near(p.compute_s[i * 4 + stage], 1e-9 * ns));
		}
	assert_true(p.compute_s[0 * 4 + 1] > 2 * p.compute_s[2 * 4 + 1]); /* a T4, a V100 */
	for (uint32_t stage = 0; stage < 4; stage++)
		assert_true(near(p.reduced_bytes[stage], 4.0 * (double)s.stage[stage].parameters));
	assert_true(near(p.forward_bytes[1], (double)s.stage[1].activation_bytes + SKEP_HEADER_BYTES));
	assert_true(p.kind[0] == p.kind[1] && p.kind[0] != p.kind[2] && p.kind[0] != p.kind[4]);
	finish(&s, &p);
}

/* What --set makes of it is read back as the same. */
static void test_an_allocation_there_and_back(void **state)
{
	(void)state;
	static const uint32_t stage_of[8] = {3, 1, 2, 0, 1, 1, 0, 0};
	struct skep_scenario s, again;
	struct skep_planning p;
	uint32_t start[8];
	make(&s, &p, NULL, 0);
	assert_true(skep_planning_start(&p, start));
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(start[i], i % 4);
	char *assignment = skep_planning_assignment(&p, stage_of);
	assert_non_null(assignment);
	const char *set[] = {assignment};
	read_with(&again, two, set, 1);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(again.first_stage_of[i], stage_of[i]);
	skep_scenario_finish(&again);
	free(assignment);
	finish(&s, &p);
}

static void test_random_is_even_and_of_its_seed(void **state)
{
	(void)state;
	struct skep_scenario s;
	struct skep_planning p;
	uint32_t a[8], b[8], differ = 0;
	make(&s, &p, NULL, 0);
	for (uint64_t seed = 0; seed < 20; seed++) {
		uint32_t count[4] = {0};
		skep_planning_random(&p, seed, a);
		skep_planning_random(&p, seed, b);
		assert_memory_equal(a, b, sizeof a);
		skep_planning_random(&p, seed + 1, b);
		differ += memcmp(a, b, sizeof a) != 0;
		for (uint32_t i = 0; i < 8; i++)
			count[a[i]]++;
		for (uint32_t stage = 0; stage < 4; stage++)
			assert_int_equal(count[stage], 2);
	}
	assert_true(differ >= 18);
	finish(&s, &p);
}

/* Who the trace lets come later has no part, and stays a spare. */
static void test_only_who_is_there(void **state)
{
	(void)state;
	struct skep_scenario s;
	struct skep_planning p;
	struct skep_diag error;
	static const char *const set[] = {"cluster.trace={file: topologies/traces/aws-p3.csv, any_gpu: true}"};
	read_with(&s, "scenarios/preempted.yaml", NULL, 0);
	bool traced = s.has_trace;
	skep_scenario_finish(&s);
	read_with(&s, "scenarios/preempted.yaml", set, traced ? 0 : 1);
	assert_true(skep_planning_make(&s, &p, fresh(&error)));
	assert_int_equal(p.workers, s.churn.presents);
	uint32_t *stage_of = calloc(p.workers, sizeof *stage_of);
	assert_true(skep_planning_start(&p, stage_of));
	for (uint32_t i = 0; i < p.workers; i++)
		assert_int_equal(p.machine[i], s.churn.present[i]);
	free(stage_of);
	finish(&s, &p);
}

/* A T4 and a V100 have 16 GB each. */
static void test_what_fits_none(void **state)
{
	(void)state;
	struct skep_scenario s;
	struct skep_planning p;
	struct skep_diag error;
	static const char *const set[] = {"schedule.global_batch=4194304", "schedule.microbatch=1048576"};
	read_with(&s, two, set, 2);
	assert_false(skep_planning_make(&s, &p, fresh(&error)));
	assert_non_null(strstr(error.message, "nearest changes"));
	assert_non_null(strstr(error.message, "stage "));
	skep_scenario_finish(&s);
}

/* As `skep check` says it, of machines with so much memory. */
static bool fits(const struct skep_planning *p, const uint32_t *stage_of, const char *const *set, double bytes)
{
	struct skep_scenario s;
	char *assignment = skep_planning_assignment(p, stage_of);
	const char *sets[] = {assignment, set ? *set : assignment};
	bool all = true;
	assert_non_null(assignment);
	read_with(&s, two, sets, 2);
	for (uint32_t i = 0; i < s.topology.gpus; i++)
		s.topology.gpu[i].memory_bytes = bytes;
	for (uint32_t i = 0; i < s.plan.workers; i++) {
		uint32_t gpu = s.topology.machine[i].gpu;
		all = all && skep_memory_fits(&s, &s.memory[gpu * s.plan.stages + s.first_stage_of[i]], gpu);
	}
	skep_scenario_finish(&s);
	free(assignment);
	return all;
}

static void make_tight(struct skep_scenario *s, struct skep_planning *p, const char *const *set, double *ret_bytes)
{
	struct skep_diag error;
	read_with(s, two, set, set ? 1 : 0);
	*ret_bytes = 0;
	for (uint32_t stage = 0; stage < s->plan.stages; stage++)
		*ret_bytes = fmax(*ret_bytes, s->memory_bytes[stage]);
	*ret_bytes *= 1.001; /* so that even sizes just fit */
	for (uint32_t i = 0; i < s->topology.gpus; i++)
		s->topology.gpu[i].memory_bytes = *ret_bytes;
	assert_true(skep_planning_make(s, p, fresh(&error)));
}

/* What a search calls possible is what a scenario with these sizes is: no more and no less, whichever side says how
 * many are in flight. */
static void test_memory_is_that_of_the_sizes(void **state)
{
	(void)state;
	static const char *const sets[] = {NULL, "schedule.in_flight=8"};
	for (uint32_t k = 0; k < 2; k++) {
		struct skep_scenario s;
		struct skep_planning p;
		uint64_t random = 11;
		uint32_t can = 0;
		double bytes;
		const char *const *set = k > 0 ? &sets[k] : NULL;
		make_tight(&s, &p, set, &bytes);
		void *mem = malloc(skep_throughput_size(&p.throughput[0]));
		const struct skep_objective *cost = skep_throughput_init(mem, &p.throughput[0]);
		for (uint32_t n = 0; n < 60; n++) {
			uint32_t stage_of[8];
			for (uint32_t i = 0; i < 8; i++)
				stage_of[i] = i < 4 ? (i + n) % 4 : skep_random_below(&random, 4);
			bool possible = cost->whole(cost->self, stage_of) < SKEP_NEVER;
			assert_int_equal(possible, fits(&p, stage_of, set, bytes));
			can += possible;
		}
		assert_true(can > 3 && can < 57);
		free(mem);
		finish(&s, &p);
	}
}

/* Unequal sizes are faster where GPUs are, and where there is room; where there is none all that searches find fits. */
static void test_what_searches_find_fits(void **state)
{
	(void)state;
	struct skep_scenario s;
	struct skep_planning roomy, tight;
	double bytes;
	uint32_t stage_of[8];
	struct skep_found found;
	make(&s, &roomy, NULL, 0);
	struct skep_planning_search search = {.method = SKEP_METHOD_PORTFOLIO, .view = SKEP_UNCONTENDED, .seed = 1};
	assert_true(skep_planning_search(&roomy, &search, stage_of, &found));
	double best = found.cost;
	finish(&s, &roomy);
	make_tight(&s, &tight, NULL, &bytes);
	assert_false(fits(&tight, stage_of, NULL, bytes));
	for (uint32_t method = 0; method < SKEP_METHODS; method++) {
		search.method = (enum skep_method)method;
		assert_true(skep_planning_search(&tight, &search, stage_of, &found));
		assert_true(found.cost >= best && (method == SKEP_METHOD_STRIDED || found.cost < SKEP_NEVER));
		assert_true(!(found.cost < SKEP_NEVER) || fits(&tight, stage_of, NULL, bytes));
	}
	finish(&s, &tight);
}

/* Half of the T4s have no memory for anything: they are left out, and no others are. */
static void test_who_can_hold_nothing_is_left_out(void **state)
{
	(void)state;
	struct skep_scenario s, again;
	struct skep_planning p;
	struct skep_diag error;
	uint32_t stage_of[8], out = 0;
	read_with(&s, two, NULL, 0);
	for (uint32_t i = 0; i < s.topology.gpus; i++)
		if (strcmp(s.topology.gpu[i].name, "T4") == 0)
			s.topology.gpu[i].memory_bytes = 1000;
	assert_true(skep_planning_make(&s, &p, fresh(&error)));
	assert_int_equal(p.idle, 4);
	assert_int_equal(p.problem.spares, 4);
	struct skep_found found;
	const struct skep_planning_search search = {.method = SKEP_METHOD_GENETIC, .view = SKEP_UNCONTENDED, .seed = 1};
	for (uint32_t k = 0; k < 2; k++) {
		if (k == 0)
			skep_planning_random(&p, 1, stage_of);
		else
			assert_true(skep_planning_search(&p, &search, stage_of, &found));
		for (uint32_t i = 0; i < 8; i++)
			assert_int_equal(stage_of[i] == SKEP_SPARE, i % 4 < 2);
	}
	char *assignment = skep_planning_assignment(&p, stage_of);
	assert_non_null(strstr(assignment, "[unused, unused, "));
	const char *set[] = {assignment};
	read_with(&again, two, set, 1);
	assert_int_equal(again.plan.workers, 4);
	for (uint32_t i = 0; i < 8; i++)
		out += stage_of[i] == SKEP_SPARE;
	assert_int_equal(again.machines_out, out);
	free(assignment);
	skep_scenario_finish(&again);
	finish(&s, &p);
}

/* Who stands by is none of the planning's, and goes on standing by. */
static void test_who_stands_by_does_so_still(void **state)
{
	(void)state;
	static const char *const set[] = {
		"cluster.allocation={method: explicit, stage_of: [0, 1, 2, spare, unused, 3, 0, -1]}"};
	static const uint32_t stage_of[6] = {3, 2, 1, 0, 0, SKEP_SPARE};
	struct skep_scenario s;
	struct skep_planning p;
	make(&s, &p, set, 1);
	assert_int_equal(p.workers, 6);
	assert_int_equal(p.machine[3], 4);
	char *assignment = skep_planning_assignment(&p, stage_of);
	assert_string_equal(
		assignment, "cluster.allocation={method: explicit, stage_of: [3, 2, 1, spare, unused, 0, 0, unused]}");
	free(assignment);
	finish(&s, &p);
}

/* Reading searches nothing; once resolved the text has the allocation, and is read as it is. */
static void test_a_method_is_resolved(void **state)
{
	(void)state;
	const char *const set[] = {"cluster.allocation.method=greedy"};
	const struct skep_scenario_options options = {.set = set, .sets = 1};
	struct skep_scenario s, again;
	struct skep_diag diag = {0};
	assert_true(skep_scenario_read(two, &options, &s, &diag));
	assert_true(s.unresolved && strstr(s.text, "method: greedy"));
	assert_true(skep_resolve(&s, &options, &diag));
	assert_true(!s.unresolved && s.allocation == SKEP_ALLOCATION_GREEDY && strstr(s.text, "method: explicit"));
	read_with(&again, two, set, 0);
	assert_false(again.unresolved);
	skep_scenario_finish(&again);
	assert_true(skep_scenario_read_text(two, s.text, strlen(s.text), NULL, &again, &diag));
	assert_memory_equal(again.first_stage_of, s.first_stage_of, s.plan.workers * sizeof *s.first_stage_of);
	skep_scenario_finish(&again);
	assert_true(skep_resolve(&s, &options, &diag));
	skep_scenario_finish(&s);
}

/* The closed form is exact where all boundaries are alike; what the classes have is all that moves. */
static void test_bytes_by_class_of_link(void **state)
{
	(void)state;
	static const uint32_t in_order[8] = {0, 0, 1, 1, 2, 2, 3, 3};
	struct skep_scenario s;
	struct skep_planning p;
	struct skep_planning_traffic t;
	make(&s, &p, NULL, 0);
	assert_true(skep_planning_traffic(&p, in_order, &t));
	double pipeline = 0, reduction = 0;
	for (uint32_t i = 0; i < SKEP_LINK_CLASSES; i++) {
		pipeline += t.on[i].pipeline;
		reduction += t.on[i].reduction;
	}
	assert_true(near(pipeline, t.closed.pipeline) && near(reduction, t.closed.reduction));
	assert_true(near(t.closed.pipeline, 2.0 * 32 * 3 * p.forward_bytes[0]));
	/* Stages 1 and 2 are in different places: a third of it crosses, and no reduction does. */
	assert_true(near(t.on[2].pipeline, t.closed.pipeline / 3));
	assert_true(t.on[2].reduction <= 0 && t.on[0].reduction > 0);
	finish(&s, &p);
}

/* What is moved once in a round, all links together, with these members of the stages. */
static double round_moves(const struct skep_planning *p, const uint32_t *stage_of, double *ret_across)
{
	struct skep_planning_traffic t;
	double all = 0;
	assert_true(skep_planning_traffic(p, stage_of, &t));
	for (uint32_t i = 0; i < SKEP_LINK_CLASSES; i++)
		all += t.on[i].reduction;
	*ret_across = t.on[2].reduction;
	return all * p->throughput[0].period;
}

/* With n members and V bytes: a ring moves 2 (n - 1) V, pairs that meet floor(n / 2) 2 V; ZeRO with m microbatches a worker
 * (m + 1) (n - 1) V in stage 2 and 3 m (n - 1) V in stage 3. Tied tables of T bytes, in stages of n and m: (n + m) T more. */
static void test_bytes_of_a_round(void **state)
{
	(void)state;
	static const uint32_t one_stage[8] = {0, 0, 0, 0, 0, 0, 0, 0}, odd[8] = {0, 0, 0, 0, 0, 0, 0, SKEP_SPARE},
			      three_and_five[8] = {0, 0, 1, 0, 1, 1, 1, 1};
	const struct {
		const char *set[4];
		const uint32_t *stage_of;
		double vectors, tables, across; /* across: of all bytes, on the line between places */
	} all[] = {
		{{"model.stages=1"}, one_stage, 2 * 7, 0, 2.0 / 8},
		{{"model.stages=1", "sync={method: gossip, every: 4}"}, one_stage, 4 * 2, 0, 16.0 / 28},
		{{"model.stages=1", "sync={method: gossip, every: 4}"}, odd, 3 * 2, 0, 12.0 / 21},
		{{"model.stages=1", "sync={zero: 1}"}, one_stage, 2 * 7, 0, 2.0 / 8},
		{{"model.stages=1", "sync={zero: 2}"}, one_stage, (4 + 1) * 7, 0, -1},
		{{"model.stages=1", "sync={zero: 3}"}, one_stage, 3 * 4 * 7, 0, -1},
		{{"model.stages=2", "model.file=models/gpt2-124m.yaml", "schedule.microbatch=1"}, three_and_five, 0, 8,
			-1},
		{{"model.stages=2", "sync={method: diloco, every: [2, 8]}"}, three_and_five, 0, 0, -1},
		{{"model.stages=2", "sync={method: diloco, every: [8, 2], collective: butterfly}"}, three_and_five, 0,
			0, -1},
		{{"model.stages=2", "sync={method: diloco, every: [2, 8], collective: tree}"}, three_and_five, 0, 0,
			-1},
	};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		const char *set[6] = {"train.arithmetic=none", "cluster.allocation=null"};
		uint32_t sets = 2;
		for (uint32_t k = 0; all[i].set[k]; k++)
			set[sets++] = all[i].set[k];
		struct skep_scenario s;
		struct skep_planning p;
		make(&s, &p, set, sets);
		double across, moves = round_moves(&p, all[i].stage_of, &across);
		double table = (double)skep_plan_encoded_bytes(&s.plan, 0, s.plan.tied);
		double expected =
			p.stages == 1 ? all[i].vectors * p.reduced_bytes[0]
				      : 2 * 2 * p.reduced_bytes[0] + 2 * 4 * p.reduced_bytes[1] + all[i].tables * table;
		if (!near(moves, expected))
			fail_msg("%s: %g bytes, not %g", all[i].set[p.stages == 1 && all[i].set[1] ? 1 : 0], moves,
				expected);
		assert_true(all[i].tables <= 0 || table > 0);
		if (all[i].across > 0)
			assert_true(near(across * p.throughput[0].period, all[i].across * expected));
		finish(&s, &p);
	}
}

/* Messages are counted as they are sent: 64 workers in two stages send each other 2 * 32 * 31 of them once, and twice in eight
 * chunks in a butterfly. So for all allocations of a pool sums are expected message by message, or for none. */
/* Where a loss is aimed at a cost is that of a step times the rounds that the law wants with the members of the largest stage,
 * over those of the start; each number is asked of the law here by a scenario that has so many. */
static void test_rounds_are_the_laws(void **state)
{
	(void)state;
	static const char *const set[] = {"plan={objective: time-to-loss, extrapolate: false}",
		"sync={method: diloco, every: 8, outer: {optimizer: nesterov, lr: 0.7, momentum: 0.6}}",
		"cluster.trace=null"};
	const struct skep_scenario_options options = {.set = set, .sets = 3};
	struct skep_scenario s;
	struct skep_planning p;
	struct skep_diag diag = {0};
	if (!skep_scenario_read("scenarios/plan-world.yaml", &options, &s, &diag))
		fail_msg("%s", diag.message);
	assert_true(skep_planning_make(&s, &p, &diag));
	assert_non_null(p.rounds);
	assert_ptr_equal(p.throughput[0].rounds, p.rounds);
	uint32_t start = 0, known = 0, before = 0, wanted = skep_loss_rounds_to(&s, s.target_loss);
	for (uint32_t stage = 0; stage < s.plan.stages; stage++) {
		uint32_t members = 0;
		for (uint32_t i = 0; i < s.plan.workers; i++)
			members += s.first_stage_of[i] == stage;
		start = members > start ? members : start;
	}
	for (uint32_t n = 1; n <= p.workers; n++) {
		char how[160];
		for (uint32_t i = 0; i < s.plan.workers; i++)
			s.first_stage_of[i] = i < n ? n % s.plan.stages : SKEP_NO_STAGE; /* whichever stage that is */
		uint32_t rounds = skep_loss_rounds_to(&s, s.target_loss);
		if (rounds == 0 || skep_loss_extrapolates(&s, rounds, how, sizeof how)) {
			assert_true(isinf(p.rounds[n]));
			continue;
		}
		known++;
		assert_true(rounds >= before); /* the more members, the more of each round they only average */
		before = rounds;
		assert_true(fabs(p.rounds[n] * wanted - rounds) < 1e-9 * rounds);
		if (n == start)
			assert_true(rounds == wanted);
	}
	assert_true(known > 2 && known < p.workers);
	skep_planning_finish(&p);
	skep_scenario_finish(&s);
}

static void test_short_sums_are_rehearsed(void **state)
{
	(void)state;
	static const struct {
		const char *set;
		bool is_short;
	} all[] = {{"sync.collective=all-to-all", true}, {"sync.collective=butterfly", false},
		{"sync={collective: butterfly, chunks: 1}", true}, {"sync.collective=parameter-server", true},
		{"sync.collective=ring", false}};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		struct skep_scenario s;
		struct skep_planning p;
		struct skep_diag error;
		read_with(&s, "scenarios/swarm-64-learns.yaml",
			(const char *[]){"model.stages=2", "train.arithmetic=none", all[i].set}, 3);
		assert_true(skep_planning_make(&s, &p, fresh(&error)));
		assert_int_equal(p.workers, 64);
		assert_int_equal(skep_rehearsal_short(&p), all[i].is_short);
		skep_planning_finish(&p);
		skep_scenario_finish(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_links_in_both_views),
		cmocka_unit_test(test_stages_as_the_simulator_has_them),
		cmocka_unit_test(test_an_allocation_there_and_back),
		cmocka_unit_test(test_random_is_even_and_of_its_seed),
		cmocka_unit_test(test_only_who_is_there),
		cmocka_unit_test(test_what_fits_none),
		cmocka_unit_test(test_memory_is_that_of_the_sizes),
		cmocka_unit_test(test_what_searches_find_fits),
		cmocka_unit_test(test_who_can_hold_nothing_is_left_out),
		cmocka_unit_test(test_who_stands_by_does_so_still),
		cmocka_unit_test(test_a_method_is_resolved),
		cmocka_unit_test(test_bytes_by_class_of_link),
		cmocka_unit_test(test_bytes_of_a_round),
		cmocka_unit_test(test_rounds_are_the_laws),
		cmocka_unit_test(test_short_sums_are_rehearsed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
