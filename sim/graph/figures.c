/* SPDX-License-Identifier: Apache-2.0
 *
 * figures.c - what a simulated graph amounts to: its makespan, how busy each place was, and the critical path.
 *
 * The critical path is found backwards from the node that ended last: before each node comes that one of those it waited for
 * which ended last. What lies between that end and the node's begin is waiting: for a lane that another operation had, or
 * for a time. Only nodes with an end in the file and in the simulation count.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/json.h"
#include "core/names.h"
#include "sim/graph/play.h"

#define NONE SKEP_GRAPH_NONE
#define SHOWN 12u /* nodes of the path, and pairs of machines, that are printed at most */

void skep_graph_figures_finish(struct skep_graph_figures *figures)
{
	free(figures->path);
	free(figures->use);
	*figures = (struct skep_graph_figures){0};
}

/* ---- the path ----------------------------------------------------------------------------------------------- */

struct latest {
	const struct skep_graph *graph;
	uint32_t node;
};

/* Of several that end at one time the one with the highest number: it was asked for last. */
static void take_later(void *context, uint32_t cause)
{
	struct latest *latest = context;
	const struct skep_graph_node *node = latest->graph->node;
	if (node[cause].open)
		return;
	if (latest->node == NONE || node[cause].end_ns > node[latest->node].end_ns ||
		(node[cause].end_ns == node[latest->node].end_ns && cause > latest->node))
		latest->node = cause;
}

static uint32_t before(const struct skep_graph *graph, uint32_t node)
{
	struct latest latest = {graph, NONE};
	skep_graph_each_cause(graph, node, take_later, &latest);
	uint32_t follows = graph->node[node].kind == SKEP_GRAPH_OP ? skep_graph_follows(graph, node) : NONE;
	if (follows != NONE)
		take_later(&latest, follows);
	return latest.node;
}

static void count_path(const struct skep_graph *graph, uint32_t node, uint32_t cause, struct skep_graph_figures *ret)
{
	const struct skep_graph_node *of = &graph->node[node];
	skep_time ready = cause != NONE ? graph->node[cause].end_ns : 0;
	assert(ready <= of->begin_ns && of->begin_ns <= of->end_ns);
	if (of->kind == SKEP_GRAPH_OP)
		ret->path_ns[of->op.kind] += of->end_ns - of->begin_ns;
	else
		ret->path_ns[0] += of->end_ns - of->begin_ns;
	ret->path_ns[SKEP_OP_KINDS] += of->begin_ns - ready;
}

static bool find_path(const struct skep_graph *graph, struct skep_graph_figures *ret)
{
	uint32_t node = NONE, length = 0;
	struct latest last = {graph, NONE};
	for (uint32_t n = 0; n < graph->nodes; n++)
		take_later(&last, n);
	for (node = last.node; node != NONE; node = before(graph, node))
		length++;
	ret->path = malloc((length + 1u) * sizeof *ret->path);
	if (!ret->path)
		return false;
	ret->path_length = length;
	for (node = last.node; node != NONE;) {
		uint32_t cause = before(graph, node);
		ret->path[--length] = node;
		count_path(graph, node, cause, ret);
		node = cause;
	}
	assert(length == 0);
	return true;
}

/* ---- uses --------------------------------------------------------------------------------------------------- */

struct crossing { /* a message that has ended */
	uint32_t from, to;
	skep_time begin_ns, end_ns;
	uint64_t bytes;
};

static int by_pair(const void *a, const void *b)
{
	const struct crossing *x = a, *y = b;
	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	return (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

static bool use_pairs(const struct crossing *crossing, uint32_t count, struct skep_graph_figures *ret)
{
	skep_time until = 0;
	for (uint32_t i = 0; i < count; i++) {
		const struct crossing *c = &crossing[i];
		bool first = i == 0 || c->from != c[-1].from || c->to != c[-1].to;
		if (first) {
			struct skep_graph_use *grown =
				realloc(ret->use, (ret->uses + 1u) * sizeof *grown); /* few beside the messages */
			if (!grown)
				return false;
			ret->use = grown;
			ret->use[ret->uses++] = (struct skep_graph_use){.place = c->from, .to = c->to};
			until = 0;
		}
		struct skep_graph_use *use = &ret->use[ret->uses - 1];
		assert(use->place == c->from && use->to == c->to && c->begin_ns <= c->end_ns);
		skep_time since = c->begin_ns > until ? c->begin_ns : until;
		use->count++;
		use->bytes += c->bytes;
		use->busy_ns[0] += c->end_ns > since ? c->end_ns - since : 0;
		until = c->end_ns > until ? c->end_ns : until;
	}
	return true;
}

static bool find_uses(const struct skep_graph *graph, struct skep_graph_figures *ret)
{
	struct crossing *crossing = malloc((graph->nodes + 1u) * sizeof *crossing);
	uint32_t crossings = 0;
	ret->use = calloc(graph->workers + 1u, sizeof *ret->use);
	ret->uses = graph->workers;
	for (uint32_t i = 0; ret->use && i < graph->workers; i++)
		ret->use[i] = (struct skep_graph_use){.place = i, .to = NONE};
	for (uint32_t n = 0; ret->use && crossing && n < graph->nodes; n++) {
		const struct skep_graph_node *of = &graph->node[n];
		if (of->open)
			continue;
		if (of->kind == SKEP_GRAPH_OP) {
			ret->use[of->place].count++;
			ret->use[of->place].busy_ns[of->op.lane] += of->end_ns - of->begin_ns;
		} else if (of->kind == SKEP_GRAPH_SEND && of->place != of->to) {
			crossing[crossings++] = (struct crossing){
				of->place, of->to, of->begin_ns, of->end_ns, skep_graph_message_bytes(graph, of)};
		}
	}
	bool good = ret->use && crossing;
	if (good && crossings > 0)
		qsort(crossing, crossings, sizeof *crossing, by_pair);
	good = good && use_pairs(crossing, crossings, ret);
	free(crossing);
	return good;
}

bool skep_graph_figures_make(
	const struct skep_graph *graph, const struct skep_graph_times *file, struct skep_graph_figures *ret)
{
	*ret = (struct skep_graph_figures){0};
	for (uint32_t n = 0; n < graph->nodes; n++) {
		const struct skep_graph_node *of = &graph->node[n];
		const struct skep_graph_times *was = &file[n];
		ret->open += was->open;
		ret->lost += of->open && !was->open;
		if (!was->open && was->end_ns > ret->before_ns)
			ret->before_ns = was->end_ns;
		if (of->open)
			continue;
		ret->ended++;
		ret->same += of->begin_ns == was->begin_ns && of->end_ns == was->end_ns;
		if (of->end_ns > ret->makespan_ns)
			ret->makespan_ns = of->end_ns;
	}
	if (find_path(graph, ret) && find_uses(graph, ret))
		return true;
	skep_graph_figures_finish(ret);
	return false;
}

/* ---- as text ------------------------------------------------------------------------------------------------ */

static double part(skep_time ns, skep_time of)
{
	return of > 0 ? 100.0 * (double)ns / (double)of : 0;
}

static void print_time(FILE *out, const char *before_it, skep_time ns)
{
	fprintf(out, "%s%.6f s", before_it, 1e-9 * (double)ns);
}

static void print_uses(const struct skep_graph *graph, const struct skep_graph_figures *figures, FILE *out)
{
	char from[SKEP_GRAPH_PLACE_BYTES], to[SKEP_GRAPH_PLACE_BYTES];
	uint32_t pairs = figures->uses - graph->workers, shown = 0;
	fprintf(out, "\n%-28s %10s %9s %9s\n", "place", "operations", "compute", "reduce");
	for (uint32_t i = 0; i < graph->workers; i++)
		fprintf(out, "%-28s %10u %8.1f%% %8.1f%%\n", skep_graph_place_name(graph, i, from),
			figures->use[i].count, part(figures->use[i].busy_ns[SKEP_LANE_COMPUTE], figures->makespan_ns),
			part(figures->use[i].busy_ns[SKEP_LANE_REDUCE], figures->makespan_ns));
	fprintf(out, "%-28s %10s %9s %9s %14s\n", "link", "messages", "used", "", "bytes");
	for (uint32_t i = graph->workers; i < figures->uses && shown < 4 * SHOWN; i++) {
		const struct skep_graph_use *use = &figures->use[i];
		char name[64];
		if (use->place == graph->workers || use->to == graph->workers)
			continue;
		snprintf(name, sizeof name, "%s to %s", skep_graph_place_name(graph, use->place, from),
			skep_graph_place_name(graph, use->to, to));
		fprintf(out, "%-28s %10u %8.1f%% %9s %14llu\n", name, use->count,
			part(use->busy_ns[0], figures->makespan_ns), "", (unsigned long long)use->bytes);
		shown++;
	}
	if (shown == 4 * SHOWN)
		fprintf(out, "... of %u links; --json has all, and those of the directory\n", pairs);
}

static void print_path(const struct skep_graph *graph, const struct skep_graph_figures *figures, FILE *out)
{
	char from[SKEP_GRAPH_PLACE_BYTES], to[SKEP_GRAPH_PLACE_BYTES];
	fprintf(out, "\ncritical path: %u nodes", figures->path_length);
	for (uint32_t kind = 0; kind <= SKEP_OP_KINDS; kind++)
		if (figures->path_ns[kind] > 0)
			fprintf(out, ", %s %.1f%%",
				kind == 0               ? "messages"
				: kind == SKEP_OP_KINDS ? "waiting"
							: skep_op_name((uint8_t)kind),
				part(figures->path_ns[kind], figures->makespan_ns));
	fputc('\n', out);
	uint32_t first = figures->path_length > SHOWN ? figures->path_length - SHOWN : 0;
	if (first > 0)
		fprintf(out, "  ... the last %u of them:\n", SHOWN);
	for (uint32_t i = first; i < figures->path_length; i++) {
		const struct skep_graph_node *of = &graph->node[figures->path[i]];
		fprintf(out, "  %12.6f to %12.6f s  %s, %s", 1e-9 * (double)of->begin_ns, 1e-9 * (double)of->end_ns,
			skep_graph_node_name(graph, figures->path[i]), skep_graph_place_name(graph, of->place, from));
		if (of->kind == SKEP_GRAPH_SEND)
			fprintf(out, " to %s", skep_graph_place_name(graph, of->to, to));
		fputc('\n', out);
	}
}

void skep_graph_figures_print(const struct skep_graph *graph, const struct skep_graph_figures *figures, FILE *out)
{
	print_time(out, "makespan: ", figures->makespan_ns);
	if (figures->makespan_ns == figures->before_ns)
		fputs(", as in the file\n", out);
	else
		fprintf(out, ", in the file %.6f s: %+.2f %%\n", 1e-9 * (double)figures->before_ns,
			part(figures->makespan_ns, figures->before_ns) - 100);
	fprintf(out, "%u of %u operations and messages begin and end as in the file, to the nanosecond\n",
		figures->same, figures->ended + figures->lost);
	if (figures->lost > 0)
		fprintf(out, "%u never end: a worker leaves before, or what they wait for does not end\n",
			figures->lost);
	print_uses(graph, figures, out);
	print_path(graph, figures, out);
}

/* ---- as JSON ------------------------------------------------------------------------------------------------ */

static void add_uses(const struct skep_graph *graph, const struct skep_graph_figures *figures, cJSON *root)
{
	cJSON *places = cJSON_AddArrayToObject(root, "places"), *links = cJSON_AddArrayToObject(root, "links");
	double makespan = (double)figures->makespan_ns;
	for (uint32_t i = 0; i < figures->uses; i++) {
		const struct skep_graph_use *use = &figures->use[i];
		char name[SKEP_GRAPH_PLACE_BYTES];
		bool pair = use->to != NONE;
		cJSON *one = skep_json_add_row(pair ? links : places);
		skep_json_add_text(one, pair ? "from" : "place", skep_graph_place_name(graph, use->place, name));
		if (pair)
			skep_json_add_text(one, "to", skep_graph_place_name(graph, use->to, name));
		skep_json_add_count(one, pair ? "messages" : "operations", use->count);
		if (pair)
			skep_json_add_count(one, "bytes", use->bytes);
		skep_json_add_number(
			one, pair ? "used" : "compute", makespan > 0 ? (double)use->busy_ns[0] / makespan : 0);
		if (!pair)
			skep_json_add_number(one, "reduce", makespan > 0 ? (double)use->busy_ns[1] / makespan : 0);
	}
}

static void add_path(const struct skep_graph *graph, const struct skep_graph_figures *figures, cJSON *root)
{
	cJSON *shares = cJSON_AddObjectToObject(root, "critical_path_ns");
	cJSON *path = cJSON_AddArrayToObject(root, "critical_path");
	for (uint32_t kind = 0; kind <= SKEP_OP_KINDS; kind++)
		if (figures->path_ns[kind] > 0)
			skep_json_add_count(shares,
				kind == 0               ? "messages"
				: kind == SKEP_OP_KINDS ? "waiting"
							: skep_op_name((uint8_t)kind),
				figures->path_ns[kind]);
	for (uint32_t i = 0; i < figures->path_length; i++)
		cJSON_AddItemToArray(path, cJSON_CreateString(skep_graph_node_name(graph, figures->path[i])));
}

bool skep_graph_figures_print_json(const struct skep_graph *graph, const struct skep_graph_figures *figures, FILE *out)
{
	cJSON *root = cJSON_CreateObject();
	if (!root)
		return false;
	skep_json_add_count(root, "makespan_ns", figures->makespan_ns);
	skep_json_add_count(root, "before_ns", figures->before_ns);
	skep_json_add_count(root, "ended", figures->ended);
	skep_json_add_count(root, "same", figures->same);
	skep_json_add_count(root, "never", figures->lost);
	skep_json_add_count(root, "open", figures->open);
	add_uses(graph, figures, root);
	add_path(graph, figures, root);
	return skep_json_print(root, out);
}
