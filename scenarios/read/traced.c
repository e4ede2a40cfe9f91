/* SPDX-License-Identifier: Apache-2.0
 *
 * traced.c - see groups.h. Keeps true: with `like` each seed has a trace of its own, the same on every machine that reads the
 * scenario with this seed; what only a recording can have (types, copies of its names) is refused beside it. And what
 * `schedule.on_loss` goes together with, when workers are lost.
 */
#include "scenarios/read/groups.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/layout.h"
#include "base/units.h"
#include "core/names.h"
#include "scenarios/outage/outage.h"
#include "scenarios/scale/scaled.h"
#include "topologies/read/path.h"

#define TRACE_S_MAX (10 * 365.25 * SKEP_DAY_S)

static skep_time read_time(
	struct skep_reader *r, const struct skep_yaml_node *map, const char *key, double most_s, double usual_s)
{
	return (skep_time)(1e9 * skep_read_quantity(r, map, key, SKEP_TIME, 0, most_s, usual_s));
}

static void find_file(struct skep_reader *r, const struct skep_yaml_node *map, const char *key, struct skep_scenario *s)
{
	char called[64];
	snprintf(called, sizeof called, "cluster.trace.%s", key);
	skep_read_path(r, map, key, called, "file", s->path, s->trace_path, sizeof s->trace_path);
}

/* The trace's part of the options; what has no meaning for this kind of trace is refused. */
static void read_options(
	struct skep_reader *r, const struct skep_yaml_node *map, bool drawn, struct skep_churn_options *ret)
{
	static const char *const machines[] = {"lowest", "random", NULL}, *const recorded[] = {"any_gpu", "copies"};
	for (uint32_t i = 0; drawn && i < 2; i++)
		if (skep_read_has(r, map, recorded[i]))
			skep_reader_fail(r, map, recorded[i],
				"cluster.trace.%s: is of recordings; a trace that is drawn has each machine of the "
				"topology once, whatever its type: leave it out",
				recorded[i]);
	ret->scale = skep_read_number(r, map, "scale", 1e-6, 1e6, 1);
	ret->start_ns = read_time(r, map, "start", TRACE_S_MAX, 0);
	if (skep_read_has(r, map, "end"))
		ret->end_ns = read_time(r, map, "end", TRACE_S_MAX, NAN);
	ret->copies = drawn ? 1 : skep_read_number(r, map, "copies", 0, 1e6, 1);
	ret->jitter_ns = read_time(r, map, "jitter", SKEP_DAY_S, 0);
	ret->any_gpu = !drawn && skep_read_bool(r, map, "any_gpu", false);
	ret->random_machine = skep_read_choice(r, map, "machine", machines, 0) == 1;
}

static void read_churn(struct skep_reader *r, const struct skep_churn_options *o, bool drawn, skep_time duration_ns,
	struct skep_scenario *s)
{
	if (drawn)
		s->has_trace = skep_churn_draw(s->trace_path, duration_ns, &s->topology, o, &s->churn, r->diag);
	else
		s->has_trace = skep_churn_read(s->trace_path, &s->topology, o, &s->churn, r->diag);
}

void skep_traced_read(struct skep_reader *r, const struct skep_yaml_node *cluster, struct skep_scenario *s)
{
	static const char *const admissions[] = {"free", "served", NULL};
	struct skep_churn_options o = SKEP_CHURN_DEFAULTS;
	skep_time duration_ns = 0;
	const struct skep_yaml_node *any = skep_read_any(r, cluster, "trace");
	if (skep_yaml_kind(any) == SKEP_YAML_SCALAR && !r->diag->set) {
		const char *name = skep_read_string(r, any, NULL, "");
		skep_reader_fail(r, cluster, "trace",
			"cluster.trace: expected keys with values, not a name; a recording is {file: %.200s}",
			name[0] != '\0' ? name : "FILE");
	}
	const struct skep_yaml_node *map = skep_read_map(r, cluster, "trace", false);
	if (!map)
		return;
	bool drawn = skep_read_has(r, map, "like");
	if (drawn && skep_read_has(r, map, "file"))
		skep_reader_fail(r, map, "like",
			"cluster.trace.like: draws a trace, and `file` names one to be played: leave out either");
	find_file(r, map, drawn ? "like" : "file", s);
	if (skep_read_has(r, map, "duration")) {
		duration_ns = (skep_time)(1e9 * skep_read_quantity(r, map, "duration", SKEP_TIME, 1, 1e9, NAN));
		if (!drawn)
			skep_reader_fail(r, map, "duration",
				"cluster.trace.duration: is of a trace that is drawn (`like`); of a recording `end` is what "
				"is played");
	}
	read_options(r, map, drawn, &o);
	s->notice_ns = read_time(r, map, "preempt_notice", SKEP_DAY_S, 0);
	s->boot_ns = read_time(r, map, "boot", SKEP_DAY_S, 0);
	s->admitted = skep_read_choice(r, map, "admission", admissions, 0) == 1;
	s->detection_delay_ns = read_time(r, map, "detection_delay", SKEP_DAY_S, 0);
	o.seed = o.trace.seed = s->seed;
	skep_reader_close_map(r, map);
	if (!r->diag->set)
		read_churn(r, &o, drawn, duration_ns, s);
	if (!r->diag->set && s->churn.presents < s->plan.stages)
		skep_reader_fail(r, map, drawn ? "start" : "file",
			"cluster.trace: %u workers are there at the start, %u stages need one each; start later in the "
			"trace (start: ...) or take more copies",
			s->churn.presents, s->plan.stages);
	if (!s->has_trace)
		s->trace_path[0] = '\0';
}

/* ---- how long a join takes ------------------------------------------------------------------------------------------- */

struct files {
	uint64_t bytes;
	uint32_t count;
};

static struct files that_travel(const struct skep_scenario *s)
{
	struct files files = {0};
	for (uint32_t i = 0; i < s->files.count; i++) {
		struct stat st;
		if (!s->files.asked[i].read || stat(s->files.asked[i].path, &st) != 0)
			continue;
		files.bytes += (uint64_t)st.st_size;
		files.count++;
	}
	return files;
}

static skep_time admission_ns(const struct skep_scenario *s, uint32_t machine, struct files files)
{
	const struct skep_topology *t = &s->topology;
	if (!s->admitted)
		return s->boot_ns;
	double seconds = skep_outage_let_in_s(t, machine, files.count);
	seconds += (double)files.bytes / skep_path_lone_Bps(t, t->machines, machine);
	return s->boot_ns + (skep_time)(1e9 * seconds);
}

void skep_traced_admit(struct skep_reader *r, struct skep_scenario *s)
{
	uint32_t machines = s->topology.machines;
	if ((!s->has_trace && s->plan.scale == NULL) || (s->boot_ns == 0 && !s->admitted))
		return;
	skep_time *first = calloc(machines, sizeof *first), *again = calloc(machines, sizeof *again);
	struct files files = that_travel(s);
	for (uint32_t i = 0; first != NULL && again != NULL && i < machines; i++) {
		first[i] = admission_ns(s, i, files);
		again[i] = admission_ns(s, i, (struct files){0});
		s->admission_ns = first[i] > s->admission_ns ? first[i] : s->admission_ns;
	}
	bool fine = first != NULL && again != NULL;
	if (fine && s->plan.scale != NULL) /* a machine that is there is had when it is asked for, and no sooner */
		fine = skep_scaled_admit(s, first, again);
	else if (fine)
		fine = skep_churn_admit(&s->churn, machines, first, again);
	if (!fine)
		skep_reader_fail(r, NULL, NULL, "not enough memory for the joins of the trace");
	free(first);
	free(again);
}

bool skep_traced_left_out(const struct skep_scenario *s, char *ret, size_t size)
{
	const struct skep_churn *c = &s->churn;
	const uint64_t joins = c->joins + c->presents + c->unplaced, late = c->unplaced - c->unsuited;
	size_t used = 0;
	if (!s->has_trace || c->unplaced == 0)
		return false;
	used += (size_t)snprintf(ret, size,
		"left out: %" PRIu64 " of %" PRIu64 " join%s in the trace, with %s: ", c->unplaced, joins,
		skep_plural(joins), c->unplaced == 1 ? "its leave" : "their leaves");
	if (c->unsuited > 0 && used < size)
		used += (size_t)snprintf(ret + used, size - used,
			"%" PRIu64 " for a GPU that no machine of the topology has, such as %s "
			"(cluster.trace.any_gpu: true takes any)%s",
			c->unsuited, c->unsuited_type, late > 0 ? "; " : "");
	if (late > 0 && used < size)
		snprintf(ret + used, size - used, "%" PRIu64 " found no free machine of %s type", late,
			late == 1 ? "its" : "their");
	return true;
}

/* ---- losses ------------------------------------------------------------------------------------------------------- */

struct hindrance {
	bool is;
	const char *why;
};

static void refuse_first(struct skep_reader *r, const struct skep_yaml_node *schedule, enum skep_on_loss on_loss,
	const struct hindrance *hindrance, size_t count)
{
	for (size_t i = 0; i < count && !r->diag->set; i++)
		if (hindrance[i].is)
			skep_reader_fail(r, schedule, "on_loss", "schedule.on_loss: `%s` %s",
				skep_on_loss_name((uint8_t)on_loss), hindrance[i].why);
}

static void check_void(struct skep_reader *r, const struct skep_yaml_node *schedule, const struct skep_plan *plan)
{
	const struct hindrance hindrances[] = {
		{skep_plan_periodic(plan),
			"throws the gradients of a step away, and with periodic sync workers have made steps of their own "
			"on them, which cannot be taken back: take `sync.method: step`, or `report`"},
		{plan->delayed,
			"throws the gradients of a step away, and with `sync.delayed` the next step is under way by "
			"then: leave out either"}};
	refuse_first(r, schedule, plan->on_loss, hindrances, sizeof hindrances / sizeof hindrances[0]);
}

static void check_wait(struct skep_reader *r, const struct skep_yaml_node *schedule, const struct skep_plan *plan)
{
	const struct hindrance hindrances[] = {
		{plan->async.on,
			"holds all back until the place is taken, and with `sync.method: async` no worker waits for "
			"others: leave out either"},
		{plan->gossip,
			"holds all back until the place is taken, and with `sync.method: gossip` a worker needs one "
			"other and not all: leave out either"},
		{plan->delayed,
			"lets a newcomer take the place in the middle of a round, and with `sync.delayed` or "
			"`sync.overlap_steps` that works on parameters which a newcomer does not have: leave out either"},
		{plan->rebalance.period_ns > 0, "needs each stage to have as many workers as at the start, and with "
						"`schedule.rebalance` they move: leave out either"},
		{skep_plan_has_candidates(plan),
			"needs each stage to have as many workers as at the start, and candidates for the first parameters "
			"share them: leave out either"},
		{plan->liveness.wait_for_join_ns == 0,
			"waits for as long as `cluster.wait_for_join` says, which is 0 s: make that longer, or take `report`"}};
	refuse_first(r, schedule, plan->on_loss, hindrances, sizeof hindrances / sizeof hindrances[0]);
}

void skep_losses_check(struct skep_reader *r, const struct skep_yaml_node *schedule, const struct skep_plan *plan)
{
	if (!r->diag->set && plan->on_loss == SKEP_ON_LOSS_VOID)
		check_void(r, schedule, plan);
	else if (!r->diag->set && plan->on_loss == SKEP_ON_LOSS_WAIT)
		check_wait(r, schedule, plan);
}
