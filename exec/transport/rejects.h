/* SPDX-License-Identifier: Apache-2.0
 *
 * rejects.h - counts malformed frames and messages: the first one of each kind is reported on stderr, and the counts
 * of all kinds at the end of the run.
 */
#pragma once

#include "exec/transport/wire.h"

enum skep_reject {                                 /* the first ones are enum skep_frame_fault */
	SKEP_REJECT_BODY_SIZE = SKEP_FRAME_FAULTS, /* the tensor is not as long as its frame said */
	SKEP_REJECT_BODY_SUM,                      /* the tensor's sum is not what its frame said */
	SKEP_REJECT_PAYLOAD,      /* a payload where none belongs, or of a size that the plan has not */
	SKEP_REJECT_FIELDS,       /* fields that a message of its kind cannot have (skep_message_legal) */
	SKEP_REJECT_MISDIRECTED,  /* not for this machine, or not from the rank that sent it */
	SKEP_REJECT_OUT_OF_PLACE, /* a frame that this rank does not expect */
	SKEP_REJECTS
};

struct skep_rejects {
	uint32_t rank;
	uint64_t count[SKEP_REJECTS];
};

void skep_complain(struct skep_rejects *rejects, enum skep_reject kind, uint32_t source_rank);

/* Completes "a message ...". */
const char *skep_reject_text(enum skep_reject kind);

/* Says how often each kind happened, if more than once. Returns how many there were in all. */
uint64_t skep_rejects_close(const struct skep_rejects *rejects);
