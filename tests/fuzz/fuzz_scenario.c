/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_scenario.c - any bytes as a file that a person wrote: refused with a sound diagnosis, or read and read back the same.
 *
 * The first line of the input says as what the rest is read: scenario, model, topology, matrix, table, law, prices, or set (an
 * option on a sound scenario), sets (lines of a shipped scenario and options, with tabs between them), vary or seeds (options of
 * a sweep, one a line; among those of vary "seeds:" begins one of seeds), find (names of files, each with the file that names it,
 * a tab between them, looked for in a copy of folders of another machine); without such a line it is read as each of the files.
 * Runs from the root of the tree, whose models and topologies the scenarios name.
 *
 *   clang -DSKEP_LIBFUZZER -fsanitize=fuzzer,address,undefined ...    then: fuzz_scenario tests/fuzz/corpus
 *   without SKEP_LIBFUZZER it is a plain program that takes the files of its arguments one after the other
 */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/files/files.h"
#include "base/files/lines.h"
#include "scenarios/describe/describe.h"
#include "scenarios/plan/law.h"
#include "scenarios/read/job.h"
#include "scenarios/read/planned.h"
#include "scenarios/read/pool.h"
#include "scenarios/read/scenario.h"
#include "scenarios/read/sources.h"
#include "scenarios/shard/shard.h"
#include "scenarios/vary/vary.h"
#include "tests/fuzz/fuzz.h"
#include "topologies/read/price.h"

enum { SETS_MAX = 32 };

static const char *const base_text = "name: base\n"
				     "model: {file: models/square-mlp.yaml, stages: 2}\n"
				     "cluster: {topology: topologies/one-host.yaml, allocation: {method: strided}}\n"
				     "schedule: {global_batch: 64, microbatch: 8}\n"
				     "train: {optimizer: {name: sgd}, until: {steps: 10}}\n";

static bool read_scenario(const char *text, size_t size, const char *set, struct skep_scenario *ret)
{
	char path[64];
	int fd;
	struct skep_diag diag = {0};
	struct skep_scenario_options options = {.set = &set, .sets = set ? 1 : 0};
	make_file(text, size, &fd, path, sizeof path);
	bool ok = skep_scenario_read(path, &options, ret, &diag);
	close(fd);
	must(ok == !diag.set);
	if (!ok)
		check_diag(&diag);
	return ok;
}

/* What `skep check` says of it is plain text, or JSON; a real run of it may be refused as well. */
static void try_described(const struct skep_scenario *s)
{
	for (int json = 0; json < 2; json++) {
		char *text = NULL;
		size_t size;
		FILE *out = open_memstream(&text, &size);
		skep_scenario_describe(s, NULL, json, out);
		fclose(out);
		must(strlen(text) == size);
		for (size_t i = 0; i < size; i++)
			must((uint8_t)text[i] >= 0x20 || text[i] == '\n' || (json && text[i] == '\t'));
		cJSON *root = json ? cJSON_Parse(text) : NULL;
		must(root || !json);
		cJSON_Delete(root);
		free(text);
	}
	for (int pace = 0; pace < 2; pace++) {
		const char *key[2];
		struct skep_diag diag = {0};
		must(skep_scenario_runs(s, pace, key, &diag) == !diag.set);
	}
}

/* A model that several ranks can share has a part for each. */
static void try_shards(const struct skep_scenario *s)
{
	uint32_t ranks = skep_shard_degree(s);
	for (uint32_t rank = 0; ranks > 1 && ranks <= 16 && rank < ranks; rank++) {
		struct skep_model shard;
		if (skep_model_refuses_shard(&s->model, ranks) != NULL)
			return;
		must(skep_model_shard(&s->model, rank, ranks, &shard) && shard.layers == s->model.layers);
		skep_model_finish(&shard);
	}
}

/* What those who take it up ask: files, machines, lies, prices, tables. */
static void try_asked(const struct skep_scenario *s)
{
	const char *path;
	for (uint32_t i = 0; (path = skep_scenario_source(s, i)) != NULL; i++) {
		struct skep_source source;
		must(!skep_source_read(path, &source) || source.text == NULL || strlen(source.text) <= source.bytes);
		skep_source_finish(&source);
	}
	for (uint32_t i = 0; i < s->plan.workers; i++) {
		struct skep_byzantine byzantine = skep_scenario_byzantine(s, i);
		must(byzantine.attack == SKEP_ATTACK_NONE || (s->liar && s->liar[i]));
		must(skep_pool_machine(s, i) < skep_pool_machines(s));
		double usd = skep_topology_egress_usd(&s->topology, i, (i + 1) % s->plan.workers, 1e9);
		must(isnan(usd) || usd >= 0);
	}
	try_shards(s);
	if (s->planned)
		must(skep_planned_method_name(s->planned->method)[0] && skep_aim_name(s->planned->aim)[0]);
}

static bool same(const struct skep_scenario *a, const struct skep_scenario *b)
{
	const struct skep_plan *p = &a->plan, *q = &b->plan;
	bool plan = p->workers == q->workers && p->stages == q->stages && p->microbatches == q->microbatches &&
	            p->in_flight == q->in_flight && p->rounds == q->rounds && p->seed == q->seed &&
	            p->liveness.heartbeat_ns == q->liveness.heartbeat_ns &&
	            p->liveness.fence_after_ns == q->liveness.fence_after_ns &&
	            p->until.target_loss_nano == q->until.target_loss_nano;
	return plan && strcmp(a->name, b->name) == 0 && a->samples == b->samples && a->arithmetic == b->arithmetic &&
	       memcmp(&a->optimizer, &b->optimizer, sizeof a->optimizer) == 0 && a->compute_scale == b->compute_scale &&
	       memcmp(a->first_stage_of, b->first_stage_of, p->workers * sizeof *a->first_stage_of) == 0 &&
	       memcmp(a->op_time, b->op_time, p->stages * sizeof *a->op_time) == 0;
}

/* What the database keeps of a scenario must be that scenario. */
static void try_scenario(const char *text, size_t size, const char *set)
{
	struct skep_scenario s, again;
	if (!read_scenario(text, size, set, &s))
		return;
	try_described(&s);
	try_asked(&s);
	must(s.plan.stages <= s.plan.workers && s.plan.stages <= s.model.layers && s.plan.in_flight > 0);
	must((uint64_t)s.samples * s.plan.microbatches == s.batch &&
		s.plan.liveness.fence_after_ns >= 2 * s.plan.liveness.heartbeat_ns);
	must(read_scenario(s.text, strlen(s.text), NULL, &again) && same(&s, &again));
	skep_scenario_finish(&s);
	skep_scenario_finish(&again);
}

static void try_model(const char *path)
{
	struct skep_diag diag = {0};
	struct skep_model model;
	bool ok = skep_model_read(path, &model, &diag);
	must(ok == !diag.set);
	if (!ok)
		check_diag(&diag);
	else
		skep_model_finish(&model);
}

static void try_topology(const char *path)
{
	struct skep_diag diag = {0};
	struct skep_topology topology;
	bool ok = skep_topology_read(path, &topology, &diag);
	must(ok == !diag.set);
	if (!ok)
		check_diag(&diag);
	else
		skep_topology_finish(&topology);
}

static void try_matrix(const char *path, bool allow_holes)
{
	struct skep_diag diag = {0};
	double *value;
	uint32_t n;
	bool ok = skep_matrix_read(path, allow_holes, &n, &value, &diag);
	must(ok == !diag.set && ok == (value != NULL));
	if (!ok)
		check_diag(&diag);
	for (size_t i = 0; ok && i < (size_t)n * n; i++)
		must(isnan(value[i]) ? allow_holes : value[i] >= 0 && isfinite(value[i]));
	free(value);
}

static void try_table(const char *path, enum skep_table_kind kind)
{
	struct skep_diag diag = {0};
	struct skep_gpu_table table = {.kind = kind};
	snprintf(table.path, sizeof table.path, "%s", path);
	bool ok = skep_gpu_table_read(&table, &diag);
	must(ok == !diag.set && ok == (table.rows > 0));
	if (!ok)
		check_diag(&diag);
	for (uint32_t i = 0; i < table.rows; i++)
		must(table.row[i].seconds[0] > 0 && isfinite(table.row[i].seconds[0]) && isfinite(table.row[i].flop));
	skep_gpu_table_finish(&table);
}

static void try_set(const char *bytes, size_t size)
{
	char *set = strndup(bytes, size);
	must(set);
	try_scenario(base_text, strlen(base_text), set);
	free(set);
}

/* An option of which a job does not depend leaves it the same. */
static void try_job(const char *file, const char *set, const struct skep_scenario *s)
{
	char key[256];
	struct skep_scenario plain;
	struct skep_diag diag = {0};
	struct skep_scenario_options options = {0};
	snprintf(key, sizeof key, "%.*s", (int)strcspn(set, "="), set);
	if (skep_job_counts(key) || !skep_scenario_read(file, &options, &plain, &diag))
		return;
	must(plain.job == s->job);
	skep_scenario_finish(&plain);
}

/* A shipped scenario with so many options, which are its other words. */
static void try_line(char *line)
{
	const char *set[SETS_MAX];
	struct skep_diag diag = {0};
	struct skep_scenario_options options = {.set = set};
	struct skep_scenario s;
	char *rest = line, *file = strsep(&rest, "\t"), *word;
	if (strncmp(file, "scenarios/", 10) != 0 || strstr(file, "..") != NULL)
		return;
	while (options.sets < SETS_MAX && (word = strsep(&rest, "\t")) != NULL)
		set[options.sets++] = word;
	bool ok = skep_scenario_read(file, &options, &s, &diag);
	must(ok == !diag.set);
	if (!ok) {
		check_diag(&diag);
		return;
	}
	try_described(&s);
	try_asked(&s);
	if (options.sets == 1)
		try_job(file, set[0], &s);
	skep_scenario_finish(&s);
}

static void try_lines(const char *bytes, size_t size, void (*try_one)(char *line))
{
	char *text = strndup(bytes, size), *rest = text, *line;
	must(text);
	while ((line = strsep(&rest, "\n")) != NULL)
		try_one(line);
	free(text);
}

static void try_stages(const char *path)
{
	struct skep_diag diag = {0};
	struct skep_stage_table table = {0};
	snprintf(table.path, sizeof table.path, "%s", path);
	bool ok = skep_stage_table_read(&table, &diag);
	must(ok == !diag.set && ok == (table.rows > 0));
	if (!ok)
		check_diag(&diag);
	for (uint32_t i = 0; i < table.rows; i++) {
		struct skep_measured_stage between = table.row[i];
		double seconds;
		bool exact;
		between.microbatch++;
		for (uint32_t c = 0; c < SKEP_STAGE_COLUMNS; c++) {
			bool known = !isnan(table.row[i].seconds[c]);
			must(skep_stage_table_look(&table, &table.row[i], c, &seconds, &exact) >= known);
			must(!skep_stage_table_look(&table, &between, c, &seconds, &exact) || seconds > 0);
		}
	}
	skep_stage_table_finish(&table);
}

/* What is read is written and read back. */
static void try_law(const char *path)
{
	struct skep_diag diag = {0};
	struct skep_law law, again;
	char *text = NULL, copy[64];
	size_t size;
	int fd;
	bool ok = skep_law_read(path, &law, &diag);
	must(ok == !diag.set);
	if (!ok) {
		check_diag(&diag);
		return;
	}
	double at[SKEP_LAW_AXES], loss;
	law.size = law.size_least; /* of `powers` alone: it is asked about a model of that size */
	for (int side = 0; side < 2; side++) {
		char how[256];
		memcpy(at, side ? law.most : law.least, sizeof at);
		loss = skep_law_loss(&law, at);
		must(!isnan(loss) && loss <= law.first);
		must(!skep_law_leaves(&law, law.model, at, how, sizeof how));
	}
	if (law.terms > 0) /* is written by people alone */
		return;
	FILE *out = open_memstream(&text, &size);
	skep_law_write(&law, out);
	fclose(out);
	make_file(text, size, &fd, copy, sizeof copy);
	must(skep_law_read(copy, &again, &diag));
	must(strcmp(law.model, again.model) == 0);
	close(fd);
	free(text);
}

static void try_prices(const char *path, bool chosen)
{
	struct skep_diag diag = {0};
	struct skep_price_series series;
	bool ok = skep_price_read(path, chosen ? "p3.2xlarge" : "", chosen ? "us-east-1a" : "", &series, &diag);
	must(ok == !diag.set && (ok ? series.steps > 0 : series.step == NULL));
	if (!ok) {
		check_diag(&diag);
		return;
	}
	for (size_t i = 0; i < series.steps; i++) {
		must(i == 0 || series.step[i - 1].at_ns <= series.step[i].at_ns);
		must(series.step[i].usd_per_h >= 0 && isfinite(series.step[i].usd_per_h));
	}
	skep_time first = series.step[0].at_ns;
	must(skep_price_cost_usd(&series, first, first + 3600000000000u) >= 0);
	skep_price_finish(&series);
}

static void try_vary(const char *bytes, size_t size, bool seeds)
{
	struct skep_vary vary = {0};
	struct skep_diag diag = {0};
	char *text = strndup(bytes, size), name[128];
	must(text);
	bool ok = true;
	for (char *rest = text, *line; ok && (line = strsep(&rest, "\n")) != NULL && (rest != NULL || *line != 0);) {
		bool of_seeds = seeds || strncmp(line, "seeds:", 6) == 0;
		ok = of_seeds ? skep_vary_add_seeds(&vary, line + (seeds ? 0 : 6), &diag)
		              : skep_vary_add(&vary, line, &diag);
		must(ok == !diag.set);
	}
	ok = ok && skep_vary_check(&vary, &diag);
	if (!ok)
		check_diag(&diag);
	uint32_t combinations = ok ? skep_vary_combinations(&vary) : 0;
	must(!ok || (combinations > 0 && combinations <= SKEP_VARY_COMBINATIONS_MAX));
	for (uint32_t i = 0; i < combinations && i < 20; i++)
		skep_vary_name(&vary, combinations - 1 - i, name, sizeof name);
	for (uint32_t i = 0; ok && vary.keys > 0 && i < vary.key[0].values && i < 3; i++) {
		char set[256]; /* a value that can be, by the scenario's reader */
		if (snprintf(set, sizeof set, "%s=%s", vary.key[0].key, vary.key[0].value[i]) < (int)sizeof set)
			try_scenario(base_text, strlen(base_text), set);
	}
	skep_vary_finish(&vary);
	free(text);
}

/* As the name stands, and in a copy of folders: there nothing above them is found. */
static void try_find(char *line)
{
	char root[2048], found[4096], *text, *name = line, *from = strsep(&name, "\t");
	size_t size;
	must(getcwd(root, sizeof root - sizeof "/tests/data") != NULL);
	strcat(root, "/tests/data");
	for (int copied = 0; name != NULL && copied < 2; copied++) {
		struct skep_diag diag = {0};
		struct skep_files files = {.root = copied ? root : NULL, .folder = "/hf"};
		char whole[4096];
		snprintf(whole, sizeof whole, "%s%s", copied ? root : "", from);
		if (skep_file_find(&files, whole, name, found, sizeof found)) {
			must(files.count == 1 && strcmp(files.asked[0].path, found) == 0);
			must(!copied || (strncmp(found, root, strlen(root)) == 0 && strstr(found, "/../") == NULL));
			diag.files = &files;
			bool read = skep_file_read(found, 1 << 12, &text, &size, &diag);
			must(read == !diag.set && (!read || strlen(text) == size));
			free(text);
		}
		must(skep_files_here(&files, found, sizeof found) && (found[0] != 0) == copied);
		skep_files_finish(&files);
	}
	struct skep_lines lines;
	struct skep_diag unread = {0};
	if (name != NULL && skep_lines_open(&lines, name, 1 << 12, &unread))
		skep_lines_close(&lines);
	else if (name != NULL)
		check_diag(&unread);
	if (name != NULL && !skep_file_read(name, 1 << 12, &text, &size, &(struct skep_diag){0}))
		must(text == NULL);
	else if (name != NULL)
		free(text);
	must(name == NULL || !skep_program_find(name) || strcmp(name, "/") != 0);
}

/* An empty word stands for each kind of file in turn. False: no such kind. */
static bool try_as(const char *word, const char *bytes, size_t size)
{
	char path[64];
	int fd;
	bool all = word[0] == 0, scenario = all || strcmp(word, "scenario") == 0,
	     model = all || strcmp(word, "model") == 0;
	bool topology = all || strcmp(word, "topology") == 0, matrix = all || strcmp(word, "matrix") == 0;
	bool set = strcmp(word, "set") == 0, table = all || strcmp(word, "table") == 0;
	bool law = all || strcmp(word, "law") == 0, prices = all || strcmp(word, "prices") == 0;
	bool vary = strcmp(word, "vary") == 0, seeds = strcmp(word, "seeds") == 0, sets = strcmp(word, "sets") == 0;
	bool find = strcmp(word, "find") == 0;
	make_file(bytes, size, &fd, path, sizeof path);
	if (law)
		try_law(path);
	if (prices)
		try_prices(path, size % 2 == 0);
	if (vary || seeds)
		try_vary(bytes, size, seeds);
	if (scenario)
		try_scenario(bytes, size, NULL);
	if (model)
		try_model(path);
	if (topology)
		try_topology(path);
	if (matrix)
		try_matrix(path, size % 2 == 0);
	for (int kind = 0; table && kind <= SKEP_TABLE_LAYERS; kind++)
		try_table(path, (enum skep_table_kind)kind);
	if (table)
		try_stages(path);
	if (set)
		try_set(bytes, size);
	if (sets)
		try_lines(bytes, size, try_line);
	if (find)
		try_lines(bytes, size, try_find);
	close(fd);
	return scenario || model || topology || matrix || set || sets || table || law || prices || vary || seeds ||
	       find;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *bytes = (const char *)data, *newline = size > 0 ? memchr(bytes, '\n', size) : NULL;
	char word[16] = "";
	bool named = newline && newline > bytes && newline - bytes < (ptrdiff_t)sizeof word;
	if (named)
		memcpy(word, bytes, (size_t)(newline - bytes));
	if (!named || !try_as(word, newline + 1, size - (size_t)(newline + 1 - bytes)))
		try_as("", bytes, size);
	return 0;
}

#ifndef SKEP_LIBFUZZER
static bool at_root(void)
{
	struct skep_scenario s;
	bool ok = read_scenario(base_text, strlen(base_text), NULL, &s);
	if (ok)
		skep_scenario_finish(&s);
	return ok;
}

int main(int argc, char **argv)
{
	bool ok = argc > 1;
	for (int i = 1; i < argc; i++) {
		argv[i] = realpath(argv[i], NULL); /* before the working directory changes */
		must(argv[i]);
	}
	if (!at_root() && (chdir("..") != 0 || !at_root())) {
		fprintf(stderr, "the sound scenario is refused: run this from the root of the tree or from tests/\n");
		return 1;
	}
	for (int i = 1; i < argc; i++) {
		ok = fuzz_file(argv[i]) && ok;
		free(argv[i]);
	}
	printf("%d inputs\n", argc - 1);
	return ok ? 0 : 1;
}
#endif
