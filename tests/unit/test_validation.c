/* SPDX-License-Identifier: Apache-2.0
 *
 * test_validation.c - validation from the scenario's keys to the numbers of a simulated run with real arithmetic: what is judged
 * changes nothing of what is learnt, takes time, and is the same however the workers are arranged; and what a wrong file is told.
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

#include "models/corpus/data.h"
#include "models/corpus/tokens.h"
#include "sim/sim.h"

#define SQUARES "scenarios/two-datacentres.yaml"
#define TEXT "scenarios/shakespeare.yaml"
#define ROUNDS 6u

struct heard {                         /* of one run */
	uint32_t begun, ended, judged; /* validations; FORWARDs of them that a device did */
	uint32_t asked, counted;       /* of the last one */
	int64_t training[ROUNDS], validation[ROUNDS + 1];
	skep_time end_ns;
	bool late; /* a round opened while something was judged */
	const struct skep_plan *plan;
};

static void hear_note(void *context, skep_time now, struct skep_peer who, const struct skep_note *note)
{
	struct heard *heard = context;
	(void)now, (void)who;
	if (note->kind == SKEP_NOTE_LOSS)
		heard->training[note->round] = note->value;
	heard->late = heard->late || (note->kind == SKEP_NOTE_ROUND_OPENED && heard->begun > heard->ended);
	if (note->kind == SKEP_NOTE_VALIDATING) {
		heard->begun++;
		heard->asked = note->microbatch;
	}
	if (note->kind != SKEP_NOTE_VALIDATED)
		return;
	heard->ended++;
	heard->counted = note->microbatch;
	heard->validation[note->round] = note->value;
}

static void hear_op(void *context, const struct skep_op_span *span)
{
	struct heard *heard = context;
	if (!skep_plan_validates(heard->plan, span->number))
		return;
	heard->judged += span->kind == SKEP_OP_FORWARD;
	assert_true(span->kind != SKEP_OP_BACKWARD);
}

static bool read_with(
	const char *path, const char *const *sets, uint32_t count, struct skep_scenario *ret, struct skep_diag *reterr)
{
	struct skep_scenario_options options = {.set = sets, .sets = count};
	return skep_scenario_read(path, &options, ret, reterr);
}

static struct heard run(const char *path, const char *const *sets, uint32_t count)
{
	struct skep_scenario s;
	struct skep_diag diag = {0};
	struct heard heard = {0};
	struct skep_sim_result result;
	bool read = read_with(path, sets, count, &s, &diag);
	if (!read)
		print_message("%s\n", diag.message);
	assert_true(read);
	heard.plan = &s.plan;
	struct skep_recorder recorder = {.context = &heard, .note = hear_note, .op = hear_op};
	assert_true(skep_sim_run(&s, &recorder, &result));
	assert_int_equal(result.outcome, SKEP_DONE);
	heard.end_ns = result.end_ns;
	assert_false(heard.late);
	assert_int_equal(heard.begun, heard.ended);
	skep_scenario_finish(&s);
	return heard;
}

#define COUNT(array) ((uint32_t)(sizeof(array) / sizeof(array)[0]))
#define RUN(path, ...) run(path, (const char *const[]){__VA_ARGS__}, COUNT(((const char *const[]){__VA_ARGS__})))

/* After rounds 4 and 6; every loss of training is what it was, but for the order of sums, and it takes its time. */
static void it_changes_nothing_but_the_time(void **state)
{
	(void)state;
	static const char *const ways[] = {"schedule.routing=peer", "schedule.routing=trainer", "sync.delayed=true",
		"schedule.pipeline=gpipe", "schedule.pipeline=1f1b", "schedule.on_loss=rerun"};
	for (uint32_t i = 0; i < COUNT(ways); i++) {
		struct heard without = RUN(SQUARES, "train.until.steps=6", ways[i]);
		struct heard with =
			RUN(SQUARES, "train.until.steps=6", ways[i], "train.validate={every: 4, microbatches: 7}");
		assert_int_equal(without.begun, 0);
		assert_int_equal(with.ended, 2);
		assert_int_equal(with.asked, 7);
		assert_int_equal(with.counted, 7);
		assert_int_equal(with.judged, 2 * 7 * 4);
		assert_true(with.end_ns > without.end_ns);
		for (uint32_t round = 0; round < ROUNDS; round++)
			assert_true(llabs(with.training[round] - without.training[round]) <
				    1000 + without.training[round] / 100000);
		assert_true(
			with.validation[4] > 0 && with.validation[6] > 0 && with.validation[6] != with.validation[4]);
	}
}

/* A learning rate that moves nothing: everybody judges the first parameters, on the same samples. */
static void it_does_not_depend_on_who_works(void **state)
{
	(void)state;
	struct heard first =
		RUN(SQUARES, "train.until.steps=2", "train.optimizer.lr=1.0e-12", "train.validate={every: 1}");
	static const char *const ways[][2] = {{"seed=1", "model.stages=2"}, {"seed=1", "schedule.microbatch=16"},
		{"sync.delayed=true", "schedule.routing=trainer"}, {"schedule.pipeline=gpipe", "seed=1"}};
	assert_true(first.validation[1] > 0);
	for (uint32_t i = 0; i < COUNT(ways); i++) {
		const char *judged =
			i == 1 ? "train.validate={every: 1, microbatches: 128}" : "train.validate={every: 1}";
		struct heard other = RUN(
			SQUARES, "train.until.steps=2", "train.optimizer.lr=1.0e-12", judged, ways[i][0], ways[i][1]);
		for (uint32_t round = 1; round <= 2; round++)
			assert_true(llabs(other.validation[round] - first.validation[1]) < first.validation[1] / 20000);
	}
}

/* No worker waits, and an outer optimizer moves nothing: however far workers have come by themselves, the parameters of
 * the stages are judged, which are the first ones. With one that moves them they learn. */
static void it_goes_beside_rounds_that_none_waits_for(void **state)
{
	(void)state;
	struct heard first =
		RUN(SQUARES, "train.until.steps=1", "train.optimizer.lr=1.0e-12", "train.validate={every: 1}");
	struct heard still = RUN(SQUARES, "train.until.steps=12",
		"sync={method: async, every: 3, outer: {lr: 1.0e-12}}", "train.validate={every: 6}");
	assert_int_equal(still.ended, 2);
	assert_int_equal(still.judged, 2 * still.asked * 4);
	for (uint32_t round = 2; round <= 4; round += 2)
		assert_true(llabs(still.validation[round] - first.validation[1]) < first.validation[1] / 20000);
	assert_true(llabs(still.training[3] - first.training[0]) > first.training[0] / 100);
	struct heard moves =
		RUN(SQUARES, "train.until.steps=12", "sync={method: async, every: 3}", "train.validate={every: 6}");
	assert_true(moves.validation[4] < moves.validation[2] && moves.validation[2] < first.validation[1]);
}

static void it_stops_at_its_target(void **state)
{
	(void)state;
	struct heard all = RUN(SQUARES, "train.until.steps=6", "train.validate={every: 2}");
	char until[96];
	snprintf(until, sizeof until, "train.until={steps: 6, loss: %.6f}", (double)all.validation[4] / 1e9 + 1e-5);
	struct heard some = run(SQUARES, (const char *const[]){until, "train.validate={every: 2}"}, 2);
	assert_int_equal(some.ended, 2);
	assert_int_equal(some.validation[4], all.validation[4]);
}

/* What is held out is never trained on: the windows of all microbatches of training are others. */
static void held_out_text_is_not_trained_on(void **state)
{
	(void)state;
	struct skep_scenario s;
	struct skep_diag diag = {0};
	const char *sets[] = {"train.validate={every: 10, microbatches: 20}", "train.data.validation=20 %"};
	assert_true(read_with(TEXT, sets, 2, &s, &diag));
	const struct skep_training *training = &s.training;
	uint32_t capacity = skep_round_capacity(&s.plan);
	size_t length = s.model.sequence + 1;
	int32_t judged[64 * 256], again[64 * 256], trained[64 * 256];
	assert_true(s.samples * length <= 64 * 256);
	for (uint32_t i = 0; i < 20; i++) {
		assert_true(skep_corpus_tokens(training, 0, capacity + i, judged, &diag));
		assert_true(skep_corpus_tokens(training, 7, capacity + 20 + i, again, &diag)); /* a second try, later */
		assert_memory_equal(judged, again, s.samples * length * sizeof *judged);
		for (uint32_t m = 0; m < 40; m++) {
			assert_true(skep_corpus_tokens(training, i, m, trained, &diag));
			for (uint32_t a = 0; a < s.samples; a++)
				for (uint32_t b = 0; b < s.samples; b++)
					assert_memory_not_equal(
						judged + a * length, trained + b * length, length * sizeof *judged);
		}
	}
	skep_scenario_finish(&s);
}

static void keys_are_checked(void **state)
{
	(void)state;
	static const struct {
		const char *path, *set, *second, *word;
	} cases[] = {
		{SQUARES, "train.validate={microbatches: 3}", NULL, "every"},
		{SQUARES, "train.validate={every: 0}", NULL, "every"},
		{SQUARES, "train.validate={every: 2, microbatches: 0}", NULL, "microbatches"},
		{TEXT, "train.validate={every: 2, microbatches: 100000}", NULL, "what is held out is enough for"},
		{TEXT, "train.validate={every: 2}", "train.data.validation=0 %", "nothing is held out"},
		{TEXT, "train.data.validation=none.txt", NULL, "train.data.validation: none.txt"},
		{TEXT, "train.data.validation=models/text/tinyshakespeare.txt", NULL, "named twice"},
		{TEXT, "train.data.validation=10", NULL, "validation"},
		{SQUARES, "train.target_loss=1", "train.until={steps: 5, loss: 2}", "train.target_loss"},
		{SQUARES, "train.target_loss=1", "train.arithmetic=none", "train.target_loss"},
		{"scenarios/baselines/pipedream.yaml", "train.validate={every: 2}", NULL, "pipedream"},
	};
	for (uint32_t i = 0; i < COUNT(cases); i++) {
		struct skep_scenario s;
		struct skep_diag diag = {0};
		const char *sets[] = {cases[i].set, cases[i].second};
		assert_false(read_with(cases[i].path, sets, cases[i].second ? 2 : 1, &s, &diag));
		if (strstr(diag.message, cases[i].word) == NULL)
			print_message("%s: %s\n", cases[i].set, diag.message);
		assert_non_null(strstr(diag.message, cases[i].word));
	}
}

/* A file of its own, or a part; as many microbatches as a round has, if there are so many. */
static void defaults(void **state)
{
	(void)state;
	struct skep_scenario s;
	struct skep_diag diag = {0};
	struct skep_tokens_facts facts;
	const char *sets[] = {
		"train.validate={every: 2}", "train.data.validation=scenarios/README.md", "train.target_loss=2"};
	assert_true(read_with(TEXT, sets, 3, &s, &diag));
	skep_tokens_describe(s.tokens, &facts);
	assert_int_equal(facts.files, 2);
	assert_int_equal(s.plan.validation.microbatches, s.plan.microbatches);
	assert_non_null(strstr(s.validation_path, "scenarios/README.md"));
	assert_true(s.target_loss == 2 && s.plan.until.target_loss_nano == INT64_MIN);
	skep_scenario_finish(&s);
	assert_true(read_with(TEXT, NULL, 0, &s, &diag));
	assert_int_equal(s.plan.validation.every, 0);
	skep_tokens_describe(s.tokens, &facts);
	uint64_t all = facts.windows[0] + facts.windows[1];
	assert_int_equal(facts.windows[1], (uint64_t)llround(0.1 * (double)all));
	skep_scenario_finish(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_changes_nothing_but_the_time),
		cmocka_unit_test(it_does_not_depend_on_who_works),
		cmocka_unit_test(it_goes_beside_rounds_that_none_waits_for),
		cmocka_unit_test(it_stops_at_its_target),
		cmocka_unit_test(held_out_text_is_not_trained_on),
		cmocka_unit_test(keys_are_checked),
		cmocka_unit_test(defaults),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
