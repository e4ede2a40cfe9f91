/* SPDX-License-Identifier: Apache-2.0
 *
 * test_manifest.c - the list of a scenario's files: what is written is what is read; what no writer writes is refused, and so
 * is what would leave its folder; damaged and random bytes.
 */
#include "tests/unit/travel_fixture.h"

#include "core/random.h"
#include "tests/fuzz/damage.h"
#include "tests/unit/fresh.h"

#define ENTRIES 5

static struct skep_manifest_entry entries[ENTRIES];
static char *overrides[2];

/* Nothing in it is allocated. */
static struct skep_manifest sample(void)
{
	static char paths[ENTRIES][40] = {
		"/home", "/home/models/m.yaml", "/home/s.yaml", "/home/s.yaml-law", "/home/t"};
	static char folder[] = "/home", first[] = "train.until.steps=3", second[] = "seed=7";
	for (int i = 0; i < ENTRIES; i++) {
		entries[i] = (struct skep_manifest_entry){.path = paths[i], .bytes = 1000u * (unsigned)i};
		memset(entries[i].digest, 0x10 + i, sizeof entries[i].digest);
	}
	entries[0] = (struct skep_manifest_entry){.kind = SKEP_MANIFEST_FOLDER, .path = paths[0]};
	entries[4] = (struct skep_manifest_entry){.kind = SKEP_MANIFEST_NAMED, .path = paths[4]};
	overrides[0] = first;
	overrides[1] = second;
	return (struct skep_manifest){.folder = folder,
		.entry = entries,
		.entries = ENTRIES,
		.scenario = 2,
		.override = overrides,
		.overrides = 2};
}

static void assert_same(const struct skep_manifest *a, const struct skep_manifest *b)
{
	assert_string_equal(a->folder, b->folder);
	assert_true(a->entries == b->entries && a->scenario == b->scenario && a->overrides == b->overrides);
	for (uint32_t i = 0; i < a->entries; i++) {
		assert_string_equal(a->entry[i].path, b->entry[i].path);
		assert_true(a->entry[i].kind == b->entry[i].kind && a->entry[i].bytes == b->entry[i].bytes);
		assert_memory_equal(a->entry[i].digest, b->entry[i].digest, SKEP_DIGEST_BYTES);
	}
	for (uint32_t i = 0; i < a->overrides; i++)
		assert_string_equal(a->override[i], b->override[i]);
}

static void test_what_is_written_is_read(void **state)
{
	(void)state;
	struct skep_manifest m = sample(), got;
	struct skep_diag diag = {0};
	uint8_t *bytes, *again;
	size_t size, same;
	assert_true(skep_manifest_encode(&m, &bytes, &size));
	good(skep_manifest_decode(bytes, size, &got, &diag), &diag);
	assert_same(&got, &m);
	assert_true(skep_manifest_encode(&got, &again, &same));
	assert_int_equal(same, size);
	assert_memory_equal(again, bytes, size);
	free(again);
	skep_manifest_finish(&got);
	for (size_t cut = 0; cut < size; cut++) { /* in a block of its own, so that a sanitizer sees a byte too far */
		uint8_t *part = malloc(cut > 0 ? cut : 1);
		memcpy(part, bytes, cut);
		assert_false(skep_manifest_decode(part, cut, &got, fresh(&diag)));
		assert_true(diag.set && got.entry == NULL);
		free(part);
	}
	uint8_t *longer = calloc(1, size + 1);
	memcpy(longer, bytes, size);
	assert_false(skep_manifest_decode(longer, size + 1, &got, fresh(&diag)));
	free(longer);
	free(bytes);
}

/* Layout by hand, so that two versions of skep that both agree with themselves agree with each other. */
static void test_the_bytes(void **state)
{
	(void)state;
	static const uint8_t want[] = {'K', 'E', 'P', 'M', 1, 0, 0, 0, 1, 0, 0, 0, '/', 1, 0, 0, 0, 0, 2, 0, 0, 0, '/',
		's', 5, 0, 0, 0, 0, 0, 0, 0};
	struct skep_manifest_entry entry = {.path = (char[]){"/s"}, .bytes = 5};
	struct skep_manifest m = {.folder = (char[]){"/"}, .entry = &entry, .entries = 1};
	uint8_t *bytes;
	size_t size;
	memset(entry.digest, 0xab, sizeof entry.digest);
	assert_true(skep_manifest_encode(&m, &bytes, &size));
	assert_int_equal(size, sizeof want + SKEP_DIGEST_BYTES + 8);
	assert_memory_equal(bytes, want, sizeof want);
	for (size_t i = 0; i < SKEP_DIGEST_BYTES + 8; i++) /* then the scenario's number, and no overrides */
		assert_int_equal(bytes[sizeof want + i], i < SKEP_DIGEST_BYTES ? 0xab : 0);
	free(bytes);
}

static void found_wrong(const struct skep_manifest *m, const char *words)
{
	struct skep_diag diag = {0};
	assert_false(skep_manifest_check(m, &diag));
	if (strstr(diag.message, words) == NULL)
		fail_msg("`%s` does not say `%s`", diag.message, words);
}

/* As bytes too. */
static void refused(const struct skep_manifest *m, const char *words)
{
	struct skep_manifest got;
	struct skep_diag diag = {0};
	uint8_t *bytes;
	size_t size;
	found_wrong(m, words);
	if (!skep_manifest_encode(m, &bytes, &size))
		return; /* it has no bytes */
	assert_false(skep_manifest_decode(bytes, size, &got, fresh(&diag)));
	free(bytes);
}

static void test_paths_that_lead_elsewhere(void **state)
{
	(void)state;
	static const char *const path[] = {"", "/", "home/x", "x", "/home/../etc/passwd", "/..", "/home/.", "/home/./x",
		"/home//x", "//x", "/x/", "../x", "./x", "/a/b/.."};
	struct skep_manifest m = sample();
	for (size_t i = 0; i < sizeof path / sizeof path[0]; i++) {
		m = sample();
		m.entries = 1;
		m.scenario = 0;
		m.entry[0] = (struct skep_manifest_entry){.path = (char *)path[i]};
		refused(&m, "cannot be the path of a file that travels");
		m = sample();
		m.folder = (char *)path[i];
		if (strcmp(path[i], "/") != 0)
			refused(&m, "cannot be the working folder");
	}
	char name[300] = "/";
	memset(name + 1, 'n', 256);
	m = sample();
	m.entry[4].path = name;
	refused(&m, "names of at most 255");
	char *deep = malloc(5000);
	for (int i = 0; i < 2500; i++)
		memcpy(deep + 2 * i, "/d", 2);
	deep[4998] = 0;
	m.entry[4].path = deep;
	refused(&m, "of at most 4095 bytes");
	free(deep);
}

static void test_entries_that_contradict_each_other(void **state)
{
	(void)state;
	struct skep_manifest m = sample();
	m.entry[2].path = m.entry[1].path;
	refused(&m, "stands twice");
	m = sample();
	struct skep_manifest_entry first = m.entry[1];
	m.entry[1] = m.entry[2];
	m.entry[2] = first;
	refused(&m, "out of order");
	m = sample();
	m.entry[0].kind = SKEP_MANIFEST_NAMED; /* /home is a folder of the others */
	refused(&m, "that is also a file");
	m = sample();
	m.entry[3].path = (char[]){"/home/s.yaml/x"};
	refused(&m, "that is also a file");
	m = sample();
	m.entry[0].bytes = 1; /* has no bytes to stand in, as the digest below */
	found_wrong(&m, "of no kind");
	m = sample();
	m.entry[4].digest[31] = 1;
	found_wrong(&m, "of no kind");
	m = sample();
	m.entry[1].kind = SKEP_MANIFEST_KINDS;
	refused(&m, "of no kind");
	m = sample();
	m.scenario = 4;
	refused(&m, "has no scenario");
	m.scenario = ENTRIES;
	refused(&m, "has no scenario");
	m = sample();
	m.override[1] = (char[]){""};
	refused(&m, "is empty");
}

static void test_limits(void **state)
{
	(void)state;
	static struct skep_manifest_entry many[SKEP_MANIFEST_ENTRIES_MAX + 1];
	struct skep_manifest m = sample();
	struct skep_diag diag = {0};
	m.entry[1].bytes = SKEP_MANIFEST_FILE_MAX;
	good(skep_manifest_check(&m, &diag), &diag);
	m.entry[1].bytes++;
	refused(&m, "at most 1 TiB");
	m = sample();
	m.entry = many;
	m.entries = SKEP_MANIFEST_ENTRIES_MAX;
	m.scenario = 0;
	for (uint32_t i = 0; i <= SKEP_MANIFEST_ENTRIES_MAX; i++) {
		many[i].path = malloc(280);
		snprintf(many[i].path, 280, "/%05u/%0250u", i, i);
	}
	refused(&m, "have 1052672 bytes together"); /* 4096 of 257 */
	for (uint32_t i = 0; i <= SKEP_MANIFEST_ENTRIES_MAX; i++)
		many[i].path[6 + 249] = 0;
	good(skep_manifest_check(&m, &diag), &diag); /* 4096 of 255 */
	m.entries++;
	refused(&m, "has 4097 files");
	for (uint32_t i = 0; i <= SKEP_MANIFEST_ENTRIES_MAX; i++)
		free(many[i].path);
	m = sample();
	char *text = malloc(SKEP_MANIFEST_OVERRIDE_MAX + 1);
	memset(text, 'x', SKEP_MANIFEST_OVERRIDE_MAX);
	text[SKEP_MANIFEST_OVERRIDE_MAX] = 0;
	m.override[0] = text;
	refused(&m, "2 overrides of 65542 bytes");
	free(text);
}

static void test_the_order(void **state)
{
	(void)state;
	static const char *const rising[] = {
		"/a", "/a/b", "/a/b/c", "/a/c", "/a ", "/a-b", "/a-b/c", "/a.", "/ab", "/b", "/\xc3\xa4"};
	for (size_t i = 0; i < sizeof rising / sizeof rising[0]; i++)
		for (size_t k = 0; k < sizeof rising / sizeof rising[0]; k++) {
			int order = skep_manifest_order(rising[i], rising[k]);
			assert_true(i < k ? order < 0 : i > k ? order > 0 : order == 0);
		}
}

/* Whatever is accepted is what a writer would have written. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct skep_manifest got;
	struct skep_diag diag = {0};
	uint8_t *own = malloc(size > 0 ? size : 1), *again = NULL;
	size_t same = 0;
	if (size > 0)
		memcpy(own, data, size);
	if (skep_manifest_decode(own, size, &got, &diag)) {
		assert_true(skep_manifest_check(&got, &diag) && skep_manifest_encode(&got, &again, &same));
		assert_int_equal(same, size);
		assert_memory_equal(again, own, size);
		free(again);
		skep_manifest_finish(&got);
	} else {
		assert_true(diag.set && got.entry == NULL && got.override == NULL && got.folder == NULL);
	}
	free(own);
	return 0;
}

static void test_damaged_and_random_bytes(void **state)
{
	(void)state;
	uint64_t random = skep_mix(1);
	uint8_t *bytes, copy[4096];
	size_t size, left;
	struct skep_manifest m = sample();
	assert_true(skep_manifest_encode(&m, &bytes, &size) && size < sizeof copy / 2);
	for (uint32_t i = 0; i < 200000; i++) {
		memcpy(copy, bytes, size);
		left = size;
		damage_bytes(copy, &left, sizeof copy, &random);
		LLVMFuzzerTestOneInput(copy, left);
	}
	for (uint32_t i = 0; i < 100000; i++) {
		uint32_t head = skep_random_below(&random, 2) * 8, length = skep_random_below(&random, 200);
		for (uint32_t k = 0; k < length; k++)
			copy[k] = k < head ? bytes[k] : (uint8_t)skep_random_below(&random, 256);
		LLVMFuzzerTestOneInput(copy, length);
	}
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_written_is_read),
		cmocka_unit_test(test_the_bytes),
		cmocka_unit_test(test_paths_that_lead_elsewhere),
		cmocka_unit_test(test_entries_that_contradict_each_other),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_the_order),
		cmocka_unit_test(test_damaged_and_random_bytes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
