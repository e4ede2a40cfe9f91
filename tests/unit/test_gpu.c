/* SPDX-License-Identifier: Apache-2.0
 *
 * test_gpu.c - GPU profiles: what is read and refused, where a name is looked for, and the time of an operation against
 * the roofline written out.
 */
#include "topologies/gpu/gpu.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/skep-gpu-XXXXXX";
static char topology_path[64]; /* never written: only its folder counts */

static const char good[] = "name: Test card\n"
			   "source: measured on nothing, assumed by this test\n"
			   "flops: 8 TFLOP/s\n"
			   "efficiency: 0.5\n"
			   "memory_bandwidth: 320 GB/s\n"
			   "memory: 16 GB\n"
			   "overhead: 0.1 ms\n";

static void put(const char *name, const char *text)
{
	char path[128];
	snprintf(path, sizeof path, "%s/gpus/%s.yaml", folder, name);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

/* `good` with the first `find` replaced. */
static void put_changed(const char *name, const char *find, const char *replace)
{
	char text[1024];
	const char *at = strstr(good, find);
	assert_non_null(at);
	snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good), good, replace, at + strlen(find));
	put(name, text);
}

static int set_up(void **state)
{
	(void)state;
	char gpus[64];
	if (!mkdtemp(folder))
		return -1;
	snprintf(gpus, sizeof gpus, "%s/gpus", folder);
	snprintf(topology_path, sizeof topology_path, "%s/t.yaml", folder);
	return mkdir(gpus, 0700);
}

static int tear_down(void **state)
{
	(void)state;
	char command[64];
	snprintf(command, sizeof command, "rm -r %s", folder);
	return system(command);
}

static void test_reads_every_field(void **state)
{
	(void)state;
	struct skep_gpu gpu;
	struct skep_diag diag = {0};
	put("good", good);
	assert_true(skep_gpu_read(topology_path, "good", &gpu, &diag));
	assert_string_equal(gpu.name, "Test card");
	assert_string_equal(gpu.source, "measured on nothing, assumed by this test");
	assert_true(gpu.flops == 8e12 && gpu.efficiency == 0.5);
	assert_true(gpu.memory_Bps == 320e9 && gpu.memory_bytes == 16e9);
	assert_true(fabs(gpu.overhead_s - 1e-4) < 1e-18);
}

static void test_refuses_bad_profiles(void **state)
{
	(void)state;
	static const struct {
		const char *find, *replace;
		uint32_t line;
		const char *at, *message; /* what stands at the caret; part of the message */
	} bad[] = {
		{"8 TFLOP/s", "0 TFLOP/s", 3, "0 TFLOP/s", ""},
		{"8 TFLOP/s", "-8 TFLOP/s", 3, "-8 TFLOP/s", ""},
		{"8 TFLOP/s", "8", 3, "8", "TFLOP/s"},
		{"8 TFLOP/s", "8 GB/s", 3, "8 GB/s", "TFLOP/s"},
		{"8 TFLOP/s", "nan TFLOP/s", 3, "nan", ""},
		{"8 TFLOP/s", "1e999 TFLOP/s", 3, "1e999", ""},
		{"efficiency: 0.5", "efficiency: 0", 4, "0", ""},
		{"efficiency: 0.5", "efficiency: 1.01", 4, "1.01", ""},
		{"efficiency: 0.5", "efficiency: -1", 4, "-1", ""},
		{"320 GB/s", "0 GB/s", 5, "0 GB/s", ""},
		{"16 GB", "-1 GB", 6, "-1 GB", ""},
		{"0.1 ms", "-0.1 ms", 7, "-0.1 ms", ""},
		{"0.1 ms", "1000 h", 7, "1000 h", ""},
		{"measured on nothing, assumed by this test", "somewhere", 2, "somewhere",
			"measured, published or assumed"},
		{"overhead: 0.1 ms\n", "overhead: 0.1 ms\npeaks: {fp32: 3 TFLOP/s}\n", 8, "fp32", "unknown key"},
		{"overhead: 0.1 ms\n", "overhead: 0.1 ms\npeaks: {bf16: 3 GB/s}\n", 8, "3 GB/s", "TFLOP/s"},
		{"overhead: 0.1 ms\n", "overhead: 0.1 ms\ntables: [t4.csv]\n", 8, "t4.csv", "expected a table as"},
		{"overhead: 0.1 ms\n",
			"overhead: 0.1 ms\ntables: [{file: a.csv, of: layers, type: fp32, source: measured}]\n", 8,
			NULL, "model"},
		{"overhead: 0.1 ms\n",
			"overhead: 0.1 ms\ntables: [{file: a.csv, of: products, type: fp32, source: measured}]\n", 8,
			"a.csv", "no file `a.csv` with a table"},
		{"overhead: 0.1 ms\n",
			"overhead: 0.1 ms\ntables: [{file: bad.yaml, of: products, type: fp32, source: measured}, "
			"{file: bad.yaml, of: products, type: fp32, source: measured}]\n",
			8, "fp32", "a second table of products in fp32"},
		{"Test card", "A card whose name is too long for results", 1, "A card", "1 to 31 bytes"},
		{"Test card", "A name of just thirty-two bytes.", 1, "A name", "1 to 31 bytes, this one has 32"},
		{"overhead: 0.1 ms\n", "overheat: 0.1 ms\n", 0, NULL, "overhead"},
		{"memory: 16 GB\n", "", 0, NULL, "memory"},
		{"name: Test card\n", "name: Test card\ncolour: red\n", 2, "colour", "colour"},
		{good, "", 0, NULL, ""},
		{good, "just a text\n", 1, "just", ""},
		{good, "- a\n- list\n", 1, "- a", ""},
	};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct skep_gpu gpu;
		struct skep_diag diag = {0};
		put_changed("bad", bad[i].find, bad[i].replace);
		bool ok = skep_gpu_read(topology_path, "bad", &gpu, &diag);
		if (ok || !diag.set || !strstr(diag.message, bad[i].message) || !strstr(diag.file, "/gpus/bad.yaml"))
			fail_msg("%s: ok %d, %s: %s", bad[i].replace, ok, diag.file, diag.message);
		if (bad[i].at && (diag.line != bad[i].line ||
					 strncmp(diag.text + diag.caret, bad[i].at, strlen(bad[i].at)) != 0))
			fail_msg("%s: line %u '%s' caret %u: %s", bad[i].replace, diag.line, diag.text, diag.caret,
				diag.message);
	}
}

static void test_unknown_name_says_where_it_looked(void **state)
{
	(void)state;
	static const char *const names[] = {"h900", "", ".hidden", "../t", "../gpus/good", "/etc/passwd", "a b", "x\ny",
		"a-name-that-is-much-longer-than-any-profile-would-ever-be-called-by-anyone"};
	put("good", good);
	put("other", good);
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		struct skep_gpu gpu;
		struct skep_diag diag = {0};
		assert_false(skep_gpu_read(topology_path, names[i], &gpu, &diag));
		assert_true(diag.set && diag.line == 0);
		assert_string_equal(diag.file, topology_path);
		assert_non_null(strstr(diag.message, "topologies/gpus"));
		assert_non_null(strstr(diag.message, folder));
		assert_non_null(strstr(diag.message, "good"));
		assert_non_null(strstr(diag.message, "other"));
	}
}

static void test_faults_of_the_file_itself(void **state)
{
	(void)state;
	char path[128];
	struct skep_gpu gpu;
	struct skep_diag diag = {0};
	snprintf(path, sizeof path, "%s/gpus/folder.yaml", folder);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_false(skep_gpu_read(topology_path, "folder", &gpu, &diag));
	assert_string_equal(diag.file, path);
	assert_int_equal(rmdir(path), 0);
}

/* The folder beside the topology wins over the shared one, which serves when there is none beside. */
static void test_shared_folder(void **state)
{
	(void)state;
	struct skep_gpu gpu;
	struct skep_diag diag = {0};
	char shared[512];
	if (!skep_file_find(NULL, __FILE__, "topologies/gpus/t4.yaml", shared, sizeof shared))
		fail_msg("run in the source tree: no topologies/gpus/t4.yaml from %s", __FILE__);
	assert_true(skep_gpu_read(__FILE__, "t4", &gpu, &diag));
	assert_string_equal(gpu.name, "T4");
	skep_gpu_finish(&gpu);
	put("t4", good);
	assert_true(skep_gpu_read(topology_path, "t4", &gpu, &diag));
	assert_string_equal(gpu.name, "Test card");
}

static void test_shipped_profiles(void **state)
{
	(void)state;
	static const char *const names[] = {"t4", "v100", "v100-32", "p100", "p100-pcie", "a100-40", "a100-80", "a40",
		"l4", "rtx-2080", "rtx-2080-ti", "rtx-3090", "rtx-4090", "titan-rtx", "h100", "h200"};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		struct skep_gpu gpu;
		struct skep_diag diag = {0};
		if (!skep_gpu_read(__FILE__, names[i], &gpu, &diag))
			fail_msg("%s:%u: %s", diag.file, diag.line, diag.message);
		assert_true(gpu.flops >= 8e12 && gpu.flops <= 100e12 && gpu.efficiency >= 0.5);
		assert_true(gpu.peak[SKEP_TYPE_FP32] == gpu.flops);
		for (uint32_t t = 0; t < gpu.tables; t++)
			if (skep_gpu_load(&gpu, gpu.table[t].kind, gpu.table[t].type, &diag) != &gpu.table[t])
				fail_msg("%s:%u: %s", diag.file, diag.line, diag.message);
		skep_gpu_finish(&gpu);
	}
}

/* DeepBench's best fp32 products: what they took is what the profile says they take. */
static void test_measured_products(void **state)
{
	(void)state;
	struct skep_gpu t4, v100;
	struct skep_diag diag = {0};
	assert_true(skep_gpu_read(__FILE__, "t4", &t4, &diag) && skep_gpu_read(__FILE__, "v100", &v100, &diag));
	double t4_ns = (double)skep_gpu_time_ns(&t4, 2.0 * 1024 * 48000 * 2048, 0) - 1e9 * t4.overhead_s;
	double v100_ns = (double)skep_gpu_time_ns(&v100, 2.0 * 4096 * 7000 * 4096, 0) - 1e9 * v100.overhead_s;
	assert_true(fabs(t4_ns / 43.086e6 - 1) < 1e-3);
	assert_true(fabs(v100_ns / 15.894e6 - 1) < 1e-3);
	skep_gpu_finish(&t4);
	skep_gpu_finish(&v100);
}

static void test_time_is_the_roofline(void **state)
{
	(void)state;
	const struct skep_gpu gpu = {.peak = {8e12}, .reached = {0.5}, .memory_Bps = 400e9, .overhead_s = 1e-4};
	/* 4e9 FLOP at 4e12 FLOP/s: 1 ms; 4e8 bytes at 4e11 B/s: 1 ms */
	assert_int_equal(skep_gpu_time_ns(&gpu, 4e9, 0), 100000 + 1000000);
	assert_int_equal(skep_gpu_time_ns(&gpu, 4e9, 3.9e8), 100000 + 1000000);
	assert_int_equal(skep_gpu_time_ns(&gpu, 4e9, 4e8), 100000 + 1000000);
	assert_int_equal(skep_gpu_time_ns(&gpu, 4e9, 8e8), 100000 + 2000000);
	assert_int_equal(skep_gpu_time_ns(&gpu, 0, 0), 100000);
	for (double flop = 1; flop < 1e15; flop *= 7)
		for (double bytes = 1; bytes < 1e13; bytes *= 11) {
			double want = 1e9 * (1e-4 + fmax(flop / 4e12, bytes / 4e11));
			assert_true(fabs((double)skep_gpu_time_ns(&gpu, flop, bytes) - want) <= 0.5 + 1e-9 * want);
		}
}

static void test_time_stays_in_range(void **state)
{
	(void)state;
	const struct skep_gpu gpu = {.peak = {1e6}, .reached = {1e-6}, .memory_Bps = 1e6, .overhead_s = 0};
	assert_int_equal(skep_gpu_time_ns(&gpu, 0, 0), 1);
	assert_int_equal(skep_gpu_time_ns(&gpu, 1e300, 0), 1000000000000000000);
	assert_int_equal(skep_gpu_time_ns(&gpu, INFINITY, 0), 1000000000000000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads_every_field),
		cmocka_unit_test(test_refuses_bad_profiles),
		cmocka_unit_test(test_unknown_name_says_where_it_looked),
		cmocka_unit_test(test_faults_of_the_file_itself),
		cmocka_unit_test(test_shared_folder),
		cmocka_unit_test(test_shipped_profiles),
		cmocka_unit_test(test_measured_products),
		cmocka_unit_test(test_time_is_the_roofline),
		cmocka_unit_test(test_time_stays_in_range),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
