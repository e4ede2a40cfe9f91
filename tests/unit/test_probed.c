/* SPDX-License-Identifier: Apache-2.0
 *
 * test_probed.c - what was measured, as files that are read back: both forms, kinds of devices, what is filled and left out, and
 * what is not written.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "topologies/import/probed.h"
#include "topologies/read/path.h"
#include "topologies/read/topology.h"

static int enter(void **state)
{
	static char folder[64];
	snprintf(folder, sizeof folder, "/tmp/skep-probed-XXXXXX");
	*state = folder;
	return mkdtemp(folder) == NULL || chdir(folder) != 0 ? -1 : 0;
}

static int leave(void **state)
{
	char command[128];
	snprintf(command, sizeof command, "rm -rf '%s'", (char *)*state);
	return chdir("/") || system(command);
}

/* As many ranks as places have; every way i -> j has (10 + i) ms, (1 + j) Mbit/s x 8. */
static struct skep_probed measured(uint32_t places, const uint32_t *ranks_at)
{
	struct skep_probed p;
	uint32_t ranks = 0, next = 0;
	for (uint32_t i = 0; i < places; i++)
		ranks += ranks_at[i];
	assert_true(skep_probed_create(&p, ranks, places));
	p.hosts = places;
	snprintf(p.date, sizeof p.date, "2026-05-01 10:00 UTC");
	for (uint32_t i = 0; i < places; i++) {
		snprintf(p.place_name[i], sizeof *p.place_name, "host%u", i);
		for (uint32_t k = 0; k < ranks_at[i]; k++, next++) {
			p.place_of[next] = p.host_of[next] = i;
			p.device[next] = (struct skep_probed_device){.name = "a processor",
				.cores = 4,
				.memory_bytes = 8e9,
				.flops = 50e9 + 1e9 * k,
				.memory_Bps = 10e9,
				.overhead_s = 1e-6,
				.alone_flops = k ? NAN : 80e9,
				.products = 2,
				.product = {{64, 64, 8, 1e-6}, {64, 64, 64, 4e-6}}};
		}
		for (uint32_t j = 0; j < places; j++)
			if (i != j || ranks_at[i] > 1)
				*skep_probed_link(&p, i, j) = (struct skep_probed_link){.latency_s = 1e-3 * (10 + i),
					.least_s = 9e-3,
					.deviation_s = i == 0 ? 2e-3 : 0,
					.Bps = 1e6 * (1 + j),
					.latency_spread = 0.01,
					.Bps_spread = 0.0123,
					.pings = 100,
					.transfers = 24,
					.bytes = 1 << 20};
	}
	return p;
}

static struct skep_topology written(const struct skep_probed *p, const char *path)
{
	struct skep_topology t = {0};
	struct skep_diag diag = {0};
	char text[1024] = "";
	bool good = skep_probed_writable(path, &diag) && skep_probed_write(p, path, &diag) &&
	            skep_topology_read(path, &t, &diag);
	if (!good)
		skep_diag_print(&diag, text, sizeof text);
	assert_string_equal(text, "");
	return t;
}

static char *text_of(const char *path)
{
	char *text;
	size_t size;
	struct skep_diag diag = {0};
	assert_true(skep_file_read(path, 1 << 20, &text, &size, &diag));
	return text;
}

static void assert_near(double a, double b)
{
	if (fabs(a - b) > 1e-3 * fabs(b))
		fail_msg("%g is not %g", a, b);
}

/* Two ranks here, one there: sites; the directory's place has an inside of its own. */
static void test_sites(void **state)
{
	(void)state;
	struct skep_probed p = measured(2, (const uint32_t[]){2, 1});
	struct skep_topology t = written(&p, "two.yaml");
	assert_int_equal(t.machines, 3);
	assert_int_equal(t.places, 2);
	assert_string_equal(t.place_name[1], "host1");
	assert_near(t.pair[1].latency_s, 10e-3);
	assert_near(t.pair[1].capacity_Bps, 2e6);
	assert_near(t.pair[1].shared_Bps, 2e6);
	assert_near(t.pair[2].latency_s, 11e-3);
	assert_near(t.pair[0].capacity_Bps, 1e6);
	assert_true(isinf(t.pair[0].shared_Bps));
	assert_non_null(skep_path_link_profile(&t, 0, 1)); /* its jitter, of 2 ms */
	assert_int_equal(t.gpus, 1);
	assert_near(t.gpu[0].flops, 50e9); /* the median of 50, 51 and 50 */
	assert_near(t.gpu[0].memory_bytes, 8e9);
	assert_non_null(strcasestr(
		t.source, "measured by skep probe over MPI on 2026-05-01 10:00 UTC, 3 ranks at host0, host1"));
	skep_topology_finish(&t);
	char *text = text_of("two.yaml"), *profile = text_of("gpus/two-cpu.yaml");
	assert_non_null(
		strstr(text, "host0 -> host1: 10 ms (9 ms; 2 ms) of 100 round trips, 16 Mbit/s with 1024 KiB (within "
			     "1.3 %, 24 transfers)\n"));
	assert_null(strstr(text, ", uncertain: "));
	assert_non_null(strstr(profile, "one alone had 80 GFLOP/s"));
	free(text);
	free(profile);
	skep_probed_finish(&p);
}

/* The directory is at a place of one rank: what is inside comes from another place, and the file says so. */
static void test_borrowed_inside(void **state)
{
	(void)state;
	struct skep_probed p = measured(2, (const uint32_t[]){1, 2});
	struct skep_topology t = written(&p, "lone.yaml");
	assert_near(t.pair[0].latency_s, 11e-3);
	skep_topology_finish(&t);
	char *text = text_of("lone.yaml");
	assert_non_null(strstr(text, "# One rank: not measured, taken from host1."));
	free(text);
	skep_probed_finish(&p);
}

static void test_matrices(void **state)
{
	(void)state;
	struct skep_probed p = measured(3, (const uint32_t[]){1, 1, 1});
	p.device[2].flops = 90e9; /* another host, another rate: another kind */
	struct skep_topology t = written(&p, "three.yaml");
	assert_int_equal(t.places, 3);
	assert_near(t.pair[3 * 2 + 1].latency_s, 12e-3);
	assert_near(t.pair[3 * 2 + 1].capacity_Bps, 2e6);
	assert_true(isinf(t.pair[1].shared_Bps));
	assert_int_equal(t.gpus, 2);
	assert_near(t.gpu[t.machine[2].gpu].flops, 90e9);
	assert_int_equal(access("three-bandwidth.csv", R_OK), 0);
	assert_int_equal(access("gpus/three-cpu-2.yaml", R_OK), 0);
	skep_topology_finish(&t);
	skep_probed_finish(&p);
}

/* 99 % of the normal law lie within 2.5758 deviations: spreads of 1.23 % and 1 %, with the medians of a matrix. */
static void test_uncertainty(void **state)
{
	(void)state;
	const double rate = log(1.0123) / 2.5758293, time = log(1.01) / 2.5758293;
	struct skep_probed p = measured(2, (const uint32_t[]){2, 1});
	skep_probed_link(&p, 1, 0)->Bps_spread = 0;
	struct skep_topology t = written(&p, "deviate.yaml");
	assert_non_null(t.unsure);
	assert_near(t.unsure[1].bandwidth.deviation, rate);
	assert_near(t.unsure[1].latency.deviation, time);
	assert_near(t.unsure[0].bandwidth.deviation, rate);
	assert_true(t.unsure[2].bandwidth.deviation == 0 && t.unsure[2].latency.deviation > 0);
	assert_near(t.gpu[0].uncertainty, SKEP_GPU_UNCERTAINTY); /* two products say nothing */
	skep_topology_finish(&t);
	skep_probed_finish(&p);
	p = measured(3, (const uint32_t[]){1, 1, 1});
	for (uint32_t i = 0; i < 9; i++)
		p.way[i].Bps_spread = i % 2 ? 0.03 : 0.1; /* of six pairs four have 3 % */
	t = written(&p, "deviate-3.yaml");
	assert_near(t.unsure[1].bandwidth.deviation, log(1.03) / 2.5758293);
	assert_near(t.unsure[5].latency.deviation, time);
	skep_topology_finish(&t);
	for (uint32_t i = 0; i < 9; i++)
		p.way[i].Bps_spread = p.way[i].latency_spread = 0;
	t = written(&p, "deviate-0.yaml");
	assert_null(t.unsure);
	skep_topology_finish(&t);
	skep_probed_finish(&p);
}

/* Ten products, nine of which take 1.2 times what the rates say and one 3 times: the 90 % quantile is ln 1.2 or little more. */
static void test_uncertain_rates(void **state)
{
	(void)state;
	struct skep_probed p = measured(1, (const uint32_t[]){1});
	p.device[0].products = 10;
	for (uint32_t i = 0; i < 10; i++) {
		double flop = 2.0 * 64 * 64 * (8 << i), bytes = 4.0 * (64 * 64 + 2 * 64 * (8 << i));
		p.device[0].product[i] = (struct skep_probed_product){
			64, 64, 8u << i, (i == 3 ? 3 : 1.2) * fmax(flop / 50e9, bytes / 10e9)};
	}
	struct skep_topology t = written(&p, "rates.yaml");
	assert_true(t.gpu[0].uncertainty > 0.999 * log(1.2) / 1.6448536 && t.gpu[0].uncertainty < log(3) / 1.6448536);
	skep_topology_finish(&t);
	char *text = text_of("gpus/rates-cpu.yaml");
	assert_non_null(strstr(text, "# Of 10 products: 90 % took no more than"));
	free(text);
	skep_probed_finish(&p);
}

static char *uncertain_of(const struct skep_probed_link *way)
{
	char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);
	skep_probed_put_uncertain(file, way);
	fclose(file);
	return text;
}

/* What is uncertain is named in the file, also beyond the pairs that have room in its comments. */
static void test_uncertain(void **state)
{
	(void)state;
	uint32_t one[12];
	for (uint32_t i = 0; i < 12; i++)
		one[i] = 1;
	struct skep_probed p = measured(12, one);
	struct skep_probed_link *late = skep_probed_link(&p, 11, 10), *both = skep_probed_link(&p, 0, 1);
	late->latency_spread = SKEP_PROBED_SPREAD_MOST;
	assert_false(skep_probed_uncertain(late));
	late->latency_spread = 0.12;
	both->latency_spread = 0.0501;
	both->Bps_spread = 0.4;
	assert_true(skep_probed_uncertain(late) && skep_probed_uncertain(both));
	struct skep_topology t = written(&p, "unsure.yaml");
	assert_near(t.pair[1].capacity_Bps, 2e6); /* the figure is there all the same */
	skep_topology_finish(&t);
	char *text = text_of("unsure.yaml");
	assert_non_null(
		strstr(text, "(within 40 %, 24 transfers), uncertain: the latency is known within 5.1 %, the bandwidth "
			     "is known within 40 %\n"));
	assert_non_null(
		strstr(text, "host11 -> host10: 21 ms (9 ms; 0 us) of 100 round trips, 88 Mbit/s with 1024 KiB (within "
			     "1.3 %, 24 transfers), uncertain: the latency is known within 12 %\n"));
	assert_null(strstr(text, "host11 -> host9:"));
	free(text);
	both->latency_spread = 0;
	both->falling = true;
	text = uncertain_of(both);
	assert_string_equal(text, "the bandwidth fell with size, within 40 %");
	free(text);
	skep_probed_finish(&p);
}

/* A larger product that was faster than a smaller one was disturbed, or the smaller one: a table would be refused with it. */
static void test_disturbed_rows(void **state)
{
	(void)state;
	struct skep_diag diag = {0};
	struct skep_probed p = measured(2, (const uint32_t[]){1, 1});
	for (uint32_t i = 0; i < 2; i++)
		p.device[i].product[1].seconds = 1e-7;
	struct skep_topology t = written(&p, "odd.yaml");
	struct skep_gpu_table *table = skep_gpu_load(&t.gpu[0], SKEP_TABLE_PRODUCTS, SKEP_TYPE_FP32, &diag);
	assert_non_null(table);
	assert_int_equal(table->rows, 1);
	skep_topology_finish(&t);
	char *text = text_of("gpus/odd-cpu-products.csv");
	assert_non_null(strstr(text, "# Left out: 1 rows"));
	free(text);
	skep_probed_finish(&p);
}

/* Layers of three ranks that share a GPU: medians, for the microbatches that all of them have. */
static void test_layers(void **state)
{
	(void)state;
	struct skep_diag diag = {0};
	struct skep_probed p = measured(1, (const uint32_t[]){3});
	snprintf(p.model.name, sizeof p.model.name, "a-model");
	for (uint32_t i = 0; i < 3; i++) {
		p.device[i].gpu_ranks = 3;
		p.device[i].microbatches = 2 + i;
		for (uint32_t l = 0; l < SKEP_PROBED_LAYERS; l++)
			for (uint32_t b = 0; b < p.device[i].microbatches; b++)
				p.device[i].layer[l][b] =
					(struct skep_probed_layer){{1e-3 * (l + 1) * (b + 1) * (i + 1), 2e-3, 3e-3}};
	}
	for (uint32_t l = 0; l < SKEP_PROBED_LAYERS; l++)
		for (uint32_t b = 0; b < SKEP_PROBED_MICROBATCHES_MAX; b++)
			p.model.bytes[l][b] = 1e6;
	struct skep_topology t = written(&p, "layers.yaml");
	struct skep_gpu_table *table = skep_gpu_load(&t.gpu[0], SKEP_TABLE_LAYERS, SKEP_TYPE_FP32, &diag);
	assert_non_null(table);
	assert_int_equal(table->rows, 4 * 2);
	assert_string_equal(table->model, "a-model");
	for (uint32_t l = 0; l < SKEP_PROBED_LAYERS; l++)
		for (uint32_t b = 0; b < 2; b++) {
			double s[3];
			for (int c = 0; c < 3; c++)
				assert_int_equal(skep_gpu_table_layer(table, (enum skep_layer_kind)l, 1, 1u << b,
							 (enum skep_gpu_column)c, &s[c]),
					SKEP_ANSWER_EXACT);
			assert_near(s[0], 1e-3 * (l + 1) * (b + 1) * 2);
			assert_near(s[1], 2e-3);
			assert_near(s[2], 3e-3);
		}
	skep_topology_finish(&t);
	char *text = text_of("gpus/layers-cpu.yaml");
	assert_non_null(strstr(text, "# 3 ranks share a GPU. While all of them compute, passes take up to 3 times"));
	free(text);
	skep_probed_finish(&p);
}

/* One rank has no link: what stands for it is marked. */
static void test_alone(void **state)
{
	(void)state;
	struct skep_probed p = measured(1, (const uint32_t[]){1});
	struct skep_topology t = written(&p, "alone.yaml");
	assert_int_equal(t.machines, 1);
	skep_topology_finish(&t);
	char *text = text_of("alone.yaml");
	assert_non_null(strstr(text, "# Assumed: one process has no link"));
	assert_null(strstr(text, "Latency is half"));
	free(text);
	skep_probed_finish(&p);
}

static void refused(const char *path, const char *why)
{
	struct skep_diag diag = {0};
	assert_false(skep_probed_writable(path, &diag));
	if (!strstr(diag.message, why))
		fail_msg("%s: %s", path, diag.message);
}

static void test_refused(void **state)
{
	(void)state;
	fclose(fopen("there.yaml", "w"));
	fclose(fopen("matrix-latency.csv", "w"));
	refused("there.yaml", "is there already");
	refused("matrix.yaml", "is there already, and would be written beside matrix.yaml");
	refused("no.csv", "expected the name of a topology");
	refused(".yaml", "expected the name of a topology");
	refused("none/x.yaml", "its folder is not there");
	/* gpus is a file: nothing is written at all */
	fclose(fopen("gpus", "w"));
	struct skep_diag diag = {0};
	struct skep_probed p = measured(2, (const uint32_t[]){1, 1});
	assert_false(skep_probed_write(&p, "half.yaml", &diag));
	assert_int_not_equal(access("half.yaml", F_OK), 0);
	assert_int_not_equal(access("half-latency.csv", F_OK), 0);
	skep_probed_finish(&p);
}

static bool near(double a, double b)
{
	return fabs(a - b) < 1e-12;
}

/* By hand: a stage in the middle has two edges, and so a whole hand-over and two payloads in either pass. */
static void test_costs(void **state)
{
	(void)state;
	struct skep_probed_device device = {.overhead_s = 1e-6, .microbatches = 2};
	const struct skep_probed_model model = {.bytes = {[3] = {1000, 2000}}};
	const struct skep_probed_costs costs = {20e-6, 5e-6, 1e-9}, unknown = {NAN, NAN, NAN};
	skep_probed_add_costs(&device, &model, &unknown);
	assert_true(device.overhead_s == 1e-6 && device.layer[3][0].s[0] == 0 && isnan(device.costs.handover_s));
	skep_probed_add_costs(&device, &model, &costs);
	assert_true(near(device.overhead_s, 21e-6));
	for (uint32_t c = 0; c < 2; c++) {
		assert_true(near(device.layer[0][1].s[c], 10e-6)); /* embedding */
		assert_true(near(device.layer[1][1].s[c], 0));     /* block */
		assert_true(near(device.layer[2][1].s[c], 10e-6)); /* head */
		assert_true(near(device.layer[3][0].s[c], 16e-6)); /* edges */
		assert_true(near(device.layer[3][1].s[c], 17e-6));
	}
	assert_true(near(device.layer[3][1].s[2], 0)); /* an update has neither */
	assert_true(near(device.layer[3][0].s[0], 10e-6 + 5e-6 + 1000 * 1e-9));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_costs),
		cmocka_unit_test_setup_teardown(test_sites, enter, leave),
		cmocka_unit_test_setup_teardown(test_borrowed_inside, enter, leave),
		cmocka_unit_test_setup_teardown(test_matrices, enter, leave),
		cmocka_unit_test_setup_teardown(test_uncertain, enter, leave),
		cmocka_unit_test_setup_teardown(test_uncertainty, enter, leave),
		cmocka_unit_test_setup_teardown(test_uncertain_rates, enter, leave),
		cmocka_unit_test_setup_teardown(test_disturbed_rows, enter, leave),
		cmocka_unit_test_setup_teardown(test_layers, enter, leave),
		cmocka_unit_test_setup_teardown(test_alone, enter, leave),
		cmocka_unit_test_setup_teardown(test_refused, enter, leave),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
