/* SPDX-License-Identifier: Apache-2.0
 *
 * pool.c - decides which machines of the topology take part in a run: see pool.h. An allocation gives each machine
 * one of
 *
 *   a stage   its worker serves that stage from the start
 *   -1        its worker is a spare, which joins as soon as it can
 *   spare     its worker is a standby: the machine is paid for, but the worker joins only in place of one that is lost
 *             (core/directory/boundary.c)
 *   out       the machine is not started: it hosts no worker, costs nothing, and no trace takes it away or brings it
 *
 * Keeps true: a machine that is out is unknown to the rest of the program. It is taken out of the topology and of
 * the trace before these are used, and workers are numbered without it. The trace does to the other machines what
 * it would have done.
 */
#include "scenarios/read/pool.h"

#include <stdlib.h>
#include <string.h>

#include "scenarios/plan/plan.h"

#define OUT (SKEP_NO_STAGE - 1) /* while the list is read */

/* ---- leaving out ------------------------------------------------------------------------------------------------- */

/* Their new numbers: [machines]; OUT: none. NULL: no memory. */
static uint32_t *renumber(struct skep_scenario *s)
{
	uint32_t machines = s->topology.machines, left = 0, *number = calloc(machines, sizeof *number);
	s->machine_of = calloc(machines, sizeof *s->machine_of);
	if (!number || !s->machine_of) {
		free(number);
		return NULL;
	}
	for (uint32_t i = 0; i < machines; i++) {
		number[i] = s->first_stage_of[i] == OUT ? OUT : left;
		if (number[i] != OUT)
			s->machine_of[left++] = i;
	}
	s->plan.workers = left;
	return number;
}

static void leave_topology(struct skep_scenario *s)
{
	struct skep_topology *t = &s->topology;
	for (uint32_t i = 0; i < s->plan.workers; i++) {
		t->machine[i] = t->machine[s->machine_of[i]]; /* numbers rise */
		s->first_stage_of[i] = s->first_stage_of[s->machine_of[i]];
		if (s->stands_by)
			s->stands_by[i] = s->stands_by[s->machine_of[i]];
	}
	t->machine[s->plan.workers] = t->machine[t->machines]; /* the directory's */
	t->machines = s->plan.workers;
}

static void leave_trace(struct skep_churn *c, const uint32_t *number)
{
	uint32_t presents = 0;
	size_t events = 0;
	c->joins = c->leaves = 0;
	for (uint32_t i = 0; i < c->presents; i++)
		if (number[c->present[i]] != OUT)
			c->present[presents++] = number[c->present[i]];
	uint32_t now = c->presents = c->most = presents;
	for (size_t i = 0; i < c->events; i++) {
		struct skep_churn_event event = c->event[i];
		if (number[event.worker] == OUT)
			continue;
		event.worker = number[event.worker];
		c->event[events++] = event;
		c->joins += event.join;
		c->leaves += !event.join;
		now += event.join ? 1 : UINT32_MAX;
		c->most = now > c->most ? now : c->most;
	}
	c->events = events;
}

static bool leave_out(struct skep_scenario *s)
{
	uint32_t machines = s->topology.machines, *number = renumber(s);
	if (!number)
		return false;
	leave_topology(s);
	if (s->has_trace)
		leave_trace(&s->churn, number);
	s->machines_out = machines - s->plan.workers;
	free(number);
	return true;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static uint32_t read_one(struct skep_reader *r, const struct skep_yaml_node *item, uint32_t stages, bool *ret_stands_by)
{
	const char *word = skep_read_string(r, item, NULL, NULL);
	*ret_stands_by = word && strcmp(word, "spare") == 0;
	if (*ret_stands_by)
		return SKEP_NO_STAGE;
	if (word && strcmp(word, "unused") == 0)
		return OUT;
	if (word && (word[0] < '0' || word[0] > '9') && word[0] != '-' && word[0] != '+')
		skep_reader_fail(r, item, NULL,
			"cluster.allocation.stage_of: `%.60s`: expected a stage, -1 for a spare that joins as soon as it can, "
			"`spare` for one that stands by, or `unused` for a machine that is left out",
			word);
	int64_t stage = skep_read_integer(r, item, NULL, -1, (int64_t)stages - 1, INT64_MIN);
	return stage < 0 ? SKEP_NO_STAGE : (uint32_t)stage;
}

void skep_pool_read(struct skep_reader *r, const struct skep_yaml_node *map, struct skep_scenario *s)
{
	const struct skep_yaml_node *list = skep_read_list(r, map, "stage_of", true);
	uint32_t standing = 0, out = 0;
	if (r->diag->set)
		return;
	if (skep_yaml_length(list) != s->plan.workers) {
		skep_reader_fail(r, list, NULL,
			"cluster.allocation.stage_of: %u entries, the topology has %u machines: name a stage for each, "
			"-1 for a spare, or `unused`",
			skep_yaml_length(list), s->plan.workers);
		return;
	}
	s->stands_by = calloc(s->plan.workers, sizeof *s->stands_by);
	bool made = s->stands_by != NULL;
	for (uint32_t i = 0; made && i < s->plan.workers && !r->diag->set; i++) {
		s->first_stage_of[i] = read_one(r, skep_yaml_item(list, i), s->plan.stages, &s->stands_by[i]);
		standing += s->stands_by[i];
		out += s->first_stage_of[i] == OUT;
	}
	uint32_t empty = skep_plan_empty_stage(s);
	if (made && empty != SKEP_NO_STAGE)
		skep_reader_fail(r, list, NULL, "cluster.allocation.stage_of: no worker serves stage %u", empty);
	if (r->diag->set)
		return;
	if (!made || (out > 0 && !leave_out(s)))
		skep_reader_fail(r, list, NULL, "not enough memory for this scenario");
	s->plan.stands_by = standing > 0 ? s->stands_by : NULL;
}

/* ---- telling ----------------------------------------------------------------------------------------------------- */

uint32_t skep_pool_machine(const struct skep_scenario *s, uint32_t worker)
{
	return s->machine_of ? s->machine_of[worker] : worker;
}

uint32_t skep_pool_machines(const struct skep_scenario *s)
{
	return s->plan.workers + s->machines_out;
}
