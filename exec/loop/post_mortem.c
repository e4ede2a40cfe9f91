/* SPDX-License-Identifier: Apache-2.0
 *
 * post_mortem.c - see post_mortem.h. The writer is one thread; it may end between any two instructions, and the reader
 * comes after.
 */
#include "exec/loop/post_mortem.h"

#include <assert.h>
#include <string.h>

void skep_post_mortem_add(
	struct skep_post_mortem *post_mortem, const uint8_t *entry, uint32_t count, uint64_t events, uint64_t digest)
{
	if (post_mortem == NULL)
		return;
	uint64_t at = atomic_load(&post_mortem->open) % SKEP_POST_MORTEM_BATCHES;
	uint64_t mark = atomic_load(&post_mortem->batch[at].mark), used = mark & 0xffff, entries = (mark >> 16) + 1;
	assert(used + count <= SKEP_FRAME_CONTENT);
	memcpy(post_mortem->batch[at].bytes + used, entry, count);
	post_mortem->end[entries & 1].events = events;
	post_mortem->end[entries & 1].digest = digest;
	atomic_store(&post_mortem->batch[at].mark, entries << 16 | (used + count));
}

void skep_post_mortem_sent(struct skep_post_mortem *post_mortem)
{
	if (post_mortem == NULL)
		return;
	uint64_t open = atomic_load(&post_mortem->open);
	uint64_t mark = atomic_load(&post_mortem->batch[open % SKEP_POST_MORTEM_BATCHES].mark);
	atomic_store(&post_mortem->batch[(open + 1) % SKEP_POST_MORTEM_BATCHES].mark, mark >> 16 << 16);
	atomic_store(&post_mortem->open, open + 1);
}

bool skep_post_mortem_batch(
	const struct skep_post_mortem *post_mortem, uint64_t had, const uint8_t **ret_bytes, uint32_t *ret_count)
{
	uint64_t open = atomic_load(&post_mortem->open), at = had % SKEP_POST_MORTEM_BATCHES;
	if (had > open || open - had + 2 > SKEP_POST_MORTEM_BATCHES) /* the next one may have been begun already */
		return false;
	*ret_bytes = post_mortem->batch[at].bytes;
	*ret_count = atomic_load(&post_mortem->batch[at].mark) & 0xffff;
	return true;
}

void skep_post_mortem_end(const struct skep_post_mortem *post_mortem, uint64_t *ret_events, uint64_t *ret_digest)
{
	uint64_t open = atomic_load(&post_mortem->open);
	uint64_t entries = atomic_load(&post_mortem->batch[open % SKEP_POST_MORTEM_BATCHES].mark) >> 16;
	*ret_events = post_mortem->end[entries & 1].events;
	*ret_digest = post_mortem->end[entries & 1].digest;
}
