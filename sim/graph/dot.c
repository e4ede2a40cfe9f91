/* SPDX-License-Identifier: Apache-2.0
 *
 * dot.c - a graph for graphviz: each worker is a cluster with its operations from top to bottom, the directory one with its
 * decisions. A message is an arrow from what it comes after to what it brings about first, with its name and bytes; grey
 * dashes if it carries no tensor. Messages that bring nothing about within the graph (heartbeats for one) are left out, as is
 * what the order of a lane says already. What is open has a dashed border.
 */
#include "sim/graph/play.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>

#include "core/names.h"

#define NONE SKEP_GRAPH_NONE
#define HOPS 3u /* messages in a row that are one arrow */

static void put_label(FILE *out, const char *text)
{
	for (; *text != '\0'; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', out);
		fputc((unsigned char)*text < 0x20 ? ' ' : *text, out);
	}
}

static const char *color_of(uint8_t kind)
{
	switch (kind) {
	case SKEP_OP_FORWARD:
		return "#cfe2ff";
	case SKEP_OP_RECOMPUTE:
		return "#e2ecff";
	case SKEP_OP_BACKWARD:
		return "#ffe5c2";
	case SKEP_OP_STEP:
	case SKEP_OP_INNER_STEP:
		return "#cdeccd";
	default:
		return "#eeeeee";
	}
}

/* In the largest unit of which it is at least one. */
static void put_bytes(FILE *out, uint64_t bytes)
{
	static const char *const unit[] = {"B", "kB", "MB", "GB", "TB"};
	double value = (double)bytes;
	uint32_t u = 0;
	for (; value >= 1000 && u + 1 < sizeof unit / sizeof *unit; u++)
		value /= 1000;
	fprintf(out, u == 0 ? "%.0f %s" : "%.1f %s", value, unit[u]);
}

static void put_op(const struct skep_graph *graph, FILE *out, uint32_t node)
{
	const struct skep_graph_node *of = &graph->node[node];
	assert(node < graph->nodes && of->kind == SKEP_GRAPH_OP);
	fprintf(out, "\t\tn%u [label=\"%s", node, skep_op_name(of->op.kind));
	if (skep_op_passes(of->op.kind))
		fprintf(out, " of microbatch %u", of->op.microbatch);
	else if (skep_op_reduces(of->op.kind))
		fprintf(out, " of part %u", of->op.index);
	fprintf(out, "\\nstage %u, round %u\\n", of->op.stage, of->op.round);
	if (of->open)
		fprintf(out, "%.3f ms", 1e-6 * (double)of->duration_ns);
	else
		fprintf(out, "%.3f to %.3f ms", 1e-6 * (double)of->begin_ns, 1e-6 * (double)of->end_ns);
	fprintf(out, "\", tooltip=\"");
	put_label(out, skep_graph_node_name(graph, node));
	fprintf(out, "\", fillcolor=\"%s\"%s];\n", color_of(of->op.kind), of->open ? ", style=\"filled,dashed\"" : "");
}

static void put_other(const struct skep_graph *graph, FILE *out, uint32_t node)
{
	const struct skep_graph_node *of = &graph->node[node];
	fprintf(out, "\t\tn%u [shape=%s, style=filled, fillcolor=\"#f5f5f5\", label=\"", node,
		of->kind == SKEP_GRAPH_DECISION ? "ellipse" : "octagon");
	put_label(out, skep_graph_node_name(graph, node));
	fprintf(out, "\\n%.3f ms\"];\n", 1e-6 * (double)of->begin_ns);
}

static void put_cluster(const struct skep_graph *graph, FILE *out, uint32_t place)
{
	char name[SKEP_GRAPH_PLACE_BYTES];
	fprintf(out, "\tsubgraph cluster_%u {\n\t\tlabel=\"%s", place, skep_graph_place_name(graph, place, name));
	if (place < graph->workers) {
		const struct skep_graph_place *of = &graph->place[place];
		fputs(of->gpu[0] != '\0' ? ": " : "", out);
		put_label(out, of->gpu);
		fputs(of->site[0] != '\0' ? " in " : "", out);
		put_label(out, of->site);
		if (of->stage != NONE)
			fprintf(out, ", stage %u", of->stage);
	}
	fputs("\";\n\t\tstyle=rounded;\n\t\tcolor=\"#999999\";\n", out);
	for (uint32_t n = 0; n < graph->nodes; n++) {
		const struct skep_graph_node *of = &graph->node[n];
		if (of->place != place || of->kind == SKEP_GRAPH_SEND)
			continue;
		if (of->kind == SKEP_GRAPH_OP)
			put_op(graph, out, n);
		else
			put_other(graph, out, n);
	}
	fputs("\t}\n", out);
}

/* ---- arrows ------------------------------------------------------------------------------------------------- */

struct arrow {
	const struct skep_graph *graph;
	FILE *out;
	uint32_t to, message; /* NONE: there is no message between */
	uint32_t hops, last;  /* the cause that was drawn last */
	bool *drawn;          /* [nodes] messages that have their arrow */
};

static void put_arrow(const struct arrow *arrow, uint32_t from)
{
	const struct skep_graph *graph = arrow->graph;
	assert(from < graph->nodes && arrow->to < graph->nodes);
	fprintf(arrow->out, "\tn%u -> n%u", from, arrow->to);
	if (arrow->message == NONE) {
		fputs(" [color=\"#555555\"];\n", arrow->out);
		return;
	}
	const struct skep_graph_node *message = &graph->node[arrow->message];
	fputs(" [label=\"", arrow->out);
	if (message->message == SKEP_MESSAGE_FORWARD || message->message == SKEP_MESSAGE_BACKWARD)
		fputs(message->message == SKEP_MESSAGE_FORWARD ? "activations" : "gradients", arrow->out);
	else
		for (const char *c = skep_message_name(message->message); *c != '\0'; c++)
			fputc(*c == '_' ? ' ' : tolower((unsigned char)*c), arrow->out);
	if (message->writes.count > 0) {
		fputs(", ", arrow->out);
		put_bytes(arrow->out, skep_graph_message_bytes(graph, message));
		fputs("\", color=\"#1f4e9c\"];\n", arrow->out);
	} else {
		fputs("\", color=\"#aaaaaa\", fontcolor=\"#888888\", style=dashed];\n", arrow->out);
	}
}

static void follow_back(void *context, uint32_t cause)
{
	struct arrow *arrow = context;
	assert(cause < arrow->graph->nodes && arrow->hops <= HOPS);
	const struct skep_graph_node *of = &arrow->graph->node[cause], *to = &arrow->graph->node[arrow->to];
	bool in_lane = of->kind == SKEP_GRAPH_OP && to->kind == SKEP_GRAPH_OP && of->place == to->place &&
	               of->op.lane == to->op.lane && arrow->message == NONE;
	if (of->kind == SKEP_GRAPH_SEND && arrow->hops < HOPS) {
		struct arrow further = *arrow;
		if (arrow->message == NONE && arrow->drawn[cause])
			return;
		arrow->drawn[cause] = true;
		further.message = arrow->message == NONE ? cause : arrow->message;
		further.hops++;
		further.last = NONE;
		skep_graph_each_cause(arrow->graph, cause, follow_back, &further);
	} else if (of->kind != SKEP_GRAPH_SEND && !in_lane && cause != arrow->last) {
		put_arrow(arrow, cause);
		arrow->last = cause;
	}
}

bool skep_graph_write_dot(const struct skep_graph *graph, FILE *out)
{
	bool *drawn = calloc(graph->nodes + 1u, sizeof *drawn);
	if (!drawn)
		return false;
	fputs("# skep graph\ndigraph plan {\n\trankdir=TB;\n\tnode [shape=box, style=filled, fontname=\"sans-serif\", "
	      "fontsize=10];\n\tedge [fontname=\"sans-serif\", fontsize=8];\n",
		out);
	for (uint32_t place = 0; place <= graph->workers; place++)
		put_cluster(graph, out, place);
	for (uint32_t n = 0; n < graph->nodes; n++) {
		const struct skep_graph_node *of = &graph->node[n];
		if (of->kind == SKEP_GRAPH_SEND)
			continue;
		uint32_t follows = of->kind == SKEP_GRAPH_OP ? skep_graph_follows(graph, n) : NONE;
		if (follows != NONE)
			fprintf(out, "\tn%u -> n%u [weight=8, color=\"#bbbbbb\"];\n", follows, n);
		skep_graph_each_cause(graph, n, follow_back, &(struct arrow){graph, out, n, NONE, 0, follows, drawn});
	}
	fputs("}\n", out);
	free(drawn);
	return !ferror(out);
}
