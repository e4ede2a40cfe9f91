/* SPDX-License-Identifier: Apache-2.0
 *
 * test_calibrate_simulated.c - what is made of the messages of whole runs whose links are known: the run is simulated, its
 * messages are what a log would show, and the topology that they are read with is wrong in all latencies and bandwidths. What is
 * told must be true, and enough must be told.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analysis/calibrate/links.h"
#include "base/grow.h"
#include "core/random.h"
#include "folder_fixture.h"
#include "read_with.h"
#include "sim/sim.h"

static char folder[64];

/* ---- a run and its messages -------------------------------------------------------------------------------------- */

struct listener {
	struct skep_samples samples;
	uint64_t *number; /* [samples.transfers] of each message; UINT64_MAX: it has arrived */
	skep_time now;
	double late_s; /* messages are heard of so much later on the average, and one in a hundred ten times as late */
	uint64_t seed;
};

static double uniform(uint64_t *seed)
{
	return (double)(skep_random_next(seed) >> 11) / 9007199254740992.0;
}

static void hear_sent(void *context, const struct skep_message *message, struct skep_buf payload, uint64_t number)
{
	struct listener *l = context;
	(void)payload;
	skep_samples_message(&l->samples, message, l->now, l->now);
	assert_true(skep_grow(&l->number, l->samples.transfers - 1, sizeof *l->number));
	l->number[l->samples.transfers - 1] = number;
}

static void hear_step(void *context, uint32_t index, const struct skep_event *event, uint64_t delivered,
	const struct skep_actions *actions)
{
	struct listener *l = context;
	(void)index, (void)actions;
	l->now = event->now;
	for (size_t i = l->samples.transfers; event->kind == SKEP_EVENT_MESSAGE && i-- > 0;) {
		if (l->number[i] != delivered)
			continue;
		double often = -log(1 - uniform(&l->seed)), rare = skep_random_next(&l->seed) % 100 == 0 ? 10 : 1;
		l->samples.transfer[i].received_s = 1e-9 * (double)event->now + l->late_s * rare * often;
		l->number[i] = UINT64_MAX;
		return;
	}
}

static void hear_present(void *context, skep_time now, uint32_t worker, bool begins)
{
	(void)context, (void)now, (void)worker, (void)begins;
}

static void hear_asked(void *context, uint32_t worker, const struct skep_op *op)
{
	(void)context, (void)worker, (void)op;
}

/* Those that are still under way at the end are no samples: a log has none of them. */
static void leave_out_lost(struct listener *l)
{
	size_t kept = 0;
	for (size_t i = 0; i < l->samples.transfers; i++)
		if (l->number[i] == UINT64_MAX && l->samples.transfer[i].from != l->samples.transfer[i].to)
			l->samples.transfer[kept++] = l->samples.transfer[i];
	l->samples.transfers = kept;
}

static void simulate(const char *text, double late_s, struct listener *ret)
{
	*ret = (struct listener){.late_s = late_s, .seed = 5};
	const struct skep_sim_watch watch = {ret, hear_present, hear_step, hear_sent, hear_asked};
	const struct skep_sim_options options = {.threads = 1, .watch = &watch};
	const struct skep_recorder recorder = {0};
	struct skep_sim_result result;
	struct skep_scenario scenario;
	folder_write("s.yaml", text);
	read_with(&scenario, "s.yaml", NULL, 0);
	assert_true(skep_sim_run_with(&scenario, &options, &recorder, &result));
	assert_int_equal(result.outcome, SKEP_DONE);
	leave_out_lost(ret);
	skep_scenario_finish(&scenario);
}

/* ---- what is told of it ------------------------------------------------------------------------------------------ */

struct told {
	uint32_t latencies, bandwidths; /* told, of links that tensors went over */
	uint32_t wrong;
};

/* Within its interval, or so near that a prediction is the same. What hosts are late by is in latencies. */
static bool holds(const struct skep_figure *f, double truth, double late)
{
	const struct skep_ranked *r = &f->after;
	bool inside = r->low - 1.5 * late <= truth && truth <= r->high;
	return inside || (r->value > 0.97 * truth && r->value < 1.03 * truth + 1.5 * late);
}

static void judge(const struct skep_topology *t, const struct skep_link_figures *link, double late_s, struct told *ret)
{
	const struct skep_pair *pair = &t->pair[link->from * t->places + link->to];
	double Bps = link->shared ? pair->shared_Bps : pair->capacity_Bps;
	bool right = true;
	if (link->latency.after.samples > 0)
		right = holds(&link->latency, pair->latency_s, late_s);
	if (link->bandwidth.after.samples > 0)
		right = right && holds(&link->bandwidth, Bps, 0);
	ret->latencies += link->latency.after.samples > 0;
	ret->bandwidths += link->bandwidth.after.samples > 0;
	ret->wrong += !right;
	if (!right)
		print_message(
			"%u -> %u: %zu messages; latency %.4g s is %.4g, %.4g to %.4g of %u (%s); bandwidth %.4g B/s is "
			"%.4g, %.4g to %.4g of %u (%s)\n",
			link->from, link->to, link->messages, pair->latency_s, link->latency.after.value,
			link->latency.after.low, link->latency.after.high, link->latency.after.samples,
			link->latency.kept ? link->latency.kept : "told", Bps, link->bandwidth.after.value,
			link->bandwidth.after.low, link->bandwidth.after.high, link->bandwidth.after.samples,
			link->bandwidth.kept ? link->bandwidth.kept : "told");
}

/* The topology that is read with the run: all links of it are said to be `latency` and `bandwidth` times what they are. */
static void mistake(struct skep_topology *t, double latency, double bandwidth)
{
	for (uint32_t i = 0; i < t->places * t->places; i++) {
		t->pair[i].latency_s *= latency;
		t->pair[i].capacity_Bps *= bandwidth;
		t->pair[i].shared_Bps *= bandwidth;
	}
}

static struct told calibrate(struct listener *l, double latency, double bandwidth)
{
	struct skep_scenario truth, wrong;
	struct told told = {0};
	read_with(&truth, "s.yaml", NULL, 0);
	read_with(&wrong, "s.yaml", NULL, 0);
	mistake(&wrong.topology, latency, bandwidth);
	uint32_t pairs = truth.topology.places * truth.topology.places;
	struct skep_link_figures *link = calloc(pairs, sizeof *link);
	assert_true(link && skep_links_fit(&l->samples, &wrong.topology, 0, link));
	for (uint32_t i = 0; i < pairs; i++)
		if (link[i].messages > 0)
			judge(&truth.topology, &link[i], l->late_s, &told);
	free(link);
	skep_scenario_finish(&truth);
	skep_scenario_finish(&wrong);
	return told;
}

/* So many figures must be told where hosts are hardly late; none may be wrong, however late they are. */
static void check_run(const char *text, uint32_t latencies, uint32_t bandwidths)
{
	static const double mistakes[][2] = {{1, 1}, {2, 2}, {0.5, 0.5}, {2, 0.5}, {0.5, 2}, {0.3, 3}, {3, 0.3}};
	static const double late_s[] = {0, 0.0001, 0.004};
	for (size_t l = 0; l < sizeof late_s / sizeof late_s[0]; l++) {
		struct listener listener;
		simulate(text, late_s[l], &listener);
		for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
			struct told told = calibrate(&listener, mistakes[i][0], mistakes[i][1]);
			assert_int_equal(told.wrong, 0);
			if (late_s[l] <= 0.0001) {
				assert_in_range(told.latencies, latencies, UINT32_MAX);
				if (bandwidths > 0)
					assert_in_range(told.bandwidths, bandwidths, UINT32_MAX);
				else /* messages too short for their lines */
					assert_int_equal(told.bandwidths, 0);
			}
		}
		skep_samples_finish(&listener.samples);
		free(listener.number);
	}
}

/* ---- shapes of runs ---------------------------------------------------------------------------------------------- */

#define THREE_PLACES(ab, ac, bc)                                                                                       \
	"name: three\nsource: assumed for this test\ndirectory: home\nsites:\n  home: {machines: []}\n"                \
	"  a: {machines: [{gpu: g}]}\n  b: {machines: [{gpu: g}]}\n  c: {machines: [{gpu: g}]}\nlinks:\n"              \
	"  - {between: [a, b], bandwidth: " ab " Mbit/s, latency: 30 ms}\n"                                            \
	"  - {between: [a, c], bandwidth: " ac " Mbit/s, latency: 45 ms}\n"                                            \
	"  - {between: [b, c], bandwidth: " bc " Mbit/s, latency: 75 ms}\n"                                            \
	"fallback: {bandwidth: 20 Mbit/s, latency: 40 ms}\n"
#define TWO_PLACES(more)                                                                                               \
	"name: two\nsource: assumed for this test\ndirectory: a\nsites:\n"                                             \
	"  a: {machines: [{count: 3, gpu: g}], inside: {bandwidth: 1 Gbit/s, latency: 1 ms}}\n"                        \
	"  b: {machines: [{count: 3, gpu: g}], inside: {bandwidth: 1 Gbit/s, latency: 1 ms}}\nlinks:\n"                \
	"  - {between: [a, b], bandwidth: 40 Mbit/s, latency: 20 ms, shared: true" more "}\n"
#define SCENARIO(stages, schedule, sync, steps)                                                                        \
	"name: s\nseed: 1\nmodel: {file: m.yaml, stages: " stages "}\ncluster: {topology: t.yaml, allocation: "        \
	"{method: strided}, compute_scale: 1000}\nschedule: {" schedule                                                \
	", global_batch: 384, microbatch: 16}\nsync: {" sync                                                           \
	"}\ntrain: {arithmetic: none, optimizer: {name: sgd}, until: {steps: " steps "}}\n"

static void ring_of_three_places(void **state)
{
	(void)state;
	folder_write("t.yaml", THREE_PLACES("100", "50", "30"));
	check_run(SCENARIO("1", "pipeline: swarm", "method: diloco, every: 4, collective: ring", "60"), 9, 3);
}

static void ring_of_each_step(void **state)
{
	(void)state;
	folder_write("t.yaml", THREE_PLACES("100", "50", "30"));
	check_run(SCENARIO("1", "pipeline: swarm", "method: step, collective: ring", "12"), 9, 3);
}

static void pipeline(void **state)
{
	(void)state;
	folder_write("t.yaml", THREE_PLACES("100", "50", "30"));
	check_run(SCENARIO("3", "pipeline: gpipe", "method: step", "8"), 9, 0);
}

static void pipeline_over_thin_lines(void **state)
{
	(void)state;
	folder_write("t.yaml", THREE_PLACES("2", "1.5", "1"));
	check_run(SCENARIO("3", "pipeline: gpipe", "method: step", "8"), 9, 3);
}

static void swarm_over_a_shared_line(void **state)
{
	(void)state;
	folder_write("t.yaml", TWO_PLACES(""));
	check_run(SCENARIO("2", "pipeline: swarm", "method: step, collective: ring", "8"), 4, 4);
}

static void butterfly_over_a_shared_line(void **state)
{
	(void)state;
	folder_write("t.yaml", TWO_PLACES(""));
	check_run(SCENARIO("1", "pipeline: swarm", "method: step, collective: butterfly", "8"), 3, 3);
}

static void several_streams(void **state)
{
	(void)state;
	folder_write("t.yaml", TWO_PLACES(", streams: 4"));
	check_run(SCENARIO("2", "pipeline: swarm", "method: step, collective: ring", "8"), 4, 4);
}

static int enter(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/skep-calibrate-XXXXXX");
	return folder_enter(folder, "inputs: 64, hidden: 512, hidden_layers: 4, outputs: 64");
}

static int leave(void **state)
{
	(void)state;
	return unlink("s.yaml") == 0 ? folder_leave(folder) : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ring_of_three_places),
		cmocka_unit_test(ring_of_each_step),
		cmocka_unit_test(pipeline),
		cmocka_unit_test(pipeline_over_thin_lines),
		cmocka_unit_test(swarm_over_a_shared_line),
		cmocka_unit_test(butterfly_over_a_shared_line),
		cmocka_unit_test(several_streams),
	};
	return cmocka_run_group_tests(tests, enter, leave);
}
