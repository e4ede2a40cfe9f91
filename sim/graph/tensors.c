/* SPDX-License-Identifier: Apache-2.0
 *
 * tensors.c - decides which tensors an operation reads and makes, for a graph.
 *
 * Without arithmetic a buffer's handle is a number that is never used twice (world.c), so it names a tensor. What has no
 * handle, because a device keeps it, gets its name here: parameters, one tensor for each version; and what several operations
 * make together (the accumulated gradients of a round, the result of a reduction, a state that is downloaded in chunks, the
 * shards of the parameters that others have stepped), a sum of all that add to it. Who adds to a sum after it was read makes
 * a new one, which reads the old one: so what reads a sum waits for all that was added before, and for nothing that is added
 * later.
 */
#include <assert.h>
#include <stdio.h>

#include "base/grow.h"
#include "scenarios/plan/plan.h"
#include "sim/graph/trace.h"

static uint64_t key_of(struct skep_buf buf)
{
	return (uint64_t)buf.generation << 32 | buf.slot;
}

static uint32_t tensor_of(const struct skep_trace *trace, struct skep_buf buf)
{
	return buf.generation != 0 ? skep_map_get(&trace->tensors_of_buffers, key_of(buf)) : SKEP_GRAPH_NONE;
}

static void remember(struct skep_trace *trace, struct skep_buf buf, uint32_t tensor)
{
	if (tensor != SKEP_GRAPH_NONE && !skep_map_set(&trace->tensors_of_buffers, key_of(buf), tensor))
		trace->no_memory = true;
}

/* ---- sums --------------------------------------------------------------------------------------------------- */

static const char *const SUM[] = {[SKEP_SUM_GRADIENTS] = "gradients",
	[SKEP_SUM_RESULT] = "result",
	[SKEP_SUM_PARTS] = "parts",
	[SKEP_SUM_TIED] = "tied",
	[SKEP_SUM_STATE] = "state",
	[SKEP_SUM_GATHERED] = "gathered"};

/* A state has no round. All attempts to reduce the gradients of a round are one. */
static struct skep_trace_sum *sum_of(
	struct skep_trace *trace, uint32_t worker, const struct skep_op *op, enum skep_trace_sum_kind kind)
{
	uint32_t stage = op->stage % trace->plan->stages, round = kind == SKEP_SUM_STATE ? 0 : op->round;
	assert(worker < trace->plan->workers && kind < sizeof SUM / sizeof *SUM);
	uint64_t key = skep_mix(skep_mix((uint64_t)kind << 32 | worker) ^ ((uint64_t)stage << 32 | round));
	uint32_t at = skep_map_get(&trace->sums, key);
	if (at != SKEP_MAP_NONE)
		return &trace->sum[at];
	if (!skep_grow(&trace->sum, trace->sums_count, sizeof *trace->sum) ||
		!skep_map_set(&trace->sums, key, trace->sums_count)) {
		trace->no_memory = true;
		return NULL;
	}
	trace->sum[trace->sums_count] = (struct skep_trace_sum){.tensor = SKEP_GRAPH_NONE};
	return &trace->sum[trace->sums_count++];
}

static uint64_t sum_bytes(const struct skep_trace *trace, const struct skep_op *op, enum skep_trace_sum_kind kind)
{
	uint32_t stage = op->stage % trace->plan->stages;
	if (kind == SKEP_SUM_STATE)
		return trace->scenario->stage[stage].state_bytes;
	return SKEP_FLOAT_BYTES * (kind == SKEP_SUM_TIED ? trace->plan->tied : skep_plan_trained(trace->plan, stage));
}

static void read_sum(struct skep_trace *trace, uint32_t worker, const struct skep_op *op, enum skep_trace_sum_kind kind,
	struct skep_trace_few *reads)
{
	struct skep_trace_sum *sum = sum_of(trace, worker, op, kind);
	if (!sum)
		return;
	skep_trace_add(reads, sum->tensor);
	sum->read = true;
}

/* `reads` may get the sum as it was. */
static void add_to_sum(struct skep_trace *trace, uint32_t worker, const struct skep_op *op,
	enum skep_trace_sum_kind kind, struct skep_trace_few *reads, struct skep_trace_few *adds)
{
	struct skep_trace_sum *sum = sum_of(trace, worker, op, kind);
	char name[64];
	if (!sum)
		return;
	if (sum->read || sum->tensor == SKEP_GRAPH_NONE) {
		skep_trace_add(reads, sum->tensor);
		snprintf(name, sizeof name, "%s.s%u.r%u.w%u", SUM[kind], op->stage % trace->plan->stages,
			kind == SKEP_SUM_STATE ? 0 : op->round, worker);
		sum->tensor = skep_trace_tensor(trace, name, sum_bytes(trace, op, kind));
		sum->read = false;
	}
	skep_trace_add(adds, sum->tensor);
}

static void empty_sum(
	struct skep_trace *trace, uint32_t worker, const struct skep_op *op, enum skep_trace_sum_kind kind)
{
	struct skep_trace_sum *sum = sum_of(trace, worker, op, kind);
	if (sum)
		*sum = (struct skep_trace_sum){.tensor = SKEP_GRAPH_NONE};
}

/* ---- parameters --------------------------------------------------------------------------------------------- */

/* Version UINT32_MAX: the newest one that was made here. */
static uint64_t parameters_key(uint32_t worker, uint32_t vstage, uint32_t version)
{
	return skep_mix((uint64_t)worker << 32 | vstage) ^ version;
}

static uint32_t make_parameters(struct skep_trace *trace, uint32_t worker, uint32_t vstage, uint32_t version)
{
	char name[64];
	uint32_t vstages = skep_plan_vstages(trace->plan), stages = trace->plan->stages;
	assert(vstage < vstages && worker < trace->plan->workers);
	uint64_t parameters = trace->plan->stage[vstage % stages].parameters / (vstages / stages);
	snprintf(name, sizeof name, "parameters.s%u.v%u.w%u", vstage, version, worker);
	uint32_t tensor = skep_trace_tensor(trace, name, SKEP_FLOAT_BYTES * parameters);
	if (tensor != SKEP_GRAPH_NONE &&
		(!skep_map_set(&trace->parameters, parameters_key(worker, vstage, version), tensor) ||
			!skep_map_set(&trace->parameters, parameters_key(worker, vstage, UINT32_MAX), tensor)))
		trace->no_memory = true;
	return tensor;
}

/* Of that version if it was made here; else the newest, else a downloaded state, else what was there at the start. */
static uint32_t parameters_for(struct skep_trace *trace, uint32_t worker, const struct skep_op *op)
{
	uint32_t tensor = skep_map_get(&trace->parameters, parameters_key(worker, op->stage, op->version));
	if (tensor == SKEP_MAP_NONE)
		tensor = skep_map_get(&trace->parameters, parameters_key(worker, op->stage, UINT32_MAX));
	const struct skep_trace_sum *state = sum_of(trace, worker, op, SKEP_SUM_STATE);
	if (tensor == SKEP_MAP_NONE && state && state->tensor != SKEP_GRAPH_NONE)
		return state->tensor;
	if (tensor == SKEP_MAP_NONE) {
		tensor = make_parameters(trace, worker, op->stage, op->version);
		if (tensor != SKEP_GRAPH_NONE)
			trace->graph->tensor[tensor].place = worker;
	}
	return tensor;
}

/* ---- operations --------------------------------------------------------------------------------------------- */

static bool reads_gradients(const struct skep_op *op)
{
	switch (op->kind) {
	case SKEP_OP_COPY_GRAD:
	case SKEP_OP_ADD:
	case SKEP_OP_ADD_STORE:
	case SKEP_OP_INIT_RESULT:
	case SKEP_OP_PACK_PART:
	case SKEP_OP_INNER_STEP:
	case SKEP_OP_PSEUDO_GRAD:
		return true;
	case SKEP_OP_UNPACK_PART:
		return op->in.generation == 0;
	case SKEP_OP_STEP:
	case SKEP_OP_NORM:
	case SKEP_OP_COPY_TIED:
		return op->members == 1;
	default:
		return false;
	}
}

static bool reads_result(const struct skep_op *op)
{
	bool measures = op->kind == SKEP_OP_STEP || op->kind == SKEP_OP_NORM || op->kind == SKEP_OP_COPY_TIED;
	return op->kind == SKEP_OP_COPY_RESULT || (measures && op->members > 1);
}

/* Of the parameters that the round's step makes: the shard that is stepped here goes out, and those of others come to it. */
static bool is_of_shards(uint8_t kind)
{
	return kind == SKEP_OP_COPY_SHARD || kind == SKEP_OP_STORE_SHARD;
}

/* Parameters are read once they are made, and with plan->sharded once the others' shards of them are there as well. */
static void read_parameters(
	struct skep_trace *trace, uint32_t worker, const struct skep_op *op, struct skep_trace_few *reads)
{
	struct skep_op of = *op;
	if (is_of_shards(op->kind))
		of.version = op->round + 1;
	skep_trace_add(reads, parameters_for(trace, worker, &of));
	if (!trace->plan->sharded || is_of_shards(op->kind) || op->version == 0)
		return;
	of.round = op->version - 1;
	read_sum(trace, worker, &of, SKEP_SUM_GATHERED, reads);
}

static bool adds_to_result(uint8_t kind)
{
	return kind == SKEP_OP_ADD_STORE || kind == SKEP_OP_STORE || kind == SKEP_OP_INIT_RESULT ||
	       kind == SKEP_OP_ADD_TO_RESULT || kind == SKEP_OP_AGGREGATE;
}

static void read_sums(struct skep_trace *trace, uint32_t worker, const struct skep_op *op, struct skep_trace_few *reads)
{
	if (reads_gradients(op))
		read_sum(trace, worker, op, SKEP_SUM_GRADIENTS, reads);
	if (reads_result(op))
		read_sum(trace, worker, op, SKEP_SUM_RESULT, reads);
	if (op->kind == SKEP_OP_AGGREGATE)
		read_sum(trace, worker, op, SKEP_SUM_PARTS, reads);
	if (op->kind == SKEP_OP_STEP && trace->plan->tied > 0)
		read_sum(trace, worker, op, SKEP_SUM_TIED, reads);
}

/* Only what is done is in a sum: who reads it while the operation waits or runs does not wait for it. */
static void add_to_sums(struct skep_trace *trace, uint32_t node, const struct skep_op *op)
{
	struct skep_trace_few reads = {0}, adds = {0};
	uint32_t worker = trace->index;
	bool counts = op->kind == SKEP_OP_BACKWARD && !op->uncounted && !skep_plan_is_frozen(trace->plan, op->stage);
	if (op->kind == SKEP_OP_INNER_STEP || op->kind == SKEP_OP_DISCARD)
		empty_sum(trace, worker, op, SKEP_SUM_GRADIENTS);
	if (counts || op->kind == SKEP_OP_PSEUDO_GRAD)
		add_to_sum(trace, worker, op, SKEP_SUM_GRADIENTS, &reads, &adds);
	if (adds_to_result(op->kind))
		add_to_sum(trace, worker, op, SKEP_SUM_RESULT, &reads, &adds);
	if (op->kind == SKEP_OP_UNPACK_PART)
		add_to_sum(trace, worker, op, SKEP_SUM_PARTS, &reads, &adds);
	if (op->kind == SKEP_OP_STORE_TIED)
		add_to_sum(trace, worker, op, SKEP_SUM_TIED, &reads, &adds);
	if (op->kind == SKEP_OP_STORE_SHARD)
		add_to_sum(trace, worker, op, SKEP_SUM_GATHERED, &reads, &adds);
	if (op->kind == SKEP_OP_LOAD || op->kind == SKEP_OP_RESTORE || op->kind == SKEP_OP_ENTER)
		add_to_sum(trace, worker, op, SKEP_SUM_STATE, &reads, &adds);
	skep_trace_append(trace, &trace->graph->node[node].reads, &reads);
	skep_trace_append(trace, &trace->graph->node[node].adds, &adds);
}

void skep_trace_operands(struct skep_trace *trace, uint32_t node, const struct skep_op *op)
{
	assert(node < trace->graph->nodes);
	struct skep_trace_few reads = {0};
	uint32_t worker = trace->index;
	skep_trace_add(&reads, tensor_of(trace, op->in));
	skep_trace_add(&reads, tensor_of(trace, op->stash));
	skep_trace_add(&reads, tensor_of(trace, op->gradient));
	if (skep_op_passes(op->kind) || is_of_shards(op->kind))
		read_parameters(trace, worker, op, &reads);
	read_sums(trace, worker, op, &reads);
	skep_trace_append(trace, &trace->graph->node[node].reads, &reads);
}

static uint64_t out_bytes(const struct skep_trace *trace, const struct skep_op *op)
{
	switch (op->kind) {
	case SKEP_OP_FORWARD:
		return skep_plan_vstage_bytes(trace->plan, op->stage);
	case SKEP_OP_BACKWARD:
		return op->stage > 0 ? skep_plan_gradient_bytes(trace->plan, op->stage - 1u) : 0;
	case SKEP_OP_SAVE:
		return op->chunks > 1 ? skep_state_chunk_bytes(trace->plan, op->stage, op->chunk)
		                      : trace->scenario->stage[op->stage].state_bytes;
	default:
		return skep_plan_encoded_bytes(trace->plan, op->stage, op->count);
	}
}

static void make(struct skep_trace *trace, uint32_t node, struct skep_buf buf, const char *what, uint64_t bytes,
	struct skep_trace_few *writes)
{
	char name[160];
	if (buf.generation == 0)
		return;
	snprintf(name, sizeof name, "%s:%s", skep_graph_node_name(trace->graph, node), what);
	uint32_t tensor = skep_trace_tensor(trace, name, bytes);
	remember(trace, buf, tensor);
	skep_trace_add(writes, tensor);
}

void skep_trace_results(struct skep_trace *trace, uint32_t node, const struct skep_event *event)
{
	assert(event->kind == SKEP_EVENT_OP_DONE && node < trace->graph->nodes);
	const struct skep_op *op = &event->u.done.op;
	struct skep_trace_few writes = {0};
	make(trace, node, event->u.done.out, "out", out_bytes(trace, op), &writes);
	if (op->kind == SKEP_OP_FORWARD)
		make(trace, node, event->u.done.stash, "stash",
			trace->scenario->samples * trace->scenario->cost[op->stage].stash_bytes, &writes);
	if (op->kind == SKEP_OP_STEP)
		skep_trace_add(&writes, make_parameters(trace, trace->index, op->stage, op->round + 1));
	skep_trace_append(trace, &trace->graph->node[node].writes, &writes);
	add_to_sums(trace, node, op);
}

void skep_trace_payload(
	struct skep_trace *trace, uint32_t node, const struct skep_message *message, struct skep_buf payload)
{
	assert(node < trace->graph->nodes);
	struct skep_trace_few reads = {0}, writes = {0};
	uint32_t source = tensor_of(trace, payload);
	if (message->payload.generation == 0)
		return;
	skep_trace_add(&reads, source);
	if (source != SKEP_GRAPH_NONE)
		trace->graph->tensor[source].bytes = message->payload_bytes;
	skep_trace_append(trace, &trace->graph->node[node].reads, &reads);
	make(trace, node, message->payload, "data", message->payload_bytes, &writes);
	skep_trace_append(trace, &trace->graph->node[node].writes, &writes);
}
