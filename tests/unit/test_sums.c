/* SPDX-License-Identifier: Apache-2.0
 *
 * test_sums.c - workers' machines with real devices sum gradients by each collective: all end with the same bits, in whatever
 * order messages and operations come, with payloads encoded or not; and the sum is the right one, or what is made of gathered
 * parts.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/collective/collective.h"
#include "core/names.h"
#include "core/random.h"
#include "models/update/codec.h"
#include "tests/unit/give_arena.h"
#include "tests/unit/job.h"
#include "tests/unit/observed_device.h"

enum { MEMBERS_MAX = 33, WAITING_MAX = 8192, ROUND = 0 };

struct world { /* worker i is member i of the reduction of round 0 */
	uint32_t size;
	struct skep_stage_plan stage;
	uint32_t first_stage_of[MEMBERS_MAX], site_of[MEMBERS_MAX];
	uint64_t link_Bps[MEMBERS_MAX];
	struct skep_plan plan;
	struct job job[MEMBERS_MAX];
	struct skep_node *node[MEMBERS_MAX];
	struct skep_actions actions;
	struct skep_message message[WAITING_MAX]; /* on their way, in no order */
	struct skep_op op[MEMBERS_MAX][WAITING_MAX / 8];
	uint32_t messages, begun[MEMBERS_MAX], ended[MEMBERS_MAX], tallies;
	uint64_t random, chunks, bytes;
	struct skep_robust robust; /* MEAN: parts are summed */
	uint32_t block;            /* of the codec */
};

static void make_plan(struct world *w, enum skep_collective kind, enum skep_codec codec)
{
	for (uint32_t i = 0; i < w->size; i++) {
		w->site_of[i] = i * 7 % 3;
		w->link_Bps[i] = 1000 * (1 + i % 4);
	}
	w->plan = (struct skep_plan){.workers = w->size,
		.stages = 1,
		.samples = 1,
		.microbatches = 4,
		.in_flight = 1,
		.rounds = 1,
		.liveness.heartbeat_ns = 1000000000,
		.liveness.fence_after_ns = 10000000000,
		.reduction.collective = kind,
		.reduction.codec = codec,
		.reduction.block = w->block,
		.until.target_loss_nano = INT64_MIN,
		.stage = &w->stage,
		.first_stage_of = w->first_stage_of,
		.reduction.chunks = 3,
		.reduction.site_of = w->site_of,
		.reduction.link_Bps = w->link_Bps,
		.reduction.gather = w->robust.method != SKEP_ROBUST_MEAN};
}

static void make_gradients(struct world *w, enum skep_codec codec)
{
	for (uint32_t m = 0; m < w->size; m++) {
		struct job *job = &w->job[m];
		size_t parameters;
		job_init(job, 1, SKEP_ACTIVATION_TANH, 4, 12);
		job->training.optimizer = (struct skep_optimizer){.kind = SKEP_OPTIMIZER_SGD, .learning_rate = 0.125f};
		job_restart(job);
		job_microbatch(job, ROUND, m);
		free(job_gradients(job, ROUND, &parameters));
		job->training.reduction_codec = codec;
		job->training.reduction_block = w->block;
		job->training.robust = w->robust;
		w->stage.parameters = parameters;
	}
}

static void post(struct world *w, const struct skep_message *message)
{
	assert_true(w->messages < WAITING_MAX);
	w->message[w->messages++] = *message;
}

/* What the directory says; each of it twice. */
static void call_up(struct world *w, uint32_t rank)
{
	struct skep_message m = {.kind = SKEP_MESSAGE_REDUCE, .attempt = 1, .from = {w->size, 1}, .to = {rank, 1}};
	m.u.reduce.rank = rank;
	m.u.reduce.size = w->size;
	m.u.reduce.next = (struct skep_peer){(rank + 1) % w->size, 1};
	post(w, &m);
	post(w, &m);
	m.kind = SKEP_MESSAGE_ROSTER;
	for (uint32_t first = 0; first < w->size && skep_collective_has_roster(w->plan.reduction.collective);
		first += SKEP_ROSTER_PART) {
		m.u.roster.first = first;
		m.u.roster.size = w->size;
		for (uint32_t i = 0; i < SKEP_ROSTER_PART; i++)
			m.u.roster.peer[i] = (struct skep_peer){first + i, 1};
		post(w, &m);
		post(w, &m);
	}
}

static struct skep_buf copy(struct world *w, uint32_t from, struct skep_buf buf, uint32_t to)
{
	uint64_t bytes;
	void *memory;
	const void *data = skep_device_buffer_read(w->job[from].device[0], buf, &bytes);
	assert_non_null(data);
	struct skep_buf other = skep_device_buffer_create(w->job[to].device[0], bytes, &memory);
	memcpy(memory, data, bytes);
	return other;
}

static void perform_send(struct world *w, uint32_t self, const struct skep_action *action)
{
	struct skep_message m = action->u.send;
	w->tallies += m.kind == SKEP_MESSAGE_TALLY;
	if (m.to.index == w->size)
		return;
	if (m.kind == SKEP_MESSAGE_CHUNK) {
		uint64_t bytes;
		skep_device_buffer_read(w->job[self].device[0], m.payload, &bytes);
		assert_int_equal(bytes, m.payload_bytes);
		w->chunks++;
		w->bytes += bytes;
		m.payload = copy(w, self, m.payload, m.to.index);
		if (!action->keep)
			skep_device_buffer_release(w->job[self].device[0], action->u.send.payload);
	}
	post(w, &m);
}

/* The machines have counted nothing themselves: a stands-in for what they would say. Every fifth has no vote. */
static uint32_t weight_of(uint32_t member)
{
	return member % 5 == 3 ? 0 : 1 + member % 3;
}

static struct skep_op weighed(uint32_t self, struct skep_op op)
{
	bool own = op.kind == SKEP_OP_PACK_PART || (op.kind == SKEP_OP_UNPACK_PART && op.in.slot == 0);
	op.microbatches = own ? weight_of(self) : op.microbatches;
	return op;
}

static void step(struct world *w, uint32_t self, struct skep_event event)
{
	skep_node_step(w->node[self], &w->plan, &event, &w->actions);
	w->node[self] = give_room(w->node[self]);
	for (uint32_t i = 0; i < w->actions.count; i++) {
		const struct skep_action *action = &w->actions.item[i];
		if (action->kind == SKEP_ACTION_SEND)
			perform_send(w, self, action);
		else if (action->kind == SKEP_ACTION_RUN)
			w->op[self][w->begun[self]++] = weighed(self, action->u.run);
		else if (action->kind == SKEP_ACTION_RELEASE)
			skep_device_buffer_release(w->job[self].device[0], action->u.release);
	}
}

static void end_operation(struct world *w, uint32_t self)
{
	struct skep_event event = {.kind = SKEP_EVENT_OP_DONE, .u.done.op = w->op[self][w->ended[self]++]};
	struct skep_device_result result = job_run(w->job[self].device[0], event.u.done.op);
	assert_false(result.failed);
	event.u.done.out = result.out;
	step(w, self, event);
}

/* Until nothing is on its way. */
static void go_on(struct world *w)
{
	for (;;) {
		uint32_t running = 0, nth;
		for (uint32_t i = 0; i < w->size; i++)
			running += w->ended[i] < w->begun[i];
		if (running + w->messages == 0)
			return;
		nth = skep_random_below(&w->random, running + w->messages);
		if (nth < w->messages) {
			struct skep_message m = w->message[nth];
			w->message[nth] = w->message[--w->messages];
			step(w, m.to.index, (struct skep_event){.kind = SKEP_EVENT_MESSAGE, .u.message = m});
			continue;
		}
		uint32_t self = 0;
		for (nth -= w->messages; w->ended[self] == w->begun[self] || nth-- > 0;)
			self++;
		end_operation(w, self);
	}
}

static void begin(struct world *w, uint32_t size, enum skep_collective kind, enum skep_codec codec, uint64_t seed,
	struct skep_robust robust, uint32_t block)
{
	memset(w, 0, sizeof *w);
	w->block = block;
	w->size = size;
	w->robust = robust;
	w->random = seed;
	make_gradients(w, codec);
	make_plan(w, kind, codec);
	w->actions.capacity = skep_actions_limit(&w->plan);
	w->actions.item = calloc(w->actions.capacity, sizeof *w->actions.item);
	for (uint32_t i = 0; i < size; i++) {
		void *mem = aligned_alloc(16, skep_node_size(&w->plan, i));
		w->node[i] = skep_node_init(mem, &w->plan, i, 1);
		step(w, i, (struct skep_event){.kind = SKEP_EVENT_START});
		call_up(w, i);
	}
}

static void finish(struct world *w)
{
	for (uint32_t i = 0; i < w->size; i++) {
		job_finish(&w->job[i]); /* no buffer is left */
		free(w->node[i]);
	}
	free(w->actions.item);
}

/* ---- what came of it ------------------------------------------------------------------------------------------------ */

/* The sum in the result of member 0, against that of all accumulators; an encoded sum is as wrong as its parts may be. */
static void check_sum(struct world *w, enum skep_codec codec)
{
	const double unit = codec == SKEP_CODEC_NONE   ? 1e-6
	                    : codec == SKEP_CODEC_FP16 ? 0x1p-11
	                    : codec == SKEP_CODEC_INT8 ? 1.0 / 127
	                                               : 0.34;
	uint64_t bytes;
	float *own[MEMBERS_MAX];
	struct skep_op give = {.kind = SKEP_OP_COPY_RESULT, .count = w->stage.parameters};
	struct skep_op take = {.kind = SKEP_OP_COPY_GRAD, .count = w->stage.parameters};
	for (uint32_t m = 0; m < w->size; m++) {
		w->job[m].training.reduction_codec = SKEP_CODEC_NONE;
		own[m] = job_dump(w->job[m].device[0], take, &bytes);
	}
	float *sum = job_dump(w->job[0].device[0], give, &bytes);
	double most = 0;
	for (uint64_t e = 0; e < w->stage.parameters; e++) {
		double size = 0;
		for (uint32_t m = 0; m < w->size; m++)
			size += fabs((double)own[m][e]);
		most = fmax(most, size);
	}
	for (uint64_t e = 0; e < w->stage.parameters; e++) {
		double right = 0;
		for (uint32_t m = 0; m < w->size; m++)
			right += (double)own[m][e];
		if (fabs((double)sum[e] - right) > w->size * unit * most)
			fail_msg("element %u: %g for %g", (unsigned)e, (double)sum[e], right);
	}
	for (uint32_t m = 0; m < w->size; m++)
		free(own[m]);
	free(sum);
}

/* Parts that were sent, each with a count before it. */
static uint64_t offered(const struct world *w)
{
	uint64_t pairs = (uint64_t)w->size * (w->size - 1);
	if (!w->plan.reduction.gather)
		return 0;
	return w->plan.reduction.collective == SKEP_COLLECTIVE_PARAMETER_SERVER ? w->size - 1u
	       : w->plan.reduction.collective == SKEP_COLLECTIVE_BUTTERFLY      ? w->plan.reduction.chunks * pairs
	                                                                        : pairs;
}

static void send_through(enum skep_codec codec, uint32_t block, size_t n, float *value)
{
	void *payload = malloc(skep_codec_bytes(codec, block, n));
	skep_codec_encode(codec, block, n, value, payload);
	skep_codec_decode(codec, block, n, payload, value);
	free(payload);
}

/* To the bit, if the parts were whole, or are dealt with element by element, and the result was not encoded. Else only that it is
 * no larger than it can be: who is left out may differ. */
static void check_whole(struct world *w, enum skep_codec codec)
{
	uint64_t bytes, n = w->stage.parameters;
	bool all_to_all = w->plan.reduction.collective == SKEP_COLLECTIVE_ALL_TO_ALL;
	float *part = malloc(w->size * n * sizeof *part), *right = malloc(n * sizeof *right);
	struct skep_op give = {.kind = SKEP_OP_COPY_RESULT, .count = n}, take = {.kind = SKEP_OP_COPY_GRAD, .count = n};
	uint32_t weight[MEMBERS_MAX];
	for (uint32_t m = 0; m < w->size; m++) {
		weight[m] = weight_of(m);
		w->job[m].training.reduction_codec = SKEP_CODEC_NONE;
		float *own = job_dump(w->job[m].device[0], take, &bytes);
		memcpy(part + m * n, own, n * sizeof *own);
		if (all_to_all)
			send_through(codec, w->block, n, part + m * n);
		free(own);
	}
	skep_robust_aggregate(&w->robust, w->size, n, part, weight, right);
	float *got = job_dump(w->job[0].device[0], give, &bytes);
	bool pieces = w->plan.reduction.collective == SKEP_COLLECTIVE_BUTTERFLY && w->robust.method == SKEP_ROBUST_ZENO;
	double most = 0;
	for (uint64_t i = 0; i < w->size * n; i++)
		most = fmax(most, fabs((double)part[i]));
	for (uint64_t i = 0; i < n; i++)
		assert_true(fabs((double)got[i]) <= 3.0 * w->size * most);
	if (all_to_all || (codec == SKEP_CODEC_NONE && !pieces))
		assert_memory_equal(got, right, n * sizeof *got);
	free(part), free(right), free(got);
}

static uint64_t check_robust(uint32_t size, enum skep_collective kind, enum skep_codec codec, uint64_t seed,
	struct skep_robust robust, uint32_t block)
{
	static struct world w;
	begin(&w, size, kind, codec, seed, robust, block);
	go_on(&w);
	if (w.tallies != size)
		fail_msg("%s of %u: %u members have the sum", skep_collective_name((uint8_t)kind), size, w.tallies);
	uint64_t vectors = kind == SKEP_COLLECTIVE_ALL_TO_ALL ? size * (size - 1) : 2 * (size - 1);
	if (!skep_codec_blocks(codec))
		assert_int_equal(w.bytes,
			vectors * skep_codec_bytes(codec, SKEP_CODEC_BLOCK, w.stage.parameters) + offered(&w) * 4);
	struct skep_op step = {.kind = SKEP_OP_STEP, .round = ROUND, .size = size, .microbatches = size};
	if (size > 1 && robust.method == SKEP_ROBUST_MEAN)
		check_sum(&w, codec);
	else if (size > 1)
		check_whole(&w, codec);
	uint64_t digest[MEMBERS_MAX] = {0};
	for (uint32_t m = 0; m < size; m++) {
		job_run(w.job[m].device[0], step);
		digest[m] = parameters_digest(w.job[m].device[0]);
		if (digest[m] != digest[0])
			fail_msg("%s of %u, codec %d: member %u has other bits", skep_collective_name((uint8_t)kind),
				size, (int)codec, m);
	}
	finish(&w);
	return digest[0];
}

static uint64_t check(uint32_t size, enum skep_collective kind, enum skep_codec codec, uint64_t seed, uint32_t block)
{
	return check_robust(size, kind, codec, seed, (struct skep_robust){.method = SKEP_ROBUST_MEAN}, block);
}

static void test_all_members_end_with_the_same_bits(void **state)
{
	(void)state;
	const uint32_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 16, 33};
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
		for (uint32_t kind = 0; kind < SKEP_COLLECTIVES; kind++)
			for (uint32_t codec = SKEP_CODEC_NONE; codec < SKEP_CODECS; codec++) {
				if (kind == SKEP_COLLECTIVE_FUSED)
					continue;
				uint64_t first =
					check(sizes[i], (enum skep_collective)kind, (enum skep_codec)codec, 1, 0);
				for (uint64_t seed = 2; seed < (sizes[i] > 8 ? 3 : 6); seed++)
					assert_true(first == check(sizes[i], (enum skep_collective)kind,
								     (enum skep_codec)codec, seed, 0));
			}
}

/* Blocks that are shorter and longer than a member's part, and one scale for each message, with the collectives for which that is
 * no matter. */
static void test_blocks_of_other_lengths(void **state)
{
	(void)state;
	const uint32_t sizes[] = {2, 3, 5, 8}, blocks[] = {8, 128, SKEP_CODEC_BLOCK_MAX, SKEP_CODEC_TENSOR};
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
		for (uint32_t kind = 0; kind < SKEP_COLLECTIVES; kind++)
			for (uint32_t nth = 0; nth < 8; nth++) {
				enum skep_codec codec = nth % 2 ? SKEP_CODEC_INT8 : SKEP_CODEC_E3M0;
				enum skep_collective collective = (enum skep_collective)kind;
				uint32_t block = blocks[nth / 2];
				if (kind == SKEP_COLLECTIVE_FUSED ||
					(block == SKEP_CODEC_TENSOR && skep_collective_encodes_again(collective)))
					continue;
				uint64_t first = check(sizes[i], collective, codec, 1, block);
				for (uint64_t seed = 2; seed < 4; seed++)
					assert_true(first == check(sizes[i], collective, codec, seed, block));
			}
}

static void test_blocks_of_gathered_parts(void **state)
{
	(void)state;
	const struct skep_robust robust = {.method = SKEP_ROBUST_TRIMMED_MEAN, .trim = 1};
	for (uint32_t nth = 0; nth < 4; nth++) {
		enum skep_collective kind = nth % 2 ? SKEP_COLLECTIVE_ALL_TO_ALL : SKEP_COLLECTIVE_BUTTERFLY;
		uint32_t block = nth / 2 ? SKEP_CODEC_TENSOR : 24;
		uint64_t first = check_robust(5, kind, SKEP_CODEC_INT8, 1, robust, block);
		assert_true(first == check_robust(5, kind, SKEP_CODEC_INT8, 2, robust, block));
	}
}

/* The same of what is gathered, in whatever order it comes. */
static void test_parts_are_gathered(void **state)
{
	(void)state;
	const uint32_t sizes[] = {1, 2, 3, 4, 6, 8, 13};
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
		for (uint32_t nth = 0; nth < 3 * 2 * SKEP_CODECS; nth++) {
			const enum skep_collective kinds[] = {SKEP_COLLECTIVE_PARAMETER_SERVER,
				SKEP_COLLECTIVE_ALL_TO_ALL, SKEP_COLLECTIVE_BUTTERFLY};
			enum skep_codec codec = (enum skep_codec)(nth % SKEP_CODECS);
			struct skep_robust robust = {.trim = 1, .rho = 0.5};
			robust.method = nth / SKEP_CODECS % 2 ? SKEP_ROBUST_ZENO : SKEP_ROBUST_TRIMMED_MEAN;
			uint64_t first = check_robust(sizes[i], kinds[nth / SKEP_CODECS / 2], codec, 1, robust, 0);
			for (uint64_t seed = 2; seed < 5; seed++)
				assert_true(first == check_robust(sizes[i], kinds[nth / SKEP_CODECS / 2], codec, seed,
							     robust, 0));
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_members_end_with_the_same_bits),
		cmocka_unit_test(test_parts_are_gathered),
		cmocka_unit_test(test_blocks_of_other_lengths),
		cmocka_unit_test(test_blocks_of_gathered_parts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
