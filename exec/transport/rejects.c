/* SPDX-License-Identifier: Apache-2.0
 *
 * rejects.c - see rejects.h. One line at the first of a kind and one at the end keep a flood from filling the disk.
 */
#include "exec/transport/rejects.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

const char *skep_reject_text(enum skep_reject kind)
{
	static const char *const name[(int)SKEP_REJECTS - (int)SKEP_FRAME_FAULTS] = {
		"whose payload is not as long as announced", "whose payload was damaged on its way",
		"with a payload that the plan does not know", "with fields that its kind cannot have",
		"that is not for this process or not by its sender", "of a type that does not belong here"};
	if ((int)kind < SKEP_FRAME_FAULTS)
		return skep_frame_fault_text((enum skep_frame_fault)kind);
	return name[(int)kind - (int)SKEP_FRAME_FAULTS];
}

void skep_complain(struct skep_rejects *rejects, enum skep_reject kind, uint32_t source_rank)
{
	assert((int)kind > SKEP_FRAME_GOOD && kind < SKEP_REJECTS);
	if (rejects->count[kind]++ == 0)
		fprintf(stderr, "skep: rank %" PRIu32 ": dropped a message %s, from rank %" PRIu32 "\n", rejects->rank,
			skep_reject_text(kind), source_rank);
}

uint64_t skep_rejects_close(const struct skep_rejects *rejects)
{
	uint64_t sum = 0;
	for (int kind = 1; kind < SKEP_REJECTS; kind++) {
		if (rejects->count[kind] > 1)
			fprintf(stderr, "skep: rank %" PRIu32 ": dropped %" PRIu64 " messages %s\n", rejects->rank,
				rejects->count[kind], skep_reject_text((enum skep_reject)kind));
		sum += rejects->count[kind];
	}
	return sum;
}
