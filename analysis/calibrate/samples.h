/* SPDX-License-Identifier: Apache-2.0
 *
 * samples.h - what the log of a real run shows: each message with when it was sent and received, each operation with when it
 * began and ended.
 *
 * The functions that add are called while the log is replayed (exec/replay/replay.h). Clocks: processes of one host share one;
 * each of several hosts has its own, set at a barrier, which skep_samples_align() puts right.
 */
#pragma once

#include "core/record.h"
#include "topologies/read/topology.h"

struct skep_transfer {
	uint32_t from, to; /* machines; the directory last */
	uint64_t bytes;    /* on the link: payload and header */
	double sent_s, received_s;
};

struct skep_executed {
	uint32_t worker;
	struct skep_op op;
	double seconds; /* with the hand-over between threads */
};

struct skep_samples {
	struct skep_transfer *transfer; /* [transfers] */
	struct skep_executed *executed; /* [executions] */
	size_t transfers, executions;
	double clocks_apart_s; /* the most that a clock was found to differ from the directory's */
	bool no_memory;
};

void skep_samples_message(void *samples, const struct skep_message *message, skep_time sent, skep_time received);
void skep_samples_op(void *samples, uint32_t machine, const struct skep_op *op, skep_time begin, skep_time end);

/*
 * Takes out what each machine's clock differs from the directory's by, from the quickest message in each direction: where
 * d and e are their times there and back, and l and m what the topology says of these latencies, the machine is ahead by
 * (e - d - m + l) / 2 when the latencies differ as the topology says they do. A machine without messages in both directions
 * stays. Not for shaped runs, which have one clock. False: no memory.
 */
bool skep_samples_align(struct skep_samples *samples, const struct skep_topology *topology);

void skep_samples_finish(struct skep_samples *samples);
