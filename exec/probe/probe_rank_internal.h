/* SPDX-License-Identifier: Apache-2.0
 *
 * probe_rank_internal.h - the state of a rank that measures, shared by probe_rank.c (what every rank does), probe_way.c
 * (how one measures a way) and probe_coordinator.c (what rank 0 does beside it). Private to these.
 */
#pragma once

#include "exec/loop/clock.h"
#include "exec/loop/delay_queue.h"
#include "exec/loop/shaper.h"
#include "exec/probe/probe_rank.h"

#define PROBE_MESSAGE_WORDS 256u
#define PROBE_MEASURED_WORDS 12u

enum {
	PROBE_MESSAGE_MEASURE = 1,
	PROBE_MESSAGE_MEASURED,
	PROBE_MESSAGE_BENCH,
	PROBE_MESSAGE_BENCHED,
	PROBE_MESSAGE_FLOOD,
	PROBE_MESSAGE_FLOODED,
	PROBE_MESSAGE_REHEARSE,
	PROBE_MESSAGE_REHEARSED
};

/* Between rank 0 and another: what it is, and then
 *   MEASURE   the rank to which the way is measured
 *   MEASURED  the same, and struct skep_probed_link word by word: PROBE_MEASURED_WORDS with what it is
 *   BENCH     whether no other rank of its host computes meanwhile
 *   BENCHED   struct skep_probed_device as bytes
 *   FLOOD     the rank to send to, bytes of a payload, and for how long, ns
 *   FLOODED   bytes per second, a double as a word
 *   REHEARSE  the rank to exchange payloads with, UINT32_MAX: none
 *   REHEARSED struct skep_probed_costs, a word each */
struct probe_message {
	uint32_t words;
	uint64_t word[PROBE_MESSAGE_WORDS];
};

struct batch { /* rank 0: what is measured at the same time */
	uint32_t asked, heard;
	double Bps; /* of what was measured together, in all */
};

struct probe_rank {
	const struct skep_probe_rank_setup *setup;
	struct skep_transport *transport;
	struct skep_shaper *shaper; /* rank 0, if one is imposed */
	struct skep_delay_queue held;
	uint64_t sent; /* messages; the last one's number */
	uint32_t sequence;
	bool answered; /* the message of that sequence ... */
	skep_time answered_ns;
	uint64_t answers; /* to payloads that follow each other: how many */
	void *out, *in;   /* payloads */
	uint64_t out_room, in_room;
	uint32_t unsent, idle;
	skep_time alarm_ns;         /* no rest is longer; 0: none is set */
	struct probe_message order; /* words 0: none */
	struct batch batch;
	bool alone;         /* rank 0: the rates of devices are those of ranks that are alone */
	uint32_t done, all; /* rank 0: measurements */
	bool over, failed, broken;
	char reason[256];
};

static inline skep_time probe_rank_now(const struct probe_rank *p)
{
	return skep_clock_now(p->setup->clock);
}

void skep_probe_rank_fail(struct probe_rank *p, const char *reason); /* all ranks end */
void skep_probe_rank_poll(struct probe_rank *p);                     /* takes in what has come, or rests */
void skep_probe_rank_write(struct probe_rank *p, uint32_t to, const struct probe_message *probe_message);
void skep_probe_rank_send(struct probe_rank *p, uint32_t to, uint64_t bytes); /* forwards, to be answered */
bool skep_probe_rank_grow(void **memory, uint64_t *room, uint64_t bytes); /* false: no memory, and it stays as it was */

/* Sends what is not answered. */
void skep_probe_rank_hand(struct probe_rank *p, uint32_t to, uint64_t bytes);

/* probe_rehearsal.c: all ranks at once, with payloads to a rank that does the same; UINT32_MAX: without. Figures that its
 * rounds do not agree on are NAN. */
struct skep_probed_costs skep_probe_rank_rehearse(struct probe_rank *p, uint32_t to);

/* probe_way.c */

void skep_probe_rank_measure(struct probe_rank *p, uint32_t to, struct skep_probed_link *ret);

/* probe_together.c */
double skep_probe_rank_flood(
	struct probe_rank *p, uint32_t to, uint64_t bytes, uint64_t time_ns); /* bytes/s; NAN: too short */
void skep_probe_coordinator_find_lines(struct probe_rank *p);                 /* when all ways are measured */

/* probe_coordinator.c */
void skep_probe_coordinator_add(struct probe_rank *p, double Bps); /* a flow of those that are measured together */
void skep_probe_coordinator_run(struct probe_rank *p);
bool skep_probe_coordinator_receive(struct probe_rank *p, uint32_t peer,
	const struct probe_message *probe_message); /* false: not as it has to be */
