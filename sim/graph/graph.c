/* SPDX-License-Identifier: Apache-2.0
 *
 * graph.c - the storage of a graph. Nodes, tensors, lists and names are arrays that grow; what points into them is a number.
 */
#include "sim/graph/graph.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "core/record.h"

void skep_graph_finish(struct skep_graph *graph)
{
	free(graph->node);
	free(graph->tensor);
	free(graph->link);
	free(graph->text);
	free(graph->node_names.slot);
	free(graph->tensor_names.slot);
	free(graph->place);
	free(graph->scenario_path);
	free(graph->scenario_text);
	*graph = (struct skep_graph){0};
}

/* ---- names -------------------------------------------------------------------------------------------------- */

static uint32_t name_of(const struct skep_graph *graph, const struct skep_graph_names *names, uint32_t number)
{
	assert(number < (names == &graph->node_names ? graph->nodes : graph->tensors));
	return names == &graph->node_names ? graph->node[number].name : graph->tensor[number].name;
}

/* FNV-1a (Fowler, Noll, Vo), its high bits folded in. */
static uint32_t hash_of(const char *name)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	for (; *name != '\0'; name++)
		hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
	return (uint32_t)(hash ^ hash >> 32);
}

/* The place of the name, or the free one where it would be. The table is at most half full. */
static uint32_t *slot_of(const struct skep_graph *graph, const struct skep_graph_names *names, const char *name)
{
	assert(names->count < names->size && (names->size & (names->size - 1)) == 0);
	uint32_t at = hash_of(name) & (names->size - 1);
	while (names->slot[at] != SKEP_GRAPH_NONE &&
		strcmp(graph->text + name_of(graph, names, names->slot[at]), name) != 0)
		at = (at + 1) & (names->size - 1);
	return &names->slot[at];
}

static bool grow_names(const struct skep_graph *graph, struct skep_graph_names *names)
{
	if (names->size > 2 * names->count)
		return true;
	uint32_t size = names->size > 0 ? 2 * names->size : 64, *old = names->slot, old_size = names->size;
	uint32_t *slot = malloc(size * sizeof *slot);
	if (!slot)
		return false;
	memset(slot, 0xff, size * sizeof *slot);
	names->slot = slot;
	names->size = size;
	for (uint32_t i = 0; i < old_size; i++)
		if (old[i] != SKEP_GRAPH_NONE)
			*slot_of(graph, names, graph->text + name_of(graph, names, old[i])) = old[i];
	free(old);
	return true;
}

static bool keep_text(struct skep_graph *graph, const char *name, uint32_t *ret)
{
	*ret = graph->text_bytes;
	for (const char *c = name;; c++) {
		if (graph->text_bytes == UINT32_MAX || !skep_grow(&graph->text, graph->text_bytes, 1))
			return false;
		graph->text[graph->text_bytes++] = *c;
		if (*c == '\0')
			return true;
	}
}

static uint32_t find(const struct skep_graph *graph, const struct skep_graph_names *names, const char *name)
{
	return names->size > 0 ? *slot_of(graph, names, name) : SKEP_GRAPH_NONE;
}

uint32_t skep_graph_node_find(const struct skep_graph *graph, const char *name)
{
	return find(graph, &graph->node_names, name);
}

uint32_t skep_graph_tensor_find(const struct skep_graph *graph, const char *name)
{
	return find(graph, &graph->tensor_names, name);
}

uint32_t skep_graph_node_add(struct skep_graph *graph, const char *name, bool *ret_again)
{
	struct skep_graph_node node = {.timed_on = SKEP_GRAPH_NONE, .follows = SKEP_GRAPH_NONE};
	*ret_again = skep_graph_node_find(graph, name) != SKEP_GRAPH_NONE;
	if (*ret_again || !keep_text(graph, name, &node.name) || !grow_names(graph, &graph->node_names) ||
		!skep_grow(&graph->node, graph->nodes, sizeof *graph->node))
		return SKEP_GRAPH_NONE;
	graph->node[graph->nodes] = node;
	*slot_of(graph, &graph->node_names, name) = graph->nodes;
	graph->node_names.count++;
	return graph->nodes++;
}

uint32_t skep_graph_tensor_add(struct skep_graph *graph, const char *name, bool *ret_again)
{
	struct skep_graph_tensor tensor = {.place = SKEP_GRAPH_NONE};
	*ret_again = skep_graph_tensor_find(graph, name) != SKEP_GRAPH_NONE;
	if (*ret_again || !keep_text(graph, name, &tensor.name) || !grow_names(graph, &graph->tensor_names) ||
		!skep_grow(&graph->tensor, graph->tensors, sizeof *graph->tensor))
		return SKEP_GRAPH_NONE;
	graph->tensor[graph->tensors] = tensor;
	*slot_of(graph, &graph->tensor_names, name) = graph->tensors;
	graph->tensor_names.count++;
	return graph->tensors++;
}

const char *skep_graph_place_name(const struct skep_graph *graph, uint32_t place, char ret[SKEP_GRAPH_PLACE_BYTES])
{
	assert(place <= graph->workers);
	if (place == graph->workers)
		snprintf(ret, SKEP_GRAPH_PLACE_BYTES, "directory");
	else
		snprintf(ret, SKEP_GRAPH_PLACE_BYTES, "worker %u", place);
	return ret;
}

/* ---- lists -------------------------------------------------------------------------------------------------- */

static bool put_last(struct skep_graph *graph, uint32_t number)
{
	if (graph->links == UINT32_MAX || !skep_grow(&graph->link, graph->links, sizeof *graph->link))
		return false;
	graph->link[graph->links++] = number;
	return true;
}

bool skep_graph_append(struct skep_graph *graph, struct skep_graph_list *list, uint32_t number)
{
	assert((uint64_t)list->first + list->count <= graph->links);
	if (list->count == 0 || list->first + list->count != graph->links) {
		const struct skep_graph_list old = *list;
		list->first = graph->links;
		for (uint32_t i = 0; i < old.count; i++)
			if (!put_last(graph, graph->link[old.first + i]))
				return false;
	}
	list->count++;
	return put_last(graph, number);
}

static void count_makers(struct skep_graph *graph, struct skep_graph_list list)
{
	for (uint32_t i = 0; i < list.count; i++)
		graph->tensor[graph->link[list.first + i]].makers.count++;
}

static void note_maker(struct skep_graph *graph, struct skep_graph_list list, uint32_t node)
{
	for (uint32_t i = 0; i < list.count; i++) {
		struct skep_graph_list *makers = &graph->tensor[graph->link[list.first + i]].makers;
		assert(graph->link[makers->first + makers->count] == SKEP_GRAPH_NONE);
		graph->link[makers->first + makers->count++] = node;
	}
}

bool skep_graph_find_makers(struct skep_graph *graph)
{
	for (uint32_t t = 0; t < graph->tensors; t++)
		graph->tensor[t].makers = (struct skep_graph_list){0};
	for (uint32_t n = 0; n < graph->nodes; n++) {
		count_makers(graph, graph->node[n].writes);
		count_makers(graph, graph->node[n].adds);
	}
	for (uint32_t t = 0; t < graph->tensors; t++) {
		struct skep_graph_list room = {0};
		for (uint32_t i = 0; i < graph->tensor[t].makers.count; i++)
			if (!skep_graph_append(graph, &room, SKEP_GRAPH_NONE))
				return false;
		graph->tensor[t].makers = (struct skep_graph_list){.first = room.first};
	}
	for (uint32_t n = 0; n < graph->nodes; n++) {
		note_maker(graph, graph->node[n].writes, n);
		note_maker(graph, graph->node[n].adds, n);
	}
	return true;
}

uint64_t skep_graph_message_bytes(const struct skep_graph *graph, const struct skep_graph_node *node)
{
	assert(node->kind == SKEP_GRAPH_SEND);
	uint64_t bytes = SKEP_HEADER_BYTES;
	for (uint32_t i = 0; i < node->writes.count; i++)
		bytes += graph->tensor[graph->link[node->writes.first + i]].bytes;
	return bytes;
}
