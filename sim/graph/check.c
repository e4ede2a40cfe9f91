/* SPDX-License-Identifier: Apache-2.0
 *
 * check.c - what an edited graph can get wrong by itself: tensors that none makes, that two write, or that are not where they
 * are read; circles. Errors name what is wrong and where it stands.
 */
#include "sim/graph/play.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define NONE SKEP_GRAPH_NONE
#define DEPENDENCIES_MAX 100000000u

struct checking {
	const struct skep_graph *graph;
	const char *path, *text;
	struct skep_diag *diag;
};

#define fail(c, node, ...)                                                                                             \
	skep_graph_fail_at((c)->diag, (c)->path, (c)->text, skep_graph_node_name((c)->graph, node), __VA_ARGS__)

/* ---- tensors ------------------------------------------------------------------------------------------------ */

/* Where what a node makes is: a message has brought it to its receiver. */
static uint32_t made_at(const struct skep_graph_node *node)
{
	return node->kind == SKEP_GRAPH_SEND ? node->to : node->place;
}

static bool is_in(const struct skep_graph *graph, struct skep_graph_list list, uint32_t number)
{
	for (uint32_t i = 0; i < list.count; i++)
		if (graph->link[list.first + i] == number)
			return true;
	return false;
}

static bool check_makers(const struct checking *c, uint32_t t)
{
	const struct skep_graph *graph = c->graph;
	const struct skep_graph_tensor *tensor = &graph->tensor[t];
	const char *name = skep_graph_tensor_name(graph, t);
	for (uint32_t i = 0; i < tensor->makers.count; i++) {
		uint32_t maker = graph->link[tensor->makers.first + i], first = graph->link[tensor->makers.first];
		if (tensor->place != NONE)
			return fail(c, maker,
				"makes the tensor \"%s\", which has a place from the start: leave out one of both",
				name);
		if (i > 0 && (is_in(graph, graph->node[maker].writes, t) || is_in(graph, graph->node[first].writes, t)))
			return fail(c, maker,
				"writes the tensor \"%s\", which \"%s\" makes: only `adds` may be of several", name,
				skep_graph_node_name(graph, first));
	}
	return true;
}

static bool check_reads(const struct checking *c, uint32_t node)
{
	const struct skep_graph *graph = c->graph;
	const struct skep_graph_node *of = &graph->node[node];
	char here[SKEP_GRAPH_PLACE_BYTES], there[SKEP_GRAPH_PLACE_BYTES];
	for (uint32_t i = 0; i < of->reads.count; i++) {
		uint32_t t = graph->link[of->reads.first + i];
		const struct skep_graph_tensor *tensor = &graph->tensor[t];
		const char *name = skep_graph_tensor_name(graph, t);
		if (tensor->makers.count == 0 && tensor->place == NONE)
			return fail(c, node,
				"reads the tensor \"%s\", which no operation makes and which has no place from the start",
				name);
		uint32_t maker = tensor->makers.count > 0 ? graph->link[tensor->makers.first] : NONE;
		for (uint32_t m = 0; m < tensor->makers.count; m++)
			if (made_at(&graph->node[graph->link[tensor->makers.first + m]]) != of->place)
				maker = graph->link[tensor->makers.first + m];
		uint32_t at = maker != NONE ? made_at(&graph->node[maker]) : tensor->place;
		if (at != of->place)
			return fail(c, node,
				"reads the tensor \"%s\" at %s, and it is at %s%s%s%s: let a message bring it here, or move what "
				"makes it",
				name, skep_graph_place_name(graph, of->place, here),
				skep_graph_place_name(graph, at, there), maker != NONE ? ", made by \"" : "",
				maker != NONE ? skep_graph_node_name(graph, maker) : "", maker != NONE ? "\"" : "");
	}
	return true;
}

static bool check_time(const struct checking *c, uint32_t node)
{
	assert(node < c->graph->nodes);
	const struct skep_graph_node *of = &c->graph->node[node];
	if (!of->open && of->end_ns < of->begin_ns)
		return fail(c, node, "ends before it begins: end_ns is below begin_ns");
	return true;
}

/* ---- circles ------------------------------------------------------------------------------------------------ */

/* Names the nodes of a circle, `next` of each being the one that it waits for. */
static bool fail_circle(const struct checking *c, const uint32_t *next, uint32_t from)
{
	char all[640] = "";
	size_t used = 0;
	uint32_t node = from, shown = 0;
	do {
		if (shown++ < 8 && used < sizeof all)
			used += (size_t)snprintf(all + used, sizeof all - used, "\"%.70s\" waits for ",
				skep_graph_node_name(c->graph, node));
		node = next[node];
	} while (node != from);
	if (used >= sizeof all)
		used = sizeof all - 1;
	all[used] = '\0';
	return fail(c, from, "a circle: %s%s\"%.70s\"", all, shown > 8 ? "others, and in the end for " : "",
		skep_graph_node_name(c->graph, from));
}

/* What each operation was told to follow; with these `next` is filled. A walk has the number of the node that it began with. */
static bool check_follows(const struct checking *c, uint32_t *next, uint32_t *walk)
{
	for (uint32_t n = 0; n < c->graph->nodes; n++) {
		next[n] = c->graph->node[n].kind == SKEP_GRAPH_OP ? c->graph->node[n].follows : NONE;
		walk[n] = NONE;
	}
	for (uint32_t n = 0; n < c->graph->nodes; n++) {
		uint32_t at = n;
		for (; at != NONE && walk[at] == NONE; at = next[at])
			walk[at] = n;
		if (at != NONE && walk[at] == n)
			return fail_circle(c, next, at);
	}
	return true;
}

struct counting {
	uint32_t *count, *dependent; /* [nodes + 1] where the dependents of a node begin; they themselves */
	uint32_t *missing;           /* [nodes] */
	uint32_t node;
	const uint32_t *state; /* [nodes] what is still missing, for find_missing() */
	uint32_t found;
};

static void count(void *context, uint32_t cause)
{
	struct counting *counting = context;
	counting->count[cause]++;
	counting->missing[counting->node]++;
}

static void fill(void *context, uint32_t cause)
{
	struct counting *counting = context;
	assert(counting->count[cause] > 0);
	counting->dependent[--counting->count[cause]] = counting->node;
}

static void find_missing(void *context, uint32_t cause)
{
	struct counting *counting = context;
	if (counting->state[cause] > 0)
		counting->found = cause;
}

static void each_cause(
	const struct skep_graph *graph, uint32_t node, void (*each)(void *, uint32_t), struct counting *counting)
{
	counting->node = node;
	skep_graph_each_cause(graph, node, each, counting);
	uint32_t follows = graph->node[node].kind == SKEP_GRAPH_OP ? skep_graph_follows(graph, node) : NONE;
	if (follows != NONE)
		each(counting, follows);
}

/* Kahn's order (1962): nodes that wait for nothing, and then those that wait for nothing else. What is left holds a circle, which
 * is found by going from one that is left to one that it waits for until one comes again. */
static bool order(const struct checking *c, struct counting *counting, uint32_t *queue, uint32_t *next)
{
	uint32_t nodes = c->graph->nodes, first = 0, last = 0;
	for (uint32_t n = 0; n < nodes; n++)
		if (counting->missing[n] == 0)
			queue[last++] = n;
	while (first < last) {
		uint32_t node = queue[first++];
		for (uint32_t i = counting->count[node]; i < counting->count[node + 1]; i++)
			if (--counting->missing[counting->dependent[i]] == 0)
				queue[last++] = counting->dependent[i];
	}
	if (last == nodes)
		return true;
	uint32_t left = 0;
	assert(last < nodes);
	while (counting->missing[left] == 0)
		left++;
	for (uint32_t n = 0; n < nodes; n++) {
		counting->state = counting->missing;
		counting->found = NONE;
		if (counting->missing[n] > 0)
			each_cause(c->graph, n, find_missing, counting);
		next[n] = counting->found;
	}
	assert(next[left] != NONE);
	for (uint32_t n = 0; n < nodes; n++) /* so many steps lead into the circle from anywhere */
		left = next[left];
	return fail_circle(c, next, left);
}

static bool check_circles(const struct checking *c)
{
	uint32_t nodes = c->graph->nodes;
	uint32_t *next = malloc((nodes + 1u) * sizeof *next), *walk = malloc((nodes + 1u) * sizeof *walk);
	struct counting counting = {
		.count = calloc(nodes + 2u, sizeof(uint32_t)), .missing = calloc(nodes + 1u, sizeof(uint32_t))};
	bool memory = next && walk && counting.count && counting.missing;
	bool good = memory && check_follows(c, next, walk);
	uint32_t sum = 0;
	for (uint32_t n = 0; good && n < nodes; n++)
		each_cause(c->graph, n, count, &counting);
	for (uint32_t n = 0; good && n <= nodes; n++) {
		sum += counting.count[n];
		counting.count[n] = sum;
	}
	counting.dependent = good ? malloc((sum + 1u) * sizeof *counting.dependent) : NULL;
	memory = memory && (!good || counting.dependent);
	for (uint32_t n = nodes; good && memory && n-- > 0;)
		each_cause(c->graph, n, fill, &counting);
	good = good && memory && order(c, &counting, walk, next);
	free(next);
	free(walk);
	free(counting.count);
	free(counting.missing);
	free(counting.dependent);
	return memory ? good : skep_fail(c->diag, "not enough memory for the graph");
}

/* A tensor that thousands make and thousands read has millions of dependencies in a small file. */
static bool check_count(const struct checking *c)
{
	uint64_t sum = 0;
	for (uint32_t n = 0; n < c->graph->nodes; n++) {
		const struct skep_graph_node *of = &c->graph->node[n];
		for (uint32_t i = 0; i < of->reads.count; i++)
			sum += c->graph->tensor[c->graph->link[of->reads.first + i]].makers.count;
		sum += of->after.count;
		if (sum > DEPENDENCIES_MAX)
			return fail(c, n, "up to here there are more than %u dependencies", DEPENDENCIES_MAX);
	}
	return true;
}

bool skep_graph_check(const struct skep_graph *graph, const char *path, const char *text, struct skep_diag *reterr)
{
	const struct checking c = {graph, path, text, reterr};
	for (uint32_t t = 0; t < graph->tensors; t++)
		if (!check_makers(&c, t))
			return false;
	if (!check_count(&c))
		return false;
	for (uint32_t n = 0; n < graph->nodes; n++)
		if (!check_reads(&c, n) || !check_time(&c, n))
			return false;
	return check_circles(&c);
}
