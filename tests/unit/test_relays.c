/* SPDX-License-Identifier: Apache-2.0
 *
 * test_relays.c - what `serve` says at its end of pairs that it relays, beside what the topology says of their sites.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "exec/serve/status.h"

#define WORKERS 5u
#define PLACES 4u

struct sites { /* the directory and worker 4 in `rented`, worker 0 in `first`, 1 in `second`, 2 and 3 in `third` */
	struct skep_scenario scenario;
	struct skep_machine machine[WORKERS + 1];
	char name[PLACES][32];
	bool dials_out[PLACES], settled[PLACES];
	struct skep_relays relays;
	char *text;
};

static int begin(void **state)
{
	static const uint32_t place[WORKERS + 1] = {1, 2, 3, 3, 0, 0};
	static const char *const name[PLACES] = {"rented", "first", "second", "third"};
	struct sites *s = calloc(1, sizeof *s);
	for (uint32_t i = 0; i <= WORKERS; i++)
		s->machine[i].place = place[i];
	for (uint32_t i = 0; i < PLACES; i++) {
		strcpy(s->name[i], name[i]);
		s->settled[i] = true;
	}
	s->scenario.plan.workers = s->scenario.topology.machines = WORKERS;
	s->scenario.topology.places = PLACES;
	s->scenario.topology.machine = s->machine;
	s->scenario.topology.place_name = s->name;
	*state = s;
	return 0;
}

static int end(void **state)
{
	struct sites *s = *state;
	skep_relays_finish(&s->relays);
	free(s->text);
	free(s);
	return 0;
}

static void only_dial_out(struct sites *s, uint32_t a, uint32_t b)
{
	s->scenario.topology.dials_out = s->dials_out;
	s->dials_out[a] = s->dials_out[b] = true;
}

static const char *said(struct sites *s)
{
	size_t size;
	free(s->text);
	FILE *out = open_memstream(&s->text, &size);
	skep_relays_compare(&s->relays, &s->scenario, s->settled, out);
	fclose(out);
	return s->text;
}

static void nothing_differs(void **state)
{
	struct sites *s = *state;
	assert_string_equal(said(s), "");
	only_dial_out(s, 1, 2);
	skep_relays_between(&s->relays, &s->scenario, 1, 0);
	assert_string_equal(said(s), "");
}

static void sites_lack_the_key(void **state)
{
	struct sites *s = *state;
	skep_relays_between(&s->relays, &s->scenario, 1, 0);
	assert_string_equal(said(s),
		"skep: relayed workers 0 and 1, which the topology says can connect: add `reach: out` to "
		"first, second\n");
	only_dial_out(s, 1, 1);
	skep_relays_between(&s->relays, &s->scenario, 0, 3);
	assert_string_equal(said(s),
		"skep: relayed workers 0 and 1 and 1 more pair, which the topology says can connect: add "
		"`reach: out` to second, third\n");
}

/* Workers of one site, or beside the directory, cannot have it from their sites. */
static void machines_lack_sites(void **state)
{
	struct sites *s = *state;
	skep_relays_between(&s->relays, &s->scenario, 2, 3);
	assert_string_equal(said(s),
		"skep: relayed workers 2 and 3, which the topology says can connect: give sites of their "
		"own, with `reach: out`, to these machines of third\n");
	skep_relays_between(&s->relays, &s->scenario, 4, 0);
	assert_string_equal(said(s),
		"skep: relayed workers 2 and 3 and 1 more pair, which the topology says can connect: add "
		"`reach: out` to first; give sites of their own, with `reach: out`, to these machines of "
		"rented, third\n");
}

static void connected_all_the_same(void **state)
{
	struct sites *s = *state;
	only_dial_out(s, 1, 2);
	assert_string_equal(said(s),
		"skep: first and second have connected, which the topology says cannot: take `reach: out` "
		"from one of the two\n");
	only_dial_out(s, 1, 3);
	skep_relays_between(&s->relays, &s->scenario, 0, 1);
	assert_string_equal(said(s),
		"skep: first and third and 1 more pair have connected, which the topology says cannot: take "
		"`reach: out` from one of the two\n");
	s->settled[3] = false; /* too soon to tell */
	assert_string_equal(said(s), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nothing_differs, begin, end),
		cmocka_unit_test_setup_teardown(sites_lack_the_key, begin, end),
		cmocka_unit_test_setup_teardown(machines_lack_sites, begin, end),
		cmocka_unit_test_setup_teardown(connected_all_the_same, begin, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
