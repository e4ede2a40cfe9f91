/* SPDX-License-Identifier: Apache-2.0
 *
 * manifest_bytes.c - a manifest as bytes. One description serves both directions, as in transport/wire.h: little endian, texts
 * as their length and their bytes without a 0.
 */
#include "exec/files/manifest.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "exec/transport/wire.h"

#define BYTES_AT_FIRST 4096u /* encoded, of most; SKEP_MANIFEST_BYTES_MAX is so many times a power of two */
#define MAGIC 0x4d50454bu    /* "KEPM" */
#define VERSION 1u

/* A constant: whatever else stands there is refused. */
static void constant(struct skep_wire *wire, uint32_t value)
{
	uint32_t found = value;
	skep_wire_u32(wire, &found);
	wire->ok = wire->ok && found == value;
}

/* *text is allocated when read; no text has a 0 in it. */
static void text(struct skep_wire *wire, char **text)
{
	assert(wire->reading == (*text == NULL));
	uint32_t length = wire->reading ? 0 : (uint32_t)strlen(*text);
	skep_wire_u32(wire, &length);
	if (!wire->ok || (size_t)(wire->end - wire->at) < length) {
		wire->ok = false;
		return;
	}
	if (wire->reading)
		*text = memchr(wire->at, 0, length) == NULL ? strndup((const char *)wire->at, length) : NULL;
	else
		memcpy(wire->at, *text, length);
	wire->ok = *text != NULL;
	wire->at += length;
}

static void entry(struct skep_wire *wire, struct skep_manifest_entry *e)
{
	uint8_t kind = (uint8_t)e->kind;
	skep_wire_u8(wire, &kind);
	wire->ok = wire->ok && kind < SKEP_MANIFEST_KINDS;
	e->kind = (enum skep_manifest_kind)kind;
	text(wire, &e->path);
	if (kind != SKEP_MANIFEST_FILE)
		return;
	skep_wire_u64(wire, &e->bytes);
	for (uint32_t i = 0; i < SKEP_DIGEST_BYTES; i++)
		skep_wire_u8(wire, &e->digest[i]);
}

static void entries(struct skep_wire *wire, struct skep_manifest *m)
{
	uint32_t count = m->entries;
	assert(!wire->reading || count == 0);
	skep_wire_u32(wire, &count);
	wire->ok = wire->ok && count <= SKEP_MANIFEST_ENTRIES_MAX;
	for (uint32_t i = 0; wire->ok && i < count; i++) {
		if (wire->reading && !skep_grow(&m->entry, i, sizeof *m->entry)) {
			wire->ok = false;
			return;
		}
		if (wire->reading)
			m->entry[m->entries++] = (struct skep_manifest_entry){0};
		entry(wire, &m->entry[i]);
	}
}

static void overrides(struct skep_wire *wire, struct skep_manifest *m)
{
	uint32_t count = m->overrides;
	assert(!wire->reading || count == 0);
	skep_wire_u32(wire, &count);
	wire->ok = wire->ok && count <= SKEP_MANIFEST_OVERRIDES_MAX;
	for (uint32_t i = 0; wire->ok && i < count; i++) {
		if (wire->reading && !skep_grow(&m->override, i, sizeof *m->override)) {
			wire->ok = false;
			return;
		}
		if (wire->reading)
			m->override[m->overrides++] = NULL;
		text(wire, &m->override[i]);
	}
}

static void whole(struct skep_wire *wire, struct skep_manifest *m)
{
	constant(wire, MAGIC);
	constant(wire, VERSION);
	text(wire, &m->folder);
	entries(wire, m);
	skep_wire_u32(wire, &m->scenario);
	overrides(wire, m);
}

/* In so much memory; false: it takes more, or there is none. */
static bool encode_in(size_t room, const struct skep_manifest *manifest, uint8_t **ret, size_t *ret_size)
{
	struct skep_manifest same = *manifest; /* a writer does not write to it */
	uint8_t *bytes = malloc(room);
	if (bytes == NULL)
		return false;
	struct skep_wire wire = skep_wire_writer(bytes, room);
	whole(&wire, &same);
	if (!wire.ok) {
		free(bytes);
		return false;
	}
	*ret = bytes;
	*ret_size = (size_t)(wire.at - bytes);
	return true;
}

bool skep_manifest_encode(const struct skep_manifest *manifest, uint8_t **ret, size_t *ret_size)
{
	*ret = NULL;
	*ret_size = 0;
	for (size_t room = BYTES_AT_FIRST; room <= SKEP_MANIFEST_BYTES_MAX; room *= 2)
		if (encode_in(room, manifest, ret, ret_size))
			return true;
	return false;
}

bool skep_manifest_decode(const uint8_t *bytes, size_t size, struct skep_manifest *ret, struct skep_diag *reterr)
{
	struct skep_wire wire = skep_wire_reader(bytes, size);
	*ret = (struct skep_manifest){0};
	whole(&wire, ret);
	if (!wire.ok || wire.at != wire.end)
		skep_fail(reterr, "the list of a scenario's files is no such list, or of another version of skep");
	else
		skep_manifest_check(ret, reterr);
	if (reterr->set)
		skep_manifest_finish(ret);
	return !reterr->set;
}
