/* SPDX-License-Identifier: Apache-2.0
 *
 * trace.c - makes a graph of what a simulated run does: watches each step of each machine, and notes what comes after what.
 *
 * An operation, or a message, comes after what its machine was told when it asked for it: the message that had come, or the
 * operation that had ended in the other lane (in its own lane it follows that one anyway). A timer gives a time before
 * which it does not come. That is what happened last; what a machine had waited for besides is
 *   - what is read (tensors.c);
 *   - a microbatch that the directory has granted, for FORWARD of the first stage; REDUCE for the first operation of a
 *     reduction, COMMIT for a step, BARRIER_LIFTED for BACKWARD: the newest such message that has come of the same round;
 *   - for the directory: all that it has heard. Each of its steps that sends something is a decision. One that only grants
 *     more of a round that is open, or tells who is there, comes after what it was told last. A COMMIT comes after what the
 *     members of its stage have told (with `clip` or a tied table after what all have told). All others (a round opens, its
 *     gradients are reduced, it closes) come after all that was heard since the last such decision. So an edited graph
 *     decides in the order of the run, perhaps later than the core would, and never before what it needs.
 */
#include "sim/graph/trace.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "core/names.h"
#include "core/record.h"
#include "sim/sim.h"

#define NONE SKEP_GRAPH_NONE

void skep_trace_add(struct skep_trace_few *few, uint32_t item)
{
	for (uint32_t i = 0; i < few->count; i++)
		if (few->item[i] == item)
			return;
	if (item == NONE)
		return;
	assert(few->count < sizeof few->item / sizeof *few->item);
	few->item[few->count++] = item;
}

bool skep_trace_append(struct skep_trace *trace, struct skep_graph_list *list, const struct skep_trace_few *few)
{
	for (uint32_t i = 0; i < few->count && !trace->no_memory; i++)
		trace->no_memory = !skep_graph_append(trace->graph, list, few->item[i]);
	return !trace->no_memory;
}

/* ---- names -------------------------------------------------------------------------------------------------- */

static uint64_t hash_of(const char *name)
{
	uint64_t hash = 0;
	for (; *name != '\0'; name++)
		hash = skep_mix(hash ^ (unsigned char)*name);
	return hash;
}

/* Adds what is called so, with ".2", ".3" and so on behind the name where there is one already. */
static uint32_t add_named(
	struct skep_trace *trace, const char *name, uint32_t (*add)(struct skep_graph *, const char *, bool *))
{
	char numbered[192];
	bool again;
	uint32_t made = add(trace->graph, name, &again), suffix = 1;
	if (again) {
		uint32_t last = skep_map_get(&trace->suffixes, hash_of(name));
		suffix = last != SKEP_MAP_NONE ? last : 1;
	}
	while (again && suffix < UINT32_MAX) {
		snprintf(numbered, sizeof numbered, "%s.%u", name, ++suffix);
		made = add(trace->graph, numbered, &again);
	}
	bool kept = suffix == 1 || skep_map_set(&trace->suffixes, hash_of(name), suffix);
	trace->no_memory = trace->no_memory || made == NONE || !kept;
	return made;
}

uint32_t skep_trace_tensor(struct skep_trace *trace, const char *name, uint64_t bytes)
{
	uint32_t tensor = add_named(trace, name, skep_graph_tensor_add);
	if (tensor != NONE)
		trace->graph->tensor[tensor].bytes = bytes;
	return tensor;
}

/* A node of that name, as a tensor of it. */
static uint32_t new_node(struct skep_trace *trace, const char *name)
{
	if (trace->graph->nodes >= SKEP_GRAPH_NODES_MAX) {
		trace->too_large = true;
		trace->stop = 1;
		return NONE;
	}
	uint32_t node = add_named(trace, name, skep_graph_node_add);
	if (node == NONE)
		return NONE;
	struct skep_graph_node *of = &trace->graph->node[node];
	of->open = true;
	of->begin_ns = trace->now;
	of->at_ns = trace->at_time ? trace->now : 0;
	return node;
}

/* ---- what was heard ----------------------------------------------------------------------------------------- */

static void hear(struct skep_trace *trace, struct skep_trace_hearing *hearing, const struct skep_message *message)
{
	if (!skep_grow(&hearing->item, hearing->count, sizeof *hearing->item)) {
		trace->no_memory = true;
		return;
	}
	hearing->item[hearing->count++] = (struct skep_trace_heard){trace->cause, *message};
}

static void note_message(struct skep_trace *trace, const struct skep_message *message)
{
	struct skep_trace_machine *machine = &trace->machine[trace->index];
	bool directory = trace->index == trace->plan->workers;
	switch (message->kind) {
	case SKEP_MESSAGE_HEARTBEAT:
	case SKEP_MESSAGE_LOAD:
	case SKEP_MESSAGE_LIST_PEERS:
		return;
	case SKEP_MESSAGE_GRANT:
		hear(trace, &machine->grants, message);
		return;
	case SKEP_MESSAGE_REDUCE:
		hear(trace, &machine->reduces, message);
		return;
	case SKEP_MESSAGE_COMMIT:
		hear(trace, &machine->commits, message);
		return;
	case SKEP_MESSAGE_BARRIER_LIFTED:
		hear(trace, &machine->barriers, message);
		return;
	default:
		if (directory)
			hear(trace, &trace->heard, message);
	}
}

static uint32_t newest(const struct skep_trace_hearing *hearing, uint32_t round)
{
	for (uint32_t i = hearing->count; i-- > 0;)
		if (hearing->item[i].message.round == round)
			return hearing->item[i].node;
	return NONE;
}

static uint32_t grant_of(const struct skep_trace_hearing *grants, uint32_t round, uint32_t microbatch)
{
	for (uint32_t i = grants->count; i-- > 0;) {
		const struct skep_message *grant = &grants->item[i].message;
		if (grant->round == round && microbatch >= grant->microbatch &&
			microbatch - grant->microbatch < grant->u.grant.count)
			return grants->item[i].node;
	}
	return newest(grants, round); /* of a fixed pipeline, whose numbers are not in a row */
}

static uint32_t commit_of(const struct skep_trace_hearing *commits, const struct skep_op *op)
{
	for (uint32_t i = commits->count; i-- > 0;)
		if (commits->item[i].message.round == op->round && commits->item[i].message.stage == op->stage)
			return commits->item[i].node;
	return NONE;
}

/* ---- operations --------------------------------------------------------------------------------------------- */

/* What its machine had waited for besides what it reads. */
static uint32_t permit(const struct skep_trace *trace, const struct skep_op *op)
{
	const struct skep_trace_machine *machine = &trace->machine[trace->index];
	uint32_t before = machine->last[op->lane];
	if (op->kind == SKEP_OP_FORWARD && op->in.generation == 0)
		return grant_of(&machine->grants, op->round, op->microbatch);
	if (op->kind == SKEP_OP_BACKWARD)
		return newest(&machine->barriers, op->round);
	if (op->kind == SKEP_OP_STEP)
		return commit_of(&machine->commits, op);
	if (!skep_op_reduces(op->kind))
		return NONE;
	const struct skep_op *last = before != NONE ? &trace->graph->node[before].op : NULL;
	if (last && skep_op_reduces(last->kind) && last->round == op->round && last->attempt == op->attempt)
		return NONE; /* it follows one that has waited */
	return newest(&machine->reduces, op->round);
}

static void name_op(const struct skep_trace *trace, const struct skep_op *op, char *ret, size_t size)
{
	int used = snprintf(ret, size, "%s.s%u.r%u", skep_op_name(op->kind), op->stage, op->round);
	if (skep_op_passes(op->kind))
		used += snprintf(ret + used, size - (size_t)used, ".m%u", op->microbatch);
	if (op->kind == SKEP_OP_BACKWARD && op->parts > 1)
		used += snprintf(ret + used, size - (size_t)used, ".p%u", op->part);
	if (skep_op_reduces(op->kind) || op->kind == SKEP_OP_SAVE || op->kind == SKEP_OP_LOAD)
		used += snprintf(ret + used, size - (size_t)used, ".c%u", op->chunk);
	snprintf(ret + used, size - (size_t)used, ".w%u", trace->index);
}

/* Is it an operation of this worker in this lane, that the next one in the lane follows anyway? */
static bool is_before(const struct skep_trace *trace, uint32_t node, uint8_t lane)
{
	const struct skep_graph_node *of = node != NONE ? &trace->graph->node[node] : NULL;
	return of && of->kind == SKEP_GRAPH_OP && of->op.lane == lane;
}

static void asked(void *context, uint32_t worker, const struct skep_op *op)
{
	struct skep_trace *trace = context;
	struct skep_trace_few after = {0};
	char name[128];
	if (trace->stop || trace->no_memory)
		return;
	assert(worker == trace->index && op->kind != SKEP_OP_ALLREDUCE);
	name_op(trace, op, name, sizeof name);
	uint32_t permitted = permit(trace, op), node = new_node(trace, name);
	if (node == NONE)
		return;
	struct skep_graph_node *of = &trace->graph->node[node];
	uint32_t *last = &trace->machine[worker].last[op->lane];
	of->kind = SKEP_GRAPH_OP;
	of->place = of->timed_on = worker;
	of->op = *op;
	of->duration_ns = skep_scenario_op_ns(trace->scenario, worker, op);
	of->follows = *last;
	if (!is_before(trace, trace->cause, op->lane))
		skep_trace_add(&after, trace->cause);
	skep_trace_add(&after, permitted);
	skep_trace_append(trace, &of->after, &after);
	skep_trace_operands(trace, node, op);
	*last = node;
	if (!skep_map_set(&trace->nodes_of_ops, skep_mix(worker) ^ op->id, node))
		trace->no_memory = true;
}

static void ended(struct skep_trace *trace, const struct skep_event *event)
{
	uint32_t node = skep_map_get(&trace->nodes_of_ops, skep_mix(trace->index) ^ event->u.done.op.id);
	trace->cause = node;
	if (node == SKEP_MAP_NONE)
		return;
	struct skep_graph_node *of = &trace->graph->node[node];
	assert(of->kind == SKEP_GRAPH_OP && of->open && event->u.done.elapsed_ns <= event->now);
	of->begin_ns = event->now - event->u.done.elapsed_ns;
	of->end_ns = event->now;
	of->open = false;
	skep_trace_results(trace, node, event);
}

/* ---- messages ----------------------------------------------------------------------------------------------- */

static const char *message_word(uint8_t kind, char *ret, size_t size)
{
	const char *name = skep_message_name(kind);
	size_t i = 0;
	if (kind == SKEP_MESSAGE_FORWARD || kind == SKEP_MESSAGE_BACKWARD)
		name = kind == SKEP_MESSAGE_FORWARD ? "activations" : "gradients";
	for (; name[i] != '\0' && i + 1 < size; i++)
		ret[i] = (char)tolower((unsigned char)name[i]);
	ret[i] = '\0';
	return ret;
}

static void name_message(const struct skep_trace *trace, const struct skep_message *message, char *ret, size_t size)
{
	char word[32], from[16], to[16];
	bool passes = skep_message_traffic(message) == SKEP_TRAFFIC_PIPELINE;
	uint32_t directory = trace->plan->workers;
	snprintf(from, sizeof from, message->from.index == directory ? "d" : "w%u", message->from.index);
	snprintf(to, sizeof to, message->to.index == directory ? "d" : "w%u", message->to.index);
	int used = snprintf(ret, size, "%s", message_word(message->kind, word, sizeof word));
	if (passes || message->kind == SKEP_MESSAGE_CHUNK || message->kind == SKEP_MESSAGE_COMMIT)
		used += snprintf(ret + used, size - (size_t)used, ".s%u", message->stage);
	used += snprintf(ret + used, size - (size_t)used, ".r%u", message->round);
	if (passes || message->kind == SKEP_MESSAGE_GRANT || message->kind == SKEP_MESSAGE_FINISHED)
		used += snprintf(ret + used, size - (size_t)used, ".m%u", message->microbatch);
	if (message->kind == SKEP_MESSAGE_CHUNK)
		used += snprintf(ret + used, size - (size_t)used, ".h%u", message->u.chunk.hop);
	snprintf(ret + used, size - (size_t)used, ".%s-%s", from, to);
}

static void sent(void *context, const struct skep_message *message, struct skep_buf payload, uint64_t number)
{
	struct skep_trace *trace = context;
	struct skep_trace_few after = {0};
	char name[128];
	if (trace->stop || trace->no_memory)
		return;
	name_message(trace, message, name, sizeof name);
	uint32_t node = new_node(trace, name);
	if (node == NONE)
		return;
	struct skep_graph_node *of = &trace->graph->node[node];
	of->kind = SKEP_GRAPH_SEND;
	assert(message->from.index <= trace->plan->workers && message->to.index <= trace->plan->workers);
	of->place = message->from.index;
	of->to = message->to.index;
	of->message = message->kind;
	of->stage = message->stage;
	of->round = message->round;
	of->number = message->number;
	if (trace->decision != NONE)
		of->at_ns = 0;
	skep_trace_add(&after, trace->decision != NONE ? trace->decision : trace->cause);
	skep_trace_append(trace, &of->after, &after);
	skep_trace_payload(trace, node, message, payload);
	if (!skep_map_set(&trace->nodes_of_messages, number, node))
		trace->no_memory = true;
}

/* ---- decisions ---------------------------------------------------------------------------------------------- */

enum waits { FOR_ONE, FOR_STAGE, FOR_ALL };

static enum waits waits_for(struct skep_trace *trace, const struct skep_message *message)
{
	bool opens = message->kind == SKEP_MESSAGE_GRANT && (!trace->opened || message->round > trace->rounds_opened);
	switch (message->kind) {
	case SKEP_MESSAGE_PEER:
	case SKEP_MESSAGE_ASSIGN:
	case SKEP_MESSAGE_ADMIT:
		return FOR_ONE;
	case SKEP_MESSAGE_GRANT:
		trace->opened = true;
		trace->rounds_opened = opens ? message->round : trace->rounds_opened;
		return opens ? FOR_ALL : FOR_ONE;
	case SKEP_MESSAGE_COMMIT:
		return trace->plan->clip || trace->plan->together || trace->plan->tied > 0 ? FOR_ALL : FOR_STAGE;
	default:
		return FOR_ALL;
	}
}

static bool tells_of(const struct skep_message *message, uint32_t stage)
{
	return (message->kind == SKEP_MESSAGE_TALLY || message->kind == SKEP_MESSAGE_NORM) && message->stage == stage;
}

/* The directory is about to send these: a decision, if there are any. */
static void decide(struct skep_trace *trace, const struct skep_actions *actions)
{
	assert(trace->index == trace->plan->workers && trace->decision == NONE);
	enum waits waits = FOR_ONE;
	uint32_t sends = 0, stage = 0;
	char name[64], word[32];
	uint8_t kind = 0;
	for (uint32_t i = 0; i < actions->count; i++) {
		const struct skep_message *message = &actions->item[i].u.send;
		if (actions->item[i].kind != SKEP_ACTION_SEND)
			continue;
		enum waits one = waits_for(trace, message);
		if (one == FOR_STAGE && waits == FOR_STAGE && stage != message->stage)
			one = FOR_ALL;
		stage = message->stage % trace->plan->stages;
		waits = one > waits ? one : waits;
		kind = sends++ == 0 ? message->kind : kind;
	}
	if (sends == 0)
		return;
	snprintf(name, sizeof name, "decision.%u.%s", ++trace->decisions, message_word(kind, word, sizeof word));
	trace->decision = new_node(trace, name);
	if (trace->decision == NONE)
		return;
	struct skep_graph_node *of = &trace->graph->node[trace->decision];
	of->kind = SKEP_GRAPH_DECISION;
	of->place = trace->index;
	of->end_ns = trace->now;
	of->open = false;
	bool named = trace->cause == NONE;
	if (trace->waited != NONE)
		trace->no_memory = !skep_graph_append(trace->graph, &of->after, trace->waited) || trace->no_memory;
	for (uint32_t i = 0; waits > FOR_ONE && i < trace->heard.count; i++) {
		const struct skep_trace_heard *heard = &trace->heard.item[i];
		if (waits == FOR_STAGE && !tells_of(&heard->message, stage) && heard->node != trace->cause)
			continue;
		named = named || heard->node == trace->cause;
		trace->no_memory = !skep_graph_append(trace->graph, &of->after, heard->node) || trace->no_memory;
	}
	if (!named)
		trace->no_memory = !skep_graph_append(trace->graph, &of->after, trace->cause) || trace->no_memory;
	if (waits == FOR_ALL) {
		trace->waited = trace->decision;
		trace->heard.count = 0;
	}
}

/* ---- steps -------------------------------------------------------------------------------------------------- */

static void stepped(void *context, uint32_t index, const struct skep_event *event, uint64_t delivered,
	const struct skep_actions *actions)
{
	struct skep_trace *trace = context;
	if (trace->stop || trace->no_memory)
		return;
	assert(event->now >= trace->now && index <= trace->plan->workers);
	trace->now = event->now;
	trace->index = index;
	trace->cause = trace->decision = NONE;
	switch ((enum skep_event_kind)event->kind) {
	case SKEP_EVENT_OP_DONE:
		ended(trace, event);
		break;
	case SKEP_EVENT_MESSAGE:
		trace->cause = skep_map_get(&trace->nodes_of_messages, delivered);
		if (trace->cause == NONE)
			break;
		trace->graph->node[trace->cause].end_ns = event->now;
		trace->graph->node[trace->cause].open = false;
		note_message(trace, &event->u.message);
		break;
	case SKEP_EVENT_START:
		trace->cause = trace->machine[index].joined;
		break;
	default:
		break;
	}
	trace->at_time = trace->cause == NONE;
	if (index == trace->plan->workers)
		decide(trace, actions);
}

static void present(void *context, skep_time now, uint32_t worker, bool begins)
{
	struct skep_trace *trace = context;
	char name[32];
	if (trace->stop || trace->no_memory)
		return;
	assert(now >= trace->now && worker < trace->plan->workers);
	trace->now = now;
	trace->at_time = true;
	snprintf(name, sizeof name, "%s.w%u", begins ? "join" : "leave", worker);
	uint32_t node = new_node(trace, name);
	if (node == NONE)
		return;
	struct skep_graph_node *of = &trace->graph->node[node];
	of->kind = begins ? SKEP_GRAPH_JOIN : SKEP_GRAPH_LEAVE;
	of->place = worker;
	of->end_ns = now;
	of->open = false;
	for (uint32_t lane = 0; lane < SKEP_LANES; lane++)
		trace->machine[worker].last[lane] = NONE;
	trace->machine[worker].joined = begins ? node : NONE;
}

/* ---- the run ------------------------------------------------------------------------------------------------ */

static void progress(void *context, skep_time now, uint32_t rounds_done, uint32_t rounds_total)
{
	struct skep_trace *trace = context;
	(void)rounds_total;
	if (trace->stop)
		return;
	assert(rounds_done >= trace->plan->first_round);
	trace->graph->until_ns = now;
	trace->graph->rounds = rounds_done - trace->plan->first_round;
	trace->stop = rounds_done >= trace->last_round;
}

static bool begin(struct skep_trace *trace, const struct skep_scenario *scenario, struct skep_graph *graph)
{
	graph->workers = scenario->plan.workers;
	graph->scenario_path = strdup(scenario->path);
	graph->scenario_text = strdup(scenario->text);
	graph->place = calloc(graph->workers, sizeof *graph->place);
	trace->machine = calloc(graph->workers + 1u, sizeof *trace->machine);
	for (uint32_t i = 0; graph->place && i < graph->workers; i++) {
		const struct skep_machine *machine = &scenario->topology.machine[i];
		uint32_t stage = scenario->first_stage_of[i];
		snprintf(graph->place[i].gpu, sizeof graph->place[i].gpu, "%s",
			scenario->topology.gpu[machine->gpu].name);
		snprintf(graph->place[i].site, sizeof graph->place[i].site, "%s",
			scenario->topology.place_name[machine->place]);
		graph->place[i].stage = stage == SKEP_NO_STAGE ? NONE : stage;
	}
	for (uint32_t i = 0; trace->machine && i <= graph->workers; i++) {
		trace->machine[i].joined = NONE;
		for (uint32_t lane = 0; lane < SKEP_LANES; lane++)
			trace->machine[i].last[lane] = NONE;
	}
	return trace->machine && graph->place && graph->scenario_path && graph->scenario_text;
}

static void finish(struct skep_trace *trace)
{
	for (uint32_t i = 0; trace->machine && i <= trace->plan->workers; i++) {
		free(trace->machine[i].grants.item);
		free(trace->machine[i].reduces.item);
		free(trace->machine[i].commits.item);
		free(trace->machine[i].barriers.item);
	}
	free(trace->machine);
	free(trace->heard.item);
	free(trace->sum);
	skep_map_finish(&trace->nodes_of_ops);
	skep_map_finish(&trace->nodes_of_messages);
	skep_map_finish(&trace->tensors_of_buffers);
	skep_map_finish(&trace->sums);
	skep_map_finish(&trace->parameters);
	skep_map_finish(&trace->suffixes);
}

static bool simulate(struct skep_trace *trace, uint32_t rounds, struct skep_diag *reterr)
{
	const struct skep_sim_watch watch = {trace, present, stepped, sent, asked};
	const struct skep_recorder recorder = {.context = trace, .progress = progress};
	const struct skep_sim_options options = {.threads = 1, .stop = &trace->stop, .watch = &watch};
	struct skep_sim_result result;
	bool ran = skep_sim_run_with(trace->scenario, &options, &recorder, &result);
	if (trace->too_large)
		return skep_fail(reterr,
			"more than %u operations and messages in %u round%s: ask for fewer rounds (--rounds), or for a smaller "
			"scenario",
			SKEP_GRAPH_NODES_MAX, rounds, rounds == 1 ? "" : "s");
	if (!ran || trace->no_memory || !skep_graph_find_makers(trace->graph))
		return skep_fail(
			reterr, "%s", result.error.set ? result.error.message : "not enough memory for the graph");
	if (trace->graph->rounds == 0)
		return skep_fail(
			reterr, "the simulated run ends before its first round is closed: see what `skep sim` says");
	return true;
}

bool skep_graph_make(struct skep_scenario *scenario, uint32_t rounds, struct skep_graph *ret, struct skep_diag *reterr)
{
	assert(rounds > 0);
	struct skep_trace trace = {.graph = ret, .scenario = scenario, .plan = &scenario->plan, .waited = NONE};
	*ret = (struct skep_graph){0};
	if (scenario->collectives_as_flows)
		return skep_fail(reterr,
			"simulate.collectives: flows plays each link of a reduction as one flow, and a graph has its messages: "
			"give --set simulate.collectives=messages");
	scenario->outages.count = 0; /* of a step while it is there */
	scenario->arithmetic = SKEP_ARITHMETIC_NONE;
	trace.last_round = scenario->plan.first_round + rounds;
	bool good = begin(&trace, scenario, ret) ? simulate(&trace, rounds, reterr)
	                                         : skep_fail(reterr, "not enough memory for the graph");
	finish(&trace);
	if (!good)
		skep_graph_finish(ret);
	return good;
}
