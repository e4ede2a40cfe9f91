/* SPDX-License-Identifier: Apache-2.0
 *
 * test_masking.c - which tokens a masked language model predicts: as many in each sequence, each place equally often, and what
 * stands there instead as often as is said; the same each time it is asked; and what the two ends of a model draw goes together.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "models/corpus/data.h"
#include "models/corpus/masking.h"
#include "models/corpus/tokens.h"
#include "tests/unit/text.h"

enum { LENGTH = 64, PREDICTED = 10, SAMPLES = 20000, VOCABULARY = 257, MASK = 256, NONE = 300 };

static const struct skep_masking masking = {LENGTH, PREDICTED, VOCABULARY, MASK};

/* A count of `expected` on average is within five deviations of that. */
static void near(uint32_t count, double all, double part)
{
	const double expected = all * part, deviation = sqrt(expected * (1 - part));
	assert_true(fabs(count - expected) < 5 * deviation);
}

static void test_each_place_is_as_likely(void **state)
{
	(void)state;
	uint32_t at[LENGTH] = {0}, together = 0;
	for (uint32_t i = 0; i < SAMPLES; i++) {
		uint32_t place[PREDICTED];
		skep_masking_places(&masking, skep_masking_key(3, 0, i), place);
		for (uint32_t p = 0; p < PREDICTED; p++) {
			assert_true(place[p] < LENGTH && (p == 0 || place[p] > place[p - 1]));
			at[place[p]]++;
		}
		together += place[0] == 0 && place[1] == 1;
	}
	for (uint32_t p = 0; p < LENGTH; p++)
		near(at[p], SAMPLES, (double)PREDICTED / LENGTH);
	near(together, SAMPLES, (double)PREDICTED / LENGTH * (PREDICTED - 1) / (LENGTH - 1));
}

/* 8 in 10 are the mask, 1 any token, which may be the mask as well, and 1 what was there. */
static void test_what_stands_there_instead(void **state)
{
	(void)state;
	uint32_t masks = 0, same = 0, other = 0, low = 0;
	for (uint32_t i = 0; i < SAMPLES; i++) {
		const uint64_t key = skep_masking_key(3, 0, i);
		uint32_t place[PREDICTED], next = 0;
		int32_t id[LENGTH];
		for (int32_t t = 0; t < LENGTH; t++)
			id[t] = NONE + t;
		skep_masking_places(&masking, key, place);
		skep_masking_hide(&masking, key, id);
		for (uint32_t t = 0; t < LENGTH; t++) {
			const bool predicted = next < PREDICTED && place[next] == t;
			next += predicted;
			assert_true(predicted || id[t] == NONE + (int32_t)t);
			masks += id[t] == MASK;
			same += predicted && id[t] == NONE + (int32_t)t;
			other += id[t] < MASK;
			low += id[t] < VOCABULARY / 4;
		}
		assert_int_equal(next, PREDICTED);
	}
	const double all = (double)SAMPLES * PREDICTED;
	near(masks, all, 0.8 + 0.1 / VOCABULARY);
	near(same, all, 0.1);
	near(other, all, 0.1 * MASK / VOCABULARY);
	near(low, all, 0.1 * (VOCABULARY / 4) / VOCABULARY); /* whole numbers */
}

static void test_samples_seeds_and_splits_differ(void **state)
{
	(void)state;
	const uint64_t key[] = {skep_masking_key(3, 0, 7), skep_masking_key(3, 0, 8), skep_masking_key(4, 0, 7),
		skep_masking_key(3, 1, 7)};
	uint32_t first[PREDICTED], place[PREDICTED];
	skep_masking_places(&masking, key[0], first);
	skep_masking_places(&masking, skep_masking_key(3, 0, 7), place);
	assert_memory_equal(first, place, sizeof first);
	for (int i = 1; i < 4; i++) {
		skep_masking_places(&masking, key[i], place);
		assert_memory_not_equal(first, place, sizeof first);
	}
}

static void test_all_and_one(void **state)
{
	(void)state;
	const struct skep_masking all = {5, 5, 9, 8}, one = {5, 1, 9, 8};
	for (uint64_t key = 0; key < 100; key++) {
		uint32_t place[5];
		skep_masking_places(&all, key, place);
		for (uint32_t p = 0; p < 5; p++)
			assert_int_equal(place[p], p);
		skep_masking_places(&one, key, place);
		assert_true(place[0] < 5);
	}
}

/* ---- of a corpus -------------------------------------------------------------------------------------------------- */

enum { MICROBATCH = 3 };

struct fixture {
	uint32_t width[4];
	struct skep_model model;
	struct skep_plan plan;
	struct skep_training training;
	int32_t id[MICROBATCH * (LENGTH + 1)], input[MICROBATCH * (LENGTH + 1)], target[MICROBATCH * PREDICTED];
	uint32_t place[MICROBATCH * PREDICTED];
};

static void begin(struct fixture *f)
{
	struct skep_diag diag = {0};
	*f = (struct fixture){.model = {.kind = SKEP_MODEL_TRANSFORMER,
				      .architecture = SKEP_ARCHITECTURE_BERT,
				      .layers = 3,
				      .width = f->width,
				      .hidden = 8,
				      .vocabulary = VOCABULARY,
				      .masked = 0.15,
				      .mask_token = MASK},
		.plan = {.workers = 1, .stages = 1, .microbatches = 8, .seed = 3},
		.training = {.samples = MICROBATCH, .corpus = SKEP_CORPUS_TOKENS}};
	skep_model_set_sequence(&f->model, LENGTH);
	assert_int_equal(f->model.predicted, PREDICTED); /* 9.6, rounded */
	f->training.model = &f->model;
	f->training.plan = &f->plan;
	f->training.tokens = text_open(__FILE__, LENGTH, &diag);
	assert_non_null(f->training.tokens);
}

static void draw(struct fixture *f, uint32_t round, uint32_t microbatch)
{
	struct skep_diag diag = {0};
	assert_true(skep_corpus_inputs(&f->training, round, microbatch, f->input, &diag));
	assert_true(skep_corpus_masked(&f->training, round, microbatch, f->id, f->place, f->target, &diag));
}

/* Targets are what the text has where inputs are hidden, and all else is the text. */
static void test_both_ends_agree(void **state)
{
	(void)state;
	static struct fixture f;
	begin(&f);
	for (uint32_t round = 0; round < 4; round++) {
		int32_t plain[MICROBATCH * (LENGTH + 1)];
		struct skep_diag diag = {0};
		draw(&f, round, 2);
		assert_true(skep_corpus_tokens(&f.training, round, 2, plain, &diag));
		assert_memory_equal(plain, f.id, sizeof plain);
		for (uint32_t j = 0; j < MICROBATCH; j++)
			for (uint32_t p = 0; p < PREDICTED; p++) {
				const size_t at = j * (LENGTH + 1) + f.place[j * PREDICTED + p];
				assert_int_equal(f.target[j * PREDICTED + p], plain[at]);
				plain[at] = f.input[at];
			}
		assert_memory_equal(plain, f.input, sizeof plain);
	}
	skep_tokens_close((struct skep_tokens *)f.training.tokens);
}

/* A microbatch of two samples has what two of one sample have, so that the cut into microbatches changes nothing. */
static void test_microbatches_of_another_size(void **state)
{
	(void)state;
	static struct fixture f;
	static int32_t whole[sizeof f.input / sizeof *f.input];
	begin(&f);
	f.training.samples = 2;
	f.plan.microbatches = 1;
	draw(&f, 0, 0);
	memcpy(whole, f.input, sizeof whole);
	f.training.samples = 1;
	f.plan.microbatches = 2;
	for (uint32_t m = 0; m < 2; m++) {
		draw(&f, 0, m);
		assert_memory_equal(f.input, whole + m * (LENGTH + 1), (LENGTH + 1) * sizeof *whole);
	}
	skep_tokens_close((struct skep_tokens *)f.training.tokens);
}

static void test_how_many_are_predicted(void **state)
{
	(void)state;
	static struct fixture f;
	static const uint32_t count[][2] = {{1, 1}, {3, 1}, {10, 2}, {64, 10}, {128, 19}, {512, 77}};
	begin(&f);
	for (size_t i = 0; i < sizeof count / sizeof *count; i++) {
		skep_model_set_sequence(&f.model, count[i][0]);
		assert_int_equal(f.model.predicted, count[i][1]);
	}
	skep_tokens_close((struct skep_tokens *)f.training.tokens);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_place_is_as_likely),
		cmocka_unit_test(test_what_stands_there_instead),
		cmocka_unit_test(test_samples_seeds_and_splits_differ),
		cmocka_unit_test(test_all_and_one),
		cmocka_unit_test(test_both_ends_agree),
		cmocka_unit_test(test_microbatches_of_another_size),
		cmocka_unit_test(test_how_many_are_predicted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
