/* SPDX-License-Identifier: Apache-2.0
 *
 * resolve.c - see resolve.h. What was found stands in the place of the method, as if it had been written there: machines that
 * it leaves out are no workers, so the scenario is read once more with it.
 */
#include "planning/problem/resolve.h"

#include <stdlib.h>
#include <string.h>

#include "planning/problem/run_search.h"

static bool fail(const struct skep_scenario *s, const char *what, struct skep_diag *reterr)
{
	skep_diag_set(reterr, s->path, 0, 0, NULL, "%s", what);
	return false;
}

static const char lacking[] = "not enough memory to search for an allocation";

/* At the method. */
static bool refuse_exact(const struct skep_scenario *s, const struct skep_scenario_options *options, double count,
	struct skep_diag *reterr)
{
	struct skep_diag none = {0};
	struct skep_reader r = {skep_yaml_parse(s->path, s->source, strlen(s->source), &none), reterr};
	if (!r.yaml)
		return fail(s, lacking, reterr);
	for (uint32_t i = 0; options && i < options->sets; i++)
		skep_yaml_override(r.yaml, options->set[i], reterr);
	const struct skep_yaml_node *cluster = skep_read_map(&r, skep_yaml_root(r.yaml), "cluster", false);
	skep_reader_fail(&r, skep_read_map(&r, cluster, "allocation", false), "method",
		"cluster.allocation.method: `exact` looks at every allocation, of which this pool has up to %.3g; it does at "
		"most %.0f: take `portfolio`",
		count, SKEP_PLANNING_EXACT_MOST);
	skep_yaml_destroy(r.yaml);
	return false;
}

static bool search(const struct skep_scenario *s, const struct skep_planning *planning, uint32_t *ret_stage_of,
	struct skep_diag *reterr)
{
	const struct skep_planning_search question = {.method = skep_method_named(skep_allocation_name(s->allocation)),
		.view = SKEP_CONTENDED,
		.seed = s->seed};
	struct skep_found found;
	if (!skep_planning_search(planning, &question, ret_stage_of, &found))
		return fail(s, lacking, reterr);
	return found.cost < SKEP_NEVER ||
	       fail(s, "cluster.allocation: the search has found none that can be; `skep plan` tries more", reterr);
}

char *skep_resolve_search(
	const struct skep_scenario *s, const struct skep_scenario_options *options, struct skep_diag *reterr)
{
	struct skep_planning planning;
	double count;
	char *assignment = NULL;
	struct skep_diag error = {0};
	if (!skep_planning_make(s, &planning, &error)) {
		fail(s, error.message, reterr);
		return NULL;
	}
	uint32_t *stage_of = calloc(planning.workers, sizeof *stage_of);
	if (!stage_of)
		fail(s, lacking, reterr);
	else if (s->allocation == SKEP_ALLOCATION_EXACT && !skep_planning_exact(&planning, &count))
		refuse_exact(s, options, count, reterr);
	else if (search(s, &planning, stage_of, reterr) &&
		 !(assignment = skep_planning_assignment(&planning, stage_of)))
		fail(s, lacking, reterr);
	free(stage_of);
	skep_planning_finish(&planning);
	return assignment;
}

bool skep_resolve_with(struct skep_scenario *s, const struct skep_scenario_options *options, const char *assignment,
	struct skep_diag *reterr)
{
	struct skep_scenario_options o = options ? *options : (struct skep_scenario_options){.sets = 0};
	enum skep_allocation method = s->allocation;
	const char **set = malloc((o.sets + 1) * sizeof *set);
	char *source = strdup(s->source), *path = strdup(s->path);
	bool read = set && source && path;
	if (!read)
		fail(s, lacking, reterr);
	skep_scenario_finish(s);
	if (read) {
		if (o.sets > 0)
			memcpy(set, o.set, o.sets * sizeof *set);
		set[o.sets++] = assignment;
		o.set = set;
		read = skep_scenario_read_text(path, source, strlen(source), &o, s, reterr);
	}
	if (read)
		s->allocation = method;
	free(set);
	free(source);
	free(path);
	return read;
}

bool skep_resolve(struct skep_scenario *s, const struct skep_scenario_options *options, struct skep_diag *reterr)
{
	if (!s->unresolved)
		return true;
	char *assignment = skep_resolve_search(s, options, reterr);
	bool resolved = assignment && skep_resolve_with(s, options, assignment, reterr);
	if (!assignment)
		skep_scenario_finish(s);
	free(assignment);
	return resolved;
}

bool skep_resolve_file(const char *path, const struct skep_scenario_options *options, struct skep_scenario *ret,
	struct skep_diag *reterr)
{
	return skep_scenario_read(path, options, ret, reterr) && skep_resolve(ret, options, reterr);
}
