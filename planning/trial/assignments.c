/* SPDX-License-Identifier: Apache-2.0
 *
 * assignments.c - see assignments.h.
 */
#include "planning/trial/assignments.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "planning/problem/resolve.h"

bool skep_assignments_add(struct skep_assignments *to, const char *assignment)
{
	if (!assignment || !skep_grow(&to->set, to->sets, sizeof *to->set))
		return false;
	to->set[to->sets] = strdup(assignment);
	bool added = to->set[to->sets] != NULL;
	to->sets += added;
	return added;
}

static bool add_all(struct skep_assignments *to, const char *const *set, uint32_t sets)
{
	bool ok = true;
	for (uint32_t i = 0; ok && i < sets; i++)
		ok = skep_assignments_add(to, set[i]);
	return ok;
}

bool skep_assignments_make(const char *path, const struct skep_scenario_options *o, struct skep_assignments *ret)
{
	*ret = (struct skep_assignments){.path = path, .has_seed = o->has_seed, .seed = o->seed};
	return add_all(ret, o->set, o->sets);
}

bool skep_assignments_copy(const struct skep_assignments *from, struct skep_assignments *ret)
{
	*ret = (struct skep_assignments){.path = from->path, .has_seed = from->has_seed, .seed = from->seed};
	return add_all(ret, (const char *const *)from->set, from->sets);
}

void skep_assignments_cut(struct skep_assignments *from, uint32_t sets)
{
	assert(sets <= from->sets);
	while (from->sets > sets)
		free(from->set[--from->sets]);
}

void skep_assignments_finish(struct skep_assignments *a)
{
	skep_assignments_cut(a, 0);
	free(a->set);
	a->set = NULL;
}

struct skep_scenario_options skep_assignments_options(const struct skep_assignments *a)
{
	return (struct skep_scenario_options){
		.set = (const char *const *)a->set, .sets = a->sets, .has_seed = a->has_seed, .seed = a->seed};
}

bool skep_assignments_read(const struct skep_assignments *a, struct skep_scenario *ret, struct skep_diag *reterr)
{
	struct skep_scenario_options options = skep_assignments_options(a);
	return skep_resolve_file(a->path, &options, ret, reterr);
}
