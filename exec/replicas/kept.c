/* SPDX-License-Identifier: Apache-2.0
 *
 * kept.c - see kept.h.
 */
#include "exec/replicas/kept.h"

#include <assert.h>
#include <stdlib.h>

#include "exec/transport/wire.h"

#define HEAD_BYTES 40u /* the library wants multiples of 8 */
#define STATE_BYTES 16u

bool skep_kept_create(uint32_t stages, struct skep_kept *ret)
{
	assert(stages > 0);
	*ret = (struct skep_kept){.stages = stages};
	ret->state = calloc((size_t)stages * SKEP_KEPT_VERSIONS, sizeof *ret->state);
	return ret->state != NULL;
}

void skep_kept_finish(struct skep_kept *kept)
{
	free(kept->state);
	*kept = (struct skep_kept){0};
}

/* ---- entries --------------------------------------------------------------------------------------------------------- */

static void entry_fields(struct skep_wire *wire, struct skep_kept_entry *entry)
{
	uint8_t none = 0;
	uint16_t nothing = 0;
	skep_wire_u8(wire, &entry->kind);
	skep_wire_u8(wire, &none);
	skep_wire_u16(wire, &nothing);
	skep_wire_u32(wire, &entry->from_version);
	skep_wire_u64(wire, &entry->job);
	skep_wire_u64(wire, &entry->run);
	skep_wire_u64(wire, &entry->from);
	skep_wire_u32(wire, &entry->stage);
	skep_wire_u32(wire, &entry->version);
	skep_wire_u64(wire, &entry->bytes);
	if (entry->kind == 0 || entry->kind >= SKEP_KEPT_KINDS || none != 0 || nothing != 0)
		wire->ok = false;
}

void skep_kept_encode(const struct skep_kept_entry *entry, uint8_t ret[SKEP_KEPT_ENTRY_BYTES])
{
	struct skep_kept_entry copy = *entry;
	struct skep_wire wire = skep_wire_writer(ret, SKEP_KEPT_ENTRY_BYTES);
	entry_fields(&wire, &copy);
	assert(wire.ok && wire.at == wire.end);
}

static struct skep_kept_state *of_stage(const struct skep_kept *kept, uint32_t stage)
{
	assert(stage < kept->stages);
	return &kept->state[(size_t)stage * SKEP_KEPT_VERSIONS];
}

static void begin(struct skep_kept *kept, const struct skep_kept_entry *entry)
{
	assert(entry->kind == SKEP_KEPT_BEGIN);
	kept->job = entry->job;
	kept->run = entry->run;
	kept->from = entry->from;
	kept->from_version = entry->from_version;
	for (size_t i = 0; i < (size_t)kept->stages * SKEP_KEPT_VERSIONS; i++) {
		if (kept->state[i].version > entry->from_version)
			kept->state[i] = (struct skep_kept_state){0};
	}
}

/* In place of the oldest one. */
static void add(struct skep_kept *kept, const struct skep_kept_entry *entry)
{
	struct skep_kept_state *state = of_stage(kept, entry->stage), *oldest = state;
	for (uint32_t i = 0; i < SKEP_KEPT_VERSIONS; i++) {
		if (state[i].version == entry->version)
			return;
		oldest = state[i].version < oldest->version ? &state[i] : oldest;
	}
	if (oldest->version < entry->version)
		*oldest = (struct skep_kept_state){entry->version, entry->bytes};
}

bool skep_kept_apply(struct skep_kept *kept, const uint8_t *bytes, size_t count)
{
	struct skep_kept_entry entry = {0};
	struct skep_wire wire = skep_wire_reader(bytes, count);
	entry_fields(&wire, &entry);
	if (!wire.ok || wire.at != wire.end || (entry.kind == SKEP_KEPT_STATE && entry.stage >= kept->stages))
		return false;
	if (entry.kind == SKEP_KEPT_BEGIN)
		begin(kept, &entry);
	else if (entry.kind == SKEP_KEPT_STATE)
		add(kept, &entry);
	else
		kept->over = true;
	return true;
}

/* ---- the table ------------------------------------------------------------------------------------------------------- */

static void table_fields(struct skep_wire *wire, struct skep_kept *kept)
{
	uint32_t stages = kept->stages;
	uint64_t over = kept->over;
	skep_wire_u32(wire, &stages);
	skep_wire_u32(wire, &kept->from_version);
	skep_wire_u64(wire, &kept->job);
	skep_wire_u64(wire, &kept->run);
	skep_wire_u64(wire, &kept->from);
	skep_wire_u64(wire, &over);
	if (stages != kept->stages || over > 1)
		wire->ok = false;
	for (size_t i = 0; wire->ok && i < (size_t)kept->stages * SKEP_KEPT_VERSIONS; i++) {
		uint64_t version = kept->state[i].version;
		skep_wire_u64(wire, &version);
		skep_wire_u64(wire, &kept->state[i].bytes);
		if (version > UINT32_MAX)
			wire->ok = false;
		else if (wire->reading)
			kept->state[i].version = (uint32_t)version;
	}
	kept->over = over == 1;
}

size_t skep_kept_snapshot_bytes(const struct skep_kept *kept)
{
	assert(kept->stages > 0);
	return HEAD_BYTES + (size_t)kept->stages * SKEP_KEPT_VERSIONS * STATE_BYTES;
}

void skep_kept_snapshot(const struct skep_kept *kept, uint8_t *ret)
{
	struct skep_kept copy = *kept; /* the writer only reads what its table points to */
	struct skep_wire wire = skep_wire_writer(ret, skep_kept_snapshot_bytes(kept));
	table_fields(&wire, &copy);
	assert(wire.ok && wire.at == wire.end);
}

bool skep_kept_restore(struct skep_kept *kept, const uint8_t *bytes, size_t count)
{
	struct skep_wire wire = skep_wire_reader(bytes, count);
	table_fields(&wire, kept);
	return wire.ok && wire.at == wire.end;
}

const struct skep_kept_state *skep_kept_find(const struct skep_kept *kept, uint32_t stage, uint32_t version)
{
	const struct skep_kept_state *state = of_stage(kept, stage);
	for (uint32_t i = 0; i < SKEP_KEPT_VERSIONS; i++) {
		if (version > 0 && state[i].version == version)
			return &state[i];
	}
	return NULL;
}

uint32_t skep_kept_newest(const struct skep_kept *kept)
{
	uint32_t newest = 0;
	assert(kept->stages > 0);
	for (uint32_t i = 0; i < SKEP_KEPT_VERSIONS; i++) {
		uint32_t version = kept->state[i].version, stage = 0;
		while (stage < kept->stages && skep_kept_find(kept, stage, version) != NULL)
			stage++;
		newest = stage == kept->stages && version > newest ? version : newest;
	}
	return newest;
}
