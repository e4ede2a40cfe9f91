/* SPDX-License-Identifier: Apache-2.0
 *
 * test_bench.c - the rows of `skep bench` can fail: a workload that is not the one in the table, an engine that is off by more
 * than the tolerance, and a run that does not end are all told. That the small rows are right: tests/cli/bench.sh.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/bench/draw.h"
#include "sim/bench/loop.h"
#include "sim/bench/rows.h"

static struct skep_bench_row find_row(const char *name, const char *parameters)
{
	struct skep_bench_row row[SKEP_BENCH_ROWS_MAX];
	uint32_t rows = skep_bench_rows(row);
	for (uint32_t i = 0; i < rows; i++)
		if (strcmp(row[i].name, name) == 0 && strcmp(row[i].parameters, parameters) == 0)
			return row[i];
	fail_msg("no row %s %s", name, parameters);
	return row[0];
}

static bool right(const struct skep_bench_row *row)
{
	struct skep_bench_figures figures;
	assert_true(skep_bench_measure(row, 1, &figures));
	return figures.right;
}

static void draws_are_as_written_down(void **state)
{
	(void)state;
	assert_true(skep_mix(0) == 0xe220a8397b1dcdafu);
	assert_true(rnd(1, 0) == 0x5775264a9a7e1b09u);
	assert_true(u01(1, 0) == 0.34163131066679175);
	assert_true(u01(2, 0) == 0.9006109088931584);
	assert_true(u01(3, 0) == 0.8323609501268625);
}

static void names_are_taken_whole_or_up_to_a_dash(void **state)
{
	(void)state;
	const struct skep_bench_row row = {.name = "R-fast-1024"};
	assert_true(skep_bench_named(&row, "R-fast-1024"));
	assert_true(skep_bench_named(&row, "r-fast"));
	assert_true(skep_bench_named(&row, "R"));
	assert_false(skep_bench_named(&row, "R-fast-10"));
	assert_false(skep_bench_named(&row, "R-"));
	assert_false(skep_bench_named(&row, ""));
	assert_false(skep_bench_named(&row, "R-fast-1024-1"));
}

static void a_makespan_that_is_off_is_wrong(void **state)
{
	(void)state;
	struct skep_bench_row row = find_row("P-16", "het=1 iwrr fifo 64 MiB");
	assert_true(right(&row));
	row.makespan_s *= 1 + 2e-6;
	assert_false(right(&row));
	row.tolerance = 5e-5;
	assert_true(right(&row));
}

/* Each of these is a workload that someone could have built instead. */
static void another_pipeline_is_told(void **state)
{
	(void)state;
	const struct skep_bench_row row = find_row("P-16", "het=1 iwrr fifo preempt=2");
	struct skep_bench_row other = row;
	assert_true(right(&row));
	other.work.pipeline.bytes += other.work.pipeline.bytes / 1000;
	assert_false(right(&other));
	other = row;
	other.work.pipeline.fifo = false;
	assert_false(right(&other));
	other = row;
	other.work.pipeline.preempt = 1;
	assert_false(right(&other));
	other = row;
	other.work.pipeline.wire = SKEP_WIRE_RAND;
	assert_false(right(&other));
	other = row;
	other.work.pipeline.heterogeneous = false;
	assert_false(right(&other));
}

static void other_flows_rings_and_events_are_told(void **state)
{
	(void)state;
	struct skep_bench_row row = find_row("F-16", "16 slots, 10 flows each");
	row.work.flow.each = 11;
	assert_false(right(&row));
	row = find_row("X-64", "64 slots, 10 flows each");
	row.work.flow.matrix = false;
	assert_false(right(&row));
	row = find_row("PHOLD-1000", "100000 events");
	row.work.phold.events++;
	assert_false(right(&row));
}

/* Ticks of 1 ns, each finish rounded up to one, are not fine enough for the fast rings: that is why they have others. */
static void a_ring_needs_ticks_that_fit_its_steps(void **state)
{
	(void)state;
	struct skep_bench_row row = find_row("R-fast-64", "1 x 64, 1024 MiB");
	struct skep_bench_figures figures;
	row.work.ring.bytes = 64 << 20; /* chunks of 1 MiB, as 1024 hosts have: 19531.25 ns */
	row.makespan_s = 2 * 63 * (2 * 250e-9 + 1048576 / 53687091200.0);
	assert_true(right(&row));
	row.work.ring.tick_s = 1e-9;
	assert_true(skep_bench_measure(&row, 1, &figures));
	assert_false(figures.right);
	assert_true(figures.error > 0 && figures.error < 2 * 63 * 1e-9 / row.makespan_s);
}

static void a_run_that_does_not_end_is_told(void **state)
{
	(void)state;
	struct skep_bench_row row = find_row("start-64", "8 stages, 1 microbatches a worker, steps: 1");
	struct skep_bench_figures figures;
	assert_true(right(&row));
	setenv("TMPDIR", "/nowhere/at/all", 1);
	assert_false(skep_bench_measure(&row, 1, &figures));
	unsetenv("TMPDIR");
}

static void events_are_counted_and_memory_is_of_one_run(void **state)
{
	(void)state;
	struct skep_bench_row row = find_row("P-16", "het=0 perm static");
	struct skep_bench_figures small, large;
	assert_true(skep_bench_measure(&row, 3, &small));
	assert_true(small.result.done == 448);
	assert_true(small.cpu_s >= 0 && small.wall_s > 0 && small.peak_MiB > 0);
	row = find_row("X-512", "512 slots, 10 flows each");
	assert_true(skep_bench_measure(&row, 1, &large));
	assert_true(large.result.done == 5120);
	assert_true(large.peak_MiB > small.peak_MiB + 5); /* 512 * 512 pairs of 24 bytes are 6 MiB */
	row = find_row("P-16", "het=0 perm static");
	assert_true(skep_bench_measure(&row, 1, &small));
	assert_true(small.peak_MiB + 5 < large.peak_MiB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(draws_are_as_written_down),
		cmocka_unit_test(names_are_taken_whole_or_up_to_a_dash),
		cmocka_unit_test(a_makespan_that_is_off_is_wrong),
		cmocka_unit_test(another_pipeline_is_told),
		cmocka_unit_test(other_flows_rings_and_events_are_told),
		cmocka_unit_test(a_ring_needs_ticks_that_fit_its_steps),
		cmocka_unit_test(a_run_that_does_not_end_is_told),
		cmocka_unit_test(events_are_counted_and_memory_is_of_one_run),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
