/* SPDX-License-Identifier: Apache-2.0
 *
 * reader.h - files that people write: YAML (through libyaml) and CSV, values with units, and errors that show the line.
 *
 * A description file is read into a tree of nodes that remember where they stand. The reader functions take a value
 * with its unit and range; the first problem fills the diagnosis and every later call on the same reader is a no-op
 * that returns the default, so that callers read all their keys in a row and check once. skep_reader_close_map()
 * refuses keys that the caller has not asked for and suggests the nearest known one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"

/* ---- whole files ------------------------------------------------------------------------------------------------ */

#define SKEP_FILE_BYTES_MAX (4u << 20)

/* Reads a regular file of at most `limit` bytes; refuses directories, devices, and binary (NUL) content. *ret is 0
 * terminated, the caller frees it. */
bool skep_file_read(const char *path, size_t limit, char **ret, size_t *ret_size, struct skep_diag *reterr);

/* `name` as written in the file `from`: absolute, or relative to the folder of `from` if it exists there, else relative to the
 * working directory, else relative to each folder above that of `from` (so that scenarios/a.yaml may name models/b.yaml from
 * anywhere), else in the data that comes with the program (files/data.h). So two files that are written together stay together,
 * whatever else has the name of one of them where the program is started.
 * With a root in `files` all of that is under the root, and `from` is a path there. Notes what it finds, if `files` is not NULL.
 * Returns false when none exists; the caller's diagnosis says where it looked. */
struct skep_files;
bool skep_file_find(struct skep_files *files, const char *from, const char *name, char *ret, size_t size);
/* The same for a name that is given on the command line: the working directory comes first. */
bool skep_file_find_given(struct skep_files *files, const char *from, const char *name, char *ret, size_t size);

bool skep_text_is_utf8(const char *text, size_t size);

/* Whether the shell would find a program of this name in PATH: a regular file that this user may execute. */
bool skep_program_find(const char *name);

/* ---- YAML ------------------------------------------------------------------------------------------------------- */

struct skep_yaml; /* a parsed document */
struct skep_yaml_node;

/* Refuses anchors, aliases, tags, several documents, duplicate keys, nesting deeper than 16. */
struct skep_yaml *skep_yaml_parse(const char *path, const char *text, size_t size, struct skep_diag *reterr);
void skep_yaml_destroy(struct skep_yaml *yaml); /* NULL is fine */

/* `--set key.path=value`: replaces or adds the value at the dotted path, `key.path=null` takes the key away; errors show
 * the option, not a line of the file. */
bool skep_yaml_override(struct skep_yaml *yaml, const char *assignment, struct skep_diag *reterr);

/* The document as text again, overrides included (what the database keeps). The caller frees it. */
char *skep_yaml_print(const struct skep_yaml *yaml);
/* One value as text of one line, such as stands behind the `=` of --set. The caller frees it; NULL: no memory. */
char *skep_yaml_flow(const struct skep_yaml_node *node);

const struct skep_yaml_node *skep_yaml_root(const struct skep_yaml *yaml);

enum skep_yaml_kind { SKEP_YAML_NONE, SKEP_YAML_SCALAR, SKEP_YAML_LIST, SKEP_YAML_MAP };
enum skep_yaml_kind skep_yaml_kind(const struct skep_yaml_node *node); /* NONE for NULL */
uint32_t skep_yaml_length(const struct skep_yaml_node *list);
const struct skep_yaml_node *skep_yaml_item(const struct skep_yaml_node *list, uint32_t i);

/* ---- typed access ----------------------------------------------------------------------------------------------- */

/* In every function below: a `map` of NULL stands for a map that is not there, so each of its keys is absent; a `key` of
 * NULL means that `map` is itself the value (an item of a list). `key` must outlive the reader (a literal). After an error
 * a required value comes back as its lowest one ("" for text, NULL for maps and lists). */
struct skep_reader {
	struct skep_yaml *yaml;
	struct skep_diag *diag;
};

/* A key or, with `word`, a value of the key at `path` that an earlier format had, and what it is called now. Items of lists are
 * values too. */
struct skep_renamed {
	const char *path, *word, *now;
};

/* Fails at the first of these that the file has. */
void skep_reader_refuse_renamed(
	struct skep_reader *r, const struct skep_yaml_node *root, const struct skep_renamed *renamed, size_t count);

/* A key that only files of another kind have, and what such a file is and where it belongs: "a model; a scenario names it at
 * `model.file`". */
struct skep_mistaken {
	const char *key, *is;
};

/* Fails at the first of these that the file has: "this is no `expected` but ...". */
void skep_reader_refuse_mistaken(struct skep_reader *r, const struct skep_yaml_node *root, const char *expected,
	const struct skep_mistaken *mistaken, size_t count);

/* The map at `key` of `map` (NULL and no error if absent and not required). Marks the key as known. */
const struct skep_yaml_node *skep_read_map(
	struct skep_reader *r, const struct skep_yaml_node *map, const char *key, bool required);
const struct skep_yaml_node *skep_read_list(
	struct skep_reader *r, const struct skep_yaml_node *map, const char *key, bool required);
bool skep_read_has(struct skep_reader *r, const struct skep_yaml_node *map, const char *key); /* marks it as known */
/* The value of whatever kind, NULL if absent; for keys that take several kinds. */
const struct skep_yaml_node *skep_read_any(struct skep_reader *r, const struct skep_yaml_node *map, const char *key);

/* Keys of a map with free keys (site names ...): key i with its value. Marks it as known. */
const struct skep_yaml_node *skep_read_entry(
	struct skep_reader *r, const struct skep_yaml_node *map, uint32_t i, const char **ret_key);

/* A string; fallback NULL means required. Lives as long as the yaml. */
const char *skep_read_string(
	struct skep_reader *r, const struct skep_yaml_node *map, const char *key, const char *fallback);
/* Whether the value at the key stands in a --set and not in the file. */
bool skep_read_given(const struct skep_yaml_node *map, const char *key);
/* The path of the file that the value `name` of the key names in the file `from`: by skep_file_find(), or by
 * skep_file_find_given() where a --set gave the value. */
bool skep_read_find(struct skep_reader *r, const struct skep_yaml_node *map, const char *key, const char *from,
	const char *name, char *ret, size_t size);
/* The path of the file that a required string names, by skep_read_find() from the file `from`; returns the string. Where there is
 * none the error says where it was looked for, and what is there of nearly that name. `in` is what the value is called in errors,
 * `what` the thing: "file". */
const char *skep_read_path(struct skep_reader *r, const struct skep_yaml_node *map, const char *key, const char *in,
	const char *what, const char *from, char *ret, size_t size);
/* One of the words, NULL terminated; the index. fallback -1 means required. */
int skep_read_choice(struct skep_reader *r, const struct skep_yaml_node *map, const char *key,
	const char *const words[], int fallback);
bool skep_read_bool(struct skep_reader *r, const struct skep_yaml_node *map, const char *key, bool fallback);
/* A whole number in [low, high]. fallback INT64_MIN means required. */
int64_t skep_read_integer(struct skep_reader *r, const struct skep_yaml_node *map, const char *key, int64_t low,
	int64_t high, int64_t fallback);
/* A number without unit, finite, in [low, high]. fallback NAN means required. */
double skep_read_number(struct skep_reader *r, const struct skep_yaml_node *map, const char *key, double low,
	double high, double fallback);

/* A required count in [low, high], which may be written as skep_count_parse() reads it: 300M. */
double skep_read_count(
	struct skep_reader *r, const struct skep_yaml_node *map, const char *key, double low, double high);

enum skep_dimension {
	SKEP_TIME,      /* ns us ms s min h d                          -> seconds         */
	SKEP_BYTES,     /* B kB MB GB TB KiB MiB GiB TiB                -> bytes           */
	SKEP_BANDWIDTH, /* bit/s kbit/s Mbit/s Gbit/s Tbit/s B/s .. GB/s GiB/s -> bytes per second */
	SKEP_SPEED,     /* FLOP/s GFLOP/s TFLOP/s PFLOP/s               -> FLOP per second */
	SKEP_PRICE,     /* USD/h                                        -> USD per hour    */
	SKEP_EGRESS,    /* USD/GB USD/GiB ..                            -> USD per byte    */
	SKEP_PART,      /* %                                            -> part of 1       */
};

/* A number with its unit ("200 Mbit/s"), in [low, high] of the base unit. A missing or wrong unit is an error that lists the
 * right ones. fallback NAN means required. */
double skep_read_quantity(struct skep_reader *r, const struct skep_yaml_node *map, const char *key,
	enum skep_dimension dimension, double low, double high, double fallback);
/* Also with a deviation, "100 ± 50 ms" or "100 +- 50 ms" (the unit of the first may be left out); *ret_spread: 0 without. */
double skep_read_spread(struct skep_reader *r, const struct skep_yaml_node *map, const char *key,
	enum skep_dimension dimension, double low, double high, double fallback, double *ret_spread);
/* The same on a string: for CSV headers and options. */
bool skep_quantity_parse(const char *text, enum skep_dimension dimension, double *ret, const char **reterr_expected);

/* Refuses keys of `map` that no skep_read_* call asked for. */
void skep_reader_close_map(struct skep_reader *r, const struct skep_yaml_node *map);
/* An error of the caller's at a node (or, with a key, at the value of that key). */
void skep_reader_fail(struct skep_reader *r, const struct skep_yaml_node *node, const char *key, const char *format,
	...) __attribute__((format(printf, 4, 5)));
/* The same, of a value that is wrong by itself: skep_diag.of_value. */
void skep_reader_fail_value(struct skep_reader *r, const struct skep_yaml_node *node, const char *key,
	const char *format, ...) __attribute__((format(printf, 4, 5)));

/* ---- CSV -------------------------------------------------------------------------------------------------------- */

/* A square matrix of numbers, row = source, column = destination; blank or "nan" cells are holes (NAN) and are refused
 * unless allow_holes. Comments start with '#'. Errors: ragged, not square, empty, text, negative, infinite. The caller
 * frees *ret, n * n values. */
bool skep_matrix_read(const char *path, bool allow_holes, uint32_t *ret_n, double **ret, struct skep_diag *reterr);
