/* SPDX-License-Identifier: Apache-2.0
 *
 * write.c - a graph as JSON: one operation, message or tensor a line, so that an editor, grep and diff can work on it. Keys are
 * in docs/graphs.md.
 */
#include "sim/graph/graph.h"

#include <assert.h>
#include <inttypes.h>

#include "core/names.h"

#define NONE SKEP_GRAPH_NONE

static void put_text(FILE *out, const char *text)
{
	fputc('"', out);
	for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++) {
		if (*c == '\n')
			fputs("\\n", out);
		else if (*c < 0x20)
			fprintf(out, "\\u%04x", *c);
		else if (*c == '"' || *c == '\\')
			fprintf(out, "\\%c", *c);
		else
			fputc(*c, out);
	}
	fputc('"', out);
}

static void put_pair(FILE *out, const char *key, const char *text)
{
	fprintf(out, ", \"%s\": ", key);
	put_text(out, text);
}

static void put_place(const struct skep_graph *graph, FILE *out, const char *key, uint32_t place)
{
	char name[SKEP_GRAPH_PLACE_BYTES];
	put_pair(out, key, skep_graph_place_name(graph, place, name));
}

static void put_list(
	const struct skep_graph *graph, FILE *out, const char *key, struct skep_graph_list list, bool of_nodes)
{
	if (list.count > 0)
		fprintf(out, ", \"%s\": [", key);
	for (uint32_t i = 0; i < list.count; i++) {
		uint32_t number = graph->link[list.first + i];
		assert(number < (of_nodes ? graph->nodes : graph->tensors));
		fputs(i > 0 ? ", " : "", out);
		put_text(out, of_nodes ? skep_graph_node_name(graph, number) : skep_graph_tensor_name(graph, number));
	}
	if (list.count > 0)
		fputc(']', out);
}

static void put_count(FILE *out, const char *key, uint64_t count)
{
	fprintf(out, ", \"%s\": %" PRIu64, key, count);
}

/* What the compute model asks for beyond kind, stage, round and microbatch. */
static void put_model(FILE *out, const struct skep_op *op)
{
	bool own = op->kind == SKEP_OP_UNPACK_PART && op->in.generation == 0;
	bool inner = op->kind == SKEP_OP_BACKWARD && op->inner > 0;
	if (op->index > 0)
		put_count(out, "part", op->index);
	if (op->size > 0)
		put_count(out, "of", op->size);
	if (op->count > 0)
		put_count(out, "elements", op->count);
	if (inner)
		put_count(out, "inner", op->inner);
	if (op->recomputed)
		fputs(", \"recomputed\": true", out);
	if (own)
		fputs(", \"own\": true", out);
}

static void put_op(const struct skep_graph *graph, FILE *out, const struct skep_graph_node *of)
{
	assert(of->op.lane < SKEP_LANES && of->place < graph->workers);
	put_pair(out, "kind", skep_op_name(of->op.kind));
	put_place(graph, out, "place", of->place);
	put_pair(out, "lane", skep_lane_name(of->op.lane));
	put_count(out, "stage", of->op.stage);
	put_count(out, "round", of->op.round);
	put_count(out, skep_op_passes(of->op.kind) ? "microbatch" : "number", of->op.number);
	put_model(out, &of->op);
	put_count(out, "ns", of->duration_ns);
	if (of->timed_on != NONE)
		put_place(graph, out, "timed_on", of->timed_on);
}

static bool of_microbatch(uint8_t message)
{
	return message == SKEP_MESSAGE_FORWARD || message == SKEP_MESSAGE_BACKWARD || message == SKEP_MESSAGE_GRANT ||
	       message == SKEP_MESSAGE_FINISHED || message == SKEP_MESSAGE_INPUT || message == SKEP_MESSAGE_OUTPUT;
}

static void put_node(const struct skep_graph *graph, FILE *out, uint32_t node)
{
	static const char *const word[] = {
		[SKEP_GRAPH_DECISION] = "decision", [SKEP_GRAPH_LEAVE] = "leave", [SKEP_GRAPH_JOIN] = "join"};
	const struct skep_graph_node *of = &graph->node[node];
	fputs("{\"id\": ", out);
	put_text(out, skep_graph_node_name(graph, node));
	if (of->kind == SKEP_GRAPH_OP) {
		put_op(graph, out, of);
	} else if (of->kind == SKEP_GRAPH_SEND) {
		put_pair(out, "kind", "send");
		put_pair(out, "message", skep_message_name(of->message));
		put_place(graph, out, "from", of->place);
		put_place(graph, out, "to", of->to);
		if (of->stage != (uint16_t)SKEP_NO_STAGE)
			put_count(out, "stage", of->stage);
		put_count(out, "round", of->round);
		put_count(out, of_microbatch(of->message) ? "microbatch" : "number", of->number);
	} else {
		put_pair(out, "kind", word[of->kind]);
		put_place(graph, out, "place", of->place);
	}
	if (of->at_ns > 0)
		put_count(out, "at_ns", of->at_ns);
	put_list(graph, out, "after", of->after, true);
	if (of->follows != NONE)
		put_pair(out, "follows", skep_graph_node_name(graph, of->follows));
	put_list(graph, out, "reads", of->reads, false);
	put_list(graph, out, "writes", of->writes, false);
	put_list(graph, out, "adds", of->adds, false);
	if (of->open) {
		fputs(", \"open\": true", out);
	} else {
		put_count(out, "begin_ns", of->begin_ns);
		put_count(out, "end_ns", of->end_ns);
	}
	fputc('}', out);
}

static void put_places(const struct skep_graph *graph, FILE *out)
{
	for (uint32_t i = 0; i < graph->workers; i++) {
		const struct skep_graph_place *place = &graph->place[i];
		fprintf(out, "{\"place\": \"worker %u\"", i);
		if (place->gpu[0] != '\0')
			put_pair(out, "gpu", place->gpu);
		if (place->site[0] != '\0')
			put_pair(out, "site", place->site);
		if (place->stage != NONE)
			put_count(out, "stage", place->stage);
		fputs("},\n", out);
	}
	fputs("{\"place\": \"directory\"}\n],\n\"tensors\": [\n", out);
}

bool skep_graph_write_json(const struct skep_graph *graph, FILE *out)
{
	fprintf(out, SKEP_GRAPH_HEAD " %d,\n\"scenario\": {\"path\": ", SKEP_GRAPH_VERSION);
	put_text(out, graph->scenario_path);
	fputs(", \"text\": ", out);
	put_text(out, graph->scenario_text);
	fprintf(out, "},\n\"rounds\": %u,\n\"until_ns\": %" PRIu64 ",\n\"places\": [\n", graph->rounds,
		graph->until_ns);
	put_places(graph, out);
	for (uint32_t t = 0; t < graph->tensors; t++) {
		fputs("{\"id\": ", out);
		put_text(out, skep_graph_tensor_name(graph, t));
		put_count(out, "bytes", graph->tensor[t].bytes);
		if (graph->tensor[t].place != NONE)
			put_place(graph, out, "place", graph->tensor[t].place);
		fputs(t + 1 < graph->tensors ? "},\n" : "}\n", out);
	}
	fputs("],\n\"operations\": [\n", out);
	for (uint32_t n = 0; n < graph->nodes; n++) {
		put_node(graph, out, n);
		fputs(n + 1 < graph->nodes ? ",\n" : "\n", out);
	}
	fputs("]}\n", out);
	return !ferror(out);
}
