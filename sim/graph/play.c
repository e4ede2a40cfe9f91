/* SPDX-License-Identifier: Apache-2.0
 *
 * play.c - simulates a graph: when each operation and message begins and ends.
 *
 * No machine of the core takes part: a node begins when all that it waits for has ended. Queue, network, lanes, shared cores and
 * the ends of processes are those of engine.c, world.c and preemption.c, and events draw their sequence numbers when these
 * draw theirs. So what happens at one instant happens in the same order, and an unedited graph ends each node at the
 * nanosecond at which it did.
 *
 * An operation joins the queue of its lane when all its causes have ended, and the operation that it follows: that is told
 * first, so that the next one is at the device before what the end brings about elsewhere. Lanes take those that came first.
 * What is lost with a process (LEAVE) does not end, nor does anything that waits for it.
 */
#include "sim/graph/play.h"

#include <assert.h>
#include <stdlib.h>

#include "sim/cores.h"
#include "sim/next.h"
#include "topologies/read/path.h"

#define NONE SKEP_GRAPH_NONE

enum event { TIME, OP_END, MESSAGE };

struct state {            /* of a node */
	uint32_t missing; /* causes that have not ended; its time is one */
	uint32_t next;    /* in the queue of its lane, or of those that have just ended */
	uint32_t life;    /* SEND: of its sender's process when it was sent */
	uint32_t followers,
		follower;  /* OP: the first of those that follow it, and the next one that follows what it follows */
	uint64_t sequence; /* SEND */
	bool ended, lost;
};

struct lane { /* its queue, and what runs */
	uint32_t first, last, runs;
	uint64_t end_sequence;
};

struct process {
	struct lane lane[SKEP_LANES];
	uint32_t life;
	bool gone;
};

struct play {
	struct skep_graph *graph;
	const struct skep_scenario *scenario;
	struct skep_network *network;
	struct skep_cores *cores;
	struct skep_queue queue;
	skep_time now;
	uint64_t sequence;
	struct state *state;       /* [nodes] */
	uint32_t *dependent_first; /* [nodes + 1] into dependent[] */
	uint32_t *dependent;
	struct process *process;          /* [workers + 1] */
	uint32_t first_ended, last_ended; /* nodes whose dependents have not been told */
	uint32_t wanted;                  /* nodes that are not open and have not ended */
	bool no_memory;
};

/* ---- what waits for what ------------------------------------------------------------------------------------ */

void skep_graph_each_cause(
	const struct skep_graph *graph, uint32_t node, void (*each)(void *context, uint32_t cause), void *context)
{
	assert(node < graph->nodes);
	const struct skep_graph_node *of = &graph->node[node];
	for (uint32_t i = 0; i < of->after.count; i++)
		each(context, graph->link[of->after.first + i]);
	for (uint32_t i = 0; i < of->reads.count; i++) {
		struct skep_graph_list makers = graph->tensor[graph->link[of->reads.first + i]].makers;
		for (uint32_t m = 0; m < makers.count; m++)
			each(context, graph->link[makers.first + m]);
	}
}

uint32_t skep_graph_follows(const struct skep_graph *graph, uint32_t node)
{
	assert(node < graph->nodes && graph->node[node].kind == SKEP_GRAPH_OP);
	const struct skep_graph_node *of = &graph->node[node];
	uint32_t before = of->follows;
	while (before != NONE && (graph->node[before].place != of->place || graph->node[before].op.lane != of->op.lane))
		before = graph->node[before].follows;
	return before;
}

static void count_dependent(void *context, uint32_t cause)
{
	struct play *play = context;
	play->dependent_first[cause + 1]++;
}

struct filling {
	struct play *play;
	uint32_t node, *filled;
};

static void fill_dependent(void *context, uint32_t cause)
{
	struct filling *filling = context;
	struct play *play = filling->play;
	assert(filling->filled[cause] < play->dependent_first[cause + 1] - play->dependent_first[cause]);
	play->dependent[play->dependent_first[cause] + filling->filled[cause]++] = filling->node;
	play->state[filling->node].missing++;
}

/* Dependents of each node, by rising number. */
static bool link_causes(struct play *play)
{
	uint32_t nodes = play->graph->nodes;
	uint32_t *filled = calloc(nodes + 1u, sizeof *filled);
	for (uint32_t n = 0; n < nodes; n++)
		skep_graph_each_cause(play->graph, n, count_dependent, play);
	for (uint32_t n = 0; n < nodes; n++)
		play->dependent_first[n + 1] += play->dependent_first[n];
	play->dependent = malloc((play->dependent_first[nodes] + 1u) * sizeof *play->dependent);
	for (uint32_t n = 0; filled && play->dependent && n < nodes; n++)
		skep_graph_each_cause(
			play->graph, n, fill_dependent, &(struct filling){.play = play, .node = n, .filled = filled});
	free(filled);
	return filled && play->dependent;
}

/* By falling numbers, so that those that follow one come by rising ones. */
static void follow(struct play *play, uint32_t node)
{
	uint32_t before = play->graph->node[node].kind == SKEP_GRAPH_OP ? skep_graph_follows(play->graph, node) : NONE;
	if (before == NONE)
		return;
	play->state[node].missing++;
	play->state[node].follower = play->state[before].followers;
	play->state[before].followers = node;
}

/* ---- events ------------------------------------------------------------------------------------------------- */

static void schedule(struct play *play, skep_time time, uint64_t sequence, enum event kind, uint32_t index)
{
	assert(time >= play->now);
	if (!skep_queue_push(&play->queue, (struct skep_queue_entry){time, sequence, kind, index}))
		play->no_memory = true;
}

static void end(struct play *play, uint32_t node)
{
	struct state *state = &play->state[node];
	assert(!state->ended && !state->lost && state->missing == 0);
	assert(play->graph->node[node].open || play->wanted > 0);
	state->ended = true;
	state->next = NONE;
	play->graph->node[node].end_ns = play->now;
	play->wanted -= !play->graph->node[node].open;
	if (play->first_ended == NONE)
		play->first_ended = node;
	else
		play->state[play->last_ended].next = node;
	play->last_ended = node;
}

static void share_cores(struct play *play, uint32_t worker)
{
	struct skep_cores_turn turn;
	if (!play->cores || !skep_cores_shared(play->cores, worker) ||
		!skep_cores_turn(play->cores, worker, play->now, &turn))
		return;
	if (turn.was != SKEP_CORES_NONE)
		play->process[turn.was / SKEP_LANES].lane[turn.was % SKEP_LANES].end_sequence = UINT64_MAX;
	if (turn.slot == SKEP_CORES_NONE)
		return;
	play->process[turn.slot / SKEP_LANES].lane[turn.slot % SKEP_LANES].end_sequence = play->sequence;
	schedule(play, turn.end_ns, play->sequence++, OP_END, turn.slot);
}

static void lack_one_less(struct play *play, uint32_t node);

/* ---- operations --------------------------------------------------------------------------------------------- */

static void begin_next(struct play *play, uint32_t worker, uint32_t l)
{
	struct lane *lane = &play->process[worker].lane[l];
	uint32_t node = lane->first;
	if (lane->runs != NONE || node == NONE)
		return;
	lane->first = play->state[node].next;
	struct skep_graph_node *of = &play->graph->node[node];
	assert(of->kind == SKEP_GRAPH_OP && of->place == worker && of->op.lane == l);
	lane->runs = node;
	of->begin_ns = play->now;
	if (play->cores && skep_cores_shared(play->cores, worker)) {
		lane->end_sequence = UINT64_MAX;
		skep_cores_begin(play->cores, worker, l, play->now, of->duration_ns);
		return;
	}
	lane->end_sequence = play->sequence;
	schedule(play, play->now + of->duration_ns, play->sequence++, OP_END, worker * SKEP_LANES + l);
}

static void ask(struct play *play, uint32_t node)
{
	const struct skep_graph_node *of = &play->graph->node[node];
	struct lane *lane = &play->process[of->place].lane[of->op.lane];
	play->state[node].next = NONE;
	if (lane->first == NONE)
		lane->first = node;
	else
		play->state[lane->last].next = node;
	lane->last = node;
	begin_next(play, of->place, of->op.lane);
	share_cores(play, of->place);
}

static void end_op(struct play *play, uint32_t slot, uint64_t sequence)
{
	uint32_t worker = slot / SKEP_LANES, l = slot % SKEP_LANES;
	struct lane *lane = &play->process[worker].lane[l];
	if (sequence != lane->end_sequence)
		return;
	if (play->cores && skep_cores_shared(play->cores, worker))
		skep_cores_end(play->cores, worker, l, play->now);
	uint32_t node = lane->runs;
	assert(node != NONE);
	lane->runs = NONE;
	end(play, node);
	for (uint32_t next = play->state[node].followers; next != NONE; next = play->state[next].follower)
		lack_one_less(play, next);
	begin_next(play, worker, l);
	share_cores(play, worker);
}

/* ---- messages ----------------------------------------------------------------------------------------------- */

static void start_message(struct play *play, uint32_t node)
{
	struct skep_graph_node *of = &play->graph->node[node];
	struct state *state = &play->state[node];
	assert(of->place <= play->graph->workers && of->to <= play->graph->workers);
	state->sequence = play->sequence++;
	state->life = play->process[of->place].life;
	of->begin_ns = play->now;
	if (of->place == of->to) {
		schedule(play, play->now, state->sequence, MESSAGE, node);
		return;
	}
	if (!skep_network_start(play->network, play->now, skep_scenario_machine(play->scenario, of->place),
		    skep_scenario_machine(play->scenario, of->to), skep_graph_message_bytes(play->graph, of), node))
		play->no_memory = true;
}

static void deliver(struct play *play, uint32_t node)
{
	const struct skep_graph_node *of = &play->graph->node[node];
	const struct process *sender = &play->process[of->place];
	assert(of->kind == SKEP_GRAPH_SEND);
	bool whole = of->writes.count == 0 || (sender->life == play->state[node].life && !sender->gone);
	if (whole && !play->process[of->to].gone)
		end(play, node);
	else
		play->state[node].lost = true;
}

static void forget(void *context, uint64_t node)
{
	struct play *play = context;
	play->state[node].lost = true;
}

/* ---- processes ---------------------------------------------------------------------------------------------- */

static void leave(struct play *play, uint32_t worker)
{
	struct process *process = &play->process[worker];
	assert(worker < play->graph->workers && !process->gone);
	for (uint32_t l = 0; l < SKEP_LANES; l++) {
		struct lane *lane = &process->lane[l];
		if (lane->runs != NONE && play->cores && skep_cores_shared(play->cores, worker))
			skep_cores_end(play->cores, worker, l, play->now);
		if (lane->runs != NONE)
			play->state[lane->runs].lost = true;
		for (uint32_t node = lane->first; node != NONE; node = play->state[node].next)
			play->state[node].lost = true;
		*lane = (struct lane){NONE, NONE, NONE, UINT64_MAX};
	}
	share_cores(play, worker);
	process->gone = true;
	skep_network_close(play->network, play->now, skep_scenario_machine(play->scenario, worker), forget, play);
}

static void join(struct play *play, uint32_t worker)
{
	assert(worker < play->graph->workers);
	skep_network_close(play->network, play->now, skep_scenario_machine(play->scenario, worker), forget, play);
	play->process[worker].gone = false;
	play->process[worker].life++;
}

/* ---- the course --------------------------------------------------------------------------------------------- */

/* All that the node waits for has ended. */
static void begin(struct play *play, uint32_t node)
{
	struct skep_graph_node *of = &play->graph->node[node];
	bool comes = of->kind == SKEP_GRAPH_JOIN;
	if (play->process[of->place].gone && !comes) {
		play->state[node].lost = true;
		return;
	}
	of->begin_ns = play->now;
	if (of->kind == SKEP_GRAPH_OP)
		ask(play, node);
	else if (of->kind == SKEP_GRAPH_SEND)
		start_message(play, node);
	else if (of->kind == SKEP_GRAPH_LEAVE)
		leave(play, of->place);
	else if (comes)
		join(play, of->place);
	if (of->kind != SKEP_GRAPH_OP && of->kind != SKEP_GRAPH_SEND)
		end(play, node);
}

static void lack_one_less(struct play *play, uint32_t node)
{
	assert(play->state[node].missing > 0);
	if (--play->state[node].missing == 0)
		begin(play, node);
}

/* Tells those who wait for what has ended, and for what ends at once by that. */
static void tell(struct play *play)
{
	while (play->first_ended != NONE) {
		uint32_t node = play->first_ended;
		play->first_ended = play->state[node].next;
		for (uint32_t i = play->dependent_first[node]; i < play->dependent_first[node + 1]; i++)
			lack_one_less(play, play->dependent[i]);
	}
}

static void handle(struct play *play, const struct skep_queue_entry *entry)
{
	if (entry->kind == TIME)
		lack_one_less(play, entry->index);
	else if (entry->kind == OP_END)
		end_op(play, entry->index, entry->sequence);
	else
		deliver(play, entry->index);
	tell(play);
}

/* As engine.c. */
static void take_arrivals(struct play *play, bool more)
{
	uint64_t node[SKEP_NETWORK_ARRIVALS];
	uint32_t got;
	do {
		got = skep_network_advance(play->network, play->now, node, SKEP_NETWORK_ARRIVALS);
		for (uint32_t i = 0; i < got; i++) {
			if (more) {
				schedule(play, play->now, play->state[node[i]].sequence, MESSAGE, (uint32_t)node[i]);
			} else {
				deliver(play, (uint32_t)node[i]);
				tell(play);
			}
		}
	} while (got == SKEP_NETWORK_ARRIVALS);
}

static bool advance(struct play *play)
{
	struct skep_queue_entry entry;
	enum skep_next turn = skep_next_event(&play->queue, play->network, &play->now, &entry);
	if (turn == SKEP_NEXT_EVENT)
		handle(play, &entry);
	if (turn == SKEP_NEXT_NETWORK)
		take_arrivals(play, skep_queue_next(&play->queue) == play->now);
	return turn != SKEP_NEXT_NONE;
}

/* ---- before it begins --------------------------------------------------------------------------------------- */

/* Is this an operation whose time the compute model can tell, on another worker too? */
static bool is_known(const struct skep_plan *plan, const struct skep_op *op)
{
	bool cut = op->kind == SKEP_OP_BACKWARD && plan->eager && op->chunks > 1;
	bool state = (op->kind == SKEP_OP_SAVE || op->kind == SKEP_OP_LOAD) && op->chunks > 1;
	if (op->stage >= (skep_op_sliced(op->kind) ? skep_plan_vstages(plan) : plan->stages) ||
		op->kind == SKEP_OP_ALLREDUCE)
		return false;
	if (cut && (op->stage >= plan->stages || op->chunks != skep_plan_buckets(plan, op->stage) ||
			   op->part >= op->chunks))
		return false;
	return !state || op->chunk < skep_state_chunks(plan, op->stage);
}

static bool time_moved(struct skep_graph *graph, const struct skep_scenario *scenario, struct skep_diag *reterr)
{
	for (uint32_t n = 0; n < graph->nodes; n++) {
		struct skep_graph_node *of = &graph->node[n];
		if (of->kind != SKEP_GRAPH_OP || of->timed_on == NONE || of->timed_on == of->place)
			continue;
		if (!is_known(&scenario->plan, &of->op))
			return skep_fail(reterr,
				"\"%s\" was moved to worker %u, and the scenario has no such operation there: leave out "
				"timed_on, and give its ns",
				skep_graph_node_name(graph, n), of->place);
		of->duration_ns = skep_scenario_op_ns(scenario, of->place, &of->op);
		of->timed_on = of->place;
	}
	return true;
}

/* The thinnest line on the way between two machines. */
static double least_Bps(const struct skep_scenario *scenario, uint32_t from, uint32_t to)
{
	const struct skep_topology *t = &scenario->topology;
	const struct skep_machine *source = &t->machine[skep_scenario_machine(scenario, from)];
	const struct skep_machine *destination = &t->machine[skep_scenario_machine(scenario, to)];
	double least = skep_path_least_Bps(t, source->place, destination->place);
	double cap = skep_path_cap_Bps(t, source->place, destination->place);
	least = source->up_Bps < least ? source->up_Bps : least;
	least = destination->down_Bps < least ? destination->down_Bps : least;
	return cap < least ? cap : least;
}

/* One after the other all of it would take less than the clock can count. */
static bool is_countable(const struct skep_graph *graph, const struct skep_scenario *scenario, struct skep_diag *reterr)
{
	const double most = 0x1p61;
	double sum = 0;
	for (uint32_t n = 0; n < graph->nodes; n++) {
		const struct skep_graph_node *of = &graph->node[n];
		double ns = of->kind == SKEP_GRAPH_OP ? (double)of->duration_ns : 0;
		if (of->kind == SKEP_GRAPH_SEND && of->place != of->to)
			ns = 1e9 * (double)skep_graph_message_bytes(graph, of) / least_Bps(scenario, of->place, of->to);
		sum += ns;
		if (!(sum < most))
			return skep_fail(reterr,
				"with \"%s\" all operations and messages together take more than 70 years",
				skep_graph_node_name(graph, n));
	}
	return true;
}

static bool begin_play(struct play *play)
{
	const struct skep_graph *graph = play->graph;
	play->state = calloc(graph->nodes + 1u, sizeof *play->state);
	play->dependent_first = calloc(graph->nodes + 1u, sizeof *play->dependent_first);
	play->process = calloc(graph->workers + 1u, sizeof *play->process);
	play->network = skep_network_create(&play->scenario->topology);
	if (!play->state || !play->dependent_first || !play->process || !play->network ||
		!skep_cores_create(
			&play->scenario->topology, graph->workers, SKEP_LANES, play->scenario->threads, &play->cores) ||
		!link_causes(play))
		return false;
	for (uint32_t i = 0; i <= graph->workers; i++)
		for (uint32_t l = 0; l < SKEP_LANES; l++)
			play->process[i].lane[l] = (struct lane){NONE, NONE, NONE, UINT64_MAX};
	for (uint32_t n = 0; n < graph->nodes; n++)
		play->state[n].followers = play->state[n].follower = NONE;
	for (uint32_t n = graph->nodes; n-- > 0;)
		follow(play, n);
	for (uint32_t n = 0; n < graph->nodes; n++) {
		play->wanted += !graph->node[n].open;
		if (graph->node[n].at_ns > 0 || play->state[n].missing == 0) {
			play->state[n].missing++;
			schedule(play, graph->node[n].at_ns, play->sequence++, TIME, n);
		}
	}
	return !play->no_memory;
}

static void finish_play(struct play *play)
{
	skep_network_destroy(play->network);
	skep_cores_destroy(play->cores);
	skep_queue_finish(&play->queue);
	free(play->state);
	free(play->dependent_first);
	free(play->dependent);
	free(play->process);
}

bool skep_graph_play(struct skep_graph *graph, const struct skep_scenario *scenario, struct skep_diag *reterr)
{
	struct play play = {.graph = graph, .scenario = scenario, .first_ended = NONE, .last_ended = NONE};
	if (scenario->plan.workers != graph->workers)
		return skep_fail(reterr, "the graph has %u workers, and the scenario %u", graph->workers,
			scenario->plan.workers);
	if (!time_moved(graph, scenario, reterr) || !is_countable(graph, scenario, reterr))
		return false;
	bool good = begin_play(&play);
	while (good && play.wanted > 0 && !play.no_memory && advance(&play))
		;
	good = good && !play.no_memory;
	for (uint32_t n = 0; good && n < graph->nodes; n++)
		graph->node[n].open = graph->node[n].open || !play.state[n].ended;
	finish_play(&play);
	return good || skep_fail(reterr, "not enough memory to simulate the graph");
}
