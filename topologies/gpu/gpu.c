/* SPDX-License-Identifier: Apache-2.0
 *
 * gpu.c - reads GPU speed profiles and decides how long an operation takes on one.
 *
 * A profile is found by its name, first in the folder gpus/ beside the file that names it, then in topologies/gpus.
 * What is kept true: every number of a profile that was read lies in a range in which the roofline is finite, and a
 * profile says where its numbers come from.
 */
#include "topologies/gpu/gpu.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/files/files.h"
#include "base/text.h"
#include "base/units.h"

#define SHARED_FOLDER "topologies/gpus"
#define NAME_BYTES 64  /* of a profile */
#define NEAR_BYTES 120 /* of those that are offered in place of an unknown one */

/* ---- text that a profile or a topology carries ------------------------------------------------------------------- */

static void copy(struct skep_reader *r, const struct skep_yaml_node *map, const char *key, char *ret, size_t size)
{
	const char *text = skep_read_string(r, map, key, NULL);
	if (r->diag->set)
		return;
	size_t length = strlen(text);
	if (length == 0 || length >= size) {
		skep_reader_fail(r, map, key, "expected a text of 1 to %zu bytes, this one has %zu", size - 1, length);
		return;
	}
	memcpy(ret, text, length + 1);
}

void skep_label_read(struct skep_reader *r, const struct skep_yaml_node *map, char *ret_name, size_t name_size,
	char *ret_source, size_t source_size)
{
	copy(r, map, "name", ret_name, name_size);
	copy(r, map, "source", ret_source, source_size);
	if (r->diag->set)
		return;
	if (!strcasestr(ret_source, "measured") && !strcasestr(ret_source, "published") &&
		!strcasestr(ret_source, "assumed"))
		skep_reader_fail(r, map, "source",
			"expected a text that says whether the numbers are measured, published or assumed, and by "
			"whom");
}

/* ---- finding a profile ------------------------------------------------------------------------------------------- */

/* The folder gpus/ beside `from`. */
static bool folder_beside(const char *from, char *ret, size_t size)
{
	const char *slash = strrchr(from, '/');
	int length = slash ? (int)(slash - from + 1) : 0;
	int n = snprintf(ret, size, "%.*sgpus", length, from);
	return n > 0 && (size_t)n < size;
}

/* A name is a plain file name: what a user writes there cannot lead out of the two folders. */
static bool name_ok(const char *name)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	return name[0] != 0 && name[0] != '.' && name[strspn(name, allowed)] == 0;
}

static bool find(struct skep_files *files, const char *from, const char *name, char *ret, size_t size)
{
	char folder[512], shared[512];
	if (!name_ok(name))
		return false;
	if (folder_beside(from, folder, sizeof folder)) {
		int n = snprintf(ret, size, "%s/%s.yaml", folder, name);
		if (n > 0 && (size_t)n < size && access(ret, F_OK) == 0)
			return true;
	}
	int n = snprintf(shared, sizeof shared, SHARED_FOLDER "/%s.yaml", name);
	return n > 0 && (size_t)n < sizeof shared && skep_file_find(files, from, shared, ret, size);
}

/* Of one card there are profiles of several memories or links: "a100-40 or a100-80" for `a100`; else the nearest. What was found
 * in another folder stays, unless here is one of that card. */
static void find_near(const char *name, const char *const known[], uint32_t count, char ret[NEAR_BYTES])
{
	char small[NAME_BYTES], kinds[NEAR_BYTES] = "";
	size_t length = strlen(name);
	for (uint32_t i = 0; i < count; i++) {
		size_t used = strlen(kinds);
		if (strncasecmp(known[i], name, length) == 0 && known[i][length] == '-' &&
			used + strlen(known[i]) + 5 < sizeof kinds)
			snprintf(kinds + used, sizeof kinds - used, "%s%s", used > 0 ? " or " : "", known[i]);
	}
	for (size_t i = 0; i < sizeof small; i++)
		small[i] = i < length && i + 1 < sizeof small ? (char)tolower((unsigned char)name[i]) : '\0';
	const char *near = skep_text_nearest(small, known, count);
	bool same = near != NULL && strcasecmp(near, name) == 0;
	if (kinds[0] != '\0' && !same)
		snprintf(ret, NEAR_BYTES, "%s", kinds);
	else if (near != NULL && (same || ret[0] == '\0'))
		snprintf(ret, NEAR_BYTES, "%s", near);
}

/* The names of the profiles in `folder`, sorted: as far as they fit they are appended to `text`; those that `name` is near enough
 * to go to ret_near. */
static void list_profiles(const char *folder, const char *name, char *text, size_t size, char ret_near[NEAR_BYTES])
{
	uint32_t count;
	char **known = skep_folder_names(folder, ".yaml", &count);
	for (uint32_t i = 0; i < count; i++) {
		size_t used = strlen(text);
		if (used + strlen(known[i]) + 3 < size)
			snprintf(text + used, size - used, "%s%s", used ? ", " : "", known[i]);
	}
	find_near(name, (const char *const *)known, count, ret_near);
	skep_folder_names_free(known, count);
}

static bool same_folder(const char *a, const char *b)
{
	char *real_a = realpath(a, NULL), *real_b = realpath(b, NULL);
	bool same = real_a && real_b && strcmp(real_a, real_b) == 0;
	free(real_a);
	free(real_b);
	return same;
}

static void fail_unknown(const char *from, const char *name, struct skep_diag *reterr)
{
	char beside[200] = "gpus", shared[200] = SHARED_FOLDER, known[300] = "", near[NEAR_BYTES] = "";
	folder_beside(from, beside, sizeof beside);
	if (!skep_file_find(reterr->files, from, SHARED_FOLDER, shared, sizeof shared))
		snprintf(shared, sizeof shared, SHARED_FOLDER);
	list_profiles(beside, name, known, sizeof known, near);
	bool one = same_folder(beside, shared);
	if (!one)
		list_profiles(shared, name, known, sizeof known, near);
	if (!known[0]) {
		skep_diag_set(reterr, from, 0, 0, NULL,
			"no GPU profile '%.40s': neither %s nor %s is there; run skep in the folder of its sources, or "
			"install it, and its own profiles are found",
			name, beside, shared);
		return;
	}
	skep_diag_set(reterr, from, 0, 0, NULL,
		"no GPU profile '%.40s' in %s%s%s%s%s%s; there are: %s; to add one, copy the nearest to %s/%.40s.yaml and "
		"change its numbers",
		name, beside, one ? "" : " or ", one ? "" : shared, near[0] ? ", did you mean " : "", near,
		near[0] ? "?" : "", known, beside, name_ok(name) ? name : "NAME");
}

/* ---- reading one ------------------------------------------------------------------------------------------------- */

static void read_peaks(struct skep_reader *r, const struct skep_yaml_node *root, struct skep_gpu *ret)
{
	const struct skep_yaml_node *map = skep_read_map(r, root, "peaks", false);
	ret->peak[SKEP_TYPE_FP32] = ret->flops;
	for (int type = SKEP_TYPE_TF32; type < SKEP_TYPES; type++)
		ret->peak[type] = skep_read_quantity(r, map, skep_type_names[type], SKEP_SPEED, 1e6, 1e18, 0);
	if (map)
		skep_reader_close_map(r, map);
}

/* Of whole passes. The efficiency of products stands in for what the profile does not give, and TF32, whose products the same
 * units make, has that of bf16, or of fp16. */
static void read_reached(struct skep_reader *r, const struct skep_yaml_node *root, struct skep_gpu *ret)
{
	const struct skep_yaml_node *map = skep_read_map(r, root, "efficiencies", false);
	ret->reached[SKEP_TYPE_FP32] = ret->efficiency;
	for (int type = SKEP_TYPE_FP16; type < SKEP_TYPES; type++) {
		ret->reached[type] = skep_read_number(r, map, skep_type_names[type], 1e-6, 1.0, ret->efficiency);
		if (!r->diag->set && skep_read_has(r, map, skep_type_names[type]) && !(ret->peak[type] > 0))
			skep_reader_fail(r, map, skep_type_names[type],
				"a part of a peak that is not there: add %s to `peaks`", skep_type_names[type]);
	}
	bool halves = ret->peak[SKEP_TYPE_BF16] > 0;
	ret->reached[SKEP_TYPE_TF32] = ret->reached[halves ? SKEP_TYPE_BF16 : SKEP_TYPE_FP16];
	if (map)
		skep_reader_close_map(r, map);
}

static void read_source(struct skep_reader *r, const struct skep_yaml_node *map, char *ret, size_t size)
{
	copy(r, map, "source", ret, size);
	if (!r->diag->set && !strcasestr(ret, "measured") && !strcasestr(ret, "derived"))
		skep_reader_fail(
			r, map, "source", "expected a text that says whether the table is measured or derived");
}

/* Of whole stages, which were measured in whatever type the run computed in. */
static void read_stages(struct skep_reader *r, const struct skep_yaml_node *map, struct skep_gpu *gpu)
{
	struct skep_stage_table *t = &gpu->stages;
	const char *file = skep_read_string(r, map, "file", NULL);
	read_source(r, map, t->source, sizeof t->source);
	copy(r, map, "model", t->model, sizeof t->model);
	t->offload = (uint32_t)skep_read_choice(r, map, "offload", skep_offload_names, 0);
	skep_reader_close_map(r, map);
	if (!r->diag->set && t->path[0] != 0)
		skep_reader_fail(r, map, "of", "a second table of stages: one is taken");
	if (!r->diag->set && !skep_file_find(r->diag->files, gpu->path, file, t->path, sizeof t->path))
		skep_reader_fail(r, map, "file", "no file `%.200s` with a table", file);
}

static void read_table(struct skep_reader *r, const struct skep_yaml_node *map, struct skep_gpu *gpu)
{
	struct skep_gpu_table *t = &gpu->table[gpu->tables];
	t->kind = (enum skep_table_kind)skep_read_choice(r, map, "of", skep_table_names, -1);
	if (!r->diag->set && t->kind == SKEP_TABLE_STAGES) {
		read_stages(r, map, gpu);
		return;
	}
	t->type = (enum skep_type)skep_read_choice(r, map, "type", skep_type_names, -1);
	const char *file = skep_read_string(r, map, "file", NULL);
	read_source(r, map, t->source, sizeof t->source);
	if (t->kind == SKEP_TABLE_LAYERS)
		copy(r, map, "model", t->model, sizeof t->model);
	skep_reader_close_map(r, map);
	if (!r->diag->set && !skep_file_find(r->diag->files, gpu->path, file, t->path, sizeof t->path))
		skep_reader_fail(r, map, "file", "no file `%.200s` with a table", file);
	for (uint32_t i = 0; i < gpu->tables && !r->diag->set; i++)
		if (gpu->table[i].kind == t->kind && gpu->table[i].type == t->type)
			skep_reader_fail(r, map, "type", "a second table of %s in %s: one is taken",
				skep_table_names[t->kind], skep_type_names[t->type]);
	if (!r->diag->set && gpu->peak[t->type] <= 0)
		skep_reader_fail(r, map, "type", "add the peak of %s to `peaks`: laws are fitted with it",
			skep_type_names[t->type]);
	gpu->tables++;
}

static void read_tables(struct skep_reader *r, const struct skep_yaml_node *root, struct skep_gpu *gpu)
{
	const struct skep_yaml_node *list = skep_read_list(r, root, "tables", false);
	uint32_t count = list ? skep_yaml_length(list) : 0;
	if (count == 0 || r->diag->set)
		return;
	gpu->table = calloc(count, sizeof *gpu->table);
	if (!gpu->table)
		skep_reader_fail(r, list, NULL, "not enough memory for %u tables", count);
	for (uint32_t i = 0; i < count && !r->diag->set; i++) {
		const struct skep_yaml_node *map = skep_yaml_item(list, i);
		if (skep_yaml_kind(map) == SKEP_YAML_MAP)
			read_table(r, map, gpu);
		else
			skep_reader_fail(r, map, NULL, "expected a table as {file, of, type, source}");
	}
}

static void read_profile(struct skep_reader *r, struct skep_gpu *ret)
{
	const struct skep_yaml_node *root = skep_yaml_root(r->yaml);
	skep_label_read(r, root, ret->name, sizeof ret->name, ret->source, sizeof ret->source);
	ret->flops = skep_read_quantity(r, root, "flops", SKEP_SPEED, 1e6, 1e18, NAN);
	ret->efficiency = skep_read_number(r, root, "efficiency", 1e-6, 1.0, NAN);
	ret->memory_Bps = skep_read_quantity(r, root, "memory_bandwidth", SKEP_BANDWIDTH, 1e6, 1e16, NAN);
	ret->memory_bytes = skep_read_quantity(r, root, "memory", SKEP_BYTES, 1e6, 1e16, NAN);
	ret->overhead_s = skep_read_quantity(r, root, "overhead", SKEP_TIME, 0.0, 60.0, NAN);
	ret->uncertainty = skep_read_number(r, root, "uncertainty", 0.0, 1.0, SKEP_GPU_UNCERTAINTY);
	read_peaks(r, root, ret);
	read_reached(r, root, ret);
	read_tables(r, root, ret);
	skep_reader_close_map(r, root);
}

bool skep_gpu_read(const char *from, const char *name, struct skep_gpu *ret, struct skep_diag *reterr)
{
	char path[512], *text;
	size_t size;
	*ret = (struct skep_gpu){.speed = 1};
	if (!find(reterr->files, from, name, path, sizeof path)) {
		fail_unknown(from, name, reterr);
		return false;
	}
	if (!skep_file_read(path, SKEP_FILE_BYTES_MAX, &text, &size, reterr))
		return false;
	snprintf(ret->path, sizeof ret->path, "%s", path);
	struct skep_reader r = {skep_yaml_parse(path, text, size, reterr), reterr};
	if (r.yaml)
		read_profile(&r, ret);
	skep_yaml_destroy(r.yaml);
	free(text);
	if (reterr->set)
		skep_gpu_finish(ret);
	return !reterr->set;
}

bool skep_gpu_is_there(const char *from, const char *name, struct skep_diag *reterr)
{
	struct skep_gpu gpu;
	struct skep_diag diag = skep_diag_beside(reterr), unknown = skep_diag_beside(reterr);
	if (skep_gpu_read(from, name, &gpu, &diag)) {
		skep_gpu_finish(&gpu);
		return true;
	}
	skep_diag_set(&unknown, from, 0, 0, NULL, "%s", ""); /* cut as that of the profile's would be */
	if (strcmp(diag.file, unknown.file) == 0)
		return skep_fail(reterr, "--gpu %.40s: %s", name, diag.message);
	*reterr = diag;
	return false;
}

void skep_gpu_finish(struct skep_gpu *gpu)
{
	for (uint32_t i = 0; i < gpu->tables; i++)
		skep_gpu_table_finish(&gpu->table[i]);
	skep_stage_table_finish(&gpu->stages);
	free(gpu->table);
	gpu->table = NULL;
	gpu->tables = 0;
}

void skep_gpu_scale(struct skep_gpu *gpu, double speed)
{
	char base[sizeof gpu->name];
	assert(speed > 0 && gpu->stages.rows == 0);
	memcpy(base, gpu->name, sizeof base);
	snprintf(gpu->name, sizeof gpu->name, "%.16s x%.4g", base, speed);
	gpu->speed *= speed;
	gpu->flops *= speed;
	gpu->memory_Bps *= speed;
	gpu->overhead_s /= speed;
	for (uint32_t i = 0; i < SKEP_TYPES; i++)
		gpu->peak[i] *= speed;
}

static struct skep_gpu_table *read_rows(const struct skep_gpu *gpu, struct skep_gpu_table *t, struct skep_diag *reterr)
{
	if (t->rows > 0)
		return t;
	if (!skep_gpu_table_read(t, reterr))
		return NULL;
	for (uint32_t i = 0; i < t->rows; i++)
		for (uint32_t c = 0; c < SKEP_COLUMNS; c++)
			t->row[i].seconds[c] /= gpu->speed;
	return t;
}

struct skep_gpu_table *skep_gpu_load(
	struct skep_gpu *gpu, enum skep_table_kind kind, enum skep_type type, struct skep_diag *reterr)
{
	for (uint32_t i = 0; i < gpu->tables; i++) {
		struct skep_gpu_table *t = &gpu->table[i];
		if (t->kind == kind && t->type == type)
			return read_rows(gpu, t, reterr);
	}
	return NULL;
}

struct skep_stage_table *skep_gpu_load_stages(struct skep_gpu *gpu, struct skep_diag *reterr)
{
	struct skep_stage_table *t = &gpu->stages;
	if (t->path[0] == 0 || t->rows > 0)
		return t->path[0] != 0 ? t : NULL;
	if (!skep_stage_table_read(t, reterr))
		return NULL;
	for (uint32_t i = 0; i < t->rows; i++)
		for (uint32_t c = 0; c < SKEP_STAGE_COLUMNS; c++)
			t->row[i].seconds[c] /= gpu->speed;
	return t;
}

bool skep_gpu_has_type(const struct skep_gpu *gpu, enum skep_type type)
{
	return gpu->peak[type] > 0; /* read_table() asks for the peak of each table's type */
}

enum skep_type skep_gpu_training_type(const struct skep_gpu *gpu)
{
	if (gpu->peak[SKEP_TYPE_BF16] > 0)
		return SKEP_TYPE_BF16;
	return gpu->peak[SKEP_TYPE_FP16] > 2 * gpu->flops ? SKEP_TYPE_FP16 : SKEP_TYPE_FP32;
}

/* ---- time -------------------------------------------------------------------------------------------------------- */

double skep_gpu_busy_s(const struct skep_gpu *gpu, double flop, double bytes)
{
	assert(flop >= 0 && bytes >= 0);
	return fmax(flop / (gpu->peak[gpu->type] * gpu->reached[gpu->type]), bytes / gpu->memory_Bps);
}

uint64_t skep_gpu_time_ns(const struct skep_gpu *gpu, double flop, double bytes)
{
	double ns = 1e9 * (gpu->overhead_s + skep_gpu_busy_s(gpu, flop, bytes));
	if (ns < 1)
		return 1;
	return ns < (double)SKEP_NS_MOST ? (uint64_t)(ns + 0.5) : SKEP_NS_MOST;
}
