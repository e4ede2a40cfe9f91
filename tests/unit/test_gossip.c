/* SPDX-License-Identifier: Apache-2.0
 *
 * test_gossip.c - periodic sync in pairs: the outer step against numbers that were worked out by hand and against the published
 * formula; and in the directory who meets whom, what a pair divides by, and what becomes of it when a member is lost.
 */
#include <math.h>

#include "job.h"
#include "machine_fixture.h"
#include "models/stage/stage.h"

#define RATE 0.01f
#define ALPHA 0.5f
#define BETA 0.7f

/* ---- the outer step --------------------------------------------------------------------------------------------- */

static struct skep_training pairs(struct skep_plan *plan)
{
	plan->gossip = true;
	plan->inner.steps = 2;
	return (struct skep_training){
		.plan = plan, .outer = {.kind = SKEP_OPTIMIZER_SGD, .learning_rate = BETA, .momentum = ALPHA}};
}

/* Two members with one parameter each, w = 1 and 3, which have come to v = 2 and 3.5 with counts c; delta was 0.4 and -0.2, which
 * the optimizer keeps over -0.7. With equal counts mean(v - w) = 0.75 and mean(w) = 2, so
 *
 *     delta_1 = 0.5 * 0.4 + 0.7 * 0.75 + 0.7 * (2 - 1) = 1.425,    w_1 = 2.425
 *     delta_2 = -0.5 * 0.2 + 0.7 * 0.75 + 0.7 * (2 - 3) = -0.275,  w_2 = 2.725.
 *
 * With three times the count in the second one the means are 0.625 and 2.5, and with none in the first 0.5 and 3. */
static void test_a_pair_by_hand(void **state)
{
	static const struct {
		uint32_t c[2];
		float w[2];
	} cases[] = {
		{{2, 2}, {2.425f, 2.725f}}, {{1, 3}, {2.6875f, 2.9875f}}, {{0, 5}, {2.95f, 3.25f}}, {{0, 0}, {1, 3}}};
	(void)state;
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		struct skep_plan plan = {0};
		const struct skep_training training = pairs(&plan);
		float w[2] = {1, 3}, v[2] = {2, 3.5f}, m[2] = {0.4f / -BETA, -0.2f / -BETA}, sum[2][2] = {{0}},
		      result = 0;
		uint32_t counted = cases[k].c[0] + cases[k].c[1];
		struct skep_stage stage[2] = {{0}};
		for (uint32_t i = 0; i < 2; i++) {
			stage[i] = (struct skep_stage){.parameters = 1,
				.trained = {0, 1},
				.versions = 1,
				.stride = 1,
				.moments = 1,
				.parameter = &w[i],
				.inner = &v[i],
				.moment = {&m[i]},
				.accumulator = {&sum[i][0], &sum[i][1]},
				.accumulators = 2,
				.arrays = &skep_arrays_host};
			struct skep_op op = {.kind = SKEP_OP_PSEUDO_GRAD, .microbatches = cases[k].c[i]};
			if (op.microbatches > 0)
				skep_stage_gossip(&stage[i], &training, &op, NULL);
			result += sum[i][0];
		}
		for (uint32_t i = 0; i < 2; i++) {
			struct skep_op op = {.kind = SKEP_OP_STEP, .microbatches = counted, .count = 1};
			skep_stage_gossip(&stage[i], &training, &op, &result);
			assert_true(fabsf(w[i] - cases[k].w[i]) <= 1e-6f);
			assert_true(v[i] == w[i] && sum[i][0] == 0);
		}
	}
}

static void begin(struct job *job)
{
	job_init(job, 1, SKEP_ACTIVATION_TANH, 2, 6);
	job->plan.inner.steps = 2;
	job->plan.gossip = true;
	job->training.optimizer = (struct skep_optimizer){.kind = SKEP_OPTIMIZER_SGD, .learning_rate = RATE};
	job->training.outer =
		(struct skep_optimizer){.kind = SKEP_OPTIMIZER_SGD, .learning_rate = BETA, .momentum = ALPHA};
	job_restart(job);
}

static void run(struct job *job, enum skep_op_kind kind, uint32_t round, uint32_t microbatches, uint32_t members)
{
	struct skep_op op = {.kind = (uint8_t)kind, .round = round, .microbatches = microbatches, .size = members};
	assert_false(job_run(job->device[0], op).failed);
}

/* One inner step on some microbatches of the member's own; v is where plain loops have it. */
static void go(struct job *job, uint32_t round, uint32_t first, uint32_t count, float *v)
{
	size_t n;
	for (uint32_t i = 0; i < count; i++)
		job_microbatch(job, round, first + i);
	float *sum = job_gradients(job, round, &n);
	for (size_t i = 0; i < n; i++)
		v[i] -= RATE * (sum[i] / (float)count);
	free(sum);
	run(job, SKEP_OP_INNER_STEP, round, count, 0);
}

/* Three rounds of two devices that begin with the same and then differ, beside the published formula with a plus, in
 * which v - w and w have means of their own. In the second round one has counted more, and in the third one is alone. */
static void test_rounds_against_the_formula(void **state)
{
	static const float c[3][2] = {{2, 2}, {1, 3}, {2, 0}};
	struct job job[2];
	float *w[2], *v[2], *delta[2], apart = 0, far = 0;
	size_t n;
	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		begin(&job[i]);
		w[i] = job_parameters(&job[i], &n);
		v[i] = malloc(n * sizeof **v);
		delta[i] = calloc(n, sizeof **delta);
	}
	for (uint32_t round = 0; round < 3; round++) {
		uint32_t members = round < 2 ? 2 : 1, counted = 0;
		for (uint32_t i = 0; i < members; i++) {
			uint32_t count = (uint32_t)c[round][i];
			memcpy(v[i], w[i], n * sizeof **v);
			go(&job[i], round, 10 * i, count, v[i]);
			run(&job[i], SKEP_OP_PSEUDO_GRAD, round, count, 0);
			counted += count;
		}
		if (members > 1)
			job_reduce(job, members, 0, round);
		for (uint32_t i = 0; i < members; i++)
			run(&job[i], SKEP_OP_STEP, round, counted, members);
		for (size_t e = 0; e < n; e++) {
			float far_e = 0, middle = 0;
			for (uint32_t i = 0; i < members; i++) {
				far_e += c[round][i] / (float)counted * (v[i][e] - w[i][e]);
				middle += c[round][i] / (float)counted * w[i][e];
			}
			for (uint32_t i = 0; i < members; i++) {
				delta[i][e] = ALPHA * delta[i][e] + BETA * far_e + BETA * (middle - w[i][e]);
				w[i][e] += delta[i][e];
			}
			far = fmaxf(far, fabsf(far_e));
			apart = fmaxf(apart, fabsf(w[0][e] - w[1][e]));
		}
		for (uint32_t i = 0; i < members; i++) {
			float *is = job_parameters(&job[i], &n);
			for (size_t e = 0; e < n; e++)
				if (!(fabsf(is[e] - w[i][e]) <= 2e-6f))
					fail_msg("round %u, member %u, element %zu is %.9g, not %.9g", round, i, e,
						(double)is[e], (double)w[i][e]);
			free(is);
		}
	}
	assert_true(far > 1e-3f && apart > 1e-4f);
	for (uint32_t i = 0; i < 2; i++) {
		free(w[i]), free(v[i]), free(delta[i]);
		job_finish(&job[i]);
	}
}

/* ---- the directory ---------------------------------------------------------------------------------------------- */

enum { MEMBERS = 7 };

static void directory_of(struct fixture *f, uint32_t workers, uint64_t seed)
{
	fixture_init(f, workers, 1, workers);
	f->plan.inner.steps = 1;
	f->plan.gossip = true;
	f->plan.seed = seed;
	f->plan.microbatches = workers;
	f->plan.rounds = 4;
	fixture_make(f, workers);
	fixture_start(f);
}

/* All that was granted comes back. */
static void finish_round(struct fixture *f, uint32_t workers, uint32_t round)
{
	struct skep_message grant[FIXTURE_WORKERS_MAX];
	uint32_t grants = fixture_count_sent(f, SKEP_MESSAGE_GRANT);
	for (uint32_t i = 0; i < grants; i++)
		grant[i] = fixture_find(f, SKEP_ACTION_SEND, SKEP_MESSAGE_GRANT, i)->u.send;
	for (uint32_t i = 0; i < grants; i++)
		for (uint32_t m = 0; m < grant[i].u.grant.count; m++) {
			struct skep_message message =
				fixture_message(SKEP_MESSAGE_FINISHED, grant[i].to.index, workers, round);
			message.microbatch = grant[i].microbatch + m;
			message.u.finished.ok = true;
			fixture_deliver(f, message);
		}
}

struct met {
	uint32_t attempt, size, next;
};

/* Whom each was told to sum with, in this step; the others stay. */
static uint32_t told(struct fixture *f, struct met *met)
{
	uint32_t reduces = fixture_count_sent(f, SKEP_MESSAGE_REDUCE);
	for (uint32_t i = 0; i < reduces; i++) {
		const struct skep_message *m = &fixture_find(f, SKEP_ACTION_SEND, SKEP_MESSAGE_REDUCE, i)->u.send;
		met[m->to.index] = (struct met){m->attempt, m->u.reduce.size, m->u.reduce.next.index};
	}
	return reduces;
}

static void tell(struct fixture *f, uint32_t workers, uint32_t worker, uint32_t round, const struct met *met)
{
	struct skep_message message = fixture_message(SKEP_MESSAGE_TALLY, worker, workers, round);
	message.attempt = met[worker].attempt;
	message.u.tally.offset[0] = (uint16_t)worker;
	message.u.tally.used = 1;
	message.u.tally.count = 1;
	fixture_deliver(f, message);
}

/* Each is in one pair, the odd one alone, and no two pairs have the same attempt. */
static uint32_t check_pairs(const struct met *met, uint32_t workers)
{
	uint32_t alone = SKEP_NO_INDEX, attempts = 0;
	for (uint32_t i = 0; i < workers; i++) {
		assert_in_range(met[i].size, 1, 2);
		assert_true((met[i].size == 1) == (met[i].next == i));
		assert_int_equal(met[met[i].next].next, i);
		assert_int_equal(met[met[i].next].attempt, met[i].attempt);
		assert_false(met[i].next >= i && (attempts >> met[i].attempt & 1));
		attempts |= met[i].next >= i ? 1u << met[i].attempt : 0;
		if (met[i].size == 1) {
			assert_int_equal(alone, SKEP_NO_INDEX);
			alone = i;
		}
	}
	assert_true((alone != SKEP_NO_INDEX) == (workers % 2 == 1));
	return alone;
}

/* In four rounds of five members, from one seed and another. */
static void test_pairs_are_drawn_anew(void **state)
{
	uint32_t same = 0, seen[2][4] = {{0}};
	(void)state;
	for (uint32_t seed = 0; seed < 2; seed++) {
		struct fixture f;
		struct met met[MEMBERS], before[MEMBERS];
		directory_of(&f, 5, 1 + seed);
		for (uint32_t round = 0; round < 4; round++) {
			finish_round(&f, 5, round);
			assert_int_equal(told(&f, met), 5);
			check_pairs(met, 5);
			for (uint32_t i = 0; i < 5; i++) {
				seen[seed][round] = 5 * seen[seed][round] + met[i].next;
				same += round > 0 && met[i].next == before[i].next;
			}
			memcpy(before, met, sizeof before);
			for (uint32_t i = 0; i < 5; i++)
				tell(&f, 5, i, round, met);
			assert_int_equal(fixture_count_sent(&f, SKEP_MESSAGE_COMMIT), 5);
			for (uint32_t i = 0; i < 5; i++) {
				const struct skep_message *m =
					&fixture_find(&f, SKEP_ACTION_SEND, SKEP_MESSAGE_COMMIT, i)->u.send;
				assert_int_equal(m->attempt, met[m->to.index].attempt);
				assert_int_equal(m->u.commit.microbatches, met[m->to.index].size);
			}
		}
		fixture_finish(&f);
	}
	assert_true(same < 5 * 3 * 2 / 2);
	assert_true(memcmp(seen[0], seen[1], sizeof seen[0]) != 0);
}

static void lose(struct fixture *f, uint32_t worker)
{
	struct skep_event event = {.kind = SKEP_EVENT_SUSPECT};
	event.u.peer = (struct skep_peer){worker, 1};
	fixture_event(f, event);
}

/* Only the partner is told to begin anew, and the others' tallies stand; the last of these ends the round. */
static void test_a_partner_goes_on_alone(void **state)
{
	struct fixture f;
	struct met met[MEMBERS];
	(void)state;
	directory_of(&f, 6, 3);
	finish_round(&f, 6, 0);
	assert_int_equal(told(&f, met), 6);
	uint32_t lost = 0, left = met[0].next, newest = 0;
	for (uint32_t i = 0; i < 6; i++) {
		newest = met[i].attempt > newest ? met[i].attempt : newest;
		if (i != lost)
			tell(&f, 6, i, 0, met);
	}
	lose(&f, lost);
	assert_int_equal(told(&f, met), 1);
	assert_int_equal(met[left].size, 1);
	assert_int_equal(met[left].attempt, newest + 1);
	assert_null(fixture_noted(&f, SKEP_NOTE_STAGE_COMMITTED));
	tell(&f, 6, left, 0, met);
	assert_int_equal(fixture_noted(&f, SKEP_NOTE_STAGE_COMMITTED)->counted, 5);
	assert_int_equal(fixture_count_sent(&f, SKEP_MESSAGE_COMMIT), 5);
	for (uint32_t i = 0; i < 5; i++) {
		const struct skep_message *m = &fixture_find(&f, SKEP_ACTION_SEND, SKEP_MESSAGE_COMMIT, i)->u.send;
		assert_int_equal(m->u.commit.microbatches, m->to.index == left ? 1 : 2);
	}
	fixture_finish(&f);
}

/* With the one that is alone all that is left to wait for is gone. */
static void test_the_lonely_one_is_lost_last(void **state)
{
	struct fixture f;
	struct met met[MEMBERS];
	(void)state;
	directory_of(&f, 5, 3);
	finish_round(&f, 5, 0);
	assert_int_equal(told(&f, met), 5);
	uint32_t alone = check_pairs(met, 5);
	for (uint32_t i = 0; i < 5; i++)
		if (i != alone)
			tell(&f, 5, i, 0, met);
	assert_null(fixture_noted(&f, SKEP_NOTE_STAGE_COMMITTED));
	lose(&f, alone);
	assert_int_equal(fixture_count_sent(&f, SKEP_MESSAGE_REDUCE), 0);
	assert_int_equal(fixture_noted(&f, SKEP_NOTE_STAGE_COMMITTED)->counted, 4);
	assert_int_equal(fixture_count_sent(&f, SKEP_MESSAGE_COMMIT), 4);
	fixture_finish(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_pair_by_hand),
		cmocka_unit_test(test_rounds_against_the_formula), cmocka_unit_test(test_pairs_are_drawn_anew),
		cmocka_unit_test(test_a_partner_goes_on_alone), cmocka_unit_test(test_the_lonely_one_is_lost_last)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
