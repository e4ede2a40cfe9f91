/* SPDX-License-Identifier: Apache-2.0
 *
 * gpu_table.c - reads tables of measured times and looks times up in them.
 *
 * The look-up goes through the axes in order. Where the table has the query's value on an axis, only rows with that value
 * count; else the nearest values below and above must both lead to an answer, and the time lies between theirs, linear in
 * the logarithms. On a full grid that is multilinear interpolation in logarithms; in a table of scattered lines it answers
 * along the lines that were measured and nowhere else. Between products that lie far apart it is the departure from a fitted
 * law that is interpolated, which bends less than the time itself.
 *
 * What is kept true of a table that was read: rows rise strictly in their axes, every number is finite and at least 0, and
 * along the last axis that varies no time falls below half of the one before it (measured noise stays far above that;
 * a slip of the unit or the column does not).
 */
#include "topologies/gpu/gpu_table.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/csv.h"
#include "base/grow.h"

#define LINE_MAX_BYTES 1024u
#define ROWS_MAX 1000000u
#define SHAPE_MAX 1e12
#define FLOP_MAX 1e24

const char *const skep_type_names[] = {"fp32", "tf32", "fp16", "bf16", NULL};
const char *const skep_table_names[] = {"products", "layers", "stages", NULL};
static const char *const layer_names[] = {"embedding", "block", "head", "edge", NULL};
static const char products_header[] = "batch,m,k,n,time_us";
static const char layers_header[] =
	"layer,tensor_parallel,microbatch,forward_us,backward_us,update_us,forward_flop,forward_bytes";

double skep_type_bytes(enum skep_type type)
{
	return type == SKEP_TYPE_FP16 || type == SKEP_TYPE_BF16 ? 2 : 4;
}

double skep_product_flop(const struct skep_product *p)
{
	return 2 * p->batch * p->m * p->k * p->n;
}

double skep_product_bytes(const struct skep_product *p, enum skep_type type)
{
	return skep_type_bytes(type) * p->batch * (p->m * p->k + p->k * p->n + p->m * p->n);
}

/* ---- cells ------------------------------------------------------------------------------------------------------- */

static bool read_layer_kind(struct skep_lines *l, struct skep_cell cell, double *ret)
{
	for (int i = 0; layer_names[i]; i++)
		if (skep_cell_is(cell, layer_names[i])) {
			*ret = i;
			return true;
		}
	skep_lines_fail(l, cell.at, "layer: expected embedding, block, head or edge");
	return false;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static bool read_product(struct skep_lines *l, enum skep_type type, struct skep_table_row *row)
{
	static const char *const names[] = {"batch", "m", "k", "n"};
	struct skep_cell cell[6];
	if (skep_lines_cells(l, cell, 6) != 5) {
		skep_lines_fail(l, l->text, "ragged: expected five columns, %s", products_header);
		return false;
	}
	for (int i = 0; i < SKEP_TABLE_AXES; i++)
		if (!skep_cell_number(l, cell[i], names[i], 1, SHAPE_MAX, &row->axis[i]))
			return false;
	if (!skep_cell_number(l, cell[4], "time_us", 1e-6, SKEP_TABLE_TIME_US_MAX, &row->seconds[0]))
		return false;
	row->seconds[0] *= 1e-6;
	struct skep_product product = {row->axis[0], row->axis[1], row->axis[2], row->axis[3]};
	row->flop = skep_product_flop(&product);
	row->bytes = skep_product_bytes(&product, type);
	return true;
}

/* Only a backward pass may take no time (that of an embedding), and only an update may be left out. */
static bool read_layer(struct skep_lines *l, struct skep_table_row *row)
{
	static const char *const names[] = {"forward_us", "backward_us", "update_us"};
	struct skep_cell cell[9];
	if (skep_lines_cells(l, cell, 9) != 8) {
		skep_lines_fail(l, l->text, "ragged: expected eight columns, %s", layers_header);
		return false;
	}
	if (!read_layer_kind(l, cell[0], &row->axis[0]) ||
		!skep_cell_number(l, cell[1], "tensor_parallel", 1, 4096, &row->axis[1]) ||
		!skep_cell_number(l, cell[2], "microbatch", 1, SHAPE_MAX, &row->axis[2]))
		return false;
	for (int i = 0; i < SKEP_COLUMNS; i++) {
		row->seconds[i] = NAN;
		if (i == SKEP_COLUMN_UPDATE && cell[3 + i].length == 0)
			continue;
		if (!skep_cell_number(l, cell[3 + i], names[i], i == SKEP_COLUMN_BACKWARD ? 0 : 1e-6,
			    SKEP_TABLE_TIME_US_MAX, &row->seconds[i]))
			return false;
		row->seconds[i] *= 1e-6;
	}
	return skep_cell_number(l, cell[6], "forward_flop", 0, FLOP_MAX, &row->flop) &&
	       skep_cell_number(l, cell[7], "forward_bytes", 1, FLOP_MAX, &row->bytes);
}

/* The first axis in which they differ, or SKEP_TABLE_AXES. */
static int first_difference(const struct skep_table_row *a, const struct skep_table_row *b)
{
	int i = 0;
	while (i < SKEP_TABLE_AXES && a->axis[i] == b->axis[i])
		i++;
	return i;
}

static bool follows(struct skep_lines *l, const struct skep_gpu_table *t, const struct skep_table_row *row)
{
	static const char *const names[2][SKEP_TABLE_AXES] = {
		{"batch", "m", "k", "n"}, {"layer", "tensor_parallel", "microbatch", ""}};
	if (t->rows == 0)
		return true;
	const struct skep_table_row *before = &t->row[t->rows - 1];
	int axis = first_difference(before, row), last = t->kind == SKEP_TABLE_LAYERS ? 2 : 3;
	if (axis == SKEP_TABLE_AXES)
		skep_lines_fail(l, l->text, "a second row of this point: the row before it is the same");
	else if (row->axis[axis] < before->axis[axis])
		skep_lines_fail(l, l->text, "not monotone: %s falls; sort the rows by their columns, from the left",
			names[t->kind][axis]);
	else if (axis == last)
		for (int c = 0; c < SKEP_COLUMNS; c++)
			if (row->seconds[c] < SKEP_TABLE_FALL_MOST * before->seconds[c] && c != SKEP_COLUMN_UPDATE)
				skep_lines_fail(l, l->text,
					"not monotone: %g us after %g us for a smaller %s; is this the right unit?",
					1e6 * row->seconds[c], 1e6 * before->seconds[c], names[t->kind][axis]);
	return !l->diag->set;
}

static bool add_row(struct skep_gpu_table *t, const struct skep_table_row *row)
{
	if (!skep_grow(&t->row, t->rows, sizeof *t->row))
		return false;
	t->row[t->rows++] = *row;
	return true;
}

static void read_rows(struct skep_lines *l, struct skep_gpu_table *t)
{
	const char *header = t->kind == SKEP_TABLE_LAYERS ? layers_header : products_header;
	if (!skep_lines_next_row(l)) {
		if (!l->diag->set)
			skep_diag_set(l->diag, l->path, 0, 0, NULL, "empty: expected `%s` and rows", header);
		return;
	}
	if (strcmp(l->text, header) != 0) {
		skep_lines_fail(l, l->text, "expected `%s` as the first row of a table of %s", header,
			skep_table_names[t->kind]);
		return;
	}
	while (skep_lines_next_row(l)) {
		struct skep_table_row row = {.seconds = {NAN, NAN, NAN}, .expected_s = 1};
		bool sound = t->kind == SKEP_TABLE_LAYERS ? read_layer(l, &row) : read_product(l, t->type, &row);
		if (!sound || !follows(l, t, &row))
			return;
		if (t->rows == ROWS_MAX || !add_row(t, &row)) {
			skep_lines_fail(
				l, l->text, "too many rows: at most %u, and they must fit into memory", ROWS_MAX);
			return;
		}
	}
	if (t->rows == 0 && !l->diag->set)
		skep_diag_set(l->diag, l->path, 0, 0, NULL, "empty: there is no row behind the first");
}

bool skep_gpu_table_read(struct skep_gpu_table *table, struct skep_diag *reterr)
{
	struct skep_lines lines;
	assert(table->rows == 0);
	if (!skep_lines_open(&lines, table->path, LINE_MAX_BYTES, reterr))
		return false;
	read_rows(&lines, table);
	skep_lines_close(&lines);
	if (reterr->set)
		skep_gpu_table_finish(table);
	return !reterr->set;
}

void skep_gpu_table_finish(struct skep_gpu_table *table)
{
	free(table->row);
	table->row = NULL;
	table->rows = 0;
}

/* ---- look-up ----------------------------------------------------------------------------------------------------- */

struct query {
	const struct skep_gpu_table *table;
	double axis[SKEP_TABLE_AXES];
	bool between[SKEP_TABLE_AXES]; /* may be interpolated in */
	int column;
};

/* End of the rows from `begin` on that share its value on the axis. */
static uint32_t group_end(const struct query *q, uint32_t begin, uint32_t end, int axis)
{
	uint32_t i = begin;
	while (i < end && q->table->row[i].axis[axis] == q->table->row[begin].axis[axis])
		i++;
	return i;
}

/* A time of 0 has no logarithm: between it and another one the line is straight. */
static double between(double low, double at_low, double high, double at_high, double x)
{
	double share = log(x / low) / log(high / low);
	if (at_low > 0 && at_high > 0)
		return exp((1 - share) * log(at_low) + share * log(at_high));
	share = (x - low) / (high - low);
	return (1 - share) * at_low + share * at_high;
}

/* Depth is bounded by the axes. */
static enum skep_answer look(const struct query *q, uint32_t begin, uint32_t end, int axis, double *ret)
{
	const struct skep_table_row *row = q->table->row;
	if (axis == SKEP_TABLE_AXES) {
		*ret = row[begin].seconds[q->column] / row[begin].expected_s;
		return isnan(*ret) ? SKEP_ANSWER_NONE : SKEP_ANSWER_EXACT;
	}
	uint32_t low = end, high = end, next;
	for (uint32_t i = begin; i < end && high == end; i = next) {
		next = group_end(q, i, end, axis);
		if (row[i].axis[axis] == q->axis[axis])
			return look(q, i, next, axis + 1, ret);
		if (row[i].axis[axis] < q->axis[axis])
			low = i;
		else
			high = i;
	}
	if (!q->between[axis] || low == end || high == end)
		return SKEP_ANSWER_NONE;
	double at_low, at_high;
	if (look(q, low, high, axis + 1, &at_low) == SKEP_ANSWER_NONE ||
		look(q, high, group_end(q, high, end, axis), axis + 1, &at_high) == SKEP_ANSWER_NONE)
		return SKEP_ANSWER_NONE;
	*ret = between(row[low].axis[axis], at_low, row[high].axis[axis], at_high, q->axis[axis]);
	return SKEP_ANSWER_BETWEEN;
}

enum skep_answer skep_gpu_table_product(
	const struct skep_gpu_table *table, const struct skep_product *product, double *ret_ratio)
{
	assert(table->kind == SKEP_TABLE_PRODUCTS);
	struct query q = {table, {product->batch, product->m, product->k, product->n}, {true, true, true, true}, 0};
	struct query turned = q;
	double ratio = NAN;
	turned.axis[1] = product->n;
	turned.axis[3] = product->m;
	enum skep_answer answer = look(&q, 0, table->rows, 0, ret_ratio);
	if (answer == SKEP_ANSWER_EXACT)
		return answer;
	enum skep_answer other = look(&turned, 0, table->rows, 0, &ratio);
	if (other == SKEP_ANSWER_EXACT || answer == SKEP_ANSWER_NONE) {
		*ret_ratio = ratio;
		return other;
	}
	return answer;
}

enum skep_answer skep_gpu_table_layer(const struct skep_gpu_table *table, enum skep_layer_kind kind, uint32_t degree,
	uint32_t microbatch, enum skep_gpu_column column, double *ret_seconds)
{
	assert(table->kind == SKEP_TABLE_LAYERS);
	struct query q = {table, {kind, degree, microbatch, 0}, {false, false, true, false}, column};
	return look(&q, 0, table->rows, 0, ret_seconds);
}
