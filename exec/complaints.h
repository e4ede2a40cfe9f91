/* SPDX-License-Identifier: Apache-2.0
 *
 * complaints.h - what came in and could not be: said once per kind on stderr, counted, and summed up at the end.
 */
#ifndef SKEP_EXEC_COMPLAINTS_H
#define SKEP_EXEC_COMPLAINTS_H

#include "exec/wire.h"

enum skep_complaint {                                 /* the first ones are enum skep_frame_fault */
	SKEP_COMPLAINT_BODY_SIZE = SKEP_FRAME_FAULTS, /* the tensor is not as long as its frame said */
	SKEP_COMPLAINT_PAYLOAD,      /* a payload where none belongs, or of a size that the plan has not */
	SKEP_COMPLAINT_MISDIRECTED,  /* not for this machine, or not from the rank that sent it */
	SKEP_COMPLAINT_OUT_OF_PLACE, /* a frame that this rank does not expect */
	SKEP_COMPLAINTS
};

struct skep_complaints {
	uint32_t rank;
	uint64_t count[SKEP_COMPLAINTS];
};

void skep_complain(struct skep_complaints *complaints, enum skep_complaint kind, uint32_t source_rank);

/* Completes "a message ...". */
const char *skep_complaint_text(enum skep_complaint kind);

/* Says how often each kind happened, if more than once. Returns how many there were in all. */
uint64_t skep_complaints_close(const struct skep_complaints *complaints);

#endif
