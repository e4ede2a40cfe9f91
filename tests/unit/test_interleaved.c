/* SPDX-License-Identifier: Apache-2.0
 *
 * test_interleaved.c - interleaved pipelines: in the simulator against the paper's closed form and figure, K stages of v
 * equal virtual stages, M microbatches for each pipeline, f and b for the passes of a whole stage:
 *
 *   M(f + b) + (K - 1)(f + b) / v, while stage k holds 2(K - k - 1) + (v - 1)K + 1 microbatches in a virtual stage each at most
 *
 * A message takes 1 ns at least, so the schedule is worked out here, pass by pass, with s for a link, and must be met to the ns;
 * without s it must be the closed form. Then what a worker and the directory do when something happens, event by event.
 */
#include "folder_fixture.h"
#include "machine_fixture.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/schedule/pipelines.h"
#include "models/stage/stage.h"
#include "scenarios/read/scenario.h"
#include "sim/sim.h"

#define WORKERS_MAX 32u
#define ROUNDS 2u
#define SHARE_MAX 32u
#define VSTAGES_MAX 24u

struct busy { /* one worker in one round */
	skep_time begin_ns, end_ns;
	uint32_t passes, held, held_most;
	uint8_t forwards[SHARE_MAX * 4], backwards[SHARE_MAX * 4]; /* by microbatch: so far */
	char order[1024];
};

struct run {
	struct skep_sim_result result;
	struct busy busy[ROUNDS][WORKERS_MAX];
	int64_t loss_nano[ROUNDS];
	uint32_t chunks;
};

static void hear_note(void *context, skep_time now, struct skep_peer who, const struct skep_note *note)
{
	struct run *run = context;
	(void)now, (void)who;
	if (note->kind == SKEP_NOTE_LOSS)
		run->loss_nano[note->round] = note->value;
}

/* Written as in the paper's figure: microbatches from 1, a dash for each model chunk before; backward passes in brackets. */
static void hear_op(void *context, const struct skep_op_span *span)
{
	struct run *run = context;
	struct busy *busy = &run->busy[span->round][span->worker];
	bool forward = span->kind == SKEP_OP_FORWARD;
	if (!forward && span->kind != SKEP_OP_BACKWARD)
		return;
	if (busy->passes++ == 0)
		busy->begin_ns = span->begin_ns;
	busy->end_ns = span->end_ns;
	busy->held += forward;
	busy->held_most = busy->held > busy->held_most ? busy->held : busy->held_most;
	busy->held -= !forward;
	assert_true(span->number < sizeof busy->forwards);
	uint32_t model_chunk =
		forward ? busy->forwards[span->number]++ : run->chunks - 1u - busy->backwards[span->number]++;
	size_t used = strlen(busy->order);
	assert_true(model_chunk < run->chunks);
	if (used + 16 < sizeof busy->order)
		snprintf(busy->order + used, 16, "%s%s%u%.*s%s", used > 0 ? " " : "", forward ? "" : "[",
			span->number + 1, (int)model_chunk, "''''", forward ? "" : "]");
}

/* ---- against the paper ------------------------------------------------------------------------------------------- */

struct shape {
	uint32_t stages, chunks, pipelines, share;
	skep_time forward_ns, backward_ns, latency_ns; /* of a virtual stage */
	bool arithmetic;
	const char *more; /* of the schedule; NULL: nothing */
};

/* The GPU of the file is of no account: every pass takes what the shape says. chunks 1: 1F1B. */
static void simulate(const struct shape *shape, struct run *ret)
{
	static char text[1024];
	struct skep_scenario s;
	struct skep_diag diag = {0};
	uint32_t workers = shape->stages * shape->pipelines;
	snprintf(text, sizeof text,
		"name: t\nsource: assumed for this test\ndirectory: here\nsites:\n  here:\n"
		"    machines: [{count: %u, gpu: g}]\n    inside: {bandwidth: 1000000 Gbit/s, latency: %u us}\n",
		workers, (unsigned)(shape->latency_ns / 1000));
	folder_write("t.yaml", text);
	int used = snprintf(text, sizeof text,
		"name: s\nmodel: {file: m.yaml, stages: %u}\ncluster: {topology: t.yaml, allocation: {method: "
		"strided}}\n"
		"schedule: {global_batch: %u, microbatch: 1, %spipeline: ",
		shape->stages, shape->share * shape->pipelines, shape->more ? shape->more : "");
	used += shape->chunks > 1 ? snprintf(text + used, sizeof text - (size_t)used,
					    "interleaved, model_chunks: %u}\n", shape->chunks)
	                          : snprintf(text + used, sizeof text - (size_t)used, "1f1b}\n");
	snprintf(text + used, sizeof text - (size_t)used, "train: {arithmetic: %s, until: {steps: %u}}\n",
		shape->arithmetic ? "real" : "none", ROUNDS);
	if (!skep_scenario_read_text("s.yaml", text, strlen(text), NULL, &s, &diag))
		fail_msg("%s", diag.text);
	for (uint32_t vstage = 0; vstage < shape->stages * shape->chunks; vstage++) {
		s.op_time[vstage].forward_ns = shape->forward_ns;
		s.op_time[vstage].backward_ns = shape->backward_ns;
	}
	*ret = (struct run){.chunks = shape->chunks};
	const struct skep_recorder recorder = {.context = ret, .note = hear_note, .op = hear_op};
	assert_true(skep_sim_run(&s, &recorder, &ret->result));
	assert_int_equal(ret->result.outcome, SKEP_DONE);
	for (uint32_t w = 0; w < workers && shape->chunks > 1; w++) {
		uint32_t all = shape->share * shape->chunks, k = w % shape->stages;
		uint32_t most = 2 * (shape->stages - k - 1) + (shape->chunks - 1) * shape->stages + 1;
		assert_int_equal(ret->busy[1][w].held_most, most < all ? most : all);
		assert_int_equal(ret->busy[1][w].held_most, skep_plan_held(&s.plan, k));
	}
	skep_scenario_finish(&s);
}

/* Megatron-LM's forward_backward_pipelining_with_interleaving: pass number n of a kind is of group n / (K v), in it of
 * virtual stage (n / K) % v, in it of place n % K. Sweeps until nothing can change any more; returns when the last pass ends. */
static skep_time interleaved_ns(const struct shape *shape, skep_time link_ns)
{
	static skep_time end[2][VSTAGES_MAX][SHARE_MAX];
	uint32_t k_all = shape->stages, v = shape->chunks, all = shape->share * v, vstages = k_all * v;
	skep_time last_ns = 0;
	memset(end, 0, sizeof end);
	for (uint32_t sweep = 0; sweep < 2 * (all + vstages); sweep++) {
		for (uint32_t k = 0; k < k_all; k++) {
			uint32_t warm = 2 * (k_all - k - 1) + (v - 1) * k_all, f = 0, b = 0;
			skep_time now_ns = 0;
			while (b < all) {
				bool forward = f < all && f - b <= warm;
				uint32_t n = forward ? f++ : b++, chunk = n / k_all % v;
				uint32_t m = n / (k_all * v) * k_all + n % k_all;
				uint32_t q = (forward ? chunk : v - 1 - chunk) * k_all + k;
				skep_time ready_ns = forward           ? (q > 0 ? end[0][q - 1][m] + link_ns : 0)
				                     : q + 1 < vstages ? end[1][q + 1][m] + link_ns
				                                       : end[0][q][m];
				now_ns = (ready_ns > now_ns ? ready_ns : now_ns) +
				         (forward ? shape->forward_ns : shape->backward_ns);
				end[!forward][q][m] = now_ns;
			}
			last_ns = now_ns > last_ns ? now_ns : last_ns;
		}
	}
	return last_ns;
}

static const struct {
	uint32_t stages, chunks, share;
} sizes[] = {{2, 2, 2}, {2, 2, 8}, {2, 3, 6}, {2, 4, 4}, {3, 2, 3}, {3, 3, 12}, {4, 2, 4}, {4, 2, 8}, {4, 2, 32},
	{4, 4, 16}, {5, 3, 25}, {8, 2, 16}, {8, 3, 24}};

static void test_makespan(void **state)
{
	(void)state;
	static struct run run;
	static const struct {
		skep_time forward_ns, backward_ns;
	} passes[] = {{1000000, 2000000}, {700000, 1900001}, {3000000, 1000000}};
	static const skep_time latencies_ns[] = {0, 50000, 20000000}; /* the last is much longer than a pass */
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		for (size_t j = 0; j < 9; j++) {
			skep_time f = passes[j / 3].forward_ns, b = passes[j / 3].backward_ns, s = latencies_ns[j % 3];
			struct shape shape = {sizes[i].stages, sizes[i].chunks, 1 + (uint32_t)(i + j) % 3,
				sizes[i].share, f, b, s, false, NULL};
			skep_time whole_ns = shape.chunks * (f + b), expected_ns = interleaved_ns(&shape, s + 1);
			assert_int_equal(interleaved_ns(&shape, 0),
				shape.share * whole_ns + (shape.stages - 1) * whole_ns / shape.chunks);
			simulate(&shape, &run);
			for (uint32_t p = 0; p < shape.pipelines; p++) {
				skep_time begin_ns = run.busy[1][p * shape.stages].begin_ns, end_ns = 0;
				for (uint32_t w = p * shape.stages; w < (p + 1) * shape.stages; w++) {
					assert_int_equal(run.busy[1][w].passes, 2 * shape.chunks * shape.share);
					end_ns = run.busy[1][w].end_ns > end_ns ? run.busy[1][w].end_ns : end_ns;
				}
				if (end_ns - begin_ns != expected_ns)
					fail_msg("K %u, v %u, M %u, latency %u: %llu ns, not %llu", shape.stages,
						shape.chunks, shape.share, (unsigned)s,
						(unsigned long long)(end_ns - begin_ns),
						(unsigned long long)expected_ns);
			}
		}
	}
}

/* Narayanan et al. 2021, figure 4, below: four devices, two virtual stages each, eight microbatches. */
static void test_order(void **state)
{
	(void)state;
	static struct run run;
	static const char *const order[] = {
		"1 2 3 4 1' 2' 3' 4' 5 6 7 [1'] 8 [2'] 5' [3'] 6' [4'] 7' [1] 8' [2] [3] [4] [5'] [6'] [7'] [8'] [5] "
		"[6] [7] [8]",
		"1 2 3 4 1' 2' 3' 4' 5 [1'] 6 [2'] 7 [3'] 8 [4'] 5' [1] 6' [2] 7' [3] 8' [4] [5'] [6'] [7'] [8'] [5] "
		"[6] [7] [8]",
		"1 2 3 4 1' 2' 3' [1'] 4' [2'] 5 [3'] 6 [4'] 7 [1] 8 [2] 5' [3] 6' [4] 7' [5'] 8' [6'] [7'] [8'] [5] "
		"[6] [7] [8]",
		"1 2 3 4 1' [1'] 2' [2'] 3' [3'] 4' [4'] 5 [1] 6 [2] 7 [3] 8 [4] 5' [5'] 6' [6'] 7' [7'] 8' [8'] [5] "
		"[6] [7] [8]",
	};
	for (uint32_t i = 0; i < 2; i++) { /* whatever the links are */
		struct shape shape = {4, 2, 1, 8, 1000000, 2000000, i * 7000000, false, NULL};
		simulate(&shape, &run);
		for (uint32_t w = 0; w < 4; w++)
			assert_string_equal(run.busy[1][w].order, order[w]);
	}
}

/* The same virtual stages on three times as many workers: gradients of a virtual stage are added in the same order, and a
 * sum of two is the same either way round. */
static void test_learns_the_same(void **state)
{
	(void)state;
	static struct run run[2];
	static const char *const more[] = {NULL, "checkpoint_activations: true, ", "compression: fp16, "};
	for (uint32_t i = 0; i < 6; i++) {
		uint32_t pipelines = 1 + i % 2;
		struct shape model_chunks = {2, 3, pipelines, 6, 1000000, 2000000, 30000, true, more[i / 2]};
		struct shape long_one = {6, 1, pipelines, 6, 1000000, 2000000, 30000, true, more[i / 2]};
		simulate(&model_chunks, &run[0]);
		simulate(&long_one, &run[1]);
		assert_memory_equal(run[0].loss_nano, run[1].loss_nano, sizeof run[0].loss_nano);
		assert_true(run[0].loss_nano[0] > 0 && run[0].loss_nano[1] != run[0].loss_nano[0]);
	}
}

/* ---- a worker and the directory ---------------------------------------------------------------------------------- */

static const uint64_t vstage_bytes[] = {8, 16, 32, 0};

/* Two pipelines of two stages with two virtual stages each: workers 0 and 1, workers 2 and 3. Four microbatches for each. */
static void begin(struct fixture *f, uint32_t index)
{
	fixture_init(f, 4, 2, index);
	f->plan.pipeline = SKEP_PIPELINE_INTERLEAVED;
	f->plan.wiring = SKEP_WIRING_FIXED;
	f->plan.model_chunks = 2;
	f->plan.vstage_bytes = vstage_bytes;
	f->plan.microbatches = 8;
	f->plan.in_flight = skep_plan_fixed_in_flight(&f->plan);
	fixture_make(f, index); /* anew: it was made for a swarm */
	fixture_start(f);
}

static const struct skep_buf none = {0, 0};

static void bring(struct fixture *f, enum skep_message_kind kind, uint32_t vstage, uint32_t microbatch)
{
	struct skep_message message = fixture_message(kind, 0, 1, 0);
	message.stage = (uint16_t)vstage;
	message.microbatch = microbatch;
	message.payload = fixture_buf(f);
	fixture_deliver(f, message);
}

static struct skep_op ran(const struct fixture *f, enum skep_op_kind kind, uint32_t vstage, uint32_t microbatch)
{
	const struct skep_op *op = fixture_ran(f, kind);
	assert_non_null(op);
	assert_int_equal(op->stage, vstage);
	assert_int_equal(op->microbatch, microbatch);
	return *op;
}

static bool idle(const struct fixture *f)
{
	return fixture_find(f, SKEP_ACTION_RUN, 0, 0) == NULL;
}

/* The last stage: two microbatches in the first virtual stage, then the second virtual stage of the first one, and nothing else
 * before. */
static void test_a_worker_keeps_to_its_list(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 1);
	bring(&f, SKEP_MESSAGE_FORWARD, 0, 1);
	assert_true(idle(&f)); /* it came first, but is second */
	bring(&f, SKEP_MESSAGE_FORWARD, 0, 0);
	fixture_done(&f, ran(&f, SKEP_OP_FORWARD, 1, 0), fixture_buf(&f), fixture_buf(&f));
	const struct skep_message *on = fixture_sent(&f, SKEP_MESSAGE_FORWARD);
	assert_true(on->to.index == 0 && on->stage == 1 && on->payload_bytes == 16); /* for its second model chunk */
	fixture_done(&f, ran(&f, SKEP_OP_FORWARD, 1, 1), fixture_buf(&f), fixture_buf(&f));
	bring(&f, SKEP_MESSAGE_FORWARD, 0, 2);
	assert_true(idle(&f));
	bring(&f, SKEP_MESSAGE_FORWARD, 2, 0);
	fixture_done(&f, ran(&f, SKEP_OP_FORWARD, 3, 0), none, fixture_buf(&f));
	fixture_done(&f, ran(&f, SKEP_OP_BACKWARD, 3, 0), fixture_buf(&f), none);
	const struct skep_note *counted = fixture_noted(&f, SKEP_NOTE_COUNTED);
	assert_true(counted->stage == 3 && counted->microbatch == 0);
	const struct skep_message *back = fixture_sent(&f, SKEP_MESSAGE_BACKWARD);
	assert_true(back->to.index == 0 && back->stage == 3 && back->payload_bytes == 32);
	assert_true(
		idle(&f)); /* microbatch 1 in the second virtual stage is next, and 2 in the first one waits for it */
	fixture_deliver(&f, fixture_message(SKEP_MESSAGE_DRAIN, 4, 1, 0));
	ran(&f, SKEP_OP_FORWARD, 1, 2); /* 1 may never come */
	fixture_finish(&f);
}

/* Of 1F1B with two workers before one: when its list is done, what comes in the place of others is not on it, and need not
 * wait to be told. */
static void test_a_worker_helps_behind_its_list(void **state)
{
	(void)state;
	static const uint32_t order[] = {0, 2, 1, 3, 4}; /* the two begin in turns; number 4 is beyond both shares */
	struct fixture f;
	fixture_init(&f, 3, 2, 1);
	f.plan.pipeline = SKEP_PIPELINE_1F1B;
	f.plan.wiring = SKEP_WIRING_FIXED;
	f.plan.in_flight = skep_plan_held(&f.plan, 0);
	fixture_make(&f, 1);
	fixture_start(&f);
	for (uint32_t i = 0; i < sizeof order / sizeof *order; i++) {
		struct skep_message forward = fixture_message(SKEP_MESSAGE_FORWARD, i % 2 * 2, 1, 0);
		forward.microbatch = order[i];
		forward.payload = fixture_buf(&f);
		fixture_deliver(&f, forward);
		fixture_done(&f, ran(&f, SKEP_OP_FORWARD, 1, order[i]), none, fixture_buf(&f));
		fixture_done(&f, ran(&f, SKEP_OP_BACKWARD, 1, order[i]), fixture_buf(&f), none);
	}
	fixture_finish(&f);
}

/* Each virtual stage has its own divisor, and its own step. */
static void test_a_step_for_each_vstage(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 1);
	struct skep_message reduce = fixture_message(SKEP_MESSAGE_REDUCE, 4, 1, 0);
	reduce.attempt = 1;
	reduce.u.reduce.size = 1;
	fixture_deliver(&f, reduce);
	assert_non_null(fixture_sent(&f, SKEP_MESSAGE_TALLY));
	struct skep_message commit = fixture_message(SKEP_MESSAGE_COMMIT, 4, 1, 0);
	commit.attempt = 1;
	commit.stage = 3;
	commit.u.commit.microbatches = 7;
	fixture_deliver(&f, commit);
	assert_true(idle(&f));
	fixture_deliver(&f, commit); /* a duplicate is not the other one */
	assert_true(idle(&f));
	commit.stage = 1;
	commit.u.commit.microbatches = 8;
	fixture_deliver(&f, commit);
	struct skep_op step = *fixture_ran(&f, SKEP_OP_STEP);
	assert_true(step.stage == 1 && step.microbatches == 8);
	fixture_done(&f, step, none, none);
	step = *fixture_ran(&f, SKEP_OP_STEP);
	assert_true(step.stage == 3 && step.microbatches == 7);
	fixture_done(&f, step, none, none);
	assert_true(idle(&f));
	fixture_finish(&f);
}

/* All of a pipeline are told when one of it has given something up, and no worker of another one. */
static void test_who_is_told(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 4);
	struct skep_message message = fixture_message(SKEP_MESSAGE_FINISHED, 0, 4, 0);
	message.microbatch = 1; /* given up */
	fixture_deliver(&f, message);
	assert_int_equal(fixture_count_sent(&f, SKEP_MESSAGE_DRAIN), 2);
	assert_int_equal(fixture_find(&f, SKEP_ACTION_SEND, SKEP_MESSAGE_DRAIN, 1)->u.send.to.index, 1);
	message.microbatch = 2;
	fixture_deliver(&f, message);
	assert_int_equal(fixture_count_sent(&f, SKEP_MESSAGE_DRAIN), 0); /* once is enough */
	fixture_finish(&f);
}

/* ---- scenarios ---------------------------------------------------------------------------------------------------- */

static char baseline[512]; /* the file, found before the folder changes */

static bool reads(const char *const *set, uint32_t sets, struct skep_scenario *ret, struct skep_diag *diag)
{
	struct skep_scenario_options options = {.set = set, .sets = sets};
	*diag = (struct skep_diag){0};
	return skep_scenario_read(baseline, &options, ret, diag);
}

static void test_a_scenario_makes_a_plan(void **state)
{
	(void)state;
	struct skep_scenario s;
	struct skep_diag diag;
	if (!reads(NULL, 0, &s, &diag))
		fail_msg("%s", diag.text);
	assert_true(s.plan.model_chunks == 2 && skep_plan_vstages(&s.plan) == 8 && skep_plan_share(&s.plan, 0) == 16);
	assert_int_equal(s.plan.in_flight, 12);
	uint64_t parameters = 0;
	for (uint32_t vstage = 0; vstage < 8; vstage++) {
		parameters += s.cost[vstage].parameters;
		assert_int_equal(skep_plan_vstage_bytes(&s.plan, vstage), vstage < 7 ? 64 * 128 * 4 : 0);
	}
	for (uint32_t stage = 0; stage < 4; stage++) {
		assert_int_equal(s.stage[stage].parameters, s.cost[stage].parameters + s.cost[stage + 4].parameters);
		parameters -= s.stage[stage].parameters;
		assert_int_equal(s.memory[stage].held, 2 * (3 - stage) + 4 + 1 + 1); /* one more in a bad round */
	}
	assert_int_equal(parameters, 0);
	skep_scenario_finish(&s);
}

static void test_what_is_refused(void **state)
{
	(void)state;
	static const struct {
		const char *set[2], *answer;
	} cases[] = {
		{{"schedule.model_chunks=1"}, "schedule.model_chunks"},
		{{"schedule.model_chunks=65"}, "schedule.model_chunks"},
		{{"schedule.model_chunks=3"},
			"schedule.model_chunks: 3 chunks in each of 4 stages are 12 virtual stages, square-mlp has 9 "
			"layers; take fewer stages, or fewer chunks"},
		{{"model.stages=1"}, "schedule.pipeline: interleaved needs two stages at least"},
		{{"schedule.global_batch=1152"}, "the 9 microbatches of a pipeline in groups of 4, one for each stage, "
						 "and they are no multiple of that; "
						 "the nearest are 1024 and 1536"},
		{{"schedule.global_batch=256"},
			"the 2 microbatches of a pipeline in groups of 4, one for each stage, and they are "
			"no multiple of that; the nearest is 512"},
		{{"schedule.pipeline=1f1b"}, "schedule.model_chunks: comes with `pipeline: interleaved` alone"},
		{{"schedule.pipeline=swarm", "schedule.wiring=uniform"}, "schedule.model_chunks: comes with"},
		{{"sync.delayed=true"}, "sync.delayed: not with `pipeline: interleaved`"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct skep_scenario s;
		struct skep_diag diag;
		assert_false(reads(cases[i].set, 1 + (cases[i].set[1] != NULL), &s, &diag));
		if (!strstr(diag.message, cases[i].answer))
			fail_msg("%s: %s", cases[i].set[0], diag.message);
	}
}

static int enter(void **state)
{
	static char folder[] = "/tmp/skep-chunks-XXXXXX";
	*state = folder;
	if (!realpath("scenarios/baselines/interleaved.yaml", baseline))
		return -1;
	return folder_enter(folder, "inputs: 1, hidden: 3, hidden_layers: 23, outputs: 1");
}

static int leave(void **state)
{
	return folder_leave(*state);
}

/* Equal layers: stage 0 of two has layers 0 and 1, or, interleaved, 0 and 2. As many numbers, and of other layers. */
static void test_state_of_other_vstages_is_refused(void **state)
{
	(void)state;
	uint32_t width[] = {4, 4, 4, 4, 4}, first_stage[] = {0, 1};
	struct skep_model model = {.kind = SKEP_MODEL_MLP, .layers = 4, .width = width};
	struct skep_plan plan = {.workers = 2, .stages = 2, .samples = 1, .microbatches = 2, .in_flight = 1};
	plan.first_stage_of = first_stage;
	struct skep_training training = {.model = &model, .plan = &plan, .samples = 1};
	struct skep_stage plain, sliced;
	plan.pipeline = SKEP_PIPELINE_1F1B;
	assert_true(skep_stage_init(&training, 0, &plain));
	plan.pipeline = SKEP_PIPELINE_INTERLEAVED;
	plan.model_chunks = 2;
	assert_true(skep_stage_init(&training, 0, &sliced));
	uint64_t bytes = skep_stage_state_bytes(&plain, 0, 1);
	assert_int_equal(bytes, skep_stage_state_bytes(&sliced, 0, 1));
	void *saved = malloc(bytes);
	assert_non_null(saved);
	skep_stage_save(&plain, 0, 1, saved);
	assert_true(skep_stage_load(&plain, 1, 0, 1, saved, bytes));
	assert_false(skep_stage_load(&sliced, 1, 0, 1, saved, bytes));
	free(saved);
	skep_stage_finish(&plain);
	skep_stage_finish(&sliced);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_makespan),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_learns_the_same),
		cmocka_unit_test(test_a_worker_keeps_to_its_list),
		cmocka_unit_test(test_a_worker_helps_behind_its_list),
		cmocka_unit_test(test_a_step_for_each_vstage),
		cmocka_unit_test(test_who_is_told),
		cmocka_unit_test(test_a_scenario_makes_a_plan),
		cmocka_unit_test(test_what_is_refused),
		cmocka_unit_test(test_state_of_other_vstages_is_refused),
	};
	return cmocka_run_group_tests(tests, enter, leave);
}
