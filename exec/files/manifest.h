/* SPDX-License-Identifier: Apache-2.0
 *
 * manifest.h - what a machine needs to read a scenario as another one has read it: its files by their paths there, each with
 * its SHA-256, the folder that names were relative to, and the overrides.
 *
 * A manifest is checked in full, also where it was made: paths are absolute and normal, sorted, each once, and no file is a
 * folder of another; nothing in it is beyond the limits below.
 */
#pragma once

#include "base/diag.h"
#include "exec/files/digest.h"
#include "scenarios/read/scenario.h"

#define SKEP_MANIFEST_ENTRIES_MAX 4096u
#define SKEP_MANIFEST_FILE_MAX (UINT64_C(1) << 40)
#define SKEP_MANIFEST_PATH_MAX 4095u          /* bytes of a path */
#define SKEP_MANIFEST_PATHS_MAX (1u << 20)    /* of all paths together */
#define SKEP_MANIFEST_OVERRIDES_MAX 1024u     /* in number, and ... */
#define SKEP_MANIFEST_OVERRIDE_MAX (1u << 16) /* ... bytes of all together */
#define SKEP_MANIFEST_BYTES_MAX (2u << 20)    /* encoded: no manifest has more */

enum skep_manifest_kind {
	SKEP_MANIFEST_FILE,   /* its content is read */
	SKEP_MANIFEST_NAMED,  /* a file that is looked for and not read: only that it exists counts */
	SKEP_MANIFEST_FOLDER, /* a folder of which the same is true */
	SKEP_MANIFEST_KINDS
};

struct skep_manifest_entry {
	enum skep_manifest_kind kind;
	char *path;                        /* on the machine that has read the scenario */
	uint64_t bytes;                    /* FILE: of its content, whose ... */
	uint8_t digest[SKEP_DIGEST_BYTES]; /* ... SHA-256 this is; else 0 */
	char *opened;                      /* where that machine opens it; NULL in a manifest that was decoded */
};

struct skep_manifest {
	char *folder;                      /* its working folder: an absolute, normal path */
	struct skep_manifest_entry *entry; /* [entries] by skep_manifest_order() */
	uint32_t entries, scenario;        /* that of the scenario's own file */
	char **override;                   /* [overrides] "key.path=value" */
	uint32_t overrides;
};

/* How far the digests are, in bytes of all files. */
typedef void skep_manifest_show(void *context, uint64_t done, uint64_t all);

/* Of a scenario that has just been read with these options (NULL: none). Reads every file once; `show` may be NULL, and is
 * called after each 64 MiB. False: a file cannot be read, or something is beyond a limit; *ret is empty then. */
bool skep_manifest_make(const struct skep_scenario *scenario, const struct skep_scenario_options *options,
	skep_manifest_show *show, void *context, struct skep_manifest *ret, struct skep_diag *reterr);
void skep_manifest_finish(struct skep_manifest *manifest); /* a cleared one is fine */

/* The file with that content, for reading, on the machine where the manifest was made; the caller closes it. -1: none has it, or
 * it is not what it was, as far as its size says. */
int skep_manifest_open(const struct skep_manifest *manifest, const uint8_t digest[SKEP_DIGEST_BYTES],
	uint64_t *ret_bytes, struct skep_diag *reterr);

/* The order of entries: by bytes, with `/` before all others, so that what a folder has in it follows the folder. */
int skep_manifest_order(const char *a, const char *b);

/* Is it one that could have been made? If not, reterr says what is wrong with it. */
bool skep_manifest_check(const struct skep_manifest *manifest, struct skep_diag *reterr);

/* As bytes, little endian, the same for the same manifest. *ret is the caller's to free. False: no memory. */
bool skep_manifest_encode(const struct skep_manifest *manifest, uint8_t **ret, size_t *ret_size);
/* Takes what the encoder has written and nothing else; whatever the bytes are, reads none outside them. */
bool skep_manifest_decode(const uint8_t *bytes, size_t size, struct skep_manifest *ret, struct skep_diag *reterr);
