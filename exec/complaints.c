/* SPDX-License-Identifier: Apache-2.0
 *
 * complaints.c - see complaints.h. One line at the first of a kind and one at the end keep a flood from filling the disk.
 */
#include "exec/complaints.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

const char *skep_complaint_text(enum skep_complaint kind)
{
	static const char *const name[(int)SKEP_COMPLAINTS - (int)SKEP_FRAME_FAULTS] = {
		"whose payload is not as long as announced", "with a payload that the plan does not know",
		"that is not for this process or not by its sender", "of a type that does not belong here"};
	if ((int)kind < SKEP_FRAME_FAULTS)
		return skep_frame_fault_text((enum skep_frame_fault)kind);
	return name[(int)kind - (int)SKEP_FRAME_FAULTS];
}

void skep_complain(struct skep_complaints *complaints, enum skep_complaint kind, uint32_t source_rank)
{
	assert((int)kind > SKEP_FRAME_GOOD && kind < SKEP_COMPLAINTS);
	if (complaints->count[kind]++ == 0)
		fprintf(stderr, "skep: rank %" PRIu32 ": dropped a message %s, from rank %" PRIu32 "\n",
			complaints->rank, skep_complaint_text(kind), source_rank);
}

uint64_t skep_complaints_close(const struct skep_complaints *complaints)
{
	uint64_t sum = 0;
	for (int kind = 1; kind < SKEP_COMPLAINTS; kind++) {
		if (complaints->count[kind] > 1)
			fprintf(stderr, "skep: rank %" PRIu32 ": dropped %" PRIu64 " messages %s\n", complaints->rank,
				complaints->count[kind], skep_complaint_text((enum skep_complaint)kind));
		sum += complaints->count[kind];
	}
	return sum;
}
