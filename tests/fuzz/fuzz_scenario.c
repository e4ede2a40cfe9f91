/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_scenario.c - any bytes as a file that a person wrote: refused with a sound diagnosis, or read and read back the same.
 *
 * The first line of the input says as what the rest is read: scenario, model, topology, matrix, or set (an option on
 * a sound scenario); without such a line it is read as each of the files. Runs from the root of the tree, whose
 * models and topologies the scenarios name.
 *
 *   clang -DSKEP_LIBFUZZER -fsanitize=fuzzer,address,undefined ...    then: fuzz_scenario tests/fuzz/corpus
 *   without SKEP_LIBFUZZER it is a plain program that takes the files of its arguments one after the other
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "scenarios/read/scenario.h"
#include "tests/fuzz/fuzz.h"

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

static bool same(const struct skep_scenario *a, const struct skep_scenario *b)
{
	const struct skep_plan *p = &a->plan, *q = &b->plan;
	bool plan = p->workers == q->workers && p->stages == q->stages && p->microbatches == q->microbatches &&
	            p->in_flight == q->in_flight && p->rounds == q->rounds && p->seed == q->seed &&
	            p->heartbeat_ns == q->heartbeat_ns && p->fence_after_ns == q->fence_after_ns &&
	            p->target_loss_nano == q->target_loss_nano;
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
	must(s.plan.stages <= s.plan.workers && s.plan.stages <= s.model.layers && s.plan.in_flight > 0);
	must((uint64_t)s.samples * s.plan.microbatches == s.batch && s.plan.fence_after_ns >= 2 * s.plan.heartbeat_ns);
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

static void try_stages(const char *path)
{
	struct skep_diag diag = {0};
	struct skep_stage_table table = {0};
	snprintf(table.path, sizeof table.path, "%s", path);
	bool ok = skep_stage_table_read(&table, &diag);
	must(ok == !diag.set && ok == (table.rows > 0));
	if (!ok)
		check_diag(&diag);
	skep_stage_table_finish(&table);
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
	make_file(bytes, size, &fd, path, sizeof path);
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
	close(fd);
	return scenario || model || topology || matrix || set || table;
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
