/* SPDX-License-Identifier: Apache-2.0
 *
 * test_plot_sweep.c - the picture of a sweep: which key is the axis, which lines there are, and when a scale is logarithmic.
 */
#include "tests/unit/fresh.h"
#include "tests/unit/plot_call.h"
#include "tests/unit/plot_fixture.h"

#include "analysis/store/store_sweep.h"

static void put(struct skep_store *store, uint64_t identity, double throughput)
{
	struct synthetic s;
	int64_t run;
	void *image;
	size_t bytes;
	synthetic_init(&s, "synthetic", 4, 2);
	struct skep_store *memory = skep_store_open_memory(fresh(&error));
	assert_non_null(memory);
	assert_true(skep_store_begin(memory, &s.scenario, "sim", "cpu", false, false, &run, fresh(&error)));
	struct skep_summary summary = {.world = "sim",
		.throughput_samples_per_s = throughput,
		.utilisation = 0.25,
		.time_s = 100,
		.passes_s = 0.5,
		.reduction_s = 0.125,
		.final_loss = NAN,
		.final_validation_loss = 3.5,
		.time_to_target_s = 50,
		.cost_to_target_usd = 2,
		.cost_usd = 4,
		.ok = true};
	assert_true(skep_store_end(memory, &summary, fresh(&error)));
	assert_true(skep_sweep_image(memory, &image, &bytes, fresh(&error)));
	assert_int_equal(skep_sweep_put(store, identity, image, bytes, &run, fresh(&error)), SKEP_SWEEP_PUT_DONE);
	skep_sweep_image_free(image);
	skep_store_close(memory);
	synthetic_finish(&s);
}

/* Combination i of these keys has a throughput of first * factor^i. */
static void sweep(const char *const *key, uint32_t keys, double first, double factor)
{
	struct skep_vary vary = {0};
	uint64_t seed[64], identity[64];
	int64_t run[64], id;
	struct skep_store *store = open_store();
	for (uint32_t i = 0; i < keys; i++)
		assert_true(skep_vary_add(&vary, key[i], fresh(&error)));
	assert_true(skep_vary_add_seeds(&vary, "1,2", fresh(&error)));
	uint32_t combinations = skep_vary_combinations(&vary);
	assert_true(combinations <= 64);
	for (uint32_t i = 0; i < combinations; i++) {
		seed[i] = 1 + i % 2;
		identity[i] = i + 1;
	}
	const struct skep_sweep_words words = {"synthetic", "synthetic.yaml", &vary, seed, identity};
	assert_true(skep_sweep_begin(store, &words, &id, run, fresh(&error)));
	for (uint32_t i = 0; i < combinations; i++)
		put(store, identity[i], first * pow(factor, i / 2) + (i % 2 ? 1 : -1));
	skep_vary_finish(&vary);
	skep_store_close(store);
}

static const char *draw(const char *metric)
{
	struct skep_store *store = open_store();
	play_gnuplot();
	if (!plot_metric(store, "sweep", NULL, 0, "script.png", NULL, metric, fresh(&error)))
		fail_msg("%s", error.message);
	skep_store_close(store);
	return read_script("script.png");
}

static void refuse(const char *metric, const char *expected)
{
	struct skep_store *store = open_store();
	assert_false(plot_metric(store, "sweep", NULL, 0, "a.png", NULL, metric, fresh(&error)));
	if (!strstr(error.message, expected))
		fail_msg("%s", error.message);
	skep_store_close(store);
}

static void expect(const char *script, const char *part)
{
	const char *text = script ? script : "nothing";
	if (!strstr(text, part))
		fail_msg("expected %s in:\n%s", part, text);
}

static void test_quantities_are_the_axis_in_their_order(void **state)
{
	(void)state;
	sweep((const char *const[]){"wiring=uniform,latency", "period=2 min,30 s,60 s"}, 2, 100, 1.1);
	const char *script = draw(NULL);
	expect(script, "set xlabel 'period'\n");
	expect(script, "'2 min' 120, '30 s' 30, '60 s' 60)\n");
	expect(script, "$sweep << END\n30 110 1.41421356\n60 121 1.41421356\n120 100 1.41421356\n\n\n30 ");
	expect(script, "Title[1] = 'wiring uniform: 2 runs a point'\n");
	expect(script, "Title[2] = 'wiring latency: 2 runs a point'\n");
	expect(script, "Style = 'linespoints'\n");
	expect(script, "set yrange [0:*]\n");
	assert_null(strstr(script, "logscale"));
	script = draw("utilisation");
	expect(script, "\n30 25 0\n");
}

static void test_what_spans_more_than_thirty_is_logarithmic(void **state)
{
	(void)state;
	sweep((const char *const[]){"k=1,31"}, 1, 100, 31);
	const char *script = draw(NULL);
	expect(script, "set logscale x\n");
	expect(script, "set logscale y\n");
}

static void test_labels_do_not_touch(void **state)
{
	(void)state;
	sweep((const char *const[]){"k=0 ms,1 ms,50 ms,100 ms"}, 1, 100, 1);
	expect(draw(NULL), "set xtics ('0 ms' 0, '' 0.001, '50 ms' 0.05, '100 ms' 0.1)\n");
}

static void test_words_stand_side_by_side(void **state)
{
	(void)state;
	sweep((const char *const[]){"k=it's,{a: 1, b: 2},60 s"}, 1, 100, 1);
	const char *script = draw(NULL);
	expect(script, "set xtics ('it\xe2\x80\x99s' 0, '{a: 1, b: 2}' 1, '60 s' 2)\n");
	expect(script, "set xrange [-0.5:2.5]\n");
	expect(script, "Style = 'points'\n");
}

static void test_what_cannot_be_drawn_is_refused(void **state)
{
	(void)state;
	refuse(NULL, "holds no sweep");
	sweep((const char *const[]){"k=1,2", "l=a,b,c,d,e,f,g,h,i"}, 2, 100, 1);
	refuse(NULL, "more than 8 lines");
	refuse("speed", "--metric speed: expected throughput_samples_per_s, time_s");
}

static void test_each_figure_has_a_label_and_its_values(void **state)
{
	(void)state;
	static const struct {
		const char *metric, *label, *row;
	} all[] = {
		{"throughput_samples_per_s", "throughput (samples per second)", "1 100 1.41421356"},
		{"time_s", "time of the run (s)", "1 100 0"},
		{"time_to_target_s", "time until the target loss (s)", "1 50 0"},
		{"cost_usd", "cost of the run (USD)", "1 4 0"},
		{"utilisation", "utilisation (%)", "1 25 0"},
		{"passes_s", "passes of a round (s)", "1 0.5 0"},
		{"reduction_s", "reduction of a round (s)", "1 0.125 0"},
		{"final_validation_loss", "validation loss at the end", "1 3.5 0"},
		{"cost_to_target_usd", "cost until the target loss (USD)", "1 2 0"},
	};
	sweep((const char *const[]){"k=1,2"}, 1, 100, 1);
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		char part[96];
		const char *script = draw(all[i].metric);
		snprintf(part, sizeof part, "set ylabel '%s'\n", all[i].label);
		expect(script, part);
		snprintf(part, sizeof part, "$sweep << END\n%s\n", all[i].row);
		expect(script, part);
	}
}

static void test_a_figure_that_none_has(void **state)
{
	(void)state;
	sweep((const char *const[]){"k=1,2"}, 1, 100, 1);
	refuse("final_loss", "no run of sweep 1 has a final_loss");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_quantities_are_the_axis_in_their_order),
		TEST(test_what_spans_more_than_thirty_is_logarithmic),
		TEST(test_labels_do_not_touch),
		TEST(test_words_stand_side_by_side),
		TEST(test_what_cannot_be_drawn_is_refused),
		TEST(test_each_figure_has_a_label_and_its_values),
		TEST(test_a_figure_that_none_has),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
