/* SPDX-License-Identifier: Apache-2.0
 *
 * test_placed.c - where workers of a real run sit, against where the topology has their machines: places that have names of
 * hosts, places that have not, and hosts with slots that do not add up.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "exec/neighbours.h"

enum { WORKERS = 3 };

/* Workers 0 and 1 at the first place, worker 2 at the second one. */
static bool placed(const char *first, const char *second, const char (*host)[SKEP_HOST_NAME], char *ret, size_t room)
{
	struct skep_machine machine[WORKERS + 1] = {{.place = 0}, {.place = 0}, {.place = 1}};
	char name[2][32] = {""};
	strcpy(name[0], first);
	strcpy(name[1], second);
	const struct skep_topology topology = {
		.machines = WORKERS, .places = 2, .machine = machine, .place_name = name};
	return skep_placed_well(&topology, host, WORKERS, ret, room);
}

static void test_as_the_topology_says(void **state)
{
	const char host[][SKEP_HOST_NAME] = {"alpha", "alpha", "Alpha.lan", "beta"};
	char what[512];
	(void)state;
	assert_true(placed("alpha", "beta", host, what, sizeof what));
	assert_true(placed("east", "west", host, what, sizeof what));
}

/* alpha has one slot less than the topology has machines there, and the directory. */
static void test_other_host_than_the_place(void **state)
{
	const char host[][SKEP_HOST_NAME] = {"alpha", "alpha", "beta", "beta"};
	char what[512] = "";
	(void)state;
	assert_false(placed("alpha", "beta", host, what, sizeof what));
	assert_string_equal(what, "worker 1 runs on beta, and the topology has it at alpha");
}

static void test_two_places_on_a_host(void **state)
{
	const char host[][SKEP_HOST_NAME] = {"gpu1", "gpu1", "gpu2", "gpu2"};
	char what[512] = "";
	(void)state;
	assert_false(placed("east", "west", host, what, sizeof what));
	assert_string_equal(what,
		"workers 1 and 2 both run on gpu2, and the topology has them at east and west: what they send each other "
		"crosses no line");
}

/* What is not a prefix of the other's name is another host. */
static void test_names_alike(void **state)
{
	const char host[][SKEP_HOST_NAME] = {"node1", "node1", "node1", "node10"};
	char what[512];
	(void)state;
	assert_true(placed("node1", "node10", host, what, sizeof what));
}

static void test_one_host(void **state)
{
	const char host[][SKEP_HOST_NAME] = {"box", "box", "box.lan", "box"};
	char what[512];
	(void)state;
	assert_true(placed("east", "west", host, what, sizeof what));
	assert_true(placed("east", "box", host, what, sizeof what));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_as_the_topology_says),
		cmocka_unit_test(test_other_host_than_the_place), cmocka_unit_test(test_two_places_on_a_host),
		cmocka_unit_test(test_names_alike), cmocka_unit_test(test_one_host)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
