/* SPDX-License-Identifier: Apache-2.0
 *
 * scaled.c - see scaled.h.
 */
#include "scenarios/scale/scaled.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "scenarios/plan/prices.h"

#define DEADLINE_S_MAX (10 * 365.25 * SKEP_DAY_S)
#define USD_MAX 1e9

/* ---- kinds ---------------------------------------------------------------------------------------------------------- */

static bool same_kind(const struct skep_topology *t, uint32_t a, uint32_t b)
{
	const struct skep_machine *x = &t->machine[a], *y = &t->machine[b];
	return x->gpu == y->gpu && skep_machine_same_price(x, y);
}

/* By its GPU; where several kinds have that, with the place of the first machine. */
static void name_kinds(struct skep_scenario *s)
{
	const struct skep_topology *t = &s->topology;
	for (uint32_t k = 0; k < s->scale.kinds; k++) {
		const struct skep_machine *machine = &t->machine[s->scale_kind[k].example];
		bool alone = true;
		for (uint32_t other = 0; other < s->scale.kinds; other++)
			alone = alone && (other == k || t->machine[s->scale_kind[other].example].gpu != machine->gpu);
		snprintf(s->scale_name[k], sizeof s->scale_name[k], "%.60s%s%s", t->gpu[machine->gpu].name,
			alone ? "" : "@", alone ? "" : t->place_name[machine->place]);
	}
}

static bool find_kinds(struct skep_reader *r, const struct skep_yaml_node *map, struct skep_scenario *s)
{
	s->scale_kind_of = calloc(s->plan.workers, sizeof *s->scale_kind_of);
	if (s->scale_kind_of == NULL) {
		skep_reader_fail(r, map, "policy", "not enough memory for the kinds of machines");
		return false;
	}
	for (uint32_t i = 0; i < s->plan.workers; i++) {
		uint32_t k = 0;
		while (k < s->scale.kinds && !same_kind(&s->topology, s->scale_kind[k].example, i))
			k++;
		if (k == SKEP_SCALE_KINDS_MAX) {
			skep_reader_fail(r, map, "policy",
				"cluster.scale: the topology has more than %u kinds of machines, by GPU and price: join "
				"groups of machines, or leave some out",
				SKEP_SCALE_KINDS_MAX);
			return false;
		}
		if (k == s->scale.kinds)
			s->scale_kind[s->scale.kinds++] =
				(struct skep_scale_kind){.speed = SKEP_SPEED_MAX, .example = i};
		s->scale_kind[k].workers++;
		s->scale_kind_of[i] = k;
	}
	name_kinds(s);
	return true;
}

/* ---- who is there at the start ------------------------------------------------------------------------------------------ */

/* Notes who is there to be asked for at 0, and leaves in churn.present the first ones of them, so many, or those that have
 * a stage by allocation.stage_of. */
static bool begin_with(struct skep_scenario *s, uint32_t count)
{
	struct skep_churn *c = &s->churn;
	bool given = s->allocation == SKEP_ALLOCATION_EXPLICIT;
	uint32_t *present = calloc(s->plan.workers, sizeof *present), presents = 0;
	s->scale_there = calloc(s->plan.workers, sizeof *s->scale_there);
	for (uint32_t i = 0; s->scale_there != NULL && i < s->plan.workers; i++)
		s->scale_there[i] = !s->has_trace;
	for (uint32_t i = 0; s->scale_there != NULL && i < c->presents; i++)
		s->scale_there[c->present[i]] = true;
	for (uint32_t i = 0; present != NULL && s->scale_there != NULL && i < s->plan.workers; i++) {
		bool begins = given ? s->first_stage_of[i] != SKEP_NO_STAGE : s->scale_there[i] && presents < count;
		if (!begins)
			continue;
		present[presents++] = i;
		s->scale_there[i] = true;
		s->scale_kind[s->scale_kind_of[i]].start++;
	}
	free(c->present);
	c->present = present;
	c->presents = c->most = presents;
	return present != NULL && s->scale_there != NULL;
}

static uint32_t read_start(struct skep_reader *r, const struct skep_yaml_node *map, const struct skep_scenario *s)
{
	const struct skep_scale *scale = &s->scale;
	if (s->allocation == SKEP_ALLOCATION_EXPLICIT) {
		if (skep_read_has(r, map, "start"))
			skep_reader_fail(r, map, "start",
				"cluster.scale.start: cluster.allocation.stage_of says who begins with a stage: leave out "
				"either");
		return 0;
	}
	return (uint32_t)skep_read_integer(r, map, "start", scale->min, scale->max, scale->min);
}

/* ---- the keys ----------------------------------------------------------------------------------------------------------- */

static skep_time read_time(struct skep_reader *r, const struct skep_yaml_node *map, const char *key, double least_s,
	double most_s, double usual_s)
{
	return (skep_time)(1e9 * skep_read_quantity(r, map, key, SKEP_TIME, least_s, most_s, usual_s) + 0.5);
}

static void read_bounds(struct skep_reader *r, const struct skep_yaml_node *map, struct skep_scenario *s)
{
	struct skep_scale *scale = &s->scale;
	scale->min = (uint32_t)skep_read_integer(r, map, "min", s->plan.stages, s->plan.workers, s->plan.stages);
	scale->max = (uint32_t)skep_read_integer(r, map, "max", 1, s->plan.workers, s->plan.workers);
	if (!r->diag->set && scale->min > scale->max)
		skep_reader_fail(r, map, skep_read_has(r, map, "min") ? "min" : "max",
			"cluster.scale: min is %" PRIu32 " and max %" PRIu32
			": at least as many machines as stages are needed, and max cannot be less than min",
			scale->min, scale->max);
}

static uint64_t read_price(struct skep_reader *r, const struct skep_yaml_node *map, const char *key)
{
	return skep_read_has(r, map, key)
	               ? (uint64_t)llround(1e6 * skep_read_quantity(r, map, key, SKEP_PRICE, 1e-6, USD_MAX, NAN))
	               : 0;
}

static void refuse_unpriced(struct skep_reader *r, const struct skep_yaml_node *map, const struct skep_scenario *s)
{
	static const char *const keys[] = {"policy", "budget", "max_price"};
	const bool asked[] = {s->scale.policy == SKEP_SCALE_PRICE, s->scale.budget_microusd_per_h > 0,
		s->scale.machine_microusd_per_h > 0};
	uint32_t free_worker = skep_prices_missing(s);
	for (uint32_t i = 0; free_worker < s->plan.workers && i < 3 && !r->diag->set; i++)
		if (asked[i])
			skep_reader_fail(r, map, keys[i],
				"cluster.scale.%s: the price of machine %" PRIu32
				" at %s is not known: give its group a `price` or `prices` in topology %.60s, or take "
				"`policy: deadline` without limits in USD",
				keys[i], free_worker, s->topology.place_name[s->topology.machine[free_worker].place],
				s->topology.name);
}

static void read_policy(struct skep_reader *r, const struct skep_yaml_node *map, struct skep_scenario *s)
{
	static const char *const policies[] = {"deadline", "price", NULL};
	struct skep_scale *scale = &s->scale;
	scale->policy = (enum skep_scale_policy)skep_read_choice(r, map, "policy", policies, -1);
	bool by_time = scale->policy == SKEP_SCALE_DEADLINE;
	if (!r->diag->set && skep_read_has(r, map, "deadline") != by_time)
		skep_reader_fail(r, map, by_time ? "policy" : "deadline",
			by_time ? "cluster.scale.deadline: the policy needs to know by when the run is to be done, such as "
				  "`deadline: 36 h`"
				: "cluster.scale.deadline: `policy: price` looks at no deadline: take `policy: deadline`, or "
				  "leave this out");
	if (by_time)
		scale->deadline_ns = read_time(r, map, "deadline", 1e-3, DEADLINE_S_MAX, NAN);
	if (!r->diag->set && skep_read_has(r, map, "share") && by_time)
		skep_reader_fail(r, map, "share",
			"cluster.scale.share: is of `policy: price`; leave it out with `policy: deadline`");
	scale->share_ppm = (uint32_t)lround(1e6 * skep_read_quantity(r, map, "share", SKEP_PART, 0.01, 1, 0.5));
	scale->margin_ppm = (uint32_t)lround(1e6 * skep_read_quantity(r, map, "margin", SKEP_PART, 0, 0.9, 0.1));
	scale->period_ns = read_time(r, map, "period", 1e-3, 365 * SKEP_DAY_S, 60);
	scale->cool_down_ns = read_time(r, map, "cool_down", 0, 365 * SKEP_DAY_S, 300);
	scale->budget_microusd_per_h = read_price(r, map, "budget");
	scale->machine_microusd_per_h = read_price(r, map, "max_price");
}

void skep_scaled_read(struct skep_reader *r, const struct skep_yaml_node *cluster, struct skep_scenario *s)
{
	const struct skep_yaml_node *map = skep_read_map(r, cluster, "scale", false);
	if (map == NULL || r->diag->set)
		return;
	read_policy(r, map, s);
	read_bounds(r, map, s);
	uint32_t start = read_start(r, map, s);
	if (skep_read_has(r, map, "boot"))
		s->boot_ns = read_time(r, map, "boot", 0, SKEP_DAY_S, NAN);
	skep_reader_close_map(r, map);
	if (!r->diag->set)
		refuse_unpriced(r, map, s);
	if (r->diag->set || !find_kinds(r, map, s))
		return;
	s->scale.kind = s->scale_kind;
	s->scale.kind_of = s->scale_kind_of;
	s->plan.scale = &s->scale;
	if (!begin_with(s, start))
		skep_reader_fail(r, map, "policy", "not enough memory for the machines of the start");
	else if (s->churn.presents < s->plan.stages)
		skep_reader_fail(r, map, "policy",
			"cluster.scale: %" PRIu32 " machines are there at the start, %" PRIu32
			" stages need one each; start later in the trace (cluster.trace.start)",
			s->churn.presents, s->plan.stages);
}

/* ---- what it goes together with ------------------------------------------------------------------------------------- */

void skep_scaled_check(struct skep_reader *r, const struct skep_yaml_node *cluster, const struct skep_scenario *s)
{
	const struct skep_yaml_node *map = skep_read_map(r, cluster, "scale", false);
	const char *why = NULL;
	if (r->diag->set || s->plan.scale == NULL)
		return;
	if (skep_plan_fixed(&s->plan))
		why = "needs stages whose workers come and go one by one, and a fixed pipeline has a worker of each: take "
		      "`schedule.pipeline: swarm`, or leave this out";
	else if (s->plan.on_loss == SKEP_ON_LOSS_WAIT)
		why = "gives machines back, and `schedule.on_loss: wait` waits until as many are there as at the start: take "
		      "`on_loss: report`, or leave this out";
	else if (skep_plan_has_candidates(&s->plan))
		why = "changes how many machines there are, and train.init.candidates shares them out: leave out either";
	else if (s->plan.stands_by != NULL)
		why = "asks for machines when they are wanted, and `spare` in cluster.allocation.stage_of stands by for one "
		      "that is lost: write -1 there, or leave this out";
	if (why != NULL)
		skep_reader_fail(r, map, "policy", "cluster.scale: %s", why);
}

/* ---- the plan ------------------------------------------------------------------------------------------------------- */

/* Forward and backward of a microbatch through all virtual stages. */
static double passes_ns(const struct skep_scenario *s, uint32_t gpu)
{
	uint32_t vstages = skep_plan_vstages(&s->plan);
	double sum_ns = 0;
	for (uint32_t v = 0; v < vstages; v++) {
		const struct skep_op_time *time = &s->op_time[(size_t)gpu * vstages + v];
		sum_ns += (double)time->forward_ns + (double)time->backward_ns;
	}
	return sum_ns > 0 ? sum_ns : 1;
}

void skep_scaled_make(struct skep_scenario *s)
{
	double least_ns = INFINITY;
	for (uint32_t k = 0; k < s->scale.kinds; k++)
		least_ns = fmin(least_ns, passes_ns(s, s->topology.machine[s->scale_kind[k].example].gpu));
	for (uint32_t k = 0; k < s->scale.kinds; k++) {
		double ns = passes_ns(s, s->topology.machine[s->scale_kind[k].example].gpu);
		s->scale_kind[k].speed = (uint32_t)fmax(1, SKEP_SPEED_MAX * least_ns / ns);
	}
}

bool skep_scaled_admit(struct skep_scenario *s, skep_time *first_ns, skep_time *again_ns)
{
	size_t bytes = s->plan.workers * sizeof *first_ns;
	s->scale_first_ns = malloc(bytes);
	s->scale_again_ns = malloc(bytes);
	if (s->scale_first_ns == NULL || s->scale_again_ns == NULL)
		return false;
	memcpy(s->scale_first_ns, first_ns, bytes);
	memcpy(s->scale_again_ns, again_ns, bytes);
	return true;
}

void skep_scaled_finish(struct skep_scenario *s)
{
	free(s->scale_kind_of);
	free(s->scale_there);
	free(s->scale_first_ns);
	free(s->scale_again_ns);
}
