/* SPDX-License-Identifier: Apache-2.0
 *
 * record.h - decides in what form both worlds report a run. A world calls the recorder that it was given and does not
 * know what it feeds (a database, a summary, a test). Calls come from one thread of one process, times are ns since the
 * run began.
 */
#pragma once

#include "core/skep.h"

enum skep_traffic { SKEP_TRAFFIC_PIPELINE, SKEP_TRAFFIC_SYNC, SKEP_TRAFFIC_STATE, SKEP_TRAFFIC_CONTROL, SKEP_TRAFFICS };

/* Which class a message belongs to: FORWARD, OUTPUT, INPUT and BACKWARD are pipeline, CHUNK is sync, STATE is state, others
 * control. */
enum skep_traffic skep_message_traffic(const struct skep_message *message);

/* Bytes that a message occupies on a link in both worlds: payload plus SKEP_HEADER_BYTES. */
#define SKEP_HEADER_BYTES 96u
uint64_t skep_message_bytes(const struct skep_message *message);

/* True if a worker reports to rank 0 what it has done and sent before this message leaves it. */
bool skep_message_reports(const struct skep_plan *plan, const struct skep_message *message);

/* Most payload bytes that a message may carry: exact where the plan is, an upper bound for a chunk. 0: none belongs. */
uint64_t skep_message_payload_max(const struct skep_plan *plan, const struct skep_message *message);

/* True if the operation outputs a tensor; that of STORE is the one that it took in. */
bool skep_op_puts_out(const struct skep_plan *plan, const struct skep_op *op);

/* True if the note ends a round or a validation: losses are reported then, and with them the bytes sent so far. */
static inline bool skep_note_ends(uint8_t kind)
{
	return kind == SKEP_NOTE_ROUND_CLOSED || kind == SKEP_NOTE_VALIDATED;
}

struct skep_op_span { /* one operation on one worker's device */
	uint32_t worker, epoch, round;
	uint32_t number; /* as struct skep_op has it: of a pass its microbatch */
	uint16_t stage;
	uint8_t kind, lane;
	skep_time begin_ns, end_ns;
	skep_time busy_ns;  /* real arithmetic inside it; equals end - begin in the simulator */
	skep_time paced_ns; /* real runs with pace: how long it was to take, by the profile; else 0 */
};

struct skep_link_use {                /* at the end of a run, one per ordered pair and class that was used */
	uint32_t source, destination; /* machine indices */
	uint8_t traffic;              /* enum skep_traffic */
	uint64_t messages, bytes;
};

struct skep_sent { /* by all machines together, in some time */
	uint64_t bytes[SKEP_TRAFFICS];
	double egress_usd; /* what senders pay for them by the topology's prices of traffic, 0 without any; NAN: not known */
};

/* What the routers of blocks with experts have made of the tokens of forward passes; 0 without such blocks, or arithmetic. */
struct skep_expert_use {
	uint64_t passes;           /* of a block and a microbatch */
	uint64_t choices, dropped; /* of tokens: experts that they were sent to; of these, where there was no room */
	uint64_t fullest;          /* what `choices` would be if all experts had as many as the fullest of each pass */
	uint64_t balance_nano;     /* the sum over passes of the load balance by itself, without its coefficient */
};

static inline void skep_expert_use_add(struct skep_expert_use *sum, const struct skep_expert_use *more)
{
	sum->passes += more->passes;
	sum->choices += more->choices;
	sum->dropped += more->dropped;
	sum->fullest += more->fullest;
	sum->balance_nano += more->balance_nano;
}

struct skep_worker_use { /* at the end of a run, one per machine, the directory included */
	uint32_t index, epoch, stage;
	skep_time started_ns;           /* of one incarnation, where it is reported alone; 0 in the sum of all */
	skep_time alive_ns, compute_ns; /* compute lane busy, as spans say */
	skep_time arithmetic_ns;        /* real arithmetic in the compute lane; 0 when no arithmetic is done */
	uint64_t events, digest;        /* over all its incarnations; their digests folded in order */
	uint64_t damaged;               /* real runs: tensors whose sum was wrong when they came, and that came again */
	struct skep_expert_use experts;
	bool torn; /* real runs: an incarnation was cut off, so events and digest are incomplete */
};

/* What a real run keeps of each machine: every event that it was told, in order (exec/loop/log.h). */
struct skep_machine_log {
	const uint8_t *bytes;
	size_t count;
	bool ended; /* the machine came to its end, after so many events and with this digest: */
	uint64_t events, digest;
};

/* A function that is NULL is not called. */
struct skep_recorder {
	void *context;
	void (*note)(void *context, skep_time now, struct skep_peer who, const struct skep_note *note);
	void (*op)(void *context, const struct skep_op_span *span);
	void (*link)(void *context, const struct skep_link_use *use);
	void (*worker)(void *context, const struct skep_worker_use *use);
	/* A machine was present from `started_ns` to `ended_ns`: called when an incarnation of a worker ends, not for
	 * the directory. */
	void (*life)(void *context, uint32_t machine, skep_time started_ns, skep_time ended_ns);
	/* Real runs: the process of a worker that has a slot has died, for whatever reason. */
	void (*died)(void *context, uint32_t machine);
	void (*progress)(void *context, skep_time now, uint32_t rounds_done, uint32_t rounds_total);
	/* What all machines together have sent since the last call; called before each note of which
	 * skep_note_ends() is true, and at the end of the run. In real runs these are the bytes that workers had
	 * reported by then: those before their TALLY, and those of a validation. A message counts when it is sent, not
	 * when it arrives. */
	void (*sent)(void *context, const struct skep_sent *sent);
	/* The next bytes of a machine's log, which are whole entries; the simulator has no log. */
	void (*log)(void *context, uint32_t machine, const uint8_t *bytes, uint32_t count);
};
