/* SPDX-License-Identifier: Apache-2.0
 *
 * admissions_internal.h - the state of admissions: shared by admissions.c, and admissions_states.c, which takes and gives states.
 */
#pragma once

#include "exec/keeping/saver.h"
#include "exec/serve/admissions.h"

enum state { UNKNOWN, ASKING, BRINGING, SAVING, KEEPING, OFFERED, PREPARING };

struct guest {
	enum state state;
	struct skep_hello hello;
	/* What it fetches: a file, or bytes in memory. */
	bool fetching;
	int fd;
	const uint8_t *memory;
	char *report; /* what `memory` points to, where it is the guest's own */
	uint64_t at, end;
	struct skep_arrival *arrival; /* BRINGING: what it hands over; SAVING: the saver has it */
	struct skep_state_word word;  /* KEEPING: what is here, and is not handed on to the replicas yet */
	uint32_t rank, worker;        /* PREPARING */
};

struct process { /* of a rank that a process was given */
	struct skep_hello hello;
	struct skep_member member;
	uint32_t worker;    /* that it began with; SKEP_NO_INDEX: it stood by */
	bool there;         /* it has said that it is ready */
	skep_time since_ns; /* ... at this time of the run */
};

struct skep_admissions {
	struct skep_admissions_setup setup;
	struct skep_mesh *mesh;
	struct skep_saver *saver; /* NULL: no states are kept */
	uint32_t *
		agreeing; /* [parts] with replicas: the version of which a majority is to say that it has it; 0: none */
	uint8_t *list;    /* the manifest's bytes */
	size_t list_bytes;
	struct guest guest[SKEP_GUESTS_MAX];
	struct process *process; /* [ranks] */
	struct skep_relays relays;
	bool *taken;          /* [workers] a process has the place, or is about to */
	uint32_t ranks, next; /* next: the rank of the next one that stands by */
	uint32_t here;        /* places whose processes are ready */
	uint64_t refused;
	const struct skep_clock *clock; /* NULL: the run has not begun */
};

static inline void admissions_tell(
	struct skep_admissions *a, uint32_t guest, uint8_t type, const union skep_words *words)
{
	skep_mesh_guest_tell(a->mesh, guest, type, words);
}

/* admissions.c */
void skep_admissions_refuse(struct skep_admissions *admissions, uint32_t guest, bool for_good, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* admissions_states.c */
void skep_admissions_on_state(struct skep_admissions *admissions, uint32_t guest, const struct skep_state_word *word);
void skep_admissions_on_piece(struct skep_admissions *admissions, uint32_t guest, const struct skep_piece *piece);
void skep_admissions_on_turn(void *self);
