/* SPDX-License-Identifier: Apache-2.0
 *
 * prober_inside.h - the state of a rank that measures, shared by prober.c (what every rank does) and conductor.c (what rank 0
 * does beside it). Private to these two.
 */
#ifndef SKEP_EXEC_PROBER_INSIDE_H
#define SKEP_EXEC_PROBER_INSIDE_H

#include "exec/held.h"
#include "exec/prober.h"
#include "exec/shaper.h"

#define LETTER_WORDS 160u

enum { LETTER_MEASURE = 1, LETTER_MEASURED, LETTER_GAUGE, LETTER_GAUGED };

/* Between rank 0 and another: what it is, and then
 *   MEASURE   the rank to which the way is measured
 *   MEASURED  the same, and struct skep_probed_way word by word
 *   GAUGED    struct skep_probed_device as bytes */
struct letter {
	uint32_t words;
	uint64_t word[LETTER_WORDS];
};

struct batch { /* rank 0: what is measured at the same time */
	uint32_t asked, heard;
};

struct prober {
	const struct skep_prober_setup *setup;
	struct skep_transport *transport;
	struct skep_shaper *shaper; /* rank 0, if one is imposed */
	struct skep_held held;
	uint64_t sent; /* messages; the last one's number */
	uint32_t sequence;
	bool answered; /* the message of that sequence ... */
	skep_time answered_ns;
	void *out, *in; /* payloads */
	uint64_t out_room, in_room;
	uint32_t unsent, idle;
	struct letter order; /* words 0: none */
	struct batch batch;
	bool alone;         /* rank 0: the rates of devices are those of ranks that are alone */
	uint32_t done, all; /* rank 0: measurements */
	bool over, failed, broken;
	char reason[256];
};

void prober_fail(struct prober *p, const char *reason); /* everybody ends */
void prober_turn(struct prober *p);                     /* takes in what has come, or rests */
void prober_write(struct prober *p, uint32_t to, const struct letter *letter);
void prober_measure(struct prober *p, uint32_t to, struct skep_probed_way *ret);
bool prober_grow(void **memory, uint64_t *room, uint64_t bytes); /* false: no memory, and it stays as it was */

/* conductor.c */
void conductor_run(struct prober *p);
bool conductor_hear(struct prober *p, uint32_t peer, const struct letter *letter); /* false: not as it has to be */

#endif
