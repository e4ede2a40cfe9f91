/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_openb.c - the tables of the Alibaba 2023 GPU cluster (openb_*).
 *
 * Tasks: a task's stay on its node (scheduled_time to deletion_time) is taken as the time for which a low-priority worker
 * may hold a machine: it joins when the task was scheduled and leaves when it was deleted. A task without a GPU is left
 * out; one that was never scheduled is a request that was refused when it was created. A stay until the latest
 * deletion_time of the table has not ended: that is when the collection stopped. The type is the first that
 * gpu_spec allows; with a table of nodes it is drawn from options->seed among the types that gpu_spec allows (all, if it is
 * empty), each weighted by the GPUs that the cluster has of it.
 *
 * Nodes: each machine with a GPU joins at 0 and stays.
 *
 * The table is in the order of creation, the events are not; what is kept is the events that are still to come.
 */
#include "base/grow.h"
#include "topologies/churn/trace_reader.h"

#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "core/random.h"

#define KINDS_MAX 64u

enum { NAME, GPUS, SPEC, CREATED, DELETED, SCHEDULED, TASK_COLUMNS };
static const char *const task_column[TASK_COLUMNS] = {
	"name", "num_gpu", "gpu_spec", "creation_time", "deletion_time", "scheduled_time"};

enum { NODE_NAME, NODE_GPUS, NODE_MODEL, NODE_COLUMNS };
static const char *const node_column[NODE_COLUMNS] = {"sn", "gpu", "model"};

/* The first row names the columns; ret[i] is where column i stands. */
static bool read_columns(struct skep_lines *lines, const char *const *column, uint32_t columns, uint32_t *ret)
{
	uint32_t missing;
	if (!skep_lines_next_row(lines))
		return !lines->diag->set;
	if (!skep_lines_columns(lines, column, columns, ret, &missing))
		skep_lines_fail(lines, lines->text, "no column '%s' in the first line", column[missing]);
	return !lines->diag->set;
}

/* ---- nodes ----------------------------------------------------------------------------------------------------------- */

struct kinds {
	char name[KINDS_MAX][SKEP_TRACE_NAME];
	uint64_t gpus[KINDS_MAX];
	uint32_t count;
};

struct node {
	char gpu[SKEP_TRACE_NAME];
	uint64_t gpus;
	struct skep_cell name;
};

static bool read_node(struct skep_lines *lines, const uint32_t *at, struct node *ret)
{
	struct skep_cell cell[NODE_COLUMNS];
	if (!skep_lines_row_cells(lines, at, NODE_COLUMNS, cell))
		return false;
	ret->name = cell[NODE_NAME];
	return skep_cell_count(lines, cell[NODE_GPUS], 1024, &ret->gpus) &&
	       skep_trace_gpu(lines, cell[NODE_MODEL], ret->gpu);
}

static bool add_kind(struct skep_lines *lines, struct kinds *kinds, const struct node *node)
{
	uint32_t i = 0;
	while (i < kinds->count && strcmp(kinds->name[i], node->gpu) != 0)
		i++;
	if (i == KINDS_MAX) {
		skep_lines_fail(lines, lines->text, "more than %u GPU types", KINDS_MAX);
		return false;
	}
	if (i == kinds->count) {
		memcpy(kinds->name[kinds->count++], node->gpu, sizeof node->gpu);
		kinds->gpus[i] = 0;
	}
	kinds->gpus[i] += node->gpus;
	return true;
}

static bool read_kinds(const char *path, struct kinds *ret, struct skep_diag *reterr)
{
	struct skep_lines lines;
	uint32_t at[NODE_COLUMNS];
	struct node node;
	ret->count = 0;
	if (!path)
		return true;
	if (!skep_lines_open(&lines, path, SKEP_TRACE_LINE_MAX, reterr))
		return false;
	bool ok = read_columns(&lines, node_column, NODE_COLUMNS, at);
	while (ok && skep_lines_next_row(&lines))
		ok = read_node(&lines, at, &node) && (node.gpus == 0 || add_kind(&lines, ret, &node));
	if (ok && !reterr->set && ret->count == 0)
		skep_diag_set(reterr, path, 0, 0, NULL, "holds no machine with a GPU");
	skep_lines_close(&lines);
	return !reterr->set;
}

bool skep_trace_read_nodes(struct skep_trace_reader *r)
{
	uint32_t at[NODE_COLUMNS];
	struct node node;
	bool ok = read_columns(&r->lines, node_column, NODE_COLUMNS, at);
	while (ok && skep_lines_next_row(&r->lines)) {
		struct skep_trace_row row = {.kind = SKEP_TRACE_JOIN, .time_at = r->lines.text};
		ok = read_node(&r->lines, at, &node) && skep_trace_name(&r->lines, node.name, row.name);
		row.name_at = node.name.at;
		memcpy(row.gpu, node.gpu, sizeof row.gpu);
		if (ok)
			ok = node.gpus == 0 ? skep_trace_see(r, 0, r->lines.text)
			                    : skep_trace_emit_machine(r, &row, node.gpus);
	}
	return ok && !r->lines.diag->set;
}

/* ---- events to come: a heap by (time, leaves first, line) --------------------------------------------------------------- */

struct coming {
	struct skep_trace_row row;
	uint64_t gpus;
	uint32_t line;
};

struct heap {
	struct coming **item;
	uint32_t count;
};

static bool before(const struct coming *a, const struct coming *b)
{
	if (a->row.at_ns != b->row.at_ns)
		return a->row.at_ns < b->row.at_ns;
	if (a->row.kind != b->row.kind)
		return a->row.kind == SKEP_TRACE_LEAVE;
	return a->line < b->line;
}

static bool heap_push(struct heap *heap, const struct coming *item)
{
	if (!skep_grow(&heap->item, heap->count, sizeof *heap->item))
		return false;
	struct coming *copy = malloc(sizeof *copy);
	if (!copy)
		return false;
	*copy = *item;
	uint32_t i = heap->count++;
	for (; i > 0 && before(copy, heap->item[(i - 1) / 2]); i = (i - 1) / 2)
		heap->item[i] = heap->item[(i - 1) / 2];
	heap->item[i] = copy;
	return true;
}

/* The caller frees it. */
static struct coming *heap_pop(struct heap *heap)
{
	struct coming *top = heap->item[0], *last = heap->item[--heap->count];
	uint32_t i = 0;
	for (;;) {
		uint32_t child = 2 * i + 1;
		if (child + 1 < heap->count && before(heap->item[child + 1], heap->item[child]))
			child++;
		if (child >= heap->count || !before(heap->item[child], last))
			break;
		heap->item[i] = heap->item[child];
		i = child;
	}
	heap->item[i] = last;
	return top;
}

/* ---- tasks ----------------------------------------------------------------------------------------------------------- */

struct tasks {
	struct heap heap;
	struct kinds kinds;
	uint32_t at[TASK_COLUMNS];
	skep_time created_ns, end_ns; /* of the row before; the latest deletion */
};

/* Is `kind` in the |-separated list? Nothing in it: any. */
static bool allowed(struct skep_lines *lines, struct skep_cell spec, const char *kind, bool *ret)
{
	*ret = spec.length == 0;
	for (size_t from = 0; from < spec.length && !*ret;) {
		const char *bar = memchr(spec.at + from, '|', spec.length - from);
		size_t length = bar ? (size_t)(bar - spec.at) - from : spec.length - from;
		char name[SKEP_TRACE_NAME];
		if (!skep_trace_gpu(lines, (struct skep_cell){spec.at + from, length}, name))
			return false;
		*ret = strcmp(name, kind) == 0;
		from += length + 1;
	}
	return true;
}

static bool draw_kind(
	struct skep_trace_reader *r, const struct tasks *t, struct skep_cell spec, char ret[SKEP_TRACE_NAME])
{
	bool may[KINDS_MAX];
	uint64_t sum = 0;
	for (uint32_t i = 0; i < t->kinds.count; i++) {
		if (!allowed(&r->lines, spec, t->kinds.name[i], &may[i]))
			return false;
		sum += may[i] ? t->kinds.gpus[i] : 0;
	}
	if (sum == 0) { /* no table, or none of the types in it */
		const char *bar = memchr(spec.at, '|', spec.length);
		struct skep_cell first = {spec.at, bar ? (size_t)(bar - spec.at) : spec.length};
		return skep_trace_gpu(&r->lines, first, ret);
	}
	uint64_t left = skep_random_below(&r->random, (uint32_t)sum);
	uint32_t i = 0;
	while (!may[i] || left >= t->kinds.gpus[i]) {
		left -= may[i] ? t->kinds.gpus[i] : 0;
		i++;
	}
	memcpy(ret, t->kinds.name[i], SKEP_TRACE_NAME);
	return true;
}

/* Everything that happens before `until`: no later row can come before it. */
static bool release(struct skep_trace_reader *r, struct tasks *t, skep_time until)
{
	bool ok = true;
	while (ok && t->heap.count > 0 && t->heap.item[0]->row.at_ns < until) {
		struct coming *next = heap_pop(&t->heap);
		ok = next->row.kind == SKEP_TRACE_REFUSED ? skep_trace_emit(r, &next->row)
		                                          : skep_trace_emit_machine(r, &next->row, next->gpus);
		free(next);
	}
	return ok;
}

static bool put(
	struct skep_trace_reader *r, struct tasks *t, struct coming *item, enum skep_trace_kind kind, skep_time at)
{
	item->row.kind = kind;
	item->row.at_ns = at;
	if (heap_push(&t->heap, item))
		return true;
	skep_diag_set(r->lines.diag, r->lines.path, 0, 0, NULL, "cannot be read: not enough memory");
	return false;
}

/* Times that contradict each other are errors whatever may be repaired: there is no telling what was meant. */
static bool check_order(struct skep_lines *lines, const struct skep_cell *cell, const skep_time *time, bool scheduled)
{
	if (scheduled && time[SCHEDULED] < time[CREATED])
		skep_lines_fail(lines, cell[SCHEDULED].at, "scheduled before it was created");
	else if (scheduled && time[DELETED] < time[SCHEDULED])
		skep_lines_fail(lines, cell[DELETED].at, "time goes backwards: deleted before it was scheduled");
	return !lines->diag->set;
}

static bool read_times(struct skep_trace_reader *r, struct tasks *t, const struct skep_cell *cell, skep_time *time)
{
	bool scheduled = cell[SCHEDULED].length > 0;
	for (uint32_t i = CREATED; i <= SCHEDULED; i++)
		if ((i == CREATED || scheduled) && !skep_cell_time(&r->lines, cell[i], SKEP_SECOND_NS, &time[i]))
			return false;
	if (time[CREATED] < t->created_ns) {
		skep_lines_fail(&r->lines, cell[CREATED].at,
			"time goes backwards: expected the table in the order of creation_time");
		return false;
	}
	t->created_ns = time[CREATED];
	return check_order(&r->lines, cell, time, scheduled);
}

static bool read_task(struct skep_trace_reader *r, struct tasks *t)
{
	struct skep_cell cell[TASK_COLUMNS];
	skep_time time[TASK_COLUMNS] = {0};
	struct coming item = {.line = r->lines.line};
	if (!skep_lines_row_cells(&r->lines, t->at, TASK_COLUMNS, cell) || !read_times(r, t, cell, time) ||
		!skep_cell_count(&r->lines, cell[GPUS], 1024, &item.gpus) ||
		!skep_trace_name(&r->lines, cell[NAME], item.row.name) || !release(r, t, time[CREATED]))
		return false;
	if (item.gpus == 0) {
		r->report->idle++;
		return true;
	}
	if (!draw_kind(r, t, cell[SPEC], item.row.gpu))
		return false;
	if (cell[SCHEDULED].length == 0)
		return put(r, t, &item, SKEP_TRACE_REFUSED, time[CREATED]);
	if (time[DELETED] == time[SCHEDULED]) { /* a stay of no length */
		r->report->idle++;
		return true;
	}
	if (time[DELETED] > t->end_ns)
		t->end_ns = time[DELETED];
	return put(r, t, &item, SKEP_TRACE_JOIN, time[SCHEDULED]) && put(r, t, &item, SKEP_TRACE_LEAVE, time[DELETED]);
}

/* What is left stands at the latest deletion or behind it: requests, and stays that have not ended. */
static bool conclude(struct skep_trace_reader *r, struct tasks *t)
{
	struct skep_trace_row end = {.kind = SKEP_TRACE_END, .at_ns = t->end_ns};
	bool ok = true;
	while (ok && t->heap.count > 0) {
		struct coming *next = heap_pop(&t->heap);
		ok = next->row.kind != SKEP_TRACE_REFUSED || skep_trace_emit(r, &next->row);
		free(next);
	}
	if (r->seen_ns > end.at_ns)
		end.at_ns = r->seen_ns;
	return ok && skep_trace_emit(r, &end);
}

bool skep_trace_read_tasks(struct skep_trace_reader *r)
{
	struct tasks *t = calloc(1, sizeof *t);
	if (!t) {
		skep_diag_set(r->lines.diag, r->lines.path, 0, 0, NULL, "cannot be read: not enough memory");
		return false;
	}
	bool ok = read_kinds(r->options->nodes_path, &t->kinds, r->lines.diag) &&
	          read_columns(&r->lines, task_column, TASK_COLUMNS, t->at);
	while (ok && skep_lines_next_row(&r->lines))
		ok = read_task(r, t);
	ok = ok && !r->lines.diag->set && release(r, t, t->end_ns) && conclude(r, t);
	while (t->heap.count > 0)
		free(heap_pop(&t->heap));
	free(t->heap.item);
	free(t);
	return ok;
}
