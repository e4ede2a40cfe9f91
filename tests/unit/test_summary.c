/* SPDX-License-Identifier: Apache-2.0
 *
 * test_summary.c - every figure of a result, and how it is printed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cjson/cJSON.h>
#include <cmocka.h>
#include <stdio.h>

#include "analysis/summary/summary.h"
#include "tests/unit/synthetic.h"

#define assert_near(a, b, tolerance) assert_true(fabs((a) - (b)) <= (tolerance))

static struct skep_summary run(const struct synthetic *s, skep_time end_ns, enum skep_outcome outcome)
{
	struct skep_summary summary;
	struct skep_tally *tally = skep_tally_create(&s->scenario, "sim");
	struct skep_recorder recorder = skep_tally_recorder(tally);
	synthetic_feed(s, &recorder);
	skep_tally_finish(tally, end_ns, 4242, 0.5, outcome, &summary);
	skep_tally_destroy(tally);
	return summary;
}

static char *json_of(const struct skep_summary *summary)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	skep_summary_print_json(summary, out);
	fclose(out);
	return text;
}

static void test_figures(void **state)
{
	(void)state;
	struct synthetic s;
	synthetic_init(&s, "figures", 8, 2);
	struct skep_summary r = run(&s, 2000000000, SKEP_DONE);
	assert_string_equal(r.scenario, "figures");
	assert_string_equal(r.world, "sim");
	assert_int_equal(r.seed, 7);
	assert_int_equal(r.steps, 20);
	assert_int_equal(r.samples, 20 * 16 * 4);
	assert_int_equal(r.issued, 20 * 16 * 2);
	assert_int_equal(r.counted, r.issued);
	assert_int_equal(r.lost, 0);
	assert_near(r.time_s, 2.0, 1e-12);
	assert_near(r.throughput_samples_per_s, 640.0, 1e-9);
	assert_near(r.utilisation, 0.5, 1e-12);
	assert_near(r.cost_usd, 8 * 0.36 * 2 / 3600, 1e-12); /* the directory is not paid for */
	assert_int_equal(r.bytes_pipeline, 20 * 8 * 1000);
	assert_int_equal(r.bytes_sync, 210 * 8 * 2000);
	assert_int_equal(r.preemptions + r.joins + r.migrations, 0);
	assert_int_equal(r.events, 4242);
	assert_true(r.ok);
	assert_near(r.final_loss, 40 * pow(0.9, 19) + 0.05, 1e-6);
	assert_true(isnan(r.time_to_target_s)); /* 1.0 is not reached in 20 rounds */
	synthetic_finish(&s);
}

/* The 20 rounds of 64 samples close one after the other; what comes after the last one is no round. */
static void test_a_warm_up_is_not_counted(void **state)
{
	(void)state;
	for (uint32_t warm_up = 0; warm_up <= 20; warm_up += 4) {
		struct synthetic s;
		struct skep_summary r;
		synthetic_init(&s, "warm-up", 8, 2);
		struct skep_tally *tally = skep_tally_create(&s.scenario, "sim");
		const struct skep_recorder recorder = skep_tally_recorder(tally);
		skep_tally_warm_up(tally, warm_up);
		for (uint32_t round = 0; round < 20; round++) { /* the first eight take three times as long */
			double end_s = round < 8 ? 3.0 * (round + 1) : 24 + 1.0 * (round - 7);
			struct skep_note stage = {.kind = SKEP_NOTE_STAGE_COMMITTED, .round = round, .microbatch = 16};
			struct skep_note close = {.kind = SKEP_NOTE_ROUND_CLOSED, .round = round, .microbatch = 16};
			for (stage.stage = 0; stage.stage < 2; stage.stage++)
				recorder.note(recorder.context, 0, (struct skep_peer){8, 1}, &stage);
			recorder.note(recorder.context, (skep_time)(end_s * 1e9), (struct skep_peer){8, 1}, &close);
		}
		skep_tally_finish(tally, 40000000000, 4242, 0.5, SKEP_DONE, &r);
		skep_tally_destroy(tally);
		const bool all = warm_up == 0 || warm_up == 20; /* none, or nothing is left */
		double seconds = all ? 36 : warm_up < 8 ? 36 - 3.0 * warm_up : 20 - warm_up;
		uint32_t rounds = all ? 20 : 20 - warm_up;
		assert_near(r.round_s, seconds / rounds, 1e-9);
		assert_near(r.throughput_samples_per_s, rounds * 64 / (all ? 40 : seconds), 1e-9);
		assert_int_equal(r.samples, 20 * 64);
		synthetic_finish(&s);
	}
}

static void hear(const struct skep_recorder *recorder, enum skep_note_kind kind, uint32_t worker)
{
	struct skep_note note = {.kind = (uint8_t)kind, .peer = {worker, 1}};
	recorder->note(recorder->context, 0, (struct skep_peer){8, 1}, &note);
}

/* A mover that arrives has not joined; one that is lost on its way and comes back has. */
static void test_movers_are_no_joins(void **state)
{
	(void)state;
	struct synthetic s;
	struct skep_summary r;
	synthetic_init(&s, "movers", 8, 2);
	struct skep_tally *tally = skep_tally_create(&s.scenario, "sim");
	struct skep_recorder recorder = skep_tally_recorder(tally);
	hear(&recorder, SKEP_NOTE_JOINED, 3);
	hear(&recorder, SKEP_NOTE_MIGRATED, 3);
	hear(&recorder, SKEP_NOTE_JOINED, 3);
	hear(&recorder, SKEP_NOTE_MIGRATED, 4);
	hear(&recorder, SKEP_NOTE_FENCED, 4);
	hear(&recorder, SKEP_NOTE_JOINED, 4);
	skep_tally_finish(tally, 1, 1, 1, SKEP_DONE, &r);
	assert_int_equal(r.joins, 2);
	assert_int_equal(r.migrations, 2);
	assert_int_equal(r.preemptions, 1);
	skep_tally_destroy(tally);
	synthetic_finish(&s);
}

static void hear_span(const struct skep_recorder *recorder, uint8_t kind, uint32_t round, skep_time end_ns)
{
	struct skep_op_span span = {.kind = kind, .round = round, .begin_ns = end_ns - 5, .end_ns = end_ns};
	recorder->op(recorder->context, &span);
}

/* Told in any order; a round that never closed, one without a reduction, and passes after the reduction do not count. */
static void test_phases(void **state)
{
	(void)state;
	struct synthetic s;
	synthetic_init(&s, "reduction", 4, 2);
	struct skep_summary r = run(&s, 2000000000, SKEP_DONE);
	assert_near(r.reduction_s, 0.1 * (0.92 - 0.71), 1e-7);
	struct skep_tally *tally = skep_tally_create(&s.scenario, "sim");
	struct skep_recorder recorder = skep_tally_recorder(tally);
	hear_span(&recorder, SKEP_OP_ADD_STORE, 0, 90);
	hear_span(&recorder, SKEP_OP_STORE, 0, 70);
	hear_span(&recorder, SKEP_OP_BACKWARD, 0, 50);
	hear_span(&recorder, SKEP_OP_FORWARD, 0, 15); /* begins at 10 */
	hear_span(&recorder, SKEP_OP_STEP, 0, 900);
	hear_span(&recorder, SKEP_OP_PSEUDO_GRAD, 0, 62); /* which is no part of the reduction */
	hear_span(&recorder, SKEP_OP_INNER_STEP, 0, 56);
	hear_span(&recorder, SKEP_OP_BACKWARD, 1, 300);
	hear_span(&recorder, SKEP_OP_ALLREDUCE, 1, 280);
	hear_span(&recorder, SKEP_OP_BACKWARD, 2, 400);
	hear_span(&recorder, SKEP_OP_BACKWARD, 3, 500);
	hear_span(&recorder, SKEP_OP_COPY_GRAD, 3, 900);
	for (uint32_t round = 0; round < 3; round++) {
		struct skep_note note = {.kind = SKEP_NOTE_ROUND_CLOSED, .round = round, .microbatch = 1};
		recorder.note(recorder.context, 1000, (struct skep_peer){4, 1}, &note);
	}
	skep_tally_finish(tally, 1000, 1, 1, SKEP_DONE, &r);
	assert_near(r.reduction_s, (28e-9 + 0) / 2, 1e-15);
	assert_near(r.passes_s, (40e-9 + 5e-9 + 5e-9) / 3, 1e-15);
	skep_tally_destroy(tally);
	tally = skep_tally_create(&s.scenario, "sim");
	skep_tally_finish(tally, 1000, 1, 1, SKEP_DONE, &r);
	assert_true(isnan(r.reduction_s) && isnan(r.passes_s));
	skep_tally_destroy(tally);
	synthetic_finish(&s);
}

static void test_target(void **state)
{
	(void)state;
	struct synthetic s;
	synthetic_init(&s, "target", 4, 2);
	s.scenario.target_loss = 20.3; /* 40 * 0.9^7 = 19.1, closed after 8 periods */
	struct skep_summary r = run(&s, 2000000000, SKEP_DONE);
	assert_near(r.time_to_target_s, 0.8, 1e-9);
	s.scenario.target_loss = NAN;
	r = run(&s, 2000000000, SKEP_DONE);
	assert_true(isnan(r.time_to_target_s));
	synthetic_finish(&s);
}

/* With validations the target is theirs, and what it cost is what was there until then. */
static void test_validation_target(void **state)
{
	(void)state;
	struct synthetic s;
	struct skep_summary r;
	synthetic_init(&s, "judged", 4, 2);
	s.scenario.plan.validation.every = 1;
	s.scenario.target_loss = 2;
	struct skep_tally *tally = skep_tally_create(&s.scenario, "sim");
	struct skep_recorder recorder = skep_tally_recorder(tally);
	static const struct {
		uint64_t at_s;
		uint8_t kind;
		int64_t loss_nano;
		uint32_t microbatches;
	} heard[] = {{1, SKEP_NOTE_LOSS, 1000000000, 0}, {2, SKEP_NOTE_VALIDATED, 2500000000, 4},
		{3, SKEP_NOTE_VALIDATED, 0, 0}, {4, SKEP_NOTE_VALIDATED, 1900000000, 4},
		{5, SKEP_NOTE_VALIDATED, 1500000000, 4}};
	for (size_t i = 0; i < sizeof heard / sizeof *heard; i++) {
		struct skep_note note = {
			.kind = heard[i].kind, .value = heard[i].loss_nano, .microbatch = heard[i].microbatches};
		synthetic_note(&recorder, heard[i].at_s * 1000000000, 4, note);
		if (i == 1) /* one life ends before, the others after */
			recorder.life(recorder.context, 0, 0, 2000000000);
	}
	recorder.life(recorder.context, 1, 3000000000, 6000000000);
	recorder.life(recorder.context, 2, 5000000000, 6000000000);
	skep_tally_finish(tally, 6000000000, 1, 1, SKEP_DONE, &r);
	assert_near(r.final_loss, 1, 1e-9);
	assert_near(r.final_validation_loss, 1.5, 1e-9);
	assert_near(r.time_to_target_s, 4, 1e-9);
	const struct skep_topology *t = &s.scenario.topology;
	assert_near(r.cost_to_target_usd,
		skep_topology_cost_usd(t, 0, 0, 2000000000) + skep_topology_cost_usd(t, 1, 3000000000, 4000000000),
		1e-12);
	assert_true(r.cost_usd > r.cost_to_target_usd && r.cost_to_target_usd > 0);
	skep_tally_destroy(tally);
	synthetic_finish(&s);
}

static void test_losses(void **state)
{
	(void)state;
	struct synthetic s;
	synthetic_init(&s, "lossy", 6, 3);
	s.lost_round = 4;
	struct skep_summary r = run(&s, 2000000000, SKEP_FAILED);
	assert_int_equal(r.issued, 20 * 12 * 3);
	assert_int_equal(r.lost, 6);
	assert_int_equal(r.counted + r.lost, r.issued);
	assert_int_equal(r.samples, (20 * 12 - 6) * 4);
	assert_int_equal(r.preemptions, 1);
	assert_false(r.ok);
	synthetic_finish(&s);
}

static void test_unfinished_round_does_not_count(void **state)
{
	(void)state;
	struct synthetic s;
	struct skep_summary r;
	synthetic_init(&s, "unfinished", 4, 2);
	struct skep_tally *tally = skep_tally_create(&s.scenario, "real");
	struct skep_recorder recorder = skep_tally_recorder(tally);
	synthetic_round(&s, &recorder, 0, true);
	synthetic_round(&s, &recorder, 1, false);
	synthetic_reduce(&s, &recorder, 1, 0); /* one stage of two is done */
	skep_tally_finish(tally, 1, 0, 0, SKEP_FAILED, &r);
	assert_int_equal(r.steps, 1);
	assert_int_equal(r.issued, 8 * 2);
	assert_int_equal(r.counted, 8 * 2);
	skep_tally_destroy(tally);
	synthetic_finish(&s);
}

static void test_unknown_stays_unknown(void **state)
{
	(void)state;
	struct synthetic s;
	struct skep_summary r;
	synthetic_init(&s, "nothing", 4, 2);
	struct skep_tally *tally = skep_tally_create(&s.scenario, "sim");
	skep_tally_finish(tally, 0, 0, 0, SKEP_DONE, &r); /* nothing was heard, no time has passed */
	assert_true(isnan(r.throughput_samples_per_s));
	assert_true(isnan(r.utilisation));
	assert_true(isnan(r.final_loss));
	skep_tally_destroy(tally);
	s.scenario.arithmetic = SKEP_ARITHMETIC_NONE;
	s.scenario.topology.machine[2].price_usd_per_h = 0;
	r = run(&s, 1000, SKEP_DONE);
	assert_true(isnan(r.final_loss));
	assert_true(isnan(r.time_to_target_s));
	assert_true(isnan(r.cost_usd));
	char *json = json_of(&r);
	assert_non_null(strstr(json, "\"final_loss\":null,\"final_validation_loss\":null,\"time_to_target_s\":null,"
				     "\"cost_to_target_usd\":null,\"cost_usd\":null"));
	free(json);
	skep_tally_destroy(NULL);
	synthetic_finish(&s);
}

static void test_diverged(void **state)
{
	(void)state;
	struct synthetic s;
	struct skep_summary r;
	synthetic_init(&s, "diverged", 4, 2);
	struct skep_tally *tally = skep_tally_create(&s.scenario, "sim");
	struct skep_recorder recorder = skep_tally_recorder(tally);
	synthetic_note(&recorder, 1, 4, (struct skep_note){.kind = SKEP_NOTE_LOSS, .value = INT64_MAX});
	skep_tally_finish(tally, 1, 0, 0, SKEP_DONE, &r);
	assert_true(isinf(r.final_loss));
	char *json = json_of(&r);
	assert_non_null(strstr(json, "\"final_loss\":null"));
	free(json);
	skep_tally_destroy(tally);
	synthetic_finish(&s);
}

static uint64_t digest_of(const struct synthetic *s, const uint32_t *order, uint64_t change)
{
	struct skep_summary r;
	struct skep_tally *tally = skep_tally_create(&s->scenario, "sim");
	struct skep_recorder recorder = skep_tally_recorder(tally);
	for (uint32_t i = 0; i < 5; i++)
		recorder.worker(recorder.context, &(struct skep_worker_use){.index = order[i],
							  .digest = 1000 + order[i] + (order[i] == 3 ? change : 0)});
	skep_tally_finish(tally, 1, 0, 0, SKEP_DONE, &r);
	skep_tally_destroy(tally);
	return r.digest;
}

static void test_digest(void **state)
{
	(void)state;
	struct synthetic s;
	synthetic_init(&s, "digest", 4, 2);
	const uint32_t up[] = {0, 1, 2, 3, 4}, mixed[] = {4, 2, 0, 3, 1};
	assert_int_equal(digest_of(&s, up, 0), digest_of(&s, mixed, 0));
	uint64_t base = digest_of(&s, up, 0);
	for (int bit = 0; bit < 64; bit++) {
		uint64_t other = digest_of(&s, up, UINT64_C(1) << bit);
		assert_true(other != base);
	}
	synthetic_finish(&s);
}

static void test_json_keys(void **state)
{
	(void)state;
	static const char *const key[] = {"run_id", "scenario", "world", "seed", "digest", "number_format", "steps",
		"ended_by", "samples", "tokens", "time_s", "throughput_samples_per_s", "throughput_tokens_per_s",
		"utilisation", "passes_s", "reduction_s", "global_staleness", "local_staleness", "bytes_pipeline",
		"bytes_sync", "issued", "counted", "lost", "preemptions", "joins", "migrations", "scalings", "returned",
		"checkpoints", "restarts", "outages", "rounds_again", "rounds_unrecorded", "damaged",
		"expert_imbalance", "expert_dropped", "expert_balance", "final_loss", "final_validation_loss",
		"time_to_target_s", "cost_to_target_usd", "cost_usd", "egress_usd", "events", "wall_s", "extrapolated",
		"failure", "candidate"};
	struct skep_summary r = {.run_id = 3,
		.scenario = "say \"hi\"\n",
		.world = "real",
		.seed = UINT64_MAX,
		.digest = 0x0123456789abcdefu,
		.bytes_sync = 9007199254740993u,
		.time_s = 0.1,
		.cost_usd = NAN};
	char *json = json_of(&r);
	assert_int_equal(strcspn(json, "\n"), strlen(json) - 1); /* one line */
	assert_non_null(strstr(json, "\"seed\":18446744073709551615,"));
	assert_non_null(strstr(json, "\"bytes_sync\":9007199254740993,"));
	assert_non_null(strstr(json, "\"digest\":\"0123456789abcdef\""));
	cJSON *object = cJSON_Parse(json);
	assert_non_null(object);
	assert_int_equal(cJSON_GetArraySize(object), sizeof key / sizeof key[0]);
	for (size_t i = 0; i < sizeof key / sizeof key[0]; i++)
		assert_string_equal(cJSON_GetArrayItem(object, (int)i)->string, key[i]);
	assert_string_equal(cJSON_GetObjectItem(object, "scenario")->valuestring, r.scenario);
	cJSON_Delete(object);
	free(json);
}

static void test_text(void **state)
{
	(void)state;
	struct synthetic s;
	char *text = NULL;
	size_t size = 0;
	synthetic_init(&s, "readable", 8, 2);
	struct skep_summary r = run(&s, 2000000000, SKEP_FAILED);
	FILE *out = open_memstream(&text, &size);
	skep_summary_print_text(&r, out);
	fclose(out);
	assert_non_null(strstr(text, "FAILED"));
	assert_non_null(strstr(text, "640 samples/s"));
	assert_non_null(strstr(text, "50.0 %"));
	assert_non_null(strstr(text, "3.36 MB"));
	assert_null(strstr(text, "nan"));
	assert_non_null(strstr(text, "simulated     in 0.500 s: 4242 events\n"));
	assert_non_null(strstr(text, "0 lost, 0 joined"));
	assert_null(strstr(text, "hint"));
	free(text);
	r.target_loss = 0.1;
	out = open_memstream(&text, &size);
	skep_summary_print_text(&r, out);
	fclose(out);
	assert_non_null(strstr(text, "  target        loss 0.1 not reached\n"));
	free(text);
	r.time_to_target_s = 1.268;
	r.cost_to_target_usd = 0.0321;
	out = open_memstream(&text, &size);
	skep_summary_print_text(&r, out);
	fclose(out);
	assert_non_null(strstr(text, "  target after  1.268 s, 0.0321 USD\n"));
	free(text);
	synthetic_finish(&s);
}

static void test_text_of_fenced(void **state)
{
	(void)state;
	struct synthetic s;
	char *text = NULL;
	size_t size = 0;
	synthetic_init(&s, "fenced", 6, 3);
	s.lost_round = 4;
	struct skep_summary r = run(&s, 2000000000, SKEP_DONE);
	r.world = "real";
	FILE *out = open_memstream(&text, &size);
	skep_summary_print_text(&r, out);
	fclose(out);
	assert_non_null(strstr(text, "1 lost (1 fenced), 0 joined"));
	assert_non_null(strstr(text, "hint: workers were fenced though nothing in this scenario kills them: "
				     "raise directory.timeout\n"));
	assert_non_null(strstr(text, "handled       4242 events\n"));
	assert_null(strstr(text, "simulated"));
	free(text);
	synthetic_finish(&s);
}

/* Of five paced operations two are late: by less than a twentieth, or by what a wake-up takes, is in time. */
static void test_pace(void **state)
{
	(void)state;
	static const skep_time took_ns[][2] = {{10000000, 10000000}, {10000000, 30000000}, {10000000, 10400000},
		{100000, 250000}, {10000000, 20000000}, {0, 10000000}};
	struct synthetic s;
	struct skep_summary r;
	char *text = NULL;
	size_t size = 0;
	synthetic_init(&s, "paced", 2, 2);
	struct skep_tally *tally = skep_tally_create(&s.scenario, "real");
	struct skep_recorder recorder = skep_tally_recorder(tally);
	skep_tally_finish(tally, 1, 1, 1, SKEP_DONE, &r);
	assert_true(isnan(r.late_share) && isnan(r.late_s));
	for (size_t i = 0; i < sizeof took_ns / sizeof took_ns[0]; i++) {
		struct skep_op_span span = {.kind = SKEP_OP_STEP, .begin_ns = 7, .end_ns = 7 + took_ns[i][1]};
		span.paced_ns = took_ns[i][0];
		recorder.op(recorder.context, &span);
	}
	skep_tally_finish(tally, 1, 1, 1, SKEP_DONE, &r);
	assert_true(fabs(r.late_share - 0.4) < 1e-12);
	assert_true(fabs(r.late_s - 0.015) < 1e-12);
	FILE *out = open_memstream(&text, &size);
	skep_summary_print_text(&r, out);
	fclose(out);
	assert_non_null(strstr(text, "hint: 40 % of the operations took longer than their profile says, by 15.000 ms "
				     "in the mean: this machine is too slow or too busy for this run\n"));
	free(text);
	skep_tally_destroy(tally);
	synthetic_finish(&s);
}

/* A worker that died was fenced for that; one more, and the timeout may be too short. */
static void test_deaths_are_no_hint(void **state)
{
	(void)state;
	struct synthetic s;
	struct skep_summary r;
	synthetic_init(&s, "died", 2, 2);
	struct skep_tally *tally = skep_tally_create(&s.scenario, "real");
	struct skep_recorder recorder = skep_tally_recorder(tally);
	recorder.died(recorder.context, 1);
	hear(&recorder, SKEP_NOTE_FENCED, 1);
	skep_tally_finish(tally, 1, 1, 1, SKEP_DONE, &r);
	assert_false(r.unprovoked);
	hear(&recorder, SKEP_NOTE_FENCED, 0);
	skep_tally_finish(tally, 1, 1, 1, SKEP_DONE, &r);
	assert_true(r.unprovoked);
	skep_tally_destroy(tally);
	synthetic_finish(&s);
}

/* ---- two recorders at once -------------------------------------------------------------------------------------- */

struct trace {
	char calls[64];
};

static void add_call(struct trace *trace, char call)
{
	trace->calls[strlen(trace->calls)] = call;
}

static void trace_note(void *context, skep_time now, struct skep_peer who, const struct skep_note *note)
{
	(void)now, (void)who, (void)note;
	add_call(context, 'n');
}

static void trace_op(void *context, const struct skep_op_span *span)
{
	(void)span;
	add_call(context, 'o');
}

static void trace_link(void *context, const struct skep_link_use *use)
{
	(void)use;
	add_call(context, 'l');
}

static void trace_worker(void *context, const struct skep_worker_use *use)
{
	(void)use;
	add_call(context, 'w');
}

static void trace_died(void *context, uint32_t machine)
{
	(void)machine;
	add_call(context, 'd');
}

static void trace_progress(void *context, skep_time now, uint32_t done, uint32_t total)
{
	(void)now, (void)done, (void)total;
	add_call(context, 'p');
}

static void trace_sent(void *context, const struct skep_sent *sent)
{
	(void)sent;
	add_call(context, 's');
}

static void call_all(const struct skep_recorder *r)
{
	r->note(r->context, 1, (struct skep_peer){0, 1}, &(struct skep_note){.kind = SKEP_NOTE_LOSS});
	r->op(r->context, &(struct skep_op_span){0});
	r->link(r->context, &(struct skep_link_use){0});
	r->worker(r->context, &(struct skep_worker_use){0});
	r->died(r->context, 0);
	r->progress(r->context, 1, 1, 2);
	r->sent(r->context, &(struct skep_sent){0});
}

static void test_both(void **state)
{
	(void)state;
	struct trace trace[2] = {0};
	struct skep_recorder_pair pair = {
		.first = {.context = &trace[0],
			.note = trace_note,
			.op = trace_op,
			.link = trace_link,
			.worker = trace_worker,
			.died = trace_died,
			.progress = trace_progress,
			.sent = trace_sent},
		.second = {.context = &trace[1], .note = trace_note, .link = trace_link},
	};
	struct skep_recorder both = skep_recorder_both(&pair);
	call_all(&both);
	assert_string_equal(trace[0].calls, "nolwdps");
	assert_string_equal(trace[1].calls, "nl");
	pair = (struct skep_recorder_pair){0}; /* no recorder listens */
	both = skep_recorder_both(&pair);
	call_all(&both);
	assert_string_equal(trace[0].calls, "nolwdps");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_figures),
		cmocka_unit_test(test_a_warm_up_is_not_counted),
		cmocka_unit_test(test_movers_are_no_joins),
		cmocka_unit_test(test_phases),
		cmocka_unit_test(test_target),
		cmocka_unit_test(test_validation_target),
		cmocka_unit_test(test_losses),
		cmocka_unit_test(test_unfinished_round_does_not_count),
		cmocka_unit_test(test_unknown_stays_unknown),
		cmocka_unit_test(test_diverged),
		cmocka_unit_test(test_digest),
		cmocka_unit_test(test_json_keys),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_text_of_fenced),
		cmocka_unit_test(test_deaths_are_no_hint),
		cmocka_unit_test(test_pace),
		cmocka_unit_test(test_both),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
