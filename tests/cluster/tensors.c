/* SPDX-License-Identifier: Apache-2.0
 *
 * tensors.c - the buffers of the test world: who owns which, and which are read by an operation on its way; a stale
 * handle or one of another worker is a broken rule.
 */
#include "tests/cluster/device.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void tensors_clear(struct tensors *tensors)
{
	tensors->count = 1;
	tensors->first_free = 0;
	tensors->live = 0;
	memset(tensors->kept, 0, sizeof(tensors->kept));
}

struct tensor *tensors_add(struct tensors *tensors, uint32_t owner, struct skep_buf *ret)
{
	uint32_t at = tensors->first_free;
	if (at != 0) {
		tensors->first_free = tensors->slot[at].next_free;
	} else {
		if (tensors->count >= tensors->capacity) {
			tensors->capacity = tensors->capacity ? 2 * tensors->capacity : 256;
			tensors->slot = realloc(tensors->slot, tensors->capacity * sizeof(*tensors->slot));
			assert(tensors->slot);
		}
		at = tensors->count++;
		tensors->slot[at].generation = 0;
	}
	struct slot *slot = &tensors->slot[at];
	slot->generation++;
	slot->owner = owner;
	slot->pins = 0;
	slot->live = true;
	tensors->live++;
	memset(&slot->tensor, 0, sizeof(slot->tensor));
	*ret = (struct skep_buf){at, slot->generation};
	return &slot->tensor;
}

struct slot *tensors_use(struct tensors *tensors, struct skep_buf buf, uint32_t who, struct verdict *verdict)
{
	const char *wrong = NULL;
	if (buf.slot == 0 || buf.slot >= tensors->count)
		wrong = "names no tensor";
	else if (tensors->slot[buf.slot].generation != buf.generation)
		wrong = "is of an older generation";
	else if (!tensors->slot[buf.slot].live)
		wrong = "was released before";
	else if (tensors->slot[buf.slot].owner != who)
		wrong = "belongs to someone else";
	if (!wrong)
		return &tensors->slot[buf.slot];
	verdict_break(verdict, "I5", SKEP_NO_INDEX, SKEP_NO_INDEX, SKEP_NO_INDEX, "machine %u: handle {%u, %u} %s", who,
		buf.slot, buf.generation, wrong);
	return NULL;
}

void tensors_free(struct tensors *tensors, struct skep_buf buf)
{
	struct slot *slot = &tensors->slot[buf.slot];
	assert(slot->live && slot->generation == buf.generation);
	slot->live = false;
	slot->next_free = tensors->first_free;
	tensors->first_free = buf.slot;
	tensors->live--;
}

uint32_t tensors_owned(const struct tensors *tensors, uint32_t owner)
{
	uint32_t owned = 0;
	for (uint32_t at = 1; at < tensors->count; at++)
		owned += tensors->slot[at].live && tensors->slot[at].owner == owner;
	return owned;
}

uint32_t tensors_idle(const struct tensors *tensors, uint32_t owner)
{
	uint32_t idle = 0;
	for (uint32_t at = 1; at < tensors->count; at++)
		idle += tensors->slot[at].live && tensors->slot[at].owner == owner && tensors->slot[at].pins == 0;
	return idle;
}

void tensors_free_owned(struct tensors *tensors, uint32_t owner)
{
	for (uint32_t at = 1; at < tensors->count; at++)
		if (tensors->slot[at].live && tensors->slot[at].owner == owner)
			tensors_free(tensors, (struct skep_buf){at, tensors->slot[at].generation});
}

void tensors_free_all(struct tensors *tensors)
{
	for (uint32_t at = 1; at < tensors->count; at++)
		if (tensors->slot[at].live)
			tensors_free(tensors, (struct skep_buf){at, tensors->slot[at].generation});
}
