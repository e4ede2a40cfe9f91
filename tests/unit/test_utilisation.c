/* SPDX-License-Identifier: Apache-2.0
 *
 * test_utilisation.c - the picture of utilisation: who computed for which part of the time that it was there.
 */
#include "tests/unit/fresh.h"
#include "tests/unit/plot_call.h"
#include "tests/unit/plot_fixture.h"

#define SECONDS(s) ((skep_time)((s)*1e9))

static void use(const struct skep_recorder *r, uint32_t worker, double alive_s, double compute_s)
{
	r->life(r->context, worker, 0, SECONDS(alive_s));
	r->worker(r->context, &(struct skep_worker_use){.index = worker,
				      .epoch = 1,
				      .stage = (uint16_t)(worker / 2),
				      .alive_ns = SECONDS(alive_s),
				      .compute_ns = SECONDS(compute_s)});
}

/* Two seconds of four workers in two stages. Worker 0 computes in the first second; 1 and 2 step for half a second, of which the
 * compute lane has one half as the sums of the workers say; 3 is there for one second and computes for the second half of it. */
static int64_t record_known(struct skep_store *store, struct synthetic *s)
{
	int64_t run;
	synthetic_init(s, "known", 4, 2);
	assert_true(skep_store_begin(store, &s->scenario, "sim", "cpu", 0, 0, &run, fresh(&error)));
	struct skep_recorder recorder = skep_store_recorder(store), quiet = recorder;
	quiet.op = NULL;
	quiet.life = NULL;
	quiet.worker = NULL;
	synthetic_feed(s, &quiet);
	synthetic_op(s, &recorder, SKEP_OP_FORWARD, SKEP_LANE_COMPUTE, 0, 0, 0, 0, 10);
	synthetic_op(s, &recorder, SKEP_OP_STEP, SKEP_LANE_COMPUTE, 0, 0, 1, 0, 5);
	synthetic_op(s, &recorder, SKEP_OP_STEP, SKEP_LANE_REDUCE, 0, 0, 2, 0, 5);
	synthetic_op(s, &recorder, SKEP_OP_ADD, SKEP_LANE_REDUCE, 0, 0, 2, 10, 9);
	synthetic_op(s, &recorder, SKEP_OP_BACKWARD, SKEP_LANE_COMPUTE, 0, 0, 3, 5, 5);
	use(&recorder, 0, 2, 1);
	use(&recorder, 1, 2, 0.5);
	use(&recorder, 2, 2, 0);
	use(&recorder, 3, 1, 0.5);
	struct skep_summary summary = {
		.world = "sim", .final_loss = NAN, .ok = true, .time_s = 2, .utilisation = 2.0 / 7};
	assert_true(skep_store_end(store, &summary, fresh(&error)));
	return run;
}

/* What the map has at a time in a row; rows are the workers by stage. */
static double cell(const char *text, double at_s, uint32_t row)
{
	double nearest = INFINITY, found = NAN;
	const char *line = strstr(text, "$map1 << END\n");
	assert_non_null(line);
	for (line = strchr(line, '\n') + 1; strncmp(line, "END", 3) != 0; line = strchr(line, '\n') + 1) {
		double x, percent;
		unsigned y;
		char number[32];
		assert_int_equal(sscanf(line, "%lf %u %31s", &x, &y, number), 3);
		percent = strtod(number, NULL);
		if (y == row && fabs(x - at_s) < nearest) {
			nearest = fabs(x - at_s);
			found = percent;
		}
	}
	return found;
}

/* Mean over the points of a line. */
static double line_mean(const char *text, uint32_t which)
{
	double sum = 0;
	uint32_t count = 0, block = 0;
	const char *line = strstr(text, "$lines << END\n");
	assert_non_null(line);
	for (line = strchr(line, '\n') + 1; strncmp(line, "END", 3) != 0; line = strchr(line, '\n') + 1) {
		double x, percent;
		if (line[0] == '\n') {
			block += line[1] == '\n';
			continue;
		}
		assert_int_equal(sscanf(line, "%lf %lf", &x, &percent), 2);
		if (block != which)
			continue;
		sum += percent;
		count++;
	}
	assert_true(count > 50);
	return sum / count;
}

static void test_shares(void **state)
{
	(void)state;
	struct synthetic s;
	struct skep_store *store = open_store();
	record_known(store, &s);
	play_gnuplot();
	const char *text = script_of(store, "utilisation");
	assert_non_null(strstr(text, "known: utilisation, compute time over time alive"));
	assert_non_null(strstr(text, "run 1, simulated: 28.6 % of the time that its 4 workers were alive"));
	assert_non_null(strstr(text, "set xrange [0:2]"));
	const struct {
		double at_s;
		uint32_t row;
		double percent;
	} known[] = {{0.2, 0, 100}, {0.9, 0, 100}, {1.5, 0, 0}, {0.2, 1, 50}, {0.8, 1, 0}, {0.2, 2, 50}, {1.5, 2, 0},
		{0.2, 3, 0}, {0.8, 3, 100}};
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		assert_true(fabs(cell(text, known[i].at_s, known[i].row) - known[i].percent) < 0.1);
	assert_true(isnan(cell(text, 1.5, 3))); /* not there */
	/* all, then the stages; means over time: half a second of 1 or 2 at work of 4, and so on */
	assert_true(fabs(line_mean(text, 1) - (25 + 6.25)) < 1);
	assert_non_null(strstr(text, "Title[1] = 'all workers'"));
	assert_non_null(strstr(text, "Title[3] = 'stage 1'"));
	assert_null(strstr(text, "Title[4]"));
	skep_store_close(store);
	synthetic_finish(&s);
}

static void test_several_runs(void **state)
{
	(void)state;
	struct synthetic s, other;
	struct skep_store *store = open_store();
	int64_t run[5] = {record_known(store, &s)};
	synthetic_init(&other, "larger", 90, 3);
	run[1] = record(store, &other, "real");
	play_gnuplot();
	if (!plot_rounds(store, "utilisation", run, 2, "script.png", NULL, fresh(&error)))
		fail_msg("%s", error.message);
	const char *text = read_script("script.png");
	assert_non_null(strstr(text, "$map2 << END\n"));
	assert_non_null(strstr(text, "run 2, real, cpu, paced, shaped, larger"));
	assert_null(strstr(text, "Title[3]"));
	for (int i = 2; i < 5; i++)
		run[i] = run[0];
	assert_false(plot_rounds(store, "utilisation", run, 5, "none.png", NULL, fresh(&error)));
	assert_string_equal(error.message, "at most 4 runs fit into one picture of utilisation, not 5");
	skep_store_close(store);
	synthetic_finish(&s);
	synthetic_finish(&other);
}

static void test_refused(void **state)
{
	(void)state;
	struct synthetic s;
	int64_t run;
	struct skep_store *store = open_store();
	play_gnuplot();
	assert_false(plot_rounds(store, "utilisation", NULL, 0, "none.png", NULL, fresh(&error)));
	assert_non_null(strstr(error.message, "the database holds no run that was recorded to its end"));
	synthetic_init(&s, "cut", 4, 2);
	assert_true(skep_store_begin(store, &s.scenario, "sim", "cpu", 0, 0, &run, fresh(&error)));
	struct skep_recorder recorder = skep_store_recorder(store);
	synthetic_round(&s, &recorder, 0, true);
	assert_false(plot_rounds(store, "utilisation", &run, 1, "none.png", NULL, fresh(&error)));
	assert_string_equal(
		error.message, "run 1 was not recorded to its end, so nothing shows how busy its workers were");
	assert_false(plot_rounds(store, "utilisation", NULL, 0, "none.png", NULL, fresh(&error)));
	run = 77;
	assert_false(plot_rounds(store, "utilisation", &run, 1, "none.png", NULL, fresh(&error)));
	assert_string_equal(
		error.message, "there is no run 77 in the database; `skep runs list` shows which there are");
	assert_int_not_equal(access("none.png", F_OK), 0);
	skep_store_close(store);
	synthetic_finish(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_shares), TEST(test_several_runs), TEST(test_refused)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
