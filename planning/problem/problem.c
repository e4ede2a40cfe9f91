/* SPDX-License-Identifier: Apache-2.0
 *
 * problem.c - see problem.h. Who takes part, links, and what is wrong with a problem; times and memory of stages are
 * tables.c's. What is kept true: the costs see the same links as the simulator (topologies/read/path.h), only means of them.
 */
#include "planning/problem/problem.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/layout.h"
#include "core/random.h"
#include "planning/problem/tables.h"
#include "scenarios/plan/loss.h"
#include "scenarios/plan/memory.h"
#include "scenarios/plan/plan.h"
#include "scenarios/read/planned.h"
#include "scenarios/read/pool.h"
#include "topologies/read/path.h"

/* ---- workers and links -------------------------------------------------------------------------------------------- */

static uint32_t choose_workers(struct skep_planning *p)
{
	const struct skep_scenario *s = p->scenario;
	uint32_t all = skep_scenario_has_absent(s) ? s->churn.presents : s->plan.workers, count = 0;
	for (uint32_t i = 0; i < all; i++) {
		uint32_t worker = skep_scenario_has_absent(s) ? s->churn.present[i] : i;
		if (s->plan.stands_by && s->plan.stands_by[worker])
			continue;
		p->type[count] = s->topology.machine[worker].gpu;
		p->machine[count++] = worker;
	}
	return count;
}

/* Workers that stand at the place. */
static uint32_t crowd(const struct skep_planning *p, uint32_t place)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < p->workers; i++)
		count += p->scenario->topology.machine[p->machine[i]].place == place;
	return count;
}

/* Of a line that all from one place to the other share, and of what each place has for all others. The directory's have all whose
 * messages it passes on. */
static double fair_part(const struct skep_topology *t, uint32_t from, uint32_t to, const uint32_t *crowds)
{
	uint32_t directory = t->machine[t->machines].place;
	if (skep_topology_relays(t, from, to))
		return fmin(fair_part(t, from, directory, crowds), fair_part(t, directory, to, crowds));
	double part = t->pair[(size_t)from * t->places + to].shared_Bps / crowds[from];
	if (t->site_link && from != to)
		part = fmin(
			part, fmin(t->site_link[from].up_Bps / crowds[from], t->site_link[to].down_Bps / crowds[to]));
	return part;
}

static bool fill_links(struct skep_planning *p)
{
	const struct skep_topology *t = &p->scenario->topology;
	uint32_t *crowds = calloc(t->places, sizeof *crowds);
	for (uint32_t i = 0; crowds && i < t->places; i++)
		crowds[i] = crowd(p, i);
	uint32_t directory = t->machine[t->machines].place, passed_on = 0;
	for (uint32_t i = 0; crowds && t->dials_out && i < t->places; i++)
		passed_on += t->dials_out[i] ? crowds[i] : 0;
	if (passed_on > 0)
		crowds[directory] += passed_on;
	for (uint32_t i = 0; i < p->workers; i++) {
		uint32_t place = p->place[i] = t->machine[p->machine[i]].place;
		p->directory_s[i] = skep_path_mean_s(t, place, directory) + skep_path_mean_s(t, directory, place);
	}
	for (uint32_t i = 0; crowds && i < p->workers; i++)
		for (uint32_t j = 0; j < p->workers; j++) {
			size_t at = (size_t)i * p->workers + j;
			uint32_t from = t->machine[p->machine[i]].place, to = t->machine[p->machine[j]].place;
			double alone = skep_path_lone_Bps(t, p->machine[i], p->machine[j]);
			p->delay_s[at] = i == j ? 0 : skep_path_mean_s(t, from, to) + skep_path_overhead_s(t, from, to);
			p->rate_Bps[SKEP_UNCONTENDED][at] = alone;
			p->rate_Bps[SKEP_CONTENDED][at] = i == j ? alone : fmin(alone, fair_part(t, from, to, crowds));
		}
	for (uint32_t view = 0; view < SKEP_CONTENTIONS; view++)
		p->links[view] = (struct skep_links){p->workers, p->delay_s, p->rate_Bps[view]};
	bool filled = crowds != NULL;
	free(crowds);
	return filled;
}

bool skep_planning_by_speed(const struct skep_planning *p, uint32_t stage)
{
	const struct skep_plan *plan = &p->scenario->plan;
	if (stage == 0)
		return !skep_plan_fixed(plan) && !plan->inner.fixed;
	return p->throughput[0].shares == SKEP_SHARES_BY_SPEED;
}

bool skep_planning_by_latency(const struct skep_planning *p)
{
	const struct skep_plan *plan = &p->scenario->plan;
	return plan->wiring == SKEP_WIRING_LATENCY && plan->places.transfer_ns && plan->routing != SKEP_ROUTING_TRAINER;
}

double skep_planning_ways_s(const struct skep_planning *p, uint32_t from, uint32_t to)
{
	const struct skep_plan *plan = &p->scenario->plan;
	uint32_t here = p->machine[from], there = p->machine[to];
	if (!skep_planning_by_latency(p))
		return 0;
	return 1e-9 * (double)(skep_plan_transfer_ns(plan, here, there) + skep_plan_transfer_ns(plan, there, here));
}

double skep_planning_compute_s(const struct skep_planning *p, const uint32_t *stage_of, uint32_t worker)
{
	return p->compute_s[(size_t)worker * p->stages + stage_of[worker]];
}

double skep_planning_weight(const struct skep_planning *p, const uint32_t *stage_of, uint32_t worker)
{
	bool by_speed = skep_planning_by_speed(p, stage_of[worker]);
	return by_speed ? 1 / fmax(skep_planning_compute_s(p, stage_of, worker), 1e-12) : 1;
}

double skep_planning_weight_for(
	const struct skep_planning *p, const uint32_t *stage_of, uint32_t from, uint32_t to, double wait_s)
{
	double compute_s = skep_planning_compute_s(p, stage_of, to);
	return 1 / fmax(compute_s + wait_s + skep_planning_ways_s(p, from, to), 1e-12);
}

/* ---- kinds, prices and rounds --------------------------------------------------------------------------------------- */

/* In USD per second; NAN: not known. */
static double rent_of(const struct skep_machine *machine)
{
	return skep_machine_has_price(machine) ? machine->price_usd_per_h / 3600 : NAN;
}

static double standing_rent(const struct skep_scenario *s)
{
	double sum = 0;
	for (uint32_t worker = 0; s->plan.stands_by && worker < s->plan.workers; worker++)
		sum += s->plan.stands_by[worker] ? rent_of(&s->topology.machine[worker]) : 0;
	return sum;
}

/* In USD per second; NULL: the price of some machine is not known. */
static void fill_rent(struct skep_planning *p)
{
	p->standing_rent = standing_rent(p->scenario);
	bool known = !isnan(p->standing_rent);
	for (uint32_t i = 0; i < p->workers; i++) {
		p->rent[i] = rent_of(&p->scenario->topology.machine[p->machine[i]]);
		known = known && !isnan(p->rent[i]);
	}
	if (known)
		return;
	free(p->rent);
	p->rent = NULL;
}

static uint32_t replicas_at_start(const struct skep_planning *p)
{
	uint32_t most = skep_plan_serving_most(p->scenario);
	return most < p->workers ? most : p->workers;
}

/* The rounds that the law wants until the target with so many workers in the largest stage; 0: never, or beyond what it knows. */
static uint32_t rounds_with(struct skep_scenario *with, uint32_t members)
{
	char how[160];
	for (uint32_t i = 0; i < with->plan.workers; i++)
		with->first_stage_of[i] = i < members ? with->plan.stages - 1 : SKEP_NO_STAGE;
	uint32_t rounds = skep_loss_rounds_to(with, with->target_loss);
	bool beyond =
		rounds > 0 && !with->planned->extrapolate && skep_loss_extrapolates(with, rounds, how, sizeof how);
	return beyond ? 0 : rounds;
}

/* Over those of the allocation at the start, or of the fewest where that comes to no end. False: no memory. */
static bool fill_rounds(struct skep_planning *p)
{
	const struct skep_scenario *s = p->scenario;
	if (!s->law || isnan(s->target_loss) || !s->planned || s->planned->aim == SKEP_AIM_THROUGHPUT ||
		!skep_plan_periodic(&s->plan))
		return true;
	struct skep_scenario with = *s;
	with.first_stage_of = calloc(s->plan.workers, sizeof *with.first_stage_of);
	p->rounds = calloc((size_t)p->workers + 1, sizeof *p->rounds);
	if (!with.first_stage_of || !p->rounds) {
		free(with.first_stage_of);
		return false;
	}
	double unit = 0, fewest = SKEP_NEVER, start = replicas_at_start(p);
	for (uint32_t n = 1; n <= p->workers; n++) {
		uint32_t rounds = rounds_with(&with, n);
		p->rounds[n] = rounds > 0 ? rounds : SKEP_NEVER;
		fewest = p->rounds[n] < fewest ? p->rounds[n] : fewest;
		unit = n == start && rounds > 0 ? rounds : unit;
	}
	for (uint32_t n = 0; n <= p->workers; n++)
		p->rounds[n] = n == 0 ? SKEP_NEVER : p->rounds[n] / (unit > 0 ? unit : fewest);
	free(with.first_stage_of);
	if (!(fewest < SKEP_NEVER)) {
		free(p->rounds);
		p->rounds = NULL;
	}
	return true;
}

/* Interchangeable are machines that links, type, speeds and memory do not tell apart, in either view, and so with any cut. */
static bool fill_kinds(struct skep_planning *p)
{
	uint32_t link_profiles = p->stages + 5;
	bool priced = p->scenario->topology.egress_usd_per_B != NULL;
	double *link_profile = calloc((size_t)p->workers * link_profiles, sizeof *link_profile);
	for (uint32_t i = 0; link_profile && i < p->workers; i++) {
		memcpy(link_profile + (size_t)i * link_profiles, p->compute_s + (size_t)i * p->stages,
			p->stages * sizeof *link_profile);
		link_profile[(size_t)i * link_profiles + p->stages] = (double)p->have_bytes[i];
		link_profile[(size_t)i * link_profiles + p->stages + 1] = p->rent ? p->rent[i] : 0;
		link_profile[(size_t)i * link_profiles + p->stages + 2] = p->type[i];
		link_profile[(size_t)i * link_profiles + p->stages + 3] = p->directory_s[i];
		link_profile[(size_t)i * link_profiles + p->stages + 4] = priced ? p->place[i] : 0;
	}
	if (link_profile)
		skep_kinds(&p->links[SKEP_CONTENDED], link_profile, link_profiles, NULL, p->kind);
	free(link_profile);
	return link_profile != NULL;
}

/* ---- all of it ---------------------------------------------------------------------------------------------------- */

static bool allocate(struct skep_planning *p)
{
	size_t n = p->workers;
	p->delay_s = calloc(n * n, sizeof *p->delay_s);
	for (uint32_t view = 0; view < SKEP_CONTENTIONS; view++)
		p->rate_Bps[view] = calloc(n * n, sizeof *p->rate_Bps[view]);
	p->have_bytes = calloc(n, sizeof *p->have_bytes);
	p->kind = calloc(n, sizeof *p->kind);
	p->rent = calloc(n, sizeof *p->rent);
	p->place = calloc(n, sizeof *p->place);
	p->directory_s = calloc(n, sizeof *p->directory_s);
	return p->directory_s && p->delay_s && p->rate_Bps[0] && p->rate_Bps[1] && p->have_bytes && p->kind &&
	       p->rent && p->place && skep_tables_make(p);
}

static bool check_links(const struct skep_planning *p, struct skep_diag *reterr)
{
	uint8_t *mark = calloc(p->workers, 1);
	struct skep_links_check check = {.fault = SKEP_LINKS_FINE};
	if (mark)
		check = skep_links_check(&p->links[SKEP_UNCONTENDED], mark);
	bool lacking = !mark;
	free(mark);
	if (lacking)
		return skep_fail(reterr, "not enough memory to plan this scenario");
	if (check.fault == SKEP_LINKS_APART)
		return skep_fail(reterr,
			"there is no way from worker %" PRIu32 " to worker %" PRIu32
			": the pool falls into pieces; join them in %.300s, or plan each by itself",
			p->machine[check.row], p->machine[check.column], p->scenario->topology.path);
	if (check.fault != SKEP_LINKS_FINE)
		return skep_fail(reterr, "the link from worker %" PRIu32 " to worker %" PRIu32 " is no number from 0",
			p->machine[check.row], p->machine[check.column]);
	return true;
}

/* What would do with the scenario's own allocation, in which every worker holds a stage: so it would do here. */
static bool fail_memory(const struct skep_planning *p, const char *what, struct skep_diag *reterr)
{
	char advice[SKEP_MEMORY_ADVICE_BYTES];
	const struct skep_memory_reading reading = {skep_scenario_read_text, skep_scenario_finish};
	skep_memory_advise(p->scenario, &reading, reterr, advice, sizeof advice);
	return skep_fail(reterr, "%s; %s", what, advice);
}

static bool explain_memory(const struct skep_planning *p, const struct skep_problem_check *c, struct skep_diag *reterr)
{
	const struct skep_topology *t = &p->scenario->topology;
	char what[512], who[160], need[SKEP_TEXT_BYTES], fit[SKEP_TEXT_BYTES], more[SKEP_TEXT_BYTES];
	uint32_t nearest = 0; /* of those that are too small */
	while (nearest + 1 < p->workers && p->have_bytes[nearest] + c->more_bytes != c->need_bytes)
		nearest++;
	skep_bytes_text((double)c->need_bytes, need);
	if (c->found == 0)
		snprintf(who, sizeof who, "and no worker has as much");
	else
		snprintf(who, sizeof who,
			"which with the stages that need no less takes %" PRIu32 " workers, and %" PRIu32 " %s as much",
			c->wanted, c->found, c->found == 1 ? "has" : "have");
	snprintf(what, sizeof what,
		"stage %" PRIu32
		" needs at least %s on each of its workers, %s; the nearest changes: a stage of at most %s, or %s more "
		"on worker %" PRIu32 ", a %.31s",
		c->stage, need, who, skep_bytes_text((double)c->fit_bytes, fit),
		skep_bytes_text((double)c->more_bytes, more), p->machine[nearest],
		t->gpu[t->machine[p->machine[nearest]].gpu].name);
	return fail_memory(p, what, reterr);
}

/* Fixed pipelines have no place for a worker that can hold no stage; else it is left out. */
static bool check_holders(const struct skep_planning *p, struct skep_diag *reterr)
{
	char what[512], need[SKEP_TEXT_BYTES], have[SKEP_TEXT_BYTES];
	uint32_t least = 0, idle = 0, first = 0;
	for (uint32_t stage = 1; stage < p->stages; stage++)
		least = p->need_bytes[stage] < p->need_bytes[least] ? stage : least;
	for (uint32_t i = p->workers; i-- > 0;) {
		if (p->have_bytes[i] >= p->need_bytes[least])
			continue;
		first = i;
		idle++;
	}
	if (idle == 0 || idle == p->workers || !skep_plan_fixed(&p->scenario->plan))
		return true;
	const struct skep_topology *t = &p->scenario->topology;
	snprintf(what, sizeof what,
		"%" PRIu32 " of %" PRIu32 " workers can hold no stage, the first of them worker %" PRIu32
		", a %.31s with %s: the smallest stage, %" PRIu32
		", needs %s; leave those machines out of the topology, or make stages smaller",
		idle, p->workers, p->machine[first], t->gpu[t->machine[p->machine[first]].gpu].name,
		skep_bytes_text((double)p->have_bytes[first], have), least,
		skep_bytes_text((double)p->need_bytes[least], need));
	return fail_memory(p, what, reterr);
}

static bool check_problem(const struct skep_planning *p, struct skep_diag *reterr)
{
	void *scratch = malloc(skep_problem_scratch_size(&p->problem) + 1);
	if (!scratch)
		return skep_fail(reterr, "not enough memory to plan this scenario");
	struct skep_problem_check c = skep_problem_check(&p->problem, scratch);
	free(scratch);
	if (c.fault == SKEP_PROBLEM_FINE)
		return true;
	if (c.fault == SKEP_PROBLEM_MEMORY)
		return explain_memory(p, &c, reterr);
	if (c.fault == SKEP_PROBLEM_MANY)
		return skep_fail(reterr,
			"fixed pipelines take as many workers for each stage: %" PRIu32 " workers, and %" PRIu32
			" find a place",
			c.found, c.wanted);
	return skep_fail(reterr, "the stages want %" PRIu32 " workers, and there are %" PRIu32, c.wanted, c.found);
}

bool skep_planning_pose(const struct skep_scenario *s, struct skep_planning *p, struct skep_diag *reterr)
{
	*p = (struct skep_planning){.scenario = s, .stages = s->plan.stages};
	if (s->plan.workers > SKEP_ALLOCATE_WORKERS_MAX || s->plan.stages > SKEP_ALLOCATE_STAGES_MAX)
		return skep_fail(reterr, "plan takes at most %u workers in %u stages", SKEP_ALLOCATE_WORKERS_MAX,
			SKEP_ALLOCATE_STAGES_MAX);
	p->machine = calloc(s->plan.workers, sizeof *p->machine);
	p->type = calloc(s->plan.workers, sizeof *p->type);
	p->workers = p->machine && p->type ? choose_workers(p) : 0;
	bool ok = p->machine && p->type && allocate(p) && fill_links(p);
	ok = ok && fill_rounds(p);
	if (ok) {
		skep_tables_fill(p);
		fill_rent(p);
		ok = fill_kinds(p);
	}
	if (!ok)
		skep_fail(reterr, "not enough memory to plan this scenario");
	ok = ok && check_links(p, reterr);
	if (!ok)
		skep_planning_finish(p);
	return ok;
}

double skep_planning_rounds(const struct skep_planning *p, const uint32_t *stage_of)
{
	uint32_t most = 0;
	for (uint32_t stage = 0; p->rounds && stage < p->stages; stage++) {
		uint32_t members = 0;
		for (uint32_t i = 0; i < p->workers; i++)
			members += stage_of[i] == stage;
		most = members > most ? members : most;
	}
	return p->rounds ? p->rounds[most] : 1;
}

bool skep_planning_check(const struct skep_planning *p, struct skep_diag *reterr)
{
	return check_holders(p, reterr) && check_problem(p, reterr);
}

bool skep_planning_make(const struct skep_scenario *s, struct skep_planning *p, struct skep_diag *reterr)
{
	if (!skep_planning_pose(s, p, reterr))
		return false;
	bool ok = skep_planning_check(p, reterr);
	if (!ok)
		skep_planning_finish(p);
	return ok;
}

void skep_planning_finish(struct skep_planning *p)
{
	free(p->machine);
	free(p->type);
	free(p->delay_s);
	for (uint32_t view = 0; view < SKEP_CONTENTIONS; view++)
		free(p->rate_Bps[view]);
	free(p->have_bytes);
	free(p->kind);
	free(p->rent);
	free(p->rounds);
	free(p->place);
	free(p->directory_s);
	skep_tables_finish(p);
	*p = (struct skep_planning){0};
}

/* ---- answers ------------------------------------------------------------------------------------------------------ */

#define OUT (SKEP_NO_STAGE - 1) /* in a list for spell() */

static void unpack(const struct skep_planning *p, const uint32_t *stage_of, uint32_t *ret_first_stage_of)
{
	for (uint32_t i = 0; i < p->scenario->plan.workers; i++)
		ret_first_stage_of[i] = SKEP_NO_STAGE;
	for (uint32_t i = 0; i < p->workers; i++)
		ret_first_stage_of[p->machine[i]] = stage_of[i] == SKEP_SPARE ? OUT : stage_of[i];
}

bool skep_planning_start(const struct skep_planning *p, uint32_t *ret)
{
	bool all = true;
	for (uint32_t i = 0; i < p->workers; i++) {
		uint32_t stage = p->scenario->first_stage_of[p->machine[i]];
		ret[i] = stage == SKEP_NO_STAGE ? SKEP_SPARE : stage;
		all = all && stage != SKEP_NO_STAGE;
	}
	return all;
}

void skep_planning_random(const struct skep_planning *p, uint64_t seed, uint32_t *ret)
{
	uint64_t state = skep_mix(seed ^ 0x706c616e6e696e67u); /* a stream of its own */
	uint32_t count = 0;
	for (uint32_t i = 0; i < p->workers; i++)
		if (!skep_tables_idle(p, i))
			ret[count] = count % p->stages, count++;
	skep_random_shuffle(&state, ret, count);
	for (uint32_t i = p->workers; i-- > 0;) /* from the front to who can hold any, from behind */
		ret[i] = skep_tables_idle(p, i) ? SKEP_SPARE : ret[--count];
}

/* Of the machines of the topology's file, those that the scenario has left out before among them. */
static char *spell(const struct skep_scenario *s, const uint32_t *first_stage_of)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);
	if (!out)
		return NULL;
	fprintf(out, "cluster.allocation={method: explicit, stage_of: [");
	for (uint32_t machine = 0, worker = 0; machine < skep_pool_machines(s); machine++) {
		bool there = worker < s->plan.workers && skep_pool_machine(s, worker) == machine;
		uint32_t stage = there ? first_stage_of[worker] : OUT;
		fprintf(out, machine > 0 ? ", " : "");
		if (stage == OUT)
			fprintf(out, "unused");
		else if (stage == SKEP_NO_STAGE)
			fprintf(out, s->plan.stands_by && s->plan.stands_by[worker] ? "spare" : "-1");
		else
			fprintf(out, "%" PRIu32, stage);
		worker += there;
	}
	fprintf(out, "]}");
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

char *skep_planning_assignment(const struct skep_planning *p, const uint32_t *stage_of)
{
	uint32_t *first = calloc(p->scenario->plan.workers, sizeof *first);
	if (!first)
		return NULL;
	unpack(p, stage_of, first);
	char *text = spell(p->scenario, first);
	free(first);
	return text;
}
