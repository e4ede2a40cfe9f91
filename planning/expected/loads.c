/* SPDX-License-Identifier: Apache-2.0
 *
 * loads.c - see loads.h.
 */
#include "planning/expected/loads.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "core/record.h"
#include "core/schedule/pipelines.h"
#include "core/sums.h"
#include "topologies/read/path.h"

/* ---- places --------------------------------------------------------------------------------------------------------- */

uint32_t skep_loads_place(const struct skep_loads *l, uint32_t worker)
{
	return l->p->scenario->topology.machine[l->p->machine[worker]].place;
}

static uint32_t directory_place(const struct skep_loads *l)
{
	const struct skep_topology *t = &l->p->scenario->topology;
	return t->machine[t->machines].place;
}

/* What one ordered pair of machines gets, all its connections together. */
static double pair_Bps(const struct skep_topology *t, uint32_t from, uint32_t to)
{
	uint32_t streams = skep_path_streams(t, from, to);
	double capacity = t->pair[(size_t)from * t->places + to].capacity_Bps;
	return streams == SKEP_STREAMS_EACH ? capacity : fmin(capacity, streams * skep_path_cap_Bps(t, from, to));
}

/* ---- shares --------------------------------------------------------------------------------------------------------- */

double skep_loads_compute_s(const struct skep_loads *l, uint32_t worker)
{
	return skep_planning_compute_s(l->p, l->stage_of, worker);
}

bool skep_loads_takes_part(const struct skep_loads *l, uint32_t worker)
{
	return l->stage_of[worker] < l->p->stages;
}

bool skep_loads_sums(const struct skep_loads *l, uint32_t stage)
{
	return l->every == 0 || skep_plan_sum_every(&l->p->scenario->plan, stage) <= l->every;
}

/* Of a microbatch's passes that go this way. */
double skep_loads_pass_s(const struct skep_loads *l, uint32_t worker, enum skep_way way)
{
	const struct skep_scenario *s = l->p->scenario;
	uint32_t gpu = s->topology.machine[l->p->machine[worker]].gpu, vstages = skep_plan_vstages(&s->plan);
	double ns = 0;
	if (way == SKEP_WAY_BOTH)
		return skep_loads_compute_s(l, worker);
	for (uint32_t vstage = l->stage_of[worker]; vstage < vstages; vstage += l->p->stages) {
		const struct skep_op_time *time = &s->op_time[(size_t)gpu * vstages + vstage];
		ns += (double)(way == SKEP_WAY_FORWARD ? time->forward_ns : time->backward_ns);
	}
	return 1e-9 * ns;
}

static double local_s(const struct skep_loads *l, uint32_t worker, bool pseudo)
{
	const struct skep_scenario *s = l->p->scenario;
	uint32_t gpu = s->topology.machine[l->p->machine[worker]].gpu, vstages = skep_plan_vstages(&s->plan);
	double ns = 0;
	if (!skep_plan_periodic(&s->plan) || !skep_loads_takes_part(l, worker))
		return 0;
	for (uint32_t vstage = l->stage_of[worker]; vstage < vstages; vstage += l->p->stages) {
		const struct skep_op_time *time = &s->op_time[(size_t)gpu * vstages + vstage];
		ns += (double)(pseudo ? time->pseudo_ns : time->inner_ns);
	}
	return 1e-9 * ns * skep_scenario_crowding(s, l->p->machine[worker]);
}

double skep_loads_inner_s(const struct skep_loads *l, uint32_t worker)
{
	return local_s(l, worker, false);
}

double skep_loads_pseudo_s(const struct skep_loads *l, uint32_t worker)
{
	return local_s(l, worker, true) / skep_plan_fragments(&l->p->scenario->plan);
}

bool skep_loads_is_one_path(const struct skep_loads *l)
{
	uint32_t workers = 0;
	for (uint32_t stage = 0; stage < l->p->stages; stage++)
		workers += l->count[stage];
	return workers == l->p->stages;
}

/* Does each sender choose by the way to a worker, and back? */
static bool by_latency(const struct skep_loads *l)
{
	return skep_planning_by_latency(l->p);
}

/* Does each sender choose by itself, and by its own ways among the rest? */
static bool by_sender(const struct skep_loads *l)
{
	const struct skep_plan *plan = &l->p->scenario->plan;
	return by_latency(l) || (l->p->throughput[0].shares == SKEP_SHARES_BY_SPEED && !skep_plan_fixed(plan) &&
					plan->routing != SKEP_ROUTING_TRAINER);
}

/* What a byte waits for the messages of others on the lines from one place to another. */
static double crowd_between_s(const struct skep_loads *l, uint32_t from, uint32_t to)
{
	const struct skep_topology *t = &l->p->scenario->topology;
	size_t at = (size_t)from * t->places + to;
	double sum_s = l->crowd.shared[at] / t->pair[at].shared_Bps;
	if (t->site_link && from != to)
		sum_s += l->crowd.uplink[from] / t->site_link[from].up_Bps +
		         l->crowd.downlink[to] / t->site_link[to].down_Bps;
	return sum_s;
}

/* ... from worker i to j. */
static double crowd_s(const struct skep_loads *l, uint32_t i, uint32_t j)
{
	const struct skep_topology *t = &l->p->scenario->topology;
	uint32_t from = skep_loads_place(l, i), to = skep_loads_place(l, j), middle = directory_place(l);
	const struct skep_ways *c = &l->crowd;
	double sum_s =
		c->up[i] / t->machine[l->p->machine[i]].up_Bps + c->down[j] / t->machine[l->p->machine[j]].down_Bps;
	if (!skep_topology_relays(t, from, to))
		return sum_s + crowd_between_s(l, from, to);
	sum_s += crowd_between_s(l, from, middle) + crowd_between_s(l, middle, to);
	return sum_s + c->there[i] / pair_Bps(t, from, middle) + c->back[j] / pair_Bps(t, middle, to);
}

/* Of worker j of the next stage, for sender i. */
static double weight_for(const struct skep_loads *l, uint32_t i, uint32_t j)
{
	uint32_t stage = l->stage_of[i];
	double wait_s = crowd_s(l, i, j) * l->p->forward_bytes[stage] + crowd_s(l, j, i) * l->p->backward_bytes[stage];
	double longer_s = fmax(0, wait_s - skep_loads_compute_s(l, j) / SKEP_VIEW_SLACK);
	return skep_planning_weight_for(l->p, l->stage_of, i, j, longer_s);
}

/* A stage's shares, of those of the stage before. */
static void hand_on(struct skep_loads *l, uint32_t stage)
{
	assert(stage > 0 && stage < l->p->stages);
	for (uint32_t i = 0; i < l->p->workers; i++) {
		if (l->stage_of[i] != stage - 1)
			continue;
		for (uint32_t j = 0; j < l->p->workers; j++)
			l->offered[i] += l->stage_of[j] == stage ? weight_for(l, i, j) : 0;
		for (uint32_t j = 0; j < l->p->workers; j++)
			if (l->stage_of[j] == stage)
				l->share[j] += l->share[i] * weight_for(l, i, j) / l->offered[i];
	}
}

uint32_t skep_loads_member(const struct skep_loads *l, uint32_t pipeline, uint32_t stage)
{
	assert(stage < l->p->stages && pipeline < l->pipelines);
	return l->member[l->first[stage] + pipeline % l->count[stage]];
}

/* False: a round's microbatches are no equal shares of these pipelines, or the schedule wants stages of equal size. */
static bool list_pipelines(struct skep_loads *l)
{
	const struct skep_plan *plan = &l->p->scenario->plan;
	bool equal = true;
	uint32_t first = 0;
	for (uint32_t s = 0; s < l->p->stages; s++) {
		equal = equal && l->count[s] == l->count[0];
		l->first[s] = first;
		first += l->count[s];
	}
	for (uint32_t i = 0; i < l->p->workers; i++)
		if (skep_loads_takes_part(l, i))
			l->member[l->first[l->stage_of[i]] + l->nth[i]] = i;
	l->pipelines = skep_replicas_pipelines(l->count, l->p->stages);
	return equal || (skep_pipeline_may_be_uneven(plan->pipeline) && !skep_plan_periodic(plan) &&
				plan->microbatches % l->pipelines == 0);
}

bool skep_loads_share_out(struct skep_loads *l, double *weight)
{
	bool able = true, handed = by_sender(l);
	for (uint32_t i = 0; i < l->p->workers; i++) {
		if (!skep_loads_takes_part(l, i))
			continue;
		able = able && skep_loads_compute_s(l, i) < INFINITY;
		l->nth[i] = l->count[l->stage_of[i]]++;
		weight[l->stage_of[i]] += skep_planning_weight(l->p, l->stage_of, i);
	}
	for (uint32_t i = 0; i < l->p->workers; i++)
		if (skep_loads_takes_part(l, i) && (l->stage_of[i] == 0 || !handed))
			l->share[i] = skep_planning_weight(l->p, l->stage_of, i) / weight[l->stage_of[i]];
	for (uint32_t s = 0; s < l->p->stages; s++)
		able = able && l->count[s] > 0;
	if (skep_plan_fixed(&l->p->scenario->plan))
		able = able && list_pipelines(l);
	if (able)
		skep_loads_hand_on(l);
	return able;
}

void skep_loads_hand_on(struct skep_loads *l)
{
	if (!by_sender(l))
		return;
	for (uint32_t i = 0; i < l->p->workers; i++) {
		l->offered[i] = 0;
		if (l->stage_of[i] > 0)
			l->share[i] = 0;
	}
	for (uint32_t s = 1; s < l->p->stages; s++)
		hand_on(l, s);
}

/* ---- bytes on their way --------------------------------------------------------------------------------------------- */

double skep_loads_up_s(const struct skep_loads *l, uint32_t worker)
{
	return skep_path_mean_s(&l->p->scenario->topology, skep_loads_place(l, worker), directory_place(l));
}

double skep_loads_down_s(const struct skep_loads *l, uint32_t worker)
{
	return skep_path_mean_s(&l->p->scenario->topology, directory_place(l), skep_loads_place(l, worker));
}

double skep_loads_message_s(const struct skep_loads *l, uint32_t i, uint32_t j, double bytes)
{
	double rate_Bps = l->p->rate_Bps[SKEP_UNCONTENDED][(size_t)i * l->p->workers + j];
	return bytes / rate_Bps +
	       skep_path_relay_s(&l->p->scenario->topology, l->p->machine[i], l->p->machine[j], bytes);
}

/* What machines share. */
static void carry_shared(struct skep_loads *l, uint32_t from, uint32_t to, double bytes)
{
	const struct skep_topology *t = &l->p->scenario->topology;
	size_t at = (size_t)from * t->places + to;
	l->load.shared[at] += bytes / t->pair[at].shared_Bps;
	if (t->site_link && from != to) {
		l->load.uplink[from] += bytes / t->site_link[from].up_Bps;
		l->load.downlink[to] += bytes / t->site_link[to].down_Bps;
	}
}

/* Each way of what the directory passes on is one connection for all whom the machine has messages for, or of. */
static void carry_through(struct skep_loads *l, uint32_t i, uint32_t j, double bytes)
{
	const struct skep_topology *t = &l->p->scenario->topology;
	uint32_t from = skep_loads_place(l, i), to = skep_loads_place(l, j), middle = directory_place(l);
	l->load.there[i] += bytes / pair_Bps(t, from, middle);
	l->load.back[j] += bytes / pair_Bps(t, middle, to);
	carry_shared(l, from, middle, bytes);
	carry_shared(l, middle, to, bytes);
}

static void carry_straight(struct skep_loads *l, uint32_t i, uint32_t j, double bytes)
{
	uint32_t from = skep_loads_place(l, i), to = skep_loads_place(l, j);
	double connection_s = bytes / pair_Bps(&l->p->scenario->topology, from, to);
	carry_shared(l, from, to, bytes);
	if (connection_s > l->connection_s) {
		l->connection_s = connection_s;
		l->from = i;
		l->to = j;
	}
}

void skep_loads_carry(struct skep_loads *l, uint32_t i, uint32_t j, double bytes, double part)
{
	const struct skep_topology *t = &l->p->scenario->topology;
	size_t at = (size_t)i * l->p->workers + j;
	l->load.up[i] += part * bytes / t->machine[l->p->machine[i]].up_Bps;
	l->load.down[j] += part * bytes / t->machine[l->p->machine[j]].down_Bps;
	if (skep_topology_relays(t, skep_loads_place(l, i), skep_loads_place(l, j)))
		carry_through(l, i, j, part * bytes);
	else
		carry_straight(l, i, j, part * bytes);
	l->travel_s += part * (l->p->delay_s[at] + skep_loads_message_s(l, i, j, bytes));
}

double skep_loads_line_s(const struct skep_loads *l, uint32_t from, uint32_t to)
{
	const struct skep_topology *t = &l->p->scenario->topology;
	double own_s = l->load.shared[(size_t)from * t->places + to];
	if (skep_topology_relays(t, from, to))
		return fmax(
			skep_loads_line_s(l, from, directory_place(l)), skep_loads_line_s(l, directory_place(l), to));
	return from == to ? own_s : fmax(own_s, fmax(l->load.uplink[from], l->load.downlink[to]));
}

/* Fixed pipelines: of as many as two stages make by themselves one at most is of both workers. */
static double shared_part(const struct skep_loads *l, uint32_t i, uint32_t j)
{
	uint32_t here = l->count[l->stage_of[i]], there = l->count[l->stage_of[j]];
	return skep_pipeline_joins(l->nth[i], here, l->nth[j], there) ? 1.0 / skep_common_multiple(here, there) : 0;
}

/* How large a part of all microbatches is worker i's and also worker j's, in another stage. */
static double part_of(const struct skep_loads *l, uint32_t i, uint32_t j)
{
	if (skep_plan_fixed(&l->p->scenario->plan))
		return shared_part(l, i, j);
	if (by_sender(l))
		return l->share[i] * weight_for(l, i, j) / l->offered[i];
	return l->share[i] * l->share[j];
}

/* From when the worker gets a microbatch until it has sent it back, on empty links; of the next stage's workers that is known. */
static double until_back_s(const struct skep_loads *l, uint32_t i)
{
	uint32_t stage = l->stage_of[i];
	double sum = skep_loads_compute_s(l, i);
	for (uint32_t j = 0; j < l->p->workers; j++) {
		if (l->stage_of[j] != stage + 1)
			continue;
		size_t there = (size_t)i * l->p->workers + j, back = (size_t)j * l->p->workers + i;
		double way_s = l->p->delay_s[there] + skep_loads_message_s(l, i, j, l->p->forward_bytes[stage]);
		way_s += l->p->delay_s[back] + skep_loads_message_s(l, j, i, l->p->backward_bytes[stage]);
		sum += weight_for(l, i, j) / l->offered[i] * (way_s + l->until_s[j]);
	}
	return sum;
}

bool skep_loads_find_circles(struct skep_loads *l)
{
	for (uint32_t s = l->p->stages; by_latency(l) && s-- > 0;)
		for (uint32_t i = 0; i < l->p->workers; i++)
			if (l->stage_of[i] == s)
				l->until_s[i] = until_back_s(l, i);
	return by_latency(l);
}

void skep_loads_clear(struct skep_loads *l)
{
	size_t places = l->p->scenario->topology.places;
	memset(l->load.up, 0, l->p->workers * sizeof *l->load.up);
	memset(l->load.down, 0, l->p->workers * sizeof *l->load.down);
	memset(l->load.there, 0, l->p->workers * sizeof *l->load.there);
	memset(l->load.back, 0, l->p->workers * sizeof *l->load.back);
	memset(l->load.shared, 0, places * places * sizeof *l->load.shared);
	memset(l->load.uplink, 0, places * sizeof *l->load.uplink);
	memset(l->load.downlink, 0, places * sizeof *l->load.downlink);
	memset(l->own_s, 0, l->p->workers * sizeof *l->own_s);
	memset(l->hop_s, 0, l->p->stages * sizeof *l->hop_s);
	l->connection_s = l->travel_s = 0;
}

void skep_loads_carry_stage(struct skep_loads *l, uint32_t stage, enum skep_way way)
{
	for (uint32_t i = 0; i < l->p->workers; i++)
		for (uint32_t j = 0; l->stage_of[i] == stage && j < l->p->workers; j++) {
			double part = l->stage_of[j] == stage + 1 ? part_of(l, i, j) : 0, before_s = l->travel_s;
			if (part > 0 && way == SKEP_WAY_FORWARD)
				skep_loads_carry(l, i, j, l->p->forward_bytes[stage], part);
			else if (part > 0)
				skep_loads_carry(l, j, i, l->p->backward_bytes[stage], part);
			l->hop_s[stage] += way == SKEP_WAY_FORWARD ? l->travel_s - before_s : 0;
			l->own_s[i] += stage == 0 ? l->travel_s - before_s : 0;
		}
}

/* Through the owner, which hands a stage's input over once more with its gradient. */
static void carry_by_owner(struct skep_loads *l, uint32_t owner, uint32_t j)
{
	uint32_t stage = l->stage_of[j];
	double part = part_of(l, owner, j), in = l->p->forward_bytes[stage - 1], back = l->p->backward_bytes[stage - 1];
	double before_s = l->travel_s;
	skep_loads_carry(l, owner, j, in, part);
	skep_loads_carry(l, j, owner, back, part);
	if (stage + 1 < l->p->stages) {
		skep_loads_carry(l, j, owner, l->p->forward_bytes[stage], part);
		skep_loads_carry(l, owner, j, in + l->p->backward_bytes[stage], part);
	}
	l->own_s[owner] += l->travel_s - before_s;
}

/* Interleaved, from the last worker of a pipeline to the first one, and back. */
static void carry_wraps(struct skep_loads *l)
{
	const struct skep_scenario *s = l->p->scenario;
	uint32_t stages = l->p->stages, chunks = skep_plan_model_chunks(&s->plan);
	double bytes = 0, gradient = 0;
	for (uint32_t c = 0; c + 1 < chunks; c++) {
		bytes += (double)(s->vstage_bytes[(c + 1) * stages - 1] + SKEP_HEADER_BYTES);
		gradient += (double)(skep_plan_gradient_bytes(&s->plan, (c + 1) * stages - 1) + SKEP_HEADER_BYTES);
	}
	for (uint32_t p = 0; bytes > 0 && stages > 1 && p < l->count[0]; p++) {
		uint32_t first = skep_loads_member(l, p, 0), last = skep_loads_member(l, p, stages - 1);
		skep_loads_carry(l, last, first, bytes, l->share[first]);
		skep_loads_carry(l, first, last, gradient, l->share[first]);
	}
}

void skep_loads_carry_all(struct skep_loads *l)
{
	bool by_owner = l->p->scenario->plan.routing == SKEP_ROUTING_TRAINER;
	for (uint32_t stage = 0; !by_owner && stage + 1 < l->p->stages; stage++) {
		skep_loads_carry_stage(l, stage, SKEP_WAY_FORWARD);
		skep_loads_carry_stage(l, stage, SKEP_WAY_BACKWARD);
	}
	for (uint32_t i = 0; by_owner && i < l->p->workers; i++)
		for (uint32_t j = 0; l->stage_of[i] == 0 && j < l->p->workers; j++)
			if (skep_loads_takes_part(l, j) && l->stage_of[j] > 0)
				carry_by_owner(l, i, j);
	for (uint32_t i = 0; i < l->p->workers; i++)
		if (l->stage_of[i] == 0 && l->share[i] > 0)
			l->own_s[i] /= l->share[i];
	carry_wraps(l);
}

/* ---- stations ------------------------------------------------------------------------------------------------------- */

/* Of two equally frequent services of these lengths half of the mean and of the square of the deviation over it is left (the mean
 * residual life of renewal theory), as a part of the mean. */
static double rest_of(const struct skep_loads *l, uint32_t worker)
{
	double forward_s = skep_loads_pass_s(l, worker, SKEP_WAY_FORWARD),
	       backward_s = skep_loads_pass_s(l, worker, SKEP_WAY_BACKWARD);
	double sum = forward_s + backward_s, deviation = sum > 0 ? (backward_s - forward_s) / sum : 0;
	return 0.5 * (1 + deviation * deviation);
}

static void add(
	struct skep_loads *l, enum skep_expected_bound bound, uint32_t from, uint32_t to, double load_s, double rest)
{
	if (load_s > 0)
		l->station[l->stations++] = (struct skep_station){load_s, bound, from, to, rest};
}

void skep_loads_list_stations(struct skep_loads *l, bool passes, enum skep_way way)
{
	uint32_t places = l->p->scenario->topology.places;
	l->stations = 0;
	for (uint32_t i = 0; i < l->p->workers; i++) {
		if (!skep_loads_takes_part(l, i))
			continue;
		if (passes) {
			double load_s = l->share[i] * skep_loads_pass_s(l, i, way);
			/* fixed pipelines make a local step when all of its passes are done, and so beside none */
			if (!skep_plan_fixed(&l->p->scenario->plan))
				load_s += skep_loads_inner_s(l, i) / l->p->throughput[0].microbatches;
			add(l, SKEP_EXPECTED_COMPUTE, i, i, load_s, rest_of(l, i));
		}
		add(l, SKEP_EXPECTED_UP, i, i, l->load.up[i], 1);
		add(l, SKEP_EXPECTED_DOWN, i, i, l->load.down[i], 1);
		add(l, SKEP_EXPECTED_TO_DIRECTORY, i, i, l->load.there[i], 1);
		add(l, SKEP_EXPECTED_FROM_DIRECTORY, i, i, l->load.back[i], 1);
	}
	for (uint32_t a = 0; a < places; a++) {
		add(l, SKEP_EXPECTED_UPLINK, a, a, l->load.uplink[a], 1);
		add(l, SKEP_EXPECTED_DOWNLINK, a, a, l->load.downlink[a], 1);
		for (uint32_t b = 0; b < places; b++)
			add(l, SKEP_EXPECTED_SHARED, a, b, l->load.shared[(size_t)a * places + b], 1);
	}
	add(l, SKEP_EXPECTED_CONNECTION, l->from, l->to, l->connection_s, 1);
}

const struct skep_station *skep_loads_busiest(const struct skep_loads *l)
{
	const struct skep_station *most = NULL;
	for (uint32_t i = 0; i < l->stations; i++)
		if (!most || l->station[i].load_s > most->load_s)
			most = &l->station[i];
	return most;
}
