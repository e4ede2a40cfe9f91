/* SPDX-License-Identifier: Apache-2.0
 *
 * test_travel.c - a scenario that travels: its manifest goes as bytes, its files go into a cache, and what is read from the
 * tree there says what the original says. For all scenarios that are shipped, so that a file which a reader opens and the list
 * lacks is noticed; and for each way in which a scenario can name a file.
 */
#include "tests/unit/travel_fixture.h"

#include <ftw.h>
#include <sys/stat.h>

#include "scenarios/describe/describe.h"

static char root[4096], folder[] = "/tmp/skep-travel-XXXXXX";
static char *shipped[256];
static size_t shippeds;

static int note(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)at;
	static const char *const others[] = {
		"scenarios/laws/", "scenarios/shared/", "scenarios/papers/topologies/", "scenarios/papers/tables/"};
	size_t length = strlen(path);
	bool scenario = kind == FTW_F && length > 5 && strcmp(path + length - 5, ".yaml") == 0;
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
		scenario = scenario && strncmp(path, others[i], strlen(others[i])) != 0;
	assert_true(shippeds < sizeof shipped / sizeof shipped[0]);
	if (scenario)
		shipped[shippeds++] = strdup(path);
	return 0;
}

static int set_up(void **state)
{
	(void)state;
	return getcwd(root, sizeof root) && mkdtemp(folder) && nftw("scenarios", note, 16, FTW_PHYS) == 0 ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	char command[sizeof folder + 16];
	for (size_t i = 0; i < shippeds; i++)
		free(shipped[i]);
	snprintf(command, sizeof command, "rm -rf %s", folder);
	return chdir("/") || system(command);
}

/* What `skep check` says of it, without `from`, where it stands. The caller frees it. */
static char *described(const struct skep_scenario *s, const char *from)
{
	char *text = NULL;
	size_t size, length = strlen(from);
	FILE *out = open_memstream(&text, &size);
	skep_scenario_describe(s, NULL, false, out);
	skep_scenario_describe(s, NULL, true, out);
	assert_int_equal(fclose(out), 0);
	for (char *at = text; length > 0 && (at = strstr(at, from)) != NULL;)
		memmove(at, at + length, strlen(at + length) + 1);
	return text;
}

static void fetch(struct skep_cache *cache, const struct skep_manifest *here, const struct skep_manifest *there)
{
	struct skep_diag diag = {0};
	for (uint32_t i = 0; i < there->entries; i++) {
		uint64_t bytes;
		if (there->entry[i].kind != SKEP_MANIFEST_FILE)
			continue;
		int fd = skep_manifest_open(here, there->entry[i].digest, &bytes, &diag);
		good(fd >= 0 && bytes == there->entry[i].bytes, &diag);
		receive(cache, there->entry[i].digest, fd, bytes, 100000);
		close(fd);
	}
}

/* To the cache; the options become those that read it there, and point into *ret_root and *there. */
static void travel(const struct skep_scenario *s, struct skep_scenario_options *o, struct skep_manifest *there,
	char ret_root[SKEP_CACHE_PATH], char path[SKEP_CACHE_PATH])
{
	struct skep_diag diag = {0};
	struct skep_cache cache;
	struct skep_manifest here;
	uint8_t *bytes;
	size_t size;
	char cached[sizeof folder + 8];
	snprintf(cached, sizeof cached, "%s/cache", folder);
	good(skep_manifest_make(s, o, NULL, NULL, &here, &diag), &diag);
	assert_true(skep_manifest_encode(&here, &bytes, &size));
	good(skep_manifest_decode(bytes, size, there, &diag), &diag);
	free(bytes);
	good(skep_cache_open(cached, &cache, &diag), &diag);
	fetch(&cache, &here, there);
	good(skep_cache_tree(&cache, "run-1", there, ret_root, path, &diag), &diag);
	skep_cache_close(&cache);
	skep_manifest_finish(&here);
	o->root = ret_root;
	o->folder = there->folder;
	o->set = (const char *const *)there->override;
	o->sets = there->overrides;
	o->has_seed = false;
}

/* Nothing that was opened is outside the tree, and the working folder has nothing to offer. */
static void compare(const char *name, const struct skep_scenario_options *options)
{
	struct skep_diag diag = {0};
	struct skep_scenario s, same;
	struct skep_scenario_options o = options ? *options : (struct skep_scenario_options){0};
	struct skep_manifest manifest;
	char tree[SKEP_CACHE_PATH], path[SKEP_CACHE_PATH], from[4096];
	assert_non_null(getcwd(from, sizeof from));
	good(skep_scenario_read(name, &o, &s, &diag), &diag);
	travel(&s, &o, &manifest, tree, path);
	assert_int_equal(chdir(folder), 0);
	good(skep_scenario_read(path, &o, &same, &diag), &diag);
	for (uint32_t i = 0; i < same.files.count; i++)
		assert_memory_equal(same.files.asked[i].path, tree, strlen(tree));
	assert_int_equal(same.files.count, s.files.count);
	assert_string_equal(same.text, s.text);
	assert_true(same.job == s.job && same.seed == s.seed);
	char *want = described(&s, ""), *got = described(&same, tree);
	if (name[0] != '/') /* the original was named from the working folder, the copy by its whole path */
		for (char *at = got; (at = strstr(at, from)) != NULL;)
			memmove(at, at + strlen(from) + 1, strlen(at + strlen(from) + 1) + 1);
	assert_string_equal(got, want);
	free(want);
	free(got);
	assert_int_equal(chdir(from), 0);
	skep_scenario_finish(&same);
	skep_scenario_finish(&s);
	skep_manifest_finish(&manifest);
}

static void test_all_shipped(void **state)
{
	(void)state;
	assert_true(shippeds > 40);
	for (size_t i = 0; i < shippeds; i++)
		compare(shipped[i], NULL);
}

/* ---- ways to name a file ------------------------------------------------------------------------------------------- */

/* A file of the test's folder. */
static void put(const char *name, const char *text)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
}

/* work/ is the working folder, in which names are looked for first. */
static void lay_out(void)
{
	static const char *const folders[] = {
		"work", "work/parts", "far", "far/deep", "far/deep/corpus", "far/deep/gpus", "real", "real/llama"};
	char path[4096], to[8192];
	for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
		snprintf(path, sizeof path, "%s/%s", folder, folders[i]);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	static const char *const weights[] = {"config.json", "model.safetensors.index.json",
		"model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors",
		"model-00003-of-00003.safetensors"};
	for (size_t i = 0; i < sizeof weights / sizeof weights[0]; i++) { /* as caches of Hugging Face have them */
		snprintf(to, sizeof to, "%s/tests/data/hf/llama/%s", root, weights[i]);
		snprintf(path, sizeof path, "%s/real/llama/%s", folder, weights[i]);
		assert_int_equal(symlink(to, path), 0);
	}
	snprintf(path, sizeof path, "%s/link", folder);
	assert_int_equal(symlink("real/llama", path), 0);
	put("far/deep/corpus/one.txt", "!#$%&'()*+,-./ !#$%&'()*+,-./ !#$%&'()*+,-./ !#$%&'()*+,-./ ");
	put("far/deep/corpus/two.txt", "!#$%&'()*+,-./ !#$%&'()*+,-./ !#$%&'()*+,-./ !#$%&'()*+,-./ ");
	put("far/deep/corpus/two.bin", "not matched");
	put("work/held-1.txt", "/.-,+*)('&%$#! /.-,+*)('&%$#! /.-,+*)('&%$#! /.-,+*)('&%$#! ");
	put("far/held-1.txt", "another of that name, which is not taken: the working folder comes first");
	put("work/parts/law.yaml", "this is found, and not read");
}

/* The absolute path of a model, a link to a folder of weights, a topology by `..`, a pattern beside the scenario, one in the
 * working folder, and two files with the same content. */
static void test_every_way_to_name_a_file(void **state)
{
	(void)state;
	char scenario[4096], work[4096], topology[4096];
	lay_out();
	snprintf(scenario, sizeof scenario,
		"name: ways\nseed: 1\nmodel: {file: %s/link/config.json, stages: 2, sequence: 8}\n"
		"cluster: {topology: ../topology/../deep/t.yaml, allocation: {method: strided}}\n"
		"schedule: {global_batch: 4, microbatch: 4}\n"
		"train:\n  data: {corpus: text, file: corpus/*.txt, validation: 'held-*.txt'}\n"
		"  init: {weights: link}\n  until: {steps: 1}\n",
		folder);
	put("far/deep/s.yaml", scenario);
	snprintf(topology, sizeof topology, "%s/far/topology", folder);
	assert_int_equal(mkdir(topology, 0700), 0);
	put("far/deep/t.yaml",
		"name: t\nsource: assumed for this test\ndirectory: here\nsites:\n  here:\n"
		"    machines: [{count: 2, gpu: g}]\n    inside: {bandwidth: 1 Gbit/s, latency: 1 ms}\n");
	put("far/deep/gpus/g.yaml", "name: g\nsource: assumed for this test\nflops: 1 TFLOP/s\nefficiency: 1\n"
				    "memory_bandwidth: 100 GB/s\nmemory: 16 GB\noverhead: 10 us\n");
	snprintf(work, sizeof work, "%s/work", folder);
	assert_int_equal(chdir(work), 0);
	snprintf(scenario, sizeof scenario, "%s/far/deep/s.yaml", folder);
	compare(scenario, NULL);
	const char *const set[] = {"train.until.steps=3", "train.init=null"};
	compare("../far/deep/s.yaml",
		&(struct skep_scenario_options){.set = set, .sets = 2, .has_seed = true, .seed = 7});
	assert_int_equal(chdir(root), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_shipped),
		cmocka_unit_test(test_every_way_to_name_a_file),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
