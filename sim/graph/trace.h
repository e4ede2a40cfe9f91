/* SPDX-License-Identifier: Apache-2.0
 *
 * trace.h - what trace.c (causes) and tensors.c (data) know of the run that they watch.
 */
#pragma once

#include <signal.h>

#include "sim/graph/graph.h"
#include "sim/graph/map.h"

struct skep_trace_heard { /* a message that has come */
	uint32_t node;
	struct skep_message message;
};

struct skep_trace_hearing {
	struct skep_trace_heard *item;
	uint32_t count;
};

struct skep_trace_machine {
	uint32_t last[SKEP_LANES]; /* the newest operation in each lane, or NONE */
	uint32_t joined;           /* the node with which its process began, or NONE: it was there at the start */
	struct skep_trace_hearing grants, reduces, commits, barriers; /* a worker's */
};

struct skep_trace_sum {  /* a tensor that several operations make together */
	uint32_t tensor; /* as they have it now, or NONE: it is empty */
	bool read;       /* since it was added to last: who adds next makes another one of it */
};

enum skep_trace_sum_kind {
	SKEP_SUM_GRADIENTS = 1,
	SKEP_SUM_RESULT,
	SKEP_SUM_PARTS,
	SKEP_SUM_TIED,
	SKEP_SUM_STATE,
	SKEP_SUM_GATHERED
};

struct skep_trace_few { /* numbers without doubles */
	uint32_t item[16], count;
};

struct skep_trace {
	struct skep_graph *graph;
	const struct skep_scenario *scenario;
	const struct skep_plan *plan;
	struct skep_map nodes_of_ops, nodes_of_messages, tensors_of_buffers, sums, parameters, suffixes;
	struct skep_trace_sum *sum;
	uint32_t sums_count;
	struct skep_trace_machine *machine; /* [workers + 1] */
	struct skep_trace_hearing heard;    /* by the directory, since its last decision that waited for all of it */
	uint32_t waited;                    /* that decision, or NONE */
	uint32_t decisions, rounds_opened;
	bool opened; /* some round was */
	skep_time now;
	uint32_t index, cause, decision; /* of the step that is being done; NONE: nothing but the time, or none */
	bool at_time;                    /* a timer or the trace of machines caused it */
	bool no_memory, too_large;
	volatile sig_atomic_t stop;
	uint32_t last_round; /* stop when so many have closed */
};

/* Not if it is NONE, or there already. */
void skep_trace_add(struct skep_trace_few *few, uint32_t item);
bool skep_trace_append(struct skep_trace *trace, struct skep_graph_list *list, const struct skep_trace_few *few);

/* A tensor of that name, or of that name with a number behind it. NONE: no memory, or too many, which the trace says. */
uint32_t skep_trace_tensor(struct skep_trace *trace, const char *name, uint64_t bytes);

/* tensors.c: what an operation reads, when it is asked for; and what it has made, when it is done. */
void skep_trace_operands(struct skep_trace *trace, uint32_t node, const struct skep_op *op);
void skep_trace_results(struct skep_trace *trace, uint32_t node, const struct skep_event *event);
/* What a message carries. */
void skep_trace_payload(
	struct skep_trace *trace, uint32_t node, const struct skep_message *message, struct skep_buf payload);
