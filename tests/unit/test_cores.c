/* SPDX-License-Identifier: Apache-2.0
 *
 * test_cores.c - hosts whose cores several workers share: ends of operations against processor sharing by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/cores.h"

enum { LANES = 2, MACHINES = 6 };

struct bench {
	struct skep_machine machine[MACHINES + 1];
	struct skep_gpu gpu[2];
	struct skep_topology topology;
	struct skep_cores *cores;
	skep_time now;
};

/* Machines 0 to 3 on a host of two cores, 4 and 5 on another of one; or none of them anywhere. */
static void set_up(struct bench *b, bool hosts, uint32_t threads)
{
	*b = (struct bench){.gpu = {{.board = {.cores = hosts ? 2 : 0}}, {.board = {.cores = hosts ? 1 : 0}}}};
	for (uint32_t i = 0; i < MACHINES; i++)
		b->machine[i] = (struct skep_machine){.gpu = i >= 4, .host = hosts ? 1 + (i >= 4) : 0};
	b->topology = (struct skep_topology){.machines = MACHINES, .gpus = 2, .machine = b->machine, .gpu = b->gpu};
	assert_true(skep_cores_create(&b->topology, MACHINES, LANES, threads, &b->cores));
}

static void begin(struct bench *b, uint32_t worker, uint32_t lane, skep_time work_ns)
{
	struct skep_cores_turn turn;
	skep_cores_begin(b->cores, worker, lane, b->now, work_ns);
	skep_cores_turn(b->cores, worker, b->now, &turn);
}

/* Goes to the next end on this worker's host, which is to be that one's, then. */
static void ends(struct bench *b, uint32_t worker, uint32_t lane, skep_time at_ns)
{
	struct skep_cores_turn turn;
	skep_cores_turn(b->cores, worker, b->now, &turn);
	assert_int_equal(turn.slot, worker * LANES + lane);
	assert_int_equal(turn.end_ns, at_ns);
	b->now = turn.end_ns;
	skep_cores_end(b->cores, worker, lane, b->now);
}

static void test_without_hosts_there_is_nothing(void **state)
{
	(void)state;
	struct bench b;
	set_up(&b, false, 1);
	assert_null(b.cores);
	assert_false(skep_cores_shared(b.cores, 0));
	skep_cores_destroy(b.cores);
}

static void test_cores_enough(void **state)
{
	(void)state;
	struct bench b;
	set_up(&b, true, 1);
	begin(&b, 0, 0, 1000);
	b.now = 300;
	begin(&b, 1, 1, 200);
	ends(&b, 1, 1, 500);
	ends(&b, 0, 0, 1000);
	skep_cores_destroy(b.cores);
}

/* Four at 2/4 each: 1000 ns of work are done after 2000 ns, all at one instant; the other host goes on by itself. */
static void test_all_slow_down(void **state)
{
	(void)state;
	struct bench b;
	set_up(&b, true, 1);
	for (uint32_t i = 0; i < 4; i++)
		begin(&b, i, 0, 1000);
	begin(&b, 4, 0, 1500);
	for (uint32_t i = 0; i < 4; i++)
		ends(&b, i, 0, 2000);
	b.now = 0;
	skep_cores_destroy(b.cores);
}

/* A of 900 alone until 300: 600 are left. B and C come, three at 2/3: after 300 ns each has done 200. B, of 200, is done at
 * 600. A has 400 left and C, of 1000, 800; both have a core each: A ends at 1000, C at 1400. A fourth at 1100, in the second
 * lane of C's worker, has a core too. */
static void test_by_hand(void **state)
{
	(void)state;
	struct bench b;
	set_up(&b, true, 1);
	begin(&b, 0, 0, 900);
	b.now = 300;
	begin(&b, 1, 0, 200);
	begin(&b, 2, 0, 1000);
	ends(&b, 1, 0, 600);
	ends(&b, 0, 0, 1000);
	b.now = 1100;
	begin(&b, 2, 1, 100);
	ends(&b, 2, 1, 1200);
	ends(&b, 2, 0, 1400);
	skep_cores_destroy(b.cores);
}

/* With two threads each an operation wants two cores: alone on one it takes twice as long. */
static void test_threads(void **state)
{
	(void)state;
	struct bench b;
	set_up(&b, true, 2);
	begin(&b, 5, 0, 1000);
	ends(&b, 5, 0, 2000);
	begin(&b, 0, 0, 1000);
	begin(&b, 1, 0, 1000);
	ends(&b, 0, 0, 4000);
	ends(&b, 1, 0, 4000);
	skep_cores_destroy(b.cores);
}

/* One that is lost leaves its core to the others at once. */
static void test_one_is_lost(void **state)
{
	(void)state;
	struct bench b;
	set_up(&b, true, 1);
	begin(&b, 4, 0, 1000);
	begin(&b, 5, 0, 1000);
	b.now = 1000; /* half of each is done */
	skep_cores_end(b.cores, 5, 0, b.now);
	ends(&b, 4, 0, 1500);
	skep_cores_destroy(b.cores);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_hosts_there_is_nothing),
		cmocka_unit_test(test_cores_enough),
		cmocka_unit_test(test_all_slow_down),
		cmocka_unit_test(test_by_hand),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_one_is_lost),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
