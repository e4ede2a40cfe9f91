/* SPDX-License-Identifier: Apache-2.0
 *
 * mistaken.c - see groups.h: files of other kinds that are given as a scenario, told by a key that only they have.
 */
#include "scenarios/read/groups.h"

static const struct skep_mistaken OTHERS[] = {
	{"sites", "a topology; a scenario names it at `cluster.topology`"},
	{"matrix", "a topology; a scenario names it at `cluster.topology`"},
	{"peers", "a topology; a scenario names it at `cluster.topology`"},
	{"kind", "a model; a scenario names it at `model.file`"},
	{"flops", "the profile of a GPU; machines of a topology name it at `gpu`"},
	{"jobs", "a list of jobs, which `skep jobs` simulates"},
};

void skep_mistaken_refuse(struct skep_reader *r, const struct skep_yaml_node *root)
{
	if (r->diag->set || skep_yaml_kind(skep_read_any(r, root, "model")) == SKEP_YAML_MAP)
		return;
	skep_reader_refuse_mistaken(r, root, "scenario", OTHERS, sizeof OTHERS / sizeof OTHERS[0]);
}
