/* SPDX-License-Identifier: Apache-2.0
 *
 * graph.c - see graph.h. What is wrong is found before anything is written.
 */
#include "commands/graph.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/outputs.h"
#include "base/files/replace.h"
#include "base/json.h"
#include "commands/output.h"
#include "planning/problem/resolve.h"
#include "sim/graph/graph.h"

static bool is_dot(const char *path)
{
	const char *ending = strrchr(path, '.');
	return ending && (strcmp(ending, ".dot") == 0 || strcmp(ending, ".gv") == 0);
}

static bool write_graph(const struct skep_graph *graph, const char *path, struct skep_diag *reterr)
{
	struct skep_outputs outputs = {.diag = reterr};
	FILE *file = skep_outputs_begin(&outputs, path);
	if (file && !(is_dot(path) ? skep_graph_write_dot(graph, file) : skep_graph_write_json(graph, file)))
		skep_fail(reterr, "%s: cannot be written whole", path);
	return skep_outputs_commit(&outputs);
}

/* ---- skep plan --graph ---------------------------------------------------------------------------------------------------- */

static uint32_t count_kind(const struct skep_graph *graph, enum skep_graph_kind kind)
{
	uint32_t count = 0;
	for (uint32_t n = 0; n < graph->nodes; n++)
		count += graph->node[n].kind == kind;
	return count;
}

static bool print_made(const struct skep_graph *graph, const char *path, bool json)
{
	uint32_t ops = count_kind(graph, SKEP_GRAPH_OP), messages = count_kind(graph, SKEP_GRAPH_SEND);
	cJSON *root = json ? cJSON_CreateObject() : NULL;
	if (!json) {
		printf("%s: %" PRIu32 " round%s, to %.6f s: %" PRIu32 " operations and %" PRIu32 " messages on %" PRIu32
		       " workers, %" PRIu32 " tensors\n",
			path, graph->rounds, graph->rounds == 1 ? "" : "s", 1e-9 * (double)graph->until_ns, ops,
			messages, graph->workers, graph->tensors);
		return true;
	}
	if (!root)
		return false;
	skep_json_add_text(root, "graph", path);
	skep_json_add_count(root, "rounds", graph->rounds);
	skep_json_add_count(root, "until_ns", graph->until_ns);
	skep_json_add_count(root, "operations", ops);
	skep_json_add_count(root, "messages", messages);
	skep_json_add_count(root, "tensors", graph->tensors);
	return skep_json_print(root, stdout);
}

enum status skep_graph_to_file(const struct arguments *arguments, const char *path, uint32_t rounds)
{
	struct arguments a = *arguments;
	struct skep_scenario scenario;
	struct skep_graph graph;
	struct skep_diag error = {0};
	a.output = path;
	if (!skep_output_ready(&a, NULL) || !skep_arguments_scenario(&a, &scenario))
		return STATUS_BAD_INPUT;
	enum status status = STATUS_BAD_INPUT;
	if (skep_output_no_source(&a, &scenario) && skep_graph_make(&scenario, rounds, &graph, &error)) {
		if (write_graph(&graph, path, &error))
			status = print_made(&graph, path, a.json) ? STATUS_DONE : STATUS_FAILED;
		skep_graph_finish(&graph);
	}
	if (error.set)
		skep_report_diag(STATUS_BAD_INPUT, &error);
	skep_scenario_finish(&scenario);
	return status;
}

/* ---- skep sim --graph ----------------------------------------------------------------------------------------------------- */

/* Of the scenario whose text the graph has, files are found as they were then. */
static bool read_scenario(
	const struct arguments *a, const struct skep_graph *graph, struct skep_scenario *ret, struct skep_diag *reterr)
{
	struct skep_scenario_options options = a->scenario;
	options.details = stderr;
	if (a->positionals > 0)
		return skep_arguments_scenario(a, ret);
	return skep_scenario_read_text(graph->scenario_path, graph->scenario_text, strlen(graph->scenario_text),
		       &options, ret, reterr) &&
	       skep_resolve(ret, &options, reterr);
}

static bool play(const struct arguments *a, struct skep_graph *graph, const struct skep_scenario *scenario,
	struct skep_diag *reterr)
{
	struct skep_graph_figures figures;
	struct skep_graph_times *file = malloc((graph->nodes + 1u) * sizeof *file);
	for (uint32_t n = 0; file && n < graph->nodes; n++)
		file[n] =
			(struct skep_graph_times){graph->node[n].begin_ns, graph->node[n].end_ns, graph->node[n].open};
	bool good = file != NULL && skep_graph_play(graph, scenario, reterr);
	if (good && !skep_graph_figures_make(graph, file, &figures))
		good = false;
	free(file);
	if (!good)
		return reterr->set ? false : skep_fail(reterr, "not enough memory to simulate the graph");
	good = !a->output || write_graph(graph, a->output, reterr);
	if (good && a->json)
		good = skep_graph_figures_print_json(graph, &figures, stdout) || skep_fail(reterr, "not enough memory");
	else if (good)
		skep_graph_figures_print(graph, &figures, stdout);
	skep_graph_figures_finish(&figures);
	return good;
}

enum status skep_graph_from_file(const struct arguments *a, const char *path)
{
	struct skep_scenario scenario;
	struct skep_graph graph;
	struct skep_diag error = {0};
	enum status status = STATUS_BAD_INPUT;
	if (a->output &&
		(!skep_replace_not_read(a->output, path, "the graph", &error) || !skep_output_ready(a, NULL))) {
		if (error.set)
			skep_report_diag(STATUS_BAD_INPUT, &error);
		return STATUS_BAD_INPUT;
	}
	if (!skep_graph_read(path, &graph, &error))
		return skep_report_diag(STATUS_BAD_INPUT, &error);
	if (read_scenario(a, &graph, &scenario, &error)) {
		if (skep_output_no_source(a, &scenario) && play(a, &graph, &scenario, &error))
			status = STATUS_DONE;
		skep_scenario_finish(&scenario);
	}
	if (error.set)
		skep_report_diag(STATUS_BAD_INPUT, &error);
	skep_graph_finish(&graph);
	return status;
}
