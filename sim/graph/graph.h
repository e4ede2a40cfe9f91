/* SPDX-License-Identifier: Apache-2.0
 *
 * graph.h - a plan as something to read and edit: the first rounds of a scenario as a graph of operations and messages, the
 * tensors that these read and write, the places where they are, and when they are, as in DistIR (Santhanam et al. 2021).
 *
 * Where a graph comes from: skep_graph_make() simulates the scenario without its arithmetic, and watches (sim.h). The core
 * decides; there is no second scheduler. So a graph has what the run will do, nanosecond by nanosecond, and why:
 *   - what an operation or a message reads was written by another one: a tensor leads from one to the other;
 *   - it comes `after` what made its machine ask for it: a message that came, an operation that ended in the other lane; and
 *     after what a decision of the core had waited for (trace.c has the rules);
 *   - an operation `follows` the one before it in its lane, as long as both are in one place;
 *   - messages take turns on their connection in the order in which they are sent: the network model knows that.
 *
 * skep_graph_play() simulates a graph, perhaps an edited one: it begins each operation when all that it waits for is there and
 * its lane is free, each message when all that it waits for is there; durations are the graph's, and where an operation was
 * moved to another worker those of the compute model (skep_scenario_op_ns()); messages cross the network model
 * (topologies/network). An unedited graph gives the times that it was made with, to the nanosecond: the order of events is
 * that of engine.c. What an edited graph cannot show is what the core would have decided otherwise.
 *
 * A graph is cut where its last round has closed. What was under way then is `open`: it takes its share of devices and links up
 * to there, and its end is in no figure.
 */
#pragma once

#include <stdio.h>

#include "base/diag.h"
#include "core/skep.h"
#include "scenarios/read/scenario.h"

#define SKEP_GRAPH_NONE UINT32_MAX
#define SKEP_GRAPH_VERSION 1
#define SKEP_GRAPH_NODES_MAX 500000u
#define SKEP_GRAPH_FILE_BYTES_MAX ((size_t)512 << 20)
/* No time in a file is later, and no tensor larger: the doubles of JSON hold these exactly. */
#define SKEP_GRAPH_NS_MAX (INT64_C(1) << 53)
#define SKEP_GRAPH_BYTES_MAX (INT64_C(1) << 50)

enum skep_graph_kind {
	SKEP_GRAPH_OP,       /* on a worker's device, in one of its lanes */
	SKEP_GRAPH_SEND,     /* a message from one machine to another */
	SKEP_GRAPH_DECISION, /* of the directory, which takes no time: what it sends then comes after it */
	SKEP_GRAPH_LEAVE,    /* a worker's process ends, with all that it has under way */
	SKEP_GRAPH_JOIN,     /* another one begins on its machine */
	SKEP_GRAPH_KINDS
};

struct skep_graph_list { /* link[first] .. link[first + count - 1] of the graph */
	uint32_t first, count;
};

struct skep_graph_node {
	uint32_t name;     /* in the text of the graph; unique */
	uint8_t kind;      /* enum skep_graph_kind */
	bool open;         /* no end of it is known */
	uint32_t place;    /* worker, or the number of workers: the directory; of a message where it comes from */
	uint32_t to;       /* SEND: where it goes */
	uint32_t timed_on; /* OP: the worker that duration_ns is for; NONE: for any */
	struct skep_graph_list after;               /* nodes that end before it begins */
	struct skep_graph_list reads, writes, adds; /* tensors; `adds`: those that several nodes make together */
	uint32_t follows;                           /* OP: the one before it in its lane, or NONE */
	skep_time at_ns;                            /* not before this */
	skep_time duration_ns;                      /* OP: on cores of its own */
	skep_time begin_ns, end_ns;                 /* as the graph says or the simulation found */
	struct skep_op op;                          /* OP: as far as the compute model asks */
	uint8_t message;                            /* SEND: enum skep_message_kind */
	uint16_t stage;                             /* SEND: as the message has it */
	uint32_t round, number;                     /* SEND: the same; number: of a pass its microbatch */
};

struct skep_graph_tensor {
	uint32_t name;
	uint64_t bytes;
	uint32_t place;                /* of one that is there from the start; else NONE, and it is where it was made */
	struct skep_graph_list makers; /* nodes that write it, or add to it, in the graph's order */
};

struct skep_graph_place { /* a worker, for the reader of a graph; "": not known */
	char gpu[64], site[32];
	uint32_t stage; /* that it serves at the start, or NONE */
};

struct skep_graph_names { /* hash from names to numbers */
	uint32_t *slot;
	uint32_t count, size;
};

struct skep_graph {
	struct skep_graph_node *node;
	struct skep_graph_tensor *tensor;
	uint32_t *link;
	char *text; /* names, each with its final 0 */
	uint32_t nodes, tensors, links, text_bytes;
	struct skep_graph_names node_names, tensor_names;
	struct skep_graph_place *place; /* [workers] */
	uint32_t workers;
	uint32_t rounds;                     /* that it has whole */
	skep_time until_ns;                  /* when its last round closed */
	char *scenario_path, *scenario_text; /* as skep_scenario_read_text() takes them */
};

void skep_graph_finish(struct skep_graph *graph);

/* ---- storage (graph.c): false or NONE: not enough memory ---------------------------------------------------------- */

/* A node, or a tensor, of that name, with all else 0, NONE and without lists. *ret_again: there is one of that name already. */
uint32_t skep_graph_node_add(struct skep_graph *graph, const char *name, bool *ret_again);
uint32_t skep_graph_tensor_add(struct skep_graph *graph, const char *name, bool *ret_again);
uint32_t skep_graph_node_find(const struct skep_graph *graph, const char *name); /* NONE: there is none */
uint32_t skep_graph_tensor_find(const struct skep_graph *graph, const char *name);
/* A list to which another one was added meanwhile moves to the end of all. */
bool skep_graph_append(struct skep_graph *graph, struct skep_graph_list *list, uint32_t number);
/* Fills `makers` of all tensors. */
bool skep_graph_find_makers(struct skep_graph *graph);

static inline const char *skep_graph_node_name(const struct skep_graph *graph, uint32_t node)
{
	return graph->text + graph->node[node].name;
}
static inline const char *skep_graph_tensor_name(const struct skep_graph *graph, uint32_t tensor)
{
	return graph->text + graph->tensor[tensor].name;
}
/* "worker 3", "directory". */
#define SKEP_GRAPH_PLACE_BYTES 24u
const char *skep_graph_place_name(const struct skep_graph *graph, uint32_t place, char ret[SKEP_GRAPH_PLACE_BYTES]);
/* Of a message: its header and what it writes. */
uint64_t skep_graph_message_bytes(const struct skep_graph *graph, const struct skep_graph_node *node);

/* ---- from a scenario (trace.c) ------------------------------------------------------------------------------------- */

/* The scenario's first `rounds` rounds. Its arithmetic is left out, here and in the scenario itself. False: reterr says why. */
bool skep_graph_make(struct skep_scenario *scenario, uint32_t rounds, struct skep_graph *ret, struct skep_diag *reterr);

/* ---- to files and from them (write.c, dot.c, read.c, check.c) ------------------------------------------------------ */

#define SKEP_GRAPH_HEAD "{\"skep_graph\":"
bool skep_graph_write_json(const struct skep_graph *graph, FILE *out); /* false: not enough memory */
/* For graphviz: a cluster for each worker, its operations in it; messages are the arrows between. */
bool skep_graph_write_dot(const struct skep_graph *graph, FILE *out);

/* Reads such a file, or one that was edited; on failure *ret is empty. */
bool skep_graph_read(const char *path, struct skep_graph *ret, struct skep_diag *reterr);
/* The same from text; `path` is for errors. */
bool skep_graph_read_text(
	const char *path, const char *text, size_t size, struct skep_graph *ret, struct skep_diag *reterr);
/* What can be told without the scenario: names that lead nowhere, tensors that none makes or that are elsewhere, circles. */
bool skep_graph_check(const struct skep_graph *graph, const char *path, const char *text, struct skep_diag *reterr);
/* An error at the node or tensor of that name, where the text has it. Returns false. */
bool skep_graph_fail_at(struct skep_diag *reterr, const char *path, const char *text, const char *name,
	const char *format, ...) __attribute__((format(printf, 5, 6)));

/* ---- its simulation (play.c, figures.c) ---------------------------------------------------------------------------- */

/* Fills begin_ns, end_ns and open of all nodes. False: not enough memory, or reterr says what the scenario does not have. */
bool skep_graph_play(struct skep_graph *graph, const struct skep_scenario *scenario, struct skep_diag *reterr);

struct skep_graph_times { /* of a node */
	skep_time begin_ns, end_ns;
	bool open;
};

struct skep_graph_use {                /* of a place: a worker's lanes, or an ordered pair of machines */
	uint32_t place, to;            /* to: NONE for a worker */
	uint32_t count;                /* operations, or messages */
	uint64_t bytes;                /* of messages */
	skep_time busy_ns[SKEP_LANES]; /* of a pair: [0], at least one message was on its way */
};

struct skep_graph_figures {
	skep_time makespan_ns, before_ns; /* the last end, now and in the file */
	uint32_t ended, same, open,
		lost;                /* nodes with an end; at the same times as before; open before; open only now */
	uint32_t *path, path_length; /* nodes, the first one first: each waited last for the one before it */
	skep_time path_ns[SKEP_OP_KINDS + 1u]; /* of the path, by the kind of operation; 0: messages; KINDS: waiting */
	struct skep_graph_use *use;
	uint32_t uses; /* workers first, by number; then pairs, by their numbers */
};

/* `file`: what the file says, [nodes]. False: not enough memory. */
bool skep_graph_figures_make(
	const struct skep_graph *graph, const struct skep_graph_times *file, struct skep_graph_figures *ret);
void skep_graph_figures_finish(struct skep_graph_figures *figures);
void skep_graph_figures_print(const struct skep_graph *graph, const struct skep_graph_figures *figures, FILE *out);
bool skep_graph_figures_print_json(const struct skep_graph *graph, const struct skep_graph_figures *figures, FILE *out);
