/* SPDX-License-Identifier: Apache-2.0
 *
 * weights.c - compares the weights of a model with those of a file, and copies them. All of them are compared before
 * any is copied.
 */
#include "models/weights/weights.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/weights/safetensors.h"

enum { BLOCK = 4096 };

/* ---- names -------------------------------------------------------------------------------------------------- */

/* By the name, else by the name without the prefix. */
static const struct skep_safetensor *find_plain(
	const struct skep_safetensors *set, const char *name, const struct skep_weight_names *names)
{
	const struct skep_safetensor *tensor = skep_safetensors_find(set, name);
	size_t length = names->prefix != NULL ? strlen(names->prefix) : 0;
	if (tensor == NULL && length > 0 && strncmp(name, names->prefix, length) == 0)
		tensor = skep_safetensors_find(set, name + length);
	return tensor;
}

static const struct skep_safetensor *find_name(
	const struct skep_safetensors *set, const char *name, const struct skep_weight_names *names)
{
	char older[SKEP_WEIGHT_NAME];
	const struct skep_safetensor *tensor = find_plain(set, name, names);
	if (tensor == NULL && names->older != NULL && names->older(name, older))
		tensor = find_plain(set, older, names);
	return tensor;
}

const struct skep_safetensor *skep_weights_stand_in(
	const struct skep_safetensors *set, const struct skep_weight_names *names)
{
	if (names->head == NULL || find_name(set, names->head, names) != NULL)
		return NULL;
	return find_name(set, names->table, names);
}

static bool same_shape(const struct skep_safetensor *tensor, const struct skep_weight *weight)
{
	if (tensor->dimensions != weight->dimensions || tensor->shape[0] != weight->shape[0])
		return false;
	return tensor->dimensions == 1 || tensor->shape[1] == weight->shape[1];
}

/* The tensor of the weight. One that stands in for it has to fit: else it is the weight that is missing. */
static const struct skep_safetensor *find(
	const struct skep_safetensors *set, const struct skep_weight *weight, const struct skep_weight_names *names)
{
	bool head = names->head != NULL && strcmp(weight->name, names->head) == 0;
	const struct skep_safetensor *tensor = find_name(set, weight->name, names);
	if (tensor != NULL || !head)
		return tensor;
	tensor = skep_weights_stand_in(set, names);
	return tensor != NULL && same_shape(tensor, weight) ? tensor : NULL;
}

static int by_pointer(const void *a, const void *b)
{
	const struct skep_safetensor *x = *(const struct skep_safetensor *const *)a,
				     *y = *(const struct skep_safetensor *const *)b;
	return (x > y) - (x < y);
}

/* ---- differences -------------------------------------------------------------------------------------------- */

struct report {
	FILE *to;
	uint32_t missing, unknown, misshapen, other;
};

static void print_shape(FILE *to, uint32_t dimensions, const uint64_t *shape)
{
	for (uint32_t d = 0; d < dimensions; d++)
		fprintf(to, "%s%" PRIu64, d > 0 ? ", " : "[", shape[d]);
	fprintf(to, dimensions > 0 ? "]" : "[]");
}

static void compare(struct report *r, const struct skep_safetensor *tensor, const struct skep_weight *weight)
{
	if (tensor == NULL) {
		r->missing++;
		fprintf(r->to, "missing: %s ", weight->name);
		print_shape(r->to, weight->dimensions, weight->shape);
	} else if (!same_shape(tensor, weight)) {
		r->misshapen++;
		fprintf(r->to, "shape: %s is ", tensor->name);
		print_shape(r->to, tensor->dimensions, tensor->shape);
		fprintf(r->to, ", the model has ");
		print_shape(r->to, weight->dimensions, weight->shape);
	} else if (tensor->dtype == SKEP_DTYPE_OTHER) {
		r->other++;
		fprintf(r->to, "dtype: %s is %s, which holds no weights", tensor->name, tensor->dtype_name);
	} else {
		return;
	}
	fputc('\n', r->to);
}

/* Of the tensors that no weight has taken. */
static void compare_rest(struct report *r, const struct skep_safetensors *set, const struct skep_safetensor **taken,
	uint32_t takes, const struct skep_weight_names *names)
{
	qsort(taken, takes, sizeof *taken, by_pointer);
	for (uint32_t i = 0; i < skep_safetensors_count(set); i++) {
		const struct skep_safetensor *tensor = skep_safetensors_item(set, i);
		if (takes > 0 && bsearch(&tensor, taken, takes, sizeof *taken, by_pointer) != NULL)
			continue;
		if (names->is_ignored != NULL && names->is_ignored(tensor->name))
			continue;
		r->unknown++;
		fprintf(r->to, "unknown: %s ", tensor->name);
		print_shape(r->to, tensor->dimensions, tensor->shape);
		fputc('\n', r->to);
	}
}

bool skep_weights_match(const struct skep_safetensors *set, const struct skep_weight *weight, uint32_t weights,
	const struct skep_weight_names *names, char **ret_list, struct skep_diag *reterr)
{
	size_t size = 0;
	*ret_list = NULL;
	const struct skep_safetensor **taken = calloc((size_t)weights + 1, sizeof *taken);
	struct report r = {.to = open_memstream(ret_list, &size)};
	uint32_t takes = 0;
	for (uint32_t w = 0; taken != NULL && r.to != NULL && w < weights; w++) {
		const struct skep_safetensor *tensor = find(set, &weight[w], names);
		compare(&r, tensor, &weight[w]);
		if (tensor != NULL)
			taken[takes++] = tensor;
	}
	if (taken != NULL && r.to != NULL)
		compare_rest(&r, set, taken, takes, names);
	else
		skep_diag_set(reterr, "", 0, 0, NULL, "not enough memory to compare %u weights", weights);
	if (r.to != NULL)
		fclose(r.to);
	free(taken);
	uint32_t all = r.missing + r.unknown + r.misshapen + r.other;
	if (all > 0)
		skep_diag_set(reterr, skep_safetensors_path(set), 0, 0, NULL,
			"does not fit the model: %u weights missing, %u of another shape, %u of a dtype without "
			"weights, %u that the model does not have",
			r.missing, r.misshapen, r.other, r.unknown);
	return !reterr->set;
}

/* ---- numbers ------------------------------------------------------------------------------------------------ */

static void copy(const struct skep_safetensor *tensor, const struct skep_weight *weight)
{
	float block[BLOCK];
	const bool whole = weight->count[0] == 0;
	const uint64_t columns = weight->dimensions > 1 ? weight->shape[1] : 1, rows = weight->shape[0];
	const uint64_t first_row = weight->first[0], first_column = weight->first[1];
	const uint64_t kept_rows = whole ? rows : weight->count[0], kept_columns = whole ? columns : weight->count[1];
	const uint64_t end = (first_row + kept_rows) * columns;
	uint64_t row = 0, column = 0;
	assert(first_row + kept_rows <= rows && first_column + kept_columns <= columns);
	for (uint64_t done = first_row * columns; done < end;) {
		uint64_t some = end - done < BLOCK ? end - done : BLOCK;
		skep_safetensor_read(tensor, done, some, block);
		for (uint64_t i = 0; i < some; i++) {
			const uint64_t own = column - first_column; /* that of a column before wraps round */
			if (own < kept_columns)
				weight->at[row * weight->step[0] + own * weight->step[1]] = block[i];
			column = column + 1 < columns ? column + 1 : 0;
			row += column == 0;
		}
		done += some;
	}
}

void skep_weights_read(const struct skep_safetensors *set, const struct skep_weight *weight, uint32_t weights,
	const struct skep_weight_names *names)
{
	for (uint32_t w = 0; w < weights; w++) {
		if (weight[w].at == NULL)
			continue;
		const struct skep_safetensor *tensor = find(set, &weight[w], names);
		assert(tensor != NULL && same_shape(tensor, &weight[w]) && tensor->dtype != SKEP_DTYPE_OTHER);
		copy(tensor, &weight[w]);
	}
}
