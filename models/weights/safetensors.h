/* SPDX-License-Identifier: Apache-2.0
 *
 * safetensors.h - weights in files of the safetensors format: read where they lie, written whole or not at all.
 *
 * A file is the length of the header (64 bits, little endian), the header, and the numbers. The header is JSON: for each
 * name a dtype, a shape and where its numbers are, [begin, end) from the end of the header; under "__metadata__" texts.
 * Row-major, little endian. What is kept true of every file that opens: names differ, each tensor has the bytes that its
 * shape and dtype ask for, and together they cover the rest of the file without a hole or an overlap. The header is refused
 * where other readers would have to guess: another key, a number that is no plain whole one, text that is not UTF-8, a name
 * twice, anything behind it but blanks.
 *
 * A large model is several files and an index, NAME.safetensors.index.json, that says which tensor is in which. The index
 * must name exactly what the files hold.
 */
#pragma once

#include "base/reader.h"
#include "models/weights/weights.h"

enum { SKEP_SAFETENSORS_DIMENSIONS = 8 };
#define SKEP_SAFETENSORS_HEADER_MAX (UINT64_C(100) * 1000 * 1000) /* as in the format's own readers */

enum skep_dtype { /* those that hold weights come first */
	SKEP_DTYPE_F32,
	SKEP_DTYPE_F16,
	SKEP_DTYPE_BF16,
	SKEP_DTYPE_F64,
	SKEP_DTYPE_OTHER /* integers, booleans, 8-bit floats */
};

struct skep_safetensor {
	char *name;
	const char *path; /* of its file */
	enum skep_dtype dtype;
	const char *dtype_name; /* as the file has it */
	uint32_t dimensions;
	uint64_t shape[SKEP_SAFETENSORS_DIMENSIONS];
	uint64_t elements, bytes;
	const unsigned char *data; /* of any alignment */
};

struct skep_safetensors; /* constant once open */

/* `path`: a file, an index, or a folder with model.safetensors or model.safetensors.index.json in it. */
struct skep_safetensors *skep_safetensors_open(const char *path, struct skep_diag *reterr);
void skep_safetensors_close(struct skep_safetensors *set); /* NULL is fine */

const char *skep_safetensors_path(const struct skep_safetensors *set); /* the file or the index */
uint32_t skep_safetensors_count(const struct skep_safetensors *set);
const struct skep_safetensor *skep_safetensors_item(const struct skep_safetensors *set, uint32_t i); /* by name */
const struct skep_safetensor *skep_safetensors_find(const struct skep_safetensors *set, const char *name);

/* Elements [first, first + count) as fp32: exact for F32, F16 and BF16, rounded for F64. Not for OTHER. */
void skep_safetensor_read(const struct skep_safetensor *tensor, uint64_t first, uint64_t count, float *ret);

struct skep_safetensors_target {
	const char *path;      /* that ends in .safetensors; its folder exists */
	enum skep_dtype dtype; /* F32 or BF16 (rounded to nearest, ties to even) */
	uint64_t shard_bytes;  /* more than so many bytes of tensors become several files and an index; 0: never */
	const char *const
		*text; /* [texts] name and text, one after the other, for "__metadata__"; "format": "pt" is added */
	uint32_t texts;
};

/* All weights have their numbers (`at`). Files are written under temporary names, synchronised and renamed, the index last, and
 * what an older one of the same path was in is removed then; so a disk that is full leaves the old weights as they were.
 * An old index is removed before the first of several files is replaced, so after a crash no index names files of two models. */
bool skep_safetensors_write(const struct skep_safetensors_target *target, const struct skep_weight *weight,
	uint32_t weights, struct skep_diag *reterr);
