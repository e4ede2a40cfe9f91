/* SPDX-License-Identifier: Apache-2.0
 *
 * test_known.c - trials that were simulated before (planning/trial/known.h): two are the same if all that they follow from is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "planning/trial/planner.h"

#define WORKERS 3u

static const uint32_t stages[WORKERS] = {0, 1, 1}, others[WORKERS] = {1, 0, 1};
static const uint32_t cut[2] = {4, 5}, other_cut[2] = {5, 4};

struct asked {
	const char *set[2];
	uint32_t sets, rounds;
	uint64_t seed;
	const uint32_t *stage_of, *layers;
	uint64_t how;
};

static uint64_t key_of(const struct asked *asked)
{
	struct skep_planner w = {.rounds = asked->rounds};
	struct skep_candidate c = {0};
	uint32_t stage_of[WORKERS], layers[2];
	char *set[2] = {strdup(asked->set[0]), strdup(asked->set[1])};
	memcpy(stage_of, asked->stage_of, sizeof stage_of);
	c.stage_of = stage_of;
	if (asked->layers) {
		memcpy(layers, asked->layers, sizeof layers);
		c.layers = layers;
	}
	w.with.set = set;
	w.with.sets = asked->sets;
	w.scenario.seed = asked->seed;
	w.scenario.plan.stages = 2;
	w.planning.workers = WORKERS;
	uint64_t key = skep_known_key(&w, &c, asked->how);
	free(set[0]);
	free(set[1]);
	return key;
}

static void each_thing_counts(void **state)
{
	(void)state;
	const struct asked own = {{"a=1", "b=2"}, 2, 4, 1, stages, cut, 0};
	struct asked asked[] = {own, own, own, own, own, own, own, own, own};
	const size_t count = sizeof asked / sizeof asked[0];
	asked[1].set[1] = "b=3";
	asked[2].sets = 1;
	asked[3].rounds = 5;
	asked[4].seed = 2;
	asked[5].stage_of = others;
	asked[6].layers = other_cut;
	asked[7].layers = NULL;
	asked[8].how = 1;
	assert_true(key_of(&own) == key_of(&own));
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < i; j++)
			assert_true(key_of(&asked[i]) != key_of(&asked[j]));
}

static void known_once(void **state)
{
	(void)state;
	struct skep_known_trials known = {0};
	for (uint64_t key = 1; key <= 40; key++) {
		skep_known_add(&known, &(struct skep_known_trial){key, 2.0 * (double)key, 1, 1});
		skep_known_add(&known, &(struct skep_known_trial){key, 0, 0, 0}); /* the first one stays */
	}
	assert_int_equal(known.count, 40);
	for (uint64_t key = 1; key <= 40; key++) {
		const struct skep_known_trial *trial = skep_known_find(&known, key);
		assert_non_null(trial);
		assert_true(trial->key == key && trial->samples_per_s == 2.0 * (double)key);
	}
	assert_null(skep_known_find(&known, 41));
	skep_known_finish(&known);
	assert_int_equal(known.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(each_thing_counts), cmocka_unit_test(known_once)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
