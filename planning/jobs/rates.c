/* SPDX-License-Identifier: Apache-2.0
 *
 * rates.c - see rates.h.
 */
#include "planning/jobs/rates.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "core/hash.h"
#include "planning/expected/expected.h"
#include "planning/problem/resolve.h"
#include "planning/trial/simulate.h"
#include "scenarios/plan/plan.h"

/* What no job of a shared cluster has of its own: who is there is decided here, and only times are asked for. */
static const char *const ALWAYS[] = {"cluster.trace=null", "cluster.scale=null", "cluster.byzantine=null", "plan=null"};
#define ALWAYS_COUNT (sizeof ALWAYS / sizeof ALWAYS[0])

struct known {
	uint64_t key;
	double rate;
};

struct skep_job_rates {
	const struct skep_jobs_file *file;
	uint32_t *group;    /* [types] */
	uint32_t *class_of; /* [machines] */
	uint32_t classes;
	uint32_t *count; /* [classes] scratch */
	struct known *known;
	uint32_t knowns;
};

/* ---- what is alike ------------------------------------------------------------------------------------------------- */

static bool same_scenario(const struct skep_job_type *a, const struct skep_job_type *b)
{
	bool same = strcmp(a->scenario, b->scenario) == 0 && a->sets == b->sets;
	for (uint32_t i = 0; same && i < a->sets; i++)
		same = strcmp(a->set[i], b->set[i]) == 0;
	return same;
}

static bool same_machine(const struct skep_machine *a, const struct skep_machine *b)
{
	return a->place == b->place && a->gpu == b->gpu && a->host == b->host && a->up_Bps == b->up_Bps &&
	       a->down_Bps == b->down_Bps;
}

static void group(struct skep_job_rates *r)
{
	const struct skep_jobs_file *f = r->file;
	for (uint32_t i = 0; i < f->types; i++)
		for (r->group[i] = 0; !same_scenario(&f->type[r->group[i]], &f->type[i]);)
			r->group[i]++;
	for (uint32_t m = 0; m < f->topology.machines; m++) {
		uint32_t first = 0;
		while (!same_machine(&f->topology.machine[first], &f->topology.machine[m]))
			first++;
		r->class_of[m] = first < m ? r->class_of[first] : r->classes++;
	}
}

struct skep_job_rates *skep_job_rates_create(const struct skep_jobs_file *file)
{
	struct skep_job_rates *r = calloc(1, sizeof *r);
	uint32_t machines = file->topology.machines;
	if (!r)
		return NULL;
	r->file = file;
	r->group = calloc(file->types, sizeof *r->group);
	r->class_of = calloc(machines, sizeof *r->class_of);
	r->count = calloc(machines, sizeof *r->count);
	if (r->group && r->class_of && r->count) {
		group(r);
		return r;
	}
	skep_job_rates_destroy(r);
	return NULL;
}

void skep_job_rates_destroy(struct skep_job_rates *r)
{
	if (!r)
		return;
	free(r->group);
	free(r->class_of);
	free(r->count);
	free(r->known);
	free(r);
}

uint32_t skep_job_rates_group(const struct skep_job_rates *r, uint32_t type)
{
	return r->group[type];
}

uint32_t skep_job_rates_asked(const struct skep_job_rates *r)
{
	return r->knowns;
}

/* ---- one scenario --------------------------------------------------------------------------------------------------- */

/* Only times are asked for, of the types that its arithmetic has: these are chosen when it is read. */
static void leave_arithmetic(struct skep_scenario *s)
{
	s->arithmetic = SKEP_ARITHMETIC_NONE;
	s->plan.until.target_loss_nano = INT64_MIN;
	s->target_loss = NAN;
}

/* The scenario of a type with its changes and these behind. */
static bool read_scenario(const struct skep_job_type *type, const char *const *more, uint32_t mores,
	struct skep_scenario *ret, struct skep_diag *reterr)
{
	const char **set = calloc(type->sets + mores + ALWAYS_COUNT, sizeof *set);
	uint32_t sets = 0;
	if (!set)
		return skep_fail(reterr, "not enough memory for these jobs");
	for (uint32_t i = 0; i < type->sets; i++)
		set[sets++] = type->set[i];
	for (uint32_t i = 0; i < mores; i++)
		set[sets++] = more[i];
	for (uint32_t i = 0; i < ALWAYS_COUNT; i++)
		set[sets++] = ALWAYS[i];
	const struct skep_scenario_options options = {.set = set, .sets = sets};
	bool ok = skep_resolve_file(type->scenario, &options, ret, reterr);
	free(set);
	if (ok)
		leave_arithmetic(ret);
	return ok;
}

bool skep_job_rates_basis(
	const struct skep_job_rates *r, uint32_t type, struct skep_job_basis *ret, struct skep_diag *reterr)
{
	struct skep_scenario s;
	*ret = (struct skep_job_basis){.stages = 0};
	if (!read_scenario(&r->file->type[type], NULL, 0, &s, reterr))
		return false;
	ret->stages = s.plan.stages;
	ret->workers = s.plan.workers;
	ret->steps = (uint32_t)fmin((double)skep_plan_all_steps(&s), UINT32_MAX);
	for (uint32_t i = 0; i < s.plan.stages; i++)
		ret->state_bytes += (double)s.stage[i].state_bytes;
	skep_scenario_finish(&s);
	return true;
}

/* `cluster.allocation=...` of these machines; the caller frees it. NULL: no memory. */
static char *allocation(const struct skep_jobs_file *file, uint32_t stages, const uint32_t *machine, uint32_t machines)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	uint32_t next = 0;
	if (!out)
		return NULL;
	fprintf(out, "cluster.allocation={method: explicit, stage_of: [");
	for (uint32_t m = 0; m < file->topology.machines; m++) {
		bool its = next < machines && machine[next] == m;
		if (its)
			fprintf(out, "%s%llu", m > 0 ? ", " : "", (unsigned long long)next * stages / machines);
		else
			fprintf(out, "%sunused", m > 0 ? ", " : "");
		next += its;
	}
	fprintf(out, "]}");
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

static double rate_of(const struct skep_scenario *s, struct skep_diag *reterr)
{
	struct skep_expected expected;
	struct skep_summary summary;
	const struct skep_simulate_options options = {.warm_up = 0};
	char bound[128];
	if (!skep_pace_is_least(s) && skep_expected_at_start(s, &expected, bound, sizeof bound)) {
		const struct skep_pace pace = skep_expected_pace(&expected);
		return 1 / skep_pace_mean_s(s, &pace);
	}
	if (!skep_simulate(s, &options, &summary, reterr) || !summary.ok || summary.time_s <= 0) {
		skep_fail(reterr, "it does not come to an end in the simulator");
		return 0;
	}
	return (double)summary.steps / summary.time_s;
}

static double find(struct skep_job_rates *r, uint32_t type, uint32_t stages, const uint32_t *machine, uint32_t machines,
	struct skep_diag *reterr)
{
	const struct skep_jobs_file *f = r->file;
	char topology[600], *stage_of = allocation(f, stages, machine, machines);
	struct skep_scenario s;
	double rate = 0;
	snprintf(topology, sizeof topology, "cluster.topology=%s", f->topology_path);
	const char *const more[] = {topology, stage_of};
	if (machines < stages)
		skep_fail(reterr, "it has %u stages, each of which needs a machine", stages);
	else if (!stage_of)
		skep_fail(reterr, "not enough memory for these jobs");
	else if (read_scenario(&f->type[type], more, 2, &s, reterr)) {
		rate = rate_of(&s, reterr);
		skep_scenario_finish(&s);
	}
	free(stage_of);
	return rate;
}

double skep_job_rates_ask(struct skep_job_rates *r, uint32_t type, uint32_t stages, const uint32_t *machine,
	uint32_t machines, struct skep_diag *reterr)
{
	uint64_t key = skep_hash_word(SKEP_HASH_EMPTY, r->group[type]);
	memset(r->count, 0, r->classes * sizeof *r->count);
	for (uint32_t i = 0; i < machines; i++)
		r->count[r->class_of[machine[i]]]++;
	for (uint32_t i = 0; i < r->classes; i++)
		key = r->count[i] > 0 ? skep_hash_word(skep_hash_word(key, i), r->count[i]) : key;
	for (uint32_t i = 0; i < r->knowns; i++)
		if (r->known[i].key == key)
			return r->known[i].rate;
	double rate = find(r, type, stages, machine, machines, reterr);
	if (rate > 0 && skep_grow(&r->known, r->knowns, sizeof *r->known))
		r->known[r->knowns++] = (struct known){key, rate};
	return rate;
}
