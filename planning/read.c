/* SPDX-License-Identifier: Apache-2.0
 *
 * read.c - see read.h. Reads, searches, and reads again with what was found in place of the method, as if it had been written
 * there.
 */
#include "planning/read.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planning/search.h"

/* Where the search has got to. */
struct sought {
	struct skep_planning planning;
	uint32_t *stage_of;
	char *assignment; /* as --set takes it */
};

static bool fail(const struct skep_scenario *s, const char *what, struct skep_diag *reterr)
{
	skep_diag_set(reterr, s->path, 0, 0, NULL, "%s", what);
	return false;
}

static const char lacking[] = "not enough memory to search for an allocation";

static bool search(const struct skep_scenario *s, struct sought *w, struct skep_diag *reterr)
{
	const struct skep_planning_search question = {.method = skep_method_named(skep_allocation_name(s->allocation)),
		.view = SKEP_VIEW_SHARED,
		.seed = s->seed};
	struct skep_found found;
	if (!skep_planning_search(&w->planning, &question, w->stage_of, &found))
		return fail(s, lacking, reterr);
	if (!(found.cost < SKEP_NEVER))
		return fail(
			s, "cluster.allocation: the search has found none that can be; `skep plan` tries more", reterr);
	free(w->assignment);
	w->assignment = skep_planning_assignment(&w->planning, w->stage_of);
	return w->assignment || fail(s, lacking, reterr);
}

/* The scenario once more, with the allocation in place of how it was searched for. */
static bool read_found(const struct skep_scenario *s, const char *text, size_t size,
	const struct skep_scenario_options *options, const struct sought *w, struct skep_scenario *ret,
	struct skep_diag *reterr)
{
	struct skep_scenario_options o = options ? *options : (struct skep_scenario_options){.sets = 0};
	const char **set = malloc((o.sets + 1) * sizeof *set);
	if (!set)
		return fail(s, lacking, reterr);
	if (o.sets > 0)
		memcpy(set, o.set, o.sets * sizeof *set);
	set[o.sets++] = w->assignment;
	o.set = set;
	bool read = skep_scenario_read_text(s->path, text, size, &o, ret, reterr);
	free(set);
	return read;
}

/* *s was read with any allocation; *ret is what it is with the one that was found. */
static bool resolve(const struct skep_scenario *s, const char *text, size_t size,
	const struct skep_scenario_options *options, struct skep_scenario *ret, struct skep_diag *reterr)
{
	struct sought w = {.assignment = NULL};
	char error[1024];
	if (!skep_planning_make(s, &w.planning, error, sizeof error))
		return fail(s, error, reterr);
	w.stage_of = calloc(w.planning.workers, sizeof *w.stage_of);
	bool read = w.stage_of || fail(s, lacking, reterr);
	read = read && search(s, &w, reterr) && read_found(s, text, size, options, &w, ret, reterr);
	free(w.stage_of);
	free(w.assignment);
	skep_planning_finish(&w.planning);
	return read;
}

bool skep_planning_read_text(const char *path, const char *text, size_t size,
	const struct skep_scenario_options *options, struct skep_scenario *ret, struct skep_diag *reterr)
{
	struct skep_scenario_options o = options ? *options : (struct skep_scenario_options){.sets = 0};
	o.searches = true;
	if (!skep_scenario_read_text(path, text, size, &o, ret, reterr))
		return false;
	if (!skep_allocation_searched(ret->allocation))
		return true;
	struct skep_scenario *first =
		malloc(sizeof *first); /* of itself it points to its plan and model alone: training */
	bool read = first && skep_scenario_read_text(path, text, size, &o, first, reterr);
	enum skep_allocation method = ret->allocation;
	skep_scenario_finish(ret);
	read = read && resolve(first, text, size, options, ret, reterr);
	if (read)
		ret->allocation = method;
	else if (!reterr->set)
		skep_diag_set(reterr, path, 0, 0, NULL, "%s", lacking);
	if (first)
		skep_scenario_finish(first);
	free(first);
	return read;
}

bool skep_planning_read(const char *path, const struct skep_scenario_options *options, struct skep_scenario *ret,
	struct skep_diag *reterr)
{
	char *text;
	size_t size;
	*ret = (struct skep_scenario){.target_loss = NAN};
	if (!skep_file_read(path, SKEP_FILE_BYTES_MAX, &text, &size, reterr))
		return false;
	bool read = skep_planning_read_text(path, text, size, options, ret, reterr);
	free(text);
	return read;
}
