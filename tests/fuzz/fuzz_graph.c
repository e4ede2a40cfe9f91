/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_graph.c - any bytes as a graph for `skep sim --graph`: refused with a sound diagnosis and nothing left, or a graph that
 * holds together: what it names is there, written again it is read as the same, and it can be simulated without a time that goes
 * backwards. Runs from the root of the tree, for the scenario that it simulates on.
 *
 *   clang -DSKEP_LIBFUZZER -fsanitize=fuzzer,address,undefined ...    then: fuzz_graph FOLDER
 *   without SKEP_LIBFUZZER it is a plain program: the files of its arguments, each also in damaged versions
 */
#include "sim/graph/graph.h"
#include "tests/fuzz/damage.h"

#define DAMAGES 1500
#define SCENARIO "scenarios/two-stages.yaml"

static struct {
	unsigned taken, refused, played;
} tried; /* for the last line */

static void check_list(const struct skep_graph *graph, struct skep_graph_list list, uint32_t most)
{
	must(list.count == 0 || list.first + list.count <= graph->links);
	for (uint32_t i = 0; i < list.count; i++)
		must(graph->link[list.first + i] < most);
}

static void check_graph(const struct skep_graph *graph)
{
	must(graph->nodes <= SKEP_GRAPH_NODES_MAX && graph->workers > 0);
	for (uint32_t n = 0; n < graph->nodes; n++) {
		const struct skep_graph_node *of = &graph->node[n];
		must(skep_graph_node_find(graph, skep_graph_node_name(graph, n)) == n);
		must(of->kind < SKEP_GRAPH_KINDS && of->place <= graph->workers && of->to <= graph->workers);
		must(of->kind != SKEP_GRAPH_OP || (of->place < graph->workers && of->op.lane < SKEP_LANES));
		must(of->follows == SKEP_GRAPH_NONE || of->follows < graph->nodes);
		check_list(graph, of->after, graph->nodes);
		check_list(graph, of->reads, graph->tensors);
		check_list(graph, of->writes, graph->tensors);
		check_list(graph, of->adds, graph->tensors);
	}
}

static char *print(const struct skep_graph *graph, size_t *ret_size)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, ret_size);
	must(out != NULL && skep_graph_write_json(graph, out));
	must(fclose(out) == 0);
	return text;
}

/* What is read from what was written is written so again. */
static void check_again(const struct skep_graph *graph)
{
	struct skep_graph other;
	struct skep_diag diag = {0};
	size_t size, again_size;
	char *text = print(graph, &size);
	must(skep_graph_read_text("again", text, size, &other, &diag));
	char *again = print(&other, &again_size);
	must(size == again_size && memcmp(text, again, size) == 0);
	free(text);
	free(again);
	skep_graph_finish(&other);
}

static void play(struct skep_graph *graph)
{
	struct skep_scenario scenario;
	struct skep_diag diag = {0};
	must(skep_scenario_read(SCENARIO, NULL, &scenario, &diag));
	bool played = skep_graph_play(graph, &scenario, &diag);
	must(played == !diag.set);
	tried.played += played;
	if (!played)
		check_diag(&diag);
	for (uint32_t n = 0; played && n < graph->nodes; n++)
		must(graph->node[n].open || graph->node[n].begin_ns <= graph->node[n].end_ns);
	skep_scenario_finish(&scenario);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct skep_graph graph;
	struct skep_diag diag = {0};
	char *text = malloc(size + 1);
	must(text != NULL);
	memcpy(text, data, size);
	text[size] = '\0';
	bool read = skep_graph_read_text("graph.json", text, size, &graph, &diag);
	must(read == !diag.set);
	tried.taken += read;
	tried.refused += !read;
	if (read) {
		check_graph(&graph);
		check_again(&graph);
		play(&graph);
		skep_graph_finish(&graph);
	} else {
		check_diag(&diag);
	}
	free(text);
	return 0;
}

#ifndef SKEP_LIBFUZZER
int main(int argc, char **argv)
{
	bool ok = damage_files(argv + 1, argc - 1, DAMAGES);
	printf("%u taken, %u refused, %u simulated\n", tried.taken, tried.refused, tried.played);
	return ok && tried.taken > 0 && tried.refused > 0 && tried.played > 0 ? 0 : 1;
}
#endif
