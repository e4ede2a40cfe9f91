/* SPDX-License-Identifier: Apache-2.0
 *
 * read.c - a graph from its file, which people and programs edit. What is wrong is refused with its place; keys that are not
 * known are, too. Times in the file are kept to compare with, and decide nothing.
 */
#include "sim/graph/graph.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/reader.h"
#include "core/names.h"

#define NONE SKEP_GRAPH_NONE
#define WORKERS_MAX 1000000u

struct reading {
	struct skep_graph *graph;
	const char *path, *text;
	struct skep_diag *diag;
	const char *name; /* of what is being read, "": of nothing that has one */
};

/* ---- errors ------------------------------------------------------------------------------------------------- */

/* Where the value of an "id" is this name; NULL: nowhere. */
static const char *find_id(const char *text, const char *name)
{
	size_t length = strlen(name);
	for (const char *at = strstr(text, "\"id\""); at != NULL; at = strstr(at, "\"id\"")) {
		at += 4;
		const char *value = at + strspn(at, " \t\r\n:");
		if (*value == '"' && strncmp(value + 1, name, length) == 0 && value[1 + length] == '"')
			return value + 1;
	}
	return NULL;
}

static void set_place(struct skep_diag *diag, const char *path, const char *text, const char *at, const char *message)
{
	uint32_t line = 1;
	const char *start = text;
	assert(at >= text);
	for (const char *c = text; c < at; c++)
		if (*c == '\n') {
			line++;
			start = c + 1;
		}
	skep_diag_set(diag, path, line, (uint32_t)(at - start) + 1, start, "%s", message);
}

bool skep_graph_fail_at(
	struct skep_diag *reterr, const char *path, const char *text, const char *name, const char *format, ...)
{
	char message[900];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(message, sizeof message, format, arguments);
	va_end(arguments);
	const char *at = text && name[0] != '\0' ? find_id(text, name) : NULL;
	if (at)
		set_place(reterr, path, text, at, message);
	else
		skep_diag_set(reterr, path, 0, 0, NULL, "%s%s%s", name, name[0] != '\0' ? ": " : "", message);
	return false;
}

#define fail(r, ...) skep_graph_fail_at((r)->diag, (r)->path, (r)->text, (r)->name, __VA_ARGS__)

/* ---- values ------------------------------------------------------------------------------------------------- */

static bool check_keys(struct reading *r, const cJSON *object, const char *const known[], const char *what)
{
	char all[400] = "";
	size_t used = 0;
	if (!cJSON_IsObject(object))
		return fail(r, "%s: expected an object", what);
	for (uint32_t k = 0; known[k] && used + strlen(known[k]) + 3 < sizeof all; k++)
		used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", k > 0 ? ", " : "", known[k]);
	for (const cJSON *item = object->child; item; item = item->next) {
		uint32_t k = 0;
		while (known[k] && strcmp(known[k], item->string) != 0)
			k++;
		if (!known[k])
			return fail(r, "%s has no key \"%.60s\": expected %s", what, item->string, all);
	}
	return true;
}

/* Whole numbers alone. Absent: the fallback, which is not to be above `most` unless the key must be there. */
static bool read_count(
	struct reading *r, const cJSON *object, const char *key, uint64_t most, bool required, uint64_t *ret)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
	if (!item && !required)
		return true;
	if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0) || item->valuedouble > (double)most ||
		item->valuedouble != floor(item->valuedouble))
		return fail(r, "%s: expected a whole number from 0 to %llu", key, (unsigned long long)most);
	*ret = (uint64_t)item->valuedouble;
	return true;
}

static bool read_u32(struct reading *r, const cJSON *object, const char *key, uint32_t most, uint32_t *ret)
{
	uint64_t value = *ret;
	bool good = read_count(r, object, key, most, false, &value);
	*ret = (uint32_t)value;
	return good;
}

static bool read_flag(struct reading *r, const cJSON *object, const char *key, bool *ret)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
	if (item && !cJSON_IsBool(item))
		return fail(r, "%s: expected true or false", key);
	*ret = cJSON_IsTrue(item);
	return true;
}

/* NULL: it was said what is wrong. */
static const char *read_text(struct reading *r, const cJSON *object, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
	if (!cJSON_IsString(item) || item->valuestring[0] == '\0') {
		fail(r, "%s: expected a text", key);
		return NULL;
	}
	return item->valuestring;
}

/* "worker 3" or "directory". */
static bool read_place(struct reading *r, const cJSON *object, const char *key, bool device, uint32_t *ret)
{
	char name[SKEP_GRAPH_PLACE_BYTES];
	const char *text = read_text(r, object, key);
	uint32_t workers = r->graph->workers;
	if (!text)
		return false;
	unsigned long number = strncmp(text, "worker ", 7) == 0 ? strtoul(text + 7, NULL, 10) : workers;
	*ret = number < workers ? (uint32_t)number : workers;
	if (strcmp(skep_graph_place_name(r->graph, *ret, name), text) != 0)
		return fail(r,
			"%s: there is no place \"%.60s\": expected one from \"worker 0\" to \"worker %u\", or "
			"\"directory\"",
			key, text, workers - 1);
	if (device && *ret == workers)
		return fail(r, "%s: the directory has no device: expected a worker, from \"worker 0\" to \"worker %u\"",
			key, workers - 1);
	return true;
}

/* The kind of this name, by one of the functions of names.h; 0: there is none. */
static uint8_t kind_of(const char *name, const char *(*name_of)(uint8_t), uint32_t kinds)
{
	for (uint32_t kind = 1; kind < kinds; kind++)
		if (strcmp(name_of((uint8_t)kind), name) == 0)
			return (uint8_t)kind;
	return 0;
}

/* ---- places and tensors ------------------------------------------------------------------------------------- */

static bool read_one_place(struct reading *r, const cJSON *item, uint32_t number, uint32_t workers)
{
	static const char *const keys[] = {"place", "gpu", "site", "stage", NULL};
	char expected[SKEP_GRAPH_PLACE_BYTES];
	assert(number <= workers);
	r->graph->workers = workers;
	skep_graph_place_name(r->graph, number, expected);
	const char *name = check_keys(r, item, keys, "places") ? read_text(r, item, "place") : NULL;
	if (!name)
		return false;
	if (strcmp(name, expected) != 0)
		return fail(r,
			"places: number %u is \"%.60s\", expected \"%s\": workers by their numbers, then the directory",
			number, name, expected);
	if (number == workers)
		return true;
	struct skep_graph_place *place = &r->graph->place[number];
	const char *gpu = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "gpu"));
	const char *site = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "site"));
	snprintf(place->gpu, sizeof place->gpu, "%s", gpu ? gpu : "");
	snprintf(place->site, sizeof place->site, "%s", site ? site : "");
	place->stage = NONE;
	return read_u32(r, item, "stage", UINT16_MAX, &place->stage);
}

static const cJSON *read_array(
	struct reading *r, const cJSON *root, const char *key, uint32_t most, uint32_t *ret_count)
{
	const cJSON *array = cJSON_GetObjectItemCaseSensitive(root, key);
	*ret_count = 0;
	if (!cJSON_IsArray(array)) {
		fail(r, "%s: expected a list", key);
		return NULL;
	}
	for (const cJSON *item = array->child; item; item = item->next)
		if (++*ret_count > most) {
			fail(r, "%s: more than %u", key, most);
			return NULL;
		}
	return array;
}

static bool read_places(struct reading *r, const cJSON *root)
{
	uint32_t count, number = 0;
	const cJSON *array = read_array(r, root, "places", WORKERS_MAX + 1, &count);
	if (!array)
		return false;
	if (count < 2)
		return fail(r, "places: expected a worker at least, and the directory");
	r->graph->place = calloc(count, sizeof *r->graph->place);
	if (!r->graph->place)
		return skep_fail(r->diag, "not enough memory for the graph");
	for (const cJSON *item = array->child; item; item = item->next)
		if (!read_one_place(r, item, number++, count - 1))
			return false;
	return true;
}

static bool read_tensor(struct reading *r, const cJSON *item)
{
	static const char *const keys[] = {"id", "bytes", "place", NULL};
	bool again;
	uint64_t bytes = 0;
	uint32_t place = NONE;
	r->name = "";
	const char *name = check_keys(r, item, keys, "tensors") ? read_text(r, item, "id") : NULL;
	if (!name)
		return false;
	r->name = name;
	if (!read_count(r, item, "bytes", SKEP_GRAPH_BYTES_MAX, true, &bytes) ||
		(cJSON_HasObjectItem(item, "place") && !read_place(r, item, "place", false, &place)))
		return false;
	uint32_t tensor = skep_graph_tensor_add(r->graph, name, &again);
	if (tensor == NONE)
		return again ? fail(r, "there are two tensors of this name")
		             : skep_fail(r->diag, "not enough memory for the graph");
	r->graph->tensor[tensor].bytes = bytes;
	r->graph->tensor[tensor].place = place;
	return true;
}

/* ---- operations --------------------------------------------------------------------------------------------- */

static bool read_op(struct reading *r, const cJSON *item, struct skep_graph_node *of)
{
	static const char *const keys[] = {"id", "kind", "place", "lane", "stage", "round", "number", "microbatch",
		"part", "of", "elements", "inner", "recomputed", "own", "ns", "timed_on", "at_ns", "after", "follows",
		"reads", "writes", "adds", "open", "begin_ns", "end_ns", NULL};
	struct skep_op *op = &of->op;
	uint32_t stage = 0, inner = 0;
	bool own = false;
	const char *lane = check_keys(r, item, keys, "an operation") ? read_text(r, item, "lane") : NULL;
	if (!lane)
		return false;
	while (op->lane < SKEP_LANES && strcmp(skep_lane_name(op->lane), lane) != 0)
		op->lane++;
	if (op->lane == SKEP_LANES)
		return fail(r, "lane: expected %s or %s", skep_lane_name(0), skep_lane_name(1));
	if (!read_place(r, item, "place", true, &of->place) || !read_u32(r, item, "stage", UINT16_MAX, &stage) ||
		!read_u32(r, item, "round", UINT32_MAX, &op->round) ||
		!read_u32(r, item, skep_op_passes(op->kind) ? "microbatch" : "number", UINT32_MAX, &op->number) ||
		!read_u32(r, item, "part", UINT32_MAX, &op->index) || !read_u32(r, item, "of", UINT32_MAX, &op->size) ||
		!read_count(r, item, "elements", SKEP_GRAPH_BYTES_MAX, false, &op->count) ||
		!read_u32(r, item, "inner", UINT32_MAX, &inner) || !read_flag(r, item, "recomputed", &op->recomputed) ||
		!read_flag(r, item, "own", &own) ||
		!read_count(r, item, "ns", SKEP_GRAPH_NS_MAX, true, &of->duration_ns) ||
		(cJSON_HasObjectItem(item, "timed_on") && !read_place(r, item, "timed_on", true, &of->timed_on)))
		return false;
	op->stage = (uint16_t)stage;
	if (op->kind == SKEP_OP_BACKWARD)
		op->inner = inner;
	if (op->kind == SKEP_OP_UNPACK_PART && !own)
		op->in.generation = 1;
	return true;
}

static bool read_send(struct reading *r, const cJSON *item, struct skep_graph_node *of)
{
	static const char *const keys[] = {"id", "kind", "message", "from", "to", "stage", "round", "number",
		"microbatch", "at_ns", "after", "reads", "writes", "open", "begin_ns", "end_ns", NULL};
	uint32_t stage = (uint16_t)SKEP_NO_STAGE;
	const char *message = check_keys(r, item, keys, "a message") ? read_text(r, item, "message") : NULL;
	if (!message)
		return false;
	of->message = kind_of(message, skep_message_name, SKEP_MESSAGE_KINDS);
	if (of->message == 0)
		return fail(r, "message: there is no kind \"%.60s\": expected FORWARD, BACKWARD, CHUNK ...", message);
	bool good = read_place(r, item, "from", false, &of->place) && read_place(r, item, "to", false, &of->to) &&
	            read_u32(r, item, "stage", UINT16_MAX, &stage) &&
	            read_u32(r, item, "round", UINT32_MAX, &of->round) &&
	            read_u32(r, item, "number", UINT32_MAX, &of->number) &&
	            read_u32(r, item, "microbatch", UINT32_MAX, &of->number);
	of->stage = (uint16_t)stage;
	return good;
}

static bool read_other(struct reading *r, const cJSON *item, struct skep_graph_node *of)
{
	static const char *const keys[] = {"id", "kind", "place", "at_ns", "after", "open", "begin_ns", "end_ns", NULL};
	return check_keys(r, item, keys, "an operation of this kind") &&
	       read_place(r, item, "place", of->kind != SKEP_GRAPH_DECISION, &of->place);
}

static bool read_node(struct reading *r, const cJSON *item)
{
	static const char *const word[] = {[SKEP_GRAPH_OP] = "",
		[SKEP_GRAPH_SEND] = "send",
		[SKEP_GRAPH_DECISION] = "decision",
		[SKEP_GRAPH_LEAVE] = "leave",
		[SKEP_GRAPH_JOIN] = "join"};
	struct skep_graph_node node = {.timed_on = NONE, .follows = NONE};
	bool again;
	r->name = "";
	const char *name = cJSON_IsObject(item) ? read_text(r, item, "id") : NULL;
	if (!name)
		return cJSON_IsObject(item) ? false : fail(r, "operations: expected objects");
	r->name = name;
	const char *kind = read_text(r, item, "kind");
	if (!kind)
		return false;
	for (node.kind = SKEP_GRAPH_SEND; node.kind < SKEP_GRAPH_KINDS && strcmp(kind, word[node.kind]) != 0;
		node.kind++)
		;
	if (node.kind == SKEP_GRAPH_KINDS) {
		node.kind = SKEP_GRAPH_OP;
		node.op.kind = kind_of(kind, skep_op_name, SKEP_OP_KINDS);
		if (node.op.kind == 0 || node.op.kind == SKEP_OP_ALLREDUCE)
			return fail(r,
				"kind: there is no kind \"%.60s\": expected forward, backward, step, send, decision ...",
				kind);
	}
	bool good = node.kind == SKEP_GRAPH_OP     ? read_op(r, item, &node)
	            : node.kind == SKEP_GRAPH_SEND ? read_send(r, item, &node)
	                                           : read_other(r, item, &node);
	if (!good || !read_flag(r, item, "open", &node.open) ||
		!read_count(r, item, "at_ns", SKEP_GRAPH_NS_MAX, false, &node.at_ns) ||
		!read_count(r, item, "begin_ns", SKEP_GRAPH_NS_MAX, false, &node.begin_ns) ||
		!read_count(r, item, "end_ns", SKEP_GRAPH_NS_MAX, false, &node.end_ns))
		return false;
	uint32_t number = skep_graph_node_add(r->graph, name, &again);
	if (number == NONE)
		return again ? fail(r, "there are two operations or messages of this name")
		             : skep_fail(r->diag, "not enough memory for the graph");
	node.name = r->graph->node[number].name;
	r->graph->node[number] = node;
	return true;
}

/* ---- what leads from one to another ------------------------------------------------------------------------- */

static bool read_list(struct reading *r, const cJSON *item, const char *key, bool of_nodes, struct skep_graph_list *ret)
{
	const cJSON *array = cJSON_GetObjectItemCaseSensitive(item, key);
	if (!array)
		return true;
	if (!cJSON_IsArray(array))
		return fail(r, "%s: expected a list of names", key);
	for (const cJSON *one = array->child; one; one = one->next) {
		if (!cJSON_IsString(one))
			return fail(r, "%s: expected a list of names", key);
		uint32_t number = of_nodes ? skep_graph_node_find(r->graph, one->valuestring)
		                           : skep_graph_tensor_find(r->graph, one->valuestring);
		if (number == NONE)
			return fail(r, "%s: there is no %s \"%.80s\"", key,
				of_nodes ? "operation or message" : "tensor", one->valuestring);
		if (!skep_graph_append(r->graph, ret, number))
			return skep_fail(r->diag, "not enough memory for the graph");
	}
	return true;
}

static bool read_links(struct reading *r, const cJSON *item, uint32_t node)
{
	struct skep_graph_node *of = &r->graph->node[node];
	r->name = skep_graph_node_name(r->graph, node);
	if (!read_list(r, item, "after", true, &of->after) || !read_list(r, item, "reads", false, &of->reads) ||
		!read_list(r, item, "writes", false, &of->writes) || !read_list(r, item, "adds", false, &of->adds))
		return false;
	if (!cJSON_HasObjectItem(item, "follows"))
		return true;
	const char *follows = read_text(r, item, "follows");
	if (!follows)
		return false;
	of->follows = skep_graph_node_find(r->graph, follows);
	if (of->follows == NONE || r->graph->node[of->follows].kind != SKEP_GRAPH_OP)
		return fail(r, "follows: there is no operation \"%.80s\"", follows);
	return true;
}

static bool read_scenario(struct reading *r, const cJSON *root)
{
	static const char *const keys[] = {"path", "text", NULL};
	const cJSON *scenario = cJSON_GetObjectItemCaseSensitive(root, "scenario");
	const char *path = check_keys(r, scenario, keys, "scenario") ? read_text(r, scenario, "path") : NULL;
	const char *text = path ? read_text(r, scenario, "text") : NULL;
	if (!text)
		return false;
	r->graph->scenario_path = strdup(path);
	r->graph->scenario_text = strdup(text);
	return (r->graph->scenario_path && r->graph->scenario_text) ||
	       skep_fail(r->diag, "not enough memory for the graph");
}

static bool read_root(struct reading *r, const cJSON *root)
{
	static const char *const keys[] = {
		"skep_graph", "scenario", "rounds", "until_ns", "places", "tensors", "operations", NULL};
	uint64_t version = 0;
	uint32_t count, node = 0;
	if (!check_keys(r, root, keys, "a graph") || !read_count(r, root, "skep_graph", UINT32_MAX, true, &version))
		return false;
	if (version != SKEP_GRAPH_VERSION)
		return fail(r, "skep_graph: this is version %llu, and this program reads version %d",
			(unsigned long long)version, SKEP_GRAPH_VERSION);
	if (!read_scenario(r, root) || !read_u32(r, root, "rounds", UINT32_MAX, &r->graph->rounds) ||
		!read_count(r, root, "until_ns", SKEP_GRAPH_NS_MAX, false, &r->graph->until_ns) ||
		!read_places(r, root))
		return false;
	const cJSON *tensors = read_array(r, root, "tensors", 4 * SKEP_GRAPH_NODES_MAX, &count);
	for (const cJSON *item = tensors ? tensors->child : NULL; item; item = item->next)
		if (!read_tensor(r, item))
			return false;
	r->name = "";
	const cJSON *nodes = tensors ? read_array(r, root, "operations", SKEP_GRAPH_NODES_MAX, &count) : NULL;
	for (const cJSON *item = nodes ? nodes->child : NULL; item; item = item->next)
		if (!read_node(r, item))
			return false;
	for (const cJSON *item = nodes ? nodes->child : NULL; item; item = item->next)
		if (!read_links(r, item, node++))
			return false;
	return nodes && (skep_graph_find_makers(r->graph) || skep_fail(r->diag, "not enough memory for the graph"));
}

bool skep_graph_read_text(
	const char *path, const char *text, size_t size, struct skep_graph *ret, struct skep_diag *reterr)
{
	assert(text[size] == '\0');
	struct reading r = {.graph = ret, .path = path, .text = text, .diag = reterr, .name = ""};
	const char *stopped = NULL;
	*ret = (struct skep_graph){0};
	cJSON *root = cJSON_ParseWithLengthOpts(text, size + 1, &stopped, 1);
	if (!root && stopped >= text && stopped <= text + size)
		set_place(reterr, path, text, stopped, "this is no JSON from here on");
	else if (!root)
		skep_diag_set(reterr, path, 0, 0, NULL, "this is no JSON");
	bool good = root && read_root(&r, root) && skep_graph_check(ret, path, text, reterr);
	cJSON_Delete(root);
	if (!good)
		skep_graph_finish(ret);
	return good;
}

bool skep_graph_read(const char *path, struct skep_graph *ret, struct skep_diag *reterr)
{
	char *text;
	size_t size;
	*ret = (struct skep_graph){0};
	if (!skep_file_read(path, SKEP_GRAPH_FILE_BYTES_MAX, &text, &size, reterr))
		return false;
	bool good = skep_graph_read_text(path, text, size, ret, reterr);
	free(text);
	return good;
}
