/* SPDX-License-Identifier: Apache-2.0
 *
 * remains.c - see remains.h. The writer is one thread; it may end between any two instructions, and the reader comes after.
 */
#include "exec/remains.h"

#include <assert.h>
#include <string.h>

void skep_remains_add(
	struct skep_remains *remains, const uint8_t *entry, uint32_t count, uint64_t events, uint64_t digest)
{
	if (remains == NULL)
		return;
	uint64_t at = atomic_load(&remains->open) % SKEP_REMAINS_BATCHES;
	uint64_t mark = atomic_load(&remains->batch[at].mark), used = mark & 0xffff, entries = (mark >> 16) + 1;
	assert(used + count <= SKEP_FRAME_CONTENT);
	memcpy(remains->batch[at].bytes + used, entry, count);
	remains->end[entries & 1].events = events;
	remains->end[entries & 1].digest = digest;
	atomic_store(&remains->batch[at].mark, entries << 16 | (used + count));
}

void skep_remains_sent(struct skep_remains *remains)
{
	if (remains == NULL)
		return;
	uint64_t open = atomic_load(&remains->open);
	uint64_t mark = atomic_load(&remains->batch[open % SKEP_REMAINS_BATCHES].mark);
	atomic_store(&remains->batch[(open + 1) % SKEP_REMAINS_BATCHES].mark, mark >> 16 << 16);
	atomic_store(&remains->open, open + 1);
}

bool skep_remains_batch(
	const struct skep_remains *remains, uint64_t had, const uint8_t **ret_bytes, uint32_t *ret_count)
{
	uint64_t open = atomic_load(&remains->open), at = had % SKEP_REMAINS_BATCHES;
	if (had > open || open - had + 2 > SKEP_REMAINS_BATCHES) /* the next one may have been begun already */
		return false;
	*ret_bytes = remains->batch[at].bytes;
	*ret_count = atomic_load(&remains->batch[at].mark) & 0xffff;
	return true;
}

void skep_remains_end(const struct skep_remains *remains, uint64_t *ret_events, uint64_t *ret_digest)
{
	uint64_t open = atomic_load(&remains->open);
	uint64_t entries = atomic_load(&remains->batch[open % SKEP_REMAINS_BATCHES].mark) >> 16;
	*ret_events = remains->end[entries & 1].events;
	*ret_digest = remains->end[entries & 1].digest;
}
